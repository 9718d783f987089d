//! Intervals on the wire.
use bytes::{BufMut, BytesMut};
use terrace_engine::types::Interval;

pub(super) fn binary(out: &mut BytesMut, v: Interval) {
    out.put_i64(v.micros());
    out.put_i32(v.days());
    out.put_i32(v.months());
}
