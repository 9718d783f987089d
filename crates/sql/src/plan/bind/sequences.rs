//! `nextval`, `currval`, `lastval` and `setval` in a query: they are called before it runs, once for each place, so
//! they stand where PostgreSQL calls them once.
//!
//! 1. A query is bound twice: once to learn what it calls ([`Whole::calls`](super::Whole)), and again with the values.
//! 2. Beside FROM they are refused (0A000): there they would be called for each row. So they are where something
//!    decides whether, or how often, they are called: CASE, AND, WHERE, LIMIT, BETWEEN, a constant NULL beside them, a
//!    query that nobody may read.
//!    One case stands for itself: a SELECT of setval alone whose arguments have aggregates and which groups nothing has
//!    one row. `SELECT setval('s', max(id)) FROM t` becomes `SELECT setval('s', (SELECT max(id) FROM t))`.
//! 3. Places in a default, which the catalogue keeps, are told from those in the statement and in other defaults.
use super::scope::{self, Scope};
use super::system::system_type;
use super::{Binder, Placed, Result, over, unsupported};
use crate::functions::builtin::is_known_aggregate;
use crate::parse::sequence_calls::{Call, call_of};
use crate::plan::sequence_relations;
use datafusion::common::{ScalarValue, Spans};
use datafusion::functions_aggregate::expr_fn::max;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, Subquery};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use terrace_engine::Result as EngineResult;
use terrace_grammar::statement::{
    self as tree, At, Body, Distinct, ExprKind, FromItem, Literal, Node, Query, SetOperator, SpecialFunction,
    Statement, walk,
};

/// A byte of the statement's text (0), or of the default of that number (invariant 3).
pub(crate) type Place = (usize, At);

impl Binder<'_> {
    /// `pg_sequence_last_value(s)`: a query over the rows of all sequences.
    pub(super) fn last_value(&self, of: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        over::refuse_subquery(scope.clause.get(), of.at)?;
        let of = match &of.kind {
            ExprKind::Cast { arg, to, .. } if system_type(to) == Some("regclass") => self.oid_of_class(arg, scope)?,
            _ => self.oid_of_class(of, scope)?,
        };
        let actor = self.planner.info.actor(self.planner.catalog);
        let text = sequence_relations::last_values(self.planner.catalog, &actor);
        let source = self.of_sequences(&text, ("pg_catalog", "pg_sequence_last_value"), None)?;
        let [(_, oid), (_, value)] = source.visible.as_slice() else { unreachable!("two columns were asked for") };
        let is_it = oid.clone().eq(scope::outer(of, scope)?);
        let none: Vec<Expr> = vec![];
        let plan = LogicalPlanBuilder::from(source.plan).filter(is_it)?.aggregate(none, vec![max(value.clone())])?;
        let subquery = Arc::new(plan.build()?);
        let outer_ref_columns = subquery.all_out_ref_exprs();
        Ok(Expr::ScalarSubquery(Subquery { subquery, outer_ref_columns, spans: Spans::new() }))
    }

    pub(super) fn sequence_call(&self, call: EngineResult<Call>, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let call = call.at(at)?;
        let call = if self.is_of_text() { call.of_definition() } else { call };
        if reads_rows(scope) {
            return unsupported("a function of a sequence beside FROM");
        }
        let place = (self.text.get(), at);
        if !self.called_once.borrow().contains(&place) {
            return unsupported("a function of a sequence where it may be called never or several times");
        }
        self.calls.borrow_mut().push((place, call));
        let value = self.planner.numbers.and_then(|numbers| numbers.get(&place)).copied().flatten();
        Ok(Expr::Literal(ScalarValue::Int64(value), None))
    }

    /// Notes what a query calls once (invariant 2).
    pub(super) fn note_calls(&self, query: &Query) {
        let mut found = BTreeSet::new();
        of_query(query, &mut found);
        self.add_calls(found);
    }

    /// The same of a value.
    pub(super) fn note_calls_of(&self, value: &tree::Expr) {
        let mut found = BTreeSet::new();
        of_expr(value, &mut found);
        self.add_calls(found);
    }

    fn add_calls(&self, found: BTreeSet<At>) {
        let text = self.text.get();
        self.called_once.borrow_mut().extend(found.into_iter().map(|at| (text, at)));
    }
}

