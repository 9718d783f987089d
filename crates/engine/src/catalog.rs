//! The catalogue: tables, columns, indexes, kept in tables of its own and cached as an immutable snapshot.
use crate::types::{DataType, Datum};
use std::sync::Arc;
use terrace_storage::{ObjectId, TxnId};

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    pub name: String,
    pub data_type: DataType,
    pub not_null: bool,
    /// DEFAULT as SQL text (the sql room evaluates it); `None` = NULL.
    pub default_sql: Option<String>,
    /// Value of rows written before the column was added.
    pub missing: Datum,
    pub dropped: bool,
}

#[derive(Clone, Debug)]
pub struct Index {
    pub oid: ObjectId,
    pub name: String,
    pub table: ObjectId,
    /// Column positions, in key order. Ascending, NULLs last.
    pub columns: Vec<usize>,
    pub unique: bool,
    pub primary: bool,
    pub root: u32,
    /// Snapshots that do not see this transaction must not use the index (it lacks their row versions).
    pub created_by: TxnId,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub oid: ObjectId,
    pub name: String,
    pub columns: Vec<ColumnDef>,
    /// Primary key first.
    pub indexes: Vec<Arc<Index>>,
}

#[derive(Clone, Debug)]
pub struct TableSpec {
    pub name: String,
    pub columns: Vec<ColumnDef>,
    /// Unique constraints and primary key.
    pub indexes: Vec<IndexSpec>,
}

#[derive(Clone, Debug)]
pub struct IndexSpec {
    pub name: String,
    pub columns: Vec<usize>,
    pub unique: bool,
    pub primary: bool,
}

/// All tables as one transaction sees them.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    // by name and by oid
}

/// The seam with transactions: what `txn` and `database` call.
impl Catalog {
    /// Makes the catalogue's own tables in an empty database, inside the first transaction, and returns the catalogue.
    pub(crate) async fn bootstrap(_txn: &mut crate::txn::Txn) -> crate::error::Result<Catalog> {
        todo!()
    }
    /// Reads the catalogue as the transaction sees it (at opening, and after a rollback to a savepoint that undid DDL). Finds its own tables
    /// by fixed object ids.
    pub(crate) async fn load(_txn: &mut crate::txn::Txn) -> crate::error::Result<Catalog> {
        todo!()
    }
}

impl Catalog {
    pub fn table(&self, _name: &str) -> Option<&Arc<Table>> {
        todo!()
    }
    pub fn table_by_oid(&self, _oid: ObjectId) -> Option<&Arc<Table>> {
        todo!()
    }
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        std::iter::empty()
    }
    /// Changes whenever any definition changes: cached plans compare it.
    pub fn version(&self) -> u64 {
        todo!()
    }
}
