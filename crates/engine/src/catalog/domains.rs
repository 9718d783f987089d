//! Domains, as rows of a system table (*format*):
//!
//! | table | columns |
//! |---|---|
//! | 13 domains | oid, name, base (the type's oid), length and digits (as a column's), not_null, default_sql, names, conditions, oids, valid (of the constraints), parent (the oid of the domain that it is over; a row without has no such column) |
//!
//! 1. Types of a schema have one name space, which domains share with other types; no relation has a type's name.
//! 2. A column of a domain is stored as one of its base type. It has the domain's definition: one that is altered is
//!    replaced in all tables ([`Catalog::with_domain`]).
//! 3. A condition is SQL text over VALUE. Who makes a value of the domain evaluates it: the SQL front end.
//! 4. A domain over another has its base, and the conditions of all that it is over hold of it, too. It has their
//!    definitions: where one is replaced, so are those over it.
use super::names::{Placed, Space};
use super::system::{bad, object};
use super::temporary::{Placements, space_of};
use super::{Catalog, ColumnDef, Table, enums, next_version};
use crate::error::Result;
use crate::types::{Array, DataType, Datum, Digits, Items};
use std::sync::{Arc, LazyLock};
use terrace_storage::ObjectId;

pub(crate) const DOMAINS: ObjectId = ObjectId(13);

#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    pub oid: u32,
    pub space: Space,
    pub name: String,
    pub base: DataType,
    /// That values keep beyond what the base says.
    pub digits: Option<Digits>,
    pub not_null: bool,
    pub default_sql: Option<String>,
    /// By name. See [`Domain::all_checks`].
    pub checks: Vec<DomainCheck>,
    /// That it is over.
    pub parent: Option<Arc<Domain>>,
}

impl Domain {
    /// This one, and those that it is over.
    pub fn line(&self) -> impl Iterator<Item = &Domain> {
        std::iter::successors(Some(self), |domain| domain.parent.as_deref())
    }

    /// The conditions of its values, those of domains that it is over first.
    pub fn all_checks(&self) -> Vec<&DomainCheck> {
        let mut line: Vec<&Domain> = self.line().collect();
        line.reverse();
        line.into_iter().flat_map(|domain| &domain.checks).collect()
    }

    /// Whether it takes no NULL.
    pub fn takes_no_null(&self) -> bool {
        self.line().any(|domain| domain.not_null)
    }

    /// Whether it is this domain, or over it.
    pub fn is_over(&self, oid: u32) -> bool {
        self.line().any(|domain| domain.oid == oid)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct DomainCheck {
    pub oid: u32,
    pub name: String,
    /// A condition over VALUE.
    pub sql: String,
    /// Whether values from before the constraint keep it.
    pub valid: bool,
}

pub(crate) type Domains = Placed<Arc<Domain>>;

static DEFINITION: LazyLock<Arc<Table>> = LazyLock::new(|| {
    let of = |item: DataType| item.array().expect("these are no arrays");
    let columns = [
        ("oid", DataType::Int8),
        ("name", DataType::Text),
        ("base", DataType::Int8),
        ("length", DataType::Int8),
        ("digits", DataType::Int4),
        ("not_null", DataType::Bool),
        ("default_sql", DataType::Text),
        ("names", of(DataType::Text)),
        ("conditions", of(DataType::Text)),
        ("oids", of(DataType::Int8)),
        ("valid", of(DataType::Bool)),
        ("parent", DataType::Int8),
    ];
    let columns = columns.iter().map(|(name, of)| ColumnDef::new(name, *of)).collect();
    Arc::new(Table::new(DOMAINS, "domains".into(), columns, Vec::new()))
});

pub(crate) fn table() -> &'static Arc<Table> {
    &DEFINITION
}

pub(crate) fn row(domain: &Domain) -> Result<Vec<Datum>> {
    let array = |item: DataType, of: fn(&DomainCheck) -> Datum| {
        let values: Vec<Datum> = domain.checks.iter().map(of).collect();
        Array::new(Items::of(item).expect("these are no arrays"), &values).map(Datum::Array)
    };
    let mut row = vec![
        Datum::Int8(domain.oid.into()),
        Datum::text(domain.name.as_str()),
        Datum::Int8(domain.base.pg_oid().into()),
        Datum::Int8(enums::stored_length(domain.base).into()),
        digits_datum(domain.digits),
        Datum::Bool(domain.not_null),
        domain.default_sql.as_deref().map_or(Datum::Null, Datum::text),
        array(DataType::Text, |check| Datum::text(check.name.as_str()))?,
        array(DataType::Text, |check| Datum::text(check.sql.as_str()))?,
        array(DataType::Int8, |check| Datum::Int8(check.oid.into()))?,
        array(DataType::Bool, |check| Datum::Bool(check.valid))?,
    ];
    row.extend(domain.parent.as_ref().map(|parent| Datum::Int8(parent.oid.into())));
    Ok(row)
}

pub(super) fn read_all(rows: &[Vec<Datum>], known: &enums::OwnTypes, places: &Placements) -> Result<Domains> {
    let mut waiting = rows.iter().map(|row| read(row, known, places)).collect::<Result<Vec<_>>>()?;
    let mut all = Domains::default();
    // One comes behind those that it is over (invariant 4).
    while !waiting.is_empty() {
        let before = waiting.len();
        let mut later = vec![];
        for (domain, parent) in waiting {
            let found = parent.map(|oid| all.values().find(|known| known.oid == oid).cloned());
            match found {
                Some(None) => later.push((domain, parent)),
                found => {
                    let domain = Domain { parent: found.flatten(), ..domain };
                    all.insert(domain.space, &domain.name.clone(), Arc::new(domain));
                }
            }
        }
        if later.len() == before {
            return Err(bad("domains"));
        }
        waiting = later;
    }
    Ok(all)
}

/// A domain without the one that it is over, and the oid of that.
fn read(row: &[Datum], known: &enums::OwnTypes, places: &Placements) -> Result<(Domain, Option<u32>)> {
    let [
        oid,
        Datum::Text(name),
        base,
        length,
        digits,
        Datum::Bool(not_null),
        default,
        Datum::Array(names),
        Datum::Array(conditions),
        Datum::Array(oids),
        Datum::Array(valid),
        parent @ ..,
    ] = row
    else {
        return Err(bad("domains"));
    };
    let values = |array: &Array| array.view().iter().map(|item| item.to_datum()).collect::<Vec<Datum>>();
    let read = || {
        let (base, length) = (object(base)?.0, object(length)?.0);
        let base = DataType::from_pg_oid(base, length).or_else(|| enums::type_of(known, base))?;
        let (names, conditions, oids, valid) = (values(names), values(conditions), values(oids), values(valid));
        let mut checks = vec![];
        for (((name, sql), oid), valid) in names.iter().zip(&conditions).zip(&oids).zip(&valid) {
            let (Datum::Text(name), Datum::Text(sql), Datum::Bool(valid)) = (name, sql, valid) else { return None };
            checks.push(DomainCheck {
                oid: object(oid)?.0,
                name: name.to_string(),
                sql: sql.to_string(),
                valid: *valid,
            });
        }
        let default_sql = match default {
            Datum::Text(text) => Some(text.to_string()),
            _ => None,
        };
        let digits = read_digits(digits)?;
        let (oid, name) = (object(oid)?.0, name.to_string());
        let parent = match parent {
            [] | [Datum::Null] => None,
            [parent] => Some(object(parent)?.0),
            _ => return None,
        };
        let domain = Domain {
            oid,
            space: space_of(places, ObjectId(oid)),
            name,
            base,
            digits,
            not_null: *not_null,
            default_sql,
            checks,
            parent: None,
        };
        (domain.checks.len() == names.len()).then_some((domain, parent))
    };
    read().ok_or_else(|| bad("domains"))
}

/// Digits, as a row has them.
pub(super) fn digits_datum(digits: Option<Digits>) -> Datum {
    digits.map_or(Datum::Null, |digits| Datum::Int4(digits.number()))
}

/// The same back; `None`: it makes no sense.
pub(super) fn read_digits(digits: &Datum) -> Option<Option<Digits>> {
    match digits {
        Datum::Null => Some(None),
        Datum::Int4(number) => Digits::of_number(*number).map(Some),
        _ => None,
    }
}

impl Catalog {
    /// By schema, then by name.
    pub fn domains(&self) -> impl Iterator<Item = &Arc<Domain>> {
        self.domains.values()
    }

