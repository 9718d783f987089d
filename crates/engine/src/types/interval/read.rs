//! Reads intervals as PostgreSQL does: its own forms, those of SQL (`1-2`, `3 4:05:06`), and ISO 8601's.
//!
//! 1. A text is cut into fields by what they begin with; signs other than those of numbers only separate fields.
//! 2. Fields are read from the last to the first, so that a unit is known before its number.
//! 3. Each unit may be said once. Parts of seconds count as milliseconds and microseconds too.
//! 4. What a unit does not take whole goes on to the smaller ones: of years to months, of months and weeks to days and
//!    time, of days to time.
//!
//! What fits no form is 22007; a field whose value is too large is 22015; a sum that is, is 22008.
use super::super::style::{IntervalStyle, Style};
use super::{DAY, Field, Fields, Interval, out_of_range};
use crate::error::{EngineError, Result};

/// Why a text is no interval.
enum Bad {
    Format,
    Field,
}

type Read<T> = std::result::Result<T, Bad>;

/// As many fields as PostgreSQL takes.
const MOST_FIELDS: usize = 25;
/// Bytes of all fields that PostgreSQL takes.
const MOST_BYTES: usize = 256;

const HOUR: i64 = 3_600_000_000;
const MINUTE: i64 = 60_000_000;
const SECOND: i64 = 1_000_000;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Unit {
    Micros(i64),
    /// So many of them.
    Days(i64),
    Months(i64),
    /// It is a word that is no number's unit.
    None,
}

/// A field of the text (invariant 1).
enum Token {
    /// `4:05:06`
    Clock(String),
    /// `12`, `1.5`, `1-2`; with a sign it may be a time too.
    Number(String),
    Word(String),
}

#[derive(Default)]
struct Parts {
    years: i32,
    months: i32,
    days: i32,
    micros: i64,
}

pub(super) fn read(text: &str, fields: Option<Fields>) -> Result<Interval> {
    let found = match in_words(text, fields) {
        Err(Bad::Format) => in_iso(text),
        found => found,
    };
    let parts = found.map_err(|bad| match bad {
        Bad::Format => EngineError::new("22007", format!("invalid input syntax for type interval: \"{text}\"")),
        Bad::Field => EngineError::new("22015", format!("interval field value out of range: \"{text}\"")),
    })?;
    let months = i64::from(parts.years) * 12 + i64::from(parts.months);
    let made = Interval::new(i32::try_from(months).map_err(|_| out_of_range())?, parts.days, parts.micros);
    Ok(made.limited(fields, None))
}

/// A word's unit; only ten letters of it count.
fn unit(word: &str) -> Option<Unit> {
    Some(match word.get(..10).unwrap_or(word) {
        "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Unit::Micros(1),
        "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => Unit::Micros(1000),
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Micros(SECOND),
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Micros(MINUTE),
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Micros(HOUR),
        "d" | "day" | "days" => Unit::Days(1),
        "w" | "week" | "weeks" => Unit::Days(7),
        "mon" | "mons" | "month" | "months" => Unit::Months(1),
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Months(12),
        "dec" | "decs" | "decade" | "decades" => Unit::Months(120),
        "c" | "cent" | "century" | "centuries" => Unit::Months(1200),
        "mil" | "mils" | "millennia" | "millennium" => Unit::Months(12_000),
        _ => return None,
    })
}

/// Words that a digit may follow without a space.
fn ends_before_digit(word: &str) -> bool {
    const LETTERS: [&str; 12] = ["d", "h", "j", "m", "mm", "mon", "s", "t", "y", "z", "jan", "dec"];
    LETTERS.contains(&word)
}

fn tokens(text: &str) -> Read<Vec<Token>> {
    let (mut tokens, mut bytes) = (vec![], 0);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            c if is_space(c) => {
                rest = &rest[1..];
                continue;
            }
            '0'..='9' => digits_first(rest),
            '.' => {
                let length = 1 + run(&rest[1..], |c| c.is_ascii_digit());
                (Token::Number(rest[..length].to_owned()), length)
            }
            'a'..='z' | 'A'..='Z' => word_first(rest)?,
            '+' | '-' => sign_first(rest)?,
            c if c.is_ascii_punctuation() => {
                rest = &rest[1..];
                continue;
            }
            _ => return Err(Bad::Format),
        };
        bytes += length + 1;
        if tokens.len() == MOST_FIELDS || bytes > MOST_BYTES {
            return Err(Bad::Format);
        }
        tokens.push(token);
        rest = &rest[length..];
    }
    Ok(tokens)
}

fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

/// Bytes at the front that are of a kind.
fn run(text: &str, of: impl Fn(char) -> bool) -> usize {
    text.find(|c: char| !of(c)).unwrap_or(text.len())
}

/// `12`, `4:05`, `1.5`, `1-2`.
fn digits_first(text: &str) -> (Token, usize) {
    let whole = run(text, |c| c.is_ascii_digit());
    let length = match text[whole..].chars().next() {
        Some(':') => {
            let length = whole + run(&text[whole..], |c| c.is_ascii_digit() || matches!(c, ':' | '.'));
            return (Token::Clock(text[..length].to_owned()), length);
        }
        Some(mark @ ('-' | '/' | '.')) => {
            let behind = &text[whole + 1..];
            let second = run(behind, |c| c.is_ascii_digit());
            let end = whole + 1 + second;
            match behind[second..].chars().next() {
                _ if second == 0 => whole + 1 + run(behind, |c| c.is_ascii_alphanumeric() || c == mark),
                Some(next) if next == mark => end + run(&text[end..], |c| c.is_ascii_digit() || c == mark),
                _ => end,
            }
        }
        _ => whole,
    };
    (Token::Number(text[..length].to_owned()), length)
}

/// What holds a mark, or a digit behind a word that takes none, is no interval's.
fn word_first(text: &str) -> Read<(Token, usize)> {
    let length = run(text, |c| c.is_ascii_alphabetic());
    let word = text[..length].to_ascii_lowercase();
    match text[length..].chars().next() {
        Some('-' | '/' | '.') => Err(Bad::Format),
        Some(c) if (c == '+' || c.is_ascii_digit()) && !ends_before_digit(&word) => Err(Bad::Format),
        _ => Ok((Token::Word(word), length)),
    }
}

fn sign_first(text: &str) -> Read<(Token, usize)> {
    let blanks = run(&text[1..], is_space);
    let behind = &text[1 + blanks..];
    match behind.chars().next() {
        Some('0'..='9' | '.') => {
            let length = run(behind, |c| c.is_ascii_digit() || matches!(c, ':' | '.' | '-'));
            Ok((Token::Number(format!("{}{}", &text[..1], &behind[..length])), 1 + blanks + length))
        }
        _ => Err(Bad::Format),
    }
}

/// The unit of a number that has none behind it.
fn last_unit(fields: Option<Fields>) -> Unit {
    match fields.map(|fields| fields.last) {
        Some(Field::Year) => Unit::Months(12),
        Some(Field::Month) => Unit::Months(1),
        Some(Field::Day) => Unit::Days(1),
        Some(Field::Hour) => Unit::Micros(HOUR),
        Some(Field::Minute) => Unit::Micros(MINUTE),
        Some(Field::Second) | None => Unit::Micros(SECOND),
    }
}

const PARTS_OF_SECONDS: [Unit; 3] = [Unit::Micros(SECOND), Unit::Micros(1000), Unit::Micros(1)];

/// Invariants 2 and 3.
fn in_words(text: &str, fields: Option<Fields>) -> Read<Parts> {
    let mut parts = Parts::default();
    let mut said: Vec<Unit> = vec![];
    let (mut next, mut ago): (Option<Unit>, bool) = (None, false);
    let mut tokens = tokens(text)?;
    if Style::current().spans == IntervalStyle::SqlStandard {
        negate_all(&mut tokens);
    }
    for token in tokens.iter().rev() {
        let says: Vec<Unit> = match token {
            Token::Clock(clock) => {
                parts.set_time(clock, fields)?;
                next = Some(Unit::Days(1));
                TIME.into()
            }
            Token::Number(number) => match parts.set_signed_time(number, fields)? {
                true => {
                    next = Some(Unit::Days(1));
                    TIME.into()
                }
                false => {
                    let (says, before) = parts.add_number(number, next.unwrap_or_else(|| last_unit(fields)))?;
                    next = Some(before);
                    says
                }
            },
            Token::Word(word) if word == "ago" => {
                (next, ago) = (Some(Unit::None), true);
                continue;
            }
            Token::Word(word) => {
                next = Some(unit(word).ok_or(Bad::Format)?);
                continue;
            }
        };
        if says.iter().any(|unit| said.contains(unit)) {
            return Err(Bad::Format);
        }
        said.extend(says);
    }
    match said.is_empty() {
        true => Err(Bad::Format),
        false if ago => parts.negated(),
        false => Ok(parts),
    }
}

