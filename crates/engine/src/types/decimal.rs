//! Plain `numeric`: decimal numbers of any length, each with its own scale, and NaN and the two infinities.
//!
//! 1. A value has at most 131,072 digits before the point and 16,383 behind it, as in PostgreSQL. What has more is
//!    22003; nothing is rounded but where an operation says so.
//! 2. The scale is how many digits behind the point are shown. Values that differ in nothing else are equal.
//! 3. Stored (*format*): a key, then the scale (two bytes, big-endian). Keys are ordered as the values are by their
//!    bytes, equal values have equal keys, and none is the beginning of another:
//!
//! ```text
//! class: u8    0 -Infinity, 1 negative, 2 zero, 3 positive, 4 Infinity, 5 NaN; alone but for 1 and 3, where follow
//! exponent     3 bytes, big-endian: the value is 0.DD.. times 100 to the power of it less 2^22
//! digits       pairs of them, each plus 1; the first pair and the last are not zero
//! end: u8      0. Where the value is negative, all bits behind the class are flipped.
//! ```
//! 4. An operation's result has the scale that PostgreSQL gives it. What is rounded is rounded to the nearest, ties
//!    away from zero.
//!
//! Source: PostgreSQL 15 documentation, "Numeric Types" (8.1); the rules for scales were found by trying it.
use super::numeric::{Numeric, field_overflow, power_of_ten};
use crate::error::{EngineError, Result};
use num_bigint::{BigInt, BigUint, Sign};
use std::cmp::Ordering;
use std::fmt::Display;

mod arithmetic;
mod powers;
mod text;

pub use arithmetic::variance;

/// The most digits before the point, and behind it.
pub const MOST_BEFORE: usize = 131_072;
pub const MOST_BEHIND: u32 = 16_383;

const MINUS_INFINITY: u8 = 0;
const NEGATIVE: u8 = 1;
const ZERO: u8 = 2;
const POSITIVE: u8 = 3;
const INFINITY: u8 = 4;
const NAN: u8 = 5;
const BIAS: i64 = 1 << 22;

/// A value as it is computed with.
#[derive(Clone, Debug)]
pub enum Decimal {
    Finite(Finite),
    Infinity,
    MinusInfinity,
    NaN,
}

/// `unscaled / 10^scale`.
#[derive(Clone, Debug)]
pub struct Finite {
    unscaled: BigInt,
    scale: u32,
}

/// 10 to the power of `n`.
fn ten_to(n: u32) -> BigInt {
    match u8::try_from(n) {
        Ok(n @ 0..=38) => BigInt::from(power_of_ten(n)),
        _ => BigInt::from(10).pow(n),
    }
}

/// 22003
fn overflow() -> EngineError {
    EngineError::new("22003", "value overflows numeric format")
}

/// 22003 of an infinity that a type's digits do not hold.
fn infinite_field(precision: impl Display, scale: impl Display) -> EngineError {
    let detail = format!("A field with precision {precision}, scale {scale} cannot hold an infinite value.");
    EngineError::new("22003", "numeric field overflow").with_detail(detail)
}

/// `value / divisor`, rounded (invariant 4).
fn divide_rounded(value: &BigInt, divisor: &BigInt) -> BigInt {
    let (quotient, rest) = (value / divisor, value % divisor);
    let twice = rest.magnitude() * 2u8;
    if &twice < divisor.magnitude() {
        return quotient;
    }
    let negative = (value.sign() == Sign::Minus) != (divisor.sign() == Sign::Minus);
    quotient + if negative { -1 } else { 1 }
}

impl Finite {
    fn new(unscaled: BigInt, scale: u32) -> Finite {
        Finite { unscaled, scale }
    }

    fn zero(scale: u32) -> Finite {
        Finite::new(BigInt::from(0), scale)
    }

    pub fn scale(&self) -> u32 {
        self.scale
    }

    /// The integer that the value is at its scale.
    pub fn unscaled(&self) -> &BigInt {
        &self.unscaled
    }

    fn is_zero(&self) -> bool {
        self.unscaled.sign() == Sign::NoSign
    }

    fn is_negative(&self) -> bool {
        self.unscaled.sign() == Sign::Minus
    }

