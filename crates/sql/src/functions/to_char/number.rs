//! Patterns of numbers: digits `9` and `0`, the point (`.`, `D`), groups (`,`, `G`), and `FM` at the beginning.
//!
//! 1. Without `FM` the answer has a place for the sign, one for each digit and each group mark of the pattern; what is
//!    not needed of them is blank. The sign stands before the first that is not.
//! 2. A number with more digits than the pattern gets `#` for each.
use super::refused;
use terrace_engine::types::{Numeric, divide_rounded, power_of_ten};
use terrace_engine::{EngineError, Result};

/// Digits in all that numbers have.
const MOST: usize = 38;

pub(super) struct Pattern {
    fill: bool,
    /// Before the point: `9`, `0` and `,`.
    whole: Vec<u8>,
    point: bool,
    /// Behind it: `9` and `0`.
    fraction: Vec<u8>,
}

impl Pattern {
    pub(super) fn read(text: &str) -> Result<Pattern> {
        let rest = text.strip_prefix("FM").or_else(|| text.strip_prefix("fm"));
        let mut pattern = Pattern { fill: rest.is_some(), whole: vec![], point: false, fraction: vec![] };
        for part in rest.unwrap_or(text).chars() {
            match part {
                '9' | '0' if pattern.point => pattern.fraction.push(part as u8),
                '9' | '0' => pattern.whole.push(part as u8),
                // One that begins the number, or stands behind the point, is no group's.
                ',' | 'G' | 'g' if !pattern.point && !pattern.whole.is_empty() => pattern.whole.push(b','),
                '.' | 'D' | 'd' if !pattern.point => pattern.point = true,
                other => return Err(refused(&other.to_string(), text)),
            }
        }
        let digits = pattern.whole_digits() + pattern.fraction.len();
        match pattern.whole_digits() {
            0 => Err(EngineError::unsupported(format!(
                "the pattern \"{text}\" of to_char, without digits before the point"
            ))),
            _ if digits > MOST => {
                Err(EngineError::unsupported(format!("a pattern of to_char of more than {MOST} digits")))
            }
            _ => Ok(pattern),
        }
    }

    fn whole_digits(&self) -> usize {
        self.whole.iter().filter(|c| **c != b',').count()
    }

    pub(super) fn write(&self, number: Numeric) -> String {
        let places = self.fraction.len() as u8;
        let unscaled = match number.scale.checked_sub(places) {
            Some(more) => Some(divide_rounded(number.unscaled, power_of_ten(more))),
            // More digits than there are: too many for any pattern.
            None => number.unscaled.checked_mul(power_of_ten(places - number.scale)),
        };
        let negative = unscaled.unwrap_or(number.unscaled) < 0;
        let unit = power_of_ten(places).unsigned_abs();
        let size = unscaled.map(i128::unsigned_abs);
        let digits = size.map(|size| (size / unit).to_string());
        let (whole, fraction) = match digits.filter(|digits| digits.len() <= self.whole_digits()) {
            Some(digits) => {
                let rest = size.expect("it has digits") % unit;
                let fraction =
                    if places == 0 { String::new() } else { format!("{rest:0width$}", width = places.into()) };
                (self.whole_of(&digits, &fraction), self.fraction_of(&fraction).to_owned())
            }
            None => {
                let marks = self.whole.iter().map(|c| if *c == b',' { ',' } else { '#' });
                (marks.collect(), "#".repeat(places.into()))
            }
        };
        let blanks = whole.bytes().take_while(|b| *b == b' ').count();
        let (blank, shown) = whole.split_at(blanks);
        let sign = match (negative, self.fill) {
            (true, _) => "-",
            (false, true) => "",
            (false, false) => " ",
        };
        let blank = if self.fill { "" } else { blank };
        let point = if self.fraction.is_empty() { "" } else { "." };
        format!("{blank}{sign}{shown}{point}{fraction}")
    }

    /// What stands before the point, with blanks in front where nothing does.
    fn whole_of(&self, digits: &str, fraction: &str) -> String {
        // A zero alone before digits behind the point is not shown, unless the pattern has a 0 for it.
        let zeros = self.whole.contains(&b'0');
        let bare = self.fraction_of(fraction).is_empty();
        let digits = if digits == "0" && !zeros && !bare { "" } else { digits };
        let mut missing = self.whole_digits() - digits.len();
        let (mut digits, mut begun) = (digits.chars(), false);
        let mut out = String::new();
        for place in &self.whole {
            begun |= *place == b'0';
            match (*place, missing) {
                (b',', _) => out.push(if out.ends_with(|c: char| c != ' ') { ',' } else { ' ' }),
                (_, 0) => out.extend(digits.next()),
                _ => {
                    missing -= 1;
                    out.push(if begun { '0' } else { ' ' });
                }
            }
        }
        out
    }

    /// With `FM`, zeros at the end go, as far as the pattern has no 0 for them or behind them.
    fn fraction_of<'f>(&self, digits: &'f str) -> &'f str {
        if !self.fill {
            return digits;
        }
        let wanted = self.fraction.iter().rposition(|c| *c == b'0').map_or(0, |at| at + 1);
        let needed = digits.trim_end_matches('0').len();
        &digits[..wanted.max(needed)]
    }
}
