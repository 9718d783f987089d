//! How the cache's flash is divided, and its metadata's bytes: `index 1 | index 2 | journal | buckets`.
//!
//! 1. An index is all of the map at one moment, with the number of the journal's last entry before it. It is written to
//!    the older of the two places when the journal is full; the journal then begins again from its first byte.
//! 2. A journal's entry is whole sectors: a header with its number (one more than the entry's or the index's before
//!    it), then records of [`RECORD`] bytes. What does not check, or has another number, ends the journal.
use super::index::Record;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use terrace_device::{IoBuf, SECTOR};

/// A block of the disk, and a slot.
pub(super) const BLOCK: u64 = SECTOR as u64;
/// Magic, number, bytes of content, checksum.
const HEADER: usize = 32;
const INDEX: u64 = 0x7865_646e_6962_6331;
const ENTRY: u64 = 0x7972_746e_6562_6331;
/// As large as a key with one pointer in bcache's B-tree.
const RECORD: usize = 24;
/// The part of the flash that is the journal's.
const JOURNAL: u64 = 128;
const JOURNAL_LEAST: u64 = 64 << 10;

/// Offsets and sizes in bytes; buckets and slots by number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) index_bytes: u64,
    pub(super) journal_bytes: u64,
    pub(super) per_bucket: u32,
    pub(super) buckets: u32,
}

impl Layout {
    /// `size`: all of the flash.
    pub(super) fn new(size: u64, bucket: u64) -> Layout {
        let per_bucket = u32::try_from(bucket / BLOCK).expect("a bucket of less than 16 TiB");
        let journal_bytes = (size / JOURNAL).max(JOURNAL_LEAST).next_multiple_of(BLOCK);
        let of = |buckets: u64| {
            let index = HEADER as u64 + buckets * (2 + 8 * u64::from(per_bucket));
            (index.next_multiple_of(BLOCK), buckets)
        };
        let fits = |(index, buckets): &(u64, u64)| 2 * index + journal_bytes + buckets * bucket <= size;
        let (index_bytes, buckets) =
            (0..=size / bucket).rev().map(of).find(fits).expect("a cache has room for its journal");
        assert!(buckets >= 8, "a cache of {size} bytes has {buckets} buckets of {bucket}: make them smaller");
        Layout { index_bytes, journal_bytes, per_bucket, buckets: buckets as u32 }
    }

    pub(super) fn slots(&self) -> u32 {
        self.per_bucket * self.buckets
    }

    pub(super) fn index_at(&self, place: u64) -> u64 {
        place * self.index_bytes
    }

    pub(super) fn journal_at(&self) -> u64 {
        2 * self.index_bytes
    }

    pub(super) fn slot_at(&self, slot: u32) -> u64 {
        self.journal_at() + self.journal_bytes + u64::from(slot) * BLOCK
    }
}

fn checksum(number: u64, content: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u64(number);
    hasher.write(content);
    hasher.finish()
}

fn framed(magic: u64, number: u64, content: &[u8]) -> IoBuf {
    let header = [magic, number, content.len() as u64, checksum(number, content)];
    let bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).chain(content.iter().copied()).collect();
    IoBuf::padded(&bytes)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Number and content, where it checks.
fn unframed(magic: u64, bytes: &[u8]) -> Option<(u64, &[u8])> {
    let header = bytes.get(..HEADER)?;
    let (number, length) = (word(header, 8), usize::try_from(word(header, 16)).ok()?);
    let content = bytes.get(HEADER..HEADER.checked_add(length)?)?;
    (word(header, 0) == magic && word(header, 24) == checksum(number, content)).then_some((number, content))
}

pub(super) fn entry(number: u64, records: &[Record]) -> IoBuf {
    framed(ENTRY, number, &records.iter().flat_map(encode).collect::<Vec<u8>>())
}

fn encode(record: &Record) -> [u8; RECORD] {
    let (kind, block, slot, count): (u64, u64, u32, u32) = match *record {
        Record::Put { block, slot, count, dirty } => (u64::from(dirty), block, slot, count),
        Record::Clean { block, slot, count } => (2, block, slot, count),
        Record::Forget { block, count } => (3, block, 0, count),
        Record::Reuse { bucket } => (4, 0, bucket, 0),
    };
    let mut bytes = [0; RECORD];
    bytes[..8].copy_from_slice(&kind.to_le_bytes());
    bytes[8..16].copy_from_slice(&block.to_le_bytes());
    bytes[16..20].copy_from_slice(&slot.to_le_bytes());
    bytes[20..].copy_from_slice(&count.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<Record> {
    let (block, slot, count) = (word(bytes, 8), half(bytes, 16), half(bytes, 20));
    Some(match word(bytes, 0) {
        kind @ 0..2 => Record::Put { block, slot, count, dirty: kind == 1 },
        2 => Record::Clean { block, slot, count },
        3 => Record::Forget { block, count },
        4 => Record::Reuse { bucket: slot },
        _ => return None,
    })
}

/// The records of the entries after the one of that number; the number of the last, and where the next one begins.
pub(super) fn entries(journal: &[u8], mut number: u64) -> (Vec<Record>, u64, u64) {
    let (mut records, mut at) = (Vec::new(), 0);
    while let Some((found, content)) = unframed(ENTRY, &journal[at..])
        && found == number + 1
        && let Some(more) = content.chunks(RECORD).map(decode).collect::<Option<Vec<Record>>>()
    {
        records.extend(more);
        number = found;
        at = (at + HEADER + content.len()).next_multiple_of(SECTOR);
    }
    (records, number, at as u64)
}

/// What an index keeps: priorities of buckets, then slots.
pub(super) type Contents = (Vec<u16>, Vec<Option<(u64, bool)>>);

pub(super) fn index(number: u64, (priorities, slots): &Contents) -> IoBuf {
    let slot = |of: &Option<(u64, bool)>| of.map_or(u64::MAX, |(block, dirty)| block << 1 | u64::from(dirty));
    let priorities = priorities.iter().flat_map(|priority| priority.to_le_bytes());
    let content: Vec<u8> = priorities.chain(slots.iter().flat_map(|of| slot(of).to_le_bytes())).collect();
    framed(INDEX, number, &content)
}

/// The number of the last entry before it, and its contents.
pub(super) fn read_index(layout: &Layout, bytes: &[u8]) -> Option<(u64, Contents)> {
    let (number, content) = unframed(INDEX, bytes)?;
    let (priorities, slots) = content.split_at_checked(2 * layout.buckets as usize)?;
    let slot = |bytes: &[u8]| {
        let word = word(bytes, 0);
        (word != u64::MAX).then_some((word >> 1, word & 1 == 1))
    };
    let priorities = priorities.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]])).collect();
    let slots: Vec<_> = slots.chunks_exact(8).map(slot).collect();
    (slots.len() == layout.slots() as usize).then_some((number, (priorities, slots)))
}
