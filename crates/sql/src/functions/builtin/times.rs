//! Functions that make dates, times and timestamps, and functions of intervals.
use super::text::text;
use super::{Builtin, Overload, Run, Takes, wrong_arguments};
use terrace_engine::types::{Zone, date_of_timestamp, days_from_civil, is_infinite, is_infinite_date};

mod spans;

use terrace_engine::{DataType, Datum, EngineError, Result};

const INT: Takes = Takes::Is(DataType::Int4);
const DOUBLE: Takes = Takes::Is(DataType::Float8);
const SPAN: Takes = Takes::Is(DataType::Interval);
const TEXT: Takes = Takes::Is(DataType::Text);
const CLOCK: &[Takes] = &[INT, INT, INT, INT, INT, DOUBLE];

const fn of(takes: &'static [Takes], gives: DataType, run: fn(&[Datum]) -> Result<Datum>) -> Overload {
    Overload { takes, more: false, gives, run: Run::Strict(run) }
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin { name: "make_time", overloads: &[of(&[INT, INT, DOUBLE], DataType::Time, spans::make_time)] },
    Builtin {
        name: "make_interval",
        overloads: &[
            of(&[], DataType::Interval, spans::make_interval),
            of(&[INT], DataType::Interval, spans::make_interval),
            of(&[INT, INT], DataType::Interval, spans::make_interval),
            of(&[INT, INT, INT], DataType::Interval, spans::make_interval),
            of(&[INT, INT, INT, INT], DataType::Interval, spans::make_interval),
            of(&[INT, INT, INT, INT, INT], DataType::Interval, spans::make_interval),
            of(&[INT, INT, INT, INT, INT, INT], DataType::Interval, spans::make_interval),
            of(&[INT, INT, INT, INT, INT, INT, DOUBLE], DataType::Interval, spans::make_interval),
        ],
    },
    Builtin { name: "justify_days", overloads: &[of(&[SPAN], DataType::Interval, spans::justify_days)] },
    Builtin { name: "justify_hours", overloads: &[of(&[SPAN], DataType::Interval, spans::justify_hours)] },
    Builtin { name: "justify_interval", overloads: &[of(&[SPAN], DataType::Interval, spans::justify_interval)] },
    Builtin {
        name: "age",
        overloads: &[
            of(&[Takes::Is(DataType::Timestamp); 2], DataType::Interval, spans::age),
            of(&[Takes::Is(DataType::Timestamptz); 2], DataType::Interval, spans::age),
        ],
    },
    Builtin {
        name: "isfinite",
        overloads: &[
            of(&[Takes::Is(DataType::Date)], DataType::Bool, is_finite),
            of(&[Takes::Is(DataType::Timestamp)], DataType::Bool, is_finite),
            of(&[Takes::Is(DataType::Timestamptz)], DataType::Bool, is_finite),
            of(&[SPAN], DataType::Bool, |_| Ok(Datum::Bool(true))),
        ],
    },
    Builtin { name: "make_timestamp", overloads: &[of(CLOCK, DataType::Timestamp, spans::make_timestamp)] },
    Builtin {
        name: "make_timestamptz",
        overloads: &[
            of(CLOCK, DataType::Timestamptz, spans::make_timestamptz),
            of(&[INT, INT, INT, INT, INT, DOUBLE, TEXT], DataType::Timestamptz, spans::make_timestamptz),
        ],
    },
    Builtin { name: "make_date", overloads: &[of(&[INT, INT, INT], DataType::Date, make_date)] },
    Builtin {
        name: "to_timestamp",
        overloads: &[
            of(&[Takes::Is(DataType::Float8)], DataType::Timestamptz, to_timestamp),
            of(&[TEXT, TEXT], DataType::Timestamptz, |v| {
                let local = by_pattern("to_timestamp", v)?;
                let moment = Zone::current().utc(local);
                Ok(Datum::Timestamptz(moment.ok_or_else(|| EngineError::new("22008", "timestamp out of range"))?))
            }),
        ],
    },
    Builtin {
        name: "to_date",
        overloads: &[of(&[TEXT, TEXT], DataType::Date, |v| {
            Ok(Datum::Date(date_of_timestamp(by_pattern("to_date", v)?)))
        })],
    },
];

fn is_finite(values: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(match values {
        [Datum::Date(v)] => !is_infinite_date(*v),
        [Datum::Timestamp(v) | Datum::Timestamptz(v)] => !is_infinite(*v),
        _ => return Err(wrong_arguments(values)),
    }))
}

