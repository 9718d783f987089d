//! Statements of one shape: their text with the literals taken out, so that a shape is parsed once.
//!
//! 1. What comes out parses as the text itself does, with a parameter for each literal. A text whose tokens are not all
//!    plain (comments, escapes, dollars, several statements) has no shape here.
use crate::parse::lexical::NAME_MAX;
use std::borrow::Cow;

/// Bytes of the longest text that is looked at: a longer one costs more to send than to parse.
const LONGEST: usize = 4096;

/// A literal of a text.
#[derive(Debug, PartialEq)]
pub(crate) enum Literal<'a> {
    Number(&'a str),
    Text(Cow<'a, str>),
}

/// Writes the text to `shape` with `$1`, `$2`, ... for its literals, which it returns.
pub(crate) fn normalise<'a>(sql: &'a str, shape: &mut String) -> Option<Vec<Literal<'a>>> {
    shape.clear();
    let sql = sql.trim_ascii();
    let sql = sql.strip_suffix(';').unwrap_or(sql).trim_ascii_end();
    if sql.len() > LONGEST || sql.is_empty() {
        return None;
    }
    let bytes = sql.as_bytes();
    let mut literals = vec![];
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                at = end_of(bytes, at, |b| b.is_ascii_alphanumeric() || b == b'_');
                // E'...' and its like; identifiers with a dollar or beyond ASCII, or that are cut.
                if bytes.get(at).is_some_and(|b| matches!(b, b'\'' | b'$' | b'&' | 128..)) || at - start > NAME_MAX {
                    return None;
                }
                shape.push_str(&sql[start..at]);
            }
            b'0'..=b'9' => {
                at = number(bytes, at)?;
                literals.push(Literal::Number(&sql[start..at]));
                placeholder(shape, literals.len());
            }
            b'\'' => {
                let (end, text) = string(sql, at)?;
                at = end;
                literals.push(Literal::Text(text));
                placeholder(shape, literals.len());
            }
            b'"' => {
                at = end_of(bytes, at + 1, |b| b != b'"' && b.is_ascii()) + 1;
                let quoted = bytes.get(at - 1) == Some(&b'"') && bytes.get(at) != Some(&b'"');
                if !quoted || at - start - 2 > NAME_MAX {
                    return None;
                }
                shape.push_str(&sql[start..at]);
            }
            b'-' if bytes.get(at + 1) == Some(&b'-') => return None,
            b'/' if bytes.get(at + 1) == Some(&b'*') => return None,
            // A number may begin with its point.
            b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => return None,
            b' ' | b'\n' | b'\t' | b'\r' | b'(' | b')' | b',' | b'.' | b'*' | b'=' | b'<' | b'>' | b'+' | b'-'
            | b'/' => {
                shape.push(bytes[at] as char);
                at += 1;
            }
            _ => return None,
        }
    }
    Some(literals)
}

fn placeholder(shape: &mut String, number: usize) {
    use std::fmt::Write;
    write!(shape, "${number}").expect("a string takes what is written");
}

fn end_of(bytes: &[u8], from: usize, part: impl Fn(u8) -> bool) -> usize {
    bytes[from..].iter().position(|b| !part(*b)).map_or(bytes.len(), |n| from + n)
}

/// Digits, perhaps a point and digits; exponents and what runs into a word have no shape.
fn number(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = end_of(bytes, from, |b| b.is_ascii_digit());
    if bytes.get(at) == Some(&b'.') {
        at = end_of(bytes, at + 1, |b| b.is_ascii_digit());
    }
    let next = bytes.get(at);
    (!next.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$' | 128..))).then_some(at)
}

/// The end of a quoted string and what it says.
fn string(sql: &str, from: usize) -> Option<(usize, Cow<'_, str>)> {
    let bytes = sql.as_bytes();
    let mut at = from + 1;
    let mut doubled = false;
    loop {
        at = end_of(bytes, at, |b| b != b'\'' && b != b'\\' && b != 0);
        if bytes.get(at) != Some(&b'\'') {
            return None;
        }
        if bytes.get(at + 1) != Some(&b'\'') {
            break;
        }
        doubled = true;
        at += 2;
    }
    let text = &sql[from + 1..at];
    Some((at + 1, if doubled { Cow::Owned(text.replace("''", "'")) } else { Cow::Borrowed(text) }))
}
