//! Serialisable transactions, each case by itself. Random histories: `tests/crash/serializable.rs`.
use super::KEPT;
use crate::testing::*;
use crate::txn::{IndexRange, Isolation, Scan, ScanDirection, Txn, UpdateOutcome};
use crate::types::Datum;
use crate::{Database, EngineConfig, EngineError, Result, Table};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use Isolation::{ReadCommitted, RepeatableRead, Serializable as Ssi};

async fn read(txn: &mut Txn, table: &Table, id: i32) -> Result<Option<i32>> {
    txn.begin_statement();
    let found = txn.get(table, &table.indexes[0], &[Datum::Int4(id)]).await?;
    Ok(found.map(|(_, row, _)| int(&row, table, 1)))
}

async fn write(txn: &mut Txn, table: &Table, id: i32, v: i32) -> Result<()> {
    txn.begin_statement();
    let found = txn.get(table, &table.indexes[0], &[Datum::Int4(id)]).await?;
    let (rid, _, version) = found.expect("the row is visible");
    let outcome = txn.update(table, rid, version, &row(id, v)).await?;
    assert!(matches!(outcome, UpdateOutcome::Done), "{outcome:?}");
    Ok(())
}

async fn remove(txn: &mut Txn, table: &Table, id: i32) -> Result<()> {
    txn.begin_statement();
    let found = txn.get(table, &table.indexes[0], &[Datum::Int4(id)]).await?;
    let (rid, _, version) = found.expect("the row is visible");
    txn.delete(table, rid, version).await.map(|_| ())
}

async fn add(txn: &mut Txn, table: &Table, id: i32, v: i32) -> Result<()> {
    txn.begin_statement();
    txn.insert(table, &row(id, v)).await.map(|_| ())
}

async fn rows(txn: &mut Txn, table: &Arc<Table>, scan: Scan) -> Result<Vec<(i32, i32)>> {
    txn.begin_statement();
    let (mut scanner, mut out) = (txn.scan(table, scan), Vec::new());
    loop {
        let batch = scanner.next_batch(7).await?;
        if batch.is_empty() {
            return Ok(out);
        }
        out.extend(batch.iter().map(|(_, r, _)| (int(r, table, 0), int(r, table, 1))));
    }
}

/// A range of an index.
fn range(table: &Table, index: usize, from: i32, to: i32) -> Scan {
    let bound = |v| Bound::Included(vec![Datum::Int4(v)]);
    let (from, to) = (bound(from), bound(to));
    Scan::Index(IndexRange { index: table.indexes[index].clone(), from, to, direction: ScanDirection::Forward })
}

/// Tables with rows 1 and 2, whose `v` is 0; the second index is on `v`.
async fn two_rows(db: &Database) -> Arc<Table> {
    let t = table(db, "t").await;
    index_v(db, &t).await;
    let t = db.catalog().table("t").unwrap().clone();
    put(db, &t, 1, 0).await;
    put(db, &t, 2, 0).await;
    t
}

fn is_refused(result: &Result<()>) -> bool {
    match result {
        Ok(()) => false,
        Err(e) if e.state.0 == "40001" => {
            assert_eq!(e.message, "could not serialize access due to read/write dependencies among transactions");
            assert_eq!(e.hint.as_deref(), Some("The transaction might succeed if retried."));
            assert!(e.detail.as_deref().is_some_and(|d| d.starts_with("Reason code: Canceled ")), "{e:?}");
            true
        }
        Err(e) => panic!("{}: {e}", e.state.0),
    }
}

/// What two transactions do that run at the same time.
#[derive(Clone, Copy, Debug)]
enum Reads {
    ByKey,
    Range,
    RangeOfV,
    All,
    Fetch,
}

