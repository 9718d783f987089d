//! Reads JSON's text, one event after the other, and says what is wrong with it in PostgreSQL's words.
//!
//! 1. There is no recursion: what is open is a list. More than [`MAX_DEPTH`] levels are refused (54001), so that those
//!    who recurse over a value have stack enough.
//! 2. An event's `span` is its place in the text: a part of a `json` is answered as it was written.
//! 3. Without [`Reader::of_text`]'s escapes, `\ud800` and `\u0000` may stand in a string, as in PostgreSQL's `json`.
//!
//! A library (serde_json) would not do: its messages are others, it refuses lone surrogates in all strings, and it
//! keeps no places. The tests read the same texts with it.
//!
//! Source: RFC 8259, and what PostgreSQL 15 answers.
use crate::error::{EngineError, Result};
use std::ops::Range;

/// Arrays and objects within each other.
const MAX_DEPTH: usize = 1000;

/// What a text is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    BeginObject,
    EndObject,
    BeginArray,
    EndArray,
    /// The name of an object's member, whose value follows.
    Key(String),
    Text(String),
    /// As it was written: see the span.
    Number,
    Bool(bool),
    Null,
}

/// What may stand next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expects {
    Value,
    /// Or the end of the array.
    FirstItem,
    /// Or the end of the object.
    FirstKey,
    Key,
    /// A comma, or the end of what is open.
    Next,
    End,
}

#[derive(PartialEq, Eq, Debug)]
enum Token {
    Text(String),
    Number,
    True,
    False,
    Null,
    /// One of `{}[]:,`.
    Sign(u8),
    End,
}

pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// Where the last token stands.
    token: Range<usize>,
    /// Of the line, counted from 1, and where it begins.
    line: (usize, usize),
    /// What is open, outermost first; whether it is an object.
    open: Vec<bool>,
    expects: Expects,
    escapes: bool,
}

