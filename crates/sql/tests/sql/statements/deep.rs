//! Deep statements on a small stack: a test's thread has 2 MiB, as a thread of a program's that embeds Terrace may
//! have. (What overflows a stack ends the whole run of tests.)
use crate::common::{Client, database};

async fn table() -> Client {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, x int, s text)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 1, 'a'), (2, NULL, 'b')", "INSERT 0 2").await;
    c
}

fn nested(open: &str, core: &str, close: &str, n: usize) -> String {
    format!("{}{core}{}", open.repeat(n), close.repeat(n))
}

/// Expressions of x, an integer, whose value is that of x where x is 1.
fn deep() -> Vec<String> {
    vec![
        nested("(", "x", ")", 400),
        nested("abs(", "x", ")", 60),
        nested("coalesce(NULL, ", "x", ")", 60),
        nested("CASE WHEN x = 1 THEN ", "x", " END", 60),
        nested("CASE WHEN x = 2 THEN 1 ELSE ", "x", " END", 60),
        nested("", "x", "::text::int", 50),
        nested("- ", "x", "", 60),
        nested("", "x", " + 0", 200),
        nested("0 + (", "x", ")", 60),
        nested("(", "x", " IS NOT NULL)::int", 40),
        nested("(SELECT ", "1", ")", 8),
    ]
}

#[tokio::test]
async fn f7_deep_expressions_on_a_small_stack() {
    let mut c = table().await;
    for expr in deep() {
        c.rows(&format!("SELECT {expr} FROM t WHERE id = 1"), &["1"]).await;
        c.rows(&format!("SELECT id FROM t WHERE {expr} = 1 AND id = 1"), &["1"]).await;
        c.run(&format!("EXPLAIN SELECT {expr} FROM t")).await.expect("it is explained");
        c.ok(&format!("UPDATE t SET x = {expr} WHERE id = 1"), "UPDATE 1").await;
        c.ok(&format!("DELETE FROM t WHERE {expr} = 1 AND id = 3"), "DELETE 0").await;
    }
    c.rows("SELECT id, x FROM t", &["1|1", "2|NULL"]).await;
}

#[tokio::test]
async fn f7_deep_queries_on_a_small_stack() {
    let mut c = table().await;
    c.rows(&nested("SELECT * FROM (", "SELECT id FROM t", ") s", 40), &["1", "2"]).await;
    c.rows(&nested("", "SELECT 1", " UNION ALL SELECT 1", 99), &["1"; 100]).await;
    c.rows(&nested("WITH a AS (", "SELECT id FROM t", ") SELECT id FROM a", 8), &["1", "2"]).await;
    c.rows(
        &format!("SELECT 1 FROM t WHERE id = 1{}", nested(" AND id IN (SELECT id FROM t WHERE true", "", ")", 8)),
        &["1"],
    )
    .await;
    let joins: String = (0..20).map(|n| format!(" JOIN (VALUES (1)) v{n}(y) ON t.id = v{n}.y")).collect();
    c.rows(&format!("SELECT t.id FROM t{joins}"), &["1"]).await;
}

#[tokio::test]
async fn f7_deep_statements_that_are_kept() {
    let mut c = table().await;
    let sum = nested("", "x", " + 0", 150);
    c.ok(&format!("PREPARE p AS SELECT {sum} FROM t ORDER BY id"), "PREPARE").await;
    c.rows("EXECUTE p", &["1", "NULL"]).await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok(&format!("DECLARE k CURSOR FOR SELECT {sum} FROM t ORDER BY id"), "DECLARE CURSOR").await;
    c.rows("FETCH 1 FROM k", &["1"]).await;
    // What is left of it is dropped unread.
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.ok(&format!("CREATE TABLE checked (x int CHECK ({sum} < 10))"), "CREATE TABLE").await;
    c.ok("INSERT INTO checked VALUES (1)", "INSERT 0 1").await;
    c.fails("INSERT INTO checked VALUES (11)", "23514").await;
    c.fails("UPDATE checked SET x = 12", "23514").await;
    let deeper = nested("abs(", "x", ")", 90);
    c.ok(&format!("ALTER TABLE checked ADD CONSTRAINT positive CHECK ({deeper} > 0)"), "ALTER TABLE").await;
    c.fails("INSERT INTO checked VALUES (0)", "23514").await;
    c.ok("INSERT INTO checked VALUES (-1)", "INSERT 0 1").await;
    c.ok("DEALLOCATE p", "DEALLOCATE").await;
}

