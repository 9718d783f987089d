//! Reading a part of the log again: forward for pages that are made again ([`Log::walk`]), backward for where their
//! last beginnings are ([`Log::beginnings`]). After Graefe & Kuno, "Self-diagnosing and self-healing indexes" (design
//! section 4): the page indexes of sealed segments tell which batches to read, prevPageLSN proves that nothing is
//! missing.
//!
//! Invariants:
//! 1. Nothing is left out. A batch is passed over only where its segment's index, sound by its checksum, proves that it
//!    has nothing wanted; a segment that is read whole must have batches up to where its successor's header says that
//!    the stream before it ended. A seal may say more than that: a crash can keep the seal and lose the batches in
//!    front of it, and the next life goes on in the next segment.
//! 2. What is read at once is bounded: one segment, the next one that is read meanwhile, and the indexes of a few
//!    behind it. They are asked in the stream's order.
//! 3. Nothing is put in. Where the stream left a segment before the end that its seal names, the batches behind that
//!    place are no history, though they may check: the index counts as none, and the segment is read from its
//!    beginning.

use super::batch::Batch;
use super::excerpt::Excerpt;
use super::index::{self, Entries, PageTable, Place, SegmentIndex};
use super::lookup::Known;
use super::reader::SegmentImage;
use super::segment::{Seal, SegmentHeader};
use super::spare::LARGE;
use super::{Core, Log};
use crate::error::{Result, StorageError};
use crate::page::op::PageOp;
use crate::types::{Lsn, PageId};
use futures::{Stream, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use terrace_device::SECTOR;

/// Which batches of a sealed segment are wanted. (Of one that is read whole, all are shown: invariants 1 and 3.)
pub(crate) trait Selection: Sync {
    fn select(&self, index: &SegmentIndex) -> Wanting;

    /// All that change these pages, of each from the LSN beside it on, if that is what is wanted.
    fn pages(&self) -> Option<&[(PageId, Lsn)]> {
        None
    }

    /// Whether a segment's page table may be enough: then that is read first.
    fn asks_table(&self) -> bool {
        false
    }

    /// Whether nothing more is wanted of a segment. Asked in the stream's order, as `select` is.
    fn is_enough(&self, _: &PageTable) -> bool {
        false
    }
}

/// What is wanted of a segment.
pub(crate) enum Wanting {
    Nothing,
    /// The batches at these places, ascending.
    Places(Vec<Place>),
    All,
}

/// Who wants nothing of a segment, or all, says so by a function.
impl<F: Fn(&SegmentIndex) -> Wanting + Sync> Selection for F {
    fn select(&self, index: &SegmentIndex) -> Wanting {
        self(index)
    }
}

/// All batches.
pub(crate) struct Everything;

impl Selection for Everything {
    fn select(&self, _: &SegmentIndex) -> Wanting {
        Wanting::All
    }
}

/// The changes of these pages, of each from the LSN beside it on.
pub(crate) struct ChangesOf<'a>(pub(crate) &'a [(PageId, Lsn)]);

impl Selection for ChangesOf<'_> {
    fn select(&self, index: &SegmentIndex) -> Wanting {
        let of = |&(page, since): &(PageId, Lsn)| {
            let places = index::from_last_beginning(index.places(page)).iter().copied();
            places.filter(move |place| index.lsns(*place).0 >= since)
        };
        let mut places: Vec<Place> = self.0.iter().flat_map(of).collect();
        places.sort_unstable_by_key(|place| place.start());
        Wanting::of(places)
    }

    fn pages(&self) -> Option<&[(PageId, Lsn)]> {
        Some(self.0)
    }
}

impl Wanting {
    fn of(places: Vec<Place>) -> Wanting {
        if places.is_empty() { Wanting::Nothing } else { Wanting::Places(places) }
    }
}

