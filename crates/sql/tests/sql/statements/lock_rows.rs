//! SELECT ... FOR UPDATE and FOR SHARE.
use crate::common::{Client, Reply, database};
use std::time::Duration;
use terrace_engine::Datum;

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
    // FOR KEY SHARE keeps the key, and nothing else.
    a.ok("BEGIN", "BEGIN").await;
    a.rows("SELECT id FROM jobs WHERE id = 4 FOR KEY SHARE", &["4"]).await;
    b.ok("UPDATE jobs SET n = 9 WHERE id = 4", "UPDATE 1").await;
    b.rows("SELECT id FROM jobs WHERE id = 4 FOR NO KEY UPDATE NOWAIT", &["4"]).await;
    b.ok("SET lock_timeout = '50ms'", "SET").await;
    b.fails("UPDATE jobs SET id = 44 WHERE id = 4", "55P03").await;
    b.fails("DELETE FROM jobs WHERE id = 4", "55P03").await;
    b.ok("RESET lock_timeout", "RESET").await;
    a.ok("COMMIT", "COMMIT").await;
    for (sql, state) in [
        ("SELECT count(*) FROM jobs FOR UPDATE", "0A000"),
        ("SELECT done FROM jobs GROUP BY done FOR UPDATE", "0A000"),
        ("SELECT DISTINCT done FROM jobs FOR UPDATE", "0A000"),
        ("SELECT 1 FROM jobs a FULL JOIN jobs b ON a.id = b.id FOR UPDATE", "0A000"),
        ("SELECT 1 FROM jobs UNION SELECT id FROM jobs FOR UPDATE", "0A000"),
        ("SELECT 1 FROM jobs FOR UPDATE OF other", "42P01"),
        ("SELECT nosuch FROM jobs FOR UPDATE", "42703"),
        ("SELECT id FROM jobs LIMIT 1 FOR UPDATE LIMIT 1", "42601"),
        ("SELECT 1 FROM nosuch FOR UPDATE", "42P01"),
    ] {
        a.fails(sql, state).await;
    }
}

/// A row of a join is locked in each table, and evaluated again beside the same rows of the others.
#[tokio::test]
async fn rows_of_joins_are_evaluated_again() {
    let changes =
        ["UPDATE b SET y = 99 WHERE id = 1", "UPDATE b SET y = 11 WHERE id = 1", "UPDATE b SET aid = 2 WHERE id = 1"];
    let join = "SELECT a.id, b.id, y FROM a JOIN b ON aid = a.id WHERE y < 50 ORDER BY 1, 2 FOR UPDATE";
    let outer = "SELECT a.id, b.id, x FROM a LEFT JOIN b ON aid = a.id AND x < 5 ORDER BY 1, 2 FOR UPDATE OF a";
    let view = "SELECT k, x FROM v ORDER BY k FOR UPDATE";
    let cases: [(&str, &str, &[&str]); 5] = [
        (changes[0], join, &["1|2|20", "2|3|30"]),
        (changes[1], join, &["1|1|11", "1|2|20", "2|3|30"]),
        (changes[2], join, &["1|2|20", "2|3|30"]),
        ("UPDATE a SET x = 9 WHERE id = 2", outer, &["1|1|1", "1|2|1", "2|NULL|9"]),
        ("UPDATE a SET x = 90 WHERE id = 2", view, &["1|1"]),
    ];
    for (change, query, expected) in cases {
        let db = database().await;
        let (mut a, mut b) = (Client::new(&db), Client::new(&db));
        a.ok("CREATE TABLE a (id int PRIMARY KEY, x int)", "CREATE TABLE").await;
        a.ok("CREATE TABLE b (id int PRIMARY KEY, aid int, y int)", "CREATE TABLE").await;
        a.ok("CREATE VIEW v AS SELECT id AS k, x FROM a WHERE x < 50", "CREATE VIEW").await;
        a.ok("INSERT INTO a VALUES (1, 1), (2, 2)", "INSERT 0 2").await;
        a.ok("INSERT INTO b VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30)", "INSERT 0 3").await;
        a.ok("BEGIN", "BEGIN").await;
        a.ok(change, "UPDATE 1").await;
        let waiting = tokio::spawn(async move { b.run(query).await });
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!waiting.is_finished(), "{change}");
        a.ok("COMMIT", "COMMIT").await;
        let rows = expected.iter().map(|row| (*row).to_owned()).collect();
        assert_eq!(waiting.await.unwrap().unwrap(), Reply::Rows(rows), "{change}: {query}");
    }
}

const JOBS: &str =
    "CREATE TABLE jobs (id int PRIMARY KEY, state text NOT NULL DEFAULT 'ready', tries bigint NOT NULL DEFAULT 0)";

