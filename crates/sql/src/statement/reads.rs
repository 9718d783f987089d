//! What an INSERT needs besides INSERT on its columns, and which columns it writes.
use crate::parse::stored::columns_of;
use crate::statement::changes::assigned;
use crate::statement::conflict::arbiters;
use crate::statement::returning::Returning;
use crate::statement::run::Run;
use crate::through::Called;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{Result, Table};
use terrace_grammar::statement::{Conflict, ConflictAction, ConflictTarget, Expr, Insert};

impl Run<'_> {
    /// 42501 where the current role may not do what ON CONFLICT and RETURNING say: read the columns that tell which
    /// conflict is meant, change those that are assigned, read those that are returned.
    pub(crate) async fn permit_rest(&self, insert: &Insert, (table, called): (&Arc<Table>, &Called)) -> Result<()> {
        if let Some(conflict) = &insert.conflict {
            let meant = meant(conflict, table)?;
            if conflict.target.is_some() {
                self.permit_changed((table, called), Rights::SELECT, &meant).await?;
                if let Some(through) = &called.through {
                    through.permit_reads(&self.cell.lock().await.open().catalog(), table)?;
                }
            }
            if let ConflictAction::Update { .. } = &conflict.action {
                self.permit_changed((table, called), Rights::UPDATE, &updated(insert, table)?).await?;
            }
        }
        self.permit_returning((table, called), Returning::of(&insert.returning)).await
    }
}

/// The columns that a conflict's target names.
fn meant(conflict: &Conflict, table: &Table) -> Result<Vec<usize>> {
    match &conflict.target {
        None => Ok(vec![]),
        Some(ConflictTarget::Constraint(_)) => {
            let indexes = arbiters(conflict, table)?.into_iter().filter_map(|oid| table.index(oid));
            Ok(indexes.flat_map(|index| index.keys().to_vec()).collect())
        }
        Some(ConflictTarget::Elements { elements, filter, .. }) => {
            let exprs = elements.iter().map(|element| &element.expr).chain(filter.iter().map(|filter| &filter.expr));
            let named = |expr: &Expr| columns_of(expr).iter().filter_map(|name| table.column(name)).collect::<Vec<_>>();
            Ok(exprs.flat_map(named).collect())
        }
    }
}

/// The columns that DO UPDATE assigns to.
fn updated(insert: &Insert, table: &Table) -> Result<Vec<usize>> {
    match insert.conflict.as_ref().map(|conflict| &conflict.action) {
        Some(ConflictAction::Update { set, .. }) => Ok(assigned(set, table)?.iter().map(|(at, _)| *at).collect()),
        _ => Ok(vec![]),
    }
}

/// The columns to which the statement gives values, some of them by its rows.
pub(crate) fn written(insert: &Insert, table: &Table, by_rows: &[usize]) -> Vec<usize> {
    by_rows.iter().copied().chain(updated(insert, table).unwrap_or_default()).collect()
}
