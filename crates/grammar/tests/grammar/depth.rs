//! Deep statements are parsed or refused, on the stack of an ordinary thread, and quickly.

use std::time::Duration;
use terrace_grammar::{Options, parse};

/// The stack of a thread.
const STACK: usize = 2 << 20;
/// Far more than it takes in a build without optimisation, and far less than what grows with the square of the depth.
const LONGEST: Duration = Duration::from_secs(20);

/// One thing in another, so many times. `inner` is written behind what opens, `close` behind that.
fn nested(open: &str, inner: &str, close: &str, count: usize) -> String {
    let (before, open) = open.split_once('|').unwrap_or(("", open));
    format!("SELECT {before}{}{inner}{}", open.repeat(count), close.repeat(count))
}

/// What begins, what stands within, what ends. What stands before a `|` is there once.
const NESTED: &[(&str, &str, &str)] = &[
    ("(", "1", ")"),
    ("CASE WHEN true THEN ", "1", " END"),
    ("CASE ", "1", " WHEN 1 THEN 1 END"),
    ("NOT ", "true", ""),
    ("- ", "a", ""),
    ("@ ", "a", ""),
    ("f(", "1", ")"),
    ("ARRAY[", "1", "]"),
    ("ARRAY[[", "1", "]]"),
    ("(SELECT ", "1", ")"),
    ("(", "SELECT 1", ")"),
    ("a[", "1", "]"),
    ("ROW(", "1", ")"),
    ("EXISTS (SELECT ", "1", ")"),
    ("a IN (", "1", ")"),
    ("CAST(", "1", " AS int)"),
    ("1 + (", "1", ")"),
    ("a BETWEEN (", "1", ") AND 2"),
    ("coalesce(", "1", ")"),
    ("f(1) OVER (ORDER BY ", "1", ")"),
    ("1 FROM (SELECT ", "1", ") AS t"),
    ("1 FROM |(t CROSS JOIN ", "t", ")"),
    ("1 GROUP BY |GROUPING SETS (", "a", ")"),
];

const CHAINED: &[(&str, &str)] = &[
    (" + ", "1"),
    (" OR ", "a"),
    (" AND ", "a"),
    (" || ", "a"),
    ("::", "int"),
    (" COLLATE ", "c"),
    (" IS ", "NULL"),
    (" UNION ", "SELECT 1"),
    (" UNION ALL ", "SELECT 1"),
    (" INTERSECT ", "SELECT 1"),
    (", ", "1"),
];

/// Whether it parses; it is told that there is not enough stack otherwise.
fn parses(sql: String) -> bool {
    let thread = std::thread::Builder::new().stack_size(STACK);
    #[allow(clippy::disallowed_methods)]
    let work = thread.spawn(move || {
        let start = std::time::Instant::now();
        let parsed = parse(&sql, Options::default());
        let state = parsed.map(drop).map_err(|error| error.sqlstate);
        assert!(start.elapsed() < LONGEST, "{} takes {:?}", &sql[..60], start.elapsed());
        match state {
            Ok(()) => true,
            Err("54001") => false,
            Err(state) => panic!("{state}: {}", &sql[..sql.len().min(100)]),
        }
    });
    work.expect("there is a thread").join().expect("it does not panic")
}

#[test]
fn a_thousand_levels_are_parsed() {
    for (open, inner, close) in NESTED {
        assert!(parses(nested(open, inner, close, 1_000)), "{open}");
    }
}

#[test]
fn a_hundred_thousand_levels_are_answered() {
    for (open, inner, close) in NESTED {
        parses(nested(open, inner, close, 100_000));
        // Without what closes them, too.
        let unclosed = format!("SELECT {}", open.repeat(100_000));
        assert!(parse(&unclosed, Options::default()).is_err(), "{open}");
    }
}

#[test]
fn ten_thousand_operators_are_parsed() {
    for (operator, operand) in CHAINED {
        assert!(parses(format!("SELECT 1{}", format!("{operator}{operand}").repeat(10_000))), "{operator}");
    }
    assert!(parses(format!("SELECT 1 FROM t{}", " CROSS JOIN t".repeat(10_000))));
}

#[test]
fn a_hundred_thousand_operators_are_answered() {
    for (operator, operand) in CHAINED {
        parses(format!("SELECT 1{}", format!("{operator}{operand}").repeat(100_000)));
    }
}
