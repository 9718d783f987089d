//! Roots, powers and logarithms.
//!
//! 1. They are computed with more digits than are asked for, and then rounded: a result is the nearest one, unless the
//!    true value lies so near the middle between two that these digits do not tell.
//! 2. A fixed-point number is an integer that stands for itself divided by 10^places.
use super::arithmetic::{LEAST_DIGITS, chosen, quotient, sign};
use super::{Decimal, Finite, MOST_BEFORE, divide_rounded, overflow, ten_to};
use crate::error::{EngineError, Result};
use num_bigint::{BigInt, Sign};
use std::f64::consts::{LN_10, LOG10_E};

/// Digits that are computed beyond those that are kept.
const GUARD: i64 = 12;
/// `exp` answers nothing beyond these.
const LARGEST_EXPONENT: f64 = 6000.0;
/// The same where only about that is known.
const BEYOND: f64 = 6020.0;

/// The square root of a number that is not negative, rounded at a scale.
pub(super) fn root(of: &Finite, scale: u32) -> Finite {
    // One digit more is enough to round: no root ends with a 5 there unless it is exact.
    let doubled = 2 * (i64::from(scale) + 1) - i64::from(of.scale);
    let shifted = match doubled < 0 {
        true => &of.unscaled / ten_to(doubled.unsigned_abs() as u32),
        false => &of.unscaled * ten_to(doubled as u32),
    };
    Finite::new(divide_rounded(&shifted.sqrt(), &BigInt::from(10)), scale)
}

/// `2 * artanh(above / below)`: the logarithm of (below + above) / (below - above).
fn double_artanh(above: &BigInt, below: &BigInt, places: u32) -> BigInt {
    let unit = ten_to(places);
    let z = above * &unit / below;
    let square = &z * &z / &unit;
    let (mut power, mut sum, mut n) = (z.clone(), z, 1u32);
    loop {
        power = &power * &square / &unit;
        n += 2;
        let term = &power / n;
        if term.sign() == Sign::NoSign {
            return sum * 2;
        }
        sum += term;
    }
}

fn ln_2(places: u32) -> BigInt {
    double_artanh(&BigInt::from(1), &BigInt::from(3), places)
}

/// The natural logarithm of a positive number, as a fixed-point number that is right to about `places` digits.
fn ln_fixed(of: &Finite, places: u32) -> BigInt {
    let (above, below) = (&of.unscaled, ten_to(of.scale));
    // of = m * 2^twos, where m is between 3/4 and 3/2.
    let mut twos = above.bits() as i64 - below.bits() as i64;
    let shifted = |twos: i64| match twos < 0 {
        true => (above << twos.unsigned_abs(), below.clone()),
        false => (above.clone(), &below << twos.unsigned_abs()),
    };
    let (mut m, mut one) = shifted(twos);
    if &m * 4 < &one * 3 {
        twos -= 1;
        (m, one) = shifted(twos);
    } else if &m * 2 > &one * 3 {
        twos += 1;
        (m, one) = shifted(twos);
    }
    let inner = places + 8;
    let sum = double_artanh(&(&m - &one), &(&m + &one), inner) + if twos == 0 { 0.into() } else { ln_2(inner) * twos };
    divide_rounded(&sum, &ten_to(inner - places))
}

/// The natural logarithm of a positive number, rounded at a scale.
fn ln(of: &Finite, scale: i64) -> Finite {
    let places = (scale.max(0) + GUARD) as u32;
    Finite::new(ln_fixed(of, places), places).rounded(scale.max(0))
}

/// The weight of a logarithm's first digit, about.
fn ln_weight(of: &Finite) -> i64 {
    let one = BigInt::from(10) * ten_to(of.scale);
    let tenfold = &of.unscaled * 10;
    let tenth = ten_to(of.scale);
    if tenfold >= &one - &tenth && tenfold <= &one + &tenth {
        let rest = Finite::new(&of.unscaled - ten_to(of.scale), of.scale);
        if rest.is_zero() {
            return 0;
        }
        return rest.unscaled.magnitude().to_string().len() as i64 - 1 - i64::from(rest.scale);
    }
    let (groups, weight) = of.groups(2);
    let about = (groups as f64).ln() + (4 * (weight - 1)) as f64 * LN_10;
    about.abs().log10() as i64
}

