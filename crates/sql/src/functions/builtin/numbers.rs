//! Functions of integers and numerics.
//!
//! Reports for DataFusion 55.2: `round` takes the scale of its result from its second argument where that is a literal,
//! so that the type changes when a constant is folded between analysis and execution, and what was planned as scale 18
//! is compared with scale 1 (`round(n, 1) in (1.5)` finds nothing); `round` of a double rounds halves away from zero
//! where C's rint and PostgreSQL round to even; `ceil` and `floor` of a decimal with as many digits behind the point as
//! it has at all overflow; `right(s, i64::MIN)` is empty.
use super::text::text;
use super::{Builtin, Overload, Run, Takes, decimal, given, wrong_arguments};
use terrace_engine::types::{Decimal, Digits};
use terrace_engine::{DataType, Datum, EngineError, Result};

/// Plain numeric: it takes every other number that is exact.
pub(super) const NUMERIC: DataType = DataType::Numeric(None);

const fn of(takes: &'static [Takes], gives: DataType, run: fn(&[Datum]) -> Result<Datum>) -> Overload {
    Overload { takes, more: false, gives, run: Run::Strict(run) }
}

/// Of one numeric, that answers one.
pub(super) const fn numeric(run: fn(&[Datum]) -> Result<Datum>) -> Overload {
    of(&[Takes::Is(NUMERIC)], NUMERIC, run)
}

/// Of two numerics, that answers one.
pub(super) const fn numerics(run: fn(&[Datum]) -> Result<Datum>) -> Overload {
    of(&[Takes::Is(NUMERIC), Takes::Is(NUMERIC)], NUMERIC, run)
}

/// Of a numeric and a number of digits.
const fn to_digits(run: fn(&[Datum]) -> Result<Datum>) -> Overload {
    of(&[Takes::Is(NUMERIC), Takes::Is(DataType::Int4)], NUMERIC, run)
}

/// Of a double, that answers one.
const fn double(run: fn(&[Datum]) -> Result<Datum>) -> Overload {
    of(&[Takes::Is(DataType::Float8)], DataType::Float8, run)
}

macro_rules! integers {
    ($name:literal, [$($takes:ident),*], $function:expr $(, $more:expr)*) => {
        Builtin { name: $name, overloads: &[
            $(of(&[Takes::Is(DataType::$takes); arity($name)], DataType::$takes, $function),)* $($more),*
        ] }
    };
}

/// Of the functions of integers.
const fn arity(name: &str) -> usize {
    if name.len() == 3 && name.as_bytes()[0] == b'a' { 1 } else { 2 }
}

pub(super) const TABLE: &[Builtin] = &[
    // What carries out a cast to numeric(p, s); the second is the modifier.
    Builtin { name: "numeric", overloads: &[to_digits(kept)] },
    integers!(
        "abs",
        [Int2, Int4, Int8],
        abs,
        numeric(|v| given(decimal(&v[0])?.absolute())),
        of(&[Takes::Is(DataType::Float4)], DataType::Float4, abs),
        double(abs)
    ),
    integers!("mod", [Int2, Int4, Int8], modulo, numerics(|v| given(decimal(&v[0])?.remainder(&decimal(&v[1])?)?))),
    integers!(
        "gcd",
        [Int4, Int8],
        |v| gcd(v).and_then(|g| back(g, &v[0])),
        numerics(|v| given(decimal(&v[0])?.greatest_divisor(&decimal(&v[1])?)))
    ),
    integers!("lcm", [Int4, Int8], lcm, numerics(|v| given(decimal(&v[0])?.least_multiple(&decimal(&v[1])?)?))),
    Builtin { name: "div", overloads: &[numerics(|v| given(decimal(&v[0])?.divide_whole(&decimal(&v[1])?)?))] },
    Builtin {
        name: "factorial",
        overloads: &[of(&[Takes::Is(DataType::Int8)], NUMERIC, |v| match v {
            [Datum::Int8(n)] => given(Decimal::factorial(*n)?),
            other => Err(wrong_arguments(other)),
        })],
    },
    Builtin { name: "ceil", overloads: CEIL },
    Builtin { name: "ceiling", overloads: CEIL },
    Builtin {
        name: "floor",
        overloads: &[numeric(|v| given(decimal(&v[0])?.floor()?)), double(|v| float(v, f64::floor))],
    },
    Builtin {
        name: "round",
        overloads: &[
            numeric(|v| given(decimal(&v[0])?.round(0)?)),
            to_digits(|v| given(decimal(&v[0])?.round(digits(&v[1])?)?)),
            double(|v| float(v, f64::round_ties_even)),
        ],
    },
    Builtin {
        name: "trunc",
        overloads: &[
            numeric(|v| given(decimal(&v[0])?.truncate(0)?)),
            to_digits(|v| given(decimal(&v[0])?.truncate(digits(&v[1])?)?)),
            double(|v| float(v, f64::trunc)),
        ],
    },
    Builtin {
        name: "sign",
        overloads: &[
            numeric(|v| given(decimal(&v[0])?.signum())),
            // Of NaN it is 0.
            double(|v| float(v, |x| f64::from(i8::from(x > 0.0) - i8::from(x < 0.0)))),
        ],
    },
    Builtin { name: "scale", overloads: &[of(&[Takes::Is(NUMERIC)], DataType::Int4, |v| scale(&decimal(&v[0])?))] },
    Builtin {
        name: "min_scale",
        overloads: &[of(&[Takes::Is(NUMERIC)], DataType::Int4, |v| scale(&decimal(&v[0])?.trimmed()))],
    },
    Builtin { name: "trim_scale", overloads: &[numeric(|v| given(decimal(&v[0])?.trimmed()))] },
    Builtin {
        name: "width_bucket",
        overloads: &[
            of(
                &[Takes::Is(NUMERIC), Takes::Is(NUMERIC), Takes::Is(NUMERIC), Takes::Is(DataType::Int4)],
                DataType::Int4,
                bucket,
            ),
            of(
                &[
                    Takes::Is(DataType::Float8),
                    Takes::Is(DataType::Float8),
                    Takes::Is(DataType::Float8),
                    Takes::Is(DataType::Int4),
                ],
                DataType::Int4,
                super::floats::bucket,
            ),
        ],
    },
    Builtin {
        name: "to_number",
        overloads: &[of(&[Takes::Is(DataType::Text), Takes::Is(DataType::Text)], NUMERIC, |v| {
            crate::functions::to_char::number::read::number(text(&v[0])?, text(&v[1])?)
        })],
    },
    Builtin {
        name: "to_hex",
        overloads: &[
            of(&[Takes::Is(DataType::Int4)], DataType::Text, to_hex),
            of(&[Takes::Is(DataType::Int8)], DataType::Text, to_hex),
        ],
    },
];

