//! Column types and values, and their text forms, which are PostgreSQL's.
//!
//! 1. `parse` after `Display` gives the value back, for every value of every type.
//! 2. [`DatumRef::cmp_key`] is the order of keys and of ORDER BY: NULLs last, NaN above all numbers and equal to
//!    itself, -0 = 0, text by bytes (C collation), intervals by [`Interval::key`]. json and jsonb go by
//!    bytes too: it is not their ORDER BY's, and they have no keys.

use crate::error::{EngineError, Result};
use std::cmp::Ordering;
use std::fmt;

pub mod array;
mod bytea;
pub mod clock;
pub mod composites;
pub mod decimal;
pub mod digits;
pub mod enums;
mod from;
pub mod interval;
pub mod json;
mod number;
mod numeric;
pub mod style;
#[cfg(test)]
mod tests;
mod time;
mod timestamp;
mod zone;

pub use array::{Array, ArrayView, Dimension, Items, Shape};
pub use composites::{CompositeType, Record, RecordView};
pub use decimal::Decimal;
pub use digits::Digits;
pub use enums::EnumType;
pub use interval::Interval;
pub use numeric::{MAX_PRECISION, Numeric, divide_rounded, power_of_ten};
pub use style::Style;
pub use time::DAY_MICROS;
pub use timestamp::{
    DATES, FIRST_TIMESTAMP, civil_from_days, date_of_timestamp, days_from_civil, is_infinite, is_infinite_date,
    timestamp_of_date,
};
pub use zone::Zone;

/// A column's type. `Varchar(n)`: at most n characters, any number where n is 0. `Char(n)`: n characters, of which
/// blanks at the end are not stored and mean nothing. `Numeric`: precision and scale, `None` for plain numeric, whose
/// values each have their own ([`decimal`]). Date: days since 1970-01-01; timestamps: microseconds since then, without
/// zone or in UTC. `Enum`: see [`enums`]. `Composite`: see [`composites`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum DataType {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric(Option<(u8, u8)>),
    Text,
    Varchar(u32),
    Char(u32),
    Bytea,
    Date,
    Timestamp,
    Timestamptz,
    /// Without a zone.
    Time,
    Interval,
    Uuid,
    Json,
    Jsonb,
    Array(Items),
    Enum(EnumType),
    Composite(CompositeType),
}

/// What the catalogue says of a type that a user made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnType {
    pub oid: u32,
    /// The oid of the type of its arrays.
    pub array: u32,
    pub name: &'static str,
    /// What the catalogue calls the type of its arrays.
    pub array_name: &'static str,
}

/// An owned value.
#[derive(Clone, PartialEq, Debug)]
pub enum Datum {
    Null,
    Bool(bool),
    Int2(i16),
    Int4(i32),
    Int8(i64),
    Float4(f32),
    Float8(f64),
    Numeric(Numeric),
    /// A plain numeric, as [`Decimal::encode`] has it.
    Decimal(Box<[u8]>),
    Text(Box<str>),
    Bytea(Box<[u8]>),
    Date(i32),
    Timestamp(i64),
    Timestamptz(i64),
    /// Microseconds since midnight.
    Time(i64),
    Interval(Interval),
    Uuid(u128),
    /// JSON's text as it was written.
    Json(Box<str>),
    /// Its normal text.
    Jsonb(Box<str>),
    Array(Array),
    /// The position of its label.
    Enum(EnumType, i64),
    Record(Record),
}

