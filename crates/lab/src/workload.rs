//! What a workload is, and what its transactions have in common.
use crate::heat;
use rand_chacha::ChaCha8Rng;
use std::ops::Bound;
use std::sync::Arc;
use terrace_engine::{
    ColumnDef, DataType, Database, Datum, EngineError, Index, IndexRange, IndexSpec, Isolation, Result, RowBuf, Scan,
    ScanDirection, Table, TableSpec, Txn, UpdateOutcome, Version,
};
use terrace_storage::Rid;

/// One transaction's end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Whether it counts for the workload's metric (of TPC-C: a new order).
    pub counted: bool,
    /// Whether it has changed the database in a way that the workload can find again ([`Workload::lasting`]).
    pub lasting: bool,
    /// Statements executed, for the CPU's account.
    pub statements: u32,
    /// How often it lost against another and was tried again.
    pub retries: u32,
}

/// What happened in a window of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub transactions: u64,
    pub counted: u64,
    pub lasting: u64,
    pub retries: u64,
    /// Sum of the transactions' times.
    pub nanos: u64,
}

pub trait Workload: Send + Sync + 'static {
    /// Makes and fills the tables.
    fn load(&self, database: &Database) -> impl Future<Output = Result<()>> + Send;
    /// Runs one transaction to its end, trying again where it lost against another.
    fn transaction(
        &self,
        database: &Database,
        terminal: usize,
        random: &mut ChaCha8Rng,
    ) -> impl Future<Output = Result<Outcome>> + Send;
    /// How many transactions whose outcome was `lasting` are in the database; of a workload that has none, 0.
    fn lasting(&self, _: &Database) -> impl Future<Output = Result<u64>> + Send {
        async { Ok(0) }
    }
    /// The conditions that must hold when nothing runs: those that do not.
    fn check(&self, database: &Database) -> impl Future<Output = Result<Vec<String>>> + Send;
}

/// A table's definition in a line: columns `name type`, all NOT NULL; keys by column names, the first the primary key.
pub(crate) fn table(name: &str, columns: &[(&str, DataType)], keys: &[(&[&str], bool)]) -> TableSpec {
    let position = |wanted: &str| {
        columns.iter().position(|(column, _)| *column == wanted).expect("a key's columns are the table's")
    };
    let index = |(at, (key, unique)): (usize, &(&[&str], bool))| IndexSpec {
        name: if at == 0 { format!("{name}_pkey") } else { format!("{name}_{at}") },
        columns: key.iter().map(|column| position(column)).collect(),
        unique: *unique,
        primary: at == 0,
        extras: None,
    };
    TableSpec {
        name: name.into(),
        columns: columns.iter().map(|(column, data_type)| ColumnDef::new(column, *data_type).not_null()).collect(),
        indexes: keys.iter().enumerate().map(index).collect(),
    }
}

/// Makes tables in one transaction.
pub(crate) async fn create(database: &Database, specs: Vec<TableSpec>) -> Result<()> {
    let mut txn = database.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    for spec in specs {
        txn.create_table(spec).await?;
    }
    txn.commit().await
}

/// Rows per transaction of a load.
const LOAD_BATCH: usize = 500;

/// Inserts all rows, a batch to a transaction.
pub(crate) async fn fill(database: &Database, name: &str, rows: impl Iterator<Item = Vec<Datum>> + Send) -> Result<()> {
    let table = named(database, name);
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let mut txn = database.begin(Isolation::ReadCommitted);
        for row in rows.by_ref().take(LOAD_BATCH) {
            txn.insert(&table, &row).await?;
        }
        txn.commit().await?;
    }
    Ok(())
}

pub(crate) fn named(database: &Database, name: &str) -> Arc<Table> {
    database.catalog().table(name).expect("the workload has made its tables").clone()
}

/// A transaction that counts its statements.
pub(crate) struct Client {
    pub(crate) txn: Txn,
    pub(crate) statements: u32,
}

pub(crate) type Found = (Rid, RowBuf, Version);

impl Client {
    pub(crate) fn begin(database: &Database) -> Client {
        Client::begin_at(database, Isolation::ReadCommitted)
    }

    pub(crate) fn begin_at(database: &Database, isolation: Isolation) -> Client {
        Client { txn: database.begin(isolation), statements: 0 }
    }

    fn statement(&mut self) {
        self.txn.begin_statement();
        self.statements += 1;
    }

    /// Commits, or rolls back, and begins anew.
    pub(crate) async fn go_on(&mut self, database: &Database, commit: bool) -> Result<()> {
        let done = std::mem::replace(&mut self.txn, database.begin(Isolation::ReadCommitted));
        if commit { done.commit().await } else { done.rollback().await }
    }

    fn primary(table: &Table) -> &Arc<Index> {
        table.primary_key().expect("the workload's tables have primary keys")
    }

    /// The row of a key that exists.
    pub(crate) async fn get(&mut self, table: &Table, key: &[Datum]) -> Result<Vec<Datum>> {
        self.find(table, key).await?.ok_or_else(|| missing(table, key))
    }

    pub(crate) async fn find(&mut self, table: &Table, key: &[Datum]) -> Result<Option<Vec<Datum>>> {
        Ok(self.locate(table, key).await?.map(|(_, row, _)| row.view(table).to_datums()))
    }

    async fn locate(&mut self, table: &Table, key: &[Datum]) -> Result<Option<Found>> {
        self.statement();
        let found = self.txn.get(table, Self::primary(table), key).await?;
        if let Some((rid, ..)) = &found {
            heat::note(table, *rid);
        }
        Ok(found)
    }

