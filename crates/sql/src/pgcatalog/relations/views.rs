//! Views, as the system's relations show them.
use super::rows::{acl_row, attribute_rows, standard_columns};
use super::*;
use crate::parse::qualified::{self, shown_relation, shown_view};
use crate::parse::shown;
use crate::through::{events, query_of};
use terrace_engine::{View, ViewCheck};
use terrace_grammar::statement::Name;

/// The text that `pg_get_viewdef` answers: as PostgreSQL would write it, or else as it was written.
pub(crate) fn definition(catalog: &Arc<Catalog>, view: &View, pretty: bool) -> String {
    let shown = as_postgres(catalog, view, pretty).map(|text| qualified::shown_types(&text, catalog));
    format!("{};", shown.unwrap_or_else(|| shown_view(&view.sql, catalog)))
}

fn as_postgres(catalog: &Arc<Catalog>, view: &View, pretty: bool) -> Option<String> {
    let parsed = crate::parse::statement(&view.sql).ok()??;
    let query = query_of(&parsed)?;
    let kept = catalog.of_definitions();
    let lookup = |name: &Name| {
        let name = crate::parse::relation(name).ok()?.of_definition();
        let (space, own, mut columns) = match (kept.table(&name), kept.view(&name)) {
            (Some(table), _) => (table.space, &table.name, table.columns.clone()),
            (None, Some(view)) => (view.space, &view.name, view.columns.clone()),
            (None, None) => return None,
        };
        let used = view.uses.iter().find(|used| used.space == space && used.relation == *own)?;
        columns.truncate(used.columns);
        Some((shown_relation(space, own, catalog), columns))
    };
    shown::views::query(query, &view.columns, &lookup, pretty)
}

/// A table of the view's columns.
pub(super) fn shape(view: &View) -> Table {
    let mut shape = Table::new(view.oid, view.name.clone(), view.columns.clone(), vec![]);
    shape.space = view.space;
    shape
}

pub(crate) fn by_oid(catalog: &Catalog, oid: u32) -> Option<&Arc<View>> {
    catalog.views().find(|view| view.oid.0 == oid)
}

pub(super) fn class(catalog: &Catalog, view: &View) -> Row {
    row! {
        oid: view.oid.0, relname: &*view.name, relnamespace: view.space.0.0, relowner: catalog.owner(view.oid),
        relacl: acl_row(catalog, view.oid), reltuples: V::F4(-1.0),
        relpersistence: if view.temporary { "t" } else { "p" }, relkind: "v",
        relnatts: view.columns.len() as i16, relhasrules: true, relispopulated: true,
        relreplident: "n",
        reloptions: view.check.map_or(V::Null, |check| V::Texts(vec![format!("check_option={}", check.name())])),
    }
}

pub(super) fn attributes(view: &View) -> Vec<Row> {
    let mut rows = attribute_rows(&shape(view));
    // A view has no columns of the system.
    rows.retain(|row| row.iter().any(|(name, value)| *name == "attnum" && matches!(value, V::I2(1..))));
    rows
}

/// Of `pg_views`.
pub(super) fn listed(catalog: &Arc<Catalog>, view: &View) -> Row {
    let owner = catalog.owner_name(view.oid);
    row! {
        schemaname: catalog.space_name(view.space), viewname: &*view.name, viewowner: owner,
        definition: definition(catalog, view, false),
    }
}

/// Whether all of these events are possible, as `pg_relation_is_updatable` numbers them.
fn takes(catalog: &Catalog, view: &Arc<View>, wanted: i32) -> &'static str {
    if events(catalog, view, None) & wanted == wanted { "YES" } else { "NO" }
}

/// Of `information_schema.views`.
pub(super) fn standard(catalog: &Arc<Catalog>, view: &Arc<View>) -> Row {
    row! {
        table_catalog: DATABASE, table_schema: catalog.space_name(view.space), table_name: &*view.name,
        view_definition: definition(catalog, view, false),
        check_option: match view.check {
            None => "NONE",
            Some(ViewCheck::Local) => "LOCAL",
            Some(ViewCheck::Cascaded) => "CASCADED",
        },
        is_updatable: takes(catalog, view, 20), is_insertable_into: takes(catalog, view, 8), is_trigger_updatable: "NO",
        is_trigger_deletable: "NO", is_trigger_insertable_into: "NO",
    }
}

/// Of `information_schema.tables`.
pub(super) fn standard_table(catalog: &Catalog, view: &Arc<View>) -> Row {
    row! {
        table_catalog: DATABASE, table_schema: catalog.space_name(view.space), table_name: &*view.name,
        table_type: "VIEW",
        is_insertable_into: takes(catalog, view, 8), is_typed: "NO",
    }
}

/// Of `information_schema.columns`.
pub(super) fn standard_columns_of(catalog: &Arc<Catalog>, view: &Arc<View>) -> Vec<Row> {
    let mut rows = standard_columns(catalog, &shape(view));
    for (at, row) in rows.iter_mut().enumerate() {
        let takes = events(catalog, view, Some([at].into())) & 20 == 20;
        for (_, value) in row.iter_mut().filter(|(name, _)| *name == "is_updatable") {
            *value = if takes { "YES" } else { "NO" }.into();
        }
    }
    rows
}
