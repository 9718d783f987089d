//! Totals of real and double precision: the steps of PostgreSQL's float8_accum and float8_combine.
use super::{Kind, Task, Total};
use crate::error::tunnel;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::{Result, internal_err};
use std::sync::Arc;
use terrace_engine::EngineError;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Float {
    count: f64,
    sum: f64,
    /// Of the distances from the mean.
    squares: f64,
}

pub(super) fn overflow() -> datafusion::common::DataFusionError {
    tunnel(EngineError::new("22003", "value out of range: overflow"))
}

impl Float {
    /// After something was added to `sum` before; 22003 where finite numbers became infinite.
    fn checked(&mut self, before: f64, value: f64) -> Result<()> {
        if self.sum.is_infinite() || self.squares.is_infinite() {
            if before.is_finite() && value.is_finite() {
                return Err(overflow());
            }
            self.squares = f64::NAN;
        }
        Ok(())
    }
}

impl Total for Float {
    type Value = f64;

    fn each(array: &ArrayRef, mut f: impl FnMut(usize, f64) -> Result<()>) -> Result<()> {
        match array.data_type() {
            DataType::Float64 => {
                let array = array.as_primitive::<Float64Type>();
                array.iter().enumerate().try_for_each(|(row, value)| value.map_or(Ok(()), |value| f(row, value)))
            }
            DataType::Float32 => {
                let array = array.as_primitive::<Float32Type>();
                array.iter().enumerate().try_for_each(|(row, value)| value.map_or(Ok(()), |value| f(row, value.into())))
            }
            other => internal_err!("{other} is no float"),
        }
    }

    fn add(&mut self, task: &Task, value: f64) -> Result<()> {
        let (before, first) = (self.sum, self.count == 0.0);
        if task.kind == Kind::Sum {
            self.count += 1.0;
            // A sum of reals is a real after each step.
            let single = task.of == DataType::Float32;
            self.sum = if single { f64::from(before as f32 + value as f32) } else { before + value };
            if first {
                self.sum = value;
            }
            return self.checked(before, value);
        }
        let others = self.count;
        self.count += 1.0;
        self.sum += value;
        if first {
            if !value.is_finite() {
                self.squares = f64::NAN;
            }
            return Ok(());
        }
        let distance = value * self.count - self.sum;
        self.squares += distance * distance / (self.count * others);
        self.checked(before, value)
    }

    fn remove(&mut self, _task: &Task, _value: f64) -> Result<()> {
        internal_err!("floats do not leave a sum by subtraction")
    }

    fn merge(&mut self, task: &Task, other: &Float) -> Result<()> {
        if other.count == 0.0 {
            return Ok(());
        }
        if self.count == 0.0 {
            *self = *other;
            return Ok(());
        }
        let before = *self;
        self.count += other.count;
        self.sum += other.sum;
        if task.kind != Kind::Sum {
            let apart = before.sum / before.count - other.sum / other.count;
            self.squares = before.squares + other.squares + before.count * other.count * apart * apart / self.count;
        }
        self.checked(before.sum, other.sum)
    }

    fn results(task: &Task, totals: &[Float]) -> Result<ArrayRef> {
        let result = |total: &Float| {
            if total.count == 0.0 || (task.sample && total.count == 1.0) {
                return None;
            }
            let divisor = if task.sample { total.count - 1.0 } else { total.count };
            Some(match task.kind {
                Kind::Sum => total.sum,
                Kind::Average => total.sum / total.count,
                Kind::Variance => total.squares / divisor,
                Kind::Deviation => (total.squares / divisor).sqrt(),
            })
        };
        let results = totals.iter().map(result);
        Ok(match task.gives {
            DataType::Float32 => Arc::new(results.map(|v| v.map(|v| v as f32)).collect::<Float32Array>()),
            _ => Arc::new(results.collect::<Float64Array>()),
        })
    }

    fn state_types() -> [DataType; 3] {
        [DataType::Float64, DataType::Float64, DataType::Float64]
    }

    fn states(totals: &[Float]) -> Result<Vec<ArrayRef>> {
        let column =
            |of: fn(&Float) -> f64| -> ArrayRef { Arc::new(Float64Array::from_iter_values(totals.iter().map(of))) };
        Ok(vec![column(|t| t.count), column(|t| t.sum), column(|t| t.squares)])
    }

    fn from_states(states: &[ArrayRef], row: usize) -> Float {
        let at = |column: usize| states[column].as_primitive::<Float64Type>().value(row);
        Float { count: at(0), sum: at(1), squares: at(2) }
    }
}
