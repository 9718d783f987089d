//! Scans: batches of visible rows.
//!
//! 1. A full scan copies each page's rows under one latch hold, and finds older versions afterwards.
//! 2. An index scan returns a row at the entry whose key is the visible version's, and at no other: entries have no
//!    versions, so a row may have several.
//! 3. An index that lacks versions which the snapshot sees (`Txn::can_use_index`) is replaced by a full scan, its rows
//!    selected and sorted in memory: slower, the same answer.
//! 4. A batch is handed out only if the snapshot had not been given up when all of it had been read
//!    ([`Scanner::next_batch`]).
//! 5. A serialisable transaction notes what a scan will read before it reads (`serializable`, invariant 1): all of the
//!    table, or the rest of the range. After each batch the note is cut back to what was read.
//! 6. Rows that the transaction changes while it scans may be met in their new version. A caller that does not want
//!    that collects all rows first.
use super::{Scan, ScanDirection, Version};
use crate::catalog::{Index, Table};
use crate::database::Core;
use crate::error::{EngineError, Result};
use crate::key;
use crate::record::{is_chained, is_deleted};
use crate::row::RowBuf;
use crate::serializable::{NotedScan, Piece};
use crate::usage::Tally;
use crate::versions::{Reader, RowVersion};
use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use terrace_storage::btree::{BTree, Cursor, Direction};
use terrace_storage::heap::{Heap, StoredRow};
use terrace_storage::pool::{Access, Prefetching};
use terrace_storage::{DATA, ObjectId, Rid};

type FoundRow = (Rid, RowBuf, Version);

/// Rows of a scan, a batch at a time. Owns what it needs: outlives nothing, borrows nothing.
pub struct Scanner {
    core: Arc<Core>,
    reader: Reader,
    table: Arc<Table>,
    source: Source,
    /// Rows found and not yet returned.
    ready: VecDeque<FoundRow>,
    /// Of the index that is read, else of the table.
    counted: ObjectId,
    tally: Tally,
}

/// A table that is going to be read, by a way that is chosen later: what is seen is settled.
pub struct Begun {
    core: Arc<Core>,
    reader: Reader,
    table: Arc<Table>,
    /// All indexes of the table have every version that the snapshot sees.
    by_indexes: bool,
}

impl Begun {
    pub(super) fn new(core: Arc<Core>, reader: Reader, table: Arc<Table>, by_indexes: bool) -> Begun {
        Begun { core, reader, table, by_indexes }
    }

    /// Whether indexes have what is seen.
    pub fn may_use_indexes(&self) -> bool {
        self.by_indexes
    }

    pub fn scan(&self, scan: Scan) -> Scanner {
        let usable = matches!(scan, Scan::Full) || self.by_indexes;
        Scanner::new(self.core.clone(), self.reader.clone(), self.table.clone(), scan, usable)
    }
}

enum Source {
    Full {
        pages: VecDeque<u32>,
        next: u32,
        ahead: Ahead,
    },
    Index {
        index: Arc<Index>,
        tree: BTree,
        cursor: Cursor,
        /// Of a serialisable transaction; boxed, because most are not.
        notes: Option<Box<Notes>>,
    },
    /// All rows, to be selected and sorted by the keys of an index (invariant 3).
    Sorted {
        all: Box<Scanner>,
        index: Arc<Index>,
        bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>),
        direction: ScanDirection,
    },
    /// The range made no sense for the index.
    Failed(EngineError),
    Done,
}

/// How far a full scan has read ahead.
#[derive(Default)]
struct Ahead {
    /// Pages left of the run that it is in.
    left: usize,
    /// The run behind it, once it is being read.
    next: Option<(usize, Prefetching)>,
}

/// What a serialisable transaction has noted of a range (invariant 5).
struct Notes {
    bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    direction: ScanDirection,
    /// `None`: at first, and where nothing is left to note.
    scan: Option<NotedScan>,
    begun: bool,
}

/// Pages listed at a time.
const LIST: usize = 1024;

