//! SELECT of a short range of an index: of a prefix of its columns, and bounds on the column after it.
//!
//! 1. At most [`MOST`] rows are read; a longer range is the general way's.
//! 2. NULLs lie at the end of an index: a bound from below alone ends before them.
use super::{Bound as Binding, Given, batch};
use crate::error::from_arrow;
use crate::values::ColumnBuilder;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;
use terrace_engine::{
    DataType, Datum, DatumRef, EngineError, Index, IndexRange, Result, RowBuf, Scan, ScanDirection, Table, Txn,
};

/// Rows.
const MOST: usize = 1000;

#[derive(Debug)]
pub(super) struct Range {
    pub(super) index: Arc<Index>,
    pub(super) prefix: Vec<Given>,
    /// Bounds on the column after the prefix, and whether they belong to the range.
    pub(super) low: Option<(Given, bool)>,
    pub(super) high: Option<(Given, bool)>,
    pub(super) direction: ScanDirection,
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
    Columns(Vec<usize>),
    /// Of an int4 column: a bigint.
    Sum(usize),
    Count,
}

impl Range {
    /// `None`: it is the general way's after all.
    pub(super) async fn run(
        &self,
        table: &Arc<Table>,
        txn: &mut Txn,
        bound: Binding<'_>,
    ) -> Result<Option<RecordBatch>> {
        if !txn.can_use_index(&self.index) {
            return Ok(None);
        }
        let limit = match self.limit.as_ref().map(|limit| limit.value(bound)).transpose()? {
            None => usize::MAX,
            Some(Datum::Int8(n)) if n >= 0 => usize::try_from(n).unwrap_or(usize::MAX),
            // NULL means all, and what is negative is an error: who says so is elsewhere.
            Some(_) => return Ok(None),
        };
        let mut rows = vec![];
        let sorted = !self.sort.is_empty();
        let range = match self.bounds(bound) {
            Err(error) if error.state.0 == "22003" => return Ok(None),
            range => range?,
        };
        if let Some(range) = range {
            let most = if sorted { MOST + 1 } else { limit.min(MOST + 1) };
            let mut scanner = txn.scan(table, Scan::Index(range));
            while rows.len() < most {
                let found = scanner.next_batch(most - rows.len()).await?;
                if found.is_empty() {
                    break;
                }
                rows.extend(found.into_iter().map(|(_, row, _)| row));
            }
        }
        assert!(rows.len() <= MOST + 1, "invariant 1: one more tells that the range is longer");
        if rows.len() > MOST {
            return Ok(None);
        }
        if sorted {
            rows.sort_by(|a, b| self.order(table, a, b));
            if self.distinct {
                rows.dedup_by(|a, b| self.order(table, a, b) == Ordering::Equal);
            }
            rows.truncate(limit);
        }
        self.answer(table, &rows).map(Some)
    }

    /// `None`: a bound is NULL, so nothing lies within.
    fn bounds(&self, bound: Binding<'_>) -> Result<Option<IndexRange>> {
        let bounds = usize::from(self.low.is_some() || self.high.is_some());
        debug_assert!(self.prefix.len() + bounds <= self.index.columns.len(), "columns of the index");
        let mut prefix = self.prefix.iter().map(|given| given.value(bound)).collect::<Result<Vec<Datum>>>()?;
        let value = |end: &Option<(Given, bool)>| -> Result<Option<(Datum, bool)>> {
            end.as_ref().map(|(given, included)| Ok((given.value(bound)?, *included))).transpose()
        };
        let (low, high) = (value(&self.low)?, value(&self.high)?);
        let ends = [&low, &high];
        if prefix.contains(&Datum::Null) || ends.into_iter().flatten().any(|(value, _)| *value == Datum::Null) {
            return Ok(None);
        }
        let end = |(value, included): (Datum, bool)| {
            let key = [prefix.as_slice(), &[value]].concat();
            if included { Bound::Included(key) } else { Bound::Excluded(key) }
        };
        let to = match (high, &low) {
            (Some(high), _) => end(high),
            (None, Some(_)) => end((Datum::Null, false)),
            (None, None) => Bound::Included(prefix.clone()),
        };
        let from = match low {
            Some(low) => end(low),
            None => Bound::Included(std::mem::take(&mut prefix)),
        };
        Ok(Some(IndexRange { index: self.index.clone(), from, to, direction: self.direction }))
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

    fn answer(&self, table: &Table, rows: &[RowBuf]) -> Result<RecordBatch> {
        let one = |value: DatumRef<'_>| {
            let mut column = ColumnBuilder::new(DataType::Int8, 1);
            column.push(value);
            RecordBatch::try_new(self.schema.clone(), vec![column.finish()]).map_err(from_arrow)
        };
        match &self.output {
            Output::Columns(columns) => batch(table, columns, &self.schema, rows.iter().map(|row| row.view(table))),
            Output::Count => one(DatumRef::Int8(rows.len() as i64)),
            Output::Sum(at) => {
                let mut sum: Option<i64> = None;
                for row in rows {
                    match row.view(table).get(*at) {
                        DatumRef::Int4(v) => sum = Some(sum.unwrap_or(0) + i64::from(v)),
                        DatumRef::Null => {}
                        other => return Err(EngineError::internal(format!("{other:?} in a column of integers"))),
                    }
                }
                one(sum.map_or(DatumRef::Null, DatumRef::Int8))
            }
        }
    }
}
