//! COPY's binary format: rows from parts that are cut anywhere, and what stands before and behind rows that go out.
//!
//! 1. A row is looked for when all of its fields have come. So memory holds one row and one message.
//! 2. Behind the mark of the end (a count of -1) nothing may come. Without the mark, the data ends between two rows.
//! 3. What the bytes of a field mean is the server's to say ([`ReadField`]): they are those of a binary parameter.
//!
//! Source: PostgreSQL 15 documentation, COPY, "Binary Format".
use terrace_engine::{DataType, Datum, EngineError, Result};

/// Reads the bytes of a field as a value of the column's type.
pub type ReadField = fn(&[u8], DataType) -> Result<Datum>;

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// No flags, no extension.
pub const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Behind the last row.
pub const TRAILER: &[u8; 2] = &[0xff, 0xff];

/// Longest row, in bytes.
const ROW_MAX: usize = 1 << 30;

#[derive(Clone, Copy, PartialEq)]
enum State {
    Header,
    Rows,
    /// Behind the mark of the end (invariant 2).
    Over,
}

/// A field: where it is in what has come; `None`: NULL.
type Field = Option<std::ops::Range<usize>>;

pub(crate) struct Tuples {
    state: State,
    buffer: Vec<u8>,
    /// Where the row that is looked for begins.
    begun: usize,
    fields: Vec<Field>,
    number: u64,
}

/// What has come ends before what is wanted.
struct Short;

fn bad(message: impl Into<String>) -> EngineError {
    EngineError::new("22P04", message)
}

impl Tuples {
    pub(crate) fn new() -> Tuples {
        Tuples { state: State::Header, buffer: vec![], begun: 0, fields: vec![], number: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.begun);
        self.begun = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Of the row that was found last, or that an error is in, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The fields of the row that was found last.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.fields.iter().map(|field| field.clone().map(|range| &self.buffer[range]))
    }

    /// Whether there is a next whole row of so many columns; `at_end`: what is there is all there will be. An error
    /// comes with the column that it is in.
    pub(crate) fn next(&mut self, columns: usize, at_end: bool) -> Result<bool, (EngineError, Option<usize>)> {
        let of_row = |error| (error, None);
        if self.state == State::Header && !self.header(at_end).map_err(of_row)? {
            return Ok(false);
        }
        let left = &self.buffer[self.begun..];
        if self.state == State::Over {
            return if left.is_empty() { Ok(false) } else { Err(of_row(bad("received copy data after EOF marker"))) };
        }
        // Half of a count at the end is none, as PostgreSQL takes it.
        let Some(count) = left.first_chunk().map(|count| i16::from_be_bytes(*count)) else { return Ok(false) };
        if count == -1 {
            (self.state, self.begun, self.number) = (State::Over, self.begun + 2, self.number + 1);
            return self.next(columns, at_end);
        }
        if usize::try_from(count) != Ok(columns) {
            self.number += 1;
            return Err(of_row(bad(format!("row field count is {count}, expected {columns}"))));
        }
        match self.row(columns) {
            Ok(end) => {
                (self.begun, self.number) = (end, self.number + 1);
                Ok(true)
            }
            Err((Ok(Short), _)) if !at_end && self.buffer.len() - self.begun <= ROW_MAX => Ok(false),
            Err((short, column)) => {
                self.number += 1;
                let error = match short {
                    Ok(Short) if at_end => bad("unexpected EOF in COPY data"),
                    Ok(Short) => EngineError::new("54000", format!("a row of COPY data exceeds {ROW_MAX} bytes")),
                    Err(error) => error,
                };
                Err((error, Some(column)))
            }
        }
    }

    /// Finds the fields of the row that begins; answers where it ends.
    fn row(&mut self, columns: usize) -> Result<usize, (Result<Short, EngineError>, usize)> {
        self.fields.clear();
        let mut at = self.begun + 2;
        for column in 0..columns {
            let Some(length) = self.buffer.get(at..).and_then(|rest| rest.first_chunk()) else {
                return Err((Ok(Short), column));
            };
            at += 4;
            let field = match i32::from_be_bytes(*length) {
                -1 => None,
                length => {
                    let Ok(length) = usize::try_from(length) else {
                        return Err((Err(bad("invalid field size")), column));
                    };
                    if self.buffer.len() - at < length {
                        return Err((Ok(Short), column));
                    }
                    at += length;
                    Some(at - length..at)
                }
            };
            self.fields.push(field);
        }
        assert!(at <= self.buffer.len(), "invariant 1: the row has come");
        Ok(at)
    }

    /// Passes over the header; false: it has not come yet.
    fn header(&mut self, at_end: bool) -> Result<bool> {
        let number =
            |at: usize| self.buffer.get(at..).and_then(|rest| rest.first_chunk()).map(|n| u32::from_be_bytes(*n));
        let given = &self.buffer[..self.buffer.len().min(SIGNATURE.len())];
        if !SIGNATURE.starts_with(given) || (at_end && given.len() < SIGNATURE.len()) {
            return Err(bad("COPY file signature not recognized"));
        }
        let missing = |what: &str| match at_end {
            true => Err(bad(format!("invalid COPY file header ({what})"))),
            false => Ok(false),
        };
        let Some(flags) = number(SIGNATURE.len()) else { return missing("missing flags") };
        if flags & (1 << 16) != 0 {
            return Err(bad("invalid COPY file header (WITH OIDS)"));
        }
        if flags >> 16 != 0 {
            return Err(bad("unrecognized critical flags in COPY file header"));
        }
        let Some(extension) = number(SIGNATURE.len() + 4) else { return missing("missing length") };
        if extension > i32::MAX as u32 {
            return Err(bad("invalid COPY file header (missing length)"));
        }
        let end = HEADER.len() + extension as usize;
        if self.buffer.len() < end {
            return missing("wrong length");
        }
        (self.state, self.begun) = (State::Rows, end);
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
