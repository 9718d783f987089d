//! Digits that the values of a column keep, where its type alone does not say so.
//!
//! `numeric(p, s)` is `DataType::Numeric` with both where 128 bits hold its values: these are stored as integers. Other
//! numerics (of more than 38 digits, of a scale below zero or above the precision) are stored as plain ones.
//!
//! Source: PostgreSQL 15 documentation, "Numeric Types" (8.1), "Date/Time Types" (8.5).
use super::decimal::Decimal;
use super::interval::rounded_datum;
use super::{DataType, Datum};
use crate::error::{EngineError, Result};

#[cfg(test)]
mod tests;

/// PostgreSQL's limits of a numeric's digits, and of its scale, below zero and above.
const MOST_DIGITS: i64 = 1000;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Digits {
    /// Of a second, 0 to 6: of timestamps, times and intervals.
    Second(u8),
    /// Of a plain numeric: how many, 1 to 1000, and how many behind the point, -1000 to 1000.
    Numeric { precision: u16, scale: i16 },
}

/// What `numeric(precision, scale)` says: its type and, where that does not, the digits. 22023 beyond PostgreSQL's
/// limits.
pub fn numeric_of(precision: i64, scale: i64) -> Result<(DataType, Option<Digits>)> {
    let outside = |what: &str, value: i64, least: i64| {
        let message = format!("NUMERIC {what} {value} must be between {least} and {MOST_DIGITS}");
        EngineError::new("22023", message)
    };
    if !(1..=MOST_DIGITS).contains(&precision) {
        return Err(outside("precision", precision, 1));
    }
    if !(-MOST_DIGITS..=MOST_DIGITS).contains(&scale) {
        return Err(outside("scale", scale, -MOST_DIGITS));
    }
    if precision <= super::MAX_PRECISION.into() && (0..=precision).contains(&scale) {
        return Ok((DataType::Numeric(Some((precision as u8, scale as u8))), None));
    }
    let digits = Digits::Numeric { precision: precision as u16, scale: scale as i16 };
    Ok((DataType::Numeric(None), Some(digits)))
}

/// The lower bits of a modifier, which have the scale.
const SCALE_BITS: i32 = 0x7ff;
/// The least modifier of a numeric.
const NUMERICS: i32 = 1 << 16;

impl Digits {
    /// How the catalogue's rows have it (*format*): a second's digits, or PostgreSQL's modifier of a numeric.
    pub fn number(self) -> i32 {
        match self {
            Digits::Second(digits) => digits.into(),
            Digits::Numeric { precision, scale } => (i32::from(precision) << 16 | i32::from(scale) & SCALE_BITS) + 4,
        }
    }

    /// The same back; `None`: it makes no sense.
    pub fn of_number(number: i32) -> Option<Digits> {
        match number {
            0..=6 => Some(Digits::Second(number as u8)),
            NUMERICS.. => {
                let (bits, precision) = ((number - 4) & SCALE_BITS, (number - 4) >> 16);
                let scale = if bits > SCALE_BITS / 2 { bits - SCALE_BITS - 1 } else { bits };
                numeric_of(precision.into(), scale.into()).ok()?;
                Some(Digits::Numeric { precision: precision as u16, scale: scale as i16 })
            }
            _ => None,
        }
    }

    /// A value with these digits, rounded. 22003 of a numeric that has more in front of the point.
    pub fn keep(self, value: Datum) -> Result<Datum> {
        match (self, value) {
            (Digits::Second(digits), value) => Ok(rounded_datum(value, digits)),
            (Digits::Numeric { precision, scale }, Datum::Decimal(value)) => {
                Ok(Datum::Decimal(Decimal::decode(&value).limited(precision, scale)?.encode()))
            }
            (_, value) => Ok(value),
        }
    }
}
