//! What a look without a snapshot says, beside what a snapshot would.
use super::Peek;
use crate::catalog::Table;
use crate::testing::*;
use crate::txn::Isolation::{ReadCommitted, RepeatableRead};
use crate::txn::UpdateOutcome;
use crate::types::{Datum, DatumRef};
use crate::{Database, RowView};

fn v(row: RowView<'_>) -> i32 {
    match row.get(1) {
        DatumRef::Int4(v) => v,
        other => panic!("column 1 is {other:?}"),
    }
}

fn peek(db: &Database, t: &Table, id: i32) -> Peek<i32> {
    db.peek(db.catalog().version(), t, &t.indexes[0], &[Datum::Int4(id)], v).unwrap()
}

#[test]
fn what_has_settled_is_found_and_what_has_not_is_left_to_a_snapshot() {
    simulate(1, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        assert_eq!(peek(&db, &t, 1), Peek::Found(10));
        assert_eq!(peek(&db, &t, 2), Peek::Missing);
        let mut txn = db.begin(ReadCommitted);
        assert!(matches!(set(&mut txn, &t, 1, 11).await.unwrap(), UpdateOutcome::Done));
        assert_eq!(peek(&db, &t, 1), Peek::Unsure, "its writer is active");
        let own = txn.peek(&t, &t.indexes[0], &[Datum::Int4(1)], |_, _, row| v(row)).unwrap();
        assert_eq!(own, Peek::Found(11), "its writer sees it");
        txn.rollback().await.unwrap();
        assert_eq!(peek(&db, &t, 1), Peek::Found(10));
        let mut txn = db.begin(ReadCommitted);
        let (rid, _, version) = get(&mut txn, &t, 1).await.unwrap();
        assert!(matches!(txn.delete(&t, rid, version).await.unwrap(), UpdateOutcome::Done));
        txn.commit().await.unwrap();
        assert_eq!(peek(&db, &t, 1), Peek::Unsure, "the entry of a deleted row");
        db.purge().await.unwrap();
        assert_eq!(peek(&db, &t, 1), Peek::Missing);
        clean(&db).await;
    });
}

#[test]
fn a_snapshot_that_stands_still_is_not_passed_by() {
    simulate(2, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        let mut old = db.begin(RepeatableRead);
        assert_eq!(value(&mut old, &t, 1).await, Some(10));
        put(&db, &t, 2, 20).await;
        let seen = old.peek(&t, &t.indexes[0], &[Datum::Int4(2)], |_, _, row| v(row)).unwrap();
        assert_eq!(seen, Peek::Unsure);
        assert_eq!(value(&mut old, &t, 2).await, None);
    });
}

#[test]
fn a_definition_that_changes_is_noticed() {
    simulate(3, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 10).await;
        let version = db.catalog().version();
        let look = |db: &Database| db.peek(version, &t, &t.indexes[0], &[Datum::Int4(1)], v).unwrap();
        assert_eq!(look(&db), Peek::Found(10));
        let mut ddl = db.begin(ReadCommitted);
        ddl.drop_table(&t).await.unwrap();
        assert_eq!(look(&db), Peek::Unsure, "somebody has the table for himself");
        ddl.commit().await.unwrap();
        assert_eq!(look(&db), Peek::Unsure, "the catalogue is another");
        db.purge().await.unwrap();
        assert_eq!(look(&db), Peek::Unsure);
    });
}
