//! Dirty frames of a partition: their order by recLSN (a heap), recLSNs on their way to other dirty sets, cleaning.

use super::{Cleaned, Partition};
use crate::flash::record::{FrameState, NONE};
use crate::sync::atomic::Ordering;
use crate::types::{Lsn, PageId};

/// Dirty frames looked at to find one that is cold: the coldest of so many is among the coldest twentieth, with odds of
/// 26 to 1.
const SAMPLE: usize = 64;

impl Partition {
    pub(super) fn take_rec(&mut self, frame: u32, page: PageId) -> Option<Lsn> {
        if self.record(frame).at == NONE {
            return None;
        }
        let rec = self.record(frame).rec();
        self.rising.push((page, rec));
        self.dirty_remove(frame);
        Some(rec)
    }

    /// The dirty set that the page went to covers the recLSN now (invariant 4).
    pub(in crate::flash) fn risen(&mut self, page: PageId, rec: Lsn) {
        let at = self.rising.iter().position(|r| *r == (page, rec)).expect("what rose was rising");
        self.rising.swap_remove(at);
        self.risen = Some(self.risen.map_or(rec, |r| r.min(rec)));
    }

    pub(in crate::flash) fn begin_scan(&mut self) {
        self.risen = None;
    }

    /// Invariants 2 and 4.
    pub(in crate::flash) fn oldest_rec(&self) -> Option<Lsn> {
        let rising = self.rising.iter().map(|(_, rec)| *rec);
        rising.chain(self.risen).chain(self.oldest_dirty()).min()
    }

    pub(in crate::flash) fn oldest_dirty(&self) -> Option<Lsn> {
        self.dirty.first().map(|&frame| self.record(frame).rec())
    }

    /// The recLSN of the oldest frame that can be cleaned now.
    pub(in crate::flash) fn oldest_cleanable(&mut self) -> Option<(Lsn, u32)> {
        let mut passed = Vec::new();
        let mut found = None;
        while let Some(&frame) = self.dirty.first() {
            if self.record(frame).state() == FrameState::Dirty {
                found = Some((self.record(frame).rec(), frame));
                break;
            }
            // Being written or cleaned. It stays counted, so that a reader without the latch finds it.
            passed.push(frame);
            self.heap_remove(frame);
        }
        passed.into_iter().for_each(|frame| self.heap_push(frame));
        found
    }

    /// Of some frames that can be cleaned now, others each time, the one that replacement would take first. `None`:
    /// none can, or the order cannot tell.
    pub(in crate::flash) fn coldest_cleanable(&mut self) -> Option<u32> {
        let count = self.dirty.len();
        let sample = (0..count.min(SAMPLE)).map(|i| self.dirty[(self.hand + i) % count]);
        let coldest = sample.filter(|&frame| self.record(frame).state() == FrameState::Dirty);
        let coldest = coldest.filter_map(|frame| Some((self.order.rank(frame)?, frame))).min();
        self.hand = if count == 0 { 0 } else { (self.hand + SAMPLE) % count };
        coldest.map(|(_, frame)| frame)
    }

    /// The page's frame is dirty, or is being written and will be.
    pub(in crate::flash) fn is_dirty(&self, page: PageId) -> bool {
        self.find(page).is_some_and(|frame| self.record(frame).at != NONE)
    }

    pub(in crate::flash) fn dirty_frames(&self) -> usize {
        self.dirty.len()
    }

    pub(in crate::flash) fn is_cleanable(&self, frame: u32) -> bool {
        self.record(frame).state() == FrameState::Dirty && !self.record(frame).is_void()
    }

    /// Those of the `window` frames given out next that can be cleaned, in the order of their turns.
    pub(in crate::flash) fn cleanable_in_turn(&self, window: u32) -> impl Iterator<Item = u32> {
        let (turn, window) = self.turn.map_or((0, 0), |turn| (turn, window.min(self.limit)));
        (0..window).map(move |i| (turn + i) % self.limit).filter(|&frame| self.is_cleanable(frame))
    }

    /// Begins to clean `first` and up to `most - 1` dirty neighbours of its page; in order of their pages.
    pub(in crate::flash) fn start_clean(&mut self, first: u32, most: usize) -> Vec<(PageId, u32)> {
        let page = self.record(first).page();
        let mut group = vec![(page, first)];
        let cleanable = |part: &Partition, no: Option<u32>| {
            let frame = part.find(PageId::new(page.space, no?))?;
            (part.record(frame).state() == FrameState::Dirty).then_some((part.record(frame).page(), frame))
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
            self.at(*frame).set_state(FrameState::LazyCleaning);
        }
        group
    }

    /// The end of what `start_clean` began; whether the frame was still its page's.
    pub(in crate::flash) fn end_clean(&mut self, frame: u32, how: Cleaned) -> bool {
        assert_eq!(self.record(frame).state(), FrameState::LazyCleaning);
        self.at(frame).set_state(FrameState::Dirty);
        if self.record(frame).is_void() {
            self.release(frame);
            return false;
        }
        if how == Cleaned::Failed {
            return true;
        }
        self.dirty_remove(frame);
        self.at(frame).set_state(FrameState::Clean);
        match how {
            Cleaned::Home if frame < self.limit => self.order.cleaned(frame),
            _ => self.drop_frame(frame),
        }
        true
    }

    pub(super) fn dirty_less(&self, a: u32, b: u32) -> bool {
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

    pub(super) fn dirty_push(&mut self, frame: u32) {
        self.totals.dirty.fetch_add(1, Ordering::AcqRel);
        self.heap_push(frame);
    }

    fn heap_push(&mut self, frame: u32) {
        self.dirty.push(frame);
        self.dirty_up(self.dirty.len() - 1);
    }

    pub(super) fn dirty_remove(&mut self, frame: u32) {
        self.totals.dirty.fetch_sub(1, Ordering::AcqRel);
        self.heap_remove(frame);
    }

    fn heap_remove(&mut self, frame: u32) {
        let at = std::mem::replace(&mut self.at(frame).at, NONE) as usize;
        let last = self.dirty.pop().expect("a frame in the heap");
        if last != frame {
            self.dirty_place(at, last);
            self.dirty_down(at);
            self.dirty_up(self.record(last).at as usize);
        }
    }
}
