//! Decimal numbers of a known scale: up to 38 digits, kept as an integer and the number of its digits behind the point.
//!
//! 1. A column has one scale, and each of its values is stored at it: the order of the integers is the order of the
//!    values.
//! 2. Rounding is to the nearest, ties away from zero, as PostgreSQL's.
//! 3. Values of `numeric` without precision and scale have each their own: they are [`super::decimal`]'s.
use super::{Decimal, trim};
use crate::error::{EngineError, Result};
use std::cmp::Ordering;
use std::fmt;

/// Digits of the longest number.
pub const MAX_PRECISION: u8 = 38;

const NAME: &str = "numeric";

/// `unscaled / 10^scale`. Compared by value: 1.0 = 1.00.
#[derive(Clone, Copy, Debug)]
pub struct Numeric {
    pub unscaled: i128,
    pub scale: u8,
}

/// 10 to the power of `n`, 0 to 38.
pub fn power_of_ten(n: u8) -> i128 {
    assert!(n <= MAX_PRECISION, "10^38 is the largest power that 128 bits hold");
    10i128.pow(n.into())
}

/// `value / divisor` (positive), rounded (invariant 2).
pub fn divide_rounded(value: i128, divisor: i128) -> i128 {
    assert!(divisor > 0, "a positive divisor");
    let (quotient, rest) = (value / divisor, (value % divisor).unsigned_abs());
    // `rest >= divisor - rest` is `2 * rest >= divisor` without its overflow.
    let away = rest >= divisor.unsigned_abs() - rest;
    quotient + if away { value.signum() } else { 0 }
}

/// 22003 of a value that a type's digits do not hold, as PostgreSQL words it.
pub(super) fn field_overflow(precision: impl Into<i32>, scale: impl Into<i32>) -> EngineError {
    let (precision, scale) = (precision.into(), scale.into());
    let limit = match precision - scale {
        0 => "1".to_owned(),
        digits => format!("10^{digits}"),
    };
    EngineError::new("22003", "numeric field overflow").with_detail(format!(
        "A field with precision {precision}, scale {scale} must round to an absolute value less than {limit}."
    ))
}

impl Numeric {
    pub fn from_int(value: i64) -> Numeric {
        Numeric { unscaled: value.into(), scale: 0 }
    }

    /// Reads `[+-]digits[.digits][e[+-]digits]` at the given scale. 22P02, 22003.
    pub(super) fn parse(text: &str, precision: u8, scale: u8) -> Result<Numeric> {
        let bad = || EngineError::invalid_text(NAME, text);
        let body = trim(text);
        let (negative, unsigned) = match body.as_bytes().first() {
            Some(b'-') => (true, &body[1..]),
            Some(b'+') => (false, &body[1..]),
            _ => (false, body),
        };
        if ["nan", "inf", "infinity"].iter().any(|word| unsigned.eq_ignore_ascii_case(word)) {
            return Decimal::parse(text)?.to_numeric(precision, scale);
        }
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| bad())?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() {
            return Err(bad());
        }
        // Digits are taken up to one behind the scale, which rounds; the value is `digits * 10^(exponent -
        // fraction.len())`.
        let mut unscaled = 0i128;
        let mut round_up = false;
        let first = whole.len() as i64 + i64::from(exponent);
        for (at, c) in whole.chars().chain(fraction.chars()).enumerate() {
            let digit = i128::from(c.to_digit(10).ok_or_else(bad)?);
            // Position behind the point of this digit: 1 for tenths.
            match (at as i64 + 1 - first).cmp(&(i64::from(scale) + 1)) {
                Ordering::Less => {
                    let next = unscaled.checked_mul(10).and_then(|v| v.checked_add(digit));
                    unscaled = next.ok_or_else(|| field_overflow(precision, scale))?;
                }
                Ordering::Equal => round_up = digit >= 5,
                Ordering::Greater => {}
            }
        }
        let taken = (whole.len() + fraction.len()) as i64 - first;
        let missing = i64::from(scale) - taken;
        if missing > 0 && unscaled != 0 {
            let factor = u8::try_from(missing).ok().filter(|n| *n <= MAX_PRECISION).map(power_of_ten);
            let scaled = factor.and_then(|f| unscaled.checked_mul(f));
            unscaled = scaled.ok_or_else(|| field_overflow(precision, scale))?;
        }
        unscaled += i128::from(round_up);
        Numeric { unscaled: if negative { -unscaled } else { unscaled }, scale }.checked(precision)
    }

    /// The value itself where it has at most `precision` digits. 22003.
    pub fn checked(self, precision: u8) -> Result<Numeric> {
        if self.unscaled.unsigned_abs() >= power_of_ten(precision).unsigned_abs() {
            return Err(field_overflow(precision, self.scale));
        }
        Ok(self)
    }

    /// At another scale, rounded. 22003 where that has more than `precision` digits.
    pub fn rescale(self, precision: u8, scale: u8) -> Result<Numeric> {
        let unscaled = if scale >= self.scale {
            self.unscaled
                .checked_mul(power_of_ten(scale - self.scale))
                .ok_or_else(|| field_overflow(precision, scale))?
        } else {
            divide_rounded(self.unscaled, power_of_ten(self.scale - scale))
        };
        Numeric { unscaled, scale }.checked(precision)
    }

    /// The nearest integer (invariant 2).
    pub fn to_int(self) -> i128 {
        divide_rounded(self.unscaled, power_of_ten(self.scale))
    }

    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        self.to_string().parse().expect("a decimal number")
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Numeric) -> Ordering {
        if self.scale == other.scale {
            return self.unscaled.cmp(&other.unscaled);
        }
        let parts = |n: &Numeric| {
            let unit = power_of_ten(n.scale);
            // The rest is below 10^scale, hence 10^38 times nothing too large.
            (n.unscaled.div_euclid(unit), n.unscaled.rem_euclid(unit) * power_of_ten(MAX_PRECISION - n.scale))
        };
        parts(self).cmp(&parts(other))
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Numeric) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Numeric {}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.unscaled < 0 { "-" } else { "" };
        let unit = power_of_ten(self.scale).unsigned_abs();
        let (whole, rest) = (self.unscaled.unsigned_abs() / unit, self.unscaled.unsigned_abs() % unit);
        match self.scale {
            0 => write!(f, "{sign}{whole}"),
            scale => write!(f, "{sign}{whole}.{rest:0width$}", width = scale as usize),
        }
    }
}

#[cfg(test)]
mod tests;
