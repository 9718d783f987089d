//! What one serialisable transaction has read, table by table, and who has read what.
//!
//! 1. What is here covers all that was read: single rows, full keys of an index (whether a row was found or not),
//!    ranges of an index, or a whole table. A key covers every row that has it or gets it, and a range every row whose
//!    entry lies or comes to lie in it. So no gap needs a lock of its own.
//! 2. A table of which very much was read in pieces counts as read whole. So what is kept of one transaction is
//!    bounded: [`POINTS`] and [`RANGES`] for each table.
//! 3. Keys are kept by their hash. Two keys with one hash are taken for the same: an abort too many, never one too few.
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::ops::{Bound, RangeBounds};
use terrace_storage::{ObjectId, Rid};

/// Rows and keys of a table that are kept one by one.
const POINTS: usize = if cfg!(test) { 32 } else { 4096 };
/// Ranges of a table that are kept one by one.
const RANGES: usize = if cfg!(test) { 8 } else { 64 };

/// About what a piece takes in memory: in its transaction's set, and in the table of all.
const PIECE: usize = 128;

pub(super) type Id = u64;

/// A piece of a table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Piece {
    Whole,
    Row(Rid),
    /// Of this index, by its hash.
    Key(ObjectId, u64),
}

impl Piece {
    /// A full key of an index, as `key::encode_key` makes it.
    pub(crate) fn key(index: ObjectId, key: &[u8]) -> Piece {
        let mut hasher = FxHasher::default();
        key.hash(&mut hasher);
        Piece::Key(index, hasher.finish())
    }
}

/// Bounds on the entries of an index.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

#[derive(Debug)]
struct Range {
    index: ObjectId,
    /// The scan that reads it; `None`: it has ended.
    scan: Option<u64>,
    bounds: Bounds,
}

impl Range {
    fn bytes(&self) -> usize {
        let len = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Unbounded => 0,
            Bound::Included(bytes) | Bound::Excluded(bytes) => bytes.len(),
        };
        PIECE + len(&self.bounds.0) + len(&self.bounds.1)
    }
}

/// What a transaction has read of a table.
#[derive(Default, Debug)]
struct OfTable {
    points: FxHashSet<Piece>,
    ranges: Vec<Range>,
}

impl OfTable {
    fn is_whole(&self) -> bool {
        self.points.contains(&Piece::Whole)
    }

    fn bytes(&self) -> usize {
        self.points.len() * PIECE + self.ranges.iter().map(Range::bytes).sum::<usize>()
    }
}

/// What a transaction has read.
#[derive(Default, Debug)]
pub(super) struct Reads(FxHashMap<ObjectId, OfTable>);

impl Reads {
    pub(super) fn tables(&self) -> impl Iterator<Item = ObjectId> {
        self.0.keys().copied()
    }

    fn in_range(&self, table: ObjectId, entries: &[(ObjectId, Vec<u8>)]) -> bool {
        let Some(of) = self.0.get(&table) else { return false };
        let within =
            |range: &Range| entries.iter().any(|(index, entry)| *index == range.index && range.bounds.contains(entry));
        of.ranges.iter().any(within)
    }
}

/// What was written: a row, and the entries that it had or has.
pub(crate) struct Written {
    pub(crate) table: ObjectId,
    pub(crate) rid: Rid,
    /// By index: the row's entry (key and RID).
    pub(crate) entries: Vec<(ObjectId, Vec<u8>)>,
}

/// Who has read what.
#[derive(Default)]
pub(super) struct Readers {
    points: FxHashMap<(ObjectId, Piece), Vec<Id>>,
    /// Who has ranges, by table.
    ranged: FxHashMap<ObjectId, BTreeSet<Id>>,
    /// Scans so far.
    scans: u64,
    /// About what all takes in memory.
    pub(super) bytes: usize,
}

