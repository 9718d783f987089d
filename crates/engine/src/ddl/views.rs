//! Views are made, replaced and dropped, inside a transaction and under the lock of definitions.
use super::system_table;
use crate::catalog::names::{RelationName, Space};
use crate::catalog::temporary::{OnCommit, Placement};
use crate::catalog::views::{VIEW_USES, VIEWS, View, row, use_row};
use crate::catalog::{Catalog, Table, system, truncate_name};
use crate::error::{EngineError, Result};
use crate::txn::Txn;
use std::collections::BTreeSet;
use std::sync::Arc;
use terrace_storage::ObjectId;

#[cfg(test)]
mod tests;

impl Txn {
    /// Waits until no other transaction defines anything: from then on `catalog()` is the newest one to the end.
    pub async fn lock_definitions(&mut self) -> Result<()> {
        self.lock_ddl().await
    }

    /// Makes a view, or replaces the one of the name, which keeps its object id. 42P07 where another relation has the
    /// name, 42P01 where what it reads has gone. What a replaced view must keep is the caller's to see to.
    pub async fn put_view(&mut self, mut view: View) -> Result<()> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        view.name = truncate_name(&view.name).into();
        if !view.temporary {
            super::schemas::require(&catalog, view.space)?;
        }
        let before = catalog.view(&view.full_name()).map(|before| before.oid);
        if before.is_none() && catalog.name_taken(view.space, &view.name) {
            return Err(EngineError::duplicate_relation(&view.name));
        }
        catalog.refuse_type(view.space, &view.name)?;
        if let Some(missing) = catalog.missing_of(&view) {
            return Err(EngineError::undefined_table(&missing));
        }
        assert!(!catalog.reads(&view, view.space, &view.name), "catalog::views, invariant 4: the caller refuses it");
        view.oid = match before {
            Some(oid) => {
                self.delete_view(oid).await?;
                oid
            }
            None => {
                let oid = self.next_object();
                match view.temporary {
                    true => {
                        let placement = Placement { space: view.space, on_commit: Some(OnCommit::PreserveRows) };
                        self.insert_placement(oid, placement).await?;
                    }
                    false => self.place(oid, view.space).await?,
                }
                oid
            }
        };
        self.insert(system_table(VIEWS), &row(&view)).await?;
        for (at, column) in view.columns.iter().enumerate() {
            self.insert(system_table(system::COLUMNS), &system::column_row(view.oid, at, column)).await?;
        }
        for used in &view.uses {
            self.insert(system_table(VIEW_USES), &use_row(view.oid, used)).await?;
        }
        for note in [Some(system::views_row()), view.check.map(|_| system::checked_views_row())].into_iter().flatten() {
            if self.change_definitions(system::CHECKS, |r| r[..2] == note[..2], |_| Some(note.clone())).await? == 0 {
                self.insert(system_table(system::CHECKS), &note).await?;
            }
        }
        self.set_catalog(Arc::new(catalog.with_view(view)));
        Ok(())
    }

    /// 42P01 where it is gone, 42P07 where the name is taken, 0A000 where another view reads it.
    pub async fn rename_view(&mut self, oid: ObjectId, name: &str) -> Result<()> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        let name = truncate_name(name);
        let gone = || EngineError::new("42P01", "the view is gone");
        let view = catalog.views().find(|view| view.oid == oid).ok_or_else(gone)?;
        if catalog.name_taken(view.space, name) {
            return Err(EngineError::duplicate_relation(name));
        }
        catalog.refuse_type(view.space, name)?;
        if let Some(reader) = catalog.views_on((view.space, &view.name), None).first() {
            let message = format!("renaming view {}, which view {} reads, is not supported", view.name, reader.name);
            return Err(EngineError::unsupported(message).with_hint("Drop that view, and make it again."));
        }
        let renamed = View { name: name.into(), ..View::clone(view) };
        let new = row(&renamed);
        self.change_definitions(VIEWS, |r| r[0] == new[0], |_| Some(new.clone())).await?;
        self.set_catalog(Arc::new(catalog.with_view(renamed)));
        Ok(())
    }

    /// 42P01 where there is no such view, 2BP01 where another one reads it.
    pub async fn drop_view(&mut self, name: &RelationName) -> Result<()> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        let gone = || EngineError::new("42P01", format!("view \"{name}\" does not exist"));
        let view = catalog.view(name).ok_or_else(gone)?;
        refuse_read(&catalog, (view.space, &view.name), None, &format!("view {name}"))?;
        self.delete_view(view.oid).await?;
        self.delete_access(view.oid).await?;
        self.displace(view.oid, view.space).await?;
        self.set_catalog(Arc::new(catalog.without_view(view.oid).with_access_to(view.oid, None)));
        Ok(())
    }

    /// Drops the temporary views of these spaces, and those that read one of these tables.
    pub(super) async fn drop_temporary_views(&mut self, spaces: &BTreeSet<Space>, tables: &[Arc<Table>]) -> Result<()> {
        let catalog = self.catalog();
        let reads = |view: &View| tables.iter().any(|table| catalog.reads(view, table.space, &table.name));
        let goes = |view: &&Arc<View>| view.temporary && (spaces.contains(&view.space) || reads(view));
        let doomed: Vec<Arc<View>> = catalog.views().filter(goes).cloned().collect();
        let mut catalog = Catalog::clone(&catalog);
        for view in &doomed {
            self.delete_view(view.oid).await?;
            self.delete_access(view.oid).await?;
            self.displace(view.oid, view.space).await?;
            catalog = catalog.without_view(view.oid).with_access_to(view.oid, None);
        }
        if !doomed.is_empty() {
            self.set_catalog(Arc::new(catalog));
        }
        Ok(())
    }

    async fn delete_view(&mut self, oid: ObjectId) -> Result<()> {
        self.delete_definitions(VIEWS, 0, oid).await?;
        self.delete_definitions(system::COLUMNS, 0, oid).await?;
        self.delete_definitions(VIEW_USES, 0, oid).await
    }
}

/// 2BP01 where a view reads a relation that goes, or names its column. `what` goes.
pub(super) fn refuse_read(catalog: &Catalog, relation: (Space, &str), column: Option<usize>, what: &str) -> Result<()> {
    match catalog.views_on(relation, column).first() {
        Some(view) => {
            let error = EngineError::new("2BP01", format!("cannot drop {what} because other objects depend on it"));
            let error = error.with_detail(format!("view {} depends on {what}", view.name));
            Err(error.with_hint("Use DROP ... CASCADE to drop the dependent objects too."))
        }
        None => Ok(()),
    }
}

/// 0A000 where a view reads a relation that would be called something else, or names its column.
pub(super) fn refuse_rename(catalog: &Catalog, table: &Table, column: Option<usize>) -> Result<()> {
    let what = match column {
        Some(at) => format!("column {} of table {}", table.columns[at].name, table.name),
        None => format!("table {}", table.name),
    };
    match catalog.views_on((table.space, &table.name), column).first() {
        Some(view) => {
            let error =
                EngineError::unsupported(format!("renaming {what}, which view {} reads, is not supported", view.name));
            Err(error.with_hint("Drop the view, and make it again."))
        }
        None => Ok(()),
    }
}
