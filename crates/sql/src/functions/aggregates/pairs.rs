//! Aggregates of pairs of double precision: `corr`, `covar_*`, `regr_*`, by PostgreSQL's own steps (Youngs and Cramer).
//!
//! 1. A pair with a NULL does not count. The first argument is Y, the second X.
//! 2. Pairs do not leave a sliding window by subtraction: the window is added up anew.
//!
//! Report for DataFusion 55.2: `retract_batch` of these subtracts, so that a window of one pair has a variance left
//! behind by the others; `regr_r2` is NULL where all Y are equal, and PostgreSQL (as the standard) has 1 there.
use super::float::overflow;
use crate::error::tunnel;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use std::collections::VecDeque;
use std::sync::Arc;
use terrace_engine::EngineError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Of {
    Count,
    AverageX,
    AverageY,
    SquaresX,
    SquaresY,
    Products,
    Covariance,
    SampleCovariance,
    Correlation,
    Determination,
    Slope,
    Intercept,
}

const NAMES: [(&str, Of); 12] = [
    ("regr_count", Of::Count),
    ("regr_avgx", Of::AverageX),
    ("regr_avgy", Of::AverageY),
    ("regr_sxx", Of::SquaresX),
    ("regr_syy", Of::SquaresY),
    ("regr_sxy", Of::Products),
    ("covar_pop", Of::Covariance),
    ("covar_samp", Of::SampleCovariance),
    ("corr", Of::Correlation),
    ("regr_r2", Of::Determination),
    ("regr_slope", Of::Slope),
    ("regr_intercept", Of::Intercept),
];

/// The aggregates, to be put in the place of DataFusion's.
pub(super) fn functions() -> impl Iterator<Item = AggregateUDF> {
    NAMES.into_iter().map(|(name, of)| {
        AggregateUDF::from(Pairs { name, of, signature: Signature::user_defined(Volatility::Immutable) })
    })
}

