//! What a running statement stands on: the session's transaction, and the token that cancels it.
//!
//! Plans hold no transaction: scans find it through [`StatementContext`], an extension of the task's session
//! configuration, so one plan serves many transactions.
use crate::cancel::CancelToken;
use crate::error::tunnel;
use crate::values::is_sequence;
use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;
use terrace_engine::{Begun, EngineError, Result, RowBuf, Savepoint, Scan, Scanner, Table, Txn, Version};
use terrace_storage::ObjectId;
use terrace_storage::Rid;

/// The session's open transaction, if any, numbered so that a stream of an older one does not read in a newer one.
#[derive(Default)]
pub(crate) struct TxnSlot {
    /// The next transaction begins at the time that the session's clock says: values have been read at that time.
    pub(crate) timed: bool,
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
        assert!(self.txn.is_some() || self.savepoints.is_empty(), "savepoint.rs, invariant 3: a transaction's");
        self.savepoints.clear();
        self.txn.take()
    }
}

pub(crate) type TxnCell = Arc<tokio::sync::Mutex<TxnSlot>>;

/// One row that stands for a whole table: the newest version of a row whose condition is evaluated again.
#[derive(Clone, Debug)]
pub(crate) struct OneRow {
    /// Which of the plan's targets it stands for; the first has the number 0.
    pub(crate) target: usize,
    pub(crate) rid: Rid,
    pub(crate) row: RowBuf,
    pub(crate) version: Version,
}

pub(crate) struct StatementContext {
    pub(crate) cell: TxnCell,
    /// The transaction the statement belongs to.
    pub(crate) number: u64,
    pub(crate) cancel: Arc<CancelToken>,
    /// Replace the scans of targets.
    pub(crate) targets: Vec<OneRow>,
    /// What a [`Rows::Given`](crate::plan::bind::over::Rows) holds.
    pub(crate) given: Arc<Vec<RowBuf>>,
    /// Scans let others run after each full batch.
    pub(crate) gives_way: bool,
}

impl StatementContext {
    pub(crate) fn of(task: &TaskContext) -> Result<Arc<StatementContext>, DataFusionError> {
        task.session_config()
            .get_extension::<StatementContext>()
            .ok_or_else(|| DataFusionError::Internal("a table was scanned outside a statement".into()))
    }

    /// A scanner for each, at once, where nobody else uses the transaction at the moment: rows that are read later then
    /// still come from this statement's snapshot.
    pub(crate) fn try_scanners(&self, table: &Arc<Table>, scans: &[Scan]) -> Option<VecDeque<Scanner>> {
        let mut slot = self.cell.try_lock().ok()?;
        let current = slot.number == self.number && slot.txn.is_some();
        current.then(|| scanners(slot.open(), table, scans))
    }

    /// The same for a scan that is chosen later.
    pub(crate) fn try_begin(&self, table: &Arc<Table>) -> Option<Begun> {
        let mut slot = self.cell.try_lock().ok()?;
        let current = slot.number == self.number && slot.txn.is_some();
        current.then(|| slot.open().begin_scan(table))
    }

    pub(crate) async fn begin(&self, table: &Arc<Table>) -> Result<Begun, DataFusionError> {
        Ok(self.opened().await?.open().begin_scan(table))
    }

    pub(crate) async fn scanners(
        &self,
        table: &Arc<Table>,
        scans: &[Scan],
    ) -> Result<VecDeque<Scanner>, DataFusionError> {
        Ok(scanners(self.opened().await?.open(), table, scans))
    }

    async fn opened(&self) -> Result<tokio::sync::MutexGuard<'_, TxnSlot>, DataFusionError> {
        let slot = self.cell.lock().await;
        if slot.number != self.number || slot.txn.is_none() {
            return Err(tunnel(EngineError::new("25P01", "the transaction of this query has ended")));
        }
        Ok(slot)
    }
}

/// What a sequence has given is the same for all.
fn scanners(txn: &mut Txn, table: &Arc<Table>, scans: &[Scan]) -> VecDeque<Scanner> {
    let one = |scan: &Scan| match is_sequence(table) {
        true => txn.scan_now(table),
        false => txn.scan(table, scan.clone()),
    };
    scans.iter().map(one).collect()
}

/// Warnings and notices of a session's functions, until its client is told.
#[derive(Clone, Default)]
pub struct Notices(Arc<Mutex<Vec<EngineError>>>);

impl Notices {
    pub(crate) fn push(&self, notice: EngineError) {
        self.0.lock().push(notice);
    }

    /// Those since the last call.
    pub fn take(&self) -> Vec<EngineError> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// The values of a sequence that are reserved.
#[derive(Default)]
pub(crate) struct Ahead {
    /// Not yet given, the next one last.
    pub(crate) ahead: Vec<i64>,
    /// The one before.
    pub(crate) given: Option<i64>,
}

pub(crate) type Reserved = Arc<tokio::sync::Mutex<Ahead>>;

/// Of a database.
#[derive(Default)]
pub(crate) struct Sequences {
    pub(crate) reserved: Mutex<BTreeMap<ObjectId, Reserved>>,
}

/// What a session has been given: for `currval` and `lastval`.
#[derive(Default)]
pub(crate) struct Given {
    pub(crate) values: BTreeMap<ObjectId, i64>,
    /// The sequence of which `nextval` was called last.
    pub(crate) last: Option<ObjectId>,
}

/// What the open transaction, if any, belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Block {
    /// Single statements.
    None,
    /// Several statements up to `sync`.
    Pipeline,
    /// Several statements of one simple query: the same, and commands may need or refuse it as they do an explicit one.
    Message,
    /// BEGIN.
    Explicit,
    /// BEGIN, and a statement failed: nothing is open any more but what a savepoint keeps.
    Failed,
}

impl Block {
    /// Whether commands run that can only be used in transaction blocks.
    pub(crate) fn is_transaction_block(self) -> bool {
        matches!(self, Block::Message | Block::Explicit)
    }
}
