//! Key codec (*format*): index entries whose byte order is the order of [`DatumRef::cmp_key`], column by column.
//!
//! ```text
//! per column:  0x01 value | 0x02 (NULL, so it sorts last)         then the RID, 6 bytes big-endian
//! bool         one byte 0 or 1
//! int2, int4, int8        big-endian, sign bit flipped; so are date (4 bytes), time, both timestamps, enums (8 bytes)
//! numeric(p,s) its integer at the column's scale, 16 bytes big-endian, sign bit flipped
//! numeric      its key ([`crate::types::decimal`])
//! interval     what it compares by (months of 30 days, days of 24 hours), 16 bytes big-endian, sign bit flipped
//! float4, float8          big-endian bits; positive: sign flipped, negative: all flipped; -0 as 0, NaN the greatest
//! text, bytea  its bytes, 0x00 as 0x01 0x01 and 0x01 as 0x01 0x02, then 0x00; char(n) without the blanks at its end
//! uuid         16 bytes
//! array        its items, each as a column, then 0x00; of one that begins with another number than 1, or has several
//!              dimensions, there is no key ([`no_key`]): between those that there are, there is no room for it
//! composite    its attributes, each as a column: none is added to, or dropped from, a type of which there are keys
//! ```
//!
//! 1. Order: `encode(a) < encode(b)` exactly where `a < b`; equal values encode equally (-0 and 0, all NaNs, `1 day`
//!    and `24:00:00`, 1.0 and 1.00). So a key of an interval or a numeric is decoded as one of those that are equal.
//! 2. No column's encoding is a proper prefix of another's, so keys that begin with the encoding of some values are
//!    exactly those whose first columns equal them.

use crate::catalog::{Index, Table};
use crate::error::{EngineError, Result};
use crate::row::{RowText, RowView};
use crate::txn::IndexRange;
use crate::types::{Array, DataType, Datum, DatumRef, Decimal, Interval, Numeric, Record, decimal};
use std::ops::{Bound, Range};
use terrace_storage::Rid;

#[cfg(test)]
mod tests;

const VALUE: u8 = 1;
const NULL: u8 = 2;
/// Behind the items of an array: below all that an item begins with, so that the shorter of two is first.
const END: u8 = 0;

/// Refuses what has no key.
pub(crate) fn no_key(value: DatumRef<'_>) -> Result<()> {
    match value {
        DatumRef::Array(array) if !array.is_plain() => {
            let message = "indexes and foreign keys of arrays that have several dimensions, or do not begin with \
                           number 1, are not supported";
            Err(EngineError::unsupported(message))
        }
        _ => Ok(()),
    }
}

/// Appends one column.
pub fn encode_datum(out: &mut Vec<u8>, value: DatumRef<'_>) {
    if value.is_null() {
        out.push(NULL);
        return;
    }
    out.push(VALUE);
    match value {
        DatumRef::Null => unreachable!("returned above"),
        DatumRef::Bool(v) => out.push(v as u8),
        DatumRef::Int2(v) => out.extend_from_slice(&(v as u16 ^ 1 << 15).to_be_bytes()),
        DatumRef::Int4(v) | DatumRef::Date(v) => out.extend_from_slice(&(v as u32 ^ 1 << 31).to_be_bytes()),
        DatumRef::Int8(v)
        | DatumRef::Timestamp(v)
        | DatumRef::Timestamptz(v)
        | DatumRef::Time(v)
        | DatumRef::Enum(_, v) => {
            out.extend_from_slice(&(v as u64 ^ 1 << 63).to_be_bytes());
        }
        DatumRef::Numeric(v) => out.extend_from_slice(&(v.unscaled as u128 ^ 1 << 127).to_be_bytes()),
        DatumRef::Decimal(v) => out.extend_from_slice(decimal::key(v)),
        DatumRef::Interval(v) => out.extend_from_slice(&(v.key() as u128 ^ 1 << 127).to_be_bytes()),
        DatumRef::Float4(v) => out.extend_from_slice(&float4_bits(v).to_be_bytes()),
        DatumRef::Float8(v) => out.extend_from_slice(&float_bits(v).to_be_bytes()),
        DatumRef::Text(s) => encode_bytes(out, s.as_bytes()),
        DatumRef::Bytea(bytes) => encode_bytes(out, bytes),
        DatumRef::Uuid(v) => out.extend_from_slice(&v.to_be_bytes()),
        DatumRef::Array(array) => {
            array.iter().for_each(|item| encode_datum(out, item));
            out.push(END);
        }
        DatumRef::Record(record) => record.values().for_each(|value| encode_datum(out, value)),
        DatumRef::Json(_) | DatumRef::Jsonb(_) => unreachable!("an index of such a column is refused"),
    }
}

