//! Foreign keys added, dropped and moved; what a rollback and a restart leave of them.
use crate::catalog::foreign::ForeignKey;
use crate::testing::*;
use crate::txn::{Isolation, Txn};
use crate::{Catalog, Database, EngineConfig};
use std::sync::Arc;

use Isolation::ReadCommitted;

fn keys(catalog: &Catalog, table: &str) -> Vec<Arc<ForeignKey>> {
    catalog.table(table).expect("it is there").foreign_keys.clone()
}

/// Whether both sides say the same.
fn agree(catalog: &Catalog) {
    let have: Vec<_> = catalog.tables().flat_map(|t| &t.foreign_keys).collect();
    let referenced: Vec<_> = catalog.tables().flat_map(|t| &t.referenced_by).collect();
    assert_eq!(have.len(), referenced.len());
    for key in have {
        let table = catalog.table_by_oid(key.referenced).expect("it refers to a table");
        assert!(table.referenced_by.contains(key) && table.index(key.index).is_some_and(|i| i.unique), "{key:?}");
        assert!(catalog.table_by_oid(key.table).expect("of a table").foreign_keys.contains(key));
    }
}

async fn insert(txn: &mut Txn, table: &str, id: i32, v: i32) -> crate::Result<()> {
    txn.begin_statement();
    let table = txn.catalog().table(table).expect("it is there").clone();
    txn.insert(&table, &row(id, v)).await?;
    txn.judge_statement().await
}

#[test]
fn a_foreign_key_survives_a_restart_and_goes_with_a_rollback() {
    simulate(21, |env| async move {
        let (devices, config) = (devices(), EngineConfig::default());
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let (pa, ch) = linked(&db, |key| key.deferrable = true).await;
        agree(&db.catalog());
        let before = keys(&db.catalog(), "ch");
        let mut txn = db.begin(ReadCommitted);
        let mark = txn.savepoint();
        let dropped = txn.drop_foreign_key(&ch, before[0].oid).await.unwrap();
        assert!(dropped.foreign_keys.is_empty() && !txn.catalog().table("pa").unwrap().has_foreign_keys());
        insert(&mut txn, "ch", 1, 1).await.unwrap();
        txn.rollback_to(mark).await.unwrap();
        assert_eq!(insert(&mut txn, "ch", 1, 1).await.unwrap_err().state.0, "23503");
        txn.rollback_to(mark).await.unwrap();
        txn.add_foreign_key(&ch, foreign_key("second", &pa)).await.unwrap();
        agree(&txn.catalog());
        txn.rollback().await.unwrap();
        assert_eq!(keys(&db.catalog(), "ch"), before);
        clean(&db).await;
        db.close().await.unwrap();
        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        assert_eq!(keys(&db.catalog(), "ch"), before);
        agree(&db.catalog());
        let e = insert(&mut db.begin(ReadCommitted), "ch", 1, 1).await.unwrap_err();
        assert_eq!((e.state.0, e.constraint.as_deref()), ("23503", Some("ch_v_fkey")));
    });
}

#[test]
fn rows_that_are_there_are_checked_unless_it_is_not_to_be_valid() {
    simulate(22, |env| async move {
        let db = database(&env).await;
        let (pa, ch) = (table(&db, "pa").await, table(&db, "ch").await);
        put(&db, &pa, 1, 0).await;
        put(&db, &ch, 1, 1).await;
        put(&db, &ch, 2, 2).await;
        let mut txn = db.begin(ReadCommitted);
        let mark = txn.savepoint();
        let e = txn.add_foreign_key(&ch, foreign_key("k", &pa)).await.unwrap_err();
        assert_eq!(e.detail.as_deref(), Some("Key (v)=(2) is not present in table \"pa\"."));
        txn.rollback_to(mark).await.unwrap();
        let later = ForeignKey { validated: false, ..foreign_key("k", &pa) };
        let ch = txn.add_foreign_key(&ch, later).await.unwrap();
        txn.commit().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let mark = txn.savepoint();
        assert_eq!(insert(&mut txn, "ch", 3, 3).await.unwrap_err().state.0, "23503", "new rows are checked");
        txn.rollback_to(mark).await.unwrap();
        let valid = ForeignKey { validated: true, ..ForeignKey::clone(&ch.foreign_keys[0]) };
        assert_eq!(txn.alter_foreign_key(&ch, valid.clone()).await.unwrap_err().state.0, "23503");
        txn.rollback_to(mark).await.unwrap();
        insert(&mut txn, "pa", 2, 0).await.unwrap();
        assert!(txn.alter_foreign_key(&ch, valid).await.unwrap().foreign_keys[0].validated);
        txn.commit().await.unwrap();
        agree(&db.catalog());
    });
}

