//! The flash tier: a second buffer pool on a flash device, between the memory pool and the disk, behind the same seam
//! ([`Home`]).
//!
//! Source: J. Do, *The Role of Flash Memory in Database Management Systems*, chapter 3 and section 4.2.2. The decisions
//! are `terrace_policy::flash`'s; the parts are [`record`] (frames' states), [`layout`] (the device), [`partition`]
//! (what a latch covers), [`read`], [`write`], [`clean`] (the lazy cleaner), [`replay`] (dirty pages whose frame is
//! lost), [`inventory`] (what a restart will know), [`journal`] (the same, soon), [`hardened`] (the same, at once),
//! [`logged`] (the same in the log), [`attach`] (the restart), [`floors`] (what it need not repeat), [`trouble`] (a
//! device that fails), [`tune`] (on, off, larger, smaller, other policies, while pages flow), [`stats`].
//!
//! Invariants:
//! 1. *No stale page.* A frame that is not void holds the newest version of its page, unless the page is dirty in
//!    memory; then nobody reads the frame. `dirtied` makes the frame void, under the page's latch and before the change
//!    has an LSN; a dirty frame may stay, as the page's last version outside of memory (`floors`, invariant 3). A copy
//!    that was taken earlier may still enter the tier after that. Each such frame becomes void when the page is next
//!    written, before the page can leave memory.
//! 2. *Order at home.* Before a page is handed to the disk home, its frame is checked under the partition's latch: the
//!    frame is not void (cleaner), or it becomes void (pool). The disk home writes versions in the order in which it
//!    gets them, so the cleaner never overwrites a newer version.
//! 3. A page is dirty somewhere until it is durable at home: it enters the next dirty set (pool, tier, disk home)
//!    before it leaves the last one. Downwards: the pool lets go when `write_back` has returned, the tier when the disk
//!    home has taken it.
//! 4. Upwards (a dirty frame's page changes again): `dirtied` returns the recLSN for the page to inherit. The recLSN
//!    stays *rising* in the tier until the pool's dirty set has it. It still counts until the next scan begins, because
//!    the present scan may have looked at the pool before. Checkpoints scan: `begin_scan`, log end, pool, tier, disk
//!    home.
//! 5. Every store has a tier. If it is off, it has no frames, and each call reads only one number.
//! 6. The tier may vanish at any time: the log is kept back to its oldest recLSN (the retain LSN), so that a lost dirty
//!    page is made again from the disk's version and the log: while the server runs (replay.rs), or by an opening,
//!    which believes nothing of the tier that the log does not confirm (attach.rs). Where that fails for good, storage
//!    stops: a restart recovers, with all of the log.

mod attach;
mod clean;
mod floors;
mod hardened;
mod inventory;
mod journal;
mod lacking;
mod layout;
mod logged;
#[cfg(all(test, feature = "shuttle"))]
mod models;
mod partition;
mod read;
mod record;
mod replay;
mod stats;
#[cfg(test)]
mod stress;
#[cfg(test)]
pub(crate) mod tests;
mod trouble;
mod tune;
mod write;

pub use attach::{Empty, Restored};
pub(crate) use attach::{Floors, Start};
pub(crate) use lacking::{BatchSpan, Lack, Lacking};
pub(crate) use partition::Noted;
pub use stats::{FlashCounter, FlashState, FlashStats};

use crate::config::{FlashConfig, Safeguard, Safeguards, StorageConfig};
use crate::error::{Result, StorageError};
use crate::home::disk::DiskHome;
use crate::home::{Fetched, Home, HomeFuture, Reason, WriteBack};
use crate::identity::Identity;
use crate::log::Log;
use crate::pool::Access;
use crate::recovery::Remaker;
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, RwLock};
use crate::types::*;
use floors::Unhard;
use hardened::Hardened;
use inventory::Keeping;
use partition::{Partition, Totals};
use replay::Stuck;
use stats::{Counters, Times};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use terrace_device::{DeviceRef, IoBuf};
use terrace_env::{Env, Nanos};
use terrace_policy::flash::{Budget, Gate, Moment, Offer};
use tokio::sync::Notify;
use trouble::{Complaints, Rot};

/// Partitions (N, section 3.3.3.4), and the fewest frames worth one.
const PARTITIONS: usize = 16;
const PARTITION_FRAMES: usize = 64;
/// Frames of a partition that lie side by side on the device. Partitions take turns, so that all of them grow at the
/// device's end.
const STRIPE: u32 = 16;
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

/// A tier that lets nothing dirty in until this is dropped.
pub(crate) struct Closed<'a>(&'a AtomicUsize);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A clean page on its way in.
struct Admission {
    at: FrameId,
    bytes: IoBuf,
}

