//! The engine under real threads: transfers between rows, checks of a sum that must not change, rollbacks in all their
//! forms, rows locked, rows that grow and shrink, indexes and tables that come and go, a buffer pool that is too small
//! for it all; and serialisable transactions that keep a rule which no row keeps alone. What the simulator cannot show:
//! one thread never tests a latch. Also meant for ThreadSanitizer (`scripts/tsan`).
//!
//! `TERRACE_STRESS_SECONDS` sets how long it runs (3).
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this test is about real threads and real time"
)]

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use terrace_device::{DeviceRef, MemoryDevice};
use terrace_engine::{
    ColumnDef, DataType, Database, Datum, DatumRef, EngineConfig, IndexRange, IndexSpec, Isolation, LockWait, Result,
    RowBuf, RowLock, RowLockOutcome, Scan, ScanDirection, Table, TableSpec, Txn, UpdateOutcome, Version,
};
use terrace_storage::{DeviceSet, Rid, StorageConfig};

const ACCOUNTS: i32 = 120;
const BRANCHES: i32 = 7;
const START: i64 = 1000;
const WORKERS: u64 = 6;

struct Run {
    db: Database,
    stop: AtomicBool,
    transfers: AtomicU64,
    checks: AtomicU64,
    definitions: AtomicU64,
    refused: AtomicU64,
}

fn devices() -> DeviceSet {
    let device = |name: &str| Arc::new(MemoryDevice::new(name, 4 << 30)) as DeviceRef;
    DeviceSet::from_fn(device)
}

fn storage() -> StorageConfig {
    StorageConfig {
        page_size: 4096,
        pool_bytes: 96 * 4096,
        segment_size: 256 << 10,
        redo_bound: 2 << 20,
        log_retention: 1 << 20,
        log_buffer: 256 << 10,
        writer_interval: Duration::from_millis(2),
        checkpoint_interval: Duration::from_millis(20),
        write_group: 16,
        ..StorageConfig::default()
    }
}

fn spec(name: &str) -> TableSpec {
    let columns = vec![
        ColumnDef::new("id", DataType::Int4).not_null(),
        ColumnDef::new("branch", DataType::Int4),
        ColumnDef::new("balance", DataType::Int8),
        ColumnDef::new("note", DataType::Text),
    ];
    let index = |suffix: &str, column, primary| IndexSpec {
        name: format!("{name}_{suffix}"),
        columns: vec![column],
        unique: primary,
        primary,
        extras: None,
    };
    TableSpec { name: name.into(), columns, indexes: vec![index("pkey", 0, true), index("branch", 1, false)] }
}

fn account(id: i32, branch: i32, balance: i64, note: usize) -> Vec<Datum> {
    vec![Datum::Int4(id), Datum::Int4(branch), Datum::Int8(balance), Datum::text("n".repeat(note))]
}

fn balance(row: &RowBuf, table: &Table) -> i64 {
    match row.view(table).get(2) {
        DatumRef::Int8(v) => v,
        other => panic!("a balance of {other:?}"),
    }
}

fn branch(row: &RowBuf, table: &Table) -> i32 {
    match row.view(table).get(1) {
        DatumRef::Int4(v) => v,
        other => panic!("a branch of {other:?}"),
    }
}

/// The table as the transaction sees it, locked so that its definition stays.
async fn accounts(txn: &mut Txn, write: bool) -> Result<Arc<Table>> {
    loop {
        txn.begin_statement();
        let catalog = txn.catalog();
        let table = catalog.table("accounts").cloned().expect("nobody drops it");
        txn.lock_table(&table, write).await?;
        if txn.catalog().version() == catalog.version() {
            return Ok(table);
        }
    }
}

/// How a transfer goes.
struct Plan {
    ids: [i32; 2],
    amount: i64,
    move_branch: Option<i32>,
    note: usize,
    lock_first: bool,
    detour: bool,
}

