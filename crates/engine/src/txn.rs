//! Transactions: the typed table API.
//!
//! A transaction that is dropped without `commit` or `rollback` is rolled back in the background.
//!
//! 1. A commit is durable before anybody sees it: the steps of `commit`, in their order. (Except after
//!    [`Txn::commit_async`].)
//! 2. A dropped future leaves a sound state. A change is one mini-transaction (row and undo together), so it can be
//!    undone at once. A commit whose record is in the log is finished by a background task.
//! 3. READ COMMITTED takes a snapshot for each statement, the others take one at their first statement.
//! 4. What was read with the snapshot leaves this module only if the snapshot had not been given up by then
//!    (`snapshots`, invariant 5). This holds for rows found and not found by [`Txn::get`] and [`Txn::fetch`], for each
//!    batch of a [`Scanner`], and for the answers of [`Txn::update`], [`Txn::delete`] and [`Txn::lock_row`]. After the
//!    error (72000) the statement can only be rolled back. [`Txn::peek`] reads without a snapshot.
use crate::advisory::{Advisory, OfTransaction};
use crate::catalog::load::View;
use crate::catalog::path::Viewer;
use crate::catalog::{Catalog, Index, Table, system};
use crate::database::Core;
use crate::error::{EngineError, Result};
use crate::key;
use crate::locks::{LockKey, LockMode};
use crate::record;
use crate::row::RowBuf;
use crate::serializable::{Piece, Serial};
use crate::snapshots::exported::Exported;
use crate::snapshots::{Paused, Snapshot, Underway};
use crate::types::Datum;
use crate::types::enums::NewLabel;
use crate::usage::Tally;
use crate::versions::Reader;
use notes::Notes;
use resources::TxnResources;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use terrace_storage::{ObjectId, Rid, Store, TxnId, UndoPtr};

mod commit;
pub(crate) mod foreign;
mod lock;
pub(crate) mod losers;
mod notes;
pub(crate) mod resources;
mod rollback;
mod scan;
mod unique;
mod write;

pub use commit::LAZY_FLUSH;
pub use foreign::{Change, Consequence};
pub use lock::{LockWait, RowLock, RowLockOutcome};
pub use scan::{Begun, Scanner};
pub use unique::InsertOutcome;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    ReadCommitted,
    RepeatableRead,
    /// As REPEATABLE READ, and 40001 where what it and others do has no order (`serializable`).
    Serializable,
}

impl Isolation {
    /// Whether one snapshot serves the whole transaction.
    pub fn is_repeatable(self) -> bool {
        self != Isolation::ReadCommitted
    }
}

/// Which version of a row was read: a row's version is unchanged while this is equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    pub writer: TxnId,
    pub undo: UndoPtr,
}

/// What became of an update or delete of an expected version.
#[derive(Clone, Debug)]
pub enum UpdateOutcome {
    Done,
    /// READ COMMITTED: another transaction changed the row and committed; here is the newest version. Re-evaluate the
    /// statement's condition on it, then try again expecting it.
    Changed {
        row: RowBuf,
        version: Version,
    },
    /// Another transaction deleted it and committed (READ COMMITTED), or this transaction did.
    Gone,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanDirection {
    Forward,
    Backward,
}

/// A range of an index over a prefix of its key columns.
#[derive(Clone, Debug)]
pub struct IndexRange {
    pub index: Arc<Index>,
    pub from: Bound<Vec<Datum>>,
    pub to: Bound<Vec<Datum>>,
    pub direction: ScanDirection,
}

#[derive(Clone, Debug)]
pub enum Scan {
    /// All rows, in address order.
    Full,
    /// In key order.
    Index(IndexRange),
}

/// Bytes in the log for a change beyond the bytes of its rows: headers of operations and blocks, the space map, the
/// undo page.
pub(crate) const LOG_EXTRA: usize = 1024;

/// A savepoint: a position in the transaction's undo records, so that making one costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    undo: UndoPtr,
    notes: notes::Mark,
    /// How many advisory locks the transaction had.
    advisory: usize,
    /// How many locks of rows it had.
    row_locks: usize,
}

