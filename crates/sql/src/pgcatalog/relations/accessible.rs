//! What `information_schema` tells a role: of what it owns, or may do something with. Superusers are told all.
//!
//! Source: PostgreSQL 15, `information_schema.sql`.
use super::*;
use crate::access::{Actor, securable};
use terrace_engine::catalog::access::{Rights, Securable};
use terrace_engine::{Among, ColumnDef, RelationName, Space};
use terrace_storage::ObjectId;

/// The relation that a row is about.
struct About<'c> {
    object: ObjectId,
    kind: Securable,
    columns: &'c [ColumnDef],
}

fn text<'r>(row: &'r Row, column: &str) -> Option<&'r str> {
    row.iter().find_map(|(name, value)| match value {
        V::T(text) if *name == column => Some(text.as_str()),
        _ => None,
    })
}

fn about<'c>(catalog: &'c Catalog, row: &Row) -> Option<About<'c>> {
    let Some(schema) = text(row, "table_schema") else { return about_foreign_key(catalog, row) };
    let space = space_of(catalog, schema)?;
    let name = RelationName::new(Among::In(space), text(row, "table_name")?);
    let of_table = |table: &'c Arc<Table>| About { object: table.oid, kind: securable(table), columns: &table.columns };
    let view = || {
        let view = catalog.view(&name)?;
        Some(About { object: view.oid, kind: Securable::Table, columns: &view.columns })
    };
    catalog.table(&name).map(of_table).or_else(view)
}

/// Of `referential_constraints`, which names no table.
fn about_foreign_key<'c>(catalog: &'c Catalog, row: &Row) -> Option<About<'c>> {
    let space = space_of(catalog, text(row, "constraint_schema")?)?;
    let name = text(row, "constraint_name")?;
    let mut tables = catalog.tables().filter(|table| table.space == space);
    let table = tables.find(|table| table.foreign_keys.iter().any(|key| key.name == name))?;
    Some(About { object: table.oid, kind: Securable::Table, columns: &table.columns })
}

fn space_of(catalog: &Catalog, name: &str) -> Option<Space> {
    catalog.schema(name).or_else(|| catalog.spaces().into_iter().find(|space| space.to_string() == name))
}

/// The rows of a relation of `information_schema` that a role is shown.
pub(super) fn rows(catalog: &Catalog, actor: &Actor, name: &str, rows: Vec<Row>) -> Vec<Row> {
    match actor.is_superuser() {
        true => rows,
        false => rows.into_iter().filter_map(|row| shown(catalog, actor, name, row)).collect(),
    }
}

fn shown(catalog: &Catalog, actor: &Actor, name: &str, mut row: Row) -> Option<Row> {
    if name == "schemata" {
        let Some(space) = space_of(catalog, text(&row, "schema_name")?) else { return Some(row) };
        let rights = actor.rights(catalog, space.0, Securable::Schema).0;
        return (actor.owns(catalog, space.0) || !rights.is_empty()).then_some(row);
    }
    let Some(about) = about(catalog, &row) else { return Some(row) };
    if actor.owns(catalog, about.object) {
        return Some(row);
    }
    let rights = actor.rights(catalog, about.object, about.kind).0;
    let on_column = |at: usize| actor.column_rights(catalog, about.object, at).0;
    let on_any = catalog.column_acls(about.object).fold(Rights::NONE, |all, (at, _)| all | on_column(at));
    let may = match name {
        "columns" | "key_column_usage" => {
            let named = text(&row, "column_name")?;
            let at = about.columns.iter().position(|column| column.name == named)?;
            (rights & Rights::OF_COLUMNS) | on_column(at)
        }
        "table_constraints" | "referential_constraints" => (rights | on_any) & !Rights::SELECT,
        "constraint_column_usage" => Rights::NONE,
        _ => rights | on_any,
    };
    // Its owner's alone.
    row.retain(|(column, _)| *column != "view_definition");
    (!may.is_empty()).then_some(row)
}
