//! Hardened records: the restart method that follows each change of a frame with a record on the flash device
//! (`restart = memory-mapped`). The records are the inventory's entries; a start reads them all, and uses the frames.
//!
//! ```text
//!   a page enters       frame written, synced --> record names it, when the keeper comes to it
//!   its frame is void   noted, with a ticket ---> record names nothing, synced: hard up to the ticket
//!                                                   | waited for before the frame is overwritten,
//!                                                   v and before the page's next write counts as done
//!   a checkpoint        stamp: all records hold for what lies below the retain LSN; then that is recorded
//! ```
//!
//! Source: J. Do, *The Role of Flash Memory in Database Management Systems*, section 4.3.2 and table 4.2, after
//! Bhattacharjee et al.'s memory-mapped table. There a record has the frame's state. Here the log says which frames are
//! dirty, as with the other methods, so the transition from LAZYCLEANING to CLEAN needs no write. There the thread that
//! changes a record writes it; here the keeper writes all that have changed meanwhile together, and nobody waits under
//! a latch.
//!
//! Invariants:
//! 1. A frame that is *named* on the device (or may be, by a write under way) and becomes void gets a *ticket*, under
//!    its partition's latch, and its sector is to be written. The keeper reads the last ticket, then looks at the
//!    sectors, writes, syncs: up to that ticket all is hard then, as far as the device keeps what it has synced. (No
//!    start can tell where it does not: ARCHITECTURE section 4, "Devices that lie".) A sector of frames that are taken
//!    away stays until its tickets are hard (`shape`).
//! 2. `write_back` returns when all tickets are hard that were given before the page's new version was handed on: every
//!    frame with an older version was void by then (`flash`, invariant 1). Until it returns the pool counts the page's
//!    recLSN. So when the retain LSN passes a change, no record of the series names an older version of its page.
//! 3. A frame is overwritten only when it is hard that it is free. So a record never names a page that the frame lost.
//! 4. A frame's bytes are synced before the frame is CLEAN or DIRTY, so before a record can name them.
//! 5. A *series* is a number in each sector, and in the stamp. The stamp's LSN is the retain LSN about to be recorded;
//!    by 2 what the series' sectors name holds for it. So the stamp of the device that was there at the crash is not
//!    below the retain LSN that a start finds, unless it could not be written, and no log is read for the tier alone;
//!    an earlier device has an earlier stamp, and the log in between is noted, or the tier is empty (`attach`,
//!    invariant 2).
//! 6. Other methods need not believe a device that says that a sector of inventory is written; here a lost write could
//!    leave an older version that looks good. So a sector in which a named frame is void is read again after the sync.
//! 7. Where a record cannot be written, the series ends: nobody waits any more, and the stamp stays where it was. The
//!    next checkpoint begins another series, and writes all records before it stamps. So does a tier that is switched
//!    on or changed; the series of before ends when the change begins, and no other begins until the method is changed
//!    (all under the lock of the inventory).
//! 8. A sync that fails may have lost what others wrote, and only one of several that wait learns it. So the series
//!    ends, too, where a sync of frames has failed since the inventory was synced last; and what was written counts as
//!    synced when the syncs of frames have ended that were under way.

use super::inventory::Keeping;
use super::layout::Stamp;
use super::partition::Due;
use super::trouble::Trouble;
use super::{FlashHome, FrameId};
use crate::config::Safeguard;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::types::Lsn;
use futures::future::join_all;
use std::sync::Arc;
use terrace_device::{DeviceRef, IoBuf, Purpose, SECTOR};
use tokio::sync::{Notify, RwLock, oneshot};

/// Sectors written at once.
const AT_ONCE: u64 = 256;

#[derive(Default)]
pub(super) struct Hardened {
    /// 0: none, and nothing is waited for.
    series: AtomicU32,
    /// Invariant 1.
    upto: AtomicU64,
    progress: Notify,
    /// Invariant 8: who syncs frames has a part in this; one of them has failed.
    syncing: RwLock<()>,
    sync_failed: AtomicBool,
}

impl Hardened {
    pub(super) fn upto(&self) -> u64 {
        self.upto.load(Ordering::Acquire)
    }

    pub(super) fn is_hard_to(&self, ticket: u64) {
        self.upto.fetch_max(ticket, Ordering::AcqRel);
    }

