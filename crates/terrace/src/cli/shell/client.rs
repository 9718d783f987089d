//! The connection: statements through PostgreSQL's simple query protocol, Ctrl-C cancels the one that runs.

use super::print::Row;
use crate::Failure;
use crate::cli::remote;
use futures::StreamExt;
use tokio_postgres::error::{DbError, ErrorPosition};
use tokio_postgres::{AsyncMessage, NoTls, SimpleQueryMessage};

pub(super) struct Client {
    client: tokio_postgres::Client,
}

pub(super) enum StatementOutcome {
    Rows {
        columns: Vec<String>,
        rows: Vec<Row>,
    },
    /// What was done.
    Done(String),
}

/// Why a statement failed.
pub(super) struct Problem {
    error: tokio_postgres::Error,
    /// There is no connection any more.
    pub(super) fatal: bool,
}

impl Client {
    pub(super) async fn connect(config: &tokio_postgres::Config) -> Result<Client, Failure> {
        let connected = config.connect(NoTls).await;
        let (client, mut connection) = connected.map_err(|error| remote::refused(config, &error))?;
        tokio::spawn(async move {
            while let Some(message) = futures::future::poll_fn(|context| connection.poll_message(context)).await {
                match message {
                    Ok(AsyncMessage::Notice(notice)) => eprintln!("{}: {}", notice.severity(), notice.message()),
                    Ok(_) => {}
                    // The statement that waits for an answer tells.
                    Err(_) => return,
                }
            }
        });
        Ok(Client { client })
    }

    pub(super) fn raw(&self) -> &tokio_postgres::Client {
        &self.client
    }

    pub(super) fn problem(&self, error: tokio_postgres::Error) -> Problem {
        let fatal = error.is_closed() || (error.as_db_error().is_none() && self.client.is_closed());
        Problem { error, fatal }
    }

    /// What the statements came to, up to the one that failed.
    pub(super) async fn run(&mut self, sql: &str) -> (Vec<StatementOutcome>, Option<Problem>) {
        let mut outcomes = vec![];
        let problem = self.run_into(sql, &mut outcomes).await.err();
        (outcomes, problem.map(|error| self.problem(error)))
    }

    async fn run_into(&self, sql: &str, outcomes: &mut Vec<StatementOutcome>) -> Result<(), tokio_postgres::Error> {
        let work = async {
            let mut messages = Box::pin(self.client.simple_query_raw(sql).await?);
            let mut open = None;
            while let Some(message) = messages.next().await {
                match message? {
                    SimpleQueryMessage::RowDescription(columns) => {
                        open = Some((columns.iter().map(|c| c.name().to_string()).collect(), Vec::<Row>::new()));
                    }
                    SimpleQueryMessage::Row(row) => {
                        let cells = (0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect();
                        if let Some((_, rows)) = &mut open {
                            rows.push(cells);
                        }
                    }
                    SimpleQueryMessage::CommandComplete(count) => outcomes.push(match open.take() {
                        Some((columns, rows)) => StatementOutcome::Rows { columns, rows },
                        None => StatementOutcome::Done(tag(sql, count)),
                    }),
                    _ => {}
                }
            }
            Ok(())
        };
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                // A statement that ends meanwhile has won.
                Ok(()) = tokio::signal::ctrl_c() => drop(self.client.cancel_token().cancel_query(NoTls).await),
            }
        }
    }
}

/// The protocol's library tells the count only: the words are the statement's own.
fn tag(sql: &str, count: u64) -> String {
    let words = crate::cli::shell::meta::plain_words(sql);
    let word = |at: usize| words.get(at).map(|word| word.to_uppercase()).unwrap_or_default();
    match word(0).as_str() {
        "INSERT" => format!("INSERT 0 {count}"),
        first @ ("UPDATE" | "DELETE" | "COPY" | "SELECT" | "WITH") => format!("{first} {count}"),
        "CREATE" if word(1) == "UNIQUE" => "CREATE INDEX".to_string(),
        first @ ("CREATE" | "DROP" | "ALTER") => format!("{first} {}", word(1)),
        first => first.to_string(),
    }
}

fn reason(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => told(error, None),
        None => std::error::Error::source(error).map_or_else(|| error.to_string(), |source| source.to_string()),
    }
}

fn told(error: &DbError, sql: Option<&str>) -> String {
    let mut text = format!("{}:  {}: {}", error.severity(), error.code().code(), error.message());
    if let (Some(sql), Some(ErrorPosition::Original(at))) = (sql, error.position()) {
        let before: String = sql.chars().take((*at as usize).saturating_sub(1)).collect();
        text += &format!(
            "\nLINE {}: {}",
            before.matches('\n').count() + 1,
            sql.lines().nth(before.matches('\n').count()).unwrap_or("")
        );
    }
    for (name, part) in [("DETAIL", error.detail()), ("HINT", error.hint())] {
        if let Some(part) = part {
            text += &format!("\n{name}:  {part}");
        }
    }
    text
}

impl Problem {
    pub(super) fn told(&self, sql: &str) -> String {
        match self.error.as_db_error() {
            Some(error) => told(error, Some(sql)),
            None => reason(&self.error),
        }
    }
}
