//! Rollback: of a whole transaction, to a savepoint, of a loser after a crash. All three use the same code.
//!
//! 1. Records are undone newest first. For each record, the index entries that only the undone version needs are
//!    removed. Then one mini-transaction restores the row and notes the record as undone. After a crash in between,
//!    this is repeated. The fragments of the undone version follow, by records of their own. If there is only one
//!    fragment, it goes with the row, because rollback itself may have written it (invariant 3).
//! 2. The row belongs to the transaction until then, so its header must name the record. Anything else is damage.
//! 3. Rollback needs no undo space (it overwrites the state). An older version that no longer fits its page becomes a
//!    chain. Because it was in a slot before, it is one fragment, written in the same mini-transaction.
//! 4. An entry with the undone version's key stays if an older version needs it whose purge will remove it: a version
//!    that was followed by a change of keys. (An older version with this key and no such change after it is older than
//!    the index, and nobody who sees that version uses the index.)
use crate::catalog::load::View;
use crate::catalog::{Catalog, Table};
use crate::database::Core;
use crate::error::{EngineError, Result};
use crate::key;
use crate::record::{Old, Record, is_chained};
use crate::row::RowView;
use crate::status::Stage;
use crate::txn::LOG_EXTRA;
use crate::txn::losers::{SLICE, left_to_restart};
use crate::txn::resources::TxnResources;
use crate::versions::{RowVersion, heap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use terrace_env::yield_now;
use terrace_storage::heap::{CHAINED, Fragment, Heap, PinnedHeapPage, ROW_LOG, RowHeader, Spill, StoredRow};
use terrace_storage::mtr::LogPermit;
use terrace_storage::page::slotted;
use terrace_storage::undo::{TxnEnd, UndoRecord, UndoSpace, UndoWriter};
use terrace_storage::{DATA, ObjectId, Rid, UndoPtr};

/// How often a rollback in the background is tried; how long it rests after the first failure (twice as long after each
/// further one).
const ATTEMPTS: u32 = 8;
const FIRST_REST: Duration = Duration::from_millis(100);

/// Counts a background rollback.
struct Background(Arc<Core>);

impl Drop for Background {
    fn drop(&mut self) {
        self.0.background.fetch_sub(1, Ordering::AcqRel);
        self.0.background_done.notify_waiters();
    }
}

impl TxnResources {
    pub(super) fn rollback_in_background(self) {
        self.in_background_then(|_| {});
    }

    /// Undoes everything in a background task; `then` learns whether that was done.
    pub(super) fn in_background_then(mut self, then: impl FnOnce(bool) + Send + 'static) {
        self.in_background = true;
        let core = self.core.clone();
        core.background.fetch_add(1, Ordering::AcqRel);
        let background = Background(core.clone());
        core.store.spawn("rollback", async move {
            let _background = background;
            then(self.keep_trying().await);
        });
    }

    /// Tries for a while: a device may fail for a moment. Then the database stops, because what this transaction wrote
    /// can neither stay nor go. Answers whether it is undone.
    async fn keep_trying(&mut self) -> bool {
        let core = self.core.clone();
        let mut rest = FIRST_REST;
        for attempt in 1.. {
            let Err(e) = self.try_rollback().await else { break };
            if core.leaving.load(Ordering::Acquire) {
                self.leave_to_restart();
                return false;
            }
            let lasting = core.store.failure().is_some() || e.state.0 == "XX001";
            if lasting || attempt == ATTEMPTS {
                self.give_up(&e);
                return false;
            }
            tracing::error!("a transaction could not be rolled back, which is tried again in {rest:?}: {e}");
            core.env.sleep(rest).await;
            rest *= 2;
        }
        true
    }

    /// The database closes: the next start goes on. The locks stay (`losers`, invariant 5).
    fn leave_to_restart(&mut self) {
        self.writer = None;
        self.locks.clear();
    }

    /// Leaves the transaction active: its rows stay locked until a restart.
    fn give_up(&mut self, why: &EngineError) {
        self.writer = None;
        self.core.fail(format!("a transaction could not be rolled back: {why}"));
    }

    /// Ends a transaction that wrote nothing (though it may have an id).
    pub(crate) async fn leave_unwritten(mut self) -> Result<()> {
        if self.writer.is_some() {
            return Box::pin(self.try_rollback()).await;
        }
        Ok(())
    }

    /// Undoes everything and leaves. After an error that may pass this goes on in the background: its rows stay locked
    /// meanwhile.
    pub(crate) async fn rollback(mut self) -> Result<()> {
        let result = self.try_rollback().await;
        if let (Err(e), true) = (&result, self.core.store.failure().is_some()) {
            self.give_up(e);
        }
        result
    }

    /// Undoes a loser while the database is being opened: an error ends the opening.
    pub(crate) async fn rollback_loser(mut self) -> Result<()> {
        let result = self.try_rollback().await;
        self.writer = None;
        result
    }

    async fn try_rollback(&mut self) -> Result<()> {
        self.leave_serializable();
        if self.writer.is_none() {
            return Ok(());
        }
        self.entry.enter(Stage::RollingBack);
        self.survey().await?;
        self.undo_to(UndoPtr::NONE).await?;
        let permit = self.core.cleanup.reserve(UndoSpace::log_bytes(0)).await?;
        let (_, history) = self.write_end(permit, TxnEnd::RolledBack);
        self.become_visible(&history);
        self.release_locks_and_wake();
        self.wake_purge(&history);
        Ok(())
    }

    /// Undoes everything after `target`, newest first.
    pub(crate) async fn undo_to(&mut self, target: UndoPtr) -> Result<()> {
        let Some(writer) = self.writer.as_mut() else { return Ok(()) };
        let core = self.core.clone();
        let undo = core.cleanup.undo();
        // The definitions that the transaction has made or deleted are needed: their rows are undone too.
        let defines = self.catalog.is_some();
        let mut catalog = match defines {
            true => Arc::new(Catalog::load(&core.cleanup, View::WithDeleted).await?),
            false => core.catalog(),
        };
        let (mut turn, mut undone) = (None, 0);
        loop {
            let ptr = undo.position(writer);
            if ptr == target {
                return Ok(());
            }
            if ptr.is_none() {
                return Err(EngineError::internal("the savepoint is not of this transaction"));
            }
            if undone % SLICE == 0 {
                // `losers`, invariant 6.
                drop(turn.take());
                if undone > 0 {
                    yield_now().await;
                }
                if self.in_background {
                    turn = Some(core.turns.acquire().await.expect("nobody closes the turns"));
                }
            }
            undone += 1;
            if self.in_background && core.leaving.load(Ordering::Acquire) {
                return Err(left_to_restart());
            }
            let record = undo.read(&core.cleanup, ptr).await?;
            if record.txn != writer.txn {
                return Err(EngineError::damaged(format!("{ptr:?} is not a record of transaction {}", writer.txn.0)));
            }
            core.undo_record(writer, &catalog, ptr, &record).await?;
            if defines && matches!(Record::decode(&record.body)?, Record::Created(_)) {
                // Its definition is undone by now: the older rows of an index's table have no entries to remove from
                // pages that are freed.
                catalog = Arc::new(Catalog::load(&core.cleanup, View::WithDeleted).await?);
            }
        }
    }
}

/// A row before and after the undoing of one record.
struct Undoing<'a> {
    rid: Rid,
    table: ObjectId,
    definition: Option<&'a Arc<Table>>,
    stored: &'a StoredRow,
    current: RowVersion,
    /// `None`: the record was the row's insert.
    older: Option<RowVersion>,
    keys_changed: bool,
}

