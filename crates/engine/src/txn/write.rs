//! Inserting, updating and deleting rows.
//!
//! 1. A change is one mini-transaction: the row in its slot, and the undo record of the version before. Everything that
//!    can wait comes before it. Under the latch, the row is looked at again. The fragments of a long row are written
//!    before the row, each with its undo record.
//! 2. The row's header is the row lock: its writer holds it while active. Waiters take turns: one per row waits for the
//!    holder, the others wait for the turn. Rows that others have locked without changing them (`lock`) are waited for
//!    in the same way, and looked for again under the latch.
//! 3. A version is *settled* if its writer is this transaction; or its writer had ended before the version was read; or
//!    its writer was found not active and the row was still the same afterwards. (A writer that rolls back restores the
//!    row before it leaves.)
use super::{Txn, UpdateOutcome, Version};
use crate::catalog::{Index, Table};
use crate::database::Core;
use crate::error::{EngineError, Result};
use crate::key;
use crate::locks::{LockKey, LockMode, Owner, Turn, TxnState};
use crate::record::{self, is_chained, is_deleted};
use crate::row::{RowBuf, RowView};
use crate::serializable::Written;
use crate::snapshots::Snapshot;
use crate::txn::LOG_EXTRA;
use crate::types::{Datum, DatumRef};
use crate::versions::{RowVersion, heap, is_version, new_header};
use std::sync::Arc;
use std::time::Duration;
use terrace_storage::config::Safeguard;
use terrace_storage::heap::{FragmentNote, Heap, PinnedHeapPage, ROW_HEADER, RowHeader, StoredRow};
use terrace_storage::mtr::LogPermit;
use terrace_storage::page::slotted;
use terrace_storage::undo::{UndoReservation, UndoSpace, UndoWriter};
use terrace_storage::{ObjectId, Rid, Store, TxnId, UndoPtr};

/// What became of an attempt under the latch.
enum Attempt {
    Done,
    /// The row is not what it was: look again.
    Changed,
    /// The new bytes do not fit the page: they go to a chain.
    NoRoom,
}

/// Turns held from the wait for a row until it is written.
#[derive(Default)]
struct Turns {
    writer: Option<Turn>,
    locked: Option<Turn>,
}

/// A row that this transaction may write now, in the version that it expects; or why not.
pub(super) enum Ready {
    Yes(RowVersion),
    No(UpdateOutcome),
}

impl Core {
    pub(crate) async fn wait(&self, owner: Owner, holder: &TxnState, timeout: Duration) -> Result<()> {
        self.locks.wait_for(&self.env, owner, holder, timeout, || self.check_alive()).await?;
        self.check_alive()
    }

    /// The newest version of a row, and its writer where that is another transaction still running (invariant 3).
    pub(crate) async fn settled(
        &self,
        own: TxnId,
        table: ObjectId,
        rid: Rid,
    ) -> Result<Option<(RowVersion, Option<Arc<TxnState>>)>> {
        loop {
            // Read before the row: a writer below it has ended for good.
            let low = self.active.low();
            let Some(row) = self.newest(table, rid).await? else { return Ok(None) };
            let writer = row.header.writer;
            if writer == own || writer < low {
                return Ok(Some((row, None)));
            }
            if let Some(holder) = self.active.get(writer) {
                return Ok(Some((row, Some(holder))));
            }
            if self.stored(rid).await?.is_some_and(|again| again.header == row.header) {
                return Ok(Some((row, None)));
            }
        }
    }
}

impl Txn {
    /// Checks types, lengths and NOT NULL, stores the row, adds its index entries (23505 on a duplicate; the statement
    /// must then be rolled back to its savepoint).
    pub async fn insert(&mut self, table: &Table, row: &[Datum]) -> Result<Rid> {
        let row = RowBuf::encode(table, row)?;
        self.snapshot();
        self.lock_table(table, true).await?;
        let id = self.write_id().await?;
        let rid = self.store_row(table, id, &row).await?;
        for index in &table.indexes {
            self.add_entry(table, index, &row.0, rid).await?;
        }
        self.look_for_readers(table, rid, &[row.view(table)])?;
        self.tally.count(table.oid).inserted += 1;
        if !table.foreign_keys.is_empty() {
            Box::pin(self.row_inserted(table, &row, rid)).await?;
        }
        Ok(rid)
    }

