//! Numeric's binary form: u16 digits, i16 weight of the first (as a power of 10,000), u16 sign, u16 scale; then the
//! digits in base 10,000. What is not finite is in the sign alone.
use bytes::{Buf, BufMut, BytesMut};
use terrace_engine::types::Decimal;

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xc000;
const INFINITY: u16 = 0xd000;
const MINUS_INFINITY: u16 = 0xf000;

pub(crate) fn binary(out: &mut BytesMut, number: &Decimal) {
    let sign = match number {
        Decimal::Finite(_) => return finite(out, number),
        Decimal::NaN => NAN,
        Decimal::Infinity => INFINITY,
        Decimal::MinusInfinity => MINUS_INFINITY,
    };
    // PostgreSQL sends the scale of infinities so.
    let scale = if sign == NAN { 0 } else { 0x20 };
    [0, 0, sign, scale].into_iter().for_each(|part| out.put_u16(part));
}

fn finite(out: &mut BytesMut, number: &Decimal) {
    let text = number.to_string();
    let (whole, fraction) = text.trim_start_matches('-').split_once('.').unwrap_or((text.trim_start_matches('-'), ""));
    // Groups of four, counted from the point in both directions.
    let before = whole.len().div_ceil(4) * 4;
    let after = fraction.len().div_ceil(4) * 4;
    let padded = format!("{whole:0>before$}{fraction:0<after$}");
    let group = |g: &[u8]| g.iter().fold(0u16, |v, b| v * 10 + u16::from(b - b'0'));
    let mut digits: Vec<u16> = padded.as_bytes().chunks(4).map(group).collect();
    let mut weight = (before / 4) as i16 - 1;
    while digits.last() == Some(&0) {
        digits.pop();
    }
    let zeros = digits.iter().take_while(|d| **d == 0).count();
    digits.drain(..zeros);
    weight -= zeros as i16;
    out.put_u16(digits.len() as u16);
    out.put_i16(if digits.is_empty() { 0 } else { weight });
    out.put_u16(if number.is_negative() { NEGATIVE } else { 0 });
    out.put_u16(number.scale().unwrap_or(0) as u16);
    digits.into_iter().for_each(|d| out.put_u16(d));
}

/// Its text; `None` where the bytes are no number.
pub(crate) fn read(mut bytes: &[u8]) -> Option<String> {
    if bytes.len() < 8 {
        return None;
    }
    let (count, weight, sign, scale) = (bytes.get_u16(), bytes.get_i16(), bytes.get_u16(), bytes.get_u16());
    match sign {
        NAN => return Some("NaN".to_owned()),
        INFINITY => return Some("Infinity".to_owned()),
        MINUS_INFINITY => return Some("-Infinity".to_owned()),
        _ => {}
    }
    if bytes.len() != usize::from(count) * 2 || !matches!(sign, 0 | NEGATIVE) || scale > 0x3fff {
        return None;
    }
    let digits: Vec<u16> = bytes.chunks(2).map(|d| u16::from_be_bytes([d[0], d[1]])).collect();
    if digits.iter().any(|d| *d > 9999) {
        return None;
    }
    let at = |power: i32| {
        let position = i32::from(weight) - power;
        usize::try_from(position).ok().and_then(|i| digits.get(i)).copied().unwrap_or(0)
    };
    let mut out = String::from(if sign == NEGATIVE { "-" } else { "" });
    for power in (0..=i32::from(weight).max(0)).rev() {
        out.push_str(&format!("{:04}", at(power)));
    }
    let whole_start = usize::from(sign == NEGATIVE);
    let zeros = out[whole_start..].bytes().take_while(|b| *b == b'0').count().min(out.len() - whole_start - 1);
    out.replace_range(whole_start..whole_start + zeros, "");
    if scale > 0 {
        let mut fraction = String::new();
        for power in 1..=i32::from(scale.div_ceil(4)) {
            fraction.push_str(&format!("{:04}", at(-power)));
        }
        fraction.truncate(scale.into());
        out.push('.');
        out.push_str(&fraction);
    }
    Some(out)
}
