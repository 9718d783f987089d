//! Rollback segments (design section 4, MVCC; Lee et al. section 5: appended streams 1 MiB apart).
//!
//! Mechanics only: what a record's body means is the engine's. A segment (slot) is owned by one writing transaction at
//! a time; transactions follow each other in its stream.
//!
//! 1. Transaction ids ascend within a segment: choosing the segment and the id is one step.
//! 2. A transaction's stream is a *begin mark* (which keeps how the segment's previous transaction ended) and records,
//!    each naming the transaction's previous record that is not undone. The *state* of the segment's last transaction
//!    is in the tail page, so appending, undoing and ending each change one undo page.
//! 3. Undoing and ending need no undo space: they overwrite the state.
//! 4. A segment's `consumed` id only grows; nothing at or below it is read again, and the extents before its head page
//!    are free.
//! 5. A record lies in one page.
//!
//! Formats: [`format`].
use crate::error::{Result, StorageError};
use crate::mtr::{LogEvent, Mtr};
use crate::page::op::PageOp;
use crate::page::{PageKind, slotted};
use crate::pool::{Access, Pin};
use crate::store::Store;
use crate::types::*;
use parking_lot::Mutex;
use std::collections::{BTreeSet, VecDeque};

mod check;
pub mod format;
mod recover;
mod space;
#[cfg(test)]
mod tests;

use crate::bytes::IntoBytes;
use format::{Begin, EXTENT_BYTES, StoredState, TailState};
pub use recover::Unread;

/// The rollback segments of the database.
pub struct UndoSpace {
    inner: Mutex<Inner>,
    /// Held while the space grows.
    grow: tokio::sync::Mutex<()>,
}

struct Inner {
    /// Bytes of undo space allowed.
    limit: u64,
    slots: Vec<Slot>,
    free_slots: BTreeSet<u32>,
    /// Owner of each extent: slot + 1, or 0. Extent 0 is the directory's.
    owners: Vec<u32>,
    free_extents: BTreeSet<u32>,
    /// Directory pages that exist.
    directories: u32,
    next_txn: u64,
    next_seq: u64,
}

/// What is known of a segment in memory.
#[derive(Clone, Default, Debug)]
struct Slot {
    consumed: TxnId,
    /// The last transaction that ended in it.
    last: TxnId,
    tail_page: u32,
    /// Extents from the head's to the tail's.
    extents: VecDeque<u32>,
}

/// A writing transaction's hold on a rollback segment. Not clonable; one task at a time.
pub struct UndoWriter {
    pub txn: TxnId,
    slot: u32,
    /// The segment's last page; `None` until the first `reserve` of a fresh segment.
    tail: Option<Pin>,
    begin: UndoPtr,
    top: UndoPtr,
}

/// Room for one record on the pinned tail page.
pub struct UndoReservation {
    len: usize,
    ptr: UndoPtr,
}

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    pub txn: TxnId,
    pub end: TxnEnd,
    pub slot: u32,
    /// Its begin mark; NONE where it wrote nothing.
    pub first: UndoPtr,
    /// Its last record that was not undone; follow `UndoRecord::prev` from here.
    pub last: UndoPtr,
    /// Ascends in the order in which transactions ended.
    pub seq: u64,
}

impl UndoReservation {
    /// Where the record will be.
    pub fn ptr(&self) -> UndoPtr {
        self.ptr
    }
}

impl UndoWriter {
    /// Whether it has written a record (or begun to).
    pub fn has_begun(&self) -> bool {
        !self.begin.is_none()
    }
    fn tail(&self) -> &Pin {
        self.tail.as_ref().expect("a writer that reserved or began has its tail page pinned")
    }
}

impl Default for UndoSpace {
    fn default() -> Self {
        UndoSpace::new()
    }
}

impl UndoSpace {
    /// The longest record body.
    pub(crate) fn max_body(page_size: usize) -> usize {
        page_size / 2
    }

    /// Log bytes that `append`, `undone` or `end` may need (for `Store::reserve`), for a body of `len` bytes.
    pub fn log_bytes(len: usize) -> usize {
        len + 256
    }

