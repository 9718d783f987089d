//! A database inside a program: [`Database`], its sessions, and the typed table API behind them.
//!
//! 1. A database brings its own threads for what goes on in the background. Its futures may be polled by any executor,
//!    on any thread.
//! 2. It closes only when no session is open; dropped without [`Database::close`] it recovers at its next opening,
//!    nothing that was committed is lost.
//! 3. A transaction that is dropped is rolled back.
//! 4. Where storage has failed, a background task's panic included, every statement says why; opening the database
//!    again recovers.

use crate::{Error, Instance};
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use terrace_engine::{Catalog, DataType, Datum, EngineError, Isolation, OpenReport, Txn};
use terrace_sql::arrow::array::RecordBatch;
use terrace_sql::arrow::datatypes::SchemaRef;
use terrace_sql::{Canceller, Outcome, Prepared, SqlDatabase, TxnStatus};
use tokio::runtime::{Handle, Runtime};

/// Whose name sessions bear.
const USER: &str = "terrace";
/// Threads for background work: writing pages home, purging old row versions, checkpoints.
const BACKGROUND_THREADS: usize = 2;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What to do where there is no database yet.
#[derive(Clone, Debug, Default)]
pub struct Options {
    create: Option<String>,
}

impl Options {
    /// Opens what is there.
    pub fn existing() -> Options {
        Options::default()
    }

    /// Makes a database with the default settings where there is none.
    pub fn create() -> Options {
        Options::create_with(crate::config::DEFAULT)
    }

    /// Makes a database with these settings, the text of a `terrace.toml`, where there is none. One that is there keeps
    /// its own.
    pub fn create_with(settings: impl Into<String>) -> Options {
        Options { create: Some(settings.into()) }
    }
}

/// An open database; cheap to clone.
#[derive(Clone)]
pub struct Database(Arc<OpenDatabase>);

struct OpenDatabase {
    /// `None`: closed.
    instance: Mutex<Option<Instance>>,
    engine: terrace_engine::Database,
    sql: SqlDatabase,
    report: OpenReport,
    runtime: Option<Runtime>,
    /// One more holder than sessions are open.
    sessions: Arc<()>,
}

impl Drop for OpenDatabase {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // It may be dropped on a thread that must not wait.
            runtime.shutdown_background();
        }
    }
}

impl Database {
    /// Opens the database in a directory, recovering it where it was not closed; makes it first where `options` say so.
    pub async fn open(path: impl AsRef<Path>, options: Options) -> Result<Database> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(BACKGROUND_THREADS)
            .enable_all()
            .thread_name("terrace")
            .thread_stack_size(crate::SQL_STACK)
            .build()
            .map_err(|error| Error::Io { path: "threads".into(), error })?;
        let dir = path.as_ref();
        let opened = within(runtime.handle(), async {
            if let Some(settings) = &options.create
                && crate::instance::look(dir)? != crate::instance::DirectoryContent::Database
            {
                Instance::create_with(dir, settings).await?;
            }
            Instance::open(dir).await
        });
        let instance = match opened.await {
            Ok(instance) => instance,
            Err(error) => {
                runtime.shutdown_background();
                return Err(error);
            }
        };
        Ok(Database(Arc::new(OpenDatabase {
            engine: instance.database.clone(),
            sql: instance.sql(),
            report: instance.report.clone(),
            instance: Mutex::new(Some(instance)),
            runtime: Some(runtime),
            sessions: Arc::new(()),
        })))
    }

    /// What opening did: how far recovery went, how long it took.
    pub fn report(&self) -> &OpenReport {
        &self.0.report
    }

    /// A session for SQL. (57P01 where the database is closed.)
    pub fn session(&self) -> Result<Session> {
        // Under the lock: `close` sees either the session or no database.
        let instance = self.0.instance.lock();
        if instance.is_none() {
            return Err(closed());
        }
        let (held, engine) = (self.0.sessions.clone(), self.0.engine.clone());
        Ok(Session { sql: self.0.sql.session(USER), engine, runtime: self.handle(), _held: held })
    }

    /// A transaction of the typed table API, which knows no SQL: get, insert, update, delete, scan. Drop it before
    /// closing.
    pub fn begin(&self, isolation: Isolation) -> Txn {
        self.0.engine.begin(isolation)
    }

    /// The tables as they are committed now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.engine.catalog()
    }

    /// The room below SQL: checks, purge, statistics.
    pub fn engine(&self) -> &terrace_engine::Database {
        &self.0.engine
    }

    /// Writes everything home and marks the database as closed, so that the next opening has nothing to recover. 55006
    /// while sessions are open; closing twice does nothing. Its files are free for another opening once all handles are
    /// dropped.
    pub async fn close(&self) -> Result<()> {
        let instance = {
            let mut instance = self.0.instance.lock();
            let sessions = Arc::strong_count(&self.0.sessions) - 1;
            if sessions > 0 {
                let error = EngineError::new("55006", format!("the database is in use by {sessions} sessions"));
                return Err(error.with_hint("drop them first").into());
            }
            instance.take()
        };
        match instance {
            Some(instance) => within(&self.handle(), instance.close()).await,
            None => Ok(()),
        }
    }

    fn handle(&self) -> Handle {
        self.0.runtime.as_ref().expect("taken by drop only").handle().clone()
    }
}

