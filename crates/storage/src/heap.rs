//! Heap: rows in slots of pages found through the free-space map; fragments for what does not fit. Row format:
//! ARCHITECTURE 6.
//!
//! A row's cell is a [`RowFront`], then the payload (where CHAINED a stub instead), and where PADDED zeros and a byte
//! that counts the padding. Stubs and fragments: `chain`.
//!
//! Invariants:
//! 1. A RID never moves. So that any row can be replaced by its stub in place, a row cell is never shorter than one
//!    with a stub: shorter payloads are padded (which `RowHeader` and `StoredRow` never show).
//! 2. Fragments are immutable and belong to one chain, told by its random id: freeing a chain again after a crash never
//!    frees a fragment that another chain has put into the same slot meanwhile.
//! 3. A heap page's category in the map follows each change of its room, in the same mini-transaction.
mod chain;
mod check;
#[cfg(test)]
mod tests;

use crate::bytes::{U64, front, layout};
use crate::error::Result;
use crate::mtr::{Latched, Mtr};
use crate::page::op::PageOp;
use crate::page::{PageKind, header, slotted};
use crate::pool::{Access, Pin};
use crate::space::ReservedPage;
use crate::store::Store;
use crate::types::*;
use chain::STUB;
pub use chain::{ChainId, Fragment, FragmentNote, Spill};
pub use check::HeapCheck;

pub const DELETED: u8 = 1;
pub const CHAINED: u8 = 2;
pub const FRAGMENT: u8 = 4;
/// The payload is followed by padding (invariant 1).
const PADDED: u8 = 8;

layout! {
    /// What stands in front of a row's payload.
    struct RowFront: 17 {
        0 flags: u8,
        1 writer: U64,
        9 undo: U64,
    }
}

/// Bytes of the row header in front of the payload.
pub const ROW_HEADER: usize = size_of::<RowFront>();
/// The longest payload of a row, chained or not.
pub(crate) const MAX_ROW: usize = 64 << 20;
/// Log bytes of what goes with a row's own bytes: op headers, page blocks, the map's byte, formatting a fresh page.
pub const ROW_LOG: usize = 256;
/// Differences closer than this are logged as one.
const NEAR: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RowHeader {
    pub flags: u8,
    pub writer: TxnId,
    pub undo: UndoPtr,
}

/// A row's stored form: header, and the bytes behind it in the slot (payload, or a stub where CHAINED).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredRow {
    pub header: RowHeader,
    pub bytes: Vec<u8>,
}

/// A heap page with room for a row, and its map page, both pinned.
pub struct PinnedHeapPage {
    pub page: Pin,
    pub map: Pin,
    /// A page that the insertion is going to format.
    fresh: Option<ReservedPage>,
}

pub struct Heap {
    pub object: ObjectId,
    pub space: SpaceId,
}

impl RowHeader {
    /// The header of a row's cell. A fragment has none (and may be shorter): its flags alone, which no row has.
    pub fn decode(cell: &[u8]) -> RowHeader {
        if cell[0] & FRAGMENT != 0 {
            return RowHeader { flags: cell[0], ..RowHeader::default() };
        }
        let header: &RowFront = front(cell);
        let (writer, undo) = (TxnId(header.writer.get()), UndoPtr(header.undo.get()));
        RowHeader { flags: header.flags & !PADDED, writer, undo }
    }
    pub fn encode(&self) -> [u8; ROW_HEADER] {
        zerocopy::transmute!(RowFront { flags: self.flags, writer: self.writer.0.into(), undo: self.undo.0.into() })
    }
}

