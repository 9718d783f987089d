//! Rows locked without being changed.
use crate::testing::*;
use crate::txn::{Isolation, LockWait, RowLock, RowLockOutcome, UpdateOutcome};
use crate::{Database, EngineError, Result, Table, Txn};
use Isolation::{ReadCommitted, RepeatableRead};
use LockWait::{NoWait, Skip, Wait};
use RowLock::{Exclusive, KeyShare, NoKeyUpdate, Share};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// SELECT ... WHERE id = `id` FOR ...
async fn lock(txn: &mut Txn, t: &Table, id: i32, how: RowLock, wait: LockWait) -> Result<RowLockOutcome> {
    txn.begin_statement();
    let (rid, _, version) = get(txn, t, id).await.expect("the row is visible");
    txn.lock_row(t, rid, version, how, wait).await
}

fn is_locked(outcome: Result<RowLockOutcome>) -> bool {
    matches!(outcome, Ok(RowLockOutcome::Locked))
}

async fn updated(db: Database, t: Arc<Table>, id: i32, to: i32) -> Result<UpdateOutcome> {
    let mut txn = db.begin(ReadCommitted);
    let outcome = set(&mut txn, &t, id, to).await?;
    txn.commit().await?;
    Ok(outcome)
}

fn code(e: &EngineError) -> &'static str {
    e.state.0
}

#[test]
fn a_locked_row_is_not_written_until_the_transaction_ends_and_is_not_changed_by_it() {
    simulate(1, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        let mut reader = db.begin(RepeatableRead);
        assert_eq!(value(&mut reader, &t, 1).await, Some(10));
        for how in [Exclusive, Share] {
            let mut a = db.begin(ReadCommitted);
            assert!(is_locked(lock(&mut a, &t, 1, how, Wait).await));
            assert!(is_locked(lock(&mut a, &t, 1, how, Wait).await), "again, for nothing");
            let waits = session(&env, updated(db.clone(), t.clone(), 1, 10));
            let deletes = session(&env, {
                let (db, t) = (db.clone(), t.clone());
                async move {
                    let mut b = db.begin(ReadCommitted);
                    b.begin_statement();
                    let (rid, _, version) = get(&mut b, &t, 1).await.unwrap();
                    let outcome = b.delete(&t, rid, version).await;
                    b.rollback().await.unwrap();
                    outcome
                }
            });
            rest(&env).await;
            assert!(waits.lock().is_none() && deletes.lock().is_none(), "they wait");
            assert_eq!(db.stats().transactions.active, 2, "who locks does not write");
            a.commit().await.unwrap();
            env.sleep(Duration::from_millis(20)).await;
            assert!(matches!(waits.lock().take(), Some(Ok(UpdateOutcome::Done))));
            assert!(matches!(deletes.lock().take(), Some(Ok(UpdateOutcome::Changed { .. }))));
        }
        // Locking leaves no version: only the two updates did.
        let mut a = db.begin(ReadCommitted);
        assert!(is_locked(lock(&mut a, &t, 1, Exclusive, Wait).await));
        a.commit().await.unwrap();
        let e = set(&mut reader, &t, 1, 11).await.unwrap_err();
        assert_eq!(code(&e), "40001");
        drop(reader);
        db.purge().await.unwrap();
        assert_eq!(db.0.locks.entries(), 0);
        clean(&db).await;
    });
}

#[test]
fn a_lock_waits_for_the_writer_and_gets_what_it_committed() {
    simulate(2, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        let locker = |isolation| {
            let (db, t) = (db.clone(), t.clone());
            session(&env, async move {
                let mut b = db.begin(isolation);
                let outcome = lock(&mut b, &t, 1, Exclusive, Wait).await;
                b.rollback().await.unwrap();
                outcome
            })
        };
        for (isolation, commit) in [(ReadCommitted, true), (ReadCommitted, false), (RepeatableRead, true)] {
            let mut a = db.begin(ReadCommitted);
            set(&mut a, &t, 1, 11).await.unwrap();
            let waits = locker(isolation);
            rest(&env).await;
            assert!(waits.lock().is_none());
            // The writer may write its row again, whoever waits for it.
            set(&mut a, &t, 1, 12).await.unwrap();
            if commit {
                a.commit().await.unwrap()
            } else {
                a.rollback().await.unwrap()
            }
            rest(&env).await;
            match (waits.lock().take().expect("woken"), isolation, commit) {
                (Ok(RowLockOutcome::Changed { row, .. }), ReadCommitted, true) => assert_eq!(int(&row, &t, 1), 12),
                (Ok(RowLockOutcome::Locked), ReadCommitted, false) => {}
                (Err(e), RepeatableRead, true) => assert_eq!(code(&e), "40001"),
                other => panic!("{other:?}"),
            }
        }
        let mut a = db.begin(ReadCommitted);
        a.begin_statement();
        let (rid, _, version) = get(&mut a, &t, 1).await.unwrap();
        a.delete(&t, rid, version).await.unwrap();
        let waits = locker(ReadCommitted);
        rest(&env).await;
        a.commit().await.unwrap();
        rest(&env).await;
        assert!(matches!(waits.lock().take(), Some(Ok(RowLockOutcome::Gone))));
        assert_eq!(db.0.locks.entries(), 0);
        clean(&db).await;
    });
}

