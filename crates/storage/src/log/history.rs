//! A single page's history, for repairing it without a restart (Graefe & Kuno, "Self-diagnosing and self-healing indexes"; design
//! section 4): the page indexes of sealed segments tell which segments to read, prevPageLSN proves that nothing is missing.

use super::Log;
use super::reader::SegmentImage;
use super::segment::{Seal, SegmentHeader};
use crate::error::{Result, StorageError};
use crate::page::op::PageOp;
use crate::types::{Lsn, PageId};
use std::collections::BTreeMap;
use terrace_device::SECTOR;

/// So few pages are looked up in segments' indexes before segments are read.
const FEW: usize = 4;

/// One change of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    pub prev: Lsn,
    /// The page's LSN after it: end of its batch.
    pub end: Lsn,
    /// Encoded ops.
    pub ops: Vec<u8>,
}

impl Change {
    /// Whether it needs no previous content.
    pub fn starts_afresh(&self) -> bool {
        starts_afresh(&self.ops)
    }
}

pub(crate) fn starts_afresh(ops: &[u8]) -> bool {
    let mut rest = ops;
    PageOp::decode(&mut rest).is_ok_and(|op| op.starts_afresh())
}

/// What a segment has of a page.
enum Look {
    /// Nothing, as its index proves. With the LSN at which the stream before it ended.
    Untouched(Lsn),
    Read(SegmentImage),
    /// The log has not got it any more.
    Gone,
}

impl Log {
    /// The page's changes, oldest first, from the last one at or below `upto` (a batch boundary) that needs no previous content, through
    /// `upto`. `None` where the log does not reach back to such a one. Segments whose index does not name the page are not read.
    ///
    /// Nothing is left out: segments are walked by the ends that their successors' headers name, and each one read must have batches
    /// up to there. `Damaged` where one has not.
    pub async fn page_history(&self, page: PageId, upto: Lsn) -> Result<Option<Vec<Change>>> {
        if self.durable() < upto {
            self.flush_to(upto).await?;
        }
        let mut newest_first: Vec<Change> = Vec::new();
        let mut end = upto;
        while end > Lsn(0) {
            let number = self.segment_of(end);
            let image = match self.look(number, page).await? {
                Look::Gone => return Ok(None),
                Look::Untouched(prev_end) => {
                    end = prev_end;
                    continue;
                }
                Look::Read(image) => image,
            };
            let Some(mut changes) = changes_in(&image, page, end) else {
                if !self.segments().contains(&number) {
                    return Ok(None); // Used again while it was read.
                }
                let problem = format!("log segment {number} has no batch that ends at {end}, where the stream goes on");
                return Err(StorageError::Damaged(problem));
            };
            if let Some(start) = changes.iter().rposition(Change::starts_afresh) {
                newest_first.extend(changes.drain(start..).rev());
                newest_first.reverse();
                return self.chained(page, newest_first).map(Some);
            }
            newest_first.extend(changes.into_iter().rev());
            end = image.header.prev_end;
            assert!(
                end == Lsn(0) || self.segment_of(end) < number,
                "the stream goes back from segment {number} to {end}"
            );
        }
        Ok(None)
    }

