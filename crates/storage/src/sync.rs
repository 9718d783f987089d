//! The locks and atomics that storage's concurrent structures are made of, so that a model checker can take their
//! place.
//!
//! With the feature `shuttle` they are shuttle's, and the models in `pool/models.rs`, `flash/models.rs` and the
//! engine's `leaving/models.rs` run the production code under many interleavings:
//!
//! ```text
//! cargo test -p terrace-storage --features shuttle --lib models
//! cargo test -p terrace-engine --features shuttle --lib models
//! ```
//!
//! Only short critical sections use them; none is held across an await. What tasks wait on is `tokio::sync`, which
//! knows nothing of threads but wakers and so works under either.

#[cfg(not(feature = "shuttle"))]
mod real {
    use parking_lot::RawRwLock;
    use parking_lot::lock_api::RawRwLock as _;

    pub use parking_lot::Mutex;
    pub(crate) use parking_lot::RwLock;
    pub(crate) use std::sync::atomic;
    pub(crate) use std::thread_local;

    /// A reader-writer lock that belongs to no value.
    pub(crate) struct Latch(RawRwLock);

    impl Latch {
        pub(crate) fn new() -> Latch {
            Latch(RawRwLock::INIT)
        }
        pub(crate) fn lock_shared(&self) {
            self.0.lock_shared();
        }
        pub(crate) fn try_lock_shared(&self) -> bool {
            self.0.try_lock_shared()
        }
        /// # Safety
        /// The caller holds it shared.
        pub(crate) unsafe fn unlock_shared(&self) {
            // SAFETY: the caller's promise.
            unsafe { self.0.unlock_shared() }
        }
        pub(crate) fn lock_exclusive(&self) {
            self.0.lock_exclusive();
        }
        pub(crate) fn try_lock_exclusive(&self) -> bool {
            self.0.try_lock_exclusive()
        }
        /// # Safety
        /// The caller holds it exclusively.
        pub(crate) unsafe fn unlock_exclusive(&self) {
            // SAFETY: the caller's promise.
            unsafe { self.0.unlock_exclusive() }
        }
    }
}

#[cfg(feature = "shuttle")]
mod model {
    use shuttle::sync as checked;
    use std::sync::TryLockError;

    pub(crate) use shuttle::sync::atomic;
    pub(crate) use shuttle::thread_local;

    // A panic in a model ends the model: poisoning needs no answer.
    const POISON: &str = "no thread of a model goes on after a panic";

    #[derive(Default)]
    pub struct Mutex<T>(checked::Mutex<T>);
    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Mutex<T> {
            Mutex(checked::Mutex::new(value))
        }
        pub fn lock(&self) -> checked::MutexGuard<'_, T> {
            self.0.lock().expect(POISON)
        }
        pub(crate) fn try_lock(&self) -> Option<checked::MutexGuard<'_, T>> {
            match self.0.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::WouldBlock) => None,
                Err(TryLockError::Poisoned(_)) => panic!("{POISON}"),
            }
        }
    }

    pub(crate) struct RwLock<T>(checked::RwLock<T>);
    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> RwLock<T> {
            RwLock(checked::RwLock::new(value))
        }
        pub(crate) fn read(&self) -> checked::RwLockReadGuard<'_, T> {
            self.0.read().expect(POISON)
        }
        pub(crate) fn write(&self) -> checked::RwLockWriteGuard<'_, T> {
            self.0.write().expect(POISON)
        }
    }

    /// The latch as a counter under a checked mutex: readers, or -1 for the writer.
    pub(crate) struct Latch {
        holders: checked::Mutex<i64>,
        released: checked::Condvar,
    }
    impl Latch {
        pub(crate) fn new() -> Latch {
            Latch { holders: checked::Mutex::new(0), released: checked::Condvar::new() }
        }
        pub(crate) fn lock_shared(&self) {
            let mut holders = self.holders.lock().expect(POISON);
            while *holders < 0 {
                holders = self.released.wait(holders).expect(POISON);
            }
            *holders += 1;
        }
        pub(crate) fn try_lock_shared(&self) -> bool {
            let mut holders = self.holders.lock().expect(POISON);
            let free = *holders >= 0;
            *holders += free as i64;
            free
        }
        pub(crate) unsafe fn unlock_shared(&self) {
            let mut holders = self.holders.lock().expect(POISON);
            assert!(*holders > 0);
            *holders -= 1;
            self.released.notify_all();
        }
        pub(crate) fn lock_exclusive(&self) {
            let mut holders = self.holders.lock().expect(POISON);
            while *holders != 0 {
                holders = self.released.wait(holders).expect(POISON);
            }
            *holders = -1;
        }
        pub(crate) fn try_lock_exclusive(&self) -> bool {
            let mut holders = self.holders.lock().expect(POISON);
            let free = *holders == 0;
            if free {
                *holders = -1;
            }
            free
        }
        pub(crate) unsafe fn unlock_exclusive(&self) {
            let mut holders = self.holders.lock().expect(POISON);
            assert!(*holders == -1);
            *holders = 0;
            self.released.notify_all();
        }
    }
}

#[cfg(feature = "shuttle")]
pub use model::Mutex;
#[cfg(feature = "shuttle")]
pub(crate) use model::*;
#[cfg(not(feature = "shuttle"))]
pub use real::Mutex;
#[cfg(not(feature = "shuttle"))]
pub(crate) use real::*;