#[test]
fn shared_locks_stand_together_and_upgrades_that_cannot_are_a_deadlock() {
    simulate(3, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        let (mut a, mut b) = (db.begin(ReadCommitted), db.begin(ReadCommitted));
        assert!(is_locked(lock(&mut a, &t, 1, Share, NoWait).await));
        assert!(is_locked(lock(&mut b, &t, 1, Share, NoWait).await));
        let first = session(&env, {
            let t = t.clone();
            async move {
                let outcome = set(&mut a, &t, 1, 11).await;
                a.commit().await.unwrap();
                outcome
            }
        });
        rest(&env).await;
        assert!(first.lock().is_none(), "it waits for the other's shared lock");
        assert_eq!(code(&set(&mut b, &t, 1, 12).await.unwrap_err()), "40P01");
        b.rollback().await.unwrap();
        rest(&env).await;
        assert!(matches!(first.lock().take(), Some(Ok(UpdateOutcome::Done))));
        assert_eq!(db.0.locks.entries(), 0);
    });
}

#[test]
fn nowait_fails_and_skip_skips_and_neither_leaves_a_lock() {
    simulate(4, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        put(&db, &t, 2, 20).await;
        let mut writer = db.begin(ReadCommitted);
        set(&mut writer, &t, 1, 11).await.unwrap();
        let mut locker = db.begin(ReadCommitted);
        assert!(is_locked(lock(&mut locker, &t, 2, Share, Wait).await));
        let mut other = db.begin(ReadCommitted);
        for id in [1, 2] {
            let e = lock(&mut other, &t, id, Exclusive, NoWait).await.unwrap_err();
            assert_eq!((code(&e), &e.message[..]), ("55P03", "could not obtain lock on row in relation \"t\""));
            assert!(matches!(lock(&mut other, &t, id, Exclusive, Skip).await, Ok(RowLockOutcome::Skipped)));
        }
        writer.rollback().await.unwrap();
        locker.rollback().await.unwrap();
        let held = db.locks().into_iter().filter(|l| matches!(l.target, crate::status::LockTarget::Row(..)));
        assert_eq!(held.count(), 0);
        other.rollback().await.unwrap();
        assert_eq!(db.0.locks.entries(), 0);
    });
}

#[test]
fn there_is_a_limit_and_it_says_so() {
    simulate(5, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        let limit = 1 << 10;
        let mut txn = db.begin(ReadCommitted);
        for id in 0..=limit {
            txn.insert(&t, &row(id, id)).await.unwrap();
        }
        txn.commit().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        for id in 0..limit {
            assert!(is_locked(lock(&mut txn, &t, id, Exclusive, Wait).await));
        }
        assert_eq!(code(&lock(&mut txn, &t, limit, Exclusive, Wait).await.unwrap_err()), "53200");
        drop(txn);
        assert_eq!(db.0.locks.entries(), 0);
    });
}

