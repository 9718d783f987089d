//! Dates and timestamps as text, in ISO style, proleptic Gregorian, no zone.
use bytes::BytesMut;
use std::fmt::Write;

/// Microseconds from 1970-01-01 (Unix) to 2000-01-01 (PostgreSQL's binary format).
pub(crate) const EPOCH_2000: i64 = 946_684_800_000_000;
pub(crate) const DAYS_2000: i32 = 10_957;
const DAY: i64 = 86_400_000_000;

/// Year, month, day of a day number (days since 1970-01-01); year 0 is 1 BC.
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
pub(crate) fn civil(days: i64) -> (i64, u32, u32) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * m + 2) / 5 + 1) as u32;
    let month = if m < 10 { m + 3 } else { m - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

pub(crate) fn write_date(out: &mut BytesMut, days: i64) {
    let (year, month, day) = civil(days);
    let (shown, bc) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    write!(out, "{shown:04}-{month:02}-{day:02}{bc}").expect("a buffer grows");
}

/// `micros` since 1970-01-01; `zone` is written after the time.
pub(crate) fn write_timestamp(out: &mut BytesMut, micros: i64, zone: &str) {
    let (days, time) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    let (shown, bc) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    let (seconds, fraction) = (time / 1_000_000, time % 1_000_000);
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    write!(out, "{shown:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}").expect("a buffer grows");
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        write!(out, ".{}", digits.trim_end_matches('0')).expect("a buffer grows");
    }
    write!(out, "{zone}{bc}").expect("a buffer grows");
}
