//! GRANT and REVOKE.
//!
//! 1. They work on the newest definitions, under the lock of definitions.
//! 2. A privilege is granted by its object's owner (also by a superuser in the owner's place), or by a role that has it
//!    with the option to grant it. Who loses that option loses what it granted by it, too: with CASCADE, or not at all
//!    (2BP01).
//! 3. A column has privileges beside those of its relation. Who may grant a privilege on the relation may grant it on
//!    each column, and what is revoked of the relation is revoked of its columns, too.
//!
//! Source: PostgreSQL 15 documentation, GRANT and REVOKE.
use crate::access::{Actor, denied, kind_of, named_right, role_named, securable};
use crate::error::{missing_relation, undefined_column, undefined_schema, unsupported};
use crate::parse::relation;
use crate::pgcatalog::{self, SessionInfo};
use crate::statement::outcome::notice;
use crate::statement::run::Run;
use std::collections::{BTreeMap, BTreeSet};
use terrace_engine::catalog::access::{Access, DATABASE_OWNER, Grant, Member, PUBLIC, Rights, Securable, THE_DATABASE};
use terrace_engine::{Catalog, EngineError, Result, Role, Space};
use terrace_grammar::statement::{self as tree, Granted, Grantee, Ident, Name, Privilege};
use terrace_storage::ObjectId;

type Notices = Vec<EngineError>;

/// What a privilege is on.
#[derive(Clone)]
struct Target {
    object: ObjectId,
    securable: Securable,
    /// As errors call it.
    kind: &'static str,
    name: String,
}

/// Whose acl changes: a whole object's, or that of one of its columns.
struct Of<'t> {
    target: &'t Target,
    /// Its position and its name.
    column: Option<(usize, &'t str)>,
}

impl Of<'_> {
    /// As warnings call it.
    fn shown(&self) -> String {
        match self.column {
            None => format!("\"{}\"", self.target.name),
            Some((_, column)) => format!("column \"{column}\" of relation \"{}\"", self.target.name),
        }
    }

    fn denied(&self) -> EngineError {
        match self.column {
            None => denied(self.target.kind, &self.target.name),
            Some(_) => EngineError::new("42501", format!("permission denied for {}", self.shown())),
        }
    }

    /// The acl, and what tells who may grant.
    fn acls(&self, catalog: &Catalog) -> (Vec<Grant>, Vec<Grant>) {
        let of_whole = catalog.acl(self.target.object, self.target.securable);
        match self.column {
            None => (of_whole.clone(), of_whole),
            Some((at, _)) => {
                let own = catalog.column_acl(self.target.object, at);
                (own.to_vec(), [of_whole.as_slice(), own].concat())
            }
        }
    }

    fn rights(&self) -> Rights {
        if self.column.is_some() { Rights::OF_COLUMNS } else { self.target.securable.rights() }
    }

    /// Whether a role may do something with it, or grant something on it.
    fn is_known_to(&self, actor: &Actor, catalog: &Catalog) -> bool {
        let (rights, options) = actor.rights(catalog, self.target.object, self.target.securable);
        let (of_column, of_column_options) = match self.column {
            None => (Rights::NONE, Rights::NONE),
            Some((at, _)) => actor.column_rights(catalog, self.target.object, at),
        };
        !((rights | options | of_column | of_column_options) & self.rights()).is_empty()
    }
}

/// What is granted or revoked.
#[derive(Clone, Copy)]
struct Wanted {
    rights: Rights,
    /// ALL.
    all: bool,
    revoke: bool,
    option: bool,
    cascade: bool,
}

