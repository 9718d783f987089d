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
//!    the first such change, or of its segment. Any other page is home.
//! 4. A frame is a *base* if redo has changes of its page that begin with exactly its version. The tier then knows the
//!    page as it was before those changes: its frame is dirty if the page has other changes from the redo LSN on, and
//!    clean otherwise. Who reads the page repeats the changes on it (`recovery`), and makes the frame void by that.
//! 5. Nobody has read a frame when the opening ends. A clean one that holds something else is dropped; the page of a
//!    dirty one is made again from the log since its recLSN, as when a frame decays later (`replay`). Dirty frames are
//!    read soon (`verify_found`), so that what is bad is known while the log is near.
//! 6. Of what the log has from the retain LSN to where it is settled (`log::harden`) only the segments' indexes are
//!    read; of one only the page table, where frames have been found that are as new as all of its pages. Each page
//!    that is changed there, and of which no current frame has that, *lacks* it: the disk may have it or not. It waits
//!    (`recovery::on_demand`, invariant 6): who reads it compares the version that it finds with the LSN that the
//!    indexes say, and if that is older repeats the page's changes from the log. The version may be an older frame:
//!    one that is met as a version of the page there, or that was its page's newest before, is a base (invariant 4).
//!    So redo begins where the log is settled only if all of the part before could be noted, within the memory for
//!    such pages; else at the retain LSN.
//! 7. Nothing is written to the tier before the new life is about to be recorded, and no page enters it before it is
//!    on.
//! 8. A frame that lies behind the device's end counts as one that nobody has named: of a file that was cut off the
//!    rest is used, and what is lost comes from the disk and the log.

use super::inventory::superblocks;
use super::lacking::{BatchSpan, Lacking};
use super::layout::{self, ENTRIES, Entry, Inventory, JOURNAL, Journal, SECTORS, Stamp, Superblock};
use super::partition::{Found, Lacks, Noted};
use super::tune::Shape;
use super::{FlashHome, FlashState, FrameId, PARTITIONS, Running};
use crate::config::{Restart, Safeguard};
use crate::error::Result;
use crate::identity::{Identity, Role};
use crate::log::batch::{Batch, EVENT};
use crate::log::history::{Everything, Selection, Visitor, Wanting, starts_afresh};
use crate::log::index::{self, PageTable, Place, SegmentIndex};
use crate::sync::Mutex;
use crate::sync::atomic::Ordering;
use crate::types::*;
use futures::StreamExt;
use futures::future::join_all;
use std::time::Duration;
use terrace_device::{DeviceRef, IoBuf, Purpose, SECTOR};

/// Requests at a time.
const IN_FLIGHT: usize = 32;
/// After some frames were verified the task rests this many times as long as that took.
const RESTS: u32 = 7;

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
    /// Why nothing was found, where something might have been.
    pub empty: Option<Empty>,
}

/// Why a tier begins empty, though it is to be kept over restarts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Empty {
    #[error("its file is new")]
    New,
    #[error("the database has run without it, or was restored from a backup")]
    Apart,
    #[error("no record of a frame is there")]
    Unlisted,
    #[error("its file is damaged, or no flash tier's")]
    Damaged,
    #[error("its file is of another life of the database")]
    OtherLife,
    #[error("it was written with another restart method")]
    OtherMethod,
    #[error("it was written with another restart method, or its records could not be written to the log")]
    Unstamped,
    #[error("the log's records of its frames are of another size of it, or cannot be read")]
    OtherShape,
    #[error("its records are too old: the log does not reach back to them")]
    Old,
}

/// The places in the log that an opening knows, ascending.
#[derive(Clone, Copy)]
pub(crate) struct Floors {
    /// Below, everything is on the disk.
    pub(crate) retain: Lsn,
    /// Below, everything is in the tier or on the disk (a hint).
    pub(crate) redo: Lsn,
    /// Below, the segments' indexes say what was changed; so redo begins here.
    pub(crate) settled: Lsn,
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

/// A device, of this database, whose frames are being found.
pub(super) struct Search<'a> {
    pub(super) device: &'a DeviceRef,
    pub(super) database: u128,
    size: u64,
    each: u32,
    /// Frames that are named, and do not lie on the device as it is: its file was cut off (invariant 8).
    cut: Vec<FrameId>,
}