fn closed() -> Error {
    EngineError::new("57P01", "the database is closed").into()
}

/// Polls `work` with the database's threads at hand (invariant 1): whatever it starts, it starts there.
async fn within<T>(runtime: &Handle, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(|context| {
        let _entered = runtime.enter();
        work.as_mut().poll(context)
    })
    .await
}

/// A prepared statement. It belongs to the session that prepared it, and keeps the text where the definitions of its
/// tables change.
#[derive(Clone)]
pub struct Statement(Arc<Prepared>);

impl Statement {
    /// The types of `$1`, `$2`, ...
    pub fn parameters(&self) -> &[DataType] {
        &self.0.parameters
    }

    /// Its result's columns; `None` where it returns no rows.
    pub fn columns(&self) -> Option<&SchemaRef> {
        self.0.columns.as_ref()
    }
}

/// SQL text, or a prepared statement.
#[derive(Clone, Copy)]
pub enum Query<'a> {
    Text(&'a str),
    Prepared(&'a Statement),
}

impl<'a> From<&'a str> for Query<'a> {
    fn from(text: &'a str) -> Self {
        Query::Text(text)
    }
}

impl<'a> From<&'a String> for Query<'a> {
    fn from(text: &'a String) -> Self {
        Query::Text(text)
    }
}

impl<'a> From<&'a Statement> for Query<'a> {
    fn from(statement: &'a Statement) -> Self {
        Query::Prepared(statement)
    }
}

/// What a statement came to.
pub enum Reply {
    Rows(Rows),
    /// A command tag such as `INSERT 0 5`, with warnings.
    Done {
        tag: String,
        notices: Vec<EngineError>,
    },
}

/// Rows as they are produced. The statement ends (and, outside a transaction, commits) when they have been read to
/// their end.
pub struct Rows {
    schema: SchemaRef,
    stream: BoxStream<'static, terrace_engine::Result<RecordBatch>>,
    runtime: Handle,
    prepared: Arc<Prepared>,
    rows: u64,
}

impl Rows {
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let batch = within(&self.runtime, self.stream.next()).await.transpose()?;
        self.rows += batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
        Ok(batch)
    }

    /// The command tag of what was read so far, e.g. `SELECT 3`.
    pub fn tag(&self) -> String {
        self.prepared.tag(self.rows)
    }
}

/// One line of work: a transaction at a time.
pub struct Session {
    sql: terrace_sql::Session,
    engine: terrace_engine::Database,
    runtime: Handle,
    _held: Arc<()>,
}

