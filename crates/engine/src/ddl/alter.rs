//! ALTER TABLE and TRUNCATE.
//!
//! 1. Each takes the lock of definitions, then the table for itself alone, and works on the definition that it finds
//!    then.
//! 2. No row is rewritten: a column is added at the end, and rows written before read as [`ColumnDef::missing`]; a
//!    dropped one keeps its place and its bytes until the row is next written.
//! 3. TRUNCATE gives the table new, empty storage *and a new object id*: what waited for the old one finds it gone
//!    (42P01) and looks the name up again. The old pages are purged when the transaction has committed and no snapshot
//!    needs them.
//! 4. A definition that fails on the rows that are there (23502, 23505) is not noted.
use super::foreign::moved;
use super::views::{refuse_read, refuse_rename};
use super::{checked_index, refuse_needed_index, two_primary_keys};
use crate::catalog::foreign::FOREIGN_KEYS;
use crate::catalog::load::{NewestRow, newest_rows};
use crate::catalog::{
    Catalog, Check, ColumnDef, Index, IndexSpec, MAX_COLUMNS, Statistics, Table, system, truncate_name,
};
use crate::error::{EngineError, Result};
use crate::locks::LockMode;
use crate::row::RowView;
use crate::txn::Txn;
use crate::types::{DataType, Datum, DatumRef, fit_varchar};
use std::sync::Arc;
use terrace_storage::ObjectId;

#[cfg(test)]
mod tests;

/// The constraint that an index is to stand for.
#[derive(Clone, Copy, Debug)]
pub struct NewConstraint {
    /// PRIMARY KEY; otherwise UNIQUE.
    pub primary: bool,
    pub deferrable: bool,
    pub deferred: bool,
}

/// What another table's index like this one is made of.
fn spec_of(index: &Index) -> IndexSpec {
    let Index { name, columns, unique, primary, extras, .. } = index.clone();
    IndexSpec { name, columns, unique, primary, extras }
}

impl Txn {
    /// The table as it is now, for this transaction alone (invariant 1).
    pub(super) async fn alone(&mut self, table: &Table) -> Result<(Arc<Catalog>, Arc<Table>)> {
        let (catalog, table) = self.locked_alone(table).await?;
        self.refuse_noted(&table, "ALTER TABLE")?;
        Ok((catalog, table))
    }

    async fn locked_alone(&mut self, table: &Table) -> Result<(Arc<Catalog>, Arc<Table>)> {
        self.lock_ddl().await?;
        self.lock(table.oid, LockMode::AccessExclusive).await?;
        let catalog = self.catalog();
        let found = catalog.tables().find(|t| t.oid == table.oid).cloned();
        let table = found.ok_or_else(|| EngineError::undefined_table(&table.name))?;
        Ok((catalog, table))
    }

    /// Waits until the table is this transaction's alone, and answers it as it is then. 42P01 where it is gone.
    pub async fn lock_definition(&mut self, table: &Table) -> Result<Arc<Table>> {
        self.locked_alone(table).await.map(|(_, table)| table)
    }

    pub(super) fn publish(&mut self, catalog: &Catalog, table: Table) -> Arc<Table> {
        let (oid, table) = (table.oid, Arc::new(table));
        self.core().redefined.lock().insert(oid, table.clone());
        let catalog = Arc::new(catalog.with(table));
        self.set_catalog(catalog.clone());
        catalog.table_by_oid(oid).expect("it was put there").clone()
    }

    /// Empties the table (invariant 3), waiting for everybody who uses it. 42P01 where it is gone by then. The caller
    /// empties those that refer to it, too.
    pub async fn truncate_table(&mut self, table: &Table) -> Result<Arc<Table>> {
        let (catalog, old) = self.locked_alone(table).await?;
        self.refuse_noted(&old, "TRUNCATE")?;
        let columns = old.columns.clone();
        self.emptied(&catalog, &old, columns).await
    }

    /// Empties the table and puts a column of another type in the place of one that it has. The caller gives it new
    /// rows, with the keys that the old ones had.
    pub async fn retype_column(&mut self, table: &Table, at: usize, column: ColumnDef) -> Result<Arc<Table>> {
        let (catalog, old) = self.alone(table).await?;
        column.data_type.check()?;
        column.data_type.admits(column.missing.as_ref())?;
        let mut columns = old.columns.clone();
        columns[at] = column;
        for index in &old.indexes {
            checked_index(spec_of(index), &old.name, &columns)?;
        }
        self.emptied(&catalog, &old, columns).await
    }

