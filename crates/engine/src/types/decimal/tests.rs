use super::*;
use crate::row::tests::any_decimal;
use proptest::prelude::*;

fn d(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

/// An answer, or its error.
fn shown(result: Result<Decimal>) -> String {
    result.map_or_else(|e| format!("{} {}", e.state.0, e.message), |v| v.to_string())
}

#[test]
fn texts() {
    for (text, want) in [
        ("1", "1"),
        (" -1.50 ", "-1.50"),
        ("+.5", "0.5"),
        ("5.", "5"),
        ("-0.00", "0.00"),
        ("1e3", "1000"),
        ("1.5e3", "1500"),
        ("12.5e-3", "0.0125"),
        ("0e5", "0"),
        ("0e-3", "0.000"),
        ("nan", "NaN"),
        ("-inf", "-Infinity"),
        ("+Infinity", "Infinity"),
    ] {
        assert_eq!(d(text).to_string(), want, "{text}");
        assert_eq!(Decimal::decode(&d(text).encode()).to_string(), want, "{text}");
    }
    for wrong in ["", ".", "e1", "1e", "1e+", "1.2.3", "1,2", "--1", "+nan", "infinit", "1 2", "0x1"] {
        assert_eq!(Decimal::parse(wrong).unwrap_err().state.0, "22P02", "{wrong}");
    }
    assert_eq!(d("1e131071").to_string().len(), 131_072);
    assert_eq!(d("1e-16383").scale(), Some(16_383));
    for large in ["1e131072", "1e-16384", "1e999999999999999999999", "0e-20000"] {
        assert_eq!(Decimal::parse(large).unwrap_err().state.0, "22003", "{large}");
    }
}

#[test]
fn the_scale_of_a_quotient_is_postgresqls() {
    for (a, b, want) in [
        ("1", "3.0", "0.33333333333333333333"),
        ("10", "3", "3.3333333333333333"),
        ("1", "10000", "0.000100000000000000000000"),
        ("2", "1", "2.0000000000000000"),
        ("100000", "3", "33333.333333333333"),
        ("0", "7", "0.00000000000000000000"),
        ("1e30", "7", "142857142857142857142857142857"),
        ("-1", "3", "-0.33333333333333333333"),
        ("Infinity", "-2", "-Infinity"),
        ("2", "Infinity", "0"),
        ("Infinity", "Infinity", "NaN"),
        ("1", "0", "22012 division by zero"),
        ("Infinity", "0", "22012 division by zero"),
        ("NaN", "0", "NaN"),
    ] {
        assert_eq!(shown(d(a).divide(&d(b))), want, "{a} / {b}");
    }
}

#[test]
fn results_have_the_scale_of_their_operation() {
    assert_eq!(shown(d("1.10").add(&d("2"))), "3.10");
    assert_eq!(shown(d("1.10").multiply(&d("2.5"))), "2.750");
    assert_eq!(shown(d("Infinity").multiply(&d("0"))), "NaN");
    assert_eq!(shown(d("Infinity").subtract(&d("Infinity"))), "NaN");
    assert_eq!(shown(d("-7.50").remainder(&d("2"))), "-1.50");
    assert_eq!(shown(d("1e131071").multiply(&d("10"))), "22003 value overflows numeric format");
    assert_eq!(shown(d("-1.5").round(0)), "-2");
    assert_eq!(shown(d("1.5").round(3)), "1.500");
    assert_eq!(shown(d("155").round(-1)), "160");
    assert_eq!(d("4.5e131071").round(-131_071).unwrap(), d("5e131071"));
    assert_eq!(shown(d("4.5e131071").round(-131_072)), "0");
    assert_eq!(shown(d("5.5e131071").round(-131_072)), "22003 value overflows numeric format");
    assert_eq!(d("5e-16383").round(16_382).unwrap(), d("1e-16382"));
    assert_eq!(shown(d("-0.4").ceiling()), "0");
    assert_eq!(shown(d("-0.4").floor()), "-1");
    assert_eq!(shown(d("1.99").truncate(1)), "1.9");
    assert_eq!(shown(d("12").least_multiple(&d("-18.0"))), "36.0");
    assert_eq!(d("1.5").greatest_divisor(&d("0.25")).to_string(), "0.25");
    assert_eq!(shown(Decimal::factorial(25)), "15511210043330985984000000");
    assert_eq!(d("5").bucket(&d("0"), &d("10"), 5).unwrap(), 3);
    assert_eq!(d("Infinity").bucket(&d("0"), &d("10"), 5).unwrap(), 6);
    assert_eq!(Decimal::from_float(1e20, false).unwrap().to_string(), "100000000000000000000");
    assert_eq!(Decimal::from_float(0.1, false).unwrap().to_string(), "0.1");
}

#[test]
fn roots_powers_and_logarithms() {
    assert_eq!(shown(d("2").square_root()), "1.414213562373095");
    assert_eq!(shown(d("0").square_root()), "0.000000000000000");
    assert_eq!(shown(d("-1").square_root()), "2201F cannot take square root of a negative number");
    assert_eq!(shown(d("1").exp()), "2.7182818284590452");
    assert_eq!(shown(d("-1").exp()), "0.3678794411714423");
    assert_eq!(shown(d("0.0").exp()), "1.0000000000000000");
    assert_eq!(shown(d("6000").exp()), "22003 value overflows numeric format");
    assert_eq!(shown(d("2").ln()), "0.6931471805599453");
    assert_eq!(shown(d("1").ln()), "0.0000000000000000");
    assert_eq!(shown(d("0").ln()), "2201E cannot take logarithm of zero");
    assert_eq!(shown(d("100").log(&d("10"))), "2.0000000000000000");
    assert_eq!(shown(d("2").power(&d("0.5"))), "1.4142135623730950");
    assert_eq!(shown(d("2").power(&d("100"))), "1267650600228229401496703205376.0000000000000000");
    assert_eq!(shown(d("-8").power(&d("3"))), "-512.0000000000000000");
    assert_eq!(shown(d("-8").power(&d("0.5"))).split(' ').next(), Some("2201F"));
    assert_eq!(shown(d("0").power(&d("-1"))).split(' ').next(), Some("2201F"));
    assert_eq!(shown(d("NaN").power(&d("0"))), "1");
    assert_eq!(shown(d("0.5").power(&d("-Infinity"))), "Infinity");
}

#[test]
fn spreads() {
    let (sum, squares) = (d("15"), d("55"));
    assert_eq!(shown(variance(5, &sum, &squares, true, false)), "2.5000000000000000");
    assert_eq!(shown(variance(5, &sum, &squares, true, true)), "1.5811388300841897");
    assert_eq!(shown(variance(1, &d("4"), &d("16"), false, false)), "0");
}

/// However short they are stored.
#[test]
fn numbers_of_many_digits_are_long() {
    assert!(d("1e130000").is_long());
    assert!(d(&"9".repeat(5000)).is_long());
    for short in ["0", "1e1000", "NaN", "Infinity", "-0.000000000000000000000001"] {
        assert!(!d(short).is_long(), "{short}");
    }
}

proptest! {
    #[test]
    fn stored_forms_give_values_back_and_are_ordered_as_these_are(a in any_decimal(), b in any_decimal()) {
        let (own, other) = (a.encode(), b.encode());
        prop_assert_eq!(Decimal::decode(&own).to_string(), a.to_string());
        prop_assert_eq!(shown(Decimal::parse(&a.to_string())), a.to_string());
        prop_assert_eq!(compare(&own, &other), a.cmp(&b));
        prop_assert_eq!(key(&own) == key(&other), a == b);
        prop_assert!(key(&own) == key(&other) || !key(&other).starts_with(key(&own)));
        prop_assert_eq!(key_length(&own), Some(own.len() - 2));
        prop_assert_eq!(Decimal::of_key(key(&own)), Some(a));
    }

    #[test]
    fn what_is_no_stored_form_is_told(bytes in prop::collection::vec(prop_oneof![0..6u8, any::<u8>()], 0..12)) {
        if check(&bytes).is_ok() {
            prop_assert_eq!(&*Decimal::decode(&bytes).encode(), &bytes[..]);
        }
    }

    #[test]
    fn sums_products_and_quotients_agree(a in any_decimal(), b in any_decimal()) {
        if let (Decimal::Finite(x), Decimal::Finite(y)) = (&a, &b) {
            prop_assert_eq!(a.add(&b).unwrap().subtract(&b).unwrap(), a.clone());
            if !y.is_zero() {
                let product = a.multiply(&b).unwrap();
                prop_assert_eq!(product.divide_whole(&b).unwrap(), a.truncate(0).unwrap());
                let rest = a.remainder(&b).unwrap();
                let whole = a.divide_whole(&b).unwrap();
                prop_assert_eq!(whole.multiply(&b).unwrap().add(&rest).unwrap(), a.clone());
            }
            let root = a.clone().absolute().square_root().unwrap();
            let scale = root.scale().unwrap();
            let unit = Decimal::of(1, scale).unwrap();
            let square = |v: &Decimal| v.multiply(v).unwrap();
            prop_assert!(square(&root.add(&unit).unwrap()) > a.clone().absolute(), "{} {}", x, scale);
        }
    }

    #[test]
    fn logarithms_undo_powers(digits in 1..100_000_000u64, scale in 0..6u32) {
        let value = Decimal::of(digits, scale).unwrap();
        let ln = value.ln().unwrap();
        let (back, least) = (ln.exp().unwrap(), Decimal::of(1, 5).unwrap());
        let off = back.subtract(&value).unwrap().absolute().divide(&value).unwrap();
        prop_assert!(off < least, "{} {} {}", value, ln, back);
    }
}
