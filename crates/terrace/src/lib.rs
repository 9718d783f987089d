//! Terrace, for programs that embed it: a database in a directory.
//!
//! [`Database`] opens (or makes) one. Sessions understand SQL and answer with Arrow's record batches:
//!
//! ```
//! use terrace::arrow::array::AsArray;
//! use terrace::arrow::datatypes::Int64Type;
//! use terrace::{Database, Options, params};
//!
//! # fn main() -> terrace::Result<()> { futures::executor::block_on(example()) }
//! # async fn example() -> terrace::Result<()> {
//! # let dir = std::env::temp_dir().join(format!("terrace-doc-sql-{}", std::process::id()));
//! let db = Database::open(&dir, Options::create()).await?;
//! let mut session = db.session()?;
//! session.execute("CREATE TABLE fruit (name text PRIMARY KEY, n bigint NOT NULL)", &[]).await?;
//! let insert = session.prepare("INSERT INTO fruit VALUES ($1, $2)").await?;
//! let mut txn = session.transaction().await?;
//! for (name, n) in [("apple", 3), ("pear", 4)] {
//!     txn.execute(&insert, params![name, n]).await?;
//! }
//! txn.commit().await?;
//! let error = session.execute(&insert, params!["pear", 1]).await.unwrap_err();
//! assert_eq!(error.sqlstate(), "23505");
//! let batches = session.query("SELECT sum(n)::bigint FROM fruit WHERE n > $1", params![1]).await?;
//! assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().value(0), 7);
//! drop(session);
//! db.close().await?;
//! # std::fs::remove_dir_all(dir).ok();
//! # Ok(())
//! # }
//! ```
//!
//! The typed table API below SQL is the quicker one; both see the same tables:
//!
//! ```
//! use terrace::engine::{ColumnDef, DataType, DatumRef, IndexSpec, Isolation, TableSpec};
//! use terrace::{Database, Datum, Options};
//!
//! # fn main() -> terrace::Result<()> { futures::executor::block_on(example()) }
//! # async fn example() -> terrace::Result<()> {
//! # let dir = std::env::temp_dir().join(format!("terrace-doc-typed-{}", std::process::id()));
//! let db = Database::open(&dir, Options::create()).await?;
//! let mut txn = db.begin(Isolation::ReadCommitted);
//! let key = IndexSpec { name: "fruit_pkey".into(), columns: vec![0], unique: true, primary: true, extras: None };
//! let columns = vec![ColumnDef::new("id", DataType::Int4).not_null(), ColumnDef::new("name", DataType::Text)];
//! let fruit = txn.create_table(TableSpec { name: "fruit".into(), columns, indexes: vec![key] }).await?;
//! txn.insert(&fruit, &[Datum::Int4(1), Datum::text("apple")]).await?;
//! txn.commit().await?;
//!
//! let mut txn = db.begin(Isolation::ReadCommitted);
//! let (rid, row, version) = txn.get(&fruit, &fruit.indexes[0], &[Datum::Int4(1)]).await?.expect("inserted above");
//! assert_eq!(row.view(&fruit).get(1), DatumRef::Text("apple"));
//! txn.update(&fruit, rid, version, &[Datum::Int4(1), Datum::text("pear")]).await?;
//! txn.commit().await?;
//! db.close().await?;
//! # std::fs::remove_dir_all(dir).ok();
//! # Ok(())
//! # }
//! ```
//!
//! [`blocking`] is for programs without `async`. [`Instance`] is the level below: a directory's devices, for tools.

pub mod admin;
pub mod backup;
pub mod blocking;
pub mod config;
pub mod embed;
pub mod instance;
pub mod restore;
pub mod settings;
mod time;

pub use config::{Config, ConfigError};
pub use embed::{Database, Options, Query, Reply, Result, Rows, Session, Statement, Transaction};
pub use instance::{Error, Instance};
pub use terrace_device as device;
pub use terrace_engine as engine;
pub use terrace_engine::Datum;
pub use terrace_env as env;
pub use terrace_sql as sql;
pub use terrace_sql::arrow;
pub use terrace_storage as storage;

/// Bytes of stack for threads that plan SQL: deep expressions recurse.
pub const SQL_STACK: usize = 8 << 20;
