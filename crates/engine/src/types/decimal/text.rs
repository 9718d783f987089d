//! The text form.
use super::{Decimal, Finite, MOST_BEFORE, MOST_BEHIND, overflow};
use crate::error::{EngineError, Result};
use crate::types::trim;
use num_bigint::{BigInt, Sign};
use std::fmt;

impl Decimal {
    /// Reads `[+-]digits[.digits][e[+-]digits]`, `NaN`, `[+-]Infinity`, `[+-]inf`. The scale is that of the digits
    /// written. 22P02; 22003 where there are more than a value may have.
    pub fn parse(text: &str) -> Result<Decimal> {
        let bad = || EngineError::invalid_text("numeric", text);
        let body = trim(text);
        let (negative, unsigned) = match body.as_bytes().first() {
            Some(b'-') => (true, &body[1..]),
            Some(b'+') => (false, &body[1..]),
            _ => (false, body),
        };
        if ["inf", "infinity"].iter().any(|word| unsigned.eq_ignore_ascii_case(word)) {
            return Ok(if negative { Decimal::MinusInfinity } else { Decimal::Infinity });
        }
        if body.eq_ignore_ascii_case("nan") {
            return Ok(Decimal::NaN);
        }
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent).ok_or_else(bad)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, fraction].concat();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad());
        }
        let digits = digits.trim_start_matches('0');
        let scale = fraction.len() as i64 - exponent;
        if digits.is_empty() {
            let scale = u32::try_from(scale.max(0)).ok().filter(|scale| *scale <= MOST_BEHIND).ok_or_else(overflow)?;
            return Ok(Decimal::Finite(Finite::zero(scale)));
        }
        if digits.len() as i64 - scale > MOST_BEFORE as i64 || scale > i64::from(MOST_BEHIND) {
            return Err(overflow());
        }
        let magnitude: BigInt = digits.parse().map_err(|_| bad())?;
        let unscaled = if scale < 0 { magnitude * super::ten_to(-scale as u32) } else { magnitude };
        let unscaled = if negative { -unscaled } else { unscaled };
        Ok(Decimal::Finite(Finite::new(unscaled, scale.max(0) as u32).checked()?))
    }
}

/// What is so large that no number has so many digits is as good as any such.
fn read_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size = digits.trim_start_matches('0').parse::<i64>().unwrap_or(if digits.len() > 9 { i64::MAX } else { 0 });
    let size = size.min(1 << 32);
    Some(if text.starts_with('-') { -size } else { size })
}

impl fmt::Display for Finite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.unscaled.magnitude().to_string();
        let scale = self.scale as usize;
        let sign = if self.unscaled.sign() == Sign::Minus { "-" } else { "" };
        match digits.len().checked_sub(scale) {
            _ if scale == 0 => write!(f, "{sign}{digits}"),
            Some(before @ 1..) => write!(f, "{sign}{}.{}", &digits[..before], &digits[before..]),
            _ => write!(f, "{sign}0.{digits:0>scale$}"),
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decimal::Finite(v) => v.fmt(f),
            Decimal::Infinity => f.write_str("Infinity"),
            Decimal::MinusInfinity => f.write_str("-Infinity"),
            Decimal::NaN => f.write_str("NaN"),
        }
    }
}
