//! Snapshots that are given up for undo space. Random histories against a model: at each level and by each way of
//! reading, an answer is right or it is 72000; and it is right wherever undo had room.
use crate::testing::*;
use crate::txn::{IndexRange, Isolation, LockWait, RowLock, RowLockOutcome, Scan, ScanDirection, UpdateOutcome};
use crate::{Database, Datum, DatumRef, EngineConfig, EngineError, IndexSpec, Result, RowBuf, Table, Txn, Version};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::{Bound, RangeInclusive};
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use terrace_env::{Env, Nanos};
use terrace_storage::Rid;
use terrace_storage::config::{Safeguard, Safeguards};

use Isolation::{ReadCommitted, RepeatableRead};

/// `v`, and the text as a letter and a length.
type Values = (i32, u8, usize);
type State = BTreeMap<i32, Values>;

const AGE: Duration = Duration::from_millis(60);
/// Keys lie below.
const KEYS: u64 = 300;
const VALUES: u64 = 40;

struct World {
    env: Env,
    db: Database,
    /// What is committed.
    now: Mutex<Arc<State>>,
    /// Whether undo may run out.
    tight: bool,
    writing: AtomicU64,
    right: AtomicU64,
    too_old: AtomicU64,
}

fn encoded(id: i32, (v, letter, len): Values) -> Vec<Datum> {
    let text = String::from_utf8(vec![letter; len]).expect("a letter");
    vec![Datum::Int4(id), Datum::Int4(v), Datum::text(text)]
}

fn decoded(row: &RowBuf, t: &Table) -> (i32, Values) {
    let DatumRef::Text(text) = row.view(t).get(2) else { panic!("a text") };
    let letter = text.bytes().next().unwrap_or(0);
    assert!(text.bytes().all(|b| b == letter), "one version's text");
    (int(row, t, 0), (int(row, t, 1), letter, text.len()))
}

fn index_range(t: &Table, index: usize, range: RangeInclusive<i32>, direction: ScanDirection) -> Scan {
    let bound = |n: &i32| Bound::Included(vec![Datum::Int4(*n)]);
    let (from, to) = (bound(range.start()), bound(range.end()));
    Scan::Index(IndexRange { index: t.indexes[index].clone(), from, to, direction })
}

impl World {
    fn pick(&self, n: u64) -> u64 {
        self.env.random_u64() % n
    }

    fn values(&self) -> Values {
        let len = match self.pick(8) {
            0 => 5000, // A chain.
            n => 150 * n as usize,
        };
        (self.pick(VALUES) as i32, b'a' + self.pick(26) as u8, len)
    }

    async fn pause(&self) {
        if self.pick(3) == 0 {
            self.env.sleep(Duration::from_millis(self.pick(60))).await;
        }
    }

    fn table(&self, txn: &Txn) -> Arc<Table> {
        txn.catalog().table("t").expect("made at the beginning").clone()
    }

    /// Some changes, on a copy of what is committed.
    async fn write(&self, txn: &mut Txn, state: &mut State) -> Result<()> {
        txn.begin_statement();
        let t = self.table(txn);
        txn.lock_table(&t, true).await?;
        let t = self.table(txn);
        for _ in 0..1 + self.pick(40) {
            txn.begin_statement();
            let (id, to) = (self.pick(KEYS) as i32, self.pick(KEYS) as i32);
            let Some((rid, row, version)) = txn.get(&t, &t.indexes[0], &[Datum::Int4(id)]).await? else {
                let values = self.values();
                txn.insert(&t, &encoded(id, values)).await?;
                state.insert(id, values);
                continue;
            };
            assert_eq!(state.get(&id), Some(&decoded(&row, &t).1));
            let outcome = match self.pick(6) {
                0 => {
                    state.remove(&id);
                    txn.delete(&t, rid, version).await?
                }
                kind => {
                    let to = if kind == 1 && !state.contains_key(&to) { to } else { id };
                    let values = self.values();
                    state.remove(&id);
                    state.insert(to, values);
                    txn.update(&t, rid, version, &encoded(to, values)).await?
                }
            };
            assert!(matches!(outcome, UpdateOutcome::Done), "the only writer that commits: {outcome:?}");
        }
        fill(&self.env, txn, 20).await
    }

