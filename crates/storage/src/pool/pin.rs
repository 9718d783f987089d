//! Pins and latches.

use super::frame::{Frame, Frames};
use crate::sync::thread_local;
use crate::types::{Lsn, PageId};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

thread_local! {
    /// Latches that this thread holds (R3).
    static LATCHES: Cell<u32> = const { Cell::new(0) };
}

/// Asserts R3 where `what` may wait.
pub(crate) fn assert_unlatched(what: &str) {
    let held = LATCHES.with(Cell::get);
    assert!(held == 0, "{what} with {held} latches held: what can wait comes before latching (R3)");
}

fn count(change: i32) {
    LATCHES.with(|held| held.set(held.get().checked_add_signed(change).expect("as many latches dropped as taken")));
}

/// A pin: the page stays in its frame while this lives. `Send`, may be held across awaits. Clone = another pin.
pub struct Pin {
    frames: NonNull<Frames>,
    index: u32,
}

// SAFETY: a pin only keeps its frame in place; bytes are reached through latches, which are for any thread.
unsafe impl Send for Pin {}
// SAFETY: as above.
unsafe impl Sync for Pin {}

impl Pin {
    /// Takes over a pin that was counted already.
    pub(super) fn counted(frames: NonNull<Frames>, index: u32) -> Pin {
        Pin { frames, index }
    }

    pub(crate) fn frames(&self) -> &Frames {
        // SAFETY: pinned frames outlive the pool (frame.rs, invariant 4).
        unsafe { self.frames.as_ref() }
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    pub(super) fn frame(&self) -> &Frame {
        self.frames().at(self.index)
    }

    /// recLSN of the page, `None` where it is clean.
    pub(super) fn rec_lsn(&self) -> Option<Lsn> {
        self.frames().rec_lsn(self.index)
    }

    /// What the page counts as when it leaves memory.
    #[cfg(test)]
    pub(crate) fn class(&self) -> super::Access {
        self.frame().access()
    }

    pub fn id(&self) -> PageId {
        self.frame().page().expect("a pinned frame holds a page")
    }

    /// Latches the page for reading. Short: never across an await (R3).
    pub fn read(&self) -> ReadGuard<'_> {
        let latch = &self.frame().latch;
        if !latch.try_lock_shared() {
            self.assert_other_threads();
            latch.lock_shared();
        }
        count(1);
        ReadGuard { pin: self, _not_send: PhantomData }
    }

    /// Latches the page exclusively. Only mini-transactions and redo do (R6).
    pub(crate) fn write(&self) -> WriteGuard {
        let latch = &self.frame().latch;
        if !latch.try_lock_exclusive() {
            self.assert_other_threads();
            latch.lock_exclusive();
        }
        count(1);
        WriteGuard { pin: self.clone(), _not_send: PhantomData }
    }

    /// Where one thread runs everything, whoever holds the latch waits for us (R3 is broken, or the page is latched
    /// twice).
    fn assert_other_threads(&self) {
        assert!(!self.frames().single_thread, "page {} is latched already by the only thread there is", self.id());
    }
}

impl Clone for Pin {
    fn clone(&self) -> Pin {
        self.frames().pin(self.index); // Excluded from eviction by this pin.
        Pin { frames: self.frames, index: self.index }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        // SAFETY: this is the pin that goes.
        unsafe { Frames::unpin(self.frames, self.index) }
    }
}

impl std::fmt::Debug for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pin({})", self.id())
    }
}

/// A shared latch on a pinned page. `!Send`.
pub struct ReadGuard<'a> {
    pin: &'a Pin,
    _not_send: PhantomData<*const ()>,
}

impl Deref for ReadGuard<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: latched for reading.
        unsafe { self.pin.frames().bytes(self.pin.index) }
    }
}

impl Drop for ReadGuard<'_> {
    fn drop(&mut self) {
        count(-1);
        // SAFETY: this guard holds it.
        unsafe { self.pin.frame().latch.unlock_shared() }
    }
}

/// An exclusive latch, with a pin of its own. Only [`crate::mtr::Mtr`] and redo make one. `!Send`.
pub struct WriteGuard {
    pin: Pin,
    _not_send: PhantomData<*const ()>,
}

impl WriteGuard {
    pub(crate) fn id(&self) -> PageId {
        self.pin.id()
    }

    pub(crate) fn is_on(&self, pin: &Pin) -> bool {
        self.pin.frames == pin.frames && self.pin.index == pin.index
    }

    /// As [`Frames::break_off`].
    pub(crate) fn break_off(&self) {
        self.pin.frames().break_off();
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.pin.frames().is_broken()
    }

    /// As [`Frames::mark_dirty`].
    pub(crate) fn mark_dirty(&self, rec: Lsn) {
        self.pin.frames().mark_dirty(self.pin.index, rec);
    }
}

impl Deref for WriteGuard {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: latched exclusively.
        unsafe { self.pin.frames().bytes(self.pin.index) }
    }
}

impl DerefMut for WriteGuard {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: latched exclusively, and `&mut self`.
        unsafe { self.pin.frames().bytes_mut(self.pin.index) }
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        count(-1);
        // SAFETY: this guard holds it.
        unsafe { self.pin.frame().latch.unlock_exclusive() }
    }
}