const CEIL: &[Overload] = &[numeric(|v| given(decimal(&v[0])?.ceiling()?)), double(|v| float(v, f64::ceil))];

fn kept(v: &[Datum]) -> Result<Datum> {
    let [value, Datum::Int4(modifier)] = v else { return Err(wrong_arguments(v)) };
    Digits::of_number(*modifier).map_or(Ok(value.clone()), |digits| digits.keep(value.clone()))
}

fn digits(value: &Datum) -> Result<i32> {
    match value {
        Datum::Int4(digits) => Ok(*digits),
        other => Err(wrong_arguments(std::slice::from_ref(other))),
    }
}

/// NULL of what is not finite.
fn scale(value: &Decimal) -> Result<Datum> {
    Ok(value.scale().map_or(Datum::Null, |scale| Datum::Int4(scale as i32)))
}

fn float(values: &[Datum], f: impl Fn(f64) -> f64) -> Result<Datum> {
    match values {
        [Datum::Float8(v)] => Ok(Datum::Float8(f(*v))),
        other => Err(wrong_arguments(other)),
    }
}

fn abs(values: &[Datum]) -> Result<Datum> {
    let integer = |v: Option<Datum>, name| v.ok_or_else(|| EngineError::out_of_range(name));
    match values {
        [Datum::Int2(v)] => integer(v.checked_abs().map(Datum::Int2), "smallint"),
        [Datum::Int4(v)] => integer(v.checked_abs().map(Datum::Int4), "integer"),
        [Datum::Int8(v)] => integer(v.checked_abs().map(Datum::Int8), "bigint"),
        [Datum::Float4(v)] => Ok(Datum::Float4(v.abs())),
        [Datum::Float8(v)] => Ok(Datum::Float8(v.abs())),
        other => Err(wrong_arguments(other)),
    }
}

fn wide(value: &Datum) -> Result<i128> {
    Ok(match value {
        Datum::Int2(v) => (*v).into(),
        Datum::Int4(v) => (*v).into(),
        Datum::Int8(v) => (*v).into(),
        other => return Err(wrong_arguments(std::slice::from_ref(other))),
    })
}

/// As an integer of the type of `like`. 22003
fn back(value: i128, like: &Datum) -> Result<Datum> {
    let name = match like {
        Datum::Int2(_) => "smallint",
        Datum::Int4(_) => "integer",
        _ => "bigint",
    };
    let out = |_| EngineError::out_of_range(name);
    Ok(match like {
        Datum::Int2(_) => Datum::Int2(value.try_into().map_err(out)?),
        Datum::Int4(_) => Datum::Int4(value.try_into().map_err(out)?),
        _ => Datum::Int8(value.try_into().map_err(out)?),
    })
}

fn modulo(values: &[Datum]) -> Result<Datum> {
    let zero = crate::functions::arithmetic::division_by_zero;
    let (a, b) = (wide(&values[0])?, wide(&values[1])?);
    back(a.checked_rem(b).ok_or_else(zero)?, &values[0])
}

fn euclid(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
}

fn gcd(values: &[Datum]) -> Result<i128> {
    Ok(euclid(wide(&values[0])?, wide(&values[1])?))
}

fn lcm(values: &[Datum]) -> Result<Datum> {
    let (a, b) = (wide(&values[0])?, wide(&values[1])?);
    if a == 0 || b == 0 {
        return back(0, &values[0]);
    }
    back((a / euclid(a, b) * b).abs(), &values[0])
}

/// 2201G where the buckets of `width_bucket` are none.
pub(super) fn check_buckets(count: i32, is_empty: bool) -> Result<()> {
    let wrong = |message: &str| Err(EngineError::new("2201G", message));
    match () {
        _ if count <= 0 => wrong("count must be greater than zero"),
        _ if is_empty => wrong("lower bound cannot equal upper bound"),
        _ => Ok(()),
    }
}

/// `width_bucket(value, from, to, count)`: 0 below the first of equal parts, count + 1 above the last.
fn bucket(values: &[Datum]) -> Result<Datum> {
    let (value, from, to) = (decimal(&values[0])?, decimal(&values[1])?, decimal(&values[2])?);
    let found = value.bucket(&from, &to, digits(&values[3])?)?;
    i32::try_from(found).map(Datum::Int4).map_err(|_| EngineError::out_of_range("integer"))
}

fn to_hex(values: &[Datum]) -> Result<Datum> {
    match values {
        [Datum::Int4(v)] => Ok(Datum::text(format!("{v:x}"))),
        [Datum::Int8(v)] => Ok(Datum::text(format!("{v:x}"))),
        other => Err(wrong_arguments(other)),
    }
}
