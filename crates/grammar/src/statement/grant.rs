//! GRANT and REVOKE.

use super::{At, Ident, Name, ObjectKind};

/// GRANT or REVOKE of privileges on objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    pub at: At,
    pub revoke: bool,
    /// WITH GRANT OPTION, or GRANT OPTION FOR.
    pub option: bool,
    /// At least one.
    pub privileges: Vec<Privilege>,
    pub on: Granted,
    pub grantees: Vec<Grantee>,
    pub granted_by: Option<Ident>,
    pub cascade: bool,
}

/// A privilege, or the role that is granted.
#[derive(Clone, Debug, PartialEq)]
pub struct Privilege {
    pub at: At,
    /// None: ALL.
    pub name: Option<Ident>,
    pub columns: Vec<Ident>,
}

/// ALTER DEFAULT PRIVILEGES.
#[derive(Clone, Debug, PartialEq)]
pub struct DefaultPrivileges {
    pub at: At,
    /// FOR ROLE; empty: the current one.
    pub roles: Vec<Ident>,
    /// Empty: all.
    pub schemas: Vec<Ident>,
    /// On [`Granted::New`].
    pub grant: Grant,
}

/// What privileges are on.
#[derive(Clone, Debug, PartialEq)]
pub enum Granted {
    /// What will be made: tables, sequences or schemas.
    New(ObjectKind),
    Tables(Vec<Name>),
    Sequences(Vec<Name>),
    Schemas(Vec<Ident>),
    Databases(Vec<Ident>),
    /// ALL TABLES IN SCHEMA, or ALL SEQUENCES.
    AllIn {
        sequences: bool,
        schemas: Vec<Ident>,
    },
}

/// Who is granted something.
#[derive(Clone, Debug, PartialEq)]
pub enum Grantee {
    Public,
    /// A role, or CURRENT_USER and its kind as a name.
    Role(Ident),
}

/// GRANT or REVOKE of roles; ALTER GROUP.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantRole {
    pub at: At,
    /// It is ALTER GROUP.
    pub group: bool,
    pub revoke: bool,
    /// WITH ADMIN OPTION, or ADMIN OPTION FOR.
    pub option: bool,
    /// At least one.
    pub roles: Vec<Privilege>,
    pub members: Vec<Grantee>,
    pub granted_by: Option<Ident>,
    pub cascade: bool,
}
