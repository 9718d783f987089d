//! A binary heap of numbers, each of which knows its place, so that any of them can move or go.
//!
//! 1. No number's key is below its parent's. A caller that changes a key restores that by `down` where it grew, `up`
//!    where it shrank.

pub(super) trait Heap {
    type Key: Ord;

    fn heap(&mut self) -> &mut Vec<u32>;
    /// No two are equal.
    fn key(&self, item: u32) -> Self::Key;
    /// Notes where an item stands.
    fn moved(&mut self, item: u32, at: usize);

    fn place(&mut self, at: usize, item: u32) {
        self.heap()[at] = item;
        self.moved(item, at);
    }

    fn up(&mut self, mut at: usize) {
        let item = self.heap()[at];
        while at > 0 {
            let parent = self.heap()[(at - 1) / 2];
            if self.key(parent) <= self.key(item) {
                break;
            }
            self.place(at, parent);
            at = (at - 1) / 2;
        }
        self.place(at, item);
    }

    fn down(&mut self, mut at: usize) {
        let item = self.heap()[at];
        while let Some(&left) = self.heap().get(2 * at + 1) {
            let right = self.heap().get(2 * at + 2).copied().filter(|&right| self.key(right) < self.key(left));
            let (child, to) = right.map_or((left, 2 * at + 1), |right| (right, 2 * at + 2));
            if self.key(item) <= self.key(child) {
                break;
            }
            self.place(at, child);
            at = to;
        }
        self.place(at, item);
    }

    fn push(&mut self, item: u32) {
        self.heap().push(item);
        let at = self.heap().len() - 1;
        self.up(at);
    }

    /// Takes the item at `at` out.
    fn take(&mut self, at: usize) {
        let last = self.heap().pop().expect("a heap with an item in it");
        if at < self.heap().len() {
            self.place(at, last);
            self.down(at);
            if self.heap()[at] == last {
                self.up(at);
            }
        }
    }

    /// Restores the order after all keys may have changed.
    fn restore(&mut self) {
        for at in (0..self.heap().len() / 2).rev() {
            self.down(at);
        }
    }
}
