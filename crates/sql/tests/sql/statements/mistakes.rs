//! Mistakes have PostgreSQL's codes, and what is not PostgreSQL's is refused.
use crate::common::{Client, database};

async fn client() -> Client {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE").await;
    c.ok("CREATE TABLE s (id int, amount int)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 'one'), (2, 'two')", "INSERT 0 2").await;
    c.ok("INSERT INTO s VALUES (1, 10), (2, 20)", "INSERT 0 2").await;
    c
}

#[tokio::test]
async fn n30_mistakes_have_postgresql_codes() {
    let mut c = client().await;
    for (sql, state) in [
        ("DELETE FROM t WHERE id", "42804"),
        ("SELECT id FROM t ORDER BY 3", "42P10"),
        ("SELECT count(*) FROM t GROUP BY 3", "42P10"),
        ("SELECT id FROM t LIMIT -1", "2201W"),
        ("SELECT id FROM t OFFSET -1", "2201X"),
        ("SELECT DISTINCT ON (v) id FROM t ORDER BY id", "42P10"),
        ("SELECT t.id FROM t AS a", "42P01"),
        ("SELECT nosuch.id", "42P01"),
        ("SELECT t.nosuch FROM t", "42703"),
        ("SELECT * FROM t JOIN t ON true", "42712"),
        ("WITH a AS (SELECT 1), a AS (SELECT 2) SELECT 1", "42712"),
        ("SELECT count(*) OVER nosuch FROM t", "42704"),
        ("SELECT 1::nosuch", "42704"),
        ("SELECT '1'::xml", "0A000"),
        ("SELECT id IN (SELECT id, amount FROM s) FROM t", "42601"),
        ("SELECT id FROM t WHERE (id, 10) IN (SELECT id FROM s)", "42601"),
        ("SELECT id FROM t WHERE (id, 10) IN (SELECT id, amount, 1 FROM s)", "42601"),
    ] {
        c.fails(sql, state).await;
    }
}

#[tokio::test]
async fn n30_window_functions_stand_where_rows_are() {
    let mut c = client().await;
    for (sql, state) in [
        ("SELECT id FROM t WHERE row_number() OVER (ORDER BY id) = 1", "42P20"),
        ("SELECT id FROM t GROUP BY id HAVING rank() OVER (ORDER BY id) = 1", "42P20"),
        ("SELECT 1 FROM t GROUP BY rank() OVER (ORDER BY id)", "42P20"),
        ("SELECT 1 FROM t JOIN s ON row_number() OVER () = s.id", "42P20"),
        ("SELECT sum(rank() OVER (ORDER BY id)) OVER () FROM t", "42P20"),
        ("SELECT count(*) OVER (ORDER BY rank() OVER ()) FROM t", "42P20"),
        ("SELECT sum(rank() OVER (ORDER BY id)) FROM t", "42803"),
    ] {
        c.fails(sql, state).await;
    }
    // A query within has rows of its own.
    c.rows("SELECT id FROM t WHERE id = (SELECT max(n) FROM (SELECT row_number() OVER () AS n FROM s) q)", &["2"])
        .await;
    c.rows("SELECT id FROM t ORDER BY row_number() OVER (ORDER BY id DESC)", &["2", "1"]).await;
}

#[tokio::test]
async fn n29_an_inner_with_query_hides_an_outer_one() {
    let mut c = client().await;
    c.rows("WITH a AS (SELECT 1 AS x) SELECT * FROM (WITH a AS (SELECT 2 AS x) SELECT a.x FROM a) q, a", &["2|1"])
        .await;
    c.rows("WITH a AS (SELECT 1 AS x) SELECT (WITH a AS (SELECT x + 1 AS x FROM a) SELECT x FROM a) FROM a", &["2"])
        .await;
    c.rows(
        "WITH a AS (SELECT 1 AS x), b AS (WITH a AS (SELECT x + 10 AS x FROM a) SELECT * FROM a JOIN a AS c USING (x)) \
         SELECT b.x, a.x FROM a, b WHERE b.x IN (WITH b AS (SELECT 11 AS y) SELECT y FROM b)",
        &["11|1"],
    )
    .await;
    c.rows(
        "WITH n AS (SELECT 7 AS x) SELECT * FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n \
         WHERE i < 3) SELECT count(*) FROM n) q, n",
        &["3|7"],
    )
    .await;
    // It hides a table, too, but not in its own definition.
    c.rows(
        "WITH t AS (SELECT id FROM t WHERE id > 1) SELECT (WITH t AS (SELECT id * 2 AS id FROM t) SELECT id \
            FROM t) FROM t",
        &["4"],
    )
    .await;
}

