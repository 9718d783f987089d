//! The write-ahead log. Format: ARCHITECTURE section 4. Group commit after DeWitt et al. 1984; page index and prevPageLSN after
//! Graefe & Kuno's single-page repair.
//!
//! Invariants:
//! 1. `append` never waits: memory and segments for it were granted by `reserve` (`LogPermit`), before any latch (R3).
//! 2. `durable` moves only after a sync that began when everything below it was written. Batches become durable in order.
//! 3. A failed write or sync, or a background task's panic, poisons the log: nothing is tried again, nothing after it
//!    is ever acknowledged.
//! 4. Before a batch is appended its pages are dirty with a recLSN <= its start. So a checkpoint that reads `end` *before* it looks
//!    at dirty pages never records a redo LSN above an unwritten change.
//!
//! A torn rewrite of the last sector loses nothing: the writer repeats the bytes that were there, so whatever mix of old and new
//! sector arrives holds them, and what may be missing was not acknowledged yet.

pub mod archive;
pub mod batch;
mod gather;
mod harden;
pub mod history;
pub mod inspect;
pub mod reader;
mod segment;
mod space;
mod status;
mod writer;

#[cfg(test)]
mod stress;
#[cfg(test)]
pub(crate) mod tests;

use crate::config::{Safeguard, Safeguards, StorageConfig};
use crate::error::{Result, StorageError};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::types::*;
pub use batch::{Block, EVENT};
use rustc_hash::FxHashMap;
use segment::{FIRST, Geometry};
use space::Slots;
pub use status::{ArchiveStatus, LogStatus};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use terrace_device::DeviceRef;
use terrace_env::Env;
use tokio::sync::{Notify, oneshot};

/// The longest delay of one reservation short of the redo bound.
const MAX_DELAY: Duration = Duration::from_millis(20);

/// Who asks for log room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Work that can be refused: delayed near the redo bound, stopped at it, refused when the log device is full.
    Normal,
    /// Work that frees what normal work fills (rollback, purge): may use the reserve, waits where even that is gone.
    Reserved,
}

/// The log; cheap to clone.
#[derive(Clone)]
pub struct Log {
    core: Arc<Core>,
}

/// Log room reserved before latching (R3). Unused room returns when it is dropped.
pub struct LogPermit {
    core: Arc<Core>,
    bytes: usize,
}

pub(crate) struct Core {
    pub(crate) env: Env,
    pub(crate) device: DeviceRef,
    pub(crate) database: u128,
    pub(crate) geometry: Geometry,
    commit_sync: bool,
    safeguards: Safeguards,
    buffer: usize,
    redo_bound: u64,
    tail: Mutex<Tail>,
    waiters: Mutex<Waiters>,
    /// While the writer lets commits gather: how many it waits for. Else 0.
    gathering: AtomicUsize,
    /// Transactions that cannot commit before others do.
    held_up: AtomicUsize,
    /// LSNs: end of what is appended; up to where it is durable (`u64::MAX` while recovery reads).
    end: AtomicU64,
    durable: AtomicU64,
    /// Wakes the writer; the space task; who waits for room; the background writer of the store.
    wake_writer: Notify,
    wake_space: Notify,
    wake_archive: Notify,
    room: Notify,
    room_waiters: AtomicUsize,
    /// Of these, who waits for dirty pages to go home (and not for the writer).
    starving: AtomicUsize,
    pressure: Notify,
    /// Background-writer rounds that wrote everything home, and whether anyone makes them.
    rounds: AtomicU64,
    checkpointed: AtomicBool,
    failed: OnceLock<StorageError>,
    /// What else must stop where a task has panicked.
    on_panic: Mutex<Vec<OnPanic>>,
    closing: AtomicBool,
    archive: Option<archive::Archive>,
    /// Its last attempt to store a segment failed.
    archive_refuses: AtomicBool,
    archive_failed: Mutex<archive::Failures>,
    /// Where the device could not be read, by offset.
    unreadable: Mutex<BTreeSet<u64>>,
}

