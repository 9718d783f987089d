//! A number as a pattern has it written.
//!
//! 1. Without `FM` each place of the pattern takes a letter, blank before the first digit. The sign stands before the
//!    first that is not blank, unless the pattern has a place for it.
//! 2. With `FM`, zeros at the end of the fraction go, as far as the pattern has no `0` for them or behind them.
use super::{Anchor, Given, Item, Pattern, Shape, exact};
use terrace_engine::types::Decimal;
use terrace_engine::{EngineError, Result};

/// A number's digits as they are put into the pattern's places.
struct Digits {
    negative: bool,
    /// Without its sign: digits and a point, or `#`.
    text: Vec<u8>,
    /// Places of the pattern before the first digit.
    blanks: i64,
}

struct Writer<'p> {
    shape: Shape,
    digits: &'p Digits,
    /// The next digit; the place of the pattern that is next.
    next: usize,
    place: i64,
    /// The last place that is written with FM (invariant 2).
    last: Option<usize>,
    /// Places in all, less one.
    places: i64,
    sign_done: bool,
    /// A digit was written at the last place.
    within: bool,
    /// Where the text ends, if that is before the pattern does.
    end: Option<usize>,
    out: String,
}

impl Pattern {
    pub(in super::super) fn write(&self, given: Given) -> Result<String> {
        let mut shape = self.shape;
        if shape.exponent {
            return scientific(given, shape.behind);
        }
        let digits = if shape.roman { roman(given)? } else { digits(given, &mut shape)? };
        let mut writer = Writer::new(shape, &digits);
        for item in &self.items {
            writer.put(item);
        }
        if let Some(end) = writer.end {
            writer.out.truncate(end);
        }
        Ok(writer.out)
    }
}

/// `1.23e+05`, with a blank for a plus.
fn scientific(given: Given, behind: i64) -> Result<String> {
    let behind = behind as usize;
    let (mantissa, exponent) = match given {
        Given::Exact(number) => match number.scale() {
            Some(scale) => exact_scientific(&number.to_string().replace('.', ""), scale, behind),
            None => return Ok(no_digits(behind)),
        },
        Given::Whole(number) => float_scientific(number as f64, behind),
        Given::Float(number, _) if !number.is_finite() => {
            return Ok(no_digits(behind));
        }
        Given::Float(number, _) => float_scientific(number, behind),
    };
    let sign = if mantissa.starts_with('-') { "" } else { " " };
    let direction = if exponent < 0 { '-' } else { '+' };
    Ok(format!("{sign}{mantissa}e{direction}{:02}", exponent.abs()))
}

/// As many `#` as there are places.
fn no_digits(behind: usize) -> String {
    format!(" #.{}", "#".repeat(behind + 4))
}

fn float_scientific(number: f64, behind: usize) -> (String, i64) {
    let text = format!("{number:.behind$e}");
    let (mantissa, exponent) = text.split_once('e').expect("Rust writes an exponent");
    (mantissa.to_owned(), exponent.parse().expect("an integer"))
}

/// Rounded as numerics are, halves away from zero.
/// `unscaled`: its digits, behind a sign.
fn exact_scientific(unscaled: &str, scale: u32, behind: usize) -> (String, i64) {
    let digits = unscaled.trim_start_matches(['-', '0']);
    let mut exponent = if digits.is_empty() { 0 } else { digits.len() as i64 - 1 - i64::from(scale) };
    let mut kept: Vec<u8> = digits.bytes().take(behind + 1).collect();
    if digits.as_bytes().get(behind + 1).is_some_and(|digit| *digit >= b'5') {
        let nines = kept.iter().rev().take_while(|digit| **digit == b'9').count();
        let carried = kept.len() - nines;
        kept[carried..].fill(b'0');
        match carried.checked_sub(1) {
            Some(at) => kept[at] += 1,
            None => {
                kept[0] = b'1';
                exponent += 1;
            }
        }
    }
    kept.resize(behind + 1, b'0');
    let text = String::from_utf8(kept).expect("digits");
    let sign = if unscaled.starts_with('-') { "-" } else { "" };
    let (first, rest) = text.split_at(1);
    (format!("{sign}{first}{}{rest}", if behind > 0 { "." } else { "" }), exponent)
}

