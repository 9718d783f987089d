//! Subqueries of which DataFusion makes no right join ([`shapes`]) become [`Apply`]s.
//!
//! This is an analyzer rule. It runs last, from the leaves: types are settled, IN, ANY and ALL have become EXISTS where
//! they must ([`super::membership`]), and no other rule has moved a condition away from where its columns have their
//! names.
//!
//! 1. A query that takes something of a query further out, or within which there is an `Apply` that does, is an
//!    `Apply`.
//! 2. An `Apply` stands below the node whose expression asks the query. So it is asked for all rows of that node: a
//!    CASE or an AND does not keep it from failing.
//! 3. Of LATERAL, a join's right side takes something of its left side. The condition of the join is then one of the
//!    rows of the right side. The same is made of an outer join whose condition asks a query.
use super::long_conditions::all_of;
use super::shapes;
use crate::error::{tunnel, unsupported};
use crate::plan::apply::{Apply, Kind, query_in, taken_by};
use crate::plan::rules::Rewrite;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result, ScalarValue};
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    Distinct, Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Projection, Subquery, SubqueryAlias,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use std::cell::Cell;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Applied;

impl AnalyzerRule for Applied {
    fn name(&self) -> &str {
        "applied"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let names = Names::default();
        let rewrite = Rewrite {
            concerns: |_: &Expr| false,
            expr: |expr: Expr, _: &DFSchema| Ok(Transformed::no(expr)),
            node: |plan, _: &DFSchema| names.node(plan),
        };
        rewrite.plan(plan)
    }
}

/// Each column that is made has a name of its own.
#[derive(Default)]
struct Names {
    count: Cell<usize>,
}

impl Names {
    fn next(&self) -> String {
        let number = self.count.get();
        self.count.set(number + 1);
        format!("\0apply {number}")
    }

    fn node(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Join(join) => self.join(join),
            plan if plan.inputs().len() == 1 => self.beside(plan),
            plan => match asks(&plan)? {
                true => Err(tunnel(unsupported("a subquery in VALUES that refers to a query around it"))),
                false => Ok(Transformed::no(plan)),
            },
        }
    }

    /// A node of one input, with what its expressions ask as columns of that (invariant 2).
    fn beside(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        if !asks(&plan)? {
            return Ok(Transformed::no(plan));
        }
        let schema = plan.schema().clone();
        let keeps_columns = !matches!(
            plan,
            LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(Distinct::On(_))
        );
        let place = Place::of(&plan);
        let mut input = plan.inputs()[0].clone();
        let names = NamePreserver::new(&plan);
        let mut exprs = vec![];
        for expr in plan.expressions() {
            let name = names.save(&expr);
            let made = expr.transform_down(|part| {
                let Some((kind, query)) = place.asked(&part, input.schema())? else { return Ok(Transformed::no(part)) };
                let (query, column) = (query.subquery.as_ref().clone(), self.next());
                input = Apply::plan(std::mem::take(&mut input), query, kind, &column)?;
                let column = Expr::Column(Column::new_unqualified(column));
                let made = match part {
                    Expr::Exists(Exists { negated: true, .. }) => Expr::Not(Box::new(column)),
                    _ => column,
                };
                Ok(Transformed::new(made, true, TreeNodeRecursion::Jump))
            })?;
            exprs.push(match made.data {
                set @ Expr::GroupingSet(_) => set,
                made => name.restore(made),
            });
        }
        let made = match plan {
            // `with_new_exprs` refuses one that has an order.
            LogicalPlan::Distinct(Distinct::On(_)) => {
                let mut exprs = exprs.into_iter();
                let next = |_| Ok(Transformed::yes(exprs.next().expect("as many as there were")));
                plan.map_expressions(next)?
                    .data
                    .map_children(|_| Ok(Transformed::yes(std::mem::take(&mut input))))?
                    .data
            }
            plan => plan.with_new_exprs(exprs, vec![input])?,
        };
        if !keeps_columns {
            return Ok(Transformed::yes(made));
        }
        let columns = schema.columns().into_iter().map(Expr::Column).collect();
        Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new_with_schema(columns, Arc::new(made), schema)?)))
    }

    fn join(&self, mut join: Join) -> Result<Transformed<LogicalPlan>> {
        let is_lateral = taken_by(&join.right).iter().any(|column| join.left.schema().has_column(column));
        let marked = lateral(&join.left).is_some() || lateral(&join.right).is_some();
        if is_lateral && is_join(&join)? {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        // What they take is of a query further out.
        (join.left, join.right) = (unmarked(join.left)?, unmarked(join.right)?);
        let asks = asks(&LogicalPlan::Join(join.clone()))?;
        if !is_lateral && !asks {
            let made = LogicalPlan::Join(join);
            return Ok(if marked { Transformed::yes(made) } else { Transformed::no(made) });
        }
        if !is_lateral && join.join_type == JoinType::Inner {
            let on = join.filter.take().map(split_conjunction_owned).unwrap_or_default();
            let (with, without): (Vec<Expr>, Vec<Expr>) = on.into_iter().partition(has_query);
            join.filter = all_of(without);
            let with = all_of(with).expect("a condition asks a query");
            return self.beside(LogicalPlan::Filter(Filter::new(with, Arc::new(LogicalPlan::Join(join)))));
        }
        let schema = join.schema.clone();
        let (input, query, padded) = match join.join_type {
            JoinType::Inner => (join.left, join.right, false),
            JoinType::Left => (join.left, join.right, true),
            JoinType::Right if !is_lateral => (join.right, join.left, true),
            _ => return Err(tunnel(unsupported("a subquery in the condition of a FULL JOIN"))),
        };
        let keys = join.on.into_iter().map(|(left, right)| left.eq(right));
        let on = all_of(keys.chain(join.filter).filter(|on| !is_true(on)));
        let query = Arc::unwrap_or_clone(query);
        let query = match on {
            None => query,
            Some(on) => {
                let on = seen_within(on, input.schema())?;
                self.beside(LogicalPlan::Filter(Filter::new(on, Arc::new(query))))?.data
            }
        };
        let made = Apply::plan(Arc::unwrap_or_clone(input), query, Kind::Rows { padded }, "")?;
        // Of a RIGHT JOIN, the sides have changed places.
        let columns: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
        Ok(Transformed::yes(LogicalPlanBuilder::from(made).project(columns)?.build()?))
    }
}

