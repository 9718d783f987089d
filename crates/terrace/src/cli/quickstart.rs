//! `terrace quickstart`: from nothing to a served database with rows in it.

use crate::Failure;
use crate::cli::serve::say;
use crate::cli::{report, serve, workload};
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use terrace::Instance;
use terrace::instance::{self, DirectoryContent};

#[derive(clap::Args)]
pub(crate) struct QuickstartOptions {
    /// Where to make the database.
    #[arg(long, default_value = "terrace-demo", value_name = "DIR")]
    dir: PathBuf,
    /// Rows to load into the table `accounts`.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=i32::MAX as i64))]
    rows: u32,
    /// How long to run the workload.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Concurrent sessions of the workload.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1024))]
    sessions: u64,
    /// Where the directory exists: use the database in it.
    #[arg(long, conflicts_with = "replace")]
    reuse: bool,
    /// Where the directory exists: remove the database in it and make a new one.
    #[arg(long)]
    replace: bool,
    /// End after the workload.
    #[arg(long)]
    no_serve: bool,
    /// Address and port to serve on, in place of `server.listen` in terrace.toml.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

pub(crate) async fn quickstart(options: QuickstartOptions) -> Result<(), Failure> {
    if let Some(address) = options.listen {
        terrace::config::check_listen(address, terrace::config::AuthName::Trust)
            .map_err(|why| Failure::Message(format!("--listen: {why}")))?;
    }
    prepare(&options).await?;
    let instance = Instance::open(&options.dir).await?;
    report::opened(&instance.report);
    load_and_run(&options, &instance).await?;
    if options.no_serve {
        return Ok(instance.close().await?);
    }
    say!();
    let listen = options.listen.unwrap_or(instance.config.server.listen);
    serve::serve(instance, listen).await
}

/// Makes the database, or settles what becomes of the one that is there.
async fn prepare(options: &QuickstartOptions) -> Result<(), Failure> {
    let dir = &options.dir;
    if instance::look(dir)? == DirectoryContent::Database {
        if options.reuse || (!options.replace && ask_reuse(dir)?) {
            return Ok(());
        }
        instance::remove(dir)?;
    }
    Instance::create(dir, None).await?;
    say!("made a database in {}", dir.display());
    Ok(())
}

/// Asks what to do with an existing database; true = reuse.
fn ask_reuse(dir: &Path) -> Result<bool, Failure> {
    let dir = dir.display();
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Message(format!("there is a database in {dir} already; say --reuse or --replace")));
    }
    loop {
        print!("There is a database in {dir} already. [r]euse it, re[p]lace it, or [q]uit? ");
        let mut answer = String::new();
        let read = std::io::stdout().flush().and_then(|()| std::io::stdin().read_line(&mut answer));
        match (read, answer.trim()) {
            (Ok(1..), "r" | "reuse") => return Ok(true),
            (Ok(1..), "p" | "replace") => return Ok(false),
            (Ok(0) | Err(_), _) | (_, "q" | "quit") => return Err(Failure::Said),
            _ => {}
        }
    }
}

async fn load_and_run(options: &QuickstartOptions, instance: &Instance) -> Result<(), Failure> {
    let (env, database) = (&instance.env, &instance.database);
    let bar = indicatif::ProgressBar::new(options.rows.into());
    // A constant template.
    let style = indicatif::ProgressStyle::with_template(
        "loading {wide_bar} {human_pos}/{human_len} rows  {per_sec}  {eta} left",
    );
    bar.set_style(style.expect("a valid template"));
    let start = env.now();
    let table = workload::load(database, options.rows, |rows| bar.set_position(rows.into())).await?;
    bar.finish_and_clear();
    let (rows, sum) = workload::totals(database, &table).await?;
    let took = Duration::from_nanos(env.now().0 - start.0);
    say!("table accounts holds {rows} rows ({})", report::duration(took));

    say!("running reads, transfers and range reads on {} sessions for {} s ...", options.sessions, options.seconds);
    let before: Vec<_> = instance.devices.iter().map(|device| device.stats()).collect();
    let time = Duration::from_secs(options.seconds);
    let rows = u32::try_from(rows).unwrap_or(u32::MAX);
    let measured = workload::run(env, database, &table, rows, options.sessions, time).await?;
    let during: Vec<_> = instance.devices.iter().map(|device| device.stats()).collect();
    say!();
    print_latencies(&measured);
    say!();
    report::devices(&instance.devices, &before, &during);
    say!();
    let (_, after) = workload::totals(database, &table).await?;
    if after != sum {
        return Err(Failure::Message(format!(
            "the balances summed to {sum} before the transfers and to {after} after"
        )));
    }
    say!("money neither made nor lost: all balances together are {after}, as before");
    Ok(())
}

fn print_latencies(measured: &workload::Measured) {
    let seconds = measured.took.as_secs_f64();
    let mut rows = Vec::new();
    for (kind, histogram) in &measured.latencies {
        let at = |quantile| report::duration(Duration::from_nanos(histogram.value_at_quantile(quantile)));
        let rate = format!("{:.0}", histogram.len() as f64 / seconds);
        rows.push(vec![kind.name().to_string(), rate, at(0.5), at(0.95), at(0.99), at(1.0)]);
    }
    let all: u64 = measured.latencies.values().map(|histogram| histogram.len()).sum();
    rows.push(vec!["all".into(), format!("{:.0}", all as f64 / seconds)]);
    report::table(&["operation", "per second", "p50", "p95", "p99", "max"], &rows);
    if measured.retries > 0 {
        say!("  {} transactions lost against another one and were tried again", measured.retries);
    }
}
