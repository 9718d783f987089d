//! Reading one row by its key without a snapshot. Most reads of a transactional client are of this kind.
//!
//! 1. The version that is read is the row's newest one, and its writer ended before the read began (`Active::low`) or
//!    is the reader. Any READ COMMITTED snapshot taken meanwhile sees the same version. In all other cases (a newer
//!    writer, a deleted or chained row, another key behind the entry, a page that is not in memory) the caller must use
//!    a snapshot.
//! 2. If there is no entry with the key, no committed row has it: a row's entries are added before its commit and
//!    removed when nobody needs the row any more.
//! 3. An index younger than the read may lack entries. Its `created_by` says so.
//! 4. The read takes no lock on the table. So nobody may be changing the table's definition, and the catalogue, read
//!    after `low`, must be the one that the definition comes from. Rows of a later definition then have later writers
//!    than `low`, because the catalogue is published before the lock is released. The same holds for rows of another
//!    object in pages that were the table's.
use crate::catalog::{Index, Table};
use crate::database::{Core, Database};
use crate::error::Result;
use crate::key;
use crate::record::{is_chained, is_deleted};
use crate::row::RowView;
use crate::txn::{Isolation, Txn, Version};
use crate::types::Datum;
use terrace_storage::heap::Heap;
use terrace_storage::{DATA, PageId, Rid, TxnId};

#[cfg(test)]
mod tests;

/// What a look without a snapshot found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peek<R> {
    Found(R),
    /// There is no such row.
    Missing,
    /// A snapshot has to tell (invariant 1).
    Unsure,
}

impl Core {
    /// `version`: of the catalogue that the definition is of, where the table is not locked.
    fn peek<R>(
        &self,
        own: TxnId,
        version: Option<u64>,
        table: &Table,
        index: &Index,
        values: &[Datum],
        read: impl FnOnce(Rid, Version, RowView<'_>) -> R,
    ) -> Result<Peek<R>> {
        assert_eq!(values.len(), index.columns.len(), "a full key of \"{}\"", index.name);
        assert!(index.is_immediate(), "\"{}\" may have several rows of one key", index.name);
        let prefix = key::encode_prefix(table, index, values)?;
        // Before all that it judges.
        let low = self.active.low();
        let changed = |version| self.locks.is_reserved(table.oid) || self.catalog.read().version() != version;
        if index.created_by >= low || version.is_some_and(changed) {
            return Ok(Peek::Unsure);
        }
        let rid = match index.tree().peek_prefix(&self.store, &prefix, |entry| entry.map(key::rid_of)) {
            None => return Ok(Peek::Unsure),
            Some(None) => return Ok(Peek::Missing),
            Some(Some(rid)) => rid,
        };
        let Some(pin) = self.store.pool().get(PageId::new(DATA, rid.page)) else { return Ok(Peek::Unsure) };
        let found = Heap::peek(&pin, rid.slot, |header, bytes| {
            let settled = header.writer < low || header.writer == own;
            if !settled || is_deleted(&header) || is_chained(&header) {
                return Peek::Unsure;
            }
            let row = RowView { table, bytes };
            let same = |(column, value): (&usize, &Datum)| row.get(*column).cmp_key(value.as_ref()).is_eq();
            if !index.columns.iter().zip(values).all(same) {
                return Peek::Unsure;
            }
            Peek::Found(read(rid, Version { writer: header.writer, undo: header.undo }, row))
        });
        // An empty slot: the row was purged a moment ago.
        Ok(found.unwrap_or(Peek::Unsure))
    }
}

impl Database {
    /// Looks a row up by the full key (without NULLs) of a unique index as a READ COMMITTED transaction of its own
    /// would, at once; `read` sees it under a latch: short, and without waiting. Table and index are those of the
    /// catalogue of that `version`; where that is not the committed one, or somebody is about to change the table's
    /// definition, the answer is `Unsure`.
    pub fn peek<R>(
        &self,
        version: u64,
        table: &Table,
        index: &Index,
        values: &[Datum],
        read: impl FnOnce(RowView<'_>) -> R,
    ) -> Result<Peek<R>> {
        let found = self.0.peek(TxnId::NONE, Some(version), table, index, values, |_, _, row| read(row))?;
        if !matches!(found, Peek::Unsure) {
            self.0.usage.looked_up(index.oid, matches!(found, Peek::Found(_)));
        }
        Ok(found)
    }
}

impl Txn {
    /// As [`Database::peek`], for a statement of this transaction, which is READ COMMITTED (else: unsure) and has
    /// locked the table.
    pub fn peek<R>(
        &mut self,
        table: &Table,
        index: &Index,
        values: &[Datum],
        read: impl FnOnce(Rid, Version, RowView<'_>) -> R,
    ) -> Result<Peek<R>> {
        if self.isolation() != Isolation::ReadCommitted {
            return Ok(Peek::Unsure);
        }
        let found = self.core().peek(self.own(), None, table, index, values, read)?;
        if !matches!(found, Peek::Unsure) {
            self.tally(index.oid, matches!(found, Peek::Found(_)));
        }
        Ok(found)
    }
}
