//! Writing the inventory: what a restart will know of the frames. A task writes a sector when pages have entered its
//! frames, and again before the log forgets what lies behind its `since`. (With two floors the `journal` says sooner
//! what has entered; then the sectors follow at leisure.)
//!
//! Source: thesis, section 4.3.4 (the FC flusher thread; its pace adapts here, which the thesis leaves to later).
//!
//! Invariants:
//! 1. `since` is the recorded redo LSN, read *before* the records are looked at (for a while after an opening: less;
//!    `floors`, invariant 5). What a record says holds for all
//!    changes below: when that redo LSN was computed, a page with such a change was not dirty in memory with it (its
//!    recLSN would hold the redo LSN back), so it had been handed down since. That made every older frame void, and
//!    only newer versions have entered one since. (The log's end would be wrong: a copy taken before a change may enter
//!    after it, and is not void until the page is written next; `flash`, invariant 1.) Pages that were not in use at an
//!    opening are left out: changes of them are dropped with them (`recovery::on_demand`, invariant 5), and their next
//!    change is a fresh beginning.
//! 2. Nothing waits for a sector, and none has to be durable before another (`layout`, invariant 1). A page that leaves
//!    the tier makes none false: its next change is in the log.
//! 3. The inventory takes about an eighth of the bytes that frames take at most, and a little; a 32nd part where there
//!    is a journal.
//! 4. The superblock in the slot that the control file's life uses is not overwritten.
//! 5. The superblock has room for some lives only. Sectors are written anew before theirs leaves it.

use super::layout::{self, Inventory, Superblock};
use super::partition::{Due, Listed};
use super::trouble::Trouble;
use super::{FlashHome, FlashState};
use crate::config::{Restart, Safeguard};
use crate::error::Result;
use crate::identity::Identity;
use crate::sync::atomic::Ordering;
use crate::types::Lsn;
use futures::future::{Either, join_all, select};
use terrace_device::{DeviceRef, IoBuf, Purpose, SECTOR};
use terrace_env::Nanos;

/// Frames' bytes for each byte of inventory, and the sectors that each round may write besides (invariant 3): without
/// a journal, and with one.
const PACE: (u64, u64) = (8, 16);
const PACE_BEHIND_JOURNAL: (u64, u64) = (32, 4);
/// The most sectors of a round.
pub(super) const AT_MOST: u64 = 256;
/// With two floors there are so many passes in the time after which what was written is synced otherwise: a restart
/// reads the log of one of them more.
const PASSES: u32 = 5;
/// Sectors are written again when the redo LSN is beyond them by this part of what the log keeps.
const OF_RETENTION: u64 = 4;

/// Where the task stands.
#[derive(Default)]
pub(super) struct Keeping {
    /// The sector to look at next, its partition and its index: of those that are due otherwise, and of those that have
    /// changed, each of which is to have its turn.
    next: [(u32, usize); 2],
    pub(super) unsynced: bool,
    pub(super) synced: Nanos,
    /// A sector could not be written, since this was false; or none may be.
    pub(super) failed: bool,
    /// The next number of a sector of journal, and how many such sectors its ring has (0: not known).
    pub(super) number: u64,
    pub(super) ring: u64,
    /// What the journal names below this number is in the inventory, and durable.
    pub(super) listed_to: u64,
    /// The series of hardened records that all sectors are of, or of which the log has a table; where that begins.
    pub(super) whole: u32,
    pub(super) table: Lsn,
    /// Of it: what was written since the last sync and must not be lost, with its place.
    pub(super) vital: Vec<(u64, IoBuf)>,
}

impl FlashHome {
    pub(super) async fn run_keeper(&self) {
        while self.check().is_ok() {
            let mut woken = std::pin::pin!(self.wake_keeper.notified());
            woken.as_mut().enable();
            if !self.is_warm() {
                woken.await;
                continue;
            }
            match select(woken, self.env.sleep(self.round)).await {
                Either::Left(_) | Either::Right(_) => {}
            }
            match self.is_on() && self.check().is_ok() {
                true if self.series() != 0 => self.harden_records().await,
                true => self.list_some().await,
                false => {}
            }
        }
    }

