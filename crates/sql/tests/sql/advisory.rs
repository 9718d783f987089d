//! Advisory locks between sessions beside each other: waits, their ends, deadlocks. What one session after the other
//! sees of them is in the server's tests/slt/advisory.slt.
use crate::common::{Client, Reply, database};
use std::time::Duration;
use terrace_engine::{DataType, EngineError};
use terrace_sql::SqlDatabase;
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_millis(150);

async fn pause() {
    tokio::time::sleep(PATIENCE).await;
}

/// Runs a statement that has to wait.
async fn waiting(mut client: Client, sql: &str) -> JoinHandle<(Client, Result<Reply, EngineError>)> {
    let sql = sql.to_owned();
    let task = tokio::spawn(async move {
        let done = client.run(&sql).await;
        (client, done)
    });
    pause().await;
    assert!(!task.is_finished(), "it waits");
    task
}

async fn locked() -> (SqlDatabase, Client) {
    let db = database().await;
    let mut a = Client::new(&db);
    a.rows("SELECT pg_advisory_lock(1)", &[""]).await;
    (db, a)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_with_the_lock_of_the_other_session() {
    let (db, mut a) = locked().await;
    let task = waiting(Client::new(&db), "SELECT pg_advisory_lock(1)").await;
    a.rows("SELECT pg_advisory_unlock(1)", &["true"]).await;
    let (b, done) = task.await.unwrap();
    assert_eq!(done.unwrap(), Reply::Rows(vec![String::new()]));
    // A session that is dropped, as that of a connection that dies, has none any more.
    let task = waiting(a, "SELECT pg_advisory_xact_lock_shared(1)").await;
    drop(b);
    let (mut a, done) = task.await.unwrap();
    assert_eq!(done.unwrap(), Reply::Rows(vec![String::new()]));
    // Of a transaction, which was that statement.
    let mut c = Client::new(&db);
    c.rows("SELECT pg_try_advisory_lock(1)", &["true"]).await;
    c.ok("BEGIN", "BEGIN").await;
    c.rows("SELECT pg_advisory_xact_lock(2)", &[""]).await;
    drop(c);
    a.rows("SELECT pg_try_advisory_lock(1), pg_try_advisory_lock(2)", &["true|true"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_is_cancelled_and_leaves_nothing() {
    let (db, mut a) = locked().await;
    let b = Client::new(&db);
    let pid = b.session.backend_pid();
    let task = waiting(b, "SELECT pg_advisory_lock(1)").await;
    let mine = a.session.backend_pid();
    a.rows(&format!("SELECT pg_blocking_pids({pid})"), &[&format!("[{mine}]")]).await;
    let waits = format!("SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = {pid}");
    a.rows(&waits, &["Lock|advisory"]).await;
    let locks = "SELECT pid, objid, objsubid, mode, granted FROM pg_locks WHERE locktype = 'advisory' ORDER BY granted";
    let shown = [format!("{pid}|1|1|ExclusiveLock|false"), format!("{mine}|1|1|ExclusiveLock|true")];
    a.rows(locks, &[&shown[0], &shown[1]]).await;
    a.rows(&format!("SELECT pg_cancel_backend({pid})"), &["true"]).await;
    let (mut b, done) = task.await.unwrap();
    assert_eq!(done.unwrap_err().state.0, "57014");
    a.rows("SELECT pg_advisory_unlock(1), pg_try_advisory_lock(1)", &["true|true"]).await;
    a.rows("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", &["1"]).await;
    b.ok("SET lock_timeout = '20ms'", "SET").await;
    b.fails("SELECT pg_advisory_lock(1)", "55P03").await;
    b.rows("SELECT pg_try_advisory_lock(1)", &["false"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cycle_through_rows_tables_and_advisory_locks_is_a_deadlock() {
    let (db, mut a) = locked().await;
    a.ok("CREATE TABLE t (id int PRIMARY KEY, v int)", "CREATE TABLE").await;
    a.ok("INSERT INTO t VALUES (1, 0)", "INSERT 0 1").await;
    // `a` has its lock of an earlier transaction, and asks for what `b` has.
    for wanted in ["UPDATE t SET v = 2 WHERE id = 1", "ALTER TABLE t ADD COLUMN w int"] {
        let mut b = Client::new(&db);
        b.ok("BEGIN", "BEGIN").await;
        b.ok("UPDATE t SET v = 1 WHERE id = 1", "UPDATE 1").await;
        let task = waiting(b, "SELECT pg_advisory_xact_lock(1)").await;
        a.fails(wanted, "40P01").await;
        pause().await;
        assert!(!task.is_finished(), "the session's lock outlives its transaction");
        a.rows("SELECT pg_advisory_unlock(1)", &["true"]).await;
        let (mut b, done) = task.await.unwrap();
        assert!(done.is_ok());
        b.ok("ROLLBACK", "ROLLBACK").await;
        a.rows("SELECT pg_advisory_lock(1)", &[""]).await;
    }
    // The other way round: who asks for the advisory lock closes the cycle.
    let mut b = Client::new(&db);
    b.ok("BEGIN", "BEGIN").await;
    b.ok("UPDATE t SET v = 1 WHERE id = 1", "UPDATE 1").await;
    let task = waiting(a, "UPDATE t SET v = 2 WHERE id = 1").await;
    b.fails("SELECT pg_advisory_lock(1)", "40P01").await;
    let (_, done) = task.await.unwrap();
    assert_eq!(done.unwrap(), Reply::Tag("UPDATE 1".into()));
}

#[tokio::test]
async fn parameters_warnings_and_places() {
    let (db, mut a) = locked().await;
    let types = a.parameters("SELECT pg_advisory_lock($1), pg_try_advisory_lock_shared($2, $3), pg_cancel_backend($4)");
    assert_eq!(types.await, [DataType::Int8, DataType::Int4, DataType::Int4, DataType::Int4]);
    let mut b = Client::new(&db);
    b.rows(
        "SELECT pg_advisory_unlock(1), pg_advisory_unlock_shared(7, 8), pg_terminate_backend(77)",
        &["false|false|false"],
    )
    .await;
    let told: Vec<String> = b.session.notices().take().into_iter().map(|n| format!("{} {n}", n.state.0)).collect();
    let expected = [
        "01000 you don't own a lock of type ExclusiveLock",
        "01000 you don't own a lock of type ShareLock",
        "01000 PID 77 is not a PostgreSQL backend process",
    ];
    assert_eq!(told, expected);
    assert!(b.session.notices().take().is_empty());
    // Where it is called for each row, and where it would depend on something else.
    b.ok("CREATE TABLE t (x int CHECK (pg_advisory_lock(x) IS NOT NULL))", "CREATE TABLE").await;
    b.ok("INSERT INTO t SELECT n FROM generate_series(3, 5) AS g(n)", "INSERT 0 3").await;
    b.rows("SELECT pg_advisory_unlock_all()", &[""]).await;
    b.rows("SELECT x FROM t WHERE x > 3 AND pg_advisory_lock(x) IS NOT NULL", &["4", "5"]).await;
    a.rows("SELECT x FROM t WHERE pg_try_advisory_lock(x)", &["3"]).await;
    for sql in [
        "SELECT CASE WHEN x > 4 THEN pg_advisory_lock(x) END FROM t",
        "SELECT x FROM t WHERE x > 4 OR pg_advisory_lock(x) IS NULL",
        "SELECT x > 4 AND pg_advisory_xact_lock(x) IS NULL FROM t",
        "SELECT * FROM (SELECT 1 WHERE NOT (true AND pg_advisory_lock(1) IS NULL)) AS q",
        // Nobody may read what they answer, and then they would not be called.
        "SELECT x FROM t, pg_advisory_lock(9)",
        "SELECT count(*) FROM pg_try_advisory_lock(9)",
        "SELECT x FROM (SELECT x, pg_try_advisory_lock(9) FROM t) AS q",
        "WITH l AS MATERIALIZED (SELECT pg_advisory_lock(9)) SELECT x FROM t, l",
        "SELECT x FROM t WHERE EXISTS (SELECT pg_try_advisory_lock(9))",
        "INSERT INTO t SELECT 1 FROM pg_advisory_lock(9)",
        "DELETE FROM t USING (SELECT pg_advisory_lock(9)) AS q",
        "SELECT 1 FROM pg_terminate_backend(1)",
        "CREATE VIEW v AS SELECT pg_try_advisory_lock(9) AS l",
        "DECLARE c CURSOR WITH HOLD FOR SELECT x FROM t WHERE pg_try_advisory_lock(x + 100)",
    ] {
        b.fails(sql, "0A000").await;
    }
    b.fails("SELECT coalesce('x', pg_advisory_lock(x)) FROM t", "42804").await;
    a.rows(
        "SELECT objid, mode FROM pg_locks WHERE objid IN (1, 3) AND locktype = 'advisory'",
        &["1|ExclusiveLock", "3|ExclusiveLock"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_ended_runs_nothing_any_more() {
    let (db, mut a) = locked().await;
    let b = Client::new(&db);
    let (pid, canceller) = (b.session.backend_pid(), b.session.canceller());
    let task = waiting(b, "SELECT pg_advisory_lock(1)").await;
    assert!(!canceller.is_terminated());
    a.rows(&format!("SELECT pg_terminate_backend({pid})"), &["true"]).await;
    canceller.terminated().await;
    let (mut b, done) = task.await.unwrap();
    assert_eq!(done.unwrap_err().state.0, "57P01");
    b.fails("SELECT 1", "57P01").await;
    b.fails("CREATE TABLE t (x int)", "57P01").await;
    a.rows("SELECT 1", &["1"]).await;
    a.fails("SELECT pg_terminate_backend(1, 5)", "0A000").await;
}
