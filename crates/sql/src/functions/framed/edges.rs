//! The bounds of frames of RANGE with an offset: a row's key moved by it, as PostgreSQL's `in_range` functions do.
//!
//! 1. Integers, and times of a day, become numbers that the result fits: nothing leaves its range.
//! 2. Times, timestamps and intervals are moved by their own operators; here is seen only that the offset is one.
//! 3. Infinity less itself is no number; every key is within such a bound.
//! 4. An offset is checked also where the function looks at no frame, as PostgreSQL does; of RANGE, by its bound.
use super::offset_of;
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::functions::interval::{intervals, key_of};
use crate::values::decimal::{arrow_type as decimal_type, collected, decimals, is_decimal};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Float64Type, Int64Type, Time64MicrosecondType,
};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use terrace_engine::EngineError;
use terrace_engine::types::Decimal;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Doing {
    /// The key, as what its bounds are.
    Key,
    /// The key moved by the offset.
    Bound(Side),
    /// The offset, if it is one.
    Offset(Side),
    /// A value beside what nothing depends on: of RANGE a bound, else an offset of the frame's first or last row.
    Checked { start: Option<bool> },
}

/// Which bound is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Side {
    /// The frame's first row; else its last.
    pub(crate) start: bool,
    /// The offset is taken from the key; else added.
    pub(crate) less: bool,
    /// Keys up to the bound are within; else those from it on.
    pub(crate) up_to: bool,
}

fn call(doing: Doing, args: Vec<Expr>) -> Expr {
    let edge =
        Edge { doing, name: format!("frame {doing:?}"), signature: Signature::any(args.len(), Volatility::Stable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(edge)), args))
}

/// What bounds are compared with.
pub(crate) fn key(key: Expr) -> Expr {
    call(Doing::Key, vec![key])
}

/// A number, or a time of day, moved by an offset.
pub(crate) fn bound(key: Expr, offset: Expr, side: Side) -> Expr {
    call(Doing::Bound(side), vec![key, offset])
}

/// An interval that another value is moved by (invariant 2).
pub(crate) fn offset(key: Expr, offset: Expr, side: Side) -> Expr {
    call(Doing::Offset(side), vec![key, offset])
}

/// The value of a function that looks at no frame (invariant 4). `open`: a bound of RANGE; with `start`, an offset of
/// the frame's first row, or of its last one.
pub(crate) fn checked(value: Expr, open: Expr, start: Option<bool>) -> Expr {
    call(Doing::Checked { start }, vec![value, open])
}

#[derive(PartialEq, Eq, Hash, Debug)]
struct Edge {
    doing: Doing,
    /// Upstream: common subexpressions are told apart by their functions' names.
    name: String,
    signature: Signature,
}

/// What keys of this type, and their bounds, are compared as (invariant 1).
fn compared_as(of: &DataType) -> DataType {
    match of {
        DataType::Int16 | DataType::Int32 | DataType::Int64 => DataType::Decimal128(38, 0),
        DataType::Float32 => DataType::Float64,
        DataType::Time64(_) => DataType::Int64,
        other => other.clone(),
    }
}

impl ScalarUDFImpl for Edge {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match self.doing {
            Doing::Offset(_) => types[1].clone(),
            Doing::Checked { .. } => types[0].clone(),
            _ => compared_as(&types[0]),
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        if let Doing::Checked { .. } = self.doing {
            return Ok(args.arg_fields[0].clone());
        }
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_columns(&args, |columns| match self.doing {
            Doing::Key => widened(&columns[0]),
            Doing::Bound(side) => side.bounds(&columns[0], &columns[1]),
            Doing::Offset(side) => {
                side.check(&columns[0], &columns[1], |offset, row| key_of(offset.value(row)) < 0)?;
                Ok(columns[1].clone())
            }
            Doing::Checked { start } => {
                if let (Some(start), rows) = (start, columns[0].len()) {
                    offset_of(&columns[1], usize::from(!start), rows)?;
                }
                Ok(columns[0].clone())
            }
        })
    }
}

fn widened(keys: &ArrayRef) -> Result<ArrayRef> {
    match compared_as(keys.data_type()) {
        of if of == *keys.data_type() => Ok(keys.clone()),
        DataType::Int64 => {
            let times = keys.as_primitive::<Time64MicrosecondType>();
            Ok(Arc::new(times.unary::<_, Int64Type>(|time| time)))
        }
        of => Ok(cast(keys, &of)?),
    }
}

type Spans = datafusion::arrow::array::PrimitiveArray<datafusion::arrow::datatypes::IntervalMonthDayNanoType>;

