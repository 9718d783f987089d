//! Functions that wait for an advisory lock: they are called for each row before anything else is computed of it. So
//! they are refused (0A000) where it depends on something else whether they are called: in CASE, COALESCE, OR, and AND
//! but for conditions that stand beside each other in WHERE.
use super::{Result, unsupported};
use crate::functions::advisory;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};

pub(super) fn refuse_conditional(plan: &LogicalPlan) -> Result<()> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            let conditions = match node {
                LogicalPlan::Filter(_) => split_conjunction(expr),
                _ => vec![expr],
            };
            for condition in conditions {
                condition.apply(|within| {
                    found |= is_conditional(within) && within.exists(|part| Ok(waits(part)))?;
                    Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
                })?;
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    if found { unsupported("pg_advisory_lock where it depends on other values whether it is called") } else { Ok(()) }
}

fn is_conditional(expr: &Expr) -> bool {
    match expr {
        Expr::Case(_) | Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. }) => true,
        Expr::ScalarFunction(call) => matches!(call.func.name(), "case" | "coalesce"),
        _ => false,
    }
}

fn waits(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if advisory::waits(call.func.name()))
}
