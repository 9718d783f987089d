//! What lies where on the flash device (*format*): a sector of identity, two superblocks, a stamp, and from 64 KiB on
//! chunks. A device grows at its end, and nothing on it moves.
//!
//! ```text
//! a chunk   | 16 sectors of inventory | 4 of journal | frames, 251 for each sector of inventory |
//! ```
//!
//! Source: J. Do, *The Role of Flash Memory in Database Management Systems*, section 4.3.4: records that are hardened
//! with the log's position before. Here the position is that of a sector of records.
//!
//! Invariants:
//! 1. A sector of *inventory* says: in this life of the database, no change of these pages below `since` is newer than
//!    these versions; the frames may hold them. That is about the database's history, and stays true whatever becomes
//!    of the device. So sectors may be written, torn, lost and found in any order, and an old one is not a false one.
//!    (But of a page that nobody uses: `inventory`, invariant 1.) Of a *base* it says less: the frame may hold this
//!    version, and a newer one of the page came after it.
//! 2. A frame proves what it holds by itself: id, LSN and checksum of the page.
//! 3. The format is the tier's own. A tier of another version holds nothing for this program, and no database is
//!    refused for it.
//! 4. A stamp says the same of all sectors of its life and *series*, up to a later LSN (`hardened`); or that the log
//!    has the series' records (`logged`). Who does not know it, or does not trust the device, finds less.
//! 5. A sector of *journal* says the same of frames anywhere. All of them are a ring; each has a number, and so has a
//!    sector of inventory: what the journal says in sectors with that number and above is newer. (Which one is believed
//!    of two only decides which frames are found: both are true.)

use super::FrameId;
use crate::bytes::{FromBytes, IntoBytes, U32, U64, U128, front, front_mut, layout};
use crate::head::{self, Head, Verdict};
use crate::home::disk::PAGES_AT;
use crate::types::{Lsn, PageId};
use terrace_device::{IoBuf, SECTOR};

/// Entries in a sector of inventory, and of journal; such sectors in a chunk, and frames.
pub(super) const ENTRIES: usize = (SECTOR - size_of::<InventoryFront>()) / size_of::<EntryBytes>();
pub(super) const JOURNALED: usize = (SECTOR - size_of::<JournalFront>()) / size_of::<JournalBytes>();
pub(super) const SECTORS: usize = 16;
pub(super) const JOURNAL: usize = 4;
const FRAMES: u64 = (ENTRIES * SECTORS) as u64;
/// Bytes of a chunk before its frames.
const CHUNK_HEAD: u64 = ((SECTORS + JOURNAL) * SECTOR) as u64;
const INVENTORY_MAGIC: u64 = u64::from_le_bytes(*b"TERRAIN2");
const JOURNAL_MAGIC: u64 = u64::from_le_bytes(*b"TERRAJRN");
const SUPER_MAGIC: u64 = u64::from_le_bytes(*b"TERRATI2");
const STAMP_MAGIC: u64 = u64::from_le_bytes(*b"TERRASTP");
/// Lives before the present one whose inventory counts: as many as one write of 512 bytes holds.
pub(super) const ANCESTORS: usize = 28;
/// The entry is of a base. (No tablespace has this bit: who does not know it finds a page that no tier has.)
const BASE: u64 = 1 << 47;
const SUPER_COVERED: usize = size_of::<SuperFront>() + ANCESTORS * size_of::<LifeBytes>();

layout! {
    /// The front of a sector of inventory. The CRC of its head covers the sector.
    struct InventoryFront: 80 {
        0 head: Head,
        16 database: U128,
        32 life: U64,
        40 since: U64,
        48 part: U32,
        52 parts: U32,
        56 index: U32,
        /// Invariant 4; 0: none.
        60 series: U32,
        /// Invariant 5.
        64 journal: U64,
        72 zeros: [u8; 8],
    }
}

