//! Finding what a foreign key refers to, and what refers to a key.
//!
//! 1. A row that a running transaction has written counts as it was before, if all versions since have the key, too.
//!    If the versions differ in that, its end is waited for. A row that only the running transaction has is not there:
//!    who writes a referring row has to find the key for himself (`foreign`, invariant 3), and who needs a key needs a
//!    committed one.
//! 2. That a key is missing is said only of what was seen under the key's stripe: a transaction that deletes a row and
//!    inserts another of the same key does not end between the two.
//! 3. Referring rows that come or go while they are searched for make no difference: to write one that has the key,
//!    another transaction would have to find the key, which has gone.
//! 4. Under REPEATABLE READ and SERIALIZABLE, a key that the snapshot does not see is missing, and one that only the
//!    snapshot sees is 40001; so is a row that has to be changed and that the snapshot does not see.
//! 5. Under SERIALIZABLE, what the newest versions say of rows that refer to a key must be what the snapshot says, else
//!    it is 40001. The transaction reads them with its snapshot, too, so that its reads are noted.
use super::{mixed, not_present};
use crate::catalog::foreign::{ForeignKey, convert};
use crate::catalog::{Index, Table};
use crate::database::Core;
use crate::error::{EngineError, Result};
use crate::key;
use crate::locks::{LockKey, LockMode, TxnState};
use crate::record::{is_chained, is_deleted};
use crate::row::{RowBuf, RowView};
use crate::txn::{IndexRange, LockWait, RowLock, Scan, ScanDirection, Txn, Version};
use crate::types::Datum;
use crate::versions::RowVersion;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use terrace_env::yield_now;
use terrace_storage::btree::Direction;
use terrace_storage::{Rid, TxnId};

/// How many keys of a table are locked one by one.
const MANY_KEYS: usize = if cfg!(test) { 8 } else { 1 << 14 };

type Referring = (Arc<ForeignKey>, Arc<Table>, Vec<(Rid, RowBuf, Version)>);

/// Values that a row may have in some columns.
pub(super) struct Wanted<'c> {
    columns: &'c [usize],
    bytes: Vec<u8>,
}

impl<'c> Wanted<'c> {
    pub(super) fn new(columns: &'c [usize], values: &[Datum]) -> Wanted<'c> {
        let mut bytes = Vec::new();
        values.iter().for_each(|value| key::encode_datum(&mut bytes, value.as_ref()));
        Wanted { columns, bytes }
    }

    pub(super) fn is_of(&self, row: RowView<'_>) -> bool {
        let mut bytes = Vec::with_capacity(self.bytes.len());
        self.columns.iter().for_each(|&at| key::encode_datum(&mut bytes, row.get(at)));
        bytes == self.bytes
    }
}

/// Values of the referenced columns as the referring columns' types have them; `None`: they cannot have them.
pub(super) fn converted(key: &ForeignKey, table: &Table, values: Vec<Datum>) -> Option<Vec<Datum>> {
    let to = |(&at, value): (&usize, Datum)| convert(value, table.columns[at].data_type);
    key.columns.iter().zip(values).map(to).collect()
}

/// Values of the referring columns as the referenced columns' types have them; `None`: they cannot have them.
fn as_referenced(key: &ForeignKey, referenced: &Table, values: &[Datum]) -> Option<Vec<Datum>> {
    let to = |(&at, value): (&usize, &Datum)| convert(value.clone(), referenced.columns[at].data_type);
    key.key.iter().zip(values).map(to).collect()
}

/// Values of the referenced columns in the order of the index that they are a key of.
fn in_order(key: &ForeignKey, index: &Index, values: &[Datum]) -> Vec<Datum> {
    let place = |column: &usize| key.key.iter().position(|at| at == column).expect("catalog::foreign, invariant 1");
    index.columns.iter().map(|column| values[place(column)].clone()).collect()
}

/// An index of the referring table that begins with the columns of the foreign key.
fn covering<'t>(key: &ForeignKey, table: &'t Table) -> Option<&'t Arc<Index>> {
    let covers = |index: &&Arc<Index>| {
        let first = index.columns.get(..key.columns.len());
        first.is_some_and(|first| first.iter().all(|at| key.columns.contains(at)))
    };
    table.indexes.iter().find(covers)
}

