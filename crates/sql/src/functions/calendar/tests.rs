use super::*;
use terrace_engine::{DataType, Datum};

fn micros(text: &str) -> i64 {
    match DataType::Timestamp.parse(text).unwrap() {
        Datum::Timestamp(micros) => micros,
        other => panic!("{other:?}"),
    }
}

/// Answers are PostgreSQL 15's.
#[test]
fn fields() {
    let given = micros("2001-02-16 20:38:40.12");
    for (name, want) in [
        ("microseconds", 40_120_000),
        ("milliseconds", 40_120_000),
        ("second", 40_120_000),
        ("minute", 38),
        ("hour", 20),
        ("day", 16),
        ("week", 7),
        ("month", 2),
        ("quarter", 1),
        ("year", 2001),
        ("decade", 200),
        ("century", 21),
        ("millennium", 3),
        ("dow", 5),
        ("isodow", 5),
        ("doy", 47),
        ("isoyear", 2001),
        ("epoch", 982_355_920_120_000),
    ] {
        assert_eq!(Part::named(name).unwrap().of_timestamp(given), want, "{name}");
    }
    assert_eq!(Part::Week.of_timestamp(micros("2006-01-01")), 52);
    assert_eq!(Part::IsoYear.of_timestamp(micros("2006-01-01")), 2005);
    assert_eq!(Part::Year.of_timestamp(micros("0001-12-31 BC")), -1);
    assert_eq!(Part::Century.of_timestamp(micros("0001-12-31 BC")), -1);
    assert_eq!(Part::Century.of_timestamp(micros("2000-12-16 12:21:13")), 20);
    assert_eq!(Part::Epoch.of_interval(14, 3, 0), Some(1_000_000 * 86_400 * (365 + 60 + 3) + 21_600_000_000));
    assert_eq!(Part::DayOfWeek.of_interval(1, 1, 1), None);
}

#[test]
fn beginnings_of_units() {
    let given = micros("2001-02-16 20:38:40.123456");
    for (name, want) in [
        ("milliseconds", "2001-02-16 20:38:40.123"),
        ("second", "2001-02-16 20:38:40"),
        ("hour", "2001-02-16 20:00"),
        ("day", "2001-02-16"),
        ("week", "2001-02-12"),
        ("month", "2001-02-01"),
        ("quarter", "2001-01-01"),
        ("year", "2001-01-01"),
        ("decade", "2000-01-01"),
        ("century", "2001-01-01"),
        ("millennium", "2001-01-01"),
    ] {
        assert_eq!(Part::named(name).unwrap().truncate(given), Some(micros(want)), "{name}");
    }
    assert_eq!(Part::Hour.truncate(micros("1500-01-01 00:59")), Some(micros("1500-01-01")));
    assert_eq!(Part::Epoch.truncate(given), None);
}
