//! LRFU with retained history, in 16 bytes a frame: the page wanted least goes first, where a use counts half as much
//! with each half-life that passes; a full tier lets a clean page in only if it is wanted as much as the next victim.
//!
//! Source: Lee et al., *LRFU: A Spectrum of Policies that Subsumes the Least Recently Used and Least Frequently Used
//! Policies*, IEEE Transactions on Computers 50(12), 2001, with F(x) = (1/2)^(x / half-life). What is kept is the
//! logarithm (base 2) of that value as seen from time 0: it does not change as time passes. A use is a miss of the
//! memory pool. Uses of pages without a frame are kept as those of frames are, more coarsely, in a table of one entry a
//! frame.
//!
//! Invariants:
//! 1. The heap holds the replaceable frames by (score, frame).
//! 2. Scores are positive, and at most `FULL` half-lives and the logarithm of the uses within one.

use super::FlashReplacement;
use super::heap::Heap;
use crate::{Class, Frame, Page};

/// Not in the heap.
const OUT: u32 = u32::MAX;
/// A half-life, in events (uses and admissions) for each frame.
const HALF_LIFE: u64 = 16;
/// Time is counted in half-lives with 32 binary places, scores with 22, scores of pages without a frame with 6.
const TIME_PLACES: u32 = 32;
const PLACES: u32 = 22;
const COARSE: u32 = PLACES - 6;
/// Half-lives after which all scores move down by half of that.
const FULL: u64 = 900;
/// Pages without a frame are looked for among so many.
const WAYS: usize = 8;

#[derive(Clone, Copy)]
struct Node {
    score: u32,
    /// Place in the heap.
    at: u32,
}

/// A page without a frame: some bits of its hash, and its score; 0: nothing.
#[derive(Clone, Copy, Default)]
struct Past {
    print: u16,
    score: u16,
}

pub struct FlashLrfu {
    time: u64,
    nodes: Vec<Node>,
    /// Replaceable frames; the root is the victim.
    heap: Vec<Frame>,
    /// Sets of `WAYS` (of all, where there are fewer).
    past: Vec<Past>,
}

/// log2(2^a + 2^b).
fn sum(a: u32, b: u32) -> u32 {
    const ONE: f64 = (1u64 << PLACES) as f64;
    let apart = f64::from(a.abs_diff(b)) / ONE;
    a.max(b) + ((1.0 + (-apart).exp2()).log2() * ONE) as u32
}

impl FlashLrfu {
    pub(crate) const FRAME_BYTES: usize = size_of::<Node>() + size_of::<Frame>() + size_of::<Past>();

    pub fn new(capacity: usize) -> FlashLrfu {
        let nodes = vec![Node { score: 1, at: OUT }; capacity];
        FlashLrfu {
            time: 1 << TIME_PLACES,
            nodes,
            heap: Vec::with_capacity(capacity),
            past: vec![Past::default(); capacity],
        }
    }

    /// The score of a single use now.
    fn once(&self) -> u32 {
        (self.time >> (TIME_PLACES - PLACES)) as u32
    }

    /// An event.
    fn tick(&mut self) {
        self.time += (1 << TIME_PLACES) / (HALF_LIFE * self.nodes.len().max(1) as u64);
        if self.time >> TIME_PLACES >= FULL {
            const DOWN: u32 = (FULL / 2) as u32;
            self.time -= u64::from(DOWN) << TIME_PLACES;
            for node in &mut self.nodes {
                node.score = node.score.saturating_sub(DOWN << PLACES).max(1);
            }
            for past in &mut self.past {
                past.score = past.score.saturating_sub((DOWN << (PLACES - COARSE)) as u16);
            }
            self.restore();
        }
    }

    /// Where pages that hash like this one are remembered, and what tells them apart there.
    fn set(&self, page: Page) -> (std::ops::Range<usize>, u16) {
        let hash = page.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let hash = (hash ^ hash >> 29).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let ways = WAYS.min(self.past.len());
        let sets = self.past.len().checked_div(ways).unwrap_or(0) as u64;
        let first = (((hash >> 32) * sets) >> 32) as usize * ways;
        (first..first + ways, hash as u16)
    }

    /// The score of a page without a frame, if it is remembered.
    fn remembered(&self, page: Page) -> Option<u32> {
        let (set, print) = self.set(page);
        let past = self.past[set].iter().find(|past| past.print == print && past.score > 0)?;
        Some(u32::from(past.score) << COARSE)
    }

