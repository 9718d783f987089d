//! Records of frames in the write-ahead log: the restart method that makes the tier's map again from the log
//! (`restart = log-based`).
//!
//! | record (*format*: an event of a batch has some) | the thesis's | when |
//! |---|---|---|
//! | `Hold`: what 64 frames hold | SSD_CHKPT | at a checkpoint, for all frames (a *table*), where the last one is old |
//! | `Hold`: a frame holds nothing | SSD_PRE_WRITE_INVALIDATE | before it is overwritten; durable before that |
//! | `Hold`: a frame holds a version of a page | SSD_POST_WRITE | when it is written and synced |
//! | `Anew`: no frame holds anything | - | of a tier that begins empty, or whose records were lost |
//!
//! Source: J. Do, *The Role of Flash Memory in Database Management Systems*, section 4.3.3. What is hard, and who waits
//! for it, is as with records on the device: [`hardened`](super::hardened). There is no SSD_LAZY_CLEANED, because no
//! record says that a frame is dirty: a page that the log has changes of, from the retain LSN on, counts as dirty.
//!
//! Invariants:
//! 1. Records are queued under the latch of their frame's partition, and appended in the queue's order: in the log they
//!    stand in the order in which the frames changed.
//! 2. A batch that changes a page implies that the frame is void which holds the page then: `dirtied` queues
//!    nothing. For the batch lies behind the begin of each table that names the frame, so behind the retain LSN
//!    while such a table is the last one (3); and a start notes all batches from there on, after it has made the map
//!    (`attach`, invariant 2). All else that makes a named frame void is queued. So is one that entered the tier
//!    after its page had changed (a copy was on its way; `flash`, invariant 1): it is void when the page is written
//!    next, and that is durable when the write counts as done, before the retain LSN passes the change. A frame that
//!    a batch has made void is queued when another page gets it.
//! 3. The recorded retain LSN is never above the begin of the last table that is durable, or it is above the last
//!    stamp, too: where no table can be written, or the tier fails, nothing is stamped. A start believes the log's
//!    records only where a stamp of such a series is not below the retain LSN that it finds. So from there on the log
//!    has the whole map.
//! 4. Nobody waits for room in the log here: those who make room may be waiting for records. Where there is none, the
//!    stamp is made void, so that the next start finds nothing, and the series ends. Before the log closes no frame
//!    is given out any more, and the records that those need which were given out are in it (`end_records`).
//! 5. Up to eight frames that are to be overwritten share a sync of the log: the keeper lets others come for a
//!    millisecond (the thesis's group-writing optimization).

use super::attach::Search;
use super::inventory::Keeping;
use super::layout::Entry;
use super::partition::Partition;
use super::tune::Shape;
use super::{FlashHome, FrameId};
use crate::bytes::{FromBytes, IntoBytes, U16, U32, U64, layout};
use crate::error::Result;
use crate::log::batch::encoded_len;
use crate::log::{Block, EVENT, Log};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::types::{DATA, Lsn, PageId};
use std::time::Duration;

/// Frames in a record of the table.
pub(super) const GROUP: u32 = 64;
/// Invariant 5.
const TOGETHER: u64 = 8;
const AT_MOST: Duration = Duration::from_millis(1);
/// How often a stop looks whether the frames that were given out have been written.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// Bytes of records in a batch, about.
const BATCH: usize = 8 << 10;
/// A table is written when the log since the last one is this part of the redo bound, or so many times its bytes.
const OF_BOUND: u64 = 8;
const OF_TABLE: u64 = 8;
/// The first byte of the event.
const TAG: u8 = 3;

layout! {
    /// The front of a record; what frames hold follows.
    struct RecordFront: 8 {
        0 kind: u8,
        1 part: u8,
        2 count: U16,
        /// The first frame; of `ANEW`: how many partitions there are.
        4 frame: U32,
    }
}

layout! {
    /// What a frame holds; page 0: nothing.
    struct HeldBytes: 16 {
        0 page: U64,
        8 lsn: U64,
    }
}

const ANEW: u8 = 1;
/// The frames from the record's first on hold this.
const HOLD: u8 = 2;

/// What a frame holds.
pub(super) type Holds = Option<(PageId, Lsn)>;

/// What the log says of frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Record {
    /// No frame holds anything; so many partitions.
    Anew { parts: u32 },
    /// What frames from this one on hold.
    Hold { first: FrameId, frames: Vec<Holds> },
}

