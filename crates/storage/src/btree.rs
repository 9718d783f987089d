//! B-link tree over byte strings (Lehman & Yao; left links for backward scans). The root page never moves. Entries are whole
//! keys, unique; an index appends the RID to its key. At most `max_key` bytes.
use crate::error::Result;
use crate::store::Store;
use crate::types::*;
use std::ops::Bound;

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

/// A position in a scan: remembers the last key returned, so that splits and deletions between batches do no harm.
pub struct Cursor {}

impl BTree {
    /// Bytes of the longest key for a page size.
    pub fn max_key(_page_size: usize) -> usize {
        todo!()
    }
    /// Allocates and formats the root.
    pub async fn create(_st: &Store, _object: ObjectId, _space: SpaceId) -> Result<BTree> {
        todo!()
    }
    /// Adds a key; false where it was there.
    pub async fn insert(&self, _st: &Store, _key: &[u8]) -> Result<bool> {
        todo!()
    }
    /// Removes a key; false where it was not there.
    pub async fn remove(&self, _st: &Store, _key: &[u8]) -> Result<bool> {
        todo!()
    }
    /// The first key >= `from` that starts with `prefix`, if any (the point lookup; no allocation beyond the key when resident).
    pub async fn first_with_prefix(&self, _st: &Store, _prefix: &[u8]) -> Result<Option<Vec<u8>>> {
        todo!()
    }
    pub fn cursor(&self, _from: Bound<Vec<u8>>, _to: Bound<Vec<u8>>, _direction: Direction) -> Cursor {
        todo!()
    }
    /// Builds a fresh tree from sorted keys, bottom-up. The tree must be empty.
    pub async fn bulk_load(&self, _st: &Store, _keys: impl Iterator<Item = Vec<u8>> + Send) -> Result<()> {
        todo!()
    }
    /// Checks order, links, high keys and levels of the whole tree; returns the number of keys.
    pub async fn check(&self, _st: &Store) -> Result<u64> {
        todo!()
    }
}

impl Cursor {
    /// The next keys in order, one leaf's worth at most; empty at the end.
    pub async fn next_batch(&mut self, _st: &Store, _tree: &BTree) -> Result<Vec<Vec<u8>>> {
        todo!()
    }
}
