//! What readers, writers and definitions meet while a loser waits to be undone.
use crate::catalog::IndexSpec;
use crate::error::Result;
use crate::locks::LockMode;
use crate::record::Record;
use crate::status::{LockTarget, Stage};
use crate::testing::*;
use crate::tests::crash::{recorded, tiny};
use crate::txn::Isolation::ReadCommitted;
use crate::txn::losers::TURNS;
use crate::txn::{LockWait, RowLock, RowLockOutcome, Scan, Txn};
use crate::{Database, Datum, EngineConfig, OpenReport, Table};
use std::sync::Arc;
use std::time::Duration;
use terrace_device::fault::{Fault, Operation, Recorder, Rule};
use terrace_device::{ErrorKind, Purpose};
use terrace_env::{Env, Sim};
use terrace_storage::btree::BTree;
use terrace_storage::config::Restart;
use terrace_storage::{DATA, DeviceSet, UndoPtr};
use tokio::sync::SemaphorePermit;

async fn made(env: &Env, devices: &DeviceSet) -> Database {
    Database::create(env.clone(), devices.clone(), storage(), EngineConfig::default()).await.unwrap()
}

async fn opened(env: &Env, devices: &DeviceSet) -> (Database, OpenReport) {
    Database::open(env.clone(), devices.clone(), storage(), EngineConfig::default()).await.unwrap()
}

/// The power goes: everything is in the log, and nobody ends the transaction.
async fn crash(db: Database, txns: Vec<Txn>) {
    db.store().log().flush_to(db.store().log().end()).await.unwrap();
    std::mem::forget(txns);
}

/// Rollbacks of the background do not begin while it is held.
fn held(db: &Database) -> SemaphorePermit<'_> {
    db.0.turns.try_acquire_many(TURNS as u32).expect("no rollback has begun")
}

/// A transaction that does not wait long.
fn hasty(db: &Database) -> Txn {
    let mut txn = db.begin(ReadCommitted);
    txn.set_lock_timeout(Some(Duration::from_millis(5)));
    txn.begin_statement();
    txn
}

fn refused<T: std::fmt::Debug>(result: Result<T>) {
    assert_eq!(result.expect_err("a loser stands against it").state.0, "55P03");
}

fn by_v(name: &str) -> IndexSpec {
    IndexSpec { name: name.into(), columns: vec![1], unique: false, primary: false, extras: None }
}

/// Rows 1 to 5, of which a loser has changed the first three, and made a sixth. Table `u` is none of its.
async fn left(env: &Env) -> (DeviceSet, Arc<Table>, Arc<Table>) {
    let devices = devices();
    let db = made(env, &devices).await;
    let (t, u) = (table(&db, "t").await, table(&db, "u").await);
    index_v(&db, &t).await;
    let t = db.catalog().table_by_oid(t.oid).unwrap().clone();
    for id in 1..=5 {
        put(&db, &t, id, id * 10).await;
    }
    let mut txn = db.begin(ReadCommitted);
    set(&mut txn, &t, 1, -1).await.unwrap();
    txn.begin_statement();
    let (rid, _, version) = get(&mut txn, &t, 2).await.unwrap();
    txn.delete(&t, rid, version).await.unwrap();
    let (rid, _, version) = get(&mut txn, &t, 3).await.unwrap();
    txn.update(&t, rid, version, &row(33, -3)).await.unwrap();
    txn.insert(&t, &row(6, 60)).await.unwrap();
    crash(db, vec![txn]).await;
    (devices, t, u)
}

#[test]
fn readers_see_what_was_before_a_loser() {
    simulate(1, |env| async move {
        let (devices, t, _) = left(&env).await;
        let (db, report) = opened(&env, &devices).await;
        let turns = held(&db);
        assert_eq!((report.losers_rolled_back, report.losers_left), (0, 1));
        let before: Vec<_> = (1..=5).map(|id| (id, id * 10)).collect();
        for scan in [Scan::Full, whole(&t, 0), whole(&t, 1)] {
            let mut found = all(&mut db.begin(ReadCommitted), &t, scan).await;
            found.sort_unstable();
            assert_eq!(found, before);
        }
        for (id, v) in [(2, Some(20)), (3, Some(30)), (6, None), (33, None)] {
            assert_eq!(value(&mut db.begin(ReadCommitted), &t, id).await, v, "row {id}");
        }
        // It is a transaction like any other, and says what it is.
        let (status, stats) = (db.transactions(), db.stats().transactions);
        assert_eq!((status.len(), status[0].isolation, status[0].stage), (1, None, Stage::RollingBack));
        assert_eq!((stats.active, stats.horizon), (1, status[0].id.unwrap()));
        assert_eq!((db.losers_left(), db.rollbacks_left()), (1, 1));
        drop(turns);
        db.purge().await.unwrap();
        assert_eq!((db.losers_left(), db.rollbacks_left(), db.transactions().len()), (0, 0, 0));
        assert_eq!((db.stats().histories, db.0.locks.entries()), (0, 0));
        assert_eq!(all(&mut db.begin(ReadCommitted), &t, whole(&t, 0)).await, before);
        clean(&db).await;
        db.close().await.unwrap();
    });
}