async fn read_both(txn: &mut Txn, t: &Arc<Table>, how: Reads) -> Result<usize> {
    let all = match how {
        Reads::ByKey => vec![read(txn, t, 1).await?.is_some(), read(txn, t, 2).await?.is_some()],
        Reads::Range => vec![true; rows(txn, t, range(t, 0, 1, 2)).await?.len()],
        Reads::RangeOfV => vec![true; rows(txn, t, range(t, 1, -9, 9)).await?.len()],
        Reads::All => vec![true; rows(txn, t, Scan::Full).await?.len()],
        Reads::Fetch => {
            // By its address, as something else has found it.
            let (mut finder, mut found) = (Txn::new(txn.core().clone(), ReadCommitted), Vec::new());
            for id in [1, 2] {
                let (rid, ..) = get(&mut finder, t, id).await.unwrap();
                found.push(txn.fetch(t, rid).await?.is_some());
            }
            found
        }
    };
    Ok(all.into_iter().filter(|there| *there).count())
}

/// Both read rows 1 and 2, then the first changes row 1 and the second row 2. How many commit?
async fn skew(db: &Database, t: &Arc<Table>, isolation: Isolation, how: Reads, deletes: bool) -> usize {
    let (mut a, mut b) = (db.begin(isolation), db.begin(isolation));
    assert_eq!(read_both(&mut a, t, how).await.unwrap(), 2);
    assert_eq!(read_both(&mut b, t, how).await.unwrap(), 2);
    let mut done = 0;
    for (mut txn, id) in [(a, 1), (b, 2)] {
        let changed = match deletes {
            true => remove(&mut txn, t, id).await,
            false => write(&mut txn, t, id, 1).await,
        };
        let ended = match changed {
            Ok(()) => txn.commit().await,
            failed => failed,
        };
        done += usize::from(!is_refused(&ended));
    }
    done
}

#[test]
fn write_skew_is_refused_however_the_rows_were_read() {
    simulate(1, |env| async move {
        for how in [Reads::ByKey, Reads::Range, Reads::RangeOfV, Reads::All, Reads::Fetch] {
            for deletes in [false, true] {
                let db = database(&env).await;
                let t = two_rows(&db).await;
                assert_eq!(skew(&db, &t, Ssi, how, deletes).await, 1, "{how:?}, deletes: {deletes}");
                let db = database(&env).await;
                let t = two_rows(&db).await;
                assert_eq!(skew(&db, &t, RepeatableRead, how, deletes).await, 2, "{how:?}, deletes: {deletes}");
            }
        }
    });
}

#[test]
fn phantoms_are_seen_by_key_by_range_and_by_table() {
    simulate(2, |env| async move {
        for how in 0..5 {
            let db = database(&env).await;
            let t = two_rows(&db).await;
            let (mut a, mut b) = (db.begin(Ssi), db.begin(Ssi));
            // Each finds that nothing is there, and puts something where the other has looked.
            for (txn, other) in [(&mut a, 11), (&mut b, 10)] {
                let found = match how {
                    0 => read(txn, &t, other).await.unwrap().into_iter().count(),
                    1 => rows(txn, &t, range(&t, 0, 10, 20)).await.unwrap().len(),
                    2 => rows(txn, &t, range(&t, 1, 5, 7)).await.unwrap().len(),
                    3 => rows(txn, &t, range(&t, 0, 30, 40)).await.unwrap().len(),
                    _ => rows(txn, &t, Scan::Full).await.unwrap().len() - 2,
                };
                assert_eq!(found, 0);
            }
            let put = async |mut txn: Txn, id| match add(&mut txn, &t, id, 6).await {
                Ok(()) => txn.commit().await,
                failed => failed,
            };
            let refused = [is_refused(&put(a, 10).await), is_refused(&put(b, 11).await)];
            // In case 3 they have looked somewhere else.
            assert_eq!(refused.into_iter().filter(|r| *r).count(), usize::from(how != 3), "case {how}");
        }
    });
}

