//! Growth and release: pages, extents, directory pages.
use super::format::{self, Layout, SlotEntry, TailPage};
use super::*;
use crate::bytes::{FromZeros, IntoBytes, U32, front};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Extents freed in one mini-transaction.
const FREE_AT_ONCE: usize = 64;
/// Segments below this keep their last extent when idle; others give it back.
pub(super) const KEEP_WARM: u32 = 16;

/// Directory pages latched in ascending order.
struct Directories {
    pins: BTreeMap<u32, Pin>,
}

impl Directories {
    async fn pin(st: &Store, entries: &[((u32, u16), &[u8])]) -> Result<Directories> {
        let mut pins = BTreeMap::new();
        for entry in entries {
            let no = entry.0.0;
            if let Entry::Vacant(vacant) = pins.entry(no) {
                vacant.insert(st.pool().fetch(PageId::new(UNDO, no), Access::Random).await?);
            }
        }
        Ok(Directories { pins })
    }

    /// Overwrites entries; latches in ascending page order whatever the order of the entries.
    fn write(&self, mtr: &mut Mtr, entries: &[((u32, u16), &[u8])]) {
        for pin in self.pins.values() {
            mtr.latch(pin);
        }
        for ((page, offset), bytes) in entries {
            let at = mtr.latch(&self.pins[page]);
            mtr.apply(at, PageOp::Write { offset: *offset, bytes });
        }
    }
}

/// An extent taken in memory but not yet in the directory; returned if the work stops before.
struct TakenExtent<'a> {
    undo: &'a UndoSpace,
    extent: u32,
    kept: bool,
}

impl Drop for TakenExtent<'_> {
    fn drop(&mut self) {
        if !self.kept {
            let mut inner = self.undo.inner.lock();
            inner.owners[self.extent as usize] = 0;
            inner.free_extents.insert(self.extent);
        }
    }
}

/// Extents that left a segment in memory but not yet in the directory; they go back if the work stops before.
struct Leaving<'a> {
    undo: &'a UndoSpace,
    slot: u32,
    tail_page: u32,
    extents: Vec<u32>,
}

impl Leaving<'_> {
    /// The directory says so too.
    fn free(mut self) {
        let mut inner = self.undo.inner.lock();
        for extent in std::mem::take(&mut self.extents) {
            inner.owners[extent as usize] = 0;
            inner.free_extents.insert(extent);
        }
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if !self.extents.is_empty() {
            let mut inner = self.undo.inner.lock();
            let slot = &mut inner.slots[self.slot as usize];
            self.extents.drain(..).rev().for_each(|extent| slot.extents.push_front(extent));
            if slot.tail_page == 0 {
                slot.tail_page = self.tail_page;
            }
        }
    }
}

impl UndoSpace {
    /// Makes the empty undo tablespace: once, when a database is created.
    pub async fn format(&self, st: &Store) -> Result<()> {
        allocate(st, 0).await?;
        self.add_directory(st, false).await
    }

    /// Adds a directory page: more segments, and more extents to name. With `for_slots`, not if segments are free by
    /// now.
    pub(super) async fn add_directory(&self, st: &Store, for_slots: bool) -> Result<()> {
        let _growing = self.grow.lock().await;
        if for_slots && !self.inner.lock().free_slots.is_empty() {
            return Ok(());
        }
        self.add_directory_locked(st).await
    }

    async fn add_directory_locked(&self, st: &Store) -> Result<()> {
        let layout = Layout { page_size: st.pool().page_size() };
        let count = self.inner.lock().directories;
        if count == layout.max_directories() {
            return Err(StorageError::UndoFull(format!("its {count} directory pages are full")));
        }
        let page = st.pool().create(PageId::new(UNDO, 1 + count)).await?;
        let first = match count {
            0 => page.clone(),
            _ => st.pool().fetch(PageId::new(UNDO, 1), Access::Random).await?,
        };
        let permit = st.reserve(512).await?;
        let mut mtr = st.mtr(permit);
        let at_first = mtr.latch(&first);
        let at = mtr.latch(&page);
        let special = layout.directory_special();
        mtr.apply(at, PageOp::Format { kind: PageKind::UndoDirectory, owner: ObjectId(0), special });
        let offset = slotted::special_offset();
        mtr.apply(at_first, PageOp::Write { offset, bytes: &(count + 1).to_le_bytes() });
        mtr.commit();
        let mut inner = self.inner.lock();
        inner.directories = count + 1;
        let from = inner.slots.len() as u32;
        let to = from + layout.slots_per_directory();
        inner.slots.resize(to as usize, Slot::default());
        inner.free_slots.extend(from..to);
        Ok(())
    }

