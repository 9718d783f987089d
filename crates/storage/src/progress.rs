//! How far an opening is: for the server's answer to clients, `terrace top`, and the server's log.

use parking_lot::Mutex;
use std::fmt;
use std::time::Duration;
use terrace_env::{Env, Nanos};

/// How often the log is told.
const EVERY: Duration = Duration::from_secs(3);

/// What an opening is doing. In this order; a phase with nothing to do may be skipped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum RecoveryPhase {
    /// Nothing that takes long: files are opened, torn pages restored.
    #[default]
    Opening,
    /// The log since the last checkpoint is read, to its end. Counts bytes.
    ReadingLog,
    /// Pages are read, brought up to date, and written. Counts pages.
    Redo,
    /// Pages that were damaged are made again from older log. Counts pages.
    Rebuilding,
    /// Transactions that were under way are rolled back. Counts transactions.
    RollingBack,
    /// The database takes work.
    Open,
}

/// One look at it. `done` and `total` count what the phase counts; `total` is an estimate while the log is read, and 0
/// where nothing is counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RecoveryState {
    pub phase: RecoveryPhase,
    pub done: u64,
    pub total: u64,
}

/// Shared between the opening, which writes it, and readers of it. Put an `Arc` of one into
/// [`StorageConfig::progress`](crate::StorageConfig), keep a clone, and call [`state`](RecoveryProgress::state) at any
/// time, from any thread. It ends at [`RecoveryPhase::Open`]; an opening that fails leaves it where it stood.
#[derive(Default, Debug)]
pub struct RecoveryProgress(Mutex<Inner>);

#[derive(Default, Debug)]
struct Inner {
    state: RecoveryState,
    said: Option<Nanos>,
}

impl RecoveryPhase {
    /// As it is shown: "redo".
    pub fn name(self) -> &'static str {
        match self {
            RecoveryPhase::Opening => "opening",
            RecoveryPhase::ReadingLog => "reading the log",
            RecoveryPhase::Redo => "redo",
            RecoveryPhase::Rebuilding => "rebuilding damaged pages",
            RecoveryPhase::RollingBack => "rolling back",
            RecoveryPhase::Open => "open",
        }
    }

    /// What it counts.
    pub fn unit(self) -> &'static str {
        match self {
            RecoveryPhase::Opening | RecoveryPhase::Open => "",
            RecoveryPhase::ReadingLog => "MiB",
            RecoveryPhase::Redo | RecoveryPhase::Rebuilding => "pages",
            RecoveryPhase::RollingBack => "transactions",
        }
    }
}

/// "redo, 1200 of 19200 pages".
impl fmt::Display for RecoveryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = if self.phase == RecoveryPhase::ReadingLog { 1 << 20 } else { 1 };
        f.write_str(self.phase.name())?;
        if self.total > 0 {
            write!(f, ", {} of {} {}", self.done / scale, self.total.div_ceil(scale), self.phase.unit())?;
        }
        Ok(())
    }
}

impl RecoveryProgress {
    pub fn state(&self) -> RecoveryState {
        self.0.lock().state
    }

    /// A phase begins, with so much to do.
    pub fn enter(&self, phase: RecoveryPhase, total: u64) {
        self.0.lock().state = RecoveryState { phase, done: 0, total };
    }

    /// So much more of the phase is done. The log is told now and then.
    pub fn add(&self, env: &Env, done: u64) {
        let now = env.now();
        let mut inner = self.0.lock();
        inner.state.done += done;
        inner.state.total = inner.state.total.max(inner.state.done);
        let said = *inner.said.get_or_insert(now);
        if now.0.saturating_sub(said.0) >= EVERY.as_nanos() as u64 {
            inner.said = Some(now);
            let state = inner.state;
            drop(inner);
            tracing::info!("recovering: {state}");
        }
    }
}

#[cfg(test)]
mod tests;
