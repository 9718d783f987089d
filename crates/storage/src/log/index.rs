//! The index that seals a segment: for each page, where all batches lie that change it. So who needs one page's changes
//! reads those batches, and no others: first a sector of the page table, then where the page's places begin, these, and
//! the batches. Who only asks which pages are newer than what he has of them reads the page table alone.
//!
//! ```text
//! | page table, ascending: a sector for each 511 pages of a tablespace | beginnings: of each page |
//! | places: by page, in the log's order | zeros | footer |
//! ```
//!
//! Source: Graefe & Kuno, *Definition, Detection, and Recovery of Single-Page Failures* (the log as a source of one
//! page's history).
//!
//! Invariants:
//! 1. An index has all batches of each page in its segment.
//! 2. A block adds no more to the index than it takes in the segment, but for the fronts of the page table's sectors,
//!    and where it ends within one (`Geometry::usable`).
//! 3. The index of the open segment is kept in memory as it grows: 12 bytes for a block, and a table of its pages. A
//!    segment bounds both.
//! 4. What is read of an index alone is checked alone: a sector of the page table by its checksum, which is of this
//!    segment and epoch only; a page's places, and that they are the page's, by the one beside where they begin. (That
//!    one is short. Who repeats batches sees by prevPageLSN whether they are all.)

use super::segment::FIRST;
use crate::bytes::{FromBytes, IntoBytes, U16, U32, layout};
use crate::types::{Lsn, PageId, SpaceId};
use rustc_hash::FxHashMap;
use terrace_device::SECTOR;

layout! {
    /// In front of a sector of the page table: CRC-32C of what follows; the tablespace of its pages, and how many.
    struct TableFront: 8 {
        0 crc: U32,
        4 space: U16,
        6 count: U16,
    }
}

layout! {
    /// A page, and where the last batch ends that changes it: offset in its segment.
    struct PageEntry: 8 {
        0 no: U32,
        4 end: U32,
    }
}

layout! {
    /// Which place is a page's first, and the low half of a CRC-32C of the page and its places.
    struct BeginningEntry: 6 {
        0 first: U32,
        4 check: U16,
    }
}

layout! {
    /// A batch: offsets in its segment. The highest bit of `start` says that the page begins afresh in it.
    struct PlaceEntry: 8 {
        0 start: U32,
        4 end: U32,
    }
}

const FRONT: usize = size_of::<TableFront>();
const PAGE: usize = size_of::<PageEntry>();
pub(super) const BEGINNING: usize = size_of::<BeginningEntry>();
pub(super) const PLACE: usize = size_of::<PlaceEntry>();
/// Of the front.
const CRC: usize = size_of::<U32>();
/// Pages in a sector of the page table.
const PAGES: usize = (SECTOR - FRONT) / PAGE;
/// Tablespaces whose pages the log changes: each begins a sector of the page table.
pub(super) const SPACES: usize = 2;
const AFRESH: u32 = 1 << 31;
const NONE: u32 = u32::MAX;

/// Where a batch lies in its segment that changes the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    start: u32,
    end: u32,
}

/// How many entries an index has.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Entries {
    pub(crate) pages: usize,
    pub(crate) places: usize,
    /// Sectors of the page table.
    pub(crate) sectors: usize,
}

/// The index of the segment that takes batches.
#[derive(Default)]
pub(super) struct OpenIndex {
    /// Each page's last place.
    last: FxHashMap<PageId, u32>,
    /// Tablespaces of the pages, a bit each.
    spaces: u64,
    /// In the log's order, each with the number of its page's place before.
    places: Vec<(Place, u32)>,
}

/// The index of a sealed segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SegmentIndex {
    /// LSN of the segment's first byte.
    base: Lsn,
    /// Ascending by page; which place is its first.
    pages: Vec<(PageId, u32)>,
    places: Vec<Place>,
}

/// The page table of a sealed segment, whose index was not read for the rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PageTable {
    /// LSN of the segment's first byte.
    base: Lsn,
    /// Ascending by page; where its last batch ends.
    pages: Vec<(PageId, u32)>,
}

