//! Slots of the log device: which hold live segments, which are free, when one is used again, when the device grows;
//! and the task that keeps free slots ahead of the writers.
//!
//! Invariants:
//! 1. A slot is used again only when its segment ends at or below both `redo_lsn` (as recorded in the control file) and
//!    `retain_lsn`, and is archived where there is an archive, and no backup under way needs it.
//! 2. Free slots are allocated on the device: opening a segment in one cannot fail for want of space.
//! 3. Every granted permit can be appended without waiting. Permits cost double (a block's index entry is smaller than
//!    the block). Filling segments in order, a batch that does not fit opens the next, and two neighbours together hold
//!    more than one segment's worth (next-fit); so `k` free slots take a total cost of `(k + 1) / 2` segments, whatever
//!    the sizes.
//! 4. If the archive refuses segments, normal work stops, but an opening does not: for an opening, the device grows
//!    beyond its limit (`make_way`).
//! 5. The last `RESERVE` free slots serve only permits for [`super::LogUse::Cleanup`]: rollback, purge and checkpoint
//!    go on when user work cannot.

use super::segment::Geometry;
use super::{Core, Log};
use crate::error::Result;
use crate::types::Lsn;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Free slots that normal work leaves alone.
pub(crate) const RESERVE: usize = 2;

pub(crate) struct Slots {
    geometry: Geometry,
    /// Segment number -> slot.
    live: BTreeMap<u64, u32>,
    free: BTreeSet<u32>,
    /// Slots on the device.
    total: u32,
    /// Slots kept before old segments are used again.
    keep: u32,
    /// Slots that the device may ever have.
    max: u32,
    /// Where restart would begin.
    pub(crate) redo: Lsn,
    /// Where the part of the log begins that is kept beyond that.
    pub(crate) retain: Lsn,
    /// Segments below this number are archived (all, where there is no archive).
    pub(crate) archived: u64,
    /// Segments from this number on are kept for a backup.
    held: Option<u64>,
    /// Slots that the device may have while a backup holds the log.
    capacity: u32,
    /// The device refused to grow.
    pub(crate) full: bool,
    /// Free slots to keep ready: as many as all permits together have needed at most so far.
    wanted: usize,
}

impl Slots {
    /// `keep`: bytes of log to keep; `max`: bytes it may take.
    pub(crate) fn new(geometry: Geometry, total: u32, keep: u64, max: u64) -> Slots {
        let floor = RESERVE as u32 + 2;
        let max = geometry.slots_within(max);
        Slots {
            geometry,
            live: BTreeMap::new(),
            free: (0..total).collect(),
            total,
            // Never more than there can be: the device's header costs the last slot of a round capacity.
            keep: ((keep / geometry.segment_size) as u32).max(floor).min(max),
            max,
            redo: Lsn(0),
            retain: Lsn(0),
            archived: u64::MAX,
            held: None,
            capacity: max,
            full: false,
            wanted: RESERVE + 2,
        }
    }

    /// Gives up free slots that are not wholly on the device (invariant 2): the last one of a device cut while it grew,
    /// which growing allocates again, or of a device whose size is no multiple of a segment.
    pub(crate) fn only_whole(&mut self, whole: u32) {
        self.free.retain(|&slot| slot < whole);
        let used = self.live.values().max().map_or(0, |&slot| slot + 1);
        self.total = self.total.min(whole.max(used));
    }

    /// A slot found to hold a live segment.
    pub(crate) fn adopt(&mut self, number: u64, slot: u32) {
        assert!(self.free.remove(&slot), "slot {slot} holds two segments");
        let old = self.live.insert(number, slot);
        assert!(old.is_none(), "segment {number} lies in two slots");
    }

    pub(crate) fn slot(&self, number: u64) -> Option<u32> {
        self.live.get(&number).copied()
    }

    pub(crate) fn live(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.live.keys().copied()
    }

    /// Takes a free slot for the next segment.
    pub(crate) fn open(&mut self, number: u64) -> u32 {
        let slot = self.free.pop_first().expect("permits are granted only where free slots cover them (invariant 3)");
        let old = self.live.insert(number, slot);
        assert!(old.is_none(), "segment {number} opened twice");
        slot
    }

    /// Whether permits of `bytes` in total may be outstanding (invariants 3 and 5).
    pub(crate) fn covers(&self, bytes: usize, reserved: bool) -> bool {
        let free = if reserved { self.free.len() } else { self.free.len().saturating_sub(RESERVE) };
        free > 0 && 2 * bytes as u64 <= (free as u64).div_ceil(2) * self.geometry.usable()
    }

