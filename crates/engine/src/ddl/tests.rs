//! Definitions: refusals, visibility, rollback, restart, and what becomes of the pages.
use crate::catalog::extras::{Extras, KeyOption};
use crate::catalog::names::Space;
use crate::catalog::{ColumnDef, IndexSpec, MAX_COLUMNS, TableSpec};
use crate::testing::*;
use crate::txn::{IndexRange, Isolation, Scan, ScanDirection};
use crate::types::{DataType, Datum};
use crate::{Database, EngineConfig, EngineError, Index};
use std::ops::Bound;
use std::sync::Arc;
use terrace_storage::DATA;

use Isolation::{ReadCommitted, RepeatableRead};

fn index(name: &str, columns: &[usize], unique: bool) -> IndexSpec {
    IndexSpec { name: name.into(), columns: columns.to_vec(), unique, primary: false, extras: None }
}

fn spec(name: &str, columns: &[&str], indexes: Vec<IndexSpec>) -> TableSpec {
    let columns = columns.iter().map(|n| ColumnDef::new(n, DataType::Int4)).collect();
    TableSpec { name: name.into(), columns, indexes }
}

fn range(index: &Arc<Index>, direction: ScanDirection) -> Scan {
    Scan::Index(IndexRange { index: index.clone(), from: Bound::Unbounded, to: Bound::Unbounded, direction })
}

async fn refused(db: &Database, spec: TableSpec) -> EngineError {
    let mut txn = db.begin(ReadCommitted);
    let e = txn.create_table(spec).await.expect_err("it must be refused");
    txn.rollback().await.unwrap();
    e
}

#[test]
fn what_no_table_can_be_is_refused() {
    simulate(1, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        let state = async |spec| refused(&db, spec).await.state.0;
        assert_eq!(state(spec("t", &["a"], vec![])).await, "42P07");
        assert_eq!(state(spec("t_pkey", &["a"], vec![])).await, "42P07", "indexes are in the same name space");
        assert_eq!(state(spec("u", &["a"], vec![index("t", &[0], false)])).await, "42P07");
        assert_eq!(state(spec("u", &["a"], vec![index("u", &[0], false)])).await, "42P07");
        assert_eq!(state(spec("u", &["a", "b", "a"], vec![])).await, "42701");
        assert_eq!(state(spec("u", &["a"], vec![index("i", &[1], false)])).await, "42703");
        let primary = |name| IndexSpec { primary: true, ..index(name, &[0], true) };
        assert_eq!(state(spec("u", &["a"], vec![primary("i"), primary("j")])).await, "42P16");
        let mut wide = spec("u", &[], vec![]);
        wide.columns = (0..=MAX_COLUMNS).map(|i| ColumnDef::new(&format!("c{i}"), DataType::Bool)).collect();
        assert_eq!(state(wide.clone()).await, "54011");
        wide.columns = vec![ColumnDef::new("c", DataType::Char(0))];
        assert_eq!(state(wide).await, "22023");
        let mut txn = db.begin(ReadCommitted);
        assert_eq!(txn.create_index(&t, index("t", &[1], false)).await.unwrap_err().state.0, "42P07");
        assert_eq!(txn.drop_index(&t.indexes[0]).await.unwrap_err().state.0, "2BP01");
        let long = "x".repeat(80);
        let made = txn.create_table(spec(&long, &[&long], vec![])).await.unwrap();
        assert_eq!((made.name.len(), made.columns[0].name.len()), (63, 63));
        txn.rollback().await.unwrap();
        clean(&db).await;
    });
}

#[test]
fn definitions_are_seen_when_committed_and_go_with_a_rollback() {
    simulate(2, |env| async move {
        let db = database(&env).await;
        let mut txn = db.begin(ReadCommitted);
        let t = txn.create_table(spec("t", &["a"], vec![index("i", &[0], true)])).await.unwrap();
        assert!(txn.catalog().table("t").is_some() && db.catalog().table("t").is_none());
        let mark = txn.savepoint();
        txn.drop_table(&t).await.unwrap();
        assert!(txn.catalog().table("t").is_none() && !txn.catalog().name_taken(Space::PUBLIC, "i"));
        txn.create_table(spec("t", &["b", "c"], vec![])).await.unwrap();
        txn.rollback_to(mark).await.unwrap();
        assert_eq!(txn.catalog().table("t").map(|t| (t.oid, t.indexes.len())), Some((t.oid, 1)));
        txn.rollback().await.unwrap();
        assert_eq!(db.catalog().tables().count(), 0);
        assert_eq!(db.store().space(DATA).page_count(t.oid), 0);
        assert_eq!(db.store().space(DATA).page_count(t.indexes[0].oid), 0);
        clean(&db).await;
    });
}