/// Just beyond a limit, and far beyond it, the error says so at once.
#[tokio::test]
async fn f7_what_is_beyond_a_limit_is_refused() {
    let mut c = table().await;
    for n in [1_100, 20_000] {
        for sql in [
            format!("SELECT {} FROM t", nested("(", "x", ")", n)),
            format!("SELECT {} FROM t", nested("abs(", "x", ")", n)),
            format!("SELECT {} FROM t", nested("CASE WHEN x = 1 THEN ", "x", " END", n)),
            format!("SELECT {} FROM t", nested("(", "x", " IS TRUE)", n)),
            format!("SELECT {} FROM t", nested("", "x", " + 1", n)),
            format!("SELECT {} FROM t", nested("", "s", " || s", n)),
            format!("SELECT {} FROM t", nested("", "x", " ISNULL", n)),
            format!("UPDATE t SET x = {}", nested("- ", "x", "", n)),
            format!("DELETE FROM t WHERE x = {}", nested("(SELECT ", "1", ")", n)),
            format!("CREATE TABLE d (x int CHECK ({} > 1))", nested("", "x", " + 1", n)),
        ] {
            c.fails(&sql, "54001").await;
        }
    }
    c.rows(&nested("", "SELECT 1", " UNION SELECT 1", 700), &["1"]).await;
    c.fails(&nested("", "SELECT 1", " UNION SELECT 1", 20_000), "54001").await;
    c.fails(&format!("SELECT {} FROM t", nested("(SELECT ", "1", ")", 11)), "54001").await;
    c.fails(&format!("SELECT {} FROM t", nested("(x + random() * ", "1", ")", 120)), "54001").await;
}

/// Conditions beside each other, wherever the planner takes them.
#[tokio::test]
async fn f8_long_conditions() {
    let mut c = table().await;
    let all = |of: &str, n: usize| (0..n).map(|i| format!("{of} <> {}", i + 10)).collect::<Vec<_>>().join(" AND ");
    c.rows(&format!("SELECT count(*) FROM t WHERE {}", all("x", 20_000)), &["1"]).await;
    c.fails(&format!("SELECT count(*) FROM t WHERE {}", all("x", 20_001)), "54001").await;
    let (x, id, sum) = (all("x", 4_000), all("id", 4_000), all("a.x + b.id", 4_000));
    c.rows(&format!("SELECT count(*) FROM (VALUES (1)) v (x) WHERE {x}"), &["1"]).await;
    c.rows(&format!("SELECT x FROM t GROUP BY x HAVING {x}"), &["1"]).await;
    c.rows(&format!("SELECT count(*) FROM (SELECT * FROM t WHERE {x}) q WHERE {id}"), &["1"]).await;
    c.rows(&format!("SELECT count(*) FROM t a JOIN t b ON {sum}"), &["2"]).await;
    c.rows(&format!("SELECT count(*) FROM t a LEFT JOIN t b ON {sum}"), &["3"]).await;
    c.rows(&format!("SELECT count(*) FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE {sum})"), &["1"]).await;
    c.rows(&format!("SELECT id FROM t WHERE id IN (SELECT x FROM t WHERE {id}) AND {x}"), &["1"]).await;
    c.ok(&format!("CREATE VIEW w AS SELECT id, x FROM t WHERE {x}"), "CREATE VIEW").await;
    c.rows(&format!("SELECT count(*) FROM w WHERE {id}"), &["1"]).await;
    c.ok(&format!("UPDATE t SET s = s WHERE {x}"), "UPDATE 1").await;
}

/// As many tables as one FROM takes; more of them in subqueries.
#[tokio::test]
async fn many_tables_are_joined() {
    let mut c = table().await;
    let listed = |name: &str, count: usize| {
        let tables: Vec<String> = (0..count).map(|n| format!("t {name}{n}")).collect();
        let ids: Vec<String> = (0..count).map(|n| format!("{name}{n}.id = 1")).collect();
        (tables.join(", "), ids.join(" AND "))
    };
    let (tables, ids) = listed("a", 100);
    c.rows(&format!("SELECT count(*) FROM {tables} WHERE {ids}"), &["1"]).await;
    c.fails(&format!("SELECT 1 FROM {tables}, t"), "54001").await;
    let joins: String = (1..=100).map(|n| format!(" JOIN t a{n} USING (id)")).collect();
    c.fails(&format!("SELECT 1 FROM t{joins}"), "54001").await;
    c.fails(&format!("UPDATE t SET x = 1 FROM {tables}"), "54001").await;
    // More joins within each other than Tokio has a task go on without a yield.
    let ((inner, one), (outer, other)) = (listed("a", 70), listed("b", 66));
    let sql = format!("SELECT count(*) FROM (SELECT 1 AS y FROM {inner} WHERE {one}) s, {outer} WHERE {other}");
    c.rows(&sql, &["1"]).await;
}

