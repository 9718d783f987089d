//! The names of types: from SQL's to the engine's. What PostgreSQL has and Terrace has not is refused with a type to
//! use instead.
use crate::error::unsupported;
use std::sync::Arc;
use terrace_engine::Domain;
use terrace_engine::types::Digits;
use terrace_engine::types::digits::numeric_of;
use terrace_engine::{Among, Catalog, DataType, EngineError, RelationName, Result, Step};
use terrace_grammar::statement::{Body, ExprKind, Literal, Name, Query, Statement, TypeName};

/// The type that a name stands for, as far as there is one; a type of the system comes before one of the user's.
pub(crate) fn data_type(name: &TypeName, catalog: &Catalog) -> Result<DataType> {
    refuse_hidden(name, catalog)?;
    known(name).or_else(|error| match of_user(name, catalog).filter(|_| error.state.0 == "42704") {
        Some(of) => Ok(of),
        None => Err(no_schema(name, catalog).unwrap_or(error)),
    })
}

/// 0A000 of a type of the system, where `search_path` finds one of the user's by that name before.
pub(crate) fn refuse_hidden(name: &TypeName, catalog: &Catalog) -> Result<()> {
    let [own] = name.name.parts() else { return Ok(()) };
    let before = catalog.steps().iter().take_while(|step| !matches!(step, Step::System("pg_catalog")));
    for step in before {
        let Step::In(space) = step else { continue };
        let there = RelationName::new(Among::In(*space), &*own.name);
        // A relation's rows are a type of its name.
        let has = catalog.own_type(&there).is_some() || catalog.domain(&there).is_some();
        if (has || catalog.relation_exists(&there)) && known(name).is_ok() {
            let error =
                unsupported(format!("the type {}, of which there is another one before in search_path,", own.name));
            return Err(error.with_hint(format!("Write pg_catalog.{}, or the schema of the other one.", own.name)));
        }
    }
    Ok(())
}

/// 3F000 where a type's schema is none.
pub(crate) fn no_schema(name: &TypeName, catalog: &Catalog) -> Option<EngineError> {
    match super::relation(&name.name).ok()?.among {
        Among::Schema(schema) => catalog.require_schema(&schema).err(),
        _ => None,
    }
}

/// A type that a user made, or the type of its arrays.
pub(crate) fn of_user(name: &TypeName, catalog: &Catalog) -> Option<DataType> {
    let of = catalog.own_type(&named(name)?)?;
    if name.dimensions.is_empty() { Some(of) } else { of.array() }
}

/// What a column's type name says: how values are stored, the digits that they keep, and their domain.
pub(crate) fn of_column(name: &TypeName, catalog: &Catalog) -> Result<(DataType, Option<Digits>, Option<Arc<Domain>>)> {
    refuse_hidden(name, catalog)?;
    if let Some(domain) = domain_named(name, catalog).filter(|_| known(name).is_err()) {
        if !name.dimensions.is_empty() {
            return Err(unsupported("an array of a domain"));
        }
        return Ok((domain.base, domain.digits, Some(domain.clone())));
    }
    if let Some((of, digits)) = numeric_digits(name)?.filter(|_| name.dimensions.is_empty()) {
        return Ok((of, digits, None));
    }
    let of_time = matches!(own_name(name), Some("timestamp" | "timestamptz" | "time" | "interval"));
    match name.modifiers.as_slice() {
        [digits] if of_time && name.dimensions.is_empty() && name.fields.is_none() => {
            let digits = match &digits.kind {
                // PostgreSQL warns of more, and takes 6.
                ExprKind::Literal(Literal::Int(digits @ 0..)) => (*digits).min(6) as u8,
                _ => return data_type(name, catalog).map(|of| (of, None, None)),
            };
            let whole = TypeName { modifiers: vec![], ..name.clone() };
            let digits = Some(digits).filter(|digits| *digits < 6).map(Digits::Second);
            Ok((data_type(&whole, catalog)?, digits, None))
        }
        _ => data_type(name, catalog).map(|of| (of, None, None)),
    }
}

/// The domain of a name.
pub(crate) fn domain_named<'c>(name: &TypeName, catalog: &'c Catalog) -> Option<&'c Arc<Domain>> {
    catalog.domain(&named(name)?)
}

/// What a user's type is called where it is shown by its oid: `shown` writes it so, and `qualified` gives it its name.
const NUMBERED: &str = "pg_type_";

pub(crate) fn by_number(oid: u32) -> String {
    format!("{NUMBERED}{oid}")
}

