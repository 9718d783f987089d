//! Locks, and the wait-for graph. There are locks on tables and on rows that are locked without being changed (held to
//! the end of the transaction), turns on rows (held while one waiter becomes the writer), and locks on numbers
//! ([`crate::advisory`]).
//!
//! 1. Each lock's queue is first come, first served among modes that conflict. Only a holder that asks for a stronger
//!    mode goes to the front. A transaction never waits for a mode that does not conflict with its own, so every wait
//!    has an edge.
//! 2. A transaction waits for one thing at a time. The graph's edges follow from holders and queues as they are at the
//!    moment of the search.
//! 3. The transaction that adds an edge searches for a cycle through itself, and is the victim (40P01). A lock that is
//!    handed over adds edges from the queue to the new holder. The new holder runs; when it waits again, it searches.
//! 4. A dropped wait leaves no edge, no place in a queue and no unused grant.
//! 5. `explicit` counts locks of rows. A transaction raises it before it looks at the row that it wants to lock, and a
//!    writer looks at it under the row's latch. So either the writer finds the lock, or the locking transaction finds
//!    the writer's header. Rows that nobody locks cost a writer one load.
//! 6. A lock of a row's key (`AccessShare`) may be granted while the row's writer is active, if the writer has left the
//!    key as it is. So a writer looks for such locks also when it writes its own row again, if it changes the key then.
//!    Other locks of its own row are those of transactions that wait for it: it passes them by.
//! 7. Advisory locks are a session's, under an owner of its own. While its transaction is open, the session waits as
//!    that transaction, and who waits for the session waits for that transaction (`Inner::stand_in`). So a cycle
//!    through locks of both kinds is found. A session has each mode of an advisory lock by itself, and once.
use crate::advisory::AdvisoryKey;
use crate::error::{EngineError, Result};
use futures::future::{Either, select};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use terrace_env::{Env, Nanos};
use terrace_storage::log::{CountedWaiter, Log};
use terrace_storage::{ObjectId, Rid, TxnId};
use tokio::sync::Notify;

#[cfg(test)]
mod tests;

/// Modes of locks on tables, and of locks on rows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LockMode {
    /// Reads rows. Of a row: FOR KEY SHARE, its key stays.
    AccessShare,
    /// Writes rows.
    RowExclusive,
    /// Reads all rows while nobody writes (CREATE INDEX). Of a row: FOR SHARE.
    Share,
    /// Others read rows, and nothing else (what a new foreign key refers to). Of a row: FOR NO KEY UPDATE, and an
    /// update that leaves the keys as they are.
    ShareRowExclusive,
    /// Alone (DROP, ALTER). Of a row: FOR UPDATE, a deletion, an update of a key.
    AccessExclusive,
}

impl LockMode {
    fn conflicts(self, other: LockMode) -> bool {
        use LockMode::*;
        match (self, other) {
            (AccessExclusive, _) | (_, AccessExclusive) => true,
            (AccessShare, _) | (_, AccessShare) => false,
            (ShareRowExclusive, _) | (_, ShareRowExclusive) => true,
            (a, b) => a != b,
        }
    }
    /// Whether holding `self` is as good as holding `other`.
    pub(crate) fn covers(self, other: LockMode) -> bool {
        use LockMode::*;
        self == other || self == AccessExclusive || other == AccessShare || (self == ShareRowExclusive && self > other)
    }
}

/// A transaction, or something else that locks. It is known before the transaction has an id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Owner(pub(crate) u64);

/// Rows that may be locked without being changed, by all transactions together: each takes about 200 bytes.
const MAX_ROW_LOCKS: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// Advisory locks of all sessions together, of about the same size.
const MAX_ADVISORY_LOCKS: usize = if cfg!(test) { 1 << 6 } else { 1 << 20 };

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum LockKey {
    Table(ObjectId),
    /// The turn to wait for a row's writer.
    Row(ObjectId, Rid),
    /// A row locked without being changed (SELECT ... FOR UPDATE).
    Explicit(ObjectId, Rid),
    /// The keys of a table that foreign keys refer to, in place of locks of very many rows' keys (`Share`). Who takes a
    /// key away has it, too (`RowExclusive`).
    Keys(ObjectId),
    Advisory(AdvisoryKey),
}