#[test]
fn a_row_that_comes_into_a_range_is_a_phantom_too() {
    simulate(3, |env| async move {
        let db = database(&env).await;
        let t = two_rows(&db).await;
        let (mut a, mut b) = (db.begin(Ssi), db.begin(Ssi));
        for txn in [&mut a, &mut b] {
            assert!(rows(txn, &t, range(&t, 1, 5, 7)).await.unwrap().is_empty());
        }
        write(&mut a, &t, 1, 6).await.unwrap();
        a.commit().await.unwrap();
        let second = write(&mut b, &t, 2, 6).await;
        assert!(is_refused(&second));
    });
}

/// Fekete, O'Neil and O'Neil 2004: a report that only reads makes the history of two others impossible.
async fn batches(db: &Database, with_report: bool) -> bool {
    let t = two_rows(db).await; // Row 1: the batch that is open. Rows from 10 on: receipts, `v` is their batch.
    let mut receipt = db.begin(Ssi);
    let batch = read(&mut receipt, &t, 1).await.unwrap().unwrap();
    let mut close = db.begin(Ssi);
    write(&mut close, &t, 1, batch + 1).await.unwrap();
    close.commit().await.unwrap();
    if with_report {
        let mut report = db.begin(Ssi);
        assert_eq!(read(&mut report, &t, 1).await.unwrap(), Some(batch + 1));
        assert!(rows(&mut report, &t, range(&t, 0, 10, 99)).await.unwrap().is_empty());
        report.commit().await.unwrap();
    }
    let ended = match add(&mut receipt, &t, 10, batch).await {
        Ok(()) => receipt.commit().await,
        failed => failed,
    };
    !is_refused(&ended)
}

#[test]
fn a_reader_alone_can_make_a_history_impossible() {
    simulate(4, |env| async move {
        assert!(!batches(&database(&env).await, true).await);
        assert!(batches(&database(&env).await, false).await, "without the report there is an order");
    });
}

#[test]
fn who_has_nothing_to_do_with_each_other_is_left_alone() {
    simulate(5, |env| async move {
        let db = database(&env).await;
        let t = two_rows(&db).await;
        for id in 10..60 {
            put(&db, &t, id, id).await;
        }
        let mut open: Vec<(Txn, i32)> = Vec::new();
        for round in 0..400 {
            let id = 10 + round % 50;
            let mut txn = db.begin(Ssi);
            read(&mut txn, &t, id).await.unwrap();
            rows(&mut txn, &t, range(&t, 0, id, id)).await.unwrap();
            write(&mut txn, &t, id, round).await.unwrap();
            open.push((txn, id));
            if open.len() == 20 {
                for (txn, _) in open.drain(..) {
                    txn.commit().await.unwrap();
                }
            }
        }
        // One after the other, everything conflicts with everything, and nothing is wrong.
        drop(open);
        for round in 0..50 {
            let mut txn = db.begin(Ssi);
            rows(&mut txn, &t, Scan::Full).await.unwrap();
            write(&mut txn, &t, 10 + round % 5, round).await.unwrap();
            txn.commit().await.unwrap();
        }
        assert_eq!(db.0.serializable.sizes(), (0, 0, 0), "nothing is kept when nobody runs");
    });
}

#[test]
fn one_edge_alone_refuses_nobody() {
    simulate(6, |env| async move {
        let db = database(&env).await;
        let t = two_rows(&db).await;
        let (mut reader, mut writer) = (db.begin(Ssi), db.begin(Ssi));
        rows(&mut reader, &t, Scan::Full).await.unwrap();
        write(&mut writer, &t, 1, 7).await.unwrap();
        assert_eq!(read(&mut reader, &t, 1).await.unwrap(), Some(0));
        writer.commit().await.unwrap();
        assert_eq!(read(&mut reader, &t, 1).await.unwrap(), Some(0));
        add(&mut reader, &t, 3, 0).await.unwrap();
        reader.commit().await.unwrap();
    });
}