/// e to the power of a number, rounded at a scale. 22003
fn exp(of: &Finite, scale: u32) -> Result<Finite> {
    let about = Decimal::Finite(of.clone()).to_f64();
    if about.abs() >= LARGEST_EXPONENT {
        return if about > 0.0 { Err(overflow()) } else { Ok(Finite::zero(scale)) };
    }
    let weight = (about * LOG10_E) as i64;
    let halvings = 10u32;
    let places = ((i64::from(scale) + weight).max(0) + GUARD + 8) as u32;
    let unit = ten_to(places);
    // of = rest + twos * ln 2
    let twos = (about / std::f64::consts::LN_2).round() as i64;
    let fixed = of.rounded(i64::from(places)).at(places);
    let rest = fixed - ln_2(places + 8) * twos / ten_to(8);
    let rest = rest >> halvings;
    let (mut term, mut sum, mut n) = (unit.clone(), unit.clone(), 0u32);
    loop {
        n += 1;
        term = &term * &rest / &unit / n;
        if term.sign() == Sign::NoSign {
            break;
        }
        sum += &term;
    }
    for _ in 0..halvings {
        sum = &sum * &sum / &unit;
    }
    let (above, below) = if twos < 0 { (sum, unit << twos.unsigned_abs()) } else { (sum << twos.unsigned_abs(), unit) };
    Ok(Finite::new(divide_rounded(&(above * ten_to(scale)), &below), scale))
}

/// A number to the power of an integer, rounded at a scale. `weight`: about that of the result. 22003
fn power_of_integer(base: &Finite, exponent: i64, scale: u32, weight: f64) -> Result<Finite> {
    let digits = (1 + i64::from(scale) + weight as i64).max(1) + (exponent.abs() as f64).ln() as i64 + GUARD;
    // Mantissa and exponent, so that no more digits are kept than count.
    let kept = |mantissa: BigInt, exponent: i64| {
        let most = (digits as f64 * 3.33) as u64 + 8;
        match mantissa.bits().checked_sub(most) {
            Some(bits @ 4..) => {
                let gone = (bits as f64 / 3.33) as u32;
                (divide_rounded(&mantissa, &ten_to(gone)), exponent + i64::from(gone))
            }
            _ => (mantissa, exponent),
        }
    };
    let mut square = (base.unscaled.clone(), -i64::from(base.scale));
    let mut result = (BigInt::from(1), 0);
    let mut left = exponent.unsigned_abs();
    while left > 0 {
        if left & 1 == 1 {
            result = kept(&result.0 * &square.0, result.1 + square.1);
        }
        left >>= 1;
        if left > 0 {
            square = kept(&square.0 * &square.0, square.1 * 2);
        }
    }
    let (mantissa, tens) = result;
    let most = MOST_BEFORE as i64 * 2;
    let result = match (tens, exponent < 0) {
        (tens, false) if tens > most => return Err(overflow()),
        (tens, true) if tens > most => return Ok(Finite::zero(scale)),
        (0.., _) => Finite::new(mantissa * ten_to(tens as u32), 0),
        (tens, _) => Finite::new(mantissa, tens.unsigned_abs() as u32),
    };
    Ok(if exponent < 0 { quotient(&Finite::new(1.into(), 0), &result, scale) } else { result.rounded(scale.into()) })
}

fn integer_power(base: &Finite, exponent: i64) -> Result<Finite> {
    let scale = chosen(LEAST_DIGITS, &[base]);
    match exponent {
        0 => return Ok(Finite::new(ten_to(scale), scale)),
        1 => return Ok(base.rounded(scale.into())),
        _ if base.is_zero() => return Ok(Finite::zero(scale)),
        _ => {}
    }
    let (groups, first) = base.groups(4);
    let weight = exponent as f64 * ((groups as f64).log10() + (4 * (first - 3)) as f64);
    if weight > MOST_BEFORE as f64 {
        return Err(overflow());
    }
    if weight + 1.0 < -f64::from(scale) {
        return Ok(Finite::zero(scale));
    }
    power_of_integer(base, exponent, scale, weight)
}

fn real_power(base: &Finite, exponent: &Finite) -> Result<Finite> {
    if base.is_zero() {
        return Ok(Finite::zero(LEAST_DIGITS as u32));
    }
    let negative = base.is_negative() && Decimal::Finite(exponent.clone()).is_odd();
    let size = Finite::new(BigInt::from_biguint(Sign::Plus, base.unscaled.magnitude().clone()), base.scale);
    let ln_weight = ln_weight(&size);
    let product = |places: i64| {
        let places = places.max(0);
        let ln = ln(&size, places);
        Finite::new(ln.unscaled * &exponent.unscaled, ln.scale + exponent.scale).rounded(places)
    };
    let about = Decimal::Finite(product(8 - ln_weight)).to_f64();
    if about.abs() > BEYOND {
        return if about > 0.0 { Err(overflow()) } else { Ok(Finite::zero(1000)) };
    }
    let weight = (about * LOG10_E) as i64;
    let scale = chosen(LEAST_DIGITS - weight, &[base, exponent]);
    let digits = (i64::from(scale) + weight).max(0);
    let result = exp(&product(digits - ln_weight + GUARD), scale)?;
    Ok(if negative { Finite::new(-result.unscaled, result.scale) } else { result })
}

