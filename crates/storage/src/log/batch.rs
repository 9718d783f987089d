//! Batches: the log's unit, one mini-transaction each, atomic at redo. Format: ARCHITECTURE section 4.
//!
//! Invariants:
//! 1. A batch checks only at the LSN it was written for and in the epoch that wrote it: its LSN is in its bytes, and its CRC starts
//!    from a seed made of database id and epoch. Bytes that an earlier life of the database left behind never check.
//! 2. Parsing a batch that checks never reads outside it; a batch whose blocks do not tile it exactly does not check.

use crate::types::{Lsn, PageId, SpaceId};

/// Bytes in front of a batch's blocks: length, CRC, LSN.
pub const BATCH_HEADER: usize = 16;
/// Bytes in front of a block's ops: page id, prevPageLSN, length.
pub const BLOCK_HEADER: usize = 20;
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
pub fn encoded_len<'a>(blocks: impl Iterator<Item = Block<'a>>) -> usize {
    BATCH_HEADER + blocks.map(|b| BLOCK_HEADER + b.ops.len()).sum::<usize>()
}

/// Appends the batch that begins at `start` to `out`.
pub fn encode<'a>(out: &mut Vec<u8>, seed: u32, start: Lsn, blocks: impl Iterator<Item = Block<'a>>) {
    let at = out.len();
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&start.0.to_le_bytes());
    for block in blocks {
        out.extend_from_slice(&block.page.to_u64().to_le_bytes());
        out.extend_from_slice(&block.prev.0.to_le_bytes());
        out.extend_from_slice(&(block.ops.len() as u32).to_le_bytes());
        out.extend_from_slice(block.ops);
    }
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
    let crc = crc32c::crc32c_append(seed, &out[at + 8..]) ^ length;
    out[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
}

/// The batch at the front of `bytes` if one begins there that was written at `start` in the epoch of `seed`.
pub fn check(bytes: &[u8], seed: u32, start: Lsn) -> Option<Batch<'_>> {
    let length = u32_at(bytes, 0)? as usize;
    if length < BATCH_HEADER + BLOCK_HEADER || length > bytes.len() || u64_at(bytes, 8)? != start.0 {
        return None;
    }
    let crc = crc32c::crc32c_append(seed, &bytes[8..length]) ^ length as u32;
    if crc != u32_at(bytes, 4)? {
        return None;
    }
    let batch = Batch { start, end: Lsn(start.0 + length as u64), body: &bytes[BATCH_HEADER..length] };
    let tiled: usize = batch.blocks().map(|b| BLOCK_HEADER + b.ops.len()).sum();
    (tiled == batch.body.len()).then_some(batch)
}

impl<'a> Batch<'a> {
    pub fn blocks(&self) -> impl Iterator<Item = Block<'a>> + use<'a> {
        let mut rest = self.body;
        std::iter::from_fn(move || {
            let length = u32_at(rest, 16)? as usize;
            let ops = rest.get(BLOCK_HEADER..BLOCK_HEADER + length)?;
            let block = Block { page: PageId::from_u64(u64_at(rest, 0)?), prev: Lsn(u64_at(rest, 8)?), ops };
            rest = &rest[BLOCK_HEADER + length..];
            Some(block)
        })
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::DATA;

    fn blocks() -> Vec<Block<'static>> {
        vec![
            Block { page: PageId::new(DATA, 7), prev: Lsn(55), ops: b"first" },
            Block { page: EVENT, prev: Lsn(0), ops: b"" },
            Block { page: PageId::new(DATA, 9), prev: Lsn(0), ops: b"second ops" },
        ]
    }

    #[test]
    fn comes_back_as_written() {
        let mut bytes = Vec::new();
        encode(&mut bytes, seed(9, 1), Lsn(8192), blocks().into_iter());
        assert_eq!(bytes.len(), encoded_len(blocks().into_iter()));
        let batch = check(&bytes, seed(9, 1), Lsn(8192)).expect("checks");
        assert_eq!(batch.end, Lsn(8192 + bytes.len() as u64));
        assert_eq!(batch.blocks().collect::<Vec<_>>(), blocks());
    }

    #[test]
    fn another_place_time_or_database_does_not_check() {
        let mut bytes = Vec::new();
        encode(&mut bytes, seed(9, 1), Lsn(8192), blocks().into_iter());
        assert!(check(&bytes, seed(9, 1), Lsn(8193)).is_none());
        assert!(check(&bytes, seed(9, 2), Lsn(8192)).is_none());
        assert!(check(&bytes, seed(8, 1), Lsn(8192)).is_none());
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_noticed() {
        let mut bytes = Vec::new();
        encode(&mut bytes, seed(9, 1), Lsn(8192), blocks().into_iter());
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x40;
            assert!(check(&bad, seed(9, 1), Lsn(8192)).is_none(), "byte {at}");
            assert!(check(&bytes[..at], seed(9, 1), Lsn(8192)).is_none(), "cut at {at}");
        }
        assert!(check(&[0; 4096], seed(9, 1), Lsn(8192)).is_none());
    }
}
