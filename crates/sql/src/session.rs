//! A session: one client's transaction, settings and prepared statements.
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use futures::stream::BoxStream;
use std::sync::Arc;
use terrace_engine::{DataType, Database, Datum, EngineError, Result};

/// A database with its SQL machinery; cheap to clone.
#[derive(Clone)]
pub struct SqlDatabase {
    pub engine: Database,
}

/// As ReadyForQuery reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxnStatus {
    Idle,
    InTransaction,
    Failed,
}

/// A parsed (and, where it is a query, planned) statement with parameters.
pub struct Prepared {
    pub sql: String,
    /// Inferred or given.
    pub parameters: Vec<DataType>,
    /// Result columns, `None` where it returns no rows.
    pub columns: Option<SchemaRef>,
}

pub enum Outcome {
    /// Rows as they are produced. The tag's row count is theirs.
    Rows { schema: SchemaRef, stream: BoxStream<'static, Result<RecordBatch>> },
    /// A command tag, e.g. `INSERT 0 5`, `CREATE TABLE`; `notice` for warnings.
    Command { tag: String, notices: Vec<EngineError> },
    /// The statement was empty.
    Empty,
}

/// Cancels what a session runs, from another task.
#[derive(Clone)]
pub struct Canceller {}

impl Canceller {
    pub fn cancel(&self) {
        todo!()
    }
}

pub struct Session {}

impl SqlDatabase {
    pub fn new(engine: Database) -> SqlDatabase {
        SqlDatabase { engine }
    }
    pub fn session(&self, _user: &str) -> Session {
        todo!()
    }
}

impl Session {
    pub fn status(&self) -> TxnStatus {
        todo!()
    }
    pub fn canceller(&self) -> Canceller {
        todo!()
    }
    /// Splits a simple-protocol string into statements' texts (42601 on a syntax error).
    pub fn split(&self, _sql: &str) -> Result<Vec<String>> {
        todo!()
    }
    /// Parses one statement. `types`: parameter types the client stated.
    pub async fn prepare(&mut self, _sql: &str, _types: &[Option<DataType>]) -> Result<Arc<Prepared>> {
        todo!()
    }
    /// Runs a statement. Outside an explicit transaction the statement commits by itself, before `Outcome` says it is done (for
    /// rows: when the stream ends). A failed statement inside one makes the status Failed (25P02 until rolled back).
    pub async fn execute(&mut self, _statement: &Arc<Prepared>, _parameters: Vec<Datum>) -> Result<Outcome> {
        todo!()
    }
    /// Ends the implicit transaction of a pipeline (Sync) or of a multi-statement simple query.
    pub async fn sync(&mut self) -> Result<()> {
        todo!()
    }
    /// Rolls back what is open: the client left.
    pub async fn close(self) {
        todo!()
    }
}
