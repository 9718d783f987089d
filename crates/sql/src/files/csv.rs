//! CSV files in FROM. Lines and fields are those of `COPY ... (FORMAT csv, HEADER)`: what is not quoted and empty is
//! NULL.
//!
//! 1. The first line has the columns' names.
//! 2. A column's type is the first of [`TYPES`] in whose own form all its values in the first [`LOOKED_AT`] lines are
//!    written, so that nothing of them is lost: `007`, `+1` and `5.` are texts. Where there are no values, it is text.
use super::{Column, FileScan, ROWS, Take, opened, unread};
use crate::error::from_arrow;
use crate::statement::copy::fields::Fields;
use crate::statement::copy::lines::{Line, Lines};
use crate::statement::copy::options::CopyFormat;
use crate::values::ColumnBuilder;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use std::fs::File;
use std::io::Read;
use terrace_engine::{DataType, Datum, EngineError, Result};

/// Lines that tell the columns' types.
const LOOKED_AT: usize = 1000;
/// Bytes that are read at once.
const PART: usize = 256 << 10;
/// What some programs write in front of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The types a column may have besides text.
const TYPES: [DataType; 6] = [
    DataType::Bool,
    DataType::Int8,
    DataType::Numeric(None),
    DataType::Date,
    DataType::Timestamp,
    DataType::Timestamptz,
];

/// A file's lines.
struct Text<'p> {
    path: &'p str,
    file: File,
    lines: Lines,
    format: CopyFormat,
    fields: Fields,
    begun: bool,
    ended: bool,
}

impl<'p> Text<'p> {
    fn open(path: &'p str, delimiter: u8) -> Result<Text<'p>> {
        let format = CopyFormat::csv(delimiter);
        let lines = Lines::new(format.clone());
        Ok(Text { path, file: opened(path)?, lines, format, fields: Fields::default(), begun: false, ended: false })
    }

    /// Takes the next line apart, and answers its number; `None` at the end.
    fn next(&mut self) -> Result<Option<u64>> {
        loop {
            match self.lines.next(self.ended) {
                Ok(Some(Line { number, bytes })) => {
                    let split = self.fields.split(bytes, &self.format);
                    return split.map(|()| Some(number)).map_err(|error| at_line(self.path, number, error));
                }
                Ok(None) if self.ended => return Ok(None),
                Ok(None) => self.read_on()?,
                Err(error) => return Err(at_line(self.path, self.lines.number(), error)),
            }
        }
    }

    fn read_on(&mut self) -> Result<()> {
        let mut part = vec![];
        (&mut self.file).take(PART as u64).read_to_end(&mut part).map_err(|error| unread(self.path, &error))?;
        self.ended = part.is_empty();
        let marked = !std::mem::replace(&mut self.begun, true) && part.starts_with(MARK);
        self.lines.push(&part[if marked { MARK.len() } else { 0 }..]);
        Ok(())
    }

    /// The names of the columns: of the first line.
    fn header(&mut self) -> Result<Vec<String>> {
        let Some(number) = self.next()? else { return Ok(vec![]) };
        let name = |at| Ok(self.text(at, number)?.map_or_else(|| format!("column{}", at + 1), str::to_owned));
        (0..self.fields.len()).map(name).collect()
    }

    /// A field of the line; `None`: it is NULL.
    fn text(&self, at: usize, number: u64) -> Result<Option<&str>> {
        let Some(field) = self.fields.get(at) else {
            let error = EngineError::new("22P04", format!("missing data for column {}", at + 1));
            return Err(at_line(self.path, number, error));
        };
        let text = field.map(|bytes| std::str::from_utf8(bytes).map_err(|_| EngineError::not_utf8(bytes)));
        text.transpose().map_err(|error| at_line(self.path, number, error))
    }

    fn check_width(&self, columns: usize, number: u64) -> Result<()> {
        match self.fields.len() > columns {
            true => Err(at_line(self.path, number, EngineError::new("22P04", "extra data after last expected column"))),
            false => Ok(()),
        }
    }
}

fn at_line(path: &str, number: u64, error: EngineError) -> EngineError {
    error.with_context(format!("file \"{path}\", line {number}"))
}

/// Invariants 1 and 2.
pub(super) fn columns(path: &str, delimiter: u8) -> Result<Vec<Column>> {
    let mut text = Text::open(path, delimiter)?;
    let names = text.header()?;
    if names.is_empty() {
        return Err(EngineError::new("22P04", format!("file \"{path}\" has no line with the columns' names")));
    }
    let mut possible = vec![TYPES.to_vec(); names.len()];
    let mut seen = vec![false; names.len()];
    for _ in 0..LOOKED_AT {
        let Some(number) = text.next()? else { break };
        text.check_width(names.len(), number)?;
        for at in 0..names.len() {
            if let Some(value) = text.text(at, number)? {
                possible[at].retain(|of| is_written_as(value, *of));
                seen[at] = true;
            }
        }
    }
    let chosen = possible.iter().zip(seen).map(|(types, seen)| match types.first() {
        Some(of) if seen => *of,
        _ => DataType::Text,
    });
    Ok(names.into_iter().zip(chosen).collect())
}

/// Whether a text is what a value of that type is written as.
fn is_written_as(text: &str, of: DataType) -> bool {
    let form = match of {
        DataType::Bool => matches!(text, "true" | "false"),
        DataType::Int8 => is_number(text, false),
        DataType::Numeric(_) => is_number(text, true),
        DataType::Date => text.len() == 10 && is_date(text),
        DataType::Timestamp => is_moment(text, false),
        DataType::Timestamptz => is_moment(text, true),
        _ => true,
    };
    form && of.parse(text).is_ok()
}

/// Digits without zeros in front that mean nothing; with a `point` there may be a fraction, and an exponent.
pub(super) fn is_number(text: &str, point: bool) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let plain = is_digits(whole) && (whole == "0" || !whole.starts_with('0')) && unsigned.len() < 1000;
    plain
        && (point || (fraction.is_none() && exponent.is_none()))
        && [fraction, exponent].into_iter().flatten().all(is_digits)
}

