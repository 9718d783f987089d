//! PostgreSQL's casts, value by value.
//!
//! 1. Rounding: a float to an integer to the nearest, ties to even; a numeric ties away from zero.
//! 2. What leaves the target's range is 22003. An explicit cast cuts text to varchar(n) and char(n); an assignment
//!    refuses all but blanks (22001).
//! 3. A timestamp with time zone becomes one without, a date, and a time, as clocks show it in the session's zone; and
//!    the other way round.
//!
//! Source: PostgreSQL 15 documentation, "Type Conversion", and pg_cast.
use terrace_engine::types::json::{self, Kind};
use terrace_engine::types::{
    Array, DAY_MICROS, Decimal, Interval, Items, Numeric, Zone, date_of_timestamp, fit_char, fit_varchar, is_infinite,
    timestamp_of_date,
};
use terrace_engine::{DataType, Datum, DatumRef, EngineError, Result};

/// How a value of one type may become one of another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Castable {
    Never,
    /// Only where a cast is written.
    Explicitly,
    /// Also where a value is stored in a column.
    ByAssignment,
}

fn is_number(t: DataType) -> bool {
    use DataType::*;
    matches!(t, Int2 | Int4 | Int8 | Float4 | Float8 | Numeric(_))
}

fn is_time(t: DataType) -> bool {
    matches!(t, DataType::Date | DataType::Timestamp | DataType::Timestamptz)
}

pub(crate) fn castable(from: DataType, to: DataType) -> Castable {
    match (from, to) {
        // An enum may have been altered since the value was read.
        (DataType::Enum(from), DataType::Enum(to)) if from.is_same(to) => Castable::ByAssignment,
        (DataType::Composite(from), DataType::Composite(to)) => match from.is_same(to) {
            true => Castable::ByAssignment,
            false => Castable::Never,
        },
        _ if from.base_name() == to.base_name() => Castable::ByAssignment,
        _ if is_number(from) && is_number(to) => Castable::ByAssignment,
        _ if is_time(from) && is_time(to) => Castable::ByAssignment,
        (DataType::Array(from), DataType::Array(to)) => castable(from.get(), to.get()),
        _ if to.is_text() => Castable::ByAssignment,
        _ if from.is_text() => Castable::Explicitly,
        (DataType::Json, DataType::Jsonb) | (DataType::Jsonb, DataType::Json) => Castable::ByAssignment,
        (DataType::Jsonb, _) if is_number(to) || to == DataType::Bool => Castable::Explicitly,
        (DataType::Timestamp | DataType::Timestamptz | DataType::Interval, DataType::Time) => Castable::ByAssignment,
        (DataType::Time, DataType::Interval) => Castable::ByAssignment,
        (DataType::Bool, DataType::Int4) | (DataType::Int4, DataType::Bool) => Castable::Explicitly,
        _ => Castable::Never,
    }
}

/// 42846, as PostgreSQL words it.
pub(crate) fn cannot_cast(from: DataType, to: DataType) -> EngineError {
    EngineError::new("42846", format!("cannot cast type {} to {}", from.base_name(), to.base_name()))
}

