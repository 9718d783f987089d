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
    assert_eq!(show(DataType::Int4, "+0032767\n"), "32767");
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

/// Bases and underscores are PostgreSQL 16's.
#[test]
fn f19_integers_are_decimal() {
    for s in ["0x10", "0X1f", "0b101", "0o17", "1_000", "+0x7F_ff"] {
        for (t, name) in [(DataType::Int2, "smallint"), (DataType::Int4, "integer"), (DataType::Int8, "bigint")] {
            assert_eq!(show(t, s), format!("22P02 invalid input syntax for type {name}: \"{s}\""));
        }
    }
    assert_eq!(show(DataType::Int2, "-32769"), "22003 value \"-32769\" is out of range for type smallint");
    // As in PostgreSQL, the first mistake counts.
    assert_eq!(show(DataType::Int2, "99999x"), "22003 value \"99999x\" is out of range for type smallint");
}

/// Digits in the middle between two numbers read back as the even one, but PostgreSQL writes one more. (Texts as
/// PostgreSQL 15 shows them.)
#[test]
fn f24_the_middle_is_no_text_of_a_float() {
    for (given, want) in [
        ("4.896790165545058e16", "4.8967901655450576e+16"),
        ("2.971343478791224e17", "2.9713434787912243e+17"),
        ("8.10987198641246e16", "8.109871986412461e+16"),
        ("1.234567908519952e18", "1.2345679085199519e+18"),
        ("9007199254740992", "9.007199254740992e+15"),
        ("1e22", "1e+22"),
        ("1e23", "9.999999999999999e+22"),
    ] {
        assert_eq!(show(DataType::Float8, given), want, "{given}");
        assert_eq!(show(DataType::Float8, &format!("-{given}")), format!("-{want}"));
    }
    for (given, want) in [
        ("4.614257e+07", "4.6142568e+07"),
        ("1.121504e+10", "1.1215041e+10"),
        ("3.54074e+08", "3.5407398e+08"),
        ("7.176914e+07", "7.1769136e+07"),
    ] {
        assert_eq!(show(DataType::Float4, given), want, "{given}");
    }
}

/// Of two shortest texts that are as near, the even one. (Texts as PostgreSQL 15 shows them.)
#[test]
fn of_two_shortest_texts_a_float_has_the_even_one() {
    for (given, want) in [
        ("123456789012345.125", "123456789012345.12"),
        ("123456789012345.375", "123456789012345.38"),
        ("-123456789012345.125", "-123456789012345.12"),
        ("0.5", "0.5"),
        ("0.0001", "0.0001"),
        ("0.00012345", "0.00012345"),
        ("100", "100"),
        ("1234.5", "1234.5"),
    ] {
        assert_eq!(show(DataType::Float8, given), want, "{given}");
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
        ("9999999-01-01", "22008 timestamp out of range: \"9999999-01-01\""),
        ("300000-01-01", "22008 timestamp out of range: \"300000-01-01\""),
        ("yesterday", "22007 invalid input syntax for type timestamp: \"yesterday\""),
        ("2023-01-01x", "22007 invalid input syntax for type timestamp: \"2023-01-01x\""),
        ("-infinity", "-infinity"),
        ("infinity", "infinity"),
        ("inf", "22007 invalid input syntax for type timestamp: \"inf\""),
        ("294246-12-31 23:59:59.999999", "294246-12-31 23:59:59.999999"),
        ("294247-01-10 04:00:54.775807", "22008 timestamp out of range: \"294247-01-10 04:00:54.775807\""),
        ("Mon Feb 10 17:32:01.5 1997 PST", "1997-02-10 17:32:01.5"),
        ("J2451187 04:05", "1999-01-08 04:05:00"),
        ("19990108 040506", "1999-01-08 04:05:06"),
        ("epoch", "1970-01-01 00:00:00"),
        ("2023-01-01 10:00+16", "22009 time zone displacement out of range: \"2023-01-01 10:00+16\""),
    ] {
        assert_eq!(show(DataType::Timestamp, given), want, "{given}");
    }
    assert_eq!(DataType::Timestamp.parse("2026-11-21 04:00:00").unwrap(), Datum::Timestamp(1_795_233_600_000_000));
}

#[test]
fn dates_and_zones() {
    for (t, given, want) in [
        (DataType::Date, "2024-02-29", "2024-02-29"),
        (DataType::Date, "2024-02-29 23:59:59+02", "2024-02-29"),
        (DataType::Date, "0044-03-15 BC", "0044-03-15 BC"),
        (DataType::Date, "5874897-12-31", "5874897-12-31"),
        (DataType::Date, "5874898-01-01", "22008 date out of range: \"5874898-01-01\""),
        (DataType::Date, "2023-02-29", "22008 date/time field value out of range: \"2023-02-29\""),
        (DataType::Date, "nope", "22007 invalid input syntax for type date: \"nope\""),
        (DataType::Timestamp, "1500-01-01", "1500-01-01 00:00:00"),
        (DataType::Timestamp, "2020-01-01 10:00+02", "2020-01-01 10:00:00"),
        (DataType::Timestamptz, "2020-01-01 10:00+02", "2020-01-01 08:00:00+00"),
        (DataType::Timestamptz, "2020-01-01 10:00:00.5 -0330", "2020-01-01 13:30:00.5+00"),
        (DataType::Timestamptz, "2020-01-01T10:00:00Z", "2020-01-01 10:00:00+00"),
        (DataType::Timestamptz, "2020-01-01", "2020-01-01 00:00:00+00"),
        (DataType::Timestamptz, "0044-03-15 12:00 BC", "0044-03-15 12:00:00+00 BC"),
        (DataType::Timestamptz, "2020-01-01 10:00 Mars/Olympus", "22023 time zone \"mars/olympus\" not recognized"),
    ] {
        assert_eq!(show(t, given), want, "{given}");
    }
    assert_eq!(date_of_timestamp(-1), -1);
    assert!(timestamp_of_date(i32::MAX - 1).is_err());
    // What is infinite stays so.
    assert_eq!(timestamp_of_date(i32::MAX).unwrap(), i64::MAX);
    assert_eq!(date_of_timestamp(i64::MIN), i32::MIN);
    for infinite in [i64::MIN, i64::MAX] {
        assert_eq!(Zone::Fixed(3600).local(infinite), infinite);
        assert_eq!(Zone::Fixed(3600).utc(infinite), Some(infinite));
    }
}

