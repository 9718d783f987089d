//! Values of a statement by key: what it is given, what a column becomes, and what is shown of a row.
use crate::cast::cast_datum;
use crate::error::from_arrow;
use crate::functions::arithmetic::float_result;
use crate::values::{ColumnBuilder, assign_datum};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use terrace_engine::types::Decimal;
use terrace_engine::{DataType, Datum, DatumRef, EngineError, Result};

/// What a statement is bound to.
#[derive(Clone, Copy)]
pub(crate) struct Bound<'a> {
    pub(crate) parameters: &'a [Datum],
    /// The transaction's time in microseconds since 1970; anything where the statement does not use it.
    pub(crate) now: i64,
}

/// A value known when the statement is bound.
#[derive(Clone, Debug)]
pub(super) enum Given {
    Constant(Datum),
    /// Its number from 0, and the column's type it is assigned to.
    Parameter(usize, DataType),
    /// The same with a cast: to a type, and from there to the column's.
    Cast(usize, DataType, DataType),
    /// The transaction's time, for a column of type timestamp.
    Now,
}

/// A new value of a column, or one that is shown.
#[derive(Debug)]
pub(super) enum NewValue {
    Given(Given),
    /// Another column, or the same, as it was.
    Column(usize),
    /// `column op value` on numbers; `flipped`: `value op column`.
    Computed {
        column: usize,
        op: Arithmetic,
        value: Given,
        flipped: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
}

/// What is shown of a row.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) value: NewValue,
    pub(super) of: DataType,
    /// It is cast to text at last.
    pub(super) as_text: bool,
}

impl Given {
    pub(super) fn value(&self, bound: Bound<'_>) -> Result<Datum> {
        match self {
            Given::Constant(datum) => Ok(datum.clone()),
            Given::Parameter(number, data_type) => assign_datum(bound.parameters[*number].clone(), *data_type),
            Given::Cast(number, through, data_type) => {
                let cast = cast_datum(bound.parameters[*number].clone(), *through, true)?;
                if through == data_type { Ok(cast) } else { assign_datum(cast, *data_type) }
            }
            Given::Now => assign_datum(Datum::Timestamptz(bound.now), DataType::Timestamp),
        }
    }
}

impl NewValue {
    /// `row`: its columns as they were.
    pub(super) fn value(&self, row: impl Fn(usize) -> Datum, bound: Bound<'_>) -> Result<Datum> {
        match self {
            NewValue::Given(given) => given.value(bound),
            NewValue::Column(other) => Ok(row(*other)),
            NewValue::Computed { column, op, value, flipped } => {
                let (column, value) = (row(*column), value.value(bound)?);
                let (left, right) = if *flipped { (value, column) } else { (column, value) };
                compute(*op, left, right)
            }
        }
    }
}

/// Of two integers, two floats, or numerics and integers; NULL with anything is NULL.
fn compute(op: Arithmetic, left: Datum, right: Datum) -> Result<Datum> {
    let wide = matches!((&left, &right), (Datum::Int8(_), _) | (_, Datum::Int8(_)));
    let integer = |datum: &Datum| match datum {
        Datum::Int2(v) => Some(i64::from(*v)),
        Datum::Int4(v) => Some(i64::from(*v)),
        Datum::Int8(v) => Some(*v),
        _ => None,
    };
    if let (Some(a), Some(b)) = (integer(&left), integer(&right)) {
        let result = match op {
            Arithmetic::Add => a.checked_add(b),
            Arithmetic::Subtract => a.checked_sub(b),
            Arithmetic::Multiply => a.checked_mul(b),
        };
        return match result {
            Some(v) if !wide => i32::try_from(v).map(Datum::Int4).map_err(|_| EngineError::out_of_range("integer")),
            Some(v) => Ok(Datum::Int8(v)),
            None => Err(EngineError::out_of_range("bigint")),
        };
    }
    Ok(match (left, right) {
        (Datum::Null, _) | (_, Datum::Null) => Datum::Null,
        (Datum::Float8(a), Datum::Float8(b)) => {
            let (result, vanishes) = match op {
                Arithmetic::Add => (a + b, false),
                Arithmetic::Subtract => (a - b, false),
                Arithmetic::Multiply => (a * b, a != 0.0 && b != 0.0),
            };
            Datum::Float8(float_result(result, a.is_infinite() || b.is_infinite(), vanishes)?)
        }
        (a, b) => match (exact(&a), exact(&b)) {
            (Some(a), Some(b)) => {
                let result = match op {
                    Arithmetic::Add => a.add(&b),
                    Arithmetic::Subtract => a.subtract(&b),
                    Arithmetic::Multiply => a.multiply(&b),
                };
                Datum::Decimal(result?.encode())
            }
            _ => unreachable!("recognised as numbers of one kind: {a:?}, {b:?}"),
        },
    })
}

/// An integer or a numeric.
pub(super) fn exact(datum: &Datum) -> Option<Decimal> {
    match datum {
        Datum::Int4(v) => Some(Decimal::from_int((*v).into())),
        Datum::Int8(v) => Some(Decimal::from_int(*v)),
        Datum::Numeric(v) => Some((*v).into()),
        Datum::Decimal(v) => Some(Decimal::decode(v)),
        _ => None,
    }
}

impl Cell {
    pub(super) fn column(at: usize, of: DataType) -> Cell {
        Cell { value: NewValue::Column(at), of, as_text: false }
    }

    /// The column that it is, and whether as a text.
    pub(super) fn plain(&self) -> Option<(usize, bool)> {
        if let NewValue::Column(at) = self.value { Some((at, self.as_text)) } else { None }
    }

    /// Its type.
    pub(super) fn data_type(&self) -> DataType {
        if self.as_text { DataType::Text } else { self.of }
    }

    fn push<'r>(&self, row: &impl Fn(usize) -> DatumRef<'r>, bound: Bound<'_>, to: &mut ColumnBuilder) -> Result<()> {
        match &self.value {
            NewValue::Column(at) if !self.as_text => to.push(row(*at)),
            value => {
                let value = value.value(|at| row(at).to_datum(), bound)?;
                let value = if self.as_text { cast_datum(value, DataType::Text, true)? } else { value };
                to.push(value.as_ref());
            }
        }
        Ok(())
    }
}

/// What is shown of rows. A row answers its columns.
pub(super) fn batch<'r, R: Fn(usize) -> DatumRef<'r>>(
    cells: &[Cell],
    schema: &SchemaRef,
    rows: impl ExactSizeIterator<Item = R>,
    bound: Bound<'_>,
) -> Result<RecordBatch> {
    let count = rows.len();
    let mut builders: Vec<ColumnBuilder> =
        cells.iter().map(|cell| ColumnBuilder::new(cell.data_type(), count)).collect();
    for row in rows {
        for (cell, builder) in cells.iter().zip(&mut builders) {
            cell.push(&row, bound, builder)?;
        }
    }
    debug_assert_eq!(cells.len(), schema.fields().len(), "a column for each field");
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    let arrays = builders.into_iter().map(ColumnBuilder::finish).collect();
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options).map_err(from_arrow)
}
