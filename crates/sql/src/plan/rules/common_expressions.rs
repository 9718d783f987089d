//! What is not to be computed once for all who ask: constants that only look alike, EXISTS, and columns by which a scan
//! may be narrowed.
//!
//! 1. DataFusion's `common_sub_expression_eliminate` is not run on a plan in which constants of timestamp and
//!    timestamptz have one value, or are both NULL.
//! 2. It is not run on a plan with EXISTS or IN (SELECT ...) either. The next pass makes joins of those in filters
//!    ([`super::held_filters`]), if they are still there.
//! 3. It is not run on a plan with a filter that compares an integer column, as a wider integer, with a parameter or a
//!    column of a query around: `id BETWEEN $1 AND $2` with parameters of bigint. A scan knows a key only where its
//!    column stands in the condition itself ([`crate::plan::key_ranges`]).
//!
//! Upstream: `ScalarValue::TimestampMicrosecond` is compared without its time zone. So `min(timestamptz '2020-01-01
//! 00:00:00+00')` and `min(timestamp '2020-01-01 00:00:00')` are one common expression, of the first one's type.
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::common_subexpr_eliminate::CommonSubexprEliminate;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::collections::BTreeSet;

/// [`CommonSubexprEliminate`], except on such plans.
#[derive(Debug, Default)]
pub(crate) struct CommonExpressions {
    inner: CommonSubexprEliminate,
}

impl OptimizerRule for CommonExpressions {
    fn name(&self) -> &str {
        "common_sub_expression_eliminate"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.inner.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if plan.exists(|node| Ok(narrows(node)))? || must_not_merge(&plan)? {
            Ok(Transformed::no(plan))
        } else {
            self.inner.rewrite(plan, config)
        }
    }
}

/// Invariant 3.
fn narrows(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = plan else { return false };
    let is_key = |expr: &Expr| matches!(expr, Expr::Cast(cast) if matches!(cast.expr.as_ref(), Expr::Column(_)));
    let is_given = |expr: &Expr| expr.column_refs().is_empty();
    let is_of_keys =
        |op: Operator| matches!(op, Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq);
    split_conjunction(&filter.predicate).into_iter().any(|condition| match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_of_keys(*op) => {
            is_key(left) && is_given(right) || is_given(left) && is_key(right)
        }
        Expr::Between(between) => is_key(&between.expr) && is_given(&between.low) && is_given(&between.high),
        _ => false,
    })
}

fn must_not_merge(plan: &LogicalPlan) -> Result<bool> {
    // Microseconds, without a zone and with one.
    let mut seen: [BTreeSet<Option<i64>>; 2] = Default::default();
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                match expr {
                    Expr::Literal(ScalarValue::TimestampMicrosecond(micros, zone), _) => {
                        let zoned = usize::from(zone.is_some());
                        seen[zoned].insert(*micros);
                        found |= seen[1 - zoned].contains(micros);
                    }
                    Expr::Exists(_) | Expr::InSubquery(_) => found = true,
                    _ => {}
                }
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    })?;
    Ok(found)
}
