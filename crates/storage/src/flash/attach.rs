//! An opening with a tier that holds something: frames are found by its inventory, the log says which of
//! them are current, and redo begins with their versions of its pages.
//!
//! ```text
//! attach: inventory -> frames   note: the log from its `since` on   end_finding   start   verify_found
//! OFF ------------------------> FINDING ----------------------------> RESTORING ------> ON
//! ```
//!
//! Source: thesis, sections 4.3.1 and 4.3.4.4 (lazy verification). Here the log decides what is current, also for clean
//! frames, and no frame is read for the opening's sake.
//!
//! Invariants:
//! 1. Sectors count if they are of the life of the database that ended, or of one before it as the superblock has it;
//!    of those only versions count that are not beyond that life's end. A database that ran without its tier, or was
//!    rolled back and then ran, has another life: it finds nothing.
//! 2. A frame is read only after all of the log was noted from the least `since` on, or from the retain LSN if that is
//!    less. It is current if no change of its page is newer; and if it was changed there at all, the version itself was
//!    met. A frame that the log does not reach back to is not current.
//! 3. A page with a change from the retain LSN on counts as dirty, whatever the tier knew: its recLSN is the start of
//!    the first such change; where only a segment's index names it, the end of the stream before that segment. Any
//!    other page is home.
//! 4. A frame is a *base* if redo has changes of its page that begin with exactly its version. The tier then knows the
//!    page as it was before those changes: its frame is dirty if the page has other changes from the redo LSN on, and
//!    clean otherwise. Who reads the page repeats the changes on it (`recovery`), and makes the frame void by that.
//! 5. Nobody has read a frame when the opening ends. A clean one that holds something else is dropped; the page of a
//!    dirty one is made again from the log since its recLSN, as when a frame decays later (`replay`). Dirty frames are
//!    read soon (`verify_found`), so that what is bad is known while the log is near.
//! 6. Each page of which the log, from the retain LSN to the redo LSN, has changes that no current frame has *lacks*
//!    them: the disk may have them or not. It waits (`recovery::on_demand`, invariant 6): who reads it compares the
//!    disk's version with the LSN that the log says, and makes the page again from the retain LSN on if it is older.
//!    So redo begins at the redo LSN only where all of that part of the log could be noted, within the memory for such
//!    pages; else, and without a tier, at the retain LSN.
//! 7. Nothing is written to the tier before the new life is about to be recorded, and no page enters it before it is
//!    on.

use super::inventory::superblocks;
use super::layout::{self, ENTRIES, Inventory, SECTORS, Stamp};
use super::partition::{Found, Lacks, Noted};
use super::tune::Shape;
use super::{FlashHome, FlashState, FrameId, PARTITIONS, Running};
use crate::config::{Restart, Safeguard};
use crate::error::Result;
use crate::identity::{Identity, Role};
use crate::log::batch::{Batch, EVENT};
use crate::log::history::{Index, Visitor};
use crate::sync::Mutex;
use crate::sync::atomic::Ordering;
use crate::types::*;
use futures::StreamExt;
use rustc_hash::FxHashMap;
use terrace_device::{DeviceRef, IoBuf, Purpose, SECTOR};

/// Requests at a time.
const IN_FLIGHT: usize = 32;

/// What an opening found in the tier, in frames.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Restored {
    /// Entries that count.
    pub listed: u64,
    /// Frames that are current, and of them those that the disk may have an older version of.
    pub current: u64,
    pub dirty: u64,
    /// Entries whose page has changed since: the log begins with them.
    pub bases: u64,
    /// Why others were dropped: the log has a newer version that does not begin with theirs; their version is not in
    /// the log; their bytes are something else.
    pub older: u64,
    pub unknown: u64,
    pub lost: u64,
    /// How long reading the inventory took, and noting log that redo does not read.
    pub inventory_nanos: u64,
    pub noting_nanos: u64,
}

/// Pages that lack changes below where redo begins (invariant 6).
#[derive(Default)]
pub(crate) struct Lacking {
    pages: FxHashMap<PageId, Lack>,
    /// More than memory is for.
    pub(super) full: bool,
}

/// What a page lacks, if the disk has not got it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lack {
    /// Its changes begin here, or later.
    pub(crate) since: Lsn,
    /// Its LSN after the last of them.
    pub(crate) last: Lsn,
}

