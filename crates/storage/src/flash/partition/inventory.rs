//! What a restart needs of a partition: the inventory that is written of it, and the frames that were found by
//! one.
//!
//! Frames that are *found* stand in the state READY until all of the log was noted. Nobody reads them until then, and
//! they are in no replacement order.
//!
//! Invariants:
//! 1. A frame of an older version is kept as a *base* if the log goes on from exactly that version: recovery has the
//!    page's later changes. The tier itself then knows the page as it was before them. So an entry may name what a free
//!    frame still holds of a page that has changed in memory since. Such an entry counts only if the log shows that it
//!    is a base, or that nothing changed the page after all (what did was lost with the log's end).

use super::Partition;
use crate::flash::FrameId;
use crate::flash::layout::{ENTRIES, Entry, JOURNAL, JOURNALED, SECTORS};
use crate::flash::logged::{GROUP, Record as Logged};
use crate::flash::record::{FrameState, Record};
use crate::sync::atomic::Ordering;
use crate::types::{Lsn, PageId};

/// Frames of a sector, a bit each.
#[derive(Clone, Copy, Default)]
struct Frames([u64; ENTRIES.div_ceil(64)]);

impl Frames {
    fn all() -> Frames {
        let mut all = Frames::default();
        (0..ENTRIES).for_each(|at| all.set(at));
        all
    }

    fn set(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    fn clear(&mut self, at: usize) {
        self.0[at / 64] &= !(1 << (at % 64));
    }

    fn has(&self, at: usize) -> bool {
        self.0[at / 64] & 1 << (at % 64) != 0
    }

    fn count(&self) -> u32 {
        self.0.iter().map(|bits| bits.count_ones()).sum()
    }
}

/// A sector of inventory.
#[derive(Clone, Copy, Default)]
pub(super) struct Sector {
    /// What it holds for, on the device; 0: it is not there.
    since: Lsn,
    /// A page has entered one of its frames since.
    changed: bool,
    /// Of those frames: the ones that the journal does not name yet, a bit each; the first number of a sector of
    /// journal that names others.
    entered: Frames,
    journaled: Option<u64>,
    /// Sectors of journal below this number lie before it.
    journal: u64,
    /// All records are being written (`hardened`, invariant 7), and this is one of them.
    awaited: bool,
    /// Of a series of hardened records: the frames that the device names, or may, a bit each; one of them has become
    /// void since; the last ticket.
    named: Frames,
    voided: bool,
    pub(super) ticket: u64,
}

/// A sector as it is to be written.
pub(in crate::flash) struct Listed {
    pub(in crate::flash) frames: Vec<Option<Entry>>,
    /// A frame that the device names is void: the write must not be lost.
    pub(in crate::flash) voided: bool,
}

impl Sector {
    /// It is written now.
    fn written(self, since: Lsn, journal: u64) -> Sector {
        Sector { since, journal, ticket: self.ticket, ..Sector::default() }
    }
}

/// Sectors of which more frames than this have changed are written themselves, not journaled. So all that a pass
/// journals fits into the ring: 31 entries for each sector, of which it has room for 42 (`journal`, invariant 3).
const CROWDED: u32 = ENTRIES as u32 / 8;
const _: () = assert!(CROWDED as usize * SECTORS <= (JOURNAL - 1) * JOURNALED);

/// Which sectors are to be written.
#[derive(Clone, Copy, Default)]
pub(in crate::flash) struct Due {
    /// Those that hold for less.
    pub(in crate::flash) old: Lsn,
    /// Those that have changed.
    pub(in crate::flash) changed: bool,
    /// Those of which the journal names frames below this number.
    pub(in crate::flash) behind: u64,
    /// Those that are not to be journaled.
    pub(in crate::flash) crowded: bool,
}

/// What a batch does to a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted {
    pub(crate) start: Lsn,
    pub(crate) end: Lsn,
    /// If redo repeats it, the disk need not have it. Then: the page's LSN before it; `None` if it needs no earlier
    /// content.
    pub(crate) redo: Option<Option<Lsn>>,
}

