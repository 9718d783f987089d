//! Operations whose results are exact, or quotients.
//!
//! 1. With NaN each answers NaN. With infinities each answers the limit, or NaN where there is none.
use super::{Decimal, Finite, MOST_BEFORE, MOST_BEHIND, divide_rounded, ten_to};
use crate::error::{EngineError, Result};
use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;

/// The digits that a quotient has at least, as far as its scale allows it.
pub(super) const LEAST_DIGITS: i64 = 16;
/// The largest scale that an operation chooses.
pub(super) const MOST_CHOSEN: i64 = 1000;

fn division_by_zero() -> EngineError {
    EngineError::new("22012", "division by zero")
}

/// The scale of a result that should have so many digits behind the point: no smaller than the arguments'.
pub(super) fn chosen(wanted: i64, given: &[&Finite]) -> u32 {
    let least = given.iter().map(|value| i64::from(value.scale)).max().unwrap_or(0);
    wanted.max(least).clamp(0, MOST_CHOSEN) as u32
}

/// `numerator / denominator` at a scale, rounded.
pub(super) fn quotient(numerator: &Finite, denominator: &Finite, scale: u32) -> Finite {
    let shift = i64::from(scale) + i64::from(denominator.scale) - i64::from(numerator.scale);
    let factor = ten_to(shift.unsigned_abs() as u32);
    let unscaled = match shift < 0 {
        true => divide_rounded(&numerator.unscaled, &(&denominator.unscaled * factor)),
        false => divide_rounded(&(&numerator.unscaled * factor), &denominator.unscaled),
    };
    Finite::new(unscaled, scale)
}

impl Finite {
    /// The first group of four digits that is not zero, counted from the point, and the power of 10,000 that it stands
    /// for; of zero both are 0.
    pub(super) fn first_group(&self) -> (u32, i64) {
        let (groups, weight) = self.groups(1);
        (groups as u32, weight)
    }

    /// The same of up to so many groups, fewer where the rest is zero; the weight is that of the first.
    pub(super) fn groups(&self, most: usize) -> (u64, i64) {
        debug_assert!(most <= 4, "64 bits hold 16 digits");
        if self.is_zero() {
            return (0, 0);
        }
        let digits = self.unscaled.magnitude().to_string();
        let exponent = digits.len() as i64 - 1 - i64::from(self.scale);
        let weight = exponent.div_euclid(4);
        let taken = (exponent - 4 * weight + 1) as usize + 4 * (most - 1);
        let kept = &digits[..taken.min(digits.len())];
        let groups = kept.bytes().fold(0, |whole, digit| whole * 10 + u64::from(digit - b'0'));
        (groups * 10u64.pow((taken - kept.len()) as u32), weight)
    }

    /// The scale of a quotient (invariant 4 of [`super`]).
    pub(super) fn quotient_scale(&self, divisor: &Finite) -> u32 {
        let ((a, weight_a), (b, weight_b)) = (self.first_group(), divisor.first_group());
        let weight = weight_a - weight_b - i64::from(a <= b);
        chosen(LEAST_DIGITS - 4 * weight, &[self, divisor])
    }

    fn divided(&self, divisor: &Finite) -> Result<Finite> {
        if divisor.is_zero() {
            return Err(division_by_zero());
        }
        quotient(self, divisor, self.quotient_scale(divisor)).checked()
    }

    fn product(&self, other: &Finite) -> Result<Finite> {
        let product = Finite::new(&self.unscaled * &other.unscaled, self.scale + other.scale);
        if product.scale > MOST_BEHIND { product.rounded(MOST_BEHIND.into()).checked() } else { product.checked() }
    }

    /// To so many digits behind the point, before it where they are negative.
    fn cut(&self, digits: i64, divide: impl Fn(&BigInt, &BigInt) -> BigInt) -> Finite {
        let gone = i64::from(self.scale) - digits;
        let scale = digits.max(0) as u32;
        if gone <= 0 {
            return Finite::new(self.at(scale), scale);
        }
        let unscaled = divide(&self.unscaled, &ten_to(gone as u32));
        Finite::new(if digits < 0 { unscaled * ten_to(-digits as u32) } else { unscaled }, scale)
    }

    pub(super) fn rounded(&self, digits: i64) -> Finite {
        self.cut(digits, divide_rounded)
    }

    fn truncated(&self, digits: i64) -> Finite {
        self.cut(digits, |value, unit| value / unit)
    }

    fn is_whole(&self) -> bool {
        self.truncated(0).at(self.scale) == self.unscaled
    }

    fn greatest_divisor(&self, other: &Finite) -> Finite {
        let (mut a, mut b, scale) = self.aligned(other);
        while b.sign() != Sign::NoSign {
            (a, b) = (b.clone(), a % b);
        }
        Finite::new(BigInt::from_biguint(Sign::Plus, a.into_parts().1), scale)
    }
}

/// -1, 0 or 1; of NaN 0.
pub(super) fn sign(value: &Decimal) -> i32 {
    match value {
        _ if value.is_negative() => -1,
        Decimal::NaN => 0,
        value if value.is_zero() => 0,
        _ => 1,
    }
}

