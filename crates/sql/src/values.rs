//! Values between the engine and Arrow, and assignment of a value to a column.
//!
//! 1. Where Arrow's type does not tell PostgreSQL's (varchar, char), or not its modifier, the field's metadata does.
//! 2. Decimal128 is numeric(p, s). Plain numeric, whose values have a scale each, is in [`decimal`].
//! 3. Arrow has no JSON. Its BinaryView is json, and its LargeBinary is jsonb. Nothing else is of these types here: so
//!    no function takes the one for the other, or for a text.
//! 4. Arrays are in [`arrays`]. What their items' type does not tell (varchar, char), the array's own field does, and
//!    not the field of the items: arrays of one Arrow type are of one type for DataFusion, too.
//! 5. Arrow has no enums. A timestamp in seconds, in a zone, is one: the zone stands for the number of the type's
//!    definition, and the seconds are a label's position. So enums of one type are compared as numbers are, and those
//!    of two are of two types. (What writes a plan as text reads the zone, so it has a zone's form.) No time is in
//!    seconds. What is about times asks [`is_timestamp`].
//! 6. Arrow's structs are rows. Those of a composite type, and rows of no type, are in [`rows`].
use crate::cast::{Castable, LOOSE, cast_datum, castable};
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray, BinaryBuilder, BinaryViewBuilder, BooleanBuilder, Date32Builder, Decimal128Builder,
    FixedSizeBinaryBuilder, Float32Builder, Float64Builder, Int16Builder, Int32Builder, Int64Builder,
    IntervalMonthDayNanoBuilder, LargeBinaryBuilder, StringBuilder, Time64MicrosecondBuilder,
    TimestampMicrosecondBuilder, TimestampSecondBuilder,
};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Field, FieldRef, IntervalMonthDayNano, IntervalUnit, Schema, SchemaRef, TimeUnit,
};
use datafusion::common::ScalarValue;
use std::sync::Arc;
use terrace_engine::types::{Array, ArrayView, Decimal, EnumType, Interval, Items, MAX_PRECISION, Numeric, Shape};
use terrace_engine::{ColumnDef, DataType, Datum, DatumRef, EngineError, Result, Table};

pub(crate) mod arrays;
pub(crate) mod decimal;
pub(crate) mod rows;

/// The zone of timestamps with time zone.
pub(crate) const UTC: &str = "+00:00";

/// What Arrow calls nanoseconds are microseconds here: else an interval would end at 2,562,047 hours. No function of
/// DataFusion's computes with these values.
pub(crate) const INTERVAL: ArrowType = ArrowType::Interval(IntervalUnit::MonthDayNano);

/// Arrow's form of an interval.
pub(crate) fn arrow_interval(v: Interval) -> IntervalMonthDayNano {
    IntervalMonthDayNano { months: v.months(), days: v.days(), nanoseconds: v.micros() }
}

/// The interval of Arrow's form.
pub fn interval_of(v: IntervalMonthDayNano) -> Interval {
    Interval::new(v.months, v.days, v.nanoseconds)
}

pub fn arrow_type(data_type: DataType) -> ArrowType {
    match data_type {
        DataType::Bool => ArrowType::Boolean,
        DataType::Int2 => ArrowType::Int16,
        DataType::Int4 => ArrowType::Int32,
        DataType::Int8 => ArrowType::Int64,
        DataType::Float4 => ArrowType::Float32,
        DataType::Float8 => ArrowType::Float64,
        DataType::Numeric(Some((precision, scale))) => ArrowType::Decimal128(precision, scale as i8),
        DataType::Numeric(None) => decimal::arrow_type(),
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) => ArrowType::Utf8,
        DataType::Bytea => ArrowType::Binary,
        DataType::Date => ArrowType::Date32,
        DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamptz => ArrowType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        DataType::Time => ArrowType::Time64(TimeUnit::Microsecond),
        DataType::Interval => INTERVAL,
        DataType::Uuid => ArrowType::FixedSizeBinary(16),
        DataType::Json => ArrowType::BinaryView,
        DataType::Jsonb => ArrowType::LargeBinary,
        DataType::Array(items) => arrays::type_of(arrow_type(items.get())),
        DataType::Enum(of) => ArrowType::Timestamp(TimeUnit::Second, Some(enum_zone(of).into())),
        DataType::Composite(of) => rows::arrow_type(of),
    }
}

/// Numbers that one form of a zone has: `+00:00` to `+23:59`, of hours with a hundred minutes.
const ZONES: u32 = 2_360;

