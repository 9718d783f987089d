//! The catalogue: tables, columns, indexes, kept in tables of its own and cached as an immutable snapshot.
//!
//! 1. A [`Catalog`] never changes; a transaction that defines something makes a new one, seen by itself alone until it
//!    commits.
//! 2. Definitions lie in the system tables ([`system`]) as rows with versions and undo like any other: DDL is
//!    transactional and recovered by nothing of its own.
//! 3. Transactions that define something run one after the other (they hold the lock of definitions, `Txn::lock_ddl`,
//!    to their end), so the newest version of every system row, committed or not, is what the only transaction that
//!    defines anything sees.
//! 4. Tables, indexes and views of a schema share one name space, as in PostgreSQL; so do its types ([`names`]). Object
//!    ids are never reused.
use crate::types::{DataType, Datum, Digits};
use access::{Access, Defaults, Member};
use comments::Comments;
use domains::{Domain, Domains};
use enums::OwnTypes;
use extras::Extras;
use foreign::ForeignKey;
use names::{Named, Placed, Space};
use path::Path;
use roles::{FIRST_ROLE, Role};
use schemas::Schemas;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use temporary::OnCommit;
use terrace_storage::btree::BTree;
use terrace_storage::{DATA, ObjectId, TxnId};
use views::View;

pub mod access;
pub mod comments;
pub mod domains;
pub mod enums;
pub mod extras;
pub mod foreign;
pub(crate) mod load;
pub mod names;
pub mod path;
pub mod roles;
pub mod schemas;
pub mod system;
pub mod temporary;
#[cfg(test)]
mod tests;
pub mod views;

pub(crate) const MAX_COLUMNS: usize = 1600;
/// Columns of one index, as in PostgreSQL.
pub(crate) const MAX_KEY_COLUMNS: usize = 32;
/// Bytes of a name; longer ones are truncated as PostgreSQL does.
pub(crate) const MAX_NAME: usize = 63;

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    pub name: String,
    pub data_type: DataType,
    pub not_null: bool,
    /// DEFAULT as SQL text (the sql room evaluates it); `None` = NULL.
    pub default_sql: Option<String>,
    /// GENERATED ALWAYS AS ... STORED: the expression, as SQL text. Such a column has no default.
    pub generated: Option<String>,
    /// Value of rows written before the column was added.
    pub missing: Datum,
    pub dropped: bool,
    /// Whose conditions values keep; `data_type` is its base.
    pub domain: Option<Arc<Domain>>,
    /// That values keep beyond what the type says.
    pub digits: Option<Digits>,
}

impl ColumnDef {
    /// A nullable column without default.
    pub fn new(name: &str, data_type: DataType) -> ColumnDef {
        ColumnDef {
            name: name.into(),
            data_type,
            not_null: false,
            default_sql: None,
            generated: None,
            missing: Datum::Null,
            dropped: false,
            domain: None,
            digits: None,
        }
    }
    pub fn not_null(mut self) -> ColumnDef {
        self.not_null = true;
        self
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    pub oid: ObjectId,
    pub name: String,
    pub table: ObjectId,
    /// Column positions, in key order. Ascending, NULLs last. See [`extras`] for what else may be among them.
    pub columns: Vec<usize>,
    pub unique: bool,
    pub primary: bool,
    pub root: u32,
    /// Snapshots that do not see this transaction must not use the index (it lacks their row versions).
    pub created_by: TxnId,
    pub extras: Option<Box<Extras>>,
}

impl Index {
    pub(crate) fn tree(&self) -> BTree {
        BTree { object: self.oid, space: DATA, root: self.root }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub oid: ObjectId,
    pub name: String,
    pub columns: Vec<ColumnDef>,
    /// Primary key first.
    pub indexes: Vec<Arc<Index>>,
    /// CHECK constraints, by name.
    pub checks: Vec<Check>,
    /// Oldest first: the order in which they are checked.
    pub foreign_keys: Vec<Arc<ForeignKey>>,
    /// Those of any table that refer to this one, oldest first.
    pub referenced_by: Vec<Arc<ForeignKey>>,
    /// What ANALYZE found.
    pub statistics: Option<Statistics>,
    /// Its schema, or its session's space.
    pub space: Space,
    /// `None`: it is permanent.
    pub temporary: Option<OnCommit>,
    pub(crate) layout: Layout,
}

/// A condition that is not false for any row: SQL text (the sql room evaluates it) over columns by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    pub sql: String,
}

/// Estimates, as of an ANALYZE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Rows not deleted.
    pub rows: u64,
    /// Pages of the heap.
    pub pages: u64,
}

