//! The 32-byte page header: reading, stamping, sealing with a checksum, verifying (R5).
//!
//! Invariants:
//! 1. The checksum field means something only in bytes that a device holds or is about to hold: `seal` is the last step before
//!    a write, `verify` the first one after a read. In memory it is stale.
//! 2. `verify` accepts only bytes that `PageOp` can work on without reading outside the page.

use super::{HEADER, PageKind, slotted};
use crate::error::BadPage;
use crate::types::{Lsn, ObjectId, PageId};

/// The format version that this program writes and reads.
pub const VERSION: u8 = 1;

const CRC: usize = 0;
const VERSION_AT: usize = 4;
const KIND: usize = 5;
const LSN: usize = 8;
const ID: usize = 16;
const OWNER: usize = 24;

fn get_u32(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

fn get_u64(page: &[u8], at: usize) -> u64 {
    (get_u32(page, at) as u64) | (get_u32(page, at + 4) as u64) << 32
}

/// The page LSN: end of the batch that last changed the page.
pub fn lsn(page: &[u8]) -> Lsn {
    Lsn(get_u64(page, LSN))
}

/// Stamps the page LSN.
pub fn set_lsn(page: &mut [u8], lsn: Lsn) {
    page[LSN..LSN + 8].copy_from_slice(&lsn.0.to_le_bytes());
}

/// The page id that the page claims.
pub fn id(page: &[u8]) -> PageId {
    PageId::from_u64(get_u64(page, ID))
}

/// What the page is for; `None` where the byte is unknown (a page in memory was verified and has a kind once formatted).
pub fn kind(page: &[u8]) -> Option<PageKind> {
    PageKind::from_u8(page[KIND])
}

/// The table or index that owns the page.
pub fn owner(page: &[u8]) -> ObjectId {
    ObjectId(get_u32(page, OWNER))
}

/// Writes a fresh header: LSN, checksum and flags are zero.
pub(super) fn format(page: &mut [u8], id: PageId, kind: PageKind, owner: ObjectId) {
    page[..HEADER].fill(0);
    page[VERSION_AT] = VERSION;
    page[KIND] = kind as u8;
    page[ID..ID + 8].copy_from_slice(&id.to_u64().to_le_bytes());
    page[OWNER..OWNER + 4].copy_from_slice(&owner.0.to_le_bytes());
}

/// Stamps the checksum, the last step before the bytes go to a device.
pub fn seal(page: &mut [u8]) {
    let crc = crc32c::crc32c(&page[4..]);
    page[CRC..CRC + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Whether the bytes are page `expected` as it was once sealed. The LSN is the caller's to check: only the log knows its end.
pub fn verify(page: &[u8], expected: PageId) -> Result<(), BadPage> {
    let found = get_u32(page, CRC);
    let computed = crc32c::crc32c(&page[4..]);
    if found != computed {
        let blank = page.iter().all(|&b| b == 0);
        return Err(if blank { BadPage::Blank } else { BadPage::Checksum { found, computed } });
    }
    if page[VERSION_AT] != VERSION {
        return Err(BadPage::Version(page[VERSION_AT]));
    }
    // The whole stored id is compared, the two bytes beyond the tablespace included.
    if get_u64(page, ID) != expected.to_u64() {
        return Err(BadPage::WrongId { found: id(page) });
    }
    let kind = kind(page).ok_or(BadPage::Kind(page[KIND]))?;
    if matches!(kind, PageKind::Heap | PageKind::BTree) && !slotted::is_sound(page) {
        return Err(BadPage::Directory);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::op::PageOp;
    use crate::types::DATA;

    fn sealed(id: PageId) -> Vec<u8> {
        let mut page = vec![0xAA; 4096];
        PageOp::Format { kind: PageKind::Heap, owner: ObjectId(7), special: 8 }.apply(&mut page, id);
        PageOp::Put { slot: 0, cell: b"cell" }.apply(&mut page, id);
        set_lsn(&mut page, Lsn(99));
        seal(&mut page);
        page
    }

    #[test]
    fn fields_come_back() {
        let at = PageId::new(DATA, 12);
        let page = sealed(at);
        assert_eq!(verify(&page, at), Ok(()));
        assert_eq!((lsn(&page), id(&page), kind(&page)), (Lsn(99), at, Some(PageKind::Heap)));
        assert_eq!(owner(&page), ObjectId(7));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let at = PageId::new(DATA, 12);
        let page = sealed(at);
        for byte in (0..80).chain([2000, 4095]) {
            let mut bad = page.clone();
            bad[byte] ^= 0x10;
            assert!(matches!(verify(&bad, at), Err(BadPage::Checksum { .. })), "byte {byte}");
        }
    }

    #[test]
    fn foreign_pages_are_refused() {
        let at = PageId::new(DATA, 12);
        let page = sealed(at);
        assert_eq!(verify(&page, PageId::new(DATA, 13)), Err(BadPage::WrongId { found: at }));
        assert_eq!(verify(&[0; 4096], at), Err(BadPage::Blank));
        let reseal = |at_byte: usize, value: u8| {
            let mut bad = page.clone();
            bad[at_byte] = value;
            seal(&mut bad);
            bad
        };
        assert_eq!(verify(&reseal(VERSION_AT, 2), at), Err(BadPage::Version(2)));
        assert_eq!(verify(&reseal(KIND, 77), at), Err(BadPage::Kind(77)));
        assert_eq!(verify(&reseal(33, 0xFF), at), Err(BadPage::Directory));
    }
}
