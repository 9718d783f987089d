//! Names that a query does not know itself.
//!
//! 1. An aggregate belongs to the innermost query that has a column of its arguments. One of outer columns only is the
//!    outer query's, which PostgreSQL then groups, or refuses: here it is refused (0A000).
//! 2. A name in a window that nobody uses has to be there too (42703). A query in such a window is refused (0A000):
//!    nothing would look at it.
//! 3. `x.c` is a column of a table `x` around the query, also where the query has a column `x`.
//!
//! Upstream: `SqlToRel` computes an aggregate in the query in which it stands, and takes `x.c` for a field of the
//! column `x` before it looks for a table around the query.
use super::from::From;
use super::scope::{Resolver, for_each};
use super::syntax::name_of;
use crate::error::unsupported;
use crate::parse::fold;
use crate::plan::refusals::has_call;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, Ident, NamedWindowDefinition, NamedWindowExpr, OrderBy, OrderByKind, Query, Select, SelectItem,
    Visit, VisitMut, Visitor, VisitorMut, WindowSpec, WindowType,
};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::ControlFlow;
use terrace_engine::{EngineError, Result};

/// What a query's FROM gives names to.
#[derive(Default)]
pub(super) struct Scope {
    /// What stands before a LATERAL query: not told apart.
    any: bool,
    tables: BTreeSet<String>,
    /// `None`: they cannot be told.
    columns: Option<BTreeSet<String>>,
}

impl Scope {
    pub(super) fn of(from: &From) -> Scope {
        let columns = from.columns().map(|columns| columns.into_iter().map(|(name, _)| name).collect());
        Scope { any: false, tables: from.names().map(str::to_owned).collect(), columns }
    }

    pub(super) fn any() -> Scope {
        Scope { any: true, ..Scope::default() }
    }

    /// Whether a column's name, its table's before it, may be one of these.
    fn may_have(&self, parts: &[Ident]) -> bool {
        if self.any {
            return true;
        }
        match parts {
            [column] => self.columns.as_ref().is_none_or(|columns| columns.contains(&fold(column))),
            // A row's field may look like a table's column.
            [.., table, _] => self.tables.contains(&fold(table)),
            [] => true,
        }
    }
}

/// Invariant 3: a name of three parts is no field's, and any schema's name stands before a table that has none.
pub(super) fn write_tables(select: &mut Select, order_by: Option<&mut OrderBy>, from: &From) -> Result<()> {
    struct Tables<'s> {
        scope: &'s Scope,
        depth: usize,
    }
    impl VisitorMut for Tables<'_> {
        type Break = Infallible;

        fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
            self.depth += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
            self.depth -= 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
            if let Expr::CompoundIdentifier(parts) = expr
                && let [table, _] = parts.as_slice()
                && self.depth == 0
                && !self.scope.tables.contains(&fold(table))
                && self.scope.columns.as_ref().is_some_and(|columns| columns.contains(&fold(table)))
            {
                parts.insert(0, Ident::new("public"));
            }
            ControlFlow::Continue(())
        }
    }
    let scope = Scope::of(from);
    for_each(select, order_by, &mut |expr, _| {
        let ControlFlow::Continue(()) = VisitMut::visit(expr, &mut Tables { scope: &scope, depth: 0 });
        Ok(())
    })
}

impl Resolver<'_> {
    /// `from`: the query's own. (Around it are those of [`Resolver::scopes`].)
    pub(super) fn check_names(&self, select: &Select, order_by: Option<&OrderBy>, from: &From) -> Result<()> {
        let own = Scope::of(from);
        for NamedWindowDefinition(name, window) in &select.named_window {
            let NamedWindowExpr::WindowSpec(spec) = window else { continue };
            let known = |parts: &[Ident]| self.known(parts, &own);
            if has_query(spec) && !is_used(spec, select, order_by) {
                return Err(unsupported(format!("a query in the window \"{}\", which is not used,", fold(name))));
            }
            if let ControlFlow::Break(parts) = spec.visit(&mut Columns { depth: 0, each: known }) {
                let name: Vec<String> = parts.iter().map(fold).collect();
                return Err(EngineError::new("42703", format!("column \"{}\" does not exist", name.join("."))));
            }
        }
        if self.scopes.is_empty() {
            return Ok(());
        }
        let items = select.projection.iter().filter_map(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
            _ => None,
        });
        let ordered = match order_by.map(|order_by| &order_by.kind) {
            Some(OrderByKind::Expressions(order)) => order.as_slice(),
            _ => &[],
        };
        let aggregate = |call: &Function| name_of(call).is_some_and(|name| (self.relations.aggregate)(&name));
        let outer = |call: &Function| call.over.is_none() && aggregate(call) && self.is_outer(call, &own);
        let in_windows = has_call(&select.named_window, &outer);
        let mut exprs = items.chain(&select.having).chain(ordered.iter().map(|by| &by.expr));
        match in_windows || exprs.any(|expr| has_call(expr, &outer)) {
            true => Err(unsupported("an aggregate of columns of the outer query only")),
            false => Ok(()),
        }
    }

    fn known(&self, parts: &[Ident], own: &Scope) -> bool {
        own.may_have(parts) || self.scopes.iter().any(|scope| scope.may_have(parts))
    }

    fn is_outer(&self, call: &Function, own: &Scope) -> bool {
        let mut found = false;
        let inner = |parts: &[Ident]| {
            found = true;
            !own.may_have(parts) && self.scopes.iter().any(|scope| scope.may_have(parts))
        };
        call.visit(&mut Columns { depth: 0, each: inner }).is_continue() && found
    }
}

/// Whether a query is within.
fn has_query(node: &impl Visit) -> bool {
    struct Queries;
    impl Visitor for Queries {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    node.visit(&mut Queries).is_break()
}

/// Whether a function is over this window, which has been written out where it is named.
fn is_used(window: &WindowSpec, select: &Select, order_by: Option<&OrderBy>) -> bool {
    let over = |call: &Function| match &call.over {
        Some(WindowType::WindowSpec(spec)) => {
            spec.partition_by == window.partition_by && (window.order_by.is_empty() || spec.order_by == window.order_by)
        }
        _ => false,
    };
    has_call(&select.projection, &over) || order_by.is_some_and(|order_by| has_call(order_by, &over))
}

/// Stops at a column for which `each` is false; queries within are not looked at.
struct Columns<F> {
    depth: usize,
    each: F,
}

impl<F: FnMut(&[Ident]) -> bool> Visitor for Columns<F> {
    type Break = Vec<Ident>;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Vec<Ident>> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Vec<Ident>> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Vec<Ident>> {
        let parts = match expr {
            Expr::Identifier(ident) => std::slice::from_ref(ident),
            Expr::CompoundIdentifier(parts) => parts.as_slice(),
            _ => return ControlFlow::Continue(()),
        };
        match self.depth > 0 || (self.each)(parts) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(parts.to_vec()),
        }
    }
}
