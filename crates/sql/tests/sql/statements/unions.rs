//! Columns of set operations and of joins by USING: the type that both sides have in common, and what is made of it.
use crate::common::{Client, answers, database, refusals};

async fn client() -> Client {
    let mut c = Client::new(&database().await);
    c.ok(
        "CREATE TABLE t (id int PRIMARY KEY, j bigint, f real, n numeric(8,2), d date, z timestamptz)",
        "CREATE TABLE",
    )
    .await;
    let rows = "(4, -9223372036854775808, 1.5, 1.50, '2020-01-01', '2020-01-01 00:00+00'), (5, NULL, 2, 2, NULL, NULL)";
    c.ok(&format!("INSERT INTO t VALUES {rows}"), "INSERT 0 2").await;
    c
}

/// A query's one column, its values as texts.
async fn texts(c: &mut Client, cases: &[(&str, &[&str])]) {
    for (sql, values) in cases {
        let sql = format!("SELECT x::text FROM ({sql}) AS made(x)");
        c.rows(&sql, values).await;
    }
}

/// Arithmetic with such a column was planned for the first query's type: 1.5 became 2.
#[tokio::test]
async fn n86_arithmetic_with_columns_of_set_operations() {
    let mut c = client().await;
    let big = "(SELECT 1::int2 c0 UNION ALL SELECT 99999999999) q";
    for (sum, values) in [
        ("1 + c0", ["100000000000", "2"]),
        ("1 + nullif(c0, 0)", ["100000000000", "2"]),
        ("1 + coalesce(c0, 0)", ["100000000000", "2"]),
        ("1 + CASE WHEN true THEN c0 END", ["100000000000", "2"]),
        ("abs(c0 - 1)", ["0", "99999999998"]),
        ("c0 & 3", ["1", "3"]),
        ("c0 << 2", ["399999999996", "4"]),
        ("1 + min(c0) OVER (PARTITION BY c0)", ["100000000000", "2"]),
        ("sum(1 + c0) OVER (PARTITION BY c0)", ["100000000000", "2"]),
    ] {
        texts(&mut c, &[(&format!("SELECT {sum} FROM {big}"), &values)]).await;
    }
    let (double, exact) = ("1::int2 c0 UNION ALL SELECT 1.5::float8", "1::int2 c0 UNION ALL SELECT 1.25");
    texts(
        &mut c,
        &[
            (&format!("SELECT 1 + c0 FROM (SELECT {double}) q"), &["2", "2.5"]),
            (&format!("SELECT (SELECT 1 + q.c0 WHERE q.c0 > 1) FROM (SELECT {double}) q"), &["2.5", "NULL"]),
            (&format!("SELECT count(*) FROM (SELECT {double}) q WHERE c0 + 1 > 2"), &["1"]),
            ("SELECT c0 * 2::int8 FROM (SELECT 1 c0 UNION ALL SELECT 1.25::real) q", &["2", "2.5"]),
            (&format!("SELECT 1 - c0 = -0.25 FROM (SELECT {exact}) q"), &["false", "true"]),
            (&format!("SELECT (c0 - 1) / 2 = 0.125 FROM (SELECT {exact}) q"), &["false", "true"]),
            (&format!("SELECT 2 % c0 = 0.75 FROM (SELECT {exact}) q"), &["false", "true"]),
            ("SELECT 3 - c0 - 1 = 0.75 FROM (SELECT NULL c0 UNION ALL SELECT 1.25) q", &["NULL", "true"]),
            ("SELECT 7 / c0 = 2.8 FROM (SELECT NULL c0 UNION ALL SELECT 2.5) q", &["NULL", "true"]),
            (
                &format!("WITH w AS (SELECT {exact}) SELECT a.c0 + b.c0 = 2.5 FROM w a JOIN w b USING (c0)"),
                &["false", "true"],
            ),
            (
                "SELECT c0 + 1 = 2.5 FROM (SELECT 1::int2 c0 UNION SELECT 1.5 INTERSECT SELECT 1.5) q",
                &["false", "true"],
            ),
            (&format!("SELECT c0 = 1.25 OR c0 IN (3, 4) FROM (SELECT {exact}) q"), &["false", "true"]),
            ("SELECT c0 BETWEEN 1.2 AND 1.6 FROM (SELECT 1::int2 c0 UNION ALL SELECT 1.5::real) q", &["false", "true"]),
        ],
    )
    .await;
    refusals(
        &mut c,
        &[
            (&format!("SELECT c0 % 2 FROM (SELECT {double}) q"), "42883"),
            ("SELECT date '2020-01-01' + c0 FROM (SELECT 1 c0 UNION ALL SELECT 1.5) q", "42883"),
            ("SELECT c0 + 1 FROM (SELECT date '2020-01-01' c0 UNION ALL SELECT timestamp '2020-01-01') q", "42883"),
        ],
    )
    .await;
}