/// No frame has a page's changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::flash) struct Lacks {
    /// Where they begin, or earlier.
    pub(in crate::flash) since: Lsn,
    /// It had an older version.
    pub(in crate::flash) dropped: bool,
}

/// What the log has said of a frame that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said {
    Nothing,
    /// Nothing, and that is not enough (invariant 1).
    OnlyBase,
    /// Its version was met.
    Met,
    /// The page goes on from its version (invariant 1).
    Base,
}

/// What became of a frame that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::flash) enum Found {
    /// It is its page's, and the disk has the same.
    Clean,
    /// The disk may have an older version.
    Dirty,
    /// The log has newer changes, which begin with its version (invariant 1).
    Base,
    /// The log has a newer version, or the page was needed otherwise.
    Older,
    /// Its version is not in the log.
    Unknown,
}

/// What is said of a frame. `bases`: also of a free one.
fn entry(record: &Record, bases: bool) -> Option<Entry> {
    let base = || record.base().filter(|_| bases).map(|(page, lsn)| Entry { page, lsn, base: true });
    record.holds().map(|(page, lsn)| Entry::of(page, lsn)).or_else(base)
}

impl Partition {
    /// A page has entered the frame: its sector is to be written, or a record.
    pub(super) fn entered(&mut self, frame: u32) {
        self.unlist(frame);
        if let Some(part) = self.logged {
            self.name_frame(frame);
            let record = self.record(frame);
            let frames = vec![Some((record.page(), record.lsn()))];
            self.totals.queue.push(Logged::Hold { first: FrameId { part, frame }, frames });
        }
    }

    pub(super) fn resize_sectors(&mut self, frames: u32) {
        self.sectors.resize((frames as usize).div_ceil(ENTRIES), Sector::default());
    }

    /// The first sector at or behind `from` that is due.
    pub(in crate::flash) fn next_due(&self, from: usize, due: Due) -> Option<usize> {
        let old = |sector: &Sector| sector.since < due.old && (sector.changed || sector.since > Lsn(0));
        let behind = |sector: &Sector| sector.journaled.is_some_and(|number| number < due.behind);
        let crowded = |sector: &Sector| due.crowded && sector.entered.count() > CROWDED;
        let is_due = |s: &Sector| due.changed && s.changed || old(s) || behind(s) || crowded(s);
        (from..self.sectors.len()).find(|&index| is_due(&self.sectors[index]))
    }

    /// What a sector says now; it counts as written. `since`: the redo LSN as it was recorded before this call;
    /// `journal`: the next number of a sector of journal. `hard`: it is of a series.
    pub(in crate::flash) fn list(&mut self, index: usize, (since, journal): (Lsn, u64), hard: bool) -> Listed {
        let voided = self.sectors[index].voided;
        self.sectors[index] = self.sectors[index].written(since, journal);
        let first = index * ENTRIES;
        let frames = &self.records[first..(first + ENTRIES).min(self.records.len())];
        let bases = self.keeps_bases && !hard;
        let frames: Vec<Option<Entry>> = frames.iter().map(|record| entry(record, bases)).collect();
        if hard {
            self.name(index, &frames);
        }
        Listed { frames, voided }
    }

    /// Up to `most` frames that pages have entered, and neither inventory nor journal names; they count as journaled by
    /// sectors with this number or higher ones, which hold for this much.
    pub(in crate::flash) fn journal(&mut self, (since, number): (Lsn, u64), most: usize) -> Vec<(u32, Entry)> {
        let mut taken = Vec::new();
        for (index, sector) in self.sectors.iter_mut().enumerate().filter(|(_, sector)| sector.entered.count() > 0) {
            let first = index * ENTRIES;
            for at in (0..ENTRIES).filter(|at| sector.entered.has(*at)).collect::<Vec<_>>() {
                if taken.len() == most {
                    return taken;
                }
                sector.entered.clear(at);
                sector.journaled = sector.journaled.or(Some(number));
                sector.since = sector.since.min(since);
                let entry = self.records.get(first + at).and_then(|record| entry(record, self.keeps_bases));
                taken.extend(entry.map(|entry| ((first + at) as u32, entry)));
            }
        }
        taken
    }

