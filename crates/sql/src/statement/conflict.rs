//! INSERT ... ON CONFLICT.
//!
//! 1. The engine inserts a row or answers which row has its key, having waited for whoever was writing that row. DO
//!    UPDATE locks it and looks at it again: if it has changed or gone, the insert is tried anew. So each row is
//!    inserted, updated or passed over, whatever others do meanwhile.
//! 2. No row is inserted or updated twice by one statement's DO UPDATE (21000).
//! 3. The conflict's target names the columns of a unique index, in any order, or a constraint. Without a target, DO
//!    NOTHING applies to all unique indexes.
use crate::error::{from_datafusion, unsupported};
use crate::plan::bind::over::{Over, Part, Rows};
use crate::statement::changes::{Assigned, assigned, is_numbered, wanted};
use crate::statement::generic::Plan;
use crate::statement::indexes::is_same;
use crate::statement::run::Run;
use crate::statement::update_delete::Source;
use crate::through::Called;
use crate::transaction::OneRow;
use crate::values::check_not_null;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use std::collections::BTreeSet;
use std::sync::Arc;
use terrace_engine::{
    Datum, EngineError, Index, InsertOutcome, LockWait, Result, RowBuf, RowLock, RowLockOutcome, Table, UpdateOutcome,
};
use terrace_grammar::statement::{
    Conflict, ConflictAction, ConflictTarget, Expr, ExprKind, Ident, IndexElement, With, Written,
};
use terrace_storage::ObjectId;

/// The unique indexes whose conflicts count (invariant 3).
pub(crate) fn arbiters(conflict: &Conflict, table: &Table) -> Result<Vec<ObjectId>> {
    let found = matching(conflict, table)?;
    if found.iter().any(|oid| table.index(*oid).is_some_and(|index| !index.is_immediate())) {
        let message = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
        return Err(EngineError::new("55000", message).on_table(table));
    }
    Ok(found)
}

fn matching(conflict: &Conflict, table: &Table) -> Result<Vec<ObjectId>> {
    let unique = || table.indexes.iter().filter(|i| i.unique);
    match &conflict.target {
        None if matches!(conflict.action, ConflictAction::Update { .. }) => {
            let message = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
            Err(EngineError::new("42601", message))
        }
        None => Ok(unique().map(|i| i.oid).collect()),
        Some(ConflictTarget::Constraint(Ident { name, .. })) => {
            let missing = || {
                EngineError::new("42704", format!("constraint \"{name}\" for table \"{}\" does not exist", table.name))
            };
            Ok(vec![unique().find(|i| i.name == *name && i.is_constraint()).ok_or_else(missing)?.oid])
        }
        Some(ConflictTarget::Elements { at: _, elements, filter }) => {
            let elements = elements.iter().map(|element| target_of(element, table)).collect::<Result<Vec<_>>>()?;
            let matching = |index: &&Arc<Index>| infers(index, &elements, filter.as_ref(), table);
            let found: Vec<ObjectId> = unique().filter(matching).map(|i| i.oid).collect();
            let computes = |index: &Arc<Index>| index.columns.iter().any(|at| table.columns[*at].computed().is_some());
            if found.is_empty() && filter.is_some() && unique().any(computes) {
                // PostgreSQL may be able to prove that one condition implies the other.
                return Err(unsupported("ON CONFLICT (...) WHERE with another condition than the index's"));
            }
            if found.is_empty() {
                let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
                return Err(EngineError::new("42P10", message));
            }
            Ok(found)
        }
    }
}

/// What an element of a conflict's target is: a column, or an expression.
enum Element<'c> {
    Column(usize),
    Value(&'c str),
}

fn target_of<'c>(element: &'c IndexElement, table: &Table) -> Result<Element<'c>> {
    if element.descending || element.nulls.is_some() {
        let message = "ASC/DESC is not allowed in ON CONFLICT clause";
        return Err(EngineError::new("42P10", message));
    }
    if element.collation.is_some() || element.class.is_some() {
        return Err(unsupported("COLLATE or an operator class in ON CONFLICT"));
    }
    match &element.expr.kind {
        ExprKind::Column(name) if name.parts().len() == 1 => {
            let name = &name.last().name;
            let missing = || EngineError::new("42703", format!("column \"{name}\" does not exist"));
            Ok(Element::Column(table.column(name).ok_or_else(missing)?))
        }
        _ => Ok(Element::Value(&element.text)),
    }
}

/// Whether a conflict's target means an index: it names all of its columns and expressions and no other, and its
/// condition, if it has one.
fn infers(index: &Index, elements: &[Element<'_>], filter: Option<&Written>, table: &Table) -> bool {
    let expression = |at: usize| table.columns[at].computed();
    let is = |element: &Element<'_>, at: usize| match (element, expression(at)) {
        (Element::Column(column), None) => *column == at,
        (Element::Value(text), Some(computed)) => is_same(table, text, computed),
        _ => false,
    };
    let all_named = index.keys().iter().all(|at| elements.iter().any(|element| is(element, *at)));
    let none_else = elements.iter().all(|element| index.keys().iter().any(|at| is(element, *at)));
    let condition = match (index.is_partial(), filter) {
        (false, _) => true,
        (true, None) => false,
        (true, Some(filter)) => {
            let computed = index.columns.last().and_then(|at| expression(*at));
            computed.is_some_and(|computed| is_same(table, &filter.text, computed))
        }
    };
    all_named && none_else && condition
}