impl Record {
    fn encode(&self, out: &mut Vec<u8>) {
        let (kind, part, frame, frames): (u8, u32, u32, &[Holds]) = match self {
            Record::Anew { parts } => (ANEW, 0, *parts, &[]),
            Record::Hold { first, frames } => (HOLD, first.part, first.frame, frames),
        };
        let front = RecordFront { kind, part: part as u8, count: (frames.len() as u16).into(), frame: frame.into() };
        out.extend_from_slice(front.as_bytes());
        for held in frames {
            let (page, lsn) = held.map_or((0, 0), |(page, lsn)| (page.to_u64(), lsn.0));
            out.extend_from_slice(HeldBytes { page: page.into(), lsn: lsn.into() }.as_bytes());
        }
    }

    fn decode(bytes: &mut &[u8]) -> Option<Record> {
        let (front, rest) = RecordFront::ref_from_prefix(bytes).ok()?;
        let (frames, rest) = <[HeldBytes]>::ref_from_prefix_with_elems(rest, front.count.get() as usize).ok()?;
        *bytes = rest;
        let held = |h: &HeldBytes| (h.page != 0).then(|| (PageId::from_u64(h.page.get()), Lsn(h.lsn.get())));
        match front.kind {
            ANEW => Some(Record::Anew { parts: front.frame.get() }),
            HOLD => {
                let first = FrameId { part: front.part.into(), frame: front.frame.get() };
                Some(Record::Hold { first, frames: frames.iter().map(held).collect() })
            }
            _ => None,
        }
    }
}

/// The records of an event; `None`: it is none of the tier's, or damaged.
fn decode(event: &[u8]) -> Option<Vec<Record>> {
    let (&tag, mut rest) = event.split_first()?;
    let mut records = Vec::new();
    while tag == TAG && !rest.is_empty() {
        records.push(Record::decode(&mut rest)?);
    }
    (tag == TAG).then_some(records)
}

/// Records on their way to the log, and the tickets given out (`hardened`, invariant 1).
#[derive(Default)]
pub(super) struct Queue {
    records: Mutex<Vec<Record>>,
    pub(super) tickets: AtomicU64,
}

impl Queue {
    pub(super) fn push(&self, record: Record) {
        self.records.lock().push(record);
    }

    /// The same, and somebody may wait for it.
    pub(super) fn push_vital(&self, record: Record) -> u64 {
        let mut records = self.records.lock();
        records.push(record);
        self.ticket()
    }

    /// Another ticket.
    pub(super) fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::AcqRel) + 1
    }

    fn take(&self) -> (Vec<Record>, u64) {
        let mut records = self.records.lock();
        (std::mem::take(&mut *records), self.tickets.load(Ordering::Acquire))
    }
}

/// The map that the log makes.
struct Map {
    parts: u32,
    frames: Vec<Vec<Holds>>,
    /// A tier of another shape.
    other: bool,
}

impl Map {
    fn apply(&mut self, record: Record) {
        match record {
            Record::Anew { parts } => {
                self.other = parts != self.parts;
                self.frames.iter_mut().for_each(|part| part.fill(None));
            }
            Record::Hold { first, frames } => {
                let Some(part) = self.frames.get_mut(first.part as usize) else { return };
                for (place, held) in part.iter_mut().skip(first.frame as usize).zip(frames) {
                    *place = held;
                }
            }
        }
    }
}

impl FlashHome {
    /// Its records go to the log.
    pub(crate) fn logs(&self) -> bool {
        self.running.read().config.restart.hardens_in_log()
    }

    /// The same, and a tier that begins empty says so first.
    pub(super) fn begin_logging(&self, anew: bool) {
        if anew {
            self.queue().take();
            self.queue().push(Record::Anew { parts: self.parts.load(Ordering::Acquire) });
        }
        let number = |(part, partition): (usize, &Mutex<Partition>)| partition.lock().log_as(Some(part as u32));
        self.partitions.iter().enumerate().for_each(number);
    }

    pub(super) fn end_logging(&self) {
        self.partitions.iter().for_each(|partition| partition.lock().log_as(None));
        self.queue().take();
    }

    fn queue(&self) -> &Queue {
        &self.totals.queue
    }

    /// Appends what is queued. `all`: it is durable then, whether somebody waits for it or not. Where that cannot be,
    /// the series ends.
    pub(super) async fn log_records(&self, keeping: &mut Keeping, all: bool) {
        let waited = self.ticket().saturating_sub(self.hardened.upto());
        if !all && (1..TOGETHER).contains(&waited) {
            self.env.sleep(AT_MOST).await; // Invariant 5.
        }
        let (records, ticket) = self.queue().take();
        let vital = all || ticket > self.hardened.upto();
        match append(&self.log, &records, vital).await {
            Ok(true) => self.hardened.is_hard_to(ticket),
            Ok(false) if !vital => {} // A start will not find these frames.
            Ok(false) | Err(_) => {
                tracing::info!("records of the flash tier do not get into the log; a restart would begin without it");
                self.void_stamp(keeping).await;
                self.end_series();
            }
        }
        self.wake_hardened();
    }

