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

use super::index::{self, Entries, PageTable, SPACES, SegmentIndex};
use crate::bytes::{FromBytes, IntoBytes, U32, U64, U128, front, front_mut, layout};
use crate::error::{Result, StorageError};
use crate::head::{self, Head, Verdict};
use crate::types::Lsn;
use terrace_device::{IoBuf, SECTOR};

/// Offset of a segment's first batch.
pub(crate) const FIRST: u64 = SECTOR as u64;
/// Offset of the first slot on the log device; the device's header lies before it.
const SLOTS_AT: u64 = SECTOR as u64;
const MAGIC: u64 = u64::from_le_bytes(*b"TERRALOG");
/// (Seals of earlier versions begin with `TERRAIDX` or `TERRAID2`. They count as none: the batches serve.)
const FOOTER_MAGIC: u64 = u64::from_le_bytes(*b"TERRAID3");
/// The CRC of the head covers all of this.
const COVERED: usize = size_of::<HeaderBlock>();
const FOOTER: usize = size_of::<Footer>();

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
    /// The last bytes of a sealed segment, behind the index.
    struct Footer: 64 {
        0 magic: U64,
        8 number: U64,
        16 epoch: U64,
        /// LSN of the end of the segment's last batch.
        24 end: U64,
        /// Entries of the index.
        32 pages: U32,
        36 places: U32,
        /// Sectors of its page table.
        40 sectors: U32,
        /// CRC-32C of the index.
        44 index_crc: U32,
        /// CRC-32C of this footer up to here.
        48 crc: U32,
        52 zeros: [u8; 12],
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
    pub(crate) index: SegmentIndex,
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
    /// Bytes for batches and their index entries whatever their mix: header, the sectors on which batches, page table
    /// (of each tablespace) and places round up, footer, and the fronts of the page table's sectors off.
    pub(crate) fn usable(self) -> u64 {
        self.segment_size - ((3 + SPACES) * SECTOR + FOOTER) as u64 - self.segment_size / 1024
    }
    /// The longest batch (with permits costing double, see `space`, two share a segment).
    pub(crate) fn max_batch(self) -> usize {
        (self.usable() / 2) as usize
    }
    /// Where an index of so many entries begins, rounded down to a sector.
    pub(crate) fn index_at(self, entries: Entries) -> u64 {
        self.segment_size - ((FOOTER + entries.bytes()) as u64).next_multiple_of(SECTOR as u64)
    }
    /// Whether batches up to `offset` and such an index leave each other alone (invariant 2).
    pub(crate) fn fits(self, offset: u64, entries: Entries) -> bool {
        offset.next_multiple_of(SECTOR as u64) <= self.index_at(entries)
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
    /// The sectors that seal a segment; they go to `Geometry::index_at`.
    pub(crate) fn encode(&self, geometry: Geometry) -> IoBuf {
        let entries = self.index.entries();
        let mut out = IoBuf::zeroed((geometry.segment_size - geometry.index_at(entries)) as usize);
        let footer = out.len() - FOOTER;
        self.index.encode(index::seed(self.number, self.epoch), &mut out[..entries.bytes()]);
        let index_crc = crc32c::crc32c(&out[..entries.bytes()]);
        let mut seal = Footer {
            magic: FOOTER_MAGIC.into(),
            number: self.number.into(),
            epoch: self.epoch.into(),
            end: self.end.0.into(),
            pages: (entries.pages as u32).into(),
            places: (entries.places as u32).into(),
            sectors: (entries.sectors as u32).into(),
            index_crc: index_crc.into(),
            crc: U32::ZERO,
            zeros: [0; 12],
        };
        seal.crc = seal.checksum().into();
        out[footer..].copy_from_slice(seal.as_bytes());
        out
    }

    /// How many entries the index behind this footer (the segment's last sector) has, and where the segment's batches
    /// end; `None` where the segment is not sealed.
    pub(crate) fn entries_in(last_sector: &[u8], header: &SegmentHeader, geometry: Geometry) -> Option<(Entries, Lsn)> {
        let footer = Footer::of(last_sector, header)?;
        let entries = footer.entries();
        (entries.bytes() as u64 <= geometry.segment_size - SECTOR as u64).then_some((entries, Lsn(footer.end.get())))
    }

    /// The page table alone, which begins at `Geometry::index_at`.
    pub(crate) fn decode_table(
        bytes: &[u8],
        entries: Entries,
        header: &SegmentHeader,
        geometry: Geometry,
    ) -> Option<PageTable> {
        let seed = index::seed(header.number, header.epoch);
        PageTable::decode(bytes, entries, seed, geometry.lsn(header.number, 0))
    }

    /// The seal in the last bytes of a segment; `None` where it is not there or damaged (the batches serve without it).
    pub(crate) fn decode(tail: &[u8], header: &SegmentHeader, geometry: Geometry) -> Option<Seal> {
        let footer = Footer::of(tail, header)?;
        let entries = footer.entries();
        let length = (geometry.segment_size - geometry.index_at(entries)) as usize;
        let index = tail.get(tail.len().checked_sub(length)?..)?.get(..entries.bytes())?;
        if footer.index_crc != crc32c::crc32c(index) {
            return None;
        }
        let seed = index::seed(header.number, header.epoch);
        let index = SegmentIndex::decode(index, entries, seed, geometry.lsn(header.number, 0))?;
        Some(Seal { number: header.number, epoch: header.epoch, end: Lsn(footer.end.get()), index })
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

    fn entries(&self) -> Entries {
        let count = |field: U32| field.get() as usize;
        Entries { pages: count(self.pages), places: count(self.places), sectors: count(self.sectors) }
    }

    fn checksum(&self) -> u32 {
        crc32c::crc32c(&self.as_bytes()[..std::mem::offset_of!(Footer, crc)])
    }
}

#[cfg(test)]
mod tests;
