//! Index entries of new versions, and uniqueness (R7).
//!
//! 1. The row is written before its entries. An entry is added under its key's stripe.
//! 2. Under the stripe, every other row with an entry of the same key is judged by its versions. If the newest settled
//!    version has this key and is not deleted, it is a duplicate. If it depends on the outcome of a running
//!    transaction, the stripe is released and the transaction waits for that outcome.
//! 3. A row version whose key has a NULL is a duplicate of nothing.
//! 4. Under SERIALIZABLE, a judgement by a version that the snapshot does not see is 40001: whether the key is taken
//!    then or not, the transaction would know what it must not see.
//! 5. A deferrable index takes a row's entry whatever the judgement says. If it is not that the key is free, the row is
//!    noted (`notes`) and judged again at the end of the statement or of the transaction. Of two rows with a key, the
//!    one whose entry comes later, under the key's stripe, sees the other's: so it is enough that this one is noted. A
//!    commit waits for the other's transaction, if it is running.
//! 6. The judgement uses the newest versions, and those that a running transaction may bring back. It does not use the
//!    snapshot, so it makes no difference that the snapshot may have been given up (`snapshots`, invariant 5).
use super::notes::Event;
use super::{Txn, Version};
use crate::catalog::{Index, Table};
use crate::database::Core;
use crate::error::{EngineError, Result, Shown};
use crate::key;
use crate::locks::TxnState;
use crate::row::{RowBuf, RowView};
use crate::serializable::Piece;
use crate::snapshots::Snapshot;
use crate::types::Datum;
use crate::versions::RowVersion;
use std::ops::Bound;
use std::sync::Arc;
use terrace_storage::btree::Direction;
use terrace_storage::{ObjectId, Rid, TxnId};

#[cfg(test)]
mod tests;

enum Conflict {
    None,
    /// Of this row.
    Duplicate(Rid),
    /// Depends on how this transaction ends.
    Pending(Arc<TxnState>),
    /// Invariant 4.
    Unseen,
}

impl Txn {
    /// Adds a row's entry to an index. 23505 on a duplicate.
    pub(super) async fn add_entry(&mut self, table: &Table, index: &Arc<Index>, row: &[u8], rid: Rid) -> Result<()> {
        let view = RowView { table, bytes: row };
        let prefix = key::encode_key(index, view);
        if !key::is_one_rows_of(index, view) {
            let core = self.core().clone();
            let _stripe = core.lock_stripe(index.oid, &prefix).await;
            index.tree().insert(&core.store, &key::entry(prefix, rid)).await?;
            return Ok(());
        }
        if index.is_immediate() {
            return self.take_key(table, index, prefix, rid, true).await;
        }
        let core = self.core().clone();
        let (own, only_seen) = (self.own(), self.only_seen());
        let stripe = core.lock_stripe(index.oid, &prefix).await;
        let conflict = core.conflict(own, only_seen.as_deref(), table, index, &prefix, rid).await?;
        index.tree().insert(&core.store, &key::entry(prefix, rid)).await?;
        drop(stripe);
        if !matches!(conflict, Conflict::None) {
            let deferred = self.notes().defers(index.oid, index.is_deferred());
            self.notes().note(Event::Shared(index.clone(), rid), deferred);
        }
        Ok(())
    }

    /// 23505 where another row has the key of this one in a deferrable index (invariant 5).
    pub(super) async fn judge_shared(&mut self, index: &Index, rid: Rid) -> Result<()> {
        let catalog = self.catalog();
        let Some(table) = catalog.table_by_oid(index.table) else { return Ok(()) };
        // What is judged is in the catalogue: SET CONSTRAINTS comes before a change of the table.
        let Some(row) = self.written(table, rid).await? else { return Ok(()) };
        let view = row.view(table);
        match key::is_one_rows_of(index, view) {
            true => self.take_key(table, index, key::encode_key(index, view), rid, false).await,
            false => Ok(()),
        }
    }

