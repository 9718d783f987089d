//! Dates and timestamps: proleptic Gregorian calendar, days or microseconds since 1970-01-01 00:00:00. Days to civil
//! date and back by Hinnant's algorithms ("chrono-Compatible Low-Level Date Algorithms").
//!
//! In: `YYYY-MM-DD`, then optionally a space or `T` and `HH:MM[:SS[.ffffff]]`, a zone (`Z`, `+HH[:MM]` or a name; read
//! and ignored, as PostgreSQL does, by the types that have none), `BC`. Out: `YYYY-MM-DD HH:MM:SS[.ffffff]`, trailing
//! zeros of the fraction cut, and for a timestamp with time zone the offset in which it is shown.
use super::trim;
use super::zone::{FARTHEST, Zone};
use crate::error::{EngineError, Result};
use std::fmt;

const DAY: i64 = 86_400_000_000;
/// As in PostgreSQL: 4714-11-24 BC.
const FIRST_DAY: (i64, i64, i64) = (-4713, 11, 24);
/// The last whole year in 64 bits of microseconds from 1970.
const LAST_YEAR: i64 = 294_246;
/// The last year of a date, as in PostgreSQL.
const LAST_DATE_YEAR: i64 = 5_874_897;

struct Bad;

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

pub(super) fn write(f: &mut fmt::Formatter<'_>, micros: i64) -> fmt::Result {
    write_with_zone(f, micros, "")
}

fn write_with_zone(f: &mut impl fmt::Write, micros: i64, zone: &str) -> fmt::Result {
    let (days, rest) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let (seconds, fraction) = (rest / 1_000_000, rest % 1_000_000);
    let era = write_day(f, days)?;
    write!(f, " {:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        write!(f, ".{}", digits.trim_end_matches('0'))?;
    }
    f.write_str(zone)?;
    f.write_str(era)
}

/// Writes year, month, day; answers what ends the text.
fn write_day(f: &mut impl fmt::Write, days: i64) -> Result<&'static str, fmt::Error> {
    let (year, month, day) = civil_from_days(days);
    let shown = if year > 0 { year } else { 1 - year };
    write!(f, "{shown:04}-{month:02}-{day:02}")?;
    Ok(if year > 0 { "" } else { " BC" })
}

pub(super) fn write_date(f: &mut fmt::Formatter<'_>, days: i32) -> fmt::Result {
    let era = write_day(f, days.into())?;
    f.write_str(era)
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
pub(super) fn hours_and_minutes(mut text: &str) -> Option<i64> {
    let s = &mut text;
    let seconds = (|| {
        let first = digits(s, 1, 4)?;
        let value: i64 = first.parse().map_err(|_| Bad)?;
        let (hours, mut minutes, mut seconds) =
            if first.len() > 2 { (value / 100, value % 100, 0) } else { (value, 0, 0) };
        if eat(s, ':') {
            minutes = number(s, 2, 2)?;
            if eat(s, ':') {
                seconds = number(s, 2, 2)?;
            }
        }
        if s.is_empty() && minutes <= 59 && seconds <= 59 {
            Ok(hours * 3600 + minutes * 60 + seconds)
        } else {
            Err(Bad)
        }
    })();
    seconds.ok()
}

/// The text of a timestamp with time zone, in the zone of the work under way.
pub(super) fn write_timestamptz(f: &mut fmt::Formatter<'_>, utc: i64) -> fmt::Result {
    let zone = Zone::current();
    write_with_zone(f, zone.local(utc), &show_offset(zone.offset_at(utc)))
}

/// Reads a timestamp with time zone: in the zone of the work under way where it states none. Answers microseconds in
/// UTC.
pub(super) fn parse_timestamptz(text: &str) -> Result<i64> {
    let (local, stated) = parse_fields(text, "timestamp with time zone")?;
    let utc = stated.unwrap_or_else(Zone::current).utc(local);
    utc.ok_or_else(|| EngineError::new("22008", format!("timestamp out of range: \"{text}\"")))
}

/// The day a timestamp lies on.
pub fn date_of_timestamp(micros: i64) -> i32 {
    micros.div_euclid(DAY) as i32
}

/// Midnight at the beginning of a day. 22008 where timestamps do not reach.
pub fn timestamp_of_date(days: i32) -> Result<i64> {
    i64::from(days).checked_mul(DAY).ok_or_else(|| EngineError::new("22008", "date out of range for timestamp"))
}

pub(super) fn parse_date(text: &str) -> Result<i32> {
    let f = split(text, "date")?;
    if f.year > LAST_DATE_YEAR || f.is_too_early() {
        return Err(EngineError::new("22008", format!("date out of range: \"{text}\"")));
    }
    Ok(days_from_civil(f.year, f.month, f.day) as i32)
}

/// Takes the decimal digits at the front; at least `least` and at most `most` of them.
fn digits<'a>(s: &mut &'a str, least: usize, most: usize) -> Result<&'a str, Bad> {
    let n = s.bytes().take_while(u8::is_ascii_digit).count();
    if n < least || n > most {
        return Err(Bad);
    }
    let (front, rest) = s.split_at(n);
    *s = rest;
    Ok(front)
}