impl Search<'_> {
    pub(super) fn of(device: &DeviceRef, database: u128, shape: Shape) -> Search<'_> {
        Search { device, database, size: device.size(), each: shape.each, cut: Vec::new() }
    }

    /// Whether the device has all of a frame that is named.
    pub(super) fn has(&mut self, tier: &FlashHome, at: FrameId) -> bool {
        let has = tier.offset(at) + tier.page_size as u64 <= self.size;
        if !has && at.frame < self.each {
            self.cut.push(at);
        }
        has
    }

    /// How many frames are cut off. (Inventory and journal may both name one.)
    fn count_cut(mut self) -> usize {
        self.cut.sort_unstable();
        self.cut.dedup();
        self.cut.len()
    }
}

/// Notes the log below the redo LSN (invariant 6).
struct Kept<'a> {
    tier: &'a FlashHome,
    /// The tier has found frames.
    finding: bool,
    /// The tier's, of its inventory.
    floor: Lsn,
    retain: Lsn,
    /// The recorded redo LSN.
    redo: Lsn,
    room: usize,
    lacking: Mutex<Lacking>,
}

impl Kept<'_> {
    /// Whether the disk may lack what changed the page up to `last`: below the redo LSN only pages of the data
    /// tablespace are anywhere else.
    fn concerns(&self, page: PageId, last: Lsn) -> bool {
        last > self.retain && (page.space == DATA || last > self.redo)
    }

    /// `is_version`: whether the page had this LSN after one of these changes, and what changed it next lies at or
    /// behind the retain LSN; `needed`: where they are, from the last one on in which it begins afresh, and whether
    /// there is such a one.
    fn note<P: Iterator<Item = BatchSpan>>(
        &self,
        page: PageId,
        (since, last): BatchSpan,
        is_version: impl Fn(Lsn) -> bool,
        needed: impl FnOnce() -> (P, bool),
    ) {
        if !self.concerns(page, last) {
            return;
        }
        let (mut lacking, since) = (self.lacking.lock(), since.max(self.retain));
        let mut lacks_since = since;
        if page.space == DATA && self.finding && !lacking.has(page) {
            let noted = self.tier.part(page).lock().note_kept(page, since, last, is_version, self.floor);
            let Err(Lacks { since, dropped }) = noted else { return };
            self.tier.count_restored(|r| r.older += u64::from(dropped));
            lacks_since = since;
        }
        let (places, afresh) = needed();
        lacking.add(page, (lacks_since, last), places, afresh, self.room);
    }
}

impl Selection for Kept<'_> {
    /// By the places of each page.
    fn select(&self, index: &SegmentIndex) -> Wanting {
        for (page, places) in index.pages() {
            let is_version = |lsn| {
                let at = places.binary_search_by_key(&lsn, |place| index.lsns(*place).1);
                // The first segment's index also has what lies below the retain LSN, which nobody repeats.
                let goes_on = |next: &Place| index.lsns(*next).0 >= self.retain;
                at.is_ok_and(|at| places.get(at + 1).is_none_or(goes_on))
            };
            let needed = || {
                let needed = index::from_last_beginning(places);
                let afresh = needed.first().is_some_and(|first| first.begins_afresh());
                (needed.iter().map(|place| index.lsns(*place)), afresh)
            };
            if let [first, .., last] | [first @ last] = places {
                self.note(page, (index.lsns(*first).0, index.lsns(*last).1), is_version, needed);
            }
        }
        Wanting::Nothing
    }

    fn asks_table(&self) -> bool {
        self.finding
    }

    /// Where each page that is changed there has a frame that is as new. The disk may lack that since the segment's
    /// beginning, or later.
    fn is_enough(&self, table: &PageTable) -> bool {
        let changed = || table.newest().filter(|(page, last)| self.concerns(*page, *last));
        let lacking = self.lacking.lock();
        let has = |page: PageId, last| self.tier.part(page).lock().found_with(page, last);
        if !changed().all(|(page, last)| page.space == DATA && !lacking.has(page) && has(page, last)) {
            return false;
        }
        let since = table.start().max(self.retain);
        for (page, last) in changed() {
            let noted = self.tier.part(page).lock().note_kept(page, since, last, |_| false, self.floor);
            assert!(noted.is_ok(), "the frame of page {page} is as new as {last}");
        }
        true
    }
}

