//! `to_number`: a number as a pattern has it written.
//!
//! 1. Each digit of the pattern takes a digit where the text has one; what the text has besides is passed by, as far as
//!    the pattern has something else there.
use super::{Anchor, Item, Pattern};
use terrace_engine::types::Decimal;
use terrace_engine::{Datum, EngineError, Result};

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    sign: u8,
    digits: String,
    before: i64,
    behind: i64,
    point: bool,
}

/// `to_number(text, pattern)`.
pub(crate) fn number(text: &str, pattern: &str) -> Result<Datum> {
    if pattern.is_empty() {
        return Ok(Datum::Null);
    }
    let pattern = Pattern::read(pattern)?;
    if pattern.shape.exponent || pattern.shape.roman {
        let what = if pattern.shape.roman { "\"RN\"" } else { "\"EEEE\"" };
        return Err(EngineError::new("0A000", format!("{what} not supported for input")));
    }
    let mut reader =
        Reader { text: text.as_bytes(), at: 0, sign: b' ', digits: String::new(), before: 0, behind: 0, point: false };
    for item in &pattern.items {
        if reader.at >= reader.text.len() {
            break;
        }
        reader.take(item, &pattern);
    }
    let digits = reader.digits.trim_end_matches('.');
    let digits = if digits.starts_with('.') { format!("0{digits}") } else { digits.to_owned() };
    let read = Decimal::parse(&format!("{}{digits}", char::from(reader.sign)))?;
    let read = match pattern.shape.moved {
        0 => read,
        moved => read.multiply(&Decimal::from_int(10).power(&Decimal::from_int(-moved))?)?,
    };
    Ok(Datum::Decimal(read.encode()))
}

impl Reader<'_> {
    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, item: &Item, pattern: &Pattern) {
        match item {
            Item::Digit { .. } | Item::Point => {
                self.digit(matches!(item, Item::Point), pattern);
                self.at += 1;
            }
            Item::Comma | Item::Group if self.byte() == Some(b',') => self.at += 1,
            Item::Comma | Item::Group => {}
            Item::Currency => self.pass(1),
            Item::Ordinal { .. } => self.pass(2),
            Item::Roman { .. } => {}
            Item::Minus | Item::Plus | Item::Either => {
                let wanted: &[u8] = match item {
                    Item::Minus => b"-",
                    Item::Plus => b"+",
                    _ => b"-+",
                };
                match self.byte() {
                    Some(sign) if wanted.contains(&sign) => {
                        self.sign = sign;
                        self.at += 1;
                    }
                    _ => self.pass(1),
                }
            }
            // Any letter stands for the pattern's.
            Item::Text(_) => {
                self.at += 1;
                while self.byte().is_some_and(|byte| byte & 0xc0 == 0x80) {
                    self.at += 1;
                }
            }
        }
    }

    /// So many letters that belong to no number.
    fn pass(&mut self, most: usize) {
        for _ in 0..most {
            match self.byte() {
                Some(b'0'..=b'9' | b'.' | b',' | b'+' | b'-') | None => return,
                Some(_) => self.at += 1,
            }
            while self.byte().is_some_and(|byte| byte & 0xc0 == 0x80) {
                self.at += 1;
            }
        }
    }

    /// A digit or the point; the caller steps over what was read.
    fn digit(&mut self, point: bool, pattern: &Pattern) {
        let shape = &pattern.shape;
        if self.byte() == Some(b' ') {
            self.at += 1;
        }
        if self.byte().is_none() {
            return;
        }
        if self.sign == b' ' && !point && self.before + self.behind == 0 {
            let bracket = shape.bracket && self.byte() == Some(b'<');
            match self.byte() {
                Some(b'-') => self.sign = b'-',
                Some(b'+') => self.sign = b'+',
                _ if bracket && shape.anchor != Anchor::Before => self.sign = b'-',
                _ => {}
            }
            if self.sign != b' ' {
                self.at += 1;
            }
        }
        let mut read = false;
        match self.byte() {
            None => return,
            Some(digit @ b'0'..=b'9') => {
                if self.point && self.behind == shape.behind {
                    return;
                }
                self.digits.push(char::from(digit));
                *(if self.point { &mut self.behind } else { &mut self.before }) += 1;
                read = true;
            }
            Some(b'.') if shape.point && !self.point => {
                self.digits.push('.');
                (self.point, read) = (true, true);
            }
            Some(_) => {}
        }
        if self.sign == b' ' && self.before + self.behind > 0 {
            self.sign_behind(read, pattern);
        }
    }

    /// A sign right behind the last digit.
    fn sign_behind(&mut self, read: bool, pattern: &Pattern) {
        let shape = &pattern.shape;
        let next = self.text.get(self.at + 1).copied();
        if shape.anchor != Anchor::None {
            if read && let Some(sign @ (b'-' | b'+')) = next {
                (self.sign, self.at) = (sign, self.at + 1);
            }
        } else if !read
            && (shape.plus || shape.minus)
            && let Some(sign @ (b'-' | b'+')) = self.byte()
        {
            self.sign = sign;
        }
    }
}
