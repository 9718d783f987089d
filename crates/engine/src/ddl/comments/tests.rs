//! Comments through rollbacks, a restart, TRUNCATE and DROP.
use crate::testing::*;
use crate::txn::Isolation;
use crate::{Database, EngineConfig, IndexSpec};

use Isolation::ReadCommitted;

#[test]
fn a_comment_survives_a_restart_and_goes_with_its_table() {
    simulate(41, |env| async move {
        let (devices, config) = (devices(), EngineConfig::default());
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let t = table(&db, "t").await;
        let mut txn = db.begin(ReadCommitted);
        let spec = IndexSpec { name: "i".into(), columns: vec![1], unique: false, primary: false, extras: None };
        let t = txn.create_index(&t, spec).await.unwrap();
        let index = db_index(&t);
        txn.comment((t.oid, 0), Some("first")).await.unwrap();
        txn.comment((t.oid, 0), Some("the table")).await.unwrap();
        txn.comment((t.oid, 2), Some("a column")).await.unwrap();
        txn.comment((index, 0), Some("an index")).await.unwrap();
        txn.commit().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let mark = txn.savepoint();
        txn.comment((t.oid, 0), None).await.unwrap();
        assert_eq!(txn.catalog().comment((t.oid, 0)), None);
        txn.rollback_to(mark).await.unwrap();
        assert_eq!(txn.catalog().comment((t.oid, 0)), Some("the table"));
        let emptied = txn.truncate_table(&t).await.unwrap();
        assert_eq!(txn.catalog().comment((emptied.oid, 2)), Some("a column"));
        txn.rollback().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let t = txn.truncate_table(&t).await.unwrap();
        txn.commit().await.unwrap();
        clean(&db).await;
        db.close().await.unwrap();
        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        let catalog = db.catalog();
        let said: Vec<&str> = catalog.comments().map(|(_, text)| text).collect();
        assert_eq!(said.len(), 3);
        assert_eq!(catalog.comment((t.oid, 0)), Some("the table"));
        assert_eq!(catalog.comment((t.oid, 2)), Some("a column"));
        assert_eq!(catalog.comment((db_index(&t), 0)), Some("an index"));
        assert_eq!(db.check().await.unwrap(), Vec::<String>::new());
        let t = catalog.table("t").unwrap().clone();
        let mut txn = db.begin(ReadCommitted);
        txn.comment((t.oid, 1), Some("goes with its column")).await.unwrap();
        let t = txn.drop_column(&t, 1).await.unwrap();
        assert_eq!(txn.catalog().comment((t.oid, 2)), None);
        txn.drop_table(&t).await.unwrap();
        txn.commit().await.unwrap();
        assert!(db.catalog().table("t").is_none());
    });
}

/// The index that is no key.
fn db_index(table: &crate::Table) -> terrace_storage::ObjectId {
    table.indexes.iter().find(|index| index.name == "i").expect("it was made").oid
}
