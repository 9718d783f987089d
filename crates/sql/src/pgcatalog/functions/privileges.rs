//! What roles may do: `has_table_privilege` and its kind, `pg_has_role`, and acls as they are shown.
use super::classes::named_schema;
use super::{Call, class_oid, external, undefined_relation};
use crate::access::{Actor, named_right, securable};
use crate::pgcatalog::relations::{own, views};
use crate::pgcatalog::{DATABASE, system};
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use std::sync::Arc;
use terrace_engine::catalog::access::{DATABASE_OWNER, Grant, PUBLIC, PUBLIC_SCHEMA, Rights, Securable, THE_DATABASE};
use terrace_engine::{Catalog, EngineError, Space};
use terrace_storage::ObjectId;

/// What a function is asked about.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum About {
    Table,
    /// With one more argument, which names a column. Columns have the privileges of their table.
    Column,
    Sequence,
    Schema,
    Database,
}

/// An item of an acl. The bits of [`Rights`] are in PostgreSQL's order.
fn item(catalog: &Catalog, grant: &Grant) -> String {
    let name = |oid: u32| match oid {
        PUBLIC => String::new(),
        DATABASE_OWNER => system::DATABASE_OWNER.1.to_owned(),
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
        About::Table | About::Column | About::Sequence => match class_oid(c.catalog, &name) {
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
        About::Table | About::Column => match c.table(oid) {
            Some(table) => of(table.oid, securable(table), Securable::Table.rights()),
            None if views::by_oid(c.catalog, oid).is_some() => {
                of(ObjectId(oid), Securable::Table, Securable::Table.rights())
            }
            None if own::own().any(|own| own.oid == oid) => Ok(Some(of_system(Securable::Table, Rights::SELECT))),
            None => Ok(None),
        },
    }
}

/// Whether a relation of the user's has the column that an argument names, or numbers. 42703
fn has_column(c: &Call<'_>, row: usize, argument: usize, oid: u32) -> Result<bool> {
    let (columns, name) = match (c.table(oid), views::by_oid(c.catalog, oid)) {
        (Some(table), _) => (&table.columns, &table.name),
        (None, Some(view)) => (&view.columns, &view.name),
        (None, None) => return Ok(!c.arguments[argument].is_null(row)),
    };
    if !is_text(c, argument) {
        let at = c.int(argument, row)?.and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
        return Ok(at.and_then(|at| columns.get(at)).is_some_and(|column| !column.dropped));
    }
    let Some(column) = c.text(argument, row)? else { return Ok(false) };
    match columns.iter().find(|own| own.name == column) {
        Some(own) => Ok(!own.dropped),
        None => {
            let message = format!("column \"{column}\" of relation \"{name}\" does not exist");
            Err(external(EngineError::new("42703", message)))
        }
    }
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
        let Some((allowed, rights)) = rights_to(c, &actor, about, oid)? else { return Ok(None) };
        if about == About::Column && !has_column(c, row, place + 1, oid)? {
            return Ok(None);
        }
        is_among(&named, allowed, rights).map(Some)
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