#[test]
fn a_scan_that_stops_early_has_read_only_so_far() {
    simulate(7, |env| async move {
        let db = database(&env).await;
        let t = two_rows(&db).await;
        for id in 10..1500 {
            put(&db, &t, id, 0).await;
        }
        for (direction, near, far) in [(ScanDirection::Forward, 3, 9999), (ScanDirection::Backward, 9998, 4)] {
            for (id, edge) in [(near, true), (far, false)] {
                let (mut a, mut b) = (db.begin(Ssi), db.begin(Ssi));
                let index = t.indexes[0].clone();
                let scan = IndexRange { index, from: Bound::Unbounded, to: Bound::Unbounded, direction };
                a.begin_statement();
                let mut scanner = a.scan(&t, Scan::Index(scan));
                assert_eq!(scanner.next_batch(1).await.unwrap().len(), 1);
                // `b -> a`, and `a -> b` if `b` puts something where `a` has read.
                read(&mut b, &t, 500).await.unwrap();
                write(&mut a, &t, 500, 1).await.unwrap();
                let put = add(&mut b, &t, id, 0).await;
                a.commit().await.unwrap();
                let ended = match put {
                    Ok(()) => b.commit().await,
                    failed => failed,
                };
                assert_eq!(is_refused(&ended), edge, "{direction:?}, {id}");
            }
        }
    });
}

#[test]
fn others_take_no_part() {
    simulate(8, |env| async move {
        for other in [ReadCommitted, RepeatableRead] {
            let db = database(&env).await;
            let t = two_rows(&db).await;
            let (mut a, mut b) = (db.begin(Ssi), db.begin(other));
            read_both(&mut a, &t, Reads::ByKey).await.unwrap();
            read_both(&mut b, &t, Reads::ByKey).await.unwrap();
            write(&mut a, &t, 1, 1).await.unwrap();
            write(&mut b, &t, 2, 1).await.unwrap();
            a.commit().await.unwrap();
            b.commit().await.unwrap();
        }
    });
}

#[test]
fn what_was_read_before_a_savepoint_stays_read() {
    simulate(9, |env| async move {
        let db = database(&env).await;
        let t = two_rows(&db).await;
        let (mut a, mut b) = (db.begin(Ssi), db.begin(Ssi));
        for txn in [&mut a, &mut b] {
            txn.begin_statement();
            let savepoint = txn.savepoint();
            read_both(txn, &t, Reads::ByKey).await.unwrap();
            txn.rollback_to(savepoint).await.unwrap();
        }
        write(&mut a, &t, 1, 1).await.unwrap();
        a.commit().await.unwrap();
        assert!(is_refused(&write(&mut b, &t, 2, 1).await));
    });
}

#[test]
fn who_is_rolled_back_counts_for_nobody() {
    simulate(10, |env| async move {
        let db = database(&env).await;
        let t = two_rows(&db).await;
        for drops in [false, true] {
            let (mut a, mut b) = (db.begin(Ssi), db.begin(Ssi));
            for txn in [&mut a, &mut b] {
                read_both(txn, &t, Reads::ByKey).await.unwrap();
            }
            write(&mut a, &t, 1, 1).await.unwrap();
            match drops {
                true => drop(a),
                false => a.rollback().await.unwrap(),
            }
            write(&mut b, &t, 2, 1).await.unwrap();
            b.commit().await.unwrap();
        }
    });
}

#[test]
fn a_pivot_that_is_doomed_hears_of_it_at_its_commit() {
    simulate(11, |env| async move {
        let db = database(&env).await;
        let t = two_rows(&db).await;
        let (mut a, mut b) = (db.begin(Ssi), db.begin(Ssi));
        for txn in [&mut a, &mut b] {
            read_both(txn, &t, Reads::All).await.unwrap();
        }
        write(&mut a, &t, 1, 1).await.unwrap();
        write(&mut b, &t, 2, 1).await.unwrap();
        b.commit().await.unwrap();
        assert!(is_refused(&a.commit().await));
        let mut after = db.begin(Ssi);
        assert_eq!(rows(&mut after, &t, Scan::Full).await.unwrap(), [(1, 0), (2, 1)]);
    });
}