    /// Remembers the page instead of the one wanted least of its set.
    fn remember(&mut self, page: Page, score: u32) {
        let (set, print) = self.set(page);
        let score = (score >> COARSE) as u16;
        let known = |past: &Past| past.print == print && past.score > 0;
        let place = self.past[set].iter_mut().min_by_key(|past| (!known(past), past.score));
        if let Some(place) = place.filter(|place| known(place) || place.score <= score) {
            *place = Past { print, score };
        }
    }

    fn forget(&mut self, page: Page) {
        let (set, print) = self.set(page);
        self.past[set].iter_mut().filter(|past| past.print == print).for_each(|past| *past = Past::default());
    }

    /// A frame's score grows.
    fn raise(&mut self, frame: Frame, score: u32) {
        let node = &mut self.nodes[frame as usize];
        assert!(score >= node.score, "frame {frame} falls from {} to {score}", node.score);
        node.score = score;
        if node.at != OUT {
            let at = node.at as usize;
            self.down(at);
        }
    }

    fn insert(&mut self, frame: Frame) {
        assert_eq!(self.nodes[frame as usize].at, OUT, "frame {frame} is replaceable already");
        self.push(frame);
    }
}

impl Heap for FlashLrfu {
    type Key = (u32, Frame);

    fn heap(&mut self) -> &mut Vec<u32> {
        &mut self.heap
    }

    fn key(&self, frame: Frame) -> (u32, Frame) {
        (self.nodes[frame as usize].score, frame)
    }

    fn moved(&mut self, frame: Frame, at: usize) {
        self.nodes[frame as usize].at = at as u32;
    }
}

impl FlashReplacement for FlashLrfu {
    fn admit(&mut self, frame: Frame, page: Page, clean: bool) {
        self.tick();
        assert_eq!(self.nodes[frame as usize].at, OUT, "frame {frame} is held already");
        self.nodes[frame as usize].score = self.remembered(page).unwrap_or(self.once());
        self.forget(page);
        if clean {
            self.insert(frame);
        }
    }

    fn hit(&mut self, frame: Frame, class: Class) {
        if class == Class::Random {
            self.tick();
            let score = sum(self.nodes[frame as usize].score, self.once());
            self.raise(frame, score);
        }
    }

    fn missed(&mut self, page: Page, class: Class) {
        if class == Class::Random {
            self.tick();
            let once = self.once();
            let score = self.remembered(page).map_or(once, |score| sum(score, once));
            self.remember(page, score);
        }
    }

    /// A dirty page always is: what is written again and again should not go to the disk each time.
    fn admits(&self, page: Page, dirty: bool) -> bool {
        let Some(victim) = self.victim().filter(|_| !dirty) else { return true };
        self.remembered(page).unwrap_or(self.once()) >= self.nodes[victim as usize].score
    }

    fn cleaned(&mut self, frame: Frame) {
        self.insert(frame);
    }

    fn victim(&self) -> Option<Frame> {
        self.heap.first().copied()
    }

    /// It is wanted: as if used now, and more than the next.
    fn veto(&mut self, frame: Frame) {
        let next = self.heap.iter().skip(1).take(2).map(|&next| self.nodes[next as usize].score + 1).min();
        let used = sum(self.nodes[frame as usize].score, self.once());
        self.raise(frame, used.max(next.unwrap_or(0)));
    }

    fn remove(&mut self, frame: Frame, page: Page) {
        let at = std::mem::replace(&mut self.nodes[frame as usize].at, OUT);
        if at != OUT {
            self.take(at as usize); // Else it was dirty.
        }
        let score = self.nodes[frame as usize].score;
        self.remember(page, score);
    }

    fn clean(&self) -> usize {
        self.heap.len()
    }

    fn rank(&self, frame: Frame) -> Option<u64> {
        Some(u64::from(self.nodes[frame as usize].score))
    }

    fn arrange(&self, held: &mut Vec<Frame>) {
        held.sort_unstable_by_key(|&frame| self.key(frame));
    }

    /// What is remembered begins anew: its places have moved.
    fn resize(&mut self, capacity: usize) {
        self.nodes.resize(capacity, Node { score: 1, at: OUT });
        self.nodes.shrink_to_fit();
        self.heap.shrink_to(capacity);
        self.heap.reserve_exact(capacity - self.heap.len());
        self.past = vec![Past::default(); capacity];
    }
}

#[cfg(test)]
mod tests;
