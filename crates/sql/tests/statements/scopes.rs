//! Which column a name means, and what belongs to which query.
use crate::common::{Client, database};

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
    c.fails("SELECT count(ta.*) OVER w FROM ta GROUP BY f WINDOW w AS (ORDER BY f)", "0A000").await;
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
        "SELECT (SELECT count(t.i) FROM ta LIMIT 1) FROM t",
        "SELECT (SELECT max(t.id)) FROM t",
        "SELECT (SELECT max(t.id) FILTER (WHERE t.i > 0)) FROM t",
        "SELECT (SELECT count(*) FROM ta HAVING max(t.id) = 3) FROM t",
        "SELECT max(id) FROM t HAVING (SELECT max(t.id) FROM ta LIMIT 1) = 3",
        "SELECT (SELECT (SELECT max(t.id) FROM tb LIMIT 1) FROM ta LIMIT 1) FROM t",
        "SELECT id FROM t GROUP BY id HAVING EXISTS (SELECT max(t.id) FROM ta)",
        "UPDATE t SET f = f WHERE id = (SELECT max(t.id) FROM ta)",
        "DELETE FROM ta WHERE EXISTS (SELECT max(ta.f) FROM tb)",
    ] {
        c.fails(sql, "0A000").await;
    }
    c.rows("SELECT id, (SELECT max(ta.f) FROM ta WHERE ta.id = t.id) m FROM t", &["1|1", "2|2", "3|NULL"]).await;
}

#[tokio::test]
async fn n22_with_queries_in_arrays() {
    let mut c = tables().await;
    c.fails("WITH w AS (SELECT 1 x) SELECT ARRAY[(SELECT x FROM w)]", "0A000").await;
    c.rows("WITH w AS (SELECT 1 x) SELECT 1 WHERE 1 >= ALL (ARRAY[(SELECT x FROM w)])", &["1"]).await;
    c.rows("WITH w AS (SELECT 1 x) SELECT CASE WHEN (SELECT x FROM w) = 1 THEN 2 END", &["2"]).await;
    c.fails("SELECT ARRAY[(SELECT x FROM nosuch)]", "42P01").await;
}
