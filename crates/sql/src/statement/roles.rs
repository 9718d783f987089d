//! CREATE, ALTER and DROP ROLE (or USER).
//!
//! A role may log in, or be what others are members of. Superusers make and change roles, and so do roles with
//! CREATEROLE, but for superusers; every role may change its own password.
use crate::access::{Actor, kind_of, role_named};
use crate::error::unsupported;
use crate::parse::qualified::shown_relation;
use crate::scram;
use crate::statement::run::Run;
use crate::statement::views::shown_view;
use terrace_engine::catalog::access::{Grant, Securable, THE_DATABASE};
use terrace_engine::catalog::roles::is_of_system;
use terrace_engine::{Catalog, DataType, EngineError, Result, Role, Space};
use terrace_grammar::statement::{Name, Role as Written, RoleOption, RoleOptionKind as Kind};
use terrace_storage::ObjectId;

impl Run<'_> {
    /// The options as they change a role.
    fn role_changes(&self, options: &[RoleOption]) -> Result<Vec<Change>> {
        for (number, option) in options.iter().enumerate() {
            let same = |other: &RoleOption| std::mem::discriminant(&other.kind) == std::mem::discriminant(&option.kind);
            if options[..number].iter().any(same) {
                return Err(EngineError::new("42601", "conflicting or redundant options"));
            }
        }
        options.iter().map(|option| self.role_change(option)).collect()
    }

    fn role_change(&self, option: &RoleOption) -> Result<Change> {
        Ok(match &option.kind {
            Kind::Login(may) => Change::Login(*may),
            Kind::SuperUser(is) => Change::Superuser(*is),
            Kind::Password(None) => Change::Password(None),
            Kind::Password(Some(text)) => {
                let env = self.engine.env();
                let (a, b) = (env.random_u64().to_be_bytes(), env.random_u64().to_be_bytes());
                let mut salt = [0; 16];
                salt[..8].copy_from_slice(&a);
                salt[8..].copy_from_slice(&b);
                Change::Password(scram::stored(text, salt)?)
            }
            Kind::CreateDb(may) => Change::CreateDb(*may),
            Kind::CreateRole(may) => Change::CreateRole(*may),
            Kind::Replication(may) => Change::Replication(*may),
            Kind::BypassRls(may) => Change::BypassRls(*may),
            Kind::Inherit(does) => Change::Inherit(*does),
            Kind::ConnectionLimit(-1) => Change::Nothing,
            Kind::ConnectionLimit(_) => return Err(unsupported("the role option CONNECTION LIMIT")),
            Kind::ValidUntil(text) if text == "infinity" => Change::Nothing,
            Kind::ValidUntil(_) => return Err(unsupported("the role option VALID UNTIL")),
            // `members_of` looks at them.
            Kind::InRole(_) | Kind::Roles(_) | Kind::Admin(_) => Change::Nothing,
        })
    }

    pub(crate) async fn create_role(&self, create: &Written) -> Result<Vec<EngineError>> {
        let catalog = self.begin_statement().await;
        let actor = self.info.actor(&catalog);
        actor.require_createrole(" to create role")?;
        let changes = self.role_changes(&create.options)?;
        refuse_superuser(&actor, &changes, "create")?;
        let name = create.name.name.clone();
        if name.starts_with("pg_") {
            let error = EngineError::new("42939", format!("role name \"{name}\" is reserved"));
            return Err(error.with_detail("Role names starting with \"pg_\" are reserved."));
        }
        if matches!(name.as_str(), "current_user" | "current_role" | "session_user") {
            // In GRANT and the like it would be the current role.
            return Err(unsupported(format!("a role with the name \"{name}\"")));
        }
        let mut role = Role::new(name.clone());
        role.login = create.user;
        changes.into_iter().for_each(|change| change.apply(&mut role));
        let run = async { self.cell.lock().await.open().create_role(role).await };
        self.cancel.run(run).await?;
        self.members_of(&name, &create.options).await
    }

    /// What the options say of memberships.
    async fn members_of(&self, name: &str, options: &[RoleOption]) -> Result<Vec<EngineError>> {
        let catalog = self.begin_statement().await;
        let (mut notices, own) = (vec![], role_named(name, self.info, &catalog)?);
        let grantor = self.info.actor(&catalog).oid();
        for option in options {
            let (names, admin) = match &option.kind {
                Kind::InRole(names) => {
                    for name in names {
                        let role = role_named(&name.name, self.info, &catalog)?;
                        self.add_member(&role, &own, grantor, false, &mut notices).await?;
                    }
                    continue;
                }
                Kind::Roles(names) => (names, false),
                Kind::Admin(names) => (names, true),
                _ => continue,
            };
            for name in names {
                let member = role_named(&name.name, self.info, &catalog)?;
                self.add_member(&own, &member, grantor, admin, &mut notices).await?;
            }
        }
        Ok(notices)
    }

    pub(crate) async fn alter_role(&self, alter: &Written) -> Result<Vec<EngineError>> {
        let catalog = self.begin_statement().await;
        let actor = self.info.actor(&catalog);
        let role = role_named(&alter.name.name, self.info, &catalog)?;
        if is_of_system(role.oid) {
            let error = EngineError::new("42939", format!("role name \"{}\" is reserved", role.name));
            return Err(error.with_detail("Cannot alter reserved roles."));
        }
        let changes = self.role_changes(&alter.options)?;
        // Every role may change its own password.
        if role.oid != actor.oid() || !alter.options.iter().all(|option| matches!(option.kind, Kind::Password(_))) {
            if role.superuser && !actor.is_superuser() {
                let message = "must be superuser to alter superuser roles or change superuser attribute";
                return Err(EngineError::new("42501", message));
            }
            actor.require_createrole("")?;
            refuse_superuser(&actor, &changes, "alter")?;
        }
        let change = |role: &mut Role| changes.into_iter().for_each(|change| change.apply(role));
        let run = async { self.cell.lock().await.open().alter_role(&role.name, change).await };
        self.cancel.run(run).await?;
        self.members_of(&role.name, &alter.options).await
    }

    /// 2BP01 where something belongs to it, or names it.
    pub(crate) async fn drop_role(&self, name: &str) -> Result<()> {
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let actor = self.info.actor(&catalog);
        actor.require_createrole(" to drop role")?;
        let missing = || EngineError::new("42704", format!("role \"{name}\" does not exist"));
        let role = catalog.role(name).ok_or_else(missing)?;
        if role.superuser && !actor.is_superuser() {
            return Err(EngineError::new("42501", "must be superuser to drop superusers"));
        }
        if role.oid == actor.oid() {
            return Err(EngineError::new("55006", "current user cannot be dropped"));
        }
        if *name == self.info.session_user() || *name == self.info.user {
            return Err(EngineError::new("55006", "session user cannot be dropped"));
        }
        let needs = dependents(&catalog, role.oid);
        if !needs.is_empty() {
            let message = format!("role \"{name}\" cannot be dropped because some objects depend on it");
            return Err(EngineError::new("2BP01", message).with_detail(needs.join("\n")));
        }
        let run = async { self.cell.lock().await.open().drop_role(name).await };
        self.cancel.run(run).await
    }
}