type OnPanic = Arc<dyn Fn(&StorageError) + Send + Sync>;

/// Everything that `append` touches.
struct Tail {
    started: bool,
    epoch: u64,
    seed: u32,
    /// The open segment: number, slot, offset of the next batch.
    number: u64,
    slot: u32,
    offset: u64,
    /// Appended to the open segment since the writer took the last bytes; `bytes[0]` lies at `bytes_at`.
    bytes: Vec<u8>,
    bytes_at: u64,
    /// Where the stream before the open segment ended; set until the writer has taken its header.
    header: Option<Lsn>,
    /// The same, kept.
    prev_end: Lsn,
    index: FxHashMap<PageId, Lsn>,
    sealed: VecDeque<Piece>,
    slots: Slots,
    /// Bytes of granted permits, and of batches not yet durable.
    permits: usize,
    unwritten: usize,
    /// Somebody waits for durability up to here.
    requested: u64,
    spare: Vec<u8>,
    /// Segments that `scan` saw on the device, whether or not they belong to the stream.
    found: BTreeMap<u64, (u32, segment::SegmentHeader)>,
}

/// Part of a segment on its way to the device.
struct Piece {
    number: u64,
    slot: u32,
    /// Write the header block first, with this as the end of the stream before.
    header: Option<Lsn>,
    at: u64,
    bytes: Vec<u8>,
    seal: Option<segment::Seal>,
    epoch: u64,
}

#[derive(Default)]
struct Waiters {
    /// The writer has stopped: nobody would wake them.
    closed: bool,
    next: u64,
    by_lsn: BTreeMap<(u64, u64), Waiter>,
    /// Those that are commits.
    commits: usize,
}

struct Waiter {
    durable: oneshot::Sender<()>,
    commit: bool,
}

/// Counts somebody for as long as it lives.
pub struct Counted<'a>(&'a AtomicUsize);

impl Counted<'_> {
    fn among(waiters: &AtomicUsize) -> Counted<'_> {
        waiters.fetch_add(1, Ordering::SeqCst);
        Counted(waiters)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

enum Room {
    Granted(Duration),
    Memory,
    RedoBound,
    Slots,
}

impl Log {
    /// Waits for room for a batch of at most `bytes` bytes ([`batch::encoded_len`]). Near the redo bound normal work is delayed,
    /// the more the nearer; where the device has no room that a checkpoint could free it gets `LogFull`.
    pub async fn reserve(&self, bytes: usize, class: Class) -> Result<LogPermit> {
        let core = &self.core;
        let limit = core.geometry.max_batch().min(core.buffer / 2);
        assert!(bytes <= limit, "a mini-transaction of {bytes} bytes; the log takes {limit}");
        let mut seen = None;
        let mut delayed = false;
        loop {
            core.check()?;
            if core.closing.load(Ordering::Acquire) {
                return Err(StorageError::ShuttingDown);
            }
            let room = core.try_reserve(bytes, class);
            if let Room::Granted(delay) = room {
                if delay.is_zero() || delayed {
                    return Ok(LogPermit { core: core.clone(), bytes });
                }
                // Give it back for the time of the delay: others with a smaller debt may go first.
                drop(LogPermit { core: core.clone(), bytes });
                delayed = true;
                core.pressure.notify_one();
                core.env.sleep(delay).await;
                continue;
            }
            let _counted = Counted::among(&core.room_waiters);
            self.wait_for_room(bytes, class, &mut seen).await?;
        }
    }

