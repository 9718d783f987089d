//! Roles: who may log in. A row each in a system table (*format*):
//!
//! | table | columns |
//! |---|---|
//! | 15 roles | oid, name, login, superuser, verifier (NULL: no password), attributes (bits, NULL: none: 1 NOINHERIT, 2 CREATEROLE, 4 CREATEDB, 8 REPLICATION, 16 BYPASSRLS) |
//!
//! 1. The first role is there even where the table has no row of it; it is a superuser that may log in, and stays so.
//! 2. The roles of the system are there, too, without rows; nobody logs in as one, changes one or drops one.
//! 3. What is stored of a password is a salted verifier, made above; this room compares nothing.
use super::{ColumnDef, Table};
use crate::error::{EngineError, Result};
use crate::types::{DataType, Datum};
use std::sync::{Arc, LazyLock};
use terrace_storage::ObjectId;

pub const ROLES: ObjectId = ObjectId(15);
/// The role that a new database has, and its object id.
pub const FIRST_ROLE: &str = "terrace";
pub(super) const FIRST_ROLE_OID: u32 = 10;

/// What a member of these may do stands where it is asked.
pub const READ_ALL_DATA: u32 = 6181;
pub const WRITE_ALL_DATA: u32 = 6182;
pub const READ_FILES: u32 = 4569;
pub const WRITE_FILES: u32 = 4570;
pub const SIGNAL_BACKEND: u32 = 4200;
/// The role that stands for the database's owner, to whom the schema public belongs. Nobody but superusers is it.
pub const DATABASE_OWNER: u32 = 6171;

/// The roles of the system, as PostgreSQL numbers them. Those that are named nowhere else allow what everybody may.
const OF_SYSTEM: [(u32, &str); 12] = [
    (DATABASE_OWNER, "pg_database_owner"),
    (READ_ALL_DATA, "pg_read_all_data"),
    (WRITE_ALL_DATA, "pg_write_all_data"),
    (MONITOR, "pg_monitor"),
    (3374, "pg_read_all_settings"),
    (3375, "pg_read_all_stats"),
    (3377, "pg_stat_scan_tables"),
    (READ_FILES, "pg_read_server_files"),
    (WRITE_FILES, "pg_write_server_files"),
    (4571, "pg_execute_server_program"),
    (SIGNAL_BACKEND, "pg_signal_backend"),
    (4544, "pg_checkpoint"),
];
const MONITOR: u32 = 3373;
/// Those that one of them is a member of.
const OF_MONITOR: [u32; 3] = [3374, 3375, 3377];

/// Roles of the system that are members of others: the role, and its member.
pub fn members_of_system() -> impl Iterator<Item = (u32, u32)> {
    OF_MONITOR.into_iter().map(|role| (role, MONITOR))
}

pub fn is_of_system(oid: u32) -> bool {
    OF_SYSTEM.iter().any(|(own, _)| *own == oid)
}

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

    pub fn of_system() -> impl Iterator<Item = Role> {
        OF_SYSTEM.iter().map(|(oid, name)| Role { oid: *oid, ..Role::new(*name) })
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
