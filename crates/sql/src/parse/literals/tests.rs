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

fn show(sql: &str) -> String {
    let mut statement = crate::parse::parse_one(sql).unwrap().unwrap();
    type_numbers(&mut statement);
    statement.to_string().replace(MARK, "")
}

#[test]
fn numbers_are_typed_where_they_are_values() {
    assert_eq!(show("SELECT 1, -1, 3000000000"), "SELECT CAST(1 AS INT4), CAST(-1 AS INT4), 3000000000");
    assert_eq!(show("SELECT 2.50, -2.5"), "SELECT NUMERIC(3,2) '2.50', NUMERIC(2,1) '-2.5'");
    assert_eq!(show("SELECT 9223372036854775808"), "SELECT NUMERIC(19,0) '9223372036854775808'");
    assert_eq!(show("SELECT 1e300"), "SELECT FLOAT8 '1e300'");
    for kept in [
        "SELECT x FROM t GROUP BY 1 ORDER BY 1 LIMIT 5 OFFSET 2",
        "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) FROM t",
    ] {
        assert_eq!(show(kept), kept);
    }
    assert_eq!(show("SELECT x FROM t ORDER BY x + 1"), "SELECT x FROM t ORDER BY x + CAST(1 AS INT4)");
}
