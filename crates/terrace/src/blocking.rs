//! The same for programs without `async`: each call waits on the caller's thread.
//!
//! ```
//! # fn main() -> terrace::Result<()> {
//! # let dir = std::env::temp_dir().join(format!("terrace-doc-blocking-{}", std::process::id()));
//! use terrace::{Options, blocking, params};
//!
//! let db = blocking::Database::open(&dir, Options::create())?;
//! let mut session = db.session()?;
//! session.execute("CREATE TABLE t (k int PRIMARY KEY, v text)", &[])?;
//! session.execute("INSERT INTO t VALUES ($1, $2)", params![1, "one"])?;
//! assert_eq!(session.query("SELECT v FROM t", &[])?[0].num_rows(), 1);
//! drop(session);
//! db.close()?;
//! # std::fs::remove_dir_all(dir).ok();
//! # Ok(())
//! # }
//! ```

use crate::embed::{self, Options, Query, Result, Statement};
use futures::executor::block_on;
use std::path::Path;
use terrace_engine::Datum;
use terrace_sql::arrow::array::RecordBatch;

/// An open database; cheap to clone. `async_database` leads to everything else.
#[derive(Clone)]
pub struct Database(embed::Database);

impl Database {
    /// As [`embed::Database::open`].
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Database> {
        block_on(embed::Database::open(path, options)).map(Database)
    }

    pub fn session(&self) -> Result<Session> {
        self.0.session().map(Session)
    }

    /// As [`embed::Database::close`].
    pub fn close(&self) -> Result<()> {
        block_on(self.0.close())
    }

    pub fn async_database(&self) -> &embed::Database {
        &self.0
    }
}

/// As [`embed::Session`].
pub struct Session(embed::Session);

impl Session {
    pub fn execute<'q>(&mut self, query: impl Into<Query<'q>>, parameters: &[Datum]) -> Result<u64> {
        block_on(self.0.execute(query, parameters))
    }

    pub fn query<'q>(&mut self, query: impl Into<Query<'q>>, parameters: &[Datum]) -> Result<Vec<RecordBatch>> {
        block_on(self.0.query(query, parameters))
    }

    pub fn prepare(&mut self, sql: &str) -> Result<Statement> {
        block_on(self.0.prepare(sql))
    }

    /// Runs `work` in a transaction: committed where it succeeds, rolled back where it fails or panics.
    pub fn transaction<T>(&mut self, work: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        self.execute("BEGIN", &[])?;
        let guard = Guard(self);
        let done = work(guard.0);
        match done {
            Ok(value) => {
                let failed = guard.0.0.status() == terrace_sql::TxnStatus::Failed;
                guard.0.execute("COMMIT", &[])?;
                if failed {
                    let message = "a statement of the transaction had failed: it was rolled back";
                    return Err(terrace_engine::EngineError::new("25P02", message).into());
                }
                Ok(value)
            }
            Err(error) => Err(error),
        }
    }
}

/// Rolls back what is still open when it goes.
struct Guard<'s>(&'s mut Session);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.0.abandon();
    }
}
