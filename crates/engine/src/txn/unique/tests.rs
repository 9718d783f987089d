//! Unique keys that may be judged later, and those whose NULLs are alike.
use crate::catalog::extras::{Extras, KeyOption};
use crate::row::RowBuf;
use crate::testing::*;
use crate::txn::{Isolation, Scan, Txn, UpdateOutcome};
use crate::types::Datum;
use crate::{Database, IndexSpec, Result, Table};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use terrace_env::Env;

use Isolation::{ReadCommitted, Serializable};

/// `t (id int4 primary key, v int4 unique, t text)`.
async fn with_key(db: &Database, change: impl FnOnce(&mut Extras)) -> Arc<Table> {
    let t = table(db, "t").await;
    let mut extras = Extras { keys: vec![KeyOption::default()], constraint: true, ..Extras::default() };
    change(&mut extras);
    let name = "t_v_key".into();
    let spec = IndexSpec { name, columns: vec![1], unique: true, primary: false, extras: Some(extras.into()) };
    let mut txn = db.begin(ReadCommitted);
    txn.create_index(&t, spec).await.unwrap();
    txn.commit().await.unwrap();
    db.catalog().table("t").unwrap().clone()
}

fn deferrable(extras: &mut Extras) {
    extras.deferrable = true;
}

fn deferred(extras: &mut Extras) {
    (extras.deferrable, extras.deferred) = (true, true);
}

/// INSERT, to its end.
async fn insert(txn: &mut Txn, t: &Table, id: i32, v: i32) -> Result<()> {
    txn.begin_statement();
    txn.insert(t, &row(id, v)).await?;
    txn.judge_statement().await
}

/// UPDATE ... SET v = `to` of these rows, to its end.
async fn update(txn: &mut Txn, t: &Table, rows: &[(i32, i32)]) -> Result<()> {
    txn.begin_statement();
    for &(id, to) in rows {
        let (rid, _, version) = get(txn, t, id).await.expect("the row is visible");
        txn.update(t, rid, version, &row(id, to)).await?;
    }
    txn.judge_statement().await
}

async fn delete(txn: &mut Txn, t: &Table, id: i32) -> Result<()> {
    txn.begin_statement();
    let (rid, _, version) = get(txn, t, id).await.expect("the row is visible");
    txn.delete(t, rid, version).await?;
    txn.judge_statement().await
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> &'static str {
    result.expect_err("it fails").state.0
}

async fn filled(db: &Database, change: impl FnOnce(&mut Extras)) -> Arc<Table> {
    let t = with_key(db, change).await;
    for id in 1..=3 {
        put(db, &t, id, id).await;
    }
    t
}

#[test]
fn a_deferrable_key_is_judged_at_the_end_of_the_statement() {
    simulate(60, |env| async move {
        let db = database(&env).await;
        let t = filled(&db, deferrable).await;
        let mut txn = db.begin(ReadCommitted);
        update(&mut txn, &t, &[(1, 2), (2, 3), (3, 4)]).await.unwrap();
        let mark = txn.savepoint();
        let e = insert(&mut txn, &t, 4, 3).await.unwrap_err();
        assert_eq!((e.state.0, e.detail.as_deref()), ("23505", Some("Key (v)=(3) already exists.")));
        txn.rollback_to(mark).await.unwrap();
        // Deferred from here on, and back.
        txn.set_constraints(None, true).await.unwrap();
        insert(&mut txn, &t, 4, 3).await.unwrap();
        let both = txn.savepoint();
        delete(&mut txn, &t, 2).await.unwrap();
        txn.set_constraints(None, false).await.unwrap();
        // The deletion is undone, so what was judged has to be judged again.
        txn.rollback_to(both).await.unwrap();
        assert_eq!(code(txn.check_deferred().await), "23505");
        assert_eq!(code(txn.commit().await), "23505");
        assert_eq!(all(&mut db.begin(ReadCommitted), &t, Scan::Full).await, [(1, 1), (2, 2), (3, 3)]);
        clean(&db).await;
    });
}

