//! The fixed parts of a segment: its header block, and the page index and footer that seal it. Format: ARCHITECTURE
//! section 4.
//!
//! The header block lies in the first 4 KiB of the slot. A sealed segment ends with its page index and a footer.
//!
//! Invariants:
//! 1. A segment belongs to one epoch. A reader goes on from segment N to N+1 only where N+1's header says that the
//!    stream before it ended exactly where the reader stands, and its epoch is not older. So what lies behind a lost or
//!    torn end is never read, however good it looks.
//! 2. Batches end, and index begins, on sectors of their own: sealing never writes a sector that holds batches.

use crate::bytes::{FromBytes, IntoBytes, U32, U64, U128, front, front_mut, layout};
use crate::error::{Result, StorageError};
use crate::head::{self, Head, Verdict};
use crate::types::{Lsn, PageId};
use terrace_device::{IoBuf, SECTOR};

/// Offset of a segment's first batch.
pub(crate) const FIRST: u64 = SECTOR as u64;
/// Offset of the first slot on the log device; the device's header lies before it.
const SLOTS_AT: u64 = SECTOR as u64;
const MAGIC: u64 = u64::from_le_bytes(*b"TERRALOG");
const FOOTER_MAGIC: u64 = u64::from_le_bytes(*b"TERRAIDX");
/// The CRC of the head covers all of this.
const COVERED: usize = size_of::<HeaderBlock>();
const FOOTER: usize = size_of::<Footer>();
const ENTRY: usize = size_of::<IndexEntry>();

layout! {
    /// The front of a slot's first sector.
    struct HeaderBlock: 64 {
        0 head: Head,
        16 database: U128,
        32 number: U64,
        40 epoch: U64,
        /// LSN where the stream before this segment ended.
        48 prev_end: U64,
        56 segment_size: U64,
    }
}

layout! {
    /// A page in the index that seals a segment. Entries ascend by page.
    struct IndexEntry: 16 {
        0 page: U64,
        /// LSN of the end of the page's last batch in this segment.
        8 end: U64,
    }
}

layout! {
    /// The last bytes of a sealed segment, behind the index.
    struct Footer: 64 {
        0 magic: U64,
        8 number: U64,
        16 epoch: U64,
        /// LSN of the end of the segment's last batch.
        24 end: U64,
        32 pages: U32,
        /// CRC-32C of the index.
        36 index_crc: U32,
        /// CRC-32C of this footer up to here.
        40 crc: U32,
        44 zeros: [u8; 20],
    }
}

/// The segment size, and what follows from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub(crate) segment_size: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    pub(crate) database: u128,
    pub(crate) number: u64,
    pub(crate) epoch: u64,
    /// Where the stream before this segment ended (invariant 1).
    pub(crate) prev_end: Lsn,
}

/// What seals a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seal {
    pub(crate) number: u64,
    pub(crate) epoch: u64,
    pub(crate) end: Lsn,
    /// Ascending by page.
    pub(crate) pages: Vec<(PageId, Lsn)>,
}

impl Geometry {
    pub(crate) fn number(self, lsn: Lsn) -> u64 {
        lsn.0 / self.segment_size
    }
    pub(crate) fn lsn(self, number: u64, offset: u64) -> Lsn {
        Lsn(number * self.segment_size + offset)
    }
    pub(crate) fn slot_at(self, slot: u32) -> u64 {
        SLOTS_AT + slot as u64 * self.segment_size
    }
    /// Slots on a device of `size` bytes, a last partial one included (the device may have been cut while it grew).
    pub(crate) fn slots(self, size: u64) -> u32 {
        size.saturating_sub(SLOTS_AT).div_ceil(self.segment_size) as u32
    }
    /// Slots that fit in `capacity` bytes.
    pub(crate) fn slots_within(self, capacity: u64) -> u32 {
        (capacity.saturating_sub(SLOTS_AT) / self.segment_size).min(u32::MAX as u64) as u32
    }
    /// Bytes for batches and their index entries whatever their mix: header, and the sectors on which batches and index
    /// round up, off.
    pub(crate) fn usable(self) -> u64 {
        self.segment_size - 4 * SECTOR as u64
    }
    /// The longest batch (with permits costing double, see `space`, two share a segment).
    pub(crate) fn max_batch(self) -> usize {
        (self.usable() / 2) as usize
    }
    /// Where the index of `pages` pages begins, rounded down to a sector.
    pub(crate) fn index_at(self, pages: usize) -> u64 {
        self.segment_size - ((FOOTER + pages * ENTRY) as u64).next_multiple_of(SECTOR as u64)
    }
    /// Whether batches up to `offset` and an index of `pages` leave each other alone (invariant 2).
    pub(crate) fn fits(self, offset: u64, pages: usize) -> bool {
        offset.next_multiple_of(SECTOR as u64) <= self.index_at(pages)
    }
}

