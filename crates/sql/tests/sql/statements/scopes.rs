//! Which column a name means, and what belongs to which query.
use crate::common::{Client, database};
use terrace_engine::Datum;

async fn tables() -> Client {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, i int, f int)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 1, 1), (2, NULL, 2), (3, 2, NULL)", "INSERT 0 3").await;
    c.ok("CREATE TABLE ta (id int, f int)", "CREATE TABLE").await;
    c.ok("INSERT INTO ta VALUES (1, 1), (2, 2)", "INSERT 0 2").await;
    c.ok("CREATE TABLE tb (i int, f int)", "CREATE TABLE").await;
    c.ok("INSERT INTO tb VALUES (1, 1), (3, 3)", "INSERT 0 2").await;
    c
}

/// A name that two tables of a subquery have is not the outer query's.
#[tokio::test]
async fn n26_ambiguous_names_in_subqueries() {
    let mut c = tables().await;
    for sql in [
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM ta, tb WHERE f = 1)",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM ta JOIN tb ON f > 0)",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM ta LEFT JOIN tb ON true WHERE ta.f + f > 0)",
        "SELECT id FROM t WHERE f IN (SELECT f FROM ta, tb)",
        "SELECT (SELECT max(f) FROM ta, tb) FROM t",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM ta, tb GROUP BY f)",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM ta, tb ORDER BY f)",
        "SELECT * FROM ta a RIGHT JOIN tb b ON a.id = b.i AND f = 1",
        "SELECT 1 FROM (ta JOIN tb USING (f)) JOIN t ON t.f = f",
        "DELETE FROM t WHERE EXISTS (SELECT 1 FROM ta, tb WHERE f = 1)",
    ] {
        c.fails(sql, "42702").await;
    }
    c.rows("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM ta, tb WHERE ta.f = 1 AND tb.f = t.f)", &["1"]).await;
    c.rows("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM ta WHERE ta.f = i)", &["1", "3"]).await;
    c.rows("SELECT f FROM ta JOIN tb USING (f)", &["1"]).await;
    c.rows("SELECT ta.f FROM ta, tb ORDER BY f, 1", &["1", "1", "2", "2"]).await;
    c.rows("SELECT ta.id AS f FROM ta, tb ORDER BY f LIMIT 1", &["1"]).await;
    c.rows("SELECT id FROM ta, tb WHERE EXISTS (SELECT f FROM t WHERE f = ta.f AND f = tb.f)", &["1"]).await;
}

#[tokio::test]
async fn n17_order_by_a_qualified_name_that_an_alias_hides() {
    let mut c = tables().await;
    let q = "FROM (SELECT id c0, -id id FROM t) q";
    c.rows(&format!("SELECT q.id c0, -q.c0 AS z {q} ORDER BY q.c0 DESC, 1"), &["-3|-3", "-2|-2", "-1|-1"]).await;
    c.rows(&format!("SELECT id c0 {q} ORDER BY q.c0 DESC"), &["-3", "-2", "-1"]).await;
    c.rows(&format!("SELECT c0::text c0 {q} ORDER BY q.c0 DESC, 1"), &["3", "2", "1"]).await;
    c.rows(&format!("SELECT q.c0 {q} ORDER BY q.c0 DESC"), &["3", "2", "1"]).await;
    c.rows(
        "SELECT a.f AS f, b.i FROM ta a JOIN tb b ON true ORDER BY b.f DESC, a.f DESC",
        &["2|3", "1|3", "2|1", "1|1"],
    )
    .await;
}

#[tokio::test]
async fn n19_rows_of_a_group_and_unused_windows() {
    let mut c = tables().await;
    c.fails("SELECT count(ta.*) OVER w FROM ta GROUP BY f WINDOW w AS (ORDER BY f)", "42803").await;
    c.fails("SELECT 1 FROM ta, tb WINDOW w AS (PARTITION BY f)", "42702").await;
    c.fails("SELECT 1 FROM ta, tb WINDOW w AS (ORDER BY i, f)", "42702").await;
    c.rows("SELECT count(ta.*) OVER () FROM ta", &["2", "2"]).await;
    c.rows("SELECT f, count(ta.*) FROM ta GROUP BY f", &["1|1", "2|1"]).await;
}

