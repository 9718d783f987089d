//! Visibility, write conflicts, locks, uniqueness, rollback: each on a simulated machine.
mod given_up;
mod model;

use crate::testing::*;
use crate::txn::{Isolation, Scan, UpdateOutcome};
use crate::types::Datum;
use crate::versions::Reader;
use crate::{Database, EngineConfig, EngineError, IndexSpec};
use std::sync::Arc;
use std::time::Duration;
use terrace_storage::StorageConfig;

use Isolation::{ReadCommitted, RepeatableRead};

fn state(e: &EngineError) -> &'static str {
    e.state.0
}

#[test]
fn what_is_not_committed_is_seen_by_its_writer_alone() {
    simulate(1, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        let mut a = db.begin(ReadCommitted);
        a.begin_statement();
        a.insert(&t, &row(1, 10)).await.unwrap();
        let mut b = db.begin(ReadCommitted);
        assert_eq!(value(&mut a, &t, 1).await, Some(10));
        assert_eq!(value(&mut b, &t, 1).await, None);
        a.commit().await.unwrap();
        assert_eq!(value(&mut b, &t, 1).await, Some(10));
        assert_eq!(all(&mut b, &t, Scan::Full).await, vec![(1, 10)]);
        drop(b);
        clean(&db).await;
    });
}

#[test]
fn repeatable_read_keeps_its_snapshot_and_read_committed_does_not() {
    simulate(2, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        let mut rr = db.begin(RepeatableRead);
        let mut rc = db.begin(ReadCommitted);
        assert_eq!(value(&mut rr, &t, 1).await, Some(10));
        assert_eq!(value(&mut rc, &t, 1).await, Some(10));
        for v in 11..30 {
            let mut w = db.begin(ReadCommitted);
            assert!(matches!(set(&mut w, &t, 1, v).await.unwrap(), UpdateOutcome::Done));
            w.commit().await.unwrap();
            assert_eq!(value(&mut rr, &t, 1).await, Some(10));
            assert_eq!(value(&mut rc, &t, 1).await, Some(v));
            db.purge().await.unwrap();
        }
        assert!(db.stats().histories > 10, "the old snapshot holds purge up");
        rr.commit().await.unwrap();
        rc.commit().await.unwrap();
        db.purge().await.unwrap();
        assert_eq!(db.stats().histories, 0);
        clean(&db).await;
    });
}

#[test]
fn an_update_waits_for_the_writer_and_then_sees_what_it_did() {
    simulate(3, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        for commit in [true, false] {
            let mut a = db.begin(ReadCommitted);
            set(&mut a, &t, 1, 11).await.unwrap();
            let other = session(&env, {
                let (db, t) = (db.clone(), t.clone());
                async move {
                    let mut b = db.begin(ReadCommitted);
                    let outcome = set(&mut b, &t, 1, 12).await.unwrap();
                    b.rollback().await.unwrap();
                    outcome
                }
            });
            rest(&env).await;
            assert!(other.lock().is_none(), "it waits");
            if commit {
                a.commit().await.unwrap()
            } else {
                a.rollback().await.unwrap()
            }
            rest(&env).await;
            let outcome = other.lock().take().expect("it was woken");
            match outcome {
                UpdateOutcome::Changed { row, .. } if commit => assert_eq!(int(&row, &t, 1), 11),
                UpdateOutcome::Done if !commit => {}
                other => panic!("committed: {commit}; {other:?}"),
            }
        }
        assert_eq!(db.0.locks.entries(), 0);
        clean(&db).await;
    });
}

#[test]
fn repeatable_read_refuses_to_lose_an_update() {
    simulate(4, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        let mut a = db.begin(RepeatableRead);
        assert_eq!(value(&mut a, &t, 1).await, Some(10));
        let mut b = db.begin(ReadCommitted);
        set(&mut b, &t, 1, 11).await.unwrap();
        b.commit().await.unwrap();
        let e = set(&mut a, &t, 1, 12).await.unwrap_err();
        assert_eq!((state(&e), &e.message[..]), ("40001", "could not serialize access due to concurrent update"));
        a.rollback().await.unwrap();

        let mut a = db.begin(RepeatableRead);
        assert_eq!(value(&mut a, &t, 1).await, Some(11));
        let mut b = db.begin(ReadCommitted);
        b.begin_statement();
        let (rid, _, version) = get(&mut b, &t, 1).await.unwrap();
        b.delete(&t, rid, version).await.unwrap();
        b.commit().await.unwrap();
        let e = set(&mut a, &t, 1, 12).await.unwrap_err();
        assert_eq!((state(&e), &e.message[..]), ("40001", "could not serialize access due to concurrent delete"));
        drop(a);
        clean(&db).await;
    });
}