    /// Gives the writer a fresh tail page, in the next extent where the present one is full.
    pub(super) async fn advance(&self, st: &Store, writer: &mut UndoWriter) -> Result<()> {
        let layout = Layout { page_size: st.pool().page_size() };
        let per_extent = layout.pages_per_extent();
        let old = writer.tail.clone();
        let within = old.as_ref().map(|pin| pin.id().no + 1).filter(|next| next % per_extent != 0);
        let taken = match within {
            Some(_) => None,
            None => Some(self.take_extent(st, writer.slot).await?),
        };
        let no = match (&taken, within) {
            (Some(t), _) => t.extent * per_extent,
            (None, Some(next)) => next,
            (None, None) => unreachable!("an extent was taken where there is no next page"),
        };
        let page = st.pool().create(PageId::new(UNDO, no)).await?;
        // Only the owner of the segment changes its last extent; `consumed` and the head may change under us, so they
        // are not written unless this is the segment's first extent (then nothing is left to consume).
        let last_extent = self.inner.lock().slots[writer.slot as usize].extents.back().copied();
        let first_extent = (no / per_extent).to_le_bytes();
        let tail = no.to_le_bytes();
        let (page_no, entry_at) = layout.slot_entry(writer.slot);
        let fresh = taken.as_ref().map(|t| (t.extent, format::extent_bytes(writer.slot + 1, 0)));
        let linked = fresh.and_then(|(e, _)| last_extent.map(|l| (l, format::extent_bytes(writer.slot + 1, e))));
        let mut entries: Vec<((u32, u16), &[u8])> = vec![((page_no, entry_at + SlotEntry::TAIL), &tail)];
        if last_extent.is_none() {
            entries.push(((page_no, entry_at + SlotEntry::HEAD), &first_extent));
        }
        for (extent, bytes) in fresh.iter().chain(linked.iter()) {
            entries.push((layout.extent_entry(*extent), bytes));
        }
        let directories = Directories::pin(st, &entries).await?;
        let permit = st.reserve(1024).await?;
        let mut mtr = st.mtr(permit);
        append_page(&mut mtr, old.as_ref(), &page, writer.slot);
        directories.write(&mut mtr, &entries);
        mtr.commit();
        let mut inner = self.inner.lock();
        let slot = &mut inner.slots[writer.slot as usize];
        slot.tail_page = no;
        if let Some(mut taken) = taken {
            taken.kept = true;
            slot.extents.push_back(taken.extent);
        }
        writer.tail = Some(page);
        Ok(())
    }

