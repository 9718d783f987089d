//! Intervals: months, days and microseconds.
//!
//! 1. Two intervals are compared as if a month had 30 days and a day 24 hours ([`Interval::key`]): `1 day` equals
//!    `24:00:00`, and stays another value.
//!
//! Source: PostgreSQL 15 documentation, "Interval Input" and "Interval Output" (8.5.4, 8.5.5).
use super::{Datum, is_infinite};
use crate::error::{EngineError, Result};
use std::fmt;

mod read;
mod write;

const DAY: i64 = 86_400_000_000;

/// Its equality is that of the three parts, not SQL's (invariant 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Interval {
    months: i32,
    days: i32,
    micros: i64,
}

/// A part that the fields of `interval '1-2' year to month` name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Field {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

/// The first and the last one that are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Fields {
    pub first: Field,
    pub last: Field,
}

fn out_of_range() -> EngineError {
    EngineError::new("22008", "interval out of range")
}

impl Interval {
    pub fn new(months: i32, days: i32, micros: i64) -> Interval {
        Interval { months, days, micros }
    }

    pub fn months(self) -> i32 {
        self.months
    }

    pub fn days(self) -> i32 {
        self.days
    }

    pub fn micros(self) -> i64 {
        self.micros
    }

    /// Reads all of PostgreSQL's forms: `1 year 2 months`, `1 day 02:03:04.5`, `1-2`, `@ 3 days ago`, `P1Y2DT3H`. A
    /// number without a unit is of the last of `fields`. 22007, 22008, 22015
    pub fn parse(text: &str, fields: Option<Fields>) -> Result<Interval> {
        read::read(text, fields)
    }

    /// What it compares by (invariant 1).
    pub fn key(self) -> i128 {
        let days = i128::from(self.months) * 30 + i128::from(self.days);
        days * i128::from(DAY) + i128::from(self.micros)
    }

    /// One of the intervals that a key is of.
    pub fn from_key(key: i128) -> Option<Interval> {
        let day = i128::from(DAY);
        let narrow = |v: i128| v.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        // Days alone do not reach as far as months do.
        let months = if i32::try_from(key / day).is_ok() { 0 } else { narrow(key / day / 30) };
        let rest = key - i128::from(months) * 30 * day;
        let days = narrow(rest / day);
        Some(Interval { months, days, micros: i64::try_from(rest - i128::from(days) * day).ok()? })
    }

    /// Without what is smaller than the last field, or than the digits of a second that are kept.
    pub fn limited(self, fields: Option<Fields>, digits: Option<u8>) -> Interval {
        let Interval { months, days, micros } = self;
        let to = |size: i64| micros / size * size;
        match fields.map(|fields| fields.last) {
            Some(Field::Year) => Interval::new(months / 12 * 12, 0, 0),
            Some(Field::Month) => Interval::new(months, 0, 0),
            Some(Field::Day) => Interval::new(months, days, 0),
            Some(Field::Hour) => Interval::new(months, days, to(3_600_000_000)),
            Some(Field::Minute) => Interval::new(months, days, to(60_000_000)),
            Some(Field::Second) | None => {
                Interval::new(months, days, digits.map_or(micros, |digits| rounded(micros, digits)))
            }
        }
    }
}

/// A time, a timestamp or an interval with so many digits of a second. Timestamps are rounded as they are counted from
/// 2000 on, as PostgreSQL counts.
pub fn rounded_datum(value: Datum, digits: u8) -> Datum {
    const FROM_2000: i64 = 946_684_800_000_000;
    let moment = |v: i64| match v.checked_sub(FROM_2000).filter(|_| !is_infinite(v)) {
        Some(v) => rounded(v, digits).saturating_add(FROM_2000),
        None => v,
    };
    match value {
        Datum::Timestamp(v) => Datum::Timestamp(moment(v)),
        Datum::Timestamptz(v) => Datum::Timestamptz(moment(v)),
        Datum::Time(v) => Datum::Time(rounded(v, digits)),
        Datum::Interval(v) => Datum::Interval(v.limited(None, Some(digits))),
        other => other,
    }
}

/// Microseconds with so many digits of a second, halves away from zero.
pub fn rounded(micros: i64, digits: u8) -> i64 {
    let Some(scale) = 10i64.checked_pow(6u32.saturating_sub(digits.into())) else { return micros };
    let away = if micros < 0 { -(scale / 2) } else { scale / 2 };
    micros.saturating_add(away) / scale * scale
}

/// `04:05:06.5`
pub(super) fn write_clock(out: &mut impl fmt::Write, micros: u64) -> fmt::Result {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        write!(out, ".{}", digits.trim_end_matches('0'))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
