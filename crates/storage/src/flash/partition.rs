//! A part of the tier under one latch: the records of its frames, their index, free list, dirty order and replacement order.
//!
//! Invariants:
//! 1. A page has at most one frame that is not void, and the index finds it.
//! 2. Frames with a recLSN, being written included, are in the dirty heap, and only they. A recLSN leaves the heap into `rising`,
//!    or because a disk home counts it already.
//! 3. The replacement order holds the frames that are Clean, Dirty or LazyCleaning and not void; of these Clean ones are replaceable.
//! 4. *Rising* recLSNs, on their way to a dirty set above or below, count until `risen`; what rose since the last `begin_scan` counts
//!    until the next: the scan in between may have seen the other set before the page was in it (mod.rs, invariant 4).

use super::record::{NONE, Record, State};
use crate::types::{Lsn, PageId};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use terrace_policy::flash::{FlashOrder, FlashReplacement};

/// How many victims being read an allocation passes over.
const VETOES: usize = 4;

/// Frames of all partitions.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) used: AtomicUsize,
    pub(super) dirty: AtomicUsize,
}

pub(super) struct Partition {
    records: Vec<Record>,
    /// Heads of the hash chains.
    buckets: Vec<u32>,
    free: u32,
    /// Heap by recLSN.
    dirty: Vec<u32>,
    order: Box<dyn FlashReplacement>,
    rising: Vec<(PageId, Lsn)>,
    risen: Option<Lsn>,
    totals: Arc<Totals>,
}

/// What a frame holds when its write has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Written {
    Clean,
    Dirty,
    /// Nothing: the write failed, or the page's other copy did not get home.
    Failed,
}

/// How cleaning ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cleaned {
    /// The page is home, and its frame good.
    Home,
    /// The page is home, its frame could not be read.
    Unreadable,
    Failed,
}

/// A frame given to a page, and the page that had to go.
pub(super) struct Allocated {
    pub(super) frame: u32,
    pub(super) evicted: Option<PageId>,
}

/// Bytes of memory for a frame: record, hash bucket, dirty heap, replacement order.
#[cfg(test)]
pub(super) fn frame_bytes(order: FlashOrder) -> usize {
    size_of::<Record>() + 2 * size_of::<u32>() + order.frame_bytes()
}

impl Partition {
    pub(super) fn new(frames: usize, order: FlashOrder, totals: Arc<Totals>) -> Partition {
        assert!(frames > 0 && frames < NONE as usize, "a partition of {frames} frames");
        let mut records = vec![Record::FREE; frames];
        for (i, record) in records.iter_mut().enumerate() {
            record.next = if i + 1 < frames { i as u32 + 1 } else { NONE };
        }
        let order = order.make(frames);
        let dirty = Vec::with_capacity(frames);
        let (rising, risen) = (Vec::new(), None);
        Partition { records, buckets: vec![NONE; frames], free: 0, dirty, order, rising, risen, totals }
    }

    fn at(&mut self, frame: u32) -> &mut Record {
        &mut self.records[frame as usize]
    }

    pub(super) fn record(&self, frame: u32) -> &Record {
        &self.records[frame as usize]
    }

    pub(super) fn frames(&self) -> u32 {
        self.records.len() as u32
    }

    fn bucket(&self, page: PageId) -> usize {
        let hash = page.to_u64().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        ((hash * self.buckets.len() as u64) >> 32) as usize
    }

    /// The page's frame.
    pub(super) fn find(&self, page: PageId) -> Option<u32> {
        let mut frame = self.buckets[self.bucket(page)];
        while frame != NONE {
            let record = self.record(frame);
            if record.page() == page {
                return Some(frame);
            }
            frame = record.next;
        }
        None
    }

    fn index(&mut self, frame: u32) {
        let bucket = self.bucket(self.record(frame).page());
        self.at(frame).next = self.buckets[bucket];
        self.buckets[bucket] = frame;
    }

