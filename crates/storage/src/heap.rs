//! Heap: rows in slots of pages found through the free-space map; fragments for what does not fit. Row format: ARCHITECTURE 6.
use crate::error::Result;
use crate::mtr::{Latched, Mtr};
use crate::pool::Pin;
use crate::store::Store;
use crate::types::*;

pub const DELETED: u8 = 1;
pub const CHAINED: u8 = 2;
pub const FRAGMENT: u8 = 4;

/// Bytes of the row header in front of the payload.
pub const ROW_HEADER: usize = 17;

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
pub struct HeapRoom {
    pub page: Pin,
    pub map: Pin,
    // a fresh page carries its PageRoom
}

pub struct Heap {
    pub object: ObjectId,
    pub space: SpaceId,
}

impl RowHeader {
    pub fn decode(_cell: &[u8]) -> RowHeader {
        todo!()
    }
    pub fn encode(&self) -> [u8; ROW_HEADER] {
        todo!()
    }
}

impl Heap {
    /// The largest payload kept in the slot itself; larger ones become chains.
    pub fn inline_limit(_page_size: usize) -> usize {
        todo!()
    }
    /// Stores a long payload as a chain of fragments (own mini-transactions, before the row itself is written) and returns the
    /// stub bytes to keep in the slot. A crash in between leaks fragments that `free_chain` of the undo record or check collects.
    pub async fn write_chain(&self, _st: &Store, _payload: &[u8]) -> Result<Vec<u8>> {
        todo!()
    }
    /// Reads the payload behind a stub.
    pub async fn read_chain(&self, _st: &Store, _stub: &[u8]) -> Result<Vec<u8>> {
        todo!()
    }
    /// Frees a chain's fragments. Idempotent where the first fragment is gone.
    pub async fn free_chain(&self, _st: &Store, _stub: &[u8]) -> Result<()> {
        todo!()
    }
    /// Pins a page with room for a new row of `len` bytes (header included).
    pub async fn find_room(&self, _st: &Store, _len: usize, _spread: u64) -> Result<HeapRoom> {
        todo!()
    }
    /// Puts a new row into the latched page of `room`; `None` where the room is gone by now (find another). Notes free space.
    pub fn insert(&self, _st: &Store, _mtr: &mut Mtr, _room: HeapRoom, _row: &StoredRow) -> Option<Rid> {
        todo!()
    }
    /// Pins the page of a row and its map page.
    pub async fn pin_row(&self, _st: &Store, _rid: Rid) -> Result<HeapRoom> {
        todo!()
    }
    /// Copies a row under a read latch; `None` where the slot is empty or a fragment.
    pub fn read(_page: &Pin, _slot: u16) -> Option<StoredRow> {
        todo!()
    }
    /// Replaces header and bytes of a row in a latched page; false where it does not fit (then nothing changed: write a chain).
    /// Logs a header-and-difference patch where the length is unchanged.
    pub fn replace(&self, _st: &Store, _mtr: &mut Mtr, _at: Latched, _map: &Pin, _slot: u16, _row: &StoredRow) -> bool {
        todo!()
    }
    /// Empties the slot (purge, rollback of an insert).
    pub fn free(&self, _st: &Store, _mtr: &mut Mtr, _at: Latched, _map: &Pin, _slot: u16) {
        todo!()
    }
}