/// DO UPDATE of the existing row, beside the row `excluded` that could not be inserted.
pub(crate) fn conflict_over<'q>(
    (table, called): (&'q Arc<Table>, &'q Called),
    with: Option<&'q With>,
    filter: Option<&'q Expr>,
    assigned: &[Assigned<'q>],
) -> Over<'q> {
    Over {
        table,
        called,
        rows: Rows::Conflict,
        part: Part::Update,
        with,
        from: &[],
        given: None,
        beside: &[],
        filter,
        order: &[],
        wanted: wanted(called.defaults(table), assigned),
        kept: false,
    }
}

/// DO UPDATE, planned once for all rows of the statement.
struct Updating<'t> {
    source: Source<'t>,
    physical: Arc<dyn ExecutionPlan>,
    /// Rows this statement has written (invariant 2).
    touched: BTreeSet<[u8; 6]>,
}

impl Run<'_> {
    /// Inserts rows that have been checked; answers those inserted or updated, as they are now.
    pub(crate) async fn insert_or(
        &self,
        conflict: &Conflict,
        (table, called): (&Arc<Table>, &Called),
        with: Option<&With>,
        rows: Vec<Vec<Datum>>,
    ) -> Result<Vec<Vec<Datum>>> {
        let arbiters = arbiters(conflict, table)?;
        let unique = |oid: &ObjectId| table.index(*oid).is_some_and(|index| index.is_immediate());
        assert!(arbiters.iter().all(unique), "invariant 3: conflicts are with unique indexes");
        let mut updating = match &conflict.action {
            ConflictAction::Nothing => None,
            ConflictAction::Update { set, filter } => {
                let assigned = assigned(set, table)?;
                if assigned.iter().any(|(at, value)| is_numbered(&called.defaults(table).columns[*at], value)) {
                    return Err(unsupported("the DEFAULT of a sequence in ON CONFLICT DO UPDATE"));
                }
                let plan = self.plan_over(&conflict_over((table, called), with, filter.as_ref(), &assigned)).await?;
                let assigned = assigned.iter().map(|(at, _)| *at).collect();
                let physical = self.physical(&plan).await?;
                let source =
                    Source { table, plan: Plan::once(plan), assigned: Some(assigned), numbered: vec![], options: None };
                Some(Updating { source, physical, touched: BTreeSet::new() })
            }
        };
        let mut written = vec![];
        for row in rows {
            loop {
                let insert = async { self.cell.lock().await.open().insert_unless(table, &row, &arbiters).await };
                match (self.cancel.run(insert).await?, &mut updating) {
                    (InsertOutcome::Done(rid), updating) => {
                        if let Some(updating) = updating {
                            let new = updating.touched.insert(rid.encode());
                            assert!(new, "invariant 2: no other row of the statement is there");
                        }
                        written.push(row);
                        break;
                    }
                    (InsertOutcome::Conflict { .. }, None) => break,
                    (InsertOutcome::Conflict { rid, row: old, version }, Some(updating)) => {
                        let old = OneRow { target: 0, rid, row: old, version };
                        match self.update_conflicting(updating, old, &row).await? {
                            Conflicting::Updated(row) => {
                                written.push(row);
                                break;
                            }
                            Conflicting::Left => break,
                            Conflicting::Changed => {}
                        }
                    }
                }
            }
        }
        let options = self.options((table, called)).await?;
        self.check_options(table, options.as_ref(), &written).await?;
        self.follow_foreign_keys().await?;
        Ok(written)
    }

    async fn update_conflicting(&self, updating: &mut Updating<'_>, old: OneRow, new: &[Datum]) -> Result<Conflicting> {
        let (rid, version, table) = (old.rid, old.version, updating.source.table);
        if updating.touched.contains(&rid.encode()) {
            let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
            return Err(EngineError::new("21000", message).with_hint(
                "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
            ));
        }
        let of_key = |at: &usize| table.keys().any(|index| index.columns.contains(at));
        let takes_key = updating.source.assigned.iter().flatten().any(of_key);
        let strength = if takes_key { RowLock::Exclusive } else { RowLock::NoKeyUpdate };
        let lock =
            async { self.cell.lock().await.open().lock_row(table, rid, version, strength, LockWait::Wait).await };
        if !matches!(self.cancel.run(lock).await?, RowLockOutcome::Locked) {
            return Ok(Conflicting::Changed);
        }
        let given = Arc::new(vec![RowBuf::encode(table, new)?]);
        // A join keeps the rows that it has read as long as its plan lives.
        let plan = reset_plan_states(updating.physical.clone()).map_err(from_datafusion)?;
        let batches = self.drain(self.stream_given(plan, Some(old), given)?).await?;
        let Some(batch) = batches.iter().find(|b| b.num_rows() > 0) else { return Ok(Conflicting::Left) };
        let mut change = updating.source.changes(&batch.slice(0, 1))?.pop().expect("one row gives one change");
        check_not_null(table, &change.row)?;
        self.finish_rows(table, vec![&mut change.row]).await?;
        let update = async { self.cell.lock().await.open().update(table, rid, version, &change.row).await };
        match self.cancel.run(update).await? {
            UpdateOutcome::Done => {
                assert!(updating.touched.insert(rid.encode()), "invariant 2: looked up above");
                Ok(Conflicting::Updated(change.row))
            }
            _ => Ok(Conflicting::Changed),
        }
    }
}

/// What became of a row in conflict.
enum Conflicting {
    Updated(Vec<Datum>),
    /// The condition is not true of it.
    Left,
    /// It is not what it was: the insert is tried again.
    Changed,
}