    /// Neither inventory nor journal says what the frame holds now.
    pub(in crate::flash) fn unlist(&mut self, frame: u32) {
        if let Some(sector) = self.sectors.get_mut(frame as usize / ENTRIES) {
            sector.changed = true;
            sector.entered.set(frame as usize % ENTRIES);
        }
    }

    /// What the device was to say of frames it need not say.
    pub(in crate::flash) fn rewrite(&mut self) {
        for sector in self.sectors.iter_mut().filter(|sector| sector.changed || sector.since > Lsn(0)) {
            (sector.changed, sector.entered) = (true, Frames::all());
        }
    }

    /// A sector of journal with this number says what the frame may hold: in place of what the inventory says, if that
    /// was written before. Whether it does now, and did before.
    pub(in crate::flash) fn find_journaled(&mut self, number: u64, frame: u32, entry: Entry) -> (bool, bool) {
        let index = frame as usize / ENTRIES;
        if frame >= self.frames() || self.sectors[index].journal > number {
            return (false, false);
        }
        let sector = &mut self.sectors[index];
        (sector.changed, sector.journaled) = (true, sector.journaled.or(Some(number)));
        let before = self.record(frame).state() == FrameState::Ready;
        if before {
            self.unfound(frame);
        }
        (self.find_again(frame, entry), before)
    }

    /// The device names these frames of a sector.
    fn name(&mut self, index: usize, frames: &[Option<Entry>]) {
        let named = frames.iter().enumerate().filter(|(_, frame)| frame.is_some());
        named.for_each(|(at, _)| self.sectors[index].named.set(at));
    }

    /// The device, or the log, names the frame.
    pub(in crate::flash) fn name_frame(&mut self, frame: u32) {
        self.sectors[frame as usize / ENTRIES].named.set(frame as usize % ENTRIES);
    }

    /// A frame is void, or given to another page: if it is named, its sector is to be written, or a record (`hardened`,
    /// invariant 1).
    pub(super) fn note_void(&mut self, frame: u32) {
        let (sector, at) = (&mut self.sectors[frame as usize / ENTRIES], frame as usize % ENTRIES);
        if !sector.named.has(at) {
            return;
        }
        sector.named.clear(at);
        (sector.changed, sector.voided) = (true, true);
        sector.ticket = match self.logged {
            None => self.totals.queue.ticket(),
            Some(part) => {
                let first = FrameId { part, frame };
                self.totals.queue.push_vital(Logged::Hold { first, frames: vec![None] })
            }
        };
    }

    /// From now on records go to the log (`None`: no more), of a partition with this number.
    pub(in crate::flash) fn log_as(&mut self, part: Option<u32>) {
        self.logged = part;
    }

    /// A record of what a group of frames holds.
    pub(in crate::flash) fn log_table(&mut self, first: u32) {
        let Some(part) = self.logged else { return };
        let end = (first + GROUP).min(self.frames());
        let frames: Vec<_> = (first..end).map(|frame| self.record(frame).holds()).collect();
        // Frames that were named and are void: the record says so, too.
        let ticket = self.totals.queue.push_vital(Logged::Hold { first: FrameId { part, frame: first }, frames });
        for frame in first..end {
            let (held, at) = (self.record(frame).holds().is_some(), frame as usize % ENTRIES);
            let sector = &mut self.sectors[frame as usize / ENTRIES];
            match held {
                true => sector.named.set(at),
                false => sector.named.clear(at),
            }
            sector.ticket = ticket;
        }
    }

    /// What must be hard before the frame is overwritten (`hardened`, invariant 3).
    pub(in crate::flash) fn ticket(&self, frame: u32) -> u64 {
        self.sectors[frame as usize / ENTRIES].ticket
    }

    /// A series has ended.
    pub(in crate::flash) fn unname(&mut self) {
        self.sectors.iter_mut().for_each(|sector| sector.named = Default::default());
    }

