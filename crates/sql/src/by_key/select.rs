//! SELECT by an index: of one row, or of a short range; also FOR UPDATE and its weaker forms.
//!
//! 1. Rows are locked in the order in which they are answered, and no more of them than LIMIT allows. One that another
//!    transaction has changed meanwhile (READ COMMITTED) is answered in its newest version, if it still is one of those
//!    sought; it keeps its place.
use super::rows::{Found, MOST, Rows, Sought};
use super::values::{Bound, Cell, Given, batch, exact};
use crate::cast::cast_datum;
use crate::error::from_arrow;
use crate::values::ColumnBuilder;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use std::cmp::Ordering;
use std::sync::Arc;
use terrace_engine::types::Decimal;
use terrace_engine::{DataType, Datum, EngineError, LockWait, Result, RowBuf, RowLock, RowLockOutcome, Table, Txn};

#[derive(Debug)]
pub(super) struct Select {
    pub(super) rows: Rows,
    pub(super) lock: Option<(RowLock, LockWait)>,
    /// Columns to sort by, and whether downwards; empty: the index's order will do.
    pub(super) sort: Vec<(usize, bool)>,
    /// The columns shown are those sorted by: rows that are equal in them are one.
    pub(super) distinct: bool,
    pub(super) limit: Option<Given>,
    pub(super) output: Output,
    pub(super) schema: SchemaRef,
}

#[derive(Debug)]
pub(super) enum Output {
    Cells(Vec<Cell>),
    /// One row of one column.
    Total(Total, Cell),
}

/// An aggregate. Its cell tells its type alone.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Total {
    Count,
    /// Of a column of integers or of numerics.
    Sum(usize),
    Least(usize),
    Greatest(usize),
}

impl Select {
    /// Where it is a look-up of one row that needs nothing but its columns.
    pub(super) fn at_once(&self) -> Option<(&Rows, &[Cell])> {
        let Output::Cells(cells) = &self.output else { return None };
        let plain = self.rows.one && self.lock.is_none() && self.limit.is_none() && !self.distinct;
        (plain && cells.iter().all(|cell| cell.plain().is_some())).then_some((&self.rows, cells))
    }

    /// `None`: it is the general way's after all.
    pub(super) async fn run(&self, table: &Arc<Table>, txn: &mut Txn, bound: Bound<'_>) -> Result<Option<RecordBatch>> {
        let limit = match self.limit.as_ref().map(|limit| limit.value(bound)).transpose()? {
            None => usize::MAX,
            Some(Datum::Int8(n)) if n >= 0 => usize::try_from(n).unwrap_or(usize::MAX),
            // NULL means all, and what is negative is an error: who says so is elsewhere.
            Some(_) => return Ok(None),
        };
        let sought = match self.rows.sought(bound) {
            Err(error) if error.state.0 == "22003" => return Ok(None),
            sought => sought?,
        };
        let rows = match self.sort.is_empty() {
            true => self.some(table, txn, &sought, limit).await?,
            false => self.sorted(table, txn, &sought, limit).await?,
        };
        rows.map(|rows| self.answer(table, &rows, bound)).transpose()
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
            match self.lock {
                None => rows.extend(found.into_iter().map(|(_, row, _)| row)),
                Some(_) => {
                    for found in found {
                        rows.extend(self.locked(table, txn, sought, found).await?);
                    }
                }
            }
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
        if self.lock.is_none() {
            found.truncate(limit);
            return Ok(Some(found.into_iter().map(|(_, row, _)| row).collect()));
        }
        let mut rows = vec![];
        for found in found {
            if rows.len() == limit {
                break;
            }
            rows.extend(self.locked(table, txn, sought, found).await?);
        }
        Ok(Some(rows))
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

    /// NULLs last upwards, first downwards.
    fn order(&self, table: &Table, a: &RowBuf, b: &RowBuf) -> Ordering {
        let (a, b) = (a.view(table), b.view(table));
        let by = |(at, down): &(usize, bool)| {
            let order = a.get(*at).cmp_key(b.get(*at));
            if *down { order.reverse() } else { order }
        };
        self.sort.iter().map(by).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    fn answer(&self, table: &Table, rows: &[RowBuf], bound: Bound<'_>) -> Result<RecordBatch> {
        let (total, cell) = match &self.output {
            Output::Cells(cells) => {
                let rows = rows.iter().map(|row| {
                    let view = row.view(table);
                    move |at| view.get(at)
                });
                return batch(cells, &self.schema, rows, bound);
            }
            Output::Total(total, cell) => (total, cell),
        };
        let mut value = cast_datum(total.of(table, rows)?, cell.of, true)?;
        if cell.as_text {
            value = cast_datum(value, DataType::Text, true)?;
        }
        let mut column = ColumnBuilder::new(cell.data_type(), 1);
        column.push(value.as_ref());
        RecordBatch::try_new(self.schema.clone(), vec![column.finish()]).map_err(from_arrow)
    }
}

impl Total {
    fn of(self, table: &Table, rows: &[RowBuf]) -> Result<Datum> {
        let at = match self {
            Total::Count => return Ok(Datum::Int8(rows.len() as i64)),
            Total::Sum(at) | Total::Least(at) | Total::Greatest(at) => at,
        };
        let values = rows.iter().map(|row| row.view(table).get(at)).filter(|value| !value.is_null());
        let end = match self {
            Total::Least(_) => values.min_by(|a, b| a.cmp_key(*b)),
            Total::Greatest(_) => values.max_by(|a, b| a.cmp_key(*b)),
            _ => return sum(values.map(|value| value.to_datum())),
        };
        Ok(end.map_or(Datum::Null, |value| value.to_datum()))
    }
}

/// Of integers or numerics, as a plain numeric.
fn sum(values: impl Iterator<Item = Datum>) -> Result<Datum> {
    let mut sum: Option<Decimal> = None;
    for value in values {
        let other = || EngineError::internal(format!("{value:?} in a column of numbers"));
        let value = exact(&value).ok_or_else(other)?;
        sum = Some(match sum {
            Some(sum) => sum.add(&value)?,
            None => value,
        });
    }
    Ok(sum.map_or(Datum::Null, |sum| Datum::Decimal(sum.encode())))
}
