//! Reading the log back: which segments there are, their batches in order, where the log ends.
//!
//! Invariants:
//! 1. The stream goes on from segment N to N+1 only by rule 1 of `segment`. The first batch that does not check, with
//!    no such successor, is the end of the log. The end is a function of the device's bytes: reading again finds the
//!    same end.
//! 2. Nothing is believed before it is made durable. A killed process leaves bytes that can be read and are not durable
//!    yet, and redo must not let pages overtake them (R4). After a life that was not closed, `harden` makes them
//!    durable: after `scan`, and before the first batch is repeated. A life that was closed has left nothing of the
//!    kind.
//! 3. Sectors that cannot be read are damage, like bytes that do not check. They read as zeros: before the stream's end
//!    they end it (`harden`, invariant 4), behind it they do not matter.

use super::batch::{self, Batch};
use super::segment::{FIRST, Seal, SegmentHeader};
use super::spare::{LARGE, Lent};
use super::{Core, Log};
use crate::config::Safeguard;
use crate::error::{Result, StorageError};
use crate::types::Lsn;
use futures::StreamExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use terrace_device::{ErrorKind, IoBuf, Purpose, SECTOR};

/// Where a transfer fails, it is tried again in pieces of so many bytes, then by sectors.
const PIECE: usize = 64 << 10;
/// Headers of segments read at a time.
const HEADERS: usize = 16;
/// A sector is tried so often, and of each further piece one, once, where so many in a row could not be read: more than
/// end an opening.
const SECTOR_READS: usize = 3;
const DEAD: usize = 16;

/// One segment's bytes, as they lie on the device.
pub(crate) struct SegmentImage {
    core: Arc<Core>,
    pub(crate) header: SegmentHeader,
    bytes: Lent,
    /// Some of it could not be read (invariant 3).
    holes: bool,
}

impl Log {
    /// Finds the segments on the device. `redo`: the recorded redo LSN.
    pub(crate) async fn scan(&self, redo: Lsn, retain: Lsn) -> Result<()> {
        let core = &self.core;
        let slots = core.geometry.slots(core.device.size());
        let mut newest: BTreeMap<u64, (SegmentHeader, u32)> = BTreeMap::new();
        let mut headers = futures::stream::iter(0..slots)
            .map(|slot| async move { (slot, core.read_header(slot).await) })
            .buffered(HEADERS);
        while let Some((slot, header)) = headers.next().await {
            let Some(header) = header? else { continue };
            // Two lives of the database may both have begun this segment; the later one counts.
            let known = newest.get(&header.number).map(|(h, _)| h.epoch);
            if known.is_none_or(|epoch| epoch < header.epoch) {
                newest.insert(header.number, (header, slot));
            }
        }
        let mut tail = core.tail.lock();
        tail.slots.redo = redo;
        tail.slots.retain = retain;
        tail.found = newest.iter().map(|(&number, &(header, slot))| (number, (slot, header))).collect();
        if redo == Lsn(0) {
            return Ok(()); // Nothing was ever recorded: reading starts before the first segment.
        }
        // Successors of the redo segment are adopted as reading proves them; its predecessors here, as far as they
        // connect.
        let first = core.segment_of(redo);
        let mut next: Option<SegmentHeader> = None;
        for (&number, &(header, slot)) in newest.range(..=first).rev() {
            let connected = match next {
                None => number == first,
                Some(next) => {
                    let end = next.prev_end;
                    number + 1 == next.number && header.epoch <= next.epoch && core.segment_of(end) == number
                }
            };
            if !connected {
                break;
            }
            tail.slots.adopt(number, slot);
            next = Some(header);
        }
        if next.is_none() {
            let problem =
                format!("log segment {first} is missing, restart would begin in it; restore the whole set of files");
            return Err(StorageError::Foreign { file: core.device.name().to_string(), problem });
        }
        Ok(())
    }

    /// The segment that `lsn` (a batch boundary) belongs to; `None` where the log has not got it.
    pub(crate) async fn segment(&self, number: u64) -> Result<Option<SegmentImage>> {
        let Some(slot) = self.core.tail.lock().slots.slot(number) else { return Ok(None) };
        self.core.read_segment(slot, number).await
    }

