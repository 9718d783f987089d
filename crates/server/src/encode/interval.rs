//! Intervals as PostgreSQL writes them (IntervalStyle `postgres`).
use bytes::{BufMut, BytesMut};
use datafusion::arrow::datatypes::IntervalMonthDayNano;
use std::fmt::Write;

/// `1 year 2 mons 3 days 04:05:06.5`; a positive part after a negative one has a plus sign.
pub(super) fn text(out: &mut BytesMut, v: IntervalMonthDayNano) {
    let full = "a buffer grows";
    let micros = v.nanoseconds / 1000;
    let (mut first, mut negative) = (true, false);
    for (amount, unit) in [(v.months / 12, "year"), (v.months % 12, "mon"), (v.days, "day")] {
        if amount == 0 {
            continue;
        }
        let space = if first { "" } else { " " };
        let sign = if negative && amount > 0 { "+" } else { "" };
        let plural = if amount == 1 { "" } else { "s" };
        write!(out, "{space}{sign}{amount} {unit}{plural}").expect(full);
        (first, negative) = (false, amount < 0);
    }
    if micros != 0 || first {
        let space = if first { "" } else { " " };
        let sign = match () {
            _ if micros < 0 => "-",
            _ if negative => "+",
            _ => "",
        };
        let all = micros.unsigned_abs();
        let (seconds, fraction) = (all / 1_000_000, all % 1_000_000);
        write!(out, "{space}{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60).expect(full);
        if fraction != 0 {
            let digits = format!("{fraction:06}");
            write!(out, ".{}", digits.trim_end_matches('0')).expect(full);
        }
    }
}

pub(super) fn binary(out: &mut BytesMut, v: IntervalMonthDayNano) {
    out.put_i64(v.nanoseconds / 1000);
    out.put_i32(v.days);
    out.put_i32(v.months);
}
