//! Expressions of GROUP BY that have queries in them.
//!
//! 1. A query that is written in GROUP BY means the same one that is written so in another part of the SELECT; where it
//!    stands in the text does not matter. Bound twice, it has other names within: so what GROUP BY has in common with
//!    the other parts becomes what was bound first.
use super::Result;
use super::group::{Groups, once_each, replaced, sets_mut};
use super::scope::Scope;
use super::select::Parts;
use datafusion::logical_expr::Expr;
use terrace_grammar::statement::{self as tree, ExprKind, Group, Node, Select, walk};

/// Expressions that have a query for a part, as they were written, and as they were bound.
pub(super) type Queries = Vec<(String, Expr)>;

/// Whether there is a query in GROUP BY.
pub(super) fn has_queries(select: &Select) -> bool {
    select.group.iter().flat_map(|group| &group.items).any(has_query)
}

fn has_query(item: &Group) -> bool {
    let within = |expr: &tree::Expr| {
        let mut found = false;
        walk(Node::Expr(expr), &mut |node| {
            found |= matches!(node, Node::Query(_));
            !found
        });
        found
    };
    match item {
        Group::Empty(_) => false,
        Group::Expr(expr) => within(expr),
        Group::Cube(_, exprs) | Group::Rollup(_, exprs) => exprs.iter().any(within),
        Group::Sets(_, items) => items.iter().any(has_query),
    }
}

/// Keeps what an expression was bound as, if GROUP BY may want it.
pub(super) fn note(expr: &tree::Expr, bound: &Expr, scope: &Scope<'_>) {
    let has_query = matches!(
        expr.kind,
        ExprKind::Scalar(_)
            | ExprKind::Exists(_)
            | ExprKind::InQuery { .. }
            | ExprKind::ArrayQuery(_)
            | ExprKind::Quantified { .. }
    );
    if let Some(queries) = scope.queries.borrow_mut().as_mut().filter(|_| has_query) {
        queries.push((without_places(&format!("{expr:?}")), bound.clone()));
    }
}

/// Invariant 1. `before`: how many were noted before GROUP BY.
pub(super) fn made_one(parts: &mut Parts, groups: &mut Groups, before: usize, scope: &Scope<'_>) -> Result<()> {
    let Some(queries) = scope.queries.take() else { return Ok(()) };
    assert!(before <= queries.len(), "they are noted in their order");
    let mut same: Vec<(Expr, Expr)> = vec![];
    for (at, (text, bound)) in queries.iter().enumerate() {
        let is_grouped = queries[before..].iter().any(|(other, _)| other == text);
        let first = queries[..at].iter().find(|(other, _)| other == text).filter(|_| is_grouped);
        if let Some((_, first)) = first.filter(|(_, first)| first != bound) {
            same.push((bound.clone(), first.clone()));
        }
    }
    if same.is_empty() {
        return Ok(());
    }
    for set in sets_mut(groups) {
        let keys = std::mem::take(set).into_iter().map(|key| replaced(key, &same));
        *set = once_each(keys.collect::<Result<Vec<Expr>>>()?);
    }
    parts.change(&mut |expr| replaced(expr, &same))
}

/// A tree that is shown for debugging, without the numbers that say where its parts stood.
fn without_places(shown: &str) -> String {
    let (mut kept, mut quoted, mut escaped) = (String::with_capacity(shown.len()), false, false);
    for next in shown.chars() {
        let is_place = !quoted && next.is_ascii_digit() && (kept.ends_with(" at: ") || kept.ends_with("word_at: "));
        if !is_place {
            kept.push(next);
        }
        (quoted, escaped) = match next {
            _ if escaped => (quoted, false),
            '\\' => (quoted, quoted),
            '"' => (!quoted, false),
            _ => (quoted, false),
        };
    }
    kept
}

#[cfg(test)]
mod tests;