    async fn store_row(&mut self, table: &Table, id: TxnId, row: &RowBuf) -> Result<Rid> {
        let core = self.resources.core.clone();
        let (store, heap) = (&core.store, heap(table.oid));
        let chained = row.0.len() > Heap::inline_limit(store.pool().page_size());
        let writer = self.resources.writer.as_mut().expect("write_id makes one");
        let stub;
        let bytes = if chained {
            stub = heap.write_chain(store, &row.0, Some(note(writer))).await?;
            &stub
        } else {
            &row.0
        };
        // The row with its header still open.
        let mut stored = StoredRow { header: RowHeader::default(), bytes: bytes.clone() };
        loop {
            let undo_room = store.undo().reserve(store, writer, record::INSERT_LEN).await?;
            let room = heap.find_room(store, ROW_HEADER + bytes.len(), id.0).await?;
            let permit = store.reserve(bytes.len() + LOG_EXTRA).await?;
            stored.header = new_header(Version { writer: id, undo: undo_room.ptr() }, chained, false);
            if let Some(rid) = insert_row(store, permit, writer, undo_room, &heap, room, &stored) {
                return Ok(rid);
            }
        }
    }

    /// Replaces a row whose version is `expected`, waiting for another writer where needed (40P01 on deadlock; under
    /// REPEATABLE READ 40001 where the row has changed).
    pub async fn update(&mut self, table: &Table, rid: Rid, expected: Version, row: &[Datum]) -> Result<UpdateOutcome> {
        let row = RowBuf::encode(table, row)?;
        self.lock_table(table, true).await?;
        let mut turns = Turns::default();
        let old = loop {
            let old = match self.ready(table, rid, expected, Some(&row), &mut turns).await? {
                Ready::No(outcome) => return Ok(outcome),
                Ready::Yes(old) => old,
            };
            if self.replace(table, rid, &old, &row).await? {
                break old;
            }
        };
        drop(turns);
        let (before, after) = (old.view(table), row.view(table));
        for index in table.indexes.iter().filter(|i| key_changed(&i.columns, before, after)) {
            Box::pin(self.add_entry(table, index, &row.0, rid)).await?; // Few updates change a key.
        }
        self.look_for_readers(table, rid, &[before, after])?;
        self.tally.count(table.oid).updated += 1;
        if concerns_foreign_keys(table, before, after) {
            Box::pin(self.row_updated(table, before, after, rid)).await?;
        }
        Ok(UpdateOutcome::Done)
    }

    pub async fn delete(&mut self, table: &Table, rid: Rid, expected: Version) -> Result<UpdateOutcome> {
        self.lock_table(table, true).await?;
        let mut turns = Turns::default();
        loop {
            let old = match self.ready(table, rid, expected, None, &mut turns).await? {
                Ready::No(outcome) => return Ok(outcome),
                Ready::Yes(old) => old,
            };
            if self.mark_deleted(table, rid, &old).await? {
                drop(turns);
                self.look_for_readers(table, rid, &[old.view(table)])?;
                self.tally.count(table.oid).deleted += 1;
                if !table.referenced_by.is_empty() {
                    Box::pin(self.row_deleted(table, old.view(table))).await?;
                }
                return Ok(UpdateOutcome::Done);
            }
        }
    }