impl Lacking {
    /// Memory for a page, about.
    pub(crate) const ENTRY: usize = 64;

    fn add(&mut self, page: PageId, lack: Lack, room: usize) {
        let known = self.pages.len();
        let entry = self.pages.entry(page).or_insert(lack);
        (entry.since, entry.last) = (entry.since.min(lack.since), entry.last.max(lack.last));
        if known >= room && self.pages.len() > known {
            self.pages.remove(&page);
            self.full = true;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    pub(crate) fn take(&mut self, page: PageId) -> Option<Lack> {
        self.pages.remove(&page)
    }

    pub(crate) fn into_pages(self) -> impl Iterator<Item = (PageId, Lack)> {
        self.pages.into_iter()
    }

    /// Whatever the disk has of the page is not to be believed.
    pub(crate) fn add_unknown(&mut self, page: PageId, since: Lsn) {
        self.add(page, Lack { since, last: Lsn(u64::MAX) }, usize::MAX);
    }
}

/// Where redo begins.
pub(crate) struct Start {
    pub(crate) from: Lsn,
    /// What lies below `from` (invariant 6).
    pub(crate) lacking: Lacking,
}

impl Start {
    pub(crate) fn at(from: Lsn) -> Start {
        Start { from, lacking: Lacking::default() }
    }
}

/// Notes the log below the redo LSN (invariant 6).
struct Kept<'a> {
    tier: &'a FlashHome,
    retain: Lsn,
    room: usize,
    lacking: Mutex<Lacking>,
}

impl Kept<'_> {
    fn note(&self, page: PageId, since: Lsn, last: Lsn) {
        if page.space != DATA || last <= self.retain {
            return; // Only pages of the data tablespace are anywhere but in memory and on the disk.
        }
        let (mut lacking, since) = (self.lacking.lock(), since.max(self.retain));
        if lacking.pages.contains_key(&page) {
            return lacking.add(page, Lack { since, last }, self.room);
        }
        if let Err(Lacks { since, dropped }) = self.tier.part(page).lock().note_kept(page, since, last) {
            self.tier.count_restored(|r| r.older += u64::from(dropped));
            lacking.add(page, Lack { since, last }, self.room);
        }
    }
}

impl Visitor for &Kept<'_> {
    async fn batches(&mut self, batches: &[Batch<'_>]) -> Result<()> {
        for batch in batches {
            batch.blocks().filter(|b| b.page != EVENT).for_each(|b| self.note(b.page, batch.start, batch.end));
        }
        Ok(())
    }
}

struct Noting<'a>(&'a FlashHome);

impl Visitor for Noting<'_> {
    async fn batches(&mut self, batches: &[Batch<'_>]) -> Result<()> {
        for batch in batches {
            batch
                .blocks()
                .filter(|b| b.page != EVENT)
                .for_each(|b| self.0.note(b.page, Noted { start: batch.start, end: batch.end, redo: None }));
        }
        Ok(())
    }
}

impl FlashHome {
    /// Finds what the device's inventory names. `life`: that in the control file; `floors`: the retain LSN, and where
    /// redo may begin; `room`: pages that may lack changes. Where that fails, or there is nothing, the tier begins
    /// empty.
    pub(crate) async fn attach(
        &self,
        identity: &Identity,
        life: u64,
        device: Option<DeviceRef>,
        (retain, redo): (Lsn, Lsn),
        room: usize,
    ) -> Start {
        self.attach_at(identity, life, device, retain).await;
        if !self.is_finding() || retain >= redo {
            return Start::at(retain);
        }
        let began = self.env.now();
        let kept = self.note_kept(retain, redo, room).await;
        self.count_restored(|r| r.noting_nanos += self.env.now().0 - began.0);
        match kept {
            Ok(Some(lacking)) => Start { from: redo, lacking },
            // What was noted is noted again, which changes nothing.
            _ => Start::at(retain),
        }
    }

