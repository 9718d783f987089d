//! `pg_depend` and `pg_rewrite`: which column owns a sequence, which default takes values from one, what views read.
//! pg_dump asks for them to know what to make first, psql to show a sequence's owner.
//!
//! The views of the schema `terrace` belong to an extension that is part of the server, as plpgsql does to PostgreSQL:
//! so pg_dump leaves them out.
//!
//! 1. The rule of a view has an OID of its own, which is no other row's of `pg_rewrite`.
use super::rows::default_oid;
use super::*;
use crate::parse::identity::Identity;
use crate::parse::sequence_calls::sequence_of;
use terrace_engine::{Domain, View};
use terrace_storage::FIRST_OBJECT;

/// Below those of the user's objects: pg_dump takes it for one that is there anyway.
const EXTENSION_OID: u32 = 15_999;
const PG_ATTRDEF_OID: u32 = 2604;
const PG_EXTENSION_OID: u32 = 3079;
const PG_REWRITE_OID: u32 = 2618;
pub(super) const PG_TYPE_OID: u32 = 1247;

/// Invariant 1.
pub(crate) fn rule_oid(view: &View) -> u32 {
    view.oid.0.wrapping_mul(2048)
}

/// Of `pg_rewrite`: the rule that makes a relation a view.
pub(super) fn rule(view: &View) -> Row {
    row! {
        oid: rule_oid(view), rulename: "_RETURN", ev_class: view.oid.0, ev_type: "1", ev_enabled: "O", is_instead: true,
    }
}

/// Of `pg_extension`.
pub(super) fn extension() -> Row {
    row! {
        oid: EXTENSION_OID, extname: "terrace", extowner: OWNER_OID, extnamespace: TERRACE_OID, extrelocatable: false,
        extversion: env!("CARGO_PKG_VERSION"),
    }
}

/// What belongs to it.
fn of_extension() -> impl Iterator<Item = Row> {
    let views = own::own().filter(|own| own.schema == "terrace").map(|own| (PG_CLASS_OID, own.oid));
    let it = (PG_EXTENSION_OID, EXTENSION_OID, 0);
    views.chain([(PG_NAMESPACE_OID, TERRACE_OID)]).map(move |object| row(object, it, "e"))
}

/// Of `pg_depend`.
pub(super) fn rows(catalog: &Catalog) -> Vec<Row> {
    let of_tables = of_extension().chain(catalog.tables().flat_map(|table| of_columns(catalog, table)));
    let of_views = catalog.views().flat_map(|view| of_view(catalog, view));
    let of_domains = catalog.domains().filter_map(|domain| of_domain(domain));
    let of_types = catalog.composite_types().flat_map(composites::dependencies);
    of_tables.chain(of_views).chain(of_domains).chain(of_types).collect()
}

/// `(class, object)` needs `(class, object, column)`.
pub(super) fn row(
    (class, object): (u32, u32),
    (needed_class, needed, column): (u32, u32, i32),
    kind: &'static str,
) -> Row {
    row! {
        classid: class, objid: object, objsubid: 0, refclassid: needed_class, refobjid: needed, refobjsubid: column,
        deptype: kind,
    }
}

/// A domain over a type of the user's, or another domain, needs that.
fn of_domain(domain: &Domain) -> Option<Row> {
    let base = domain.parent.as_ref().map_or(domain.base.pg_oid(), |parent| parent.oid);
    (base >= FIRST_OBJECT).then(|| row((PG_TYPE_OID, domain.oid), (PG_TYPE_OID, base, 0), "n"))
}

/// Of columns whose values come from a sequence.
fn of_columns(catalog: &Catalog, table: &Table) -> Vec<Row> {
    let mut rows = vec![];
    for (number, column) in attributes(table) {
        let Some(sequence) = sequence_of(column).and_then(|name| catalog.table(&name).cloned()) else {
            continue;
        };
        let place = (PG_CLASS_OID, table.oid.0, i32::from(number));
        let identity = Identity::of(column).is_some();
        if identity || crate::values::is_owned(&sequence) {
            rows.push(row((PG_CLASS_OID, sequence.oid.0), place, if identity { "i" } else { "a" }));
        }
        if !identity {
            let default = (PG_ATTRDEF_OID, default_oid(table.oid.0, number));
            rows.push(row(default, place, "a"));
            rows.push(row(default, (PG_CLASS_OID, sequence.oid.0, 0), "n"));
        }
    }
    rows
}

fn of_view(catalog: &Catalog, view: &View) -> Vec<Row> {
    let rule = (PG_REWRITE_OID, rule_oid(view));
    let mut rows = Vec::from(["i", "n"].map(|kind| row(rule, (PG_CLASS_OID, view.oid.0, 0), kind)));
    for used in &view.uses {
        let relation = used.name();
        let table = catalog.table(&relation).map(|table| table.oid);
        let Some(read) = table.or_else(|| catalog.view(&relation).map(|view| view.oid)) else { continue };
        match used.used.is_empty() {
            true => rows.push(row(rule, (PG_CLASS_OID, read.0, 0), "n")),
            false => rows.extend(used.used.iter().map(|at| row(rule, (PG_CLASS_OID, read.0, *at as i32 + 1), "n"))),
        }
    }
    rows
}
