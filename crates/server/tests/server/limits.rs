//! Transactions of several statements, and limits: of time, memory, length and number.
mod devices;
mod memory;

use crate::common::raw::*;
use crate::common::*;
use futures::future::BoxFuture;
use std::time::Duration;
use terrace_server::Limits;
use terrace_sql::SystemSettings;
use tokio_postgres::{Client, NoTls};

async fn table(client: &Client) {
    client
        .batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0), (2, 0)")
        .await
        .unwrap();
}

#[tokio::test]
async fn strings_of_statements_with_blocks_in_them() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute("CREATE TABLE t (a int PRIMARY KEY)").await.unwrap();
    let fails = |sql: &'static str, expected: &'static str| {
        let c = &c;
        async move { assert_eq!(state(c.batch_execute(sql).await), expected, "{sql}") }
    };
    let has = |expected: &'static [&'static str]| {
        let c = &c;
        async move { assert_eq!(rows(c, "SELECT a FROM t ORDER BY a").await.unwrap(), expected) }
    };
    // What a COMMIT ends stays; what follows it is one transaction again.
    fails("INSERT INTO t VALUES (1); COMMIT; INSERT INTO t VALUES (2); INSERT INTO t VALUES (2)", "23505").await;
    has(&["1"]).await;
    // A BEGIN takes in what went before it.
    c.batch_execute("INSERT INTO t VALUES (3); BEGIN; INSERT INTO t VALUES (4)").await.unwrap();
    c.batch_execute("ROLLBACK").await.unwrap();
    has(&["1"]).await;
    c.batch_execute("BEGIN; INSERT INTO t VALUES (5); COMMIT; INSERT INTO t VALUES (6)").await.unwrap();
    has(&["1", "5", "6"]).await;
    // Nothing of a string that cannot be parsed is carried out.
    fails("DELETE FROM t; COMMIT; SELEKT 1", "42601").await;
    has(&["1", "5", "6"]).await;
    fails("SELECT 1; BEGIN ISOLATION LEVEL REPEATABLE READ", "25001").await;
    c.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1; COMMIT; SELECT 1").await.unwrap();
    c.batch_execute("COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    assert_eq!(rows(&c, "SHOW transaction_isolation").await.unwrap(), ["repeatable read"]);
    c.batch_execute("COMMIT").await.unwrap();
    assert_eq!(rows(&c, "SHOW transaction_isolation").await.unwrap(), ["read committed"]);
}

