//! EXISTS and IN of a query, where they are values and not conditions.
//!
//! DataFusion makes joins of EXISTS and IN in WHERE and HAVING. Elsewhere it makes joins only of queries that
//! aggregate. So EXISTS counts there, and IN is made of EXISTS.
//!
//! 1. A query that takes something of the queries around it is counted only where a join keeps its rows: it reads,
//!    joins, filters and sorts. Of others it is asked for each row of the query around whether there is a row
//!    ([`crate::plan::apply`]).
//! 2. `x IN (S)` is true where a row of S equals x. Else it is NULL where x is NULL and S has rows, or where S has a
//!    NULL; else it is false.
use super::rows::Value;
use super::scope::{Clause, Scope};
use super::unnest::spread;
use super::{Binder, Result, unsupported, wrong};
use crate::functions::arrays::list;
use crate::functions::arrays::quantified::no_boolean;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue, Spans};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{
    Case, Distinct, Expr, ExprSchemable, JoinType, Limit, LogicalPlan, LogicalPlanBuilder, Sort, Subquery, lit,
};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;
use terrace_grammar::statement::{self as tree, At, Body, ExprKind, Item, Literal, Query, Select};

/// `EXISTS (SELECT FROM t)`: nobody sees the columns, so a query without any gets one.
fn of_something(query: &Query) -> Cow<'_, Query> {
    let Body::Select(select) = &query.body else { return Cow::Borrowed(query) };
    if !select.items.is_empty() || select.distinct != tree::Distinct::No || !query.order.is_empty() {
        return Cow::Borrowed(query);
    }
    let one = tree::Expr { at: select.at, kind: ExprKind::Literal(Literal::Int(1)) };
    let select = Select { items: vec![Item { expr: one, alias: None }], ..(**select).clone() };
    Cow::Owned(Query { body: Body::Select(Box::new(select)), ..query.clone() })
}

impl Binder<'_> {
    pub(super) fn exists(&self, query: &Query, scope: &Scope<'_>) -> Result<Expr> {
        let subquery = self.subquery(&of_something(query), scope)?;
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

impl Binder<'_> {
    /// Whether a row is among those of the query: a value, NULL where that is not known.
    pub(super) fn row_membership(
        &self,
        row: Value,
        subquery: Subquery,
        (negated, at): (bool, At),
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let Value::Row(fields, of) = row else { unreachable!("a row was written") };
        let rows = Arc::unwrap_or_clone(subquery.subquery);
        let columns = rows.schema().columns();
        match fields.len().cmp(&columns.len()) {
            Ordering::Less => return wrong(at, "42601", "subquery has too many columns"),
            Ordering::Greater => return wrong(at, "42601", "subquery has too few columns"),
            Ordering::Equal => {}
        }
        let seen = fields.into_iter().map(|field| match field {
            Value::One(value) => from_within(value, &scope.schema).map(Value::One),
            Value::Row(..) => unsupported("a row within a row before IN (SELECT ...)"),
        });
        let left = Value::Row(seen.collect::<Result<_>>()?, of);
        let right = Value::Row(columns.into_iter().map(|column| Value::One(Expr::Column(column))).collect(), of);
        let equal = self.rows("=", left, right, rows.schema())?;
        let that = |condition: Expr| -> Result<Expr> {
            let plan = LogicalPlanBuilder::from(rows.clone()).filter(condition)?.build()?;
            let outer_ref_columns = plan.all_out_ref_exprs();
            if is_value(scope.clause.get()) || outer_ref_columns.is_empty() {
                return counted(plan);
            }
            let subquery = Arc::new(plan);
            let subquery = Subquery { subquery, outer_ref_columns, spans: Spans::new() };
            Ok(Expr::Exists(Exists { subquery, negated: false }))
        };
        let of = |value| Box::new(Expr::Literal(ScalarValue::Boolean(value), None));
        let (found, unknown) = (that(equal.clone())?, that(equal.is_null())?);
        let when_then_expr = vec![(Box::new(found), of(Some(true))), (Box::new(unknown), of(None))];
        let member = Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(of(Some(false))) });
        Ok(if negated { Expr::Not(Box::new(member)) } else { member })
    }
}

impl Binder<'_> {
    /// `value symbol ANY (array)`, or ALL, of any operator that answers a boolean: by the array's items as rows.
    pub(super) fn by_items(
        &self,
        (symbol, all): (&str, bool),
        value: Expr,
        array: Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let name = self.column_name("item");
        let list = list(from_within(array.clone(), &scope.schema)?).alias(&name);
        let item = Column::new_unqualified(name);
        let items = spread(LogicalPlanBuilder::empty(true).project(vec![list])?, vec![item.clone()])?;
        let test = self.compared(symbol, from_within(value, &scope.schema)?, Expr::Column(item), items.schema())?;
        if test.get_type(items.schema())? != ArrowType::Boolean {
            return Err(no_boolean().into());
        }
        let that = |condition: Expr| counted(LogicalPlanBuilder::from(items.clone()).filter(condition)?.build()?);
        let of = |value| Box::new(Expr::Literal(ScalarValue::Boolean(value), None));
        let decided = that(if all { Expr::IsFalse(Box::new(test.clone())) } else { test.clone() })?;
        let unknown = array.is_null().or(that(test.is_null())?);
        let when_then_expr = vec![(Box::new(decided), of(Some(!all))), (Box::new(unknown), of(None))];
        Ok(Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(of(Some(all))) }))
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
        let (subquery, outer_ref_columns) = (Arc::new(rows.clone()), rows.all_out_ref_exprs());
        let subquery = Subquery { subquery, outer_ref_columns, spans: Spans::new() };
        return Ok(Expr::Exists(Exists { subquery, negated: false }));
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
