//! Random histories of serialisable transactions: whatever they read and write, and wherever the power goes, there is
//! an order that explains it. REPEATABLE READ shows that the checker would notice.

use crate::history::{Content, End, History, Key, Op, Read, Transaction};
use crate::world::World;
use crate::{Replay, many_seeds, seeds};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use terrace_device::fault::{Choice, Recorder};
use terrace_engine::{
    ColumnDef, DataType, Database, Datum, EngineError, IndexRange, IndexSpec, Isolation, Result, RowBuf, Scan,
    ScanDirection, Table, TableSpec, Txn, UpdateOutcome,
};
use terrace_env::Env;

const KEYS: i32 = 10;
const GROUPS: i32 = 4;
const CLIENTS: usize = 5;

/// What a client calls a transaction that it has rolled back by itself.
const ROLLED_BACK: &str = "(own)";

fn random(env: &Env, below: i32) -> i32 {
    (env.random_u64() % below as u64) as i32
}

async fn set_up(db: Database) -> Result<()> {
    let columns = vec![
        ColumnDef::new("id", DataType::Int4).not_null(),
        ColumnDef::new("grp", DataType::Int4),
        ColumnDef::new("mark", DataType::Int4),
    ];
    let index = |name: &str, column, unique| IndexSpec {
        name: name.into(),
        columns: vec![column],
        unique,
        primary: unique,
        extras: None,
    };
    let indexes = vec![index("t_pkey", 0, true), index("t_grp", 1, false)];
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.create_table(TableSpec { name: "t".into(), columns, indexes }).await?;
    txn.commit().await
}

fn row(key: Key, content: Content) -> Vec<Datum> {
    vec![Datum::Int4(key), Datum::Int4(content.group), Datum::Int4(content.mark)]
}

fn read_row(table: &Table, row: &RowBuf) -> (Key, Content) {
    match row.view(table).to_datums()[..] {
        [Datum::Int4(key), Datum::Int4(group), Datum::Int4(mark)] => (key, Content { group, mark }),
        ref other => panic!("a row of {other:?}"),
    }
}

/// Clients, and what they have done.
struct Run {
    env: Env,
    db: Database,
    isolation: Isolation,
    power: Arc<Recorder>,
    stop: AtomicBool,
    /// Clients that have not ended.
    clients: AtomicUsize,
    history: Mutex<History>,
    refused: Mutex<usize>,
}

impl Run {
    async fn read(&self, txn: &mut Txn, table: &Arc<Table>, read: Read, ops: &mut Vec<Op>) -> Result<()> {
        let mut found = BTreeMap::new();
        let direction = [ScanDirection::Forward, ScanDirection::Backward][random(&self.env, 2) as usize];
        let range = |index: usize, from, to| {
            let bound = |v| Bound::Included(vec![Datum::Int4(v)]);
            let (from, to) = (bound(from), bound(to));
            Scan::Index(IndexRange { index: table.indexes[index].clone(), from, to, direction })
        };
        let scan = match read {
            Read::Keys(from, to) if from == to && random(&self.env, 2) == 0 => {
                let row = txn.get(table, &table.indexes[0], &[Datum::Int4(from)]).await?;
                found.extend(row.map(|(_, row, _)| read_row(table, &row)));
                ops.push(Op::Read(read, found));
                return Ok(());
            }
            Read::Keys(from, to) => range(0, from, to),
            Read::Groups(from, to) => range(1, from, to),
            Read::All => Scan::Full,
        };
        let mut scanner = txn.scan(table, scan);
        loop {
            let batch = scanner.next_batch(3).await?;
            if batch.is_empty() {
                break;
            }
            found.extend(batch.iter().map(|(_, row, _)| read_row(table, row)));
        }
        ops.push(Op::Read(read, found));
        Ok(())
    }

    async fn write(&self, txn: &mut Txn, table: &Arc<Table>, ops: &mut Vec<Op>) -> Result<()> {
        let key = random(&self.env, KEYS);
        let mark = self.history.lock().next_step() as i32;
        let found = txn.get(table, &table.indexes[0], &[Datum::Int4(key)]).await?;
        let was: BTreeMap<Key, Content> = found.iter().map(|(_, row, _)| read_row(table, row)).collect();
        ops.push(Op::Read(Read::Keys(key, key), was.clone()));
        let group = match was.get(&key) {
            Some(content) if random(&self.env, 2) == 0 => content.group,
            _ => random(&self.env, GROUPS),
        };
        let content = Content { group, mark };
        let written = match found {
            None => {
                txn.insert(table, &row(key, content)).await?;
                Some(content)
            }
            Some((rid, _, version)) => {
                let deletes = random(&self.env, 4) == 0;
                let outcome = match deletes {
                    true => txn.delete(table, rid, version).await?,
                    false => txn.update(table, rid, version, &row(key, content)).await?,
                };
                assert!(matches!(outcome, UpdateOutcome::Done), "{outcome:?}");
                (!deletes).then_some(content)
            }
        };
        ops.push(Op::Write(key, written));
        Ok(())
    }

