//! INTERSECT ALL and EXCEPT ALL count how often a row occurs.
//!
//! Equal rows are numbered on each side. With their numbers the rows are distinct, so the semi or anti join that
//! DataFusion plans keeps the smaller count, or the difference of the counts.
//!
//! Upstream: `LogicalPlanBuilder::intersect` and `except` with `is_all` plan a semi or anti join of the rows
//! themselves, which keeps all occurrences of a row or none.
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionDefinition};
use datafusion::logical_expr::{Distinct, Expr, Join, LogicalPlan, LogicalPlanBuilder};
use std::sync::Arc;

/// The names of the numbers. No name a user can write contains a NUL.
const NUMBERS: [&str; 2] = ["\0left number", "\0right number"];

pub(crate) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Join(join) if keeps_all(&join) => Ok(Transformed::yes(numbered_join(join)?)),
        other => Ok(Transformed::no(other)),
    }
}

/// Only set operations take NULLs for equal.
pub(crate) fn is_of_sets(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
}

/// Those that are not ALL make their left side distinct.
fn keeps_all(join: &Join) -> bool {
    is_of_sets(join)
        && !matches!(join.left.as_ref(), LogicalPlan::Distinct(Distinct::All(_)))
        && !join.left.schema().has_column_with_unqualified_name(NUMBERS[0])
}

fn numbered_join(join: Join) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = join.left.schema().columns().into_iter().map(Expr::Column).collect();
    assert_eq!(join.on.len(), columns.len(), "rows are equal in all columns");
    let (mut left_keys, mut right_keys): (Vec<Expr>, Vec<Expr>) = join.on.into_iter().unzip();
    let left = numbered(&join.left, left_keys.clone(), NUMBERS[0])?;
    let right = numbered(&join.right, right_keys.clone(), NUMBERS[1])?;
    left_keys.push(Expr::Column(Column::from_name(NUMBERS[0])));
    right_keys.push(Expr::Column(Column::from_name(NUMBERS[1])));
    let joined = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        left_keys.into_iter().zip(right_keys).collect(),
        join.filter,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(joined)).project(columns)?.build()
}

/// With the number of each row among its equals.
fn numbered(plan: &Arc<LogicalPlan>, keys: Vec<Expr>, name: &str) -> Result<LogicalPlan> {
    let function = WindowFunctionDefinition::WindowUDF(row_number_udwf());
    let mut number = WindowFunction::new(function, vec![]);
    number.params.partition_by = keys;
    let number = Expr::WindowFunction(Box::new(number)).alias(name);
    LogicalPlanBuilder::from(plan.as_ref().clone()).window(vec![number])?.build()
}
