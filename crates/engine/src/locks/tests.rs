//! Modes and queues.
use super::*;
use crate::testing::simulate;
use LockMode::*;

const KEY: LockKey = LockKey::Table(ObjectId(20));

#[test]
fn modes_conflict_as_documented() {
    let modes = [AccessShare, RowExclusive, Share, AccessExclusive];
    let conflicts = |a: LockMode| modes.map(|b| a.conflicts(b));
    assert_eq!(conflicts(AccessShare), [false, false, false, true]);
    assert_eq!(conflicts(RowExclusive), [false, false, true, true]);
    assert_eq!(conflicts(Share), [false, true, false, true]);
    assert_eq!(conflicts(AccessExclusive), [true; 4]);
}

#[test]
fn the_queue_is_fair_and_an_upgrade_goes_first() {
    simulate(1, |env| async move {
        let locks = Arc::new(Locks::new(None));
        let order = Arc::new(Mutex::new(Vec::new()));
        let [a, b, c] = [1, 2, 3].map(Owner);
        locks.acquire(&env, a, KEY, AccessShare, Duration::ZERO).await.unwrap();
        for (owner, mode) in [(b, AccessExclusive), (c, AccessShare)] {
            let (locks, order, env2) = (locks.clone(), order.clone(), env.clone());
            env.spawn("locker", async move {
                locks.acquire(&env2, owner, KEY, mode, Duration::ZERO).await.unwrap();
                order.lock().push(owner);
                env2.sleep(Duration::from_secs(1)).await;
                locks.release(owner, KEY, mode);
            });
            env.sleep(Duration::from_millis(1)).await;
        }
        assert!(order.lock().is_empty(), "readers do not overtake the writer that waits");
        locks.acquire(&env, a, KEY, RowExclusive, Duration::ZERO).await.unwrap();
        locks.release_all(a, &[(KEY, AccessShare), (KEY, RowExclusive)]);
        env.sleep(Duration::from_secs(3)).await;
        assert_eq!(*order.lock(), vec![b, c]);
        // `b` waited for 2 ms, `c` for 1 ms less and the second of `b`'s.
        let waited = locks.waited().as_millis();
        assert!((1000..1010).contains(&waited), "{waited} ms");
        assert_eq!(locks.entries(), 0);
    });
}

#[test]
fn two_upgrades_of_shared_locks_are_a_deadlock() {
    simulate(2, |env| async move {
        let locks = Arc::new(Locks::new(None));
        let [a, b] = [1, 2].map(Owner);
        for owner in [a, b] {
            locks.acquire(&env, owner, KEY, AccessShare, Duration::ZERO).await.unwrap();
        }
        let (locks2, env2) = (locks.clone(), env.clone());
        env.spawn("locker", async move {
            locks2.acquire(&env2, a, KEY, AccessExclusive, Duration::ZERO).await.unwrap();
            locks2.release_all(a, &[(KEY, AccessShare), (KEY, AccessExclusive)]);
        });
        env.sleep(Duration::from_millis(1)).await;
        let e = locks.acquire(&env, b, KEY, AccessExclusive, Duration::ZERO).await.unwrap_err();
        assert_eq!(e.state.0, "40P01");
        locks.release_all(b, &[(KEY, AccessShare)]);
        env.sleep(Duration::from_millis(1)).await;
        assert_eq!(locks.entries(), 0);
    });
}

#[test]
fn nobody_waits_for_a_waiter_that_does_not_conflict() {
    simulate(3, |env| async move {
        let locks = Arc::new(Locks::new(None));
        let [holder, writer, reader] = [1, 2, 3].map(Owner);
        locks.acquire(&env, holder, KEY, Share, Duration::ZERO).await.unwrap();
        let (locks2, env2) = (locks.clone(), env.clone());
        env.spawn("writer", async move {
            locks2.acquire(&env2, writer, KEY, RowExclusive, Duration::ZERO).await.unwrap();
            locks2.release(writer, KEY, RowExclusive);
        });
        env.sleep(Duration::from_millis(1)).await;
        // Behind the writer it would wait without an edge to anybody: a cycle through it would never be found.
        locks.acquire(&env, reader, KEY, AccessShare, Duration::from_secs(1)).await.unwrap();
        locks.release(reader, KEY, AccessShare);
        locks.release(holder, KEY, Share);
        env.sleep(Duration::from_millis(1)).await;
        assert_eq!(locks.entries(), 0);
    });
}

/// What stops the database wakes everybody once: who comes to wait afterwards must not.
#[test]
fn nobody_begins_to_wait_for_who_will_wake_nobody() {
    simulate(4, |env| async move {
        let locks = Locks::new(None);
        let holder = TxnState::new(TxnId(1), Owner(1));
        let began = env.now();
        let stopped = || Err(EngineError::new("58030", "it has stopped"));
        let waited = locks.wait_for(&env, Owner(2), &holder, Duration::from_secs(1), stopped).await;
        assert_eq!(waited.unwrap_err().state.0, "58030");
        assert_eq!((locks.entries(), env.now()), (0, began), "at once");
    });
}