#[test]
fn a_key_that_changed_unseen_is_no_answer() {
    simulate(12, |env| async move {
        for case in 0..4 {
            let db = database(&env).await;
            let t = two_rows(&db).await;
            let mut late = db.begin(Ssi);
            late.begin_statement();
            let mut other = db.begin([Ssi, RepeatableRead][case % 2]);
            match case < 2 {
                true => add(&mut other, &t, 3, 0).await.unwrap(),
                false => remove(&mut other, &t, 2).await.unwrap(),
            }
            other.commit().await.unwrap();
            // A duplicate of what it does not see, or none of what it sees.
            let put = add(&mut late, &t, if case < 2 { 3 } else { 2 }, 0).await;
            assert!(is_refused(&put), "case {case}");
        }
        let db = database(&env).await;
        let t = two_rows(&db).await;
        let mut txn = db.begin(Ssi);
        assert_eq!(add(&mut txn, &t, 2, 0).await.unwrap_err().state.0, "23505");
    });
}

#[test]
fn a_foreign_key_is_judged_by_what_the_snapshot_shows() {
    simulate(13, |env| async move {
        for with_index in [false, true] {
            let db = database(&env).await;
            let (pa, mut ch) = linked(&db, |_| {}).await;
            if with_index {
                index_v(&db, &ch).await;
                ch = db.catalog().table("ch").unwrap().clone();
            }
            put(&db, &pa, 1, 0).await;
            put(&db, &ch, 5, 1).await;
            // It sees the child, and the child goes.
            let mut late = db.begin(Ssi);
            late.begin_statement();
            let mut other = db.begin(Ssi);
            remove(&mut other, &ch, 5).await.unwrap();
            other.commit().await.unwrap();
            assert!(is_refused(&remove(&mut late, &pa, 1).await), "with index: {with_index}");
            drop(late);
            let mut txn = db.begin(Ssi);
            remove(&mut txn, &pa, 1).await.unwrap();
            txn.commit().await.unwrap();
        }
    });
}

#[test]
fn an_index_that_goes_takes_no_reads_with_it() {
    simulate(14, |env| async move {
        let db = database(&env).await;
        let t = two_rows(&db).await;
        let mut a = db.begin(Ssi);
        let mut b = db.begin(Ssi);
        assert_eq!(rows(&mut a, &t, range(&t, 1, -5, 5)).await.unwrap().len(), 2);
        b.begin_statement();
        // `a` has read a range of an index, writes, and commits; the index goes; `b` writes into the range.
        let read_by_b = read(&mut b, &t, 1).await.unwrap();
        assert_eq!(read_by_b, Some(0));
        write(&mut a, &t, 1, 1).await.unwrap();
        a.commit().await.unwrap();
        let mut ddl = db.begin(ReadCommitted);
        ddl.drop_index(&t.indexes[1]).await.unwrap();
        ddl.commit().await.unwrap();
        let t = db.catalog().table("t").unwrap().clone();
        assert!(is_refused(&write(&mut b, &t, 2, 1).await));
    });
}

#[test]
fn to_empty_a_table_is_to_write_all_of_it() {
    simulate(15, |env| async move {
        let db = database(&env).await;
        let t = two_rows(&db).await;
        let u = table(&db, "u").await;
        put(&db, &u, 1, 0).await;
        let (mut a, mut b) = (db.begin(Ssi), db.begin(Ssi));
        read(&mut a, &t, 1).await.unwrap();
        read(&mut b, &u, 1).await.unwrap();
        write(&mut a, &u, 1, 1).await.unwrap();
        a.commit().await.unwrap();
        let emptied = b.truncate_table(&t).await.map(|_| ());
        assert!(is_refused(&emptied));
    });
}

