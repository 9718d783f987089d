//! Views of what goes on, as a client reads them.
use crate::common::{Client, Reply, database, database_archived};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use terrace_sql::SqlDatabase;
use terrace_sql::observe::LogOptions;
use terrace_storage::log::archive::Archive;

async fn pause() {
    #[expect(clippy::disallowed_methods, reason = "tests run on tokio")]
    tokio::time::sleep(Duration::from_millis(150)).await;
}

async fn filled() -> (SqlDatabase, Client) {
    let db = database().await;
    let mut a = Client::new(&db);
    a.ok("CREATE TABLE t (id int PRIMARY KEY, v int, note text)", "CREATE TABLE").await;
    a.ok("INSERT INTO t SELECT x, 0, 'n' FROM generate_series(1, 1000) AS g(x)", "INSERT 0 1000").await;
    (db, a)
}

async fn cells(client: &mut Client, sql: &str) -> Vec<Vec<String>> {
    match client.run(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}")) {
        Reply::Rows(rows) => rows.iter().map(|row| row.split('|').map(str::to_owned).collect()).collect(),
        other => panic!("{sql}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_show_what_they_run() {
    let (db, mut a) = filled().await;
    let mut b = Client::new(&db);
    b.ok("SET application_name = 'reports'", "SET").await;
    b.ok("BEGIN", "BEGIN").await;
    b.rows("SELECT count(*) FROM t", &["1000"]).await;
    let shown = "SELECT state, query, usename, application_name, xact_start IS NOT NULL, wait_event \
                 FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
    a.rows(shown, &["idle in transaction|SELECT count(*) FROM t|terrace|reports|true|ClientRead"]).await;
    b.fails("SELECT nothing", "42703").await;
    a.rows("SELECT state FROM pg_stat_activity WHERE application_name = 'reports'", &["idle in transaction (aborted)"])
        .await;
    b.ok("ROLLBACK", "ROLLBACK").await;
    a.rows(shown, &["idle|ROLLBACK|terrace|reports|false|ClientRead"]).await;
    a.rows("SELECT state FROM pg_stat_activity WHERE pid = pg_backend_pid()", &["active"]).await;
    drop(b);
    a.rows("SELECT count(*) FROM pg_stat_activity", &["1"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_sessions_name_their_blockers() {
    let (db, mut a) = filled().await;
    let (mut b, mut c) = (Client::new(&db), Client::new(&db));
    let pid = cells(&mut a, "SELECT pg_backend_pid()").await.remove(0).remove(0);
    let waiter = cells(&mut b, "SELECT pg_backend_pid()").await.remove(0).remove(0);
    a.ok("BEGIN", "BEGIN").await;
    a.ok("UPDATE t SET v = 1 WHERE id = 5", "UPDATE 1").await;
    db.observed.set_log(LogOptions { min_duration: Some(Duration::ZERO), lock_wait: Some(Duration::from_millis(1)) });
    #[expect(clippy::disallowed_methods, reason = "tests run on tokio")]
    let task = tokio::spawn(async move { b.run("UPDATE t SET v = 2 WHERE id = 5").await });
    pause().await;
    let waits = cells(
        &mut c,
        "SELECT pid, wait_event_type, wait_event, state FROM pg_stat_activity \
                               WHERE state = 'active' AND pid <> pg_backend_pid()",
    )
    .await;
    assert_eq!(waits, [[waiter.as_str(), "Lock", "transactionid", "active"]]);
    let blocking = cells(&mut c, &format!("SELECT pg_blocking_pids({waiter})")).await;
    assert_eq!(blocking, [[format!("[{pid}]")]]);
    let blocked =
        cells(&mut c, "SELECT pid, blocked_by, waiting_s > 0 FROM terrace.transactions WHERE blocked_by IS NOT NULL");
    assert_eq!(blocked.await, [[waiter.as_str(), pid.as_str(), "true"]]);
    let waits = format!("SELECT locktype, mode, granted FROM pg_locks WHERE pid = {waiter} AND NOT granted");
    assert_eq!(cells(&mut c, &waits).await, [["transactionid", "ShareLock", "false"]]);
    let held = format!("SELECT mode FROM pg_locks WHERE pid = {pid} AND relation = 't'::regclass AND granted");
    assert_eq!(cells(&mut c, &held).await, [["RowExclusiveLock"]]);
    let status = cells(&mut c, "SELECT sessions, waiting FROM terrace.status").await;
    assert_eq!(status, [["3", "1"]]);
    a.ok("COMMIT", "COMMIT").await;
    assert_eq!(task.await.unwrap().unwrap(), Reply::Tag("UPDATE 1".into()));
    c.rows("SELECT count(*) FROM pg_locks WHERE NOT granted", &["0"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_are_counted_by_their_text() {
    let (_db, mut a) = filled().await;
    a.run("SELECT pg_stat_statements_reset()").await.unwrap();
    for id in 1..=3 {
        a.ok(&format!("UPDATE t SET v = v + 1 WHERE id = {id}"), "UPDATE 1").await;
    }
    a.rows("SELECT count(*) FROM t WHERE v = 1", &["3"]).await;
    a.fails("SELECT 1 / (v - v) FROM t", "22012").await;
    let totals = "SELECT query, calls, failed, rows, total_ms > 0, pages_hit > 0, pages_read FROM terrace.statements \
                  WHERE query LIKE '%FROM t%' OR query LIKE 'UPDATE%' ORDER BY query";
    let found = cells(&mut a, totals).await;
    assert_eq!(
        found,
        [
            ["SELECT $1 / (v - v) FROM t", "1", "1", "0", "true", "true", "0"],
            ["SELECT count(*) FROM t WHERE v = $1", "1", "0", "1", "true", "true", "0"],
            ["UPDATE t SET v = v + $1 WHERE id = $2", "3", "0", "3", "true", "true", "0"],
        ]
    );
    let calls = "SELECT calls, rows FROM pg_stat_statements WHERE query LIKE 'UPDATE%'";
    a.rows(calls, &["3|3"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_and_indexes_are_counted() {
    let (_db, mut a) = filled().await;
    a.rows("SELECT v FROM t WHERE id = 7", &["0"]).await;
    a.rows("SELECT count(*) FROM t WHERE note = 'n'", &["1000"]).await;
    a.ok("DELETE FROM t WHERE id = 9", "DELETE 1").await;
    let table =
        "SELECT name, scans, rows_read, index_scans, inserted, updated, deleted, bytes >= 8192 FROM terrace.tables";
    assert_eq!(cells(&mut a, table).await, [["t", "1", "1000", "2", "1000", "0", "1", "true"]]);
    let index = "SELECT indexrelname, idx_scan, idx_tup_read FROM pg_stat_user_indexes";
    assert_eq!(cells(&mut a, index).await, [["t_pkey", "2", "2"]]);
    a.rows("SELECT seq_scan, n_tup_ins, n_tup_del FROM pg_stat_user_tables WHERE relname = 't'", &["1|1000|1"]).await;
    a.rows("SELECT pg_total_relation_size('t'::regclass) > pg_relation_size('t'::regclass)", &["true"]).await;
    a.rows("SELECT xact_commit > 0, tup_inserted FROM pg_stat_database", &["true|1000"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_is_shown() {
    let (_db, mut a) = filled().await;
    a.rows("SELECT resident > 0, hits > 0, capacity FROM terrace.pool", &["true|true|4096"]).await;
    a.rows(
        "SELECT end_lsn >= durable_lsn, durable_lsn > 0, redo_bytes < redo_bound FROM terrace.log",
        &["true|true|true"],
    )
    .await;
    a.rows("SELECT writes > 0, write_bytes > 0, syncs > 0 FROM terrace.io WHERE purpose = 'log'", &["true|true|true"])
        .await;
    a.rows(
        "SELECT bytes > 0, bytes < limit_bytes, snapshots_cancelled, purge_failures FROM terrace.undo",
        &["true|true|0|0"],
    )
    .await;
    a.rows("SELECT archive, archived_lsn, unarchived_segments FROM terrace.log", &["none|NULL|NULL"]).await;
    a.rows("SELECT redo_bound > 0, recorded >= 0 FROM terrace.checkpoints", &["true|true"]).await;
    a.rows("SELECT count(*) > 0 FROM terrace.latencies WHERE name = 'commit wait'", &["true"]).await;
    let percentiles =
        "SELECT p50_ms <= p99_ms, count > 0, mean_ms >= 0 FROM terrace.percentiles WHERE name = 'commit wait'";
    a.rows(percentiles, &["true|true|true"]).await;
    a.rows("SELECT state, hits IS NULL, life_days IS NULL FROM terrace.flash_tier", &["none|true|true"]).await;
    a.rows("SELECT committed > 0, failed, active FROM terrace.status", &["true|0|1"]).await;
    a.fails("SELECT * FROM terrace.nothing", "42P01").await;
    a.fails("CREATE TABLE terrace.mine (id int)", "42501").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_statement_sees_what_is_so_when_it_runs() {
    let (db, mut a) = filled().await;
    let statement = a.session.prepare("SELECT count(*) FROM pg_stat_activity", &[]).await.unwrap();
    let mut b = Some(Client::new(&db));
    for expected in ["2", "1"] {
        let outcome = a.session.execute(&statement, vec![]).await.unwrap();
        let terrace_sql::Outcome::Rows { mut stream, .. } = outcome else { panic!("rows") };
        let batch = futures::StreamExt::next(&mut stream).await.unwrap().unwrap();
        let count = datafusion::arrow::util::display::array_value_to_string(batch.column(0), 0).unwrap();
        assert_eq!(count, expected);
        b = None;
    }
    drop(b);
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_are_told_apart() {
    let (db, mut a) = filled().await;
    a.ok("CREATE ROLE clerk LOGIN", "CREATE ROLE").await;
    a.ok("GRANT SELECT ON t TO clerk", "GRANT").await;
    a.ok("CREATE ROLE staff ROLE clerk", "CREATE ROLE").await;
    a.ok("ALTER GROUP staff DROP USER clerk", "ALTER ROLE").await;
    a.ok("GRANT staff TO clerk", "GRANT ROLE").await;
    let members = "SELECT pg_get_userbyid(member), admin_option FROM pg_auth_members WHERE grantor = 10 AND \
                   member NOT IN (SELECT oid FROM pg_roles WHERE rolname LIKE 'pg%')";
    a.rows(members, &["clerk|false"]).await;
    a.ok("REVOKE staff FROM clerk", "REVOKE ROLE").await;
    let mut clerk = Client::of(&db, "clerk");
    a.rows("SELECT count(*) FROM t WHERE v = 7", &["0"]).await;
    clerk.rows("SELECT count(*) FROM t WHERE v = 7", &["0"]).await;
    clerk.rows("SELECT count(*) FROM t WHERE v = 8", &["0"]).await;
    let sessions =
        "SELECT u.usename, pg_get_userbyid(s.usesysid) FROM pg_stat_activity s JOIN pg_user u USING (usesysid)";
    a.rows(sessions, &["clerk|clerk", "terrace|terrace"]).await;
    let by_role =
        "SELECT usename, calls FROM pg_stat_statements JOIN pg_user ON userid = usesysid WHERE query LIKE '%v = $1'";
    a.rows(by_role, &["clerk|2", "terrace|1"]).await;
    a.rows("SELECT calls, rows FROM terrace.statements WHERE query LIKE '%v = $1'", &["3|3"]).await;
    a.fails("DROP ROLE clerk", "2BP01").await;
    a.ok("REVOKE ALL ON t FROM clerk", "REVOKE").await;
    a.ok("DROP ROLE clerk", "DROP ROLE").await;
    a.rows("SELECT usesysid IS NULL FROM pg_stat_activity WHERE usename = 'clerk'", &["true"]).await;
    a.rows("SELECT pg_get_userbyid(1), pg_get_userbyid(10)", &["unknown (OID=1)|terrace"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_lags_is_shown() {
    let away = Arc::new(AtomicBool::new(true));
    let is_away = away.clone();
    let archive = Archive::new(move |_, _| {
        let away = is_away.load(Ordering::SeqCst);
        async move { if away { Err("it is away".to_owned()) } else { Ok(()) } }
    });
    let db = database_archived(Some(archive)).await;
    let mut a = Client::new(&db);
    a.ok("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE").await;
    a.ok("INSERT INTO t SELECT x, repeat('x', 1000) FROM generate_series(1, 4000) AS g(x)", "INSERT 0 4000").await;
    let shown = "SELECT archive, unarchived_segments > 2, unarchived_segments = 0, archived_lsn, last_archive_error, \
                 archive_failures > 0, last_archive_failure IS NOT NULL FROM terrace.log";
    while cells(&mut a, shown).await != [["failing", "true", "false", "0", "it is away", "true", "true"]] {
        pause().await;
    }
    away.store(false, Ordering::SeqCst);
    let caught_up =
        "SELECT archive, unarchived_segments, archived_lsn > 3 * segment_size, last_archive_error FROM terrace.log";
    while cells(&mut a, caught_up).await != [["on", "0", "true", "it is away"]] {
        pause().await;
    }
}
