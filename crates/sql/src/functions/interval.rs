//! Intervals: months, days and microseconds, read, shown, compared and computed with as PostgreSQL does.
//!
//! 1. Two intervals are compared as if a month had 30 days and a day 24 hours: `1 day` equals `24:00:00`, and stays
//!    another value. What would have to choose one of two equal ones (GROUP BY, DISTINCT, min, max, ...) is refused:
//!    see [`crate::plan::comparable`].
//! 2. Microseconds are kept as Arrow's nanoseconds, so that the part below a day reaches 2,562,047 hours; more is
//!    22008.
//!
//! Report for Arrow 59: intervals compare by their fields, as `IntervalMonthDayNano` derives its order, and its parser
//! knows neither `1 day 02:00` nor `-25:00:00`; its display writes `1 mons 1 days 1 hours`.
//!
//! Source: PostgreSQL 15 documentation, "Interval Input" and "Interval Output" (8.5.4, 8.5.5).
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::functions::arithmetic::{Function, division_by_zero};
use crate::functions::calendar::moved;
use crate::functions::convert::micros_of;
use crate::values::arrow_type;
use datafusion::arrow::array::{ArrayRef, AsArray, Decimal128Array, PrimitiveArray, StringArray};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    TimestampMicrosecondType,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::fmt;
use std::sync::Arc;
use terrace_engine::{DataType, EngineError};

mod parse;

pub(crate) const INTERVAL: ArrowType = ArrowType::Interval(IntervalUnit::MonthDayNano);

/// In microseconds.
const DAY: i64 = 86_400_000_000;

fn out_of_range() -> EngineError {
    EngineError::new("22008", "interval out of range")
}

pub(crate) fn make(months: i32, days: i32, micros: i64) -> std::result::Result<IntervalMonthDayNano, EngineError> {
    let nanoseconds = micros.checked_mul(1000).ok_or_else(out_of_range)?;
    Ok(IntervalMonthDayNano { months, days, nanoseconds })
}

/// Reads an interval. 22007, 22008
pub(crate) fn read(text: &str) -> std::result::Result<IntervalMonthDayNano, EngineError> {
    parse::read(text)
}

/// As PostgreSQL shows it (IntervalStyle `postgres`).
pub struct Shown(pub IntervalMonthDayNano);

impl fmt::Display for Shown {
    /// `1 year 2 mons 3 days 04:05:06.5`; a positive part after a negative one has a plus sign.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = self.0;
        let micros = v.nanoseconds / 1000;
        let (mut first, mut negative) = (true, false);
        for (amount, unit) in [(v.months / 12, "year"), (v.months % 12, "mon"), (v.days, "day")] {
            if amount == 0 {
                continue;
            }
            let space = if first { "" } else { " " };
            let sign = if negative && amount > 0 { "+" } else { "" };
            let plural = if amount == 1 { "" } else { "s" };
            write!(out, "{space}{sign}{amount} {unit}{plural}")?;
            (first, negative) = (false, amount < 0);
        }
        if micros != 0 || first {
            let space = if first { "" } else { " " };
            let sign = match () {
                _ if micros < 0 => "-",
                _ if negative => "+",
                _ => "",
            };
            let all = micros.unsigned_abs();
            let (seconds, fraction) = (all / 1_000_000, all % 1_000_000);
            write!(out, "{space}{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
            if fraction != 0 {
                let digits = format!("{fraction:06}");
                write!(out, ".{}", digits.trim_end_matches('0'))?;
            }
        }
        Ok(())
    }
}

pub(crate) fn intervals(array: &ArrayRef) -> Result<PrimitiveArray<IntervalMonthDayNanoType>> {
    let array = datafusion::arrow::compute::cast(array, &INTERVAL)?;
    Ok(array.as_primitive::<IntervalMonthDayNanoType>().clone())
}

/// Intervals, or texts of them.
pub(crate) fn read_or_cast(array: &ArrayRef) -> Result<Spans> {
    if let ArrowType::Interval(_) | ArrowType::Null = array.data_type() {
        return intervals(array);
    }
    let texts = datafusion::arrow::compute::cast(array, &ArrowType::Utf8)?;
    texts.as_string::<i32>().iter().map(|text| text.map(read).transpose().map_err(tunnel)).collect()
}

/// Intervals as text.
pub(crate) fn text_array(array: &ArrayRef) -> Result<ArrayRef> {
    let texts = intervals(array)?.iter().map(|v| v.map(|v| Shown(v).to_string())).collect::<StringArray>();
    Ok(Arc::new(texts))
}

