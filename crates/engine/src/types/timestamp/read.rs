//! Reads dates and timestamps in PostgreSQL's forms: ISO 8601's, those of other habits (`Jan 8, 1999`, `1/8/1999`,
//! `19990108 040506`), Julian days (`J2451187`), words (`epoch`, `infinity`), with time zones by offset, name and
//! abbreviation.
//!
//! 1. A text is cut into tokens by what they begin with; other signs only separate tokens.
//! 2. Each token says which of year, month, day, time, zone and so on it is. What was said once may not be said again.
//! 3. Numbers without a hint are year, month and day in the order of DateStyle; a number of three digits or more is a
//!    year. Only when all is read is a date checked.
//!
//! Source: PostgreSQL 15 documentation, "Date/Time Input Interpretation" (B.1) and "Date/Time Key Words" (B.3).
use super::super::clock;
use super::super::style::{Order, Style};
use super::super::zone::{FARTHEST, Zone};
use super::{DAY, civil_from_days, days_from_civil, days_in_month};
use crate::error::{EngineError, Result};

mod tokens;
mod words;

use tokens::{Kind, Token};
use words::{Label, Word};

/// What a text says.
#[derive(Debug, PartialEq)]
pub(super) enum Found {
    /// Days since 1970, microseconds of that day (up to and with 24:00), and the zone if there is one.
    At {
        days: i64,
        micros: i64,
        zone: Option<Zone>,
    },
    Epoch,
    Late,
    Early,
}

/// Why a text is no time.
enum Bad {
    Format,
    Field,
    /// Perhaps because of another DateStyle.
    Order,
    Displacement,
    Zone(String),
}

type Read<T> = std::result::Result<T, Bad>;

const YEAR: u32 = 1;
const MONTH: u32 = 2;
const DATE_DAY: u32 = 4;
const DATE: u32 = YEAR | MONTH | DATE_DAY;
const HOUR: u32 = 8;
const MINUTE: u32 = 16;
const SECOND: u32 = 32;
const FRACTION: u32 = 64;
const TIME: u32 = HOUR | MINUTE | SECOND | FRACTION;
const ZONE: u32 = 128;
const SUMMER: u32 = 256;
const DAY_OF_YEAR: u32 = 512;
const HALF: u32 = 1024;
const ERA: u32 = 2048;
const WEEKDAY: u32 = 4096;
const RESERVED: u32 = 8192;

/// Microseconds of an hour.
const WHOLE_HOUR: i64 = 3_600_000_000;

#[derive(Default)]
struct Fields {
    year: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// What was said (invariant 2).
    said: u32,
    two_digits: bool,
    month_by_name: bool,
    julian: bool,
    before_christ: bool,
    afternoon: Option<bool>,
    /// What the next number is.
    label: Option<Label>,
    /// Seconds east of UTC, or a zone.
    offset: i64,
    zone: Option<Zone>,
    special: Option<Word>,
}

pub(super) fn read(text: &str, type_name: &str) -> Result<Found> {
    found(text).map_err(|bad| {
        let out_of_range = || EngineError::new("22008", format!("date/time field value out of range: \"{text}\""));
        match bad {
            Bad::Format => EngineError::new("22007", format!("invalid input syntax for type {type_name}: \"{text}\"")),
            Bad::Field => out_of_range(),
            Bad::Order => out_of_range().with_hint("Perhaps you need a different \"datestyle\" setting."),
            Bad::Displacement => EngineError::new("22009", format!("time zone displacement out of range: \"{text}\"")),
            Bad::Zone(name) => EngineError::new("22023", format!("time zone \"{name}\" not recognized")),
        }
    })
}

fn found(text: &str) -> Read<Found> {
    let tokens = tokens::of(text)?;
    let mut fields = Fields::default();
    for (at, token) in tokens.iter().enumerate() {
        let says = match token.kind {
            Kind::Date => fields.date_or_zone(&token.text)?,
            Kind::Time => fields.time(&token.text)?,
            Kind::Zone => {
                fields.offset = displacement(&token.text)?;
                ZONE
            }
            Kind::Number => fields.number(&token.text)?,
            Kind::Text | Kind::Special => match fields.word(&token.text, tokens.get(at + 1))? {
                Some(says) => says,
                None => continue,
            },
        };
        if fields.said & says != 0 {
            return Err(Bad::Format);
        }
        fields.said |= says;
    }
    fields.finish()
}

