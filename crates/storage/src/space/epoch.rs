//! Delayed reuse of freed pages (Fraser, *Practical lock-freedom*, section 5.2.3: epoch-based reclamation).
//!
//! A B-tree descent goes from page to page by numbers that it read without holding a latch in between. It enters an
//! epoch first; a page that is unlinked meanwhile is *retired*, and given to others only when every descent that may
//! know its number has left. In memory only: after a restart nobody is inside a tree.
//!
//! Invariants:
//! 1. `active[e & 1]` counts the guards that entered in epoch `e`; only the present epoch and the one before have any.
//! 2. The epoch moves from `e` to `e + 1` only when nobody of epoch `e - 1` is left.
//! 3. Hence a page retired in epoch `e` is unknown to everybody in epoch `e + 2`: who entered at `e` or before has
//!    left, and who entered later began after the page was unlinked.
use super::PageHold;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

#[derive(Default)]
pub(super) struct Epochs {
    now: AtomicU64,
    active: [AtomicU64; 2],
    retired: Mutex<VecDeque<(u64, PageHold)>>,
    waiting: AtomicUsize,
}

/// Keeps pages whose numbers are read meanwhile from being reused. May be held across awaits.
#[must_use]
pub(crate) struct EpochGuard<'a> {
    epochs: &'a Epochs,
    epoch: u64,
}

impl Epochs {
    pub(super) fn enter(&self) -> EpochGuard<'_> {
        loop {
            let epoch = self.now.load(SeqCst);
            self.active[(epoch & 1) as usize].fetch_add(1, SeqCst);
            if self.now.load(SeqCst) == epoch {
                return EpochGuard { epochs: self, epoch };
            }
            self.active[(epoch & 1) as usize].fetch_sub(1, SeqCst);
        }
    }
    /// The page is unlinked, and free in the map: reuse it when nobody knows it any more.
    pub(super) fn retire(&self, hold: PageHold) {
        let mut retired = self.retired.lock();
        retired.push_back((self.now.load(SeqCst), hold));
        self.waiting.store(retired.len(), SeqCst);
        drop(retired);
        self.collect();
    }
    /// Lets go of what nobody can know any more.
    pub(super) fn collect(&self) {
        if self.waiting.load(SeqCst) == 0 {
            return;
        }
        let mut retired = self.retired.lock();
        for _ in 0..2 {
            let now = self.now.load(SeqCst);
            if self.active[(now.wrapping_add(1) & 1) as usize].load(SeqCst) != 0 {
                break;
            }
            self.now.store(now + 1, SeqCst);
        }
        let now = self.now.load(SeqCst);
        let known = retired.partition_point(|(epoch, _)| epoch + 2 <= now);
        let freed: Vec<_> = retired.drain(..known).collect();
        self.waiting.store(retired.len(), SeqCst);
        drop(retired);
        drop(freed); // takes the mirror's lock
    }
}

impl Drop for EpochGuard<'_> {
    fn drop(&mut self) {
        self.epochs.active[(self.epoch & 1) as usize].fetch_sub(1, SeqCst);
    }
}
