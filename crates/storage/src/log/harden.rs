//! How an opening finds the log's end, and what it makes durable.
//!
//! Invariants:
//! 1. Bytes that can be read need not be durable, and a sync of this life need not make them durable: if a sync failed
//!    in the life before, the kernel has marked those pages of its cache as clean, and the device may have lost them.
//!    So after a life that was not closed, the log's end is written again (the same bytes in the same places) and
//!    synced. This happens before a page goes home that depends on it, and before anything new is acknowledged.
//! 2. At most `Geometry::unsynced` bytes of batches can be concerned: the writer syncs after as many bytes (`writer`,
//!    invariant 3), and earlier lives ended with this step.
//! 3. Only batches that check, and the header and seal around them, are written again. Bytes that could not be read are
//!    never written.
//! 4. The first batch that does not check is the end of the log, because that is what a crash leaves, unless something
//!    proves that the log went on and was durable. Proofs are: a segment of a later opening; a segment further on than
//!    one sync covers; a newer page at home; a control file that was written when the log was durable beyond the end; a
//!    commit behind the end that was (each commit says how far the log was durable); many sectors behind the end that
//!    cannot be read, or one of the batch that begins there, or behind a sealed segment the next one's header: a power
//!    failure may leave half of a batch, but what it leaves can be read. Then the log is damaged, or its device has
//!    lost a write, and the opening is refused: what is missing was acknowledged.

use super::batch::{Batch, EVENT};
use super::reader::SegmentImage;
use super::segment::{FIRST, Geometry, SegmentHeader};
use super::{Core, Log, batch};
use crate::config::Safeguard;
use crate::control::Control;
use crate::error::{Result, StorageError};
use crate::mtr::LogEvent;
use crate::types::Lsn;
use std::ops::Range;
use std::sync::Arc;
use terrace_device::{Purpose, SECTOR};

/// Bytes written again at once.
const CHUNK: usize = 1 << 20;
/// If so many sectors cannot be read where the log may go on, the cause is not a write that the power cut: the device
/// fails.
const MANY: usize = 8;
/// Segments that the writes of one sync can touch: one that was begun before, then two neighbours with more than one
/// segment's worth of batches for each segment's worth (`space`, invariant 3), and the one in which they end.
const SPAN: u64 = 6;

impl Geometry {
    /// Bytes of batches of which a life may end without having them synced (invariant 2).
    pub(super) fn unsynced(self) -> u64 {
        2 * self.segment_size
    }
}

impl Log {
    /// Invariants 1 to 3. Between `scan` and the first page written home. `redo`: the recorded redo LSN, up to which
    /// the log is durable.
    pub(crate) async fn harden(&self, redo: Lsn) -> Result<()> {
        let core = &self.core;
        let stream = core.stream_from(redo);
        // Newest first.
        for (slot, header) in stream[core.unsettled(&stream)..].iter().rev() {
            let Some(image) = core.read_segment(*slot, header.number).await? else { continue };
            if core.safeguards.has(Safeguard::LogTail) {
                core.write_again(*slot, &image, redo).await?;
            }
        }
        if core.safeguards.has(Safeguard::LogSync) {
            core.device.sync(Purpose::Log).await?;
        }
        Ok(())
    }

    /// Where the part of the log ends that was durable whatever the power did, so that the seals of its segments speak
    /// for their batches (invariant 2); at least `redo`. Its segments count as live from now on (until `cut`).
    pub(crate) fn settled(&self, redo: Lsn) -> Lsn {
        let core = &self.core;
        let stream = core.stream_from(redo);
        let settled = stream.get(core.unsettled(&stream)).map_or(redo, |(_, header)| header.prev_end.max(redo));
        let last = core.segment_of(settled);
        let mut tail = core.tail.lock();
        for (slot, header) in stream.into_iter().filter(|(_, header)| header.number <= last) {
            if tail.slots.slot(header.number).is_none() {
                tail.slots.adopt(header.number, slot);
            }
        }
        settled
    }

