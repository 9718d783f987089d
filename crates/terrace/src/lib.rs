//! Terrace, for programs that embed it: a database in a directory.
//!
//! [`Instance`] opens a directory made by `terrace init` (or [`Instance::create`]); its [`engine::Database`] has the typed table
//! API, [`sql::SqlDatabase`] understands SQL. Call within a multi-threaded tokio runtime that has time enabled; threads that run SQL need
//! a stack of [`SQL_STACK`].
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let instance = terrace::Instance::open("mydb".as_ref()).await?;
//! println!("{} tables", instance.database.catalog().tables().count());
//! instance.close().await?;
//! # Ok(())
//! # }
//! ```

pub mod config;
pub mod instance;

pub use config::{Config, ConfigError};
pub use instance::{Error, Instance};
pub use terrace_device as device;
pub use terrace_engine as engine;
pub use terrace_env as env;
pub use terrace_sql as sql;
pub use terrace_storage as storage;

/// Bytes of stack for threads that plan SQL: deep expressions recurse.
pub const SQL_STACK: usize = 8 << 20;
