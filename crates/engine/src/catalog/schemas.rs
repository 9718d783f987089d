//! Schemas: name spaces that users make, as rows of a system table (*format*):
//!
//! | table | columns |
//! |---|---|
//! | 14 schemas | oid, name (NULL: it is gone) |
//!
//! What is in a schema other than `public` has a row in table 10 ([`super::temporary`]).
//!
//! 1. The schema `public` is there where the table has no row of it. It has one once it is renamed, or dropped: its
//!    number stays known, because what has no row in table 10 is in it.
//! 2. A schema that is dropped has nothing in it.
//! 3. A database of before has no rows here: it has the schema `public` alone.
use super::names::Space;
use super::system::{bad, object};
use super::{Catalog, ColumnDef, Table, next_version};
use crate::error::{EngineError, Result};
use crate::types::{DataType, Datum};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use terrace_storage::ObjectId;

pub(crate) const SCHEMAS: ObjectId = ObjectId(14);

/// By name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Schemas(BTreeMap<String, Space>);

impl Default for Schemas {
    fn default() -> Schemas {
        Schemas(BTreeMap::from([("public".to_owned(), Space::PUBLIC)]))
    }
}

static DEFINITION: LazyLock<Arc<Table>> = LazyLock::new(|| {
    let columns = [("oid", DataType::Int8), ("name", DataType::Text)];
    let columns = columns.iter().map(|(name, of)| ColumnDef::new(name, *of)).collect();
    Arc::new(Table::new(SCHEMAS, "schemas".into(), columns, Vec::new()))
});

pub(crate) fn table() -> &'static Arc<Table> {
    &DEFINITION
}

pub(crate) fn row(space: Space, name: Option<&str>) -> Vec<Datum> {
    vec![Datum::Int8(space.0.0.into()), name.map_or(Datum::Null, Datum::text)]
}

/// What keeps programs away that know no schemas: they would take all relations for those of `public`.
pub(crate) fn note_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("schemas"), Datum::text("")]
}

pub(crate) fn read_all(rows: &[Vec<Datum>]) -> Result<Schemas> {
    let mut all = Schemas::default().0;
    for row in rows {
        let (space, name) = match row.as_slice() {
            [oid, Datum::Null] => (object(oid), None),
            [oid, Datum::Text(name)] => (object(oid), Some(name.to_string())),
            _ => (None, None),
        };
        let space = Space(space.ok_or_else(|| bad("schemas"))?);
        all.retain(|_, known| *known != space);
        if let Some(name) = name {
            all.insert(name, space);
        }
    }
    Ok(Schemas(all))
}

impl Catalog {
    pub fn schema(&self, name: &str) -> Option<Space> {
        self.schemas.0.get(name).copied()
    }

    /// By name.
    pub fn schemas(&self) -> impl Iterator<Item = (&str, Space)> {
        self.schemas.0.iter().map(|(name, space)| (name.as_str(), *space))
    }

    pub fn is_schema(&self, space: Space) -> bool {
        self.schemas.0.values().any(|known| *known == space)
    }

    /// Whether nothing is in it.
    pub fn is_empty_schema(&self, space: Space) -> bool {
        !(self.named.has(space) || self.views.has(space) || self.enums.has(space) || self.domains.has(space))
    }

    /// The name of a space.
    pub fn space_name(&self, space: Space) -> String {
        let name = self.schemas().find(|(_, known)| *known == space).map(|(name, _)| name.to_owned());
        name.unwrap_or_else(|| space.to_string())
    }

    pub(crate) fn with_schemas(&self, schemas: Schemas) -> Catalog {
        Catalog { schemas: Arc::new(schemas), version: next_version(), ..self.clone() }
    }

    /// This catalogue with a schema added or renamed; `None`: without it.
    pub(crate) fn with_schema(&self, space: Space, name: Option<&str>) -> Catalog {
        let mut schemas = self.schemas.0.clone();
        schemas.retain(|_, known| *known != space);
        schemas.extend(name.map(|name| (name.to_owned(), space)));
        self.with_schemas(Schemas(schemas))
    }

    /// 3F000
    pub fn require_schema(&self, name: &str) -> Result<Space> {
        let undefined = || EngineError::new("3F000", format!("schema \"{name}\" does not exist"));
        self.schema(name).ok_or_else(undefined)
    }
}