impl Run {
    async fn find(txn: &mut Txn, table: &Table, id: i32) -> Result<(Rid, RowBuf, Version)> {
        txn.begin_statement();
        let found = txn.get(table, &table.indexes[0], &[Datum::Int4(id)]).await?;
        Ok(found.unwrap_or_else(|| panic!("account {id} is gone")))
    }

    /// UPDATE accounts SET balance = balance + `by` ... WHERE id = `id`.
    async fn add(txn: &mut Txn, table: &Table, plan: &Plan, id: i32, by: i64) -> Result<()> {
        let (rid, mut row, mut version) = Run::find(txn, table, id).await?;
        if plan.lock_first {
            match txn.lock_row(table, rid, version, RowLock::Exclusive, LockWait::Wait).await? {
                RowLockOutcome::Locked => {}
                RowLockOutcome::Changed { row: newer, version: v } => (row, version) = (newer, v),
                other => panic!("account {id}: {other:?}"),
            }
        }
        loop {
            let to_branch = plan.move_branch.unwrap_or_else(|| branch(&row, table));
            let new = account(id, to_branch, balance(&row, table) + by, plan.note);
            match txn.update(table, rid, version, &new).await? {
                UpdateOutcome::Done => return Ok(()),
                UpdateOutcome::Changed { row: newer, version: v } => {
                    assert!(!plan.lock_first, "account {id} changed although it was locked");
                    (row, version) = (newer, v);
                }
                UpdateOutcome::Gone => panic!("account {id} is gone"),
            }
        }
    }

    async fn transfer(&self, txn: &mut Txn, plan: &Plan) -> Result<()> {
        let table = accounts(txn, true).await?;
        if plan.detour {
            let savepoint = txn.savepoint();
            Run::add(txn, &table, plan, plan.ids[1], 1_000_000).await?;
            txn.rollback_to(savepoint).await?;
        }
        Run::add(txn, &table, plan, plan.ids[0], -plan.amount).await?;
        Run::add(txn, &table, plan, plan.ids[1], plan.amount).await
    }

