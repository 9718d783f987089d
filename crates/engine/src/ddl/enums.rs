//! Enums and composite types are made, altered and dropped, inside a transaction and under the lock of definitions.
use super::system_table;
use crate::catalog::enums::{ENUMS, row};
use crate::catalog::names::{Among, RelationName, Space};
use crate::catalog::{Catalog, ColumnDef, system, truncate_name};
use crate::error::{EngineError, Result};
use crate::txn::Txn;
use crate::types::composites::{Attribute, CompositeDef};
use crate::types::enums::{EnumDef, NewLabel, Place};
use crate::types::{CompositeType, DataType, Datum, EnumType};
use std::sync::Arc;
use terrace_storage::ObjectId;

#[cfg(test)]
mod tests;

/// What ALTER TYPE does to the attributes of a composite type.
#[derive(Clone, Debug)]
pub enum AttributeChange {
    Add(Attribute),
    Drop(String),
    Rename {
        from: String,
        to: String,
    },
    /// Of a type that no value is of.
    SetType {
        name: String,
        to: DataType,
    },
}

impl Txn {
    /// 42710 where a type or a relation has the name, 23505 where a label stands twice.
    pub async fn create_enum(&mut self, space: Space, name: &str, labels: &[String]) -> Result<EnumType> {
        self.lock_ddl().await?;
        let name = truncate_name(name);
        self.refuse_new_type(space, name)?;
        let next = || self.next_object().0;
        let (oid, array) = (next(), next());
        let oids: Vec<u32> = labels.iter().map(|_| next()).collect();
        let of = EnumType::of(EnumDef::new(oid, array, name, labels, &oids)?)?;
        self.add_type(space, DataType::Enum(of), &system::enums_row()).await?;
        Ok(of)
    }

    /// 42710 where a type or a relation has the name, 42701 where an attribute stands twice.
    pub async fn create_composite(
        &mut self,
        space: Space,
        name: &str,
        attributes: Vec<Attribute>,
    ) -> Result<CompositeType> {
        self.lock_ddl().await?;
        let name = truncate_name(name);
        self.refuse_new_type(space, name)?;
        let next = || self.next_object().0;
        let of = CompositeType::of(CompositeDef::new([next(), next(), next()], name, attributes)?)?;
        self.add_type(space, DataType::Composite(of), &system::composites_row()).await?;
        Ok(of)
    }

    fn refuse_new_type(&self, space: Space, name: &str) -> Result<()> {
        let catalog = self.catalog();
        super::schemas::require(&catalog, space)?;
        refuse_taken(&catalog, space, name)
    }

    /// `note`: what keeps programs away that do not know such types.
    async fn add_type(&mut self, space: Space, of: DataType, note: &[Datum]) -> Result<()> {
        self.insert(system_table(ENUMS), &row(of)?).await?;
        if self.change_definitions(system::CHECKS, |r| r[..2] == note[..2], |_| Some(note.to_vec())).await? == 0 {
            self.insert(system_table(system::CHECKS), note).await?;
        }
        self.place(ObjectId(of.pg_oid()), space).await?;
        let catalog = self.catalog().with_type(space, of)?;
        self.set_catalog(Arc::new(catalog));
        Ok(())
    }

    /// 42704 where there is no such type; else as [`EnumDef::with_label`].
    pub async fn add_enum_label(&mut self, of: EnumType, label: &str, place: Place<'_>) -> Result<()> {
        self.lock_ddl().await?;
        let oid = self.next_object().0;
        self.replace_enum(of, |def| def.with_label(label, place, oid)).await?;
        self.new_labels.push(NewLabel::new(of.def().oid, oid));
        Ok(())
    }

    /// 42704 where there is no such type; else as [`EnumDef::with_renamed`].
    pub async fn rename_enum_label(&mut self, of: EnumType, from: &str, to: &str) -> Result<()> {
        self.replace_enum(of, |def| def.with_renamed(from, to)).await
    }

    async fn replace_enum(&mut self, of: EnumType, change: impl FnOnce(&EnumDef) -> Result<EnumDef>) -> Result<()> {
        self.lock_ddl().await?;
        let DataType::Enum(now) = now(&self.catalog(), DataType::Enum(of))? else {
            return Err(EngineError::internal("an enum stays one"));
        };
        let of = EnumType::of(change(now.def())?)?;
        self.replace_type(DataType::Enum(of)).await
    }