fn infinite(positive: bool) -> Decimal {
    if positive { Decimal::Infinity } else { Decimal::MinusInfinity }
}

impl Decimal {
    pub fn negated(self) -> Decimal {
        match self {
            Decimal::Finite(v) => Decimal::Finite(Finite::new(-v.unscaled, v.scale)),
            Decimal::Infinity => Decimal::MinusInfinity,
            Decimal::MinusInfinity => Decimal::Infinity,
            Decimal::NaN => Decimal::NaN,
        }
    }

    pub fn absolute(self) -> Decimal {
        if self.is_negative() { self.negated() } else { self }
    }

    /// -1, 0, 1 or NaN.
    pub fn signum(&self) -> Decimal {
        if matches!(self, Decimal::NaN) { Decimal::NaN } else { Decimal::from_int(sign(self).into()) }
    }

    pub fn add(&self, other: &Decimal) -> Result<Decimal> {
        Ok(match (self, other) {
            (Decimal::Finite(a), Decimal::Finite(b)) => {
                let (a, b, scale) = a.aligned(b);
                Decimal::Finite(Finite::new(a + b, scale).checked()?)
            }
            (Decimal::NaN, _) | (_, Decimal::NaN) => Decimal::NaN,
            (Decimal::Infinity, Decimal::MinusInfinity) | (Decimal::MinusInfinity, Decimal::Infinity) => Decimal::NaN,
            (Decimal::Finite(_), endless) | (endless, _) => endless.clone(),
        })
    }

    pub fn subtract(&self, other: &Decimal) -> Result<Decimal> {
        self.add(&other.clone().negated())
    }

    pub fn multiply(&self, other: &Decimal) -> Result<Decimal> {
        Ok(match (self, other) {
            (Decimal::Finite(a), Decimal::Finite(b)) => Decimal::Finite(a.product(b)?),
            _ => match sign(self) * sign(other) {
                0 => Decimal::NaN,
                sign => infinite(sign > 0),
            },
        })
    }

    pub fn divide(&self, divisor: &Decimal) -> Result<Decimal> {
        Ok(match (self, divisor) {
            (Decimal::Finite(a), Decimal::Finite(b)) => Decimal::Finite(a.divided(b)?),
            _ => self.divided_endless(divisor)?,
        })
    }

    /// The whole part of a quotient.
    pub fn divide_whole(&self, divisor: &Decimal) -> Result<Decimal> {
        Ok(match (self, divisor) {
            (Decimal::Finite(_), Decimal::Finite(b)) if b.is_zero() => return Err(division_by_zero()),
            (Decimal::Finite(a), Decimal::Finite(b)) => {
                let (a, b, _) = a.aligned(b);
                Decimal::Finite(Finite::new(a / b, 0).checked()?)
            }
            _ => self.divided_endless(divisor)?,
        })
    }

    /// Where one is not finite.
    fn divided_endless(&self, divisor: &Decimal) -> Result<Decimal> {
        Ok(match (self, divisor) {
            (Decimal::NaN, _) | (_, Decimal::NaN) => Decimal::NaN,
            (Decimal::Finite(_), _) => Decimal::from_int(0),
            (_, divisor) if divisor.is_zero() => return Err(division_by_zero()),
            (endless, Decimal::Finite(_)) => infinite(sign(endless) * sign(divisor) > 0),
            _ => Decimal::NaN,
        })
    }

    pub fn remainder(&self, divisor: &Decimal) -> Result<Decimal> {
        Ok(match (self, divisor) {
            (Decimal::NaN, _) | (_, Decimal::NaN) => Decimal::NaN,
            (_, divisor) if divisor.is_zero() => return Err(division_by_zero()),
            (Decimal::Finite(a), Decimal::Finite(b)) => {
                let (a, b, scale) = a.aligned(b);
                Decimal::Finite(Finite::new(a % b, scale))
            }
            (Decimal::Finite(_), _) => self.clone(),
            _ => Decimal::NaN,
        })
    }

    pub fn greatest_divisor(&self, other: &Decimal) -> Decimal {
        match (self, other) {
            (Decimal::Finite(a), Decimal::Finite(b)) => Decimal::Finite(a.greatest_divisor(b)),
            _ => Decimal::NaN,
        }
    }

    pub fn least_multiple(&self, other: &Decimal) -> Result<Decimal> {
        let (Decimal::Finite(a), Decimal::Finite(b)) = (self, other) else { return Ok(Decimal::NaN) };
        let scale = a.scale.max(b.scale);
        if a.is_zero() || b.is_zero() {
            return Ok(Decimal::Finite(Finite::zero(scale)));
        }
        let divisor = a.greatest_divisor(b);
        let multiple = a.at(scale) / divisor.unscaled * b.at(scale);
        Ok(Decimal::Finite(Finite::new(multiple, scale).checked()?).absolute())
    }

    /// To so many digits behind the point, before it where they are negative.
    pub fn round(&self, digits: i32) -> Result<Decimal> {
        self.finite(|v| v.rounded(bounded(digits)).checked())
    }

