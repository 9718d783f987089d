//! Batches: the log's unit, one mini-transaction each, atomic at redo. Format: ARCHITECTURE section 4.
//!
//! Invariants:
//! 1. A batch checks only at the LSN it was written for and in the epoch that wrote it: its LSN is in its bytes, and
//!    its CRC starts from a seed made of database id and epoch. Bytes that an earlier life of the database left behind
//!    never check.
//! 2. Parsing a batch that checks never reads outside it; a batch whose blocks do not tile it exactly does not check.

use crate::bytes::{FromBytes, IntoBytes, U32, U64, layout};
use crate::types::{Lsn, PageId, SpaceId};
use std::mem::offset_of;

layout! {
    /// What stands in front of a batch's blocks.
    struct BatchHeader: 16 {
        /// Of the whole batch.
        0 length: U32,
        /// CRC-32C of what follows, from the epoch's seed on, xor the length.
        4 crc: U32,
        /// LSN of the batch's first byte.
        8 start: U64,
    }
}

layout! {
    /// What stands in front of a block's ops.
    struct BlockHeader: 20 {
        0 page: U64,
        /// prevPageLSN.
        8 prev: U64,
        16 ops: U32,
    }
}

pub(crate) const BATCH_HEADER: usize = size_of::<BatchHeader>();
pub(crate) const BLOCK_HEADER: usize = size_of::<BlockHeader>();
/// Where the CRC's cover begins; it ends with the batch.
const COVERED: usize = offset_of!(BatchHeader, start);

/// How long the batch is that begins at `at` with these bytes, as its first bytes say; nothing else is checked.
pub(crate) fn claimed(bytes: &[u8], at: Lsn) -> Option<usize> {
    let (header, _) = BatchHeader::ref_from_prefix(bytes).ok()?;
    (header.start.get() == at.0).then(|| header.length.get() as usize)
}

/// The "page" of blocks that carry an event and change no page.
pub const EVENT: PageId = PageId { space: SpaceId(0), no: 0 };

/// What a batch does to one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block<'a> {
    pub page: PageId,
    /// The page's LSN before this batch; 0 where it was never logged.
    pub prev: Lsn,
    /// Encoded `PageOp`s, one after the other (or an event, where `page` is [`EVENT`]).
    pub ops: &'a [u8],
}

/// A batch that was found good.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    pub start: Lsn,
    /// One byte past the batch: the LSN that its pages get.
    pub end: Lsn,
    body: &'a [u8],
}

/// Where CRCs of an epoch start.
pub fn seed(database: u128, epoch: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&database.to_le_bytes()), &epoch.to_le_bytes())
}

/// Bytes that a batch of these blocks takes.
pub(crate) fn encoded_len<'a>(blocks: impl Iterator<Item = Block<'a>>) -> usize {
    BATCH_HEADER + blocks.map(|b| BLOCK_HEADER + b.ops.len()).sum::<usize>()
}

/// Appends the batch that begins at `start` to `out`.
pub fn encode<'a>(out: &mut Vec<u8>, seed: u32, start: Lsn, blocks: impl Iterator<Item = Block<'a>>) {
    let at = out.len();
    let mut header = BatchHeader { length: U32::ZERO, crc: U32::ZERO, start: start.0.into() };
    out.extend_from_slice(header.as_bytes());
    for block in blocks {
        let (page, prev) = (block.page.to_u64().into(), block.prev.0.into());
        let header = BlockHeader { page, prev, ops: (block.ops.len() as u32).into() };
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(block.ops);
    }
    let length = (out.len() - at) as u32;
    header.length = length.into();
    header.crc = (crc32c::crc32c_append(seed, &out[at + COVERED..]) ^ length).into();
    out[at..at + BATCH_HEADER].copy_from_slice(header.as_bytes());
}

/// The batch at the front of `bytes` if one begins there that was written at `start` in the epoch of `seed`.
pub fn check(bytes: &[u8], seed: u32, start: Lsn) -> Option<Batch<'_>> {
    let (header, _) = BatchHeader::ref_from_prefix(bytes).ok()?;
    let length = header.length.get() as usize;
    if length < BATCH_HEADER + BLOCK_HEADER || length > bytes.len() || header.start != start.0 {
        return None;
    }
    if header.crc != crc32c::crc32c_append(seed, &bytes[COVERED..length]) ^ length as u32 {
        return None;
    }
    let batch = Batch { start, end: Lsn(start.0 + length as u64), body: &bytes[BATCH_HEADER..length] };
    let tiled: usize = batch.blocks().map(|b| BLOCK_HEADER + b.ops.len()).sum();
    (tiled == batch.body.len()).then_some(batch)
}

/// The first offset from `from` on at which a batch may begin, by the LSN that its header would have. `base`: the LSN
/// of the first byte.
pub(super) fn may_begin(bytes: &[u8], from: usize, base: Lsn) -> Option<usize> {
    const START: usize = std::mem::offset_of!(BatchHeader, start);
    let mut at = from;
    while at + BATCH_HEADER <= bytes.len() {
        let lsn = base.0 + at as u64;
        // Up to the next multiple of 64 KiB all LSNs have the same six upper bytes: these are searched for.
        let upper = &lsn.to_le_bytes()[2..];
        let next = at + (0x1_0000 - (lsn & 0xffff)) as usize;
        let searched = at + START + 2..bytes.len().min(next + START + size_of::<u64>() - 1);
        let Some(skipped) = memchr::memmem::find(&bytes[searched], upper) else {
            at = next;
            continue;
        };
        at += skipped;
        if bytes[at + START..].starts_with(&(base.0 + at as u64).to_le_bytes()) {
            return Some(at);
        }
        at += 1;
    }
    None
}

impl<'a> Batch<'a> {
    pub fn blocks(&self) -> impl Iterator<Item = Block<'a>> + use<'a> {
        let mut rest = self.body;
        std::iter::from_fn(move || {
            let (header, behind) = BlockHeader::ref_from_prefix(rest).ok()?;
            let (ops, behind) = behind.split_at_checked(header.ops.get() as usize)?;
            rest = behind;
            Some(Block { page: PageId::from_u64(header.page.get()), prev: Lsn(header.prev.get()), ops })
        })
    }
}

#[cfg(test)]
mod tests;
