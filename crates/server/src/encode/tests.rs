use super::*;
use datafusion::arrow::array::{Int16Builder, ListBuilder, StringBuilder, TimestampMicrosecondArray};
use datafusion::arrow::datatypes::Field;
use std::sync::Arc;

fn shown(array: ArrayRef, row: usize) -> Option<String> {
    let mut out = BytesMut::new();
    let wire = crate::types::wire(&Field::new("c", array.data_type().clone(), true));
    let written = text(&mut out, &values(&array).unwrap(), row, wire.oid).unwrap();
    written.then(|| String::from_utf8(out.to_vec()).unwrap())
}

/// Expected texts are PostgreSQL 15's.
#[test]
fn floats_read_as_postgresql_writes_them() {
    let cases = [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (-1.5, "-1.5"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (100_000_000_000_000.0, "100000000000000"),
        (1e15, "1e+15"),
        (123456789012345.0, "123456789012345"),
        (1234567890123456.0, "1.234567890123456e+15"),
        (1e300, "1e+300"),
        (f64::NAN, "NaN"),
        (f64::NEG_INFINITY, "-Infinity"),
    ];
    for (value, wanted) in cases {
        assert_eq!(shown(Arc::new(Float64Array::from(vec![value])), 0).unwrap(), wanted);
    }
}

#[test]
fn timestamps_read_as_postgresql_writes_them() {
    let cases = [
        (0, "1970-01-01 00:00:00"),
        (-1, "1969-12-31 23:59:59.999999"),
        (1_582_934_400_500_000, "2020-02-29 00:00:00.5"),
        (-62_135_596_800_000_000, "0001-01-01 00:00:00"),
        (-62_135_596_800_000_001, "0001-12-31 23:59:59.999999 BC"),
    ];
    for (micros, wanted) in cases {
        assert_eq!(shown(Arc::new(TimestampMicrosecondArray::from(vec![micros])), 0).unwrap(), wanted);
    }
}

#[test]
fn lists_and_nulls() {
    let mut texts = ListBuilder::new(StringBuilder::new());
    texts.append_value([Some("a"), Some("b c"), None, Some(""), Some("q\"")]);
    texts.append(false);
    let texts: ArrayRef = Arc::new(texts.finish());
    assert_eq!(shown(texts.clone(), 0).unwrap(), r#"{a,"b c",NULL,"","q\""}"#);
    assert_eq!(shown(texts, 1), None);
    let mut shorts = ListBuilder::new(Int16Builder::new());
    shorts.append_value([Some(1), Some(2)]);
    let mut out = BytesMut::new();
    text(&mut out, &values(&(Arc::new(shorts.finish()) as ArrayRef)).unwrap(), 0, INT2VECTOR).unwrap();
    assert_eq!(&out[..], b"1 2");
}

#[test]
fn a_row_that_fails_leaves_nothing_in_the_buffer() {
    let array: ArrayRef = Arc::new(datafusion::arrow::array::Decimal128Array::from(vec![1]));
    let wire = crate::types::wire(&Field::new("c", array.data_type().clone(), true));
    let mut out = BytesMut::from(&b"before"[..]);
    let column = Column { values: values(&array).unwrap(), wire, binary: true };
    assert_eq!(data_row(&mut out, &[column], 0).unwrap_err().state.0, "0A000");
    assert_eq!(&out[..], b"before");
}
