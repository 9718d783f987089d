//! Temporary tables: tables of one session, as rows of a system table (*format*):
//!
//! | table | columns |
//! |---|---|
//! | 10 temporary_tables | table (oid), space (oid), on_commit (0 preserve rows, 1 delete rows, 2 drop) |
//!
//! 1. A session's temporary tables, and their indexes, have a name space of their own, its [`Space`]. Only a catalogue
//!    that is [`Catalog::seen_by`] the session finds them by a plain name, and it finds them first.
//! 2. A space is an object id, so no other session ever has the same one.
//! 3. When a database is opened its temporary tables are dropped: their sessions are gone.
//! 4. A foreign key connects permanent tables, or temporary ones of one space (the SQL front end refuses others). No
//!    view reads a temporary table.
use super::system::{bad, object};
use super::{Catalog, ColumnDef, Named, Table};
use crate::error::Result;
use crate::types::{DataType, Datum};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};
use terrace_storage::ObjectId;

pub(crate) const TEMPORARY_TABLES: ObjectId = ObjectId(10);

/// The name space of a session's temporary tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Space(pub ObjectId);

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pg_temp_{}", self.0.0)
    }
}

/// A session's space, once it has one: from its first temporary table on.
pub type OwnSpace = Arc<OnceLock<Space>>;

/// What becomes of a temporary table when a transaction commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnCommit {
    #[default]
    PreserveRows,
    DeleteRows,
    Drop,
}

/// What a temporary table is besides a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Temporary {
    pub space: Space,
    pub on_commit: OnCommit,
}

static DEFINITION: LazyLock<Arc<Table>> = LazyLock::new(|| {
    let columns = [("table", DataType::Int8), ("space", DataType::Int8), ("on_commit", DataType::Int4)];
    let columns = columns.iter().map(|(name, of)| ColumnDef::new(name, *of)).collect();
    Arc::new(Table::new(TEMPORARY_TABLES, "temporary_tables".into(), columns, Vec::new()))
});

pub(crate) fn table() -> &'static Arc<Table> {
    &DEFINITION
}

pub(crate) fn row(table: ObjectId, temporary: Temporary) -> Vec<Datum> {
    let on_commit = match temporary.on_commit {
        OnCommit::PreserveRows => 0,
        OnCommit::DeleteRows => 1,
        OnCommit::Drop => 2,
    };
    vec![Datum::Int8(table.0.into()), Datum::Int8(temporary.space.0.0.into()), Datum::Int4(on_commit)]
}

pub(crate) fn read(row: &[Datum]) -> Result<(ObjectId, Temporary)> {
    let read = || {
        let [table, space, Datum::Int4(on_commit)] = row else { return None };
        let on_commit = match on_commit {
            0 => OnCommit::PreserveRows,
            1 => OnCommit::DeleteRows,
            2 => OnCommit::Drop,
            _ => return None,
        };
        Some((object(table)?, Temporary { space: Space(object(space)?), on_commit }))
    };
    read().ok_or_else(|| bad("temporary tables"))
}

/// What keeps programs away that know no temporary tables: they would take them for others.
pub(crate) fn note_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("temporary tables"), Datum::text("")]
}

/// Among which relations a name is looked up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Among {
    /// The session's temporary ones, then the permanent ones.
    All,
    Permanent,
    /// The session's temporary ones.
    Own,
    /// The same, if they are in that space.
    OwnIf(Space),
    /// The temporary ones of a space.
    Of(Space),
    /// The temporary ones of a space, then the permanent ones.
    In(Space),
}

/// A relation's name, and where it is looked up.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RelationName {
    pub among: Among,
    pub name: String,
}

impl RelationName {
    pub fn new(among: Among, name: impl Into<String>) -> RelationName {
        RelationName { among, name: name.into() }
    }
    pub fn permanent(name: impl Into<String>) -> RelationName {
        RelationName::new(Among::Permanent, name)
    }
    /// The same name, as the definition of something in that space means it, whoever reads it.
    pub fn of_definition(self, space: Option<Space>) -> RelationName {
        match (space, self.among) {
            (None, Among::All) => RelationName { among: Among::Permanent, ..self },
            (Some(space), Among::All) => RelationName { among: Among::In(space), ..self },
            _ => self,
        }
    }
}

/// As PostgreSQL shows the name in errors.
impl fmt::Display for RelationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// What names a relation: a text does it as a statement without a schema does.
pub trait Names {
    fn among(&self) -> Among;
    fn name(&self) -> &str;
}

