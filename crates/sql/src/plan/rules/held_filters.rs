//! Conditions stay where pushing them down would change the answer.
//!
//! 1. No condition moves below an aggregate that answers a row even for no input rows: one without groups, or with
//!    grouping sets.
//! 2. A volatile condition (`random() < 0.5`) stays in its place.
//! 3. A column stands to the left of a constant that it is compared with.
//! 4. A condition with EXISTS or a correlated subquery in it stays where it is until the next pass has made joins of
//!    them. It has come there from above, in the place of a column of a derived table.
//!
//! Upstream: `PushDownFilter` moves a predicate below an `Aggregate` if all its columns are grouping columns. A
//! predicate without columns (`HAVING false`, `2 = 1`, `(SELECT false)`) has none, so it always passes; below an
//! aggregate without groups it turns "no row" into a row of an empty aggregate. Volatile predicates pass aggregates,
//! windows, DISTINCT and joins for the same reason. `simplify_predicates`, which it calls, takes `3 = a` and `a = 3`
//! for two values of a (no row is left), and of `a >= 3` and `3 < a` it may keep the first. The columns of the outer
//! query in a subquery are not renamed as the condition moves on: `SELECT * FROM (SELECT EXISTS (SELECT 1 FROM u WHERE
//! u.a = q.x) AS e FROM (SELECT a + 1 AS x FROM t) AS q) WHERE e` ends below q, where there is no q.x.
use super::long_conditions::{all_of, parts};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan};
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct HeldFilters {
    inner: PushDownFilter,
}

impl OptimizerRule for HeldFilters {
    fn name(&self) -> &str {
        "push_down_filter"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = plan else { return self.inner.rewrite(plan, config) };
        // Filters on filters would be merged and then pushed at once.
        let mut input = &filter.input;
        let mut held = stays(&filter.predicate)?;
        let mut several = false;
        while let LogicalPlan::Filter(below) = input.as_ref() {
            several = true;
            held |= stays(&below.predicate)?;
            input = &below.input;
        }
        let blocked = is_barrier(input);
        let input = input.clone();
        let predicates = predicates(filter);
        if !blocked && !held {
            return self.inner.rewrite(filtered(predicates, Arc::unwrap_or_clone(input)), config);
        }
        if blocked {
            let plan = filtered(predicates, input.as_ref().clone());
            return Ok(if several { Transformed::yes(plan) } else { Transformed::no(plan) });
        }
        let (mut held, mut moving) = (vec![], vec![]);
        for predicate in predicates {
            if stays(&predicate)? { held.push(predicate) } else { moving.push(predicate) }
        }
        if moving.is_empty() {
            let plan = filtered(held, input.as_ref().clone());
            return Ok(if several { Transformed::yes(plan) } else { Transformed::no(plan) });
        }
        let moved = self.inner.rewrite(filtered(moving, input.as_ref().clone()), config)?;
        // What could not move stands together with what must not.
        moved.map_data(|plan| {
            Ok(match plan {
                LogicalPlan::Filter(filter) => {
                    let input = filter.input.clone();
                    let mut all = predicates_of(filter.predicate);
                    all.extend(held);
                    filtered(all, input.as_ref().clone())
                }
                plan => filtered(held, plan),
            })
        })
    }
}

/// Invariants 2 and 4.
fn stays(predicate: &Expr) -> Result<bool> {
    let asks = |expr: &Expr| match expr {
        Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => true,
        Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
        _ => false,
    };
    Ok(predicate.is_volatile() || predicate.exists(|expr| Ok(asks(expr)))?)
}

/// Invariant 3.
fn column_first(predicate: Expr) -> Expr {
    match predicate {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if matches!((left.as_ref(), right.as_ref()), (Expr::Literal(..), Expr::Column(_))) =>
        {
            match op.swap() {
                Some(op) => Expr::BinaryExpr(BinaryExpr { left: right, op, right: left }),
                None => Expr::BinaryExpr(BinaryExpr { left, op, right }),
            }
        }
        other => other,
    }
}

/// Of a filter and the filters right below it, theirs first: they were to be evaluated first.
fn predicates(filter: Filter) -> Vec<Expr> {
    let mut all = match filter.input.as_ref() {
        LogicalPlan::Filter(below) => predicates(below.clone()),
        _ => vec![],
    };
    all.extend(predicates_of(filter.predicate));
    all
}

fn predicates_of(predicate: Expr) -> Vec<Expr> {
    parts(predicate).into_iter().map(column_first).collect()
}

fn filtered(predicates: Vec<Expr>, input: LogicalPlan) -> LogicalPlan {
    match all_of(predicates) {
        Some(predicate) => LogicalPlan::Filter(Filter::new(predicate, Arc::new(input))),
        None => input,
    }
}

fn is_barrier(input: &LogicalPlan) -> bool {
    match input {
        LogicalPlan::Aggregate(aggregate) => {
            aggregate.group_expr.is_empty() || aggregate.group_expr.iter().any(|e| matches!(e, Expr::GroupingSet(_)))
        }
        _ => false,
    }
}