/// Values of the referring columns in the order of an index that begins with them.
fn first_columns(key: &ForeignKey, index: &Index, values: &[Datum]) -> Vec<Datum> {
    let place = |column: &usize| key.columns.iter().position(|at| at == column).expect("the index covers the key");
    index.columns[..key.columns.len()].iter().map(|column| values[place(column)].clone()).collect()
}

/// Whether a row has a key.
enum Fate {
    /// Whichever way running transactions end. `own`: its newest version is this transaction's.
    Stands {
        own: bool,
    },
    Missing,
    /// It depends on the end of this one.
    Depends(Arc<TxnState>),
}

impl Txn {
    /// The error of a row that refers to something which is not there; the row that it refers to is locked (`foreign`,
    /// invariant 3).
    pub(super) async fn missing(
        &mut self,
        key: &Arc<ForeignKey>,
        table: &Table,
        row: RowView<'_>,
    ) -> Result<Option<EngineError>> {
        let nulls = key.columns.iter().filter(|&&at| row.is_null(at)).count();
        if nulls == key.columns.len() || (nulls > 0 && !key.full) {
            return Ok(None);
        }
        if nulls > 0 {
            return Ok(Some(mixed(key, table)));
        }
        let Some((key, referenced)) = self.locked(key, false, |key| key.referenced).await? else { return Ok(None) };
        let values: Vec<Datum> = key.columns.iter().map(|&at| row.get(at).to_datum()).collect();
        let found = match as_referenced(&key, &referenced, &values) {
            Some(wanted) => self.lock_key(&key, &referenced, &wanted).await?,
            None => false,
        };
        Ok((!found).then(|| not_present(&key, table, &referenced, &values)))
    }

    /// The foreign key as it is now, with the table on its other side, locked. `None`: the foreign key has gone.
    async fn locked(
        &mut self,
        key: &Arc<ForeignKey>,
        write: bool,
        side: impl Fn(&ForeignKey) -> terrace_storage::ObjectId + Send,
    ) -> Result<Option<(Arc<ForeignKey>, Arc<Table>)>> {
        loop {
            let catalog = self.catalog();
            // TRUNCATE gives the other side another object id; this transaction has its own side locked.
            let mine = catalog.foreign_key(key.table, key.oid);
            let theirs = || catalog.table_by_oid(key.referenced)?.referenced_by.iter().find(|k| k.oid == key.oid);
            let Some(now) = mine.or_else(theirs).cloned() else { return Ok(None) };
            let table = catalog.table_by_oid(side(&now)).expect("a foreign key has two tables").clone();
            match self.lock_table(&table, write).await {
                Err(error) if error.state.0 == "42P01" => {}
                locked => locked?,
            }
            if self.catalog().version() == catalog.version() {
                return Ok(Some((now, table)));
            }
        }
    }

    /// Locks the row that has the key, so that it stays; false where there is none. `values` as `key.key` has them.
    async fn lock_key(&mut self, key: &ForeignKey, table: &Table, values: &[Datum]) -> Result<bool> {
        let index = table.index(key.index).expect("catalog::foreign, invariant 1");
        let values = in_order(key, index, values);
        let prefix = key::encode_prefix(table, index, &values)?;
        let snapshot = self.snapshot();
        let found = loop {
            if let Some(found) = self.try_lock_key(table, index, &prefix).await? {
                break found;
            }
        };
        let found = snapshot.believe(Ok::<bool, EngineError>(found))?;
        if !self.is_repeatable() {
            return Ok(found);
        }
        // Invariant 4.
        let reader = self.reader();
        let seen = snapshot.believe(self.look_up(&reader, table, index, &values).await)?.is_some();
        match (found, seen) {
            (false, true) => Err(EngineError::serialization()),
            (found, seen) => Ok(found && seen),
        }
    }

