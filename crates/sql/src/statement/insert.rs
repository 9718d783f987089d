//! INSERT.
//!
//! A cell of VALUES that is a literal or a parameter becomes a value of its column's type at once, by PostgreSQL's
//! rules. DataFusion evaluates the other cells and the defaults, all of a statement in one query, but for those that
//! call a function of a sequence: these come one after the other, in PostgreSQL's order. INSERT ... SELECT: [`select`].

use crate::parse::constants::constant;
use crate::parse::identity::Identity;
use crate::parse::sequence_calls::{Call, call_of, calls_within};
use crate::parse::stored;
use crate::plan::bind::over::{Part, Wanted};
use crate::plan::planner::Asked;
use crate::statement::changes::{
    alone_over, check_identities, check_width, inserted_columns, plain_values, with_inside, with_whole_columns,
    without_identities,
};
use crate::statement::generic::{Plan, Slot};
use crate::statement::reads::written;
use crate::statement::returning::{Changed, Returning};
use crate::statement::run::Run;
use crate::through::Called;
use crate::values::{arrow_type, assign_array, assign_datum, check_assignable, check_not_null, live_columns};
use datafusion::arrow::array::RecordBatch;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{Datum, EngineError, Result, Table};
use terrace_grammar::statement::{Expr, ExprKind, Insert, Overriding};

mod select;
pub(crate) use select::settle_items;

/// A cell of VALUES.
enum Cell<'c> {
    Known(Datum),
    /// A function of a sequence, and whether it is an identity column's. It is evaluated alone, in the order of the
    /// cells.
    Sequence(Call, bool),
    /// An expression with such a function in it, or the column's default.
    Alone(Option<&'c Expr>),
    /// A column of the query that evaluates the other cells, and whether it is a literal of open type.
    Computed(usize),
}

/// A cell to be computed: its column, and its expression or the column's default.
type Computed<'c> = (usize, Option<&'c Expr>);

