//! Dates and timestamps: proleptic Gregorian calendar, days or microseconds since 1970-01-01 00:00:00. Days to civil
//! date and back by Hinnant's algorithms ("chrono-Compatible Low-Level Date Algorithms").
//!
//! 1. The least and the greatest number stand for `-infinity` and `infinity` ([`is_infinite`], [`is_infinite_date`]),
//!    so that they compare as PostgreSQL's do. They have no fields.
//!
//! In: [`read`]. A zone is read and ignored, as PostgreSQL does, by the types that have none. Out: [`write`].
use super::zone::Zone;
use crate::error::{EngineError, Result};

mod read;
mod write;

use read::Found;
pub(super) use write::{write, write_date, write_timestamptz};

const DAY: i64 = 86_400_000_000;
/// From 4714-11-24 BC to 5874897-12-31, as in PostgreSQL.
pub const DATES: std::ops::Range<i32> = -2_440_588..2_145_042_906;
/// 4714-11-24 BC. (The other end is beyond what 64 bits hold from 1970 on: the last whole year is 294246.)
pub const FIRST_TIMESTAMP: i64 = -210_866_803_200_000_000;
/// A day before: what a zone makes of it may be in range.
const FIRST_WITH_ZONES: i64 = -2_440_589;

/// Whether a timestamp is `infinity` or `-infinity` (invariant 1).
pub fn is_infinite(micros: i64) -> bool {
    matches!(micros, i64::MIN | i64::MAX)
}

/// Whether a date is.
pub fn is_infinite_date(days: i32) -> bool {
    matches!(days, i32::MIN | i32::MAX)
}

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar. Year 0 is 1 BC; the month may be any from 1 to
/// 12.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

/// Year (0 is 1 BC), month, day.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// `+02`, `-05:30`, `+00:53:28`. `offset`: seconds east of UTC.
pub(super) fn show_offset(offset: i32) -> String {
    let (hours, rest) = (offset.abs() / 3600, offset.abs() % 3600);
    let mut zone = format!("{}{hours:02}", if offset < 0 { '-' } else { '+' });
    if rest != 0 {
        zone.push_str(&format!(":{:02}", rest / 60));
    }
    if rest % 60 != 0 {
        zone.push_str(&format!(":{:02}", rest % 60));
    }
    zone
}

/// `HH[[:]MM[:SS]]` in seconds.
pub(super) fn hours_and_minutes(text: &str) -> Option<i64> {
    let part = |text: &str, lengths: std::ops::RangeInclusive<usize>| -> Option<i64> {
        let fits = lengths.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        fits.then(|| text.parse().ok())?
    };
    let mut parts = text.split(':');
    let first = parts.next()?;
    let value = part(first, 1..=4)?;
    let (hours, run) = if first.len() > 2 { (value / 100, value % 100) } else { (value, 0) };
    let minutes = parts.next().map_or(Some(run), |text| part(text, 2..=2))?;
    let seconds = parts.next().map_or(Some(0), |text| part(text, 2..=2))?;
    let fits = parts.next().is_none() && minutes <= 59 && seconds <= 59;
    fits.then_some(hours * 3600 + minutes * 60 + seconds)
}

/// `+05:30` in seconds east of UTC.
pub(super) fn displacement(text: &str) -> Option<i64> {
    read::offset(text)
}

/// Reads a timestamp with time zone: in the zone of the work under way where it states none. Answers microseconds in
/// UTC.
pub(super) fn parse_timestamptz(text: &str) -> Result<i64> {
    moment(text, "timestamp with time zone", |local, zone| zone.unwrap_or_else(Zone::current).utc(local))
}

pub(super) fn parse(text: &str) -> Result<i64> {
    moment(text, "timestamp", |local, _| Some(local))
}

fn moment(text: &str, type_name: &str, of: impl FnOnce(i64, Option<Zone>) -> Option<i64>) -> Result<i64> {
    let found = match read::read(text, type_name)? {
        Found::At { days, .. } if days < FIRST_WITH_ZONES => None,
        Found::At { days, micros, zone } => {
            days.checked_mul(DAY).and_then(|day| day.checked_add(micros)).and_then(|local| of(local, zone))
        }
        Found::Epoch => Some(0),
        Found::Late => return Ok(i64::MAX),
        Found::Early => return Ok(i64::MIN),
    };
    let found = found.filter(|v| *v >= FIRST_TIMESTAMP && !is_infinite(*v));
    found.ok_or_else(|| EngineError::new("22008", format!("timestamp out of range: \"{text}\"")))
}

pub(super) fn parse_date(text: &str) -> Result<i32> {
    let days = match read::read(text, "date")? {
        Found::At { days, .. } => days,
        Found::Epoch => 0,
        Found::Late => return Ok(i32::MAX),
        Found::Early => return Ok(i32::MIN),
    };
    let date = i32::try_from(days).ok().filter(|days| DATES.contains(days));
    date.ok_or_else(|| EngineError::new("22008", format!("date out of range: \"{text}\"")))
}

/// The day a timestamp lies on.
pub fn date_of_timestamp(micros: i64) -> i32 {
    match micros {
        i64::MIN => return i32::MIN,
        i64::MAX => return i32::MAX,
        _ => {}
    }
    micros.div_euclid(DAY) as i32
}

/// Midnight at the beginning of a day. 22008 where timestamps do not reach.
pub fn timestamp_of_date(days: i32) -> Result<i64> {
    match days {
        i32::MIN => return Ok(i64::MIN),
        i32::MAX => return Ok(i64::MAX),
        _ => {}
    }
    i64::from(days).checked_mul(DAY).ok_or_else(|| EngineError::new("22008", "date out of range for timestamp"))
}
