//! Verifying a database: every structure by itself, and that rows, index entries, definitions and undo agree.
//!
//! Purge has done what it could (so no history is half consumed) and rests, and each table is locked against writers
//! while it is looked at, so what is found is not a change in flight.
//!
//! 1. Every live newest version of a row has its entry in every index; every entry's row has a version that somebody
//!    may need with the entry's key (R7, R8).
//! 2. A row's writer is finished (here: the lock keeps writers out), below the next id.
//! 3. Every row has what its table's foreign keys refer to, unless they are NOT VALID.
//! 4. Every object that owns pages is defined, or waits for purge. Every fragment belongs to a row or to a version that
//!    waits for purge.
use crate::catalog::{Index, Table, roles, system};
use crate::database::Core;
use crate::error::Result;
use crate::key;
use crate::locks::LockMode;
use crate::record::{Old, Record, is_chained};
use crate::txn::{Isolation, Txn};
use crate::versions::heap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use terrace_storage::btree::Direction;
use terrace_storage::{DATA, ObjectId, Rid, TxnId};

/// Problems listed per table; more say nothing new.
const ENOUGH: usize = 50;

pub(crate) async fn check(core: &Arc<Core>) -> Result<Vec<String>> {
    core.settle().await;
    core.purge_now().await?;
    let mut problems = Vec::new();
    let _purge_rests = core.purging.lock().await;
    core.read_histories().await?;
    let mut txn = Txn::new(core.clone(), Isolation::ReadCommitted);
    // Definitions do not change while we look.
    txn.lock_ddl().await?;
    let catalog = core.catalog();
    let systems = system::ALL.into_iter().chain([roles::ROLES]).filter_map(system::table);
    let tables: Vec<Arc<Table>> = systems.cloned().chain(catalog.tables().cloned()).collect();
    let mut known = BTreeSet::from([ObjectId(0)]);
    let mut kept = Kept::default();
    for table in &tables {
        known.insert(table.oid);
        known.extend(table.indexes.iter().map(|i| i.oid));
        if table.oid != system::TABLES {
            txn.lock(table.oid, LockMode::Share).await?;
        }
        let mut found = Vec::new();
        // Writers of the table have left, and their histories are here.
        kept.catch_up(core, &mut problems).await;
        core.check_table(table, kept.stubs.get(&table.oid), &mut found).await?;
        found.truncate(ENOUGH);
        problems.extend(found.into_iter().map(|p| format!("table \"{}\": {p}", table.name)));
    }
    for table in &tables {
        for key in table.foreign_keys.iter().filter(|key| key.validated) {
            let referenced = catalog.table_by_oid(key.referenced).expect("catalog::foreign, invariant 2");
            if let Some(e) = txn.first_violation(table, key, referenced).await? {
                problems.push(format!("{e}: {}", e.detail.as_deref().unwrap_or_default()));
            }
        }
    }
    if let Err(e) = core.store.space(DATA).check(&core.store).await {
        problems.push(format!("tablespace: {e}"));
    }
    let histories: Vec<_> = core.histories.lock().iter().collect();
    problems.extend(core.store.undo().check(&core.store, &histories).await?);
    kept.catch_up(core, &mut problems).await;
    known.extend(kept.dropped);
    let orphans = core.store.space(DATA).objects().into_iter().filter(|o| !known.contains(o));
    problems.extend(orphans.map(|o| format!("{o} owns pages and is not defined")));
    txn.rollback().await?;
    Ok(problems)
}

/// What the records of finished transactions keep from being nobody's.
#[derive(Default)]
struct Kept {
    /// Histories looked at, by `History::seq`.
    seen: BTreeSet<u64>,
    /// Stubs of older versions, by table.
    stubs: BTreeMap<ObjectId, Vec<Vec<u8>>>,
    dropped: BTreeSet<ObjectId>,
}

impl Kept {
    /// Looks at the histories that have come since the last call. (A record that cannot be read is `UndoSpace::check`'s
    /// to report.)
    async fn catch_up(&mut self, core: &Core, problems: &mut Vec<String>) {
        let histories: Vec<_> = core.histories.lock().iter().collect();
        for history in histories {
            if !self.seen.insert(history.seq) {
                continue;
            }
            let mut ptr = history.last;
            while !ptr.is_none() {
                let Ok(record) = core.store.undo().read(&core.store, ptr).await else { break };
                match Record::decode(&record.body) {
                    Ok(Record::Dropped(object)) => {
                        self.dropped.insert(object);
                    }
                    Ok(Record::Update { table, before, old: Old::Whole(stub), .. }) if is_chained(&before) => {
                        self.stubs.entry(table).or_default().push(stub.to_vec());
                    }
                    Ok(_) => {}
                    Err(e) => problems.push(format!("undo record {ptr:?}: {e}")),
                }
                ptr = record.prev;
            }
        }
    }
}

