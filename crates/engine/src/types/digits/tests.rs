use super::*;

#[test]
fn what_a_numeric_keeps() {
    assert_eq!(numeric_of(38, 38).unwrap(), (DataType::Numeric(Some((38, 38))), None));
    for (precision, scale) in [(39, 0), (3, -2), (2, 4)] {
        let wide = Digits::Numeric { precision, scale };
        let of = numeric_of(precision.into(), scale.into());
        assert_eq!(of.unwrap(), (DataType::Numeric(None), Some(wide)));
    }
    for (precision, scale, message) in [
        (0, 0, "NUMERIC precision 0 must be between 1 and 1000"),
        (1001, 0, "NUMERIC precision 1001 must be between 1 and 1000"),
        (1000, 1001, "NUMERIC scale 1001 must be between -1000 and 1000"),
        (10, -1001, "NUMERIC scale -1001 must be between -1000 and 1000"),
    ] {
        let error = numeric_of(precision, scale).unwrap_err();
        assert_eq!((error.state.0, &*error.message), ("22023", message));
    }
}

#[test]
fn the_catalogues_number_gives_the_digits_back() {
    let seconds = (0..=6).map(Digits::Second);
    let numerics = [1, 2, 38, 39, 1000]
        .into_iter()
        .flat_map(|precision| [-1000, -1, 0, 1, 1000].map(|scale| Digits::Numeric { precision, scale }));
    for digits in seconds.chain(numerics) {
        assert_eq!(Digits::of_number(digits.number()), Some(digits));
    }
    for none in [-1, 7, 65_535, i32::MAX] {
        assert_eq!(Digits::of_number(none), None, "{none}");
    }
}

/// PostgreSQL's answers.
#[test]
fn values_are_rounded_or_do_not_fit() {
    let kept = |text: &str, precision, scale| {
        let value = DataType::Numeric(None).parse(text).unwrap();
        Digits::Numeric { precision, scale }
            .keep(value)
            .map_or_else(|e| format!("{} {}", e.state.0, e.detail.unwrap_or_default()), |value| value.to_string())
    };
    let field = |precision: i32, scale: i32, rest: &str| {
        format!("22003 A field with precision {precision}, scale {scale} {rest}.")
    };
    for (text, precision, scale, want) in [
        ("1.005", 50, 2, "1.01".to_owned()),
        ("7", 50, 3, "7.000".into()),
        ("99949", 3, -2, "99900".into()),
        ("99950", 3, -2, field(3, -2, "must round to an absolute value less than 10^5")),
        ("-0.0099", 2, 4, "-0.0099".into()),
        ("0.00995", 2, 4, field(2, 4, "must round to an absolute value less than 10^-2")),
        ("1", 40, 40, field(40, 40, "must round to an absolute value less than 1")),
        ("NaN", 50, 2, "NaN".into()),
        ("-Infinity", 50, 2, field(50, 2, "cannot hold an infinite value")),
    ] {
        assert_eq!(kept(text, precision, scale), want, "{text} {precision} {scale}");
    }
}
