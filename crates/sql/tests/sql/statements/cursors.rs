//! DECLARE, FETCH, MOVE, CLOSE.
use crate::common::{Client, database};
use terrace_engine::Datum;

async fn client() -> Client {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE").await;
    c.ok("INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 5000) AS g", "INSERT 0 5000").await;
    c
}

#[tokio::test]
async fn rows_come_in_parts() {
    let mut c = client().await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("DECLARE a CURSOR FOR SELECT id, v FROM t ORDER BY id", "DECLARE CURSOR").await;
    c.ok("DECLARE \"B b\" NO SCROLL CURSOR WITHOUT HOLD FOR SELECT count(*) FROM t", "DECLARE CURSOR").await;
    c.rows("FETCH a", &["1|v1"]).await;
    c.rows("FETCH 2 FROM a", &["2|v2", "3|v3"]).await;
    c.rows("FETCH NEXT IN A", &["4|v4"]).await;
    c.rows("FETCH 0 FROM a", &["4|v4"]).await;
    c.rows("fetch \"B b\"", &["5000"]).await;
    c.rows("FETCH ALL \"B b\"", &[]).await;
    c.ok("MOVE FORWARD 4990 FROM a", "MOVE 4990").await;
    c.rows("FETCH FORWARD 2 FROM a", &["4995|v4995", "4996|v4996"]).await;
    let fetch = c.session.prepare("FETCH FORWARD ALL FROM a", &[]).await.unwrap();
    assert_eq!(c.rows_of(&fetch, vec![]).await.unwrap().len(), 4);
    assert_eq!(fetch.tag(4), "FETCH 4");
    c.rows("FETCH 5 a", &[]).await;
    c.ok("MOVE ALL a", "MOVE 0").await;
    c.ok("CLOSE a", "CLOSE CURSOR").await;
    c.ok("CLOSE ALL", "CLOSE CURSOR ALL").await;
    c.ok("COMMIT", "COMMIT").await;
    c.fails("FETCH a", "34000").await;
}

/// What others commit after DECLARE is not seen; what the session does in between goes on.
#[tokio::test]
async fn a_cursor_reads_as_of_its_declaration() {
    let mut c = client().await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("DECLARE a CURSOR FOR SELECT id FROM t WHERE v = 'v4000' OR id > 4998", "DECLARE CURSOR").await;
    c.ok("INSERT INTO t VALUES (0, 'x')", "INSERT 0 1").await;
    c.rows("SELECT count(*) FROM t", &["5001"]).await;
    c.rows("FETCH ALL a", &["4000", "4999", "5000"]).await;
    c.ok("COMMIT", "COMMIT").await;
    // With a parameter, as clients bind them.
    c.ok("BEGIN", "BEGIN").await;
    let declare = c.session.prepare("DECLARE a CURSOR FOR SELECT v FROM t WHERE id = $1", &[]).await.unwrap();
    assert_eq!(declare.parameters.len(), 1);
    c.execute(&declare, vec![Datum::Int4(7)]).await.unwrap();
    c.rows("FETCH ALL a", &["v7"]).await;
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.ok("BEGIN READ ONLY", "BEGIN").await;
    c.ok("DECLARE a CURSOR FOR SELECT 1", "DECLARE CURSOR").await;
    c.rows("FETCH a", &["1"]).await;
    c.ok("COMMIT", "COMMIT").await;
}

#[tokio::test]
async fn cursors_go_with_their_transaction_and_savepoint() {
    let mut c = client().await;
    c.fails("DECLARE a CURSOR FOR SELECT 1", "25P01").await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("DECLARE a CURSOR FOR SELECT id FROM t ORDER BY id", "DECLARE CURSOR").await;
    c.ok("SAVEPOINT s", "SAVEPOINT").await;
    c.ok("DECLARE b CURSOR FOR SELECT id FROM t ORDER BY id", "DECLARE CURSOR").await;
    c.fails("DECLARE b CURSOR FOR SELECT 1", "42P03").await;
    c.fails("FETCH a", "25P02").await;
    c.ok("ROLLBACK TO s", "ROLLBACK").await;
    c.rows("FETCH a", &["1"]).await;
    c.fails("FETCH b", "34000").await;
    c.ok("ROLLBACK TO s", "ROLLBACK").await;
    c.ok("DECLARE b CURSOR FOR SELECT id FROM t ORDER BY id", "DECLARE CURSOR").await;
    c.ok("RELEASE s", "RELEASE").await;
    c.ok("SAVEPOINT s", "SAVEPOINT").await;
    c.ok("ROLLBACK TO s", "ROLLBACK").await;
    c.rows("FETCH 2 b", &["1", "2"]).await;
    c.ok("COMMIT", "COMMIT").await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("DECLARE b CURSOR FOR SELECT 1 / (id - 3) FROM t ORDER BY id", "DECLARE CURSOR").await;
    c.fails("FETCH ALL b", "22012").await;
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.fails("CLOSE b", "34000").await;
}

