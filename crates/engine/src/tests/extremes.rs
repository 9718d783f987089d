//! Sizes at which a database is not often tried: rows of many megabytes, hundreds of tables, one transaction with
//! everything.
use crate::testing::*;
use crate::txn::{Isolation, Scan, UpdateOutcome};
use crate::{Datum, DatumRef, RowBuf, Table};
use std::time::Duration;

fn big(id: i32, len: usize) -> Vec<Datum> {
    let letters = b'a' + (id as u8 + (len % 7) as u8) % 26;
    vec![Datum::Int4(id), Datum::Int4(id), Datum::text(String::from_utf8(vec![letters; len]).expect("letters"))]
}

fn text<'a>(row: &'a RowBuf, t: &'a Table) -> &'a str {
    match row.view(t).get(2) {
        DatumRef::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_of_many_megabytes_come_and_go() {
    simulate(1, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        let sizes = [1 << 20, 10 << 20, 50 << 20];
        for (id, len) in (0..).zip(sizes) {
            // Given up first, then kept.
            for keep in [false, true] {
                let mut txn = db.begin(Isolation::ReadCommitted);
                txn.insert(&t, &big(id, len)).await.unwrap();
                if keep { txn.commit().await.unwrap() } else { txn.rollback().await.unwrap() }
            }
        }
        let mut old = db.begin(Isolation::RepeatableRead);
        old.begin_statement();
        for (id, len) in (0..).zip(sizes) {
            let mut txn = db.begin(Isolation::ReadCommitted);
            txn.begin_statement();
            let (rid, row, version) =
                txn.get(&t, &t.indexes[0], &[Datum::Int4(id)]).await.unwrap().expect("it is there");
            assert_eq!(text(&row, &t), text(&RowBuf::encode(&t, &big(id, len)).unwrap(), &t));
            let shorter = big(id, len / 3);
            assert!(matches!(txn.update(&t, rid, version, &shorter).await.unwrap(), UpdateOutcome::Done));
            txn.commit().await.unwrap();
        }
        for (id, len) in (0..).zip(sizes) {
            let (_, row, _) = old.get(&t, &t.indexes[0], &[Datum::Int4(id)]).await.unwrap().expect("it is there");
            assert_eq!(text(&row, &t).len(), len, "the old version, for who began before");
        }
        drop(old);
        db.purge().await.unwrap();
        clean(&db).await;
        let mut txn = db.begin(Isolation::ReadCommitted);
        for id in 0..3 {
            txn.begin_statement();
            let (rid, _, version) = get(&mut txn, &t, id).await.unwrap();
            txn.delete(&t, rid, version).await.unwrap();
        }
        txn.commit().await.unwrap();
        db.purge().await.unwrap();
        clean(&db).await;
        // All of the room is to be had again: the device does not grow for the same once more.
        let size = db.store().devices().data.size();
        for _ in 0..2 {
            let mut txn = db.begin(Isolation::ReadCommitted);
            txn.insert(&t, &big(9, 50 << 20)).await.unwrap();
            txn.rollback().await.unwrap();
        }
        assert_eq!(db.store().devices().data.size(), size);
        assert!(db.store().undo().used_bytes() < 64 << 20, "{} bytes of undo", db.store().undo().used_bytes());
    });
}

#[test]
fn hundreds_of_tables_come_and_go() {
    simulate(2, |env| async move {
        let db = database(&env).await;
        for n in 0..500 {
            let t = table(&db, &format!("t{n}")).await;
            put(&db, &t, n, n).await;
        }
        assert_eq!(db.catalog().tables().count(), 500);
        let mut txn = db.begin(Isolation::ReadCommitted);
        for n in (0..500).step_by(7) {
            let t = db.catalog().table(&format!("t{n}")).cloned().unwrap();
            assert_eq!(all(&mut txn, &t, Scan::Full).await, vec![(n, n)]);
        }
        txn.commit().await.unwrap();
        clean(&db).await;
        let size = db.store().devices().data.size();
        // All in one transaction, given up, then done.
        for keep in [false, true] {
            let mut txn = db.begin(Isolation::ReadCommitted);
            for n in 0..500 {
                let t = txn.catalog().table(&format!("t{n}")).cloned().unwrap();
                txn.drop_table(&t).await.unwrap();
            }
            assert_eq!(txn.catalog().tables().count(), 0);
            if keep {
                txn.commit().await.unwrap()
            } else {
                txn.rollback().await.unwrap()
            }
            assert_eq!(db.catalog().tables().count(), if keep { 0 } else { 500 });
        }
        db.purge().await.unwrap();
        clean(&db).await;
        for n in 0..500 {
            table(&db, &format!("again{n}")).await;
        }
        env.sleep(Duration::from_secs(1)).await;
        assert!(db.store().devices().data.size() <= size + (4 << 20), "dropped tables' pages are used again");
        clean(&db).await;
    });
}

#[test]
fn one_transaction_with_very_many_changes_ends_either_way() {
    simulate(3, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        for keep in [false, true] {
            let mut txn = db.begin(Isolation::ReadCommitted);
            for id in 0..20_000 {
                txn.insert(&t, &row(id, id)).await.unwrap();
            }
            for id in (0..20_000).step_by(3) {
                set(&mut txn, &t, id, -id).await.unwrap();
            }
            if keep { txn.commit().await.unwrap() } else { txn.rollback().await.unwrap() }
        }
        let mut txn = db.begin(Isolation::ReadCommitted);
        assert_eq!(all(&mut txn, &t, Scan::Full).await.len(), 20_000);
        drop(txn);
        db.purge().await.unwrap();
        clean(&db).await;
    });
}