    async fn wait_for_room(&self, bytes: usize, class: Class, seen: &mut Option<u64>) -> Result<()> {
        let core = &self.core;
        let mut woken = std::pin::pin!(core.room.notified());
        woken.as_mut().enable();
        // Asked again after registering, so that a wake-up in between is not lost.
        let room = core.try_reserve(bytes, class);
        let _starving = matches!(room, Room::RedoBound | Room::Slots).then(|| Counted::among(&core.starving));
        match room {
            Room::Granted(_) => {
                drop(LogPermit { core: core.clone(), bytes });
                return Ok(());
            }
            Room::Memory => core.wake_writer.notify_one(),
            Room::RedoBound => core.pressure.notify_one(),
            Room::Slots => {
                let (can_grow, unarchived) = {
                    let slots = &core.tail.lock().slots;
                    (slots.growth().is_some(), slots.unarchived().is_some())
                };
                let round = core.rounds.load(Ordering::Acquire);
                // An archive that works is waited for. Two whole rounds: the first may have begun before the room ran out.
                let tried = match unarchived {
                    true => core.archive_refuses.load(Ordering::Acquire),
                    false => !core.checkpointed.load(Ordering::Acquire) || seen.is_some_and(|s| round >= s + 2),
                };
                if class == Class::Normal && !can_grow && tried {
                    return Err(core.full());
                }
                // Where only the archive can help, asking others would be a loop without rest: it wakes who waits.
                if can_grow || !unarchived {
                    seen.get_or_insert(round);
                    core.wake_space.notify_one();
                    core.pressure.notify_one();
                }
            }
        }
        core.check()?; // A failure notifies after it is noted; noted before `enable` it is seen here.
        woken.await;
        Ok(())
    }