/// Where a row keeps the columns: see [`crate::row`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    /// Offset of each column's bytes in the fixed part, and one more: the whole's length.
    pub(crate) offsets: Vec<u32>,
    /// For each column the nearest text column before it.
    pub(crate) text_before: Vec<Option<u32>>,
}

#[derive(Clone, Debug)]
pub struct TableSpec {
    pub name: String,
    pub columns: Vec<ColumnDef>,
    /// Unique constraints and primary key.
    pub indexes: Vec<IndexSpec>,
}

#[derive(Clone, Debug)]
pub struct IndexSpec {
    pub name: String,
    pub columns: Vec<usize>,
    pub unique: bool,
    pub primary: bool,
    pub extras: Option<Box<Extras>>,
}

/// All tables as one transaction sees them.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    by_oid: Arc<BTreeMap<ObjectId, Arc<Table>>>,
    /// Tables and indexes.
    named: Arc<Placed<Named>>,
    /// The space of the session that sees this catalogue, if it has temporary tables.
    own: Option<Space>,
    /// Where that looks names up.
    path: Arc<Path>,
    schemas: Arc<Schemas>,
    /// Those that are stored.
    roles: Arc<BTreeMap<String, Role>>,
    views: Arc<Placed<Arc<View>>>,
    pub(crate) comments: Arc<Comments>,
    /// Enums and composite types.
    enums: Arc<OwnTypes>,
    access: Arc<BTreeMap<ObjectId, Access>>,
    members: Arc<BTreeSet<Member>>,
    pub(crate) defaults: Arc<Defaults>,
    domains: Arc<Domains>,
    version: u64,
}

impl Table {
    /// Sorts the indexes: primary key first, then by age.
    pub fn new(oid: ObjectId, name: String, columns: Vec<ColumnDef>, mut indexes: Vec<Arc<Index>>) -> Table {
        indexes.sort_by_key(|i| (!i.primary, i.oid));
        let mut layout = Layout { offsets: vec![0], text_before: Vec::with_capacity(columns.len()) };
        let (mut offset, mut text) = (0, None);
        for (i, c) in columns.iter().enumerate() {
            layout.text_before.push(text);
            offset += crate::row::fixed_width(c.data_type);
            layout.offsets.push(offset);
            if c.data_type.is_variable() {
                text = Some(i as u32);
            }
        }
        Table {
            oid,
            name,
            columns,
            indexes,
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            referenced_by: Vec::new(),
            statistics: None,
            space: Space::PUBLIC,
            temporary: None,
            layout,
        }
    }
    /// The same table with other columns and indexes.
    pub(crate) fn redefined(&self, columns: Vec<ColumnDef>, indexes: Vec<Arc<Index>>) -> Table {
        let Table { layout, columns, indexes, .. } = Table::new(self.oid, self.name.clone(), columns, indexes);
        Table { layout, columns, indexes, ..self.clone() }
    }
    /// Whether it refers to a table, or is referred to.
    pub fn has_foreign_keys(&self) -> bool {
        !(self.foreign_keys.is_empty() && self.referenced_by.is_empty())
    }
    /// Position of a column by its (folded) name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| !c.dropped && c.name == name)
    }
    pub fn primary_key(&self) -> Option<&Arc<Index>> {
        self.indexes.first().filter(|i| i.primary)
    }
    pub fn index(&self, oid: ObjectId) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|i| i.oid == oid)
    }
}

