//! Undo records' bodies (*format*): what a change was made to, and the version before it.
//!
//! ```text
//! u8 kind | u8 flags (1: index keys changed) | u32 object | rows: u32 page, u16 slot
//! insert           nothing more
//! delete           row header before (17), its stub where that says CHAINED; the bytes stay
//! update, whole    row header before, bytes before (payload, or stub where its header says CHAINED)
//! update, part     row header before, u16 prefix, u16 suffix, payload before without those
//! object created, object dropped   nothing more
//! fragment         u48 chain id; appended as the fragment is written, for rollback alone
//! ```
//!
//! 1. *Part* applies to payloads: both versions were in the slot when it was written. (Rollback may store an older
//!    version as a chain where its page has filled up; its payload is the same.)
//! 2. What purge needs of a version it finds in the record, whatever has become of the row: a change of index keys is
//!    always written whole, and a chained version with its stub.
use crate::error::{EngineError, Result};
use terrace_storage::bytes::{u16_at, u32_at};
use terrace_storage::heap::{CHAINED, ChainId, DELETED, Fragment, ROW_HEADER, RowHeader, StoredRow};
use terrace_storage::{ObjectId, Rid};

const INSERT: u8 = 1;
const DELETE: u8 = 2;
const UPDATE_WHOLE: u8 = 3;
const UPDATE_PART: u8 = 4;
const CREATED: u8 = 5;
const DROPPED: u8 = 6;
const FRAGMENT: u8 = 7;
const KEYS_CHANGED: u8 = 1;
/// Bytes in front of the header of the version before.
const HEAD: usize = 12;
/// The most that a record adds to the bytes of a version.
pub(crate) const OVERHEAD: usize = HEAD + ROW_HEADER;

