//! Whether a change reads its target: then its role must be allowed to, besides changing it.
//!
//! 1. Where it is not certain that a name means something else than a column of the target, it means one.
use terrace_engine::Table;
use terrace_engine::catalog::access::Rights;
use terrace_grammar::statement::{
    Assignment, ConflictAction, Delete, Expr, ExprKind, FromItem, Ident, Insert, Item, Node, Update, walk,
};

/// The target of a change, and what it is called.
type Target<'t> = (&'t Table, &'t Ident);

pub(crate) fn update_reads(update: &Update, target: Target<'_>) -> bool {
    let values = update.set.iter().map(|one| match one {
        Assignment::One { value, .. } | Assignment::Many { value, .. } => value,
    });
    // The target's columns are seen by a LATERAL query.
    let in_from = !update.from.iter().all(is_table);
    in_from || values.chain(&update.filter).any(|expr| reads(expr, target)) || returns(&update.returning, target)
}

pub(crate) fn delete_reads(delete: &Delete, target: Target<'_>) -> bool {
    let in_from = !delete.using.iter().all(is_table);
    in_from || delete.filter.iter().any(|expr| reads(expr, target)) || returns(&delete.returning, target)
}

/// What INSERT needs besides INSERT.
pub(crate) fn rights_beside(insert: &Insert) -> Rights {
    let mut rights = if insert.returning.is_empty() { Rights::NONE } else { Rights::SELECT };
    if let Some(conflict) = &insert.conflict {
        if conflict.target.is_some() {
            rights = rights | Rights::SELECT;
        }
        if matches!(conflict.action, ConflictAction::Update { .. }) {
            rights = rights | Rights::UPDATE | Rights::SELECT;
        }
    }
    rights
}

fn is_table(item: &FromItem) -> bool {
    matches!(item, FromItem::Table { .. })
}

fn returns(items: &[Item], target: Target<'_>) -> bool {
    items.iter().any(|item| reads(&item.expr, target))
}

fn reads(expr: &Expr, (table, called): Target<'_>) -> bool {
    let mut found = false;
    walk(Node::Expr(expr), &mut |node| {
        let Node::Expr(expr) = node else { return !found };
        found |= match &expr.kind {
            ExprKind::Column(name) => match name.parts() {
                [own] => table.column(&own.name).is_some() || own.name == called.name,
                [.., of, _] => of.name == called.name,
                [] => false,
            },
            ExprKind::Star(_) | ExprKind::AllFields(_) => true,
            _ => false,
        };
        !found
    });
    found
}
