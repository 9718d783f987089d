//! Foreign keys, as a transaction writes rows of the tables on both sides.
//!
//! 1. A write is judged at once. If its foreign keys hold then, nothing is noted, because nothing that comes later can
//!    break them unseen (invariant 3). Otherwise it is noted, and judged again at the end of the statement
//!    ([`Txn::next_consequence`]). A deferred constraint is only noted, and judged at the end of the transaction
//!    ([`Txn::check_deferred`]) or at SET CONSTRAINTS.
//! 2. The judgement uses the newest versions, as they are whichever way running transactions end, and not the snapshot
//!    (`find`). The snapshot is held meanwhile, so that no RID that was read in an index is given to another row.
//! 3. Of a row that refers to a key, and of the removal of that key, whichever comes later sees the other. Who writes
//!    the referring row locks the referenced one (`RowLock::KeyShare`) and then looks at it. Who removes the key does
//!    so under the row's latch, where he sees such locks (`locks`, invariants 5 and 6). Then he looks for referring
//!    rows. So either the remover waits for the other's end, and finds the row if it was committed; or the other finds
//!    the key's removal, and waits for the remover's end. The lock of the key is held to the end of the transaction.
//! 4. What changes other rows (CASCADE, SET NULL, SET DEFAULT) is never deferred. The caller makes these changes
//!    ([`Consequence`]), because constraints and defaults are SQL text; they are noted as any others. So a commit needs
//!    no caller.
//! 5. Going back to a savepoint takes back what was noted since, and notes again what was judged since.
//! 6. A transaction that has locked very many keys of a table locks all of them instead, if nobody else is taking one
//!    away at that moment (`LockKey::Keys`): locks of rows are limited in number. So a remover takes that lock before
//!    he looks at those of the row.
use super::write::key_changed;
use super::{Txn, Version};
use crate::catalog::foreign::{Action, ForeignKey, convert};
use crate::catalog::{Catalog, Table};
use crate::error::{EngineError, Result};
use crate::row::{RowBuf, RowText, RowView};
use crate::types::Datum;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use terrace_storage::{ObjectId, Rid};

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

#[derive(Clone, Debug)]
enum Event {
    /// The row was written and refers to something.
    Referring(Rid),
    /// This key of the referenced table went; an update put `new` in its place.
    Removed { old: Vec<Datum>, new: Option<Vec<Datum>>, action: Action },
}

#[derive(Clone, Debug)]
struct Noted {
    key: Arc<ForeignKey>,
    event: Event,
    /// The number of the judgement at which it held; 0: not judged yet.
    judged: u32,
}

/// What a transaction has noted.
#[derive(Default)]
pub(super) struct Notes {
    /// To be judged at the end of the statement, in PostgreSQL's order: what a consequence entails comes after all that
    /// was noted before it.
    now: VecDeque<Noted>,
    /// To be judged at the end of the transaction.
    later: Vec<Noted>,
    /// What SET CONSTRAINTS said, oldest first: of one constraint, or of all; deferred or not.
    modes: Vec<(Option<ObjectId>, bool)>,
    /// Judgements of what was deferred.
    judgements: u32,
    /// How many keys of each referenced table it has locked; `None`: all (invariant 6).
    locked: FxHashMap<ObjectId, Option<usize>>,
}

/// A place in the notes (invariant 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    now: usize,
    later: usize,
    modes: usize,
    judgements: u32,
}

impl Notes {
    pub(super) fn mark(&self) -> Mark {
        let Notes { now, later, modes, judgements, locked: _ } = self;
        Mark { now: now.len(), later: later.len(), modes: modes.len(), judgements: *judgements }
    }

    pub(super) fn back_to(&mut self, mark: Mark) {
        self.now.truncate(mark.now);
        self.later.truncate(mark.later);
        self.modes.truncate(mark.modes);
        self.later.iter_mut().filter(|noted| noted.judged > mark.judgements).for_each(|noted| noted.judged = 0);
    }

    fn defers(&self, key: &ForeignKey) -> bool {
        let said = self.modes.iter().rev().find(|(oid, _)| oid.is_none_or(|oid| oid == key.oid));
        key.deferrable && said.map_or(key.deferred, |(_, deferred)| *deferred)
    }
}

