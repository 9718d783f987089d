use super::*;
use datafusion::arrow::array::{
    Int16Builder, ListBuilder, StringBuilder, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{Field, IntervalMonthDayNano};
use std::sync::Arc;
use terrace_engine::types::Interval;

fn shown(array: ArrayRef, row: usize) -> Option<String> {
    let mut out = BytesMut::new();
    let wire = crate::types::wire(&Field::new("c", array.data_type().clone(), true));
    let written = text(&mut out, &values(&array).unwrap(), row, &wire).unwrap();
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
    let shorts: ArrayRef = Arc::new(shorts.finish());
    let named = [("pg_type".to_owned(), "int2vector".to_owned())];
    let vector = crate::types::wire(&Field::new("c", shorts.data_type().clone(), true).with_metadata(named.into()));
    let mut out = BytesMut::new();
    text(&mut out, &values(&shorts).unwrap(), 0, &vector).unwrap();
    assert_eq!(&out[..], b"1 2");
}

#[test]
fn a_row_that_fails_leaves_nothing_in_the_buffer() {
    let array: ArrayRef = Arc::new(datafusion::arrow::array::Time32SecondArray::from(vec![1]));
    let wire = crate::types::wire(&Field::new("c", array.data_type().clone(), true));
    let mut out = BytesMut::from(&b"before"[..]);
    let column = Column { values: values(&array).unwrap(), wire, binary: true };
    assert_eq!(data_row(&mut out, &[column], 0).unwrap_err().state.0, "0A000");
    assert_eq!(&out[..], b"before");
}

fn decimals(values: Vec<i128>, precision: u8, scale: i8) -> ArrayRef {
    Arc::new(Decimal128Array::from(values).with_precision_and_scale(precision, scale).unwrap())
}

#[test]
fn numerics_show_the_zeros_of_their_scale() {
    assert_eq!(shown(decimals(vec![150], 5, 2), 0).unwrap(), "1.50");
    assert_eq!(shown(decimals(vec![-5], 5, 2), 0).unwrap(), "-0.05");
    assert_eq!(shown(decimals(vec![1_500_000_000_000_000_000], 38, 18), 0).unwrap(), "1.500000000000000000");
}

#[test]
fn binary_numerics_read_back() {
    for (unscaled, scale) in
        [(0, 0), (0, 3), (1, 0), (-12_345_678, 3), (10_000, 0), (1, 5), (99_990_001, 4), (i128::from(i64::MIN), 18)]
    {
        let mut out = BytesMut::new();
        let given = Numeric { unscaled, scale };
        numeric::binary(&mut out, &given.into());
        assert_eq!(numeric::read(&out).unwrap(), given.to_string());
    }
    // 12345678.9 as PostgreSQL sends it.
    let mut out = BytesMut::new();
    numeric::binary(&mut out, &Numeric { unscaled: 123_456_789, scale: 1 }.into());
    assert_eq!(&out[..], [0, 3, 0, 1, 0, 0, 0, 1, 0x04, 0xd2, 0x16, 0x2e, 0x23, 0x28]);
    assert_eq!(numeric::read(&[0, 1, 0, 0, 0x40, 0, 0, 0]), None, "a digit is missing");
    for text in ["NaN", "Infinity", "-Infinity"] {
        let mut out = BytesMut::new();
        numeric::binary(&mut out, &Decimal::parse(text).unwrap());
        assert_eq!(numeric::read(&out).as_deref(), Some(text));
    }
}

#[test]
fn intervals_read_as_postgresql_writes_them() {
    let second = 1_000_000;
    for (months, days, micros, wanted) in [
        (0, 0, 0, "00:00:00"),
        (14, 3, 3661 * second, "1 year 2 mons 3 days 01:01:01"),
        (0, -1, 0, "-1 days"),
        (0, 1, -90 * second, "1 day -00:01:30"),
        (-12, 0, 0, "-1 years"),
        (-1, 3, 0, "-1 mons +3 days"),
        (0, 0, 100 * 3600 * second + 500_000, "100:00:00.5"),
    ] {
        let array = IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(months, days, micros)]);
        assert_eq!(shown(Arc::new(array), 0).unwrap(), wanted);
    }
}