/// Chunks of deep expressions give the values that the expressions have.
#[tokio::test]
async fn f7_chunks_of_deep_expressions() {
    let mut c = table().await;
    c.ok(
        "CREATE TABLE v (id int PRIMARY KEY, a int, b bigint, n numeric(8,2), f float8, s text, z timestamptz)",
        "CREATE TABLE",
    )
    .await;
    let rows =
        "INSERT INTO v VALUES (1, 2, 3, 4.25, 0.5, 'q', '2020-01-01 00:00:00+00'), (2, NULL, 3, NULL, 1, NULL, NULL)";
    c.ok(rows, "INSERT 0 2").await;
    let of = |expr: String| format!("SELECT {expr} FROM v ORDER BY id");
    c.rows(&of(nested("", "a", " + b", 50)), &["152", "NULL"]).await;
    c.rows(&of(nested("", "n", " + a", 50)), &["104.25", "NULL"]).await;
    c.rows(&of(nested("", "f", " * 2", 40)), &["549755813888.0", "1099511627776.0"]).await;
    c.rows(&of(nested("", "s", " || a", 30)), &[&format!("q{}", "2".repeat(30)), "NULL"]).await;
    c.rows(&of(nested("upper(lower(", "s", "))", 40)), &["Q", "NULL"]).await;
    c.rows(&of(nested("coalesce(NULL, upper(", "s", "))", 30)), &["Q", "NULL"]).await;
    // A branch that is not taken is not evaluated.
    c.rows(&of(format!("CASE WHEN a = 2 THEN 0 ELSE {} END", nested("", "1 / (a - 2)", " + 1", 40))), &["0", "NULL"])
        .await;
    c.fails(&of(nested("", "1 / (a - 2)", " + 1", 40)), "22012").await;
    c.fails(&of(nested("", "a", " * 1000000", 40)), "22003").await;
    // Over aggregates, groups, windows, parameters and the outer query's columns.
    c.rows(&format!("SELECT {} FROM v", nested("", "sum(a)", " + count(b)", 40)), &["82"]).await;
    let long = nested("", "b", " + 1", 40);
    c.rows(&format!("SELECT {long}, count(*) FROM v GROUP BY {long}"), &["43|2"]).await;
    c.rows(&format!("SELECT {long} FROM v GROUP BY b HAVING {long} = 43"), &["43"]).await;
    c.rows(&of(nested("", "row_number() OVER (ORDER BY id)", " + 1", 40)), &["41", "42"]).await;
    c.rows(
        &format!(
            "SELECT id FROM v WHERE EXISTS (SELECT 1 FROM t WHERE {} = t.id + 40)",
            nested("", "v.id", " + 1", 40)
        ),
        &["1", "2"],
    )
    .await;
    let statement = c.session.prepare(&of(nested("", "a", " + $1", 40)), &[]).await.expect("it is planned");
    let rows = c.rows_of(&statement, vec![terrace_engine::Datum::Int4(2)]).await.expect("it runs");
    assert_eq!(rows, ["82", "NULL"]);
    // Two that differ only far down are two.
    let (one, two) = (nested("", "a", " + 1", 40), nested("", "b", " + 1", 40));
    c.rows(&of(format!("{one}, {two}")), &["42|43", "NULL|43"]).await;
}

/// A default is evaluated by statements that are not deep themselves. (It overflowed their stack.)
#[tokio::test]
async fn n114_deep_defaults_on_a_small_stack() {
    let mut c = table().await;
    for (n, open, close) in
        [(28, "abs(", ")"), (28, "CASE WHEN true THEN ", " END"), (10, "- (", ")"), (28, "", " + 0")]
    {
        let default = |n: usize| nested(open, "1", close, n);
        c.ok(&format!("CREATE TABLE d (a int, b int DEFAULT {})", default(n)), "CREATE TABLE").await;
        c.ok("INSERT INTO d (a) VALUES (1)", "INSERT 0 1").await;
        c.ok("INSERT INTO d (a) SELECT 2", "INSERT 0 1").await;
        c.ok("UPDATE d SET b = DEFAULT", "UPDATE 2").await;
        c.run("EXPLAIN ANALYZE UPDATE d SET b = DEFAULT").await.expect("it is explained");
        c.rows("SELECT abs(b) FROM d", &["1", "1"]).await;
        c.fails(&format!("CREATE TABLE e (a int DEFAULT {})", default(900)), "54001").await;
        c.fails(&format!("ALTER TABLE d ALTER COLUMN a SET DEFAULT {}", default(60)), "54001").await;
        c.fails(&format!("ALTER TABLE d ADD COLUMN e int DEFAULT {}", default(60)), "54001").await;
        c.ok("DROP TABLE d", "DROP TABLE").await;
    }
}