/// A value within a row's bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum DatumRef<'a> {
    Null,
    Bool(bool),
    Int2(i16),
    Int4(i32),
    Int8(i64),
    Float4(f32),
    Float8(f64),
    Numeric(Numeric),
    Decimal(&'a [u8]),
    Text(&'a str),
    Bytea(&'a [u8]),
    Date(i32),
    Timestamp(i64),
    Timestamptz(i64),
    Time(i64),
    Interval(Interval),
    Uuid(u128),
    Json(&'a str),
    Jsonb(&'a str),
    Array(ArrayView<'a>),
    Enum(EnumType, i64),
    Record(RecordView<'a>),
}

/// The longest VARCHAR, as in PostgreSQL.
pub(crate) const MAX_VARCHAR: u32 = 10_485_760;

/// [`DataType::length`] of plain numeric.
const PLAIN: u32 = 1;

impl DataType {
    /// PostgreSQL's name, without length, precision, scale.
    pub fn base_name(self) -> &'static str {
        match self {
            DataType::Bool => "boolean",
            DataType::Int2 => "smallint",
            DataType::Int4 => "integer",
            DataType::Int8 => "bigint",
            DataType::Float4 => "real",
            DataType::Float8 => "double precision",
            DataType::Numeric(_) => "numeric",
            DataType::Text => "text",
            DataType::Varchar(_) => "character varying",
            DataType::Char(_) => "character",
            DataType::Bytea => "bytea",
            DataType::Date => "date",
            DataType::Timestamp => "timestamp without time zone",
            DataType::Timestamptz => "timestamp with time zone",
            DataType::Time => "time without time zone",
            DataType::Interval => "interval",
            DataType::Uuid => "uuid",
            DataType::Json => "json",
            DataType::Jsonb => "jsonb",
            DataType::Array(items) => items.array_name(),
            DataType::Enum(of) => of.name(),
            DataType::Composite(of) => of.name(),
        }
    }

    /// Whether each value of the other type is one of this type, and is stored alike.
    pub fn holds(self, other: DataType) -> bool {
        match (self, other) {
            (DataType::Text | DataType::Varchar(0), DataType::Text | DataType::Varchar(_)) => true,
            (DataType::Varchar(most), DataType::Varchar(now)) => now > 0 && now <= most,
            (DataType::Numeric(Some((digits, places))), DataType::Numeric(Some((now, now_places)))) => {
                digits >= now && places == now_places
            }
            _ => self == other,
        }
    }

    /// Whether each value of the other type that is one of this type, too, is stored alike.
    pub fn is_stored_as(self, other: DataType) -> bool {
        self.holds(other) || matches!(self, DataType::Varchar(_)) && DataType::Text.holds(other)
    }

    /// PostgreSQL's type oid: how the wire and the catalogue name a type.
    pub fn pg_oid(self) -> u32 {
        match self {
            DataType::Bool => 16,
            DataType::Bytea => 17,
            DataType::Int8 => 20,
            DataType::Int2 => 21,
            DataType::Int4 => 23,
            DataType::Text => 25,
            DataType::Json => 114,
            DataType::Float4 => 700,
            DataType::Float8 => 701,
            DataType::Char(_) => 1042,
            DataType::Varchar(_) => 1043,
            DataType::Date => 1082,
            DataType::Timestamp => 1114,
            DataType::Timestamptz => 1184,
            DataType::Time => 1083,
            DataType::Interval => 1186,
            DataType::Numeric(_) => 1700,
            DataType::Uuid => 2950,
            DataType::Jsonb => 3802,
            DataType::Array(items) => items.array_oid(),
            DataType::Enum(of) => of.def().oid,
            DataType::Composite(of) => of.def().oid,
        }
    }

    /// What the catalogue keeps beside the oid: the length, 0 for varchar without one; precision * 65536 + scale, 1 for
    /// plain numeric; of an array that of its items. (Before values had their own scale, plain numeric was
    /// numeric(38, 18), and 0: such columns are of that type. What wrote them refuses a database that has a 1.)
    pub fn length(self) -> u32 {
        match self {
            DataType::Varchar(n) | DataType::Char(n) => n,
            DataType::Numeric(Some((precision, scale))) => u32::from(precision) << 16 | u32::from(scale),
            DataType::Numeric(None) => PLAIN,
            DataType::Array(items) => items.length(),
            _ => 0,
        }
    }

    /// The type of an oid and a [`DataType::length`] (ignored where the type has none).
    pub fn from_pg_oid(oid: u32, length: u32) -> Option<DataType> {
        Some(match oid {
            16 => DataType::Bool,
            17 => DataType::Bytea,
            20 => DataType::Int8,
            21 => DataType::Int2,
            23 => DataType::Int4,
            25 => DataType::Text,
            114 => DataType::Json,
            700 => DataType::Float4,
            701 => DataType::Float8,
            1042 => DataType::Char(length),
            1043 => DataType::Varchar(length),
            1082 => DataType::Date,
            1114 => DataType::Timestamp,
            1083 => DataType::Time,
            1184 => DataType::Timestamptz,
            1186 => DataType::Interval,
            1700 if length == PLAIN => DataType::Numeric(None),
            1700 if length == 0 => DataType::Numeric(Some((38, 18))),
            1700 => {
                let (precision, scale) = (u8::try_from(length >> 16).ok()?, u8::try_from(length & 0xffff).ok()?);
                if precision > MAX_PRECISION || scale > precision {
                    return None;
                }
                DataType::Numeric(Some((precision, scale)))
            }
            2950 => DataType::Uuid,
            3802 => DataType::Jsonb,
            array => DataType::Array(Items::of_array(array, length)?),
        })
    }

    /// What the catalogue says of a type that a user made.
    pub fn own(self) -> Option<OwnType> {
        match self {
            DataType::Enum(of) => {
                let def = of.def();
                Some(OwnType { oid: def.oid, array: def.array, name: &def.name, array_name: def.name_of_arrays() })
            }
            DataType::Composite(of) => {
                let def = of.def();
                Some(OwnType { oid: def.oid, array: def.array, name: &def.name, array_name: def.name_of_arrays() })
            }
            _ => None,
        }
    }

    /// Precision and scale of a numeric that has them.
    pub fn decimal(self) -> Option<(u8, u8)> {
        match self {
            DataType::Numeric(given) => given,
            _ => None,
        }
    }

    /// Whether values are text: text, varchar, char.
    pub fn is_text(self) -> bool {
        matches!(self, DataType::Text | DataType::Varchar(_) | DataType::Char(_))
    }

    /// Whether values are of any length.
    pub(crate) fn is_variable(self) -> bool {
        use DataType::{Array, Bytea, Composite, Numeric};
        self.is_utf8() || matches!(self, Bytea | Array(_) | Numeric(None) | Composite(_))
    }

    /// The value of a type of any length.
    pub(crate) fn variable_value(self, bytes: &[u8]) -> DatumRef<'_> {
        let text = || std::str::from_utf8(bytes).expect("encoded from a str; the page's checksum was right");
        match self {
            DataType::Bytea => DatumRef::Bytea(bytes),
            DataType::Numeric(None) => DatumRef::Decimal(bytes),
            DataType::Array(items) => DatumRef::Array(ArrayView::stored(bytes, items)),
            DataType::Composite(of) => DatumRef::Record(RecordView::stored(bytes, of)),
            DataType::Json => DatumRef::Json(text()),
            DataType::Jsonb => DatumRef::Jsonb(text()),
            _ => DatumRef::Text(text()),
        }
    }

    /// Whether values are stored as texts.
    pub(crate) fn is_utf8(self) -> bool {
        self.is_text() || matches!(self, DataType::Json | DataType::Jsonb)
    }

    /// Refuses lengths, precisions and scales that the type cannot have (22023).
    pub fn check(self) -> Result<()> {
        if let DataType::Array(items) = self {
            return items.get().check();
        }
        let limits = match self {
            DataType::Varchar(n @ 1..) => Some(("varchar", n)),
            DataType::Char(n) => Some(("char", n)),
            _ => None,
        };
        let message = match (limits, self) {
            (Some((name, 0)), _) => format!("length for type {name} must be at least 1"),
            (Some((name, MAX_VARCHAR..)), _) if self.length() > MAX_VARCHAR => {
                format!("length for type {name} cannot exceed {MAX_VARCHAR}")
            }
            (_, DataType::Numeric(Some((precision, _)))) if !(1..=MAX_PRECISION).contains(&precision) => {
                format!("NUMERIC precision {precision} must be between 1 and {MAX_PRECISION}")
            }
            (_, DataType::Numeric(Some((precision, scale)))) if scale > precision => {
                format!("NUMERIC scale {scale} must be between 0 and precision {precision}")
            }
            _ => return Ok(()),
        };
        Err(EngineError::new("22023", message))
    }

    /// Reads PostgreSQL's text form. 22P02, 22007 on bad syntax, 22003, 22008 out of range, 22001 too long, 22021 a NUL
    /// in text. A timestamp with time zone that states no zone is taken as UTC.
    pub fn parse(self, text: &str) -> Result<Datum> {
        let integer = |limit: i64| number::parse_int(text, self.base_name(), limit);
        Ok(match self {
            DataType::Bool => Datum::Bool(parse_bool(text)?),
            DataType::Int2 => Datum::Int2(integer(i16::MAX.into())? as i16),
            DataType::Int4 => Datum::Int4(integer(i32::MAX.into())? as i32),
            DataType::Int8 => Datum::Int8(integer(i64::MAX)?),
            DataType::Float4 => Datum::Float4(number::parse_float4(text)?),
            DataType::Float8 => Datum::Float8(number::parse_float(text)?),
            DataType::Numeric(Some((precision, scale))) => Datum::Numeric(Numeric::parse(text, precision, scale)?),
            DataType::Numeric(None) => Datum::Decimal(Decimal::parse(text)?.encode()),
            DataType::Text => Datum::Text(check_text(text)?.into()),
            DataType::Varchar(n) => Datum::Text(fit_varchar(check_text(text)?, n)?.into()),
            DataType::Char(n) => Datum::Text(fit_char(check_text(text)?, n)?.into()),
            DataType::Bytea => Datum::Bytea(bytea::parse(text)?.into()),
            DataType::Date => Datum::Date(timestamp::parse_date(text)?),
            DataType::Timestamp => Datum::Timestamp(timestamp::parse(text)?),
            DataType::Timestamptz => Datum::Timestamptz(timestamp::parse_timestamptz(text)?),
            DataType::Time => Datum::Time(time::parse(text)?),
            DataType::Interval => Datum::Interval(Interval::parse(text, None)?),
            DataType::Uuid => Datum::Uuid(bytea::parse_uuid(text)?),
            DataType::Json => {
                json::check(check_text(text)?)?;
                Datum::Json(text.into())
            }
            DataType::Jsonb => Datum::Jsonb(json::normal(check_text(text)?)?.into()),
            DataType::Array(items) => {
                let read = |item: Option<String>| item.map_or(Ok(Datum::Null), |item| items.get().parse(&item));
                let (shape, texts) = array::read(text)?;
                let values = texts.into_iter().map(read).collect::<Result<Vec<Datum>>>()?;
                Datum::Array(Array::shaped(items, &shape, &values)?)
            }
            DataType::Enum(of) => Datum::Enum(of, of.parse(text)?),
            DataType::Composite(of) => {
                let attributes: Vec<_> = of.def().attributes().collect();
                let fields = composites::read_fields(text, attributes.len())?.into_iter().zip(attributes);
                let read = fields.map(|(text, attribute)| match text {
                    Some(text) => attribute.data_type.parse(&text),
                    None => Ok(Datum::Null),
                });
                Datum::Record(Record::new(of, &read.collect::<Result<Vec<Datum>>>()?)?)
            }
        })
    }

    /// Whether a value may stand in a column of this type (NULL always may); lengths, precision and scale included.
    pub fn admits(self, value: DatumRef<'_>) -> Result<()> {
        let same = match (self, value) {
            (_, DatumRef::Null)
            | (DataType::Bool, DatumRef::Bool(_))
            | (DataType::Int2, DatumRef::Int2(_))
            | (DataType::Int4, DatumRef::Int4(_))
            | (DataType::Int8, DatumRef::Int8(_))
            | (DataType::Float4, DatumRef::Float4(_))
            | (DataType::Float8, DatumRef::Float8(_))
            | (DataType::Bytea, DatumRef::Bytea(_))
            | (DataType::Date, DatumRef::Date(_))
            | (DataType::Timestamp, DatumRef::Timestamp(_))
            | (DataType::Timestamptz, DatumRef::Timestamptz(_))
            | (DataType::Interval, DatumRef::Interval(_))
            | (DataType::Uuid, DatumRef::Uuid(_))
            | (DataType::Json, DatumRef::Json(_))
            | (DataType::Jsonb, DatumRef::Jsonb(_))
            | (DataType::Numeric(None), DatumRef::Decimal(_)) => true,
            (DataType::Numeric(Some((precision, scale))), DatumRef::Numeric(n)) => {
                n.checked(precision)?;
                n.scale == scale
            }
            (DataType::Time, DatumRef::Time(v)) => (0..=DAY_MICROS).contains(&v),
            (DataType::Text, DatumRef::Text(s)) => {
                check_text(s)?;
                true
            }
            (DataType::Varchar(n), DatumRef::Text(s)) => {
                if check_text(s)?.len() > n as usize && n > 0 && s.chars().count() > n as usize {
                    return Err(EngineError::string_too_long(self));
                }
                true
            }
            (DataType::Array(items), DatumRef::Array(array)) => items == array.items(),
            (DataType::Enum(of), DatumRef::Enum(own, _)) => of.is_same(own),
            (DataType::Composite(of), DatumRef::Record(record)) => of.is_same(record.of()),
            // Blanks at the end would make equal values differ.
            (DataType::Char(n), DatumRef::Text(s)) => fit_char(check_text(s)?, n)?.len() == s.len(),
            _ => false,
        };
        if same { Ok(()) } else { Err(EngineError::type_mismatch(self, value)) }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Varchar(n @ 1..) => write!(f, "character varying({n})"),
            DataType::Char(n) => write!(f, "character({n})"),
            DataType::Numeric(Some((precision, scale))) => write!(f, "numeric({precision},{scale})"),
            DataType::Array(items) => write!(f, "{}[]", items.get()),
            other => f.write_str(other.base_name()),
        }
    }
}

impl Datum {
    pub fn as_ref(&self) -> DatumRef<'_> {
        match self {
            Datum::Null => DatumRef::Null,
            Datum::Bool(v) => DatumRef::Bool(*v),
            Datum::Int2(v) => DatumRef::Int2(*v),
            Datum::Int4(v) => DatumRef::Int4(*v),
            Datum::Int8(v) => DatumRef::Int8(*v),
            Datum::Float4(v) => DatumRef::Float4(*v),
            Datum::Float8(v) => DatumRef::Float8(*v),
            Datum::Numeric(v) => DatumRef::Numeric(*v),
            Datum::Decimal(v) => DatumRef::Decimal(v),
            Datum::Text(v) => DatumRef::Text(v),
            Datum::Bytea(v) => DatumRef::Bytea(v),
            Datum::Date(v) => DatumRef::Date(*v),
            Datum::Timestamp(v) => DatumRef::Timestamp(*v),
            Datum::Timestamptz(v) => DatumRef::Timestamptz(*v),
            Datum::Time(v) => DatumRef::Time(*v),
            Datum::Interval(v) => DatumRef::Interval(*v),
            Datum::Uuid(v) => DatumRef::Uuid(*v),
            Datum::Json(v) => DatumRef::Json(v),
            Datum::Jsonb(v) => DatumRef::Jsonb(v),
            Datum::Array(v) => DatumRef::Array(v.view()),
            Datum::Enum(of, v) => DatumRef::Enum(*of, *v),
            Datum::Record(v) => DatumRef::Record(v.view()),
        }
    }

    /// The bytes of a value of any length.
    pub(crate) fn variable(&self) -> &[u8] {
        match self {
            Datum::Text(s) | Datum::Json(s) | Datum::Jsonb(s) => s.as_bytes(),
            Datum::Bytea(bytes) | Datum::Decimal(bytes) => bytes,
            Datum::Array(array) => array.bytes(),
            Datum::Record(record) => record.bytes(),
            _ => &[],
        }
    }
    pub fn text(s: impl Into<Box<str>>) -> Datum {
        Datum::Text(s.into())
    }
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }
}

impl DatumRef<'_> {
    pub fn to_datum(self) -> Datum {
        match self {
            DatumRef::Null => Datum::Null,
            DatumRef::Bool(v) => Datum::Bool(v),
            DatumRef::Int2(v) => Datum::Int2(v),
            DatumRef::Int4(v) => Datum::Int4(v),
            DatumRef::Int8(v) => Datum::Int8(v),
            DatumRef::Float4(v) => Datum::Float4(v),
            DatumRef::Float8(v) => Datum::Float8(v),
            DatumRef::Numeric(v) => Datum::Numeric(v),
            DatumRef::Decimal(v) => Datum::Decimal(v.into()),
            DatumRef::Text(v) => Datum::Text(v.into()),
            DatumRef::Bytea(v) => Datum::Bytea(v.into()),
            DatumRef::Date(v) => Datum::Date(v),
            DatumRef::Timestamp(v) => Datum::Timestamp(v),
            DatumRef::Timestamptz(v) => Datum::Timestamptz(v),
            DatumRef::Time(v) => Datum::Time(v),
            DatumRef::Interval(v) => Datum::Interval(v),
            DatumRef::Uuid(v) => Datum::Uuid(v),
            DatumRef::Json(v) => Datum::Json(v.into()),
            DatumRef::Jsonb(v) => Datum::Jsonb(v.into()),
            DatumRef::Array(v) => Datum::Array(v.to_array()),
            DatumRef::Enum(of, v) => Datum::Enum(of, v),
            DatumRef::Record(v) => Datum::Record(v.to_record()),
        }
    }
    pub fn is_null(self) -> bool {
        matches!(self, DatumRef::Null)
    }

    /// Order of keys (invariant 2). Values of different types have no order: a panic, for the engine is wrong.
    pub fn cmp_key(self, other: DatumRef<'_>) -> Ordering {
        match (self, other) {
            (DatumRef::Null, DatumRef::Null) => Ordering::Equal,
            (DatumRef::Null, _) => Ordering::Greater,
            (_, DatumRef::Null) => Ordering::Less,
            (DatumRef::Bool(a), DatumRef::Bool(b)) => a.cmp(&b),
            (DatumRef::Int2(a), DatumRef::Int2(b)) => a.cmp(&b),
            (DatumRef::Int4(a), DatumRef::Int4(b)) => a.cmp(&b),
            (DatumRef::Int8(a), DatumRef::Int8(b)) => a.cmp(&b),
            (DatumRef::Numeric(a), DatumRef::Numeric(b)) => a.cmp(&b),
            (DatumRef::Decimal(a), DatumRef::Decimal(b)) => decimal::compare(a, b),
            (DatumRef::Date(a), DatumRef::Date(b)) => a.cmp(&b),
            (DatumRef::Timestamp(a), DatumRef::Timestamp(b)) => a.cmp(&b),
            (DatumRef::Timestamptz(a), DatumRef::Timestamptz(b)) => a.cmp(&b),
            (DatumRef::Time(a), DatumRef::Time(b)) => a.cmp(&b),
            (DatumRef::Interval(a), DatumRef::Interval(b)) => a.key().cmp(&b.key()),
            (DatumRef::Uuid(a), DatumRef::Uuid(b)) => a.cmp(&b),
            (DatumRef::Text(a), DatumRef::Text(b))
            | (DatumRef::Json(a), DatumRef::Json(b))
            | (DatumRef::Jsonb(a), DatumRef::Jsonb(b)) => a.as_bytes().cmp(b.as_bytes()),
            (DatumRef::Bytea(a), DatumRef::Bytea(b)) => a.cmp(b),
            (DatumRef::Float4(a), DatumRef::Float4(b)) => cmp_float(a.into(), b.into()),
            (DatumRef::Float8(a), DatumRef::Float8(b)) => cmp_float(a, b),
            (DatumRef::Array(a), DatumRef::Array(b)) => a.cmp(b),
            (DatumRef::Enum(_, a), DatumRef::Enum(_, b)) => a.cmp(&b),
            (DatumRef::Record(a), DatumRef::Record(b)) => a.cmp(b),
            (a, b) => panic!("no order between {a:?} and {b:?}"),
        }
    }
}

