//! Joins that let a cancel through.
//!
//! DataFusion's plans yield where they read a table. A join multiplies what it has read: it may go on for hours before
//! it reads again, and a task that never yields sees no cancel. A physical rule makes joins and recursive queries yield
//! where they emit.
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct YieldingJoins;

impl PhysicalOptimizerRule for YieldingJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            if node.name().ends_with("JoinExec") || node.name() == "RecursiveQueryExec" {
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