    /// Under SERIALIZABLE, what invariant 4 needs.
    fn only_seen(&mut self) -> Option<Arc<Snapshot>> {
        self.resources.serial.is_some().then(|| self.snapshot())
    }

    /// Waits until no other row has the key: 23505, 40001. `adds`: and adds the row's entry under the key's stripe.
    async fn take_key(&mut self, table: &Table, index: &Index, key: Vec<u8>, rid: Rid, adds: bool) -> Result<()> {
        let (own, only_seen) = (self.own(), self.only_seen());
        let core = self.core().clone();
        loop {
            let stripe = core.lock_stripe(index.oid, &key).await;
            match core.conflict(own, only_seen.as_deref(), table, index, &key, rid).await? {
                Conflict::None => {
                    if adds {
                        index.tree().insert(&core.store, &key::entry(key, rid)).await?;
                    }
                    return Ok(());
                }
                Conflict::Duplicate(_) => {
                    let what = key::describe(table, index, &key);
                    return Err(EngineError::duplicate_key(table, index, what));
                }
                Conflict::Pending(holder) => {
                    drop(stripe);
                    core.wait(self.resources.owner, &holder, self.lock_timeout).await?;
                }
                Conflict::Unseen => {
                    let what = key::describe(table, index, &key);
                    let error = EngineError::dependencies(&format!("Canceled on concurrent change of key {what}."));
                    let instead = "Reason code: Canceled on concurrent change of a key.".to_owned();
                    return Err(error.showing(table, Shown::Key(index.keys().to_vec(), Some(instead))));
                }
            }
        }
    }
}

/// The result of an insert that does not fail on a duplicate.
#[derive(Clone, Debug)]
pub enum InsertOutcome {
    Done(Rid),
    /// Another row has the key: its newest version, which nobody was writing at that moment.
    Conflict {
        rid: Rid,
        row: RowBuf,
        version: Version,
    },
}

/// The address of no row: the row that is looked for does not exist yet.
const NOWHERE: Rid = Rid { page: u32::MAX, slot: u16::MAX };