    /// The row of a key that exists, to be changed later.
    pub(crate) async fn look(&mut self, table: &Table, key: &[Datum]) -> Result<Found> {
        self.locate(table, key).await?.ok_or_else(|| missing(table, key))
    }

    /// Changes the row of a key that exists; on its newest version, however often that changes meanwhile. Returns it as
    /// written.
    pub(crate) async fn update(
        &mut self,
        table: &Table,
        key: &[Datum],
        change: impl Fn(&mut Vec<Datum>) + Send,
    ) -> Result<Vec<Datum>> {
        let found = self.look(table, key).await?;
        self.write(table, found, change).await
    }

    /// As [`Client::update`], in a statement of its own, on a row that was looked at before.
    pub(crate) async fn change(
        &mut self,
        table: &Table,
        found: Found,
        change: impl Fn(&mut Vec<Datum>) + Send,
    ) -> Result<Vec<Datum>> {
        self.statement();
        heat::note(table, found.0);
        self.write(table, found, change).await
    }

    async fn write(
        &mut self,
        table: &Table,
        (rid, mut row, mut version): Found,
        change: impl Fn(&mut Vec<Datum>) + Send,
    ) -> Result<Vec<Datum>> {
        loop {
            let mut new = row.view(table).to_datums();
            change(&mut new);
            match self.txn.update(table, rid, version, &new).await? {
                UpdateOutcome::Done => return Ok(new),
                UpdateOutcome::Changed { row: newest, version: newer } => (row, version) = (newest, newer),
                UpdateOutcome::Gone => {
                    return Err(EngineError::internal(format!("{} has lost the row at {rid:?}", table.name)));
                }
            }
        }
    }

    /// Whether the row was there to delete.
    pub(crate) async fn delete(&mut self, table: &Table, key: &[Datum]) -> Result<bool> {
        let Some((rid, _, mut version)) = self.locate(table, key).await? else { return Ok(false) };
        loop {
            match self.txn.delete(table, rid, version).await? {
                UpdateOutcome::Done => return Ok(true),
                UpdateOutcome::Changed { version: newer, .. } => version = newer,
                UpdateOutcome::Gone => return Ok(false),
            }
        }
    }

    pub(crate) async fn insert(&mut self, table: &Table, row: &[Datum]) -> Result<()> {
        self.statement();
        let rid = self.txn.insert(table, row).await?;
        heat::note(table, rid);
        Ok(())
    }

    /// At most `limit` rows whose first key columns are `prefix`, in the index's order.
    pub(crate) async fn range(
        &mut self,
        table: &Arc<Table>,
        index: usize,
        prefix: &[Datum],
        direction: ScanDirection,
        limit: usize,
    ) -> Result<Vec<Vec<Datum>>> {
        let same = || Bound::Included(prefix.to_vec());
        self.between(table, index, same(), same(), direction, limit).await
    }

    pub(crate) async fn between(
        &mut self,
        table: &Arc<Table>,
        index: usize,
        from: Bound<Vec<Datum>>,
        to: Bound<Vec<Datum>>,
        direction: ScanDirection,
        limit: usize,
    ) -> Result<Vec<Vec<Datum>>> {
        self.statement();
        let range = IndexRange { index: table.indexes[index].clone(), from, to, direction };
        let mut scanner = self.txn.scan(table, Scan::Index(range));
        let mut rows = Vec::new();
        while rows.len() < limit {
            let batch = scanner.next_batch((limit - rows.len()).min(256)).await?;
            if batch.is_empty() {
                break;
            }
            rows.extend(batch.into_iter().map(|(rid, row, _)| {
                heat::note(table, rid);
                row.view(table).to_datums()
            }));
        }
        Ok(rows)
    }

    /// All rows of a table, as one statement sees them.
    pub(crate) async fn all(&mut self, table: &Arc<Table>) -> Result<Vec<Vec<Datum>>> {
        let mut rows = Vec::new();
        self.each(table, |row| rows.push(row)).await?;
        Ok(rows)
    }

    /// Shows each row of a table, as one statement sees them: a large one need not be in memory.
    pub(crate) async fn each(&mut self, table: &Arc<Table>, mut show: impl FnMut(Vec<Datum>) + Send) -> Result<()> {
        self.statement();
        let mut scanner = self.txn.scan(table, Scan::Full);
        loop {
            let batch: Vec<Found> = scanner.next_batch(256).await?;
            if batch.is_empty() {
                return Ok(());
            }
            batch.into_iter().for_each(|(_, row, _)| show(row.view(table).to_datums()));
        }
    }
}

fn missing(table: &Table, key: &[Datum]) -> EngineError {
    EngineError::internal(format!("{} has lost the row {key:?}", table.name))
}

/// Lost against another transaction: worth another try.
pub(crate) fn is_lost(error: &EngineError) -> bool {
    ["40001", "40P01"].contains(&error.state.0)
}

/// The number in a column of numbers.
pub(crate) fn number(row: &[Datum], column: usize) -> i64 {
    match &row[column] {
        Datum::Int4(value) => i64::from(*value),
        Datum::Int8(value) => *value,
        other => panic!("column {column} holds a number, not {other:?}"),
    }
}

pub(crate) fn int(value: u32) -> Datum {
    Datum::Int4(i32::try_from(value).expect("ids of a workload are small"))
}

/// Adds to a column of numbers.
pub(crate) fn add(row: &mut [Datum], column: usize, amount: i64) {
    let sum = number(row, column) + amount;
    row[column] = match row[column] {
        Datum::Int4(_) => Datum::Int4(i32::try_from(sum).expect("counters of a workload are small")),
        _ => Datum::Int8(sum),
    };
}