/// An aggregate of nothing but outer columns belongs to the outer query: nothing here computes it elsewhere.
#[tokio::test]
async fn n27_aggregates_of_the_outer_query() {
    let mut c = tables().await;
    for sql in [
        "SELECT id, (SELECT max(t.i) FROM ta) FROM t",
        "UPDATE t SET f = f WHERE id = (SELECT max(t.id) FROM ta)",
        "DELETE FROM ta WHERE EXISTS (SELECT max(ta.f) FROM tb)",
    ] {
        c.fails(sql, "42803").await;
    }
    for (sql, answer) in [
        ("SELECT (SELECT count(t.i) FROM ta LIMIT 1) FROM t", "2"),
        ("SELECT (SELECT max(t.id)) FROM t", "3"),
        ("SELECT (SELECT max(t.id) FILTER (WHERE t.i > 0)) FROM t", "3"),
        ("SELECT (SELECT count(*) FROM ta HAVING max(t.id) = 3) FROM t", "2"),
        ("SELECT max(id) FROM t HAVING (SELECT max(t.id) FROM ta LIMIT 1) = 3", "3"),
        ("SELECT (SELECT (SELECT max(t.id) FROM tb LIMIT 1) FROM ta LIMIT 1) FROM t", "3"),
        ("SELECT (SELECT sum(t.id) + max(ta.f) FROM ta) FROM t", "8"),
        ("SELECT (SELECT max(t.id) FROM ta WHERE ta.id = 7) FROM t", "NULL"),
        ("SELECT (SELECT ta.f FROM ta ORDER BY max(t.id), ta.f LIMIT 1) FROM t", "1"),
        ("SELECT (WITH w AS (SELECT max(t.id) m) SELECT m FROM w) FROM t", "3"),
    ] {
        c.rows(sql, &[answer]).await;
    }
    let each = "SELECT id FROM t GROUP BY id HAVING EXISTS (SELECT max(t.id) FROM ta) ORDER BY id";
    c.rows(each, &["1", "2", "3"]).await;
    c.rows("SELECT (SELECT sum(t.id + ta.f) FROM ta) s FROM t ORDER BY s", &["5", "7", "9"]).await;
    c.rows("SELECT id, (SELECT max(ta.f) FROM ta WHERE ta.id = t.id) m FROM t", &["1|1", "2|2", "3|NULL"]).await;
}

#[tokio::test]
async fn n22_with_queries_in_arrays() {
    let mut c = tables().await;
    c.rows("WITH w AS (SELECT 1 x) SELECT ARRAY[(SELECT x FROM w)]", &["[1]"]).await;
    c.rows("WITH w AS (SELECT 1 x) SELECT 1 WHERE 1 >= ALL (ARRAY[(SELECT x FROM w)])", &["1"]).await;
    c.rows("WITH w AS (SELECT 1 x) SELECT CASE WHEN (SELECT x FROM w) = 1 THEN 2 END", &["2"]).await;
    c.fails("SELECT ARRAY[(SELECT x FROM nosuch)]", "42P01").await;
}

