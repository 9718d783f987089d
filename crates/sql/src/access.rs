//! Who acts, and what that role may do.
//!
//! 1. A statement acts as the session's current role; a view reads as its owner.
//! 2. What a role may do is looked up in the catalogue that the statement sees. So it changes when a GRANT commits, and
//!    nothing of it is kept but what names the version of that catalogue and the role (`by_key`).
//! 3. A relation is found by its name where the role may use the name's schema; what it may do with it is asked when
//!    the statement runs, when all names are known.
//! 4. Of a relation's columns a role may do what it may with the relation, and what it may with the column. A statement
//!    that names no column needs the privilege on any.
//! 5. A detail of an error shows of a row only what the role may read, or has written itself.
//! 6. A superuser may do everything. An owner may change and drop what it owns; what else it may do with it is in the
//!    acl, as it is for others.
use crate::parse::{self, types};
use crate::pgcatalog::SessionInfo;
use crate::values::is_sequence;
use std::collections::BTreeSet;
use terrace_engine::catalog::access::{Grant, PUBLIC, Rights, Securable, THE_DATABASE};
use terrace_engine::catalog::roles::{READ_ALL_DATA, WRITE_ALL_DATA};
use terrace_engine::{Among, Catalog, EngineError, Placing, RelationName, Result, Role, Shown, Space, Table};
use terrace_grammar::statement::TypeName;
use terrace_storage::ObjectId;

/// A role that acts.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    /// `None`: it has been dropped, and may do what everybody may.
    pub(crate) role: Option<Role>,
    /// It, and the roles whose privileges it has.
    has: BTreeSet<u32>,
    superuser: bool,
}

impl SessionInfo {
    /// Whose privileges count now. (Where there is no database, plans are only tested.)
    pub(crate) fn acting(&self) -> String {
        self.system.as_ref().map_or_else(|| self.user.clone(), |system| system.settings.lock().acting().to_string())
    }

    /// `session_user`.
    pub(crate) fn session_user(&self) -> String {
        self.system
            .as_ref()
            .map_or_else(|| self.user.clone(), |system| system.settings.lock().session_user().to_owned())
    }

    /// The current role.
    pub(crate) fn actor(&self, catalog: &Catalog) -> Actor {
        match &self.system {
            Some(_) => Actor::named(&self.acting(), catalog),
            None => Actor { role: None, has: BTreeSet::new(), superuser: true },
        }
    }
}