/// What can be changed while the tier runs.
#[derive(Clone)]
struct Running {
    config: FlashConfig,
    gate: Gate,
    /// Kept from when the tier is switched on until it is off.
    device: Option<DeviceRef>,
}

/// Counts a transfer for μ as long as this lives. The task that waits for the transfer may end earlier.
struct Pending<'a>(&'a AtomicUsize);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The tier and the disk home under it.
pub(crate) struct FlashHome {
    env: Env,
    log: Log,
    disk: Arc<DiskHome>,
    page_size: usize,
    pool_bytes: usize,
    log_before_data: bool,
    safeguards: Safeguards,
    identity: OnceLock<Identity>,
    /// The database's life, as the control file has it; 0: no inventory is written.
    life: AtomicU64,
    /// Lives before it, as the superblock had them.
    ancestors: Mutex<Vec<(u64, Lsn)>>,
    /// While frames are found: from where on the log is noted.
    floor: Mutex<Lsn>,
    /// To where redo has repeated the log.
    redone_to: OnceLock<Lsn>,
    restored: Mutex<Restored>,
    /// While frames are found: pages of which redo has passed over changes that no frame has.
    missed: Mutex<Vec<PageId>>,
    keeping: tokio::sync::Mutex<Keeping>,
    /// What has been written, and would not be found after a crash.
    unhard: Mutex<Unhard>,
    hardened: Hardened,
    /// Until the recorded redo LSN holds for memory again, after an opening: what the inventory holds for.
    listed_for: Mutex<Option<Lsn>>,
    /// Bytes of frames for which inventory may be written.
    list_credit: AtomicU64,
    /// How long the keeper rests; how often it syncs, so that a power failure costs no more; bytes of log that are
    /// kept.
    round: Duration,
    sync_every: Duration,
    retention: u64,
    /// Bytes of log behind the oldest dirty frame: with one floor, and with two.
    bounds: (u64, u64),
    running: RwLock<Running>,
    /// How many of them have frames: the first ones. Changed only while there are no frames.
    partitions: Box<[Mutex<Partition>]>,
    parts: AtomicU32,
    /// One change at a time (tune.rs).
    changing: tokio::sync::Mutex<()>,
    /// Writer and cleaner run.
    working: AtomicBool,
    totals: Arc<Totals>,
    state: AtomicU8,
    problem: Mutex<Option<String>>,
    /// Transfers under way that count for μ: all except the cleaner's, which are many at once and nobody waits for.
    pending: AtomicUsize,
    /// Failed transfers since the last that succeeded.
    failures: AtomicU32,
    rot: Mutex<Rot>,
    complaints: Complaints,
    admissions: Mutex<VecDeque<Admission>>,
    /// Buffers to copy admissions into.
    spare: Mutex<Vec<IoBuf>>,
    remaker: Remaker,
    /// Counts replays that fail in a row; once there were too many, the reason of the last.
    stuck: Mutex<Stuck>,
    hopeless: OnceLock<StorageError>,
    /// Dirty frames that could not be read, or whose place is wanted: they go home first.
    urgent: Mutex<Vec<FrameId>>,
    wake_writer: Notify,
    wake_cleaner: Notify,
    wake_keeper: Notify,
    /// Fewer dirty frames, or a failure.
    progress: Notify,
    /// Dirty frames below this LSN are to go home now.
    wanted_home: AtomicU64,
    /// Checkpoints under way that let nothing dirty in.
    closed: AtomicUsize,
    /// The log closes: no record of a frame reaches it any more (`logged`, invariant 4).
    records_ended: AtomicBool,
    closing: AtomicBool,
    counters: Counters,
    times: Times,
    opened: Nanos,
    /// Bytes that may be written; `None`: any.
    budget: Mutex<Option<Budget>>,
}