fn no_size() -> EngineError {
    EngineError::new("22013", "invalid preceding or following size in window function")
}

impl Side {
    /// Refuses offsets that are NULL, or below zero beside a key. 22004, 22013
    fn check(self, keys: &ArrayRef, offsets: &ArrayRef, below: impl Fn(&Spans, usize) -> bool) -> Result<()> {
        check_null(offsets, self.start)?;
        let offsets = intervals(offsets)?;
        match (0..offsets.len()).any(|row| keys.is_valid(row) && below(&offsets, row)) {
            true => Err(tunnel(no_size())),
            false => Ok(()),
        }
    }

    fn bounds(self, keys: &ArrayRef, offsets: &ArrayRef) -> Result<ArrayRef> {
        let widened = widened(keys)?;
        check_null(offsets, self.start)?;
        match widened.data_type() {
            DataType::Decimal128(..) => {
                let (keys, offsets) = (widened.as_primitive::<Decimal128Type>(), cast(offsets, &DataType::Int64)?);
                let offsets = offsets.as_primitive::<Int64Type>();
                let moved = (0..keys.len()).map(|row| match (keys.is_valid(row), offsets.value(row)) {
                    (true, ..0) => Err(tunnel(no_size())),
                    (true, offset) if self.less => Ok(Some(keys.value(row) - i128::from(offset))),
                    (true, offset) => Ok(Some(keys.value(row) + i128::from(offset))),
                    (false, _) => Ok(None),
                });
                let moved = moved.collect::<Result<Decimal128Array>>()?;
                Ok(Arc::new(moved.with_precision_and_scale(38, 0)?))
            }
            DataType::Float64 => {
                let (keys, offsets) = (widened.as_primitive::<Float64Type>(), offsets.as_primitive::<Float64Type>());
                let moved = keys.iter().zip(offsets.values()).map(|(key, offset)| match key {
                    Some(_) if offset.is_nan() || *offset < 0.0 => Err(tunnel(no_size())),
                    Some(key) => Ok(Some(self.float(key, *offset))),
                    None => Ok(None),
                });
                Ok(Arc::new(moved.collect::<Result<Float64Array>>()?))
            }
            // A time of day.
            DataType::Int64 => {
                let offsets = intervals(offsets)?;
                let moved = widened.as_primitive::<Int64Type>().iter().zip(offsets.values()).map(|(key, offset)| {
                    // Months and days count for nothing, and only the rest may not be below zero.
                    match (key, offset.nanoseconds) {
                        (Some(_), ..0) => Err(tunnel(no_size())),
                        (Some(key), micros) if self.less => Ok(Some(key.saturating_sub(micros))),
                        (Some(key), micros) => Ok(Some(key.saturating_add(micros))),
                        (None, _) => Ok(None),
                    }
                });
                Ok(Arc::new(moved.collect::<Result<Int64Array>>()?))
            }
            of if is_decimal(of) => {
                let pairs = decimals(keys).zip(decimals(offsets));
                collected(pairs.map(|(key, offset)| match (key?, offset?) {
                    (Some(_), Some(offset)) if offset.is_negative() || is_nan(&offset) => Err(tunnel(no_size())),
                    (Some(key), Some(offset)) => self.decimal(&key, &offset).map(Some).map_err(tunnel),
                    _ => Ok(None),
                }))
            }
            of => internal_err!("a frame's bound over {of}, not {}", decimal_type()),
        }
    }

    fn float(self, key: f64, offset: f64) -> f64 {
        let bound = if self.less { key - offset } else { key + offset };
        match bound.is_nan() && !key.is_nan() {
            // Invariant 3.
            true if self.up_to => f64::INFINITY,
            true => f64::NEG_INFINITY,
            false => bound,
        }
    }

    fn decimal(self, key: &Decimal, offset: &Decimal) -> terrace_engine::Result<Decimal> {
        let bound = if self.less { key.subtract(offset)? } else { key.add(offset)? };
        match is_nan(&bound) && !is_nan(key) {
            true if self.up_to => Decimal::from_float(f64::INFINITY, false),
            true => Decimal::from_float(f64::NEG_INFINITY, false),
            false => Ok(bound),
        }
    }
}

fn check_null(offsets: &ArrayRef, start: bool) -> Result<()> {
    if offsets.null_count() == 0 {
        return Ok(());
    }
    let side = if start { "starting" } else { "ending" };
    Err(tunnel(EngineError::new("22004", format!("frame {side} offset must not be null"))))
}

fn is_nan(value: &Decimal) -> bool {
    *value == Decimal::NaN
}
