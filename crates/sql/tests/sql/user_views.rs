//! Views and tables that are made of queries, as sessions beside each other see them; and settings of a client's own.
use crate::common::{Client, Reply, database};
use std::time::Duration;
use terrace_engine::{DataType, Datum};

#[tokio::test]
async fn a_view_and_what_it_reads_are_defined_one_after_the_other() {
    let db = database().await;
    let (mut a, mut b) = (Client::new(&db), Client::new(&db));
    a.ok("CREATE TABLE t (x int)", "CREATE TABLE").await;
    a.ok("CREATE TABLE u (x int)", "CREATE TABLE").await;
    // Whoever is later sees what the other has made of it.
    a.ok("BEGIN", "BEGIN").await;
    a.ok("CREATE VIEW v AS SELECT * FROM t", "CREATE VIEW").await;
    b.ok("SET lock_timeout = '5s'", "SET").await;
    let drop = tokio::spawn(async move {
        let error = b.run("DROP TABLE t").await.unwrap_err();
        assert_eq!(error.detail.as_deref(), Some("view v depends on table t"));
        (b, error.state.0)
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    a.ok("COMMIT", "COMMIT").await;
    let (mut b, state) = drop.await.unwrap();
    assert_eq!(state, "2BP01");
    a.ok("BEGIN", "BEGIN").await;
    a.ok("DROP TABLE u", "DROP TABLE").await;
    let create = tokio::spawn(async move { b.run("CREATE VIEW w AS SELECT * FROM u").await.unwrap_err().state.0 });
    tokio::time::sleep(Duration::from_millis(100)).await;
    a.ok("COMMIT", "COMMIT").await;
    assert_eq!(create.await.unwrap(), "42P01");
}

#[tokio::test]
async fn an_open_cursor_outlives_its_view() {
    let db = database().await;
    let (mut a, mut b) = (Client::new(&db), Client::new(&db));
    a.ok("CREATE VIEW v AS SELECT g FROM generate_series(1, 3) AS g", "CREATE VIEW").await;
    a.ok("BEGIN", "BEGIN").await;
    a.ok("DECLARE c CURSOR FOR SELECT g FROM v", "DECLARE CURSOR").await;
    a.rows("FETCH 1 FROM c", &["1"]).await;
    b.ok("DROP VIEW v", "DROP VIEW").await;
    a.rows("FETCH 2 FROM c", &["2", "3"]).await;
    a.fails("SELECT * FROM v", "42P01").await;
    a.ok("ROLLBACK", "ROLLBACK").await;
}

#[tokio::test]
async fn views_on_views_have_an_end() {
    let db = database().await;
    let mut c = Client::new(&db);
    c.ok("CREATE VIEW v0 AS SELECT 1 AS x", "CREATE VIEW").await;
    let mut deepest = 0;
    for n in 1..100 {
        match c.run(&format!("CREATE VIEW v{n} AS SELECT x + 1 AS x FROM v{}", n - 1)).await {
            Ok(_) => deepest = n,
            Err(error) => {
                assert_eq!(error.state.0, "54001");
                break;
            }
        }
    }
    assert!((5..99).contains(&deepest), "{deepest}");
    c.rows(&format!("SELECT x FROM v{deepest}"), &[&(deepest + 1).to_string()]).await;
    // A statement that was prepared before there were views.
    let mut d = Client::new(&db);
    d.ok("CREATE TABLE p (x int)", "CREATE TABLE").await;
    d.ok("PREPARE p AS SELECT x FROM p", "PREPARE").await;
    d.ok("DROP TABLE p", "DROP TABLE").await;
    d.ok(&format!("CREATE VIEW p AS SELECT x FROM v{}", deepest - 2), "CREATE VIEW").await;
    d.rows("EXECUTE p", &[&(deepest - 1).to_string()]).await;
    // Views that read others twice double with each.
    c.ok("CREATE VIEW w0 AS SELECT 1 AS x", "CREATE VIEW").await;
    for n in 1..9 {
        let sql = format!("CREATE VIEW w{n} AS SELECT a.x FROM w{0} AS a JOIN w{0} AS b USING (x)", n - 1);
        if let Err(error) = c.run(&sql).await {
            assert_eq!(error.state.0, "54001", "{sql}");
            return;
        }
    }
    panic!("a statement reads 256 views");
}

#[tokio::test]
async fn a_table_is_made_of_a_query_with_parameters() {
    let mut c = Client::new(&database().await);
    assert_eq!(c.parameters("CREATE TABLE t AS SELECT $1::int + 1 AS n").await, [DataType::Int4]);
    let made = c.run_with("CREATE TABLE t AS SELECT $1::int + 1 AS n", vec![Datum::Int4(6)]).await.unwrap();
    assert!(made == Reply::Tag("SELECT 1".into()));
    c.rows("SELECT n FROM t", &["7"]).await;
    c.ok("CREATE TABLE u AS SELECT n FROM t WITH NO DATA", "CREATE TABLE AS").await;
    c.ok("SELECT n, n + 1 AS m INTO w FROM t", "SELECT 1").await;
    c.rows("SELECT n, m FROM w", &["7|8"]).await;
    c.fails("PREPARE p AS SELECT 1 AS x INTO y", "0A000").await;
    c.fails("EXPLAIN CREATE TABLE y AS SELECT 1", "0A000").await;
}

#[tokio::test]
async fn a_session_cancels_another() {
    let db = database().await;
    let (mut a, mut b) = (Client::new(&db), Client::new(&db));
    let pid = a.session.backend_pid();
    let sleep = tokio::spawn(async move { a.run("SELECT pg_sleep(60)").await.unwrap_err().state.0 });
    tokio::time::sleep(Duration::from_millis(100)).await;
    b.rows(&format!("SELECT pg_cancel_backend({pid})"), &["true"]).await;
    assert_eq!(sleep.await.unwrap(), "57014");
    b.rows("SELECT pg_cancel_backend(12345)", &["false"]).await;
}

#[tokio::test]
async fn a_session_keeps_no_more_settings_than_it_should() {
    let mut c = Client::new(&database().await);
    let long = "x".repeat(300_000);
    for n in 0..3 {
        c.ok(&format!("SET own.a{n} = '{long}'"), "SET").await;
    }
    c.fails(&format!("SET own.a3 = '{long}'"), "54000").await;
    c.ok("SET own.a2 = ''", "SET").await;
    c.ok(&format!("SET own.a3 = '{long}'"), "SET").await;
    c.ok("RESET ALL", "RESET").await;
    c.rows("SELECT current_setting('own.a1') = ''", &["true"]).await;
}
