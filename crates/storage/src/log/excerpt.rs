//! Some batches of a sealed segment, read without the others.
//!
//! Invariant: each batch is checked, as any batch is. Where one does not check, or cannot be read, there is no excerpt,
//! and the whole segment says what is wrong.

use super::Core;
use super::batch::{self, Batch};
use super::index::Place;
use super::segment::SegmentHeader;
use crate::error::Result;
use crate::types::Lsn;
use futures::StreamExt;
use std::sync::Arc;
use terrace_device::{IoBuf, SECTOR};

/// Two batches with at most so many bytes between them are read in one.
const GAP: u64 = 16 << 10;
/// Reads at a time.
const IN_FLIGHT: usize = 16;

/// Part of a segment: its first byte's offset, and its bytes.
struct Part {
    at: u64,
    bytes: IoBuf,
}

/// Batches of one segment, in order.
pub(super) struct Excerpt {
    seed: u32,
    base: Lsn,
    parts: Vec<Part>,
    /// Ascending; each lies in one part.
    places: Vec<Place>,
}

/// Sectors that hold these places (ascending), as few ranges as may be.
fn ranges(places: &[Place]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for place in places {
        let from = u64::from(place.start()) / SECTOR as u64 * SECTOR as u64;
        let to = u64::from(place.end()).next_multiple_of(SECTOR as u64);
        match ranges.last_mut().filter(|(_, end)| from <= *end + GAP) {
            Some((_, end)) => *end = to.max(*end),
            None => ranges.push((from, to)),
        }
    }
    ranges
}

impl Core {
    /// These batches (ascending) of the segment; `None` where to read all of it is better, or where one is no good.
    pub(super) async fn read_excerpt(
        self: &Arc<Core>,
        slot: u32,
        header: &SegmentHeader,
        mut places: Vec<Place>,
    ) -> Result<Option<Excerpt>> {
        places.dedup_by_key(|place| place.start());
        let ranges = ranges(&places);
        let bytes: u64 = ranges.iter().map(|(from, to)| to - from).sum();
        if bytes > self.geometry.segment_size / 2 {
            return Ok(None);
        }
        let at = self.geometry.slot_at(slot);
        let mut read = futures::stream::iter(ranges)
            .map(|(from, to)| async move { (from, self.try_read(at + from, (to - from) as usize).await) })
            .buffered(IN_FLIGHT);
        let mut parts = Vec::new();
        while let Some((at, bytes)) = read.next().await {
            let Some(bytes) = bytes? else { return Ok(None) };
            parts.push(Part { at, bytes });
        }
        let seed = batch::seed(self.database, header.epoch);
        let excerpt = Excerpt { seed, base: self.geometry.lsn(header.number, 0), parts, places };
        Ok((excerpt.batches().count() == excerpt.places.len()).then_some(excerpt))
    }
}

impl Excerpt {
    /// Those that check.
    pub(super) fn batches(&self) -> impl Iterator<Item = Batch<'_>> {
        self.places.iter().filter_map(|place| {
            let part = &self.parts[self.parts.partition_point(|part| part.at <= place.start().into()) - 1];
            let from = (u64::from(place.start()) - part.at) as usize;
            let batch = batch::check(part.bytes.get(from..)?, self.seed, Lsn(self.base.0 + u64::from(place.start())))?;
            (batch.end.0 == self.base.0 + u64::from(place.end())).then_some(batch)
        })
    }
}
