//! `pg_catalog` and `information_schema`: what psql and drivers ask a PostgreSQL server about itself, answered from the
//! engine's [`Catalog`]. Nothing is stored: a relation is built from the catalogue each time a statement that reads it
//! is planned.
//!
//! The binder finds relations through [`relation`] and functions through [`function`].
//!
//! 1. A relation holds only what is so: of objects Terrace does not have (functions, triggers, policies) it has no
//!    rows.
//! 2. An object's OID is the engine's `ObjectId`; system rows have PostgreSQL's own, fixed OIDs.
//!
//! Source: PostgreSQL 15 documentation, chapter 53 (System Catalogs); queries as `psql -E` shows them.
mod functions;
mod relations;
mod system;

pub use functions::{function, oid_of_text};

pub use crate::values::array_oid;
pub use system::{data_type_of_oid, item_oid};

use datafusion::catalog::TableProvider;
use datafusion::error::Result;
use std::sync::Arc;
use terrace_engine::{Catalog, Table};

/// The one database and the one role there are.
pub const DATABASE: &str = system::DATABASE;
pub const ROLE: &str = system::OWNER;

/// What the functions about the session answer.
#[derive(Clone, Debug, Default)]
pub struct SessionInfo {
    pub user: String,
    pub database: String,
    /// As BackendKeyData tells the client.
    pub backend_pid: i32,
    /// What views of what goes on look at; `None`: there are none.
    pub(crate) system: Option<System>,
}

/// A running database, for views of what goes on in it.
#[derive(Clone)]
pub(crate) struct System {
    pub(crate) engine: terrace_engine::Database,
    pub(crate) observed: Arc<crate::observe::Observed>,
    /// Who carries out ALTER SYSTEM, if anybody does.
    pub(crate) server: Arc<std::sync::OnceLock<Arc<dyn crate::settings::SystemSettings>>>,
    /// The session's.
    pub(crate) settings: Arc<parking_lot::Mutex<crate::settings::Settings>>,
    pub(crate) advisory: Arc<terrace_engine::advisory::Advisory>,
    pub(crate) notices: crate::transaction::Notices,
    pub(crate) voice: Arc<crate::notify::Voice>,
    /// The session's transaction.
    pub(crate) cell: crate::transaction::TxnCell,
    /// The session's, by name.
    pub(crate) prepared: Arc<parking_lot::Mutex<std::collections::BTreeMap<String, PreparedStatement>>>,
    /// What `random()` takes its numbers from, once it was called.
    pub(crate) random: Arc<parking_lot::Mutex<Option<crate::functions::random::Random>>>,
}

/// A prepared statement, as `pg_prepared_statements` shows it.
pub(crate) struct PreparedStatement {
    /// What the client sent.
    pub(crate) text: Arc<str>,
    pub(crate) parameters: Vec<terrace_engine::DataType>,
    pub(crate) by_prepare: bool,
    /// Microseconds since 1970.
    pub(crate) at: i64,
}

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a running database")
    }
}

pub(crate) use relations::own::AUTHID_OID;

pub(crate) use crate::parse::is_system_schema as is_schema;

/// The schema of a table, as it is called.
pub(crate) fn schema_of_table(catalog: &Catalog, table: &Table) -> String {
    catalog.space_name(table.space)
}

/// The relation of that name.
pub(crate) fn relation(
    schema: &str,
    name: &str,
    catalog: &Arc<Catalog>,
    info: &SessionInfo,
) -> Result<Option<Arc<dyn TableProvider>>> {
    relations::table(catalog, info.system.as_ref(), schema, name)
}

pub(crate) use functions::{FORMAT_OF_ITEMS, constraint_definition};
pub(crate) use relations::domains::type_with_digits;
pub(crate) use relations::is_of_type;
pub(crate) use relations::procedures;

/// Whether a relation of `pg_catalog` never has rows.
pub(crate) fn is_always_empty(name: &str) -> bool {
    relations::is_always_empty(name)
}
