//! Domains in the relations.
use super::super::system::known_type;
use super::*;
use crate::parse::qualified::shown as shown_text;
use crate::parse::shown;
use crate::parse::stored::{self, VALUE};
use crate::values::typmod;
use terrace_engine::types::Digits;
use terrace_engine::{ColumnDef, DataType};
use terrace_engine::{Domain, DomainCheck};
use terrace_storage::{FIRST_OBJECT, ObjectId};

/// The modifier of a type that keeps such digits.
pub(crate) fn digits_typmod(data_type: DataType, digits: Option<Digits>) -> Option<i32> {
    let digits = digits?.number();
    // All fields of an interval.
    Some(if data_type == DataType::Interval { 0x7fff << 16 | digits } else { digits })
}

/// A type with the digits that it keeps.
pub(crate) fn type_with_digits(data_type: DataType, digits: Option<Digits>) -> String {
    let modifier = digits_typmod(data_type, digits);
    match modifier {
        Some(modifier) => known_type(data_type.pg_oid(), Some(modifier)),
        None => data_type.to_string(),
    }
}

pub(super) fn type_row(domain: &Domain, catalog: &Catalog) -> Row {
    let base = PgType::of(domain.base);
    row! {
        oid: domain.oid, typname: &*domain.name, typnamespace: domain.space.0.0,
        typowner: catalog.owner(ObjectId(domain.oid)), typlen: base.len,
        typbyval: base.by_value, typtype: "d", typcategory: base.category, typispreferred: false,
        typisdefined: true, typdelim: ",", typelem: 0u32, typarray: 0u32, typinput: inputs::DOMAIN,
        typalign: if base.len == 8 { "d" } else { "i" }, typstorage: if base.len < 0 { "x" } else { "p" },
        typnotnull: domain.not_null, typbasetype: domain.parent.as_ref().map_or(base.oid, |parent| parent.oid),
        typtypmod: own_typmod(domain),
        typndims: i32::from(domain.base.item().is_some()), typcollation: base.collation,
        typdefaultbin: default_of(domain).map_or(V::Null, V::from),
        typdefault: default_of(domain).map_or(V::Null, V::from),
    }
}

/// A domain over another has no modifier of its own.
fn own_typmod(domain: &Domain) -> i32 {
    let own = || digits_typmod(domain.base, domain.digits).unwrap_or_else(|| typmod(domain.base));
    if domain.parent.is_some() { -1 } else { own() }
}

fn default_of(domain: &Domain) -> Option<String> {
    let sql = domain.default_sql.as_ref()?;
    let column = ColumnDef::new(VALUE, domain.base);
    shown::default(sql, &column).unwrap_or_else(|| Some(sql.clone()))
}

fn condition(domain: &Domain, check: &DomainCheck, pretty: bool) -> String {
    let column = ColumnDef::new(VALUE, domain.base);
    let shown = shown::condition(&check.sql, std::slice::from_ref(&column), pretty);
    let as_written = || if pretty { check.sql.clone() } else { format!("({})", check.sql) };
    stored::value_in_capitals(&shown.unwrap_or_else(as_written))
}

pub(super) fn constraint_rows(domain: &Domain) -> impl Iterator<Item = Row> {
    domain.checks.iter().map(|check| {
        row! {
            oid: check.oid, conname: &*check.name, connamespace: domain.space.0.0, contype: "c",
            convalidated: check.valid, conrelid: 0u32, contypid: domain.oid, confupdtype: "", confdeltype: "",
            confmatchtype: "", conislocal: true, conkey: V::Null, conbin: condition(domain, check, false),
        }
    })
}

/// The condition of an OID, if a domain's constraint has it, and what stands behind its parentheses.
pub(crate) fn condition_of(catalog: &Catalog, oid: u32, pretty: bool) -> Option<(String, &'static str)> {
    let mut all = catalog.domains().flat_map(|domain| domain.checks.iter().map(move |check| (domain, check)));
    let (domain, check) = all.find(|(_, check)| check.oid == oid)?;
    Some((condition(domain, check, pretty), if check.valid { "" } else { " NOT VALID" }))
}

