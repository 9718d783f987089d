//! Projections that only hand columns on go, or move below what needs fewer columns for it.
//!
//! Upstream: DataFusion's `ProjectionPushdown` does this, and besides computes parts of a nested loop join's filter
//! below the join. It finds the columns of such a part by their names alone: with two columns of one name, as in
//! `1 > b.id - a.id` over `a CROSS JOIN b`, it computes `1 > id - id`, and the join keeps every row.
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::remove_unnecessary_projections;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Projections;

impl PhysicalOptimizerRule for Projections {
    fn name(&self) -> &str {
        "projections"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(remove_unnecessary_projections).data()
    }
}
