use super::*;
use crate::testing::{database, get, row, simulate, table};
use crate::txn::{Isolation, Scan};

#[test]
fn tallies_of_many_objects_add_up() {
    let usage = Arc::new(Usage::default());
    for _ in 0..2 {
        let mut tally = Tally::new(usage.clone());
        for object in 1..=6 {
            tally.scanned(ObjectId(object), u64::from(object));
            tally.count(ObjectId(object)).inserted += 1;
        }
        tally.scanned(ObjectId(6), 1);
    }
    assert_eq!(usage.of(ObjectId(2)), Counts { scans: 2, rows: 4, inserted: 2, ..Counts::default() });
    assert_eq!(usage.of(ObjectId(6)), Counts { scans: 4, rows: 14, inserted: 2, ..Counts::default() });
    usage.retain(&crate::Catalog::default());
    assert_eq!(usage.of(ObjectId(6)), Counts::default());
}

#[test]
fn work_on_a_table_is_counted_when_its_transaction_ends() {
    simulate(1, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        let before = db.ended();
        let mut txn = db.begin(Isolation::ReadCommitted);
        for id in 0..5 {
            txn.insert(&t, &row(id, 1)).await.unwrap();
        }
        assert_eq!(db.usage(t.oid), Counts::default(), "it has not ended");
        txn.commit().await.unwrap();

        let mut txn = db.begin(Isolation::ReadCommitted);
        let (rid, _, version) = get(&mut txn, &t, 3).await.unwrap();
        txn.update(&t, rid, version, &row(3, 2)).await.unwrap();
        let (rid, _, version) = get(&mut txn, &t, 4).await.unwrap();
        txn.delete(&t, rid, version).await.unwrap();
        assert_eq!(txn.scan(&t, Scan::Full).next_batch(10).await.unwrap().len(), 4);
        txn.rollback().await.unwrap();

        let counts = Counts { scans: 1, rows: 4, inserted: 5, updated: 1, deleted: 1 };
        assert_eq!(db.usage(t.oid), counts);
        assert_eq!(db.usage(t.indexes[0].oid), Counts { scans: 2, rows: 2, ..Counts::default() });
        let ended = db.ended();
        assert_eq!((ended.committed - before.committed, ended.rolled_back - before.rolled_back), (1, 1));
        let mut txn = db.begin(Isolation::ReadCommitted);
        txn.drop_table(&t).await.unwrap();
        txn.commit().await.unwrap();
        assert_eq!(db.usage(t.oid), Counts::default(), "it is gone");
        assert!(db.commit_wait().count() >= 2, "the table's making and the first transaction waited for the log");
    });
}