    /// A table in the place of the old one, without rows.
    async fn emptied(&mut self, catalog: &Catalog, old: &Table, columns: Vec<ColumnDef>) -> Result<Arc<Table>> {
        let oid = self.new_object().await?;
        let mut indexes = Vec::with_capacity(old.indexes.len());
        for index in &old.indexes {
            indexes.push(Arc::new(self.new_index(oid, spec_of(index)).await?));
        }
        let empty = Statistics { rows: 0, pages: 0 };
        let mut new =
            Table { space: old.space, temporary: old.temporary, ..Table::new(oid, old.name.clone(), columns, indexes) };
        new.checks = old.checks.clone();
        new.statistics = old.statistics.map(|_| empty);
        new.foreign_keys = old.foreign_keys.iter().map(|key| Arc::new(moved(key, old, &new))).collect();
        self.drop_everything(old).await?;
        self.insert_definitions(&new).await?;
        let before = catalog;
        let catalog = self.refer_to_new(catalog, old, &new).await?;
        let catalog = self.move_access(catalog, before, (old.oid, new.oid)).await?;
        let catalog = self.move_comments(catalog, old, &new).await?;
        Ok(self.publish(&catalog, new))
    }

    /// 42P16 where there is a primary key already, 23502 where a column holds a NULL, 23505, 42P07.
    pub async fn add_primary_key(&mut self, table: &Table, spec: IndexSpec) -> Result<Arc<Table>> {
        let (catalog, table) = self.alone(table).await?;
        let spec = IndexSpec { primary: true, unique: true, ..checked_index(spec, &table.name, &table.columns)? };
        if table.primary_key().is_some() {
            return Err(two_primary_keys(&table.name));
        }
        if catalog.name_taken(table.space, &spec.name) {
            return Err(EngineError::duplicate_relation(&spec.name));
        }
        let columns = self.without_nulls(&table, &spec.columns).await?;
        let index = Arc::new(self.new_index(table.oid, spec).await?);
        self.fill_index(&table, &index).await?;
        self.insert(super::system_table(system::INDEXES), &system::index_row(&index)).await?;
        let indexes = table.indexes.iter().cloned().chain([index]).collect();
        Ok(self.publish(&catalog, table.redefined(columns, indexes)))
    }

    /// The table's columns, of which these are NOT NULL from now on. 23502 where one holds a NULL.
    async fn without_nulls(&mut self, table: &Table, key: &[usize]) -> Result<Vec<ColumnDef>> {
        let mut columns = table.columns.clone();
        for &at in key {
            if !columns[at].not_null {
                self.refuse_nulls(table, at).await?;
                columns[at].not_null = true;
                self.rewrite_column(table.oid, at, &columns[at]).await?;
            }
        }
        Ok(columns)
    }

    /// A unique index that stands for no constraint becomes a UNIQUE constraint, or the primary key. 42P16 where there
    /// is one already, 42704 where the index is gone, 23502 where a column of the primary key holds a NULL.
    pub async fn make_constraint(&mut self, table: &Table, index: ObjectId, of: NewConstraint) -> Result<Arc<Table>> {
        let (catalog, table) = self.alone(table).await?;
        let old = table.index(index).ok_or_else(|| EngineError::undefined_index(&format!("{}", index.0)))?;
        if !old.unique || old.is_constraint() {
            return Err(EngineError::internal("a unique index that stands for no constraint becomes one"));
        }
        if of.primary && table.primary_key().is_some() {
            return Err(two_primary_keys(&table.name));
        }
        if of.deferrable && table.referenced_by.iter().any(|key| key.index == index) {
            return Err(EngineError::unsupported("DEFERRABLE of an index that a foreign key refers to"));
        }
        let key = if of.primary { old.keys() } else { &[] };
        let columns = self.without_nulls(&table, key).await?;
        let constraint = Index::clone(old).into_constraint(of.deferrable, of.deferred);
        let constraint = Arc::new(Index { primary: of.primary, ..constraint });
        self.rewrite_index(&constraint).await?;
        let kept = table.indexes.iter().filter(|other| other.oid != index).cloned();
        let indexes = kept.chain([constraint]).collect();
        Ok(self.publish(&catalog, table.redefined(columns, indexes)))
    }

    async fn rewrite_index(&mut self, index: &Index) -> Result<()> {
        let row = system::index_row(index);
        let count = self.change_definitions(system::INDEXES, |r| r[0] == row[0], |_| Some(row.clone())).await?;
        assert_eq!(count, 1, "each index has one definition");
        Ok(())
    }

    /// Drops the index of a primary key or of another constraint. 42704 where it is gone.
    pub async fn drop_key(&mut self, table: &Table, index: ObjectId) -> Result<Arc<Table>> {
        let (catalog, table) = self.alone(table).await?;
        let index = table.index(index).ok_or_else(|| EngineError::undefined_index(&format!("{}", index.0)))?;
        refuse_needed_index(&catalog, &table, index, &format!("constraint {} on table {}", index.name, table.name))?;
        self.delete_definitions(system::INDEXES, 0, index.oid).await?;
        self.object_dropped(index.oid).await?;
        let indexes = table.indexes.iter().filter(|i| i.oid != index.oid).cloned().collect();
        Ok(self.publish(&catalog, table.redefined(table.columns.clone(), indexes)))
    }