/// In the style of SQL's standard a sign in front of all fields, the only one, is that of each.
fn negate_all(tokens: &mut [Token]) {
    let signed = |token: &Token| matches!(token, Token::Number(text) if text.starts_with(['+', '-']));
    let negative = matches!(tokens.first(), Some(Token::Number(text)) if text.starts_with('-'));
    if !negative || tokens[1..].iter().any(signed) {
        return;
    }
    for token in &mut tokens[1..] {
        match token {
            Token::Number(text) => text.insert(0, '-'),
            Token::Clock(text) => *token = Token::Number(format!("-{text}")),
            Token::Word(_) => {}
        }
    }
}

const TIME: [Unit; 5] =
    [Unit::Micros(HOUR), Unit::Micros(MINUTE), Unit::Micros(SECOND), Unit::Micros(1000), Unit::Micros(1)];

/// A number, its sign with both of its parts.
#[derive(Clone, Copy)]
struct Number {
    whole: i64,
    fraction: f64,
}

/// Decimal digits at the front as a number, and what is behind them.
fn integer(text: &str) -> Read<(i64, &str)> {
    let length = run(text, |c| c.is_ascii_digit());
    if length == 0 {
        return Ok((0, text));
    }
    Ok((text[..length].parse().map_err(|_| Bad::Field)?, &text[length..]))
}

/// `.25`
fn fraction(text: &str) -> Read<f64> {
    match text.strip_prefix('.') {
        Some("") => Ok(0.0),
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            format!("0.{digits}").parse().map_err(|_| Bad::Format)
        }
        _ => Err(Bad::Format),
    }
}

impl Parts {
    /// A number of a unit. Answers what it says, and the unit of a number before it.
    fn add_number(&mut self, text: &str, unit: Unit) -> Read<(Vec<Unit>, Unit)> {
        let negative = text.starts_with('-');
        let digits = text.trim_start_matches(['+', '-']);
        let length = run(digits, |c| c.is_ascii_digit());
        let (whole, rest) = match negative && length > 0 {
            // The least number has no positive counterpart.
            true => (format!("-{}", &digits[..length]).parse().map_err(|_| Bad::Field)?, &digits[length..]),
            false => integer(digits)?,
        };
        if let Some(months) = rest.strip_prefix('-') {
            let (months, end) = integer(months)?;
            if months > 11 {
                return Err(Bad::Field);
            }
            if !end.is_empty() {
                return Err(Bad::Format);
            }
            let months = if negative { -months } else { months };
            let all = whole.checked_mul(12).and_then(|years| years.checked_add(months)).ok_or(Bad::Field)?;
            self.add(Number { whole: all, fraction: 0.0 }, Unit::Months(1))?;
            return Ok((vec![Unit::Months(1)], Unit::Months(1)));
        }
        let part = if rest.is_empty() { 0.0 } else { fraction(rest)? };
        let number = Number { whole, fraction: if negative { -part } else { part } };
        self.add(number, unit)?;
        Ok(match unit {
            Unit::Micros(SECOND) if part != 0.0 => (PARTS_OF_SECONDS.into(), unit),
            Unit::Micros(HOUR) => (vec![unit], Unit::Days(1)),
            _ => (vec![unit], unit),
        })
    }

