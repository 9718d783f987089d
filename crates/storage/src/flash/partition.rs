//! A part of the tier under one latch: the records of its frames, their index, free list, dirty order and replacement
//! order.
//!
//! Invariants:
//! 1. A page has at most one frame that is not void, and the index finds it.
//! 2. The dirty heap holds exactly the frames with a recLSN, also while they are being written. A recLSN leaves the
//!    heap into `rising`, or because the disk home counts it already.
//! 3. The replacement order holds the frames that are Clean, Dirty, LazyCleaning or Invalid and not void; of these
//!    Clean and Invalid ones are replaceable.
//! 4. *Rising* recLSNs, on their way to a dirty set above or below, count until `risen`. Those that rose since the last
//!    `begin_scan` count until the next one: the scan in between may have seen the other set before the page was in it
//!    (`flash`, invariant 4).
//! 5. Frames from `limit` on are being removed (`shape`): no page enters them, clean ones are dropped, dirty ones go
//!    home.

mod dirty;
mod inventory;
mod shape;

use super::logged::Queue;
use super::record::{FrameState, NONE, Record};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::types::{Lsn, PageId};
pub(crate) use inventory::Noted;
pub(super) use inventory::{Due, Found, Lacks, Listed};
use inventory::{Said, Sector};
use std::sync::Arc;
use terrace_policy::Class;
use terrace_policy::flash::{FlashOrder, FlashReplacement};

/// How many victims that are being read an allocation skips.
const VETOES: usize = 4;

/// Frames of all partitions.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) used: AtomicUsize,
    pub(super) dirty: AtomicUsize,
    /// Frames that were given out, and whose write has not ended.
    pub(super) entering: AtomicUsize,
    pub(super) queue: Queue,
}

pub(super) struct Partition {
    records: Vec<Record>,
    /// Heads of the hash chains.
    buckets: Vec<u32>,
    /// Free frames below `limit`, the first and the last of the list; empty where they are given out in turn.
    free: u32,
    free_last: u32,
    /// Free frames are bases as long as possible (`inventory`, invariant 1): the one freed first is used first; else
    /// the one freed last.
    keeps_bases: bool,
    /// Heap by recLSN.
    dirty: Vec<u32>,
    /// Where in `dirty` to look next for a cold frame.
    hand: usize,
    order: Box<dyn FlashReplacement>,
    /// Invariant 5.
    limit: u32,
    /// Frames are given out in turn (the thesis's `nextFrameNo`): this one is next.
    turn: Option<u32>,
    rising: Vec<(PageId, Lsn)>,
    risen: Option<Lsn>,
    totals: Arc<Totals>,
    /// Of the inventory on the device.
    sectors: Vec<Sector>,
    /// Its number, where its frames' records go to the log.
    logged: Option<u32>,
    /// While frames are being found: what the log has said of each. Else empty.
    said: Vec<Said>,
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

/// Why a page gets no frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoFrame {
    /// What could go is dirty or being read.
    Busy,
    /// The replacement order keeps the pages that are there.
    Cold,
}

/// Bytes of memory for a frame: record, hash bucket, dirty heap, replacement order.
pub(super) fn frame_bytes(order: FlashOrder) -> usize {
    size_of::<Record>() + 2 * size_of::<u32>() + order.frame_bytes()
}

