//! Functions of integers and numerics.
//!
//! Reports for DataFusion 55.2: `round` takes the scale of its result from its second argument where that is a literal,
//! so that the type changes when a constant is folded between analysis and execution, and what was planned as scale 18
//! is compared with scale 1 (`round(n, 1) in (1.5)` finds nothing); `round` of a double rounds halves away from zero
//! where C's rint and PostgreSQL round to even; `ceil` and `floor` of a decimal with as many digits behind the point as
//! it has at all overflow; `right(s, i64::MIN)` is empty.
use super::text::text;
use super::{Builtin, Gives, Overload, Run, Takes, numeric, wrong_arguments};
use terrace_engine::types::{Numeric, divide_rounded, power_of_ten};
use terrace_engine::{DataType, Datum, EngineError, Result};

const fn of(takes: &'static [Takes], gives: Gives, run: fn(&[Datum]) -> Result<Datum>) -> Overload {
    Overload { takes, more: false, gives, run: Run::Strict(run) }
}

const fn is(data_type: DataType) -> Gives {
    Gives::Is(data_type)
}

macro_rules! integers {
    ($name:literal, [$($takes:ident),*], $function:expr $(, $more:expr)*) => {
        Builtin { name: $name, overloads: &[
            $(of(&[Takes::Is(DataType::$takes); arity($name)], is(DataType::$takes), $function),)* $($more),*
        ] }
    };
}

/// Of the functions of integers.
const fn arity(name: &str) -> usize {
    if name.len() == 3 && name.as_bytes()[0] == b'a' { 1 } else { 2 }
}

