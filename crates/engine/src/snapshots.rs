//! Which transactions are active, what a snapshot sees, and how far purge may go.
//!
//! 1. A transaction is registered in the same step that assigns its id. It is removed after its commit is durable or
//!    its changes are undone. So a writer that is neither active nor in the future has committed.
//! 2. The *horizon* is the smallest of the next id, the active ids and the low ends of registered snapshots. It never
//!    goes back. Every snapshot that exists or can still be taken sees every finished transaction below it.
//! 3. Undo records of transactions at or above the horizon exist. So a reader registers its snapshot before it walks a
//!    row's versions, and does not go below the first version that it sees.
//! 4. `low` is at most the smallest active id and at most the next id, and never goes back once losers have been
//!    registered (`txn::losers`). A writer with an id below it has committed, or has undone its changes, for good.
//!    Readers load `low` before they read what they judge by it.
//! 5. A snapshot that was given up for undo space keeps nothing alive any more: versions that it should see may be
//!    missing, or something else may be in their place. Its flag is set before the horizon moves, both under the lock
//!    in this file. Purge reads the horizon under that lock before it changes a page, and pages are changed and read
//!    under latches (extents of undo change owners under a lock). So a reader that read what purge had touched finds
//!    the flag set *afterwards*. Whatever was read with a snapshot, missing rows included, passes through
//!    [`Snapshot::believe`], which looks at the flag after the reading. It looks at the flag before it looks at errors
//!    too, because an error may come from what was no longer there.
use crate::error::{EngineError, Result};
use crate::locks::{Owner, TxnState};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use terrace_env::Nanos;
use terrace_storage::{CheckedMutex, TxnId};

pub(crate) mod exported;

/// What a set of transactions looks like from outside.
struct View {
    next: TxnId,
    /// Ascending.
    active: Vec<TxnId>,
}

/// A registered snapshot: holds the horizon while it lives.
pub(crate) struct Snapshot {
    view: Arc<View>,
    key: (TxnId, u64),
    given_up: AtomicBool,
    /// Statements under way that read with it.
    statements: AtomicU32,
    registry: Arc<Active>,
}

/// A statement under way that reads with a snapshot: while it lives, idle transactions' snapshots are given up rather
/// than this one.
pub struct Underway(Arc<Snapshot>);

/// What a cursor keeps of the statement that declared it.
#[derive(Clone)]
pub struct Paused(Weak<Snapshot>);

#[derive(Default)]
struct Inner {
    next: TxnId,
    active: BTreeMap<TxnId, Arc<TxnState>>,
    /// By low end and order of registration.
    snapshots: BTreeMap<(TxnId, u64), (Nanos, Weak<Snapshot>)>,
    registered: u64,
    /// The view since the last change.
    view: Option<Arc<View>>,
}

pub(crate) struct Active {
    inner: CheckedMutex<Inner>,
    low: AtomicU64,
    /// Invariant 5 holds (but in tests that show that it is needed).
    checks: bool,
}

/// A snapshot that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GivenUp {
    /// When it was taken.
    pub(crate) since: Nanos,
    /// A statement was reading with it.
    pub(crate) underway: bool,
}

/// For statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxnStats {
    /// Writing transactions.
    pub active: usize,
    pub snapshots: usize,
    pub next: TxnId,
    pub horizon: TxnId,
    /// Age of the oldest snapshot in nanoseconds.
    pub oldest_snapshot: u64,
}

