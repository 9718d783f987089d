//! Casts within queries: a function per target type that converts as PostgreSQL does
//! ([`crate::cast`]).
//!
//! An analyzer rule, run after type coercion, puts the function in the place of DataFusion's cast wherever the two
//! differ, and the checked functions of [`crate::functions::arithmetic`] in the place of what is left of DataFusion's
//! operators. Names of result columns stay.
use crate::cast::cast_datum;
use crate::error::tunnel;
use crate::values::decimal::check_of;
use crate::values::{ColumnBuilder, array_datum, engine_array, engine_type, field_of, is_timestamp, is_zoned};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, TimestampMicrosecondType};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{Cast, Exists, InSubquery, Placeholder, ScalarFunction, SetComparison};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::any::Any;
use std::sync::Arc;
use terrace_engine::{DataType, Datum};

#[derive(Debug, PartialEq, Eq, Hash)]
struct Conversion {
    /// Upstream: common subexpressions are told apart by their functions' names.
    name: String,
    to: DataType,
    how: How,
    signature: Signature,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum How {
    Explicit,
    /// What a cast would cut is refused.
    Assigned,
    /// To be compared: a date that no timestamp reaches is later than all of them, and before infinity.
    Compared,
}

fn conversion(expr: Expr, to: DataType, how: How) -> Expr {
    let name = match how {
        How::Explicit => "convert",
        How::Assigned => "assign",
        How::Compared => "compare",
    };
    let signature = Signature::any(1, Volatility::Immutable);
    let conversion = Conversion { name: format!("{name} {to:?}"), to, how, signature };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(conversion)), vec![expr]))
}

/// `expr` as a value of another type, explicitly.
pub(crate) fn convert(expr: Expr, to: DataType) -> Expr {
    conversion(expr, to, How::Explicit)
}

/// The same, as an assignment does it.
pub(crate) fn assigned(expr: Expr, to: DataType) -> Expr {
    conversion(expr, to, How::Assigned)
}

/// The same, where it is compared with others of the type.
pub(crate) fn to_compare(expr: Expr, to: DataType) -> Expr {
    conversion(expr, to, How::Compared)
}

impl ScalarUDFImpl for Conversion {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        Ok(crate::values::arrow_type(self.to))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(field_of(self.name(), self.to, args.arg_fields[0].is_nullable())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match (&args.args[0], self.how) {
            (ColumnarValue::Scalar(scalar), _) if scalar.is_null() => {
                Ok(ColumnarValue::Scalar(convert_scalar(scalar, self.to)?))
            }
            (ColumnarValue::Scalar(scalar), how) => {
                let made = converted_array(&scalar.to_array()?, self.to, how)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?))
            }
            (ColumnarValue::Array(array), how) => Ok(ColumnarValue::Array(converted_array(array, self.to, how)?)),
        }
    }
}

pub(crate) fn convert_array(array: &ArrayRef, to: DataType) -> Result<ArrayRef> {
    converted_array(array, to, How::Explicit)
}

fn converted_array(array: &ArrayRef, to: DataType, how: How) -> Result<ArrayRef> {
    let explicit = how != How::Assigned;
    if let Some(made) = crate::values::rows::converted(array, to, explicit).map_err(tunnel)? {
        return Ok(made);
    }
    let array = engine_array(array).map_err(tunnel)?;
    let limited = matches!(to.item().unwrap_or(to), DataType::Varchar(1..) | DataType::Char(_));
    if array.data_type() == &crate::values::arrow_type(to) && !limited {
        return Ok(array);
    }
    let whole = |t: &ArrowType| matches!(t, ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64);
    let target = crate::values::arrow_type(to);
    if whole(array.data_type()) && whole(&target) {
        // What does not fit becomes NULL, and is told below.
        let made = datafusion::arrow::compute::cast(&array, &target)?;
        if made.null_count() == array.null_count() {
            return Ok(made);
        }
    }
    let (mut builder, check) = (ColumnBuilder::new(to, array.len()), check_of(&array));
    for row in 0..array.len() {
        check().map_err(tunnel)?;
        let value = array_datum(&array, row);
        let value = match how {
            How::Compared => datum_to_compare(value, to),
            _ => cast_datum(value, to, explicit),
        };
        let value = value.map_err(tunnel)?;
        builder.push(value.as_ref());
    }
    let made = builder.finish();
    debug_assert_eq!((made.len(), made.data_type()), (array.len(), &target), "a value for each row");
    Ok(made)
}