    /// Appends a batch under one short mutex and returns its start and end LSN. Called under latches: never waits. The caller has
    /// marked the pages dirty with a recLSN <= `end()` read before (invariant 4). On a poisoned log the batch gets its LSNs and goes
    /// nowhere: `flush_to` tells.
    pub fn append<'a>(&self, mut permit: LogPermit, blocks: impl Iterator<Item = Block<'a>> + Clone) -> (Lsn, Lsn) {
        let core = &*self.core;
        let length = batch::encoded_len(blocks.clone());
        assert!(length <= permit.bytes, "a batch of {length} bytes with a permit for {}", permit.bytes);
        let mut tail = core.tail.lock();
        assert!(tail.started, "the log takes batches once recovery has opened it");
        let pages = tail.index.len() + blocks.clone().count();
        if !core.geometry.fits(tail.offset + length as u64, pages) {
            tail.seal(core.geometry);
        }
        let start = core.geometry.lsn(tail.number, tail.offset);
        let end = Lsn(start.0 + length as u64);
        let (seed, tail) = (tail.seed, &mut *tail);
        batch::encode(&mut tail.bytes, seed, start, blocks.clone());
        for block in blocks.filter(|b| b.page != EVENT) {
            tail.index.insert(block.page, end);
        }
        tail.offset += length as u64;
        debug_assert_eq!(tail.bytes_at + tail.bytes.len() as u64, tail.offset);
        tail.unwritten += length;
        core.end.store(end.0, Ordering::Release);
        let full = tail.unwritten >= core.eager() || core.room_waiters.load(Ordering::SeqCst) > 0;
        tail.permits -= permit.bytes;
        permit.bytes = 0;
        if full {
            core.wake_writer.notify_one();
        }
        (start, end)
    }

    /// Waits until the log is durable up to `lsn`. A failed sync poisons the log for good.
    pub async fn flush_to(&self, lsn: Lsn) -> Result<()> {
        self.wait_for(lsn, false).await
    }

    /// The same for a commit, which may be held up a little so that others share its sync (`gather`).
    pub async fn commit_to(&self, lsn: Lsn) -> Result<()> {
        self.wait_for(lsn, true).await
    }

    /// Counts somebody who waits for a lock, of whom no commit comes meanwhile: whoever holds the lock may be among the commits that gather,
    /// and they would wait for each other.
    pub fn held_up(&self) -> Counted<'_> {
        let core = &self.core;
        let counted = Counted::among(&core.held_up);
        if core.gathering.load(Ordering::SeqCst) > 0 {
            core.wake_writer.notify_one();
        }
        counted
    }

    async fn wait_for(&self, lsn: Lsn, commit: bool) -> Result<()> {
        let core = &self.core;
        if core.durable.load(Ordering::Acquire) >= lsn.0 {
            return core.check();
        }
        assert!(lsn <= self.end(), "flush to {lsn}, beyond the log's end {}", self.end());
        let done = {
            let mut waiters = core.waiters.lock();
            if core.durable.load(Ordering::Acquire) >= lsn.0 {
                return core.check();
            }
            core.check()?;
            if waiters.closed {
                return Err(StorageError::ShuttingDown);
            }
            let (durable, receive) = oneshot::channel();
            let key = (lsn.0, waiters.next);
            waiters.next += 1;
            waiters.by_lsn.insert(key, Waiter { durable, commit });
            waiters.commits += usize::from(commit);
            (receive, core.has_come(waiters.commits, core.gathering.load(Ordering::SeqCst)))
        };
        let (done, enough) = done;
        {
            let mut tail = core.tail.lock();
            tail.requested = tail.requested.max(lsn.0);
        }
        if enough || !commit {
            core.wake_writer.notify_one();
        }
        match done.await {
            Ok(()) => Ok(()),
            Err(_) => Err(core.check().err().unwrap_or(StorageError::ShuttingDown)),
        }
    }

    /// Up to where the log is durable.
    pub fn durable(&self) -> Lsn {
        Lsn(self.core.durable.load(Ordering::Acquire))
    }

    /// End of what has been appended. While recovery reads the log: beyond everything.
    pub fn end(&self) -> Lsn {
        Lsn(self.core.end.load(Ordering::Acquire))
    }

    /// The recorded redo LSN.
    pub fn redo_lsn(&self) -> Lsn {
        self.core.tail.lock().slots.redo
    }

    pub(crate) fn env(&self) -> &Env {
        &self.core.env
    }

    pub(crate) fn weak(&self) -> Weak<Core> {
        Arc::downgrade(&self.core)
    }

    /// Calls `stop` where a background task has panicked (`tasks`).
    pub(crate) fn on_panic(&self, stop: impl Fn(&StorageError) + Send + Sync + 'static) {
        self.core.on_panic.lock().push(Arc::new(stop));
    }

    /// Why the log stopped, if it did.
    pub fn failure(&self) -> Option<StorageError> {
        self.core.check().err()
    }

    /// The control file records these by now: older segments may be used again.
    pub(crate) fn recorded(&self, redo: Lsn, retain: Lsn) {
        let mut tail = self.core.tail.lock();
        assert!(redo >= tail.slots.redo, "the redo LSN goes back from {} to {redo}", tail.slots.redo);
        tail.slots.redo = redo;
        tail.slots.retain = retain;
        tail.slots.recycle();
        drop(tail);
        self.core.more_room();
    }

    /// Keeps segments from `number` on for a backup, or (`None`) no longer. False where another backup holds some.
    pub(crate) fn hold(&self, number: Option<u64>) -> bool {
        let capacity = self.core.device.guarantees().capacity;
        let mut tail = self.core.tail.lock();
        let held = tail.slots.hold(number, capacity);
        tail.slots.recycle();
        drop(tail);
        self.core.more_room();
        held
    }

    /// Recovery stopped at `end`: the stream does not go on behind it.
    pub(crate) fn cut(&self, end: Lsn) {
        self.core.tail.lock().slots.cut(self.segment_of(end));
    }

    /// On a formatted log: a segment without batches in which the stream stands at `end`.
    pub(crate) async fn begin_empty(&self, epoch: u64, end: Lsn) -> Result<()> {
        let core = &self.core;
        let number = core.segment_of(end);
        let prev_end = core.geometry.lsn(number, 0);
        let mut block = terrace_device::IoBuf::zeroed(terrace_device::SECTOR);
        segment::SegmentHeader { database: core.database, number, epoch, prev_end }.encode(core.geometry, &mut block);
        core.device.write(core.geometry.slot_at(0), block, terrace_device::Purpose::Log).await?;
        core.device.sync(terrace_device::Purpose::Log).await?;
        Ok(())
    }

    /// The background writer has written everything home that was dirty when the round began.
    pub(crate) fn round_done(&self) {
        self.core.rounds.fetch_add(1, Ordering::AcqRel);
        self.core.more_room();
    }

    /// Waits until somebody is held up by the redo bound or a full device.
    pub(crate) async fn pressure(&self) {
        self.core.pressure.notified().await;
    }

    /// Whether somebody waits for dirty pages to go home.
    pub(crate) fn starved(&self) -> bool {
        self.core.starving.load(Ordering::Acquire) > 0
    }

    /// There is a background writer from now on: a full device is worth waiting for.
    pub(crate) fn attach(&self) {
        self.core.checkpointed.store(true, Ordering::Release);
    }

    /// Asks the background writer for a round now.
    pub(crate) fn press(&self) {
        self.core.pressure.notify_one();
    }

    /// Something else failed that the log's users must not go on without.
    pub(crate) fn fail(&self, why: &StorageError) {
        self.core.poison(why.to_string());
    }

    /// Whether there is room to open a segment, a reserve for cleaning up included.
    pub(crate) async fn can_start(&self) -> Result<bool> {
        self.core.only_whole_slots();
        self.core.grow().await?;
        let mut tail = self.core.tail.lock();
        tail.slots.recycle();
        Ok(tail.slots.free() > space::RESERVE)
    }

    /// Opens the stream of a new epoch behind `end`, in a segment of its own, and starts the log's tasks.
    pub(crate) async fn start(&self, epoch: u64, end: Lsn) -> Result<()> {
        let core = &self.core;
        core.grow().await?;
        core.archive_for_room().await?;
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
            core.durable.store(end.0, Ordering::Release);
        }
        self.spawn_thread("log-writer", writer::run(core.clone()));
        self.spawn("log space", space_task(core.clone()));
        if core.archive.is_some() {
            self.spawn("log archive", archive::run(core.clone()));
        }
        Ok(())
    }

    /// Writes out what was appended and stops the tasks. Reservations fail from now on.
    pub(crate) async fn shut_down(&self) -> Result<()> {
        let flushed = self.flush_to(self.end()).await;
        self.stop();
        flushed
    }

    /// Stops the tasks where they stand.
    pub(crate) fn stop(&self) {
        self.core.closing.store(true, Ordering::Release);
        self.core.wake_writer.notify_one();
        self.core.wake_space.notify_one();
        self.core.wake_archive.notify_one();
        self.core.pressure.notify_one();
        self.core.room.notify_waiters();
    }
}

