//! A disk whose blocks a flash device caches, below the database and without its knowledge: the rival of the flash
//! tier. The model is bcache.
//!
//! Sources: `Documentation/admin-guide/bcache.rst` of the Linux kernel ("doc"), and what bcache's sources say in
//! comments and constants (`drivers/md/bcache/{bcache.h,alloc.c,request.c,writeback.h}`, "src").
//!
//! Modelled:
//! - Buckets of 512 KiB (the tools' default) that are filled once, from beginning to end, and used again as a whole;
//!   no block is written in place (doc). A bucket that is used has the highest priority. Priorities fall with every
//!   1,024th of the cache that is transferred; the bucket with the least priority times data goes first (src).
//! - Write-through and write-back (doc). What is read from the disk enters the cache too, after its reader has it.
//! - Transfers beyond 4 MiB of a sequential stream bypass the cache; the last 128 streams are known (doc).
//! - Write-back in the disk's order, while more than `writeback_percent` (10) of the cache is dirty (doc), at most 64
//!   transfers at once; none of it where 70% of the buckets hold dirty data: then writes go through (src).
//! - A journal of the map's changes: a write is complete when its data is on flash; its record is durable at the next
//!   flush of the cache, or after 100 ms (doc). A bucket is used again when the journal knows that it was given up
//!   (src). After a crash the cache is what its journal says: warm (doc).
//!
//! Different here: the map is one index, written whole whenever the journal (a 128th of the flash) is full, instead of
//! a B-tree whose nodes are logs. The controller that approaches `writeback_percent` slowly is replaced by its goal,
//! for runs are shorter than it takes; so is the delay of 30 s before the first write-back. Write-back syncs the disk
//! before blocks count as clean. A block that is dirty in the cache is written there until it is clean, so that no
//! crash brings an older one back. Dirty buckets are counted exactly; bcache learns of them when it collects garbage. A
//! change of the map by a read is in the journal too. Where no bucket can be given up, for each has a dirty block,
//! bcache's garbage collection moves blocks together; here the bucket with the fewest is written back.
//!
//! Not modelled: averages of each task's transfers; the thresholds of congestion (doc: 0 disables them, and the cache
//! is to be measured here); FIFO and random replacement; read-ahead; moving garbage collection; discards; several
//! disks; errors of the flash. dm-cache is another design: blocks of 32 KiB or more at fixed places, promoted by what
//! its policy (smq) finds hot, no sequential cut-off; its metadata is committed at each flush or second, and after a
//! crash all its blocks count as dirty (`Documentation/admin-guide/device-mapper/cache.rst`).
//!
//! 1. What was written and then synced is read after a crash, whatever the mode: a sync is one of the journal and one
//!    of the disk. What was not synced is there or not, block by block; where only the cache had kept it, it goes back
//!    to what the disk has when the cache gives it up.
//! 2. A block that is dirty in the cache is never written to the disk but by write-back.
//! 3. Transfers that overlap are ordered by nobody, as the contract of [`Device`] says.
mod index;
mod journal;
mod layout;
mod sequential;
#[cfg(test)]
mod tests;
mod write_back;

use futures::future::try_join_all;
use index::{Extent, Index, Place, Record, Room, Stream};
use journal::Journal;
use layout::{BLOCK, Layout};
use parking_lot::Mutex;
use sequential::Sequential;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use terrace_device::{Device, DeviceError, DeviceRef, DeviceStats, ErrorKind, Guarantees, IoBuf, IoFuture, Purpose};
use terrace_env::Env;
use tokio::sync::Notify;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// A write is complete when disk and cache have it.
    WriteThrough,
    /// A write is complete when the cache has it.
    WriteBack,
}

#[derive(Clone, Copy, Debug)]
pub struct BlockCacheConfig {
    pub mode: Mode,
    /// Bytes of the flash, metadata included.
    pub size: u64,
    /// Bytes.
    pub bucket: u64,
    /// Bytes of a sequential stream from which on it bypasses the cache.
    pub sequential_cutoff: u64,
    /// How much of the cache may be dirty before it is written back, in hundredths.
    pub writeback_percent: u32,
}

impl BlockCacheConfig {
    /// As bcache is without settings.
    pub fn new(mode: Mode, size: u64) -> BlockCacheConfig {
        BlockCacheConfig { mode, size, bucket: 512 << 10, sequential_cutoff: 4 << 20, writeback_percent: 10 }
    }
}

/// Buckets with dirty blocks, in hundredths of all, from which on writes go through.
const CUTOFF_WRITE_BACK: u32 = 70;
/// A record waits at most so long for the journal.
const JOURNAL_DELAY: Duration = Duration::from_millis(100);
/// Buckets given up at once: this part of all.
const GIVEN_UP: usize = 128;
/// Before a write tries again for which there was no bucket.
const NO_BUCKET: Duration = Duration::from_millis(1);

