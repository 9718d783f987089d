//! Purge: removes what finished transactions left behind, once no snapshot needs it.
//!
//! 1. Purge consumes histories in the order in which transactions ended, each when its id is below the horizon
//!    (invariants 2 and 3 of `snapshots`), its records oldest first. A transaction that has ended but not left is above
//!    the horizon, and so are all that follow it in its segment. One that has left is among the histories, because
//!    leaving is one step (`TxnResources::become_visible`).
//! 2. Purge removes an index entry when no needed version of its row has its key. It decides this under the key's
//!    stripe, where nobody adds or removes the entry.
//! 3. The slot of a deleted row is freed after its entries are gone (R8). Every decision is made from the row as it is
//!    now, so repeating a history after a crash does no harm.
//! 4. Chains are freed after everything else of their history is done, and before the history is consumed. After a
//!    crash in between, this is repeated: a chain that is not whole any more shows that the entries of its version are
//!    gone, and freeing goes on where it stopped.
//! 5. A history that could not be purged (a device's error, a damaged page) is tried again after a rest, from its
//!    beginning, for ever. By 3 and 4 that does no harm. The histories behind it wait. Purge ends only when storage has
//!    stopped. Once the undo of a history is being given back, everything else of it is done, and only giving back goes
//!    on: its other pages may belong to another transaction by then.
//! 6. A row's newest version may belong to a transaction that has added columns and has not committed yet. It is read
//!    by that transaction's definition.
//! 7. A transaction that was rolled back has nothing to remove. It is consumed in its turn nevertheless, because
//!    readers may still be walking its records.
use crate::catalog::Table;
use crate::database::Core;
use crate::error::{EngineError, Result};
use crate::key;
use crate::leaving;
use crate::record::{Old, Record, is_chained, is_deleted};
use crate::row::RowView;
use crate::snapshots::Snapshot;
use crate::txn::LOG_EXTRA;
use crate::versions::{RowVersion, heap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use terrace_env::Nanos;
use terrace_storage::config::Safeguard;
use terrace_storage::heap::{RowHeader, StoredRow};
use terrace_storage::page::slotted;
use terrace_storage::undo::{History, UndoRecord};
use terrace_storage::{DATA, ObjectId, Rid, TxnId, UndoPtr};

/// Rest between rounds while snapshots hold purge up.
const BLOCKED_REST: Duration = Duration::from_millis(50);
/// Rest after the first failure in a row; doubled with each, up to the second.
const FAILED_REST: Duration = Duration::from_millis(100);
const FAILED_REST_MAX: Duration = Duration::from_secs(10);
/// Undo counts as full when less than this is left, two extents: at the limit itself writers fail.
const UNDO_GRACE: u64 = 2 << 20;
/// Records held in memory at a time.
const CHUNK: usize = 4096;

/// Failures of purge since opening.
#[derive(Clone, Debug, Default)]
pub(crate) struct PurgeFailures {
    pub(crate) count: u64,
    /// Unix microseconds, and what it was.
    pub(crate) last: Option<(i64, String)>,
}

/// A chain to free when its history is consumed.
struct Chain {
    table: ObjectId,
    stub: Vec<u8>,
}

impl Core {
    /// The background task. Ends with the database.
    pub(crate) fn spawn_purge(self: &Arc<Self>) {
        let (wanted, weak) = (self.purge_wanted.clone(), Arc::downgrade(self));
        let rest = self.env.clone();
        self.store.spawn("purge", async move {
            let mut failed_rest = FAILED_REST;
            loop {
                wanted.notified().await;
                loop {
                    let Some(core) = weak.upgrade() else { return };
                    if core.closing.load(Ordering::Acquire) || core.check_alive().is_err() {
                        return;
                    }
                    let purged = match core.purge_now().await {
                        Ok(()) => core.limit_snapshots().await,
                        failed => failed,
                    };
                    let pause = match purged {
                        Ok(()) if core.histories.lock().is_empty() => break,
                        Ok(()) => {
                            failed_rest = FAILED_REST;
                            BLOCKED_REST
                        }
                        Err(e) if core.store.failure().is_some() => {
                            tracing::error!("purge stopped with the storage: {e}");
                            return;
                        }
                        Err(e) => {
                            core.purge_failed(&e, failed_rest);
                            let now = failed_rest;
                            failed_rest = (failed_rest * 2).min(FAILED_REST_MAX);
                            now
                        }
                    };
                    drop(core);
                    rest.sleep(pause).await;
                }
            }
        });
    }

    /// Invariant 5.
    fn purge_failed(&self, why: &EngineError, rest: Duration) {
        tracing::error!("purge failed and goes on in {rest:?}: {why}");
        let mut failures = self.purge_failures.lock();
        failures.count += 1;
        failures.last = Some((self.env.unix_micros(), why.message.clone()));
    }

    /// Consumes every history that is below the horizon.
    pub(crate) async fn purge_now(&self) -> Result<()> {
        let _one = self.purging.lock().await;
        self.read_histories().await?;
        while !self.closing.load(Ordering::Acquire) {
            let in_order = self.guards(Safeguard::HistoryOrder);
            let Some(history) = leaving::next(&self.active, &self.histories, in_order) else { break };
            self.purge_history(&history).await?;
            let done = self.histories.lock().remove(history.seq);
            assert!(done, "only purge takes histories, and one at a time");
        }
        Ok(())
    }

    /// While undo is full and snapshots keep it so, gives up those beyond the age limit, one at a time, and purges what
    /// that sets free.
    async fn limit_snapshots(&self) -> Result<()> {
        while self.undo_is_full() {
            let Some(oldest) = self.histories.lock().first().map(|history| history.txn) else { break };
            let now = self.env.now().0;
            let limit = Nanos(now.saturating_sub(self.config.snapshot_age_max.as_nanos() as u64));
            let Some(given_up) = self.active.give_up_one(oldest, limit) else { break };
            self.snapshots_cancelled.fetch_add(1, Ordering::Relaxed);
            let whose = if given_up.underway { "a statement under way" } else { "an idle transaction" };
            let age = Duration::from_nanos(now.saturating_sub(given_up.since.0));
            tracing::warn!("undo space is full: {whose} loses its snapshot, taken {age:?} ago");
            self.purge_now().await?;
        }
        Ok(())
    }

    fn undo_is_full(&self) -> bool {
        self.cleanup.undo().used_bytes() + UNDO_GRACE > self.config.undo_size_max
    }

    async fn purge_history(&self, history: &History) -> Result<()> {
        if self.cleanup.undo().is_leaving(history) {
            return Ok(self.cleanup.undo().consumed(&self.cleanup, history).await?);
        }
        let hold = self.active.hold();
        let mut chains = Vec::new();
        let mut objects = Vec::new();
        for chunk in self.chunks(history).await?.into_iter().rev() {
            for (ptr, record) in self.chunk(history, chunk).await?.into_iter().rev() {
                self.purge_record(&hold, ptr, &record, &mut chains, &mut objects).await?;
            }
        }
        for object in objects {
            self.cleanup.space(DATA).free_object(&self.cleanup, object).await?;
        }
        for chain in chains {
            // The table may have been dropped by a later transaction; its pages are still there, for that one is purged
            // later.
            heap(chain.table).free_chain(&self.cleanup, &chain.stub).await?;
        }
        Ok(self.cleanup.undo().consumed(&self.cleanup, history).await?)
    }

    /// Where each chunk of a history begins (at its newest record), newest chunk first: a large history is not held in
    /// memory whole.
    async fn chunks(&self, history: &History) -> Result<Vec<UndoPtr>> {
        let (mut starts, mut n) = (Vec::new(), 0);
        let mut ptr = history.last;
        while !ptr.is_none() {
            if n % CHUNK == 0 {
                starts.push(ptr);
            }
            n += 1;
            ptr = self.cleanup.undo().read(&self.cleanup, ptr).await?.prev;
        }
        Ok(starts)
    }

    /// The records of a chunk, newest first.
    async fn chunk(&self, history: &History, mut ptr: UndoPtr) -> Result<Vec<(UndoPtr, UndoRecord)>> {
        let mut out = Vec::new();
        while !ptr.is_none() && out.len() < CHUNK {
            let record = self.cleanup.undo().read(&self.cleanup, ptr).await?;
            if record.txn != history.txn {
                let (owner, found) = (history.txn, record.txn);
                return Err(EngineError::new("XX001", format!("undo of {owner:?} leads to a record of {found:?}")));
            }
            let prev = record.prev;
            out.push((ptr, record));
            ptr = prev;
        }
        Ok(out)
    }

    async fn purge_record(
        &self,
        hold: &Snapshot,
        ptr: UndoPtr,
        record: &UndoRecord,
        chains: &mut Vec<Chain>,
        objects: &mut Vec<ObjectId>,
    ) -> Result<()> {
        match Record::decode(&record.body)? {
            Record::Insert { .. } | Record::Created(_) | Record::Fragment { .. } => {}
            Record::Dropped(object) => objects.push(object),
            Record::Delete { table, rid, before, stub } => {
                // A dropped table goes with all its pages.
                if let Some(definition) = self.catalog().table_by_oid(table) {
                    let header = |row: &StoredRow| row.header.writer == record.txn && row.header.undo == ptr;
                    let row = self.stored(rid).await?.filter(|row| header(row) && is_deleted(&row.header));
                    if let Some(row) = row {
                        self.purge_deleted(definition, rid, row).await?;
                    }
                    if is_chained(&before) {
                        chains.push(Chain { table, stub: stub.to_vec() });
                    }
                }
            }
            Record::Update { table, rid, before, keys_changed, old } => {
                if !keys_changed && !is_chained(&before) {
                    return Ok(());
                }
                if let (Some(definition), Old::Whole(bytes)) = (self.catalog().table_by_oid(table), &old) {
                    if keys_changed {
                        self.purge_keys(hold, definition, rid, &before, bytes).await?;
                    }
                    if is_chained(&before) {
                        chains.push(Chain { table, stub: bytes.to_vec() });
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes a deleted row that nobody sees: its entries, then its slot.
    async fn purge_deleted(&self, table: &Arc<Table>, rid: Rid, row: StoredRow) -> Result<()> {
        let version = self.payload(table.oid, row.clone()).await?;
        let entries_first = self.guards(Safeguard::EntriesFirst);
        if !entries_first {
            self.free_slot(table, rid, &row).await?;
        }
        for index in &table.indexes {
            let key = key::encode_key(index, version.view(table));
            let _stripe = self.lock_stripe(index.oid, &key).await;
            index.tree().remove(&self.cleanup, &key::entry(key, rid)).await?;
        }
        if entries_first {
            self.free_slot(table, rid, &row).await?;
        }
        Ok(())
    }

    async fn free_slot(&self, table: &Table, rid: Rid, row: &StoredRow) -> Result<()> {
        let heap = heap(table.oid);
        let room = heap.pin_row(&self.cleanup, rid).await?;
        let permit = self.cleanup.reserve(LOG_EXTRA).await?;
        {
            let mut mtr = self.cleanup.mtr(permit);
            let at = mtr.latch(&room.page);
            let header = slotted::cell(mtr.page(at), rid.slot).map(RowHeader::decode);
            assert!(header == Some(row.header), "a row deleted for everybody does not change");
            heap.free(&self.cleanup, &mut mtr, at, &room.map, rid.slot);
            mtr.commit();
        }
        Ok(())
    }

    /// Removes the entries of the keys that a row no longer has for anybody.
    async fn purge_keys(
        &self,
        hold: &Snapshot,
        table: &Arc<Table>,
        rid: Rid,
        before: &RowHeader,
        bytes: &[u8],
    ) -> Result<()> {
        let read;
        let payload = match is_chained(before) {
            false => bytes,
            true => {
                read = heap(table.oid).read_if_whole(&self.store, bytes).await?;
                match &read {
                    Ok(payload) => payload,
                    // Invariant 4.
                    Err(_) => return Ok(()),
                }
            }
        };
        for index in &table.indexes {
            let key = key::encode_key(index, RowView { table, bytes: payload });
            let _stripe = self.lock_stripe(index.oid, &key).await;
            let (needed, definition) = self.read_needed(hold.low(), table, rid).await?;
            if !needed.iter().any(|v| key::encode_key(index, v.view(&definition)) == key) {
                index.tree().remove(&self.cleanup, &key::entry(key, rid)).await?;
            }
        }
        Ok(())
    }

    /// The needed versions of a row, and a definition that can read them: that of the transaction under way that has
    /// written with columns of its own, if there is one.
    async fn read_needed(&self, low: TxnId, table: &Arc<Table>, rid: Rid) -> Result<(Vec<RowVersion>, Arc<Table>)> {
        // The second time where that transaction has been undone since the row was read.
        for _ in 0..2 {
            let needed = self.all_needed(low, table.oid, rid).await?;
            let under_way = self.redefined.lock().get(&table.oid).cloned();
            let definition = under_way.or_else(|| self.catalog().table_by_oid(table.oid).cloned());
            let definition = definition.unwrap_or_else(|| table.clone());
            if needed.iter().all(|version| version.view(&definition).is_known()) {
                return Ok((needed, definition));
            }
        }
        Err(EngineError::damaged(format!("row {rid:?} has more columns than table \"{}\"", table.name)))
    }
}

#[cfg(test)]
mod tests;
