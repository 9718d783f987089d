//! Rollback on devices that fail.
use crate::testing::*;
use crate::txn::{Isolation, LockWait, RowLock, Scan};
use crate::{Database, Datum, EngineConfig};
use std::time::Duration;
use terrace_device::fault::{Fault, Operation, Rule};
use terrace_device::{ErrorKind, Purpose};
use terrace_env::Env;

/// Many pages changed, in a pool of few; reading fails `times` times from the first read of the rollback on.
async fn roll_back_with_failures(env: &Env, times: u64) -> (Database, Vec<(i32, i32)>) {
    let (devices, data) = faulty();
    let mut config = storage();
    config.pool_bytes = 32 * 4096;
    let db = Database::create(env.clone(), devices, config, EngineConfig::default()).await.unwrap();
    let t = table(&db, "t").await;
    let wide = |id: i32, v: i32| vec![Datum::Int4(id), Datum::Int4(v), Datum::text("wide ".repeat(200))];
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..300 {
        txn.insert(&t, &wide(id, id)).await.unwrap();
    }
    txn.commit().await.unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..300 {
        txn.begin_statement();
        let (rid, _, version) = get(&mut txn, &t, id).await.unwrap();
        txn.update(&t, rid, version, &wide(id, -1)).await.unwrap();
    }
    let fault = Fault::Fail(ErrorKind::Io("a cable is loose".into()));
    data.inject(Rule { operation: Operation::Read, purpose: Some(Purpose::Data), skip: 5, times, fault });
    let e = txn.rollback().await.unwrap_err();
    assert!(e.state.0 == "58030" && e.message.contains("a cable is loose"), "{e}");
    assert!(db.failure().is_none(), "it goes on in the background");
    env.sleep(Duration::from_secs(60)).await;
    data.clear_rules();
    let mut txn = db.begin(Isolation::ReadCommitted);
    let rows = all(&mut txn, &t, Scan::Full).await;
    (db, rows)
}

#[test]
fn a_rollback_goes_on_after_a_device_has_failed_for_a_moment() {
    simulate(1, |env| async move {
        let (db, mut rows) = roll_back_with_failures(&env, 4).await;
        rows.sort_unstable();
        assert_eq!(rows, (0..300).map(|id| (id, id)).collect::<Vec<_>>());
        assert!(db.failure().is_none() && db.transactions().is_empty());
        clean(&db).await;
        db.close().await.unwrap();
    });
}

#[test]
fn a_rollback_that_cannot_end_stops_the_database_and_shows_nothing_of_its_changes() {
    simulate(2, |env| async move {
        let (db, rows) = roll_back_with_failures(&env, 1000).await;
        assert!(rows.len() == 300 && rows.iter().all(|(id, v)| id == v), "its changes stay invisible");
        assert!(db.failure().is_some());
        let t = db.catalog().table("t").cloned().unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        let e = txn.insert(&t, &row(1000, 1)).await.unwrap_err();
        assert!(e.state.0 == "58030" && e.message.contains("could not be rolled back"), "{e}");
        // Nobody will end the transaction that this one would wait for.
        let mut txn = db.begin(Isolation::ReadCommitted);
        txn.begin_statement();
        let (rid, _, version) = get(&mut txn, &t, 7).await.unwrap();
        let e = txn.lock_row(&t, rid, version, RowLock::Exclusive, LockWait::Wait).await.unwrap_err();
        assert!(e.state.0 == "58030", "{e}");
    });
}
