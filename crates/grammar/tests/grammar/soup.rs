//! Any text at all: nothing panics, and what is told is in order.

use proptest::prelude::*;
use terrace_grammar::{Options, parse};

const WORDS: &[&str] = &[
    "select",
    "from",
    "where",
    "group",
    "by",
    "order",
    "union",
    "all",
    "with",
    "as",
    "insert",
    "into",
    "values",
    "update",
    "set",
    "delete",
    "returning",
    "on",
    "conflict",
    "do",
    "nothing",
    "join",
    "left",
    "using",
    "case",
    "when",
    "then",
    "else",
    "end",
    "not",
    "null",
    "is",
    "in",
    "like",
    "escape",
    "between",
    "and",
    "or",
    "any",
    "array",
    "row",
    "cast",
    "over",
    "partition",
    "rows",
    "interval",
    "timestamp",
    "time",
    "zone",
    "at",
    "t",
    "a",
    "\"B\"",
    "u&\"a\"",
    "uescape",
    "'x'",
    "e'\\n'",
    "u&'\\0041'",
    "$$x$$",
    "b'1'",
    "1",
    "1.5",
    "$1",
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    ":",
    ".",
    "..",
    "::",
    ":=",
    "=>",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "<",
    ">",
    "=",
    "<>",
    "||",
    "~",
    "@",
    "operator",
    "grouping",
    "sets",
    "cube",
    "lateral",
    "only",
    "limit",
    "offset",
    "fetch",
    "first",
    "for",
    "default",
    "exists",
    "extract",
    "trim",
    "substring",
    "similar",
    "to",
    "create",
    "table",
    "int",
    "primary",
    "key",
    "check",
    "references",
    "alter",
    "column",
    "add",
    "drop",
    "index",
    "sequence",
    "view",
    "begin",
    "commit",
    "copy",
    "stdin",
    "explain",
    "analyze",
    "set",
    "show",
    "declare",
    "cursor",
    "vacuum",
    "role",
    "grant",
    "comment",
    "é",
    "\\",
    "{",
    "$",
    "'",
    "\"",
    "/*",
    "*/",
    "--",
    "\n",
];

fn check(sql: &str, options: Options) {
    match parse(sql, options) {
        Ok(all) => {
            let mut end = 0;
            for parsed in &all {
                assert!(parsed.range.start >= end && parsed.range.start < parsed.range.end, "{sql}");
                end = parsed.range.end;
                assert!(sql.get(parsed.range.clone()).is_some(), "{sql}");
            }
            assert!(end <= sql.len());
        }
        Err(error) => {
            let at = error.at.unwrap_or(0) as usize;
            assert!(at <= sql.len() && sql.is_char_boundary(at), "{sql}: {error:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn words_in_any_order(words in prop::collection::vec(prop::sample::select(WORDS), 0..30), joined in any::<bool>()) {
        let sql = words.join(if joined { "" } else { " " });
        check(&sql, Options::default());
        check(&sql, Options { standard_conforming_strings: false });
    }

    #[test]
    fn queries_with_words_in_them(words in prop::collection::vec(prop::sample::select(WORDS), 0..20)) {
        check(&format!("select {} from t", words.join(" ")), Options::default());
    }

    #[test]
    fn any_text(sql in "\\PC*") {
        check(&sql, Options::default());
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&String::from_utf8_lossy(&bytes), Options { standard_conforming_strings: false });
    }
}