    /// Invariant 4.
    fn add(&mut self, number: Number, unit: Unit) -> Read<()> {
        let Number { whole, fraction } = number;
        match unit {
            Unit::Micros(size) => {
                let more = whole.checked_mul(size).and_then(|more| self.micros.checked_add(more));
                self.micros = more.ok_or(Bad::Field)?;
                self.add_part(fraction * size as f64)
            }
            Unit::Days(1) => {
                self.add_days(whole, 1)?;
                self.add_part(fraction * DAY as f64)
            }
            Unit::Days(size) => {
                self.add_days(whole, size)?;
                self.add_part_of_days(fraction * size as f64)
            }
            Unit::Months(1) => {
                let whole = i32::try_from(whole).map_err(|_| Bad::Field)?;
                self.months = self.months.checked_add(whole).ok_or(Bad::Field)?;
                self.add_part_of_days(fraction * 30.0)
            }
            Unit::Months(size) => {
                let years = whole.checked_mul(size / 12).and_then(|years| i32::try_from(years).ok());
                self.years = years.and_then(|years| self.years.checked_add(years)).ok_or(Bad::Field)?;
                let months = (fraction * size as f64).round_ties_even() as i32;
                self.months = self.months.checked_add(months).ok_or(Bad::Field)?;
                Ok(())
            }
            Unit::None => Err(Bad::Format),
        }
    }

    fn add_days(&mut self, whole: i64, size: i64) -> Read<()> {
        let days = i32::try_from(whole).ok().and_then(|days| days.checked_mul(size as i32));
        self.days = days.and_then(|days| self.days.checked_add(days)).ok_or(Bad::Field)?;
        Ok(())
    }

    fn add_part_of_days(&mut self, days: f64) -> Read<()> {
        self.days = self.days.checked_add(days as i32).ok_or(Bad::Field)?;
        self.add_part((days - days.trunc()) * DAY as f64)
    }

    /// Microseconds: more than half of one counts as one.
    fn add_part(&mut self, micros: f64) -> Read<()> {
        let whole = micros.trunc();
        let rest = micros - whole;
        let more = whole as i64 + i64::from(rest > 0.5) - i64::from(rest < -0.5);
        self.micros = self.micros.checked_add(more).ok_or(Bad::Field)?;
        Ok(())
    }

    /// `[+-]4:05[:06[.7]]`; false: it is no time.
    fn set_signed_time(&mut self, text: &str, fields: Option<Fields>) -> Read<bool> {
        let Some(clock) = text.strip_prefix(['+', '-']).filter(|clock| clock.contains(':')) else { return Ok(false) };
        if self.set_time(clock, fields).is_err() {
            return Ok(false);
        }
        if text.starts_with('-') {
            self.micros = self.micros.checked_neg().ok_or(Bad::Field)?;
        }
        Ok(true)
    }

    /// `4:05`, `4:05:06.7`; `05:06.7` is minutes and seconds. Fields before it are not added to what it says.
    fn set_time(&mut self, text: &str, fields: Option<Fields>) -> Read<()> {
        let (first, rest) = integer(text)?;
        let (second, rest) = integer(rest.strip_prefix(':').ok_or(Bad::Format)?)?;
        let minutes_first = fields == Some(Fields { first: Field::Minute, last: Field::Second });
        let (hours, minutes, seconds, part) = match rest.chars().next() {
            None if minutes_first => (0, first, second, 0.0),
            None => (first, second, 0, 0.0),
            Some('.') => (0, first, second, fraction(rest)?),
            Some(':') => match integer(&rest[1..])? {
                (third, "") => (first, second, third, 0.0),
                (third, rest) => (first, second, third, fraction(rest)?),
            },
            Some(_) => return Err(Bad::Format),
        };
        if minutes > 59 || seconds > 60 {
            return Err(Bad::Field);
        }
        let part = (part * 1e6).round_ties_even() as i64;
        let rest = minutes * MINUTE + seconds * SECOND + part;
        self.micros = hours.checked_mul(HOUR).and_then(|hours| hours.checked_add(rest)).ok_or(Bad::Field)?;
        Ok(())
    }

    fn negated(self) -> Read<Parts> {
        let parts = (self.years.checked_neg(), self.months.checked_neg(), self.days.checked_neg());
        let (Some(years), Some(months), Some(days)) = parts else { return Err(Bad::Field) };
        Ok(Parts { years, months, days, micros: self.micros.checked_neg().ok_or(Bad::Field)? })
    }
}

