//! Numerics that a recursive query begins with.
//!
//! 1. A constant and what is computed are plain numerics in PostgreSQL, so what the query adds may have any digits.
//!    Other numerics keep the precision and scale that were written, and what is added has to have them, too (42804).
use super::Result;
use crate::functions::arithmetic::is_number;
use crate::plan::resolve::converted;
use crate::values::PG_TYPMOD;
use crate::values::decimal::is_decimal;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field};
use datafusion::logical_expr::LogicalPlan;
use std::sync::Arc;
use terrace_engine::DataType;
use terrace_grammar::statement::{Body, Expr, ExprKind, Item, Query};

/// Invariant 1. `branches`: the queries that the recursive one begins with.
pub(super) fn with_plain_numerics(start: LogicalPlan, branches: &[Query]) -> Result<LogicalPlan> {
    let is_plain = |number: usize, field: &Field| {
        let any = |is: fn(&Expr) -> bool| branches.iter().any(|branch| written(branch, number).into_iter().any(is));
        let is_said = field.metadata().contains_key(PG_TYPMOD);
        any(is_operation) || !is_said && !any(|expr| matches!(expr.kind, ExprKind::Cast { .. }))
    };
    let fields = start.schema().fields().iter().enumerate();
    let to: Vec<Option<DataType>> = fields
        .map(|(number, field)| {
            let has_digits = matches!(field.data_type(), ArrowType::Decimal128(..));
            (has_digits && is_plain(number, field)).then_some(DataType::Numeric(None))
        })
        .collect();
    Ok(Arc::unwrap_or_clone(converted(&Arc::new(start), &to)?))
}

/// What a recursive query adds, with its exact numbers as plain numerics where it began with such.
pub(super) fn as_plain_numerics(start: &LogicalPlan, step: LogicalPlan) -> Result<LogicalPlan> {
    let pairs = start.schema().fields().iter().zip(step.schema().fields());
    let to: Vec<Option<DataType>> = pairs
        .map(|(start, step)| {
            let of = step.data_type();
            let is_exact = is_number(of) && !of.is_floating();
            (is_decimal(start.data_type()) && is_exact).then_some(DataType::Numeric(None))
        })
        .collect();
    Ok(Arc::unwrap_or_clone(converted(&Arc::new(step), &to)?))
}

/// What is written for that column of a query, as far as it is.
fn written(query: &Query, number: usize) -> Vec<&Expr> {
    match &query.body {
        Body::Select(select) => {
            let is_star = |item: &Item| matches!(item.expr.kind, ExprKind::Star(_) | ExprKind::AllFields(_));
            match select.items.get(number) {
                Some(item) if !select.items[..=number].iter().any(is_star) => vec![&item.expr],
                _ => vec![],
            }
        }
        Body::Values(rows) => rows.iter().filter_map(|row| row.get(number)).collect(),
        Body::Set { branches, .. } => branches.iter().flat_map(|branch| written(branch, number)).collect(),
    }
}

fn is_operation(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Unary { .. } | ExprKind::Binary { .. })
}
