//! Random concurrent work against what must hold whatever the order: sums, snapshots, and what `check` verifies. And
//! restarts.
use crate::testing::*;
use crate::txn::{IndexRange, Isolation, Scan, ScanDirection, UpdateOutcome};
use crate::{Database, EngineConfig, Table};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use terrace_env::{Env, Sim};

use Isolation::{ReadCommitted, RepeatableRead};

const ACCOUNTS: i32 = 12;
const START: i32 = 100;

fn by_key(table: &Table, direction: ScanDirection) -> Scan {
    let index = table.indexes[0].clone();
    Scan::Index(IndexRange { index, from: Bound::Unbounded, to: Bound::Unbounded, direction })
}

/// Adds to an account in READ COMMITTED fashion: what another transaction committed meanwhile is the new base. False:
/// it is gone.
async fn add(txn: &mut crate::Txn, t: &Table, id: i32, amount: i32) -> crate::Result<bool> {
    txn.begin_statement();
    let Some((rid, mut v, mut version)) = get(txn, t, id).await else { return Ok(false) };
    loop {
        match txn.update(t, rid, version, &row(id, v + amount)).await? {
            UpdateOutcome::Done => return Ok(true),
            UpdateOutcome::Gone => return Ok(false),
            UpdateOutcome::Changed { row, version: newer } => {
                // The row may have another key by now: then it no longer satisfies the condition.
                if int(&row, t, 0) != id {
                    return Ok(false);
                }
                (v, version) = (int(&row, t, 1), newer);
            }
        }
    }
}

/// Moves an account to another number: deletes and inserts, or changes the key.
async fn renumber(txn: &mut crate::Txn, t: &Table, from: i32, to: i32, in_place: bool) -> crate::Result<bool> {
    txn.begin_statement();
    let Some((rid, v, version)) = get(txn, t, from).await else { return Ok(false) };
    if in_place {
        return Ok(matches!(txn.update(t, rid, version, &row(to, v)).await?, UpdateOutcome::Done));
    }
    if !matches!(txn.delete(t, rid, version).await?, UpdateOutcome::Done) {
        return Ok(false);
    }
    txn.insert(t, &row(to, v)).await?;
    Ok(true)
}

async fn one_transaction(env: &Env, db: &Database, t: &Table) -> crate::Result<bool> {
    let pick = |n: u64| (env.random_u64() % n) as i32;
    let isolation = if pick(3) == 0 { RepeatableRead } else { ReadCommitted };
    let mut txn = db.begin(isolation);
    for _ in 0..1 + pick(3) {
        let start = txn.savepoint();
        let (a, b) = (pick(ACCOUNTS as u64 * 2), pick(ACCOUNTS as u64 * 2));
        let done = match pick(4) {
            0 => renumber(&mut txn, t, a, b, pick(2) == 0).await,
            _ => match add(&mut txn, t, a, -7).await {
                Ok(true) => add(&mut txn, t, b, 7).await,
                other => other,
            },
        };
        match done {
            Ok(true) if pick(8) != 0 => {}
            Ok(_) => txn.rollback_to(start).await?,
            Err(e) if e.state.0 == "23505" => txn.rollback_to(start).await?,
            Err(e) => return Err(e),
        }
        if pick(3) == 0 {
            env.sleep(Duration::from_micros(pick(500) as u64)).await;
        }
    }
    match pick(6) {
        0 => txn.rollback().await.map(|()| false),
        1 => {
            drop(txn);
            Ok(false)
        }
        _ => txn.commit().await.map(|()| true),
    }
}

async fn verify_sum(db: &Database, t: &Arc<Table>) {
    let mut txn = db.begin(RepeatableRead);
    let mut full = all(&mut txn, t, Scan::Full).await;
    full.sort_unstable();
    let forward = all(&mut txn, t, by_key(t, ScanDirection::Forward)).await;
    let mut backward = all(&mut txn, t, by_key(t, ScanDirection::Backward)).await;
    backward.reverse();
    assert_eq!(full, forward, "a snapshot is the same by every way");
    assert_eq!(forward, backward);
    assert_eq!(full.len(), ACCOUNTS as usize);
    assert_eq!(full.iter().map(|r| r.1).sum::<i32>(), ACCOUNTS * START);
}

async fn bank(env: Env, rounds: usize) -> (Database, Arc<Table>) {
    let db = database(&env).await;
    let t = table(&db, "bank").await;
    for id in 0..ACCOUNTS {
        put(&db, &t, id, START).await;
    }
    work(&env, &db, &t, rounds).await;
    (db, t)
}

async fn work(env: &Env, db: &Database, t: &Arc<Table>, rounds: usize) {
    let running = Arc::new(AtomicU64::new(0));
    for _ in 0..5 {
        running.fetch_add(1, Ordering::SeqCst);
        let (env2, db, t, running) = (env.clone(), db.clone(), t.clone(), running.clone());
        env.spawn("teller", async move {
            for _ in 0..rounds {
                if let Err(e) = one_transaction(&env2, &db, &t).await {
                    assert!(["40001", "40P01"].contains(&e.state.0), "{e:?}");
                }
            }
            running.fetch_sub(1, Ordering::SeqCst);
        });
    }
    while running.load(Ordering::SeqCst) > 0 {
        verify_sum(db, t).await;
        env.sleep(Duration::from_millis(2)).await;
    }
}

