use super::*;
use crate::types::{DataType, Datum};
use std::pin::pin;

fn zone(name: &str) -> Zone {
    Zone::named(name).unwrap_or_else(|| panic!("{name} is a zone"))
}

fn read(text: &str) -> Datum {
    DataType::Timestamptz.parse(text).unwrap()
}

/// A text read in a zone, and shown in another.
fn across(text: &str, from: &str, to: &str) -> String {
    let value = zone(from).scope(|| read(text));
    zone(to).scope(|| value.to_string())
}

#[test]
fn zones_have_names_hours_and_posix_forms() {
    for (name, shown) in [
        ("europe/berlin", "Europe/Berlin"),
        ("UTC", "UTC"),
        ("gmt", "GMT"),
        ("etc/utc", "Etc/UTC"),
        ("2", "<+02>-02"),
        ("-5.5", "<-05:30>+05:30"),
        ("0", "<+00>-00"),
        ("GMT+3", "GMT+3"),
        ("<+02>-02", "<+02>-02"),
        ("<+07>-7", "<+07>-7"),
        ("xyz-5:45", "XYZ-5:45"),
        ("+02:00", "+02:00"),
        ("EST5EDT", "EST5EDT"),
    ] {
        assert_eq!(Zone::shown(name).unwrap(), shown, "{name}");
        assert_eq!(Zone::named(shown).unwrap(), zone(name), "{name}");
    }
    for bad in ["", "nowhere", "Europe/Nowhere", "XY5", "<>5", "<x5", "168", "1e300", "NaN", "+", "UTC+1:60", "UTC+2x"]
    {
        assert_eq!(Zone::named(bad), None, "{bad}");
    }
}

#[test]
fn in_expressions_abbreviations_are_offsets_and_hours_are_west() {
    for (name, shown) in [
        ("MSK", "MSK"),
        ("CET", "<+01>-01"),
        ("est", "<-05>+05"),
        ("WET", "UTC"),
        ("+03", "<-03>+03"),
        ("-3", "<+03>-03"),
        ("UTC+3", "<-03>+03"),
        ("Europe/Berlin", "Europe/Berlin"),
        ("EST5EDT", "EST5EDT"),
    ] {
        assert_eq!(Zone::in_expression(name).unwrap().to_string(), shown, "{name}");
    }
    assert_eq!(Zone::in_expression("5.5"), None);
    assert_eq!(across("2024-07-01 12:00 CET", "UTC", "UTC"), "2024-07-01 11:00:00+00");
    assert_eq!(across("2024-07-01 12:00+03", "UTC", "UTC"), "2024-07-01 09:00:00+00");
}

#[test]
fn values_are_read_and_shown_in_the_zone_of_the_work() {
    assert_eq!(across("2024-07-01 12:00", "Europe/Berlin", "UTC"), "2024-07-01 10:00:00+00");
    assert_eq!(across("2024-01-01 12:00", "Europe/Berlin", "America/New_York"), "2024-01-01 06:00:00-05");
    assert_eq!(across("2024-01-01 12:00+02", "Europe/Berlin", "Asia/Kolkata"), "2024-01-01 15:30:00+05:30");
    assert_eq!(across("2024-01-01", "-3", "2"), "2024-01-01 05:00:00+02");
    // Before there were zones: the local mean time, with its seconds.
    assert_eq!(across("1850-01-01 00:00+00", "UTC", "Europe/Berlin"), "1850-01-01 00:53:28+00:53:28");
    // A zone that the text names.
    assert_eq!(across("2024-07-01 12:00 europe/berlin", "-3", "UTC"), "2024-07-01 10:00:00+00");
    assert_eq!(across("4713-01-01 00:00 BC", "Europe/Berlin", "Europe/Berlin"), "4713-01-01 00:00:00+00:53:28 BC");
    assert_eq!(Zone::current(), Zone::Utc, "the scope is over");
}