/// The oid of a type that is called so.
pub(crate) fn numbered_type(name: &str) -> Option<u32> {
    name.strip_prefix(NUMBERED)?.parse().ok()
}

/// The name of a type that may be one of the user's.
fn named(name: &TypeName) -> Option<RelationName> {
    let plain = !name.set_of && !name.of_column && name.modifiers.is_empty();
    super::relation(&name.name).ok().filter(|_| plain)
}

/// The type of the system that a name stands for.
pub(crate) fn known(name: &TypeName) -> Result<DataType> {
    if name.set_of || name.of_column {
        return Err(unsupported(format!("the type {}", shown(name))));
    }
    let modifiers =
        modifiers(name).ok_or_else(|| EngineError::new("42601", "type modifiers must be simple constants"))?;
    let of = match (own_name(name), modifiers.as_slice()) {
        (Some("int2"), []) => DataType::Int2,
        (Some("int4"), []) => DataType::Int4,
        (Some("int8"), []) => DataType::Int8,
        (Some("float4"), []) => DataType::Float4,
        (Some("float8"), []) => DataType::Float8,
        (Some("bool"), []) => DataType::Bool,
        (Some("text"), []) => DataType::Text,
        (Some("bytea"), []) => DataType::Bytea,
        (Some("date"), []) => DataType::Date,
        (Some("uuid"), []) => DataType::Uuid,
        (Some("json"), []) => DataType::Json,
        (Some("jsonb"), []) => DataType::Jsonb,
        (Some("timestamp"), [] | [6]) => DataType::Timestamp,
        (Some("timestamptz"), [] | [6]) => DataType::Timestamptz,
        (Some("time"), [] | [6]) => DataType::Time,
        (Some("interval"), [] | [6]) if name.fields.is_none() => DataType::Interval,
        (Some("numeric"), []) => DataType::Numeric(None),
        (Some("numeric"), [_] | [_, _]) => exact(name)?,
        (Some("varchar"), []) => DataType::Varchar(0),
        (Some("varchar"), [length]) => of_length("varchar", *length)?,
        (Some("bpchar"), [length]) => of_length("char", *length)?,
        (_, []) if let Some(item) = item_name(name).and_then(|item| known(&item).ok()?.array()) => item,
        // As long as the value, and compared without its blanks: there is no such type here. char(1) would cut values.
        (Some("bpchar"), []) => {
            return Err(unsupported("bpchar without a length").with_hint("Use char(n), or text."));
        }
        _ => return Err(no_type(name)),
    };
    // How many dimensions are written, and how many items, means nothing.
    Ok(if name.dimensions.is_empty() { of } else { of.array().unwrap_or(of) })
}

/// The numbers in a type's parentheses; `None` where other things stand there.
pub(crate) fn modifiers(name: &TypeName) -> Option<Vec<i64>> {
    let number = |expr: &terrace_grammar::statement::Expr| match expr.kind {
        ExprKind::Literal(Literal::Int(value)) => Some(value),
        _ => None,
    };
    name.modifiers.iter().map(number).collect()
}

/// The items of what the catalogue calls a type of arrays: `int4` of `_int4`.
pub(crate) fn item_name(name: &TypeName) -> Option<TypeName> {
    let item = own_name(name)?.strip_prefix('_')?.to_owned();
    let mut parts = name.name.parts().to_vec();
    parts.last_mut()?.name = item;
    Some(TypeName { name: Name::new(parts), dimensions: vec![], ..name.clone() })
}

/// The name of a type that a text is, and nothing else.
pub(crate) fn type_name(text: &str) -> Option<TypeName> {
    let cast_to = |text: &str| super::statement(&format!("SELECT NULL::{text}")).ok().flatten();
    let (given, known) = (cast_to(text)?, cast_to("int4")?);
    let (Statement::Query(given), Statement::Query(known)) = (given.statement(), known.statement()) else {
        return None;
    };
    let (mut given, of) = (given.as_ref().clone(), cast_of(known)?.clone());
    let found = std::mem::replace(cast_of_mut(&mut given)?, of);
    (given == **known && !found.set_of && !found.of_column).then_some(found)
}

fn cast_of(query: &Query) -> Option<&TypeName> {
    let Body::Select(select) = &query.body else { return None };
    match &select.items.first()?.expr.kind {
        ExprKind::Cast { to, .. } => Some(to),
        _ => None,
    }
}

fn cast_of_mut(query: &mut Query) -> Option<&mut TypeName> {
    let Body::Select(select) = &mut query.body else { return None };
    match &mut select.items.first_mut()?.expr.kind {
        ExprKind::Cast { to, .. } => Some(to),
        _ => None,
    }
}

