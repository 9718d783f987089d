//! The flash tier: a second buffer pool on a flash device, between the memory pool and the disk, behind the same seam ([`Home`]).
//!
//! Source: J. Do, *The Role of Flash Memory in Database Management Systems*, chapter 3 and section 4.2.2. The decisions are
//! `terrace_policy::flash`'s; the parts are [`record`] (frames' states), [`partition`] (what a latch covers), [`read`], [`write`],
//! [`clean`] (the lazy cleaner), [`replay`] (dirty pages whose frame is lost), [`trouble`] (a device that fails), [`stats`].
//!
//! Invariants:
//! 1. *No stale page.* A frame that is not void holds the newest version of its page, unless the page is dirty in memory; then nobody
//!    reads the frame. `dirtied` voids it, under the page's latch and before the change has an LSN; what a copy taken earlier may still
//!    bring in behind that is voided when the page is next written, before it can leave memory.
//! 2. *Order at home.* Whoever hands a page to the disk home does so after its frame was found not void, or made so, under the
//!    partition's latch. The disk home writes in the order in which it was handed; so the cleaner never overtakes a newer version.
//! 3. A page is dirty somewhere until it is durable at home: it enters the next dirty set (pool, tier, disk home) before it leaves
//!    the last one. Downwards: the pool lets go when `write_back` has returned, the tier when the disk home has taken it.
//! 4. Upwards (a dirty frame's page changes again): `dirtied` returns the recLSN for the page to inherit; it stays *rising* in the
//!    tier until the pool's dirty set has it, and counts until the next scan begins, for this one may have looked at the pool before.
//!    Checkpoints scan: `begin_scan`, log end, pool, tier, disk home.
//! 5. The tier may vanish at any time, today at every restart: the log is kept back to its oldest recLSN, so that a lost dirty page is
//!    made again from the disk's version and the log (replay.rs), while the server runs.

mod clean;
#[cfg(test)]
mod home_tests;
mod partition;
mod read;
mod record;
mod replay;
mod stats;
#[cfg(test)]
mod tests;
mod trouble;
mod write;

pub use stats::{FlashState, FlashStats};

use crate::config::{FlashConfig, FlashOrder, StorageConfig};
use crate::error::{Result, StorageError};
use crate::home::disk::{DiskHome, PAGES_AT};
use crate::home::{Fetched, Home, HomeFuture, Reason, Tier, WriteBack};
use crate::identity::{Identity, Role};
use crate::log::Log;
use crate::pool::Access;
use crate::sync::Mutex;
use crate::types::*;
use partition::{Partition, Totals};
use stats::{Counters, Times};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use terrace_device::{DeviceRef, IoBuf, Purpose};
use terrace_env::{Env, Nanos};
use terrace_policy::flash::{Budget, Gate, Offer};
use tokio::sync::Notify;
use trouble::Complaints;

/// Partitions (N, section 3.3.3.4), and the fewest frames worth one.
const PARTITIONS: usize = 16;
const PARTITION_FRAMES: usize = 64;
/// Pages that stay together in a partition: group cleaning finds its neighbours there.
const REGION: u32 = 64;
/// Failed transfers in a row after which the device counts as gone.
const FAILURES: u32 = 16;

/// A frame of the tier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct FrameId {
    part: u32,
    frame: u32,
}

type Listener = Box<dyn Fn(PageId, Tier) + Send + Sync>;

/// A clean page on its way in.
struct Admission {
    at: FrameId,
    bytes: IoBuf,
}

/// The tier and the disk home under it.
pub(crate) struct FlashHome {
    env: Env,
    log: Log,
    disk: Arc<DiskHome>,
    device: DeviceRef,
    page_size: usize,
    log_before_data: bool,
    cleaning_batch: usize,
    gate: Gate,
    partitions: Box<[Mutex<Partition>]>,
    totals: Arc<Totals>,
    state: AtomicU8,
    problem: Mutex<Option<String>>,
    /// Transfers under way.
    pending: AtomicUsize,
    /// Failed transfers since the last that succeeded.
    failures: AtomicU32,
    complaints: Complaints,
    admissions: Mutex<VecDeque<Admission>>,
    /// Buffers to copy admissions into.
    spare: Mutex<Vec<IoBuf>>,
    /// Dirty frames that could not be read: they go home first.
    urgent: Mutex<Vec<FrameId>>,
    wake_writer: Notify,
    wake_cleaner: Notify,
    /// Fewer dirty frames, or a failure.
    progress: Notify,
    /// Dirty frames below this LSN are to go home now.
    wanted_home: AtomicU64,
    closing: AtomicBool,
    counters: Counters,
    times: Times,
    opened: Nanos,
    replacement: FlashOrder,
    /// Bytes that may be written; `None`: any.
    budget: Option<Mutex<Budget>>,
    write_budget: Option<u64>,
    endurance: Option<u64>,
    expanded_read: u32,
    listeners: Mutex<Vec<Listener>>,
    listening: AtomicBool,
}

