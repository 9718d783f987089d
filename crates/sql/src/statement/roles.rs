//! CREATE, ALTER and DROP ROLE (or USER).
//!
//! A role is who logs in; superusers make and change roles, everybody may change their own password. There are no
//! privileges on tables: whoever may log in may use all of them, and GRANT says that it does not exist (0A000).
use crate::error::unsupported;
use crate::parse::fold;
use crate::scram;
use crate::statement::run::Run;
use datafusion::sql::sqlparser::ast::{
    AlterRoleOperation, CreateRole, Expr, Ident, ObjectName, Password, RoleOption, Value,
};
use terrace_engine::{EngineError, Result, Role};

impl Run<'_> {
    /// The options as they change a role.
    fn role_changes(&self, options: &[RoleOption]) -> Result<Vec<Change>> {
        options.iter().map(|option| self.role_change(option)).collect()
    }

    fn role_change(&self, option: &RoleOption) -> Result<Change> {
        Ok(match option {
            RoleOption::Login(may) => Change::Login(*may),
            RoleOption::SuperUser(is) => Change::Superuser(*is),
            RoleOption::Password(Password::NullPassword) => Change::Password(None),
            RoleOption::Password(Password::Password(Expr::Value(value))) => match &value.value {
                Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
                    let env = self.engine.env();
                    let (a, b) = (env.random_u64().to_be_bytes(), env.random_u64().to_be_bytes());
                    let mut salt = [0; 16];
                    salt[..8].copy_from_slice(&a);
                    salt[8..].copy_from_slice(&b);
                    Change::Password(scram::stored(text, salt)?)
                }
                _ => return Err(EngineError::new("42601", "syntax error: a password is a string")),
            },
            // What they withhold does not exist, so nobody has it.
            RoleOption::CreateDB(false) | RoleOption::CreateRole(false) | RoleOption::Replication(false) => {
                Change::Nothing
            }
            RoleOption::BypassRLS(false) | RoleOption::Inherit(true) => Change::Nothing,
            other => return Err(unsupported(format!("the role option {other}"))),
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

    pub(crate) async fn create_role(&self, create: &CreateRole) -> Result<()> {
        self.require_superuser("create role")?;
        let members = [&create.in_role, &create.in_group, &create.role, &create.user, &create.admin];
        if members.iter().any(|m| !m.is_empty()) {
            return Err(unsupported("membership of roles in roles"));
        }
        if create.authorization_owner.is_some() || create.connection_limit.is_some() || create.valid_until.is_some() {
            return Err(unsupported("this form of CREATE ROLE"));
        }
        if create.if_not_exists {
            return Err(EngineError::new("42601", "syntax error: CREATE ROLE has no IF NOT EXISTS"));
        }
        let given = [
            create.login.map(RoleOption::Login),
            create.superuser.map(RoleOption::SuperUser),
            create.password.clone().map(RoleOption::Password),
            create.create_db.map(RoleOption::CreateDB),
            create.create_role.map(RoleOption::CreateRole),
            create.replication.map(RoleOption::Replication),
            create.bypassrls.map(RoleOption::BypassRLS),
            create.inherit.map(RoleOption::Inherit),
        ];
        let changes = self.role_changes(&given.into_iter().flatten().collect::<Vec<_>>())?;
        for name in &create.names {
            let name = role_name(name)?;
            if name.starts_with("pg_") || name == "public" || name == "none" {
                return Err(EngineError::new("42939", format!("role name \"{name}\" is reserved")));
            }
            let mut role = Role::new(name);
            changes.iter().for_each(|change| change.clone().apply(&mut role));
            let run = async { self.cell.lock().await.open().create_role(role).await };
            self.cancel.run(run).await?;
        }
        Ok(())
    }

    pub(crate) async fn alter_role(&self, name: &Ident, operation: &AlterRoleOperation) -> Result<()> {
        let name = fold(name);
        let AlterRoleOperation::WithOptions { options } = operation else {
            return Err(unsupported("this form of ALTER ROLE"));
        };
        // Everybody may change their own password.
        if name != self.info.user || !options.iter().all(|option| matches!(option, RoleOption::Password(_))) {
            self.require_superuser("alter role")?;
        }
        let changes = self.role_changes(options)?;
        let change = |role: &mut Role| changes.into_iter().for_each(|change| change.apply(role));
        let run = async { self.cell.lock().await.open().alter_role(&name, change).await };
        self.cancel.run(run).await
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

#[derive(Clone)]
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

pub(crate) fn role_name(name: &ObjectName) -> Result<String> {
    match name.0.as_slice() {
        [part] => part.as_ident().map(fold).ok_or_else(|| unsupported(format!("the name {name}"))),
        _ => Err(EngineError::new("42601", format!("syntax error at \"{name}\": a role has a simple name"))),
    }
}