layout! {
    /// The front of a sector of journal. The CRC of its head covers the sector.
    struct JournalFront: 64 {
        0 head: Head,
        16 database: U128,
        32 life: U64,
        40 since: U64,
        48 number: U64,
        56 parts: U32,
        /// Sectors of the ring.
        60 ring: U32,
    }
}

layout! {
    /// What a frame may hold; page 0: there are no more.
    struct JournalBytes: 24 {
        0 entry: EntryBytes,
        16 part: U32,
        20 frame: U32,
    }
}

layout! {
    /// A stamp.
    struct StampBytes: 64 {
        0 head: Head,
        16 database: U128,
        32 life: U64,
        40 holds: U64,
        48 series: U32,
        /// 1: its records are in the log; 0: they are sectors of inventory.
        52 in_log: U32,
        56 zeros: [u8; 8],
    }
}

layout! {
    /// What a frame may hold; page 0: nothing. `BASE` may be added to the page.
    struct EntryBytes: 16 {
        0 page: U64,
        8 lsn: U64,
    }
}

layout! {
    /// The front of a superblock; lives follow.
    struct SuperFront: 64 {
        0 head: Head,
        16 database: U128,
        32 sequence: U64,
        40 life: U64,
        48 parts: U32,
        52 ancestors: U32,
        56 zeros: [u8; 8],
    }
}

layout! {
    struct LifeBytes: 16 {
        0 life: U64,
        8 end: U64,
    }
}

/// Where a frame lies.
pub(super) fn frame_at(number: u64, page_size: usize) -> u64 {
    let in_chunk = number % FRAMES * page_size as u64;
    chunk_at(number / FRAMES, page_size) + CHUNK_HEAD + in_chunk
}

/// Where a chunk's sectors of inventory begin.
pub(super) fn chunk_at(chunk: u64, page_size: usize) -> u64 {
    PAGES_AT + chunk * (CHUNK_HEAD + FRAMES * page_size as u64)
}

/// Chunks of a tier with so many sectors of inventory.
pub(super) fn chunks(sectors: u64) -> u64 {
    sectors.div_ceil(SECTORS as u64)
}

/// Where the sector of journal with a number lies, in a ring of so many.
pub(super) fn journal_at(number: u64, ring: u64, page_size: usize) -> u64 {
    let (chunk, place) = (number % ring / JOURNAL as u64, number % ring % JOURNAL as u64);
    chunk_at(chunk, page_size) + (SECTORS as u64 + place) * SECTOR as u64
}

/// Where a sector of inventory lies.
pub(super) fn sector_at(number: u64, page_size: usize) -> u64 {
    chunk_at(number / SECTORS as u64, page_size) + number % SECTORS as u64 * SECTOR as u64
}

/// Bytes of a device with so many frames and sectors of inventory.
pub(super) fn end(frames: u64, sectors: u64, page_size: usize) -> u64 {
    let frames = frame_at(frames.saturating_sub(1), page_size) + page_size as u64;
    frames.max(chunk_at(chunks(sectors).saturating_sub(1), page_size) + CHUNK_HEAD)
}

/// What the inventory says of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) page: PageId,
    pub(super) lsn: Lsn,
    /// Invariant 1.
    pub(super) base: bool,
}

impl Entry {
    /// An entry of a page that has no newer version, as far as `since` says.
    pub(super) fn of(page: PageId, lsn: Lsn) -> Entry {
        Entry { page, lsn, base: false }
    }

    fn to_bytes(self) -> EntryBytes {
        let page = self.page.to_u64() | if self.base { BASE } else { 0 };
        EntryBytes { page: page.into(), lsn: self.lsn.0.into() }
    }

    fn from_bytes(bytes: &EntryBytes) -> Option<Entry> {
        let (page, base) = (PageId::from_u64(bytes.page.get() & !BASE), bytes.page.get() & BASE != 0);
        (bytes.page != 0).then_some(Entry { page, lsn: Lsn(bytes.lsn.get()), base })
    }
}