impl Names for str {
    fn among(&self) -> Among {
        Among::All
    }
    fn name(&self) -> &str {
        self
    }
}

impl Names for String {
    fn among(&self) -> Among {
        Among::All
    }
    fn name(&self) -> &str {
        self
    }
}

impl Names for RelationName {
    fn among(&self) -> Among {
        self.among
    }
    fn name(&self) -> &str {
        &self.name
    }
}

impl<T: Names + ?Sized> Names for &T {
    fn among(&self) -> Among {
        (**self).among()
    }
    fn name(&self) -> &str {
        (**self).name()
    }
}

impl Table {
    /// The space that it is in; `None`: it is permanent.
    pub fn space(&self) -> Option<Space> {
        self.temporary.map(|temporary| temporary.space)
    }
    /// The name that means this table to every session.
    pub fn full_name(&self) -> RelationName {
        RelationName::new(self.space().map_or(Among::Permanent, Among::Of), self.name.as_str())
    }
}

pub(super) type Spaces = BTreeMap<Space, BTreeMap<String, Named>>;

impl Catalog {
    /// The same catalogue, as a session with that space sees it.
    pub fn seen_by(self: &Arc<Self>, own: &OwnSpace) -> Arc<Catalog> {
        match own.get().filter(|space| self.spaces.contains_key(space)) {
            Some(space) if self.own != Some(*space) => Arc::new(Catalog { own: Some(*space), ..(**self).clone() }),
            _ => self.clone(),
        }
    }

    /// The same, as a session without temporary tables sees it.
    pub(crate) fn seen_by_all(self: Arc<Self>) -> Arc<Catalog> {
        match self.own {
            Some(_) => Arc::new(Catalog { own: None, ..(*self).clone() }),
            None => self,
        }
    }

    /// The same catalogue without the temporary tables of other sessions.
    pub fn without_others(&self) -> Cow<'_, Catalog> {
        let is_seen = |space: Option<Space>| space.is_none() || space == self.own;
        match self.spaces().all(|space| is_seen(Some(space))) {
            true => Cow::Borrowed(self),
            false => {
                let seen = self.tables().filter(|table| is_seen(table.space())).cloned().collect();
                Cow::Owned(Catalog { own: self.own, ..self.with_tables(seen) })
            }
        }
    }

    /// Those that have tables.
    pub fn spaces(&self) -> impl Iterator<Item = Space> {
        self.spaces.keys().copied()
    }

    /// That of the session which sees this catalogue, if it has temporary tables.
    pub fn own_space(&self) -> Option<Space> {
        self.own
    }

    fn temporary(&self, space: Option<Space>, name: &str) -> Option<&Named> {
        self.spaces.get(&space?)?.get(name)
    }

    /// A table or an index. Views are looked up beside this.
    pub(super) fn named<N: Names + ?Sized>(&self, name: &N) -> Option<&Named> {
        let (among, name) = (name.among(), name.name());
        match among {
            Among::Permanent => self.by_name.get(name),
            Among::Own => self.temporary(self.own, name),
            Among::OwnIf(space) => self.temporary(self.own.filter(|own| *own == space), name),
            Among::Of(space) => self.temporary(Some(space), name),
            Among::In(space) => self.temporary(Some(space), name).or_else(|| self.by_name.get(name)),
            Among::All => self.temporary(self.own, name).or_else(|| self.by_name.get(name)),
        }
    }

    /// Whether the name can mean a permanent relation: no temporary one hides it.
    pub(super) fn reaches_permanent<N: Names + ?Sized>(&self, name: &N) -> bool {
        match name.among() {
            Among::Permanent => true,
            Among::Own | Among::OwnIf(_) | Among::Of(_) => false,
            Among::All => self.temporary(self.own, name.name()).is_none(),
            Among::In(space) => self.temporary(Some(space), name.name()).is_none(),
        }
    }

    /// Whether a relation of a space, or a permanent one, has the name.
    pub fn name_taken(&self, space: Option<Space>, name: &str) -> bool {
        match space {
            Some(space) => self.temporary(Some(space), name).is_some(),
            None => self.by_name.contains_key(name) || self.views.contains_key(name),
        }
    }

    /// Whether the name means a relation of any kind.
    pub fn relation_exists<N: Names + ?Sized>(&self, name: &N) -> bool {
        self.named(name).is_some() || self.view(name).is_some()
    }

    /// Those of all sessions.
    pub fn temporary_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.spaces.values().flat_map(BTreeMap::values).filter_map(|named| match named {
            Named::Table(table) => Some(table),
            Named::Index(_) => None,
        })
    }
}