/// A writing transaction, for those who wait for its end.
pub(crate) struct TxnState {
    pub(crate) id: TxnId,
    pub(crate) owner: Owner,
    ended: AtomicBool,
    progress: Notify,
}

impl TxnState {
    pub(crate) fn new(id: TxnId, owner: Owner) -> TxnState {
        TxnState { id, owner, ended: AtomicBool::new(false), progress: Notify::new() }
    }
    /// Wakes those who wait: it has ended, or given rows back.
    pub(crate) fn wake(&self, ended: bool) {
        if ended {
            self.ended.store(true, Ordering::Release);
        }
        self.progress.notify_waiters();
    }
}

struct Waiter {
    owner: Owner,
    /// Under which the wait is in the books (invariant 7).
    waits_as: Owner,
    mode: LockMode,
    granted: Arc<Notify>,
}

#[derive(Default)]
struct Lock {
    granted: Vec<(Owner, LockMode)>,
    queue: VecDeque<Waiter>,
}

#[derive(Clone, Copy)]
pub(crate) enum Wait {
    Txn(Owner),
    Lock(LockKey, LockMode),
}

#[derive(Default)]
struct Inner {
    locks: FxHashMap<LockKey, Lock>,
    /// With the time since when.
    waits: FxHashMap<Owner, (Wait, Nanos)>,
    explicit: Arc<AtomicUsize>,
    /// Advisory locks in `locks`.
    advisory: usize,
    /// The numbers of the open transactions (0: none) of sessions that use advisory locks.
    sessions: FxHashMap<Owner, Arc<AtomicU64>>,
}

pub(crate) struct Locks {
    /// Told of every wait, so that commits gather without those who wait.
    log: Option<Log>,
    inner: Mutex<Inner>,
    /// Locks of rows (invariant 5): the same count as within.
    explicit: Arc<AtomicUsize>,
    /// Nanoseconds of all waits that have ended with what was waited for.
    waited: AtomicU64,
}

impl Locks {
    pub(crate) fn new(log: Option<Log>) -> Locks {
        let inner = Inner::default();
        Locks { log, explicit: inner.explicit.clone(), inner: Mutex::new(inner), waited: AtomicU64::new(0) }
    }

    /// How long transactions have waited for each other so far.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited.load(Ordering::Relaxed))
    }

    fn note_wait(&self, env: &Env, since: Nanos) {
        self.waited.fetch_add(env.now().0.saturating_sub(since.0), Ordering::Relaxed);
    }

    fn count_lock_waiter(&self) -> Option<CountedWaiter<'_>> {
        self.log.as_ref().map(Log::count_lock_waiter)
    }
}

/// A lock held or asked for, for statistics.
pub(crate) struct LockInfo {
    pub(crate) key: LockKey,
    pub(crate) mode: LockMode,
    pub(crate) owner: Owner,
    pub(crate) granted: bool,
}

/// A wait, for statistics.
pub(crate) struct WaitInfo {
    pub(crate) what: Wait,
    pub(crate) since: Nanos,
    pub(crate) blocked_by: Vec<Owner>,
}

impl Lock {
    /// Whether nobody else's lock, and none asked for by the first `ahead` in the queue, stands against it.
    fn admits(&self, owner: Owner, mode: LockMode, ahead: usize) -> bool {
        self.granted.iter().all(|(o, m)| *o == owner || !m.conflicts(mode))
            && self.queue.iter().take(ahead).all(|w| !w.mode.conflicts(mode))
    }
    fn holds(&self, owner: Owner) -> bool {
        self.granted.iter().any(|(o, _)| *o == owner)
    }
    fn covers(&self, owner: Owner, key: LockKey, mode: LockMode) -> bool {
        let exactly = matches!(key, LockKey::Advisory(_));
        self.granted.iter().any(|(o, m)| *o == owner && if exactly { *m == mode } else { m.covers(mode) })
    }
}

