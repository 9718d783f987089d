//! Transactions: the typed table API.
//!
//! A transaction dropped without `commit` or `rollback` is rolled back in the background.
use crate::catalog::{Catalog, Index, Table};
use crate::error::Result;
use crate::row::RowBuf;
use crate::types::Datum;
use std::ops::Bound;
use std::sync::Arc;
use terrace_storage::{Rid, TxnId, UndoPtr};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    ReadCommitted,
    RepeatableRead,
}

/// Which version of a row was read: a row's version is unchanged while this is equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    pub writer: TxnId,
    pub undo: UndoPtr,
}

/// What became of an update or delete of an expected version.
#[derive(Clone, Debug)]
pub enum UpdateOutcome {
    Done,
    /// READ COMMITTED: another transaction changed the row and committed; here is the newest version. Re-evaluate the statement's
    /// condition on it, then try again expecting it.
    Changed {
        row: RowBuf,
        version: Version,
    },
    /// Another transaction deleted it and committed (READ COMMITTED), or this transaction did.
    Gone,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanDirection {
    Forward,
    Backward,
}

/// A range of an index over a prefix of its key columns.
#[derive(Clone, Debug)]
pub struct IndexRange {
    pub index: Arc<Index>,
    pub from: Bound<Vec<Datum>>,
    pub to: Bound<Vec<Datum>>,
    pub direction: ScanDirection,
}

#[derive(Clone, Debug)]
pub enum Scan {
    /// All rows, in address order.
    Full,
    /// In key order.
    Index(IndexRange),
}

/// A savepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint(pub UndoPtr);

pub struct Txn {}

/// Rows of a scan, a batch at a time. Owns what it needs: outlives nothing, borrows nothing.
pub struct Scanner {}

impl Txn {
    pub fn isolation(&self) -> Isolation {
        todo!()
    }
    /// Begins a statement: READ COMMITTED takes a new snapshot; REPEATABLE READ takes one at the first statement.
    pub fn begin_statement(&mut self) {
        todo!()
    }
    /// The catalogue as this transaction sees it, its own DDL included.
    pub fn catalog(&self) -> Arc<Catalog> {
        todo!()
    }
    /// Whether it has written.
    pub fn has_written(&self) -> bool {
        todo!()
    }
    /// Waits for the right to write rows of (or, reading, to keep the definition of) a table; held to the end.
    pub async fn lock_table(&mut self, _table: &Table, _write: bool) -> Result<()> {
        todo!()
    }
    /// Checks types, lengths and NOT NULL, stores the row, adds its index entries (23505 on a duplicate; the statement must
    /// then be rolled back to its savepoint).
    pub async fn insert(&mut self, _table: &Table, _row: &[Datum]) -> Result<Rid> {
        todo!()
    }
    /// Looks a row up by the full key of a unique index.
    pub async fn get(
        &mut self,
        _table: &Table,
        _index: &Index,
        _key: &[Datum],
    ) -> Result<Option<(Rid, RowBuf, Version)>> {
        todo!()
    }
    /// The visible version of a row.
    pub async fn fetch(&mut self, _table: &Table, _rid: Rid) -> Result<Option<(RowBuf, Version)>> {
        todo!()
    }
    /// Replaces a row whose version is `expected`, waiting for another writer where needed (40P01 on deadlock; under REPEATABLE READ
    /// 40001 where the row has changed).
    pub async fn update(
        &mut self,
        _table: &Table,
        _rid: Rid,
        _expected: Version,
        _row: &[Datum],
    ) -> Result<UpdateOutcome> {
        todo!()
    }
    pub async fn delete(&mut self, _table: &Table, _rid: Rid, _expected: Version) -> Result<UpdateOutcome> {
        todo!()
    }
    /// Sees the statement's snapshot.
    pub fn scan(&mut self, _table: &Arc<Table>, _scan: Scan) -> Scanner {
        todo!()
    }
    pub fn savepoint(&self) -> Savepoint {
        todo!()
    }
    /// Undoes everything since the savepoint.
    pub async fn rollback_to(&mut self, _savepoint: Savepoint) -> Result<()> {
        todo!()
    }
    /// Returns when the commit is durable.
    pub async fn commit(self) -> Result<()> {
        todo!()
    }
    pub async fn rollback(self) -> Result<()> {
        todo!()
    }
}

/// What DDL (in the catalogue's module) needs of a transaction.
#[allow(dead_code, reason = "the catalogue's DDL calls it")]
impl Txn {
    pub(crate) fn store(&self) -> &terrace_storage::Store {
        todo!()
    }
    /// Takes the one lock under which definitions change, held to the end of the transaction. First step of every DDL statement: from then
    /// on `catalog()` is the newest committed catalogue with this transaction's own changes.
    pub(crate) async fn lock_ddl(&mut self) -> Result<()> {
        todo!()
    }
    /// Locks a table in a mode, held to the end (`Share` for CREATE INDEX, `AccessExclusive` for DROP).
    pub(crate) async fn lock(
        &mut self,
        _object: terrace_storage::ObjectId,
        _mode: crate::locks::LockMode,
    ) -> Result<()> {
        todo!()
    }
    /// Notes that an object's pages are to be freed if this transaction rolls back. *Before* the first page is allocated.
    pub(crate) async fn object_created(&mut self, _object: terrace_storage::ObjectId) -> Result<()> {
        todo!()
    }
    /// Notes that an object's pages are to be freed when this transaction has committed and no snapshot needs them.
    pub(crate) async fn object_dropped(&mut self, _object: terrace_storage::ObjectId) -> Result<()> {
        todo!()
    }
    /// The catalogue as this transaction has changed it; published when it commits. (After `rollback_to` the engine reloads it with
    /// `Catalog::load`.)
    pub(crate) fn set_catalog(&mut self, _catalog: Arc<Catalog>) {
        todo!()
    }
    /// This transaction's id, beginning to write where it has not.
    pub(crate) async fn write_id(&mut self) -> Result<TxnId> {
        todo!()
    }
}

impl Scanner {
    /// At most `max` rows; empty at the end.
    pub async fn next_batch(&mut self, _max: usize) -> Result<Vec<(Rid, RowBuf, Version)>> {
        todo!()
    }
}
