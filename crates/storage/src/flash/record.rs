//! What is known of a flash frame, in 24 bytes.
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
//! 2. The tag (the low 24 bits of the page's LSN) says which version was written, so older bytes that a lost write left
//!    are noticed.
//! 3. recLSNs are kept exactly: restart begins at one, and must find a batch there.

use crate::types::{Lsn, PageId, SpaceId};

/// No frame, no place.
pub(super) const NONE: u32 = u32::MAX;
const MAX_READERS: u8 = 15;

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
    rec_low: u32,
    /// The next record of the hash chain, or of the free list.
    pub(super) next: u32,
    /// Place in the dirty heap; `NONE` = not dirty.
    pub(super) at: u32,
    /// The tag, and above it the highest byte of the recLSN's 56 bits (64 PiB of log).
    tag_rec: u32,
    rec_mid: u16,
    space: u8,
    /// FrameState, `VOID`, readers.
    bits: u8,
}

const TAG: u32 = (1 << 24) - 1;
const STATE: u8 = 0b0111;
const VOID: u8 = 0b1000;
const READER: u8 = 0b1_0000;

impl Record {
    pub(super) const FREE: Record =
        Record { no: 0, rec_low: 0, next: NONE, at: NONE, tag_rec: 0, rec_mid: 0, space: 0, bits: 0 };

    pub(super) fn allocate(&mut self, page: PageId, tag: u32) {
        assert!(tag <= TAG);
        assert_eq!(self.state(), FrameState::Free);
        let space = u8::try_from(page.space.0).expect("tablespaces that the tier caches have small numbers");
        *self = Record { no: page.no, tag_rec: tag, space, bits: FrameState::Ready as u8, ..Record::FREE };
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

    pub(super) fn rec(&self) -> Lsn {
        let high = u64::from(self.tag_rec >> 24);
        Lsn(high << 48 | u64::from(self.rec_mid) << 32 | u64::from(self.rec_low))
    }

    pub(super) fn set_rec(&mut self, rec: Lsn) {
        let high = u8::try_from(rec.0 >> 48).expect("logs stay below 64 PiB");
        self.rec_low = rec.0 as u32;
        self.rec_mid = (rec.0 >> 32) as u16;
        self.tag_rec = self.tag() | u32::from(high) << 24;
    }

    pub(super) fn tag(&self) -> u32 {
        self.tag_rec & TAG
    }

    /// The tag of a page's version.
    pub(super) fn tag_of(lsn: Lsn) -> u32 {
        lsn.0 as u32 & TAG
    }
}
