//! CREATE, ALTER and DROP ROLE (or USER).
//!
//! A role is a user that logs in. Superusers make and change roles; every role may change its own password. There are
//! no privileges on tables: every role that may log in may use all tables, and GRANT is refused (0A000).
use crate::error::unsupported;
use crate::scram;
use crate::statement::run::Run;
use terrace_engine::{EngineError, Result, Role};
use terrace_grammar::statement::{Name, Role as Written, RoleOption, RoleOptionKind as Kind};

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
            // They take away privileges that do not exist here, so there is nothing to do.
            Kind::CreateDb(false) | Kind::CreateRole(false) | Kind::Replication(false) => Change::Nothing,
            Kind::BypassRls(false) | Kind::Inherit(true) => Change::Nothing,
            Kind::CreateDb(true) => return Err(unsupported("the role option CREATEDB")),
            Kind::CreateRole(true) => return Err(unsupported("the role option CREATEROLE")),
            Kind::Replication(true) => return Err(unsupported("the role option REPLICATION")),
            Kind::BypassRls(true) => return Err(unsupported("the role option BYPASSRLS")),
            Kind::Inherit(false) => return Err(unsupported("the role option NOINHERIT")),
            Kind::ConnectionLimit(_) => return Err(unsupported("the role option CONNECTION LIMIT")),
            Kind::ValidUntil(_) => return Err(unsupported("the role option VALID UNTIL")),
            Kind::InRole(_) | Kind::Roles(_) | Kind::Admin(_) => {
                return Err(unsupported("membership of roles in roles"));
            }
        })
    }

    fn session_role(&self) -> Option<Role> {
        self.engine.catalog().role(&self.info.user)
    }

    fn require_superuser(&self, what: &str) -> Result<()> {
        match self.session_role() {
            Some(role) if role.superuser => Ok(()),
            _ => Err(EngineError::new("42501", format!("permission denied to {what}"))
                .with_hint("Only superusers make and change roles.")),
        }
    }

    pub(crate) async fn create_role(&self, create: &Written) -> Result<Vec<EngineError>> {
        self.require_superuser("create role")?;
        let changes = self.role_changes(&create.options)?;
        let name = create.name.name.clone();
        if name.starts_with("pg_") {
            return Err(EngineError::new("42939", format!("role name \"{name}\" is reserved")));
        }
        let mut role = Role::new(name);
        role.login = create.user;
        changes.into_iter().for_each(|change| change.apply(&mut role));
        let run = async { self.cell.lock().await.open().create_role(role).await };
        self.cancel.run(run).await.map(|()| vec![])
    }

    pub(crate) async fn alter_role(&self, alter: &Written) -> Result<Vec<EngineError>> {
        let name = &alter.name.name;
        // Every role may change its own password.
        if *name != self.info.user || !alter.options.iter().all(|option| matches!(option.kind, Kind::Password(_))) {
            self.require_superuser("alter role")?;
        }
        let changes = self.role_changes(&alter.options)?;
        let change = |role: &mut Role| changes.into_iter().for_each(|change| change.apply(role));
        let run = async { self.cell.lock().await.open().alter_role(name, change).await };
        self.cancel.run(run).await.map(|()| vec![])
    }

    pub(crate) async fn drop_role(&self, name: &str) -> Result<()> {
        self.require_superuser("drop role")?;
        if name == self.info.user {
            return Err(EngineError::new("55006", "current user cannot be dropped"));
        }
        let run = async { self.cell.lock().await.open().drop_role(name).await };
        self.cancel.run(run).await
    }
}

enum Change {
    Login(bool),
    Superuser(bool),
    Password(Option<String>),
    Nothing,
}

impl Change {
    fn apply(self, role: &mut Role) {
        match self {
            Change::Login(may) => role.login = may,
            Change::Superuser(is) => role.superuser = is,
            Change::Password(verifier) => role.verifier = verifier,
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
