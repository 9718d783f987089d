//! Looking at a log that nobody has open.

use super::batch;
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
    /// End of its last batch, and the pages in its index; `None` while it is being written, or where the seal is
    /// damaged.
    pub sealed: Option<(Lsn, usize)>,
}

/// The database's segments on the device, ascending. Recycled slots keep their old header until they are used again, so
/// older segments than the log still needs are among them.
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
            sealed: seal(device, geometry, at, &header).await?.map(|seal| (seal.end, seal.index.entries().pages)),
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
    let Some((entries, _)) = Seal::entries_in(&last, header, geometry) else { return Ok(None) };
    let from = geometry.index_at(entries);
    let index = device.read(at + from, IoBuf::zeroed((geometry.segment_size - from) as usize), Purpose::Log).await?;
    Ok(Seal::decode(&index, header, geometry))
}

/// Where a slot lies on a log device.
pub(crate) fn slot_at(slot: u32, segment_size: u64) -> u64 {
    Geometry { segment_size }.slot_at(slot)
}

/// What is known of a log segment's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentFacts {
    pub number: u64,
    pub epoch: u64,
    /// Where the stream before it ended, and where its own batches end.
    pub begins: Lsn,
    pub ends: Lsn,
}

/// What a copied segment's header says, and how far its batches check; `None` where it is no segment of this database.
pub fn segment_facts(bytes: &[u8], database: u128, segment_size: u64) -> Result<Option<SegmentFacts>> {
    let geometry = Geometry { segment_size };
    let Some(header) = SegmentHeader::decode(bytes, geometry, database, "a log segment")? else { return Ok(None) };
    let seed = batch::seed(database, header.epoch);
    let mut at = geometry.lsn(header.number, FIRST);
    let mut ends = header.prev_end;
    while let Some(batch) =
        bytes.get((at.0 - geometry.lsn(header.number, 0).0) as usize..).and_then(|b| batch::check(b, seed, at))
    {
        at = batch.end;
        ends = batch.end;
    }
    Ok(Some(SegmentFacts { number: header.number, epoch: header.epoch, begins: header.prev_end, ends }))
}
