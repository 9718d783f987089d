//! The statements of `slt/*.slt`, whose answers are PostgreSQL's: each file on a server of its own. `scripts/slt`
//! runs the same files against PostgreSQL 15, by these variables:
//!
//! - `TERRACE_SLT_POSTGRES`: the port of a PostgreSQL on loopback that trusts the user postgres. Each file has a
//!   database of its own there.
//! - `TERRACE_SLT_FILE`: only files whose names hold this text.
//! - `TERRACE_SLT_COMPLETE`: writes what PostgreSQL answers into the files, instead of comparing.
use crate::common::Server;
use async_trait::async_trait;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner, default_column_validator, default_validator};
use std::path::{Path, PathBuf};
use tokio_postgres::{Client, Config, Error, NoTls, SimpleQueryMessage};

/// An error that says which.
#[derive(Debug)]
struct Failure(Error);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.as_db_error() {
            Some(error) => write!(f, "{} {}", error.code().code(), error.message()),
            None => write!(f, "{}", self.0),
        }
    }
}

impl std::error::Error for Failure {}

/// A connection to either server.
struct Session {
    client: Client,
    engine: &'static str,
}

#[async_trait]
impl AsyncDB for Session {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let (mut columns, mut rows, mut count) = (None, vec![], 0);
        for message in self.client.simple_query(sql).await.map_err(Failure)? {
            match message {
                SimpleQueryMessage::RowDescription(described) => columns = Some(described.len()),
                SimpleQueryMessage::Row(row) => rows.push((0..row.len()).map(|at| shown(row.get(at))).collect()),
                SimpleQueryMessage::CommandComplete(rows) => count = rows,
                _ => {}
            }
        }
        Ok(match columns {
            Some(columns) => DBOutput::Rows { types: vec![DefaultColumnType::Any; columns], rows },
            None => DBOutput::StatementComplete(count),
        })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        self.engine
    }

    fn error_sql_state(error: &Failure) -> Option<String> {
        error.0.code().map(|state| state.code().to_owned())
    }
}

fn shown(value: Option<&str>) -> String {
    match value {
        None => "NULL".to_owned(),
        Some("") => "(empty)".to_owned(),
        // Blanks that the comparison of lines would not see.
        Some(text) if text.trim() != text => text.replace(' ', "·"),
        Some(text) => text.replace('\n', "\\n"),
    }
}

#[expect(clippy::disallowed_methods, reason = "tests run on tokio")]
async fn connect(config: Config, engine: &'static str) -> Result<Session, Failure> {
    let (client, connection) = config.connect(NoTls).await.map_err(Failure)?;
    tokio::spawn(async { drop(connection.await) });
    Ok(Session { client, engine })
}

fn postgres(port: u16, database: &str) -> Config {
    let mut config = Config::new();
    config.host("127.0.0.1").port(port).user("postgres").dbname(database);
    config
}

/// Runs a file on the server of `config`; the mistakes as text.
async fn run(config: Config, engine: &'static str, file: &Path, complete: bool) -> Result<(), String> {
    let mut runner = Runner::new(|| connect(config.clone(), engine));
    runner.add_label(engine);
    if complete {
        let normal = sqllogictest::default_normalizer;
        return runner
            .update_test_file(file, "\t", default_validator, normal, default_column_validator)
            .await
            .map_err(|error| error.to_string());
    }
    runner.run_file_async(file).await.map_err(|error| error.display(false).to_string())
}

fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let wanted = std::env::var("TERRACE_SLT_FILE").unwrap_or_default();
    let entries = std::fs::read_dir(directory).expect("the folder is there");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.retain(|file| file.to_string_lossy().contains(&wanted));
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_postgresqls() {
    let port = std::env::var("TERRACE_SLT_POSTGRES").ok().map(|port| port.parse().expect("a port"));
    let complete = std::env::var_os("TERRACE_SLT_COMPLETE").is_some();
    let (mut failed, mut count) = (vec![], 0);
    for file in files() {
        count += 1;
        let result = match port {
            Some(port) => {
                let name = format!("slt_{}", file.file_stem().expect("a file").to_string_lossy());
                let admin = connect(postgres(port, "postgres"), "postgres").await.expect("PostgreSQL is there");
                for command in ["DROP DATABASE IF EXISTS", "CREATE DATABASE"] {
                    admin.client.batch_execute(&format!("{command} {name}")).await.expect("a database for the file");
                }
                run(postgres(port, &name), "postgres", &file, complete).await
            }
            None => {
                let server = Server::start().await;
                let result = run(server.config(), "terrace", &file, complete).await;
                server.stop().await.expect("it stops");
                result
            }
        };
        if let Err(error) = result {
            failed.push(format!("{}: {error}", file.display()));
        }
    }
    assert!(count > 0, "there are files");
    assert!(failed.is_empty(), "{} of {count} files:\n{}", failed.len(), failed.join("\n\n"));
}