    /// The segment behind `before` if the stream, which ended at `end` there, goes on in it, with a batch at least (a
    /// header alone is a segment that the next epoch begins again). It counts as live from now on.
    pub(crate) async fn successor(&self, before: Option<&SegmentImage>, end: Lsn) -> Result<Option<SegmentImage>> {
        let (number, epoch) = before.map_or((0, 0), |b| (b.header.number + 1, b.header.epoch));
        let Some(&(slot, header)) = self.core.tail.lock().found.get(&number) else { return Ok(None) };
        if (header.prev_end != end || header.epoch < epoch) && self.core.safeguards.has(Safeguard::LogChain) {
            return Ok(None);
        }
        let image = self.core.read_segment(slot, number).await?.filter(|i| i.batches(Lsn(0)).next().is_some());
        let mut tail = self.core.tail.lock();
        if image.is_some() && tail.slots.slot(number).is_none() {
            tail.slots.adopt(number, slot);
        }
        Ok(image)
    }

    pub(crate) fn segment_of(&self, lsn: Lsn) -> u64 {
        self.core.segment_of(lsn)
    }

    /// The log can be read from here on.
    pub(crate) fn reach(&self) -> Lsn {
        self.segments().first().map_or(Lsn(0), |&first| self.core.geometry.lsn(first, 0))
    }

    /// The numbers of the segments held, ascending.
    pub(crate) fn segments(&self) -> Vec<u64> {
        self.core.tail.lock().slots.live().collect()
    }
}

impl Core {
    /// The segment in which the stream stands at `lsn`: an end that coincides with a segment's end belongs to that
    /// segment.
    pub(super) fn segment_of(&self, lsn: Lsn) -> u64 {
        self.geometry.number(Lsn(lsn.0.saturating_sub(1)))
    }

    pub(super) async fn read_header(&self, slot: u32) -> Result<Option<SegmentHeader>> {
        let at = self.geometry.slot_at(slot);
        if at + SECTOR as u64 > self.device.size() {
            return Ok(None);
        }
        let (block, _) = self.read_around(at, SECTOR).await?;
        SegmentHeader::decode(&block, self.geometry, self.database, self.device.name())
    }

    /// Where a slot begins, and how many bytes of it there are, in whole sectors; `None` where there is none. A device
    /// cut while it grew ends inside its last slot.
    pub(super) fn extent(&self, slot: u32) -> Option<(u64, usize)> {
        let at = self.geometry.slot_at(slot);
        let sectors = self.device.size().saturating_sub(at).min(self.geometry.segment_size) / SECTOR as u64;
        (sectors > 0).then_some((at, sectors as usize * SECTOR))
    }

    /// Reads a slot; `None` where it does not hold segment `number` (any more).
    pub(crate) async fn read_segment(self: &Arc<Core>, slot: u32, number: u64) -> Result<Option<SegmentImage>> {
        let Some((at, length)) = self.extent(slot) else { return Ok(None) };
        let (bytes, holes) = self.read_around(at, length).await?;
        let header = SegmentHeader::decode(&bytes, self.geometry, self.database, self.device.name())?;
        let bytes = Lent::new(bytes, self.spares.clone());
        let image = |header| SegmentImage { core: self.clone(), header, bytes, holes };
        Ok(header.filter(|h| h.number == number).map(image))
    }

    /// Reads a range, with zeros where it cannot be read, and says whether there is such a place (invariant 3).
    pub(super) async fn read_around(&self, at: u64, length: usize) -> Result<(IoBuf, bool)> {
        if let Some(bytes) = self.try_read(at, length).await? {
            return Ok((bytes, false));
        }
        let mut bytes = IoBuf::zeroed(length);
        let (mut holes, mut in_a_row) = (false, 0);
        for (i, piece) in bytes.chunks_mut(PIECE).enumerate() {
            let from = at + (i * PIECE) as u64;
            match self.try_read(from, piece.len()).await? {
                Some(read) => {
                    piece.copy_from_slice(&read);
                    in_a_row = 0;
                }
                None => holes |= self.read_sectors(from, piece, &mut in_a_row).await?,
            }
        }
        Ok((bytes, holes))
    }