impl Readers {
    pub(super) fn add(&mut self, id: Id, reads: &mut Reads, table: ObjectId, piece: Piece) {
        let of = reads.0.entry(table).or_default();
        if of.is_whole() || of.points.contains(&piece) {
            return;
        }
        if piece == Piece::Whole || of.points.len() >= POINTS {
            return self.coarsen(id, reads, table);
        }
        of.points.insert(piece);
        self.points.entry((table, piece)).or_default().push(id);
        self.bytes += PIECE;
    }

    /// A scan begins. `None`: all that it will read is there already.
    pub(super) fn scan(
        &mut self,
        id: Id,
        reads: &mut Reads,
        table: ObjectId,
        index: ObjectId,
        bounds: Bounds,
    ) -> Option<u64> {
        let of = reads.0.entry(table).or_default();
        let covers = |r: &Range| r.scan.is_none() && r.index == index && r.bounds == bounds;
        if of.is_whole() || of.ranges.iter().any(covers) {
            return None;
        }
        if of.ranges.len() >= RANGES {
            self.coarsen(id, reads, table);
            return None;
        }
        self.scans += 1;
        let range = Range { index, scan: Some(self.scans), bounds };
        self.bytes += range.bytes();
        of.ranges.push(range);
        self.ranged.entry(table).or_default().insert(id);
        Some(self.scans)
    }

    /// How far a scan goes or has gone. `ended`: all of this is read.
    pub(super) fn set_bounds(&mut self, reads: &mut Reads, table: ObjectId, scan: u64, bounds: Bounds, ended: bool) {
        let Some(of) = reads.0.get_mut(&table) else { return };
        // It is not there if the table is read whole by now.
        let Some(range) = of.ranges.iter_mut().find(|r| r.scan == Some(scan)) else { return };
        self.bytes -= range.bytes();
        range.bounds = bounds;
        if ended {
            range.scan = None;
        }
        self.bytes += range.bytes();
    }

    /// The table counts as read whole (invariant 2).
    pub(super) fn coarsen(&mut self, id: Id, reads: &mut Reads, table: ObjectId) {
        self.forget_table(id, reads, table);
        let whole = OfTable { points: FxHashSet::from_iter([Piece::Whole]), ranges: Vec::new() };
        reads.0.insert(table, whole);
        self.points.entry((table, Piece::Whole)).or_default().push(id);
        self.bytes += PIECE;
    }

    fn forget_table(&mut self, id: Id, reads: &mut Reads, table: ObjectId) {
        let Some(of) = reads.0.remove(&table) else { return };
        self.bytes -= of.bytes();
        if !of.ranges.is_empty()
            && let Some(ids) = self.ranged.get_mut(&table)
        {
            ids.remove(&id);
            if ids.is_empty() {
                self.ranged.remove(&table);
            }
        }
        for piece in of.points {
            if let Some(ids) = self.points.get_mut(&(table, piece)) {
                ids.retain(|other| *other != id);
                if ids.is_empty() {
                    self.points.remove(&(table, piece));
                }
            }
        }
    }

    pub(super) fn forget(&mut self, id: Id, mut reads: Reads) {
        let tables: Vec<ObjectId> = reads.tables().collect();
        tables.into_iter().for_each(|table| self.forget_table(id, &mut reads, table));
    }

    /// Who has read what is written, ascending.
    pub(super) fn of<'r>(&self, written: &Written, reads: impl Fn(Id) -> Option<&'r Reads>) -> BTreeSet<Id> {
        let Written { table, rid, entries } = written;
        let keys = entries.iter().map(|(index, entry)| Piece::key(*index, crate::key::key_of(entry)));
        let pieces = [Piece::Whole, Piece::Row(*rid)].into_iter().chain(keys);
        let mut found: BTreeSet<Id> =
            pieces.filter_map(|piece| self.points.get(&(*table, piece))).flatten().copied().collect();
        let ranged = self.ranged.get(table).into_iter().flatten();
        found.extend(ranged.filter(|id| reads(**id).is_some_and(|reads| reads.in_range(*table, entries))));
        found
    }
}