/// Only a name that stands alone means a column of the result (review R3; before, `a + 0` meant it too: wrong rows with
/// LIMIT).
#[tokio::test]
async fn r3_names_in_expressions_of_order_by_are_columns() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE o1 (a int, b int)", "CREATE TABLE").await;
    c.ok("INSERT INTO o1 VALUES (1, 30), (2, 20), (3, 10), (NULL, 5)", "INSERT 0 4").await;
    for (order, first) in [
        ("a + 0", "-1"),
        ("-a DESC", "NULL"),
        ("coalesce(a, 0)", "NULL"),
        ("a IS NULL, a", "-3"),
        ("a::text", "-1"),
        ("(a)", "-3"),
        ("a", "-3"),
        ("o1.a", "-1"),
        ("b % 20, a + 0", "-2"),
    ] {
        c.rows(&format!("SELECT -a AS a FROM o1 ORDER BY {order} LIMIT 1"), &[first]).await;
        c.rows(&format!("SELECT q.a FROM (SELECT -a AS a FROM o1 ORDER BY {order} LIMIT 1) q"), &[first]).await;
        c.rows(&format!("WITH q AS (SELECT -a AS a FROM o1 ORDER BY {order} LIMIT 1) SELECT a FROM q"), &[first]).await;
        c.rows(&format!("SELECT (SELECT -a AS a FROM o1 ORDER BY {order} LIMIT 1)"), &[first]).await;
        c.rows(&format!("(SELECT -a AS a FROM o1 ORDER BY {order} LIMIT 1) UNION ALL SELECT 9 ORDER BY a"), &{
            let mut both = [first, "9"];
            if first == "NULL" {
                both.reverse();
            }
            both
        })
        .await;
    }
    let collected = "SELECT array_agg(a)::text FROM (SELECT -a AS a FROM o1 WHERE a > 0 ORDER BY a + 0) q";
    c.rows(collected, &["{-1,-2,-3}"]).await;
    c.rows("SELECT row_number() OVER (ORDER BY b) AS a FROM o1 WHERE a > 0 ORDER BY a + 0 LIMIT 1", &["3"]).await;
    c.rows("SELECT b % 20 AS b, max(b) AS a FROM o1 GROUP BY o1.b ORDER BY -o1.b LIMIT 1", &["10|30"]).await;
    c.fails("SELECT a AS x FROM o1 ORDER BY x + 0", "42703").await;
    c.fails("SELECT sum(b) AS b FROM o1 ORDER BY -b", "42803").await;
    c.fails("SELECT DISTINCT -a AS a FROM o1 ORDER BY a + 0", "42P10").await;
    c.fails("SELECT a FROM o1 UNION SELECT b FROM o1 ORDER BY a + 1", "0A000").await;
    c.rows("SELECT a FROM o1 WHERE a = 1 UNION SELECT b FROM o1 WHERE a = 1 ORDER BY 1 DESC", &["30", "1"]).await;
}

/// A qualified name below WITH means a column of FROM, too (N60).
#[tokio::test]
async fn n60_order_by_a_qualified_name_below_with() {
    let mut c = tables().await;
    c.rows("WITH w AS (SELECT -id AS id FROM t AS e ORDER BY e.id LIMIT 1) SELECT id FROM w", &["-1"]).await;
    c.rows("SELECT id FROM (SELECT NULL::int AS i, id FROM t AS e ORDER BY e.i, 1 LIMIT 1) q", &["1"]).await;
}

/// A merged column beside one of that name is ambiguous (N62), and has the type of both (N54).
#[tokio::test]
async fn n54_n62_merged_columns() {
    let mut c = tables().await;
    for sql in [
        "SELECT f FROM ta NATURAL JOIN tb CROSS JOIN t",
        "SELECT 1 FROM ta NATURAL JOIN tb CROSS JOIN t WHERE f = 1",
        "SELECT 1 FROM ta NATURAL JOIN tb CROSS JOIN t ORDER BY f",
    ] {
        c.fails(sql, "42702").await;
    }
    c.ok("CREATE TABLE n (f numeric)", "CREATE TABLE").await;
    c.ok("INSERT INTO n VALUES (1), (2)", "INSERT 0 2").await;
    let (one, two) = ("1", "2");
    for join in ["ta JOIN n USING (f)", "n JOIN ta USING (f)", "ta NATURAL LEFT JOIN n", "ta RIGHT JOIN n USING (f)"] {
        let statement = c.session.prepare(&format!("SELECT f FROM {join}"), &[]).await.unwrap();
        assert!(terrace_sql::is_decimal(statement.columns.as_ref().unwrap().field(0).data_type()), "{join}");
        c.rows(&format!("SELECT f FROM {join} GROUP BY f ORDER BY f"), &[one, two]).await;
        c.rows(&format!("SELECT f FROM {join} WHERE f = 2"), &[two]).await;
        c.rows(&format!("SELECT * FROM (SELECT f FROM {join}) q ORDER BY f DESC LIMIT 1"), &[two]).await;
    }
}

