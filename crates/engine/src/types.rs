//! Column types and values.

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