#[test]
fn write_skew_is_allowed_at_repeatable_read() {
    simulate(5, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        put(&db, &t, 2, 20).await;
        let (mut a, mut b) = (db.begin(RepeatableRead), db.begin(RepeatableRead));
        assert_eq!(all(&mut a, &t, Scan::Full).await, vec![(1, 10), (2, 20)]);
        assert_eq!(all(&mut b, &t, Scan::Full).await, vec![(1, 10), (2, 20)]);
        set(&mut a, &t, 1, 11).await.unwrap();
        set(&mut b, &t, 2, 21).await.unwrap();
        a.commit().await.unwrap();
        b.commit().await.unwrap();
        assert_eq!(all(&mut db.begin(ReadCommitted), &t, Scan::Full).await, vec![(1, 11), (2, 21)]);
        clean(&db).await;
    });
}

#[test]
fn a_deadlock_has_one_victim_and_leaves_nothing() {
    for seed in 0..20 {
        simulate(seed, |env| async move {
            let db = database(&env).await;
            let t = table(&db, "t").await;
            for id in 0..3 {
                put(&db, &t, id, 0).await;
            }
            let sessions: Vec<_> = (0..3)
                .map(|i| {
                    let (env2, db, t) = (env.clone(), db.clone(), t.clone());
                    session(&env, async move {
                        let mut txn = db.begin(ReadCommitted);
                        set(&mut txn, &t, i, 1).await?;
                        rest(&env2).await;
                        set(&mut txn, &t, (i + 1) % 3, 2).await?;
                        txn.commit().await
                    })
                })
                .collect();
            env.sleep(Duration::from_secs(1)).await;
            let results: Vec<_> = sessions.iter().map(|s| s.lock().take().expect("nobody waits for ever")).collect();
            let victims: Vec<_> = results.iter().filter_map(|r| r.as_ref().err()).map(state).collect();
            assert_eq!(victims, vec!["40P01"]);
            db.0.settle().await;
            assert_eq!(db.0.locks.entries(), 0);
            clean(&db).await;
        });
    }
}

#[test]
fn a_cancelled_wait_and_a_timeout_leave_no_trace() {
    simulate(6, |env| async move {
        let config = EngineConfig { lock_timeout: Duration::from_secs(5), ..EngineConfig::default() };
        let db = crate::Database::create(env.clone(), devices(), storage(), config).await.unwrap();
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        let mut a = db.begin(ReadCommitted);
        set(&mut a, &t, 1, 11).await.unwrap();
        let mut b = db.begin(ReadCommitted);
        let mut c = db.begin(ReadCommitted);
        {
            // Both wait, one for the writer, one for its turn; then both are dropped.
            let waiting = std::pin::pin!(futures::future::join(set(&mut b, &t, 1, 12), set(&mut c, &t, 1, 13)));
            let either = futures::future::select(waiting, env.sleep(Duration::from_secs(1))).await;
            assert!(matches!(either, futures::future::Either::Right(_)));
        }
        let e = set(&mut b, &t, 1, 12).await.unwrap_err();
        assert_eq!(state(&e), "55P03");
        drop((b, c));
        a.commit().await.unwrap();
        db.0.settle().await;
        assert_eq!(db.0.locks.entries(), 0);
        clean(&db).await;
    });
}

#[test]
fn unique_keys() {
    simulate(7, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        let mut a = db.begin(ReadCommitted);
        let start = a.savepoint();
        let e = a.insert(&t, &row(1, 11)).await.unwrap_err();
        assert_eq!((state(&e), e.constraint.as_deref()), ("23505", Some("t_pkey")));
        assert_eq!(e.detail.as_deref(), Some("Key (id)=(1) already exists."));
        a.rollback_to(start).await.unwrap();
        // Delete and insert again in one transaction; another must wait for the outcome.
        let (rid, _, version) = get(&mut a, &t, 1).await.unwrap();
        a.delete(&t, rid, version).await.unwrap();
        let insert = |db: crate::Database, t: Arc<crate::Table>| async move {
            let mut txn = db.begin(ReadCommitted);
            txn.insert(&t, &row(1, 99)).await?;
            txn.commit().await
        };
        let waiting = session(&env, insert(db.clone(), t.clone()));
        rest(&env).await;
        assert!(waiting.lock().is_none(), "the deletion may be rolled back");
        a.insert(&t, &row(1, 12)).await.unwrap();
        a.commit().await.unwrap();
        rest(&env).await;
        assert_eq!(state(&waiting.lock().take().unwrap().unwrap_err()), "23505");
        let mut a = db.begin(ReadCommitted);
        assert_eq!(value(&mut a, &t, 1).await, Some(12));
        let (rid, _, version) = get(&mut a, &t, 1).await.unwrap();
        a.delete(&t, rid, version).await.unwrap();
        let waiting = session(&env, insert(db.clone(), t.clone()));
        rest(&env).await;
        a.commit().await.unwrap();
        rest(&env).await;
        waiting.lock().take().unwrap().unwrap();
        assert_eq!(value(&mut db.begin(ReadCommitted), &t, 1).await, Some(99));
        clean(&db).await;
    });
}

