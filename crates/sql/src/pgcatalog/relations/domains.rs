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
use terrace_storage::ObjectId;

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

/// Of `information_schema.domains`.
pub(super) fn standard(catalog: &Arc<Catalog>, domain: &Domain) -> Row {
    let base = PgType::of(domain.base);
    row! {
        domain_catalog: DATABASE, domain_schema: catalog.space_name(domain.space), domain_name: &*domain.name,
        data_type: base.sql_name,
        domain_default: default_of(domain).map_or(V::Null, |text| V::from(shown_text(&text, catalog))),
        udt_catalog: DATABASE, udt_schema: super::rows::schema_of_type(catalog, base.oid), udt_name: base.name,
        dtd_identifier: "1",
    }
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