    async fn worker(&self, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        while !self.stop.load(Ordering::Relaxed) {
            let hot = if random.random_bool(0.3) { 5 } else { ACCOUNTS };
            let first = random.random_range(0..hot);
            let plan = Plan {
                ids: [first, (first + random.random_range(1..hot)) % hot],
                amount: random.random_range(-50..50),
                move_branch: random.random_bool(0.2).then(|| random.random_range(0..BRANCHES)),
                note: if random.random_bool(0.05) {
                    random.random_range(3000..12_000)
                } else {
                    random.random_range(0..60)
                },
                lock_first: random.random_bool(0.3),
                detour: random.random_bool(0.1),
            };
            let isolation = if random.random_bool(0.3) { Isolation::RepeatableRead } else { Isolation::ReadCommitted };
            let mut txn = self.db.begin(isolation);
            let end = random.random_range(0..20);
            match self.transfer(&mut txn, &plan).await {
                Ok(()) => match end {
                    0 => drop(txn),
                    1 | 2 => txn.rollback().await.expect("rolls back"),
                    3..6 => txn.commit_async().await.expect("commits"),
                    _ => txn.commit().await.expect("commits"),
                },
                Err(e) if ["40P01", "40001", "55P03"].contains(&e.state.0) => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    txn.rollback().await.expect("rolls back");
                    continue;
                }
                Err(e) => panic!("{}: {e}", e.state.0),
            }
            self.transfers.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn all(txn: &mut Txn, table: &Arc<Table>, scan: Scan) -> Result<Vec<RowBuf>> {
        let mut scanner = txn.scan(table, scan);
        let mut rows = Vec::new();
        loop {
            let batch = scanner.next_batch(37).await?;
            if batch.is_empty() {
                return Ok(rows);
            }
            rows.extend(batch.into_iter().map(|(_, row, _)| row));
        }
    }

    /// The same sum whichever way one looks, in one snapshot.
    async fn check(&self, random: &mut StdRng) -> Result<()> {
        let mut txn = self.db.begin(Isolation::RepeatableRead);
        let table = accounts(&mut txn, false).await?;
        let mut scans = vec![Scan::Full];
        for index in &table.indexes {
            let direction = if random.random_bool(0.5) { ScanDirection::Forward } else { ScanDirection::Backward };
            scans.push(Scan::Index(IndexRange {
                index: index.clone(),
                from: Bound::Unbounded,
                to: Bound::Unbounded,
                direction,
            }));
        }
        for scan in scans {
            let rows = Run::all(&mut txn, &table, scan.clone()).await?;
            let sum: i64 = rows.iter().map(|row| balance(row, &table)).sum();
            assert_eq!((rows.len() as i32, sum), (ACCOUNTS, START * ACCOUNTS as i64), "{scan:?}");
        }
        let one = random.random_range(0..BRANCHES);
        let key = || Bound::Included(vec![Datum::Int4(one)]);
        let index = table.indexes[1].clone();
        let range = IndexRange { index, from: key(), to: key(), direction: ScanDirection::Forward };
        let rows = Run::all(&mut txn, &table, Scan::Index(range)).await?;
        assert!(rows.iter().all(|row| branch(row, &table) == one), "another branch in branch {one}");
        txn.commit().await
    }

    async fn checker(&self, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        while !self.stop.load(Ordering::Relaxed) {
            self.check(&mut random).await.unwrap_or_else(|e| panic!("{}: {e}", e.state.0));
            self.checks.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A table of its own is made, filled and dropped; an index on the accounts comes and goes.
    async fn definition(&self, random: &mut StdRng, round: u64) -> Result<()> {
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        let name = format!("side{}", round % 3);
        match txn.catalog().table(&name).cloned() {
            None => {
                let table = txn.create_table(spec(&name)).await?;
                for id in 0..random.random_range(1..200) {
                    txn.insert(&table, &account(id, id % BRANCHES, 0, 20)).await?;
                }
            }
            Some(table) => txn.drop_table(&table).await?,
        }
        let table = accounts(&mut txn, false).await?;
        match table.indexes.iter().find(|i| i.name == "accounts_balance").cloned() {
            Some(index) if round % 4 == 3 => txn.drop_index(&index).await?,
            None if round % 4 == 1 => {
                let (name, columns) = ("accounts_balance".to_string(), vec![2, 0]);
                txn.create_index(&table, IndexSpec { name, columns, unique: false, primary: false, extras: None })
                    .await?;
            }
            _ => {}
        }
        match random.random_range(0..4) {
            0 => txn.rollback().await,
            _ => txn.commit().await,
        }
    }

    async fn definer(&self, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        for round in 0.. {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            match self.definition(&mut random, round).await {
                Ok(()) => self.definitions.fetch_add(1, Ordering::Relaxed),
                Err(e) if ["40P01", "55P03"].contains(&e.state.0) => self.refused.fetch_add(1, Ordering::Relaxed),
                Err(e) => panic!("{}: {e}", e.state.0),
            };
            self.db.env().sleep(Duration::from_millis(random.random_range(0..8))).await;
        }
    }

    /// Housekeeping, and whoever looks at the statistics.
    async fn keeper(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            self.db.purge().await.expect("purges");
            self.db.store().checkpoint().await.expect("checkpoints");
            let running = self.db.transactions();
            assert!(running.iter().all(|t| t.age < Duration::from_secs(600)), "{running:?}");
            self.db.locks();
            self.db.log_status();
            self.db.pool_status();
            self.db.env().sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn stress(run: Arc<Run>, seconds: u64) {
    let mut tasks = Vec::new();
    for i in 0..WORKERS {
        let run = run.clone();
        tasks.push(tokio::spawn(async move { run.worker(i).await }));
    }
    for i in 0..2 {
        let run = run.clone();
        tasks.push(tokio::spawn(async move { run.checker(100 + i).await }));
    }
    let (definer, keeper) = (run.clone(), run.clone());
    tasks.push(tokio::spawn(async move { definer.definer(200).await }));
    tasks.push(tokio::spawn(async move { keeper.keeper().await }));
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) && !tasks.iter().any(|t| t.is_finished()) {
        run.db.env().sleep(Duration::from_millis(20)).await;
    }
    run.stop.store(true, Ordering::Relaxed);
    for task in tasks {
        let ended = tokio::time::timeout(Duration::from_secs(120), task).await;
        ended.expect("a task hangs").expect("a task failed");
    }
}

/// Pairs of accounts, a branch each. A pair together is never in debt: each transaction looks at both accounts, takes
/// from one, and may only see what is there.
struct Pairs {
    db: Database,
    isolation: Isolation,
    stop: AtomicBool,
    done: AtomicU64,
    refused: AtomicU64,
}

const PAIRS: i32 = 3;

impl Pairs {
    async fn of(txn: &mut Txn, table: &Arc<Table>, pair: i32, by_key: bool) -> Result<Vec<(Rid, i32, i64, Version)>> {
        let mut found = Vec::new();
        if by_key {
            for id in [2 * pair, 2 * pair + 1] {
                let (rid, row, version) = Run::find(txn, table, id).await?;
                found.push((rid, id, balance(&row, table), version));
            }
            return Ok(found);
        }
        let (from, to) = (Bound::Included(vec![Datum::Int4(pair)]), Bound::Included(vec![Datum::Int4(pair)]));
        let index = table.indexes[1].clone();
        let scan = Scan::Index(IndexRange { index, from, to, direction: ScanDirection::Forward });
        txn.begin_statement();
        let mut scanner = txn.scan(table, scan);
        for (rid, row, version) in scanner.next_batch(9).await? {
            let DatumRef::Int4(id) = row.view(table).get(0) else { panic!("an id is a number") };
            found.push((rid, id, balance(&row, table), version));
        }
        Ok(found)
    }

    async fn take(&self, txn: &mut Txn, random: &mut StdRng) -> Result<()> {
        let table = accounts(txn, true).await?;
        let pair = random.random_range(0..PAIRS);
        let both = Pairs::of(txn, &table, pair, random.random_bool(0.5)).await?;
        let sum: i64 = both.iter().map(|(_, _, balance, _)| balance).sum();
        tokio::task::yield_now().await;
        let (rid, id, balance, version) = both[random.random_range(0..2)];
        let to = if sum > 0 { balance - sum } else { balance + 100 };
        let outcome = txn.update(&table, rid, version, &account(id, pair, to, 5)).await?;
        assert!(matches!(outcome, UpdateOutcome::Done), "{outcome:?}");
        Ok(())
    }

    async fn worker(&self, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        while !self.stop.load(Ordering::Relaxed) {
            let mut txn = self.db.begin(self.isolation);
            let ended = match self.take(&mut txn, &mut random).await {
                Ok(()) if random.random_bool(0.9) => txn.commit_async().await,
                Ok(()) => txn.rollback().await,
                Err(e) => txn.rollback().await.and(Err(e)),
            };
            match ended {
                Ok(()) => self.done.fetch_add(1, Ordering::Relaxed),
                Err(e) if ["40P01", "40001"].contains(&e.state.0) => self.refused.fetch_add(1, Ordering::Relaxed),
                Err(e) => panic!("{}: {e}", e.state.0),
            };
        }
    }

    /// How many pairs are in debt.
    async fn broken(&self) -> Result<usize> {
        let mut txn = self.db.begin(Isolation::RepeatableRead);
        let table = accounts(&mut txn, false).await?;
        let mut broken = 0;
        for pair in 0..PAIRS {
            let both = Pairs::of(&mut txn, &table, pair, true).await?;
            broken += usize::from(both.iter().map(|(_, _, balance, _)| balance).sum::<i64>() < 0);
        }
        txn.commit().await?;
        Ok(broken)
    }
}

/// Runs pairs under an isolation; answers how often one was in debt.
async fn keep_pairs(env: terrace_env::Env, isolation: Isolation, seconds: f64) -> usize {
    let db = Database::create(env, devices(), storage(), EngineConfig::default()).await.expect("creates");
    let mut txn = db.begin(Isolation::ReadCommitted);
    let table = txn.create_table(spec("accounts")).await.expect("creates");
    for id in 0..2 * PAIRS {
        txn.insert(&table, &account(id, id / 2, 50, 5)).await.expect("inserts");
    }
    txn.commit().await.expect("commits");
    let zero = || AtomicU64::new(0);
    let pairs = Pairs { db: db.clone(), isolation, stop: AtomicBool::new(false), done: zero(), refused: zero() };
    let pairs = Arc::new(pairs);
    let workers: Vec<_> = (0..WORKERS)
        .map(|seed| {
            let pairs = pairs.clone();
            tokio::spawn(async move { pairs.worker(seed).await })
        })
        .collect();
    let (began, mut broken) = (Instant::now(), 0);
    while began.elapsed().as_secs_f64() < seconds && !workers.iter().any(|worker| worker.is_finished()) {
        broken += pairs.broken().await.expect("reads");
        db.env().sleep(Duration::from_millis(5)).await;
    }
    pairs.stop.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.expect("a worker failed");
    }
    broken += pairs.broken().await.expect("reads");
    let (done, refused) = (pairs.done.load(Ordering::Relaxed), pairs.refused.load(Ordering::Relaxed));
    println!("{isolation:?}: {done} done, {refused} refused, {broken} times in debt");
    assert!(done > 50, "{done}");
    assert_eq!(db.check().await.expect("checks"), Vec::<String>::new());
    broken
}

#[test]
fn serialisable_threads_keep_what_no_row_keeps_alone() {
    let seconds = std::env::var("TERRACE_STRESS_SECONDS").ok().map_or(2.0, |s| s.parse().expect("a number of seconds"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    let env = terrace_env::Real::on(runtime.handle().clone());
    runtime.block_on(async move {
        assert_eq!(keep_pairs(env.clone(), Isolation::Serializable, seconds).await, 0);
        assert!(keep_pairs(env, Isolation::RepeatableRead, seconds).await > 0, "the test can fail");
    });
}

#[test]
fn threads_transfer_check_define_and_roll_back() {
    let seconds = std::env::var("TERRACE_STRESS_SECONDS").ok().map_or(3, |s| s.parse().expect("a number of seconds"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    let env = terrace_env::Real::on(runtime.handle().clone());
    runtime.block_on(async move {
        let devices = devices();
        // A deadlock across a table lock and a transfer must not stand for long.
        let config = EngineConfig { lock_timeout: Duration::from_secs(20), ..EngineConfig::default() };
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.expect("creates");
        let mut txn = db.begin(Isolation::ReadCommitted);
        let table = txn.create_table(spec("accounts")).await.expect("creates");
        for id in 0..ACCOUNTS {
            txn.insert(&table, &account(id, id % BRANCHES, START, 30)).await.expect("inserts");
        }
        txn.commit().await.expect("commits");
        let zero = || AtomicU64::new(0);
        let run = Arc::new(Run {
            db: db.clone(),
            stop: AtomicBool::new(false),
            transfers: zero(),
            checks: zero(),
            definitions: zero(),
            refused: zero(),
        });
        stress(run.clone(), seconds).await;
        let [transfers, checks, definitions, refused] =
            [&run.transfers, &run.checks, &run.definitions, &run.refused].map(|n| n.load(Ordering::Relaxed));
        println!("{transfers} transfers, {checks} checks, {definitions} definitions, {refused} refused");
        println!("{:?}", db.pool_status());
        assert!(transfers > 20 && checks > 2 && definitions > 2, "{transfers} {checks} {definitions}");
        run.check(&mut StdRng::seed_from_u64(9)).await.expect("checks");
        db.purge().await.expect("purges");
        assert_eq!(db.check().await.expect("checks"), Vec::<String>::new());
        assert_eq!((db.locks(), db.transactions()), (vec![], vec![]));
        drop(run);
        db.close().await.expect("closes");
        let (db, report) = Database::open(env, devices, storage(), config).await.expect("opens");
        assert!(report.storage.clean_shutdown, "{report:?}");
        assert_eq!(db.check().await.expect("checks"), Vec::<String>::new());
        db.close().await.expect("closes");
    });
}
