//! The write-ahead log. Format: ARCHITECTURE section 4. Group commit after DeWitt et al. 1984; page index and
//! prevPageLSN after Graefe & Kuno's single-page repair.
//!
//! One file for each actor: `reserve` (transactions that need space), `tail` (appending), `wait` (transactions that
//! wait for durability), `writer` (the thread that writes and syncs), `space` (slots, and the task that frees and makes
//! them), `archive`.
//!
//! Invariants:
//! 1. `append` never waits: memory and segments for it were granted by `reserve` (`LogPermit`), before any latch (R3).
//! 2. `durable` moves only after a sync that began when everything below it was written. Batches become durable in
//!    order.
//! 3. A failed write or sync, or a background task's panic, poisons the log: nothing is tried again, nothing after it
//!    is ever acknowledged.
//! 4. Before a batch is appended its pages are dirty with a recLSN <= its start. So a checkpoint that reads `end`
//!    *before* it looks at dirty pages never records a redo LSN above an unwritten change.
//!
//! A torn rewrite of the last sector loses nothing. The writer repeats the bytes that were there, so any mix of the old
//! and the new sector holds them. Bytes that may be missing were not acknowledged yet.

pub mod archive;
pub mod batch;
mod excerpt;
mod gather;
mod harden;
pub mod history;
pub(crate) mod index;
pub mod inspect;
mod lookup;
pub mod reader;
mod reserve;
mod segment;
mod space;
mod spare;
mod status;
mod tail;
mod wait;
mod writer;

#[cfg(test)]
mod stress;
#[cfg(test)]
pub(crate) mod tests;

use crate::config::{Safeguards, StorageConfig};
use crate::error::{Result, StorageError};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::types::*;
pub use batch::{Block, EVENT};
pub use reserve::{LogPermit, LogUse};
use rustc_hash::FxHashMap;
use segment::Geometry;
use space::Slots;
pub use status::{ArchiveStatus, LogStatus};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock, Weak};
use tail::Tail;
use terrace_device::{DeviceRef, IoBuf, Purpose, SECTOR};
use terrace_env::Env;
pub use wait::CountedWaiter;

/// The log; cheap to clone.
#[derive(Clone)]
pub struct Log {
    core: Arc<Core>,
}

pub(crate) struct Core {
    pub(crate) env: Env,
    pub(crate) device: DeviceRef,
    pub(crate) database: u128,
    pub(crate) geometry: Geometry,
    safeguards: Safeguards,
    buffer: usize,
    redo_bound: u64,
    /// Bytes of log behind the retain LSN at which normal work stops.
    retain_bound: u64,
    tail: Mutex<Tail>,
    /// LSN of the end of what is appended (`u64::MAX` while recovery reads).
    end: AtomicU64,
    reserving: reserve::Reservations,
    wait: wait::Durability,
    archiving: archive::Archiving,
    life: Life,
    /// Offsets at which the device could not be read.
    unreadable: Mutex<BTreeSet<u64>>,
    /// Sealed segments whose seal was read, by number.
    known: Mutex<FxHashMap<u64, Arc<lookup::Known>>>,
    spares: Arc<spare::Spares>,
}

/// Whether the log works, and why not.
#[derive(Default)]
struct Life {
    failed: OnceLock<StorageError>,
    /// What else must stop if a task has panicked.
    on_panic: Mutex<Vec<OnPanic>>,
    closing: AtomicBool,
}

type OnPanic = Arc<dyn Fn(&StorageError) + Send + Sync>;

impl Log {
    /// The log on a device, before recovery. It can only be read. `max_bytes`: the most that the device may hold.
    pub(crate) fn unopened(env: Env, device: DeviceRef, database: u128, config: &StorageConfig) -> Log {
        let geometry = Geometry { segment_size: config.segment_size };
        let wanted =
            config.log_retention.max(config.redo_bound.saturating_mul(2)).saturating_add(8 * config.segment_size);
        let max = wanted.min(device.guarantees().capacity);
        let room = max.saturating_sub(8 * config.segment_size);
        let retain_bound = config.log_retention.min(room).max(config.redo_bound);
        let mut slots = Slots::new(geometry, geometry.slots(device.size()), config.log_retention.min(max), max);
        if config.archive.is_some() {
            slots.archived = 0; // Segments stored in an earlier life are offered again.
        }
        Log {
            core: Arc::new(Core {
                env,
                device,
                database,
                geometry,
                safeguards: config.safeguards,
                buffer: config.log_buffer,
                redo_bound: config.redo_bound,
                retain_bound,
                tail: Mutex::new(Tail::unopened(slots)),
                end: AtomicU64::new(u64::MAX),
                reserving: reserve::Reservations::default(),
                wait: wait::Durability::default(),
                archiving: archive::Archiving::new(config.archive.clone()),
                life: Life::default(),
                unreadable: Mutex::default(),
                known: Mutex::default(),
                spares: spare::Spares::new(geometry.segment_size),
            }),
        }
    }

    /// Makes an empty log on a device: headers of an earlier database are voided, slots for the first segments and the
    /// reserve allocated, so that a full device shows now.
    pub(crate) async fn format(&self) -> Result<()> {
        let core = &self.core;
        let slots = core.geometry.slots(core.device.size());
        for slot in 0..slots {
            let blank = IoBuf::zeroed(SECTOR);
            core.device.write(core.geometry.slot_at(slot), blank, Purpose::Log).await?;
        }
        core.only_whole_slots();
        core.grow().await?;
        core.device.sync(Purpose::Log).await?;
        Ok(())
    }

