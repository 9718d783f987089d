//! The journal of the inventory: frames that pages have entered lately, wherever they lie, one after the other. So what
//! has entered is on the device soon, whatever the size of the tier: a thousand frames take six sectors, where the
//! inventory's sectors of the same frames may be a thousand. Those follow at leisure.
//!
//! ```text
//!   a page enters a frame     noted: a bit
//!   a pass                    crowded sectors of inventory, and the other frames in sectors of journal; a sync
//!   the ring comes round      sectors of inventory whose frames a sector of journal names are written before another
//!                             takes its place
//!   a start                   inventory, then journal in the order of its numbers: the newer says what a frame holds
//! ```
//!
//! Source: ours; the thesis's pass over all records (section 4.3.4) takes longer the larger the tier is. The idea is
//! that of any log in front of a table.
//!
//! Invariants:
//! 1. A sector of journal says of its frames what one of inventory would (`layout`, invariants 1 and 5): `since` is
//!    read before the frames are looked at (`inventory`, invariant 1). So it may be lost, torn, or found in any order.
//! 2. A sector of journal is overwritten only when what it names is written, and synced, in the inventory. (That is for
//!    restarts to be short; nothing is lost without it: `floors`, invariant 2.)
//! 3. What a pass journals fits into the ring: of each sector of inventory `CROWDED` frames at most.
//! 4. Numbers only grow, over all lives that count. So of two statements about a frame the higher number is newer, and
//!    a sector of inventory says by what number it was written.

use super::attach::Search;
use super::inventory::{AT_MOST, Keeping};
use super::layout::{self, Entry, JOURNAL, JOURNALED, Journal};
use super::partition::Due;
use super::trouble::Trouble;
use super::tune::Shape;
use super::{FlashHome, FrameId};
use crate::sync::atomic::Ordering;
use crate::types::Lsn;
use futures::future::join_all;
use std::sync::Arc;
use terrace_device::{DeviceError, DeviceRef, Purpose, SECTOR};

/// A pass lists what the next ones overwrite, this part of the ring.
const AHEAD: u64 = 4;

impl FlashHome {
    /// Names all frames that have been written before this call, and syncs that (`floors`, invariant 4). Where it
    /// fails, the next pass does.
    pub(super) async fn journal_pass(&self, keeping: &mut Keeping) {
        self.begin_pass();
        keeping.failed = false;
        if !self.journal_entered(keeping).await || keeping.failed {
            return;
        }
        assert!(keeping.ring > 0, "what has entered was written");
        // Ahead of the next pass, so that this one's sync serves both.
        let ahead = (keeping.number + keeping.ring / AHEAD).saturating_sub(keeping.ring);
        self.list_due(keeping, Due { behind: ahead, ..Due::default() }).await;
        let idle = !keeping.unsynced && self.oldest_unhard().is_none();
        if idle {
            keeping.synced = self.env.now();
        } else if !keeping.failed && self.sync_inventory(keeping).await {
            keeping.listed_to = keeping.listed_to.max(ahead);
            self.end_pass();
        }
    }

    /// Whether all is written.
    async fn journal_entered(&self, keeping: &mut Keeping) -> bool {
        loop {
            let Some(device) = self.listable().filter(|_| self.is_on()) else { return false };
            if !self.is_ring(keeping, &device).await {
                return false;
            }
            self.list_due(keeping, Due { crowded: true, ..Due::default() }).await;
            let since = self.listed_since();
            let most = keeping.ring.min(AT_MOST) as usize * JOURNALED;
            let mut entries: Vec<(FrameId, Entry)> = Vec::new();
            for part in 0..self.parts.load(Ordering::Acquire) {
                let taken = self.partition(part).lock().journal((since, keeping.number), most - entries.len());
                entries.extend(taken.into_iter().map(|(frame, entry)| (FrameId { part, frame }, entry)));
            }
            let count = entries.len();
            if !self.write_journal(keeping, &device, since, entries).await {
                return false;
            }
            if count < most {
                return true;
            }
        }
    }

    /// Numbers have their places in the ring as it is now: where it has another size, each gets another place, so what
    /// the journal names is listed first. Where it is not known, what is there says the last number (invariant 4).
    async fn is_ring(&self, keeping: &mut Keeping, device: &DeviceRef) -> bool {
        let chunks = layout::chunks(self.shape().sectors());
        let ring = chunks * JOURNAL as u64;
        if keeping.ring == ring {
            return true;
        }
        if keeping.ring == 0 {
            keeping.number = keeping.number.max(self.read_number(device, chunks).await);
        }
        if !self.list_behind(keeping, u64::MAX).await {
            return false;
        }
        keeping.ring = ring;
        true
    }

    /// A number above all that the device has of this database.
    async fn read_number(&self, device: &DeviceRef, chunks: u64) -> u64 {
        let Some(identity) = self.identity.get() else { return 0 };
        let mut next = 0;
        for chunk in 0..chunks {
            let (sectors, journal) = self.read_chunk_head(device, identity.database, chunk).await;
            let above = |sector: &Journal| sector.number.saturating_add(1 + u64::from(sector.ring));
            let written = sectors.iter().map(|(_, sector)| sector.journal);
            next = journal.iter().map(above).chain(written).fold(next, u64::max);
        }
        next
    }