/// A reader of a part of the log.
pub(crate) trait Visitor: Send {
    /// The next batches, in order; some of one segment.
    fn batches(&mut self, batches: &[Batch<'_>]) -> impl Future<Output = Result<()>> + Send;
}

/// Whether these ops need no previous content.
pub(crate) fn starts_afresh(ops: &[u8]) -> bool {
    let mut rest = ops;
    PageOp::decode(&mut rest).is_ok_and(|op| op.starts_afresh())
}

/// Indexes read at a time: each takes up to two milliseconds of a device, and as long to be asked.
const INDEXES: usize = 4;
/// Segments read at a time for some batches of each.
const EXCERPTS: usize = 8;
/// Batches shown at once.
const SHOWN: usize = 1024;

/// What a segment has of the wanted pages.
enum Look {
    /// Nothing, or an excerpt: no more, as its index proves.
    Part {
        prev_end: Lsn,
        end: Lsn,
        excerpt: Option<Excerpt>,
    },
    Read(SegmentImage),
    /// The log has not got it any more.
    Gone,
}

/// What was read of a segment's index.
enum Index {
    /// Where it has what is wanted of pages, by parts of it.
    Places(Arc<Known>, Vec<Place>),
    Whole(SegmentHeader, Seal),
    /// Its page table, which may be enough.
    Table(SegmentHeader, (Entries, Lsn), PageTable),
    /// There is none that is sound and speaks for the segment.
    None,
}

impl Log {
    /// Shows all batches that begin at or above `from` (where one ended or begins) and end at or below `to` (durable,
    /// the end of a batch), in order, as far as they are wanted: `wanted` is asked where a segment has an index. False
    /// where the log does not reach back to `from` any more: what was shown then is not all there was. What lies in
    /// front of `from` need not check.
    pub(crate) async fn walk(
        &self,
        from: Lsn,
        to: Lsn,
        wanted: &impl Selection,
        visitor: &mut impl Visitor,
    ) -> Result<bool> {
        let (mut number, last) = (self.segment_of(from), self.segment_of(to));
        // Where the segment before ended, and whether that was read.
        let mut before: Option<(Lsn, bool)> = None;
        if from >= to {
            return Ok(true);
        }
        let mut indexes = futures::stream::iter(number..=last)
            .map(|number| async move { (number, self.core.read_index(number, wanted).await) })
            .buffered(INDEXES);
        let Some(mut look) = self.look_at_next(&mut indexes, wanted).await? else { return Ok(true) };
        loop {
            let prev_end = match &look {
                Look::Gone => return Ok(false),
                Look::Part { prev_end, .. } => *prev_end,
                Look::Read(image) => image.header.prev_end,
            };
            // Invariant 1.
            if before.is_some_and(|(end, read)| prev_end > end || read && prev_end < end) {
                return self.hole(number - 1, prev_end);
            }
            let begin = if before.is_none() { from } else { Lsn(0) };
            // The next segment is read while this one is shown.
            let next = self.look_at_next(&mut indexes, wanted);
            let (reached, next) = match &look {
                Look::Read(image) => {
                    let (next, shown) = futures::join!(next, show(image, begin, to, visitor));
                    (shown?.unwrap_or(begin.max(prev_end)), next?)
                }
                Look::Part { end, excerpt: None, .. } => (*end, next.await?),
                Look::Part { end, excerpt: Some(excerpt), .. } => {
                    let batches = excerpt.batches().filter(|batch| batch.start >= begin && batch.end <= to);
                    let (next, shown) = futures::join!(next, show_batches(batches, visitor));
                    shown?;
                    (*end, next?)
                }
                Look::Gone => unreachable!("looked at above"),
            };
            let Some(next) = next else {
                return if reached >= to { Ok(true) } else { self.hole(number, to) };
            };
            before = Some((reached, matches!(look, Look::Read(_))));
            (look, number) = (next, number + 1);
        }
    }

    /// Shows the batches that begin and end here, ascending, as indexes of segments that are held have named them.
    /// False where one of them is not there, or does not check: then a walk says what is wrong.
    pub(crate) async fn read_at(&self, spans: &[(Lsn, Lsn)], visitor: &mut impl Visitor) -> Result<bool> {
        let segments = spans.chunk_by(|a, b| self.segment_of(a.0) == self.segment_of(b.0));
        let segments: Vec<_> = segments.map(|spans| self.excerpt(spans.to_vec())).collect();
        let mut excerpts = futures::stream::iter(segments).buffered(EXCERPTS);
        while let Some(excerpt) = excerpts.next().await {
            let Some(excerpt) = excerpt? else { return Ok(false) };
            show_batches(excerpt.batches(), visitor).await?;
        }
        Ok(true)
    }

    /// These batches of one segment.
    async fn excerpt(&self, spans: Vec<(Lsn, Lsn)>) -> Result<Option<Excerpt>> {
        let (core, number) = (&self.core, self.segment_of(spans[0].0));
        let base = core.geometry.lsn(number, 0).0;
        let places =
            spans.iter().map(|(start, end)| Place::at((start.0 - base) as u32, (end.0 - base) as u32)).collect();
        let Some(slot) = core.tail.lock().slots.slot(number) else { return Ok(None) };
        let header = match core.known(number) {
            Some(known) => known.header,
            None => match core.read_header(slot).await?.filter(|header| header.number == number) {
                Some(header) => header,
                None => return Ok(None),
            },
        };
        core.read_excerpt(slot, &header, places).await
    }

    /// Where each page last begins afresh, in a batch that ends at or below `upto`, the end of a batch: the start of
    /// that batch. Pages whose beginning the log has not got any more are left out.
    pub(crate) async fn beginnings(&self, pages: &BTreeSet<PageId>, upto: Lsn) -> Result<BTreeMap<PageId, Lsn>> {
        let mut left = pages.clone();
        let mut found = BTreeMap::new();
        let mut end = upto;
        while end > Lsn(0) && !left.is_empty() {
            let number = self.segment_of(end);
            let sealed = self.seal_of(number).await?;
            let (here, prev_end) = match sealed {
                // (A seal may say more than is there: invariant 1.)
                Some((prev_end, seal)) if seal.end >= end => {
                    let begun = |page: &PageId| {
                        let mut places =
                            seal.index.places(*page).iter().rev().map(|place| (place, seal.index.lsns(*place)));
                        places
                            .find(|(place, lsns)| place.begins_afresh() && lsns.1 <= end)
                            .map(|(_, lsns)| (*page, lsns.0))
                    };
                    (left.iter().filter_map(begun).collect(), prev_end)
                }
                _ => match self.segment(number).await? {
                    None => return Ok(found),
                    Some(image) => match last_beginnings(&image, end, &left) {
                        Some(here) => (here, image.header.prev_end),
                        None => return self.hole(number, end).map(|_| found),
                    },
                },
            };
            left.retain(|page| !here.contains_key(page));
            let mut here: BTreeMap<PageId, Lsn> = here;
            found.append(&mut here);
            end = prev_end;
            assert!(
                end == Lsn(0) || self.segment_of(end) < number,
                "the stream goes back from segment {number} to {end}"
            );
        }
        Ok(found)
    }

    /// Where the stream before this LSN's segment ended, and whether the segment's seal ends at this LSN; `None` where
    /// the log has not got the segment.
    pub(crate) async fn bounds_of(&self, lsn: Lsn) -> Result<Option<(Lsn, bool)>> {
        let number = self.segment_of(lsn);
        if let Some((prev_end, seal)) = self.seal_of(number).await? {
            return Ok(Some((prev_end, seal.end == lsn)));
        }
        let core = &self.core;
        let Some(slot) = core.tail.lock().slots.slot(number) else { return Ok(None) };
        let header = core.read_header(slot).await?.filter(|header| header.number == number);
        Ok(header.map(|header| (header.prev_end, false)))
    }

    /// Bytes of log from `from` on that the device seems to hold, before recovery has read it.
    pub(crate) fn ahead(&self, from: Lsn) -> u64 {
        let tail = self.core.tail.lock();
        let numbers = tail.found.range(self.segment_of(from)..).map(|(&number, _)| number);
        let connected =
            numbers.zip(self.segment_of(from)..).take_while(|(found, number)| found == number).count() as u64;
        let size = self.core.geometry.segment_size;
        (connected * size).saturating_sub(from.0 % size)
    }

    /// A segment has no batches up to where it should: used again while it was read (then the log does not reach back),
    /// or damaged.
    fn hole(&self, number: u64, end: Lsn) -> Result<bool> {
        if !self.segments().contains(&number) {
            return Ok(false);
        }
        let problem = format!("log segment {number} has no batch that ends at {end}, where the stream goes on");
        Err(StorageError::Damaged(problem))
    }

    /// Where the stream before the segment ended, and what seals it; `None` where it is not held, or not sealed.
    async fn seal_of(&self, number: u64) -> Result<Option<(Lsn, Seal)>> {
        let core = &self.core;
        let Some(slot) = core.tail.lock().slots.slot(number) else { return Ok(None) };
        let Some(header) = core.read_header(slot).await?.filter(|h| h.number == number) else { return Ok(None) };
        Ok(core.read_seal(slot, &header).await?.map(|seal| (header.prev_end, seal)))
    }

    /// At the next segment, of whose index this was read; `None` behind the last.
    async fn look_at_next(
        &self,
        indexes: &mut (impl Stream<Item = (u64, Result<Index>)> + Unpin),
        wanted: &impl Selection,
    ) -> Result<Option<Look>> {
        let Some((number, index)) = indexes.next().await else { return Ok(None) };
        let core = &self.core;
        let Some(slot) = core.tail.lock().slots.slot(number) else { return Ok(Some(Look::Gone)) };
        if let Some(look) = core.look_at(slot, index?, wanted).await? {
            return Ok(Some(look));
        }
        Ok(Some(core.read_segment(slot, number).await?.map_or(Look::Gone, Look::Read)))
    }
}

impl Core {
    async fn read_index(self: &Arc<Core>, number: u64, wanted: &impl Selection) -> Result<Index> {
        let Some(slot) = self.tail.lock().slots.slot(number) else { return Ok(Index::None) };
        let went_on_at = self.went_on_at(number).await?;
        let speaks_for_all = |end: Lsn| went_on_at.is_none_or(|at| at >= end); // Invariant 3.
        if let (Some(pages), Some(known)) = (wanted.pages(), self.known(number).filter(|k| speaks_for_all(k.end)))
            && let Some(places) = self.look_up(slot, &known, pages).await?
        {
            return Ok(Index::Places(known, places));
        }
        let header = self.read_header(slot).await?.filter(|header| header.number == number);
        let Some(header) = header else { return Ok(Index::None) };
        if wanted.asks_table()
            && let Some((footer, table)) = self.read_table(slot, &header).await?
            && speaks_for_all(footer.1)
        {
            return Ok(Index::Table(header, footer, table));
        }
        let seal = self.read_seal(slot, &header).await?.filter(|seal| speaks_for_all(seal.end));
        Ok(seal.map_or(Index::None, |seal| Index::Whole(header, seal)))
    }

    /// By the segment's index; `None` where all of it is to be read.
    async fn look_at(self: &Arc<Core>, slot: u32, index: Index, wanted: &impl Selection) -> Result<Option<Look>> {
        let (known, wanting) = match index {
            Index::Places(known, places) => (known, Wanting::of(places)),
            Index::Whole(header, seal) => (self.remember(header, &seal), wanted.select(&seal.index)),
            Index::Table(header, footer, table) if wanted.is_enough(&table) => {
                (self.remember_table(header, footer, &table), Wanting::Nothing)
            }
            Index::Table(header, ..) => match self.read_seal(slot, &header).await? {
                Some(seal) => (self.remember(header, &seal), wanted.select(&seal.index)),
                None => return Ok(None),
            },
            Index::None => return Ok(None),
        };
        let (prev_end, end) = (known.header.prev_end, known.end);
        match wanting {
            Wanting::All => Ok(None),
            Wanting::Nothing => Ok(Some(Look::Part { prev_end, end, excerpt: None })),
            Wanting::Places(places) => {
                // (Where the slot was used again meanwhile, its batches do not check.)
                let excerpt = self.read_excerpt(slot, &known.header, places).await?;
                Ok(excerpt.map(|excerpt| Look::Part { prev_end, end, excerpt: Some(excerpt) }))
            }
        }
    }

    /// Where the stream left the segment, as the header behind it says.
    async fn went_on_at(&self, number: u64) -> Result<Option<Lsn>> {
        if let Some(next) = self.known(number + 1) {
            return Ok(Some(next.header.prev_end));
        }
        let Some(slot) = self.tail.lock().slots.slot(number + 1) else { return Ok(None) };
        let header = self.read_header(slot).await?.filter(|header| header.number == number + 1);
        Ok(header.map(|header| header.prev_end))
    }
}

/// Where each of the pages last begins afresh in a segment, up to `end`; `None` where its batches do not reach there.
fn last_beginnings(image: &SegmentImage, end: Lsn, pages: &BTreeSet<PageId>) -> Option<BTreeMap<PageId, Lsn>> {
    let (mut reached, mut found) = (Lsn(0), BTreeMap::new());
    for batch in image.batches(Lsn(0)).take_while(|b| b.end <= end) {
        reached = batch.end;
        let begun = batch.blocks().filter(|b| pages.contains(&b.page) && starts_afresh(b.ops));
        found.extend(begun.map(|b| (b.page, batch.start)));
    }
    (reached == end).then_some(found)
}

/// Shows a segment's batches from `begin` on that end at or below `to`, some at a time: a segment may have a hundred
/// thousand. Returns the end of the last.
pub(crate) async fn show(image: &SegmentImage, begin: Lsn, to: Lsn, visitor: &mut impl Visitor) -> Result<Option<Lsn>> {
    show_batches(image.batches(begin).take_while(|b| b.end <= to), visitor).await
}

async fn show_batches<'a>(
    mut batches: impl Iterator<Item = Batch<'a>>,
    visitor: &mut impl Visitor,
) -> Result<Option<Lsn>> {
    let mut some = Vec::with_capacity(SHOWN);
    let mut reached = None;
    loop {
        some.clear();
        some.extend(batches.by_ref().take(SHOWN));
        let Some(last) = some.last() else { return Ok(reached) };
        reached = Some(last.end);
        visitor.batches(&some).await?;
    }
}

impl Core {
    /// How many entries the index has that seals the segment, and where its batches end; `None` where nothing does.
    async fn read_footer(&self, slot: u32, header: &SegmentHeader) -> Result<Option<(Entries, Lsn)>> {
        let end = self.geometry.slot_at(slot) + self.geometry.segment_size;
        if end > self.device.size() {
            return Ok(None);
        }
        let last = self.try_read(end - SECTOR as u64, SECTOR).await?;
        Ok(last.and_then(|last| Seal::entries_in(&last, header, self.geometry)))
    }