/// ISO 8601's forms: `P1Y2M3DT4H5M6S`, `P0001-02-03T04:05:06`, `P00010203T040506`.
fn in_iso(text: &str) -> Read<Parts> {
    let mut parts = Parts::default();
    let mut rest = text.strip_prefix('P').filter(|rest| !rest.is_empty()).ok_or(Bad::Format)?;
    let (mut of_date, mut any) = (true, false);
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T') {
            (of_date, any, rest) = (false, false, time);
            continue;
        }
        let (number, behind) = iso_number(rest)?;
        let digits = run(rest.strip_prefix('-').unwrap_or(rest), |c| c.is_ascii_digit());
        let letter = behind.chars().next();
        let unit = match (of_date, letter) {
            (true, Some('Y')) => Unit::Months(12),
            (true, Some('M')) => Unit::Months(1),
            (true, Some('W')) => Unit::Days(7),
            (true, Some('D')) => Unit::Days(1),
            (false, Some('H')) => Unit::Micros(HOUR),
            (false, Some('M')) => Unit::Micros(MINUTE),
            (false, Some('S')) => Unit::Micros(SECOND),
            (true, None | Some('T')) if digits == 8 && !any => {
                let Number { whole, fraction } = number;
                let of = |whole| Number { whole, fraction: 0.0 };
                parts.add(of(whole / 10_000), Unit::Months(12))?;
                parts.add(of(whole / 100 % 100), Unit::Months(1))?;
                parts.add(Number { whole: whole % 100, fraction }, Unit::Days(1))?;
                rest = behind;
                continue;
            }
            (false, None) if digits == 6 && !any => {
                let Number { whole, fraction } = number;
                let of = |whole| Number { whole, fraction: 0.0 };
                parts.add(of(whole / 10_000), Unit::Micros(HOUR))?;
                parts.add(of(whole / 100 % 100), Unit::Micros(MINUTE))?;
                parts.add(of(whole % 100), Unit::Micros(SECOND))?;
                // The fraction is of a microsecond, in PostgreSQL too.
                parts.add_part(fraction)?;
                return Ok(parts);
            }
            (true, None | Some('T' | '-')) if !any => {
                rest = parts.add_each(rest, '-', &[Unit::Months(12), Unit::Months(1), Unit::Days(1)])?;
                if !rest.is_empty() && !rest.starts_with('T') {
                    return Err(Bad::Format);
                }
                continue;
            }
            (false, None | Some(':')) if !any => {
                rest = parts.add_each(rest, ':', &[Unit::Micros(HOUR), Unit::Micros(MINUTE), Unit::Micros(SECOND)])?;
                return if rest.is_empty() { Ok(parts) } else { Err(Bad::Format) };
            }
            _ => return Err(Bad::Format),
        };
        parts.add(number, unit)?;
        (any, rest) = (true, &behind[1..]);
    }
    Ok(parts)
}

impl Parts {
    /// Numbers of these units with a mark between them; the first stands alone, too. Answers what is left.
    fn add_each<'a>(&mut self, mut text: &'a str, mark: char, units: &[Unit]) -> Read<&'a str> {
        for (at, unit) in units.iter().enumerate() {
            let (number, behind) = iso_number(text)?;
            self.add(number, *unit)?;
            text = behind;
            match text.strip_prefix(mark) {
                Some(behind) if at + 1 < units.len() => text = behind,
                _ => break,
            }
        }
        Ok(text)
    }
}

/// `-1.5e2`, and what is behind it.
fn iso_number(text: &str) -> Read<(Number, &str)> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.')) {
        return Err(Bad::Format);
    }
    let sign = usize::from(text.starts_with('-'));
    let whole = sign + run(&text[sign..], |c| c.is_ascii_digit());
    let point = match text[whole..].strip_prefix('.') {
        Some(behind) => whole + 1 + run(behind, |c| c.is_ascii_digit()),
        None => whole,
    };
    let exponent = text[point..].strip_prefix(['e', 'E']).map_or(0, |behind| {
        let sign = usize::from(behind.starts_with(['+', '-']));
        match run(&behind[sign..], |c| c.is_ascii_digit()) {
            0 => 0,
            digits => 1 + sign + digits,
        }
    });
    let end = point + exponent;
    let value: f64 = text[..end].parse().map_err(|_| Bad::Format)?;
    if !(-1e15..=1e15).contains(&value) {
        return Err(Bad::Field);
    }
    Ok((Number { whole: value as i64, fraction: value - value.trunc() }, &text[end..]))
}
