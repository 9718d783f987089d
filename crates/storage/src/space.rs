//! Tablespaces: extents of 64 pages, their owners, used pages, and how full each heap page is.
//!
//! Page 0 is the file header; map pages (layout: [`map`]) say who owns which extent, which pages are in use and how
//! full heap pages are. A mirror in memory serves searches; it is rebuilt at open.
//!
//! Invariants:
//! 1. A page is used on its map page from the mini-transaction that formats it until the one that frees it. A freed
//!    page's next life begins with Format, which needs no read: it may be reused at once, before the freeing is
//!    durable, since the log keeps the order.
//! 2. What is reserved in memory only (a `ReservedPage`) is lost at a crash, and nothing else is.
//! 3. Device space is allocated before a page in it is given out (so that a later write cannot fail for want of room).
//!    A failed allocation changes nothing.
//! 4. The mirror equals the map pages, save pages held (mirror, invariant 4). It changes under the exclusive latch of
//!    the map page (or, for categories, of the heap page). Its mutex is taken last and never held across anything that
//!    waits.
//! 5. A page's category changes only under that page's exclusive latch, so that equal categories need no look at the
//!    map page.
mod epoch;
mod map;
mod mirror;
#[cfg(test)]
mod tests;

use crate::error::{Result, StorageError};
use crate::mtr::Mtr;
use crate::page::op::PageOp;
use crate::page::{PageKind, header, slotted};
use crate::pool::{Access, Pin};
use crate::store::Store;
use crate::types::*;
pub(crate) use epoch::EpochGuard;
use epoch::Epochs;
use map::Geometry;
use mirror::Mirror;
use parking_lot::Mutex;
use std::sync::Arc;

pub const EXTENT: u32 = 64;

/// How many map pages are read at a time when a tablespace is opened.
const AHEAD: u32 = 32;
/// Pages among which `find` spreads inserters.
const SPREAD: usize = 8;
/// A tablespace grows by a sixteenth of its size, at most by this many bytes, at least by an extent.
const GROWTH: u64 = 16 << 20;
/// Log bytes of a mini-transaction that formats a map page and counts it in the file header.
const FORMAT_LOG: usize = 1024;

pub struct Space {
    id: SpaceId,
    geometry: Geometry,
    mirror: Arc<Mutex<Mirror>>,
    growing: tokio::sync::Mutex<()>,
    epochs: Epochs,
}

/// A page taken in memory, not yet in the log. Dropped unused, it returns to the free ones.
pub struct ReservedPage {
    pub page: PageId,
    pub pin: Pin,
    map: Pin,
    hold: PageHold,
}

/// A page that is free in the map but not to be given out; dropping it makes it available.
pub(crate) struct PageHold {
    mirror: Arc<Mutex<Mirror>>,
    page: u32,
    armed: bool,
}

impl Drop for PageHold {
    fn drop(&mut self) {
        if self.armed {
            self.mirror.lock().unhold(self.page);
        }
    }
}

impl ReservedPage {
    /// The map page that covers the page.
    pub(crate) fn map(&self) -> &Pin {
        &self.map
    }
}

