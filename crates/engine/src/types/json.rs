//! JSON: `json` is the text as it was written, `jsonb` a text that is normal.
//!
//! 1. A normal text is what PostgreSQL shows of a jsonb: an object's members by the length of their names and then by
//!    their bytes, the last of each name; a space behind `:` and `,`, numbers as numeric shows them, and no escapes but
//!    those that JSON asks for. So a part of a normal text is normal.
//! 2. [`key`] orders bytes as PostgreSQL orders jsonb. Two jsonb may be equal and differ as texts: 1.0 and 1.
//!
//! Source: PostgreSQL 15 documentation, 8.14 (JSON Types), and what the server answers.
use crate::error::{EngineError, Result};
use std::fmt::Write;

mod number;
mod reader;
#[cfg(test)]
mod tests;

pub use reader::{Event, Reader};

/// The bytes that a jsonb may have.
const MAX_BYTES: usize = 0x0fff_ffff;

/// A value with its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Json {
    Null,
    Bool(bool),
    /// As numeric shows it.
    Number(Box<str>),
    Text(Box<str>),
    Array(Vec<Json>),
    /// In the order of a normal text (invariant 1), each name once.
    Object(Vec<(Box<str>, Json)>),
}

/// What a text is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Null,
    Bool,
    Number,
    Text,
    Array,
    Object,
}

impl Kind {
    /// As `jsonb_typeof` has it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool => "boolean",
            Kind::Number => "number",
            Kind::Text => "string",
            Kind::Array => "array",
            Kind::Object => "object",
        }
    }
}

/// Checks that a text is JSON. 22P02
pub fn check(text: &str) -> Result<()> {
    let mut reader = Reader::new(text, false);
    while reader.next_event()?.is_some() {}
    Ok(())
}

/// The normal text of what is read. 22P02, 22P05 of `\u0000`, 22003 of a number that no numeric holds
pub fn normal(text: &str) -> Result<String> {
    Json::read(text)?.shown()
}

/// What JSON's text is, by the first of it.
pub fn kind(text: &str) -> Kind {
    match text.bytes().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::Array,
        Some(b'"') => Kind::Text,
        Some(b't' | b'f') => Kind::Bool,
        Some(b'n') => Kind::Null,
        _ => Kind::Number,
    }
}

/// A string as JSON has it.
pub fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..'\x20' => write!(out, "\\u{:04x}", c as u32).expect("a text grows"),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The string that JSON's text is; `None`: it is none.
pub fn text_of(text: &str) -> Result<Option<String>> {
    match Reader::new(text, true).next_event()? {
        Some(Event::Text(text)) => Ok(Some(text)),
        _ => Ok(None),
    }
}

/// The texts of an array's items.
pub fn items(text: &str) -> Result<Vec<&str>> {
    Ok(parts(text)?.into_iter().map(|(_, item)| item).collect())
}

/// The names and texts of an object's members, as they were written.
pub fn members(text: &str) -> Result<Vec<(String, &str)>> {
    Ok(parts(text)?.into_iter().map(|(name, member)| (name.unwrap_or_default(), member)).collect())
}

/// What an array or an object consists of.
fn parts(text: &str) -> Result<Vec<(Option<String>, &str)>> {
    let mut reader = Reader::new(text, true);
    let (mut found, mut name, mut start) = (vec![], None, 0);
    while let Some(event) = reader.next_event()? {
        let span = reader.span();
        match (event, reader.depth()) {
            (Event::Key(key), 1) => name = Some(key),
            (Event::BeginObject | Event::BeginArray, 2) => start = span.start,
            (Event::EndObject | Event::EndArray, 1) => found.push((name.take(), &text[start..span.end])),
            (Event::Text(_) | Event::Number | Event::Bool(_) | Event::Null, 1) => {
                found.push((name.take(), &text[span]));
            }
            _ => {}
        }
    }
    Ok(found)
}

impl Json {
    /// Reads JSON. 22P02, 22P05, 22003
    pub fn read(text: &str) -> Result<Json> {
        let mut reader = Reader::new(text, true);
        let first = reader.next_event()?.expect("the end is no value");
        let read = Json::of(first, &mut reader, text)?;
        match reader.next_event()? {
            None => Ok(read),
            Some(event) => Err(EngineError::internal(format!("{event:?} behind the end"))),
        }
    }

