//! Tablespaces: extents of 64 pages, their owners, used pages, and how full each heap page is.
//!
//! Page 0 file header; page 1 and then every `extents_per_map * 64`-th page a space map. A map entry per extent: owner u32,
//! used bitmap u64, free categories 64 x 4 bit (sixteenths of a page). An in-memory mirror serves searches; it is rebuilt at open.
use crate::error::Result;
use crate::mtr::Mtr;
use crate::pool::Pin;
use crate::store::Store;
use crate::types::*;

pub const EXTENT: u32 = 64;

pub struct Space {}

/// A page taken in memory, not yet in the log. Dropped unused, it returns to the free ones.
pub struct PageRoom {
    pub page: PageId,
    pub pin: Pin,
    // map page pin inside
}

impl Space {
    /// Formats the file header and the first map page of an empty tablespace (`Store::create` calls it when pool and log work).
    pub async fn create(_st: &Store, _id: SpaceId) -> Result<Space> {
        todo!()
    }
    /// Rebuilds the mirror from the map pages (`Store::open` calls it after redo).
    pub async fn open(_st: &Store, _id: SpaceId) -> Result<Space> {
        todo!()
    }
    /// Takes a free page for `object`, extending the tablespace where needed (allocating device space first, so that later
    /// writes cannot fail), and pins it (not read) together with its map page.
    pub async fn reserve_page(&self, _st: &Store, _object: ObjectId) -> Result<PageRoom> {
        todo!()
    }
    /// Marks the page used, in the mini-transaction that formats it. Latches the map page (last in latch order).
    pub fn use_page(&self, _mtr: &mut Mtr, _room: PageRoom) {
        todo!()
    }
    /// Records how many bytes of a heap page are free; logs only a change of category. Needs the map page's pin.
    pub fn note_free(&self, _mtr: &mut Mtr, _map: &Pin, _page: u32, _free: usize) {
        todo!()
    }
    /// The map page that covers `page`.
    pub async fn map_pin(&self, _st: &Store, _page: u32) -> Result<Pin> {
        todo!()
    }
    /// A used page of `object` that has at least `need` bytes free by the map; `spread` (any number) picks among several so that
    /// concurrent inserters do not meet.
    pub fn find(&self, _object: ObjectId, _need: usize, _spread: u64) -> Option<u32> {
        todo!()
    }
    /// Returns one page (an emptied B-tree page).
    pub fn free_page(&self, _mtr: &mut Mtr, _map: &Pin, _page: u32) {
        todo!()
    }
    /// Frees all pages of an object: logged, then forgotten by pool and home. Idempotent.
    pub async fn free_object(&self, _st: &Store, _object: ObjectId) -> Result<()> {
        todo!()
    }
    /// The used pages of an object in address order, from `from` on, at most `max`.
    pub fn pages(&self, _object: ObjectId, _from: u32, _max: usize) -> Vec<u32> {
        todo!()
    }
    /// Number of used pages of an object.
    pub fn page_count(&self, _object: ObjectId) -> u64 {
        todo!()
    }
    /// Every object that owns an extent (for `check` and orphan cleaning).
    pub fn objects(&self) -> Vec<ObjectId> {
        todo!()
    }
}
