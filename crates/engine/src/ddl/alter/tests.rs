//! Tables changed and emptied: what is seen, what a rollback and a restart leave, what becomes of the pages.
use crate::catalog::extras::Extras;
use crate::catalog::{ColumnDef, IndexSpec, Statistics, Table};
use crate::ddl::NewConstraint;
use crate::testing::*;
use crate::txn::{Isolation, Scan, Txn};
use crate::types::{DataType, Datum};
use crate::{Database, EngineConfig};
use std::sync::Arc;
use terrace_storage::DATA;

use Isolation::ReadCommitted;

async fn current(db: &Database, name: &str) -> Arc<Table> {
    db.catalog().table(name).expect("it is there").clone()
}

async fn datums(txn: &mut Txn, table: &Arc<Table>) -> Vec<Vec<Datum>> {
    txn.begin_statement();
    let mut scanner = txn.scan(table, Scan::Full);
    let mut out = vec![];
    loop {
        let batch = scanner.next_batch(100).await.unwrap();
        if batch.is_empty() {
            return out;
        }
        out.extend(batch.iter().map(|(_, row, _)| row.view(table).to_datums()));
    }
}

#[test]
fn truncate_empties_at_once_and_comes_back_with_a_rollback() {
    simulate(11, |env| async move {
        let devices = devices();
        let config = EngineConfig::default();
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let t = table(&db, "t").await;
        for i in 0..300 {
            put(&db, &t, i, i).await;
        }
        let mut txn = db.begin(ReadCommitted);
        let mark = txn.savepoint();
        let empty = txn.truncate_table(&t).await.unwrap();
        assert_ne!(empty.oid, t.oid);
        txn.insert(&empty, &row(7, 70)).await.unwrap();
        assert_eq!(all(&mut txn, &empty, Scan::Full).await, [(7, 70)]);
        txn.rollback_to(mark).await.unwrap();
        assert_eq!(txn.catalog().table("t").unwrap().oid, t.oid);
        assert_eq!(all(&mut txn, &t, Scan::Full).await.len(), 300);
        let empty = txn.truncate_table(&t).await.unwrap();
        txn.insert(&empty, &row(8, 80)).await.unwrap();
        txn.commit().await.unwrap();
        let e = db.begin(ReadCommitted).insert(&t, &row(1, 1)).await.unwrap_err();
        assert_eq!(e.state.0, "42P01", "the old identity is gone");
        db.purge().await.unwrap();
        assert_eq!(db.store().space(DATA).page_count(t.oid), 0);
        assert_eq!(db.store().space(DATA).page_count(t.indexes[0].oid), 0);
        clean(&db).await;
        db.close().await.unwrap();
        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        let t = current(&db, "t").await;
        assert_eq!(value(&mut db.begin(ReadCommitted), &t, 8).await, Some(80));
        clean(&db).await;
    });
}

#[test]
fn truncate_not_committed_is_undone_by_recovery() {
    simulate(12, |env| async move {
        let devices = devices();
        let config = EngineConfig::default();
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let (t, other) = (table(&db, "t").await, table(&db, "other").await);
        put(&db, &t, 1, 10).await;
        let mut txn = db.begin(ReadCommitted);
        let empty = txn.truncate_table(&t).await.unwrap();
        txn.insert(&empty, &row(2, 20)).await.unwrap();
        let wide = txn.add_column(&empty, ColumnDef::new("x", DataType::Int4)).await.unwrap();
        txn.insert(&wide, &[row(3, 30), vec![Datum::Int4(3)]].concat()).await.unwrap();
        // Everything of it reaches the log; then the power goes.
        put(&db, &other, 1, 1).await;
        std::mem::forget(txn);
        drop(db);
        let (db, report) = Database::open(env, devices, storage(), config).await.unwrap();
        assert_eq!(report.losers_rolled_back, 1);
        let back = current(&db, "t").await;
        assert_eq!((back.oid, back.columns.len()), (t.oid, 3));
        assert_eq!(value(&mut db.begin(ReadCommitted), &back, 1).await, Some(10));
        assert_eq!(db.store().space(DATA).page_count(empty.oid), 0);
        clean(&db).await;
    });
}

