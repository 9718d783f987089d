//! Functions that wait (`pg_sleep`, `pg_advisory_lock`) are called for rows that the other conditions of a WHERE leave.
//!
//! DataFusion computes such functions in a node of their own below the filter, for all rows. A physical rule puts a
//! filter of the conditions that do not need them below that node. The filter above stays as it is.
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{conjunction, split_conjunction};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::async_func::AsyncFuncExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct WaitingLast;

impl PhysicalOptimizerRule for WaitingLast {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match filtered_before(&node)? {
            Some(waiting) => Ok(Transformed::yes(replace_children_if_necessary(node, vec![waiting])?)),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "waiting_last"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The node below a filter that computes functions that wait, over fewer rows.
fn filtered_before(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(None) };
    if !filter.input().is::<AsyncFuncExec>() {
        return Ok(None);
    }
    let waiting = filter.input().clone();
    let Some(input) = waiting.children().first().map(|input| Arc::clone(input)) else { return Ok(None) };
    // What waits becomes columns behind those of the input.
    let known = input.schema().fields().len();
    let needs_none = |condition: &&Arc<dyn PhysicalExpr>| {
        !is_volatile(condition) && collect_columns(condition).iter().all(|column| column.index() < known)
    };
    let conditions: Vec<_> = split_conjunction(filter.predicate()).into_iter().filter(needs_none).cloned().collect();
    if conditions.is_empty() {
        return Ok(None);
    }
    let before = FilterExec::try_new(conjunction(conditions), input)?;
    Ok(Some(replace_children_if_necessary(waiting, vec![Arc::new(before)])?))
}
