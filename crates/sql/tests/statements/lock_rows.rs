//! SELECT ... FOR UPDATE and FOR SHARE.
use crate::common::{Client, Reply, database};
use std::time::Duration;

#[tokio::test]
async fn locked_rows_wait_skip_or_refuse() {
    let db = database().await;
    let (mut a, mut b) = (Client::new(&db), Client::new(&db));
    a.ok("CREATE TABLE jobs (id int PRIMARY KEY, done bool DEFAULT false, n int DEFAULT 0)", "CREATE TABLE").await;
    a.ok("INSERT INTO jobs (id) VALUES (1), (2), (3), (4)", "INSERT 0 4").await;
    a.ok("BEGIN", "BEGIN").await;
    a.rows("SELECT * FROM jobs WHERE id <= 2 ORDER BY id FOR UPDATE", &["1|false|0", "2|false|0"]).await;
    b.rows("SELECT id FROM jobs WHERE id = 1", &["1"]).await;
    b.fails("SELECT id FROM jobs WHERE id = 1 FOR UPDATE NOWAIT", "55P03").await;
    b.fails("SELECT id FROM jobs WHERE id = 1 FOR SHARE NOWAIT", "55P03").await;
    // A queue: whoever comes takes what is free.
    let take = "SELECT id FROM jobs WHERE NOT done ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";
    b.ok("BEGIN", "BEGIN").await;
    b.rows(take, &["3"]).await;
    a.rows("SELECT j.id AS job FROM jobs j ORDER BY id OFFSET 1 FOR NO KEY UPDATE OF j SKIP LOCKED", &["2", "4"]).await;
    b.rows("SELECT id FROM jobs FOR UPDATE SKIP LOCKED", &["3"]).await;
    b.ok("ROLLBACK", "ROLLBACK").await;
    // Who waits gets the newest version, or nothing where it no longer qualifies.
    a.ok("UPDATE jobs SET n = 7 WHERE id = 1", "UPDATE 1").await;
    a.ok("UPDATE jobs SET done = true WHERE id = 2", "UPDATE 1").await;
    let waiting = tokio::spawn(async move {
        let reply = b.run("SELECT id, n FROM jobs WHERE NOT done AND id < 3 ORDER BY id FOR UPDATE").await;
        (b, reply)
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished());
    a.ok("COMMIT", "COMMIT").await;
    let (mut b, reply) = waiting.await.unwrap();
    assert_eq!(reply.unwrap(), Reply::Rows(vec!["1|7".into()]));
    // FOR SHARE is shared, and keeps writers out.
    a.ok("BEGIN", "BEGIN").await;
    a.rows("SELECT id FROM jobs WHERE id = 4 FOR SHARE", &["4"]).await;
    b.ok("BEGIN", "BEGIN").await;
    b.rows("SELECT id FROM jobs WHERE id = 4 FOR KEY SHARE", &["4"]).await;
    b.fails("SELECT id FROM jobs WHERE id = 4 FOR UPDATE NOWAIT", "55P03").await;
    b.ok("ROLLBACK", "ROLLBACK").await;
    a.ok("COMMIT", "COMMIT").await;
    for (sql, state) in [
        ("SELECT count(*) FROM jobs FOR UPDATE", "0A000"),
        ("SELECT done FROM jobs GROUP BY done FOR UPDATE", "0A000"),
        ("SELECT DISTINCT done FROM jobs FOR UPDATE", "0A000"),
        ("SELECT 1 FROM jobs a, jobs b FOR UPDATE", "0A000"),
        ("SELECT 1 FROM jobs UNION SELECT id FROM jobs FOR UPDATE", "0A000"),
        ("SELECT 1 FROM jobs FOR UPDATE OF other", "42P01"),
        ("SELECT nosuch FROM jobs FOR UPDATE", "42703"),
        ("SELECT 1 FROM nosuch FOR UPDATE", "42P01"),
    ] {
        a.fails(sql, state).await;
    }
}