/// Decimal digits at the front, as a number, and what is behind them.
fn integer(text: &str) -> Read<(i64, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return Ok((0, text));
    }
    let value: i64 = text[..length].parse().map_err(|_| Bad::Field)?;
    if value > i32::MAX.into() { Err(Bad::Field) } else { Ok((value, &text[length..])) }
}

/// `.25` in microseconds.
fn fraction(text: &str) -> Read<i64> {
    match text.strip_prefix('.') {
        Some("") => Ok(0),
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            let part: f64 = format!("0.{digits}").parse().map_err(|_| Bad::Format)?;
            Ok((part * 1e6).round_ties_even() as i64)
        }
        _ => Err(Bad::Format),
    }
}

/// An offset by itself.
pub(super) fn offset(text: &str) -> Option<i64> {
    displacement(text).ok()
}

/// `+05:30`, `-8`, `+0530`: seconds east of UTC.
fn displacement(text: &str) -> Read<i64> {
    let digits = text.strip_prefix(['+', '-']).ok_or(Bad::Format)?;
    let too_far = |_| Bad::Displacement;
    let (mut hours, mut rest) = integer(digits).map_err(too_far)?;
    let (mut minutes, mut seconds) = (0, 0);
    if let Some(behind) = rest.strip_prefix(':') {
        (minutes, rest) = integer(behind).map_err(too_far)?;
        if let Some(behind) = rest.strip_prefix(':') {
            (seconds, rest) = integer(behind).map_err(too_far)?;
        }
    } else if rest.is_empty() && digits.len() > 2 {
        (hours, minutes) = (hours / 100, hours % 100);
    }
    let east = hours * 3600 + minutes * 60 + seconds;
    if minutes > 59 || seconds > 59 || east > FARTHEST {
        return Err(Bad::Displacement);
    }
    if !rest.is_empty() {
        return Err(Bad::Format);
    }
    Ok(if text.starts_with('-') { -east } else { east })
}

impl Fields {
    /// A token with signs that dates have.
    fn date_or_zone(&mut self, text: &str) -> Read<u32> {
        if self.label == Some(Label::Julian) {
            let (day, rest) = integer(text)?;
            self.set_julian(day);
            self.offset = displacement(rest)?;
            self.label = None;
            return Ok(DATE | TIME | ZONE);
        }
        // A zone's name, or a time with its zone behind it.
        if self.label.is_none() && self.said & (MONTH | DATE_DAY) != MONTH | DATE_DAY {
            return self.date(text);
        }
        if !text.starts_with(|c: char| c.is_ascii_digit()) && self.label.is_none() {
            self.zone = Some(Zone::by_name(text).ok_or_else(|| Bad::Zone(text.to_owned()))?);
            return Ok(ZONE);
        }
        if self.label.take().is_some_and(|label| label != Label::Time) || self.said & TIME == TIME {
            return Err(Bad::Format);
        }
        let at = text.find('-').ok_or(Bad::Format)?;
        self.offset = displacement(&text[at..])?;
        Ok(self.run_of_digits(&text[..at], self.said)? | ZONE)
    }

