//! Layout of the file header and of space-map pages (*format*), and the arithmetic between pages, extents and maps.
//!
//! The whole body behind the slotted header is special area; it changes by raw writes.
//!
//! Page 0 is the file header ([`FileHeader`]). A map page has a [`MapEntry`] for each extent of its span.
//!
//! Map *m* covers `span` = entries x 64 pages from page `m * span` on and lies at page `m * span + 1`. The first extent
//! of a span belongs to the tablespace (page 0 of it is the file header in the first span, unused in the others). An
//! entry is all zeros exactly where the extent is free, so a freshly formatted map page says that everything is free.
use super::EXTENT;
use crate::bytes::{FromBytes, IntoBytes, U16, U32, U64, front, layout};
use crate::page::slotted;
use crate::types::*;
use std::mem::offset_of;

layout! {
    struct FileHeader: 20 {
        /// "TERRSPAC".
        0 magic: U64,
        8 space: U16,
        10 zero: U16,
        12 page_size: U32,
        /// Map pages.
        16 maps: U32,
    }
}

layout! {
    struct MapEntry: 44 {
        /// 0: the extent is free. Else its object, or the tablespace itself.
        0 owner: U32,
        /// Bit n: page n of the extent is used.
        4 used: U64,
        /// How much of each page is free, 4 bits a page: page n lies in byte n / 2, in its low half where n is even.
        12 categories: [u8; 32],
    }
}

pub(super) const FILE_SPECIAL: u16 = size_of::<FileHeader>() as u16;
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"TERRSPAC");
/// Offset of the number of map pages within the file header.
pub(super) const FILE_MAPS: u16 = (slotted::SPECIAL_START + offset_of!(FileHeader, maps)) as u16;
const ENTRY: usize = size_of::<MapEntry>();
/// Bytes of an entry that `used_bytes` gives.
pub(super) const USED: usize = offset_of!(MapEntry, categories);

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
    zerocopy::transmute!(FileHeader {
        magic: MAGIC.into(),
        space: space.0.into(),
        zero: U16::ZERO,
        page_size: (page_size as u32).into(),
        maps: maps.into(),
    })
}

/// Checks the file header's special area; the number of map pages.
pub(super) fn read_file_header(special: &[u8], space: SpaceId, page_size: usize) -> Result<u32, String> {
    let header = FileHeader::ref_from_bytes(special).ok().filter(|header| header.magic == MAGIC);
    let header = header.ok_or("its first page is not the header of a tablespace")?;
    if header.space != space.0 || header.zero != 0 {
        return Err(format!("it is another tablespace than {}", space.0));
    }
    if header.page_size != page_size as u32 {
        return Err(format!("its page size is not {page_size}"));
    }
    match header.maps.get() {
        0 => Err("its header lists no map page".into()),
        maps => Ok(maps),
    }
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
        let entry: &MapEntry = front(&map[self.entry(extent) as usize..]);
        (ObjectId(entry.owner.get()), entry.used.get())
    }
    /// An extent's categories as a map page says.
    pub(super) fn read_categories(self, map: &[u8], extent: u32) -> [u8; 32] {
        front::<MapEntry>(&map[self.entry(extent) as usize..]).categories
    }
}

/// The first `USED` bytes of an entry.
pub(super) fn used_bytes(owner: ObjectId, used: u64) -> [u8; USED] {
    let entry = MapEntry { owner: owner.0.into(), used: used.into(), categories: [0; 32] };
    *entry.as_bytes().first_chunk().expect("an entry is longer than its first fields")
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