/// A transaction.
pub struct Txn {
    isolation: Isolation,
    /// It was declared so: [`Txn::set_read_only`].
    read_only: bool,
    snapshot: Option<Arc<Snapshot>>,
    /// Snapshots that others may take.
    exported: Vec<Exported>,
    /// Between the beginning of a statement and its end.
    underway: Option<Underway>,
    tally: Tally,
    /// Waits for a lock that are longer fail; zero: never.
    lock_timeout: Duration,
    /// How its session sees the catalogue; `None`: it belongs to no session.
    viewer: Option<Arc<Viewer>>,
    /// Of foreign keys and deferrable unique keys, where it writes tables that have to do with any.
    notes: Option<Box<Notes>>,
    /// Labels of enums that it has added.
    pub(crate) new_labels: Vec<NewLabel>,
    /// What must be ended; its drop rolls back.
    resources: TxnResources,
}

impl Txn {
    pub(crate) fn new(core: Arc<Core>, isolation: Isolation) -> Txn {
        let (tally, lock_timeout) = (Tally::new(core.usage.clone()), core.config.lock_timeout);
        Txn {
            isolation,
            read_only: false,
            snapshot: None,
            exported: vec![],
            underway: None,
            tally,
            lock_timeout,
            viewer: None,
            notes: None,
            new_labels: vec![],
            resources: TxnResources::new(core, Some(isolation)),
        }
    }

    /// From here on, waits for a lock that are longer fail (55P03); zero: never, `None`: as configured.
    pub fn set_lock_timeout(&mut self, timeout: Option<Duration>) {
        self.lock_timeout = timeout.unwrap_or(self.core().config.lock_timeout);
        if let Some(advisory) = &self.resources.advisory {
            advisory.set_lock_timeout(self.lock_timeout);
        }
    }

    /// It is the open transaction of the session that has these advisory locks. First of all that it does.
    pub fn of_session(mut self, advisory: &Arc<Advisory>) -> Txn {
        let joined = OfTransaction::new(advisory, self.resources.owner);
        joined.set_lock_timeout(self.lock_timeout);
        self.resources.advisory = Some(joined);
        self
    }

    /// It sees what a session does: its temporary tables, and names along its path.
    pub fn seen_by(mut self, viewer: &Arc<Viewer>) -> Txn {
        self.viewer = Some(viewer.clone());
        self
    }

    pub(crate) fn space(&self) -> Option<&Arc<Viewer>> {
        self.viewer.as_ref()
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.resources.core
    }

    /// Its number among the transactions open since the database was opened:
    /// [`crate::status::TransactionStatus::number`].
    pub fn number(&self) -> u64 {
        self.resources.owner.0
    }

    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Before its first statement, later without effect: whether it writes nothing. If it is SERIALIZABLE, it then
    /// meets fewer errors, and cannot write (25006).
    pub fn set_read_only(&mut self, read_only: bool) {
        if self.snapshot.is_none() {
            self.read_only = read_only;
        }
    }

    /// SERIALIZABLE READ ONLY DEFERRABLE, before its first statement: waits for a snapshot with which nothing can go
    /// wrong, however long that takes. From then on it costs others nothing, and gets no 40001.
    pub async fn wait_for_safe_snapshot(&mut self) {
        let waits = self.isolation == Isolation::Serializable && self.read_only;
        while waits && self.snapshot.is_none() {
            let (snapshot, serial) = self.new_snapshot();
            let safe = match &serial {
                Some(serial) => serial.is_safe().await,
                None => true,
            };
            // Not before: if this is dropped while it waits, nothing is left of it.
            if safe {
                self.underway = Some(snapshot.underway());
                (self.snapshot, self.resources.serial) = (Some(snapshot), serial);
            }
        }
    }

