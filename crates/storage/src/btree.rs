//! B-link tree over byte strings (Lehman and Yao, *Efficient locking for concurrent operations on B-trees*; left links
//! and deletion as in Lanin and Shasha, *A symmetric concurrent B-tree algorithm*). The root page never moves. Entries
//! are whole keys, unique; an index appends the RID to its key. At most `max_key` bytes.
//!
//! Invariants (those of single pages: [`node`]):
//! 1. A search holds no latch between two pages. A page may be split meanwhile (then its high key sends the search to
//!    the right) or unlinked (flag `DEAD`: to the right as well); it is not reused before the search has ended, since
//!    every operation keeps the tablespace's epoch (`Space::enter`).
//! 2. A page is split in one mini-transaction, and linked into the level above in a second one. Between the two the
//!    left half is flagged; an inserter who meets the flag finishes the split first.
//! 3. An empty page is unlinked from parent and neighbours in *one* mini-transaction, together with its ancestors that
//!    held nothing else. So there is no half-dead state to finish after a crash. The last child of a parent goes only
//!    with its parent, and the rightmost page of a level never.
//! 4. The left link is exact under the page's latch: a task that changes what lies to the left holds that latch too.
//! 5. Latch order: lower level first, then left before right, then map pages.
//! 6. A root that is full moves its entries to two fresh pages, in one mini-transaction. Height never shrinks.
//!
//! Log room: adding or removing a key takes its length and [`KEY_LOG`]; a split [`split_log`]; unlinking
//! [`delete::UNLINK_LOG`].
mod bulk;
mod check;
mod cursor;
mod delete;
mod descend;
mod node;
mod split;
#[cfg(test)]
mod tests;

use crate::error::{Result, StorageError};
use crate::mtr::Mtr;
use crate::page::op::PageOp;
use crate::page::slotted;
use crate::pool::{Access, Pin};
use crate::store::Store;
use crate::types::*;
pub use cursor::Cursor;
use descend::Step;
use node::{Node, Target};
use std::ops::Bound;

/// Log bytes of adding or removing a key, or linking a split page, besides the key.
const KEY_LOG: usize = 256;

/// Log bytes of a split: the root's copies it whole, in ops that take at most twice their bytes in the page (a cell of
/// two bytes costs six there and at most ten in the log); then links and map entries.
fn split_log(page_size: usize) -> usize {
    2 * page_size + 4096
}

pub struct BTree {
    pub object: ObjectId,
    pub space: SpaceId,
    pub root: u32,
}

/// A scan's direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Forward,
    Backward,
}

/// What a change of a leaf came to.
enum LeafChange {
    Done(bool),
    /// The last key of a leaf is gone.
    Emptied,
    /// No room; whether the key belongs at the tree's right end.
    Full {
        append: bool,
    },
    /// The leaf is not where the key belongs any more.
    Moved,
}