impl Scanner {
    /// `usable`: the index of the scan has every version that the snapshot sees.
    pub(super) fn new(core: Arc<Core>, reader: Reader, table: Arc<Table>, scan: Scan, usable: bool) -> Scanner {
        let counted = match &scan {
            Scan::Index(range) if usable => range.index.oid,
            _ => table.oid,
        };
        let mut tally = Tally::new(core.usage.clone());
        if usable {
            // Otherwise the full scan that replaces it is counted.
            tally.scanned(counted, 0);
        }
        let source = match scan {
            Scan::Full => Source::Full { pages: VecDeque::new(), next: 0, ahead: Ahead::default() },
            Scan::Index(range) => match key::encode_range(&table, &range) {
                Err(e) => Source::Failed(e),
                Ok(bounds) if !usable => {
                    let all = Scanner::new(core.clone(), reader.clone(), table.clone(), Scan::Full, true);
                    Source::Sorted { all: Box::new(all), index: range.index, bounds, direction: range.direction }
                }
                Ok((from, to)) => {
                    let tree = range.index.tree();
                    let direction = match range.direction {
                        ScanDirection::Forward => Direction::Forward,
                        ScanDirection::Backward => Direction::Backward,
                    };
                    let notes = reader.serial.is_some().then(|| {
                        let bounds = (from.clone(), to.clone());
                        Box::new(Notes { bounds, direction: range.direction, scan: None, begun: false })
                    });
                    let cursor = tree.cursor(from, to, direction);
                    Source::Index { index: range.index, tree, cursor, notes }
                }
            },
        };
        Scanner { core, reader, table, source, ready: VecDeque::new(), counted, tally }
    }

    /// At most `max` rows; empty at the end. 72000 where the snapshot was given up (invariant 4).
    pub async fn next_batch(&mut self, max: usize) -> Result<Vec<(Rid, RowBuf, Version)>> {
        assert!(max > 0, "a batch has rows");
        let mut filled = Ok(true);
        while self.ready.len() < max && matches!(filled, Ok(true)) {
            filled = self.fill().await;
        }
        self.reader.snapshot.believe(filled)?;
        let n = self.ready.len().min(max);
        self.tally.count(self.counted).rows += n as u64;
        Ok(self.ready.drain(..n).collect())
    }

    /// Finds some more rows; false at the end.
    async fn fill(&mut self) -> Result<bool> {
        match &mut self.source {
            Source::Done => Ok(false),
            Source::Failed(e) => Err(e.clone()),
            Source::Sorted { all, index, bounds, direction } => {
                let found = sorted(all, &self.table, index, bounds, *direction).await?;
                self.ready.extend(found);
                self.source = Source::Done;
                Ok(!self.ready.is_empty())
            }
            Source::Full { pages, next, ahead } => {
                if pages.is_empty() {
                    if let (0, Some(serial)) = (*next, &self.reader.serial) {
                        serial.reads(self.table.oid, Piece::Whole)?;
                    }
                    pages.extend(self.core.store.space(DATA).pages(self.table.oid, *next, LIST));
                }
                let Some(page) = pages.pop_front() else {
                    self.source = Source::Done;
                    return Ok(false);
                };
                *next = page + 1;
                self.core.read_ahead(ahead, page, pages).await;
                self.scan_page(page).await?;
                Ok(true)
            }
            Source::Index { index, tree, cursor, notes } => {
                if let Some(notes) = notes {
                    notes.note_rest(&self.reader, self.table.oid, index.oid)?;
                }
                let entries = cursor.next_batch(&self.core.store, tree).await?;
                if let Some(notes) = notes {
                    notes.cut_back(entries.last());
                }
                if entries.is_empty() {
                    self.source = Source::Done;
                    return Ok(false);
                }
                for entry in entries {
                    let (prefix, rid) = (key::key_of(&entry), key::rid_of(&entry));
                    let found = self.core.get_row(&self.reader, &self.table, index, prefix, rid).await?;
                    self.ready.extend(found);
                }
                Ok(true)
            }
        }
    }

    async fn scan_page(&mut self, page: u32) -> Result<()> {
        let pin = self.core.pin(page, Access::Sequential).await?;
        let mut rows: Vec<(Rid, std::result::Result<RowVersion, StoredRow>)> = Vec::new();
        Heap::read_page(&pin, |slot, header, bytes| {
            let rid = Rid { page, slot };
            let seen = self.reader.sees(header.writer);
            if seen && is_deleted(&header) {
                return;
            }
            let bytes = bytes.to_vec();
            match seen && !is_chained(&header) {
                true => rows.push((rid, Ok(RowVersion { header, payload: bytes }))),
                false => rows.push((rid, Err(StoredRow { header, bytes }))),
            }
        });
        for (rid, row) in rows {
            let version = match row {
                Ok(version) => Some(version),
                Err(stored) => self.core.visible(&self.reader, self.table.oid, rid, stored).await?,
            };
            if let Some(version) = version {
                let (row, version) = version.into_row();
                self.ready.push_back((rid, row, version));
            }
        }
        Ok(())
    }
}

