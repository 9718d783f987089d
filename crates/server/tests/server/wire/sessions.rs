//! What other sessions do to one: its end, and locks that go with it. And what is told of a result's columns.
use crate::common::raw::*;
use crate::common::{PATIENCE, Server, background, rows, soon, state, waits};
use std::pin::pin;
use std::time::Duration;
use tokio_postgres::Client;

async fn pid(client: &Client) -> String {
    rows(client, "SELECT pg_backend_pid()").await.unwrap().remove(0)
}

/// Fields of an ErrorResponse or a NoticeResponse.
fn told(messages: &Messages, kind: u8) -> Vec<String> {
    let of = |body: &[u8]| {
        let fields = body.split(|b| *b == 0).filter(|f| matches!(f.first(), Some(b'S' | b'C' | b'M')));
        fields.map(|f| String::from_utf8_lossy(&f[1..]).into_owned()).collect::<Vec<_>>().join(" ")
    };
    messages.iter().filter(|(k, _)| *k == kind).map(|(_, body)| of(body)).collect()
}

const ENDED: &str = "FATAL 57P01 terminating connection due to administrator command";

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_terminated() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute("CREATE TABLE t (x int PRIMARY KEY); INSERT INTO t VALUES (1)").await.unwrap();
    // While it waits for its client, in a transaction that has locks.
    let mut idle = session(&server).await;
    raw_query(&mut idle, "BEGIN; DELETE FROM t; SELECT pg_advisory_lock(1); SELECT pg_backend_pid()").await;
    let answers = until_ready(&mut idle).await;
    let (_, row) = answers.iter().rfind(|(kind, _)| *kind == b'D').unwrap();
    let idle_pid = String::from_utf8_lossy(&row[6..]).into_owned();
    let other = server.client().await;
    let mut deletion = pin!(rows(&other, "SELECT pg_advisory_lock(1); DELETE FROM t"));
    waits(&mut deletion).await;
    assert_eq!(rows(&c, &format!("SELECT pg_terminate_backend({idle_pid})")).await.unwrap(), ["t"]);
    assert_eq!(told(&messages(&mut idle).await, b'E'), [ENDED]);
    soon(deletion).await.unwrap();
    // While a statement runs.
    let busy = server.client().await;
    let busy_pid = pid(&busy).await;
    let sleeping = background(async move { busy.batch_execute("SELECT pg_sleep(100)").await });
    assert!(tokio::time::timeout(PATIENCE, std::future::pending::<()>()).await.is_err());
    assert_eq!(rows(&c, &format!("SELECT pg_terminate_backend({busy_pid})")).await.unwrap(), ["t"]);
    let error = soon(sleeping).await.unwrap().unwrap_err();
    assert_eq!(error.as_db_error().map(|e| (e.code().code(), e.severity())), Some(("57P01", "FATAL")));
    // Itself, whatever it has sent behind that.
    let mut own = session(&server).await;
    raw_query(&mut own, "SELECT pg_terminate_backend(pg_backend_pid())").await;
    raw_query(&mut own, "INSERT INTO t VALUES (2)").await;
    assert_eq!(told(&messages(&mut own).await, b'E'), [ENDED]);
    assert_eq!(rows(&c, "SELECT count(*) FROM t").await.unwrap(), ["0"]);
    // A client that takes no answers.
    let mut stuck = session(&server).await;
    raw_query(&mut stuck, "SELECT pg_backend_pid()").await;
    let answers = until_ready(&mut stuck).await;
    let (_, row) = answers.iter().find(|(kind, _)| *kind == b'D').unwrap();
    let stuck_pid = String::from_utf8_lossy(&row[6..]).into_owned();
    raw_query(&mut stuck, "SELECT repeat('x', 1000000) FROM generate_series(1, 1000)").await;
    assert!(tokio::time::timeout(PATIENCE, std::future::pending::<()>()).await.is_err());
    assert_eq!(rows(&c, &format!("SELECT pg_terminate_backend({stuck_pid})")).await.unwrap(), ["t"]);
    let gone = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {stuck_pid}");
    let end = async { while rows(&c, &gone).await.unwrap() != ["0"] {} };
    soon(end).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn warnings_of_functions_are_told() {
    let server = Server::start().await;
    let mut raw = session(&server).await;
    raw_query(&mut raw, "SELECT pg_advisory_unlock(1)").await;
    let answers = until_ready(&mut raw).await;
    assert_eq!(told(&answers, b'N'), ["WARNING 01000 you don't own a lock of type ExclusiveLock"]);
    assert_eq!(kinds(&answers), "TNDCZ");
    raw_query(&mut raw, "CREATE TABLE t AS SELECT pg_terminate_backend(77777) AS x").await;
    let answers = until_ready(&mut raw).await;
    assert_eq!(told(&answers, b'N'), ["WARNING 01000 PID 77777 is not a PostgreSQL backend process"]);
    raw_query(&mut raw, "SELECT 1").await;
    assert_eq!(kinds(&until_ready(&mut raw).await), "TDCZ");
}

