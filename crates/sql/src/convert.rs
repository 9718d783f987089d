//! Casts within queries: the type names of SQL, and a function per target type that converts as PostgreSQL does
//! ([`crate::cast`]).
//!
//! An analyzer rule, run after type coercion, puts the function in the place of DataFusion's cast wherever the two
//! differ, and the checked functions of [`crate::arithmetic`] in the place of what is left of DataFusion's operators.
//! Names of result columns stay.
use crate::arithmetic::{Function, is_number};
use crate::cast::{Castable, cannot_cast, cast_datum, castable};
use crate::error::tunnel;
use crate::rules::{Rewrite, Semantics, optional};
use crate::values::{ColumnBuilder, array_datum, engine_array, engine_type, field_of, field_type};
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::DataType as SqlType;
use std::sync::Arc;
use terrace_engine::{DataType, Datum};

/// SQL's names of types.
#[derive(Debug)]
pub(crate) struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, sql: &SqlType) -> Result<Option<FieldRef>> {
        match crate::ddl::column_type(sql) {
            // Arrow's type says all of a numeric, and a literal's digits are not to be told as a column's.
            Ok(numeric @ DataType::Numeric(_)) => {
                Ok(Some(Arc::new(Field::new("", crate::values::arrow_type(numeric), true))))
            }
            // A cast to a field without name and metadata keeps the metadata of what is cast: a char would stay one.
            Ok(DataType::Text) => Ok(Some(Arc::new(field_of("text", DataType::Text, true)))),
            Ok(data_type) => Ok(Some(Arc::new(field_of("", data_type, true)))),
            // Intervals and arrays are DataFusion's. What else it knows (tinyint, int unsigned, string) is not
            // PostgreSQL's.
            Err(error) => match sql {
                SqlType::Interval { .. } | SqlType::Array(_) => Ok(None),
                _ => Err(tunnel(error)),
            },
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Conversion {
    to: DataType,
    signature: Signature,
}

/// `expr` as a value of another type, explicitly.
pub(crate) fn convert(expr: Expr, to: DataType) -> Expr {
    let conversion = Conversion { to, signature: Signature::any(1, Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(conversion)), vec![expr]))
}

impl ScalarUDFImpl for Conversion {
    fn name(&self) -> &str {
        "convert"
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
        match &args.args[0] {
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(convert_array(array, self.to)?)),
            ColumnarValue::Scalar(scalar) => Ok(ColumnarValue::Scalar(convert_scalar(scalar, self.to)?)),
        }
    }
}