    /// Adds a column at the end; rows that are there have `column.missing` in it. 42701, 54011, 23502 where NULL is not
    /// allowed.
    pub async fn add_column(&mut self, table: &Table, mut column: ColumnDef) -> Result<Arc<Table>> {
        let (catalog, table) = self.alone(table).await?;
        if column.computed().is_none() {
            column.name = truncate_name(&column.name).into();
            super::refuse_system_column(&column.name)?;
        }
        if !column.dropped && table.column(&column.name).is_some() {
            let message = format!("column \"{}\" of relation \"{}\" already exists", column.name, table.name);
            return Err(EngineError::new("42701", message));
        }
        if table.columns.len() >= MAX_COLUMNS {
            return Err(EngineError::too_many_columns(MAX_COLUMNS));
        }
        column.data_type.admits(column.missing.as_ref())?;
        if column.not_null && column.missing == Datum::Null && self.has_rows(&table).await? {
            return Err(contains_nulls(&table, &column.name));
        }
        let mut columns = table.columns.clone();
        columns.push(column);
        let at = columns.len() - 1;
        self.note_column(&columns[at]).await?;
        self.insert(super::system_table(system::COLUMNS), &system::column_row(table.oid, at, &columns[at])).await?;
        let indexes = table.indexes.clone();
        Ok(self.publish(&catalog, table.redefined(columns, indexes)))
    }

    /// Drops a column, and the indexes and foreign keys that have it. CHECK constraints and computed columns that name
    /// it are the caller's.
    /// 2BP01 where a foreign key refers to it.
    pub async fn drop_column(&mut self, table: &Table, at: usize) -> Result<Arc<Table>> {
        let comment = (table.oid, at as u32 + 1);
        if self.catalog().comment(comment).is_some() {
            self.comment(comment, None).await?;
        }
        self.delete_column_access(table.oid, at).await?;
        let (catalog, table) = self.alone(table).await?;
        let what = format!("column {} of table {}", table.columns[at].name, table.name);
        refuse_read(&catalog, (table.space, &table.name), Some(at), &what)?;
        let has_column = |index: &Arc<Index>| index.columns.contains(&at) || index.included().contains(&at);
        let (doomed, kept): (Vec<_>, Vec<_>) = table.indexes.iter().cloned().partition(has_column);
        for index in doomed {
            refuse_needed_index(&catalog, &table, &index, &what)?;
            self.delete_definitions(system::INDEXES, 0, index.oid).await?;
            self.object_dropped(index.oid).await?;
        }
        let mut columns = table.columns.clone();
        assert!(!columns[at].dropped, "found by its name");
        // As PostgreSQL names them: nobody can ask for it.
        columns[at].name = format!("........pg.dropped.{}........", at + 1);
        columns[at].dropped = true;
        columns[at].not_null = false;
        columns[at].domain = None;
        columns[at].default_sql = None;
        columns[at].generated = None;
        self.rewrite_column(table.oid, at, &columns[at]).await?;
        let mut dropped = table.redefined(columns, kept);
        for key in table.foreign_keys.iter().filter(|key| key.columns.contains(&at)) {
            self.delete_definitions(FOREIGN_KEYS, 0, key.oid).await?;
            dropped.foreign_keys.retain(|kept| kept.oid != key.oid);
        }
        Ok(self.publish(&catalog, dropped))
    }

    /// Renames a column, changes its default or whether it takes NULL (23502 where it holds one), or gives it a type
    /// that is stored alike (22001 where it holds a longer text; 0A000 where blanks at its end would have to be cut).
    pub async fn alter_column(&mut self, table: &Table, at: usize, mut column: ColumnDef) -> Result<Arc<Table>> {
        let (catalog, table) = self.alone(table).await?;
        let before = &table.columns[at];
        assert_eq!(column.dropped, before.dropped, "a column that was dropped stays so");
        assert!(column.data_type.is_stored_as(before.data_type), "no row is rewritten (invariant 2)");
        column.missing = before.missing.clone();
        if !column.dropped {
            column.name = truncate_name(&column.name).into();
        }
        if !column.dropped && column.name != before.name && table.column(&column.name).is_some() {
            let message = format!("column \"{}\" of relation \"{}\" already exists", column.name, table.name);
            return Err(EngineError::new("42701", message));
        }
        if !column.dropped && column.name != before.name {
            super::refuse_system_column(&column.name)?;
            refuse_rename(&catalog, &table, Some(at))?;
        }
        if column.not_null && !before.not_null {
            self.refuse_nulls(&table, at).await?;
        }
        if let DataType::Varchar(length) = column.data_type
            && !column.data_type.holds(before.data_type)
        {
            self.refuse_longer(&table, at, length).await?;
        }
        let mut columns = table.columns.clone();
        columns[at] = column;
        self.rewrite_column(table.oid, at, &columns[at]).await?;
        let indexes = table.indexes.clone();
        Ok(self.publish(&catalog, table.redefined(columns, indexes)))
    }