/// One statement takes a job: nobody waits, nobody takes what another has, and a rollback gives it back.
#[tokio::test]
async fn jobs_are_taken_by_one_statement() {
    let db = database().await;
    let (mut a, mut b) = (Client::new(&db), Client::new(&db));
    for client in [&mut a, &mut b] {
        // Who waited after all would say so.
        client.ok("SET lock_timeout = '10s'", "SET").await;
    }
    a.ok(JOBS, "CREATE TABLE").await;
    a.ok("INSERT INTO jobs (id) SELECT n FROM generate_series(1, 6) AS g(n)", "INSERT 0 6").await;
    let take = "UPDATE jobs SET state = 'running', tries = tries + 1 WHERE id = \
                (SELECT id FROM jobs WHERE state = 'ready' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING *";
    a.ok("BEGIN", "BEGIN").await;
    b.ok("BEGIN", "BEGIN").await;
    a.rows(take, &["1|running|1"]).await;
    b.rows(take, &["2|running|1"]).await;
    a.rows(take, &["3|running|1"]).await;
    a.ok("ROLLBACK", "ROLLBACK").await;
    b.rows(take, &["1|running|1"]).await;
    b.ok("COMMIT", "COMMIT").await;
    a.rows("SELECT id FROM jobs WHERE state = 'running' ORDER BY id", &["1", "2"]).await;
    // What was locked and not changed stays locked, too.
    a.ok("BEGIN", "BEGIN").await;
    let none = "UPDATE jobs SET tries = 9 WHERE tries = 7 AND id IN (SELECT id FROM jobs WHERE id = 3 FOR UPDATE)";
    a.ok(none, "UPDATE 0").await;
    b.fails("SELECT id FROM jobs WHERE id = 3 FOR UPDATE NOWAIT", "55P03").await;
    // Several at once, as parameters say, in each of the forms of IN; more than there are.
    for (number, list) in ["IN (Q)", "= ANY (Q)", "= ANY (ARRAY(Q))", "= ANY(ARRAY(Q)::int[])"].iter().enumerate() {
        let query = "SELECT id FROM jobs WHERE state = $1 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED";
        let sql = format!("UPDATE jobs SET tries = $3 WHERE id {} RETURNING id, tries", list.replace('Q', query));
        let few = number as i64 + 1;
        b.ok("BEGIN", "BEGIN").await;
        let statement = b.session.prepare(&sql, &[]).await.unwrap();
        let parameters = vec![Datum::Text("ready".into()), Datum::Int8(few), Datum::Int8(70)];
        let mut rows = b.rows_of(&statement, parameters).await.unwrap();
        rows.sort();
        assert_eq!(rows, ["4|70", "5|70", "6|70"][..few.min(3) as usize], "{sql}");
        b.ok("ROLLBACK", "ROLLBACK").await;
    }
    a.ok("ROLLBACK", "ROLLBACK").await;
    b.ok(
        "PREPARE finish AS DELETE FROM jobs j WHERE j.id NOT IN (SELECT id FROM jobs WHERE id > $1 FOR SHARE)",
        "PREPARE",
    )
    .await;
    b.ok("BEGIN", "BEGIN").await;
    b.ok("EXECUTE finish(3)", "DELETE 3").await;
    b.ok("ROLLBACK", "ROLLBACK").await;
    // A job that is done with goes by the same means.
    let done = "DELETE FROM jobs WHERE id = (SELECT id FROM jobs ORDER BY id DESC LIMIT 1 FOR UPDATE SKIP LOCKED) \
                RETURNING id";
    a.rows(done, &["6"]).await;
}

/// Workers, each with one statement a job, all at once.
#[tokio::test(flavor = "multi_thread")]
async fn workers_take_jobs_by_one_statement() {
    let db = database().await;
    let mut c = Client::new(&db);
    c.ok(JOBS, "CREATE TABLE").await;
    c.ok("INSERT INTO jobs (id) SELECT n FROM generate_series(1, 60) AS g(n)", "INSERT 0 60").await;
    let work = |mut c: Client| async move {
        let mut taken = vec![];
        let take = "UPDATE jobs SET state = 'running', tries = tries + 1 WHERE id = ANY (ARRAY( \
                    SELECT id FROM jobs WHERE state = 'ready' ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED)) \
                    RETURNING id";
        loop {
            let Reply::Rows(ids) = c.run(take).await.unwrap() else { panic!("rows") };
            if ids.is_empty() {
                return taken;
            }
            taken.extend(ids.iter().map(|id| id.parse::<i32>().unwrap()));
        }
    };
    let workers: Vec<_> = (0..3).map(|_| tokio::spawn(work(Client::new(&db)))).collect();
    let mut taken = vec![];
    for worker in workers {
        taken.extend(worker.await.unwrap());
    }
    // A worker may find nothing while others hold what is left.
    taken.sort_unstable();
    assert_eq!(taken, (1..=60).collect::<Vec<_>>());
    c.rows("SELECT count(*) FROM jobs WHERE state = 'running' AND tries = 1", &["60"]).await;
}