impl Core {
    pub(crate) fn check(&self) -> Result<()> {
        match self.failed.get() {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        }
    }

    /// Invariant 3. Everybody who waits learns it.
    fn poison(&self, why: String) {
        tracing::error!(%why, "the log failed");
        self.close(StorageError::LogFailed(why));
    }

    /// A background task has panicked: all that has to do with the log stops.
    pub(crate) fn stop_all(&self, why: StorageError) {
        tracing::error!("{why}");
        self.close(why.clone());
        let others = self.on_panic.lock().clone();
        others.iter().for_each(|stop| stop(&why));
    }

    fn close(&self, why: StorageError) {
        let _ = self.failed.set(why); // The first reason stays.
        self.close_waiters(); // Dropped senders wake their receivers.
        self.room.notify_waiters();
        self.pressure.notify_one();
    }

    fn close_waiters(&self) {
        let mut waiters = self.waiters.lock();
        waiters.closed = true;
        let dropped = std::mem::take(&mut waiters.by_lsn);
        waiters.commits = 0;
        drop(waiters);
        drop(dropped);
    }

    /// Unwritten bytes at which the writer starts without being asked.
    fn eager(&self) -> usize {
        (self.buffer / 4).min(1 << 20)
    }

    /// Grants (noting the bytes as given out) or says what is missing.
    fn try_reserve(&self, bytes: usize, class: Class) -> Room {
        let mut tail = self.tail.lock();
        let held = tail.permits + tail.unwritten;
        if held + bytes > self.buffer {
            return Room::Memory;
        }
        let all = tail.permits + bytes;
        if !tail.slots.covers(all, class == Class::Reserved) {
            tail.slots.demand(all);
            tail.slots.recycle();
            if !tail.slots.covers(all, class == Class::Reserved) {
                return Room::Slots;
            }
        }
        let mut delay = Duration::ZERO;
        if class == Class::Normal {
            let debt = self.end.load(Ordering::Acquire).saturating_sub(tail.slots.redo.0);
            let soft = self.redo_bound / 4 * 3;
            if debt >= self.redo_bound {
                return Room::RedoBound;
            }
            if debt > soft {
                let x = (debt - soft) as f64 / (self.redo_bound - soft) as f64;
                delay = MAX_DELAY.mul_f64(x * x);
            }
        }
        tail.permits += bytes;
        Room::Granted(delay)
    }

