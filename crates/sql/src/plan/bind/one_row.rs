//! Queries about the system that are one value and take something of the query around them: `(SELECT conname FROM
//! pg_constraint WHERE conindid = i.indexrelid)`.
//!
//! DataFusion makes joins only of such queries that aggregate. They are never about more than one row.
//!
//! 1. So the least value is taken of a value, or of each column that it is computed of.
//! 2. What the value takes of the query around, and conditions on that alone, are computed there. There is a value only
//!    where these conditions hold and the query has a row.
use super::memberships::counted;
use super::scope::Scope;
use super::{Binder, Result, unsupported};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::Spans;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::functions_aggregate::expr_fn::min;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Case, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Projection, Subquery,
};
use std::sync::Arc;
use terrace_grammar::statement::Query;

impl Binder<'_> {
    /// The value of such a query; `None`: it is none.
    pub(super) fn of_one_row(&self, query: &Query, subquery: &Subquery, scope: &Scope<'_>) -> Result<Option<Expr>> {
        let aggregates = matches!(&*subquery.subquery, LogicalPlan::Projection(p) if is_aggregate(&p.input));
        if !self.of_system.get() || subquery.outer_ref_columns.is_empty() || aggregates {
            return Ok(None);
        }
        let mut query = query.clone();
        (query.order, query.limit, query.offset) = (vec![], None, None);
        let plan = self.query(&query, Some(scope), scope.ctes)?.plan;
        let (value, rows, conditions) = match plan {
            LogicalPlan::Projection(Projection { mut expr, input, .. }) if expr.len() == 1 => {
                let (rows, conditions) = apart(Arc::unwrap_or_clone(input))?;
                (expr.remove(0).unalias(), rows, conditions)
            }
            other => {
                let column = other.schema().columns().remove(0);
                (Expr::Column(column), other, vec![])
            }
        };
        let mut conditions = conditions.into_iter().map(|one| here(one, scope)).collect::<Result<Vec<Expr>>>()?;
        let has_least = !value.get_type(rows.schema())?.is_nested() && !is_json(&value.get_type(rows.schema())?);
        let value = match value.contains_outer() || !has_least {
            false => least(value, &rows)?,
            true => {
                conditions.push(counted(rows.clone())?);
                let made = value.transform_down(|part| match part {
                    Expr::Column(_) => Ok(Transformed::new(least(part, &rows)?, true, TreeNodeRecursion::Jump)),
                    other => Ok(Transformed::no(other)),
                })?;
                here(made.data, scope)?
            }
        };
        Ok(Some(match conjunction(conditions) {
            None => value,
            Some(all) => {
                let when_then = vec![(Box::new(all), Box::new(value))];
                Expr::Case(Case { expr: None, when_then_expr: when_then, else_expr: None })
            }
        }))
    }
}

fn is_json(of: &ArrowType) -> bool {
    matches!(of, ArrowType::BinaryView | ArrowType::LargeBinary)
}

fn is_aggregate(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty())
}

/// The rows without the conditions on the query around alone, and these.
fn apart(rows: LogicalPlan) -> Result<(LogicalPlan, Vec<Expr>)> {
    let LogicalPlan::Filter(Filter { predicate, input, .. }) = rows else { return Ok((rows, vec![])) };
    let of_outer = |one: &Expr| one.contains_outer() && one.column_refs().is_empty() && !has_subquery(one);
    let (outer, own): (Vec<Expr>, Vec<Expr>) = split_conjunction_owned(predicate).into_iter().partition(of_outer);
    let rows = LogicalPlanBuilder::from(Arc::unwrap_or_clone(input));
    let rows = match conjunction(own) {
        Some(own) => rows.filter(own)?,
        None => rows,
    };
    Ok((rows.build()?, outer))
}

fn has_subquery(expr: &Expr) -> bool {
    let is_one = |part: &Expr| matches!(part, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_));
    expr.exists(|part| Ok(is_one(part))).unwrap_or(true)
}

/// Invariant 1.
fn least(value: Expr, rows: &LogicalPlan) -> std::result::Result<Expr, DataFusionError> {
    let none: Vec<Expr> = vec![];
    let plan = LogicalPlanBuilder::from(rows.clone()).aggregate(none, vec![min(value)])?.build()?;
    let outer_ref_columns = plan.all_out_ref_exprs();
    Ok(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() }))
}

/// An expression of a query within, as the query around computes it (invariant 2).
fn here(expr: Expr, scope: &Scope<'_>) -> Result<Expr> {
    let mut is_here = true;
    let made = expr.transform_down(|part| match part {
        Expr::OuterReferenceColumn(_, column) => {
            is_here &= scope.schema.has_column(&column);
            Ok(Transformed::yes(Expr::Column(column)))
        }
        // Their own references are to what is here.
        Expr::ScalarSubquery(_) => Ok(Transformed::new(part, false, TreeNodeRecursion::Jump)),
        other => Ok(Transformed::no(other)),
    })?;
    match is_here {
        true => Ok(made.data),
        false => unsupported("a subquery that refers to a query two levels out"),
    }
}