    /// The page table of the segment's index, with its footer; `None` where there is none, or none that is sound.
    async fn read_table(&self, slot: u32, header: &SegmentHeader) -> Result<Option<((Entries, Lsn), PageTable)>> {
        let Some(footer) = self.read_footer(slot, header).await? else { return Ok(None) };
        let from = self.geometry.index_at(footer.0);
        let room = (self.geometry.segment_size - from) as usize;
        // A large one of a length that others have, too, so that a buffer serves them all.
        let length = match footer.0.table_bytes() {
            large @ LARGE.. => large.next_multiple_of(LARGE).min(room),
            small => small,
        };
        let Some(bytes) = self.try_read(self.geometry.slot_at(slot) + from, length).await? else { return Ok(None) };
        let table = Seal::decode_table(&bytes, footer.0, header, self.geometry);
        self.spares.keep(bytes);
        Ok(table.map(|table| (footer, table)))
    }

    /// What seals the segment; `None` where nothing does, or nothing sound.
    async fn read_seal(self: &Arc<Core>, slot: u32, header: &SegmentHeader) -> Result<Option<Seal>> {
        let Some((entries, _)) = self.read_footer(slot, header).await? else { return Ok(None) };
        let at = self.geometry.slot_at(slot);
        let end = at + self.geometry.segment_size;
        let from = self.geometry.index_at(entries);
        let length = (self.geometry.segment_size - from) as usize;
        // As in `read_table`.
        let segment_size = self.geometry.segment_size as usize;
        let rounded = length.next_multiple_of(LARGE.max(segment_size / 8)).min(segment_size);
        let mut index = match length {
            LARGE.. => self.try_read(end - rounded as u64, rounded).await?,
            _ => None,
        };
        if index.is_none() {
            index = self.try_read(at + from, length).await?;
        }
        let Some(index) = index else { return Ok(None) };
        let seal = Seal::decode(&index, header, self.geometry);
        self.spares.keep(index);
        Ok(seal)
    }
}
