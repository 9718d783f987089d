//! LRU-2 in 16 bytes a frame: the times of the last two uses and a place in a heap.
//!
//! Source: O'Neil, O'Neil & Weikum, SIGMOD 1993, as chapter 3 uses it (section 3.3.1: the clean heap). A use is a miss
//! of the memory pool that the tier served, so uses are never correlated. Pages used once go first, oldest first.
//!
//! A page that changes in memory leaves the tier and comes back when memory lets go of it. As the thesis has it, with
//! both times in the frame's record, it comes back as one used once; with a *history* it comes back with the time of
//! the use before, as O'Neil et al. have it. 10 bytes a frame more.

use super::FlashReplacement;
use super::heap::Heap;
use crate::{Class, Frame, Page};
use rustc_hash::FxHashMap;

/// Not in the heap.
const OUT: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    last: u32,
    /// 0 where it was used once.
    before: u32,
    /// Place in the heap.
    at: u32,
}

/// Frames for each page whose last use is kept after it changed: memory holds that many pages at most, or they are not
/// worth keeping.
const FRAMES_KEPT: usize = 4;

pub struct FlashLru2 {
    /// Events seen.
    now: u32,
    nodes: Vec<Node>,
    /// Replaceable frames; the root is the victim.
    heap: Vec<Frame>,
    /// Last uses of pages that changed since; `None`: they are not kept.
    history: Option<FxHashMap<Page, u32>>,
}

impl FlashLru2 {
    pub(crate) const FRAME_BYTES: usize = size_of::<Node>() + size_of::<Frame>();
    /// Of the history, for each frame: an entry in a table at most 7/8 and at least 7/16 full.
    pub(crate) const HISTORY_BYTES: usize = ((size_of::<(Page, u32)>() + 1) * 16 / 7).div_ceil(FRAMES_KEPT);

    pub fn new(capacity: usize) -> FlashLru2 {
        let nodes = vec![Node { last: 0, before: 0, at: OUT }; capacity];
        FlashLru2 { now: 0, nodes, heap: Vec::with_capacity(capacity), history: None }
    }

    pub(crate) fn with_history(capacity: usize) -> FlashLru2 {
        FlashLru2 { history: Some(FxHashMap::default()), ..FlashLru2::new(capacity) }
    }

    /// The next moment. Before the clock is full all times move to its lower half, keeping their order but for the
    /// oldest ones.
    fn tick(&mut self) -> u32 {
        if self.now == u32::MAX - 1 {
            const HALF: u32 = u32::MAX / 2;
            for node in &mut self.nodes {
                node.last = node.last.saturating_sub(HALF).max(1);
                node.before = if node.before == 0 { 0 } else { node.before.saturating_sub(HALF).max(1) };
            }
            for last in self.history.iter_mut().flat_map(|history| history.values_mut()) {
                *last = last.saturating_sub(HALF).max(1);
            }
            self.now -= HALF;
            self.restore();
        }
        self.now += 1;
        self.now
    }

    fn insert(&mut self, frame: Frame) {
        assert_eq!(self.nodes[frame as usize].at, OUT, "frame {frame} is replaceable already");
        self.push(frame);
    }

    fn used(&mut self, frame: Frame, last: u32, before: u32) {
        let node = &mut self.nodes[frame as usize];
        (node.last, node.before) = (last, before);
        if node.at != OUT {
            let at = node.at as usize;
            self.down(at); // Uses only make a frame younger.
        }
    }
}

impl Heap for FlashLru2 {
    type Key = (u32, u32, Frame);

    fn heap(&mut self) -> &mut Vec<u32> {
        &mut self.heap
    }

    fn key(&self, frame: Frame) -> (u32, u32, Frame) {
        let node = &self.nodes[frame as usize];
        (node.before, node.last, frame)
    }

    fn moved(&mut self, frame: Frame, at: usize) {
        self.nodes[frame as usize].at = at as u32;
    }
}

