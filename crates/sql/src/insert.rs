//! INSERT.
//!
//! A cell of VALUES that is a literal or a parameter becomes a value of its column's type at once, as PostgreSQL types it; other
//! cells and defaults are evaluated by DataFusion, all of a statement's in one query. INSERT ... SELECT: [`select`].
use crate::ddl::undefined_column;
use crate::dml::{check_not_null, default_of, is_default};
use crate::error::unsupported;
use crate::parse::{fold, object_name};
use crate::returning::Changed;
use crate::run::Run;
use crate::sequence::{Call, call_of};
use crate::values::{assign_array, assign_datum, check_assignable, live_columns};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Insert, OnInsert, Query, SelectItem, SetExpr, Statement, TableObject, UnaryOperator, Value,
};
use std::sync::Arc;
use terrace_engine::{ColumnDef, DataType, Datum, EngineError, Result, Table};

mod select;

/// A cell of VALUES.
enum Cell {
    Known(Datum),
    /// A function of a sequence: evaluated by itself, in the order of the cells.
    Sequence(Call),
    /// The column of the query that evaluates the cells that are not known, and whether it is a literal of open type.
    Computed(usize),
}

/// Refuses what is not done, and answers the target's name.
pub(crate) fn insert_target(insert: &Insert) -> Result<String> {
    let refused = [
        (matches!(insert.on, Some(OnInsert::DuplicateKeyUpdate(_))), "ON DUPLICATE KEY"),
        (insert.output.is_some(), "OUTPUT"),
        (insert.or.is_some() || insert.ignore || insert.replace_into || insert.overwrite, "this form of INSERT"),
        (insert.partitioned.is_some() || !insert.after_columns.is_empty(), "PARTITION in INSERT"),
        (!insert.assignments.is_empty() || insert.priority.is_some(), "this form of INSERT"),
        (insert.insert_alias.is_some() || insert.settings.is_some(), "this form of INSERT"),
        (insert.format_clause.is_some() || insert.has_table_keyword, "this form of INSERT"),
        (insert.multi_table_insert_type.is_some() || !insert.optimizer_hints.is_empty(), "this form of INSERT"),
    ];
    if let Some((_, what)) = refused.iter().find(|(is, _)| *is) {
        return Err(unsupported(what));
    }
    match &insert.table {
        TableObject::TableName(name) => object_name(name),
        _ => Err(unsupported("this target")),
    }
}

/// What the target is called within the statement.
pub(crate) fn insert_alias(insert: &Insert, name: &str) -> Ident {
    match &insert.table_alias {
        Some(alias) => alias.alias.clone(),
        None => Ident::with_quote('"', name),
    }
}

/// Positions of the columns that the source's values go to.
pub(crate) fn insert_columns(insert: &Insert, table: &Table) -> Result<Vec<usize>> {
    if insert.columns.is_empty() {
        return Ok(live_columns(table).map(|(at, _)| at).collect());
    }
    let mut columns = vec![];
    for name in &insert.columns {
        let ident = match name.0.as_slice() {
            [part] => part.as_ident().map(fold),
            _ => None,
        };
        let ident = ident.ok_or_else(|| undefined_column(&name.to_string(), &table.name))?;
        let at = live_columns(table).find(|(_, c)| c.name == ident).map(|(at, _)| at);
        let at = at.ok_or_else(|| undefined_column(&ident, &table.name))?;
        if columns.contains(&at) {
            return Err(EngineError::new("42701", format!("column \"{ident}\" specified more than once")));
        }
        columns.push(at);
    }
    Ok(columns)
}

/// The rows of a source that is nothing but VALUES.
pub(crate) fn plain_values(source: &Query) -> Option<Vec<&Vec<Expr>>> {
    let plain =
        source.with.is_none() && source.order_by.is_none() && source.limit_clause.is_none() && source.fetch.is_none();
    match source.body.as_ref() {
        SetExpr::Values(values) if plain => Some(values.rows.iter().map(|row| &row.content).collect()),
        _ => None,
    }
}

pub(crate) fn check_count(values: usize, columns: &[usize], listed: bool) -> Result<()> {
    if values > columns.len() {
        return Err(EngineError::new("42601", "INSERT has more expressions than target columns"));
    }
    if values < columns.len() && listed {
        return Err(EngineError::new("42601", "INSERT has more target columns than expressions"));
    }
    Ok(())
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
        if let Some(call) = call_of(&expr) {
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

/// `SELECT e0 AS c0, e1 AS c1, ...`.
pub(crate) fn values_query(exprs: impl Iterator<Item = Expr>) -> Result<Statement> {
    let mut statement = crate::parse::parse_one("SELECT 1")?.expect("the template is a query");
    if let Statement::Query(query) = &mut statement
        && let SetExpr::Select(select) = query.body.as_mut()
    {
        let item = |(n, expr)| SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', format!("c{n}")) };
        select.projection = exprs.enumerate().map(item).collect();
    }
    Ok(statement)
}

/// The value of a literal for a column; `None` where it is no literal.
pub(crate) fn literal(expr: &Expr, column: &ColumnDef) -> Option<Result<Datum>> {
    match expr {
        Expr::Nested(inner) => literal(inner, column),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                // A number with digits behind its point is a numeric, of which there is no -0.
                Value::Number(text, false) if is_zero(text) => Some(number(text, column)),
                Value::Number(text, false) => Some(number(&format!("-{text}"), column)),
                _ => None,
            },
            _ => None,
        },
        Expr::Value(value) => match &value.value {
            Value::Null => Some(Ok(Datum::Null)),
            Value::Number(text, false) => Some(number(text, column)),
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(column.data_type.parse(text)),
            Value::DollarQuotedString(text) => Some(column.data_type.parse(&text.value)),
            Value::Boolean(value) => Some(
                check_assignable(&ArrowType::Boolean, column, false)
                    .and_then(|()| assign_datum(Datum::Bool(*value), column.data_type)),
            ),
            _ => None,
        },
        _ => None,
    }
}

fn is_zero(text: &str) -> bool {
    text.bytes().take_while(|b| !matches!(b, b'e' | b'E')).all(|b| matches!(b, b'0' | b'.' | b'_'))
}

fn number(text: &str, column: &ColumnDef) -> Result<Datum> {
    let text = &text.replace('_', "");
    // Every type of number takes every other by assignment.
    check_assignable(&ArrowType::Int32, column, false)?;
    match column.data_type {
        text_type if text_type.is_text() => text_type.parse(text),
        // PostgreSQL's literal is numeric, then cast; digits beyond a numeric's would be lost on the way.
        DataType::Float4 | DataType::Float8 | DataType::Numeric(_) => column.data_type.parse(text),
        integer => match text.parse::<i64>() {
            Ok(value) => assign_datum(Datum::Int8(value), integer),
            Err(_) => match DataType::Numeric(None).parse(text) {
                Ok(exact) => assign_datum(exact, integer),
                Err(error) if error.state.0 == "22003" => Err(EngineError::out_of_range(integer.base_name())),
                Err(_) => Err(EngineError::new("42601", format!("syntax error at \"{text}\""))),
            },
        },
    }
}