    /// The integer that the value is at a scale that is no smaller than its own.
    fn at(&self, scale: u32) -> BigInt {
        debug_assert!(scale >= self.scale, "nothing is rounded here");
        if scale == self.scale { self.unscaled.clone() } else { &self.unscaled * ten_to(scale - self.scale) }
    }

    /// Of the larger scale, the integers that two values are.
    fn aligned(&self, other: &Finite) -> (BigInt, BigInt, u32) {
        let scale = self.scale.max(other.scale);
        (self.at(scale), other.at(scale), scale)
    }

    /// Invariant 1.
    fn checked(self) -> Result<Finite> {
        // A digit has more than three bits.
        let bits = self.unscaled.bits();
        let long = bits > 3 * (MOST_BEFORE as u64 + u64::from(self.scale));
        let is_long = || self.unscaled.magnitude() >= ten_to(MOST_BEFORE as u32 + self.scale).magnitude();
        if self.scale > MOST_BEHIND || long && is_long() {
            return Err(overflow());
        }
        Ok(self)
    }

    /// Without zeros at the end of its fraction.
    fn trimmed(&self) -> Finite {
        let Finite { mut unscaled, mut scale } = self.clone();
        while scale > 0 && (unscaled.sign() == Sign::NoSign || &unscaled % 10u8 == BigInt::from(0)) {
            unscaled /= 10;
            scale -= 1;
        }
        Finite { unscaled, scale }
    }
}

impl Decimal {
    pub fn of(unscaled: impl Into<BigInt>, scale: u32) -> Result<Decimal> {
        Ok(Decimal::Finite(Finite::new(unscaled.into(), scale).checked()?))
    }

    pub fn from_int(value: i64) -> Decimal {
        Decimal::Finite(Finite::new(value.into(), 0))
    }

    /// `NaN` and the infinities as they are; else 15 significant digits of a double (`float4`: 6 of a real).
    pub fn from_float(value: f64, float4: bool) -> Result<Decimal> {
        match value {
            _ if value.is_nan() => Ok(Decimal::NaN),
            _ if value.is_infinite() => Ok(if value > 0.0 { Decimal::Infinity } else { Decimal::MinusInfinity }),
            _ => {
                let text = if float4 { format!("{value:.5e}") } else { format!("{value:.14e}") };
                let (mantissa, exponent) = text.split_once('e').expect("Rust writes an exponent");
                // It has a point, and zeros behind its last digit.
                let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
                Decimal::parse(&format!("{mantissa}e{exponent}"))
            }
        }
    }

    pub fn is_finite(&self) -> bool {
        matches!(self, Decimal::Finite(_))
    }

    /// Below zero.
    pub fn is_negative(&self) -> bool {
        match self {
            Decimal::Finite(v) => v.is_negative(),
            other => matches!(other, Decimal::MinusInfinity),
        }
    }

    /// Whether it has so many digits that computing with it may take a while.
    pub fn is_long(&self) -> bool {
        const BITS: u64 = 4096;
        matches!(self, Decimal::Finite(value) if value.unscaled.bits() > BITS)
    }

    pub fn is_zero(&self) -> bool {
        matches!(self, Decimal::Finite(v) if v.is_zero())
    }

    /// The nearest integer (invariant 4). 0A000 where it is not finite; `None` where 128 bits do not hold it. `name`:
    /// of the type that is wanted.
    pub fn to_int(&self, name: &str) -> Result<Option<i128>> {
        match self {
            Decimal::Finite(v) => Ok(i128::try_from(divide_rounded(&v.unscaled, &ten_to(v.scale))).ok()),
            Decimal::NaN => Err(EngineError::new("0A000", format!("cannot convert NaN to {name}"))),
            _ => Err(EngineError::new("0A000", format!("cannot convert infinity to {name}"))),
        }
    }

    /// The nearest double; infinite where it is too large.
    pub fn to_f64(&self) -> f64 {
        match self {
            Decimal::Finite(v) => v.to_string().parse().expect("a decimal number"),
            Decimal::Infinity => f64::INFINITY,
            Decimal::MinusInfinity => f64::NEG_INFINITY,
            Decimal::NaN => f64::NAN,
        }
    }

