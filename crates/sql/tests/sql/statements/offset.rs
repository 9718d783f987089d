//! What DataFusion leaves out: the order below OFFSET, the rows that an item of a list depends on, and NULLs in lists.
use crate::common::{Client, database};

/// The first rows by the subquery's order are passed over, whatever is done with the others.
#[tokio::test]
async fn n55_offset_keeps_the_order_of_its_query() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, s text, x int)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 'a', 30), (2, 'b', 10), (3, 'c', 20)", "INSERT 0 3").await;
    c.rows("SELECT x FROM (SELECT x FROM t ORDER BY id DESC OFFSET 1) q ORDER BY x", &["10", "30"]).await;
    c.rows("SELECT sum(x) FROM (SELECT x FROM t ORDER BY id DESC OFFSET 2) q", &["30"]).await;
    c.rows("SELECT max(s) FROM (SELECT s FROM t ORDER BY x DESC NULLS LAST, 1 OFFSET 1) q WHERE s < 'c'", &["b"]).await;
    c.rows("SELECT count(*) FROM (SELECT x FROM t ORDER BY x OFFSET 1) q JOIN t ON t.x = q.x AND t.id > 1", &["1"])
        .await;
    c.rows("SELECT x FROM (SELECT x FROM t ORDER BY x LIMIT ALL OFFSET 2) q", &["30"]).await;
    c.rows("SELECT id FROM t WHERE x IN (SELECT x FROM t ORDER BY x DESC OFFSET 2)", &["2"]).await;
}

#[tokio::test]
async fn n56_items_of_lists_are_computed_for_each_row() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, i int)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 1), (2, NULL), (3, 2)", "INSERT 0 3").await;
    c.rows("SELECT id FROM t WHERE 1 IN (CASE i WHEN i THEN 7 ELSE 1 END, 5) ORDER BY id", &["2"]).await;
    c.rows("SELECT id FROM t WHERE 1 NOT IN (CASE WHEN i = 1 THEN 1 ELSE 2 END, 5) ORDER BY id", &["2", "3"]).await;
    c.rows("SELECT id, 7 IN (CASE i WHEN 1 THEN 7 END, 5) FROM t ORDER BY id", &["1|true", "2|NULL", "3|NULL"]).await;
    c.rows("SELECT q.id FROM (SELECT id, CASE i WHEN i THEN 7 ELSE 1 END AS x FROM t) q WHERE 1 IN (q.x, 5)", &["2"])
        .await;
    c.rows("SELECT count(*) FROM t a JOIN t b ON a.id IN (CASE b.i WHEN 2 THEN 1 ELSE 9 END, 8)", &["1"]).await;
    c.ok("UPDATE t SET i = 3 WHERE 1 IN (CASE i WHEN 2 THEN 1 ELSE 9 END, 5)", "UPDATE 1").await;
    c.ok("DELETE FROM t WHERE 1 IN (CASE i WHEN i THEN 7 ELSE 1 END, 5)", "DELETE 1").await;
    c.rows("SELECT id, i FROM t ORDER BY id", &["1|1", "3|3"]).await;
}

/// Two lists about one value are two conditions, whatever their items look like.
#[tokio::test]
async fn n80_lists_are_not_merged() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, a int, b int)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 1, 1), (2, NULL, 1), (3, 3, 3), (7, 7, 3)", "INSERT 0 4").await;
    let none: &[&str] = &[];
    c.rows("SELECT id FROM t WHERE id NOT IN (0, NULL, -1) AND id IN (NULL, 3, 7, -2)", none).await;
    c.rows("SELECT id FROM t WHERE a IN (1, 2, 3, 4, 7) AND a + 0 NOT IN (5, 6, 8, 9, NULL)", none).await;
    c.rows("SELECT id FROM t WHERE a NOT IN (5, 6, 8, 9, NULL) AND a IN (1, 2, 3, 4, 7)", none).await;
    c.rows("SELECT id FROM t WHERE a IN (b, 9, 10, 11, 12) AND a IN (id, 13, 14, 15, 16) ORDER BY 1", &["1", "3"])
        .await;
    c.rows(
        "SELECT id, a IN (1, 2, 4, 5) AND a IN (3, 6, 8, 9) FROM t ORDER BY 1",
        &["1|false", "2|NULL", "3|false", "7|false"],
    )
    .await;
    c.rows(
        "SELECT id, a IN (1, 2, 4, 5) AND a NOT IN (1, 2, 4, 5) FROM t ORDER BY 1",
        &["1|false", "2|NULL", "3|false", "7|false"],
    )
    .await;
    c.rows(
        "SELECT id, a NOT IN (1, 2, 4, 5) OR a NOT IN (3, 6, 8, 9) FROM t ORDER BY 1",
        &["1|true", "2|NULL", "3|true", "7|true"],
    )
    .await;
    c.rows(
        "SELECT id, (a = 1 OR a = 4) AND (a = 2 OR a = 3) FROM t ORDER BY 1",
        &["1|false", "2|NULL", "3|false", "7|false"],
    )
    .await;
    c.rows("SELECT id FROM t WHERE ((a = 1 OR a = 4) AND (a = 2 OR a = 3)) IS NULL", &["2"]).await;
    c.rows("SELECT id FROM t WHERE NOT (a = 1 OR a IN (2, NULL)) OR a IN (1, 7) AND a IN (7, 8)", &["7"]).await;
    c.rows(
        "SELECT id, CASE WHEN a IN (1, 2, 4, 5) THEN a IN (3, 6, 8, 9) ELSE true END FROM t WHERE a = 1",
        &["1|false"],
    )
    .await;
    c.rows("SELECT t.id FROM t JOIN t u ON t.id = u.id AND t.a NOT IN (4, 5, 6, NULL) AND t.a IN (1, 3, 7, 8)", none)
        .await;
    c.ok("DELETE FROM t WHERE a NOT IN (5, NULL) AND a IN (1, 3)", "DELETE 0").await;
    // By key, and beside what the simplifier must still see.
    c.rows("SELECT id FROM t WHERE id IN (1, 3, 7) AND id IN (3, 7, 9) AND b IN (3) ORDER BY 1", &["3", "7"]).await;
    c.rows("SELECT a IN (1, 2, 4, 5) AND id IN (1, 2) AS named FROM t WHERE true AND id = 1", &["true"]).await;
}

/// `a = 5` counts as a list, and `abs(-5)` was another item than 5.
#[tokio::test]
async fn n90_lists_beside_equalities() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, a int, c char(3))", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 5, 'ab'), (2, 6, 'b'), (3, NULL, NULL)", "INSERT 0 3").await;
    for condition in
        ["a NOT IN (abs(-5)) AND a = 5", "a = 5 AND a NOT IN (abs(-5), 7)", "id IN (abs(-1), 7) AND id = 2"]
    {
        c.rows(&format!("SELECT id FROM t WHERE {condition}"), &[]).await;
        c.ok(&format!("DELETE FROM t WHERE {condition}"), "DELETE 0").await;
    }
    c.rows("SELECT id FROM t WHERE a IN (abs(-5), 7) AND a = 5", &["1"]).await;
    c.rows("SELECT id FROM t WHERE id IN (1, 2, 3, 4, 5) AND a = 6", &["2"]).await;
}