/// Whether it is the name of one.
pub(super) fn is_one(name: &str) -> bool {
    NAMES.iter().any(|(own, _)| *own == name)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Pairs {
    name: &'static str,
    of: Of,
    signature: Signature,
}

impl AggregateUDFImpl for Pairs {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let number = |t: &DataType| crate::functions::arithmetic::is_number(t) || *t == DataType::Null;
        if types.len() == 2 && types.iter().all(number) {
            return Ok(vec![DataType::Float64; 2]);
        }
        let types: Vec<String> = types.iter().map(crate::functions::builtin::type_name).collect();
        let message = format!("function {}({}) does not exist", self.name, types.join(", "));
        Err(tunnel(crate::functions::builtin::with_hint(EngineError::new("42883", message))))
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(if self.of == Of::Count { DataType::Int64 } else { DataType::Float64 })
    }

    fn is_nullable(&self) -> bool {
        self.of != Of::Count
    }

    fn default_value(&self, _data_type: &DataType) -> Result<ScalarValue> {
        Ok(if self.of == Of::Count { ScalarValue::Int64(Some(0)) } else { ScalarValue::Float64(None) })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |name| Arc::new(Field::new(format!("{}[{name}]", args.name), DataType::Float64, true));
        Ok(["count", "x", "xx", "y", "yy", "xy"].into_iter().map(field).collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            let message = format!("{} of DISTINCT pairs is not supported", self.name);
            return Err(tunnel(EngineError::unsupported(message)));
        }
        Ok(Box::new(Whole { total: Total::default(), of: self.of }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.accumulator(args)?;
        Ok(Box::new(Sliding { window: VecDeque::new(), of: self.of }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Calls `f` with each pair that has no NULL (invariant 1): X and Y.
fn each(values: &[ArrayRef], mut f: impl FnMut(f64, f64) -> Result<()>) -> Result<()> {
    let [y, x] = values else { return internal_err!("pairs have two columns") };
    let (y, x) = (y.as_primitive::<Float64Type>(), x.as_primitive::<Float64Type>());
    y.iter().zip(x).try_for_each(|pair| match pair {
        (Some(y), Some(x)) => f(x, y),
        _ => Ok(()),
    })
}

/// Count and sums; squares and products are of the distances from the means.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    count: f64,
    x: f64,
    xx: f64,
    y: f64,
    yy: f64,
    xy: f64,
}

impl Total {
    fn add(&mut self, x: f64, y: f64) -> Result<()> {
        let before = *self;
        self.count += 1.0;
        self.x += x;
        self.y += y;
        if before.count == 0.0 {
            // What is not finite is at no distance from a mean.
            let none = |finite: bool| if finite { 0.0 } else { f64::NAN };
            self.xx = none(x.is_finite());
            self.yy = none(y.is_finite());
            self.xy = none(x.is_finite() && y.is_finite());
            return Ok(());
        }
        let (far_x, far_y) = (x * self.count - self.x, y * self.count - self.y);
        let scale = 1.0 / (self.count * before.count);
        self.xx += far_x * far_x * scale;
        self.yy += far_y * far_y * scale;
        self.xy += far_x * far_y * scale;
        let (finite_x, finite_y) =
            (!before.x.is_infinite() && !x.is_infinite(), !before.y.is_infinite() && !y.is_infinite());
        if (finite_x && (self.x.is_infinite() || self.xx.is_infinite()))
            || (finite_y && (self.y.is_infinite() || self.yy.is_infinite()))
            || (finite_x && finite_y && self.xy.is_infinite())
        {
            return Err(overflow());
        }
        for sum in [&mut self.xx, &mut self.yy, &mut self.xy] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: &Total) -> Result<()> {
        if other.count == 0.0 {
            return Ok(());
        }
        if self.count == 0.0 {
            *self = *other;
            return Ok(());
        }
        let before = *self;
        self.count += other.count;
        self.x += other.x;
        self.y += other.y;
        let apart_x = before.x / before.count - other.x / other.count;
        let apart_y = before.y / before.count - other.y / other.count;
        let weight = before.count * other.count / self.count;
        self.xx += other.xx + weight * apart_x * apart_x;
        self.yy += other.yy + weight * apart_y * apart_y;
        self.xy += other.xy + weight * apart_x * apart_y;
        let overflows = |now: f64, a: f64, b: f64| now.is_infinite() && !a.is_infinite() && !b.is_infinite();
        let sums = [
            (self.x, before.x, other.x),
            (self.y, before.y, other.y),
            (self.xx, before.xx, other.xx),
            (self.yy, before.yy, other.yy),
            (self.xy, before.xy, other.xy),
        ];
        if sums.into_iter().any(|(now, a, b)| overflows(now, a, b)) { Err(overflow()) } else { Ok(()) }
    }

    fn result(&self, of: Of) -> ScalarValue {
        let Total { count, x, xx, y, yy, xy } = *self;
        if of == Of::Count {
            return ScalarValue::Int64(Some(count as i64));
        }
        let least = if of == Of::SampleCovariance { 2.0 } else { 1.0 };
        let result = match of {
            _ if count < least => None,
            Of::AverageX => Some(x / count),
            Of::AverageY => Some(y / count),
            Of::SquaresX => Some(xx),
            Of::SquaresY => Some(yy),
            Of::Products => Some(xy),
            Of::Covariance => Some(xy / count),
            Of::SampleCovariance => Some(xy / (count - 1.0)),
            Of::Correlation => (xx != 0.0 && yy != 0.0).then(|| xy / (xx * yy).sqrt()),
            _ if xx == 0.0 => None,
            Of::Determination if yy == 0.0 => Some(1.0),
            Of::Determination => Some(xy * xy / (xx * yy)),
            Of::Slope => Some(xy / xx),
            _ => Some((y - x * xy / xx) / count),
        };
        ScalarValue::Float64(result)
    }
}

#[derive(Debug)]
struct Whole {
    total: Total,
    of: Of,
}

impl Accumulator for Whole {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each(values, |x, y| self.total.add(x, y))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.total.result(self.of))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let Total { count, x, xx, y, yy, xy } = self.total;
        Ok([count, x, xx, y, yy, xy].into_iter().map(|sum| ScalarValue::Float64(Some(sum))).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let at = |column: usize, row: usize| states[column].as_primitive::<Float64Type>().value(row);
        (0..states[0].len()).try_for_each(|row| {
            let [count, x, xx, y, yy, xy] = [0, 1, 2, 3, 4, 5].map(|column| at(column, row));
            self.total.merge(&Total { count, x, xx, y, yy, xy })
        })
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// Pairs in a window (invariant 2).
#[derive(Debug)]
struct Sliding {
    window: VecDeque<(f64, f64)>,
    of: Of,
}

impl Accumulator for Sliding {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each(values, |x, y| {
            self.window.push_back((x, y));
            Ok(())
        })
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each(values, |_, _| {
            self.window.pop_front();
            Ok(())
        })
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut total = Total::default();
        self.window.iter().try_for_each(|(x, y)| total.add(*x, *y))?;
        Ok(total.result(self.of))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a window has no state to hand on")
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        internal_err!("a window has no state to hand on")
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.window.capacity() * size_of::<(f64, f64)>()
    }
}
