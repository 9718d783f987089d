//! The workload of `terrace quickstart`: accounts, and transfers between them, through the typed table API.

use hdrhistogram::Histogram;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use terrace::engine::{
    ColumnDef, DataType, Database, Datum, DatumRef, EngineError, IndexRange, IndexSpec, Isolation, Result, Scan,
    ScanDirection, Table, TableSpec, Txn, UpdateOutcome,
};
use terrace::env::Env;
use tokio::task::JoinSet;

/// What every account starts with.
pub(crate) const OPENING_BALANCE: i64 = 1000;
const TABLE: &str = "accounts";
const LOAD_BATCH: u32 = 1000;
/// Rows of a range read.
const RANGE: usize = 100;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum WorkloadKind {
    Read,
    Transfer,
    Range,
}

impl WorkloadKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            WorkloadKind::Read => "read a row by key",
            WorkloadKind::Transfer => "transfer: 2 updates, commit",
            WorkloadKind::Range => "read 100 rows in order",
        }
    }
}

/// Nanoseconds per operation, by kind.
pub(crate) type Latencies = BTreeMap<WorkloadKind, Histogram<u64>>;

pub(crate) struct Measured {
    pub(crate) latencies: Latencies,
    pub(crate) took: Duration,
    /// Transactions that lost against another one and were tried again.
    pub(crate) retries: u64,
}

fn column(name: &str, data_type: DataType, not_null: bool) -> ColumnDef {
    ColumnDef { not_null, ..ColumnDef::new(name, data_type) }
}

/// `accounts (id int PRIMARY KEY, owner varchar(40) NOT NULL, balance bigint NOT NULL)`.
async fn create(database: &Database) -> Result<Arc<Table>> {
    let columns = vec![
        column("id", DataType::Int4, true),
        column("owner", DataType::Varchar(40), true),
        column("balance", DataType::Int8, true),
    ];
    let key = IndexSpec { name: format!("{TABLE}_pkey"), columns: vec![0], unique: true, primary: true, extras: None };
    let mut txn = database.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let table = txn.create_table(TableSpec { name: TABLE.into(), columns, indexes: vec![key] }).await?;
    txn.commit().await?;
    Ok(table)
}

/// Makes the table where it is missing and fills it up to `rows`, in batches; `progress` hears how many there are.
/// Continues a load that was interrupted.
pub(crate) async fn load(database: &Database, rows: u32, progress: impl Fn(u32)) -> Result<Arc<Table>> {
    let table = match database.catalog().table(TABLE) {
        Some(table) => table.clone(),
        None => create(database).await?,
    };
    let (present, _) = totals(database, &table).await?;
    let mut next = u32::try_from(present).unwrap_or(u32::MAX);
    progress(next);
    while next < rows {
        let end = rows.min(next + LOAD_BATCH);
        let mut txn = database.begin(Isolation::ReadCommitted);
        txn.begin_statement();
        for id in next..end {
            let owner = format!("customer {:08x}", id.wrapping_mul(2_654_435_761));
            let row = [Datum::Int4(id as i32), Datum::Text(owner.into()), Datum::Int8(OPENING_BALANCE)];
            txn.insert(&table, &row).await?;
        }
        txn.commit().await?;
        next = end;
        progress(next);
    }
    Ok(table)
}

/// Number of accounts and sum of their balances.
pub(crate) async fn totals(database: &Database, table: &Arc<Table>) -> Result<(u64, i64)> {
    let mut txn = database.begin(Isolation::RepeatableRead);
    txn.begin_statement();
    let mut scanner = txn.scan(table, Scan::Full);
    let (mut count, mut sum) = (0, 0);
    loop {
        let batch = scanner.next_batch(1000).await?;
        if batch.is_empty() {
            break;
        }
        for (_, row, _) in &batch {
            count += 1;
            sum += balance(row.view(table).get(2));
        }
    }
    drop(scanner);
    txn.commit().await?;
    Ok((count, sum))
}

fn balance(datum: DatumRef<'_>) -> i64 {
    if let DatumRef::Int8(balance) = datum { balance } else { 0 }
}

