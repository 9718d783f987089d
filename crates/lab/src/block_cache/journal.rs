//! The cache's metadata on flash: who waits for what.
//!
//! 1. A record is durable after a flush that began later. One flush runs at a time; who comes meanwhile shares the
//!    next.
//! 2. The flash is synced before an entry is written, and after it: no entry names data that is not durable.
use super::index::Index;
use super::layout::{self, Layout};
use parking_lot::Mutex;
use terrace_device::{DeviceError, DeviceRef, IoBuf, Purpose};

/// What a read of the journal takes at once.
const PIECE: u64 = 1 << 20;

pub(super) struct Journal {
    flash: DeviceRef,
    layout: Layout,
    /// Held by the flush that runs.
    end: tokio::sync::Mutex<End>,
}

struct End {
    /// Of the last entry, or of the index if there is none after it.
    number: u64,
    /// Where the next entry goes, in the journal.
    at: u64,
    /// Which of the two places the next index goes to.
    place: u64,
}

impl Journal {
    /// With the index as it is on the flash; a flash without one gets an empty cache.
    pub(super) async fn open(flash: DeviceRef, layout: Layout) -> Result<(Journal, Index), DeviceError> {
        flash.allocate(0, layout.slot_at(layout.slots())).await?;
        let mut newest: Option<(u64, u64, layout::Contents)> = None;
        for place in 0..2 {
            let bytes = read(&flash, layout.index_at(place), layout.index_bytes).await?;
            if let Some((number, contents)) = layout::read_index(&layout, &bytes)
                && newest.as_ref().is_none_or(|(known, ..)| number > *known)
            {
                newest = Some((number, place, contents));
            }
        }
        let Some((number, place, (priorities, slots))) = newest else {
            let index = Index::new(&layout);
            let buf = layout::index(1, &index.contents());
            flash.write(layout.index_at(0), buf, Purpose::Flash).await?;
            flash.sync(Purpose::Flash).await?;
            let end = tokio::sync::Mutex::new(End { number: 1, at: 0, place: 1 });
            return Ok((Journal { flash, layout, end }, index));
        };
        let bytes = read(&flash, layout.journal_at(), layout.journal_bytes).await?;
        let (records, number, at) = layout::entries(&bytes, number);
        let index = Index::restored(&layout, &priorities, &slots, &records);
        let end = tokio::sync::Mutex::new(End { number, at, place: 1 - place });
        Ok((Journal { flash, layout, end }, index))
    }

    /// Makes the records durable that there are.
    pub(super) async fn flush(&self, index: &Mutex<Index>) -> Result<(), DeviceError> {
        let mut end = self.end.lock().await;
        let number = end.number + 1;
        let (offset, buf) = {
            let mut index = index.lock();
            if index.records.is_empty() {
                return Ok(());
            }
            let buf = layout::entry(number, &index.records);
            index.records.clear();
            let fits = end.at + buf.len() as u64 <= self.layout.journal_bytes;
            if fits {
                let offset = self.layout.journal_at() + end.at;
                end.at += buf.len() as u64;
                (offset, buf)
            } else {
                let offset = self.layout.index_at(end.place);
                (end.at, end.place) = (0, 1 - end.place);
                (offset, layout::index(number, &index.contents()))
            }
        };
        end.number = number;
        self.flash.sync(Purpose::Flash).await?;
        self.flash.write(offset, buf, Purpose::Flash).await?;
        self.flash.sync(Purpose::Flash).await
    }
}

async fn read(flash: &DeviceRef, offset: u64, length: u64) -> Result<Vec<u8>, DeviceError> {
    let mut bytes = Vec::new();
    for at in (0..length).step_by(PIECE as usize) {
        let piece = IoBuf::zeroed(PIECE.min(length - at) as usize);
        bytes.extend_from_slice(&flash.read(offset + at, piece, Purpose::Flash).await?);
    }
    Ok(bytes)
}
