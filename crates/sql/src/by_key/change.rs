//! UPDATE, DELETE and INSERT by key.
//!
//! 1. All rows are found, and all new ones computed, before the first is changed: a statement never sees its own
//!    changes, and which error comes first is part of the answer.
//! 2. A row that another transaction has changed meanwhile (READ COMMITTED) is evaluated again in its newest version,
//!    and changed if it still is one of those sought.
//! 3. RETURNING sees rows as they became, deleted ones as they were, when all is done.
use super::rows::{Found, Rows, Sought, fitting};
use super::values::{Bound, Cell, Given, NewValue, batch};
use super::{ByKeyDone, ROWS_AT_ONCE};
use crate::values::{assign_datum, check_not_null};
use datafusion::arrow::datatypes::SchemaRef;
use std::sync::Arc;
use terrace_engine::{Datum, Result, Table, Txn, UpdateOutcome};
use terrace_env::yield_now;

/// UPDATE (`sets`) or DELETE.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) rows: Rows,
    pub(super) sets: Option<Vec<(usize, NewValue)>>,
    pub(super) returning: Option<Returning>,
}

/// Whole rows.
#[derive(Debug)]
pub(super) struct Insert {
    pub(super) rows: Vec<Vec<Given>>,
    pub(super) returning: Option<Returning>,
}

#[derive(Debug)]
pub(super) struct Returning {
    pub(super) cells: Vec<Cell>,
    pub(super) schema: SchemaRef,
}

impl Change {
    /// `None`: it is the general way's after all; nothing has been done.
    pub(super) async fn run(&self, table: &Arc<Table>, txn: &mut Txn, bound: Bound<'_>) -> Result<Option<ByKeyDone>> {
        let Some(sought) = fitting(self.rows.sought(bound))? else { return Ok(None) };
        let Some(found) = sought.all(table, txn).await? else { return Ok(None) };
        let mut changes = Vec::with_capacity(found.len());
        for found in found {
            let old = found.1.view(table).to_datums();
            changes.push((found, self.row(table, old, bound)?));
        }
        let (mut count, mut rows) = (0, vec![]);
        for (found, row) in changes {
            if count > 0 && count % ROWS_AT_ONCE == 0 {
                yield_now().await; // Others' turn; and a cancel is seen.
            }
            if let Some(row) = self.apply(table, txn, &sought, found, row, bound).await? {
                count += 1;
                if self.returning.is_some() {
                    rows.push(row);
                }
            }
        }
        judge(txn).await?;
        let verb = if self.sets.is_some() { "UPDATE" } else { "DELETE" };
        done(verb, count, &self.returning, &rows, bound).map(Some)
    }

    /// What a row becomes; where it is deleted, the row itself.
    fn row(&self, table: &Table, old: Vec<Datum>, bound: Bound<'_>) -> Result<Vec<Datum>> {
        let Some(sets) = &self.sets else { return Ok(old) };
        let mut new = old.clone();
        for (at, value) in sets {
            let value = value.value(|column| old[column].clone(), bound)?;
            new[*at] = assign_datum(value, table.columns[*at].data_type)?;
        }
        check_not_null(table, &new)?;
        Ok(new)
    }

    /// Changes one row, evaluating it again as often as it has changed. `None`: it was not changed.
    async fn apply(
        &self,
        table: &Table,
        txn: &mut Txn,
        sought: &Sought<'_>,
        (rid, _, mut version): Found,
        mut row: Vec<Datum>,
        bound: Bound<'_>,
    ) -> Result<Option<Vec<Datum>>> {
        loop {
            let outcome = match self.sets {
                Some(_) => txn.update(table, rid, version, &row).await?,
                None => txn.delete(table, rid, version).await?,
            };
            match outcome {
                UpdateOutcome::Done => return Ok(Some(row)),
                UpdateOutcome::Gone => return Ok(None),
                UpdateOutcome::Changed { row: newest, version: newer } => {
                    let view = newest.view(table);
                    if !sought.holds(view) {
                        return Ok(None);
                    }
                    (row, version) = (self.row(table, view.to_datums(), bound)?, newer);
                }
            }
        }
    }
}

impl Insert {
    pub(super) async fn run(&self, table: &Table, txn: &mut Txn, bound: Bound<'_>) -> Result<ByKeyDone> {
        let row = |row: &Vec<Given>| row.iter().map(|given| given.value(bound)).collect::<Result<Vec<Datum>>>();
        let rows = self.rows.iter().map(row).collect::<Result<Vec<_>>>()?;
        for (done, row) in rows.iter().enumerate() {
            if done > 0 && done.is_multiple_of(ROWS_AT_ONCE) {
                yield_now().await; // Others' turn; and a cancel is seen.
            }
            check_not_null(table, row)?;
            txn.insert(table, row).await?;
        }
        judge(txn).await?;
        done("INSERT 0", rows.len(), &self.returning, &rows, bound)
    }
}

fn done(
    verb: &str,
    count: usize,
    returning: &Option<Returning>,
    rows: &[Vec<Datum>],
    bound: Bound<'_>,
) -> Result<ByKeyDone> {
    let Some(Returning { cells, schema }) = returning else { return Ok(ByKeyDone::Tag(format!("{verb} {count}"))) };
    assert_eq!(rows.len(), count, "a row to return for each that was changed");
    batch(cells, schema, rows.iter().map(|row| move |at: usize| row[at].as_ref()), bound).map(ByKeyDone::Rows)
}

/// Whether the foreign keys hold. What changes other rows is not recognised.
async fn judge(txn: &mut Txn) -> Result<()> {
    if txn.has_consequences() { Box::pin(txn.judge_statement()).await } else { Ok(()) }
}
