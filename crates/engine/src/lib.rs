//! Types, row and key codecs, catalogue, transactions, locks, purge, typed table API. No SQL text, no DataFusion.
//!
//! In: typed rows and keys. Out: rows, versions, errors with SQLSTATE. Never: SQL, devices.

pub mod advisory;
pub mod catalog;
mod check;
pub mod database;
pub mod ddl;
pub mod error;
mod histories;
pub mod key;
mod leaving;
pub mod locks;
mod peek;
mod purge;
mod record;
pub mod row;
mod serializable;
pub mod snapshots;
pub mod status;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod txn;
pub mod types;
mod usage;
mod versions;

pub use catalog::domains::{Domain, DomainCheck};
pub use catalog::foreign::{Action, ForeignKey, may_refer};
pub use catalog::names::{Among, Names, Placing, RelationName, Space};
pub use catalog::path::{SearchPath, Step, Viewer};
pub use catalog::roles::{FIRST_ROLE, Role};
pub use catalog::temporary::OnCommit;
pub use catalog::views::{View, ViewCheck, ViewUse};
pub use catalog::{Catalog, Check, ColumnDef, Index, IndexSpec, Statistics, Table, TableSpec};
pub use database::{Database, DatabaseStats, EngineConfig, OpenReport};
pub use error::{EngineError, Result, Shown, SqlState};
pub use locks::LockMode;
pub use peek::Peek;
pub use row::{RowBuf, RowView};
pub use snapshots::{Paused, Underway};
pub use txn::InsertOutcome;
pub use txn::{
    Begun, Change, Consequence, IndexRange, Isolation, LockWait, RowLock, RowLockOutcome, Savepoint, Scan,
    ScanDirection, Scanner, Txn, UpdateOutcome, Version,
};
pub use types::{DataType, Datum, DatumRef};
pub use usage::{Counts, Ended};
