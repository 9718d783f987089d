//! What sessions run, and what statements cost. Views, metrics and logs read it. It is told by the session, and asks
//! nobody.
//!
//! 1. A statement is counted once, however it ends: when the last part of it (its execution, its stream of rows) is
//!    dropped.
//! 2. A statement pays a few readings of the clock, one small allocation, and a few short locks. Only its own session
//!    and readers of views take these locks; one more is shared with other runs of the same text. A text is normalised
//!    once for each prepared statement.
mod activity;
mod copying;
mod locks;
mod statements;
#[cfg(test)]
mod tests;

pub use activity::{Activity, Now, State};
pub use copying::CopyProgress;
pub use locks::watch_locks;
pub use statements::{StatementTotals, normalise};

pub(crate) use activity::Cost;
pub(crate) use locks::target as locks_target;
pub(crate) use statements::Entry;

use parking_lot::Mutex;
use statements::Statements;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use terrace_env::Env;
use terrace_storage::{Distribution, Histogram};

/// What is logged beside errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Statements that took at least so long are logged; `None`: none is.
    pub min_duration: Option<Duration>,
    /// Waits for locks that last longer are logged, with who blocks; `None`: none is.
    pub lock_wait: Option<Duration>,
}

/// What the sessions of a database share for statistics.
pub struct Observed {
    pub(crate) env: Env,
    /// Microseconds since 1970.
    pub started: i64,
    sessions: Mutex<BTreeMap<i32, Arc<Activity>>>,
    last_pid: AtomicI32,
    pub(crate) statements: Statements,
    /// Of sessions that have ended.
    latency: Histogram,
    pub(crate) failed: AtomicU64,
    /// Nanoseconds; negative: not logged.
    min_duration: AtomicI64,
    lock_wait: AtomicI64,
}

fn nanos(duration: Option<Duration>) -> i64 {
    duration.map_or(-1, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}

impl Observed {
    pub(crate) fn new(env: Env) -> Arc<Observed> {
        Arc::new(Observed {
            started: env.unix_micros(),
            env,
            sessions: Mutex::default(),
            last_pid: AtomicI32::new(0),
            statements: Statements::default(),
            latency: Histogram::default(),
            failed: AtomicU64::new(0),
            min_duration: AtomicI64::new(-1),
            lock_wait: AtomicI64::new(-1),
        })
    }

    /// What to log from now on.
    pub fn set_log(&self, options: LogOptions) {
        self.min_duration.store(nanos(options.min_duration), Ordering::Relaxed);
        self.lock_wait.store(nanos(options.lock_wait), Ordering::Relaxed);
    }

    pub fn log(&self) -> LogOptions {
        let read = |cell: &AtomicI64| u64::try_from(cell.load(Ordering::Relaxed)).ok().map(Duration::from_nanos);
        LogOptions { min_duration: read(&self.min_duration), lock_wait: read(&self.lock_wait) }
    }

    /// The sessions there are, by process id.
    pub fn sessions(&self) -> Vec<Arc<Activity>> {
        self.sessions.lock().values().cloned().collect()
    }

    /// The session whose transaction has that number, or that has it itself.
    pub fn session_of(&self, number: u64) -> Option<Arc<Activity>> {
        let sessions = self.sessions.lock();
        sessions.values().find(|s| s.number == number || s.now().transaction == Some(number)).cloned()
    }

    /// Statements by normalised text, of all roles together.
    pub fn statements(&self) -> Vec<(Arc<str>, StatementTotals)> {
        let mut by_text: BTreeMap<Arc<str>, StatementTotals> = BTreeMap::new();
        for (_, text, totals) in self.statements.all() {
            *by_text.entry(text).or_default() += totals;
        }
        by_text.into_iter().collect()
    }

    /// The same by role (its name) and normalised text.
    pub(crate) fn statements_by_role(&self) -> Vec<(Arc<str>, Arc<str>, StatementTotals)> {
        self.statements.all()
    }

    /// Microseconds since 1970.
    pub(crate) fn now_micros(&self) -> i64 {
        self.env.unix_micros()
    }

    /// Forgets the statements so far.
    pub fn reset_statements(&self) {
        self.statements.clear();
    }

    /// How long statements took, since the server began.
    pub fn latency(&self) -> Distribution {
        let mut all = self.latency.read();
        for session in self.sessions() {
            all.merge(&session.latency.read());
        }
        all
    }

    /// Statements that failed.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    fn enter(&self, user: &str, number: u64) -> Arc<Activity> {
        let mut sessions = self.sessions.lock();
        let pid = loop {
            let last = self.last_pid.load(Ordering::Relaxed);
            let next = if last == i32::MAX { 1 } else { last + 1 };
            self.last_pid.store(next, Ordering::Relaxed);
            if !sessions.contains_key(&next) {
                break next;
            }
        };
        let activity = Arc::new(Activity::new((pid, number), user, self.env.unix_micros()));
        let before = sessions.insert(pid, activity.clone());
        assert!(before.is_none(), "a process id is one session's");
        activity
    }
}

/// A session's place among the sessions; dropping it frees the place.
pub(crate) struct Present {
    observed: Arc<Observed>,
    pub(crate) activity: Arc<Activity>,
}

impl Present {
    /// `number`: of the session among those who lock.
    pub(crate) fn enter(observed: &Arc<Observed>, user: &str, number: u64) -> Present {
        Present { observed: observed.clone(), activity: observed.enter(user, number) }
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        let left = self.observed.sessions.lock().remove(&self.activity.pid);
        debug_assert!(left.is_some_and(|activity| Arc::ptr_eq(&activity, &self.activity)), "it was there");
        self.observed.latency.add(&self.activity.latency.read());
    }
}
