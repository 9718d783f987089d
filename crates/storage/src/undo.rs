//! Rollback segments (design section 4, MVCC; Lee et al. section 5: appended streams 1 MiB apart).
//!
//! Mechanics only: what a record's body means is the engine's. A segment (slot) is owned by one writing transaction at a time;
//! transactions follow each other in its stream.
use crate::error::Result;
use crate::mtr::Mtr;
use crate::store::Store;
use crate::types::*;

/// The rollback segments of the database.
pub struct UndoSpace {}

/// A writing transaction's hold on a rollback segment. Not clonable; one task at a time.
pub struct UndoWriter {
    pub txn: TxnId,
    // slot, tail page pin, last record
}

/// Room for one record on the pinned tail page.
pub struct UndoRoom {}

/// A record as read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoRecord {
    pub txn: TxnId,
    /// The transaction's previous record.
    pub prev: UndoPtr,
    pub body: Vec<u8>,
}

/// How a transaction of the history ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxnEnd {
    Committed,
    RolledBack,
}

/// A transaction found active after redo: roll it back from `next`.
pub struct Loser {
    pub writer: UndoWriter,
    /// The next record to undo (NONE: nothing left).
    pub next: UndoPtr,
}

/// A finished transaction whose records purge has yet to consume.
pub struct History {
    pub txn: TxnId,
    pub end: TxnEnd,
    pub slot: u32,
    pub first: UndoPtr,
    pub last: UndoPtr,
}

impl UndoSpace {
    /// The longest record body.
    pub fn max_body(_page_size: usize) -> usize {
        todo!()
    }
    /// Takes a free segment and assigns the next transaction id (segment choice and id are one step: ids ascend per segment).
    pub async fn begin(&self, _st: &Store) -> Result<UndoWriter> {
        todo!()
    }
    /// Makes sure that the tail page has room for a body of `len` bytes (may add a page or an extent in a mini-transaction of its own).
    pub async fn reserve(&self, _st: &Store, _writer: &mut UndoWriter, _len: usize) -> Result<UndoRoom> {
        todo!()
    }
    /// Appends a record inside the mini-transaction that makes the change it undoes.
    pub fn append(&self, _mtr: &mut Mtr, _writer: &mut UndoWriter, _room: UndoRoom, _body: &[u8]) -> UndoPtr {
        todo!()
    }
    /// The transaction's last record so far (a savepoint).
    pub fn position(&self, _writer: &UndoWriter) -> UndoPtr {
        todo!()
    }
    /// Reads a record.
    pub async fn read(&self, _st: &Store, _ptr: UndoPtr) -> Result<UndoRecord> {
        todo!()
    }
    /// Pins what `undone` needs.
    pub async fn prepare_undone(&self, _st: &Store, _writer: &mut UndoWriter) -> Result<()> {
        todo!()
    }
    /// Notes, inside the compensating mini-transaction, that everything after `next` is undone.
    pub fn undone(&self, _mtr: &mut Mtr, _writer: &mut UndoWriter, _next: UndoPtr) {
        todo!()
    }
    /// Ends the transaction: flips its state in its tail page, logs the event; returns the LSN to wait for. The segment is free for
    /// the next transaction at once; the records stay until purged. (`prepare_undone` pins what it needs.)
    pub fn end(&self, _mtr: Mtr, _writer: UndoWriter, _end: TxnEnd, _unix_micros: i64) -> (Lsn, History) {
        todo!()
    }
    /// Records of a finished transaction, oldest first.
    pub async fn records(&self, _st: &Store, _history: &History) -> Result<Vec<(UndoPtr, UndoRecord)>> {
        todo!()
    }
    /// Purge is done with this transaction: moves the segment's head and frees whole extents. In order within a segment.
    pub async fn consumed(&self, _st: &Store, _history: &History) -> Result<()> {
        todo!()
    }
    /// After redo: losers to roll back, histories to purge (per segment oldest first).
    pub async fn recover(&self, _st: &Store) -> Result<(Vec<Loser>, Vec<History>)> {
        todo!()
    }
    /// Bytes in use.
    pub fn used_bytes(&self) -> u64 {
        todo!()
    }
}
