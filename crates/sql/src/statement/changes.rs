//! The parts of INSERT, UPDATE and DELETE: their columns and values, and the query that is planned for them.
//!
//! 1. A part of a statement that is not understood is refused (0A000), never ignored.
//! 2. The plan of a change begins with the row's address and version; then come the old columns, then the assigned
//!    values, then what RETURNING names of FROM or USING.
use crate::error::{undefined_column, unsupported};
use crate::parse::identity::{Identity, refused_insert, refused_update};
use crate::parse::sequence_calls::sequence_of;
use crate::parse::types::type_name;
use crate::plan::bind::over::{Over, Part, Rows, Wanted};
use crate::through::Called;
use crate::values::live_columns;
use std::borrow::Cow;
use std::sync::Arc;
use terrace_engine::{ColumnDef, EngineError, Result, Table};
use terrace_grammar::statement::{
    Assignment, Body, ConflictAction, Delete, Distinct, Expr, ExprKind, FromItem, Ident, Insert, Item, Literal, Name,
    Node, Overriding, PARTS_MAX, Query, Select, Statement, Step, Update, With, multiplies, walk, with_part,
};

/// A column that is assigned to, and its value.
pub(crate) type Assigned<'q> = (usize, &'q Expr);

/// An INSERT whose WITH stands before its query, where it belongs to (0A000 where it cannot stand there).
pub(crate) fn with_inside(insert: &Insert) -> Result<Cow<'_, Insert>> {
    let Some(with) = &insert.with else { return Ok(Cow::Borrowed(insert)) };
    let updates = insert.conflict.as_ref().is_some_and(|c| matches!(c.action, ConflictAction::Update { .. }));
    if updates && reads_tables(with) {
        // DO UPDATE would see the rows that the statement has changed.
        return Err(unsupported("WITH that reads a table before INSERT ... ON CONFLICT DO UPDATE"));
    }
    let Some(mut source) = insert.source.clone().filter(|source| updates || reads_queries(source)) else {
        return match updates {
            true => Err(unsupported("WITH before INSERT ... ON CONFLICT DO UPDATE of plain values")),
            false => Ok(Cow::Owned(Insert { with: None, ..insert.clone() })), // Nothing in it can read them.
        };
    };
    if source.with.is_some() {
        return Err(unsupported("WITH before INSERT of a query with WITH"));
    }
    if let Some(rows) = plain_values(&source) {
        let [row] = rows.as_slice() else { return Err(unsupported("WITH before INSERT of several rows of VALUES")) };
        if row.iter().any(|value| matches!(value.kind, ExprKind::Default)) {
            return Err(unsupported("WITH before INSERT of DEFAULT"));
        }
        let items = row.iter().map(|value| Item { expr: value.clone(), alias: None }).collect();
        let (distinct, from, windows) = (Distinct::No, vec![], vec![]);
        let select = Select { at: source.at, distinct, items, from, filter: None, group: None, having: None, windows };
        source.body = Body::Select(Box::new(select));
    }
    source.with = Some(with.clone());
    Ok(Cow::Owned(Insert { source: Some(source), ..insert.clone() }))
}

/// An INSERT whose columns are whole: what goes to parts of a column makes one value of it, of which the rest is NULL.
pub(crate) fn with_whole_columns<'i>(insert: &'i Insert, table: &Table) -> Result<Cow<'i, Insert>> {
    if insert.parts.iter().all(Vec::is_empty) {
        return Ok(Cow::Borrowed(insert));
    }
    let mut made = insert.clone();
    made.parts.clear();
    // Which values go to a column, in order.
    let mut places: Vec<(Ident, Vec<usize>)> = vec![];
    for (number, column) in insert.columns.iter().enumerate() {
        let of_part = |at: &usize| !insert.parts[*at].is_empty();
        match places.iter_mut().find(|(known, own)| known.name == column.name && own.iter().all(of_part)) {
            Some((_, own)) if of_part(&number) => own.push(number),
            _ => places.push((column.clone(), vec![number])),
        }
    }
    if insert.parts.iter().filter(|steps| multiplies(steps)).count() > PARTS_MAX {
        return Err(unsupported("INSERT of so many parts of parts by computed subscripts"));
    }
    let is_query = !matches!(&made.source, Some(Query { body: Body::Values(_), .. }));
    let first = |(column, own): &(Ident, Vec<usize>)| {
        let one_field = |at: &usize| matches!(insert.parts[*at].as_slice(), [Step::Field(_)]);
        match !is_query && own.iter().all(one_field) {
            // The column says which row it is.
            true => Ok(Expr { at: column.at, kind: ExprKind::Default }),
            false => null_of(column, table),
        }
    };
    let firsts = places.iter().map(first).collect::<Result<Vec<Expr>>>()?;
    let whole = |values: &[Expr]| -> Vec<Expr> {
        let one = |((column, own), first): (&(Ident, Vec<usize>), &Expr)| {
            own.iter().fold(first.clone(), |made, at| with_part(column, made, &insert.parts[*at], values[*at].clone()))
        };
        places.iter().zip(&firsts).map(one).collect()
    };
    let count = |values: usize| check_count(values, &vec![0; insert.columns.len()], true);
    match &mut made.source {
        None => {}
        Some(Query { body: Body::Values(rows), .. }) => {
            for row in rows {
                count(row.len())?;
                *row = whole(row);
            }
        }
        Some(Query { body: Body::Select(select), order, .. }) if is_plain(select) && order.is_empty() => {
            count(select.items.len())?;
            let values: Vec<Expr> = select.items.iter().map(|item| item.expr.clone()).collect();
            select.items = whole(&values).into_iter().map(|expr| Item { expr, alias: None }).collect();
        }
        Some(_) => return Err(unsupported("INSERT of parts of columns from such a query")),
    }
    made.columns = places.into_iter().map(|(column, _)| column).collect();
    Ok(Cow::Owned(made))
}