impl Snapshot {
    /// Whether the snapshot sees what `writer` wrote; `own` is the reader's id (0: it has not written).
    pub(crate) fn sees(&self, writer: TxnId, own: TxnId) -> bool {
        writer == own
            || writer < self.key.0
            || (writer < self.view.next && self.view.active.binary_search(&writer).is_err())
    }
    /// 72000 where the snapshot was given up for undo space.
    pub(crate) fn check(&self) -> Result<()> {
        if self.given_up.load(Ordering::Acquire) && self.registry.checks {
            Err(EngineError::snapshot_too_old())
        } else {
            Ok(())
        }
    }
    /// What was read with the snapshot, where it was whole until then (invariant 5); else 72000, whatever the reading
    /// found.
    pub(crate) fn believe<T, E: Into<EngineError>>(&self, read: std::result::Result<T, E>) -> Result<T> {
        self.check()?;
        read.map_err(E::into)
    }
    pub(crate) fn underway(self: &Arc<Self>) -> Underway {
        self.statements.fetch_add(1, Ordering::Relaxed);
        Underway(self.clone())
    }
    pub(crate) fn paused(self: &Arc<Self>) -> Paused {
        Paused(Arc::downgrade(self))
    }
    /// The horizon's bound while this is registered.
    pub(crate) fn low(&self) -> TxnId {
        self.key.0
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.statements.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Paused {
    /// It goes on: a FETCH. `None` where nothing of it is left to read.
    pub fn go_on(&self) -> Option<Underway> {
        self.0.upgrade().map(|snapshot| snapshot.underway())
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.registry.inner.lock().snapshots.remove(&self.key);
    }
}

impl Inner {
    fn low(&self) -> TxnId {
        self.active.first_key_value().map_or(self.next, |(id, _)| *id)
    }

    fn horizon(&self) -> TxnId {
        let oldest = self.low();
        self.snapshots.first_key_value().map_or(oldest, |(key, _)| key.0.min(oldest))
    }

    fn view(&mut self) -> Arc<View> {
        let (next, active) = (self.next, &self.active);
        self.view.get_or_insert_with(|| Arc::new(View { next, active: active.keys().copied().collect() })).clone()
    }

    fn register(&mut self, registry: &Arc<Active>, low: TxnId, now: Nanos) -> Arc<Snapshot> {
        self.registered += 1;
        let (view, key) = (self.view(), (low, self.registered));
        let (given_up, statements) = (AtomicBool::new(false), AtomicU32::new(0));
        let snapshot = Arc::new(Snapshot { view, key, given_up, statements, registry: registry.clone() });
        self.snapshots.insert(key, (now, Arc::downgrade(&snapshot)));
        snapshot
    }
}

impl Active {
    pub(crate) fn new(checks: bool) -> Active {
        Active { inner: CheckedMutex::default(), low: AtomicU64::default(), checks }
    }

    /// Sets the next id at opening.
    pub(crate) fn start(&self, next: TxnId) {
        let mut inner = self.inner.lock();
        inner.next = next;
        self.note_low(&inner);
    }

    /// Invariant 4: under the lock, and before `enter` answers (its transaction writes later than that).
    fn note_low(&self, inner: &Inner) {
        self.low.store(inner.low().0, Ordering::SeqCst);
    }

    /// Invariant 4.
    pub(crate) fn low(&self) -> TxnId {
        TxnId(self.low.load(Ordering::SeqCst))
    }

    /// Called by `UndoSpace::begin` in the step that assigns the id.
    pub(crate) fn enter(&self, id: TxnId, owner: Owner) -> Arc<TxnState> {
        let state = Arc::new(TxnState::new(id, owner));
        let mut inner = self.inner.lock();
        inner.next = inner.next.max(TxnId(id.0 + 1));
        inner.active.insert(id, state.clone());
        inner.view = None;
        self.note_low(&inner);
        state
    }

    /// From here on snapshots see it. Waiters are woken separately.
    pub(crate) fn leave(&self, id: TxnId) {
        let mut inner = self.inner.lock();
        let known = inner.active.remove(&id);
        assert!(known.is_some(), "an active transaction leaves once");
        inner.view = None;
        self.note_low(&inner);
    }

    pub(crate) fn get(&self, id: TxnId) -> Option<Arc<TxnState>> {
        self.inner.lock().active.get(&id).cloned()
    }

    pub(crate) fn snapshot(self: &Arc<Self>, now: Nanos) -> Arc<Snapshot> {
        let mut inner = self.inner.lock();
        let low = inner.low();
        inner.register(self, low, now)
    }

    /// Holds the horizon where it is; what is below needs no older version for anybody.
    pub(crate) fn hold(self: &Arc<Self>) -> Arc<Snapshot> {
        let mut inner = self.inner.lock();
        let low = inner.horizon();
        // Never too old: `give_up_one` takes none while it holds.
        inner.register(self, low, Nanos(u64::MAX))
    }

    pub(crate) fn horizon(&self) -> TxnId {
        self.inner.lock().horizon()
    }

    /// Gives up one snapshot taken before `limit`, of those that keep what `oldest` left behind: all of these must go
    /// before that does. So none goes where a transaction still active keeps it too, or a snapshot that is younger.
    /// That of an idle transaction goes before those that a statement under way reads with; of each kind the oldest.
    pub(crate) fn give_up_one(&self, oldest: TxnId, limit: Nanos) -> Option<GivenUp> {
        // Strong references go after the lock: their drop takes it.
        let mut upgraded = Vec::new();
        let mut inner = self.inner.lock();
        if inner.low() <= oldest || inner.horizon() > oldest {
            return None;
        }
        for (key, (since, snapshot)) in inner.snapshots.range(..=(oldest, u64::MAX)) {
            upgraded.extend(snapshot.upgrade().map(|snapshot| (*key, *since, snapshot)));
        }
        if upgraded.iter().any(|(_, since, _)| *since >= limit) {
            return None;
        }
        let busy = |snapshot: &Snapshot| snapshot.statements.load(Ordering::Relaxed) > 0;
        let (key, since, snapshot) = upgraded.iter().min_by_key(|(key, _, snapshot)| (busy(snapshot), *key))?;
        let given_up = GivenUp { since: *since, underway: busy(snapshot) };
        // Invariant 5: the flag is up before the horizon can move.
        snapshot.given_up.store(true, Ordering::Release);
        inner.snapshots.remove(key);
        drop(inner);
        Some(given_up)
    }

    /// Wakes every waiter (the server is going down).
    pub(crate) fn wake_all(&self) {
        let states: Vec<_> = self.inner.lock().active.values().cloned().collect();
        for state in states {
            state.wake(false);
        }
    }

    pub(crate) fn stats(&self, now: Nanos) -> TxnStats {
        let inner = self.inner.lock();
        let oldest = inner.snapshots.values().map(|(since, _)| now.0.saturating_sub(since.0)).max();
        TxnStats {
            active: inner.active.len(),
            snapshots: inner.snapshots.len(),
            next: inner.next,
            horizon: inner.horizon(),
            oldest_snapshot: oldest.unwrap_or(0),
        }
    }
}