#[test]
fn of_many_who_insert_a_key_one_succeeds() {
    for seed in 0..20 {
        simulate(seed, |env| async move {
            let db = database(&env).await;
            let t = table(&db, "t").await;
            let sessions: Vec<_> = (0..8)
                .map(|i| {
                    let (db, t) = (db.clone(), t.clone());
                    session(&env, async move {
                        let mut txn = db.begin(ReadCommitted);
                        txn.insert(&t, &row(7, i)).await?;
                        if i == 3 { txn.rollback().await.map(|()| false) } else { txn.commit().await.map(|()| true) }
                    })
                })
                .collect();
            env.sleep(Duration::from_secs(1)).await;
            let results: Vec<_> = sessions.iter().map(|s| s.lock().take().expect("done")).collect();
            assert_eq!(results.iter().filter(|r| matches!(r, Ok(true))).count(), 1);
            assert!(results.iter().filter_map(|r| r.as_ref().err()).all(|e| state(e) == "23505"));
            assert_eq!(all(&mut db.begin(ReadCommitted), &t, Scan::Full).await.len(), 1);
            db.purge().await.unwrap();
            clean(&db).await;
        });
    }
}

#[test]
fn rollback_and_savepoints_restore_rows_long_and_short() {
    simulate(8, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        let long = |id: i32, n: usize| vec![Datum::Int4(id), Datum::Int4(n as i32), Datum::text("x".repeat(n))];
        for id in 0..20 {
            put(&db, &t, id, id).await;
        }
        let mut before = db.begin(ReadCommitted);
        let rows = all(&mut before, &t, Scan::Full).await;
        drop(before);
        let mut a = db.begin(ReadCommitted);
        let start = a.savepoint();
        for n in [10, 100, 1000, 5000, 20_000, 50] {
            for id in 0..20 {
                a.begin_statement();
                let (rid, _, version) = get(&mut a, &t, id).await.unwrap();
                assert!(matches!(a.update(&t, rid, version, &long(id, n)).await.unwrap(), UpdateOutcome::Done));
            }
        }
        let middle = a.savepoint();
        for id in 0..20 {
            a.begin_statement();
            let (rid, v, version) = get(&mut a, &t, id).await.unwrap();
            assert_eq!(v, 50);
            a.delete(&t, rid, version).await.unwrap();
            a.insert(&t, &long(id + 100, 9000)).await.unwrap();
        }
        a.rollback_to(middle).await.unwrap();
        assert_eq!(all(&mut a, &t, Scan::Full).await.len(), 20);
        assert_eq!(value(&mut a, &t, 105).await, None);
        a.rollback_to(start).await.unwrap();
        assert_eq!(all(&mut a, &t, Scan::Full).await, rows);
        a.insert(&t, &long(55, 30_000)).await.unwrap();
        drop(a);
        db.purge().await.unwrap();
        assert_eq!(all(&mut db.begin(ReadCommitted), &t, Scan::Full).await, rows);
        assert_eq!(db.stats().histories, 0);
        clean(&db).await;
    });
}