impl Visitor for &Kept<'_> {
    async fn batches(&mut self, batches: &[Batch<'_>]) -> Result<()> {
        for batch in batches {
            let changed = batch.blocks().filter(|b| b.page != EVENT);
            for block in changed {
                let (span, afresh) = ((batch.start, batch.end), starts_afresh(block.ops));
                self.note(block.page, span, |lsn| lsn == batch.end, || (std::iter::once(span), afresh));
            }
        }
        Ok(())
    }
}

/// Notes the log up to `to`, of which redo repeats nothing.
struct Noting<'a> {
    tier: &'a FlashHome,
    to: Lsn,
}

impl Noting<'_> {
    /// A change of the page ends there, and the batch that made it begins at `start`, or later.
    fn note(&self, page: PageId, (start, end): BatchSpan) {
        self.tier.note(page, Noted { start, end, redo: None });
    }
}

impl Selection for Noting<'_> {
    /// The last segment's index also has what lies behind `to`: there a page may go on from what its frame has.
    fn select(&self, index: &SegmentIndex) -> Wanting {
        for (page, places) in index.pages() {
            let mut spans = places.iter().rev().map(|place| index.lsns(*place));
            let last = spans.find(|(_, end)| *end <= self.to);
            last.into_iter().for_each(|span| self.note(page, span));
        }
        Wanting::Nothing
    }

    fn asks_table(&self) -> bool {
        true
    }

    fn is_enough(&self, table: &PageTable) -> bool {
        let enough = table.newest().all(|(_, end)| end <= self.to);
        if enough {
            table.newest().for_each(|(page, end)| self.note(page, (end, end)));
        }
        enough
    }
}

impl Visitor for &Noting<'_> {
    async fn batches(&mut self, batches: &[Batch<'_>]) -> Result<()> {
        for batch in batches {
            let changed = batch.blocks().filter(|b| b.page != EVENT);
            changed.for_each(|b| self.note(b.page, (batch.start, batch.end)));
        }
        Ok(())
    }
}

impl FlashHome {
    /// Finds what the device's inventory names. `life`: that in the control file; `room`: pages that may lack changes.
    /// Where that fails, or there is nothing, the tier begins empty. Answers where redo begins.
    pub(crate) async fn attach(
        &self,
        identity: &Identity,
        life: u64,
        device: Option<DeviceRef>,
        floors: Floors,
        room: usize,
    ) -> Start {
        self.attach_at(identity, life, device, floors.retain).await;
        if floors.retain >= floors.settled {
            return Start::at(floors.retain);
        }
        let began = self.env.now();
        let kept = self.note_kept(floors, room).await;
        self.count_restored(|r| r.noting_nanos += self.env.now().0 - began.0);
        match kept {
            Ok(Some(lacking)) => Start { from: floors.settled, lacking },
            // What was noted is noted again, which changes nothing.
            _ => {
                self.log.cut(floors.redo);
                Start::at(floors.retain)
            }
        }
    }

    /// Invariant 6. `None`: not all of that part of the log is there, or too many pages lack changes.
    async fn note_kept(&self, Floors { retain, redo, settled }: Floors, room: usize) -> Result<Option<Lacking>> {
        // The index of the last segment may name changes behind what is settled.
        let Some((prev_end, ends)) = self.log.bounds_of(settled).await? else { return Ok(None) };
        let whole = retain.max(if ends { settled } else { prev_end });
        let (floor, lacking) = (*self.floor.lock(), Mutex::default());
        let kept = Kept { tier: self, finding: self.is_finding(), floor, retain, redo, room, lacking };
        let there = self.log.walk(retain, whole, &kept, &mut &kept).await?
            && self.log.walk(whole, settled, &Everything, &mut &kept).await?;
        let lacking = std::mem::take(&mut *kept.lacking.lock());
        Ok(Some(lacking).filter(|lacking| there && !lacking.is_full()))
    }