    async fn writer(self: Arc<World>, rounds: usize) {
        for round in 0..rounds {
            if round == rounds / 3 {
                let mut ddl = self.db.begin(ReadCommitted);
                let t = self.table(&ddl);
                let by_v =
                    IndexSpec { name: "t_v".into(), columns: vec![1], unique: false, primary: false, extras: None };
                ddl.create_index(&t, by_v).await.unwrap();
                ddl.commit().await.unwrap();
            }
            let mut state = State::clone(&self.now.lock());
            let mut txn = self.db.begin(ReadCommitted);
            match self.write(&mut txn, &mut state).await {
                Ok(()) => {
                    // Nobody runs between the commit's last step and this.
                    txn.commit().await.unwrap();
                    *self.now.lock() = Arc::new(state);
                }
                Err(e) => {
                    assert!(["40P01", "53100", "72000"].contains(&e.state.0), "{e:?}");
                    assert!(self.tight || e.state.0 == "40P01", "{e:?}");
                    txn.rollback().await.unwrap();
                    self.env.sleep(AGE).await;
                }
            }
            self.env.sleep(Duration::from_micros(self.pick(3000))).await;
        }
        self.writing.fetch_sub(1, Ordering::SeqCst);
    }

    async fn reader(self: Arc<World>) {
        while self.writing.load(Ordering::SeqCst) > 0 {
            let level = if self.pick(3) == 0 { ReadCommitted } else { RepeatableRead };
            let mut txn = self.db.begin(level);
            let (mut taken, mut state) = (Nanos::default(), None);
            for _ in 0..1 + self.pick(4) {
                txn.begin_statement();
                if level == ReadCommitted || state.is_none() {
                    (taken, state) = (self.env.now(), Some(self.now.lock().clone()));
                }
                let state = state.clone().expect("noted above");
                match self.read(&mut txn, &state).await {
                    Ok(()) => drop(self.right.fetch_add(1, Ordering::SeqCst)),
                    Err(e) if e.state.0 == "72000" => {
                        assert!(self.tight, "undo had room");
                        assert!(self.env.now().0 - taken.0 >= AGE.as_nanos() as u64, "it was not old");
                        assert!(self.db.stats().snapshots_cancelled > 0);
                        self.too_old.fetch_add(1, Ordering::SeqCst);
                        if level == RepeatableRead {
                            let t = self.table(&txn);
                            let again = txn.get(&t, &t.indexes[0], &[Datum::Int4(1)]).await;
                            assert_eq!(again.unwrap_err().state.0, "72000", "it stays given up");
                        }
                        break;
                    }
                    Err(e) => {
                        assert!(["40001", "40P01", "53100"].contains(&e.state.0), "{e:?}");
                        break;
                    }
                }
                if self.pick(2) == 0 {
                    txn.end_statement();
                }
                self.pause().await;
            }
            if self.pick(2) == 0 {
                txn.rollback().await.unwrap()
            } else {
                drop(txn)
            }
            self.pause().await;
        }
    }

    /// One way of reading, against what the snapshot must see.
    async fn read(&self, txn: &mut Txn, state: &State) -> Result<()> {
        let t = self.table(txn);
        txn.lock_table(&t, false).await?;
        let t = self.table(txn);
        let (a, b) = (self.pick(KEYS) as i32, self.pick(KEYS) as i32);
        let range = a.min(b)..=a.max(b);
        let forward = if self.pick(2) == 0 { ScanDirection::Forward } else { ScanDirection::Backward };
        match self.pick(7) {
            0 => self.scan(txn, &t, Scan::Full, state, |_, _| true).await.map(|_| ()),
            1 => {
                let scan = index_range(&t, 0, range.clone(), forward);
                let ids: Vec<i32> =
                    self.scan(txn, &t, scan, state, |id, _| range.contains(&id)).await?.iter().map(|f| f.1).collect();
                assert!(ids.is_sorted() || ids.iter().rev().is_sorted(), "in key order");
                Ok(())
            }
            // Once it is there: for older snapshots sorted in memory.
            2 if t.indexes.len() > 1 => {
                let (from, to) = (*range.start() % VALUES as i32, *range.end() % VALUES as i32);
                let range = from.min(to)..=from.max(to);
                let scan = index_range(&t, 1, range.clone(), forward);
                self.scan(txn, &t, scan, state, |_, values| range.contains(&values.0)).await.map(|_| ())
            }
            3 => self.fetch(txn, &t, state).await,
            4 => self.change_by_scan(txn, &t, range, state).await,
            _ => {
                for id in range.step_by(9) {
                    self.look_up(txn, &t, id, state).await?;
                    self.pause().await;
                }
                Ok(())
            }
        }
    }

