//! What `information_schema` tells the owners of relations, types and roles: what uses what, and under which condition.
//!
//! 1. A role is told of what it owns, or a role owns that it is a member of.
//! 2. Of roles and collations PostgreSQL's own are listed as ours are.
//!
//! Source: PostgreSQL 15, `information_schema.sql`.
use super::grants::{Relation, live, relations};
use super::rows::{constraints, schema_of_type};
use super::*;
use crate::access::Actor;
use crate::parse::qualified::shown as shown_text;
use crate::parse::shown;
use crate::parse::stored::{Stored, columns_of};
use crate::pgcatalog::schema_of_table;
use crate::values::is_sequence;
use std::collections::BTreeSet;
use terrace_engine::catalog::roles::members_of_system;
use terrace_engine::{ColumnDef, Domain, Role, Space};
use terrace_storage::ObjectId;

/// Whether it is one of these relations.
pub(super) fn lists(name: &str) -> bool {
    matches!(
        name,
        "administrable_role_authorizations"
            | "applicable_roles"
            | "check_constraints"
            | "column_column_usage"
            | "column_domain_usage"
            | "column_udt_usage"
            | "constraint_table_usage"
            | "domain_udt_usage"
            | "enabled_roles"
            | "user_defined_types"
            | "view_column_usage"
            | "view_table_usage"
    )
}

pub(super) fn rows(catalog: &Arc<Catalog>, actor: &Actor, name: &str) -> Vec<Row> {
    let catalog = &Arc::new(catalog.without_others().into_owned());
    let owns = |object: u32| actor.has(catalog.owner(ObjectId(object)));
    match name {
        "administrable_role_authorizations" => roles_applicable(catalog, actor, true),
        "applicable_roles" => roles_applicable(catalog, actor, false),
        "enabled_roles" => {
            let all = catalog.roles().chain(Role::of_system()).filter(|role| actor.has(role.oid));
            all.map(|role| row! {role_name: role.name}).collect()
        }
        "check_constraints" => check_constraints(catalog, &owns),
        "column_column_usage" => {
            tables(catalog).filter(|t| owns(t.oid.0)).flat_map(|t| generated_from(catalog, t)).collect()
        }
        "column_domain_usage" => columns(catalog, |(relation, column)| {
            let domain = column.domain.as_ref().filter(|domain| owns(domain.oid))?;
            let mut row = of_column(catalog, relation, column);
            row.extend(row! {
                domain_catalog: DATABASE, domain_schema: catalog.space_name(domain.space), domain_name: &*domain.name,
            });
            Some(row)
        }),
        "column_udt_usage" => columns(catalog, |(relation, column)| {
            let parent = column.domain.as_ref().and_then(|domain| domain.parent.as_deref());
            let mut row = of_column(catalog, relation, column);
            row.extend(udt(catalog, column.data_type.pg_oid(), parent, &owns)?);
            Some(row)
        }),
        "constraint_table_usage" => tables_used(catalog, &owns),
        "domain_udt_usage" => {
            let one = |domain: &Arc<Domain>| {
                let mut row = udt(catalog, domain.base.pg_oid(), domain.parent.as_deref(), &owns)?;
                row.extend(row! {
                    domain_catalog: DATABASE, domain_schema: catalog.space_name(domain.space),
                    domain_name: &*domain.name,
                });
                Some(row)
            };
            catalog.domains().filter_map(one).collect()
        }
        "user_defined_types" => {
            let row = |name: String, oid: u32| {
                row! {
                    user_defined_type_catalog: DATABASE, user_defined_type_schema: schema_of_type(catalog, oid),
                    user_defined_type_name: name, user_defined_type_category: "STRUCTURED", is_instantiable: "YES",
                }
            };
            catalog.composite_types().map(|of| row(of.def().name.clone(), of.def().oid)).collect()
        }
        "view_column_usage" => views_use(catalog, true, &owns),
        "view_table_usage" => views_use(catalog, false, &owns),
        _ => vec![],
    }
}

fn tables(catalog: &Catalog) -> impl Iterator<Item = &Arc<Table>> {
    catalog.tables().filter(|table| !is_sequence(table))
}

