//! Functions of double precision, with PostgreSQL's errors where there is no answer. Those that PostgreSQL has for
//! numerics too answer them numerics.
mod degrees;

use super::numbers::{numeric, numerics};
use super::{Builtin, Overload, Run, Takes, decimal, given, wrong_arguments};
use crate::functions::arithmetic::float_result;
use terrace_engine::types::Decimal;
use terrace_engine::{DataType, Datum, EngineError, Result};

const fn one(run: fn(&[Datum]) -> Result<Datum>) -> Overload {
    Overload { takes: &[Takes::Is(DataType::Float8)], more: false, gives: DataType::Float8, run: Run::Strict(run) }
}

const fn two(run: fn(&[Datum]) -> Result<Datum>) -> Overload {
    let takes = &[Takes::Is(DataType::Float8), Takes::Is(DataType::Float8)];
    Overload { takes, more: false, gives: DataType::Float8, run: Run::Strict(run) }
}

const POWER: &[Overload] = &[two(power), numerics(|v| given(decimal(&v[0])?.power(&decimal(&v[1])?)?))];

macro_rules! of_one {
    ($($name:literal: $function:expr),* $(,)?) => {
        &[
            $(Builtin { name: $name, overloads: &[one(|v| apply(v, $function))] },)*
            Builtin { name: "power", overloads: POWER },
            Builtin { name: "pow", overloads: POWER },
            Builtin { name: "atan2d", overloads: &[two(|v| apply_two(v, |a, b| Ok(degrees::atan2(a, b))))] },
            Builtin { name: "float4send", overloads: &[Overload {
                takes: &[Takes::Is(DataType::Float4)],
                more: false,
                gives: DataType::Bytea,
                run: Run::Strict(sent),
            }] },
            Builtin { name: "float8send", overloads: &[Overload {
                takes: &[Takes::Is(DataType::Float8)],
                more: false,
                gives: DataType::Bytea,
                run: Run::Strict(sent),
            }] },
            Builtin { name: "atan2", overloads: &[two(|v| apply_two(v, |a, b| Ok(a.atan2(b))))] },
            Builtin { name: "log", overloads: &[
                one(|v| apply(v, |x| logarithm(x, f64::log10))),
                numeric(log10),
                // Of numerics only, the base first.
                numerics(|v| given(decimal(&v[1])?.log(&decimal(&v[0])?)?)),
            ] },
            Builtin { name: "log10", overloads: &[one(|v| apply(v, |x| logarithm(x, f64::log10))), numeric(log10)] },
            Builtin { name: "sqrt", overloads: &[
                one(|v| apply(v, root)),
                numeric(|v| given(decimal(&v[0])?.square_root()?)),
            ] },
            Builtin { name: "exp", overloads: &[
                one(|v| apply(v, |x| float_result(x.exp(), x.is_infinite(), x.is_finite()))),
                numeric(|v| given(decimal(&v[0])?.exp()?)),
            ] },
            Builtin { name: "ln", overloads: &[
                one(|v| apply(v, |x| logarithm(x, f64::ln))),
                numeric(|v| given(decimal(&v[0])?.ln()?)),
            ] },
        ]
    };
}

const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

pub(super) const TABLE: &[Builtin] = of_one! {
    "cbrt": |x| Ok(x.cbrt()),
    "sin": |x| finite(x, f64::sin),
    "cos": |x| finite(x, f64::cos),
    "tan": |x| finite(x, f64::tan),
    "cot": |x| finite(x, |x| 1.0 / x.tan()),
    "asin": |x| within(x, -1.0, 1.0, f64::asin),
    "acos": |x| within(x, -1.0, 1.0, f64::acos),
    "atan": |x| Ok(x.atan()),
    "sinh": |x| Ok(x.sinh()),
    "cosh": |x| Ok(x.cosh()),
    "tanh": |x| Ok(x.tanh()),
    "asinh": |x| Ok(if x.abs() > LARGE { (x.abs().ln() + std::f64::consts::LN_2).copysign(x) } else { x.asinh() }),
    "acosh": |x| within(x, 1.0, f64::INFINITY, |x| if x > LARGE { x.ln() + std::f64::consts::LN_2 } else { x.acosh() }),
    "atanh": |x| within(x, -1.0, 1.0, f64::atanh),
    "sind": |x| finite(x, degrees::sin),
    "cosd": |x| finite(x, degrees::cos),
    "tand": |x| finite(x, degrees::tan),
    "cotd": |x| finite(x, degrees::cot),
    "asind": |x| within(x, -1.0, 1.0, degrees::asin),
    "acosd": |x| within(x, -1.0, 1.0, degrees::acos),
    "atand": |x| Ok(degrees::atan(x)),
    "degrees": |x| float_result(x / RADIANS_PER_DEGREE, x.is_infinite(), false),
    "radians": |x| float_result(x * RADIANS_PER_DEGREE, x.is_infinite(), x != 0.0),
};

