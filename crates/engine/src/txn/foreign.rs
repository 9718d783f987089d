//! Foreign keys, as a transaction writes rows of the tables on both sides.
//!
//! 1. A write is judged at once. If its foreign keys hold then, nothing is noted, because nothing that comes later can
//!    break them unseen (invariant 3). Otherwise it is noted (`notes`), and judged again at the end of the statement. A
//!    deferred constraint is only noted.
//! 2. The judgement uses the newest versions, as they are whichever way running transactions end, and not the snapshot
//!    (`find`). The snapshot is held meanwhile, so that no RID that was read in an index is given to another row.
//! 3. Of a row that refers to a key, and of the removal of that key, whichever comes later sees the other. Who writes
//!    the referring row locks the referenced one (`RowLock::KeyShare`) and then looks at it. Who removes the key does
//!    so under the row's latch, where he sees such locks (`locks`, invariants 5 and 6). Then he looks for referring
//!    rows. So either the remover waits for the other's end, and finds the row if it was committed; or the other finds
//!    the key's removal, and waits for the remover's end. The lock of the key is held to the end of the transaction, or
//!    until the referring row is taken back.
//! 4. What changes other rows (CASCADE, SET NULL, SET DEFAULT) is never deferred. The caller makes these changes
//!    ([`Consequence`]), because constraints and defaults are SQL text; they are noted as any others. So a commit needs
//!    no caller.
//! 5. A transaction that has locked very many keys of a table locks all of them instead, if nobody else is taking one
//!    away at that moment (`LockKey::Keys`): locks of rows are limited in number. So a remover takes that lock before
//!    he looks at those of the row.
use super::notes::Event;
use super::write::{key_changed, shows_changed};
use super::{Txn, Version};
use crate::catalog::foreign::{Action, ForeignKey, convert};
use crate::catalog::{Catalog, Table};
use crate::error::{EngineError, Result, Shown};
use crate::row::{RowBuf, RowText, RowView};
use crate::types::Datum;
use std::sync::Arc;
use terrace_storage::Rid;

mod find;
#[cfg(test)]
mod tests;

/// Rows that have to be changed because a row that they refer to went or got another key.
#[derive(Debug)]
pub struct Consequence {
    pub key: Arc<ForeignKey>,
    /// The referring table, locked for writing.
    pub table: Arc<Table>,
    pub rows: Vec<(Rid, RowBuf, Version)>,
    pub change: Change,
    /// What the rows have in the foreign key's columns.
    old: Vec<Datum>,
}

#[derive(Clone, Debug)]
pub enum Change {
    Delete,
    /// Columns and their new values; `None`: the column's default.
    Set(Vec<(usize, Option<Datum>)>),
}

impl Consequence {
    /// Whether a later version of one of its rows has to be changed too.
    pub fn applies(&self, row: &RowBuf) -> bool {
        find::Wanted::new(&self.key.columns, &self.old).is_of(row.view(&self.table))
    }
}

impl Txn {
    pub(super) async fn row_inserted(&mut self, table: &Table, row: &RowBuf, rid: Rid) -> Result<()> {
        for key in &table.foreign_keys {
            self.refers(key, table, row.view(table), rid).await?;
        }
        Ok(())
    }

    pub(super) async fn row_updated(
        &mut self,
        table: &Table,
        before: RowView<'_>,
        after: RowView<'_>,
        rid: Rid,
    ) -> Result<()> {
        // In PostgreSQL's order.
        for key in table.referenced_by.iter().filter(|key| shows_changed(&key.key, before, after)) {
            self.removed(key, before, Some(after)).await?;
        }
        for key in table.foreign_keys.iter().filter(|key| key_changed(&key.columns, before, after)) {
            self.refers(key, table, after, rid).await?;
        }
        Ok(())
    }

    pub(super) async fn row_deleted(&mut self, table: &Table, row: RowView<'_>) -> Result<()> {
        for key in &table.referenced_by {
            self.removed(key, row, None).await?;
        }
        Ok(())
    }

    /// A row was written (invariant 1).
    async fn refers(&mut self, key: &Arc<ForeignKey>, table: &Table, row: RowView<'_>, rid: Rid) -> Result<()> {
        let deferred = self.notes().defers_foreign(key);
        if deferred || self.missing(key, table, row).await?.is_some() {
            self.notes().note(Event::Referring(key.clone(), rid), deferred);
        }
        Ok(())
    }

    /// A key went (invariant 1).
    async fn removed(&mut self, key: &Arc<ForeignKey>, before: RowView<'_>, after: Option<RowView<'_>>) -> Result<()> {
        let values = |row: RowView<'_>| key.key.iter().map(|&at| row.get(at).to_datum()).collect::<Vec<Datum>>();
        let old = values(before);
        if old.contains(&Datum::Null) {
            // Nothing refers to it.
            return Ok(());
        }
        let action = if after.is_some() { key.on_update } else { key.on_delete };
        let deferred = action == Action::NoAction && self.notes().defers_foreign(key);
        if deferred || self.referring(key, &old, false).await?.is_some() {
            let event = Event::Removed { key: key.clone(), old, new: after.map(values), action };
            self.notes().note(event, deferred);
        }
        Ok(())
    }