#[tokio::test]
async fn locking_conditions_answer_as_postgresql() {
    let db = database().await;
    let (mut a, mut b) = (Client::new(&db), Client::new(&db));
    a.ok(JOBS, "CREATE TABLE").await;
    a.ok("INSERT INTO jobs (id) VALUES (1), (2), (3)", "INSERT 0 3").await;
    for (sql, tag) in [
        // No row is NULL, and an empty list.
        ("UPDATE jobs SET tries = 5 WHERE id = (SELECT id FROM jobs WHERE id = 8 FOR UPDATE)", "UPDATE 0"),
        ("UPDATE jobs SET tries = 5 WHERE id IN (SELECT id FROM jobs WHERE id = 8 FOR UPDATE)", "UPDATE 0"),
        ("UPDATE jobs SET tries = 5 WHERE id NOT IN (SELECT id FROM jobs WHERE id = 8 FOR UPDATE)", "UPDATE 3"),
        ("UPDATE jobs SET tries = 6 WHERE id NOT IN (SELECT nullif(id, 2) FROM jobs FOR UPDATE)", "UPDATE 0"),
        ("DELETE FROM jobs WHERE (SELECT tries FROM jobs WHERE id = 8 FOR SHARE) IS NOT NULL", "DELETE 0"),
        (
            "UPDATE jobs SET tries = 7 WHERE id < (SELECT id FROM jobs WHERE state || id = 'ready3' FOR UPDATE)",
            "UPDATE 2",
        ),
    ] {
        a.ok(sql, tag).await;
    }
    a.rows("SELECT id, tries FROM jobs ORDER BY id", &["1|7", "2|7", "3|5"]).await;
    for (sql, state) in [
        ("UPDATE jobs SET tries = 1 WHERE id = (SELECT id FROM jobs FOR UPDATE)", "21000"),
        ("UPDATE jobs j SET tries = 1 WHERE id = (SELECT id FROM jobs WHERE id = j.tries FOR UPDATE)", "0A000"),
        ("DELETE FROM jobs j WHERE id IN (SELECT x.id FROM jobs x WHERE x.id = j.id FOR UPDATE)", "0A000"),
        ("UPDATE jobs SET tries = 1 WHERE id IN (SELECT count(*) FROM jobs FOR UPDATE)", "0A000"),
        ("UPDATE jobs SET tries = 1 WHERE EXISTS (SELECT id FROM jobs FOR UPDATE)", "0A000"),
        ("UPDATE jobs SET tries = (SELECT tries FROM jobs WHERE id = 1 FOR UPDATE) WHERE id = 1", "0A000"),
        (
            "UPDATE jobs SET tries = 1 WHERE id IN (SELECT id FROM jobs WHERE id IN (SELECT id FROM jobs FOR UPDATE))",
            "0A000",
        ),
        ("UPDATE jobs SET tries = 1 WHERE id IN (SELECT id FROM (SELECT id FROM jobs FOR UPDATE) AS x)", "0A000"),
        ("SELECT id FROM jobs WHERE id IN (SELECT id FROM jobs FOR UPDATE)", "0A000"),
        ("INSERT INTO jobs SELECT id + 9 FROM jobs FOR UPDATE", "0A000"),
    ] {
        b.fails(sql, state).await;
    }
    // EXPLAIN locks nothing, EXPLAIN ANALYZE takes the job.
    let take = "UPDATE jobs SET tries = 8 WHERE id = (SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)";
    a.ok("BEGIN", "BEGIN").await;
    a.run(&format!("EXPLAIN {take}")).await.unwrap();
    b.rows("SELECT id FROM jobs WHERE id = 1 FOR UPDATE NOWAIT", &["1"]).await;
    a.run(&format!("EXPLAIN ANALYZE {take}")).await.unwrap();
    a.rows("SELECT tries FROM jobs WHERE id = 1", &["8"]).await;
    b.fails("SELECT id FROM jobs WHERE id = 1 FOR UPDATE NOWAIT", "55P03").await;
    // Who waits for the job takes it as it is then, or not at all.
    let waiting = tokio::spawn(async move {
        let take = "UPDATE jobs SET state = 'running', tries = tries + 1 WHERE id = \
                    (SELECT id FROM jobs WHERE state = 'ready' ORDER BY id LIMIT 1 FOR UPDATE) RETURNING id, tries";
        let first = b.run(take).await;
        (first, b.run(take).await)
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished());
    a.ok("COMMIT", "COMMIT").await;
    let (first, second) = waiting.await.unwrap();
    assert_eq!(first.unwrap(), Reply::Rows(vec!["1|9".into()]));
    assert_eq!(second.unwrap(), Reply::Rows(vec!["2|8".into()]));
}
