//! Index entries of new versions, and uniqueness (R7).
//!
//! 1. The row is written before its entries; an entry is added under its key's stripe.
//! 2. Under the stripe, every other row with an entry of the same key is judged by its versions: the newest settled one with this key and
//!    not deleted is a duplicate; one that depends on the outcome of a running transaction is waited for, the stripe released.
//! 3. A row version whose key has a NULL is a duplicate of nothing.
use super::Txn;
use crate::catalog::{Index, Table};
use crate::database::Core;
use crate::error::{EngineError, Result};
use crate::key;
use crate::locks::TxnState;
use crate::rollback::entry;
use crate::row::RowView;
use std::ops::Bound;
use std::sync::Arc;
use terrace_storage::btree::Direction;
use terrace_storage::{Rid, TxnId};

enum Conflict {
    None,
    Duplicate,
    /// Depends on how this transaction ends.
    Pending(Arc<TxnState>),
}

impl Txn {
    /// Adds a row's entry to an index. 23505 on a duplicate.
    pub(super) async fn add_entry(&mut self, table: &Table, index: &Index, row: &[u8], rid: Rid) -> Result<()> {
        let view = RowView { table, bytes: row };
        let prefix = key::encode_key(index, view);
        let unique = index.unique && !key::has_null(index, view);
        let own = self.own();
        let core = self.core().clone();
        loop {
            let stripe = core.lock_stripe(index.oid, &prefix).await;
            let conflict = match unique {
                true => core.conflict(own, table, index, &prefix, rid).await?,
                false => Conflict::None,
            };
            match conflict {
                Conflict::None => {
                    core.tree(index).insert(&core.store, &entry(prefix, rid)).await?;
                    return Ok(());
                }
                Conflict::Duplicate => {
                    let what = key::describe(table, index, &prefix);
                    return Err(EngineError::duplicate_key(&table.name, &index.name, what));
                }
                Conflict::Pending(holder) => {
                    drop(stripe);
                    core.wait(self.ending.owner, &holder, self.lock_timeout).await?;
                }
            }
        }
    }
}

impl Core {
    /// Whether another row has the key (invariant 2). Under the key's stripe.
    async fn conflict(&self, own: TxnId, table: &Table, index: &Index, prefix: &[u8], rid: Rid) -> Result<Conflict> {
        let tree = self.tree(index);
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
                match self.judge(own, table, index, prefix, other).await? {
                    Conflict::None => {}
                    Conflict::Duplicate => return Ok(Conflict::Duplicate),
                    Conflict::Pending(holder) => pending = pending.or(Some(holder)),
                }
            }
            entries = cursor.next_batch(&self.store, &tree).await?;
        }
        Ok(pending.map_or(Conflict::None, Conflict::Pending))
    }

    async fn judge(&self, own: TxnId, table: &Table, index: &Index, prefix: &[u8], rid: Rid) -> Result<Conflict> {
        let Some((newest, holder)) = self.settled(own, table.oid, rid).await? else { return Ok(Conflict::None) };
        let has_key = |row: &[u8]| key::encode_key(index, RowView { table, bytes: row }) == prefix;
        let Some(holder) = holder else {
            let duplicate = newest.is_live() && has_key(&newest.payload);
            return Ok(if duplicate { Conflict::Duplicate } else { Conflict::None });
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
