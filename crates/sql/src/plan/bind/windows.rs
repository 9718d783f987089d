//! Windows: `OVER`, and the WINDOW clause.
//!
//! 1. `OVER (w ORDER BY ...)` takes PARTITION BY and ORDER BY from the window w, and `OVER w` is the window.
//! 2. What a window of the WINDOW clause names has to be there, whether a function uses it or not.
//! 3. Windows are computed above the groups; each becomes a column.
use super::group::{collected, replaced};
use super::scope::{Clause, Scope};
use super::select::{Order, Parts};
use super::{Binder, Result, frames::Framing, wrong};
use datafusion::logical_expr::expr::Sort as By;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use terrace_grammar::statement::{ExprKind, Ident, NamedWindow, Over, Window};

/// A window that is bound.
#[derive(Clone)]
pub(super) struct Defined {
    pub(super) partition: Vec<Expr>,
    pub(super) order: Vec<By>,
    pub(super) frame: Option<Framing>,
}

impl Binder<'_> {
    /// The WINDOW clause. Answers what its windows name.
    pub(super) fn named_windows(&self, windows: &[NamedWindow], scope: &Scope<'_>) -> Result<Vec<Expr>> {
        let mut named = vec![];
        for NamedWindow { name, window } in windows {
            if scope.windows.borrow().iter().any(|(known, _)| *known == name.name) {
                return wrong(window.at, "42P20", format!("window \"{}\" is already defined", name.name));
            }
            let defined = self.defined(window, scope)?;
            named.extend(defined.partition.iter().cloned());
            named.extend(defined.order.iter().map(|by| by.expr.clone()));
            scope.windows.borrow_mut().push((name.name.clone(), defined));
        }
        Ok(named)
    }

    pub(super) fn over(&self, over: &Over, scope: &Scope<'_>) -> Result<Defined> {
        match over {
            Over::Name(name) => find(name, scope),
            Over::Window(window) => scope.within(Clause::Definition, || self.defined(window, scope)),
        }
    }

    fn defined(&self, window: &Window, scope: &Scope<'_>) -> Result<Defined> {
        let base = match &window.base {
            Some(name) => Some((name, find(name, scope)?)),
            None => None,
        };
        // A constant makes no partitions.
        let partition = window.partition.iter().filter(|expr| !matches!(expr.kind, ExprKind::Literal(_)));
        let partition = partition.map(|expr| self.expr(expr, scope)).collect::<Result<Vec<Expr>>>()?;
        let order = window.order.iter().map(|by| Ok(Order::of(by)?.sort(self.expr(&by.expr, scope)?)));
        let mut defined = Defined { partition, order: order.collect::<Result<_>>()?, frame: None };
        if let Some((name, base)) = base {
            let refused = |message: String| wrong(name.at, "42P20", message);
            if !window.partition.is_empty() {
                return refused(format!("cannot override PARTITION BY clause of window \"{}\"", name.name));
            }
            if !defined.order.is_empty() && !base.order.is_empty() {
                return refused(format!("cannot override ORDER BY clause of window \"{}\"", name.name));
            }
            if base.frame.is_some() {
                return refused(format!("cannot copy window \"{}\" because it has a frame clause", name.name));
            }
            defined.partition = base.partition;
            if defined.order.is_empty() {
                defined.order = base.order;
            }
        }
        if let Some(frame) = &window.frame {
            defined.frame = Some(self.framing(frame, window.at, &defined.order, scope)?);
        }
        Ok(defined)
    }

    /// Invariant 3.
    pub(super) fn windowed(&self, plan: LogicalPlan, parts: &mut Parts) -> Result<LogicalPlan> {
        let windows = collected(parts, &|expr| matches!(expr, Expr::WindowFunction(_)))?;
        if windows.is_empty() {
            return Ok(plan);
        }
        let mut names: Vec<String> = plan.schema().fields().iter().map(|field| field.name().clone()).collect();
        let (mut plain, mut alike, mut known) = (vec![], vec![], vec![]);
        for window in windows {
            let name = window.schema_name().to_string();
            // DataFusion leaves casts out of names: what differs in one only gets a name of its own.
            let own = if names.contains(&name) { self.column_name(&name) } else { name.clone() };
            let column = Expr::Column(datafusion::common::Column::new_unqualified(own.clone()));
            known.push((window.clone(), column));
            match own == name {
                true => plain.push(window),
                false => alike.push(window.alias(&own)),
            }
            debug_assert!(!names.contains(&own), "{own} is one column's name");
            names.push(own);
        }
        assert_eq!(known.len(), plain.len() + alike.len(), "invariant 3: a window becomes a column");
        let mut plan = if plain.is_empty() { plan } else { LogicalPlanBuilder::window_plan(plan, plain)? };
        for window in alike {
            plan = LogicalPlanBuilder::from(plan).window(vec![window])?.build()?;
        }
        parts.change(&mut |expr| replaced(expr, &known))?;
        Ok(plan)
    }
}

fn find(name: &Ident, scope: &Scope<'_>) -> Result<Defined> {
    match scope.windows.borrow().iter().find(|(known, _)| *known == name.name) {
        Some((_, defined)) => Ok(defined.clone()),
        None => wrong(name.at, "42704", format!("window \"{}\" does not exist", name.name)),
    }
}
