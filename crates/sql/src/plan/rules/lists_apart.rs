//! Two conditions on the same value, each with a list, are not merged.
//!
//! 1. DataFusion's simplifier sees each IN list, and each chain of ORs (of which it makes one), within a call that it
//!    does not know. So it simplifies the list itself, but not two of them into one.
//! 2. Lists within one chain of ORs may be united: `a IN (1) OR a = 2` is `a IN (1, 2)`, also where something is NULL.
//! 3. The calls are gone when the rule ends, and names are what they were.
//!
//! Upstream: `simplify_expressions` merges `a IN (...) AND a IN (...)`, `a IN (...) AND a NOT IN (...)` and
//! `a NOT IN (...) OR a NOT IN (...)` by the items' texts. `a NOT IN (1, NULL) AND a IN (2, 3)` becomes `a IN (2, 3)`,
//! though it is never true. `a IN (b) AND a IN (c)` becomes false. If nothing is left of the lists, the answer is false
//! (or true), though it should be NULL when `a` is NULL. `a = 5` counts as a list too. Items that are not computed yet
//! count as different: `a NOT IN (abs(-5)) AND a = 5` becomes `a = 5`.
use super::marks::Mark;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, ScalarUDF, Volatility};
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::{Arc, LazyLock};

/// [`SimplifyExpressions`], except that two lists are not merged.
#[derive(Debug, Default)]
pub(crate) struct ListsApart {
    inner: SimplifyExpressions,
}

impl OptimizerRule for ListsApart {
    fn name(&self) -> &str {
        "simplify_expressions"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let mut several = false;
        plan.apply_expressions(|expr| {
            several |= has_several(expr)?;
            Ok(if several { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !several {
            return self.inner.rewrite(plan, config);
        }
        let names = NamePreserver::new(&plan);
        let mut saved = vec![];
        let hidden = plan.map_expressions(|expr| {
            saved.push((names.save(&expr), matches!(expr, Expr::Alias(_))));
            if has_several(&expr)? { expr.transform_up(hide) } else { Ok(Transformed::no(expr)) }
        })?;
        let simplified = self.inner.rewrite(hidden.data, config)?;
        let mut saved = saved.into_iter();
        // The same plan with as many expressions: it is simplified one by one.
        let shown = simplified.data.map_expressions(|expr| {
            let shown = expr.transform_up(|e| Ok(show(e)))?;
            Ok(match saved.next() {
                // A new alias bears the name that the expression had with the calls in it.
                Some((name, true)) => shown.update_data(|expr| name.restore(expr)),
                Some((name, false)) => shown.update_data(|expr| name.restore(expr.unalias())),
                None => shown,
            })
        })?;
        Ok(Transformed::new(shown.data, simplified.transformed, TreeNodeRecursion::Continue))
    }
}

/// Whether there is more than one list, or chain of ORs, in an expression; or a list beside `column = constant`, which
/// counts as one.
fn has_several(expr: &Expr) -> Result<bool> {
    let (mut lists, mut equal) = (0, false);
    expr.apply(|e| {
        lists += usize::from(matches!(e, Expr::InList(_)) || is_or(e));
        equal |= is_list_of_one(e);
        Ok(if lists > 1 { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(lists > 1 || (lists == 1 && equal))
}

/// `column = constant`, or what may become one.
fn is_list_of_one(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => match (left.as_ref(), right.as_ref()) {
            (Expr::Column(_), other) | (other, Expr::Column(_)) => !other.any_column_refs(),
            _ => false,
        },
        _ => false,
    }
}

fn is_or(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }))
}

/// From the leaves: invariants 1 and 2.
fn hide(expr: Expr) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::InList(_) => Transformed::yes(apart(expr)),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (left, right) = (Box::new(united(*left)), Box::new(united(*right)));
            Transformed::yes(apart(Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right })))
        }
        expr => Transformed::no(expr),
    })
}

/// A side of an OR: what may be united with the other side stands there as it is.
fn united(expr: Expr) -> Expr {
    let shown = show(expr);
    match &shown.data {
        Expr::InList(InList { negated: true, .. }) if shown.transformed => apart(shown.data),
        _ => shown.data,
    }
}

fn apart(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(APART.clone(), vec![expr]))
}

/// What stands within a call of [`apart`].
fn show(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::ScalarFunction(mut call) if Arc::ptr_eq(&call.func, &APART) => match call.args.pop() {
            Some(inner) => Transformed::yes(inner),
            None => Transformed::no(Expr::ScalarFunction(call)),
        },
        expr => Transformed::no(expr),
    }
}

/// Volatile, so that the simplifier neither computes it nor thinks two calls alike.
static APART: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(Mark::new("apart", Volatility::Volatile))));
