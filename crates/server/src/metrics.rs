//! `GET /metrics` for Prometheus: the numbers of the views, as counters, gauges and histograms.
//!
//! 1. A scrape reads what is counted anyway and takes only short locks; it never waits for a device or a transaction.
//! 2. Labels are devices, purposes and states, so their number is bounded. Statements and names of tables are not
//!    exported.
//!
//! The text format is small enough to be written here; one request a connection, as scrapers at this rate need no more.
//!
//! Source: Prometheus, "Exposition formats", text format 0.0.4.
use std::fmt::{Display, Write};
use std::time::Duration;
use terrace_engine::Isolation;
use terrace_sql::SqlDatabase;
use terrace_sql::observe::State;
use terrace_storage::{Distribution, IoUsage};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

#[cfg(test)]
mod tests;
mod tier;

/// Scrapes at a time.
const MAX_SCRAPES: usize = 8;
/// Bytes of a request's head; how long a request may take.
const MAX_HEAD: usize = 8 << 10;
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves metrics until it is dropped.
pub async fn serve_metrics(db: SqlDatabase, listener: TcpListener) {
    let mut scrapes = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = scrapes.join_next() => {}
            accepted = listener.accept(), if scrapes.len() < MAX_SCRAPES => match accepted {
                Ok((socket, _)) => {
                    let db = db.clone();
                    scrapes.spawn(async move { drop(tokio::time::timeout(PATIENCE, answer(&db, socket)).await) });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a scrape of metrics");
                    db.engine.env().sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
}

async fn answer(db: &SqlDatabase, mut socket: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        if head.len() > MAX_HEAD || socket.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let line = String::from_utf8_lossy(head.split(|b| *b == b'\r').next().unwrap_or(&[])).into_owned();
    let response = respond(&line, || page(db));
    socket.write_all(response.as_bytes()).await?;
    socket.shutdown().await
}

/// The whole response to a request line.
fn respond(line: &str, page: impl FnOnce() -> String) -> String {
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = path.split('?').next().unwrap_or("");
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", page()),
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", "metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed\r\nAllow: GET", "text/plain", "only GET is supported\n".to_owned()),
    };
    let length = body.len();
    let body = if method == "HEAD" { "" } else { &body };
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}=\"{}\"", escaped(v))).collect();
        if !labels.is_empty() {
            let _ = write!(self.0, "{{{}}}", labels.join(","));
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// A family of one sample without labels.
    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], distribution: &Distribution) {
        let mut seen = 0;
        for (bucket, count) in distribution.buckets.iter().enumerate() {
            seen += count;
            let bound = Distribution::bound(bucket).map_or("+Inf".to_owned(), |nanos| seconds(nanos).to_string());
            let labels: Vec<(&str, &str)> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
            self.sample(&format!("{name}_bucket"), &labels, seen);
        }
        self.sample(&format!("{name}_sum"), labels, seconds(distribution.nanos));
        self.sample(&format!("{name}_count"), labels, seen);
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Everything, at this moment.
fn page(db: &SqlDatabase) -> String {
    let mut page = Page::default();
    page.family("terrace_info", "gauge", "The version that runs.");
    page.sample("terrace_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.one("terrace_start_time_seconds", "gauge", "When it began.", db.observed.started as f64 / 1e6);
    statements(&mut page, db);
    transactions(&mut page, db);
    devices(&mut page, &db.engine.store().io());
    pool(&mut page, db);
    if let Some(tier) = db.engine.store().flash() {
        tier::flash(&mut page, &tier);
    }
    log(&mut page, db);
    undo(&mut page, db);
    page.0
}

fn statements(page: &mut Page, db: &SqlDatabase) {
    let sessions: Vec<State> = db.observed.sessions().iter().map(|s| s.now().state).collect();
    page.family("terrace_sessions", "gauge", "Sessions by state.");
    for state in [State::Idle, State::Active, State::IdleInTransaction, State::IdleInTransactionAborted] {
        let count = sessions.iter().filter(|s| **s == state).count();
        page.sample("terrace_sessions", &[("state", state.name())], count);
    }
    page.one("terrace_statements_failed_total", "counter", "Statements that failed.", db.observed.failed());
    let name = "terrace_statement_seconds";
    page.family(name, "histogram", "How long statements took, to their last row.");
    page.histogram(name, &[], &db.observed.latency());
}

fn transactions(page: &mut Page, db: &SqlDatabase) {
    let ended = db.engine.ended();
    let name = "terrace_transactions_total";
    page.family(name, "counter", "Transactions that ended.");
    page.sample(name, &[("outcome", "committed")], ended.committed);
    page.sample(name, &[("outcome", "rolled back")], ended.rolled_back);
    let open = db.engine.transactions();
    let name = "terrace_transactions_open";
    page.family(name, "gauge", "Open transactions by isolation level.");
    for (isolation, label) in [
        (Isolation::ReadCommitted, "read committed"),
        (Isolation::RepeatableRead, "repeatable read"),
        (Isolation::Serializable, "serializable"),
    ] {
        let count = open.iter().filter(|t| t.isolation == Some(isolation)).count();
        page.sample(name, &[("isolation", label)], count);
    }
    let waiting = open.iter().filter(|t| t.waiting.is_some()).count();
    page.one("terrace_transactions_waiting", "gauge", "Transactions that wait for a lock.", waiting);
    let oldest = open.iter().map(|t| t.age.as_secs_f64()).fold(0.0, f64::max);
    page.one("terrace_transaction_oldest_seconds", "gauge", "Age of the oldest open transaction.", oldest);
    let name = "terrace_commit_wait_seconds";
    page.family(name, "histogram", "How long commits waited for the log to be durable.");
    page.histogram(name, &[], &db.engine.commit_wait());
}

fn devices(page: &mut Page, io: &[IoUsage]) {
    type Durations = fn(&IoUsage) -> &Distribution;
    let timed: [(&str, &str, Durations); 3] = [
        ("terrace_device_read_seconds", "Reads by device and purpose.", |u| &u.reads),
        ("terrace_device_write_seconds", "Writes by device and purpose.", |u| &u.writes),
        ("terrace_device_sync_seconds", "Syncs by device and purpose.", |u| &u.syncs),
    ];
    for (name, help, of) in timed {
        page.family(name, "histogram", help);
        for usage in io {
            page.histogram(name, &[("device", &usage.device), ("purpose", usage.purpose.name())], of(usage));
        }
    }
    type Bytes = fn(&IoUsage) -> u64;
    let bytes: [(&str, &str, Bytes); 2] = [
        ("terrace_device_read_bytes_total", "Bytes read by device and purpose.", |u| u.read_bytes),
        ("terrace_device_written_bytes_total", "Bytes written by device and purpose.", |u| u.write_bytes),
    ];
    for (name, help, of) in bytes {
        page.family(name, "counter", help);
        for usage in io {
            page.sample(name, &[("device", &usage.device), ("purpose", usage.purpose.name())], of(usage));
        }
    }
}

fn pool(page: &mut Page, db: &SqlDatabase) {
    let pool = db.engine.pool_status();
    let name = "terrace_pool_pages";
    page.family(name, "gauge", "Pages of the buffer pool: that fit, that are there, that are to be written home.");
    page.sample(name, &[("state", "capacity")], pool.capacity);
    page.sample(name, &[("state", "resident")], pool.resident);
    page.sample(name, &[("state", "dirty")], pool.dirty);
    let counters = pool.counters;
    page.one("terrace_pool_hits_total", "counter", "Pages found in memory.", counters.hits);
    let name = "terrace_pool_reads_total";
    page.family(name, "counter", "Pages read into the buffer pool.");
    page.sample(name, &[("access", "random")], counters.random_reads);
    page.sample(name, &[("access", "sequential")], counters.sequential_reads);
    page.one("terrace_pool_evictions_total", "counter", "Pages that left memory.", counters.evictions);
    let name = "terrace_pool_written_total";
    page.family(name, "counter", "Pages written home: to make room, and by age or for a checkpoint.");
    page.sample(name, &[("reason", "evict")], counters.dirty_evictions);
    page.sample(name, &[("reason", "age")], counters.written);
}

fn log(page: &mut Page, db: &SqlDatabase) {
    let log = db.engine.log_status();
    page.one("terrace_log_appended_bytes_total", "counter", "End of the log: a position in bytes.", log.end.0);
    let redo = log.end.0.saturating_sub(log.redo_lsn.0);
    page.one("terrace_log_redo_bytes", "gauge", "Bytes of log that a restart would repeat.", redo);
    page.one("terrace_log_redo_bound_bytes", "gauge", "The most that these may be.", log.redo_bound);
    page.one("terrace_log_waiting", "gauge", "Changes that wait for room in the log.", log.waiting);
    let name = "terrace_log_segments";
    page.family(name, "gauge", "Segments of the log.");
    page.sample(name, &[("state", "held")], log.segments);
    page.sample(name, &[("state", "free")], log.free_segments);
    let help = "Segments that the log may have: changes are refused once those held are as many and needed.";
    page.one("terrace_log_capacity_segments", "gauge", help, log.capacity_segments);
    if let Some(archive) = &log.archive {
        page.one("terrace_log_archived_bytes", "gauge", "Where the log begins that the archive lacks.", archive.lsn.0);
        page.one("terrace_log_unarchived_segments", "gauge", "Full segments that the archive lacks.", archive.lacks);
        let help = "Times that a segment could not be archived.";
        page.one("terrace_log_archive_failures_total", "counter", help, archive.failures);
    }
    let checkpoints = db.engine.checkpoint_status();
    page.one("terrace_checkpoints_total", "counter", "Checkpoints recorded.", checkpoints.count);
}

fn undo(page: &mut Page, db: &SqlDatabase) {
    let undo = db.engine.undo_status();
    page.one("terrace_undo_bytes", "gauge", "Undo space in use.", undo.bytes);
    page.one("terrace_undo_limit_bytes", "gauge", "Undo space allowed.", undo.limit);
    page.one("terrace_undo_histories", "gauge", "Finished transactions whose undo is kept.", undo.histories);
    page.one("terrace_snapshots", "gauge", "Snapshots held.", undo.snapshots);
    let age = undo.oldest_snapshot.as_secs_f64();
    page.one("terrace_snapshot_oldest_seconds", "gauge", "Age of the oldest snapshot.", age);
    let help = "Snapshots given up for undo space.";
    page.one("terrace_snapshots_cancelled_total", "counter", help, undo.snapshots_cancelled);
    page.one("terrace_purge_failures_total", "counter", "Times that purge failed.", undo.purge_failures);
}
