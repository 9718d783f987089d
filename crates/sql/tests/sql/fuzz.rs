//! SQL text that nobody meant: statements put together and broken at random. No panic, no hang; a session goes on after
//! each.
//!
//! `TERRACE_FUZZ_SEED` and `TERRACE_FUZZ_RUNS` repeat or prolong a run; a failure names its seed.

use crate::common::*;
use rand::prelude::*;
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// What statements are made of. Each is also a statement, or a part of one, of its own.
const PARTS: &[&str] = &[
    "SELECT * FROM t",
    "SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > 1 ORDER BY 2 DESC LIMIT 3 OFFSET 1",
    "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a LEFT JOIN t x ON x.a = u.b WHERE t.a IN (SELECT a FROM u)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
    "SELECT CASE WHEN a > 1 THEN 'x' ELSE NULL END, a::text || 'y', CAST('1' AS int), -a, NOT (a = 1) FROM t",
    "SELECT row_number() OVER (PARTITION BY b ORDER BY a) FROM t",
    "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) v(x, y)",
    "SELECT 1 UNION SELECT 2 EXCEPT SELECT 3 INTERSECT SELECT 4",
    "SELECT * FROM generate_series(1, 10) g",
    "SELECT relname FROM pg_catalog.pg_class WHERE relname OPERATOR(pg_catalog.~) '^(t)$' COLLATE pg_catalog.default",
    "INSERT INTO t (a, b) VALUES (7, 'seven'), (DEFAULT, NULL)",
    "INSERT INTO t SELECT a + 1000, b FROM t",
    "UPDATE t SET b = b || '!', a = a + 1 WHERE a BETWEEN 1 AND 3",
    "DELETE FROM t USING u WHERE t.a = u.a",
    "CREATE TABLE n (a int PRIMARY KEY, b varchar(3) DEFAULT 'x' NOT NULL, c timestamp, UNIQUE (b, c))",
    "CREATE UNIQUE INDEX i ON t (b, a DESC)",
    "DROP TABLE IF EXISTS n",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "COMMIT",
    "ROLLBACK",
    "SET statement_timeout = '1s'",
    "SHOW ALL",
    "EXPLAIN SELECT * FROM t WHERE a = 1",
    "COPY t (a, b) TO STDOUT WITH (FORMAT csv, HEADER true, FORCE_QUOTE *, DELIMITER ';', NULL '-')",
    "CREATE USER x WITH ENCRYPTED PASSWORD 'p' NOSUPERUSER",
    "ALTER ROLE x LOGIN",
];

const TOKENS: &[&str] = &[
    "(",
    ")",
    ",",
    ";",
    "*",
    "'",
    "\"",
    "$1",
    "$$",
    "--",
    "/*",
    "*/",
    "::",
    "||",
    "=",
    "<>",
    "<",
    "->",
    "~",
    "[",
    "]",
    ".",
    "E'\\x'",
    "U&'\\0041'",
    "NULL",
    "1e400",
    "9223372036854775808",
    "-9223372036854775808",
    "0x7f",
    "1.5.2",
    "'2024-02-30'::timestamp",
    "interval '1 day'",
    "int4",
    "ANY",
    "ALL",
    "ARRAY[1,2]",
    "EXISTS",
    "LATERAL",
    "FOR UPDATE",
    "RETURNING *",
    "ON CONFLICT DO NOTHING",
    "\u{0}",
    "ü",
    "\u{202e}",
    "x'ff'",
    "TRUE",
    "DEFAULT",
    "now()",
    "pg_catalog.",
    "public.",
    "OFFSET -1",
    "LIMIT NULL",
    "AS",
    "ROW(1,2)",
];

fn words(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}

/// A statement that is a little, or very, wrong.
fn statement(rng: &mut ChaCha8Rng) -> String {
    let mut all = words(PARTS.choose(rng).unwrap());
    for _ in 0..rng.random_range(0..5) {
        let at = rng.random_range(0..=all.len());
        match rng.random_range(0..6) {
            0 if at < all.len() => drop(all.remove(at)),
            1 => all.insert(at, format!("{} ", TOKENS.choose(rng).unwrap())),
            2 if at < all.len() => all[at] = format!("{} ", TOKENS.choose(rng).unwrap()),
            3 => {
                let other = words(PARTS.choose(rng).unwrap());
                let from = rng.random_range(0..other.len());
                let until = rng.random_range(from..=other.len());
                all.splice(at..at, other[from..until].iter().cloned());
            }
            4 => all.insert(at, format!("({}) ", PARTS.choose(rng).unwrap())),
            5 if at < all.len() => {
                let nested = rng.random_range(1..300);
                all[at] = format!("{}{}{} ", "(".repeat(nested), all[at].trim(), ")".repeat(nested));
            }
            _ => {}
        }
    }
    let mut text: String = all.concat();
    if rng.random_bool(0.2) && !text.is_empty() {
        let cut = text.floor_char_boundary(rng.random_range(0..text.len()));
        text.truncate(cut);
    }
    text
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(otherwise)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_statements_break_nothing() {
    let (seed, runs) = (number("TERRACE_FUZZ_SEED", 1), number("TERRACE_FUZZ_RUNS", 400));
    let db = database().await.limit_memory(64 << 20);
    let mut client = Client::new(&db);
    for sql in ["CREATE TABLE t (a int PRIMARY KEY, b text)", "CREATE TABLE u (a int, b int)"] {
        client.run(sql).await.unwrap();
    }
    client.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)").await.unwrap();
    client.run("INSERT INTO u VALUES (1, 1), (2, NULL)").await.unwrap();
    let mut internal = vec![];
    for run in seed..seed + runs {
        let sql = statement(&mut ChaCha8Rng::seed_from_u64(run));
        let shown = format!("seed {run}: {sql:?}");
        let _ = client.session.split(&sql);
        // COPY's outcomes are for the wire.
        if sql.to_ascii_lowercase().contains("copy") {
            let _ = client.session.prepare(&sql, &[]).await;
            continue;
        }
        let done = tokio::time::timeout(Duration::from_secs(20), client.run_loosely(&sql)).await;
        let reply = done.unwrap_or_else(|_| panic!("it hangs: {shown}"));
        if let Err(error) = reply
            && error.state.0 == "XX000"
        {
            internal.push(format!("{shown}: {error}"));
        }
        let _ = client.run("ROLLBACK").await;
        client.rows("SELECT 1", &["1"]).await;
    }
    for line in &internal {
        println!("internal error: {line}");
    }
    assert!(internal.len() as u64 * 50 <= runs, "too many internal errors: {} of {runs}", internal.len());
}