#[test]
fn lockers_and_writers_together_lose_no_update() {
    // Read the value, lock the row, write one more: without the lock, READ COMMITTED would lose some.
    for seed in 0..20 {
        simulate(100 + seed, |env| async move {
            let db = database(&env).await;
            let t = table(&db, "t").await;
            put(&db, &t, 1, 0).await;
            let done = Arc::new(Mutex::new(0));
            for s in 0..6 {
                let (db, t, env2, done) = (db.clone(), t.clone(), env.clone(), done.clone());
                env.spawn("session", async move {
                    for _ in 0..5 {
                        env2.sleep(Duration::from_micros(env2.random_u64() % 300)).await;
                        let mut txn = db.begin(ReadCommitted);
                        txn.begin_statement();
                        let (rid, mut v, mut version) = get(&mut txn, &t, 1).await.unwrap();
                        match txn.lock_row(&t, rid, version, Exclusive, Wait).await.unwrap() {
                            RowLockOutcome::Locked => {}
                            RowLockOutcome::Changed { row, version: newer } => {
                                (v, version) = (int(&row, &t, 1), newer);
                            }
                            other => panic!("{other:?}"),
                        }
                        env2.sleep(Duration::from_micros(env2.random_u64() % 300)).await;
                        let outcome = txn.update(&t, rid, version, &row(1, v + 1)).await.unwrap();
                        assert!(matches!(outcome, UpdateOutcome::Done), "the lock kept it: {outcome:?}");
                        if s % 3 == 2 {
                            drop(txn);
                        } else {
                            txn.commit().await.unwrap();
                            *done.lock() += 1;
                        }
                    }
                });
            }
            env.sleep(Duration::from_secs(5)).await;
            let mut txn = db.begin(ReadCommitted);
            assert_eq!(value(&mut txn, &t, 1).await, Some(*done.lock()));
            assert_eq!(*done.lock(), 20);
            drop(txn);
            assert_eq!(db.0.locks.entries(), 0);
            clean(&db).await;
        });
    }
}

#[test]
fn a_lock_of_the_key_does_not_mind_updates_that_leave_it() {
    simulate(7, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        for isolation in [ReadCommitted, RepeatableRead] {
            let mut a = db.begin(isolation);
            a.begin_statement();
            let (rid, _, version) = get(&mut a, &t, 1).await.unwrap();
            // One has committed, and one is under way.
            updated(db.clone(), t.clone(), 1, 11).await.unwrap();
            let mut b = db.begin(ReadCommitted);
            set(&mut b, &t, 1, 12).await.unwrap();
            assert!(is_locked(a.lock_row(&t, rid, version, KeyShare, NoWait).await), "the version that it sees");
            let stronger = a.lock_row(&t, rid, version, Share, NoWait).await;
            assert_eq!(code(&stronger.unwrap_err()), "55P03");
            b.commit().await.unwrap();
            let stronger = a.lock_row(&t, rid, version, Share, NoWait).await;
            match isolation {
                ReadCommitted => assert!(matches!(stronger, Ok(RowLockOutcome::Changed { .. }))),
                _ => assert_eq!(code(&stronger.unwrap_err()), "40001"),
            }
        }
        // A deletion is another thing.
        let mut a = db.begin(ReadCommitted);
        a.begin_statement();
        let (rid, _, version) = get(&mut a, &t, 1).await.unwrap();
        updated(db.clone(), t.clone(), 1, 13).await.unwrap();
        let mut b = db.begin(ReadCommitted);
        b.begin_statement();
        let (_, _, newest) = get(&mut b, &t, 1).await.unwrap();
        b.delete(&t, rid, newest).await.unwrap();
        assert_eq!(code(&a.lock_row(&t, rid, version, KeyShare, NoWait).await.unwrap_err()), "55P03");
        b.commit().await.unwrap();
        assert!(matches!(a.lock_row(&t, rid, version, KeyShare, NoWait).await, Ok(RowLockOutcome::Gone)));
        drop(a);
        clean(&db).await;
    });
}

#[test]
fn going_back_to_a_savepoint_lets_go_of_the_locks_since() {
    simulate(8, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        put(&db, &t, 2, 20).await;
        let mut a = db.begin(ReadCommitted);
        assert!(is_locked(lock(&mut a, &t, 1, KeyShare, Wait).await));
        let mark = a.savepoint();
        assert!(is_locked(lock(&mut a, &t, 1, Exclusive, Wait).await));
        assert!(is_locked(lock(&mut a, &t, 2, Exclusive, Wait).await));
        let waits = session(&env, {
            let (db, t) = (db.clone(), t.clone());
            async move {
                let mut b = db.begin(ReadCommitted);
                let outcome = lock(&mut b, &t, 1, NoKeyUpdate, Wait).await;
                b.rollback().await.unwrap();
                outcome
            }
        });
        rest(&env).await;
        assert!(waits.lock().is_none());
        a.rollback_to(mark).await.unwrap();
        rest(&env).await;
        assert!(is_locked(waits.lock().take().expect("woken")));
        let mut b = db.begin(ReadCommitted);
        assert!(is_locked(lock(&mut b, &t, 2, Exclusive, NoWait).await));
        assert_eq!(code(&lock(&mut b, &t, 1, Exclusive, NoWait).await.unwrap_err()), "55P03", "the first is kept");
        a.commit().await.unwrap();
        b.rollback().await.unwrap();
        assert_eq!(db.0.locks.entries(), 0);
        clean(&db).await;
    });
}
