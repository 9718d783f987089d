//! What lies in undo pages (*format*).
//!
//! An undo page is slotted; its cells are begin marks and records in order of writing; an `UndoPtr`'s low half is the cell's position.
//! Special area (48 bytes): `u32 next page | u32 segment | state`, the state being of the transaction that wrote last (of importance
//! in the tail page only): `u64 txn | u64 begin mark | u64 top | u64 seq | u8 state, 7 zero`. `top` is the last record not undone.
//!
//! ```text
//! begin mark: u8 1 | u64 txn | state of the segment's previous transaction (40)
//! record:     u8 2 | u64 txn | u64 previous record not undone | body
//! ```
//!
//! Extents are 1 MiB; extent 0 holds the file header and the directory pages, from page 1 on. A directory page is one special area:
//! `u32 directory pages (page 1 only), 4 zero`, segments of 16 bytes `u64 consumed txn | u32 head extent | u32 tail page (0 = empty)`, and
//! in its second half extents of 8 bytes `u32 owner (segment + 1; 0 = free) | u32 next extent of the segment`.
use super::{History, TxnEnd, UndoRecord};
use crate::types::*;

pub(super) const EXTENT_BYTES: u64 = 1 << 20;
pub(super) const SPECIAL: u16 = 48;
pub(super) const BEGIN_BYTES: usize = 9 + STATE_BYTES;
pub(super) const RECORD_HEADER: usize = 17;
const STATE_BYTES: usize = 40;
/// Offsets from the page's start.
pub(super) const NEXT_AT: u16 = 40;
pub(super) const STATE_AT: u16 = 48;
pub(super) const TOP_AT: u16 = STATE_AT + 16;
const TAG_BEGIN: u8 = 1;
const TAG_RECORD: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum State {
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
    pub(super) state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Begin {
    pub(super) txn: TxnId,
    pub(super) previous: TailState,
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(b[at..at + 8].try_into().expect("eight bytes"))
}

pub(super) fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(b[at..at + 4].try_into().expect("four bytes"))
}

impl TailState {
    /// From a page's special area.
    pub(super) fn decode(special: &[u8]) -> TailState {
        TailState::from_bytes(&special[8..8 + STATE_BYTES])
    }

    fn from_bytes(b: &[u8]) -> TailState {
        let state = match b[32] {
            0 => State::None,
            1 => State::Active,
            2 => State::Committed,
            3 => State::RolledBack,
            // The page's checksum was verified, so this was written by a program that is wrong (R5).
            other => panic!("undo state {other} is unknown"),
        };
        let (begin, top) = (UndoPtr(u64_at(b, 8)), UndoPtr(u64_at(b, 16)));
        TailState { txn: TxnId(u64_at(b, 0)), begin, top, seq: u64_at(b, 24), state }
    }

    pub(super) fn encode(&self) -> [u8; STATE_BYTES] {
        let mut b = [0; STATE_BYTES];
        b[0..8].copy_from_slice(&self.txn.0.to_le_bytes());
        b[8..16].copy_from_slice(&self.begin.0.to_le_bytes());
        b[16..24].copy_from_slice(&self.top.0.to_le_bytes());
        b[24..32].copy_from_slice(&self.seq.to_le_bytes());
        b[32] = self.state as u8;
        b
    }

    /// The history entry of a finished transaction.
    pub(super) fn history(&self, slot: u32) -> Option<History> {
        let end = match self.state {
            State::Committed => TxnEnd::Committed,
            State::RolledBack => TxnEnd::RolledBack,
            State::None | State::Active => return None,
        };
        Some(History { txn: self.txn, end, slot, first: self.begin, last: self.top, seq: self.seq })
    }
}

impl Begin {
    pub(super) fn encode(&self) -> [u8; BEGIN_BYTES] {
        let mut b = [0; BEGIN_BYTES];
        b[0] = TAG_BEGIN;
        b[1..9].copy_from_slice(&self.txn.0.to_le_bytes());
        b[9..].copy_from_slice(&self.previous.encode());
        b
    }

    pub(super) fn decode(cell: &[u8]) -> Option<Begin> {
        if cell.len() != BEGIN_BYTES || cell[0] != TAG_BEGIN {
            return None;
        }
        Some(Begin { txn: TxnId(u64_at(cell, 1)), previous: TailState::from_bytes(&cell[9..]) })
    }
}

pub(super) fn encode_record(txn: TxnId, prev: UndoPtr, body: &[u8]) -> Vec<u8> {
    let mut cell = Vec::with_capacity(RECORD_HEADER + body.len());
    cell.push(TAG_RECORD);
    cell.extend_from_slice(&txn.0.to_le_bytes());
    cell.extend_from_slice(&prev.0.to_le_bytes());
    cell.extend_from_slice(body);
    cell
}

pub(super) fn decode_record(cell: &[u8]) -> Option<UndoRecord> {
    if cell.len() < RECORD_HEADER || cell[0] != TAG_RECORD {
        return None;
    }
    let (txn, prev) = (TxnId(u64_at(cell, 1)), UndoPtr(u64_at(cell, 9)));
    Some(UndoRecord { txn, prev, body: cell[RECORD_HEADER..].to_vec() })
}

/// Where things lie for a page size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) page_size: usize,
}

/// Offset of the segments in a directory page.
const SLOTS_AT: usize = 48;

impl Layout {
    pub(super) fn pages_per_extent(self) -> u32 {
        (EXTENT_BYTES as usize / self.page_size) as u32
    }
    pub(super) fn directory_special(self) -> u16 {
        (self.page_size - 40) as u16
    }
    /// Directory pages that extent 0 has room for.
    pub(super) fn max_directories(self) -> u32 {
        self.pages_per_extent() - 1
    }
    pub(super) fn slots_per_directory(self) -> u32 {
        ((self.page_size / 2 - SLOTS_AT) / 16) as u32
    }
    pub(super) fn extents_per_directory(self) -> u32 {
        (self.page_size / 2 / 8) as u32
    }
    /// Directory page and offset of a segment's entry.
    pub(super) fn slot_entry(self, slot: u32) -> (u32, u16) {
        let (page, i) = (slot / self.slots_per_directory(), slot % self.slots_per_directory());
        (1 + page, (SLOTS_AT + i as usize * 16) as u16)
    }
    /// Directory page and offset of an extent's entry.
    pub(super) fn extent_entry(self, extent: u32) -> (u32, u16) {
        let (page, i) = (extent / self.extents_per_directory(), extent % self.extents_per_directory());
        (1 + page, (self.page_size / 2 + i as usize * 8) as u16)
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
    pub(super) const HEAD: u16 = 8;
    pub(super) const TAIL: u16 = 12;

    pub(super) fn decode(page: &[u8], at: u16) -> SlotEntry {
        let at = at as usize;
        let consumed = TxnId(u64_at(page, at));
        SlotEntry { consumed, head_extent: u32_at(page, at + 8), tail_page: u32_at(page, at + 12) }
    }
    pub(super) fn encode(&self) -> [u8; 16] {
        let mut b = [0; 16];
        b[0..8].copy_from_slice(&self.consumed.0.to_le_bytes());
        b[8..12].copy_from_slice(&self.head_extent.to_le_bytes());
        b[12..16].copy_from_slice(&self.tail_page.to_le_bytes());
        b
    }
}

/// An extent's directory entry.
pub(super) fn extent_bytes(owner: u32, next: u32) -> [u8; 8] {
    let mut b = [0; 8];
    b[0..4].copy_from_slice(&owner.to_le_bytes());
    b[4..8].copy_from_slice(&next.to_le_bytes());
    b
}
