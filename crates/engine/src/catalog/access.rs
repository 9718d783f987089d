//! Who owns what, who may do what with it, and which roles are members of which, as rows of system tables (*format*):
//!
//! | table | columns |
//! |---|---|
//! | 11 access | object (oid), owner (role's oid), acl (text, NULL: what the kind of object allows by itself), kind (NULL) |
//! | the same, of default privileges | schema (oid, 0: any), role (oid), acl, kind of the new objects (1 tables, 2 sequences, 3 schemas) |
//! | the same, of a column | object (oid), number of the column (from 1), acl, kind (4) |
//! | 12 members | role, member, grantor (oids), admin |
//!
//! An acl is a list of `grantee=rights+options/grantor`, in numbers: oids, and bits of [`Rights`]. Grantee 0 is PUBLIC.
//!
//! 1. An object without a row belongs to the first role, and allows what its kind allows by itself.
//! 2. A row goes with its object, and moves where TRUNCATE gives a table another object id.
//! 3. A role that owns an object, or that an acl names, is not dropped.
//! 4. No role is a member of itself, through whatever others.
//! 5. Default privileges count when an object is made, and go with their schema.
//! 6. A column has the privileges of its relation, and its own beside them. These go with the column, and where a
//!    relation has rows of columns it has a row of its own.
//!
//! Source: PostgreSQL 15 documentation, chapter 5.7 (Privileges) and chapter 22 (Database Roles).
pub use super::roles::DATABASE_OWNER;
use super::roles::{Role, members_of_system};
use super::system::{bad, object};
use super::{Catalog, ColumnDef, Table, next_version};
use crate::error::Result;
use crate::types::{DataType, Datum};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{BitAnd, BitOr, Not};
use std::sync::{Arc, LazyLock};
use terrace_storage::ObjectId;

pub(crate) const ACCESS: ObjectId = ObjectId(11);
pub(crate) const MEMBERS: ObjectId = ObjectId(12);
/// The schema public and the database, as PostgreSQL numbers them: no object of the user's has such an id.
pub const PUBLIC_SCHEMA: ObjectId = ObjectId(2200);
pub const THE_DATABASE: ObjectId = ObjectId(5);
/// The first role's.
pub const FIRST_OWNER: u32 = super::roles::FIRST_ROLE_OID;
/// Everybody.
pub const PUBLIC: u32 = 0;

/// Privileges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rights(pub u16);

impl Rights {
    pub const NONE: Rights = Rights(0);
    pub const INSERT: Rights = Rights(1);
    pub const SELECT: Rights = Rights(1 << 1);
    pub const UPDATE: Rights = Rights(1 << 2);
    pub const DELETE: Rights = Rights(1 << 3);
    pub const TRUNCATE: Rights = Rights(1 << 4);
    pub const REFERENCES: Rights = Rights(1 << 5);
    pub const TRIGGER: Rights = Rights(1 << 6);
    pub const USAGE: Rights = Rights(1 << 7);
    pub const CREATE: Rights = Rights(1 << 8);
    pub const TEMPORARY: Rights = Rights(1 << 9);
    pub const CONNECT: Rights = Rights(1 << 10);
    /// Those that a column may have.
    pub const OF_COLUMNS: Rights = Rights(0x27);

    /// By PostgreSQL's letters, in the order in which it shows them, with their names.
    pub const ALL: [(Rights, char, &str); 11] = [
        (Rights::INSERT, 'a', "INSERT"),
        (Rights::SELECT, 'r', "SELECT"),
        (Rights::UPDATE, 'w', "UPDATE"),
        (Rights::DELETE, 'd', "DELETE"),
        (Rights::TRUNCATE, 'D', "TRUNCATE"),
        (Rights::REFERENCES, 'x', "REFERENCES"),
        (Rights::TRIGGER, 't', "TRIGGER"),
        (Rights::USAGE, 'U', "USAGE"),
        (Rights::CREATE, 'C', "CREATE"),
        (Rights::TEMPORARY, 'T', "TEMPORARY"),
        (Rights::CONNECT, 'c', "CONNECT"),
    ];

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    pub fn covers(self, other: Rights) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Rights {
    type Output = Rights;
    fn bitor(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }
}

impl BitAnd for Rights {
    type Output = Rights;
    fn bitand(self, other: Rights) -> Rights {
        Rights(self.0 & other.0)
    }
}

impl Not for Rights {
    type Output = Rights;
    fn not(self) -> Rights {
        Rights(!self.0)
    }
}

/// Kinds of what has privileges.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Securable {
    /// A table or a view.
    Table,
    Sequence,
    Schema,
    Database,
}