impl Txn {
    /// Made for the first foreign key.
    fn notes(&mut self) -> &mut Notes {
        self.notes.get_or_insert_default()
    }

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
        for key in table.referenced_by.iter().filter(|key| key_changed(&key.key, before, after)) {
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
        let noted = Noted { key: key.clone(), event: Event::Referring(rid), judged: 0 };
        if self.notes().defers(key) {
            self.notes().later.push(noted);
        } else if self.missing(key, table, row).await?.is_some() {
            self.notes().now.push_back(noted);
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
        let defers = action == Action::NoAction && self.notes().defers(key);
        if !defers && self.referring(key, &old, false).await?.is_none() {
            return Ok(());
        }
        let noted =
            Noted { key: key.clone(), event: Event::Removed { old, new: after.map(values), action }, judged: 0 };
        match defers {
            true => self.notes().later.push(noted),
            false => self.notes().now.push_back(noted),
        }
        Ok(())
    }

    /// Whether the statement has something left to do: [`Txn::next_consequence`] says what.
    pub fn has_consequences(&self) -> bool {
        self.notes.as_ref().is_some_and(|notes| !notes.now.is_empty())
    }

    /// Judges what the statement has noted: 23503 where a foreign key does not hold, or the next rows that have to be
    /// changed; `None` at the end. The caller changes these rows with [`Txn::update`] and [`Txn::delete`], and asks
    /// again.
    pub async fn next_consequence(&mut self) -> Result<Option<Consequence>> {
        while let Some(noted) = self.notes().now.pop_front() {
            let (old, new, action) = match noted.event {
                Event::Removed { old, new, action } if !matches!(action, Action::NoAction | Action::Restrict) => {
                    (old, new, action)
                }
                _ => {
                    self.judge_noted(&noted).await?;
                    continue;
                }
            };
            let Some((key, table, rows)) = self.referring(&noted.key, &old, true).await? else { continue };
            if action == Action::SetDefault {
                // The default may be the key that went: then the rows have not changed, and nobody else would see it.
                let event = Event::Removed { old: old.clone(), new: None, action: Action::NoAction };
                self.notes().now.push_front(Noted { event, ..noted });
            }
            let old = find::converted(&key, &table, old).expect("rows have the key");
            let change = change(&key, &table, action, new)?;
            return Ok(Some(Consequence { key, table, rows, change, old }));
        }
        Ok(None)
    }

    /// 23503 where what was noted does not hold.
    async fn judge_noted(&mut self, noted: &Noted) -> Result<()> {
        match &noted.event {
            Event::Referring(rid) => {
                let catalog = self.catalog();
                let Some(table) = catalog.table_by_oid(noted.key.table) else { return Ok(()) };
                let (core, own) = (self.core().clone(), self.own());
                // The row is this transaction's own, unless it was undone.
                let Some((row, None)) = core.settled(own, table.oid, *rid).await? else { return Ok(()) };
                if !row.is_live() {
                    return Ok(());
                }
                match self.missing(&noted.key, table, row.view(table)).await? {
                    Some(error) => Err(error),
                    None => Ok(()),
                }
            }
            Event::Removed { old, action, .. } => {
                if *action == Action::NoAction && self.is_there_again(&noted.key, old).await? {
                    return Ok(());
                }
                match self.referring(&noted.key, old, false).await? {
                    Some((key, table, _)) => Err(still_referenced(&self.catalog(), &key, &table, old)),
                    None => Ok(()),
                }
            }
        }
    }

    /// Judges what was deferred to the end of the transaction: 23503. [`Txn::commit`] does it too; the caller may do it
    /// before, where it may be cancelled.
    pub async fn check_deferred(&mut self) -> Result<()> {
        self.judge_deferred(|_| true).await
    }

    pub(super) fn has_noted(&self) -> bool {
        self.notes.as_ref().is_some_and(|notes| !(notes.now.is_empty() && notes.later.is_empty()))
    }

    /// For the caller whose statement can have no consequences: judges what it has noted. 23503.
    pub async fn judge_statement(&mut self) -> Result<()> {
        match self.next_consequence().await? {
            None => Ok(()),
            Some(left) => {
                let message =
                    format!("rows of \"{}\" were left as they are, which a foreign key changes", left.table.name);
                Err(EngineError::internal(message))
            }
        }
    }

    /// Before a commit: judges all that is noted.
    pub(super) async fn check_noted(&mut self) -> Result<()> {
        self.judge_statement().await?;
        self.check_deferred().await
    }

    async fn judge_deferred(&mut self, which: impl Fn(&ForeignKey) -> bool + Send) -> Result<()> {
        if self.notes().later.iter().all(|noted| noted.judged > 0) {
            return Ok(());
        }
        self.notes().judgements += 1;
        for at in 0..self.notes().later.len() {
            let noted = &self.notes().later[at];
            if noted.judged == 0 && which(&noted.key) {
                let noted = noted.clone();
                self.judge_noted(&noted).await?;
                let notes = self.notes();
                notes.later[at].judged = notes.judgements;
            }
        }
        Ok(())
    }

    /// SET CONSTRAINTS: of these foreign keys, or of all. Made immediate, they are judged at once (23503).
    pub async fn set_constraints(&mut self, keys: Option<&[ObjectId]>, deferred: bool) -> Result<()> {
        match keys {
            None => {
                self.notes().modes.push((None, deferred));
            }
            Some(keys) => self.notes().modes.extend(keys.iter().map(|oid| (Some(*oid), deferred))),
        }
        match deferred {
            true => Ok(()),
            false => self.judge_deferred(|key| keys.is_none_or(|keys| keys.contains(&key.oid))).await,
        }
    }

    /// 55006 where something of the table is noted and not judged: a definition must not change under it.
    pub(crate) fn refuse_noted(&self, table: &Table, what: &str) -> Result<()> {
        let concerns = |noted: &Noted| match noted.event {
            Event::Referring(_) => noted.key.table == table.oid,
            Event::Removed { .. } => noted.key.referenced == table.oid,
        };
        let mut later = self.notes.iter().flat_map(|notes| &notes.later);
        match later.any(|noted| noted.judged == 0 && concerns(noted)) {
            true => {
                let message = format!("cannot {what} \"{}\" because it has pending trigger events", table.name);
                Err(EngineError::new("55006", message))
            }
            false => Ok(()),
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
    refused(key, table).with_detail(format!("Key ({names})={values} is not present in table \"{}\".", referenced.name))
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
    EngineError::new("23503", message)
        .with_detail(format!("Key ({names})={values} is still referenced from table \"{}\".", table.name))
        .on_table(table)
        .on_constraint(&key.name)
}
