//! A condition that is NULL whatever the row is: nothing is read for it, and what stands beside it is not computed.
//!
//! 1. A NULL below nothing but AND and OR keeps no row, as `false` keeps none: `NULL AND x` is false, and `NULL OR x`
//!    is x. So `WHERE a + 1 BETWEEN NULL AND b OR c` does not fail where `a + 1` is out of range. A constant that fails
//!    beside it (`1 / 0`) has failed before ([`super::failing_constants`]).
//!
//! Source: PostgreSQL 15, `canonicalize_qual` (optimizer/prep/prepqual.c).
use crate::functions::nulls::{has_open_constant, is_null};
use crate::plan::resolve::joined;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator, lit};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

#[derive(Debug)]
pub(crate) struct NullConditions;

impl OptimizerRule for NullConditions {
    fn name(&self) -> &str {
        "null_conditions"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(Filter { predicate, input, .. }) = &plan else { return Ok(Transformed::no(plan)) };
        if !has_null(predicate) || has_open_constant(predicate)? {
            return Ok(Transformed::no(plan));
        }
        let kept = without_nulls(predicate.clone());
        Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(kept, input.clone())?)))
    }
}

/// The sides of a chain of ANDs, or of ORs, in their order, without recursion: there may be thousands.
fn sides(expr: &Expr, op: Operator) -> Vec<&Expr> {
    let (mut left, mut found) = (vec![expr], vec![]);
    while let Some(expr) = left.pop() {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left: one, op: own, right: other }) if *own == op => {
                left.extend([other.as_ref(), one.as_ref()]);
            }
            expr => found.push(expr),
        }
    }
    found
}

fn chain_of(expr: &Expr) -> Option<Operator> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => Some(*op),
        _ => None,
    }
}

/// Whether a NULL stands where it is as good as false: under nothing but AND and OR.
fn has_null(condition: &Expr) -> bool {
    match chain_of(condition) {
        Some(op) => sides(condition, op).into_iter().any(has_null),
        None => is_null(condition),
    }
}

/// Invariant 1.
fn without_nulls(condition: Expr) -> Expr {
    let Some(op) = chain_of(&condition) else {
        return if is_null(&condition) { lit(false) } else { condition };
    };
    let made = sides(&condition, op).into_iter().map(|side| without_nulls(side.clone()));
    let is_false = |side: &Expr| matches!(side, Expr::Literal(ScalarValue::Boolean(Some(false)), _));
    let made: Vec<Expr> = made.filter(|side| op == Operator::And || !is_false(side)).collect();
    match op {
        Operator::And if made.iter().any(is_false) => lit(false),
        Operator::Or if made.is_empty() => lit(false),
        op => joined(made, op),
    }
}
