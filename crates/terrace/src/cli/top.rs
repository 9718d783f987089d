//! `terrace top`: what a server does, on one screen, read from its SQL views by an ordinary connection.
//!
//! Rates and latencies are of the time between two readings. Plain ANSI sequences; Ctrl-C ends it.

use crate::Failure;
use crate::cli::remote;
use crate::cli::report::bytes;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

#[cfg(test)]
mod tests;

#[derive(clap::Args)]
pub(crate) struct TopOptions {
    /// The server: HOST:PORT, or as PostgreSQL's tools name it. Without TLS; a password is best put in the environment
    /// variable PGPASSWORD.
    #[arg(
        long,
        visible_alias = "connect",
        default_value = "postgres://terrace@127.0.0.1:5433/terrace",
        value_name = "ADDRESS"
    )]
    url: String,
    /// Seconds between two readings.
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    interval: f64,
    /// Print one screen as plain text and end.
    #[arg(long)]
    once: bool,
}

/// A row by column names, as text; NULLs are not in it.
type Row = BTreeMap<String, String>;

/// One reading.
#[derive(Default)]
struct Sample {
    status: Row,
    pool: Row,
    flash: Row,
    log: Row,
    checkpoints: Row,
    undo: Row,
    io: Vec<Row>,
    latency: Vec<Row>,
    sessions: Vec<Row>,
}

const SESSIONS: &str = "SELECT a.pid, a.usename, a.application_name, a.state, a.wait_event, t.age_s, t.waiting_s, \
                        t.waiting_for, t.blocked_by, a.query FROM pg_stat_activity a LEFT JOIN terrace.transactions t \
                        ON t.pid = a.pid WHERE a.pid <> pg_backend_pid() ORDER BY a.pid";

pub(crate) async fn top(options: TopOptions) -> Result<(), Failure> {
    if !(0.1..=3600.0).contains(&options.interval) {
        return Err(Failure::Message(format!("--interval {} must be between 0.1 and 3600", options.interval)));
    }
    let interval = Duration::from_secs_f64(options.interval);
    let server = remote::named(&options.url, "terrace top")?;
    let shown = remote::shown(&server);
    let mut screen = Screen::open(options.once);
    let client = loop {
        let starting = match connect(&server).await? {
            Ok(client) => break client,
            Err(starting) => starting,
        };
        screen.show(&format!("{shown}: {starting}\n"))?;
        if options.once {
            return Ok(());
        }
        tokio::select! {
            () = pause(interval) => {}
            _ = tokio::signal::ctrl_c() => return Ok(()),
        }
    };
    let mut before = read(&client).await?;
    loop {
        tokio::select! {
            () = pause(interval) => {}
            _ = tokio::signal::ctrl_c() => return Ok(()),
        }
        let now = read(&client).await?;
        screen.show(&render(&before, &now, &shown))?;
        if options.once {
            return Ok(());
        }
        before = now;
    }
}

#[expect(clippy::disallowed_methods, reason = "a client has no simulated time")]
async fn pause(interval: Duration) {
    tokio::time::sleep(interval).await;
}

/// A connection; or what a server says that is still opening its database.
async fn connect(server: &tokio_postgres::Config) -> Result<Result<Client, String>, Failure> {
    let (client, connection) = match server.connect(NoTls).await {
        Ok(connected) => connected,
        Err(error) => return starting(&error).map(Err).ok_or_else(|| remote::refused(server, &error)),
    };
    tokio::runtime::Handle::current().spawn(async move { drop(connection.await) });
    Ok(Ok(client))
}

fn starting(error: &tokio_postgres::Error) -> Option<String> {
    let error = error.as_db_error().filter(|e| *e.code() == SqlState::CANNOT_CONNECT_NOW)?;
    Some([Some(error.message()), error.detail()].into_iter().flatten().collect::<Vec<_>>().join("\n"))
}

async fn rows(client: &Client, sql: &str) -> Result<Vec<Row>, Failure> {
    let messages = client.simple_query(sql).await.map_err(|error| {
        let why = error.as_db_error().map_or(error.to_string(), |e| e.message().to_owned());
        Failure::Message(format!("the server did not answer {sql:?}: {why}"))
    })?;
    let row = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            let columns = row.columns().iter().enumerate();
            Some(columns.filter_map(|(i, c)| Some((c.name().to_owned(), row.get(i)?.to_owned()))).collect())
        }
        _ => None,
    };
    Ok(messages.iter().filter_map(row).collect())
}

