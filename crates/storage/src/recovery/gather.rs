//! Changes of pages, gathered from the log within a budget of memory, so that all changes of a page are at hand at
//! once.
//!
//! ```text
//! pages  .....[ gathered ............. ][ let go ............................]
//!                     ^ set aside       beyond: left for the next reading of the log, as is what was set aside
//! ```
//!
//! Invariants:
//! 1. What is gathered of a page is all of it, from where the reading began, or from its last fresh beginning, or from
//!    what `take` gave out.
//! 2. When the budget is exceeded the owner takes everything out, or has pages set aside, or has those with the highest
//!    addresses let go. `left` names them; all others are complete at the reading's end.

use crate::bytes::{FromBytes, IntoBytes, U64, layout};
use crate::error::Result;
use crate::flash::BatchSpan;
use crate::log::Log;
use crate::log::batch::{Batch, Block};
use crate::log::history::{Visitor, starts_afresh};
use crate::types::{Lsn, PageId};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// What a page costs besides its changes, about.
const ENTRY: usize = 96;

layout! {
    /// What stands in front of a change's ops. In memory only.
    struct ChangeHeader: 16 {
        /// The page's LSN before the change, and after it.
        0 prev: U64,
        8 end: U64,
    }
}

const HEADER: usize = size_of::<ChangeHeader>();
/// Memory is given out in so many bytes.
const GRAIN: usize = 16;
/// A page whose changes take more than this part of the budget is given out at once.
const HOT_PART: usize = 16;

/// One change of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change<'a> {
    /// The page's LSN before it.
    pub(crate) prev: Lsn,
    /// And after it: end of its batch.
    pub(crate) end: Lsn,
    /// Encoded ops.
    pub(crate) ops: &'a [u8],
}

impl<'a> Change<'a> {
    pub(crate) fn of(batch: &Batch<'_>, block: &Block<'a>) -> Change<'a> {
        Change { prev: block.prev, end: batch.end, ops: block.ops }
    }

    /// Whether it needs no previous content.
    pub(crate) fn starts_afresh(&self) -> bool {
        starts_afresh(self.ops)
    }
}

/// A page's changes, oldest first. Only the first may start afresh.
#[derive(Default)]
pub(crate) struct Changes {
    /// Where the first one's batch begins.
    first: Lsn,
    /// Each with its header, in memory of its own. (All in one buffer that grows would leave holes of all sizes behind:
    /// the program took 88 MB for 48 MB of changes, and 62 MB so.)
    each: Vec<Box<[u8]>>,
    /// Bytes of them, as the allocator gives them.
    size: usize,
}

/// The changes of one page, as batches go by.
struct OfOne {
    page: PageId,
    changes: Changes,
}

impl Visitor for OfOne {
    async fn batches(&mut self, batches: &[Batch<'_>]) -> Result<()> {
        for batch in batches {
            let blocks = batch.blocks().filter(|block| block.page == self.page);
            blocks.for_each(|block| self.changes.push(batch.start, &Change::of(batch, &block)));
        }
        Ok(())
    }
}

impl Changes {
    /// The page's changes in these batches, ascending; `None` where they cannot be read.
    pub(crate) async fn at(log: &Log, page: PageId, spans: &[BatchSpan]) -> Option<Changes> {
        let mut of_one = OfOne { page, changes: Changes::default() };
        log.read_at(spans, &mut of_one).await.ok()?.then_some(of_one.changes)
    }

    fn push(&mut self, start: Lsn, change: &Change<'_>) {
        if change.starts_afresh() {
            self.each.clear(); // What came before does not matter any more.
            self.size = 0;
        }
        if self.each.is_empty() {
            self.first = start;
        }
        let (prev, end) = (change.prev.0.into(), change.end.0.into());
        let header = ChangeHeader { prev, end };
        if self.each.len() == self.each.capacity() {
            self.each.reserve_exact((self.each.len() / 4).max(2));
        }
        self.each.push([header.as_bytes(), change.ops].concat().into());
        self.size += (HEADER + change.ops.len()).next_multiple_of(GRAIN);
    }

    /// A recLSN for the page: where the first change's batch begins.
    pub(crate) fn first(&self) -> Lsn {
        self.first
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Change<'_>> {
        self.each.iter().filter_map(|change| {
            let (header, ops) = ChangeHeader::ref_from_prefix(change).ok()?;
            Some(Change { prev: Lsn(header.prev.get()), end: Lsn(header.end.get()), ops })
        })
    }

    pub(crate) fn starts_afresh(&self) -> bool {
        self.iter().next().is_some_and(|change| change.starts_afresh())
    }

    fn cost(&self) -> usize {
        ENTRY + self.size + self.each.capacity() * size_of::<Box<[u8]>>()
    }
}

/// What to do after a change was added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pushed {
    Fits,
    /// The page has so many changes that they are better taken out and applied at once.
    Hot,
    /// The budget is exceeded.
    Full,
}

