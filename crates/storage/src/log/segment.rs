//! The fixed parts of a segment: its header block, and the page index and footer that seal it. Format: ARCHITECTURE section 4.
//!
//! Header block, little-endian, in the first 4 KiB of the slot:
//!
//! ```text
//!  0 magic, version, CRC of 16..64 (head.rs)
//! 16 u128 database id   32 u64 segment number   40 u64 epoch   48 u64 LSN where the stream before this segment ended
//! 56 u64 segment size
//! ```
//!
//! Sealed, a segment ends with its page index (per page u64 id, u64 end of its last batch here; ascending) and a footer of 64 bytes:
//!
//! ```text
//!  0 u64 magic   8 u64 segment number   16 u64 epoch   24 u64 end of its last batch   32 u32 pages   36 u32 CRC-32C of the index
//! 40 u32 CRC-32C of 0..40
//! ```
//!
//! Invariants:
//! 1. A segment belongs to one epoch. A reader goes on from segment N to N+1 only where N+1's header says that the stream before it
//!    ended exactly where the reader stands, and its epoch is not older. So what lies behind a lost or torn end is never read,
//!    however good it looks.
//! 2. Batches end, and index begins, on sectors of their own: sealing never writes a sector that holds batches.

use super::batch::{u32_at, u64_at};
use crate::error::{Result, StorageError};
use crate::head::{self, Head};
use crate::types::{Lsn, PageId};
use terrace_device::{IoBuf, SECTOR};

/// Offset of a segment's first batch.
pub(crate) const FIRST: u64 = SECTOR as u64;
/// Offset of the first slot on the log device; the device's header lies before it.
const SLOTS_AT: u64 = SECTOR as u64;
const MAGIC: u64 = u64::from_le_bytes(*b"TERRALOG");
const FOOTER_MAGIC: u64 = u64::from_le_bytes(*b"TERRAIDX");
/// End of what a header's CRC covers.
const COVERED: usize = 64;
const FOOTER: usize = 64;
const ENTRY: usize = 16;

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
    /// Bytes for batches and their index entries whatever their mix: header, and the sectors on which batches and index round up, off.
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
        out[16..32].copy_from_slice(&self.database.to_le_bytes());
        out[32..40].copy_from_slice(&self.number.to_le_bytes());
        out[40..48].copy_from_slice(&self.epoch.to_le_bytes());
        out[48..56].copy_from_slice(&self.prev_end.0.to_le_bytes());
        out[56..64].copy_from_slice(&geometry.segment_size.to_le_bytes());
        head::seal(out, MAGIC, COVERED);
    }

    /// The header of this database's segment in the block; `None` where there is none. An unknown version is refused.
    pub(crate) fn decode(
        block: &[u8],
        geometry: Geometry,
        database: u128,
        device: &str,
    ) -> Result<Option<SegmentHeader>> {
        let field = |at| u64_at(block, at).unwrap_or(0);
        match head::look(block, MAGIC, COVERED) {
            Head::Good => {}
            // Damaged: torn while the slot was taken into use; nothing in it was acknowledged.
            Head::Other | Head::Damaged => return Ok(None),
            Head::Unknown(version) => {
                let problem = head::unknown_version(version);
                return Err(StorageError::Foreign { file: device.to_string(), problem });
            }
        }
        let found = u128::from(field(16)) | u128::from(field(24)) << 64;
        if found != database || field(56) != geometry.segment_size {
            return Ok(None); // Left over from a database that `create` overwrote.
        }
        Ok(Some(SegmentHeader { database, number: field(32), epoch: field(40), prev_end: Lsn(field(48)) }))
    }
}

impl Seal {
    /// The sectors that seal a segment; they go to `Geometry::index_at(pages)`.
    pub(crate) fn encode(&self, geometry: Geometry) -> IoBuf {
        let mut out = IoBuf::zeroed((geometry.segment_size - geometry.index_at(self.pages.len())) as usize);
        let footer = out.len() - FOOTER;
        let index = footer - self.pages.len() * ENTRY;
        for (i, (page, lsn)) in self.pages.iter().enumerate() {
            let at = index + i * ENTRY;
            out[at..at + 8].copy_from_slice(&page.to_u64().to_le_bytes());
            out[at + 8..at + 16].copy_from_slice(&lsn.0.to_le_bytes());
        }
        let index_crc = crc32c::crc32c(&out[index..footer]);
        out[footer..footer + 8].copy_from_slice(&FOOTER_MAGIC.to_le_bytes());
        out[footer + 8..footer + 16].copy_from_slice(&self.number.to_le_bytes());
        out[footer + 16..footer + 24].copy_from_slice(&self.epoch.to_le_bytes());
        out[footer + 24..footer + 32].copy_from_slice(&self.end.0.to_le_bytes());
        out[footer + 32..footer + 36].copy_from_slice(&(self.pages.len() as u32).to_le_bytes());
        out[footer + 36..footer + 40].copy_from_slice(&index_crc.to_le_bytes());
        let crc = crc32c::crc32c(&out[footer..footer + 40]);
        out[footer + 40..footer + 44].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// How many pages the index behind this footer (the segment's last sector) has; `None` where the segment is not sealed.
    pub(crate) fn pages_in(last_sector: &[u8], header: &SegmentHeader) -> Option<usize> {
        let footer = last_sector.get(last_sector.len().checked_sub(FOOTER)?..)?;
        let good = u64_at(footer, 0)? == FOOTER_MAGIC
            && u64_at(footer, 8)? == header.number
            && u64_at(footer, 16)? == header.epoch
            && u32_at(footer, 40)? == crc32c::crc32c(&footer[..40]);
        good.then(|| u32_at(footer, 32).map(|n| n as usize)).flatten()
    }

    /// The seal in the last bytes of a segment; `None` where it is not there or damaged (the batches serve without it).
    pub(crate) fn decode(tail: &[u8], header: &SegmentHeader) -> Option<Seal> {
        let pages = Seal::pages_in(tail, header)?;
        let footer = tail.len() - FOOTER;
        let index = footer.checked_sub(pages.checked_mul(ENTRY)?)?;
        if crc32c::crc32c(&tail[index..footer]) != u32_at(tail, footer + 36)? {
            return None;
        }
        let entry = |i: usize| {
            let at = index + i * ENTRY;
            Some((PageId::from_u64(u64_at(tail, at)?), Lsn(u64_at(tail, at + 8)?)))
        };
        let pages = (0..pages).map(entry).collect::<Option<Vec<_>>>()?;
        Some(Seal { number: header.number, epoch: header.epoch, end: Lsn(u64_at(tail, footer + 24)?), pages })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_header_is_not_another_versions() {
        let geometry = Geometry { segment_size: 64 << 10 };
        let header = SegmentHeader { database: 7, number: 3, epoch: 2, prev_end: Lsn(99) };
        let mut sound = vec![0; SECTOR];
        header.encode(geometry, &mut sound);
        let decode = |block: &[u8]| SegmentHeader::decode(block, geometry, 7, "log");
        assert_eq!(decode(&sound).expect("known"), Some(header));
        for byte in 8..COVERED {
            let mut damaged = sound.clone();
            damaged[byte] ^= 0x41;
            assert_eq!(decode(&damaged).expect("nobody's"), None, "byte {byte}");
        }
        head::seal_as(5, &mut sound, MAGIC, COVERED);
        match decode(&sound) {
            Err(StorageError::Foreign { file, problem }) => assert!(file == "log" && problem.contains("version 5")),
            other => panic!("{other:?}"),
        }
    }
}