/// Invariant 2 of [`super`].
fn digits(given: Given, shape: &mut Shape) -> Result<Digits> {
    let text = match given {
        Given::Exact(number) => exact(&number, shape.moved, shape.behind)?,
        Given::Whole(number) => exact(&Decimal::from_int(number), shape.moved, shape.behind)?,
        Given::Float(number, most) => {
            let number = if shape.moves { number * 10f64.powi(shape.moved as i32) } else { number };
            let whole = float_text(number.abs(), 0).len() as i64;
            let most = most as i64;
            if whole >= most {
                shape.behind = 0;
            } else if whole + shape.behind > most {
                shape.behind = most - whole;
            }
            float_text(number, shape.behind as usize)
        }
    };
    shape.before += shape.moved;
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text.to_owned()),
        None => (false, text),
    };
    let whole = text.find('.').unwrap_or(text.len()) as i64;
    if whole <= shape.before {
        return Ok(Digits { negative, text: text.into_bytes(), blanks: shape.before - whole });
    }
    let mut filled = vec![b'#'; (shape.before + shape.behind + 1) as usize];
    filled[shape.before as usize] = b'.';
    Ok(Digits { negative, text: filled, blanks: 0 })
}

fn float_text(number: f64, behind: usize) -> String {
    match number {
        _ if number.is_nan() => "NaN".into(),
        _ if number.is_infinite() => if number > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        _ => format!("{number:.behind$}"),
    }
}

