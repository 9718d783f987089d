//! What a sealed segment has of some pages: found by sectors of its index, without reading the rest.
//!
//! What is known of a segment's seal is kept in memory (a few bytes for each 511 pages), from when it was read first
//! until the segment is used again.

use super::Core;
use super::index::{self, BEGINNING, Entries, PLACE, PageTable, Place};
use super::segment::{Seal, SegmentHeader};
use crate::error::Result;
use crate::types::{Lsn, PageId};
use futures::StreamExt;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use terrace_device::SECTOR;

/// Reads at a time.
const IN_FLIGHT: usize = 16;
/// Where so many pages are wanted for each sector of the page table, all of the index is read.
const DENSE: usize = 4;

/// A segment whose seal was read.
pub(super) struct Known {
    pub(super) header: SegmentHeader,
    pub(super) end: Lsn,
    entries: Entries,
    /// The first page of each sector of the page table, and how many pages lie before it.
    fences: Vec<(PageId, u32)>,
}

impl Core {
    pub(super) fn known(&self, number: u64) -> Option<Arc<Known>> {
        self.known.lock().get(&number).cloned()
    }

    /// Remembers a sound seal, and forgets those of segments that are no more.
    pub(super) fn remember(&self, header: SegmentHeader, seal: &Seal) -> Arc<Known> {
        let (end, entries, fences) = (seal.end, seal.index.entries(), seal.index.fences());
        self.remember_as(Known { header, end, entries, fences })
    }

    /// The same, by its footer and page table.
    pub(super) fn remember_table(
        &self,
        header: SegmentHeader,
        (entries, end): (Entries, Lsn),
        table: &PageTable,
    ) -> Arc<Known> {
        self.remember_as(Known { header, end, entries, fences: table.fences() })
    }

    fn remember_as(&self, known: Known) -> Arc<Known> {
        let (number, known) = (known.header.number, Arc::new(known));
        let first = self.tail.lock().slots.live().next().unwrap_or(0);
        let mut all = self.known.lock();
        all.retain(|number, _| *number >= first);
        all.insert(number, known.clone());
        known
    }

    /// Where the segment changes the pages, of each from the LSN beside it on; ascending. `None` where the index does
    /// not answer: it is damaged, or there no more, or all of it had better be read.
    pub(super) async fn look_up(
        &self,
        slot: u32,
        known: &Known,
        pages: &[(PageId, Lsn)],
    ) -> Result<Option<Vec<Place>>> {
        if pages.len() > DENSE * known.fences.len() {
            return Ok(None);
        }
        let at = self.geometry.slot_at(slot) + self.geometry.index_at(known.entries);
        let base = self.geometry.lsn(known.header.number, 0);
        let mut sectors: FxHashMap<usize, Vec<(PageId, Lsn)>> = FxHashMap::default();
        for &(page, since) in pages {
            let behind = known.fences.partition_point(|(first, _)| first.to_u64() <= page.to_u64());
            if behind > 0 {
                sectors.entry(behind - 1).or_default().push((page, since));
            }
        }
        let mut read = futures::stream::iter(sectors)
            .map(|(sector, pages)| self.look_in_sector(at, known, sector, pages))
            .buffer_unordered(IN_FLIGHT);
        let mut places = Vec::new();
        while let Some(found) = read.next().await {
            let Some(found) = found? else { return Ok(None) };
            let wanted = |(place, since): (Place, Lsn)| (base.0 + u64::from(place.start()) >= since.0).then_some(place);
            places.extend(found.into_iter().filter_map(wanted));
        }
        places.sort_unstable_by_key(|place| place.start());
        Ok(Some(places))
    }

    /// The places of these pages, which lie in one sector of the page table, each with its page's LSN. `at`: where the
    /// index lies.
    async fn look_in_sector(
        &self,
        at: u64,
        known: &Known,
        sector: usize,
        pages: Vec<(PageId, Lsn)>,
    ) -> Result<Option<Vec<(Place, Lsn)>>> {
        let seed = index::seed(known.header.number, known.header.epoch);
        let bytes = self.try_read(at + (sector * SECTOR) as u64, SECTOR).await?;
        let table = bytes.and_then(|bytes| Some(index::table_sector(&bytes, seed)?.collect::<Vec<_>>()));
        let Some(table) = table else { return Ok(None) };
        let mut found = Vec::new();
        for (page, since) in pages {
            let Ok(number) = table.binary_search_by_key(&page.to_u64(), |(listed, _)| listed.to_u64()) else {
                continue;
            };
            let number = known.fences[sector].1 as usize + number;
            let Some(places) = self.read_places(at, known, number, page).await? else { return Ok(None) };
            found.extend(index::from_last_beginning(&places).iter().map(|place| (*place, since)));
        }
        Ok(Some(found))
    }

    /// The places of the page with this number in its segment.
    async fn read_places(&self, at: u64, known: &Known, number: usize, page: PageId) -> Result<Option<Vec<Place>>> {
        let entries = known.entries;
        let beginning = |number: usize| entries.table_bytes() + number * BEGINNING;
        let count = (entries.pages - number).min(2); // This page's, and the next one's.
        let begun = self.read_part(at, beginning(number)..beginning(number + count)).await?;
        let begun: Option<Vec<_>> = begun.and_then(|bytes| Some(index::beginnings(&bytes)?.collect()));
        let Some(begun) = begun else { return Ok(None) };
        let (from, to) = (begun[0].first as usize, begun.get(1).map_or(entries.places, |next| next.first as usize));
        if from >= to || to > entries.places {
            return Ok(None);
        }
        let place = |number: usize| entries.places_at() + number * PLACE;
        let places = self.read_part(at, place(from)..place(to)).await?;
        Ok(places.and_then(|bytes| index::places_of(page, &begun[0], &bytes)))
    }

    /// These bytes of the index at `at`.
    async fn read_part(&self, at: u64, part: Range<usize>) -> Result<Option<Vec<u8>>> {
        let (first, end) = (part.start / SECTOR * SECTOR, part.end.next_multiple_of(SECTOR));
        let bytes = self.try_read(at + first as u64, end - first).await?;
        Ok(bytes.map(|bytes| bytes[part.start - first..part.end - first].to_vec()))
    }
}
