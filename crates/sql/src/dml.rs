//! UPDATE and DELETE.
//!
//! 1. The rows to change come from a SELECT over the target with its row addresses and versions, which DataFusion plans and runs;
//!    all of it is collected before the first change (a change never meets its own effects).
//! 2. A row that another transaction has changed meanwhile (READ COMMITTED) is evaluated again: the same query, with the newest
//!    version of that row in place of the target's scan, and the other tables as the statement's snapshot shows them. It is
//!    changed if it still qualifies. (PostgreSQL calls this EvalPlanQual.)
//! 3. A row that joins to several is changed once.
//! 4. Queries in the condition that lock rows have run before, when the target was locked already (see [`crate::lock_rows::within`]).
use crate::context::OneRow;
use crate::ddl::undefined_column;
use crate::error::{from_datafusion, unsupported};
use crate::memory::row_bytes;
use crate::parse::{fold, object_name};
use crate::planner::TARGET;
use crate::returning::Changed;
use crate::run::Run;
use crate::scan::{RID, UNDO, WRITER, rid_from_u64, version_from};
use crate::values::{array_datum, assign_array, check_assignable, live_columns};
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, Ident, ObjectName, Query, SelectItem, SetExpr, Statement,
    TableFactor, TableWithJoins, Update, UpdateTableFromKind, Value,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use terrace_engine::{Datum, EngineError, Result, Table, UpdateOutcome, Version};
use terrace_storage::Rid;

/// One row's change: `row` is what it becomes; of a row to be deleted, what it is.
pub(crate) struct Change {
    rid: Rid,
    version: Version,
    pub(crate) row: Vec<Datum>,
}

/// The query whose output the changes are read from.
pub(crate) struct Source<'t> {
    pub(crate) table: &'t Arc<Table>,
    pub(crate) plan: LogicalPlan,
    /// UPDATE: the assigned columns, in the order of their values after the old columns. DELETE: none.
    pub(crate) assigned: Option<Vec<usize>>,
}

pub(crate) struct TargetTable {
    pub(crate) name: String,
    factor: TableFactor,
    pub(crate) alias: Ident,
}

impl Run<'_> {
    pub(crate) async fn update(&self, update: &Update) -> Result<Changed> {
        let target = update_target(update)?;
        let table = self.write_table(&target.name).await?;
        if let Some(settled) = self.settle(&update.selection).await? {
            let update = Update { selection: settled.condition.clone(), ..update.clone() };
            return Box::pin(settled.run(self).update(&update)).await;
        }
        let (query, assigned) = update_query(update, &target, &table)?;
        let plan = self.plan(&query, Some(&table)).await?;
        check_types(&plan, &table, &assigned, &update.assignments)?;
        let source = Source { table: &table, plan, assigned: Some(assigned) };
        let (count, rows) = self.change(source, update.returning.is_some()).await?;
        self.changed(&table, &target.alias, update.returning.as_deref(), count, rows).await
    }

    pub(crate) async fn delete(&self, delete: &Delete) -> Result<Changed> {
        let target = delete_target(delete)?;
        let table = self.write_table(&target.name).await?;
        if let Some(settled) = self.settle(&delete.selection).await? {
            let delete = Delete { selection: settled.condition.clone(), ..delete.clone() };
            return Box::pin(settled.run(self).delete(&delete)).await;
        }
        let query = delete_query(delete, &target, &table);
        let plan = self.plan(&query, Some(&table)).await?;
        let source = Source { table: &table, plan, assigned: None };
        let (count, rows) = self.change(source, delete.returning.is_some()).await?;
        self.changed(&table, &target.alias, delete.returning.as_deref(), count, rows).await
    }

    /// How many rows it changed, and with `returning` those rows as they are now; deleted ones as they were. Each batch
    /// is decoded twice, to be checked and to be applied: all rows decoded at once would take several times its memory.
    async fn change(&self, source: Source<'_>, returning: bool) -> Result<(usize, Vec<Vec<Datum>>)> {
        let collected = self.collect(&source.plan, None).await?;
        let memory = self.memory("rows to change");
        let mut first = BTreeSet::new();
        for batch in collected.iter() {
            self.cancel.check()?;
            memory.try_grow(batch.num_rows() * 2 * size_of::<Rid>()).map_err(from_datafusion)?;
            let mut changes = source.changes(batch)?;
            changes.retain(|change| first.insert(change.rid.encode()));
            if source.assigned.is_some() {
                for change in &changes {
                    check_not_null(source.table, &change.row)?;
                }
                self.check_rows(source.table, changes.iter().map(|c| c.row.as_slice())).await?;
            }
        }
        let (mut count, mut rows) = (0, vec![]);
        for batch in collected.iter() {
            for change in source.changes(batch)? {
                self.cancel.check()?;
                // Of several changes of one row the first counts.
                if !first.remove(&change.rid.encode()) {
                    continue;
                }
                let Some(row) = self.apply(&source, change).await? else { continue };
                count += 1;
                if returning {
                    memory.try_grow(size_of::<Vec<Datum>>() + row_bytes(&row)).map_err(from_datafusion)?;
                    rows.push(row);
                }
            }
        }
        Ok((count, rows))
    }

    /// Changes one row, evaluating it again as often as it has changed. `None`: it was not changed.
    async fn apply(&self, source: &Source<'_>, mut change: Change) -> Result<Option<Vec<Datum>>> {
        loop {
            let table: &Table = source.table;
            let attempt = async {
                let mut slot = self.cell.lock().await;
                let txn = slot.open();
                match source.assigned {
                    Some(_) => txn.update(table, change.rid, change.version, &change.row).await,
                    None => txn.delete(table, change.rid, change.version).await,
                }
            };
            match self.cancel.run(attempt).await? {
                UpdateOutcome::Done => return Ok(Some(change.row)),
                UpdateOutcome::Gone => return Ok(None),
                UpdateOutcome::Changed { row, version } => {
                    let newest = OneRow { rid: change.rid, row, version };
                    let batches = self.collect(&source.plan, Some(newest)).await?;
                    let again = batches.iter().find(|b| b.num_rows() > 0);
                    match again.map(|batch| source.changes(&batch.slice(0, 1))).transpose()? {
                        Some(mut one) => change = one.pop().expect("one row gives one change"),
                        None => return Ok(None),
                    }
                    if source.assigned.is_some() {
                        check_not_null(table, &change.row)?;
                        self.check_rows(source.table, [change.row.as_slice()]).await?;
                    }
                }
            }
        }
    }
}

