//! LRU with midpoint insertion: new pages enter the *old* part of the list and are promoted to the *young* part when
//! used again, so that one scan cannot flush the pool.

use crate::list::Lists;
use crate::{Class, Frame, Page, Replacement};

const YOUNG: usize = 0;
const OLD: usize = 1;

/// The old part is kept at 3/8 of the frames held.
const OLD_NUMERATOR: usize = 3;
const OLD_DENOMINATOR: usize = 8;

pub struct Lru {
    lists: Lists<2>,
}

impl Lru {
    /// For frames `0..capacity`.
    pub fn new(capacity: usize) -> Lru {
        Lru { lists: Lists::new(capacity) }
    }

    /// Moves the midpoint so that the old part has its share: young pages age into it.
    fn balance(&mut self) {
        let target = self.len() * OLD_NUMERATOR / OLD_DENOMINATOR;
        while self.lists.len(OLD) < target {
            let Some(frame) = self.lists.tail(YOUNG) else { break };
            self.lists.unlink(frame);
            self.lists.push_head(OLD, frame);
        }
    }
}

impl Replacement for Lru {
    fn admit(&mut self, frame: Frame, _page: Page, _class: Class) {
        self.lists.push_head(OLD, frame);
        self.balance();
    }

    fn hit(&mut self, frame: Frame, class: Class) {
        let list = self.lists.list_of(frame).expect("a hit frame is held");
        // A scan that touches its page several times does not make it young.
        let to = if class == Class::Sequential { list } else { YOUNG };
        self.lists.unlink(frame);
        self.lists.push_head(to, frame);
        self.balance();
    }

    fn victim(&mut self) -> Option<Frame> {
        self.lists.tail(OLD).or_else(|| self.lists.tail(YOUNG))
    }

    fn veto(&mut self, frame: Frame) {
        // A pinned page is in use. The newest end of the list is furthest from the victims.
        self.lists.unlink(frame);
        self.lists.push_head(YOUNG, frame);
        self.balance();
    }

    fn remove(&mut self, frame: Frame) {
        self.lists.unlink(frame);
        self.balance();
    }

    fn len(&self) -> usize {
        self.lists.len(YOUNG) + self.lists.len(OLD)
    }
}
