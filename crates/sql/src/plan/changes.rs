//! What INSERT, UPDATE and DELETE say: their target, columns and values, and the queries that find the rows to change.
//!
//! 1. A statement is taken apart, and what is not understood of it is refused (0A000), never passed over.
//! 2. The query of a change begins with the row's address and version ([`source_query`]); then come the old columns,
//!    then the assigned values.
use crate::error::{undefined_column, unsupported};
use crate::parse::{fold, object_name, template};
use crate::plan::planner::TARGET;
use crate::plan::scan::{RID, UNDO, WRITER};
use crate::values::{assign_datum, check_assignable, live_columns};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, Ident, Insert, ObjectName, OnInsert, Query, SelectItem,
    SetExpr, Statement, TableFactor, TableObject, TableWithJoins, UnaryOperator, Update, UpdateTableFromKind, Value,
};
use terrace_engine::{ColumnDef, DataType, Datum, EngineError, Result, Table};

pub(crate) struct TargetTable {
    pub(crate) name: String,
    factor: TableFactor,
    pub(crate) alias: Ident,
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
        crate::plan::refusals::refuse_windows_in(&value, "UPDATE")?;
        let expr = if is_default(&value) { default_of(table, at)? } else { value };
        items.push(SelectItem::ExprWithAlias {
            expr,
            alias: Ident::with_quote('"', format!("\0new{}", assigned.len())),
        });
        assigned.push(at);
    }
    Ok((source_query(target, items, others, selection), assigned))
}

/// The expression of a text, as the old way reads it.
pub(crate) fn expr_of(text: &str) -> Result<Expr> {
    let broken = || EngineError::new("0A000", format!("the expression {text} is not supported yet"));
    let mut statement = crate::parse::parse_one(&format!("SELECT {text}")).map_err(|error| match error.state.0 {
        "42601" => broken().with_detail(error.message),
        _ => error,
    })?;
    let statement = statement.as_mut().ok_or_else(broken)?;
    crate::plan::refusals::prepare(statement)?;
    let Statement::Query(query) = statement else { return Err(broken()) };
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(broken()) };
    match (select.projection.pop(), select.projection.is_empty()) {
        (Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }), true) => Ok(expr),
        _ => Err(broken()),
    }
}

/// The default of a column; NULL where it has none.
pub(crate) fn default_of(table: &Table, column: usize) -> Result<Expr> {
    expr_of(table.columns[column].default_sql.as_deref().unwrap_or("NULL"))
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
    match expr {
        Expr::Identifier(ident) => ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"),
        _ => false,
    }
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
