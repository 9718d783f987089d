//! EXISTS and IN of a query, where they are values and not conditions.
//!
//! DataFusion makes joins of EXISTS and IN in WHERE and HAVING. Elsewhere it makes joins only of queries that
//! aggregate. So EXISTS counts there, and IN is made of EXISTS.
//!
//! 1. A query that takes something of the queries around it is counted only where a join keeps its rows: it reads,
//!    joins, filters and sorts. Others are refused (0A000).
//! 2. `x IN (S)` is true where a row of S equals x. Else it is NULL where x is NULL and S has rows, or where S has a
//!    NULL; else it is false.
use super::scope::{Clause, Scope};
use super::{Binder, Result, unsupported};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue, Spans};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{
    Case, Distinct, Expr, ExprSchemable, JoinType, Limit, LogicalPlan, LogicalPlanBuilder, Sort, Subquery, lit,
};
use std::sync::Arc;
use terrace_grammar::statement::Query;

impl Binder<'_> {
    pub(super) fn exists(&self, query: &Query, scope: &Scope<'_>) -> Result<Expr> {
        let subquery = self.subquery(query, scope)?;
        match is_value(scope.clause.get()) {
            true => counted(Arc::unwrap_or_clone(subquery.subquery)),
            false => Ok(Expr::Exists(Exists { subquery, negated: false })),
        }
    }

    /// Whether the query's one column has the value among its rows. They can be compared.
    pub(super) fn membership(&self, arg: Expr, subquery: Subquery, negated: bool, scope: &Scope<'_>) -> Result<Expr> {
        if !is_value(scope.clause.get()) {
            return self.made(Expr::InSubquery(InSubquery::new(Box::new(arg), subquery, negated)), &scope.schema);
        }
        let rows = Arc::unwrap_or_clone(subquery.subquery);
        let column = Expr::Column(rows.schema().columns().remove(0));
        let is_sure = !arg.nullable(&scope.schema)? && !column.nullable(rows.schema())?;
        let equal = self.compared("=", from_within(arg.clone(), &scope.schema)?, column.clone(), rows.schema())?;
        let that = |condition: Expr| counted(LogicalPlanBuilder::from(rows.clone()).filter(condition)?.build()?);
        let found = that(equal)?;
        let member = match is_sure {
            true => found, // Invariant 2: nothing is NULL.
            false => {
                let of = |value| Box::new(Expr::Literal(ScalarValue::Boolean(value), None));
                let unknown = (arg.is_null().and(counted(rows.clone())?)).or(that(column.is_null())?);
                let when_then = vec![(Box::new(found), of(Some(true))), (Box::new(unknown), of(None))];
                Expr::Case(Case { expr: None, when_then_expr: when_then, else_expr: Some(of(Some(false))) })
            }
        };
        Ok(if negated { Expr::Not(Box::new(member)) } else { member })
    }
}

/// Whether a query has rows.
pub(super) fn counted(rows: LogicalPlan) -> Result<Expr> {
    let rows = with_rows_as(rows);
    if matches!(&rows, LogicalPlan::Aggregate(one) if one.group_expr.is_empty()) {
        return Ok(lit(true)); // It has one row, whatever it reads.
    }
    let takes = !rows.all_out_ref_exprs().is_empty();
    if takes && !is_counted_by_join(&rows) {
        return unsupported("EXISTS or IN of such a query, outside of WHERE");
    }
    let rows = LogicalPlanBuilder::from(rows);
    let rows = if takes { rows } else { rows.limit(0, Some(1))? };
    let none: Vec<Expr> = vec![];
    let plan = rows.aggregate(none, vec![count(lit(1i64))])?.build()?;
    let outer_ref_columns = plan.all_out_ref_exprs();
    let number = Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() });
    Ok(Expr::IsTrue(Box::new(number.gt(lit(0i64)))))
}

fn is_value(clause: Clause) -> bool {
    !matches!(clause, Clause::Where | Clause::Having | Clause::On)
}

/// What is within a query and has rows where the query has: not its columns, order, groups, and the number of its rows.
fn with_rows_as(plan: LogicalPlan) -> LogicalPlan {
    let within = match &plan {
        LogicalPlan::Projection(projection) => &projection.input,
        LogicalPlan::Sort(Sort { fetch: None, input, .. }) | LogicalPlan::Distinct(Distinct::All(input)) => input,
        LogicalPlan::Aggregate(groups)
            if !groups.group_expr.is_empty()
                && !groups.group_expr.iter().any(|of| matches!(of, Expr::GroupingSet(_))) =>
        {
            &groups.input
        }
        LogicalPlan::Limit(Limit { skip: None, fetch: Some(fetch), input }) if is_some_rows(fetch) => input,
        _ => return plan,
    };
    with_rows_as(within.as_ref().clone())
}

fn is_some_rows(fetch: &Expr) -> bool {
    matches!(fetch, Expr::Literal(ScalarValue::Int64(Some(1..)), _))
}

/// Invariant 1.
fn is_counted_by_join(plan: &LogicalPlan) -> bool {
    let itself = match plan {
        // What takes nothing from around it is a relation like others.
        plan if plan.all_out_ref_exprs().is_empty() => return true,
        LogicalPlan::Join(join) => join.join_type == JoinType::Inner,
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::EmptyRelation(_) => true,
        _ => false,
    };
    itself && plan.inputs().into_iter().all(is_counted_by_join)
}

/// The value as a query within it names it.
fn from_within(value: Expr, schema: &DFSchema) -> Result<Expr> {
    let mut is_plain = true;
    let value = value.transform(|expr| {
        Ok(match expr {
            Expr::Column(column) => {
                let field = schema.qualified_field_from_column(&column)?.1.clone();
                Transformed::yes(Expr::OuterReferenceColumn(field, column))
            }
            other => {
                is_plain &= !matches!(
                    other,
                    Expr::AggregateFunction(_)
                        | Expr::WindowFunction(_)
                        | Expr::OuterReferenceColumn(..)
                        | Expr::ScalarSubquery(_)
                        | Expr::Exists(_)
                        | Expr::InSubquery(_)
                );
                Transformed::no(other)
            }
        })
    })?;
    match is_plain && !value.data.is_volatile() {
        true => Ok(value.data),
        false => unsupported("IN of a query, outside of WHERE, of such a value"),
    }
}
