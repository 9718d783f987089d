//! The columns of a plan's nodes, as EXPLAIN VERBOSE tells them: `t.a` of a table, an expression otherwise.
//!
//! 1. A column that nodes pass on is told by the same text in each. So it can be followed from the scan to the root.
//! 2. Columns of two scans of one table are told apart: the second scan of `t` is called `t_1`.
use crate::plan::naming::shown;
use crate::statement::explain::tree::without_positions;
use datafusion::common::JoinType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use std::sync::Arc;

/// How two inputs are joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Join {
    /// PostgreSQL's name.
    pub(super) kind: &'static str,
    /// Whether it is the rows of the second input that an outer join keeps.
    pub(super) keeps_right: bool,
}

impl Join {
    fn of(kind: JoinType) -> Join {
        use JoinType::{Full, Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
        let name = match kind {
            Inner => "Inner",
            Left | Right => "Left",
            Full => "Full",
            LeftSemi | RightSemi => "Semi",
            LeftAnti | RightAnti => "Anti",
            LeftMark | RightMark => "Mark",
        };
        Join { kind: name, keeps_right: matches!(kind, Right | RightAnti | RightMark | RightSemi) }
    }
}

fn join_type(plan: &Arc<dyn ExecutionPlan>) -> Option<JoinType> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return Some(*join.join_type());
    }
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        return Some(*join.join_type());
    }
    if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        return Some(join.join_type());
    }
    plan.is::<CrossJoinExec>().then_some(JoinType::Inner)
}

/// `None`: it is no join.
pub(super) fn join(plan: &Arc<dyn ExecutionPlan>) -> Option<Join> {
    join_type(plan).map(Join::of)
}

fn own(plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
    plan.schema().fields().iter().map(|field| shown(field.name()).to_owned()).collect()
}

/// Of a scan.
pub(super) fn of_table(plan: &Arc<dyn ExecutionPlan>, called: &str) -> Vec<String> {
    own(plan).iter().map(|column| format!("{called}.{column}")).collect()
}

/// `inputs`: the columns of the nodes below it.
pub(super) fn of(plan: &Arc<dyn ExecutionPlan>, inputs: &[&[String]]) -> Vec<String> {
    let own = own(plan);
    match passed_on(plan, inputs) {
        Some(known) if known.len() == own.len() => known,
        _ => own,
    }
}

/// `None`: nothing is known.
fn passed_on(plan: &Arc<dyn ExecutionPlan>, inputs: &[&[String]]) -> Option<Vec<String>> {
    if let Some(kind) = join_type(plan) {
        return joined(plan, kind, inputs);
    }
    let [input] = inputs else { return None };
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return projection.expr().iter().map(|item| written(&item.expr, input)).collect();
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return picked(input.to_vec(), filter.projection().as_deref());
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr().expr().iter().map(|(expr, _)| written(expr, input));
        let groups = groups.collect::<Option<Vec<String>>>()?;
        let rest = own(plan).split_off(groups.len().min(plan.schema().fields().len()));
        return Some(groups.into_iter().chain(rest).collect());
    }
    let [below] = plan.children()[..] else { return None };
    let (own, theirs) = (plan.schema(), below.schema());
    let mut names = own.fields().iter().zip(theirs.fields());
    (own.fields().len() == theirs.fields().len() && names.all(|(a, b)| a.name() == b.name())).then(|| input.to_vec())
}

fn joined(plan: &Arc<dyn ExecutionPlan>, kind: JoinType, inputs: &[&[String]]) -> Option<Vec<String>> {
    use JoinType::{LeftAnti, LeftMark, LeftSemi, RightAnti, RightMark, RightSemi};
    let [left, right] = inputs else { return None };
    let mark = || vec!["mark".to_owned()];
    let all = match kind {
        LeftSemi | LeftAnti => left.to_vec(),
        RightSemi | RightAnti => right.to_vec(),
        LeftMark => [left.to_vec(), mark()].concat(),
        RightMark => [right.to_vec(), mark()].concat(),
        _ => [*left, *right].concat(),
    };
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return picked(all, join.projection.as_deref());
    }
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        return picked(all, join.projection().as_deref());
    }
    Some(all)
}

fn picked(columns: Vec<String>, positions: Option<&[usize]>) -> Option<Vec<String>> {
    match positions {
        Some(positions) => positions.iter().map(|at| columns.get(*at).cloned()).collect(),
        None => Some(columns),
    }
}

/// An expression over such columns.
fn written(expr: &Arc<dyn PhysicalExpr>, input: &[String]) -> Option<String> {
    if let Some(column) = expr.downcast_ref::<Column>() {
        return input.get(column.index()).cloned();
    }
    let named = expr.clone().transform_up(|part| {
        let column =
            part.downcast_ref::<Column>().and_then(|column| Some((column.index(), input.get(column.index())?)));
        Ok(match column {
            Some((at, name)) => Transformed::yes(Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>),
            None => Transformed::no(part),
        })
    });
    Some(format!("({})", without_positions(&named.ok()?.data.to_string().replace('\0', ""))))
}