/// Where a page's places begin.
pub(super) struct Beginning {
    pub(super) first: u32,
    check: u16,
}

impl Place {
    /// From one offset to another.
    pub(super) fn at(start: u32, end: u32) -> Place {
        Place { start, end }
    }

    /// Offset in the segment.
    pub(crate) fn start(self) -> u32 {
        self.start & !AFRESH
    }
    pub(crate) fn end(self) -> u32 {
        self.end
    }
    /// Whether the page needs no earlier content there.
    pub(crate) fn begins_afresh(self) -> bool {
        self.start & AFRESH != 0
    }

    fn entry(self) -> PlaceEntry {
        PlaceEntry { start: self.start.into(), end: self.end.into() }
    }

    fn of(entry: &PlaceEntry) -> Option<Place> {
        let place = Place { start: entry.start.get(), end: entry.end.get() };
        (place.start() < place.end).then_some(place)
    }
}

impl Entries {
    pub(super) fn table_bytes(self) -> usize {
        self.sectors * SECTOR
    }
    /// Page table and beginnings: the places lie behind them.
    pub(super) fn places_at(self) -> usize {
        self.table_bytes() + self.pages * BEGINNING
    }
    /// Bytes on the device: whole sectors of page table, then beginnings and places.
    pub(crate) fn bytes(self) -> usize {
        self.places_at() + self.places * PLACE
    }
}

/// Where the checksums of a segment's page table begin (invariant 4).
pub(super) fn seed(number: u64, epoch: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), &epoch.to_le_bytes())
}

/// The pages of a sector of the page table, each with where its last batch ends; `None` where it is none of that
/// segment.
pub(super) fn table_sector(sector: &[u8], seed: u32) -> Option<impl Iterator<Item = (PageId, u32)>> {
    let (front, entries) = TableFront::ref_from_prefix(sector).ok()?;
    if front.crc.get() != crc32c::crc32c_append(seed, &sector[CRC..]) {
        return None;
    }
    let space = SpaceId(front.space.get());
    let entries = <[PageEntry]>::ref_from_bytes(entries.get(..front.count.get() as usize * PAGE)?).ok()?;
    Some(entries.iter().map(move |entry| (PageId::new(space, entry.no.get()), entry.end.get())))
}

/// Beginnings, from their bytes.
pub(super) fn beginnings(bytes: &[u8]) -> Option<impl Iterator<Item = Beginning>> {
    let entries = <[BeginningEntry]>::ref_from_bytes(bytes).ok()?;
    Some(entries.iter().map(|entry| Beginning { first: entry.first.get(), check: entry.check.get() }))
}

/// The places of a page, from their bytes; `None` where they are others.
pub(super) fn places_of(page: PageId, beginning: &Beginning, bytes: &[u8]) -> Option<Vec<Place>> {
    if check_of(page, bytes) != beginning.check {
        return None;
    }
    <[PlaceEntry]>::ref_from_bytes(bytes).ok()?.iter().map(Place::of).collect()
}

fn check_of(page: PageId, places: &[u8]) -> u16 {
    crc32c::crc32c_append(crc32c::crc32c(&page.to_u64().to_le_bytes()), places) as u16
}

/// Of a page's places in a segment those that matter to who makes the page: from the last one on in which it begins
/// afresh.
pub(crate) fn from_last_beginning(places: &[Place]) -> &[Place] {
    &places[places.iter().rposition(|place| place.begins_afresh()).unwrap_or(0)..]
}

impl OpenIndex {
    /// What the index has when a batch of each of these pages has been added, at most.
    pub(super) fn with(&self, more: impl Iterator<Item = PageId>) -> Entries {
        let (mut count, mut spaces) = (0, self.spaces);
        more.for_each(|page| (count, spaces) = (count + 1, spaces | bit_of(page.space)));
        let (pages, places) = (self.last.len() + count, self.places.len() + count);
        Entries { pages, places, sectors: pages.div_ceil(PAGES) + (spaces.count_ones() as usize).saturating_sub(1) }
    }