    /// Nothing known yet: `format` or `recover` comes next.
    pub fn new() -> UndoSpace {
        UndoSpace {
            inner: Mutex::new(Inner {
                limit: u64::MAX,
                slots: Vec::new(),
                free_slots: BTreeSet::new(),
                owners: vec![0],
                free_extents: BTreeSet::new(),
                directories: 0,
                next_txn: 1,
                next_seq: 1,
            }),
            grow: tokio::sync::Mutex::new(()),
        }
    }

    /// Sets how many bytes of undo there may be; beyond, `reserve` returns `UndoFull`.
    pub fn set_limit(&self, bytes: u64) {
        self.inner.lock().limit = bytes;
    }

    /// Takes a free segment and assigns the next transaction id (one step: ids ascend per segment). `register` is
    /// called with the id within that step, so that no snapshot can miss the transaction.
    pub async fn begin(&self, st: &Store, register: impl FnOnce(TxnId)) -> Result<UndoWriter> {
        loop {
            let taken = {
                let mut inner = self.inner.lock();
                inner.free_slots.pop_first().map(|slot| (slot, inner.slots[slot as usize].tail_page))
            };
            let Some((slot, tail_page)) = taken else {
                self.add_directory(st, true).await?;
                continue;
            };
            let mut held = HeldSlot { undo: self, slot: Some(slot) };
            let tail = match tail_page {
                0 => None,
                no => Some(st.pool().fetch(PageId::new(UNDO, no), Access::Random).await?),
            };
            held.slot = None;
            let mut inner = self.inner.lock();
            let txn = TxnId(inner.next_txn);
            inner.next_txn += 1;
            register(txn);
            return Ok(UndoWriter { txn, slot, tail, begin: UndoPtr::NONE, top: UndoPtr::NONE });
        }
    }

    /// Makes sure that the tail page has room for a body of `len` bytes (may add a page or an extent in a
    /// mini-transaction of its own).
    pub async fn reserve(&self, st: &Store, writer: &mut UndoWriter, len: usize) -> Result<UndoReservation> {
        let page_size = st.pool().page_size();
        assert!(
            len <= UndoSpace::max_body(page_size),
            "undo body of {len} bytes on pages of {page_size} (invariant 5)"
        );
        let mut need = format::RECORD_HEADER + len;
        if !writer.has_begun() {
            need += format::BEGIN_BYTES + slotted::SLOT;
        }
        let fits = |pin: &Pin| slotted::room(&pin.read()) >= need;
        if !writer.tail.as_ref().is_some_and(fits) {
            self.advance(st, writer).await?;
        }
        let tail = writer.tail();
        let page = tail.read();
        assert!(slotted::room(&page) >= need, "a fresh undo page holds the longest record");
        let record = slotted::slot_count(&page) + u16::from(!writer.has_begun());
        Ok(UndoReservation { len, ptr: UndoPtr::new(tail.id().no, record) })
    }

    /// Appends a record inside the mini-transaction that makes the change it undoes.
    pub fn append(&self, mtr: &mut Mtr, writer: &mut UndoWriter, room: UndoReservation, body: &[u8]) -> UndoPtr {
        assert!(body.len() <= room.len, "undo body of {} bytes in room for {}", body.len(), room.len);
        let at = mtr.latch(writer.tail());
        let page_no = writer.tail().id().no;
        let first = !writer.has_begun();
        if first {
            let record = slotted::slot_count(mtr.page(at));
            let begin = Begin { txn: writer.txn, previous: TailState::decode(slotted::special(mtr.page(at))) };
            assert!(begin.previous.txn < writer.txn, "transaction ids ascend in a segment (invariant 1)");
            mtr.apply(at, PageOp::InsertAt { slot: record, cell: &begin.encode() });
            writer.begin = UndoPtr::new(page_no, record);
        }
        let record = slotted::slot_count(mtr.page(at));
        let ptr = UndoPtr::new(page_no, record);
        assert!(ptr == room.ptr, "the tail page belongs to its writer alone");
        let cell = format::encode_record(writer.txn, writer.top, body);
        mtr.apply(at, PageOp::InsertAt { slot: record, cell: &cell });
        writer.top = ptr;
        if first {
            let state =
                TailState { txn: writer.txn, begin: writer.begin, top: ptr, seq: 0, state: StoredState::Active };
            mtr.apply(at, PageOp::Write { offset: format::STATE_AT, bytes: state.encode().as_bytes() });
        } else {
            mtr.apply(at, PageOp::Write { offset: format::TOP_AT, bytes: &ptr.0.to_le_bytes() });
        }
        ptr
    }