/// A query of setval alone, of aggregates, as one without FROM (invariant 2).
pub(super) fn without_rows(query: &Query) -> Cow<'_, Query> {
    let Body::Select(select) = &query.body else { return Cow::Borrowed(query) };
    let plain = select.group.is_none() && select.having.is_none() && matches!(select.distinct, Distinct::No);
    let rest = query.order.is_empty() && query.limit.is_none() && query.offset.is_none() && query.locking.is_empty();
    let sets = |item: &tree::Item| matches!(call_of(&item.expr), Some(Ok(Call::Computed(name, _))) if name == "setval");
    let one = plain && rest && !select.from.is_empty() && !select.items.is_empty() && select.items.iter().all(sets);
    if !one || !select.items.iter().all(|item| has_aggregate(&item.expr)) {
        return Cow::Borrowed(query);
    }
    let mut alone = select.clone();
    (alone.from, alone.filter, alone.windows) = (vec![], None, vec![]);
    for item in &mut alone.items {
        let ExprKind::Call(call) = &mut item.expr.kind else { unreachable!("setval is a call") };
        for arg in call.args.iter_mut().filter(|arg| has_aggregate(&arg.value)) {
            let items = vec![tree::Item { expr: arg.value.clone(), alias: None }];
            let body = Body::Select(Box::new(tree::Select { items, ..(**select).clone() }));
            let inner = Query { with: None, body, ..query.clone() };
            arg.value.kind = ExprKind::Scalar(Box::new(inner));
        }
    }
    Cow::Owned(Query { body: Body::Select(alone), ..query.clone() })
}

/// Whether an aggregate is called, not counting those of queries within.
fn has_aggregate(expr: &tree::Expr) -> bool {
    let mut found = false;
    walk(Node::Expr(expr), &mut |node| match node {
        Node::Query(_) => false,
        Node::Expr(tree::Expr { kind: ExprKind::Call(call), .. }) if call.over.is_none() => {
            found |= call.name.parts().len() == 1 && is_known_aggregate(&call.name.last().name);
            true
        }
        Node::Expr(_) => true,
    });
    found
}

/// Whether rows are read in this query or in one around it.
fn reads_rows(scope: &Scope<'_>) -> bool {
    scope.source.given || scope.around.is_some_and(reads_rows)
}

/// Of a query that has one row, or of which each branch has one.
fn of_query(query: &Query, found: &mut BTreeSet<At>) {
    if query.limit.is_some() || query.offset.is_some() {
        return;
    }
    match &query.body {
        Body::Values(rows) => rows.iter().flatten().for_each(|value| of_expr(value, found)),
        Body::Set { op: SetOperator::Union, branches, .. } => {
            branches.iter().for_each(|branch| of_query(branch, found));
        }
        Body::Set { .. } => {}
        Body::Select(select) => {
            let plain = select.filter.is_none() && select.group.is_none() && select.having.is_none();
            if !plain || matches!(select.distinct, Distinct::On(_)) {
                return;
            }
            match select.from.as_slice() {
                [] => select.items.iter().for_each(|item| of_expr(&item.expr, found)),
                [FromItem::Query { query: inner, .. }] => of_query(inner, found),
                [FromItem::Table { name, .. }] if name.parts().len() == 1 => {
                    let ctes = query.with.iter().flat_map(|with| &with.ctes);
                    if let Some(cte) = ctes.into_iter().find(|cte| cte.name.name == name.last().name)
                        && let Statement::Query(inner) = cte.statement.as_ref()
                    {
                        of_query(inner, found);
                    }
                }
                _ => {}
            }
        }
    }
}

fn of_expr(expr: &tree::Expr, found: &mut BTreeSet<At>) {
    let args: Vec<&tree::Expr> = match &expr.kind {
        ExprKind::Call(_) if call_of(expr).is_some() => {
            found.insert(expr.at);
            return;
        }
        ExprKind::Call(call) if call.filter.is_none() && call.over.is_none() => {
            call.args.iter().map(|arg| &arg.value).collect()
        }
        ExprKind::Special { function: SpecialFunction::Coalesce, args } => args.iter().take(1).collect(),
        ExprKind::Special { args, .. } => args.iter().collect(),
        ExprKind::Binary { args, .. } if !args.iter().any(|arg| matches!(arg.kind, ExprKind::Row { .. })) => {
            args.iter().collect()
        }
        ExprKind::Distinct { args, .. } | ExprKind::Match { args, .. } | ExprKind::AtTimeZone { args, .. } => {
            args.iter().collect()
        }
        ExprKind::Unary { arg, .. }
        | ExprKind::Not(arg)
        | ExprKind::Is { arg, .. }
        | ExprKind::Cast { arg, .. }
        | ExprKind::Collate { arg, .. } => vec![arg.as_ref()],
        ExprKind::InList { arg, list, .. } if list.iter().all(|item| matches!(item.kind, ExprKind::Literal(_))) => {
            std::iter::once(arg.as_ref()).chain(list).collect()
        }
        ExprKind::Array(items) | ExprKind::Row { fields: items, .. } => items.iter().collect(),
        _ => vec![],
    };
    // PostgreSQL does not compute what is NULL for an argument that is.
    if !args.iter().any(|arg| is_null(arg)) {
        args.into_iter().for_each(|arg| of_expr(arg, found));
    }
}

fn is_null(expr: &tree::Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(literal) => *literal == Literal::Null,
        ExprKind::Cast { arg, .. } => is_null(arg),
        _ => false,
    }
}