fn whole(t: &Arc<Table>, index: usize) -> Scan {
    let (from, to) = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
    let direction = crate::txn::ScanDirection::Forward;
    Scan::Index(crate::txn::IndexRange { index: t.indexes[index].clone(), from, to, direction })
}

#[test]
fn writers_of_a_losers_rows_and_keys_wait_for_its_end() {
    simulate(2, |env| async move {
        let (devices, t, _) = left(&env).await;
        let (db, _) = opened(&env, &devices).await;
        let turns = held(&db);
        for id in [1, 2, 3] {
            refused(set(&mut hasty(&db), &t, id, 7).await);
            let mut txn = hasty(&db);
            let (rid, _, version) = get(&mut txn, &t, id).await.unwrap();
            refused(txn.lock_row(&t, rid, version, RowLock::Share, LockWait::NoWait).await);
            let skipped = txn.lock_row(&t, rid, version, RowLock::Exclusive, LockWait::Skip).await.unwrap();
            assert!(matches!(skipped, RowLockOutcome::Skipped), "{skipped:?}");
        }
        // Keys that it has taken, and keys that it has given up: its end decides.
        for id in [6, 33, 2, 3] {
            refused(hasty(&db).insert(&t, &row(id, 1)).await);
        }
        // What it has not touched is free.
        let mut txn = hasty(&db);
        set(&mut txn, &t, 4, 44).await.unwrap();
        txn.commit().await.unwrap();
        let (d, t2) = (db.clone(), t.clone());
        let waiting = session(&env, async move {
            let mut txn = d.begin(ReadCommitted);
            set(&mut txn, &t2, 1, 11).await.unwrap();
            txn.insert(&t2, &row(6, 66)).await.unwrap();
            txn.commit().await.unwrap();
        });
        rest(&env).await;
        assert!(waiting.lock().is_none());
        let loser = db.transactions().remove(0);
        let waits = db.transactions().into_iter().find_map(|txn| txn.waiting).expect("the session waits");
        assert_eq!((waits.target, waits.blocked_by), (LockTarget::Transaction(loser.number), vec![loser.number]));
        drop(turns);
        rest(&env).await;
        assert!(waiting.lock().is_some(), "it goes on when the loser has ended");
        let rows = all(&mut db.begin(ReadCommitted), &t, whole(&t, 0)).await;
        assert_eq!(rows, [(1, 11), (2, 20), (3, 30), (4, 44), (5, 50), (6, 66)]);
        clean(&db).await;
    });
}

#[test]
fn definitions_of_a_losers_tables_wait_for_its_end() {
    simulate(3, |env| async move {
        let (devices, t, u) = left(&env).await;
        let (db, _) = opened(&env, &devices).await;
        let turns = held(&db);
        // Nobody has looked yet which tables it has written.
        let locked = |table: &Table| {
            let held = db.locks().into_iter().filter(|lock| lock.target == LockTarget::Table(table.oid));
            held.map(|lock| (lock.mode, lock.granted)).collect::<Vec<_>>()
        };
        assert_eq!(
            (locked(&t), locked(&u)),
            (vec![(LockMode::RowExclusive, true)], vec![(LockMode::RowExclusive, true)])
        );
        rest(&env).await;
        assert_eq!((locked(&t), locked(&u)), (vec![(LockMode::RowExclusive, true)], vec![]));
        let mut txn = hasty(&db);
        txn.create_index(&u, by_v("u_v")).await.unwrap();
        txn.drop_table(&u).await.unwrap();
        txn.commit().await.unwrap();
        table(&db, "made_since").await;
        refused(hasty(&db).create_index(&t, by_v("more")).await);
        refused(hasty(&db).drop_index(&t.indexes[1]).await);
        refused(hasty(&db).drop_column(&t, 1).await);
        refused(hasty(&db).truncate_table(&t).await);
        refused(hasty(&db).drop_table(&t).await);
        let mut txn = hasty(&db);
        txn.analyze(&t).await.unwrap();
        txn.commit().await.unwrap();
        let (d, t2) = (db.clone(), t.clone());
        let waiting = session(&env, async move {
            let mut txn = d.begin(ReadCommitted);
            txn.create_index(&t2, by_v("more")).await.unwrap();
            txn.drop_index(&t2.indexes[1]).await.unwrap();
            txn.commit().await.unwrap();
        });
        rest(&env).await;
        assert!(waiting.lock().is_none());
        drop(turns);
        rest(&env).await;
        assert!(waiting.lock().is_some());
        clean(&db).await;
        db.close().await.unwrap();
    });
}

