//! The seam between the pool and what lies below it. The pool asks a page's home and never a device. The home is the
//! disk home, or the flash tier over it ([`crate::flash`]).

pub(crate) mod disk;
pub(crate) mod double_write;
pub(crate) mod syncs;
#[cfg(test)]
mod tests;

pub use disk::PAGES_AT;

use crate::error::{Result, StorageError};
use crate::pool::Access;
use crate::types::*;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use terrace_device::IoBuf;

pub(crate) type HomeFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Which tier a page came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tier {
    Flash,
    Disk,
}

/// A page as its home returned it: verified bytes (R5). If it is dirty below, `dirtied` says so.
pub struct Fetched {
    pub bytes: IoBuf,
    pub tier: Tier,
    /// It is not to stay below: who shows it in memory calls `take_over`.
    pub leaves: bool,
}

/// Why a page is written back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    Evict,
    Age,
    /// To a warm tier, so that a restart repeats less.
    Early,
    Checkpoint,
}

/// A stable, sealed copy of a dirty page. The log is durable up to `lsn` (R4: asserted by the home).
pub struct WriteBack {
    pub page: PageId,
    pub bytes: IoBuf,
    pub lsn: Lsn,
    /// Since when the disk may lack changes of it.
    pub rec_lsn: Lsn,
    /// Since when every level below memory may; `None`: the flash tier has this version, durably.
    pub redo: Option<Lsn>,
    pub access: Access,
}

pub trait Home: Send + Sync {
    /// Reads `count` consecutive pages; one result each (a damaged neighbour does not fail the others).
    fn fetch(&self, first: PageId, count: u32, access: Access) -> HomeFuture<'_, Vec<Result<Fetched>>>;
    /// The pages that should be read when this one is wanted alone, itself among them: more than one where a tier is to
    /// be filled.
    fn around(&self, page: PageId, _access: Access) -> Range<u32> {
        page.no..page.no + 1
    }
    /// A page is about to be made without being read.
    fn create(&self, page: PageId);
    /// The page has changes that were not repeated yet: it is read even if it is to be made anew.
    fn is_waiting(&self, _page: PageId) -> bool {
        false
    }
    /// Such a page cannot be made. True if nobody needs it: then it waits no more.
    fn give_up_waiting(&self, _page: PageId) -> bool {
        false
    }
    /// A resident page is about to change: called before the change's LSN is assigned, under the page's latch.
    /// `Some`: it is dirty below, and inherits this recLSN; once the pool's dirty set has it, `risen` is called.
    fn dirtied(&self, page: PageId) -> Option<Lsn>;
    /// The pool's dirty set covers what `dirtied` returned.
    fn risen(&self, _page: PageId, _rec: Lsn) {}
    /// Memory shows a page that was to leave (`Fetched::leaves`), under the page's latch. `Some`: it is dirty from now
    /// on, with this recLSN; once the pool's dirty set has it, `risen` is called.
    fn take_over(&self, _page: PageId) -> Option<Lsn> {
        None
    }
    /// Takes dirty pages. When it returns Ok they are the home's responsibility: its `oldest_rec_lsn` covers them until
    /// their device has synced.
    fn write_back(&self, pages: Vec<WriteBack>, reason: Reason) -> HomeFuture<'_, Result<()>>;
    /// A clean page leaves the pool (a tier may want it).
    fn evicted_clean(&self, page: PageId, bytes: &[u8], access: Access);
    /// The range was freed: whatever is held of it is void.
    fn forget(&self, space: SpaceId, first: u32, count: u32);
    /// A checkpoint begins to look for the oldest recLSN: in the pool, then (`oldest_rec_lsn`) here. One at a time.
    fn begin_scan(&self) {}
    /// The smallest recLSN of pages that this home holds but has not made durable in place, and of those that rose into
    /// the pool since `begin_scan`.
    fn oldest_rec_lsn(&self) -> Option<Lsn>;
    /// The same of changes that no level below memory has durably: a level that keeps its pages through a restart
    /// counts what is durable there as durable.
    fn oldest_redo(&self) -> Option<Lsn> {
        self.oldest_rec_lsn()
    }
    /// Hands what is held dirty with a recLSN below `before` on to the disk.
    fn destage(&self, _before: Lsn) -> HomeFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
    /// Makes everything that the disk was handed durable in place.
    fn sync(&self) -> HomeFuture<'_, Result<()>>;
    /// A completion that failed after `write_back` returned, if any: the store stops on it.
    fn failure(&self) -> Option<StorageError>;
}
