//! The tokens of a text that is read as a time.
use super::{Bad, Read, words};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// `12`, `.5`, `1.5`
    Number,
    /// `jan`
    Text,
    /// `1999-01-08`, `europe/berlin`
    Date,
    /// `4:05`
    Time,
    /// `+02`
    Zone,
    /// `-infinity`
    Special,
}

#[derive(Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// In small letters.
    pub(super) text: String,
}

/// As many tokens, and bytes of all of them, as PostgreSQL takes.
const MOST: usize = 25;
const MOST_BYTES: usize = 128;

pub(super) fn of(text: &str) -> Read<Vec<Token>> {
    let (mut tokens, mut bytes) = (vec![], 0);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kind, length) = match first {
            c if c.is_ascii_whitespace() || c == '\x0b' => {
                rest = &rest[1..];
                continue;
            }
            '0'..='9' => digits_first(rest),
            '.' => (Kind::Number, 1 + run(&rest[1..], |c| c.is_ascii_digit())),
            'a'..='z' | 'A'..='Z' => word_first(rest),
            '+' | '-' => {
                let token = sign_first(rest)?;
                bytes += token.text.len() + 1;
                rest = &rest[token.taken..];
                tokens.push(Token { kind: token.kind, text: token.text });
                if tokens.len() > MOST || bytes > MOST_BYTES {
                    return Err(Bad::Format);
                }
                continue;
            }
            c if c.is_ascii_punctuation() => {
                rest = &rest[1..];
                continue;
            }
            _ => return Err(Bad::Format),
        };
        bytes += length + 1;
        tokens.push(Token { kind, text: rest[..length].to_ascii_lowercase() });
        if tokens.len() > MOST || bytes > MOST_BYTES {
            return Err(Bad::Format);
        }
        rest = &rest[length..];
    }
    Ok(tokens)
}

/// Bytes at the front that are of a kind.
fn run(text: &str, of: impl Fn(char) -> bool) -> usize {
    text.find(|c: char| !of(c)).unwrap_or(text.len())
}

fn digits_first(text: &str) -> (Kind, usize) {
    let whole = run(text, |c| c.is_ascii_digit());
    match text[whole..].chars().next() {
        Some(':') => (Kind::Time, whole + run(&text[whole..], |c| c.is_ascii_digit() || matches!(c, ':' | '.'))),
        Some(mark @ ('-' | '/' | '.')) => {
            let behind = &text[whole + 1..];
            let second = run(behind, |c| c.is_ascii_digit());
            let end = whole + 1 + second;
            match behind[second..].chars().next() {
                _ if second == 0 => (Kind::Date, whole + 1 + run(behind, |c| c.is_ascii_alphanumeric() || c == mark)),
                Some(next) if next == mark => {
                    (Kind::Date, end + run(&text[end..], |c| c.is_ascii_digit() || c == mark))
                }
                _ if mark == '.' => (Kind::Number, end),
                _ => (Kind::Date, end),
            }
        }
        _ => (Kind::Number, whole),
    }
}

/// A word; one with signs or digits in it may be a date or a zone's name.
fn word_first(text: &str) -> (Kind, usize) {
    let length = run(text, |c| c.is_ascii_alphabetic());
    let more = match text[length..].chars().next() {
        Some('-' | '/' | '.') => true,
        Some(c) if c == '+' || c.is_ascii_digit() => words::of(&text[..length].to_ascii_lowercase()).is_none(),
        _ => false,
    };
    if !more {
        return (Kind::Text, length);
    }
    let of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '/' | '_' | '.' | ':');
    (Kind::Date, run(text, of_name))
}

struct Signed {
    kind: Kind,
    text: String,
    taken: usize,
}

fn sign_first(text: &str) -> Read<Signed> {
    let blanks = run(&text[1..], |c| c.is_ascii_whitespace() || c == '\x0b');
    let behind = &text[1 + blanks..];
    let (kind, length) = match behind.chars().next() {
        Some('0'..='9') => (Kind::Zone, run(behind, |c| c.is_ascii_digit() || matches!(c, ':' | '.' | '-'))),
        Some(c) if c.is_ascii_alphabetic() => (Kind::Special, run(behind, |c| c.is_ascii_alphabetic())),
        _ => return Err(Bad::Format),
    };
    let token = format!("{}{}", &text[..1], behind[..length].to_ascii_lowercase());
    Ok(Signed { kind, text: token, taken: 1 + blanks + length })
}
