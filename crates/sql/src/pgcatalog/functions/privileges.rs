//! What roles may do: `has_table_privilege` and its kind, `pg_has_role`, and acls as they are shown.
use super::classes::{found_class, named_schema};
use super::{Call, external, quote, role_name, undefined_relation};
use crate::access::{Actor, named_right, securable};
use crate::pgcatalog::AUTHID_OID;
use crate::pgcatalog::relations::{own, views};
use crate::pgcatalog::{DATABASE, system};
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use std::sync::Arc;
use terrace_engine::catalog::access::{Grant, PUBLIC, PUBLIC_SCHEMA, Rights, Securable, THE_DATABASE};
use terrace_engine::catalog::roles::SIGNAL_BACKEND;
use terrace_engine::{Catalog, EngineError, Space};
use terrace_storage::ObjectId;

/// What a function is asked about.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum About {
    Table,
    /// A table, and whether there is a privilege on it or on any of its columns.
    AnyColumn,
    /// With one more argument, which names a column.
    Column,
    Sequence,
    Schema,
    Database,
}

/// An item of an acl. The bits of [`Rights`] are in PostgreSQL's order.
fn item(catalog: &Catalog, grant: &Grant) -> String {
    let name = |oid: u32| match oid {
        PUBLIC => String::new(),
        _ => {
            let name = catalog.role_by_oid(oid).map_or_else(|| oid.to_string(), |role| role.name);
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if plain { name } else { format!("\"{}\"", name.replace('"', "\"\"")) }
        }
    };
    let letters: String = Rights::ALL
        .iter()
        .filter(|(one, ..)| grant.rights.covers(*one))
        .map(|(one, letter, _)| if grant.options.covers(*one) { format!("{letter}*") } else { letter.to_string() })
        .collect();
    format!("{}={letters}/{}", name(grant.grantee), name(grant.grantor))
}

/// What has been said of an object's privileges; `None`: nothing.
pub(crate) fn shown_acl(catalog: &Catalog, object: ObjectId) -> Option<Vec<String>> {
    Some(shown(catalog, catalog.stated_acl(object)?))
}

pub(crate) fn shown(catalog: &Catalog, acl: &[Grant]) -> Vec<String> {
    acl.iter().map(|grant| item(catalog, grant)).collect()
}

/// The acl of the schema public, which is shown also where nothing has been said.
pub(crate) fn acl_of_public(catalog: &Catalog) -> Vec<String> {
    catalog.acl(PUBLIC_SCHEMA, Securable::Schema).iter().map(|grant| item(catalog, grant)).collect()
}

/// As `oid::regrole` is shown.
pub(super) fn shown_role(catalog: &Catalog, oid: u32) -> String {
    match oid {
        0 => "-".to_owned(),
        _ => role_name(catalog, oid).map_or_else(|| oid.to_string(), |name| quote(&name)),
    }
}

/// The OID of the role of a name.
pub(super) fn role_oid(catalog: &Catalog, name: &str) -> Option<u32> {
    let parsed = terrace_grammar::name_of(name).filter(|parsed| parsed.parts().len() == 1)?;
    catalog.role(&parsed.last().name).map(|role| role.oid)
}

/// `'name'::regrole`. 42704
pub(super) fn regrole_oid(c: &Call<'_>) -> Result<ArrayRef> {
    let one = |row| -> Result<Option<u32>> {
        let Some(name) = c.text(0, row)? else { return Ok(None) };
        if name == "-" {
            return Ok(Some(0));
        }
        if let Ok(oid) = name.parse() {
            return Ok(Some(oid));
        }
        let shown = terrace_grammar::name_of(&name).map_or_else(|| name.clone(), |parsed| parsed.last().name.clone());
        let missing = || EngineError::new("42704", format!("role \"{shown}\" does not exist"));
        role_oid(c.catalog, &name).map(Some).ok_or_else(|| external(missing()))
    };
    Ok(Arc::new(UInt32Array::from((0..c.rows).map(one).collect::<Result<Vec<_>>>()?)))
}

fn is_text(c: &Call<'_>, argument: usize) -> bool {
    c.arguments.get(argument).is_some_and(|array| matches!(array.data_type(), DataType::Utf8 | DataType::Utf8View))
}

/// Whose privileges are asked for. 42704
fn actor(c: &Call<'_>, row: usize, argument: Option<usize>) -> Result<Option<Actor>> {
    let Some(argument) = argument else { return Ok(Some(c.info.actor(c.catalog))) };
    if !is_text(c, argument) {
        return Ok(c.oid(argument, row)?.map(|oid| Actor::of_oid(oid, c.catalog)));
    }
    let Some(name) = c.text(argument, row)? else { return Ok(None) };
    if name != "public" && c.catalog.role(&name).is_none() {
        let missing = EngineError::new("42704", format!("role \"{name}\" does not exist"));
        return Err(external(missing));
    }
    Ok(Some(Actor::named(&name, c.catalog)))
}