#[tokio::test]
async fn lists_and_bounds_of_every_form() {
    let mut c = client().await;
    c.rows("SELECT id FROM t WHERE id IN ((SELECT max(id) FROM s), 7)", &["2"]).await;
    c.rows("SELECT id FROM t WHERE id NOT IN ((SELECT max(id) FROM s), (SELECT 5)) AND id > 0", &["1"]).await;
    c.rows("SELECT id FROM t WHERE id IN ((SELECT id FROM s)) ORDER BY id", &["1", "2"]).await;
    c.rows("SELECT id FROM t WHERE id IN ((SELECT 7) UNION (SELECT max(id) FROM s))", &["2"]).await;
    c.rows("SELECT id FROM t WHERE id IN ((SELECT max(id) FROM s) + 0, 7)", &["2"]).await;
    c.rows(
        "SELECT 2 BETWEEN SYMMETRIC 3 AND 1, 2 NOT BETWEEN SYMMETRIC 3 AND 1, 4 NOT BETWEEN symmetric 3 AND 1",
        &["true|false|true"],
    )
    .await;
    c.rows(
        "SELECT 2 BETWEEN SYMMETRIC NULL AND 1, 0 BETWEEN SYMMETRIC 1 + 1 AND 1 \
            AND true, NOT 1 BETWEEN SYMMETRIC 2 AND 0",
        &["NULL|false|false"],
    )
    .await;
}

#[tokio::test]
async fn n47_having_makes_one_group() {
    let mut c = client().await;
    c.rows("SELECT 1 FROM t HAVING true", &["1"]).await;
    c.rows("SELECT 1 FROM t HAVING false", &[]).await;
    c.rows("SELECT 1 FROM t HAVING NULL", &[]).await;
    c.rows("SELECT 1 FROM t WHERE false HAVING 1 < 2", &["1"]).await;
    c.rows("SELECT 1 HAVING (SELECT count(*) FROM s) = 2", &["1"]).await;
    c.rows(
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM s HAVING (SELECT max(id) FROM s) > 1) ORDER BY id",
        &["1", "2"],
    )
    .await;
    c.fails("SELECT id FROM t HAVING true", "42803").await;
}

#[tokio::test]
async fn n61_an_aggregate_in_an_unused_window_makes_one_group() {
    let mut c = client().await;
    c.rows("SELECT 1 FROM t WINDOW w AS (ORDER BY min(id))", &["1"]).await;
    c.rows("SELECT 1 FROM t WHERE false WINDOW w AS (PARTITION BY max(id) + 1)", &["1"]).await;
    c.rows("SELECT 1 FROM t HAVING false WINDOW w AS (ORDER BY min(id))", &[]).await;
    c.fails("SELECT id FROM t WINDOW w AS (ORDER BY min(id))", "42803").await;
    // Of a query within: its own affair.
    c.rows("SELECT rank() OVER w, id FROM t WINDOW w AS (ORDER BY (SELECT min(id) FROM t))", &["1|1", "1|2"]).await;
    c.rows("SELECT 1 FROM t WINDOW w AS (ORDER BY (SELECT min(id) FROM t))", &["1", "1"]).await;
    c.fails("SELECT 1 FROM t WINDOW w AS (ORDER BY (SELECT nosuch))", "42703").await;
    c.rows("SELECT rank() OVER w FROM t WINDOW w AS (ORDER BY id)", &["1", "2"]).await;
}

/// D8: an aggregate of outer columns belongs to the outer query, also in a window.
#[tokio::test]
async fn n89_aggregates_of_outer_columns_in_windows() {
    let mut c = client().await;
    c.rows("SELECT (SELECT 1.5 AS x WINDOW w AS (PARTITION BY max(t.id))) FROM t", &["1.5"]).await;
    c.fails("SELECT 1 FROM t WHERE EXISTS (SELECT 1 AS x WINDOW w AS (ORDER BY count(t.id)))", "42803").await;
    let lateral = "SELECT 1 FROM s GROUP BY s.id WINDOW w AS (PARTITION BY max(t.id))";
    c.fails(&format!("SELECT 1 FROM t JOIN LATERAL ({lateral}) q ON true"), "0A000").await;
    c.fails("SELECT count(q.*) OVER (), sum(1) FROM (SELECT 1 AS x) q", "42803").await;
    c.fails("SELECT count(q.*) OVER () FROM (SELECT 1 AS x) q ORDER BY max(2)", "42803").await;
    c.rows("SELECT count(q.*) OVER () FROM (SELECT 1 AS x) q", &["1"]).await;
}

