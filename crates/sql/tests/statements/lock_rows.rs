//! SELECT ... FOR UPDATE and FOR SHARE.
use crate::common::{Client, Reply, database};
use std::time::Duration;

/// A queue of jobs as its workers use it: each takes what is free, and nobody takes what another has.
#[tokio::test(flavor = "multi_thread")]
async fn workers_share_a_queue() {
    let db = database().await;
    let mut c = Client::new(&db);
    c.ok("CREATE TABLE jobs (id int PRIMARY KEY, done bool DEFAULT false)", "CREATE TABLE").await;
    c.ok("INSERT INTO jobs (id) SELECT n FROM generate_series(1, 60) AS g(n)", "INSERT 0 60").await;
    let work = |mut c: Client| async move {
        let mut taken = vec![];
        loop {
            c.ok("BEGIN", "BEGIN").await;
            let take = "SELECT id FROM jobs WHERE done = false ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";
            let Reply::Rows(ids) = c.run(take).await.unwrap() else { panic!("rows") };
            let Some(id) = ids.first() else { break };
            c.ok(&format!("UPDATE jobs SET done = true WHERE id = {id}"), "UPDATE 1").await;
            c.ok("COMMIT", "COMMIT").await;
            taken.push(id.parse::<i32>().unwrap());
        }
        c.ok("COMMIT", "COMMIT").await;
        taken
    };
    let workers: Vec<_> = (0..3).map(|_| tokio::spawn(work(Client::new(&db)))).collect();
    let mut taken = vec![];
    for worker in workers {
        taken.extend(worker.await.unwrap());
    }
    taken.sort_unstable();
    assert_eq!(taken, (1..=60).collect::<Vec<_>>());
}

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
    // LIMIT and OFFSET may come last.
    b.rows("SELECT id FROM jobs WHERE NOT done ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1", &["3"]).await;
    b.rows("SELECT id FROM jobs ORDER BY id FOR NO KEY UPDATE OF jobs SKIP LOCKED LIMIT 5 OFFSET 1;", &[]).await;
    a.rows("SELECT id FROM jobs WHERE done = false ORDER BY id FOR UPDATE LIMIT 2", &["1", "2"]).await;
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
        ("SELECT id FROM jobs LIMIT 1 FOR UPDATE LIMIT 1", "42601"),
        ("SELECT 1 FROM nosuch FOR UPDATE", "42P01"),
    ] {
        a.fails(sql, state).await;
    }
}