/// 42501 where a role that is no superuser says who is one.
fn refuse_superuser(actor: &Actor, changes: &[Change], verb: &str) -> Result<()> {
    let special = |change: &Change| match change {
        Change::Superuser(is) => (*is || verb == "alter").then_some("superuser"),
        Change::Replication(is) => (*is || verb == "alter").then_some("replication"),
        Change::BypassRls(is) => (*is || verb == "alter").then_some("bypassrls"),
        _ => None,
    };
    match changes.iter().find_map(special).filter(|_| !actor.is_superuser()) {
        Some(_) if verb == "alter" => {
            Err(EngineError::new("42501", "must be superuser to alter this attribute of a role"))
        }
        Some("superuser") => Err(EngineError::new("42501", "must be superuser to create superusers")),
        Some("replication") => Err(EngineError::new("42501", "must be superuser to create replication users")),
        Some(_) => Err(EngineError::new("42501", "must be superuser to create bypassrls users")),
        None => Ok(()),
    }
}

/// What depends on a role, as PostgreSQL lists it.
fn dependents(catalog: &Catalog, role: u32) -> Vec<String> {
    let mut lines = vec![];
    let names = |grant: &Grant| grant.grantee == role || grant.grantor == role;
    for (object, access) in catalog.accesses() {
        let named = object_name(catalog, object);
        if access.owner == role {
            lines.push(format!("owner of {named}"));
        } else if access.acl.iter().flatten().any(names) {
            lines.push(format!("privileges for {named}"));
        }
        for (at, _) in access.columns.iter().filter(|(_, acl)| acl.iter().any(names)) {
            lines.push(format!("privileges for column {} of {named}", column_name(catalog, object, *at)));
        }
    }
    for (of, acl) in catalog.defaults() {
        let kind = match of.kind {
            Securable::Sequence => "sequences",
            Securable::Schema => "schemas",
            Securable::Table | Securable::Database => "relations",
        };
        let maker = catalog.role_by_oid(of.role).map_or_else(String::new, |role| role.name);
        let space = Space(ObjectId(of.schema));
        let within = if of.schema == 0 { String::new() } else { format!(" in schema {}", catalog.space_name(space)) };
        let what = format!("default privileges on new {kind} belonging to role {maker}{within}");
        if of.role == role {
            lines.push(format!("owner of {what}"));
        } else if acl.iter().any(names) {
            lines.push(format!("privileges for {what}"));
        }
    }
    lines
}