fn enum_zone(of: EnumType) -> String {
    zone_of(of.number())
}

fn zone_of(number: u32) -> String {
    assert!(number < 4 * ZONES, "EnumType::MOST");
    let sign = if (number / ZONES).is_multiple_of(2) { '+' } else { '-' };
    let colon = if number / (2 * ZONES) == 0 { ":" } else { "" };
    let (hours, minutes) = (number % ZONES / 100, number % ZONES % 100);
    format!("{sign}{hours:02}{colon}{minutes:02}")
}

/// The number that a zone stands for.
fn enum_number(zone: &str) -> Option<u32> {
    let (sign, rest) = zone.split_at_checked(1)?;
    let (digits, form) = match rest.split_once(':') {
        Some((hours, minutes)) => (format!("{hours}{minutes}"), 0),
        None => (rest.to_owned(), 2),
    };
    let within = digits.parse::<u32>().ok().filter(|within| *within < ZONES && digits.len() == 4)?;
    Some((form + u32::from(sign == "-")) * ZONES + within)
}

/// The enum type that an Arrow type stands for (invariant 5).
pub fn enum_of(arrow: &ArrowType) -> Option<EnumType> {
    match arrow {
        ArrowType::Timestamp(TimeUnit::Second, Some(zone)) => EnumType::from_number(enum_number(zone)?),
        _ => None,
    }
}

/// Whether it is a timestamp, with or without a zone.
pub(crate) fn is_timestamp(arrow: &ArrowType) -> bool {
    matches!(arrow, ArrowType::Timestamp(..)) && enum_of(arrow).is_none()
}

/// Whether it is a timestamp with a zone.
pub(crate) fn is_zoned(arrow: &ArrowType) -> bool {
    matches!(arrow, ArrowType::Timestamp(_, Some(_))) && enum_of(arrow).is_none()
}

/// The type that a parameter or a result of this Arrow type has for a client.
pub fn engine_type(arrow: &ArrowType) -> Option<DataType> {
    Some(match arrow {
        ArrowType::Boolean => DataType::Bool,
        ArrowType::Int8 | ArrowType::Int16 | ArrowType::UInt8 => DataType::Int2,
        ArrowType::Int32 | ArrowType::UInt16 => DataType::Int4,
        ArrowType::Int64 | ArrowType::UInt32 | ArrowType::UInt64 => DataType::Int8,
        ArrowType::Float32 => DataType::Float4,
        ArrowType::Float64 => DataType::Float8,
        of if decimal::is_decimal(of) => DataType::Numeric(None),
        ArrowType::Decimal128(precision, scale @ 0..) => DataType::Numeric(Some((*precision, *scale as u8))),
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View | ArrowType::Null => DataType::Text,
        ArrowType::Binary => DataType::Bytea,
        ArrowType::BinaryView => DataType::Json,
        ArrowType::LargeBinary => DataType::Jsonb,
        ArrowType::Date32 => DataType::Date,
        ArrowType::Timestamp(_, None) => DataType::Timestamp,
        ArrowType::Timestamp(_, Some(_)) => enum_of(arrow).map_or(DataType::Timestamptz, DataType::Enum),
        ArrowType::Time64(TimeUnit::Microsecond) => DataType::Time,
        ArrowType::Interval(IntervalUnit::MonthDayNano) => DataType::Interval,
        ArrowType::FixedSizeBinary(16) => DataType::Uuid,
        of if let Some(item) = arrays::items_of(of) => {
            let of = engine_type(item.data_type()).filter(|of| arrow_type(*of) == *item.data_type());
            DataType::Array(Items::of(of?)?)
        }
        ArrowType::Struct(fields) => DataType::Composite(rows::type_of(fields)?),
        _ => return None,
    })
}

/// The type of a field (invariant 1).
pub(crate) fn field_type(field: &Field) -> Option<DataType> {
    let plain = engine_type(field.data_type())?;
    let texts = DataType::Text.array() == Some(plain);
    let length = || field.metadata().get(PG_TYPMOD)?.parse::<u32>().ok()?.checked_sub(4);
    Some(match (plain, field.metadata().get(PG_TYPE).map(String::as_str)) {
        (DataType::Text, Some("varchar")) => DataType::Varchar(length().unwrap_or(0)),
        (DataType::Text, Some("bpchar")) => length().map_or(LOOSE, DataType::Char),
        (_, Some("_varchar")) if texts => DataType::Varchar(length().unwrap_or(0)).array()?,
        (_, Some("_bpchar")) if texts => length().map_or(LOOSE, DataType::Char).array()?,
        _ => plain,
    })
}

