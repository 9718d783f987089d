//! What holds purge up, and what does not.
use crate::catalog::{ColumnDef, IndexSpec, Table};
use crate::testing::*;
use crate::txn::{Isolation, Txn, UpdateOutcome};
use crate::types::DataType;
use crate::{Database, Datum, EngineConfig};
use std::time::Duration;
use terrace_device::fault::{Fault, Operation, Rule};
use terrace_device::{ErrorKind, Purpose};

#[test]
fn purge_goes_on_after_a_device_has_failed_for_a_while() {
    simulate(1, |env| async move {
        let (devices, data) = faulty();
        let mut config = storage();
        config.pool_bytes = 32 * 4096;
        let db = Database::create(env.clone(), devices, config, EngineConfig::default()).await.unwrap();
        let t = table(&db, "t").await;
        for id in 0..600 {
            let mut txn = db.begin(Isolation::ReadCommitted);
            let wide = [Datum::Int4(id), Datum::Int4(id), Datum::text("wide ".repeat(200))];
            txn.insert(&t, &wide).await.unwrap();
            txn.commit().await.unwrap();
        }
        let reader = {
            let mut reader = db.begin(Isolation::RepeatableRead);
            reader.begin_statement();
            reader
        };
        for id in 0..600 {
            let mut txn = db.begin(Isolation::ReadCommitted);
            txn.begin_statement();
            let (rid, _, version) = get(&mut txn, &t, id).await.unwrap();
            assert!(matches!(txn.delete(&t, rid, version).await.unwrap(), UpdateOutcome::Done));
            txn.commit().await.unwrap();
        }
        let fault = Fault::Fail(ErrorKind::Io("a cable is loose".into()));
        data.inject(Rule { operation: Operation::Read, purpose: Some(Purpose::Data), skip: 3, times: 5, fault });
        drop(reader);
        env.sleep(Duration::from_secs(60)).await;
        let failures = db.0.purge_failures.lock().clone();
        assert!(failures.count > 0, "the device failed");
        assert!(failures.last.is_some_and(|(_, why)| why.contains("a cable is loose")));
        assert_eq!(db.stats().histories, 0, "and works again");
        assert!(db.failure().is_none());
        clean(&db).await;
    });
}

#[test]
fn an_idle_read_committed_transaction_does_not_hold_purge_up() {
    simulate(2, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 0).await;
        let mut idle = db.begin(Isolation::ReadCommitted);
        assert_eq!(value(&mut idle, &t, 1).await, Some(0));
        let update = async |to| {
            let mut txn = db.begin(Isolation::ReadCommitted);
            assert!(matches!(set(&mut txn, &t, 1, to).await.unwrap(), UpdateOutcome::Done));
            txn.commit().await.unwrap();
        };
        update(1).await;
        db.purge().await.unwrap();
        assert!(db.stats().histories > 0, "its statement may still read");
        idle.end_statement();
        db.purge().await.unwrap();
        assert_eq!((db.stats().histories, db.stats().transactions.snapshots), (0, 0));
        assert_eq!(value(&mut idle, &t, 1).await, Some(1), "the next statement has its own snapshot");

        // A repeatable read keeps its snapshot between statements.
        let mut idle = db.begin(Isolation::RepeatableRead);
        assert_eq!(value(&mut idle, &t, 1).await, Some(1));
        idle.end_statement();
        update(2).await;
        db.purge().await.unwrap();
        assert!(db.stats().histories > 0);
        assert_eq!(value(&mut idle, &t, 1).await, Some(1));
    });
}

/// A transaction adds a column and writes a row with it; purge of what the row was before meets that version.
#[test]
fn purge_reads_rows_of_a_definition_that_is_not_committed() {
    for end in 0..3 {
        simulate(7, |env| async move {
            let db = database(&env).await;
            let (t, other) = (table(&db, "t").await, table(&db, "other").await);
            put(&db, &t, 1, 0).await;
            put(&db, &other, 1, 0).await;
            let mut ddl = db.begin(Isolation::ReadCommitted);
            let by_text =
                IndexSpec { name: "by_text".into(), columns: vec![2], unique: false, primary: false, extras: None };
            let t = ddl.create_index(&t, by_text).await.unwrap();
            ddl.commit().await.unwrap();
            let mut reader = db.begin(Isolation::RepeatableRead);
            assert_eq!(value(&mut reader, &other, 1).await, Some(0));
            // Its key changes, which purge is to look after.
            let update = async |txn: &mut Txn, t: &Table, more: &[Datum], text: &str| {
                txn.begin_statement();
                let (rid, _, version) = get(txn, t, 1).await.unwrap();
                let row = [&[Datum::Int4(1), Datum::Int4(0), Datum::text(text)], more].concat();
                assert!(matches!(txn.update(t, rid, version, &row).await.unwrap(), UpdateOutcome::Done));
            };
            let mut first = db.begin(Isolation::ReadCommitted);
            update(&mut first, &t, &[], "another").await;
            first.commit().await.unwrap();
            let mut alters = db.begin(Isolation::ReadCommitted);
            alters.begin_statement();
            let wider = alters.add_column(&t, ColumnDef::new("more", DataType::Text)).await.unwrap();
            update(&mut alters, &wider, &[Datum::text("more")], "a third").await;
            reader.rollback().await.unwrap();
            if end == 2 {
                // Purge has read the row and waits while all of it is undone.
                db.0.purge_wanted.notify_one();
            } else {
                db.purge().await.unwrap();
                assert_eq!(db.stats().histories, 0, "the first one's");
            }
            match end {
                0 => alters.commit().await.unwrap(),
                _ => alters.rollback().await.unwrap(),
            }
            db.purge().await.unwrap();
            assert!(db.failure().is_none() && db.0.redefined.lock().is_empty());
            clean(&db).await;
        });
    }
}
