//! INSERT ... SELECT.
//!
//! 1. If the query does not read the target, its rows are stored batch by batch while it runs, so they are never held
//!    all at once. Otherwise the query ends before the first row is stored, because scans see what their own
//!    transaction has written. The same holds if defaults take a new snapshot when they are evaluated, and with ON
//!    CONFLICT.
//! 2. While the query runs, its statement takes no new snapshot (planning would take one). Scans that open later would
//!    see another state than those before.
use crate::error::from_datafusion;
use crate::memory::row_bytes;
use crate::parse::constants::constant;
use crate::parse::identity::Identity;
use crate::parse::sequence_calls::{call_of, calls_within, sequence_of};
use crate::parse::stored::Stored;
use crate::plan::bind::over::{Over, Part, Rows, Wanted, assigned_constant};
use crate::plan::rules::is_volatile;
use crate::statement::changes::{alone_over, check_identities, check_width};
use crate::statement::reads::written;
use crate::statement::returning::{Changed, Returning};
use crate::statement::run::{Collected, Run};
use crate::through::Called;
use crate::values::{assign_array, assign_datum, check_assignable, check_not_null, live_columns};
use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr as Value, LogicalPlan, Projection};
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{ColumnDef, DataType, Datum, EngineError, Result, RowBuf, Table};
use terrace_grammar::statement::{Body, Distinct, Expr, ExprKind, Group, Insert, Item, Literal, Query};

/// The query with its constants as the columns take them: what does not fit fails, where there is no row, too.
fn fitted(plan: LogicalPlan, table: &Table, columns: &[usize]) -> datafusion::common::Result<LogicalPlan> {
    let LogicalPlan::Projection(Projection { mut expr, input, .. }) = plan else { return Ok(plan) };
    for (expr, at) in expr.iter_mut().zip(columns) {
        let value = if let Value::Alias(alias) = &*expr { alias.expr.as_ref() } else { &*expr };
        let made = assigned_constant(value.clone(), table.columns[*at].data_type);
        if made != *value {
            let (qualifier, name) = expr.qualified_name();
            *expr = made.alias_qualified(qualifier, name);
        }
    }
    Ok(LogicalPlan::Projection(Projection::try_new(expr, input)?))
}

/// What rows are made of: a query's, and the defaults of the columns that it does not fill.
struct RowMaker<'a> {
    table: &'a Arc<Table>,
    /// Positions of the columns that the query fills.
    columns: &'a [usize],
    /// The columns beside them that have a default.
    rest: Vec<usize>,
    /// Those of `rest` whose default is of another value for each row; a sequence's next value is not among them.
    varying: Vec<usize>,
    /// A row with the defaults that are the same for each row.
    constants: Vec<Datum>,
}