impl Run<'_> {
    /// GRANT or REVOKE of privileges.
    pub(crate) async fn grant(&self, grant: &tree::Grant) -> Result<Notices> {
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let actor = self.info.actor(&catalog);
        if let Some(by) = &grant.granted_by
            && role_named(&by.name, self.info, &catalog)?.oid != actor.oid()
        {
            return Err(EngineError::new("0A000", "grantor must be current user"));
        }
        let grantees = self.grantees(&grant.grantees, &catalog)?;
        if grant.option && !grant.revoke && grantees.contains(&PUBLIC) {
            return Err(EngineError::new("0LP01", "grant options can only be granted to roles"));
        }
        let mut notices = vec![];
        for target in self.targets(&grant.on, &catalog)? {
            let catalog = self.begin_statement().await;
            let access = granted(&catalog, (&actor, &grantees), grant, &target, &mut notices)?;
            if access != catalog.access_to(target.object) {
                let set = async { self.cell.lock().await.open().set_access(target.object, access).await };
                self.cancel.run(set).await?;
            }
        }
        Ok(notices)
    }

    pub(super) fn grantees(&self, grantees: &[Grantee], catalog: &Catalog) -> Result<Vec<u32>> {
        let of = |grantee: &Grantee| match grantee {
            Grantee::Public => Ok(PUBLIC),
            Grantee::Role(name) => role_named(&name.name, self.info, catalog).map(|role| role.oid),
        };
        grantees.iter().map(of).collect()
    }

    fn targets(&self, on: &Granted, catalog: &Catalog) -> Result<Vec<Target>> {
        let actor = self.info.actor(catalog);
        match on {
            Granted::Tables(names) => names.iter().map(|name| named_table(name, catalog, self.info)).collect(),
            Granted::Sequences(names) => {
                let one = |name: &Name| match named_table(name, catalog, self.info)? {
                    target if target.securable == Securable::Sequence => Ok(target),
                    target => Err(EngineError::new("42809", format!("\"{}\" is not a sequence", target.name))),
                };
                names.iter().map(one).collect()
            }
            Granted::Schemas(names) => names.iter().map(|name| named_schema(name, catalog)).collect(),
            Granted::Databases(names) => names.iter().map(named_database).collect(),
            Granted::New(_) => Err(EngineError::internal("GRANT is on what is there")),
            Granted::AllIn { sequences, schemas } => {
                let looked_up = |schema: &Ident| {
                    let target = named_schema(schema, catalog)?;
                    actor.permit_schema(catalog, Space(target.object), Rights::USAGE)?;
                    Ok(target.object)
                };
                let schemas = schemas.iter().map(looked_up);
                let schemas = schemas.collect::<Result<Vec<ObjectId>>>()?;
                let is_in = |space: Space| schemas.contains(&space.0);
                let wanted = if *sequences { Securable::Sequence } else { Securable::Table };
                let tables = catalog.tables().filter(|t| is_in(t.space) && securable(t) == wanted);
                let tables = tables.map(|t| Target::of_table(t.oid, wanted, kind_of(t), &t.name));
                let views = catalog.views().filter(|view| !sequences && is_in(view.space));
                let views = views.map(|v| Target::of_table(v.oid, Securable::Table, "view", &v.name));
                Ok(tables.chain(views).collect())
            }
        }
    }

    /// GRANT or REVOKE of roles.
    pub(crate) async fn grant_role(&self, grant: &tree::GrantRole) -> Result<Notices> {
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let actor = self.info.actor(&catalog);
        let grantor = match &grant.granted_by {
            Some(by) => role_named(&by.name, self.info, &catalog)?.oid,
            None => actor.oid(),
        };
        if grantor != actor.oid() && !actor.is_superuser() {
            return Err(EngineError::new("42501", "must be superuser to set grantor"));
        }
        let members: Vec<Role> = grant
            .members
            .iter()
            .map(|member| match member {
                Grantee::Public => Err(EngineError::new("42704", "role \"public\" does not exist")),
                Grantee::Role(name) => role_named(&name.name, self.info, &catalog),
            })
            .collect::<Result<_>>()?;
        let mut notices = vec![];
        for Privilege { name, columns, .. } in &grant.roles {
            if !columns.is_empty() {
                return Err(EngineError::new("0LP01", "column names cannot be included in GRANT/REVOKE ROLE"));
            }
            let Some(Ident { name, .. }) = name else {
                return Err(EngineError::new("42704", "role \"all\" does not exist"));
            };
            let role = role_named(name, self.info, &catalog)?;
            for member in &members {
                match grant.revoke {
                    false => self.add_member(&role, member, grantor, grant.option, &mut notices).await?,
                    true => self.remove_member(&role, member, grant.option, &mut notices).await?,
                }
            }
        }
        Ok(notices)
    }

    /// 42501 where the current role may not say who is a member of a role.
    fn require_admin(&self, catalog: &Catalog, role: &Role) -> Result<()> {
        let actor = self.info.actor(catalog);
        if actor.is_superuser() {
            return Ok(());
        }
        if role.superuser {
            return Err(EngineError::new("42501", "must be superuser to alter superusers"));
        }
        let admin = catalog.with_memberships(actor.oid(), false);
        let may = |m: &Member| m.role == role.oid && m.admin && admin.contains(&m.member);
        match actor.role.as_ref().is_some_and(|own| own.createrole) || catalog.members().any(may) {
            true => Ok(()),
            false => Err(EngineError::new("42501", format!("must have admin option on role \"{}\"", role.name))),
        }
    }

    /// Makes a role a member of another.
    pub(crate) async fn add_member(
        &self,
        role: &Role,
        member: &Role,
        grantor: u32,
        admin: bool,
        notices: &mut Notices,
    ) -> Result<()> {
        let catalog = self.begin_statement().await;
        self.require_admin(&catalog, role)?;
        if role.oid == DATABASE_OWNER {
            let message = format!("role \"{}\" cannot have explicit members", role.name);
            return Err(EngineError::new("XX000", message));
        }
        if member.oid == DATABASE_OWNER {
            let message = format!("role \"{}\" cannot be a member of any role", member.name);
            return Err(EngineError::new("XX000", message));
        }
        if let Some(known) = catalog.members().find(|m| m.role == role.oid && m.member == member.oid)
            && (known.admin || !admin)
        {
            let message = format!("role \"{}\" is already a member of role \"{}\"", member.name, role.name);
            notices.push(notice("00000", message));
            return Ok(());
        }
        let new = Member { role: role.oid, member: member.oid, grantor, admin };
        let put = async { self.cell.lock().await.open().put_member(new).await };
        self.cancel.run(put).await
    }

    async fn remove_member(&self, role: &Role, member: &Role, option: bool, notices: &mut Notices) -> Result<()> {
        let catalog = self.begin_statement().await;
        self.require_admin(&catalog, role)?;
        let is_it = |m: &Member| m.role == role.oid && m.member == member.oid;
        let Some(known) = catalog.members().find(|m| is_it(m)).copied() else {
            let message = format!("role \"{}\" is not a member of role \"{}\"", member.name, role.name);
            notices.push(notice("01000", message));
            return Ok(());
        };
        let change = async {
            let mut slot = self.cell.lock().await;
            match option {
                true => slot.open().put_member(Member { admin: false, ..known }).await,
                false => slot.open().delete_members(is_it).await,
            }
        };
        self.cancel.run(change).await
    }
}