fn cmp_float(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a.partial_cmp(&b).expect("neither is NaN"),
    }
}

/// PostgreSQL's text form. NULL has none; it prints as `null`, as in error details.
impl fmt::Display for DatumRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatumRef::Null => f.write_str("null"),
            DatumRef::Bool(v) => f.write_str(if *v { "t" } else { "f" }),
            DatumRef::Int2(v) => write!(f, "{v}"),
            DatumRef::Int4(v) => write!(f, "{v}"),
            DatumRef::Int8(v) => write!(f, "{v}"),
            DatumRef::Float4(v) => number::write_float4(f, *v),
            DatumRef::Float8(v) => number::write_float(f, *v),
            DatumRef::Numeric(v) => v.fmt(f),
            DatumRef::Decimal(v) => Decimal::decode(v).fmt(f),
            DatumRef::Text(v) | DatumRef::Json(v) | DatumRef::Jsonb(v) => f.write_str(v),
            DatumRef::Bytea(v) => bytea::write(f, v),
            DatumRef::Date(v) => timestamp::write_date(f, *v),
            DatumRef::Timestamp(v) => timestamp::write(f, *v),
            DatumRef::Timestamptz(v) => timestamp::write_timestamptz(f, *v),
            DatumRef::Time(v) => time::write(f, *v),
            DatumRef::Interval(v) => v.fmt(f),
            DatumRef::Uuid(v) => bytea::write_uuid(f, *v),
            DatumRef::Array(v) => v.fmt(f),
            DatumRef::Enum(of, v) => f.write_str(of.shown(*v)),
            DatumRef::Record(v) => v.fmt(f),
        }
    }
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