impl SessionInfo {
    /// 42501 where the current role may not look names up in the schema that a name says (invariant 3).
    pub(crate) fn permit_lookup(&self, catalog: &Catalog, name: &RelationName) -> Result<()> {
        match &name.among {
            Among::Schema(schema) => match catalog.schema(schema) {
                Some(space) => self.actor(catalog).permit_schema(catalog, space, Rights::USAGE),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The same of the name of a type.
    pub(crate) fn permit_type(&self, catalog: &Catalog, name: &TypeName) -> Result<()> {
        match parse::relation(&name.name) {
            Ok(named) if types::known(name).is_err() => self.permit_lookup(catalog, &named),
            _ => Ok(()),
        }
    }
}

impl Actor {
    pub(crate) fn named(name: &str, catalog: &Catalog) -> Actor {
        Actor::of(catalog.role(name), catalog)
    }

    pub(crate) fn of_oid(oid: u32, catalog: &Catalog) -> Actor {
        Actor::of(catalog.role_by_oid(oid), catalog)
    }

    fn of(role: Option<Role>, catalog: &Catalog) -> Actor {
        let superuser = role.as_ref().is_some_and(|role| role.superuser);
        let has = role.as_ref().filter(|_| !superuser).map(|role| catalog.with_memberships(role.oid, true));
        Actor { role, has: has.unwrap_or_default(), superuser }
    }

    pub(crate) fn is_superuser(&self) -> bool {
        self.superuser
    }

    pub(crate) fn oid(&self) -> u32 {
        self.role.as_ref().map_or(PUBLIC, |role| role.oid)
    }

    /// Whether it has all that another role may do.
    pub(crate) fn has(&self, role: u32) -> bool {
        self.superuser || self.has.contains(&role)
    }

    pub(crate) fn owns(&self, catalog: &Catalog, object: ObjectId) -> bool {
        self.has(catalog.owner(object))
    }

    /// What it may do, of all that there is, and what it may grant.
    pub(crate) fn rights(&self, catalog: &Catalog, object: ObjectId, kind: Securable) -> (Rights, Rights) {
        if self.superuser {
            return (kind.rights(), kind.rights());
        }
        let (rights, options) = self.granted(&catalog.acl(object, kind));
        // An owner may always grant.
        (rights | self.everywhere(kind), if self.owns(catalog, object) { kind.rights() } else { options })
    }

    /// What it may do with all objects of a kind, as a member of roles of the system.
    fn everywhere(&self, kind: Securable) -> Rights {
        let (reads, writes) = (self.has.contains(&READ_ALL_DATA), self.has.contains(&WRITE_ALL_DATA));
        let read = if reads { Rights::SELECT } else { Rights::NONE };
        let write = if writes { Rights::INSERT | Rights::UPDATE | Rights::DELETE } else { Rights::NONE };
        match kind {
            Securable::Table | Securable::Sequence => (read | write) & kind.rights(),
            Securable::Schema if reads || writes => Rights::USAGE,
            Securable::Schema | Securable::Database => Rights::NONE,
        }
    }

    /// The same of a column, beside what it may do with its relation.
    pub(crate) fn column_rights(&self, catalog: &Catalog, object: ObjectId, at: usize) -> (Rights, Rights) {
        if self.superuser {
            return (Rights::OF_COLUMNS, Rights::OF_COLUMNS);
        }
        let (rights, options) = self.granted(catalog.column_acl(object, at));
        (rights, if self.owns(catalog, object) { Rights::OF_COLUMNS } else { options })
    }

    /// What an acl lets it do, and grant.
    fn granted(&self, acl: &[Grant]) -> (Rights, Rights) {
        let own = acl.iter().filter(|grant| grant.grantee == PUBLIC || self.has.contains(&grant.grantee));
        own.fold((Rights::NONE, Rights::NONE), |(rights, options), grant| {
            (rights | grant.rights, options | grant.options)
        })
    }

    /// Whether it may do that with columns of a relation (invariant 4).
    pub(crate) fn may_with(
        &self,
        catalog: &Catalog,
        (object, kind): (ObjectId, Securable),
        right: Rights,
        columns: impl IntoIterator<Item = usize>,
    ) -> bool {
        if self.may(catalog, (object, kind), right, false) {
            return true;
        }
        let on = |at: usize| self.column_rights(catalog, object, at).0.covers(right);
        let mut columns = columns.into_iter().peekable();
        match columns.peek() {
            None => catalog.column_acls(object).any(|(at, _)| on(at)),
            Some(_) => columns.all(on),
        }
    }

    /// All of `rights`; `any`: or one of them.
    fn may(&self, catalog: &Catalog, (object, kind): (ObjectId, Securable), rights: Rights, any: bool) -> bool {
        let found = self.rights(catalog, object, kind).0;
        if any { !(found & rights).is_empty() } else { found.covers(rights) }
    }

    /// 42501 where it may not do that with columns of a table (invariant 4).
    pub(crate) fn permit_columns(
        &self,
        catalog: &Catalog,
        table: &Table,
        right: Rights,
        columns: impl IntoIterator<Item = usize>,
    ) -> Result<()> {
        match self.may_with(catalog, (table.oid, securable(table)), right, columns) {
            true => Ok(()),
            false => Err(denied(kind_of(table), &table.name)),
        }
    }

    /// 42501 where it may not do all of that with a table, or a sequence.
    pub(crate) fn permit(&self, catalog: &Catalog, table: &Table, rights: Rights) -> Result<()> {
        self.permit_if(catalog, table, rights, false)
    }

    /// The same, where one of the rights is enough.
    pub(crate) fn permit_any(&self, catalog: &Catalog, table: &Table, rights: Rights) -> Result<()> {
        self.permit_if(catalog, table, rights, true)
    }

    /// Whether it has one of the rights, whether it may use the schema or not.
    pub(crate) fn has_any(&self, catalog: &Catalog, table: &Table, rights: Rights) -> bool {
        self.superuser || self.may(catalog, (table.oid, securable(table)), rights, true)
    }

    fn permit_if(&self, catalog: &Catalog, table: &Table, rights: Rights, any: bool) -> Result<()> {
        if self.superuser {
            return Ok(());
        }
        if table.temporary.is_none() {
            self.permit_schema(catalog, table.space, Rights::USAGE)?;
        }
        match self.may(catalog, (table.oid, securable(table)), rights, any) {
            true => Ok(()),
            false => Err(denied(kind_of(table), &table.name)),
        }
    }

    /// 42501 where it may not do that with an object. `named`: as errors call it.
    pub(crate) fn permit_object(
        &self,
        catalog: &Catalog,
        object: (ObjectId, Securable),
        rights: Rights,
        named: (&str, &str),
    ) -> Result<()> {
        match self.may(catalog, object, rights, false) {
            true => Ok(()),
            false => Err(denied(named.0, named.1)),
        }
    }

    /// 42501 where it may not do that in a schema.
    pub(crate) fn permit_schema(&self, catalog: &Catalog, schema: Space, rights: Rights) -> Result<()> {
        let object = (schema.0, Securable::Schema);
        self.permit_object(catalog, object, rights, ("schema", &catalog.space_name(schema)))
    }

    /// 42501 where it may not do that with the database.
    pub(crate) fn permit_database(&self, catalog: &Catalog, rights: Rights) -> Result<()> {
        let object = (THE_DATABASE, Securable::Database);
        self.permit_object(catalog, object, rights, ("database", crate::pgcatalog::DATABASE))
    }

    /// Whether it is a member of a role, or that role.
    pub(crate) fn may_become(&self, catalog: &Catalog, role: u32) -> bool {
        self.superuser || catalog.with_memberships(self.oid(), false).contains(&role)
    }

    /// 42501 where it may not make something: in the session's space of temporary tables, or in a schema.
    pub(crate) fn permit_creation(&self, catalog: &Catalog, placing: Placing) -> Result<()> {
        if let Placing::In(space) = placing {
            return self.permit_schema(catalog, space, Rights::CREATE);
        }
        match self.may(catalog, (THE_DATABASE, Securable::Database), Rights::TEMPORARY, false) {
            true => Ok(()),
            false => {
                let database = crate::pgcatalog::DATABASE;
                let message = format!("permission denied to create temporary tables in database \"{database}\"");
                Err(EngineError::new("42501", message))
            }
        }
    }

    /// 42501 where it may not make something beside a table: an index, or another name for it.
    pub(crate) fn permit_beside(&self, catalog: &Catalog, table: &Table) -> Result<()> {
        match table.temporary {
            Some(_) => Ok(()),
            None => self.permit_schema(catalog, table.space, Rights::CREATE),
        }
    }

    /// 42501 where it does not own something.
    pub(crate) fn require_owner(&self, catalog: &Catalog, object: ObjectId, (kind, name): (&str, &str)) -> Result<()> {
        match self.owns(catalog, object) {
            true => Ok(()),
            false => Err(EngineError::new("42501", format!("must be owner of {kind} {name}"))),
        }
    }

    pub(crate) fn require_owner_of(&self, catalog: &Catalog, table: &Table) -> Result<()> {
        self.require_owner(catalog, table.oid, (kind_of(table), &table.name))
    }

    /// 42501 where it is no superuser, and may not make and change roles.
    pub(crate) fn require_createrole(&self, what: &str) -> Result<()> {
        match self.superuser || self.role.as_ref().is_some_and(|role| role.createrole) {
            true => Ok(()),
            false => Err(EngineError::new("42501", format!("permission denied{what}"))),
        }
    }
}

/// An error as the role may see it, which has written values to these columns (invariant 5).
pub(crate) fn hidden(mut error: EngineError, actor: &Actor, catalog: &Catalog, written: &[usize]) -> EngineError {
    let Some(shown) = error.shown.take() else { return error };
    let (object, shown) = *shown;
    if actor.may(catalog, (object, Securable::Table), Rights::SELECT, false) {
        return error;
    }
    let reads = |at: usize| actor.column_rights(catalog, object, at).0.covers(Rights::SELECT);
    match shown {
        Shown::Key(columns, instead) if !columns.iter().all(|at| reads(*at)) => error.detail = instead,
        Shown::Key(..) => {}
        Shown::Row(values) => {
            let table = catalog.table_by_oid(object);
            let name = |at: usize| table.map_or("", |table| table.columns[at].name.as_str());
            let seen = values.iter().filter(|(at, _)| written.contains(at) || reads(*at));
            let (names, values): (Vec<&str>, Vec<&str>) = seen.map(|(at, value)| (name(*at), value.as_str())).unzip();
            let detail = format!("Failing row contains ({}) = ({}).", names.join(", "), values.join(", "));
            error.detail = (!names.is_empty()).then_some(detail);
        }
    }
    error
}

pub(crate) fn securable(table: &Table) -> Securable {
    if is_sequence(table) { Securable::Sequence } else { Securable::Table }
}

pub(crate) fn kind_of(table: &Table) -> &'static str {
    if is_sequence(table) { "sequence" } else { "table" }
}

pub(crate) fn denied(kind: &str, name: &str) -> EngineError {
    EngineError::new("42501", format!("permission denied for {kind} {name}"))
}

/// A role by its name in a statement: CURRENT_USER and its kind are names, too. 42704
pub(crate) fn role_named(name: &str, info: &SessionInfo, catalog: &Catalog) -> Result<Role> {
    let named = match name {
        "current_user" | "current_role" => info.acting(),
        "session_user" => info.session_user(),
        other => other.to_owned(),
    };
    catalog.role(&named).ok_or_else(|| EngineError::new("42704", format!("role \"{named}\" does not exist")))
}

/// A privilege by its name. 42601
pub(crate) fn named_right(name: &str) -> Result<Rights> {
    let upper = name.to_ascii_uppercase();
    let upper = if upper == "TEMP" { "TEMPORARY" } else { &upper };
    let found = Rights::ALL.iter().find(|(_, _, own)| *own == upper).map(|(rights, ..)| *rights);
    found.ok_or_else(|| EngineError::new("42601", format!("unrecognized privilege type \"{name}\"")))
}
