//! Relations, types and schemas by name and by OID, as a session sees them: along its `search_path`.
use super::{Call, DATABASE, external, find_index, own, quote, undefined_relation, views};
use crate::parse::qualified::{is_visible as is_seen, shown_relation, shown_type};
use crate::parse::types::{domain_named, known, of_user, refuse_hidden, type_name};
use crate::pgcatalog::system::TYPES;
use crate::values::array_oid;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, ListBuilder, StringBuilder, UInt32Array, cast::AsArray};
use datafusion::arrow::datatypes::UInt32Type;
use datafusion::error::{DataFusionError, Result};
use std::sync::Arc;
use terrace_engine::{Among, Catalog, DataType, EngineError, RelationName, Space, Step};

/// Where a relation of the user's is, and its name.
fn relation(catalog: &Catalog, oid: u32) -> Option<(Space, String)> {
    let table = catalog.tables().find(|t| t.oid.0 == oid).map(|t| (t.space, t.name.clone()));
    let index = || find_index(catalog, oid).map(|(t, i)| (t.space, i.name.clone()));
    let view = || views::by_oid(catalog, oid).map(|view| (view.space, view.name.clone()));
    let composite = || {
        let def = catalog.composite_types().find(|of| of.def().class == oid)?.def();
        Some((catalog.space_of_type(def.oid)?, def.name.clone()))
    };
    table.or_else(index).or_else(view).or_else(composite)
}

/// As `oid::regclass` is shown.
pub(super) fn class_name(catalog: &Catalog, oid: u32) -> String {
    if oid == 0 {
        return "-".to_owned();
    }
    let of_user = relation(catalog, oid).map(|(space, name)| shown_relation(space, &name, catalog));
    let system = || own::own().find(|o| o.oid == oid).map(|o| o.shown());
    of_user.or_else(system).unwrap_or_else(|| oid.to_string())
}

/// The OID that `name::regclass` means.
pub(super) fn class_oid(catalog: &Catalog, name: &str) -> Option<u32> {
    if let Ok(oid) = name.trim().parse() {
        return Some(oid);
    }
    let parsed = terrace_grammar::name_of(name)?;
    let parts: Vec<&str> = parsed.parts().iter().map(|part| part.name.as_str()).collect();
    let (among, own_name) = match parts.as_slice() {
        [own] => (Some(Among::All), *own),
        [schema, own] => (crate::parse::among(schema), *own),
        [DATABASE, schema, own] => (crate::parse::among(schema), *own),
        _ => return None,
    };
    let in_system = |schemas: &[&str]| {
        schemas.iter().find_map(|schema| own::own().find(|o| (o.schema, o.name) == (*schema, own_name))).map(|o| o.oid)
    };
    let of_user = |among: Among| {
        let name = &RelationName::new(among, own_name);
        let index = || catalog.index(name).map(|i| i.oid.0);
        let view = || catalog.view(name).map(|view| view.oid.0);
        let composite = || catalog.composite_type(name).map(|of| of.def().class);
        catalog.table(name).map(|t| t.oid.0).or_else(index).or_else(view).or_else(composite)
    };
    match (parts.as_slice(), among) {
        ([.., schema, _], None) => in_system(&[schema]),
        ([_, .., _], Some(among)) => of_user(among),
        _ => in_system(&["pg_catalog"]).or_else(|| of_user(Among::All)),
    }
}

/// The same, where the current role may use the schema that the name says. 42501
pub(super) fn found_class(c: &Call<'_>, name: &str) -> Result<Option<u32>> {
    let parsed = terrace_grammar::name_of(name);
    let schema = parsed.as_ref().and_then(|parsed| parsed.qualifier().last());
    if let Some(among) = schema.and_then(|schema| crate::parse::among(&schema.name)) {
        let found = c.info.permit_lookup(c.catalog, &RelationName::new(among, ""));
        found.map_err(external)?;
    }
    Ok(class_oid(c.catalog, name))
}

