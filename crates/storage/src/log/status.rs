//! The state of the log, for views and metrics.
use super::tail::Tail;
use super::{Core, Log};
use crate::sync::atomic::Ordering;
use crate::types::Lsn;

/// The log at one moment. LSNs are positions in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogStatus {
    /// End of what has been appended, and up to where it is durable.
    pub end: Lsn,
    pub durable: Lsn,
    /// Where restart would begin; where the kept log begins.
    pub redo_lsn: Lsn,
    pub retain_lsn: Lsn,
    /// The most bytes that restart may have to repeat: writers are held up before.
    pub redo_bound: u64,
    /// Bytes of a segment; segments that hold log, and slots free for more.
    pub segment_size: u64,
    pub segments: usize,
    pub free_segments: usize,
    /// The oldest segment held.
    pub oldest_segment: Option<u64>,
    /// Segments that the device may ever hold.
    pub capacity_segments: u32,
    /// Bytes promised to mini-transactions under way, and appended but not yet durable.
    pub reserved_bytes: usize,
    pub unwritten_bytes: usize,
    /// Mini-transactions that wait for room.
    pub waiting: usize,
    /// `None`: there is no archive.
    pub archive: Option<ArchiveStatus>,
}

/// How far the archive has got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArchiveStatus {
    /// Where the first segment begins that it lacks. Right after an opening that is the oldest one: all are offered
    /// again.
    pub lsn: Lsn,
    /// Full segments that it lacks.
    pub lacks: usize,
    /// The newest attempt to store a segment failed.
    pub refuses: bool,
    /// Attempts that failed since the opening.
    pub failures: u64,
    /// When one last failed (microseconds since 1970, UTC), and why.
    pub last_failure: Option<(i64, String)>,
}

impl Log {
    pub fn status(&self) -> LogStatus {
        let core = &self.core;
        let tail = core.tail.lock();
        LogStatus {
            end: Lsn(core.end.load(Ordering::Acquire)),
            durable: Lsn(core.wait.durable.load(Ordering::Acquire)),
            redo_lsn: tail.slots.redo,
            retain_lsn: tail.slots.retain,
            redo_bound: core.redo_bound,
            segment_size: core.geometry.segment_size,
            segments: tail.slots.live().count(),
            free_segments: tail.slots.free(),
            oldest_segment: tail.slots.live().next(),
            capacity_segments: tail.slots.max(),
            reserved_bytes: tail.permits,
            unwritten_bytes: tail.unwritten,
            waiting: core.reserving.waiters.load(Ordering::Relaxed),
            archive: core.archiving.store.is_some().then(|| core.archive_status(&tail)),
        }
    }
}

impl Core {
    fn archive_status(&self, tail: &Tail) -> ArchiveStatus {
        let slots = &tail.slots;
        let next = slots.live().next().map_or(slots.archived, |oldest| slots.archived.max(oldest));
        let failed = self.archiving.failures.lock().clone();
        ArchiveStatus {
            lsn: self.geometry.lsn(next, 0),
            lacks: slots.live().filter(|&n| n >= next && n < tail.segment.number).count(),
            refuses: self.archiving.refuses.load(Ordering::Acquire),
            failures: failed.count,
            last_failure: failed.last,
        }
    }
}