    pub fn truncate(&self, digits: i32) -> Result<Decimal> {
        self.finite(|v| v.truncated(bounded(digits)).checked())
    }

    /// The integer that is no larger.
    pub fn floor(&self) -> Result<Decimal> {
        self.finite(|v| {
            let whole = v.truncated(0);
            let less = v.is_negative() && !v.is_whole();
            Finite::new(whole.unscaled - i32::from(less), 0).checked()
        })
    }

    /// The integer that is no smaller.
    pub fn ceiling(&self) -> Result<Decimal> {
        Ok(self.clone().negated().floor()?.negated())
    }

    fn finite(&self, f: impl Fn(&Finite) -> Result<Finite>) -> Result<Decimal> {
        match self {
            Decimal::Finite(v) => f(v).map(Decimal::Finite),
            other => Ok(other.clone()),
        }
    }

    /// Whether it has no fraction; so are the infinities.
    pub(super) fn is_integral(&self) -> bool {
        match self {
            Decimal::Finite(v) => v.is_whole(),
            other => !matches!(other, Decimal::NaN),
        }
    }

    pub(super) fn is_odd(&self) -> bool {
        matches!(self, Decimal::Finite(v) if v.is_whole() && v.truncated(0).unscaled.bit(0))
    }

    /// Without zeros at the end of its fraction.
    pub fn trimmed(&self) -> Decimal {
        match self {
            Decimal::Finite(v) => Decimal::Finite(v.trimmed()),
            other => other.clone(),
        }
    }

    /// Digits behind the point; `None` of what is not finite.
    pub fn scale(&self) -> Option<u32> {
        match self {
            Decimal::Finite(v) => Some(v.scale),
            _ => None,
        }
    }

    /// `n!`
    pub fn factorial(n: i64) -> Result<Decimal> {
        if n < 0 {
            return Err(EngineError::new("22003", "factorial of a negative number is undefined"));
        }
        // The next one has more digits than a value may have.
        if n > 32_177 {
            return Err(super::overflow());
        }
        let product = (2..=n).fold(BigInt::from(1), |product, factor| product * factor);
        Ok(Decimal::Finite(Finite::new(product, 0).checked()?))
    }

    /// The part of `from` to `to` that the value lies in, of `count` equal ones: 0 before the first, count + 1 behind
    /// the last. 2201G
    pub fn bucket(&self, from: &Decimal, to: &Decimal, count: i32) -> Result<i64> {
        let wrong = |message: &str| Err(EngineError::new("2201G", message));
        if count <= 0 {
            return wrong("count must be greater than zero");
        }
        if [self, from, to].into_iter().any(|v| matches!(v, Decimal::NaN)) {
            return wrong("operand, lower bound, and upper bound cannot be NaN");
        }
        let (Decimal::Finite(a), Decimal::Finite(b)) = (from, to) else {
            return wrong("lower and upper bounds must be finite");
        };
        let order = from.cmp(to);
        let (before, behind) = match order {
            Ordering::Equal => return wrong("lower bound cannot equal upper bound"),
            Ordering::Less => (self < from, self >= to),
            Ordering::Greater => (self > from, self <= to),
        };
        let Decimal::Finite(v) = self else { return Ok(if before { 0 } else { i64::from(count) + 1 }) };
        if before || behind {
            return Ok(if before { 0 } else { i64::from(count) + 1 });
        }
        let scale = v.scale.max(a.scale).max(b.scale);
        let (v, a, b) = (v.at(scale), a.at(scale), b.at(scale));
        let part: BigInt = (v - &a) * count / (b - a);
        Ok(i64::try_from(part).map_err(|_| super::overflow())? + 1)
    }
}

/// How many digits `round` and `trunc` go by at the most: one more than a value may have before the point.
fn bounded(digits: i32) -> i64 {
    i64::from(digits).clamp(-(MOST_BEFORE as i64) - 1, MOST_BEHIND.into())
}

/// The variance of `count` values, of their sum and that of their squares. `sample`: divided by one less. `root`: its
/// square root, the deviation. 22003
pub fn variance(count: i64, sum: &Decimal, squares: &Decimal, sample: bool, root: bool) -> Result<Decimal> {
    let (Decimal::Finite(sum), Decimal::Finite(squares)) = (sum, squares) else { return Ok(Decimal::NaN) };
    let n = BigInt::from(count);
    let scale = (2 * sum.scale).max(squares.scale);
    let above =
        Finite::new(&n * squares.at(scale) - &sum.unscaled * &sum.unscaled * ten_to(scale - 2 * sum.scale), scale);
    if above.unscaled.sign() != Sign::Plus {
        return Ok(Decimal::from_int(0));
    }
    let below = Finite::new(&n * (&n - i32::from(sample)), 0);
    let scale = above.quotient_scale(&below);
    let variance = quotient(&above, &below, scale);
    Ok(Decimal::Finite(if root { super::powers::root(&variance, scale) } else { variance }.checked()?))
}