fn positive(value: &Decimal) -> Result<()> {
    match sign(value) {
        0 if value.is_zero() => Err(EngineError::new("2201E", "cannot take logarithm of zero")),
        -1 => Err(EngineError::new("2201E", "cannot take logarithm of a negative number")),
        _ => Ok(()),
    }
}

impl Decimal {
    pub fn square_root(&self) -> Result<Decimal> {
        if self.is_negative() {
            return Err(EngineError::new("2201F", "cannot take square root of a negative number"));
        }
        let Decimal::Finite(v) = self else { return Ok(self.clone()) };
        let (_, weight) = v.first_group();
        let scale = chosen(LEAST_DIGITS - (2 * weight + 1), &[v]);
        Ok(Decimal::Finite(root(v, scale)))
    }

    /// e to the power of the value.
    pub fn exp(&self) -> Result<Decimal> {
        Ok(match self {
            Decimal::Finite(v) => {
                let weight = (self.to_f64() * LOG10_E).clamp(-2000.0, 2000.0) as i64;
                Decimal::Finite(exp(v, chosen(LEAST_DIGITS - weight, &[v]))?.checked()?)
            }
            Decimal::MinusInfinity => Decimal::from_int(0),
            other => other.clone(),
        })
    }

    pub fn ln(&self) -> Result<Decimal> {
        positive(self)?;
        Ok(match self {
            Decimal::Finite(v) => {
                let scale = chosen(LEAST_DIGITS - ln_weight(v), &[v]);
                Decimal::Finite(ln(v, scale.into()))
            }
            other => other.clone(),
        })
    }

    /// The logarithm of the value to a base. 22012 where the base is 1.
    pub fn log(&self, base: &Decimal) -> Result<Decimal> {
        if [self, base].into_iter().any(|v| matches!(v, Decimal::NaN)) {
            return Ok(Decimal::NaN);
        }
        positive(base)?;
        positive(self)?;
        let (Decimal::Finite(v), Decimal::Finite(b)) = (self, base) else {
            return Ok(match (base.is_finite(), self.is_finite()) {
                (false, false) => Decimal::NaN,
                (false, true) => Decimal::from_int(0),
                _ => Decimal::Infinity,
            });
        };
        let (of_value, of_base) = (ln_weight(v), ln_weight(b));
        let weight = of_value - of_base;
        let scale = chosen(LEAST_DIGITS - weight, &[v, b]);
        let digits = i64::from(scale) + weight + GUARD;
        let (above, below) = (ln(v, digits - of_value), ln(b, digits - of_base));
        if below.is_zero() {
            return Err(EngineError::new("22012", "division by zero"));
        }
        Ok(Decimal::Finite(quotient(&above, &below, scale)))
    }

    /// The value to the power of another. 2201F, 22003
    pub fn power(&self, exponent: &Decimal) -> Result<Decimal> {
        let one = Decimal::from_int(1);
        match (self, exponent) {
            (Decimal::NaN, other) => return Ok(if other.is_zero() { one } else { Decimal::NaN }),
            (other, Decimal::NaN) => return Ok(if *other == one { one } else { Decimal::NaN }),
            _ => {}
        }
        if self.is_zero() && exponent.is_negative() {
            return Err(EngineError::new("2201F", "zero raised to a negative power is undefined"));
        }
        if self.is_negative() && !exponent.is_integral() {
            let message = "a negative number raised to a non-integer power yields a complex result";
            return Err(EngineError::new("2201F", message));
        }
        let (Decimal::Finite(base), Decimal::Finite(by)) = (self, exponent) else {
            return Ok(self.power_endless(exponent));
        };
        let whole = exponent.is_integral().then(|| i64::try_from(by.rounded(0).unscaled).ok()).flatten();
        let result = match whole.filter(|n| i32::try_from(*n).is_ok()) {
            Some(whole) => integer_power(base, whole)?,
            None => real_power(base, by)?,
        };
        Ok(Decimal::Finite(result.checked()?))
    }

    /// Where one is infinite: what the limit is.
    fn power_endless(&self, exponent: &Decimal) -> Decimal {
        let (zero, one) = (Decimal::from_int(0), Decimal::from_int(1));
        if *self == one || exponent.is_zero() {
            return one;
        }
        if self.is_zero() {
            return zero;
        }
        let grows = !exponent.is_negative();
        if !exponent.is_finite() {
            let size = self.clone().absolute();
            return match size == one {
                true => one,
                false if (size > one) == grows => Decimal::Infinity,
                false => zero,
            };
        }
        match self.is_negative() && exponent.is_odd() {
            _ if !grows => zero,
            true => Decimal::MinusInfinity,
            false => Decimal::Infinity,
        }
    }
}