impl Space {
    /// Formats the file header and the first map page of an empty tablespace (`Store::create` calls it when pool and
    /// log work).
    pub async fn create(st: &Store, id: SpaceId) -> Result<Space> {
        let space = Space::empty(st, id);
        space.grow(st).await?;
        Ok(space)
    }
    /// Rebuilds the mirror from the map pages (`Store::open` calls it after redo).
    pub async fn open(st: &Store, id: SpaceId) -> Result<Space> {
        let space = Space::empty(st, id);
        let g = space.geometry;
        st.pool().prefetch(id, 0, g.map_page(0) + 1).await;
        let first = st.pool().fetch(PageId::new(id, 0), Access::Random).await?;
        let maps = map::read_file_header(slotted::special(&first.read()), id, g.page_size)
            .map_err(|problem| StorageError::Foreign { file: format!("tablespace {}", id.0), problem })?;
        let mut rest = Vec::new();
        for m in 0..maps {
            if m % AHEAD == 0 {
                let pages: Vec<u32> = (m..maps.min(m + AHEAD)).map(|m| g.map_page(m)).collect();
                st.pool().prefetch_pages(id, &pages).await;
            }
            let pin = st.pool().fetch(PageId::new(id, g.map_page(m)), Access::Sequential).await?;
            space.load_map(&pin, m, &mut rest)?;
        }
        // Extents in use lie below the frontier; above them, what the device has already allocated counts. An
        // allocation may have been lost in a crash while the log remembers pages in it.
        let allocated = (st.space_bytes(id) / g.extent_bytes()).min((maps * g.entries()) as u64) as u32;
        let used = space.mirror.lock().frontier();
        if used > allocated {
            st.grow(id, allocated as u64 * g.extent_bytes(), (used - allocated) as u64 * g.extent_bytes()).await?;
        }
        let mut mirror = space.mirror.lock();
        for _ in used..allocated {
            mirror.push(ObjectId(0), 0, [0; 32]);
        }
        drop(mirror);
        Ok(space)
    }

    fn empty(st: &Store, id: SpaceId) -> Space {
        let geometry = Geometry { page_size: st.pool().page_size() };
        Space { id, geometry, mirror: Arc::default(), growing: tokio::sync::Mutex::new(()), epochs: Epochs::default() }
    }

    /// Adds a map's extents up to the last one in use; `gap` holds free ones that are added when a used one follows.
    fn load_map(&self, pin: &Pin, m: u32, gap: &mut Vec<u32>) -> Result<()> {
        let page = pin.read();
        self.expect_map(&page, pin.id())?;
        let g = self.geometry;
        let mut mirror = self.mirror.lock();
        for e in m * g.entries()..(m + 1) * g.entries() {
            let (owner, used) = g.read_used(&page, e);
            if owner.0 == 0 && used == 0 {
                gap.push(e);
                continue;
            }
            if (owner.0 == 0) != (e % g.entries() == 0) || used == 0 {
                return Err(damaged(pin.id(), format!("extent {e} has owner {} and used pages {used:x}", owner.0)));
            }
            for _ in gap.drain(..) {
                mirror.push(ObjectId(0), 0, [0; 32]);
            }
            mirror.push(owner, used, g.read_categories(&page, e));
        }
        Ok(())
    }

    fn expect_map(&self, page: &[u8], id: PageId) -> Result<()> {
        let is_map = header::kind(page) == Some(PageKind::SpaceMap);
        if !is_map || slotted::special(page).len() != self.geometry.special() as usize {
            return Err(damaged(id, "it is not a space map".into()));
        }
        Ok(())
    }

    /// Adds extents at the frontier, with a map page where a span begins (invariant 3).
    async fn grow(&self, st: &Store) -> Result<()> {
        let _one_at_a_time = self.growing.lock().await;
        let g = self.geometry;
        loop {
            let (free, first) = {
                let mirror = self.mirror.lock();
                (mirror.has_free(), mirror.frontier())
            };
            if free {
                return Ok(());
            }
            if first >= g.max_extents() {
                let device = "its page numbers are used up".to_string();
                return Err(StorageError::SpaceFull { space: self.id.0, device });
            }
            let span_end = (g.map_of_extent(first) + 1) * g.entries();
            let wanted = (first / 16).clamp(1, (GROWTH / g.extent_bytes()).max(1) as u32).min(span_end - first);
            let at = first as u64 * g.extent_bytes();
            let mut count = wanted;
            let mut allocated = st.grow(self.id, at, wanted as u64 * g.extent_bytes()).await;
            if wanted > 1 && matches!(allocated, Err(StorageError::SpaceFull { .. })) {
                count = 1;
                allocated = st.grow(self.id, at, g.extent_bytes()).await;
            }
            allocated?;
            let starts_span = first.is_multiple_of(g.entries());
            if starts_span {
                self.format_map(st, g.map_of_extent(first)).await?;
            }
            let mut mirror = self.mirror.lock();
            for i in 0..count {
                let used = if starts_span && i == 0 { 0b11 } else { 0 };
                mirror.push(ObjectId(0), used, [0; 32]);
            }
        }
    }