/// What the cache did, and what it holds. Transfers count; one that finds a part of its blocks is a miss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCacheStats {
    pub read_hits: u64,
    /// Of the hits, those of blocks that were newer in the cache than on the disk.
    pub dirty_hits: u64,
    pub read_misses: u64,
    /// Misses that did not enter the cache, as parts of a sequential stream; and such writes.
    pub bypassed_reads: u64,
    pub bypassed_writes: u64,
    /// Writes that the cache kept from the disk, and those that went to both.
    pub writes_back: u64,
    pub writes_through: u64,
    /// Buckets with dirty blocks, in hundredths of all.
    pub dirty_buckets: u32,
    /// Bytes that the cache can hold, holds, and holds dirty.
    pub capacity: u64,
    pub used: u64,
    pub dirty: u64,
}

/// The disk with its cache. A clone is the same one.
#[derive(Clone)]
pub struct BlockCache(Arc<Shared>);

struct Shared {
    config: BlockCacheConfig,
    layout: Layout,
    env: Env,
    disk: DeviceRef,
    flash: DeviceRef,
    index: Mutex<Index>,
    journal: Journal,
    /// Held by who gives buckets up.
    freeing: tokio::sync::Mutex<()>,
    sequential: Mutex<Sequential>,
    /// Wakes write-back.
    dirtied: Notify,
    /// Writes that wait for a bucket.
    starving: AtomicUsize,
    read_hits: AtomicU64,
    dirty_hits: AtomicU64,
    read_misses: AtomicU64,
    bypassed_reads: AtomicU64,
    bypassed_writes: AtomicU64,
    writes_back: AtomicU64,
    writes_through: AtomicU64,
}

impl BlockCache {
    /// A cache on `flash` as it was left there, or an empty one.
    pub async fn open(
        env: &Env,
        disk: DeviceRef,
        flash: DeviceRef,
        config: BlockCacheConfig,
    ) -> Result<BlockCache, DeviceError> {
        let layout = Layout::new(config.size, config.bucket);
        let (journal, index) = Journal::open(flash.clone(), layout).await?;
        let shared = Arc::new(Shared {
            config,
            layout,
            env: env.clone(),
            disk,
            flash,
            index: Mutex::new(index),
            journal,
            freeing: tokio::sync::Mutex::default(),
            sequential: Mutex::default(),
            dirtied: Notify::new(),
            starving: AtomicUsize::new(0),
            read_hits: AtomicU64::new(0),
            dirty_hits: AtomicU64::new(0),
            read_misses: AtomicU64::new(0),
            bypassed_reads: AtomicU64::new(0),
            bypassed_writes: AtomicU64::new(0),
            writes_back: AtomicU64::new(0),
            writes_through: AtomicU64::new(0),
        });
        env.spawn("block cache's journal", shared.clone().keep_journal());
        env.spawn("block cache's write-back", shared.clone().write_back());
        Ok(BlockCache(shared))
    }

    pub fn cache_stats(&self) -> BlockCacheStats {
        let shared = &self.0;
        let index = shared.index.lock();
        BlockCacheStats {
            read_hits: shared.read_hits.load(Relaxed),
            dirty_hits: shared.dirty_hits.load(Relaxed),
            read_misses: shared.read_misses.load(Relaxed),
            bypassed_reads: shared.bypassed_reads.load(Relaxed),
            bypassed_writes: shared.bypassed_writes.load(Relaxed),
            writes_back: shared.writes_back.load(Relaxed),
            writes_through: shared.writes_through.load(Relaxed),
            dirty_buckets: index.percent_of_buckets_dirty(),
            capacity: index.slots() as u64 * BLOCK,
            used: index.used() as u64 * BLOCK,
            dirty: index.dirty() as u64 * BLOCK,
        }
    }
}

/// Where a write goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Back,
    Through,
    Around,
}

impl Shared {
    /// Runs until a device fails, which only a crash does.
    async fn keep_journal(self: Arc<Shared>) {
        while self.journal.flush(&self.index).await.is_ok() {
            self.env.sleep(JOURNAL_DELAY).await;
        }
    }

    fn bypasses(&self, offset: u64, length: usize) -> bool {
        let stream = self.sequential.lock().note(offset, length as u64, self.env.now().0);
        self.config.sequential_cutoff > 0 && stream >= self.config.sequential_cutoff
    }

