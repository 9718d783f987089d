//! Every kind of statement has its place: it is carried out, or says that it is not. What PostgreSQL 15 answers was
//! asked of it.
use crate::common::{Client, database};

async fn client() -> Client {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE").await;
    c.ok("CREATE TABLE u (id int PRIMARY KEY, n int DEFAULT 7)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')", "INSERT 0 3").await;
    c
}

/// Valid SQL of PostgreSQL that Terrace does not carry out is no syntax error.
#[tokio::test]
async fn what_terrace_has_not_says_so() {
    let mut c = client().await;
    for sql in [
        "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CHECKPOINT",
        "CLUSTER t",
        "GRANT EXECUTE ON FUNCTION f() TO public",
        "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE",
        "ALTER TABLE t ALTER COLUMN v TYPE int USING max(id) OVER ()",
        "SELECT pg_typeof(count(*)) FROM t",
        "CREATE INDEX ON t (v bpchar_pattern_ops)",
        "COPY (DELETE FROM t RETURNING id) TO STDOUT",
        "COPY (SELECT id FROM t FOR UPDATE) TO STDOUT",
        "EXPLAIN ANALYZE SELECT id FROM t FOR UPDATE",
        "VACUUM (TRUNCATE) t",
    ] {
        c.fails(sql, "0A000").await;
    }
    for sql in ["VACUUM (NOTHING) t", "EXPLAIN (FAST) SELECT 1", "DECLARE a CURSOR FOR DELETE FROM t"] {
        c.fails(sql, "42601").await;
    }
}

#[tokio::test]
async fn changes_take_queries_of_with() {
    let mut c = client().await;
    let update = "WITH x AS (SELECT 2 AS a, 'zwei' AS b) UPDATE t SET v = x.b FROM x WHERE id = x.a RETURNING id, v";
    c.rows(update, &["2|zwei"]).await;
    c.ok("WITH x AS (SELECT 3 AS a) DELETE FROM t WHERE id IN (SELECT a FROM x)", "DELETE 1").await;
    c.rows("SELECT id, v FROM t ORDER BY id", &["1|one", "2|zwei"]).await;
    c.ok("INSERT INTO t WITH x AS (SELECT 4 AS a) SELECT a, 'four' FROM x", "INSERT 0 1").await;
    // A name of WITH is no table that could be locked.
    c.fails("WITH u AS (SELECT 1 AS id) UPDATE t SET v = '' WHERE id = (SELECT id FROM u FOR UPDATE)", "0A000").await;
    c.ok("WITH x AS (DELETE FROM u RETURNING id) UPDATE t SET v = '' FROM x WHERE t.id = x.id", "UPDATE 0").await;
    c.fails("WITH x AS (DELETE FROM t RETURNING id) UPDATE t SET v = '' FROM x WHERE t.id = x.id", "0A000").await;
}

/// A statement is what it is wherever it stands: in PREPARE, in EXPLAIN, behind a string of others.
#[tokio::test]
async fn parts_of_statements_are_found_in_their_text() {
    let mut c = client().await;
    c.ok("PREPARE p(int) AS /* a */ (SELECT v FROM t WHERE id = $1) UNION ALL (SELECT 'x')", "PREPARE").await;
    c.rows("EXECUTE p(1)", &["one", "x"]).await;
    c.ok("PREPARE d AS DELETE FROM t WHERE id = $1", "PREPARE").await;
    c.ok("EXECUTE d(3)", "DELETE 1").await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("DECLARE k CURSOR FOR (SELECT id FROM t) UNION (SELECT 9) ORDER BY 1", "DECLARE CURSOR").await;
    c.rows("FETCH ALL k", &["1", "2", "9"]).await;
    c.ok("COMMIT", "COMMIT").await;
    assert!(c.run("EXPLAIN (COSTS off) (SELECT id FROM t) UNION ALL (SELECT 9)").await.is_ok());
    c.ok("INSERT INTO u (id) (SELECT id FROM t) UNION (SELECT 5)", "INSERT 0 3").await;
    c.rows("SELECT id, n FROM u ORDER BY id", &["1|7", "2|7", "5|7"]).await;
}

/// What may run in a read-only transaction, and in one that failed.
#[tokio::test]
async fn kinds_know_where_they_may_run() {
    let mut c = client().await;
    for (sql, may) in [
        ("SELECT 1", true),
        ("ANALYZE t", true),
        ("SHOW timezone", true),
        ("PREPARE r AS DELETE FROM t", true),
        ("EXPLAIN DELETE FROM t", true),
        ("EXECUTE r", false),
        ("EXPLAIN ANALYZE DELETE FROM t", false),
        ("SELECT id FROM t FOR UPDATE", false),
        ("DECLARE k CURSOR FOR SELECT id FROM t FOR UPDATE", false),
        ("TRUNCATE t", false),
        ("CREATE SEQUENCE s", false),
    ] {
        c.ok("BEGIN READ ONLY", "BEGIN").await;
        match may {
            true => drop(c.run(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))),
            false => drop(c.fails(sql, "25006").await),
        }
        c.ok("ROLLBACK", "ROLLBACK").await;
    }
    c.ok("BEGIN", "BEGIN").await;
    c.ok("SAVEPOINT a", "SAVEPOINT").await;
    c.fails("SELECT 1 / 0", "22012").await;
    for sql in ["SELECT 1", "SHOW timezone", "CHECKPOINT", "EXECUTE nosuch", "SAVEPOINT b"] {
        c.fails(sql, "25P02").await;
    }
    c.ok("ROLLBACK TO a", "ROLLBACK").await;
    c.ok("COMMIT", "COMMIT").await;
}