pub(crate) fn convert_array(array: &ArrayRef, to: DataType) -> Result<ArrayRef> {
    let array = engine_array(array).map_err(tunnel)?;
    if array.data_type() == &crate::values::arrow_type(to) && !matches!(to, DataType::Varchar(1..) | DataType::Char(_))
    {
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
    let mut builder = ColumnBuilder::new(to, array.len());
    for row in 0..array.len() {
        let value = match array_datum(&array, row) {
            // Plain numeric has no zeros at its end.
            Datum::Numeric(v) if to.is_text() && engine_type(array.data_type()) == Some(DataType::Numeric(None)) => {
                Datum::Numeric(v.trimmed())
            }
            value => value,
        };
        builder.push(cast_datum(value, to, true).map_err(tunnel)?.as_ref());
    }
    Ok(builder.finish())
}

pub(crate) fn convert_scalar(scalar: &ScalarValue, to: DataType) -> Result<ScalarValue> {
    if scalar.is_null() {
        return ScalarValue::try_from(&crate::values::arrow_type(to));
    }
    ScalarValue::try_from_array(&convert_array(&scalar.to_array()?, to)?, 0)
}

/// Whether DataFusion's cast is PostgreSQL's: it only widens.
fn widens(from: &ArrowType, to: &ArrowType) -> bool {
    use ArrowType::*;
    match (from, to) {
        (Null, _) => true,
        (Int16, Int32 | Int64 | Float32 | Float64) | (Int32, Int64 | Float64) | (Int64, Float64) => true,
        (Float32, Float64) | (Int8 | UInt8, Int16 | Int32 | Int64) | (UInt16 | UInt32, Int64) => true,
        (Int16, Decimal128(p, s)) => i16::from(*p) - i16::from(*s) >= 5,
        (Int32, Decimal128(p, s)) => i16::from(*p) - i16::from(*s) >= 10,
        (Int64, Decimal128(p, s)) => i16::from(*p) - i16::from(*s) >= 19,
        (Decimal128(p1, s1), Decimal128(p2, s2)) => {
            s2 >= s1 && i16::from(*p2) - i16::from(*s2) >= i16::from(*p1) - i16::from(*s1)
        }
        _ => false,
    }
}

#[derive(Debug)]
pub(crate) struct PostgresSemantics;

impl AnalyzerRule for PostgresSemantics {
    fn name(&self) -> &str {
        "postgres_semantics"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let semantics = Semantics::default();
        let kinds = |expr: &Expr| {
            matches!(expr, Expr::BinaryExpr(_) | Expr::Negative(_) | Expr::Cast(_) | Expr::ScalarSubquery(_))
        };
        let rewrite = Rewrite {
            concerns: kinds,
            expr: |expr: Expr, schema: &DFSchema| expr.transform_up(|e| rewrite(e, schema)),
            node: |plan, _: &DFSchema| semantics.rewrite(plan),
        };
        rewrite.plan(plan)
    }
}

pub(crate) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let types = (left.get_type(schema), right.get_type(schema));
            match (Function::of(op), types) {
                (Some(function), (Ok(a), Ok(b))) if a == b && is_number(&a) && !a.is_decimal() => {
                    Ok(Transformed::yes(function.call(*left, *right)))
                }
                (None, (Ok(ArrowType::Utf8), Ok(ArrowType::Utf8))) if op == Operator::StringConcat => {
                    Ok(Transformed::yes(crate::bounded::joined(*left, *right)))
                }
                _ => Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
            }
        }
        Expr::Negative(value) => match value.get_type(schema)? {
            integer @ (ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64) => {
                let zero = Expr::Literal(ScalarValue::new_zero(&integer)?, None);
                Ok(Transformed::yes(Function::Subtract.call(zero, *value)))
            }
            _ => Ok(Transformed::no(Expr::Negative(value))),
        },
        Expr::Cast(cast) => rewrite_cast(cast, schema),
        Expr::ScalarSubquery(_) => Ok(Transformed::yes(optional(expr))),
        other => Ok(Transformed::no(other)),
    }
}

fn rewrite_cast(cast: Cast, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let source = cast.expr.to_field(schema)?.1;
    let (Some(from), Some(to)) = (field_type(&source), field_type(&cast.field)) else {
        return Ok(Transformed::no(Expr::Cast(cast)));
    };
    let written = is_written(&cast.field);
    if widens(source.data_type(), cast.field.data_type()) && !written {
        return Ok(Transformed::no(Expr::Cast(cast)));
    }
    // What DataFusion coerces to views, dictionaries or other units stays its affair.
    if cast.field.data_type() != &crate::values::arrow_type(to) {
        return Ok(Transformed::no(Expr::Cast(cast)));
    }
    if castable(from, to) == Castable::Never {
        return Err(tunnel(cannot_cast(from, to)));
    }
    if let Expr::Literal(value, _) = cast.expr.as_ref()
        && !written
        && let Ok(folded) = convert_scalar(value, to)
    {
        return Ok(Transformed::yes(Expr::Literal(folded, None)));
    }
    Ok(Transformed::yes(convert(*cast.expr, to)))
}

/// Whether the field says more than its Arrow type does.
fn is_written(field: &Field) -> bool {
    !field.metadata().is_empty()
}

/// The value of a constant, cast or not; `None` where it is none, or the cast fails (which then is told when it is
/// evaluated).
pub(crate) fn constant(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(Cast { expr, field }) if !is_written(field) => {
            let value = constant(expr)?;
            convert_scalar(&value, engine_type(field.data_type())?).ok()
        }
        _ => None,
    }
}