impl Target {
    fn of_table(object: ObjectId, securable: Securable, kind: &'static str, name: &str) -> Target {
        Target { object, securable, kind, name: name.to_owned() }
    }
}

/// A table, a view or a sequence. 42P01, 42809
fn named_table(name: &Name, catalog: &Catalog, info: &SessionInfo) -> Result<Target> {
    let named = relation(name)?;
    info.permit_lookup(catalog, &named)?;
    if let Some(view) = catalog.view(&named) {
        return Ok(Target::of_table(view.oid, Securable::Table, "view", &view.name));
    }
    match catalog.table(&named) {
        Some(table) => Ok(Target::of_table(table.oid, securable(table), kind_of(table), &table.name)),
        None if catalog.relation_exists(&named) => Err(EngineError::new("42809", format!("\"{named}\" is an index"))),
        None => Err(missing_relation(catalog, &named)),
    }
}

fn named_schema(name: &Ident, catalog: &Catalog) -> Result<Target> {
    match catalog.schema(&name.name) {
        Some(space) => Ok(Target::of_table(space.0, Securable::Schema, "schema", &name.name)),
        None if pgcatalog::is_schema(&name.name) => {
            Err(unsupported(format!("a privilege on the schema {}", name.name)))
        }
        None => Err(undefined_schema(&name.name)),
    }
}