impl Run<'_> {
    pub(super) async fn insert_select(
        &self,
        insert: &Insert,
        (table, called): (&Arc<Table>, &Called),
        columns: &[usize],
        source: &Query,
    ) -> Result<Changed> {
        let plan = self.plan_tree(source).await?;
        let fields = plan.schema().fields();
        check_width(fields.len(), columns, !insert.columns.is_empty(), (table, called))?;
        let columns = &columns[..fields.len()];
        self.permit_changed((table, called), Rights::INSERT, columns).await?;
        check_identities(insert, table, columns, None)?;
        for (number, at) in columns.iter().enumerate() {
            let (column, open) = (&table.columns[*at], open_literal(source, number, fields.len()));
            check_assignable(fields[number].data_type(), column, open.is_some())?;
            if let Some(read) = open.and_then(|item| self.style().scope(|| constant(item, column))) {
                read?; // Of a query without rows, too.
            }
        }
        let plan = fitted(plan, table, columns).map_err(from_datafusion)?;
        match Box::pin(self.insert_made(insert, (table, called), columns, plan)).await {
            Err(error) => Err(self.hidden(error, &written(insert, table, columns)).await),
            inserted => inserted,
        }
    }

    /// Stores the rows of a query's plan.
    async fn insert_made(
        &self,
        insert: &Insert,
        (table, called): (&Arc<Table>, &Called),
        columns: &[usize],
        plan: LogicalPlan,
    ) -> Result<Changed> {
        let maker = Box::pin(self.row_maker(called.defaults(table), columns)).await?;
        let memory = self.memory("rows to insert");
        let keep = |row: &[Datum]| memory.try_grow(row_bytes(row)).map_err(from_datafusion);
        if insert.conflict.is_some() {
            let mut rows = vec![];
            for batch in self.collect(&plan, None).await?.iter() {
                let made = Box::pin(maker.rows(self, batch)).await?;
                made.iter().try_for_each(|row| keep(row))?;
                rows.extend(made);
            }
            return Box::pin(self.insert_rows(insert, (table, called), rows)).await;
        }
        let checking = self.checking(table).await?;
        let options = self.options((table, called)).await?;
        let (mut count, mut returned) = (0, vec![]);
        let mut source = match !reads(&plan, table)? && maker.keeps_snapshot(self).await? {
            true => Batches::Running(self.begin(&plan, None).await?),
            false => Batches::Ended(self.collect(&plan, None).await?, 0),
        };
        while let Some(batch) = source.next(self).await? {
            let mut rows = Box::pin(maker.rows(self, &batch)).await?;
            for row in &rows {
                check_not_null(table, row)?;
            }
            if let Some(by) = &checking {
                Box::pin(self.finish_by(table, by, &mut rows.iter_mut().collect::<Vec<_>>())).await?;
            }
            self.store_all(table, options.as_ref(), &rows).await?;
            count += rows.len();
            if !insert.returning.is_empty() {
                rows.iter().try_for_each(|row| keep(row))?;
                returned.extend(rows);
            }
        }
        self.follow_foreign_keys().await?;
        Box::pin(self.changed((table, called), Returning::of(&insert.returning), count, returned)).await
    }

    async fn row_maker<'a>(&self, table: &'a Arc<Table>, columns: &'a [usize]) -> Result<RowMaker<'a>> {
        let rest: Vec<usize> = live_columns(table)
            .filter(|(at, c)| !columns.contains(at) && c.default().is_some())
            .map(|(at, _)| at)
            .collect();
        let varying = self.varying_defaults(table, &rest).await?;
        let numbered = |at: &usize| sequence_of(&table.columns[*at]).is_some();
        let with_default: Vec<usize> =
            live_columns(table).filter(|(_, c)| c.default().is_some()).map(|(at, _)| at).collect();
        let of = |at: &usize| match rest.contains(at) && !numbered(at) && !varying.contains(at) {
            true => Expr { at: 0, kind: ExprKind::Default },
            false => Expr { at: 0, kind: ExprKind::Literal(Literal::Null) },
        };
        let constants = match rest.is_empty() {
            true => vec![],
            false => {
                self.value_rows(table, &with_default, &[with_default.iter().map(of).collect()], None).await?.remove(0)
            }
        };
        Ok(RowMaker { table, columns, rest, varying, constants })
    }

    /// Those of the columns whose defaults are volatile: of another value for each row. (A sequence's next value is not
    /// among them.)
    pub(crate) async fn varying_defaults(&self, table: &Arc<Table>, columns: &[usize]) -> Result<Vec<usize>> {
        let mut varying = vec![];
        for at in columns {
            let column = &table.columns[*at];
            let Some(sql) = column.default() else { continue };
            let broken = || EngineError::new("XX000", format!("the default {sql} is not an expression"));
            let default = Stored::read(sql).ok_or_else(broken)?;
            if constant(default.expr(), column).is_some() || call_of(default.expr()).is_some() {
                continue;
            }
            if calls_within(default.expr()) {
                varying.push(*at);
                continue;
            }
            let called = Called::so(&table.name);
            let over = alone_over(table, &called, Part::Default, vec![Wanted::Default(column)]);
            if is_volatile(&self.plan_over(&over).await?).map_err(from_datafusion)? {
                varying.push(*at);
            }
        }
        Ok(varying)
    }

    /// The defaults of these columns, one for each row.
    async fn default_values(
        &self,
        table: &Arc<Table>,
        columns: &[usize],
        rows: &[Vec<Datum>],
    ) -> Result<Vec<Vec<Datum>>> {
        if columns.is_empty() {
            return Ok(vec![]);
        }
        // The rows are not whole yet.
        let mut nullable = Table::clone(table);
        nullable.columns.iter_mut().for_each(|column| column.not_null = false);
        let nullable = Arc::new(nullable);
        let called = Called::so(&table.name);
        let wanted = columns.iter().map(|at| Wanted::Default(&table.columns[*at])).collect();
        let over = Over { rows: Rows::Given, ..alone_over(&nullable, &called, Part::Default, wanted) };
        let physical = self.physical(&self.plan_over(&over).await?).await?;
        let given = rows.iter().map(|row| RowBuf::encode(&nullable, row)).collect::<Result<Vec<RowBuf>>>()?;
        let batches = self.drain(self.stream_given(physical, None, Arc::new(given))?).await?;
        let mut values = vec![Vec::with_capacity(rows.len()); columns.len()];
        for batch in batches.iter() {
            for (number, at) in columns.iter().enumerate() {
                values[number].extend(assign_array(batch.column(number), &table.columns[*at])?);
            }
        }
        Ok(values)
    }
}