    /// On a formatted log: a segment without batches in which the stream stands at `end`.
    pub(crate) async fn begin_empty(&self, epoch: u64, end: Lsn) -> Result<()> {
        let core = &self.core;
        let number = core.segment_of(end);
        let prev_end = core.geometry.lsn(number, 0);
        let mut block = IoBuf::zeroed(SECTOR);
        segment::SegmentHeader { database: core.database, number, epoch, prev_end }.encode(core.geometry, &mut block);
        core.device.write(core.geometry.slot_at(0), block, Purpose::Log).await?;
        core.device.sync(Purpose::Log).await?;
        Ok(())
    }

    /// Recovery stopped at `end`: the stream does not go on after it.
    pub(crate) fn cut(&self, end: Lsn) {
        let last = self.segment_of(end);
        self.core.tail.lock().slots.cut(last);
        self.core.known.lock().retain(|number, _| *number < last);
    }

    /// Redo reads whole segments from now on: what indexes were read into is given back.
    pub(crate) fn begin_redo(&self) {
        self.core.spares.keep_only(self.core.geometry.segment_size as usize);
    }

    /// Redo has read all of the log that it needs: what it was read into is given back.
    pub(crate) fn end_redo(&self) {
        self.core.spares.end();
    }

    /// Opens the stream of a new epoch behind `end`, in a segment of its own, and starts the log's tasks.
    pub(crate) async fn start(&self, epoch: u64, end: Lsn) -> Result<()> {
        let core = &self.core;
        core.spares.end();
        core.grow().await?;
        core.archive_for_space().await?;
        {
            let mut tail = core.tail.lock();
            assert!(!tail.started, "the log is started once");
            tail.slots.recycle();
            if !tail.slots.covers(1, true) {
                drop(tail);
                return Err(core.full());
            }
            tail.started = true;
            tail.epoch = epoch;
            tail.seed = batch::seed(core.database, epoch);
            let number = if end == Lsn(0) { 0 } else { core.segment_of(end) + 1 };
            tail.open(number, end);
            tail.found.clear();
            core.end.store(end.0, Ordering::Release);
            core.wait.durable.store(end.0, Ordering::Release);
        }
        self.spawn_thread("log-writer", writer::run(core.clone()));
        self.spawn("log space", space::run(core.clone()));
        if core.archiving.store.is_some() {
            self.spawn("log archive", archive::run(core.clone()));
        }
        Ok(())
    }

    /// End of what has been appended. While recovery reads the log: beyond everything.
    pub fn end(&self) -> Lsn {
        Lsn(self.core.end.load(Ordering::Acquire))
    }

    /// The recorded redo LSN.
    pub fn redo_lsn(&self) -> Lsn {
        self.core.tail.lock().slots.redo
    }

    /// The recorded retain LSN.
    pub fn retain_lsn(&self) -> Lsn {
        self.core.tail.lock().slots.retain
    }

    /// Bytes of log that may lie behind the retain LSN.
    pub(crate) fn retain_bound(&self) -> u64 {
        self.core.retain_bound
    }

    pub(crate) fn env(&self) -> &Env {
        &self.core.env
    }

    pub(crate) fn weak(&self) -> Weak<Core> {
        Arc::downgrade(&self.core)
    }

    /// Calls `stop` where a background task has panicked (`tasks`).
    pub(crate) fn on_panic(&self, stop: impl Fn(&StorageError) + Send + Sync + 'static) {
        self.core.life.on_panic.lock().push(Arc::new(stop));
    }

    /// Why the log stopped, if it did.
    pub fn failure(&self) -> Option<StorageError> {
        self.core.check().err()
    }

    /// Something else has failed, and the log's users must not go on without it.
    pub(crate) fn fail(&self, why: &StorageError) {
        self.core.poison(why.to_string());
    }

    /// Writes out what was appended and stops the tasks. Reservations fail from now on.
    pub(crate) async fn shut_down(&self) -> Result<()> {
        loop {
            let end = self.end();
            let flushed = self.flush_to(end).await;
            // The flash tier may have logged a frame meanwhile.
            if flushed.is_err() || self.end() == end {
                self.stop();
                return flushed;
            }
        }
    }

    /// It takes nothing more.
    pub(crate) fn is_closing(&self) -> bool {
        self.core.is_closing()
    }

    /// Stops the tasks where they stand.
    pub(crate) fn stop(&self) {
        let core = &self.core;
        core.life.closing.store(true, Ordering::Release);
        core.wait.wake_writer.notify_one();
        core.reserving.wake_space.notify_one();
        core.archiving.wake.notify_one();
        core.stop_reservations();
    }
}

impl Core {
    pub(crate) fn check(&self) -> Result<()> {
        match self.life.failed.get() {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        }
    }

    fn is_closing(&self) -> bool {
        self.life.closing.load(Ordering::Acquire)
    }

    /// Invariant 3. Everybody who waits learns it.
    fn poison(&self, why: String) {
        tracing::error!(%why, "the log failed");
        self.close(StorageError::LogFailed(why));
    }

    /// A background task has panicked: everything that uses the log stops.
    pub(crate) fn stop_all(&self, why: StorageError) {
        tracing::error!("{why}");
        self.close(why.clone());
        let others = self.life.on_panic.lock().clone();
        others.iter().for_each(|stop| stop(&why));
    }

    fn close(&self, why: StorageError) {
        let _ = self.life.failed.set(why); // The first reason stays.
        self.close_waiters();
        self.stop_reservations();
    }

    /// Unwritten bytes at which the writer starts without being asked.
    fn eager(&self) -> usize {
        (self.buffer / 4).min(1 << 20)
    }
}