impl FlashHome {
    /// A tier that is off.
    pub(crate) fn new(env: Env, disk: Arc<DiskHome>, config: &StorageConfig, log: Log) -> FlashHome {
        let flash = &config.flash;
        let bounds = (config.redo_bound.min(config.log_retention), log.retain_bound());
        let gate = tune::gate(flash, 0, bounds);
        let totals = Arc::new(Totals::default());
        let opened = env.now();
        FlashHome {
            remaker: Remaker::new(log.clone(), config.page_size),
            env,
            log,
            disk,
            page_size: config.page_size,
            pool_bytes: config.pool_bytes,
            log_before_data: config.safeguards.has(Safeguard::LogBeforeData),
            safeguards: config.safeguards,
            identity: OnceLock::new(),
            life: AtomicU64::new(0),
            ancestors: Mutex::default(),
            floor: Mutex::new(Lsn(0)),
            redone_to: OnceLock::new(),
            restored: Mutex::default(),
            missed: Mutex::default(),
            keeping: tokio::sync::Mutex::default(),
            unhard: Mutex::default(),
            hardened: Hardened::default(),
            listed_for: Mutex::default(),
            list_credit: AtomicU64::new(0),
            round: config.writer_interval,
            sync_every: config.checkpoint_interval,
            retention: config.log_retention,
            bounds,
            running: RwLock::new(Running { config: flash.clone(), gate, device: None }),
            partitions: (0..PARTITIONS).map(|_| Mutex::new(Partition::new(totals.clone()))).collect(),
            parts: AtomicU32::new(1),
            changing: tokio::sync::Mutex::new(()),
            working: AtomicBool::new(false),
            totals,
            state: AtomicU8::new(FlashState::Off as u8),
            problem: Mutex::new(None),
            pending: AtomicUsize::new(0),
            failures: AtomicU32::new(0),
            rot: Mutex::default(),
            complaints: Complaints::default(),
            admissions: Mutex::new(VecDeque::new()),
            spare: Mutex::new(Vec::new()),
            stuck: Mutex::default(),
            hopeless: OnceLock::new(),
            urgent: Mutex::new(Vec::new()),
            wake_writer: Notify::new(),
            wake_cleaner: Notify::new(),
            wake_keeper: Notify::new(),
            progress: Notify::new(),
            wanted_home: AtomicU64::new(0),
            closed: AtomicUsize::new(0),
            records_ended: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            counters: Counters::default(),
            times: Times::default(),
            opened,
            budget: Mutex::new(flash.write_budget.map(|bytes| Budget::new(bytes, opened.0))),
        }
    }

    fn count_pending(&self) -> Pending<'_> {
        self.pending.fetch_add(1, Ordering::AcqRel);
        Pending(&self.pending)
    }

    /// How the tier is configured, and whether there is one.
    pub(crate) fn config(&self) -> (FlashConfig, bool) {
        (self.running.read().config.clone(), self.state() != FlashState::Off)
    }

    /// Lets nothing dirty in for as long as what is returned lives.
    pub(crate) fn close_to_dirty(&self) -> Closed<'_> {
        self.closed.fetch_add(1, Ordering::AcqRel);
        Closed(&self.closed)
    }

    pub(crate) fn stop(&self) {
        self.closing.store(true, Ordering::Release);
        for wake in [&self.wake_writer, &self.wake_cleaner, &self.wake_keeper] {
            wake.notify_one();
        }
        self.progress.notify_waiters();
        self.wake_hardened();
    }

    fn check(&self) -> Result<()> {
        if let Some(e) = self.failed() {
            return Err(e);
        }
        if self.closing.load(Ordering::Acquire) { Err(StorageError::ShuttingDown) } else { Ok(()) }
    }

    /// Why storage must stop, if it must.
    fn failed(&self) -> Option<StorageError> {
        self.hopeless.get().cloned().or_else(|| self.disk.failure())
    }

    fn state(&self) -> FlashState {
        FlashState::from_u8(self.state.load(Ordering::Acquire))
    }

    /// Pages are let in.
    fn is_on(&self) -> bool {
        self.state() == FlashState::On
    }

    /// Frames can be read.
    fn is_readable(&self) -> bool {
        matches!(self.state(), FlashState::On | FlashState::Draining | FlashState::Restoring)
    }

    /// Everything passes the tier by.
    fn is_out(&self) -> bool {
        matches!(self.state(), FlashState::Off | FlashState::Finding)
    }

    /// End of the log, also while it is not open for writing.
    fn log_end(&self) -> Lsn {
        match self.log.end() {
            Lsn(u64::MAX) => *self.redone_to.get().unwrap_or(&Lsn(u64::MAX)),
            end => end,
        }
    }

    fn gate(&self) -> Gate {
        self.running.read().gate
    }

    /// Its device, while the tier has frames.
    fn device(&self) -> Option<DeviceRef> {
        self.running.read().device.clone()
    }

    fn device_name(&self) -> String {
        self.device().map_or("none".into(), |device| device.name().to_string())
    }

    fn partition_of(&self, page: PageId) -> u32 {
        let region = u64::from(page.space.0) << 32 | u64::from(page.no / REGION);
        let hash = region.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 32;
        ((hash * u64::from(self.parts.load(Ordering::Acquire))) >> 32) as u32
    }

    fn partition(&self, at: u32) -> &Mutex<Partition> {
        &self.partitions[at as usize]
    }

    fn part(&self, page: PageId) -> &Mutex<Partition> {
        self.partition(self.partition_of(page))
    }

    /// Frames are numbered through all partitions, a stripe of each in turn.
    fn number(&self, at: FrameId) -> u64 {
        let stripe = u64::from(at.frame / STRIPE) * u64::from(self.parts.load(Ordering::Acquire)) + u64::from(at.part);
        stripe * u64::from(STRIPE) + u64::from(at.frame % STRIPE)
    }

    /// Where a frame lies on the device.
    fn offset(&self, at: FrameId) -> u64 {
        layout::frame_at(self.number(at), self.page_size)
    }

    fn offer(&self, access: Access, age: u64, kept: bool) -> Offer {
        Offer {
            kept,
            class: crate::pool::class_of(access),
            used: self.totals.used.load(Ordering::Acquire),
            dirty: self.totals.dirty.load(Ordering::Acquire),
            pending: self.pending.load(Ordering::Acquire),
            age,
        }
    }

    pub(crate) fn dirty_frames(&self) -> u64 {
        self.totals.dirty.load(Ordering::Acquire) as u64
    }

    /// The page's frame, if there is one, holds an older version from now on: it is void. `Some`: it was dirty, and its
    /// recLSN is rising. `in_log`: a batch that is yet to be appended will say so.
    fn supersede(&self, page: PageId, in_log: bool) -> Option<Lsn> {
        let guarded = self.safeguards.has(Safeguard::Voiding);
        if page.space != DATA || self.totals.used.load(Ordering::Acquire) == 0 || !guarded {
            return None;
        }
        let keep = self.gate().write.flow().keeps;
        let voided = self.part(page).lock().invalidate(page, keep, in_log)?;
        self.counters.invalidated.fetch_add(1, Ordering::Relaxed);
        voided
    }

    /// The smallest recLSN of dirty frames.
    pub(crate) fn oldest_dirty(&self) -> Option<Lsn> {
        if self.totals.dirty.load(Ordering::Acquire) == 0 {
            return None; // What is on its way in is dirty in memory.
        }
        self.partitions.iter().filter_map(|p| p.lock().oldest_dirty()).min()
    }
}