/// Runs the mix on `sessions` concurrent sessions for `time`.
pub(crate) async fn run(
    env: &Env,
    database: &Database,
    table: &Arc<Table>,
    rows: u32,
    sessions: u64,
    time: Duration,
) -> Result<Measured> {
    let start = env.now();
    let deadline = start.0 + time.as_nanos() as u64;
    let mut tasks = JoinSet::new();
    for seed in 0..sessions {
        let (env, database, table) = (env.clone(), database.clone(), table.clone());
        tasks.spawn(async move { session(&env, &database, &table, rows, seed, deadline).await });
    }
    let mut measured = Measured { latencies: Latencies::new(), took: Duration::ZERO, retries: 0 };
    while let Some(done) = tasks.join_next().await {
        let (latencies, retries) =
            done.map_err(|e| EngineError::new("XX000", format!("a session broke off: {e}")))??;
        measured.retries += retries;
        for (kind, histogram) in latencies {
            let sum = measured.latencies.entry(kind).or_insert_with(histogram_of_nanos);
            // Both were made by the same function, so the bounds agree.
            sum.add(&histogram).expect("histograms of equal bounds");
        }
    }
    measured.took = Duration::from_nanos(env.now().0 - start.0);
    Ok(measured)
}

fn histogram_of_nanos() -> Histogram<u64> {
    // One nanosecond to ten minutes, three figures: constants that the library accepts.
    Histogram::new_with_bounds(1, 600_000_000_000, 3).expect("valid bounds")
}

async fn session(
    env: &Env,
    database: &Database,
    table: &Arc<Table>,
    rows: u32,
    seed: u64,
    deadline: u64,
) -> Result<(Latencies, u64)> {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut latencies, mut retries) = (Latencies::new(), 0);
    loop {
        let begin = env.now().0;
        if begin >= deadline {
            return Ok((latencies, retries));
        }
        let kind = match random.random_range(0..100) {
            0..75 => WorkloadKind::Read,
            75..95 => WorkloadKind::Transfer,
            _ => WorkloadKind::Range,
        };
        let (first, second) = (random.random_range(0..rows) as i32, random.random_range(0..rows) as i32);
        let amount = random.random_range(1..=10);
        loop {
            let outcome = match kind {
                WorkloadKind::Read => read(database, table, first).await,
                WorkloadKind::Transfer => transfer(database, table, first, second, amount).await,
                WorkloadKind::Range => range(database, table, first).await,
            };
            match outcome {
                Err(error) if ["40001", "40P01"].contains(&error.state.0) => retries += 1,
                outcome => break outcome?,
            }
        }
        let nanos = (env.now().0 - begin).max(1);
        latencies.entry(kind).or_insert_with(histogram_of_nanos).saturating_record(nanos);
    }
}

fn missing(id: i32) -> EngineError {
    EngineError::new("02000", format!("account {id} is gone: the table was changed meanwhile"))
}

async fn read(database: &Database, table: &Table, id: i32) -> Result<()> {
    let mut txn = database.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let found = txn.get(table, &table.indexes[0], &[Datum::Int4(id)]).await?;
    txn.commit().await?;
    found.map(|_| ()).ok_or_else(|| missing(id))
}

async fn transfer(database: &Database, table: &Table, from: i32, to: i32, amount: i64) -> Result<()> {
    let mut txn = database.begin(Isolation::ReadCommitted);
    // The lower account first, so that two transfers never wait for each other in a circle.
    let (low, high, sign) = if from <= to { (from, to, -1) } else { (to, from, 1) };
    let moved = match add(&mut txn, table, low, sign * amount).await {
        Ok(()) => add(&mut txn, table, high, -sign * amount).await,
        failed => failed,
    };
    match moved {
        Ok(()) => txn.commit().await,
        Err(error) => {
            txn.rollback().await?;
            Err(error)
        }
    }
}

/// `UPDATE accounts SET balance = balance + amount WHERE id = id`.
async fn add(txn: &mut Txn, table: &Table, id: i32, amount: i64) -> Result<()> {
    txn.begin_statement();
    let found = txn.get(table, &table.indexes[0], &[Datum::Int4(id)]).await?;
    let (rid, mut row, mut version) = found.ok_or_else(|| missing(id))?;
    loop {
        let mut values = row.view(table).to_datums();
        values[2] = Datum::Int8(balance(row.view(table).get(2)) + amount);
        match txn.update(table, rid, version, &values).await? {
            UpdateOutcome::Done => return Ok(()),
            UpdateOutcome::Changed { row: newer, version: its } => (row, version) = (newer, its),
            UpdateOutcome::Gone => return Err(missing(id)),
        }
    }
}

async fn range(database: &Database, table: &Arc<Table>, from: i32) -> Result<()> {
    let mut txn = database.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let range = IndexRange {
        index: table.indexes[0].clone(),
        from: Bound::Included(vec![Datum::Int4(from)]),
        to: Bound::Unbounded,
        direction: ScanDirection::Forward,
    };
    let mut scanner = txn.scan(table, Scan::Index(range));
    let rows = scanner.next_batch(RANGE).await?;
    drop(scanner);
    txn.commit().await?;
    if rows.is_empty() { Err(missing(from)) } else { Ok(()) }
}
