//! Definitions change: tables and indexes made and dropped, inside a transaction like any other change.
//!
//! Every statement here takes the lock of definitions first, so the catalogue it works on is the newest and stays so.
//! It may fail half-way: like every statement it must then be rolled back to its savepoint.
//!
//! 1. An object is noted as created *before* its first page, and as dropped instead of being freed: a rollback frees
//!    what was created, purge what a committed transaction dropped.
//! 2. CREATE INDEX enters the newest live versions alone. Nobody else writes meanwhile (Share lock), and snapshots that
//!    could see older versions do not use the index (`Index::created_by`).
//! 3. Keys of the rows there are sorted in memory before the tree is built: about the keys' bytes and 32 a row.
use crate::catalog::foreign::{FOREIGN_KEYS, ForeignKey, needed};
use crate::catalog::load::{NewestRow, newest_rows};
use crate::catalog::names::{Placing, Space};
use crate::catalog::temporary::TEMPORARY_TABLES;
use crate::catalog::{
    Catalog, ColumnDef, Index, IndexSpec, MAX_COLUMNS, MAX_KEY_COLUMNS, Table, TableSpec, system, truncate_name,
};
use crate::error::{EngineError, Result};
use crate::key;
use crate::locks::LockMode;
use crate::row::RowView;
use crate::txn::{Txn, UpdateOutcome};
use crate::types::{DataType, Datum};
use std::sync::Arc;
use terrace_storage::btree::BTree;
use terrace_storage::{DATA, ObjectId};

mod access;
mod alter;
mod analyze;
mod comments;
mod domains;
pub mod enums;
mod foreign;
mod roles;
mod schemas;
mod temporary;
#[cfg(test)]
mod tests;
mod views;

pub use alter::NewConstraint;

impl Txn {
    /// 42P07, 42701, 54011, 42P16, 42703.
    pub async fn create_table(&mut self, spec: TableSpec) -> Result<Arc<Table>> {
        self.create_table_in(spec, Placing::In(Space::PUBLIC)).await
    }

    /// As `create_table`, in a schema, or of a temporary table. 3F000 where the schema has gone.
    pub async fn create_table_in(&mut self, spec: TableSpec, placing: Placing) -> Result<Arc<Table>> {
        let spec = checked_table(spec)?;
        self.lock_ddl().await?;
        let (space, temporary) = match placing {
            Placing::In(space) => (space, None),
            Placing::Temporary(on_commit) => (self.own_space()?, Some(on_commit)),
        };
        let catalog = self.catalog();
        if temporary.is_none() {
            schemas::require(&catalog, space)?;
            catalog.refuse_type(space, &spec.name)?;
        }
        for name in spec.indexes.iter().map(|i| &i.name).chain([&spec.name]) {
            if catalog.name_taken(space, name) {
                return Err(EngineError::duplicate_relation(name));
            }
        }
        let oid = self.new_object().await?;
        let mut indexes = Vec::with_capacity(spec.indexes.len());
        for index in spec.indexes {
            indexes.push(Arc::new(self.new_index(oid, index).await?));
        }
        let table = Arc::new(Table { space, temporary, ..Table::new(oid, spec.name, spec.columns, indexes) });
        self.insert_definitions(&table).await?;
        self.set_catalog(Arc::new(catalog.with(table.clone())));
        Ok(table)
    }

    async fn insert_definitions(&mut self, table: &Table) -> Result<()> {
        self.insert(system_table(system::TABLES), &system::table_row(table)).await?;
        for (i, column) in table.columns.iter().enumerate() {
            self.note_column(column).await?;
            self.insert(system_table(system::COLUMNS), &system::column_row(table.oid, i, column)).await?;
        }
        for index in &table.indexes {
            self.insert(system_table(system::INDEXES), &system::index_row(index)).await?;
        }
        for check in &table.checks {
            self.insert(system_table(system::CHECKS), &system::check_row(table.oid, check)).await?;
        }
        if let Some(placement) = table.placement() {
            self.insert_placement(table.oid, placement).await?;
        }
        for key in &table.foreign_keys {
            self.insert(system_table(FOREIGN_KEYS), &crate::catalog::foreign::row(key)).await?;
        }
        Ok(())
    }

