//! What numbers become where they stand beside others, plain numerics above all.
use super::{is_float, is_number};
use crate::functions::arithmetic::{self, Function};
use crate::functions::chars;
use crate::functions::convert::{convert, to_compare};
use crate::plan::naming;
use crate::values::decimal::is_decimal;
use crate::values::{arrow_type, engine_type, is_zoned, to_scalar};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Subquery};
use std::sync::Arc;
use terrace_engine::types::Decimal;
use terrace_engine::{DataType, Datum};

/// `- value`
pub(super) fn negated(value: Expr) -> Expr {
    let zero = to_scalar(&Datum::Decimal(Decimal::from_int(0).encode()), DataType::Numeric(None));
    Function::Subtract.call(Expr::Literal(zero, None), value)
}

/// Plain numerics as doubles: DataFusion has no cast of them.
pub(super) fn as_doubles(args: &mut [Expr], schema: &DFSchema) -> Result<()> {
    for arg in args {
        if is_decimal(&arg.get_type(schema)?) {
            *arg = convert(std::mem::take(arg), DataType::Float8);
        }
    }
    Ok(())
}

/// A value and a query's one column, in the type in which PostgreSQL compares them.
pub(super) fn in_subquery(value: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<()> {
    let correlated = !subquery.outer_ref_columns.is_empty();
    let before = subquery.subquery.clone();
    chars::in_subquery(value, subquery, schema)?;
    if let LogicalPlan::Projection(made) = subquery.subquery.as_ref()
        && correlated
        && !Arc::ptr_eq(&before, &subquery.subquery)
    {
        let column = made.expr[0].clone().unalias().alias(name_apart(made.schema.field(0)));
        subquery.subquery = Arc::new(LogicalPlanBuilder::from(before.as_ref().clone()).project(vec![column])?.build()?);
    }
    let types = [value.get_type(schema)?, subquery.subquery.schema().field(0).data_type().clone()];
    let Some(to) = compared_in(&types) else { return Ok(()) };
    let whole = |of: &ArrowType| matches!(of, ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64);
    let whole = types.iter().all(whole);
    if whole && !correlated {
        return Ok(()); // DataFusion does the same.
    }
    let made = |expr: Expr, of: &ArrowType| match () {
        _ if *of == arrow_type(to) => expr,
        _ if whole => datafusion::logical_expr::cast(expr, arrow_type(to)),
        _ => to_compare(expr, to),
    };
    *value = made(std::mem::take(value), &types[0]);
    if types[1] == arrow_type(to) {
        return Ok(());
    }
    let (qualifier, field) = subquery.subquery.schema().qualified_field(0);
    let column = made(Expr::Column((qualifier, field).into()), &types[1]);
    let column = match correlated {
        true => column.alias(name_apart(field)),
        false => column.alias_qualified(qualifier.cloned(), field.name()),
    };
    let rows = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
    subquery.subquery = Arc::new(rows.project(vec![column])?.build()?);
    Ok(())
}

/// A name for a column that was converted. The column itself may come to stand beside it, if it is compared with the
/// query around.
fn name_apart(column: &Field) -> String {
    naming::numbered(naming::shown(column.name()), usize::MAX)
}

/// `None`: they are of one type, or compared in no other way than DataFusion's.
fn compared_in(types: &[ArrowType; 2]) -> Option<DataType> {
    let are_times = types.iter().all(|t| matches!(t, ArrowType::Date32 | ArrowType::Timestamp(..)));
    let are_numbers = types.iter().all(is_number);
    match types {
        _ if types[0] == types[1] => None,
        _ if are_times && types.iter().any(is_zoned) => Some(DataType::Timestamptz),
        _ if are_times => Some(DataType::Timestamp),
        _ if !are_numbers => None,
        // No operator has such a pair of types, and doubles are preferred.
        _ if types.iter().any(is_float) => Some(DataType::Float8),
        _ if arithmetic::compared_as_plain(types.iter()) => Some(DataType::Numeric(None)),
        _ if types.iter().any(is_numeric) => {
            let digits = types.iter().map(arithmetic::digits).collect::<Option<Vec<(u8, i8)>>>()?;
            let scale = digits.iter().map(|(_, scale)| *scale).max()?;
            let before = digits.iter().map(|(precision, scale)| *precision as i8 - scale).max()?;
            Some(DataType::Numeric(Some(((before + scale) as u8, scale as u8))))
        }
        [left, right] => engine_type(if rank(left) > rank(right) { left } else { right }),
    }
}

/// Of numerics with precision and scale, or without.
pub(crate) fn is_array_of_numerics(data_type: &ArrowType) -> bool {
    let item = engine_type(data_type).and_then(DataType::item);
    matches!(item, Some(DataType::Numeric(_)))
}

/// What two types become where both are numbers, or both times; `None`: one stays.
pub(super) fn wider(left: &ArrowType, right: &ArrowType) -> (Option<DataType>, Option<DataType>) {
    let time = |t: &ArrowType| match t {
        ArrowType::Date32 => Some((0, DataType::Date)),
        ArrowType::Timestamp(_, None) => Some((1, DataType::Timestamp)),
        _ if is_zoned(t) => Some((2, DataType::Timestamptz)),
        _ => None,
    };
    let number = |t: &ArrowType| if is_number(t) { Some((rank(t), engine_type(t)?)) } else { None };
    let exact = |t: &ArrowType| is_number(t) && !is_float(t);
    if left != right && exact(left) && exact(right) && (is_numeric(left) || is_numeric(right)) {
        let to = engine_type(&arithmetic::united([left, right].into_iter()));
        return (to, to);
    }
    let both = time(left).zip(time(right)).or_else(|| number(left).zip(number(right)));
    match both {
        Some(((a, _), (b, to))) if a < b => (Some(to), None),
        Some(((a, to), (b, _))) if a > b => (None, Some(to)),
        _ => (None, None),
    }
}

/// The wider of two numbers has the greater rank.
pub(super) fn rank(number: &ArrowType) -> u8 {
    match number {
        ArrowType::Int16 => 0,
        ArrowType::Int32 => 1,
        ArrowType::Int64 => 2,
        ArrowType::Float32 => 4,
        ArrowType::Float64 => 5,
        _ => 3,
    }
}

/// A numeric with precision and scale, or without.
pub(super) fn is_numeric(data_type: &ArrowType) -> bool {
    is_number(data_type) && rank(data_type) == 3
}