/// The object that is asked about; `None`: there is none of that OID.
fn object(c: &Call<'_>, row: usize, argument: usize, about: About) -> Result<Option<u32>> {
    if !is_text(c, argument) {
        return c.oid(argument, row);
    }
    let Some(name) = c.text(argument, row)? else { return Ok(None) };
    let missing = |state, what: String| external(EngineError::new(state, format!("{what} does not exist")));
    match about {
        About::Table | About::AnyColumn | About::Column | About::Sequence => match found_class(c, &name)? {
            Some(oid) => Ok(Some(oid)),
            None => Err(undefined_relation(&name)),
        },
        About::Schema => match named_schema(c.catalog, &name) {
            Some(oid) => Ok(Some(oid)),
            None => Err(missing("3F000", format!("schema \"{name}\""))),
        },
        About::Database if name == DATABASE => Ok(Some(system::DATABASE_OID)),
        About::Database => Err(missing("3D000", format!("database \"{name}\""))),
    }
}

/// Whether one of the privileges of a text, e.g. `SELECT, UPDATE WITH GRANT OPTION`, is among those that are there (and
/// those that may be granted). 22023
fn is_among(named: &str, allowed: Rights, (rights, options): (Rights, Rights)) -> Result<bool> {
    let mut found = false;
    for part in named.split(',') {
        let upper = part.trim().to_ascii_uppercase();
        let (name, option) = match upper.strip_suffix(" WITH GRANT OPTION") {
            Some(name) => (name.trim_end(), true),
            None => (upper.as_str(), false),
        };
        if name == "RULE" && allowed == Securable::Table.rights() {
            continue; // There was such a privilege once: nobody has it.
        }
        let Some(right) = named_right(name).ok().filter(|right| allowed.covers(*right)) else {
            let message = format!("unrecognized privilege type: \"{}\"", part.trim());
            return Err(external(EngineError::new("22023", message)));
        };
        found |= if option { options.covers(right) } else { rights.covers(right) };
    }
    Ok(found)
}

/// What an actor may do with an object, and grant; and the privileges that may be asked for. `None`: there is no such
/// object.
fn rights_to(c: &Call<'_>, actor: &Actor, about: About, oid: u32) -> Result<Option<(Rights, (Rights, Rights))>> {
    // Everybody may use the schemas of the system and read its relations.
    let of_system = |kind: Securable, rights: Rights| match actor.is_superuser() {
        true => (kind.rights(), (kind.rights(), kind.rights())),
        false => (kind.rights(), (rights, Rights::NONE)),
    };
    let of = |object, kind: Securable, allowed| Ok(Some((allowed, actor.rights(c.catalog, object, kind))));
    match about {
        About::Schema if c.catalog.is_schema(Space(ObjectId(oid))) => {
            of(ObjectId(oid), Securable::Schema, Securable::Schema.rights())
        }
        About::Schema => Ok(Some(of_system(Securable::Schema, Rights::USAGE))),
        About::Database => of(THE_DATABASE, Securable::Database, Securable::Database.rights()),
        About::Sequence => match c.table(oid) {
            Some(table) if securable(table) == Securable::Sequence => {
                of(table.oid, Securable::Sequence, Securable::Sequence.rights())
            }
            Some(table) => Err(external(EngineError::new("42809", format!("\"{}\" is not a sequence", table.name)))),
            None => Ok(None),
        },
        About::Table | About::AnyColumn | About::Column => {
            let allowed = if about == About::Table { Securable::Table.rights() } else { Rights::OF_COLUMNS };
            match c.table(oid) {
                Some(table) => of(table.oid, securable(table), allowed),
                None if views::by_oid(c.catalog, oid).is_some() => of(ObjectId(oid), Securable::Table, allowed),
                None if oid == AUTHID_OID => of(ObjectId(oid), Securable::Table, allowed),
                None if own::own().any(|own| own.oid == oid) => {
                    let (_, rights) = of_system(Securable::Table, Rights::SELECT);
                    Ok(Some((allowed, rights)))
                }
                None => Ok(None),
            }
        }
    }
}

/// Which columns are asked about.
enum Columns {
    /// There is no such column.
    None,
    /// Of a relation of the system: they have no privileges of their own.
    OfSystem,
    One(usize),
}

/// The column that an argument names, or numbers. 42703
fn column(c: &Call<'_>, row: usize, argument: usize, oid: u32) -> Result<Columns> {
    let (columns, name) = match (c.table(oid), views::by_oid(c.catalog, oid)) {
        (Some(table), _) => (&table.columns, &table.name),
        (None, Some(view)) => (&view.columns, &view.name),
        (None, None) => return column_of_system(c, row, argument, oid),
    };
    let live = |at: usize| columns.get(at).filter(|column| !column.dropped).map_or(Columns::None, |_| Columns::One(at));
    if !is_text(c, argument) {
        let at = c.int(argument, row)?.and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
        return Ok(at.map_or(Columns::None, live));
    }
    let Some(column) = c.text(argument, row)? else { return Ok(Columns::None) };
    match columns.iter().position(|own| own.name == column) {
        Some(at) => Ok(live(at)),
        None => Err(undefined_column(&column, name)),
    }
}