/// Whether it is `bpchar` without a length.
pub(crate) fn is_open_char(name: &TypeName) -> bool {
    own_name(name) == Some("bpchar") && name.modifiers.is_empty() && name.dimensions.is_empty()
}

/// The name of a type that is one of the system's, without the schema.
fn own_name(name: &TypeName) -> Option<&str> {
    match name.name.parts() {
        [own] => Some(&own.name),
        [schema, own] if schema.name == "pg_catalog" => Some(&own.name),
        _ => None,
    }
}

/// The type as messages show it.
fn shown(name: &TypeName) -> String {
    let own = match own_name(name) {
        Some("int4") => "integer",
        Some("int8") => "bigint",
        Some("int2") => "smallint",
        Some("float8") => "double precision",
        Some("float4") => "real",
        Some("bool") => "boolean",
        Some("varbit") => "bit varying",
        Some("timetz") => "time with time zone",
        Some("timestamptz") => "timestamp with time zone",
        Some(own) => own,
        None => return name.name.shown(),
    };
    format!("{own}{}", "[]".repeat(name.dimensions.len()))
}

/// What `numeric(50, 3)` says; `None` where that is not its form.
pub(crate) fn numeric_digits(name: &TypeName) -> Result<Option<(DataType, Option<Digits>)>> {
    if own_name(name) != Some("numeric") {
        return Ok(None);
    }
    match modifiers(name).as_deref() {
        Some([precision]) => numeric_of(*precision, 0).map(Some),
        Some([precision, scale]) => numeric_of(*precision, *scale).map(Some),
        Some([_, _, _, ..]) => Err(EngineError::new("22023", "invalid NUMERIC type modifier")),
        _ => Ok(None),
    }
}

/// A numeric whose digits the type says.
fn exact(name: &TypeName) -> Result<DataType> {
    match numeric_digits(name)? {
        Some((of, None)) => Ok(of),
        _ => {
            let error = unsupported(format!("{} of more than 38 digits here", shown(name)));
            Err(error.with_hint("Use numeric without digits."))
        }
    }
}

fn of_length(name: &str, length: i64) -> Result<DataType> {
    if length < 1 {
        // The engine's varchar of length 0 is one without a length.
        return Err(EngineError::new("22023", format!("length for type {name} must be at least 1")));
    }
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let data_type = if name == "char" { DataType::Char(length) } else { DataType::Varchar(length) };
    data_type.check().map(|()| data_type)
}

fn no_type(name: &TypeName) -> EngineError {
    let use_instead = match own_name(name) {
        Some("serial" | "serial2" | "serial4" | "serial8" | "smallserial" | "bigserial") => {
            "bigint, with keys from the client"
        }
        Some("timestamp") => "timestamp without time zone",
        Some("timestamptz") => "timestamp with time zone",
        Some("time") => "time without a precision",
        Some("interval") => "interval without fields and precision",
        Some("timetz") => "time, or timestamp with time zone",
        Some(own) if DATA_TYPES.contains(&own) => "text",
        _ => return EngineError::new("42704", format!("type \"{}\" does not exist", shown(name))),
    };
    unsupported(format!("type {}", shown(name))).with_hint(format!("Use {use_instead}."))
}

/// Types of PostgreSQL that are none here, and those that are, with modifiers that are none.
const DATA_TYPES: &[&str] = &[
    "bit",
    "bool",
    "box",
    "bpchar",
    "bytea",
    "char",
    "cid",
    "cidr",
    "circle",
    "citext",
    "date",
    "daterange",
    "float4",
    "float8",
    "hstore",
    "inet",
    "int2",
    "int2vector",
    "int4",
    "int4range",
    "int8",
    "int8range",
    "interval",
    "json",
    "jsonb",
    "jsonpath",
    "line",
    "lseg",
    "macaddr",
    "macaddr8",
    "money",
    "name",
    "numeric",
    "numrange",
    "oid",
    "oidvector",
    "path",
    "pg_lsn",
    "pg_snapshot",
    "point",
    "polygon",
    "refcursor",
    "regclass",
    "regcollation",
    "regconfig",
    "regdictionary",
    "regnamespace",
    "regoper",
    "regoperator",
    "regproc",
    "regprocedure",
    "regrole",
    "regtype",
    "text",
    "tid",
    "tsquery",
    "tsrange",
    "tstzrange",
    "tsvector",
    "txid_snapshot",
    "uuid",
    "varbit",
    "varchar",
    "xid",
    "xid8",
    "xml",
];