    async fn read(self: Arc<Shared>, offset: u64, buf: IoBuf, purpose: Purpose) -> Result<IoBuf, DeviceError> {
        let (block, count) = blocks(offset, buf.len());
        if offset + buf.len() as u64 > self.disk.size() {
            let past = ErrorKind::PastEnd;
            return Err(DeviceError::new(self.disk.name(), "read", offset, buf.len() as u64, past));
        }
        let bypass = self.bypasses(offset, buf.len());
        let (extents, dirty) = {
            let mut index = self.index.lock();
            (index.find(block, count), index.any_dirty(block, count))
        };
        let hit = extents.iter().all(|extent| extent.place != Place::Disk);
        let counter = match (hit, bypass) {
            (true, _) => &self.read_hits,
            (false, true) => &self.bypassed_reads,
            (false, false) => &self.read_misses,
        };
        counter.fetch_add(1, Relaxed);
        self.dirty_hits.fetch_add(u64::from(hit && dirty), Relaxed);
        if let [extent] = extents[..] {
            return self.read_extent(extent, buf, purpose, !bypass).await;
        }
        let mut buf = buf;
        let parts = extents.iter().map(|extent| {
            let part = IoBuf::zeroed(extent.count as usize * BLOCK as usize);
            self.read_extent(*extent, part, purpose, !bypass)
        });
        let parts = try_join_all(parts).await?;
        for (extent, part) in extents.iter().zip(parts) {
            let at = ((extent.block - block) * BLOCK) as usize;
            buf[at..at + part.len()].copy_from_slice(&part);
        }
        Ok(buf)
    }

    /// `admit`: what is read from the disk enters the cache.
    async fn read_extent(
        self: &Arc<Shared>,
        Extent { block, count, place }: Extent,
        mut buf: IoBuf,
        purpose: Purpose,
        admit: bool,
    ) -> Result<IoBuf, DeviceError> {
        if let Place::Flash { slot, generation } = place {
            buf = self.flash.read(self.layout.slot_at(slot), buf, Purpose::Flash).await?;
            if self.index.lock().is_current(slot, generation) {
                return Ok(buf);
            } // The bucket was used again meanwhile; it was clean, or its blocks moved.
            return Box::pin(self.clone().read(block * BLOCK, buf, purpose)).await;
        }
        let read = admit.then(|| self.index.lock().await_read(block, count));
        let buf = self.disk.read(block * BLOCK, buf, purpose).await?;
        if let Some(read) = read {
            self.env.spawn("block cache's admission", self.clone().admit(block, read, IoBuf::padded(&buf)));
        }
        Ok(buf)
    }

    /// What was read enters the cache. An error is a crash's: nobody hears of it.
    async fn admit(self: Arc<Shared>, block: u64, read: u64, buf: IoBuf) {
        let (_, count) = blocks(0, buf.len());
        let rooms = if self.index.lock().is_awaited(block, count, read) {
            self.place(Stream::Reads, &buf).await.unwrap_or_default()
        } else {
            Vec::new()
        };
        let mut index = self.index.lock();
        if index.is_awaited(block, count, read) {
            put(&mut index, block, &rooms, false);
            index.await_no_more(block, count);
        }
        rooms.iter().for_each(|room| index.unpin(room.slot));
    }

    /// Writes to slots, which stay pinned; none where there is no bucket to be had.
    async fn place(&self, stream: Stream, buf: &[u8]) -> Result<Vec<Room>, DeviceError> {
        let mut rooms: Vec<Room> = Vec::new();
        let (_, mut wanted) = blocks(0, buf.len());
        while wanted > 0 {
            let room = self.index.lock().take(stream, wanted);
            match room {
                Some(room) => {
                    wanted -= room.count;
                    rooms.push(room);
                }
                None if self.free_buckets().await? => {}
                None => {
                    let mut index = self.index.lock();
                    rooms.iter().for_each(|room| index.unpin(room.slot));
                    return Ok(Vec::new());
                }
            }
        }
        let mut rest = buf;
        let writes = rooms.iter().map(|room| {
            let (part, behind) = rest.split_at(room.count as usize * BLOCK as usize);
            rest = behind;
            self.flash.write(self.layout.slot_at(room.slot), IoBuf::padded(part), Purpose::Flash)
        });
        try_join_all(writes.collect::<Vec<_>>()).await?;
        Ok(rooms)
    }

    /// Gives buckets up where none is free; whether one is then.
    async fn free_buckets(&self) -> Result<bool, DeviceError> {
        let _one_at_a_time = self.freeing.lock().await;
        let buckets = {
            let mut index = self.index.lock();
            if index.any_free() {
                return Ok(true);
            }
            let count = (self.layout.buckets as usize / GIVEN_UP).max(1);
            index.give_up(count)
        };
        if buckets.is_empty() {
            return Ok(false);
        }
        self.journal.flush(&self.index).await?;
        self.index.lock().freed(buckets);
        Ok(true)
    }