/// Cuts trailing spaces that exceed VARCHAR(n), as an assignment does in PostgreSQL; other excess is 22001. None
/// exceeds where n is 0.
pub fn fit_varchar(text: &str, n: u32) -> Result<&str> {
    match text.char_indices().nth(n as usize) {
        _ if n == 0 => Ok(text),
        None => Ok(text),
        Some((end, _)) if text[end..].bytes().all(|b| b == b' ') => Ok(&text[..end]),
        Some(_) => Err(EngineError::string_too_long(DataType::Varchar(n))),
    }
}

/// CHAR(n)'s stored form: without blanks at the end. 22001 where more than n characters are left, which nothing exceeds
/// where n is 0.
pub fn fit_char(text: &str, n: u32) -> Result<&str> {
    let stored = text.trim_end_matches(' ');
    if n > 0 && stored.len() > n as usize && stored.chars().count() > n as usize {
        return Err(EngineError::string_too_long(DataType::Char(n)));
    }
    Ok(stored)
}

fn check_text(text: &str) -> Result<&str> {
    if text.as_bytes().contains(&0) {
        return Err(EngineError::new("22021", "invalid byte sequence for encoding \"UTF8\": 0x00"));
    }
    Ok(text)
}

fn parse_bool(text: &str) -> Result<bool> {
    let word = trim(text).to_ascii_lowercase();
    let prefix_of = |full: &str, least: usize| word.len() >= least && full.starts_with(&word);
    if prefix_of("true", 1) || prefix_of("yes", 1) || word == "on" || word == "1" {
        Ok(true)
    } else if prefix_of("false", 1) || prefix_of("no", 1) || prefix_of("off", 2) || word == "0" {
        Ok(false)
    } else {
        Err(EngineError::invalid_text("boolean", text))
    }
}

/// Without the whitespace that PostgreSQL's input functions skip at both ends.
fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c'])
}
