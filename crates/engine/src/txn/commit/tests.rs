//! Leaving under real threads: what purge may see of it.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this test is about real threads")]
use super::{Commit, Durability};
use crate::testing::*;
use crate::txn::Isolation::ReadCommitted;
use std::sync::mpsc;
use std::time::Duration;
use terrace_env::Real;

/// A transaction that has left the active ones while its history is still to come: purge would take the next of its
/// segment first, and could never take this one.
#[test]
fn s3_leaving_and_handing_the_history_over_are_one_step_for_purge() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let env = Real::on(runtime.handle().clone());
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 0).await;
        put(&db, &t, 2, 0).await;
        db.purge().await.unwrap();
        let mut first = db.begin(ReadCommitted);
        set(&mut first, &t, 1, 1).await.unwrap();
        // Its record is in the log and its segment is free. It does not know yet that the record is durable.
        let mut ended = Commit::new(first.end_reads_as_committed(), Durability::Waited);
        let permit = ended.reserve_log_space().await.unwrap();
        ended.write_record(permit);
        let mut second = db.begin(ReadCommitted);
        set(&mut second, &t, 2, 1).await.unwrap();
        second.commit().await.unwrap();
        let waiting: Vec<_> = db.0.histories.lock().iter().collect();
        let of_first = ended.record().unwrap().history.clone();
        assert_eq!(waiting.iter().map(|h| h.slot).collect::<Vec<_>>(), vec![of_first.slot], "the same segment");
        assert!(of_first.seq < waiting[0].seq);

        let (purging, handle) = (db.clone(), runtime.handle().clone());
        *db.0.while_leaving.lock() = Some(Box::new(move || {
            let (done, purged) = mpsc::channel();
            std::thread::spawn(move || done.send(handle.block_on(purging.purge())));
            // It does all it can. (Where it has to wait, for this transaction, so long is enough.)
            let _ = purged.recv_timeout(Duration::from_millis(300));
        }));
        ended.run().await.unwrap();
        db.purge().await.unwrap();
        assert_eq!(db.stats().histories, 0);
        clean(&db).await;
        db.close().await.unwrap();
    });
}
