//! Snapshots that are given up for undo space: whatever reads with one answers 72000 and changes nothing, by each way
//! of reading.
use crate::common::{Client, Reply, database_with};
use futures::StreamExt;
use std::time::Duration;
use terrace_engine::{EngineConfig, EngineError};
use terrace_sql::{Outcome, SqlDatabase};

const ROWS: usize = 5000;

/// Undo is full after some ten megabytes; then every snapshot may be given up.
async fn tight() -> SqlDatabase {
    let engine = EngineConfig { undo_size_max: 12 << 20, snapshot_age_max: Duration::ZERO, ..EngineConfig::default() };
    let db = database_with(engine).await;
    let mut c = Client::new(&db);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, k int, v int, w text)", "CREATE TABLE").await;
    c.ok("CREATE INDEX t_k ON t (k)", "CREATE INDEX").await;
    let fill = format!("INSERT INTO t SELECT g, g, g, 'w' || g FROM generate_series(1, {ROWS}) AS g");
    c.ok(&fill, &format!("INSERT 0 {ROWS}")).await;
    c.ok("CREATE TABLE taken (id int PRIMARY KEY, k int, v int, w text)", "CREATE TABLE").await;
    c.ok("CREATE TABLE filler (id int PRIMARY KEY, pad text)", "CREATE TABLE").await;
    c.ok("INSERT INTO filler SELECT g, repeat('a', 1500) FROM generate_series(1, 200) AS g", "INSERT 0 200").await;
    db
}

/// What readers may still want goes, and undo fills until so many snapshots have been given up.
async fn flood(db: &SqlDatabase, until: u64) {
    let mut c = Client::new(db);
    c.ok("UPDATE t SET id = id + 100000, k = k + 100000 WHERE id % 2 = 0", &format!("UPDATE {}", ROWS / 2)).await;
    c.ok("DELETE FROM t WHERE id < 100000", &format!("DELETE {}", ROWS / 2)).await;
    for round in 0..2000 {
        if db.engine.stats().snapshots_cancelled >= until {
            db.engine.purge().await.unwrap();
            return;
        }
        let letter = char::from(b'b' + (round % 20) as u8);
        match c.run(&format!("UPDATE filler SET pad = repeat('{letter}', 1500)")).await {
            Ok(_) => {}
            Err(e) => {
                assert_eq!(e.state.0, "53100");
                tokio::time::sleep(Duration::from_millis(60)).await;
            }
        }
    }
    panic!("undo never ran out: {:?}", db.engine.stats());
}

/// Runs a statement to its end; how many rows it returned.
async fn rows(c: &mut Client, sql: &str) -> Result<usize, EngineError> {
    let statement = c.session.prepare(sql, &[]).await?;
    match c.session.execute(&statement, vec![]).await? {
        Outcome::Rows { mut stream, .. } | Outcome::CopyOut { mut stream, .. } => {
            let mut rows = 0;
            while let Some(batch) = stream.next().await {
                rows += batch?.num_rows();
            }
            Ok(rows)
        }
        Outcome::Command { tag, .. } => panic!("{sql}: {tag}"),
        _ => panic!("{sql}: another outcome"),
    }
}

const READS: [&str; 26] = [
    "SELECT count(*), sum(id) FROM t WHERE id BETWEEN 1 AND 10000",
    "SELECT * FROM t",
    "SELECT w FROM t WHERE id = 7",
    "SELECT w FROM t WHERE id = 500",
    "SELECT w FROM t WHERE id = 100500",
    "SELECT id FROM t WHERE k = 77",
    "SELECT id FROM t WHERE k = 100078",
    "SELECT id FROM t WHERE id IN (1, 2, 3)",
    "SELECT id FROM t WHERE id BETWEEN 10 AND 20",
    "SELECT id FROM t WHERE id BETWEEN 10 AND 20 ORDER BY id DESC LIMIT 3",
    "SELECT id FROM t ORDER BY id DESC LIMIT 3",
    "SELECT max(v) FROM t",
    "SELECT (SELECT count(*) FROM t)",
    "SELECT id FROM taken WHERE NOT EXISTS (SELECT 1 FROM t)",
    "SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.k",
    "SELECT id FROM t UNION ALL SELECT id FROM taken",
    "SELECT id FROM t WHERE id = 7 FOR UPDATE",
    "SELECT id FROM t WHERE v < 10 FOR SHARE SKIP LOCKED",
    "COPY t TO STDOUT",
    "COPY (SELECT id FROM t WHERE id < 100) TO STDOUT (FORMAT csv)",
    "UPDATE t SET v = v + 1 WHERE v < 100 RETURNING id",
    "UPDATE t SET v = 0 WHERE id = 500 RETURNING id",
    "DELETE FROM t WHERE v < 100 RETURNING id",
    "DELETE FROM t WHERE id IN (SELECT k FROM t WHERE v < 10) RETURNING id",
    "INSERT INTO taken SELECT * FROM t RETURNING id",
    "WITH few AS (SELECT id FROM t WHERE v < 5) SELECT count(*) FROM few",
];