fn named_database(name: &Ident) -> Result<Target> {
    match name.name == pgcatalog::DATABASE {
        true => Ok(Target::of_table(THE_DATABASE, Securable::Database, "database", pgcatalog::DATABASE)),
        false => Err(EngineError::new("3D000", format!("database \"{}\" does not exist", name.name))),
    }
}

/// What is said of an object after the statement.
fn granted(
    catalog: &Catalog,
    (actor, grantees): (&Actor, &[u32]),
    grant: &tree::Grant,
    target: &Target,
    notices: &mut Notices,
) -> Result<Access> {
    let mut access = catalog.access_to(target.object);
    let (rights, all) = rights_of(&grant.privileges, target, &grant.on, notices)?;
    let tree::Grant { revoke, option, cascade, .. } = *grant;
    let wanted = Wanted { rights, all, revoke, option, cascade };
    if !rights.is_empty() {
        let of = Of { target, column: None };
        if let Some(acl) = changed(catalog, actor, &of, grantees, wanted, notices)? {
            access.acl = Some(acl);
        }
    }
    let names = live_names(catalog, target);
    let mut columns = named_columns(&grant.privileges, target, &names, notices)?;
    if revoke && !(rights & Rights::OF_COLUMNS).is_empty() {
        // Invariant 3.
        for (at, _) in &names {
            let of = columns.entry(*at).or_default();
            *of = *of | (rights & Rights::OF_COLUMNS);
        }
    }
    for (at, name) in &names {
        let Some(rights) = columns.get(at).copied() else { continue };
        let of = Of { target, column: Some((*at, name)) };
        let wanted = Wanted { rights, all: rights == Rights::OF_COLUMNS, ..wanted };
        match changed(catalog, actor, &of, grantees, wanted, notices)? {
            Some(acl) if acl.is_empty() => drop(access.columns.remove(at)),
            Some(acl) => drop(access.columns.insert(*at, acl)),
            None => {}
        }
    }
    Ok(access)
}

/// The columns of a relation, by their positions.
fn live_names(catalog: &Catalog, target: &Target) -> Vec<(usize, String)> {
    let of_table = catalog.table_by_oid(target.object).map(|table| &table.columns);
    let of_view = || catalog.views().find(|view| view.oid == target.object).map(|view| &view.columns);
    let columns = of_table.or_else(of_view).into_iter().flatten().enumerate();
    columns.filter(|(_, column)| !column.dropped).map(|(at, column)| (at, column.name.clone())).collect()
}

/// The privileges on columns that a statement names. 42703, 0LP01
fn named_columns(
    privileges: &[Privilege],
    target: &Target,
    names: &[(usize, String)],
    notices: &mut Notices,
) -> Result<BTreeMap<usize, Rights>> {
    let mut found: BTreeMap<usize, Rights> = BTreeMap::new();
    for Privilege { name, columns, .. } in privileges.iter().filter(|privilege| !privilege.columns.is_empty()) {
        let mut rights = name.as_ref().map_or(Ok(Rights::OF_COLUMNS), |name| named_right(&name.name))?;
        refuse_others(rights, Rights::OF_COLUMNS, "column")?;
        if target.securable == Securable::Sequence && !Rights::SELECT.covers(rights) {
            let message = format!("sequence \"{}\" only supports SELECT column privileges", target.name);
            notices.push(notice("0LP01", message));
            rights = rights & Rights::SELECT;
        }
        for Ident { name, .. } in columns {
            let at = names.iter().find(|(_, own)| own == name).map(|(at, _)| *at);
            let at = at.ok_or_else(|| undefined_column(name, &target.name))?;
            let of = found.entry(at).or_default();
            *of = *of | rights;
        }
    }
    found.retain(|_, rights| !rights.is_empty());
    Ok(found)
}

