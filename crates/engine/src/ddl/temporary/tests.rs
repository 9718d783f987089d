use crate::catalog::names::{Placing, RelationName, Space};
use crate::catalog::path::Viewer;
use crate::catalog::temporary::OnCommit;
use crate::catalog::views::{View, ViewUse};
use crate::catalog::{Catalog, ColumnDef, IndexSpec, TableSpec};
use crate::database::{Database, EngineConfig};
use crate::testing::{clean, devices, rows, simulate, storage};
use crate::txn::Isolation::ReadCommitted;
use crate::txn::Txn;
use crate::types::{DataType, Datum};
use std::sync::Arc;
use terrace_storage::{DATA, ObjectId};

fn spec(name: &str) -> TableSpec {
    let columns = vec![ColumnDef::new("a", DataType::Int4), ColumnDef::new("t", DataType::Text)];
    let key = IndexSpec { name: format!("{name}_pkey"), columns: vec![0], unique: true, primary: true, extras: None };
    TableSpec { name: name.into(), columns, indexes: vec![key] }
}

async fn filled(txn: &mut Txn, name: &str, on_commit: Option<OnCommit>, count: i32) -> ObjectId {
    let placing = on_commit.map_or(Placing::In(Space::PUBLIC), Placing::Temporary);
    let table = txn.create_table_in(spec(name), placing).await.unwrap();
    for a in 0..count {
        txn.insert(&table, &[Datum::Int4(a), Datum::text("x".repeat(500))]).await.unwrap();
    }
    table.oid
}

fn pages(db: &Database, catalog: &Catalog) -> usize {
    let objects = catalog.tables().flat_map(|t| t.indexes.iter().map(|i| i.oid).chain([t.oid]));
    objects.map(|oid| db.store().space(DATA).pages(oid, 0, usize::MAX).len()).sum()
}

/// Two sessions have tables of one name, beside a permanent one, and each sees its own; both go.
#[test]
fn sessions_have_tables_of_their_own_that_go_with_them() {
    simulate(3, |env| async move {
        let (devices, config) = (devices(), EngineConfig::default());
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let permanent = filled(&mut txn, "t", None, 1).await;
        txn.commit().await.unwrap();
        let (one, two) = (Arc::new(Viewer::default()), Arc::new(Viewer::default()));
        let mut ids = vec![];
        for own in [&one, &two] {
            let mut txn = db.begin(ReadCommitted).seen_by(own);
            ids.push(filled(&mut txn, "t", Some(OnCommit::PreserveRows), 20).await);
            txn.commit().await.unwrap();
        }
        assert_ne!(one.own.get(), two.own.get());
        for (own, oid) in [(&one, ids[0]), (&two, ids[1])] {
            let mut txn = db.begin(ReadCommitted).seen_by(own);
            let catalog = txn.catalog();
            assert_eq!(catalog.table("t").unwrap().oid, oid);
            assert_eq!(catalog.index("t_pkey").unwrap().table, oid);
            assert_eq!(catalog.table(&RelationName::public("t")).unwrap().oid, permanent);
            let table = catalog.table("t").unwrap().clone();
            assert_eq!(rows(&mut txn, &table).await.len(), 20);
            // TRUNCATE and a change leave it where it is.
            let table = txn.truncate_table(&table).await.unwrap();
            let table = txn.add_column(&table, ColumnDef::new("b", DataType::Int4)).await.unwrap();
            assert_eq!(txn.catalog().table("t").unwrap().oid, table.oid);
            assert_eq!(Some(table.space), own.own.get().copied());
            txn.rollback().await.unwrap();
        }
        assert_eq!(db.catalog().table("t").unwrap().oid, permanent);
        assert_eq!(
            db.begin(ReadCommitted)
                .create_table_in(spec("x"), Placing::Temporary(OnCommit::Drop))
                .await
                .unwrap_err()
                .state
                .0,
            "XX000"
        );
        db.end_space(&one);
        env.sleep(std::time::Duration::from_secs(1)).await;
        assert!(db.catalog().table_by_oid(ids[0]).is_none());
        assert!(db.catalog().table_by_oid(ids[1]).is_some());
        clean(&db).await;
        db.close().await.unwrap();
        // The other one's session went with the program.
        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        assert!(db.catalog().table_by_oid(ids[1]).is_none());
        assert_eq!(db.catalog().table("t").unwrap().oid, permanent);
        assert_eq!(db.catalog().spaces().len(), 0);
        db.purge().await.unwrap();
        assert_eq!(pages(&db, &db.catalog()), 2);
        let left = |oid: &ObjectId| db.store().space(DATA).pages(*oid, 0, 1).len();
        assert_eq!(ids.iter().map(left).sum::<usize>(), 0, "their pages are free");
        clean(&db).await;
    });
}

