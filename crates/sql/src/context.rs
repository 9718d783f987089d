//! What a running statement stands on: the session's transaction, and the token that cancels it.
//!
//! Plans hold no transaction: scans find it through [`StatementContext`], an extension of the task's session configuration, so one
//! plan serves many transactions.
use crate::error::tunnel;
use crate::sequence::{Given, Sequences};
use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;
use terrace_engine::{Database, EngineError, Result, RowBuf, Savepoint, Scan, Scanner, Table, Txn, Version};
use terrace_env::{Env, Nanos};
use terrace_storage::Rid;
use tokio::sync::Notify;

/// Cancels one statement.
#[derive(Default)]
pub(crate) struct CancelToken {
    /// Why; 0: it is not cancelled.
    cancelled: AtomicU8,
    waiters: Notify,
}

/// Why a statement is cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    User = 1,
    Timeout = 2,
}

/// Longest sleep of a session's watch, so that it does not outlive its session for long.
const WATCH_MAX: Duration = Duration::from_secs(10);

impl CancelToken {
    pub(crate) fn cancel(&self, reason: Reason) {
        // The first reason stays.
        let _ = self.cancelled.compare_exchange(0, reason as u8, Ordering::SeqCst, Ordering::SeqCst);
        self.waiters.notify_waiters();
    }

    /// Whether the statement may go on: it was not cancelled, and has not taken more memory than there is.
    pub(crate) fn check(&self) -> Result<()> {
        let why = match self.cancelled.load(Ordering::SeqCst) {
            0 => return crate::memory::check_room(),
            why if why == Reason::Timeout as u8 => "statement timeout",
            _ => "user request",
        };
        Err(EngineError::new("57014", format!("canceling statement due to {why}")))
    }

    /// Runs `work` until it is done or the statement is cancelled, whichever comes first. Work that is dropped half-way must be
    /// followed by a rollback of its transaction.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let notified = self.waiters.notified();
        tokio::pin!(notified);
        // Registered before the flag is read: a cancel in between is not lost.
        notified.as_mut().enable();
        self.check()?;
        tokio::pin!(work);
        let work = poll_fn(|context| match work.as_mut().poll(context) {
            // Work that takes more and more is stopped where it next gives way.
            Poll::Pending => match crate::memory::check_room() {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
            done => done,
        });
        match futures::future::select(notified, work).await {
            futures::future::Either::Left(_) => Err(self.check().expect_err("woken by a cancel")),
            futures::future::Either::Right((result, _)) => result,
        }
    }
}

/// Cancels what a session runs, from another task. Does nothing while nothing runs.
#[derive(Clone, Default)]
pub struct Canceller {
    running: Arc<Mutex<Running>>,
}

#[derive(Default)]
struct Running {
    token: Option<Arc<CancelToken>>,
    /// When it is cancelled.
    deadline: Option<Nanos>,
    /// The statement timeout of the session, which a task watches over.
    watched: Option<Duration>,
}

impl Canceller {
    pub fn cancel(&self) {
        if let Some(token) = &self.running.lock().token {
            token.cancel(Reason::User);
        }
    }

    /// A statement begins; it may take that long.
    pub(crate) fn begin(&self, engine: &Database, timeout: Option<Duration>) -> Arc<CancelToken> {
        let env = engine.env();
        let token = Arc::new(CancelToken::default());
        let mut running = self.running.lock();
        running.token = Some(token.clone());
        running.deadline = timeout.map(|timeout| Nanos(env.now().0 + timeout.as_nanos() as u64));
        if running.watched != timeout {
            running.watched = timeout;
            if let Some(timeout) = timeout {
                engine.spawn("statement timeout", watch(env.clone(), Arc::downgrade(&self.running), timeout));
            }
        }
        token
    }

    /// A statement goes on that others may have followed (a portal that was suspended).
    pub(crate) fn resume(&self, token: &Arc<CancelToken>) {
        let mut running = self.running.lock();
        if !running.token.as_ref().is_some_and(|current| Arc::ptr_eq(current, token)) {
            running.token = Some(token.clone());
        }
    }

