//! Who has advisory locks, and how their waits meet those for rows.
use super::*;
use crate::Isolation::ReadCommitted;
use crate::status::LockTarget;
use crate::testing::{Slot, database, put, row, session, set, simulate, table};
use crate::{Database, Txn};
use terrace_env::Env;

fn one(key: i64) -> AdvisoryLock {
    AdvisoryLock { key: AdvisoryKey::One(key), shared: false }
}

fn shared(key: i64) -> AdvisoryLock {
    AdvisoryLock { shared: true, ..one(key) }
}

fn begin(db: &Database, of: &Arc<Advisory>) -> Txn {
    db.begin(ReadCommitted).of_session(of)
}

/// Asks as `of` in the background.
fn asks(env: &Env, of: &Arc<Advisory>, lock: AdvisoryLock) -> Slot<Result<()>> {
    let of = of.clone();
    session(env, async move { of.lock(lock, Holder::Session).await })
}

async fn pause(env: &Env) {
    env.sleep(Duration::from_millis(5)).await;
}

#[test]
fn a_session_counts_its_locks_and_has_each_mode_by_itself() {
    simulate(1, |env| async move {
        let db = database(&env).await;
        let [a, b] = [(), ()].map(|()| db.advisory());
        for _ in 0..2 {
            a.lock(one(1), Holder::Session).await.unwrap();
        }
        a.lock(shared(1), Holder::Session).await.unwrap();
        assert!(!b.try_lock(one(1), Holder::Session).unwrap());
        assert!(b.try_lock(one(2), Holder::Session).unwrap());
        let two = AdvisoryLock { key: AdvisoryKey::Two(0, 1), shared: false };
        assert!(b.try_lock(two, Holder::Session).unwrap(), "the forms do not meet");
        assert_eq!([a.unlock(one(1)), b.try_lock(shared(1), Holder::Session).unwrap()], [true, false]);
        assert_eq!([a.unlock(one(1)), b.try_lock(shared(1), Holder::Session).unwrap()], [true, true]);
        assert!(!a.unlock(one(1)), "it has it no more");
        assert!(!b.try_lock(one(1), Holder::Session).unwrap(), "the shared one of `a` stays");
        let waiting = asks(&env, &b, one(1));
        pause(&env).await;
        assert!(waiting.lock().is_none());
        a.unlock_all();
        pause(&env).await;
        assert!(waiting.lock().take().is_some_and(|r| r.is_ok()));
        drop(b);
        drop(waiting);
        assert_eq!(db.0.locks.entries(), 0, "what a session has goes with it");
    });
}

#[test]
fn a_transactions_locks_go_at_its_end_and_at_savepoints() {
    simulate(2, |env| async move {
        let db = database(&env).await;
        let [a, b] = [(), ()].map(|()| db.advisory());
        let e = a.lock(one(1), Holder::Transaction).await.unwrap_err();
        assert_eq!(e.state.0, "XX000", "there is none");
        let mut txn = begin(&db, &a);
        a.lock(one(1), Holder::Transaction).await.unwrap();
        a.lock(one(1), Holder::Session).await.unwrap();
        let mark = txn.savepoint();
        for _ in 0..2 {
            a.lock(one(1), Holder::Transaction).await.unwrap();
            a.lock(one(2), Holder::Transaction).await.unwrap();
        }
        a.lock(one(3), Holder::Session).await.unwrap();
        let free = |key: i64| {
            let free = b.try_lock(one(key), Holder::Session).unwrap();
            b.unlock_all();
            free
        };
        assert_eq!([free(1), free(2), free(3)], [false; 3]);
        txn.rollback_to(mark).await.unwrap();
        assert_eq!([free(1), free(2), free(3)], [false, true, false], "the session's stay");
        assert!(!a.unlock(one(2)) && a.unlock(one(1)) && !a.unlock(one(1)));
        assert!(!free(1), "a transaction's lock is not given up by hand");
        txn.rollback().await.unwrap();
        assert_eq!([free(1), free(3)], [true, false]);
        let txn = begin(&db, &a);
        a.lock(one(1), Holder::Transaction).await.unwrap();
        txn.commit().await.unwrap();
        // Dropped: the changes are undone in the background, the lock is free at once.
        let t = table(&db, "t").await;
        let mut txn = begin(&db, &a);
        txn.insert(&t, &row(1, 1)).await.unwrap();
        a.lock(one(1), Holder::Transaction).await.unwrap();
        drop(txn);
        assert!(free(1));
        let _next = begin(&db, &a);
        env.sleep(Duration::from_secs(1)).await;
        a.lock(one(1), Holder::Transaction).await.unwrap();
    });
}

