//! Advisory locks: locks on numbers. Programs agree on what a number stands for; the database only keeps the locks. A
//! session has a lock until it gives it up, or its transaction has it to its end.
//!
//! 1. The table of locks ([`crate::locks`], invariant 7) has a lock as the session's, whoever of the two has it: so the
//!    one never waits for the other. It has it once, as long as anybody is counted here. A shared and an exclusive lock
//!    of a number are two locks.
//! 2. A session's lock is counted: it must be given up as often as it was taken. It outlives transactions, rolled back
//!    or not, and goes with the session, which calls [`Advisory::unlock_all`] then.
//! 3. A transaction's lock goes at its end, or when the transaction goes back to a savepoint before it. Nothing else
//!    gives it up.
//! 4. A session waits for one of them at a time.
//!
//! Source: PostgreSQL 15 documentation, chapters 9.27.10 and 13.3.5.
use crate::database::Core;
use crate::error::{EngineError, Result};
use crate::locks::{LockKey, LockMode, Owner};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The two forms do not meet: `One(1)` is another lock than any `Two`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AdvisoryKey {
    One(i64),
    Two(i32, i32),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AdvisoryLock {
    pub key: AdvisoryKey,
    /// With others that share it.
    pub shared: bool,
}

/// Who has a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    Session,
    /// The session's open transaction.
    Transaction,
}

impl AdvisoryLock {
    fn mode(self) -> LockMode {
        if self.shared { LockMode::Share } else { LockMode::AccessExclusive }
    }
}

/// The advisory locks of one session. The last handle to go releases what is left.
pub struct Advisory {
    core: Arc<Core>,
    owner: Owner,
    /// The number of the session's open transaction; 0: none.
    transaction: Arc<AtomicU64>,
    /// Nanoseconds; 0: for ever.
    lock_timeout: AtomicU64,
    books: Mutex<Books>,
    /// Invariant 4.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Books {
    held: FxHashMap<AdvisoryLock, Counts>,
    /// Of each transaction, as it took them. (One that commits in the background may have some beside the open one.)
    of_transactions: FxHashMap<Owner, Vec<AdvisoryLock>>,
    /// Whether the table of locks knows the session.
    is_known: bool,
}

#[derive(Default)]
struct Counts {
    session: u64,
    /// Each counts once. Few: see `of_transactions`.
    transactions: Vec<Owner>,
}

impl Counts {
    fn is_none(&self) -> bool {
        self.session == 0 && self.transactions.is_empty()
    }
}

impl Advisory {
    pub(crate) fn new(core: Arc<Core>) -> Arc<Advisory> {
        let owner = core.new_owner();
        Arc::new(Advisory {
            core,
            owner,
            transaction: Arc::default(),
            lock_timeout: AtomicU64::new(0),
            books: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        })
    }

    /// The session's number in [`crate::status`]: no transaction has it.
    pub fn number(&self) -> u64 {
        self.owner.0
    }

    /// Waits for a lock. 40P01, 55P03; 53200 where there are too many.
    pub async fn lock(&self, lock: AdvisoryLock, holder: Holder) -> Result<()> {
        let _turn = self.turn.lock().await;
        let by = self.owner_of(holder)?;
        if self.add_held(lock, by) {
            return Ok(());
        }
        let timeout = Duration::from_nanos(self.lock_timeout.load(Ordering::Relaxed));
        let key = LockKey::Advisory(lock.key);
        self.core.locks.acquire(&self.core.env, self.owner, key, lock.mode(), timeout).await?;
        self.books.lock().add(lock, by);
        Ok(())
    }

    /// The same at once; false where it would have to wait.
    pub fn try_lock(&self, lock: AdvisoryLock, holder: Holder) -> Result<bool> {
        let by = self.owner_of(holder)?;
        if self.add_held(lock, by) {
            return Ok(true);
        }
        let granted = self.core.locks.try_acquire(self.owner, LockKey::Advisory(lock.key), lock.mode())?;
        if granted.is_some() {
            self.books.lock().add(lock, by);
        }
        Ok(granted.is_some())
    }

    /// Counts a lock once more where somebody of the session has it; whether that is so. `by`: as [`Books::add`].
    fn add_held(&self, lock: AdvisoryLock, by: Option<Owner>) -> bool {
        let mut books = self.books.lock();
        if !books.is_known {
            books.is_known = true;
            self.core.locks.add_session(self.owner, &self.transaction);
        }
        let held = books.held.contains_key(&lock);
        if held {
            books.add(lock, by);
        }
        held
    }