/// What is written out for a join of many columns, and for rows, is no deep tree (review R8: the server aborted).
#[tokio::test]
async fn r8_many_columns() {
    let mut c = Client::new(&database().await);
    let columns: Vec<String> = (0..150).map(|n| format!("c{n} int")).collect();
    c.ok(&format!("CREATE TABLE w ({})", columns.join(", ")), "CREATE TABLE").await;
    c.ok(&format!("INSERT INTO w VALUES (1{})", ", 1".repeat(149)), "INSERT 0 1").await;
    c.rows("SELECT count(*) FROM w a NATURAL JOIN w b", &["1"]).await;
    let row = |n: usize, value: &str| vec![value; n].join(", ");
    c.rows(&format!("SELECT ({}) < ({}) FROM w", row(40, "c0"), row(40, "1")), &["false"]).await;
    c.fails(&format!("SELECT ({}) < ({}) FROM w", row(500, "c0"), row(500, "1")), "54001").await;
    c.rows(&format!("SELECT ({}) = ({}) FROM w", row(500, "c0"), row(500, "1")), &["true"]).await;
}

/// `NOT EXISTS` is an expression without a name (N63).
#[tokio::test]
async fn n63_not_exists_has_no_name() {
    let mut c = tables().await;
    let statement = c.session.prepare("SELECT NOT EXISTS (SELECT 1), EXISTS (SELECT 1)", &[]).await.unwrap();
    let names: Vec<String> = statement.columns.as_ref().unwrap().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["?column?", "exists"]);
}

/// An aggregate of columns of the outer query only is the outer query's (N27). More of them: `outer_aggregates.slt`.
#[tokio::test]
async fn n27_aggregates_of_outer_columns_only() {
    let mut c = tables().await;
    for (sql, state) in [
        ("SELECT id FROM t WHERE (SELECT min(t.i) FROM tb) > 0", "42803"),
        ("SELECT id FROM t WHERE (SELECT count(id) FROM tb) > 0", "42803"),
        ("SELECT q.m FROM t, LATERAL (SELECT max(t.i) AS m FROM ta) q", "0A000"),
        ("SELECT (SELECT max((SELECT t.i)) FROM ta) FROM t", "0A000"),
        ("UPDATE t SET i = (SELECT max(t.f) FROM ta)", "42803"),
    ] {
        c.fails(sql, state).await;
    }
    c.rows("SELECT (SELECT stddev(t.i) FROM (VALUES (1)) q(x)) FROM t WHERE NULL", &["NULL"]).await;
    c.rows("SELECT (SELECT count(*) FROM ta) FROM t WHERE id = 1", &["2"]).await;
    c.rows("SELECT (SELECT sum(f) FROM ta WHERE ta.id = t.id) FROM t WHERE id = 1", &["1"]).await;
    c.rows("SELECT (SELECT max(1) FROM ta) FROM t WHERE id = 1", &["1"]).await;
}

#[tokio::test]
async fn unknown_names_in_windows_that_nobody_uses() {
    let mut c = tables().await;
    c.fails("SELECT 1 FROM ta WINDOW w AS (ORDER BY nosuch)", "42703").await;
    c.fails("SELECT 1 FROM ta WINDOW w AS (PARTITION BY tb.i)", "42P01").await;
    c.fails("SELECT 1 FROM ta WINDOW w AS (nosuch ORDER BY id)", "42704").await;
    c.rows("SELECT 1 FROM ta WINDOW w AS (ORDER BY ta.id, f)", &["1", "1"]).await;
    c.rows("SELECT q.n FROM ta, LATERAL (SELECT 1 AS n FROM tb WINDOW w AS (ORDER BY ta.id)) q LIMIT 1", &["1"]).await;
}

/// INTERSECT and EXCEPT have the type that both sides have in common (N52; before, the left one's).
#[tokio::test]
async fn n52_types_of_intersect_and_except() {
    let mut c = Client::new(&database().await);
    for (left, right, of, rows) in [
        ("1::smallint", "1", "Int32", 1),
        ("1", "1::bigint", "Int64", 1),
        ("1", "1.0", "LargeList", 1),
        ("1", "1.5::real", "Float32", 0),
        ("1.5", "1.5::float8", "Float64", 1),
        ("date '2020-01-01'", "timestamp '2020-01-01 00:00:00'", "Timestamp", 1),
    ] {
        for (a, b) in [(left, right), (right, left)] {
            for op in ["INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"] {
                let statement = c.session.prepare(&format!("SELECT {a} AS x {op} SELECT {b}"), &[]).await.unwrap();
                let data_type = statement.columns.as_ref().unwrap().field(0).data_type().to_string();
                assert!(data_type.starts_with(of), "{a} {op} {b}: {data_type}");
                let found = c.rows_of(&statement, vec![]).await.unwrap().len();
                assert_eq!(found, if op.starts_with('I') { rows } else { 1 - rows }, "{a} {op} {b}");
            }
        }
    }
    c.ok("CREATE TABLE n (k int)", "CREATE TABLE").await;
    c.ok("INSERT INTO n VALUES (16777217), (16777216)", "INSERT 0 2").await;
    c.rows("SELECT k FROM n INTERSECT SELECT k::real FROM n", &["16777216.0"]).await;
}

