//! `x IN (SELECT ...)`, `x op ANY (SELECT ...)` and `x op ALL (SELECT ...)` in conditions, with NULLs.
//!
//! 1. A condition keeps a row where it is true; false and NULL are the same to it. So `IN` asks whether there is an
//!    equal row, and `NOT IN` whether there is none that is equal *or unknown*: both are EXISTS, which DataFusion plans
//!    as semi, anti and mark joins.
//! 2. Where NULL and false are not the same (`(x IN (...)) IS NULL`), the membership becomes a CASE of two EXISTS.
//! 3. The comparison is strict: `x = y` is unknown if x or y is NULL, and only then. So the unknown rows are found
//!    without comparing every pair.
//! 4. `NOT IN` of a plain column in a subquery that does not refer to the outer query stays as it is: DataFusion has a
//!    join for it.
//! 5. Memberships in ON of an inner join become a filter above the join. Those in ON of an outer join stay there.
//! 6. The value that is looked for has no membership in it: `(x IN (...)) IN (SELECT ...)` is refused.
//! 7. Anywhere else a membership is a value, as in invariant 2: a condition on a column of a derived table takes the
//!    column's expression with it when it moves down ([`super::held_filters`]).
//!
//! Upstream: `DecorrelatePredicateSubquery` plans NOT IN as a null-aware anti join whatever its condition is. Only a
//! hash join on exactly one key honours that flag: with a literal on the left or another condition the join becomes a
//! nested loop or a hash join with a filter, and NULLs count as "not equal": `DELETE FROM t WHERE 1 NOT IN (SELECT
//! NULL)` deletes all rows. Within OR and under IS NULL, a mark join has no third value. `RewriteSetComparison` makes a
//! CASE of marks whose conditions are evaluated the same way.
use super::long_conditions::all_of;
use crate::error::{tunnel, unsupported};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Case, Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, lit,
};
use std::cell::Cell;
use std::sync::Arc;

/// The memberships of one statement. Each gets a name of its own.
#[derive(Default)]
pub(crate) struct Memberships {
    count: Cell<usize>,
}

/// A comparison of a value with each row of a subquery.
struct Membership {
    value: Expr,
    op: Operator,
    all: bool,
    subquery: Subquery,
}

impl Memberships {
    pub(crate) fn rewrite(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Filter(filter) if has_membership(&filter.predicate)? => {
                Ok(Transformed::yes(self.filtered(filter.predicate, filter.input)?))
            }
            LogicalPlan::Join(mut join) => {
                let (asked, others) = with_memberships(join.filter.take())?;
                join.filter = all_of(others);
                if asked.is_empty() {
                    return Ok(Transformed::no(LogicalPlan::Join(join)));
                }
                Ok(Transformed::yes(self.joined(join, asked)?))
            }
            plan => self.valued(plan),
        }
    }

    /// Invariant 7.
    fn valued(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let mut found = false;
        plan.apply_expressions(|expr| {
            found |= has_membership(expr)?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        let schema = match plan.inputs().as_slice() {
            [input] if found => input.schema().clone(),
            _ => return Ok(Transformed::no(plan)),
        };
        let scope = Scope { names: self, schema: &schema };
        let names = NamePreserver::new(&plan);
        let valued = |expr: Expr| {
            if !has_membership(&expr)? {
                return Ok(Transformed::no(expr));
            }
            check_values(&expr)?;
            let name = names.save(&expr);
            Ok(Transformed::yes(name.restore(scope.value(expr)?)))
        };
        plan.map_expressions(|expr| match expr {
            // As in `Rewrite`: with a name of its own it would be no grouping set any more.
            Expr::GroupingSet(_) => expr.map_children(&valued),
            _ => valued(expr),
        })
    }

    fn filtered(&self, predicate: Expr, input: Arc<LogicalPlan>) -> Result<LogicalPlan> {
        check_values(&predicate)?;
        let scope = Scope { names: self, schema: input.schema() };
        let predicate = scope.holds(predicate, true)?;
        Ok(LogicalPlan::Filter(Filter::new(predicate, input)))
    }

    /// Invariant 5. `asked`: the conditions of ON that have memberships.
    fn joined(&self, mut join: Join, asked: Vec<Expr>) -> Result<LogicalPlan> {
        let asked = all_of(asked).expect("there are some");
        if join.join_type == JoinType::Inner {
            return self.filtered(asked, Arc::new(LogicalPlan::Join(join)));
        }
        check_values(&asked)?;
        let schema = join.left.schema().join(join.right.schema())?;
        let asked = (Scope { names: self, schema: &schema }).holds(asked, true)?;
        join.filter = all_of(join.filter.into_iter().chain([asked]));
        Ok(LogicalPlan::Join(join))
    }
}

/// The conditions under ANDs that have memberships, and the others.
fn with_memberships(condition: Option<Expr>) -> Result<(Vec<Expr>, Vec<Expr>)> {
    let (mut with, mut without) = (vec![], vec![]);
    for part in condition.into_iter().flat_map(split_conjunction_owned) {
        if has_membership(&part)? { with.push(part) } else { without.push(part) }
    }
    Ok((with, without))
}

fn has_membership(expr: &Expr) -> Result<bool> {
    expr.exists(|e| Ok(matches!(e, Expr::InSubquery(_) | Expr::SetComparison(_))))
}

/// Invariant 6.
fn check_values(condition: &Expr) -> Result<()> {
    let nested = condition.exists(|e| match e {
        Expr::InSubquery(InSubquery { expr, .. }) | Expr::SetComparison(SetComparison { expr, .. }) => {
            has_membership(expr)
        }
        _ => Ok(false),
    })?;
    if nested { Err(tunnel(unsupported("IN, ANY or ALL (SELECT ...) within the value of another"))) } else { Ok(()) }
}

struct Scope<'a> {
    names: &'a Memberships,
    /// Of the rows that the condition is about.
    schema: &'a DFSchema,
}