impl RowMaker<'_> {
    /// Whether making rows leaves the statement's snapshot as it is (invariant 2).
    async fn keeps_snapshot(&self, run: &Run<'_>) -> Result<bool> {
        for name in self.rest.iter().filter_map(|at| sequence_of(&self.table.columns[*at])) {
            if !run.numbers_apart(&name).await? {
                return Ok(false);
            }
        }
        Ok(self.varying.is_empty())
    }

    async fn rows(&self, run: &Run<'_>, batch: &RecordBatch) -> Result<Vec<Vec<Datum>>> {
        run.cancel.check()?;
        let table = self.table;
        let mut rows = vec![vec![Datum::Null; table.columns.len()]; batch.num_rows()];
        for (number, at) in self.columns.iter().enumerate() {
            let values = assign_array(batch.column(number), &table.columns[*at])?;
            rows.iter_mut().zip(values).for_each(|(row, value)| row[*at] = value);
        }
        for (at, values) in self.varying.iter().zip(run.default_values(table, &self.varying, &rows).await?) {
            rows.iter_mut().zip(values).for_each(|(row, value)| row[*at] = value);
        }
        for at in self.rest.iter().filter(|at| !self.varying.contains(at)) {
            match sequence_of(&table.columns[*at]) {
                None => rows.iter_mut().for_each(|row| row[*at] = self.constants[*at].clone()),
                Some(name) => {
                    let numbers = run.numbers(&name, rows.len(), Identity::of(&table.columns[*at]).is_some()).await?;
                    assert_eq!(numbers.len(), rows.len(), "a number for each row");
                    for (row, number) in rows.iter_mut().zip(numbers) {
                        row[*at] = assign_datum(Datum::Int8(number), table.columns[*at].data_type)?;
                    }
                }
            }
        }
        Ok(rows)
    }
}

/// What a query gives, a batch at a time.
enum Batches {
    Running(SendableRecordBatchStream),
    /// And the number of the next batch.
    Ended(Collected, usize),
}

impl Batches {
    async fn next(&mut self, run: &Run<'_>) -> Result<Option<RecordBatch>> {
        match self {
            Batches::Running(stream) => run.next_batch(stream).await,
            Batches::Ended(collected, next) => {
                *next += 1;
                Ok(collected.get(*next - 1).cloned())
            }
        }
    }
}

/// Whether the plan reads the table.
fn reads(plan: &LogicalPlan, table: &Table) -> Result<bool> {
    let mut found = false;
    let visited = plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::TableScan(scan) if crate::plan::scan::reads(scan, table));
        Ok(TreeNodeRecursion::Continue)
    });
    visited.map_err(from_datafusion)?;
    Ok(found)
}

/// Gives parameters that stand alone among the source's items the types of their columns. `inferred`: the types that
/// they have without that. False: there are none.
pub(crate) fn settle_items(
    source: &Query,
    (width, columns): (usize, &[&ColumnDef]),
    inferred: &[DataType],
    types: &mut Vec<Option<DataType>>,
) -> bool {
    let mut settled = false;
    for (number, column) in columns.iter().enumerate().take(width) {
        let item = open_item(source, number, width).map(|item| &item.kind);
        let Some(ExprKind::Parameter(parameter)) = item else { continue };
        let Some(at) = (*parameter as usize).checked_sub(1) else { continue };
        let is_open = types.get(at).is_none_or(Option::is_none) && inferred.get(at) == Some(&DataType::Text);
        if is_open && column.data_type != DataType::Text {
            types.resize(types.len().max(inferred.len()), None);
            types[at] = Some(column.data_type);
            settled = true;
        }
    }
    settled
}

/// The literal that the column decides the type of, as [`open_item`] says.
fn open_literal(source: &Query, number: usize, width: usize) -> Option<&Expr> {
    open_item(source, number, width).filter(|item| !matches!(item.kind, ExprKind::Parameter(_)))
}

/// The literal or the parameter that the column decides the type of: the source's item of that number, if DISTINCT,
/// ORDER BY and GROUP BY do not make a text of it. `width`: how many columns the source has.
fn open_item(source: &Query, number: usize, width: usize) -> Option<&Expr> {
    let Body::Select(select) = &source.body else { return None };
    let is_star = |item: &Item| matches!(item.expr.kind, ExprKind::Star(_) | ExprKind::AllFields(_));
    let item = match (select.items.iter().position(is_star), select.items.iter().rposition(is_star)) {
        (Some(first), _) if number < first => &select.items[number],
        // Behind the stars, items are counted from the end.
        (Some(_), Some(last)) => select.items[last + 1..].iter().rev().nth(width - 1 - number)?,
        _ => select.items.get(number)?,
    };
    let open = matches!(item.expr.kind, ExprKind::Literal(Literal::Text(_) | Literal::Null) | ExprKind::Parameter(_));
    let distinct: &[Expr] = match &select.distinct {
        Distinct::Rows => return None,
        Distinct::On(keys) => keys,
        Distinct::No => &[],
    };
    let groups = select.group.iter().flat_map(|group| group.items.iter());
    let groups = groups.filter_map(|group| if let Group::Expr(key) = group { Some(key) } else { None });
    let mut keys = distinct.iter().chain(source.order.iter().map(|key| &key.expr)).chain(groups);
    let named = |key: &Expr| match &key.kind {
        ExprKind::Literal(Literal::Int(at)) => usize::try_from(*at).is_ok_and(|at| at == number + 1),
        ExprKind::Column(name) => item.alias.as_ref().is_some_and(|alias| alias.name == name.last().name),
        kind => *kind == item.expr.kind,
    };
    (open && !keys.any(named)).then_some(&item.expr)
}