    /// A restart is to find what is here.
    fn is_warm(&self) -> bool {
        self.life.load(Ordering::Acquire) != 0 && self.running.read().config.restart != Restart::Cold
    }

    async fn list_some(&self) {
        let mut keeping = self.keeping.lock().await;
        let (frame_bytes, at_least) = if self.has_two_floors() { PACE_BEHIND_JOURNAL } else { PACE };
        let each = SECTOR as u64 * frame_bytes;
        let most = (at_least + self.list_credit.load(Ordering::Relaxed) / each).min(AT_MOST);
        // What is old is more urgent than what has changed.
        let old = Due { old: self.too_old(), ..Due::default() };
        let written = self.list(&mut keeping, old, AT_MOST).await;
        let changed = self.list(&mut keeping, Due { changed: true, ..old }, most.saturating_sub(written)).await;
        let spent = changed * each;
        let _ = self.list_credit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |c| Some(c.saturating_sub(spent)));
        let waits = self.has_two_floors() && self.oldest_unhard().is_some();
        let every = if waits { self.sync_every / PASSES } else { self.sync_every };
        let due = self.env.now().0.saturating_sub(keeping.synced.0) >= every.as_nanos() as u64;
        if due && self.has_two_floors() {
            self.journal_pass(&mut keeping).await;
        } else if due && keeping.unsynced {
            self.sync_inventory(&mut keeping).await;
        }
    }

    /// Everything is home: lists all that is in the tier.
    pub(crate) async fn list_all(&self) {
        let mut keeping = self.keeping.lock().await;
        let due = Due { old: self.too_old(), changed: true, ..Due::default() };
        while self.is_on() && self.list(&mut keeping, due, AT_MOST).await > 0 {}
        if keeping.unsynced {
            self.sync_inventory(&mut keeping).await;
        }
    }

    /// Whether all that was written is durable. If not, a series of hardened records ends.
    pub(super) async fn sync_inventory(&self, keeping: &mut Keeping) -> bool {
        (keeping.unsynced, keeping.synced) = (false, self.env.now());
        let Some(device) = self.device() else { return false };
        let synced = device.sync(Purpose::Flash).await;
        let still = self.device().is_some_and(|now| std::sync::Arc::ptr_eq(&now, &device));
        if let Some(error) = synced.as_ref().err().filter(|_| still) {
            self.note_failure(Trouble::Write, &"the inventory", error);
        }
        let vital = std::mem::take(&mut keeping.vital);
        let synced = self.hardened.others_have_synced().await && synced.is_ok();
        let there = synced && still && self.are_written(&device, vital).await;
        if !there {
            self.end_series();
            // What a sync that fails leaves undone a later one does not do.
            keeping.unsynced = true;
            self.partitions.iter().for_each(|partition| partition.lock().rewrite());
        }
        there
    }

    /// The device, where something may be written of the frames.
    pub(super) fn listable(&self) -> Option<DeviceRef> {
        self.device().filter(|_| self.is_warm() && !self.logs() && self.within_budget())
    }

    /// Invariant 1: what holds for all frames that are looked at from now on.
    pub(super) fn listed_since(&self) -> Lsn {
        if self.safeguards.has(Safeguard::ListedLsn) { self.since() } else { self.log.durable() }
    }

    fn too_old(&self) -> Lsn {
        Lsn(self.log.redo_lsn().0.saturating_sub(self.retention / OF_RETENTION))
    }

    /// Writes up to `most` sectors that are due; returns how many: fewer mean that none is due any more that was when
    /// this began.
    pub(super) async fn list(&self, keeping: &mut Keeping, due: Due, most: u64) -> u64 {
        if most == 0 {
            return 0;
        }
        let life = self.life.load(Ordering::Acquire);
        let (Some(device), Some(identity)) = (self.listable(), self.identity.get()) else {
            keeping.failed = true;
            return 0;
        };
        let (parts, series) = (self.parts.load(Ordering::Acquire), self.series());
        let mut sectors = Vec::new();
        let since = self.listed_since();
        let mut next = keeping.next[usize::from(due.changed)];
        for _ in 0..=parts {
            let part = next.0 % parts;
            while (sectors.len() as u64) < most {
                let mut partition = self.partition(part).lock();
                let Some(index) = partition.next_due(next.1, due) else { break };
                let Listed { frames, voided } = partition.list(index, (since, keeping.number), series != 0);
                next = (part, index + 1);
                let (index, journal) = (index as u32, keeping.number);
                let sector = Inventory { life, since, part, parts, index, series, journal, frames };
                sectors.push((part, voided && series != 0, sector));
            }
            if sectors.len() as u64 == most {
                break;
            }
            next = (part + 1, 0);
        }
        keeping.next[usize::from(due.changed)] = next;
        let count = sectors.len() as u64;
        self.spend(count * SECTOR as u64);
        keeping.unsynced |= count > 0;
        let writes = sectors.into_iter().map(|(part, vital, sector)| {
            let (device, index, bytes) = (device.clone(), sector.index, sector.encode(identity.database));
            let number = u64::from(index) * u64::from(parts) + u64::from(part);
            let at = layout::sector_at(number, self.page_size);
            async move { (part, index, vital.then_some(at), device.write(at, bytes, Purpose::Flash).await) }
        });
        for (part, index, vital, written) in join_all(writes).await {
            if !self.device().is_some_and(|now| std::sync::Arc::ptr_eq(&now, &device)) {
                break; // The tier has got another device meanwhile, which has nothing to do with these.
            }
            match written {
                Ok(bytes) => {
                    self.note_success();
                    keeping.vital.extend(vital.map(|at| (at, bytes)));
                }
                Err(error) => {
                    self.end_series();
                    keeping.failed = true;
                    self.partition(part).lock().unlisted(index as usize);
                    self.note_failure(Trouble::Write, &"the inventory", &error);
                }
            }
        }
        count
    }

    /// The tier is this opening's: the inventories of the life that ended at `end`, and of those before it, count in
    /// the new life too. Before the control file records that.
    pub(crate) async fn adopt(&self, identity: &Identity, (before, end): (u64, Lsn), life: u64) {
        let Some(device) = self.device().filter(|_| self.state() == FlashState::Restoring) else { return };
        let mut ancestors = vec![(before, end)];
        ancestors.append(&mut self.ancestors.lock().clone());
        if ancestors.len() > layout::ANCESTORS / 2 {
            // Invariant 5. Those in between have room in the superblock meanwhile.
            self.partitions.iter().for_each(|partition| partition.lock().relist());
        }
        let next = Superblock { sequence: 0, life, ancestors, parts: self.parts.load(Ordering::Acquire) };
        if let Err(error) = write_superblock(&device, identity.database, next, before).await {
            tracing::warn!(device = device.name(), "after another crash the flash tier will be empty: {error}");
        }
    }
}