impl Inner {
    /// The lock, made where it is not there; 53200 where there are too many.
    fn entry(&mut self, key: LockKey) -> Result<&mut Lock> {
        match key {
            LockKey::Explicit(..) if !self.locks.contains_key(&key) => {
                if self.explicit.load(Ordering::Relaxed) >= MAX_ROW_LOCKS {
                    return Err(EngineError::too_many_row_locks(MAX_ROW_LOCKS));
                }
                self.explicit.fetch_add(1, Ordering::SeqCst);
            }
            LockKey::Advisory(_) if !self.locks.contains_key(&key) => {
                if self.advisory >= MAX_ADVISORY_LOCKS {
                    return Err(EngineError::too_many_advisory_locks(MAX_ADVISORY_LOCKS));
                }
                self.advisory += 1;
            }
            _ => {}
        }
        Ok(self.locks.entry(key).or_default())
    }

    fn tidy(&mut self, key: LockKey) {
        if self.locks.get(&key).is_some_and(|lock| lock.granted.is_empty() && lock.queue.is_empty()) {
            self.locks.remove(&key);
            match key {
                LockKey::Explicit(..) => drop(self.explicit.fetch_sub(1, Ordering::SeqCst)),
                LockKey::Advisory(_) => self.advisory -= 1,
                _ => {}
            }
        }
    }

    /// Of a session's owner: that of its open transaction, where there is one (invariant 7). Of others: themselves.
    fn stand_in(&self, owner: Owner) -> Owner {
        match self.sessions.get(&owner).map_or(0, |transaction| transaction.load(Ordering::SeqCst)) {
            0 => owner,
            transaction => Owner(transaction),
        }
    }

    /// Grants what can be granted, from the front of the queue on (invariant 1).
    fn grant(&mut self, key: LockKey) {
        let Some(lock) = self.locks.get_mut(&key) else { return };
        let mut ahead = 0;
        while let Some(next) = lock.queue.get(ahead) {
            if !lock.admits(next.owner, next.mode, ahead) {
                ahead += 1;
                continue;
            }
            let waiter = lock.queue.remove(ahead).expect("`ahead` was found in the queue just now");
            lock.granted.push((waiter.owner, waiter.mode));
            self.waits.remove(&waiter.waits_as);
            waiter.granted.notify_one();
        }
        self.tidy(key);
    }

    fn release(&mut self, owner: Owner, key: LockKey, mode: LockMode) {
        if let Some(lock) = self.locks.get_mut(&key) {
            if let Some(i) = lock.granted.iter().position(|g| *g == (owner, mode)) {
                lock.granted.swap_remove(i);
            }
            self.grant(key);
        }
    }

    /// Takes a waiter out of the queue.
    fn leave_queue(&mut self, waits_as: Owner, key: LockKey) {
        self.waits.remove(&waits_as);
        if let Some(lock) = self.locks.get_mut(&key) {
            lock.queue.retain(|w| w.waits_as != waits_as);
        }
        self.grant(key);
    }

    /// Whom `owner` waits for now (invariant 2).
    fn successors(&self, owner: Owner, out: &mut Vec<Owner>) {
        match self.waits.get(&owner).map(|(wait, _)| wait) {
            None => {}
            Some(Wait::Txn(holder)) => out.push(*holder),
            Some(Wait::Lock(key, mode)) => {
                let Some(lock) = self.locks.get(key) else { return };
                let against = lock.granted.iter().filter(|(_, m)| m.conflicts(*mode));
                out.extend(against.map(|(holder, _)| self.stand_in(*holder)).filter(|holder| *holder != owner));
                let ahead = lock.queue.iter().take_while(|w| w.waits_as != owner);
                out.extend(ahead.filter(|w| w.mode.conflicts(*mode)).map(|w| w.waits_as));
            }
        }
    }

    /// Whether `owner` waits, through any number of others, for itself (invariant 3).
    fn in_cycle(&self, owner: Owner) -> bool {
        let mut seen = FxHashSet::default();
        let mut todo = Vec::new();
        self.successors(owner, &mut todo);
        while let Some(next) = todo.pop() {
            if next == owner {
                return true;
            }
            if seen.insert(next) {
                self.successors(next, &mut todo);
            }
        }
        false
    }
}

