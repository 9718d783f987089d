//! Indexes as PostgreSQL would define them: `pg_get_indexdef`.
use super::{Call, quote};
use crate::parse::qualified::{self, shown_index};
use crate::parse::{shown, stored};
use crate::pgcatalog::schema_of_table;
use datafusion::error::Result;
use std::sync::Arc;
use terrace_engine::{Catalog, Index, Table};

/// A column or an expression of an index, as its definition has it.
fn key(table: &Table, index: &Index, at: usize, pretty: bool) -> String {
    let column = &table.columns[index.columns[at]];
    let Some(text) = column.computed() else { return quote(&column.name) };
    match shown::value(text, &table.columns, pretty) {
        Some((shown, true)) => shown,
        Some((shown, false)) => format!("({shown})"),
        None => format!("({text})"),
    }
}

/// The condition of a partial index.
pub(crate) fn condition(table: &Table, index: &Index, pretty: bool) -> Option<String> {
    let text = table.columns[*index.columns.last().filter(|_| index.is_partial())?].computed()?;
    let written = stored::of_computed(text);
    let shown = shown::condition(written, &table.columns, pretty);
    Some(shown.unwrap_or_else(|| format!("({written})")))
}

/// The expressions of an index.
pub(crate) fn expressions(table: &Table, index: &Index) -> Option<String> {
    let of = |at: &usize| table.columns[*at].computed();
    let shown = |text: &str| shown::value(text, &table.columns, false).map_or(text.to_owned(), |(t, _)| t);
    let texts: Vec<String> = index.keys().iter().filter_map(of).map(shown).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// The CREATE INDEX of an index.
pub(crate) fn statement(catalog: &Arc<Catalog>, table: &Table, index: &Index, pretty: bool) -> String {
    let unique = if index.unique { "UNIQUE " } else { "" };
    let schema = quote(&schema_of_table(catalog, table));
    let (name, on) = (quote(&index.name), quote(&table.name));
    let of_key = |at: usize| {
        let option = index.key_option(at);
        let class = option.class.map_or(String::new(), |class| format!(" {class}"));
        let order = match (option.descending, option.nulls_first) {
            (true, true) => " DESC",
            (true, false) => " DESC NULLS LAST",
            (false, true) => " NULLS FIRST",
            (false, false) => "",
        };
        format!("{}{class}{order}", key(table, index, at, pretty))
    };
    let keys: Vec<String> = (0..index.keys().len()).map(of_key).collect();
    let included: Vec<String> = index.included().iter().map(|at| quote(&table.columns[*at].name)).collect();
    let include = if included.is_empty() { String::new() } else { format!(" INCLUDE ({})", included.join(", ")) };
    let nulls = if index.is_nulls_not_distinct() { " NULLS NOT DISTINCT" } else { "" };
    let filter = condition(table, index, pretty).map_or(String::new(), |filter| format!(" WHERE {filter}"));
    let text = format!(
        "CREATE {unique}INDEX {name} ON {schema}.{on} USING btree ({}){include}{nulls}{filter}",
        keys.join(", ")
    );
    shown_index(&text, catalog)
}

/// `pg_get_indexdef(index [, column, pretty])`: the whole definition, or one key column's.
pub(super) fn definition(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    let Some((table, index)) = c.index(0, row)? else { return Ok(None) };
    let pretty = c.text(2, row)?.is_some_and(|p| p.starts_with('t'));
    let column = c.int(1, row)?.unwrap_or(0);
    if column == 0 {
        return Ok(Some(statement(c.catalog, &table, &index, pretty)));
    }
    let place = usize::try_from(column - 1).unwrap_or(usize::MAX);
    let keys = index.keys().len();
    Ok(Some(match place.checked_sub(keys) {
        None => qualified::shown(&key(&table, &index, place, pretty), c.catalog),
        Some(place) => index.included().get(place).map(|at| quote(&table.columns[*at].name)).unwrap_or_default(),
    }))
}
