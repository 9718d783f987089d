use super::*;

#[test]
fn semicolons_end_statements_and_nothing_else() {
    for (text, statement) in [
        ("SELECT 1; SELECT 2;", Some("SELECT 1;")),
        ("SELECT ';' ;x", Some("SELECT ';' ;")),
        ("SELECT 'it''s; ' || \"a;b\";", Some("SELECT 'it''s; ' || \"a;b\";")),
        ("SELECT E'\\';' ;", Some("SELECT E'\\';' ;")),
        ("SELECT '\\';", Some("SELECT '\\';")),
        ("SELECT name'a\\';", Some("SELECT name'a\\';")),
        ("-- a;\nSELECT 1;", Some("-- a;\nSELECT 1;")),
        ("/* ; /* ; */ ; */ SELECT 1;", Some("/* ; /* ; */ ; */ SELECT 1;")),
        ("SELECT $$a;b$$, $x$;$$;$x$;", Some("SELECT $$a;b$$, $x$;$$;$x$;")),
        ("SELECT $1; x", Some("SELECT $1;")),
        ("SELECT 'ä;", None),
        ("SELECT 1", None),
        ("", None),
    ] {
        assert_eq!(statement_end(text).map(|end| &text[..end]), statement, "{text}");
    }
    assert!(within_quotes("SELECT 'a") && within_quotes("/* x") && within_quotes("SELECT $$"));
    assert!(!within_quotes("SELECT 1") && !within_quotes("-- it's"));
}