    /// It ended; another may have begun meanwhile.
    pub(crate) fn end(&self, token: &Arc<CancelToken>) {
        let mut running = self.running.lock();
        if running.token.as_ref().is_some_and(|current| Arc::ptr_eq(current, token)) {
            running.token = None;
            running.deadline = None;
        }
    }
}

/// Cancels a session's statements that take longer than `timeout`; ends with the session, and when another timeout is set. One
/// task for all statements: one that begins while it sleeps has a later deadline than its waking.
async fn watch(env: Env, running: Weak<Mutex<Running>>, timeout: Duration) {
    loop {
        let wait = {
            let Some(running) = running.upgrade() else { return };
            let mut running = running.lock();
            if running.watched != Some(timeout) {
                return;
            }
            let now = env.now();
            match (running.deadline, &running.token) {
                (Some(deadline), Some(token)) if deadline <= now => {
                    token.cancel(Reason::Timeout);
                    running.deadline = None;
                    timeout
                }
                (Some(deadline), Some(_)) => Duration::from_nanos(deadline.0 - now.0),
                _ => timeout,
            }
        };
        env.sleep(wait.min(WATCH_MAX)).await;
    }
}

/// The session's open transaction, if any, numbered so that a stream of an older one does not read in a newer one.
#[derive(Default)]
pub(crate) struct TxnSlot {
    pub(crate) number: u64,
    pub(crate) txn: Option<Txn>,
    /// Whether a statement has run in it.
    pub(crate) queried: bool,
    /// Its savepoints, oldest first.
    pub(crate) savepoints: Vec<(String, Savepoint)>,
    /// The database's sequences, and what the session was given of them: both outlive transactions.
    pub(crate) sequences: Arc<Sequences>,
    pub(crate) given: Given,
}

impl TxnSlot {
    pub(crate) fn open(&mut self) -> &mut Txn {
        // Callers begin a transaction before they run anything in it.
        self.txn.as_mut().expect("a statement runs in a transaction")
    }

    /// Takes the transaction out, to be ended.
    pub(crate) fn take(&mut self) -> Option<Txn> {
        self.savepoints.clear();
        self.txn.take()
    }
}

pub(crate) type TxnCell = Arc<tokio::sync::Mutex<TxnSlot>>;

/// One row that stands for a whole table: the newest version of a row whose condition is evaluated again.
#[derive(Clone, Debug)]
pub(crate) struct OneRow {
    pub(crate) rid: Rid,
    pub(crate) row: RowBuf,
    pub(crate) version: Version,
}

pub(crate) struct StatementContext {
    pub(crate) cell: TxnCell,
    /// The transaction the statement belongs to.
    pub(crate) number: u64,
    pub(crate) cancel: Arc<CancelToken>,
    /// Replaces the scan of the target of UPDATE and DELETE.
    pub(crate) target: Option<OneRow>,
    /// What [`crate::planner::GIVEN`] holds.
    pub(crate) given: Arc<Vec<RowBuf>>,
}

impl StatementContext {
    pub(crate) fn of(task: &TaskContext) -> Result<Arc<StatementContext>, DataFusionError> {
        task.session_config()
            .get_extension::<StatementContext>()
            .ok_or_else(|| DataFusionError::Internal("a table was scanned outside a statement".into()))
    }

    /// A scanner for each, at once, where nobody else uses the transaction at the moment: rows that are read later then still come from
    /// this statement's snapshot.
    pub(crate) fn try_scanners(&self, table: &Arc<Table>, scans: &[Scan]) -> Option<VecDeque<Scanner>> {
        let mut slot = self.cell.try_lock().ok()?;
        let current = slot.number == self.number && slot.txn.is_some();
        current.then(|| scans.iter().map(|scan| slot.open().scan(table, scan.clone())).collect())
    }

    pub(crate) async fn scanners(
        &self,
        table: &Arc<Table>,
        scans: &[Scan],
    ) -> Result<VecDeque<Scanner>, DataFusionError> {
        let mut slot = self.cell.lock().await;
        if slot.number != self.number || slot.txn.is_none() {
            return Err(tunnel(EngineError::new("25P01", "the transaction of this query has ended")));
        }
        Ok(scans.iter().map(|scan| slot.open().scan(table, scan.clone())).collect())
    }
}