#[tokio::test]
async fn n86_types_of_set_operations_of_set_operations() {
    let mut c = client().await;
    for (sql, of) in [
        ("SELECT 1::int2 c0 EXCEPT ALL (SELECT 2::int2 UNION SELECT 1::int8)", "Int64"),
        ("SELECT 1::int2 c0 INTERSECT (SELECT 2 UNION ALL SELECT 1::int8)", "Int64"),
        ("SELECT 1 % nullif(e.c0, 0) FROM (SELECT -2::int2 c0 UNION ALL SELECT 1::int8) e", "Int64"),
        ("SELECT c0 # 1 FROM (SELECT 2::int2 c0 UNION ALL SELECT 1::int8) e", "Int64"),
        ("SELECT position('z' in CASE WHEN false THEN 'a'::text ELSE string_agg('z', ',') END)", "Int32"),
        ("SELECT strpos(coalesce('a'::text, string_agg('z', ',')), 'a')", "Int32"),
    ] {
        assert_eq!(c.columns(sql).await[0].1, of, "{sql}");
        c.run(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
    for sql in [
        "SELECT 1::int2 UNION ALL SELECT 1.5 WHERE NULL::bool EXCEPT SELECT j FROM t",
        "SELECT 1 INTERSECT (SELECT 2 UNION ALL SELECT 1.5)",
    ] {
        assert!(c.columns(sql).await[0].1.starts_with("LargeList"), "{sql}");
    }
    c.rows("SELECT (e.c1 % nullif(2::int2, 0)) FROM (SELECT 1 c1 UNION SELECT 4::int8) e", &["0", "1"]).await;
}

/// A deep expression is typed before the UNION below it.
#[tokio::test]
async fn n86_deep_expressions_over_set_operations() {
    let mut c = client().await;
    let sum = vec!["c0"; 60].join(" + ");
    c.rows(&format!("SELECT {sum} FROM (SELECT 1 c0 UNION ALL SELECT 2) q ORDER BY 1"), &["60", "120"]).await;
    c.rows(&format!("SELECT {sum} FROM (SELECT 1::int2 c0 UNION ALL SELECT 1.5::float8) q"), &["60.0", "90.0"]).await;
}

/// Items of a list that depend on the row are compared one by one, constants in their common type.
#[tokio::test]
async fn n87_items_of_lists_are_compared_as_postgres_does() {
    let mut c = client().await;
    answers(
        &mut c,
        &[
            ("SELECT j IN (NULL::real, 1::real, j + id) FROM t WHERE id = 4", "NULL"),
            ("SELECT j NOT IN (NULL::real, 1::real, j + id) FROM t WHERE id = 4", "NULL"),
            ("SELECT j IN (1::real, j + id) FROM t WHERE id = 4", "false"),
            ("SELECT j NOT IN (1::real, 2, j + id) FROM t WHERE id = 4", "true"),
            ("SELECT j IN (1::real, 2, j) FROM t WHERE id = 4", "true"),
            // An array's items are of one type, also those that depend on the row.
            ("SELECT j = ANY (ARRAY[1::real, j + id]) FROM t WHERE id = 4", "true"),
            ("SELECT j <> ALL (ARRAY[1::real, j + id]) FROM t WHERE id = 4", "false"),
            ("SELECT j IN (f, j + id, n) FROM t WHERE id = 4", "false"),
            ("SELECT f IN (n, 7::float8, 8) FROM t WHERE id = 4", "true"),
            ("SELECT id FROM t WHERE id IN (4::float8, id + 1) ORDER BY 1", "4"),
            ("SELECT id FROM t WHERE 5 IN (id, 7.5::real, 8) ORDER BY 1", "5"),
            // Reals are compared with other numbers as doubles.
            ("SELECT 2147483647 NOT IN (2147483647::int8, 1.5::real, 1::int2)", "true"),
            ("SELECT 2147483647 = ANY (ARRAY[2147483647::int8, 1.5::real])", "false"),
            ("SELECT 2147483648 = ANY (ARRAY[2147483647::int8, 1.5::real])", "true"),
            ("SELECT 0.1::real IN (0.1, 7), 0.1::real IN (0.1::float8, 7), 0.1 IN (0.1::real, 7)", "true|false|false"),
            ("SELECT 0.1::real = ANY (ARRAY[0.1, 7])", "false"),
            ("SELECT date '2020-01-01' IN (d, timestamp '2020-01-01 05:00', z) FROM t WHERE id = 4", "true"),
            ("SELECT j IN ('1', 2.5::real, id) FROM t WHERE id = 4", "false"),
            ("SELECT (id, 1) = ANY (ARRAY[(4, 1), (2, 2)]) FROM t WHERE id = 4", "true"),
        ],
    )
    .await;
    c.fails("SELECT random() IN (1::real, id) FROM t", "0A000").await;
    c.ok("DELETE FROM t WHERE j IN (1::real, j + id)", "DELETE 0").await;
}

#[tokio::test]
async fn n88_types_of_merged_columns() {
    let mut c = client().await;
    c.ok("CREATE TABLE a (k smallint, s text, v varchar(5), c char(5))", "CREATE TABLE").await;
    c.ok("CREATE TABLE b (k bigint, s char(5), v char(5), c varchar(5))", "CREATE TABLE").await;
    c.ok("INSERT INTO a VALUES (1, 'x', 'x', 'x')", "INSERT 0 1").await;
    c.ok("INSERT INTO b VALUES (1, 'x', 'x', 'x')", "INSERT 0 1").await;
    for (sql, of) in [
        ("SELECT k FROM a JOIN (SELECT 1::bigint k) q USING (k)", "Int64"),
        ("SELECT k FROM a LEFT JOIN (SELECT 1::bigint k) q USING (k)", "Int64"),
        ("SELECT k FROM (SELECT 1::bigint k) q RIGHT JOIN a USING (k)", "Int64"),
        ("SELECT k FROM a NATURAL RIGHT JOIN (SELECT 1.5::float8 k) q", "Float64"),
        ("WITH w AS (SELECT 1::int2 k), v AS (SELECT 1::real k) SELECT k FROM w JOIN v USING (k)", "Float32"),
        ("SELECT k FROM (VALUES (1)) q(k) JOIN a USING (k)", "Int32"),
    ] {
        assert_eq!(c.columns(sql).await[0].1, of, "{sql}");
        c.run(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
    // Of a text and a varchar it is of the left one's type.
    c.ok("CREATE TABLE l (v varchar(5))", "CREATE TABLE").await;
    for join in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] {
        for (left, right, is_text) in [("l", "(SELECT 'x'::text v) q", false), ("(SELECT 'x'::text v) q", "l", true)] {
            let sql = format!("SELECT v FROM {left} {join} {right} USING (v)");
            let statement = c.session.prepare(&sql, &[]).await.expect(&sql);
            let field = statement.columns.as_ref().expect("it is a query").field(0).clone();
            assert_eq!(field.metadata().is_empty(), is_text, "{sql}: {field:?}");
        }
    }
    // The blanks of char(n) are no part of a text or varchar.
    answers(
        &mut c,
        &[
            ("SELECT octet_length(s || '!') FROM a RIGHT JOIN b USING (s)", "2"),
            ("SELECT octet_length(s), octet_length(v) FROM a RIGHT JOIN b USING (s, v)", "1|1"),
            ("SELECT k / 2.5::float8 FROM a JOIN (SELECT 1.0::float8 k) q USING (k) WHERE k = 1", "0.4"),
            ("SELECT k / 2 FROM a JOIN (SELECT 1::float8 k) q USING (k) GROUP BY k ORDER BY k", "0.5"),
        ],
    )
    .await;
    c.rows("SELECT (SELECT k FROM t WHERE id = 4) FROM a FULL JOIN b USING (k) GROUP BY k", &["1"]).await;
    // Of chars of two lengths nobody knows how many blanks each had.
    for sql in ["SELECT 'a'::char(3) x UNION ALL SELECT 'a'::char(5)", "SELECT 'a'::char(2) x UNION ALL SELECT 'a'"] {
        c.fails(&format!("SELECT octet_length(x) FROM ({sql}) q"), "0A000").await;
    }
}

/// Two sums of a date had one name (42701).
#[tokio::test]
async fn n91_days_before_and_after() {
    let mut c = client().await;
    answers(
        &mut c,
        &[
            ("SELECT max(d + id), max(d - id) FROM t", "2020-01-05|2019-12-28"),
            ("SELECT min(z + '1 day'::interval) > min(z - '1 day'::interval) FROM t", "true"),
        ],
    )
    .await;
    c.ok("CREATE TABLE x (v varchar(5))", "CREATE TABLE").await;
    c.ok("INSERT INTO x VALUES ('a')", "INSERT 0 1").await;
    answers(&mut c, &[("SELECT coalesce(nullif(v, 'b'), v), nullif(v, v) FROM x", "a|NULL")]).await;
}