impl Securable {
    /// All privileges that there are for it.
    pub fn rights(self) -> Rights {
        match self {
            Securable::Table => Rights(0x7f),
            Securable::Sequence => Rights::USAGE | Rights::SELECT | Rights::UPDATE,
            Securable::Schema => Rights::USAGE | Rights::CREATE,
            Securable::Database => Rights::CREATE | Rights::TEMPORARY | Rights::CONNECT,
        }
    }

    /// What everybody may, where nobody has said anything.
    pub fn of_public(self) -> Rights {
        match self {
            Securable::Table | Securable::Sequence | Securable::Schema => Rights::NONE,
            Securable::Database => Rights::TEMPORARY | Rights::CONNECT,
        }
    }
}

/// What a role has been granted by another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// 0: everybody.
    pub grantee: u32,
    pub grantor: u32,
    pub rights: Rights,
    /// Those that it may grant in its turn.
    pub options: Rights,
}

/// An object's owner and privileges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    pub owner: u32,
    /// `None`: what its kind allows by itself.
    pub acl: Option<Vec<Grant>>,
    /// What columns allow beside it, by their positions; none of these is empty.
    pub columns: BTreeMap<usize, Vec<Grant>>,
}

impl Access {
    /// Its columns allow nothing more.
    pub fn new(owner: u32, acl: Option<Vec<Grant>>) -> Access {
        Access { owner, acl, columns: BTreeMap::new() }
    }

    /// Whether it says nothing.
    pub(crate) fn is_usual(&self) -> bool {
        self.owner == FIRST_OWNER && self.acl.is_none() && self.columns.is_empty()
    }
}

/// Of which new objects default privileges are: what a role makes, in a schema (0: in any), of a kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DefaultOf {
    pub role: u32,
    pub schema: u32,
    pub kind: Securable,
}

pub(crate) type Defaults = BTreeMap<DefaultOf, Vec<Grant>>;

/// A role that is a member of another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Member {
    pub role: u32,
    pub member: u32,
    pub grantor: u32,
    /// It may make others members.
    pub admin: bool,
}

static DEFINITIONS: LazyLock<[Arc<Table>; 2]> = LazyLock::new(|| {
    use DataType::{Bool, Int4, Int8, Text};
    let table = |oid, name: &str, columns: &[(&str, DataType)]| {
        let columns = columns.iter().map(|(name, of)| ColumnDef::new(name, *of)).collect();
        Arc::new(Table::new(oid, name.into(), columns, Vec::new()))
    };
    [
        table(ACCESS, "access", &[("object", Int8), ("owner", Int8), ("acl", Text), ("kind", Int4)]),
        table(MEMBERS, "members", &[("role", Int8), ("member", Int8), ("grantor", Int8), ("admin", Bool)]),
    ]
});

/// The definition of one of the two tables.
pub(crate) fn table(oid: ObjectId) -> &'static Arc<Table> {
    &DEFINITIONS[usize::from(oid == MEMBERS)]
}

fn acl_text(acl: &[Grant]) -> Datum {
    let one = |g: &Grant| format!("{}={}+{}/{}", g.grantee, g.rights.0, g.options.0, g.grantor);
    Datum::text(acl.iter().map(one).collect::<Vec<_>>().join(","))
}

/// (Without a kind it is as before there were any: `system::may_lack_columns`.)
pub(crate) fn row(object: ObjectId, access: &Access) -> Vec<Datum> {
    let acl = access.acl.as_deref().map_or(Datum::Null, acl_text);
    vec![Datum::Int8(object.0.into()), Datum::Int8(access.owner.into()), acl]
}

pub(crate) fn read(row: &[Datum]) -> Result<(ObjectId, Access)> {
    fn grant(text: &str) -> Option<Grant> {
        let (grantee, rest) = text.split_once('=')?;
        let (rights, rest) = rest.split_once('+')?;
        let (options, grantor) = rest.split_once('/')?;
        let (rights, options) = (Rights(rights.parse().ok()?), Rights(options.parse().ok()?));
        Some(Grant { grantee: grantee.parse().ok()?, grantor: grantor.parse().ok()?, rights, options })
    }
    let read = || {
        let [of, owner, acl, _] = row else { return None };
        let acl = match acl {
            Datum::Null => None,
            Datum::Text(text) if text.is_empty() => Some(vec![]),
            Datum::Text(text) => Some(text.split(',').map(grant).collect::<Option<Vec<Grant>>>()?),
            _ => return None,
        };
        Some((object(of)?, Access::new(object(owner)?.0, acl)))
    };
    read().ok_or_else(|| bad("access"))
}

