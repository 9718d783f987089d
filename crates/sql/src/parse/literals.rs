//! How many digits a number has: its type is a numeric of so many. One of more than 38 is a plain numeric.

/// Precision and scale of a number; `None` where it has more than 38 digits.
pub(crate) fn digits(text: &str) -> Option<(usize, usize)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let scale = (fraction.len() as i64 - exponent).max(0);
    let leading = whole.trim_start_matches('0').len() as i64;
    let before = match leading {
        0 => {
            let zeros = fraction.len() - fraction.trim_start_matches('0').len();
            if zeros == fraction.len() { 0 } else { (exponent - zeros as i64).max(0) }
        }
        digits => (digits + exponent).max(0),
    };
    let precision = (before + scale).max(1);
    (precision <= 38).then_some((precision as usize, scale as usize))
}

#[cfg(test)]
mod tests;