    /// Formats map page `m` and counts it in the file header, in one mini-transaction.
    async fn format_map(&self, st: &Store, m: u32) -> Result<()> {
        let first = PageId::new(self.id, 0);
        let file = if m == 0 { st.pool().create(first).await? } else { st.pool().fetch(first, Access::Random).await? };
        let map = st.pool().create(PageId::new(self.id, self.geometry.map_page(m))).await?;
        let permit = st.reserve(FORMAT_LOG).await?;
        let mut mtr = st.mtr(permit);
        let g = self.geometry;
        let at = mtr.latch(&file);
        if m == 0 {
            mtr.apply(
                at,
                PageOp::Format { kind: PageKind::FileHeader, owner: ObjectId(0), special: map::FILE_SPECIAL },
            );
            let header = map::file_header(self.id, g.page_size, 1);
            mtr.apply(at, PageOp::Write { offset: slotted::special_offset(), bytes: &header });
        } else {
            mtr.apply(at, PageOp::Write { offset: map::FILE_MAPS, bytes: &(m + 1).to_le_bytes() });
        }
        let at = mtr.latch(&map);
        mtr.apply(at, PageOp::Format { kind: PageKind::SpaceMap, owner: ObjectId(0), special: g.special() });
        let entry = map::used_bytes(ObjectId(0), 0b11);
        mtr.apply(at, PageOp::Write { offset: g.entry(m * g.entries()), bytes: &entry });
        mtr.commit();
        Ok(())
    }