    /// The changes, oldest first, of each page from batches that begin at or above its LSN here, to the log's end, which is durable
    /// then. The caller sees to it that the log is kept back to there. One pass over the log for all pages; nothing is left
    /// out, as in `page_history`.
    pub(crate) async fn changes_since(&self, pages: &BTreeMap<PageId, Lsn>) -> Result<BTreeMap<PageId, Vec<Change>>> {
        let mut changes: BTreeMap<PageId, Vec<Change>> = BTreeMap::new();
        let Some(&oldest) = pages.values().min() else { return Ok(changes) };
        let mut end = self.end();
        self.flush_to(end).await?;
        while end > oldest {
            let number = self.segment_of(end);
            let gone =
                || StorageError::Damaged(format!("log segment {number} is gone, and pages of the flash tier need it"));
            let image = match self.look_for(number, pages).await? {
                Look::Gone => return Err(gone()),
                Look::Untouched(prev_end) => {
                    end = prev_end;
                    continue;
                }
                Look::Read(image) => image,
            };
            let mut reached = Lsn(0);
            let mut here: BTreeMap<PageId, Vec<Change>> = BTreeMap::new();
            for batch in image.batches(Lsn(0)).take_while(|b| b.end <= end) {
                reached = batch.end;
                for block in batch.blocks() {
                    if pages.get(&block.page).is_some_and(|since| batch.start >= *since) {
                        let change = Change { prev: block.prev, end: batch.end, ops: block.ops.to_vec() };
                        here.entry(block.page).or_default().push(change);
                    }
                }
            }
            if reached != end {
                return Err(gone());
            }
            for (page, mut older) in here {
                let newer = changes.entry(page).or_default();
                older.append(newer);
                *newer = older;
            }
            end = image.header.prev_end;
        }
        Ok(changes)
    }

    /// As `look`, for several pages: many are not looked up one by one.
    async fn look_for(&self, number: u64, pages: &BTreeMap<PageId, Lsn>) -> Result<Look> {
        let mut found = Look::Gone;
        for (i, &page) in pages.keys().enumerate() {
            if i >= FEW {
                let core = &self.core;
                let Some(slot) = core.tail.lock().slots.slot(number) else { return Ok(Look::Gone) };
                return Ok(core.read_segment(slot, number).await?.map_or(Look::Gone, Look::Read));
            }
            found = self.look(number, page).await?;
            if !matches!(found, Look::Untouched(_)) {
                break;
            }
        }
        Ok(found)
    }

    async fn look(&self, number: u64, page: PageId) -> Result<Look> {
        let core = &self.core;
        let Some(slot) = core.tail.lock().slots.slot(number) else { return Ok(Look::Gone) };
        let Some(header) = core.read_header(slot).await?.filter(|h| h.number == number) else { return Ok(Look::Gone) };
        if self.is_untouched(slot, &header, page).await? {
            return Ok(Look::Untouched(header.prev_end));
        }
        Ok(core.read_segment(slot, number).await?.map_or(Look::Gone, Look::Read))
    }

    /// True only where the segment's index proves it.
    async fn is_untouched(&self, slot: u32, header: &SegmentHeader, page: PageId) -> Result<bool> {
        let core = &self.core;
        let at = core.geometry.slot_at(slot);
        let end = at + core.geometry.segment_size;
        if end > core.device.size() {
            return Ok(false);
        }
        let Some(last) = core.try_read(end - SECTOR as u64, SECTOR).await? else { return Ok(false) };
        let Some(pages) = Seal::pages_in(&last, header) else { return Ok(false) };
        let from = core.geometry.index_at(pages);
        let length = (core.geometry.segment_size - from) as usize;
        let Some(index) = core.try_read(at + from, length).await? else { return Ok(false) };
        let Some(seal) = Seal::decode(&index, header) else { return Ok(false) };
        Ok(seal.pages.binary_search_by_key(&page.to_u64(), |(p, _)| p.to_u64()).is_err())
    }

    fn chained(&self, page: PageId, history: Vec<Change>) -> Result<Vec<Change>> {
        for pair in history.windows(2) {
            if pair[1].prev != pair[0].end {
                let (found, expected) = (pair[0].end, pair[1].prev);
                return Err(StorageError::Damaged(format!(
                    "the log's history of page {page} has a gap: {expected} follows {found}"
                )));
            }
        }
        Ok(history)
    }
}

/// The page's changes in a segment, through the batch that ends at `end`; `None` where the batches do not reach there.
fn changes_in(image: &SegmentImage, page: PageId, end: Lsn) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    let mut reached = Lsn(0);
    for batch in image.batches(Lsn(0)).take_while(|b| b.end <= end) {
        reached = batch.end;
        for block in batch.blocks().filter(|b| b.page == page) {
            changes.push(Change { prev: block.prev, end: batch.end, ops: block.ops.to_vec() });
        }
    }
    (reached == end).then_some(changes)
}