    /// 42P07 where the name is taken.
    pub async fn rename_table(&mut self, table: &Table, name: &str) -> Result<Arc<Table>> {
        let (catalog, table) = self.alone(table).await?;
        let name = truncate_name(name);
        if catalog.name_taken(table.space, name) {
            return Err(EngineError::duplicate_relation(name));
        }
        if table.temporary.is_none() {
            catalog.refuse_type(table.space, name)?;
        }
        refuse_rename(&catalog, &table, None)?;
        let mut renamed = Table::clone(&table);
        renamed.name = name.into();
        let row = system::table_row(&renamed);
        self.change_definitions(system::TABLES, |r| r[0] == row[0], |_| Some(row.clone())).await?;
        Ok(self.publish(&catalog, renamed))
    }

    /// Renames an index, and with it the constraint that it stands for. 42P07 where the name is taken, 42704 where it
    /// is gone.
    pub async fn rename_index(&mut self, table: &Table, index: ObjectId, name: &str) -> Result<Arc<Table>> {
        let (catalog, table) = self.alone(table).await?;
        let name = truncate_name(name);
        if catalog.name_taken(table.space, name) {
            return Err(EngineError::duplicate_relation(name));
        }
        let old = table.index(index).ok_or_else(|| EngineError::undefined_index(&format!("{}", index.0)))?;
        let renamed = Arc::new(Index { name: name.into(), ..Index::clone(old) });
        self.rewrite_index(&renamed).await?;
        let indexes = table.indexes.iter().map(|i| if i.oid == index { renamed.clone() } else { i.clone() }).collect();
        Ok(self.publish(&catalog, table.redefined(table.columns.clone(), indexes)))
    }

    /// Replaces the table's CHECK constraints. That its rows satisfy them is the caller's to see to, under the lock
    /// that this takes.
    pub async fn set_checks(&mut self, table: &Table, mut checks: Vec<Check>) -> Result<Arc<Table>> {
        let (catalog, table) = self.alone(table).await?;
        checks.sort_by(|a, b| a.name.cmp(&b.name));
        assert!(checks.windows(2).all(|pair| pair[0].name != pair[1].name), "the caller names them apart");
        self.delete_definitions(system::CHECKS, 0, table.oid).await?;
        for check in &checks {
            self.insert(super::system_table(system::CHECKS), &system::check_row(table.oid, check)).await?;
        }
        let mut checked = Table::clone(&table);
        checked.checks = checks;
        Ok(self.publish(&catalog, checked))
    }

    async fn rewrite_column(&mut self, table: ObjectId, at: usize, column: &ColumnDef) -> Result<()> {
        let row = system::column_row(table, at, column);
        let this = |r: &[Datum]| r[..2] == row[..2];
        let count = self.change_definitions(system::COLUMNS, this, |_| Some(row.clone())).await?;
        assert_eq!(count, 1, "each column has one definition");
        Ok(())
    }

    /// 23502 where a row that is not deleted has NULL in the column.
    async fn refuse_nulls(&mut self, table: &Table, at: usize) -> Result<()> {
        newest_rows(self.store(), table, |row: NewestRow<'_>| match RowView::checked(table, row.bytes)?.is_null(at) {
            true => Err(contains_nulls(table, &table.columns[at].name)),
            false => Ok(()),
        })
        .await
    }

    async fn refuse_longer(&mut self, table: &Table, at: usize, length: u32) -> Result<()> {
        newest_rows(self.store(), table, |row: NewestRow<'_>| match RowView::checked(table, row.bytes)?.get(at) {
            DatumRef::Text(text) if fit_varchar(text, length)? != text => Err(EngineError::unsupported(
                "ALTER COLUMN TYPE that cuts blanks at the ends of values is not supported",
            )),
            _ => Ok(()),
        })
        .await
    }

    async fn has_rows(&mut self, table: &Table) -> Result<bool> {
        let mut any = false;
        newest_rows(self.store(), table, |_| {
            any = true;
            Ok(())
        })
        .await?;
        Ok(any)
    }
}

fn contains_nulls(table: &Table, column: &str) -> EngineError {
    let (t, c) = (&table.name, column);
    EngineError::new("23502", format!("column \"{c}\" of relation \"{t}\" contains null values"))
        .on_table(table)
        .on_column(c)
}
