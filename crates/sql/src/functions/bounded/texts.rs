//! `repeat`, `lpad`, `rpad`, `replace`, `translate` and `||`: first how long each result is, then the results, into one
//! buffer.
//!
//! Source: PostgreSQL 15 documentation, "String Functions and Operators" (9.4).
use super::{PIECE, asked_for};
use crate::error::tunnel;
use crate::memory;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use datafusion::arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;
use rustc_hash::FxHashMap;
use terrace_engine::EngineError;

/// An argument: one text for all rows, or one for each.
pub(crate) enum Text {
    One(Option<String>),
    Each(StringArray),
}

impl Text {
    pub(crate) fn of(value: &ColumnarValue) -> Result<Text> {
        Ok(match value {
            ColumnarValue::Scalar(scalar) => match scalar {
                ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text) => {
                    Text::One(text.clone())
                }
                other => Text::One(match other.cast_to(&DataType::Utf8)? {
                    ScalarValue::Utf8(text) => text,
                    _ => None,
                }),
            },
            ColumnarValue::Array(array) => {
                let array: ArrayRef = match array.data_type() {
                    DataType::Utf8 => array.clone(),
                    _ => cast(array, &DataType::Utf8)?,
                };
                Text::Each(array.as_string::<i32>().clone())
            }
        })
    }

    pub(super) fn constant(text: &str) -> Text {
        Text::One(Some(text.to_owned()))
    }

    pub(super) fn get(&self, row: usize) -> Option<&str> {
        match self {
            Text::One(text) => text.as_deref(),
            Text::Each(texts) => texts.is_valid(row).then(|| texts.value(row)),
        }
    }

    /// Bytes; of NULL none.
    pub(super) fn length(&self, row: usize) -> u64 {
        self.get(row).map_or(0, |text| text.len() as u64)
    }
}

pub(super) fn numbers(value: &ColumnarValue, rows: usize) -> Result<Int64Array> {
    let array = cast(&value.to_array(rows)?, &DataType::Int64)?;
    Ok(array.as_primitive::<Int64Type>().clone())
}

fn number(numbers: &Int64Array, row: usize) -> Option<i64> {
    numbers.is_valid(row).then(|| numbers.value(row))
}

/// Where results are written, with a look every [`PIECE`] bytes at whether the statement may go on.
pub(super) struct Out {
    bytes: Vec<u8>,
    /// Bytes since the last look.
    since: u64,
}

impl Out {
    pub(super) fn new(bytes: Vec<u8>) -> Out {
        Out { bytes, since: 0 }
    }

    #[cfg(test)]
    pub(super) fn made(&self) -> usize {
        self.bytes.len()
    }

    fn look(&mut self, bytes: usize) -> Result<()> {
        self.since += bytes as u64;
        if self.since >= PIECE {
            self.since = 0;
            memory::check().map_err(tunnel)?;
        }
        Ok(())
    }

    pub(super) fn put(&mut self, text: &str) -> Result<()> {
        for piece in text.as_bytes().chunks(PIECE as usize) {
            self.bytes.extend_from_slice(piece);
            self.look(piece.len())?;
        }
        Ok(())
    }

    /// A text so many times: what there is of it is copied again and again.
    pub(super) fn put_times(&mut self, text: &str, times: u64) -> Result<()> {
        if text.is_empty() || times == 0 {
            return Ok(());
        }
        let start = self.bytes.len();
        // Whether it fits was asked before.
        let end = start + text.len() * times as usize;
        self.put(text)?;
        while self.bytes.len() < end {
            let there = self.bytes.len() - start;
            let whole = there.min((PIECE as usize).max(text.len())) / text.len() * text.len();
            let piece = whole.min(end - self.bytes.len());
            self.bytes.extend_from_within(start..start + piece);
            self.look(piece)?;
        }
        debug_assert_eq!(self.bytes.len(), end, "as many times as were asked for");
        Ok(())
    }
}

/// Makes `rows` results: `length` says how long each is (`None`: NULL), `write` writes it.
fn make(
    name: &str,
    rows: usize,
    mut length: impl FnMut(usize) -> Result<Option<u64>>,
    mut write: impl FnMut(usize, &mut Out) -> Result<()>,
) -> Result<StringArray> {
    let mut lengths = Vec::with_capacity(rows);
    let mut valid = Vec::with_capacity(rows);
    let mut read = 0usize;
    for row in 0..rows {
        let length = length(row)?;
        valid.push(length.is_some());
        lengths.push(length.unwrap_or(0));
        read += 1;
        if read.is_multiple_of(1024) {
            memory::check().map_err(tunnel)?;
        }
    }
    let total = asked_for(&lengths)?;
    if i32::try_from(total).is_err() {
        let error = EngineError::new("54000", format!("the results of {name} for a batch of rows exceed 2 GB"));
        return Err(tunnel(error));
    }
    let _asked = memory::ask(name, total).map_err(tunnel)?;
    let mut out = Out::new(memory::buffer(name, total).map_err(tunnel)?);
    let mut offsets = Vec::with_capacity(rows + 1);
    offsets.push(0);
    for (row, valid) in valid.iter().enumerate() {
        let before = out.bytes.len();
        if *valid {
            write(row, &mut out)?;
        }
        let made = (out.bytes.len() - before) as u64;
        debug_assert!(made <= lengths[row], "bounded.rs, invariant 1: {made} bytes, {} were asked for", lengths[row]);
        offsets.push(out.bytes.len() as i32);
    }
    let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
    Ok(StringArray::try_new(OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(out.bytes), nulls)?)
}