    /// Invariant 8: the inventory has been synced just now; whether that speaks for all that was written before.
    pub(super) async fn others_have_synced(&self) -> bool {
        drop(self.syncing.write().await);
        !self.sync_failed.swap(false, Ordering::AcqRel)
    }
}

impl FlashHome {
    /// A record follows each change of a frame.
    pub(super) fn hardens(&self) -> bool {
        let restart = self.running.read().config.restart;
        (restart.hardens_on_flash() || restart.hardens_in_log()) && self.life.load(Ordering::Acquire) != 0
    }

    pub(super) fn series(&self) -> u32 {
        self.hardened.series.load(Ordering::Acquire)
    }

    /// The last ticket.
    pub(super) fn ticket(&self) -> u64 {
        self.totals.queue.tickets.load(Ordering::Acquire)
    }

    /// Up to which ticket nobody has to wait.
    pub(super) fn hard_to(&self) -> u64 {
        let waits = self.series() != 0 && self.is_on() && self.check().is_ok();
        if waits { self.hardened.upto() } else { u64::MAX }
    }

    /// Waits until all is hard up to a ticket.
    pub(super) async fn hard(&self, ticket: u64) {
        let is_hard = || self.hard_to() >= ticket;
        while !is_hard() {
            let mut progress = std::pin::pin!(self.hardened.progress.notified());
            progress.as_mut().enable();
            if is_hard() {
                return;
            }
            self.wake_keeper.notify_one();
            progress.await;
        }
    }

    /// Invariant 3.
    pub(super) async fn free_to_write(&self, frames: impl Iterator<Item = FrameId>) {
        if self.series() == 0 || !self.safeguards.has(Safeguard::HardReuse) {
            return;
        }
        let ticket = |at: FrameId| self.partition(at.part).lock().ticket(at.frame);
        if let Some(ticket) = frames.map(ticket).max() {
            self.hard(ticket).await;
        }
    }

    /// Invariant 4; false where it failed.
    pub(super) async fn sync_frames(&self, device: &DeviceRef) -> bool {
        if !self.hardens() || !self.safeguards.has(Safeguard::SyncedFrames) {
            return true;
        }
        let _syncing = self.hardened.syncing.read().await;
        match device.sync(Purpose::Flash).await {
            Ok(()) => true,
            Err(error) => {
                self.hardened.sync_failed.store(self.safeguards.has(Safeguard::OthersSyncs), Ordering::Release);
                self.note_failure(Trouble::Write, &"the frames", &error);
                false
            }
        }
    }

    /// Nobody waits any more for what cannot be.
    pub(super) fn wake_hardened(&self) {
        self.hardened.progress.notify_waiters();
    }

    /// Invariant 7. The caller keeps the inventory.
    pub(super) fn end_series(&self) {
        if self.hardened.series.swap(0, Ordering::AcqRel) != 0 {
            self.partitions.iter().for_each(|partition| partition.lock().unname());
            self.end_logging();
        }
        self.wake_hardened();
    }

    /// Invariant 5. The same. `anew`: what was named before does not count.
    fn begin_series(&self, anew: bool) {
        let series = (self.env.random_u64() as u32).max(1);
        match self.logs() {
            true => self.begin_logging(anew),
            false => self.partitions.iter().for_each(|partition| partition.lock().relist()),
        }
        self.hardened.series.store(series, Ordering::Release);
        self.wake_keeper.notify_one();
    }

    /// The tier begins, or has been changed: where there is no series, one begins. `found`: the tier begins with what
    /// an opening has found.
    pub(super) async fn have_series(&self, found: bool) {
        let _keeping = self.keeping.lock().await;
        if self.series() == 0 && self.hardens() && (found || self.is_on()) {
            self.begin_series(!found);
        }
    }

    /// Invariant 1: a round of the keeper.
    pub(super) async fn harden_records(&self) {
        let mut keeping = self.keeping.lock().await;
        if self.series() == 0 {
            return;
        }
        if self.logs() {
            return self.log_records(&mut keeping, false).await;
        }
        let ticket = self.ticket();
        let due = Due { changed: true, ..Due::default() };
        while self.list(&mut keeping, due, AT_ONCE).await == AT_ONCE && self.series() != 0 {}
        // Where that fails the series ends.
        if !keeping.unsynced || self.sync_inventory(&mut keeping).await {
            self.hardened.is_hard_to(ticket);
        }
        self.wake_hardened();
    }