impl SegmentHeader {
    pub(crate) fn encode(&self, geometry: Geometry, out: &mut [u8]) {
        out[..SECTOR].fill(0);
        *front_mut(out) = HeaderBlock {
            head: Head::default(),
            database: self.database.into(),
            number: self.number.into(),
            epoch: self.epoch.into(),
            prev_end: self.prev_end.0.into(),
            segment_size: geometry.segment_size.into(),
        };
        head::seal(out, MAGIC, COVERED);
    }

    /// The header of this database's segment in the block; `None` where there is none. An unknown version is refused.
    pub(crate) fn decode(
        block: &[u8],
        geometry: Geometry,
        database: u128,
        device: &str,
    ) -> Result<Option<SegmentHeader>> {
        match head::look(block, MAGIC, COVERED) {
            Verdict::Good => {}
            // Damaged: torn while the slot was taken into use; nothing in it was acknowledged.
            Verdict::Other | Verdict::Damaged => return Ok(None),
            Verdict::Unknown(version) => {
                let problem = head::unknown_version(version);
                return Err(StorageError::Foreign { file: device.to_string(), problem });
            }
        }
        let found: &HeaderBlock = front(block);
        if found.database != database || found.segment_size != geometry.segment_size {
            return Ok(None); // Left over from a database that `create` overwrote.
        }
        let (number, epoch, prev_end) = (found.number.get(), found.epoch.get(), Lsn(found.prev_end.get()));
        Ok(Some(SegmentHeader { database, number, epoch, prev_end }))
    }
}

impl Seal {
    /// The sectors that seal a segment; they go to `Geometry::index_at(pages)`.
    pub(crate) fn encode(&self, geometry: Geometry) -> IoBuf {
        let mut out = IoBuf::zeroed((geometry.segment_size - geometry.index_at(self.pages.len())) as usize);
        let footer = out.len() - FOOTER;
        let index = footer - self.pages.len() * ENTRY;
        for (i, (page, lsn)) in self.pages.iter().enumerate() {
            let entry = IndexEntry { page: page.to_u64().into(), end: lsn.0.into() };
            out[index + i * ENTRY..][..ENTRY].copy_from_slice(entry.as_bytes());
        }
        let index_crc = crc32c::crc32c(&out[index..footer]);
        let mut seal = Footer {
            magic: FOOTER_MAGIC.into(),
            number: self.number.into(),
            epoch: self.epoch.into(),
            end: self.end.0.into(),
            pages: (self.pages.len() as u32).into(),
            index_crc: index_crc.into(),
            crc: U32::ZERO,
            zeros: [0; 20],
        };
        seal.crc = seal.checksum().into();
        out[footer..].copy_from_slice(seal.as_bytes());
        out
    }

    /// How many pages the index behind this footer (the segment's last sector) has; `None` where the segment is not
    /// sealed.
    pub(crate) fn pages_in(last_sector: &[u8], header: &SegmentHeader) -> Option<usize> {
        Some(Footer::of(last_sector, header)?.pages.get() as usize)
    }

    /// The seal in the last bytes of a segment; `None` where it is not there or damaged (the batches serve without it).
    pub(crate) fn decode(tail: &[u8], header: &SegmentHeader) -> Option<Seal> {
        let footer = Footer::of(tail, header)?;
        let length = (footer.pages.get() as usize).checked_mul(ENTRY)?;
        let index = &tail[..tail.len() - FOOTER];
        let index = &index[index.len().checked_sub(length)?..];
        if footer.index_crc != crc32c::crc32c(index) {
            return None;
        }
        let page = |entry: &IndexEntry| (PageId::from_u64(entry.page.get()), Lsn(entry.end.get()));
        let pages = <[IndexEntry]>::ref_from_bytes(index).ok()?.iter().map(page).collect();
        Some(Seal { number: header.number, epoch: header.epoch, end: Lsn(footer.end.get()), pages })
    }
}

impl Footer {
    /// The footer in the last bytes of a segment; `None` where the segment is not sealed.
    fn of<'a>(tail: &'a [u8], header: &SegmentHeader) -> Option<&'a Footer> {
        let (_, footer) = Footer::ref_from_suffix(tail).ok()?;
        let good = footer.magic == FOOTER_MAGIC
            && footer.number == header.number
            && footer.epoch == header.epoch
            && footer.crc == footer.checksum();
        good.then_some(footer)
    }

    fn checksum(&self) -> u32 {
        crc32c::crc32c(&self.as_bytes()[..std::mem::offset_of!(Footer, crc)])
    }
}

#[cfg(test)]
mod tests;
