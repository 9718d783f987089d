//! DataFusion's rules, wrapped so that each asks before its steps whether the statement may go on: it may have been
//! cancelled, have timed out, or have taken too much memory. Planning never waits, so nothing else would notice. Behind
//! each rule, long conditions become flat ones again ([`long_conditions`](super::long_conditions)).
use super::long_conditions::{flattened, with_stack};
use crate::error::tunnel;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
use std::fmt::Debug;
use std::sync::Arc;

pub(super) type Logical = Arc<dyn OptimizerRule + Send + Sync>;
pub(super) type Physical = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

pub(super) fn logical(rule: Logical) -> Logical {
    Arc::new(Asking(rule))
}

pub(super) fn physical(rule: Physical) -> Physical {
    Arc::new(Asking(rule))
}

#[derive(Debug)]
struct Asking<R: ?Sized + Debug>(Arc<R>);

impl OptimizerRule for Asking<dyn OptimizerRule + Send + Sync> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        crate::memory::check().map_err(tunnel)?;
        with_stack(plan, |plan| flattened(self.0.rewrite(plan, config)?))
    }
}

impl PhysicalOptimizerRule for Asking<dyn PhysicalOptimizerRule + Send + Sync> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        crate::memory::check().map_err(tunnel)?;
        self.0.optimize(plan, config)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        crate::memory::check().map_err(tunnel)?;
        self.0.optimize_with_context(plan, context)
    }
}
