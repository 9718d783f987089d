//! Intervals on the wire.
use bytes::{BufMut, BytesMut};
use datafusion::arrow::datatypes::IntervalMonthDayNano;
use std::fmt::Write;

pub(super) fn text(out: &mut BytesMut, v: IntervalMonthDayNano) {
    write!(out, "{}", terrace_sql::ShownInterval(v)).expect("a buffer grows");
}

pub(super) fn binary(out: &mut BytesMut, v: IntervalMonthDayNano) {
    out.put_i64(v.nanoseconds / 1000);
    out.put_i32(v.days);
    out.put_i32(v.months);
}