impl FlashHome {
    /// A tier that is not used before `start`.
    pub(crate) fn new(env: Env, disk: Arc<DiskHome>, device: DeviceRef, config: &StorageConfig, log: Log) -> FlashHome {
        let FlashConfig { size, write, replacement, .. } = config.flash;
        let frames = (size / config.page_size as u64) as usize;
        let count = (frames / PARTITION_FRAMES).clamp(1, PARTITIONS);
        let per_partition = (frames / count).max(1);
        let totals = Arc::new(Totals::default());
        let partition = |_| Mutex::new(Partition::new(per_partition, replacement, totals.clone()));
        let gate = Gate {
            write,
            frames: per_partition * count,
            fill_threshold: config.flash.fill_threshold,
            throttle: config.flash.throttle_queue_depth,
            dirty_fraction: config.flash.dirty_fraction,
            redo_bound: config.redo_bound,
        };
        let opened = env.now();
        FlashHome {
            env,
            log,
            disk,
            device,
            page_size: config.page_size,
            log_before_data: config.safeguards.log_before_data,
            cleaning_batch: config.flash.cleaning_batch.max(1),
            gate,
            partitions: (0..count).map(partition).collect(),
            totals,
            state: AtomicU8::new(FlashState::Off as u8),
            problem: Mutex::new(None),
            pending: AtomicUsize::new(0),
            failures: AtomicU32::new(0),
            complaints: Complaints::default(),
            admissions: Mutex::new(VecDeque::new()),
            spare: Mutex::new(Vec::new()),
            urgent: Mutex::new(Vec::new()),
            wake_writer: Notify::new(),
            wake_cleaner: Notify::new(),
            progress: Notify::new(),
            wanted_home: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            counters: Counters::default(),
            times: Times::default(),
            opened,
            replacement,
            budget: config.flash.write_budget.map(|bytes| Mutex::new(Budget::new(bytes, opened.0))),
            write_budget: config.flash.write_budget,
            endurance: config.flash.endurance,
            expanded_read: config.flash.expanded_read.max(1),
            listeners: Mutex::new(Vec::new()),
            listening: AtomicBool::new(false),
        }
    }

    /// Takes the device, whose contents are void, and starts. A device that fails leaves the tier off, which only costs speed; one that
    /// carries another database's tier is refused.
    pub(crate) async fn start(self: &Arc<Self>, identity: &Identity) -> Result<()> {
        if let Some(owner) = self.owner().await.filter(|owner| *owner != identity.database) {
            let problem = format!(
                "it is the flash tier of database {owner:032x}, this is {:032x}; name another device or directory, or remove it",
                identity.database
            );
            return Err(StorageError::Foreign { file: self.device.name().to_string(), problem });
        }
        let size = PAGES_AT + self.gate.frames as u64 * self.page_size as u64;
        let taken = match self.device.allocate(0, size).await {
            Ok(()) => identity.stamp(&*self.device, Role::Flash).await,
            Err(e) => Err(e.into()),
        };
        if let Err(why) = taken {
            self.die(&why.to_string());
            return Ok(());
        }
        self.state.store(FlashState::On as u8, Ordering::Release);
        let (writer, cleaner) = (self.clone(), self.clone());
        self.env.spawn("flash writer", async move { writer.run_writer().await });
        self.env.spawn("flash cleaner", async move { cleaner.run_cleaner().await });
        Ok(())
    }

    /// The database whose tier the device carries.
    async fn owner(&self) -> Option<u128> {
        if self.device.size() < terrace_device::SECTOR as u64 {
            return None;
        }
        let sector = self.device.read(0, IoBuf::zeroed(terrace_device::SECTOR), Purpose::Flash).await.ok()?;
        Identity::owner(&sector)
    }

    pub(crate) fn stop(&self) {
        self.closing.store(true, Ordering::Release);
        for wake in [&self.wake_writer, &self.wake_cleaner] {
            wake.notify_one();
        }
        self.progress.notify_waiters();
    }

    fn check(&self) -> Result<()> {
        if let Some(e) = self.disk.failure() {
            return Err(e);
        }
        if self.closing.load(Ordering::Acquire) { Err(StorageError::ShuttingDown) } else { Ok(()) }
    }

    fn state(&self) -> FlashState {
        FlashState::from_u8(self.state.load(Ordering::Acquire))
    }