    fn unindex(&mut self, frame: u32) {
        let (next, bucket) = (self.record(frame).next, self.bucket(self.record(frame).page()));
        let mut before = self.buckets[bucket];
        if before == frame {
            self.buckets[bucket] = next;
            return;
        }
        while self.record(before).next != frame {
            before = self.record(before).next;
        }
        self.at(before).next = next;
    }

    /// Gives a frame to a page that has none: a free one, else that of a clean victim. `None` where there is neither.
    pub(super) fn allocate(&mut self, page: PageId, rec: Option<Lsn>, tag: u32) -> Option<Allocated> {
        assert!(self.find(page).is_none(), "page {page} has a frame already");
        let evicted = if self.free == NONE { Some(self.evict()?) } else { None };
        let frame = self.free;
        self.free = self.record(frame).next;
        self.totals.used.fetch_add(1, Ordering::AcqRel);
        self.at(frame).allocate(page, tag);
        self.index(frame);
        if let Some(rec) = rec {
            self.at(frame).set_rec(rec);
            self.dirty_push(frame);
        }
        Some(Allocated { frame, evicted })
    }

    /// Frees the frame of the next victim.
    fn evict(&mut self) -> Option<PageId> {
        for _ in 0..VETOES {
            let frame = self.order.victim()?;
            if self.record(frame).readers() > 0 {
                self.order.veto(frame);
                continue;
            }
            assert_eq!(self.record(frame).state(), State::Clean, "only clean frames are replaced");
            let page = self.record(frame).page();
            self.drop_frame(frame);
            return Some(page);
        }
        None
    }

    /// Takes the frame from its page; it is free at once, or when its transfers have ended.
    fn drop_frame(&mut self, frame: u32) {
        self.unindex(frame);
        if self.record(frame).at != NONE {
            self.dirty_remove(frame);
        }
        if matches!(self.record(frame).state(), State::Clean | State::Dirty | State::LazyCleaning) {
            self.order.remove(frame);
        }
        self.at(frame).set_void();
        self.release(frame);
    }

