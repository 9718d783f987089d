use super::text::{Literal, normalise};

fn shape(sql: &str) -> Option<(String, Vec<String>)> {
    let mut shape = String::new();
    let literals = normalise(sql, &mut shape)?;
    let shown = literals.iter().map(|literal| match literal {
        Literal::Number(text) => (*text).to_owned(),
        Literal::Text(text) => format!("'{text}'"),
    });
    let shown = shown.collect();
    Some((shape, shown))
}

#[track_caller]
fn check(sql: &str, expected: &str, literals: &[&str]) {
    let (shape, found) = shape(sql).unwrap();
    assert_eq!((shape.as_str(), found.iter().map(String::as_str).collect::<Vec<_>>()), (expected, literals.to_vec()));
}

#[test]
fn literals_are_taken_out() {
    check("SELECT a FROM t WHERE b = 17 ;\n", "SELECT a FROM t WHERE b = $1", &["17"]);
    check(
        "UPDATE t1 SET a=a+ -5, b='it''s' WHERE c=1.5",
        "UPDATE t1 SET a=a+ -$1, b=$2 WHERE c=$3",
        &["5", "'it's'", "1.5"],
    );
    check("VALUES ('ä', \"1\")", "VALUES ($1, \"1\")", &["'ä'"]);
    check("BEGIN", "BEGIN", &[]);
}

#[test]
fn what_is_not_plain_has_no_shape() {
    for sql in [
        "",
        ";",
        "SELECT 1; SELECT 2",
        "SELECT 1 -- one",
        "SELECT /* one */ 1",
        "SELECT E'a'",
        "SELECT U&'a'",
        "SELECT 'a\\'",
        "SELECT 'a",
        "SELECT \"a",
        "SELECT \"a\"\"b\"",
        "SELECT $$a$$",
        "SELECT $1",
        "SELECT 1e5",
        "SELECT 0x1F",
        "SELECT 1.2.3",
        "SELECT .5",
        "SELECT 1_000",
        "SELECT ä",
        "SELECT aä",
        "SELECT a::int",
        "SELECT '\0'",
    ] {
        assert_eq!(shape(sql), None, "{sql}");
    }
}

#[test]
fn long_texts_have_no_shape() {
    assert!(shape(&format!("SELECT '{}'", "x".repeat(4000))).is_some());
    assert_eq!(shape(&format!("SELECT '{}'", "x".repeat(5000))), None);
    // Nor have those with names that are cut.
    for (name, has) in [("x".repeat(63), true), ("x".repeat(64), false)] {
        assert_eq!(shape(&format!("SELECT {name}")).is_some(), has);
        assert_eq!(shape(&format!("SELECT \"{name}\"")).is_some(), has);
    }
}
