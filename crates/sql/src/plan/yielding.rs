//! Joins that let a cancel through.
//!
//! DataFusion's plans yield where they read a table. A join multiplies what it has read: it may go on for hours before
//! it reads again, and a task that never yields sees no cancel. A physical rule makes joins and recursive queries yield
//! where they emit.
//!
//! 1. At most [`MOST`] nodes that yield stand within each other. Tokio has a task yield after 128 steps, and each node
//!    on the way to a table takes one of them before the table is read: with more nodes than steps the table is never
//!    read.
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use std::sync::Arc;

/// Half of Tokio's steps: other nodes than ours may take some.
const MOST: usize = 64;

#[derive(Debug)]
pub(crate) struct YieldingJoins;

impl PhysicalOptimizerRule for YieldingJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let multiplies = node.name().ends_with("JoinExec") || node.name() == "RecursiveQueryExec";
            if multiplies && nested(node.as_ref()) < MOST {
                return Ok(Transformed::yes(Arc::new(CooperativeExec::new(node)) as _));
            }
            Ok(Transformed::no(node))
        })
        .data()
    }

    fn name(&self) -> &str {
        "yielding_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// How many nodes that yield stand within each other.
fn nested(plan: &dyn ExecutionPlan) -> usize {
    let below = plan.children().into_iter().map(|child| nested(child.as_ref())).max().unwrap_or(0);
    below + usize::from(plan.name() == "CooperativeExec")
}