impl StoredRow {
    /// The row's cell.
    fn encode(&self) -> Vec<u8> {
        assert!(self.header.flags & !(DELETED | CHAINED) == 0, "flags {} of a row", self.header.flags);
        assert!(self.header.flags & CHAINED == 0 || self.bytes.len() == STUB, "a chained row holds a stub");
        let mut cell = Vec::with_capacity(cell_len(self.bytes.len()));
        cell.extend_from_slice(&self.header.encode());
        cell.extend_from_slice(&self.bytes);
        if self.bytes.len() < STUB {
            let padding = STUB - self.bytes.len();
            cell[0] |= PADDED;
            cell.resize(ROW_HEADER + STUB, 0);
            cell[ROW_HEADER + STUB - 1] = padding as u8;
        }
        cell
    }
    /// The row in a cell; `None` for a fragment.
    fn decode(cell: &[u8]) -> Option<StoredRow> {
        let bytes = payload(cell)?.to_vec();
        Some(StoredRow { header: RowHeader::decode(cell), bytes })
    }
}

/// The bytes behind the header, padding removed; `None` for a fragment.
fn payload(cell: &[u8]) -> Option<&[u8]> {
    if cell[0] & FRAGMENT != 0 {
        return None;
    }
    let padding = if cell[0] & PADDED != 0 { cell[cell.len() - 1] as usize } else { 0 };
    Some(&cell[ROW_HEADER..cell.len() - padding])
}

/// Bytes of the cell of a row with `payload` bytes behind its header.
fn cell_len(payload: usize) -> usize {
    ROW_HEADER + payload.max(STUB)
}