#[test]
fn definitions_survive_a_restart_and_dropped_pages_are_freed() {
    simulate(3, |env| async move {
        let devices = devices();
        let config = EngineConfig::default();
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let (keep, gone) = (table(&db, "keep").await, table(&db, "gone").await);
        for i in 0..300 {
            put(&db, &gone, i, i).await;
        }
        put(&db, &keep, 1, 2).await;
        let mut txn = db.begin(ReadCommitted);
        txn.create_index(&keep, index("keep_v", &[1, 0], false)).await.unwrap();
        txn.drop_table(&gone).await.unwrap();
        txn.commit().await.unwrap();
        let before = db.catalog().table("keep").cloned();
        db.close().await.unwrap();
        let (db, _) = Database::open(env.clone(), devices, storage(), config).await.unwrap();
        assert_eq!(db.catalog().table("keep").cloned(), before);
        assert!(db.catalog().table("gone").is_none());
        db.purge().await.unwrap();
        assert_eq!(db.store().space(DATA).page_count(gone.oid), 0);
        assert_eq!(db.store().space(DATA).page_count(gone.indexes[0].oid), 0);
        let made = table(&db, "gone").await;
        assert!(made.oid > before.unwrap().indexes[1].oid, "object ids are never reused");
        clean(&db).await;
    });
}

#[test]
fn an_index_holds_the_rows_that_were_there() {
    simulate(4, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        for i in 0..500 {
            put(&db, &t, i, 1000 - i).await;
        }
        let mut txn = db.begin(ReadCommitted);
        let made = txn.create_index(&t, index("t_v", &[1], true)).await.unwrap();
        let by_v = range(&made.indexes[1], ScanDirection::Backward);
        let want: Vec<(i32, i32)> = (0..500).map(|i| (i, 1000 - i)).collect();
        assert_eq!(all(&mut txn, &made, by_v).await, want);
        txn.commit().await.unwrap();
        let e = db.begin(ReadCommitted).insert(&made, &row(1000, 1000)).await.unwrap_err();
        assert_eq!((e.state.0, e.constraint.as_deref()), ("23505", Some("t_v")));
        // Duplicates refuse a unique index.
        put(&db, &made, 2000, 7).await;
        let mut txn = db.begin(ReadCommitted);
        let e = txn.create_index(&made, index("t_t", &[2], true)).await.unwrap_err();
        assert_eq!(e.message, "could not create unique index \"t_t\"");
        assert_eq!(e.detail.as_deref(), Some("Key (t)=(some text) is duplicated."));
        txn.rollback().await.unwrap();
        clean(&db).await;
    });
}

#[test]
fn a_snapshot_older_than_an_index_still_finds_its_rows_in_order() {
    simulate(5, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        for i in 0..9 {
            put(&db, &t, i, 10 * i).await;
        }
        let mut old = db.begin(RepeatableRead);
        let want: Vec<(i32, i32)> = (0..9).map(|i| (i, 10 * i)).collect();
        assert_eq!(all(&mut old, &t, Scan::Full).await, want);
        let mut txn = db.begin(ReadCommitted);
        set(&mut txn, &t, 4, -1).await.unwrap();
        txn.commit().await.unwrap();
        // Somebody else's, and its own.
        let mut txn = db.begin(ReadCommitted);
        txn.create_index(&t, index("theirs", &[1], false)).await.unwrap();
        txn.commit().await.unwrap();
        let made = old.create_index(&t, index("mine", &[1], false)).await.unwrap();
        for index in made.indexes.iter().filter(|i| !i.primary) {
            assert!(!old.can_use_index(index));
            assert_eq!(all(&mut old, &made, range(index, ScanDirection::Forward)).await, want, "{}", index.name);
        }
        old.rollback().await.unwrap();
        clean(&db).await;
    });
}

