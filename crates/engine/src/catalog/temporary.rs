//! Temporary tables and views, which are of one session; and where things are that are not in the schema public. Both
//! are rows of a system table (*format*):
//!
//! | table | columns |
//! |---|---|
//! | 10 temporary_tables | object (oid), space (oid), on_commit (0 preserve rows, 1 delete rows, 2 drop; NULL: it is permanent, and the space is a schema) |
//!
//! 1. A session's temporary tables, and their indexes, have a name space of their own, a [`Space`]. Only a catalogue
//!    that is [`Catalog::seen_by`] the session finds them by a plain name, and it finds them first.
//! 2. A space is an object id, so no other session ever has the same one.
//! 3. When a database is opened its temporary tables are dropped: their sessions are gone.
//! 4. A foreign key connects permanent tables, or temporary ones of one space (the SQL front end refuses others). A
//!    view that reads a temporary table or view is temporary, and of the same space.
use super::names::Space;
use super::system::{bad, object};
use super::{Catalog, ColumnDef, Table};
use crate::error::Result;
use crate::types::{DataType, Datum};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use terrace_storage::ObjectId;

pub(crate) const TEMPORARY_TABLES: ObjectId = ObjectId(10);

/// What becomes of a temporary table when a transaction commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnCommit {
    #[default]
    PreserveRows,
    DeleteRows,
    Drop,
}

/// Where something is that is not in the schema public.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Placement {
    pub(crate) space: Space,
    /// `None`: it is permanent.
    pub(crate) on_commit: Option<OnCommit>,
}

/// By object.
pub(crate) type Placements = BTreeMap<ObjectId, Placement>;

/// The space of something that is stored.
pub(crate) fn space_of(places: &Placements, object: ObjectId) -> Space {
    places.get(&object).map_or(Space::PUBLIC, |placement| placement.space)
}

static DEFINITION: LazyLock<Arc<Table>> = LazyLock::new(|| {
    let columns = [("object", DataType::Int8), ("space", DataType::Int8), ("on_commit", DataType::Int4)];
    let columns = columns.iter().map(|(name, of)| ColumnDef::new(name, *of)).collect();
    Arc::new(Table::new(TEMPORARY_TABLES, "temporary_tables".into(), columns, Vec::new()))
});

pub(crate) fn table() -> &'static Arc<Table> {
    &DEFINITION
}

pub(crate) fn row(object: ObjectId, placement: Placement) -> Vec<Datum> {
    let on_commit = match placement.on_commit {
        None => Datum::Null,
        Some(OnCommit::PreserveRows) => Datum::Int4(0),
        Some(OnCommit::DeleteRows) => Datum::Int4(1),
        Some(OnCommit::Drop) => Datum::Int4(2),
    };
    vec![Datum::Int8(object.0.into()), Datum::Int8(placement.space.0.0.into()), on_commit]
}

pub(crate) fn read(row: &[Datum]) -> Result<(ObjectId, Placement)> {
    let read = || {
        let [of, space, on_commit] = row else { return None };
        let on_commit = match on_commit {
            Datum::Null => None,
            Datum::Int4(0) => Some(OnCommit::PreserveRows),
            Datum::Int4(1) => Some(OnCommit::DeleteRows),
            Datum::Int4(2) => Some(OnCommit::Drop),
            _ => return None,
        };
        Some((object(of)?, Placement { space: Space(object(space)?), on_commit }))
    };
    read().ok_or_else(|| bad("temporary tables"))
}

/// What keeps programs away that know no temporary tables: they would take them for others.
pub(crate) fn note_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("temporary tables"), Datum::text("")]
}

impl Table {
    /// What is stored of where it is; `None`: it is in the schema public.
    pub(crate) fn placement(&self) -> Option<Placement> {
        let is_stored = self.temporary.is_some() || self.space != Space::PUBLIC;
        is_stored.then_some(Placement { space: self.space, on_commit: self.temporary })
    }
}

impl Catalog {
    /// The spaces of sessions that have temporary tables or views.
    pub fn spaces(&self) -> BTreeSet<Space> {
        let of_views = self.views().filter(|view| view.temporary).map(|view| view.space);
        self.temporary_tables().map(|table| table.space).chain(of_views).collect()
    }

    /// Those of all sessions.
    pub fn temporary_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables().filter(|table| table.temporary.is_some())
    }
}