    /// Where it is serialisable: it has written a row, whose versions before and after these are (`serializable`,
    /// invariant 1). 40001.
    fn look_for_readers(&self, table: &Table, rid: Rid, versions: &[RowView<'_>]) -> Result<()> {
        let Some(serial) = &self.resources.serial else { return Ok(()) };
        let entries = |index: &Arc<Index>| {
            let index = index.clone();
            versions.iter().map(move |version| (index.oid, key::encode_entry(&index, *version, rid)))
        };
        let entries = table.indexes.iter().flat_map(entries).collect();
        serial.wrote(&Written { table: table.oid, rid, entries })
    }

    /// Waits until the row can be written or cannot any more. `new`: what it will be; `None`: deleted.
    async fn ready(
        &mut self,
        table: &Table,
        rid: Rid,
        expected: Version,
        new: Option<&RowBuf>,
        turns: &mut Turns,
    ) -> Result<Ready> {
        let snapshot = self.snapshot();
        let id = self.write_id().await?;
        let core = self.resources.core.clone();
        loop {
            // Without the snapshot the slot may have been freed and given to another row.
            let settled = snapshot.believe(core.settled(id, table.oid, rid).await)?;
            let Some((row, holder)) = settled else {
                return Ok(Ready::No(UpdateOutcome::Gone));
            };
            let (owner, timeout) = (self.resources.owner, self.lock_timeout);
            if let Some(holder) = holder {
                match turns.writer {
                    // Invariant 2: wait for the turn first, then look again.
                    None => {
                        let turn = (LockKey::Row(table.oid, rid), LockMode::AccessExclusive);
                        turns.writer = Some(core.locks.turn(&core.env, owner, turn, timeout).await?);
                    }
                    Some(_) => core.wait(owner, &holder, timeout).await?,
                }
                continue;
            }
            let ready = self.judge(row, expected, &snapshot)?;
            if let Ready::Yes(row) = &ready
                && !table.referenced_by.is_empty()
                && write_mode(table, row, new) == LockMode::AccessExclusive
                && self.lock_by(LockKey::Keys(table.oid), LockMode::RowExclusive).await?
            {
                // It may have waited.
                continue;
            }
            if let Ready::Yes(row) = &ready
                && turns.locked.is_none()
                && core.locks.are_rows_locked()
            {
                let (mode, own) = (write_mode(table, row, new), row.header.writer == id);
                if core.locks.is_row_locked(owner, (table.oid, rid), mode, own) {
                    let turn = (LockKey::Explicit(table.oid, rid), mode);
                    turns.locked = Some(core.locks.turn(&core.env, owner, turn, timeout).await?);
                    continue;
                }
            }
            return Ok(ready);
        }
    }

    /// Whether a settled version is the one expected, and if not what that means.
    pub(super) fn judge(&self, row: RowVersion, expected: Version, snapshot: &Snapshot) -> Result<Ready> {
        if is_version(&row.header, expected) && row.is_live() {
            return Ok(Ready::Yes(row));
        }
        if self.isolation.is_repeatable() && !snapshot.sees(row.header.writer, self.own()) {
            return Err(changed_under_snapshot(&row));
        }
        if is_deleted(&row.header) {
            return Ok(Ready::No(UpdateOutcome::Gone));
        }
        let (row, version) = row.into_row();
        Ok(Ready::No(UpdateOutcome::Changed { row, version }))
    }

    /// Writes a new version over `old`; false where the row has changed meanwhile.
    async fn replace(&mut self, table: &Table, rid: Rid, old: &RowVersion, row: &RowBuf) -> Result<bool> {
        let core = self.resources.core.clone();
        let owner = self.resources.owner;
        let (store, heap) = (&core.store, heap(table.oid));
        let old_stored = match is_chained(&old.header) {
            false => StoredRow { header: old.header, bytes: old.payload.clone() },
            true => match core.stored(rid).await? {
                Some(stored) if stored.header == old.header => stored,
                _ => return Ok(false),
            },
        };
        let (before, after) = (old.view(table), row.view(table));
        let keys_changed = table.indexes.iter().any(|i| key_changed(&i.columns, before, after));
        let mode = if keys_changed { write_mode(table, old, Some(row)) } else { LockMode::ShareRowExclusive };
        let mut chained = row.0.len() > Heap::inline_limit(store.pool().page_size());
        let mut bytes = row.0.clone();
        let writer = self.resources.writer.as_mut().expect("the caller has an id");
        let id = writer.txn;
        if chained {
            bytes = heap.write_chain(store, &row.0, Some(note(writer))).await?;
        }
        loop {
            let header = new_header(Version { writer: writer.txn, undo: UndoPtr::NONE }, chained, false);
            let mut new = StoredRow { header, bytes: bytes.clone() };
            let body = record::update(table.oid, rid, &old_stored, &new, keys_changed);
            let undo_room = store.undo().reserve(store, writer, body.len()).await?;
            let room = heap.pin_row(store, rid).await?;
            let len = UndoSpace::log_bytes(body.len()) + old_stored.bytes.len() + bytes.len() + LOG_EXTRA;
            let permit = store.reserve(len).await?;
            new.header.undo = undo_room.ptr();
            let locked = || core.locks.is_row_locked(owner, (table.oid, rid), mode, old.header.writer == id);
            match write_row(store, permit, writer, undo_room, &body, &heap, &room, rid, old.header, &new, locked) {
                Attempt::Done => return Ok(true),
                Attempt::Changed => {
                    if chained {
                        heap.free_chain(store, &bytes).await?;
                    }
                    return Ok(false);
                }
                Attempt::NoRoom if chained => {
                    return Err(EngineError::damaged(format!("a stub does not fit at {rid:?}")));
                }
                Attempt::NoRoom => {
                    bytes = heap.write_chain(store, &row.0, Some(note(writer))).await?;
                    chained = true;
                }
            }
        }
    }

    /// Flags the row; false where it has changed meanwhile.
    async fn mark_deleted(&mut self, table: &Table, rid: Rid, old: &RowVersion) -> Result<bool> {
        let core = self.resources.core.clone();
        let owner = self.resources.owner;
        let (store, heap) = (&core.store, heap(table.oid));
        let Some(mut row) = core.stored(rid).await?.filter(|row| row.header == old.header) else { return Ok(false) };
        let writer = self.resources.writer.as_mut().expect("the caller has an id");
        let body = record::delete(table.oid, rid, &row);
        let undo_room = store.undo().reserve(store, writer, body.len()).await?;
        let room = heap.pin_row(store, rid).await?;
        let permit = store.reserve(UndoSpace::log_bytes(body.len()) + row.bytes.len() + LOG_EXTRA).await?;
        row.header = new_header(Version { writer: writer.txn, undo: undo_room.ptr() }, is_chained(&old.header), true);
        let id = writer.txn;
        let mode = LockMode::AccessExclusive;
        let locked = || core.locks.is_row_locked(owner, (table.oid, rid), mode, old.header.writer == id);
        match write_row(store, permit, writer, undo_room, &body, &heap, &room, rid, old.header, &row, locked) {
            Attempt::Done => Ok(true),
            Attempt::Changed => Ok(false),
            Attempt::NoRoom => unreachable!("the bytes are the same"),
        }
    }
}

/// A chain's fragments are the transaction's to free until it commits.
fn note(writer: &mut UndoWriter) -> FragmentNote<'_> {
    FragmentNote { writer, len: record::FRAGMENT_LEN, body: record::fragment }
}

