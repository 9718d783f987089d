//! Texts without their literals.

use terrace_grammar::{Options, Shape, ShapeKind, shape};

fn shaped(sql: &str) -> (String, Shape<'_>) {
    let mut text = String::new();
    let shape = shape(sql, Options::default(), 4_096, &mut text);
    (text, shape)
}

#[test]
fn literals_become_parameters() {
    for (sql, text) in [
        ("SELECT a FROM t WHERE b = 1 AND c='x'", "SELECT a FROM t WHERE b = $1 AND c=$2"),
        ("select  1 ,\n 2.5e3--x\n,/* y */ .5", "select $1 , $2 , $3"),
        ("select $2, 1, 'a'", "select $2, $3, $4"),
        ("select E'a\\'b', $$c$$, b'1', t1.a2, \"x 1\", 'a'\n'b'", "select $1, $2, $3, t1.a2, \"x 1\", $4"),
        ("select -1, a[1:2], a::int", "select -$1, a[$2:$3], a::int"),
        ("select 'a", "select"),
        // Of what stands together nothing becomes one token.
        ("select a$'b', 'c'd, 1.e5'f', $1'g'", "select a$ $2, $3 d, $4 $5, $1 $6"),
        ("", ""),
    ] {
        assert_eq!(shaped(sql).0.trim_end(), text, "{sql}");
    }
    let many = format!("select {}", "1, ".repeat(12));
    assert!(shaped(&many).0.ends_with("$11, $12,"));
}

#[test]
fn literals_have_kinds_values_and_places() {
    let sql = "select 1, 2.5, 'it''s', E'a\\n', $x$y$x$, X'1F', $1";
    let (_, shape) = shaped(sql);
    let found: Vec<(ShapeKind, &str)> = shape.literals.iter().map(|one| (one.kind, one.value.as_ref())).collect();
    assert_eq!(
        found,
        [
            (ShapeKind::Integer, "1"),
            (ShapeKind::Number, "2.5"),
            (ShapeKind::Text, "it's"),
            (ShapeKind::Text, "a\n"),
            (ShapeKind::Text, "y"),
            (ShapeKind::Other, "X'1F'"),
        ]
    );
    assert_eq!(&sql[shape.literals[2].range.clone()], "'it''s'");
    assert_eq!((shape.parameters, shape.statements, shape.whole), (1, 1, true));
}

#[test]
fn statements_are_counted_and_texts_bounded() {
    assert_eq!(shaped("select 1;; select 2; ").1.statements, 2);
    assert_eq!(shaped(" ; ").1.statements, 0);
    assert!(!shaped("select 'a").1.whole);
    let long = "select 1 ".repeat(1_000);
    let (text, shape) = shaped(&long);
    assert!(!shape.whole && text.len() < 4_200);
}
