//! Intervals compared and computed with as PostgreSQL does. What they are, and their texts:
//! [`terrace_engine::types::interval`].
//!
//! 1. Two intervals are compared as if a month had 30 days and a day 24 hours: `1 day` equals `24:00:00`, and stays
//!    another value. What chooses one of equal ones (GROUP BY, DISTINCT) takes the first that comes:
//!    [`crate::plan::comparable`].
//! 2. Arrow's nanoseconds are microseconds ([`INTERVAL`]).
//!
//! Report for Arrow 59: intervals compare by their fields, as `IntervalMonthDayNano` derives its order, and its parser
//! knows neither `1 day 02:00` nor `-25:00:00`; its display writes `1 mons 1 days 1 hours`.
//!
//! Source: PostgreSQL 15 documentation, "Date/Time Functions and Operators" (9.9).
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::functions::arithmetic::{Function, division_by_zero};
use crate::functions::calendar::moved;
use crate::functions::convert::{convert, convert_array, convert_scalar, micros_of};
use crate::values::{INTERVAL, arrow_interval, arrow_type, interval_of};
use datafusion::arrow::array::{ArrayRef, AsArray, Decimal128Array, PrimitiveArray, new_null_array};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType,
    TimestampMicrosecondType,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use terrace_engine::types::interval::{Field, Fields, rounded, rounded_datum};
use terrace_engine::types::{DAY_MICROS, Interval};
use terrace_engine::{DataType, Datum, EngineError};

fn out_of_range() -> EngineError {
    EngineError::new("22008", "interval out of range")
}

pub(crate) fn intervals(array: &ArrayRef) -> Result<PrimitiveArray<IntervalMonthDayNanoType>> {
    let array = match array.data_type() {
        ArrowType::Null => new_null_array(&INTERVAL, array.len()),
        of if *of == INTERVAL => array.clone(),
        other => return internal_err!("{other} is no interval"),
    };
    Ok(array.as_primitive::<IntervalMonthDayNanoType>().clone())
}

/// Intervals, or texts of them.
pub(crate) fn read_or_cast(array: &ArrayRef) -> Result<Spans> {
    if let ArrowType::Interval(_) | ArrowType::Null = array.data_type() {
        return intervals(array);
    }
    let texts = datafusion::arrow::compute::cast(array, &ArrowType::Utf8)?;
    intervals(&convert_array(&texts, DataType::Interval)?)
}

/// What is done with intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Doing {
    /// A number that compares as the interval does (invariant 1).
    Key,
    Add,
    Subtract,
    Negate,
    /// By a double precision.
    Multiply,
    Divide,
    /// A timestamp without time zone, later or earlier by an interval.
    Later,
    Earlier,
    /// A time of day, later or earlier by an interval: past midnight it begins anew.
    TimeLater,
    TimeEarlier,
    /// From one time of day to another.
    Between,
    /// What a type keeps of an interval or a time.
    Limit(Limits),
}

/// What a type keeps of an interval, or of a time: `interval day to second(3)`, `time(0)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Limits {
    pub(crate) fields: Option<Fields>,
    pub(crate) digits: Option<u8>,
}

impl Limits {
    pub(crate) fn read(self, text: &str) -> std::result::Result<Interval, EngineError> {
        Ok(Interval::parse(text, self.fields)?.limited(self.fields, self.digits))
    }
}

/// The fields that `day to second` names.
pub(crate) fn fields(text: &str) -> Option<Fields> {
    let field = |name: &str| {
        Some(match name {
            "year" => Field::Year,
            "month" => Field::Month,
            "day" => Field::Day,
            "hour" => Field::Hour,
            "minute" => Field::Minute,
            "second" => Field::Second,
            _ => return None,
        })
    };
    match text.split_once(" to ") {
        Some((first, last)) => Some(Fields { first: field(first)?, last: field(last)? }),
        None => Some(Fields { first: field(text)?, last: field(text)? }),
    }
}