    /// Adds a batch of the page, by its offsets.
    pub(super) fn add(&mut self, page: PageId, start: u64, end: u64, afresh: bool) {
        assert!(end < AFRESH.into(), "a segment has less than 2 GiB");
        let place = Place { start: start as u32 | if afresh { AFRESH } else { 0 }, end: end as u32 };
        self.spaces |= bit_of(page.space);
        let before = self.last.insert(page, self.places.len() as u32);
        self.places.push((place, before.unwrap_or(NONE)));
    }

    /// In the order in which it is kept; `base`: the LSN of the segment's first byte.
    pub(super) fn close(&self, base: Lsn) -> SegmentIndex {
        let mut last: Vec<(PageId, u32)> = self.last.iter().map(|(&page, &last)| (page, last)).collect();
        last.sort_unstable_by_key(|(page, _)| page.to_u64());
        let mut index = SegmentIndex { base, pages: Vec::with_capacity(last.len()), places: Vec::new() };
        index.places.reserve_exact(self.places.len());
        for (page, last) in last {
            let first = index.places.len();
            let mut at = last;
            while at != NONE {
                let (place, before) = self.places[at as usize];
                index.places.push(place);
                at = before;
            }
            index.places[first..].reverse();
            index.pages.push((page, first as u32));
        }
        index
    }
}

/// (There are `SPACES` of them, and they have small numbers.)
fn bit_of(space: SpaceId) -> u64 {
    1 << space.0
}

/// Pages as they lie in the sectors of the page table.
fn in_sectors<T>(pages: &[(PageId, T)]) -> impl Iterator<Item = &[(PageId, T)]> {
    pages.chunk_by(|a, b| a.0.space == b.0.space).flat_map(|of_space| of_space.chunks(PAGES))
}

/// The first page of each sector of the page table, and how many pages lie before it.
fn fences<T>(pages: &[(PageId, T)]) -> Vec<(PageId, u32)> {
    let mut before = 0;
    in_sectors(pages)
        .map(|sector| {
            let fence = (sector[0].0, before);
            before += sector.len() as u32;
            fence
        })
        .collect()
}

fn are_ascending<T>(pages: &[(PageId, T)]) -> bool {
    pages.windows(2).all(|two| two[0].0.to_u64() < two[1].0.to_u64())
}

impl PageTable {
    /// `None` where the bytes are no page table of so many pages.
    pub(super) fn decode(bytes: &[u8], entries: Entries, seed: u32, base: Lsn) -> Option<PageTable> {
        let mut pages = Vec::with_capacity(entries.pages);
        for sector in bytes.get(..entries.table_bytes())?.chunks_exact(SECTOR) {
            pages.extend(table_sector(sector, seed)?);
        }
        (pages.len() == entries.pages && are_ascending(&pages)).then_some(PageTable { base, pages })
    }

    /// Each page, with its LSN after the last batch, ascending.
    pub(crate) fn newest(&self) -> impl Iterator<Item = (PageId, Lsn)> {
        self.pages.iter().map(|(page, end)| (*page, Lsn(self.base.0 + u64::from(*end))))
    }

    /// Where the segment's first batch begins.
    pub(crate) fn start(&self) -> Lsn {
        Lsn(self.base.0 + FIRST)
    }

    pub(super) fn fences(&self) -> Vec<(PageId, u32)> {
        fences(&self.pages)
    }
}

impl SegmentIndex {
    pub(crate) fn entries(&self) -> Entries {
        let sectors = in_sectors(&self.pages).count();
        Entries { pages: self.pages.len(), places: self.places.len(), sectors }
    }

