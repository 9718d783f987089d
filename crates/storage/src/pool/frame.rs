//! Frames: memory for pages, and the state of each.
//!
//! Invariants:
//! 1. The bytes of a frame are read under its latch (or by the task that took the frame and has not shown it to
//!    anyone), and changed under its exclusive latch (or by that task).
//! 2. A frame's `recs` changes from clean to dirty only under the exclusive latch, from dirty to clean only under the
//!    latch (shared is enough, because a single writer has `writing`). It never rises while the page holds changes
//!    older than the new value.
//! 3. At most one write of a frame's page is under way (`writing`): an older image never overtakes a newer one.
//! 4. The memory outlives every pin: when the pool goes, pinned frames are orphans, and the last of them frees
//!    everything.

use super::Access;
use crate::sync::Latch;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::types::{Lsn, PageId};
use std::ptr::NonNull;
use terrace_device::IoBuf;

/// No LSN: clean.
const NONE: u64 = u64::MAX;
/// No page.
const NO_PAGE: u64 = u64::MAX;
/// Set in `pins` when the pool is gone.
const ORPHAN: u32 = 1 << 31;

/// The state of a frame. One cache line.
#[repr(align(64))]
pub(crate) struct Frame {
    /// Number of pins, and `ORPHAN`.
    pins: AtomicU32,
    pub(crate) latch: Latch,
    page: AtomicU64,
    /// While being written: recLSN of what changed since the copy was taken.
    next_rec: AtomicU64,
    writing: AtomicBool,
    sequential: AtomicBool,
    /// A hit waits in a buffer for the policy, so further hits are not put there.
    pub(crate) touched: AtomicBool,
    /// Waits in the list of dirty victims.
    pub(crate) queued: AtomicBool,
}

/// All frames of a pool.
pub(crate) struct Frames {
    base: NonNull<u8>,
    page_size: usize,
    frames: Box<[Frame]>,
    /// recLSN of each frame's page where it is dirty; `NONE` = clean. Side by side, for the background writer goes
    /// through all of them several times a second.
    recs: Box<[AtomicU64]>,
    dirty: AtomicUsize,
    /// Orphaned frames still pinned, plus one while the pool lives.
    owners: AtomicUsize,
    /// A change was applied and never logged: nothing may leave memory any more.
    broken: AtomicBool,
    /// One thread runs everything: a latch that is taken will never be released.
    pub(super) single_thread: bool,
    /// Owns what `base` points to; never touched otherwise.
    _memory: IoBuf,
}