impl Run<'_> {
    pub(crate) async fn insert(&self, insert: &Insert) -> Result<Changed> {
        let insert = &*with_inside(insert)?;
        let (table, called) = self.aimed(&insert.target, insert.alias.as_ref(), Rights::INSERT).await?;
        if insert.conflict.is_some() {
            self.refuse_changed([&table])?;
        }
        if let Some(filled) =
            called.through.as_ref().map(|through| through.filled(insert)).filter(|all| !all.is_empty())
        {
            self.permit_changed((&table, &called), Rights::INSERT, &filled).await?;
        }
        let insert = &*called.insert(insert, &table)?;
        let insert = &*with_whole_columns(insert, &table)?;
        let columns = inserted_columns(&insert.columns, (&table, &called))?;
        let listed = !insert.columns.is_empty();
        self.permit_rest(insert, (&table, &called)).await?;
        let of_defaults = [vec![]];
        let (columns, rows): (&[usize], &[Vec<Expr>]) = match &insert.source {
            None => (&[], &of_defaults),
            Some(source) => match plain_values(source) {
                Some(rows) => {
                    let width = rows.first().map_or(0, |row| row.len());
                    if rows.iter().any(|row| row.len() != width) {
                        return Err(EngineError::new("42601", "VALUES lists must all be the same length"));
                    }
                    check_width(width, &columns, listed, (&table, &called))?;
                    check_identities(insert, &table, &columns[..width], Some(rows))?;
                    (&columns[..width], rows)
                }
                None => return Box::pin(self.insert_select(insert, (&table, &called), &columns, source)).await,
            },
        };
        self.permit_changed((&table, &called), Rights::INSERT, columns).await?;
        let without;
        let rows = match insert.overriding {
            Some(Overriding::User) => {
                without = without_identities(&table, columns, rows);
                without.as_slice()
            }
            _ => rows,
        };
        let rows = self.value_rows(called.defaults(&table), columns, rows, Some(Slot::Values)).await?;
        match Box::pin(self.insert_rows(insert, (&table, &called), rows)).await {
            Err(error) => Err(self.hidden(error, &written(insert, &table, columns)).await),
            inserted => inserted,
        }
    }

    /// Inserts rows that are all in memory.
    async fn insert_rows(
        &self,
        insert: &Insert,
        (table, called): (&Arc<Table>, &Called),
        mut rows: Vec<Vec<Datum>>,
    ) -> Result<Changed> {
        for row in &rows {
            check_not_null(table, row)?;
        }
        self.finish_rows(table, rows.iter_mut().collect()).await?;
        if let Some(conflict) = &insert.conflict {
            let rows = Box::pin(self.insert_or(conflict, (table, called), insert.with.as_ref(), rows)).await?;
            return self.changed((table, called), Returning::of(&insert.returning), rows.len(), rows).await;
        }
        let options = self.options((table, called)).await?;
        self.store_all(table, options.as_ref(), &rows).await?;
        self.follow_foreign_keys().await?;
        self.changed((table, called), Returning::of(&insert.returning), rows.len(), rows).await
    }

    pub(crate) async fn store(&self, table: &Table, row: &[Datum]) -> Result<()> {
        let store = async { self.cell.lock().await.open().insert(table, row).await };
        self.cancel.run(store).await.map(drop)
    }

    /// Rows of values, each for its column; the other columns get their defaults. `slot`: of what is computed for them.
    pub(crate) async fn value_rows(
        &self,
        table: &Arc<Table>,
        columns: &[usize],
        rows: &[Vec<Expr>],
        slot: Option<Slot>,
    ) -> Result<Vec<Vec<Datum>>> {
        assert!(rows.iter().all(|row| row.len() == columns.len()), "the values were counted before");
        let mut computed: Vec<Computed<'_>> = vec![];
        let unlisted: Vec<usize> = live_columns(table)
            .filter(|(at, c)| !columns.contains(at) && c.default().is_some())
            .map(|(at, _)| at)
            .collect();
        let mut cells: Vec<Vec<(usize, Cell<'_>)>> = vec![];
        for row in rows {
            let mut out = vec![];
            for (at, expr) in columns.iter().copied().zip(row) {
                out.push((at, self.cell_of(table, at, expr, &mut computed)?));
            }
            for at in &unlisted {
                out.push((*at, self.default_cell(table, *at, &mut computed)?));
            }
            if rows.len() == 1 {
                // PostgreSQL goes by the table's columns; of several rows it computes what is listed first.
                out.sort_by_key(|(at, _)| *at);
            }
            cells.push(out);
        }
        let computed = self.compute(table, computed, slot).await?;
        for (at, cell) in cells.iter_mut().flatten() {
            let value = match cell {
                Cell::Sequence(call, of_identity) => {
                    let value = Datum::Int8(self.sequence(call, *of_identity).await?);
                    assign_datum(value, table.columns[*at].data_type)?
                }
                Cell::Alone(value) => self.compute(table, vec![(*at, *value)], None).await?.remove(0),
                Cell::Known(_) | Cell::Computed(_) => continue,
            };
            *cell = Cell::Known(value);
        }
        let fill = |cells: Vec<(usize, Cell<'_>)>| {
            let mut row = vec![Datum::Null; table.columns.len()];
            for (at, cell) in cells {
                row[at] = match cell {
                    Cell::Known(datum) => datum,
                    Cell::Computed(number) => computed[number].clone(),
                    Cell::Sequence(..) | Cell::Alone(_) => unreachable!("evaluated above"),
                };
            }
            row
        };
        assert_eq!(cells.len(), rows.len(), "a row of values for each row of expressions");
        Ok(cells.into_iter().map(fill).collect())
    }

    fn cell_of<'c>(
        &self,
        table: &Table,
        at: usize,
        expr: &'c Expr,
        computed: &mut Vec<Computed<'c>>,
    ) -> Result<Cell<'c>> {
        let column = &table.columns[at];
        if let Some(known) = self.style().scope(|| constant(expr, column)).transpose()? {
            return Ok(Cell::Known(known));
        }
        match expr.kind {
            ExprKind::Parameter(number) => {
                let value = self.parameter(number)?;
                // The column may have had another type when the statement was prepared.
                if let Some(of) = self.types.get(number as usize - 1) {
                    check_assignable(&arrow_type(*of), column, false)?;
                }
                return Ok(Cell::Known(assign_datum(value, column.data_type)?));
            }
            ExprKind::Default => return self.default_cell(table, at, computed),
            _ => {}
        }
        if let Some(call) = call_of(expr) {
            return match call? {
                Call::Computed(function, _) => Err(EngineError::unsupported(format!(
                    "{function} of anything but literals in VALUES is not supported yet"
                ))),
                call => Ok(Cell::Sequence(call, false)),
            };
        }
        if calls_within(expr) {
            return Ok(Cell::Alone(Some(expr)));
        }
        computed.push((at, Some(expr)));
        Ok(Cell::Computed(computed.len() - 1))
    }

    fn default_cell<'c>(&self, table: &Table, at: usize, computed: &mut Vec<Computed<'c>>) -> Result<Cell<'c>> {
        let column = &table.columns[at];
        let Some(sql) = column.default() else { return Ok(Cell::Known(Datum::Null)) };
        let default = stored::of_default(sql)?;
        if let Some(known) = constant(default.expr(), column).transpose()? {
            return Ok(Cell::Known(known));
        }
        if let Some(call) = call_of(default.expr()) {
            let call = call?.of_definition();
            return Ok(Cell::Sequence(call, Identity::of(column).is_some()));
        }
        if calls_within(default.expr()) {
            return Ok(Cell::Alone(None));
        }
        computed.push((at, None));
        Ok(Cell::Computed(computed.len() - 1))
    }

    /// Evaluates expressions and defaults, each for the column it goes to.
    async fn compute(&self, table: &Arc<Table>, cells: Vec<Computed<'_>>, slot: Option<Slot>) -> Result<Vec<Datum>> {
        if cells.is_empty() {
            return Ok(vec![]);
        }
        let wanted = cells.iter().map(|(at, value)| match value {
            Some(value) => Wanted::Value { column: &table.columns[*at], value },
            None => Wanted::Default(&table.columns[*at]),
        });
        let called = Called::so(&table.name);
        let over = alone_over(table, &called, Part::Values, wanted.collect());
        let plan = match slot {
            Some(slot) => self.plan_again(slot, Asked::Over(&over)).await?,
            None => Plan::once(self.plan_over(&over).await?),
        };
        let batches = self.collect_again(&plan, None).await?;
        let row: &RecordBatch =
            batches.iter().find(|b| b.num_rows() == 1).expect("a SELECT without FROM gives one row");
        assert_eq!(row.num_columns(), cells.len(), "a column for each cell");
        let value = |(number, (at, _)): (usize, &Computed<'_>)| {
            let mut values = assign_array(row.column(number), &table.columns[*at])?;
            Ok(values.pop().expect("one row"))
        };
        cells.iter().enumerate().map(value).collect()
    }
}