/// Whether each item of a SELECT is one column of its result, and no other clause names them.
fn is_plain(select: &Select) -> bool {
    let one = |item: &Item| !matches!(item.expr.kind, ExprKind::AllFields(_) | ExprKind::Star(_));
    matches!(select.distinct, Distinct::No) && select.group.is_none() && select.items.iter().all(one)
}

/// NULL, of a column's type.
fn null_of(column: &Ident, table: &Table) -> Result<Expr> {
    let found = live_columns(table).find(|(_, own)| own.name == column.name);
    let (_, own) = found.ok_or_else(|| undefined_column(&column.name, &table.name))?;
    let broken = || EngineError::internal(format!("{} is no type", own.data_type));
    let to = Box::new(type_name(&own.data_type.to_string()).ok_or_else(broken)?);
    let arg = Box::new(Expr { at: column.at, kind: ExprKind::Literal(Literal::Null) });
    Ok(Expr { at: column.at, kind: ExprKind::Cast { arg, to, word_at: column.at } })
}

/// Whether the source of an INSERT may read queries of WITH.
fn reads_queries(source: &Query) -> bool {
    let Some(rows) = plain_values(source) else { return true };
    let mut found = false;
    rows.iter().flatten().for_each(|value| {
        walk(Node::Expr(value), &mut |node| {
            found |= matches!(node, Node::Query(_));
            !found
        })
    });
    found
}

/// Whether queries of WITH read anything but each other.
fn reads_tables(with: &With) -> bool {
    let own =
        |name: &Name| with.ctes.iter().any(|cte| name.qualifier().is_empty() && cte.name.name == name.last().name);
    let mut found = false;
    for cte in &with.ctes {
        let Statement::Query(query) = cte.statement.as_ref() else { return true };
        walk(Node::Query(query), &mut |node| {
            if let Node::Query(Query { body: Body::Select(select), .. }) = node {
                let mut tables = vec![];
                tables_of(&select.from, &mut tables);
                found |= !tables.into_iter().all(own);
            }
            !found
        });
    }
    found
}

/// Whether values may go to these columns. `rows`: where they are VALUES. 428C9
pub(crate) fn check_identities(
    insert: &Insert,
    table: &Table,
    columns: &[usize],
    rows: Option<&[Vec<Expr>]>,
) -> Result<()> {
    for (number, at) in columns.iter().enumerate() {
        let column = &table.columns[*at];
        let given = |row: &Vec<Expr>| !matches!(row[number].kind, ExprKind::Default);
        if column.generated.is_some() {
            match rows.is_some_and(|rows| !rows.iter().any(given)) {
                true => continue,
                false => return Err(refused_insert(column)),
            }
        }
        match (Identity::of(column), insert.overriding) {
            (None, _) | (Some(_), Some(Overriding::System)) | (Some(Identity::ByDefault), None) => {}
            // The values of rows are left out (`without_identities`).
            (Some(_), Some(Overriding::User)) if rows.is_some() => {}
            (Some(_), Some(Overriding::User)) => return Err(unsupported("OVERRIDING USER VALUE of a query")),
            (Some(Identity::Always), None) if rows.is_some_and(|rows| !rows.iter().any(given)) => {}
            (Some(Identity::Always), None) => return Err(refused_insert(column)),
        }
    }
    Ok(())
}