    /// Invariant 5: the retain LSN is about to be recorded as `holds`; returns what it is to be recorded as, which may
    /// be less (`logged`, invariant 3). Where that cannot be said on the device, a start finds less. A task of its own:
    /// what it writes is written, or known not to be, if the caller goes away.
    pub(crate) async fn stamp(self: &Arc<Self>, holds: Lsn) -> Lsn {
        if !self.hardens() {
            return holds;
        }
        let (me, (send, receive)) = (self.clone(), oneshot::channel());
        self.log.spawn("flash stamp", async move {
            let _ = send.send(me.stamp_now(holds).await); // The caller may have gone.
        });
        receive.await.ok().flatten().unwrap_or(holds)
    }

    async fn stamp_now(&self, holds: Lsn) -> Option<Lsn> {
        let mut keeping = self.keeping.lock().await;
        let device = self.device().filter(|_| self.is_on() && self.check().is_ok())?;
        let identity = self.identity.get()?;
        if self.series() == 0 {
            self.begin_series(true);
        }
        let series = self.series();
        let holds = match self.logs() {
            true => self.log_table(&mut keeping).await?.min(holds),
            false if keeping.whole == series || self.list_whole(&mut keeping).await => holds,
            false => return None,
        };
        if self.series() != series {
            return None;
        }
        keeping.whole = series;
        self.write_stamp(&mut keeping, &device, identity.database, (series, holds)).await;
        Some(holds)
    }

    async fn write_stamp(
        &self,
        keeping: &mut Keeping,
        device: &DeviceRef,
        database: u128,
        (series, holds): (u32, Lsn),
    ) {
        let stamp = Stamp { life: self.life.load(Ordering::Acquire), series, holds, in_log: self.logs() };
        match device.write(Stamp::AT, stamp.encode(database), Purpose::Flash).await {
            Ok(_) => drop(self.sync_inventory(keeping).await),
            Err(error) => self.note_failure(Trouble::Write, &"the stamp", &error),
        }
    }

    /// What was said does not hold from now on.
    pub(super) async fn void_stamp(&self, keeping: &mut Keeping) {
        if let (Some(device), Some(identity)) = (self.device().filter(|_| self.is_on()), self.identity.get()) {
            self.write_stamp(keeping, &device, identity.database, (0, Lsn(0))).await;
        }
    }

    /// Invariant 7: all sectors are of the series; whether that is so now.
    async fn list_whole(&self, keeping: &mut Keeping) -> bool {
        self.partitions.iter().for_each(|partition| partition.lock().await_changed());
        let is_awaited = || self.partitions.iter().any(|partition| partition.lock().is_awaited());
        let due = Due { changed: true, ..Due::default() };
        while self.is_on() && is_awaited() && self.list(keeping, due, AT_ONCE).await > 0 {}
        !is_awaited() && self.sync_inventory(keeping).await
    }

    /// Invariant 6.
    pub(super) async fn are_written(&self, device: &DeviceRef, sectors: Vec<(u64, IoBuf)>) -> bool {
        if !self.safeguards.has(Safeguard::ReadAgain) {
            return true;
        }
        let same = sectors.iter().map(|(at, written)| async move {
            let read = device.read(*at, IoBuf::zeroed(written.len()), Purpose::Flash).await;
            read.is_ok_and(|read| read[..] == written[..])
        });
        let all = join_all(same).await.into_iter().all(|same| same);
        if !all {
            let device = device.name();
            tracing::warn!(device, "a record of the flash tier is not what was written; all are written anew");
        }
        all
    }

    /// The device's stamp, if it has a good one of this database.
    pub(super) async fn find_stamp(&self, device: &DeviceRef, database: u128) -> Option<Stamp> {
        if Stamp::AT + SECTOR as u64 > device.size() {
            return None;
        }
        let sector = device.read(Stamp::AT, IoBuf::zeroed(SECTOR), Purpose::Flash).await.ok()?;
        Stamp::decode(&sector, database).filter(|stamp| stamp.series != 0)
    }
}