    /// Waits for everybody who uses the table. 42P01 where it is gone by then, 2BP01 where another refers to it.
    pub async fn drop_table(&mut self, table: &Table) -> Result<()> {
        self.lock_ddl().await?;
        self.lock(table.oid, LockMode::AccessExclusive).await?;
        let catalog = self.catalog();
        let table =
            catalog.table_by_oid(table.oid).cloned().ok_or_else(|| EngineError::undefined_table(&table.name))?;
        self.refuse_noted(&table, "DROP TABLE")?;
        if let Some(key) = table.referenced_by.iter().find(|key| key.table != table.oid) {
            let name = format!("table {}", table.name);
            return Err(needed(&name, key, referring(&catalog, key), &name));
        }
        views::refuse_read(&catalog, (table.space, &table.name), None, &format!("table {}", table.name))?;
        self.drop_everything(&table).await?;
        self.set_catalog(Arc::new(catalog.without(table.oid)));
        Ok(())
    }

    /// Definitions and pages.
    async fn drop_everything(&mut self, table: &Table) -> Result<()> {
        self.delete_definitions(system::TABLES, 0, table.oid).await?;
        self.delete_definitions(system::COLUMNS, 0, table.oid).await?;
        self.delete_definitions(system::INDEXES, 1, table.oid).await?;
        self.delete_definitions(system::CHECKS, 0, table.oid).await?;
        self.delete_comments(table).await?;
        if !table.foreign_keys.is_empty() {
            self.delete_definitions(FOREIGN_KEYS, 2, table.oid).await?;
        }
        if table.placement().is_some() {
            self.delete_definitions(TEMPORARY_TABLES, 0, table.oid).await?;
        }
        self.delete_access(table.oid).await?;
        for index in &table.indexes {
            self.object_dropped(index.oid).await?;
        }
        self.object_dropped(table.oid).await
    }

    /// Waits for writers of the table. 42P01 where the table is gone by then, 42P07, 42703, 23505 on duplicates.
    /// Returns the table with its new index, whose computed columns are there and have their values.
    pub async fn create_index(&mut self, table: &Table, spec: IndexSpec) -> Result<Arc<Table>> {
        self.lock_ddl().await?;
        self.lock(table.oid, LockMode::Share).await?;
        let catalog = self.catalog();
        let table =
            catalog.table_by_oid(table.oid).cloned().ok_or_else(|| EngineError::undefined_table(&table.name))?;
        let spec = checked_index(spec, &table.name, &table.columns)?;
        if spec.primary {
            return Err(EngineError::internal("a primary key is added by add_primary_key"));
        }
        if catalog.name_taken(table.space, &spec.name) {
            return Err(EngineError::duplicate_relation(&spec.name));
        }
        let index = Arc::new(self.new_index(table.oid, spec).await?);
        self.fill_index(&table, &index).await?;
        self.insert(system_table(system::INDEXES), &system::index_row(&index)).await?;
        let indexes = table.indexes.iter().cloned().chain([index]).collect();
        let table = Arc::new(table.redefined(table.columns.clone(), indexes));
        self.set_catalog(Arc::new(catalog.with(table.clone())));
        Ok(table)
    }

    /// 42704 where it is gone, 2BP01 where it stands for a constraint.
    pub async fn drop_index(&mut self, index: &Index) -> Result<()> {
        self.lock_ddl().await?;
        self.lock(index.table, LockMode::AccessExclusive).await?;
        let catalog = self.catalog();
        let gone = || EngineError::undefined_index(&index.name);
        let table = catalog.table_by_oid(index.table).ok_or_else(gone)?;
        let index = table.index(index.oid).ok_or_else(gone)?;
        if index.is_constraint() {
            let (i, t) = (&index.name, &table.name);
            return Err(EngineError::new(
                "2BP01",
                format!("cannot drop index {i} because constraint {i} on table {t} requires it"),
            ));
        }
        refuse_needed_index(&catalog, table, index, &format!("index {}", index.name))?;
        self.delete_definitions(system::INDEXES, 0, index.oid).await?;
        self.object_dropped(index.oid).await?;
        let indexes = table.indexes.iter().filter(|i| i.oid != index.oid).cloned().collect();
        let table = table.redefined(table.columns.clone(), indexes);
        self.set_catalog(Arc::new(catalog.with(Arc::new(table))));
        Ok(())
    }

