//! What lies in undo pages (*format*).
//!
//! An undo page is slotted. Its cells are begin marks ([`BeginMark`]) and records ([`RecordHeader`], then a body) in
//! the order of writing. The low half of an `UndoPtr` is the cell's position. The special area is a [`TailPage`].
//!
//! Extents are 1 MiB. Extent 0 holds the file header and the directory pages, from page 1 on. A directory page is one
//! special area: the number of directory pages (u32, in page 1 only), 4 zeros, a [`SegmentEntry`] for each segment, and
//! in its second half an [`ExtentEntry`] for each extent.
use super::{History, TxnEnd, UndoRecord};
use crate::bytes::{FromBytes, IntoBytes, U32, U64, front, layout};
use crate::page::slotted::SPECIAL_START;
use crate::types::*;
use std::mem::offset_of;

pub(super) const EXTENT_BYTES: u64 = 1 << 20;

layout! {
    /// The state of a transaction; of importance in a segment's tail page only.
    pub(super) struct StateBytes: 40 {
        0 txn: U64,
        8 begin: U64,
        /// The last record not undone.
        16 top: U64,
        24 seq: U64,
        32 state: u8,
        33 zeros: [u8; 7],
    }
}

layout! {
    /// The special area of an undo page.
    pub(super) struct TailPage: 48 {
        0 pub(super) next_page: U32,
        4 pub(super) segment: U32,
        /// Of the transaction that wrote last.
        8 state: StateBytes,
    }
}

layout! {
    struct BeginMark: 49 {
        /// `TAG_BEGIN`.
        0 tag: u8,
        1 txn: U64,
        /// Of the segment's previous transaction.
        9 previous: StateBytes,
    }
}

layout! {
    struct RecordHeader: 17 {
        /// `TAG_RECORD`.
        0 tag: u8,
        1 txn: U64,
        /// The previous record not undone.
        9 prev: U64,
    }
}

layout! {
    /// A segment in the directory.
    struct SegmentEntry: 16 {
        0 consumed: U64,
        8 head_extent: U32,
        /// 0: the segment is empty.
        12 tail_page: U32,
    }
}

layout! {
    /// An extent in the directory.
    pub(super) struct ExtentEntry: 8 {
        /// The segment's number + 1; 0: the extent is free.
        0 pub(super) owner: U32,
        /// The segment's next extent.
        4 pub(super) next: U32,
    }
}

pub(super) const SPECIAL: u16 = size_of::<TailPage>() as u16;
pub(super) const BEGIN_BYTES: usize = size_of::<BeginMark>();
pub(super) const RECORD_HEADER: usize = size_of::<RecordHeader>();
/// Offsets from the page's start.
pub(super) const NEXT_AT: u16 = (SPECIAL_START + offset_of!(TailPage, next_page)) as u16;
pub(super) const STATE_AT: u16 = (SPECIAL_START + offset_of!(TailPage, state)) as u16;
pub(super) const TOP_AT: u16 = STATE_AT + offset_of!(StateBytes, top) as u16;
const TAG_BEGIN: u8 = 1;
const TAG_RECORD: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum StoredState {
    #[default]
    None = 0,
    Active = 1,
    Committed = 2,
    RolledBack = 3,
}

/// A transaction's state as the tail page keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct TailState {
    pub(super) txn: TxnId,
    pub(super) begin: UndoPtr,
    pub(super) top: UndoPtr,
    pub(super) seq: u64,
    pub(super) state: StoredState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Begin {
    pub(super) txn: TxnId,
    pub(super) previous: TailState,
}

impl TailState {
    /// From a page's special area.
    pub(super) fn decode(special: &[u8]) -> TailState {
        TailState::of(&front::<TailPage>(special).state)
    }

    fn of(stored: &StateBytes) -> TailState {
        let state = match stored.state {
            0 => StoredState::None,
            1 => StoredState::Active,
            2 => StoredState::Committed,
            3 => StoredState::RolledBack,
            // The page's checksum was verified, so this was written by a program that is wrong (R5).
            other => panic!("undo state {other} is unknown"),
        };
        let (begin, top) = (UndoPtr(stored.begin.get()), UndoPtr(stored.top.get()));
        TailState { txn: TxnId(stored.txn.get()), begin, top, seq: stored.seq.get(), state }
    }

    pub(super) fn encode(&self) -> StateBytes {
        StateBytes {
            txn: self.txn.0.into(),
            begin: self.begin.0.into(),
            top: self.top.0.into(),
            seq: self.seq.into(),
            state: self.state as u8,
            zeros: [0; 7],
        }
    }