    /// Invariant 2; `full`: there was no bucket for it.
    fn way_of(&self, block: u64, count: u32, bypass: bool, full: bool) -> Way {
        let index = self.index.lock();
        let back = self.config.mode == Mode::WriteBack && index.percent_of_buckets_dirty() < CUTOFF_WRITE_BACK;
        match () {
            () if index.any_dirty(block, count) => Way::Back,
            () if bypass || full => Way::Around,
            () if back => Way::Back,
            () => Way::Through,
        }
    }

    async fn write(self: Arc<Shared>, offset: u64, buf: IoBuf, purpose: Purpose) -> Result<IoBuf, DeviceError> {
        let (block, count) = blocks(offset, buf.len());
        let end = offset + buf.len() as u64;
        if end > self.disk.size() {
            self.disk.allocate(offset, buf.len() as u64).await?;
        }
        let bypass = self.bypasses(offset, buf.len());
        self.bypassed_writes.fetch_add(u64::from(bypass), Relaxed);
        let mut full = false;
        loop {
            let way = self.way_of(block, count, bypass, full);
            if way == Way::Back {
                let rooms = self.place(Stream::Writes, &buf).await?;
                if rooms.is_empty() {
                    if full {
                        self.starve().await;
                    }
                    full = true;
                    continue;
                }
                self.finish(block, count, &rooms, true);
                self.dirtied.notify_one();
                return Ok(buf);
            }
            let copy = IoBuf::padded(&buf);
            let cache =
                async { if way == Way::Through { self.place(Stream::Writes, &copy).await } else { Ok(Vec::new()) } };
            let (buf, rooms) = futures::try_join!(self.disk.write(offset, buf, purpose), cache)?;
            self.finish(block, count, &rooms, false);
            return Ok(buf);
        }
    }

    /// Every bucket has a dirty block, or is busy: write-back is asked for one.
    async fn starve(&self) {
        self.starving.fetch_add(1, Relaxed);
        self.dirtied.notify_one();
        self.env.sleep(NO_BUCKET).await;
        self.starving.fetch_sub(1, Relaxed);
    }

    /// What was written is in these slots, or in none.
    fn finish(&self, block: u64, count: u32, rooms: &[Room], dirty: bool) {
        let mut index = self.index.lock();
        if rooms.is_empty() {
            index.forget(block, count);
        }
        put(&mut index, block, rooms, dirty);
        rooms.iter().for_each(|room| index.unpin(room.slot));
        match (rooms.is_empty(), dirty) {
            (true, _) => {}
            (false, true) => drop(self.writes_back.fetch_add(1, Relaxed)),
            (false, false) => drop(self.writes_through.fetch_add(1, Relaxed)),
        }
    }

    async fn sync(self: Arc<Shared>, purpose: Purpose) -> Result<(), DeviceError> {
        futures::try_join!(self.disk.sync(purpose), self.journal.flush(&self.index)).map(drop)
    }
}

fn put(index: &mut Index, mut block: u64, rooms: &[Room], dirty: bool) {
    for &Room { slot, count } in rooms {
        index.record(Record::Put { block, slot, count, dirty });
        block += u64::from(count);
    }
}

/// The first block and how many.
fn blocks(offset: u64, length: usize) -> (u64, u32) {
    (offset / BLOCK, u32::try_from(length as u64 / BLOCK).expect("a transfer of less than 16 TiB"))
}

impl Device for BlockCache {
    fn name(&self) -> &str {
        self.0.disk.name()
    }
    fn guarantees(&self) -> Guarantees {
        let (disk, flash) = (self.0.disk.guarantees(), self.0.flash.guarantees());
        Guarantees { atomic_write: disk.atomic_write.min(flash.atomic_write), ..disk }
    }
    fn size(&self) -> u64 {
        self.0.disk.size()
    }
    fn read(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf> {
        Box::pin(self.0.clone().read(offset, buf, purpose))
    }
    fn write(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf> {
        Box::pin(self.0.clone().write(offset, buf, purpose))
    }
    fn sync(&self, purpose: Purpose) -> IoFuture<'_, ()> {
        Box::pin(self.0.clone().sync(purpose))
    }
    fn allocate(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        self.0.disk.allocate(offset, len)
    }
    /// Gives back what the cache holds of it too.
    fn discard(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        let shared = self.0.clone();
        Box::pin(async move {
            shared.disk.discard(offset, len).await?;
            let (block, count) = blocks(offset, usize::try_from(len).unwrap_or(usize::MAX));
            shared.index.lock().forget(block, count);
            Ok(())
        })
    }
    /// The disk's.
    fn stats(&self) -> DeviceStats {
        self.0.disk.stats()
    }
}
