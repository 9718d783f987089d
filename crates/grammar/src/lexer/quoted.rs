//! Strings in quotes: where they end, and what they say.
//!
//! Invariant: what [`quoted_end`] accepts, [`decode`] reads without an error.

use super::space::continued;
use super::{is_name_part, is_name_start};
use crate::error::{Result, SyntaxError};

/// Bytes of a dollar quote's tag with its dollars.
pub(super) fn dollar_tag(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    if bytes.get(at).is_some_and(|&byte| is_name_start(byte)) {
        while bytes.get(at).is_some_and(|&byte| is_name_part(byte) && byte != b'$') {
            at += 1;
        }
    }
    (bytes.get(at) == Some(&b'$')).then_some(at + 1 - start)
}

/// The end of the string whose first quote stands at a place. None: it does not end.
pub(super) fn quoted_end(sql: &str, quote: usize, escapes: bool) -> Result<Option<usize>> {
    let bytes = sql.as_bytes();
    let (mut at, mut escaped) = (quote + 1, false);
    loop {
        match bytes.get(at) {
            None => return Ok(None),
            Some(b'\'') if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            Some(b'\'') => match continued(bytes, at + 1) {
                Some(next) => at = next + 1,
                None => break,
            },
            Some(b'\\') if escapes => {
                escaped = true;
                at += 2;
            }
            Some(_) => at += 1,
        }
    }
    if escaped {
        unescape(sql, quote, at + 1)?;
    }
    Ok(Some(at + 1))
}

/// What a string says. Its first quote stands at `start`, its last one before `end`.
pub(crate) fn decode(sql: &str, start: usize, end: usize, escapes: bool) -> Result<String> {
    let inside = &sql[start + 1..end - 1];
    if !inside.bytes().any(|byte| byte == b'\'' || (escapes && byte == b'\\')) {
        return Ok(inside.to_owned());
    }
    if escapes {
        return unescape(sql, start, end);
    }
    let (mut text, mut at) = (String::with_capacity(inside.len()), start + 1);
    while let Some(length) = sql[at..end].find('\'') {
        text.push_str(&sql[at..at + length]);
        match after_quote(sql.as_bytes(), at + length, end) {
            Some((next, quote)) => {
                text.extend(quote);
                at = next;
            }
            None => break,
        }
    }
    Ok(text)
}

/// Where a string goes on behind a quote in it, and the quote itself where it is doubled. None: it ends there.
fn after_quote(bytes: &[u8], quote: usize, end: usize) -> Option<(usize, Option<char>)> {
    match () {
        () if quote + 1 == end => None,
        () if bytes.get(quote + 1) == Some(&b'\'') => Some((quote + 2, Some('\''))),
        () => continued(bytes, quote + 1).map(|next| (next + 1, None)),
    }
}

/// What a string with backslashes says.
fn unescape(sql: &str, start: usize, end: usize) -> Result<String> {
    let bytes = sql.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(end - start), start + 1);
    let mut first_half = None;
    loop {
        let byte = bytes[at];
        if first_half.is_some() && !matches!(bytes[at..], [b'\\', b'u' | b'U', ..]) {
            return Err(pair_error(sql, at, at + 1));
        }
        match byte {
            b'\'' => match after_quote(bytes, at, end) {
                Some((next, quote)) => {
                    out.extend(quote.map(|_| b'\''));
                    at = next;
                }
                None => break,
            },
            b'\\' => at = escape(sql, at, &mut out, &mut first_half)?,
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    if let Some(zero) = out.iter().position(|&byte| byte == 0) {
        return Err(encoding_error(&out[zero..=zero]));
    }
    String::from_utf8(out).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let rest = &error.as_bytes()[good..];
        let bad = match rest[0] {
            0xf0..=0xf7 => 4,
            0xe0..=0xef => 3,
            0xc0..=0xdf => 2,
            _ => 1,
        };
        encoding_error(&rest[..bad.min(rest.len())])
    })
}