impl Source<'_> {
    pub(crate) fn changes(&self, batch: &RecordBatch) -> Result<Vec<Change>> {
        let number = |at: usize| batch.column(at).as_primitive::<UInt64Type>();
        let (rids, writers, undos) = (number(0), number(1), number(2));
        let mut rows = self.new_rows(batch, self.assigned.as_deref().unwrap_or_default())?.into_iter();
        let change = |at: usize| Change {
            rid: rid_from_u64(rids.value(at)),
            version: version_from(writers.value(at), undos.value(at)),
            row: rows.next().expect("a new row for each old one"),
        };
        Ok((0..batch.num_rows()).map(change).collect())
    }

    /// The old rows with the assigned values in place.
    fn new_rows(&self, batch: &RecordBatch, assigned: &[usize]) -> Result<Vec<Vec<Datum>>> {
        let mut live: Vec<usize> = live_columns(self.table).map(|(at, _)| at).collect();
        // A DELETE that returns nothing reads nothing of the row.
        live.truncate(batch.num_columns() - 3 - assigned.len());
        let old: Vec<(usize, &ArrayRef)> = live.iter().enumerate().map(|(i, at)| (*at, batch.column(3 + i))).collect();
        let mut new: Vec<(usize, std::vec::IntoIter<Datum>)> = vec![];
        for (i, at) in assigned.iter().enumerate() {
            let values = assign_array(batch.column(3 + live.len() + i), &self.table.columns[*at])?;
            new.push((*at, values.into_iter()));
        }
        let row = |number: usize| {
            let mut row = vec![Datum::Null; self.table.columns.len()];
            for (at, array) in &old {
                row[*at] = array_datum(array, number);
            }
            for (at, values) in &mut new {
                row[*at] = values.next().expect("a value for each row");
            }
            row
        };
        Ok((0..batch.num_rows()).map(row).collect())
    }
}

/// 23502, as PostgreSQL words it.
pub(crate) fn check_not_null(table: &Table, row: &[Datum]) -> Result<()> {
    let Some((_, column)) = live_columns(table).find(|(at, c)| c.not_null && row[*at] == Datum::Null) else {
        return Ok(());
    };
    let values: Vec<String> = live_columns(table).map(|(at, _)| show(&row[at])).collect();
    Err(EngineError::not_null(&table.name, &column.name, format!("({})", values.join(", "))))
}