fn column_name(catalog: &Catalog, object: ObjectId, at: usize) -> String {
    let of_table = catalog.table_by_oid(object).map(|table| &table.columns);
    let columns = of_table.or_else(|| catalog.views().find(|view| view.oid == object).map(|view| &view.columns));
    columns.and_then(|columns| columns.get(at)).map_or_else(|| at.to_string(), |column| column.name.clone())
}

fn object_name(catalog: &Catalog, object: ObjectId) -> String {
    let table = || {
        let table = catalog.table_by_oid(object)?;
        Some(format!("{} {}", kind_of(table), shown_relation(table.space, &table.name, catalog)))
    };
    let view = || catalog.views().find(|view| view.oid == object).map(|view| shown_view(view, catalog));
    let of_type = || {
        catalog
            .own_types()
            .filter_map(DataType::own)
            .find(|of| of.oid == object.0)
            .map(|of| format!("type {}", of.name))
    };
    let of_domain =
        || catalog.domains().find(|domain| domain.oid == object.0).map(|domain| format!("type {}", domain.name));
    match object {
        schema if catalog.is_schema(Space(schema)) => format!("schema {}", catalog.space_name(Space(schema))),
        THE_DATABASE => format!("database {}", crate::pgcatalog::DATABASE),
        _ => {
            table().or_else(view).or_else(of_type).or_else(of_domain).unwrap_or_else(|| format!("object {}", object.0))
        }
    }
}

enum Change {
    Login(bool),
    Superuser(bool),
    Password(Option<String>),
    CreateDb(bool),
    CreateRole(bool),
    Replication(bool),
    BypassRls(bool),
    Inherit(bool),
    Nothing,
}

impl Change {
    fn apply(self, role: &mut Role) {
        match self {
            Change::Login(may) => role.login = may,
            Change::Superuser(is) => role.superuser = is,
            Change::Password(verifier) => role.verifier = verifier,
            Change::CreateDb(may) => role.createdb = may,
            Change::CreateRole(may) => role.createrole = may,
            Change::Replication(may) => role.replication = may,
            Change::BypassRls(may) => role.bypassrls = may,
            Change::Inherit(does) => role.inherit = does,
            Change::Nothing => {}
        }
    }
}

pub(crate) fn role_name(name: &Name) -> Result<String> {
    match name.parts() {
        [part] => Ok(part.name.clone()),
        _ => Err(unsupported(format!("the name {} of a role", name.shown()))),
    }
}