#[tokio::test]
async fn n24_returning_other_tables() {
    let mut c = client().await;
    c.rows("UPDATE t SET v = 'x' FROM s WHERE s.id = t.id RETURNING s.amount", &["10", "20"]).await;
    c.rows("UPDATE t SET v = 'x' FROM s WHERE s.id = t.id RETURNING amount", &["10", "20"]).await;
    c.fails("UPDATE t SET v = 'x' RETURNING s.amount", "42P01").await;
    c.fails("UPDATE t SET v = 'x' RETURNING amount", "42703").await;
    c.rows("UPDATE t SET v = 'x' FROM s WHERE s.id = t.id AND amount > 10 RETURNING t.id, v", &["2|x"]).await;
    c.rows("DELETE FROM t USING s WHERE s.id = t.id RETURNING t.id, s.amount", &["1|10", "2|20"]).await;
}

/// The parser takes some of these words off the text, and says nothing of them.
#[tokio::test]
async fn options_of_other_systems_are_refused() {
    let mut c = client().await;
    for option in [
        "AUTO_INCREMENT",
        "autoincrement",
        "ASC",
        "DESC",
        "PRIMARY KEY ASC",
        "NOT NULL AUTO_INCREMENT",
        "ON UPDATE CURRENT_TIMESTAMP",
        "AS",
        "AS (1)",
        "SRID 1",
        "IDENTITY",
        "IDENTITY(1, 1)",
        "COMMENT 'x'",
        "INVISIBLE",
        "CHARACTER SET utf8",
        "KEY",
    ] {
        c.fails(&format!("CREATE TABLE u (a int {option})"), "42601").await;
        c.fails(&format!("CREATE TABLE u (a int {option}, b int)"), "42601").await;
        c.fails(&format!("ALTER TABLE t ADD COLUMN a int {option}"), "42601").await;
    }
    c.fails("CREATE TABLE u (a int, PRIMARY KEY p (a))", "42601").await;
    c.fails("CREATE TABLE u (a int, UNIQUE u (a))", "42601").await;
    c.ok("CREATE TABLE u (a int CONSTRAINT c NOT NULL DEFAULT 1 CHECK (a > 0) UNIQUE, b int NULL)", "CREATE TABLE")
        .await;
    c.ok("ALTER TABLE t ADD COLUMN a int NOT NULL DEFAULT 1", "ALTER TABLE").await;
}

/// Types that the planner knows and PostgreSQL does not; numbers with digits that would be dropped.
#[tokio::test]
async fn types_of_other_systems_are_refused() {
    let mut c = client().await;
    for name in
        ["tinyint", "int unsigned", "string", "blob", "datetime", "timetz", "timestamp(7)", "nvarchar(2)", "int64"]
    {
        let error = c.run(&format!("SELECT CAST('1' AS {name})")).await.expect_err(name);
        assert!(["0A000", "42601", "42704"].contains(&error.state.0), "{name}: {error}");
    }
}

#[tokio::test]
async fn r7_limits_are_bigints() {
    let mut c = client().await;
    c.rows("SELECT id FROM t ORDER BY id LIMIT '1'", &["1"]).await;
    c.rows("SELECT id FROM t ORDER BY id LIMIT 1.4 OFFSET ' 1'", &["2"]).await;
    c.rows("SELECT id FROM t ORDER BY id OFFSET 0.5", &["2"]).await;
    c.rows("SELECT id FROM t ORDER BY id LIMIT 1e0", &["1"]).await;
    c.rows("SELECT id FROM t ORDER BY id FETCH FIRST '1' ROWS ONLY", &["1"]).await;
    for (sql, state) in [
        ("SELECT 1 LIMIT 'a'", "22P02"),
        ("SELECT 1 LIMIT 9223372036854775808", "22003"),
        ("SELECT 1 OFFSET 1e30", "22003"),
        ("SELECT id FROM t LIMIT id", "42P10"),
        ("SELECT id FROM t OFFSET t.id + 1", "42P10"),
        ("SELECT 1 LIMIT true", "42804"),
        ("SELECT 1 LIMIT 'a'::text", "42804"),
        ("SELECT 1 LIMIT now()", "42804"),
        ("SELECT 1 LIMIT count(*)", "42803"),
        ("SELECT 1 LIMIT row_number() OVER ()", "42P20"),
        ("SELECT 1 LIMIT (SELECT 2)", "0A000"),
    ] {
        c.fails(sql, state).await;
    }
    c.rows("SELECT 1 LIMIT 2.5::float8", &["1"]).await;
}

#[tokio::test]
async fn r7_calls_stand_where_they_may() {
    let mut c = client().await;
    c.fails("SELECT 1 FROM t JOIN s ON count(*) > 0", "42803").await;
    c.fails("SELECT sum(id) FILTER (WHERE row_number() OVER () > 1) FROM t", "42P20").await;
    c.rows("SELECT count(*) FROM t JOIN s ON t.id = (SELECT max(id) FROM s)", &["2"]).await;
}