/// Pages that are left for another reading of the log.
#[derive(Clone, Default)]
pub(crate) struct Left {
    /// All from here on.
    beyond: Option<PageId>,
    aside: BTreeSet<PageId>,
}

impl Left {
    pub(crate) fn has(&self, page: PageId) -> bool {
        self.beyond.is_some_and(|beyond| page >= beyond) || self.aside.contains(&page)
    }
}

/// The changes of pages.
pub(crate) struct Gathered {
    budget: usize,
    used: usize,
    /// `None`: all pages.
    wanted: Option<Left>,
    /// Of those, not these.
    left: Left,
    pages: FxHashMap<PageId, Changes>,
}

impl Gathered {
    pub(crate) fn new(budget: usize, wanted: Option<Left>) -> Gathered {
        Gathered { budget, used: 0, wanted, left: Left::default(), pages: FxHashMap::default() }
    }

    /// Whether a page is one of those that are being gathered.
    pub(crate) fn wants(&self, page: PageId) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.has(page)) && !self.left.has(page)
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// What the next reading has to gather, if there is one.
    pub(crate) fn left(&self) -> Option<Left> {
        let Left { beyond, aside } = &self.left;
        let mut left = Left { beyond: *beyond, aside: aside.clone() };
        if let (Some(wanted), Some(from)) = (&self.wanted, beyond) {
            // Of those that this reading did not want, none is left.
            left.beyond = wanted.beyond.map(|beyond| beyond.max(*from));
            left.aside.extend(wanted.aside.range(from..));
        }
        (left.beyond.is_some() || !left.aside.is_empty()).then_some(left)
    }

    fn is_full(&self) -> bool {
        self.used > self.budget
    }

    /// If the budget is exceeded, leaves pages for the next reading: those with very many changes, then as `let_go`.
    pub(crate) fn make_room(&mut self, part: f64) {
        if !self.is_full() {
            return;
        }
        let hot = |changes: &Changes| changes.size > self.budget / HOT_PART;
        let pages: Vec<PageId> = self.pages.iter().filter(|(_, c)| hot(c)).map(|(page, _)| *page).collect();
        pages.into_iter().for_each(|page| self.set_aside(page));
        if self.is_full() {
            self.let_go(part);
        }
    }

    /// Leaves a page for the next reading.
    pub(crate) fn set_aside(&mut self, page: PageId) {
        self.take(page);
        self.left.aside.insert(page);
    }

    /// Adds a change of a page that is wanted.
    pub(crate) fn push(&mut self, page: PageId, start: Lsn, change: &Change<'_>) -> Pushed {
        let changes = self.pages.entry(page).or_default();
        let before = if changes.each.capacity() == 0 { 0 } else { changes.cost() };
        changes.push(start, change);
        let hot = changes.size > self.budget / HOT_PART;
        self.used = self.used - before + changes.cost();
        match self.is_full() {
            _ if hot => Pushed::Hot,
            true => Pushed::Full,
            false => Pushed::Fits,
        }
    }

    /// Keeps as much as, at the rate so far, will fill the budget when the log is read, and at least a page. `part`:
    /// how much of the log has been read, 0 to 1.
    pub(crate) fn let_go(&mut self, part: f64) {
        let keep = (self.budget as f64 * part.clamp(0.125, 0.875)) as usize;
        let mut order: Vec<(PageId, usize)> =
            self.pages.iter().map(|(&page, changes)| (page, changes.cost())).collect();
        order.sort_unstable_by_key(|(page, _)| *page);
        let mut kept = 0;
        let cut = order.iter().skip(1).find(|(_, cost)| {
            kept += cost;
            kept > keep
        });
        let Some(&(cut, _)) = cut else { return };
        self.left.beyond = Some(cut);
        self.pages.retain(|page, _| *page < cut);
        self.pages.shrink_to_fit();
        self.used = self.pages.values().map(Changes::cost).sum();
    }

    /// Gives out what there is of a page by now.
    pub(crate) fn take(&mut self, page: PageId) -> Option<Changes> {
        let changes = self.pages.remove(&page)?;
        self.used -= changes.cost();
        Some(changes)
    }

    /// Takes everything out, in order of address.
    pub(crate) fn take_all(&mut self) -> Vec<(PageId, Changes)> {
        self.used = 0;
        let mut pages: Vec<_> = std::mem::take(&mut self.pages).into_iter().collect();
        pages.sort_unstable_by_key(|(page, _)| *page);
        pages
    }
}

/// Pages in a region of the set.
const REGION: u32 = 512;

/// A set of pages, a bit each, for sets that are dense in places.
#[derive(Default)]
pub(crate) struct PageSet {
    regions: FxHashMap<PageId, [u64; REGION as usize / 64]>,
    len: u64,
}

impl PageSet {
    pub(crate) fn insert(&mut self, page: PageId) {
        let region = self.regions.entry(PageId::new(page.space, page.no / REGION)).or_default();
        let (word, bit) = ((page.no % REGION) as usize / 64, 1 << (page.no % 64));
        self.len += u64::from(region[word] & bit == 0);
        region[word] |= bit;
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }
}