/// A type, as `information_schema` describes it.
pub(super) fn measures(data_type: DataType, digits: Option<Digits>) -> Row {
    let ty = PgType::of(data_type);
    let of_user = ty.oid >= FIRST_OBJECT;
    let length = match data_type {
        DataType::Varchar(length @ 1..) | DataType::Char(length) => i32::try_from(length).ok(),
        _ => None,
    };
    // Bytes of a text: as many as PostgreSQL says where there is no length.
    let octets = match (length, data_type.is_text()) {
        (Some(length), _) => V::I4(length.saturating_mul(4)),
        (None, true) => V::I4(1 << 30),
        (None, false) => V::Null,
    };
    let (precision, radix, scale) = match data_type {
        DataType::Int2 => (V::I4(16), V::I4(2), V::I4(0)),
        DataType::Int4 => (V::I4(32), V::I4(2), V::I4(0)),
        DataType::Int8 => (V::I4(64), V::I4(2), V::I4(0)),
        DataType::Float4 => (V::I4(24), V::I4(2), V::Null),
        DataType::Float8 => (V::I4(53), V::I4(2), V::Null),
        DataType::Numeric(None) => match digits {
            Some(Digits::Numeric { precision, scale }) => (V::I4(precision.into()), V::I4(10), V::I4(scale.into())),
            _ => (V::Null, V::I4(10), V::Null),
        },
        DataType::Numeric(Some((digits, places))) => (V::I4(digits.into()), V::I4(10), V::I4(places.into())),
        _ => (V::Null, V::Null, V::Null),
    };
    let fraction = match data_type {
        DataType::Date => V::I4(0),
        DataType::Timestamp | DataType::Timestamptz | DataType::Time | DataType::Interval => {
            V::I4(digits.map_or(6, Digits::number))
        }
        _ => V::Null,
    };
    row! {
        data_type: match data_type.item() {
            Some(_) => "ARRAY",
            None if of_user => "USER-DEFINED",
            None => ty.sql_name,
        },
        character_maximum_length: length.map_or(V::Null, V::I4), character_octet_length: octets,
        numeric_precision: precision, numeric_precision_radix: radix, numeric_scale: scale,
        datetime_precision: fraction,
    }
}

/// The type of a column or of a domain: one that is over another domain has that.
pub(super) fn type_of(
    catalog: &Catalog,
    parent: Option<&Domain>,
    (data_type, digits): (DataType, Option<Digits>),
) -> Row {
    if let Some(parent) = parent {
        let (schema, name) = (catalog.space_name(parent.space), parent.name.as_str());
        return row! {data_type: "USER-DEFINED", udt_schema: schema, udt_name: name};
    }
    let ty = PgType::of(data_type);
    let mut row = measures(data_type, digits);
    row.extend(row! {udt_schema: super::rows::schema_of_type(catalog, ty.oid), udt_name: ty.name});
    row
}

/// Of `information_schema.domains`.
pub(super) fn standard(catalog: &Arc<Catalog>, domain: &Domain) -> Row {
    let mut row = row! {
        domain_catalog: DATABASE, domain_schema: catalog.space_name(domain.space), domain_name: &*domain.name,
        domain_default: default_of(domain).map_or(V::Null, |text| V::from(shown_text(&text, catalog))),
        udt_catalog: DATABASE, dtd_identifier: "1",
    };
    row.extend(type_of(catalog, domain.parent.as_deref(), (domain.base, domain.digits)));
    if let Some(shown) =
        row.iter_mut().find(|(name, value)| *name == "data_type" && matches!(value, V::T(t) if t == "ARRAY"))
    {
        let of_system = domain.base.pg_oid() < FIRST_OBJECT;
        shown.1 = V::from(if of_system { PgType::of(domain.base).sql_name } else { "USER-DEFINED" });
    }
    row
}

/// Of `information_schema.domain_constraints`.
pub(super) fn standard_constraints(catalog: &Catalog, domain: &Domain) -> impl Iterator<Item = Row> {
    domain.checks.iter().map(|check| {
        row! {
            constraint_catalog: DATABASE, constraint_schema: catalog.space_name(domain.space),
            constraint_name: &*check.name,
            domain_catalog: DATABASE, domain_schema: catalog.space_name(domain.space),
            domain_name: &*domain.name, is_deferrable: "NO",
            initially_deferred: "NO",
        }
    })
}