/// Reads one escape; answers where the string goes on.
fn escape(sql: &str, at: usize, out: &mut Vec<u8>, first_half: &mut Option<u32>) -> Result<usize> {
    let bytes = sql.as_bytes();
    let digits = |from: usize, most: usize, radix: u32| {
        let digits = bytes[from..].iter().take(most).take_while(|&&byte| (byte as char).is_digit(radix)).count();
        (digits > 0).then(|| (u32::from_str_radix(&sql[from..from + digits], radix).expect("digits"), from + digits))
    };
    let plain = |out: &mut Vec<u8>, byte: u8| {
        out.push(byte);
        Ok(at + 2)
    };
    match bytes[at + 1] {
        b'b' => plain(out, 8),
        b'f' => plain(out, 12),
        b'n' => plain(out, b'\n'),
        b'r' => plain(out, b'\r'),
        b't' => plain(out, b'\t'),
        b'0'..=b'7' => {
            let (value, next) = digits(at + 1, 3, 8).expect("there is one digit");
            // As in C, more than a byte holds is cut.
            out.push(value as u8);
            Ok(next)
        }
        b'x' => match digits(at + 2, 2, 16) {
            Some((value, next)) => {
                out.push(value as u8);
                Ok(next)
            }
            None => plain(out, b'x'),
        },
        letter @ (b'u' | b'U') => {
            let length = if letter == b'u' { 4 } else { 8 };
            match digits(at + 2, length, 16) {
                Some((value, next)) if next == at + 2 + length => {
                    unicode(sql, at, next, value, out, first_half)?;
                    Ok(next)
                }
                _ => Err(SyntaxError::with_state("22025", "invalid Unicode escape", at as u32)
                    .hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX.")),
            }
        }
        other => plain(out, other),
    }
}

/// Takes a code point, or half of one.
fn unicode(
    sql: &str,
    at: usize,
    end: usize,
    value: u32,
    out: &mut Vec<u8>,
    first_half: &mut Option<u32>,
) -> Result<()> {
    let value = match (first_half.take(), value) {
        (Some(high), 0xdc00..=0xdfff) => 0x10000 + ((high & 0x3ff) << 10) + (value & 0x3ff),
        (Some(_), _) => return Err(pair_error(sql, at, end)),
        (None, 0xd800..=0xdbff) => {
            *first_half = Some(value);
            return Ok(());
        }
        (None, 0xdc00..=0xdfff) => return Err(pair_error(sql, at, end)),
        (None, value) => value,
    };
    match char::from_u32(value).filter(|character| *character != '\0') {
        Some(character) => {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            Ok(())
        }
        None => Err(SyntaxError::near("invalid Unicode escape value", &sql[at..end], at as u32)),
    }
}

fn pair_error(sql: &str, at: usize, end: usize) -> Box<SyntaxError> {
    let end = (end..).find(|&end| sql.is_char_boundary(end)).expect("the end of a text is a boundary");
    SyntaxError::near("invalid Unicode surrogate pair", &sql[at..end], at as u32)
}

/// The bytes make no character.
fn encoding_error(bad: &[u8]) -> Box<SyntaxError> {
    let bytes: Vec<String> = bad.iter().map(|byte| format!("0x{byte:02x}")).collect();
    let message = format!("invalid byte sequence for encoding \"UTF8\": {}", bytes.join(" "));
    let mut error = SyntaxError::with_state("22021", message, 0);
    error.at = None;
    error
}

/// What a string or a name with the escapes of `U&` says. `inside` stands at `start` in the text; `quote` is doubled in
/// it.
pub(crate) fn decode_unicode(inside: &str, start: usize, mark: char, quote: char) -> Result<String> {
    let mut text = String::with_capacity(inside.len());
    let mut first_half: Option<u32> = None;
    let mut rest = inside.char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        let place = (start + at) as u32;
        if character == mark && inside[at + mark.len_utf8()..].starts_with(mark) {
            rest.next();
        } else if character == mark {
            let (value, length) = unicode_digits(&inside[at + mark.len_utf8()..]).ok_or_else(|| {
                SyntaxError::new("invalid Unicode escape", place).hint("Unicode escapes must be \\XXXX or \\+XXXXXX.")
            })?;
            rest.nth(length - 1);
            let value = match (first_half.take(), value) {
                (Some(high), 0xdc00..=0xdfff) => 0x10000 + ((high & 0x3ff) << 10) + (value & 0x3ff),
                (None, 0xd800..=0xdbff) => {
                    first_half = Some(value);
                    continue;
                }
                (Some(_), _) | (None, 0xdc00..=0xdfff) => {
                    return Err(SyntaxError::new("invalid Unicode surrogate pair", place));
                }
                (None, value) => value,
            };
            match char::from_u32(value).filter(|character| *character != '\0') {
                Some(character) => text.push(character),
                None => return Err(SyntaxError::new("invalid Unicode escape value", place)),
            }
            continue;
        } else if character == quote {
            rest.next_if(|(_, next)| *next == quote);
        }
        if first_half.is_some() {
            return Err(SyntaxError::new("invalid Unicode surrogate pair", place));
        }
        text.push(character);
    }
    match first_half {
        Some(_) => Err(SyntaxError::new("invalid Unicode surrogate pair", (start + inside.len()) as u32)),
        None => Ok(text),
    }
}

/// The value of `XXXX` or `+XXXXXX`, and how many characters it has.
fn unicode_digits(text: &str) -> Option<(u32, usize)> {
    let (from, length) = if text.starts_with('+') { (1, 7) } else { (0, 4) };
    let digits = text.get(from..length)?;
    let all = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    all.then(|| (u32::from_str_radix(digits, 16).expect("they are digits"), length))
}

/// A `U&` string of several parts as one, for [`decode_unicode`]: the parts are joined, doubled quotes are kept.
pub(crate) fn joined(sql: &str, start: usize, end: usize) -> String {
    let (mut text, mut at) = (String::new(), start + 1);
    while let Some(length) = sql[at..end].find('\'') {
        text.push_str(&sql[at..at + length]);
        match after_quote(sql.as_bytes(), at + length, end) {
            Some((next, quote)) => {
                text.push_str(if quote.is_some() { "''" } else { "" });
                at = next;
            }
            None => break,
        }
    }
    text
}
