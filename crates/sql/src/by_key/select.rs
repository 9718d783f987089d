//! SELECT by an index: of one row, of a short range, or of the first rows in the index's order; also FOR UPDATE and its
//! weaker forms.
//!
//! 1. Rows are locked in the order in which they are answered, and no more of them than LIMIT allows. One that another
//!    transaction has changed meanwhile (READ COMMITTED) is answered in its newest version, if it still is one of those
//!    sought; it keeps its place.
use super::answer::{Output, limit, offset, order};
use super::rows::{Found, MOST, Rows, Sought, fitting};
use super::values::{Bound, Cell, Given};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use std::cmp::Ordering;
use std::sync::Arc;
use terrace_engine::{LockWait, Result, RowBuf, RowLock, RowLockOutcome, Table, Txn};

#[derive(Debug)]
pub(super) struct Select {
    pub(super) rows: Rows,
    pub(super) lock: Option<(RowLock, LockWait)>,
    /// Columns to sort by, and whether downwards; empty: the index's order will do.
    pub(super) sort: Vec<(usize, bool)>,
    /// The columns shown are those sorted by: rows that are equal in them are one.
    pub(super) distinct: bool,
    pub(super) limit: Option<Given>,
    pub(super) offset: Option<Given>,
    pub(super) output: Output,
    pub(super) schema: SchemaRef,
}

impl Select {
    /// Where it is a look-up of one row that needs nothing but its columns.
    pub(super) fn at_once(&self) -> Option<(&Rows, &[Cell])> {
        let Output::Cells(cells) = &self.output else { return None };
        let whole = self.limit.is_none() && self.offset.is_none();
        let plain = self.rows.one && self.lock.is_none() && whole && !self.distinct;
        (plain && cells.iter().all(|cell| cell.plain().is_some())).then_some((&self.rows, cells))
    }

    /// `None`: it is the general way's after all.
    pub(super) async fn run(&self, table: &Arc<Table>, txn: &mut Txn, bound: Bound<'_>) -> Result<Option<RecordBatch>> {
        let Some(limit) = limit(&self.limit, bound)? else { return Ok(None) };
        let Some(skipped) = offset(&self.offset, bound)? else { return Ok(None) };
        let limit = limit.saturating_add(skipped);
        let Some(sought) = fitting(self.rows.sought(bound))? else { return Ok(None) };
        let rows = match self.sort.is_empty() {
            true => self.some(table, txn, &sought, limit).await?,
            false => self.sorted(table, txn, &sought, limit).await?,
        };
        let Some(rows) = rows else { return Ok(None) };
        let columns = rows.get(skipped..).unwrap_or_default().iter().map(|row| {
            let view = row.view(table);
            move |at| view.get(at)
        });
        self.output.answer(&self.schema, columns, bound).map(Some)
    }

    /// As many as LIMIT allows, as the index has them. `None`: too many (those that were locked stay so; the general
    /// way locks them, too).
    async fn some(
        &self,
        table: &Arc<Table>,
        txn: &mut Txn,
        sought: &Sought<'_>,
        limit: usize,
    ) -> Result<Option<Vec<RowBuf>>> {
        let (mut rows, most) = (vec![], limit.min(MOST + 1));
        let mut source = sought.source(table, txn).await?;
        while rows.len() < most {
            let found = source.next(most - rows.len()).await?;
            if found.is_empty() {
                break;
            }
            self.add(table, txn, sought, found, (&mut rows, most)).await?;
        }
        assert!(rows.len() <= MOST + 1, "rows.rs, invariant 1: one more tells that the range is longer");
        Ok((rows.len() <= MOST).then_some(rows))
    }

    /// The same in another order.
    async fn sorted(
        &self,
        table: &Arc<Table>,
        txn: &mut Txn,
        sought: &Sought<'_>,
        limit: usize,
    ) -> Result<Option<Vec<RowBuf>>> {
        let Some(mut found) = sought.all(table, txn).await? else { return Ok(None) };
        found.sort_by(|(_, a, _), (_, b, _)| self.order(table, a, b));
        if self.distinct {
            found.dedup_by(|(_, a, _), (_, b, _)| self.order(table, a, b) == Ordering::Equal);
        }
        let mut rows = vec![];
        self.add(table, txn, sought, found, (&mut rows, limit)).await?;
        Ok(Some(rows))
    }

    /// Locks rows as the statement says and adds them, until there are so many.
    async fn add(
        &self,
        table: &Table,
        txn: &mut Txn,
        sought: &Sought<'_>,
        found: Vec<Found>,
        (rows, most): (&mut Vec<RowBuf>, usize),
    ) -> Result<()> {
        for found in found {
            if rows.len() == most {
                break;
            }
            rows.extend(self.locked(table, txn, sought, found).await?);
        }
        Ok(())
    }

    /// Invariant 1.
    async fn locked(
        &self,
        table: &Table,
        txn: &mut Txn,
        sought: &Sought<'_>,
        (rid, row, version): Found,
    ) -> Result<Option<RowBuf>> {
        let Some((lock, wait)) = self.lock else { return Ok(Some(row)) };
        Ok(match Box::pin(txn.lock_row(table, rid, version, lock, wait)).await? {
            RowLockOutcome::Locked => Some(row),
            RowLockOutcome::Changed { row: newest, .. } => Some(newest).filter(|row| sought.holds(row.view(table))),
            RowLockOutcome::Gone | RowLockOutcome::Skipped => None,
        })
    }

    fn order(&self, table: &Table, a: &RowBuf, b: &RowBuf) -> Ordering {
        let (a, b) = (a.view(table), b.view(table));
        order(&self.sort, |at| a.get(at), |at| b.get(at))
    }
}