pub(crate) fn default_row(of: DefaultOf, acl: &[Grant]) -> Vec<Datum> {
    let kind = match of.kind {
        Securable::Table => 1,
        Securable::Sequence => 2,
        Securable::Schema => 3,
        Securable::Database => unreachable!("databases are not made"),
    };
    vec![Datum::Int8(of.schema.into()), Datum::Int8(of.role.into()), acl_text(acl), Datum::Int4(kind)]
}

/// Of a column, by its position.
pub(crate) fn column_row(object: ObjectId, at: usize, acl: &[Grant]) -> Vec<Datum> {
    let number = Datum::Int8(at as i64 + 1);
    vec![Datum::Int8(object.0.into()), number, acl_text(acl), Datum::Int4(OF_COLUMN)]
}

/// The kind in a row of a column.
pub(crate) const OF_COLUMN: i32 = 4;

/// What a row says of a column; `None`: it is no column's.
pub(crate) fn read_column(row: &[Datum]) -> Result<Option<(ObjectId, usize, Vec<Grant>)>> {
    let [_, _, _, Datum::Int4(OF_COLUMN)] = row else { return Ok(None) };
    let (object, Access { owner: number, acl, .. }) = read(row)?;
    let at = (number as usize).checked_sub(1);
    match (at, acl) {
        (Some(at), Some(acl)) if !acl.is_empty() => Ok(Some((object, at, acl))),
        _ => Err(bad("access")),
    }
}

/// What keeps programs away that know no privileges on columns.
pub(crate) fn column_note_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("column privileges"), Datum::text("")]
}

/// What a row says of default privileges; `None`: it is an object's.
pub(crate) fn read_default(row: &[Datum]) -> Result<Option<(DefaultOf, Vec<Grant>)>> {
    let kind = match row {
        [_, _, _, Datum::Null] => return Ok(None),
        [_, _, _, Datum::Int4(1)] => Securable::Table,
        [_, _, _, Datum::Int4(2)] => Securable::Sequence,
        [_, _, _, Datum::Int4(3)] => Securable::Schema,
        _ => return Err(bad("access")),
    };
    let (schema, access) = read(row)?;
    let acl = access.acl.ok_or_else(|| bad("access"))?;
    Ok(Some((DefaultOf { role: access.owner, schema: schema.0, kind }, acl)))
}

/// What keeps programs away that know no default privileges.
pub(crate) fn default_note_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("default privileges"), Datum::text("")]
}

pub(crate) fn member_row(member: &Member) -> Vec<Datum> {
    let oid = |oid: u32| Datum::Int8(oid.into());
    vec![oid(member.role), oid(member.member), oid(member.grantor), Datum::Bool(member.admin)]
}

pub(crate) fn read_member(row: &[Datum]) -> Result<Member> {
    let read = || {
        let [role, member, grantor, Datum::Bool(admin)] = row else { return None };
        let [role, member, grantor] = [object(role)?.0, object(member)?.0, object(grantor)?.0];
        Some(Member { role, member, grantor, admin: *admin })
    };
    read().ok_or_else(|| bad("members"))
}

/// What keeps programs away that know no privileges: they would let everybody do everything.
pub(crate) fn note_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("privileges"), Datum::text("")]
}

/// What a kind of object allows by itself: its owner everything, and everybody [`Securable::of_public`].
pub fn default_acl(kind: Securable, owner: u32) -> Vec<Grant> {
    let grant = |grantee, rights| Grant { grantee, grantor: owner, rights, options: Rights::NONE };
    let all = [grant(PUBLIC, kind.of_public()), grant(owner, kind.rights())];
    all.into_iter().filter(|grant| !grant.rights.is_empty()).collect()
}

/// Whether two say the same, in whatever order.
pub fn is_same_acl(one: &[Grant], other: &[Grant]) -> bool {
    one.len() == other.len() && one.iter().all(|grant| other.contains(grant))
}

/// The same of an object: everybody may use the schema that a new database has.
fn default_acl_of(object: ObjectId, kind: Securable, owner: u32) -> Vec<Grant> {
    let mut acl = default_acl(kind, owner);
    if object == PUBLIC_SCHEMA {
        acl.push(Grant { grantee: PUBLIC, grantor: owner, rights: Rights::USAGE, options: Rights::NONE });
    }
    acl
}

impl Catalog {
    /// The oid of an object's owner.
    pub fn owner(&self, object: ObjectId) -> u32 {
        let default = if object == PUBLIC_SCHEMA { DATABASE_OWNER } else { FIRST_OWNER };
        self.access.get(&object).map_or(default, |access| access.owner)
    }