/// An interval, or a time, with what its type keeps.
pub(crate) fn limited(expr: Expr, limits: Limits) -> Expr {
    doing(Doing::Limit(limits), vec![expr])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Intervals {
    name: String,
    doing: Doing,
    signature: Signature,
}

/// The function that answers what an interval compares by.
pub(crate) const KEY: &str = "interval_key";

/// What an interval compares by.
pub(crate) fn key(expr: Expr) -> Expr {
    doing(Doing::Key, vec![expr])
}

/// What the intervals of an array compare by.
pub(crate) fn keys(array: &ArrayRef) -> Result<ArrayRef> {
    let keys: Decimal128Array = intervals(array)?.iter().map(|v| v.map(key_of)).collect();
    Ok(Arc::new(keys.with_precision_and_scale(38, 0)?))
}

/// Text as an interval.
pub(crate) fn from_text(expr: Expr) -> Result<Expr> {
    match expr {
        Expr::Literal(text @ ScalarValue::Utf8(_), _) => {
            Ok(Expr::Literal(convert_scalar(&text, DataType::Interval)?, None))
        }
        other => Ok(convert(other, DataType::Interval)),
    }
}

pub(crate) fn doing(doing: Doing, args: Vec<Expr>) -> Expr {
    // Upstream: common subexpressions are told apart by their functions' names.
    let name = match doing {
        Doing::Limit(limits) => format!("{limits:?}"),
        other => format!("{other:?} interval"),
    };
    let udf = Intervals { name, doing, signature: Signature::any(args.len(), Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(udf)), args))
}

/// `left function right` where one side is an interval; `None`: there is no such operator here.
pub(crate) fn operator(function: Function, left: &Expr, lt: &ArrowType, right: &Expr, rt: &ArrowType) -> Option<Expr> {
    use ArrowType::{Interval, Time64, Timestamp};
    let double = |expr: &Expr, t: &ArrowType| match t {
        ArrowType::Float64 => expr.clone(),
        _ => crate::functions::convert::convert(expr.clone(), DataType::Float8),
    };
    let number = crate::functions::arithmetic::is_number;
    let (what, args) = match (function, lt, rt) {
        (Function::Add, Interval(_), Interval(_)) => (Doing::Add, [left.clone(), right.clone()]),
        (Function::Subtract, Interval(_), Interval(_)) => (Doing::Subtract, [left.clone(), right.clone()]),
        (Function::Multiply, Interval(_), n) if number(n) => (Doing::Multiply, [left.clone(), double(right, n)]),
        (Function::Multiply, n, Interval(_)) if number(n) => (Doing::Multiply, [right.clone(), double(left, n)]),
        (Function::Divide, Interval(_), n) if number(n) => (Doing::Divide, [left.clone(), double(right, n)]),
        (Function::Add, Timestamp(_, None), Interval(_)) => (Doing::Later, [left.clone(), right.clone()]),
        (Function::Add, Interval(_), Timestamp(_, None)) => (Doing::Later, [right.clone(), left.clone()]),
        (Function::Subtract, Timestamp(_, None), Interval(_)) => (Doing::Earlier, [left.clone(), right.clone()]),
        (Function::Add, Time64(_), Interval(_)) => (Doing::TimeLater, [left.clone(), right.clone()]),
        (Function::Add, Interval(_), Time64(_)) => (Doing::TimeLater, [right.clone(), left.clone()]),
        (Function::Subtract, Time64(_), Interval(_)) => (Doing::TimeEarlier, [left.clone(), right.clone()]),
        (Function::Subtract, Time64(_), Time64(_)) => (Doing::Between, [left.clone(), right.clone()]),
        _ => return None,
    };
    Some(doing(what, args.into()))
}