/// An index younger than a version that some snapshot still needs: undoing a change to that version's key must not
/// leave the entry to a purge that will not come, for when the version was replaced its key was no key.
#[test]
fn undoing_a_key_that_an_older_version_had_before_the_index_leaves_no_entry() {
    simulate(21, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 5).await;
        let mut old = db.begin(Isolation::RepeatableRead);
        assert_eq!(value(&mut old, &t, 1).await, Some(5));
        let mut txn = db.begin(Isolation::ReadCommitted);
        set(&mut txn, &t, 1, 6).await.unwrap();
        txn.commit().await.unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        let index = IndexSpec { name: "t_v".into(), columns: vec![1], unique: false, primary: false, extras: None };
        let t = txn.create_index(&t, index).await.unwrap();
        txn.commit().await.unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        set(&mut txn, &t, 1, 5).await.unwrap();
        txn.rollback().await.unwrap();
        assert_eq!(value(&mut old, &t, 1).await, Some(5));
        drop(old);
        db.purge().await.unwrap();
        clean(&db).await;
    });
}

/// A unique index with a condition: its last column is TRUE or NULL.
#[test]
fn a_partial_unique_index_holds_through_a_restart_truncate_and_purge() {
    simulate(7, |env| async move {
        let (devices, config) = (devices(), EngineConfig::default());
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let t = table(&db, "t").await;
        let mut txn = db.begin(ReadCommitted);
        let condition = ColumnDef {
            dropped: true,
            default_sql: Some("(v > 0) OR NULL".into()),
            ..ColumnDef::new("v > 0", DataType::Bool)
        };
        let t = txn.add_column(&t, condition).await.unwrap();
        assert_eq!(t.computed().collect::<Vec<_>>(), [(3, "(v > 0) OR NULL")]);
        let extras = Extras {
            keys: vec![KeyOption { descending: true, nulls_first: true, class: None }],
            included: vec![0],
            filtered: true,
            ..Extras::default()
        };
        let spec = IndexSpec { extras: Some(extras.clone().into()), ..index("i", &[1, 3], true) };
        let t = txn.create_index(&t, spec).await.unwrap();
        let row = |id: i32, v: i32| {
            let mut row = row(id, v);
            row.push(if v > 0 { Datum::Bool(true) } else { Datum::Null });
            row
        };
        for id in 0..4 {
            txn.insert(&t, &row(id, if id < 2 { 0 } else { id })).await.unwrap();
        }
        txn.commit().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let e = txn.insert(&t, &row(9, 3)).await.unwrap_err();
        assert_eq!((e.state.0, e.detail.as_deref()), ("23505", Some("Key (v)=(3) already exists.")));
        txn.rollback().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let t = txn.truncate_table(&t).await.unwrap();
        txn.insert(&t, &row(3, 3)).await.unwrap();
        txn.commit().await.unwrap();
        clean(&db).await;
        db.close().await.unwrap();
        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        assert_eq!(db.check().await.unwrap(), Vec::<String>::new());
        let t = db.catalog().table("t").unwrap().clone();
        let i = t.indexes.iter().find(|i| i.name == "i").unwrap().clone();
        assert_eq!((i.extras.as_deref(), i.keys(), i.is_partial()), (Some(&extras), &[1][..], true));
        let mut txn = db.begin(ReadCommitted);
        assert_eq!(txn.insert(&t, &row(9, 3)).await.unwrap_err().state.0, "23505");
        txn.rollback().await.unwrap();
        // A column of INCLUDE takes the index with it.
        let mut txn = db.begin(ReadCommitted);
        let extras = Extras { keys: vec![KeyOption::default()], included: vec![1], ..Extras::default() };
        let spec = IndexSpec { extras: Some(extras.into()), ..index("j", &[2], false) };
        let t = txn.create_index(&t, spec).await.unwrap();
        let t = txn.drop_column(&t, 1).await.unwrap();
        assert_eq!(t.indexes.len(), 1);
        txn.rollback().await.unwrap();
        clean(&db).await;
    });
}