fn concerns_foreign_keys(table: &Table, before: RowView<'_>, after: RowView<'_>) -> bool {
    let refers = || table.foreign_keys.iter().any(|key| key_changed(&key.columns, before, after));
    let referenced = || table.referenced_by.iter().any(|key| shows_changed(&key.key, before, after));
    table.has_foreign_keys() && (refers() || referenced())
}

/// How a write locks its row: alone, if it takes a key of the row away. `new` as for `Txn::ready`.
fn write_mode(table: &Table, old: &RowVersion, new: Option<&RowBuf>) -> LockMode {
    let keeps = |new: &RowBuf| !takes_key(table, old.view(table), new.view(table));
    if new.is_some_and(keeps) { LockMode::ShareRowExclusive } else { LockMode::AccessExclusive }
}

/// Whether a key of the row, to which a foreign key may refer, is not what it was.
pub(super) fn takes_key(table: &Table, before: RowView<'_>, after: RowView<'_>) -> bool {
    table.keys().any(|i| key_changed(&i.columns, before, after))
}

/// Whether any of the key's columns differs.
pub(super) fn key_changed(columns: &[usize], before: RowView<'_>, after: RowView<'_>) -> bool {
    columns.iter().any(|&c| before.get(c) != after.get(c))
}

/// Whether any of a referenced key's columns differs, or only shows another value: of 0 and -0, which are equal, those
/// that refer to it get the other one, too.
pub(super) fn shows_changed(columns: &[usize], before: RowView<'_>, after: RowView<'_>) -> bool {
    let zeros = |pair: (DatumRef<'_>, DatumRef<'_>)| match pair {
        (DatumRef::Float4(a), DatumRef::Float4(b)) => a.to_bits() != b.to_bits(),
        (DatumRef::Float8(a), DatumRef::Float8(b)) => a.to_bits() != b.to_bits(),
        _ => false,
    };
    key_changed(columns, before, after) || columns.iter().any(|&c| zeros((before.get(c), after.get(c))))
}

fn changed_under_snapshot(row: &RowVersion) -> EngineError {
    let what = if is_deleted(&row.header) { "delete" } else { "update" };
    let mut e = EngineError::serialization();
    e.message = format!("could not serialize access due to concurrent {what}");
    e
}

/// Invariant 1, for a new row; `None` where the page has no room any more.
fn insert_row(
    store: &Store,
    permit: LogPermit,
    writer: &mut UndoWriter,
    undo_room: UndoReservation,
    heap: &Heap,
    room: PinnedHeapPage,
    row: &StoredRow,
) -> Option<Rid> {
    let mut mtr = store.mtr(permit);
    let rid = heap.insert(store, &mut mtr, room, row)?;
    store.undo().append(&mut mtr, writer, undo_room, &record::insert(heap.object, rid));
    mtr.commit();
    Some(rid)
}

/// Invariant 1, for a row that is there.
#[expect(clippy::too_many_arguments, reason = "everything reserved beforehand comes together here")]
fn write_row(
    store: &Store,
    permit: LogPermit,
    writer: &mut UndoWriter,
    undo_room: UndoReservation,
    body: &[u8],
    heap: &Heap,
    room: &PinnedHeapPage,
    rid: Rid,
    expected: RowHeader,
    row: &StoredRow,
    locked: impl Fn() -> bool,
) -> Attempt {
    let mut mtr = store.mtr(permit);
    let at = mtr.latch(&room.page);
    let changed = slotted::cell(mtr.page(at), rid.slot).map(RowHeader::decode) != Some(expected) || locked();
    if changed && store.config().safeguards.has(Safeguard::SecondLook) {
        return Attempt::Changed;
    }
    if !heap.replace(store, &mut mtr, at, &room.map, rid.slot, row) {
        return Attempt::NoRoom;
    }
    store.undo().append(&mut mtr, writer, undo_room, body);
    mtr.commit();
    Attempt::Done
}