    /// The sector lies on the device with these entries, holds for this much, and was written before the journal's
    /// sector with this number.
    pub(in crate::flash) fn listed(&mut self, index: usize, since: Lsn, journal: u64, frames: &[Option<Entry>]) {
        self.sectors[index] = self.sectors[index].written(since, journal);
        self.name(index, frames);
    }

    /// All records begin to be written: sectors that have changed are awaited.
    pub(in crate::flash) fn await_changed(&mut self) {
        self.sectors.iter_mut().for_each(|sector| sector.awaited |= sector.changed);
    }

    pub(in crate::flash) fn is_awaited(&self) -> bool {
        self.sectors.iter().any(|sector| sector.awaited)
    }

    /// All sectors that lie on the device are to be written again.
    pub(in crate::flash) fn relist(&mut self) {
        self.sectors.iter_mut().filter(|sector| sector.since > Lsn(0)).for_each(|sector| sector.changed = true);
    }

    /// The sector could not be written.
    pub(in crate::flash) fn unlisted(&mut self, index: usize) {
        if let Some(sector) = self.sectors.get_mut(index) {
            *sector = Sector { changed: true, entered: Frames::all(), awaited: true, ..sector.written(Lsn(0), 0) };
        }
    }

    /// A frame may hold this version of the page. Of two that do the newer counts; whether this one does. What no log
    /// can have is damage.
    pub(in crate::flash) fn find_again(&mut self, frame: u32, Entry { page, lsn, base }: Entry) -> bool {
        if frame >= self.frames() || self.record(frame).state() != FrameState::Free || lsn > Record::MAX_LSN {
            return false;
        }
        if let Some(other) = self.find(page) {
            let rank = |lsn: Lsn, base: bool| (lsn, !base);
            if rank(self.record(other).lsn(), self.said[other as usize] == Said::OnlyBase) >= rank(lsn, base) {
                return false;
            }
            self.unfound(other);
        }
        if self.said.is_empty() {
            self.said = vec![Said::Nothing; self.records.len()];
        }
        self.said[frame as usize] = if base { Said::OnlyBase } else { Said::Nothing };
        self.totals.used.fetch_add(1, Ordering::AcqRel);
        self.at(frame).allocate(page, lsn);
        self.index(frame);
        true
    }

    fn unfound(&mut self, frame: u32) {
        if self.record(frame).at != super::NONE {
            self.dirty_remove(frame);
        }
        self.unindex(frame);
        *self.at(frame) = Record::FREE;
        self.totals.used.fetch_sub(1, Ordering::AcqRel);
    }

    /// A batch changes the page; in the log's order. `Some`: its frame is of no use, after all; and whether redo has
    /// passed over changes that it was to have.
    pub(in crate::flash) fn note(&mut self, page: PageId, batch: Noted) -> Option<bool> {
        let frame = self.find(page)?;
        let (lsn, said) = (self.record(frame).lsn(), self.said[frame as usize]);
        if batch.end > lsn {
            let met = matches!(said, Said::Met | Said::Base);
            let goes_on = batch.redo.flatten().is_some_and(|before| before == lsn || met);
            if !goes_on {
                let begins_afresh = batch.redo == Some(None);
                let missed = self.record(frame).at != super::NONE && !begins_afresh;
                self.unfound(frame);
                return Some(missed);
            }
            self.said[frame as usize] = Said::Base;
            return None;
        }
        if batch.end == lsn {
            self.said[frame as usize] = Said::Met;
        }
        if batch.redo.is_some() && self.record(frame).at == super::NONE {
            self.at(frame).set_rec(batch.start);
            self.dirty_push(frame);
        }
        None
    }

