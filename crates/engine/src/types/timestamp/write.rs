//! Writes dates and timestamps in the style of the work under way ([`super::super::style`]). In the style ISO:
//! `YYYY-MM-DD HH:MM:SS[.ffffff]`, trailing zeros of the fraction cut, and for a timestamp with time zone the offset in
//! which it is shown.
use super::super::interval::write_clock;
use super::super::style::{DateStyle, Form, Order, Style};
use super::{DAY, civil_from_days, show_offset};
use std::fmt::{self, Write};

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// From 1970-01-01 on.
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

pub(in super::super) fn write(f: &mut fmt::Formatter<'_>, micros: i64) -> fmt::Result {
    match infinite(micros == i64::MIN, micros == i64::MAX) {
        Some(word) => f.write_str(word),
        None => write_at(f, micros, ""),
    }
}

/// In the zone of the work under way.
pub(in super::super) fn write_timestamptz(f: &mut fmt::Formatter<'_>, utc: i64) -> fmt::Result {
    if let Some(word) = infinite(utc == i64::MIN, utc == i64::MAX) {
        return f.write_str(word);
    }
    let Style { zone, dates, .. } = Style::current();
    let shown = match dates.form {
        Form::Iso => show_offset(zone.offset_at(utc)),
        _ => format!(" {}", zone.abbreviation_at(utc)),
    };
    write_at(f, zone.local(utc), &shown)
}

pub(in super::super) fn write_date(f: &mut fmt::Formatter<'_>, days: i32) -> fmt::Result {
    if let Some(word) = infinite(days == i32::MIN, days == i32::MAX) {
        return f.write_str(word);
    }
    let dates = Style::current().dates;
    let (year, month, day) = civil_from_days(days.into());
    write_day(f, dates, (shown_year(year), month, day))?;
    f.write_str(era(year))
}

fn infinite(early: bool, late: bool) -> Option<&'static str> {
    match (early, late) {
        (true, _) => Some("-infinity"),
        (_, true) => Some("infinity"),
        _ => None,
    }
}

/// There is no year 0 to show.
fn shown_year(year: i64) -> i64 {
    if year > 0 { year } else { 1 - year }
}

fn era(year: i64) -> &'static str {
    if year > 0 { "" } else { " BC" }
}

fn write_day(f: &mut impl Write, style: DateStyle, (year, month, day): (i64, i64, i64)) -> fmt::Result {
    let (first, second) = if style.order == Order::Dmy { (day, month) } else { (month, day) };
    match style.form {
        Form::Iso => write!(f, "{year:04}-{month:02}-{day:02}"),
        Form::Sql => write!(f, "{first:02}/{second:02}/{year:04}"),
        Form::Postgres => write!(f, "{first:02}-{second:02}-{year:04}"),
        Form::German => write!(f, "{day:02}.{month:02}.{year:04}"),
    }
}

fn write_at(f: &mut impl Write, micros: i64, zone: &str) -> fmt::Result {
    let (days, of_day) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let (year, month, day) = civil_from_days(days);
    let style = Style::current().dates;
    if style.form == Form::Postgres {
        let (weekday, name) = (WEEKDAYS[days.rem_euclid(7) as usize], MONTHS[(month - 1) as usize]);
        match style.order {
            Order::Dmy => write!(f, "{weekday} {day:02} {name} ")?,
            _ => write!(f, "{weekday} {name} {day:02} ")?,
        }
        write_clock(f, of_day.unsigned_abs())?;
        write!(f, " {:04}", shown_year(year))?;
    } else {
        write_day(f, style, (shown_year(year), month, day))?;
        f.write_char(' ')?;
        write_clock(f, of_day.unsigned_abs())?;
    }
    f.write_str(zone)?;
    f.write_str(era(year))
}
