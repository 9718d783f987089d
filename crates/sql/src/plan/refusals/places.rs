//! Where window functions may not stand: they are computed over the rows that WHERE, GROUP BY and HAVING leave.
use crate::functions::builtin::is_known_aggregate;
use crate::plan::rules::name_of;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, GroupByExpr, JoinConstraint, JoinOperator, Query, Select, Visit, Visitor, WindowType,
};
use std::ops::ControlFlow;
use terrace_engine::{EngineError, Result};

pub(super) fn refuse_windows(select: &Select) -> Result<()> {
    let refused = |place: &str| Err(EngineError::new("42P20", format!("window functions are not allowed in {place}")));
    if select.selection.as_ref().is_some_and(has_window) {
        return refused("WHERE");
    }
    if select.having.as_ref().is_some_and(has_window) {
        return refused("HAVING");
    }
    if matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.iter().any(has_window)) {
        return refused("GROUP BY");
    }
    let joins = select.from.iter().flat_map(|table| &table.joins);
    let conditions = || joins.clone().filter_map(|join| condition(&join.join_operator));
    if conditions().any(has_window) {
        return refused("JOIN conditions");
    }
    match conditions().any(|on| has_call(on, &is_aggregate)) {
        true => Err(EngineError::new("42803", "aggregate functions are not allowed in JOIN conditions")),
        false => Ok(()),
    }
}

/// `place`: VALUES, UPDATE.
pub(crate) fn refuse_windows_in(expr: &Expr, place: &str) -> Result<()> {
    match has_window(expr) {
        true => Err(EngineError::new("42P20", format!("window functions are not allowed in {place}"))),
        false => Ok(()),
    }
}

pub(super) fn refuse_in_values(item: &Expr) -> Result<()> {
    refuse_windows_in(item, "VALUES")?;
    match has_call(item, &is_aggregate) {
        true => Err(EngineError::new("42803", "aggregate functions are not allowed in VALUES")),
        false => Ok(()),
    }
}

/// A window function within another, or within an aggregate.
pub(super) fn refuse_nested(function: &Function, aggregate: bool) -> Result<()> {
    if function.filter.as_deref().is_some_and(has_window) {
        return Err(EngineError::new("42P20", "window functions are not allowed in FILTER"));
    }
    if has_call(&function.args, &is_windowed) {
        return match &function.over {
            Some(_) => Err(EngineError::new("42P20", "window function calls cannot be nested")),
            None if aggregate => {
                Err(EngineError::new("42803", "aggregate function calls cannot contain window function calls"))
            }
            None => Ok(()),
        };
    }
    match &function.over {
        Some(WindowType::WindowSpec(spec)) if has_call(spec, &is_windowed) => {
            Err(EngineError::new("42P20", "window functions are not allowed in window definitions"))
        }
        _ => Ok(()),
    }
}

fn condition(operator: &JoinOperator) -> Option<&Expr> {
    use JoinOperator::{FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter};
    match operator {
        Join(on) | Inner(on) | Left(on) | LeftOuter(on) | Right(on) | RightOuter(on) | FullOuter(on) => match on {
            JoinConstraint::On(expr) => Some(expr),
            _ => None,
        },
        _ => None,
    }
}

fn has_window(expr: &Expr) -> bool {
    has_call(expr, &is_windowed)
}

/// Whether something has such a call that does not belong to a query within.
pub(crate) fn has_call(node: &impl Visit, wanted: &dyn Fn(&Function) -> bool) -> bool {
    node.visit(&mut Calls { depth: 0, wanted }).is_break()
}

/// Finds a call that does not belong to a query within.
struct Calls<'w> {
    depth: usize,
    wanted: &'w dyn Fn(&Function) -> bool,
}

pub(super) fn is_windowed(function: &Function) -> bool {
    function.over.is_some()
}

pub(super) fn is_aggregate(function: &Function) -> bool {
    function.over.is_none() && name_of(function).is_some_and(|name| is_known_aggregate(&name))
}

impl Visitor for Calls<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) if self.depth == 0 && (self.wanted)(function) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}
