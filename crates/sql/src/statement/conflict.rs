//! INSERT ... ON CONFLICT.
//!
//! 1. The engine inserts a row or answers which row has its key, having waited for whoever was writing that row. DO
//!    UPDATE locks it and looks at it again: if it has changed or gone, the insert is tried anew. So each row is
//!    inserted, updated or passed over, whatever others do meanwhile.
//! 2. No row is inserted or updated twice by one statement's DO UPDATE (21000).
//! 3. The conflict's target names the columns of a unique index, in any order, or a constraint; without one, DO NOTHING
//!    heeds them all.
use crate::error::{from_datafusion, unsupported};
use crate::parse::{fold, object_name, template, type_parameter};
use crate::plan::changes::{TargetTable, assigning_query, insert_alias, target_table};
use crate::plan::planner::GIVEN;
use crate::statement::run::Run;
use crate::statement::update_delete::{Source, check_types};
use crate::transaction::OneRow;
use crate::values::{check_not_null, engine_type};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::sql::sqlparser::ast::{
    ConflictTarget, DoUpdate, Ident, Insert, ObjectName, OnConflict, OnConflictAction, OnInsert, SetExpr, Statement,
    TableFactor, TableWithJoins,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use terrace_engine::{
    DataType, Datum, EngineError, InsertOutcome, LockWait, Result, RowBuf, RowLock, RowLockOutcome, Table,
    UpdateOutcome,
};
use terrace_storage::ObjectId;

/// The unique indexes whose conflicts count (invariant 3).
fn arbiters(conflict: &OnConflict, table: &Table) -> Result<Vec<ObjectId>> {
    let unique = || table.indexes.iter().filter(|i| i.unique);
    match &conflict.conflict_target {
        None if matches!(conflict.action, OnConflictAction::DoUpdate(_)) => {
            let message = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
            Err(EngineError::new("42601", message))
        }
        None => Ok(unique().map(|i| i.oid).collect()),
        Some(ConflictTarget::OnConstraint(name)) => {
            let name = object_name(name)?;
            let missing = || {
                EngineError::new("42704", format!("constraint \"{name}\" for table \"{}\" does not exist", table.name))
            };
            Ok(vec![unique().find(|i| i.name == name).ok_or_else(missing)?.oid])
        }
        Some(ConflictTarget::Columns(columns)) => {
            let position = |c: &Ident| {
                let name = fold(c);
                let missing = || EngineError::new("42703", format!("column \"{name}\" does not exist"));
                table.column(&name).ok_or_else(missing)
            };
            let wanted: BTreeSet<usize> = columns.iter().map(position).collect::<Result<_>>()?;
            let matching = |columns: &[usize]| columns.iter().copied().collect::<BTreeSet<usize>>() == wanted;
            let found: Vec<ObjectId> = unique().filter(|i| matching(&i.columns)).map(|i| i.oid).collect();
            if found.is_empty() {
                let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
                return Err(EngineError::new("42P10", message));
            }
            Ok(found)
        }
    }
}

fn target(table: &Table, alias: &Ident) -> Result<TargetTable> {
    let name = Ident::with_quote('"', table.name.as_str());
    let mut query = template(&format!("SELECT 1 FROM {name} AS {alias}"))?;
    let SetExpr::Select(select) = query.body.as_mut() else { unreachable!("the template is a SELECT") };
    target_table(&select.from.remove(0).relation)
}

/// `SELECT <old>, <new> FROM <target>, <given> AS excluded WHERE ...`, and the assigned columns.
fn conflict_query(update: &DoUpdate, table: &Table, alias: &Ident) -> Result<(Statement, Vec<usize>)> {
    let mut query = template("SELECT 1 FROM x AS excluded")?;
    let SetExpr::Select(select) = query.body.as_mut() else { unreachable!("the template is a SELECT") };
    let mut excluded: TableWithJoins = select.from.remove(0);
    if let TableFactor::Table { name, .. } = &mut excluded.relation {
        *name = ObjectName::from(vec![Ident::with_quote('"', GIVEN)]);
    }
    assigning_query(&update.assignments, &[excluded], &update.selection, &target(table, alias)?, table)
}

/// The query behind DO UPDATE, to learn its parameters from; those assigned to a column at once are typed here.
pub(crate) fn update_query(
    insert: &Insert,
    table: &Table,
    types: &mut Vec<Option<DataType>>,
) -> Result<Option<Statement>> {
    let Some(OnInsert::OnConflict(conflict)) = &insert.on else { return Ok(None) };
    arbiters(conflict, table)?;
    let OnConflictAction::DoUpdate(update) = &conflict.action else { return Ok(None) };
    let (query, assigned) = conflict_query(update, table, &insert_alias(insert, &table.name))?;
    for ((_, value), at) in crate::plan::changes::assignments(&update.assignments)?.iter().zip(&assigned) {
        type_parameter(value, table.columns[*at].data_type, types);
    }
    Ok(Some(query))
}

/// Notes the types that a plan gives its parameters.
pub(crate) fn type_parameters(plan: &LogicalPlan, types: &mut Vec<Option<DataType>>) -> Result<()> {
    for (id, arrow) in plan.get_parameter_types().map_err(from_datafusion)? {
        let number = id.strip_prefix('$').and_then(|n| n.parse::<usize>().ok());
        let (Some(number), Some(arrow)) = (number.filter(|n| (1..=65_535).contains(n)), arrow) else { continue };
        if types.len() < number {
            types.resize(number, None);
        }
        let unknown = || unsupported(format!("a parameter of type {arrow}"));
        types[number - 1].get_or_insert(engine_type(&arrow).ok_or_else(unknown)?);
    }
    Ok(())
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
        conflict: &OnConflict,
        table: &Arc<Table>,
        alias: &Ident,
        rows: Vec<Vec<Datum>>,
    ) -> Result<Vec<Vec<Datum>>> {
        let arbiters = arbiters(conflict, table)?;
        let unique = |oid: &ObjectId| table.indexes.iter().any(|index| index.oid == *oid && index.unique);
        assert!(arbiters.iter().all(unique), "invariant 3: conflicts are with unique indexes");
        let mut updating = match &conflict.action {
            OnConflictAction::DoNothing => None,
            OnConflictAction::DoUpdate(update) => {
                let (query, assigned) = conflict_query(update, table, alias)?;
                let plan = self.plan(&query, Some(table)).await?;
                check_types(&plan, table, &assigned, &update.assignments)?;
                let physical = self.physical(&plan).await?;
                let source = Source { table, plan, assigned: Some(assigned) };
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
                        let old = OneRow { rid, row: old, version };
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
        let lock = async {
            self.cell.lock().await.open().lock_row(table, rid, version, RowLock::Exclusive, LockWait::Wait).await
        };
        if !matches!(self.cancel.run(lock).await?, RowLockOutcome::Locked) {
            return Ok(Conflicting::Changed);
        }
        let given = Arc::new(vec![RowBuf::encode(table, new)?]);
        // A join keeps what it has read for as long as its plan lives.
        let plan = reset_plan_states(updating.physical.clone()).map_err(from_datafusion)?;
        let batches = self.drain(self.stream_given(plan, Some(old), given)?).await?;
        let Some(batch) = batches.iter().find(|b| b.num_rows() > 0) else { return Ok(Conflicting::Left) };
        let change = updating.source.changes(&batch.slice(0, 1))?.pop().expect("one row gives one change");
        check_not_null(table, &change.row)?;
        self.check_rows(table, [change.row.as_slice()]).await?;
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