/// Rows of columns of tables and views.
fn columns(catalog: &Catalog, row: impl Fn((&Relation<'_>, &ColumnDef)) -> Option<Row>) -> Vec<Row> {
    let all = relations(catalog);
    let pairs = all.iter().flat_map(|relation| live(relation.columns).map(move |at| (relation, &relation.columns[at])));
    pairs.filter_map(row).collect()
}

fn of_column(catalog: &Catalog, relation: &Relation<'_>, column: &ColumnDef) -> Row {
    row! {
        table_catalog: DATABASE, table_schema: catalog.space_name(relation.space), table_name: relation.name,
        column_name: &*column.name,
    }
}

/// A type, or the domain that a domain is over. The types of the system are the first superuser's.
fn udt(catalog: &Catalog, oid: u32, parent: Option<&Domain>, owns: &impl Fn(u32) -> bool) -> Option<Row> {
    let (oid, schema, name) = match parent {
        Some(parent) => (parent.oid, catalog.space_name(parent.space), parent.name.clone()),
        None => {
            let of = catalog.type_of_oid(oid).map(PgType::of).or_else(|| type_by_oid(oid).copied())?;
            (oid, schema_of_type(catalog, oid), of.name.to_owned())
        }
    };
    let item = catalog.type_of_oid(oid).and_then(|of| of.item()).map_or(oid, |item| item.pg_oid());
    owns(item).then(|| row! {udt_catalog: DATABASE, udt_schema: schema, udt_name: name})
}

fn roles_applicable(catalog: &Catalog, actor: &Actor, administrable: bool) -> Vec<Row> {
    let own = catalog.members().map(|member| (member.role, member.member, member.admin));
    let all = own.chain(members_of_system().map(|(role, member)| (role, member, false)));
    let name = |oid: u32| catalog.role_by_oid(oid).map(|role| role.name);
    let shown = all.filter(|(_, member, admin)| actor.has(*member) && (*admin || !administrable));
    shown
        .map(|(role, member, admin)| {
            row! {grantee: name(member), role_name: name(role), is_grantable: foreign::yes(admin)}
        })
        .collect()
}

/// Of CHECK and of NOT NULL.
fn check_constraints(catalog: &Arc<Catalog>, owns: &impl Fn(u32) -> bool) -> Vec<Row> {
    let row = |space: Space, name: String, clause: String| {
        row! {
            constraint_catalog: DATABASE, constraint_schema: catalog.space_name(space), constraint_name: name,
            check_clause: clause,
        }
    };
    let mut rows = vec![];
    for table in tables(catalog).filter(|table| owns(table.oid.0)) {
        for check in &table.checks {
            let shown = shown::condition(&check.sql, &table.columns, false);
            let shown = shown_text(&shown.unwrap_or_else(|| format!("({})", check.sql)), catalog);
            rows.push(row(table.space, check.name.clone(), format!("({shown})")));
        }
        for (name, column) in not_nulls(table) {
            rows.push(row(table.space, name, format!("{column} IS NOT NULL")));
        }
    }
    for domain in catalog.domains().filter(|domain| owns(domain.oid)) {
        for check in &domain.checks {
            let (condition, behind) = domains::condition_of(catalog, check.oid, false).unwrap_or_default();
            let clause = format!("({}){behind}", shown_text(&condition, catalog));
            rows.push(row(domain.space, check.name.clone(), clause));
        }
    }
    rows
}

/// The constraints that the columns of a table that are NOT NULL have: their names, and the columns'.
pub(super) fn not_nulls(table: &Table) -> Vec<(String, &str)> {
    let all = attributes(table).filter(|(_, column)| column.not_null);
    let name = |number: i16| format!("{}_{}_{number}_not_null", table.space.0.0, table.oid.0);
    all.map(|(number, column)| (name(number), column.name.as_str())).collect()
}

/// The columns from which those are computed that are generated.
fn generated_from(catalog: &Catalog, table: &Table) -> Vec<Row> {
    let mut rows = vec![];
    for (_, made) in attributes(table) {
        let Some(stored) = made.generated.as_deref().and_then(Stored::read) else { continue };
        let named = columns_of(stored.expr());
        for (_, column) in attributes(table).filter(|(_, column)| named.contains(&column.name)) {
            rows.push(row! {
                table_catalog: DATABASE, table_schema: schema_of_table(catalog, table), table_name: &*table.name,
                column_name: &*column.name, dependent_column: &*made.name,
            });
        }
    }
    rows
}

/// The tables that keys are of, and those that foreign keys refer to.
fn tables_used(catalog: &Arc<Catalog>, owns: &impl Fn(u32) -> bool) -> Vec<Row> {
    let row = |table: &Table, own: &Table, constraint: &str| {
        row! {
            table_catalog: DATABASE, table_schema: schema_of_table(catalog, table), table_name: &*table.name,
            constraint_catalog: DATABASE, constraint_schema: schema_of_table(catalog, own),
            constraint_name: constraint,
        }
    };
    let own = constraints(catalog).filter(|(t, _)| owns(t.oid.0)).map(|(t, i)| row(&t, &t, &i.name));
    let keys = foreign::keys(catalog).filter(|key| owns(key.referenced.oid.0));
    own.chain(keys.map(|key| row(key.referenced, key.table, &key.key.name))).collect()
}

/// What views read.
fn views_use(catalog: &Catalog, columns: bool, owns: &impl Fn(u32) -> bool) -> Vec<Row> {
    let all = relations(catalog);
    let mut rows = vec![];
    for view in catalog.views() {
        for used in &view.uses {
            let is_it = |one: &&Relation<'_>| one.space == used.space && one.name == used.relation;
            let Some(read) = all.iter().find(is_it).filter(|read| owns(read.object.0)) else { continue };
            let row = || {
                row! {
                    view_catalog: DATABASE, view_schema: catalog.space_name(view.space), view_name: &*view.name,
                    table_catalog: DATABASE, table_schema: catalog.space_name(read.space), table_name: read.name,
                }
            };
            let names: BTreeSet<&str> = used.used.iter().map(|at| read.columns[*at].name.as_str()).collect();
            match columns {
                false => rows.push(row()),
                true => rows.extend(names.into_iter().map(|name| {
                    let mut row = row();
                    row.extend(row! {column_name: name});
                    row
                })),
            }
        }
    }
    rows
}
