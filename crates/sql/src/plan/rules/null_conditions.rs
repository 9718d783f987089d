//! A condition that is NULL whatever the row is: nothing is read for it, and what stands beside it is not computed.
//!
//! 1. `NULL AND x` keeps no row, as `false` keeps none, so that `WHERE a + 1 BETWEEN NULL AND b` does not fail where
//!    `a + 1` is out of range. A constant that fails beside it (`1 / 0`) fails (`functions::nulls`, invariant 1).
//!
//! Source: PostgreSQL 15, `canonicalize_qual` (optimizer/prep/prepqual.c).
use crate::functions::nulls::{has_open_constant, is_null};
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
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
        let conditions = apart(predicate);
        if !conditions.iter().any(|condition| is_null(condition)) {
            return Ok(Transformed::no(plan));
        }
        for condition in conditions {
            if has_open_constant(condition)? {
                return Ok(Transformed::no(plan));
            }
        }
        Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(lit(false), input.clone())?)))
    }
}

/// The conditions that are joined by AND, without recursion: there may be thousands.
fn apart(predicate: &Expr) -> Vec<&Expr> {
    let (mut left, mut found) = (vec![predicate], vec![]);
    while let Some(expr) = left.pop() {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left: one, op: Operator::And, right: other }) => left.extend([&**one, other]),
            expr => found.push(expr),
        }
    }
    found
}