/// A condition that may fail beside a constant of a type that is told apart from its values: the guard of the one has
/// nothing noted of the other (XX000 before).
#[tokio::test]
async fn a_guard_stands_beside_a_null_varchar() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE k (id int NOT NULL, m time NOT NULL)", "CREATE TABLE").await;
    c.ok("INSERT INTO k VALUES (1, '10:00')", "INSERT 0 1").await;
    let sql = "SELECT (t.m NOT IN (SELECT $1::time AS c)), (SELECT NULL::varchar FROM k u WHERE u.id = 7) FROM k t";
    let statement = c.session.prepare(sql, &[]).await.unwrap();
    let rows = c.rows_of(&statement, vec![Datum::Time(1)]).await.unwrap();
    assert_eq!(rows, ["true|NULL"]);
}

/// What is joined by floats within a subquery of ON or VALUES (N57: XX000 "Invalid join key").
#[tokio::test]
async fn n57_joins_on_floats_in_subqueries() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE g (g float8, k int)", "CREATE TABLE").await;
    c.ok("INSERT INTO g VALUES (1, 1), (-0.0, 2), (NULL, 3)", "INSERT 0 3").await;
    c.rows("SELECT count(*) FROM g x JOIN g y ON x.k = (SELECT max(a.k) FROM g a JOIN g b USING (g))", &["3"]).await;
    c.fails("SELECT * FROM (VALUES ((SELECT count(*) FROM g a NATURAL JOIN g b))) v(n)", "0A000").await;
    let ordered = "SELECT (SELECT max(b.k) FROM g b WHERE b.k = a.k ORDER BY a.k NOT IN (SELECT k FROM g)) FROM g a";
    c.fails(ordered, "0A000").await;
    c.rows("SELECT k FROM g WHERE k IN (SELECT a.k FROM g a JOIN g b USING (g)) ORDER BY k", &["1", "2"]).await;
}

/// A table around a query has the name of one of the query's columns.
#[tokio::test]
async fn a_tables_name_is_a_columns_too() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE item (id int PRIMARY KEY, stock int)", "CREATE TABLE").await;
    c.ok("CREATE TABLE sale (item int, amount int)", "CREATE TABLE").await;
    c.ok("INSERT INTO item VALUES (1, 10), (2, 20)", "INSERT 0 2").await;
    c.ok("INSERT INTO sale VALUES (1, 3), (1, 4), (2, 5)", "INSERT 0 3").await;
    let sold = "(SELECT coalesce(sum(amount), 0) FROM sale WHERE sale.item = item.id)";
    c.rows(&format!("SELECT id, {sold} FROM item"), &["1|7", "2|5"]).await;
    c.rows("SELECT id FROM item WHERE EXISTS (SELECT 1 FROM sale WHERE item = item.id AND amount > 4)", &["2"]).await;
    c.rows("SELECT i.item FROM sale i WHERE item IN (SELECT id FROM item WHERE item.id = i.item)", &["1", "1", "2"])
        .await;
    c.rows("SELECT item.id, amount FROM sale, item WHERE item = item.id", &["1|3", "1|4", "2|5"]).await;
    c.ok(&format!("UPDATE item SET stock = stock - {sold}"), "UPDATE 2").await;
    c.ok("DELETE FROM item WHERE (SELECT max(amount) FROM sale WHERE sale.item = item.id) = 5", "DELETE 1").await;
    c.rows("SELECT * FROM item", &["1|3"]).await;
}

