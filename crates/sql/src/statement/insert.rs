//! INSERT.
//!
//! A cell of VALUES that is a literal or a parameter becomes a value of its column's type at once, as PostgreSQL types
//! it; other cells and defaults are evaluated by DataFusion, all of a statement's in one query. INSERT ... SELECT:
//! [`select`].
use crate::parse::sequence_calls::{Call, old_call_of};
use crate::plan::changes::{
    check_count, default_of, insert_alias, insert_columns, insert_target, is_default, literal, plain_values,
    values_query,
};
use crate::statement::returning::Changed;
use crate::statement::run::Run;
use crate::values::{assign_array, assign_datum, check_assignable, check_not_null, live_columns};
use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Insert, OnInsert, Value};
use std::sync::Arc;
use terrace_engine::{Datum, EngineError, Result, Table};

mod select;

/// A cell of VALUES.
enum Cell {
    Known(Datum),
    /// A function of a sequence: evaluated by itself, in the order of the cells.
    Sequence(Call),
    /// The column of the query that evaluates the cells that are not known, and whether it is a literal of open type.
    Computed(usize),
}

impl Run<'_> {
    pub(crate) async fn insert(&self, insert: &Insert) -> Result<Changed> {
        let name = insert_target(insert)?;
        let table = self.write_table(&name).await?;
        let columns = insert_columns(insert, &table)?;
        let listed = !insert.columns.is_empty();
        let alias = insert_alias(insert, &name);
        let rows = match insert.source.as_deref() {
            None => self.value_rows(&table, &[], &[&vec![]]).await?,
            Some(source) => match plain_values(source) {
                Some(rows) => {
                    let width = rows.first().map_or(0, |row| row.len());
                    if rows.iter().any(|row| row.len() != width) {
                        return Err(EngineError::new("42601", "VALUES lists must all be the same length"));
                    }
                    check_count(width, &columns, listed)?;
                    self.value_rows(&table, &columns[..width], &rows).await?
                }
                None => return Box::pin(self.insert_select(insert, &table, &alias, &columns, source)).await,
            },
        };
        Box::pin(self.insert_rows(insert, &table, &alias, rows)).await
    }

    /// Rows that are there all at once.
    async fn insert_rows(
        &self,
        insert: &Insert,
        table: &Arc<Table>,
        alias: &Ident,
        rows: Vec<Vec<Datum>>,
    ) -> Result<Changed> {
        for row in &rows {
            check_not_null(table, row)?;
        }
        self.check_rows(table, rows.iter().map(Vec::as_slice)).await?;
        let returning = insert.returning.as_deref();
        if let Some(OnInsert::OnConflict(conflict)) = &insert.on {
            let rows = Box::pin(self.insert_or(conflict, table, alias, rows)).await?;
            return self.changed(table, alias, returning, rows.len(), rows).await;
        }
        for row in &rows {
            self.store(table, row).await?;
        }
        self.changed(table, alias, returning, rows.len(), rows).await
    }

    async fn store(&self, table: &Table, row: &[Datum]) -> Result<()> {
        let store = async { self.cell.lock().await.open().insert(table, row).await };
        self.cancel.run(store).await.map(drop)
    }

    pub(crate) async fn value_rows(
        &self,
        table: &Arc<Table>,
        columns: &[usize],
        rows: &[&Vec<Expr>],
    ) -> Result<Vec<Vec<Datum>>> {
        assert!(rows.iter().all(|row| row.len() == columns.len()), "the values were counted before");
        let mut computed: Vec<(usize, Expr)> = vec![];
        let unlisted: Vec<usize> = live_columns(table)
            .filter(|(at, c)| !columns.contains(at) && c.default_sql.is_some())
            .map(|(at, _)| at)
            .collect();
        let mut cells: Vec<Vec<(usize, Cell)>> = vec![];
        for row in rows {
            let default = [Expr::Identifier(Ident::new("default"))];
            let listed = columns.iter().copied().zip(row.iter());
            let defaults = unlisted.iter().map(|at| (*at, &default[0]));
            let mut out = vec![];
            for (at, expr) in listed.chain(defaults) {
                out.push((at, self.cell_of(table, at, expr, &mut computed)?));
            }
            cells.push(out);
        }
        let computed = self.compute(table, computed).await?;
        for (at, cell) in cells.iter_mut().flatten() {
            if let Cell::Sequence(call) = cell {
                let value = Datum::Int8(self.sequence(call).await?);
                *cell = Cell::Known(assign_datum(value, table.columns[*at].data_type)?);
            }
        }
        let fill = |cells: Vec<(usize, Cell)>| {
            let mut row = vec![Datum::Null; table.columns.len()];
            for (at, cell) in cells {
                row[at] = match cell {
                    Cell::Known(datum) => datum,
                    Cell::Computed(number) => computed[number].clone(),
                    Cell::Sequence(_) => unreachable!("evaluated above"),
                };
            }
            row
        };
        Ok(cells.into_iter().map(fill).collect())
    }

    fn cell_of(&self, table: &Table, at: usize, expr: &Expr, computed: &mut Vec<(usize, Expr)>) -> Result<Cell> {
        let column = &table.columns[at];
        if let Some(known) = literal(expr, column).transpose()? {
            return Ok(Cell::Known(known));
        }
        let expr = match expr {
            Expr::Value(value) => match &value.value {
                Value::Placeholder(name) => {
                    return Ok(Cell::Known(assign_datum(self.parameter(name)?, column.data_type)?));
                }
                _ => expr.clone(),
            },
            default if is_default(default) => {
                let default = default_of(table, at)?;
                if let Some(known) = literal(&default, column).transpose()? {
                    return Ok(Cell::Known(known));
                }
                default
            }
            _ => expr.clone(),
        };
        if let Some(call) = old_call_of(&expr) {
            return Ok(Cell::Sequence(call?));
        }
        computed.push((at, expr));
        Ok(Cell::Computed(computed.len() - 1))
    }

    /// Evaluates expressions, each for the column it goes to.
    async fn compute(&self, table: &Table, cells: Vec<(usize, Expr)>) -> Result<Vec<Datum>> {
        if cells.is_empty() {
            return Ok(vec![]);
        }
        let query = values_query(cells.iter().map(|(_, expr)| expr.clone()))?;
        let plan = self.plan(&query, None).await?;
        for (number, (at, _)) in cells.iter().enumerate() {
            check_assignable(plan.schema().field(number).data_type(), &table.columns[*at], false)?;
        }
        let batches = self.collect(&plan, None).await?;
        let row: &RecordBatch =
            batches.iter().find(|b| b.num_rows() == 1).expect("a SELECT without FROM gives one row");
        assert_eq!(row.num_columns(), cells.len(), "a column for each cell");
        let value = |(number, (at, _)): (usize, &(usize, Expr))| {
            let mut values = assign_array(row.column(number), &table.columns[*at])?;
            Ok(values.pop().expect("one row"))
        };
        cells.iter().enumerate().map(value).collect()
    }
}

/// Whether something in the plan is volatile: each row may get another value.
pub(crate) fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut volatile = false;
    let visited = plan.apply_with_subqueries(|node| {
        volatile |= node.expressions().iter().any(|e| e.is_volatile());
        Ok(TreeNodeRecursion::Continue)
    });
    visited.map_err(crate::error::from_datafusion)?;
    Ok(volatile)
}
