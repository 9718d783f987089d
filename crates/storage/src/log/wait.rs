//! Waiting until the log is durable: who waits, up to where the log is durable, and who is woken when.
//!
//! 1. Once the log is started, `durable` moves only in [`Core::now_durable`], after the sync, and under the lock of the
//!    waiters: nobody registers between the move and the wake-up.
//! 2. When the writer stops, everybody who waits learns it, and nobody waits any more (`closed`).

use super::writer::Work;
use super::{Core, Log};
use crate::error::{Result, StorageError};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::types::Lsn;
use std::collections::BTreeMap;
use tokio::sync::{Notify, oneshot};

/// The state that transactions and the writer share.
pub(super) struct Durability {
    /// Up to where the log is durable (`u64::MAX` while recovery reads).
    pub(super) durable: AtomicU64,
    pub(super) waiters: Mutex<Waiters>,
    /// While the writer lets commits gather: how many it waits for. Else 0.
    pub(super) gathering: AtomicUsize,
    /// Transactions that wait for a lock, and cannot commit before others do.
    pub(super) lock_waiters: AtomicUsize,
    pub(super) wake_writer: Notify,
}

impl Default for Durability {
    fn default() -> Durability {
        Durability {
            durable: AtomicU64::new(u64::MAX),
            waiters: Mutex::default(),
            gathering: AtomicUsize::new(0),
            lock_waiters: AtomicUsize::new(0),
            wake_writer: Notify::new(),
        }
    }
}

#[derive(Default)]
pub(super) struct Waiters {
    /// The writer has stopped: it would wake nobody.
    closed: bool,
    next: u64,
    pub(super) by_lsn: BTreeMap<(u64, u64), Waiter>,
    /// How many of them are commits.
    pub(super) commits: usize,
}

pub(super) struct Waiter {
    durable: oneshot::Sender<()>,
    commit: bool,
}

/// Counts a waiter for as long as it lives.
pub struct CountedWaiter<'a>(&'a AtomicUsize);

impl CountedWaiter<'_> {
    pub(super) fn among(waiters: &AtomicUsize) -> CountedWaiter<'_> {
        waiters.fetch_add(1, Ordering::SeqCst);
        CountedWaiter(waiters)
    }
}

impl Drop for CountedWaiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Log {
    /// Waits until the log is durable up to `lsn`. A failed sync poisons the log for good.
    pub async fn flush_to(&self, lsn: Lsn) -> Result<()> {
        self.wait_for(lsn, false).await
    }

    /// The same for a commit. The writer may delay it a little so that other commits share its sync (`gather`).
    pub async fn commit_to(&self, lsn: Lsn) -> Result<()> {
        self.wait_for(lsn, true).await
    }

    /// Counts a transaction that waits for a lock, and so does not commit meanwhile. The holder of the lock may be
    /// among the commits that gather. Without this count the two would wait for each other.
    pub fn count_lock_waiter(&self) -> CountedWaiter<'_> {
        let wait = &self.core.wait;
        let counted = CountedWaiter::among(&wait.lock_waiters);
        if wait.gathering.load(Ordering::SeqCst) > 0 {
            wait.wake_writer.notify_one();
        }
        counted
    }

    async fn wait_for(&self, lsn: Lsn, commit: bool) -> Result<()> {
        let core = &self.core;
        let wait = &core.wait;
        if wait.durable.load(Ordering::Acquire) >= lsn.0 {
            return core.check();
        }
        assert!(lsn <= self.end(), "flush to {lsn}, beyond the log's end {}", self.end());
        let done = {
            let mut waiters = wait.waiters.lock();
            if wait.durable.load(Ordering::Acquire) >= lsn.0 {
                return core.check();
            }
            core.check()?;
            if waiters.closed {
                return Err(StorageError::ShuttingDown);
            }
            let (durable, receive) = oneshot::channel();
            let key = (lsn.0, waiters.next);
            waiters.next += 1;
            waiters.by_lsn.insert(key, Waiter { durable, commit });
            waiters.commits += usize::from(commit);
            (receive, core.has_come(waiters.commits, wait.gathering.load(Ordering::SeqCst)))
        };
        let (done, enough) = done;
        {
            let mut tail = core.tail.lock();
            tail.requested = tail.requested.max(lsn.0);
        }
        if enough || !commit {
            wait.wake_writer.notify_one();
        }
        match done.await {
            Ok(()) => Ok(()),
            Err(_) => Err(core.check().err().unwrap_or(StorageError::ShuttingDown)),
        }
    }

    /// Up to where the log is durable.
    pub fn durable(&self) -> Lsn {
        self.core.durable_lsn()
    }
}

impl Core {
    /// Up to where the log is durable.
    pub(crate) fn durable_lsn(&self) -> Lsn {
        Lsn(self.wait.durable.load(Ordering::Acquire))
    }

    /// Wakes everybody who waits for what the writer has made durable. Answers how many commits this served or left
    /// waiting.
    pub(super) fn now_durable(&self, work: &mut Work) -> usize {
        let sealed = work.pieces.iter().any(|p| p.seal.is_some());
        self.tail.lock().written(work);
        let (done, commits) = {
            let mut waiters = self.wait.waiters.lock();
            assert!(work.end >= self.wait.durable.load(Ordering::Acquire), "durability goes back");
            self.wait.durable.store(work.end, Ordering::Release);
            let later = waiters.by_lsn.split_off(&(work.end + 1, 0));
            let done = std::mem::replace(&mut waiters.by_lsn, later);
            let all = waiters.commits;
            waiters.commits -= done.values().filter(|waiter| waiter.commit).count();
            (done, all)
        };
        for (_, waiter) in done {
            let _ = waiter.durable.send(()); // Its future may have been dropped.
        }
        if sealed {
            self.reserving.wake_space.notify_one();
            self.archiving.wake.notify_one();
        }
        self.wake_reservations();
        commits
    }

    /// Invariant 2.
    pub(super) fn close_waiters(&self) {
        let mut waiters = self.wait.waiters.lock();
        waiters.closed = true;
        let dropped = std::mem::take(&mut waiters.by_lsn);
        waiters.commits = 0;
        drop(waiters);
        drop(dropped); // A dropped sender wakes its receiver.
    }
}
