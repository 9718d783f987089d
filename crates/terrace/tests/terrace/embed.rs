//! The library, as a program uses it.

use futures::executor::block_on;
use std::path::{Path, PathBuf};
use terrace::arrow::array::AsArray;
use terrace::arrow::datatypes::Int64Type;
use terrace::engine::Isolation;
use terrace::{Database, Options, Session, blocking, params};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("embed-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&dir).ok();
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

const SMALL: &str = "[memory]\npool = \"8MB\"\nlog_buffer = \"1MB\"\n[log]\nsegment_size = \"1MB\"\n\
                     redo_bound = \"16MB\"\nretention = \"16MB\"\n";

fn options() -> Options {
    Options::create_with(SMALL)
}

/// The one that was dropped lets go of its files at once or soon.
async fn reopen(dir: &Path) -> Database {
    loop {
        match Database::open(dir, Options::existing()).await {
            Ok(db) => return db,
            Err(error) => assert!(error.to_string().contains("in use"), "{error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

async fn number(session: &mut Session, sql: &str) -> i64 {
    session.query(sql, &[]).await.unwrap()[0].column(0).as_primitive::<Int64Type>().value(0)
}

#[test]
fn sessions_prepare_bind_and_roll_back() {
    let scratch = Scratch::new("sessions");
    block_on(async {
        assert_eq!(Database::open(&scratch.0, Options::existing()).await.err().unwrap().sqlstate(), "55000");
        let db = Database::open(&scratch.0, options()).await.unwrap();
        let mut session = db.session().unwrap();
        let script = "CREATE TABLE t (k bigint PRIMARY KEY, v text, x double precision); \
                      INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2)";
        assert_eq!(session.execute(script, &[]).await.unwrap(), 2);
        // Parameters take their columns' types; NULL; text for anything.
        let insert = session.prepare("INSERT INTO t VALUES ($1, $2, $3)").await.unwrap();
        assert_eq!(session.execute(&insert, params![3, "three", 3]).await.unwrap(), 1);
        assert_eq!(session.execute(&insert, params!["4", None::<&str>, "4.5"]).await.unwrap(), 1);
        for (parameters, state) in [
            (params![1, "again", 0.0].as_slice(), "23505"),
            (params!["five", "", 0.0], "22P02"),
            (params![5_000_000_000_i64], "08P01"),
        ] {
            assert_eq!(session.execute(&insert, parameters).await.unwrap_err().sqlstate(), state);
        }
        assert_eq!(session.query("SELECT k FROM t WHERE v = $1", params!["two"]).await.unwrap()[0].num_rows(), 1);
        let none = session.query("SELECT k, v FROM t WHERE k > $1", params![10]).await.unwrap();
        assert_eq!((none.len(), none[0].num_rows(), none[0].num_columns()), (1, 0, 2));
        assert_eq!(session.query("DELETE FROM t WHERE k = 10", &[]).await.unwrap_err().sqlstate(), "42601");
        assert_eq!(session.execute("SELEC 1", &[]).await.unwrap_err().sqlstate(), "42601");
        // Several statements are one transaction.
        assert!(session.execute("DELETE FROM t; SELECT 1 / 0", &[]).await.is_err());
        assert_eq!(number(&mut session, "SELECT count(*) FROM t").await, 4);

        let mut txn = session.transaction().await.unwrap();
        assert_eq!(txn.execute("DELETE FROM t", &[]).await.unwrap(), 4);
        drop(txn);
        assert_eq!(number(&mut session, "SELECT count(*) FROM t").await, 4, "a dropped transaction is rolled back");
        // Its locks are free, soon.
        session.execute("UPDATE t SET v = 'ours' WHERE k = 1", &[]).await.unwrap();
        let mut txn = session.transaction().await.unwrap();
        txn.execute("DELETE FROM t WHERE k = 1", &[]).await.unwrap();
        assert!(txn.execute("SELECT * FROM nowhere", &[]).await.is_err());
        assert_eq!(txn.commit().await.unwrap_err().sqlstate(), "25P02");
        let mut txn = session.transaction().await.unwrap();
        txn.execute("DELETE FROM t WHERE k = 1", &[]).await.unwrap();
        txn.commit().await.unwrap();

        assert_eq!(db.close().await.unwrap_err().sqlstate(), "55006");
        drop(session);
        db.close().await.unwrap();
        db.close().await.unwrap();
        assert_eq!(db.session().err().unwrap().sqlstate(), "57P01");
        drop(db);
        let db = reopen(&scratch.0).await;
        assert!(db.report().storage.clean_shutdown);
        assert_eq!(number(&mut db.session().unwrap(), "SELECT count(*) FROM t").await, 3);
    });
}

#[test]
fn a_dropped_database_recovers_and_the_typed_api_sees_its_tables() {
    let scratch = Scratch::new("dropped");
    let db = blocking::Database::open(&scratch.0, options()).unwrap();
    let mut session = db.session().unwrap();
    session.execute("CREATE TABLE t (k bigint PRIMARY KEY, v bigint)", &[]).unwrap();
    session.execute("INSERT INTO t VALUES (1, 10)", &[]).unwrap();
    let failed = session.transaction(|session| {
        session.execute("UPDATE t SET v = 11", &[])?;
        session.execute("SELECT 1 / 0", &[])
    });
    assert_eq!(failed.unwrap_err().sqlstate(), "22012");
    session.transaction(|session| session.execute("UPDATE t SET v = v + 1", &[])).unwrap();
    drop((session, db));
    drop(block_on(reopen(&scratch.0)));
    let db = loop {
        match blocking::Database::open(&scratch.0, Options::existing()) {
            Ok(db) => break db,
            Err(error) => assert!(error.to_string().contains("in use"), "{error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    // A database that another one has open is refused.
    assert_eq!(blocking::Database::open(&scratch.0, Options::existing()).err().unwrap().sqlstate(), "55000");
    assert!(!db.async_database().report().storage.clean_shutdown);
    block_on(async {
        let table = db.async_database().catalog().table("t").unwrap().clone();
        let mut txn = db.async_database().begin(Isolation::ReadCommitted);
        let (_, row, _) = txn.get(&table, &table.indexes[0], &[1_i64.into()]).await.unwrap().unwrap();
        assert_eq!(row.view(&table).get(1).to_datum(), 11_i64.into());
        txn.commit().await.unwrap();
    });
    db.close().unwrap();
}

#[test]
fn sessions_work_within_tokio_and_are_cancelled_from_outside() {
    let scratch = Scratch::new("tokio");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let db = Database::open(&scratch.0, options()).await.unwrap();
        let mut session = db.session().unwrap();
        session.execute("CREATE TABLE t (k bigint PRIMARY KEY)", &[]).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for k in 0..8_i64 {
            let mut session = db.session().unwrap();
            tasks.spawn(async move { session.execute("INSERT INTO t VALUES ($1)", params![k]).await.unwrap() });
        }
        while let Some(done) = tasks.join_next().await {
            assert_eq!(done.unwrap(), 1);
        }
        let canceller = session.canceller();
        let endless = tokio::spawn(async move {
            let joins = "SELECT count(*) FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, t j";
            session.query(joins, &[]).await.unwrap_err().sqlstate().to_string()
        });
        while !endless.is_finished() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            canceller.cancel();
        }
        assert_eq!(endless.await.unwrap(), "57014");
        db.close().await.unwrap();
    });
    // Dropped within a runtime or without one.
    runtime.block_on(async { drop(reopen(&scratch.0).await) });
}

#[test]
fn s6_after_a_background_task_has_panicked_every_statement_says_so() {
    let scratch = Scratch::new("panic");
    block_on(async {
        let db = Database::open(&scratch.0, options()).await.unwrap();
        let mut session = db.session().unwrap();
        session.execute("CREATE TABLE t (k bigint PRIMARY KEY); INSERT INTO t VALUES (1), (2)", &[]).await.unwrap();
        db.engine().spawn("test", async { panic!("on purpose") });
        while db.engine().failure().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        for sql in ["SELECT k FROM t WHERE k = 1", "SELECT count(*) FROM t", "INSERT INTO t VALUES (3)", "BEGIN"] {
            let error = session.execute(sql, &[]).await.unwrap_err();
            assert_eq!(error.sqlstate(), "XX000", "{sql}: {error}");
            assert!(error.to_string().contains("background task \"test\" failed"), "{sql}: {error}");
            assert!(error.to_string().contains("on purpose"), "{sql}: {error}");
        }
        let mut txn = db.begin(Isolation::ReadCommitted);
        let t = db.catalog().table("t").unwrap().clone();
        // The log refuses it, or (until the log has heard of the panic) the store does.
        let state = txn.insert(&t, &[4_i64.into()]).await.unwrap_err().state.0;
        assert!(["58030", "XX000"].contains(&state), "{state}");
        drop((txn, session));
        assert!(db.close().await.is_err(), "it was not closed in order");
        drop(db);
        let db = reopen(&scratch.0).await;
        assert_eq!(number(&mut db.session().unwrap(), "SELECT count(*) FROM t").await, 2);
        db.close().await.unwrap();
    });
}
