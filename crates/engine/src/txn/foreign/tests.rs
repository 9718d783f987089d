//! Foreign keys of one transaction and of several, by index and by scan.
use crate::catalog::foreign::{Action, ForeignKey};
use crate::testing::*;
use crate::txn::{Change, Isolation, LockWait, RowLock, RowLockOutcome, Scan, Txn};
use crate::types::Datum;
use crate::{Database, EngineError, Result, Table};
use std::sync::Arc;
use terrace_env::Env;

use Isolation::{ReadCommitted, RepeatableRead};

fn code<T: std::fmt::Debug>(result: Result<T>) -> &'static str {
    result.expect_err("it fails").state.0
}

/// INSERT, to its end.
async fn insert(txn: &mut Txn, table: &Table, id: i32, v: i32) -> Result<()> {
    txn.begin_statement();
    txn.insert(table, &row(id, v)).await?;
    txn.judge_statement().await
}

/// UPDATE ... SET id = `to`, v = `v` WHERE id = `id`, to its end.
async fn update(txn: &mut Txn, table: &Table, id: i32, (to, v): (i32, i32)) -> Result<()> {
    txn.begin_statement();
    let (rid, _, version) = get(txn, table, id).await.expect("the row is visible");
    txn.update(table, rid, version, &row(to, v)).await?;
    txn.judge_statement().await
}

/// DELETE ... WHERE id = `id`, with its consequences; how many rows those are.
async fn delete(txn: &mut Txn, table: &Table, id: i32) -> Result<usize> {
    txn.begin_statement();
    let (rid, _, version) = get(txn, table, id).await.expect("the row is visible");
    txn.delete(table, rid, version).await?;
    follow(txn).await
}

async fn follow(txn: &mut Txn) -> Result<usize> {
    let mut changed = 0;
    while let Some(consequence) = txn.next_consequence().await? {
        for (rid, row, version) in &consequence.rows {
            changed += 1;
            let table = &consequence.table;
            match &consequence.change {
                Change::Delete => txn.delete(table, *rid, *version).await?,
                Change::Set(set) => {
                    let mut new = row.view(table).to_datums();
                    set.iter().for_each(|(at, value)| new[*at] = value.clone().unwrap_or(Datum::Int4(0)));
                    txn.update(table, *rid, *version, &new).await?
                }
            };
        }
    }
    Ok(changed)
}

async fn rows(db: &Database, table: &Arc<Table>) -> Vec<(i32, i32)> {
    all(&mut db.begin(ReadCommitted), table, Scan::Full).await
}

/// The same test without and with an index on the referring column.
fn both<R: Future<Output = ()> + Send + 'static>(
    seed: u64,
    key: impl Fn(&mut ForeignKey) + Copy + Send + 'static,
    test: impl Fn(Env, Database, Arc<Table>, Arc<Table>) -> R + Copy + Send + 'static,
) {
    for indexed in [false, true] {
        simulate(seed, move |env| async move {
            let db = database(&env).await;
            let (pa, ch) = linked(&db, key).await;
            if indexed {
                index_v(&db, &ch).await;
            }
            let ch = db.catalog().table("ch").unwrap().clone();
            for id in 1..=3 {
                put(&db, &pa, id, 0).await;
            }
            test(env, db.clone(), pa, ch).await;
            clean(&db).await;
        });
    }
}

#[test]
fn what_is_referred_to_is_there_and_stays() {
    both(
        31,
        |_| {},
        |_, db, pa, ch| async move {
            let mut txn = db.begin(ReadCommitted);
            let mark = txn.savepoint();
            insert(&mut txn, &ch, 1, 1).await.unwrap();
            assert_eq!(code(insert(&mut txn, &ch, 2, 9).await), "23503");
            txn.rollback_to(mark).await.unwrap();
            insert(&mut txn, &ch, 1, 1).await.unwrap();
            txn.commit().await.unwrap();
            let mut txn = db.begin(ReadCommitted);
            let e = delete(&mut txn, &pa, 1).await.unwrap_err();
            assert_eq!(e.detail.as_deref(), Some("Key (id)=(1) is still referenced from table \"ch\"."));
            txn.rollback().await.unwrap();
            let mut txn = db.begin(ReadCommitted);
            assert_eq!(code(update(&mut txn, &pa, 1, (7, 0)).await), "23503");
            txn.rollback().await.unwrap();
            let mut txn = db.begin(ReadCommitted);
            update(&mut txn, &pa, 1, (1, 5)).await.unwrap();
            update(&mut txn, &ch, 1, (1, 2)).await.unwrap();
            delete(&mut txn, &pa, 1).await.unwrap();
            assert_eq!(code(update(&mut txn, &ch, 1, (1, 1)).await), "23503");
            txn.rollback().await.unwrap();
        },
    );
}