impl BTree {
    /// Bytes of the longest key for a page size: a high key and four entries fit in a page.
    pub(crate) fn max_key(page_size: usize) -> usize {
        let body = page_size - slotted::special_offset() as usize - node::SPECIAL as usize;
        body / 5 - slotted::SLOT - size_of::<u32>()
    }
    /// Allocates and formats the root.
    pub async fn create(st: &Store, object: ObjectId, space: SpaceId) -> Result<BTree> {
        let room = st.space(space).reserve_page(st, object).await?;
        let permit = st.reserve(KEY_LOG).await?;
        let mut mtr = st.mtr(permit);
        let root = room.page.no;
        let at = mtr.latch(&room.pin);
        mtr.apply(at, node::format(object));
        st.space(space).use_page(&mut mtr, room);
        mtr.commit();
        Ok(BTree { object, space, root })
    }
    fn check_key(&self, st: &Store, key: &[u8]) -> Result<()> {
        let limit = BTree::max_key(st.pool().page_size());
        if key.len() > limit {
            return Err(StorageError::KeyTooLong { len: key.len(), limit });
        }
        Ok(())
    }
    /// Adds a key; false where it was there.
    pub async fn insert(&self, st: &Store, key: &[u8]) -> Result<bool> {
        self.check_key(st, key)?;
        let _epoch = st.space(self.space).enter();
        loop {
            let leaf = self.descend(st, Target::Key(key), 0, true).await?;
            let permit = st.reserve(key.len() + KEY_LOG).await?;
            match self.try_insert(st.mtr(permit), &leaf, key) {
                LeafChange::Done(added) => return Ok(added),
                LeafChange::Full { append } => self.split(st, leaf, key.len(), append).await?,
                LeafChange::Moved | LeafChange::Emptied => {}
            }
        }
    }
    fn try_insert(&self, mut mtr: Mtr, leaf: &Pin, key: &[u8]) -> LeafChange {
        let at = mtr.latch(leaf);
        let node = Node(mtr.page(at));
        if node.level() != 0 || node.is_left_of(Target::Key(key)) {
            return LeafChange::Moved;
        }
        let Err(i) = node.search(key) else { return LeafChange::Done(false) };
        if !slotted::fits(node.0, key.len()) {
            return LeafChange::Full { append: i == node.count() && node.right() == 0 };
        }
        let slot = node.slot(i);
        mtr.apply(at, PageOp::InsertAt { slot, cell: key });
        mtr.commit();
        LeafChange::Done(true)
    }
    /// Removes a key; false where it was not there. Purge and rollback do this, so it goes on where the log is nearly
    /// full, and leaves splits for others to finish.
    pub async fn remove(&self, st: &Store, key: &[u8]) -> Result<bool> {
        let _epoch = st.space(self.space).enter();
        loop {
            let leaf = self.descend(st, Target::Key(key), 0, false).await?;
            let permit = st.reserve_for_cleanup(KEY_LOG).await?;
            match self.try_remove(st.mtr(permit), &leaf, key) {
                LeafChange::Done(removed) => return Ok(removed),
                LeafChange::Emptied => {
                    self.delete_empty(st, leaf).await?;
                    return Ok(true);
                }
                LeafChange::Moved | LeafChange::Full { .. } => {}
            }
        }
    }
    fn try_remove(&self, mut mtr: Mtr, leaf: &Pin, key: &[u8]) -> LeafChange {
        let at = mtr.latch(leaf);
        let node = Node(mtr.page(at));
        if node.level() != 0 || node.is_left_of(Target::Key(key)) {
            return LeafChange::Moved;
        }
        let Ok(i) = node.search(key) else { return LeafChange::Done(false) };
        let (slot, last) = (node.slot(i), node.count() == 1);
        mtr.apply(at, PageOp::RemoveAt { slot });
        mtr.commit();
        if last { LeafChange::Emptied } else { LeafChange::Done(true) }
    }
    /// The first key >= `prefix` that starts with it, if any (the point lookup; no allocation beyond the key when
    /// resident).
    pub async fn first_with_prefix(&self, st: &Store, prefix: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Some(found) = self.peek_prefix(st, prefix, |key| key.map(<[u8]>::to_vec)) {
            return Ok(found);
        }
        let _epoch = st.space(self.space).enter();
        let mut leaf = self.descend(st, Target::Key(prefix), 0, false).await?;
        loop {
            match self.find_prefix(&leaf, prefix, |key| key.map(<[u8]>::to_vec))? {
                Ok(found) => return Ok(found),
                Err(right) => leaf = self.pin(st, right, Access::Random).await?,
            }
        }
    }
    /// The same, at once: shows the key to `look`, under the page's latch. `None` where that would have to wait for a
    /// page (or one is damaged, which `first_with_prefix` says).
    pub fn peek_prefix<R>(&self, st: &Store, prefix: &[u8], mut look: impl FnMut(Option<&[u8]>) -> R) -> Option<R> {
        let _epoch = st.space(self.space).enter();
        let resident = |no| st.pool().get(PageId::new(self.space, no));
        let mut pin = resident(self.root)?;
        loop {
            let to = match self.step(&pin, Target::Key(prefix), 0, false).ok()? {
                Step::Go(no) => no,
                Step::Here => match self.find_prefix(&pin, prefix, &mut look).ok()? {
                    Ok(found) => return Some(found),
                    Err(right) => right,
                },
                Step::Finish => unreachable!("only inserters finish splits"),
            };
            pin = resident(to)?;
        }
    }
    /// What `look` says to the prefix's first key, or to none; or the page to look in next.
    fn find_prefix<R>(
        &self,
        leaf: &Pin,
        prefix: &[u8],
        mut look: impl FnMut(Option<&[u8]>) -> R,
    ) -> Result<Result<R, u32>> {
        let page = leaf.read();
        let node = self.node(&page, leaf)?;
        if node.level() != 0 {
            return Ok(Err(node.child_for(Target::Key(prefix)))); // the root has been split since
        }
        let i = if node.is_dead() { node.count() } else { node.search(prefix).unwrap_or_else(|i| i) };
        if i < node.count() {
            let key = node.key(i);
            return Ok(Ok(look(key.starts_with(prefix).then_some(key))));
        }
        Ok(if node.right() == 0 { Ok(look(None)) } else { Err(node.right()) })
    }
    pub fn cursor(&self, from: Bound<Vec<u8>>, to: Bound<Vec<u8>>, direction: Direction) -> Cursor {
        Cursor::new(from, to, direction)
    }
}