impl Home for FlashHome {
    fn fetch(&self, first: PageId, count: u32, access: Access) -> HomeFuture<'_, Vec<Result<Fetched>>> {
        if first.space != DATA || self.is_out() {
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
        // Earlier writes of frames passed a lock that the maker of this change has held since (pool table, latch).
        let stays = self.totals.dirty.load(Ordering::Acquire) > 0
            && self.has_two_floors()
            && self.part(page).lock().is_dirty(page);
        if stays {
            return None; // Its changes from now on are memory's own (`floors`, invariant 3).
        }
        self.supersede(page, true)
    }

    fn take_over(&self, page: PageId) -> Option<Lsn> {
        let taken = self.part(page).lock().invalidate(page, false, true)?;
        self.counters.taken_over.fetch_add(1, Ordering::Relaxed);
        taken
    }

    fn risen(&self, page: PageId, rec: Lsn) {
        self.part(page).lock().risen(page, rec);
        self.progress.notify_waiters();
    }

    fn write_back(&self, pages: Vec<WriteBack>, reason: Reason) -> HomeFuture<'_, Result<()>> {
        if self.is_out() {
            return self.disk.write_back(pages, reason);
        }
        self.write_pages(pages, reason)
    }

    fn evicted_clean(&self, page: PageId, bytes: &[u8], access: Access) {
        if page.space == DATA && self.is_on() {
            self.offer_clean(page, bytes, access, Moment::Evicted);
        }
    }

    fn forget(&self, space: SpaceId, first: u32, count: u32) {
        if space == DATA {
            // Dirty frames stay until they are home: a crash may bring the pages back, and the log does not repeat
            // changes that count as home.
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
        let rising = self.safeguards.has(Safeguard::Rising);
        let dirty = self.safeguards.has(Safeguard::DirtyFrames);
        let oldest = |p: &Partition| if rising { p.oldest_rec() } else { p.oldest_dirty() };
        let here = self.partitions.iter().filter_map(|p| oldest(&p.lock())).min().filter(|_| dirty);
        here.into_iter().chain(self.disk.oldest_rec_lsn()).min() // In this order: pages move down (invariant 3).
    }

    fn oldest_redo(&self) -> Option<Lsn> {
        match self.has_two_floors() {
            true => self.oldest_unhard().into_iter().chain(self.disk.oldest_redo()).min(),
            false => self.oldest_rec_lsn(),
        }
    }

    fn destage(&self, before: Lsn) -> HomeFuture<'_, Result<()>> {
        Box::pin(self.bring_home(before))
    }

    fn sync(&self) -> HomeFuture<'_, Result<()>> {
        self.disk.sync()
    }

    fn failure(&self) -> Option<StorageError> {
        self.failed()
    }
}
