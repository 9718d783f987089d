//! SAVEPOINT, ROLLBACK TO, RELEASE: what a block keeps when a statement of it fails.
use crate::common::{Client, database};
use terrace_sql::TxnStatus;

#[tokio::test]
async fn savepoints_nest_and_recover_a_failed_block() {
    let db = database().await;
    let (mut c, mut other) = (Client::new(&db), Client::new(&db));
    c.ok("CREATE TABLE t (id int PRIMARY KEY, v int)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 1), (2, 2)", "INSERT 0 2").await;
    c.fails("SAVEPOINT a", "25P01").await;
    c.fails("ROLLBACK TO a", "25P01").await;
    c.fails("RELEASE a", "25P01").await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("SAVEPOINT a", "SAVEPOINT").await;
    c.ok("UPDATE t SET v = 10 WHERE id = 1", "UPDATE 1").await;
    c.ok("SAVEPOINT B", "SAVEPOINT").await;
    c.ok("UPDATE t SET v = 20 WHERE id = 2", "UPDATE 1").await;
    c.fails("INSERT INTO t SELECT g, 0 FROM generate_series(3, 1, -1) AS g", "23505").await;
    assert_eq!(c.session.status(), TxnStatus::Failed);
    c.fails("SELECT 1", "25P02").await;
    c.fails("SAVEPOINT c", "25P02").await;
    c.fails("ROLLBACK TO nosuch", "3B001").await;
    // What cannot be kept is given back at once; what the savepoint keeps is not.
    other.ok("UPDATE t SET v = 21 WHERE id = 2", "UPDATE 1").await;
    c.ok("ROLLBACK TO SAVEPOINT b", "ROLLBACK").await;
    assert_eq!(c.session.status(), TxnStatus::InTransaction);
    c.rows("SELECT * FROM t", &["1|10", "2|21"]).await;
    c.ok("INSERT INTO t VALUES (3, 3)", "INSERT 0 1").await;
    c.ok("ROLLBACK TO b", "ROLLBACK").await;
    c.ok("INSERT INTO t VALUES (4, 4)", "INSERT 0 1").await;
    c.ok("RELEASE SAVEPOINT b", "RELEASE").await;
    c.fails("ROLLBACK TO b", "3B001").await;
    c.ok("ROLLBACK TO a", "ROLLBACK").await;
    c.rows("SELECT * FROM t", &["1|1", "2|21"]).await;
    // Definitions as well.
    c.ok("ALTER TABLE t ADD COLUMN w int DEFAULT 7", "ALTER TABLE").await;
    c.ok("CREATE TABLE u (a int)", "CREATE TABLE").await;
    c.ok("ROLLBACK TO a", "ROLLBACK").await;
    c.rows("SELECT * FROM t WHERE id = 1", &["1|1"]).await;
    c.ok("UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1").await;
    c.ok("COMMIT", "COMMIT").await;
    other.rows("SELECT * FROM t", &["1|11", "2|21"]).await;
    other.fails("SELECT * FROM u", "42P01").await;
    // A block that failed and is ended anyway is rolled back whole.
    c.ok("BEGIN", "BEGIN").await;
    c.ok("DELETE FROM t", "DELETE 2").await;
    c.ok("SAVEPOINT a", "SAVEPOINT").await;
    c.fails("SELECT 1 / 0 FROM t WHERE 1 / (id - id) = 1 OR nosuch", "42703").await;
    c.ok("COMMIT", "ROLLBACK").await;
    c.rows("SELECT count(*) FROM t", &["2"]).await;
    // Savepoints of one name: the newest counts, and the older is there again when it is released.
    c.ok("BEGIN", "BEGIN").await;
    c.ok("SAVEPOINT s", "SAVEPOINT").await;
    c.ok("INSERT INTO t VALUES (5, 5)", "INSERT 0 1").await;
    c.ok("SAVEPOINT s", "SAVEPOINT").await;
    c.ok("INSERT INTO t VALUES (6, 6)", "INSERT 0 1").await;
    c.ok("ROLLBACK TO s", "ROLLBACK").await;
    c.rows("SELECT count(*) FROM t", &["3"]).await;
    c.ok("RELEASE s", "RELEASE").await;
    c.ok("ROLLBACK TO s", "ROLLBACK").await;
    c.rows("SELECT count(*) FROM t", &["2"]).await;
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.fails("RELEASE s", "25P01").await;
}
