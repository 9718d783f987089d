//! Fields of times, and times cut to a unit, on PostgreSQL's calendar.
//!
//! Source: PostgreSQL 15 documentation, "Date/Time Functions and Operators".
use terrace_engine::types::{FIRST_TIMESTAMP, Zone, civil_from_days, days_from_civil, is_infinite};

pub(crate) const DAY: i64 = 86_400_000_000;
/// The Julian day of 1970-01-01.
pub(crate) const JULIAN_OF_1970: i64 = 2_440_588;

/// A field of a time, or a unit to cut it to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Epoch,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    IsoYear,
    /// Days since 4714-11-24 BC.
    Julian,
    /// Seconds east of UTC.
    Timezone,
    TimezoneHour,
    TimezoneMinute,
}

impl Part {
    pub(crate) fn named(name: &str) -> Option<Part> {
        Some(match name.trim_matches(['\'', '"']).to_ascii_lowercase().as_str() {
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" | "usecond" | "useconds" => Part::Microseconds,
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" | "msecond" | "mseconds" => Part::Milliseconds,
            "second" | "seconds" | "sec" | "secs" | "s" => Part::Second,
            "minute" | "minutes" | "min" | "mins" | "m" => Part::Minute,
            "hour" | "hours" | "hr" | "hrs" | "h" => Part::Hour,
            "day" | "days" | "d" => Part::Day,
            "week" | "weeks" | "w" => Part::Week,
            "month" | "months" | "mon" | "mons" => Part::Month,
            "quarter" | "qtr" => Part::Quarter,
            "year" | "years" | "yr" | "yrs" | "y" => Part::Year,
            "decade" | "decades" | "dec" | "decs" => Part::Decade,
            "century" | "centuries" | "cent" | "c" => Part::Century,
            "millennium" | "millenniums" | "millennia" | "mil" | "mils" => Part::Millennium,
            "epoch" => Part::Epoch,
            "dow" => Part::DayOfWeek,
            "isodow" => Part::IsoDayOfWeek,
            "doy" => Part::DayOfYear,
            "isoyear" => Part::IsoYear,
            "julian" | "jd" | "j" => Part::Julian,
            "timezone" => Part::Timezone,
            "timezone_hour" | "timezone_h" => Part::TimezoneHour,
            "timezone_minute" | "timezone_m" => Part::TimezoneMinute,
            _ => return None,
        })
    }

    /// Whether a date has no such field: one of the time of day, or of a zone.
    pub(crate) fn is_of_day(self) -> bool {
        use Part::{Hour, Microseconds, Milliseconds, Minute, Second};
        self.is_of_zone() || matches!(self, Microseconds | Milliseconds | Second | Minute | Hour)
    }

    /// Whether it grows with time for ever, so that it is infinite of an infinite time. Other fields of it are NULL.
    pub(crate) fn is_endless(self) -> bool {
        use Part::{Century, Decade, Epoch, IsoYear, Julian, Millennium, Year};
        matches!(self, Year | Decade | Century | Millennium | Epoch | IsoYear | Julian)
    }

    /// Whether only a timestamp with time zone has such a field.
    pub(crate) fn is_of_zone(self) -> bool {
        matches!(self, Part::Timezone | Part::TimezoneHour | Part::TimezoneMinute)
    }

    /// Digits behind the point of the field's value.
    pub(crate) fn scale(self) -> u8 {
        match self {
            Part::Second | Part::Epoch => 6,
            Part::Milliseconds => 3,
            _ => 0,
        }
    }

    /// Of a timestamp (microseconds since 1970), times 10^[`Part::scale`].
    pub(crate) fn of_timestamp(self, micros: i64) -> i128 {
        let (days, of_day) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
        let (year, month, day) = civil_from_days(days);
        let within_minute = of_day % 60_000_000;
        let isodow = (days + 3).rem_euclid(7) + 1;
        // The ISO week belongs to the year of its Thursday.
        let (iso_year, ..) = civil_from_days(days - isodow + 4);
        // There is no year 0 to show.
        let shown = |year: i64| if year > 0 { year } else { year - 1 };
        let value = match self {
            Part::Microseconds | Part::Milliseconds | Part::Second => within_minute,
            Part::Minute => of_day / 60_000_000 % 60,
            Part::Hour => of_day / 3_600_000_000,
            Part::Day => day,
            Part::Week => (days - isodow + 4 - days_from_civil(iso_year, 1, 1)) / 7 + 1,
            Part::Month => month,
            Part::Quarter => (month - 1) / 3 + 1,
            Part::Year => shown(year),
            Part::Decade => year.div_euclid(10),
            Part::Century => shown_span(year, 100),
            Part::Millennium => shown_span(year, 1000),
            Part::Epoch => micros,
            Part::DayOfWeek => isodow % 7,
            Part::IsoDayOfWeek => isodow,
            Part::DayOfYear => days - days_from_civil(year, 1, 1) + 1,
            Part::IsoYear => shown(iso_year),
            Part::Julian => days + JULIAN_OF_1970,
            Part::Timezone | Part::TimezoneHour | Part::TimezoneMinute => 0,
        };
        value.into()
    }

    /// Of a moment (microseconds since 1970, UTC), as clocks show it in a zone; times 10^[`Part::scale`].
    pub(crate) fn of_moment(self, utc: i64, zone: Zone) -> i128 {
        let offset = i128::from(zone.offset_at(utc));
        match self {
            Part::Epoch => self.of_timestamp(utc),
            Part::Timezone => offset,
            Part::TimezoneHour => offset / 3600,
            Part::TimezoneMinute => offset / 60 % 60,
            _ => self.of_timestamp(zone.local(utc)),
        }
    }