/// Undoes a wait that ends in whatever way (invariant 4).
struct WaitGuard<'a> {
    locks: &'a Locks,
    owner: Owner,
    waits_as: Owner,
    /// The lock waited for, until the grant is accepted.
    lock: Option<(LockKey, LockMode)>,
    _counted: Option<CountedWaiter<'a>>,
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let mut inner = self.locks.inner.lock();
        let waiting = inner.waits.contains_key(&self.waits_as);
        match self.lock {
            Some((key, _)) if waiting => inner.leave_queue(self.waits_as, key),
            Some((key, mode)) => inner.release(self.owner, key, mode),
            None => {
                inner.waits.remove(&self.waits_as);
            }
        }
    }
}

/// A turn on a row; ends when dropped.
pub(crate) struct Turn {
    locks: Arc<Locks>,
    owner: Owner,
    key: LockKey,
    mode: LockMode,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.locks.release(self.owner, self.key, self.mode);
    }
}

impl Locks {
    /// Waits for a lock. Granted, it is the owner's until released. False where he has it already.
    pub(crate) async fn acquire(
        &self,
        env: &Env,
        owner: Owner,
        key: LockKey,
        mode: LockMode,
        timeout: Duration,
    ) -> Result<bool> {
        let granted = Arc::new(Notify::new());
        let mut guard = {
            let mut inner = self.inner.lock();
            let waits_as = inner.stand_in(owner);
            let lock = inner.entry(key)?;
            if lock.covers(owner, key, mode) {
                return Ok(false);
            }
            let upgrade = lock.holds(owner);
            let ahead = if upgrade { 0 } else { lock.queue.len() };
            if lock.admits(owner, mode, ahead) {
                lock.granted.push((owner, mode));
                return Ok(true);
            }
            let waiter = Waiter { owner, waits_as, mode, granted: granted.clone() };
            if upgrade {
                lock.queue.push_front(waiter);
            } else {
                lock.queue.push_back(waiter);
            }
            let before = inner.waits.insert(waits_as, (Wait::Lock(key, mode), env.now()));
            debug_assert!(before.is_none(), "invariant 2: {waits_as:?} waits already");
            if inner.in_cycle(waits_as) {
                inner.leave_queue(waits_as, key);
                return Err(EngineError::deadlock());
            }
            WaitGuard { locks: self, owner, waits_as, lock: Some((key, mode)), _counted: self.count_lock_waiter() }
        };
        let since = env.now();
        with_timeout(env, timeout, granted.notified()).await?;
        self.note_wait(env, since);
        guard.lock = None;
        Ok(true)
    }

    /// As `acquire`, without waiting: `None` where that would be needed.
    pub(crate) fn try_acquire(&self, owner: Owner, key: LockKey, mode: LockMode) -> Result<Option<bool>> {
        let mut inner = self.inner.lock();
        let lock = inner.entry(key)?;
        if lock.covers(owner, key, mode) {
            return Ok(Some(false));
        }
        let ahead = if lock.holds(owner) { 0 } else { lock.queue.len() };
        let admitted = lock.admits(owner, mode, ahead);
        if admitted {
            lock.granted.push((owner, mode));
        }
        inner.tidy(key);
        Ok(admitted.then_some(true))
    }

    /// Whether rows are locked at all.
    pub(crate) fn are_rows_locked(&self) -> bool {
        self.explicit.load(Ordering::SeqCst) != 0
    }

    /// Whether a lock that somebody else has on a row, without having changed it, stands against a write (invariants 5
    /// and 6). `own`: the writer has written the row already. Short: may be asked under a latch.
    pub(crate) fn is_row_locked(&self, owner: Owner, (table, rid): (ObjectId, Rid), mode: LockMode, own: bool) -> bool {
        if !self.are_rows_locked() {
            return false;
        }
        let inner = self.inner.lock();
        let Some(lock) = inner.locks.get(&LockKey::Explicit(table, rid)) else { return false };
        let counts = |other: LockMode| other.conflicts(mode) && (!own || other == LockMode::AccessShare);
        lock.granted.iter().any(|(o, other)| *o != owner && counts(*other))
    }

    /// Whether somebody has, or wants, a table for himself.
    pub(crate) fn is_reserved(&self, table: ObjectId) -> bool {
        let inner = self.inner.lock();
        let Some(lock) = inner.locks.get(&LockKey::Table(table)) else { return false };
        let alone = LockMode::AccessExclusive;
        lock.granted.iter().any(|(_, mode)| *mode == alone) || lock.queue.iter().any(|w| w.mode == alone)
    }