/// From 1 to 3999.
fn roman(given: Given) -> Result<Digits> {
    let out = || EngineError::out_of_range("integer");
    let number = match given {
        Given::Exact(number) => {
            let whole = number.to_int("integer")?;
            whole.and_then(|whole| i32::try_from(whole).ok()).ok_or_else(out)?
        }
        Given::Whole(number) => i32::try_from(number).map_err(|_| out())?,
        Given::Float(number, _) => {
            let number = number.round_ties_even();
            let fits = number >= f64::from(i32::MIN) && number <= f64::from(i32::MAX);
            if fits { number as i32 } else { return Err(out()) }
        }
    };
    const SIGNS: [(i32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut text = String::new();
    let mut rest = if (1..=3999).contains(&number) { number } else { 0 };
    if rest == 0 {
        text = "#".repeat(15);
    }
    for (value, sign) in SIGNS {
        while rest >= value {
            text.push_str(sign);
            rest -= value;
        }
    }
    Ok(Digits { negative: false, text: text.into_bytes(), blanks: 0 })
}

/// `st`, `nd`, `rd`, `th`
fn ordinal(digits: &[u8]) -> &'static str {
    let teens = digits.len() > 1 && digits[digits.len() - 2] == b'1';
    match digits.last() {
        Some(b'1') if !teens => "st",
        Some(b'2') if !teens => "nd",
        Some(b'3') if !teens => "rd",
        _ => "th",
    }
}

impl<'p> Writer<'p> {
    fn new(mut shape: Shape, digits: &'p Digits) -> Writer<'p> {
        let sign_done = if shape.plus || shape.minus {
            shape.minus
        } else {
            if !digits.negative && shape.fill {
                shape.bracket = false;
            }
            if shape.anchor == Anchor::Before && shape.before == shape.before_sign {
                shape.anchor = Anchor::Behind;
            }
            !digits.negative && shape.fill && shape.anchor == Anchor::None
        };
        let mut last = None;
        if shape.fill
            && shape.point
            && let Some(point) = digits.text.iter().position(|c| *c == b'.')
        {
            let digit = digits.text.iter().rposition(|c| !matches!(c, b'0' | b'.')).unwrap_or(point);
            let wanted = shape.last_zero - digits.blanks;
            let zero = if wanted > 0 { wanted.min(digits.text.len() as i64 - 1) as usize } else { 0 };
            last = Some(digit.max(point).max(zero));
        }
        let mut places = shape.behind + shape.before - 1;
        if !sign_done && digits.blanks == 0 {
            places += 1;
        }
        Writer {
            shape,
            digits,
            next: 0,
            place: 0,
            last,
            places,
            sign_done,
            within: false,
            end: None,
            out: String::new(),
        }
    }

    fn put(&mut self, item: &Item) {
        let blank = !self.shape.fill;
        match item {
            Item::Digit { zero } => self.digit(*zero),
            Item::Point => self.digit(false),
            Item::Comma | Item::Group if self.within => self.out.push(','),
            Item::Comma | Item::Group if blank => self.out.push(' '),
            Item::Comma | Item::Group => {}
            Item::Currency => self.out.push(' '),
            Item::Roman { capital } => {
                let text = String::from_utf8_lossy(&self.digits.text).into_owned();
                let text = if *capital { text } else { text.to_lowercase() };
                self.out.push_str(&if blank { format!("{text:>15}") } else { text });
            }
            Item::Ordinal { capital } => {
                let none = self.shape.roman || self.digits.text.first() == Some(&b'#');
                if !(none || self.digits.negative || self.shape.point) {
                    let ending = ordinal(&self.digits.text);
                    self.out.push_str(&if *capital { ending.to_uppercase() } else { ending.to_owned() });
                }
            }
            Item::Minus if self.digits.negative => self.out.push('-'),
            Item::Plus if !self.digits.negative => self.out.push('+'),
            Item::Minus | Item::Plus if blank => self.out.push(' '),
            Item::Minus | Item::Plus => {}
            Item::Either => self.out.push(if self.digits.negative { '-' } else { '+' }),
            Item::Text(text) => self.out.push_str(text),
        }
    }

    /// Whether the next digit is a zero alone before the point, which is not shown.
    fn is_bare_zero(&self) -> bool {
        self.shape.zeros.is_none()
            && self.next == 0
            && self.digits.text.first() == Some(&b'0')
            && self.shape.behind != 0
    }

    /// Whether nothing of the fraction is left with FM.
    fn ends_at_point(&self) -> bool {
        self.last.is_some_and(|last| self.digits.text[last] == b'.')
    }

    /// A place for a digit or for the point.
    fn digit(&mut self, zero: bool) {
        if self.shape.roman {
            return;
        }
        self.within = false;
        let begun = self.place >= self.digits.blanks;
        let zeros = self.shape.zeros.is_some_and(|first| first <= self.place);
        let first_zero = self.shape.zeros == Some(self.place);
        if !self.sign_done && (begun || first_zero) && (!self.is_bare_zero() || self.ends_at_point()) {
            self.sign();
        }
        match (begun, zeros) {
            (false, false) => self.blank(),
            (false, true) => {
                self.out.push('0');
                self.within = true;
            }
            (true, _) => {
                self.next_digit(zero);
                if self.next < self.digits.text.len() {
                    self.next += 1;
                }
            }
        }
        let mut end = self.places + i64::from(self.digits.blanks > 0) + i64::from(self.shape.point);
        if self.last == Some(self.next) {
            end = self.place;
        }
        if self.place + 1 == end {
            if self.sign_done && self.shape.bracket {
                self.out.push(if self.digits.negative { '>' } else { ' ' });
            } else if self.shape.anchor == Anchor::Behind {
                self.out.push(if self.digits.negative { '-' } else { '+' });
            }
        }
        self.place += 1;
    }

    fn blank(&mut self) {
        if !self.shape.fill {
            self.out.push(' ');
        }
    }

    fn next_digit(&mut self, zero: bool) {
        let gone = self.last.is_some_and(|last| self.next > last) && !zero;
        match self.digits.text.get(self.next) {
            Some(b'.') => self.out.push('.'),
            _ if gone => {}
            _ if self.is_bare_zero() && !self.shape.fill => self.out.push(' '),
            _ if self.is_bare_zero() => {
                if self.ends_at_point() {
                    self.out.push('0');
                }
            }
            Some(digit) => {
                self.out.push(char::from(*digit));
                self.within = true;
            }
            // A number with fewer digits than places ends the text.
            None => {
                self.within = true;
                self.end.get_or_insert(self.out.len());
            }
        }
    }

    /// The sign before the first digit.
    fn sign(&mut self) {
        let negative = self.digits.negative;
        match self.shape.anchor {
            Anchor::Before => self.out.push(if negative { '-' } else { '+' }),
            Anchor::Behind => return,
            Anchor::None if self.shape.bracket => self.out.push(if negative { '<' } else { ' ' }),
            Anchor::None if negative => self.out.push('-'),
            Anchor::None => self.blank(),
        }
        self.sign_done = true;
    }
}