    /// `1999-01-08`, `8.1.1999`, `99-jan-08`. Answers what it says.
    fn date(&mut self, text: &str) -> Read<u32> {
        let mut parts = vec![];
        let mut rest = text;
        while !rest.is_empty() {
            rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
            let of = |c: char| match rest.starts_with(|c: char| c.is_ascii_digit()) {
                true => c.is_ascii_digit(),
                false => c.is_ascii_alphabetic(),
            };
            let end = rest.find(|c: char| !of(c)).unwrap_or(rest.len());
            if end == 0 {
                return Err(Bad::Format);
            }
            parts.push(&rest[..end]);
            // One sign of any kind separates them.
            rest = rest[end..].strip_prefix(|_: char| true).unwrap_or("");
        }
        let mut says = 0;
        let mut by_name = false;
        let mut said = self.said;
        for part in parts.iter().filter(|part| part.starts_with(|c: char| c.is_ascii_alphabetic())) {
            match words::of(part) {
                Some(Word::Ignored) => continue,
                Some(Word::Month(month)) if said & MONTH == 0 => {
                    (self.month, by_name) = (month, true);
                    (says, said) = (says | MONTH, said | MONTH);
                }
                _ => return Err(Bad::Format),
            }
        }
        for part in parts.iter().filter(|part| part.starts_with(|c: char| c.is_ascii_digit())) {
            let part_says = self.single(part, by_name, said)?;
            if said & part_says != 0 {
                return Err(Bad::Format);
            }
            (says, said) = (says | part_says, said | part_says);
        }
        // A date of this form comes before all else but a zone.
        if said & !(DAY_OF_YEAR | ZONE) != DATE {
            return Err(Bad::Format);
        }
        Ok(says)
    }

    /// `4:05`, `4:05:06.7`; `05:06.7` is minutes and seconds.
    fn time(&mut self, text: &str) -> Read<u32> {
        if self.label.take().is_some_and(|label| label != Label::Time) {
            return Err(Bad::Format);
        }
        let (first, rest) = integer(text)?;
        let (second, rest) = integer(rest.strip_prefix(':').ok_or(Bad::Format)?)?;
        (self.hour, self.minute, self.second, self.micros) = match rest.chars().next() {
            None => (first, second, 0, 0),
            Some('.') => (0, first, second, fraction(rest)?),
            Some(':') => match integer(&rest[1..])? {
                (third, "") => (first, second, third, 0),
                (third, rest) => (first, second, third, fraction(rest)?),
            },
            Some(_) => return Err(Bad::Format),
        };
        if self.minute > 59 || self.second > 60 || self.micros_of_day() > DAY {
            return Err(Bad::Field);
        }
        Ok(TIME)
    }

    fn micros_of_day(&self) -> i64 {
        self.hour.saturating_mul(WHOLE_HOUR).saturating_add((self.minute * 60 + self.second) * 1_000_000 + self.micros)
    }

    fn number(&mut self, text: &str) -> Read<u32> {
        if let Some(label) = self.label.take() {
            return self.labelled(label, text);
        }
        let point = text.find('.');
        match point {
            Some(_) if self.said & DATE == 0 => self.date(text),
            Some(at) if at > 2 => self.run_of_digits(text, self.said),
            _ if text.len() >= 6 && (self.said & DATE == 0 || self.said & TIME == 0) => {
                self.run_of_digits(text, self.said)
            }
            _ => self.single(text, self.month_by_name, self.said),
        }
    }

    /// A number behind a word that says what it is: `y2001m02d04`, `J2451187`.
    fn labelled(&mut self, label: Label, text: &str) -> Read<u32> {
        let (value, rest) = integer(text)?;
        let with_fraction = matches!(label, Label::Julian | Label::Time | Label::Second);
        let is_whole = rest.is_empty() || (with_fraction && rest.starts_with('.'));
        if !is_whole {
            return Err(Bad::Format);
        }
        Ok(match label {
            Label::Year => {
                self.year = value;
                YEAR
            }
            Label::Month if self.said & (MONTH | HOUR) == MONTH | HOUR => {
                self.minute = value;
                MINUTE
            }
            Label::Month => {
                self.month = value;
                MONTH
            }
            Label::Day => {
                self.day = value;
                DATE_DAY
            }
            Label::Hour => {
                self.hour = value;
                HOUR
            }
            Label::Minute => {
                self.minute = value;
                MINUTE
            }
            Label::Second => {
                self.second = value;
                if rest.is_empty() {
                    return Ok(SECOND);
                }
                self.micros = fraction(rest)?;
                SECOND | FRACTION
            }
            Label::Julian => {
                self.set_julian(value);
                if rest.is_empty() {
                    return Ok(DATE);
                }
                let part: f64 = format!("0{rest}").parse().map_err(|_| Bad::Format)?;
                self.micros = (part * DAY as f64) as i64;
                DATE | TIME
            }
            Label::Time => match self.run_of_digits(text, self.said | DATE)? {
                TIME => TIME,
                _ => return Err(Bad::Format),
            },
            Label::Other => return Err(Bad::Format),
        })
    }

