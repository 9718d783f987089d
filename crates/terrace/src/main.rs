//! The command line.

mod cli;

use clap::{Parser, Subcommand};
use cli::{check, copies, inspect, lab, memory, quickstart, serve, shell, stop, top};
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use terrace::admin::StopMode;
use terrace::config::LogFormat;
use terrace::{Error, Instance};
use terrace_env::memory::Counting;

/// A statement makes a few dozen small allocations, on one thread or another; this allocator takes half the time for
/// them of the system's. What sessions take is counted: see [`terrace_env::memory`].
#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

/// A SQL database on tiered storage.
#[derive(Parser)]
#[command(
    version,
    after_help = "Try it:\n  terrace quickstart\n\nYour own database:\n  terrace init mydb\n  terrace serve mydb\n  \
                  psql -h 127.0.0.1 -p 5433 -U terrace terrace"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// What to log to standard error: error, warn, info, debug, or per module ("info,terrace_storage=debug"). Also:
    /// RUST_LOG.
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,
}

#[derive(Subcommand)]
enum Command {
    /// Makes a new database.
    ///
    /// Writes DIR/terrace.toml, which explains every setting. To place tablespaces on several disks or to choose
    /// another page size, write a settings file first and name it with --config: it is checked and copied.
    #[command(after_help = "Examples:\n  terrace init mydb\n  terrace init /srv/terrace --config ssd-and-hdd.toml")]
    Init {
        /// An empty or a new directory.
        dir: PathBuf,
        /// Settings to use in place of the defaults.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Serves a database to PostgreSQL clients.
    ///
    /// Recovers first where the last run did not end cleanly, and says how far and how long. Ctrl-C (or SIGTERM) stops
    /// it: running statements are cancelled. With a flash tier, changed pages stay there; without one they are written
    /// home (`terrace stop` can choose). A second Ctrl-C stops it at once; the next start recovers.
    #[command(after_help = "Examples:\n  terrace serve mydb\n  terrace serve mydb --listen 127.0.0.1:6000\n  \
                            psql -h 127.0.0.1 -p 5433 -U terrace terrace")]
    Serve {
        /// The database's directory.
        dir: PathBuf,
        /// Address and port, in place of `server.listen` in terrace.toml. Other machines need server.auth = "password".
        #[arg(long, value_name = "ADDRESS")]
        listen: Option<SocketAddr>,
    },
    /// Stops the server that serves a database, and waits until it has ended.
    ///
    /// fast: the log is made durable, changed pages stay in the flash tier and in the log. The next start goes on from
    /// there. clean: they are written home first; on a slow disk that takes long, so it says how many are left.
    #[command(after_help = "Examples:\n  terrace stop mydb\n  terrace stop mydb --mode clean")]
    Stop {
        /// The database's directory.
        dir: PathBuf,
        /// As a signal does, unless it is said: fast with a flash tier, clean without one.
        #[arg(long, value_enum)]
        mode: Option<StopMode>,
    },
    /// Verifies a database that is not being served, or a backup.
    ///
    /// Recovers it, then reads every page, tree, row and undo record. Exit code 0: sound; 1: problems, which are
    /// listed.
    #[command(after_help = "Example:\n  terrace check mydb")]
    Check {
        /// The database's directory.
        dir: PathBuf,
    },
    /// Looks into the files of a database that is not being served.
    #[command(after_help = "Examples:\n  terrace inspect mydb control\n  terrace inspect mydb page 17\n  \
                            terrace inspect mydb page 3 --space undo\n  terrace inspect mydb tables")]
    Inspect {
        /// The database's directory.
        dir: PathBuf,
        #[command(subcommand)]
        what: inspect::InspectCommand,
    },
    /// Copies a database while it is served, or while it is not.
    ///
    /// A server that has DIR open makes the copy itself, to DEST on its own machine, while it goes on working. The copy
    /// is verified page by page; a manifest with checksums is written last. `terrace check DEST` verifies it again.
    #[command(after_help = "Example:\n  terrace backup mydb /mnt/backups/2026-01-01")]
    Backup {
        /// The database's directory.
        dir: PathBuf,
        /// An empty or a new directory.
        dest: PathBuf,
    },
    /// Makes a database from a backup.
    ///
    /// Without --to and --to-lsn, up to the end of the log at hand. With them, transactions that had not committed by
    /// then are rolled back. What is restored is a database of its own: it archives its log apart from that of the one
    /// backed up.
    #[command(after_help = "Examples:\n  terrace restore /mnt/backups/2026-01-01 newdb\n  terrace restore \
                      /mnt/backups/2026-01-01 newdb --archive /mnt/log --to '2026-01-01 12:00:00'")]
    Restore(copies::RestoreOptions),
    /// Runs SQL at a prompt, from a pipe or from the command line.
    ///
    /// On a directory it opens the database itself; with --connect it is a client of a server. Lines are edited and
    /// remembered; \? lists the commands. Input that is not typed stops at its first error, with exit code 1.
    #[command(after_help = "Examples:\n  terrace shell mydb\n  terrace shell --connect 127.0.0.1:5433\n  \
                            terrace shell mydb --csv -c 'SELECT * FROM t' > t.csv\n  terrace shell mydb < script.sql")]
    Shell(shell::ShellOptions),
    /// Shows what a server does, on one screen.
    ///
    /// Statements, commits, buffer pool, log, undo, devices, who blocks whom, and sessions, as its views (schema
    /// terrace) tell them.
    #[command(
        after_help = "Examples:\n  terrace top\n  terrace top --url postgres://terrace@127.0.0.1:6000/terrace\n  \
                            terrace top --once --interval 5"
    )]
    Top(top::TopOptions),
    /// Repeats the papers' experiments: the engine itself on emulated devices, in virtual time.
    #[command(subcommand)]
    Lab(lab::LabCommand),
    /// Makes a demonstration database, runs a short workload on it, and serves it.
    #[command(after_help = "Examples:\n  terrace quickstart\n  terrace quickstart --rows 1000000 --seconds 20\n  \
                            terrace quickstart --replace --no-serve")]
    Quickstart(quickstart::QuickstartOptions),
}