impl Scope<'_> {
    /// A condition that is true where `expr` is, and else false or NULL. `top`: it stands alone or under ANDs.
    fn holds(&self, expr: Expr, top: bool) -> Result<Expr> {
        if !has_membership(&expr)? {
            return Ok(expr);
        }
        Ok(match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let top = top && op == Operator::And;
                binary(self.holds(*left, top)?, op, self.holds(*right, top)?)
            }
            Expr::Not(inner) => self.fails(*inner, top)?,
            Expr::IsTrue(inner) => Expr::IsTrue(Box::new(self.holds(*inner, false)?)),
            Expr::IsNotTrue(inner) => Expr::IsNotTrue(Box::new(self.holds(*inner, false)?)),
            Expr::IsFalse(inner) => Expr::IsTrue(Box::new(self.fails(*inner, false)?)),
            Expr::IsNotFalse(inner) => Expr::IsNotTrue(Box::new(self.fails(*inner, false)?)),
            expr => match membership(expr) {
                Ok((membership, false)) => self.member_holds(membership)?,
                Ok((membership, true)) => self.member_fails(membership, top)?,
                Err(expr) => self.value(*expr)?,
            },
        })
    }

    /// A condition that is true where `expr` is false, and else false or NULL.
    fn fails(&self, expr: Expr, top: bool) -> Result<Expr> {
        if !has_membership(&expr)? {
            return Ok(Expr::Not(Box::new(expr)));
        }
        Ok(match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let other = if op == Operator::And { Operator::Or } else { Operator::And };
                let top = top && other == Operator::And;
                binary(self.fails(*left, top)?, other, self.fails(*right, top)?)
            }
            Expr::Not(inner) => self.holds(*inner, top)?,
            expr => match membership(expr) {
                Ok((membership, false)) => self.member_fails(membership, top)?,
                Ok((membership, true)) => self.member_holds(membership)?,
                Err(expr) => Expr::Not(Box::new(self.value(*expr)?)),
            },
        })
    }

    /// The same value, NULL included (invariant 2).
    fn value(&self, expr: Expr) -> Result<Expr> {
        let replaced = expr.transform_down(|expr| {
            Ok(match membership(expr) {
                Ok((membership, negated)) => {
                    let expr = self.member_value(membership, negated)?;
                    Transformed::new(expr, true, TreeNodeRecursion::Jump)
                }
                Err(expr) => Transformed::no(*expr),
            })
        })?;
        Ok(replaced.data)
    }

    fn member_holds(&self, membership: Membership) -> Result<Expr> {
        if membership.all {
            // Of none it is false or unknown.
            return Ok(not(self.any(&membership, |comparison| Expr::IsNotTrue(Box::new(comparison)))?));
        }
        if membership.op == Operator::Eq && !is_correlated(&membership.subquery) {
            return Ok(membership.kept(false));
        }
        self.any(&membership, |comparison| comparison)
    }

    fn member_fails(&self, membership: Membership, top: bool) -> Result<Expr> {
        if membership.all {
            return self.any(&membership, |comparison| Expr::IsFalse(Box::new(comparison)));
        }
        let plain = matches!(membership.value, Expr::Column(_)) && !is_correlated(&membership.subquery);
        if top && plain && membership.op == Operator::Eq {
            return Ok(membership.kept(true));
        }
        let matches = not(self.any(&membership, |comparison| comparison)?);
        Ok(match self.unknown(&membership)? {
            Some(unknown) => binary(matches, Operator::And, not(unknown)),
            None => matches,
        })
    }

    fn member_value(&self, membership: Membership, negated: bool) -> Result<Expr> {
        // ALL is decided by a row that fails, ANY by one that holds.
        let decided = if membership.all {
            self.any(&membership, |comparison| Expr::IsFalse(Box::new(comparison)))?
        } else {
            self.any(&membership, |comparison| comparison)?
        };
        let result = membership.all == negated;
        let mut when = vec![(Box::new(decided), Box::new(lit(result)))];
        if let Some(unknown) = self.unknown(&membership)? {
            when.push((Box::new(unknown), Box::new(Expr::Literal(ScalarValue::Boolean(None), None))));
        }
        Ok(Expr::Case(Case { expr: None, when_then_expr: when, else_expr: Some(Box::new(lit(!result))) }))
    }

    /// Whether there is a row whose comparison is unknown (invariant 3). `None`: there cannot be one.
    fn unknown(&self, membership: &Membership) -> Result<Option<Expr>> {
        let value_nullable = membership.value.nullable(self.schema)?;
        let row_nullable = membership.subquery.subquery.schema().field(0).is_nullable();
        let value_unknown = match value_nullable {
            true => {
                let null = Expr::IsNull(Box::new(membership.value.clone()));
                Some(binary(null, Operator::And, self.any_row(membership)?))
            }
            false => None,
        };
        let row_unknown = match row_nullable {
            true => Some(self.row(membership, |_, row| Expr::IsNull(Box::new(row)))?),
            false => None,
        };
        Ok(match (value_unknown, row_unknown) {
            (Some(value), Some(row)) => Some(binary(value, Operator::Or, row)),
            (value, row) => value.or(row),
        })
    }

    /// Whether `test` holds for the comparison with some row.
    fn any(&self, membership: &Membership, test: impl Fn(Expr) -> Expr) -> Result<Expr> {
        self.row(membership, |value, row| test(binary(value, membership.op, row)))
    }

    fn row(&self, membership: &Membership, test: impl Fn(Expr, Expr) -> Expr) -> Result<Expr> {
        if membership.value.is_volatile() || super::is_volatile(&membership.subquery.subquery)? {
            // It is asked more than once, or for each pair.
            return Err(tunnel(unsupported("a volatile function beside or within IN, ANY or ALL (SELECT ...)")));
        }
        let number = self.names.count.get();
        self.names.count.set(number + 1);
        // A name of its own: whatever is pulled out of the subquery, it is not mistaken for this column.
        let name = format!("\0member {number}");
        let plan = membership.subquery.subquery.as_ref().clone();
        let column = Expr::Column(Column::from(plan.schema().qualified_field(0)));
        let named = LogicalPlanBuilder::from(plan).project([column.alias(&name)])?.build()?;
        let test = test(self.outer(membership.value.clone())?, Expr::Column(Column::from_name(name)));
        exists(LogicalPlan::Filter(Filter::new(test, Arc::new(named))), membership)
    }

    /// Whether the subquery has a row at all.
    fn any_row(&self, membership: &Membership) -> Result<Expr> {
        let plan = LogicalPlanBuilder::from(membership.subquery.subquery.as_ref().clone());
        match is_correlated(&membership.subquery) {
            true => exists(plan.build()?, membership),
            false => exists(plan.limit(0, Some(1))?.build()?, membership),
        }
    }

    /// As the subquery sees it.
    fn outer(&self, expr: Expr) -> Result<Expr> {
        let seen = expr.transform_up(|expr| match expr {
            Expr::Column(column) => {
                let field = self.schema.field_from_column(&column)?.clone();
                Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(seen.data)
    }
}

impl Membership {
    /// As DataFusion plans it.
    fn kept(self, negated: bool) -> Expr {
        Expr::InSubquery(InSubquery { expr: Box::new(self.value), subquery: self.subquery, negated })
    }
}

/// The membership that an expression is, and whether it is negated.
fn membership(expr: Expr) -> Result<(Membership, bool), Box<Expr>> {
    match expr {
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            Ok((Membership { value: *expr, op: Operator::Eq, all: false, subquery }, negated))
        }
        // `<> ALL` is NOT IN.
        Expr::SetComparison(SetComparison { expr, subquery, op: Operator::NotEq, quantifier: SetQuantifier::All }) => {
            Ok((Membership { value: *expr, op: Operator::Eq, all: false, subquery }, true))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            Ok((Membership { value: *expr, op, all: quantifier == SetQuantifier::All, subquery }, false))
        }
        other => Err(Box::new(other)),
    }
}

fn is_correlated(subquery: &Subquery) -> bool {
    !crate::plan::apply::taken_by(&subquery.subquery).is_empty()
}

fn exists(plan: LogicalPlan, membership: &Membership) -> Result<Expr> {
    let outer_ref_columns = plan.all_out_ref_exprs();
    let spans = membership.subquery.spans.clone();
    let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns, spans };
    Ok(Expr::Exists(Exists { subquery, negated: false }))
}

fn not(expr: Expr) -> Expr {
    match expr {
        Expr::Exists(Exists { subquery, negated }) => Expr::Exists(Exists { subquery, negated: !negated }),
        // De Morgan, as far as EXISTS can be reached: a whole EXISTS is a join of its own.
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            binary(not(*left), Operator::And, not(*right))
        }
        other => Expr::Not(Box::new(other)),
    }
}

fn binary(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}