/// The node whose expressions ask queries.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Filter,
    Projection,
    Other,
}

impl Place {
    fn of(plan: &LogicalPlan) -> Place {
        match plan {
            LogicalPlan::Filter(_) => Place::Filter,
            LogicalPlan::Projection(_) => Place::Projection,
            _ => Place::Other,
        }
    }

    /// The query that an expression asks, if it is to be an `Apply`. `schema`: of the node's input.
    fn asked<'e>(self, expr: &'e Expr, schema: &DFSchema) -> Result<Option<(Kind, &'e Subquery)>> {
        let Some(query) = query_in(expr) else { return Ok(None) };
        let taken = taken_by(&query.subquery);
        if taken.is_empty() {
            return Ok(None);
        }
        let is_near = taken.iter().all(|column| schema.has_column(column));
        let (kind, of_join) = match expr {
            Expr::ScalarSubquery(_) => (Kind::Value, (self != Place::Other).then_some(shapes::Kind::Value)),
            Expr::Exists(_) => (Kind::Exists, (self == Place::Filter).then_some(shapes::Kind::Exists)),
            _ => return Err(tunnel(unsupported("IN, ANY or ALL of a query that refers to a query around it, here"))),
        };
        match of_join {
            Some(of_join) if is_near && shapes::is_join(of_join, &query.subquery)? => Ok(None),
            _ => Ok(Some((kind, query))),
        }
    }
}

/// Whether an expression of the node asks a query that is to be an `Apply`.
fn asks(plan: &LogicalPlan) -> Result<bool> {
    let schema = match plan.inputs().as_slice() {
        [input] => input.schema().clone(),
        _ => plan.schema().clone(),
    };
    let (place, mut found) = (Place::of(plan), false);
    plan.apply_expressions(|expr| {
        expr.apply(|part| {
            found |= place.asked(part, &schema)?.is_some();
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(found)
}

/// Whether DataFusion makes the right join of a join with LATERAL on its right side.
fn is_join(join: &Join) -> Result<bool> {
    let is_near = taken_by(&join.right).iter().all(|column| join.left.schema().has_column(column));
    let (None, Some(query)) = (lateral(&join.left), lateral(&join.right)) else { return Ok(false) };
    let plain = matches!(join.join_type, JoinType::Inner | JoinType::Left) && !join.filter.iter().any(has_query);
    Ok(plain && is_near && shapes::is_join(shapes::Kind::Lateral, query)?)
}

/// The query of LATERAL that a side of a join is, under its name.
fn lateral(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    match plan {
        LogicalPlan::SubqueryAlias(named) => lateral(&named.input),
        LogicalPlan::Subquery(query) => Some(&query.subquery),
        _ => None,
    }
}

/// The side of a join without the node that says that it is LATERAL.
fn unmarked(plan: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
    match plan.as_ref() {
        LogicalPlan::Subquery(query) => Ok(query.subquery.clone()),
        LogicalPlan::SubqueryAlias(named) if lateral(&plan).is_some() => {
            let named = SubqueryAlias::try_new(unmarked(named.input.clone())?, named.alias.clone())?;
            Ok(Arc::new(LogicalPlan::SubqueryAlias(named)))
        }
        _ => Ok(plan),
    }
}

fn has_query(on: &Expr) -> bool {
    on.exists(|part| Ok(query_in(part).is_some())).expect("nothing in it fails")
}

fn is_true(on: &Expr) -> bool {
    matches!(on, Expr::Literal(ScalarValue::Boolean(Some(true)), _))
}

/// A condition as a query sees it that is within one of these columns.
fn seen_within(on: Expr, outer: &DFSchema) -> Result<Expr> {
    let seen = on.transform(|part| match part {
        Expr::Column(column) if outer.has_column(&column) => {
            let field = outer.qualified_field_from_column(&column)?.1.clone();
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        part => Ok(Transformed::no(part)),
    })?;
    Ok(seen.data)
}
