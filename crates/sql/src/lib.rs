//! Sessions, AST router, planning with DataFusion, DML, pg_catalog. No files, no pages.
//!
//! In: SQL text and parameters. Out: Arrow batches, command tags, errors with SQLSTATE. DataFusion plans queries and the query
//! part of DML; everything else is carried out here, on the engine's typed API.

mod aggregates;
mod alter;
mod arithmetic;
mod arrays;
mod at_once;
mod bits;
mod bounded;
mod builtin;
mod calendar;
mod cast;
mod chars;
mod checks;
mod choosers;
mod columns;
mod comparable;
mod conflict;
mod context;
mod convert;
mod copy;
mod cursor;
mod database;
mod ddl;
mod depth;
mod dml;
mod error;
mod exact;
mod explain;
mod fast;
mod functions;
mod grammar;
mod insert;
mod interval;
mod lexical;
mod literals;
mod lock_rows;
mod maintain;
mod memory;
mod named;
mod naming;
pub mod observe;
mod operators;
mod panics;
mod parse;
pub mod pgcatalog;
mod pieces;
mod planner;
mod range;
mod refusals;
mod resolve;
mod returning;
mod roles;
mod router;
mod rows;
mod rules;
mod run;
mod savepoint;
mod scan;
pub mod scram;
mod sequence;
pub mod series;
mod session;
mod settings;
mod shapes;
mod sleep;
mod system;
mod to_char;
mod values;
mod windows;
mod yielding;

pub use at_once::FoundRow;
pub use builtin::row_text;
pub use chars::LOOSE;
pub use context::Canceller;
pub use copy::{CopyFormat, CopyIn};
pub use database::{Spill, SqlDatabase};
/// The version that batches are of.
pub use datafusion::arrow;
pub use interval::Shown as ShownInterval;
pub use named::Named;
pub use session::{Outcome, Prepared, Session, TxnStatus};
pub use settings::Reported;
pub use system::SystemSettings;
pub use values::{arrow_type, engine_type};

#[cfg(test)]
mod tests;
