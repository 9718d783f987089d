//! Types, row and key codecs, catalogue, transactions, locks, purge, typed table API. No SQL text, no DataFusion.
//!
//! In: typed rows and keys. Out: rows, versions, errors with SQLSTATE. Never: SQL, devices.

pub mod catalog;
pub mod database;
mod ddl;
pub mod error;
pub mod key;
pub mod locks;
pub mod row;
pub mod txn;
pub mod types;

pub use catalog::{Catalog, ColumnDef, Index, IndexSpec, Table, TableSpec};
pub use database::{Database, EngineConfig, OpenReport};
pub use error::{EngineError, Result, SqlState};
pub use row::{RowBuf, RowView};
pub use txn::{IndexRange, Isolation, Scan, ScanDirection, Scanner, Txn, UpdateOutcome, Version};
pub use types::{DataType, Datum, DatumRef};