/// The same of rows of VALUES, which may fill the first of the columns alone. Answers how many.
pub(crate) fn check_filled(insert: &Insert, table: &Table, columns: &[usize], rows: &[Vec<Expr>]) -> Result<usize> {
    let width = rows.first().map_or(0, Vec::len);
    check_identities(insert, table, columns.get(..width).unwrap_or(columns), Some(rows))?;
    Ok(width)
}

/// OVERRIDING USER VALUE: identity columns get what their sequences give.
pub(crate) fn without_identities(table: &Table, columns: &[usize], rows: &[Vec<Expr>]) -> Vec<Vec<Expr>> {
    let mut rows = rows.to_vec();
    for (number, _) in columns.iter().enumerate().filter(|(_, at)| Identity::of(&table.columns[**at]).is_some()) {
        rows.iter_mut().for_each(|row| row[number].kind = ExprKind::Default);
    }
    rows
}

/// The target's name within the statement.
pub(crate) fn called(target: &Name, alias: Option<&Ident>) -> Called {
    Called::so(&alias.unwrap_or(target.last()).name)
}

/// The columns of SET and their values; `(a, b) = (1, 2)` is split.
pub(crate) fn assigned<'q>(set: &'q [Assignment], table: &Table) -> Result<Vec<Assigned<'q>>> {
    let mut pairs: Vec<(&Ident, &Expr)> = vec![];
    for assignment in set {
        match assignment {
            Assignment::One { column, value } => pairs.push((column, value)),
            Assignment::Many { at: _, columns, value } => match &value.kind {
                kind @ ExprKind::Row { fields, .. } if values_of(kind) == Some(columns.len()) => {
                    pairs.extend(columns.iter().zip(fields));
                }
                kind if values_of(kind).is_some_and(|count| count != columns.len()) => {
                    let message = "number of columns does not match number of values";
                    return Err(EngineError::new("42601", message));
                }
                ExprKind::Scalar(_) => return Err(unsupported("assignment of this query's row")),
                ExprKind::Row { .. } => return Err(unsupported("assignment of a row with * in it")),
                _ => {
                    let message = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
                    return Err(EngineError::new("0A000", message));
                }
            },
        }
    }
    let mut all: Vec<Assigned<'q>> = vec![];
    for (Ident { name, .. }, value) in pairs {
        let at = live_columns(table).find(|(_, c)| c.name == *name).map(|(at, _)| at);
        let at = at.ok_or_else(|| undefined_column(name, &table.name))?;
        if all.iter().any(|(other, _)| *other == at) {
            return Err(EngineError::new("42601", format!("multiple assignments to same column \"{name}\"")));
        }
        let column = &table.columns[at];
        let never = Identity::of(column) == Some(Identity::Always) || column.generated.is_some();
        if never && !matches!(value.kind, ExprKind::Default) {
            return Err(refused_update(column));
        }
        all.push((at, value));
    }
    Ok(all)
}

/// Whether an assigned column gets the next number of its sequence.
pub(crate) fn is_numbered(column: &ColumnDef, value: &Expr) -> bool {
    matches!(value.kind, ExprKind::Default) && sequence_of(column).is_some()
}

/// How many values a row or a query has, as far as that can be told.
fn values_of(kind: &ExprKind) -> Option<usize> {
    match kind {
        ExprKind::Row { fields, .. } => {
            (!fields.iter().any(|field| matches!(field.kind, ExprKind::Star(_) | ExprKind::AllFields(_))))
                .then_some(fields.len())
        }
        ExprKind::Scalar(query) => match &query.body {
            Body::Select(select) => {
                let is_star = |item: &Item| matches!(item.expr.kind, ExprKind::Star(_) | ExprKind::AllFields(_));
                (!select.items.iter().any(is_star)).then_some(select.items.len())
            }
            _ => None,
        },
        _ => None,
    }
}

/// The value of an assigned column.
pub(crate) fn wanted<'q>(table: &'q Table, assigned: &[Assigned<'q>]) -> Vec<Wanted<'q>> {
    let value = |(at, value): &Assigned<'q>| match value.kind {
        ExprKind::Default if is_numbered(&table.columns[*at], value) => Wanted::Null(&table.columns[*at]),
        ExprKind::Default => Wanted::Default(&table.columns[*at]),
        _ => Wanted::Value { column: &table.columns[*at], value },
    };
    [Wanted::Row].into_iter().chain(assigned.iter().map(value)).collect()
}