/// What a name that is no relation's is told. 3F000, 42P01
pub(super) fn no_class(catalog: &Catalog, name: &str) -> DataFusionError {
    let parsed = terrace_grammar::name_of(name).and_then(|name| crate::parse::relation(&name).ok());
    match parsed {
        Some(parsed) => external(crate::error::missing_relation(catalog, &parsed)),
        None => undefined_relation(name),
    }
}

/// `'name'::regtype`. 42704
pub(super) fn regtype_oid(c: &Call<'_>) -> Result<ArrayRef> {
    let one = |row| -> Result<Option<u32>> {
        let Some(name) = c.text(0, row)? else { return Ok(None) };
        let found = found_type(c, &name)?;
        let missing = || external(EngineError::new("42704", format!("type \"{name}\" does not exist")));
        found.map(Some).ok_or_else(missing)
    };
    let oids = (0..c.rows).map(one).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(UInt32Array::from(oids)))
}

/// The OID of a type, where the current role may use the schema that the name says. 42501
pub(super) fn found_type(c: &Call<'_>, name: &str) -> Result<Option<u32>> {
    if let Some(of) = type_name(name) {
        c.info.permit_type(c.catalog, &of).map_err(external)?;
        refuse_hidden(&of, c.catalog).map_err(external)?;
    }
    Ok(type_oid(c.catalog, name))
}

/// The OID of a type by its name, as a cast takes it: `"pg_catalog"."int4"`, `double precision`, `varchar(3)[]`.
fn type_oid(catalog: &Catalog, name: &str) -> Option<u32> {
    let of = type_name(name)?;
    if let Some(domain) = domain_named(&of, catalog).filter(|_| of.dimensions.is_empty() && known(&of).is_err()) {
        return Some(domain.oid);
    }
    if let Some(own) = of_user(&of, catalog).filter(|_| known(&of).is_err()) {
        return Some(own.pg_oid());
    }
    let own = match of.name.parts() {
        [own] => own,
        [schema, own] if schema.name == "pg_catalog" => own,
        _ => return None,
    };
    let oid = TYPES.iter().find(|known| known.name == own.name)?.oid;
    if of.dimensions.is_empty() { Some(oid) } else { array_oid(oid) }
}

fn booleans(c: &Call<'_>, of: impl Fn(u32) -> Option<bool>) -> Result<ArrayRef> {
    let one = |row| Ok(c.oid(0, row)?.and_then(&of));
    Ok(Arc::new(BooleanArray::from((0..c.rows).map(one).collect::<Result<Vec<_>>>()?)))
}

/// `pg_table_is_visible(oid)`.
pub(super) fn is_visible(c: &Call<'_>) -> Result<ArrayRef> {
    booleans(c, |oid| {
        let of_user = relation(c.catalog, oid).map(|(space, name)| is_seen(space, &name, c.catalog));
        of_user.or_else(|| own::own().find(|o| o.oid == oid).map(|o| o.is_visible()))
    })
}

/// `pg_type_is_visible(oid)`.
pub(super) fn is_type_visible(c: &Call<'_>) -> Result<ArrayRef> {
    booleans(c, |oid| Some(user_type(c.catalog, oid).is_none_or(|shown| !shown.1)))
}

/// A type of the user's, or that of its arrays, as `format_type` shows it; and whether its name needs the schema.
fn user_type(catalog: &Catalog, oid: u32) -> Option<(String, bool)> {
    let mut own = catalog.own_types().filter_map(DataType::own);
    let (single, name, brackets) = match (own.find(|of| of.oid == oid || of.array == oid), catalog.domain_of_oid(oid)) {
        (Some(of), _) => (of.oid, of.name.to_owned(), if of.oid == oid { "" } else { "[]" }),
        (None, Some(domain)) => (oid, domain.name.clone(), ""),
        (None, None) => return None,
    };
    let shown = shown_type(single, (catalog.space_of_type(single)?, &name), catalog);
    let is_hidden = shown != quote(&name);
    Some((format!("{shown}{brackets}"), is_hidden))
}

