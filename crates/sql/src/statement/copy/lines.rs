//! Lines of COPY data, from parts that are cut anywhere.
//!
//! 1. How the first line ends (`\n`, `\r\n` or `\r`) is how all end; another unquoted end is an error (22P04).
//! 2. In text format a backslash takes the next byte with it; in CSV a line goes on within quotes.
//! 3. A line `\.` ends the data; what follows it is passed over. Without an end it is no such line, but data.
use super::options::CopyFormat;
use terrace_engine::{EngineError, Result};

/// Longest line, in bytes.
const LINE_MAX: usize = 64 << 20;
/// Bytes of data that an error's context shows.
const SHOWN_MAX: usize = 100;

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Lf,
    CrLf,
    Cr,
}

/// A line without its end.
pub(crate) struct Line<'l> {
    /// From 1.
    pub(crate) number: u64,
    pub(crate) bytes: &'l [u8],
}

impl Line<'_> {
    pub(crate) fn shown(&self) -> String {
        shown(self.bytes)
    }
}

/// Data in quotes, as an error shows it: cut, if long.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(SHOWN_MAX)];
    let rest = if bytes.len() > SHOWN_MAX { "..." } else { "" };
    format!("\"{}{rest}\"", String::from_utf8_lossy(cut).trim_end_matches('\u{fffd}'))
}

pub(crate) struct Lines {
    format: CopyFormat,
    buffer: Vec<u8>,
    /// Where the line that is looked for begins.
    begun: usize,
    /// How far it has been looked for.
    scanned: usize,
    /// Of the line so far: the next byte is taken as it is (text), within quotes (CSV), behind an escape in quotes.
    escaped: bool,
    quoted: bool,
    end: Option<End>,
    /// `\.` was seen.
    over: bool,
    number: u64,
}

/// Where a line ends: its length and that of its end.
type Found = (usize, usize);

impl Lines {
    pub(crate) fn new(format: CopyFormat) -> Lines {
        Lines {
            format,
            buffer: vec![],
            begun: 0,
            scanned: 0,
            escaped: false,
            quoted: false,
            end: None,
            over: false,
            number: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.over {
            return;
        }
        self.check();
        self.buffer.drain(..self.begun);
        self.scanned -= self.begun;
        self.begun = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// What is looked through has come, and belongs to the line that is looked for.
    fn check(&self) {
        let (begun, scanned, come) = (self.begun, self.scanned, self.buffer.len());
        assert!(begun <= scanned && scanned <= come, "{begun} <= {scanned} <= {come}");
    }

    /// Of the line that was found last, or that an error is in.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The next whole line; `at_end`: what is there is all there will be.
    pub(crate) fn next(&mut self, at_end: bool) -> Result<Option<Line<'_>>> {
        if self.over {
            return Ok(None);
        }
        let found = match self.find(at_end) {
            Ok(found) => found,
            Err(e) => {
                self.number += 1;
                return Err(e);
            }
        };
        let Some((length, end)) = found else {
            if self.buffer.len() - self.begun > LINE_MAX {
                self.number += 1;
                return Err(EngineError::new("54000", format!("a line of COPY data exceeds {LINE_MAX} bytes")));
            }
            return Ok(None);
        };
        assert!(!self.quoted, "invariant 2: a line does not end within quotes");
        let from = self.begun;
        self.begun += length + end;
        self.scanned = self.begun;
        self.check();
        let bytes = &self.buffer[from..from + length];
        if bytes == b"\\." && end > 0 {
            self.over = true;
            return Ok(None);
        }
        self.number += 1;
        let number = self.number;
        if self.format.csv.is_some() {
            self.number += bytes.iter().filter(|b| **b == b'\n').count() as u64;
        }
        Ok(Some(Line { number, bytes }))
    }

    fn find(&mut self, at_end: bool) -> Result<Option<Found>> {
        while self.scanned < self.buffer.len() {
            let byte = self.buffer[self.scanned];
            match &self.format.csv {
                None if self.escaped => self.escaped = false,
                None if byte == b'\\' => self.escaped = true,
                Some(csv) if self.quoted => {
                    // With one character for both, a quote in quotes ends them, and the next begins them again.
                    if byte == csv.escape && csv.escape != csv.quote {
                        self.escaped = !self.escaped;
                    } else {
                        self.quoted = byte != csv.quote || self.escaped;
                        self.escaped = false;
                    }
                }
                Some(csv) if byte == csv.quote => self.quoted = true,
                _ if byte == b'\n' || byte == b'\r' => match self.line_end(byte, at_end)? {
                    Some(end) => return Ok(Some((self.scanned - self.begun, end))),
                    None => return Ok(None),
                },
                _ => {}
            }
            self.scanned += 1;
        }
        if !at_end {
            return Ok(None);
        }
        if self.quoted {
            return Err(EngineError::new("22P04", "unterminated CSV quoted field"));
        }
        let rest = self.buffer.len() - self.begun;
        Ok((rest > 0).then_some((rest, 0)))
    }

    /// The length of the line's end that begins with this byte; `None` where that cannot be said yet.
    fn line_end(&mut self, byte: u8, at_end: bool) -> Result<Option<usize>> {
        let end = match (byte, self.buffer.get(self.scanned + 1)) {
            (b'\n', _) => End::Lf,
            (_, Some(b'\n')) => End::CrLf,
            (_, None) if !at_end && self.end != Some(End::Cr) => return Ok(None),
            _ => End::Cr,
        };
        // `\r\n` where lines end in `\r`: an empty line follows, ending in a stray `\n`.
        let expected = *self.end.get_or_insert(end);
        if end != expected {
            let (name, sign) = if byte == b'\n' { ("newline", "\\n") } else { ("carriage return", "\\r") };
            let (what, hint) = match self.format.csv {
                None => ("literal", format!("Use \"{sign}\" to represent {name}.")),
                Some(_) => ("unquoted", format!("Use quoted CSV field to represent {name}.")),
            };
            return Err(EngineError::new("22P04", format!("{what} {name} found in data")).with_hint(hint));
        }
        Ok(Some(if end == End::CrLf { 2 } else { 1 }))
    }
}
