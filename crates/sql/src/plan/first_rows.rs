//! The first rows of a table in the order of an index (`ORDER BY id LIMIT 20`): the index is read from its beginning or
//! its end, and no further than is wanted. (Where that is the whole statement, it goes [by key](crate::by_key).)
//!
//! 1. Nothing but columns stands between the order and the table. With a condition, rows that fulfil it may stand far
//!    from the beginning of the index; then all rows are read, and the first are kept.
//! 2. The sort stays, and goes where DataFusion sees that the rows are in its order.
use crate::plan::key_joins::replaced;
use crate::plan::scan::ScanExec;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct FirstRows;

impl PhysicalOptimizerRule for FirstRows {
    fn name(&self) -> &str {
        "first_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|node| {
            let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(Transformed::no(node)) };
            Ok(match by_index(sort) {
                Some((path, scan)) => Transformed::yes(replaced(&node, &path, scan)?),
                None => Transformed::no(node),
            })
        })
        .data()
    }
}

/// The scan by an index, and where it stands below the sort.
fn by_index(sort: &SortExec) -> Option<(Vec<usize>, Arc<dyn ExecutionPlan>)> {
    let (rows, schema) = (sort.fetch()?, sort.input().schema());
    let nulls_are_last = |at: usize, down: bool, first: bool| first == down || !schema.field(at).is_nullable();
    let column = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Column>().map(Column::index);
    let by = sort.expr().iter().map(|by| {
        let (at, down) = (column(&by.expr)?, by.options.descending);
        let floats = schema.field(at).data_type().is_floating();
        (!floats && nulls_are_last(at, down, by.options.nulls_first)).then_some((at, down))
    });
    let mut by: Vec<(usize, bool)> = by.collect::<Option<_>>()?;
    let (mut path, mut below) = (vec![0], sort.input());
    while let Some(projection) = below.downcast_ref::<ProjectionExec>() {
        for (at, _) in &mut by {
            *at = column(&projection.expr().get(*at)?.expr)?;
        }
        path.push(0);
        below = projection.input();
    }
    let scan = below.downcast_ref::<ScanExec>()?.in_order(&by, rows)?;
    Some((path, Arc::new(scan)))
}