/// The pages that undoing a record changes, pinned.
struct PinnedPages<'a> {
    row: PinnedHeapPage,
    /// The undone version's only fragment.
    doomed: Option<(PinnedHeapPage, Fragment)>,
    /// The place of an older version that no longer fits its page (invariant 3).
    spill: Option<(PinnedHeapPage, &'a Spill)>,
}

impl Core {
    async fn undo_record(
        &self,
        writer: &mut UndoWriter,
        catalog: &Catalog,
        ptr: UndoPtr,
        record: &UndoRecord,
    ) -> Result<()> {
        let (table, rid, keys_changed) = match Record::decode(&record.body)? {
            Record::Created(object) => {
                self.cleanup.space(DATA).free_object(&self.cleanup, object).await?;
                return self.note_undone(writer, record.prev).await;
            }
            Record::Dropped(_) => return self.note_undone(writer, record.prev).await,
            Record::Fragment { table, fragment } => {
                let room = heap(table).pin_row(&self.cleanup, fragment.rid).await?;
                let permit = self.cleanup.reserve(ROW_LOG + UndoSpace::log_bytes(0)).await?;
                let mut mtr = self.cleanup.mtr(permit);
                heap(table).free_fragment(&self.cleanup, &mut mtr, &room, fragment);
                self.cleanup.undo().undone(&mut mtr, writer, record.prev);
                mtr.commit();
                return Ok(());
            }
            Record::Insert { table, rid } => (table, rid, true),
            Record::Delete { table, rid, .. } => (table, rid, false),
            Record::Update { table, rid, keys_changed, .. } => (table, rid, keys_changed),
        };
        let stored =
            self.stored(rid).await?.ok_or_else(|| EngineError::damaged(format!("row {rid:?} to undo is gone")))?;
        if stored.header.writer != writer.txn || stored.header.undo != ptr {
            return Err(EngineError::damaged(format!("row {rid:?} does not name the record to undo (invariant 2)")));
        }
        let current = self.payload(table, stored.clone()).await?;
        let older = self.older(table, rid, current.clone()).await?;
        let definition = catalog.table_by_oid(table);
        let undoing = Undoing { rid, table, definition, stored: &stored, current, older, keys_changed };
        self.undo_row(writer, &undoing, record).await
    }