const CHANGES: [&str; 6] = [
    "UPDATE t SET v = v + 1 WHERE v < 100",
    "UPDATE t SET v = 0 WHERE id = 500",
    "DELETE FROM t WHERE v < 100",
    "DELETE FROM t WHERE id = 7",
    "INSERT INTO taken SELECT * FROM t",
    "INSERT INTO taken SELECT id, k, v, w FROM t WHERE id < 100",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s2_f1_a_transaction_whose_snapshot_was_given_up_reads_nothing_wrong() {
    let db = tight().await;
    let mut readers = vec![];
    for sql in READS.into_iter().chain(CHANGES) {
        let mut c = Client::new(&db);
        c.ok("BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN").await;
        c.rows("SELECT count(*) FROM t", &["5000"]).await;
        readers.push((c, sql));
    }
    flood(&db, readers.len() as u64).await;
    for (c, sql) in &mut readers {
        let found = match CHANGES.contains(sql) {
            true => c.run(sql).await.map(|reply| format!("{reply:?}")),
            false => rows(c, sql).await.map(|rows| format!("{rows} rows")),
        };
        let e = found.expect_err(sql);
        assert_eq!(e.state.0, "72000", "{sql}: {e}");
        c.fails("SELECT 1", "25P02").await;
        c.ok("COMMIT", "ROLLBACK").await;
    }
    let mut c = Client::new(&db);
    c.rows("SELECT count(*), min(id), sum(v) FROM t", &["2500|100002|6252500"]).await;
    c.rows("SELECT count(*) FROM taken", &["0"]).await;
    assert_eq!(db.engine.check().await.unwrap(), Vec::<String>::new());
}

/// A savepoint brings the transaction back, not its snapshot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s2_f1_after_a_savepoint_the_snapshot_is_still_given_up() {
    let db = tight().await;
    let mut c = Client::new(&db);
    c.ok("BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN").await;
    c.rows("SELECT count(*) FROM t", &["5000"]).await;
    flood(&db, 1).await;
    c.ok("SAVEPOINT a", "SAVEPOINT").await;
    for sql in ["SELECT count(*) FROM t", "SELECT w FROM t WHERE id = 7"] {
        c.fails(sql, "72000").await;
        c.ok("ROLLBACK TO a", "ROLLBACK").await;
    }
    c.ok("COMMIT", "COMMIT").await;
    c.rows("SELECT count(*) FROM t", &["2500"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s2_f1_a_cursor_that_lost_its_rows_says_so() {
    for hold in ["", "WITH HOLD "] {
        for sql in ["SELECT id, v FROM t", "SELECT id + 1 FROM t LIMIT 4990"] {
            let db = tight().await;
            let mut c = Client::new(&db);
            c.ok("BEGIN", "BEGIN").await;
            c.ok(&format!("DECLARE c CURSOR {hold}FOR {sql}"), "DECLARE CURSOR").await;
            let Reply::Rows(first) = c.run("FETCH 10 FROM c").await.unwrap() else { panic!("rows") };
            assert_eq!(first.len(), 10);
            flood(&db, 1).await;
            if hold.is_empty() {
                c.fails("FETCH ALL FROM c", "72000").await;
                c.ok("ROLLBACK", "ROLLBACK").await;
            } else {
                c.fails("COMMIT", "72000").await;
                c.fails("FETCH ALL FROM c", "34000").await;
            }
        }
    }
}

/// A statement whose client reads slowly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s2_f1_a_statement_that_lost_its_rows_on_the_way_does_not_end_well() {
    for sql in ["SELECT id, v FROM t", "SELECT id FROM taken UNION ALL SELECT k FROM t", "COPY t TO STDOUT"] {
        let db = tight().await;
        let mut c = Client::new(&db);
        let statement = c.session.prepare(sql, &[]).await.unwrap();
        let outcome = c.session.execute(&statement, vec![]).await.unwrap();
        let (Outcome::Rows { mut stream, .. } | Outcome::CopyOut { mut stream, .. }) = outcome else { panic!("{sql}") };
        let mut rows = stream.next().await.unwrap().unwrap().num_rows();
        assert!(rows < ROWS, "the rest is still to be read");
        flood(&db, 1).await;
        let end = loop {
            match stream.next().await {
                Some(Ok(batch)) => rows += batch.num_rows(),
                Some(Err(e)) => break Some(e),
                None => break None,
            }
        };
        let end = end.unwrap_or_else(|| panic!("{sql} ended with {rows} of {ROWS} rows"));
        assert_eq!(end.state.0, "72000", "{sql}: {end}");
    }
}

/// Who has nothing under way gives way, and that is enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s2_f1_an_idle_transaction_gives_way_to_a_statement_under_way() {
    let db = tight().await;
    let mut idle = Client::new(&db);
    idle.ok("BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN").await;
    idle.rows("SELECT count(*) FROM t", &["5000"]).await;
    let mut writer = Client::new(&db);
    let mut write = async |round: usize| {
        let letter = char::from(b'b' + (round % 20) as u8);
        let _ = writer.run(&format!("UPDATE filler SET pad = repeat('{letter}', 1500) WHERE id < 20")).await;
        assert!(round < 2000, "undo never ran out: {:?}", db.engine.stats());
    };
    let mut round = 0;
    while db.engine.stats().undo_bytes < 8 << 20 {
        write(round).await;
        round += 1;
    }
    assert_eq!(db.engine.stats().snapshots_cancelled, 0, "there is room yet");
    let mut slow = Client::new(&db);
    let statement = slow.session.prepare("SELECT id, v FROM t", &[]).await.unwrap();
    let Outcome::Rows { mut stream, .. } = slow.session.execute(&statement, vec![]).await.unwrap() else {
        panic!("rows")
    };
    let mut rows = stream.next().await.unwrap().unwrap().num_rows();
    while db.engine.stats().snapshots_cancelled == 0 {
        write(round).await;
        round += 1;
    }
    while let Some(batch) = stream.next().await {
        rows += batch.expect("it was under way").num_rows();
    }
    assert_eq!(rows, ROWS);
    drop(stream);
    idle.fails("SELECT count(*) FROM t", "72000").await;
}
