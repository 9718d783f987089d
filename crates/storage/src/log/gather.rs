//! How long the writer lets commits gather before it makes them durable together.
//!
//! Clients that commit one transaction after another fall into two groups that take turns: while one group's sync runs,
//! the commits of the other arrive and wait for the next sync, so each sync serves half of them. If the writer waits
//! until as many commits have come as the last sync served or left waiting, every sync serves all of them. (This is the
//! delayed group commit of Helland et al., *Group commit timers and high volume transaction systems*, with the number
//! of clients in place of a timer.)
//!
//! 1. No commit waits for others longer than three quarters of the time that a sync takes. With a longer wait, two
//!    groups in turn would be as good.
//! 2. If the others did not come, the next groups do not wait for any: 1, 2, 4, ... of them. So a client that commits
//!    alone, or at random times, is hardly delayed.
//! 3. Syncs shorter than [`LEAST`] are not waited for: timers are no finer than a millisecond, and two groups in turn
//!    keep the processors busy (8 clients of TPC-B with syncs of 0.3 ms: 1.3 times the transactions). A sync longer
//!    than [`LONGEST`] is a stall and tells nothing about the next.
//! 4. A task that waits for the log for another reason than a commit (a page on its way home) is not delayed.
//! 5. A transaction that waits for a lock is not expected: a commit that gathers may hold the lock.
use super::Core;
use crate::sync::atomic::Ordering;
use futures::future::{Either, select};
use std::pin::pin;
use std::time::Duration;

/// Invariant 3. Nanoseconds.
const LEAST: u64 = 2_000_000;

/// Invariant 3. Nanoseconds.
const LONGEST: u64 = 20_000_000;

/// Groups that do not wait after others did not come.
const MOST_SKIPPED: u32 = 64;

/// What the last groups were like.
#[derive(Default)]
pub(super) struct Rhythm {
    /// Nanoseconds that a write and its sync take, averaged over the last few.
    took: u64,
    /// Commits that the last sync served or left waiting.
    expected: usize,
    /// Groups still to come that do not wait; as many as after the last disappointment.
    skip: u32,
    skipped: u32,
}

impl Rhythm {
    pub(super) fn wrote(&mut self, nanos: u64, commits: usize) {
        let nanos = nanos.min(LONGEST);
        self.took = if self.took == 0 { nanos } else { (self.took * 7 + nanos) / 8 };
        self.expected = commits;
    }

    fn limit(&self) -> Duration {
        Duration::from_nanos(self.took / 4 * 3)
    }

    fn ended(&mut self, complete: bool) {
        self.skipped = if complete { 0 } else { (self.skipped * 2).clamp(1, MOST_SKIPPED) };
        self.skip = self.skipped;
    }
}

impl Core {
    /// Whether the writer has reasons not to wait.
    fn is_hurried(&self) -> bool {
        self.is_closing()
            || self.reserving.waiters.load(Ordering::SeqCst) > 0
            || self.tail.lock().unwritten >= self.eager()
            || self.others_waiting()
    }

    /// Whether `waiting` commits are all that can come of the `wanted` (invariant 5).
    pub(super) fn has_come(&self, waiting: usize, wanted: usize) -> bool {
        waiting + self.wait.lock_waiters.load(Ordering::SeqCst) >= wanted
    }

    fn commits_waiting(&self) -> usize {
        self.wait.waiters.lock().commits
    }

    /// Whether somebody waits who does not commit (invariant 4).
    fn others_waiting(&self) -> bool {
        let waiters = self.wait.waiters.lock();
        waiters.by_lsn.len() > waiters.commits
    }

    /// Waits for the rest of a group of which somebody has come.
    pub(super) async fn gather(&self, rhythm: &mut Rhythm) {
        let (wanted, waiting) = (rhythm.expected, self.commits_waiting());
        if rhythm.took < LEAST || waiting == 0 || self.has_come(waiting, wanted) {
            return;
        }
        if rhythm.skip > 0 {
            rhythm.skip -= 1;
            return;
        }
        // From here on, commits that come before the last one need not wake the writer.
        self.wait.gathering.store(wanted, Ordering::SeqCst);
        let mut limit = self.env.sleep(rhythm.limit());
        let complete = loop {
            if self.has_come(self.commits_waiting(), wanted) {
                break Some(true);
            }
            if self.is_hurried() {
                break None;
            }
            match select(pin!(self.wait.wake_writer.notified()), &mut limit).await {
                Either::Left(_) => {}
                Either::Right(_) => break Some(false),
            }
        };
        self.wait.gathering.store(0, Ordering::SeqCst);
        if let Some(complete) = complete {
            rhythm.ended(complete);
        }
    }
}

#[cfg(test)]
mod tests;