    fn of(event: Event, reader: &mut Reader<'_>, text: &str) -> Result<Json> {
        Ok(match event {
            Event::BeginObject => {
                let mut members = vec![];
                while let Some(Event::Key(name)) = reader.next_event()? {
                    let event = reader.next_event()?.expect("a value follows");
                    members.push((name.into(), Json::of(event, reader, text)?));
                }
                Json::object(members)
            }
            Event::BeginArray => {
                let mut items = vec![];
                while let Some(event) = reader.next_event()?.filter(|event| *event != Event::EndArray) {
                    items.push(Json::of(event, reader, text)?);
                }
                Json::Array(items)
            }
            Event::Text(text) => Json::Text(text.into()),
            Event::Number => Json::Number(number::plain(&text[reader.span()])?.into()),
            Event::Bool(value) => Json::Bool(value),
            Event::Null => Json::Null,
            Event::EndObject | Event::EndArray | Event::Key(_) => {
                return Err(EngineError::internal(format!("{event:?} for a value")));
            }
        })
    }

    /// An object of these members (invariant 1).
    pub fn object(mut members: Vec<(Box<str>, Json)>) -> Json {
        members.sort_by(|(a, _), (b, _)| (a.len(), a.as_bytes()).cmp(&(b.len(), b.as_bytes())));
        let mut kept: Vec<(Box<str>, Json)> = Vec::with_capacity(members.len());
        for member in members {
            match kept.last_mut() {
                Some(last) if last.0 == member.0 => *last = member,
                _ => kept.push(member),
            }
        }
        Json::Object(kept)
    }

    /// A member of an object.
    pub fn member(&self, name: &str) -> Option<&Json> {
        let Json::Object(members) = self else { return None };
        let order = |(own, _): &(Box<str>, Json)| (own.len(), own.as_bytes()).cmp(&(name.len(), name.as_bytes()));
        members.binary_search_by(order).ok().map(|at| &members[at].1)
    }

    /// The normal text. 54000 where it is too long
    pub fn shown(&self) -> Result<String> {
        let mut out = String::new();
        self.write(&mut out)?;
        Ok(out)
    }

    fn write(&self, out: &mut String) -> Result<()> {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Number(number) => out.push_str(number),
            Json::Text(text) => write_text(out, text),
            Json::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    item.write(out)?;
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (at, (name, member)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    write_text(out, name);
                    out.push_str(": ");
                    member.write(out)?;
                }
                out.push('}');
            }
        }
        match out.len() {
            0..=MAX_BYTES => Ok(()),
            _ => Err(EngineError::new("54000", format!("a jsonb exceeds the maximum of {MAX_BYTES} bytes"))),
        }
    }

    /// Whether PostgreSQL's `=` says so (invariant 2).
    pub fn equals(&self, other: &Json) -> bool {
        self.key() == other.key()
    }

    fn key(&self) -> Vec<u8> {
        let mut out = vec![];
        // An empty array comes before all, then what is no array or object.
        let first = match self {
            Json::Array(items) if items.is_empty() => 0,
            Json::Array(_) => 2,
            Json::Object(_) => 3,
            _ => 1,
        };
        out.push(first);
        self.write_key(&mut out);
        out
    }

    fn write_key(&self, out: &mut Vec<u8>) {
        let count = |out: &mut Vec<u8>, n: usize| out.extend_from_slice(&(n as u32).to_be_bytes());
        match self {
            Json::Null => out.push(1),
            Json::Text(text) => {
                out.push(2);
                write_bytes(out, text);
            }
            Json::Number(digits) => {
                out.push(3);
                number::write_key(out, digits);
            }
            Json::Bool(value) => out.push(if *value { 5 } else { 4 }),
            Json::Array(items) => {
                out.push(6);
                count(out, items.len());
                items.iter().for_each(|item| item.write_key(out));
            }
            Json::Object(members) => {
                out.push(7);
                count(out, members.len());
                for (name, member) in members {
                    write_bytes(out, name);
                    member.write_key(out);
                }
            }
        }
    }

    /// Whether its text is that of all values that equal it (invariant 2).
    pub fn is_alone(&self) -> bool {
        match self {
            Json::Null | Json::Bool(_) | Json::Text(_) => true,
            Json::Number(digits) => !number::has_zeros(digits),
            Json::Array(items) => items.iter().all(Json::is_alone),
            Json::Object(members) => members.iter().all(|(_, member)| member.is_alone()),
        }
    }
}

/// Bytes whose order is the texts', and of which none begins another.
fn write_bytes(out: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            0 | 1 => out.extend_from_slice(&[1, byte + 1]),
            _ => out.push(byte),
        }
    }
    out.push(0);
}

/// The key of a normal text (invariant 2).
pub fn key(normal: &str) -> Result<Vec<u8>> {
    Ok(Json::read(normal)?.key())
}