/// A record's body, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Record<'a> {
    Insert { table: ObjectId, rid: Rid },
    Delete { table: ObjectId, rid: Rid, before: RowHeader, stub: &'a [u8] },
    Update { table: ObjectId, rid: Rid, before: RowHeader, keys_changed: bool, old: Old<'a> },
    Created(ObjectId),
    Dropped(ObjectId),
    Fragment { table: ObjectId, fragment: Fragment },
}

/// The bytes of the version before an update.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Old<'a> {
    Whole(&'a [u8]),
    Part { prefix: usize, suffix: usize, middle: &'a [u8] },
}

impl Old<'_> {
    /// The older payload, from the newer one (`Whole`: the stored bytes).
    pub(crate) fn apply(&self, newer: &[u8]) -> Option<Vec<u8>> {
        match self {
            Old::Whole(bytes) => Some(bytes.to_vec()),
            Old::Part { prefix, suffix, middle } => {
                let tail = newer.get(newer.len().checked_sub(*suffix)?..)?;
                Some([newer.get(..*prefix)?, middle, tail].concat())
            }
        }
    }
}

fn head(kind: u8, flags: u8, object: ObjectId, rid: Rid) -> Vec<u8> {
    let mut b = Vec::with_capacity(64);
    b.extend_from_slice(&[kind, flags]);
    b.extend_from_slice(&object.0.to_le_bytes());
    b.extend_from_slice(&rid.page.to_le_bytes());
    b.extend_from_slice(&rid.slot.to_le_bytes());
    b
}

/// Length of an insert's record.
pub(crate) const INSERT_LEN: usize = HEAD;

pub(crate) fn insert(table: ObjectId, rid: Rid) -> Vec<u8> {
    head(INSERT, 0, table, rid)
}

pub(crate) fn delete(table: ObjectId, rid: Rid, before: &StoredRow) -> Vec<u8> {
    let mut b = head(DELETE, 0, table, rid);
    b.extend_from_slice(&before.header.encode());
    if is_chained(&before.header) {
        b.extend_from_slice(&before.bytes);
    }
    b
}

/// Length of a fragment's record.
pub(crate) const FRAGMENT_LEN: usize = HEAD + 6;

pub(crate) fn fragment(table: ObjectId, rid: Rid, chain: ChainId) -> Vec<u8> {
    let mut b = head(FRAGMENT, 0, table, rid);
    b.extend_from_slice(&chain);
    b
}

/// `new` is what the slot will hold.
pub(crate) fn update(table: ObjectId, rid: Rid, old: &StoredRow, new: &StoredRow, keys_changed: bool) -> Vec<u8> {
    let whole = keys_changed || (old.header.flags | new.header.flags) & CHAINED != 0;
    let kind = if whole { UPDATE_WHOLE } else { UPDATE_PART };
    let mut b = head(kind, if keys_changed { KEYS_CHANGED } else { 0 }, table, rid);
    b.extend_from_slice(&old.header.encode());
    if whole {
        b.extend_from_slice(&old.bytes);
        return b;
    }
    let (x, y) = (&old.bytes[..], &new.bytes[..]);
    let prefix = x.iter().zip(y).take_while(|(a, b)| a == b).count();
    let suffix = x[prefix..].iter().rev().zip(y[prefix..].iter().rev()).take_while(|(a, b)| a == b).count();
    // Rows in a slot are shorter than a page (32 KiB at most).
    b.extend_from_slice(&(prefix as u16).to_le_bytes());
    b.extend_from_slice(&(suffix as u16).to_le_bytes());
    b.extend_from_slice(&x[prefix..x.len() - suffix]);
    b
}

pub(crate) fn created(object: ObjectId) -> Vec<u8> {
    head(CREATED, 0, object, Rid::default())
}

pub(crate) fn dropped(object: ObjectId) -> Vec<u8> {
    head(DROPPED, 0, object, Rid::default())
}

impl<'a> Record<'a> {
    pub(crate) fn decode(body: &'a [u8]) -> Result<Record<'a>> {
        Record::parse(body).ok_or_else(|| EngineError::damaged("an undo record's body makes no sense"))
    }

    /// The table whose rows it is of.
    pub(crate) fn table(&self) -> Option<ObjectId> {
        match *self {
            Record::Insert { table, .. } | Record::Delete { table, .. } => Some(table),
            Record::Update { table, .. } | Record::Fragment { table, .. } => Some(table),
            Record::Created(_) | Record::Dropped(_) => None,
        }
    }

    fn parse(body: &'a [u8]) -> Option<Record<'a>> {
        let (kind, flags) = (*body.first()?, *body.get(1)?);
        let table = ObjectId(u32_at(body, 2)?);
        let rid = Rid { page: u32_at(body, 6)?, slot: u16_at(body, 10)? };
        let before = || Some(RowHeader::decode(body.get(HEAD..HEAD + ROW_HEADER)?));
        let keys_changed = flags & KEYS_CHANGED != 0;
        Some(match kind {
            INSERT => Record::Insert { table, rid },
            DELETE => Record::Delete { table, rid, before: before()?, stub: &body[OVERHEAD..] },
            UPDATE_WHOLE => {
                let old = Old::Whole(&body[OVERHEAD.min(body.len())..]);
                Record::Update { table, rid, before: before()?, keys_changed, old }
            }
            UPDATE_PART => {
                let rest = body.get(OVERHEAD..)?;
                let (prefix, suffix) = (u16_at(rest, 0)? as usize, u16_at(rest, 2)? as usize);
                let old = Old::Part { prefix, suffix, middle: &rest[4..] };
                Record::Update { table, rid, before: before()?, keys_changed, old }
            }
            CREATED => Record::Created(table),
            DROPPED => Record::Dropped(table),
            FRAGMENT => {
                let chain = body.get(HEAD..FRAGMENT_LEN)?.try_into().ok()?;
                Record::Fragment { table, fragment: Fragment { rid, chain } }
            }
            _ => return None,
        })
    }
}

pub(crate) fn is_chained(header: &RowHeader) -> bool {
    header.flags & CHAINED != 0
}

pub(crate) fn is_deleted(header: &RowHeader) -> bool {
    header.flags & DELETED != 0
}