/// A connection that dies gives up the session's locks.
#[tokio::test(flavor = "multi_thread")]
async fn advisory_locks_go_with_their_connection() {
    let server = Server::start().await;
    let mut dying = session(&server).await;
    raw_query(&mut dying, "SELECT pg_advisory_lock(1)").await;
    until_ready(&mut dying).await;
    let c = server.client().await;
    let mut asking = pin!(rows(&c, "SELECT pg_advisory_lock(1)"));
    waits(&mut asking).await;
    drop(dying);
    assert_eq!(soon(asking).await.unwrap(), [""]);
    // Who waits for nobody does not wait: the next one gets the lock.
    let mut waiting = session(&server).await;
    raw_query(&mut waiting, "SELECT pg_advisory_lock(1)").await;
    drop(waiting);
    let d = server.client().await;
    let mut asking = pin!(rows(&d, "SELECT pg_advisory_lock(1)"));
    waits(&mut asking).await;
    assert_eq!(rows(&c, "SELECT pg_advisory_unlock(1)").await.unwrap(), ["t"]);
    assert_eq!(soon(asking).await.unwrap(), [""]);
}

/// Each session has its own, with one name; they go with the session, also where the connection is cut.
#[tokio::test(flavor = "multi_thread")]
async fn temporary_tables_are_of_one_session() {
    let server = Server::start().await;
    let (one, two) = (server.client().await, server.client().await);
    one.batch_execute("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (0)").await.unwrap();
    for (c, a) in [(&one, 1), (&two, 2)] {
        // The same text, prepared before there is a temporary table, and run when there is one.
        let select = c.prepare("SELECT a FROM t WHERE a >= 0").await.unwrap();
        let by_key = c.prepare("SELECT a FROM t WHERE a = $1").await.unwrap();
        assert_eq!(c.query_one(&by_key, &[&0]).await.unwrap().get::<_, i32>(0), 0);
        let made = format!("CREATE TEMP TABLE t (a int PRIMARY KEY, n serial); INSERT INTO t VALUES ({a})");
        c.batch_execute(&made).await.unwrap();
        assert_eq!(c.query_one(&select, &[]).await.unwrap().get::<_, i32>(0), a);
        assert!(c.query_opt(&by_key, &[&0]).await.unwrap().is_none());
        assert_eq!(c.query_one(&by_key, &[&a]).await.unwrap().get::<_, i32>(0), a);
    }
    let space = "SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()";
    let other = rows(&two, space).await.unwrap().remove(0);
    assert_ne!(rows(&one, space).await.unwrap(), [other.as_str()]);
    assert_eq!(state(one.simple_query(&format!("SELECT * FROM {other}.t")).await), "42P01");
    assert_eq!(rows(&one, "SELECT a FROM public.t").await.unwrap(), ["0"]);
    let third = server.client().await;
    assert_eq!(rows(&third, "SELECT * FROM t").await.unwrap(), ["0"]);
    let count = "SELECT count(*) FROM pg_class WHERE relpersistence = 't'";
    assert_eq!(rows(&third, count).await.unwrap(), ["6"]);
    // One leaves; the connection of the other is cut within a transaction.
    two.batch_execute("BEGIN; CREATE TEMP TABLE u (a int); INSERT INTO t VALUES (3)").await.unwrap();
    drop((one, two));
    soon(async {
        while rows(&third, count).await.unwrap() != ["0"] {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(rows(&third, "SELECT * FROM t").await.unwrap(), ["0"]);
}
