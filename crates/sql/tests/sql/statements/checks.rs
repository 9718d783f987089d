//! CHECK constraints.
use crate::common::{Client, database};

#[tokio::test]
async fn rows_against_a_check_are_refused() {
    let mut c = Client::new(&database().await);
    c.ok(
        "CREATE TABLE t (id int PRIMARY KEY CHECK (id > 0), a int CONSTRAINT small CHECK (a < 100), \
         b int, CHECK (t.a < b), CHECK (a + b <> 50))",
        "CREATE TABLE",
    )
    .await;
    c.ok("INSERT INTO t VALUES (1, 10, 20), (2, NULL, 5)", "INSERT 0 2").await;
    let error = c.fails("INSERT INTO t VALUES (3, 1, 2), (4, 30, 20)", "23514").await;
    assert_eq!(error.message, "new row for relation \"t\" violates check constraint \"t_check\"");
    assert_eq!(error.detail.as_deref(), Some("Failing row contains (4, 30, 20)."));
    assert_eq!(error.constraint.as_deref(), Some("t_check"));
    let constraint = async |c: &mut Client, sql: &str| c.fails(sql, "23514").await.constraint.unwrap();
    assert_eq!(constraint(&mut c, "INSERT INTO t VALUES (0, 1, 2)").await, "t_id_check");
    assert_eq!(constraint(&mut c, "UPDATE t SET a = 200, b = 300").await, "small");
    assert_eq!(constraint(&mut c, "UPDATE t SET a = 30 WHERE id = 1").await, "t_check");
    assert_eq!(constraint(&mut c, "INSERT INTO t SELECT 7, 20, 30").await, "t_check1");
    c.ok("UPDATE t SET a = 19 WHERE id = 1", "UPDATE 1").await;
    c.rows("SELECT * FROM t", &["1|19|20", "2|NULL|5"]).await;
    // Definitions change, and the constraints with them.
    c.fails("ALTER TABLE t ADD CONSTRAINT small CHECK (b > 0)", "42710").await;
    c.fails("ALTER TABLE t ADD CHECK (b > 5)", "23514").await;
    c.ok("ALTER TABLE t ADD CONSTRAINT positive CHECK (b > 0)", "ALTER TABLE").await;
    c.ok("ALTER TABLE t RENAME COLUMN b TO \"B b\"", "ALTER TABLE").await;
    assert_eq!(constraint(&mut c, "UPDATE t SET \"B b\" = -5, a = NULL WHERE id = 2").await, "positive");
    c.ok("ALTER TABLE t RENAME CONSTRAINT positive TO above", "ALTER TABLE").await;
    c.ok("ALTER TABLE t DROP CONSTRAINT above", "ALTER TABLE").await;
    c.ok("UPDATE t SET \"B b\" = -5 WHERE id = 2", "UPDATE 1").await;
    c.ok("ALTER TABLE t RENAME TO u", "ALTER TABLE").await;
    assert_eq!(constraint(&mut c, "UPDATE u SET a = 200, \"B b\" = 300").await, "small");
    c.ok("ALTER TABLE u DROP COLUMN \"B b\"", "ALTER TABLE").await;
    c.ok("UPDATE u SET a = 99 WHERE id = 1", "UPDATE 1").await;
    c.fails("UPDATE u SET a = 100", "23514").await;
    c.ok("ALTER TABLE u ADD COLUMN c int DEFAULT 3 CHECK (c > 2)", "ALTER TABLE").await;
    c.fails("ALTER TABLE u ADD COLUMN d int DEFAULT 3 CHECK (d > 3)", "23514").await;
    c.fails("INSERT INTO u VALUES (9, 1, 2)", "23514").await;
    // They survive TRUNCATE, and go with a rollback.
    c.ok("TRUNCATE u", "TRUNCATE TABLE").await;
    c.fails("INSERT INTO u VALUES (9, 1, 2)", "23514").await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("ALTER TABLE u DROP CONSTRAINT u_c_check", "ALTER TABLE").await;
    c.ok("INSERT INTO u VALUES (9, 1, 2)", "INSERT 0 1").await;
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.fails("INSERT INTO u VALUES (9, 1, 2)", "23514").await;
    for (sql, state) in [
        ("CREATE TABLE x (a int CHECK (a))", "42804"),
        ("CREATE TABLE x (a int CHECK (b > 1))", "42703"),
        ("CREATE TABLE x (a int CHECK (a > (SELECT 1)))", "0A000"),
        ("CREATE TABLE x (a int CHECK (max(a) > 1))", "42803"),
        ("CREATE TABLE x (a int, CONSTRAINT c CHECK (a > 1), CONSTRAINT c CHECK (a > 2))", "42710"),
    ] {
        c.fails(sql, state).await;
    }
    c.ok("CREATE TABLE y (a int, CONSTRAINT c CHECK (((a > 1))))", "CREATE TABLE").await;
    c.rows(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'c' AND conname = 'c'",
        &["CHECK ((a > 1))"],
    )
    .await;
}
