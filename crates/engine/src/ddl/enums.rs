//! Enum types are made, altered and dropped, inside a transaction and under the lock of definitions.
use super::system_table;
use crate::catalog::enums::{ENUMS, row};
use crate::catalog::names::{Among, RelationName, Space};
use crate::catalog::{Catalog, ColumnDef, system, truncate_name};
use crate::error::{EngineError, Result};
use crate::txn::Txn;
use crate::types::enums::{EnumDef, Place};
use crate::types::{DataType, Datum, EnumType};
use std::sync::Arc;
use terrace_storage::ObjectId;

#[cfg(test)]
mod tests;

impl Txn {
    /// 42710 where a type or a relation has the name, 23505 where a label stands twice.
    pub async fn create_enum(&mut self, space: Space, name: &str, labels: &[String]) -> Result<EnumType> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        let name = truncate_name(name);
        super::schemas::require(&catalog, space)?;
        refuse_taken(&catalog, space, name)?;
        let next = || self.next_object().0;
        let (oid, array) = (next(), next());
        let oids: Vec<u32> = labels.iter().map(|_| next()).collect();
        let def = EnumDef::new(oid, array, name, labels, &oids)?;
        self.insert(system_table(ENUMS), &row(&def)?).await?;
        let note = system::enums_row();
        if self.change_definitions(system::CHECKS, |r| r[..2] == note[..2], |_| Some(note.clone())).await? == 0 {
            self.insert(system_table(system::CHECKS), &note).await?;
        }
        let of = EnumType::of(def)?;
        self.place(ObjectId(oid), space).await?;
        self.set_catalog(Arc::new(catalog.with_enum(space, of)));
        Ok(of)
    }

    /// 42704 where there is no such type; else as [`EnumDef::with_label`].
    pub async fn add_enum_label(&mut self, of: EnumType, label: &str, place: Place<'_>) -> Result<()> {
        self.lock_ddl().await?;
        let oid = self.next_object().0;
        self.replace_enum(of, |def| def.with_label(label, place, oid)).await
    }

    /// 42704 where there is no such type; else as [`EnumDef::with_renamed`].
    pub async fn rename_enum_label(&mut self, of: EnumType, from: &str, to: &str) -> Result<()> {
        self.replace_enum(of, |def| def.with_renamed(from, to)).await
    }

    /// 42704 where there is no such type, 42710 where the new name is taken.
    pub async fn rename_enum(&mut self, of: EnumType, to: &str) -> Result<()> {
        self.lock_ddl().await?;
        let to = truncate_name(to);
        let catalog = self.catalog();
        refuse_taken(&catalog, space_of(&catalog, of)?, to)?;
        self.replace_enum(of, |def| Ok(def.renamed(to))).await
    }

    async fn replace_enum(&mut self, of: EnumType, change: impl FnOnce(&EnumDef) -> Result<EnumDef>) -> Result<()> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        let (space, now) = (space_of(&catalog, of)?, now(&catalog, of)?);
        let def = change(now.def())?;
        let (of, row) = (Datum::Int8(def.oid.into()), row(&def)?);
        let found = self.change_definitions(ENUMS, |r| r[0] == of, |_| Some(row.clone())).await?;
        assert_eq!(found, 1, "each type has one definition");
        let catalog = catalog.with_enum(space, EnumType::of(def)?);
        self.set_catalog(Arc::new(catalog));
        Ok(())
    }

    /// 42704 where there is no such type, 2BP01 where a column is of it.
    pub async fn drop_enum(&mut self, of: EnumType) -> Result<()> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        let (of, space) = (now(&catalog, of)?, space_of(&catalog, of)?);
        let name = &of.def().name;
        if let Some(user) = users(&catalog, of).first() {
            let error =
                EngineError::new("2BP01", format!("cannot drop type {name} because other objects depend on it"));
            let error = error.with_detail(format!("{user} depends on type {name}"));
            return Err(error.with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        let oid = Datum::Int8(of.def().oid.into());
        self.change_definitions(ENUMS, |r| r[0] == oid, |_| None).await?;
        let oid = ObjectId(of.def().oid);
        self.delete_access(oid).await?;
        self.displace(oid, space).await?;
        self.set_catalog(Arc::new(catalog.without_enum(of).with_access_to(oid, None)));
        Ok(())
    }
}

/// The columns of a type, or of its arrays, as PostgreSQL names them.
fn users(catalog: &Catalog, of: EnumType) -> Vec<String> {
    let is_used = |column: &&ColumnDef| {
        let single = column.data_type.item().unwrap_or(column.data_type);
        // A computed column is dropped, and has values.
        matches!(single, DataType::Enum(own) if own.is_same(of)) && (!column.dropped || column.computed().is_some())
    };
    let of_table = catalog.tables().flat_map(|table| {
        table.columns.iter().filter(is_used).map(|column| format!("column {} of table {}", column.name, table.name))
    });
    let of_view = catalog.views().filter(|view| view.columns.iter().any(|column| is_used(&column)));
    of_table.chain(of_view.map(|view| format!("view {}", view.name))).collect()
}

/// 42710 where a type of the schema, or a relation, has the name.
pub(super) fn refuse_taken(catalog: &Catalog, space: Space, name: &str) -> Result<()> {
    // A relation stands for a type of its rows; an index does not.
    let named = RelationName::new(Among::In(space), name);
    let relation = catalog.table(&named).is_some() || catalog.view(&named).is_some();
    match catalog.type_name_taken(space, name) || relation {
        true => Err(EngineError::new("42710", format!("type \"{name}\" already exists"))),
        false => Ok(()),
    }
}

/// The type as it is defined now. 42704 where it has gone.
fn now(catalog: &Catalog, of: EnumType) -> Result<EnumType> {
    let found = catalog.enum_types().find(|known| known.is_same(of));
    found.ok_or_else(|| EngineError::new("42704", format!("type \"{}\" does not exist", of.def().name)))
}

fn space_of(catalog: &Catalog, of: EnumType) -> Result<Space> {
    Ok(catalog.space_of_type(now(catalog, of)?.def().oid).expect("a type is in a space"))
}