impl<'a> Reader<'a> {
    /// `escapes`: those of strings must mean characters (invariant 3).
    pub fn new(text: &'a str, escapes: bool) -> Reader<'a> {
        Reader { text, at: 0, token: 0..0, line: (1, 0), open: vec![], expects: Expects::Value, escapes }
    }

    /// Where the last event stands.
    pub fn span(&self) -> Range<usize> {
        self.token.clone()
    }

    /// How many arrays and objects are open.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// The next event; `None` at the end.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        loop {
            let token = self.lex()?;
            match (self.expects, token) {
                (Expects::End, Token::End) => return Ok(None),
                (Expects::FirstItem, Token::Sign(b']')) => return Ok(Some(self.close())),
                (Expects::FirstKey, Token::Sign(b'}')) => return Ok(Some(self.close())),
                (Expects::Next, Token::Sign(sign)) if sign == self.closing() => return Ok(Some(self.close())),
                (Expects::Next, Token::Sign(b',')) => {
                    self.expects = if self.closing() == b'}' { Expects::Key } else { Expects::Value };
                }
                (Expects::FirstKey | Expects::Key, Token::Text(name)) => {
                    let span = self.span();
                    let colon = self.lex()?;
                    if colon != Token::Sign(b':') {
                        return Err(self.unexpected("\":\"", &colon));
                    }
                    (self.expects, self.token) = (Expects::Value, span);
                    return Ok(Some(Event::Key(name)));
                }
                (Expects::Value | Expects::FirstItem, token) => return self.value(token).map(Some),
                (Expects::FirstKey, other) => return Err(self.unexpected("string or \"}\"", &other)),
                (Expects::Key, other) => return Err(self.unexpected("string", &other)),
                (Expects::Next, other) => {
                    let wanted = format!("\",\" or \"{}\"", char::from(self.closing()));
                    return Err(self.unexpected(&wanted, &other));
                }
                (Expects::End, other) => return Err(self.unexpected("end of input", &other)),
            }
        }
    }

    fn value(&mut self, token: Token) -> Result<Event> {
        let event = match token {
            Token::Sign(sign @ (b'{' | b'[')) => {
                if self.open.len() >= MAX_DEPTH {
                    let error = EngineError::new("54001", "stack depth limit exceeded");
                    return Err(error.with_hint(format!("JSON has at most {MAX_DEPTH} levels.")));
                }
                self.open.push(sign == b'{');
                let object = sign == b'{';
                self.expects = if object { Expects::FirstKey } else { Expects::FirstItem };
                return Ok(if object { Event::BeginObject } else { Event::BeginArray });
            }
            Token::Text(text) => Event::Text(text),
            Token::Number => Event::Number,
            Token::True => Event::Bool(true),
            Token::False => Event::Bool(false),
            Token::Null => Event::Null,
            other => return Err(self.unexpected("JSON value", &other)),
        };
        self.expects = if self.open.is_empty() { Expects::End } else { Expects::Next };
        Ok(event)
    }

    /// What ends what is open.
    fn closing(&self) -> u8 {
        if self.open.last() == Some(&true) { b'}' } else { b']' }
    }

    fn close(&mut self) -> Event {
        let object = self.open.pop().expect("something is open where its end may stand");
        self.expects = if self.open.is_empty() { Expects::End } else { Expects::Next };
        if object { Event::EndObject } else { Event::EndArray }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn lex(&mut self) -> Result<Token> {
        while let Some(blank @ (b' ' | b'\t' | b'\n' | b'\r')) = self.peek() {
            self.at += 1;
            if blank == b'\n' {
                self.line = (self.line.0 + 1, self.at);
            }
        }
        let start = self.at;
        let token = match self.peek() {
            None => Token::End,
            Some(sign @ (b'{' | b'}' | b'[' | b']' | b':' | b',')) => {
                self.at += 1;
                Token::Sign(sign)
            }
            Some(b'"') => {
                self.token = start..start;
                self.string()?
            }
            Some(b'-' | b'0'..=b'9') => match self.number() {
                true => Token::Number,
                false => return Err(self.invalid_token(start)),
            },
            Some(_) => {
                self.skip(is_of_word);
                match &self.text[start..self.at] {
                    "true" => Token::True,
                    "false" => Token::False,
                    "null" => Token::Null,
                    "" => {
                        self.at += 1;
                        return Err(self.invalid_token(start));
                    }
                    _ => return Err(self.invalid_token(start)),
                }
            }
        };
        self.token = start..self.at;
        Ok(token)
    }

    /// How many bytes are passed.
    fn skip(&mut self, is: fn(u8) -> bool) -> usize {
        let start = self.at;
        while self.peek().is_some_and(is) {
            self.at += 1;
        }
        self.at - start
    }

    fn take(&mut self, is: fn(u8) -> bool) -> bool {
        let taken = self.peek().is_some_and(is);
        self.at += usize::from(taken);
        taken
    }

    /// Passes a number, and what stands right behind it; whether it is one.
    fn number(&mut self) -> bool {
        let digit = |byte: u8| byte.is_ascii_digit();
        self.take(|byte| byte == b'-');
        let mut good = self.take(|byte| byte == b'0') || self.skip(digit) > 0;
        if self.take(|byte| byte == b'.') {
            good &= self.skip(digit) > 0;
        }
        if self.take(|byte| matches!(byte, b'e' | b'E')) {
            self.take(|byte| matches!(byte, b'+' | b'-'));
            good &= self.skip(digit) > 0;
        }
        good && self.skip(is_of_word) == 0 || {
            self.skip(is_of_word);
            false
        }
    }

    fn string(&mut self) -> Result<Token> {
        let start = self.at;
        self.at += 1;
        let mut made = String::new();
        // The first half of a character that is written as two.
        let mut high: Option<u32> = None;
        loop {
            let plain = self.at;
            self.skip(|byte| byte >= 0x20 && !matches!(byte, b'"' | b'\\'));
            if high.is_some() && self.at > plain {
                let first = self.text[plain..].chars().next().expect("something was passed");
                return Err(self.low_missing(start, plain + first.len_utf8()));
            }
            made.push_str(&self.text[plain..self.at]);
            match self.peek() {
                None => return Err(self.invalid_token(start)),
                Some(b'"') => {
                    self.at += 1;
                    return match high {
                        Some(_) => Err(self.low_missing(start, self.at)),
                        None => Ok(Token::Text(made)),
                    };
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape(start, &mut made, &mut high)?;
                }
                Some(control) => {
                    let detail = format!("Character with value 0x{control:02x} must be escaped.");
                    return Err(self.wrong(start, detail));
                }
            }
        }
    }

    /// What stands behind a backslash.
    fn escape(&mut self, start: usize, made: &mut String, high: &mut Option<u32>) -> Result<()> {
        let Some(escaped) = self.text[self.at..].chars().next() else { return Err(self.invalid_token(start)) };
        self.at += escaped.len_utf8();
        let plain = match escaped {
            'u' => {
                let unit = self.four_digits(start)?;
                return if self.escapes { self.unit(start, unit, made, high) } else { Ok(()) };
            }
            '"' | '\\' | '/' => escaped,
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            other if high.is_none() => {
                return Err(self.wrong(start, format!("Escape sequence \"\\{other}\" is invalid.")));
            }
            _ => '\0',
        };
        if high.is_some() {
            return Err(self.low_missing(start, self.at));
        }
        made.push(plain);
        Ok(())
    }

    fn four_digits(&mut self, start: usize) -> Result<u32> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(c) = self.text[self.at..].chars().next() else { return Err(self.invalid_token(start)) };
            self.at += c.len_utf8();
            match c.to_digit(16) {
                Some(digit) => unit = unit * 16 + digit,
                None => {
                    let detail = "\"\\u\" must be followed by four hexadecimal digits.";
                    return Err(self.wrong(start, detail));
                }
            }
        }
        Ok(unit)
    }

    /// A unit of UTF-16.
    fn unit(&mut self, start: usize, unit: u32, made: &mut String, high: &mut Option<u32>) -> Result<()> {
        let code = match (high.take(), unit) {
            (Some(_), 0xd800..=0xdbff) => {
                return Err(self.wrong(start, "Unicode high surrogate must not follow a high surrogate."));
            }
            (Some(first), 0xdc00..=0xdfff) => 0x10000 + ((first - 0xd800) << 10) + (unit - 0xdc00),
            (None, 0xd800..=0xdbff) => {
                *high = Some(unit);
                return Ok(());
            }
            (Some(_), _) | (None, 0xdc00..=0xdfff) => return Err(self.low_missing(start, self.at)),
            (None, 0) => {
                let error = EngineError::new("22P05", "unsupported Unicode escape sequence");
                return Err(self.told(error, start, "\\u0000 cannot be converted to text."));
            }
            (None, code) => code,
        };
        made.push(char::from_u32(code).expect("halves were put together"));
        Ok(())
    }

    fn low_missing(&mut self, start: usize, end: usize) -> EngineError {
        self.at = end;
        self.wrong(start, "Unicode low surrogate must follow a high surrogate.")
    }

    fn unexpected(&self, wanted: &str, found: &Token) -> EngineError {
        let detail = match found {
            Token::End => "The input string ended unexpectedly.".to_owned(),
            _ => format!("Expected {wanted}, but found \"{}\".", &self.text[self.span()]),
        };
        self.wrong(self.token.start, detail)
    }

    fn invalid_token(&self, start: usize) -> EngineError {
        // The token may end within a character that is none of its letters.
        let end = (self.at..=self.text.len()).find(|at| self.text.is_char_boundary(*at)).unwrap_or(start);
        self.wrong(start, format!("Token \"{}\" is invalid.", &self.text[start..end]))
    }

    fn wrong(&self, start: usize, detail: impl Into<String>) -> EngineError {
        self.told(EngineError::new("22P02", "invalid input syntax for type json"), start, detail)
    }

    /// With the line up to where the reader is, of which PostgreSQL shows about 50 bytes.
    fn told(&self, error: EngineError, start: usize, detail: impl Into<String>) -> EngineError {
        debug_assert!(start <= self.at, "a token begins before it ends");
        let (line, begin) = self.line;
        let end = (self.at..=self.text.len()).find(|at| self.text.is_char_boundary(*at)).unwrap_or(self.text.len());
        let mut from = begin;
        while end - from >= 50 {
            from += self.text[from..].chars().next().map_or(1, char::len_utf8);
        }
        if from - begin <= 3 {
            from = begin;
        }
        let before = if from > begin { "..." } else { "" };
        let after = match self.text.as_bytes().get(end) {
            None | Some(b'\n' | b'\r') => "",
            Some(_) => "...",
        };
        let shown = &self.text[from..end];
        error.with_detail(detail).with_context(format!("JSON data, line {line}: {before}{shown}{after}"))
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