impl Heap {
    /// The largest payload kept in the slot itself; larger ones become chains. Two such rows share a page.
    pub fn inline_limit(page_size: usize) -> usize {
        (page_size - slotted::special_offset() as usize) / 2 - slotted::SLOT - ROW_HEADER
    }
    /// Pins a page with room for a new row of `len` bytes (header included).
    pub async fn find_room(&self, st: &Store, len: usize, spread: u64) -> Result<PinnedHeapPage> {
        let space = st.space(self.space);
        let len = cell_len(len.saturating_sub(ROW_HEADER));
        match space.find(self.object, len, spread) {
            Some(page) => self.pin_row(st, Rid { page, slot: 0 }).await,
            None => {
                let fresh = space.reserve_page(st, self.object).await?;
                Ok(PinnedHeapPage { page: fresh.pin.clone(), map: fresh.map().clone(), fresh: Some(fresh) })
            }
        }
    }
    /// Puts a new row into the page of `room`, latching it; `None` where the room is gone by now (find another). Notes
    /// free space. Logs at most `ROW_LOG` bytes more than the row.
    pub fn insert(&self, st: &Store, mtr: &mut Mtr, room: PinnedHeapPage, row: &StoredRow) -> Option<Rid> {
        self.insert_cell(st, mtr, room, &row.encode())
    }
    fn insert_cell(&self, st: &Store, mtr: &mut Mtr, room: PinnedHeapPage, cell: &[u8]) -> Option<Rid> {
        let at = mtr.latch(&room.page);
        if room.fresh.is_some() {
            mtr.apply(at, PageOp::Format { kind: PageKind::Heap, owner: self.object, special: 0 });
        }
        let page = mtr.page(at);
        if !self.owns(page) || !slotted::fits(page, cell.len()) {
            assert!(room.fresh.is_none(), "cell of {} bytes exceeds an empty page", cell.len());
            mtr.release(at);
            return None;
        }
        let slot = slotted::free_slot(page);
        mtr.apply(at, PageOp::Put { slot, cell });
        let no = room.page.id().no;
        if let Some(fresh) = room.fresh {
            st.space(self.space).use_page(mtr, fresh);
        }
        self.note(st, mtr, at, &room.map, no);
        Some(Rid { page: no, slot })
    }
    fn owns(&self, page: &[u8]) -> bool {
        header::kind(page) == Some(PageKind::Heap) && header::owner(page) == self.object
    }
    /// Invariant 3.
    fn note(&self, st: &Store, mtr: &mut Mtr, at: Latched, map: &Pin, page: u32) {
        let free = slotted::room(mtr.page(at));
        st.space(self.space).note_free(mtr, map, page, free);
    }
    /// Pins the page of a row and its map page.
    pub async fn pin_row(&self, st: &Store, rid: Rid) -> Result<PinnedHeapPage> {
        let page = self.pin_page(st, rid.page, Access::Random).await?;
        let map = st.space(self.space).map_pin(st, rid.page).await?;
        Ok(PinnedHeapPage { page, map, fresh: None })
    }
    async fn pin_page(&self, st: &Store, page: u32, access: Access) -> Result<Pin> {
        let id = PageId::new(self.space, page);
        match st.pool().get(id) {
            Some(pin) => Ok(pin),
            None => st.pool().fetch(id, access).await,
        }
    }
    /// Copies a row under a read latch; `None` where the slot is empty or a fragment.
    pub fn read(page: &Pin, slot: u16) -> Option<StoredRow> {
        StoredRow::decode(slotted::cell(&page.read(), slot)?)
    }
    /// Shows a row to `look` under a read latch, without copying it: header, bytes (payload or stub). `None` as `read`.
    pub fn peek<R>(page: &Pin, slot: u16, look: impl FnOnce(RowHeader, &[u8]) -> R) -> Option<R> {
        let page = page.read();
        let cell = slotted::cell(&page, slot)?;
        payload(cell).map(|bytes| look(RowHeader::decode(cell), bytes))
    }
    /// Shows each row of a page, under one read latch, to `visit`: slot, header, bytes (payload or stub).
    pub fn read_page(page: &Pin, mut visit: impl FnMut(u16, RowHeader, &[u8])) {
        let page = page.read();
        for slot in 0..slotted::slot_count(&page) {
            let Some(cell) = slotted::cell(&page, slot) else { continue };
            if let Some(bytes) = payload(cell) {
                visit(slot, RowHeader::decode(cell), bytes);
            }
        }
    }
    /// Replaces header and bytes of a row in a latched page; false where it does not fit (then nothing changed: write a
    /// chain). Logs header and difference only where the length is unchanged.
    pub fn replace(&self, st: &Store, mtr: &mut Mtr, at: Latched, map: &Pin, slot: u16, row: &StoredRow) -> bool {
        let new = row.encode();
        let page = mtr.page(at);
        let no = header::id(page).no;
        let old = slotted::cell(page, slot).expect("the row to replace exists: its writer holds it");
        assert!(self.owns(page) && old[0] & FRAGMENT == 0, "{}:{slot} is not a row of {}", no, self.object);
        if old.len() == new.len() {
            let (head, tail) = differences(old, &new);
            for range in [head, tail].into_iter().filter(|r| !r.is_empty()) {
                mtr.apply(at, PageOp::Patch { slot, offset: range.start as u16, bytes: &new[range] });
            }
            return true;
        }
        if slotted::room_in(page, slot) < new.len() {
            return false;
        }
        mtr.apply(at, PageOp::Put { slot, cell: &new });
        self.note(st, mtr, at, map, no);
        true
    }
    /// Empties the slot (purge, rollback of an insert).
    pub fn free(&self, st: &Store, mtr: &mut Mtr, at: Latched, map: &Pin, slot: u16) {
        let page = mtr.page(at);
        let no = header::id(page).no;
        assert!(self.owns(page) && slotted::cell(page, slot).is_some(), "{no}:{slot} is no cell of {}", self.object);
        mtr.apply(at, PageOp::Free { slot });
        self.note(st, mtr, at, map, no);
    }
}

/// The smallest ranges that cover what differs in the header and behind it, as one where they nearly meet.
fn differences(old: &[u8], new: &[u8]) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
    assert_eq!(old.len(), new.len());
    let span = |from: usize, to: usize| {
        let differs = |i: &usize| old[*i] != new[*i];
        match (from..to).find(differs) {
            None => from..from,
            Some(first) => first..(first..to).rfind(differs).expect("at least the first differs") + 1,
        }
    };
    let (head, tail) = (span(0, ROW_HEADER), span(ROW_HEADER, old.len()));
    if !head.is_empty() && !tail.is_empty() && tail.start - head.end < NEAR {
        return (head.start..tail.end, 0..0);
    }
    (head, tail)
}
