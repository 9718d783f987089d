//! `terrace shell`: SQL at a prompt, from a file, a pipe or the command line.
//!
//! Connected, it speaks the wire protocol. Embedded, it opens the database and serves it to itself, so that both answer
//! alike.
//!
//! 1. Input that is not typed stops at its first error, with exit code 1.
//! 2. What is sent is whole statements: the grammar's lexer finds the semicolons that end them.

#![allow(clippy::disallowed_methods, reason = "a prompt has files and a clock")]

mod client;
mod complete;
mod copy;
mod meta;
mod print;

use crate::Failure;
use crate::cli::remote;
use client::{Client, StatementOutcome};
use complete::{Completion, Names};
use copy::Direction;
use print::Style;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use terrace::Instance;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

#[derive(clap::Args)]
pub(crate) struct ShellOptions {
    /// The directory of a database that is not being served.
    #[arg(value_name = "DIR", required_unless_present = "connect")]
    dir: Option<PathBuf>,
    /// A server in place of a directory: HOST:PORT, or postgres://USER@HOST:PORT/terrace. Without TLS; a password is
    /// best put in the environment variable PGPASSWORD.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "dir")]
    connect: Option<String>,
    /// Run these statements (or one \command) and end; may be given several times.
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    commands: Vec<String>,
    /// Print results as CSV.
    #[arg(long)]
    csv: bool,
}

/// As views name its session.
const APPLICATION: &str = "terrace shell";
/// The file in the home directory that typed lines are kept in.
const HISTORY: &str = ".terrace_history";
/// Typed lines kept.
const HISTORY_LINES: usize = 10_000;

pub(crate) async fn shell(options: ShellOptions) -> Result<(), Failure> {
    let Some(dir) = &options.dir else {
        // clap sees to it that one of them is there.
        let address =
            options.connect.as_ref().ok_or_else(|| Failure::Message("name a directory, or --connect".into()))?;
        return run(&options, &remote::named(address, APPLICATION)?).await;
    };
    let instance = Instance::open(dir).await?;
    let ended = embedded(&options, &instance).await;
    let closed = instance.close().await;
    ended?;
    Ok(closed?)
}

/// Serves the database to this process alone.
async fn embedded(options: &ShellOptions, instance: &Instance) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::Message(format!("cannot listen on a loopback port: {error}"));
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    // The one connection is ours: it is made before anything else happens.
    let limits = terrace_server::Limits { max_connections: 1, ..terrace_server::Limits::default() };
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async { drop(stopped.await) };
    let serving = terrace_server::serve(instance.sql(), listener, limits, shutdown);
    let working = async {
        let ended = run(options, &remote::named(&address.to_string(), APPLICATION)?).await;
        drop(stop);
        ended
    };
    let (served, ended) = tokio::join!(serving, working);
    ended?;
    served.map_err(|error| Failure::Message(error.to_string()))
}

async fn run(options: &ShellOptions, server: &tokio_postgres::Config) -> Result<(), Failure> {
    let client = Client::connect(server).await?;
    let style = if options.csv { Style::Csv } else { Style::Table };
    let output = Box::new(std::io::stdout());
    let mut shell = Shell { client, style, timing: false, output, typed: false, over: false, names: Names::default() };
    if !options.commands.is_empty() {
        let mut data = std::io::stdin().lines();
        for command in &options.commands {
            let mut source = command.lines();
            let read = |going: Going| match going {
                Going::Data => data.next().transpose().map_err(unreadable("standard input")),
                _ => Ok(source.next().map(str::to_owned)),
            };
            shell.feed(read, true).await?;
        }
        return Ok(());
    }
    if std::io::stdin().is_terminal() {
        return shell.typed().await;
    }
    let mut lines = std::io::stdin().lock().lines();
    shell
        .feed(|_| tokio::task::block_in_place(|| lines.next().transpose()).map_err(unreadable("standard input")), true)
        .await
}

fn unreadable(what: &str) -> impl Fn(std::io::Error) -> Failure {
    let what = what.to_string();
    move |error| Failure::Message(format!("{what}: {error}"))
}

/// What a line of input led to.
enum Next {
    Go,
    Quit,
}

struct Shell {
    client: Client,
    style: Style,
    timing: bool,
    output: Box<dyn Write + Send>,
    /// At a prompt: errors are told and do not end it.
    typed: bool,
    /// Nobody reads the output any more.
    over: bool,
    /// For completion.
    names: Names,
}