    /// The transaction's last record that is not undone (a savepoint).
    pub fn position(&self, writer: &UndoWriter) -> UndoPtr {
        writer.top
    }

    /// Reads a record.
    pub async fn read(&self, st: &Store, ptr: UndoPtr) -> Result<UndoRecord> {
        let id = PageId::new(UNDO, ptr.page());
        let pin = match st.pool().get(id) {
            Some(pin) => pin,
            None => st.pool().fetch(id, Access::Random).await?,
        };
        let page = pin.read();
        let cell = slotted::cell(&page, ptr.offset());
        cell.and_then(format::decode_record).ok_or_else(|| StorageError::Damaged(format!("no undo record at {ptr:?}")))
    }

    /// Notes, inside the compensating mini-transaction, that everything after `next` is undone. Needs no undo space.
    pub fn undone(&self, mtr: &mut Mtr, writer: &mut UndoWriter, next: UndoPtr) {
        assert!(writer.has_begun(), "only a transaction with records undoes any");
        let at = mtr.latch(writer.tail());
        mtr.apply(at, PageOp::Write { offset: format::TOP_AT, bytes: &next.0.to_le_bytes() });
        writer.top = next;
    }

    /// Ends the transaction: flips its state in its tail page, logs the event; returns the LSN to wait for. The segment
    /// is free for the next transaction at once; the records stay until purged.
    pub fn end(&self, mut mtr: Mtr, writer: UndoWriter, end: TxnEnd, unix_micros: i64) -> (Lsn, History) {
        let seq = {
            let mut inner = self.inner.lock();
            inner.next_seq += 1;
            inner.next_seq - 1
        };
        if writer.has_begun() {
            let state = match end {
                TxnEnd::Committed => StoredState::Committed,
                TxnEnd::RolledBack => StoredState::RolledBack,
            };
            let at = mtr.latch(writer.tail());
            let old = TailState::decode(slotted::special(mtr.page(at)));
            assert!(old.txn == writer.txn && old.state == StoredState::Active, "only an active transaction ends");
            let new = TailState { txn: writer.txn, begin: writer.begin, top: writer.top, seq, state };
            mtr.apply(at, PageOp::Write { offset: format::STATE_AT, bytes: new.encode().as_bytes() });
            if end == TxnEnd::Committed {
                mtr.event(LogEvent::Commit { txn: writer.txn, unix_micros });
            }
        }
        let lsn = mtr.commit();
        {
            let mut inner = self.inner.lock();
            inner.slots[writer.slot as usize].last = writer.txn;
            inner.free_slots.insert(writer.slot);
        }
        let (first, last) = (writer.begin, writer.top);
        (lsn, History { txn: writer.txn, end, slot: writer.slot, first, last, seq })
    }

    /// The id that the next transaction gets.
    pub fn next_txn(&self) -> TxnId {
        TxnId(self.inner.lock().next_txn)
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> u64 {
        self.inner.lock().used_extents() * EXTENT_BYTES
    }
}

/// Gives a segment back when `begin` fails or is cancelled.
struct HeldSlot<'a> {
    undo: &'a UndoSpace,
    slot: Option<u32>,
}

impl Drop for HeldSlot<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.undo.inner.lock().free_slots.insert(slot);
        }
    }
}

impl Inner {
    /// Extents in use, the directory's included.
    fn used_extents(&self) -> u64 {
        (self.owners.len() - self.free_extents.len()) as u64
    }
}
