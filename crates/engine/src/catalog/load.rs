//! Reading the catalogue from the system tables.
use super::{Catalog, ColumnDef, Index, Table, system};
use crate::error::{EngineError, Result};
use crate::row::RowView;
use crate::txn::{Scan, Txn, Version};
use crate::types::Datum;
use std::collections::BTreeMap;
use std::sync::Arc;
use terrace_storage::heap::{CHAINED, DELETED, Heap};
use terrace_storage::page::slotted;
use terrace_storage::pool::Access;
use terrace_storage::{DATA, ObjectId, PageId, Rid, Store};

/// The seam with transactions.
impl Catalog {
    /// The catalogue of an empty database. The system tables are heaps of fixed object ids: they come to be with their first row.
    pub(crate) async fn bootstrap(_txn: &mut Txn) -> Result<Catalog> {
        Ok(Catalog::default())
    }

    /// The catalogue as the transaction sees it. One that has not written (at opening, losers perhaps not yet rolled back) reads
    /// through its snapshot. One that has (after a rollback to a savepoint that undid a definition) holds the lock of
    /// definitions, so it reads the newest versions: its snapshot may be older than the definitions it works with.
    pub(crate) async fn load(txn: &mut Txn) -> Result<Catalog> {
        let newest = txn.has_written();
        let mut rows = Vec::with_capacity(3);
        for object in [system::TABLES, system::COLUMNS, system::INDEXES] {
            rows.push(match newest {
                true => newest_values(&txn.store().clone(), object).await?,
                false => visible_rows(txn, object).await?,
            });
        }
        let [tables, columns, indexes] = rows.try_into().expect("three tables were read");
        assemble(tables, columns, indexes)
    }
}

type Rows = Vec<Vec<Datum>>;

/// Puts tables together from their rows.
fn assemble(tables: Rows, column_rows: Rows, index_rows: Rows) -> Result<Catalog> {
    let mut columns: BTreeMap<ObjectId, BTreeMap<usize, ColumnDef>> = BTreeMap::new();
    for row in column_rows {
        let (table, position, column) = system::read_column(&row)?;
        columns.entry(table).or_default().insert(position, column);
    }
    let mut indexes: BTreeMap<ObjectId, Vec<Arc<Index>>> = BTreeMap::new();
    for row in index_rows {
        let index = system::read_index(&row)?;
        indexes.entry(index.table).or_default().push(Arc::new(index));
    }
    let mut out: BTreeMap<ObjectId, Arc<Table>> = BTreeMap::new();
    for row in tables {
        let (oid, name) = system::read_table(&row)?;
        let columns = columns.remove(&oid).unwrap_or_default();
        if columns.keys().copied().ne(0..columns.len()) {
            return Err(EngineError::damaged(format!("the catalogue lacks columns of table \"{name}\"")));
        }
        let indexes = indexes.remove(&oid).unwrap_or_default();
        out.insert(oid, Arc::new(Table::new(oid, name, columns.into_values().collect(), indexes)));
    }
    if !(columns.is_empty() && indexes.is_empty()) {
        return Err(EngineError::damaged("the catalogue has columns or indexes of tables that it does not have"));
    }
    Ok(Catalog::of(out.into_values()))
}

async fn visible_rows(txn: &mut Txn, object: ObjectId) -> Result<Rows> {
    let table = system::table(object).expect("a system table");
    let mut scanner = txn.scan(table, Scan::Full);
    let mut out = Vec::new();
    loop {
        let batch = scanner.next_batch(256).await?;
        if batch.is_empty() {
            return Ok(out);
        }
        for (_, row, _) in &batch {
            out.push(RowView::checked(table, &row.0)?.to_datums());
        }
    }
}

async fn newest_values(store: &Store, object: ObjectId) -> Result<Rows> {
    let table = system::table(object).expect("a system table");
    let mut out = Vec::new();
    newest_rows(store, table, |row| {
        out.push(RowView::checked(table, row.bytes)?.to_datums());
        Ok(())
    })
    .await?;
    Ok(out)
}

/// A row's newest version.
pub(crate) struct NewestRow<'a> {
    pub(crate) rid: Rid,
    pub(crate) version: Version,
    pub(crate) bytes: &'a [u8],
}

/// Calls `each` with the newest version of every row of a table, in address order, unless that is a deletion. Right only under a lock that
/// keeps other writers away.
pub(crate) async fn newest_rows(
    store: &Store,
    table: &Table,
    mut each: impl FnMut(NewestRow<'_>) -> Result<()>,
) -> Result<()> {
    let heap = Heap { object: table.oid, space: DATA };
    let mut from = 0;
    loop {
        let pages = store.space(DATA).pages(table.oid, from, 64);
        let Some(&last) = pages.last() else { return Ok(()) };
        for page in pages {
            let pin = store.pool().fetch(PageId::new(DATA, page), Access::Sequential).await?;
            let slots = slotted::slot_count(&pin.read());
            for slot in 0..slots {
                let Some(row) = Heap::read(&pin, slot).filter(|row| row.header.flags & DELETED == 0) else { continue };
                let bytes = match row.header.flags & CHAINED {
                    0 => row.bytes,
                    _ => heap.read_chain(store, &row.bytes).await?,
                };
                let version = Version { writer: row.header.writer, undo: row.header.undo };
                each(NewestRow { rid: Rid { page, slot }, version, bytes: &bytes })?;
            }
        }
        from = last + 1;
    }
}