impl Txn {
    /// Inserts a row unless another has its key in one of the `arbiters` (unique indexes of the table); waits for
    /// transactions on whose end that depends. 23505 where the key is taken in another unique index; 40001 under
    /// REPEATABLE READ where the snapshot does not see the row in conflict.
    pub async fn insert_unless(
        &mut self,
        table: &Table,
        row: &[Datum],
        arbiters: &[ObjectId],
    ) -> Result<InsertOutcome> {
        let encoded = RowBuf::encode(table, row)?;
        let snapshot = self.snapshot();
        self.lock_table(table, true).await?;
        loop {
            if let Some((rid, found)) = self.taken(table, encoded.view(table), arbiters).await? {
                if self.isolation.is_repeatable() && !snapshot.sees(found.header.writer, self.own()) {
                    return Err(EngineError::serialization());
                }
                let (row, version) = found.into_row();
                return Ok(InsertOutcome::Conflict { rid, row, version });
            }
            let mark = self.savepoint();
            match self.insert(table, row).await {
                Ok(rid) => return Ok(InsertOutcome::Done(rid)),
                Err(e) if e.state.0 == "23505" => {
                    let arbiter =
                        |name: &str| table.indexes.iter().any(|i| i.name == name && arbiters.contains(&i.oid));
                    if !e.constraint.as_deref().is_some_and(arbiter) {
                        return Err(e);
                    }
                    // Somebody was quicker: look again.
                    self.rollback_to(mark).await?;
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// The row that has the key of `row` in one of the indexes, settled.
    async fn taken(
        &mut self,
        table: &Table,
        row: RowView<'_>,
        arbiters: &[ObjectId],
    ) -> Result<Option<(Rid, RowVersion)>> {
        let core = self.core().clone();
        for index in table.indexes.iter().filter(|i| arbiters.contains(&i.oid)) {
            assert!(index.is_immediate(), "an arbiter is unique at all times");
            if !key::is_one_rows_of(index, row) {
                continue;
            }
            let prefix = key::encode_key(index, row);
            if let Some(serial) = &self.resources.serial {
                serial.reads(table.oid, Piece::key(index.oid, &prefix))?;
            }
            loop {
                let stripe = core.lock_stripe(index.oid, &prefix).await;
                let conflict = core.conflict(self.own(), None, table, index, &prefix, NOWHERE).await?;
                drop(stripe);
                let holder = match conflict {
                    Conflict::None => break,
                    Conflict::Pending(holder) => holder,
                    Conflict::Unseen => unreachable!("all is judged"),
                    Conflict::Duplicate(rid) => match core.settled(self.own(), table.oid, rid).await? {
                        Some((found, None)) if found.is_live() => {
                            if key::encode_key(index, found.view(table)) == prefix {
                                return Ok(Some((rid, found)));
                            }
                            continue;
                        }
                        Some((_, Some(holder))) => holder,
                        // It went meanwhile.
                        _ => continue,
                    },
                };
                core.wait(self.resources.owner, &holder, self.lock_timeout).await?;
            }
        }
        Ok(None)
    }
}

impl Core {
    /// Whether another row has the key (invariant 2). Under the key's stripe. `only_seen`: invariant 4.
    async fn conflict(
        &self,
        own: TxnId,
        only_seen: Option<&Snapshot>,
        table: &Table,
        index: &Index,
        prefix: &[u8],
        rid: Rid,
    ) -> Result<Conflict> {
        let tree = index.tree();
        let Some(first) = tree.first_with_prefix(&self.store, prefix).await? else { return Ok(Conflict::None) };
        let mut pending = None;
        let mut entries = vec![first.clone()];
        let to = key::after_prefix(prefix.to_vec()).map_or(Bound::Unbounded, Bound::Excluded);
        let mut cursor = tree.cursor(Bound::Excluded(first), to, Direction::Forward);
        while !entries.is_empty() {
            for entry in entries {
                let other = key::rid_of(&entry);
                if other == rid {
                    continue;
                }
                match self.judge(own, only_seen, table, index, prefix, other).await? {
                    Conflict::None => {}
                    done @ (Conflict::Duplicate(_) | Conflict::Unseen) => return Ok(done),
                    Conflict::Pending(holder) => pending = pending.or(Some(holder)),
                }
            }
            entries = cursor.next_batch(&self.store, &tree).await?;
        }
        Ok(pending.map_or(Conflict::None, Conflict::Pending))
    }

    async fn judge(
        &self,
        own: TxnId,
        only_seen: Option<&Snapshot>,
        table: &Table,
        index: &Index,
        prefix: &[u8],
        rid: Rid,
    ) -> Result<Conflict> {
        let Some((newest, holder)) = self.settled(own, table.oid, rid).await? else { return Ok(Conflict::None) };
        let has_key = |row: &[u8]| key::encode_key(index, RowView { table, bytes: row }) == prefix;
        let Some(holder) = holder else {
            if only_seen.is_some_and(|snapshot| !snapshot.sees(newest.header.writer, own)) {
                return Ok(Conflict::Unseen);
            }
            let duplicate = newest.is_live() && has_key(&newest.payload);
            return Ok(if duplicate { Conflict::Duplicate(rid) } else { Conflict::None });
        };
        // Its writer is running: whichever way it ends, one of its versions or the one before them will stand.
        let mut version = Some(newest);
        while let Some(v) = version {
            if v.is_live() && has_key(&v.payload) {
                return Ok(Conflict::Pending(holder));
            }
            if v.header.writer != holder.id {
                break;
            }
            version = match self.older(table.oid, rid, v).await {
                Ok(older) => older,
                // The transaction undid it meanwhile: judge again.
                Err(_) => return Ok(Conflict::Pending(holder)),
            };
        }
        Ok(Conflict::None)
    }
}