pub(super) fn repeat(name: &str, rows: usize, texts: &Text, times: &Int64Array) -> Result<StringArray> {
    let of = |row: usize| Some((texts.get(row)?, number(times, row)?.max(0) as u64));
    make(
        name,
        rows,
        |row| Ok(of(row).map(|(text, times)| (text.len() as u64).saturating_mul(times))),
        |row, out| of(row).map_or(Ok(()), |(text, times)| out.put_times(text, times)),
    )
}

/// What `lpad` and `rpad` make of one text.
struct Padded<'t> {
    /// What is kept of it.
    text: &'t str,
    fill: &'t str,
    times: u64,
    /// And so much of the fill's beginning.
    rest: &'t str,
}

/// The first so many characters.
fn beginning(text: &str, characters: u64) -> &str {
    match text.char_indices().nth(usize::try_from(characters).unwrap_or(usize::MAX)) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

impl<'t> Padded<'t> {
    fn of(text: &'t str, wanted: i64, fill: &'t str) -> Padded<'t> {
        let wanted = wanted.max(0) as u64;
        let text = beginning(text, wanted);
        let missing = wanted - text.chars().count() as u64;
        match fill.chars().count() as u64 {
            0 => Padded { text, fill, times: 0, rest: "" },
            each => Padded { text, fill, times: missing / each, rest: beginning(fill, missing % each) },
        }
    }

    fn length(&self) -> u64 {
        let filled = (self.fill.len() as u64).saturating_mul(self.times);
        filled.saturating_add((self.text.len() + self.rest.len()) as u64)
    }
}

pub(super) fn pad(
    name: &str,
    left: bool,
    rows: usize,
    texts: &Text,
    lengths: &Int64Array,
    fill: &Text,
) -> Result<StringArray> {
    let of = |row: usize| Some(Padded::of(texts.get(row)?, number(lengths, row)?, fill.get(row)?));
    make(
        name,
        rows,
        |row| Ok(of(row).map(|padded| padded.length())),
        |row, out| {
            let Some(padded) = of(row) else { return Ok(()) };
            if !left {
                out.put(padded.text)?;
            }
            out.put_times(padded.fill, padded.times)?;
            out.put(padded.rest)?;
            if left { out.put(padded.text) } else { Ok(()) }
        },
    )
}

/// Matches between two looks.
const MATCHES: u64 = 4096;

pub(super) fn replace(name: &str, rows: usize, [texts, from, to]: [&Text; 3]) -> Result<StringArray> {
    let of = |row: usize| Some((texts.get(row)?, from.get(row)?, to.get(row)?));
    let length = |row: usize| -> Result<Option<u64>> {
        let Some((text, from, to)) = of(row) else { return Ok(None) };
        let mut matches = 0u64;
        if !from.is_empty() {
            for _ in text.match_indices(from) {
                matches += 1;
                if matches.is_multiple_of(MATCHES) {
                    memory::check().map_err(tunnel)?;
                }
            }
        }
        Ok(Some(
            (text.len() as u64 - matches * from.len() as u64).saturating_add(matches.saturating_mul(to.len() as u64)),
        ))
    };
    make(name, rows, length, |row, out| {
        let Some((text, from, to)) = of(row) else { return Ok(()) };
        if from.is_empty() {
            return out.put(text);
        }
        let mut end = 0;
        for (at, _) in text.match_indices(from) {
            out.put(&text[end..at])?;
            out.put(to)?;
            end = at + from.len();
        }
        out.put(&text[end..])
    })
}

/// What becomes of each character; `None`: it goes.
type Table = FxHashMap<char, Option<char>>;

fn table(from: &str, to: &str) -> Table {
    let mut table = Table::default();
    let mut to = to.chars();
    for c in from.chars() {
        let becomes = to.next();
        // The first of the same counts.
        table.entry(c).or_insert(becomes);
    }
    table
}

pub(super) fn translate(name: &str, rows: usize, [texts, from, to]: [&Text; 3]) -> Result<StringArray> {
    let same = match (from, to) {
        (Text::One(Some(from)), Text::One(Some(to))) => Some(table(from, to)),
        _ => None,
    };
    let each = |row: usize| -> Option<(&str, Option<Table>)> {
        let (text, from, to) = (texts.get(row)?, from.get(row)?, to.get(row)?);
        Some((text, same.is_none().then(|| table(from, to))))
    };
    let becomes = |own: &Option<Table>, c: char| -> Option<char> {
        let table = own.as_ref().or(same.as_ref()).expect("one for the row, or for all");
        table.get(&c).copied().unwrap_or(Some(c))
    };
    let length = |row: usize| -> Result<Option<u64>> {
        let Some((text, own)) = each(row) else { return Ok(None) };
        let mut bytes = 0;
        for (n, c) in text.chars().enumerate() {
            bytes += becomes(&own, c).map_or(0, |c| c.len_utf8() as u64);
            if (n + 1).is_multiple_of(PIECE as usize) {
                memory::check().map_err(tunnel)?;
            }
        }
        Ok(Some(bytes))
    };
    make(name, rows, length, |row, out| {
        let Some((text, own)) = each(row) else { return Ok(()) };
        let mut buffer = [0; 4];
        text.chars().filter_map(|c| becomes(&own, c)).try_for_each(|c| out.put(c.encode_utf8(&mut buffer)))
    })
}

pub(super) fn join(name: &str, rows: usize, [left, right]: [&Text; 2]) -> Result<StringArray> {
    let of = |row: usize| Some((left.get(row)?, right.get(row)?));
    make(
        name,
        rows,
        |row| Ok(of(row).map(|(left, right)| (left.len() + right.len()) as u64)),
        |row, out| {
            let Some((left, right)) = of(row) else { return Ok(()) };
            out.put(left)?;
            out.put(right)
        },
    )
}