    fn new_snapshot(&self) -> (Arc<Snapshot>, Option<Arc<Serial>>) {
        let core = self.core();
        let snapshot = || core.active.snapshot(core.env.now());
        match self.isolation {
            Isolation::Serializable => core.serializable.begin(self.resources.owner, self.read_only, snapshot),
            _ => (snapshot(), None),
        }
    }

    /// Begins a statement: READ COMMITTED takes a new snapshot; the others take one at the first statement.
    pub fn begin_statement(&mut self) {
        if self.isolation == Isolation::ReadCommitted || self.snapshot.is_none() {
            // The new one first: the horizon does not jump forth and back.
            let (snapshot, serial) = self.new_snapshot();
            self.underway = Some(snapshot.underway());
            (self.snapshot, self.resources.serial) = (Some(snapshot), serial);
        } else if self.underway.is_none() {
            self.underway = self.snapshot.as_ref().map(|snapshot| snapshot.underway());
        }
    }

    /// The transaction is idle now: where undo runs out, its snapshot is given up before those that statements read
    /// with. One of READ COMMITTED lets go of it, so that it does not hold purge up at all.
    pub fn end_statement(&mut self) {
        self.underway = None;
        if self.isolation == Isolation::ReadCommitted {
            self.snapshot = None;
        }
    }

    /// Others may see what the statement under way sees, until this transaction ends: the snapshot's name.
    pub fn export_snapshot(&mut self) -> String {
        let exported = self.core().exports.clone().export(self.snapshot(), self.exported.len());
        let name = exported.name().to_owned();
        self.exported.push(exported);
        name
    }

    /// Sees what another transaction has exported. It has seen nothing yet, and is REPEATABLE READ. 22023
    pub fn import_snapshot(&mut self, name: &str) -> Result<()> {
        assert!(
            self.isolation == Isolation::RepeatableRead && self.snapshot.is_none(),
            "it has no snapshot of its own"
        );
        self.snapshot = Some(self.core().exports.find(name)?);
        Ok(())
    }

    /// For a cursor of the statement under way, which goes on reading after the statement's end.
    pub fn paused(&mut self) -> Paused {
        self.snapshot().paused()
    }

    fn snapshot(&mut self) -> Arc<Snapshot> {
        if self.snapshot.is_none() {
            self.begin_statement();
        }
        self.snapshot.clone().expect("begin_statement takes one")
    }

    fn reader(&mut self) -> Reader {
        Reader { snapshot: self.snapshot(), own: self.own(), serial: self.resources.serial.clone() }
    }

    pub(crate) fn tally(&mut self, index: ObjectId, found: bool) {
        self.tally.scanned(index, u64::from(found));
    }

    /// Its id; 0 where it has not written.
    pub(crate) fn own(&self) -> TxnId {
        self.resources.writer.as_ref().map_or(TxnId::NONE, |w| w.txn)
    }

    /// The catalogue as this transaction sees it, its own DDL included.
    pub fn catalog(&self) -> Arc<Catalog> {
        let catalog = self.resources.catalog.clone().unwrap_or_else(|| self.core().catalog());
        match &self.viewer {
            Some(viewer) => catalog.seen_by(viewer),
            None => catalog,
        }
    }

    /// Whether an index has the row versions that this statement sees (it may be younger than the snapshot).
    pub fn can_use_index(&mut self, index: &Index) -> bool {
        let own = self.own();
        let snapshot = self.snapshot();
        if index.created_by == own && own != TxnId::NONE && self.isolation.is_repeatable() {
            // It has the newest versions as of its making, and the snapshot is older; only a table of its own has no
            // others.
            return self.core().catalog().table_by_oid(index.table).is_none();
        }
        snapshot.sees(index.created_by, own)
    }

    /// Whether it has written.
    pub fn has_written(&self) -> bool {
        self.resources.writer.as_ref().is_some_and(|w| w.has_begun())
    }

