//! Aggregates of columns of an outer query only: they are that query's.
//!
//! 1. An aggregate belongs to the innermost query that has a column of its arguments, also of those that stand in
//!    queries within it. It must be allowed where the subquery stands (42803).
//! 2. The outer query computes it beside its own aggregates, as a column; the subquery names that column.
//! 3. With a query in its arguments, or where the outer one is no SELECT, it is refused (0A000).
use super::group::{collected_in, replaced, subquery_of};
use super::scope::Scope;
use super::{Binder, Result, unsupported};
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::Sort as By;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder};
use terrace_engine::EngineError;

/// What an aggregate is called with.
pub(super) struct Called {
    pub(super) args: Vec<Expr>,
    pub(super) order: Vec<By>,
    pub(super) within: Vec<By>,
    pub(super) filter: Option<Box<Expr>>,
}

impl Called {
    fn all(&self) -> impl Iterator<Item = &Expr> {
        let keys = self.order.iter().chain(&self.within).map(|by| &by.expr);
        self.args.iter().chain(self.filter.as_deref()).chain(keys)
    }

    /// The columns of that query are its own.
    pub(super) fn move_to(&mut self, home: &Scope<'_>) -> Result<()> {
        let keys = self.order.iter_mut().chain(&mut self.within).map(|by| &mut by.expr);
        for expr in self.args.iter_mut().chain(self.filter.as_deref_mut()).chain(keys) {
            *expr = own(std::mem::take(expr), home)?;
        }
        Ok(())
    }
}

fn own(expr: Expr, home: &Scope<'_>) -> Result<Expr> {
    let made = expr.transform_up(|expr| match expr {
        Expr::OuterReferenceColumn(_, column) if home.schema.has_column(&column) => {
            Ok(Transformed::yes(Expr::Column(column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(made.data)
}

/// What an aggregate names.
#[derive(Default)]
struct Named {
    /// A column of its query.
    own: bool,
    /// Columns of queries around, or of ones within.
    others: Vec<Column>,
    queries: bool,
}

impl Named {
    fn note(&mut self, expr: &Expr, scope: &Scope<'_>) {
        match expr {
            Expr::Column(_) => self.own = true,
            Expr::OuterReferenceColumn(_, column) if scope.schema.has_column(column) => self.own = true,
            Expr::OuterReferenceColumn(_, column) => self.others.push(column.clone()),
            _ => {}
        }
    }
}

/// The query around that an aggregate belongs to; `None`: its own. 42803 where it is within one of that query's.
pub(super) fn home_of<'s>(parts: &Called, scope: &Scope<'s>) -> Result<Option<&'s Scope<'s>>> {
    let mut named = Named::default();
    for part in parts.all() {
        part.apply(|expr| {
            named.note(expr, scope);
            let Some(subquery) = subquery_of(expr) else { return Ok(TreeNodeRecursion::Continue) };
            named.queries = true;
            subquery.subquery.apply_with_subqueries(|node| {
                node.apply_expressions(|expr| {
                    expr.apply(|expr| {
                        // A column of a query within is none of this one's.
                        if !matches!(expr, Expr::Column(_)) {
                            named.note(expr, scope);
                        }
                        Ok(TreeNodeRecursion::Continue)
                    })
                })
            })?;
            Ok(TreeNodeRecursion::Jump)
        })?;
    }
    let mut around = scope.around.filter(|_| !named.own);
    while let Some(query) = around {
        let is_its = |column: &Column| query.schema.has_column(column);
        let is_computed = |column: &Column| query.aggregates.borrow().iter().any(|(_, known)| known == column);
        if named.others.iter().any(is_computed) {
            return Err(EngineError::new("42803", "aggregate function calls cannot be nested").into());
        }
        if named.others.iter().any(is_its) {
            return match named.queries {
                true => unsupported("an aggregate of columns of the outer query only"),
                false => Ok(Some(query)),
            };
        }
        around = query.around;
    }
    Ok(None)
}

impl Binder<'_> {
    /// Invariant 2: the column of the outer query.
    pub(super) fn aggregate_around(&self, made: Expr, home: &Scope<'_>) -> Result<Expr> {
        let field = made.to_field(&home.schema)?.1;
        let mut known = home.aggregates.borrow_mut();
        let column = match known.iter().find(|(other, _)| *other == made) {
            Some((_, column)) => column.clone(),
            None => {
                let column = Column::new_unqualified(self.column_name("aggregate"));
                known.push((made, column.clone()));
                column
            }
        };
        Ok(Expr::OuterReferenceColumn(field, column))
    }
}

/// The aggregates that queries within have left to this one.
pub(super) fn left_to(scope: &Scope<'_>, into: &mut Vec<Expr>) -> Result<()> {
    let left = scope.aggregates.borrow();
    left.iter().try_for_each(|(made, _)| collected_in(made, into, &|expr| matches!(expr, Expr::AggregateFunction(_))))
}

/// Their columns, above the groups, where these expressions have become columns.
pub(super) fn with_left(plan: LogicalPlan, scope: &Scope<'_>, known: &[(Expr, Expr)]) -> Result<LogicalPlan> {
    let left = scope.aggregates.borrow();
    if left.is_empty() {
        return Ok(plan);
    }
    let mut columns: Vec<Expr> = super::from::columns(&plan).collect();
    for (made, column) in left.iter() {
        columns.push(replaced(made.clone(), known)?.alias(&column.name));
    }
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}