/// Statements of other systems are none, however deep they are.
#[tokio::test]
async fn r7_other_systems_statements() {
    let mut c = client().await;
    for n in [1, 3, 600] {
        for begin in ["WHILE true BEGIN ", "IF true THEN ", "DESCRIBE ", "desc "] {
            c.fails(&format!("{}SELECT 1", begin.repeat(n)), "42601").await;
        }
    }
    for sql in ["USE t", "PRAGMA x", "KILL 1", "EXEC p", "print 1", "RETURN 1"] {
        c.fails(sql, "42601").await;
    }
}

/// A column of NULLs has no type; a UNION makes it text.
#[tokio::test]
async fn r7_a_union_of_nulls_is_text() {
    let mut c = client().await;
    for sql in [
        "SELECT NULL UNION ALL SELECT NULL UNION ALL SELECT 1",
        "SELECT NULL UNION SELECT NULL UNION SELECT 1",
        "SELECT NULL, 1 UNION ALL SELECT NULL, 2 UNION ALL SELECT 1, 3",
        "SELECT NULL UNION ALL SELECT NULL UNION ALL SELECT date '2020-01-01'",
        "SELECT * FROM (SELECT NULL UNION ALL SELECT NULL) q UNION ALL SELECT 1",
    ] {
        c.fails(sql, "42804").await;
    }
    c.rows("SELECT NULL UNION ALL SELECT 1", &["1", "NULL"]).await;
    c.rows("SELECT NULL UNION ALL (SELECT NULL UNION ALL SELECT 1)", &["1", "NULL", "NULL"]).await;
    c.rows("SELECT NULL UNION ALL SELECT NULL UNION ALL SELECT 'a'", &["NULL", "NULL", "a"]).await;
    let columns = c.columns("SELECT NULL UNION ALL (SELECT NULL UNION ALL SELECT 1)").await;
    assert_eq!(columns[0].1, "Int32");
}

/// Constants without a type alone do not say which times they are; texts are none.
#[tokio::test]
async fn f31_functions_of_times_take_no_texts() {
    let mut c = client().await;
    for (sql, state) in [
        ("SELECT extract(year FROM '2024-01-01')", "42725"),
        ("SELECT extract(year FROM NULL)", "42725"),
        ("SELECT date_part('year', '2024-01-01')", "42725"),
        ("SELECT date_trunc('month', '2024-01-15')", "42725"),
        ("SELECT date_trunc('month', '2024-01-15'::text)", "42883"),
        ("SELECT date_part('year', v) FROM t", "42883"),
        ("SELECT extract(year FROM v) FROM t", "42883"),
        ("SELECT date_trunc('month', $1)", "42725"),
        ("SELECT date_bin('1 day', v, now()) FROM t", "42883"),
    ] {
        c.fails(sql, state).await;
    }
    c.rows("SELECT date_bin('1 day', '2024-01-15 10:00', '2024-01-01')", &["2024-01-15T00:00:00Z"]).await;
    c.rows("SELECT extract(year FROM timestamp '2024-01-01')", &["2024"]).await;
}

#[tokio::test]
async fn f39_arrays_of_two_types_are_not_compared() {
    let mut c = client().await;
    for sql in [
        "SELECT ARRAY[1] = ARRAY[1.0]",
        "SELECT ARRAY[1] = ARRAY[1::bigint]",
        "SELECT ARRAY[1] <> ARRAY['1']",
        "SELECT ARRAY[1] IN (ARRAY[1.0])",
        "SELECT ARRAY[1] IS DISTINCT FROM ARRAY[1.0]",
        "SELECT nullif(ARRAY[1], ARRAY[1.0])",
        "SELECT ARRAY[date '2020-01-01'] = ARRAY[timestamp '2020-01-01']",
    ] {
        c.fails(sql, "42883").await;
    }
    c.rows("SELECT ARRAY[1] = ARRAY[1], ARRAY[1.0] = ARRAY[1.00]", &["true|true"]).await;
}

/// A query's column has its name, whatever is made of it.
#[tokio::test]
async fn d2_columns_of_scalar_subqueries_keep_their_names() {
    let mut c = client().await;
    for (item, name) in [
        ("(SELECT 1::int2 FROM t WHERE id = 1)::text", "int2"),
        ("CAST((SELECT date '2020-01-01') AS timestamp)", "date"),
        ("CASE WHEN true THEN 'a' ELSE (SELECT v FROM t WHERE id = 1) END", "v"),
        ("CASE WHEN true THEN 1::int2 ELSE (SELECT 1::int2) END", "int2"),
        ("(SELECT 1)::text", "?column?"),
        ("(SELECT max(id) AS m FROM t)::text", "m"),
        ("(SELECT 1 AS a UNION SELECT 1)", "a"),
        ("CASE WHEN true THEN 1 ELSE 1::int2 END", "case"),
        ("('{1}'::int[])", "int4"),
    ] {
        assert_eq!(c.columns(&format!("SELECT {item}")).await[0].0, name, "{item}");
    }
}