#[test]
fn a_statement_is_judged_at_its_end() {
    both(
        32,
        |_| {},
        |_, db, pa, ch| async move {
            let mut txn = db.begin(ReadCommitted);
            txn.begin_statement();
            txn.insert(&ch, &row(1, 8)).await.unwrap();
            txn.insert(&pa, &row(8, 0)).await.unwrap();
            txn.judge_statement().await.unwrap();
            // A key that is there again was never missed.
            let (rid, _, version) = get(&mut txn, &pa, 8).await.unwrap();
            txn.delete(&pa, rid, version).await.unwrap();
            assert!(txn.has_consequences());
            txn.insert(&pa, &row(8, 1)).await.unwrap();
            txn.judge_statement().await.unwrap();
            // What the caller forgets to ask for, the commit asks for.
            txn.insert(&ch, &row(2, 9)).await.unwrap();
            assert_eq!(code(txn.commit().await), "23503");
            assert_eq!(rows(&db, &ch).await, []);
        },
    );
}

#[test]
fn what_is_deferred_is_judged_at_the_end_and_after_going_back_again() {
    let deferred = |key: &mut ForeignKey| (key.deferrable, key.deferred) = (true, true);
    both(33, deferred, |_, db, pa, ch| async move {
        let mut txn = db.begin(ReadCommitted);
        insert(&mut txn, &ch, 1, 9).await.unwrap();
        assert_eq!(code(txn.drop_table(&ch).await), "55006");
        assert_eq!(code(txn.commit().await), "23503");
        let mut txn = db.begin(ReadCommitted);
        insert(&mut txn, &ch, 1, 9).await.unwrap();
        insert(&mut txn, &pa, 9, 0).await.unwrap();
        txn.commit().await.unwrap();
        // Judged within a savepoint, and again after it.
        let mut txn = db.begin(ReadCommitted);
        insert(&mut txn, &ch, 2, 10).await.unwrap();
        let mark = txn.savepoint();
        assert_eq!(code(txn.set_constraints(None, false).await), "23503");
        txn.rollback_to(mark).await.unwrap();
        insert(&mut txn, &pa, 10, 0).await.unwrap();
        txn.set_constraints(Some(&[ch.foreign_keys[0].oid]), false).await.unwrap();
        assert_eq!(code(insert(&mut txn, &ch, 3, 11).await), "23503", "it is immediate now");
        txn.rollback_to(mark).await.unwrap();
        insert(&mut txn, &ch, 3, 11).await.unwrap();
        assert_eq!(code(txn.check_deferred().await), "23503");
        txn.rollback_to(mark).await.unwrap();
        insert(&mut txn, &pa, 10, 0).await.unwrap();
        txn.commit().await.unwrap();
        // The removal of a key is deferred, too; a row that was written and went is nothing.
        let mut txn = db.begin(ReadCommitted);
        delete(&mut txn, &pa, 10).await.unwrap();
        insert(&mut txn, &ch, 5, 77).await.unwrap();
        delete(&mut txn, &ch, 5).await.unwrap();
        delete(&mut txn, &ch, 2).await.unwrap();
        txn.commit().await.unwrap();
        assert_eq!(rows(&db, &ch).await, [(1, 9)]);
        let mut txn = db.begin(ReadCommitted);
        delete(&mut txn, &pa, 9).await.unwrap();
        assert_eq!(code(txn.commit().await), "23503");
    });
}

#[test]
fn rows_follow_what_they_refer_to() {
    both(
        34,
        |key| (key.on_delete, key.on_update) = (Action::Cascade, Action::Cascade),
        |_, db, pa, ch| async move {
            let mut txn = db.begin(ReadCommitted);
            for (id, v) in [(1, 1), (2, 1), (3, 2)] {
                insert(&mut txn, &ch, id, v).await.unwrap();
            }
            assert_eq!(delete(&mut txn, &pa, 1).await.unwrap(), 2);
            txn.begin_statement();
            let (rid, _, version) = get(&mut txn, &pa, 2).await.unwrap();
            txn.update(&pa, rid, version, &row(20, 0)).await.unwrap();
            assert_eq!(follow(&mut txn).await.unwrap(), 1);
            txn.commit().await.unwrap();
            assert_eq!((rows(&db, &pa).await, rows(&db, &ch).await), (vec![(20, 0), (3, 0)], vec![(3, 20)]));
            // A caller that leaves rows unchanged does not commit.
            let mut txn = db.begin(ReadCommitted);
            txn.begin_statement();
            let (rid, _, version) = get(&mut txn, &pa, 20).await.unwrap();
            txn.delete(&pa, rid, version).await.unwrap();
            assert_eq!(code(txn.commit().await), "XX000");
            assert_eq!(rows(&db, &ch).await, [(3, 20)]);
        },
    );
}