/// Why the program ends with a code other than 0.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Instance(#[from] Error),
    #[error("{0}")]
    Message(String),
    /// All is said already.
    #[error("")]
    Said,
}

impl From<terrace::engine::EngineError> for Failure {
    fn from(error: terrace::engine::EngineError) -> Failure {
        Failure::Instance(error.into())
    }
}

impl From<terrace::storage::StorageError> for Failure {
    fn from(error: terrace::storage::StorageError) -> Failure {
        Failure::Message(error.to_string())
    }
}

impl From<terrace::device::DeviceError> for Failure {
    fn from(error: terrace::device::DeviceError) -> Failure {
        Failure::Instance(error.into())
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let quiet = matches!(
        arguments.command,
        Command::Quickstart(_) | Command::Inspect { .. } | Command::Top(_) | Command::Shell(_) | Command::Lab(_)
    );
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let (threads, format) = match &arguments.command {
        Command::Serve { dir, .. } => {
            memory::give_back();
            let (server, logging) = terrace::config::serving(dir);
            let threads = if server.threads == 0 { processors } else { server.threads };
            (threads, logging.format)
        }
        _ => (processors, LogFormat::Text),
    };
    start_logging(arguments.log.as_deref(), if quiet { "warn" } else { "info" }, format);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .thread_name("terrace")
        .thread_stack_size(terrace::SQL_STACK)
        .on_thread_start(terrace::env::hand_over_here)
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("terrace: cannot start threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(arguments.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::Said) {
                eprintln!("terrace: {failure}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Init { dir, config } => {
            Instance::create(&dir, config.as_deref()).await?;
            let dir = dir.display();
            cli::serve::say!("made a database in {dir}; its settings are in {dir}/terrace.toml");
            cli::serve::say!("serve it:  terrace serve {dir}");
            Ok(())
        }
        Command::Serve { dir, listen } => serve::open_and_serve(&dir, listen).await,
        Command::Check { dir } if dir.join(terrace::backup::MANIFEST).exists() => copies::check(&dir).await,
        Command::Check { dir } => check::check(&dir).await,
        Command::Inspect { dir, what } => inspect::inspect(&dir, what).await,
        Command::Stop { dir, mode } => stop::stop(&dir, mode).await,
        Command::Backup { dir, dest } => copies::back_up(&dir, &dest).await,
        Command::Restore(options) => copies::bring_back(options).await,
        Command::Shell(options) => shell::shell(options).await,
        Command::Quickstart(options) => quickstart::quickstart(options).await,
        Command::Top(options) => top::top(options).await,
        Command::Lab(what) => lab::lab(what),
    }
}

fn start_logging(filter: Option<&str>, default: &str, format: LogFormat) {
    use tracing_subscriber::EnvFilter;
    let filter = match filter {
        Some(filter) => EnvFilter::new(filter),
        None => EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default)),
    };
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let messages = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(terminal && format == LogFormat::Text)
        // It would print them, and panic where it cannot.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => messages.init(),
        LogFormat::Json => messages.json().flatten_event(true).init(),
    }
}