    /// The page was changed between `since` and `last`, and redo does not repeat that: the disk need not have it.
    /// `Err`: nor has a frame; since when. In the log's order. `is_version`: a change that is noted made this version,
    /// and all later ones are noted; up to the `floor`, what an entry names as its page's newest was that.
    pub(in crate::flash) fn note_kept(
        &mut self,
        page: PageId,
        since: Lsn,
        last: Lsn,
        is_version: impl Fn(Lsn) -> bool,
        floor: Lsn,
    ) -> Result<(), Lacks> {
        let Some(frame) = self.find(page) else { return Err(Lacks { since, dropped: false }) };
        let record = self.record(frame);
        let (lsn, before) = (record.lsn(), (record.at != super::NONE).then(|| record.rec()));
        let (begins, since) = (since, before.map_or(since, |before| before.min(since)));
        // What changed the page next is one of these changes, or a later one. Of a base it may be one that nobody has
        // noted, however old its version (invariant 1).
        let said = self.said[frame as usize];
        let was_newest = lsn <= floor && said != Said::OnlyBase;
        let goes_on = matches!(said, Said::Met | Said::Base) || was_newest || is_version(lsn);
        if last > lsn && !goes_on {
            self.unfound(frame);
            return Err(Lacks { since, dropped: true });
        }
        match last.cmp(&lsn) {
            std::cmp::Ordering::Greater => self.said[frame as usize] = Said::Base,
            std::cmp::Ordering::Equal => self.said[frame as usize] = Said::Met,
            std::cmp::Ordering::Less => {}
        }
        if begins < lsn && before != Some(since) {
            before.is_some().then(|| self.dirty_remove(frame));
            self.at(frame).set_rec(since);
            self.dirty_push(frame);
        }
        if last > lsn { Err(Lacks { since, dropped: false }) } else { Ok(()) }
    }

    /// Whether the page's frame, which an opening has found, has its changes up to `end`.
    pub(in crate::flash) fn found_with(&self, page: PageId, end: Lsn) -> bool {
        self.find(page).is_some_and(|frame| self.record(frame).lsn() >= end)
    }

    /// All of the log from `floor` to its end was noted: the frames that hold what they should can be read. Returns the
    /// pages of which redo has passed over changes that no frame has. (No frame is void: nobody has changed a page
    /// yet.)
    pub(in crate::flash) fn end_finding(&mut self, floor: Lsn, end: Lsn, mut tell: impl FnMut(Found)) -> Vec<PageId> {
        let mut missed = Vec::new();
        let said = std::mem::take(&mut self.said);
        for frame in 0..self.frames() {
            let record = self.record(frame);
            let (page, lsn) = (record.page(), record.lsn());
            match record.state() {
                FrameState::Ready if lsn > end || lsn > floor && said[frame as usize] == Said::Nothing => {
                    missed.extend((record.at != super::NONE).then_some(page));
                    self.unfound(frame);
                    tell(Found::Unknown);
                }
                FrameState::Ready if said[frame as usize] == Said::OnlyBase => {
                    missed.extend((record.at != super::NONE).then_some(page));
                    self.unfound(frame);
                    tell(Found::Older);
                }
                FrameState::Ready => {
                    let dirty = record.at != super::NONE;
                    self.at(frame).set_state(if dirty { FrameState::Dirty } else { FrameState::Clean });
                    self.at(frame).set_unread(true);
                    self.order.admit(frame, page.to_u64(), !dirty);
                    tell(match said[frame as usize] {
                        Said::Base => Found::Base,
                        _ if dirty => Found::Dirty,
                        _ => Found::Clean,
                    });
                }
                _ => {}
            }
        }
        self.list_free();
        missed
    }

    /// Forgets everything that was found.
    pub(in crate::flash) fn forget_found(&mut self) {
        self.said = Vec::new();
        for frame in 0..self.frames() {
            if self.record(frame).state() == FrameState::Ready {
                self.unfound(frame); // None is void: nobody has changed a page yet.
            }
        }
    }

    /// The frame was read, and holds what it should.
    pub(in crate::flash) fn set_read(&mut self, frame: u32) {
        self.at(frame).set_unread(false);
    }

    /// Dirty frames that this opening has not read.
    pub(in crate::flash) fn unread_dirty(&self) -> Vec<(u32, PageId)> {
        let unread = |frame: &u32| self.record(*frame).is_unread();
        self.dirty.iter().copied().filter(unread).map(|frame| (frame, self.record(frame).page())).collect()
    }
}
