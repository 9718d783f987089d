//! Functions of intervals and times of day.
//!
//! Source: PostgreSQL 15 documentation, "Date/Time Functions and Operators" (9.9).
use super::super::wrong_arguments;
use super::days_from_civil;
use crate::functions::calendar::in_range;
use terrace_engine::types::{DAY_MICROS as DAY, Interval, Zone, civil_from_days, is_infinite};
use terrace_engine::{Datum, EngineError, Result};

fn out_of_range() -> EngineError {
    EngineError::new("22008", "interval out of range")
}

fn span(values: &[Datum]) -> Result<Interval> {
    match values {
        [Datum::Interval(v)] => Ok(*v),
        _ => Err(wrong_arguments(values)),
    }
}

fn narrow(value: i64) -> Result<i32> {
    i32::try_from(value).map_err(|_| out_of_range())
}

/// Hours, minutes, seconds.
pub(super) fn make_time(values: &[Datum]) -> Result<Datum> {
    let [Datum::Int4(hour), Datum::Int4(minute), Datum::Float8(second)] = values else {
        return Err(wrong_arguments(values));
    };
    let micros = (second * 1e6).round_ties_even();
    let of_day = (i64::from(*hour) * 60 + i64::from(*minute)) * 60_000_000 + micros as i64;
    let fits = (0..=24).contains(hour) && (0..=59).contains(minute) && (0.0..=60_000_000.0).contains(&micros);
    if !fits || of_day > DAY {
        let second = Datum::Float8(*second).to_string();
        let message = format!("time field value out of range: {hour}:{minute:02}:{second:0>2}");
        return Err(EngineError::new("22008", message));
    }
    Ok(Datum::Time(of_day))
}

/// Year, month, day, hour, minute, second.
pub(super) fn make_timestamp(values: &[Datum]) -> Result<Datum> {
    let [date @ .., hour, minute, second] = values else { return Err(wrong_arguments(values)) };
    let (Datum::Date(days), Datum::Time(of_day)) =
        (super::make_date(date)?, make_time(&[hour.clone(), minute.clone(), second.clone()])?)
    else {
        return Err(wrong_arguments(values));
    };
    let micros = i64::from(days).checked_mul(DAY).and_then(|day| day.checked_add(of_day));
    let micros = micros.filter(|micros| in_range(*micros));
    micros.map(Datum::Timestamp).ok_or_else(|| EngineError::new("22008", "timestamp out of range"))
}

/// The same in the session's zone, or in one that is given.
pub(super) fn make_timestamptz(values: &[Datum]) -> Result<Datum> {
    let (clock, zone) = match values {
        [clock @ .., Datum::Text(name)] => {
            if name.starts_with(|c: char| c.is_ascii_digit()) {
                let error =
                    EngineError::new("22023", format!("invalid input syntax for type numeric time zone: \"{name}\""));
                return Err(error.with_hint("Numeric time zones must have \"-\" or \"+\" as first character."));
            }
            let unknown = || EngineError::new("22023", format!("time zone \"{name}\" not recognized"));
            (clock, Zone::stated(name).ok_or_else(unknown)?)
        }
        clock => (clock, Zone::current()),
    };
    let Datum::Timestamp(local) = make_timestamp(clock)? else { return Err(wrong_arguments(values)) };
    let moment = zone.utc(local).filter(|moment| in_range(*moment));
    moment.map(Datum::Timestamptz).ok_or_else(|| EngineError::new("22008", "timestamp out of range"))
}

/// Years, months, weeks, days, hours, minutes, seconds; those that are not given are 0.
pub(super) fn make_interval(values: &[Datum]) -> Result<Datum> {
    let whole = |at: usize| match values.get(at) {
        None => Ok(0),
        Some(Datum::Int4(value)) => Ok(i64::from(*value)),
        Some(_) => Err(wrong_arguments(values)),
    };
    let seconds = match values.get(6) {
        None => 0.0,
        Some(Datum::Float8(seconds)) => (seconds * 1e6).round_ties_even(),
        Some(_) => return Err(wrong_arguments(values)),
    };
    if !seconds.is_finite() || seconds.abs() >= 9.2e18 {
        return Err(out_of_range());
    }
    let months = narrow(whole(0)? * 12 + whole(1)?)?;
    let days = narrow(whole(2)? * 7 + whole(3)?)?;
    let micros = (whole(4)? * 3_600_000_000 + whole(5)? * 60_000_000).checked_add(seconds as i64);
    Ok(Datum::Interval(Interval::new(months, days, micros.ok_or_else(out_of_range)?)))
}