/// A value in an error's detail; long text is cut.
pub(crate) fn show(datum: &Datum) -> String {
    match datum {
        Datum::Text(text) => match text.char_indices().nth(64) {
            Some((cut, _)) => format!("{}...", &text[..cut]),
            None => text.to_string(),
        },
        other => other.to_string(),
    }
}

/// The table of an UPDATE or DELETE, ready to stand in FROM in the target's place.
pub(crate) fn target_table(relation: &TableFactor) -> Result<TargetTable> {
    let TableFactor::Table { name, alias, .. } = relation else {
        return Err(unsupported("this target"));
    };
    let folded = object_name(name)?;
    let alias_ident = match alias {
        Some(alias) if !alias.columns.is_empty() => return Err(unsupported("column aliases of a target")),
        Some(alias) => alias.name.clone(),
        None => Ident::with_quote('"', folded.clone()),
    };
    let mut factor = template("SELECT 1 FROM x AS y")?;
    let SetExpr::Select(select) = factor.body.as_mut() else { unreachable!("the template is a SELECT") };
    let mut factor = select.from.remove(0).relation;
    if let TableFactor::Table { name, alias: Some(alias), .. } = &mut factor {
        *name = ObjectName::from(vec![Ident::with_quote('"', TARGET)]);
        alias.name = alias_ident.clone();
    }
    Ok(TargetTable { name: folded, factor, alias: alias_ident })
}

pub(crate) fn template(sql: &str) -> Result<Box<Query>> {
    match crate::parse::parse_one(sql)? {
        Some(Statement::Query(query)) => Ok(query),
        _ => unreachable!("a template is a query"),
    }
}

pub(crate) fn update_target(update: &Update) -> Result<TargetTable> {
    let refused = [
        (update.output.is_some(), "OUTPUT"),
        (!update.table.joins.is_empty(), "UPDATE of a join"),
        (update.or.is_some() || !update.optimizer_hints.is_empty(), "this form of UPDATE"),
        (!update.order_by.is_empty() || update.limit.is_some(), "ORDER BY or LIMIT in UPDATE"),
        (matches!(update.from, Some(UpdateTableFromKind::BeforeSet(_))), "FROM before SET"),
    ];
    if let Some((_, what)) = refused.iter().find(|(is, _)| *is) {
        return Err(unsupported(what));
    }
    target_table(&update.table.relation)
}

pub(crate) fn delete_target(delete: &Delete) -> Result<TargetTable> {
    let refused = [
        (delete.output.is_some(), "OUTPUT"),
        (!delete.tables.is_empty() || !delete.optimizer_hints.is_empty(), "DELETE of several tables"),
        (!delete.order_by.is_empty() || delete.limit.is_some(), "ORDER BY or LIMIT in DELETE"),
    ];
    if let Some((_, what)) = refused.iter().find(|(is, _)| *is) {
        return Err(unsupported(what));
    }
    match &delete.from {
        FromTable::WithFromKeyword(from) => match from.as_slice() {
            [one] if one.joins.is_empty() => target_table(&one.relation),
            _ => Err(unsupported("DELETE from a join")),
        },
        FromTable::WithoutKeyword(_) => Err(EngineError::new("42601", "syntax error: DELETE without FROM")),
    }
}

/// `SELECT <address, version>, <items> FROM <target>, <others> WHERE <selection>`.
pub(crate) fn source_query(
    target: &TargetTable,
    items: Vec<SelectItem>,
    others: &[TableWithJoins],
    selection: &Option<Expr>,
) -> Statement {
    let mut query = template("SELECT 1").expect("the template parses");
    let SetExpr::Select(select) = query.body.as_mut() else { unreachable!("the template is a SELECT") };
    select.projection = [RID, WRITER, UNDO].iter().map(|name| column_of(target, name)).chain(items).collect();
    select.from = [TableWithJoins { relation: target.factor.clone(), joins: vec![] }]
        .into_iter()
        .chain(others.iter().cloned())
        .collect();
    select.selection = selection.clone();
    Statement::Query(query)
}

