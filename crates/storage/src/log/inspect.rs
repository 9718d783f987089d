//! Looking at a log that nobody has open.

use super::segment::{FIRST, Geometry, Seal, SegmentHeader};
use crate::error::Result;
use crate::types::Lsn;
use terrace_device::{DeviceRef, IoBuf, Purpose, SECTOR};

/// A segment as its header and seal describe it.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub number: u64,
    /// Where it lies on the device.
    pub slot: u32,
    /// Which opening of the database began it.
    pub epoch: u64,
    /// Of its first batch.
    pub start: Lsn,
    /// End of its last batch, and the pages in its index; `None` while it is being written, or where the seal is damaged.
    pub sealed: Option<(Lsn, usize)>,
}

/// The database's segments on the device, ascending. Recycled slots keep their old header until they are used again, so older
/// segments than the log still needs are among them.
pub async fn segments(device: &DeviceRef, segment_size: u64, database: u128) -> Result<Vec<Segment>> {
    let geometry = Geometry { segment_size };
    let mut segments = Vec::new();
    for slot in 0..geometry.slots(device.size()) {
        let at = geometry.slot_at(slot);
        if at + SECTOR as u64 > device.size() {
            break;
        }
        let block = device.read(at, IoBuf::zeroed(SECTOR), Purpose::Log).await?;
        let Some(header) = SegmentHeader::decode(&block, geometry, database, device.name())? else { continue };
        segments.push(Segment {
            number: header.number,
            slot,
            epoch: header.epoch,
            start: geometry.lsn(header.number, FIRST),
            sealed: seal(device, geometry, at, &header).await?.map(|seal| (seal.end, seal.pages.len())),
        });
    }
    segments.sort_by_key(|segment| (segment.number, segment.epoch));
    Ok(segments)
}

/// The seal of the segment at `at`, where it has a good one.
async fn seal(device: &DeviceRef, geometry: Geometry, at: u64, header: &SegmentHeader) -> Result<Option<Seal>> {
    let end = at + geometry.segment_size;
    if end > device.size() {
        return Ok(None);
    }
    let last = device.read(end - SECTOR as u64, IoBuf::zeroed(SECTOR), Purpose::Log).await?;
    let Some(pages) = Seal::pages_in(&last, header) else { return Ok(None) };
    let from = geometry.index_at(pages);
    let index = device.read(at + from, IoBuf::zeroed((geometry.segment_size - from) as usize), Purpose::Log).await?;
    Ok(Seal::decode(&index, header))
}
