use super::*;
use proptest::prelude::*;

fn show(t: DataType, s: &str) -> String {
    match t.parse(s) {
        Ok(d) => d.to_string(),
        Err(e) => format!("{} {}", e.state.0, e.message),
    }
}

#[test]
fn bool_spellings() {
    for s in ["t", "TRUE", " tru ", "y", "yes", "on", "1"] {
        assert_eq!(show(DataType::Bool, s), "t", "{s}");
    }
    for s in ["f", "False", "no", "n", "of", "off", "0\n"] {
        assert_eq!(show(DataType::Bool, s), "f", "{s}");
    }
    for s in ["", "o", "truex", "2", "nope"] {
        assert_eq!(show(DataType::Bool, s), format!("22P02 invalid input syntax for type boolean: \"{s}\""));
    }
}

#[test]
fn integers() {
    assert_eq!(show(DataType::Int4, " -2147483648 "), "-2147483648");
    assert_eq!(show(DataType::Int4, "+0x7F_ff"), "32767");
    assert_eq!(show(DataType::Int4, "1_000"), "1000");
    assert_eq!(show(DataType::Int4, "0b101"), "5");
    assert_eq!(show(DataType::Int4, "2147483648"), "22003 value \"2147483648\" is out of range for type integer");
    assert_eq!(
        show(DataType::Int8, "9223372036854775808"),
        "22003 value \"9223372036854775808\" is out of range for type bigint"
    );
    assert_eq!(
        show(DataType::Int8, &"9".repeat(80)),
        format!("22003 value \"{}\" is out of range for type bigint", "9".repeat(80))
    );
    assert_eq!(show(DataType::Int8, "-9223372036854775808"), "-9223372036854775808");
    for s in ["", "-", "1.5", "1__0", "_1", "1_", "0x", "12a", "- 1"] {
        assert_eq!(show(DataType::Int4, s), format!("22P02 invalid input syntax for type integer: \"{s}\""));
    }
}

#[test]
fn floats_as_postgresql_prints_them() {
    for (given, want) in [
        ("1", "1"),
        ("-0", "-0"),
        ("0.1", "0.1"),
        ("1e14", "100000000000000"),
        ("1e15", "1e+15"),
        ("1234567890123456", "1.234567890123456e+15"),
        ("0.0001", "0.0001"),
        ("0.00001", "1e-05"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("5e-324", "5e-324"),
        (" inf ", "Infinity"),
        ("-Infinity", "-Infinity"),
        ("nan", "NaN"),
        (".5", "0.5"),
        ("1e400", "22003 \"1e400\" is out of range for type double precision"),
        ("1e-400", "22003 \"1e-400\" is out of range for type double precision"),
        ("", "22P02 invalid input syntax for type double precision: \"\""),
        ("x", "22P02 invalid input syntax for type double precision: \"x\""),
        ("infinit", "22P02 invalid input syntax for type double precision: \"infinit\""),
    ] {
        assert_eq!(show(DataType::Float8, given), want, "{given}");
    }
}

#[test]
fn timestamps() {
    for (given, want) in [
        ("1970-01-01", "1970-01-01 00:00:00"),
        ("2024-02-29 23:59:59.5", "2024-02-29 23:59:59.5"),
        ("2024-02-29T01:02:03.1234567+05:30", "2024-02-29 01:02:03.123457"),
        ("2024-12-31 23:59:59.9999999", "2025-01-01 00:00:00"),
        ("2000-01-01 24:00", "2000-01-02 00:00:00"),
        ("0044-03-15 BC", "0044-03-15 00:00:00 BC"),
        ("2023-02-29", "22008 date/time field value out of range: \"2023-02-29\""),
        ("2023-13-01", "22008 date/time field value out of range: \"2023-13-01\""),
        ("0000-01-01", "22008 date/time field value out of range: \"0000-01-01\""),
        ("2023-01-01 25:00", "22008 date/time field value out of range: \"2023-01-01 25:00\""),
        ("9999999-01-01", "22007 invalid input syntax for type timestamp: \"9999999-01-01\""),
        ("300000-01-01", "22008 timestamp out of range: \"300000-01-01\""),
        ("yesterday", "22007 invalid input syntax for type timestamp: \"yesterday\""),
        ("2023-01-01x", "22007 invalid input syntax for type timestamp: \"2023-01-01x\""),
        ("-infinity", "0A000 infinite timestamps are not supported"),
    ] {
        assert_eq!(show(DataType::Timestamp, given), want, "{given}");
    }
    assert_eq!(DataType::Timestamp.parse("2026-11-21 04:00:00").unwrap(), Datum::Timestamp(1_795_233_600_000_000));
}

#[test]
fn texts() {
    assert_eq!(show(DataType::Varchar(2), "äö  "), "äö");
    assert_eq!(show(DataType::Varchar(2), "äöü"), "22001 value too long for type character varying(2)");
    assert_eq!(show(DataType::Text, "a\0"), "22021 invalid byte sequence for encoding \"UTF8\": 0x00");
    assert!(DataType::Varchar(3).admits(DatumRef::Text("äöü")).is_ok());
    assert_eq!(DataType::Int4.admits(DatumRef::Int8(1)).unwrap_err().state.0, "42804");
}

proptest! {
    #[test]
    fn text_form_reads_back(d in crate::row::tests::any_value()) {
        let (t, d) = d;
        if !d.is_null() {
            let back = t.parse(&d.to_string()).unwrap();
            prop_assert_eq!(back.as_ref().cmp_key(d.as_ref()), Ordering::Equal);
        }
    }
}