#[test]
fn a_deferrable_reader_waits_for_a_safe_snapshot() {
    simulate(16, |env| async move {
        let db = database(&env).await;
        let t = two_rows(&db).await;
        let deferrable = |db: &Database| {
            let mut txn = db.begin(Ssi);
            txn.set_read_only(true);
            txn
        };
        // Nobody writes: at once, and as if it were not there.
        let mut alone = deferrable(&db);
        alone.wait_for_safe_snapshot().await;
        read_both(&mut alone, &t, Reads::All).await.unwrap();
        assert_eq!(db.0.serializable.sizes(), (0, 0, 0));
        // The receipt is open, the batch has been closed: the snapshot in between is not safe.
        let mut receipt = db.begin(Ssi);
        let batch = read(&mut receipt, &t, 1).await.unwrap().unwrap();
        let mut close = db.begin(Ssi);
        write(&mut close, &t, 1, batch + 1).await.unwrap();
        close.commit().await.unwrap();
        let mut report = deferrable(&db);
        let table = t.clone();
        let seen = session(&env, async move {
            report.wait_for_safe_snapshot().await;
            let batch = read(&mut report, &table, 1).await.unwrap();
            let receipts = rows(&mut report, &table, range(&table, 0, 10, 99)).await.unwrap().len();
            report.commit().await.unwrap();
            (batch, receipts)
        });
        env.sleep(Duration::from_secs(5)).await;
        assert!(seen.lock().is_none(), "it waits");
        add(&mut receipt, &t, 10, batch).await.unwrap();
        receipt.commit().await.unwrap();
        rest(&env).await;
        assert_eq!(*seen.lock(), Some((Some(batch + 1), 1)), "the snapshot is one from after the receipt");
        // One that writes, and harms nobody, is waited for, too; then the first snapshot does.
        let mut writer = db.begin(Ssi);
        write(&mut writer, &t, 2, 5).await.unwrap();
        let (mut report, table) = (deferrable(&db), t.clone());
        let seen = session(&env, async move {
            report.wait_for_safe_snapshot().await;
            read(&mut report, &table, 2).await.unwrap()
        });
        env.sleep(Duration::from_secs(1)).await;
        assert!(seen.lock().is_none(), "it waits");
        writer.commit().await.unwrap();
        rest(&env).await;
        assert_eq!(*seen.lock(), Some(Some(0)));
        assert_eq!(db.0.serializable.sizes(), (0, 0, 0));
    });
}

#[test]
fn a_wait_that_is_dropped_leaves_nothing() {
    simulate(17, |env| async move {
        let db = database(&env).await;
        let t = two_rows(&db).await;
        let mut writer = db.begin(Ssi);
        write(&mut writer, &t, 2, 5).await.unwrap();
        let mut report = db.begin(Ssi);
        report.set_read_only(true);
        {
            let wait = std::pin::pin!(report.wait_for_safe_snapshot());
            let timeout = std::pin::pin!(env.sleep(Duration::from_secs(1)));
            futures::future::select(wait, timeout).await;
        }
        assert_eq!(db.0.serializable.sizes().0, 1, "only the writer is there");
        writer.commit().await.unwrap();
        assert_eq!(db.0.serializable.sizes(), (0, 0, 0));
        report.wait_for_safe_snapshot().await;
        assert_eq!(read(&mut report, &t, 2).await.unwrap(), Some(5), "it takes a later one");
    });
}

#[test]
fn who_only_reads_does_not_write() {
    simulate(18, |env| async move {
        let db = database(&env).await;
        let t = two_rows(&db).await;
        let mut txn = db.begin(Ssi);
        txn.set_read_only(true);
        assert_eq!(add(&mut txn, &t, 3, 0).await.unwrap_err().state.0, "25006");
    });
}

