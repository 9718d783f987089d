//! Texts without their literals: statements that differ in literals only have one shape.
//!
//! Invariants:
//! 1. A shape is told from the tokens alone; the text need not parse.
//! 2. The shape's text has single spaces where the text has white space or comments, and a parameter in place of each
//!    literal, and between what would become one token without them. The parameters go on behind those that the text
//!    has itself.
//! 3. A text and its shape with the literals as parameters mean the same, if the shape parses. (Where PostgreSQL wants
//!    a literal, as in `date '2020-01-01'`, the shape does not parse.)

use crate::lexer::{Kind, Lexer, Options, Token, decode};
use std::borrow::Cow;
use std::ops::Range;

/// What a text has besides its shape's text.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape<'s> {
    /// In the order of their parameters.
    pub literals: Vec<ShapeLiteral<'s>>,
    /// The highest parameter of the text itself: `$3` is 3.
    pub parameters: u32,
    /// How many statements the text has; empty ones do not count.
    pub statements: u32,
    /// The text was read to its end: neither is there anything in it that cannot be read, nor is it too long.
    pub whole: bool,
}

/// A literal and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeLiteral<'s> {
    pub kind: ShapeKind,
    pub range: Range<usize>,
    /// The digits of a number; what a string says.
    pub value: Cow<'s, str>,
}

/// The kinds of literals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ShapeKind {
    Integer,
    /// With a point or an exponent.
    Number,
    Text,
    /// A string of bits, or one with escapes of Unicode. Its value is the text of the token.
    Other,
}

/// Writes a text's shape to `out`, about `most` bytes of it.
pub fn shape<'s>(sql: &'s str, options: Options, most: usize, out: &mut String) -> Shape<'s> {
    out.clear();
    out.reserve(sql.len().min(most));
    let parameters = if sql.contains('$') { highest_parameter(sql, options) } else { 0 };
    let mut shape = Shape { literals: Vec::new(), parameters, statements: 0, whole: false };
    let lexer = Lexer::without_keywords(sql, options);
    let (mut end, mut empty) = (0, true);
    loop {
        let Ok(token) = lexer.next(end) else { return shape };
        let start = token.start as usize;
        if token.kind == Kind::End {
            shape.whole = true;
            return shape;
        }
        if out.len() >= most {
            return shape;
        }
        let literal = literal(sql, token);
        let first = if literal.is_some() { '$' } else { sql[start..].chars().next().unwrap_or(' ') };
        let glued = is_of_word(first) && out.chars().next_back().is_some_and(is_of_word);
        if (start > end || glued) && !out.is_empty() {
            out.push(' ');
        }
        end = token.end as usize;
        if token.kind == Kind::Semicolon {
            empty = true;
        } else if std::mem::take(&mut empty) {
            shape.statements += 1;
        }
        match literal {
            None => out.push_str(&sql[start..end]),
            Some(literal) => {
                shape.literals.push(literal);
                placeholder(out, u64::from(parameters) + shape.literals.len() as u64);
            }
        }
    }
}

fn placeholder(out: &mut String, number: u64) {
    use std::fmt::Write;
    out.push('$');
    match number {
        0..=9 => out.push((b'0' + number as u8) as char),
        _ => write!(out, "{number}").expect("a string takes what is written"),
    }
}

/// Whether a character goes on with the name or the parameter before it: `a$'b'` is no name `a$$1`.
fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii()
}

/// The literal that a token is.
fn literal<'s>(sql: &'s str, token: Token) -> Option<ShapeLiteral<'s>> {
    let range = token.start as usize..token.end as usize;
    let text = &sql[range.clone()];
    let decoded = |start: usize, escapes| decode(sql, start, range.end, escapes).map(Cow::Owned);
    let (kind, value) = match token.kind {
        Kind::Integer => (ShapeKind::Integer, Cow::Borrowed(text)),
        Kind::Number => (ShapeKind::Number, Cow::Borrowed(text)),
        Kind::Text => match text[1..text.len() - 1].contains('\'') {
            false => (ShapeKind::Text, Cow::Borrowed(&text[1..text.len() - 1])),
            true => (ShapeKind::Text, decoded(range.start, false).ok()?),
        },
        Kind::EscapeText => {
            let marked = usize::from(!text.starts_with('\''));
            (ShapeKind::Text, decoded(range.start + marked, true).ok()?)
        }
        Kind::DollarText => {
            let tag = text[1..].find('$').expect("a dollar ends the tag") + 2;
            (ShapeKind::Text, Cow::Borrowed(&text[tag..text.len() - tag]))
        }
        Kind::UnicodeText | Kind::Bits | Kind::Hex => (ShapeKind::Other, Cow::Borrowed(text)),
        _ => return None,
    };
    Some(ShapeLiteral { kind, range, value })
}

/// The highest parameter of a text.
fn highest_parameter(sql: &str, options: Options) -> u32 {
    let lexer = Lexer::without_keywords(sql, options);
    let (mut at, mut highest) = (0, 0);
    while let Ok(token) = lexer.next(at) {
        at = token.end as usize;
        match token.kind {
            Kind::End => break,
            Kind::Parameter => {
                let number = sql[token.start as usize + 1..at].parse().unwrap_or(u32::MAX);
                highest = highest.max(number);
            }
            _ => {}
        }
    }
    highest
}