    pub fn domain_of_oid(&self, oid: u32) -> Option<&Arc<Domain>> {
        self.domains.values().find(|domain| domain.oid == oid)
    }

    pub(crate) fn with_domains(&self, domains: Domains) -> Catalog {
        Catalog { domains: Arc::new(domains), version: next_version(), ..self.clone() }
    }

    /// This catalogue with a domain added, or one of the same oid replaced (invariant 2).
    pub(crate) fn with_domain(&self, domain: Domain) -> Catalog {
        let mut domains = Domains::clone(&self.domains);
        let mut changed = vec![Arc::new(domain)];
        let mut next = 0;
        // Those over it, too (invariant 4).
        while let Some(own) = changed.get(next).cloned() {
            next += 1;
            domains.take(|old| old.oid == own.oid);
            domains.insert(own.space, &own.name, own.clone());
            let over = |domain: &&Arc<Domain>| domain.parent.as_ref().is_some_and(|parent| parent.oid == own.oid);
            let renewed = |domain: &Arc<Domain>| Domain { parent: Some(own.clone()), ..Domain::clone(domain) };
            changed.extend(domains.values().filter(over).map(|domain| Arc::new(renewed(domain))));
        }
        let catalog = self.with_domains(domains);
        let new_of = |column: &ColumnDef| {
            let old = column.domain.as_ref()?;
            changed.iter().find(|own| own.oid == old.oid).cloned()
        };
        let is_of = |column: &ColumnDef| new_of(column).is_some();
        if !self.by_oid.values().any(|table| table.columns.iter().any(is_of)) {
            return catalog;
        }
        let new = |column: &ColumnDef| match new_of(column) {
            Some(domain) => ColumnDef { domain: Some(domain), ..column.clone() },
            None => column.clone(),
        };
        let tables = catalog.by_oid.values().map(|table| match table.columns.iter().any(is_of) {
            true => Arc::new(table.redefined(table.columns.iter().map(new).collect(), table.indexes.clone())),
            false => table.clone(),
        });
        catalog.with_tables(tables.collect())
    }

    pub(crate) fn without_domain(&self, oid: u32) -> Catalog {
        let mut domains = Domains::clone(&self.domains);
        domains.take(|own| own.oid == oid);
        self.with_domains(domains)
    }
}

impl ColumnDef {
    /// Its own default, or its domain's. A generated column has none.
    pub fn default(&self) -> Option<&str> {
        let of_domain = || self.domain.as_ref().and_then(|domain| domain.default_sql.as_deref());
        self.default_sql.as_deref().or_else(of_domain).filter(|_| self.generated.is_none())
    }
}

impl Table {
    /// Whether rows are stored as they are made: no constraint, no domain, no digits, no computed or generated column.
    pub fn is_plain(&self) -> bool {
        self.checks.is_empty()
            && self.computed().next().is_none()
            && self.generated().next().is_none()
            && !self.columns.iter().any(|column| column.domain.is_some() || column.digits.is_some())
    }
}
