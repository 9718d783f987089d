//! Time zones: in which a timestamp with time zone is read where its text names none, and shown.
//!
//! 1. The zone is that of the work under way: it is a part of the [`Style`].
//! 2. A local time that a clock set back shows twice is the later one (standard time); one that a clock set forward
//!    passes by is told as if the clock had not been set. So PostgreSQL has it.
//!
//! 3. The last rule of a zone goes on for ever, as POSIX has it.
//!
//! Rules are the IANA database's as chrono-tz has it, which lists changes of clocks until [`LISTED`].
use super::style::Style;
use super::timestamp::{self, hours_and_minutes, show_offset};
use chrono::offset::Offset;
use chrono::{DateTime, Datelike, NaiveDate, TimeZone};
use chrono_tz::{OffsetName, TZ_VARIANTS, Tz};
use std::fmt;

mod abbreviations;

use abbreviations::Abbreviation;

/// A time zone. Copied freely.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Zone {
    #[default]
    Utc,
    /// Seconds east of UTC.
    Fixed(i32),
    Named(Tz),
    /// A changing one; only texts and expressions have it.
    Abbreviated(Abbreviation),
}

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// The first year whose changes of clocks are not listed.
const LISTED: i32 = 2100;

/// Years in which zones follow their last rules, none of them with a 29th of February. Their days fall on all weekdays.
const PLAIN_YEARS: [i32; 9] = [2089, 2090, 2091, 2093, 2094, 2095, 2097, 2098, 2099];

/// Days after which the calendar repeats itself.
const CYCLE: i64 = 146_097;

/// The farthest from UTC that a text can state, in seconds.
pub(super) const FARTHEST: i64 = 16 * 3600 - 1;

impl Zone {
    /// Of the work under way (invariant 1).
    pub fn current() -> Zone {
        Style::current().zone
    }

    /// Does `work` in this zone.
    pub fn scope<T>(self, work: impl FnOnce() -> T) -> T {
        Style { zone: self, ..Style::current() }.scope(work)
    }

    /// By a name of the IANA database (in any case), hours east of UTC (`-3`, `5.5`), or as POSIX writes a zone without
    /// summer time (`XYZ5:30`, `<+02>-02`: hours *west* of UTC).
    pub fn named(name: &str) -> Option<Zone> {
        let name = name.trim();
        if let Ok(hours) = name.parse::<f64>() {
            if hours.is_nan() {
                return None;
            }
            return Zone::fixed((hours * 3600.0) as i64);
        }
        let known = TZ_VARIANTS.iter().find(|tz| tz.name().eq_ignore_ascii_case(name));
        match known {
            Some(Tz::UTC | Tz::Etc__UTC | Tz::GMT | Tz::Etc__GMT) => Some(Zone::Utc),
            Some(tz) => Some(Zone::Named(*tz)),
            None => Zone::posix(name),
        }
    }

    /// The name of what [`Zone::named`] finds, as SHOW tells it: one that POSIX has stays as it was written, but in
    /// capitals.
    pub fn shown(name: &str) -> Option<String> {
        let (zone, name) = (Zone::named(name)?, name.trim());
        let known = || TZ_VARIANTS.iter().find(|tz| tz.name().eq_ignore_ascii_case(name));
        Some(match zone {
            Zone::Utc if name.parse::<f64>().is_ok() => Zone::Fixed(0).to_string(),
            Zone::Fixed(_) if name.parse::<f64>().is_ok() => zone.to_string(),
            _ => known().map_or_else(|| name.to_ascii_uppercase(), |tz| tz.name().to_owned()),
        })
    }

    /// As AT TIME ZONE and the texts of times name it: an abbreviation is a fixed offset, also where a zone has the
    /// same name (`CET` is one hour in summer too), and hours are POSIX's, so *west* of UTC.
    pub fn in_expression(name: &str) -> Option<Zone> {
        let name = name.trim();
        if let Some(zone) = abbreviations::named(name) {
            return Some(zone);
        }
        match name.parse::<f64>() {
            Ok(_) => Zone::posix(name),
            Err(_) => Zone::named(name),
        }
    }

    /// As the text of a time names it: by the IANA database, or as POSIX does.
    pub(super) fn by_name(name: &str) -> Option<Zone> {
        if name.parse::<f64>().is_ok() { None } else { Zone::named(name) }
    }

    /// As arguments of functions name it: an offset east of UTC (`+2`, `-05:30`), an abbreviation, a name.
    pub fn stated(name: &str) -> Option<Zone> {
        match name.starts_with(['+', '-']) {
            true => timestamp::displacement(name).map(|east| Zone::Fixed(east as i32)),
            false => Zone::in_expression(name),
        }
    }

    pub(super) fn by_abbreviation(name: &str) -> Option<Zone> {
        abbreviations::named(name)
    }