/// What RETURNING names of FROM or USING.
fn beside<'q>(from: &[FromItem], returning: &'q [Item]) -> Option<Wanted<'q>> {
    (!from.is_empty() && !returning.is_empty()).then_some(Wanted::Beside(returning))
}

/// The rows that an UPDATE changes, and what they become. `filter`: its condition, or what it became.
pub(crate) fn update_over<'q>(
    update: &'q Update,
    (table, called): (&'q Arc<Table>, &'q Called),
    filter: Option<&'q Expr>,
    assigned: &[Assigned<'q>],
) -> Over<'q> {
    Over {
        table,
        called,
        rows: Rows::Target,
        part: Part::Update,
        with: update.with.as_ref(),
        from: &update.from,
        given: None,
        beside: &[],
        filter,
        order: &[],
        wanted: wanted(called.defaults(table), assigned)
            .into_iter()
            .chain(beside(&update.from, &update.returning))
            .collect(),
        kept: false,
    }
}

/// The rows that a DELETE removes. The old row is only for RETURNING.
pub(crate) fn delete_over<'q>(
    delete: &'q Delete,
    (table, called): (&'q Arc<Table>, &'q Called),
    filter: Option<&'q Expr>,
) -> Over<'q> {
    let returned = (!delete.returning.is_empty()).then_some(Wanted::Row);
    Over {
        table,
        called,
        rows: Rows::Target,
        part: Part::Delete,
        with: delete.with.as_ref(),
        from: &delete.using,
        given: None,
        beside: &[],
        filter,
        order: &[],
        wanted: returned.into_iter().chain(beside(&delete.using, &delete.returning)).collect(),
        kept: false,
    }
}

/// Expressions that read no row.
pub(crate) fn alone_over<'q>(
    table: &'q Arc<Table>,
    called: &'q Called,
    part: Part,
    wanted: Vec<Wanted<'q>>,
) -> Over<'q> {
    let (with, filter, kept) = (None, None, part == Part::Default);
    Over {
        table,
        called,
        rows: Rows::None,
        part,
        with,
        from: &[],
        given: None,
        beside: &[],
        filter,
        order: &[],
        wanted,
        kept,
    }
}

/// Positions of the columns that INSERT names; of all where none is named: through a view, of those that it shows, up
/// to the first that cannot be assigned to ([`check_width`]).
pub(crate) fn inserted_columns(names: &[Ident], (table, called): (&Table, &Called)) -> Result<Vec<usize>> {
    match &called.through {
        Some(through) if names.is_empty() => Ok(through.leading()),
        _ => named_columns(names, table),
    }
}

/// So many values for these columns of an INSERT, which are `listed` in it or not.
pub(crate) fn check_width(
    values: usize,
    columns: &[usize],
    listed: bool,
    (table, called): (&Table, &Called),
) -> Result<()> {
    if let Some(through) = called.through.as_ref().filter(|_| !listed) {
        through.permit_width(values, table)?;
    }
    check_count(values, columns, listed)
}

/// Positions of the columns that INSERT or COPY names; of all where none is named.
pub(crate) fn named_columns(names: &[Ident], table: &Table) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok(live_columns(table).map(|(at, _)| at).collect());
    }
    let mut columns = vec![];
    for Ident { name, .. } in names {
        let at = live_columns(table).find(|(_, c)| c.name == *name).map(|(at, _)| at);
        let at = at.ok_or_else(|| undefined_column(name, &table.name))?;
        if columns.contains(&at) {
            return Err(EngineError::new("42701", format!("column \"{name}\" specified more than once")));
        }
        columns.push(at);
    }
    assert!(columns.len() <= table.columns.len(), "each of its columns once");
    Ok(columns)
}

/// The rows of a source that is nothing but VALUES.
pub(crate) fn plain_values(source: &Query) -> Option<&Vec<Vec<Expr>>> {
    match source {
        Query {
            at: _,
            with: None,
            body: Body::Values(rows),
            order,
            limit: None,
            with_ties: _,
            offset: None,
            locking,
        } if order.is_empty() && locking.is_empty() => Some(rows),
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

/// The tables that stand in FROM or USING, by their names.
fn tables_of<'q>(from: &'q [FromItem], found: &mut Vec<&'q Name>) {
    for item in from {
        match item {
            FromItem::Table { name, .. } => found.push(name),
            FromItem::Join { sides, .. } => tables_of(sides.as_slice(), found),
            FromItem::File { .. } | FromItem::Query { .. } | FromItem::Functions { .. } => {}
        }
    }
}