    /// Waits for the right to write rows of (or, reading, to keep the definition of) a table; held to the end. 42P01
    /// where the table was dropped meanwhile. The definition may have changed while waiting: look the table up in
    /// `catalog()` afterwards.
    pub async fn lock_table(&mut self, table: &Table, write: bool) -> Result<()> {
        let mode = if write { LockMode::RowExclusive } else { LockMode::AccessShare };
        if self.lock(table.oid, mode).await? && self.catalog().table_by_oid(table.oid).is_none() {
            return Err(EngineError::undefined_table(&table.name));
        }
        Ok(())
    }

    /// As `lock_table`, in a mode of LOCK TABLE. 55P03 where that would have to wait and it is not to.
    pub async fn lock_table_as(&mut self, table: &Table, mode: LockMode, wait: bool) -> Result<()> {
        let key = LockKey::Table(table.oid);
        if !wait && !self.resources.locks.iter().any(|(k, m)| *k == key && m.covers(mode)) {
            match self.core().locks.try_acquire(self.resources.owner, key, mode)? {
                None => return Err(EngineError::table_locked(&table.name)),
                Some(true) => self.resources.locks.push((key, mode)),
                Some(false) => {}
            }
        }
        self.lock(table.oid, mode).await?;
        match self.catalog().table_by_oid(table.oid) {
            Some(_) => Ok(()),
            None => Err(EngineError::undefined_table(&table.name)),
        }
    }

    /// As `lock_table` at once; false where that would have to wait (or cannot be). Look at `catalog()` afterwards.
    pub fn try_lock_table(&mut self, table: &Table, write: bool) -> bool {
        let mode = if write { LockMode::RowExclusive } else { LockMode::AccessShare };
        let key = LockKey::Table(table.oid);
        if self.resources.locks.iter().any(|(k, m)| *k == key && m.covers(mode)) {
            return true;
        }
        let granted = self.core().locks.try_acquire(self.resources.owner, key, mode);
        if let Ok(Some(true)) = granted {
            self.resources.locks.push((key, mode));
        }
        matches!(granted, Ok(Some(_)))
    }

    /// Looks a row up by the full key of a unique index.
    pub async fn get(
        &mut self,
        table: &Table,
        index: &Index,
        values: &[Datum],
    ) -> Result<Option<(Rid, RowBuf, Version)>> {
        let reader = self.reader();
        let found = reader.snapshot.believe(self.look_up(&reader, table, index, values).await)?;
        self.tally.scanned(index.oid, u64::from(found.is_some()));
        Ok(found)
    }

    async fn look_up(
        &mut self,
        reader: &Reader,
        table: &Table,
        index: &Index,
        values: &[Datum],
    ) -> Result<Option<(Rid, RowBuf, Version)>> {
        let prefix = key::encode_prefix(table, index, values)?;
        if !self.can_use_index(index) {
            let (from, to) = (Bound::Included(values.to_vec()), Bound::Included(values.to_vec()));
            let range = IndexRange { index: Arc::new(index.clone()), from, to, direction: ScanDirection::Forward };
            let mut scanner = self.scan(&Arc::new(table.clone()), Scan::Index(range));
            return Ok(scanner.next_batch(1).await?.pop());
        }
        if let Some(serial) = &reader.serial {
            serial.reads(table.oid, Piece::key(index.oid, &prefix))?;
        }
        let core = self.core();
        let tree = index.tree();
        let Some(entry) = tree.first_with_prefix(&core.store, &prefix).await? else { return Ok(None) };
        let rid = key::rid_of(&entry);
        if let Some(found) = core.get_row(reader, table, index, &prefix, rid).await? {
            return Ok(Some(found));
        }
        // Entries of other rows with this key: deleted ones, or ones whose key has changed, not purged yet.
        let to = key::after_prefix(prefix.clone()).map_or(Bound::Unbounded, Bound::Excluded);
        let mut cursor = tree.cursor(Bound::Excluded(entry), to, terrace_storage::btree::Direction::Forward);
        loop {
            let entries = cursor.next_batch(&core.store, &tree).await?;
            if entries.is_empty() {
                return Ok(None);
            }
            for entry in entries {
                let rid = key::rid_of(&entry);
                if let Some(found) = core.get_row(reader, table, index, &prefix, rid).await? {
                    return Ok(Some(found));
                }
            }
        }
    }