    async fn note_undone(&self, writer: &mut UndoWriter, next: UndoPtr) -> Result<()> {
        let permit = self.cleanup.reserve(UndoSpace::log_bytes(0)).await?;
        let mut mtr = self.cleanup.mtr(permit);
        self.cleanup.undo().undone(&mut mtr, writer, next);
        mtr.commit();
        Ok(())
    }

    /// Index entries, then the row and the note in one mini-transaction. Stripes are held over both: otherwise purge
    /// could judge an entry by the version that is about to go.
    async fn undo_row(&self, writer: &mut UndoWriter, u: &Undoing<'_>, record: &UndoRecord) -> Result<()> {
        let mut keys: Vec<(&crate::catalog::Index, Vec<u8>)> = Vec::new();
        if let Some(table) = u.definition.filter(|_| u.keys_changed) {
            for index in &table.indexes {
                let key = key::encode_key(index, RowView { table, bytes: &u.current.payload });
                let kept = u.older.as_ref().is_some_and(|o| key::encode_key(index, o.view(table)) == key);
                if !kept {
                    keys.push((index, key));
                }
            }
        }
        let _stripes = self.lock_stripes(keys.iter().map(|(i, k)| self.stripe(i.oid, k)).collect()).await;
        if let (false, Some(table)) = (keys.is_empty(), u.definition) {
            let hold = self.active.hold();
            let older = match &u.older {
                Some(older) => self.needed_since(hold.low(), u.table, u.rid, older.clone()).await?,
                None => Vec::new(),
            };
            for (index, key) in keys {
                // Invariant 4.
                if older.iter().any(|(v, changed)| *changed && key::encode_key(index, v.view(table)) == key) {
                    continue;
                }
                index.tree().remove(&self.cleanup, &key::entry(key, u.rid)).await?;
            }
        }
        self.restore(writer, u, record).await
    }

