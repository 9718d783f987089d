//! Sessions that meet: re-evaluation after a wait, isolation, locks, cancellation.
use crate::common::{Client, Reply, database};
use futures::StreamExt;
use std::time::Duration;
use terrace_sql::{Outcome, SqlDatabase};

async fn accounts() -> (SqlDatabase, Client, Client) {
    let db = database().await;
    let (mut a, b) = (Client::new(&db), Client::new(&db));
    a.ok("CREATE TABLE accounts (id int PRIMARY KEY, owner text, balance int)", "CREATE TABLE").await;
    a.ok("INSERT INTO accounts VALUES (1, 'ann', 100), (2, 'bob', 100), (3, 'cem', 100)", "INSERT 0 3").await;
    (db, a, b)
}

/// Runs a statement that has to wait, lets it begin, and answers its task.
async fn waiting(
    mut client: Client,
    sql: &'static str,
) -> tokio::task::JoinHandle<(Client, Result<Reply, terrace_engine::EngineError>)> {
    #[expect(clippy::disallowed_methods, reason = "tests run on tokio")]
    let task = tokio::spawn(async move {
        let reply = client.run(sql).await;
        (client, reply)
    });
    pause().await;
    assert!(!task.is_finished(), "{sql} did not wait");
    task
}

async fn pause() {
    #[expect(clippy::disallowed_methods, reason = "tests run on tokio")]
    tokio::time::sleep(Duration::from_millis(150)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_update_is_lost() {
    let (_db, mut a, b) = accounts().await;
    a.ok("BEGIN", "BEGIN").await;
    a.ok("UPDATE accounts SET balance = balance - 30 WHERE id = 1", "UPDATE 1").await;
    let b = waiting(b, "UPDATE accounts SET balance = balance - 30 WHERE id = 1").await;
    a.ok("COMMIT", "COMMIT").await;
    let (mut b, reply) = b.await.unwrap();
    assert_eq!(reply.unwrap(), Reply::Tag("UPDATE 1".into()));
    b.rows("SELECT balance FROM accounts WHERE id = 1", &["40"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_row_must_still_qualify() {
    let (_db, mut a, b) = accounts().await;
    a.ok("BEGIN", "BEGIN").await;
    a.ok("UPDATE accounts SET balance = 0 WHERE id = 1", "UPDATE 1").await;
    a.ok("UPDATE accounts SET owner = 'bob' WHERE id = 3", "UPDATE 1").await;
    // Row 1 no longer qualifies; row 3 would now, but did not when the statement began.
    let b = waiting(b, "DELETE FROM accounts WHERE balance >= 100 AND owner IN ('ann', 'bob')").await;
    a.ok("COMMIT", "COMMIT").await;
    let (mut b, reply) = b.await.unwrap();
    assert_eq!(reply.unwrap(), Reply::Tag("DELETE 1".into()));
    b.rows("SELECT id FROM accounts", &["1", "3"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_row_is_joined_again() {
    let (_db, mut a, b) = accounts().await;
    a.ok("CREATE TABLE bonus (owner text, amount int)", "CREATE TABLE").await;
    a.ok("INSERT INTO bonus VALUES ('ann', 1), ('bob', 2)", "INSERT 0 2").await;
    a.ok("BEGIN", "BEGIN").await;
    a.ok("UPDATE accounts SET owner = 'bob', balance = 200 WHERE id = 1", "UPDATE 1").await;
    let sql = "UPDATE accounts SET balance = balance + amount FROM bonus WHERE bonus.owner = accounts.owner AND id = 1";
    let b = waiting(b, sql).await;
    a.ok("COMMIT", "COMMIT").await;
    let (mut b, reply) = b.await.unwrap();
    assert_eq!(reply.unwrap(), Reply::Tag("UPDATE 1".into()));
    b.rows("SELECT balance FROM accounts WHERE id = 1", &["202"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_row_is_gone_and_a_rolled_back_change_never_was() {
    let (_db, mut a, b) = accounts().await;
    a.ok("BEGIN", "BEGIN").await;
    a.ok("DELETE FROM accounts WHERE id = 1", "DELETE 1").await;
    let b = waiting(b, "UPDATE accounts SET balance = 1 WHERE id = 1").await;
    a.ok("COMMIT", "COMMIT").await;
    let (b, reply) = b.await.unwrap();
    assert_eq!(reply.unwrap(), Reply::Tag("UPDATE 0".into()));
    a.ok("BEGIN", "BEGIN").await;
    a.ok("DELETE FROM accounts WHERE id = 2", "DELETE 1").await;
    let b = waiting(b, "UPDATE accounts SET balance = balance + 1 WHERE id = 2").await;
    a.ok("ROLLBACK", "ROLLBACK").await;
    let (mut b, reply) = b.await.unwrap();
    assert_eq!(reply.unwrap(), Reply::Tag("UPDATE 1".into()));
    b.rows("SELECT balance FROM accounts ORDER BY id", &["101", "100"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn isolation_levels() {
    let (_db, mut a, mut b) = accounts().await;
    a.ok("BEGIN", "BEGIN").await;
    a.rows("SELECT balance FROM accounts WHERE id = 1", &["100"]).await;
    b.ok("UPDATE accounts SET balance = 7 WHERE id = 1", "UPDATE 1").await;
    a.rows("SELECT balance FROM accounts WHERE id = 1", &["7"]).await;
    a.ok("COMMIT", "COMMIT").await;

    a.ok("BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN").await;
    a.rows("SELECT balance FROM accounts WHERE id = 1", &["7"]).await;
    b.ok("UPDATE accounts SET balance = 8 WHERE id = 1", "UPDATE 1").await;
    a.rows("SELECT balance FROM accounts WHERE id = 1", &["7"]).await;
    a.fails("UPDATE accounts SET balance = 9 WHERE id = 1", "40001").await;
    a.ok("ROLLBACK", "ROLLBACK").await;
    a.rows("SELECT balance FROM accounts WHERE id = 1", &["8"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_younger_than_the_snapshot_is_not_used() {
    let (_db, mut a, mut b) = accounts().await;
    a.ok("BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN").await;
    a.rows("SELECT id FROM accounts WHERE owner = 'ann'", &["1"]).await;
    b.ok("UPDATE accounts SET owner = 'eve' WHERE id = 1", "UPDATE 1").await;
    b.ok("CREATE INDEX ON accounts (balance)", "CREATE INDEX").await;
    b.ok("CREATE UNIQUE INDEX ON accounts (owner)", "CREATE INDEX").await;
    b.ok("UPDATE accounts SET owner = 'ann', balance = 5 WHERE id = 2", "UPDATE 1").await;
    a.rows("SELECT id FROM accounts WHERE owner = 'ann'", &["1"]).await;
    a.rows("SELECT id FROM accounts WHERE balance = 100", &["1", "2", "3"]).await;
    a.ok("COMMIT", "COMMIT").await;
    a.rows("SELECT id FROM accounts WHERE owner = 'ann'", &["2"]).await;
    a.rows("SELECT id FROM accounts WHERE balance = 100", &["1", "3"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_by_key_is_evaluated_again() {
    let (_db, mut a, b) = accounts().await;
    a.ok("BEGIN", "BEGIN").await;
    a.ok("UPDATE accounts SET id = 9, balance = 1 WHERE id = 1", "UPDATE 1").await;
    let b = waiting(b, "UPDATE accounts SET balance = balance + 1 WHERE id = 1").await;
    a.ok("COMMIT", "COMMIT").await;
    let (mut b, reply) = b.await.unwrap();
    assert_eq!(reply.unwrap(), Reply::Tag("UPDATE 0".into()));
    b.rows("SELECT id, balance FROM accounts", &["2|100", "3|100", "9|1"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlocks_are_found() {
    let (_db, mut a, mut b) = accounts().await;
    a.ok("BEGIN", "BEGIN").await;
    b.ok("BEGIN", "BEGIN").await;
    a.ok("UPDATE accounts SET balance = 1 WHERE id = 1", "UPDATE 1").await;
    b.ok("UPDATE accounts SET balance = 2 WHERE id = 2", "UPDATE 1").await;
    let b = waiting(b, "UPDATE accounts SET balance = 2 WHERE id = 1").await;
    let mine = a.run("UPDATE accounts SET balance = 1 WHERE id = 2").await;
    let (mut b, theirs) = match &mine {
        // This one was the victim and has rolled back: the other goes on.
        Err(_) => b.await.unwrap(),
        Ok(_) => {
            a.ok("COMMIT", "COMMIT").await;
            b.await.unwrap()
        }
    };
    let failed: Vec<&str> = [&mine, &theirs].iter().filter_map(|r| r.as_ref().err()).map(|e| e.state.0).collect();
    assert_eq!(failed, ["40P01"]);
    a.run("ROLLBACK").await.unwrap();
    b.run("ROLLBACK").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_can_be_cancelled() {
    let (_db, mut a, b) = accounts().await;
    a.ok("BEGIN", "BEGIN").await;
    a.ok("UPDATE accounts SET balance = 1 WHERE id = 1", "UPDATE 1").await;
    let canceller = b.session.canceller();
    canceller.cancel();
    let task = waiting(b, "UPDATE accounts SET balance = 2 WHERE id = 1").await;
    canceller.cancel();
    let (mut b, reply) = task.await.unwrap();
    let error = reply.unwrap_err();
    assert_eq!((error.state.0, error.message.as_str()), ("57014", "canceling statement due to user request"));
    a.ok("COMMIT", "COMMIT").await;
    b.ok("UPDATE accounts SET balance = balance + 1 WHERE id = 1", "UPDATE 1").await;
    b.rows("SELECT balance FROM accounts WHERE id = 1", &["2"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_on_their_way_can_be_cancelled() {
    let (_db, mut a, _) = accounts().await;
    for _ in 0..5 {
        a.run(
            "INSERT INTO accounts SELECT max.m + a.id, a.owner, 1 FROM accounts a, (SELECT max(id) AS m \
               FROM accounts) max",
        )
        .await
        .unwrap();
    }
    let sql = "SELECT a.id FROM accounts a, accounts b, accounts c";
    let statement = a.session.prepare(sql, &[]).await.unwrap();
    let canceller = a.session.canceller();
    let Outcome::Rows { mut stream, .. } = a.session.execute(&statement, vec![]).await.unwrap() else { panic!() };
    assert!(stream.next().await.unwrap().is_ok());
    canceller.cancel();
    let mut last = None;
    while let Some(batch) = stream.next().await {
        last = Some(batch.map(|b| b.num_rows()));
    }
    assert_eq!(last.unwrap().unwrap_err().state.0, "57014");
    a.rows("SELECT count(*) FROM accounts", &["96"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_left_unread_do_not_hold_their_transaction() {
    let (_db, mut a, mut b) = accounts().await;
    let statement = a.session.prepare("SELECT id FROM accounts", &[]).await.unwrap();
    let outcome = a.session.execute(&statement, vec![]).await.unwrap();
    drop(outcome);
    a.session.sync().await.unwrap();
    b.ok("DROP TABLE accounts", "DROP TABLE").await;
    a.fails("SELECT id FROM accounts", "42P01").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_seen_by_others_until_its_transaction_ends() {
    let (db, mut a, mut b) = accounts().await;
    let mut c = Client::new(&db);
    a.ok("BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN").await;
    a.ok("UPDATE accounts SET balance = 1 WHERE id = 1", "UPDATE 1").await;
    let Reply::Rows(name) = a.run("SELECT pg_export_snapshot()").await.unwrap() else { panic!("rows") };
    let import = format!("SET TRANSACTION SNAPSHOT '{}'", name[0]);
    c.ok("UPDATE accounts SET balance = 7 WHERE id = 2", "UPDATE 1").await;
    c.ok("DELETE FROM accounts WHERE id = 3", "DELETE 1").await;

    assert_eq!(b.run(&import).await.unwrap(), Reply::Notice("SET".into(), "25P01".into()));
    b.ok("BEGIN", "BEGIN").await;
    b.fails(&import, "0A000").await;
    b.ok("ROLLBACK", "ROLLBACK").await;
    b.ok("BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN").await;
    b.rows("SELECT 1", &["1"]).await;
    b.fails(&import, "25001").await;
    b.ok("ROLLBACK", "ROLLBACK").await;
    b.ok("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", "BEGIN").await;
    b.fails("SET TRANSACTION SNAPSHOT 'nobody'", "22023").await;
    b.ok("ROLLBACK", "ROLLBACK").await;
    b.ok("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", "BEGIN").await;
    b.ok(&import, "SET").await;
    // Neither what was committed since, nor what its owner has not committed.
    let then = ["1|ann|100", "2|bob|100", "3|cem|100"];
    b.rows("SELECT * FROM accounts", &then).await;
    b.fails(&import, "25001").await;
    b.ok("ROLLBACK", "ROLLBACK").await;

    b.ok("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", "BEGIN").await;
    b.ok(&import, "SET").await;
    a.ok("SAVEPOINT s", "SAVEPOINT").await;
    a.fails("SELECT pg_export_snapshot()", "25001").await;
    a.ok("ROLLBACK", "ROLLBACK").await;
    // Who has it keeps it; nobody else gets it.
    b.rows("SELECT * FROM accounts", &then).await;
    c.ok("BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN").await;
    c.fails(&import, "22023").await;
}
