//! Sessions, AST router, planning with DataFusion, DML operator, pg_catalog. No files, no pages.
pub mod session;
pub use session::{Canceller, Outcome, Prepared, Session, SqlDatabase, TxnStatus};