impl FlashReplacement for FlashLru2 {
    fn admit(&mut self, frame: Frame, page: Page, clean: bool) {
        let now = self.tick();
        let before = self.history.as_mut().and_then(|history| history.remove(&page)).unwrap_or(0);
        self.used(frame, now, before);
        if clean {
            self.insert(frame);
        }
    }

    fn hit(&mut self, frame: Frame, _class: Class) {
        let now = self.tick();
        let before = self.nodes[frame as usize].last;
        self.used(frame, now, before);
    }

    fn cleaned(&mut self, frame: Frame) {
        self.insert(frame);
    }

    fn victim(&self) -> Option<Frame> {
        self.heap.first().copied()
    }

    fn veto(&mut self, frame: Frame) {
        let now = self.tick();
        self.used(frame, now, now);
    }

    fn changed(&mut self, frame: Frame, page: Page) {
        let (last, most) = (self.nodes[frame as usize].last, self.nodes.len().div_ceil(FRAMES_KEPT));
        let Some(history) = &mut self.history else { return };
        if history.len() >= most {
            // The older half goes: those pages have not come back.
            let mut times: Vec<u32> = history.values().copied().collect();
            let middle = times.len() / 2;
            let limit = *times.select_nth_unstable(middle).1;
            history.retain(|_, last| *last > limit);
        }
        history.insert(page, last);
    }

    fn remove(&mut self, frame: Frame, _page: Page) {
        let at = std::mem::replace(&mut self.nodes[frame as usize].at, OUT);
        if at != OUT {
            self.take(at as usize); // Else it was dirty.
        }
    }

    fn clean(&self) -> usize {
        self.heap.len()
    }

    fn rank(&self, frame: Frame) -> Option<u64> {
        let (before, last, _) = self.key(frame);
        Some(u64::from(before) << 32 | u64::from(last))
    }

    fn arrange(&self, held: &mut Vec<Frame>) {
        held.sort_unstable_by_key(|&frame| self.key(frame));
    }

    fn resize(&mut self, capacity: usize) {
        self.nodes.resize(capacity, Node { last: 0, before: 0, at: OUT });
        self.nodes.shrink_to_fit();
        self.heap.shrink_to(capacity);
        self.heap.reserve_exact(capacity - self.heap.len());
    }
}

#[cfg(test)]
mod wrap {
    use super::*;

    #[test]
    fn the_clock_starts_over_and_keeps_the_order() {
        let mut order = FlashLru2::new(3);
        order.now = u32::MAX - 6;
        for frame in 0..3 {
            order.admit(frame, frame as u64, true);
        }
        order.hit(1, Class::Random);
        order.hit(0, Class::Random);
        order.hit(2, Class::Random);
        assert!(order.now < u32::MAX / 2 + 10);
        let mut victims = Vec::new();
        while let Some(frame) = order.victim() {
            victims.push(frame);
            order.remove(frame, frame as u64);
        }
        assert_eq!(victims, [0, 1, 2], "by second last use");
    }

    #[test]
    fn a_page_that_changed_comes_back_with_its_last_use() {
        for (mut order, first) in [(FlashLru2::new(8), 1), (FlashLru2::with_history(8), 0)] {
            order.admit(0, 100, true);
            order.admit(1, 101, true);
            order.changed(1, 101);
            order.remove(1, 101);
            order.hit(0, Class::Random);
            order.admit(1, 101, true);
            // Both were used twice: 0 first and third, 1 second and last. Without a history 1 was used once.
            assert_eq!(order.victim(), Some(first));
        }
    }

    #[test]
    fn a_history_is_bounded() {
        let mut order = FlashLru2::with_history(40);
        for page in 0..1000 {
            order.admit(0, page, true);
            order.changed(0, page);
            order.remove(0, page);
        }
        let history = order.history.as_ref().expect("it was made with one");
        assert!(history.len() <= 10 && history.contains_key(&999), "{}", history.len());
    }
}
