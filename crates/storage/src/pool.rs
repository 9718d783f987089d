//! Buffer pool.
use crate::error::Result;
use crate::types::*;
use std::marker::PhantomData;
use std::sync::Arc;

/// How a page is going to be used; read-ahead marks pages sequential.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Random,
    Sequential,
}

/// The buffer pool. `Arc<Pool>` is shared by everyone.
pub struct Pool {}

/// A pin: the page stays in its frame while this lives. `Send`, may be held across awaits. Clone = another pin.
#[derive(Clone)]
pub struct Pin {
    _p: Arc<Pool>,
}

/// A shared latch on a pinned page. `!Send`.
pub struct ReadGuard<'a> {
    _p: PhantomData<(&'a Pin, *const ())>,
}

/// An exclusive latch. Only [`crate::mtr::Mtr`] makes one. `!Send`.
pub struct WriteGuard<'a> {
    _p: PhantomData<(&'a Pin, *const ())>,
}

impl Pool {
    pub fn page_size(&self) -> usize {
        todo!()
    }
    /// The pin of a resident page, at once; `None` where it must be read.
    pub fn get(&self, _page: PageId) -> Option<Pin> {
        todo!()
    }
    /// Pins a page, reading it through its home where needed (one read for any number of concurrent misses).
    pub async fn fetch(&self, _page: PageId, _access: Access) -> Result<Pin> {
        todo!()
    }
    /// Reads a run of pages ahead in as few I/Os as the home can do; returns when they are resident or given up.
    pub async fn prefetch(&self, _space: SpaceId, _first: u32, _count: u32) {
        todo!()
    }
    /// Pins a frame for a page that is about to be formatted; nothing is read.
    pub async fn create(&self, _page: PageId) -> Result<Pin> {
        todo!()
    }
    /// Drops pages of a freed range without writing them. Nobody may hold pins.
    pub async fn forget(&self, _space: SpaceId, _first: u32, _count: u32) {
        todo!()
    }
}

impl Pin {
    pub fn id(&self) -> PageId {
        todo!()
    }
    /// Latches the page for reading. Short: never across an await (R3).
    pub fn read(&self) -> ReadGuard<'_> {
        todo!()
    }
}

impl std::ops::Deref for ReadGuard<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        todo!()
    }
}
