//! Projections move towards what they read, as DataFusion moves them; but no part of a join's condition becomes a
//! column of one of its sides.
//!
//! 1. A condition is computed for the pairs of rows that it is asked about, and for no other rows.
//!
//! Upstream: `ProjectionPushdown` computes `10 / a.y` of `a LEFT JOIN b ON a.y <> 0 AND 10 / a.y > b.k` for all rows of
//! `a` beforehand: a division by zero that the left side of AND guards, and that nobody asks for where `b` is empty.
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::remove_unnecessary_projections;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Projections;

impl PhysicalOptimizerRule for Projections {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(remove_unnecessary_projections).data()
    }

    fn name(&self) -> &str {
        "projections"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