async fn read(client: &Client) -> Result<Sample, Failure> {
    let view = async |name: &str| rows(client, &format!("SELECT * FROM terrace.{name}")).await;
    let one = async |name: &str| Ok::<Row, Failure>(view(name).await?.pop().unwrap_or_default());
    Ok(Sample {
        status: one("status").await?,
        pool: one("pool").await?,
        flash: one("flash_tier").await?,
        log: one("log").await?,
        checkpoints: one("checkpoints").await?,
        undo: one("undo").await?,
        io: view("io").await?,
        latency: view("latencies").await?,
        sessions: rows(client, SESSIONS).await?,
    })
}

/// The alternate screen while it lives; plain output with `--once`.
struct Screen {
    plain: bool,
}

impl Screen {
    fn open(plain: bool) -> Screen {
        if !plain {
            let _ = write!(std::io::stdout(), "\x1b[?1049h\x1b[?25l");
        }
        Screen { plain }
    }

    fn show(&mut self, text: &str) -> Result<(), Failure> {
        let mut out = std::io::stdout();
        let written = match self.plain {
            true => write!(out, "{text}"),
            // Each line is cleared to its end, then what is left below: nothing flickers.
            false => write!(out, "\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\r\n")),
        };
        written.and_then(|()| out.flush()).map_err(|error| Failure::Message(format!("cannot write: {error}")))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if !self.plain {
            let _ = write!(std::io::stdout(), "\x1b[?25h\x1b[?1049l");
            let _ = std::io::stdout().flush();
        }
    }
}

/// A number in a row; 0 where there is none.
fn number(row: &Row, column: &str) -> f64 {
    row.get(column).and_then(|v| v.parse().ok()).unwrap_or(0.0)
}

fn text<'r>(row: &'r Row, column: &str) -> &'r str {
    row.get(column).map_or("", String::as_str)
}

/// A mean, or a dash where there was nothing.
fn per(sum: f64, count: f64) -> String {
    if count > 0.0 { format!("{:.2} ms", sum / count) } else { "-".to_owned() }
}

fn size(value: f64) -> String {
    bytes(value.max(0.0) as u64)
}

/// The `q`-quantile in milliseconds of what was counted between two readings of `terrace.latencies`, as an upper bound.
fn quantile(before: &[Row], now: &[Row], name: &str, q: f64) -> Option<f64> {
    let counts = |rows: &[Row]| -> BTreeMap<u64, f64> {
        let of = rows.iter().filter(|r| text(r, "name") == name);
        // Without a bound: beyond all. Keyed in nanoseconds, for their order.
        let key = |r: &Row| r.get("le_ms").and_then(|v| v.parse::<f64>().ok()).map_or(u64::MAX, |ms| (ms * 1e6) as u64);
        of.map(|r| (key(r), number(r, "count"))).collect()
    };
    let old = counts(before);
    let new: Vec<(u64, f64)> =
        counts(now).into_iter().map(|(le, n)| (le, n - old.get(&le).copied().unwrap_or(0.0))).collect();
    let total: f64 = new.iter().map(|(_, n)| n).sum();
    let mut seen = 0.0;
    let found = new.into_iter().find(|(_, n)| {
        seen += n;
        seen > 0.0 && seen >= total * q
    });
    found.map(|(le, _)| le as f64 / 1e6)
}

fn render(before: &Sample, now: &Sample, url: &str) -> String {
    let mut out = String::new();
    let seconds = (number(&now.status, "uptime_s") - number(&before.status, "uptime_s")).max(1e-3);
    header(&mut out, before, now, url, seconds);
    storage(&mut out, before, now, seconds);
    devices(&mut out, before, now, seconds);
    sessions(&mut out, &now.sessions);
    out
}

/// "15.0 (Terrace 0.1.0)", as programs for PostgreSQL need it: "Terrace 0.1.0".
fn own_version(version: &str) -> &str {
    version.split_once('(').and_then(|(_, own)| own.strip_suffix(')')).unwrap_or(version)
}