/// Converts a value. `explicit`: a cast was written (invariant 2).
pub(crate) fn cast_datum(datum: Datum, to: DataType, explicit: bool) -> Result<Datum> {
    Ok(match (datum, to) {
        (Datum::Null, _) => Datum::Null,
        (Datum::Enum(from, position), DataType::Enum(to)) if from.is_same(to) => Datum::Enum(to, position),
        (Datum::Record(record), DataType::Composite(to)) if record.view().of().is_same(to) => {
            Datum::Record(record.renewed(to))
        }
        (Datum::Array(array), DataType::Array(items)) => cast_items(array, items, explicit)?,
        (Datum::Text(text), _) if to.is_text() => Datum::Text(limit(&text, to, explicit)?.into()),
        (Datum::Text(text), DataType::Array(items)) if explicit && items.get().is_text() => {
            let texts = DataType::Text.array().expect("a text is no array");
            cast_datum(texts.parse(&text)?, to, true)?
        }
        (Datum::Text(text), _) => to.parse(&text)?,
        (Datum::Json(text), DataType::Jsonb) => DataType::Jsonb.parse(&text)?,
        (Datum::Jsonb(text), DataType::Json) => Datum::Json(text),
        (Datum::Jsonb(text), _) if is_number(to) || to == DataType::Bool => of_json(&text, to)?,
        (Datum::Bool(v), _) if to.is_text() => cast_datum(Datum::text(if v { "true" } else { "false" }), to, explicit)?,
        (Datum::Numeric(v), DataType::Numeric(_)) => number_to(Number::Exact(v), to)?,
        (Datum::Decimal(v), DataType::Numeric(None)) => Datum::Decimal(v),
        (v, _) if to.is_text() => cast_datum(Datum::text(v.to_string()), to, explicit)?,
        (Datum::Bool(v), DataType::Int4) if explicit => Datum::Int4(v.into()),
        (Datum::Int4(v), DataType::Bool) if explicit => Datum::Bool(v != 0),
        (Datum::Int2(v), _) if is_number(to) => number_to(Number::Integer(v.into()), to)?,
        (Datum::Int4(v), _) if is_number(to) => number_to(Number::Integer(v.into()), to)?,
        (Datum::Int8(v), _) if is_number(to) => number_to(Number::Integer(v), to)?,
        (Datum::Float4(v), DataType::Float4) => Datum::Float4(v),
        (Datum::Float4(v), DataType::Numeric(_)) => float_to_numeric(v.into(), true, to)?,
        (Datum::Float4(v), _) if is_number(to) => number_to(Number::Float(v.into()), to)?,
        (Datum::Float8(v), DataType::Numeric(_)) => float_to_numeric(v, false, to)?,
        (Datum::Float8(v), _) if is_number(to) => number_to(Number::Float(v), to)?,
        (Datum::Numeric(v), _) if is_number(to) => number_to(Number::Exact(v), to)?,
        (Datum::Decimal(v), _) if is_number(to) => decimal_to(&Decimal::decode(&v), to)?,
        (Datum::Date(v), DataType::Timestamp) => Datum::Timestamp(timestamp_of_date(v)?),
        (Datum::Date(v), DataType::Timestamptz) => Datum::Timestamptz(moment(timestamp_of_date(v)?)?),
        (Datum::Timestamp(v), DataType::Timestamptz) => Datum::Timestamptz(moment(v)?),
        (Datum::Timestamptz(v), DataType::Timestamp) => Datum::Timestamp(Zone::current().local(v)),
        (Datum::Timestamp(v), DataType::Date) => Datum::Date(date_of_timestamp(v)),
        (Datum::Timestamptz(v), DataType::Date) => Datum::Date(date_of_timestamp(Zone::current().local(v))),
        // It has no time of day.
        (Datum::Timestamp(v) | Datum::Timestamptz(v), DataType::Time) if is_infinite(v) => Datum::Null,
        (Datum::Timestamp(v), DataType::Time) => Datum::Time(v.rem_euclid(DAY_MICROS)),
        (Datum::Timestamptz(v), DataType::Time) => Datum::Time(Zone::current().local(v).rem_euclid(DAY_MICROS)),
        (Datum::Interval(v), DataType::Time) => Datum::Time(v.micros().rem_euclid(DAY_MICROS)),
        (Datum::Time(v), DataType::Interval) => Datum::Interval(Interval::new(0, 0, v)),
        (v, _) => {
            to.admits(v.as_ref())?;
            v
        }
    })
}

/// Converts each item of an array.
fn cast_items(array: Array, to: Items, explicit: bool) -> Result<Datum> {
    let from = array.view().items();
    if from == to {
        return Ok(Datum::Array(array));
    }
    let item = |item: DatumRef<'_>| cast_datum(item.to_datum(), to.get(), explicit);
    Ok(Datum::Array(array.view().map(to, item)?))
}

/// A number or a boolean of a jsonb.
fn of_json(text: &str, to: DataType) -> Result<Datum> {
    let wanted = if to == DataType::Bool { Kind::Bool } else { Kind::Number };
    match json::kind(text) {
        found if found != wanted => {
            let message = format!("cannot cast jsonb {} to type {}", found.name(), to.base_name());
            Err(EngineError::new("22023", message))
        }
        // A whole number may be written with a fraction.
        Kind::Number if matches!(to, DataType::Int2 | DataType::Int4 | DataType::Int8) => {
            cast_datum(DataType::Numeric(None).parse(text)?, to, true)
        }
        _ => to.parse(text),
    }
}