#[test]
fn a_key_that_goes_and_a_row_that_refers_to_it_wait_for_each_other() {
    // Who is first; how it ends.
    for (row_first, commits) in [(true, true), (true, false), (false, true), (false, false)] {
        for isolation in [ReadCommitted, RepeatableRead] {
            let test = move |env: Env, db: Database, pa: Arc<Table>, ch: Arc<Table>| async move {
                let inserts = {
                    let (db, ch) = (db.clone(), ch.clone());
                    move |txn: Option<Txn>| async move {
                        let mut txn = txn.unwrap_or_else(|| db.begin(isolation));
                        let done = insert(&mut txn, &ch, 1, 1).await;
                        (txn, done)
                    }
                };
                let deletes = {
                    let (db, pa) = (db.clone(), pa.clone());
                    move |txn: Option<Txn>| async move {
                        let mut txn = txn.unwrap_or_else(|| db.begin(isolation));
                        let done = delete(&mut txn, &pa, 1).await.map(drop);
                        (txn, done)
                    }
                };
                let (first, second) = match row_first {
                    true => (inserts(None).await, session(&env, deletes(None))),
                    false => (deletes(None).await, session(&env, inserts(None))),
                };
                first.1.unwrap();
                rest(&env).await;
                assert!(second.lock().is_none(), "it waits");
                match commits {
                    true => first.0.commit().await.unwrap(),
                    false => first.0.rollback().await.unwrap(),
                }
                rest(&env).await;
                let (second, done) = second.lock().take().expect("nothing is waited for any more");
                // The snapshot of a row that was first has seen the key go.
                let expected = match (commits, row_first, isolation) {
                    (false, ..) => None,
                    (true, false, RepeatableRead) => Some("40001"),
                    _ => Some("23503"),
                };
                assert_eq!(done.map_err(|e| e.state.0).err(), expected, "{row_first} {commits} {isolation:?}");
                match expected {
                    None => second.commit().await.unwrap(),
                    Some(_) => second.rollback().await.unwrap(),
                }
                let keys: Vec<i32> = rows(&db, &pa).await.iter().map(|row| row.0).collect();
                assert!(rows(&db, &ch).await.iter().all(|row| keys.contains(&row.1)), "no row without its key");
            };
            both(35, |_| {}, test);
        }
    }
}

#[test]
fn a_row_whose_deletion_may_be_undone_still_refers() {
    both(
        36,
        |_| {},
        |env, db, pa, ch| async move {
            put(&db, &ch, 1, 1).await;
            let mut other = db.begin(ReadCommitted);
            delete(&mut other, &ch, 1).await.unwrap();
            let deleting = {
                let (db, pa) = (db.clone(), pa.clone());
                async move {
                    let mut txn = db.begin(ReadCommitted);
                    let done = delete(&mut txn, &pa, 1).await;
                    txn.rollback().await.unwrap();
                    done
                }
            };
            let deleting = session(&env, deleting);
            rest(&env).await;
            assert!(deleting.lock().is_none(), "it waits");
            other.rollback().await.unwrap();
            rest(&env).await;
            assert_eq!(code(deleting.lock().take().unwrap()), "23503");
            // A row that only another transaction has does not: it looks for its key itself.
            let mut other = db.begin(ReadCommitted);
            insert(&mut other, &pa, 50, 0).await.unwrap();
            let mut txn = db.begin(ReadCommitted);
            assert_eq!(code(insert(&mut txn, &ch, 5, 50).await), "23503", "nor is a key there that is not committed");
            other.rollback().await.unwrap();
        },
    );
}

async fn lock(txn: &mut Txn, t: &Table, id: i32, how: RowLock, wait: LockWait) -> Result<RowLockOutcome> {
    txn.begin_statement();
    let (rid, _, version) = get(txn, t, id).await.expect("the row is visible");
    txn.lock_row(t, rid, version, how, wait).await
}

#[test]
fn other_columns_of_a_referenced_row_are_free() {
    both(
        37,
        |_| {},
        |env, db, pa, ch| async move {
            let mut refers = db.begin(ReadCommitted);
            insert(&mut refers, &ch, 1, 1).await.unwrap();
            // Beside each other, in either order.
            let mut writes = db.begin(ReadCommitted);
            update(&mut writes, &pa, 1, (1, 5)).await.unwrap();
            let mut third = db.begin(ReadCommitted);
            insert(&mut third, &ch, 2, 1).await.unwrap();
            third.commit().await.unwrap();
            // The writer waits as soon as it takes the key away.
            let deletes = {
                let pa = pa.clone();
                async move { (delete(&mut writes, &pa, 1).await, writes) }
            };
            let deletes = session(&env, deletes);
            rest(&env).await;
            assert!(deletes.lock().is_none(), "it waits");
            refers.rollback().await.unwrap();
            rest(&env).await;
            let (deleted, writes) = deletes.lock().take().expect("the key is free");
            assert_eq!(code(deleted), "23503", "the third one's row refers to it");
            writes.rollback().await.unwrap();
        },
    );
}

