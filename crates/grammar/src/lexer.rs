//! From text to tokens, by PostgreSQL's lexical rules (documentation, "Lexical Structure").
//!
//! Invariants:
//! 1. The ranges of tokens are in order and do not overlap. They are cut between characters.
//! 2. The last token is `End`, or the first one that cannot be read (`Broken`); its error is kept. Whoever reaches it
//!    reports it. PostgreSQL does the same: an error before the broken token comes first.
//! 3. A literal's token holds all its parts: `'a'`, a line's end and `'b'` are one string.

mod quoted;
mod space;

use crate::error::SyntaxError;
use crate::keyword::Keyword;
pub(crate) use quoted::{decode, decode_unicode, joined};
use quoted::{dollar_tag, quoted_end};
pub(crate) use space::skip_space;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name without quotes, or a keyword.
    Word,
    /// `"a"`.
    Quoted,
    /// `U&"a"`.
    UnicodeQuoted,
    Integer,
    /// A number with a point or an exponent.
    Number,
    /// `'a'`.
    Text,
    /// `E'a'`; also `'a'` where a backslash escapes in it.
    EscapeText,
    /// `U&'a'`.
    UnicodeText,
    /// `$$a$$`.
    DollarText,
    /// `B'1'`.
    Bits,
    /// `X'1F'`.
    Hex,
    /// `$1`.
    Parameter,
    /// An operator that has no kind of its own.
    Operator,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    Comma,
    Semicolon,
    Colon,
    Dot,
    Dots,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Caret,
    Less,
    Greater,
    Equal,
    LessEqual,
    GreaterEqual,
    NotEqual,
    /// `::`.
    Typecast,
    /// `:=`.
    ColonEqual,
    /// `=>`.
    Arrow,
    /// A character that begins nothing.
    Other,
    Broken,
    End,
}

/// A token: what it is, and the bytes that it has in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Of a `Word`.
    pub(crate) keyword: Option<Keyword>,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// A text's tokens.
pub(crate) struct Lexed {
    /// At least one.
    pub(crate) tokens: Vec<Token>,
    /// Why the last one is `Broken`.
    pub(crate) error: Option<Box<SyntaxError>>,
}

/// How a text is read.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The setting `standard_conforming_strings`: a backslash is an ordinary character in `'...'`.
    pub standard_conforming_strings: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { standard_conforming_strings: true }
    }
}

/// Bytes of the longest text: places are 32 bits.
const LONGEST: usize = u32::MAX as usize;
/// Bytes of the longest name. Longer operators are refused.
pub(crate) const NAME_MAX: usize = 63;

/// Reads a text to its end, or to what cannot be read.
pub(crate) fn lex(sql: &str, options: Options) -> Lexed {
    let lexer = Lexer::new(sql, options);
    let mut tokens = Vec::with_capacity(sql.len() / 4 + 4);
    let mut at = 0;
    if sql.len() > LONGEST {
        let error = SyntaxError::with_state("54000", "the text of the statement is too long", 0);
        tokens.push(Token { kind: Kind::Broken, keyword: None, start: 0, end: 0 });
        return Lexed { tokens, error: Some(error) };
    }
    loop {
        match lexer.next(at) {
            Ok(token) => {
                tokens.push(token);
                at = token.end as usize;
                if token.kind == Kind::End {
                    return Lexed { tokens, error: None };
                }
            }
            Err(error) => {
                let place = error.at.unwrap_or(at as u32);
                tokens.push(Token { kind: Kind::Broken, keyword: None, start: place, end: place });
                return Lexed { tokens, error: Some(error) };
            }
        }
    }
}

/// What reads a text's tokens.
pub(crate) struct Lexer<'s> {
    sql: &'s str,
    bytes: &'s [u8],
    options: Options,
    /// Keywords are looked for.
    keywords: bool,
}

type Result<T> = crate::error::Result<T>;

pub(crate) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 128
}