    /// Each page with its places, ascending.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (PageId, &[Place])> {
        (0..self.pages.len()).map(|at| (self.pages[at].0, self.places_at(at)))
    }

    /// The places of a page, in the log's order; none where the segment does not change it.
    pub(crate) fn places(&self, page: PageId) -> &[Place] {
        match self.pages.binary_search_by_key(&page.to_u64(), |(page, _)| page.to_u64()) {
            Ok(at) => self.places_at(at),
            Err(_) => &[],
        }
    }

    fn places_at(&self, at: usize) -> &[Place] {
        let end = self.pages.get(at + 1).map_or(self.places.len(), |(_, next)| *next as usize);
        &self.places[self.pages[at].1 as usize..end]
    }

    /// Where the batch begins, and where it ends: the LSN that its pages get.
    pub(crate) fn lsns(&self, place: Place) -> (Lsn, Lsn) {
        (Lsn(self.base.0 + u64::from(place.start())), Lsn(self.base.0 + u64::from(place.end)))
    }

    pub(super) fn fences(&self) -> Vec<(PageId, u32)> {
        fences(&self.pages)
    }

    pub(super) fn encode(&self, seed: u32, out: &mut [u8]) {
        let entries = self.entries();
        let (tables, places) = out.split_at_mut(entries.places_at());
        for (place, out) in self.places.iter().zip(places.chunks_exact_mut(PLACE)) {
            out.copy_from_slice(place.entry().as_bytes());
        }
        let (table, beginnings) = tables.split_at_mut(entries.table_bytes());
        let mut at = 0;
        for (pages, sector) in in_sectors(&self.pages).zip(table.chunks_exact_mut(SECTOR)) {
            for (page, out) in pages.iter().zip(sector[FRONT..].chunks_exact_mut(PAGE)) {
                let end = self.places_at(at).last().expect("a page has a place").end;
                out.copy_from_slice(PageEntry { no: page.0.no.into(), end: end.into() }.as_bytes());
                at += 1;
            }
            let space = pages[0].0.space.0.into();
            let front = TableFront { crc: U32::ZERO, space, count: (pages.len() as u16).into() };
            sector[..FRONT].copy_from_slice(front.as_bytes());
            let crc = crc32c::crc32c_append(seed, &sector[CRC..]);
            sector[..CRC].copy_from_slice(&crc.to_le_bytes());
        }
        for ((at, &(page, first)), out) in self.pages.iter().enumerate().zip(beginnings.chunks_exact_mut(BEGINNING)) {
            let check = check_of(page, &places[first as usize * PLACE..][..self.places_at(at).len() * PLACE]);
            out.copy_from_slice(BeginningEntry { first: first.into(), check: check.into() }.as_bytes());
        }
    }

    /// `None` where the bytes are no index of so many entries.
    pub(super) fn decode(bytes: &[u8], entries: Entries, seed: u32, base: Lsn) -> Option<SegmentIndex> {
        let (tables, places) = bytes.split_at_checked(entries.places_at())?;
        let (table, begun) = tables.split_at(entries.table_bytes());
        let listed = PageTable::decode(table, entries, seed, base)?;
        let mut pages = Vec::with_capacity(entries.pages);
        pages.extend(listed.pages.iter().zip(beginnings(begun)?).map(|((page, _), at)| (*page, at.first)));
        let entered = <[PlaceEntry]>::ref_from_bytes(places).ok()?;
        let mut places = Vec::with_capacity(entered.len()); // (Collected as an `Option` it would grow, and be copied.)
        for place in entered {
            places.push(Place::of(place)?);
        }
        let in_order = pages.windows(2).all(|two| two[0].1 < two[1].1);
        let whole = (pages.len(), places.len()) == (entries.pages, entries.places)
            && pages.first().map_or(places.is_empty(), |(_, first)| *first == 0)
            && pages.last().is_none_or(|(_, first)| (*first as usize) < places.len());
        let index = (in_order && whole).then_some(SegmentIndex { base, pages, places })?;
        let ends = |(at, (_, end)): (usize, &(PageId, u32))| index.places_at(at).last().is_some_and(|p| p.end == *end);
        listed.pages.iter().enumerate().all(ends).then_some(index)
    }
}

#[cfg(test)]
mod tests;
