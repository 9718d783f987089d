//! PostgreSQL's meaning of casts and operators.
//!
//! This is an analyzer rule that runs after type coercion. It replaces DataFusion's cast by the functions of
//! [`crate::functions::convert`] wherever the two differ. It replaces DataFusion's remaining operators by the checked
//! functions of [`crate::functions::arithmetic`]. Result columns keep their names.
use crate::cast::{Castable, cannot_cast, castable};
use crate::error::tunnel;
use crate::functions::arithmetic::{Function, is_number};
use crate::functions::convert::{convert, convert_scalar, is_written};
use crate::plan::rules::{Rewrite, Semantics, optional};
use crate::values::field_type;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::analyzer::AnalyzerRule;

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
                    Ok(Transformed::yes(crate::functions::bounded::joined(*left, *right)))
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
    // Casts to views, dictionaries or other units are DataFusion's own, and stay as they are.
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