pub(crate) fn column_of(target: &TargetTable, name: &str) -> SelectItem {
    SelectItem::UnnamedExpr(Expr::CompoundIdentifier(vec![target.alias.clone(), Ident::with_quote('"', name)]))
}

pub(crate) fn delete_query(delete: &Delete, target: &TargetTable, table: &Table) -> Statement {
    // The old row is for RETURNING alone.
    let old = live_columns(table).map(|(_, c)| column_of(target, &c.name));
    let items = if delete.returning.is_some() { old.collect() } else { vec![] };
    source_query(target, items, delete.using.as_deref().unwrap_or_default(), &delete.selection)
}

/// The query, and the assigned columns in the order of its last outputs.
pub(crate) fn update_query(update: &Update, target: &TargetTable, table: &Table) -> Result<(Statement, Vec<usize>)> {
    let others = match &update.from {
        Some(UpdateTableFromKind::AfterSet(from)) => from.as_slice(),
        _ => &[],
    };
    assigning_query(&update.assignments, others, &update.selection, target, table)
}

pub(crate) fn assigning_query(
    sets: &[Assignment],
    others: &[TableWithJoins],
    selection: &Option<Expr>,
    target: &TargetTable,
    table: &Table,
) -> Result<(Statement, Vec<usize>)> {
    let old = live_columns(table).map(|(_, c)| column_of(target, &c.name));
    let mut items: Vec<SelectItem> = old.collect();
    let mut assigned = vec![];
    for (column, value) in assignments(sets)? {
        let name = fold(&column);
        let at = live_columns(table).find(|(_, c)| c.name == name).map(|(at, _)| at);
        let at = at.ok_or_else(|| undefined_column(&name, &table.name))?;
        if assigned.contains(&at) {
            return Err(EngineError::new("42601", format!("multiple assignments to same column \"{name}\"")));
        }
        crate::refusals::refuse_windows_in(&value, "UPDATE")?;
        let expr = if is_default(&value) { default_of(table, at)? } else { value };
        items.push(SelectItem::ExprWithAlias {
            expr,
            alias: Ident::with_quote('"', format!("\0new{}", assigned.len())),
        });
        assigned.push(at);
    }
    Ok((source_query(target, items, others, selection), assigned))
}

/// One column and value each; `(a, b) = (1, 2)` is taken apart.
pub(crate) fn assignments(assignments: &[Assignment]) -> Result<Vec<(Ident, Expr)>> {
    let column = |name: &ObjectName| match name.0.as_slice() {
        [part] => part.as_ident().cloned().ok_or_else(|| unsupported("this assignment")),
        _ => Err(EngineError::new("42703", format!("column \"{name}\" does not exist"))),
    };
    let mut all = vec![];
    for assignment in assignments {
        match (&assignment.target, &assignment.value) {
            (AssignmentTarget::ColumnName(name), value) => all.push((column(name)?, value.clone())),
            (AssignmentTarget::Tuple(names), Expr::Tuple(values)) if names.len() == values.len() => {
                for (name, value) in names.iter().zip(values) {
                    all.push((column(name)?, value.clone()));
                }
            }
            _ => return Err(unsupported("assignment of a row")),
        }
    }
    Ok(all)
}

pub(crate) fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

pub(crate) fn default_of(table: &Table, column: usize) -> Result<Expr> {
    let sql = table.columns[column].default_sql.as_deref().unwrap_or("NULL");
    let broken = || EngineError::new("XX000", format!("the default {sql} is not an expression"));
    crate::exact::parsed(sql)?.ok_or_else(broken)
}

/// A literal whose type is still open: a quoted string, or a parameter.
pub(crate) fn is_open_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_open_literal(inner),
        Expr::Value(value) => matches!(
            value.value,
            Value::SingleQuotedString(_)
                | Value::EscapedStringLiteral(_)
                | Value::DollarQuotedString(_)
                | Value::Null
                | Value::Placeholder(_)
        ),
        _ => false,
    }
}

pub(crate) fn check_types(plan: &LogicalPlan, table: &Table, assigned: &[usize], sets: &[Assignment]) -> Result<()> {
    let first = 3 + live_columns(table).count();
    let values = assignments(sets)?;
    for (i, at) in assigned.iter().enumerate() {
        let literal = is_open_literal(&values[i].1) || is_default(&values[i].1);
        check_assignable(plan.schema().field(first + i).data_type(), &table.columns[*at], literal)?;
    }
    Ok(())
}
