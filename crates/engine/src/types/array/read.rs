//! The text of an array to the texts of its items.
//!
//! 1. Blanks around an item do not count, those in quotes do. An unquoted NULL is no item. A backslash takes the next
//!    character as it is.
//! 2. Its dimensions are those of its braces. What stands before them (`[0:1]=`) must agree, and says the numbers of
//!    the first items.
use super::shape::{Dimension, MOST_DIMENSIONS, Shape};
use crate::error::{EngineError, Result};

/// What was read last.
#[derive(Clone, Copy, PartialEq)]
enum Read {
    Nothing,
    Open,
    Close,
    /// The comma behind an item, and that behind a brace.
    Comma,
    OuterComma,
    /// A part of an item without quotes.
    Item,
    /// All of an item in quotes.
    Quoted,
}

/// The items of an array's text, whatever its shape; `None`: NULL. 22P02 where it is none.
pub fn items(text: &str) -> Result<Vec<Option<String>>> {
    read(text).map(|(_, items)| items)
}

/// The shape and the items of an array's text; `None`: NULL. 22P02 where it is none.
pub fn read(text: &str) -> Result<(Shape, Vec<Option<String>>)> {
    let mut reader = Reader { text, rest: text, items: vec![], lengths: vec![], open: vec![], leaf: None };
    reader.whole()
}

fn is_blank(c: char) -> bool {
    " \t\n\r\u{b}\u{c}".contains(c)
}

struct Reader<'a> {
    /// What errors show.
    text: &'a str,
    rest: &'a str,
    items: Vec<Option<String>>,
    /// How many parts the braces of each depth have, where one of them was closed.
    lengths: Vec<Option<i32>>,
    /// How many parts the open braces have so far.
    open: Vec<i32>,
    /// The depth at which items are.
    leaf: Option<usize>,
}

