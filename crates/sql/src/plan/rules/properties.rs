//! What DataFusion may take as known of a plan's rows when it leaves out sorts.
//!
//! 1. The rows of UNION ALL come from its inputs one after the other, as one stream. DataFusion may assume nothing
//!    about their order or constants.
//! 2. A column that an outer join or grouping sets fill with NULLs is not constant, and is not known to equal another
//!    column.
//! 3. `array_agg` and `string_agg` over a subquery with ORDER BY collect in its order, and OFFSET skips its first rows.
//!
//! Upstream: `calculate_union` keeps a column that is a constant of each input (`SELECT 2 k ... UNION ALL SELECT 1
//! ...`) as a constant per partition, and merging the sorted partitions then drops it from the sort's keys.
//! `EquivalenceGroup::join` keeps the constants and equalities of an outer join's padded side, `AggregateExec` those of
//! grouping sets: ORDER BY such a column is left out. `EnforceSorting` drops the sort below an OFFSET without LIMIT
//! where nothing above asks for the order, and pushes sorts through it.
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Statistics;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::StreamExt;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct HonestProperties;

impl PhysicalOptimizerRule for HonestProperties {
    fn name(&self) -> &str {
        "honest_properties"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            if let Some(union) = node.downcast_ref::<UnionExec>() {
                return Ok(Transformed::yes(Arc::new(Append::new(union.inputs().clone(), union.schema())) as _));
            }
            if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
                let sets = aggregate.group_expr().groups().len() > 1 || !aggregate.group_expr().null_expr().is_empty();
                let input = if collects(aggregate) { in_order(aggregate.input())? } else { None };
                let kept = match input {
                    Some(input) => Transformed::yes(node.clone().replace_children(vec![input], RECOMPUTED)?),
                    None => Transformed::no(node),
                };
                return Ok(if sets { forgetting(kept.data) } else { kept });
            }
            if let Some(limit) = node.downcast_ref::<GlobalLimitExec>()
                && limit.fetch().is_none()
            {
                let Some(input) = in_order(limit.input())? else { return Ok(Transformed::no(node)) };
                let limit = node.clone().replace_children(vec![input], RECOMPUTED)?;
                return Ok(Transformed::yes(Arc::new(Forgetting::new(limit, true))));
            }
            let Some(join_type) = join_type(&node) else { return Ok(Transformed::no(node)) };
            let padded = match join_type {
                JoinType::Left => [false, true],
                JoinType::Right => [true, false],
                JoinType::Full => [true, true],
                _ => return Ok(Transformed::no(node)),
            };
            let mut changed = false;
            let children = node.children().into_iter().zip(padded).map(|(child, padded)| {
                let known = child.equivalence_properties();
                if !padded || known.eq_group().is_empty() {
                    return child.clone();
                }
                changed = true;
                forgetting(child.clone()).data
            });
            let children = children.collect::<Vec<_>>();
            match changed {
                true => Ok(Transformed::yes(node.replace_children(children, RECOMPUTED)?)),
                false => Ok(Transformed::no(node)),
            }
        })
        .data()
    }
}

const RECOMPUTED: ReplaceChildrenOptions = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);

/// Whether it collects values in the order in which they come.
fn collects(aggregate: &AggregateExec) -> bool {
    aggregate.aggr_expr().iter().any(|call| matches!(call.fun().name(), "array_agg" | "string_agg"))
}

/// The same rows in the order of the subquery's ORDER BY, if it has one: a node that needs no order would drop the sort
/// (invariant 3).
fn in_order(input: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(sort) = input.downcast_ref::<SortExec>() {
        let order = sort.expr().clone();
        return Ok(Some(Arc::new(InOrder { input: input.clone(), order })));
    }
    let children = input.children();
    let ([child], [true]) = (children.as_slice(), input.maintains_input_order().as_slice()) else { return Ok(None) };
    match in_order(child)? {
        Some(child) => Ok(Some(input.clone().replace_children(vec![child], RECOMPUTED)?)),
        None => Ok(None),
    }
}

fn join_type(node: &Arc<dyn ExecutionPlan>) -> Option<JoinType> {
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        return Some(*join.join_type());
    }
    node.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type())
}

fn forgetting(input: Arc<dyn ExecutionPlan>) -> Transformed<Arc<dyn ExecutionPlan>> {
    Transformed::yes(Arc::new(Forgetting::new(input, false)))
}

/// Hands rows on; no sort is pushed through it.
#[derive(Debug)]
struct Forgetting {
    input: Arc<dyn ExecutionPlan>,
    /// Whether the nodes above may use what is known of the rows.
    keeps: bool,
    properties: Arc<PlanProperties>,
}

impl Forgetting {
    fn new(input: Arc<dyn ExecutionPlan>, keeps: bool) -> Forgetting {
        let mut properties = PlanProperties::clone(input.properties());
        if !keeps {
            properties.set_eq_properties(EquivalenceProperties::new(input.schema()));
        }
        Forgetting { input, keeps, properties: Arc::new(properties) }
    }

    fn title(&self) -> &'static str {
        if self.keeps { "Offset" } else { "Padded" }
    }
}

impl DisplayAs for Forgetting {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.title())
    }
}

impl ExecutionPlan for Forgetting {
    fn name(&self) -> &str {
        self.title()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop().filter(|_| children.is_empty()) else { return internal_err!("one input") };
        Ok(Arc::new(Forgetting::new(input, self.keeps)))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, RECOMPUTED)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(inputs[0].clone())
    }

    fn supports_limit_pushdown(&self) -> bool {
        !self.keeps
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}

/// Hands rows on, and wants them in an order.
#[derive(Debug)]
struct InOrder {
    input: Arc<dyn ExecutionPlan>,
    order: LexOrdering,
}

impl DisplayAs for InOrder {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "InOrder")
    }
}

impl ExecutionPlan for InOrder {
    fn name(&self) -> &str {
        "InOrder"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![Some(OrderingRequirements::from(self.order.clone()))]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for key in self.order.iter() {
            if f(&key.expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop().filter(|_| children.is_empty()) else { return internal_err!("one input") };
        Ok(Arc::new(InOrder { input, order: self.order.clone() }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, RECOMPUTED)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}

/// UNION ALL (invariant 1).
#[derive(Debug)]
struct Append {
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
}

impl Append {
    fn new(inputs: Vec<Arc<dyn ExecutionPlan>>, schema: SchemaRef) -> Append {
        let mut properties = PlanProperties::clone(inputs[0].properties());
        properties.set_eq_properties(EquivalenceProperties::new(schema));
        properties.partitioning = Partitioning::UnknownPartitioning(1);
        properties.emission_type = EmissionType::Incremental;
        Append { inputs, properties: Arc::new(properties) }
    }
}

impl DisplayAs for Append {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Append")
    }
}

impl ExecutionPlan for Append {
    fn name(&self) -> &str {
        "Append"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition; self.inputs.len()]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Append::new(children, self.schema())))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, RECOMPUTED)
    }

    /// All inputs begin now, so that they see the rows of the same moment; they are read one after the other.
    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let begun = self.inputs.iter().map(|input| input.execute(0, context.clone())).collect::<Result<Vec<_>>>()?;
        let rows = futures::stream::iter(begun).flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn child_stats_requests(&self, _: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(None); self.inputs.len()]
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::try_merge_iter(inputs.iter().map(AsRef::as_ref), &self.schema())?))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::GreaterEqual
    }
}