    /// Pages are let in.
    fn is_on(&self) -> bool {
        self.state() == FlashState::On
    }

    fn partition_of(&self, page: PageId) -> u32 {
        let region = u64::from(page.space.0) << 32 | u64::from(page.no / REGION);
        let hash = region.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 32;
        ((hash * self.partitions.len() as u64) >> 32) as u32
    }

    fn partition(&self, at: u32) -> &Mutex<Partition> {
        &self.partitions[at as usize]
    }

    fn part(&self, page: PageId) -> &Mutex<Partition> {
        self.partition(self.partition_of(page))
    }

    /// Frames are numbered through all partitions.
    fn number(&self, at: FrameId) -> u64 {
        u64::from(at.part) * (self.gate.frames / self.partitions.len()) as u64 + u64::from(at.frame)
    }

    /// Where a frame lies on the device: frames begin where pages of a tablespace do.
    fn offset(&self, at: FrameId) -> u64 {
        PAGES_AT + self.number(at) * self.page_size as u64
    }

    fn offer(&self, access: Access, age: u64) -> Offer {
        Offer {
            class: crate::pool::class_of(access),
            used: self.totals.used.load(Ordering::Acquire),
            dirty: self.totals.dirty.load(Ordering::Acquire),
            pending: self.pending.load(Ordering::Acquire),
            age,
        }
    }

    /// The smallest recLSN of dirty frames.
    pub(crate) fn oldest_dirty(&self) -> Option<Lsn> {
        if self.totals.dirty.load(Ordering::Acquire) == 0 {
            return None; // What is on its way in is dirty in memory.
        }
        self.partitions.iter().filter_map(|p| p.lock().oldest_dirty()).min()
    }

    fn moved(&self, page: PageId, tier: Tier) {
        if self.listening.load(Ordering::Acquire) {
            self.listeners.lock().iter().for_each(|listener| listener(page, tier));
        }
    }
}

impl Home for FlashHome {
    fn fetch(&self, first: PageId, count: u32, access: Access) -> HomeFuture<'_, Vec<Result<Fetched>>> {
        if first.space != DATA || self.state() == FlashState::Off {
            return self.disk.fetch(first, count, access);
        }
        self.fetch_pages(first, count, access)
    }

    fn around(&self, page: PageId, access: Access) -> Range<u32> {
        self.worth_reading(page, access)
    }

    fn create(&self, page: PageId) {
        self.disk.create(page); // A frame of the page is voided when it is dirtied.
    }

    fn dirtied(&self, page: PageId) -> Option<Lsn> {
        if page.space != DATA {
            return None;
        }
        let voided = self.part(page).lock().invalidate(page)?;
        self.counters.invalidated.fetch_add(1, Ordering::Relaxed);
        self.moved(page, Tier::Disk);
        voided
    }

    fn risen(&self, page: PageId, rec: Lsn) {
        self.part(page).lock().risen(page, rec);
        self.progress.notify_waiters();
    }

    fn write_back(&self, pages: Vec<WriteBack>, reason: Reason) -> HomeFuture<'_, Result<()>> {
        if self.state() == FlashState::Off {
            return self.disk.write_back(pages, reason);
        }
        self.write_pages(pages, reason)
    }

    fn evicted_clean(&self, page: PageId, bytes: &[u8], access: Access) {
        if page.space == DATA && self.is_on() {
            self.offer_clean(page, bytes, access);
        }
    }

    fn forget(&self, space: SpaceId, first: u32, count: u32) {
        if space == DATA {
            // Dirty frames stay until they are home: a crash may bring the pages back, and the log does not repeat what it thinks is home.
            for page in (first..first.saturating_add(count)).map(|no| PageId::new(space, no)) {
                if self.part(page).lock().drop_clean(page) {
                    self.counters.forgotten.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        self.disk.forget(space, first, count);
    }

    fn begin_scan(&self) {
        self.partitions.iter().for_each(|p| p.lock().begin_scan());
    }

    fn oldest_rec_lsn(&self) -> Option<Lsn> {
        let here = self.partitions.iter().filter_map(|p| p.lock().oldest_rec()).min();
        here.into_iter().chain(self.disk.oldest_rec_lsn()).min() // In this order: pages move down (invariant 3).
    }

    fn destage(&self, before: Lsn) -> HomeFuture<'_, Result<()>> {
        Box::pin(self.bring_home(before))
    }

    fn sync(&self) -> HomeFuture<'_, Result<()>> {
        self.disk.sync()
    }

    fn on_move(&self, listener: Listener) {
        self.listeners.lock().push(listener);
        self.listening.store(true, Ordering::Release);
    }

    fn failure(&self) -> Option<StorageError> {
        self.disk.failure()
    }
}