impl Partition {
    /// Without frames; see `grow`.
    pub(super) fn new(totals: Arc<Totals>) -> Partition {
        Partition {
            records: Vec::new(),
            buckets: vec![NONE],
            free: NONE,
            free_last: NONE,
            keeps_bases: false,
            dirty: Vec::new(),
            hand: 0,
            order: FlashOrder::Fifo.make(0),
            limit: 0,
            turn: None,
            rising: Vec::new(),
            risen: None,
            totals,
            sectors: Vec::new(),
            logged: None,
            said: Vec::new(),
        }
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

    /// Whether the page has a frame, and that is only kept for it.
    pub(super) fn is_kept(&self, page: PageId) -> Option<bool> {
        self.find(page).map(|frame| self.record(frame).state() == FrameState::Invalid)
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

    /// Gives a frame to a page that has none, or whose frame was kept: that one, a free one, or that of a victim.
    pub(super) fn allocate(&mut self, page: PageId, rec: Option<Lsn>, lsn: Lsn) -> Result<Allocated, NoFrame> {
        if let Some(kept) = self.find(page) {
            assert_eq!(self.record(kept).state(), FrameState::Invalid, "page {page} has a frame already");
            self.drop_frame(kept); // Nobody reads it: it is the first of the free list now.
        }
        let (frame, evicted) = match self.turn {
            None => self.take_free(page, rec.is_some())?,
            Some(_) => self.take_in_turn().ok_or(NoFrame::Busy)?,
        };
        self.totals.used.fetch_add(1, Ordering::AcqRel);
        self.totals.entering.fetch_add(1, Ordering::AcqRel);
        self.note_void(frame); // Where that was not done when it became void.
        self.at(frame).allocate(page, lsn);
        self.index(frame);
        if let Some(rec) = rec {
            self.at(frame).set_rec(rec);
            self.dirty_push(frame);
        }
        Ok(Allocated { frame, evicted })
    }

    fn take_free(&mut self, page: PageId, dirty: bool) -> Result<(u32, Option<PageId>), NoFrame> {
        let mut evicted = None;
        if self.free == NONE {
            if !self.order.admits(page.to_u64(), dirty) {
                return Err(NoFrame::Cold);
            }
            evicted = Some(self.evict().ok_or(NoFrame::Busy)?);
        }
        let frame = self.free;
        assert!(frame < self.limit, "frame {frame} is going");
        self.free = self.record(frame).next;
        if self.free == NONE {
            self.free_last = NONE;
        }
        Ok((frame, evicted))
    }

    /// Frees the frame of the next victim.
    fn evict(&mut self) -> Option<PageId> {
        for _ in 0..VETOES {
            let frame = self.order.victim()?;
            if self.record(frame).readers() > 0 {
                self.order.veto(frame);
                continue;
            }
            return Some(self.replace(frame));
        }
        None
    }

    fn replace(&mut self, frame: u32) -> PageId {
        let record = self.record(frame);
        assert!(matches!(record.state(), FrameState::Clean | FrameState::Invalid), "only clean frames are replaced");
        let page = record.page();
        self.drop_frame(frame);
        page
    }

    /// The next frame in turn, with any contents; frames being read or written are skipped. `None` if the next one is
    /// dirty: the cleaner, which runs ahead, is late.
    fn take_in_turn(&mut self) -> Option<(u32, Option<PageId>)> {
        for _ in 0..VETOES.min(self.limit as usize) {
            let frame = self.turn.expect("frames are given out in turn");
            let record = self.record(frame);
            let (idle, state) = (record.readers() == 0 && !record.is_void(), record.state());
            if matches!(state, FrameState::Dirty | FrameState::LazyCleaning) && !record.is_void() {
                return None;
            }
            self.turn = Some(if frame + 1 < self.limit { frame + 1 } else { 0 });
            match state {
                FrameState::Free => return Some((frame, None)),
                FrameState::Clean | FrameState::Invalid if idle => return Some((frame, Some(self.replace(frame)))),
                _ => {}
            }
        }
        None
    }

    /// Takes the frame from its page; it is free at once, or when its transfers have ended.
    fn drop_frame(&mut self, frame: u32) {
        self.note_void(frame);
        self.let_go(frame);
    }

    fn let_go(&mut self, frame: u32) {
        self.unindex(frame);
        if self.record(frame).at != NONE {
            self.dirty_remove(frame);
        }
        if !matches!(self.record(frame).state(), FrameState::Ready | FrameState::Writing) {
            self.order.remove(frame, self.record(frame).page().to_u64());
        }
        self.at(frame).set_void();
        self.release(frame);
    }

    /// Frees a void frame that nobody reads or writes.
    fn release(&mut self, frame: u32) {
        let record = self.record(frame);
        let idle = record.readers() == 0
            && matches!(record.state(), FrameState::Clean | FrameState::Dirty | FrameState::Invalid);
        if record.is_void() && idle {
            *self.at(frame) = if self.keeps_bases { self.record(frame).free_base() } else { Record::FREE };
            if frame < self.limit && self.turn.is_none() {
                self.list_as_free(frame);
            }
            self.totals.used.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Puts a free frame where `keeps_bases` wants it in the free list.
    fn list_as_free(&mut self, frame: u32) {
        match (self.keeps_bases, self.free_last) {
            (true, last) if last != NONE => {
                self.at(frame).next = NONE;
                self.at(last).next = frame;
                self.free_last = frame;
            }
            (_, last) => {
                self.at(frame).next = self.free;
                self.free = frame;
                self.free_last = if last == NONE { frame } else { last };
            }
        }
    }

    /// The write of a frame begins; false where nobody wants it any more (the frame is given back).
    pub(super) fn start_write(&mut self, frame: u32) -> bool {
        assert_eq!(self.record(frame).state(), FrameState::Ready);
        if self.record(frame).is_void() {
            self.at(frame).set_state(FrameState::Clean);
            self.release(frame);
            self.at(frame).forget_base();
            self.totals.entering.fetch_sub(1, Ordering::AcqRel);
            return false;
        }
        self.at(frame).set_state(FrameState::Writing);
        true
    }

    /// The write has ended; whether the page is in the tier now.
    pub(super) fn end_write(&mut self, frame: u32, how: Written) -> bool {
        assert_eq!(self.record(frame).state(), FrameState::Writing);
        self.totals.entering.fetch_sub(1, Ordering::AcqRel);
        self.at(frame).set_state(FrameState::Clean);
        if self.record(frame).is_void() {
            self.release(frame);
            if how == Written::Failed {
                self.at(frame).forget_base();
            }
            return false;
        }
        let (page, dirty) = (self.record(frame).page().to_u64(), self.record(frame).at != NONE);
        self.order.admit(frame, page, how == Written::Clean);
        match how {
            Written::Dirty => {
                assert!(dirty, "a dirty page has a recLSN");
                self.at(frame).set_state(FrameState::Dirty);
            }
            Written::Clean | Written::Failed => {
                assert!(!dirty, "a clean page has no recLSN, and a dirty one is taken out, not dropped");
                if how == Written::Failed || frame >= self.limit {
                    self.drop_frame(frame);
                    self.at(frame).forget_base();
                    return false;
                }
            }
        }
        self.entered(frame);
        true
    }

    /// Takes out a frame whose write failed; a dirty one's recLSN is rising then. `None`: it was void, or clean.
    pub(super) fn fail_write(&mut self, frame: u32) -> Option<Lsn> {
        let page = self.record(frame).page();
        let rec = if self.record(frame).is_void() { None } else { self.take_rec(frame, page) };
        self.end_write(frame, Written::Failed);
        rec
    }

    /// If the page has a frame, its contents are void from now on. `Some(_)`: there was one; if it was dirty its recLSN
    /// is returned and rising. `keep`: the frame stays the page's where nobody reads or writes it. `in_log`: a batch of
    /// the log will say so.
    pub(super) fn invalidate(&mut self, page: PageId, keep: bool, in_log: bool) -> Option<Option<Lsn>> {
        let frame = self.find(page)?;
        if self.record(frame).state() == FrameState::Invalid {
            return None;
        }
        if !in_log || self.logged.is_none() {
            self.note_void(frame);
        }
        let rec = self.take_rec(frame, page);
        let (state, readers) = (self.record(frame).state(), self.record(frame).readers());
        if !matches!(state, FrameState::Ready | FrameState::Writing) {
            self.order.changed(frame, page.to_u64());
        }
        if keep && readers == 0 && frame < self.limit && matches!(state, FrameState::Clean | FrameState::Dirty) {
            self.at(frame).set_state(FrameState::Invalid);
            if state == FrameState::Dirty {
                self.order.cleaned(frame);
            }
        } else {
            self.let_go(frame);
        }
        Some(rec)
    }

    /// Drops the page's frame if it is not dirty; whether there was one.
    pub(super) fn drop_clean(&mut self, page: PageId) -> bool {
        match self.find(page) {
            Some(frame) if self.record(frame).at == NONE => {
                self.drop_frame(frame);
                true
            }
            _ => false,
        }
    }

    /// Memory missed the page, and it is not read here.
    pub(super) fn missed(&mut self, page: PageId, class: Class) {
        self.order.missed(page.to_u64(), class);
    }

    /// What a read from the tier saves now.
    pub(super) fn priced(&mut self, saved: [u32; 2]) {
        self.order.priced(saved);
    }

    /// A reader more, if the page can be read from its frame; whether it is newer than on disk.
    pub(super) fn pin(&mut self, frame: u32) -> Option<bool> {
        let dirty = match self.record(frame).state() {
            FrameState::Clean => false,
            FrameState::Dirty | FrameState::LazyCleaning => true,
            FrameState::Ready | FrameState::Writing | FrameState::Invalid => return None,
            FrameState::Free => unreachable!("the index names no free frame"),
        };
        let pinned = self.at(frame).pin();
        assert!(pinned || !dirty, "a page is read by one miss at a time, and the newest version is in this frame");
        pinned.then_some(dirty)
    }

    /// A reader less. `used`: the page was served.
    pub(super) fn unpin(&mut self, frame: u32, used: Option<Class>) {
        self.at(frame).unpin();
        if self.record(frame).is_void() {
            self.release(frame);
        } else if let Some(class) = used {
            self.set_read(frame);
            self.order.hit(frame, class);
        }
    }

    /// Every record's place, by the invariants.
    #[cfg(test)]
    pub(super) fn assert_sound(&self) {
        let mut listed = 0;
        let mut frame = self.free;
        while frame != NONE {
            assert_eq!(self.record(frame).state(), FrameState::Free);
            assert!(frame < self.limit && self.turn.is_none());
            listed += 1;
            assert_eq!(self.record(frame).next == NONE, self.free_last == frame);
            frame = self.record(frame).next;
        }
        assert_eq!(self.free == NONE, self.free_last == NONE);
        let free = self.records[..self.limit as usize].iter().filter(|r| r.state() == FrameState::Free).count();
        assert_eq!(listed, if self.turn.is_none() { free } else { 0 });
        let mut clean = 0;
        for (i, record) in self.records.iter().enumerate().filter(|(_, r)| r.state() != FrameState::Free) {
            let frame = i as u32;
            assert_eq!(self.find(record.page()) == Some(frame), !record.is_void(), "frame {frame}");
            if record.at != NONE {
                assert_eq!(self.dirty[record.at as usize], frame);
                assert!(!record.is_void());
            }
            let dirty = matches!(record.state(), FrameState::Dirty | FrameState::LazyCleaning) && !record.is_void();
            assert!(!dirty || record.at != NONE, "frame {frame}");
            let replaceable = matches!(record.state(), FrameState::Clean | FrameState::Invalid) && !record.is_void();
            assert!(!replaceable || frame < self.limit, "frame {frame}");
            clean += replaceable as usize;
        }
        assert_eq!(self.order.clean(), clean);
        for at in 1..self.dirty.len() {
            assert!(!self.dirty_less(self.dirty[at], self.dirty[(at - 1) / 2]));
        }
    }
}