/// It noted an object as created, and the power went before the definition. Meanwhile others define, and an index that
/// was dropped before it is purged: deleted definitions are not the loser's to undo with.
#[test]
fn what_a_loser_created_and_did_not_define_is_freed_in_the_background() {
    simulate(4, |env| async move {
        let devices = devices();
        let db = made(&env, &devices).await;
        let (t, u) = (table(&db, "t").await, table(&db, "u").await);
        index_v(&db, &t).await;
        let t = db.catalog().table_by_oid(t.oid).unwrap().clone();
        for id in 0..100 {
            put(&db, &t, id, id * 10).await;
        }
        // Purge waits for this snapshot.
        let mut old = db.begin(crate::txn::Isolation::RepeatableRead);
        assert_eq!(value(&mut old, &t, 1).await, Some(10));
        let mut txn = db.begin(ReadCommitted);
        txn.drop_index(&t.indexes[1]).await.unwrap();
        txn.commit().await.unwrap();
        let t = db.catalog().table_by_oid(t.oid).unwrap().clone();
        let mut txn = db.begin(ReadCommitted);
        for id in 0..100 {
            txn.begin_statement();
            let (rid, _, version) = get(&mut txn, &t, id).await.unwrap();
            txn.update(&t, rid, version, &row(id + 1000, id)).await.unwrap();
        }
        let object = db.store().next_object();
        txn.object_created(object).await.unwrap();
        BTree::create(db.store(), object, DATA).await.unwrap();
        crash(db, vec![txn, old]).await;
        let (db, report) = opened(&env, &devices).await;
        assert_eq!((report.losers_rolled_back, report.losers_left), (0, 1));
        assert_eq!(db.store().space(DATA).page_count(object), 1);
        let purge = db.0.purging.try_lock().expect("purge has not begun");
        while db.0.turns.available_permits() == TURNS {
            terrace_env::yield_now().await;
        }
        let turns = db.0.turns.acquire_many(TURNS as u32).await.unwrap();
        assert_eq!((db.losers_left(), db.store().space(DATA).page_count(object)), (1, 0), "a slice of it is undone");
        drop(purge);
        db.0.purge_now().await.unwrap();
        let mut txn = hasty(&db);
        txn.create_index(&u, by_v("u_v")).await.unwrap();
        drop(turns);
        rest(&env).await;
        assert_eq!(db.losers_left(), 0);
        txn.commit().await.unwrap();
        assert_eq!(value(&mut db.begin(ReadCommitted), &t, 2).await, Some(20));
        clean(&db).await;
        assert!(db.failure().is_none());
    });
}

/// Definitions made, deleted and changed.
#[test]
fn one_that_changed_definitions_is_undone_before_the_opening() {
    for kind in 0..3 {
        simulate(5, move |env| async move {
            let devices = devices();
            let db = made(&env, &devices).await;
            let (t, u) = (table(&db, "t").await, table(&db, "u").await);
            for id in 1..=3 {
                put(&db, &t, id, id).await;
                put(&db, &u, id, id).await;
            }
            let mut defining = db.begin(ReadCommitted);
            set(&mut defining, &t, 1, -1).await.unwrap();
            match kind {
                0 => {
                    let x = crate::ColumnDef::new("x", crate::DataType::Int4);
                    let wide = defining.add_column(&t, x).await.unwrap();
                    defining.insert(&wide, &[row(4, 4), vec![Datum::Int4(9)]].concat()).await.unwrap();
                }
                1 => defining.drop_table(&t).await.unwrap(),
                _ => drop(defining.analyze(&t).await.unwrap()),
            }
            let mut other = db.begin(ReadCommitted);
            set(&mut other, &u, 1, -1).await.unwrap();
            crash(db, vec![other, defining]).await;
            let (db, report) = opened(&env, &devices).await;
            assert_eq!((report.losers_rolled_back, report.losers_left), (1, 1));
            let turns = held(&db);
            rest(&env).await;
            let now = db.catalog().table("t").unwrap().clone();
            assert!(now.columns.len() == 3 && now.statistics.is_none());
            assert_eq!(value(&mut db.begin(ReadCommitted), &u, 1).await, Some(1));
            assert_eq!(value(&mut db.begin(ReadCommitted), &now, 1).await, Some(1));
            refused(set(&mut hasty(&db), &u, 1, 5).await);
            let mut txn = hasty(&db);
            set(&mut txn, &now, 1, 5).await.unwrap();
            txn.drop_table(&now).await.unwrap();
            txn.commit().await.unwrap();
            drop(turns);
            clean(&db).await;
        });
    }
}