    /// A session begins to use advisory locks; `transaction`: the number of its open one, as it changes (0: none).
    pub(crate) fn add_session(&self, session: Owner, transaction: &Arc<AtomicU64>) {
        self.inner.lock().sessions.insert(session, transaction.clone());
    }

    pub(crate) fn remove_session(&self, session: Owner) {
        self.inner.lock().sessions.remove(&session);
    }

    /// Every lock, held or asked for, by key.
    pub(crate) fn all(&self) -> Vec<LockInfo> {
        let inner = self.inner.lock();
        let mut all = Vec::new();
        for (&key, lock) in &inner.locks {
            all.extend(lock.granted.iter().map(|&(owner, mode)| LockInfo { key, mode, owner, granted: true }));
            all.extend(lock.queue.iter().map(|w| LockInfo { key, mode: w.mode, owner: w.owner, granted: false }));
        }
        drop(inner);
        all.sort_by_key(|l| (l.key, !l.granted, l.owner));
        all
    }

    /// What a transaction waits for.
    pub(crate) fn waiting(&self, owner: Owner) -> Option<WaitInfo> {
        let inner = self.inner.lock();
        let &(what, since) = inner.waits.get(&owner)?;
        let mut blocked_by = Vec::new();
        inner.successors(owner, &mut blocked_by);
        drop(inner);
        blocked_by.sort_unstable();
        blocked_by.dedup();
        Some(WaitInfo { what, since, blocked_by })
    }

    /// Takes a turn on a row, in the order of asking.
    pub(crate) async fn turn(
        self: &Arc<Self>,
        env: &Env,
        owner: Owner,
        (key, mode): (LockKey, LockMode),
        timeout: Duration,
    ) -> Result<Turn> {
        let new = self.acquire(env, owner, key, mode, timeout).await?;
        assert!(new, "who has a lock takes no turn on it: the turn's end would release it");
        Ok(Turn { locks: self.clone(), owner, key, mode })
    }

    /// Waits until the transaction has ended or given something back; look again then. `alive`: whether anybody will
    /// wake it; the task that makes that untrue wakes all waiters.
    pub(crate) async fn wait_for(
        &self,
        env: &Env,
        owner: Owner,
        holder: &TxnState,
        timeout: Duration,
        alive: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let mut progress = pin!(holder.progress.notified());
        progress.as_mut().enable();
        alive()?;
        if holder.ended.load(Ordering::Acquire) {
            return Ok(());
        }
        let _guard = {
            let mut inner = self.inner.lock();
            inner.waits.insert(owner, (Wait::Txn(holder.owner), env.now()));
            if inner.in_cycle(owner) {
                inner.waits.remove(&owner);
                return Err(EngineError::deadlock());
            }
            WaitGuard { locks: self, owner, waits_as: owner, lock: None, _counted: self.count_lock_waiter() }
        };
        let since = env.now();
        with_timeout(env, timeout, progress).await?;
        self.note_wait(env, since);
        Ok(())
    }

    pub(crate) fn release(&self, owner: Owner, key: LockKey, mode: LockMode) {
        self.inner.lock().release(owner, key, mode);
    }

    /// Releases everything a transaction held.
    pub(crate) fn release_all(&self, owner: Owner, held: &[(LockKey, LockMode)]) {
        if !held.is_empty() {
            let mut inner = self.inner.lock();
            for (key, mode) in held {
                inner.release(owner, *key, *mode);
            }
        }
    }

    /// Edges and locks in the books: none when nobody works.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> usize {
        let inner = self.inner.lock();
        inner.locks.len() + inner.waits.len() + inner.advisory
    }
}

/// Zero = wait for ever.
async fn with_timeout(env: &Env, timeout: Duration, what: impl Future<Output = ()>) -> Result<()> {
    if timeout.is_zero() {
        what.await;
        return Ok(());
    }
    match select(pin!(what), env.sleep(timeout)).await {
        Either::Left(_) => Ok(()),
        Either::Right(_) => Err(EngineError::lock_timeout()),
    }
}
