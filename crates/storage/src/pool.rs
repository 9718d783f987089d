//! Buffer pool.
use crate::config::StorageConfig;
use crate::error::Result;
use crate::home::{Home, Reason};
use crate::log::Log;
use crate::types::*;
use std::marker::PhantomData;
use std::sync::Arc;
use terrace_env::Env;

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
    /// `config.pool_bytes` worth of frames over a home; the log is flushed up to a page's LSN before the page is written back (R4;
    /// not where the safeguard `log_before_data` is off).
    pub(crate) fn new(_env: Env, _config: &StorageConfig, _home: Arc<dyn Home>, _log: Log) -> Arc<Pool> {
        todo!()
    }
    /// Number of frames.
    pub fn frames(&self) -> usize {
        todo!()
    }
    /// The smallest recLSN of dirty pages, those included that are being written back: a page leaves only after
    /// `home.write_back` returned Ok. The checkpoint reads `log.end()`, then this, then `home.oldest_rec_lsn()`.
    ///
    /// Mtr::commit marks its pages dirty with recLSN = `log.end()` (read there) *before* `log.append` (log invariant 4).
    pub(crate) fn min_rec_lsn(&self) -> Option<Lsn> {
        todo!()
    }
    /// Number of dirty pages.
    pub fn dirty(&self) -> usize {
        todo!()
    }
    /// Writes dirty pages with recLSN < `before` home, oldest first, at most `max`, in groups sorted by address; returns how many.
    /// Pages dirtied again meanwhile stay dirty.
    pub(crate) async fn write_dirty(&self, _before: Lsn, _max: usize, _reason: Reason) -> Result<usize> {
        todo!()
    }
    /// Redo (and page repair): changes a page's bytes outside of a mini-transaction, marks it dirty with `rec_lsn` (kept where it
    /// is dirty with a smaller one); `change` stamps the page LSN. Before recovery has ended, or under the page's exclusive latch.
    pub(crate) fn redo(&self, _pin: &Pin, _rec_lsn: Lsn, _change: impl FnOnce(&mut [u8])) {
        todo!()
    }
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
