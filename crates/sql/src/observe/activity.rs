//! One session: what it runs, since when, in which transaction.
use super::Observed;
use crate::session::{Block, Prepared, Shared};
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use terrace_env::Nanos;
use terrace_storage::{Histogram, Reads};

/// As `pg_stat_activity` names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Idle,
    Active,
    IdleInTransaction,
    /// A statement of the transaction failed.
    IdleInTransactionAborted,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Idle => "idle",
            State::Active => "active",
            State::IdleInTransaction => "idle in transaction",
            State::IdleInTransactionAborted => "idle in transaction (aborted)",
        }
    }
}

/// A session at one moment. Times are microseconds since 1970.
#[derive(Clone)]
pub struct Now {
    pub user: String,
    pub application_name: String,
    /// `None`: within the same process.
    pub client: Option<SocketAddr>,
    pub state: State,
    pub state_change: i64,
    pub query_start: Option<i64>,
    pub transaction_start: Option<i64>,
    /// The open transaction's number in the engine.
    pub transaction: Option<u64>,
    statement: Option<Arc<Prepared>>,
}

impl Now {
    /// The statement that runs, or ran last.
    pub fn query(&self) -> &str {
        self.statement.as_ref().map_or("", |s| &s.sql)
    }

    fn settle(&mut self, block: Block, at: i64) {
        self.state = match block {
            Block::None | Block::Pipeline => State::Idle,
            Block::Explicit => State::IdleInTransaction,
            Block::Failed => State::IdleInTransactionAborted,
        };
        self.state_change = at;
        if block == Block::None {
            // A statement by itself is a transaction by itself.
            self.transaction = None;
            self.transaction_start = None;
        }
    }
}

pub struct Activity {
    pub pid: i32,
    pub started: i64,
    now: Mutex<Now>,
    pub(super) latency: Histogram,
}

impl Activity {
    pub(super) fn new(pid: i32, user: &str, started: i64) -> Activity {
        let now = Now {
            user: user.into(),
            application_name: String::new(),
            client: None,
            state: State::Idle,
            state_change: started,
            query_start: None,
            transaction_start: None,
            transaction: None,
            statement: None,
        };
        Activity { pid, started, now: Mutex::new(now), latency: Histogram::default() }
    }

    pub fn now(&self) -> Now {
        self.now.lock().clone()
    }

    pub(crate) fn set_client(&self, address: SocketAddr) {
        self.now.lock().client = Some(address);
    }

    pub(crate) fn set_application(&self, name: &str) {
        self.now.lock().application_name = name.into();
    }

    pub(crate) fn began_transaction(&self, number: u64, at: i64) {
        let mut now = self.now.lock();
        now.transaction = Some(number);
        now.transaction_start = Some(at);
    }

    /// No statement runs.
    pub(crate) fn settle(&self, block: Block, at: i64) {
        self.now.lock().settle(block, at);
    }

    pub(crate) fn ended_transaction(&self) {
        let mut now = self.now.lock();
        now.transaction = None;
        now.transaction_start = None;
    }
}

/// A statement that runs. Shared by what belongs to it; the last one dropped ends it (invariant 1 of the module).
pub(crate) struct Running {
    observed: Arc<Observed>,
    shared: Arc<Shared>,
    statement: Arc<Prepared>,
    began: Nanos,
    cost: Mutex<Cost>,
}

#[derive(Default)]
struct Cost {
    rows: u64,
    reads: Reads,
    failed: bool,
}

impl Running {
    pub(crate) fn begin(
        observed: &Arc<Observed>,
        shared: &Arc<Shared>,
        statement: &Arc<Prepared>,
        began: Nanos,
    ) -> Arc<Running> {
        let at = observed.env.unix_micros();
        {
            let mut now = shared.activity.now.lock();
            now.state = State::Active;
            now.state_change = at;
            now.query_start = Some(at);
            now.statement = Some(statement.clone());
        }
        Arc::new(Running {
            observed: observed.clone(),
            shared: shared.clone(),
            statement: statement.clone(),
            began,
            cost: Mutex::default(),
        })
    }

    pub(crate) fn returned(&self, rows: u64) {
        self.cost.lock().rows += rows;
    }

    pub(crate) fn read(&self, reads: Reads) {
        self.cost.lock().reads += reads;
    }

    pub(crate) fn failed(&self) {
        self.cost.lock().failed = true;
    }
}

/// A statement that has run, to its end, without being shown as running; `rows`: unless it failed.
pub(crate) fn ran(
    observed: &Observed,
    shared: &Shared,
    statement: &Arc<Prepared>,
    began: Nanos,
    rows: Option<u64>,
    reads: Reads,
) {
    let nanos = observed.env.now().0.saturating_sub(began.0);
    let ended = observed.env.unix_micros();
    {
        let mut now = shared.activity.now.lock();
        now.query_start = Some(ended - (nanos / 1000) as i64);
        if !now.statement.as_ref().is_some_and(|last| Arc::ptr_eq(last, statement)) {
            now.statement = Some(statement.clone());
        }
        now.settle(shared.block(), ended);
    }
    enter(observed, shared, statement, nanos, &Cost { rows: rows.unwrap_or(0), reads, failed: rows.is_none() });
}

/// Puts a statement that took `nanos` into the books.
fn enter(observed: &Observed, shared: &Shared, statement: &Prepared, nanos: u64, cost: &Cost) {
    shared.activity.latency.record(nanos);
    if cost.failed {
        observed.failed.fetch_add(1, Ordering::Relaxed);
    }
    let entry = statement.entry.get_or_init(|| {
        let now = shared.activity.now.lock();
        observed.statements.entry(&now.user, &statement.sql)
    });
    entry.record(nanos, cost.rows, cost.reads, cost.failed);
    let limit = observed.min_duration.load(Ordering::Relaxed);
    if limit >= 0 && nanos >= limit as u64 {
        log(shared, statement, nanos, cost);
    }
}

/// In whole milliseconds and thousandths, as PostgreSQL logs durations.
fn log(shared: &Shared, statement: &Prepared, nanos: u64, cost: &Cost) {
    let now = shared.activity.now();
    tracing::info!(
        pid = shared.activity.pid,
        user = now.user,
        application = now.application_name,
        duration_ms = nanos as f64 / 1e6,
        rows = cost.rows,
        pages_hit = cost.reads.hits(),
        pages_read = cost.reads.total_pages(),
        read_ms = cost.reads.total_nanos() as f64 / 1e6,
        failed = cost.failed,
        statement = %statement.sql,
        "slow statement"
    );
}

impl Drop for Running {
    fn drop(&mut self) {
        let nanos = self.observed.env.now().0.saturating_sub(self.began.0);
        let cost = std::mem::take(self.cost.get_mut());
        enter(&self.observed, &self.shared, &self.statement, nanos, &cost);
        self.shared.activity.settle(self.shared.block(), self.observed.env.unix_micros());
    }
}
