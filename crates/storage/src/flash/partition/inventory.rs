//! What a restart needs of a partition: the inventory that is written of it, and the frames that were found by
//! one.
//!
//! Frames that are *found* stand in the state READY until all of the log was noted. Nobody reads them until then, and
//! they are in no replacement order.

use super::Partition;
use crate::flash::layout::ENTRIES;
use crate::flash::record::{FrameState, Record};
use crate::sync::atomic::Ordering;
use crate::types::{Lsn, PageId};

/// A sector of inventory.
#[derive(Clone, Copy, Default)]
pub(super) struct Sector {
    /// What it holds for, on the device; 0: it is not there.
    since: Lsn,
    /// A page has entered one of its frames since.
    changed: bool,
}

/// Which sectors are to be written.
#[derive(Clone, Copy)]
pub(in crate::flash) struct Due {
    /// Those that hold for less.
    pub(in crate::flash) old: Lsn,
    /// Those that have changed.
    pub(in crate::flash) changed: bool,
}

/// What became of a frame that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::flash) enum Found {
    /// It is its page's, and the disk has the same.
    Clean,
    /// The disk may have an older version.
    Dirty,
    /// The log has a newer version, or the page was needed otherwise.
    Older,
    /// Its version is not in the log.
    Unknown,
}

impl Partition {
    /// A page has entered the frame: its sector is to be written.
    pub(super) fn entered(&mut self, frame: u32) {
        self.sectors[frame as usize / ENTRIES].changed = true;
    }

    pub(super) fn resize_sectors(&mut self, frames: u32) {
        self.sectors.resize((frames as usize).div_ceil(ENTRIES), Sector::default());
    }

    /// The first sector at or behind `from` that is due.
    pub(in crate::flash) fn next_due(&self, from: usize, due: Due) -> Option<usize> {
        let old = |sector: &Sector| sector.since < due.old && (sector.changed || sector.since > Lsn(0));
        let is_due = |sector: &Sector| due.changed && sector.changed || old(sector);
        (from..self.sectors.len()).find(|&index| is_due(&self.sectors[index]))
    }

    /// What a sector says now; it counts as written. `since`: the redo LSN as it was recorded before this call.
    pub(in crate::flash) fn list(&mut self, index: usize, since: Lsn) -> Vec<Option<(PageId, Lsn)>> {
        self.sectors[index] = Sector { since, changed: false };
        let first = index * ENTRIES;
        let frames = &self.records[first..(first + ENTRIES).min(self.records.len())];
        let held = |r: &Record| {
            let state = matches!(r.state(), FrameState::Clean | FrameState::Dirty | FrameState::LazyCleaning);
            (state && !r.is_void()).then(|| (r.page(), r.lsn()))
        };
        frames.iter().map(held).collect()
    }

    /// The sector lies on the device, and holds for this much.
    pub(in crate::flash) fn listed(&mut self, index: usize, since: Lsn) {
        self.sectors[index] = Sector { since, changed: false };
    }

    /// The sector could not be written.
    pub(in crate::flash) fn unlisted(&mut self, index: usize) {
        if let Some(sector) = self.sectors.get_mut(index) {
            *sector = Sector { since: Lsn(0), changed: true };
        }
    }

    /// A frame may hold this version of the page. Of two that do the newer counts; whether this one does.
    pub(in crate::flash) fn find_again(&mut self, frame: u32, page: PageId, lsn: Lsn) -> bool {
        if frame >= self.frames() || self.record(frame).state() != FrameState::Free {
            return false;
        }
        if let Some(other) = self.find(page) {
            if self.record(other).lsn() >= lsn {
                return false;
            }
            self.unfound(other);
        }
        if self.met.is_empty() {
            self.met = vec![false; self.records.len()];
        }
        self.met[frame as usize] = false;
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

    /// A batch from `start` to `end` changes the page; in the log's order. `redo`: it counts as repeated, so the disk
    /// need not have it. Whether a frame was found to be older.
    pub(in crate::flash) fn note(&mut self, page: PageId, (start, end): (Lsn, Lsn), redo: bool) -> bool {
        let Some(frame) = self.find(page) else { return false };
        let lsn = self.record(frame).lsn();
        if end > lsn {
            self.unfound(frame);
            return true;
        }
        self.met[frame as usize] |= end == lsn;
        if redo && self.record(frame).at == super::NONE {
            self.at(frame).set_rec(start);
            self.dirty_push(frame);
        }
        false
    }

    /// All of the log from `floor` to its end was noted: the frames that hold what they should can be read.
    pub(in crate::flash) fn end_finding(&mut self, floor: Lsn, end: Lsn, mut tell: impl FnMut(Found)) {
        let met = std::mem::take(&mut self.met);
        for frame in 0..self.frames() {
            let record = self.record(frame);
            let (page, lsn) = (record.page(), record.lsn());
            match record.state() {
                FrameState::Ready if record.is_void() => {
                    *self.at(frame) = Record::FREE;
                    self.totals.used.fetch_sub(1, Ordering::AcqRel);
                    tell(Found::Older);
                }
                FrameState::Ready if lsn > end || lsn > floor && !met[frame as usize] => {
                    self.unfound(frame);
                    tell(Found::Unknown);
                }
                FrameState::Ready => {
                    let dirty = record.at != super::NONE;
                    self.at(frame).set_state(if dirty { FrameState::Dirty } else { FrameState::Clean });
                    self.at(frame).set_unread(true);
                    self.order.admit(frame, page.to_u64(), !dirty);
                    tell(if dirty { Found::Dirty } else { Found::Clean });
                }
                _ => {}
            }
        }
        self.list_free();
    }

    /// Forgets everything that was found.
    pub(in crate::flash) fn forget_found(&mut self) {
        self.met = Vec::new();
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

    /// An opening found nothing good in a dirty page's frame. The page is redone.
    pub(in crate::flash) fn lose(&mut self, frame: u32) {
        self.drop_frame(frame);
    }

    /// Dirty frames that this opening has not read.
    pub(in crate::flash) fn unread_dirty(&self) -> Vec<PageId> {
        self.dirty.iter().map(|&frame| self.record(frame)).filter(|r| r.is_unread()).map(Record::page).collect()
    }
}
