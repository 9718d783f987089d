//! Values between the engine and Arrow, and assignment of a value to a column.
use crate::error::from_arrow;
use datafusion::arrow::array::{
    Array, ArrayRef, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::common::ScalarValue;
use std::sync::Arc;
use terrace_engine::types::fit_varchar;
use terrace_engine::{ColumnDef, DataType, Datum, DatumRef, EngineError, Result, Table};

pub fn arrow_type(data_type: DataType) -> ArrowType {
    match data_type {
        DataType::Bool => ArrowType::Boolean,
        DataType::Int4 => ArrowType::Int32,
        DataType::Int8 => ArrowType::Int64,
        DataType::Float8 => ArrowType::Float64,
        DataType::Text | DataType::Varchar(_) => ArrowType::Utf8,
        DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
    }
}

/// The type that a parameter or a result of this Arrow type has for a client.
pub fn engine_type(arrow: &ArrowType) -> Option<DataType> {
    Some(match arrow {
        ArrowType::Boolean => DataType::Bool,
        ArrowType::Int8 | ArrowType::Int16 | ArrowType::Int32 | ArrowType::UInt8 | ArrowType::UInt16 => DataType::Int4,
        ArrowType::Int64 | ArrowType::UInt32 | ArrowType::UInt64 => DataType::Int8,
        ArrowType::Float32 | ArrowType::Float64 => DataType::Float8,
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View | ArrowType::Null => DataType::Text,
        ArrowType::Timestamp(..) => DataType::Timestamp,
        _ => return None,
    })
}

/// The columns a user sees, with their positions in the row.
pub(crate) fn live_columns(table: &Table) -> impl Iterator<Item = (usize, &ColumnDef)> {
    table.columns.iter().enumerate().filter(|(_, c)| !c.dropped)
}

pub(crate) fn table_schema(table: &Table) -> SchemaRef {
    let fields: Vec<Field> =
        live_columns(table).map(|(_, c)| Field::new(&c.name, arrow_type(c.data_type), !c.not_null)).collect();
    Arc::new(Schema::new(fields))
}

/// A column of a batch as it grows.
pub(crate) enum ColumnBuilder {
    Bool(BooleanBuilder),
    Int4(Int32Builder),
    Int8(Int64Builder),
    Float8(Float64Builder),
    Text(StringBuilder),
    Timestamp(TimestampMicrosecondBuilder),
}

impl ColumnBuilder {
    pub(crate) fn new(data_type: DataType, rows: usize) -> ColumnBuilder {
        match data_type {
            DataType::Bool => ColumnBuilder::Bool(BooleanBuilder::with_capacity(rows)),
            DataType::Int4 => ColumnBuilder::Int4(Int32Builder::with_capacity(rows)),
            DataType::Int8 => ColumnBuilder::Int8(Int64Builder::with_capacity(rows)),
            DataType::Float8 => ColumnBuilder::Float8(Float64Builder::with_capacity(rows)),
            DataType::Text | DataType::Varchar(_) => ColumnBuilder::Text(StringBuilder::with_capacity(rows, rows * 16)),
            DataType::Timestamp => ColumnBuilder::Timestamp(TimestampMicrosecondBuilder::with_capacity(rows)),
        }
    }

    /// Panics where the value is not of the column's type: the engine checked that when it stored the row.
    pub(crate) fn push(&mut self, value: DatumRef<'_>) {
        match (self, value) {
            (ColumnBuilder::Bool(b), DatumRef::Bool(v)) => b.append_value(v),
            (ColumnBuilder::Int4(b), DatumRef::Int4(v)) => b.append_value(v),
            (ColumnBuilder::Int8(b), DatumRef::Int8(v)) => b.append_value(v),
            (ColumnBuilder::Float8(b), DatumRef::Float8(v)) => b.append_value(v),
            (ColumnBuilder::Text(b), DatumRef::Text(v)) => b.append_value(v),
            (ColumnBuilder::Timestamp(b), DatumRef::Timestamp(v)) => b.append_value(v),
            (ColumnBuilder::Bool(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Int4(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Int8(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Float8(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Text(b), DatumRef::Null) => b.append_null(),
            (ColumnBuilder::Timestamp(b), DatumRef::Null) => b.append_null(),
            (_, value) => panic!("stored value {value:?} is not of its column's type"),
        }
    }

    pub(crate) fn finish(self) -> ArrayRef {
        match self {
            ColumnBuilder::Bool(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Int4(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Int8(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Float8(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Text(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Timestamp(mut b) => Arc::new(b.finish()),
        }
    }
}

/// The scalar of a parameter of the given type.
pub(crate) fn to_scalar(datum: &Datum, data_type: DataType) -> ScalarValue {
    match datum {
        Datum::Null => ScalarValue::try_from(&arrow_type(data_type)).unwrap_or(ScalarValue::Null),
        Datum::Bool(v) => ScalarValue::Boolean(Some(*v)),
        Datum::Int4(v) => ScalarValue::Int32(Some(*v)),
        Datum::Int8(v) => ScalarValue::Int64(Some(*v)),
        Datum::Float8(v) => ScalarValue::Float64(Some(*v)),
        Datum::Text(v) => ScalarValue::Utf8(Some(v.to_string())),
        Datum::Timestamp(v) => ScalarValue::TimestampMicrosecond(Some(*v), None),
    }
}

/// The datum of a scalar of exactly the column's type; `None` where it is of another.
pub(crate) fn exact_datum(scalar: &ScalarValue, data_type: DataType) -> Option<Datum> {
    Some(match (scalar, data_type) {
        (ScalarValue::Boolean(Some(v)), DataType::Bool) => Datum::Bool(*v),
        (ScalarValue::Int32(Some(v)), DataType::Int4) => Datum::Int4(*v),
        (ScalarValue::Int64(Some(v)), DataType::Int8) => Datum::Int8(*v),
        (
            ScalarValue::Utf8(Some(v)) | ScalarValue::LargeUtf8(Some(v)) | ScalarValue::Utf8View(Some(v)),
            DataType::Text | DataType::Varchar(_),
        ) => Datum::Text(v.as_str().into()),
        (ScalarValue::TimestampMicrosecond(Some(v), None), DataType::Timestamp) => Datum::Timestamp(*v),
        _ => return None,
    })
}

/// Whether an expression of this type may be assigned to the column (pg_cast's implicit and assignment casts). `literal`: it
/// is a quoted literal, whose type is still open.
pub(crate) fn check_assignable(from: &ArrowType, column: &ColumnDef, literal: bool) -> Result<()> {
    use ArrowType::*;
    let is_text = matches!(from, Utf8 | LargeUtf8 | Utf8View);
    let is_number = from.is_numeric();
    let fits = match column.data_type {
        DataType::Int4 | DataType::Int8 | DataType::Float8 => is_number,
        DataType::Bool => matches!(from, Boolean),
        DataType::Timestamp => matches!(from, Timestamp(..) | Date32 | Date64),
        DataType::Text | DataType::Varchar(_) => {
            is_text || is_number || matches!(from, Boolean | Timestamp(..) | Date32)
        }
    };
    if fits || matches!(from, Null) || (literal && is_text) {
        return Ok(());
    }
    let from = engine_type(from).map(|t| t.to_string()).unwrap_or_else(|| from.to_string().to_lowercase());
    let mut error = EngineError::new(
        "42804",
        format!("column \"{}\" is of type {} but expression is of type {from}", column.name, column.data_type),
    );
    error.hint = Some("You will need to rewrite or cast the expression.".into());
    error.column = Some(column.name.clone());
    Err(error)
}

/// Converts results to what the column stores. The types are assignable.
pub(crate) fn assign_array(array: &ArrayRef, column: &ColumnDef) -> Result<Vec<Datum>> {
    let target = arrow_type(column.data_type);
    let array = if array.data_type() == &target {
        array.clone()
    } else if matches!(array.data_type(), ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View)
        && !matches!(target, ArrowType::Utf8)
    {
        let text = cast(array, &ArrowType::Utf8)?;
        let text = text.as_any().downcast_ref::<datafusion::arrow::array::StringArray>().expect("cast to Utf8");
        return text.iter().map(|t| t.map_or(Ok(Datum::Null), |t| column.data_type.parse(t))).collect();
    } else if matches!(target, ArrowType::Int32 | ArrowType::Int64) && array.data_type().is_floating() {
        return round_array(array, column);
    } else {
        cast(array, &target)?
    };
    (0..array.len()).map(|row| limit_length(array_datum(&array, row), column.data_type)).collect()
}

fn cast(array: &ArrayRef, to: &ArrowType) -> Result<ArrayRef> {
    cast_with_options(array, to, &CastOptions { safe: false, ..Default::default() }).map_err(from_arrow)
}

fn round_array(array: &ArrayRef, column: &ColumnDef) -> Result<Vec<Datum>> {
    let floats = cast(array, &ArrowType::Float64)?;
    let floats = floats.as_any().downcast_ref::<datafusion::arrow::array::Float64Array>().expect("cast to Float64");
    floats.iter().map(|v| v.map_or(Ok(Datum::Null), |v| round_float(v, column.data_type))).collect()
}

/// To the nearest integer, ties to even, as PostgreSQL's rint.
fn round_float(v: f64, data_type: DataType) -> Result<Datum> {
    let r = v.round_ties_even();
    match data_type {
        DataType::Int4 if r >= i32::MIN as f64 && r <= i32::MAX as f64 => Ok(Datum::Int4(r as i32)),
        DataType::Int8 if r >= i64::MIN as f64 && r < -(i64::MIN as f64) => Ok(Datum::Int8(r as i64)),
        _ => Err(EngineError::out_of_range(data_type.base_name())),
    }
}

/// The value in a row of an array that has one of the engine's own Arrow types.
pub(crate) fn array_datum(array: &ArrayRef, row: usize) -> Datum {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
    if array.is_null(row) {
        return Datum::Null;
    }
    match array.data_type() {
        ArrowType::Boolean => Datum::Bool(array.as_boolean().value(row)),
        ArrowType::Int32 => Datum::Int4(array.as_primitive::<Int32Type>().value(row)),
        ArrowType::Int64 => Datum::Int8(array.as_primitive::<Int64Type>().value(row)),
        ArrowType::Float64 => Datum::Float8(array.as_primitive::<Float64Type>().value(row)),
        ArrowType::Utf8 => Datum::Text(array.as_string::<i32>().value(row).into()),
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
            Datum::Timestamp(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        other => panic!("{other} is not a type of the engine's"),
    }
}

/// varchar(n): trailing spaces beyond n are cut, anything else is 22001.
fn limit_length(datum: Datum, data_type: DataType) -> Result<Datum> {
    match (data_type, datum) {
        (DataType::Varchar(n), Datum::Text(text)) => Ok(Datum::Text(fit_varchar(&text, n)?.into())),
        (_, datum) => Ok(datum),
    }
}

/// Converts a value of a statement or a parameter to what the column stores.
pub(crate) fn assign_datum(datum: Datum, data_type: DataType) -> Result<Datum> {
    Ok(match (datum, data_type) {
        (Datum::Null, _) => Datum::Null,
        (Datum::Int8(v), DataType::Int4) => {
            Datum::Int4(i32::try_from(v).map_err(|_| EngineError::out_of_range("integer"))?)
        }
        (Datum::Int4(v), DataType::Int8) => Datum::Int8(v.into()),
        (Datum::Int4(v), DataType::Float8) => Datum::Float8(v.into()),
        (Datum::Int8(v), DataType::Float8) => Datum::Float8(v as f64),
        (Datum::Float8(v), DataType::Int4 | DataType::Int8) => round_float(v, data_type)?,
        (Datum::Text(v), DataType::Text | DataType::Varchar(_)) => limit_length(Datum::Text(v), data_type)?,
        (Datum::Text(v), _) => data_type.parse(&v)?,
        // As casts to text print it: a boolean in full.
        (Datum::Bool(v), DataType::Text | DataType::Varchar(_)) => data_type.parse(if v { "true" } else { "false" })?,
        (v, DataType::Text | DataType::Varchar(_)) => data_type.parse(&v.to_string())?,
        (v, _) => {
            data_type.admits(v.as_ref())?;
            v
        }
    })
}