/// What is done with intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Doing {
    /// Text to interval.
    Read,
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
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Intervals {
    doing: Doing,
    signature: Signature,
}

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
        Expr::Literal(ScalarValue::Utf8(text), _) => {
            let value = text.map(|text| read(&text)).transpose().map_err(tunnel)?;
            Ok(Expr::Literal(ScalarValue::IntervalMonthDayNano(value), None))
        }
        other => Ok(doing(Doing::Read, vec![other])),
    }
}

pub(crate) fn doing(doing: Doing, args: Vec<Expr>) -> Expr {
    let udf = Intervals { doing, signature: Signature::any(args.len(), Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(udf)), args))
}

/// `left function right` where one side is an interval; `None`: there is no such operator here.
pub(crate) fn operator(function: Function, left: &Expr, lt: &ArrowType, right: &Expr, rt: &ArrowType) -> Option<Expr> {
    use ArrowType::{Interval, Timestamp};
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
        _ => return None,
    };
    Some(doing(what, args.into()))
}

impl ScalarUDFImpl for Intervals {
    fn name(&self) -> &str {
        match self.doing {
            Doing::Read => "interval",
            Doing::Key => "interval_key",
            Doing::Add => "interval_add",
            Doing::Subtract => "interval_subtract",
            Doing::Negate => "interval_negate",
            Doing::Multiply => "interval_multiply",
            Doing::Divide => "interval_divide",
            Doing::Later => "timestamp_later",
            Doing::Earlier => "timestamp_earlier",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        Ok(match self.doing {
            Doing::Key => ArrowType::Decimal128(38, 0),
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

impl Intervals {
    fn of_one(&self, array: &ArrayRef) -> Result<ArrayRef> {
        Ok(match self.doing {
            Doing::Read => Arc::new(read_or_cast(array)?),
            Doing::Key => keys(array)?,
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
            Doing::Multiply | Doing::Divide => {
                let factors = right.as_primitive::<Float64Type>();
                let spans = intervals(left)?;
                let results = spans.iter().zip(factors.iter()).map(|pair| match pair {
                    (Some(span), Some(factor)) => self.scaled(span, factor).map(Some).map_err(tunnel),
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
            let result = moved(time, by.months, by.days, by.nanoseconds / 1000).filter(|t| *t >= FIRST_TIMESTAMP);
            result.map(Some).ok_or_else(|| tunnel(EngineError::new("22008", "timestamp out of range")))
        });
        Ok(Arc::new(results.collect::<Result<PrimitiveArray<TimestampMicrosecondType>>>()?))
    }

    /// As PostgreSQL's interval_mul and interval_div: what a part does not take whole goes on to the next smaller one.
    fn scaled(
        &self,
        span: IntervalMonthDayNano,
        factor: f64,
    ) -> std::result::Result<IntervalMonthDayNano, EngineError> {
        if self.doing == Doing::Divide && factor == 0.0 {
            return Err(division_by_zero());
        }
        let times = |value: f64| if self.doing == Doing::Divide { value / factor } else { value * factor };
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
        let micros = (times((span.nanoseconds / 1000) as f64) + rest * 1e6).round_ties_even();
        if !micros.is_finite() || micros.abs() >= 9.2e18 {
            return Err(out_of_range());
        }
        make(months, days, micros as i64)
    }
}

/// 4714 BC, in microseconds since 1970. (The other end is beyond what 64 bits hold from 1970 on.)
pub(crate) const FIRST_TIMESTAMP: i64 = -210_866_803_200_000_000;

/// Invariant 1.
fn key_of(v: IntervalMonthDayNano) -> i128 {
    let days = i128::from(v.months) * 30 + i128::from(v.days);
    days * i128::from(DAY) + i128::from(v.nanoseconds / 1000)
}

fn negated(v: IntervalMonthDayNano) -> std::result::Result<IntervalMonthDayNano, EngineError> {
    let parts = (v.months.checked_neg(), v.days.checked_neg(), v.nanoseconds.checked_neg());
    let (Some(months), Some(days), Some(nanoseconds)) = parts else { return Err(out_of_range()) };
    Ok(IntervalMonthDayNano { months, days, nanoseconds })
}

fn added(a: IntervalMonthDayNano, b: IntervalMonthDayNano) -> std::result::Result<IntervalMonthDayNano, EngineError> {
    let nanoseconds = a.nanoseconds.checked_add(b.nanoseconds);
    let parts = (a.months.checked_add(b.months), a.days.checked_add(b.days), nanoseconds);
    let (Some(months), Some(days), Some(nanoseconds)) = parts else { return Err(out_of_range()) };
    Ok(IntervalMonthDayNano { months, days, nanoseconds })
}
