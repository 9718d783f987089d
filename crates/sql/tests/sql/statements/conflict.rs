//! INSERT ... ON CONFLICT, alone and against others.
use crate::common::{Client, Reply, database};
use std::time::Duration;
use terrace_engine::Datum;

#[tokio::test]
async fn rows_in_conflict_are_passed_over_or_updated() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, k text UNIQUE, n int DEFAULT 1 CHECK (n < 100))", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)", "INSERT 0 2").await;
    c.ok("INSERT INTO t VALUES (1, 'x', 5), (3, 'c', 3) ON CONFLICT DO NOTHING", "INSERT 0 1").await;
    c.ok("INSERT INTO t VALUES (9, 'a', 5) ON CONFLICT DO NOTHING", "INSERT 0 0").await;
    c.fails("INSERT INTO t VALUES (9, 'a', 5) ON CONFLICT (id) DO NOTHING", "23505").await;
    let upsert =
        "INSERT INTO t (id, k) VALUES (1, 'z'), (4, 'd') ON CONFLICT (id) DO UPDATE SET n = t.n + 10, k = excluded.k";
    c.ok(upsert, "INSERT 0 2").await;
    c.rows("SELECT * FROM t", &["1|z|11", "2|b|2", "3|c|3", "4|d|1"]).await;
    let returned = "INSERT INTO t AS x VALUES (8, 'b', 7), (5, 'e', 5) ON CONFLICT ON CONSTRAINT t_k_key \
                    DO UPDATE SET n = excluded.n WHERE x.n < excluded.n RETURNING x.id, n";
    c.rows(returned, &["2|7", "5|5"]).await;
    c.rows(returned, &[]).await;
    let sql = "INSERT INTO t VALUES ($1, 'q', 1) ON CONFLICT (id) DO UPDATE SET n = $2 + t.n";
    let reply = c.run_with(sql, vec![Datum::Int4(3), Datum::Int4(40)]).await.unwrap();
    assert_eq!(reply, Reply::Tag("INSERT 0 1".into()));
    c.rows("SELECT n FROM t WHERE id = 3", &["43"]).await;
    c.ok("INSERT INTO t SELECT id, k, 0 FROM t ON CONFLICT (id) DO UPDATE SET n = 0 WHERE t.id < 3", "INSERT 0 2")
        .await;
    for (sql, state) in [
        ("INSERT INTO t VALUES (7, 'g'), (7, 'h') ON CONFLICT (id) DO UPDATE SET n = 1", "21000"),
        ("INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET n = 100", "23514"),
        ("INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET id = NULL", "23502"),
        ("INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 2", "23505"),
        ("INSERT INTO t VALUES (1) ON CONFLICT (n) DO NOTHING", "42P10"),
        ("INSERT INTO t VALUES (1) ON CONFLICT (nosuch) DO NOTHING", "42703"),
        ("INSERT INTO t VALUES (1) ON CONFLICT ON CONSTRAINT nosuch DO NOTHING", "42704"),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO UPDATE SET n = 1", "42601"),
        ("INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET nosuch = 1", "42703"),
    ] {
        c.fails(sql, state).await;
    }
    c.ok("INSERT INTO t VALUES (7, 'g'), (7, 'h') ON CONFLICT (id) DO NOTHING", "INSERT 0 1").await;
    c.rows("SELECT * FROM t WHERE id = 7", &["7|g|1"]).await;
}

#[tokio::test]
async fn counters_lose_no_increment() {
    let db = database().await;
    let mut c = Client::new(&db);
    c.ok("CREATE TABLE counts (k int PRIMARY KEY, n int NOT NULL)", "CREATE TABLE").await;
    let mut tasks = vec![];
    for _ in 0..6 {
        let mut c = Client::new(&db);
        tasks.push(tokio::spawn(async move {
            for i in 0..30 {
                let sql =
                    format!("INSERT INTO counts VALUES ({}, 1) ON CONFLICT (k) DO UPDATE SET n = counts.n + 1", i % 5);
                c.ok(&sql, "INSERT 0 1").await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    c.rows("SELECT k, n FROM counts WHERE k < 100", &["0|36", "1|36", "2|36", "3|36", "4|36"]).await;
}

#[tokio::test]
async fn an_insert_waits_for_the_one_it_conflicts_with() {
    let db = database().await;
    let (mut a, mut b) = (Client::new(&db), Client::new(&db));
    a.ok("CREATE TABLE t (id int PRIMARY KEY, n int)", "CREATE TABLE").await;
    for (end, expected, left) in [("COMMIT", "INSERT 0 0", "1|1"), ("ROLLBACK", "INSERT 0 1", "2|2")] {
        a.ok("TRUNCATE t", "TRUNCATE TABLE").await;
        let id = if end == "COMMIT" { 1 } else { 2 };
        a.ok("BEGIN", "BEGIN").await;
        a.ok(&format!("INSERT INTO t VALUES ({id}, 1)"), "INSERT 0 1").await;
        let waiting = tokio::spawn(async move {
            let reply = b.run(&format!("INSERT INTO t VALUES ({id}, 2) ON CONFLICT (id) DO NOTHING")).await;
            (b, reply)
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!waiting.is_finished(), "whether it conflicts is open");
        a.ok(end, end).await;
        let (back, reply) = waiting.await.unwrap();
        b = back;
        assert_eq!(reply.unwrap(), Reply::Tag(expected.into()));
        a.rows("SELECT * FROM t", &[left]).await;
    }
    // A snapshot that cannot see the row in conflict.
    b.ok("BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN").await;
    b.rows("SELECT count(*) FROM t", &["1"]).await;
    a.ok("INSERT INTO t VALUES (5, 5)", "INSERT 0 1").await;
    b.fails("INSERT INTO t VALUES (5, 6) ON CONFLICT (id) DO NOTHING", "40001").await;
    b.ok("ROLLBACK", "ROLLBACK").await;
}