pub(super) const TABLE: &[Builtin] = &[
    integers!(
        "abs",
        [Int2, Int4, Int8],
        abs,
        of(&[Takes::Numeric], Gives::Numeric(same), |v| Ok(Datum::Numeric(magnitude(numeric(&v[0])?)))),
        of(&[Takes::Is(DataType::Float4)], is(DataType::Float4), abs),
        of(&[Takes::Is(DataType::Float8)], is(DataType::Float8), abs)
    ),
    integers!("mod", [Int2, Int4, Int8], modulo, of(&[Takes::Numeric, Takes::Numeric], Gives::Numeric(widest), modulo)),
    integers!(
        "gcd",
        [Int4, Int8],
        |v| gcd(v).and_then(|g| back(g, &v[0])),
        of(&[Takes::Numeric, Takes::Numeric], Gives::Numeric(widest), numeric_gcd)
    ),
    integers!("lcm", [Int4, Int8], lcm, of(&[Takes::Numeric, Takes::Numeric], Gives::Numeric(widest), numeric_lcm)),
    Builtin { name: "div", overloads: &[of(&[Takes::Numeric, Takes::Numeric], Gives::Numeric(|_, _| (38, 0)), div)] },
    Builtin {
        name: "factorial",
        overloads: &[of(&[Takes::Is(DataType::Int8)], Gives::Numeric(|_, _| (38, 0)), factorial)],
    },
    Builtin { name: "ceil", overloads: CEIL },
    Builtin { name: "ceiling", overloads: CEIL },
    Builtin {
        name: "floor",
        overloads: &[
            of(&[Takes::Numeric], Gives::Numeric(whole), |v| Ok(integral(numeric(&v[0])?, i128::div_euclid))),
            of(&[Takes::Is(DataType::Float8)], is(DataType::Float8), |v| float(v, f64::floor)),
        ],
    },
    Builtin {
        name: "round",
        overloads: &[
            of(&[Takes::Numeric], Gives::Numeric(whole), |v| {
                Ok(Datum::Numeric(cut(numeric(&v[0])?, 0, divide_rounded)?))
            }),
            of(&[Takes::Numeric, Takes::Is(DataType::Int4)], Gives::Numeric(to_digits), |v| cut_to(v, divide_rounded)),
            of(&[Takes::Is(DataType::Float8)], is(DataType::Float8), |v| float(v, f64::round_ties_even)),
        ],
    },
    Builtin {
        name: "trunc",
        overloads: &[
            of(&[Takes::Numeric], Gives::Numeric(whole), |v| {
                Ok(Datum::Numeric(cut(numeric(&v[0])?, 0, |a, b| a / b)?))
            }),
            of(&[Takes::Numeric, Takes::Is(DataType::Int4)], Gives::Numeric(to_digits), |v| cut_to(v, |a, b| a / b)),
            of(&[Takes::Is(DataType::Float8)], is(DataType::Float8), |v| float(v, f64::trunc)),
        ],
    },
    Builtin {
        name: "sign",
        overloads: &[
            of(&[Takes::Numeric], Gives::Numeric(|_, _| (1, 0)), |v| {
                Ok(Datum::Numeric(Numeric { unscaled: numeric(&v[0])?.unscaled.signum(), scale: 0 }))
            }),
            of(&[Takes::Is(DataType::Float8)], is(DataType::Float8), |v| {
                // Of NaN it is 0.
                float(v, |x| f64::from(i8::from(x > 0.0) - i8::from(x < 0.0)))
            }),
        ],
    },
    Builtin {
        name: "scale",
        overloads: &[of(&[Takes::Numeric], is(DataType::Int4), |v| {
            Err(EngineError::unsupported(format!(
                "scale({}) is not supported: numerics here have their column's scale",
                numeric(&v[0])?
            )))
        })],
    },
    Builtin {
        name: "min_scale",
        overloads: &[of(&[Takes::Numeric], is(DataType::Int4), |v| {
            Ok(Datum::Int4(numeric(&v[0])?.trimmed().scale.into()))
        })],
    },
    // A plain numeric is shown without zeros at its end.
    Builtin {
        name: "trim_scale",
        overloads: &[of(&[Takes::Numeric], Gives::Numeric(|_, _| (38, 18)), |v| {
            Ok(Datum::Numeric(numeric(&v[0])?.trimmed()))
        })],
    },
    Builtin {
        name: "width_bucket",
        overloads: &[
            of(
                &[Takes::Numeric, Takes::Numeric, Takes::Numeric, Takes::Is(DataType::Int4)],
                is(DataType::Int4),
                bucket,
            ),
            of(
                &[
                    Takes::Is(DataType::Float8),
                    Takes::Is(DataType::Float8),
                    Takes::Is(DataType::Float8),
                    Takes::Is(DataType::Int4),
                ],
                is(DataType::Int4),
                super::floats::bucket,
            ),
        ],
    },
    Builtin {
        name: "to_number",
        overloads: &[of(
            &[Takes::Is(DataType::Text), Takes::Is(DataType::Text)],
            Gives::Numeric(|_, _| (38, 18)),
            |v| crate::functions::to_char::number::read::number(text(&v[0])?, text(&v[1])?),
        )],
    },
    Builtin {
        name: "to_hex",
        overloads: &[
            of(&[Takes::Is(DataType::Int4)], is(DataType::Text), to_hex),
            of(&[Takes::Is(DataType::Int8)], is(DataType::Text), to_hex),
        ],
    },
];

const CEIL: &[Overload] = &[
    of(&[Takes::Numeric], Gives::Numeric(whole), |v| Ok(integral(numeric(&v[0])?, |a, b| -(-a).div_euclid(b)))),
    of(&[Takes::Is(DataType::Float8)], is(DataType::Float8), |v| float(v, f64::ceil)),
];

fn same(given: &[(u8, u8)], _constant: Option<i64>) -> (u8, u8) {
    given[0]
}

/// That of two numerics which holds both.
fn widest(given: &[(u8, u8)], _constant: Option<i64>) -> (u8, u8) {
    let scale = given.iter().map(|(_, scale)| *scale).max().unwrap_or(0);
    let before = given.iter().map(|(precision, scale)| precision - scale).max().unwrap_or(0);
    ((before + scale).min(38), scale)
}

/// A digit more before the point, where rounding carries.
fn whole(given: &[(u8, u8)], _constant: Option<i64>) -> (u8, u8) {
    let (precision, scale) = given[0];
    ((precision - scale + 1).min(38), 0)
}

