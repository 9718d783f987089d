use super::*;

#[test]
fn digits_of_numbers() {
    for (text, want) in [
        ("2.5", Some((2, 1))),
        ("0.05", Some((2, 2))),
        (".5", Some((1, 1))),
        ("5.", Some((1, 0))),
        ("1e3", Some((4, 0))),
        ("1.25e1", Some((3, 1))),
        ("12e-3", Some((3, 3))),
        ("0.001e2", Some((1, 1))),
        ("0.0", Some((1, 1))),
        ("007.10", Some((3, 2))),
        ("1e38", None),
        ("1e-39", None),
        ("1e99999999999999999999", None),
    ] {
        assert_eq!(digits(text), want, "{text}");
    }
}
