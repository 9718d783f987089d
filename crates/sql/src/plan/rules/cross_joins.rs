//! Joins by IS NOT DISTINCT FROM stay as they are.
//!
//! 1. DataFusion's `eliminate_cross_join` is not run on a plan in which an inner join treats NULLs as equal.
//!
//! Upstream: `EliminateCrossJoin` flattens a tree of inner joins and makes all of them anew with the null equality of
//! the topmost. `a JOIN b ON a.x IS NOT DISTINCT FROM b.x CROSS JOIN c` loses the rows whose x is NULL; below a join by
//! IS NOT DISTINCT FROM, `a.x = b.x` is true of two NULLs.
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// [`EliminateCrossJoin`], except on plans with such a join.
#[derive(Debug, Default)]
pub(crate) struct CrossJoins {
    inner: EliminateCrossJoin,
}

impl OptimizerRule for CrossJoins {
    fn name(&self) -> &str {
        "eliminate_cross_join"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.inner.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let mut found = false;
        plan.apply_with_subqueries(|node| {
            found |= matches!(node, LogicalPlan::Join(join) if join.join_type == JoinType::Inner
                && join.null_equality == NullEquality::NullEqualsNull);
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if found { Ok(Transformed::no(plan)) } else { self.inner.rewrite(plan, config) }
    }
}
