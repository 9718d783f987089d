//! What lies where in the cache: buckets, what they hold, and which is used again next. No I/O.
//!
//! 1. A slot holds a block, and belongs to a bucket. A bucket is filled from its beginning to its end, once; then it is
//!    full until all of it is given up. A block that is written again goes to another slot.
//! 2. A bucket with a dirty block, or with one that a transfer is busy with (*pinned*), is not used again.
//! 3. Every change of the map is a [`Record`]. Applied in order, records give the same map again.
//! 4. What was read from the disk enters only if nothing has written it, or given it up, since the read began.
use super::layout::Layout;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};

/// A change, as the journal keeps it. `count` blocks from `block` on lie in as many slots from `slot` on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Record {
    Put {
        block: u64,
        slot: u32,
        count: u32,
        dirty: bool,
    },
    /// They are on the disk now. Those that moved since stay as they are.
    Clean {
        block: u64,
        slot: u32,
        count: u32,
    },
    Forget {
        block: u64,
        count: u32,
    },
    /// All that the bucket held is given up.
    Reuse {
        bucket: u32,
    },
}

/// Neighbours on the disk that lie together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    pub(super) block: u64,
    pub(super) count: u32,
    pub(super) place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Valid as long as the bucket has this generation.
    Flash {
        slot: u32,
        generation: u32,
    },
    Disk,
}

/// Slots to fill, and their bucket pinned for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Room {
    pub(super) slot: u32,
    pub(super) count: u32,
}

/// Who fills a bucket: what is written and what was read lie apart, as they come from different tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stream {
    Reads,
    Writes,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    /// Given up, but the journal does not know yet.
    Leaving,
    Filling,
    Full,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    state: State,
    /// Of its last use; falls as the cache is used.
    priority: u16,
    generation: u32,
    pins: u32,
    used: u32,
    dirty: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    slot: u32,
    dirty: bool,
}

/// Of a bucket that is used now.
const NEWEST: u16 = 32768;
/// A bucket's priority falls by one whenever this part of the cache was transferred.
const AGING: u64 = 1024;
const NOBODY: u64 = u64::MAX;

pub(super) struct Index {
    per_bucket: u32,
    buckets: Vec<Bucket>,
    /// By slot.
    owners: Vec<u64>,
    map: FxHashMap<u64, Entry>,
    dirty: BTreeSet<u64>,
    dirty_buckets: u32,
    free: VecDeque<u32>,
    /// By stream: the next slot.
    filling: [Option<u32>; 2],
    /// Blocks on their way from the disk into the cache, and for which read.
    awaited: FxHashMap<u64, u64>,
    reads: u64,
    /// Blocks transferred since priorities fell.
    transferred: u64,
    /// Not yet in the journal.
    pub(super) records: Vec<Record>,
}

impl Index {
    pub(super) fn new(layout: &Layout) -> Index {
        let fresh = Bucket { state: State::Free, priority: 0, generation: 0, pins: 0, used: 0, dirty: 0 };
        Index {
            per_bucket: layout.per_bucket,
            buckets: vec![fresh; layout.buckets as usize],
            owners: vec![NOBODY; layout.slots() as usize],
            map: FxHashMap::default(),
            dirty: BTreeSet::new(),
            dirty_buckets: 0,
            free: (0..layout.buckets).collect(),
            filling: [None; 2],
            awaited: FxHashMap::default(),
            reads: 0,
            transferred: 0,
            records: Vec::new(),
        }
    }

    pub(super) fn slots(&self) -> usize {
        self.owners.len()
    }

    pub(super) fn used(&self) -> usize {
        self.map.len()
    }

    pub(super) fn dirty(&self) -> usize {
        self.dirty.len()
    }

    /// The part of the buckets, in hundredths, that hold dirty blocks.
    pub(super) fn percent_of_buckets_dirty(&self) -> u32 {
        self.dirty_buckets * 100 / self.buckets.len() as u32
    }

    fn bucket_of(&mut self, slot: u32) -> &mut Bucket {
        &mut self.buckets[(slot / self.per_bucket) as usize]
    }

