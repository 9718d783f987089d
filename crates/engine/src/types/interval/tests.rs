use super::*;
use crate::row::tests::any_interval;
use proptest::prelude::*;

fn shown(text: &str, fields: Option<Fields>) -> String {
    match Interval::parse(text, fields) {
        Ok(interval) => interval.to_string(),
        Err(error) => error.state.0.to_owned(),
    }
}

#[test]
fn as_postgresql_reads_them() {
    for (text, answer) in [
        ("1 day", "1 day"),
        ("30 days 1 hour 40 min", "30 days 01:40:00"),
        ("1 day 02:00", "1 day 02:00:00"),
        ("-25:00:00", "-25:00:00"),
        ("1-2", "1 year 2 mons"),
        ("-1-2", "-1 years -2 mons"),
        ("@ 3 days ago", "-3 days"),
        ("1.5 months", "1 mon 15 days"),
        ("1.5 years", "1 year 6 mons"),
        ("0.5 weeks", "3 days 12:00:00"),
        ("1.5 days", "1 day 12:00:00"),
        ("1 mon -1 day", "1 mon -1 days"),
        ("-1 mon +1 day 00:00:01", "-1 mons +1 day 00:00:01"),
        ("12", "00:00:12"),
        ("3 04:05:06.7", "3 days 04:05:06.7"),
        ("1 century", "100 years"),
        ("12:30.5", "00:12:30.5"),
        ("1 day 24:00:60", "1 day 24:01:00"),
        ("02:00 1.5 days", "1 day 02:00:00"),
        ("1 day ago 2 hours", "-1 days -02:00:00"),
        ("2.5 us", "00:00:00.000002"),
        ("P1e2D", "100 days"),
        ("P-1Y2M", "-10 mons"),
        ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"),
        ("P20010203T040506.5", "2001 years 2 mons 3 days 04:05:06"),
        ("PT1.5H", "01:30:00"),
        ("0", "00:00:00"),
        ("", "22007"),
        ("P", "22007"),
        ("abc", "22007"),
        ("1 ago", "22007"),
        ("infinity", "22007"),
        ("1 fortnight", "22007"),
        ("1 day 1 day", "22007"),
        ("1 hour 1:00", "22007"),
        ("1.5 s 1 ms", "22007"),
        ("1hours2", "22007"),
        ("1 s 1 ms", "00:00:01.001"),
        ("1 week 1 day", "8 days"),
        ("1:60", "22015"),
        ("1-12", "22015"),
        ("3000000000 days", "22015"),
        ("300000000 years", "22008"),
        ("2562047788:00:54.775807", "2562047788:00:54.775807"),
        ("2562047788:00:55", "22015"),
    ] {
        assert_eq!(shown(text, None), answer, "{text}");
    }
}

#[test]
fn fields_say_what_a_number_is_and_what_is_kept() {
    use Field::*;
    for (text, first, last, answer) in [
        ("1-2", Year, Month, "1 year 2 mons"),
        ("1", Month, Month, "1 mon"),
        ("1 2", Day, Hour, "1 day 02:00:00"),
        ("1:2", Minute, Second, "00:01:02"),
        ("1:2", Hour, Minute, "01:02:00"),
        ("1 2:03", Day, Second, "1 day 02:03:00"),
        ("1 day 2:03:04", Hour, Hour, "1 day 02:00:00"),
        ("1 year 5 months 2 days", Year, Year, "1 year"),
    ] {
        assert_eq!(shown(text, Some(Fields { first, last })), answer, "{text}");
    }
    for (micros, digits, answer) in [(1_250_000, 1, 1_300_000), (-1_250_000, 1, -1_300_000), (1_499_999, 0, 1_000_000)]
    {
        assert_eq!(rounded(micros, digits), answer);
    }
}

proptest! {
    #[test]
    fn texts_are_read_back(v in any_interval()) {
        prop_assert_eq!(Interval::parse(&v.to_string(), None).unwrap(), v);
    }

    #[test]
    fn a_key_is_of_an_equal_interval(v in any_interval()) {
        prop_assert_eq!(Interval::from_key(v.key()).unwrap().key(), v.key());
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-+@:. PYMDTHS0-9a-z]{0,24}|\\PC{0,8}") {
        let _ = Interval::parse(&text, None);
        let _ = crate::DataType::Time.parse(&text);
    }
}

#[test]
fn styles() {
    use crate::types::style::{IntervalStyle, Style};
    let in_style = |spans, text: &str| Style { spans, ..Style::default() }.scope(|| shown(text, None));
    for (text, verbose, standard, iso) in [
        ("0", "@ 0", "0", "PT0S"),
        ("1-2", "@ 1 year 2 mons", "1-2", "P1Y2M"),
        ("3 04:05:06.7", "@ 3 days 4 hours 5 mins 6.7 secs", "3 4:05:06.7", "P3DT4H5M6.7S"),
        ("-1 days", "@ 1 day ago", "-1 0:00:00", "P-1D"),
        ("1 day -1 hours", "@ 1 day -1 hours", "+0-0 +1 -1:00:00", "P1DT-1H"),
        ("1 year 1 sec", "@ 1 year 1 sec", "+1-0 +0 +0:00:01", "P1YT1S"),
    ] {
        assert_eq!(in_style(IntervalStyle::Verbose, text), verbose, "{text}");
        assert_eq!(in_style(IntervalStyle::SqlStandard, text), standard, "{text}");
        assert_eq!(in_style(IntervalStyle::Iso, text), iso, "{text}");
    }
    // One sign in front is that of all fields, in the standard's style alone.
    assert_eq!(in_style(IntervalStyle::SqlStandard, "-1 02:03:04"), "-1 2:03:04");
    assert_eq!(in_style(IntervalStyle::Postgres, "-1 02:03:04"), "-1 days +02:03:04");
}

#[test]
fn digits_of_a_second() {
    let rounded = |text: &str, digits| {
        let value = crate::types::DataType::Timestamp.parse(text).unwrap();
        rounded_datum(value, digits).to_string()
    };
    // Counted from 2000 on: halves go away from it.
    assert_eq!(rounded("2020-01-01 00:00:00.125", 2), "2020-01-01 00:00:00.13");
    assert_eq!(rounded("1990-01-01 00:00:00.125", 2), "1990-01-01 00:00:00.12");
    assert_eq!(rounded("infinity", 0), "infinity");
}