#[test]
fn bytes_and_uuids() {
    for (given, want) in [
        ("\\x00fFa0", "\\x00ffa0"),
        ("\\x 01 02 ", "\\x0102"),
        ("\\x", "\\x"),
        ("a\\\\b\\001", "\\x615c6201"),
        ("\\x0", "22023 invalid hexadecimal data: odd number of digits"),
        ("\\xzz", "22023 invalid hexadecimal digit: \"z\""),
        ("a\\b", "22P02 invalid input syntax for type bytea"),
    ] {
        assert_eq!(show(DataType::Bytea, given), want, "{given}");
    }
    let uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
    for given in [uuid, "A0EEBC999C0B4EF8BB6D6BB9BD380A11", "{a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11}"] {
        assert_eq!(show(DataType::Uuid, given), uuid, "{given}");
    }
    for given in ["", "a0eebc99", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11-", "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"] {
        assert_eq!(show(DataType::Uuid, given), format!("22P02 invalid input syntax for type uuid: \"{given}\""));
    }
}

#[test]
fn small_numbers() {
    assert_eq!(show(DataType::Int2, "-32768"), "-32768");
    assert_eq!(show(DataType::Int2, "32768"), "22003 value \"32768\" is out of range for type smallint");
    assert_eq!(show(DataType::Float4, "0.1"), "0.1");
    assert_eq!(show(DataType::Float4, "1e6"), "1e+06");
    assert_eq!(show(DataType::Float4, "123456"), "123456");
    assert_eq!(show(DataType::Float4, "1e40"), "22003 \"1e40\" is out of range for type real");
    assert_eq!(show(DataType::Float4, "1e-60"), "22003 \"1e-60\" is out of range for type real");
    assert_eq!(show(DataType::Float4, "-inf"), "-Infinity");
    assert_eq!(show(DataType::Numeric(None), "1.50"), "1.50");
    // What was plain numeric before values had their own scale.
    assert_eq!(DataType::from_pg_oid(1700, 0), Some(DataType::Numeric(Some((38, 18)))));
    for (t, state) in [
        (DataType::Numeric(Some((39, 0))), "22023"),
        (DataType::Numeric(Some((5, 6))), "22023"),
        (DataType::Char(0), "22023"),
        (DataType::Varchar(MAX_VARCHAR + 1), "22023"),
    ] {
        assert_eq!(t.check().unwrap_err().state.0, state);
    }
    let single = [DataType::Numeric(None), DataType::Numeric(Some((7, 3))), DataType::Char(4), DataType::Uuid];
    for t in single.into_iter().chain(single.map(|t| t.array().expect("it is no array"))) {
        assert_eq!(DataType::from_pg_oid(t.pg_oid(), t.length()), Some(t));
    }
}

#[test]
fn texts() {
    assert_eq!(show(DataType::Char(3), "ä  "), "ä");
    assert_eq!(show(DataType::Char(2), "äöü"), "22001 value too long for type character(2)");
    assert_eq!(DataType::Char(3).admits(DatumRef::Text("a ")).unwrap_err().state.0, "42804");
    let two = DatumRef::Numeric(Numeric::from_int(2));
    assert_eq!(DataType::Numeric(Some((3, 1))).admits(two).unwrap_err().state.0, "42804");
    assert!(DataType::Numeric(Some((3, 0))).admits(two).is_ok());
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

#[test]
fn words_of_the_clock_are_read_where_there_is_one() {
    let words = ["now", "today", " Tomorrow", "yesterday", "today 10:00"];
    for word in words {
        assert_eq!(DataType::Timestamptz.parse(word).unwrap_err().state.0, "22007", "{word}");
    }
    // 2024-03-09 23:00:00.5 UTC; in Tokyo the next day has begun.
    let now = 1_710_025_200_500_000;
    let read = |of: DataType, word: &str| clock::scope(now, || of.parse(word).unwrap().to_string());
    assert_eq!(read(DataType::Timestamptz, "now"), ("2024-03-09 23:00:00.5+00".into(), true));
    assert_eq!(read(DataType::Date, "tomorrow"), ("2024-03-10".into(), true));
    assert_eq!(read(DataType::Timestamp, "yesterday"), ("2024-03-08 00:00:00".into(), true));
    assert_eq!(read(DataType::Time, "now"), ("23:00:00.5".into(), true));
    assert_eq!(read(DataType::Date, "2024-01-01"), ("2024-01-01".into(), false));
    Zone::Fixed(9 * 3600).scope(|| {
        assert_eq!(read(DataType::Date, "today").0, "2024-03-10");
        assert_eq!(read(DataType::Timestamp, "now").0, "2024-03-10 08:00:00.5");
        assert_eq!(clock::scope(now, || DataType::Timestamptz.parse("now")).0.unwrap(), Datum::Timestamptz(now));
    });
    assert!(clock::scope(now, || DataType::Date.parse("now today")).0.is_err());
    assert!(clock::watch(|| DataType::Date.parse("now")).0.is_err());
}
