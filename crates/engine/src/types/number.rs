//! Text forms of integers and of double precision.
use super::style::Style;
use super::trim;
use crate::error::{EngineError, Result};
use std::fmt::{self, Write};

pub(super) fn out_of_range(text: &str, type_name: &str) -> EngineError {
    EngineError::new("22003", format!("value \"{text}\" is out of range for type {type_name}"))
}

/// Decimal digits, one sign, whitespace around. (Underscores and other bases came with PostgreSQL 16.)
/// `limit`: the greatest value; the least is one below its negative.
pub(super) fn parse_int(text: &str, type_name: &'static str, limit: i64) -> Result<i64> {
    let body = trim(text);
    let (negative, digits) = match body.as_bytes().first() {
        Some(b'-') => (true, &body[1..]),
        Some(b'+') => (false, &body[1..]),
        _ => (false, body),
    };
    let most = i128::from(limit) + i128::from(negative);
    let mut value = 0i128;
    for c in digits.chars() {
        let digit = c.to_digit(10).ok_or_else(|| EngineError::invalid_text(type_name, text))?;
        value = value * 10 + i128::from(digit);
        if value > most {
            return Err(out_of_range(text, type_name));
        }
    }
    if digits.is_empty() {
        return Err(EngineError::invalid_text(type_name, text));
    }
    Ok(if negative { -value } else { value } as i64)
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

/// The shortest digits that read back as the same value: plain for exponents -4 to 14, else scientific with two
/// exponent digits.
pub(super) fn write_float(f: &mut fmt::Formatter<'_>, v: f64) -> fmt::Result {
    if let Some(fewer) = Style::current().rounded.filter(|_| v.is_finite()) {
        return write_rounded(f, v, 15 - i32::from(fewer));
    }
    let (bits, hidden) = (v.to_bits(), 1 << 52);
    let (mantissa, exponent) = (bits & (hidden - 1) | hidden, (bits >> 52 & 0x7ff) as i32 - 1075);
    let mut shortest = format!("{v:e}");
    let mut digits = shortest.split('e').next().map_or(0, |d| d.bytes().filter(u8::is_ascii_digit).count());
    while v.is_finite() && (is_middle(&shortest, mantissa, exponent) || shortest.parse() != Ok(v)) {
        // So many behind the point: one more than before.
        shortest = format!("{v:.digits$e}");
        digits += 1;
    }
    let even = if digits < 15 { None } else { even_of_two(&shortest, v, |text| text.parse() == Ok(v)) };
    write_digits(f, v, &even.unwrap_or(shortest), 15)
}

/// As [`write_float`], with plain exponents up to 5.
pub(super) fn write_float4(f: &mut fmt::Formatter<'_>, v: f32) -> fmt::Result {
    if let Some(fewer) = Style::current().rounded.filter(|_| v.is_finite()) {
        return write_rounded(f, v.into(), 6 - i32::from(fewer));
    }
    let (bits, hidden) = (v.to_bits(), 1 << 23);
    let (mantissa, exponent) = (bits & (hidden - 1) | hidden, (bits >> 23 & 0xff) as i32 - 150);
    let mut shortest = format!("{v:e}");
    let mut digits = shortest.split('e').next().map_or(0, |d| d.bytes().filter(u8::is_ascii_digit).count());
    while v.is_finite() && (is_middle(&shortest, mantissa.into(), exponent) || shortest.parse() != Ok(v)) {
        shortest = format!("{v:.digits$e}");
        digits += 1;
    }
    let even = if digits < 6 { None } else { even_of_two(&shortest, v.into(), |text| text.parse() == Ok(v)) };
    write_digits(f, v.into(), &even.unwrap_or(shortest), 6)
}

/// As C's `%.*g`: at most so many digits, and at least one; zeros at the end are left out.
fn write_rounded(f: &mut fmt::Formatter<'_>, v: f64, digits: i32) -> fmt::Result {
    let digits = digits.max(1);
    let scientific = format!("{v:.*e}", digits as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("{:e} writes an exponent");
    let exponent: i32 = exponent.parse().expect("{:e} writes a decimal exponent");
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..digits).contains(&exponent) {
        return f.write_str(&trimmed(&format!("{v:.*}", (digits - 1 - exponent) as usize)));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(f, "{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
}

/// Whether digits (`1.5e20`) are exactly in the middle between `mantissa * 2^exponent` and a neighbour of it. They
/// would be read as the even one of the two, but PostgreSQL takes only what is nearer for a number's text. (Only whole
/// numbers beyond the mantissa's bits can be such digits: in others they are more than a shortest text has.)
fn is_middle(digits: &str, mantissa: u64, exponent: i32) -> bool {
    let Some((written, power)) = digits.split_once('e') else { return false };
    let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
    let power = power.parse().unwrap_or(0) - fraction.len() as i32;
    let Ok(number) = [whole.trim_start_matches('-'), fraction].concat().parse::<u128>() else { return false };
    // number * 10^power = odd * 2^twos. No odd number here is divisible by a greater power of 5.
    if exponent < 1 || !(0..=24).contains(&power) || number == 0 || number >= 10u128.pow(17) {
        return false;
    }
    let fives = number * 5u128.pow(power as u32);
    let (odd, twos) = (fives >> fives.trailing_zeros(), fives.trailing_zeros() as i32 + power);
    let twice = u128::from(mantissa) * 2;
    // Below a power of two the neighbour is nearer.
    let beside = twos == exponent - 1 && (odd == twice + 1 || odd == twice - 1);
    beside || (twos == exponent - 2 && odd == twice * 2 - 1 && mantissa.is_power_of_two())
}

/// Of two shortest texts that are as near to the number (`123456789012345.125`), PostgreSQL takes the one whose last
/// digit is even, and Rust the greater one. `None`: there are no two, or it is the even one already. `is_same`: a text
/// reads back as the number.
fn even_of_two(shortest: &str, v: f64, is_same: impl Fn(&str) -> bool) -> Option<String> {
    fn digits(text: &str) -> String {
        text.split('e').next().unwrap_or_default().chars().filter(char::is_ascii_digit).collect()
    }
    let (mantissa, exponent) = shortest.split_once('e')?;
    let last = mantissa.bytes().next_back().filter(|last| last % 2 == 1)?;
    let own = digits(mantissa);
    // All digits of the number: one more than the text has, a 5.
    let middle = digits(&format!("{v:.*e}", own.len()));
    let all = digits(&format!("{v:.*e}", own.len() + 40));
    let below = middle.strip_suffix('5').filter(|_| all.trim_end_matches('0') == middle)?;
    let other = match below == own {
        true if last == b'9' => return None,
        true => last + 1,
        false => last - 1,
    };
    let text = format!("{}{}e{exponent}", &mantissa[..mantissa.len() - 1], char::from(other));
    (is_same(&text) && (below == own || below == digits(&text))).then_some(text)
}

/// `-1.25e-1` without its exponent.
fn without_exponent(mantissa: &str, exponent: i32) -> String {
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits = mantissa.replace('.', "");
    match usize::try_from(exponent + 1) {
        Ok(0) => format!("{sign}0.{digits}"),
        Ok(whole) if whole >= digits.len() => format!("{sign}{digits}{}", "0".repeat(whole - digits.len())),
        Ok(whole) => format!("{sign}{}.{}", &digits[..whole], &digits[whole..]),
        Err(_) => format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize)),
    }
}

fn write_digits(f: &mut fmt::Formatter<'_>, v: f64, scientific: &str, most: i32) -> fmt::Result {
    if v.is_nan() {
        return f.write_str("NaN");
    }
    if v.is_infinite() {
        return f.write_str(if v > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let (mantissa, exponent) = scientific.split_once('e').expect("{:e} writes an exponent");
    let exponent: i32 = exponent.parse().expect("{:e} writes a decimal exponent");
    if (-4..most).contains(&exponent) {
        f.write_str(&without_exponent(mantissa, exponent))
    } else {
        f.write_str(mantissa)?;
        f.write_char('e')?;
        f.write_char(if exponent < 0 { '-' } else { '+' })?;
        write!(f, "{:02}", exponent.abs())
    }
}