#[tokio::test]
async fn what_cursors_do_not_do() {
    let mut c = client().await;
    for (sql, state) in [
        ("DECLARE a SCROLL CURSOR FOR SELECT id FROM t FOR UPDATE", "0A000"),
        ("DECLARE a CURSOR WITH HOLD FOR SELECT id FROM t FOR UPDATE", "0A000"),
        ("DECLARE a BINARY CURSOR FOR SELECT 1", "0A000"),
        ("DECLARE a CURSOR FOR SELECT nosuch FROM t", "42703"),
        ("DECLARE a CURSOR FOR DELETE FROM t", "42601"),
        ("FETCH PRIOR FROM k", "55000"),
        ("FETCH -1 FROM k", "55000"),
        ("MOVE BACKWARD ALL k", "55000"),
        ("FETCH ABSOLUTE 1 FROM k", "0A000"),
        ("FETCH LAST k", "0A000"),
        ("FETCH 99999999999999999999 FROM k", "42601"),
        ("FETCH 1.5 FROM k", "42601"),
        ("FETCH", "42601"),
        ("FETCH 1 2 FROM k", "42601"),
        ("FETCH FORWARD x FROM k", "42601"),
        ("FETCH FROM 'k'", "42601"),
        ("FETCH nosuch", "34000"),
        ("MOVE nosuch", "34000"),
        ("CLOSE nosuch", "34000"),
    ] {
        c.ok("BEGIN", "BEGIN").await;
        c.ok("DECLARE k CURSOR FOR SELECT 1", "DECLARE CURSOR").await;
        c.fails(sql, state).await;
        c.ok("ROLLBACK", "ROLLBACK").await;
    }
}

/// What is left of its rows outlives its transaction, if that commits.
#[tokio::test]
async fn cursors_with_hold_outlive_their_transaction() {
    let mut c = client().await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("DECLARE a CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id", "DECLARE CURSOR").await;
    c.ok("SAVEPOINT s", "SAVEPOINT").await;
    c.ok("DECLARE b CURSOR WITH HOLD FOR SELECT id FROM t WHERE id = 7", "DECLARE CURSOR").await;
    c.ok("DECLARE k CURSOR FOR SELECT 1", "DECLARE CURSOR").await;
    c.rows("FETCH 2 a", &["1", "2"]).await;
    c.ok("COMMIT", "COMMIT").await;
    c.fails("FETCH k", "34000").await;
    c.ok("DELETE FROM t WHERE id > 2", "DELETE 4998").await;
    c.rows("FETCH a", &["3"]).await;
    c.ok("MOVE 4995 a", "MOVE 4995").await;
    // A rollback of a later transaction leaves it, too, and takes those of its own.
    c.ok("BEGIN", "BEGIN").await;
    c.ok("SAVEPOINT s", "SAVEPOINT").await;
    c.ok("DECLARE d CURSOR WITH HOLD FOR SELECT 1", "DECLARE CURSOR").await;
    c.fails("DECLARE a CURSOR FOR SELECT 1", "42P03").await;
    c.ok("ROLLBACK TO s", "ROLLBACK").await;
    c.fails("FETCH d", "34000").await;
    c.ok("ROLLBACK TO s", "ROLLBACK").await;
    c.ok("DECLARE d CURSOR WITH HOLD FOR SELECT 1", "DECLARE CURSOR").await;
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.fails("FETCH d", "34000").await;
    c.rows("FETCH 5 a", &["4999", "5000"]).await;
    c.rows("FETCH ALL b", &["7"]).await;
    c.ok("CLOSE a", "CLOSE CURSOR").await;
    c.fails("FETCH a", "34000").await;
    // Rows that cannot be had when it commits: it does not.
    c.ok("BEGIN", "BEGIN").await;
    c.ok("INSERT INTO t VALUES (3, 'x')", "INSERT 0 1").await;
    c.ok("DECLARE d CURSOR WITH HOLD FOR SELECT 1 / (id - 3) FROM t", "DECLARE CURSOR").await;
    c.fails("COMMIT", "22012").await;
    c.fails("FETCH d", "34000").await;
    c.rows("SELECT count(*) FROM t", &["2"]).await;
    // Without a block it is held at once; in a pipeline, if that commits.
    c.ok("DECLARE d CURSOR WITH HOLD FOR SELECT v FROM t ORDER BY id", "DECLARE CURSOR").await;
    c.rows("FETCH ALL d", &["v1", "v2"]).await;
    c.fails("DECLARE e CURSOR WITH HOLD FOR SELECT 1 / (id - 2) FROM t", "22012").await;
    c.fails("FETCH e", "34000").await;
    for commits in [true, false] {
        c.session.begin_pipeline();
        c.ok("DECLARE e CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id", "DECLARE CURSOR").await;
        c.rows("FETCH e", &["1"]).await;
        if !commits {
            c.fails("SELECT nosuch", "42703").await;
        }
        c.session.sync().await.unwrap();
        match commits {
            true => c.rows("FETCH e", &["2"]).await,
            false => drop(c.fails("FETCH e", "34000").await),
        }
        c.run("CLOSE e").await.ok();
    }
    c.ok("DISCARD ALL", "DISCARD ALL").await;
    c.fails("FETCH d", "34000").await;
}