    /// `None`: the session itself.
    fn owner_of(&self, holder: Holder) -> Result<Option<Owner>> {
        match (holder, self.transaction.load(Ordering::SeqCst)) {
            (Holder::Session, _) => Ok(None),
            (Holder::Transaction, 0) => Err(EngineError::internal("no transaction is open that could have a lock")),
            (Holder::Transaction, number) => Ok(Some(Owner(number))),
        }
    }

    /// Gives a lock of the session's up once; false where the session has none.
    pub fn unlock(&self, lock: AdvisoryLock) -> bool {
        let mut books = self.books.lock();
        let Some(counts) = books.held.get_mut(&lock).filter(|counts| counts.session > 0) else { return false };
        counts.session -= 1;
        self.settle(&mut books, lock);
        true
    }

    /// Gives up all locks of the session's, those of its transaction not among them.
    pub fn unlock_all(&self) {
        let mut books = self.books.lock();
        let all: Vec<AdvisoryLock> = books.held.keys().copied().collect();
        for lock in all {
            if let Some(counts) = books.held.get_mut(&lock) {
                counts.session = 0;
            }
            self.settle(&mut books, lock);
        }
    }

    /// Releases a lock that nobody is counted for (invariant 1).
    fn settle(&self, books: &mut Books, lock: AdvisoryLock) {
        if books.held.get(&lock).is_some_and(Counts::is_none) {
            books.held.remove(&lock);
            self.core.locks.release(self.owner, LockKey::Advisory(lock.key), lock.mode());
        }
    }

    /// Gives up the locks that a transaction took after its first `keep`.
    fn back_to(&self, transaction: Owner, keep: usize) {
        let mut books = self.books.lock();
        let Some(taken) = books.of_transactions.get_mut(&transaction) else { return };
        let given_up = taken.split_off(keep.min(taken.len()));
        if keep == 0 {
            books.of_transactions.remove(&transaction);
        }
        for lock in given_up {
            if let Some(counts) = books.held.get_mut(&lock) {
                counts.transactions.retain(|owner| *owner != transaction);
            }
            self.settle(&mut books, lock);
        }
    }
}

impl Books {
    /// `by`: a transaction, or the session.
    fn add(&mut self, lock: AdvisoryLock, by: Option<Owner>) {
        let counts = self.held.entry(lock).or_default();
        match by {
            None => counts.session += 1,
            Some(transaction) if counts.transactions.contains(&transaction) => {}
            Some(transaction) => {
                counts.transactions.push(transaction);
                self.of_transactions.entry(transaction).or_default().push(lock);
            }
        }
    }
}

impl Drop for Advisory {
    fn drop(&mut self) {
        let books = std::mem::take(self.books.get_mut());
        for lock in books.held.keys() {
            self.core.locks.release(self.owner, LockKey::Advisory(lock.key), lock.mode());
        }
        if books.is_known {
            self.core.locks.remove_session(self.owner);
        }
    }
}

/// What an open transaction has of its session's advisory locks; dropped, they are released.
pub(crate) struct OfTransaction {
    advisory: Arc<Advisory>,
    transaction: Owner,
}

impl OfTransaction {
    pub(crate) fn new(advisory: &Arc<Advisory>, transaction: Owner) -> OfTransaction {
        advisory.transaction.store(transaction.0, Ordering::SeqCst);
        OfTransaction { advisory: advisory.clone(), transaction }
    }

    pub(crate) fn set_lock_timeout(&self, timeout: Duration) {
        let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        self.advisory.lock_timeout.store(nanos, Ordering::Relaxed);
    }

    /// How many it has.
    pub(crate) fn len(&self) -> usize {
        self.advisory.books.lock().of_transactions.get(&self.transaction).map_or(0, Vec::len)
    }

    /// Gives up those that it took after its first `keep`.
    pub(crate) fn back_to(&self, keep: usize) {
        self.advisory.back_to(self.transaction, keep);
    }
}

impl Drop for OfTransaction {
    fn drop(&mut self) {
        self.back_to(0);
        // Another may be open already, where this one ended in the background.
        let number = self.transaction.0;
        let _ = self.advisory.transaction.compare_exchange(number, 0, Ordering::SeqCst, Ordering::SeqCst);
    }
}