impl Notes {
    /// Before a batch is read: of all that is left.
    fn note_rest(&mut self, reader: &Reader, table: ObjectId, index: ObjectId) -> Result<()> {
        match (&self.scan, &reader.serial) {
            (Some(scan), _) => scan.set_bounds(self.bounds.clone(), false),
            (None, Some(serial)) if !self.begun => self.scan = serial.scans(table, index, self.bounds.clone())?,
            _ => {}
        }
        self.begun = true;
        Ok(())
    }

    /// After a batch: of what was read. `last`: the entry that was read last; `None`: there are no more.
    fn cut_back(&self, last: Option<&Vec<u8>>) {
        let Some(scan) = &self.scan else { return };
        let (from, to) = self.bounds.clone();
        match (last, self.direction) {
            (None, _) => scan.set_bounds((from, to), true),
            (Some(last), ScanDirection::Forward) => scan.set_bounds((from, Bound::Included(last.clone())), false),
            (Some(last), ScanDirection::Backward) => scan.set_bounds((Bound::Included(last.clone()), to), false),
        }
    }
}

/// The rows whose keys lie within the bounds, in key order.
async fn sorted(
    all: &mut Scanner,
    table: &Table,
    index: &Index,
    bounds: &(Bound<Vec<u8>>, Bound<Vec<u8>>),
    direction: ScanDirection,
) -> Result<Vec<FoundRow>> {
    let mut rows: Vec<(Vec<u8>, FoundRow)> = Vec::new();
    while Box::pin(all.fill()).await? {
        for found in all.ready.drain(..) {
            let entry = key::encode_entry(index, found.1.view(table), found.0);
            if bounds.contains(&entry) {
                rows.push((entry, found));
            }
        }
    }
    rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    if direction == ScanDirection::Backward {
        rows.reverse();
    }
    Ok(rows.into_iter().map(|(_, found)| found).collect())
}

impl Core {
    /// Sees to it that `page` is read, of a scan that has `listed` before it: in runs, of which the next is read while
    /// the pages of one are worked on (from its second page on: a scan may want a row only).
    async fn read_ahead(&self, ahead: &mut Ahead, page: u32, listed: &VecDeque<u32>) {
        if ahead.left > 0 {
            if ahead.next.is_none()
                && let Some(&first) = listed.get(ahead.left - 1)
            {
                let run = self.run(first, listed.iter().skip(ahead.left));
                ahead.next = Some((run, self.store.pool().begin_prefetch(DATA, first, run as u32)));
            }
        } else if let Some((run, reading)) = ahead.next.take() {
            reading.ended().await;
            ahead.left = run;
        } else {
            ahead.left = self.run(page, listed.iter());
            if ahead.left > 1 {
                self.store.pool().prefetch(DATA, page, ahead.left as u32).await;
            }
        }
        ahead.left -= 1;
    }

    /// How many pages to read at once from the first on: those behind it that follow each other; two runs are to fit
    /// into the part of memory in which new pages age.
    fn run<'a>(&self, first: u32, behind: impl Iterator<Item = &'a u32>) -> usize {
        let limit = self.store.config().read_ahead.min(self.store.pool().frames() / 8).max(1);
        1 + behind.zip(first + 1..).take(limit - 1).take_while(|(a, b)| **a == *b).count()
    }

    /// The visible version of the row behind an index entry, if it has the entry's key.
    pub(super) async fn get_row(
        &self,
        reader: &Reader,
        table: &Table,
        index: &Index,
        prefix: &[u8],
        rid: Rid,
    ) -> Result<Option<FoundRow>> {
        let Some(row) = self.stored(rid).await? else { return Ok(None) };
        let Some(version) = self.visible(reader, table.oid, rid, row).await? else { return Ok(None) };
        if key::encode_key(index, version.view(table)) != prefix {
            return Ok(None);
        }
        let (row, version) = version.into_row();
        Ok(Some((rid, row, version)))
    }

    /// Every row of a table in its newest settled version, deleted ones included, a page at a time from `from` on: what
    /// checks go through. Returns the page after the last one read, or `None` at the end.
    pub(crate) async fn stored_rows(&self, table: ObjectId, from: u32) -> Result<Option<(u32, Vec<(Rid, StoredRow)>)>> {
        let Some(page) = self.store.space(DATA).pages(table, from, 1).first().copied() else { return Ok(None) };
        let pin = self.pin(page, Access::Sequential).await?;
        let mut rows = Vec::new();
        Heap::read_page(&pin, |slot, header, bytes| {
            rows.push((Rid { page, slot }, StoredRow { header, bytes: bytes.to_vec() }));
        });
        Ok(Some((page + 1, rows)))
    }
}