    /// The log is about to close (invariant 4).
    pub(crate) async fn end_records(&self) {
        self.records_ended.store(true, Ordering::Release);
        let each_latch = || self.partitions.iter().for_each(|partition| drop(partition.lock()));
        each_latch(); // Who looked before that has counted its frame now.
        while self.logs() && self.totals.entering.load(Ordering::Acquire) > 0 && self.check().is_ok() {
            self.env.sleep(LOOK_AGAIN).await;
        }
        each_latch(); // Who has ended a write has queued its record now.
        let mut keeping = self.keeping.lock().await;
        if self.logs() && self.series() != 0 {
            self.log_records(&mut keeping, true).await;
        }
    }

    /// Invariant 3: the log has the whole map from here on. `None`: it has not.
    pub(super) async fn log_table(&self, keeping: &mut Keeping) -> Option<Lsn> {
        let (series, begins) = (self.series(), self.log.end());
        let bytes = self.gate().frames as u64 * size_of::<HeldBytes>() as u64;
        let every = (self.bounds.0 / OF_BOUND).max(bytes * OF_TABLE);
        let due = keeping.whole != series || begins.0.saturating_sub(keeping.table.0) > every;
        if due && !self.log.is_closing() {
            for part in 0..self.parts.load(Ordering::Acquire) {
                let frames = self.partition(part).lock().frames();
                for first in (0..frames).step_by(GROUP as usize) {
                    self.partition(part).lock().log_table(first);
                }
            }
            self.log_records(keeping, true).await;
            if self.series() == series {
                (keeping.whole, keeping.table) = (series, begins);
            }
        }
        (keeping.whole == self.series() && self.series() != 0).then_some(keeping.table)
    }

    /// Finds frames by the log's records from `from` to its end. False where they are of another shape, or the log
    /// cannot be read.
    pub(super) async fn find_logged(&self, search: &mut Search<'_>, from: Lsn, shape: Shape) -> bool {
        let frames = vec![vec![None; shape.each as usize]; shape.parts as usize];
        let mut map = Map { parts: shape.parts, frames, other: false };
        if read(&self.log, from, |record| map.apply(record)).await.is_err() || map.other {
            return false;
        }
        let mut listed = 0;
        for (part, frames) in map.frames.into_iter().enumerate() {
            let mut partition = self.partition(part as u32).lock();
            for (frame, held) in frames.into_iter().enumerate() {
                let Some((page, lsn)) = held else { continue };
                partition.name_frame(frame as u32);
                partition.unlist(frame as u32);
                let at = FrameId { part: part as u32, frame: frame as u32 };
                let ours = page.space == DATA && self.partition_of(page) == at.part && search.has(self, at);
                listed += u64::from(ours && partition.find_again(frame as u32, Entry::of(page, lsn)));
            }
        }
        self.count_restored(|r| r.listed += listed);
        self.begin_logging(false); // What recovery changes is in the log, too (invariant 2).
        true
    }
}

/// Appends records in batches; false where there is no room (invariant 4).
async fn append(log: &Log, records: &[Record], durable: bool) -> Result<bool> {
    let mut rest = records.iter().peekable();
    while rest.peek().is_some() {
        let mut event = vec![TAG];
        while event.len() < BATCH
            && let Some(record) = rest.next()
        {
            record.encode(&mut event);
        }
        let block = Block { page: EVENT, prev: Lsn(0), ops: &event };
        let blocks = std::iter::once(block);
        let Some(permit) = log.reserve_at_once(encoded_len(blocks.clone())).await? else { return Ok(false) };
        log.append(permit, blocks);
    }
    if durable {
        log.flush_to(log.end()).await?;
    }
    Ok(true)
}

/// Shows the log's records from `from` to its end, which recovery has not found yet.
async fn read(log: &Log, from: Lsn, mut show: impl FnMut(Record)) -> Result<()> {
    let mut image = match from {
        Lsn(0) => log.successor(None, from).await?,
        from => log.segment(log.segment_of(from)).await?,
    };
    let mut at = from;
    while let Some(segment) = image.take() {
        let mut end = None;
        for batch in segment.batches(at) {
            let events = batch.blocks().filter(|block| block.page == EVENT);
            events.filter_map(|block| decode(block.ops)).flatten().for_each(&mut show);
            end = Some(batch.end);
        }
        let end = end.unwrap_or_else(|| segment.end(at));
        image = log.successor(Some(&segment), end).await?;
        at = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
