//! Rules of ours in DataFusion's planner: where its own give answers that PostgreSQL would not.
//!
//! 1. An answer is PostgreSQL's, or the statement is refused with 0A000.
//! 2. A rule mends what is wrong at its root: it replaces DataFusion's rule or keeps a plan from it; no example is
//!    special.
//! 3. What is wrong in DataFusion is told beside the rule, in a paragraph that begins with `Upstream:`.
mod applied;
mod asking;
mod chunks;
mod common_expressions;
mod common_types;
mod cross_joins;
mod expressions;
mod failing_constants;
mod held_filters;
mod listed;
mod lists_apart;
mod long_conditions;
mod marks;
mod membership;
mod null_conditions;
mod projections;
mod properties;
mod set_operations;
mod shapes;

pub(crate) use applied::Applied;
pub(crate) use chunks::{cut, is_deep, is_plain};
pub(crate) use common_types::{settle, settle_branches, settle_window, settled_union};
pub(crate) use expressions::Rewrite;
pub(crate) use failing_constants::{compute, refuse_failing};
pub(crate) use marks::{named, optional};
pub(crate) use set_operations::is_of_sets;

use crate::error::{tunnel, unsupported};
use crate::plan::apply::is_given;
use crate::plan::first_rows::FirstRows;
use crate::plan::key_joins::FewFirst;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use std::sync::Arc;

/// DataFusion's rules for logical plans, but those that [`held_filters`], [`lists_apart`], [`cross_joins`] and
/// [`common_expressions`] replace, and those for columns of structs, of which there are none. Each asks whether it may
/// go on.
pub(crate) fn logical() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let rules = Optimizer::new().rules.into_iter();
    let kept = rules.filter(|rule| !matches!(rule.name(), "extract_leaf_expressions" | "push_down_leaf_projections"));
    let kept = kept.map(|rule| match rule.name() {
        "push_down_filter" => Arc::new(held_filters::HeldFilters::default()) as Arc<dyn OptimizerRule + Send + Sync>,
        "simplify_expressions" => Arc::new(lists_apart::ListsApart::default()),
        "eliminate_cross_join" => Arc::new(cross_joins::CrossJoins::default()),
        "common_sub_expression_eliminate" => Arc::new(common_expressions::CommonExpressions::default()),
        _ => rule,
    });
    let (first, last): (asking::Logical, [asking::Logical; 2]) = (
        Arc::new(failing_constants::FailingConstants),
        [Arc::new(null_conditions::NullConditions), Arc::new(listed::ListedItems)],
    );
    std::iter::once(first).chain(kept).chain(last).map(asking::logical).collect()
}

/// DataFusion's rules for physical plans, after ours, but that which [`projections`] replaces. Left out is what finds
/// nothing here: there is one partition, and nothing is known of how many rows a table has. Left out is also the
/// push-down of filters in physical plans: that in logical plans has brought them as far as they may go, and scans take
/// none from it.
///
/// Upstream: `FilterPushdown` finds the columns of a `ProjectionExec` by their names alone. Where two have one name
/// (`a.id` and `b.id` over `a RIGHT JOIN b`, which `JoinSelection` turns round), a filter of the one becomes a filter
/// of the other and passes the join: `WHERE abs(a.id) > 0` kept rows without an `a`.
pub(crate) fn physical() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let theirs = PhysicalOptimizer::new().rules.into_iter();
    let theirs = theirs.filter(|rule| {
        let left_out = ["aggregate_statistics", "TopKRepartition", "FilterPushdown", "FilterPushdown(Post)"];
        !left_out.contains(&rule.name())
    });
    let theirs = theirs.map(|rule| match rule.name() {
        "ProjectionPushdown" => Arc::new(projections::Projections) as asking::Physical,
        _ => rule,
    });
    let ours: [asking::Physical; 3] = [Arc::new(FirstRows), Arc::new(FewFirst), Arc::new(properties::HonestProperties)];
    ours.into_iter().chain(theirs).map(asking::physical).collect()
}

/// One statement's rewriting of plans, node by node from the leaves, once types are settled.
#[derive(Default)]
pub(crate) struct Semantics {
    memberships: membership::Memberships,
}

impl Semantics {
    pub(crate) fn rewrite(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        refuse_volatile(&plan)?;
        self.memberships.rewrite(plan)?.transform_data(set_operations::rewrite)
    }
}

/// Upstream: a volatile function in ON of an outer join is computed once for each row of one side.
fn refuse_volatile(plan: &LogicalPlan) -> Result<()> {
    match plan {
        LogicalPlan::Join(join) if join.join_type.is_outer() && join.filter.as_ref().is_some_and(Expr::is_volatile) => {
            Err(tunnel(unsupported("a volatile function in the condition of an outer join")))
        }
        _ => Ok(()),
    }
}

/// Whether something in a plan, its subqueries included, is computed anew each time. (Values that are put into it are
/// the same for a whole run.)
pub(crate) fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut volatile = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            volatile |= expr.exists(|part| Ok(part.is_volatile_node() && !is_given(part)))?;
            Ok(if volatile { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(volatile)
}
