//! Column types and values, and their text forms, which are PostgreSQL's.
//!
//! 1. `parse` after `Display` gives the value back, for every value of every type.
//! 2. [`DatumRef::cmp_key`] is the order of keys and of ORDER BY: NULLs last, NaN above all numbers and equal to itself,
//!    -0 = 0, text by bytes (C collation).

use crate::error::{EngineError, Result};
use std::cmp::Ordering;
use std::fmt;

mod number;
#[cfg(test)]
mod tests;
mod timestamp;

/// A column's type. `Varchar(n)`: at most n characters. Timestamps: microseconds since 1970-01-01, no zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum DataType {
    Bool,
    Int4,
    Int8,
    Float8,
    Text,
    Varchar(u32),
    Timestamp,
}

/// An owned value.
#[derive(Clone, PartialEq, Debug)]
pub enum Datum {
    Null,
    Bool(bool),
    Int4(i32),
    Int8(i64),
    Float8(f64),
    Text(Box<str>),
    Timestamp(i64),
}

/// A value within a row's bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum DatumRef<'a> {
    Null,
    Bool(bool),
    Int4(i32),
    Int8(i64),
    Float8(f64),
    Text(&'a str),
    Timestamp(i64),
}

/// The longest VARCHAR, as in PostgreSQL.
pub const MAX_VARCHAR: u32 = 10_485_760;

impl DataType {
    /// PostgreSQL's name, without the length.
    pub fn base_name(self) -> &'static str {
        match self {
            DataType::Bool => "boolean",
            DataType::Int4 => "integer",
            DataType::Int8 => "bigint",
            DataType::Float8 => "double precision",
            DataType::Text => "text",
            DataType::Varchar(_) => "character varying",
            DataType::Timestamp => "timestamp without time zone",
        }
    }

    /// PostgreSQL's type oid: how the wire and the catalogue name a type.
    pub fn pg_oid(self) -> u32 {
        match self {
            DataType::Bool => 16,
            DataType::Int8 => 20,
            DataType::Int4 => 23,
            DataType::Text => 25,
            DataType::Float8 => 701,
            DataType::Varchar(_) => 1043,
            DataType::Timestamp => 1114,
        }
    }

    /// The type of an oid; `length` is VARCHAR's and otherwise ignored.
    pub fn from_pg_oid(oid: u32, length: u32) -> Option<DataType> {
        Some(match oid {
            16 => DataType::Bool,
            20 => DataType::Int8,
            23 => DataType::Int4,
            25 => DataType::Text,
            701 => DataType::Float8,
            1043 => DataType::Varchar(length),
            1114 => DataType::Timestamp,
            _ => return None,
        })
    }

    /// Reads PostgreSQL's text form. 22P02, 22007 on bad syntax, 22003, 22008 out of range, 22001 too long, 22021 a NUL in text.
    pub fn parse(self, text: &str) -> Result<Datum> {
        Ok(match self {
            DataType::Bool => Datum::Bool(parse_bool(text)?),
            DataType::Int4 => {
                let v = number::parse_int(text, "integer")?;
                Datum::Int4(i32::try_from(v).map_err(|_| number::out_of_range(text, "integer"))?)
            }
            DataType::Int8 => {
                let v = number::parse_int(text, "bigint")?;
                Datum::Int8(i64::try_from(v).map_err(|_| number::out_of_range(text, "bigint"))?)
            }
            DataType::Float8 => Datum::Float8(number::parse_float(text)?),
            DataType::Text => Datum::Text(check_text(text)?.into()),
            DataType::Varchar(n) => Datum::Text(fit_varchar(check_text(text)?, n)?.into()),
            DataType::Timestamp => Datum::Timestamp(timestamp::parse(text)?),
        })
    }

    /// Whether a value may stand in a column of this type (NULL always may); VARCHAR's length included.
    pub fn admits(self, value: DatumRef<'_>) -> Result<()> {
        let same = match (self, value) {
            (_, DatumRef::Null)
            | (DataType::Bool, DatumRef::Bool(_))
            | (DataType::Int4, DatumRef::Int4(_))
            | (DataType::Int8, DatumRef::Int8(_))
            | (DataType::Float8, DatumRef::Float8(_))
            | (DataType::Timestamp, DatumRef::Timestamp(_)) => true,
            (DataType::Text, DatumRef::Text(s)) => {
                check_text(s)?;
                true
            }
            (DataType::Varchar(n), DatumRef::Text(s)) => {
                if check_text(s)?.len() > n as usize && s.chars().count() > n as usize {
                    return Err(EngineError::string_too_long(n));
                }
                true
            }
            _ => false,
        };
        if same { Ok(()) } else { Err(EngineError::type_mismatch(self, value)) }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Varchar(n) => write!(f, "character varying({n})"),
            other => f.write_str(other.base_name()),
        }
    }
}