/// What a parameter that the client left open is beside values of a type: numerics and texts have no limits then.
pub(crate) fn open_beside(of: DataType) -> DataType {
    match of {
        DataType::Numeric(_) => DataType::Numeric(None),
        DataType::Char(_) => LOOSE,
        text if text.is_text() => DataType::Text,
        other => other,
    }
}

/// The type of a parameter with this field.
pub(crate) fn parameter_type(field: &Field) -> Option<DataType> {
    match field_type(field)? {
        char if char == LOOSE || Some(char) == LOOSE.array() => Some(char),
        DataType::Numeric(_) => Some(DataType::Numeric(None)),
        _ => engine_type(field.data_type()),
    }
}

/// A field of one of the engine's types (invariant 1).
pub(crate) fn field_of(name: &str, data_type: DataType, nullable: bool) -> Field {
    let name_of_type = match data_type {
        DataType::Varchar(_) => Some((PG_TYPE.to_owned(), "varchar".to_owned())),
        DataType::Char(_) => Some((PG_TYPE.to_owned(), "bpchar".to_owned())),
        _ => match data_type.item() {
            Some(DataType::Varchar(_)) => Some((PG_TYPE.to_owned(), "_varchar".to_owned())),
            Some(DataType::Char(_)) => Some((PG_TYPE.to_owned(), "_bpchar".to_owned())),
            _ => None,
        },
    };
    let single = data_type.item().unwrap_or(data_type);
    let modifier =
        (typmod(data_type) >= 0 && single != LOOSE).then(|| (PG_TYPMOD.to_owned(), typmod(data_type).to_string()));
    let metadata = name_of_type.into_iter().chain(modifier).collect();
    let field = Field::new(name, arrow_type(data_type), nullable).with_metadata(metadata);
    debug_assert_eq!(field_type(&field), Some(data_type), "invariant 1");
    field
}

/// The columns a user sees, with their positions in the row.
pub(crate) fn live_columns(table: &Table) -> impl Iterator<Item = (usize, &ColumnDef)> {
    table.columns.iter().enumerate().filter(|(_, c)| !c.dropped)
}

pub(crate) fn table_schema(table: &Table) -> SchemaRef {
    let fields: Vec<Field> = live_columns(table).map(|(_, c)| field_of(&c.name, c.data_type, !c.not_null)).collect();
    Arc::new(Schema::new(fields))
}

/// A column of a batch as it grows.
pub(crate) enum ColumnBuilder {
    Bool(BooleanBuilder),
    Int2(Int16Builder),
    Int4(Int32Builder),
    Int8(Int64Builder),
    Float4(Float32Builder),
    Float8(Float64Builder),
    /// With its scale.
    Numeric(Decimal128Builder, u8),
    Decimal(LargeBinaryBuilder),
    Text(StringBuilder),
    Bytea(BinaryBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
    Timestamptz(TimestampMicrosecondBuilder),
    Time(Time64MicrosecondBuilder),
    Interval(IntervalMonthDayNanoBuilder),
    Uuid(FixedSizeBinaryBuilder),
    Json(BinaryViewBuilder),
    Jsonb(LargeBinaryBuilder),
    Array(Box<ArrayBuilder>),
    Enum(TimestampSecondBuilder),
    Record(Box<rows::RowBuilder>),
}

/// A column of arrays.
pub(crate) struct ArrayBuilder {
    values: ColumnBuilder,
    shapes: Vec<Option<Shape>>,
}

impl ArrayBuilder {
    fn push(&mut self, array: Option<ArrayView<'_>>) {
        self.shapes.push(array.map(ArrayView::shape));
        if let Some(array) = array {
            array.iter().for_each(|item| self.values.push(item));
        }
    }

