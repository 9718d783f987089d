//! Brings dirty blocks to the disk, in the disk's order, while more of the cache is dirty than wanted. Where a write
//! waits for a bucket: those of the bucket that has the fewest, whatever is wanted.
//!
//! 1. A block counts as clean when its disk has been synced, and if it was not written again meanwhile.
use super::Shared;
use super::index::{Extent, Place, Record};
use super::layout::BLOCK;
use futures::future::try_join_all;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use terrace_device::{DeviceError, IoBuf, Purpose};

/// Transfers at once, as bcache has it.
const AT_ONCE: usize = 64;

impl Shared {
    /// Blocks that are dirty beyond what is wanted.
    fn excess(&self) -> usize {
        let index = self.index.lock();
        index.dirty().saturating_sub(index.slots() * self.config.writeback_percent as usize / 100)
    }

    /// Runs until a device fails, which only a crash does.
    pub(super) async fn write_back(self: Arc<Shared>) {
        let mut cursor = 0;
        loop {
            let most = self.excess().min(AT_ONCE);
            let extents = match self.starving.load(Relaxed) {
                0 => self.index.lock().dirty_from(cursor, most),
                _ => self.index.lock().dirty_of_barest(),
            };
            let Some(last) = extents.last() else {
                self.dirtied.notified().await;
                continue;
            };
            cursor = last.block + u64::from(last.count);
            if self.clean(&extents).await.is_err() {
                return;
            }
        }
    }

    async fn clean(&self, extents: &[Extent]) -> Result<(), DeviceError> {
        try_join_all(extents.iter().map(|extent| self.bring_home(*extent))).await?;
        self.disk.sync(Purpose::Data).await?;
        let mut index = self.index.lock();
        for &Extent { block, count, place } in extents {
            if let Place::Flash { slot, .. } = place {
                index.record(Record::Clean { block, slot, count });
                index.unpin(slot);
            }
        }
        Ok(())
    }

    async fn bring_home(&self, Extent { block, count, place }: Extent) -> Result<(), DeviceError> {
        let Place::Flash { slot, .. } = place else { return Ok(()) };
        let buf = IoBuf::zeroed(count as usize * BLOCK as usize);
        let buf = self.flash.read(self.layout.slot_at(slot), buf, Purpose::Flash).await?;
        self.disk.write(block * BLOCK, buf, Purpose::Data).await.map(drop)
    }
}
