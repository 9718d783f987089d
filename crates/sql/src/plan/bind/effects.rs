//! Functions that are called for what they do: those of advisory locks, `pg_terminate_backend`, `pg_notify`, `setseed`.
//!
//! 1. Those that wait are called for each row before anything else is computed of it. So they are refused (0A000) where
//!    it depends on something else whether they are called: in CASE, COALESCE, OR, and AND but for conditions that
//!    stand beside each other in WHERE.
//! 2. A column that nobody reads is not computed, whatever its function does. So they stand where somebody reads them:
//!    among the columns of the whole statement, and in WHERE. Elsewhere (in FROM, in a derived table, a subquery or a
//!    WITH, in a view) they are refused: a program would believe that it has a lock. A cursor reads ahead, so that they
//!    would be called for rows that nobody has fetched: DECLARE refuses them, too.
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

/// Invariant 2.
pub(super) fn refuse_unread(plan: &LogicalPlan) -> Result<()> {
    let mut root = plan;
    while let LogicalPlan::Limit(_) | LogicalPlan::Sort(_) | LogicalPlan::Distinct(_) = root {
        let Some(input) = root.inputs().first().copied() else { break };
        root = input;
    }
    // The aggregates that its columns read.
    let mut grouped = root.inputs().first().copied();
    while let Some(LogicalPlan::Filter(having)) = grouped {
        grouped = Some(having.input.as_ref());
    }
    let grouped = grouped.filter(|node| matches!(node, LogicalPlan::Aggregate(_)));
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        let at_root = std::ptr::eq(node, root) || grouped.is_some_and(|grouped| std::ptr::eq(node, grouped));
        let is_read = at_root || matches!(node, LogicalPlan::Filter(_));
        node.apply_expressions(|expr| {
            found |= !is_read && expr.exists(|part| Ok(is_called(part)))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    let what =
        "a function of advisory locks, pg_terminate_backend, pg_notify or setseed, where its answer may go unread";
    if found { unsupported(what) } else { Ok(()) }
}

fn is_called(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if advisory::has_effect(call.func.name()))
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
