//! How long a restart would take now, by what the devices have been measured to do; and how much must go home for it to
//! take no longer than `restart_target`.
//!
//! A restart is over when all changes are repeated: the log is read from the redo LSN on, and each page that is dirty
//! in memory is read from the level below: a flash tier that will be warm, or else the disk. (With `restart = instant`
//! the first query is answered long before, but statements share the processor with what is repeated.)
//!
//! The bound is soft: the nearer the estimate comes to the target, the more pages the background writer takes home in a
//! round, as with `redo_bound`. Where the device below cannot keep up, `redo_bound` stops writers and this does not.
//!
//! Source: SQL Server's indirect checkpoints (TARGET_RECOVERY_TIME) have the same meaning.

use crate::store::Inner;
use std::time::Duration;
use terrace_device::Purpose;

/// Bytes of log a second that one thread reads and sorts by page: measured with `bench/restart` and the example
/// `recovery_time`, 150 to 300 MB of log.
const SORTED: f64 = 150e6;
/// Until so many reads of pages have been timed, a read counts as one of a disk.
const TIMED: u64 = 32;
const DISK_READ: Duration = Duration::from_millis(5);
const FLASH_READ: Duration = Duration::from_micros(200);
/// Of the processor, to repeat a page's changes: of 15,000 pages more, `bench/restart` took 2.7 s longer at scale 200
/// than at 50, beside statements that took half of it.
const REPEATED: Duration = Duration::from_micros(90);
/// Reads of pages under way at once while changes are repeated.
const AT_ONCE: f64 = 4.0;

/// Where a warm tier takes dirty pages, memory keeps no more than this many of them: that is half a second of a
/// restart, in which statements wait. With fewer, nothing is written early.
const MOST_DIRTY: usize = 4096;

impl Inner {
    /// About how long a restart would take now.
    pub(crate) fn restart_estimate(&self) -> Duration {
        let log = self.log_debt() as f64 / SORTED;
        let pages = self.pool.dirty() as f64 * self.to_repeat();
        Duration::from_secs_f64(log + pages)
    }

    /// Seconds that a restart spends with a dirty page.
    fn to_repeat(&self) -> f64 {
        self.page_read().as_secs_f64() / AT_ONCE + REPEATED.as_secs_f64()
    }

    /// Dirty pages that memory keeps where a warm tier takes more: so few that a target presses no page to the disk.
    pub(super) fn most_dirty(&self) -> usize {
        let target = self.config.restart_target.map(|target| target.as_secs_f64() / 4.0 / self.to_repeat());
        target.map_or(MOST_DIRTY, |pages| MOST_DIRTY.min(pages as usize))
    }

    /// How full the target is: 1 where a restart would take as long as it may.
    pub(super) fn of_target(&self) -> f64 {
        let target = self.config.restart_target.map(|target| target.as_secs_f64());
        target.map_or(0.0, |target| self.restart_estimate().as_secs_f64() / target)
    }

    /// The mean of the reads of pages that statements have waited for, of the level below.
    fn page_read(&self) -> Duration {
        let warm = self.flash.has_two_floors();
        let (below, untimed) = if warm { (Purpose::Flash, FLASH_READ) } else { (Purpose::Data, DISK_READ) };
        let reads = self.io().into_iter().find(|usage| usage.purpose == below).map(|usage| usage.reads);
        reads.filter(|reads| reads.count() >= TIMED).map_or(untimed, |reads| Duration::from_nanos(reads.mean()))
    }
}
