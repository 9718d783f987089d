//! What the isolation levels let through and what they prevent, case by case, with PostgreSQL's answers.
//!
//! Source: M. Kleppmann, "Hermitage: Testing the I in ACID", https://github.com/ept/hermitage (the PostgreSQL cases; anomalies as in
//! A. Adya's thesis and P. Bailis et al., "Highly Available Transactions", VLDB 2014).
use crate::common::{Server, rows, soon, state, waits};
use std::pin::pin;
use tokio_postgres::Client;

const READ_COMMITTED: &str = "READ COMMITTED";
const REPEATABLE_READ: &str = "REPEATABLE READ";
const SERIALIZABLE: &str = "SERIALIZABLE";

/// The table `test` with rows (1, 10), (2, 20), and as many open transactions as a case has.
struct Case {
    _server: Server,
    clients: Vec<Client>,
}

impl Case {
    async fn new(level: &str, transactions: usize) -> Case {
        let server = Server::start().await;
        let mut clients = vec![];
        for _ in 0..transactions {
            clients.push(server.client().await);
        }
        clients[0].batch_execute("CREATE TABLE test (id int PRIMARY KEY, value int)").await.unwrap();
        clients[0].batch_execute("INSERT INTO test (id, value) VALUES (1, 10), (2, 20)").await.unwrap();
        for client in &clients {
            client.batch_execute(&format!("BEGIN TRANSACTION ISOLATION LEVEL {level}")).await.unwrap();
        }
        Case { _server: server, clients }
    }

    fn two(&self) -> (&Client, &Client) {
        (&self.clients[0], &self.clients[1])
    }
}

/// Rows, sorted: no case says an order.
async fn select(t: &Client, what: &str) -> Vec<String> {
    let mut found = soon(rows(t, &format!("SELECT * FROM test {what}"))).await.unwrap();
    found.sort();
    found
}

