//! What is told from tokens alone.

use terrace_grammar::{Options, cut_names, name_of, parse, statement_end, token_end, within_quotes, without_parens};

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
        ("SELECT 1a, \"\", ä;", Some("SELECT 1a, \"\", ä;")),
        ("SELECT E'\\u00;', \"\";x", Some("SELECT E'\\u00;', \"\";")),
        ("SELECT 'ä;", None),
        ("SELECT 1", None),
        ("", None),
    ] {
        assert_eq!(statement_end(text).map(|end| &text[..end]), statement, "{text}");
    }
    assert!(within_quotes("SELECT 'a") && within_quotes("/* x") && within_quotes("SELECT $$"));
    assert!(!within_quotes("SELECT 1") && !within_quotes("-- it's") && !within_quotes("SELECT 1a"));
}

/// The texts of a text's statements.
fn split(sql: &str) -> Vec<&str> {
    let all = parse(sql, Options::default()).expect(sql);
    all.iter().map(|parsed| &sql[parsed.range.clone()]).collect()
}

/// Statements are cut from the source: byte for byte, whatever lies before and between.
#[test]
fn statements_are_ranges_of_the_source() {
    let parts = [
        "SELECT 1",
        "SELECT E'a\\\\b'",
        "SELECT E'it\\'s;'",
        "SELECT E'\\\\' or '; --'",
        "SELECT $$;$$",
        "SELECT $a$;$$;$a$",
        "SELECT 'é;ü', \"ö;\"\"x\"",
        "SELECT U&'\\0061;'",
        "SELECT\t1 -- ;'\r\n + 2",
        "SELECT 1\r\n, /* ; /* ' */ ; */ '\u{1f600}'",
        "SELECT 'a\nb\r\n;c'",
        "SELECT 'tab\there' \u{a0}",
    ];
    for first in parts {
        for second in parts {
            let sql = format!(" ;; {first};\r\n{second} ; \n");
            // White space at an end goes, but only what PostgreSQL takes for such.
            assert_eq!(split(&sql), [first.trim_ascii(), second.trim_ascii()], "{sql}");
            let sql = format!("{first};{second}");
            assert_eq!(split(&sql), [first, second], "{sql}");
        }
    }
    assert!(split(" ; -- x ;\n /* ; */ ").is_empty());
}

#[test]
fn names_are_read_alone() {
    let shown = |text: &str| name_of(text).map(|name| name.shown());
    assert_eq!(shown("A.b"), Some("a.b".into()));
    assert_eq!(shown("\"A.b\" . select"), Some("A.b.select".into()));
    for none in ["", "a.", ".a", "a b", "1", "'a'", "a.b.", "\"a"] {
        assert_eq!(shown(none), None, "{none}");
    }
    assert_eq!(token_end("a.\"b c\" + 1", 2), 7);
}

#[test]
fn parentheses_around_all_are_taken_off() {
    for (text, bare) in
        [("((a > 0))", "a > 0"), ("(a) + (b)", "(a) + (b)"), ("(( a )+(b))", "( a )+(b)"), ("a", "a"), ("()", "()")]
    {
        assert_eq!(without_parens(text), bare);
    }
}

#[test]
fn long_names_are_cut() {
    let long = "ä".repeat(40);
    let cuts = cut_names(&format!("SELECT \"{long}\" AS b, 'no name at all, however long it is, is cut in a string'"));
    assert_eq!(cuts.len(), 1);
    assert_eq!((cuts[0].written.as_str(), cuts[0].kept.len()), (long.as_str(), 62));
    assert!(cut_names("SELECT 1").is_empty());
}
