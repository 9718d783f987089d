//! The index that seals a segment: for each page, where all batches lie that change it. So who needs one page's changes
//! reads those batches, and no others: first a sector of the page table, then the page's places, then the batches.
//!
//! ```text
//! | page table, a sector for each 292 pages, ascending | places: by page, in the log's order | zeros | footer |
//! ```
//!
//! Source: Graefe & Kuno, *Definition, Detection, and Recovery of Single-Page Failures* (the log as a source of one
//! page's history).
//!
//! Invariants:
//! 1. An index has all batches of each page in its segment.
//! 2. A block adds no more to the index than it takes in the segment, but for the checksums of the page table's sectors
//!    (`Geometry::usable`).
//! 3. The index of the open segment is kept in memory as it grows: 12 bytes for a block, and a table of its pages. A
//!    segment bounds both.
//! 4. What is read of an index alone is checked alone: a sector of the page table by its checksum, which is of this
//!    segment and epoch only; a page's places by the one beside the page.

use crate::bytes::{FromBytes, IntoBytes, U16, U32, U64, layout};
use crate::types::{Lsn, PageId};
use rustc_hash::FxHashMap;
use terrace_device::SECTOR;

layout! {
    /// A page, which place is its first, and the low half of a CRC-32C of its places.
    struct PageEntry: 14 {
        0 page: U64,
        8 first: U32,
        12 check: U16,
    }
}

layout! {
    /// A batch: offsets in its segment. The highest bit of `start` says that the page begins afresh in it.
    struct PlaceEntry: 8 {
        0 start: U32,
        4 end: U32,
    }
}

const PAGE: usize = size_of::<PageEntry>();
pub(super) const PLACE: usize = size_of::<PlaceEntry>();
/// A sector of the page table begins with its CRC-32C.
const CRC: usize = 4;
/// Pages in such a sector.
const PAGES: usize = (SECTOR - CRC) / PAGE;
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
}

/// The index of the segment that takes batches.
#[derive(Default)]
pub(super) struct OpenIndex {
    /// Each page's last place.
    last: FxHashMap<PageId, u32>,
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

/// A page in a sector of the page table.
pub(super) struct Listed {
    pub(super) page: PageId,
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
    pub(super) fn table_sectors(self) -> usize {
        self.pages.div_ceil(PAGES)
    }
    /// Pages in a sector of the page table.
    pub(super) fn pages_in(self, sector: usize) -> usize {
        (self.pages - sector * PAGES).min(PAGES)
    }
    /// Bytes on the device: whole sectors of page table, then the places.
    pub(crate) fn bytes(self) -> usize {
        self.table_sectors() * SECTOR + self.places * PLACE
    }
}

/// Where the checksums of a segment's page table begin (invariant 4).
pub(super) fn seed(number: u64, epoch: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), &epoch.to_le_bytes())
}

/// The pages of a sector of the page table, so many; `None` where it is none of that segment.
pub(super) fn table_sector(sector: &[u8], seed: u32, pages: usize) -> Option<Vec<Listed>> {
    let (crc, entries) = sector.split_first_chunk::<CRC>()?;
    if u32::from_le_bytes(*crc) != crc32c::crc32c_append(seed, entries) {
        return None;
    }
    let listed = |entry: &PageEntry| Listed {
        page: PageId::from_u64(entry.page.get()),
        first: entry.first.get(),
        check: entry.check.get(),
    };
    Some(<[PageEntry]>::ref_from_bytes(entries.get(..pages * PAGE)?).ok()?.iter().map(listed).collect())
}

/// The places of a page, from their bytes; `None` where they are others.
pub(super) fn places_of(listed: &Listed, bytes: &[u8]) -> Option<Vec<Place>> {
    if check_of(bytes) != listed.check {
        return None;
    }
    <[PlaceEntry]>::ref_from_bytes(bytes).ok()?.iter().map(Place::of).collect()
}

fn check_of(places: &[u8]) -> u16 {
    crc32c::crc32c(places) as u16
}

