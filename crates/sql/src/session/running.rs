//! A statement that runs: it is shown as running, and is counted when it ends.
//!
//! 1. The parts of a running statement (its rows, its COPY) share its [`Running`]. When the last of them is dropped,
//!    the statement ends.
use crate::observe::{Cost, Observed};
use crate::session::prepared::Prepared;
use crate::statement::shared::Shared;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use terrace_env::Nanos;
use terrace_storage::Reads;

/// A statement that runs (invariant 1).
pub(crate) struct Running {
    observed: Arc<Observed>,
    shared: Arc<Shared>,
    statement: Arc<Prepared>,
    began: Nanos,
    cost: Mutex<Cost>,
    /// It is begun once more, and counted then.
    begins_again: AtomicBool,
}

impl Running {
    pub(crate) fn begin(
        observed: &Arc<Observed>,
        shared: &Arc<Shared>,
        statement: &Arc<Prepared>,
        began: Nanos,
    ) -> Arc<Running> {
        shared.activity.begin(&statement.sql, observed.env.unix_micros());
        Arc::new(Running {
            observed: observed.clone(),
            shared: shared.clone(),
            statement: statement.clone(),
            began,
            cost: Mutex::default(),
            begins_again: AtomicBool::new(false),
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

    pub(crate) fn begins_again(&self) {
        self.begins_again.store(true, Ordering::Relaxed);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let nanos = self.observed.env.now().0.saturating_sub(self.began.0);
        let cost = std::mem::take(self.cost.get_mut());
        let activity = &self.shared.activity;
        if !self.begins_again.load(Ordering::Relaxed) {
            self.observed.record(activity, &self.statement.sql, &self.statement.entry, nanos, &cost);
        }
        activity.settle(self.shared.block(), self.observed.env.unix_micros());
    }
}

/// Counts a statement that has ended and was never shown as running. `rows`: none if it failed.
pub(crate) fn ran(
    observed: &Observed,
    shared: &Shared,
    statement: &Prepared,
    began: Nanos,
    rows: Option<u64>,
    reads: Reads,
) {
    let nanos = observed.env.now().0.saturating_sub(began.0);
    shared.activity.ran(&statement.sql, nanos, shared.block(), observed.env.unix_micros());
    let cost = Cost { rows: rows.unwrap_or(0), reads, failed: rows.is_none() };
    observed.record(&shared.activity, &statement.sql, &statement.entry, nanos, &cost);
}