    async fn scan(
        &self,
        txn: &mut Txn,
        t: &Arc<Table>,
        scan: Scan,
        state: &State,
        wanted: impl Fn(i32, &Values) -> bool,
    ) -> Result<Vec<(Rid, i32, Version)>> {
        let what = format!("{scan:?}");
        let mut scanner = txn.scan(t, scan);
        // A cursor: its statement is over, or goes on.
        let paused = txn.paused();
        let cursor = self.pick(2) == 0;
        if cursor {
            txn.end_statement();
        }
        let (mut found, mut rows) = (State::new(), Vec::new());
        loop {
            let _underway = cursor.then(|| paused.go_on());
            let batch = scanner.next_batch(1 + self.pick(60) as usize).await?;
            if batch.is_empty() {
                break;
            }
            for (rid, row, version) in batch {
                let (id, values) = decoded(&row, t);
                rows.push((rid, id, version));
                assert_eq!(found.insert(id, values), None, "{id} twice: {what}");
            }
            drop(_underway);
            self.pause().await;
        }
        let expected: State =
            state.iter().filter(|(id, values)| wanted(**id, values)).map(|(id, values)| (*id, *values)).collect();
        assert_eq!(found, expected, "{what}");
        Ok(rows)
    }

    async fn look_up(&self, txn: &mut Txn, t: &Table, id: i32, state: &State) -> Result<()> {
        let found = txn.get(t, &t.indexes[0], &[Datum::Int4(id)]).await?;
        assert_eq!(found.as_ref().map(|(_, row, _)| decoded(row, t).1), state.get(&id).copied(), "look-up of {id}");
        let Some((rid, _, version)) = found.filter(|_| self.pick(4) == 0) else { return Ok(()) };
        self.pause().await;
        let locked = txn.lock_row(t, rid, version, RowLock::Exclusive, LockWait::Wait).await?;
        let repeatable = txn.isolation() == RepeatableRead;
        assert!(!repeatable || matches!(locked, RowLockOutcome::Locked), "what is seen is locked: {locked:?}");
        Ok(())
    }

    /// Rows by address, some time after they were found.
    async fn fetch(&self, txn: &mut Txn, t: &Arc<Table>, state: &State) -> Result<()> {
        let rows = self.scan(txn, t, Scan::Full, state, |_, _| true).await?;
        if txn.isolation() == ReadCommitted {
            return Ok(()); // Another statement, another snapshot.
        }
        for (rid, id, _) in rows.into_iter().step_by(7) {
            self.pause().await;
            let found = txn.fetch(t, rid).await?;
            let found = found.map(|(row, _)| decoded(&row, t));
            assert_eq!(found, state.get(&id).map(|values| (id, *values)), "the row at {rid:?}");
        }
        Ok(())
    }

    /// DELETE or UPDATE of a range, and back.
    async fn change_by_scan(
        &self,
        txn: &mut Txn,
        t: &Arc<Table>,
        range: RangeInclusive<i32>,
        state: &State,
    ) -> Result<()> {
        let mark = txn.savepoint();
        txn.lock_table(t, true).await?;
        let scan = index_range(t, 0, range.clone(), ScanDirection::Forward);
        let rows = self.scan(txn, t, scan, state, |id, _| range.contains(&id)).await?;
        let mut done = Ok(());
        for (rid, id, version) in rows.into_iter().take(8) {
            self.pause().await;
            let outcome = match self.pick(2) {
                0 => txn.delete(t, rid, version).await,
                _ => txn.update(t, rid, version, &encoded(id, self.values())).await,
            };
            match outcome {
                Ok(UpdateOutcome::Done) => {}
                Ok(other) if txn.isolation() == RepeatableRead => panic!("what is seen is changed: {other:?}"),
                Ok(_) => {}
                Err(e) => {
                    done = Err(e);
                    break;
                }
            }
        }
        txn.rollback_to(mark).await?;
        done
    }
}

