//! A database in memory, and clients of it.
#![allow(dead_code, reason = "each test file uses a part")]
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::util::display::array_value_to_string;
use futures::StreamExt;
use std::sync::Arc;
use terrace_device::MemoryDevice;
use terrace_engine::{DataType, Database, Datum, DatumRef, EngineConfig, EngineError};
use terrace_env::{Env, Real};
use terrace_sql::{Arrays, Outcome, Prepared, Session, SqlDatabase, is_decimal, stored_decimals};
use terrace_storage::log::archive::Archive;
use terrace_storage::{DeviceSet, StorageConfig};

pub(crate) fn device(name: &str) -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new(name, 1 << 34))
}

pub(crate) async fn database() -> SqlDatabase {
    database_archived(None).await
}

pub(crate) async fn database_archived(archive: Option<Archive>) -> SqlDatabase {
    made(archive, EngineConfig::default()).await
}

pub(crate) async fn database_with(engine: EngineConfig) -> SqlDatabase {
    made(None, engine).await
}

async fn made(archive: Option<Archive>, engine: EngineConfig) -> SqlDatabase {
    let env: Env = Real::on(tokio::runtime::Handle::current());
    let devices = DeviceSet::from_fn(|name| device(name));
    let small =
        StorageConfig { pool_bytes: 32 << 20, segment_size: 1 << 20, log_buffer: 1 << 20, ..Default::default() };
    let storage = StorageConfig { archive, ..small };
    let engine = Database::create(env, devices, storage, engine).await.expect("an empty database");
    SqlDatabase::new(engine)
}

#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    /// Rows as `a|b`, NULL as `NULL`.
    Rows(Vec<String>),
    Tag(String),
    /// With a notice's SQLSTATE.
    Notice(String, String),
    Empty,
}

pub(crate) struct Client {
    db: SqlDatabase,
    pub(crate) session: Session,
}

impl Client {
    pub(crate) fn new(db: &SqlDatabase) -> Client {
        Client::of(db, "terrace")
    }

    pub(crate) fn of(db: &SqlDatabase, role: &str) -> Client {
        Client { db: db.clone(), session: db.session(role) }
    }

    pub(crate) async fn run(&mut self, sql: &str) -> Result<Reply, EngineError> {
        self.run_with(sql, vec![]).await
    }

    pub(crate) async fn run_with(&mut self, sql: &str, parameters: Vec<Datum>) -> Result<Reply, EngineError> {
        let statement = self.session.prepare(sql, &[]).await?;
        self.execute(&statement, parameters).await
    }

    pub(crate) async fn rows_of(
        &mut self,
        statement: &Arc<Prepared>,
        parameters: Vec<Datum>,
    ) -> Result<Vec<String>, EngineError> {
        match self.execute(statement, parameters).await? {
            Reply::Rows(rows) => Ok(rows),
            other => panic!("{}: {other:?} instead of rows", statement.sql),
        }
    }

    pub(crate) async fn execute(
        &mut self,
        statement: &Arc<Prepared>,
        parameters: Vec<Datum>,
    ) -> Result<Reply, EngineError> {
        let outcome = self.session.execute(statement, parameters).await?;
        self.reply(statement, outcome).await
    }

    /// As the simple protocol runs a text.
    pub(crate) async fn text(&mut self, sql: &str) -> Result<Reply, EngineError> {
        if let Some((statement, values)) = self.session.prepare_text(sql).await
            && let Some(outcome) = self.session.execute_text(&statement, values).await
        {
            return self.reply(&statement, outcome?).await;
        }
        self.run(sql).await
    }

