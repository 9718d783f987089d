//! The answer of a SELECT by key: what it shows of its rows, in which order, and how many of them.
use super::values::{Bound, Cell, Given, batch, exact};
use crate::cast::cast_datum;
use crate::error::from_arrow;
use crate::values::ColumnBuilder;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use std::cmp::Ordering;
use terrace_engine::types::Decimal;
use terrace_engine::{DataType, Datum, DatumRef, EngineError, Result};

/// What is answered of the rows that were found.
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
    /// Of a column's values those that differ.
    Different(usize),
    /// Of a column of integers or of numerics.
    Sum(usize),
    Least(usize),
    Greatest(usize),
}

/// How many rows LIMIT allows; `None`: the general way says.
pub(super) fn limit(limit: &Option<Given>, bound: Bound<'_>) -> Result<Option<usize>> {
    Ok(match limit.as_ref().map(|limit| limit.value(bound)).transpose()? {
        None => Some(usize::MAX),
        Some(Datum::Int8(n)) if n >= 0 => Some(usize::try_from(n).unwrap_or(usize::MAX)),
        // NULL means all, and what is negative is an error.
        Some(_) => None,
    })
}

/// How many rows OFFSET leaves out; `None`: the general way says.
pub(super) fn offset(offset: &Option<Given>, bound: Bound<'_>) -> Result<Option<usize>> {
    if offset.is_some() { limit(offset, bound) } else { Ok(Some(0)) }
}

/// Of two rows that answer their columns, by columns and whether each goes downwards. NULLs come last upwards, first
/// downwards.
pub(super) fn order<'r>(
    by: &[(usize, bool)],
    a: impl Fn(usize) -> DatumRef<'r>,
    b: impl Fn(usize) -> DatumRef<'r>,
) -> Ordering {
    let by = by.iter().map(|(at, down)| {
        let order = a(*at).cmp_key(b(*at));
        if *down { order.reverse() } else { order }
    });
    by.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

impl Output {
    /// Of these rows, each of which answers its columns.
    pub(super) fn answer<'r, R: Fn(usize) -> DatumRef<'r>>(
        &self,
        schema: &SchemaRef,
        rows: impl ExactSizeIterator<Item = R>,
        bound: Bound<'_>,
    ) -> Result<RecordBatch> {
        let (total, cell) = match self {
            Output::Cells(cells) => return batch(cells, schema, rows, bound),
            Output::Total(total, cell) => (total, cell),
        };
        let mut value = cast_datum(total.of(rows)?, cell.of, true)?;
        if cell.as_text {
            value = cast_datum(value, DataType::Text, true)?;
        }
        let mut column = ColumnBuilder::new(cell.data_type(), 1);
        column.push(value.as_ref());
        RecordBatch::try_new(schema.clone(), vec![column.finish()]).map_err(from_arrow)
    }
}

impl Total {
    fn of<'r, R: Fn(usize) -> DatumRef<'r>>(self, rows: impl ExactSizeIterator<Item = R>) -> Result<Datum> {
        let at = match self {
            Total::Count => return Ok(Datum::Int8(rows.len() as i64)),
            Total::Different(at) | Total::Sum(at) | Total::Least(at) | Total::Greatest(at) => at,
        };
        let values = rows.map(|row| row(at)).filter(|value| !value.is_null());
        let end = match self {
            Total::Different(_) => {
                let mut values: Vec<DatumRef<'_>> = values.collect();
                values.sort_by(|a, b| a.cmp_key(*b));
                values.dedup_by(|a, b| a.cmp_key(*b).is_eq());
                return Ok(Datum::Int8(values.len() as i64));
            }
            Total::Least(_) => values.min_by(|a, b| a.cmp_key(*b)),
            Total::Greatest(_) => values.max_by(|a, b| a.cmp_key(*b)),
            Total::Count | Total::Sum(_) => return sum(values.map(|value| value.to_datum())),
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