#[test]
fn whose_entry_comes_later_waits_for_the_other_at_its_commit() {
    simulate(61, |env| async move {
        let db = database(&env).await;
        let t = filled(&db, deferred).await;
        for (first_commits, both) in [(true, "23505"), (false, "")] {
            let mut first = db.begin(ReadCommitted);
            insert(&mut first, &t, 10, 10).await.unwrap();
            let mut second = db.begin(ReadCommitted);
            insert(&mut second, &t, 11, 10).await.unwrap();
            let ended = session(&env, async move { second.commit().await.map_or_else(|e| e.state.0, |()| "") });
            rest(&env).await;
            assert!(ended.lock().is_none(), "it waits");
            match first_commits {
                true => first.commit().await.unwrap(),
                false => first.rollback().await.unwrap(),
            }
            rest(&env).await;
            assert_eq!(ended.lock().take(), Some(both));
            let mut txn = db.begin(ReadCommitted);
            let left = if first_commits { 10 } else { 11 };
            delete(&mut txn, &t, left).await.unwrap();
            txn.commit().await.unwrap();
        }
        // A key that a running transaction takes away, and may bring back.
        let mut first = db.begin(ReadCommitted);
        delete(&mut first, &t, 1).await.unwrap();
        let mut second = db.begin(ReadCommitted);
        insert(&mut second, &t, 4, 1).await.unwrap();
        let ended = session(&env, async move { second.commit().await.map_or_else(|e| e.state.0, |()| "") });
        rest(&env).await;
        assert!(ended.lock().is_none(), "it waits");
        first.rollback().await.unwrap();
        rest(&env).await;
        assert_eq!(ended.lock().take(), Some("23505"));
        // Each waits for the other: one of them is ended.
        let (mut first, mut second) = (db.begin(ReadCommitted), db.begin(ReadCommitted));
        insert(&mut first, &t, 10, 10).await.unwrap();
        insert(&mut second, &t, 11, 11).await.unwrap();
        insert(&mut first, &t, 12, 11).await.unwrap();
        insert(&mut second, &t, 13, 10).await.unwrap();
        let commit = |txn: Txn| session(&env, async move { txn.commit().await.map_or_else(|e| e.state.0, |()| "") });
        let (first, second) = (commit(first), commit(second));
        env.sleep(std::time::Duration::from_secs(10)).await;
        let mut ends = [first.lock().take(), second.lock().take()];
        ends.sort_unstable();
        assert_eq!(ends, [Some(""), Some("40P01")]);
        clean(&db).await;
    });
}

#[test]
fn nulls_that_are_not_distinct_are_duplicates() {
    simulate(62, |env| async move {
        let db = database(&env).await;
        let t = with_key(&db, |extras| extras.nulls_not_distinct = true).await;
        let null = |id| vec![Datum::Int4(id), Datum::Null, Datum::Null];
        let mut txn = db.begin(ReadCommitted);
        txn.insert(&t, &null(1)).await.unwrap();
        txn.commit().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let e = txn.insert(&t, &null(2)).await.unwrap_err();
        assert_eq!((e.state.0, e.detail.as_deref()), ("23505", Some("Key (v)=(null) already exists.")));
        txn.rollback().await.unwrap();
        let spec = |nulls_not_distinct| IndexSpec {
            name: "t_t".into(),
            columns: vec![2],
            unique: true,
            primary: false,
            extras: Some(Extras { keys: vec![KeyOption::default()], nulls_not_distinct, ..Extras::default() }.into()),
        };
        put(&db, &t, 5, 5).await;
        let mut txn = db.begin(ReadCommitted);
        txn.insert(&t, &[Datum::Int4(6), Datum::Int4(6), Datum::Null]).await.unwrap();
        txn.commit().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        assert_eq!(code(txn.create_index(&t, spec(true)).await), "23505");
        txn.rollback().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        txn.create_index(&t, spec(false)).await.unwrap();
        txn.commit().await.unwrap();
        clean(&db).await;
    });
}