#[test]
fn on_commit_empties_or_drops() {
    simulate(4, |env| async move {
        let db = Database::create(env, devices(), storage(), EngineConfig::default()).await.unwrap();
        let own = Arc::new(Viewer::default());
        let begin = || db.begin(ReadCommitted).seen_by(&own);
        let mut txn = begin();
        for (name, on_commit) in
            [("kept", OnCommit::PreserveRows), ("emptied", OnCommit::DeleteRows), ("gone", OnCommit::Drop)]
        {
            filled(&mut txn, name, Some(on_commit), 3).await;
        }
        let emptied = txn.catalog().table("emptied").unwrap().clone();
        assert_eq!(rows(&mut txn, &emptied).await.len(), 3);
        txn.commit().await.unwrap();
        let mut txn = begin();
        let catalog = txn.catalog();
        assert!(catalog.table("gone").is_none());
        for (name, count) in [("kept", 3), ("emptied", 0)] {
            let table = catalog.table(name).unwrap().clone();
            assert_eq!(rows(&mut txn, &table).await.len(), count, "{name}");
        }
        let emptied = catalog.table("emptied").unwrap().clone();
        txn.insert(&emptied, &[Datum::Int4(1), Datum::Null]).await.unwrap();
        assert_eq!(rows(&mut txn, &emptied).await.len(), 1);
        txn.commit().await.unwrap();
        let mut txn = begin();
        let emptied: Arc<_> = txn.catalog().table("emptied").unwrap().clone();
        assert_eq!(rows(&mut txn, &emptied).await.len(), 0);
        txn.discard_temporary().await.unwrap();
        assert!(txn.catalog().table("kept").is_none());
        txn.commit().await.unwrap();
        assert_eq!(db.catalog().tables().count(), 0);
        clean(&db).await;
    });
}

/// Definitions are read again where a transaction goes back, and at an opening: a temporary view is one of them.
#[test]
fn a_temporary_view_is_found_again_and_goes_at_the_next_opening() {
    simulate(5, |env| async move {
        let (devices, config) = (devices(), EngineConfig::default());
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let own = Arc::new(Viewer::default());
        let mut txn = db.begin(ReadCommitted).seen_by(&own);
        let table = filled(&mut txn, "t", None, 1).await;
        let view = View {
            oid: ObjectId(0),
            space: txn.own_space().unwrap(),
            temporary: true,
            name: "v".into(),
            columns: vec![ColumnDef::new("a", DataType::Int4)],
            sql: "SELECT a FROM public.t".into(),
            zone: "UTC".into(),
            depth: 1,
            uses: vec![ViewUse { space: Space::PUBLIC, relation: "t".into(), columns: 2, used: vec![0] }],
            check: None,
        };
        txn.put_view(view).await.unwrap();
        txn.commit().await.unwrap();

        let mut txn = db.begin(ReadCommitted).seen_by(&own);
        let before = txn.savepoint();
        filled(&mut txn, "u", None, 1).await;
        txn.rollback_to(before).await.unwrap();
        assert!(txn.catalog().table("u").is_none());
        assert!(txn.catalog().views().any(|view| view.name == "v"));
        txn.commit().await.unwrap();

        drop(db);
        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        assert_eq!(db.catalog().views().count(), 0);
        assert!(db.catalog().table_by_oid(table).is_some());
        clean(&db).await;
    });
}
