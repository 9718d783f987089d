use super::*;

#[test]
fn a_text_changes_in_the_places_of_names_only() {
    for (text, kept) in [
        ("(a > 0)", "a > 0"),
        ("((t.a) > 0) AND (\"T\".b = 'x')", "((a) > 0) AND (\"T\".b = 'x')"),
        ("t . a > 0 OR lower(t.\"B c\") = E'\\''", "a > 0 OR lower(\"B c\") = E'\\''"),
        ("a BETWEEN t.b AND t.c", "a BETWEEN b AND c"),
    ] {
        assert_eq!(constraint(text, "t").unwrap(), kept);
    }
    assert_eq!(constraint("a > $1", "t").unwrap_err().state.0, "42P02");
    assert_eq!(constraint("a > (SELECT 1)", "t").unwrap_err().state.0, "0A000");

    let check = |sql: &str| Check { name: "c".into(), sql: sql.into() };
    let renamed = renamed(&[check("\"a\">0 AND A<lower(b)"), check("b > 0")], "a", "x\"y").unwrap();
    assert_eq!(renamed[0].sql, "\"x\"\"y\">0 AND \"x\"\"y\"<lower(b)");
    assert_eq!(renamed[1].sql, "b > 0");
    assert_eq!(columns_named(&renamed[0]), ["b", "x\"y"]);
    assert_eq!(without(&renamed, "b").unwrap().len(), 0);
}