    async fn attach_at(&self, identity: &Identity, life: u64, device: Option<DeviceRef>, retain: Lsn) {
        let cold = self.running.read().config.restart == Restart::Cold;
        let Some(device) = device.filter(|_| !cold) else { return };
        let Err(Some(why)) = self.find_frames(identity, life, &device, retain).await else { return };
        self.count_restored(|r| r.empty = Some(why));
        let device = device.name();
        match why {
            Empty::New | Empty::Apart | Empty::Unlisted => tracing::info!(device, "the flash tier begins empty: {why}"),
            _ => tracing::warn!(device, "the flash tier begins empty: {why}"),
        }
    }

    /// `Err`: there are none, and why, where that is to be said.
    async fn find_frames(
        &self,
        identity: &Identity,
        life: u64,
        device: &DeviceRef,
        retain: Lsn,
    ) -> Result<(), Option<Empty>> {
        let (config, began) = (self.running.read().config.clone(), self.env.now());
        // What is wrong here `start` will say.
        let sized = self.check_config(&config).map_err(|_| None)?;
        match super::tune::owner(device).await {
            Some(owner) if owner != identity.database => return Err(None), // The same.
            Some(_) if life == 0 => return Err(Some(Empty::Apart)),
            Some(_) => {}
            None if life == 0 => return Err(None), // Database or tier are new.
            None if device.size() == 0 => return Err(Some(Empty::New)),
            None => return Err(Some(Empty::Damaged)),
        }
        let superblock = self.find_superblock(device, identity.database, life).await.map_err(Some)?;
        let shape = Shape::of(sized.frames() as u64, superblock.parts);
        *self.ancestors.lock() = superblock.ancestors;
        self.set_up(device.clone(), config, shape);
        let reach = self.log.reach();
        let mut search = Search::of(device, identity.database, shape);
        let floor = match self.logs() {
            true => self.find_in_log(&mut search, (life, retain), shape).await,
            false => self.find(&mut search, (life, reach), shape).await,
        };
        let cut = search.count_cut();
        if cut > 0 {
            let device = device.name();
            tracing::warn!(device, "the flash tier's file is shorter than its frames: {cut} frames are dropped");
        }
        self.count_restored(|r| r.inventory_nanos = self.env.now().0 - began.0);
        let floor = floor.map_err(|why| {
            self.detach();
            Some(why)
        })?;
        *self.floor.lock() = floor.min(retain);
        self.state.store(FlashState::Finding as u8, Ordering::Release);
        let began = self.env.now();
        let noted = floor >= retain || self.note_log(floor, retain).await;
        self.count_restored(|r| r.noting_nanos = self.env.now().0 - began.0);
        if !noted {
            self.detach();
            return Err(Some(Empty::Old));
        }
        Ok(())
    }

    /// The superblock of the life that ended.
    async fn find_superblock(&self, device: &DeviceRef, database: u128, life: u64) -> Result<Superblock, Empty> {
        let kin = |s: &Superblock| s.life == life || !self.safeguards.has(Safeguard::Lives);
        let found: Vec<Superblock> = superblocks(device, database).await.into_iter().flatten().collect();
        let why = if found.is_empty() { Empty::Damaged } else { Empty::OtherLife };
        let superblock = found.into_iter().filter(kin).max_by_key(|s| s.sequence).ok_or(why)?;
        let good = (1..=PARTITIONS as u32).contains(&superblock.parts);
        good.then_some(superblock).ok_or(Empty::Damaged)
    }

    /// The same by the log's records (`logged`): only with the device of the crash, which has a stamp of them for all
    /// of what the retain LSN has passed.
    pub(super) async fn find_in_log(
        &self,
        search: &mut Search<'_>,
        (life, retain): (u64, Lsn),
        shape: Shape,
    ) -> Result<Lsn, Empty> {
        let stamp = self.find_stamp(search.device, search.database).await.filter(|stamp| stamp.in_log);
        let stamp = stamp.ok_or(Empty::Unstamped)?;
        if stamp.life != life && !self.ancestors.lock().iter().any(|(life, _)| *life == stamp.life) {
            return Err(Empty::Unstamped); // The superblock is of this life.
        }
        if stamp.holds < retain && self.safeguards.has(Safeguard::Stamp) {
            return Err(Empty::Old);
        }
        self.find_logged(search, retain, shape).await.then_some(retain).ok_or(Empty::OtherShape)
    }