    /// Takes a free page for `object`, extending the tablespace where needed (allocating device space first, so that
    /// later writes cannot fail), and pins it (not read) together with its map page.
    pub(crate) async fn reserve_page(&self, st: &Store, object: ObjectId) -> Result<ReservedPage> {
        self.epochs.collect();
        loop {
            let taken = self.mirror.lock().take(object);
            let Some(page) = taken else {
                self.grow(st).await?;
                continue;
            };
            let hold = PageHold { mirror: self.mirror.clone(), page, armed: true };
            let map = self.map_pin(st, page).await?;
            let id = PageId::new(self.id, page);
            let pin = st.pool().create(id).await?;
            return Ok(ReservedPage { page: id, pin, map, hold });
        }
    }
    /// Marks the page used, in the mini-transaction that formats it. Latches the map page (last in latch order; several
    /// rooms in the order of their pages).
    pub(crate) fn use_page(&self, mtr: &mut Mtr, room: ReservedPage) {
        let ReservedPage { page, map, mut hold, .. } = room;
        assert_eq!(page.space, self.id, "page of another tablespace");
        let (extent, n) = (page.no / EXTENT, page.no % EXTENT);
        let at = mtr.latch(&map);
        let owner = self.mirror.lock().set_used(page.no);
        hold.armed = false;
        let (was, used) = self.geometry.read_used(mtr.page(at), extent);
        assert!(
            was == owner || (was.0 == 0 && used == 0),
            "extent {extent} of {owner} belongs to {was} on its map page"
        );
        assert!(used >> n & 1 == 0, "page {page} is in use on its map page");
        let bytes = map::used_bytes(owner, used | 1 << n);
        mtr.apply(at, PageOp::Write { offset: self.geometry.entry(extent), bytes: &bytes });
    }
    /// Records how many bytes of a heap page are free; logs only a change of category. Needs the map page's pin; the
    /// heap page is latched exclusively (invariant 5).
    pub(crate) fn note_free(&self, mtr: &mut Mtr, map: &Pin, page: u32, free: usize) {
        let category = map::category_of(free, self.geometry.page_size);
        if self.mirror.lock().category(page) != category {
            self.set_category(mtr, map, page, category);
        }
    }
    fn set_category(&self, mtr: &mut Mtr, map: &Pin, page: u32, category: u8) {
        assert_eq!(map.id().no, self.geometry.map_page_for(page), "map page of another page");
        let at = mtr.latch(map);
        self.mirror.lock().set_category(page, category);
        let (offset, high) = self.geometry.category_byte(page);
        let byte = map::with_category(mtr.page(at)[offset as usize], high, category);
        mtr.apply(at, PageOp::Write { offset, bytes: &[byte] });
    }
    /// The map page that covers `page`.
    pub(crate) async fn map_pin(&self, st: &Store, page: u32) -> Result<Pin> {
        let id = PageId::new(self.id, self.geometry.map_page_for(page));
        match st.pool().get(id) {
            Some(pin) => Ok(pin),
            None => st.pool().fetch(id, Access::Random).await,
        }
    }
    /// A used page of `object` that has at least `need` bytes free by the map; `spread` (any number) picks among
    /// several so that concurrent inserters do not meet.
    pub fn find(&self, object: ObjectId, need: usize, spread: u64) -> Option<u32> {
        let category = map::category_for(need, self.geometry.page_size);
        if category > 15 {
            return None;
        }
        self.mirror.lock().find(object, category, spread, SPREAD)
    }
    /// Returns one page (an emptied B-tree page). Logged as free at once; given out again when the hold is dropped.
    pub(crate) fn free_page(&self, mtr: &mut Mtr, map: &Pin, page: u32) -> PageHold {
        if self.mirror.lock().category(page) != 0 {
            self.set_category(mtr, map, page, 0);
        }
        let (extent, n) = (page / EXTENT, page % EXTENT);
        let at = mtr.latch(map);
        let (owner, used) = self.geometry.read_used(mtr.page(at), extent);
        assert!(used >> n & 1 == 1, "page {page} is free on its map page");
        let rest = used & !(1 << n);
        let bytes = map::used_bytes(if rest == 0 { ObjectId(0) } else { owner }, rest);
        mtr.apply(at, PageOp::Write { offset: self.geometry.entry(extent), bytes: &bytes });
        self.mirror.lock().set_unused(page);
        PageHold { mirror: self.mirror.clone(), page, armed: true }
    }
    /// While the guard lives, no page retired from now on is reused.
    pub(crate) fn enter(&self) -> EpochGuard<'_> {
        self.epochs.enter()
    }
    /// Delays the reuse of a freed page until everybody who may know its number has left.
    pub(crate) fn retire(&self, hold: PageHold) {
        self.epochs.retire(hold);
    }
    /// Frees all pages of an object: logged (a mini-transaction per map page), then forgotten by pool and home.
    /// Idempotent, also after a crash or a dropped future in the middle. Nobody uses the object any more.
    pub async fn free_object(&self, st: &Store, object: ObjectId) -> Result<()> {
        let extents = self.mirror.lock().extents_of(object);
        for group in extents.chunk_by(|a, b| self.geometry.map_of_extent(*a) == self.geometry.map_of_extent(*b)) {
            let map = self.map_pin(st, group[0] * EXTENT).await?;
            let permit = st.reserve_for_cleanup(group.len() * 64 + 256).await?;
            let freed = self.free_extents(st.mtr(permit), &map, object, group);
            // A restart that still saw forgotten pages in use would miss their last changes, did `Pool::forget` not
            // write them home. Either is enough: that is why no test misses this alone.
            st.log().flush_to(freed).await?;
            for &e in group {
                st.pool().forget(self.id, e * EXTENT, EXTENT).await;
                st.home().forget(self.id, e * EXTENT, EXTENT);
                self.mirror.lock().clear(e);
            }
        }
        Ok(())
    }
    fn free_extents(&self, mut mtr: Mtr, map: &Pin, object: ObjectId, extents: &[u32]) -> Lsn {
        let at = mtr.latch(map);
        for &e in extents {
            let (owner, used) = self.geometry.read_used(mtr.page(at), e);
            if owner.0 == 0 {
                continue; // freed before, or only reserved
            }
            assert!(owner == object && used != 0, "extent {e} of {object} belongs to {owner} on its map page");
            mtr.apply(at, PageOp::Write { offset: self.geometry.entry(e), bytes: &[0; map::USED + 32] });
        }
        mtr.commit()
    }
    /// Whether the page is the file header or a space map: those are never forgotten.
    pub(crate) fn is_map_page(page: u32, page_size: usize) -> bool {
        page == 0 || Geometry { page_size }.map_page_for(page) == page
    }
    /// Whether the page is in use, by the mirror.
    pub(crate) fn is_used(&self, page: u32) -> bool {
        let mirror = self.mirror.lock();
        page / EXTENT < mirror.frontier() && mirror.extent(page / EXTENT).used >> (page % EXTENT) & 1 == 1
    }
    /// The used pages of an object in address order, from `from` on, at most `max`.
    pub fn pages(&self, object: ObjectId, from: u32, max: usize) -> Vec<u32> {
        self.mirror.lock().pages(object, from, max)
    }
    /// Number of used pages of an object.
    pub fn page_count(&self, object: ObjectId) -> u64 {
        self.mirror.lock().page_count(object)
    }
    /// Every object that has a page (for `check` and orphan cleaning).
    pub fn objects(&self) -> Vec<ObjectId> {
        self.mirror.lock().objects()
    }
    /// Compares map pages with the mirror, and the mirror with the pages themselves (owner, kind, how full). For a
    /// quiet tablespace. Returns the number of used pages.
    pub async fn check(&self, st: &Store) -> Result<u64> {
        let frontier = self.mirror.lock().frontier();
        let mut pages = 0;
        for e in 0..frontier {
            let map = self.map_pin(st, e * EXTENT).await?;
            let (owner, used) = self.check_entry(&map, e)?;
            for n in (0..EXTENT).filter(|n| owner.0 != 0 && used >> n & 1 == 1) {
                let pin = st.pool().fetch(PageId::new(self.id, e * EXTENT + n), Access::Sequential).await?;
                self.check_page(&pin, owner)?;
            }
            pages += used.count_ones() as u64;
        }
        Ok(pages)
    }
    fn check_entry(&self, map: &Pin, e: u32) -> Result<(ObjectId, u64)> {
        let page = map.read();
        self.expect_map(&page, map.id())?;
        let (owner, used) = self.geometry.read_used(&page, e);
        let categories = self.geometry.read_categories(&page, e);
        let mirror = self.mirror.lock();
        let m = mirror.extent(e);
        let only_held = owner.0 == 0 && m.used == 0 && m.held != 0;
        if (m.owner != owner && !only_held) || m.used != used || m.categories != categories {
            return Err(damaged(map.id(), format!("extent {e} differs from memory")));
        }
        Ok((owner, used))
    }
    fn check_page(&self, pin: &Pin, owner: ObjectId) -> Result<()> {
        let page = pin.read();
        let category = self.mirror.lock().category(pin.id().no);
        let expected = match header::kind(&page) {
            Some(PageKind::Heap) => map::category_of(slotted::room(&page), self.geometry.page_size),
            _ => 0,
        };
        if header::owner(&page) != owner {
            return Err(damaged(pin.id(), format!("it says it is of {}, the map of {owner}", header::owner(&page))));
        }
        if category != expected {
            return Err(damaged(pin.id(), format!("its free category is {expected}, the map says {category}")));
        }
        Ok(())
    }
}

fn damaged(page: PageId, what: String) -> StorageError {
    StorageError::Damaged(format!("page {page}: {what}"))
}