#[test]
fn char_is_filled_with_blanks() {
    let metadata = [("pg_type", "bpchar"), ("pg_typmod", "9")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let field = Field::new("c", DataType::Utf8, true).with_metadata(metadata.into_iter().collect());
    let array: ArrayRef = Arc::new(StringArray::from(vec!["aé"]));
    let column = Column { values: values(&array).unwrap(), wire: crate::types::wire(&field), binary: false };
    let mut out = BytesMut::new();
    super::field(&mut out, &column, 0).unwrap();
    assert_eq!(&out[..], b"\0\0\0\x06a\xc3\xa9   ");
}

#[test]
fn stored_values_are_written_as_arrow_values_are() {
    use terrace_engine::types::Numeric;
    let field = |t: DataType| Field::new("c", t, true);
    let typed = |t: DataType, name: &str, modifier: i32| {
        let metadata = [("pg_type", name.to_owned()), ("pg_typmod", modifier.to_string())];
        field(t).with_metadata(metadata.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
    };
    let decimal = |v: i128, p: u8, s: i8| {
        Arc::new(Decimal128Array::from(vec![v]).with_precision_and_scale(p, s).unwrap()) as ArrayRef
    };
    let number = |unscaled, scale| DatumRef::Numeric(Numeric { unscaled, scale });
    let timestamp = |zone: Option<&str>| {
        let array = TimestampMicrosecondArray::from(vec![1_582_934_400_500_000]);
        Arc::new(array.with_timezone_opt(zone)) as ArrayRef
    };
    let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
    let ten = 10_i128.pow(18);
    let uuid = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128;
    let uuids = FixedSizeBinaryArray::try_from_iter([uuid.to_be_bytes()].into_iter()).unwrap();
    let cases: Vec<(Field, ArrayRef, DatumRef<'_>)> = vec![
        (field(DataType::Boolean), Arc::new(BooleanArray::from(vec![true])), DatumRef::Bool(true)),
        (field(DataType::Int16), Arc::new(Int16Array::from(vec![-7])), DatumRef::Int2(-7)),
        (field(DataType::Int32), Arc::new(Int32Array::from(vec![i32::MIN])), DatumRef::Int4(i32::MIN)),
        (field(DataType::Int64), Arc::new(Int64Array::from(vec![i64::MAX])), DatumRef::Int8(i64::MAX)),
        (field(DataType::Float32), Arc::new(Float32Array::from(vec![0.1])), DatumRef::Float4(0.1)),
        (field(DataType::Float64), Arc::new(Float64Array::from(vec![-1e300])), DatumRef::Float8(-1e300)),
        (field(DataType::Decimal128(38, 18)), decimal(ten * 3 / 2, 38, 18), number(ten * 3 / 2, 18)),
        (typed(DataType::Decimal128(8, 3), "", (8 << 16 | 3) + 4), decimal(1500, 8, 3), number(1500, 3)),
        (typed(DataType::Decimal128(38, 18), "", (38 << 16 | 18) + 4), decimal(ten, 38, 18), number(ten, 18)),
        (field(DataType::Utf8), Arc::new(StringArray::from(vec!["ä b"])), DatumRef::Text("ä b")),
        (typed(DataType::Utf8, "bpchar", 9), Arc::new(StringArray::from(vec!["ä"])), DatumRef::Text("ä")),
        (typed(DataType::Utf8, "varchar", 9), Arc::new(StringArray::from(vec![""])), DatumRef::Text("")),
        (field(DataType::Binary), Arc::new(BinaryArray::from(vec![&b"\x00\xff"[..]])), DatumRef::Bytea(b"\x00\xff")),
        (
            field(DataType::Date32),
            Arc::new(datafusion::arrow::array::Date32Array::from(vec![20_000])),
            DatumRef::Date(20_000),
        ),
        (
            field(DataType::Timestamp(TimeUnit::Microsecond, None)),
            timestamp(None),
            DatumRef::Timestamp(1_582_934_400_500_000),
        ),
        (field(zoned), timestamp(Some("+00:00")), DatumRef::Timestamptz(1_582_934_400_500_000)),
        (field(DataType::FixedSizeBinary(16)), Arc::new(uuids), DatumRef::Uuid(uuid)),
        (field(DataType::BinaryView), Arc::new(BinaryViewArray::from(vec![&b" [1]"[..]])), DatumRef::Json(" [1]")),
        (field(DataType::LargeBinary), Arc::new(LargeBinaryArray::from(vec![&b"[1]"[..]])), DatumRef::Jsonb("[1]")),
        (field(DataType::Int32), Arc::new(Int32Array::from(vec![None])), DatumRef::Null),
    ];
    alike(cases);
}

#[test]
fn stored_times_and_intervals_are_written_as_arrow_values_are() {
    let field = |of| Field::new("c", of, true);
    alike(vec![
        (
            field(DataType::Time64(TimeUnit::Microsecond)),
            Arc::new(Time64MicrosecondArray::from(vec![86_400_000_000])),
            DatumRef::Time(86_400_000_000),
        ),
        (
            field(DataType::Interval(IntervalUnit::MonthDayNano)),
            Arc::new(IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(14, -3, -1_500_000)])),
            DatumRef::Interval(Interval::new(14, -3, -1_500_000)),
        ),
    ]);
}

/// Arrow's way and the stored value's are one format.
fn alike(cases: Vec<(Field, ArrayRef, DatumRef<'_>)>) {
    use datafusion::arrow::datatypes::Schema;
    for (field, array, value) in cases {
        let schema = Arc::new(Schema::new(vec![field.clone()]));
        let batch = RecordBatch::try_new(schema.clone(), vec![array]).unwrap();
        let shown = Shown::new(&schema);
        for binary in [false, true] {
            let (mut by_arrow, mut stored) = (BytesMut::new(), BytesMut::new());
            let columns = columns(&batch, &[crate::types::wire(&field)], &[binary]).unwrap();
            data_row(&mut by_arrow, &columns, 0).unwrap();
            shown.row(&mut stored, [value].into_iter(), &[binary]);
            assert_eq!(stored, by_arrow, "{field:?}, binary: {binary}");
        }
    }
}