fn number(s: &mut &str, least: usize, most: usize) -> Result<i64, Bad> {
    digits(s, least, most)?.parse().map_err(|_| Bad)
}

fn eat(s: &mut &str, c: char) -> bool {
    match s.strip_prefix(c) {
        Some(rest) => {
            *s = rest;
            true
        }
        None => false,
    }
}

fn expect(s: &mut &str, c: char) -> Result<(), Bad> {
    if eat(s, c) { Ok(()) } else { Err(Bad) }
}

struct Fields {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// Where the text says.
    zone: Option<Zone>,
}

impl Fields {
    fn is_too_early(&self) -> bool {
        (self.year, self.month, self.day) < FIRST_DAY
    }
}

/// Splits the text into fields, values unchecked.
fn fields(mut s: &str) -> Result<Fields, Bad> {
    let mut bc = false;
    if let Some(cut) = s.len().checked_sub(3).filter(|&at| s.is_char_boundary(at))
        && s[cut..].eq_ignore_ascii_case(" bc")
    {
        (bc, s) = (true, s[..cut].trim_end());
    }
    let s = &mut s;
    let year = number(s, 4, 7)?;
    let mut out = Fields { year, month: 0, day: 0, hour: 0, minute: 0, second: 0, micros: 0, zone: None };
    expect(s, '-')?;
    out.month = number(s, 1, 2)?;
    expect(s, '-')?;
    out.day = number(s, 1, 2)?;
    if bc {
        // Year 1 BC is year 0; there is no year 0 to write.
        out.year = if out.year == 0 { i64::MAX } else { 1 - out.year };
    } else if out.year == 0 {
        out.year = i64::MAX;
    }
    if s.is_empty() {
        return Ok(out);
    }
    if !(eat(s, 'T') || eat(s, 't')) {
        let trimmed = s.trim_start_matches(' ');
        if trimmed.len() == s.len() {
            return Err(Bad);
        }
        *s = trimmed;
    }
    out.hour = number(s, 1, 2)?;
    expect(s, ':')?;
    out.minute = number(s, 2, 2)?;
    if eat(s, ':') {
        out.second = number(s, 2, 2)?;
        if eat(s, '.') {
            out.micros = fraction(digits(s, 0, 30)?);
        }
    }
    out.zone = zone(s)?;
    Ok(out)
}

/// Microseconds of a decimal fraction, rounded to the nearest.
fn fraction(digits: &str) -> i64 {
    let scaled = digits.bytes().chain(std::iter::repeat(b'0')).take(7).fold(0, |v, b| v * 10 + (b - b'0') as i64);
    (scaled + 5) / 10
}

/// Reads a zone: `Z`, `+HH[[:]MM[:SS]]` (hours east of UTC), or a name.
fn zone(s: &mut &str) -> Result<Option<Zone>, Bad> {
    let text = s.trim_start_matches(' ');
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    match text {
        "" => Ok(None),
        "z" | "Z" => Ok(Some(Zone::Utc)),
        _ if digits.len() < text.len() => {
            let offset = hours_and_minutes(digits).filter(|seconds| *seconds <= FARTHEST).ok_or(Bad)?;
            Ok(Some(Zone::Fixed((sign * offset) as i32)))
        }
        name if name.starts_with(|c: char| c.is_ascii_alphabetic()) => Zone::in_expression(name).map(Some).ok_or(Bad),
        _ => Err(Bad),
    }
}

pub(super) fn parse(text: &str) -> Result<i64> {
    parse_fields(text, "timestamp").map(|(micros, _)| micros)
}

/// Microseconds as written, and the zone.
fn parse_fields(text: &str, type_name: &str) -> Result<(i64, Option<Zone>)> {
    let f = split(text, type_name)?;
    if f.year > LAST_YEAR || f.is_too_early() {
        return Err(EngineError::new("22008", format!("timestamp out of range: \"{text}\"")));
    }
    let of_day = (f.hour * 3600 + f.minute * 60 + f.second) * 1_000_000 + f.micros;
    Ok((days_from_civil(f.year, f.month, f.day) * DAY + of_day, f.zone))
}

/// Fields that name a day and a time of it.
fn split(text: &str, type_name: &str) -> Result<Fields> {
    let body = trim(text);
    let word = body.strip_prefix(['-', '+']).unwrap_or(body);
    if word.eq_ignore_ascii_case("infinity") || word.eq_ignore_ascii_case("inf") {
        return Err(EngineError::unsupported("infinite timestamps are not supported"));
    }
    let f = fields(body)
        .map_err(|Bad| EngineError::new("22007", format!("invalid input syntax for type {type_name}: \"{text}\"")))?;
    let overflow = || EngineError::new("22008", format!("date/time field value out of range: \"{text}\""));
    if !(1..=12).contains(&f.month) || f.year == i64::MAX || f.day < 1 || f.day > days_in_month(f.year, f.month) {
        return Err(overflow());
    }
    let of_day = (f.hour * 3600 + f.minute * 60 + f.second) * 1_000_000 + f.micros;
    if f.minute > 59 || f.second > 60 || f.hour > 24 || of_day > DAY {
        return Err(overflow());
    }
    Ok(f)
}