    /// Everything but the end.
    async fn work(&self, txn: &mut Txn, reads_only: bool, ops: &mut Vec<Op>) -> Result<()> {
        let catalog = txn.catalog();
        let table = catalog.table("t").expect("nobody drops it");
        for _ in 0..1 + random(&self.env, 4) {
            txn.begin_statement();
            let (from, group) = (random(&self.env, KEYS), random(&self.env, GROUPS));
            let (mark, before) = (txn.savepoint(), ops.len());
            match random(&self.env, if reads_only { 6 } else { 10 }) {
                0 | 1 => self.read(txn, table, Read::Keys(from, from), ops).await?,
                2 => self.read(txn, table, Read::Keys(from, from + random(&self.env, 4)), ops).await?,
                3 | 4 => self.read(txn, table, Read::Groups(group, group + random(&self.env, 2)), ops).await?,
                5 => self.read(txn, table, Read::All, ops).await?,
                _ => self.write(txn, table, ops).await?,
            }
            if random(&self.env, 12) == 0 {
                // What was written goes, what was read stays.
                txn.rollback_to(mark).await?;
                let of_part = ops.split_off(before);
                ops.extend(of_part.into_iter().filter(|op| matches!(op, Op::Read(..))));
            }
            txn.end_statement();
            self.env.sleep(Duration::from_micros(random(&self.env, 300) as u64)).await;
        }
        Ok(())
    }

    async fn transaction(&self) -> Result<()> {
        let mut txn = self.db.begin(self.isolation);
        let reads_only = random(&self.env, 4) == 0;
        let mut deferred = false;
        if reads_only && random(&self.env, 2) == 0 {
            txn.set_read_only(true);
            deferred = random(&self.env, 3) == 0;
        }
        if deferred {
            txn.wait_for_safe_snapshot().await;
        }
        let mut ops = Vec::new();
        txn.begin_statement();
        // Nothing comes between the two, unless the snapshot is older.
        let snapshot = (!deferred).then(|| self.history.lock().next_step());
        if let Err(error) = self.work(&mut txn, reads_only, &mut ops).await {
            txn.rollback().await?;
            return Err(error);
        }
        let Some(snapshot) = snapshot else { return txn.commit().await };
        let at = {
            let mut history = self.history.lock();
            history.all.push(Transaction { snapshot, ops, end: End::Unknown });
            history.all.len() - 1
        };
        let ended = match random(&self.env, 12) {
            0 => txn.rollback().await.and(Err(EngineError::new(ROLLED_BACK, ""))),
            _ => txn.commit().await,
        };
        let mut history = self.history.lock();
        match &ended {
            Ok(()) => history.all[at].end = End::Committed(history.next_step()),
            Err(e) if ["40001", ROLLED_BACK].contains(&e.state.0) => history.all[at].end = End::RolledBack,
            Err(_) => {}
        }
        ended
    }