    /// A part of the ring is about to go: what the journal names is in the inventory. Whether that is so.
    pub(super) async fn leave_journal(&self) -> bool {
        let mut keeping = self.keeping.lock().await;
        keeping.failed = false;
        if !self.has_two_floors() {
            return true; // There is none, or nothing relies on it.
        }
        let Some(device) = self.listable() else { return false };
        self.is_ring(&mut keeping, &device).await
    }

    /// Writes all sectors of inventory that are due.
    async fn list_due(&self, keeping: &mut Keeping, due: Due) {
        while !keeping.failed && self.list(keeping, due, AT_MOST).await == AT_MOST {}
        keeping.failed |= !self.is_on();
    }

    /// Invariant 2: what the journal names below a number is in the inventory; whether that is so now.
    async fn list_behind(&self, keeping: &mut Keeping, behind: u64) -> bool {
        if behind > keeping.listed_to {
            self.list_due(keeping, Due { behind, ..Due::default() }).await;
            if keeping.failed || keeping.unsynced && !self.sync_inventory(keeping).await {
                return false;
            }
            keeping.listed_to = behind.min(keeping.number);
        }
        true
    }

    async fn write_journal(
        &self,
        keeping: &mut Keeping,
        device: &DeviceRef,
        since: Lsn,
        entries: Vec<(FrameId, Entry)>,
    ) -> bool {
        let Some(identity) = self.identity.get() else { return false };
        let (life, ring, parts) = (self.life.load(Ordering::Acquire), keeping.ring, self.parts.load(Ordering::Acquire));
        let count = entries.len().div_ceil(JOURNALED) as u64;
        let first = keeping.number;
        keeping.number += count;
        if !self.list_behind(keeping, keeping.number.saturating_sub(ring)).await {
            entries.iter().for_each(|(at, _)| self.partition(at.part).lock().unlist(at.frame));
            return false;
        }
        self.spend(count * SECTOR as u64);
        keeping.unsynced |= count > 0;
        let sector = |(entries, number): (&[_], u64)| Journal {
            life,
            since,
            number,
            ring: ring as u32,
            parts,
            entries: entries.to_vec(),
        };
        let sectors: Vec<Journal> = entries.chunks(JOURNALED).zip(first..).map(sector).collect();
        let mut good = true;
        for some in sectors.chunks(AT_MOST as usize) {
            let writes = some.iter().map(|sector| {
                let at = layout::journal_at(sector.number, ring, self.page_size);
                device.write(at, sector.encode(identity.database), Purpose::Flash)
            });
            for (sector, written) in some.iter().zip(join_all(writes).await) {
                good &= self.is_journaled(device, sector, written.map(drop));
            }
        }
        good
    }

    /// Settles the write of a sector; whether it succeeded.
    fn is_journaled(&self, device: &DeviceRef, sector: &Journal, written: Result<(), DeviceError>) -> bool {
        let Err(error) = written else {
            self.note_success();
            return true;
        };
        sector.entries.iter().for_each(|(at, _)| self.partition(at.part).lock().unlist(at.frame));
        // Where the tier has got another device meanwhile, this one's troubles are over.
        if self.device().is_some_and(|now| Arc::ptr_eq(&now, device)) {
            self.note_failure(Trouble::Write, &"the inventory's journal", &error);
        }
        false
    }

    /// A start: frames for what these sectors name, where that is newer than what the inventory says. Answers the least
    /// `since` that counts. `last`: the highest number in the inventory; `bound`: where a life ended, if it counts.
    pub(super) async fn find_journaled(
        &self,
        search: &mut Search<'_>,
        mut journal: Vec<Journal>,
        shape: Shape,
        reach: Lsn,
        last: u64,
        bound: impl Fn(u64) -> Option<Lsn>,
    ) -> Option<Lsn> {
        journal.retain(|sector| bound(sector.life).is_some() && sector.parts == shape.parts);
        journal.sort_unstable_by_key(|sector| sector.number);
        let ring = layout::chunks(shape.sectors()) * JOURNAL as u64;
        let same = journal.iter().all(|sector| u64::from(sector.ring) == ring);
        let next = journal.last().map_or(0, |sector| sector.number.saturating_add(1));
        {
            let mut keeping = self.keeping.lock().await;
            (keeping.number, keeping.ring) = (keeping.number.max(next).max(last), if same { ring } else { 0 });
        }
        let mut floor = None;
        let (mut found, mut replaced) = (0, 0);
        for sector in journal {
            let Some(bound) = bound(sector.life) else { continue };
            let since = sector.since.min(bound);
            if since < reach {
                continue;
            }
            for (at, entry) in sector.entries {
                let Some(entry) = self.counts(entry, at.part, bound).filter(|_| at.part < shape.parts) else {
                    continue;
                };
                if !search.has(self, at) {
                    continue;
                }
                let (now, before) = self.partition(at.part).lock().find_journaled(sector.number, at.frame, entry);
                (found, replaced) = (found + u64::from(now), replaced + u64::from(before));
                if now {
                    floor = Some(floor.map_or(since, |floor: Lsn| floor.min(since)));
                }
            }
        }
        self.count_restored(|r| r.listed = r.listed + found - replaced);
        floor
    }

    /// Of the tier as it is.
    fn shape(&self) -> Shape {
        Shape { parts: self.parts.load(Ordering::Acquire), each: self.partition(0).lock().frames() }
    }
}
