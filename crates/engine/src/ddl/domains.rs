//! Domains are made, altered and dropped, inside a transaction and under the lock of definitions.
use super::enums::refuse_taken;
use super::system_table;
use crate::catalog::domains::{DOMAINS, Domain, row};
use crate::catalog::{ColumnDef, system, truncate_name};
use crate::error::{EngineError, Result};
use crate::txn::Txn;
use crate::types::Datum;
use std::sync::Arc;
use terrace_storage::ObjectId;

#[cfg(test)]
mod tests;

impl Txn {
    /// A number for a domain, or a constraint of one.
    pub fn new_oid(&self) -> u32 {
        self.next_object().0
    }

    /// 42710 where a type or a relation has the name. Its oid is of [`Txn::new_oid`].
    pub async fn create_domain(&mut self, domain: Domain) -> Result<()> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        let domain = Domain { name: truncate_name(&domain.name).to_owned(), ..domain };
        super::schemas::require(&catalog, domain.space)?;
        refuse_taken(&catalog, domain.space, &domain.name)?;
        self.place(ObjectId(domain.oid), domain.space).await?;
        self.insert(system_table(DOMAINS), &row(&domain)?).await?;
        self.note_feature(&system::domains_row()).await?;
        if domain.parent.is_some() {
            self.note_feature(&system::nested_domains_row()).await?;
        }
        self.set_catalog(Arc::new(catalog.with_domain(domain)));
        Ok(())
    }

    /// The notes of columns with digits, and of generated ones.
    pub(super) async fn note_column(&mut self, column: &ColumnDef) -> Result<()> {
        if column.digits.is_some() {
            self.note_feature(&system::digits_row()).await?;
        }
        match column.generated {
            Some(_) => self.note_feature(&system::generated_row()).await,
            None => Ok(()),
        }
    }

    /// What keeps programs away that do not know what rows keep.
    pub(super) async fn note_feature(&mut self, note: &[Datum]) -> Result<()> {
        let note = note.to_vec();
        if self.change_definitions(system::CHECKS, |r| r[..2] == note[..2], |_| Some(note.clone())).await? == 0 {
            self.insert(system_table(system::CHECKS), &note).await?;
        }
        Ok(())
    }

    /// The domain of the same oid, defined otherwise. 42710 where another has the name.
    pub async fn replace_domain(&mut self, domain: Domain) -> Result<()> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        let old = catalog.domain_of_oid(domain.oid).ok_or_else(|| undefined(&domain.name))?;
        if (old.space, &old.name) != (domain.space, &domain.name) {
            refuse_taken(&catalog, domain.space, &domain.name)?;
        }
        self.move_placement(ObjectId(domain.oid), old.space, domain.space).await?;
        let (oid, row) = (Datum::Int8(domain.oid.into()), row(&domain)?);
        let found = self.change_definitions(DOMAINS, |r| r[0] == oid, |_| Some(row.clone())).await?;
        assert_eq!(found, 1, "each domain has one definition");
        self.set_catalog(Arc::new(catalog.with_domain(domain)));
        Ok(())
    }

    /// No column may be of it: who calls has looked. 42704 where there is none.
    pub async fn drop_domain(&mut self, domain: &Domain) -> Result<()> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        let name = &domain.name;
        let domain = catalog.domain_of_oid(domain.oid).ok_or_else(|| undefined(name))?.clone();
        let is_of = |own: &Arc<Domain>| own.oid == domain.oid;
        for table in catalog.tables() {
            if let Some(column) = table.columns.iter().find(|column| column.domain.as_ref().is_some_and(is_of)) {
                let message = format!("cannot drop type {name} because other objects depend on it");
                let detail = format!("column {} of table {} depends on type {name}", column.name, table.name);
                return Err(EngineError::new("2BP01", message).with_detail(detail));
            }
        }
        if let Some(over) = catalog.domains().find(|other| other.oid != domain.oid && other.is_over(domain.oid)) {
            let message = format!("cannot drop type {name} because other objects depend on it");
            let detail = format!("type {} depends on type {name}", over.name);
            return Err(EngineError::new("2BP01", message).with_detail(detail));
        }
        let oid = Datum::Int8(domain.oid.into());
        self.change_definitions(DOMAINS, |r| r[0] == oid, |_| None).await?;
        let oid = ObjectId(domain.oid);
        self.delete_access(oid).await?;
        self.displace(oid, domain.space).await?;
        self.set_catalog(Arc::new(catalog.without_domain(domain.oid).with_access_to(oid, None)));
        Ok(())
    }
}

fn undefined(name: &str) -> EngineError {
    EngineError::new("42704", format!("type \"{name}\" does not exist"))
}
