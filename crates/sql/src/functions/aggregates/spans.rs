//! Totals of intervals: months, days and microseconds are added up one by one. The average is the sum, divided as `/`
//! divides. A sum that leaves the range is 22008.
use super::{Kind, Task, Total};
use crate::error::tunnel;
use crate::functions::interval::{added, intervals, negated, scaled};
use crate::values::INTERVAL;
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, IntervalMonthDayNanoArray};
use datafusion::arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::Result;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    count: i64,
    sum: IntervalMonthDayNano,
}

impl Total for Span {
    type Value = IntervalMonthDayNano;

    fn each(array: &ArrayRef, mut f: impl FnMut(usize, IntervalMonthDayNano) -> Result<()>) -> Result<()> {
        let spans = intervals(array)?;
        spans.iter().enumerate().try_for_each(|(row, value)| value.map_or(Ok(()), |value| f(row, value)))
    }

    fn add(&mut self, _task: &Task, value: IntervalMonthDayNano) -> Result<()> {
        self.count += 1;
        self.sum = added(self.sum, value).map_err(tunnel)?;
        Ok(())
    }

    fn remove(&mut self, _task: &Task, value: IntervalMonthDayNano) -> Result<()> {
        self.count -= 1;
        self.sum = negated(value).and_then(|value| added(self.sum, value)).map_err(tunnel)?;
        Ok(())
    }

    fn merge(&mut self, _task: &Task, other: &Span) -> Result<()> {
        self.count += other.count;
        self.sum = added(self.sum, other.sum).map_err(tunnel)?;
        Ok(())
    }

    fn results(task: &Task, totals: &[Span]) -> Result<ArrayRef> {
        let result = |total: &Span| match (total.count, task.kind) {
            (0, _) => Ok(None),
            (count, Kind::Average) => scaled(true, total.sum, count as f64).map(Some).map_err(tunnel),
            _ => Ok(Some(total.sum)),
        };
        Ok(Arc::new(totals.iter().map(result).collect::<Result<IntervalMonthDayNanoArray>>()?))
    }

    /// The last one says nothing here.
    fn state_types() -> [DataType; 3] {
        [DataType::Int64, INTERVAL, DataType::Int64]
    }

    fn states(totals: &[Span]) -> Result<Vec<ArrayRef>> {
        let counts: Int64Array = totals.iter().map(|total| Some(total.count)).collect();
        let sums: IntervalMonthDayNanoArray = totals.iter().map(|total| Some(total.sum)).collect();
        Ok(vec![Arc::new(counts.clone()), Arc::new(sums), Arc::new(counts)])
    }

    fn from_states(states: &[ArrayRef], row: usize) -> Span {
        let (counts, sums) =
            (states[0].as_primitive::<Int64Type>(), states[1].as_primitive::<IntervalMonthDayNanoType>());
        Span { count: counts.value(row), sum: sums.value(row) }
    }
}