/// Writes a superblock behind those that there are (invariant 4: `keep` is the life in the control file).
pub(super) async fn write_superblock(device: &DeviceRef, database: u128, next: Superblock, keep: u64) -> Result<()> {
    let found = superblocks(device, database).await;
    let sequence = found.iter().flatten().map(|found| found.sequence).max().unwrap_or(0) + 1;
    let worth = |slot: &usize| found[*slot].as_ref().map_or((0, 0), |s| (1 + u8::from(s.life == keep), s.sequence));
    let slot = (0..found.len()).min_by_key(worth).expect("there are two");
    let superblock = Superblock { sequence, ..next };
    device.write(Superblock::SLOTS[slot], superblock.encode(database), Purpose::Flash).await?;
    device.sync(Purpose::Flash).await?;
    Ok(())
}

/// The superblocks of a database on a device.
pub(super) async fn superblocks(device: &DeviceRef, database: u128) -> [Option<Superblock>; 2] {
    let mut found = [None, None];
    for (slot, at) in found.iter_mut().zip(Superblock::SLOTS) {
        if at + SECTOR as u64 <= device.size()
            && let Ok(sector) = device.read(at, IoBuf::zeroed(SECTOR), Purpose::Flash).await
        {
            *slot = Superblock::decode(&sector, database);
        }
    }
    found
}