/// Of a page's places in a segment those that matter to who makes the page: from the last one on in which it begins
/// afresh.
pub(crate) fn from_last_beginning(places: &[Place]) -> &[Place] {
    &places[places.iter().rposition(|place| place.begins_afresh()).unwrap_or(0)..]
}

impl OpenIndex {
    /// What the index has when `blocks` more have been added, at most.
    pub(super) fn with(&self, blocks: usize) -> Entries {
        Entries { pages: self.last.len() + blocks, places: self.places.len() + blocks }
    }

    /// Adds a batch of the page, by its offsets.
    pub(super) fn add(&mut self, page: PageId, start: u64, end: u64, afresh: bool) {
        assert!(end < AFRESH.into(), "a segment has less than 2 GiB");
        let place = Place { start: start as u32 | if afresh { AFRESH } else { 0 }, end: end as u32 };
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

impl SegmentIndex {
    pub(crate) fn entries(&self) -> Entries {
        Entries { pages: self.pages.len(), places: self.places.len() }
    }

    /// Each page with its places, ascending.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (PageId, &[Place])> {
        (0..self.pages.len()).map(|at| (self.pages[at].0, self.places_at(at)))
    }

    /// Of each page, where its first batch in the segment begins, and its LSN after the last.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (PageId, Lsn, Lsn)> {
        let ends = |places: &[Place]| Some((self.lsns(*places.first()?).0, self.lsns(*places.last()?).1));
        self.pages().filter_map(move |(page, places)| ends(places).map(|(first, last)| (page, first, last)))
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

    /// The first page of each sector of the page table, and its first place.
    pub(super) fn fences(&self) -> Vec<(PageId, u32)> {
        self.pages.iter().step_by(PAGES).copied().collect()
    }

    pub(super) fn encode(&self, seed: u32, out: &mut [u8]) {
        let (table, places) = out.split_at_mut(self.entries().table_sectors() * SECTOR);
        for (place, out) in self.places.iter().zip(places.chunks_exact_mut(PLACE)) {
            out.copy_from_slice(place.entry().as_bytes());
        }
        for (number, sector) in table.chunks_exact_mut(SECTOR).enumerate() {
            let pages = self.pages.iter().enumerate().skip(number * PAGES).take(PAGES);
            for ((at, &(page, first)), out) in pages.zip(sector[CRC..].chunks_exact_mut(PAGE)) {
                let from = first as usize * PLACE;
                let check = check_of(&places[from..][..self.places_at(at).len() * PLACE]);
                let entry = PageEntry { page: page.to_u64().into(), first: first.into(), check: check.into() };
                out.copy_from_slice(entry.as_bytes());
            }
            let crc = crc32c::crc32c_append(seed, &sector[CRC..]);
            sector[..CRC].copy_from_slice(&crc.to_le_bytes());
        }
    }

    /// `None` where the bytes are no index of so many entries.
    pub(super) fn decode(bytes: &[u8], entries: Entries, seed: u32, base: Lsn) -> Option<SegmentIndex> {
        let (table, places) = bytes.split_at_checked(entries.table_sectors() * SECTOR)?;
        let mut pages = Vec::with_capacity(entries.pages);
        for (number, sector) in table.chunks_exact(SECTOR).enumerate() {
            let listed = table_sector(sector, seed, entries.pages_in(number))?;
            pages.extend(listed.into_iter().map(|listed| (listed.page, listed.first)));
        }
        let listed = <[PlaceEntry]>::ref_from_bytes(places).ok()?;
        let mut places = Vec::with_capacity(listed.len()); // (Collected as an `Option` it would grow, and be copied.)
        for place in listed {
            places.push(Place::of(place)?);
        }
        let in_order = pages.windows(2).all(|two| two[0].0.to_u64() < two[1].0.to_u64() && two[0].1 < two[1].1);
        let whole = (pages.len(), places.len()) == (entries.pages, entries.places)
            && pages.first().map_or(places.is_empty(), |(_, first)| *first == 0)
            && pages.last().is_none_or(|(_, first)| (*first as usize) < places.len());
        (in_order && whole).then_some(SegmentIndex { base, pages, places })
    }
}

#[cfg(test)]
mod tests;
