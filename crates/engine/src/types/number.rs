//! Text forms of integers and of double precision.
use super::trim;
use crate::error::{EngineError, Result};
use std::fmt::{self, Write};

pub(super) fn out_of_range(text: &str, type_name: &str) -> EngineError {
    EngineError::new("22003", format!("value \"{text}\" is out of range for type {type_name}"))
}

/// Decimal, or `0x`, `0o`, `0b`; single underscores between digits; one sign; whitespace around.
/// `limit`: the greatest value; the least is one below its negative.
pub(super) fn parse_int(text: &str, type_name: &'static str, limit: i64) -> Result<i64> {
    let bad = || EngineError::invalid_text(type_name, text);
    let body = trim(text);
    let (negative, digits) = match body.as_bytes().first() {
        Some(b'-') => (true, &body[1..]),
        Some(b'+') => (false, &body[1..]),
        _ => (false, body),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        _ => (10, digits),
    };
    let (mut value, mut after_digit) = (0i128, radix != 10);
    let mut too_big = false;
    for c in digits.chars() {
        match c.to_digit(radix) {
            Some(d) if !too_big => {
                value = value * radix as i128 + d as i128;
                too_big = value > 1 << 64;
                after_digit = true;
            }
            Some(_) => after_digit = true,
            None if c == '_' && after_digit => after_digit = false,
            None => return Err(bad()),
        }
    }
    if digits.is_empty() || !after_digit {
        return Err(bad());
    }
    let signed = if negative { -value } else { value };
    if too_big || signed > limit.into() || signed < -i128::from(limit) - 1 {
        return Err(out_of_range(text, type_name));
    }
    Ok(signed as i64)
}

pub(super) fn parse_float4(text: &str) -> Result<f32> {
    // Rounded once, from the text: through a double it would be rounded twice.
    let wide = parse_named_float(text, "real")?;
    let value: f32 = trim(text).parse().map_err(|_| EngineError::invalid_text("real", text))?;
    if wide.is_nan() {
        return Ok(f32::NAN);
    }
    if (value.is_infinite() && wide.is_finite()) || (value == 0.0 && wide != 0.0) {
        return Err(EngineError::new("22003", format!("\"{}\" is out of range for type real", trim(text))));
    }
    Ok(value)
}

pub(super) fn parse_float(text: &str) -> Result<f64> {
    parse_named_float(text, "double precision")
}

fn parse_named_float(text: &str, name: &str) -> Result<f64> {
    let body = trim(text);
    let unsigned = body.strip_prefix(['-', '+']).unwrap_or(body);
    let word = unsigned.to_ascii_lowercase();
    let named = matches!(word.as_str(), "inf" | "infinity" | "nan");
    if !named && !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(EngineError::invalid_text(name, text));
    }
    let value: f64 = body.parse().map_err(|_| EngineError::invalid_text(name, text))?;
    if named {
        // One NaN: the sign of a NaN means nothing and would survive in the stored bits.
        return Ok(if value.is_nan() { f64::NAN } else { value });
    }
    let mantissa = word.split('e').next().unwrap_or_default();
    let vanished = value == 0.0 && mantissa.bytes().any(|b| (b'1'..=b'9').contains(&b));
    if value.is_infinite() || vanished {
        return Err(EngineError::new("22003", format!("\"{body}\" is out of range for type {name}")));
    }
    Ok(value)
}

/// The shortest digits that read back as the same value: plain for exponents -4 to 14, else scientific with two exponent digits.
pub(super) fn write_float(f: &mut fmt::Formatter<'_>, v: f64) -> fmt::Result {
    write_digits(f, v, format!("{v:e}"), v.to_string(), 15)
}

/// As [`write_float`], with plain exponents up to 5.
pub(super) fn write_float4(f: &mut fmt::Formatter<'_>, v: f32) -> fmt::Result {
    write_digits(f, v.into(), format!("{v:e}"), v.to_string(), 6)
}

fn write_digits(f: &mut fmt::Formatter<'_>, v: f64, scientific: String, plain: String, most: i32) -> fmt::Result {
    if v.is_nan() {
        return f.write_str("NaN");
    }
    if v.is_infinite() {
        return f.write_str(if v > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let (mantissa, exponent) = scientific.split_once('e').expect("{:e} writes an exponent");
    let exponent: i32 = exponent.parse().expect("{:e} writes a decimal exponent");
    if (-4..most).contains(&exponent) {
        // Rust's plain form is the shortest round trip too, and without an exponent.
        f.write_str(&plain)
    } else {
        f.write_str(mantissa)?;
        f.write_char('e')?;
        f.write_char(if exponent < 0 { '-' } else { '+' })?;
        write!(f, "{:02}", exponent.abs())
    }
}