#[test]
fn money_is_neither_made_nor_lost() {
    for seed in 0..30 {
        simulate(seed, |env| async move {
            let (db, t) = bank(env, 25).await;
            verify_sum(&db, &t).await;
            clean(&db).await;
            db.purge().await.unwrap();
            assert_eq!(db.stats().histories, 0);
            assert_eq!(db.0.locks.entries(), 0);
            verify_sum(&db, &t).await;
            clean(&db).await;
            // Purged through and through: one entry a row.
            let tree = t.indexes[0].tree();
            assert_eq!(tree.check(db.store()).await.unwrap(), ACCOUNTS as u64);
        });
    }
}

#[test]
fn a_restart_rolls_losers_back_and_keeps_what_was_committed() {
    for seed in 0..10 {
        let devices = devices();
        let first = Sim::new(seed, 2);
        let (env, d) = (first.env(), devices.clone());
        first.run(async move {
            let db = Database::create(env.clone(), d, storage(), EngineConfig::default()).await.unwrap();
            let t = table(&db, "bank").await;
            for id in 0..ACCOUNTS {
                put(&db, &t, id, START).await;
            }
            work(&env, &db, &t, 5).await;
            // Losers: one with definitions of its own, one with key changes, both in the log.
            let mut ddl = db.begin(ReadCommitted);
            let columns = t.columns.clone();
            let spec = crate::TableSpec { name: "lost".into(), columns, indexes: vec![] };
            let lost = ddl.create_table(spec).await.unwrap();
            ddl.insert(&lost, &row(1, 1)).await.unwrap();
            let mut loser = db.begin(ReadCommitted);
            let mut found = all(&mut loser, &t, Scan::Full).await;
            found.truncate(3);
            for (id, _) in found {
                loser.begin_statement();
                let (rid, v, version) = get(&mut loser, &t, id).await.unwrap();
                loser.update(&t, rid, version, &row(id + 1000, v + 1)).await.unwrap();
            }
            let end = db.store().log().end();
            db.store().log().flush_to(end).await.unwrap();
            std::mem::forget((ddl, loser));
        });
        first.crash();
        let second = Sim::new(seed + 1000, 2);
        let env = second.env();
        second.run(async move {
            let (db, report) = Database::open(env.clone(), devices, storage(), EngineConfig::default()).await.unwrap();
            assert_eq!((report.losers_rolled_back, report.losers_left), (1, 1));
            let catalog = db.catalog();
            assert!(catalog.table("lost").is_none());
            let t = catalog.table("bank").unwrap().clone();
            verify_sum(&db, &t).await;
            clean(&db).await;
            work(&env, &db, &t, 5).await;
            db.purge().await.unwrap();
            assert_eq!(db.stats().histories, 0);
            clean(&db).await;
            db.close().await.unwrap();
        });
    }
}

#[test]
fn undo_over_its_limit_gives_up_old_snapshots_then_refuses_writers() {
    simulate(11, |env| async move {
        let config = EngineConfig {
            undo_size_max: 6 << 20,
            snapshot_age_max: Duration::from_secs(10),
            ..EngineConfig::default()
        };
        let db = Database::create(env.clone(), devices(), storage(), config).await.unwrap();
        let t = table(&db, "t").await;
        put(&db, &t, 1, 0).await;
        let mut old = db.begin(RepeatableRead);
        assert_eq!(value(&mut old, &t, 1).await, Some(0));
        let long = |i: i32| {
            let text = if i % 2 == 0 { "x" } else { "y" };
            vec![crate::Datum::Int4(1), crate::Datum::Int4(i), crate::Datum::text(text.repeat(1500))]
        };
        let mut full = false;
        for i in 0..8000 {
            let mut txn = db.begin(ReadCommitted);
            txn.begin_statement();
            let (rid, _, version) = get(&mut txn, &t, 1).await.unwrap();
            match txn.update(&t, rid, version, &long(i)).await {
                Ok(_) => txn.commit().await.unwrap(),
                Err(e) => {
                    assert_eq!(e.state.0, "53100");
                    txn.rollback().await.unwrap();
                    full = true;
                    break;
                }
            }
        }
        assert!(full, "the snapshot is young: writers are refused");
        env.sleep(Duration::from_secs(11)).await;
        let mut again = db.begin(ReadCommitted);
        set(&mut again, &t, 1, 5).await.expect("the old snapshot was given up");
        again.commit().await.unwrap();
        assert!(db.stats().snapshots_cancelled >= 1);
        let e = old.get(&t, &t.indexes[0], &[crate::Datum::Int4(1)]).await.unwrap_err();
        assert_eq!(e.state.0, "72000");
        drop(old);
        db.purge().await.unwrap();
        clean(&db).await;
    });
}