#[test]
fn columns_come_and_go_without_rewriting_rows() {
    simulate(13, |env| async move {
        let devices = devices();
        let config = EngineConfig::default();
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        put(&db, &t, 2, 20).await;
        let mut txn = db.begin(ReadCommitted);
        let bare = ColumnDef::new("n", DataType::Int8).not_null();
        assert_eq!(txn.add_column(&t, bare.clone()).await.unwrap_err().state.0, "23502");
        assert_eq!(txn.add_column(&t, ColumnDef::new("v", DataType::Int8)).await.unwrap_err().state.0, "42701");
        let five = ColumnDef { missing: Datum::Int8(5), ..bare };
        let t2 = txn.add_column(&t, five).await.unwrap();
        txn.insert(&t2, &[row(3, 30), vec![Datum::Int8(6)]].concat()).await.unwrap();
        let by_n = IndexSpec { name: "t_n".into(), columns: vec![3, 1], unique: false, primary: false, extras: None };
        let t3 = txn.create_index(&t2, by_n).await.unwrap();
        txn.commit().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let fourth: Vec<Datum> = datums(&mut txn, &t3).await.into_iter().map(|mut r| r.remove(3)).collect();
        assert_eq!(fourth, [Datum::Int8(5), Datum::Int8(5), Datum::Int8(6)]);
        let mark = txn.savepoint();
        // v goes, and with it the index that has it.
        let t4 = txn.drop_column(&t3, 1).await.unwrap();
        assert_eq!((t4.column("v"), t4.indexes.len()), (None, 1));
        let again = txn.add_column(&t4, ColumnDef::new("v", DataType::Text)).await.unwrap();
        assert_eq!(again.column("v"), Some(4));
        txn.rollback_to(mark).await.unwrap();
        assert_eq!(txn.catalog().table("t").unwrap().indexes.len(), 2);
        let t4 = txn.drop_column(&t3, 1).await.unwrap();
        let nameless = ColumnDef { name: "text".into(), ..t4.columns[2].clone() };
        txn.alter_column(&t4, 2, nameless.not_null()).await.unwrap();
        txn.commit().await.unwrap();
        clean(&db).await;
        db.close().await.unwrap();
        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        let t = current(&db, "t").await;
        assert_eq!((t.column("text"), t.columns[2].not_null, t.columns[1].dropped), (Some(2), true, true));
        let mut txn = db.begin(ReadCommitted);
        txn.begin_statement();
        let (rid, old, version) = txn.get(&t, &t.indexes[0], &[Datum::Int4(1)]).await.unwrap().unwrap();
        let mut new = old.view(&t).to_datums();
        (new[1], new[3]) = (Datum::Null, Datum::Int8(9));
        txn.update(&t, rid, version, &new).await.unwrap();
        txn.commit().await.unwrap();
        clean(&db).await;
    });
}

#[test]
fn a_primary_key_is_added_where_rows_allow_it() {
    simulate(14, |env| async move {
        let db = database(&env).await;
        let mut txn = db.begin(ReadCommitted);
        let columns = vec![ColumnDef::new("id", DataType::Int4), ColumnDef::new("v", DataType::Int4)];
        let spec = crate::TableSpec { name: "t".into(), columns, indexes: vec![] };
        let t = txn.create_table(spec).await.unwrap();
        let row = |id: Datum| vec![id, Datum::Int4(1)];
        for id in [1, 2] {
            txn.insert(&t, &row(Datum::Int4(id))).await.unwrap();
        }
        let key =
            |name: &str| IndexSpec { name: name.into(), columns: vec![0], unique: true, primary: true, extras: None };
        txn.commit().await.unwrap();
        for (bad, state) in [(Datum::Null, "23502"), (Datum::Int4(2), "23505")] {
            let mut txn = db.begin(ReadCommitted);
            txn.insert(&t, &row(bad)).await.unwrap();
            assert_eq!(txn.add_primary_key(&t, key("t_pkey")).await.unwrap_err().state.0, state);
            txn.rollback().await.unwrap();
        }
        let mut txn = db.begin(ReadCommitted);
        let made = txn.add_primary_key(&t, key("t_pkey")).await.unwrap();
        assert!(made.primary_key().is_some() && made.columns[0].not_null);
        assert_eq!(txn.add_primary_key(&made, key("k")).await.unwrap_err().state.0, "42P16");
        txn.commit().await.unwrap();
        let e = db.begin(ReadCommitted).insert(&made, &row(Datum::Int4(1))).await.unwrap_err();
        assert_eq!(e.state.0, "23505");
        let mut txn = db.begin(ReadCommitted);
        let bare = txn.drop_key(&made, made.indexes[0].oid).await.unwrap();
        assert!(bare.indexes.is_empty());
        txn.rename_table(&bare, "renamed").await.unwrap();
        txn.commit().await.unwrap();
        assert!(db.catalog().table("t").is_none() && db.catalog().table("renamed").is_some());
        clean(&db).await;
    });
}