/// A string of several statements is a transaction block to commands that need or refuse one.
#[tokio::test]
async fn commands_of_blocks_in_strings_of_statements() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute("CREATE TABLE t (a int PRIMARY KEY)").await.unwrap();
    for sql in ["VACUUM; SELECT 1", "SELECT 1; COMMIT; VACUUM", "CREATE INDEX CONCURRENTLY ON t (a); SELECT 1"] {
        assert_eq!(state(c.batch_execute(sql).await), "25001", "{sql}");
    }
    for sql in ["LOCK TABLE t; SELECT 1", "DECLARE c CURSOR FOR SELECT 1; FETCH ALL FROM c"] {
        c.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    for sql in ["SAVEPOINT a; SELECT 1", "SELECT 1; COMMIT AND CHAIN"] {
        assert_eq!(state(c.batch_execute(sql).await), "25P01", "{sql}");
    }
    assert_eq!(state(c.batch_execute("SET TRANSACTION READ ONLY; INSERT INTO t VALUES (1)").await), "25006");
    c.batch_execute("INSERT INTO t VALUES (1)").await.unwrap();
    // Defaults are of the transactions that begin later.
    c.batch_execute("SET default_transaction_read_only = on; INSERT INTO t VALUES (2)").await.unwrap();
    assert_eq!(state(c.batch_execute("INSERT INTO t VALUES (3)").await), "25006");
    c.batch_execute("BEGIN READ WRITE; SET default_transaction_read_only = off; INSERT INTO t VALUES (3); COMMIT")
        .await
        .unwrap();
    c.batch_execute("INSERT INTO t VALUES (4)").await.unwrap();
    assert_eq!(rows(&c, "SELECT a FROM t ORDER BY a").await.unwrap(), ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn a_suspended_portal_beside_other_statements() {
    let server = Server::start().await;
    let mut raw = session(&server).await;
    let execute = |portal: &str, rows: u8| packet(b'E', &[portal.as_bytes(), &[0, 0, 0, 0, rows]].concat());
    let pipeline = [
        packet(b'P', b"a\0SELECT * FROM generate_series(1, 5)\0\0\0"),
        packet(b'B', b"p\0a\0\0\0\0\0\0\0"),
        execute("p", 2),
        packet(b'P', b"\0SELECT 7\0\0\0"),
        packet(b'B', b"\0\0\0\0\0\0\0\0"),
        execute("", 0),
        execute("p", 2),
        execute("p", 2),
        execute("p", 2),
        packet(b'S', b""),
    ];
    raw_send(&mut raw, &pipeline.concat()).await;
    assert_eq!(kinds(&until_ready(&mut raw).await), "12DDs12DCDDsDCCZ");
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_take_too_long() {
    let server = Server::start().await;
    let c = server.client().await;
    let endless = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b";
    c.batch_execute("SET statement_timeout = '150ms'").await.unwrap();
    assert_eq!(rows(&c, "SHOW statement_timeout").await.unwrap(), ["150ms"]);
    for _ in 0..3 {
        let error = soon(rows(&c, endless)).await.unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!((error.code().code(), error.message()), ("57014", "canceling statement due to statement timeout"));
        // Pauses do not count.
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(rows(&c, "SELECT 1").await.unwrap(), ["1"]);
    }
    c.batch_execute("SET statement_timeout = 0").await.unwrap();
    for (set, shown) in [("1000", "1s"), ("'90s'", "90s"), ("'2min'", "2min"), ("'0.5h'", "30min"), ("0", "0")] {
        c.batch_execute(&format!("SET statement_timeout = {set}")).await.unwrap();
        assert_eq!(rows(&c, "SHOW statement_timeout").await.unwrap(), [shown]);
    }
    assert_eq!(state(c.batch_execute("SET statement_timeout = 'soon'").await), "22023");
    assert_eq!(state(c.batch_execute("SET statement_timeout = -1").await), "22023");
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_that_take_too_long() {
    let server = Server::start().await;
    let (a, b) = (server.client().await, server.client().await);
    table(&a).await;
    a.batch_execute("BEGIN; UPDATE t SET v = 1 WHERE id = 1").await.unwrap();
    b.batch_execute("SET lock_timeout = '50ms'").await.unwrap();
    assert_eq!(state(soon(b.batch_execute("UPDATE t SET v = 2 WHERE id = 1")).await), "55P03");
    assert_eq!(state(soon(b.batch_execute("DROP TABLE t")).await), "55P03");
    soon(b.batch_execute("UPDATE t SET v = 2 WHERE id = 2")).await.unwrap();
    a.batch_execute("COMMIT").await.unwrap();
    soon(b.batch_execute("UPDATE t SET v = 2 WHERE id = 1")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_transactions_end() {
    let server = Server::start().await;
    let (a, b) = (server.client().await, server.client().await);
    table(&b).await;
    a.batch_execute("SET idle_in_transaction_session_timeout = '100ms'").await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    a.batch_execute("BEGIN; UPDATE t SET v = 1 WHERE id = 1").await.expect("idle outside of a transaction is fine");
    soon(b.batch_execute("UPDATE t SET v = v + 10 WHERE id = 1")).await.unwrap();
    assert_eq!(rows(&b, "SELECT v FROM t WHERE id = 1").await.unwrap(), ["10"]);
    assert!(a.batch_execute("COMMIT").await.is_err());
    let mut raw = session(&server).await;
    raw_query(&mut raw, "SET idle_in_transaction_session_timeout = 50; BEGIN").await;
    until_ready(&mut raw).await;
    assert_eq!(error_state(&messages(&mut raw).await), Some("25P03".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancels_of_waits() {
    let server = Server::start().await;
    let (a, b) = (server.client().await, server.client().await);
    table(&a).await;
    a.batch_execute("BEGIN; UPDATE t SET v = 1 WHERE id = 1").await.unwrap();
    for sql in ["UPDATE t SET v = v + 1", "DELETE FROM t", "DROP TABLE t", "CREATE INDEX ON t (v)"] {
        let mut statement = Box::pin(b.batch_execute(sql));
        waits(&mut statement).await;
        b.cancel_token().cancel_query(NoTls).await.unwrap();
        assert_eq!(state(soon(statement).await), "57014", "{sql}");
    }
    a.batch_execute("COMMIT").await.unwrap();
    assert_eq!(rows(&b, "SELECT v FROM t ORDER BY id").await.unwrap(), ["1", "0"]);
}

/// Settings that take for ever.
struct Endless;

impl SystemSettings for Endless {
    fn alter(&self, _: String, _: Option<String>) -> BoxFuture<'_, terrace_engine::Result<()>> {
        Box::pin(std::future::pending())
    }
    fn reload(&self) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn cancels_of_statements_outside_of_transactions() {
    let db = database().await;
    db.set_system(std::sync::Arc::new(Endless));
    let server = Server::of(db, Limits::default()).await;
    let c = server.client().await;
    for sql in ["ALTER SYSTEM SET flash_tier.size = '1MB'", "SELECT pg_sleep(100000)"] {
        let mut statement = Box::pin(c.batch_execute(sql));
        waits(&mut statement).await;
        c.cancel_token().cancel_query(NoTls).await.unwrap();
        assert_eq!(state(soon(statement).await), "57014", "{sql}");
        c.batch_execute("SET statement_timeout = '30ms'").await.unwrap();
        assert_eq!(state(soon(c.batch_execute(sql)).await), "57014", "{sql}");
        c.batch_execute("RESET statement_timeout").await.unwrap();
    }
    assert_eq!(rows(&c, "SELECT 1").await.unwrap(), ["1"]);
    // Purge has much to do as soon as nobody sees the rows any more; what it does within the time is not ours to say.
    let reader = server.client().await;
    c.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    let mut cancelled = false;
    for _ in 0..10 {
        c.batch_execute("INSERT INTO t SELECT * FROM generate_series(1, 20000)").await.unwrap();
        reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t").await.unwrap();
        c.batch_execute("DELETE FROM t; SET statement_timeout = 1").await.unwrap();
        reader.batch_execute("COMMIT").await.unwrap();
        let vacuum = soon(c.batch_execute("VACUUM")).await;
        soon(c.batch_execute("SET statement_timeout = 0")).await.unwrap();
        if vacuum.is_err() {
            assert_eq!(state(vacuum), "57014");
            cancelled = true;
            break;
        }
    }
    assert!(cancelled, "VACUUM was never cancelled");
    c.batch_execute("VACUUM").await.unwrap();
    assert_eq!(rows(&c, "SELECT count(*) FROM t").await.unwrap(), ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_vanishes_waits_for_nothing() {
    let server = Server::start().await;
    let (a, b) = (server.client().await, server.client().await);
    table(&a).await;
    a.batch_execute("BEGIN; UPDATE t SET v = 1 WHERE id = 1").await.unwrap();
    let mut raw = session(&server).await;
    // It holds row 2 and waits for row 1.
    raw_query(&mut raw, "UPDATE t SET v = 7 WHERE id = 2; UPDATE t SET v = 7 WHERE id = 1").await;
    tokio::time::sleep(PATIENCE).await;
    drop(raw);
    soon(b.batch_execute("UPDATE t SET v = 2 WHERE id = 2")).await.unwrap();
    a.batch_execute("COMMIT").await.unwrap();
    assert_eq!(rows(&b, "SELECT v FROM t ORDER BY id").await.unwrap(), ["1", "2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_and_one_too_many() {
    let server = Server::with(Limits { max_connections: 150, ..Limits::default() }).await;
    let mut clients = vec![];
    for _ in 0..150 {
        clients.push(server.client().await);
    }
    table(&clients[0]).await;
    let error = server.connect(&server.config()).await.map(drop).unwrap_err();
    assert_eq!(error.code().unwrap().code(), "53300");
    let all = clients.iter().map(|c| c.batch_execute("UPDATE t SET v = v + 1 WHERE id = 1"));
    for done in soon(futures::future::join_all(all)).await {
        done.unwrap();
    }
    assert_eq!(rows(&clients[149], "SELECT v FROM t WHERE id = 1").await.unwrap(), ["150"]);
    drop(clients.pop());
    tokio::time::sleep(PATIENCE).await;
    assert_eq!(rows(&server.client().await, "SELECT 1").await.unwrap(), ["1"], "a place was given back");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_limited() {
    let server = Server::of(database().await.limit_memory(4 << 20), Limits::default()).await;
    let c = server.client().await;
    let groups = "SELECT count(*) FROM (SELECT v::bigint * 7919 % 399989 AS k, count(*) \
                  FROM generate_series(1, 400000) g(v) GROUP BY 1) x";
    assert_eq!(state(rows(&c, groups).await), "53200");
    c.batch_execute("CREATE TABLE t (v int, w text)").await.unwrap();
    // Stored while the series is read; what the target itself gives is collected.
    c.batch_execute("INSERT INTO t SELECT v, repeat('x', 100) FROM generate_series(1, 50000) g(v)").await.unwrap();
    assert_eq!(state(c.batch_execute("INSERT INTO t SELECT * FROM t").await), "53200");
    assert_eq!(rows(&c, "SELECT count(*) FROM t").await.unwrap(), ["50000"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_holds_nobody_up() {
    let server = Server::start().await;
    let mut raw = session(&server).await;
    raw_query(&mut raw, "COPY (SELECT * FROM generate_series(1, 5000000)) TO STDOUT").await;
    assert_eq!(message(&mut raw).await.unwrap().0, b'H');
    tokio::time::sleep(PATIENCE).await;
    let c = server.client().await;
    assert_eq!(soon(rows(&c, "SELECT 1")).await.unwrap(), ["1"]);
    drop(raw);
    soon(server.stop()).await.unwrap();
}

#[tokio::test]
async fn statements_that_are_too_long() {
    let server = Server::with(Limits { max_statement: 1000, max_message: 10_000, ..Limits::default() }).await;
    let c = server.client().await;
    let long = |n: usize| format!("SELECT '{}'", "x".repeat(n));
    assert_eq!(state(c.batch_execute(&long(2000)).await), "54000");
    assert_eq!(state(c.prepare(&long(2000)).await.map(drop)), "54000");
    assert_eq!(rows(&c, "SELECT 1").await.unwrap(), ["1"], "the connection goes on");
    assert_eq!(state(c.batch_execute(&long(20_000)).await), "54000", "a message over its limit is passed over");
    assert_eq!(rows(&c, "SELECT 1").await.unwrap(), ["1"], "the connection goes on");
}
