//! Fields of COPY data: taken from a line, and written to one.
use super::options::{CopyFormat, Csv};
use std::ops::Range;
use terrace_engine::{EngineError, Result};

/// The fields of one line, kept in one buffer that the next line uses again.
#[derive(Default)]
pub(crate) struct Fields {
    bytes: Vec<u8>,
    /// `None`: NULL.
    fields: Vec<Option<Range<usize>>>,
}

impl Fields {
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// Bytes of all fields together.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// A field's bytes, escapes undone; `None` where the line has fewer, `Some(None)` for NULL.
    pub(crate) fn get(&self, at: usize) -> Option<Option<&[u8]>> {
        self.fields.get(at).map(|range| range.clone().map(|range| &self.bytes[range]))
    }

    pub(crate) fn split(&mut self, line: &[u8], format: &CopyFormat) -> Result<()> {
        self.bytes.clear();
        self.fields.clear();
        match &format.csv {
            None => self.split_text(line, format),
            Some(csv) => self.split_csv(line, format, csv),
        }
    }

    fn split_text(&mut self, line: &[u8], format: &CopyFormat) -> Result<()> {
        let mut at = 0;
        loop {
            let (raw, from) = (at, self.bytes.len());
            while at < line.len() && line[at] != format.delimiter {
                if line[at] == b'\\' {
                    // Behind all data it says nothing.
                    at = if at + 1 < line.len() { self.escape(line, at + 1)? } else { at + 1 };
                } else {
                    self.bytes.push(line[at]);
                    at += 1;
                }
            }
            // NULL is what is written, not what it means: `\\N` is the text `\N`.
            let null = line[raw..at] == *format.null.as_bytes();
            self.fields.push((!null).then_some(from..self.bytes.len()));
            if at == line.len() {
                return Ok(());
            }
            at += 1;
        }
    }

    /// What a backslash before `line[at]` makes of it; answers where the line goes on.
    fn escape(&mut self, line: &[u8], at: usize) -> Result<usize> {
        let digits = |from: usize, most: usize, is: fn(&u8) -> bool| {
            line[from..].iter().take(most).take_while(|b| is(b)).count()
        };
        let number = |range: Range<usize>, radix| {
            let text = std::str::from_utf8(&line[range]).expect("digits are ASCII");
            // Three octal digits may exceed a byte; the rest is cut, as in PostgreSQL.
            u32::from_str_radix(text, radix).expect("digits of this radix") as u8
        };
        let (byte, next) = match line[at] {
            b'b' => (8, at + 1),
            b'f' => (12, at + 1),
            b'n' => (b'\n', at + 1),
            b'r' => (b'\r', at + 1),
            b't' => (b'\t', at + 1),
            b'v' => (11, at + 1),
            b'0'..=b'7' => {
                let end = at + digits(at, 3, |b| (b'0'..=b'7').contains(b));
                (number(at..end, 8), end)
            }
            b'x' => match digits(at + 1, 2, u8::is_ascii_hexdigit) {
                0 => (b'x', at + 1),
                n => (number(at + 1..at + 1 + n, 16), at + 1 + n),
            },
            b'.' => return Err(EngineError::new("22P04", "end-of-copy marker corrupt")),
            other => (other, at + 1),
        };
        self.bytes.push(byte);
        Ok(next)
    }

    fn split_csv(&mut self, line: &[u8], format: &CopyFormat, csv: &Csv) -> Result<()> {
        let mut at = 0;
        loop {
            let from = self.bytes.len();
            let (mut quoted, mut was_quoted) = (false, false);
            while at < line.len() && (quoted || line[at] != format.delimiter) {
                let (byte, next) = (line[at], line.get(at + 1));
                at += 1;
                match byte {
                    _ if !quoted && byte == csv.quote => (quoted, was_quoted) = (true, true),
                    _ if !quoted => self.bytes.push(byte),
                    _ if byte == csv.escape && next.is_some_and(|n| *n == csv.escape || *n == csv.quote) => {
                        self.bytes.push(line[at]);
                        at += 1;
                    }
                    _ if byte == csv.quote => quoted = false,
                    _ => self.bytes.push(byte),
                }
            }
            if quoted {
                return Err(EngineError::new("22P04", "unterminated CSV quoted field"));
            }
            let number = self.fields.len();
            let may = if was_quoted { csv.force_null.has(number) } else { !csv.force_not_null.has(number) };
            let null = may && self.bytes[from..] == *format.null.as_bytes();
            self.fields.push((!null).then_some(from..self.bytes.len()));
            if at == line.len() {
                return Ok(());
            }
            at += 1;
        }
    }
}

impl CopyFormat {
    /// Writes the `number`th field of `of`, the delimiter before it included; `None` is NULL.
    pub fn write_field(&self, out: &mut Vec<u8>, number: usize, of: usize, value: Option<&[u8]>) {
        let quoted = self.csv.as_ref().is_some_and(|csv| csv.force_quote.has(number));
        self.write(out, (number, of), value, quoted);
    }

    /// Writes a column's name into the header, as a field that is in quotes only where it must be.
    pub fn write_name(&self, out: &mut Vec<u8>, number: usize, of: usize, name: &str) {
        self.write(out, (number, of), Some(name.as_bytes()), false);
    }

    fn write(&self, out: &mut Vec<u8>, (number, of): (usize, usize), value: Option<&[u8]>, quoted: bool) {
        if number > 0 {
            out.push(self.delimiter);
        }
        match (value, &self.csv) {
            (None, _) => out.extend_from_slice(self.null.as_bytes()),
            (Some(value), None) => self.write_text(out, value),
            (Some(value), Some(csv)) => {
                let special = |b: &u8| *b == self.delimiter || *b == csv.quote || *b == b'\n' || *b == b'\r';
                let needed = value == self.null.as_bytes() || value.iter().any(special);
                // Alone on its line it would end the data.
                let ends = of == 1 && value == b"\\.";
                if needed || ends || quoted {
                    out.push(csv.quote);
                    for b in value {
                        if *b == csv.quote || *b == csv.escape {
                            out.push(csv.escape);
                        }
                        out.push(*b);
                    }
                    out.push(csv.quote);
                } else {
                    out.extend_from_slice(value);
                }
            }
        }
    }

    fn write_text(&self, out: &mut Vec<u8>, value: &[u8]) {
        for b in value {
            let escape = match b {
                8 => b'b',
                12 => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                11 => b'v',
                b'\\' => b'\\',
                b if *b == self.delimiter => *b,
                _ => {
                    out.push(*b);
                    continue;
                }
            };
            out.extend_from_slice(&[b'\\', escape]);
        }
    }
}