fn encode_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    for &b in bytes {
        match b {
            0 | 1 => out.extend_from_slice(&[1, b + 1]),
            _ => out.push(b),
        }
    }
    out.push(0);
}

fn float4_bits(v: f32) -> u32 {
    let v = if v.is_nan() { f32::NAN.abs() } else { v + 0.0 };
    let bits = v.to_bits();
    if bits >> 31 == 0 { bits ^ 1 << 31 } else { !bits }
}

fn float_bits(v: f64) -> u64 {
    let v = if v.is_nan() { f64::NAN.abs() } else { v + 0.0 };
    let bits = v.to_bits();
    if bits >> 63 == 0 { bits ^ 1 << 63 } else { !bits }
}

/// The key of a row in an index, without RID: equal for equal values.
pub(crate) fn encode_key(index: &Index, row: RowView<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(9 * index.columns.len() + Rid::LEN + 16);
    for &c in &index.columns {
        encode_datum(&mut out, row.get(c));
    }
    out
}

/// The index entry of a row: its key and its RID.
pub(crate) fn encode_entry(index: &Index, row: RowView<'_>, rid: Rid) -> Vec<u8> {
    let mut key = encode_key(index, row);
    key.extend_from_slice(&rid.encode());
    key
}

/// Whether no other row may have this row's key: the index is unique, and what is NULL there makes no difference.
pub(crate) fn is_one_rows_of(index: &Index, row: RowView<'_>) -> bool {
    index.unique && !judged_nulls(index).any(|at| row.is_null(index.columns[at]))
}

/// The same of a unique index's key.
pub(crate) fn is_one_rows(index: &Index, key: &[Datum]) -> bool {
    !judged_nulls(index).any(|at| key[at].is_null())
}

/// The places in the key where a NULL is like no other: all, or the condition of an index with NULLS NOT DISTINCT.
fn judged_nulls(index: &Index) -> Range<usize> {
    let from = if index.is_nulls_not_distinct() { index.keys().len() } else { 0 };
    from..index.columns.len()
}

/// The index entry of a key: the key, then the row's RID.
pub(crate) fn entry(mut key: Vec<u8>, rid: Rid) -> Vec<u8> {
    key.extend_from_slice(&rid.encode());
    key
}

/// The RID at the end of an entry.
pub(crate) fn rid_of(entry: &[u8]) -> Rid {
    let at = entry.len().checked_sub(Rid::LEN).expect("an entry ends with a RID");
    Rid::decode(entry[at..].try_into().expect("Rid::LEN bytes"))
}

/// An entry without its RID.
pub fn key_of(entry: &[u8]) -> &[u8] {
    &entry[..entry.len().checked_sub(Rid::LEN).expect("an entry ends with a RID")]
}

/// The encoding of values for the first columns of an index. 42804 where a value is not of its column's type.
pub(crate) fn encode_prefix(table: &Table, index: &Index, values: &[Datum]) -> Result<Vec<u8>> {
    if values.len() > index.columns.len() {
        return Err(EngineError::internal(format!("{} values for index \"{}\"", values.len(), index.name)));
    }
    let mut out = Vec::with_capacity(9 * values.len() + Rid::LEN + 16);
    for (value, &column) in values.iter().zip(&index.columns) {
        match table.columns[column].data_type {
            // A longer text is a fine bound though no row can hold it; so is a number of more digits.
            DataType::Varchar(_) | DataType::Char(_) => DataType::Text.admits(value.as_ref())?,
            other => other.admits(value.as_ref())?,
        }
        no_key(value.as_ref())?;
        encode_datum(&mut out, value.as_ref());
    }
    Ok(out)
}

/// Bounds on entries' bytes.
pub(crate) type EntryBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The entries of a range.
pub(crate) fn encode_range(table: &Table, range: &IndexRange) -> Result<EntryBounds> {
    let prefix = |values: &[Datum]| encode_prefix(table, &range.index, values);
    let from = match &range.from {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(v) => Bound::Included(prefix(v)?),
        Bound::Excluded(v) => after_prefix(prefix(v)?).map_or(Bound::Excluded(vec![0xff]), Bound::Included),
    };
    let to = match &range.to {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(v) => after_prefix(prefix(v)?).map_or(Bound::Unbounded, Bound::Excluded),
        Bound::Excluded(v) => Bound::Excluded(prefix(v)?),
    };
    Ok((from, to))
}

/// The smallest bytes above everything that starts with `prefix`; `None` where nothing is (the empty prefix).
pub(crate) fn after_prefix(mut prefix: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = prefix.pop() {
        if last != u8::MAX {
            prefix.push(last + 1);
            return Some(prefix);
        }
    }
    None
}