    /// What clocks call it at a moment: `CEST`.
    pub(super) fn abbreviation_at(self, utc: i64) -> String {
        match self {
            Zone::Utc => "UTC".to_owned(),
            Zone::Abbreviated(own) => own.name().to_owned(),
            Zone::Fixed(east) => show_offset(east),
            Zone::Named(tz) => {
                let far = if utc < 0 { DateTime::<chrono::Utc>::MIN_UTC } else { DateTime::<chrono::Utc>::MAX_UTC };
                let moment = DateTime::from_timestamp_micros(listed(utc)).unwrap_or(far);
                let offset = tz.offset_from_utc_datetime(&moment.naive_utc());
                offset.abbreviation().map_or_else(|| show_offset(self.offset_at(utc)), str::to_owned)
            }
        }
    }

    fn fixed(seconds: i64) -> Option<Zone> {
        match seconds {
            0 => Some(Zone::Utc),
            _ if seconds.unsigned_abs() <= FARTHEST as u64 => Some(Zone::Fixed(seconds as i32)),
            _ => None,
        }
    }

    fn posix(name: &str) -> Option<Zone> {
        let rest = match name.strip_prefix('<') {
            Some(quoted) => quoted.split_once('>').filter(|(abbreviation, _)| !abbreviation.is_empty())?.1,
            None => {
                let rest = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
                let letters = name.len() - rest.len();
                if letters > 0 && letters < 3 {
                    return None;
                }
                rest
            }
        };
        let (sign, digits) = match rest.strip_prefix('-') {
            Some(digits) => (1, digits),
            None => (-1, rest.strip_prefix('+').unwrap_or(rest)),
        };
        Zone::fixed(sign * hours_and_minutes(digits)?)
    }

    /// Seconds east of UTC at a moment (microseconds since 1970).
    pub fn offset_at(self, utc: i64) -> i32 {
        match self {
            Zone::Utc => 0,
            Zone::Fixed(offset) => offset,
            Zone::Abbreviated(own) => own.offset_at(utc),
            Zone::Named(tz) => {
                // What chrono's calendar does not reach has the rules of its nearest year.
                let far = if utc < 0 { DateTime::<chrono::Utc>::MIN_UTC } else { DateTime::<chrono::Utc>::MAX_UTC };
                let moment = DateTime::from_timestamp_micros(listed(utc)).unwrap_or(far);
                tz.offset_from_utc_datetime(&moment.naive_utc()).fix().local_minus_utc()
            }
        }
    }

    /// What clocks show at a moment; of an infinite one, itself.
    pub fn local(self, utc: i64) -> i64 {
        if timestamp::is_infinite(utc) {
            return utc;
        }
        // At the ends of 64 bits it stays finite.
        utc.saturating_add(i64::from(self.offset_at(utc)) * SECOND).clamp(i64::MIN + 1, i64::MAX - 1)
    }

    /// The moment at which clocks show this (invariant 2); `None` where it is out of range.
    pub fn utc(self, local: i64) -> Option<i64> {
        if timestamp::is_infinite(local) {
            return Some(local);
        }
        if let Zone::Abbreviated(own) = self {
            let offset = own.offset_at(own.zone().utc(local)?);
            return local.checked_sub(i64::from(offset) * SECOND);
        }
        let at = |offset: i32| local.checked_sub(i64::from(offset) * SECOND);
        let (before, after) = (self.offset_at(local.saturating_sub(DAY)), self.offset_at(local.saturating_add(DAY)));
        // Between two settings of the clock the offsets before and after are one.
        let late = at(after)?;
        if before == after || self.offset_at(late) == after { Some(late) } else { at(before) }
    }
}

/// A moment at which clocks show what they do at this one, in a year whose changes are listed (invariant 3): rules name
/// months and weekdays, so it is on the same day of a year in which that is the same weekday.
fn listed(utc: i64) -> i64 {
    let Some(begin) = NaiveDate::from_yo_opt(LISTED, 1) else { return utc };
    let begin = i64::from(begin.to_epoch_days());
    let day = utc.div_euclid(DAY);
    if day < begin {
        return utc;
    }
    let near = begin + (day - begin) % CYCLE;
    let alike = i32::try_from(near).ok().and_then(NaiveDate::from_epoch_days).and_then(|date| {
        let on = |year| {
            let leap_day = (date.month(), date.day()) == (2, 29);
            NaiveDate::from_ymd_opt(year, date.month(), if leap_day { 28 } else { date.day() })
        };
        PLAIN_YEARS.into_iter().filter_map(on).find(|known| known.weekday() == date.weekday())
    });
    alike.map_or(utc, |known| utc - (day - i64::from(known.to_epoch_days())) * DAY)
}

/// As SHOW tells it.
impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Zone::Utc => f.write_str("UTC"),
            Zone::Fixed(0) => f.write_str("<+00>-00"),
            Zone::Fixed(east) => write!(f, "<{}>{}", show_offset(*east), show_offset(-east)),
            Zone::Named(tz) => f.write_str(tz.name()),
            Zone::Abbreviated(own) => f.write_str(own.name()),
        }
    }
}

#[cfg(test)]
mod tests;