    /// The visible version of a row.
    pub async fn fetch(&mut self, table: &Table, rid: Rid) -> Result<Option<(RowBuf, Version)>> {
        let reader = self.reader();
        let core = self.core();
        let visible = async {
            if let Some(serial) = &reader.serial {
                serial.reads(table.oid, Piece::Row(rid))?;
            }
            let Some(row) = core.stored(rid).await? else { return Ok(None) };
            core.visible(&reader, table.oid, rid, row).await
        };
        Ok(reader.snapshot.believe(visible.await)?.map(|v| v.into_row()))
    }

    /// Sees the statement's snapshot.
    pub fn scan(&mut self, table: &Arc<Table>, scan: Scan) -> Scanner {
        let reader = self.reader();
        let usable = match &scan {
            Scan::Full => true,
            Scan::Index(range) => self.can_use_index(&range.index),
        };
        Scanner::new(self.core().clone(), reader, table.clone(), scan, usable)
    }

    /// For scans of the table that are chosen later: they see what one sees that begins now.
    pub fn begin_scan(&mut self, table: &Arc<Table>) -> Begun {
        let reader = self.reader();
        let by_indexes = table.indexes.iter().all(|index| self.can_use_index(index));
        Begun::new(self.core().clone(), reader, table.clone(), by_indexes)
    }

    /// Sees what is committed now, and not what the transaction's snapshot sees: for sequences, which belong to no
    /// transaction.
    pub fn scan_now(&mut self, table: &Arc<Table>) -> Scanner {
        let core = self.core();
        let snapshot = core.active.snapshot(core.env.now());
        let reader = Reader { snapshot, own: self.own(), serial: None };
        Scanner::new(self.core().clone(), reader, table.clone(), Scan::Full, true)
    }

    pub fn savepoint(&self) -> Savepoint {
        let undo = self.core().store.undo();
        let undo = self.resources.writer.as_ref().map_or(UndoPtr::NONE, |w| undo.position(w));
        let notes = self.notes.as_ref().map(|notes| notes.mark()).unwrap_or_default();
        let advisory = self.resources.advisory.as_ref().map_or(0, OfTransaction::len);
        Savepoint { undo, notes, advisory, row_locks: self.resources.row_locks.len() }
    }

    /// Undoes everything since the savepoint. Locks of tables stay. Advisory locks and locks of rows go, and rows given
    /// back are free for others.
    /// After an error the transaction can only be rolled back.
    pub async fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.resources.undo_to(savepoint.undo).await?;
        if let Some(advisory) = &self.resources.advisory {
            advisory.back_to(savepoint.advisory);
        }
        if let Some(notes) = &mut self.notes {
            notes.back_to(savepoint.notes);
        }
        // Each stands behind those of the rows that were written before it: a foreign key's lock goes with its row.
        let kept = savepoint.row_locks.min(self.resources.row_locks.len());
        let released = self.resources.row_locks.split_off(kept);
        self.core().locks.release_all(self.resources.owner, &released);
        if self.resources.catalog.is_some() {
            self.resources.catalog = Some(Arc::new(Catalog::load(&self.core().store, View::Newest).await?));
        }
        if let Some(state) = &self.resources.state {
            state.wake(false);
        }
        Ok(())
    }

    pub async fn rollback(mut self) -> Result<()> {
        self.tally.rolled_back();
        self.resources.rollback().await
    }
}

/// What DDL (in the catalogue's module) needs of a transaction.
impl Txn {
    pub(crate) fn store(&self) -> &Store {
        &self.core().store
    }

    /// Takes the one lock under which definitions change, held to the end of the transaction. First step of every DDL
    /// statement: from then on `catalog()` is the newest committed catalogue with this transaction's own changes.
    pub(crate) async fn lock_ddl(&mut self) -> Result<()> {
        self.lock(system::TABLES, LockMode::AccessExclusive).await?;
        // Where a commit has failed its locks are let go, and definitions are between what they were and what they
        // would have been.
        self.core().check_alive()
    }