/// Beyond it `x * x + 1` is `x * x`, and may be infinite.
const LARGE: f64 = 1e150;

fn apply(values: &[Datum], f: impl Fn(f64) -> Result<f64>) -> Result<Datum> {
    match values {
        [Datum::Float8(v)] if v.is_nan() => Ok(Datum::Float8(f64::NAN)),
        [Datum::Float8(v)] => f(*v).map(Datum::Float8),
        other => Err(wrong_arguments(other)),
    }
}

fn apply_two(values: &[Datum], f: impl Fn(f64, f64) -> Result<f64>) -> Result<Datum> {
    match values {
        [Datum::Float8(a), Datum::Float8(b)] => f(*a, *b).map(Datum::Float8),
        other => Err(wrong_arguments(other)),
    }
}

/// The bytes of a binary answer.
fn sent(values: &[Datum]) -> Result<Datum> {
    match values {
        [Datum::Float4(v)] => Ok(Datum::Bytea(v.to_be_bytes().to_vec().into())),
        [Datum::Float8(v)] => Ok(Datum::Bytea(v.to_be_bytes().to_vec().into())),
        other => Err(wrong_arguments(other)),
    }
}

/// `width_bucket(value, from, to, count)`
pub(super) fn bucket(values: &[Datum]) -> Result<Datum> {
    let [Datum::Float8(value), Datum::Float8(from), Datum::Float8(to), Datum::Int4(count)] = values else {
        return Err(wrong_arguments(values));
    };
    super::numbers::check_buckets(*count, false)?;
    let wrong = |message: &str| Err(EngineError::new("2201G", message));
    if value.is_nan() || from.is_nan() || to.is_nan() {
        return wrong("operand, lower bound, and upper bound cannot be NaN");
    }
    if from.is_infinite() || to.is_infinite() {
        return wrong("lower and upper bounds must be finite");
    }
    super::numbers::check_buckets(*count, from == to)?;
    let (below, above) = if from < to { (value < from, value >= to) } else { (value > from, value <= to) };
    if below {
        return Ok(Datum::Int4(0));
    }
    let most = count.checked_add(1).ok_or_else(|| EngineError::out_of_range("integer"));
    if above {
        return most.map(Datum::Int4);
    }
    // Halves, where the whole difference would be infinite.
    let share = match (to - from).is_infinite() {
        true => (value / 2.0 - from / 2.0) / (to / 2.0 - from / 2.0),
        false => (value - from) / (to - from),
    };
    Ok(Datum::Int4(((f64::from(*count) * share) as i32).min(count - 1) + 1))
}

fn out_of_range() -> EngineError {
    EngineError::new("22003", "input is out of range")
}

fn finite(x: f64, f: impl Fn(f64) -> f64) -> Result<f64> {
    if x.is_infinite() { Err(out_of_range()) } else { Ok(f(x)) }
}

fn within(x: f64, least: f64, most: f64, f: impl Fn(f64) -> f64) -> Result<f64> {
    if (least..=most).contains(&x) { Ok(f(x)) } else { Err(out_of_range()) }
}

fn logarithm(x: f64, f: impl Fn(f64) -> f64) -> Result<f64> {
    match () {
        _ if x == 0.0 => Err(EngineError::new("2201E", "cannot take logarithm of zero")),
        _ if x < 0.0 => Err(EngineError::new("2201E", "cannot take logarithm of a negative number")),
        _ => Ok(f(x)),
    }
}

fn log10(values: &[Datum]) -> Result<Datum> {
    given(decimal(&values[0])?.log(&Decimal::from_int(10))?)
}

fn root(x: f64) -> Result<f64> {
    match x < 0.0 {
        true => Err(EngineError::new("2201F", "cannot take square root of a negative number")),
        false => Ok(x.sqrt()),
    }
}

fn power(values: &[Datum]) -> Result<Datum> {
    apply_two(values, |a, b| match () {
        _ if a == 0.0 && b < 0.0 => Err(EngineError::new("2201F", "zero raised to a negative power is undefined")),
        _ if a < 0.0 && b.is_finite() && b.fract() != 0.0 => Err(complex()),
        _ => {
            let given = a.is_infinite() || b.is_infinite();
            float_result(a.powf(b), given, a != 0.0 && a.is_finite() && b.is_finite())
        }
    })
}

fn complex() -> EngineError {
    EngineError::new("2201F", "a negative number raised to a non-integer power yields a complex result")
}
