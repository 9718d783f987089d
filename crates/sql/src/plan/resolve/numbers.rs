//! What numbers become where they stand beside others, plain numerics above all.
use super::{converted, is_float, is_number};
use crate::functions::arithmetic::{self, Function};
use crate::functions::convert::convert;
use crate::values::decimal::is_decimal;
use crate::values::{arrow_type, engine_type, is_zoned, to_scalar};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, Subquery};
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
    let types = [value.get_type(schema)?, subquery.subquery.schema().field(0).data_type().clone()];
    let Some(to) = compared_in(&types) else { return Ok(()) };
    if types[0] != arrow_type(to) {
        *value = convert(std::mem::take(value), to);
    }
    subquery.subquery = converted(&subquery.subquery, &[Some(to)])?;
    Ok(())
}

/// `None`: DataFusion compares them in the same type.
fn compared_in(types: &[ArrowType; 2]) -> Option<DataType> {
    let are_times = types.iter().all(|t| matches!(t, ArrowType::Date32 | ArrowType::Timestamp(_, None)));
    let are_numbers = types.iter().all(is_number);
    match () {
        _ if types[0] == types[1] => None,
        _ if are_times => Some(DataType::Timestamp),
        _ if !are_numbers => None,
        // No operator has such a pair of types, and doubles are preferred.
        _ if types.iter().any(is_float) => Some(DataType::Float8),
        _ if arithmetic::compared_as_plain(types.iter()) => Some(DataType::Numeric(None)),
        _ => None,
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
