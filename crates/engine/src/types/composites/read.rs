//! The text of a row to the texts of its fields.
//!
//! 1. Blanks around the parentheses do not count, those within them do. A field of no characters at all is NULL, one
//!    of two quotes is an empty text. A backslash takes the next character as it is, two quotes within quotes are one.
use crate::error::{EngineError, Result};
use std::iter::Peekable;
use std::str::Chars;

/// The fields of a row's text, which are so many; `None`: NULL. 22P02 where it is none.
pub fn fields(text: &str, count: usize) -> Result<Vec<Option<String>>> {
    let malformed = |detail: &str| {
        EngineError::new("22P02", format!("malformed record literal: \"{text}\"")).with_detail(detail.to_owned())
    };
    let blank = [' ', '\t', '\n', '\r', '\u{b}', '\u{c}'];
    let Some(body) = text.trim_start_matches(blank).strip_prefix('(') else {
        return Err(malformed("Missing left parenthesis."));
    };
    let mut chars = body.chars().peekable();
    let mut read = Vec::with_capacity(count.min(64));
    while read.len() < count {
        if !read.is_empty() && chars.next_if_eq(&',').is_none() {
            return Err(malformed("Too few columns."));
        }
        read.push(match chars.peek() {
            Some(',' | ')') => None,
            _ => Some(field(&mut chars).ok_or_else(|| malformed("Unexpected end of input."))?),
        });
    }
    if chars.next() != Some(')') {
        return Err(malformed("Too many columns."));
    }
    match chars.all(|c| blank.contains(&c)) {
        true => Ok(read),
        false => Err(malformed("Junk after right parenthesis.")),
    }
}

/// A field up to what ends it; `None`: nothing does.
fn field(chars: &mut Peekable<Chars<'_>>) -> Option<String> {
    let (mut field, mut quoted) = (String::new(), false);
    loop {
        match chars.peek()? {
            ',' | ')' if !quoted => return Some(field),
            '\\' => {
                chars.next();
                field.push(chars.next()?);
            }
            '"' => {
                chars.next();
                match quoted && chars.next_if_eq(&'"').is_some() {
                    true => field.push('"'),
                    false => quoted = !quoted,
                }
            }
            other => {
                field.push(*other);
                chars.next();
            }
        }
    }
}
