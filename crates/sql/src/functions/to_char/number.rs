//! Patterns of numbers.
//!
//! 1. A pattern is read whole before a number is: which signs it has, how many digits before the point and behind it.
//!    Signs that exclude each other are refused as PostgreSQL refuses them (42601).
//! 2. A number with more digits than the pattern has places gets `#` for each.
//! 3. A pattern's own letters are written as they are; of a text that is read (`read`) they skip one letter each.
//!
//! Source: PostgreSQL 15 documentation, tables 9.30 and 9.31. The locale is C: the point is `.`, groups are parted by
//! `,`, and there is no sign of a currency.
pub(crate) mod read;
mod write;

use terrace_engine::types::Decimal;
use terrace_engine::{EngineError, Result};

/// What a pattern asks for at a place.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    /// `9`, `0`.
    Digit {
        zero: bool,
    },
    /// `.`, `D`
    Point,
    /// `,`
    Comma,
    /// `G`
    Group,
    /// `L`
    Currency,
    Roman {
        capital: bool,
    },
    Ordinal {
        capital: bool,
    },
    /// `MI`
    Minus,
    /// `PL`
    Plus,
    /// `SG`
    Either,
    Text(String),
}

/// Where `S` puts the sign.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Anchor {
    None,
    Before,
    Behind,
}

/// What a whole pattern asks for.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Digits before the point, behind it, and those by which `V` moves it.
    before: i64,
    behind: i64,
    moved: i64,
    /// The first place that shows a zero, and the last one; from 0 and from 1.
    zeros: Option<i64>,
    last_zero: i64,
    fill: bool,
    point: bool,
    anchor: Anchor,
    /// Digits before `S`.
    before_sign: i64,
    bracket: bool,
    minus: bool,
    plus: bool,
    blank: bool,
    roman: bool,
    moves: bool,
    exponent: bool,
}

#[derive(Debug)]
pub(crate) struct Pattern {
    items: Vec<Item>,
    shape: Shape,
}

/// A number as it is given.
#[derive(Clone, Debug)]
pub(super) enum Given {
    Exact(Decimal),
    Whole(i64),
    /// With as many digits as count.
    Float(f64, usize),
}

const NAMES: [&str; 20] =
    ["EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", ",", ".", "0", "9", "B", "C", "D", "G", "L", "S", "V"];

/// The name that a text begins with, in capitals, and whether it is written so.
fn name_at(text: &str) -> Option<(&'static str, bool)> {
    NAMES.iter().find_map(|name| {
        let head = text.get(..name.len())?;
        let small = head == name.to_ascii_lowercase();
        (small || head == *name).then_some((*name, head == *name))
    })
}

fn wrong(message: &str) -> EngineError {
    EngineError::new("42601", message)
}

impl Pattern {
    pub(crate) fn read(text: &str) -> Result<Pattern> {
        let shape = Shape {
            before: 0,
            behind: 0,
            moved: 0,
            zeros: None,
            last_zero: 0,
            fill: false,
            point: false,
            anchor: Anchor::None,
            before_sign: 0,
            bracket: false,
            minus: false,
            plus: false,
            blank: false,
            roman: false,
            moves: false,
            exponent: false,
        };
        let mut pattern = Pattern { items: vec![], shape };
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            if let Some((name, capital)) = name_at(rest) {
                rest = &rest[name.len()..];
                pattern.shape.take(name)?;
                pattern.items.extend(item(name, capital));
            } else if next == '"' {
                let (quoted, behind) = quoted(&rest[1..]);
                pattern.items.extend(quoted.into_iter().map(Item::Text));
                rest = behind;
            } else {
                let own = if rest.starts_with("\\\"") { &rest[1..] } else { rest };
                let length = own.chars().next().map_or(0, char::len_utf8);
                pattern.items.push(Item::Text(own[..length].to_owned()));
                rest = &own[length..];
            }
        }
        Ok(pattern)
    }
}

