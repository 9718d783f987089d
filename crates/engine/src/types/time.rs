//! Times of day: microseconds since midnight, up to and including 24:00:00.
//!
//! In: `HH:MM[:SS[.ffffff]]`, `HHMM[SS[.ffffff]]`, with `AM` or `PM`, `allballs`; a day before it and a zone after it
//! are read and ignored, as PostgreSQL does. Out: `HH:MM:SS[.ffffff]`.
use super::zone::{FARTHEST, Zone};
use super::{clock, interval, timestamp, trim};
use crate::error::{EngineError, Result};
use std::fmt;

/// Of a day; 24:00:00 is a time.
pub const DAY_MICROS: i64 = 86_400_000_000;

pub(super) fn write(f: &mut fmt::Formatter<'_>, micros: i64) -> fmt::Result {
    interval::write_clock(f, micros.unsigned_abs())
}

/// A clock's fields.
struct Clock {
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
}

pub(super) fn parse(text: &str) -> Result<i64> {
    let body = trim(text);
    if body.eq_ignore_ascii_case("allballs") {
        return Ok(0);
    }
    if body.eq_ignore_ascii_case("now")
        && let Some(now) = clock::now()
    {
        return Ok(Zone::current().local(now).rem_euclid(DAY_MICROS));
    }
    let bad = || EngineError::new("22007", format!("invalid input syntax for type time: \"{text}\""));
    let clock = clock(body, false).or_else(|| behind_a_day(body)).ok_or_else(bad)?;
    let Clock { hour, minute, second, micros } = clock;
    let of_day = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros;
    if minute > 59 || second > 60 || hour > 24 || of_day > DAY_MICROS {
        return Err(EngineError::new("22008", format!("date/time field value out of range: \"{text}\"")));
    }
    Ok(of_day)
}

/// `2003-04-12 04:05:06`
fn behind_a_day(text: &str) -> Option<Clock> {
    let (day, time) = text.split_once([' ', 'T', 't'])?;
    let is_day = day.len() >= 8 && day.contains('-') && timestamp::parse_date(day).is_ok();
    if is_day { clock(time.trim_start(), true) } else { None }
}

/// `dated`: a day is stated before it.
fn clock(text: &str, dated: bool) -> Option<Clock> {
    let colon = text.find(|c: char| !c.is_ascii_digit()).filter(|at| text[*at..].starts_with(':'));
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.'))).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let (digits, fraction) = digits.split_once('.').map_or((digits, None), |(digits, part)| (digits, Some(part)));
    let number = |text: &str, most: usize| -> Option<i64> {
        let fits = (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        fits.then(|| text.parse().ok())?
    };
    let (hour, minute, second) = match (colon, digits.split(':').collect::<Vec<_>>().as_slice()) {
        (Some(_), [minute, second]) if fraction.is_some() => (0, number(minute, 9)?, number(second, 9)?),
        (Some(_), [hour, minute]) => (number(hour, 9)?, number(minute, 9)?, 0),
        (Some(_), [hour, minute, second]) => (number(hour, 9)?, number(minute, 9)?, number(second, 9)?),
        (None, [run]) if run.len() == 6 => (number(&run[..2], 2)?, number(&run[2..4], 2)?, number(&run[4..], 2)?),
        (None, [run]) if run.len() == 4 && fraction.is_none() => (number(&run[..2], 2)?, number(&run[2..], 2)?, 0),
        _ => return None,
    };
    let micros = match fraction {
        Some(part) if part.bytes().all(|b| b.is_ascii_digit()) => {
            let part: f64 = format!("0.{part}0").parse().ok()?;
            (part * 1e6).round_ties_even() as i64
        }
        Some(_) => return None,
        None => 0,
    };
    let (hour, rest) = half_of_day(hour, rest.trim_start())?;
    is_zone(rest.trim_start(), dated).then_some(Clock { hour, minute, second, micros })
}

/// The hour that AM or PM makes of it, and what is behind that.
fn half_of_day(hour: i64, rest: &str) -> Option<(i64, &str)> {
    let word = rest.get(..2).filter(|_| !rest[2..].starts_with(|c: char| c.is_ascii_alphabetic()));
    let afternoon = match word.map(str::to_ascii_lowercase).as_deref() {
        Some("am") => false,
        Some("pm") => true,
        _ => return Some((hour, rest)),
    };
    let hour = match hour {
        // Out of range, which is told when all is read.
        13.. => 99,
        12 if !afternoon => 0,
        12 => 12,
        hour if afternoon => hour + 12,
        hour => hour,
    };
    Some((hour, &rest[2..]))
}

fn is_zone(text: &str, dated: bool) -> bool {
    let digits = text.strip_prefix(['+', '-']);
    match digits {
        _ if text.is_empty() || text.eq_ignore_ascii_case("z") => true,
        Some(digits) => timestamp::hours_and_minutes(digits).is_some_and(|seconds| seconds <= FARTHEST),
        // A zone whose offset changes has none where no day is stated.
        None => Zone::in_expression(text).is_some_and(|zone| dated || matches!(zone, Zone::Utc | Zone::Fixed(_))),
    }
}
