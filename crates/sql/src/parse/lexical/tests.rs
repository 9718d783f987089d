use super::tokenize;
use datafusion::sql::sqlparser::tokenizer::Token;

/// The texts of a text's statements.
fn split(sql: &str) -> terrace_engine::Result<Vec<&str>> {
    Ok(crate::parse::parsed(sql)?.iter().map(|parsed| &sql[parsed.range.clone()]).collect())
}

/// The string literals of a text.
fn strings(sql: &str) -> Vec<String> {
    let string = |token| match token {
        Token::SingleQuotedString(text) => Some(text),
        _ => None,
    };
    tokenize(sql).unwrap().into_iter().filter_map(|t| string(t.token)).collect()
}

fn state(sql: &str) -> &'static str {
    tokenize(sql).unwrap_err().state.0
}

/// Statements are cut from the source: byte for byte, whatever lies before and between.
#[test]
fn p1_statements_are_ranges_of_the_source() {
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
            assert_eq!(split(&sql).unwrap(), [first.trim_ascii(), second.trim_ascii()], "{sql}");
            let sql = format!("{first};{second}");
            assert_eq!(split(&sql).unwrap(), [first, second], "{sql}");
        }
    }
    assert!(split(" ; -- x ;\n /* ; */ ").unwrap().is_empty());
}

#[test]
fn p1_a_literal_is_its_value() {
    for (sql, value) in [
        (r"E'a\\b'", r"a\b"),
        (r"E'it\'s'", "it's"),
        (r"E'it''s'", "it's"),
        (r"E'\\'", r"\"),
        (r"'\'", r"\"),
        (r"'it''s\'", r"it's\"),
        (r"$$it's \ $$", r"it's \ "),
        (r"$x$a$$b$x$", "a$$b"),
        (r"$$$a$$", "$a"),
        (r"U&'d\0061t\\a''\+01F600'", "dat\\a'\u{1f600}"),
        ("'a'\n'b'", "ab"),
        ("'a' -- x\n\t'b'\r\n'''c'", "ab'c"),
    ] {
        assert_eq!(strings(&format!("SELECT {sql}")), [value], "{sql}");
    }
    // Not continued: on the same line, behind a comment of another kind, after another kind of string.
    for sql in ["'a' 'b'", "'a' /* \n */ 'b'", "E'a'\n'b'", "$$a$$\n'b'"] {
        assert_eq!(strings(sql), ["a", "b"], "{sql}");
    }
}

#[test]
fn p1_what_is_read_otherwise_is_refused() {
    for (sql, expected) in [
        ("U&'d!0061' UESCAPE '!'", "0A000"),
        ("U&\"d\\0061\"", "0A000"),
        ("B'101'", "0A000"),
        ("X'1f'", "0A000"),
        ("N'a'", "0A000"),
        ("0x1F", "42601"),
        ("1_000", "42601"),
        ("1.5_0", "42601"),
        ("$1_0", "42601"),
        ("1L", "42601"),
        ("$1$ x $1$", "42601"),
        ("a >-- b ; c\n 1", "42601"),
        ("a -/* b */ 1", "42601"),
        ("\"\"", "42601"),
        ("E'\\0'", "42601"),
        ("E'\\xff'", "42601"),
        ("E'\\ud800'", "42601"),
        ("'a", "42601"),
    ] {
        assert_eq!(state(sql), expected, "{sql}");
    }
    assert!(tokenize("u & \"x\"").is_ok() && tokenize("u&x").is_ok());
}

#[test]
fn p3_signs_end_operators() {
    let shown = |sql: &str| tokenize(sql).unwrap().iter().map(|t| t.token.to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(shown("a>=-1"), "a >= - 1");
    assert_eq!(shown("a<>-1"), "a <> - 1");
    assert_eq!(shown("a>-+1"), "a > - + 1");
    assert_eq!(shown("a-+1"), "a - + 1");
    assert_eq!(shown("a||-1"), "a ||- 1");
}

/// Names have 63 bytes, of whole characters.
#[test]
fn r7_long_names_are_cut() {
    let names = |sql: &str| {
        let word = |token| match token {
            Token::Word(word) => Some(word.value),
            _ => None,
        };
        tokenize(sql).unwrap().into_iter().filter_map(|t| word(t.token)).collect::<Vec<String>>()
    };
    let (long, cut, wide) = ("x".repeat(80), "x".repeat(63), "é".repeat(40));
    assert_eq!(
        names(&format!("{long} \"{long}\" \"{wide}\" {cut}")),
        [cut.clone(), cut.clone(), "é".repeat(31), cut.clone()]
    );
}