#[test]
fn where_the_restart_is_not_instant_the_opening_waits_for_all() {
    simulate(6, |env| async move {
        let (devices, t, _) = left(&env).await;
        let mut config = storage();
        config.flash.restart = Restart::LazyVerification;
        let (db, report) = Database::open(env, devices, config, EngineConfig::default()).await.unwrap();
        assert_eq!((report.losers_rolled_back, report.losers_left, db.transactions().len()), (1, 0, 0));
        set(&mut hasty(&db), &t, 1, 7).await.unwrap();
        clean(&db).await;
    });
}

#[test]
fn a_loser_left_to_the_next_start_keeps_its_locks() {
    simulate(7, |env| async move {
        let (devices, t, _) = left(&env).await;
        let (db, _) = opened(&env, &devices).await;
        let turns = held(&db);
        rest(&env).await;
        db.0.leaving.store(true, std::sync::atomic::Ordering::Release);
        drop(turns);
        db.0.settle().await;
        assert_eq!(db.losers_left(), 1);
        refused(hasty(&db).drop_table(&t).await);
        refused(set(&mut hasty(&db), &t, 1, 7).await);
        db.close_fast().await.unwrap();
        let (db, report) = opened(&env, &devices).await;
        assert_eq!(report.losers_left, 1);
        clean(&db).await;
        assert_eq!(value(&mut db.begin(ReadCommitted), &t, 1).await, Some(10));
    });
}

/// A short one does not wait for the end of a long one.
#[test]
fn losers_are_undone_in_turn() {
    let recorder = Recorder::new(false);
    let (first, before) = (Sim::new(8, 2), recorder.clone());
    let env = first.env();
    first.run(async move {
        let devices = recorded(&env, &before, None);
        let db = Database::create(env.clone(), devices, tiny(), EngineConfig::default()).await.unwrap();
        let t = table(&db, "t").await;
        for id in 0..400 {
            put(&db, &t, id, id).await;
        }
        let mut open = Vec::new();
        for from in (0..400).step_by(50) {
            let mut txn = db.begin(ReadCommitted);
            // All but the last are long.
            for id in from..if from == 350 { 351 } else { from + 50 } {
                for v in 1..20 {
                    set(&mut txn, &t, id, -v).await.unwrap();
                }
            }
            open.push(txn);
        }
        crash(db, open).await;
    });
    recorder.power_off();
    first.crash();
    // Tasks begin in an order that differs by seed.
    for seed in 9..17 {
        let (second, after) = (Sim::new(seed, 2), Recorder::new(false));
        let (env, images) = (second.env(), recorder.contents(terrace_device::fault::Choice::All));
        second.run(async move {
            let devices = recorded(&env, &after, Some(images));
            let (db, report) = Database::open(env.clone(), devices, tiny(), EngineConfig::default()).await.unwrap();
            assert_eq!(report.losers_left, 8);
            let t = db.catalog().table("t").unwrap().clone();
            let mut txn = db.begin(ReadCommitted);
            set(&mut txn, &t, 350, 7).await.unwrap();
            txn.commit().await.unwrap();
            assert_eq!(db.losers_left(), 7, "the long ones go on");
            clean(&db).await;
            assert_eq!(db.losers_left(), 0);
            assert_eq!(value(&mut db.begin(ReadCommitted), &t, 350).await, Some(7));
            assert_eq!(value(&mut db.begin(ReadCommitted), &t, 0).await, Some(0));
        });
    }
}

