//! Schemas are made, renamed and dropped, and things are moved between them, inside a transaction and under the lock of
//! definitions.
//!
//! 1. So nobody makes anything in a schema while another transaction drops it: who waited finds it gone (3F000).
use super::enums::refuse_taken;
use super::system_table;
use super::views::refuse_rename;
use crate::catalog::comments::COMMENTS;
use crate::catalog::names::Space;
use crate::catalog::schemas::{SCHEMAS, note_row, row};
use crate::catalog::temporary::{self, Placement, TEMPORARY_TABLES};
use crate::catalog::views::View;
use crate::catalog::{Catalog, Table, truncate_name};
use crate::error::{EngineError, Result};
use crate::txn::Txn;
use crate::types::{DataType, Datum};
use std::sync::Arc;
use terrace_storage::ObjectId;

#[cfg(test)]
mod tests;

/// 3F000 where a schema has gone.
pub(super) fn require(catalog: &Catalog, space: Space) -> Result<()> {
    match catalog.is_schema(space) {
        true => Ok(()),
        false => Err(EngineError::new("3F000", "the schema does not exist any more")),
    }
}

impl Txn {
    /// 42P06 where there is one of the name.
    pub async fn create_schema(&mut self, name: &str) -> Result<Space> {
        self.lock_ddl().await?;
        let (catalog, name) = (self.catalog(), truncate_name(name));
        refuse_schema(&catalog, name)?;
        let space = Space(self.next_object());
        self.put_schema(space, Some(name)).await?;
        Ok(space)
    }

    /// 3F000, 42P06 where the name is taken.
    pub async fn rename_schema(&mut self, space: Space, name: &str) -> Result<()> {
        self.lock_ddl().await?;
        let (catalog, name) = (self.catalog(), truncate_name(name));
        require(&catalog, space)?;
        refuse_schema(&catalog, name)?;
        self.put_schema(space, Some(name)).await
    }

    /// 3F000, 2BP01 where something is in it.
    pub async fn drop_schema(&mut self, space: Space) -> Result<()> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        require(&catalog, space)?;
        if !catalog.is_empty_schema(space) {
            let name = catalog.space_name(space);
            let message = format!("cannot drop schema {name} because other objects depend on it");
            return Err(EngineError::new("2BP01", message));
        }
        if catalog.comment((space.0, 0)).is_some() {
            self.delete_definitions(COMMENTS, 0, space.0).await?;
        }
        self.delete_access(space.0).await?;
        self.delete_defaults_in(space.0).await?;
        self.put_schema(space, None).await?;
        let catalog = self.catalog();
        let mut comments = crate::catalog::comments::Comments::clone(&catalog.comments);
        comments.remove(&(space.0, 0));
        self.set_catalog(Arc::new(catalog.with_comments(comments).with_access_to(space.0, None)));
        Ok(())
    }

    /// What is said of a schema: `None`: it is gone (catalog::schemas, invariant 1).
    async fn put_schema(&mut self, space: Space, name: Option<&str>) -> Result<()> {
        let key = Datum::Int8(space.0.0.into());
        let new = (name.is_some() || space == Space::PUBLIC).then(|| row(space, name));
        let found = self.change_definitions(SCHEMAS, |row| row[0] == key, |_| new.clone()).await?;
        if let Some(new) = new.filter(|_| found == 0) {
            self.insert(system_table(SCHEMAS), &new).await?;
            self.note_feature(&note_row()).await?;
        }
        let catalog = self.catalog().with_schema(space, name);
        self.set_catalog(Arc::new(catalog));
        Ok(())
    }

    pub(super) async fn insert_placement(&mut self, object: ObjectId, placement: Placement) -> Result<()> {
        self.insert(system_table(TEMPORARY_TABLES), &temporary::row(object, placement)).await?;
        let note = if placement.on_commit.is_some() { temporary::note_row() } else { note_row() };
        self.note_feature(&note).await
    }

    /// Says in which schema a new object is.
    pub(super) async fn place(&mut self, object: ObjectId, space: Space) -> Result<()> {
        match space == Space::PUBLIC {
            true => Ok(()),
            false => self.insert_placement(object, Placement { space, on_commit: None }).await,
        }
    }

    /// The object goes.
    pub(super) async fn displace(&mut self, object: ObjectId, space: Space) -> Result<()> {
        match space == Space::PUBLIC {
            true => Ok(()),
            false => self.delete_definitions(TEMPORARY_TABLES, 0, object).await,
        }
    }

    pub(super) async fn move_placement(&mut self, object: ObjectId, from: Space, to: Space) -> Result<()> {
        if from != to {
            self.displace(object, from).await?;
            self.place(object, to).await?;
        }
        Ok(())
    }

    /// Moves a table with its indexes. 3F000; 42P07 and 42710 where a name is taken there; 0A000 where a view reads it.
    pub async fn move_table(&mut self, table: &Table, to: Space) -> Result<Arc<Table>> {
        let (catalog, table) = self.alone(table).await?;
        require(&catalog, to)?;
        for name in table.indexes.iter().map(|index| &index.name).chain([&table.name]) {
            refuse_relation(&catalog, to, name)?;
        }
        catalog.refuse_type(to, &table.name)?;
        refuse_rename(&catalog, &table, None)?;
        self.move_placement(table.oid, table.space, to).await?;
        Ok(self.publish(&catalog, Table { space: to, ..Table::clone(&table) }))
    }

    /// Moves a view. As [`Txn::move_table`].
    pub async fn move_view(&mut self, view: &View, to: Space) -> Result<()> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        let gone = || EngineError::undefined_table(&view.name);
        let view = catalog.views().find(|known| known.oid == view.oid).ok_or_else(gone)?;
        require(&catalog, to)?;
        refuse_relation(&catalog, to, &view.name)?;
        catalog.refuse_type(to, &view.name)?;
        if let Some(reader) = catalog.views_on((view.space, &view.name), None).first() {
            let (view, reader) = (&view.name, &reader.name);
            let message = format!("moving view {view}, which view {reader} reads, is not supported");
            return Err(EngineError::unsupported(message).with_hint("Drop the view, and make it again."));
        }
        self.move_placement(view.oid, view.space, to).await?;
        let moved = View { space: to, ..View::clone(view) };
        self.set_catalog(Arc::new(catalog.with_view(moved)));
        Ok(())
    }

    /// Moves a type. 3F000, 42704; 42710 where the name is taken there.
    pub async fn move_type(&mut self, of: DataType, to: Space) -> Result<()> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        let gone = || EngineError::new("42704", format!("type \"{}\" does not exist", of.base_name()));
        let own = of.own().ok_or_else(gone)?;
        let from = catalog.space_of_type(own.oid).ok_or_else(gone)?;
        require(&catalog, to)?;
        refuse_taken(&catalog, to, own.name)?;
        self.move_placement(ObjectId(own.oid), from, to).await?;
        self.set_catalog(Arc::new(catalog.with_type(to, of)?));
        Ok(())
    }
}

fn refuse_schema(catalog: &Catalog, name: &str) -> Result<()> {
    match catalog.schema(name) {
        Some(_) => Err(EngineError::new("42P06", format!("schema \"{name}\" already exists"))),
        None => Ok(()),
    }
}

/// 42P07 where a relation of the schema has the name.
fn refuse_relation(catalog: &Catalog, to: Space, name: &str) -> Result<()> {
    match catalog.name_taken(to, name) {
        true => {
            let schema = catalog.space_name(to);
            Err(EngineError::new("42P07", format!("relation \"{name}\" already exists in schema \"{schema}\"")))
        }
        false => Ok(()),
    }
}
