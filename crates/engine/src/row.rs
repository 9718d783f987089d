//! Row codec (*format*). A row written before a column was added is shorter: the missing columns are what the table
//! says (`ColumnDef::missing`).
//!
//! ```text
//! 0     1          3               3+B              3+B+F
//! | 1   | n: u16   | null bitmap   | fixed part     | text bytes, column after column
//! | ver | columns  | B = (n+7)/8   | F = sum widths |   (bytea likewise)
//! ```
//!
//! 1. Bit `i % 8` of bitmap byte `i / 8` set: column `i` is NULL. Its fixed bytes are zero, its text is empty.
//! 2. Widths: bool 1; int2 2; int4, float4, date 4; int8, float8, timestamps, time, enums (positions) 8;
//!    numeric(p,s) (its integer at the column's scale), interval (months, days, microseconds), uuid 16; text, varchar,
//!    char, bytea, json, jsonb (both as texts), numeric ([`decimal`]), arrays ([`array`]), composite types
//!    ([`composites`]) 4 (the *end* of its bytes, from the start of the text bytes; it begins where the one before it
//!    ends). Little-endian, unaligned. So a column's place follows from the table's definition alone. char(n) has no
//!    blanks at its end.
//! 3. Columns are only ever added at the end, and a dropped one keeps its place (as NULL): any `n` is a prefix of the
//!    definition.

use crate::catalog::{Table, system};
use crate::error::{EngineError, Result};
use crate::key::no_key;
use crate::types::{DataType, Datum, DatumRef, Interval, Numeric, array, composites, decimal};
use std::fmt;

#[cfg(test)]
pub(crate) mod tests;

const VERSION: u8 = 1;
const HEAD: usize = 3;

/// An encoded row.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RowBuf(pub Vec<u8>);

/// Reads columns of an encoded row without copying.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    pub table: &'a Table,
    pub bytes: &'a [u8],
}

/// Bytes of a column in the fixed part.
pub(crate) fn fixed_width(t: DataType) -> u32 {
    match t {
        DataType::Bool => 1,
        DataType::Int2 => 2,
        DataType::Int4 | DataType::Float4 | DataType::Date => 4,
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) => 4,
        DataType::Bytea | DataType::Json | DataType::Jsonb | DataType::Array(_) | DataType::Numeric(None) => 4,
        DataType::Composite(_) => 4,
        DataType::Int8 | DataType::Float8 | DataType::Timestamp | DataType::Timestamptz | DataType::Time => 8,
        DataType::Enum(_) => 8,
        DataType::Numeric(Some(_)) | DataType::Uuid | DataType::Interval => 16,
    }
}

impl RowBuf {
    /// Encodes a row after checking it: number of columns, types (42804), VARCHAR lengths (22001), NOT NULL (23502).
    pub fn encode(table: &Table, row: &[Datum]) -> Result<RowBuf> {
        check(table, row)?;
        let n = row.len();
        let bitmap = n.div_ceil(8);
        let fixed = table.layout.offsets[n] as usize;
        let text: usize = row.iter().map(|d| d.variable().len()).sum();
        if u32::try_from(text).is_err() {
            return Err(EngineError::new("54000", format!("row of {text} bytes of text is too long")));
        }
        let mut out = Vec::with_capacity(HEAD + bitmap + fixed + text);
        out.push(VERSION);
        out.extend_from_slice(&(n as u16).to_le_bytes());
        out.resize(HEAD + bitmap, 0);
        let mut text_end = 0u32;
        for (i, (datum, column)) in row.iter().zip(&table.columns).enumerate() {
            let is_text = column.data_type.is_variable();
            match datum {
                Datum::Null => {
                    out[HEAD + i / 8] |= 1 << (i % 8);
                    if !is_text {
                        out.resize(out.len() + fixed_width(column.data_type) as usize, 0);
                    }
                }
                _ if is_text => text_end += datum.variable().len() as u32,
                fixed => put_fixed(&mut out, fixed),
            }
            if is_text {
                out.extend_from_slice(&text_end.to_le_bytes());
            }
        }
        assert_eq!(out.len(), HEAD + bitmap + fixed, "row invariant 2");
        row.iter().for_each(|datum| out.extend_from_slice(datum.variable()));
        Ok(RowBuf(out))
    }
    pub fn view<'a>(&'a self, table: &'a Table) -> RowView<'a> {
        RowView { table, bytes: &self.0 }
    }
}

