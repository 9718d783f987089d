//! What a running statement stands on: the session's transaction, and the token that cancels it.
//!
//! Plans hold no transaction: scans find it through [`StatementContext`], an extension of the task's session configuration, so one
//! plan serves many transactions.
use crate::error::tunnel;
use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use terrace_engine::{EngineError, Result, RowBuf, Scan, Scanner, Table, Txn, Version};
use terrace_storage::Rid;
use tokio::sync::Notify;

/// Cancels one statement.
#[derive(Default)]
pub(crate) struct CancelToken {
    cancelled: AtomicBool,
    waiters: Notify,
}

pub(crate) fn cancelled() -> EngineError {
    EngineError::new("57014", "canceling statement due to user request")
}

impl CancelToken {
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.waiters.notify_waiters();
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::SeqCst) { Err(cancelled()) } else { Ok(()) }
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
        match futures::future::select(notified, work).await {
            futures::future::Either::Left(_) => Err(cancelled()),
            futures::future::Either::Right((result, _)) => result,
        }
    }
}

/// Cancels what a session runs, from another task. Does nothing while nothing runs.
#[derive(Clone, Default)]
pub struct Canceller {
    running: Arc<Mutex<Option<Arc<CancelToken>>>>,
}

impl Canceller {
    pub fn cancel(&self) {
        if let Some(token) = self.running.lock().as_ref() {
            token.cancel();
        }
    }

    /// A statement begins.
    pub(crate) fn begin(&self) -> Arc<CancelToken> {
        let token = Arc::new(CancelToken::default());
        *self.running.lock() = Some(token.clone());
        token
    }

    /// It ended; another may have begun meanwhile.
    pub(crate) fn end(&self, token: &Arc<CancelToken>) {
        let mut running = self.running.lock();
        if running.as_ref().is_some_and(|current| Arc::ptr_eq(current, token)) {
            *running = None;
        }
    }
}

/// The session's open transaction, if any, numbered so that a stream of an older one does not read in a newer one.
#[derive(Default)]
pub(crate) struct TxnSlot {
    pub(crate) number: u64,
    pub(crate) txn: Option<Txn>,
    /// Whether a statement has run in it.
    pub(crate) queried: bool,
}

impl TxnSlot {
    pub(crate) fn open(&mut self) -> &mut Txn {
        // Callers begin a transaction before they run anything in it.
        self.txn.as_mut().expect("a statement runs in a transaction")
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
}

impl StatementContext {
    pub(crate) fn of(task: &TaskContext) -> Result<Arc<StatementContext>, DataFusionError> {
        task.session_config()
            .get_extension::<StatementContext>()
            .ok_or_else(|| DataFusionError::Internal("a table was scanned outside a statement".into()))
    }

    /// A scanner at once, where nobody else uses the transaction at the moment: rows that are read later then still come from this
    /// statement's snapshot.
    pub(crate) fn try_scanner(&self, table: &Arc<Table>, scan: &Scan) -> Option<Scanner> {
        let mut slot = self.cell.try_lock().ok()?;
        let current = slot.number == self.number && slot.txn.is_some();
        current.then(|| slot.open().scan(table, scan.clone()))
    }

    pub(crate) async fn scanner(&self, table: &Arc<Table>, scan: Scan) -> Result<Scanner, DataFusionError> {
        let mut slot = self.cell.lock().await;
        if slot.number != self.number || slot.txn.is_none() {
            return Err(tunnel(EngineError::new("25P01", "the transaction of this query has ended")));
        }
        Ok(slot.open().scan(table, scan))
    }
}