    fn set_julian(&mut self, day: i64) {
        (self.year, self.month, self.day) = civil_from_days(day - 2_440_588);
        self.julian = true;
    }

    /// A number that is one field (invariant 3).
    fn single(&mut self, text: &str, by_name: bool, said: u32) -> Read<u32> {
        let (value, rest) = integer(text)?;
        let length = text.len();
        if rest.len() == length {
            return Err(Bad::Format);
        }
        if rest.starts_with('.') {
            if length - rest.len() > 2 {
                return self.run_of_digits(text, said | DATE);
            }
            self.micros = fraction(rest)?;
        } else if !rest.is_empty() {
            return Err(Bad::Format);
        }
        if length == 3 && said & DATE == YEAR && (1..=366).contains(&value) {
            self.day_of_year = value;
            return Ok(DAY_OF_YEAR | MONTH | DATE_DAY);
        }
        let order = Style::current().dates.order;
        let of_year = length >= 3 || order == Order::Ymd;
        let says = match said & DATE {
            0 if of_year => YEAR,
            0 if order == Order::Dmy => DATE_DAY,
            0 | YEAR | DATE_DAY => MONTH,
            MONTH if by_name && of_year => YEAR,
            MONTH => DATE_DAY,
            both if both == YEAR | MONTH && by_name && length >= 3 && self.two_digits => {
                // The number before it was the day.
                (self.day, self.year, self.two_digits) = (self.year, value, false);
                return Ok(DATE_DAY);
            }
            both if both == YEAR | MONTH => DATE_DAY,
            both if both == MONTH | DATE_DAY => YEAR,
            DATE => return self.run_of_digits(text, said),
            _ => return Err(Bad::Format),
        };
        match says {
            YEAR => (self.year, self.two_digits) = (value, length <= 2),
            MONTH => self.month = value,
            _ => self.day = value,
        }
        Ok(says)
    }