/// One transaction of a session that swaps and shifts values, and sometimes would leave duplicates.
async fn shuffle(db: &Database, t: &Table, random: &mut SmallRng, isolation: Isolation) -> Result<()> {
    let mut txn = db.begin(isolation);
    let done = async {
        for _ in 0..random.random_range(1..4) {
            let (a, b) = (random.random_range(0..8), random.random_range(0..8));
            txn.begin_statement();
            let by_id = |id: i32| [Datum::Int4(id)];
            let one = txn.get(t, &t.indexes[0], &by_id(a)).await?;
            let Some((rid, x, version)) = one.map(|(rid, row, version)| (rid, int(&row, t, 1), version)) else {
                continue;
            };
            let one = txn.get(t, &t.indexes[0], &by_id(b)).await?;
            let Some((other, y, theirs)) = one.map(|(rid, row, version)| (rid, int(&row, t, 1), version)) else {
                continue;
            };
            let mark = txn.savepoint();
            let swapped = RowBuf::encode(t, &row(a, y))?.view(t).to_datums();
            if !matches!(txn.update(t, rid, version, &swapped).await?, UpdateOutcome::Done) {
                continue;
            }
            match random.random_range(0..5) {
                // Half a swap: fails, or the row goes that has the value.
                0 => {}
                1 if a != b => drop(txn.delete(t, other, theirs).await?),
                2 => txn.rollback_to(mark).await?,
                _ if a != b => drop(txn.update(t, other, theirs, &row(b, x)).await?),
                _ => {}
            }
            txn.judge_statement().await?;
        }
        if random.random_bool(0.3) {
            txn.begin_statement();
            txn.insert(t, &row(random.random_range(0..8), random.random_range(0..8))).await?;
            txn.judge_statement().await?;
        }
        Ok(())
    };
    match done.await {
        Ok(()) if random.random_bool(0.9) => txn.commit().await,
        Ok(()) => txn.rollback().await,
        Err(error) => {
            txn.rollback().await?;
            Err(error)
        }
    }
}

async fn sessions_shuffle(env: Env, seed: u64, change: fn(&mut Extras), isolation: Isolation) -> usize {
    let db = database(&env).await;
    let t = with_key(&db, change).await;
    for id in 0..8 {
        put(&db, &t, id, id).await;
    }
    let ended: Vec<_> = (0..4)
        .map(|number| {
            let (db, t) = (db.clone(), t.clone());
            session(&env, async move {
                let mut random = SmallRng::seed_from_u64(seed * 10 + number);
                let mut commits = 0;
                for _ in 0..25 {
                    match shuffle(&db, &t, &mut random, isolation).await {
                        Ok(()) => commits += 1,
                        Err(e) => assert!(["23505", "40P01", "40001"].contains(&e.state.0), "{e}"),
                    }
                }
                commits
            })
        })
        .collect();
    env.sleep(std::time::Duration::from_secs(3600)).await;
    let commits = ended.iter().map(|end| end.lock().take().expect("every session ends")).sum();
    let mut values: Vec<i32> = all(&mut db.begin(ReadCommitted), &t, Scan::Full).await.iter().map(|r| r.1).collect();
    values.sort_unstable();
    assert!(values.windows(2).all(|pair| pair[0] != pair[1]), "{values:?}");
    clean(&db).await;
    commits
}

#[test]
fn no_duplicate_is_left_by_sessions_that_shuffle_keys() {
    let mut commits = 0;
    for seed in 0..6 {
        for (at, change) in [deferrable as fn(&mut Extras), deferred].into_iter().enumerate() {
            let isolation = if seed % 3 == 2 { Serializable } else { ReadCommitted };
            let counted = Arc::new(parking_lot::Mutex::new(0));
            let count = counted.clone();
            simulate(100 + seed * 2 + at as u64, move |env| async move {
                *count.lock() = sessions_shuffle(env, seed, change, isolation).await;
            });
            commits += *counted.lock();
        }
    }
    assert!(commits > 300, "{commits} commits");
}