    /// Frames for the pages that sectors name; the least `since` of those that count.
    async fn find(&self, search: &mut Search<'_>, (life, reach): (u64, Lsn), shape: Shape) -> Result<Lsn, Empty> {
        let (device, database) = (search.device, search.database);
        let ancestors = self.ancestors.lock().clone();
        let bound = |other: u64| match other {
            _ if other == life || !self.safeguards.has(Safeguard::Lives) => Some(Lsn(u64::MAX)),
            _ => ancestors.iter().find(|(life, _)| *life == other).map(|(_, end)| *end),
        };
        // Whoever does not trust the device does not look at it.
        let hardens = self.running.read().config.restart.hardens_on_flash();
        let stamp = if hardens { self.find_stamp(device, database).await } else { None };
        let stamped = |sector: &Inventory| {
            let of_it = |stamp: &Stamp| (stamp.life, stamp.series) == (sector.life, sector.series);
            let holds = stamp.filter(of_it).map(|stamp| stamp.holds);
            holds.map(|holds| if self.safeguards.has(Safeguard::Stamp) { holds } else { Lsn(u64::MAX) })
        };
        let mut read = futures::stream::iter(0..layout::chunks(shape.sectors()))
            .map(|chunk| self.read_chunk_head(device, database, chunk))
            .buffered(IN_FLIGHT);
        let (mut floor, mut journal, mut last, mut why) = (None, Vec::new(), 0, Empty::Unlisted);
        while let Some((sectors, journaled)) = read.next().await {
            let counts = |sector: &Journal| sector.since >= reach && bound(sector.life).is_some();
            // Of others the numbers count. They may be many.
            let number =
                |sector: Journal| if counts(&sector) { sector } else { Journal { entries: Vec::new(), ..sector } };
            journal.extend(journaled.into_iter().map(number));
            // Behind those of this size there may be others, of a larger tier.
            for (number, sector) in sectors.into_iter().filter(|(number, _)| *number < shape.sectors()) {
                let here = u64::from(sector.index) * u64::from(shape.parts) + u64::from(sector.part);
                let Some(bound) = bound(sector.life).filter(|_| sector.parts == shape.parts && here == number) else {
                    continue;
                };
                (last, why) = (last.max(sector.journal), Empty::Old);
                let since = stamped(&sector).map_or(sector.since, |holds| holds.max(sector.since)).min(bound);
                if since >= reach {
                    self.find_listed(search, &sector, since, bound);
                    floor = Some(floor.map_or(since, |floor: Lsn| floor.min(since)));
                }
            }
        }
        let journaled = self.find_journaled(search, journal, shape, reach, last, bound).await;
        let floor = floor.into_iter().chain(journaled).min();
        if floor.is_none() && why == Empty::Unlisted {
            let stamp = self.find_stamp(device, database).await;
            why = if stamp.is_some_and(|s| s.in_log && s.life == life) { Empty::OtherMethod } else { why };
        }
        floor.ok_or(why)
    }

    fn find_listed(&self, search: &mut Search<'_>, sector: &Inventory, since: Lsn, bound: Lsn) {
        let mut partition = self.partition(sector.part).lock();
        let hardens = self.running.read().config.restart.hardens_on_flash();
        let named = if hardens { &sector.frames[..] } else { &[] };
        partition.listed(sector.index as usize, since, sector.journal, named);
        let first = sector.index as usize * ENTRIES;
        let mut found = 0;
        for (i, entry) in sector.frames.iter().enumerate() {
            let Some(entry) = entry.and_then(|entry| self.counts(entry, sector.part, bound)) else { continue };
            let frame = (first + i) as u32;
            if search.has(self, FrameId { part: sector.part, frame }) {
                found += u64::from(partition.find_again(frame, entry));
            }
        }
        self.count_restored(|r| r.listed += found);
    }