#[test]
fn four_strengths_of_locks() {
    use RowLock::*;
    simulate(38, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        put(&db, &t, 1, 0).await;
        let strengths = [KeyShare, Share, NoKeyUpdate, Exclusive];
        let conflicts = [
            [false, false, false, true],
            [false, false, true, true],
            [false, true, true, true],
            [true, true, true, true],
        ];
        for (held, row) in strengths.iter().zip(conflicts) {
            for (asked, conflict) in strengths.iter().zip(row) {
                let (mut a, mut b) = (db.begin(ReadCommitted), db.begin(ReadCommitted));
                lock(&mut a, &t, 1, *held, LockWait::Wait).await.unwrap();
                let got = lock(&mut b, &t, 1, *asked, LockWait::NoWait).await;
                assert_eq!(got.is_err(), conflict, "{asked:?} beside {held:?}");
                a.rollback().await.unwrap();
                b.rollback().await.unwrap();
            }
            // Beside a writer that leaves the key, and one that takes it.
            for takes_key in [false, true] {
                let (mut a, mut b) = (db.begin(ReadCommitted), db.begin(ReadCommitted));
                update(&mut a, &t, 1, (1 + i32::from(takes_key), 7)).await.unwrap();
                let got = lock(&mut b, &t, 1, *held, LockWait::NoWait).await;
                assert_eq!(got.is_ok(), *held == KeyShare && !takes_key, "{held:?} beside a writer");
                a.rollback().await.unwrap();
                b.rollback().await.unwrap();
            }
        }
        clean(&db).await;
    });
}

#[test]
fn a_lock_that_has_to_wait_for_a_writer_does_not_stand_in_its_way() {
    both(
        39,
        |_| {},
        |env, db, pa, ch| async move {
            let mut writes = db.begin(ReadCommitted);
            update(&mut writes, &pa, 1, (100, 0)).await.unwrap();
            let refers = {
                let (db, ch) = (db.clone(), ch.clone());
                async move {
                    let mut txn = db.begin(ReadCommitted);
                    let done = insert(&mut txn, &ch, 1, 1).await;
                    txn.rollback().await.unwrap();
                    done
                }
            };
            let refers = session(&env, refers);
            rest(&env).await;
            assert!(refers.lock().is_none(), "it waits");
            update(&mut writes, &pa, 100, (101, 0)).await.unwrap();
            update(&mut writes, &pa, 101, (1, 0)).await.unwrap();
            writes.commit().await.unwrap();
            rest(&env).await;
            let done: Result<(), EngineError> = refers.lock().take().expect("the writer has ended");
            done.unwrap();
        },
    );
}

#[test]
fn very_many_keys_are_locked_together() {
    both(
        40,
        |_| {},
        |env, db, pa, ch| async move {
            for id in 4..=30 {
                put(&db, &pa, id, 0).await;
            }
            let mut loads = db.begin(ReadCommitted);
            for id in 1..=20 {
                insert(&mut loads, &ch, id, id).await.unwrap();
            }
            assert!(db.locks().len() < 15, "{:?}", db.locks());
            // Other columns are free; a key that nothing refers to waits, and so does one that something refers to.
            let mut writes = db.begin(ReadCommitted);
            update(&mut writes, &pa, 20, (20, 5)).await.unwrap();
            writes.commit().await.unwrap();
            let deletes = |id: i32| {
                let (db, pa) = (db.clone(), pa.clone());
                session(&env, async move {
                    let mut txn = db.begin(ReadCommitted);
                    let done = delete(&mut txn, &pa, id).await;
                    txn.rollback().await.unwrap();
                    done.map_err(|e| e.state.0)
                })
            };
            let (used, unused) = (deletes(20), deletes(30));
            rest(&env).await;
            assert!(used.lock().is_none() && unused.lock().is_none(), "they wait");
            // Its own are free.
            delete(&mut loads, &pa, 29).await.unwrap();
            loads.commit().await.unwrap();
            rest(&env).await;
            assert_eq!((used.lock().take(), unused.lock().take()), (Some(Err("23503")), Some(Ok(0))));
            // Who takes a key away first is waited for, row by row.
            let mut removes = db.begin(ReadCommitted);
            delete(&mut removes, &pa, 28).await.unwrap();
            let mut loads = db.begin(ReadCommitted);
            for id in 1..=20 {
                insert(&mut loads, &ch, 100 + id, id).await.unwrap();
            }
            assert!(db.locks().len() > 20, "{:?}", db.locks());
            removes.commit().await.unwrap();
            loads.commit().await.unwrap();
        },
    );
}