/// `format_type(oid, modifier)`.
pub(super) fn format_type(catalog: &Catalog, oid: u32, modifier: Option<i32>) -> String {
    let known = || crate::pgcatalog::system::known_type(oid, modifier);
    user_type(catalog, oid).map_or_else(known, |(shown, _)| shown)
}

/// `pg_my_temp_schema()`: 0 where the session has no temporary tables.
pub(super) fn own_schema(c: &Call<'_>) -> ArrayRef {
    let own = c.catalog.own_space().map_or(0, |space| space.0.0);
    Arc::new(UInt32Array::from(vec![own; c.rows]))
}

/// `pg_is_other_temp_schema(oid)`.
pub(super) fn is_of_others(c: &Call<'_>) -> Result<ArrayRef> {
    let own = c.catalog.own_space();
    let others: Vec<u32> =
        c.catalog.spaces().into_iter().filter(|space| Some(*space) != own).map(|space| space.0.0).collect();
    booleans(c, |oid| Some(others.contains(&oid)))
}

/// As `oid::regnamespace` is shown.
pub(super) fn schema_name(catalog: &Catalog, oid: u32) -> String {
    if oid == 0 {
        return "-".to_owned();
    }
    let space = Space(terrace_storage::ObjectId(oid));
    let is_temporary = || catalog.spaces().contains(&space);
    match catalog.is_schema(space) || is_temporary() {
        true => quote(&catalog.space_name(space)),
        false => super::schema_name(oid),
    }
}

/// The OID of the schema of a name.
pub(super) fn schema_oid(catalog: &Catalog, name: &str) -> Option<u32> {
    let parsed = terrace_grammar::name_of(name).filter(|parsed| parsed.parts().len() == 1)?;
    named_schema(catalog, &parsed.last().name)
}

/// The same of a name as it is.
pub(super) fn named_schema(catalog: &Catalog, name: &str) -> Option<u32> {
    let temporary = || catalog.spaces().into_iter().find(|space| space.to_string() == name);
    let of_user = catalog.schema(name).or_else(temporary).map(|space| space.0.0);
    of_user.or_else(|| super::schema_oid(name))
}

/// Schemas that `search_path` says, as far as they are there.
fn said(catalog: &Catalog) -> Vec<String> {
    let name = |step: &Step| match step {
        Step::In(space) => Some(catalog.space_name(*space)),
        Step::Own => catalog.own_space().map(|own| own.to_string()),
        Step::System(schema) => Some((*schema).to_owned()),
    };
    catalog.said_steps().iter().filter_map(name).collect()
}

/// `current_schema()`.
pub(super) fn current_schema(catalog: &Catalog) -> Option<String> {
    said(catalog).into_iter().next()
}

/// `current_schemas(with those that are searched anyway)`.
pub(super) fn current_schemas(c: &Call<'_>) -> ArrayRef {
    let said = said(c.catalog);
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..c.rows {
        let implicit =
            c.arguments.first().and_then(|a| a.as_boolean_opt()).is_some_and(|a| a.is_valid(row) && a.value(row));
        if implicit {
            let own = c.catalog.own_space().map(|own| own.to_string());
            let before = own.into_iter().chain(["pg_catalog".to_owned()]);
            before.filter(|schema| !said.contains(schema)).for_each(|schema| lists.values().append_value(schema));
        }
        said.iter().for_each(|schema| lists.values().append_value(schema));
        lists.append(true);
    }
    Arc::new(lists.finish())
}

/// The names of types, of arrays of their OIDs.
pub(super) fn type_names(c: &Call<'_>) -> Result<ArrayRef> {
    let mut made = ListBuilder::new(StringBuilder::new());
    let lists = c.arguments.first().and_then(|lists| lists.as_list_opt::<i32>());
    for row in 0..c.rows {
        match lists.filter(|lists| lists.is_valid(row)).map(|lists| lists.value(row)) {
            None => made.append(false),
            Some(items) => {
                let oids = items.as_primitive::<UInt32Type>();
                made.append_value(oids.iter().map(|oid| oid.map(|oid| format_type(c.catalog, oid, None))));
            }
        }
    }
    Ok(Arc::new(made.finish()))
}