    /// What an entry of a life that ended at `bound` says of a frame of a partition, if it can be true.
    pub(super) fn counts(&self, entry: Entry, part: u32, bound: Lsn) -> Option<Entry> {
        let base = entry.base && self.safeguards.has(Safeguard::BaseEntries);
        let ours = entry.page.space == DATA && self.partition_of(entry.page) == part;
        (ours && entry.lsn <= bound).then_some(Entry { base, ..entry })
    }

    /// The sectors of inventory in a chunk that are good, with their numbers; and those of journal.
    pub(super) async fn read_chunk_head(
        &self,
        device: &DeviceRef,
        database: u128,
        chunk: u64,
    ) -> (Vec<(u64, Inventory)>, Vec<Journal>) {
        let (at, first) = (layout::chunk_at(chunk, self.page_size), chunk * SECTORS as u64);
        let there = (device.size().saturating_sub(at) / SECTOR as u64).min((SECTORS + JOURNAL) as u64) as usize;
        let mut found = (Vec::new(), Vec::new());
        if there == 0 {
            return found;
        }
        let mut decode = |i: usize, sector: &[u8]| match i < SECTORS {
            true => found.0.extend(Inventory::decode(sector, database).map(|sector| (first + i as u64, sector))),
            false => found.1.extend(Journal::decode(sector, database)),
        };
        if let Ok(all) = device.read(at, IoBuf::zeroed(there * SECTOR), Purpose::Flash).await {
            all.chunks_exact(SECTOR).enumerate().for_each(|(i, sector)| decode(i, sector));
            return found;
        }
        for i in 0..there {
            let read = device.read(at + (i * SECTOR) as u64, IoBuf::zeroed(SECTOR), Purpose::Flash).await;
            read.iter().for_each(|sector| decode(i, sector));
        }
        found
    }

    /// Notes the log from `from` to `to`, by segments' page tables where they have some; false where it has not got it
    /// all.
    async fn note_log(&self, from: Lsn, to: Lsn) -> bool {
        let noting = Noting { tier: self, to };
        self.log.walk(from, to, &noting, &mut &noting).await.unwrap_or(false)
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
    /// The cleaner brings home the pages of those that are bad. Statements need the device meanwhile, so it rests most
    /// of the time; not so where it is `pressed`, because the log has little room.
    pub(crate) async fn verify_found(&self, stop: impl Fn() -> bool, pressed: impl Fn() -> bool) {
        if self.hardens() {
            return; // Records that name them were hard when their frames were (`hardened`, invariants 3 and 4).
        }
        let mut unread = Vec::new();
        for part in 0..self.parts.load(Ordering::Acquire) {
            let dirty = self.partition(part).lock().unread_dirty();
            unread.extend(dirty.into_iter().map(|(frame, page)| (FrameId { part, frame }, page)));
        }
        unread.sort_unstable_by_key(|(at, _)| self.number(*at));
        for some in unread.chunks(IN_FLIGHT) {
            if !self.is_on() || stop() {
                return;
            }
            let began = self.env.now();
            let bad =
                join_all(some.iter().map(|&(at, page)| async move { (!self.verify(at, page).await).then_some(at) }));
            let bad: Vec<FrameId> = bad.await.into_iter().flatten().collect();
            if !bad.is_empty() {
                self.urgent.lock().extend(bad);
                self.wake_cleaner.notify_one();
            }
            if !pressed() {
                self.env.sleep(Duration::from_nanos(self.env.now().0.saturating_sub(began.0)) * RESTS).await;
            }
        }
    }

    /// Frames, and nothing in them.
    fn set_up(&self, device: DeviceRef, config: crate::config::FlashConfig, shape: Shape) {
        self.parts.store(shape.parts, Ordering::Release);
        for partition in &self.partitions[..shape.parts as usize] {
            let mut partition = partition.lock();
            partition.set_order(config.replacement);
            partition.set_turns(config.write.flow().rotates);
            partition.keep_bases(config.keeps_bases());
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
            assert!(partition.end_shrink(u64::MAX), "nobody uses a tier that is only being found");
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