/// When clocks of the session show this (invariant 3).
fn moment(local: i64) -> Result<i64> {
    Zone::current().utc(local).ok_or_else(|| EngineError::new("22008", "timestamp out of range"))
}

/// Text within varchar(n) or char(n).
fn limit(text: &str, to: DataType, explicit: bool) -> Result<&str> {
    debug_assert!(to.is_text(), "{to:?} has no length");
    let cut = |n: u32| match text.char_indices().nth(n as usize) {
        Some((end, _)) if explicit => &text[..end],
        _ => text,
    };
    match to {
        LOOSE => Ok(text.trim_end_matches(' ')),
        DataType::Varchar(n @ 1..) => fit_varchar(cut(n), n),
        DataType::Char(n) => fit_char(cut(n), n),
        _ => Ok(text),
    }
}

enum Number {
    Integer(i64),
    Float(f64),
    Exact(Numeric),
}

fn number_to(value: Number, to: DataType) -> Result<Datum> {
    let out_of_range = || EngineError::out_of_range(to.base_name());
    Ok(match to {
        DataType::Int2 | DataType::Int4 | DataType::Int8 => {
            let whole = match value {
                Number::Integer(v) => v.into(),
                Number::Exact(v) => v.to_int(),
                // Beyond 2^63 in either direction no integer type holds it; NaN fails the comparison.
                Number::Float(v) if v.abs() < 1e19 => v.round_ties_even() as i128,
                Number::Float(_) => return Err(out_of_range()),
            };
            match to {
                DataType::Int2 => Datum::Int2(i16::try_from(whole).map_err(|_| out_of_range())?),
                DataType::Int4 => Datum::Int4(i32::try_from(whole).map_err(|_| out_of_range())?),
                _ => Datum::Int8(i64::try_from(whole).map_err(|_| out_of_range())?),
            }
        }
        DataType::Float4 => {
            let wide = match value {
                Number::Integer(v) => return Ok(Datum::Float4(v as f32)),
                Number::Exact(v) => v.to_f64(),
                Number::Float(v) => v,
            };
            let narrow = wide as f32;
            if (narrow.is_infinite() && wide.is_finite()) || (narrow == 0.0 && wide != 0.0) {
                return Err(out_of_range());
            }
            Datum::Float4(narrow)
        }
        DataType::Float8 => Datum::Float8(match value {
            Number::Integer(v) => v as f64,
            Number::Exact(v) => v.to_f64(),
            Number::Float(v) => v,
        }),
        _ => {
            let exact = match value {
                Number::Integer(v) => Numeric::from_int(v),
                Number::Exact(v) => v,
                Number::Float(_) => return Err(EngineError::internal("floats become numeric through decimals")),
            };
            match to.decimal() {
                Some((precision, scale)) => Datum::Numeric(exact.rescale(precision, scale)?),
                None => Datum::Decimal(Decimal::from(exact).encode()),
            }
        }
    })
}

/// A plain numeric as another number.
fn decimal_to(value: &Decimal, to: DataType) -> Result<Datum> {
    let name = to.base_name();
    let out_of_range = || EngineError::out_of_range(name);
    let float = || {
        let double = value.to_f64();
        let vanishes = double == 0.0 && !value.is_zero();
        if vanishes || double.is_infinite() && value.is_finite() {
            return Err(EngineError::new("22003", format!("\"{value}\" is out of range for type {name}")));
        }
        Ok(double)
    };
    Ok(match to {
        DataType::Int2 | DataType::Int4 | DataType::Int8 => {
            let whole = value.to_int(name)?.and_then(|whole| i64::try_from(whole).ok()).ok_or_else(out_of_range)?;
            number_to(Number::Integer(whole), to)?
        }
        DataType::Float4 | DataType::Float8 => number_to(Number::Float(float()?), to)?,
        DataType::Numeric(Some((precision, scale))) => Datum::Numeric(value.to_numeric(precision, scale)?),
        _ => Datum::Decimal(value.encode()),
    })
}

/// As many digits as PostgreSQL takes over: 15 of a double, and 6 of a real.
fn float_to_numeric(value: f64, single: bool, to: DataType) -> Result<Datum> {
    decimal_to(&Decimal::from_float(value, single)?, to)
}

/// A char whose blanks are not known (invariant 2). No column has this type; a parameter may.
pub const LOOSE: DataType = DataType::Char(0);