    /// `19990108`, `040506.789`, `0405`.
    fn run_of_digits(&mut self, text: &str, said: u32) -> Read<u32> {
        let (digits, point) = text.split_at(text.find('.').unwrap_or(text.len()));
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Bad::Format);
        }
        let part = |from: usize, to: usize| digits[from..to].parse::<i64>().map_err(|_| Bad::Field);
        let length = digits.len();
        if !point.is_empty() {
            self.micros = fraction(point)?;
        } else if said & DATE != DATE && length >= 6 {
            self.year = part(0, length - 4)?;
            self.month = part(length - 4, length - 2)?;
            self.day = part(length - 2, length)?;
            self.two_digits |= length == 6;
            return if self.year > i32::MAX.into() { Err(Bad::Field) } else { Ok(DATE) };
        }
        if said & TIME == TIME || !matches!(length, 4 | 6) {
            return Err(Bad::Format);
        }
        (self.hour, self.minute) = (part(0, 2)?, part(2, 4)?);
        self.second = if length == 6 { part(4, 6)? } else { 0 };
        Ok(TIME)
    }

    /// `None`: it says nothing that could be said twice.
    fn word(&mut self, text: &str, next: Option<&Token>) -> Read<Option<u32>> {
        if let Some(zone) = Zone::by_abbreviation(text) {
            self.zone = Some(zone);
            return Ok(Some(ZONE));
        }
        let Some(word) = words::of(text) else {
            self.zone = Some(Zone::by_name(text).ok_or(Bad::Format)?);
            return Ok(Some(ZONE));
        };
        Ok(Some(match word {
            Word::Ignored => return Ok(None),
            Word::Now => self.set_now(0)?,
            Word::Day(days) => {
                self.set_now(days)?;
                (self.hour, self.minute, self.second, self.micros, self.offset) = (0, 0, 0, 0, 0);
                DATE
            }
            Word::AllBalls => {
                (self.hour, self.minute, self.second, self.micros, self.offset) = (0, 0, 0, 0, 0);
                TIME | ZONE
            }
            Word::Epoch | Word::Late | Word::Early => {
                self.special = Some(word);
                DATE | TIME | ZONE | RESERVED
            }
            Word::Month(month) => {
                let number_before = self.said & (MONTH | DATE_DAY) == MONTH && !self.month_by_name;
                let says = if number_before && (1..=31).contains(&self.month) {
                    self.day = self.month;
                    DATE_DAY
                } else {
                    MONTH
                };
                (self.month, self.month_by_name) = (month, true);
                says
            }
            Word::Weekday => WEEKDAY,
            Word::Half(afternoon) => {
                self.afternoon = Some(afternoon);
                HALF
            }
            Word::Era(before) => {
                self.before_christ = before;
                ERA
            }
            Word::Summer => {
                self.offset += 3600;
                SUMMER
            }
            Word::Label(label) => {
                self.label = Some(label);
                return Ok(Some(0));
            }
            Word::TimeFollows => {
                let is_time = next.is_some_and(|next| matches!(next.kind, Kind::Number | Kind::Time | Kind::Date));
                if self.said & DATE != DATE || !is_time {
                    return Err(Bad::Format);
                }
                self.label = Some(Label::Time);
                return Ok(Some(0));
            }
        }))
    }

    /// The time of the clock, if there is one, so many days on.
    fn set_now(&mut self, days: i64) -> Read<u32> {
        let now = clock::now().ok_or(Bad::Format)?;
        let zone = Zone::current();
        let local = zone.local(now);
        let micros = local.rem_euclid(DAY);
        (self.year, self.month, self.day) = civil_from_days(local.div_euclid(DAY) + days);
        (self.hour, self.minute, self.second, self.micros) = (0, 0, 0, micros);
        self.offset = zone.offset_at(now).into();
        Ok(DATE | TIME | ZONE | RESERVED)
    }

    /// Checks what was read.
    fn finish(mut self) -> Read<Found> {
        self.check_date()?;
        match self.afternoon {
            Some(_) if self.hour > 12 => return Err(Bad::Field),
            Some(false) if self.hour == 12 => self.hour = 0,
            Some(true) if self.hour != 12 => self.hour += 12,
            _ => {}
        }
        match self.special {
            Some(Word::Late) => return Ok(Found::Late),
            Some(Word::Early) => return Ok(Found::Early),
            Some(_) => return Ok(Found::Epoch),
            None if self.said & DATE != DATE => return Err(Bad::Format),
            None => {}
        }
        let summer = self.said & SUMMER != 0;
        let zone = match self.zone {
            // A zone knows of its own summer time.
            Some(Zone::Named(_)) if summer => return Err(Bad::Format),
            Some(zone @ (Zone::Utc | Zone::Fixed(_))) if summer => Some(Zone::Fixed(zone.offset_at(0) + 3600)),
            Some(zone) => Some(zone),
            None if self.said & ZONE != 0 => Some(Zone::Fixed(self.offset as i32)),
            None if summer => return Err(Bad::Format),
            None => None,
        };
        Ok(Found::At { days: days_from_civil(self.year, self.month, self.day), micros: self.micros_of_day(), zone })
    }

    fn check_date(&mut self) -> Read<()> {
        if self.special.is_some() {
            return Ok(());
        }
        if self.said & YEAR != 0 && !self.julian {
            if self.two_digits && !self.before_christ {
                self.year += match self.year {
                    0..70 => 2000,
                    70..100 => 1900,
                    _ => 0,
                };
            } else if self.year <= 0 {
                // There is no year 0 to write.
                return Err(Bad::Field);
            }
            if self.before_christ {
                self.year = 1 - self.year;
            }
        }
        if self.said & DAY_OF_YEAR != 0 {
            let day = days_from_civil(self.year, 1, 1) + self.day_of_year - 1;
            (self.year, self.month, self.day) = civil_from_days(day);
        }
        if self.said & MONTH != 0 && !(1..=12).contains(&self.month) {
            return Err(Bad::Order);
        }
        if self.said & DATE_DAY != 0 && !(1..=31).contains(&self.day) {
            return Err(Bad::Order);
        }
        match self.said & DATE == DATE && self.day > days_in_month(self.year, self.month) {
            true => Err(Bad::Field),
            false => Ok(()),
        }
    }
}
