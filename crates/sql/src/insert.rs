//! INSERT.
//!
//! A cell of VALUES that is a literal or a parameter becomes a value of its column's type at once, as PostgreSQL types it; other
//! cells and defaults are evaluated by DataFusion, all of a statement's in one query. INSERT ... SELECT collects the whole query
//! before the first row is stored.
use crate::ddl::undefined_column;
use crate::dml::{check_not_null, default_of, is_default, is_open_literal, template};
use crate::error::{from_datafusion, unsupported};
use crate::memory::row_bytes;
use crate::parse::{fold, object_name};
use crate::returning::Changed;
use crate::run::Run;
use crate::sequence::{Call, call_of, sequence_of};
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
                None => self.query_rows(&table, &columns, listed, source).await?,
            },
        };
        for row in &rows {
            check_not_null(&table, row)?;
        }
        self.check_rows(&table, rows.iter().map(Vec::as_slice)).await?;
        let alias = insert_alias(insert, &name);
        if let Some(OnInsert::OnConflict(conflict)) = &insert.on {
            let rows = Box::pin(self.insert_or(conflict, &table, &alias, rows)).await?;
            return self.changed(&table, &alias, insert.returning.as_deref(), rows.len(), rows).await;
        }
        for row in &rows {
            let store = async { self.cell.lock().await.open().insert(&table, row).await };
            self.cancel.run(store).await?;
        }
        self.changed(&table, &alias, insert.returning.as_deref(), rows.len(), rows).await
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
        let plan = self.plan_beside_target(&query).await?;
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

    async fn query_rows(
        &self,
        table: &Arc<Table>,
        columns: &[usize],
        listed: bool,
        source: &Query,
    ) -> Result<Vec<Vec<Datum>>> {
        let plan = self.plan_beside_target(&Statement::Query(Box::new(source.clone()))).await?;
        let fields = plan.schema().fields();
        check_count(fields.len(), columns, listed)?;
        let columns = &columns[..fields.len()];
        for (number, at) in columns.iter().enumerate() {
            check_assignable(fields[number].data_type(), &table.columns[*at], open_item(source, number))?;
        }
        let rest: Vec<usize> = live_columns(table)
            .filter(|(at, c)| !columns.contains(at) && c.default_sql.is_some())
            .map(|(at, _)| at)
            .collect();
        // Defaults are constant within a statement, but for those that are a sequence's next value and those that are volatile.
        let varying = self.varying_defaults(table, &rest).await?;
        let numbered = |at: &usize| sequence_of(&table.columns[*at]).is_some();
        let with_default: Vec<usize> =
            live_columns(table).filter(|(_, c)| c.default_sql.is_some()).map(|(at, _)| at).collect();
        let of = |at: &usize| match rest.contains(at) && !numbered(at) {
            true => Expr::Identifier(Ident::new("default")),
            false => Expr::Value(Value::Null.with_empty_span()),
        };
        let constants = match rest.is_empty() {
            true => vec![],
            false => self.value_rows(table, &with_default, &[&with_default.iter().map(of).collect()]).await?.remove(0),
        };
        let batches = self.collect(&plan, None).await?;
        let mut rows = vec![];
        let memory = self.memory("rows to insert");
        for batch in batches.iter() {
            self.cancel.check()?;
            let first = rows.len();
            rows.resize(first + batch.num_rows(), vec![Datum::Null; table.columns.len()]);
            for (number, at) in columns.iter().enumerate() {
                let values = assign_array(batch.column(number), &table.columns[*at])?;
                values.into_iter().enumerate().for_each(|(i, value)| rows[first + i][*at] = value);
            }
            for (at, values) in varying.iter().zip(self.default_values(table, &varying, batch.num_rows()).await?) {
                values.into_iter().enumerate().for_each(|(i, value)| rows[first + i][*at] = value);
            }
            for at in rest.iter().filter(|at| !varying.contains(at)) {
                match sequence_of(&table.columns[*at]) {
                    None => rows[first..].iter_mut().for_each(|row| row[*at] = constants[*at].clone()),
                    Some(name) => {
                        let numbers = self.numbers(&name, batch.num_rows()).await?;
                        for (row, number) in rows[first..].iter_mut().zip(numbers) {
                            row[*at] = assign_datum(Datum::Int8(number), table.columns[*at].data_type)?;
                        }
                    }
                }
            }
            let bytes = rows[first..].iter().map(|row| row_bytes(row)).sum();
            memory.try_grow(bytes).map_err(from_datafusion)?;
        }
        Ok(rows)
    }

    /// Those of the columns whose defaults are volatile: of another value for each row. (A sequence's next value is not among them.)
    pub(crate) async fn varying_defaults(&self, table: &Table, columns: &[usize]) -> Result<Vec<usize>> {
        let mut varying = vec![];
        for at in columns {
            let expr = default_of(table, *at)?;
            if literal(&expr, &table.columns[*at]).is_none()
                && call_of(&expr).is_none()
                && is_volatile(&self.plan_beside_target(&values_query([expr].into_iter())?).await?)?
            {
                varying.push(*at);
            }
        }
        Ok(varying)
    }

    /// The defaults of these columns, for so many rows each.
    async fn default_values(&self, table: &Table, columns: &[usize], rows: usize) -> Result<Vec<Vec<Datum>>> {
        if columns.is_empty() {
            return Ok(vec![]);
        }
        let exprs = columns.iter().map(|at| default_of(table, *at)).collect::<Result<Vec<_>>>()?;
        let mut query = values_query(exprs.into_iter())?;
        let mut each = template(&format!("SELECT 1 FROM generate_series(1, {rows})"))?;
        if let Statement::Query(query) = &mut query
            && let (SetExpr::Select(select), SetExpr::Select(each)) = (query.body.as_mut(), each.body.as_mut())
        {
            select.from = std::mem::take(&mut each.from);
        }
        let batches = self.collect(&self.plan_beside_target(&query).await?, None).await?;
        let mut values = vec![Vec::with_capacity(rows); columns.len()];
        for batch in batches.iter() {
            for (number, at) in columns.iter().enumerate() {
                values[number].extend(assign_array(batch.column(number), &table.columns[*at])?);
            }
        }
        Ok(values)
    }

    /// Plans a query that belongs to a statement whose snapshot has been taken.
    async fn plan_beside_target(&self, query: &Statement) -> Result<LogicalPlan> {
        self.plan(query, None).await
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

/// Whether the source's item of that number is a quoted literal, whose type the column decides.
fn open_item(source: &Query, number: usize) -> bool {
    let SetExpr::Select(select) = source.body.as_ref() else { return false };
    match select.projection.get(number) {
        Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => is_open_literal(expr),
        _ => false,
    }
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