/// The privileges that a statement names, as far as they are those of the object; whether it names ALL. (Those on
/// columns are apart.) 42601, 0LP01
fn rights_of(privileges: &[Privilege], target: &Target, on: &Granted, notices: &mut Notices) -> Result<(Rights, bool)> {
    let mut rights = Rights::NONE;
    for Privilege { name, columns, .. } in privileges {
        if !columns.is_empty() {
            if !matches!(on, Granted::Tables(_) | Granted::AllIn { sequences: false, .. }) {
                return Err(EngineError::new("0LP01", "column privileges are only valid for relations"));
            }
            continue;
        }
        let Some(Ident { name, .. }) = name else { return Ok((target.securable.rights(), true)) };
        rights = rights | named_right(name)?;
    }
    // GRANT ON TABLE takes sequences, too, and means what those have.
    let of_tables = matches!(on, Granted::Tables(_));
    let named = match of_tables {
        true => Securable::Table.rights() | Securable::Sequence.rights(),
        false => target.securable.rights(),
    };
    refuse_others(rights, named, if of_tables { "relation" } else { target.kind })?;
    match target.securable {
        Securable::Table => refuse_others(rights, Securable::Table.rights(), "table")?,
        own if !own.rights().covers(rights) => {
            let message = format!("sequence \"{}\" only supports USAGE, SELECT, and UPDATE privileges", target.name);
            notices.push(notice("0LP01", message));
        }
        _ => {}
    }
    Ok((rights & target.securable.rights(), false))
}

pub(super) fn refuse_others(rights: Rights, allowed: Rights, kind: &str) -> Result<()> {
    match Rights::ALL.iter().find(|(one, ..)| rights.covers(*one) && !allowed.covers(*one)) {
        Some((_, _, name)) => Err(EngineError::new("0LP01", format!("invalid privilege type {name} for {kind}"))),
        None => Ok(()),
    }
}

/// The acl after the statement; `None`: it stays.
fn changed(
    catalog: &Catalog,
    actor: &Actor,
    of: &Of<'_>,
    grantees: &[u32],
    wanted: Wanted,
    notices: &mut Notices,
) -> Result<Option<Vec<Grant>>> {
    let owner = catalog.owner(of.target.object);
    let (mut acl, granting) = of.acls(catalog);
    let (grantor, options) = match actor.has(owner) {
        true => (owner, of.rights()),
        false => best_grantor(actor, &granting, wanted.rights),
    };
    let rights = wanted.rights & options;
    if rights.is_empty() && !of.is_known_to(actor, catalog) {
        return Err(of.denied());
    }
    let (done, state) = if wanted.revoke { ("could be revoked", "01006") } else { ("were granted", "01007") };
    if rights.is_empty() {
        notices.push(notice(state, format!("no privileges {done} for {}", of.shown())));
        return Ok(None);
    }
    if rights != wanted.rights && !wanted.all {
        notices.push(notice(state, format!("not all privileges {done} for {}", of.shown())));
    }
    for grantee in grantees {
        let given = Given { grantee: *grantee, grantor, rights, option: wanted.option };
        match wanted.revoke {
            true => revoke(&mut acl, owner, given, wanted.cascade)?,
            false => give(&mut acl, owner, given)?,
        }
    }
    Ok(Some(acl))
}

