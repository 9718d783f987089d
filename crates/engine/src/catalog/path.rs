//! Who sees a catalogue: the session's temporary tables, and the path along which it looks names up.
//!
//! 1. A path has the schemas that there are, and that its role may use; others of `search_path` are passed by.
//! 2. Where the path does not say otherwise, the session's temporary tables come first, and then the system's schema.
//! 3. Who sees a catalogue otherwise than all do has another version of it: what is kept of a plan knows the version,
//!    so it never outlives the path for which it was made.
//!
//! Source: PostgreSQL 15 documentation, 5.9.3 (The Schema Search Path) and 20.11.1 (`search_path`).
use super::access::{PUBLIC, Rights, Securable};
use super::names::Space;
use super::roles::{READ_ALL_DATA, WRITE_ALL_DATA};
use super::views::View;
use super::{Catalog, Table, next_version};
use parking_lot::{Mutex, RwLock};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// One place in which names are looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The session's temporary tables.
    Own,
    In(Space),
    /// A schema of the system, which is not the catalogue's.
    System(&'static str),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Path {
    pub(crate) steps: Vec<Step>,
    /// Of the steps, those that `search_path` says.
    pub(crate) said: Vec<Step>,
}

/// The schemas of the system.
const OF_SYSTEM: [&str; 3] = [FIRST, "information_schema", "terrace"];
/// The one that is always searched.
const FIRST: &str = "pg_catalog";

impl Path {
    /// Of what a path says (invariant 2).
    fn of(said: Vec<Step>) -> Path {
        let missing = [Step::Own, Step::System(FIRST)].into_iter().filter(|step| !said.contains(step));
        Path { steps: missing.chain(said.iter().copied()).collect(), said }
    }
}

impl Default for Path {
    fn default() -> Path {
        Path::of(vec![Step::In(Space::PUBLIC)])
    }
}

/// `search_path`, and whose it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchPath {
    pub schemas: Vec<String>,
    /// The current role; it stands for `$user`, and may use what is looked up in.
    pub role: Arc<str>,
}

impl Default for SearchPath {
    fn default() -> SearchPath {
        SearchPath { schemas: vec!["$user".into(), "public".into()], role: super::roles::FIRST_ROLE.into() }
    }
}

/// A session, as far as it sees a catalogue its own way.
#[derive(Default, Debug)]
pub struct Viewer {
    /// Once it has one: from its first temporary table on.
    pub(crate) own: OnceLock<Space>,
    path: RwLock<Arc<SearchPath>>,
    /// What it saw last.
    seen: Mutex<Option<Seen>>,
}

#[derive(Debug)]
struct Seen {
    /// Of the catalogue that all see.
    version: u64,
    said: Arc<SearchPath>,
    catalog: Arc<Catalog>,
}

impl Viewer {
    pub fn set_path(&self, path: SearchPath) {
        let mut now = self.path.write();
        if **now != path {
            *now = Arc::new(path);
        }
    }
}

impl Catalog {
    /// The same catalogue, as a session sees it.
    pub fn seen_by(self: &Arc<Self>, viewer: &Viewer) -> Arc<Catalog> {
        let said = viewer.path.read().clone();
        if let Some(seen) = &*viewer.seen.lock()
            && seen.version == self.version
            && Arc::ptr_eq(&seen.said, &said)
        {
            return seen.catalog.clone();
        }
        let own = viewer.own.get().copied().filter(|space| self.named.has(*space) || self.views.has(*space));
        let path = self.path_of(&said);
        let catalog = match own == self.own && path == *self.path {
            true => self.clone(),
            false => Arc::new(Catalog { own, path: Arc::new(path), version: next_version(), ..(**self).clone() }),
        };
        *viewer.seen.lock() = Some(Seen { version: self.version, said, catalog: catalog.clone() });
        catalog
    }

    /// The same, as a session with the first path and without temporary tables sees it.
    pub(crate) fn seen_by_all(self: Arc<Self>) -> Arc<Catalog> {
        match self.own.is_some() || *self.path != Path::default() {
            true => Arc::new(Catalog { own: None, path: Arc::default(), ..(*self).clone() }),
            false => self,
        }
    }

    /// The same, as the texts of definitions mean names that have no schema ([`super::names`], invariant 3).
    pub fn of_definitions(self: &Arc<Self>) -> Arc<Catalog> {
        let path = Path { steps: vec![Step::System(FIRST), Step::In(Space::PUBLIC)], said: vec![] };
        match *self.path == path {
            true => self.clone(),
            false => Arc::new(Catalog { path: Arc::new(path), version: next_version(), ..(**self).clone() }),
        }
    }

    /// The same, where no name without a schema finds anything.
    pub fn without_path(self: &Arc<Self>) -> Arc<Catalog> {
        let path = Arc::new(Path::of(vec![]));
        Arc::new(Catalog { path, own: None, version: next_version(), ..(**self).clone() })
    }

    fn path_of(&self, said: &SearchPath) -> Path {
        let mut steps = vec![];
        for name in &said.schemas {
            let is_user = name == "$user";
            let name = if is_user { &*said.role } else { name.as_str() };
            let schema = || self.schema(name).filter(|space| self.may_use(&said.role, *space)).map(Step::In);
            let step = match OF_SYSTEM.iter().find(|of| **of == name && !is_user) {
                Some(of) => Some(Step::System(of)),
                None if name == "pg_temp" => Some(Step::Own),
                None => schema(),
            };
            steps.extend(step.filter(|step| !steps.contains(step)));
        }
        Path::of(steps)
    }

    /// Whether a role may look names up in a schema.
    fn may_use(&self, role: &str, space: Space) -> bool {
        let Some(role) = self.role(role) else { return false };
        let acl = self.acl(space.0, Securable::Schema);
        role.superuser || {
            let has = self.with_memberships(role.oid, true);
            let may = |grantee| grantee == PUBLIC || has.contains(&grantee);
            let everywhere = [READ_ALL_DATA, WRITE_ALL_DATA].iter().any(|role| has.contains(role));
            everywhere || acl.iter().any(|grant| grant.rights.covers(Rights::USAGE) && may(grant.grantee))
        }
    }

    /// The same catalogue without the temporary tables and views of other sessions.
    pub fn without_others(&self) -> Cow<'_, Catalog> {
        let is_seen = |table: &Arc<Table>| table.temporary.is_none() || Some(table.space) == self.own;
        let is_view_seen = |view: &Arc<View>| !view.temporary || Some(view.space) == self.own;
        if self.tables().all(is_seen) && self.views().all(is_view_seen) {
            return Cow::Borrowed(self);
        }
        let seen = self.tables().filter(|table| is_seen(table)).cloned().collect();
        let views = self.views().filter(|view| is_view_seen(view)).cloned().collect();
        let seen = self.with_tables(seen).with_views(views);
        Cow::Owned(Catalog { own: self.own, path: self.path.clone(), ..seen })
    }

    /// Where names are looked up, in order.
    pub fn steps(&self) -> &[Step] {
        &self.path.steps
    }

    /// What `search_path` says, as far as it is there; things are made in the first.
    pub fn said_steps(&self) -> &[Step] {
        &self.path.said
    }

    /// The space of the session which sees this catalogue, if it has temporary tables.
    pub fn own_space(&self) -> Option<Space> {
        self.own
    }
}