    /// Invariant 4: why the log cannot end at `end`, where recovery stopped for want of a batch that checks. `newest`:
    /// the newest page LSN seen at home. Before the log is started. `state`: as the life before left it; where it was
    /// closed nothing behind the end is needed.
    pub(crate) async fn check_end(&self, end: Lsn, newest: Lsn, state: &Control) -> Result<()> {
        let core = &self.core;
        let number = core.segment_of(end);
        let beyond = {
            let tail = core.tail.lock();
            let epoch = tail.found.get(&number).map_or(0, |(_, header)| header.epoch);
            let mut later = tail.found.range(number + 1..).map(|(_, (_, header))| *header);
            later.find(|h| h.prev_end > end && (h.epoch > epoch || h.epoch == epoch && h.number > number + SPAN))
        };
        let shown = newest > end || beyond.is_some() || state.durable > end;
        if !shown && state.clean {
            return Ok(());
        }
        let LaterBatches { batches, durable } = core.behind(number, end, state.epoch).await?;
        let acknowledged = durable > end && core.safeguards.has(Safeguard::DurableBefore);
        let durable = durable.max(state.durable);
        let unreadable = core.unreadable_behind(number, end);
        let cut = core.cut_by_unreadable(number, end).await?;
        if !shown && !acknowledged && unreadable.len() < MANY && !cut {
            return Ok(());
        }
        let evidence = match (beyond, newest > end) {
            (None, false) if !acknowledged && state.durable <= end => {
                format!("{} sectors behind it cannot be read", unreadable.len())
            }
            (Some(header), _) => format!("segment {} follows, which began at {}", header.number, header.prev_end),
            (None, true) => format!("a page at home is at {newest}"),
            (None, false) => format!("it was durable to {durable}"),
        };
        Err(StorageError::Damaged(match (unreadable.first(), batches > 0 || beyond.is_some()) {
            (Some(at), _) => format!(
                "the log ends at {end} for want of sectors that cannot be read (offset {at} of {}), \
                 and it went on: {evidence}; what is missing was committed: restore the database from a backup",
                core.device.name()
            ),
            (None, true) => format!(
                "the log is damaged at {end} (segment {number} of {}), \
                 and it went on: {evidence}, {batches} batches behind the damage \
                 check; what is missing was committed: restore the database from a backup",
                core.device.name()
            ),
            (None, false) => format!(
                "the log ends at {end}, and {evidence}: the log file is older than the other files, \
                 or damaged there; bring the files of one time together, or restore a backup"
            ),
        }))
    }
}

impl Core {
    /// The segments from the one in which restart begins on that may be the stream, by their headers alone, ascending.
    fn stream_from(&self, redo: Lsn) -> Vec<(u32, SegmentHeader)> {
        let first = if redo == Lsn(0) { 0 } else { self.segment_of(redo) };
        let mut stream: Vec<(u32, SegmentHeader)> = Vec::new();
        for (&number, &(slot, header)) in self.tail.lock().found.range(first..) {
            let connected = match stream.last() {
                None => number == first,
                Some((_, before)) => {
                    number == before.number + 1
                        && header.epoch >= before.epoch
                        && self.segment_of(header.prev_end) == before.number
                }
            };
            if !connected {
                break;
            }
            stream.push((slot, header));
        }
        stream
    }

    /// The first segment of a stream that may have batches which are not durable (invariant 2).
    fn unsettled(&self, stream: &[(u32, SegmentHeader)]) -> usize {
        let mut rest = if self.safeguards.has(Safeguard::Settled) { self.geometry.unsynced() } else { 0 };
        // A segment's header says where the one before it ended.
        let mut end: Option<Lsn> = None;
        for (at, (_, header)) in stream.iter().enumerate().rev() {
            let first = self.geometry.lsn(header.number, FIRST);
            rest = rest.saturating_sub(end.map_or(0, |end| end.0.saturating_sub(first.0)));
            if rest == 0 {
                return at;
            }
            end = Some(header.prev_end);
        }
        0
    }