/// 30 days are a month.
pub(super) fn justify_days(values: &[Datum]) -> Result<Datum> {
    let v = span(values)?;
    let (mut months, mut days) = (i64::from(v.months()) + i64::from(v.days() / 30), v.days() % 30);
    if months > 0 && days < 0 {
        (months, days) = (months - 1, days + 30);
    } else if months < 0 && days > 0 {
        (months, days) = (months + 1, days - 30);
    }
    Ok(Datum::Interval(Interval::new(narrow(months)?, days, v.micros())))
}

/// 24 hours are a day.
pub(super) fn justify_hours(values: &[Datum]) -> Result<Datum> {
    let v = span(values)?;
    let (mut days, mut micros) = (i64::from(v.days()) + v.micros() / DAY, v.micros() % DAY);
    if days > 0 && micros < 0 {
        (days, micros) = (days - 1, micros + DAY);
    } else if days < 0 && micros > 0 {
        (days, micros) = (days + 1, micros - DAY);
    }
    Ok(Datum::Interval(Interval::new(v.months(), narrow(days)?, micros)))
}

/// Both, with one sign for all parts.
pub(super) fn justify_interval(values: &[Datum]) -> Result<Datum> {
    let v = span(values)?;
    let all_days = i64::from(v.days()) + v.micros() / DAY;
    let (mut months, mut days, mut micros) = (i64::from(v.months()) + all_days / 30, all_days % 30, v.micros() % DAY);
    if months > 0 && (days < 0 || (days == 0 && micros < 0)) {
        (months, days) = (months - 1, days + 30);
    } else if months < 0 && (days > 0 || (days == 0 && micros > 0)) {
        (months, days) = (months + 1, days - 30);
    }
    if days > 0 && micros < 0 {
        (days, micros) = (days - 1, micros + DAY);
    } else if days < 0 && micros > 0 {
        (days, micros) = (days + 1, micros - DAY);
    }
    Ok(Datum::Interval(Interval::new(narrow(months)?, narrow(days)?, micros)))
}

/// From the second time to the first, in years, months and days of the calendar.
pub(super) fn age(values: &[Datum]) -> Result<Datum> {
    let (late, early) = match values {
        [Datum::Timestamp(a), Datum::Timestamp(b)] => (*a, *b),
        [Datum::Timestamptz(a), Datum::Timestamptz(b)] => (Zone::current().local(*a), Zone::current().local(*b)),
        _ => return Err(wrong_arguments(values)),
    };
    if is_infinite(late) || is_infinite(early) {
        return Err(EngineError::new("22008", "timestamp out of range"));
    }
    let backwards = match values {
        [Datum::Timestamptz(a), Datum::Timestamptz(b)] => a < b,
        _ => late < early,
    };
    let fields = |micros: i64| (civil_from_days(micros.div_euclid(DAY)), micros.rem_euclid(DAY));
    let (((y1, m1, d1), t1), ((y2, m2, d2), t2)) = (fields(late), fields(early));
    let sign = if backwards { -1 } else { 1 };
    let (mut months, mut days, mut micros) = (((y1 - y2) * 12 + m1 - m2) * sign, (d1 - d2) * sign, (t1 - t2) * sign);
    if micros < 0 {
        (days, micros) = (days - 1, micros + DAY);
    }
    // A month has as many days as the one of the earlier time.
    let (year, month) = if backwards { (y1, m1) } else { (y2, m2) };
    let next = if month == 12 { days_from_civil(year + 1, 1, 1) } else { days_from_civil(year, month + 1, 1) };
    let length = next - days_from_civil(year, month, 1);
    while days < 0 {
        (months, days) = (months - 1, days + length);
    }
    Ok(Datum::Interval(Interval::new(narrow(months * sign)?, narrow(days * sign)?, micros * sign)))
}