    /// Where the blocks are; their buckets count as used now.
    pub(super) fn find(&mut self, block: u64, count: u32) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::new();
        for at in block..block + u64::from(count) {
            let place = match self.map.get(&at).map(|entry| entry.slot) {
                None => Place::Disk,
                Some(slot) => {
                    let bucket = self.bucket_of(slot);
                    bucket.priority = NEWEST;
                    Place::Flash { slot, generation: bucket.generation }
                }
            };
            match extents.last_mut() {
                Some(last) if self.follows(last, place) => last.count += 1,
                _ => extents.push(Extent { block: at, count: 1, place }),
            }
        }
        self.age(count);
        extents
    }

    fn follows(&self, extent: &Extent, place: Place) -> bool {
        match (extent.place, place) {
            (Place::Disk, Place::Disk) => true,
            (Place::Flash { slot: first, .. }, Place::Flash { slot, .. }) => {
                slot == first + extent.count && slot / self.per_bucket == first / self.per_bucket
            }
            _ => false,
        }
    }

    fn age(&mut self, count: u32) {
        self.transferred += u64::from(count);
        let step = (self.owners.len() as u64 / AGING).max(1);
        if self.transferred >= step {
            let fall = u16::try_from(self.transferred / step).unwrap_or(u16::MAX);
            self.transferred %= step;
            self.buckets.iter_mut().for_each(|bucket| bucket.priority = bucket.priority.saturating_sub(fall));
        }
    }

    /// Whether what was found there is still there.
    pub(super) fn is_current(&self, slot: u32, generation: u32) -> bool {
        self.buckets[(slot / self.per_bucket) as usize].generation == generation
    }

    pub(super) fn any_dirty(&self, block: u64, count: u32) -> bool {
        self.dirty.range(block..block + u64::from(count)).next().is_some()
    }

    /// A read from the disk begins whose blocks shall enter; its number.
    pub(super) fn await_read(&mut self, block: u64, count: u32) -> u64 {
        self.reads += 1;
        self.awaited.extend((block..block + u64::from(count)).map(|at| (at, self.reads)));
        self.reads
    }

    /// Invariant 4: whether nothing came between.
    pub(super) fn is_awaited(&self, block: u64, count: u32, read: u64) -> bool {
        (block..block + u64::from(count)).all(|at| self.awaited.get(&at) == Some(&read))
    }

    pub(super) fn await_no_more(&mut self, block: u64, count: u32) {
        for at in block..block + u64::from(count) {
            self.awaited.remove(&at);
        }
    }

    /// At most so many slots that lie together; `None`: no bucket is free.
    pub(super) fn take(&mut self, stream: Stream, count: u32) -> Option<Room> {
        let slot = match self.filling[stream as usize] {
            Some(slot) => slot,
            None => {
                let bucket = self.free.pop_front()?;
                self.buckets[bucket as usize].state = State::Filling;
                self.buckets[bucket as usize].priority = NEWEST;
                bucket * self.per_bucket
            }
        };
        let count = count.min(self.per_bucket - slot % self.per_bucket);
        let end = slot + count;
        let full = end.is_multiple_of(self.per_bucket);
        self.filling[stream as usize] = (!full).then_some(end);
        let bucket = self.bucket_of(slot);
        bucket.pins += 1;
        if full {
            bucket.state = State::Full;
        }
        Some(Room { slot, count })
    }

    /// The cache holds nothing of these blocks from here on.
    pub(super) fn forget(&mut self, block: u64, count: u32) {
        self.await_no_more(block, count);
        if (block..block + u64::from(count)).any(|at| self.map.contains_key(&at)) {
            self.record(Record::Forget { block, count });
        }
    }

    pub(super) fn unpin(&mut self, slot: u32) {
        self.bucket_of(slot).pins -= 1;
    }

    pub(super) fn record(&mut self, record: Record) {
        self.apply(record);
        self.records.push(record);
    }

    /// Gives up so many buckets, the least worth first; fewer where there are not as many (invariant 2). They are free
    /// when the journal knows it: then call [`Index::freed`].
    pub(super) fn give_up(&mut self, count: usize) -> Vec<u32> {
        let idle = |bucket: &Bucket| bucket.state == State::Full && bucket.pins == 0 && bucket.dirty == 0;
        let idle: Vec<(u32, &Bucket)> = (0..).zip(&self.buckets).filter(|(_, bucket)| idle(bucket)).collect();
        let least = idle.iter().map(|(_, bucket)| bucket.priority).min().unwrap_or(0);
        let floor = u64::from(NEWEST - least) / 8;
        let worth = |bucket: &Bucket| (u64::from(bucket.priority - least) + floor) * u64::from(bucket.used);
        let mut order: Vec<(u64, u32)> = idle.into_iter().map(|(number, bucket)| (worth(bucket), number)).collect();
        order.sort_unstable();
        let chosen: Vec<u32> = order.into_iter().take(count).map(|(_, number)| number).collect();
        chosen.iter().for_each(|bucket| self.record(Record::Reuse { bucket: *bucket }));
        chosen
    }

    pub(super) fn freed(&mut self, buckets: Vec<u32>) {
        for bucket in buckets {
            self.buckets[bucket as usize].state = State::Free;
            self.free.push_back(bucket);
        }
    }

    pub(super) fn any_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Dirty extents in the disk's order, from the block on and then from the beginning, pinned.
    pub(super) fn dirty_from(&mut self, block: u64, most: usize) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::new();
        for at in self.dirty.range(block..).chain(self.dirty.range(..block)) {
            let slot = self.map[at].slot;
            let generation = self.buckets[(slot / self.per_bucket) as usize].generation;
            let place = Place::Flash { slot, generation };
            match extents.last_mut() {
                Some(last) if last.block + u64::from(last.count) == *at && self.follows(last, place) => last.count += 1,
                _ => extents.push(Extent { block: *at, count: 1, place }),
            }
            if extents.len() > most {
                extents.pop();
                break;
            }
        }
        for extent in &extents {
            if let Place::Flash { slot, .. } = extent.place {
                self.bucket_of(slot).pins += 1;
            }
        }
        extents
    }

    /// Those of the full bucket with the fewest dirty blocks, pinned: where they are clean it can be given up.
    pub(super) fn dirty_of_barest(&mut self) -> Vec<Extent> {
        let waits = |bucket: &Bucket| bucket.state == State::Full && bucket.pins == 0 && bucket.dirty > 0;
        let full = (0..).zip(&self.buckets).filter(|(_, bucket)| waits(bucket));
        let Some((number, bucket)) = full.min_by_key(|(_, bucket)| bucket.dirty) else { return Vec::new() };
        let (first, generation): (u32, u32) = (number * self.per_bucket, bucket.generation);
        let slots = (first..first + self.per_bucket).map(|slot| (self.owners[slot as usize], slot));
        let mut dirty: Vec<(u64, u32)> = slots.filter(|(owner, _)| self.dirty.contains(owner)).collect();
        dirty.sort_unstable();
        self.bucket_of(first).pins += u32::try_from(dirty.len()).expect("a bucket's slots");
        let extent = |(block, slot)| Extent { block, count: 1, place: Place::Flash { slot, generation } };
        dirty.into_iter().map(extent).collect()
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::Put { block, slot, count, dirty } => {
                self.await_no_more(block, count);
                for i in 0..count {
                    self.remove(block + u64::from(i));
                    self.insert(block + u64::from(i), Entry { slot: slot + i, dirty });
                }
                self.age(count);
            }
            Record::Clean { block, slot, count } => {
                for i in 0..count {
                    let (at, entry) = (block + u64::from(i), Entry { slot: slot + i, dirty: true });
                    if self.map.get(&at) == Some(&entry) {
                        self.remove(at);
                        self.insert(at, Entry { dirty: false, ..entry });
                    }
                }
            }
            Record::Forget { block, count } => {
                self.await_no_more(block, count);
                (block..block + u64::from(count)).for_each(|at| self.remove(at));
            }
            Record::Reuse { bucket } => {
                for slot in bucket * self.per_bucket..(bucket + 1) * self.per_bucket {
                    let owner = self.owners[slot as usize];
                    if owner != NOBODY {
                        self.remove(owner);
                    }
                }
                let bucket = &mut self.buckets[bucket as usize];
                bucket.generation += 1;
                bucket.state = State::Leaving;
            }
        }
    }

    fn insert(&mut self, block: u64, entry: Entry) {
        self.owners[entry.slot as usize] = block;
        self.map.insert(block, entry);
        let bucket = self.bucket_of(entry.slot);
        bucket.used += 1;
        if entry.dirty {
            bucket.dirty += 1;
            let first = bucket.dirty == 1;
            self.dirty_buckets += u32::from(first);
            self.dirty.insert(block);
        }
    }

    fn remove(&mut self, block: u64) {
        let Some(entry) = self.map.remove(&block) else { return };
        self.owners[entry.slot as usize] = NOBODY;
        let bucket = self.bucket_of(entry.slot);
        bucket.used -= 1;
        if entry.dirty {
            bucket.dirty -= 1;
            let last = bucket.dirty == 0;
            self.dirty_buckets -= u32::from(last);
            self.dirty.remove(&block);
        }
    }

    /// Each bucket's priority; by slot, the block and whether it is dirty: what [`Index::restored`] takes.
    pub(super) fn contents(&self) -> (Vec<u16>, Vec<Option<(u64, bool)>>) {
        let of = |owner: &u64| (*owner != NOBODY).then(|| (*owner, self.map[owner].dirty));
        (self.buckets.iter().map(|bucket| bucket.priority).collect(), self.owners.iter().map(of).collect())
    }

    /// As it was when its contents were told, and with the records after that: nothing is being filled. A bucket that
    /// holds nothing is free.
    pub(super) fn restored(
        layout: &Layout,
        priorities: &[u16],
        slots: &[Option<(u64, bool)>],
        records: &[Record],
    ) -> Index {
        let mut index = Index::new(layout);
        for (bucket, priority) in index.buckets.iter_mut().zip(priorities) {
            bucket.priority = *priority;
        }
        for (slot, of) in (0..).zip(slots) {
            if let Some((block, dirty)) = *of {
                index.insert(block, Entry { slot, dirty });
            }
        }
        records.iter().for_each(|record| index.apply(*record));
        for bucket in &mut index.buckets {
            bucket.state = if bucket.used > 0 { State::Full } else { State::Free };
        }
        let empty = (0..).zip(&index.buckets).filter(|(_, bucket)| bucket.state == State::Free);
        index.free = empty.map(|(number, _)| number).collect();
        index
    }
}
