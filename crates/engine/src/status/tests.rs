use super::*;
use crate::testing::*;
use crate::txn::{LockWait, RowLock};
use Isolation::{ReadCommitted, RepeatableRead};

#[test]
fn transactions_show_what_they_are_and_whom_they_wait_for() {
    simulate(1, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        for id in [1, 2] {
            put(&db, &t, id, id).await;
        }
        assert_eq!(db.transactions(), vec![]);
        let mut a = db.begin(RepeatableRead);
        env.sleep(Duration::from_secs(3)).await;
        set(&mut a, &t, 1, 11).await.unwrap();
        a.begin_statement();
        let (rid, _, version) = get(&mut a, &t, 2).await.unwrap();
        a.lock_row(&t, rid, version, RowLock::Exclusive, LockWait::Wait).await.unwrap();
        let numbers = Arc::new(Mutex::new(Vec::new()));
        for id in [1, 2] {
            let (db, t, numbers) = (db.clone(), t.clone(), numbers.clone());
            env.spawn("session", async move {
                let mut b = db.begin(ReadCommitted);
                numbers.lock().push(b.number());
                set(&mut b, &t, id, 12).await.unwrap();
                b.commit().await.unwrap();
            });
            env.sleep(Duration::from_secs(2)).await;
        }
        let all = db.transactions();
        let [b, c] = [0, 1].map(|i| numbers.lock()[i]);
        assert_eq!(all.iter().map(|s| s.number).collect::<Vec<_>>(), vec![a.number(), b, c]);
        assert_eq!((all[0].isolation, all[0].stage, all[0].waiting.clone()), (Some(RepeatableRead), Stage::Open, None));
        assert_eq!(all[0].age.as_secs(), 7);
        assert!(all[0].id.is_some_and(|id| all[1].id.is_some_and(|later| id < later)));
        let wait = all[1].waiting.clone().expect("waits for the writer");
        assert_eq!(wait.target, LockTarget::Transaction(a.number()));
        assert_eq!((wait.since.as_secs(), wait.blocked_by), (4, vec![a.number()]));
        let wait = all[2].waiting.clone().expect("waits for the locker");
        assert_eq!(wait.target, LockTarget::Row(t.oid, rid));
        assert_eq!((wait.mode, wait.since.as_secs()), (Some(LockMode::ShareRowExclusive), 2));
        assert_eq!(wait.blocked_by, vec![a.number()]);
        assert_eq!(wait.target.table_name(&db.catalog()), Some("t"));

        let locks = db.locks();
        let lock = |target, mode, transaction, granted| LockStatus { target, mode, transaction, granted };
        for number in [a.number(), b, c] {
            assert!(locks.contains(&lock(LockTarget::Table(t.oid), LockMode::RowExclusive, number, true)));
        }
        let row = LockTarget::Row(t.oid, rid);
        assert!(locks.contains(&lock(row, LockMode::AccessExclusive, a.number(), true)));
        assert!(locks.contains(&lock(row, LockMode::ShareRowExclusive, c, false)));

        a.commit().await.unwrap();
        env.sleep(Duration::from_secs(1)).await;
        assert_eq!((db.transactions(), db.locks()), (vec![], vec![]));
    });
}

#[test]
fn the_numbers_of_log_undo_and_pool_move() {
    simulate(2, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        let mut old = db.begin(RepeatableRead);
        old.begin_statement();
        let (log, checkpoints) = (db.log_status(), db.checkpoint_status());
        for id in 0..500 {
            put(&db, &t, id, id).await;
        }
        let now = db.log_status();
        assert!(now.end > log.end && now.durable >= log.end && now.redo_lsn <= now.end && now.segments > 0);
        assert!(now.capacity_segments as usize >= now.segments + now.free_segments, "{now:?}");
        env.sleep(Duration::from_secs(30)).await;
        assert!(db.checkpoint_status().count > checkpoints.count && db.checkpoint_status().last > checkpoints.last);
        let undo = db.undo_status();
        assert!(undo.bytes > 0 && undo.limit > undo.bytes && undo.histories > 0 && undo.snapshots == 1, "{undo:?}");
        assert_eq!(undo.oldest_snapshot.as_secs(), 30);
        let pool = db.pool_status();
        assert!(pool.resident > 0 && pool.resident <= pool.capacity && pool.counters.hits > 500, "{pool:?}");
        drop(old);
        db.purge().await.unwrap();
        assert_eq!((db.undo_status().histories, db.undo_status().oldest_snapshot), (0, Duration::ZERO));
    });
}
