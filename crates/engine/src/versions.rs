//! Finding a row's versions: the newest one from its slot, older ones by undoing changes on a copy.
//!
//! The snapshot of the walker is registered (invariant 3 of `snapshots`), so the records that it needs exist. If the
//! snapshot was given up for undo space meanwhile, the result here may be wrong, or an error. The caller finds that out
//! afterwards (invariant 5 there). The check here only ends a walk that leads nowhere.
use crate::catalog::Table;
use crate::database::Core;
use crate::error::{EngineError, Result};
use crate::record::{Old, Record, is_chained, is_deleted};
use crate::row::{RowBuf, RowView};
use crate::serializable::Serial;
use crate::snapshots::Snapshot;
use crate::txn::Version;
use std::sync::Arc;
use terrace_storage::heap::{CHAINED, DELETED, Heap, RowHeader, StoredRow};
use terrace_storage::pool::{Access, Pin};
use terrace_storage::undo::UndoRecord;
use terrace_storage::{DATA, ObjectId, PageId, Rid, TxnId};

/// Who reads, and with what snapshot.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) snapshot: Arc<Snapshot>,
    /// Its id; 0: it has not written.
    pub(crate) own: TxnId,
    /// Where it is serialisable.
    pub(crate) serial: Option<Arc<Serial>>,
}

impl Reader {
    pub(crate) fn sees(&self, writer: TxnId) -> bool {
        self.snapshot.sees(writer, self.own)
    }

    /// It has read the version before one that `writer` has written, which it does not see. 40001.
    fn overwritten(&self, writer: TxnId) -> Result<()> {
        self.serial.as_ref().map_or(Ok(()), |serial| serial.overwritten(writer))
    }
}

pub(crate) fn heap(table: ObjectId) -> Heap {
    Heap { object: table, space: DATA }
}

/// A row's version with its payload, wherever that is stored.
#[derive(Clone, Debug)]
pub(crate) struct RowVersion {
    /// As stored; CHAINED says where the payload came from.
    pub(crate) header: RowHeader,
    pub(crate) payload: Vec<u8>,
}

impl RowVersion {
    pub(crate) fn version(&self) -> Version {
        Version { writer: self.header.writer, undo: self.header.undo }
    }
    pub(crate) fn is_live(&self) -> bool {
        !is_deleted(&self.header)
    }
    pub(crate) fn view<'a>(&'a self, table: &'a Table) -> RowView<'a> {
        RowView { table, bytes: &self.payload }
    }
    pub(crate) fn into_row(self) -> (RowBuf, Version) {
        let version = self.version();
        (RowBuf(self.payload), version)
    }
}

impl Core {
    pub(crate) async fn pin(&self, page: u32, access: Access) -> Result<Pin> {
        let id = PageId::new(DATA, page);
        match self.store.pool().get(id) {
            Some(pin) => Ok(pin),
            None => Ok(self.store.pool().fetch(id, access).await?),
        }
    }

    /// What the slot holds now.
    pub(crate) async fn stored(&self, rid: Rid) -> Result<Option<StoredRow>> {
        Ok(Heap::read(&self.pin(rid.page, Access::Random).await?, rid.slot))
    }

    /// The payload of a stored row.
    pub(crate) async fn payload(&self, table: ObjectId, row: StoredRow) -> Result<RowVersion> {
        let payload = match is_chained(&row.header) {
            true => heap(table).read_chain(&self.store, &row.bytes).await?,
            false => row.bytes,
        };
        Ok(RowVersion { header: row.header, payload })
    }

    /// The newest version, by any writer. (A chain may be freed under us if its version is undone meanwhile: then
    /// the slot has changed.)
    pub(crate) async fn newest(&self, table: ObjectId, rid: Rid) -> Result<Option<RowVersion>> {
        loop {
            let Some(row) = self.stored(rid).await? else { return Ok(None) };
            if !is_chained(&row.header) {
                return Ok(Some(RowVersion { header: row.header, payload: row.bytes }));
            }
            let result = self.payload(table, row.clone()).await;
            if self.stored(rid).await?.as_ref() == Some(&row) {
                return result.map(Some);
            }
        }
    }

    /// The version before a row's version that was an update or a deletion; `None` before an insert.
    pub(crate) async fn older(&self, table: ObjectId, rid: Rid, row: RowVersion) -> Result<Option<RowVersion>> {
        let record = self.store.undo().read(&self.store, row.header.undo).await?;
        self.undo_on_copy(table, rid, row, &record).await
    }

