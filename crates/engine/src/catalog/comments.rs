//! What COMMENT says of tables, columns, indexes, sequences, views, schemas and types, as rows of a system table
//! (*format*):
//!
//! | table | columns |
//! |---|---|
//! | 8 comments | object (oid), position (of a column, from 1; 0: of the whole; from 2^30: of a constraint), text |
//!
//! 1. Object ids are never used again: a row of an object that is gone means nothing, and is passed by.
//! 2. TRUNCATE gives a table and its indexes other object ids; their comments go with them.
//! 3. A database of before has no rows here: it has no comments.
//! 4. A constraint that is an index, a foreign key or a domain's has an object id, and its comment the position 2^30. A
//!    CHECK constraint of a table has none: the table has its comment, at a position from 2^30 on, and the text begins
//!    with the length of the constraint's name in bytes, a colon and the name ([`of_check`]).
use super::system::{bad, object};
use super::{Catalog, ColumnDef, Table};
use crate::error::Result;
use crate::types::{DataType, Datum};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use terrace_storage::ObjectId;

pub(crate) const COMMENTS: ObjectId = ObjectId(8);

/// What a comment is of: an object, or its column of a position, from 1.
pub type Commented = (ObjectId, u32);

/// Invariant 4.
pub const OF_CONSTRAINT: u32 = 1 << 30;

/// The text that is kept of what is said of a CHECK constraint (invariant 4).
pub fn of_check(name: &str, text: &str) -> String {
    format!("{}:{name}{text}", name.len())
}

pub(crate) type Comments = BTreeMap<Commented, String>;

static DEFINITION: LazyLock<Arc<Table>> = LazyLock::new(|| {
    let columns = [("object", DataType::Int8), ("position", DataType::Int4), ("text", DataType::Text)];
    let columns = columns.iter().map(|(name, of)| ColumnDef::new(name, *of)).collect();
    Arc::new(Table::new(COMMENTS, "comments".into(), columns, Vec::new()))
});

pub(crate) fn table() -> &'static Arc<Table> {
    &DEFINITION
}

pub(crate) fn row((object, position): Commented, text: &str) -> Vec<Datum> {
    vec![Datum::Int8(object.0.into()), Datum::Int4(position as i32), Datum::text(text)]
}

pub(crate) fn read(row: &[Datum]) -> Result<(Commented, String)> {
    let [of, Datum::Int4(position), Datum::Text(text)] = row else { return Err(bad("comments")) };
    let read = || Some(((object(of)?, u32::try_from(*position).ok()?), text.to_string()));
    read().ok_or_else(|| bad("comments"))
}

impl Catalog {
    pub fn comment(&self, of: Commented) -> Option<&str> {
        self.comments.get(&of).map(String::as_str)
    }

    /// What is said of the CHECK constraints of a table: positions, names and texts (invariant 4).
    pub fn check_comments(&self, table: ObjectId) -> impl Iterator<Item = (u32, &str, &str)> {
        let all = self.comments.range((table, OF_CONSTRAINT)..=(table, u32::MAX));
        all.filter_map(|((_, position), text)| {
            let (length, rest) = text.split_once(':')?;
            let (name, text) = rest.split_at_checked(length.parse().ok()?)?;
            Some((*position, name, text))
        })
    }

    /// All, also of objects that are gone (invariant 1).
    pub fn comments(&self) -> impl Iterator<Item = (Commented, &str)> {
        self.comments.iter().map(|(of, text)| (*of, text.as_str()))
    }

    pub(crate) fn with_comments(&self, comments: Comments) -> Catalog {
        Catalog { comments: Arc::new(comments), version: super::next_version(), ..self.clone() }
    }
}