/// In whose name a role grants what is not its own, and what that role may grant.
fn best_grantor(actor: &Actor, acl: &[Grant], wanted: Rights) -> (u32, Rights) {
    let options_of = |role: u32| options_of(acl, role);
    let mut best = (actor.oid(), options_of(actor.oid()));
    let roles: BTreeSet<u32> = acl.iter().map(|grant| grant.grantee).filter(|role| actor.has(*role)).collect();
    for role in roles {
        let options = options_of(role);
        let more = |rights: Rights| (rights & wanted).0.count_ones();
        if more(options) > more(best.1) {
            best = (role, options);
        }
    }
    best
}

fn options_of(acl: &[Grant], role: u32) -> Rights {
    acl.iter().filter(|grant| grant.grantee == role).fold(Rights::NONE, |all, grant| all | grant.options)
}

#[derive(Clone, Copy)]
pub(super) struct Given {
    pub(super) grantee: u32,
    pub(super) grantor: u32,
    pub(super) rights: Rights,
    /// The option to grant them, too; of REVOKE: only that.
    pub(super) option: bool,
}

/// 0LP01 where the option would go back to who has it from the grantee.
pub(super) fn give(acl: &mut Vec<Grant>, owner: u32, given: Given) -> Result<()> {
    if given.option && given.grantor != owner {
        let mut without = acl.clone();
        let all = without.iter().filter(|grant| grant.grantee == given.grantee).copied().collect::<Vec<Grant>>();
        for Grant { grantee, grantor, rights, .. } in all {
            revoke(&mut without, owner, Given { grantee, grantor, rights, option: true }, true)?;
        }
        if !options_of(&without, given.grantor).covers(given.rights) {
            return Err(EngineError::new("0LP01", "grant options cannot be granted back to your own grantor"));
        }
    }
    let options = if given.option { given.rights } else { Rights::NONE };
    match acl.iter_mut().find(|grant| (grant.grantee, grant.grantor) == (given.grantee, given.grantor)) {
        Some(grant) => (grant.rights, grant.options) = (grant.rights | given.rights, grant.options | options),
        None => acl.push(Grant { grantee: given.grantee, grantor: given.grantor, rights: given.rights, options }),
    }
    Ok(())
}

/// Invariant 2. 2BP01
pub(super) fn revoke(acl: &mut Vec<Grant>, owner: u32, given: Given, cascade: bool) -> Result<()> {
    let is_it = |grant: &Grant| (grant.grantee, grant.grantor) == (given.grantee, given.grantor);
    let Some(at) = acl.iter().position(is_it) else { return Ok(()) };
    let before = acl[at].options;
    acl[at].options = before & !given.rights;
    if !given.option {
        acl[at].rights = acl[at].rights & !given.rights;
    }
    if acl[at].rights.is_empty() {
        acl.remove(at);
    }
    let lost = before & given.rights & !options_of(acl, given.grantee);
    if lost.is_empty() || given.grantee == owner {
        return Ok(());
    }
    let by_it = |grant: &Grant| grant.grantor == given.grantee && !((grant.rights | grant.options) & lost).is_empty();
    while let Some(grant) = acl.iter().copied().find(by_it) {
        if !cascade {
            let error = EngineError::new("2BP01", "dependent privileges exist");
            return Err(error.with_hint("Use CASCADE to revoke them too."));
        }
        let dependent = Given { grantee: grant.grantee, grantor: grant.grantor, rights: lost, option: false };
        revoke(acl, owner, dependent, true)?;
    }
    Ok(())
}

/// The acl of an object that gets another owner, who has what the old one had.
pub(crate) fn with_owner(acl: &[Grant], old: u32, new: u32) -> Vec<Grant> {
    let renamed = |role: u32| if role == old { new } else { role };
    let mut all: Vec<Grant> = vec![];
    for grant in acl {
        let (grantee, grantor) = (renamed(grant.grantee), renamed(grant.grantor));
        match all.iter_mut().find(|known| (known.grantee, known.grantor) == (grantee, grantor)) {
            Some(known) => {
                (known.rights, known.options) = (known.rights | grant.rights, known.options | grant.options);
            }
            None => all.push(Grant { grantee, grantor, ..*grant }),
        }
    }
    all
}