fn make_date(values: &[Datum]) -> Result<Datum> {
    let [Datum::Int4(year), Datum::Int4(month), Datum::Int4(day)] = values else { return Err(wrong_arguments(values)) };
    let out = || EngineError::new("22008", format!("date field value out of range: {year}-{month:02}-{day:02}"));
    // There is no year 0: the year before 1 is -1.
    let since_one = match *year {
        0 => return Err(out()),
        year if year < 0 => i64::from(year) + 1,
        year => year.into(),
    };
    if !(1..=12).contains(month) || !(-4712..=5_874_897).contains(&since_one) {
        return Err(out());
    }
    let (month, day) = (i64::from(*month), i64::from(*day));
    let first = days_from_civil(since_one, month, 1);
    let next =
        if month == 12 { days_from_civil(since_one + 1, 1, 1) } else { days_from_civil(since_one, month + 1, 1) };
    if day < 1 || first + day > next {
        return Err(out());
    }
    let days = i32::try_from(first + day - 1).map_err(|_| EngineError::new("22008", "date out of range"))?;
    Ok(Datum::Date(days))
}

/// Seconds since 1970.
fn to_timestamp(values: &[Datum]) -> Result<Datum> {
    let [Datum::Float8(seconds)] = values else { return Err(wrong_arguments(values)) };
    let refused = |message: String| Err(EngineError::new("22008", message));
    if seconds.is_nan() {
        return refused("timestamp cannot be NaN".into());
    }
    if seconds.is_infinite() {
        return Ok(Datum::Timestamptz(if *seconds > 0.0 { i64::MAX } else { i64::MIN }));
    }
    // From 4714 BC to 294276 AD.
    if !(-210_866_803_200.0..9_224_318_016_000.0).contains(seconds) {
        return refused(format!("timestamp out of range: \"{}\"", Datum::Float8(*seconds)));
    }
    // As PostgreSQL counts: from 2000 on, which loses the fewest digits.
    let since_2000 = ((seconds - 946_684_800.0) * 1e6).round_ties_even();
    let moment = (since_2000 as i64).checked_add(946_684_800_000_000);
    Ok(Datum::Timestamptz(moment.ok_or_else(|| EngineError::new("22008", "timestamp out of range"))?))
}

/// Microseconds since 1970 of a text that is written as the pattern says: YYYY, MM, DD, HH24, MI and SS with all of
/// their digits, and between them the pattern's own signs. What is less plain PostgreSQL reads by rules of its own; it
/// is refused (0A000).
fn by_pattern(name: &str, values: &[Datum]) -> Result<i64> {
    let (given, pattern) = (text(&values[0])?, text(&values[1])?);
    let refused = || {
        let error =
            EngineError::unsupported(format!("{name} of \"{given}\" by the pattern \"{pattern}\" is not supported"));
        error.with_hint(
            "YYYY, MM, DD, HH24, MI and SS are read, with all of their digits; or cast the text to a date \
                         or timestamp.",
        )
    };
    const FIELDS: [(&str, usize); 6] = [("YYYY", 4), ("MM", 2), ("DD", 2), ("HH24", 2), ("MI", 2), ("SS", 2)];
    let mut found: [Option<i64>; 6] = [None; 6];
    let (mut pattern_left, mut left) = (pattern, given);
    while let Some(sign) = pattern_left.chars().next() {
        let upper = pattern_left.to_ascii_uppercase();
        if let Some(at) = FIELDS.iter().position(|(field, _)| upper.starts_with(field)) {
            let (field, width) = FIELDS[at];
            let digits = left.get(..width).filter(|d| d.bytes().all(|b| b.is_ascii_digit())).ok_or_else(refused)?;
            if found[at].replace(digits.parse().map_err(|_| refused())?).is_some() {
                return Err(refused());
            }
            (pattern_left, left) = (&pattern_left[field.len()..], &left[width..]);
        } else if matches!(sign, '-' | '/' | '.' | ',' | ':' | ' ' | ';') && left.starts_with(sign) {
            (pattern_left, left) = (&pattern_left[1..], &left[1..]);
        } else {
            return Err(refused());
        }
    }
    if !left.is_empty() || found[0].is_none() {
        return Err(refused());
    }
    let [year, month, day, hour, minute, second] = found;
    let (year, month, day) = (year.unwrap_or(1), month.unwrap_or(1), day.unwrap_or(1));
    let (hour, minute, second) = (hour.unwrap_or(0), minute.unwrap_or(0), second.unwrap_or(0));
    if year == 0 || hour > 23 || minute > 59 || second > 59 {
        return Err(EngineError::new("22008", format!("date/time field value out of range: \"{given}\"")));
    }
    let narrow = |v: i64| Datum::Int4(v as i32);
    let Datum::Date(days) = make_date(&[narrow(year), narrow(month), narrow(day)])
        .map_err(|_| EngineError::new("22008", format!("date/time field value out of range: \"{given}\"")))?
    else {
        return Err(refused());
    };
    Ok(i64::from(days) * 86_400_000_000 + ((hour * 60 + minute) * 60 + second) * 1_000_000)
}
