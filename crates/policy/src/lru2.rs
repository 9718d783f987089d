//! LRU-2: the victim is the page whose second most recent use lies furthest back; pages used once go first, oldest
//! first.
//!
//! Source: E. O'Neil, P. O'Neil, G. Weikum, *The LRU-K Page Replacement Algorithm for Database Disk Buffering*, SIGMOD
//! 1993, with a correlated reference period (uses that close together count as one) and retained history for pages that
//! left. Time is the number of events seen.

use crate::{Class, Frame, Page, Replacement};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};

pub struct Lru2 {
    now: u64,
    /// Uses within this many events of the last one are correlated.
    correlated: u64,
    frames: Vec<Option<Use>>,
    /// Held frames by (second last use, last use).
    order: BTreeSet<(u64, u64, Frame)>,
    /// Last use of pages that left, for as many pages as there are frames; oldest first in `forgotten`.
    history: FxHashMap<Page, u64>,
    forgotten: VecDeque<(Page, u64)>,
}

#[derive(Clone, Copy)]
struct Use {
    page: Page,
    last: u64,
    /// 0 where it was used once.
    before: u64,
}

impl Lru2 {
    /// For frames `0..capacity`.
    pub fn new(capacity: usize) -> Lru2 {
        Lru2 {
            now: 0,
            correlated: capacity as u64 / 16,
            frames: vec![None; capacity],
            order: BTreeSet::new(),
            history: FxHashMap::default(),
            forgotten: VecDeque::new(),
        }
    }

    fn set(&mut self, frame: Frame, used: Use) {
        if let Some(old) = self.frames[frame as usize].replace(used) {
            self.order.remove(&(old.before, old.last, frame));
        }
        self.order.insert((used.before, used.last, frame));
    }

    fn held(&self, frame: Frame) -> Use {
        self.frames[frame as usize].expect("the frame is held")
    }

    /// Keeps the last use of a page that leaves.
    fn retain(&mut self, page: Page, last: u64) {
        self.history.insert(page, last);
        self.forgotten.push_back((page, last));
        while self.forgotten.len() > self.frames.len() {
            let (page, last) = self.forgotten.pop_front().expect("it is longer than the capacity");
            if self.history.get(&page) == Some(&last) {
                self.history.remove(&page);
            }
        }
    }
}

impl Replacement for Lru2 {
    fn admit(&mut self, frame: Frame, page: Page, _class: Class) {
        assert!(self.frames[frame as usize].is_none(), "frame {frame} is held already");
        self.now += 1;
        let before = self.history.remove(&page).unwrap_or(0);
        self.set(frame, Use { page, last: self.now, before });
    }

    fn hit(&mut self, frame: Frame, class: Class) {
        self.now += 1;
        let used = self.held(frame);
        let correlated = class == Class::Sequential || self.now - used.last <= self.correlated;
        let before = if correlated { used.before } else { used.last };
        self.set(frame, Use { page: used.page, last: self.now, before });
    }

    fn victim(&mut self) -> Option<Frame> {
        self.order.first().map(|&(_, _, frame)| frame)
    }

    fn veto(&mut self, frame: Frame) {
        // Counts as a use now and before: a pinned page is in use, and all others come first.
        self.now += 1;
        let used = self.held(frame);
        self.set(frame, Use { page: used.page, last: self.now, before: self.now });
    }

    fn remove(&mut self, frame: Frame) {
        let used = self.frames[frame as usize].take().expect("a removed frame is held");
        self.order.remove(&(used.before, used.last, frame));
        self.retain(used.page, used.last);
    }

    fn len(&self) -> usize {
        self.order.len()
    }
}
