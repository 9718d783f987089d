//! What a transaction holds until it ends: its number, its id and undo segment, its locks, its definitions.
//!
//! 1. A transaction that has written and is dropped before its end is rolled back in the background.
//! 2. Commit and rollback end a transaction through the same steps: [`TxnResources::write_end`],
//!    [`TxnResources::become_visible`], [`TxnResources::release_locks_and_wake`], [`TxnResources::wake_purge`]. Their
//!    order is in `commit` and in `rollback`.
use crate::advisory::OfTransaction;
use crate::catalog::Catalog;
use crate::database::Core;
use crate::leaving;
use crate::locks::{LockKey, LockMode, Owner, TxnState};
use crate::serializable::Serial;
use crate::status::{OpenTxn, Stage};
use crate::txn::Isolation;
use std::sync::Arc;
use terrace_storage::Lsn;
use terrace_storage::mtr::LogPermit;
use terrace_storage::undo::{History, TxnEnd, UndoWriter};

pub(crate) struct TxnResources {
    pub(crate) core: Arc<Core>,
    pub(crate) owner: Owner,
    pub(crate) writer: Option<UndoWriter>,
    pub(crate) state: Option<Arc<TxnState>>,
    pub(crate) locks: Vec<(LockKey, LockMode)>,
    /// Locks of rows that this transaction has locked and not changed.
    pub(crate) row_locks: Vec<(LockKey, LockMode)>,
    /// Of its session. A rollback in the background does not have them: it releases them before.
    pub(crate) advisory: Option<OfTransaction>,
    /// Of a serialisable transaction, from its snapshot on. A rollback does not have it: it ends it first.
    pub(crate) serial: Option<Arc<Serial>>,
    pub(crate) entry: Arc<OpenTxn>,
    /// The catalogue with this transaction's changes.
    pub(crate) catalog: Option<Arc<Catalog>>,
    /// A background task (or an opening) owns this already. If it is dropped there, the executor is going down, and a
    /// restart finishes the work.
    pub(super) in_background: bool,
    /// It has locked all tables, and nobody has looked which it has written (`losers`, invariant 3).
    pub(super) to_survey: bool,
}

impl Drop for TxnResources {
    fn drop(&mut self) {
        self.leave_serializable();
        if self.writer.is_some() && !self.in_background {
            self.take().rollback_in_background();
        } else {
            self.release_locks();
            self.core.open_txns.remove(self.owner);
        }
    }
}

impl TxnResources {
    /// `isolation` is `None` for a transaction found after a crash.
    pub(crate) fn new(core: Arc<Core>, isolation: Option<Isolation>) -> TxnResources {
        let owner = core.new_owner();
        let entry = core.open_txns.add(owner, core.env.now(), isolation);
        TxnResources {
            core,
            owner,
            writer: None,
            state: None,
            locks: Vec::new(),
            row_locks: Vec::new(),
            advisory: None,
            serial: None,
            entry,
            catalog: None,
            in_background: false,
            to_survey: false,
        }
    }

    /// A transaction found active after a crash.
    pub(crate) fn of_loser(core: &Arc<Core>, writer: UndoWriter) -> TxnResources {
        let mut resources = TxnResources::new(core.clone(), None);
        resources.in_background = true;
        resources.entry.has_id(writer.txn);
        resources.entry.enter(Stage::RollingBack);
        resources.state = Some(core.active.enter(writer.txn, resources.owner));
        resources.writer = Some(writer);
        resources
    }

    /// Moves everything out, but for the advisory locks and what belongs to a serialisable transaction. Nothing else is
    /// left to end.
    fn take(&mut self) -> TxnResources {
        TxnResources {
            core: self.core.clone(),
            owner: self.owner,
            writer: self.writer.take(),
            state: self.state.take(),
            locks: std::mem::take(&mut self.locks),
            row_locks: std::mem::take(&mut self.row_locks),
            advisory: None,
            serial: None,
            entry: self.entry.clone(),
            catalog: self.catalog.take(),
            in_background: self.in_background,
            to_survey: self.to_survey,
        }
    }

    /// Writes the transaction's end into its undo page and into the log, as one batch. The batch is not durable yet.
    /// Answers where it ends in the log.
    pub(super) fn write_end(&mut self, permit: LogPermit, end: TxnEnd) -> (Lsn, History) {
        let writer = self.writer.take().expect("only a transaction that writes has an end to log");
        let store = &self.core.cleanup;
        store.undo().end(store.mtr(permit), writer, end, self.core.env.unix_micros())
    }

    /// New snapshots see the transaction as ended, its definitions become everybody's if it committed, and purge gets
    /// its history: one step for purge (`leaving`).
    ///
    /// The catalogue comes before the history, because purge reads the history with these definitions. Both come before
    /// the locks are released: whoever gets the locks (checks) must find the undo records of the rows that it finds.
    pub(super) fn become_visible(&mut self, history: &History) {
        let id = self.state.as_ref().expect("a writer is registered").id;
        let core = self.core.clone();
        let has_definitions = self.catalog.is_some();
        let publish_catalog = || {
            #[cfg(test)]
            if let Some(hook) = core.while_leaving.lock().take() {
                hook();
            }
            if history.end == TxnEnd::Committed
                && let Some(catalog) = self.catalog.take()
            {
                core.usage.retain(&catalog);
                *core.catalog.write() = catalog;
            }
        };
        leaving::leave(&core.active, &core.histories, id, publish_catalog, has_records(history).then_some(history));
        if has_definitions {
            // After the catalogue: a reader that looks at `redefined` first finds the definition in one of the two.
            core.redefined.lock().clear();
        }
    }

    /// Others may lock what this transaction had locked; transactions that wait for this one's end go on.
    pub(super) fn release_locks_and_wake(&mut self) {
        let state = self.state.take().expect("a writer is registered");
        self.release_locks();
        state.wake(true);
    }

    pub(super) fn wake_purge(&self, history: &History) {
        if has_records(history) {
            self.core.purge_wanted.notify_one();
        }
    }

    /// Unless it has committed: it will not, so it is as if it had read and written nothing.
    pub(super) fn leave_serializable(&mut self) {
        if let Some(serial) = self.serial.take() {
            serial.leave();
        }
    }

    fn release_locks(&mut self) {
        self.core.locks.release_all(self.owner, &std::mem::take(&mut self.locks));
        self.core.locks.release_all(self.owner, &std::mem::take(&mut self.row_locks));
        self.advisory = None;
    }
}

fn has_records(history: &History) -> bool {
    !history.first.is_none()
}