/// Members that have committed beside one that stays open are joined, and still known.
#[test]
fn what_is_kept_is_bounded_and_still_enough() {
    simulate(19, |env| async move {
        for case in 0..3 {
            let db = database(&env).await;
            let t = two_rows(&db).await;
            for id in 10..20 {
                put(&db, &t, id, 0).await;
            }
            // `old` is to be `old -> first` (case 0, by what it reads later), or `first -> old` (case 1), or neither.
            let mut old = db.begin(Ssi);
            read(&mut old, &t, 1).await.unwrap();
            let mut first = db.begin(Ssi);
            read(&mut first, &t, 2).await.unwrap();
            write(&mut first, &t, 1, 1).await.unwrap();
            first.commit().await.unwrap();
            for round in 0..3 * KEPT as i32 {
                let mut txn = db.begin(Ssi);
                read(&mut txn, &t, 11).await.unwrap();
                write(&mut txn, &t, 10, round).await.unwrap();
                txn.commit().await.unwrap();
            }
            assert!(db.0.serializable.sizes().0 <= KEPT + 1, "{:?}", db.0.serializable.sizes());
            let ended = match case {
                // `first -> old -> first`
                0 => write(&mut old, &t, 2, 5).await,
                // `old -> some -> nobody`
                1 => read(&mut old, &t, 10).await.map(|_| ()),
                _ => Ok(()),
            };
            let ended = match ended {
                Ok(()) => old.commit().await,
                failed => old.rollback().await.and(failed),
            };
            assert_eq!(is_refused(&ended), case == 0, "case {case}");
            assert_eq!(db.0.serializable.sizes(), (0, 0, 0));
        }
    });
}

#[test]
fn very_many_reads_count_as_the_whole_table() {
    simulate(20, |env| async move {
        let db = database(&env).await;
        let t = two_rows(&db).await;
        for by_range in [false, true] {
            let (mut a, mut b) = (db.begin(Ssi), db.begin(Ssi));
            for id in 100..200 {
                match by_range {
                    false => drop(read(&mut a, &t, id).await.unwrap()),
                    true => drop(rows(&mut a, &t, range(&t, 0, id, id)).await.unwrap()),
                }
            }
            let (.., bytes) = db.0.serializable.sizes();
            assert!(bytes < 40 * 200, "{bytes}");
            read(&mut b, &t, 1).await.unwrap();
            write(&mut a, &t, 1, 1).await.unwrap();
            // It has not read this row. But nobody knows that any more.
            let wrote = write(&mut b, &t, 2, 1).await;
            a.commit().await.unwrap();
            let ended = match wrote {
                Ok(()) => b.commit().await,
                failed => failed,
            };
            assert!(is_refused(&ended), "by range: {by_range}");
        }
    });
}

/// Writers that had to be dropped even from what is joined: who would have to know them gets an error.
#[test]
fn with_no_memory_at_all_it_refuses_and_does_not_guess() {
    simulate(21, |env| async move {
        let config = EngineConfig { serializable_memory: 4096, ..EngineConfig::default() };
        let db = Database::create(env.clone(), devices(), storage(), config).await.unwrap();
        let t = two_rows(&db).await;
        let mut old = db.begin(Ssi);
        read(&mut old, &t, 2).await.unwrap();
        for round in 0..200 {
            let mut txn = db.begin(Ssi);
            write(&mut txn, &t, 1, round).await.unwrap();
            txn.commit().await.unwrap();
        }
        assert!(is_refused(&read(&mut old, &t, 1).await.map(|_| ())));
        drop(old);
        // Who begins after them sees them all.
        let mut new = db.begin(Ssi);
        assert_eq!(read(&mut new, &t, 1).await.unwrap(), Some(199));
        write(&mut new, &t, 1, 7).await.unwrap();
        new.commit().await.unwrap();
    });
}

#[test]
fn errors_are_postgresqls() {
    let error = EngineError::dependencies("Canceled on identification as a pivot, during write.");
    let text = "could not serialize access due to read/write dependencies among transactions";
    assert_eq!((error.state.0, &error.message[..]), ("40001", text));
}