    /// The rows that have to be changed because a key went, if there are any.
    pub(super) async fn entailed(
        &mut self,
        key: &Arc<ForeignKey>,
        old: Vec<Datum>,
        new: Option<Vec<Datum>>,
        action: Action,
    ) -> Result<Option<Consequence>> {
        let Some((key, table, rows)) = self.referring(key, &old, true).await? else { return Ok(None) };
        let old = find::converted(&key, &table, old).expect("rows have the key");
        let change = change(&key, &table, action, new)?;
        Ok(Some(Consequence { key, table, rows, change, old }))
    }

    /// 23503 where a row refers to nothing.
    pub(super) async fn judge_referring(&mut self, key: &Arc<ForeignKey>, rid: Rid) -> Result<()> {
        let catalog = self.catalog();
        let Some(table) = catalog.table_by_oid(key.table) else { return Ok(()) };
        let Some(row) = self.written(table, rid).await? else { return Ok(()) };
        self.missing(key, table, row.view(table)).await?.map_or(Ok(()), Err)
    }

    /// 23503 where something refers to a key that went.
    pub(super) async fn judge_removed(&mut self, key: &Arc<ForeignKey>, old: &[Datum], action: Action) -> Result<()> {
        if action == Action::NoAction && self.is_there_again(key, old).await? {
            return Ok(());
        }
        match self.referring(key, old, false).await? {
            Some((key, table, _)) => Err(still_referenced(&self.catalog(), &key, &table, old)),
            None => Ok(()),
        }
    }

    fn is_repeatable(&self) -> bool {
        self.isolation.is_repeatable()
    }
}

fn change(key: &ForeignKey, table: &Table, action: Action, new: Option<Vec<Datum>>) -> Result<Change> {
    let deletion = new.is_none();
    Ok(match (action, new) {
        (Action::Cascade, None) => Change::Delete,
        (Action::Cascade, Some(new)) => {
            let value = |(&at, value): (&usize, Datum)| {
                let to = table.columns[at].data_type;
                let value = convert(value, to).ok_or_else(|| EngineError::out_of_range(to.base_name()))?;
                Ok((at, Some(value)))
            };
            Change::Set(key.columns.iter().zip(new).map(value).collect::<Result<_>>()?)
        }
        (Action::SetNull, _) => {
            Change::Set(key.set_columns(deletion).iter().map(|&at| (at, Some(Datum::Null))).collect())
        }
        (Action::SetDefault, _) => Change::Set(key.set_columns(deletion).iter().map(|&at| (at, None)).collect()),
        (Action::NoAction | Action::Restrict, _) => unreachable!("these change nothing"),
    })
}

fn names(table: &Table, columns: &[usize]) -> String {
    columns.iter().map(|&at| table.columns[at].name.as_str()).collect::<Vec<_>>().join(", ")
}

pub(crate) fn not_present(key: &ForeignKey, table: &Table, referenced: &Table, values: &[Datum]) -> EngineError {
    let (names, values) = (names(table, &key.columns), RowText(values));
    let instead = format!("Key is not present in table \"{}\".", referenced.name);
    refused(key, table)
        .with_detail(format!("Key ({names})={values} is not present in table \"{}\".", referenced.name))
        .showing(table, Shown::Key(key.columns.clone(), Some(instead)))
}

fn mixed(key: &ForeignKey, table: &Table) -> EngineError {
    refused(key, table).with_detail("MATCH FULL does not allow mixing of null and nonnull key values.")
}

fn refused(key: &ForeignKey, table: &Table) -> EngineError {
    let message =
        format!("insert or update on table \"{}\" violates foreign key constraint \"{}\"", table.name, key.name);
    EngineError::new("23503", message).on_table(table).on_constraint(&key.name)
}

fn still_referenced(catalog: &Catalog, key: &ForeignKey, table: &Table, values: &[Datum]) -> EngineError {
    let referenced = catalog.table_by_oid(key.referenced).expect("this transaction has it locked");
    let message = format!(
        "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
        referenced.name, key.name, table.name
    );
    let (names, values) = (names(referenced, &key.key), RowText(values));
    let instead = format!("Key is still referenced from table \"{}\".", table.name);
    EngineError::new("23503", message)
        .with_detail(format!("Key ({names})={values} is still referenced from table \"{}\".", table.name))
        .showing(referenced, Shown::Key(key.key.clone(), Some(instead)))
        .on_table(table)
        .on_constraint(&key.name)
}
