//! ALTER DEFAULT PRIVILEGES: what the objects allow that a role will make.
//!
//! 1. What is said for all schemas takes the place of what a kind of object allows by itself; what is said for a schema
//!    comes on top of it.
//! 2. Who grants is the role that makes the objects.
//!
//! Source: PostgreSQL 15 documentation, ALTER DEFAULT PRIVILEGES.
use crate::access::{named_right, role_named};
use crate::statement::grant::{Given, give, refuse_others, revoke};
use crate::statement::run::Run;
use terrace_engine::catalog::access::{DefaultOf, PUBLIC, Rights, Securable, default_acl, is_same_acl};
use terrace_engine::{Catalog, EngineError, Result};
use terrace_grammar::statement::{DefaultPrivileges, Grant, Granted, Ident, ObjectKind, Privilege};

impl Run<'_> {
    pub(crate) async fn alter_default_privileges(&self, alter: &DefaultPrivileges) -> Result<Vec<EngineError>> {
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let (kind, rights) = rights_of(&alter.grant)?;
        if kind == Securable::Schema && !alter.schemas.is_empty() {
            let message = "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS";
            return Err(EngineError::new("0LP01", message));
        }
        let grantees = self.grantees(&alter.grant.grantees, &catalog)?;
        if alter.grant.option && !alter.grant.revoke && grantees.contains(&PUBLIC) {
            return Err(EngineError::new("0LP01", "grant options can only be granted to roles"));
        }
        let roles = self.makers(&alter.roles, &catalog)?;
        let named = alter.schemas.iter().map(|schema| Ok(Self::schema_named(&schema.name, &catalog)?.0.0));
        let mut schemas = named.collect::<Result<Vec<u32>>>()?;
        if schemas.is_empty() {
            schemas.push(0);
        }
        for role in roles {
            for schema in &schemas {
                let of = DefaultOf { role, schema: *schema, kind };
                let acl = changed(&*self.begin_statement().await, of, &alter.grant, &grantees, rights)?;
                let set = async { self.cell.lock().await.open().set_default_acl(of, acl).await };
                self.cancel.run(set).await?;
            }
        }
        Ok(vec![])
    }

    /// The roles whose objects are meant. 42501 where the current one is no member of one.
    fn makers(&self, named: &[Ident], catalog: &Catalog) -> Result<Vec<u32>> {
        let actor = self.info.actor(catalog);
        if named.is_empty() {
            return Ok(vec![actor.oid()]);
        }
        let one = |name: &Ident| {
            let role = role_named(&name.name, self.info, catalog)?;
            match actor.may_become(catalog, role.oid) {
                true => Ok(role.oid),
                false => Err(EngineError::new("42501", format!("must be member of role \"{}\"", role.name))),
            }
        };
        named.iter().map(one).collect()
    }
}

/// The kind of the objects, and the privileges. 0LP01, 42601
fn rights_of(grant: &Grant) -> Result<(Securable, Rights)> {
    let (kind, called) = match &grant.on {
        Granted::New(ObjectKind::Table) => (Securable::Table, "relation"),
        Granted::New(ObjectKind::Sequence) => (Securable::Sequence, "sequence"),
        Granted::New(ObjectKind::Schema) => (Securable::Schema, "schema"),
        other => return Err(EngineError::internal(format!("default privileges on {other:?}"))),
    };
    let mut rights = Rights::NONE;
    for Privilege { name, columns, .. } in &grant.privileges {
        if !columns.is_empty() {
            return Err(EngineError::new("0LP01", "default privileges cannot be set for columns"));
        }
        let Some(Ident { name, .. }) = name else { return Ok((kind, kind.rights())) };
        rights = rights | named_right(name)?;
    }
    refuse_others(rights, kind.rights(), called)?;
    Ok((kind, rights))
}

/// What is said after the statement; `None`: nothing (invariant 1).
fn changed(
    catalog: &Catalog,
    of: DefaultOf,
    grant: &Grant,
    grantees: &[u32],
    rights: Rights,
) -> Result<Option<Vec<terrace_engine::catalog::access::Grant>>> {
    let usual = if of.schema == 0 { default_acl(of.kind, of.role) } else { vec![] };
    let stated = catalog.defaults().find(|(known, _)| **known == of).map(|(_, acl)| acl.to_vec());
    let mut acl = stated.unwrap_or_else(|| usual.clone());
    for grantee in grantees {
        let given = Given { grantee: *grantee, grantor: of.role, rights, option: grant.option };
        match grant.revoke {
            true => revoke(&mut acl, of.role, given, grant.cascade)?,
            false => give(&mut acl, of.role, given)?,
        }
    }
    // As PostgreSQL keeps them.
    acl.sort_by_key(|grant| (grant.grantee, grant.grantor));
    Ok((!is_same_acl(&acl, &usual)).then_some(acl))
}
