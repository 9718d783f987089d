//! SQL over the engine: sessions, parsing, planning with DataFusion, changes of rows, `pg_catalog`. No pages, and no
//! files but those that queries name.
//!
//! In: SQL text and parameters. Out: Arrow batches, command tags, errors with SQLSTATE. DataFusion plans queries and
//! the query part of changes; everything else is carried out here, on the engine's typed API.
//!
//! The rooms, highest first. Each may use those below it, and its file says what it is for:
//!
//! ```text
//! session       one client: transaction, settings, prepared statements, cursors
//! statement     what each statement does, and what it is described as
//! database      what the sessions of a database share
//! by_key        statements on a row by its key, which pass the planner by
//! plan          from a tree to DataFusion's plan; our rules; scans
//! pgcatalog     pg_catalog, information_schema and the views of terrace
//! through       views through which rows are changed
//! access        who acts, and what that role may do
//! functions     the functions, operators and casts that queries call
//! observe       what goes on, counted and shown
//! parse         from text to trees
//! files         Parquet and CSV files of the server in FROM
//! notify        LISTEN and NOTIFY
//! transaction   what a running statement stands on
//! values, ...   leaves: values, casts, errors, memory, cancelling, settings
//! ```

mod access;
mod by_key;
mod cancel;
mod cast;
mod columns;
mod database;
mod error;
mod files;
mod functions;
mod memory;
mod notify;
pub mod observe;
mod panics;
mod parse;
pub mod pgcatalog;
mod plan;
pub mod scram;
mod session;
mod settings;
mod stack;
mod statement;
mod through;
mod transaction;
mod values;

pub use by_key::FoundRow;
pub use cancel::Canceller;
pub use cast::LOOSE;
pub use database::{Spill, SqlDatabase};
/// The version that batches are of.
pub use datafusion::arrow;
pub use functions::builtin::row_text;
pub use notify::Note;
pub use plan::origins::origins;
pub use session::named::{Named, are_changed};
pub use session::prepared::Prepared;
pub use session::{Session, TxnStatus};
pub use settings::{Reported, SERVER_VERSION, SystemSettings};
pub use statement::copy::binary as copy_binary;
pub use statement::copy::{CopyFormat, CopyIn};
pub use statement::outcome::Outcome;
pub use transaction::Notices;
pub use values::arrays::{Arrays, items_of};
pub use values::decimal::{is_decimal, stored as stored_decimals};
pub use values::{PG_TYPE, PG_TYPMOD, arrow_type, engine_type, enum_of, interval_of};

#[cfg(test)]
mod tests;
