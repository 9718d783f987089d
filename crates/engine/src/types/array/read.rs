//! The text of an array to the texts of its items.
//!
//! 1. Blanks around an item do not count, those in quotes do. An unquoted NULL is no item. A backslash takes the next
//!    character as it is.
//! 2. What PostgreSQL reads as an array of several dimensions, or as one whose items do not begin with number 1, is
//!    refused (0A000).
use crate::error::{EngineError, Result};

/// What was read last.
#[derive(Clone, Copy, PartialEq)]
enum Read {
    Open,
    Comma,
    /// A part of an item without quotes.
    Item,
    /// All of an item in quotes.
    Quoted,
}

/// The items of an array's text; `None`: NULL. 22P02 where it is none.
pub fn items(text: &str) -> Result<Vec<Option<String>>> {
    Reader { text, rest: text.trim_start_matches(is_blank) }.items()
}

fn is_blank(c: char) -> bool {
    " \t\n\r\u{b}\u{c}".contains(c)
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
}

impl Reader<'_> {
    fn malformed(&self, detail: impl Into<String>) -> EngineError {
        let message = format!("malformed array literal: \"{}\"", self.text);
        EngineError::new("22P02", message).with_detail(detail.into())
    }

    fn unexpected(&self, c: char) -> EngineError {
        self.malformed(format!("Unexpected \"{c}\" character."))
    }

    fn items(&mut self) -> Result<Vec<Option<String>>> {
        let given = self.dimension()?;
        let Some(body) = self.rest.strip_prefix('{') else {
            return Err(self.malformed(match given {
                None => "Array value must start with \"{\" or dimension information.",
                Some(_) => "Array contents must start with \"{\".",
            }));
        };
        self.rest = body;
        let items = self.body()?;
        if !self.rest.trim_matches(is_blank).is_empty() {
            return Err(self.malformed("Junk after closing right brace."));
        }
        match given {
            Some((1, to)) if to == items.len() as i64 => Ok(items),
            Some((1, _)) => Err(self.malformed("Specified array dimensions do not match array contents.")),
            Some(_) => Err(EngineError::unsupported("arrays whose items do not begin with number 1 are not supported")),
            None => Ok(items),
        }
    }

    /// `[1:3]=` before the array: the numbers of the first and last item.
    fn dimension(&mut self) -> Result<Option<(i64, i64)>> {
        let Some(inner) = self.rest.strip_prefix('[') else { return Ok(None) };
        let missing = || self.malformed("Missing \"]\" after array dimensions.");
        let (inside, behind) = inner.split_once(']').ok_or_else(missing)?;
        let (from, to) = inside.split_once(':').unwrap_or(("1", inside));
        let number = |text: &str| text.trim_matches(is_blank).parse::<i64>();
        let (Ok(from), Ok(to)) = (number(from), number(to)) else {
            return Err(self.malformed("\"[\" must introduce explicitly-specified array dimensions."));
        };
        if to < from {
            return Err(EngineError::new("2202E", "upper bound cannot be less than lower bound"));
        }
        let behind = behind.trim_start_matches(is_blank);
        if behind.starts_with('[') {
            return Err(several());
        }
        let Some(behind) = behind.strip_prefix('=') else {
            return Err(self.malformed("Missing \"=\" after array dimensions."));
        };
        self.rest = behind.trim_start_matches(is_blank);
        Ok(Some((from, to)))
    }

    /// The items, and the brace behind them.
    fn body(&mut self) -> Result<Vec<Option<String>>> {
        let (mut items, mut last) = (vec![], Read::Open);
        // The item, how much of it counts, and whether it is surely not NULL.
        let (mut item, mut kept, mut escaped) = (String::new(), 0, false);
        let mut chars = self.rest.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => {
                    if last == Read::Quoted {
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
                '{' if last == Read::Open => return Err(several()),
                '{' => return Err(self.unexpected(c)),
                ',' | '}' if last == Read::Comma || (c == ',' && last == Read::Open) => {
                    return Err(self.unexpected(c));
                }
                ',' | '}' => {
                    if last != Read::Open {
                        item.truncate(kept);
                        let null = !escaped && item.eq_ignore_ascii_case("null");
                        items.push((!null).then(|| std::mem::take(&mut item)));
                        item.clear();
                        (kept, escaped) = (0, false);
                    }
                    if c == '}' {
                        self.rest = chars.as_str();
                        return Ok(items);
                    }
                    last = Read::Comma;
                }
                c if is_blank(c) => {
                    if last == Read::Item {
                        item.push(c);
                    }
                }
                _ if last == Read::Quoted => return Err(self.malformed("Unexpected array element.")),
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

fn several() -> EngineError {
    EngineError::unsupported("arrays of several dimensions are not supported")
}
