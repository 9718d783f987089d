//! ANALYZE: estimates of a table's size, from some of its pages.
//!
//! 1. At most [`SAMPLE`] pages are read, spread evenly: every `n`-th of the table's, so the same table gives the same
//!    estimate.
//! 2. Rows counted are newest versions that are not deleted, committed or not.
use super::system_table;
use crate::catalog::{Statistics, Table, system};
use crate::error::{EngineError, Result};
use crate::locks::LockMode;
use crate::txn::Txn;
use std::sync::Arc;
use terrace_storage::heap::{DELETED, Heap};
use terrace_storage::page::slotted;
use terrace_storage::pool::Access;
use terrace_storage::{DATA, ObjectId, PageId, Store};

/// Pages looked at.
const SAMPLE: usize = 2000;

impl Txn {
    /// Estimates the table's size and notes it in the catalogue. 42P01 where the table is gone.
    pub async fn analyze(&mut self, table: &Table) -> Result<Statistics> {
        self.lock_ddl().await?;
        self.lock(table.oid, LockMode::AccessShare).await?;
        let catalog = self.catalog();
        let gone = || EngineError::undefined_table(&table.name);
        let table = catalog.tables().find(|t| t.oid == table.oid).ok_or_else(gone)?;
        let mut analyzed = Table::clone(table);
        let statistics = estimate(self.store(), table.oid).await?;
        analyzed.statistics = Some(statistics);
        let row = system::table_row(&analyzed);
        self.change_definitions(system::TABLES, |r| r[0] == row[0], |_| Some(row.clone())).await?;
        self.set_catalog(Arc::new(catalog.with(Arc::new(analyzed))));
        Ok(statistics)
    }
}

async fn estimate(store: &Store, table: ObjectId) -> Result<Statistics> {
    assert!(system_table(system::TABLES).oid < table, "a user's table");
    let pages = store.space(DATA).pages(table, 0, usize::MAX);
    let step = pages.len().div_ceil(SAMPLE).max(1);
    let (mut looked, mut rows) = (0u64, 0u64);
    for page in pages.iter().step_by(step) {
        let pin = store.pool().fetch(PageId::new(DATA, *page), Access::Sequential).await?;
        let slots = slotted::slot_count(&pin.read());
        let live = |slot| Heap::read(&pin, slot).is_some_and(|row| row.header.flags & DELETED == 0);
        rows += (0..slots).filter(|slot| live(*slot)).count() as u64;
        looked += 1;
    }
    let total = pages.len() as u64;
    // Rounded to the nearest.
    let rows = (rows as u128 * total as u128 + looked as u128 / 2).checked_div(looked as u128).unwrap_or(0) as u64;
    Ok(Statistics { rows, pages: total })
}