/// `2026-11-27`.
fn is_date(text: &str) -> bool {
    let form = |(at, b): (usize, u8)| if at == 4 || at == 7 { b == b'-' } else { b.is_ascii_digit() };
    text.len() == 10 && text.bytes().enumerate().all(form)
}

/// `2026-11-27 12:30:00.25`, or with a `T`; `zoned`: and a zone as a number, or `Z`.
fn is_moment(text: &str, zoned: bool) -> bool {
    let (Some(date), Some(separator), Some(time)) = (text.get(..10), text.get(10..11), text.get(11..)) else {
        return false;
    };
    let zone = time.find(['+', '-', 'Z']);
    let (time, zone) = time.split_at(zone.unwrap_or(time.len()));
    let is_time = time.len() >= 5 && time.bytes().all(|b| b.is_ascii_digit() || b == b':' || b == b'.');
    let fraction = time.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    is_date(date) && matches!(separator, " " | "T") && is_time && fraction <= 6 && zone.is_empty() != zoned
}

pub(super) fn read(scan: &FileScan, delimiter: u8, take: Take<'_>) -> Result<()> {
    let mut text = Text::open(&scan.table.path, delimiter)?;
    text.header()?;
    loop {
        let mut columns: Vec<ColumnBuilder> =
            scan.wanted.iter().map(|at| ColumnBuilder::new(scan.table.types[*at], ROWS)).collect();
        let mut rows = 0;
        while rows < ROWS
            && let Some(number) = text.next()?
        {
            text.check_width(scan.table.types.len(), number)?;
            text.text(scan.table.types.len() - 1, number)?;
            for (at, column) in scan.wanted.iter().zip(&mut columns) {
                column.push(value(&text, scan, *at, number)?.as_ref());
            }
            rows += 1;
        }
        if rows == 0 {
            return Ok(());
        }
        let arrays = columns.into_iter().map(ColumnBuilder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(scan.schema.clone(), arrays, &options).map_err(from_arrow)?;
        if !take(batch) {
            return Ok(());
        }
    }
}

/// A field as its column's type.
fn value(text: &Text<'_>, scan: &FileScan, at: usize, number: u64) -> Result<Datum> {
    let Some(field) = text.text(at, number)? else { return Ok(Datum::Null) };
    let (of, title) = (scan.table.types[at], &scan.table.titles[at]);
    if of != DataType::Text && !is_written_as(field, of) {
        let message = format!("invalid input syntax for type {}: \"{field}\"", of.base_name());
        let error = EngineError::new("22P02", message);
        let hint = format!(
            "Column \"{title}\" has this type because the first {LOOKED_AT} lines fit it. COPY reads the file into a \
             table whose types you choose."
        );
        return Err(at_line(text.path, number, error).with_hint(hint));
    }
    of.parse(field).map_err(|error| at_line(text.path, number, error))
}