async fn run(t: &Client, sql: &str) {
    soon(t.batch_execute(sql)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn g0_write_cycles() {
    let case = Case::new(READ_COMMITTED, 2).await;
    let (t1, t2) = case.two();
    run(t1, "UPDATE test SET value = 11 WHERE id = 1").await;
    let mut blocked = pin!(t2.batch_execute("UPDATE test SET value = 12 WHERE id = 1"));
    waits(&mut blocked).await;
    run(t1, "UPDATE test SET value = 21 WHERE id = 2").await;
    run(t1, "COMMIT").await;
    soon(blocked).await.unwrap();
    assert_eq!(select(t1, "").await, ["1|11", "2|21"]);
    run(t2, "UPDATE test SET value = 22 WHERE id = 2").await;
    run(t2, "COMMIT").await;
    assert_eq!(select(t1, "").await, ["1|12", "2|22"]);
    assert_eq!(select(t2, "").await, ["1|12", "2|22"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn g1a_aborted_reads() {
    let case = Case::new(READ_COMMITTED, 2).await;
    let (t1, t2) = case.two();
    run(t1, "UPDATE test SET value = 101 WHERE id = 1").await;
    assert_eq!(select(t2, "").await, ["1|10", "2|20"]);
    run(t1, "ROLLBACK").await;
    assert_eq!(select(t2, "").await, ["1|10", "2|20"]);
    run(t2, "COMMIT").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn g1b_intermediate_reads() {
    for (level, last) in [(READ_COMMITTED, "1|11"), (REPEATABLE_READ, "1|10")] {
        let case = Case::new(level, 2).await;
        let (t1, t2) = case.two();
        run(t1, "UPDATE test SET value = 101 WHERE id = 1").await;
        assert_eq!(select(t2, "").await, ["1|10", "2|20"]);
        run(t1, "UPDATE test SET value = 11 WHERE id = 1").await;
        run(t1, "COMMIT").await;
        assert_eq!(select(t2, "").await, [last, "2|20"], "{level}");
        run(t2, "COMMIT").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn g1c_circular_information_flow() {
    let case = Case::new(READ_COMMITTED, 2).await;
    let (t1, t2) = case.two();
    run(t1, "UPDATE test SET value = 11 WHERE id = 1").await;
    run(t2, "UPDATE test SET value = 22 WHERE id = 2").await;
    assert_eq!(select(t1, "WHERE id = 2").await, ["2|20"]);
    assert_eq!(select(t2, "WHERE id = 1").await, ["1|10"]);
    run(t1, "COMMIT").await;
    run(t2, "COMMIT").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn otv_observed_transaction_vanishes() {
    let case = Case::new(READ_COMMITTED, 3).await;
    let (t1, t2, t3) = (&case.clients[0], &case.clients[1], &case.clients[2]);
    run(t1, "UPDATE test SET value = 11 WHERE id = 1").await;
    run(t1, "UPDATE test SET value = 19 WHERE id = 2").await;
    let mut blocked = pin!(t2.batch_execute("UPDATE test SET value = 12 WHERE id = 1"));
    waits(&mut blocked).await;
    run(t1, "COMMIT").await;
    soon(blocked).await.unwrap();
    assert_eq!(select(t3, "WHERE id = 1").await, ["1|11"]);
    run(t2, "UPDATE test SET value = 18 WHERE id = 2").await;
    assert_eq!(select(t3, "WHERE id = 2").await, ["2|19"]);
    run(t2, "COMMIT").await;
    assert_eq!(select(t3, "WHERE id = 2").await, ["2|18"]);
    assert_eq!(select(t3, "WHERE id = 1").await, ["1|12"]);
    run(t3, "COMMIT").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pmp_predicate_many_preceders_of_reads() {
    for (level, found) in [(READ_COMMITTED, &["3|30"][..]), (REPEATABLE_READ, &[])] {
        let case = Case::new(level, 2).await;
        let (t1, t2) = case.two();
        assert_eq!(select(t1, "WHERE value = 30").await, [""; 0]);
        run(t2, "INSERT INTO test (id, value) VALUES (3, 30)").await;
        run(t2, "COMMIT").await;
        assert_eq!(select(t1, "WHERE value % 3 = 0").await, found, "{level}");
        run(t1, "COMMIT").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pmp_predicate_many_preceders_of_writes_read_committed() {
    let case = Case::new(READ_COMMITTED, 2).await;
    let (t1, t2) = case.two();
    run(t1, "UPDATE test SET value = value + 10").await;
    assert_eq!(select(t2, "WHERE value = 20").await, ["2|20"]);
    let mut blocked = pin!(t2.execute("DELETE FROM test WHERE value = 20", &[]));
    waits(&mut blocked).await;
    run(t1, "COMMIT").await;
    assert_eq!(soon(blocked).await.unwrap(), 0, "the row it waited for qualifies no longer");
    assert_eq!(select(t2, "WHERE value = 20").await, ["1|20"]);
    run(t2, "COMMIT").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pmp_predicate_many_preceders_of_writes_repeatable_read() {
    let case = Case::new(REPEATABLE_READ, 2).await;
    let (t1, t2) = case.two();
    run(t1, "UPDATE test SET value = value + 10").await;
    assert_eq!(select(t2, "WHERE value = 20").await, ["2|20"]);
    let mut blocked = pin!(t2.batch_execute("DELETE FROM test WHERE value = 20"));
    waits(&mut blocked).await;
    run(t1, "COMMIT").await;
    assert_eq!(state(soon(blocked).await), "40001");
    run(t2, "ROLLBACK").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p4_lost_update() {
    for level in [READ_COMMITTED, REPEATABLE_READ] {
        let case = Case::new(level, 2).await;
        let (t1, t2) = case.two();
        assert_eq!(select(t1, "WHERE id = 1").await, ["1|10"]);
        assert_eq!(select(t2, "WHERE id = 1").await, ["1|10"]);
        run(t1, "UPDATE test SET value = 11 WHERE id = 1").await;
        let mut blocked = pin!(t2.batch_execute("UPDATE test SET value = 11 WHERE id = 1"));
        waits(&mut blocked).await;
        run(t1, "COMMIT").await;
        let second = soon(blocked).await;
        if level == READ_COMMITTED {
            second.unwrap();
            run(t2, "COMMIT").await;
        } else {
            assert_eq!(state(second), "40001");
            run(t2, "ROLLBACK").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn g_single_read_skew() {
    for (level, found) in [(READ_COMMITTED, "2|18"), (REPEATABLE_READ, "2|20")] {
        let case = Case::new(level, 2).await;
        let (t1, t2) = case.two();
        assert_eq!(select(t1, "WHERE id = 1").await, ["1|10"]);
        assert_eq!(select(t2, "").await, ["1|10", "2|20"]);
        run(t2, "UPDATE test SET value = 12 WHERE id = 1").await;
        run(t2, "UPDATE test SET value = 18 WHERE id = 2").await;
        run(t2, "COMMIT").await;
        assert_eq!(select(t1, "WHERE id = 2").await, [found], "{level}");
        run(t1, "COMMIT").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn g_single_predicate_dependencies() {
    for (level, found) in [(READ_COMMITTED, &["1|12"][..]), (REPEATABLE_READ, &[])] {
        let case = Case::new(level, 2).await;
        let (t1, t2) = case.two();
        assert_eq!(select(t1, "WHERE value % 5 = 0").await, ["1|10", "2|20"]);
        run(t2, "UPDATE test SET value = 12 WHERE value = 10").await;
        run(t2, "COMMIT").await;
        assert_eq!(select(t1, "WHERE value % 3 = 0").await, found, "{level}");
        run(t1, "COMMIT").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn g_single_write_predicate_after_a_commit() {
    for level in [READ_COMMITTED, REPEATABLE_READ] {
        let case = Case::new(level, 2).await;
        let (t1, t2) = case.two();
        assert_eq!(select(t1, "WHERE id = 1").await, ["1|10"]);
        assert_eq!(select(t2, "").await, ["1|10", "2|20"]);
        run(t2, "UPDATE test SET value = 12 WHERE id = 1").await;
        run(t2, "UPDATE test SET value = 18 WHERE id = 2").await;
        run(t2, "COMMIT").await;
        let deleted = soon(t1.execute("DELETE FROM test WHERE value = 20", &[])).await;
        if level == READ_COMMITTED {
            assert_eq!(deleted.unwrap(), 0);
        } else {
            assert_eq!(state(deleted), "40001");
        }
        run(t1, "ROLLBACK").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn g_single_write_predicate_before_a_rollback() {
    for level in [READ_COMMITTED, REPEATABLE_READ] {
        let case = Case::new(level, 2).await;
        let (t1, t2) = case.two();
        assert_eq!(select(t1, "WHERE id = 1").await, ["1|10"]);
        assert_eq!(select(t2, "").await, ["1|10", "2|20"]);
        run(t2, "UPDATE test SET value = 12 WHERE id = 1").await;
        run(t1, "DELETE FROM test WHERE value = 20").await;
        let mut blocked = pin!(t2.execute("UPDATE test SET value = 18 WHERE id = 2", &[]));
        waits(&mut blocked).await;
        run(t1, "ROLLBACK").await;
        assert_eq!(soon(blocked).await.unwrap(), 1, "{level}");
        run(t2, "COMMIT").await;
        assert_eq!(select(t1, "").await, ["1|12", "2|18"]);
    }
}

/// Write skew: snapshot isolation allows it, SERIALIZABLE does not.
#[tokio::test(flavor = "multi_thread")]
async fn g2_item_write_skew() {
    for level in [READ_COMMITTED, REPEATABLE_READ] {
        let case = Case::new(level, 2).await;
        let (t1, t2) = case.two();
        assert_eq!(select(t1, "WHERE id IN (1, 2)").await, ["1|10", "2|20"]);
        assert_eq!(select(t2, "WHERE id IN (1, 2)").await, ["1|10", "2|20"]);
        run(t1, "UPDATE test SET value = 11 WHERE id = 1").await;
        run(t2, "UPDATE test SET value = 21 WHERE id = 2").await;
        run(t1, "COMMIT").await;
        run(t2, "COMMIT").await;
        assert_eq!(select(t1, "").await, ["1|11", "2|21"], "{level}");
    }
    let case = Case::new(SERIALIZABLE, 2).await;
    let (t1, t2) = case.two();
    assert_eq!(select(t1, "WHERE id IN (1, 2)").await, ["1|10", "2|20"]);
    assert_eq!(select(t2, "WHERE id IN (1, 2)").await, ["1|10", "2|20"]);
    run(t1, "UPDATE test SET value = 11 WHERE id = 1").await;
    run(t2, "UPDATE test SET value = 21 WHERE id = 2").await;
    run(t1, "COMMIT").await;
    refused(t2, "COMMIT").await;
    assert_eq!(select(t1, "").await, ["1|11", "2|20"]);
}

/// 40001, in PostgreSQL's words.
async fn refused(t: &Client, sql: &str) {
    let error = soon(t.batch_execute(sql)).await.unwrap_err();
    let error = error.as_db_error().expect("the server says it");
    let message = "could not serialize access due to read/write dependencies among transactions";
    assert_eq!((error.code().code(), error.message()), ("40001", message));
    assert!(error.detail().is_some_and(|detail| detail.starts_with("Reason code: Canceled on ")), "{error:?}");
    assert_eq!(error.hint(), Some("The transaction might succeed if retried."));
}

#[tokio::test(flavor = "multi_thread")]
async fn g2_anti_dependency_cycles() {
    for level in [READ_COMMITTED, REPEATABLE_READ] {
        let case = Case::new(level, 2).await;
        let (t1, t2) = case.two();
        assert_eq!(select(t1, "WHERE value % 3 = 0").await, [""; 0]);
        assert_eq!(select(t2, "WHERE value % 3 = 0").await, [""; 0]);
        run(t1, "INSERT INTO test (id, value) VALUES (3, 30)").await;
        run(t2, "INSERT INTO test (id, value) VALUES (4, 42)").await;
        run(t1, "COMMIT").await;
        run(t2, "COMMIT").await;
        assert_eq!(select(t1, "WHERE value % 3 = 0").await, ["3|30", "4|42"], "{level}");
    }
    let case = Case::new(SERIALIZABLE, 2).await;
    let (t1, t2) = case.two();
    assert_eq!(select(t1, "WHERE value % 3 = 0").await, [""; 0]);
    assert_eq!(select(t2, "WHERE value % 3 = 0").await, [""; 0]);
    run(t1, "INSERT INTO test (id, value) VALUES (3, 30)").await;
    run(t2, "INSERT INTO test (id, value) VALUES (4, 42)").await;
    run(t1, "COMMIT").await;
    refused(t2, "COMMIT").await;
}

/// The read-only transaction anomaly of A. Fekete et al.: snapshot isolation allows it, SERIALIZABLE does not.
#[tokio::test(flavor = "multi_thread")]
async fn g2_two_anti_dependency_edges() {
    for level in [REPEATABLE_READ, SERIALIZABLE] {
        let case = Case::new(level, 3).await;
        let (t1, t2, t3) = (&case.clients[0], &case.clients[1], &case.clients[2]);
        assert_eq!(select(t1, "").await, ["1|10", "2|20"]);
        // The snapshot of its first statement: t3's has to be one from after t2.
        run(t3, "ROLLBACK").await;
        run(t2, "UPDATE test SET value = value + 5 WHERE id = 2").await;
        run(t2, "COMMIT").await;
        run(t3, &format!("BEGIN ISOLATION LEVEL {level}")).await;
        assert_eq!(select(t3, "").await, ["1|10", "2|25"]);
        run(t3, "COMMIT").await;
        if level == SERIALIZABLE {
            refused(t1, "UPDATE test SET value = 0 WHERE id = 1").await;
            continue;
        }
        run(t1, "UPDATE test SET value = 0 WHERE id = 1").await;
        run(t1, "COMMIT").await;
        assert_eq!(select(t2, "").await, ["1|0", "2|25"]);
    }
}

/// DEFERRABLE waits for those that could make what it reads impossible, and can be cancelled meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_deferrable_transaction_waits_at_its_first_statement() {
    let case = Case::new(SERIALIZABLE, 2).await;
    let (t1, t2) = case.two();
    run(t1, "UPDATE test SET value = 11 WHERE id = 1").await;
    run(t2, "ROLLBACK").await;
    for sql in ["SELECT * FROM test WHERE id = 1", "SELECT count(*) FROM test"] {
        run(t2, "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE").await;
        run(t2, "SET LOCAL statement_timeout = 200").await;
        assert_eq!(state(soon(t2.batch_execute(sql)).await), "57014");
        run(t2, "ROLLBACK").await;
    }
    run(t2, "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE").await;
    let mut blocked = pin!(rows(t2, "SELECT * FROM test"));
    waits(&mut blocked).await;
    run(t1, "COMMIT").await;
    let mut found = soon(blocked).await.unwrap();
    found.sort();
    // The snapshot is the one that it had taken: it has turned out to be safe.
    assert_eq!(found, ["1|10", "2|20"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock_ends_one_of_its_transactions() {
    let case = Case::new(READ_COMMITTED, 2).await;
    let (t1, t2) = case.two();
    run(t1, "UPDATE test SET value = 11 WHERE id = 1").await;
    run(t2, "UPDATE test SET value = 22 WHERE id = 2").await;
    let mut first = pin!(t1.batch_execute("UPDATE test SET value = 12 WHERE id = 2"));
    waits(&mut first).await;
    let second = t2.batch_execute("UPDATE test SET value = 21 WHERE id = 1");
    let (first, second) = soon(async { tokio::join!(first, second) }).await;
    match (first, second) {
        (Ok(()), lost) | (lost, Ok(())) => assert_eq!(state(lost), "40P01"),
        (first, second) => panic!("both were ended: {first:?}, {second:?}"),
    }
}