    /// As a value of numeric(precision, scale), rounded. 22003 where it has more digits, 0A000 of NaN.
    pub fn to_numeric(&self, precision: u8, scale: u8) -> Result<Numeric> {
        let v = match self {
            Decimal::Finite(v) => v,
            Decimal::NaN => {
                let error = EngineError::unsupported(format!("NaN is no numeric({precision},{scale}) here"));
                return Err(error.with_hint("A column of type numeric, without digits, takes it."));
            }
            _ => return Err(infinite_field(precision, scale)),
        };
        let unscaled = match v.scale > scale.into() {
            true => divide_rounded(&v.unscaled, &ten_to(v.scale - u32::from(scale))),
            false => v.at(scale.into()),
        };
        let unscaled = i128::try_from(unscaled).map_err(|_| field_overflow(precision, scale))?;
        Numeric { unscaled, scale }.checked(precision)
    }

    /// Rounded to a scale. 22003 where it has more digits than a numeric of that precision and scale.
    pub(super) fn limited(&self, precision: u16, scale: i16) -> Result<Decimal> {
        match self {
            Decimal::Finite(_) => {}
            Decimal::NaN => return Ok(Decimal::NaN),
            _ => return Err(infinite_field(precision, scale)),
        }
        let rounded = self.round(scale.into())?;
        // (At a scale below zero the integer has the zeros at its end, too.)
        let most = ten_to(u32::from(precision) + u32::from(scale.min(0).unsigned_abs()));
        match &rounded {
            Decimal::Finite(v) if v.unscaled.magnitude() >= most.magnitude() => Err(field_overflow(precision, scale)),
            _ => Ok(rounded),
        }
    }

    /// The stored form (invariant 3).
    pub fn encode(&self) -> Box<[u8]> {
        let (mut out, scale) = match self {
            Decimal::Finite(v) => (v.key(), v.scale),
            Decimal::MinusInfinity => (vec![MINUS_INFINITY], 0),
            Decimal::Infinity => (vec![INFINITY], 0),
            Decimal::NaN => (vec![NAN], 0),
        };
        debug_assert!(scale <= MOST_BEHIND, "invariant 1");
        out.extend_from_slice(&(scale as u16).to_be_bytes());
        debug_assert_eq!(check(&out), Ok(()), "invariant 3: {self:?}");
        out.into()
    }

    /// Of a stored form.
    pub fn decode(bytes: &[u8]) -> Decimal {
        let (key, scale) = parts(bytes);
        match key[0] {
            MINUS_INFINITY => Decimal::MinusInfinity,
            INFINITY => Decimal::Infinity,
            NAN => Decimal::NaN,
            _ => Decimal::Finite(Finite::of_key(key, scale)),
        }
    }

    /// The least scale that shows all of the value of a key.
    pub fn of_key(key: &[u8]) -> Option<Decimal> {
        let mut bytes = key.to_vec();
        bytes.extend_from_slice(&(least_scale(key) as u16).to_be_bytes());
        check(&bytes).ok().map(|()| Decimal::decode(&bytes))
    }
}

impl From<Numeric> for Decimal {
    fn from(value: Numeric) -> Decimal {
        Decimal::Finite(Finite::new(value.unscaled.into(), value.scale.into()))
    }
}

