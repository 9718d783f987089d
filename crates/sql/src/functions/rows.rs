//! Functions of rows: what they are compared by, whether they are NULL, their fields, and rows that are made.
//!
//! 1. `row IS NULL` where the row is NULL or all its fields are; `row IS NOT NULL` where it is not and no field is.
//!    Fields that are rows count as values.
//! 2. A field of a row that is NULL is NULL. A row that is NULL and gets a field becomes one whose others are NULL.
//! 3. Rows are compared by a key that has PostgreSQL's order: field by field, NULL above all values.
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::functions::arrays::keys::item_key;
use crate::functions::compared::no_equality;
use crate::values::arrays::{is_row, row_fields};
use crate::values::rows::{converted, fields_of, type_of};
use crate::values::{array_datum, engine_array};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, StructArray, make_array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Fields};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use terrace_engine::types::{CompositeType, Decimal};
use terrace_engine::{DataType, Datum, DatumRef};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Op {
    Key,
    /// Invariant 1; whether it is IS NOT NULL.
    Null(bool),
    /// The field of a place.
    Field(usize),
    /// The row with another value of the field of a place.
    With(usize),
    /// A row of these fields.
    Make(CompositeType),
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Rows {
    op: Op,
    /// Common subexpressions are told apart by their functions' names.
    name: String,
    signature: Signature,
}

fn call(op: Op, args: Vec<Expr>) -> Expr {
    let signature = Signature::any(args.len(), Volatility::Immutable);
    let name = match op {
        Op::Key => "row key".to_owned(),
        other => format!("row {other:?}"),
    };
    let udf = ScalarUDF::from(Rows { op, name, signature });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(udf), args))
}

/// What a row compares by.
pub(crate) fn key(row: Expr) -> Expr {
    call(Op::Key, vec![row])
}

/// Invariant 1.
pub(crate) fn is_null(row: Expr, not: bool) -> Expr {
    call(Op::Null(not), vec![row])
}

/// The field of a place.
pub(crate) fn field(row: Expr, place: usize) -> Expr {
    call(Op::Field(place), vec![row])
}

/// A row of a composite type, with another value, which is of the attribute's type.
pub(crate) fn with_field(row: Expr, place: usize, value: Expr) -> Expr {
    call(Op::With(place), vec![row, value])
}

/// A row of a composite type, of values that are of its attributes' types.
pub(crate) fn make(of: CompositeType, values: Vec<Expr>) -> Expr {
    call(Op::Make(of), values)
}

fn fields(of: &ArrowType) -> Result<&Fields> {
    match row_fields(of) {
        Some(fields) => Ok(fields),
        None => internal_err!("{of} is no row"),
    }
}

impl ScalarUDFImpl for Rows {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(match self.op {
            Op::Key => ArrowType::Binary,
            Op::Null(_) => ArrowType::Boolean,
            Op::Field(place) => fields(&types[0])?[place].data_type().clone(),
            Op::With(_) => types[0].clone(),
            Op::Make(of) => ArrowType::Struct(fields_of(of)),
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        if let Op::Field(place) = self.op {
            let field = fields(args.arg_fields[0].data_type())?[place].as_ref().clone();
            return Ok(Arc::new(field.with_nullable(true)));
        }
        let types: Vec<ArrowType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(&self.name, self.return_type(&types)?, !matches!(self.op, Op::Null(_)))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_columns(&args, |columns| match self.op {
            Op::Key => keys(&columns[0]),
            Op::Null(not) => Ok(Arc::new(null_test(columns[0].as_struct(), not))),
            Op::Field(place) => field_of(columns[0].as_struct(), place),
            Op::With(place) => with(columns[0].as_struct(), place, &columns[1]),
            Op::Make(of) => {
                let all = fields_of(of);
                let columns = columns.iter().zip(of.def().attributes());
                let columns = columns.map(|(column, attribute)| fitted(column, attribute.data_type));
                Ok(Arc::new(StructArray::try_new(all, columns.collect::<Result<_>>()?, None)?))
            }
        })
    }
}

/// A column that is of a type, or rows that are to be.
fn fitted(column: &ArrayRef, to: DataType) -> Result<ArrayRef> {
    Ok(converted(column, to, false).map_err(tunnel)?.unwrap_or_else(|| column.clone()))
}

/// Invariant 1.
fn null_test(rows: &StructArray, not: bool) -> BooleanArray {
    let is = |row: usize| match (rows.is_null(row), not) {
        (true, _) => !not,
        (false, false) => rows.columns().iter().all(|column| is_null_at(column, row)),
        (false, true) => !rows.columns().iter().any(|column| is_null_at(column, row)),
    };
    (0..rows.len()).map(|row| Some(is(row))).collect()
}

fn is_null_at(column: &ArrayRef, row: usize) -> bool {
    column.data_type() == &ArrowType::Null || column.is_null(row)
}

/// Invariant 2.
fn field_of(rows: &StructArray, place: usize) -> Result<ArrayRef> {
    let column = rows.column(place);
    if rows.null_count() == 0 || column.data_type() == &ArrowType::Null {
        return Ok(column.clone());
    }
    let nulls = NullBuffer::union(rows.nulls(), column.nulls());
    Ok(make_array(column.to_data().into_builder().nulls(nulls).build()?))
}

/// Invariant 2.
fn with(rows: &StructArray, place: usize, value: &ArrayRef) -> Result<ArrayRef> {
    let mut columns = vec![];
    for at in 0..rows.num_columns() {
        columns.push(match at == place {
            true => value.clone(),
            false => field_of(rows, at)?,
        });
    }
    let Some(of) = type_of(rows.fields()) else { return internal_err!("a row of a composite type gets a value") };
    Ok(Arc::new(StructArray::try_new(fields_of(of), columns, None)?))
}

/// What rows are compared by (invariant 3).
pub(crate) fn keys(array: &ArrayRef) -> Result<ArrayRef> {
    let columns = columns_of(array.as_struct())?;
    let mut keys: Vec<Option<Vec<u8>>> = Vec::with_capacity(array.len());
    for row in 0..array.len() {
        let mut key = vec![];
        for column in &columns {
            column.add(row, &mut key)?;
        }
        keys.push(array.is_valid(row).then_some(key));
    }
    Ok(Arc::new(keys.iter().map(Option::as_deref).collect::<BinaryArray>()))
}

enum Column {
    Values(ArrayRef),
    Null,
    /// Their keys.
    Rows(ArrayRef),
}

fn columns_of(rows: &StructArray) -> Result<Vec<Column>> {
    let column = |column: &ArrayRef| {
        Ok(match column.data_type() {
            ArrowType::Null => Column::Null,
            ArrowType::BinaryView => return Err(no_equality()),
            of if is_row(of) => Column::Rows(keys(column)?),
            _ => Column::Values(engine_array(column).map_err(tunnel)?),
        })
    };
    rows.columns().iter().map(column).collect()
}

impl Column {
    fn add(&self, row: usize, key: &mut Vec<u8>) -> Result<()> {
        match self {
            Column::Null => item_key(key, DatumRef::Null),
            Column::Values(values) => match array_datum(values, row) {
                // Whatever digits a column's type has.
                Datum::Numeric(number) => item_key(key, Datum::Decimal(Decimal::from(number).encode()).as_ref()),
                value => item_key(key, value.as_ref()),
            },
            Column::Rows(keys) => match keys.is_null(row) {
                true => item_key(key, DatumRef::Null),
                false => item_key(key, DatumRef::Bytea(keys.as_binary::<i32>().value(row))),
            },
        }
    }
}
