//! What is known of a flash frame, in 28 bytes.
//!
//! ```text
//!               allocate            write starts            write ends
//!       FREE ------------> READY ----------------> WRITING ------------> CLEAN
//!        ^                   |                        |     \                ^
//!        |                   | voided: freed when     |      `-> DIRTY       | home
//!        |                   v its transfer ends      v           | ^ fails  |
//!        `------------------------------------------------    LAZYCLEANING --'
//! ```
//!
//! A FREE frame may be a *base*: it still holds a version of a page that has a newer one (`partition::inventory`,
//! invariant 1).
//!
//! INVALID (CLEAN or DIRTY -> INVALID -> FREE): the page changed in memory, and the write policy keeps its frame for it
//! (thesis, section 3.5, iii). Nobody reads it.
//!
//! Source: thesis, section 4.2.2.2. Its READING is a count here, because a miss and the cleaner may read one frame at a
//! time. For a warm restart READY and WRITING count as FREE, READING as what lies under it, LAZYCLEANING as DIRTY
//! (section 4.3.2.4).
//!
//! Invariants:
//! 1. A frame is used again only when no transfer of it is under way. *Void* frames, which belong to no page any more,
//!    wait for that.
//! 2. The LSN says which version of the page was written, so older bytes that a lost write left are noticed.
//! 3. A frame is *unread* if this opening found it and nobody has read it since but the cleaner: it may hold something
//!    else by now.
//! 4. recLSNs are kept exactly: restart begins at one, and must find a batch there.

use crate::types::{Lsn, PageId, SpaceId};

/// No frame, no place.
pub(super) const NONE: u32 = u32::MAX;
const MAX_READERS: u8 = 7;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum FrameState {
    Free,
    /// Allocated; its bytes wait to be written.
    Ready,
    Writing,
    /// The same as on disk.
    Clean,
    /// Newer than on disk.
    Dirty,
    /// Dirty, on its way home.
    LazyCleaning,
    /// Kept for its page, which is newer in memory.
    Invalid,
}

#[derive(Clone, Copy)]
pub(super) struct Record {
    no: u32,
    /// The next record of the hash chain, or of the free list.
    pub(super) next: u32,
    /// Place in the dirty heap; `NONE` = not dirty.
    pub(super) at: u32,
    /// LSN and recLSN, 56 bits each (64 PiB of log).
    lsn_low: u32,
    rec_low: u32,
    lsn_mid: u16,
    rec_mid: u16,
    lsn_high: u8,
    rec_high: u8,
    space: u8,
    /// FrameState, `VOID`, `UNREAD` (of a free frame: `BASE`), readers.
    bits: u8,
}

const STATE: u8 = 0b0111;
const VOID: u8 = 0b1000;
const UNREAD: u8 = 0b1_0000;
const BASE: u8 = UNREAD;
const READER: u8 = 0b10_0000;

/// An LSN's 56 bits in three parts.
fn split(lsn: Lsn) -> (u32, u16, u8) {
    let high = u8::try_from(lsn.0 >> 48).expect("logs stay below 64 PiB");
    (lsn.0 as u32, (lsn.0 >> 32) as u16, high)
}

fn join(low: u32, mid: u16, high: u8) -> Lsn {
    Lsn(u64::from(high) << 48 | u64::from(mid) << 32 | u64::from(low))
}

impl Record {
    /// The highest LSN that a record can hold.
    pub(super) const MAX_LSN: Lsn = Lsn((1 << 56) - 1);
    pub(super) const FREE: Record = Record {
        no: 0,
        next: NONE,
        at: NONE,
        lsn_low: 0,
        rec_low: 0,
        lsn_mid: 0,
        rec_mid: 0,
        lsn_high: 0,
        rec_high: 0,
        space: 0,
        bits: 0,
    };

    pub(super) fn allocate(&mut self, page: PageId, lsn: Lsn) {
        assert_eq!(self.state(), FrameState::Free);
        let space = u8::try_from(page.space.0).expect("tablespaces that the tier caches have small numbers");
        *self = Record { no: page.no, space, bits: FrameState::Ready as u8, ..Record::FREE };
        (self.lsn_low, self.lsn_mid, self.lsn_high) = split(lsn);
    }

    /// Nobody's any more. What it holds is a base from now on.
    pub(super) fn free_base(&self) -> Record {
        Record {
            next: NONE,
            at: NONE,
            rec_low: 0,
            rec_mid: 0,
            rec_high: 0,
            bits: FrameState::Free as u8 | BASE,
            ..*self
        }
    }

    /// The older version of a page that the frame still holds, where the page has a newer one.
    pub(super) fn base(&self) -> Option<(PageId, Lsn)> {
        (self.state() == FrameState::Free && self.bits & BASE != 0).then(|| (self.page(), self.lsn()))
    }

    /// What a free frame holds is no base: its write failed, or never began.
    pub(super) fn forget_base(&mut self) {
        if self.state() == FrameState::Free {
            self.bits &= !BASE;
        }
    }

    pub(super) fn page(&self) -> PageId {
        PageId::new(SpaceId(self.space.into()), self.no)
    }

    pub(super) fn state(&self) -> FrameState {
        match self.bits & STATE {
            0 => FrameState::Free,
            1 => FrameState::Ready,
            2 => FrameState::Writing,
            3 => FrameState::Clean,
            4 => FrameState::Dirty,
            5 => FrameState::LazyCleaning,
            _ => FrameState::Invalid,
        }
    }

    pub(super) fn set_state(&mut self, state: FrameState) {
        self.bits = self.bits & !STATE | state as u8;
    }

    pub(super) fn is_void(&self) -> bool {
        self.bits & VOID != 0
    }

    pub(super) fn set_void(&mut self) {
        self.bits |= VOID;
    }

    pub(super) fn readers(&self) -> u8 {
        self.bits / READER
    }

    /// One reader more, if there may be one more.
    pub(super) fn pin(&mut self) -> bool {
        let room = self.readers() < MAX_READERS;
        if room {
            self.bits += READER;
        }
        room
    }

    pub(super) fn unpin(&mut self) {
        assert!(self.readers() > 0, "as many readers leave as came");
        self.bits -= READER;
    }

    /// Invariant 3.
    pub(super) fn is_unread(&self) -> bool {
        self.bits & UNREAD != 0
    }

    pub(super) fn set_unread(&mut self, unread: bool) {
        self.bits = if unread { self.bits | UNREAD } else { self.bits & !UNREAD };
    }

    pub(super) fn rec(&self) -> Lsn {
        join(self.rec_low, self.rec_mid, self.rec_high)
    }

    pub(super) fn set_rec(&mut self, rec: Lsn) {
        (self.rec_low, self.rec_mid, self.rec_high) = split(rec);
    }

    /// The page and the version that can be read from the frame, if there is one.
    pub(super) fn holds(&self) -> Option<(PageId, Lsn)> {
        let state = matches!(self.state(), FrameState::Clean | FrameState::Dirty | FrameState::LazyCleaning);
        (state && !self.is_void()).then(|| (self.page(), self.lsn()))
    }

    /// The LSN of the page's version in the frame.
    pub(super) fn lsn(&self) -> Lsn {
        join(self.lsn_low, self.lsn_mid, self.lsn_high)
    }
}