    /// Invariant 3. What lies in front of the redo LSN is durable, nobody needs it, and it need not check; but where
    /// the file ends there, it is not the file that it was.
    async fn write_again(self: &Arc<Core>, slot: u32, image: &SegmentImage, redo: Lsn) -> Result<()> {
        let (at, number) = (self.geometry.slot_at(slot), image.header.number);
        let base = self.geometry.lsn(number, 0);
        let from = if self.segment_of(redo) == number { redo } else { Lsn(0) };
        let within = from.0.saturating_sub(base.0);
        if within > image.bytes().len() as u64 {
            return Err(StorageError::Damaged(format!(
                "the log file was cut: segment {number} of {} ends before {redo}, and the log was durable to there; \
                 bring the files of one time together, or restore a backup",
                self.device.name()
            )));
        }
        let first = within.max(FIRST) / SECTOR as u64 * SECTOR as u64;
        let upto = image.end(from).0.saturating_sub(base.0).max(first).next_multiple_of(SECTOR as u64);
        let mut parts = vec![
            (0, &image.bytes()[..FIRST as usize]),
            (first as usize, &image.bytes()[first as usize..upto as usize]),
        ];
        let seal = image.seal().map(|seal| self.geometry.index_at(seal.index.entries()) as usize);
        parts.extend(seal.map(|from| (from, &image.bytes()[from..])));
        for (from, bytes) in parts {
            for (i, chunk) in bytes.chunks(CHUNK).enumerate() {
                let offset = at + (from + i * CHUNK) as u64;
                let mut buf = self.spares.take(chunk.len().next_multiple_of(SECTOR));
                let (bytes, rest) = buf.split_at_mut(chunk.len());
                bytes.copy_from_slice(chunk);
                rest.fill(0);
                let buf = self.device.write(offset, buf, Purpose::Log).await?;
                self.spares.keep(buf);
            }
        }
        Ok(())
    }

    /// Sectors that cannot be read where the stream may go on behind `end`: in its segment, in the one that was begun
    /// there, or a segment's header.
    fn unreadable_behind(&self, number: u64, end: Lsn) -> Vec<u64> {
        let slot_of = |number: u64| self.tail.lock().found.get(&number).map(|(slot, header)| (*slot, header.prev_end));
        let own = slot_of(number).map(|(slot, _)| {
            let (at, within) = (self.geometry.slot_at(slot), end.0 - self.geometry.lsn(number, 0).0);
            at + within / SECTOR as u64 * SECTOR as u64..at + self.geometry.segment_size
        });
        let next = slot_of(number + 1).filter(|(_, prev_end)| *prev_end == end).map(|(slot, _)| {
            let at = self.geometry.slot_at(slot);
            at..at + self.geometry.segment_size
        });
        let parts: Vec<Range<u64>> = own.into_iter().chain(next).collect();
        let is_header = |offset: u64| (offset - self.geometry.slot_at(0)).is_multiple_of(self.geometry.segment_size);
        let concerns = |offset: &u64| parts.iter().any(|part| part.contains(offset)) || is_header(*offset);
        self.unreadable.lock().iter().copied().filter(concerns).collect()
    }

    /// Whether sectors of the batch that begins at `end` cannot be read, or its first one cannot. Behind a sealed
    /// segment it begins the next one, whose header may be what cannot be read. After all of it was read (`behind`).
    async fn cut_by_unreadable(self: &Arc<Core>, number: u64, end: Lsn) -> Result<bool> {
        if self.unreadable.lock().is_empty() {
            return Ok(false);
        }
        let found = |number: u64| self.tail.lock().found.get(&number).copied();
        let Some((slot, _)) = found(number) else { return Ok(false) };
        let Some(image) = self.read_segment(slot, number).await? else { return Ok(false) };
        if image.seal().is_none_or(|seal| seal.end != end) {
            return Ok(self.begins_unreadable(slot, &image, end));
        }
        let Some((slot, _)) = found(number + 1).filter(|(_, header)| header.prev_end == end) else {
            let (first, size) = (self.geometry.slot_at(0), self.geometry.segment_size);
            return Ok(self.unreadable.lock().iter().any(|offset| (offset - first).is_multiple_of(size)));
        };
        let Some(next) = self.read_segment(slot, number + 1).await? else { return Ok(false) };
        Ok(self.begins_unreadable(slot, &next, self.geometry.lsn(number + 1, FIRST)))
    }