impl Datum {
    pub fn as_ref(&self) -> DatumRef<'_> {
        match self {
            Datum::Null => DatumRef::Null,
            Datum::Bool(v) => DatumRef::Bool(*v),
            Datum::Int4(v) => DatumRef::Int4(*v),
            Datum::Int8(v) => DatumRef::Int8(*v),
            Datum::Float8(v) => DatumRef::Float8(*v),
            Datum::Text(v) => DatumRef::Text(v),
            Datum::Timestamp(v) => DatumRef::Timestamp(*v),
        }
    }
    pub fn text(s: impl Into<Box<str>>) -> Datum {
        Datum::Text(s.into())
    }
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }
}

impl DatumRef<'_> {
    pub fn to_datum(self) -> Datum {
        match self {
            DatumRef::Null => Datum::Null,
            DatumRef::Bool(v) => Datum::Bool(v),
            DatumRef::Int4(v) => Datum::Int4(v),
            DatumRef::Int8(v) => Datum::Int8(v),
            DatumRef::Float8(v) => Datum::Float8(v),
            DatumRef::Text(v) => Datum::Text(v.into()),
            DatumRef::Timestamp(v) => Datum::Timestamp(v),
        }
    }
    pub fn is_null(self) -> bool {
        matches!(self, DatumRef::Null)
    }

    /// Order of keys (invariant 2). Values of different types have no order: a panic, for the engine is wrong.
    pub fn cmp_key(self, other: DatumRef<'_>) -> Ordering {
        match (self, other) {
            (DatumRef::Null, DatumRef::Null) => Ordering::Equal,
            (DatumRef::Null, _) => Ordering::Greater,
            (_, DatumRef::Null) => Ordering::Less,
            (DatumRef::Bool(a), DatumRef::Bool(b)) => a.cmp(&b),
            (DatumRef::Int4(a), DatumRef::Int4(b)) => a.cmp(&b),
            (DatumRef::Int8(a), DatumRef::Int8(b)) => a.cmp(&b),
            (DatumRef::Timestamp(a), DatumRef::Timestamp(b)) => a.cmp(&b),
            (DatumRef::Text(a), DatumRef::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (DatumRef::Float8(a), DatumRef::Float8(b)) => match (a.is_nan(), b.is_nan()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => a.partial_cmp(&b).expect("neither is NaN"),
            },
            (a, b) => panic!("no order between {a:?} and {b:?}"),
        }
    }
}

/// PostgreSQL's text form. NULL has none; it prints as `null`, as in error details.
impl fmt::Display for DatumRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatumRef::Null => f.write_str("null"),
            DatumRef::Bool(v) => f.write_str(if *v { "t" } else { "f" }),
            DatumRef::Int4(v) => write!(f, "{v}"),
            DatumRef::Int8(v) => write!(f, "{v}"),
            DatumRef::Float8(v) => number::write_float(f, *v),
            DatumRef::Text(v) => f.write_str(v),
            DatumRef::Timestamp(v) => timestamp::write(f, *v),
        }
    }
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

/// Cuts trailing spaces that exceed VARCHAR(n), as an assignment does in PostgreSQL; other excess is 22001.
pub fn fit_varchar(text: &str, n: u32) -> Result<&str> {
    match text.char_indices().nth(n as usize) {
        None => Ok(text),
        Some((end, _)) if text[end..].bytes().all(|b| b == b' ') => Ok(&text[..end]),
        Some(_) => Err(EngineError::string_too_long(n)),
    }
}

fn check_text(text: &str) -> Result<&str> {
    if text.as_bytes().contains(&0) {
        return Err(EngineError::new("22021", "invalid byte sequence for encoding \"UTF8\": 0x00"));
    }
    Ok(text)
}

fn parse_bool(text: &str) -> Result<bool> {
    let word = trim(text).to_ascii_lowercase();
    let prefix_of = |full: &str, least: usize| word.len() >= least && full.starts_with(&word);
    if prefix_of("true", 1) || prefix_of("yes", 1) || word == "on" || word == "1" {
        Ok(true)
    } else if prefix_of("false", 1) || prefix_of("no", 1) || prefix_of("off", 2) || word == "0" {
        Ok(false)
    } else {
        Err(EngineError::invalid_text("boolean", text))
    }
}

/// Without the whitespace that PostgreSQL's input functions skip at both ends.
fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c'])
}
