//! Totals of plain numerics. They cannot be taken back: infinity less infinity is not what was there before, and the
//! scale is the largest of those that are left.
use super::{Kind, Task, Total};
use crate::error::tunnel;
use crate::values::decimal::{arrow_type, collected, decimals};
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, internal_err};
use std::sync::Arc;
use terrace_engine::types::{Decimal, decimal};

#[derive(Clone, Debug)]
pub(super) struct Plain {
    count: i64,
    sum: Decimal,
    squares: Decimal,
}

impl Default for Plain {
    fn default() -> Plain {
        Plain { count: 0, sum: Decimal::from_int(0), squares: Decimal::from_int(0) }
    }
}

/// What is answered where there are values. `of`: how many, their sum and the sum of their squares.
pub(super) fn result(task: &Task, count: i64, sum: &Decimal, squares: &Decimal) -> Result<Option<Decimal>> {
    if count == 0 || (task.sample && count == 1) {
        return Ok(None);
    }
    let result = match task.kind {
        Kind::Sum => Ok(sum.clone()),
        Kind::Average => sum.divide(&Decimal::from_int(count)),
        Kind::Variance => decimal::variance(count, sum, squares, task.sample, false),
        Kind::Deviation => decimal::variance(count, sum, squares, task.sample, true),
    };
    result.map(Some).map_err(tunnel)
}

impl Total for Plain {
    type Value = Decimal;

    fn each(array: &ArrayRef, mut f: impl FnMut(usize, Decimal) -> Result<()>) -> Result<()> {
        for (row, value) in decimals(array).enumerate() {
            if let Some(value) = value? {
                f(row, value)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, task: &Task, value: Decimal) -> Result<()> {
        self.count += 1;
        self.sum = self.sum.add(&value).map_err(tunnel)?;
        if task.spreads() {
            self.squares = value.multiply(&value).and_then(|square| self.squares.add(&square)).map_err(tunnel)?;
        }
        Ok(())
    }

    fn remove(&mut self, _task: &Task, _value: Decimal) -> Result<()> {
        internal_err!("a window of plain numerics is added up anew")
    }

    fn merge(&mut self, _task: &Task, other: &Plain) -> Result<()> {
        self.count += other.count;
        self.sum = self.sum.add(&other.sum).map_err(tunnel)?;
        self.squares = self.squares.add(&other.squares).map_err(tunnel)?;
        Ok(())
    }

    fn results(task: &Task, totals: &[Plain]) -> Result<ArrayRef> {
        collected(totals.iter().map(|total| result(task, total.count, &total.sum, &total.squares)))
    }

    fn state_types() -> [DataType; 3] {
        [DataType::Int64, arrow_type(), arrow_type()]
    }

    fn states(totals: &[Plain]) -> Result<Vec<ArrayRef>> {
        let counts: Int64Array = totals.iter().map(|total| Some(total.count)).collect();
        let sums = collected(totals.iter().map(|total| Ok(Some(total.sum.clone()))))?;
        let squares = collected(totals.iter().map(|total| Ok(Some(total.squares.clone()))))?;
        Ok(vec![Arc::new(counts), sums, squares])
    }

    fn from_states(states: &[ArrayRef], row: usize) -> Plain {
        let value = |array: &ArrayRef| Decimal::decode(crate::values::decimal::bytes(array, row));
        Plain {
            count: states[0].as_primitive::<Int64Type>().value(row),
            sum: value(&states[1]),
            squares: value(&states[2]),
        }
    }
}