fn header(out: &mut String, before: &Sample, now: &Sample, url: &str, seconds: f64) {
    let status = &now.status;
    let gained = |column: &str| number(&now.status, column) - number(&before.status, column);
    let uptime = number(status, "uptime_s");
    let _ = writeln!(out, "{} at {url}, up {uptime:.0} s", own_version(text(status, "version")));
    let (sessions, active, waiting) = (text(status, "sessions"), text(status, "active"), text(status, "waiting"));
    let _ = writeln!(out, "sessions    {sessions}, {active} active, {waiting} waiting for locks");
    let statements = gained("statements");
    let bound = |q: f64| {
        let found = quantile(&before.latency, &now.latency, "statement", q);
        found.map_or("-".to_owned(), |ms| format!("{ms:.3} ms"))
    };
    let _ = writeln!(
        out,
        "statements  {:.1}/s, mean {}, p50 <= {}, p99 <= {}, {:.1}/s failed",
        statements / seconds,
        per(gained("statement_ms"), statements),
        bound(0.5),
        bound(0.99),
        gained("failed") / seconds,
    );
    let commits = gained("committed");
    let _ = writeln!(
        out,
        "commits     {:.1}/s, {:.1}/s rolled back, log wait {}",
        commits / seconds,
        gained("rolled_back") / seconds,
        per(gained("commit_wait_ms"), commits),
    );
}

fn storage(out: &mut String, before: &Sample, now: &Sample, seconds: f64) {
    let gained = |column: &str| number(&now.pool, column) - number(&before.pool, column);
    let (hits, reads) = (gained("hits"), gained("random_reads") + gained("sequential_reads"));
    let rate = if hits + reads > 0.0 { format!("{:.1} %", 100.0 * hits / (hits + reads)) } else { "-".to_owned() };
    let page = number(&now.pool, "page_size");
    let pages = |column: &str| size(number(&now.pool, column) * page);
    let _ = writeln!(
        out,
        "pool        {rate} hits, {} of {} in use, {} dirty",
        pages("resident"),
        pages("capacity"),
        pages("dirty")
    );
    flash(out, before, now, page, seconds);
    let log = &now.log;
    let _ = writeln!(
        out,
        "log         {}/s, restart repeats {} of at most {}, {} segments held, {} free, {} waiting",
        size((number(log, "end_lsn") - number(&before.log, "end_lsn")) / seconds),
        size(number(log, "redo_bytes")),
        size(number(log, "redo_bound")),
        text(log, "segments"),
        text(log, "free_segments"),
        text(log, "waiting"),
    );
    if let state @ ("on" | "failing") = text(log, "archive") {
        let (lacks, capacity) = (text(log, "unarchived_segments"), text(log, "capacity_segments"));
        let _ = writeln!(out, "archive     {state}, lacks {lacks} segments of at most {capacity}");
    }
    let recorded = number(&now.checkpoints, "recorded");
    let written = number(&now.checkpoints, "pages_written") - number(&before.checkpoints, "pages_written");
    let _ = writeln!(out, "checkpoints {recorded}, {:.1} pages/s written home", written / seconds);
    let undo = &now.undo;
    let _ = writeln!(
        out,
        "undo        {} of {}, {} histories, {} snapshots, oldest {:.1} s of {:.0} s, {} cancelled",
        size(number(undo, "bytes")),
        size(number(undo, "limit_bytes")),
        text(undo, "histories"),
        text(undo, "snapshots"),
        number(undo, "oldest_snapshot_s"),
        number(undo, "snapshot_age_limit_s"),
        text(undo, "snapshots_cancelled"),
    );
}