    /// 42704 where there is no such type, or attribute; 42701 where an attribute has the name.
    pub async fn alter_composite(&mut self, of: CompositeType, change: AttributeChange) -> Result<()> {
        self.lock_ddl().await?;
        let DataType::Composite(now) = now(&self.catalog(), DataType::Composite(of))? else {
            return Err(EngineError::internal("a composite type stays one"));
        };
        let def = now.def();
        let mut all = def.all().to_vec();
        let place = |all: &[Attribute], name: &str| {
            let found = all.iter().position(|attribute| attribute.name == name);
            found.ok_or_else(|| {
                EngineError::new("42703", format!("column \"{name}\" of relation \"{}\" does not exist", def.name))
            })
        };
        let taken = |all: &[Attribute], name: &str| match all.iter().any(|attribute| attribute.name == name) {
            true => {
                let message = format!("column \"{name}\" of relation \"{}\" already exists", def.name);
                Err(EngineError::new("42701", message))
            }
            false => Ok(()),
        };
        match change {
            AttributeChange::Add(attribute) => {
                taken(&all, &attribute.name)?;
                all.push(attribute);
            }
            AttributeChange::Drop(name) => {
                let at = place(&all, &name)?;
                all[at].name = String::new();
            }
            AttributeChange::Rename { from, to } => {
                let at = place(&all, &from)?;
                taken(&all, &to)?;
                all[at].name = to;
            }
            AttributeChange::SetType { name, to } => {
                let at = place(&all, &name)?;
                all[at].data_type = to;
            }
        }
        let of = CompositeType::of(def.with(all)?)?;
        self.replace_type(DataType::Composite(of)).await
    }

    /// 42704 where there is no such type, 42710 where the new name is taken.
    pub async fn rename_type(&mut self, of: DataType, to: &str) -> Result<()> {
        self.lock_ddl().await?;
        let to = truncate_name(to);
        let catalog = self.catalog();
        refuse_taken(&catalog, space_of(&catalog, of)?, to)?;
        let renamed = match now(&catalog, of)? {
            DataType::Enum(of) => DataType::Enum(EnumType::of(of.def().renamed(to))?),
            DataType::Composite(of) => DataType::Composite(CompositeType::of(of.def().renamed(to))?),
            other => other,
        };
        self.replace_type(renamed).await
    }

    /// A type that is there gets another definition.
    async fn replace_type(&mut self, of: DataType) -> Result<()> {
        let catalog = self.catalog();
        let space = space_of(&catalog, of)?;
        let (oid, row) = (Datum::Int8(of.pg_oid().into()), row(of)?);
        let found = self.change_definitions(ENUMS, |r| r[0] == oid, |_| Some(row.clone())).await?;
        assert_eq!(found, 1, "each type has one definition");
        self.set_catalog(Arc::new(catalog.with_type(space, of)?));
        Ok(())
    }

    /// 42704 where there is no such type, 2BP01 where a column, an attribute or a domain is of it.
    pub async fn drop_type(&mut self, of: DataType) -> Result<()> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        let (of, space) = (now(&catalog, of)?, space_of(&catalog, of)?);
        let name = of.base_name();
        if let Some(user) = users(&catalog, of).first() {
            let error =
                EngineError::new("2BP01", format!("cannot drop type {name} because other objects depend on it"));
            let error = error.with_detail(format!("{user} depends on type {name}"));
            return Err(error.with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        let oid = Datum::Int8(of.pg_oid().into());
        self.change_definitions(ENUMS, |r| r[0] == oid, |_| None).await?;
        let oid = ObjectId(of.pg_oid());
        self.delete_access(oid).await?;
        self.displace(oid, space).await?;
        self.set_catalog(Arc::new(catalog.without_type(of).with_access_to(oid, None)));
        Ok(())
    }
}

/// Whether values of a type are of another, or are arrays of it.
fn is_of(used: DataType, of: DataType) -> bool {
    used.item().unwrap_or(used).pg_oid() == of.pg_oid()
}

/// The columns of a type, or of its arrays, attributes and domains, as PostgreSQL names them.
fn users(catalog: &Catalog, of: DataType) -> Vec<String> {
    // A computed column is dropped, and has values.
    let is_used = |column: &&ColumnDef| is_of(column.data_type, of) && (!column.dropped || column.computed().is_some());
    let of_table = catalog.tables().flat_map(|table| {
        table.columns.iter().filter(is_used).map(|column| format!("column {} of table {}", column.name, table.name))
    });
    let of_view = catalog.views().filter(|view| view.columns.iter().any(|column| is_used(&column)));
    let of_domain = catalog.domains().filter(|domain| is_of(domain.base, of));
    let of_type = catalog.composite_types().flat_map(|composite| {
        let def = composite.def();
        let found = def.attributes().filter(move |attribute| is_of(attribute.data_type, of));
        found.map(move |attribute| format!("column {} of composite type {}", attribute.name, def.name))
    });
    let views = of_view.map(|view| format!("view {}", view.name));
    of_table.chain(views).chain(of_domain.map(|domain| format!("type {}", domain.name))).chain(of_type).collect()
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
fn now(catalog: &Catalog, of: DataType) -> Result<DataType> {
    let found = catalog.own_types().find(|known| known.pg_oid() == of.pg_oid());
    found.ok_or_else(|| EngineError::new("42704", format!("type \"{}\" does not exist", of.base_name())))
}

fn space_of(catalog: &Catalog, of: DataType) -> Result<Space> {
    Ok(catalog.space_of_type(now(catalog, of)?.pg_oid()).expect("a type is in a space"))
}