    /// Why there is no room, and what helps.
    fn full(&self) -> StorageError {
        let (name, size) = (self.device.name(), self.device.size());
        StorageError::LogFull(match self.tail.lock().slots.unarchived() {
            Some(number) => format!(
                "{name} holds {size} bytes of log that the archive has not got, from segment {number} on; see to the archive \
                 (the server's log says what it lacks), or give the log more room"
            ),
            None => format!("{name} holds {size} bytes of log that is still needed; give it more room"),
        })
    }

    fn more_room(&self) {
        self.wake_space.notify_one();
        if self.room_waiters.load(Ordering::SeqCst) > 0 {
            self.room.notify_waiters();
        }
    }

    /// Before the first segment is opened, and after those that exist were found.
    fn only_whole_slots(&self) {
        let whole = self.geometry.slots_within(self.device.size().min(self.device.guarantees().capacity));
        self.tail.lock().slots.only_whole(whole);
    }

    /// Grows the device until enough slots are free or it refuses. Whether that changed anything.
    async fn grow(&self) -> Result<bool> {
        let mut changed = false;
        loop {
            let Some(slot) = self.tail.lock().slots.growth() else { return Ok(changed) };
            changed = true;
            match self.device.allocate(self.geometry.slot_at(slot), self.geometry.segment_size).await {
                Ok(()) => self.tail.lock().slots.grown(),
                Err(e) if e.kind == terrace_device::ErrorKind::NoSpace => {
                    tracing::warn!(device = self.device.name(), "the log cannot grow: {e}");
                    let mut tail = self.tail.lock();
                    tail.slots.full = true;
                    tail.slots.recycle();
                }
                Err(e) => return Err(e.into()),
            }
        }
    }
}

/// Keeps free slots ahead of the writers.
async fn space_task(core: Arc<Core>) {
    loop {
        core.wake_space.notified().await;
        if core.closing.load(Ordering::Acquire) || core.check().is_err() {
            return;
        }
        // Waiters ask for this: waking them where nothing has changed would be a loop without rest.
        let mut changed = core.tail.lock().slots.recycle();
        match core.grow().await {
            Ok(grown) => changed |= grown,
            Err(e) => {
                core.poison(format!("{e}"));
                return;
            }
        }
        if changed && core.room_waiters.load(Ordering::SeqCst) > 0 {
            core.room.notify_waiters();
        }
    }
}

impl Tail {
    /// Begins segment `number` behind a stream that ended at `end`.
    fn open(&mut self, number: u64, end: Lsn) {
        self.number = number;
        self.slot = self.slots.open(number);
        self.offset = FIRST;
        self.bytes_at = FIRST;
        self.header = Some(end);
        self.prev_end = end;
    }

    /// Seals the open segment and opens the next.
    fn seal(&mut self, geometry: Geometry) {
        let end = geometry.lsn(self.number, self.offset);
        let mut pages: Vec<_> = self.index.drain().collect();
        pages.sort_unstable_by_key(|(page, _)| page.to_u64());
        let seal = segment::Seal { number: self.number, epoch: self.epoch, end, pages };
        let piece = self.take(Some(seal));
        self.sealed.push_back(piece);
        self.open(self.number + 1, end);
    }

