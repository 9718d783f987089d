//! Which column of which table or view a column of a query is: clients are told it with the columns of a result.
//!
//! 1. It is told where it is certain, as PostgreSQL tells it: of an item that is a column and nothing else, under
//!    whatever name, also through queries in FROM, WITH queries and joins. What is computed, and what a set of queries
//!    answers, has none.
//! 2. A view's column is the view's, not that of the table that the view reads.
//! 3. Columns are known by the names that they have in plans, which are not given twice
//!    ([`bind`](super), invariant 1).
use super::Binder;
use super::from::Relation;
use crate::plan::naming::{Origin, Origins};
use datafusion::common::TableReference;
use datafusion::logical_expr::Expr;
use std::collections::BTreeMap;
use terrace_grammar::statement::{self as tree, ExprKind};

#[derive(Default)]
pub(super) struct Known(BTreeMap<(Option<TableReference>, String), Origin>);

/// Whether an item is written as a column, or as `*`: what is bound as a column may be more than that (`+a`).
pub(super) fn is_column(item: &tree::Expr) -> bool {
    matches!(item.kind, ExprKind::Column(_) | ExprKind::Star(_))
}

impl Binder<'_> {
    /// The columns of a table or a view; `positions`: of the columns that it offers, counted from 0.
    pub(super) fn note_relation(&self, relation: &Relation, oid: u32, positions: impl Iterator<Item = usize>) {
        self.note_columns(relation, positions.map(|at| Origin::of(oid, at)));
    }

    /// The columns of a query in FROM.
    pub(super) fn note_query(&self, relation: &Relation, origins: &Origins) {
        self.note_columns(relation, origins.0.iter().copied());
    }

    fn note_columns(&self, relation: &Relation, origins: impl Iterator<Item = Option<Origin>>) {
        let mut known = self.origins.borrow_mut();
        for ((_, expr), origin) in relation.columns.iter().zip(origins) {
            if let (Expr::Column(column), Some(origin)) = (expr, origin) {
                known.0.insert((column.relation.clone(), column.name.clone()), origin);
            }
        }
    }

    /// Of an expression over FROM, or over what stands before a LATERAL query.
    pub(super) fn origin(&self, expr: &Expr) -> Option<Origin> {
        let (Expr::Column(column) | Expr::OuterReferenceColumn(_, column)) = expr else { return None };
        self.origins.borrow().0.get(&(column.relation.clone(), column.name.clone())).copied()
    }
}