#[test]
fn truncate_keeps_the_foreign_keys_of_both_sides() {
    simulate(23, |env| async move {
        let db = database(&env).await;
        let (pa, ch) = linked(&db, |_| {}).await;
        let oid = ch.foreign_keys[0].oid;
        let mut txn = db.begin(ReadCommitted);
        txn.add_foreign_key(&pa, foreign_key("own", &pa)).await.unwrap();
        txn.commit().await.unwrap();
        for tables in [["pa", "ch"], ["ch", "pa"]] {
            let mut txn = db.begin(ReadCommitted);
            for name in tables {
                let table = txn.catalog().table(name).unwrap().clone();
                txn.truncate_table(&table).await.unwrap();
                agree(&txn.catalog());
            }
            txn.commit().await.unwrap();
            assert_eq!(keys(&db.catalog(), "ch")[0].oid, oid);
            let mut txn = db.begin(ReadCommitted);
            let mark = txn.savepoint();
            assert_eq!(insert(&mut txn, "ch", 1, 1).await.unwrap_err().state.0, "23503");
            txn.rollback_to(mark).await.unwrap();
            insert(&mut txn, "pa", 1, 1).await.unwrap();
            insert(&mut txn, "ch", 1, 1).await.unwrap();
            txn.commit().await.unwrap();
        }
        clean(&db).await;
    });
}

#[test]
fn what_a_foreign_key_needs_stays() {
    simulate(24, |env| async move {
        let db = database(&env).await;
        let (pa, ch) = linked(&db, |_| {}).await;
        let mut txn = db.begin(ReadCommitted);
        let mark = txn.savepoint();
        for what in 0..3 {
            let e = match what {
                0 => txn.drop_table(&pa).await.unwrap_err(),
                1 => txn.drop_key(&pa, pa.indexes[0].oid).await.unwrap_err(),
                _ => txn.drop_column(&pa, 0).await.unwrap_err(),
            };
            assert_eq!(e.state.0, "2BP01");
            txn.rollback_to(mark).await.unwrap();
        }
        // A foreign key goes with its own column, and with its table.
        txn.drop_column(&ch, 1).await.unwrap();
        txn.drop_table(&pa).await.unwrap();
        txn.rollback_to(mark).await.unwrap();
        txn.drop_table(&ch).await.unwrap();
        txn.drop_table(&pa).await.unwrap();
        txn.commit().await.unwrap();
        assert_eq!(db.catalog().tables().count(), 0);
        clean(&db).await;
    });
}

#[test]
fn a_foreign_key_waits_for_those_who_write_the_referenced_table() {
    simulate(25, |env| async move {
        let db = database(&env).await;
        let (pa, ch) = (table(&db, "pa").await, table(&db, "ch").await);
        put(&db, &pa, 1, 0).await;
        put(&db, &ch, 1, 1).await;
        let mut writer = db.begin(ReadCommitted);
        let (rid, _, version) = get(&mut writer, &pa, 1).await.unwrap();
        writer.delete(&pa, rid, version).await.unwrap();
        let adding = {
            let (db, pa) = (db.clone(), pa.clone());
            async move {
                let mut txn = db.begin(ReadCommitted);
                let added = txn.add_foreign_key(&ch, foreign_key("k", &pa)).await.map(drop);
                txn.rollback().await.unwrap();
                added
            }
        };
        let done = Arc::new(parking_lot::Mutex::new(None));
        let slot = done.clone();
        env.spawn("adding", async move { *slot.lock() = Some(adding.await) });
        rest(&env).await;
        assert!(done.lock().is_none(), "it waits");
        assert_eq!(value(&mut db.begin(ReadCommitted), &pa, 1).await, Some(0), "readers do not");
        writer.commit().await.unwrap();
        rest(&env).await;
        assert_eq!(done.lock().take().unwrap().unwrap_err().state.0, "23503");
    });
}