    /// `None`: look again.
    async fn try_lock_key(&mut self, table: &Table, index: &Index, prefix: &[u8]) -> Result<Option<bool>> {
        let core = self.core().clone();
        let all = self.notes().locked.get(&table.oid) == Some(&None);
        for rid in core.rows_of(index, prefix).await? {
            let new = match all {
                true => false,
                false => {
                    let entered = self.enter_row_lock(table, rid, RowLock::KeyShare, LockWait::Wait).await?;
                    entered.expect("it waits")
                }
            };
            let fate = core.fate(self.own(), table, index, prefix, rid).await;
            match &fate {
                Ok(Fate::Stands { own: false }) if new => self.count_locked(table)?,
                // Nobody else removes what is this transaction's own.
                _ if new => self.leave_row_lock(),
                _ => {}
            }
            match fate? {
                Fate::Stands { .. } => return Ok(Some(true)),
                Fate::Missing => {}
                Fate::Depends(holder) => {
                    core.wait(self.resources.owner, &holder, self.lock_timeout).await?;
                    return Ok(None);
                }
            }
        }
        // Invariant 2.
        let _stripe = core.lock_stripe(index.oid, prefix).await;
        for rid in core.rows_of(index, prefix).await? {
            if !matches!(core.fate(self.own(), table, index, prefix, rid).await?, Fate::Missing) {
                return Ok(None);
            }
        }
        Ok(Some(false))
    }

    /// One key more is locked: all of them, if these are many (`foreign`, invariant 5).
    fn count_locked(&mut self, table: &Table) -> Result<()> {
        let Some(count) = self.notes().locked.entry(table.oid).or_insert(Some(0)) else { return Ok(()) };
        *count += 1;
        if count.is_multiple_of(MANY_KEYS) {
            let (key, mode) = (LockKey::Keys(table.oid), LockMode::Share);
            let granted = self.core().locks.try_acquire(self.resources.owner, key, mode)?;
            if granted == Some(true) {
                self.resources.locks.push((key, mode));
            }
            if granted.is_some() {
                self.notes().locked.insert(table.oid, None);
            }
        }
        Ok(())
    }