/// A sector of inventory: frames `index * ENTRIES..` of partition `part` of `parts`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Inventory {
    pub(super) life: u64,
    /// Invariant 1.
    pub(super) since: Lsn,
    pub(super) part: u32,
    pub(super) parts: u32,
    pub(super) index: u32,
    /// Invariant 4; 0: none.
    pub(super) series: u32,
    /// Invariant 5.
    pub(super) journal: u64,
    /// One for each frame, up to the last that holds something.
    pub(super) frames: Vec<Option<Entry>>,
}

impl Inventory {
    pub(super) fn encode(&self, database: u128) -> IoBuf {
        let mut out = IoBuf::zeroed(SECTOR);
        let bytes = out[size_of::<InventoryFront>()..].chunks_exact_mut(size_of::<EntryBytes>());
        for (entry, bytes) in self.frames.iter().zip(bytes) {
            let Some(entry) = entry else { continue };
            bytes.copy_from_slice(entry.to_bytes().as_bytes());
        }
        *front_mut(&mut out) = InventoryFront {
            head: Head::default(),
            database: database.into(),
            life: self.life.into(),
            since: self.since.0.into(),
            part: self.part.into(),
            parts: self.parts.into(),
            index: self.index.into(),
            series: self.series.into(),
            journal: self.journal.into(),
            zeros: [0; 8],
        };
        head::seal(&mut out, INVENTORY_MAGIC, SECTOR);
        out
    }

    /// What a sector of this database says; `None` where there are none.
    pub(super) fn decode(sector: &[u8], database: u128) -> Option<Inventory> {
        if head::look(sector, INVENTORY_MAGIC, SECTOR) != Verdict::Good {
            return None;
        }
        let found: &InventoryFront = front(sector);
        let entries = <[EntryBytes]>::ref_from_bytes(&sector[size_of::<InventoryFront>()..]).ok()?;
        (found.database == database && found.part < found.parts).then(|| Inventory {
            life: found.life.get(),
            since: Lsn(found.since.get()),
            part: found.part.get(),
            parts: found.parts.get(),
            index: found.index.get(),
            series: found.series.get(),
            journal: found.journal.get(),
            frames: entries.iter().map(Entry::from_bytes).collect(),
        })
    }
}

/// A sector of journal: frames that pages have entered, anywhere (invariant 5).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Journal {
    pub(super) life: u64,
    /// Invariant 1.
    pub(super) since: Lsn,
    pub(super) number: u64,
    /// Sectors of the ring when it was written.
    pub(super) ring: u32,
    pub(super) parts: u32,
    /// `JOURNALED` at most.
    pub(super) entries: Vec<(FrameId, Entry)>,
}

impl Journal {
    pub(super) fn encode(&self, database: u128) -> IoBuf {
        assert!(self.entries.len() <= JOURNALED, "{} entries", self.entries.len());
        let mut out = IoBuf::zeroed(SECTOR);
        let bytes = out[size_of::<JournalFront>()..].chunks_exact_mut(size_of::<JournalBytes>());
        for ((at, entry), bytes) in self.entries.iter().zip(bytes) {
            let entry = JournalBytes { entry: entry.to_bytes(), part: at.part.into(), frame: at.frame.into() };
            bytes.copy_from_slice(entry.as_bytes());
        }
        *front_mut(&mut out) = JournalFront {
            head: Head::default(),
            database: database.into(),
            life: self.life.into(),
            since: self.since.0.into(),
            number: self.number.into(),
            parts: self.parts.into(),
            ring: self.ring.into(),
        };
        head::seal(&mut out, JOURNAL_MAGIC, SECTOR);
        out
    }

    /// What a sector of this database says; `None` where there are none.
    pub(super) fn decode(sector: &[u8], database: u128) -> Option<Journal> {
        if head::look(sector, JOURNAL_MAGIC, SECTOR) != Verdict::Good {
            return None;
        }
        let found: &JournalFront = front(sector);
        let entries = <[JournalBytes]>::ref_from_bytes(&sector[size_of::<JournalFront>()..]).ok()?;
        let entry = |bytes: &JournalBytes| {
            let at = FrameId { part: bytes.part.get(), frame: bytes.frame.get() };
            Entry::from_bytes(&bytes.entry).map(|entry| (at, entry))
        };
        (found.database == database).then(|| Journal {
            life: found.life.get(),
            since: Lsn(found.since.get()),
            number: found.number.get(),
            ring: found.ring.get(),
            parts: found.parts.get(),
            entries: entries.iter().map_while(entry).collect(),
        })
    }
}