/// A value as it is compared with others of the type.
pub(crate) fn datum_to_compare(value: Datum, to: DataType) -> terrace_engine::Result<Datum> {
    match (cast_datum(value, to, true), to) {
        (Err(error), DataType::Timestamp) if error.state.0 == "22008" => Ok(Datum::Timestamp(i64::MAX - 1)),
        (Err(error), DataType::Timestamptz) if error.state.0 == "22008" => Ok(Datum::Timestamptz(i64::MAX - 1)),
        (made, _) => made,
    }
}

pub(crate) fn convert_scalar(scalar: &ScalarValue, to: DataType) -> Result<ScalarValue> {
    if scalar.is_null() {
        return ScalarValue::try_from(&crate::values::arrow_type(to));
    }
    ScalarValue::try_from_array(&convert_array(&scalar.to_array()?, to)?, 0)
}

pub(crate) fn is_conversion(function: &ScalarUDF) -> bool {
    (function.inner().as_ref() as &dyn Any).is::<Conversion>()
}

/// The expression whose conversion to this type another is.
pub(crate) fn converted_from(expr: &Expr, to: DataType) -> Option<&Expr> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let conversion = (call.func.inner().as_ref() as &dyn Any).downcast_ref::<Conversion>()?;
    if conversion.to == to { call.args.first() } else { None }
}

/// Whether the field says more than its Arrow type does.
pub(crate) fn is_written(field: &Field) -> bool {
    !field.metadata().is_empty()
}

/// The value of a constant, cast or not; `None` where it is none, or the cast fails (which then is told when it is
/// evaluated).
pub(crate) fn constant(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(Cast { expr, field }) if !is_written(field) => {
            let value = constant(expr)?;
            let to = field.data_type();
            (!needs_zone(&value.data_type(), to)).then(|| convert_scalar(&value, engine_type(to)?).ok())?
        }
        _ => None,
    }
}

/// Whether a conversion depends on the session's time zone, which is that of when it is evaluated.
pub(crate) fn needs_zone(from: &ArrowType, to: &ArrowType) -> bool {
    use ArrowType::{Date32, Timestamp};
    let local = |t: &ArrowType| matches!(t, Date32 | Timestamp(_, None));
    let moment = is_zoned;
    (local(from) && moment(to)) || (moment(from) && local(to))
}

/// A constant that is compared, as its value alone: equal constants are then equal expressions, whatever type was
/// written. What fails is told when it is evaluated. Whether the expression was changed.
///
/// Upstream: the optimiser takes `x <> 'a' AND x = 'a'` for `x = 'a'` where one literal has metadata.
pub(crate) fn value_alone(expr: &mut Expr) -> bool {
    if matches!(expr, Expr::Literal(_, None)) {
        return false;
    }
    let Some(value) = converted(expr) else { return false };
    *expr = Expr::Literal(value, None);
    true
}

/// The value of a literal, converted or not.
fn converted(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::ScalarFunction(call) => {
            let conversion = (call.func.inner().as_ref() as &dyn Any).downcast_ref::<Conversion>()?;
            convert_scalar(&converted(&call.args[0])?, conversion.to).ok()
        }
        _ => None,
    }
}

/// A quoted literal, a parameter without a type, NULL.
pub(crate) fn is_open(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, metadata) => metadata.is_none(),
        Expr::Placeholder(Placeholder { field: None, .. }) => true,
        _ => false,
    }
}

/// Whether an expression depends on the row: PostgreSQL compares such an item of a list by itself.
pub(crate) fn reads_row(item: &Expr) -> bool {
    let reads = item.exists(|expr| {
        Ok(match expr {
            Expr::Column(_) => true,
            Expr::ScalarSubquery(subquery)
            | Expr::Exists(Exists { subquery, .. })
            | Expr::InSubquery(InSubquery { subquery, .. })
            | Expr::SetComparison(SetComparison { subquery, .. }) => !subquery.outer_ref_columns.is_empty(),
            _ => false,
        })
    });
    reads.unwrap_or(true)
}

/// A date's midnight, a timestamp's microseconds.
pub(crate) fn micros_of(array: &ArrayRef) -> Result<PrimitiveArray<TimestampMicrosecondType>> {
    let array = match array.data_type() {
        of if is_timestamp(of) => engine_array(array).map_err(tunnel)?,
        ArrowType::Date32 | ArrowType::Utf8 => convert_array(array, DataType::Timestamp)?,
        ArrowType::Null => return Ok(PrimitiveArray::new_null(array.len())),
        other => return internal_err!("{other} is no time"),
    };
    Ok(array.as_primitive::<TimestampMicrosecondType>().clone())
}

/// Of a timestamp with time zone, or what becomes one.
pub(crate) fn moments_of(array: &ArrayRef) -> Result<PrimitiveArray<TimestampMicrosecondType>> {
    match array.data_type() {
        ArrowType::Null => micros_of(array),
        _ => micros_of(&convert_array(array, DataType::Timestamptz)?),
    }
}