    async fn client(self: Arc<Self>) {
        while !self.stop.load(Ordering::Relaxed) {
            match self.transaction().await {
                Ok(()) => {}
                Err(_) if self.power.is_off() => return,
                Err(e) if ["40001", "40P01"].contains(&e.state.0) => *self.refused.lock() += 1,
                Err(e) if ["55P03", ROLLED_BACK].contains(&e.state.0) => {}
                // Of a row that the snapshot does not see.
                Err(e) if e.state.0 == "23505" && self.isolation == Isolation::RepeatableRead => {}
                Err(e) => panic!("{}: {e}", e.state.0),
            }
            self.env.sleep(Duration::from_micros(10)).await;
        }
        self.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The rows that there are.
async fn rows(db: Database) -> Result<BTreeMap<Key, Content>> {
    let mut txn = db.begin(Isolation::RepeatableRead);
    let catalog = txn.catalog();
    let table = catalog.table("t").expect("nobody drops it");
    txn.begin_statement();
    let (mut scanner, mut found) = (txn.scan(table, Scan::Full), BTreeMap::new());
    loop {
        let batch = scanner.next_batch(100).await?;
        if batch.is_empty() {
            txn.rollback().await?;
            return Ok(found);
        }
        found.extend(batch.iter().map(|(_, row, _)| read_row(table, row)));
    }
}

/// Lets clients run for a while, or until the power goes.
fn run(world: &World, db: &Database, isolation: Isolation, history: History, time: Duration) -> (History, usize) {
    let (env, off) = (world.sim.env(), world.recorder.clone());
    let (history, refused) = (Mutex::new(history), Mutex::new(0));
    let power = off.clone();
    let (stop, clients) = (AtomicBool::new(false), AtomicUsize::new(CLIENTS));
    let run = Arc::new(Run { env: env.clone(), db: db.clone(), isolation, power, stop, clients, history, refused });
    let clients = run.clone();
    world.sim.run(async move {
        for _ in 0..CLIENTS {
            env.spawn("client", clients.clone().client());
        }
        let end = env.now().0 + time.as_nanos() as u64;
        while !off.is_off() && clients.clients.load(Ordering::Relaxed) > 0 {
            clients.stop.store(env.now().0 >= end, Ordering::Relaxed);
            env.sleep(Duration::from_millis(1)).await;
        }
    });
    let history = std::mem::take(&mut *run.history.lock());
    (history, *run.refused.lock())
}

/// A history without a crash.
fn history(seed: u64, isolation: Isolation) -> (History, usize) {
    let world = World::new(seed, None, false);
    let db = world.create().expect("creation on sound devices");
    world.sim.run(set_up(db.clone())).expect("nothing fails");
    run(&world, &db, isolation, History::default(), Duration::from_millis(40))
}

#[test]
fn every_history_has_an_order() {
    let (mut committed, mut refused) = (0, 0);
    for seed in seeds().flat_map(|seed| seed * 4..seed * 4 + 4) {
        let _replay = Replay(seed / 4);
        let (history, failed) = history(seed, Isolation::Serializable);
        committed += history.committed();
        refused += failed;
        if let Some(cycle) = history.cycle() {
            let transactions: Vec<_> = cycle.iter().map(|at| &history.all[*at]).collect();
            panic!("seed {seed}: no order explains {transactions:#?}");
        }
    }
    println!("{committed} transactions committed, {refused} were refused");
    assert!(!many_seeds() || (committed > 2000 && refused > 100), "{committed} committed, {refused} refused");
}

#[test]
fn repeatable_read_has_histories_without_an_order() {
    let histories = seeds().map(|seed| history(seed, Isolation::RepeatableRead).0);
    let impossible = histories.filter(|history| history.cycle().is_some()).count();
    println!("{impossible} histories have no order");
    assert!(!many_seeds() || impossible >= 10, "only {impossible}");
}

#[test]
fn every_history_across_a_crash_has_an_order() {
    let mut committed = 0;
    for seed in seeds() {
        let _replay = Replay(seed);
        let world = World::new(seed, None, false);
        let db = world.create().expect("creation on sound devices");
        world.sim.run(set_up(db.clone())).expect("nothing fails yet");
        world.recorder.power_off_at(world.recorder.events() + 50 + world.sim.env().random_u64() % 500);
        let long = Duration::from_millis(300);
        let (mut history, _) = run(&world, &db, Isolation::Serializable, History::default(), long);
        drop(db);
        let choice = [Choice::None, Choice::Random(seed), Choice::All][seed as usize % 3];
        let world = World::new(seed, Some(world.crash(choice)), false);
        let db = world.open().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        // Some are still being rolled back: readers see what was before them.
        history.settle(&world.sim.run(rows(db.clone())).unwrap_or_else(|e| panic!("seed {seed}: {e}")));
        let before = history.committed();
        let (history, _) = run(&world, &db, Isolation::Serializable, history, Duration::from_millis(20));
        assert!(history.committed() > before, "seed {seed}: work goes on");
        committed += history.committed();
        let cycle = history.cycle();
        assert!(cycle.is_none(), "seed {seed}: no order explains {cycle:?}");
        let problems = world.sim.run({
            let db = db.clone();
            async move { db.check().await }
        });
        assert_eq!(problems.unwrap_or_else(|e| panic!("seed {seed}: {e}")), Vec::<String>::new());
    }
    assert!(!many_seeds() || committed > 1000, "{committed}");
}
