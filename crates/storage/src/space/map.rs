//! Layout of the file header and of space-map pages (*format*), and the arithmetic between pages, extents and maps.
//!
//! The whole body behind the slotted header is special area; it changes by raw writes.
//!
//! ```text
//! page 0 (file header)                      map page: entry i at 40 + 44 i, one per extent of its span
//! 40 u64 magic "TERRSPAC"                   0 u32 owner (0 = free, or the tablespace itself)
//! 48 u16 tablespace   50 u16 zero           4 u64 used pages, bit n = page n of the extent
//! 52 u32 page size                         12 64 x 4 bits free category; page n: byte n/2, low half first
//! 56 u32 map pages
//! ```
//!
//! Map *m* covers `span` = entries x 64 pages from page `m * span` on and lies at page `m * span + 1`. The first extent of a
//! span belongs to the tablespace (page 0 of it is the file header in the first span, unused in the others). An entry is all
//! zeros exactly where the extent is free, so a freshly formatted map page says that everything is free.
use super::EXTENT;
use crate::page::slotted;
use crate::types::*;

pub(super) const FILE_SPECIAL: u16 = 20;
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"TERRSPAC");
/// Offset of the number of map pages within the file header.
pub(super) const FILE_MAPS: u16 = 56;
const ENTRY: usize = 44;
/// Bytes of an entry that `used_bytes` gives.
pub(super) const USED: usize = 12;

/// Sixteenths of a page that are free, rounded down.
pub(super) fn category_of(free: usize, page_size: usize) -> u8 {
    (free * 16 / page_size).min(15) as u8
}

/// The lowest category whose pages all have `need` bytes free; 16 where none has.
pub(super) fn category_for(need: usize, page_size: usize) -> u8 {
    (need * 16).div_ceil(page_size).min(16) as u8
}

/// The file header's special area.
pub(super) fn file_header(space: SpaceId, page_size: usize, maps: u32) -> [u8; FILE_SPECIAL as usize] {
    let mut b = [0; FILE_SPECIAL as usize];
    b[..8].copy_from_slice(&MAGIC.to_le_bytes());
    b[8..10].copy_from_slice(&space.0.to_le_bytes());
    b[12..16].copy_from_slice(&(page_size as u32).to_le_bytes());
    b[16..20].copy_from_slice(&maps.to_le_bytes());
    b
}

/// Checks the file header's special area; the number of map pages.
pub(super) fn read_file_header(special: &[u8], space: SpaceId, page_size: usize) -> Result<u32, String> {
    if special.len() != FILE_SPECIAL as usize {
        return Err("its first page is not the header of a tablespace".into());
    }
    let maps = u32::from_le_bytes(special[16..20].try_into().expect("four bytes"));
    let expected = file_header(space, page_size, maps);
    if special[..8] != expected[..8] {
        return Err("its first page is not the header of a tablespace".into());
    }
    if special[8..12] != expected[8..12] {
        return Err(format!("it is another tablespace than {}", space.0));
    }
    if special[12..16] != expected[12..16] {
        return Err(format!("its page size is not {page_size}"));
    }
    if maps == 0 {
        return Err("its header lists no map page".into());
    }
    Ok(maps)
}

/// Where things lie, for a page size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) page_size: usize,
}

impl Geometry {
    /// Entries of a map page.
    pub(super) fn entries(self) -> u32 {
        ((self.page_size - slotted::special_offset() as usize) / ENTRY) as u32
    }
    /// Special area of a map page.
    pub(super) fn special(self) -> u16 {
        (self.page_size - slotted::special_offset() as usize) as u16
    }
    pub(super) fn map_of_extent(self, extent: u32) -> u32 {
        extent / self.entries()
    }
    /// The page of map `map`.
    pub(super) fn map_page(self, map: u32) -> u32 {
        map * self.entries() * EXTENT + 1
    }
    pub(super) fn map_page_for(self, page: u32) -> u32 {
        self.map_page(self.map_of_extent(page / EXTENT))
    }
    /// Offset of an extent's entry within its map page.
    pub(super) fn entry(self, extent: u32) -> u16 {
        slotted::special_offset() + ((extent % self.entries()) as usize * ENTRY) as u16
    }
    pub(super) fn extent_bytes(self) -> u64 {
        EXTENT as u64 * self.page_size as u64
    }
    /// The most extents that page numbers can address, in whole spans.
    pub(super) fn max_extents(self) -> u32 {
        let span = self.entries();
        u32::MAX / EXTENT / span * span
    }
    /// Offset of the byte with a page's category, and whether it is the high half.
    pub(super) fn category_byte(self, page: u32) -> (u16, bool) {
        let n = page % EXTENT;
        (self.entry(page / EXTENT) + (USED as u32 + n / 2) as u16, n % 2 == 1)
    }
    /// An extent's owner and used bits as a map page says.
    pub(super) fn read_used(self, map: &[u8], extent: u32) -> (ObjectId, u64) {
        let at = self.entry(extent) as usize;
        let owner = u32::from_le_bytes(map[at..at + 4].try_into().expect("four bytes"));
        let used = u64::from_le_bytes(map[at + 4..at + 12].try_into().expect("eight bytes"));
        (ObjectId(owner), used)
    }
    /// An extent's categories as a map page says.
    pub(super) fn read_categories(self, map: &[u8], extent: u32) -> [u8; 32] {
        let at = self.entry(extent) as usize + USED;
        map[at..at + 32].try_into().expect("thirty-two bytes")
    }
}

/// The first `USED` bytes of an entry.
pub(super) fn used_bytes(owner: ObjectId, used: u64) -> [u8; USED] {
    let mut b = [0; USED];
    b[..4].copy_from_slice(&owner.0.to_le_bytes());
    b[4..].copy_from_slice(&used.to_le_bytes());
    b
}

/// A category byte with one half replaced.
pub(super) fn with_category(byte: u8, high: bool, category: u8) -> u8 {
    debug_assert!(category < 16);
    if high { byte & 0x0f | category << 4 } else { byte & 0xf0 | category }
}

/// The category of page `n` of an extent.
pub(super) fn category(categories: &[u8; 32], n: u32) -> u8 {
    categories[n as usize / 2] >> (4 * (n % 2)) & 0x0f
}