    async fn undo_on_copy(
        &self,
        table: ObjectId,
        rid: Rid,
        row: RowVersion,
        record: &UndoRecord,
    ) -> Result<Option<RowVersion>> {
        let wrong = || EngineError::damaged(format!("{:?} is not the undo record of row {rid:?}", row.header.undo));
        if record.txn != row.header.writer {
            return Err(wrong());
        }
        let (at, header, payload) = match Record::decode(&record.body)? {
            Record::Insert { table: t, rid: r } if (t, r) == (table, rid) => return Ok(None),
            Record::Delete { table, rid, before, .. } => ((table, rid), before, row.payload.clone()),
            Record::Update { table: t, rid, before, old, .. } => {
                let bytes = old.apply(&row.payload).ok_or_else(wrong)?;
                let payload = match (&old, is_chained(&before)) {
                    (Old::Whole(_), true) => heap(t).read_chain(&self.store, &bytes).await?,
                    _ => bytes,
                };
                ((t, rid), before, payload)
            }
            _ => return Err(wrong()),
        };
        if at != (table, rid) {
            return Err(wrong());
        }
        Ok(Some(RowVersion { header, payload }))
    }

    /// The version that the reader sees, from the stored row on.
    pub(crate) async fn visible(
        &self,
        reader: &Reader,
        table: ObjectId,
        rid: Rid,
        row: StoredRow,
    ) -> Result<Option<RowVersion>> {
        if reader.sees(row.header.writer) {
            if is_deleted(&row.header) {
                return Ok(None);
            }
            return Ok(Some(self.payload(table, row).await?));
        }
        let mut row = row;
        loop {
            let header = row.header;
            // Boxed: every reader's state would have room for it, and most rows are visible as they are stored.
            let error = match Box::pin(self.visible_before(reader, table, rid, row)).await {
                Ok((version, overwritten_by)) => {
                    reader.overwritten(overwritten_by)?;
                    return Ok(version);
                }
                Err(error) => error,
            };
            // Its writer may have undone it, and with it the chains that its own older versions had.
            row = match self.stored(rid).await? {
                None => return Ok(None),
                Some(now) if now.header == header => return Err(error),
                Some(now) => now,
            };
            if reader.sees(row.header.writer) {
                return match is_deleted(&row.header) {
                    true => Ok(None),
                    false => self.payload(table, row).await.map(Some),
                };
            }
        }
    }

    /// The visible version before a stored one that the reader does not see, and who wrote the one after it.
    async fn visible_before(
        &self,
        reader: &Reader,
        table: ObjectId,
        rid: Rid,
        row: StoredRow,
    ) -> Result<(Option<RowVersion>, TxnId)> {
        let mut version = self.payload(table, row).await?;
        loop {
            let next = version.header.writer;
            let record = reader.snapshot.believe(self.store.undo().read(&self.store, version.header.undo).await)?;
            version = match self.undo_on_copy(table, rid, version, &record).await? {
                None => return Ok((None, next)),
                Some(older) => older,
            };
            if reader.sees(version.header.writer) {
                return Ok((version.is_live().then_some(version), next));
            }
        }
    }

    /// The needed versions of a row as it is stored now; again where the newest was undone meanwhile.
    pub(crate) async fn all_needed(&self, low: TxnId, table: ObjectId, rid: Rid) -> Result<Vec<RowVersion>> {
        loop {
            let Some(newest) = self.newest(table, rid).await? else { return Ok(Vec::new()) };
            let header = newest.header;
            match self.needed(low, table, rid, newest).await {
                Err(e) if self.stored(rid).await?.is_some_and(|row| row.header == header) => return Err(e),
                Err(_) => {}
                found => return found,
            }
        }
    }

    /// All versions that anybody may need, newest first: down to the first whose writer is below `low`. The caller
    /// holds the horizon there.
    pub(crate) async fn needed(
        &self,
        low: TxnId,
        table: ObjectId,
        rid: Rid,
        newest: RowVersion,
    ) -> Result<Vec<RowVersion>> {
        Ok(self.needed_since(low, table, rid, newest).await?.into_iter().map(|(version, _)| version).collect())
    }

    /// As `needed`; with each version whether the record of what came after it says that keys changed (the newest:
    /// false).
    pub(crate) async fn needed_since(
        &self,
        low: TxnId,
        table: ObjectId,
        rid: Rid,
        newest: RowVersion,
    ) -> Result<Vec<(RowVersion, bool)>> {
        let mut all = Vec::new();
        let mut next = Some((newest, false));
        while let Some((version, changed)) = next {
            next = None;
            if version.header.writer >= low {
                let record = self.store.undo().read(&self.store, version.header.undo).await?;
                let keys_changed = matches!(Record::decode(&record.body)?, Record::Update { keys_changed: true, .. });
                let older = self.undo_on_copy(table, rid, version.clone(), &record).await?;
                next = older.map(|older| (older, keys_changed));
            }
            all.push((version, changed));
        }
        Ok(all)
    }
}

/// Whether a header is of exactly this version, whether deleted or not.
pub(crate) fn is_version(header: &RowHeader, version: Version) -> bool {
    header.writer == version.writer && header.undo == version.undo
}

/// A header of a new version.
pub(crate) fn new_header(version: Version, chained: bool, deleted: bool) -> RowHeader {
    let flags = if chained { CHAINED } else { 0 } | if deleted { DELETED } else { 0 };
    RowHeader { flags, writer: version.writer, undo: version.undo }
}
