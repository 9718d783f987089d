//! JSON's numbers as numeric has them: how they are shown, and their order.
//!
//! Source: what PostgreSQL 15 answers, and the limits of numeric (8.1.2): 131072 digits before the point, 16383 behind.
use crate::error::{EngineError, Result};

const MOST_BEFORE: i64 = 131_072;
const MOST_BEHIND: i64 = 16_383;

fn overflow() -> EngineError {
    EngineError::new("22003", "value overflows numeric format")
}

/// A number without an exponent. 22003
pub(super) fn plain(written: &str) -> Result<String> {
    let (negative, rest) = match written.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, written),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().map_err(|_| overflow())?),
        None => (rest, 0),
    };
    if exponent.unsigned_abs() >= (i32::MAX / 2) as u64 {
        return Err(overflow());
    }
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = [whole, fraction].concat();
    let behind = (fraction.len() as i64 - exponent).max(0);
    if behind > MOST_BEHIND {
        return Err(overflow());
    }
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Ok(if behind == 0 { "0".to_owned() } else { format!("0.{}", "0".repeat(behind as usize)) });
    }
    // The digits before the point; none or fewer where the number is below 1.
    let before = whole.len() as i64 + exponent - (digits.len() - significant.len()) as i64;
    if before > MOST_BEFORE {
        return Err(overflow());
    }
    let mut out = String::from(if negative { "-" } else { "" });
    let split = usize::try_from(before).unwrap_or(0).min(significant.len());
    match before {
        1.. => {
            out.push_str(&significant[..split]);
            out.extend(std::iter::repeat_n('0', before as usize - split));
        }
        _ => out.push('0'),
    }
    if behind > 0 {
        out.push('.');
        out.extend(std::iter::repeat_n('0', usize::try_from(-before).unwrap_or(0)));
        out.push_str(&significant[split..]);
    }
    Ok(out)
}

/// Whether zeros stand at the end of the fraction.
pub(super) fn has_zeros(plain: &str) -> bool {
    plain.contains('.') && plain.ends_with('0')
}

/// Bytes that compare as the numbers do: the sign, where the first digit stands, the digits.
pub(super) fn write_key(out: &mut Vec<u8>, plain: &str) {
    let (negative, rest) = match plain.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, plain),
    };
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let digits: String = [whole, fraction].concat();
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        out.push(2);
        return;
    }
    let before = whole.len() as i32 - (digits.len() - significant.len()) as i32;
    let start = out.len();
    out.push(3);
    out.extend_from_slice(&(before as u32 ^ 1 << 31).to_be_bytes());
    out.extend(significant.trim_end_matches('0').bytes());
    out.push(0);
    if negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        out[start] = 1;
    }
}
