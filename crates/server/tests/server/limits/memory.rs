//! What a session takes by the allocator's count, and large values on their way.
use crate::common::*;
use std::alloc::System;
use terrace_env::memory::{Counting, Limit};
use terrace_server::Limits;

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting(System);

/// A window's operator keeps all rows and asks nobody: the allocator's count ends the statement, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn f3_what_nobody_asks_for_is_counted() {
    let mut db = database().await.limit_memory(16 << 20);
    db.memory = Limit::new(Some(32 << 20));
    let server = Server::of(db, Limits::default()).await;
    let c = server.client().await;
    let window = "SELECT sum(all_of + n) FROM (SELECT g.n, count(*) OVER () AS all_of \
                  FROM generate_series(1::bigint, 6000000) AS g(n)) w";
    assert_eq!(state(rows(&c, window).await), "53200");
    let small = window.replace("6000000", "2000");
    assert_eq!(rows(&c, &small).await.unwrap(), ["6001000"], "what it took was given back");
    // Rows on their way are given back as they go: a result may be far larger than memory.
    let sent = rows(&c, "SELECT g.n, repeat('x', 1000) FROM generate_series(1, 100000) AS g(n)").await.unwrap();
    assert_eq!(sent.len(), 100_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn f3_large_values_arrive_whole() {
    let server = Server::of(database().await.limit_memory(256 << 20), Limits::default()).await;
    let c = server.client().await;
    let text = "SELECT 1, repeat('abc', 7000000), 'between', lpad('ä', 300000, 'ö'), NULL";
    let row = c.query_one(text, &[]).await.unwrap();
    assert_eq!(row.get::<_, String>(1), "abc".repeat(7_000_000));
    assert_eq!(row.get::<_, String>(2), "between");
    assert_eq!(row.get::<_, String>(3), format!("{}ä", "ö".repeat(299_999)));
    assert_eq!(rows(&c, text).await.unwrap()[0].len(), row_length());
    c.batch_execute("CREATE TABLE b (id int PRIMARY KEY, v bytea)").await.unwrap();
    let bytes: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    c.execute("INSERT INTO b VALUES (1, $1)", &[&bytes]).await.unwrap();
    assert_eq!(c.query_one("SELECT v, id FROM b WHERE v IS NOT NULL", &[]).await.unwrap().get::<_, Vec<u8>>(0), bytes);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(rows(&c, "SELECT v FROM b WHERE v IS NOT NULL").await.unwrap(), [format!("\\x{hex}")]);
}

/// `1|abc...|between|ö...ä|NULL`, in bytes.
fn row_length() -> usize {
    2 + 21_000_000 + 1 + 7 + 1 + 600_000 + 5
}

/// A parameter is copied on its way to its page (here, pages are in memory too); the default budget has room for that.
#[tokio::test(flavor = "multi_thread")]
async fn f3_long_parameters_have_room() {
    let server = Server::of(database().await.limit_memory(128 << 20), Limits::default()).await;
    let c = server.client().await;
    c.batch_execute("CREATE TABLE b (id int PRIMARY KEY, v bytea)").await.unwrap();
    let bytes = vec![7u8; 20 << 20];
    for id in 1..4 {
        c.execute("INSERT INTO b VALUES ($1, $2)", &[&id, &bytes]).await.unwrap();
    }
    assert_eq!(rows(&c, "SELECT count(*) FROM b").await.unwrap(), ["3"]);
    let row = c.query_one("SELECT v FROM b WHERE id = $1", &[&2]).await.unwrap();
    assert!(row.get::<_, Vec<u8>>(0) == bytes);
}

/// As a dump with INSERTs restores: others free the trees of long statements, so their memory counted for ever.
#[tokio::test(flavor = "multi_thread")]
async fn n122_long_statements_count_only_while_they_run() {
    let mut db = database().await.limit_memory(256 << 20);
    db.memory = Limit::new(Some(64 << 20));
    let taken = db.memory.clone();
    let server = Server::of(db, Limits::default()).await;
    let c = server.client().await;
    c.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text); BEGIN").await.unwrap();
    let statement = |first: i32| {
        let values: Vec<String> = (first..first + 1000).map(|id| format!("({id}, 'value {id}')")).collect();
        format!("INSERT INTO t VALUES {}", values.join(", "))
    };
    for first in 0..100 {
        c.batch_execute(&statement(first * 1000)).await.unwrap();
    }
    // n126: the log's writer frees what the transaction logged, 60 KB a statement, so that does not count either.
    assert!(taken.taken() < 2 << 20, "{}", taken.taken());
    c.batch_execute("COMMIT").await.unwrap();
    assert_eq!(rows(&c, "SELECT count(*) FROM t").await.unwrap(), ["100000"]);
}
