//! What errors tell of rows and keys to a role that may not read them. PostgreSQL 15 was asked.
use crate::common::{Client, database};

async fn detail(c: &mut Client, sql: &str, state: &str) -> String {
    c.fails(sql, state).await.detail.unwrap_or_default()
}

#[tokio::test]
async fn rows_are_shown_as_far_as_they_may_be_read_or_were_written() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE ROLE clerk", "CREATE ROLE").await;
    c.ok("CREATE TABLE t (c1 int, c2 int, c3 int CHECK (c3 < 5), PRIMARY KEY (c1, c2))", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 1, 1), (1, 2, 1)", "INSERT 0 2").await;
    c.ok("GRANT SELECT (c1), INSERT (c1, c2, c3), UPDATE (c1, c2, c3) ON t TO clerk", "GRANT").await;
    c.ok("SET ROLE clerk", "SET").await;
    for (sql, state, told) in [
        ("INSERT INTO t (c1, c2) VALUES (1, 1)", "23505", ""),
        ("UPDATE t SET c2 = 1", "23505", ""),
        ("INSERT INTO t (c1, c2) VALUES (NULL, NULL)", "23502", "Failing row contains (c1, c2) = (null, null)."),
        ("INSERT INTO t (c3) VALUES (NULL)", "23502", "Failing row contains (c1, c3) = (null, null)."),
        ("INSERT INTO t (c1) VALUES (5)", "23502", "Failing row contains (c1) = (5)."),
        ("INSERT INTO t (c2) SELECT 7", "23502", "Failing row contains (c1, c2) = (null, 7)."),
        ("UPDATE t SET c3 = 10", "23514", "Failing row contains (c1, c3) = (1, 10)."),
        (
            "INSERT INTO t (c2, c3) VALUES (1, 9) ON CONFLICT DO NOTHING",
            "23502",
            "Failing row contains (c1, c2, c3) = (null, 1, 9).",
        ),
    ] {
        assert_eq!(detail(&mut c, sql, state).await, told, "{sql}");
    }
    c.ok("RESET ROLE", "RESET").await;
    c.ok("REVOKE SELECT (c1) ON t FROM clerk", "REVOKE").await;
    c.ok("SET ROLE clerk", "SET").await;
    assert_eq!(detail(&mut c, "INSERT INTO t (c2) VALUES (5)", "23502").await, "Failing row contains (c2) = (5).");
    assert_eq!(detail(&mut c, "INSERT INTO t DEFAULT VALUES", "23502").await, "");
    // Who may read the table is told all.
    c.ok("RESET ROLE", "RESET").await;
    c.ok("GRANT SELECT ON t TO clerk", "GRANT").await;
    c.ok("SET ROLE clerk", "SET").await;
    let told = detail(&mut c, "INSERT INTO t (c1, c2) VALUES (1, 1)", "23505").await;
    assert_eq!(told, "Key (c1, c2)=(1, 1) already exists.");
    let told = detail(&mut c, "INSERT INTO t (c1) VALUES (5)", "23502").await;
    assert_eq!(told, "Failing row contains (5, null, null).");
}

#[tokio::test]
async fn keys_that_refer_are_not_shown() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE ROLE clerk", "CREATE ROLE").await;
    c.ok("CREATE TABLE p (k int PRIMARY KEY)", "CREATE TABLE").await;
    c.ok("CREATE TABLE r (k int REFERENCES p DEFERRABLE)", "CREATE TABLE").await;
    c.ok("INSERT INTO p VALUES (1)", "INSERT 0 1").await;
    c.ok("INSERT INTO r VALUES (1)", "INSERT 0 1").await;
    c.ok("GRANT INSERT ON r TO clerk", "GRANT").await;
    c.ok("GRANT DELETE ON p TO clerk", "GRANT").await;
    c.ok("SET ROLE clerk", "SET").await;
    let missing = "Key is not present in table \"p\".";
    assert_eq!(detail(&mut c, "INSERT INTO r VALUES (9)", "23503").await, missing);
    assert_eq!(detail(&mut c, "DELETE FROM p", "23503").await, "Key is still referenced from table \"r\".");
    c.ok("BEGIN", "BEGIN").await;
    c.ok("SET CONSTRAINTS ALL DEFERRED", "SET CONSTRAINTS").await;
    c.ok("INSERT INTO r VALUES (9)", "INSERT 0 1").await;
    assert_eq!(detail(&mut c, "COMMIT", "23503").await, missing);
    c.ok("BEGIN", "BEGIN").await;
    c.ok("SET CONSTRAINTS ALL DEFERRED", "SET CONSTRAINTS").await;
    c.ok("INSERT INTO r VALUES (9)", "INSERT 0 1").await;
    assert_eq!(detail(&mut c, "SET CONSTRAINTS ALL IMMEDIATE", "23503").await, missing);
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.ok("RESET ROLE", "RESET").await;
    c.ok("GRANT SELECT (k) ON r TO clerk", "GRANT").await;
    c.ok("SET ROLE clerk", "SET").await;
    let told = detail(&mut c, "INSERT INTO r VALUES (9)", "23503").await;
    assert_eq!(told, "Key (k)=(9) is not present in table \"p\".");
}