/// A merged column is no table's, and a LATERAL query beside the join does not see it.
#[tokio::test]
async fn d5_merged_columns_in_lateral_are_refused() {
    let mut c = tables().await;
    let from = "FROM t NATURAL JOIN (SELECT id FROM ta) a LEFT JOIN LATERAL";
    c.fails(&format!("SELECT 1 {from} (SELECT true WHERE id IS NULL) q ON true"), "0A000").await;
    c.rows(&format!("SELECT count(*) {from} (SELECT true WHERE t.id IS NULL) q ON true WHERE false"), &["0"]).await;
    c.rows(&format!("SELECT count(*) {from} (SELECT id FROM ta) q ON true WHERE false"), &["0"]).await;
}

/// What aggregates, windows and whole rows read is looked at wherever it stands.
#[tokio::test]
async fn n94_ungrouped_columns_in_unused_places() {
    let mut c = tables().await;
    for sql in [
        "SELECT sum((SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t.f) FROM ta)) FROM t",
        "SELECT count(*) FROM t WINDOW w AS (ORDER BY t.f)",
        "SELECT i FROM t GROUP BY i WINDOW w AS (PARTITION BY f)",
        "SELECT count(q.*) OVER () FROM (SELECT 1 AS a, 2 AS b) q GROUP BY a, b",
        "SELECT count(ta.*) OVER () FROM ta GROUP BY id, f",
    ] {
        let error = c.run(sql).await.expect_err(sql);
        assert!(matches!(error.state.0, "42803" | "0A000"), "{sql}: {error}");
    }
    c.rows("SELECT count(t.*) OVER () FROM t GROUP BY id", &["3", "3", "3"]).await;
    c.rows("SELECT i FROM t WHERE i > 0 GROUP BY i WINDOW w AS (PARTITION BY i) ORDER BY i", &["1", "2"]).await;
}

/// What ON of an outer join asks of the outer query was asked of all the subquery's rows.
#[tokio::test]
async fn n95_outer_columns_in_on_of_an_outer_join() {
    let mut c = tables().await;
    for (sql, rows) in [
        ("SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM ta LEFT JOIN tb ON tb.f = t.f AND tb.i = ta.id)", vec![]),
        ("SELECT (SELECT count(*) FROM ta LEFT JOIN tb ON tb.f = t.f) FROM t", vec!["2", "2", "2"]),
        ("SELECT id FROM t WHERE id IN (SELECT ta.id FROM ta LEFT JOIN tb ON tb.f = t.f) ORDER BY 1", vec!["1", "2"]),
        ("SELECT id FROM t WHERE id NOT IN (SELECT ta.id FROM ta LEFT JOIN tb ON tb.f = t.f)", vec!["3"]),
        (
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM ta RIGHT JOIN tb ON ta.f = t.id) ORDER BY 1",
            vec!["1", "2", "3"],
        ),
        ("SELECT count(*) FROM t, LATERAL (SELECT 1 FROM ta LEFT JOIN tb ON tb.f = t.f) q", vec!["6"]),
    ] {
        c.rows(sql, &rows).await;
    }
    c.rows("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM ta JOIN tb ON tb.f = t.f AND ta.f = tb.f)", &["1"]).await;
    c.rows("SELECT (SELECT count(*) FROM ta JOIN tb ON tb.f = t.f) FROM t ORDER BY id", &["2", "0", "0"]).await;
}

/// A query of WITH is computed once, also if a function of Terrace's own is volatile.
#[tokio::test]
async fn n96_volatile_queries_of_with() {
    let mut c = tables().await;
    for function in ["random()", "gen_random_uuid()", "clock_timestamp()"] {
        c.fails(&format!("WITH w AS (SELECT {function} AS r) SELECT a.r = b.r FROM w a, w b"), "0A000").await;
    }
}