    /// Frees a void frame that nobody reads or writes.
    fn release(&mut self, frame: u32) {
        let record = self.record(frame);
        let idle = record.readers() == 0 && matches!(record.state(), State::Clean | State::Dirty);
        if record.is_void() && idle {
            let next = self.free;
            *self.at(frame) = Record::FREE;
            self.at(frame).next = next;
            self.free = frame;
            self.totals.used.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// The write of a frame begins; false where nobody wants it any more (the frame is given back).
    pub(super) fn start_write(&mut self, frame: u32) -> bool {
        assert_eq!(self.record(frame).state(), State::Ready);
        if self.record(frame).is_void() {
            self.at(frame).set_state(State::Clean);
            self.release(frame);
            return false;
        }
        self.at(frame).set_state(State::Writing);
        true
    }

    /// The write has ended; whether the page is in the tier now.
    pub(super) fn end_write(&mut self, frame: u32, how: Written) -> bool {
        assert_eq!(self.record(frame).state(), State::Writing);
        self.at(frame).set_state(State::Clean);
        if self.record(frame).is_void() {
            self.release(frame);
            return false;
        }
        let (page, dirty) = (self.record(frame).page().to_u64(), self.record(frame).at != NONE);
        self.order.admit(frame, page, how == Written::Clean);
        match how {
            Written::Clean => assert!(!dirty, "a clean page has no recLSN"),
            Written::Dirty => {
                assert!(dirty, "a dirty page has a recLSN");
                self.at(frame).set_state(State::Dirty);
            }
            Written::Failed => {
                assert!(!dirty, "a dirty page is taken out, not dropped");
                self.drop_frame(frame);
                return false;
            }
        }
        true
    }

    /// Takes out a frame whose write failed; a dirty one's recLSN is rising then. `None`: it was void, or clean.
    pub(super) fn fail_write(&mut self, frame: u32) -> Option<Lsn> {
        let page = self.record(frame).page();
        let rec = if self.record(frame).is_void() { None } else { self.take_rec(frame, page) };
        self.end_write(frame, Written::Failed);
        rec
    }

    fn take_rec(&mut self, frame: u32, page: PageId) -> Option<Lsn> {
        if self.record(frame).at == NONE {
            return None;
        }
        let rec = self.record(frame).rec();
        self.rising.push((page, rec));
        self.dirty_remove(frame);
        Some(rec)
    }

    /// The page's frame, if any, is void from now on. `Some(_)`: there was one; if it was dirty its recLSN is returned and rising.
    pub(super) fn invalidate(&mut self, page: PageId) -> Option<Option<Lsn>> {
        let frame = self.find(page)?;
        let rec = self.take_rec(frame, page);
        self.drop_frame(frame);
        Some(rec)
    }

    /// As `invalidate`, for clean frames only; whether there was one.
    pub(super) fn drop_clean(&mut self, page: PageId) -> bool {
        match self.find(page) {
            Some(frame) if self.record(frame).at == NONE => {
                self.drop_frame(frame);
                true
            }
            _ => false,
        }
    }

    /// The dirty set that the page went to covers the recLSN now (invariant 4).
    pub(super) fn risen(&mut self, page: PageId, rec: Lsn) {
        let at = self.rising.iter().position(|r| *r == (page, rec)).expect("what rose was rising");
        self.rising.swap_remove(at);
        self.risen = Some(self.risen.map_or(rec, |r| r.min(rec)));
    }

    pub(super) fn begin_scan(&mut self) {
        self.risen = None;
    }

    /// Invariants 2 and 4.
    pub(super) fn oldest_rec(&self) -> Option<Lsn> {
        let rising = self.rising.iter().map(|(_, rec)| *rec);
        rising.chain(self.risen).chain(self.oldest_dirty()).min()
    }

    pub(super) fn oldest_dirty(&self) -> Option<Lsn> {
        self.dirty.first().map(|&frame| self.record(frame).rec())
    }

    /// A reader more, if the page can be read from its frame; whether it is newer than on disk.
    pub(super) fn pin(&mut self, frame: u32) -> Option<bool> {
        let dirty = match self.record(frame).state() {
            State::Clean => false,
            State::Dirty | State::LazyCleaning => true,
            State::Ready | State::Writing => return None,
            State::Free => unreachable!("the index names no free frame"),
        };
        let pinned = self.at(frame).pin();
        assert!(pinned || !dirty, "a page is read by one miss at a time, and the newest version is in this frame");
        pinned.then_some(dirty)
    }

    /// A reader less. `hit`: the page was served.
    pub(super) fn unpin(&mut self, frame: u32, hit: bool) {
        self.at(frame).unpin();
        if self.record(frame).is_void() {
            self.release(frame);
        } else if hit {
            self.order.hit(frame);
        }
    }

    /// The recLSN of the oldest frame that can be cleaned now.
    pub(super) fn oldest_cleanable(&mut self) -> Option<(Lsn, u32)> {
        let mut passed = Vec::new();
        let mut found = None;
        while let Some(&frame) = self.dirty.first() {
            if self.record(frame).state() == State::Dirty {
                found = Some((self.record(frame).rec(), frame));
                break;
            }
            passed.push(frame); // Being written or cleaned.
            self.dirty_remove(frame);
        }
        passed.into_iter().for_each(|frame| self.dirty_push(frame));
        found
    }

    /// Begins to clean `first` and up to `most - 1` dirty neighbours of its page; in order of their pages.
    pub(super) fn start_clean(&mut self, first: u32, most: usize) -> Vec<(PageId, u32)> {
        let page = self.record(first).page();
        let mut group = vec![(page, first)];
        let cleanable = |part: &Partition, no: Option<u32>| {
            let frame = part.find(PageId::new(page.space, no?))?;
            (part.record(frame).state() == State::Dirty).then_some((part.record(frame).page(), frame))
        };
        let mut below = page.no.checked_sub(1);
        while let Some(found) = cleanable(self, below).filter(|_| group.len() < most) {
            group.push(found);
            below = found.0.no.checked_sub(1);
        }
        let mut above = page.no.checked_add(1);
        while let Some(found) = cleanable(self, above).filter(|_| group.len() < most) {
            group.push(found);
            above = found.0.no.checked_add(1);
        }
        group.sort_unstable();
        for (_, frame) in &group {
            self.at(*frame).set_state(State::LazyCleaning);
        }
        group
    }

    /// The end of what `start_clean` began; whether the frame was still its page's.
    pub(super) fn end_clean(&mut self, frame: u32, how: Cleaned) -> bool {
        assert_eq!(self.record(frame).state(), State::LazyCleaning);
        self.at(frame).set_state(State::Dirty);
        if self.record(frame).is_void() {
            self.release(frame);
            return false;
        }
        if how == Cleaned::Failed {
            return true;
        }
        self.dirty_remove(frame);
        self.at(frame).set_state(State::Clean);
        match how {
            Cleaned::Home => self.order.cleaned(frame),
            _ => self.drop_frame(frame),
        }
        true
    }

    fn dirty_less(&self, a: u32, b: u32) -> bool {
        (self.record(a).rec(), a) < (self.record(b).rec(), b)
    }

    fn dirty_place(&mut self, at: usize, frame: u32) {
        self.dirty[at] = frame;
        self.at(frame).at = at as u32;
    }

    fn dirty_up(&mut self, mut at: usize) {
        let frame = self.dirty[at];
        while at > 0 && self.dirty_less(frame, self.dirty[(at - 1) / 2]) {
            self.dirty_place(at, self.dirty[(at - 1) / 2]);
            at = (at - 1) / 2;
        }
        self.dirty_place(at, frame);
    }

    fn dirty_down(&mut self, mut at: usize) {
        let frame = self.dirty[at];
        loop {
            let mut child = 2 * at + 1;
            if child >= self.dirty.len() {
                break;
            }
            if child + 1 < self.dirty.len() && self.dirty_less(self.dirty[child + 1], self.dirty[child]) {
                child += 1;
            }
            if !self.dirty_less(self.dirty[child], frame) {
                break;
            }
            self.dirty_place(at, self.dirty[child]);
            at = child;
        }
        self.dirty_place(at, frame);
    }

    fn dirty_push(&mut self, frame: u32) {
        self.totals.dirty.fetch_add(1, Ordering::AcqRel);
        self.dirty.push(frame);
        self.dirty_up(self.dirty.len() - 1);
    }

    fn dirty_remove(&mut self, frame: u32) {
        self.totals.dirty.fetch_sub(1, Ordering::AcqRel);
        let at = std::mem::replace(&mut self.at(frame).at, NONE) as usize;
        let last = self.dirty.pop().expect("a frame in the heap");
        if last != frame {
            self.dirty_place(at, last);
            self.dirty_down(at);
            self.dirty_up(self.record(last).at as usize);
        }
    }

    /// Every record's place, by the invariants.
    #[cfg(test)]
    pub(super) fn assert_sound(&self) {
        let mut free = 0;
        let mut frame = self.free;
        while frame != NONE {
            assert_eq!(self.record(frame).state(), State::Free);
            free += 1;
            frame = self.record(frame).next;
        }
        let held = |f: &&Record| f.state() != State::Free;
        assert_eq!(free + self.records.iter().filter(held).count(), self.records.len());
        let mut clean = 0;
        for (i, record) in self.records.iter().enumerate().filter(|(_, r)| held(r)) {
            let frame = i as u32;
            assert_eq!(self.find(record.page()) == Some(frame), !record.is_void(), "frame {frame}");
            if record.at != NONE {
                assert_eq!(self.dirty[record.at as usize], frame);
                assert!(!record.is_void());
            }
            let dirty = matches!(record.state(), State::Dirty | State::LazyCleaning) && !record.is_void();
            assert!(!dirty || record.at != NONE, "frame {frame}");
            clean += (record.state() == State::Clean && !record.is_void()) as usize;
        }
        assert_eq!(self.order.clean(), clean);
        for at in 1..self.dirty.len() {
            assert!(!self.dirty_less(self.dirty[at], self.dirty[(at - 1) / 2]));
        }
    }
}