impl Reader<'_> {
    fn malformed(&self, detail: impl Into<String>) -> EngineError {
        let message = format!("malformed array literal: \"{}\"", self.text);
        EngineError::new("22P02", message).with_detail(detail.into())
    }

    fn unexpected(&self, c: char) -> EngineError {
        self.malformed(format!("Unexpected \"{c}\" character."))
    }

    fn unlike(&self) -> EngineError {
        self.malformed("Multidimensional arrays must have sub-arrays with matching dimensions.")
    }

    fn whole(&mut self) -> Result<(Shape, Vec<Option<String>>)> {
        let given = self.dimensions()?;
        if !self.rest.starts_with('{') {
            return Err(self.malformed(match given.is_empty() {
                true => "Array value must start with \"{\" or dimension information.",
                false => "Array contents must start with \"{\".",
            }));
        }
        self.text = self.rest;
        self.body()?;
        if !self.rest.trim_matches(is_blank).is_empty() {
            return Err(self.malformed("Junk after closing right brace."));
        }
        let lengths = self.lengths.iter().map(|length| length.unwrap_or(0)).filter(|_| !self.items.is_empty());
        let mut found: Vec<Dimension> = lengths.map(|length| Dimension { length, first: 1 }).collect();
        if !given.is_empty() {
            let wanted = given.iter().map(|given| given.length);
            if !wanted.eq(found.iter().map(|found| i64::from(found.length))) {
                return Err(self.malformed("Specified array dimensions do not match array contents."));
            }
            found.iter_mut().zip(&given).for_each(|(found, given)| found.first = given.first);
        }
        Ok((Shape::new(&found)?, std::mem::take(&mut self.items)))
    }

    /// `[1:3][0:1]=` before the braces.
    fn dimensions(&mut self) -> Result<Vec<Given>> {
        let mut given = vec![];
        loop {
            self.rest = self.rest.trim_start_matches(is_blank);
            let Some(inner) = self.rest.strip_prefix('[') else { break };
            if given.len() >= MOST_DIMENSIONS {
                return Err(Shape::too_many(given.len() + 1));
            }
            let number = |text: &'_ str| text.find(|c: char| !"0123456789+-".contains(c)).unwrap_or(text.len());
            let (mut text, mut first) = (inner, 1);
            if number(text) == 0 {
                return Err(self.malformed("\"[\" must introduce explicitly-specified array dimensions."));
            }
            if let Some(behind) = text[number(text)..].strip_prefix(':') {
                first = leading(&text[..number(text)]);
                text = behind;
                if number(text) == 0 {
                    return Err(self.malformed("Missing array dimension value."));
                }
            }
            let last = leading(&text[..number(text)]);
            let Some(behind) = text[number(text)..].strip_prefix(']') else {
                return Err(self.malformed("Missing \"]\" after array dimensions."));
            };
            if last < first {
                return Err(EngineError::new("2202E", "upper bound cannot be less than lower bound"));
            }
            given.push(Given { length: i64::from(last) - i64::from(first) + 1, first });
            self.rest = behind;
        }
        if !given.is_empty() {
            let Some(behind) = self.rest.strip_prefix('=') else {
                return Err(self.malformed("Missing \"=\" after array dimensions."));
            };
            self.rest = behind.trim_start_matches(is_blank);
        }
        Ok(given)
    }

    /// A brace opens.
    fn open(&mut self) -> Result<()> {
        if self.open.len() >= MOST_DIMENSIONS {
            return Err(Shape::too_many(self.open.len() + 1));
        }
        if self.leaf.is_some_and(|leaf| self.open.len() >= leaf) {
            return Err(self.unlike());
        }
        if let Some(outer) = self.open.last_mut() {
            *outer += 1;
        }
        self.open.push(0);
        if self.lengths.len() < self.open.len() {
            self.lengths.push(None);
        }
        Ok(())
    }

    /// A brace closes.
    fn close(&mut self) -> Result<()> {
        let length = self.open.pop().ok_or_else(|| self.malformed("Unmatched \"}\" character."))?;
        match self.lengths[self.open.len()].replace(length) {
            Some(known) if known != length => Err(self.unlike()),
            _ => Ok(()),
        }
    }

    fn push(&mut self, item: Option<String>) -> Result<()> {
        if *self.leaf.get_or_insert(self.open.len()) != self.open.len() {
            return Err(self.unlike());
        }
        let length = self.open.last_mut().expect("items are within braces");
        *length = length.checked_add(1).ok_or_else(Shape::too_large)?;
        self.items.push(item);
        Ok(())
    }

    /// The items, up to the brace that closes the first one.
    fn body(&mut self) -> Result<()> {
        let mut last = Read::Nothing;
        // The item, how much of it counts, and whether it is surely not NULL.
        let (mut item, mut kept, mut escaped) = (String::new(), 0, false);
        let mut chars = self.rest.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => {
                    if matches!(last, Read::Quoted | Read::Close | Read::OuterComma) {
                        return Err(self.unexpected(c));
                    }
                    item.push(chars.next().ok_or_else(|| self.malformed("Unexpected end of input."))?);
                    (last, kept, escaped) = (Read::Item, item.len(), true);
                }
                '"' if matches!(last, Read::Open | Read::Comma) => {
                    self.quoted(&mut chars, &mut item)?;
                    (last, kept, escaped) = (Read::Quoted, item.len(), true);
                }
                '"' => return Err(self.malformed("Unexpected array element.")),
                '{' if matches!(last, Read::Nothing | Read::Open | Read::OuterComma) => {
                    self.open()?;
                    last = Read::Open;
                }
                '{' => return Err(self.unexpected(c)),
                ',' | '}' if matches!(last, Read::Comma | Read::OuterComma) => return Err(self.unexpected(c)),
                ',' if last == Read::Open => return Err(self.unexpected(c)),
                '}' if last == Read::Open && self.open.len() > 1 => return Err(self.unexpected(c)),
                ',' | '}' => {
                    let of_item = matches!(last, Read::Item | Read::Quoted);
                    if of_item {
                        item.truncate(kept);
                        let null = !escaped && item.eq_ignore_ascii_case("null");
                        self.push((!null).then(|| std::mem::take(&mut item)))?;
                        item.clear();
                        (kept, escaped) = (0, false);
                    }
                    if c == ',' {
                        last = if of_item { Read::Comma } else { Read::OuterComma };
                        continue;
                    }
                    self.close()?;
                    last = Read::Close;
                    if self.open.is_empty() {
                        self.rest = chars.as_str();
                        return Ok(());
                    }
                }
                c if is_blank(c) => {
                    if last == Read::Item {
                        item.push(c);
                    }
                }
                _ if matches!(last, Read::Quoted | Read::Close | Read::OuterComma) => {
                    return Err(self.malformed("Unexpected array element."));
                }
                c => {
                    item.push(c);
                    (last, kept) = (Read::Item, item.len());
                }
            }
        }
        Err(self.malformed("Unexpected end of input."))
    }

    /// What stands in quotes, up to the last of them.
    fn quoted(&self, chars: &mut std::str::Chars<'_>, item: &mut String) -> Result<()> {
        let end = || self.malformed("Unexpected end of input.");
        loop {
            match chars.next().ok_or_else(end)? {
                '"' => return Ok(()),
                '\\' => item.push(chars.next().ok_or_else(end)?),
                c => item.push(c),
            }
        }
    }
}

/// A dimension that is written before the braces.
struct Given {
    length: i64,
    first: i32,
}

/// The number that a text begins with, as far as an int4 has it.
fn leading(text: &str) -> i32 {
    let signed = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = &signed[..signed.find(|c: char| !c.is_ascii_digit()).unwrap_or(signed.len())];
    let value = digits.bytes().fold(0i64, |value, digit| (value * 10 + i64::from(digit - b'0')).min(1 << 40));
    let value = if text.starts_with('-') { -value } else { value };
    value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}