impl ScalarUDFImpl for Intervals {
    fn name(&self) -> &str {
        if self.doing == Doing::Key { KEY } else { &self.name }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(match self.doing {
            Doing::Key => ArrowType::Decimal128(38, 0),
            Doing::TimeLater | Doing::TimeEarlier => arrow_type(DataType::Time),
            Doing::Limit(_) => types[0].clone(),
            Doing::Later | Doing::Earlier => arrow_type(DataType::Timestamp),
            _ => INTERVAL,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_columns(&args, |columns| match columns {
            [one] => self.of_one(one),
            [one, other] => self.of_two(one, other),
            _ => internal_err!("{} of {} arguments", self.name(), columns.len()),
        })
    }
}

type Spans = PrimitiveArray<IntervalMonthDayNanoType>;
type Times = PrimitiveArray<Time64MicrosecondType>;

fn times_of(array: &ArrayRef) -> Result<Times> {
    Ok(convert_array(array, DataType::Time)?.as_primitive::<Time64MicrosecondType>().clone())
}

fn limit(array: &ArrayRef, limits: Limits) -> Result<ArrayRef> {
    if let ArrowType::Time64(_) = array.data_type() {
        let digits = limits.digits.unwrap_or(6);
        let cut: Times = times_of(array)?.unary(|micros| rounded(micros, digits));
        return Ok(Arc::new(cut));
    }
    if let ArrowType::Timestamp(_, zone) = array.data_type() {
        let digits = limits.digits.unwrap_or(6);
        let cut: PrimitiveArray<TimestampMicrosecondType> =
            micros_of(array)?.unary(|micros| match rounded_datum(Datum::Timestamp(micros), digits) {
                Datum::Timestamp(micros) => micros,
                other => unreachable!("{other:?} was a timestamp"),
            });
        return Ok(Arc::new(cut.with_timezone_opt(zone.clone())));
    }
    let spans = intervals(array)?;
    let kept: Spans = spans.unary(|v| arrow_interval(interval_of(v).limited(limits.fields, limits.digits)));
    Ok(Arc::new(kept))
}

impl Intervals {
    fn of_one(&self, array: &ArrayRef) -> Result<ArrayRef> {
        Ok(match self.doing {
            Doing::Key => keys(array)?,
            Doing::Limit(limits) => limit(array, limits)?,
            _ => {
                let spans = intervals(array)?;
                let negated = spans.iter().map(|v| v.map(negated).transpose().map_err(tunnel));
                Arc::new(negated.collect::<Result<Spans>>()?)
            }
        })
    }

    fn of_two(&self, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
        match self.doing {
            Doing::Later | Doing::Earlier => self.moved(left, right),
            Doing::TimeLater | Doing::TimeEarlier => {
                let (times, spans) = (times_of(left)?, intervals(right)?);
                let results = times.iter().zip(spans.iter()).map(|(time, by)| {
                    let (time, by) = (time?, by?.nanoseconds);
                    let moved = if self.doing == Doing::TimeLater { i128::from(by) } else { -i128::from(by) };
                    Some((i128::from(time) + moved).rem_euclid(i128::from(DAY_MICROS)) as i64)
                });
                Ok(Arc::new(results.collect::<Times>()))
            }
            Doing::Between => {
                let (left, right) = (times_of(left)?, times_of(right)?);
                let results = left.iter().zip(right.iter()).map(|pair| match pair {
                    (Some(a), Some(b)) => Some(arrow_interval(Interval::new(0, 0, a - b))),
                    _ => None,
                });
                Ok(Arc::new(results.collect::<Spans>()))
            }
            Doing::Multiply | Doing::Divide => {
                let factors = right.as_primitive::<Float64Type>();
                let spans = intervals(left)?;
                let results = spans.iter().zip(factors.iter()).map(|pair| match pair {
                    (Some(span), Some(factor)) => {
                        scaled(self.doing == Doing::Divide, span, factor).map(Some).map_err(tunnel)
                    }
                    _ => Ok(None),
                });
                Ok(Arc::new(results.collect::<Result<Spans>>()?))
            }
            _ => {
                let (left, right) = (intervals(left)?, intervals(right)?);
                let results = left.iter().zip(right.iter()).map(|pair| match pair {
                    (Some(a), Some(b)) => {
                        let b = if self.doing == Doing::Subtract { negated(b).map_err(tunnel)? } else { b };
                        added(a, b).map(Some).map_err(tunnel)
                    }
                    _ => Ok(None),
                });
                Ok(Arc::new(results.collect::<Result<Spans>>()?))
            }
        }
    }

    /// Months first, then days, then time.
    fn moved(&self, times: &ArrayRef, by: &ArrayRef) -> Result<ArrayRef> {
        let (times, by) = (micros_of(times)?, intervals(by)?);
        let results = times.iter().zip(by.iter()).map(|pair| {
            let (Some(time), Some(by)) = pair else { return Ok(None) };
            let by = if self.doing == Doing::Earlier { negated(by).map_err(tunnel)? } else { by };
            let result = moved(time, by.months, by.days, by.nanoseconds);
            result.map(Some).ok_or_else(|| tunnel(EngineError::new("22008", "timestamp out of range")))
        });
        Ok(Arc::new(results.collect::<Result<PrimitiveArray<TimestampMicrosecondType>>>()?))
    }
}

/// As PostgreSQL's interval_mul and interval_div: what a part does not take whole goes on to the next smaller one.
pub(crate) fn scaled(
    divide: bool,
    span: IntervalMonthDayNano,
    factor: f64,
) -> std::result::Result<IntervalMonthDayNano, EngineError> {
    if divide && factor == 0.0 {
        return Err(division_by_zero());
    }
    let times = |value: f64| if divide { value / factor } else { value * factor };
    let whole = |value: f64| match (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value) {
        true => Ok(value as i32),
        false => Err(out_of_range()),
    };
    let rounded = |value: f64| (value * 1e6).round_ties_even() / 1e6;
    let seconds_of_day = 86_400.0;
    let (months_exact, days_exact) = (times(span.months.into()), times(span.days.into()));
    let (months, mut days) = (whole(months_exact)?, whole(days_exact)?);
    let rest_days = rounded((months_exact - f64::from(months)) * 30.0);
    let rest = days_exact - f64::from(days) + rest_days - rest_days.trunc();
    let mut rest = rounded(rest * seconds_of_day);
    if rest.abs() >= seconds_of_day {
        days = days.checked_add((rest / seconds_of_day) as i32).ok_or_else(out_of_range)?;
        rest -= (rest / seconds_of_day).trunc() * seconds_of_day;
    }
    days = days.checked_add(rest_days as i32).ok_or_else(out_of_range)?;
    let micros = (times((span.nanoseconds) as f64) + rest * 1e6).round_ties_even();
    if !micros.is_finite() || micros.abs() >= 9.2e18 {
        return Err(out_of_range());
    }
    Ok(IntervalMonthDayNano { months, days, nanoseconds: micros as i64 })
}

/// Invariant 1.
pub(crate) fn key_of(v: IntervalMonthDayNano) -> i128 {
    interval_of(v).key()
}

pub(crate) fn negated(v: IntervalMonthDayNano) -> std::result::Result<IntervalMonthDayNano, EngineError> {
    let parts = (v.months.checked_neg(), v.days.checked_neg(), v.nanoseconds.checked_neg());
    let (Some(months), Some(days), Some(nanoseconds)) = parts else { return Err(out_of_range()) };
    Ok(IntervalMonthDayNano { months, days, nanoseconds })
}

pub(crate) fn added(
    a: IntervalMonthDayNano,
    b: IntervalMonthDayNano,
) -> std::result::Result<IntervalMonthDayNano, EngineError> {
    let nanoseconds = a.nanoseconds.checked_add(b.nanoseconds);
    let parts = (a.months.checked_add(b.months), a.days.checked_add(b.days), nanoseconds);
    let (Some(months), Some(days), Some(nanoseconds)) = parts else { return Err(out_of_range()) };
    Ok(IntervalMonthDayNano { months, days, nanoseconds })
}