    /// An id that nothing has: that of the schema public is taken from the beginning.
    fn next_object(&self) -> ObjectId {
        let ids = std::iter::repeat_with(|| self.store().next_object());
        ids.into_iter().find(|id| *id != Space::PUBLIC.0).expect("ids do not end")
    }

    async fn new_object(&mut self) -> Result<ObjectId> {
        let oid = self.next_object();
        assert!(oid.0 >= system::FIRST_USER, "storage gave out an object id of the system tables");
        self.object_created(oid).await?;
        Ok(oid)
    }

    /// An empty index.
    async fn new_index(&mut self, table: ObjectId, spec: IndexSpec) -> Result<Index> {
        let (oid, created_by) = (self.new_object().await?, self.write_id().await?);
        let tree = BTree::create(self.store(), oid, DATA).await?;
        let IndexSpec { name, columns, unique, primary, extras } = spec;
        Ok(Index { oid, name, table, columns, unique, primary, root: tree.root, created_by, extras })
    }

    /// Enters the rows that are there (invariants 2 and 3).
    async fn fill_index(&mut self, table: &Table, index: &Index) -> Result<()> {
        let mut entries: Vec<Vec<u8>> = Vec::new();
        newest_rows(self.store(), table, |row: NewestRow<'_>| {
            let view = RowView { table, bytes: row.bytes };
            index.columns.iter().try_for_each(|&column| key::no_key(view.get(column)))?;
            entries.push(key::encode_entry(index, view, row.rid));
            Ok(())
        })
        .await?;
        entries.sort_unstable();
        if index.unique {
            for pair in entries.windows(2) {
                let key = key::key_of(&pair[0]);
                if key == key::key_of(&pair[1]) && key::is_one_rows(index, &key::decode_key(table, index, key)?) {
                    let key = key::describe(table, index, key);
                    return Err(EngineError::cannot_create_unique(table, &index.name, key));
                }
            }
        }
        let tree = BTree { object: index.oid, space: DATA, root: index.root };
        Ok(tree.bulk_load(self.store(), entries.into_iter()).await?)
    }

    /// Deletes the rows of a system table that have `oid` in a column.
    pub(crate) async fn delete_definitions(&mut self, object: ObjectId, column: usize, oid: ObjectId) -> Result<()> {
        self.change_definitions(object, |row| row[column] == Datum::Int8(oid.0 as i64), |_| None).await.map(|_| ())
    }

    /// Gives the rows of a system table that `which` picks other values, or (`None`) deletes them. Answers how many
    /// there were.
    async fn change_definitions(
        &mut self,
        object: ObjectId,
        which: impl Fn(&[Datum]) -> bool + Send,
        change: impl Fn(Vec<Datum>) -> Option<Vec<Datum>> + Send,
    ) -> Result<usize> {
        let table = system_table(object);
        let mut found = Vec::new();
        newest_rows(self.store(), table, |row| {
            let values = RowView::checked(table, row.bytes)?.to_datums();
            if which(&values) {
                found.push((row.rid, row.version, values));
            }
            Ok(())
        })
        .await?;
        let count = found.len();
        for (rid, version, values) in found {
            let outcome = match change(values) {
                Some(row) => self.update(table, rid, version, &row).await?,
                None => self.delete(table, rid, version).await?,
            };
            match outcome {
                UpdateOutcome::Done => {}
                // Under the lock of definitions nobody else changes them.
                other => return Err(EngineError::internal(format!("a definition changed under its lock: {other:?}"))),
            }
        }
        Ok(count)
    }
}

fn system_table(oid: ObjectId) -> &'static Arc<Table> {
    system::table(oid).expect("a system table")
}