// SAFETY: `base` points into memory that the struct owns; access to it is ordered by latches (invariant 1).
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl Frame {
    fn new() -> Frame {
        Frame {
            pins: AtomicU32::new(0),
            latch: Latch::new(),
            page: AtomicU64::new(NO_PAGE),
            next_rec: AtomicU64::new(NONE),
            writing: AtomicBool::new(false),
            sequential: AtomicBool::new(false),
            touched: AtomicBool::new(false),
            queued: AtomicBool::new(false),
        }
    }

    /// The page in the frame, `None` where it is free.
    pub(super) fn page(&self) -> Option<PageId> {
        let page = self.page.load(Ordering::Acquire);
        (page != NO_PAGE).then(|| PageId::from_u64(page))
    }

    pub(super) fn pins(&self) -> u32 {
        self.pins.load(Ordering::Acquire) & !ORPHAN
    }

    pub(super) fn is_writing(&self) -> bool {
        self.writing.load(Ordering::Acquire)
    }

    pub(super) fn access(&self) -> Access {
        if self.sequential.load(Ordering::Relaxed) { Access::Sequential } else { Access::Random }
    }

    /// Takes the right to write the page (invariant 3).
    pub(super) fn start_writing(&self) -> bool {
        self.writing.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The copy is being taken, under the latch: what changes from now on is not in it.
    pub(super) fn copying(&self) {
        self.next_rec.store(NONE, Ordering::Relaxed);
    }
}

impl Frames {
    pub(super) fn allocate(count: usize, page_size: usize, single_thread: bool) -> NonNull<Frames> {
        let mut memory = IoBuf::zeroed(count * page_size);
        let base = NonNull::new(memory.as_mut_ptr()).expect("a buffer's memory is not null");
        let frames = (0..count).map(|_| Frame::new()).collect();
        let frames = Box::new(Frames {
            base,
            page_size,
            frames,
            recs: (0..count).map(|_| AtomicU64::new(NONE)).collect(),
            dirty: AtomicUsize::new(0),
            owners: AtomicUsize::new(1),
            broken: AtomicBool::new(false),
            single_thread,
            _memory: memory,
        });
        NonNull::from(Box::leak(frames))
    }

    /// The pool is going: frees the frames, or leaves that to the last pin (invariant 4).
    ///
    /// # Safety
    /// Called once, by the pool that allocated them; nobody makes the first pin of a frame any more.
    pub(super) unsafe fn abandon(this: NonNull<Frames>) {
        // SAFETY: alive until the count of owners, in which the pool is one, falls to zero.
        let frames = unsafe { this.as_ref() };
        for frame in &frames.frames {
            frames.owners.fetch_add(1, Ordering::Relaxed);
            if frame.pins.fetch_or(ORPHAN, Ordering::AcqRel) == 0 {
                frames.owners.fetch_sub(1, Ordering::Relaxed); // Not the last: the pool still counts.
            }
        }
        // SAFETY: the pool's own share.
        unsafe { Frames::disown(this) }
    }

    /// # Safety
    /// The caller gives up one share in `owners` and does not use `this` afterwards.
    unsafe fn disown(this: NonNull<Frames>) {
        // SAFETY: the caller's share keeps it alive.
        if unsafe { this.as_ref() }.owners.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: made by `Box::leak`, and this was the last share.
            drop(unsafe { Box::from_raw(this.as_ptr()) });
        }
    }

    /// Drops a pin.
    ///
    /// # Safety
    /// The caller holds one pin of the frame and does not use `this` by it afterwards.
    pub(super) unsafe fn unpin(this: NonNull<Frames>, index: u32) {
        // SAFETY: the pin keeps the frames alive.
        let before = unsafe { this.as_ref() }.at(index).pins.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before & !ORPHAN > 0, "a pin too many was dropped");
        if before == ORPHAN | 1 {
            // SAFETY: the frame's share; this was its last pin.
            unsafe { Frames::disown(this) }
        }
    }

    /// A hint that the page's first bytes will be read soon: they come from memory while the pin, elsewhere, is
    /// counted.
    pub(super) fn expect(&self, index: u32) {
        assert!((index as usize) < self.frames.len());
        #[cfg(target_arch = "x86_64")]
        // SAFETY: within the allocation; a hint reads nothing.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(self.base.as_ptr().add(index as usize * self.page_size).cast());
        }
    }

    /// Adds a pin. The caller excludes eviction: by another pin, or by the lock of the page table.
    pub(super) fn pin(&self, index: u32) {
        let before = self.at(index).pins.fetch_add(1, Ordering::AcqRel);
        debug_assert!(before & !ORPHAN < ORPHAN / 2, "too many pins");
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter()
    }

    pub(super) fn page_size(&self) -> usize {
        self.page_size
    }

    pub(super) fn at(&self, index: u32) -> &Frame {
        &self.frames[index as usize]
    }

    /// recLSN of the frame's page, `None` where it is clean.
    pub(super) fn rec_lsn(&self, index: u32) -> Option<Lsn> {
        let rec = self.recs[index as usize].load(Ordering::Acquire);
        (rec != NONE).then_some(Lsn(rec))
    }

    /// The smallest recLSN of all.
    pub(super) fn min_rec_lsn(&self) -> Option<Lsn> {
        let least = self.recs.iter().map(|rec| rec.load(Ordering::Acquire)).min()?;
        (least != NONE).then_some(Lsn(least))
    }

    /// The pages with recLSN < `before`.
    pub(super) fn dirty_before(&self, before: Lsn) -> Vec<(Lsn, PageId)> {
        let old = self.recs.iter().zip(&self.frames).filter_map(|(rec, frame)| {
            let rec = rec.load(Ordering::Acquire);
            if rec < before.0 { Some((Lsn(rec), frame.page()?)) } else { None }
        });
        old.collect()
    }

    /// The page leaves the frame. The caller holds the frame alone and found it clean.
    pub(super) fn vacate(&self, index: u32) {
        let frame = self.at(index);
        assert!(self.rec_lsn(index).is_none() && frame.pins() == 0, "a page in use leaves its frame");
        frame.page.store(NO_PAGE, Ordering::Release);
    }

    pub(super) fn dirty(&self) -> usize {
        self.dirty.load(Ordering::Acquire)
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    pub(crate) fn break_off(&self) {
        self.broken.store(true, Ordering::Release);
    }

    /// The frame's bytes, to read.
    ///
    /// # Safety
    /// Invariant 1 for the lifetime of the slice.
    pub(super) unsafe fn bytes(&self, index: u32) -> &[u8] {
        assert!((index as usize) < self.frames.len());
        // SAFETY: within the allocation, which lives as long as `self`; the caller excludes writers.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(index as usize * self.page_size), self.page_size) }
    }

    /// The frame's bytes, to change.
    ///
    /// # Safety
    /// Invariant 1 for the lifetime of the slice.
    #[expect(clippy::mut_from_ref, reason = "exclusive by the latch, as the contract demands")]
    pub(super) unsafe fn bytes_mut(&self, index: u32) -> &mut [u8] {
        assert!((index as usize) < self.frames.len());
        // SAFETY: within the allocation; the caller excludes everybody else.
        unsafe {
            std::slice::from_raw_parts_mut(self.base.as_ptr().add(index as usize * self.page_size), self.page_size)
        }
    }

    /// Puts a page into a frame that the caller has taken, with one pin. `None` as bytes: zeros.
    pub(super) fn fill(&self, index: u32, page: PageId, bytes: Option<&[u8]>, access: Access) {
        let frame = self.at(index);
        let unused = frame.page().is_none() && frame.pins() == 0 && self.rec_lsn(index).is_none();
        assert!(unused, "a frame in use is filled");
        // SAFETY: the frame belongs to the caller alone.
        let memory = unsafe { self.bytes_mut(index) };
        match bytes {
            Some(bytes) => memory.copy_from_slice(bytes),
            None => memory.fill(0),
        }
        frame.sequential.store(access == Access::Sequential, Ordering::Relaxed);
        frame.touched.store(false, Ordering::Relaxed);
        frame.page.store(page.to_u64(), Ordering::Release);
        frame.pins.fetch_add(1, Ordering::AcqRel);
    }

    /// The page holds a change whose log record begins at `rec` or later. Under the exclusive latch, before the record
    /// is appended.
    pub(super) fn mark_dirty(&self, index: u32, rec: Lsn) {
        let (frame, cell) = (self.at(index), &self.recs[index as usize]);
        let rec = rec.0.min(NONE - 1);
        let before = cell.load(Ordering::Relaxed);
        if before == NONE {
            cell.store(rec, Ordering::Release);
            self.dirty.fetch_add(1, Ordering::AcqRel);
            return;
        }
        if rec < before {
            cell.store(rec, Ordering::Release);
        }
        if frame.is_writing() {
            let next = frame.next_rec.load(Ordering::Relaxed);
            frame.next_rec.store(next.min(rec), Ordering::Relaxed);
        }
    }

    /// The write is over. If the home took the copy, the page is as dirty as what changed since then.
    pub(super) fn end_writing(&self, index: u32, taken: bool) {
        let frame = self.at(index);
        frame.latch.lock_shared(); // Invariant 2.
        if taken {
            let next = frame.next_rec.load(Ordering::Relaxed);
            self.recs[index as usize].store(next, Ordering::Release);
            if next == NONE {
                self.dirty.fetch_sub(1, Ordering::AcqRel);
            }
        }
        frame.next_rec.store(NONE, Ordering::Relaxed);
        frame.writing.store(false, Ordering::Release);
        // SAFETY: locked above.
        unsafe { frame.latch.unlock_shared() }
    }
}
