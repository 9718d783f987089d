//! The end of the log in memory: batches are appended here and taken by the writer.
//!
//! `append` never waits (invariant 1 of the log): the permit has been granted before, by `reserve`.

use super::history::starts_afresh;
use super::index::OpenIndex;
use super::segment::{self, FIRST, Geometry};
use super::space::Slots;
use super::writer::Work;
use super::{Block, EVENT, Log, LogPermit, batch};
use crate::sync::atomic::Ordering;
use crate::types::Lsn;
use std::collections::{BTreeMap, VecDeque};
use terrace_env::memory;

/// Everything that `append` touches.
pub(super) struct Tail {
    pub(super) started: bool,
    pub(super) epoch: u64,
    pub(super) seed: u32,
    pub(super) segment: OpenSegment,
    /// Appended to the open segment since the writer took the last bytes; `bytes[0]` lies at `bytes_at`.
    pub(super) bytes: Vec<u8>,
    bytes_at: u64,
    pub(super) sealed: VecDeque<Piece>,
    pub(super) slots: Slots,
    /// Bytes of granted permits, and of batches not yet durable.
    pub(super) permits: usize,
    pub(super) unwritten: usize,
    /// The furthest LSN that somebody waits for to be durable.
    pub(super) requested: u64,
    spare: Vec<u8>,
    /// Segments that `scan` saw on the device, whether or not they belong to the stream.
    pub(super) found: BTreeMap<u64, (u32, segment::SegmentHeader)>,
}

/// The segment that takes batches.
#[derive(Default)]
pub(super) struct OpenSegment {
    pub(super) number: u64,
    slot: u32,
    /// Offset of the next batch.
    offset: u64,
    /// Where the stream before this segment ended; set until the writer has taken the segment's header.
    header: Option<Lsn>,
    /// The same, kept.
    pub(super) prev_end: Lsn,
    index: OpenIndex,
}

/// What seals a segment: where its batches end, and its index, which the writer puts in order.
pub(super) struct Sealing {
    pub(super) end: Lsn,
    pub(super) index: OpenIndex,
}

/// Part of a segment on its way to the device.
pub(super) struct Piece {
    pub(super) number: u64,
    pub(super) slot: u32,
    /// Write the header block first, with this as the end of the stream before.
    pub(super) header: Option<Lsn>,
    pub(super) at: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) seal: Option<Sealing>,
    pub(super) epoch: u64,
}

impl Log {
    /// Appends a batch under one short mutex and returns its start and end LSN. Called under latches: never waits. The
    /// caller has marked the pages dirty with a recLSN <= `end()` read before (invariant 4 of the log). On a poisoned
    /// log the batch gets its LSNs and goes nowhere: `flush_to` says so.
    pub fn append<'a>(&self, mut permit: LogPermit, blocks: impl Iterator<Item = Block<'a>> + Clone) -> (Lsn, Lsn) {
        let core = &*self.core;
        let length = batch::encoded_len(blocks.clone());
        assert!(length <= permit.bytes, "a batch of {length} bytes with a permit for {}", permit.bytes);
        let mut tail = core.tail.lock();
        assert!(tail.started, "the log takes batches once recovery has opened it");
        let (start, end) = tail.append(core.geometry, length, blocks);
        core.end.store(end.0, Ordering::Release);
        let full = tail.unwritten >= core.eager() || core.reserving.waiters.load(Ordering::SeqCst) > 0;
        tail.permits -= permit.bytes;
        permit.bytes = 0;
        if full {
            core.wait.wake_writer.notify_one();
        }
        (start, end)
    }
}

impl Tail {
    /// Before recovery.
    pub(super) fn unopened(slots: Slots) -> Tail {
        Tail {
            started: false,
            epoch: 0,
            seed: 0,
            segment: OpenSegment::default(),
            bytes: Vec::new(),
            bytes_at: 0,
            sealed: VecDeque::new(),
            slots,
            permits: 0,
            unwritten: 0,
            requested: 0,
            spare: Vec::new(),
            found: BTreeMap::new(),
        }
    }

    fn append<'a>(
        &mut self,
        geometry: Geometry,
        length: usize,
        blocks: impl Iterator<Item = Block<'a>> + Clone,
    ) -> (Lsn, Lsn) {
        // The writer frees it: a transaction must not pay for all that it has ever logged.
        let (place, grown) = memory::measured(|| self.put(geometry, length, blocks));
        memory::handed_over(grown);
        place
    }

    fn put<'a>(
        &mut self,
        geometry: Geometry,
        length: usize,
        blocks: impl Iterator<Item = Block<'a>> + Clone,
    ) -> (Lsn, Lsn) {
        let entries = self.segment.index.with(blocks.clone().map(|b| b.page).filter(|page| *page != EVENT));
        if !geometry.fits(self.segment.offset + length as u64, entries) {
            self.seal(geometry);
        }
        let start = geometry.lsn(self.segment.number, self.segment.offset);
        let end = Lsn(start.0 + length as u64);
        batch::encode(&mut self.bytes, self.seed, start, blocks.clone());
        let (from, upto) = (self.segment.offset, self.segment.offset + length as u64);
        for block in blocks.filter(|b| b.page != EVENT) {
            self.segment.index.add(block.page, from, upto, starts_afresh(block.ops));
        }
        self.segment.offset = upto;
        debug_assert_eq!(self.bytes_at + self.bytes.len() as u64, self.segment.offset);
        self.unwritten += length;
        (start, end)
    }

    /// Begins segment `number` behind a stream that ended at `end`.
    pub(super) fn open(&mut self, number: u64, end: Lsn) {
        self.segment.number = number;
        self.segment.slot = self.slots.open(number);
        self.segment.offset = FIRST;
        self.bytes_at = FIRST;
        self.segment.header = Some(end);
        self.segment.prev_end = end;
    }

    /// Seals the open segment and opens the next.
    fn seal(&mut self, geometry: Geometry) {
        let number = self.segment.number;
        let end = geometry.lsn(number, self.segment.offset);
        let index = std::mem::take(&mut self.segment.index);
        let piece = self.take(Some(Sealing { end, index }));
        self.sealed.push_back(piece);
        self.open(number + 1, end);
    }

    /// What was appended to the open segment since the last call.
    pub(super) fn take(&mut self, seal: Option<Sealing>) -> Piece {
        let bytes = std::mem::replace(&mut self.bytes, std::mem::take(&mut self.spare));
        let at = std::mem::replace(&mut self.bytes_at, self.segment.offset);
        assert_eq!(at + bytes.len() as u64, self.segment.offset, "the log's tail has a hole");
        let (number, slot, header) = (self.segment.number, self.segment.slot, self.segment.header.take());
        Piece { number, slot, header, at, bytes, seal, epoch: self.epoch }
    }

    /// The writer has made this durable: its buffer is used again.
    pub(super) fn written(&mut self, work: &mut Work) {
        self.unwritten -= work.bytes;
        if let Some(mut spare) = work.pieces.pop().map(|p| p.bytes)
            && spare.capacity() > self.spare.capacity()
        {
            spare.clear();
            self.spare = spare;
        }
    }
}