/// The letters of a quoted text, and what is behind it.
fn quoted(text: &str) -> (Vec<String>, &str) {
    let (mut letters, mut rest) = (vec![], text.char_indices());
    while let Some((at, c)) = rest.next() {
        match c {
            '"' => return (letters, &text[at + 1..]),
            '\\' => letters.push(rest.next().map_or('\\', |(_, escaped)| escaped).to_string()),
            c => letters.push(c.to_string()),
        }
    }
    (letters, "")
}

/// `None`: it only says how the others are written.
fn item(name: &str, capital: bool) -> Option<Item> {
    Some(match name {
        "9" => Item::Digit { zero: false },
        "0" => Item::Digit { zero: true },
        "." | "D" => Item::Point,
        "," => Item::Comma,
        "G" => Item::Group,
        "L" => Item::Currency,
        "RN" => Item::Roman { capital },
        "TH" => Item::Ordinal { capital },
        "MI" => Item::Minus,
        "PL" => Item::Plus,
        "SG" => Item::Either,
        _ => return None,
    })
}

impl Shape {
    /// Invariant 1.
    fn take(&mut self, name: &str) -> Result<()> {
        if self.exponent && name != "EEEE" {
            return Err(wrong("\"EEEE\" must be the last pattern used"));
        }
        match name {
            "9" if self.bracket => return Err(wrong("\"9\" must be ahead of \"PR\"")),
            "9" if self.moves => self.moved += 1,
            "9" if self.point => self.behind += 1,
            "9" => self.before += 1,
            "0" if self.bracket => return Err(wrong("\"0\" must be ahead of \"PR\"")),
            "0" => {
                if self.zeros.is_none() && !self.point {
                    self.zeros = Some(self.before);
                }
                *(if self.point { &mut self.behind } else { &mut self.before }) += 1;
                self.last_zero = self.before + self.behind;
            }
            "B" => self.blank |= self.before == 0 && self.behind == 0 && self.zeros.is_none(),
            "." | "D" if self.point => return Err(wrong("multiple decimal points")),
            "." | "D" | "V" if self.moves && name != "V" || self.point => {
                return Err(wrong("cannot use \"V\" and decimal point together"));
            }
            "." | "D" => self.point = true,
            "V" => self.moves = true,
            "FM" => self.fill = true,
            "S" => self.take_sign()?,
            "MI" | "PL" | "SG" if self.anchor != Anchor::None => {
                return Err(wrong(&format!("cannot use \"S\" and \"{name}\" together")));
            }
            "MI" => self.minus = true,
            "PL" => self.plus = true,
            "SG" => (self.minus, self.plus) = (true, true),
            "PR" if self.anchor != Anchor::None || self.plus || self.minus => {
                return Err(wrong("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
            }
            "PR" => self.bracket = true,
            "RN" => self.roman = true,
            "EEEE" => self.take_exponent()?,
            _ => {}
        }
        Ok(())
    }

    fn take_sign(&mut self) -> Result<()> {
        if self.anchor != Anchor::None {
            return Err(wrong("cannot use \"S\" twice"));
        }
        if self.plus || self.minus || self.bracket {
            return Err(wrong("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
        }
        (self.anchor, self.before_sign) = if self.point { (Anchor::Behind, 0) } else { (Anchor::Before, self.before) };
        Ok(())
    }

    fn take_exponent(&mut self) -> Result<()> {
        if self.exponent {
            return Err(wrong("cannot use \"EEEE\" twice"));
        }
        let signs = self.anchor != Anchor::None || self.bracket || self.minus || self.plus;
        if signs || self.blank || self.fill || self.roman || self.moves {
            let error = wrong("\"EEEE\" is incompatible with other formats");
            let detail = "\"EEEE\" may only be used together with digit and decimal point patterns.";
            return Err(error.with_detail(detail.to_owned()));
        }
        self.exponent = true;
        Ok(())
    }
}

/// A number with so many digits behind the point, times a power of ten; its sign is in front.
fn exact(number: &Decimal, moved: i64, behind: i64) -> Result<String> {
    let number = match moved {
        0 => number.clone(),
        moved => number.multiply(&Decimal::parse(&format!("1e{moved}"))?)?,
    };
    Ok(number.round(i32::try_from(behind).unwrap_or(i32::MAX))?.to_string())
}