    fn finish(self) -> ArrayRef {
        arrays::made(self.values.finish(), self.shapes)
    }
}

impl ColumnBuilder {
    pub(crate) fn new(data_type: DataType, rows: usize) -> ColumnBuilder {
        let timestamps = || TimestampMicrosecondBuilder::with_capacity(rows);
        match data_type {
            DataType::Bool => ColumnBuilder::Bool(BooleanBuilder::with_capacity(rows)),
            DataType::Int2 => ColumnBuilder::Int2(Int16Builder::with_capacity(rows)),
            DataType::Int4 => ColumnBuilder::Int4(Int32Builder::with_capacity(rows)),
            DataType::Int8 => ColumnBuilder::Int8(Int64Builder::with_capacity(rows)),
            DataType::Float4 => ColumnBuilder::Float4(Float32Builder::with_capacity(rows)),
            DataType::Float8 => ColumnBuilder::Float8(Float64Builder::with_capacity(rows)),
            DataType::Numeric(Some((_, scale))) => {
                let builder = Decimal128Builder::with_capacity(rows).with_data_type(arrow_type(data_type));
                ColumnBuilder::Numeric(builder, scale)
            }
            DataType::Numeric(None) => ColumnBuilder::Decimal(LargeBinaryBuilder::with_capacity(rows, rows * 16)),
            DataType::Text | DataType::Varchar(_) | DataType::Char(_) => {
                ColumnBuilder::Text(StringBuilder::with_capacity(rows, rows * 16))
            }
            DataType::Bytea => ColumnBuilder::Bytea(BinaryBuilder::with_capacity(rows, rows * 16)),
            DataType::Date => ColumnBuilder::Date(Date32Builder::with_capacity(rows)),
            DataType::Timestamp => ColumnBuilder::Timestamp(timestamps()),
            DataType::Timestamptz => ColumnBuilder::Timestamptz(timestamps().with_timezone(UTC)),
            DataType::Time => ColumnBuilder::Time(Time64MicrosecondBuilder::with_capacity(rows)),
            DataType::Interval => ColumnBuilder::Interval(IntervalMonthDayNanoBuilder::with_capacity(rows)),
            DataType::Uuid => ColumnBuilder::Uuid(FixedSizeBinaryBuilder::with_capacity(rows, 16)),
            DataType::Json => ColumnBuilder::Json(BinaryViewBuilder::with_capacity(rows)),
            DataType::Jsonb => ColumnBuilder::Jsonb(LargeBinaryBuilder::with_capacity(rows, rows * 16)),
            DataType::Array(items) => {
                let values = ColumnBuilder::new(items.get(), rows);
                ColumnBuilder::Array(Box::new(ArrayBuilder { values, shapes: vec![] }))
            }
            DataType::Enum(of) => {
                let builder = TimestampSecondBuilder::with_capacity(rows).with_timezone(enum_zone(of));
                ColumnBuilder::Enum(builder)
            }
            DataType::Composite(of) => ColumnBuilder::Record(Box::new(rows::RowBuilder::new(of, rows))),
        }
    }