/// As many digits as a constant says, and never fewer than the value then has; of another argument all that there are.
fn to_digits(given: &[(u8, u8)], constant: Option<i64>) -> (u8, u8) {
    let (precision, scale) = given[0];
    let before = precision - scale;
    match constant {
        // Nothing is rounded. More zeros than there is room for are not shown.
        Some(digits) if digits >= i64::from(scale) => {
            let shown = digits.min(i64::from(38 - before)) as u8;
            (before + shown, shown)
        }
        Some(digits) => {
            let shown = digits.max(0) as u8;
            (before + 1 + shown, shown)
        }
        None => ((precision + 1).min(38), scale),
    }
}

fn float(values: &[Datum], f: impl Fn(f64) -> f64) -> Result<Datum> {
    match values {
        [Datum::Float8(v)] => Ok(Datum::Float8(f(*v))),
        other => Err(wrong_arguments(other)),
    }
}

fn magnitude(v: Numeric) -> Numeric {
    Numeric { unscaled: v.unscaled.abs(), scale: v.scale }
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

/// Two numerics at the larger of their scales.
fn aligned(values: &[Datum]) -> Result<(i128, i128, u8)> {
    let (a, b) = (numeric(&values[0])?, numeric(&values[1])?);
    let scale = a.scale.max(b.scale);
    let at = |v: Numeric| {
        let unit = power_of_ten(scale - v.scale);
        v.unscaled.checked_mul(unit).ok_or_else(|| EngineError::new("22003", "value overflows numeric format"))
    };
    Ok((at(a)?, at(b)?, scale))
}

fn modulo(values: &[Datum]) -> Result<Datum> {
    let zero = crate::functions::arithmetic::division_by_zero;
    if let [Datum::Numeric(_), Datum::Numeric(_)] = values {
        let (a, b, scale) = aligned(values)?;
        return Ok(Datum::Numeric(Numeric { unscaled: a.checked_rem(b).ok_or_else(zero)?, scale }));
    }
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

fn numeric_gcd(values: &[Datum]) -> Result<Datum> {
    let (a, b, scale) = aligned(values)?;
    Ok(Datum::Numeric(Numeric { unscaled: euclid(a, b), scale }))
}

fn lcm(values: &[Datum]) -> Result<Datum> {
    let (a, b) = (wide(&values[0])?, wide(&values[1])?);
    if a == 0 || b == 0 {
        return back(0, &values[0]);
    }
    back((a / euclid(a, b) * b).abs(), &values[0])
}

fn numeric_lcm(values: &[Datum]) -> Result<Datum> {
    let (a, b, scale) = aligned(values)?;
    let product = if a == 0 || b == 0 { Some(0) } else { (a / euclid(a, b)).checked_mul(b).map(i128::abs) };
    let unscaled = product.ok_or_else(|| EngineError::new("22003", "value overflows numeric format"))?;
    Ok(Datum::Numeric(Numeric { unscaled, scale }))
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
    let Datum::Int4(count) = values[3] else { return Err(wrong_arguments(values)) };
    let (value, from, to) = (numeric(&values[0])?, numeric(&values[1])?, numeric(&values[2])?);
    check_buckets(count, from == to)?;
    let scale = value.scale.max(from.scale).max(to.scale);
    let overflow = || EngineError::new("22003", "value overflows numeric format");
    let at = |v: Numeric| v.unscaled.checked_mul(power_of_ten(scale - v.scale)).ok_or_else(overflow);
    let (value, from, to) = (at(value)?, at(from)?, at(to)?);
    let (value, from, to) = if from < to { (value, from, to) } else { (-value, -from, -to) };
    if value < from {
        return Ok(Datum::Int4(0));
    }
    if value >= to {
        return count.checked_add(1).map(Datum::Int4).ok_or_else(|| EngineError::out_of_range("integer"));
    }
    let part = value.checked_sub(from).and_then(|part| part.checked_mul(count.into())).ok_or_else(overflow)?;
    Ok(Datum::Int4((part / to.checked_sub(from).ok_or_else(overflow)?) as i32 + 1))
}

/// The whole part of a quotient.
fn div(values: &[Datum]) -> Result<Datum> {
    let (a, b, _) = aligned(values)?;
    let quotient = a.checked_div(b).ok_or_else(crate::functions::arithmetic::division_by_zero)?;
    Ok(Datum::Numeric(Numeric { unscaled: quotient, scale: 0 }))
}

fn factorial(values: &[Datum]) -> Result<Datum> {
    let n = wide(&values[0])?;
    if n < 0 {
        return Err(EngineError::new("22003", "factorial of a negative number is undefined"));
    }
    let product = (2..=n).try_fold(1i128, |product, factor| product.checked_mul(factor));
    let product = product.ok_or_else(|| EngineError::new("22003", "value overflows numeric format"))?;
    Ok(Datum::Numeric(Numeric { unscaled: product, scale: 0 }))
}

/// A numeric as an integer; `divide` by 10^scale rounds up or down.
fn integral(value: Numeric, divide: impl Fn(i128, i128) -> i128) -> Datum {
    Datum::Numeric(Numeric { unscaled: divide(value.unscaled, power_of_ten(value.scale)), scale: 0 })
}

/// To so many digits behind the point, or before it where they are less than none.
fn cut(value: Numeric, digits: i64, divide: impl Fn(i128, i128) -> i128) -> Result<Numeric> {
    let gone = i64::from(value.scale) - digits;
    if gone <= 0 {
        return Ok(value);
    }
    if gone > 38 {
        return Ok(Numeric { unscaled: 0, scale: 0 });
    }
    let unscaled = divide(value.unscaled, power_of_ten(gone as u8));
    if digits >= 0 {
        return Ok(Numeric { unscaled, scale: digits as u8 });
    }
    let unit = (-digits <= 38).then(|| power_of_ten(-digits as u8));
    let shifted = if unscaled == 0 { Some(0) } else { unit.and_then(|unit| unscaled.checked_mul(unit)) };
    let unscaled = shifted.ok_or_else(|| EngineError::new("22003", "value overflows numeric format"))?;
    Ok(Numeric { unscaled, scale: 0 })
}

fn cut_to(values: &[Datum], divide: impl Fn(i128, i128) -> i128) -> Result<Datum> {
    match values {
        [Datum::Numeric(value), Datum::Int4(digits)] => Ok(Datum::Numeric(cut(*value, (*digits).into(), divide)?)),
        other => Err(wrong_arguments(other)),
    }
}

fn to_hex(values: &[Datum]) -> Result<Datum> {
    match values {
        [Datum::Int4(v)] => Ok(Datum::text(format!("{v:x}"))),
        [Datum::Int8(v)] => Ok(Datum::text(format!("{v:x}"))),
        other => Err(wrong_arguments(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding() {
        let n = |unscaled, scale| Numeric { unscaled, scale };
        assert_eq!(cut(n(2567, 3), 1, divide_rounded).unwrap().to_string(), "2.6");
        assert_eq!(cut(n(-25, 1), 0, divide_rounded).unwrap().to_string(), "-3");
        assert_eq!(cut(n(2567, 3), 7, divide_rounded).unwrap().to_string(), "2.567");
        assert_eq!(cut(n(15_500, 1), -2, divide_rounded).unwrap().to_string(), "1600");
        assert_eq!(cut(n(15_500, 1), -2, |a, b| a / b).unwrap().to_string(), "1500");
        assert_eq!(cut(n(1, 0), -40, divide_rounded).unwrap().to_string(), "0");
        assert_eq!(integral(n(5, 3), |a, b| -(-a).div_euclid(b)), Datum::Numeric(n(1, 0)));
        assert_eq!(integral(n(-5, 3), i128::div_euclid), Datum::Numeric(n(-1, 0)));
        assert_eq!(to_digits(&[(38, 18)], Some(1)), (22, 1));
        assert_eq!(to_digits(&[(3, 1)], Some(4)), (6, 4));
        assert_eq!(to_digits(&[(38, 18)], Some(18)), (38, 18));
        assert_eq!(to_digits(&[(38, 18)], Some(17)), (38, 17));
        assert_eq!(to_digits(&[(38, 0)], Some(2)), (38, 0));
        assert_eq!(to_digits(&[(8, 2)], None), (9, 2));
    }
}