fn referring<'c>(catalog: &'c Catalog, key: &ForeignKey) -> &'c str {
    catalog.table_by_oid(key.table).map_or("", |table| &table.name)
}

/// 2BP01 where a foreign key refers to what an index makes unique. `what` goes.
fn refuse_needed_index(catalog: &Catalog, table: &Table, index: &Index, what: &str) -> Result<()> {
    match table.referenced_by.iter().find(|key| key.index == index.oid) {
        Some(key) => Err(needed(what, key, referring(catalog, key), &format!("index {}", index.name))),
        None => Ok(()),
    }
}

fn two_primary_keys(table: &str) -> EngineError {
    EngineError::new("42P16", format!("multiple primary keys for table \"{table}\" are not allowed"))
}

/// 42701 of the names of columns that each of PostgreSQL's tables has.
fn refuse_system_column(name: &str) -> Result<()> {
    match ["tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"].contains(&name) {
        true => {
            let message = format!("column name \"{name}\" conflicts with a system column name");
            Err(EngineError::new("42701", message))
        }
        false => Ok(()),
    }
}

/// Truncates names, makes the primary key's columns NOT NULL, refuses what no table can be.
fn checked_table(mut spec: TableSpec) -> Result<TableSpec> {
    truncate(&mut spec.name);
    if spec.columns.len() > MAX_COLUMNS {
        return Err(EngineError::too_many_columns(MAX_COLUMNS));
    }
    for i in 0..spec.columns.len() {
        truncate(&mut spec.columns[i].name);
        let (before, rest) = spec.columns.split_at(i);
        if before.iter().any(|c| c.name == rest[0].name) {
            return Err(EngineError::duplicate_column(&rest[0].name));
        }
        refuse_system_column(&rest[0].name)?;
        rest[0].data_type.check()?;
    }
    let indexes = std::mem::take(&mut spec.indexes);
    for index in indexes {
        let index = checked_index(index, &spec.name, &spec.columns)?;
        if index.name == spec.name || spec.indexes.iter().any(|i| i.name == index.name) {
            return Err(EngineError::duplicate_relation(&index.name));
        }
        if index.primary {
            if spec.indexes.iter().any(|i| i.primary) {
                return Err(two_primary_keys(&spec.name));
            }
            for &c in &index.columns {
                spec.columns[c].not_null = true;
            }
        }
        spec.indexes.push(index);
    }
    Ok(spec)
}

fn checked_index(mut spec: IndexSpec, table: &str, columns: &[ColumnDef]) -> Result<IndexSpec> {
    truncate(&mut spec.name);
    if spec.columns.is_empty() || spec.columns.len() > MAX_KEY_COLUMNS {
        return Err(EngineError::new("54011", format!("an index has 1 to {MAX_KEY_COLUMNS} columns")));
    }
    for &c in &spec.columns {
        match columns.get(c) {
            Some(column) if !column.dropped || column.computed().is_some() => check_key_type(column.data_type)?,
            _ => return Err(EngineError::undefined_column(&format!("{table}.{c}"))),
        }
    }
    if spec.primary && !spec.unique {
        return Err(EngineError::internal("a primary key is unique"));
    }
    Ok(spec)
}

/// json has no order, and that of jsonb is not one of the stored bytes.
fn check_key_type(data_type: DataType) -> Result<()> {
    match data_type {
        DataType::Json => {
            let message = "data type json has no default operator class for access method \"btree\"";
            let hint = "You must specify an operator class for the index or define a default operator class for the \
                        data type.";
            Err(EngineError::new("42704", message).with_hint(hint))
        }
        DataType::Jsonb => Err(EngineError::unsupported("keys and indexes of jsonb are not supported")),
        DataType::Array(items) => check_key_type(items.get()),
        DataType::Composite(of) => of.def().attributes().try_for_each(|attribute| {
            check_key_type(attribute.data_type).map_err(|_| {
                EngineError::unsupported("keys and indexes of rows with json or jsonb in them are not supported")
            })
        }),
        _ => Ok(()),
    }
}

fn truncate(name: &mut String) {
    let len = truncate_name(name).len();
    name.truncate(len);
}
