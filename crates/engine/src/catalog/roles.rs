//! Roles: who may log in. A row each in a system table (*format*):
//!
//! | table | columns |
//! |---|---|
//! | 15 roles | oid, name, login, superuser, verifier (NULL: no password) |
//!
//! 1. The first role is there even where the table has no row of it; it is a superuser that may log in, and stays so.
//! 2. What is stored of a password is a salted verifier, made above; this room compares nothing.
use super::{ColumnDef, Table};
use crate::error::{EngineError, Result};
use crate::types::{DataType, Datum};
use std::sync::{Arc, LazyLock};
use terrace_storage::ObjectId;

pub const ROLES: ObjectId = ObjectId(15);
/// The role that a new database has, and its object id.
pub const FIRST_ROLE: &str = "terrace";
const FIRST_ROLE_OID: u32 = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub oid: u32,
    pub name: String,
    pub login: bool,
    /// May make and change roles.
    pub superuser: bool,
    /// `None`: it has no password, so nobody can log in with one.
    pub verifier: Option<String>,
}

impl Role {
    /// A role that may do nothing yet; its oid is given when it is created.
    pub fn new(name: impl Into<String>) -> Role {
        Role { oid: 0, name: name.into(), login: false, superuser: false, verifier: None }
    }

    pub(crate) fn first() -> Role {
        Role { oid: FIRST_ROLE_OID, login: true, superuser: true, ..Role::new(FIRST_ROLE) }
    }
}

static TABLE: LazyLock<Arc<Table>> = LazyLock::new(|| {
    use DataType::{Bool, Int8, Text};
    let columns = [("oid", Int8), ("name", Text), ("login", Bool), ("superuser", Bool), ("verifier", Text)];
    let columns = columns.iter().map(|(n, t)| ColumnDef::new(n, *t)).collect();
    Arc::new(Table::new(ROLES, "roles".into(), columns, Vec::new()))
});

pub(crate) fn table() -> &'static Arc<Table> {
    &TABLE
}

pub(crate) fn role_row(role: &Role) -> Vec<Datum> {
    vec![
        Datum::Int8(role.oid.into()),
        Datum::text(role.name.as_str()),
        Datum::Bool(role.login),
        Datum::Bool(role.superuser),
        role.verifier.as_deref().map_or(Datum::Null, Datum::text),
    ]
}

pub(crate) fn read_role(row: &[Datum]) -> Result<Role> {
    let bad = || EngineError::damaged("the catalogue's table of roles holds a row that makes no sense");
    let [Datum::Int8(oid), Datum::Text(name), Datum::Bool(login), Datum::Bool(superuser), verifier] = row else {
        return Err(bad());
    };
    let verifier = match verifier {
        Datum::Null => None,
        Datum::Text(text) => Some(text.to_string()),
        _ => return Err(bad()),
    };
    let oid = u32::try_from(*oid).map_err(|_| bad())?;
    Ok(Role { oid, name: name.to_string(), login: *login, superuser: *superuser, verifier })
}