async fn history(env: Env, undo_size_max: u64, rounds: usize) -> Arc<World> {
    let config = EngineConfig { undo_size_max, snapshot_age_max: AGE, ..EngineConfig::default() };
    let db = Database::create(env.clone(), devices(), storage(), config).await.unwrap();
    filler(&db).await;
    table(&db, "t").await;
    let world = Arc::new(World {
        env: env.clone(),
        db,
        now: Mutex::default(),
        tight: undo_size_max < 1 << 30,
        writing: AtomicU64::new(1),
        right: AtomicU64::new(0),
        too_old: AtomicU64::new(0),
    });
    env.spawn("writer", world.clone().writer(rounds));
    let readers = Arc::new(AtomicU64::new(4));
    for _ in 0..4 {
        let (world, readers) = (world.clone(), readers.clone());
        env.spawn("reader", async move {
            world.reader().await;
            readers.fetch_sub(1, Ordering::SeqCst);
        });
    }
    while readers.load(Ordering::SeqCst) > 0 {
        env.sleep(Duration::from_millis(10)).await;
    }
    world.db.purge().await.unwrap();
    clean(&world.db).await;
    assert_eq!(world.db.stats().histories, 0);
    world
}

/// `TERRACE_SEEDS` sets how many histories are tried.
fn seeds(few: u64) -> u64 {
    std::env::var("TERRACE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(few)
}

#[test]
fn s2_an_answer_is_right_or_the_snapshot_is_too_old() {
    let (mut right, mut too_old) = (0, 0);
    for seed in 0..seeds(20) {
        let sums = Arc::new(Mutex::new((0, 0)));
        let out = sums.clone();
        simulate(seed, |env| async move {
            let world = history(env, 12 << 20, 500).await;
            *out.lock() = (world.right.load(Ordering::SeqCst), world.too_old.load(Ordering::SeqCst));
        });
        let sums = *sums.lock();
        (right, too_old) = (right + sums.0, too_old + sums.1);
    }
    assert!(right > 100 && too_old > 20, "{right} right answers, {too_old} refused");
}

#[test]
fn the_check_of_snapshots_is_missed() {
    SAFEGUARDS.set(Safeguards::without(Safeguard::SnapshotCheck));
    let failed = catch_unwind(s2_an_answer_is_right_or_the_snapshot_is_too_old).is_err();
    SAFEGUARDS.set(Safeguards::all());
    assert!(failed, "histories pass without it");
    println!("without SnapshotCheck: noticed by histories");
}

#[test]
fn s2_an_answer_is_right_wherever_undo_has_room() {
    for seed in 100..100 + seeds(3) {
        simulate(seed, |env| async move {
            let world = history(env, 4 << 30, 200).await;
            assert_eq!((world.too_old.load(Ordering::SeqCst), world.db.stats().snapshots_cancelled), (0, 0));
        });
    }
}

/// Undo of 1.5 KB for each time, in a table that nobody else uses.
async fn fill(env: &Env, txn: &mut Txn, times: usize) -> Result<()> {
    let filler = txn.catalog().table("filler").expect("made at the beginning").clone();
    for _ in 0..times {
        txn.begin_statement();
        let (rid, row, version) = txn.get(&filler, &filler.indexes[0], &[Datum::Int4(1)]).await?.expect("it stays");
        let (_, (v, letter, _)) = decoded(&row, &filler);
        let next = encoded(1, (v, b'a' + (letter - b'a' + 1) % 26, 1500));
        let outcome = txn.update(&filler, rid, version, &next).await?;
        assert!(matches!(outcome, UpdateOutcome::Done), "{outcome:?}");
    }
    env.sleep(Duration::from_micros(50)).await;
    Ok(())
}

async fn filler(db: &Database) {
    let t = table(db, "filler").await;
    let mut txn = db.begin(ReadCommitted);
    txn.insert(&t, &encoded(1, (0, b'a', 1500))).await.unwrap();
    txn.commit().await.unwrap();
}

/// Writes until so many snapshots have been given up.
async fn fill_undo(env: &Env, db: &Database, until: u64) {
    for _ in 0..20_000 {
        if db.stats().snapshots_cancelled >= until {
            return;
        }
        let mut txn = db.begin(ReadCommitted);
        match fill(env, &mut txn, 1).await {
            Ok(_) => txn.commit().await.unwrap(),
            Err(e) => {
                assert_eq!(e.state.0, "53100");
                txn.rollback().await.unwrap();
                env.sleep(AGE).await;
            }
        }
    }
    panic!("undo never ran out: {:?}", db.stats());
}

fn outcome<T>(result: Result<T>) -> std::result::Result<(), &'static str> {
    result.map(|_| ()).map_err(|e: EngineError| e.state.0)
}

