use super::{number, time};
use terrace_engine::types::Decimal;
use terrace_engine::{DataType, Datum};

fn time(text: &str, pattern: &str) -> String {
    time_at(text, pattern, 0)
}

fn time_at(text: &str, pattern: &str, offset: i64) -> String {
    match (DataType::Timestamp.parse(text).unwrap(), time::Pattern::read(pattern)) {
        (Datum::Timestamp(micros), Ok(pattern)) => pattern.write(micros, offset),
        (_, Err(error)) => error.state.0.to_owned(),
        (other, _) => panic!("{other:?}"),
    }
}

fn number(text: &str, pattern: &str) -> String {
    match (DataType::Numeric(None).parse(text).unwrap(), number::Pattern::read(pattern)) {
        (Datum::Decimal(number), Ok(pattern)) => match pattern.write(number::Given::Exact(Decimal::decode(&number))) {
            Ok(text) => text,
            Err(error) => error.state.0.to_owned(),
        },
        (_, Err(error)) => error.state.0.to_owned(),
        (other, _) => panic!("{other:?}"),
    }
}

/// Answers are those that PostgreSQL's documentation gives, or follow from its rules.
#[test]
fn times() {
    let given = "2002-04-20 17:31:12.66";
    for (pattern, want) in [
        ("HH12:MI:SS", "05:31:12"),
        ("YYYY-MM-DD HH24:MI:SS.MS", "2002-04-20 17:31:12.660"),
        ("yyyy-mm-dd hh24:mi:ss.us", "2002-04-20 17:31:12.660000"),
        ("YYYY-MM-DD\"T\"HH24:MI:SSOF", "2002-04-20T17:31:12+00"),
        ("YYYYMMDDHH24MISS", "20020420173112"),
        ("Day, DD  HH12:MI:SS", "Saturday , 20  05:31:12"),
        ("FMDay, FMDD  HH12:MI:SS", "Saturday, 20  05:31:12"),
        ("DY Dy dy|DAY|day", "SAT Sat sat|SATURDAY |saturday "),
        ("Month|FMMonth|MON|Mon|mon|month", "April    |April|APR|Apr|apr|april    "),
        ("FMMonth FMDDth, YYYY", "April 20th, 2002"),
        ("HH:MI AM am P.M. a.m.", "05:31 PM pm P.M. p.m."),
        ("Y,YYY YYY YY Y AD b.c.", "2,002 002 02 2 AD a.d."),
        ("DDD D ID WW W IW IYYY Q CC J", "110 7 6 16 3 16 2002 2 21 2452385"),
        ("SSSS SSSSS FF1 FF3", "63072 63072 6 660"),
        ("TZH:TZM", "+00:00"),
        ("DDTHH24", "20THH24"),
        ("\"Year:\" YYYY, é", "Year: 2002, é"),
    ] {
        assert_eq!(time(given, pattern), want, "{pattern}");
    }
    assert_eq!(time("2024-01-01 00:05:00", "HH12 HH24 FMHH24 FMMI AM FMDDTH"), "12 00 0 5 AM 1ST");
    assert_eq!(time("2024-12-11 12:00:00", "DDth HH12 PM"), "11th 12 PM");
    assert_eq!(time("2024-12-30 12:00:00", "IYYY-IW-ID"), "2025-01-1");
    assert_eq!(time("2024-12-30 12:00:00.005", "FMMS FMFF2 FMUS FMSS"), "005 00 005000 0");
    assert_eq!(time("0044-03-15 12:00:00 BC", "CC FMCC FMCCth YYYY BC"), "-01 -1 -1st 0044 BC");
    assert_eq!(time_at("2024-12-30 12:00:00", "OF FMOF TZH FMTZH TZM", 19_800), "+05:30 +5:30 +05 +05 30");
    assert_eq!(time_at("2024-12-30 12:00:00", "OF FMOF", -3600), "-01 -1");
    assert_eq!(time("2024-08-30 12:00:00", "RM|FMRM|rm|IDDD|FMIDDDth"), "VIII|VIII|viii|243|243rd");
    assert_eq!(time("2024-01-01 12:00:00", "RM|FMRM|IDDD FMIDDD"), "I   |I|001 1");
    assert_eq!(time(given, "YYYY\\\" \\ \"a\\\"b\\c\" FM-DD \"open FM"), "2002\" \\ a\"bc -20 open FM");
    for refused in ["", "TZ", "TMMonth", "FX YYYY", "DDSP"] {
        assert_eq!(time(given, refused), "0A000", "{refused}");
    }
}

#[test]
fn numbers() {
    for (value, pattern, want) in [
        ("-0.1", "99.99", "  -.10"),
        ("-0.1", "FM9.99", "-.1"),
        ("-0.1", "FM90.99", "-0.1"),
        ("0.1", "0.9", " 0.1"),
        ("12", "9990999.9", "    0012.0"),
        ("12", "FM9990999.9", "0012."),
        ("485", "999", " 485"),
        ("-485", "999", "-485"),
        ("1485", "9,999", " 1,485"),
        ("1485", "9G999", " 1,485"),
        ("148.5", "999.999", " 148.500"),
        ("148.5", "FM999.999", "148.5"),
        ("148.5", "FM999.990", "148.500"),
        ("148.5", "999D999", " 148.500"),
        ("3148.5", "9G999D999", " 3,148.500"),
        ("125", "999", " 125"),
        ("125.8", "999D9", " 125.8"),
        ("-125.8", "999D99", "-125.80"),
        ("7", "000", " 007"),
        ("7", "FM000", "007"),
        ("12", "9,999", "    12"),
        ("-12", "9,999", "   -12"),
        ("12", "0,000", " 0,012"),
        ("12", "FM9,999", "12"),
        ("1234567.891", "FM9,999,999.00", "1,234,567.89"),
        ("0", "999", "   0"),
        ("0", "FM999", "0"),
        ("0", "FM9.99", "0."),
        ("0", "9.99", "  .00"),
        ("0.5", "9", " 1"),
        ("12.5", "99.", " 13"),
        ("12", "FM99.", "12"),
        ("-0.4", "9", " 0"),
        ("1000", "999", " ###"),
        ("-1000", "999.9", "-###.#"),
        ("999.9", "999", " ###"),
    ] {
        assert_eq!(number(value, pattern), want, "{value} as {pattern}");
    }
    for wrong in ["9.9.9", "9PR9", "S9S", "SMI", "9EEEE9", "FM9EEEE", "9V9.9"] {
        assert_eq!(number("1", wrong), "42601", "{wrong}");
    }
}