    /// What was appended to the open segment since the last call.
    fn take(&mut self, seal: Option<segment::Seal>) -> Piece {
        let bytes = std::mem::replace(&mut self.bytes, std::mem::take(&mut self.spare));
        let at = std::mem::replace(&mut self.bytes_at, self.offset);
        assert_eq!(at + bytes.len() as u64, self.offset, "the log's tail has a hole");
        Piece { number: self.number, slot: self.slot, header: self.header.take(), at, bytes, seal, epoch: self.epoch }
    }
}

impl LogPermit {
    /// Bytes that a batch may take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for LogPermit {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.core.tail.lock().permits -= self.bytes;
            if self.core.room_waiters.load(Ordering::SeqCst) > 0 {
                self.core.room.notify_waiters();
            }
        }
    }
}

impl Log {
    /// The log on a device, before recovery: reading it is possible, nothing else. `max_bytes` is what the device may hold.
    pub(crate) fn unopened(env: Env, device: DeviceRef, database: u128, config: &StorageConfig) -> Log {
        let geometry = Geometry { segment_size: config.segment_size };
        let wanted =
            config.log_retention.max(config.redo_bound.saturating_mul(2)).saturating_add(8 * config.segment_size);
        let max = wanted.min(device.guarantees().capacity);
        let mut slots = Slots::new(geometry, geometry.slots(device.size()), config.log_retention.min(max), max);
        if config.archive.is_some() {
            slots.archived = 0; // What it got in an earlier life is offered again.
        }
        let tail = Tail {
            started: false,
            epoch: 0,
            seed: 0,
            number: 0,
            slot: 0,
            offset: 0,
            bytes: Vec::new(),
            bytes_at: 0,
            header: None,
            prev_end: Lsn(0),
            index: FxHashMap::default(),
            sealed: VecDeque::new(),
            slots,
            permits: 0,
            unwritten: 0,
            requested: 0,
            spare: Vec::new(),
            found: BTreeMap::new(),
        };
        Log {
            core: Arc::new(Core {
                env,
                device,
                database,
                geometry,
                commit_sync: config.safeguards.has(Safeguard::CommitSync),
                safeguards: config.safeguards,
                buffer: config.log_buffer,
                redo_bound: config.redo_bound,
                tail: Mutex::new(tail),
                waiters: Mutex::default(),
                gathering: AtomicUsize::new(0),
                held_up: AtomicUsize::new(0),
                end: AtomicU64::new(u64::MAX),
                durable: AtomicU64::new(u64::MAX),
                wake_writer: Notify::new(),
                wake_space: Notify::new(),
                wake_archive: Notify::new(),
                room: Notify::new(),
                room_waiters: AtomicUsize::new(0),
                starving: AtomicUsize::new(0),
                pressure: Notify::new(),
                rounds: AtomicU64::new(0),
                checkpointed: AtomicBool::new(false),
                failed: OnceLock::new(),
                on_panic: Mutex::default(),
                closing: AtomicBool::new(false),
                archive: config.archive.clone(),
                archive_refuses: AtomicBool::new(false),
                archive_failed: Mutex::default(),
                unreadable: Mutex::default(),
            }),
        }
    }

    /// Makes an empty log on a device: headers of an earlier database are voided, slots for the first segments and the reserve
    /// allocated, so that a full device shows now.
    pub(crate) async fn format(&self) -> Result<()> {
        let core = &self.core;
        let slots = core.geometry.slots(core.device.size());
        for slot in 0..slots {
            let blank = terrace_device::IoBuf::zeroed(terrace_device::SECTOR);
            core.device.write(core.geometry.slot_at(slot), blank, terrace_device::Purpose::Log).await?;
        }
        core.only_whole_slots();
        core.grow().await?;
        core.device.sync(terrace_device::Purpose::Log).await?;
        Ok(())
    }
}