    /// Frees old segments while fewer than the wanted slots are free and no more of the device is to be used for it.
    /// Returns whether any became free.
    pub(crate) fn recycle(&mut self) -> bool {
        let mut any = false;
        while self.free.len() < self.wanted && (self.total >= self.keep || self.full) {
            let Some((&oldest, &slot)) = self.live.first_key_value() else { break };
            let end = self.geometry.lsn(oldest + 1, 0);
            if end > self.redo.min(self.retain) || oldest >= self.archived || self.held.is_some_and(|n| oldest >= n) {
                break;
            }
            self.live.remove(&oldest);
            self.free.insert(slot);
            any = true;
        }
        any
    }

    /// Permits of so many bytes were asked for at once.
    pub(crate) fn demand(&mut self, bytes: usize) {
        let segments = (2 * bytes as u64).div_ceil(self.geometry.usable());
        self.wanted = self.wanted.max(RESERVE + (2 * segments).max(2) as usize);
    }

    /// The slot to allocate next: old segments do not give enough, and there may be more.
    pub(crate) fn growth(&self) -> Option<u32> {
        let max = if self.held.is_some() { self.capacity } else { self.max };
        (self.free.len() < self.wanted && self.total < max && !self.full).then_some(self.total)
    }

    /// Slot `total` is allocated.
    pub(crate) fn grown(&mut self) {
        self.free.insert(self.total);
        self.total += 1;
    }

    pub(crate) fn max(&self) -> u32 {
        self.max
    }

    /// The oldest segment, if the archive alone holds it back.
    pub(crate) fn unarchived(&self) -> Option<u64> {
        let oldest = *self.live.first_key_value()?.0;
        let done = self.geometry.lsn(oldest + 1, 0) <= self.redo.min(self.retain);
        (done && oldest >= self.archived).then_some(oldest)
    }

    /// An opening needs a segment of its own, and rollback the reserve: where the archive holds all others, the device
    /// may grow by as many, if `capacity` bytes allow it (invariant 4).
    pub(crate) fn make_way(&mut self, capacity: u64) {
        let lacking = (RESERVE + 1).saturating_sub(self.free.len()) as u32;
        self.max = self.max.max((self.total + lacking).min(self.geometry.slots_within(capacity)));
    }

    /// Keeps segments from `number` on for a backup, or (`None`) no longer; the device may grow to `capacity` bytes
    /// meanwhile. False where another backup holds some.
    pub(crate) fn hold(&mut self, number: Option<u64>, capacity: u64) -> bool {
        if number.is_some() && self.held.is_some() {
            return false;
        }
        self.capacity = self.geometry.slots_within(capacity).max(self.max);
        self.held = number;
        true
    }

    /// Forgets segments behind `last`: recovery stopped in it.
    pub(crate) fn cut(&mut self, last: u64) {
        self.free.extend(self.live.split_off(&(last + 1)).into_values());
    }

    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }
}

impl Log {
    /// The control file records these by now: older segments may be used again.
    pub(crate) fn recorded(&self, redo: Lsn, retain: Lsn) {
        let mut tail = self.core.tail.lock();
        assert!(redo >= tail.slots.redo, "the redo LSN goes back from {} to {redo}", tail.slots.redo);
        tail.slots.redo = redo;
        tail.slots.retain = retain;
        tail.slots.recycle();
        drop(tail);
        self.core.more_space();
    }

    /// Keeps segments from `number` on for a backup, or (`None`) no longer. False where another backup holds some.
    pub(crate) fn hold(&self, number: Option<u64>) -> bool {
        let capacity = self.core.device.guarantees().capacity;
        let mut tail = self.core.tail.lock();
        let held = tail.slots.hold(number, capacity);
        tail.slots.recycle();
        drop(tail);
        self.core.more_space();
        held
    }

    /// Whether there is space to open a segment, a reserve for cleaning up included.
    pub(crate) async fn can_start(&self) -> Result<bool> {
        self.core.only_whole_slots();
        self.core.grow().await?;
        let mut tail = self.core.tail.lock();
        tail.slots.recycle();
        Ok(tail.slots.free() > RESERVE)
    }
}

impl Core {
    /// Before the first segment is opened, and after those that exist were found.
    pub(super) fn only_whole_slots(&self) {
        let whole = self.geometry.slots_within(self.device.size().min(self.device.guarantees().capacity));
        self.tail.lock().slots.only_whole(whole);
    }

    /// Grows the device until enough slots are free or it refuses. Whether that changed anything.
    pub(super) async fn grow(&self) -> Result<bool> {
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

/// The task: keeps free slots ahead of the writers. Ends with the log.
pub(super) async fn run(core: Arc<Core>) {
    loop {
        core.reserving.wake_space.notified().await;
        if core.is_closing() || core.check().is_err() {
            return;
        }
        // Waiting reservations asked for this. If nothing has changed, they must not be woken: they would ask again at
        // once, without end.
        let mut changed = core.tail.lock().slots.recycle();
        match core.grow().await {
            Ok(grown) => changed |= grown,
            Err(e) => {
                core.poison(format!("{e}"));
                return;
            }
        }
        if changed {
            core.wake_reservations();
        }
    }
}
