//! Totals of integers and numerics.
use super::{Task, Total};
use crate::error::tunnel;
use crate::values::decimal::{collected, is_decimal};
use datafusion::arrow::array::ArrowNativeTypeOp;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Decimal256Array, Int64Array, PrimitiveArray,
};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Decimal256Type, Int16Type, Int32Type, Int64Type, i256,
};
use datafusion::common::{Result, internal_err};
use std::sync::Arc;
use terrace_engine::EngineError;
use terrace_engine::types::{Decimal, MAX_PRECISION};

/// Of values as they stand in their arrays; a numeric's scale is the task's to know.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exact {
    count: i64,
    sum: i128,
    /// Zero where they are not needed. (Two words of 128 bits, so that a total is aligned as they are.)
    squares: i256,
}

fn overflow() -> datafusion::common::DataFusionError {
    tunnel(EngineError::new("22003", "value overflows numeric format"))
}

fn each_of<T: ArrowPrimitiveType>(array: &ArrayRef, mut f: impl FnMut(usize, i128) -> Result<()>) -> Result<()>
where
    i128: From<T::Native>,
{
    let array: &PrimitiveArray<T> = array.as_primitive();
    if array.null_count() == 0 {
        return array.values().iter().enumerate().try_for_each(|(row, value)| f(row, (*value).into()));
    }
    array.iter().enumerate().try_for_each(|(row, value)| value.map_or(Ok(()), |value| f(row, value.into())))
}

impl Total for Exact {
    type Value = i128;

    fn each(array: &ArrayRef, f: impl FnMut(usize, i128) -> Result<()>) -> Result<()> {
        match array.data_type() {
            DataType::Int16 => each_of::<Int16Type>(array, f),
            DataType::Int32 => each_of::<Int32Type>(array, f),
            DataType::Int64 => each_of::<Int64Type>(array, f),
            DataType::Decimal128(..) => each_of::<Decimal128Type>(array, f),
            other => internal_err!("{other} is no exact number"),
        }
    }

    fn add(&mut self, task: &Task, value: i128) -> Result<()> {
        self.count += 1;
        self.sum = self.sum.checked_add(value).ok_or_else(overflow)?;
        if task.spreads() {
            self.squares = self.squares.add_checked(square(value)?).map_err(|_| overflow())?;
        }
        Ok(())
    }

    fn remove(&mut self, task: &Task, value: i128) -> Result<()> {
        debug_assert!(self.count > 0, "what leaves a window was in it");
        self.count -= 1;
        self.sum = self.sum.checked_sub(value).ok_or_else(overflow)?;
        if task.spreads() {
            self.squares = self.squares.sub_checked(square(value)?).map_err(|_| overflow())?;
        }
        Ok(())
    }

    fn merge(&mut self, _task: &Task, other: &Exact) -> Result<()> {
        self.count += other.count;
        self.sum = self.sum.checked_add(other.sum).ok_or_else(overflow)?;
        self.squares = self.squares.add_checked(other.squares).map_err(|_| overflow())?;
        Ok(())
    }

    fn results(task: &Task, totals: &[Exact]) -> Result<ArrayRef> {
        match task.gives {
            DataType::Int64 => {
                let bigint = |sum: i128| i64::try_from(sum).map_err(|_| tunnel(EngineError::out_of_range("bigint")));
                let sums = totals.iter().map(|t| (t.count > 0).then(|| bigint(t.sum)).transpose());
                Ok(Arc::new(sums.collect::<Result<Int64Array>>()?))
            }
            DataType::Decimal128(precision, scale) => {
                let sums = totals.iter().map(|t| (t.count > 0).then(|| t.checked_sum()).transpose());
                let sums = sums.collect::<Result<Decimal128Array>>()?;
                Ok(Arc::new(sums.with_precision_and_scale(precision, scale)?))
            }
            ref of if is_decimal(of) => collected(totals.iter().map(|total| total.plain(task))),
            ref other => internal_err!("{:?} gives no {other}", task.kind),
        }
    }

    fn state_types() -> [DataType; 3] {
        [DataType::Int64, DataType::Decimal128(38, 0), DataType::Decimal256(76, 0)]
    }

    fn states(totals: &[Exact]) -> Result<Vec<ArrayRef>> {
        let counts: Int64Array = totals.iter().map(|t| Some(t.count)).collect();
        let sums =
            Decimal128Array::from_iter_values(totals.iter().map(|t| t.sum)).with_data_type(DataType::Decimal128(38, 0));
        let squares = Decimal256Array::from_iter_values(totals.iter().map(|t| t.squares))
            .with_data_type(DataType::Decimal256(76, 0));
        Ok(vec![Arc::new(counts), Arc::new(sums), Arc::new(squares)])
    }

    fn from_states(states: &[ArrayRef], row: usize) -> Exact {
        Exact {
            count: states[0].as_primitive::<Int64Type>().value(row),
            sum: states[1].as_primitive::<Decimal128Type>().value(row),
            squares: states[2].as_primitive::<Decimal256Type>().value(row),
        }
    }
}

fn square(value: i128) -> Result<i256> {
    let wide = i256::from_i128(value);
    wide.mul_checked(wide).map_err(|_| overflow())
}

impl Exact {
    fn checked_sum(&self) -> Result<i128> {
        match self.sum.unsigned_abs() < 10u128.pow(MAX_PRECISION.into()) {
            true => Ok(self.sum),
            false => Err(overflow()),
        }
    }

    fn plain(&self, task: &Task) -> Result<Option<Decimal>> {
        let scale = if let DataType::Decimal128(_, scale) = task.of { scale as u32 } else { 0 };
        let sum = Decimal::of(self.sum, scale).map_err(tunnel)?;
        let squares = match task.spreads() {
            true => Decimal::parse(&format!("{}e-{}", self.squares, 2 * scale)).map_err(tunnel)?,
            false => Decimal::from_int(0),
        };
        super::plain::result(task, self.count, &sum, &squares)
    }
}