/// Appends a value of a fixed width.
pub(crate) fn put_fixed(out: &mut Vec<u8>, value: &Datum) {
    match value {
        Datum::Bool(v) => out.push(*v as u8),
        Datum::Int2(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Int4(v) | Datum::Date(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Int8(v) | Datum::Timestamp(v) | Datum::Timestamptz(v) | Datum::Time(v) | Datum::Enum(_, v) => {
            out.extend_from_slice(&v.to_le_bytes());
        }
        Datum::Interval(v) => {
            out.extend_from_slice(&v.months().to_le_bytes());
            out.extend_from_slice(&v.days().to_le_bytes());
            out.extend_from_slice(&v.micros().to_le_bytes());
        }
        Datum::Float4(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Float8(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Numeric(v) => out.extend_from_slice(&v.unscaled.to_le_bytes()),
        Datum::Uuid(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Null
        | Datum::Text(_)
        | Datum::Bytea(_)
        | Datum::Json(_)
        | Datum::Jsonb(_)
        | Datum::Array(_)
        | Datum::Record(_)
        | Datum::Decimal(_) => {
            unreachable!("NULL, and what is of any length, is written by the caller")
        }
    }
}

/// The value of a fixed width that begins `bytes`.
#[inline]
pub(crate) fn fixed_value(of: DataType, bytes: &[u8]) -> DatumRef<'static> {
    fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
        *bytes.first_chunk().expect("as many bytes as the type has")
    }
    match of {
        DataType::Bool => DatumRef::Bool(bytes[0] != 0),
        DataType::Int2 => DatumRef::Int2(i16::from_le_bytes(first(bytes))),
        DataType::Int4 => DatumRef::Int4(i32::from_le_bytes(first(bytes))),
        DataType::Int8 => DatumRef::Int8(i64::from_le_bytes(first(bytes))),
        DataType::Float4 => DatumRef::Float4(f32::from_le_bytes(first(bytes))),
        DataType::Float8 => DatumRef::Float8(f64::from_le_bytes(first(bytes))),
        DataType::Date => DatumRef::Date(i32::from_le_bytes(first(bytes))),
        DataType::Timestamp => DatumRef::Timestamp(i64::from_le_bytes(first(bytes))),
        DataType::Timestamptz => DatumRef::Timestamptz(i64::from_le_bytes(first(bytes))),
        DataType::Time => DatumRef::Time(i64::from_le_bytes(first(bytes))),
        DataType::Enum(of) => DatumRef::Enum(of, i64::from_le_bytes(first(bytes))),
        DataType::Interval => {
            let part = |at: usize| i32::from_le_bytes(first(&bytes[at..]));
            DatumRef::Interval(Interval::new(part(0), part(4), i64::from_le_bytes(first(&bytes[8..]))))
        }
        DataType::Uuid => DatumRef::Uuid(u128::from_le_bytes(first(bytes))),
        DataType::Numeric(Some((_, scale))) => {
            DatumRef::Numeric(Numeric { unscaled: i128::from_le_bytes(first(bytes)), scale })
        }
        other => unreachable!("{other} has no fixed width"),
    }
}

fn check(table: &Table, row: &[Datum]) -> Result<()> {
    if row.len() != table.columns.len() && !system::may_lack_columns(table, row) {
        return Err(EngineError::internal(format!(
            "a row of {} values for the {} columns of \"{}\"",
            row.len(),
            table.columns.len(),
            table.name
        )));
    }
    for (at, (datum, column)) in row.iter().zip(&table.columns).enumerate() {
        if matches!(datum, Datum::Array(_)) && table.indexes.iter().any(|index| index.columns.contains(&at)) {
            no_key(datum.as_ref()).map_err(|e| e.on_table(table).on_column(&column.name))?;
        }
        if datum.is_null() {
            if column.not_null && !column.dropped {
                let texts = row.iter().map(|value| value_text(&value.to_string()));
                return Err(EngineError::not_null(table, &column.name, texts.enumerate().collect()));
            }
        } else {
            column.data_type.admits(datum.as_ref()).map_err(|e| e.on_table(table).on_column(&column.name))?;
        }
    }
    Ok(())
}

/// PostgreSQL shows at most 64 bytes of a value.
fn value_text(text: &str) -> String {
    let cut = text.floor_char_boundary(64);
    format!("{}{}", &text[..cut], if cut < text.len() { "..." } else { "" })
}

/// `(1, x, null)`, as in PostgreSQL's details.
pub(crate) struct RowText<'a>(pub(crate) &'a [Datum]);

impl fmt::Display for RowText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (i, d) in self.0.iter().enumerate() {
            write!(f, "{}{}", if i > 0 { ", " } else { "" }, value_text(&d.to_string()))?;
        }
        f.write_str(")")
    }
}

