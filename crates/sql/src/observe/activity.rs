//! One session: what it runs, since when, in which transaction.
use super::{Entry, Observed, copying};
use crate::cancel::Canceller;
use crate::transaction::Block;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
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
    query: Option<Arc<str>>,
}

impl Now {
    /// The statement that runs, or ran last.
    pub fn query(&self) -> &str {
        self.query.as_deref().unwrap_or_default()
    }

    fn settle(&mut self, block: Block, at: i64) {
        self.state = match block {
            Block::None | Block::Pipeline | Block::Message => State::Idle,
            Block::Explicit => State::IdleInTransaction,
            Block::Failed => State::IdleInTransactionAborted,
        };
        self.state_change = at;
        debug_assert_eq!(self.transaction.is_some(), self.transaction_start.is_some(), "{block:?}");
        if block == Block::None {
            // A statement by itself is a transaction by itself.
            self.transaction = None;
            self.transaction_start = None;
        }
    }
}

pub struct Activity {
    pub pid: i32,
    /// Of the session's advisory locks in the engine.
    pub number: u64,
    pub started: i64,
    now: Mutex<Now>,
    canceller: Canceller,
    pub(super) copying: copying::Place,
    pub(super) latency: Histogram,
}

impl Activity {
    pub(super) fn new((pid, number): (i32, u64), user: &str, started: i64) -> Activity {
        let now = Now {
            user: user.into(),
            application_name: String::new(),
            client: None,
            state: State::Idle,
            state_change: started,
            query_start: None,
            transaction_start: None,
            transaction: None,
            query: None,
        };
        let canceller = Canceller::default();
        let latency = Histogram::default();
        Activity { pid, number, started, now: Mutex::new(now), canceller, copying: Mutex::new(None), latency }
    }

    pub fn now(&self) -> Now {
        self.now.lock().clone()
    }

    /// Cancels what the session runs, if it runs anything.
    pub(crate) fn cancel(&self) {
        self.canceller.cancel();
    }

    /// Ends the session.
    pub(crate) fn terminate(&self) {
        self.canceller.terminate();
    }

    pub(crate) fn canceller(&self) -> Canceller {
        self.canceller.clone()
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

/// What a statement has cost so far.
#[derive(Default)]
pub(crate) struct Cost {
    pub(crate) rows: u64,
    pub(crate) reads: Reads,
    pub(crate) failed: bool,
}

impl Activity {
    /// A statement begins to run.
    pub(crate) fn begin(&self, query: &Arc<str>, at: i64) {
        let mut now = self.now.lock();
        now.state = State::Active;
        now.state_change = at;
        now.query_start = Some(at);
        now.query = Some(query.clone());
    }

    /// A statement has run to its end without being shown as running.
    pub(crate) fn ran(&self, query: &Arc<str>, nanos: u64, block: Block, ended: i64) {
        let mut now = self.now.lock();
        now.query_start = Some(ended - (nanos / 1000) as i64);
        if !now.query.as_ref().is_some_and(|last| Arc::ptr_eq(last, query)) {
            now.query = Some(query.clone());
        }
        now.settle(block, ended);
    }
}

impl Observed {
    /// Puts a statement that took `nanos` into the books. `entry`: where its runs are counted, once that is known.
    pub(crate) fn record(
        &self,
        activity: &Activity,
        query: &str,
        entry: &OnceLock<Arc<Entry>>,
        nanos: u64,
        cost: &Cost,
    ) {
        activity.latency.record(nanos);
        if cost.failed {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        let entry = entry.get_or_init(|| {
            let now = activity.now.lock();
            self.statements.entry(&now.user, query)
        });
        entry.record(nanos, cost.rows, cost.reads, cost.failed);
        let limit = self.min_duration.load(Ordering::Relaxed);
        if limit >= 0 && nanos >= limit as u64 {
            log(activity, query, nanos, cost);
        }
    }
}

/// In whole milliseconds and thousandths, as PostgreSQL logs durations.
fn log(activity: &Activity, query: &str, nanos: u64, cost: &Cost) {
    let now = activity.now();
    tracing::info!(
        pid = activity.pid,
        user = now.user,
        application = now.application_name,
        duration_ms = nanos as f64 / 1e6,
        rows = cost.rows,
        pages_hit = cost.reads.hits(),
        pages_read = cost.reads.total_pages(),
        read_ms = cost.reads.total_nanos() as f64 / 1e6,
        failed = cost.failed,
        statement = %query,
        "slow statement"
    );
}