    /// Whether a key that this transaction removed is there again. (Only by its own doing: others wait for its end.)
    pub(super) async fn is_there_again(&mut self, key: &Arc<ForeignKey>, values: &[Datum]) -> Result<bool> {
        let (core, catalog) = (self.core().clone(), self.catalog());
        let table = catalog.table_by_oid(key.referenced).expect("this transaction has it locked");
        let Some(key) = table.referenced_by.iter().find(|k| k.oid == key.oid) else { return Ok(false) };
        let index = table.index(key.index).expect("catalog::foreign, invariant 1");
        let prefix = key::encode_prefix(table, index, &in_order(key, index, values))?;
        for rid in core.rows_of(index, &prefix).await? {
            if matches!(core.fate(self.own(), table, index, &prefix, rid).await?, Fate::Stands { own: true }) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The rows that refer to a key of the referenced table: all, to be changed, or else one. `None`: there are none.
    pub(super) async fn referring(
        &mut self,
        key: &Arc<ForeignKey>,
        values: &[Datum],
        all: bool,
    ) -> Result<Option<Referring>> {
        let Some((key, table)) = self.locked(key, all, |key| key.table).await? else { return Ok(None) };
        let Some(values) = converted(&key, &table, values.to_vec()) else { return Ok(None) };
        let snapshot = self.snapshot();
        let found = self.search(&key, &table, &values, all).await;
        let found = snapshot.believe(found)?;
        if all && self.is_repeatable() && found.iter().any(|(_, _, v)| !snapshot.sees(v.writer, self.own())) {
            return Err(EngineError::serialization());
        }
        if self.resources.serial.is_some() {
            let seen = Box::pin(self.referring_in_snapshot(&key, &table, &values)).await?;
            let differ = seen.is_empty() != found.is_empty() || (all && seen.len() != found.len());
            if differ {
                let reason = format!("Canceled on concurrent change of rows that refer to a key, by {}.", key.name);
                return Err(EngineError::dependencies(&reason));
            }
        }
        Ok((!found.is_empty()).then_some((key, table, found)))
    }

    /// Invariant 5.
    async fn referring_in_snapshot(
        &mut self,
        key: &ForeignKey,
        table: &Arc<Table>,
        values: &[Datum],
    ) -> Result<Vec<Rid>> {
        let wanted = Wanted::new(&key.columns, values);
        let scan = match covering(key, table) {
            None => Scan::Full,
            Some(index) => {
                let values = first_columns(key, index, values);
                let (from, to) = (Bound::Included(values.clone()), Bound::Included(values));
                Scan::Index(IndexRange { index: index.clone(), from, to, direction: ScanDirection::Forward })
            }
        };
        let mut scanner = self.scan(table, scan);
        let mut found = Vec::new();
        loop {
            let batch = scanner.next_batch(256).await?;
            if batch.is_empty() {
                return Ok(found);
            }
            found.extend(batch.iter().filter(|(_, row, _)| wanted.is_of(row.view(table))).map(|(rid, _, _)| *rid));
            yield_now().await;
        }
    }

    async fn search(
        &mut self,
        key: &ForeignKey,
        table: &Table,
        values: &[Datum],
        all: bool,
    ) -> Result<Vec<(Rid, RowBuf, Version)>> {
        let wanted = Wanted::new(&key.columns, values);
        let mut found = Vec::new();
        match covering(key, table) {
            Some(index) => self.search_index(key, table, index, values, &wanted, all, &mut found).await?,
            None => self.search_rows(table, &wanted, all, &mut found).await?,
        }
        Ok(found)
    }

    #[expect(clippy::too_many_arguments, reason = "what to search for, where, and where to put it")]
    async fn search_index(
        &mut self,
        key: &ForeignKey,
        table: &Table,
        index: &Index,
        values: &[Datum],
        wanted: &Wanted<'_>,
        all: bool,
        found: &mut Vec<(Rid, RowBuf, Version)>,
    ) -> Result<()> {
        let prefix = key::encode_prefix(table, index, &first_columns(key, index, values))?;
        let to = key::after_prefix(prefix.clone()).map_or(Bound::Unbounded, Bound::Excluded);
        let (core, tree) = (self.core().clone(), index.tree());
        let mut cursor = tree.cursor(Bound::Included(prefix), to, Direction::Forward);
        // A row may have several entries, if the index has more columns.
        let mut seen = BTreeSet::new();
        loop {
            let entries = cursor.next_batch(&core.store, &tree).await?;
            if entries.is_empty() {
                return Ok(());
            }
            for rid in entries.iter().map(|entry| key::rid_of(entry)) {
                if seen.insert(rid.encode()) {
                    found.extend(self.refers_now(table, rid, wanted, all).await?);
                    if !all && !found.is_empty() {
                        return Ok(());
                    }
                }
            }
            yield_now().await;
        }
    }

    async fn search_rows(
        &mut self,
        table: &Table,
        wanted: &Wanted<'_>,
        all: bool,
        found: &mut Vec<(Rid, RowBuf, Version)>,
    ) -> Result<()> {
        let (core, own) = (self.core().clone(), self.own());
        let mut from = 0;
        loop {
            // Before the rows that it judges.
            let low = core.active.low();
            let Some((next, rows)) = core.stored_rows(table.oid, from).await? else { return Ok(()) };
            from = next;
            for (rid, row) in rows {
                let settled = row.header.writer == own || row.header.writer < low;
                let whole = settled && !is_chained(&row.header);
                if whole && (is_deleted(&row.header) || !wanted.is_of(RowView { table, bytes: &row.bytes })) {
                    continue;
                }
                found.extend(self.refers_now(table, rid, wanted, all).await?);
                if !all && !found.is_empty() {
                    return Ok(());
                }
            }
            yield_now().await;
        }
    }

    /// A row, if it has the key (invariant 1). `change`: in a version that can be changed.
    async fn refers_now(
        &mut self,
        table: &Table,
        rid: Rid,
        wanted: &Wanted<'_>,
        change: bool,
    ) -> Result<Option<(Rid, RowBuf, Version)>> {
        let core = self.core().clone();
        let refers = |version: &RowVersion| version.is_live() && wanted.is_of(version.view(table));
        loop {
            let Some((newest, holder)) = core.settled(self.own(), table.oid, rid).await? else { return Ok(None) };
            let answer = |version: RowVersion| {
                let (row, version) = version.into_row();
                (rid, row, version)
            };
            let Some(holder) = holder else { return Ok(refers(&newest).then(|| answer(newest))) };
            let Some(underway) = core.underway(table, rid, newest, &holder).await? else { continue };
            let Some(before) = underway.before.filter(refers) else { return Ok(None) };
            if !change && underway.written.iter().all(refers) {
                return Ok(Some(answer(before)));
            }
            core.wait(self.resources.owner, &holder, self.lock_timeout).await?;
        }
    }
}

impl Txn {
    /// The error of the first row that refers to something which is not there. Nobody else writes either table.
    pub(crate) async fn first_violation(
        &mut self,
        table: &Table,
        key: &ForeignKey,
        referenced: &Table,
    ) -> Result<Option<EngineError>> {
        let (core, own) = (self.core().clone(), self.own());
        let index = referenced.index(key.index).expect("catalog::foreign, invariant 1");
        let mut from = 0;
        while let Some((next, rows)) = core.stored_rows(table.oid, from).await? {
            from = next;
            for (_, stored) in rows.into_iter().filter(|(_, row)| !is_deleted(&row.header)) {
                let row = core.payload(table.oid, stored).await?;
                let view = row.view(table);
                let nulls = key.columns.iter().filter(|&&at| view.is_null(at)).count();
                if nulls == key.columns.len() || (nulls > 0 && !key.full) {
                    continue;
                }
                if nulls > 0 {
                    return Ok(Some(mixed(key, table)));
                }
                let values: Vec<Datum> = key.columns.iter().map(|&at| view.get(at).to_datum()).collect();
                let there = match as_referenced(key, referenced, &values) {
                    Some(wanted) => {
                        let prefix = key::encode_prefix(referenced, index, &in_order(key, index, &wanted))?;
                        core.has_row(own, referenced, index, &prefix).await?
                    }
                    None => false,
                };
                if !there {
                    return Ok(Some(not_present(key, table, referenced, &values)));
                }
            }
            yield_now().await;
        }
        Ok(None)
    }
}

impl Core {
    /// Whether a row has the key, where nobody else writes the table.
    async fn has_row(&self, own: TxnId, table: &Table, index: &Index, prefix: &[u8]) -> Result<bool> {
        for rid in self.rows_of(index, prefix).await? {
            if matches!(self.fate(own, table, index, prefix, rid).await?, Fate::Stands { .. }) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The rows that have an entry of a key.
    async fn rows_of(&self, index: &Index, prefix: &[u8]) -> Result<Vec<Rid>> {
        let tree = index.tree();
        let Some(first) = tree.first_with_prefix(&self.store, prefix).await? else { return Ok(Vec::new()) };
        let mut rows = vec![key::rid_of(&first)];
        let to = key::after_prefix(prefix.to_vec()).map_or(Bound::Unbounded, Bound::Excluded);
        let mut cursor = tree.cursor(Bound::Excluded(first), to, Direction::Forward);
        loop {
            let entries = cursor.next_batch(&self.store, &tree).await?;
            if entries.is_empty() {
                return Ok(rows);
            }
            rows.extend(entries.iter().map(|entry| key::rid_of(entry)));
        }
    }

    async fn fate(&self, own: TxnId, table: &Table, index: &Index, prefix: &[u8], rid: Rid) -> Result<Fate> {
        let has_key = |v: &RowVersion| v.is_live() && key::encode_key(index, v.view(table)) == prefix;
        loop {
            let Some((newest, holder)) = self.settled(own, table.oid, rid).await? else { return Ok(Fate::Missing) };
            let Some(holder) = holder else {
                let own = newest.header.writer == own;
                return Ok(if has_key(&newest) { Fate::Stands { own } } else { Fate::Missing });
            };
            let Some(underway) = self.underway(table, rid, newest, &holder).await? else { continue };
            return Ok(match underway.before.is_some_and(|v| has_key(&v)) {
                true if underway.written.iter().all(has_key) => Fate::Stands { own: false },
                true => Fate::Depends(holder),
                false => Fate::Missing,
            });
        }
    }
}