    /// Invariant 6. `None`: not all of that part of the log is there, or too many pages lack changes.
    async fn note_kept(&self, retain: Lsn, redo: Lsn, room: usize) -> Result<Option<Lacking>> {
        // The index of the last segment may name changes behind the redo LSN.
        let Some(last) = self.log.segment(self.log.segment_of(redo)).await? else { return Ok(None) };
        let whole = retain.max(last.header.prev_end);
        drop(last);
        let kept = Kept { tier: self, retain, room, lacking: Mutex::default() };
        let by_index = |before: Lsn, index: Index<'_>| {
            index.iter().for_each(|&(page, last)| kept.note(page, before, last));
            false
        };
        let there = self.log.walk(retain, whole, &by_index, &mut &kept).await?
            && self.log.walk(whole, redo, &|_, _| true, &mut &kept).await?;
        let lacking = std::mem::take(&mut *kept.lacking.lock());
        Ok(Some(lacking).filter(|lacking| there && !lacking.full))
    }

    async fn attach_at(&self, identity: &Identity, life: u64, device: Option<DeviceRef>, retain: Lsn) {
        let config = self.running.read().config.clone();
        let Some(device) = device.filter(|_| life != 0 && config.restart != Restart::Cold) else { return };
        let began = self.env.now();
        // What is wrong here `start` will say.
        let Ok(sized) = self.check_config(&config) else { return };
        if super::tune::owner(&device).await != Some(identity.database) {
            return;
        }
        let kin = |s: &super::layout::Superblock| s.life == life || !self.safeguards.has(Safeguard::Lives);
        let found = superblocks(&device, identity.database).await.into_iter().flatten().filter(kin);
        let Some(superblock) = found.max_by_key(|s| s.sequence) else { return };
        if !(1..=PARTITIONS as u32).contains(&superblock.parts) {
            return;
        }
        let shape = Shape::of(sized.frames() as u64, superblock.parts);
        *self.ancestors.lock() = superblock.ancestors;
        self.set_up(device.clone(), config, shape);
        let reach = self.log.reach();
        let floor = match self.logs() {
            true => self.find_in_log(&device, identity.database, (life, retain), shape).await,
            false => self.find(&device, identity.database, (life, reach), shape).await,
        };
        self.count_restored(|r| r.inventory_nanos = self.env.now().0 - began.0);
        let Some(floor) = floor else { return self.detach() };
        *self.floor.lock() = floor.min(retain);
        self.state.store(FlashState::Finding as u8, Ordering::Release);
        let began = self.env.now();
        if floor < retain && !self.note_log(floor, retain).await {
            tracing::warn!(%floor, "the log does not reach back to the flash tier's inventory; it begins empty");
            self.detach();
        }
        self.count_restored(|r| r.noting_nanos = self.env.now().0 - began.0);
    }

    /// The same by the log's records (`logged`): only with the device of the crash, which has a stamp for all of what
    /// the retain LSN has passed.
    async fn find_in_log(
        &self,
        device: &DeviceRef,
        database: u128,
        (life, retain): (u64, Lsn),
        shape: Shape,
    ) -> Option<Lsn> {
        let stamp = self.find_stamp(device, database).await?;
        let kin = stamp.life == life || self.ancestors.lock().iter().any(|(life, _)| *life == stamp.life);
        let holds = stamp.holds >= retain || !self.safeguards.has(Safeguard::Stamp);
        (kin && holds && self.find_logged(retain, shape).await).then_some(retain)
    }

    /// Frames for the pages that sectors name; the least `since` of those that count.
    async fn find(&self, device: &DeviceRef, database: u128, (life, reach): (u64, Lsn), shape: Shape) -> Option<Lsn> {
        let ancestors = self.ancestors.lock().clone();
        let bound = |other: u64| match other {
            _ if other == life || !self.safeguards.has(Safeguard::Lives) => Some(Lsn(u64::MAX)),
            _ => ancestors.iter().find(|(life, _)| *life == other).map(|(_, end)| *end),
        };
        let stamp = self.find_stamp(device, database).await;
        let stamped = |sector: &Inventory| {
            let of_it = |stamp: &Stamp| (stamp.life, stamp.series) == (sector.life, sector.series);
            let holds = stamp.filter(of_it).map(|stamp| stamp.holds);
            holds.map(|holds| if self.safeguards.has(Safeguard::Stamp) { holds } else { Lsn(u64::MAX) })
        };
        let chunks = shape.sectors().div_ceil(SECTORS as u64);
        let mut read = futures::stream::iter(0..chunks)
            .map(|chunk| self.read_inventory(device, database, chunk))
            .buffered(IN_FLIGHT);
        let mut floor = None;
        while let Some(sectors) = read.next().await {
            // Behind those of this size there may be others, of a larger tier.
            for (number, sector) in sectors.into_iter().filter(|(number, _)| *number < shape.sectors()) {
                let here = u64::from(sector.index) * u64::from(shape.parts) + u64::from(sector.part);
                let Some(bound) = bound(sector.life).filter(|_| sector.parts == shape.parts && here == number) else {
                    continue;
                };
                let since = stamped(&sector).map_or(sector.since, |holds| holds.max(sector.since)).min(bound);
                if since >= reach {
                    self.find_listed(&sector, since, bound);
                    floor = Some(floor.map_or(since, |floor: Lsn| floor.min(since)));
                }
            }
        }
        floor
    }

    fn find_listed(&self, sector: &Inventory, since: Lsn, bound: Lsn) {
        let mut partition = self.partition(sector.part).lock();
        let hardens = self.running.read().config.restart.hardens_on_flash();
        partition.listed(sector.index as usize, since, if hardens { &sector.frames } else { &[] });
        let first = sector.index as usize * ENTRIES;
        let mut found = 0;
        for (i, entry) in sector.frames.iter().enumerate() {
            let Some((page, lsn)) = entry.filter(|(_, lsn)| *lsn <= bound) else { continue };
            let ours = page.space == DATA && self.partition_of(page) == sector.part;
            found += u64::from(ours && partition.find_again((first + i) as u32, page, lsn));
        }
        self.count_restored(|r| r.listed += found);
    }

    /// The sectors of inventory in a chunk that are good, with their numbers.
    async fn read_inventory(&self, device: &DeviceRef, database: u128, chunk: u64) -> Vec<(u64, Inventory)> {
        let (at, first) = (layout::chunk_at(chunk, self.page_size), chunk * SECTORS as u64);
        let there = (device.size().saturating_sub(at) / SECTOR as u64).min(SECTORS as u64) as usize;
        if there == 0 {
            return Vec::new();
        }
        let decode = |i: usize, sector: &[u8]| Some((first + i as u64, Inventory::decode(sector, database)?));
        if let Ok(all) = device.read(at, IoBuf::zeroed(there * SECTOR), Purpose::Flash).await {
            return all.chunks_exact(SECTOR).enumerate().filter_map(|(i, sector)| decode(i, sector)).collect();
        }
        let mut found = Vec::new();
        for i in 0..there {
            let read = device.read(at + (i * SECTOR) as u64, IoBuf::zeroed(SECTOR), Purpose::Flash).await;
            found.extend(read.ok().and_then(|sector| decode(i, &sector)));
        }
        found
    }

    /// Notes the log from `from` to `to`, by segments' indexes where they have some; false where it has not got it all.
    async fn note_log(&self, from: Lsn, to: Lsn) -> bool {
        let wanted = |_: Lsn, index: Index<'_>| {
            index.iter().for_each(|&(page, last)| self.note(page, Noted { start: last, end: last, redo: None }));
            false
        };
        self.log.walk(from, to, &wanted, &mut Noting(self)).await.unwrap_or(false)
    }

    /// A batch changes the page. In the log's order.
    pub(crate) fn note(&self, page: PageId, batch: Noted) {
        if page.space != DATA || !self.is_finding() || !self.safeguards.has(Safeguard::Noting) {
            return;
        }
        let dropped = self.part(page).lock().note(page, batch);
        if let Some(missed) = dropped {
            self.count_restored(|r| r.older += 1);
            self.missed.lock().extend(missed.then_some(page));
        }
    }

    /// Frames were found, and the log has not been noted to its end.
    pub(crate) fn is_finding(&self) -> bool {
        self.state() == FlashState::Finding
    }

    /// Whether the tier has the page with its changes up to `end`, in a frame that this opening has found: redo need
    /// not repeat those.
    pub(crate) fn found_with(&self, page: PageId, end: Lsn) -> bool {
        let known = matches!(self.state(), FlashState::Finding | FlashState::Restoring);
        page.space == DATA && known && self.part(page).lock().found_with(page, end)
    }

    /// The log ends here, and all of it was noted: from now on frames are read. Returns the pages of which redo has
    /// passed over changes (`found_with`) that no frame has after all.
    pub(crate) fn end_finding(&self, end: Lsn) -> Vec<PageId> {
        let _ = self.redone_to.set(end); // Once: a store is opened once.
        let mut missed = std::mem::take(&mut *self.missed.lock());
        if self.state() != FlashState::Finding {
            return missed;
        }
        let floor = match self.safeguards.has(Safeguard::Noting) {
            true => *self.floor.lock(),
            false => end,
        };
        let mut restored = *self.restored.lock();
        for partition in &self.partitions {
            let tell = |found| match found {
                Found::Clean => restored.current += 1,
                Found::Dirty => (restored.current, restored.dirty) = (restored.current + 1, restored.dirty + 1),
                Found::Base => restored.bases += 1,
                Found::Older => restored.older += 1,
                Found::Unknown => restored.unknown += 1,
            };
            missed.extend(partition.lock().end_finding(floor, end, tell));
        }
        *self.restored.lock() = restored;
        if restored.unknown > 0 {
            let frames = restored.unknown;
            tracing::warn!(frames, %end, "the flash tier has versions of pages that the log has not; they are dropped");
        }
        self.state.store(FlashState::Restoring as u8, Ordering::Release);
        missed
    }

    /// Reads the dirty frames that this opening has found and nobody has read yet, in the device's order (invariant 5).
    /// The cleaner brings home the pages of those that are bad.
    pub(crate) async fn verify_found(&self, stop: impl Fn() -> bool) {
        if self.hardens() {
            return; // Records that name them were hard when their frames were (`hardened`, invariants 3 and 4).
        }
        let mut unread = Vec::new();
        for part in 0..self.parts.load(Ordering::Acquire) {
            let dirty = self.partition(part).lock().unread_dirty();
            unread.extend(dirty.into_iter().map(|(frame, page)| (FrameId { part, frame }, page)));
        }
        unread.sort_unstable_by_key(|(at, _)| self.number(*at));
        let stop = &stop;
        futures::stream::iter(unread)
            .for_each_concurrent(IN_FLIGHT, |(at, page)| async move {
                if self.is_on() && !stop() && !self.verify(at, page).await {
                    self.urgent.lock().push(at);
                    self.wake_cleaner.notify_one();
                }
            })
            .await;
    }

    /// Frames, and nothing in them.
    fn set_up(&self, device: DeviceRef, config: crate::config::FlashConfig, shape: Shape) {
        self.parts.store(shape.parts, Ordering::Release);
        for partition in &self.partitions[..shape.parts as usize] {
            let mut partition = partition.lock();
            partition.set_order(config.replacement);
            partition.set_turns(config.write.flow().rotates);
            partition.grow(shape.each);
        }
        let mut running = self.running.write();
        let gate = super::tune::gate(&config, shape.frames(), self.bounds);
        *running = Running { config, gate, device: Some(device) };
    }

    /// The tier begins empty after all.
    fn detach(&self) {
        for partition in &self.partitions {
            let mut partition = partition.lock();
            partition.forget_found();
            partition.begin_shrink(0);
            assert!(partition.end_shrink(), "nobody uses a tier that is only being found");
        }
        self.state.store(FlashState::Off as u8, Ordering::Release);
        let mut running = self.running.write();
        running.device = None;
        running.gate.frames = 0;
        self.count_restored(|r| {
            *r = Restored { inventory_nanos: r.inventory_nanos, noting_nanos: r.noting_nanos, ..Restored::default() };
        });
    }

    pub(super) fn count_restored(&self, count: impl FnOnce(&mut Restored)) {
        count(&mut self.restored.lock());
    }

    /// What this opening found in the tier.
    pub(crate) fn restored(&self) -> Restored {
        *self.restored.lock()
    }

    /// Writes everything dirty home, where the cleaner does not run yet.
    pub(crate) async fn clean_all(&self) -> Result<()> {
        while self.oldest_dirty().is_some() {
            let dirty = self.totals.dirty.load(Ordering::Acquire);
            self.clean(dirty, dirty, Vec::new(), Vec::new()).await?;
        }
        Ok(())
    }

    /// The device is this opening's from now on.
    pub(super) async fn take(&self, identity: &Identity, device: &DeviceRef) -> Result<()> {
        let shape = Shape { parts: self.parts.load(Ordering::Acquire), each: self.partition(0).lock().frames() };
        device.allocate(0, self.bytes(shape)).await?;
        identity.stamp(&**device, Role::Flash).await
    }
}