impl<'a> RowView<'a> {
    /// A view of bytes that were read from storage, after checking that they are a row of the table (XX001).
    pub fn checked(table: &'a Table, bytes: &'a [u8]) -> Result<RowView<'a>> {
        let view = RowView { table, bytes };
        view.verify().map_err(|why| EngineError::damaged(format!("a row of \"{}\" is damaged: {why}", table.name)))?;
        Ok(view)
    }

    fn verify(&self) -> Result<(), &'static str> {
        if self.bytes.len() < HEAD || self.bytes[0] != VERSION {
            return Err("unknown row format");
        }
        let n = self.stored_columns();
        if n > self.table.columns.len() {
            return Err("more columns than the table has");
        }
        let text_start = self.fixed_start() + self.table.layout.offsets[n] as usize;
        if self.bytes.len() < text_start {
            return Err("it is cut short");
        }
        let mut end = 0usize;
        for i in 0..n {
            let c = &self.table.columns[i];
            if c.data_type.is_variable() {
                let next = self.u32_at(i) as usize;
                let bytes = self.bytes[text_start..].get(end..next).ok_or("a text lies outside")?;
                if c.data_type.is_utf8() {
                    std::str::from_utf8(bytes).map_err(|_| "a text is not UTF-8")?;
                }
                let null = self.bytes[HEAD + i / 8] & 1 << (i % 8) != 0;
                if let DataType::Array(items) = c.data_type
                    && !null
                {
                    array::check(bytes, Some(items))?;
                }
                if let DataType::Composite(of) = c.data_type
                    && !null
                {
                    composites::check(bytes, of)?;
                }
                if c.data_type == DataType::Numeric(None) && !null {
                    decimal::check(bytes)?;
                }
                end = next;
            }
        }
        if text_start + end == self.bytes.len() { Ok(()) } else { Err("its length is wrong") }
    }

    /// Whether the definition has all the columns that the row was written with: else its texts cannot be found.
    pub(crate) fn is_known(&self) -> bool {
        self.stored_columns() <= self.table.columns.len()
    }

    /// Number of columns the row was written with.
    fn stored_columns(&self) -> usize {
        u16::from_le_bytes([self.bytes[1], self.bytes[2]]) as usize
    }
    fn fixed_start(&self) -> usize {
        HEAD + self.stored_columns().div_ceil(8)
    }
    fn fixed<const N: usize>(&self, column: usize) -> [u8; N] {
        let at = self.fixed_start() + self.table.layout.offsets[column] as usize;
        self.bytes[at..at + N].try_into().expect("a slice of N bytes")
    }
    fn u32_at(&self, column: usize) -> u32 {
        u32::from_le_bytes(self.fixed(column))
    }

    pub fn is_null(&self, column: usize) -> bool {
        if column >= self.stored_columns() {
            return self.table.columns[column].missing.is_null();
        }
        self.bytes[HEAD + column / 8] & (1 << (column % 8)) != 0
    }

    pub fn get(&self, column: usize) -> DatumRef<'a> {
        let n = self.stored_columns();
        let table: &'a Table = self.table;
        if column >= n {
            return table.columns[column].missing.as_ref();
        }
        if self.is_null(column) {
            return DatumRef::Null;
        }
        let of = table.columns[column].data_type;
        if of.is_variable() {
            return of.variable_value(self.variable(column));
        }
        fixed_value(of, &self.bytes[self.fixed_start() + table.layout.offsets[column] as usize..])
    }

    /// The bytes behind the fixed part that belong to a stored column.
    fn variable(&self, column: usize) -> &'a [u8] {
        let layout = &self.table.layout;
        let text_start = self.fixed_start() + layout.offsets[self.stored_columns()] as usize;
        let from = layout.text_before[column].map_or(0, |c| self.u32_at(c as usize)) as usize;
        let bytes: &'a [u8] = self.bytes;
        &bytes[text_start..][from..self.u32_at(column) as usize]
    }

    pub fn to_datums(&self) -> Vec<Datum> {
        (0..self.table.columns.len()).map(|c| self.get(c).to_datum()).collect()
    }
}