async fn tight(env: &Env) -> (Database, Arc<Table>) {
    let config = EngineConfig { undo_size_max: 8 << 20, snapshot_age_max: AGE, ..EngineConfig::default() };
    let db = Database::create(env.clone(), devices(), storage(), config).await.unwrap();
    filler(&db).await;
    let t = table(&db, "t").await;
    for id in 1..=60 {
        put(&db, &t, id, id).await;
    }
    (db, t)
}

/// One at a time: of those that hold the same, the idle before those at work, each kind from its oldest on.
#[test]
fn s2_idle_transactions_lose_their_snapshots_before_statements_under_way() {
    order_of_giving_up(false, [2, 3, 0, 1]);
}

/// An idle one that holds nothing of what the oldest statement's keeps is not given up for it.
#[test]
fn r2_snapshots_that_hold_nothing_are_kept() {
    order_of_giving_up(true, [0, 1, 2, 3]);
}

/// Readers 0 and 1 have a statement under way, 2 and 3 are idle; `apart`: each holds what the next does not.
fn order_of_giving_up(apart: bool, expected: [usize; 4]) {
    simulate(1, move |env| async move {
        let (db, t) = tight(&env).await;
        let active = &db.0.active;
        let mut readers = Vec::new();
        for (id, underway) in (1000..).zip([true, true, false, false]) {
            let mut txn = db.begin(RepeatableRead);
            assert_eq!(value(&mut txn, &t, 2).await, Some(2));
            if !underway {
                txn.end_statement();
            }
            readers.push(txn);
            if apart {
                put(&db, &t, id, 0).await;
            }
            env.sleep(AGE).await;
        }
        put(&db, &t, 2000, 0).await;
        db.purge().await.unwrap();
        let mut order = Vec::new();
        loop {
            let horizon = active.horizon();
            let Some(kept) = db.0.histories.lock().iter().map(|history| history.txn).find(|txn| *txn >= horizon) else {
                break;
            };
            assert_eq!(active.give_up_one(kept, Nanos(0)), None, "none is that old");
            let given_up = active.give_up_one(kept, env.now()).expect("one holds it");
            let mut lost = Vec::new();
            for (at, txn) in readers.iter_mut().enumerate().filter(|(at, _)| !order.contains(at)).collect::<Vec<_>>() {
                match outcome(txn.get(&t, &t.indexes[0], &[Datum::Int4(2)]).await) {
                    Ok(()) => {}
                    Err(state) => lost.push((at, state)),
                }
            }
            let [(at, "72000")] = lost[..] else { panic!("{lost:?}") };
            assert_eq!(given_up.underway, at < 2);
            assert!(!apart || active.horizon() > kept, "that was worth it");
            order.push(at);
        }
        assert_eq!(order, expected);
    });
}