    /// Panics where the value is not of the column's type: the engine checked that when it stored the row.
    pub(crate) fn push(&mut self, value: DatumRef<'_>) {
        match (self, value) {
            (ColumnBuilder::Bool(b), DatumRef::Bool(v)) => b.append_value(v),
            (ColumnBuilder::Int2(b), DatumRef::Int2(v)) => b.append_value(v),
            (ColumnBuilder::Int4(b), DatumRef::Int4(v)) => b.append_value(v),
            (ColumnBuilder::Int8(b), DatumRef::Int8(v)) => b.append_value(v),
            (ColumnBuilder::Float4(b), DatumRef::Float4(v)) => b.append_value(v),
            (ColumnBuilder::Float8(b), DatumRef::Float8(v)) => b.append_value(v),
            (ColumnBuilder::Decimal(b), DatumRef::Decimal(v)) => b.append_value(v),
            (ColumnBuilder::Numeric(b, scale), DatumRef::Numeric(v)) => {
                assert_eq!(v.scale, *scale, "a column's values have its scale");
                b.append_value(v.unscaled);
            }
            (ColumnBuilder::Text(b), DatumRef::Text(v)) => b.append_value(v),
            (ColumnBuilder::Bytea(b), DatumRef::Bytea(v)) => b.append_value(v),
            (ColumnBuilder::Date(b), DatumRef::Date(v)) => b.append_value(v),
            (ColumnBuilder::Timestamp(b), DatumRef::Timestamp(v)) => b.append_value(v),
            (ColumnBuilder::Timestamptz(b), DatumRef::Timestamptz(v)) => b.append_value(v),
            (ColumnBuilder::Time(b), DatumRef::Time(v)) => b.append_value(v),
            (ColumnBuilder::Interval(b), DatumRef::Interval(v)) => b.append_value(arrow_interval(v)),
            (ColumnBuilder::Uuid(b), DatumRef::Uuid(v)) => b.append_value(v.to_be_bytes()).expect("16 bytes"),
            (ColumnBuilder::Json(b), DatumRef::Json(v)) => b.append_value(v),
            (ColumnBuilder::Jsonb(b), DatumRef::Jsonb(v)) => b.append_value(v),
            (ColumnBuilder::Array(b), DatumRef::Array(v)) => b.push(Some(v)),
            (ColumnBuilder::Enum(b), DatumRef::Enum(_, v)) => b.append_value(v),
            (ColumnBuilder::Record(b), DatumRef::Record(v)) => b.push(Some(v)),
            (ColumnBuilder::Bool(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Int2(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Int4(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Int8(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Float4(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Float8(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Numeric(b, _), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Decimal(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Text(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Bytea(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Date(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Timestamp(b) | ColumnBuilder::Timestamptz(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Time(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Interval(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Uuid(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Json(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Jsonb(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Array(b), DatumRef::Null) => b.push(None),
            (ColumnBuilder::Enum(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Record(b), DatumRef::Null) => b.push(None),
            (_, value) => panic!("stored value {value:?} is not of its column's type"),
        }
    }

    pub(crate) fn finish(self) -> ArrayRef {
        match self {
            ColumnBuilder::Bool(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Int2(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Int4(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Int8(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Float4(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Float8(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Numeric(mut b, _) => Arc::new(b.finish()),
            ColumnBuilder::Decimal(mut b) => decimal::array_of(b.finish()),
            ColumnBuilder::Text(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Bytea(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Date(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Timestamp(mut b) | ColumnBuilder::Timestamptz(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Time(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Interval(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Uuid(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Json(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Jsonb(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Array(b) => b.finish(),
            ColumnBuilder::Enum(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Record(b) => b.finish(),
        }
    }
}

/// The scalar of a parameter of the given type.
pub(crate) fn to_scalar(datum: &Datum, data_type: DataType) -> ScalarValue {
    match datum {
        Datum::Null => ScalarValue::try_from(&arrow_type(data_type)).unwrap_or(ScalarValue::Null),
        Datum::Bool(v) => ScalarValue::Boolean(Some(*v)),
        Datum::Int2(v) => ScalarValue::Int16(Some(*v)),
        Datum::Int4(v) => ScalarValue::Int32(Some(*v)),
        Datum::Int8(v) => ScalarValue::Int64(Some(*v)),
        Datum::Float4(v) => ScalarValue::Float32(Some(*v)),
        Datum::Float8(v) => ScalarValue::Float64(Some(*v)),
        Datum::Numeric(v) if data_type == DataType::Numeric(None) => {
            to_scalar(&Datum::Decimal(Decimal::from(*v).encode()), data_type)
        }
        Datum::Numeric(v) => {
            let precision = data_type.decimal().map_or(MAX_PRECISION, |(precision, _)| precision);
            ScalarValue::Decimal128(Some(v.unscaled), precision, v.scale as i8)
        }
        Datum::Decimal(v) => {
            let array = decimal::array_of(std::iter::once(Some(v)).collect());
            ScalarValue::LargeList(Arc::new(array.as_list().clone()))
        }
        Datum::Text(v) => ScalarValue::Utf8(Some(v.to_string())),
        Datum::Bytea(v) => ScalarValue::Binary(Some(v.to_vec())),
        Datum::Date(v) => ScalarValue::Date32(Some(*v)),
        Datum::Timestamp(v) => ScalarValue::TimestampMicrosecond(Some(*v), None),
        Datum::Timestamptz(v) => ScalarValue::TimestampMicrosecond(Some(*v), Some(UTC.into())),
        Datum::Time(v) => ScalarValue::Time64Microsecond(Some(*v)),
        Datum::Interval(v) => ScalarValue::IntervalMonthDayNano(Some(arrow_interval(*v))),
        Datum::Uuid(v) => ScalarValue::FixedSizeBinary(16, Some(v.to_be_bytes().to_vec())),
        Datum::Json(v) => ScalarValue::BinaryView(Some(v.as_bytes().to_vec())),
        Datum::Jsonb(v) => ScalarValue::LargeBinary(Some(v.as_bytes().to_vec())),
        Datum::Array(v) => {
            let mut builder = ColumnBuilder::new(DataType::Array(v.view().items()), 1);
            builder.push(datum.as_ref());
            ScalarValue::Struct(Arc::new(builder.finish().as_struct().clone()))
        }
        Datum::Enum(of, v) => {
            // The type may have been altered since the value was read.
            let of = if let DataType::Enum(now) = data_type { now } else { *of };
            ScalarValue::TimestampSecond(Some(*v), Some(enum_zone(of).into()))
        }
        Datum::Record(v) => {
            let mut builder = ColumnBuilder::new(rows::now(v.view().of(), data_type), 1);
            builder.push(datum.as_ref());
            ScalarValue::Struct(Arc::new(builder.finish().as_struct().clone()))
        }
    }
}

/// The datum of a scalar of exactly the column's type; `None` where it is of another.
pub(crate) fn exact_datum(scalar: &ScalarValue, data_type: DataType) -> Option<Datum> {
    if scalar.is_null() || engine_type(&scalar.data_type())?.pg_oid() != comparable_oid(data_type) {
        return None;
    }
    if let (ScalarValue::TimestampSecond(Some(v), _), DataType::Enum(of)) = (scalar, data_type) {
        return Some(Datum::Enum(of, *v));
    }
    if let ScalarValue::TimestampSecond(..)
    | ScalarValue::TimestampMillisecond(..)
    | ScalarValue::TimestampNanosecond(..) = scalar
    {
        return None;
    }
    if matches!(data_type, DataType::Array(_) | DataType::Composite(_))
        && engine_type(&scalar.data_type()) != Some(data_type)
    {
        return None;
    }
    let datum = array_datum(&scalar.to_array().ok()?, 0);
    if matches!(&datum, Datum::Array(array) if !array.view().is_plain()) {
        return None; // It has no key.
    }
    match (datum, data_type.decimal()) {
        // Exactly, or not at all: rounding would move a bound.
        (Datum::Numeric(v), Some((precision, scale))) => {
            let moved = v.rescale(precision, scale).ok()?;
            (moved == v).then_some(Datum::Numeric(moved))
        }
        (Datum::Numeric(v), None) => Some(Datum::Decimal(Decimal::from(v).encode())),
        (Datum::Decimal(v), Some((precision, scale))) => {
            let own = Decimal::decode(&v);
            let moved = own.to_numeric(precision, scale).ok()?;
            (Decimal::from(moved) == own).then_some(Datum::Numeric(moved))
        }
        // Blanks at the end of a text are none of a char(n)'s, and such a text equals none.
        (Datum::Text(text), _) if matches!(data_type, DataType::Char(_)) && text.ends_with(' ') => None,
        (datum, _) => Some(datum),
    }
}

/// The oid of the type that values of a column are compared as.
fn comparable_oid(data_type: DataType) -> u32 {
    if data_type.is_text() { DataType::Text.pg_oid() } else { data_type.pg_oid() }
}

/// What messages call a type that is none of the engine's.
fn unnamed(of: &ArrowType) -> String {
    match of {
        of if arrays::is_row(of) => "record".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}

/// Whether an expression of this type may be assigned to the column (pg_cast's implicit and assignment casts).
/// `literal`: it is a quoted literal, whose type is still open.
pub(crate) fn check_assignable(from: &ArrowType, column: &ColumnDef, literal: bool) -> Result<()> {
    if let (Some(fields), DataType::Composite(of), None) =
        (arrays::row_fields(from), column.data_type, engine_type(from))
    {
        rows::check_count(fields.len(), of)?;
        // Only a row that is written out becomes one of a type by itself.
        return Err(rows::cannot_convert(of));
    }
    let known = engine_type(from);
    let fits = known.is_some_and(|from| castable(from, column.data_type) == Castable::ByAssignment);
    if fits || matches!(from, ArrowType::Null) || (literal && known == Some(DataType::Text)) {
        return Ok(());
    }
    let from = known.map_or_else(|| unnamed(from), |t| t.base_name().to_string());
    let mut error = EngineError::new(
        "42804",
        format!(
            "column \"{}\" is of type {} but expression is of type {from}",
            column.name,
            column.data_type.base_name()
        ),
    );
    error.hint = Some("You will need to rewrite or cast the expression.".into());
    error.column = Some(column.name.clone());
    Err(error)
}

/// Converts results to what the column stores. The types are assignable.
pub(crate) fn assign_array(array: &ArrayRef, column: &ColumnDef) -> Result<Vec<Datum>> {
    let array = match rows::converted(array, column.data_type, false)? {
        Some(made) => made,
        None => engine_array(array)?,
    };
    (0..array.len()).map(|row| cast_datum(array_datum(&array, row), column.data_type, false)).collect()
}

/// As an array of one of the types that [`array_datum`] reads. 0A000 where there is none.
pub(crate) fn engine_array(array: &ArrayRef) -> Result<ArrayRef> {
    let data_type = engine_type(array.data_type()).ok_or_else(|| {
        EngineError::unsupported(format!("values of type {} are not supported here", array.data_type()))
    })?;
    let target = match array.data_type() {
        ArrowType::Timestamp(_, zone) if is_timestamp(array.data_type()) => {
            ArrowType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        _ => arrow_type(data_type),
    };
    if array.data_type() == &target {
        return Ok(array.clone());
    }
    if let ArrowType::List(_) = array.data_type() {
        return Ok(arrays::of_lists(array.as_list()));
    }
    let options = datafusion::arrow::compute::CastOptions { safe: false, ..Default::default() };
    datafusion::arrow::compute::cast_with_options(array, &target, &options).map_err(crate::error::from_arrow)
}

/// The value in a row of an array that has one of the engine's own Arrow types.
pub(crate) fn array_datum(array: &ArrayRef, row: usize) -> Datum {
    use datafusion::arrow::datatypes::*;
    debug_assert!(row < array.len(), "row {row} of {}", array.len());
    if array.is_null(row) {
        return Datum::Null;
    }
    macro_rules! value {
        ($arrow:ty) => {
            array.as_primitive::<$arrow>().value(row)
        };
    }
    match array.data_type() {
        ArrowType::Boolean => Datum::Bool(array.as_boolean().value(row)),
        ArrowType::Int16 => Datum::Int2(value!(Int16Type)),
        ArrowType::Int32 => Datum::Int4(value!(Int32Type)),
        ArrowType::Int64 => Datum::Int8(value!(Int64Type)),
        ArrowType::Float32 => Datum::Float4(value!(Float32Type)),
        ArrowType::Float64 => Datum::Float8(value!(Float64Type)),
        ArrowType::Decimal128(_, scale) => {
            Datum::Numeric(Numeric { unscaled: value!(Decimal128Type), scale: *scale as u8 })
        }
        ArrowType::Utf8 => Datum::Text(array.as_string::<i32>().value(row).into()),
        ArrowType::Binary => Datum::Bytea(array.as_binary::<i32>().value(row).into()),
        ArrowType::Date32 => Datum::Date(value!(Date32Type)),
        ArrowType::Timestamp(TimeUnit::Microsecond, None) => Datum::Timestamp(value!(TimestampMicrosecondType)),
        ArrowType::Timestamp(TimeUnit::Microsecond, Some(_)) => Datum::Timestamptz(value!(TimestampMicrosecondType)),
        of @ ArrowType::Timestamp(TimeUnit::Second, Some(_)) if let Some(of) = enum_of(of) => {
            Datum::Enum(of, value!(TimestampSecondType))
        }
        ArrowType::Time64(TimeUnit::Microsecond) => Datum::Time(value!(Time64MicrosecondType)),
        ArrowType::Interval(IntervalUnit::MonthDayNano) => {
            Datum::Interval(interval_of(value!(IntervalMonthDayNanoType)))
        }
        ArrowType::FixedSizeBinary(16) => {
            let bytes = array.as_fixed_size_binary().value(row);
            Datum::Uuid(u128::from_be_bytes(bytes.try_into().expect("16 bytes")))
        }
        ArrowType::BinaryView => Datum::Json(utf8(array.as_binary_view().value(row)).into()),
        ArrowType::LargeBinary => Datum::Jsonb(utf8(array.as_binary::<i64>().value(row)).into()),
        of if arrays::is_array(of) => list_datum(&arrays::Arrays::of(array).expect("its type says so"), row),
        ArrowType::Struct(fields) => {
            let of = rows::type_of(fields).expect("a row of a composite type");
            rows::datum(array.as_struct(), of, row)
        }
        of if decimal::is_decimal(of) => decimal::datum(array, row),
        other => panic!("{other} is not a type of the engine's"),
    }
}

/// An array that is one of the engine's types.
fn list_datum(column: &arrays::Arrays, row: usize) -> Datum {
    if column.lists().is_null(row) {
        return Datum::Null;
    }
    let values = column.lists().value(row);
    let of = engine_type(values.data_type()).expect("an array of one of the engine's types");
    let items: Vec<Datum> = (0..values.len()).map(|at| array_datum(&values, at)).collect();
    let items = Array::shaped(Items::of(of).expect("items are no arrays"), &column.shape(row), &items);
    Datum::Array(items.expect("a list has fewer items than an array may have, of its own type"))
}

/// The text of a json or jsonb (invariant 3).
pub(crate) fn utf8(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("arrays of JSON are made of texts")
}

/// Converts a value of a statement or a parameter to what the column stores.
pub(crate) fn assign_datum(datum: Datum, data_type: DataType) -> Result<Datum> {
    cast_datum(datum, data_type, false)
}

/// Arrow field metadata: the PostgreSQL type's name where Arrow's type does not imply it (`name`, `char`, `varchar`,
/// ...).
pub const PG_TYPE: &str = "pg_type";

/// What a function gives that answers nothing: PostgreSQL's void, which is sent as empty text.
pub(crate) fn void_field(name: &str) -> FieldRef {
    Arc::new(Field::new(name, ArrowType::Utf8, true).with_metadata([(PG_TYPE.to_owned(), "void".to_owned())].into()))
}

pub(crate) fn is_void(field: &Field) -> bool {
    field.metadata().get(PG_TYPE).is_some_and(|name| name == "void")
}

/// Arrow field metadata: the type modifier (`varchar(n)`: n + 4).
pub const PG_TYPMOD: &str = "pg_typmod";

pub(crate) fn typmod(data_type: DataType) -> i32 {
    match data_type {
        DataType::Varchar(0) => -1,
        DataType::Array(items) => typmod(items.get()),
        DataType::Varchar(_) | DataType::Char(_) | DataType::Numeric(Some(_)) => {
            i32::try_from(data_type.length()).map_or(-1, |n| n.saturating_add(4))
        }
        _ => -1,
    }
}

pub(crate) fn is_sequence(table: &Table) -> bool {
    table.columns.last().is_some_and(|c| c.dropped && c.name.is_empty())
}

/// Whether it is a sequence that belongs to a column.
pub(crate) fn is_owned(table: &Table) -> bool {
    marks(table).any(|word| word == "owned")
}

/// The type that a sequence says it has.
pub(crate) fn sequence_type(table: &Table) -> Option<DataType> {
    marks(table).find_map(|word| match word {
        "int2" => Some(DataType::Int2),
        "int4" => Some(DataType::Int4),
        "int8" => Some(DataType::Int8),
        _ => None,
    })
}

/// The words of a sequence's mark.
fn marks(table: &Table) -> impl Iterator<Item = &str> {
    let mark = table.columns.last().filter(|_| is_sequence(table)).and_then(|column| column.default_sql.as_deref());
    mark.unwrap_or_default().split(' ')
}

/// 23502, as PostgreSQL words it. Generated columns are looked at when they are computed.
pub(crate) fn check_not_null(table: &Table, row: &[Datum]) -> Result<()> {
    check_not_null_of(table, row, |column| column.generated.is_none())
}

/// The same of generated columns.
pub(crate) fn check_generated_not_null(table: &Table, row: &[Datum]) -> Result<()> {
    check_not_null_of(table, row, |column| column.generated.is_some())
}

fn check_not_null_of(table: &Table, row: &[Datum], of: impl Fn(&ColumnDef) -> bool) -> Result<()> {
    assert_eq!(row.len(), table.columns.len(), "a row has a value for each column, those dropped included");
    let null = |(at, column): &(usize, &ColumnDef)| column.not_null && of(column) && row[*at] == Datum::Null;
    let Some((_, column)) = live_columns(table).find(null) else {
        return Ok(());
    };
    let values = live_columns(table).map(|(at, _)| (at, show(&row[at])));
    Err(EngineError::not_null(table, &column.name, values.collect()))
}

/// A value in an error's detail; long text is cut.
pub(crate) fn show(datum: &Datum) -> String {
    match datum {
        Datum::Text(text) => match text.char_indices().nth(64) {
            Some((cut, _)) => format!("{}...", &text[..cut]),
            None => text.to_string(),
        },
        other => other.to_string(),
    }
}

/// OIDs of array types, and of their items' types.
pub(crate) const ARRAYS: [(u32, u32); 22] = [
    (199, 114),
    (1000, 16),
    (1001, 17),
    (1003, 19),
    (1005, 21),
    (1007, 23),
    (1009, 25),
    (1014, 1042),
    (1015, 1043),
    (1016, 20),
    (1021, 700),
    (1022, 701),
    (1028, 26),
    (1115, 1114),
    (1182, 1082),
    (1183, 1083),
    (1185, 1184),
    (1187, 1186),
    (1231, 1700),
    (2287, 2249),
    (2951, 2950),
    (3807, 3802),
];

/// The OID of the arrays of a type.
pub fn array_oid(item: u32) -> Option<u32> {
    ARRAYS.iter().find(|(_, of)| *of == item).map(|(array, _)| *array)
}

#[cfg(test)]
mod tests;