impl Core {
    async fn check_table(
        &self,
        table: &Arc<Table>,
        older: Option<&Vec<Vec<u8>>>,
        problems: &mut Vec<String>,
    ) -> Result<()> {
        match heap(table.oid).check(&self.store, older.map_or(&[], |stubs| stubs)).await {
            Ok(found) if found.fragments == found.reached => {}
            Ok(found) => {
                let lost = found.fragments - found.reached;
                problems.push(format!("{lost} of {} fragments belong to no version of a row", found.fragments));
            }
            Err(e) => problems.push(e.to_string()),
        }
        let mut live = 0;
        let mut from = 0;
        while let Some((next, rows)) = self.stored_rows(table.oid, from).await? {
            from = next;
            for (rid, stored) in rows {
                if self.active.get(stored.header.writer).is_some()
                    || stored.header.writer >= self.store.undo().next_txn()
                {
                    problems.push(format!("row {rid:?} has writer {}, which is not finished", stored.header.writer.0));
                }
                let row = match self.payload(table.oid, stored).await {
                    Ok(row) => row,
                    Err(e) => {
                        problems.push(format!("row {rid:?}: {e}"));
                        continue;
                    }
                };
                if let Err(e) = crate::row::RowView::checked(table, &row.payload) {
                    problems.push(format!("row {rid:?}: {e}"));
                    continue;
                }
                if !row.is_live() {
                    continue;
                }
                live += 1;
                for index in &table.indexes {
                    let entry = key::encode_entry(index, row.view(table), rid);
                    let found = index.tree().first_with_prefix(&self.store, &entry).await?;
                    if found.as_ref() != Some(&entry) {
                        problems.push(format!("row {rid:?} has no entry in index \"{}\"", index.name));
                    }
                }
            }
        }
        for index in &table.indexes {
            self.check_index(table, index, live, problems).await?;
        }
        Ok(())
    }

    async fn check_index(
        &self,
        table: &Arc<Table>,
        index: &Index,
        live: u64,
        problems: &mut Vec<String>,
    ) -> Result<()> {
        let tree = index.tree();
        match tree.check(&self.store).await {
            Ok(entries) if entries >= live => {}
            Ok(entries) => problems.push(format!("index \"{}\" has {entries} entries for {live} rows", index.name)),
            Err(e) => problems.push(format!("index \"{}\": {e}", index.name)),
        }
        let pending: BTreeSet<TxnId> = self.histories.lock().iter().map(|h| h.txn).collect();
        let mut cursor = tree.cursor(Bound::Unbounded, Bound::Unbounded, Direction::Forward);
        let mut last_alone: Option<Vec<u8>> = None;
        loop {
            let entries = cursor.next_batch(&self.store, &tree).await?;
            if entries.is_empty() {
                return Ok(());
            }
            for entry in entries {
                let (key, rid) = (key::key_of(&entry), key::rid_of(&entry));
                let mut said =
                    |what: &str| problems.push(format!("index \"{}\", entry of row {rid:?}: {what}", index.name));
                match self.entry_state(&pending, table, index, key, rid).await {
                    Err(e) => said(&e.to_string()),
                    Ok(Entry::Stale) => said("no version of the row has its key"),
                    Ok(Entry::Old) => {}
                    Ok(Entry::Live { alone: false }) => {}
                    Ok(Entry::Live { alone: true }) => {
                        if last_alone.as_deref() == Some(key) {
                            said("another row has the same unique key");
                        }
                        last_alone = Some(key.to_vec());
                    }
                }
            }
        }
    }

    async fn entry_state(
        &self,
        pending: &BTreeSet<TxnId>,
        table: &Arc<Table>,
        index: &Index,
        key: &[u8],
        rid: Rid,
    ) -> Result<Entry> {
        let Some(newest) = self.newest(table.oid, rid).await? else { return Ok(Entry::Stale) };
        if newest.is_live() && key::encode_key(index, newest.view(table)) == key {
            // A transaction may not have checked a deferred constraint yet.
            let checked = index.is_immediate() || !pending.contains(&newest.header.writer);
            return Ok(Entry::Live { alone: checked && key::is_one_rows_of(index, newest.view(table)) });
        }
        // Purge rests: the records of exactly these transactions exist.
        let mut version = Some(newest);
        while let Some(v) = version {
            if key::encode_key(index, v.view(table)) == key {
                return Ok(Entry::Old);
            }
            version = match pending.contains(&v.header.writer) {
                true => self.older(table.oid, rid, v).await?,
                false => None,
            };
        }
        Ok(Entry::Stale)
    }
}

/// What an index entry stands for.
enum Entry {
    Live {
        /// No other row may have its key.
        alone: bool,
    },
    /// An older version that purge has yet to consider.
    Old,
    /// Nothing: it should not be there.
    Stale,
}
