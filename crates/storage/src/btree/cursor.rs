//! Scans, a leaf at a time.
//!
//! Between two batches nothing is pinned, latched or kept from being changed. A cursor remembers the last key that it
//! returned, and its leaf with the leaf's LSN: while that is the same, the leaf's link leads on; otherwise the scan
//! seeks the key again.
use super::node::{Node, Target};
use super::*;
use crate::page::header;
use crate::pool::ReadGuard;
use crate::space::EXTENT;

/// A position in a scan: remembers the last key returned, so that splits and deletions between batches do no harm.
pub struct Cursor {
    /// What is left to return lies between these.
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    direction: Direction,
    leaf: Option<(u32, Lsn)>,
    /// Leaves in a row whose page numbers followed each other.
    run: u32,
    done: bool,
}

/// What looking at a page came to.
enum Seen {
    Keys(Vec<Vec<u8>>),
    /// Look at this page next. Where `back` is set, the page must be its left neighbour.
    Go {
        to: u32,
        back: Option<u32>,
    },
    Seek,
    End,
}

/// Runs of adjacent leaves after which a scan reads ahead.
const RUN: u32 = 2;

fn bound(bound: &Bound<Vec<u8>>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

impl Cursor {
    pub(super) fn new(from: Bound<Vec<u8>>, to: Bound<Vec<u8>>, direction: Direction) -> Cursor {
        Cursor { from, to, direction, leaf: None, run: 0, done: false }
    }

    /// The next keys in the scan's order, one leaf's worth at most; empty at the end.
    pub async fn next_batch(&mut self, st: &Store, tree: &BTree) -> Result<Vec<Vec<u8>>> {
        let _epoch = st.space(tree.space).enter();
        let mut seen = if self.done { Seen::End } else { self.resume(st, tree) };
        loop {
            let (pin, back) = match seen {
                Seen::Keys(keys) => return Ok(keys),
                Seen::End => {
                    self.done = true;
                    return Ok(Vec::new());
                }
                Seen::Go { to, back } => (self.follow(st, tree, to).await?, back),
                Seen::Seek => (tree.descend(st, self.target(), 0, false).await?, None),
            };
            seen = self.look(tree, &pin, back)?;
        }
    }

    fn target(&self) -> Target<'_> {
        match self.direction {
            Direction::Forward => bound(&self.from).map_or(Target::First, Target::Key),
            Direction::Backward => bound(&self.to).map_or(Target::Last, Target::Key),
        }
    }

    /// Where to go on: along the remembered leaf's link if that is the same as it was.
    fn resume(&self, st: &Store, tree: &BTree) -> Seen {
        let Some((no, lsn)) = self.leaf else { return Seen::Seek };
        let Some(pin) = st.pool().get(PageId::new(tree.space, no)) else { return Seen::Seek };
        let page = pin.read();
        if header::lsn(&page) != lsn {
            return Seen::Seek;
        }
        self.onward(Node(&page), no)
    }

    fn onward(&self, node: Node<'_>, no: u32) -> Seen {
        let (to, back) = match self.direction {
            Direction::Forward => (node.right(), None),
            Direction::Backward => (node.left(), Some(no)),
        };
        if to == 0 { Seen::End } else { Seen::Go { to, back } }
    }

    /// Pins the next leaf; reads ahead where leaves have been lying next to each other.
    async fn follow(&mut self, st: &Store, tree: &BTree, to: u32) -> Result<Pin> {
        let adjacent = self.leaf.is_some_and(|(no, _)| no + 1 == to);
        self.run = if adjacent { self.run + 1 } else { 0 };
        let ahead = st.config().read_ahead.min((EXTENT - to % EXTENT) as usize);
        if self.run >= RUN && ahead > 1 && st.pool().get(PageId::new(tree.space, to)).is_none() {
            let pages = st.space(tree.space).pages(tree.object, to, ahead);
            let count = (to..).zip(&pages).take_while(|(a, b)| a == *b).count();
            st.pool().prefetch(tree.space, to, count as u32).await;
        }
        tree.pin(st, to, Access::Sequential).await
    }

    fn look(&mut self, tree: &BTree, pin: &Pin, back: Option<u32>) -> Result<Seen> {
        let page: ReadGuard<'_> = pin.read();
        let node = tree.node(&page, pin)?;
        if node.level() != 0 {
            return Ok(Seen::Go { to: node.child_for(self.target()), back: None }); // the root has been split since
        }
        match (self.direction, back) {
            (Direction::Forward, _) if node.is_dead() => return Ok(Seen::Go { to: node.right(), back: None }),
            (Direction::Backward, None) if node.is_left_of(self.target()) => {
                return Ok(Seen::Go { to: node.right(), back: None });
            }
            (Direction::Backward, Some(no)) if node.is_dead() || node.right() != no => return Ok(Seen::Seek),
            _ => {}
        }
        self.leaf = Some((pin.id().no, header::lsn(&page)));
        let start = match &self.from {
            Bound::Unbounded => 0,
            Bound::Included(key) => node.search(key).unwrap_or_else(|i| i),
            Bound::Excluded(key) => node.search(key).map_or_else(|i| i, |i| i + 1),
        };
        let end = match &self.to {
            Bound::Unbounded => node.count(),
            Bound::Included(key) => node.search(key).map_or_else(|i| i, |i| i + 1),
            Bound::Excluded(key) => node.search(key).unwrap_or_else(|i| i),
        };
        let keys = (start..end).map(|i| node.key(i).to_vec());
        let mut keys: Vec<_> = if self.direction == Direction::Forward { keys.collect() } else { keys.rev().collect() };
        let is_last = match self.direction {
            Direction::Forward => end < node.count() || self.ends_before(node),
            Direction::Backward => start > 0 || node.left() == 0,
        };
        if let Some(last) = keys.last().cloned() {
            match self.direction {
                Direction::Forward => self.from = Bound::Excluded(last),
                Direction::Backward => self.to = Bound::Excluded(last),
            }
            self.done = is_last;
            return Ok(Seen::Keys(std::mem::take(&mut keys)));
        }
        Ok(if is_last { Seen::End } else { self.onward(node, pin.id().no) })
    }

    /// Whether nothing right of the page is wanted.
    fn ends_before(&self, node: Node<'_>) -> bool {
        match (node.high(), &self.to) {
            (None, _) => true,
            (Some(_), Bound::Unbounded) => false,
            (Some(high), Bound::Included(key)) => high > &key[..],
            (Some(high), Bound::Excluded(key)) => high >= &key[..],
        }
    }
}