    /// Takes a free extent for a segment, growing the device where there is none.
    async fn take_extent(&self, st: &Store, slot: u32) -> Result<TakenExtent<'_>> {
        if let Some(extent) = self.take_free_extent(slot)? {
            return Ok(TakenExtent { undo: self, extent, kept: false });
        }
        let _growing = self.grow.lock().await;
        if let Some(extent) = self.take_free_extent(slot)? {
            return Ok(TakenExtent { undo: self, extent, kept: false });
        }
        let layout = Layout { page_size: st.pool().page_size() };
        let (extent, directories) = {
            let inner = self.inner.lock();
            (inner.owners.len() as u32, inner.directories)
        };
        if extent >= directories * layout.extents_per_directory() {
            self.add_directory_locked(st).await?;
        }
        allocate(st, extent).await?;
        let mut inner = self.inner.lock();
        assert!(inner.owners.len() == extent as usize, "growth is one at a time");
        inner.owners.push(slot + 1);
        Ok(TakenExtent { undo: self, extent, kept: false })
    }

    fn take_free_extent(&self, slot: u32) -> Result<Option<u32>> {
        let mut inner = self.inner.lock();
        if (inner.used_extents() + 1) * EXTENT_BYTES > inner.limit {
            let used = inner.used_extents() * EXTENT_BYTES;
            let limit = inner.limit;
            return Err(StorageError::UndoFull(format!("{used} bytes in use, {limit} allowed; end old transactions")));
        }
        let extent = inner.free_extents.pop_first();
        if let Some(extent) = extent {
            inner.owners[extent as usize] = slot + 1;
        }
        Ok(extent)
    }

    /// Purge is done with this transaction, and with all before it in its segment: frees whole extents. In order within
    /// a segment.
    pub async fn consumed(&self, st: &Store, history: &History) -> Result<()> {
        let layout = Layout { page_size: st.pool().page_size() };
        let per_extent = layout.pages_per_extent();
        // An idle, wholly consumed segment gives everything back; it is nobody's meanwhile.
        let mut idle = None;
        loop {
            let (entry, leaving) = self.shrink(history, per_extent, &mut idle);
            let (entry, free) = (entry.encode(), format::extent_bytes(0, 0));
            // The tail is its owner's to write, and here nobody's.
            let entry = if idle.is_some() { &entry[..] } else { &entry[..SlotEntry::TAIL as usize] };
            let mut entries: Vec<((u32, u16), &[u8])> = vec![(layout.slot_entry(history.slot), entry)];
            entries.extend(leaving.extents.iter().map(|e| (layout.extent_entry(*e), &free[..])));
            let directories = Directories::pin(st, &entries).await?;
            // Purge makes room: a full log must not stop it.
            let permit = st.reserve_for_cleanup(512 + entries.len() * 32).await?;
            let mut mtr = st.mtr(permit);
            directories.write(&mut mtr, &entries);
            mtr.commit();
            let freed = leaving.extents.len();
            leaving.free();
            if freed < FREE_AT_ONCE {
                return Ok(());
            }
        }
    }

    /// Whether `consumed` has begun with it. Where it did not end (an error, a dropped call), its extents are partly
    /// others' by now: nothing of the history may be read any more, and `consumed` is to be called again.
    pub fn is_leaving(&self, history: &History) -> bool {
        self.inner.lock().slots[history.slot as usize].consumed >= history.txn
    }

    /// Takes the extents that nobody needs any more out of the segment, in memory; what its directory entry is to say.
    fn shrink<'a>(
        &'a self,
        history: &History,
        per_extent: u32,
        idle: &mut Option<HeldSlot<'a>>,
    ) -> (SlotEntry, Leaving<'a>) {
        let mut inner = self.inner.lock();
        let s = history.slot;
        if idle.is_none()
            && s >= KEEP_WARM
            && inner.slots[s as usize].last == history.txn
            && inner.free_slots.remove(&s)
        {
            *idle = Some(HeldSlot { undo: self, slot: Some(s) });
        }
        let slot = &mut inner.slots[s as usize];
        assert!(history.txn >= slot.consumed, "purge goes forward (invariant 4)");
        slot.consumed = history.txn;
        // What is needed begins where this transaction's records end; its begin mark's extent is a safe bound.
        let keep_from = match (idle.is_some(), history.last_page()) {
            (true, _) => None,
            (false, Some(page)) => Some(page / per_extent),
            (false, None) => slot.extents.front().copied(),
        };
        let mut leaving = Leaving { undo: self, slot: s, tail_page: slot.tail_page, extents: Vec::new() };
        // Begun before, and all of it is gone: what the slot has is another's.
        let gone = keep_from.is_some_and(|extent| !slot.extents.contains(&extent));
        while !gone
            && leaving.extents.len() < FREE_AT_ONCE
            && slot.extents.front().is_some_and(|e| Some(*e) != keep_from)
        {
            leaving.extents.extend(slot.extents.pop_front());
        }
        if slot.extents.is_empty() {
            slot.tail_page = 0;
        }
        (slot.entry(), leaving)
    }
}

impl History {
    /// A page at or before the first that a later transaction of the segment may need.
    fn last_page(&self) -> Option<u32> {
        [self.last, self.first].iter().find(|p| !p.is_none()).map(|p| p.page())
    }
}

impl Slot {
    fn entry(&self) -> SlotEntry {
        let head_extent = self.extents.front().copied().unwrap_or(0);
        SlotEntry { consumed: self.consumed, head_extent, tail_page: self.tail_page }
    }
}

/// Reserves an extent's bytes, so that writes in it cannot fail for want of space.
pub(super) async fn allocate(st: &Store, extent: u32) -> Result<()> {
    let at = extent as u64 * EXTENT_BYTES;
    st.grow(UNDO, at, EXTENT_BYTES).await.map_err(|e| match e {
        StorageError::SpaceFull { device, .. } => StorageError::UndoFull(format!("device {device} has no space left")),
        other => other,
    })
}

/// Formats `page` as the segment's new tail, taking the state over from the old one.
fn append_page(mtr: &mut Mtr, old: Option<&Pin>, page: &Pin, slot: u32) {
    let mut special = TailPage::new_zeroed();
    if let Some(old) = old {
        let at = mtr.latch(old);
        special = *front(slotted::special(mtr.page(at)));
        mtr.apply(at, PageOp::Write { offset: format::NEXT_AT, bytes: &page.id().no.to_le_bytes() });
    }
    special.next_page = U32::ZERO;
    special.segment = slot.into();
    let at = mtr.latch(page);
    mtr.apply(at, PageOp::Format { kind: PageKind::Undo, owner: ObjectId(0), special: format::SPECIAL });
    mtr.apply(at, PageOp::Write { offset: slotted::special_offset(), bytes: special.as_bytes() });
}