/// A cursor's snapshot is its FETCH's, while one runs.
#[test]
fn s2_a_cursor_is_idle_between_its_fetches() {
    simulate(4, |env| async move {
        let (db, t) = tight(&env).await;
        let mut txn = db.begin(ReadCommitted);
        txn.begin_statement();
        let (mut scanner, cursor) = (txn.scan(&t, Scan::Full), txn.paused());
        txn.end_statement();
        env.sleep(AGE).await;
        let mut other = db.begin(RepeatableRead);
        other.begin_statement();
        other.end_statement();
        put(&db, &t, 1000, 0).await;
        let kept = db.0.histories.lock().first().expect("both hold it").txn;
        let fetch = cursor.go_on().expect("it has rows to read");
        env.sleep(AGE).await;
        let given_up = db.0.active.give_up_one(kept, env.now()).map(|given_up| given_up.underway);
        assert_eq!(given_up, Some(false), "the younger, which is idle");
        drop(fetch);
        let given_up = db.0.active.give_up_one(kept, env.now()).map(|given_up| given_up.underway);
        assert_eq!(given_up, Some(false));
        assert_eq!(outcome(scanner.next_batch(10).await), Err("72000"));
        drop(scanner);
        assert!(cursor.go_on().is_none(), "nothing is left of it");
    });
}

#[test]
fn s2_no_snapshot_is_given_up_where_that_would_free_nothing() {
    simulate(2, |env| async move {
        let (db, t) = tight(&env).await;
        let mut holder = db.begin(ReadCommitted);
        set(&mut holder, &t, 3, 0).await.unwrap();
        holder.end_statement();
        let mut reader = db.begin(RepeatableRead);
        assert_eq!(value(&mut reader, &t, 2).await, Some(2));
        reader.end_statement();
        env.sleep(AGE * 2).await;
        let mut refused = 0;
        while refused < 10 {
            let mut txn = db.begin(ReadCommitted);
            match outcome(fill(&env, &mut txn, 1).await) {
                Ok(()) => txn.commit().await.unwrap(),
                Err(state) => {
                    assert_eq!(state, "53100", "writers are refused");
                    refused += 1;
                    env.sleep(AGE).await;
                }
            }
        }
        assert_eq!(db.stats().snapshots_cancelled, 0, "an old writer holds what they could free");
        assert_eq!(value(&mut reader, &t, 2).await, Some(2));
        holder.rollback().await.unwrap();
    });
}

/// The slot of a version that nobody needs any more is another row's; and its chain is gone.
#[test]
fn s2_what_is_gone_is_too_old_and_not_damage() {
    simulate(3, |env| async move {
        let (db, t) = tight(&env).await;
        let commit = async |work: fn(i32) -> Vec<Datum>, ids: RangeInclusive<i32>| {
            let mut txn = db.begin(ReadCommitted);
            for id in ids {
                txn.begin_statement();
                let (rid, _, version) = get(&mut txn, &t, id).await.unwrap();
                let outcome = txn.update(&t, rid, version, &work(id)).await.unwrap();
                assert!(matches!(outcome, UpdateOutcome::Done));
            }
            txn.commit().await.unwrap();
        };
        let chained = |id: i32| encoded(id, (id, b'c', 5000));
        commit(chained, 10..=20).await;
        let mut readers = Vec::new();
        for _ in 0..4 {
            let mut reader = db.begin(RepeatableRead);
            assert_eq!(value(&mut reader, &t, 12).await, Some(12));
            readers.push(reader);
        }
        // Chains change, and go; keys change.
        commit(|id| encoded(id, (id, b'd', 6000)), 10..=15).await;
        commit(|id| encoded(id + 500, (id, b'e', 10)), 16..=20).await;
        env.sleep(AGE * 2).await;
        fill_undo(&env, &db, 4).await;
        let [a, b, c, d] = &mut readers[..] else { unreachable!("four") };
        assert_eq!(outcome(a.get(&t, &t.indexes[0], &[Datum::Int4(12)]).await), Err("72000"), "its chain is gone");
        assert_eq!(outcome(b.get(&t, &t.indexes[0], &[Datum::Int4(17)]).await), Err("72000"), "it has another key");
        assert_eq!(outcome(c.scan(&t, Scan::Full).next_batch(1000).await), Err("72000"));
        let none = index_range(&t, 0, 2000..=3000, ScanDirection::Backward);
        assert_eq!(outcome(d.scan(&t, none).next_batch(10).await), Err("72000"), "nor that there is nothing");
    });
}