/// The values of an entry's or a key's columns. XX001 where the bytes are no key of this index.
pub(crate) fn decode_key(table: &Table, index: &Index, mut bytes: &[u8]) -> Result<Vec<Datum>> {
    index
        .columns
        .iter()
        .map(|&c| decode_datum(&mut bytes, table.columns[c].data_type))
        .collect::<Option<_>>()
        .ok_or_else(|| EngineError::damaged(format!("index \"{}\" holds an entry that is no key", index.name)))
}

fn take<'a>(bytes: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(n)?;
    *bytes = rest;
    Some(front)
}

fn decode_datum(bytes: &mut &[u8], data_type: DataType) -> Option<Datum> {
    match take(bytes, 1)? {
        [NULL] => return Some(Datum::Null),
        [VALUE] => {}
        _ => return None,
    }
    let int4 = |b: &[u8]| Some((u32::from_be_bytes(b.try_into().ok()?) ^ 1 << 31) as i32);
    let int8 = |b: &[u8]| Some((u64::from_be_bytes(b.try_into().ok()?) ^ 1 << 63) as i64);
    Some(match data_type {
        DataType::Bool => Datum::Bool(take(bytes, 1)?[0] != 0),
        DataType::Int2 => Datum::Int2((u16::from_be_bytes(take(bytes, 2)?.try_into().ok()?) ^ 1 << 15) as i16),
        DataType::Int4 => Datum::Int4(int4(take(bytes, 4)?)?),
        DataType::Date => Datum::Date(int4(take(bytes, 4)?)?),
        DataType::Int8 => Datum::Int8(int8(take(bytes, 8)?)?),
        DataType::Timestamp => Datum::Timestamp(int8(take(bytes, 8)?)?),
        DataType::Timestamptz => Datum::Timestamptz(int8(take(bytes, 8)?)?),
        DataType::Numeric(None) => {
            let length = decimal::key_length(bytes)?;
            Datum::Decimal(Decimal::of_key(take(bytes, length)?)?.encode())
        }
        DataType::Numeric(Some((_, scale))) => {
            let unscaled = (u128::from_be_bytes(take(bytes, 16)?.try_into().ok()?) ^ 1 << 127) as i128;
            Datum::Numeric(Numeric { unscaled, scale })
        }
        DataType::Time => Datum::Time(int8(take(bytes, 8)?)?),
        DataType::Enum(of) => Datum::Enum(of, int8(take(bytes, 8)?)?),
        DataType::Composite(of) => {
            let values = of.def().attributes().map(|attribute| decode_datum(bytes, attribute.data_type));
            Datum::Record(Record::new(of, &values.collect::<Option<Vec<Datum>>>()?).ok()?)
        }
        DataType::Interval => {
            let key = (u128::from_be_bytes(take(bytes, 16)?.try_into().ok()?) ^ 1 << 127) as i128;
            Datum::Interval(Interval::from_key(key)?)
        }
        DataType::Uuid => Datum::Uuid(u128::from_be_bytes(take(bytes, 16)?.try_into().ok()?)),
        DataType::Float4 => {
            let bits = u32::from_be_bytes(take(bytes, 4)?.try_into().ok()?);
            Datum::Float4(f32::from_bits(if bits >> 31 == 1 { bits ^ 1 << 31 } else { !bits }))
        }
        DataType::Float8 => {
            let bits = u64::from_be_bytes(take(bytes, 8)?.try_into().ok()?);
            Datum::Float8(f64::from_bits(if bits >> 63 == 1 { bits ^ 1 << 63 } else { !bits }))
        }
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) => {
            Datum::Text(String::from_utf8(decode_bytes(bytes)?).ok()?.into())
        }
        DataType::Bytea => Datum::Bytea(decode_bytes(bytes)?.into()),
        DataType::Array(items) => {
            let mut values = vec![];
            while *bytes.first()? != END {
                values.push(decode_datum(bytes, items.get())?);
            }
            *bytes = &bytes[1..];
            Datum::Array(Array::new(items, &values).ok()?)
        }
        DataType::Json | DataType::Jsonb => return None,
    })
}

fn decode_bytes(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    loop {
        match take(bytes, 1)?[0] {
            0 => return Some(out),
            1 => out.push(take(bytes, 1)?[0].checked_sub(1)?),
            b => out.push(b),
        }
    }
}

/// `(a, b)=(1, x)`: an entry as error details name it.
pub fn describe(table: &Table, index: &Index, bytes: &[u8]) -> String {
    let names: Vec<&str> = index.keys().iter().map(|&c| table.columns[c].name.as_str()).collect();
    match decode_key(table, index, bytes) {
        Ok(values) => format!("({})={}", names.join(", "), RowText(&values[..names.len()])),
        Err(e) => e.to_string(),
    }
}
