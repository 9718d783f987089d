//! Totals of integers and numerics.
use super::{Kind, Task, Total};
use crate::error::tunnel;
use crate::functions::arithmetic::{divide_rounded, power};
use datafusion::arrow::array::ArrowNativeTypeOp;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Decimal256Array, Int64Array, PrimitiveArray,
};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Decimal256Type, Int16Type, Int32Type, Int64Type, i256,
};
use datafusion::common::{Result, internal_err};
use std::ops::Shl;
use std::sync::Arc;
use terrace_engine::EngineError;
use terrace_engine::types::MAX_PRECISION;

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
                let results: Decimal128Array =
                    totals.iter().map(|t| t.result(task, scale as u8)).collect::<Result<_>>()?;
                Ok(Arc::new(results.with_precision_and_scale(precision, scale)?))
            }
            ref other => internal_err!("{:?} gives no {other}", task.kind),
        }
    }

    fn state_types() -> [DataType; 3] {
        [DataType::Int64, DataType::Decimal128(38, 0), DataType::Decimal256(76, 0)]
    }

    fn states(totals: &[Exact]) -> Vec<ArrayRef> {
        let counts: Int64Array = totals.iter().map(|t| Some(t.count)).collect();
        let sums =
            Decimal128Array::from_iter_values(totals.iter().map(|t| t.sum)).with_data_type(DataType::Decimal128(38, 0));
        let squares = Decimal256Array::from_iter_values(totals.iter().map(|t| t.squares))
            .with_data_type(DataType::Decimal256(76, 0));
        vec![Arc::new(counts), Arc::new(sums), Arc::new(squares)]
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
    /// At the scale of the result.
    fn result(&self, task: &Task, scale: u8) -> Result<Option<i128>> {
        let given = if let DataType::Decimal128(_, given) = task.of { u32::from(given as u8) } else { 0 };
        let (count, scale) = (i256::from_i128(self.count.into()), u32::from(scale));
        let sum = i256::from_i128(self.sum);
        if self.count == 0 || (task.sample && self.count == 1) {
            return Ok(None);
        }
        let result = match task.kind {
            Kind::Sum => Some(sum),
            Kind::Average => {
                assert!(scale >= given, "an average has the scale of what it is of, at least");
                power(scale - given)
                    .and_then(|unit| sum.mul_checked(unit).ok())
                    .and_then(|sum| divide_rounded(sum, count))
            }
            Kind::Variance => self.spread(task).and_then(|(above, below)| quotient(above, below, 2 * given, scale)),
            Kind::Deviation => self.spread(task).and_then(|(above, below)| root(above, below, 2 * given, scale)),
        };
        let result = result.and_then(|result| result.to_i128()).ok_or_else(overflow)?;
        if result.unsigned_abs() >= 10u128.pow(MAX_PRECISION.into()) {
            return Err(overflow());
        }
        Ok(Some(result))
    }

    /// The variance as a fraction: (n * squares - sum * sum) / (n * n or n * (n - 1)).
    fn spread(&self, task: &Task) -> Option<(i256, i256)> {
        let (count, sum) = (i256::from_i128(self.count.into()), i256::from_i128(self.sum));
        let above = count.mul_checked(self.squares).ok()?.sub_checked(sum.mul_checked(sum).ok()?).ok()?;
        let divisor = if task.sample { self.count - 1 } else { self.count };
        Some((above, count.mul_checked(i256::from_i128(divisor.into())).ok()?))
    }
}

/// `above / below / 10^at`, times 10^scale.
fn quotient(above: i256, below: i256, at: u32, scale: u32) -> Option<i256> {
    if scale >= at {
        divide_rounded(above.mul_checked(power(scale - at)?).ok()?, below)
    } else {
        divide_rounded(above, below.mul_checked(power(at - scale)?).ok()?)
    }
}

/// The square root of `above / below / 10^at`, times 10^scale; with fewer digits of its own where 256 bits hold no
/// more.
fn root(above: i256, below: i256, at: u32, scale: u32) -> Option<i256> {
    let (mut digits, fewest) = (2 * scale, at.min(2 * scale));
    let squared = loop {
        match quotient_in_parts(above, below, at, digits) {
            Some(squared) => break squared,
            None if digits >= fewest + 2 => digits -= 2,
            None => return None,
        }
    };
    square_root(squared)?.mul_checked(power(scale - digits / 2)?).ok()
}

/// As [`quotient`], for numerators that do not bear the factor: whole part and rest are shifted apart.
fn quotient_in_parts(above: i256, below: i256, at: u32, scale: u32) -> Option<i256> {
    if scale < at {
        return quotient(above, below, at, scale);
    }
    let shift = power(scale - at)?;
    let (whole, rest) = (above.div_checked(below).ok()?, above.mod_checked(below).ok()?);
    let whole = whole.mul_checked(shift).ok()?;
    whole.add_checked(divide_rounded(rest.mul_checked(shift).ok()?, below)?).ok()
}

/// The nearest integer to the square root of a number that is not negative.
fn square_root(of: i256) -> Option<i256> {
    let (zero, one) = (i256::from_i128(0), i256::from_i128(1));
    debug_assert!(of >= zero, "n * squares is never below sum * sum: {of}");
    if of == zero {
        return Some(zero);
    }
    // Newton's steps come down to it from above: a power of two that is no less.
    let bits = 256 - of.leading_zeros();
    let mut root = one.shl(bits.div_ceil(2) as u8);
    loop {
        let next = root.add_checked(of.div_checked(root).ok()?).ok()?.div_checked(i256::from_i128(2)).ok()?;
        if next >= root {
            break;
        }
        root = next;
    }
    let above = of.sub_checked(root.mul_checked(root).ok()?).ok()?;
    Some(if above > root { root.add_checked(one).ok()? } else { root })
}