    /// Of an interval, times 10^[`Part::scale`]; `None` where intervals have no such field.
    pub(crate) fn of_interval(self, months: i32, days: i32, micros: i64) -> Option<i128> {
        let years = i64::from(months) / 12;
        let value = match self {
            Part::Microseconds | Part::Milliseconds | Part::Second => micros % 60_000_000,
            Part::Minute => micros / 60_000_000 % 60,
            Part::Hour => micros / 3_600_000_000,
            Part::Day => days.into(),
            Part::Month => i64::from(months) % 12,
            Part::Quarter => i64::from(months) % 12 / 3 + 1,
            Part::Year => years,
            Part::Decade => years / 10,
            Part::Century => years / 100,
            Part::Millennium => years / 1000,
            Part::Epoch => {
                // A year is 365.25 days, a month 30.
                let quarter_days = i128::from(years) * 1461 + i128::from(months % 12) * 120 + i128::from(days) * 4;
                return Some(quarter_days * i128::from(DAY / 4) + i128::from(micros));
            }
            _ => return None,
        };
        Some(value.into())
    }

    /// Of a time of day, times 10^[`Part::scale`]; `None` where times have no such field.
    pub(crate) fn of_time(self, micros: i64) -> Option<i128> {
        Some(match self {
            // 24:00 is an hour of its own.
            Part::Hour => (micros / 3_600_000_000).into(),
            Part::Epoch | Part::Microseconds | Part::Milliseconds | Part::Second | Part::Minute => {
                self.of_interval(0, 0, micros)?
            }
            _ => return None,
        })
    }

    /// Months, days and microseconds of an interval without what is smaller than the unit; `None`: it is none of
    /// intervals.
    pub(crate) fn truncate_interval(self, months: i32, days: i32, micros: i64) -> Option<(i32, i32, i64)> {
        let to = |size: i64| Some((months, days, micros / size * size));
        match self {
            Part::Microseconds => to(1),
            Part::Milliseconds => to(1000),
            Part::Second => to(1_000_000),
            Part::Minute => to(60_000_000),
            Part::Hour => to(3_600_000_000),
            Part::Day => Some((months, days, 0)),
            Part::Month => Some((months, 0, 0)),
            Part::Quarter => Some((months / 3 * 3, 0, 0)),
            Part::Year => Some((months / 12 * 12, 0, 0)),
            Part::Decade => Some((months / 120 * 120, 0, 0)),
            Part::Century => Some((months / 1200 * 1200, 0, 0)),
            Part::Millennium => Some((months / 12_000 * 12_000, 0, 0)),
            _ => None,
        }
    }

    /// The beginning of the unit that a timestamp lies in; `None` where the part is no unit, or the beginning is out of
    /// range.
    pub(crate) fn truncate(self, micros: i64) -> Option<i64> {
        if is_infinite(micros) {
            return self.truncate(0).map(|_| micros);
        }
        let (year, month, _) = civil_from_days(micros.div_euclid(DAY));
        let unit = |size: i64| micros.checked_sub(micros.rem_euclid(size));
        let date = |year: i64, month: i64| days_from_civil(year, month, 1).checked_mul(DAY);
        match self {
            Part::Microseconds => Some(micros),
            Part::Milliseconds => unit(1000),
            Part::Second => unit(1_000_000),
            Part::Minute => unit(60_000_000),
            Part::Hour => unit(3_600_000_000),
            Part::Day => unit(DAY),
            Part::Week => {
                let days = micros.div_euclid(DAY);
                (days - (days + 3).rem_euclid(7)).checked_mul(DAY)
            }
            Part::Month => date(year, month),
            Part::Quarter => date(year, (month - 1) / 3 * 3 + 1),
            Part::Year => date(year, 1),
            Part::Decade => date(year.div_euclid(10) * 10, 1),
            Part::Century => date((year - 1).div_euclid(100) * 100 + 1, 1),
            Part::Millennium => date((year - 1).div_euclid(1000) * 1000 + 1, 1),
            _ => None,
        }
    }
}

/// Whether a timestamp may have this number and be finite.
pub(crate) fn in_range(micros: i64) -> bool {
    micros >= FIRST_TIMESTAMP && !is_infinite(micros)
}

/// A local time so many months, days and microseconds later; a day that the month does not have is its last. `None`:
/// out of range.
pub(crate) fn moved(micros: i64, months: i32, days: i32, rest: i64) -> Option<i64> {
    if is_infinite(micros) {
        return Some(micros);
    }
    let (day, of_day) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let day = if months == 0 {
        day
    } else {
        let (year, month, of_month) = civil_from_days(day);
        let month = year * 12 + month - 1 + i64::from(months);
        let first = |month: i64| days_from_civil(month.div_euclid(12), month.rem_euclid(12) + 1, 1);
        (first(month) + of_month - 1).min(first(month + 1) - 1)
    };
    let moved = day.checked_add(days.into())?.checked_mul(DAY)?.checked_add(of_day)?.checked_add(rest);
    moved.filter(|moved| in_range(*moved))
}

/// Number of the century or millennium: the first begins with year 1, the one before it is -1.
fn shown_span(year: i64, length: i64) -> i64 {
    if year > 0 { (year + length - 1) / length } else { -((length - year) / length) }
}

#[cfg(test)]
mod tests;