#[test]
fn a_plain_unique_index_becomes_a_constraint() {
    simulate(16, |env| async move {
        let devices = devices();
        let config = EngineConfig::default();
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let columns = vec![ColumnDef::new("id", DataType::Int4), ColumnDef::new("v", DataType::Int4)];
        let spec = crate::TableSpec { name: "t".into(), columns, indexes: vec![] };
        let t = txn.create_table(spec).await.unwrap();
        let plain = |name: &str, column: usize| IndexSpec {
            name: name.into(),
            columns: vec![column],
            unique: true,
            primary: false,
            extras: Some(Extras::plain(1).into()),
        };
        let t = txn.create_index(&t, plain("by_id", 0)).await.unwrap();
        let t = txn.create_index(&t, plain("by_v", 1)).await.unwrap();
        txn.insert(&t, &[Datum::Int4(1), Datum::Null]).await.unwrap();
        txn.commit().await.unwrap();
        let index = |t: &Table, name: &str| t.indexes.iter().find(|i| i.name == name).unwrap().clone();
        let primary = NewConstraint { primary: true, deferrable: false, deferred: false };
        let mut txn = db.begin(ReadCommitted);
        let refused = txn.make_constraint(&t, index(&t, "by_v").oid, primary).await.unwrap_err();
        assert_eq!(refused.state.0, "23502");
        txn.rollback().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let t = txn.make_constraint(&t, index(&t, "by_id").oid, primary).await.unwrap();
        assert!(t.indexes[0].primary && t.columns[0].not_null && index(&t, "by_id").extras.is_none());
        assert_eq!(txn.drop_index(&t.indexes[0]).await.unwrap_err().state.0, "2BP01");
        txn.commit().await.unwrap();
        db.close().await.unwrap();
        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        let t = current(&db, "t").await;
        assert!(t.indexes[0].primary && t.indexes[0].is_constraint());
        assert!(index(&t, "by_v").unique && !index(&t, "by_v").is_constraint());
        let e = db.begin(ReadCommitted).insert(&t, &[Datum::Int4(1), Datum::Null]).await.unwrap_err();
        assert_eq!(e.state.0, "23505");
        let mut txn = db.begin(ReadCommitted);
        txn.drop_index(&index(&t, "by_v")).await.unwrap();
        txn.commit().await.unwrap();
        clean(&db).await;
    });
}

#[test]
fn analyze_estimates_what_is_there() {
    simulate(15, |env| async move {
        let devices = devices();
        let config = EngineConfig::default();
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let t = table(&db, "t").await;
        for i in 0..200 {
            put(&db, &t, i, i).await;
        }
        let mut txn = db.begin(ReadCommitted);
        let found = txn.analyze(&t).await.unwrap();
        assert_eq!(found, Statistics { rows: 200, pages: db.store().space(DATA).page_count(t.oid) });
        txn.commit().await.unwrap();
        db.close().await.unwrap();
        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        assert_eq!(current(&db, "t").await.statistics, Some(found));
        let mut txn = db.begin(ReadCommitted);
        let t = current(&db, "t").await;
        let empty = txn.truncate_table(&t).await.unwrap();
        assert_eq!(txn.analyze(&empty).await.unwrap(), Statistics { rows: 0, pages: 0 });
        txn.rollback().await.unwrap();
        clean(&db).await;
    });
}

/// Values stay as they are stored; what the new type does not hold is found.
#[test]
fn a_column_takes_a_type_that_is_stored_alike() {
    simulate(13, |env| async move {
        let devices = devices();
        let config = EngineConfig::default();
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let columns = vec![ColumnDef::new("a", DataType::Varchar(3)), ColumnDef::new("b", DataType::Int4)];
        let t = txn.create_table(crate::TableSpec { name: "t".into(), columns, indexes: vec![] }).await.unwrap();
        let row = |text: &str| vec![Datum::Text(text.into()), Datum::Int4(1)];
        txn.insert(&t, &row("abc")).await.unwrap();
        txn.commit().await.unwrap();
        let to = |t: &Table, data_type| ColumnDef { data_type, ..t.columns[0].clone() };
        let mut txn = db.begin(ReadCommitted);
        let mark = txn.savepoint();
        let t = txn.alter_column(&t, 0, to(&t, DataType::Text)).await.unwrap();
        txn.insert(&t, &row("longer ")).await.unwrap();
        let e = txn.alter_column(&t, 0, to(&t, DataType::Varchar(3))).await.unwrap_err();
        assert_eq!(e.state.0, "22001");
        let e = txn.alter_column(&t, 0, to(&t, DataType::Varchar(6))).await.unwrap_err();
        assert_eq!(e.state.0, "0A000", "its blank would have to go");
        txn.alter_column(&t, 0, to(&t, DataType::Varchar(7))).await.unwrap();
        txn.rollback_to(mark).await.unwrap();
        assert_eq!(txn.catalog().table("t").unwrap().columns[0].data_type, DataType::Varchar(3));
        let t = current(&db, "t").await;
        let t = txn.alter_column(&t, 0, to(&t, DataType::Varchar(0))).await.unwrap();
        txn.insert(&t, &row("long")).await.unwrap();
        txn.commit().await.unwrap();
        clean(&db).await;
        db.close().await.unwrap();
        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        let t = current(&db, "t").await;
        assert_eq!(t.columns[0].data_type, DataType::Varchar(0));
        assert_eq!(datums(&mut db.begin(ReadCommitted), &t).await, [row("abc"), row("long")]);
        clean(&db).await;
    });
}