#[test]
fn keys_go_back_and_forth_under_purge() {
    simulate(9, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 1).await;
        let mut old = db.begin(RepeatableRead);
        assert_eq!(value(&mut old, &t, 1).await, Some(1));
        for round in 0..30 {
            let (from, to) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
            let mut a = db.begin(ReadCommitted);
            a.begin_statement();
            let (rid, v, version) = get(&mut a, &t, from).await.unwrap();
            a.update(&t, rid, version, &row(to, v + 1)).await.unwrap();
            if round % 5 == 4 {
                a.rollback().await.unwrap();
                let mut again = db.begin(ReadCommitted);
                again.begin_statement();
                let (rid, v, version) = get(&mut again, &t, from).await.unwrap();
                again.update(&t, rid, version, &row(to, v + 1)).await.unwrap();
                again.commit().await.unwrap();
            } else {
                a.commit().await.unwrap();
            }
            assert_eq!(value(&mut old, &t, 1).await, Some(1));
            assert_eq!(value(&mut old, &t, 2).await, None);
            if round == 15 {
                old.rollback().await.unwrap();
                old = db.begin(RepeatableRead);
                assert_eq!(value(&mut old, &t, 1).await, Some(17), "as of now");
                break;
            }
            db.purge().await.unwrap();
        }
        drop(old);
        db.purge().await.unwrap();
        assert_eq!(db.stats().histories, 0);
        let mut txn = db.begin(ReadCommitted);
        assert_eq!(all(&mut txn, &t, Scan::Full).await, vec![(1, 17)]);
        drop(txn);
        clean(&db).await;
    });
}

#[test]
fn dropping_a_commit_half_way_finishes_it() {
    simulate(10, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        let mut a = db.begin(ReadCommitted);
        a.insert(&t, &row(1, 1)).await.unwrap();
        {
            let commit = std::pin::pin!(a.commit());
            // One poll appends the batch and waits for the log.
            let either = futures::future::select(commit, std::future::ready(())).await;
            assert!(matches!(either, futures::future::Either::Right(_)), "the log takes its time");
        }
        env.sleep(Duration::from_secs(1)).await;
        assert_eq!(value(&mut db.begin(ReadCommitted), &t, 1).await, Some(1));
        assert_eq!(db.stats().transactions.active, 0);
        clean(&db).await;
    });
}

#[test]
fn an_index_made_after_rows_of_its_transaction_is_undone_before_them() {
    simulate(31, |env| async move {
        // Few frames: undoing rows waits for reads, and others take the pages that the index has given back.
        let storage = StorageConfig { pool_bytes: 1 << 20, ..storage() };
        let db = Database::create(env.clone(), devices(), storage, EngineConfig::default()).await.unwrap();
        let (t, u) = (table(&db, "t").await, table(&db, "u").await);
        let long = |id: i32| vec![Datum::Int4(id), Datum::Int4(id), Datum::text("x".repeat(1000))];
        let mut txn = db.begin(ReadCommitted);
        txn.begin_statement();
        for id in 0..1500 {
            txn.insert(&t, &long(id)).await.unwrap();
        }
        let spec = IndexSpec { name: "t_v".into(), columns: vec![1], unique: false, primary: false, extras: None };
        txn.create_index(&t, spec).await.unwrap();
        let (db2, u2) = (db.clone(), u.clone());
        let others = session(&env, async move {
            for id in 0..150 {
                let mut txn = db2.begin(ReadCommitted);
                txn.begin_statement();
                for i in 0..10 {
                    txn.insert(&u2, &long(10 * id + i)).await.unwrap();
                }
                txn.commit().await.unwrap();
            }
        });
        txn.rollback().await.unwrap();
        while others.lock().is_none() {
            rest(&env).await;
        }
        let mut txn = db.begin(ReadCommitted);
        assert_eq!(all(&mut txn, &t, Scan::Full).await, vec![]);
        assert_eq!(all(&mut txn, &u, Scan::Full).await.len(), 1500);
        drop(txn);
        clean(&db).await;
    });
}

#[test]
fn a_reader_passes_long_versions_that_are_undone_under_it() {
    simulate(32, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        let rid = put(&db, &t, 1, 10).await;
        let mut writer = db.begin(ReadCommitted);
        for v in 11..14 {
            writer.begin_statement();
            let (rid, _, version) = get(&mut writer, &t, 1).await.unwrap();
            let long = vec![Datum::Int4(1), Datum::Int4(v), Datum::text("x".repeat(9000))];
            assert!(matches!(writer.update(&t, rid, version, &long).await.unwrap(), UpdateOutcome::Done));
        }
        let snapshot = db.0.active.snapshot(env.now());
        let reader = Reader { snapshot, own: terrace_storage::TxnId::NONE, serial: None };
        let copied = db.0.stored(rid).await.unwrap().unwrap();
        writer.rollback().await.unwrap();
        let seen = db.0.visible(&reader, t.oid, rid, copied).await.unwrap().unwrap();
        assert_eq!(int(&seen.into_row().0, &t, 1), 10);
    });
}