/// In WITH RECURSIVE all of its names are known to all of its queries.
#[tokio::test]
async fn n97_names_of_with_recursive() {
    let mut c = tables().await;
    for (sql, state) in [
        ("WITH RECURSIVE ta AS (SELECT * FROM ta) SELECT * FROM ta", "42P19"),
        (
            "WITH RECURSIVE ta AS (SELECT id FROM ta UNION ALL SELECT id + 1 FROM ta WHERE id < 3) SELECT * FROM ta",
            "42P19",
        ),
        ("WITH RECURSIVE q AS (SELECT 1 x UNION SELECT x FROM q UNION SELECT 2) SELECT * FROM q", "42P19"),
        ("WITH RECURSIVE q AS (SELECT * FROM tb), tb AS (SELECT 1 AS one) SELECT * FROM q", "0A000"),
        ("WITH RECURSIVE q AS (SELECT (SELECT max(id) FROM ta)), ta AS (SELECT 1 AS id) SELECT * FROM q", "0A000"),
    ] {
        c.fails(sql, state).await;
    }
    for step in [
        "SELECT (SELECT x + 1 FROM q) FROM q WHERE x < 3",
        "SELECT ta.id FROM ta LEFT JOIN q ON q.x = ta.id",
        "SELECT ta.id FROM q RIGHT JOIN ta ON q.x = ta.id",
        "SELECT id FROM ta WHERE id IN (SELECT x FROM q)",
        "SELECT max(x) + 1 FROM q WHERE x < 3",
    ] {
        c.fails(&format!("WITH RECURSIVE q AS (SELECT 1 x UNION ALL {step}) SELECT * FROM q"), "42P19").await;
    }
    let step = "SELECT s.x + 1 FROM (SELECT x FROM q) s LEFT JOIN ta ON ta.id = s.x WHERE s.x < 3";
    let nested = format!("WITH RECURSIVE q AS (SELECT 1 x UNION ALL {step}) SELECT * FROM q ORDER BY x");
    c.rows(&nested, &["1", "2", "3"]).await;
    c.rows("WITH RECURSIVE q AS (SELECT 1 x UNION SELECT x + 1 FROM q WHERE x < 3) SELECT * FROM q", &["1", "2", "3"])
        .await;
    c.rows("WITH RECURSIVE q AS (WITH ta AS (SELECT 7 id) SELECT * FROM ta), ta AS (SELECT 1) SELECT * FROM q", &["7"])
        .await;
    c.rows("WITH ta AS (SELECT id FROM ta WHERE id = 2) SELECT * FROM ta", &["2"]).await;
}

/// What is volatile, and an aggregate without rows, in subqueries that are joined.
#[tokio::test]
async fn n99_volatile_functions_and_constants_in_joined_subqueries() {
    let mut c = tables().await;
    c.fails("SELECT count(one) FROM t LEFT JOIN (SELECT 1 AS one) o ON random() < 0.5", "0A000").await;
    for (sql, rows) in [
        ("SELECT count(DISTINCT r) FROM (SELECT (SELECT random() WHERE t.id > 0) r FROM t) q", ["3"].as_slice()),
        ("SELECT count(DISTINCT r) FROM t, LATERAL (SELECT random() r WHERE t.id > 0) q", &["3"]),
        (
            "SELECT t.id, q.k FROM t, LATERAL (SELECT 5 AS k, max(ta.f) FROM ta WHERE ta.id = t.id) q ORDER BY 1",
            &["1|5", "2|5", "3|5"],
        ),
    ] {
        c.rows(sql, rows).await;
    }
    c.rows(
        "SELECT t.id, q.n FROM t, LATERAL (SELECT count(*) AS n, max(f) FROM ta WHERE ta.id = t.id) q ORDER BY 1",
        &["1|1", "2|1", "3|0"],
    )
    .await;
    c.rows("SELECT id, (SELECT random() > 2) FROM t ORDER BY id LIMIT 1", &["1|false"]).await;
}

/// Planning took twice as long with each table.
#[tokio::test]
async fn n100_long_chains_of_full_joins_and_intersect() {
    let mut c = tables().await;
    let joins: String = (0..30).map(|n| format!(" FULL JOIN ta a{n} USING (id)")).collect();
    c.rows(&format!("SELECT id FROM ta{joins} ORDER BY id"), &["1", "2"]).await;
    let sets = vec!["SELECT id FROM ta"; 128].join(" INTERSECT ");
    c.rows(&format!("{sets} ORDER BY id"), &["1", "2"]).await;
    c.fails(&format!("{sets} INTERSECT SELECT 1"), "54001").await;
}

#[tokio::test]
async fn n101_constants_of_many_digits() {
    let mut c = tables().await;
    c.rows("SELECT 100000000000000000000000000000000000001 = 100000000000000000000000000000000000000", &["false"])
        .await;
    c.rows("SELECT 10000000000000000000000000000000000001 = 10000000000000000000000000000000000000", &["false"]).await;
    c.rows("SELECT 1e300::float8 > 1e299", &["true"]).await;
}
