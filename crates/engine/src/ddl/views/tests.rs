//! Views made, replaced and dropped; what a rollback, a restart and a change of what they read leave of them.
use crate::catalog::names::{RelationName, Space};
use crate::catalog::views::{View, ViewUse};
use crate::testing::*;
use crate::txn::Isolation;
use crate::{ColumnDef, DataType, Database, EngineConfig};
use terrace_storage::ObjectId;

use Isolation::ReadCommitted;

/// A view of column `v` of a relation, which has so many columns.
fn view(name: &str, of: &str, columns: usize) -> View {
    View {
        temporary: false,
        oid: ObjectId(0),
        space: Space::PUBLIC,
        name: name.into(),
        columns: vec![ColumnDef::new("v", DataType::Int4)],
        sql: format!("SELECT v FROM {of}"),
        zone: "UTC".into(),
        depth: 3,
        uses: vec![ViewUse { space: Space::PUBLIC, relation: of.into(), columns, used: vec![columns - 1] }],
        check: None,
    }
}

async fn put(db: &Database, view: View) -> crate::Result<()> {
    let mut txn = db.begin(ReadCommitted);
    txn.put_view(view).await?;
    txn.commit().await.map(|_| ())
}

#[track_caller]
fn state(result: crate::Result<()>) -> &'static str {
    result.unwrap_err().state.0
}

#[test]
fn a_view_survives_a_restart_and_goes_with_a_rollback() {
    simulate(31, |env| async move {
        let (devices, config) = (devices(), EngineConfig::default());
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        table(&db, "t").await;
        put(&db, view("a", "t", 2)).await.unwrap();
        put(&db, view("b", "a", 1)).await.unwrap();
        let before = [db.catalog().view("a").unwrap().clone(), db.catalog().view("b").unwrap().clone()];
        assert_eq!(db.catalog().deepest_view(), 3);
        let mut txn = db.begin(ReadCommitted);
        let mark = txn.savepoint();
        txn.drop_view(&RelationName::public("b")).await.unwrap();
        txn.put_view(View { sql: "SELECT id AS v FROM t".into(), ..view("a", "t", 2) }).await.unwrap();
        assert_eq!(txn.catalog().view("a").unwrap().oid, before[0].oid, "a view that is replaced stays itself");
        txn.rollback_to(mark).await.unwrap();
        assert_eq!(txn.catalog().view("a"), Some(&before[0]));
        txn.drop_view(&RelationName::public("b")).await.unwrap();
        txn.drop_view(&RelationName::public("a")).await.unwrap();
        txn.rollback().await.unwrap();
        clean(&db).await;
        db.close().await.unwrap();
        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        let after = [db.catalog().view("a").unwrap().clone(), db.catalog().view("b").unwrap().clone()];
        assert_eq!(after, before);
        assert_eq!(db.check().await.unwrap(), Vec::<String>::new());
    });
}

#[test]
fn what_a_view_reads_stays() {
    simulate(32, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, view("a", "t", 2)).await.unwrap();
        put(&db, view("b", "a", 1)).await.unwrap();
        assert!(db.catalog().reads(db.catalog().view("b").unwrap(), Space::PUBLIC, "t"));
        let mut txn = db.begin(ReadCommitted);
        let mark = txn.savepoint();
        assert_eq!(state(txn.drop_table(&t).await), "2BP01");
        txn.rollback_to(mark).await.unwrap();
        assert_eq!(state(txn.drop_column(&t, 1).await.map(drop)), "2BP01");
        txn.rollback_to(mark).await.unwrap();
        assert_eq!(state(txn.drop_view(&RelationName::public("a")).await), "2BP01");
        txn.rollback_to(mark).await.unwrap();
        assert_eq!(state(txn.rename_table(&t, "u").await.map(drop)), "0A000");
        txn.rollback_to(mark).await.unwrap();
        let renamed = ColumnDef { name: "w".into(), ..t.columns[1].clone() };
        assert_eq!(state(txn.alter_column(&t, 1, renamed).await.map(drop)), "0A000");
        txn.rollback_to(mark).await.unwrap();
        // What no view names may change, and TRUNCATE keeps the name.
        let renamed = ColumnDef { name: "key".into(), ..t.columns[0].clone() };
        let t = txn.alter_column(&t, 0, renamed).await.unwrap();
        txn.truncate_table(&t).await.unwrap();
        assert_eq!(txn.catalog().views_on((Space::PUBLIC, "t"), None).len(), 1);
        assert_eq!(txn.catalog().views_on((Space::PUBLIC, "t"), Some(0)).len(), 0);
        txn.rollback().await.unwrap();
        assert_eq!(state(put(&db, view("t", "a", 1)).await), "42P07");
        assert_eq!(state(put(&db, view("c", "nothing", 1)).await), "42P01");
        assert_eq!(state(put(&db, view("c", "t", 4)).await), "42P01");
        let mut txn = db.begin(ReadCommitted);
        assert_eq!(state(txn.drop_view(&RelationName::public("c")).await), "42P01");
    });
}