impl Session {
    /// Runs a statement (or, where there are no parameters, several, as one transaction) and returns how many rows the
    /// last one changed or returned.
    pub async fn execute<'q>(&mut self, query: impl Into<Query<'q>>, parameters: &[Datum]) -> Result<u64> {
        let query = query.into();
        if let (Query::Text(text), []) = (query, parameters) {
            let mut statements = self.sql.split(text)?;
            if statements.len() > 1 {
                return self.execute_all(std::mem::take(&mut statements)).await;
            }
        }
        self.count(query, parameters).await
    }

    async fn execute_all(&mut self, statements: Vec<String>) -> Result<u64> {
        let mut result = Ok(0);
        for text in &statements {
            // Also after a COMMIT among them.
            within(&self.runtime, self.sql.begin_message()).await;
            result = self.count(Query::Text(text), &[]).await;
            if result.is_err() {
                break;
            }
        }
        let ended = within(&self.runtime, self.sql.sync()).await;
        let rows = result?;
        ended?;
        Ok(rows)
    }

    async fn count(&mut self, query: Query<'_>, parameters: &[Datum]) -> Result<u64> {
        let tag = match self.run(query, parameters).await? {
            Reply::Done { tag, .. } => tag,
            Reply::Rows(mut rows) => {
                while rows.next().await?.is_some() {}
                rows.tag()
            }
        };
        Ok(tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0))
    }

    /// Runs a query and returns all its rows; at least one batch, which knows the columns.
    pub async fn query<'q>(&mut self, query: impl Into<Query<'q>>, parameters: &[Datum]) -> Result<Vec<RecordBatch>> {
        let prepared = self.statement(query.into()).await?;
        let values = bind(&prepared, parameters)?;
        if let Some(schema) = &prepared.columns {
            let mut found = None;
            if self.sql.look_up(&prepared, &values, |row| found = Some(row.batch(schema))).is_some() {
                return Ok(vec![found.transpose()?.unwrap_or_else(|| RecordBatch::new_empty(schema.clone()))]);
            }
        }
        match self.run_bound(prepared, values).await? {
            Reply::Done { tag, .. } => {
                Err(EngineError::new("42601", format!("the statement returns no rows ({tag}); use execute")).into())
            }
            Reply::Rows(mut rows) => {
                let mut batches = vec![];
                while let Some(batch) = rows.next().await? {
                    batches.push(batch);
                }
                if batches.is_empty() {
                    batches.push(RecordBatch::new_empty(rows.schema().clone()));
                }
                Ok(batches)
            }
        }
    }

    /// Runs one statement, its rows as they come.
    pub async fn run<'q>(&mut self, query: impl Into<Query<'q>>, parameters: &[Datum]) -> Result<Reply> {
        let prepared = self.statement(query.into()).await?;
        let values = bind(&prepared, parameters)?;
        self.run_bound(prepared, values).await
    }

    async fn statement(&mut self, query: Query<'_>) -> Result<Arc<Prepared>> {
        if let Some(failure) = self.engine.failure() {
            return Err(failure.with_hint("Close the database and open it again.").into());
        }
        Ok(match query {
            Query::Text(text) => self.prepare(text).await?.0,
            Query::Prepared(statement) => statement.0.clone(),
        })
    }

    async fn run_bound(&mut self, prepared: Arc<Prepared>, values: Vec<Datum>) -> Result<Reply> {
        let runtime = self.runtime.clone();
        Ok(match within(&runtime, self.sql.execute(&prepared, values)).await? {
            Outcome::Rows { schema, stream } => Reply::Rows(Rows { schema, stream, runtime, prepared, rows: 0 }),
            Outcome::Command { tag, notices } => Reply::Done { tag, notices },
            Outcome::CopyIn(_) | Outcome::CopyOut { .. } => {
                // What it waits for does not come.
                within(&runtime, self.sql.fail()).await;
                let error = EngineError::new("0A000", "COPY needs a connection of the wire protocol");
                return Err(error.with_hint("use INSERT with parameters, or serve the database").into());
            }
            Outcome::Empty => Reply::Done { tag: String::new(), notices: vec![] },
        })
    }

    /// Parses one statement, with `$1`, `$2`, ... for parameters.
    pub async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        Ok(Statement(within(&self.runtime, self.sql.prepare(sql, &[])).await?))
    }

    /// Begins a transaction: READ COMMITTED, or what `default_transaction_isolation` is set to.
    pub async fn transaction(&mut self) -> Result<Transaction<'_>> {
        if self.sql.status() != TxnStatus::Idle {
            return Err(EngineError::new("25001", "there is already a transaction in progress").into());
        }
        self.execute("BEGIN", &[]).await?;
        Ok(Transaction { session: self, ended: false })
    }

    /// Splits a text at its semicolons (42601 where it is no SQL).
    pub fn split(&self, sql: &str) -> Result<Vec<String>> {
        Ok(self.sql.split(sql)?)
    }

    /// Gives up what is open; it is rolled back in the background.
    pub(crate) fn abandon(&mut self) {
        let _entered = self.runtime.enter();
        self.sql.abandon();
    }

    pub fn status(&self) -> TxnStatus {
        self.sql.status()
    }

    /// Cancels, from another task or thread, what this session runs (57014).
    pub fn canceller(&self) -> Canceller {
        self.sql.canceller()
    }
}

/// A transaction of a session, rolled back where it is dropped without `commit`. Use it as a session.
pub struct Transaction<'s> {
    session: &'s mut Session,
    ended: bool,
}

impl Transaction<'_> {
    /// Returns when the commit is durable. 25P02 where a statement had failed: everything was rolled back.
    pub async fn commit(mut self) -> Result<()> {
        self.ended = true;
        let failed = self.session.sql.status() == TxnStatus::Failed;
        self.session.execute("COMMIT", &[]).await?;
        if failed {
            return Err(
                EngineError::new("25P02", "a statement of the transaction had failed: it was rolled back").into()
            );
        }
        Ok(())
    }

    pub async fn rollback(mut self) -> Result<()> {
        self.ended = true;
        self.session.execute("ROLLBACK", &[]).await.map(|_| ())
    }
}

impl std::ops::Deref for Transaction<'_> {
    type Target = Session;
    fn deref(&self) -> &Session {
        self.session
    }
}

impl std::ops::DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Session {
        self.session
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.session.abandon();
        }
    }
}

/// Gives each value the type that its parameter has: as PostgreSQL reads a literal. 08P01 for a wrong number of them.
fn bind(prepared: &Prepared, parameters: &[Datum]) -> Result<Vec<Datum>> {
    if parameters.len() != prepared.parameters.len() {
        let (given, wanted) = (parameters.len(), prepared.parameters.len());
        return Err(EngineError::new("08P01", format!("{given} parameters given, the statement has {wanted}")).into());
    }
    let typed = |(value, data_type): (&Datum, &DataType)| match data_type.admits(value.as_ref()) {
        Ok(()) => Ok(value.clone()),
        Err(_) => data_type.parse(&value.to_string()),
    };
    let values: terrace_engine::Result<_> = parameters.iter().zip(&prepared.parameters).map(typed).collect();
    Ok(values?)
}

/// Values for a statement's parameters, from Rust values: `params![7, "seven", None::<i64>]`.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::Datum::from($value)),*] };
}