impl Catalog {
    /// A table, system tables included.
    pub fn table_by_oid(&self, oid: ObjectId) -> Option<&Arc<Table>> {
        system::table(oid).or_else(|| self.by_oid.get(&oid))
    }
    /// User tables, oldest first.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.by_oid.values()
    }
    /// Changes whenever any definition changes: cached plans compare it.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A catalogue of these tables.
    pub(crate) fn of(tables: impl IntoIterator<Item = Arc<Table>>) -> Catalog {
        let (mut by_oid, mut named) = (BTreeMap::new(), Placed::default());
        for t in tables {
            let before = by_oid.insert(t.oid, t);
            assert!(before.is_none(), "two tables with one object id");
        }
        foreign::connect(&mut by_oid);
        for t in by_oid.values() {
            for i in &t.indexes {
                named.insert(t.space, &i.name, Named::Index(i.clone()));
            }
            named.insert(t.space, &t.name, Named::Table(t.clone()));
        }
        Catalog { by_oid: Arc::new(by_oid), named: Arc::new(named), version: next_version(), ..Catalog::default() }
    }
    /// This catalogue with a table added or replaced.
    pub(crate) fn with(&self, table: Arc<Table>) -> Catalog {
        let oid = table.oid;
        self.with_tables(self.by_oid.values().filter(|t| t.oid != oid).cloned().chain([table]).collect())
    }
    pub(crate) fn without(&self, table: ObjectId) -> Catalog {
        let without = self.with_tables(self.by_oid.values().filter(|t| t.oid != table).cloned().collect());
        if self.access.contains_key(&table) { without.with_access_to(table, None) } else { without }
    }
    /// This catalogue with these tables instead of its own.
    pub(crate) fn with_tables(&self, tables: Vec<Arc<Table>>) -> Catalog {
        Catalog {
            schemas: self.schemas.clone(),
            roles: self.roles.clone(),
            views: self.views.clone(),
            comments: self.comments.clone(),
            enums: self.enums.clone(),
            access: self.access.clone(),
            members: self.members.clone(),
            defaults: self.defaults.clone(),
            domains: self.domains.clone(),
            ..Catalog::of(tables)
        }
    }

    pub fn role(&self, name: &str) -> Option<Role> {
        let first = || (name == FIRST_ROLE).then(Role::first);
        let of_system = || Role::of_system().find(|role| role.name == name);
        self.roles.get(name).cloned().or_else(first).or_else(of_system)
    }
    /// Those that are no roles of the system, by name.
    pub fn roles(&self) -> impl Iterator<Item = Role> {
        let first = (!self.roles.contains_key(FIRST_ROLE)).then(Role::first);
        let mut all: Vec<Role> = self.roles.values().cloned().chain(first).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.into_iter()
    }
    pub(crate) fn with_roles(&self, roles: BTreeMap<String, Role>) -> Catalog {
        Catalog { roles: Arc::new(roles), version: next_version(), ..self.clone() }
    }
    /// This catalogue with a role added or replaced.
    pub(crate) fn with_role(&self, role: Role) -> Catalog {
        let mut roles = BTreeMap::clone(&self.roles);
        roles.insert(role.name.clone(), role);
        self.with_roles(roles)
    }
    pub(crate) fn without_role(&self, name: &str) -> Catalog {
        let mut roles = BTreeMap::clone(&self.roles);
        roles.remove(name);
        self.with_roles(roles)
    }
}

/// Versions are unique in the process, so that those of two transactions' private catalogues never meet.
fn next_version() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A name as it is stored: cut to [`MAX_NAME`] bytes at a character boundary.
pub(crate) fn truncate_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME)]
}
