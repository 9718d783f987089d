//! Text forms of bytea (out: hex; in: hex, or PostgreSQL's older escape form) and of uuid.
use super::style::Style;
use crate::error::{EngineError, Result};
use std::fmt::{self, Write};

fn digit(b: u8) -> Option<u8> {
    char::from(b).to_digit(16).map(|d| d as u8)
}

/// `\x` and pairs of hexadecimal digits, whitespace between pairs; else bytes as they are with `\\` for a backslash and
/// `\ooo`.
pub(super) fn parse(text: &str) -> Result<Vec<u8>> {
    match text.strip_prefix("\\x") {
        Some(hex) => parse_hex(hex),
        None => parse_escaped(text.as_bytes())
            .ok_or_else(|| EngineError::new("22P02", "invalid input syntax for type bytea")),
    }
}

fn parse_hex(hex: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(hex.len() / 2);
    let mut bytes = hex.chars();
    let invalid = |c: char| EngineError::new("22023", format!("invalid hexadecimal digit: \"{c}\""));
    let value = |c: char| c.to_digit(16).map(|d| d as u8).ok_or_else(|| invalid(c));
    while let Some(c) = bytes.next() {
        if matches!(c, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let high = value(c)?;
        let low =
            bytes.next().ok_or_else(|| EngineError::new("22023", "invalid hexadecimal data: odd number of digits"))?;
        out.push(high << 4 | value(low)?);
    }
    Ok(out)
}

fn parse_escaped(mut text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    loop {
        match text {
            [] => return Some(out),
            [b'\\', b'\\', rest @ ..] => {
                out.push(b'\\');
                text = rest;
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', rest @ ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                text = rest;
            }
            [b'\\', ..] => return None,
            [byte, rest @ ..] => {
                out.push(*byte);
                text = rest;
            }
        }
    }
}

pub(super) fn write(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    if Style::current().escaped {
        return bytes.iter().try_for_each(|b| match b {
            b'\\' => f.write_str("\\\\"),
            0x20..0x7f => f.write_char(char::from(*b)),
            other => write!(f, "\\{other:03o}"),
        });
    }
    f.write_str("\\x")?;
    bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))
}

/// 32 hexadecimal digits, hyphens between groups of four, braces around.
pub(super) fn parse_uuid(text: &str) -> Result<u128> {
    let bad = || EngineError::invalid_text("uuid", text);
    let body = match text.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}').ok_or_else(bad)?,
        None => text,
    };
    let (mut value, mut digits, mut after_hyphen) = (0u128, 0, true);
    for b in body.bytes() {
        if b == b'-' && digits % 4 == 0 && !after_hyphen {
            after_hyphen = true;
            continue;
        }
        value = value << 4 | u128::from(digit(b).ok_or_else(bad)?);
        digits += 1;
        after_hyphen = false;
        if digits > 32 {
            return Err(bad());
        }
    }
    if digits == 32 && !after_hyphen { Ok(value) } else { Err(bad()) }
}

pub(super) fn write_uuid(f: &mut fmt::Formatter<'_>, v: u128) -> fmt::Result {
    let hex = format!("{v:032x}");
    write!(f, "{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