pub(crate) fn is_name_part(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

fn is_operator_part(byte: u8) -> bool {
    matches!(
        byte,
        b'~' | b'!'
            | b'@'
            | b'#'
            | b'^'
            | b'&'
            | b'|'
            | b'`'
            | b'?'
            | b'+'
            | b'-'
            | b'*'
            | b'/'
            | b'%'
            | b'<'
            | b'>'
            | b'='
    )
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(sql: &'s str, options: Options) -> Lexer<'s> {
        Lexer { sql, bytes: sql.as_bytes(), options, keywords: true }
    }

    /// For those who do not ask which keyword a word is.
    pub(crate) fn without_keywords(sql: &'s str, options: Options) -> Lexer<'s> {
        Lexer { keywords: false, ..Lexer::new(sql, options) }
    }

    /// The token that begins at or behind a place.
    pub(crate) fn next(&self, at: usize) -> Result<Token> {
        let start = skip_space(self.bytes, at).map_err(|comment| self.unterminated("/* comment", comment))?;
        let Some(&byte) = self.bytes.get(start) else {
            return Ok(token(Kind::End, start, start));
        };
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 128.. => self.word(start, byte),
            b'0'..=b'9' => self.number(start),
            b'.' if self.digit_at(start + 1) => self.number(start),
            b'\'' => {
                let escapes = !self.options.standard_conforming_strings;
                let kind = if escapes { Kind::EscapeText } else { Kind::Text };
                self.string(kind, start, start, escapes, "quoted string")
            }
            b'"' => self.name(Kind::Quoted, start, start),
            b'$' => self.dollar(start),
            b',' => Ok(token(Kind::Comma, start, start + 1)),
            b'(' => Ok(token(Kind::LeftParen, start, start + 1)),
            b')' => Ok(token(Kind::RightParen, start, start + 1)),
            b'[' => Ok(token(Kind::LeftBracket, start, start + 1)),
            b']' => Ok(token(Kind::RightBracket, start, start + 1)),
            b';' => Ok(token(Kind::Semicolon, start, start + 1)),
            b'.' => Ok(self.either(start, b'.', Kind::Dots, Kind::Dot)),
            b':' if self.bytes.get(start + 1) == Some(&b'=') => Ok(token(Kind::ColonEqual, start, start + 2)),
            b':' => Ok(self.either(start, b':', Kind::Typecast, Kind::Colon)),
            byte if is_operator_part(byte) => self.operator(start),
            _ => Ok(token(Kind::Other, start, start + 1)),
        }
    }

    fn either(&self, start: usize, second: u8, two: Kind, one: Kind) -> Token {
        match self.bytes.get(start + 1) == Some(&second) {
            true => token(two, start, start + 2),
            false => token(one, start, start + 1),
        }
    }

    fn digit_at(&self, at: usize) -> bool {
        self.bytes.get(at).is_some_and(u8::is_ascii_digit)
    }

    fn digits(&self, mut at: usize) -> usize {
        while self.digit_at(at) {
            at += 1;
        }
        at
    }

    fn name_end(&self, mut at: usize) -> usize {
        while self.bytes.get(at).is_some_and(|&byte| is_name_part(byte)) {
            at += 1;
        }
        at
    }

    /// A word; or a literal or a name that a letter introduces.
    fn word(&self, start: usize, first: u8) -> Result<Token> {
        let second = self.bytes.get(start + 1).copied();
        match (first, second) {
            (b'e' | b'E', Some(b'\'')) => {
                return self.string(Kind::EscapeText, start, start + 1, true, "quoted string");
            }
            (b'b' | b'B', Some(b'\'')) => {
                return self.string(Kind::Bits, start, start + 1, false, "bit string literal");
            }
            (b'x' | b'X', Some(b'\'')) => {
                return self.string(Kind::Hex, start, start + 1, false, "hexadecimal string literal");
            }
            // N'a' is the type's keyword and a string.
            (b'n' | b'N', Some(b'\'')) => {
                return Ok(Token { keyword: Some(Keyword::Nchar), ..token(Kind::Word, start, start + 1) });
            }
            (b'u' | b'U', Some(b'&')) => match self.bytes.get(start + 2) {
                Some(b'\'') => return self.unicode_string(start),
                Some(b'"') => return self.name(Kind::UnicodeQuoted, start, start + 2),
                _ => {}
            },
            _ => {}
        }
        let end = self.name_end(start + 1);
        let keyword = if self.keywords { Keyword::find(&self.bytes[start..end]) } else { None };
        Ok(Token { keyword, ..token(Kind::Word, start, end) })
    }

    fn unicode_string(&self, start: usize) -> Result<Token> {
        if !self.options.standard_conforming_strings {
            let message = "unsafe use of string constant with Unicode escapes";
            return Err(SyntaxError::with_state("0A000", message, start as u32).detail(
                "String constants with Unicode escapes cannot be used when standard_conforming_strings is off.",
            ));
        }
        self.string(Kind::UnicodeText, start, start + 2, false, "quoted string")
    }

    fn number(&self, start: usize) -> Result<Token> {
        let mut end = self.digits(start);
        let mut kind = Kind::Integer;
        // `1..2` is a number and two points.
        if self.bytes.get(end) == Some(&b'.') && self.bytes.get(end + 1) != Some(&b'.') {
            kind = Kind::Number;
            end = self.digits(end + 1);
        }
        if matches!(self.bytes.get(end), Some(b'e' | b'E')) {
            let signed = matches!(self.bytes.get(end + 1), Some(b'+' | b'-'));
            let exponent = end + 1 + usize::from(signed);
            if self.digit_at(exponent) {
                kind = Kind::Number;
                end = self.digits(exponent);
            } else if signed {
                return Err(self.near("trailing junk after numeric literal", start, exponent));
            }
        }
        if self.bytes.get(end).is_some_and(|&byte| is_name_start(byte)) {
            let junk = self.name_end(end);
            return Err(self.near("trailing junk after numeric literal", start, junk));
        }
        Ok(token(kind, start, end))
    }

    /// A string whose first quote stands at `quote`.
    fn string(&self, kind: Kind, start: usize, quote: usize, escapes: bool, what: &str) -> Result<Token> {
        match quoted_end(self.sql, quote, escapes)? {
            Some(end) => Ok(token(kind, start, end)),
            None => Err(self.unterminated(what, start)),
        }
    }

    /// A name in quotes, the first of which stands at `quote`.
    fn name(&self, kind: Kind, start: usize, quote: usize) -> Result<Token> {
        let mut at = quote + 1;
        loop {
            match self.bytes.get(at) {
                None => return Err(self.unterminated("quoted identifier", start)),
                Some(b'"') if self.bytes.get(at + 1) == Some(&b'"') => at += 2,
                Some(b'"') => break,
                Some(_) => at += 1,
            }
        }
        if at == quote + 1 {
            return Err(self.near("zero-length delimited identifier", start, at + 1));
        }
        Ok(token(kind, start, at + 1))
    }

    /// A parameter, or a string between dollars.
    fn dollar(&self, start: usize) -> Result<Token> {
        if self.digit_at(start + 1) {
            let end = self.digits(start + 1);
            if self.bytes.get(end).is_some_and(|&byte| is_name_start(byte)) {
                return Err(self.near("trailing junk after parameter", start, self.name_end(end)));
            }
            return Ok(token(Kind::Parameter, start, end));
        }
        let Some(tag) = dollar_tag(self.bytes, start) else {
            return Ok(token(Kind::Other, start, start + 1));
        };
        let body = start + tag;
        match self.sql[body..].find(&self.sql[start..body]) {
            Some(length) => Ok(token(Kind::DollarText, start, body + length + tag)),
            None => Err(self.unterminated("dollar-quoted string", start)),
        }
    }

    fn operator(&self, start: usize) -> Result<Token> {
        let mut end = start + 1;
        while self.bytes.get(end).is_some_and(|&byte| is_operator_part(byte)) {
            // A comment ends an operator.
            if matches!(&self.bytes[end..], [b'-', b'-', ..] | [b'/', b'*', ..]) {
                break;
            }
            end += 1;
        }
        // A sign at the end is an operator of its own, unless the operator has a character that no standard one has.
        let special = |byte: &u8| matches!(byte, b'~' | b'!' | b'@' | b'#' | b'^' | b'&' | b'|' | b'`' | b'?' | b'%');
        if !self.bytes[start..end].iter().any(special) {
            while end > start + 1 && matches!(self.bytes[end - 1], b'+' | b'-') {
                end -= 1;
            }
        }
        if end - start > NAME_MAX {
            return Err(self.near("operator too long", start, end));
        }
        let kind = match &self.bytes[start..end] {
            b"+" => Kind::Plus,
            b"-" => Kind::Minus,
            b"*" => Kind::Star,
            b"/" => Kind::Slash,
            b"%" => Kind::Percent,
            b"^" => Kind::Caret,
            b"<" => Kind::Less,
            b">" => Kind::Greater,
            b"=" => Kind::Equal,
            b"<=" => Kind::LessEqual,
            b">=" => Kind::GreaterEqual,
            b"<>" | b"!=" => Kind::NotEqual,
            b"=>" => Kind::Arrow,
            _ => Kind::Operator,
        };
        Ok(token(kind, start, end))
    }

    fn near(&self, message: &str, start: usize, end: usize) -> Box<SyntaxError> {
        SyntaxError::near(message, &self.sql[start..end], start as u32)
    }

    /// All that follows is part of what does not end.
    fn unterminated(&self, what: &str, start: usize) -> Box<SyntaxError> {
        SyntaxError::near(&format!("unterminated {what}"), &self.sql[start..], start as u32)
    }
}

fn token(kind: Kind, start: usize, end: usize) -> Token {
    debug_assert!(start <= end && end <= LONGEST);
    Token { kind, keyword: None, start: start as u32, end: end as u32 }
}