    /// Reads a piece sector by sector; whether some cannot be read. `in_a_row`: how many could not just before. A
    /// device that has given nothing for so long is asked for little more: each of its answers may take seconds.
    async fn read_sectors(&self, from: u64, piece: &mut [u8], in_a_row: &mut usize) -> Result<bool> {
        let mut holes = false;
        for (i, sector) in piece.chunks_mut(SECTOR).enumerate() {
            let offset = from + (i * SECTOR) as u64;
            let times = match *in_a_row {
                DEAD.. if i > 0 => 0,
                DEAD.. => 1,
                _ => SECTOR_READS,
            };
            let mut read = None;
            for _ in 0..times {
                read = self.try_read(offset, SECTOR).await?;
                if read.is_some() {
                    break;
                }
            }
            match read {
                Some(read) => {
                    sector.copy_from_slice(&read);
                    *in_a_row = 0;
                }
                None => {
                    (holes, *in_a_row) = (true, *in_a_row + 1);
                    if self.unreadable.lock().insert(offset) {
                        tracing::warn!(device = self.device.name(), offset, "a sector of the log cannot be read");
                    }
                }
            }
        }
        Ok(holes)
    }

    /// `None` where the medium fails.
    pub(super) async fn try_read(&self, at: u64, length: usize) -> Result<Option<IoBuf>> {
        let into = if length >= LARGE { self.spares.take(length) } else { IoBuf::zeroed(length) };
        match self.device.read(at, into, Purpose::Log).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if matches!(e.kind, ErrorKind::Medium(_)) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
}

impl SegmentImage {
    /// The batches from `from` on (a batch boundary; anything below the segment's first is its first) to the last that
    /// checks.
    pub(crate) fn batches(&self, from: Lsn) -> impl Iterator<Item = Batch<'_>> {
        let geometry = self.core.geometry;
        let first = geometry.lsn(self.header.number, FIRST);
        let mut at = from.max(first);
        let seed = batch::seed(self.core.database, self.header.epoch);
        std::iter::from_fn(move || {
            let offset = at.0 - geometry.lsn(self.header.number, 0).0;
            let batch = batch::check(self.bytes.get(offset as usize..)?, seed, at)?;
            at = batch.end;
            Some(batch)
        })
    }

    /// Where the batches from `from` on end: `from` itself where none checks and it lies in this segment, else the LSN
    /// at which the stream before the segment ended.
    pub(crate) fn end(&self, from: Lsn) -> Lsn {
        let first = self.core.geometry.lsn(self.header.number, FIRST);
        let none = if from >= first { from } else { self.header.prev_end };
        self.batches(from).last().map_or(none, |b| b.end)
    }

    /// The page index, where the segment is sealed.
    pub(crate) fn seal(&self) -> Option<Seal> {
        let whole = self.bytes.len() as u64 == self.core.geometry.segment_size;
        whole.then(|| Seal::decode(&self.bytes, &self.header, self.core.geometry)).flatten()
    }

    /// Whether all of its batches are there, as far as that can be known.
    pub(crate) fn is_whole(&self) -> bool {
        !self.holes || self.seal().is_some_and(|seal| seal.end == self.end(Lsn(0)))
    }

    /// The bytes up to the end of the last batch from `from` on (as `batches` has it) that checks, and the seal if it
    /// is of that end; zeros elsewhere.
    pub(crate) fn proven(&self, from: Lsn) -> Vec<u8> {
        let geometry = self.core.geometry;
        let (mut bytes, end) = (self.bytes.to_vec(), self.end(from));
        let seal = self.seal().filter(|seal| seal.end == end);
        let index = seal.map_or(bytes.len(), |seal| geometry.index_at(seal.index.entries()) as usize);
        let behind = end.0.saturating_sub(geometry.lsn(self.header.number, 0).0).max(FIRST) as usize;
        bytes[behind..index].fill(0);
        bytes
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