/// The flash tier, where there is one.
fn flash(out: &mut String, before: &Sample, now: &Sample, page: f64, seconds: f64) {
    let tier = &now.flash;
    if matches!(text(tier, "state"), "" | "none") {
        return;
    }
    let gained = |column: &str| number(tier, column) - number(&before.flash, column);
    let reads = gained("hits") + gained("misses");
    let rate = if reads > 0.0 { format!("{:.1} %", 100.0 * gained("hits") / reads) } else { "-".to_owned() };
    let bound = |name: &str| {
        let found = quantile(&before.latency, &now.latency, name, 0.99);
        found.map_or("-".to_owned(), |ms| format!("{ms:.3} ms"))
    };
    let pages = |column: &str| size(number(tier, column) * page);
    let rejected: f64 = tier.keys().filter(|column| column.starts_with("rejected_")).map(|column| gained(column)).sum();
    let clean =
        tier.get("time_to_clean_s").map_or("-".to_owned(), |_| format!("{:.0} s", number(tier, "time_to_clean_s")));
    let _ = writeln!(
        out,
        "flash       {} ({}), {rate} hits, p99 <= {}, of misses {}, {} of {} in use, {} dirty, clean in {clean}",
        text(tier, "state"),
        text(tier, "write_policy"),
        bound("miss served by flash"),
        bound("miss served by disk"),
        pages("used"),
        pages("frames"),
        pages("dirty"),
    );
    let _ = writeln!(
        out,
        "            {:.1} pages/s in, {:.1}/s refused, {:.1}/s invalidated, {:.1}/s home, {}/s written",
        (gained("admitted_clean") + gained("admitted_dirty")) / seconds,
        rejected / seconds,
        gained("invalidated") / seconds,
        gained("cleaned") / seconds,
        size(gained("written_bytes") / seconds),
    );
    if let Some(problem) = tier.get("problem") {
        let _ = writeln!(out, "            lost: {problem}");
    }
}

fn devices(out: &mut String, before: &Sample, now: &Sample, seconds: f64) {
    let _ = writeln!(
        out,
        "\n{:<34}{:>10}{:>12}{:>10}{:>10}{:>12}{:>10}{:>10}{:>10}",
        "device, purpose", "reads/s", "read/s", "each", "writes/s", "written/s", "each", "syncs/s", "each"
    );
    let none = Row::new();
    for row in &now.io {
        let same = |r: &&Row| text(r, "device") == text(row, "device") && text(r, "purpose") == text(row, "purpose");
        let old = before.io.iter().find(same).unwrap_or(&none);
        let gained = |column: &str| number(row, column) - number(old, column);
        let name = format!("{}, {}", text(row, "device"), text(row, "purpose"));
        let _ = writeln!(
            out,
            "{name:<34}{:>10.1}{:>12}{:>10}{:>10.1}{:>12}{:>10}{:>10.1}{:>10}",
            gained("reads") / seconds,
            size(gained("read_bytes") / seconds),
            per(gained("read_ms"), gained("reads")),
            gained("writes") / seconds,
            size(gained("write_bytes") / seconds),
            per(gained("write_ms"), gained("writes")),
            gained("syncs") / seconds,
            per(gained("sync_ms"), gained("syncs")),
        );
    }
}

/// Longest texts of a line.
const QUERY: usize = 80;
const SHOWN: usize = 20;

fn sessions(out: &mut String, sessions: &[Row]) {
    let one_line = |row: &Row| text(row, "query").split_whitespace().collect::<Vec<_>>().join(" ");
    let blocked: Vec<&Row> = sessions.iter().filter(|r| r.contains_key("blocked_by")).collect();
    for row in &blocked {
        let _ = writeln!(
            out,
            "\nblocked: {} waits {:.1} s for {}, held by {}: {}",
            text(row, "pid"),
            number(row, "waiting_s"),
            text(row, "waiting_for"),
            text(row, "blocked_by"),
            one_line(row),
        );
    }
    let _ = writeln!(
        out,
        "\n{:>7} {:<12} {:<16} {:<20} {:<14} {:>8}  query",
        "pid", "user", "application", "state", "waits for", "txn age"
    );
    // Those that do something first.
    let (idle, busy): (Vec<&Row>, Vec<&Row>) = sessions.iter().partition(|r| text(r, "state") == "idle");
    for row in busy.iter().chain(&idle).take(SHOWN) {
        let age = row.get("age_s").map_or(String::new(), |_| format!("{:.1} s", number(row, "age_s")));
        let query: String = one_line(row).chars().take(QUERY).collect();
        let wait = if text(row, "state") == "idle" { "" } else { text(row, "wait_event") };
        let line = format!(
            "{:>7} {:<12} {:<16} {:<20} {wait:<14} {age:>8}  {query}",
            text(row, "pid"),
            text(row, "usename"),
            text(row, "application_name"),
            text(row, "state"),
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if sessions.len() > SHOWN {
        let _ = writeln!(out, "        and {} more", sessions.len() - SHOWN);
    }
}