/// What is known of the tier as a whole. There are two, in the device's second and third sector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Superblock {
    pub(super) sequence: u64,
    /// The life of the database in which it was written, and those before it whose inventory counts, the last one
    /// first, each with the LSN where it ended.
    pub(super) life: u64,
    pub(super) ancestors: Vec<(u64, Lsn)>,
    /// Partitions: they say which frame is whose.
    pub(super) parts: u32,
}

impl Superblock {
    pub(super) const SLOTS: [u64; 2] = [SECTOR as u64, 2 * SECTOR as u64];

    pub(super) fn encode(&self, database: u128) -> IoBuf {
        let mut out = IoBuf::zeroed(SECTOR);
        let lives = out[size_of::<SuperFront>()..].chunks_exact_mut(size_of::<LifeBytes>());
        let count = self.ancestors.len().min(ANCESTORS);
        for ((life, end), bytes) in self.ancestors[..count].iter().zip(lives) {
            bytes.copy_from_slice(LifeBytes { life: (*life).into(), end: end.0.into() }.as_bytes());
        }
        *front_mut(&mut out) = SuperFront {
            head: Head::default(),
            database: database.into(),
            sequence: self.sequence.into(),
            life: self.life.into(),
            parts: self.parts.into(),
            ancestors: (count as u32).into(),
            zeros: [0; 8],
        };
        head::seal(&mut out, SUPER_MAGIC, SUPER_COVERED);
        out
    }

    pub(super) fn decode(sector: &[u8], database: u128) -> Option<Superblock> {
        if head::look(sector, SUPER_MAGIC, SUPER_COVERED) != Verdict::Good {
            return None;
        }
        let found: &SuperFront = front(sector);
        let count = found.ancestors.get() as usize;
        let lives = sector[size_of::<SuperFront>()..SUPER_COVERED].get(..count * size_of::<LifeBytes>())?;
        let lives = <[LifeBytes]>::ref_from_bytes(lives).ok()?;
        (found.database == database).then(|| Superblock {
            sequence: found.sequence.get(),
            life: found.life.get(),
            ancestors: lives.iter().map(|l| (l.life.get(), Lsn(l.end.get()))).collect(),
            parts: found.parts.get(),
        })
    }
}

/// Up to where the records of a series hold, whenever they were written (invariant 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    pub(super) life: u64,
    pub(super) series: u32,
    pub(super) holds: Lsn,
    /// They are the log's.
    pub(super) in_log: bool,
}

impl Stamp {
    /// Where it lies.
    pub(super) const AT: u64 = 3 * SECTOR as u64;

    pub(super) fn encode(&self, database: u128) -> IoBuf {
        let mut out = IoBuf::zeroed(SECTOR);
        *front_mut(&mut out) = StampBytes {
            head: Head::default(),
            database: database.into(),
            life: self.life.into(),
            holds: self.holds.0.into(),
            series: self.series.into(),
            in_log: u32::from(self.in_log).into(),
            zeros: [0; 8],
        };
        head::seal(&mut out, STAMP_MAGIC, size_of::<StampBytes>());
        out
    }

    pub(super) fn decode(sector: &[u8], database: u128) -> Option<Stamp> {
        if head::look(sector, STAMP_MAGIC, size_of::<StampBytes>()) != Verdict::Good {
            return None;
        }
        let found: &StampBytes = front(sector);
        (found.database == database).then(|| Stamp {
            life: found.life.get(),
            series: found.series.get(),
            holds: Lsn(found.holds.get()),
            in_log: found.in_log.get() == 1,
        })
    }
}

#[cfg(test)]
mod tests;