    /// The name of an object's owner.
    pub fn owner_name(&self, object: ObjectId) -> String {
        let owner = self.owner(object);
        self.role_by_oid(owner).map_or_else(|| owner.to_string(), |role| role.name)
    }

    /// What has been said of an object's privileges; `None`: nothing.
    pub fn stated_acl(&self, object: ObjectId) -> Option<&[Grant]> {
        self.access.get(&object)?.acl.as_deref()
    }

    /// An object's privileges.
    pub fn acl(&self, object: ObjectId, kind: Securable) -> Vec<Grant> {
        self.stated_acl(object).map_or_else(|| default_acl_of(object, kind, self.owner(object)), <[Grant]>::to_vec)
    }

    /// What columns of an object allow beside what it allows, by their positions.
    pub fn column_acls(&self, object: ObjectId) -> impl Iterator<Item = (usize, &[Grant])> {
        let columns = self.access.get(&object).map(|access| &access.columns);
        columns.into_iter().flatten().map(|(at, acl)| (*at, acl.as_slice()))
    }

    /// What a column allows beside what its relation allows.
    pub fn column_acl(&self, object: ObjectId, at: usize) -> &[Grant] {
        self.access.get(&object).and_then(|access| access.columns.get(&at)).map_or(&[], Vec::as_slice)
    }

    /// What is said of an object.
    pub fn access_to(&self, object: ObjectId) -> Access {
        self.access.get(&object).cloned().unwrap_or_else(|| Access::new(self.owner(object), None))
    }

    /// What a role's new objects of a kind allow in a schema; `None`: what the kind allows by itself.
    pub fn acl_of_new(&self, role: u32, schema: ObjectId, kind: Securable) -> Option<Vec<Grant>> {
        let of = |schema| self.defaults.get(&DefaultOf { role, schema, kind });
        let usual = default_acl(kind, role);
        let mut acl = of(0).cloned().unwrap_or_else(|| usual.clone());
        for grant in of(schema.0).into_iter().flatten() {
            match acl.iter_mut().find(|known| (known.grantee, known.grantor) == (grant.grantee, grant.grantor)) {
                Some(known) => {
                    (known.rights, known.options) = (known.rights | grant.rights, known.options | grant.options);
                }
                None => acl.push(*grant),
            }
        }
        acl.sort_by_key(|grant| (grant.grantee, grant.grantor));
        (!is_same_acl(&acl, &usual)).then_some(acl)
    }

    pub fn defaults(&self) -> impl Iterator<Item = (&DefaultOf, &[Grant])> {
        self.defaults.iter().map(|(of, acl)| (of, acl.as_slice()))
    }

    pub(crate) fn with_defaults(&self, defaults: Defaults) -> Catalog {
        Catalog { defaults: Arc::new(defaults), version: next_version(), ..self.clone() }
    }

    /// Objects of which something is said.
    pub fn accesses(&self) -> impl Iterator<Item = (ObjectId, &Access)> {
        self.access.iter().map(|(object, access)| (*object, access))
    }

    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter()
    }

    pub fn role_by_oid(&self, oid: u32) -> Option<Role> {
        self.roles().chain(Role::of_system()).find(|role| role.oid == oid)
    }

    /// A role, and those that it is a member of, through others; `inherits`: only those whose privileges it has.
    pub fn with_memberships(&self, role: u32, inherits: bool) -> BTreeSet<u32> {
        let (mut found, mut left) = (BTreeSet::from([role]), vec![role]);
        while let Some(next) = left.pop() {
            if inherits && self.members.iter().any(|m| m.member == next) {
                let known = self.role_by_oid(next);
                if known.is_none_or(|role| !role.inherit) {
                    continue;
                }
            }
            let of = self.members.iter().filter(|m| m.member == next).map(|m| m.role);
            let of_system = members_of_system().filter(|(_, member)| *member == next).map(|(role, _)| role);
            let of = of.chain(of_system);
            left.extend(of.filter(|role| found.insert(*role)));
        }
        found
    }

    pub(crate) fn with_access(&self, access: BTreeMap<ObjectId, Access>, members: BTreeSet<Member>) -> Catalog {
        Catalog { access: Arc::new(access), members: Arc::new(members), version: next_version(), ..self.clone() }
    }

    /// This catalogue with other access to an object; `None`: with none that is said.
    pub(crate) fn with_access_to(&self, object: ObjectId, access: Option<Access>) -> Catalog {
        let mut all = BTreeMap::clone(&self.access);
        match access {
            Some(access) => drop(all.insert(object, access)),
            None => drop(all.remove(&object)),
        }
        self.with_access(all, BTreeSet::clone(&self.members))
    }
}
