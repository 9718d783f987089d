//! Roles change, inside a transaction and under the lock of definitions, as tables do.
use crate::catalog::roles::{FIRST_ROLE, ROLES, Role, is_of_system, role_row, table};
use crate::catalog::truncate_name;
use crate::error::{EngineError, Result};
use crate::txn::Txn;
use crate::types::Datum;
use std::sync::Arc;
use terrace_storage::ObjectId;

fn undefined(name: &str) -> EngineError {
    EngineError::new("42704", format!("role \"{name}\" does not exist"))
}

impl Txn {
    /// 42710 where the name is taken. The oid is given here.
    pub async fn create_role(&mut self, mut role: Role) -> Result<()> {
        role.name = truncate_name(&role.name).to_owned();
        self.lock_ddl().await?;
        if self.catalog().role(&role.name).is_some() {
            return Err(EngineError::new("42710", format!("role \"{}\" already exists", role.name)));
        }
        role.oid = self.next_object().0;
        self.put_role(role).await
    }

    /// 42704 where there is no such role; 0A000 where the first role would lose what makes it the first.
    pub async fn alter_role(&mut self, name: &str, change: impl FnOnce(&mut Role)) -> Result<()> {
        self.lock_ddl().await?;
        let mut role = self.catalog().role(name).ok_or_else(|| undefined(name))?;
        let oid = role.oid;
        assert!(!is_of_system(oid), "the caller refuses to change roles of the system");
        change(&mut role);
        assert!(role.oid == oid && role.name == name, "a role stays itself");
        if name == FIRST_ROLE && !(role.login && role.superuser) {
            let message = format!("role \"{name}\" must stay a superuser that may log in");
            return Err(EngineError::unsupported(message));
        }
        self.delete_definitions(ROLES, 0, ObjectId(oid)).await?;
        self.put_role(role).await
    }

    /// 42704 where there is no such role, 2BP01 for the first one. The caller sees to it that nothing depends on it.
    pub async fn drop_role(&mut self, name: &str) -> Result<()> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        let role = catalog.role(name).ok_or_else(|| undefined(name))?;
        if name == FIRST_ROLE || is_of_system(role.oid) {
            let message = format!("cannot drop role {name} because it is required by the database system");
            return Err(EngineError::new("2BP01", message));
        }
        self.delete_members(|m| m.role == role.oid || m.member == role.oid).await?;
        self.delete_definitions(ROLES, 0, ObjectId(role.oid)).await?;
        let catalog = self.catalog();
        self.set_catalog(Arc::new(catalog.without_role(name)));
        Ok(())
    }

    async fn put_role(&mut self, role: Role) -> Result<()> {
        let row = role_row(&role);
        if !row.last().is_some_and(Datum::is_null) {
            self.note_privileges().await?;
        }
        self.insert(table(), &row).await?;
        let catalog = self.catalog().with_role(role);
        self.set_catalog(Arc::new(catalog));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
