//! Owners, privileges and memberships change, inside a transaction and under the lock of definitions.
use super::system_table;
use crate::catalog::access::{
    ACCESS, Access, DefaultOf, Defaults, Grant, MEMBERS, Member, OF_COLUMN, column_note_row, column_row,
    default_note_row, default_row, member_row, note_row, row,
};
use crate::catalog::roles::Role;
use crate::catalog::{Catalog, system};
use crate::error::{EngineError, Result};
use crate::txn::Txn;
use crate::types::Datum;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use terrace_storage::ObjectId;

#[cfg(test)]
mod tests;

impl Txn {
    /// Says who owns an object, and what others may do with it. The caller has the lock of definitions.
    pub async fn set_access(&mut self, object: ObjectId, access: Access) -> Result<()> {
        self.lock_ddl().await?;
        let stated = (!access.is_usual()).then_some(access);
        self.put_access(object, stated.as_ref()).await?;
        let catalog = self.catalog().with_access_to(object, stated);
        self.set_catalog(Arc::new(catalog));
        Ok(())
    }

    async fn put_access(&mut self, object: ObjectId, access: Option<&Access>) -> Result<()> {
        if self.catalog().accesses().any(|(known, _)| known == object) {
            let key = Datum::Int8(object.0.into());
            let of_it = |row: &[Datum]| row[3].is_null() || row[3] == Datum::Int4(OF_COLUMN);
            self.change_definitions(ACCESS, |row| row[0] == key && of_it(row), |_| None).await?;
        }
        if let Some(access) = access {
            self.insert_access(object, access).await?;
            self.note_privileges().await?;
        }
        Ok(())
    }

    async fn insert_access(&mut self, object: ObjectId, access: &Access) -> Result<()> {
        self.insert(system_table(ACCESS), &row(object, access)).await?;
        for (at, acl) in &access.columns {
            self.insert(system_table(ACCESS), &column_row(object, *at, acl)).await?;
        }
        if !access.columns.is_empty() {
            self.note_feature(&column_note_row()).await?;
        }
        Ok(())
    }

    /// What is said of a column goes with it.
    pub(super) async fn delete_column_access(&mut self, object: ObjectId, at: usize) -> Result<()> {
        let mut access = self.catalog().access_to(object);
        match access.columns.remove(&at) {
            Some(_) => self.set_access(object, access).await,
            None => Ok(()),
        }
    }

    /// Says what new objects allow; `None`: what their kind allows by itself.
    pub async fn set_default_acl(&mut self, of: DefaultOf, acl: Option<Vec<Grant>>) -> Result<()> {
        self.lock_ddl().await?;
        let mut defaults = Defaults::clone(&self.catalog().defaults);
        if defaults.remove(&of).is_some() {
            let old = default_row(of, &[]);
            let is_it = |row: &[Datum]| row[..2] == old[..2] && row[3] == old[3];
            self.change_definitions(ACCESS, is_it, |_| None).await?;
        }
        if let Some(acl) = acl {
            self.insert(system_table(ACCESS), &default_row(of, &acl)).await?;
            self.note_feature(&default_note_row()).await?;
            defaults.insert(of, acl);
        }
        let catalog = self.catalog().with_defaults(defaults);
        self.set_catalog(Arc::new(catalog));
        Ok(())
    }

    /// Those in a schema that goes.
    pub(super) async fn delete_defaults_in(&mut self, schema: ObjectId) -> Result<()> {
        let doomed: Vec<DefaultOf> =
            self.catalog().defaults().map(|(of, _)| *of).filter(|of| of.schema == schema.0).collect();
        for of in doomed {
            self.set_default_acl(of, None).await?;
        }
        Ok(())
    }

    /// Keeps programs away that know no privileges.
    pub(super) async fn note_privileges(&mut self) -> Result<()> {
        let note = note_row();
        if self.change_definitions(system::CHECKS, |r| r[..2] == note[..2], |_| Some(note.clone())).await? == 0 {
            self.insert(system_table(system::CHECKS), &note).await?;
        }
        Ok(())
    }

    /// What is said of an object goes with it: its row here; from the catalogue the caller takes it.
    pub(super) async fn delete_access(&mut self, object: ObjectId) -> Result<()> {
        self.put_access(object, None).await
    }

    /// What is said of a table that is emptied (catalog::access, invariant 2). `catalog` has the new one, and `before`
    /// the old one; the old one's row is gone.
    pub(super) async fn move_access(
        &mut self,
        catalog: Catalog,
        before: &Catalog,
        (old, new): (ObjectId, ObjectId),
    ) -> Result<Catalog> {
        let Some((_, access)) = before.accesses().find(|(known, _)| *known == old) else { return Ok(catalog) };
        self.insert_access(new, access).await?;
        Ok(catalog.with_access_to(old, None).with_access_to(new, Some(access.clone())))
    }

    /// Makes a role a member of another, or says anew whether it may make others members. 0LP01 where the two would be
    /// members of each other.
    pub async fn put_member(&mut self, member: Member) -> Result<()> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        if catalog.with_memberships(member.role, false).contains(&member.member) {
            let name = |oid| catalog.role_by_oid(oid).map_or_else(|| oid.to_string(), |role: Role| role.name);
            let (role, member) = (name(member.role), name(member.member));
            let message = format!("role \"{role}\" is a member of role \"{member}\"");
            return Err(EngineError::new("0LP01", message));
        }
        self.change_members(|known: &Member| (known.role, known.member) == (member.role, member.member), Some(member))
            .await
    }

    /// Ends memberships.
    pub async fn delete_members(&mut self, which: impl Fn(&Member) -> bool + Send + Sync) -> Result<()> {
        self.lock_ddl().await?;
        self.change_members(which, None).await
    }

    async fn change_members(
        &mut self,
        gone: impl Fn(&Member) -> bool + Send + Sync,
        new: Option<Member>,
    ) -> Result<()> {
        let catalog = self.catalog();
        let (doomed, mut members): (BTreeSet<Member>, BTreeSet<Member>) =
            catalog.members().copied().partition(|m| gone(m));
        if !doomed.is_empty() {
            let rows: Vec<Vec<Datum>> = doomed.iter().map(member_row).collect();
            self.change_definitions(MEMBERS, |row| rows.iter().any(|gone| gone == row), |_| None).await?;
        }
        if let Some(new) = new {
            self.insert(system_table(MEMBERS), &member_row(&new)).await?;
            self.note_privileges().await?;
            members.insert(new);
        }
        let access: BTreeMap<ObjectId, Access> = catalog.accesses().map(|(of, access)| (of, access.clone())).collect();
        self.set_catalog(Arc::new(catalog.with_access(access, members)));
        Ok(())
    }
}
