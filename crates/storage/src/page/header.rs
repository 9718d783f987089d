//! The 32-byte page header: reading, stamping, sealing with a checksum, verifying (R5).
//!
//! Invariants:
//! 1. The checksum field means something only in bytes that a device holds or is about to hold: `seal` is the last step
//!    before a write, `verify` the first one after a read. In memory it is stale.
//! 2. `verify` accepts only bytes that `PageOp` can work on without reading outside the page.

use super::{HEADER, PageKind, slotted};
use crate::bytes::{U16, U32, U64, front, front_mut, layout};
use crate::error::BadPage;
use crate::types::{Lsn, ObjectId, PageId};
use std::mem::offset_of;

/// The format version that this program writes and reads.
pub const VERSION: u8 = 1;

layout! {
    struct PageHeader: 32 {
        /// CRC-32C of everything behind it.
        0 crc: U32,
        4 version: u8,
        5 kind: u8,
        6 flags: U16,
        8 lsn: U64,
        16 id: U64,
        24 owner: U32,
        28 zero: U32,
    }
}

const _: () = assert!(size_of::<PageHeader>() == HEADER);
/// Where the CRC's cover begins; it ends with the page.
const COVERED: usize = offset_of!(PageHeader, version);

/// The page LSN: end of the batch that last changed the page.
pub fn lsn(page: &[u8]) -> Lsn {
    Lsn(front::<PageHeader>(page).lsn.get())
}

/// Stamps the page LSN.
pub(crate) fn set_lsn(page: &mut [u8], lsn: Lsn) {
    front_mut::<PageHeader>(page).lsn = lsn.0.into();
}

/// The page id that the page claims.
pub fn id(page: &[u8]) -> PageId {
    PageId::from_u64(front::<PageHeader>(page).id.get())
}

/// What the page is for; `None` where the byte is unknown (a page in memory was verified and has a kind once
/// formatted).
pub fn kind(page: &[u8]) -> Option<PageKind> {
    PageKind::from_u8(front::<PageHeader>(page).kind)
}

/// The table or index that owns the page.
pub fn owner(page: &[u8]) -> ObjectId {
    ObjectId(front::<PageHeader>(page).owner.get())
}

/// Writes a fresh header: LSN, checksum and flags are zero.
pub(super) fn format(page: &mut [u8], id: PageId, kind: PageKind, owner: ObjectId) {
    *front_mut(page) = PageHeader {
        crc: U32::ZERO,
        version: VERSION,
        kind: kind as u8,
        flags: U16::ZERO,
        lsn: U64::ZERO,
        id: id.to_u64().into(),
        owner: owner.0.into(),
        zero: U32::ZERO,
    };
}

/// Stamps the checksum, the last step before the bytes go to a device.
pub(crate) fn seal(page: &mut [u8]) {
    let crc = crc32c::crc32c(&page[COVERED..]);
    front_mut::<PageHeader>(page).crc = crc.into();
}

/// Whether the bytes are page `expected` as it was once sealed. The LSN is the caller's to check: only the log knows
/// its end.
pub fn verify(page: &[u8], expected: PageId) -> Result<(), BadPage> {
    let header: &PageHeader = front(page);
    let found = header.crc.get();
    let computed = crc32c::crc32c(&page[COVERED..]);
    if found != computed {
        let blank = page.iter().all(|&b| b == 0);
        return Err(if blank { BadPage::Blank } else { BadPage::Checksum { found, computed } });
    }
    if header.version != VERSION {
        return Err(BadPage::Version(header.version));
    }
    // The whole stored id is compared, the two bytes beyond the tablespace included.
    if header.id != expected.to_u64() {
        return Err(BadPage::WrongId { found: id(page) });
    }
    let kind = kind(page).ok_or(BadPage::Kind(header.kind))?;
    if matches!(kind, PageKind::Heap | PageKind::BTree) && !slotted::is_sound(page) {
        return Err(BadPage::Directory);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
