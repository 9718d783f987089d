//! The double-write area: a page that is torn while it is written home is restored from the copy written here before.
//!
//! Layout of the device: a sector of identity, then one area per writer; an area is a header sector and room for a
//! group of pages. The header sector is an [`AreaFront`] with the ids of the pages behind it.
//!
//! Invariants:
//! 1. Order per group: area written, device synced, pages written home, home synced, and only then is the area used
//!    again. So at any crash a page torn at home has a whole copy here, and a torn copy here means that home was not
//!    touched yet. Writers sync together: where one's sync fails, no other's succeeds ([`crate::home::syncs`]).
//! 2. One page is never in two groups in flight.
//! 3. A header names the oldest sequence then in flight. Groups older than what any header names had been home and
//!    synced: they are void, because a page of theirs may have been written again since. With 2, restoring takes the
//!    newest non-void copy only.
//! 4. Restoring gives a page that checks no other contents. Once everything is restored and synced the areas are wiped.
//! 5. A page that checks may be readable and never become durable: a sync that failed in the life before may have left
//!    it in the cache, and later syncs pass it by. So every page that has a copy is written again, as it is where it
//!    checks, and synced before the areas are wiped. (A page torn by that has its copy: where home was touched at all,
//!    the copy was durable before.)
//! 6. What cannot be read is damaged, here as at home.

use crate::bytes::{FromBytes, U32, U64, U128, front, front_mut, layout};
use crate::error::Result;
use crate::home::disk::Places;
use crate::home::syncs::Syncs;
use crate::page::header;
use crate::types::PageId;
use std::collections::BTreeMap;
use std::sync::Arc;
use terrace_device::{DeviceRef, ErrorKind, IoBuf, Purpose, SECTOR};

const MAGIC: u64 = u64::from_le_bytes(*b"TERRADBL");
const IDS_AT: usize = size_of::<AreaFront>();
/// Where the CRC's cover begins; it ends behind the last id.
const COVERED: usize = std::mem::offset_of!(AreaFront, database);
/// The most pages that a header can name.
pub(crate) const MAX_GROUP: usize = (SECTOR - IDS_AT) / 8;

layout! {
    struct AreaFront: 64 {
        0 magic: U64,
        /// CRC-32C from the database id to the last page's id.
        8 crc: U32,
        12 zero: U32,
        16 database: U128,
        32 sequence: U64,
        /// The oldest sequence in flight.
        40 oldest: U64,
        48 pages: U32,
        52 zeros: [u8; 12],
    }
}

pub(crate) struct DoubleWrite {
    device: DeviceRef,
    syncs: Arc<Syncs>,
    database: u128,
    page_size: usize,
    /// Pages in an area.
    group: usize,
}

struct AreaHeader {
    sequence: u64,
    oldest: u64,
    pages: Vec<PageId>,
}

impl DoubleWrite {
    pub(super) fn new(
        (device, syncs): (DeviceRef, Arc<Syncs>),
        database: u128,
        page_size: usize,
        group: usize,
    ) -> DoubleWrite {
        assert!(group > 0 && group <= MAX_GROUP, "double-write groups hold 1 to {MAX_GROUP} pages, not {group}");
        DoubleWrite { device, syncs, database, page_size, group }
    }

    fn area_at(&self, area: usize) -> u64 {
        (SECTOR + area * (SECTOR + self.group * self.page_size)) as u64
    }

    /// Reserves the areas' space, so that writing home never fails for want of it, and voids what is in them.
    pub(crate) async fn prepare(&self, areas: usize) -> Result<()> {
        let end = self.area_at(areas);
        self.device.allocate(0, end).await?;
        for area in 0..areas {
            self.device.write(self.area_at(area), IoBuf::zeroed(SECTOR), Purpose::DoubleWrite).await?;
        }
        self.syncs.sync().await?;
        Ok(())
    }

