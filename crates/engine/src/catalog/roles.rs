//! Roles: who may log in. A row each in a system table (*format*):
//!
//! | table | columns |
//! |---|---|
//! | 15 roles | oid, name, login, superuser, verifier (NULL: no password), attributes (bits, NULL: none: 1 NOINHERIT, 2 CREATEROLE, 4 CREATEDB, 8 REPLICATION, 16 BYPASSRLS) |
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
pub(super) const FIRST_ROLE_OID: u32 = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub oid: u32,
    pub name: String,
    pub login: bool,
    /// May do everything.
    pub superuser: bool,
    /// Has the privileges of the roles that it is a member of.
    pub inherit: bool,
    /// May make and change roles that are no superusers.
    pub createrole: bool,
    /// These three are kept and shown; there is nothing that they allow.
    pub createdb: bool,
    pub replication: bool,
    pub bypassrls: bool,
    /// `None`: it has no password, so nobody can log in with one.
    pub verifier: Option<String>,
}

impl Role {
    /// A role that may do nothing yet; its oid is given when it is created.
    pub fn new(name: impl Into<String>) -> Role {
        Role {
            oid: 0,
            name: name.into(),
            login: false,
            superuser: false,
            inherit: true,
            createrole: false,
            createdb: false,
            replication: false,
            bypassrls: false,
            verifier: None,
        }
    }

    pub(crate) fn first() -> Role {
        Role { oid: FIRST_ROLE_OID, login: true, superuser: true, ..Role::new(FIRST_ROLE) }
    }

    fn attributes(&self) -> i32 {
        let bits = [!self.inherit, self.createrole, self.createdb, self.replication, self.bypassrls];
        bits.iter().enumerate().map(|(at, set)| i32::from(*set) << at).sum()
    }
}

static TABLE: LazyLock<Arc<Table>> = LazyLock::new(|| {
    use DataType::{Bool, Int4, Int8, Text};
    let columns =
        [("oid", Int8), ("name", Text), ("login", Bool), ("superuser", Bool), ("verifier", Text), ("attributes", Int4)];
    let columns = columns.iter().map(|(n, t)| ColumnDef::new(n, *t)).collect();
    Arc::new(Table::new(ROLES, "roles".into(), columns, Vec::new()))
});

pub(crate) fn table() -> &'static Arc<Table> {
    &TABLE
}

/// (Without attributes it is as before there were any: `system::may_lack_columns`.)
pub(crate) fn role_row(role: &Role) -> Vec<Datum> {
    let mut row = vec![
        Datum::Int8(role.oid.into()),
        Datum::text(role.name.as_str()),
        Datum::Bool(role.login),
        Datum::Bool(role.superuser),
        role.verifier.as_deref().map_or(Datum::Null, Datum::text),
    ];
    match role.attributes() {
        0 => {}
        bits => row.push(Datum::Int4(bits)),
    }
    row
}

pub(crate) fn read_role(row: &[Datum]) -> Result<Role> {
    let bad = || EngineError::damaged("the catalogue's table of roles holds a row that makes no sense");
    let [Datum::Int8(oid), Datum::Text(name), Datum::Bool(login), Datum::Bool(superuser), verifier, bits] = row else {
        return Err(bad());
    };
    let bits = match bits {
        Datum::Null => 0,
        Datum::Int4(bits) => *bits,
        _ => return Err(bad()),
    };
    let has = |at: i32| bits >> at & 1 == 1;
    let verifier = match verifier {
        Datum::Null => None,
        Datum::Text(text) => Some(text.to_string()),
        _ => return Err(bad()),
    };
    let oid = u32::try_from(*oid).map_err(|_| bad())?;
    Ok(Role {
        oid,
        name: name.to_string(),
        login: *login,
        superuser: *superuser,
        inherit: !has(0),
        createrole: has(1),
        createdb: has(2),
        replication: has(3),
        bypassrls: has(4),
        verifier,
    })
}
