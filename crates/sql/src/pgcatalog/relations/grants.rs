//! Privileges, as `information_schema` lists them: to the role that asks, of what it has granted or been granted.
//!
//! 1. A privilege on a relation is one on each of its columns (`column_privileges`); one that is said twice is listed
//!    once.
//! 2. An owner may always grant.
use super::*;
use crate::access::Actor;
use crate::values::is_sequence;
use std::collections::BTreeSet;
use terrace_engine::catalog::access::{Grant, PUBLIC, Rights, Securable};
use terrace_engine::{ColumnDef, Space};
use terrace_storage::ObjectId;

/// A table or a view.
pub(super) struct Relation<'c> {
    pub(super) object: ObjectId,
    pub(super) space: Space,
    pub(super) name: &'c str,
    pub(super) columns: &'c [ColumnDef],
}

/// One privilege that a role has been granted by another, and whether it may grant it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Listed {
    /// The column's position, in a list of columns.
    column: Option<usize>,
    grantor: u32,
    grantee: u32,
    right: &'static str,
    grantable: bool,
}

/// Whether it is one of these relations.
pub(super) fn lists(name: &str) -> bool {
    matches!(name, "column_privileges" | "role_column_grants" | "role_table_grants" | "table_privileges")
}

pub(super) fn rows(catalog: &Catalog, actor: &Actor, name: &str) -> Vec<Row> {
    let seen = catalog.without_others();
    let catalog: &Catalog = &seen;
    let of_columns = matches!(name, "column_privileges" | "role_column_grants");
    let of_roles = name.starts_with("role_");
    let is_shown = |one: &Listed| {
        let of_grantee = if one.grantee == PUBLIC { !of_roles } else { actor.has(one.grantee) };
        of_grantee || actor.has(one.grantor)
    };
    let mut rows = vec![];
    for relation in relations(catalog) {
        let owner = catalog.owner(relation.object);
        let mut all = BTreeSet::new();
        for grant in catalog.acl(relation.object, Securable::Table) {
            match of_columns {
                true => live(relation.columns).for_each(|at| all.extend(privileges_of(&grant, Some(at)))),
                false => all.extend(privileges_of(&grant, None)),
            }
        }
        for (at, acl) in catalog.column_acls(relation.object).filter(|_| of_columns) {
            acl.iter().for_each(|grant| all.extend(privileges_of(grant, Some(at))));
        }
        let shown = all.iter().filter(|one| is_shown(one));
        rows.extend(shown.map(|one| row_of(catalog, &relation, owner, one)));
    }
    rows
}

pub(super) fn relations(catalog: &Catalog) -> Vec<Relation<'_>> {
    let tables = catalog.tables().filter(|table| !is_sequence(table)).map(|table| Relation {
        object: table.oid,
        space: table.space,
        name: &table.name,
        columns: &table.columns,
    });
    let views = catalog.views().map(|view| Relation {
        object: view.oid,
        space: view.space,
        name: &view.name,
        columns: &view.columns,
    });
    tables.chain(views).collect()
}

pub(super) fn live(columns: &[ColumnDef]) -> impl Iterator<Item = usize> {
    columns.iter().enumerate().filter(|(_, column)| !column.dropped).map(|(at, _)| at)
}

fn privileges_of(grant: &Grant, column: Option<usize>) -> Vec<Listed> {
    let allowed = if column.is_some() { Rights::OF_COLUMNS } else { Securable::Table.rights() };
    let granted = Rights::ALL.iter().filter(|(one, ..)| (grant.rights & allowed).covers(*one));
    let one = |(right, _, name): &(Rights, char, &'static str)| Listed {
        column,
        grantor: grant.grantor,
        grantee: grant.grantee,
        right: name,
        grantable: grant.options.covers(*right),
    };
    granted.map(one).collect()
}

fn row_of(catalog: &Catalog, relation: &Relation<'_>, owner: u32, one: &Listed) -> Row {
    let role = |oid: u32| match oid {
        PUBLIC => "PUBLIC".to_owned(),
        _ => catalog.role_by_oid(oid).map_or_else(|| oid.to_string(), |role| role.name),
    };
    // Invariant 2.
    let grantable = one.grantable || Actor::of_oid(one.grantee, catalog).has(owner);
    let mut row = row! {
        grantor: role(one.grantor), grantee: role(one.grantee), table_catalog: DATABASE,
        table_schema: catalog.space_name(relation.space), table_name: relation.name, privilege_type: one.right,
        is_grantable: foreign::yes(grantable),
    };
    match one.column {
        Some(at) => row.extend(row! {column_name: &*relation.columns[at].name}),
        None => row.extend(row! {with_hierarchy: foreign::yes(one.right == "SELECT")}),
    }
    row
}