    /// Copies a group into an area, durably (the first half of invariant 1). `sequence` ascends over all areas.
    pub(crate) async fn write(&self, area: usize, sequence: u64, oldest: u64, pages: &[(PageId, &[u8])]) -> Result<()> {
        assert!(!pages.is_empty() && pages.len() <= self.group, "a group of {} pages", pages.len());
        assert!(oldest <= sequence, "the group itself is in flight");
        let mut buf = IoBuf::zeroed(SECTOR + pages.len() * self.page_size);
        *front_mut(&mut buf) = AreaFront {
            magic: MAGIC.into(),
            crc: U32::ZERO,
            zero: U32::ZERO,
            database: self.database.into(),
            sequence: sequence.into(),
            oldest: oldest.into(),
            pages: (pages.len() as u32).into(),
            zeros: [0; 12],
        };
        for (i, (page, bytes)) in pages.iter().enumerate() {
            buf[IDS_AT + i * 8..][..8].copy_from_slice(&page.to_u64().to_le_bytes());
            buf[SECTOR + i * self.page_size..][..self.page_size].copy_from_slice(bytes);
        }
        let crc = crc32c::crc32c(&buf[COVERED..IDS_AT + pages.len() * 8]);
        front_mut::<AreaFront>(&mut buf).crc = crc.into();
        self.device.write(self.area_at(area), buf, Purpose::DoubleWrite).await?;
        self.syncs.sync().await?;
        Ok(())
    }

    async fn header(&self, area: usize) -> Result<Option<AreaHeader>> {
        let at = self.area_at(area);
        if at + SECTOR as u64 > self.device.size() {
            return Ok(None);
        }
        let block = self.read(at, SECTOR).await?;
        Ok(block.and_then(|block| self.decode(&block)))
    }

    /// Whether an area names this database.
    pub(crate) async fn is_ours(&self, areas: usize) -> Result<bool> {
        for area in 0..areas {
            if self.header(area).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// `None` where it cannot be read (invariant 6).
    async fn read(&self, at: u64, length: usize) -> Result<Option<IoBuf>> {
        match self.device.read(at, IoBuf::zeroed(length), Purpose::DoubleWrite).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if matches!(e.kind, ErrorKind::Medium(_)) => {
                tracing::warn!("a copy in the double-write area is lost: {e}");
                Ok(None)
            }
            Err(e) => Err(e.into()),
        }
    }

    fn decode(&self, block: &[u8]) -> Option<AreaHeader> {
        let area: &AreaFront = front(block);
        let count = area.pages.get() as usize;
        if area.magic != MAGIC || area.database != self.database || count > self.group {
            return None;
        }
        let ids = &block[IDS_AT..IDS_AT + count * 8];
        if area.crc != crc32c::crc32c(&block[COVERED..IDS_AT + count * 8]) {
            return None;
        }
        let ids = <[U64]>::ref_from_bytes(ids).ok()?;
        let pages = ids.iter().map(|id| PageId::from_u64(id.get())).collect();
        Some(AreaHeader { sequence: area.sequence.get(), oldest: area.oldest.get(), pages })
    }

    /// Restores pages torn at home from their copies (invariants 3 to 5) and wipes the areas. Returns the pages
    /// restored.
    pub(crate) async fn restore(&self, areas: usize, places: &Places) -> Result<Vec<PageId>> {
        let mut headers = Vec::new();
        for area in 0..areas {
            if let Some(header) = self.header(area).await? {
                headers.push((area, header));
            }
        }
        let void_below = headers.iter().map(|(_, h)| h.oldest).max().unwrap_or(0);
        // Page -> newest non-void copy.
        let mut copies: BTreeMap<PageId, (u64, u64)> = BTreeMap::new();
        for (area, header) in headers.iter().filter(|(_, h)| h.sequence >= void_below) {
            for (i, &page) in header.pages.iter().enumerate() {
                let at = self.area_at(*area) + (SECTOR + i * self.page_size) as u64;
                let newest = copies.entry(page).or_insert((header.sequence, at));
                if newest.0 < header.sequence {
                    *newest = (header.sequence, at);
                }
            }
        }
        let mut restored = Vec::new();
        for (page, (_, at)) in copies {
            if at + self.page_size as u64 > self.device.size() {
                continue; // The copy was cut off: home was not touched.
            }
            match places.read_good(page).await? {
                Some(good) => places.write(page, good).await?,
                None => {
                    let copy = self.read(at, self.page_size).await?;
                    let Some(copy) = copy.filter(|copy| header::verify(copy, page).is_ok()) else { continue };
                    places.write(page, copy).await?;
                    restored.push(page);
                }
            }
        }
        places.sync_all().await?;
        self.prepare(areas).await?;
        Ok(restored)
    }
}
