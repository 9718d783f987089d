//! Reading a part of the log again: forward for pages that are made again ([`Log::walk`]), backward for where their
//! last beginnings are ([`Log::beginnings`]). After Graefe & Kuno, "Self-diagnosing and self-healing indexes" (design
//! section 4): the page indexes of sealed segments tell which segments to read, prevPageLSN proves that nothing is
//! missing.
//!
//! Invariants:
//! 1. Nothing is left out. A segment is passed over only where its index, sound by its checksum, proves that nothing
//!    wanted is in it; one that is read must have batches up to where its successor's header says that the stream
//!    before it ended. A seal may say more than that: a crash can keep the seal and lose the batches in front of it,
//!    and the next life goes on in the next segment.
//! 2. What is read at once is bounded: one segment, and the next one that is read meanwhile.

use super::batch::Batch;
use super::reader::SegmentImage;
use super::segment::{Seal, SegmentHeader};
use super::{Core, Log};
use crate::error::{Result, StorageError};
use crate::page::op::PageOp;
use crate::types::{Lsn, PageId};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use terrace_device::SECTOR;

/// Pages of a segment, ascending, each with the end of its last batch there.
pub(crate) type Index<'a> = &'a [(PageId, Lsn)];

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

/// Batches shown at once.
const SHOWN: usize = 1024;

/// What a segment has of the wanted pages.
enum Look {
    /// Nothing, as its index proves.
    Untouched {
        prev_end: Lsn,
        end: Lsn,
    },
    Read(SegmentImage),
    /// The log has not got it any more.
    Gone,
}

impl Log {
    /// Shows all batches that begin at or above `from` (where one ended or begins) and end at or below `to` (durable,
    /// the end of a batch), in order. Segments whose index is not `wanted` (which also learns where the stream before
    /// the segment ended) are passed over. False where the log does not reach back to `from` any more: what was shown
    /// then is not all there was. What lies in front of `from` need not check.
    pub(crate) async fn walk(
        &self,
        from: Lsn,
        to: Lsn,
        wanted: &(impl Fn(Lsn, Index<'_>) -> bool + Sync),
        visitor: &mut impl Visitor,
    ) -> Result<bool> {
        let (mut number, last) = (self.segment_of(from), self.segment_of(to));
        // Where the segment before ended, and whether that was read.
        let mut before: Option<(Lsn, bool)> = None;
        let mut look = if from < to { self.look(number, wanted).await? } else { return Ok(true) };
        loop {
            let prev_end = match &look {
                Look::Gone => return Ok(false),
                Look::Untouched { prev_end, .. } => *prev_end,
                Look::Read(image) => image.header.prev_end,
            };
            // Invariant 1.
            if before.is_some_and(|(end, read)| prev_end > end || read && prev_end < end) {
                return self.hole(number - 1, prev_end);
            }
            let (reached, next) = match &look {
                Look::Read(image) => {
                    let begin = if before.is_none() { from } else { Lsn(0) };
                    // The next segment is read while this one is shown.
                    let next =
                        async { if number < last { self.look(number + 1, wanted).await.map(Some) } else { Ok(None) } };
                    let (next, shown) = futures::join!(next, show(image, begin, to, visitor));
                    (shown?.unwrap_or(begin.max(prev_end)), next?)
                }
                Look::Untouched { end, .. } if number < last => (*end, Some(self.look(number + 1, wanted).await?)),
                Look::Untouched { end, .. } => (*end, None),
                Look::Gone => unreachable!("looked at above"),
            };
            let Some(next) = next else {
                return if reached >= to { Ok(true) } else { self.hole(number, to) };
            };
            before = Some((reached, matches!(look, Look::Read(_))));
            (look, number) = (next, number + 1);
        }
    }

    /// Where each page last begins afresh, in a batch that ends at or below `upto`, the end of a batch: the start of
    /// that batch. Pages whose beginning the log has not got any more are left out.
    pub(crate) async fn beginnings(&self, pages: &BTreeSet<PageId>, upto: Lsn) -> Result<BTreeMap<PageId, Lsn>> {
        let mut left = pages.clone();
        let mut found = BTreeMap::new();
        let mut end = upto;
        while end > Lsn(0) && !left.is_empty() {
            let number = self.segment_of(end);
            let wanted = |_: Lsn, index: Index<'_>| touches(index, left.iter().map(|&page| (page, Lsn(0))));
            let image = match self.look(number, &wanted).await? {
                Look::Gone => return Ok(found),
                Look::Untouched { prev_end, .. } => {
                    end = prev_end;
                    continue;
                }
                Look::Read(image) => image,
            };
            let mut reached = Lsn(0);
            let mut here: BTreeMap<PageId, Lsn> = BTreeMap::new();
            for batch in image.batches(Lsn(0)).take_while(|b| b.end <= end) {
                reached = batch.end;
                let begun = batch.blocks().filter(|b| left.contains(&b.page) && starts_afresh(b.ops));
                here.extend(begun.map(|b| (b.page, batch.start)));
            }
            if reached != end {
                return self.hole(number, end).map(|_| found);
            }
            left.retain(|page| !here.contains_key(page));
            found.append(&mut here);
            end = image.header.prev_end;
            assert!(
                end == Lsn(0) || self.segment_of(end) < number,
                "the stream goes back from segment {number} to {end}"
            );
        }
        Ok(found)
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

    async fn look(&self, number: u64, wanted: &(impl Fn(Lsn, Index<'_>) -> bool + Sync)) -> Result<Look> {
        let core = &self.core;
        let Some(slot) = core.tail.lock().slots.slot(number) else { return Ok(Look::Gone) };
        let Some(header) = core.read_header(slot).await?.filter(|h| h.number == number) else { return Ok(Look::Gone) };
        if let Some(seal) = core.read_seal(slot, &header).await?
            && !wanted(header.prev_end, &seal.pages)
        {
            return Ok(Look::Untouched { prev_end: header.prev_end, end: seal.end });
        }
        Ok(core.read_segment(slot, number).await?.map_or(Look::Gone, Look::Read))
    }
}

/// Shows a segment's batches from `begin` on that end at or below `to`, some at a time: a segment may have a hundred
/// thousand. Returns the end of the last.
pub(crate) async fn show(image: &SegmentImage, begin: Lsn, to: Lsn, visitor: &mut impl Visitor) -> Result<Option<Lsn>> {
    let mut batches = image.batches(begin).take_while(|b| b.end <= to);
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
    /// What seals the segment; `None` where nothing does, or nothing sound.
    async fn read_seal(self: &Arc<Core>, slot: u32, header: &SegmentHeader) -> Result<Option<Seal>> {
        let at = self.geometry.slot_at(slot);
        let end = at + self.geometry.segment_size;
        if end > self.device.size() {
            return Ok(None);
        }
        let Some(last) = self.try_read(end - SECTOR as u64, SECTOR).await? else { return Ok(None) };
        let Some(pages) = Seal::pages_in(&last, header) else { return Ok(None) };
        let from = self.geometry.index_at(pages);
        let length = (self.geometry.segment_size - from) as usize;
        let index = self.try_read(at + from, length).await?;
        Ok(index.and_then(|index| Seal::decode(&index, header)))
    }
}

/// Whether a segment with this index has a batch for one of the pages that ends behind the LSN beside it.
pub(crate) fn touches(index: Index<'_>, mut pages: impl Iterator<Item = (PageId, Lsn)>) -> bool {
    let last = |page: PageId| index.binary_search_by_key(&page.to_u64(), |(p, _)| p.to_u64()).map(|at| index[at].1);
    pages.any(|(page, since)| last(page).is_ok_and(|end| end > since))
}