impl Shell {
    /// The prompt: line editing, history, Ctrl-C clears the statement, Ctrl-D leaves.
    async fn typed(&mut self) -> Result<(), Failure> {
        self.typed = true;
        let config = rustyline::Config::builder().max_history_size(HISTORY_LINES);
        let config = config.map_err(|e| Failure::Message(e.to_string()))?.auto_add_history(false);
        let config = config.completion_type(rustyline::CompletionType::List).build();
        let mut editor = rustyline::Editor::<Completion, FileHistory>::with_config(config)
            .map_err(|e| Failure::Message(format!("the terminal: {e}")))?;
        editor.set_helper(Some(Completion { names: self.names.clone(), data: false }));
        self.learn_names().await;
        let history = std::env::var_os("HOME").map(|home| Path::new(&home).join(HISTORY));
        if let Some(path) = &history {
            // There is none at first.
            let _ = editor.load_history(path);
        }
        println!("terrace {}. \\? for help, \\q to leave.", env!("CARGO_PKG_VERSION"));
        let read = |going_on: Going| {
            let prompt = match going_on {
                Going::Fresh => "terrace=> ",
                Going::Statement => "terrace-> ",
                Going::Quoted => "terrace'> ",
                Going::Data => ">> ",
            };
            if let Some(helper) = editor.helper_mut() {
                helper.data = going_on == Going::Data;
            }
            tokio::task::block_in_place(|| {
                loop {
                    match editor.readline(prompt) {
                        Ok(line) => {
                            if going_on != Going::Data {
                                // One that it does not keep is lost: that is all.
                                let _ = editor.add_history_entry(&line);
                            }
                            return Ok(Some(line));
                        }
                        Err(ReadlineError::Interrupted) => return Ok(Some(String::from(ABANDON))),
                        Err(ReadlineError::Eof) => return Ok(None),
                        Err(ReadlineError::Signal(_)) => {}
                        Err(error) => return Err(Failure::Message(format!("the terminal: {error}"))),
                    }
                }
            })
        };
        let ended = self.feed(read, true).await;
        if ended.is_ok() {
            // Ctrl-D leaves the cursor behind the prompt.
            println!();
        }
        if let Some(path) = &history
            && let Err(error) = editor.save_history(path)
        {
            eprintln!("terrace: the history cannot be kept in {}: {error}", path.display());
        }
        ended
    }

    /// Takes lines until there are no more, or `\q`. `last`: a statement without semicolon at the end is run too.
    async fn feed(
        &mut self,
        mut read: impl FnMut(Going) -> Result<Option<String>, Failure>,
        last: bool,
    ) -> Result<(), Failure> {
        let mut text = String::new();
        while !self.over {
            let Some(line) = read(going(&text))? else { break };
            if line == ABANDON {
                text.clear();
                continue;
            }
            if text.trim().is_empty() && line.trim_start().starts_with('\\') {
                text.clear();
                match Box::pin(self.meta(line.trim())).await? {
                    Next::Go => continue,
                    Next::Quit => return Ok(()),
                }
            }
            text.push_str(&line);
            text.push('\n');
            while let Some(end) = terrace_grammar::statement_end(&text) {
                let rest = text.split_off(end);
                let statement = std::mem::replace(&mut text, rest);
                self.statement_or_copy(&statement, &mut read).await?;
            }
        }
        if last && !self.over && !text.trim().is_empty() && !self.typed {
            self.statement_or_copy(&text, &mut read).await?;
        }
        Ok(())
    }

    async fn statement_or_copy(
        &mut self,
        sql: &str,
        read: &mut impl FnMut(Going) -> Result<Option<String>, Failure>,
    ) -> Result<(), Failure> {
        match copy::direction(sql) {
            Some(Direction::In) => self.copy_lines(sql, read).await,
            Some(Direction::Out) => self.copy_out(sql, None).await,
            None => self.statement(sql).await,
        }
    }

    /// The names that Tab completes. Not knowing them is no reason to stop.
    async fn learn_names(&mut self) {
        let (found, _) = self.client.run(meta::NAMES).await;
        if let Some(StatementOutcome::Rows { rows, .. }) = found.first() {
            *self.names.lock() = rows.iter().filter_map(|row| row.first()?.clone()).collect();
        }
    }

    /// Runs one statement and prints what it answers. An error ends input that is not typed.
    async fn statement(&mut self, sql: &str) -> Result<(), Failure> {
        let began = Instant::now();
        let (outcomes, problem) = self.client.run(sql).await;
        let took = began.elapsed();
        for outcome in &outcomes {
            self.show(outcome)?;
        }
        if self.timing {
            self.say(&format!("Time: {:.3} ms", millis(took)))?;
        }
        let defines = ["CREATE", "ALTER", "DROP"];
        let first = meta::plain_words(sql).first().map(|word| word.to_uppercase()).unwrap_or_default();
        if self.typed && defines.contains(&first.as_str()) {
            self.learn_names().await;
        }
        problem.map_or(Ok(()), |problem| self.failed(problem, sql))
    }

    fn show(&mut self, outcome: &StatementOutcome) -> Result<(), Failure> {
        let text = match outcome {
            StatementOutcome::Rows { columns, rows } => print::rows(self.style, columns, rows),
            StatementOutcome::Done(_) if self.style == Style::Csv => return Ok(()),
            StatementOutcome::Done(tag) => format!("{tag}\n"),
        };
        self.write(&text)
    }

    fn say(&mut self, line: &str) -> Result<(), Failure> {
        self.write(&format!("{line}\n"))
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        match self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                self.over = true;
                Ok(())
            }
            written => written.map_err(unreadable("the output")),
        }
    }
}

/// Stands for Ctrl-C at the prompt; no line holds a NUL.
const ABANDON: &str = "\0";

/// Where in a statement the next line continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Going {
    Fresh,
    Statement,
    Quoted,
    /// What is read are lines of a COPY.
    Data,
}

fn going(text: &str) -> Going {
    match text.trim().is_empty() {
        true => Going::Fresh,
        false if terrace_grammar::within_quotes(text) => Going::Quoted,
        false => Going::Statement,
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