    fn begins_unreadable(&self, slot: u32, image: &SegmentImage, at: Lsn) -> bool {
        let from = at.0.saturating_sub(self.geometry.lsn(image.header.number, 0).0).max(FIRST);
        let length = image.bytes().get(from as usize..).and_then(|bytes| batch::claimed(bytes, at));
        let sectors = from / SECTOR as u64..(from + length.unwrap_or(1).max(1) as u64).div_ceil(SECTOR as u64);
        let (at, unreadable) = (self.geometry.slot_at(slot), self.unreadable.lock());
        sectors.into_iter().any(|sector| unreadable.contains(&(at + sector * SECTOR as u64)))
    }

    /// Looks for batches behind `end`, where none begins that checks: in its segment `number`, in the next of the same
    /// opening, and, where the next one's beginning may be what is missing, in all slots that are not in use. `last`:
    /// the last opening.
    async fn behind(self: &Arc<Core>, number: u64, end: Lsn, last: u64) -> Result<LaterBatches> {
        let (mut behind, mut epoch, mut sealed) = (LaterBatches::default(), None, false);
        let found: Vec<(u32, SegmentHeader)> = {
            let tail = self.tail.lock();
            tail.found.range(number..=number + SPAN).map(|(_, &found)| found).collect()
        };
        for (slot, header) in found {
            if *epoch.get_or_insert(header.epoch) != header.epoch {
                continue;
            }
            let Some(image) = self.read_segment(slot, header.number).await? else { continue };
            sealed |= header.number == number && image.seal().is_some_and(|seal| seal.end == end);
            let seed = batch::seed(self.database, header.epoch);
            let base = self.geometry.lsn(header.number, 0);
            behind.look(image.bytes(), end.0.saturating_sub(base.0), seed, base);
        }
        let epoch = epoch.unwrap_or(0);
        if sealed || epoch < last {
            let (seed, base) = (batch::seed(self.database, epoch.max(last)), self.geometry.lsn(number + 1, 0));
            for slot in self.unused_slots() {
                let Some((at, length)) = self.extent(slot) else { continue };
                let (bytes, _) = self.read_around(at, length).await?;
                behind.look(&bytes, FIRST, seed, base);
            }
        }
        Ok(behind)
    }

    fn unused_slots(&self) -> Vec<u32> {
        let tail = self.tail.lock();
        let used: Vec<u32> = tail.slots.live().filter_map(|number| tail.slots.slot(number)).collect();
        (0..self.geometry.slots(self.device.size())).filter(|slot| !used.contains(slot)).collect()
    }
}

/// What checks behind the end.
#[derive(Default)]
struct LaterBatches {
    batches: usize,
    /// Up to where the log was durable when they were written.
    durable: Lsn,
}

impl LaterBatches {
    /// Looks at a segment's bytes from an offset on; `base`: the LSN that its first byte has.
    fn look(&mut self, segment: &[u8], from: u64, seed: u32, base: Lsn) {
        let mut at = from.max(FIRST) as usize;
        while let Some(next) = batch::may_begin(segment, at, base) {
            at = match batch::check(&segment[next..], seed, Lsn(base.0 + next as u64)) {
                Some(batch) => {
                    self.note(&batch);
                    (batch.end.0 - base.0) as usize
                }
                None => next + 1,
            };
        }
    }

    fn note(&mut self, batch: &Batch<'_>) {
        self.batches += 1;
        let events = batch.blocks().filter(|block| block.page == EVENT);
        let durable = events.filter_map(|block| LogEvent::durable(block.ops)).max();
        self.durable = self.durable.max(durable.unwrap_or_default());
    }
}
