//! PREPARE, EXECUTE, DEALLOCATE, DISCARD.
use crate::common::{Client, Reply, database};

async fn client() -> Client {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, v text, at timestamp)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 'one'), (2, 'two')", "INSERT 0 2").await;
    c
}

#[tokio::test]
async fn prepared_statements_run_with_their_arguments() {
    let mut c = client().await;
    c.ok("PREPARE get (int) AS SELECT v FROM t WHERE id = $1", "PREPARE").await;
    c.rows("EXECUTE get(1)", &["one"]).await;
    c.rows("EXECUTE get(1 + 1)", &["two"]).await;
    c.rows("EXECUTE get('2')", &["two"]).await;
    c.rows("EXECUTE get(NULL)", &[]).await;
    c.ok("PREPARE put AS INSERT INTO t VALUES ($1, $2, $3)", "PREPARE").await;
    c.ok("EXECUTE put(3, upper('three'), '2024-02-29')", "INSERT 0 1").await;
    c.rows("SELECT v, at FROM t WHERE id = 3", &["THREE|2024-02-29T00:00:00"]).await;
    c.ok("PREPARE upd(text, int) AS UPDATE t SET v = $1 WHERE id > $2 RETURNING id", "PREPARE").await;
    c.rows("EXECUTE upd(5, 1)", &["2", "3"]).await;
    c.ok("PREPARE del AS DELETE FROM t WHERE id = 3", "PREPARE").await;
    c.ok("EXECUTE del", "DELETE 1").await;
    c.ok("EXECUTE del", "DELETE 0").await;
    c.ok("PREPARE \"Odd Name\" AS VALUES (1, 'a'), (2, 'b')", "PREPARE").await;
    c.rows("EXECUTE \"Odd Name\"", &["1|a", "2|b"]).await;
    c.ok("PREPARE lock AS SELECT v FROM t WHERE id = $1 FOR UPDATE", "PREPARE").await;
    c.rows("EXECUTE lock(1)", &["one"]).await;
    c.ok("PREPARE sum(numeric, unknown) AS SELECT ($1 + 1)::float8, $2 || 'x' FROM t WHERE id = 1", "PREPARE").await;
    c.rows("EXECUTE sum(1.5, 'y')", &["2.5|yx"]).await;
}

#[tokio::test]
async fn what_cannot_be_executed_says_so() {
    let mut c = client().await;
    c.ok("PREPARE get (int) AS SELECT v FROM t WHERE id = $1", "PREPARE").await;
    c.fails("PREPARE get AS SELECT 1", "42P05").await;
    c.fails("EXECUTE nosuch", "26000").await;
    c.fails("DEALLOCATE nosuch", "26000").await;
    let error = c.fails("EXECUTE get", "42601").await;
    assert_eq!(error.detail.as_deref(), Some("Expected 1 parameters but got 0."));
    c.fails("EXECUTE get(1, 2)", "42601").await;
    c.fails("EXECUTE get('x')", "22P02").await;
    let error = c.fails("EXECUTE get(now())", "42804").await;
    assert!(error.message.starts_with("parameter $1 of type timestamp"), "{error}");
    c.fails("EXECUTE get(id)", "42703").await;
    c.fails("PREPARE p AS CREATE TABLE u (a int)", "42601").await;
    c.fails("PREPARE p AS PREPARE q AS SELECT 1", "42601").await;
    c.fails("PREPARE p AS SELECT * FROM nosuch", "42P01").await;
    c.fails("PREPARE p (nosuch) AS SELECT $1", "42704").await;
    c.fails("EXECUTE p", "26000").await;
    // A statement that is described and then replaced is not another.
    let described = c.session.prepare("EXECUTE get(1)", &[]).await.unwrap();
    c.ok("DEALLOCATE get", "DEALLOCATE").await;
    assert_eq!(c.execute(&described, vec![]).await.unwrap_err().state.0, "26000");
    c.ok("PREPARE get (int) AS SELECT id FROM t WHERE id = $1", "PREPARE").await;
    assert_eq!(c.execute(&described, vec![]).await.unwrap_err().state.0, "0A000");
}

#[tokio::test]
async fn names_outlive_transactions_and_end_with_deallocate_and_discard() {
    let mut c = client().await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("PREPARE a AS SELECT 1", "PREPARE").await;
    c.fails("DISCARD ALL", "25001").await;
    c.fails("EXECUTE a", "25P02").await;
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.rows("EXECUTE a", &["1"]).await;
    c.ok("DEALLOCATE PREPARE a", "DEALLOCATE").await;
    c.fails("EXECUTE a", "26000").await;
    for discard in ["DEALLOCATE ALL", "DISCARD ALL"] {
        c.ok("PREPARE a AS SELECT 1", "PREPARE").await;
        c.ok(discard, discard).await;
        c.fails("EXECUTE a", "26000").await;
    }
    c.ok("CREATE SEQUENCE s", "CREATE SEQUENCE").await;
    c.rows("SELECT nextval('s')", &["1"]).await;
    c.ok("DISCARD PLANS", "DISCARD PLANS").await;
    c.ok("DISCARD TEMP", "DISCARD TEMP").await;
    c.rows("SELECT lastval()", &["1"]).await;
    c.ok("DISCARD SEQUENCES", "DISCARD SEQUENCES").await;
    c.fails("SELECT lastval()", "55000").await;
    c.fails("SELECT currval('s')", "55000").await;
    c.ok("PREPARE n AS INSERT INTO t (id) SELECT max(id) + 1 FROM t RETURNING id", "PREPARE").await;
    c.rows("EXECUTE n", &["3"]).await;
    assert_eq!(c.run("SHOW statement_timeout").await.unwrap(), Reply::Rows(vec!["0".into()]));
}

/// What named statements may take is bounded, for each session.
#[tokio::test]
async fn f8_named_statements_have_a_limit() {
    let db = database().await;
    let (mut a, mut b) = (Client::new(&db), Client::new(&db));
    let long = "x".repeat(350_000);
    let prepare = |name: &str| format!("PREPARE {name} AS SELECT '{long}'");
    a.ok(&prepare("p1"), "PREPARE").await;
    a.ok(&prepare("p2"), "PREPARE").await;
    let error = a.fails(&prepare("p3"), "54000").await;
    assert!(error.hint.is_some_and(|hint| hint.contains("DEALLOCATE")));
    a.fails("EXECUTE p3", "26000").await;
    b.ok(&prepare("p3"), "PREPARE").await;
    a.rows("SELECT 1", &["1"]).await;
    a.ok("DEALLOCATE p1", "DEALLOCATE").await;
    a.ok(&prepare("p3"), "PREPARE").await;
    a.ok("DEALLOCATE ALL", "DEALLOCATE ALL").await;
    a.ok(&prepare("p1"), "PREPARE").await;
    a.ok(&prepare("p2"), "PREPARE").await;
}