    /// Locks a table in a mode, held to the end (`Share` for CREATE INDEX, `AccessExclusive` for DROP). False where it
    /// was held already.
    pub(crate) async fn lock(&mut self, object: ObjectId, mode: LockMode) -> Result<bool> {
        self.lock_by(LockKey::Table(object), mode).await
    }

    async fn lock_by(&mut self, key: LockKey, mode: LockMode) -> Result<bool> {
        if self.resources.locks.iter().any(|(k, m)| *k == key && m.covers(mode)) {
            return Ok(false);
        }
        let core = self.core();
        core.locks.acquire(&core.env, self.resources.owner, key, mode, self.lock_timeout).await?;
        self.resources.locks.push((key, mode));
        if let (LockKey::Table(table), true) = (key, mode >= LockMode::Share) {
            self.uses_whole(table, mode)?;
        }
        Ok(true)
    }

    /// For serialisable transactions: it has locked a table to change or to use its definition, or all its rows.
    fn uses_whole(&mut self, table: ObjectId, mode: LockMode) -> Result<()> {
        if table.0 < system::FIRST_USER {
            return Ok(());
        }
        if mode == LockMode::AccessExclusive {
            // Pieces of an index would mean nothing if the index went.
            self.core().serializable.coarsen(table);
        }
        if self.isolation == Isolation::Serializable {
            self.snapshot();
        }
        match &self.resources.serial {
            Some(serial) if mode == LockMode::AccessExclusive => serial.wrote_all(table),
            Some(serial) => serial.reads(table, Piece::Whole),
            None => Ok(()),
        }
    }

    /// Notes that an object's pages are to be freed if this transaction rolls back. *Before* the first page is
    /// allocated.
    pub(crate) async fn object_created(&mut self, object: ObjectId) -> Result<()> {
        self.note(record::created(object)).await
    }

    /// Notes that an object's pages are to be freed when this transaction has committed and no snapshot needs them.
    pub(crate) async fn object_dropped(&mut self, object: ObjectId) -> Result<()> {
        self.note(record::dropped(object)).await
    }

    async fn note(&mut self, body: Vec<u8>) -> Result<()> {
        self.write_id().await?;
        let core = self.resources.core.clone();
        let writer = self.resources.writer.as_mut().expect("write_id makes one");
        let room = core.store.undo().reserve(&core.store, writer, body.len()).await?;
        let permit = core.store.reserve(body.len() + LOG_EXTRA).await?;
        let mut mtr = core.store.mtr(permit);
        core.store.undo().append(&mut mtr, writer, room, &body);
        mtr.commit();
        Ok(())
    }

    /// The catalogue as this transaction has changed it; published when it commits. (After `rollback_to` it is read
    /// again.)
    pub(crate) fn set_catalog(&mut self, catalog: Arc<Catalog>) {
        self.resources.catalog = Some(catalog.seen_by_all());
    }

    /// This transaction's id, beginning to write where it has not.
    pub(crate) async fn write_id(&mut self) -> Result<TxnId> {
        if let Some(writer) = &self.resources.writer {
            return Ok(writer.txn);
        }
        let core = self.resources.core.clone();
        core.check_alive()?;
        if self.isolation == Isolation::Serializable {
            if self.read_only {
                return Err(EngineError::new("25006", "cannot write in a read-only transaction"));
            }
            // It is a member before it writes.
            self.snapshot();
        }
        let owner = self.resources.owner;
        let mut state = None;
        let begun = core.store.undo().begin(&core.store, |id| state = Some(core.active.enter(id, owner))).await?;
        let id = begun.txn;
        self.resources.entry.has_id(id);
        if let Some(serial) = &self.resources.serial {
            serial.has_id(id);
        }
        self.resources.writer = Some(begun);
        self.resources.state = state;
        Ok(id)
    }
}

#[cfg(test)]
mod tests;