    async fn reply(&mut self, statement: &Arc<Prepared>, outcome: Outcome) -> Result<Reply, EngineError> {
        let sql = &statement.sql;
        match outcome {
            Outcome::Empty => Ok(Reply::Empty),
            Outcome::CopyIn(_) | Outcome::CopyOut { .. } => panic!("{sql}: COPY has tests of its own"),
            Outcome::Command { tag, notices } => match notices.first() {
                None => Ok(Reply::Tag(tag)),
                Some(notice) => Ok(Reply::Notice(tag, notice.state.0.into())),
            },
            Outcome::Rows { schema, mut stream } => {
                let described = statement.columns.as_ref().expect("rows were described");
                // Where columns come from may have changed since, as by TRUNCATE.
                assert_eq!(described.fields(), schema.fields(), "as described: {sql}");
                let mut rows = vec![];
                while let Some(batch) = stream.next().await {
                    let batch = batch?;
                    for row in 0..batch.num_rows() {
                        let cell = |at: usize| match batch.column(at).is_null(row) {
                            true => "NULL".to_string(),
                            false => shown(batch.column(at), row),
                        };
                        rows.push((0..batch.num_columns()).map(cell).collect::<Vec<_>>().join("|"));
                    }
                }
                Ok(Reply::Rows(rows))
            }
        }
    }

    /// Runs a statement to its end and forgets what it answers.
    pub(crate) async fn run_loosely(&mut self, sql: &str) -> Result<(), EngineError> {
        let statement = self.session.prepare(sql, &[]).await?;
        let parameters = statement.parameters.iter().map(|_| Datum::Null).collect();
        match self.session.execute(&statement, parameters).await? {
            Outcome::Rows { mut stream, .. } => {
                while let Some(batch) = stream.next().await {
                    batch?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A command that must succeed.
    pub(crate) async fn ok(&mut self, sql: &str, tag: &str) {
        match self.run(sql).await {
            Ok(reply) => assert_eq!(reply, Reply::Tag(tag.into()), "{sql}"),
            Err(error) => panic!("{sql}: {} {error}", error.state.0),
        }
    }

    /// A query and its rows, in any order.
    pub(crate) async fn rows(&mut self, sql: &str, expected: &[&str]) {
        let Reply::Rows(mut rows) = self.run(sql).await.unwrap_or_else(|e| panic!("{sql}: {} {e}", e.state.0)) else {
            panic!("{sql}: no rows")
        };
        if !sql.contains("ORDER BY") {
            rows.sort();
        }
        assert_eq!(rows, expected, "{sql}");
    }

    pub(crate) async fn fails(&mut self, sql: &str, state: &str) -> EngineError {
        match self.run(sql).await {
            Ok(reply) => panic!("{sql}: {reply:?} instead of {state}"),
            Err(error) => {
                assert_eq!(error.state.0, state, "{sql}: {error}");
                error
            }
        }
    }

    /// The names and types of a query's columns.
    pub(crate) async fn columns(&mut self, sql: &str) -> Vec<(String, String)> {
        let statement = self.session.prepare(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        let columns = statement.columns.as_ref().expect("a query");
        columns.fields().iter().map(|f| (f.name().clone(), f.data_type().to_string())).collect()
    }

    pub(crate) async fn session_catalog(&mut self) -> Arc<terrace_engine::Catalog> {
        self.db.engine.catalog()
    }

    pub(crate) async fn parameters(&mut self, sql: &str) -> Vec<DataType> {
        self.session.prepare(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e}")).parameters.clone()
    }
}

/// Queries, each with its one row.
pub(crate) async fn answers(c: &mut Client, cases: &[(&str, &str)]) {
    for (sql, answer) in cases {
        c.rows(sql, &[answer]).await;
    }
}

/// Statements that fail, each with its SQLSTATE.
pub(crate) async fn refusals(c: &mut Client, cases: &[(&str, &str)]) {
    for (sql, state) in cases {
        c.fails(sql, state).await;
    }
}

/// A value's text.
fn shown(column: &ArrayRef, row: usize) -> String {
    match column.data_type() {
        of if is_decimal(of) => DatumRef::Decimal(stored_decimals(column).value(row)).to_string(),
        _ if let Some(arrays) = Arrays::of(column) => {
            if arrays.lists().is_null(row) {
                return String::new();
            }
            let items = arrays.lists().value(row);
            let item = |at: usize| if items.is_null(at) { String::new() } else { shown(&items, at) };
            format!("[{}]", (0..items.len()).map(item).collect::<Vec<_>>().join(", "))
        }
        _ => array_value_to_string(column, row).expect("a value prints"),
    }
}