fn column_of_system(c: &Call<'_>, row: usize, argument: usize, oid: u32) -> Result<Columns> {
    let Some(own) = own::own().find(|own| own.oid == oid) else { return Ok(Columns::None) };
    let columns = own.columns();
    if !is_text(c, argument) {
        let number = c.int(argument, row)?.and_then(|number| usize::try_from(number).ok());
        let is_there = number.is_some_and(|number| (1..=columns.len()).contains(&number));
        return Ok(if is_there { Columns::OfSystem } else { Columns::None });
    }
    let Some(column) = c.text(argument, row)? else { return Ok(Columns::None) };
    match columns.contains(&column.as_str()) {
        true => Ok(Columns::OfSystem),
        false => Err(undefined_column(&column, own.name)),
    }
}

fn undefined_column(column: &str, relation: &str) -> datafusion::error::DataFusionError {
    let message = format!("column \"{column}\" of relation \"{relation}\" does not exist");
    external(EngineError::new("42703", message))
}

/// `has_..._privilege([role,] object, [column,] privileges)`.
pub(super) fn has_privilege(c: &Call<'_>, about: About) -> Result<ArrayRef> {
    let own = 2 + usize::from(about == About::Column);
    let of_role = c.arguments.len() > own;
    let place = usize::from(of_role);
    let one = |row: usize| -> Result<Option<bool>> {
        let Some(actor) = actor(c, row, of_role.then_some(0))? else { return Ok(None) };
        let Some(oid) = object(c, row, place, about)? else { return Ok(None) };
        let Some(named) = c.text(c.arguments.len() - 1, row)? else { return Ok(None) };
        let Some((allowed, (mut rights, mut options))) = rights_to(c, &actor, about, oid)? else { return Ok(None) };
        let columns: Vec<usize> = match about {
            About::AnyColumn => c.catalog.column_acls(ObjectId(oid)).map(|(at, _)| at).collect(),
            About::Column => match column(c, row, place + 1, oid)? {
                Columns::None => return Ok(None),
                Columns::OfSystem => vec![],
                Columns::One(at) => vec![at],
            },
            _ => vec![],
        };
        for at in columns {
            let of = actor.column_rights(c.catalog, ObjectId(oid), at);
            (rights, options) = (rights | of.0, options | of.1);
        }
        is_among(&named, allowed, (rights, options)).map(Some)
    };
    Ok(Arc::new((0..c.rows).map(one).collect::<Result<BooleanArray>>()?))
}

/// `pg_has_role([role,] role, privileges)`.
pub(super) fn has_role(c: &Call<'_>) -> Result<ArrayRef> {
    let place = usize::from(c.arguments.len() > 2);
    let one = |row: usize| -> Result<Option<bool>> {
        let Some(asked) = actor(c, row, (place == 1).then_some(0))? else { return Ok(None) };
        let Some(role) = actor(c, row, Some(place))? else { return Ok(None) };
        let Some(named) = c.text(c.arguments.len() - 1, row)? else { return Ok(None) };
        if asked.is_superuser() {
            return Ok(Some(true));
        }
        let memberships = c.catalog.with_memberships(asked.oid(), false);
        let admin = c.catalog.members().any(|m| m.role == role.oid() && m.admin && memberships.contains(&m.member));
        let mut found = false;
        for part in named.split(',').map(|part| part.trim().to_ascii_uppercase()) {
            found |= match part.as_str() {
                "USAGE" => asked.has(role.oid()),
                "MEMBER" => memberships.contains(&role.oid()),
                "USAGE WITH GRANT OPTION"
                | "USAGE WITH ADMIN OPTION"
                | "MEMBER WITH GRANT OPTION"
                | "MEMBER WITH ADMIN OPTION" => admin,
                other => {
                    let message = format!("unrecognized privilege type: \"{other}\"");
                    return Err(external(EngineError::new("22023", message)));
                }
            };
        }
        Ok(Some(found))
    };
    Ok(Arc::new((0..c.rows).map(one).collect::<Result<BooleanArray>>()?))
}

/// 42501 where the current role may not cancel what a session of another's runs, or end that session.
pub(super) fn permit_signal(c: &Call<'_>, user: &str, cancels: bool) -> Result<()> {
    let (actor, role) = (c.info.actor(c.catalog), c.catalog.role(user));
    let refused = |message: &str| Err(external(EngineError::new("42501", message)));
    if role.as_ref().is_none_or(|role| role.superuser) && !actor.is_superuser() {
        return refused(match cancels {
            true => "must be a superuser to cancel superuser query",
            false => "must be a superuser to terminate superuser process",
        });
    }
    if !actor.has(SIGNAL_BACKEND) && !role.is_some_and(|role| actor.has(role.oid)) {
        let what = if cancels { "query is being canceled" } else { "process is being terminated" };
        return refused(&format!("must be a member of the role whose {what} or member of pg_signal_backend"));
    }
    Ok(())
}