#[test]
fn clocks_that_are_set_forward_and_back() {
    // 02:00 to 03:00 on 31 March did not exist; on 27 October it came twice.
    assert_eq!(across("2024-03-31 01:59:59", "Europe/Berlin", "UTC"), "2024-03-31 00:59:59+00");
    assert_eq!(across("2024-03-31 02:30", "Europe/Berlin", "Europe/Berlin"), "2024-03-31 03:30:00+02");
    assert_eq!(across("2024-03-31 03:00", "Europe/Berlin", "UTC"), "2024-03-31 01:00:00+00");
    assert_eq!(across("2024-10-27 01:59:59", "Europe/Berlin", "UTC"), "2024-10-26 23:59:59+00");
    assert_eq!(across("2024-10-27 02:30", "Europe/Berlin", "UTC"), "2024-10-27 01:30:00+00");
    assert_eq!(across("2024-10-27 03:00", "Europe/Berlin", "UTC"), "2024-10-27 02:00:00+00");
    assert_eq!(across("2024-03-10 02:30", "America/New_York", "UTC"), "2024-03-10 07:30:00+00");
}

/// Whatever the zone: a moment that is shown and read is the same one, unless its local time comes twice.
#[test]
fn what_is_shown_is_read_back() {
    let zones =
        ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "5.75", "Africa/Monrovia"];
    for name in zones {
        let zone = zone(name);
        for hour in (-1_200_000..1_200_000).step_by(997) {
            let micros = hour * 3600 * SECOND + 1;
            let shown = zone.scope(|| Datum::Timestamptz(micros).to_string());
            assert_eq!(zone.scope(|| read(&shown)), Datum::Timestamptz(micros), "{name}: {shown}");
            let (local, utc) = (zone.local(micros), zone.utc(zone.local(micros)).unwrap());
            assert_eq!(zone.local(utc), local, "{name}: {shown}");
            assert!((0..=2 * 3600 * SECOND).contains(&(utc - micros)), "{name}: {shown}");
        }
    }
    for extreme in [i64::MIN, i64::MAX] {
        zone("Europe/Berlin").scope(|| Datum::Timestamptz(extreme).to_string());
        assert_eq!(zone("12").utc(i64::MIN + 1), None);
    }
}

#[test]
fn a_zone_holds_over_the_polls_of_its_work_alone() {
    let work = async {
        let first = Zone::current();
        let mut waited = false;
        std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            if std::mem::replace(&mut waited, true) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        (first, Zone::current())
    };
    let work = pin!(work);
    let style = Style { zone: zone("3"), ..Style::default() };
    let mut work = pin!(style.over(work));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(work.as_mut().poll(&mut context).is_pending());
    assert_eq!(Zone::current(), Zone::Utc);
    let std::task::Poll::Ready(seen) = work.as_mut().poll(&mut context) else { panic!("it is done") };
    assert_eq!(seen, (Zone::Fixed(10_800), Zone::Fixed(10_800)));
}

/// W1: no summer time was known after 2099.
#[test]
fn the_last_rule_of_a_zone_goes_on() {
    for (text, zone, shown) in [
        ("3021-03-30 22:00:00.000001+00", "Europe/Rome", "3021-03-31 00:00:00.000001+02"),
        ("3021-01-30 22:00:00+00", "Europe/Rome", "3021-01-30 23:00:00+01"),
        ("2100-07-01 00:00:00+00", "America/New_York", "2100-06-30 20:00:00-04"),
        ("2104-02-29 12:00:00+00", "America/New_York", "2104-02-29 07:00:00-05"),
        ("2104-02-29 12:00:00+00", "Australia/Sydney", "2104-02-29 23:00:00+11"),
        ("2400-03-26 00:59:59+00", "Europe/Berlin", "2400-03-26 01:59:59+01"),
        ("2400-03-26 01:00:00+00", "Europe/Berlin", "2400-03-26 03:00:00+02"),
        ("2400-10-29 00:59:59+00", "Europe/Berlin", "2400-10-29 02:59:59+02"),
        ("2400-10-29 01:00:00+00", "Europe/Berlin", "2400-10-29 02:00:00+01"),
        ("2300-07-01 00:00:00+00", "Africa/Casablanca", "2300-07-01 01:00:00+01"),
        ("200000-07-01 00:00:00+00", "Europe/Berlin", "200000-07-01 02:00:00+02"),
        ("290000-07-01 00:00:00+00", "Europe/Berlin", "290000-07-01 02:00:00+02"),
        ("290000-01-01 00:00:00+00", "Asia/Tokyo", "290000-01-01 09:00:00+09"),
    ] {
        assert_eq!(across(text, "UTC", zone), shown, "{text} in {zone}");
        assert_eq!(across(shown, zone, "UTC"), text, "{shown} in {zone}");
    }
    let local = "3021-03-31 12:00:00";
    assert_eq!(across(local, "Europe/Rome", "UTC"), "3021-03-31 10:00:00+00");
}