/// A commit holds its locks until others see it.
#[test]
fn a_commits_locks_are_released_when_it_is_visible() {
    simulate(3, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        let [a, b] = [(), ()].map(|()| db.advisory());
        let mut txn = begin(&db, &a);
        txn.insert(&t, &row(1, 7)).await.unwrap();
        a.lock(one(1), Holder::Transaction).await.unwrap();
        let (db2, t2) = (db.clone(), t.clone());
        let seen = session(&env, async move {
            b.lock(one(1), Holder::Session).await.unwrap();
            crate::testing::value(&mut db2.begin(ReadCommitted), &t2, 1).await
        });
        pause(&env).await;
        assert!(seen.lock().is_none());
        txn.commit().await.unwrap();
        pause(&env).await;
        assert_eq!(*seen.lock(), Some(Some(7)));
    });
}

#[test]
fn a_cycle_through_a_row_and_an_advisory_lock_is_a_deadlock() {
    simulate(4, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 1).await;
        let [a, b] = [(), ()].map(|()| db.advisory());
        // Taken in an earlier transaction: the edge is the session's.
        let earlier = begin(&db, &a);
        a.lock(one(1), Holder::Session).await.unwrap();
        earlier.commit().await.unwrap();
        let mut second = begin(&db, &b);
        set(&mut second, &t, 1, 2).await.unwrap();
        let waiting = asks(&env, &b, one(1));
        pause(&env).await;
        let number = second.number();
        let waits = |db: &Database| db.transactions().into_iter().find(|t| t.number == number).unwrap().waiting;
        let wait = waits(&db).expect("it waits as its transaction");
        assert_eq!((wait.target, wait.blocked_by), (LockTarget::Advisory(AdvisoryKey::One(1)), vec![a.number()]));
        let mut first = begin(&db, &a);
        assert_eq!(waits(&db).unwrap().blocked_by, vec![first.number()]);
        let e = set(&mut first, &t, 1, 3).await.unwrap_err();
        assert_eq!(e.state.0, "40P01");
        first.rollback().await.unwrap();
        assert!(waiting.lock().is_none(), "the session has its lock still");
        a.unlock_all();
        pause(&env).await;
        assert!(waiting.lock().take().is_some_and(|r| r.is_ok()));
        second.commit().await.unwrap();
        drop(b);
        assert!(db.locks().is_empty());
    });
}

/// The same, where the one who waits for the advisory lock closes the cycle.
#[test]
fn who_asks_for_an_advisory_lock_last_is_the_victim() {
    simulate(5, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 1).await;
        let [a, b] = [(), ()].map(|()| db.advisory());
        let mut first = begin(&db, &a);
        a.lock(one(1), Holder::Transaction).await.unwrap();
        let mut second = begin(&db, &b);
        set(&mut second, &t, 1, 2).await.unwrap();
        let updating = session(&env, async move { set(&mut first, &t, 1, 3).await.map(drop) });
        pause(&env).await;
        assert_eq!(b.lock(one(1), Holder::Transaction).await.unwrap_err().state.0, "40P01");
        second.rollback().await.unwrap();
        pause(&env).await;
        assert!(updating.lock().take().is_some_and(|r| r.is_ok()));
    });
}

#[test]
fn a_wait_ends_by_its_timeout_and_leaves_nothing() {
    simulate(6, |env| async move {
        let db = database(&env).await;
        let [a, b] = [(), ()].map(|()| db.advisory());
        a.lock(one(1), Holder::Session).await.unwrap();
        let mut txn = begin(&db, &b);
        txn.set_lock_timeout(Some(Duration::from_secs(1)));
        assert_eq!(b.lock(one(1), Holder::Session).await.unwrap_err().state.0, "55P03");
        drop(txn);
        a.unlock_all();
        assert_eq!(db.0.locks.entries(), 0);
        for key in 0..1 << 6 {
            a.lock(one(key), Holder::Session).await.unwrap();
        }
        assert_eq!(a.try_lock(one(-1), Holder::Session).unwrap_err().state.0, "53200");
        a.lock(one(3), Holder::Session).await.unwrap();
        a.unlock_all();
        assert_eq!(db.0.locks.entries(), 0);
    });
}