impl Finite {
    fn key(&self) -> Vec<u8> {
        if self.is_zero() {
            return vec![ZERO];
        }
        // Pairs do not part at the point where the scale is odd.
        let odd = self.scale % 2 == 1;
        let pairs = match odd {
            true => (self.unscaled.magnitude() * 10u8).to_radix_be(100),
            false => self.unscaled.magnitude().to_radix_be(100),
        };
        let exponent = BIAS + pairs.len() as i64 - i64::from(self.scale.div_ceil(2));
        let kept = pairs.iter().rposition(|pair| *pair != 0).map_or(0, |last| last + 1);
        let mut key = Vec::with_capacity(kept + 7);
        key.push(if self.is_negative() { NEGATIVE } else { POSITIVE });
        key.extend_from_slice(&(exponent as u32).to_be_bytes()[1..]);
        key.extend(pairs[..kept].iter().map(|pair| pair + 1));
        key.push(0);
        if self.is_negative() {
            key[1..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        key
    }

    fn of_key(key: &[u8], scale: u32) -> Finite {
        if key[0] == ZERO {
            return Finite::zero(scale);
        }
        let (exponent, pairs) = pairs(key);
        let digits = BigUint::from_radix_be(&pairs, 100).expect("pairs of digits");
        let shift = i64::from(scale) + 2 * (exponent - pairs.len() as i64);
        let magnitude = match u32::try_from(shift) {
            Ok(shift) => digits * ten_to(shift).magnitude(),
            // The last pair ends in a zero that is behind the scale.
            Err(_) => digits / 10u8,
        };
        let sign = if key[0] == NEGATIVE { Sign::Minus } else { Sign::Plus };
        Finite::new(BigInt::from_biguint(sign, magnitude), scale)
    }
}

/// Key and scale of a stored form.
fn parts(bytes: &[u8]) -> (&[u8], u32) {
    let (key, scale) = bytes.split_last_chunk::<2>().expect("a scale is stored");
    (key, u16::from_be_bytes(*scale).into())
}

/// What a stored value is compared by (invariant 3).
pub fn key(bytes: &[u8]) -> &[u8] {
    parts(bytes).0
}

/// The scale of a stored value.
pub fn scale(bytes: &[u8]) -> u32 {
    parts(bytes).1
}

/// Order of stored values.
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    key(a).cmp(key(b))
}

/// The exponent and the pairs of digits of a key.
fn pairs(key: &[u8]) -> (i64, Vec<u8>) {
    let flip = if key[0] == NEGATIVE { 0xff } else { 0 };
    let plain = |byte: &u8| byte ^ flip;
    let exponent = key[1..4].iter().fold(0, |whole, byte| whole << 8 | i64::from(plain(byte))) - BIAS;
    (exponent, key[4..key.len() - 1].iter().map(|byte| plain(byte).wrapping_sub(1)).collect())
}

/// How long the key is that bytes begin with; `None`: they begin with none.
pub(crate) fn key_length(bytes: &[u8]) -> Option<usize> {
    let end = match bytes.first()? {
        0..=NAN if !matches!(bytes[0], NEGATIVE | POSITIVE) => return Some(1),
        &POSITIVE => 0,
        &NEGATIVE => 0xff,
        _ => return None,
    };
    Some(5 + bytes.get(4..)?.iter().position(|byte| *byte == end)?)
}

fn least_scale(key: &[u8]) -> u32 {
    if key.len() < 6 {
        return 0;
    }
    let (exponent, pairs) = pairs(key);
    let behind = 2 * (pairs.len() as i64 - exponent) - i64::from(pairs.last().is_some_and(|pair| pair % 10 == 0));
    u32::try_from(behind).unwrap_or(0)
}

/// Whether bytes are a stored form (invariant 3).
pub(crate) fn check(bytes: &[u8]) -> Result<(), &'static str> {
    const WRONG: Result<(), &str> = Err("a numeric is none");
    if bytes.len() < 3 {
        return WRONG;
    }
    let (key, scale) = parts(bytes);
    if key_length(key) != Some(key.len()) || scale > MOST_BEHIND {
        return WRONG;
    }
    if !matches!(key[0], NEGATIVE | POSITIVE) {
        return if scale == 0 || key[0] == ZERO { Ok(()) } else { WRONG };
    }
    let (exponent, pairs) = pairs(key);
    let ends = [pairs.first(), pairs.last()];
    let digits = pairs.iter().all(|pair| *pair < 100) && ends.iter().all(|pair| pair.is_some_and(|pair| *pair > 0));
    let fits = exponent <= MOST_BEFORE as i64 / 2 && exponent >= -(i64::from(MOST_BEHIND) / 2);
    if digits && fits && least_scale(key) <= scale { Ok(()) } else { WRONG }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By value, the scale aside; NaN is above all else.
impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        let class = |value: &Decimal| match value {
            Decimal::MinusInfinity => 0,
            Decimal::Finite(_) => 1,
            Decimal::Infinity => 2,
            Decimal::NaN => 3,
        };
        match (self, other) {
            (Decimal::Finite(a), Decimal::Finite(b)) => {
                let (a, b, _) = a.aligned(b);
                a.cmp(&b)
            }
            _ => class(self).cmp(&class(other)),
        }
    }
}

#[cfg(test)]
mod tests;