    /// The compensation.
    async fn restore(&self, writer: &mut UndoWriter, u: &Undoing<'_>, record: &UndoRecord) -> Result<()> {
        let row = match &u.older {
            None => None,
            Some(_) => Some(self.stored_before(u, record)?),
        };
        let heap = heap(u.table);
        // A deletion's chain is the older version's too.
        let was_delete = matches!(Record::decode(&record.body)?, Record::Delete { .. });
        let doomed = match is_chained(&u.stored.header) && !was_delete {
            true => Heap::only_fragment(&self.store, &u.stored.bytes)?,
            false => None,
        };
        let mut spill: Option<Spill> = None;
        loop {
            let page = heap.pin_row(&self.cleanup, u.rid).await?;
            let doomed = match doomed {
                Some(fragment) => Some((heap.pin_row(&self.cleanup, fragment.rid).await?, fragment)),
                None => None,
            };
            let spilled = match &spill {
                Some(spill) => Some((heap.find_spill_room(&self.cleanup, spill).await?, spill)),
                None => None,
            };
            let len = row.as_ref().map_or(0, |r| r.bytes.len());
            let permit = self.cleanup.reserve(2 * len + 2 * ROW_LOG + LOG_EXTRA).await?;
            if self.compensate(
                permit,
                writer,
                u,
                PinnedPages { row: page, doomed, spill: spilled },
                row.as_ref(),
                record.prev,
            ) {
                return Ok(());
            }
            // Invariant 3.
            match &row {
                Some(row) if !is_chained(&row.header) => {
                    spill.get_or_insert_with(|| Heap::spill(&self.store, &row.bytes));
                }
                _ => return Err(EngineError::damaged(format!("a stub does not fit at {:?}", u.rid))),
            }
        }
    }

    /// The stored form of the older version.
    fn stored_before(&self, u: &Undoing<'_>, record: &UndoRecord) -> Result<StoredRow> {
        let older = u.older.as_ref().expect("an update or a deletion has an older version");
        let bytes = match Record::decode(&record.body)? {
            Record::Update { old: Old::Whole(bytes), .. } => bytes.to_vec(),
            Record::Delete { .. } => u.stored.bytes.clone(),
            _ => older.payload.clone(),
        };
        Ok(StoredRow { header: older.header, bytes })
    }

    /// All of the undoing of a row's record, or nothing where the row or its fragment does not fit.
    fn compensate(
        &self,
        permit: LogPermit,
        writer: &mut UndoWriter,
        u: &Undoing<'_>,
        rooms: PinnedPages<'_>,
        row: Option<&StoredRow>,
        next: UndoPtr,
    ) -> bool {
        let (store, heap) = (&self.cleanup, heap(u.table));
        let mut mtr = store.mtr(permit);
        // R3: heap pages before map pages, each from left to right.
        let others = [rooms.doomed.as_ref().map(|d| &d.0), rooms.spill.as_ref().map(|s| &s.0)];
        let all: Vec<&PinnedHeapPage> = others.into_iter().flatten().chain([&rooms.row]).collect();
        let mut pages: Vec<_> = all.iter().map(|room| &room.page).collect();
        pages.sort_by_key(|pin| pin.id().no);
        let mut maps: Vec<_> = all.iter().map(|room| &room.map).collect();
        maps.sort_by_key(|pin| pin.id().no);
        for page in pages.into_iter().chain(maps) {
            mtr.latch(page);
        }
        let at = mtr.latch(&rooms.row.page);
        let header = slotted::cell(mtr.page(at), u.rid.slot).map(RowHeader::decode);
        assert!(header == Some(u.current.header), "the row is its writer's own (invariant 2)");
        let spilled = rooms.spill.is_some();
        let mut stub = None;
        if let (Some((room, spill)), Some(row)) = (rooms.spill, row) {
            let Some(bytes) = heap.insert_spill(store, &mut mtr, room, spill) else { return false };
            stub = Some(StoredRow { header: RowHeader { flags: row.header.flags | CHAINED, ..row.header }, bytes });
        }
        match stub.as_ref().or(row) {
            None => heap.free(store, &mut mtr, at, &rooms.row.map, u.rid.slot),
            Some(row) => {
                if !heap.replace(store, &mut mtr, at, &rooms.row.map, u.rid.slot, row) {
                    assert!(!spilled, "a stub takes the place of any row");
                    return false;
                }
            }
        }
        if let Some((room, fragment)) = rooms.doomed {
            heap.free_fragment(store, &mut mtr, &room, fragment);
        }
        store.undo().undone(&mut mtr, writer, next);
        mtr.commit();
        true
    }
}

#[cfg(test)]
mod tests;
