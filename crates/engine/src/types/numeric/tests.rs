use super::*;
use proptest::prelude::*;

fn show(text: &str, precision: u8, scale: u8) -> String {
    match Numeric::parse(text, precision, scale) {
        Ok(n) => n.to_string(),
        Err(e) => format!("{} {}", e.state.0, e.message),
    }
}

#[test]
fn numbers_as_postgresql_reads_them() {
    for (text, want) in [
        ("1", "1.00"),
        (" -1.5 ", "-1.50"),
        ("+.5", "0.50"),
        ("5.", "5.00"),
        ("0.005", "0.01"),
        ("-0.005", "-0.01"),
        ("0.0049999999999999999999999999999999999999999999999999", "0.00"),
        ("1e2", "100.00"),
        ("12345e-3", "12.35"),
        ("0e99", "0.00"),
        ("1e-99", "0.00"),
        ("999.994", "999.99"),
        ("999.995", "22003 numeric field overflow"),
        ("1000", "22003 numeric field overflow"),
        ("1e99", "22003 numeric field overflow"),
        ("", "22P02 invalid input syntax for type numeric: \"\""),
        (".", "22P02 invalid input syntax for type numeric: \".\""),
        ("1.2.3", "22P02 invalid input syntax for type numeric: \"1.2.3\""),
        ("1e", "22P02 invalid input syntax for type numeric: \"1e\""),
        ("abc", "22P02 invalid input syntax for type numeric: \"abc\""),
        ("NaN", "0A000 NaN is no numeric(5,2) here"),
        ("-inf", "22003 numeric field overflow"),
    ] {
        assert_eq!(show(text, 5, 2), want, "{text}");
    }
    let nines = "9".repeat(38);
    assert_eq!(show(&nines, 38, 0), nines);
    assert_eq!(show(&format!("{nines}9"), 38, 0), "22003 numeric field overflow");
    assert_eq!(show(&format!("0.{nines}"), 38, 38), format!("0.{nines}"));
    assert_eq!(show("1", 38, 38), "22003 numeric field overflow");
    let detail = Numeric::parse("1000", 5, 2).unwrap_err().detail.unwrap();
    assert_eq!(detail, "A field with precision 5, scale 2 must round to an absolute value less than 10^3.");
}

#[test]
fn conversions() {
    let n = |unscaled, scale| Numeric { unscaled, scale };
    assert_eq!(n(25, 1).to_int(), 3);
    assert_eq!(n(-25, 1).to_int(), -3);
    assert_eq!(n(24999, 4).to_int(), 2);
    assert_eq!(n(1, 1).to_f64(), 0.1);
    assert_eq!(n(125, 2).rescale(3, 1).unwrap().to_string(), "1.3");
    assert!(n(i128::MAX, 0).rescale(38, 0).is_err());
    assert!(n(1, 0).rescale(38, 38).is_err());
}

proptest! {
    #[test]
    fn order_is_of_values(a in any::<i64>(), b in any::<i64>(), s in 0u8..10, t in 0u8..10) {
        let wide = |v: i64, scale: u8| i128::from(v) * power_of_ten(10 - scale);
        let (x, y) = (Numeric { unscaled: a.into(), scale: s }, Numeric { unscaled: b.into(), scale: t });
        prop_assert_eq!(x.cmp(&y), wide(a, s).cmp(&wide(b, t)));
    }

    #[test]
    fn division_rounds_away_from_zero(v in any::<i64>(), d in 1i64..1000) {
        let exact = v as f64 / d as f64;
        let got = divide_rounded(v.into(), d.into());
        prop_assert!((got as f64 - exact).abs() <= 0.5 + exact.abs() * 1e-15);
        prop_assert_eq!(divide_rounded(-i128::from(v), d.into()), -got);
    }
}