#[test]
fn one_that_cannot_be_undone_stops_the_database() {
    simulate(10, |env| async move {
        let (devices, data) = faulty();
        let db = made(&env, &devices).await;
        let t = table(&db, "t").await;
        let wide = |id: i32, v: i32| vec![Datum::Int4(id), Datum::Int4(v), Datum::text("wide ".repeat(200))];
        let mut txn = db.begin(ReadCommitted);
        for id in 0..40 {
            txn.insert(&t, &wide(id, id)).await.unwrap();
        }
        txn.commit().await.unwrap();
        db.store().checkpoint().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        for id in 0..40 {
            set(&mut txn, &t, id, -1).await.unwrap();
        }
        db.store().checkpoint().await.unwrap();
        crash(db, vec![txn]).await;
        let (db, report) = opened(&env, &devices).await;
        assert_eq!(report.losers_left, 1);
        let (d, t2) = (db.clone(), t.clone());
        let turns = held(&db);
        let waiting = session(&env, async move { set(&mut d.begin(ReadCommitted), &t2, 39, 5).await });
        rest(&env).await;
        assert!(waiting.lock().is_none());
        let fault = Fault::Fail(ErrorKind::Io("a cable is loose".into()));
        data.inject(Rule { operation: Operation::Read, purpose: Some(Purpose::Data), skip: 0, times: 1000, fault });
        drop(turns);
        env.sleep(Duration::from_secs(60)).await;
        let failure = db.failure().expect("what it wrote can neither stay nor go");
        assert!(failure.message.contains("could not be rolled back"), "{failure}");
        assert_eq!(waiting.lock().take().expect("it is woken").unwrap_err().state.0, "58030");
        assert_eq!(db.losers_left(), 1);
    });
}

/// The survey finds every record, wherever its extents lie, and none of another transaction.
#[test]
fn a_survey_finds_all_that_was_written() {
    simulate(11, |env| async move {
        let devices = devices();
        let db = made(&env, &devices).await;
        let mut tables = Vec::new();
        for name in ["a", "b", "c", "d"] {
            tables.push(table(&db, name).await);
        }
        let wide = |id: i32| vec![Datum::Int4(id), Datum::Int4(1), Datum::text("wide ".repeat(300))];
        for id in 0..3 {
            put(&db, &tables[3], id, 1).await; // Before it, in the same segment.
        }
        let mut txn = db.begin(ReadCommitted);
        txn.insert(&tables[0], &wide(1)).await.unwrap();
        for _ in 0..1500 {
            txn.begin_statement();
            let (rid, _, version) = get(&mut txn, &tables[0], 1).await.unwrap();
            txn.update(&tables[0], rid, version, &wide(1)).await.unwrap();
            set_wide(&mut txn, &tables[0]).await;
        }
        txn.insert(&tables[1], &wide(1)).await.unwrap();
        let mark = txn.savepoint();
        txn.insert(&tables[2], &wide(1)).await.unwrap();
        txn.rollback_to(mark).await.unwrap();
        assert!(db.store().undo().used_bytes() > 3 << 20, "several extents");
        let mut found = std::collections::BTreeSet::new();
        let mut records = 0;
        let writer = txn.resources.writer.as_ref().unwrap();
        let look = |body: &[u8]| {
            found.extend(Record::decode(body).unwrap().table());
            records += 1;
            true
        };
        db.store().undo().survey(db.store(), writer, look).await.unwrap();
        // What was undone on the last page may be among them.
        assert!(found.contains(&tables[0].oid) && found.contains(&tables[1].oid) && !found.contains(&tables[3].oid));
        assert!((3002..=3004).contains(&records), "{records}");
        let mut once = 0;
        let stop = |_: &[u8]| {
            once += 1;
            once < 5
        };
        db.store().undo().survey(db.store(), writer, stop).await.unwrap();
        assert_eq!(once, 5);
        txn.resources.undo_to(UndoPtr::NONE).await.unwrap();
        let writer = txn.resources.writer.as_ref().unwrap();
        db.store().undo().survey(db.store(), writer, |_| unreachable!("nothing is left")).await.unwrap();
    });
}

/// Another text of the same length: all of it is in the undo record.
async fn set_wide(txn: &mut Txn, t: &Table) {
    txn.begin_statement();
    let (rid, _, version) = get(txn, t, 1).await.unwrap();
    let other = vec![Datum::Int4(1), Datum::Int4(2), Datum::text("other".repeat(300))];
    txn.update(t, rid, version, &other).await.unwrap();
}