    /// The history entry of a finished transaction.
    pub(super) fn history(&self, slot: u32) -> Option<History> {
        let end = match self.state {
            StoredState::Committed => TxnEnd::Committed,
            StoredState::RolledBack => TxnEnd::RolledBack,
            StoredState::None | StoredState::Active => return None,
        };
        Some(History { txn: self.txn, end, slot, first: self.begin, last: self.top, seq: self.seq })
    }
}

impl Begin {
    pub(super) fn encode(&self) -> [u8; BEGIN_BYTES] {
        let mark = BeginMark { tag: TAG_BEGIN, txn: self.txn.0.into(), previous: self.previous.encode() };
        zerocopy::transmute!(mark)
    }

    pub(super) fn decode(cell: &[u8]) -> Option<Begin> {
        let mark = BeginMark::ref_from_bytes(cell).ok().filter(|mark| mark.tag == TAG_BEGIN)?;
        Some(Begin { txn: TxnId(mark.txn.get()), previous: TailState::of(&mark.previous) })
    }
}

pub(super) fn encode_record(txn: TxnId, prev: UndoPtr, body: &[u8]) -> Vec<u8> {
    let mut cell = Vec::with_capacity(RECORD_HEADER + body.len());
    let header = RecordHeader { tag: TAG_RECORD, txn: txn.0.into(), prev: prev.0.into() };
    cell.extend_from_slice(header.as_bytes());
    cell.extend_from_slice(body);
    cell
}

pub(super) fn decode_record(cell: &[u8]) -> Option<UndoRecord> {
    let (header, body) = RecordHeader::ref_from_prefix(cell).ok().filter(|(header, _)| header.tag == TAG_RECORD)?;
    let (txn, prev) = (TxnId(header.txn.get()), UndoPtr(header.prev.get()));
    Some(UndoRecord { txn, prev, body: body.to_vec() })
}

/// Where things lie for a page size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) page_size: usize,
}

/// Offset of the segments in a directory page.
const SLOTS_AT: usize = SPECIAL_START + 8;

impl Layout {
    pub(super) fn pages_per_extent(self) -> u32 {
        (EXTENT_BYTES as usize / self.page_size) as u32
    }
    pub(super) fn directory_special(self) -> u16 {
        (self.page_size - SPECIAL_START) as u16
    }
    /// Directory pages that extent 0 has room for.
    pub(super) fn max_directories(self) -> u32 {
        self.pages_per_extent() - 1
    }
    pub(super) fn slots_per_directory(self) -> u32 {
        ((self.page_size / 2 - SLOTS_AT) / size_of::<SegmentEntry>()) as u32
    }
    pub(super) fn extents_per_directory(self) -> u32 {
        (self.page_size / 2 / size_of::<ExtentEntry>()) as u32
    }
    /// Directory page and offset of a segment's entry.
    pub(super) fn slot_entry(self, slot: u32) -> (u32, u16) {
        let (page, i) = (slot / self.slots_per_directory(), slot % self.slots_per_directory());
        (1 + page, (SLOTS_AT + i as usize * size_of::<SegmentEntry>()) as u16)
    }
    /// Directory page and offset of an extent's entry.
    pub(super) fn extent_entry(self, extent: u32) -> (u32, u16) {
        let (page, i) = (extent / self.extents_per_directory(), extent % self.extents_per_directory());
        (1 + page, (self.page_size / 2 + i as usize * size_of::<ExtentEntry>()) as u16)
    }
}

/// A segment's directory entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SlotEntry {
    pub(super) consumed: TxnId,
    pub(super) head_extent: u32,
    pub(super) tail_page: u32,
}

impl SlotEntry {
    /// Offsets within the entry.
    pub(super) const HEAD: u16 = offset_of!(SegmentEntry, head_extent) as u16;
    pub(super) const TAIL: u16 = offset_of!(SegmentEntry, tail_page) as u16;

    pub(super) fn decode(page: &[u8], at: u16) -> SlotEntry {
        let entry: &SegmentEntry = front(&page[at as usize..]);
        let consumed = TxnId(entry.consumed.get());
        SlotEntry { consumed, head_extent: entry.head_extent.get(), tail_page: entry.tail_page.get() }
    }
    pub(super) fn encode(&self) -> [u8; 16] {
        zerocopy::transmute!(SegmentEntry {
            consumed: self.consumed.0.into(),
            head_extent: self.head_extent.into(),
            tail_page: self.tail_page.into(),
        })
    }
}

/// An extent's directory entry.
pub(super) fn extent_bytes(owner: u32, next: u32) -> [u8; 8] {
    zerocopy::transmute!(ExtentEntry { owner: owner.into(), next: next.into() })
}
