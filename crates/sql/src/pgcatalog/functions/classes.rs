//! Relations by name and by OID, as a session sees them: its temporary tables hide permanent ones of the same name.
use super::{Call, find_index, own, qualified, quote, views};
use crate::pgcatalog::schema_of_table;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, ListBuilder, StringBuilder, UInt32Array, cast::AsArray};
use datafusion::error::Result;
use std::sync::Arc;
use terrace_engine::{Among, Catalog, RelationName, Table};

/// As `oid::regclass` is shown.
pub(super) fn class_name(catalog: &Catalog, oid: u32) -> String {
    let table = catalog.tables().find(|t| t.oid.0 == oid).map(|t| seen_name(catalog, t, oid, &t.name));
    let index = || find_index(catalog, oid).map(|(t, i)| seen_name(catalog, &t, oid, &i.name));
    let system = || own::own().find(|o| o.oid == oid).map(|o| o.shown());
    let view = || views::by_oid(catalog, oid).map(|view| quote(&view.name));
    table.or_else(index).or_else(view).or_else(system).unwrap_or_else(|| oid.to_string())
}

/// The name of a table or of its index, with the schema where the name alone would mean another.
fn seen_name(catalog: &Catalog, table: &Table, oid: u32, name: &str) -> String {
    match is_seen(catalog, oid, name) {
        true => quote(name),
        false => format!("{}.{}", schema_of_table(table), quote(name)),
    }
}

/// Whether the name alone means the table or the index.
fn is_seen(catalog: &Catalog, oid: u32, name: &str) -> bool {
    let found = catalog.table(name).map(|table| table.oid).or_else(|| catalog.index(name).map(|index| index.oid));
    found.is_some_and(|found| found.0 == oid)
}

/// The tables, indexes and views that a name without a schema does not find.
fn hidden(catalog: &Catalog) -> Vec<u32> {
    if catalog.spaces().next().is_none() {
        return vec![];
    }
    let of_table = |t: &Arc<Table>| {
        let own = t.indexes.iter().map(|i| (i.oid, i.name.clone())).chain([(t.oid, t.name.clone())]);
        own.filter(|(oid, name)| !is_seen(catalog, oid.0, name)).map(|(oid, _)| oid.0).collect::<Vec<u32>>()
    };
    let views = catalog.views().filter(|view| catalog.view(view.name.as_str()).is_none()).map(|view| view.oid.0);
    catalog.tables().flat_map(of_table).chain(views).collect()
}

/// The OID that `name::regclass` means.
pub(super) fn class_oid(catalog: &Catalog, name: &str) -> Option<u32> {
    let schema = name.split_once('.').and_then(|(schema, rest)| Some((crate::parse::among(schema)?, rest)));
    let (among, name) = schema.unwrap_or((Among::All, name));
    let name = terrace_grammar::cut(name.trim_matches('"'));
    if let Ok(oid) = name.parse() {
        return Some(oid);
    }
    let (schema, system) = name.split_once('.').unwrap_or(("pg_catalog", name));
    if let Some(own) = own::own().find(|o| (o.schema, o.name) == (schema, system)) {
        return Some(own.oid);
    }
    let name = &RelationName::new(among, name);
    let index = || catalog.index(name).map(|i| i.oid.0);
    let view = || catalog.view(name).map(|view| view.oid.0);
    catalog.table(name).map(|t| t.oid.0).or_else(index).or_else(view)
}

/// `pg_table_is_visible(oid)`.
pub(super) fn is_visible(c: &Call<'_>) -> Result<ArrayRef> {
    let hidden: Vec<u32> = own::own().filter(|o| !o.is_visible()).map(|o| o.oid).chain(hidden(c.catalog)).collect();
    let one = |row| Ok(c.oid(0, row)?.map(|oid| !hidden.contains(&oid)));
    Ok(Arc::new(BooleanArray::from((0..c.rows).map(one).collect::<Result<Vec<_>>>()?)))
}

/// `pg_my_temp_schema()`: 0 where the session has no temporary tables.
pub(super) fn own_schema(c: &Call<'_>) -> ArrayRef {
    let own = c.catalog.own_space().map_or(0, |space| space.0.0);
    Arc::new(UInt32Array::from(vec![own; c.rows]))
}

/// `pg_is_other_temp_schema(oid)`.
pub(super) fn is_of_others(c: &Call<'_>) -> Result<ArrayRef> {
    let own = c.catalog.own_space();
    let others: Vec<u32> = c.catalog.spaces().filter(|space| Some(*space) != own).map(|space| space.0.0).collect();
    let one = |row| Ok(c.oid(0, row)?.map(|oid| others.contains(&oid)));
    Ok(Arc::new(BooleanArray::from((0..c.rows).map(one).collect::<Result<Vec<_>>>()?)))
}

/// As `oid::regnamespace` is shown.
pub(super) fn schema_name(catalog: &Catalog, oid: u32) -> String {
    let temporary = catalog.spaces().find(|space| space.0.0 == oid).map(|space| space.to_string());
    temporary.unwrap_or_else(|| super::schema_name(oid))
}

/// `current_schemas(with those that are searched anyway)`.
pub(super) fn current_schemas(c: &Call<'_>) -> ArrayRef {
    let hidden = qualified::is_hidden(c);
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..c.rows {
        let implicit =
            c.arguments.first().and_then(|a| a.as_boolean_opt()).is_some_and(|a| a.is_valid(row) && a.value(row));
        if implicit {
            if let Some(own) = c.catalog.own_space() {
                lists.values().append_value(own.to_string());
            }
            lists.values().append_value("pg_catalog");
        }
        if !hidden {
            lists.values().append_value("public");
        }
        lists.append(true);
    }
    Arc::new(lists.finish())
}
