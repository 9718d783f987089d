use super::index::{Index, Place, Record, Stream};
use super::layout::{BLOCK, Layout};
use super::*;
use crate::machine::VirtualTime;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use terrace_device::fault::{Choice, FaultDevice, Recorder};
use terrace_device::latency::{Cost, Latency, Model};
use terrace_device::{Image, SECTOR};
use terrace_env::Sim;

const BUCKET: u64 = 16 << 10;
const SIZE: u64 = 64 * BUCKET;
/// Of the disk.
const BLOCKS: u64 = 1024;

/// A disk and a flash device that are switched on.
struct World {
    sim: Sim,
    recorder: Arc<Recorder>,
    disk: Arc<FaultDevice>,
    flash: Arc<FaultDevice>,
    cache: BlockCache,
}

impl World {
    fn new(seed: u64, config: BlockCacheConfig, images: Option<[Image; 2]>) -> World {
        let (sim, recorder) = (Sim::new(seed, 1), Recorder::new(false));
        let timer = Arc::new(VirtualTime(sim.env()));
        let device = |name, image, fixed, atomic_write| {
            let model = Model {
                read: Cost::new(fixed, 0),
                write: Cost::new(fixed, 0),
                sync: Cost::new(fixed / 2, 0),
                parallelism: 4,
            };
            let guarantees = Guarantees { atomic_write, capacity: u64::MAX };
            let latency = Arc::new(Latency::new(model, timer.clone()));
            Arc::new(recorder.device(name, guarantees, image).with_latency(latency))
        };
        let mut empty = Image::new();
        empty.grow(BLOCKS * BLOCK);
        let [on_disk, on_flash] = images.unwrap_or([empty, Image::new()]);
        // The disk tears no blocks, which the cache could not help. The flash tears all that was not synced.
        let disk = device("disk", on_disk, 5_000_000, 1 << 20);
        let flash = device("flash", on_flash, 100_000, 512);
        let (env, below) = (sim.env(), (disk.clone(), flash.clone()));
        let cache = sim.run(async move { BlockCache::open(&env, below.0, below.1, config).await }).unwrap();
        World { sim, recorder, disk, flash, cache }
    }

    fn crash(self, choice: Choice) -> [Image; 2] {
        self.recorder.power_off();
        self.sim.crash();
        let mut images = self.recorder.contents(choice).into_iter();
        std::array::from_fn(|_| images.next().expect("two devices"))
    }

    fn write(&self, block: u64, versions: &[u64]) {
        let (cache, buf) = (self.cache.clone(), filled(block, versions));
        self.sim.run(async move { cache.write(block * BLOCK, buf, Purpose::Data).await }).unwrap();
    }

    fn read(&self, block: u64, count: usize) -> Vec<u64> {
        let cache = self.cache.clone();
        let buf = IoBuf::zeroed(count * SECTOR);
        let buf = self.sim.run(async move { cache.read(block * BLOCK, buf, Purpose::Data).await }).unwrap();
        versions(block, &buf)
    }

    fn sync(&self) {
        let cache = self.cache.clone();
        self.sim.run(async move { cache.sync(Purpose::Data).await }).unwrap();
    }

    fn wait(&self, time: Duration) {
        self.sim.run(self.sim.env().sleep(time));
    }
}

fn config(mode: Mode) -> BlockCacheConfig {
    BlockCacheConfig { bucket: BUCKET, sequential_cutoff: 64 << 10, ..BlockCacheConfig::new(mode, SIZE) }
}

/// Each block says which it is, and its version; version 0 is a block of zeros.
fn filled(block: u64, versions: &[u64]) -> IoBuf {
    let mut buf = IoBuf::zeroed(versions.len() * SECTOR);
    for ((at, version), bytes) in (block..).zip(versions).zip(buf.chunks_mut(SECTOR)) {
        for half in bytes.chunks_mut(SECTOR / 2) {
            half[..8].copy_from_slice(&at.to_le_bytes());
            half[8..16].copy_from_slice(&version.to_le_bytes());
        }
    }
    buf
}

fn versions(block: u64, buf: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let version = |(at, bytes): (u64, &[u8])| {
        let (first, second) = bytes.split_at(SECTOR / 2);
        assert_eq!(first, second, "block {at} is torn");
        let version = word(bytes, 8);
        assert_eq!(word(bytes, 0), if version == 0 { 0 } else { at }, "the block's own bytes");
        version
    };
    (block..).zip(buf.chunks(SECTOR)).map(version).collect()
}

/// Of each block: the newest version that must survive, the newest that was written whole, the newest begun.
#[derive(Clone, Copy, Default)]
struct Known {
    durable: u64,
    written: u64,
    begun: u64,
}

const USERS: u64 = 4;

/// Reads, writes and syncs in blocks that nobody else uses, until the power goes.
async fn user(cache: BlockCache, known: Arc<Mutex<Vec<Known>>>, user: u64, seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(user);
    let share = BLOCKS / USERS;
    loop {
        let count = if random.random_bool(0.1) { random.random_range(1..32) } else { random.random_range(1..4) };
        // Some blocks are hot.
        let within = if random.random_bool(0.6) { share / 8 } else { share - count };
        let block = user * share + random.random_range(0..within);
        let range = block as usize..(block + count) as usize;
        match random.random_range(0..10) {
            0..5 => {
                let buf = IoBuf::zeroed(count as usize * SECTOR);
                let Ok(buf) = cache.read(block * BLOCK, buf, Purpose::Data).await else { return };
                for (found, known) in versions(block, &buf).iter().zip(&known.lock()[range]) {
                    assert!((known.durable..=known.begun).contains(found) && *found >= known.written.min(known.begun));
                }
            }
            5..9 => {
                let next: Vec<u64> = {
                    let mut known = known.lock();
                    known[range.clone()].iter_mut().map(|known| (known.begun += 1, known.begun).1).collect()
                };
                let Ok(_) = cache.write(block * BLOCK, filled(block, &next), Purpose::Data).await else { return };
                known.lock()[range].iter_mut().for_each(|known| known.written = known.begun);
            }
            _ => {
                let own = (user * share) as usize..((user + 1) * share) as usize;
                let written: Vec<u64> = known.lock()[own.clone()].iter().map(|known| known.written).collect();
                let Ok(()) = cache.sync(Purpose::Data).await else { return };
                for (known, written) in known.lock()[own].iter_mut().zip(written) {
                    known.durable = known.durable.max(written);
                }
            }
        }
    }
}

/// What is written is read; what is synced survives crashes; a crashed cache goes on.
#[test]
fn what_is_synced_survives() {
    for (seed, mode) in (0..16).zip([Mode::WriteThrough, Mode::WriteBack].into_iter().cycle()) {
        let known = Arc::new(Mutex::new(vec![Known::default(); BLOCKS as usize]));
        let mut images = None;
        let (mut hits, mut kept) = (0, 0);
        for life in 0..4 {
            let world = World::new(seed, config(mode), images.take());
            kept += world.cache.cache_stats().used;
            for number in 0..USERS {
                let task = user(world.cache.clone(), known.clone(), number, seed << 8 | life);
                world.sim.env().spawn("user", task);
            }
            world.wait(Duration::from_millis(2000 + 37 * seed));
            hits += world.cache.cache_stats().read_hits;
            let choice = [Choice::None, Choice::All, Choice::Random(seed)][(seed + life) as usize % 3];
            images = Some(world.crash(choice));
            // A version that no crash kept is not one that was written; it may come back all the same.
            known.lock().iter_mut().for_each(|known| known.written = known.durable);
        }
        assert!(hits > 100 && kept > 0, "seed {seed}: {hits} hits, {kept} bytes were still cached after crashes");
        let world = World::new(seed, config(mode), images);
        for (block, known) in (0..).zip(known.lock().iter()) {
            let found = world.read(block, 1)[0];
            assert!((known.durable..=known.begun).contains(&found), "seed {seed}: block {block} has version {found}");
        }
    }
}

#[test]
fn a_write_back_cache_keeps_dirty_blocks_as_far_as_its_journal_says() {
    let world = World::new(1, config(Mode::WriteBack), None);
    world.write(5, &[1]);
    world.sync();
    world.write(5, &[2]);
    assert_eq!(world.disk.stats().writes, 0, "the disk knows nothing of it");
    let images = world.crash(Choice::None);
    let world = World::new(1, config(Mode::WriteBack), Some(images));
    assert_eq!((world.read(5, 1), world.cache.cache_stats().dirty), (vec![1], BLOCK));
    world.write(5, &[3]);
    world.wait(JOURNAL_DELAY * 2);
    let world = World::new(1, config(Mode::WriteBack), Some(world.crash(Choice::None)));
    assert_eq!(world.read(5, 1), [3], "nobody synced, but the journal does within a while");
}

/// The power goes at each moment of a flush, and takes all that was not synced but the last write: the journal must not
/// know of data that is not there.
#[test]
fn the_journal_follows_the_data() {
    for moment in 1..30 {
        let world = World::new(1, config(Mode::WriteBack), None);
        world.write(5, &[1]);
        world.sync();
        world.write(5, &[2]);
        let cache = world.cache.clone();
        world.sim.env().spawn("flush", async move { drop(cache.sync(Purpose::Data).await) });
        world.wait(Duration::from_micros(10 * moment));
        let world = World::new(1, config(Mode::WriteBack), Some(world.crash(Choice::OnlyLast)));
        assert!([1, 2].contains(&world.read(5, 1)[0]), "after {moment} times 10 us");
    }
}

#[test]
fn a_write_through_cache_is_never_needed() {
    let world = World::new(1, config(Mode::WriteThrough), None);
    world.write(5, &[1, 1, 1]);
    world.sync();
    let [disk, _] = world.crash(Choice::None);
    let world = World::new(1, config(Mode::WriteThrough), Some([disk, Image::new()]));
    assert_eq!((world.read(5, 3), world.cache.cache_stats().dirty), (vec![1; 3], 0));
}

#[test]
fn a_crash_leaves_the_cache_warm() {
    for mode in [Mode::WriteThrough, Mode::WriteBack] {
        let world = World::new(1, config(mode), None);
        for block in (0..60).step_by(2) {
            world.read(300 + block, 1);
            world.write(block, &[1]);
        }
        world.wait(JOURNAL_DELAY * 2);
        let before = world.cache.cache_stats().used;
        let world = World::new(1, config(mode), Some(world.crash(Choice::None)));
        assert_eq!((before, world.cache.cache_stats().used), (60 * BLOCK, 60 * BLOCK));
        let disk = world.disk.stats().reads;
        assert_eq!((world.read(302, 1), world.read(30, 1)), (vec![0], vec![1]));
        assert_eq!(world.disk.stats().reads, disk);
    }
}

#[test]
fn sequential_streams_bypass_the_cache() {
    for mode in [Mode::WriteThrough, Mode::WriteBack] {
        let world = World::new(1, config(mode), None);
        for block in 0..32 {
            world.read(block, 1);
            world.read(200 + block * 77 % 800, 1);
        }
        world.wait(Duration::from_secs(1));
        // 64 KiB of the stream, its last transfer not; the others are no stream.
        assert_eq!((world.cache.cache_stats().used, world.cache.cache_stats().bypassed_reads), ((15 + 32) * BLOCK, 17));
        for block in 100..132 {
            world.write(block, &[7]);
        }
        assert_eq!(world.cache.cache_stats().used, (15 + 32 + 15) * BLOCK);
        assert_eq!(world.read(100, 32), [7; 32], "half of it here, half of it there");
    }
}

#[test]
fn a_bypassing_write_does_not_pass_dirty_blocks() {
    let world = World::new(1, config(Mode::WriteBack), None);
    world.write(100, &[1]);
    world.sync();
    for block in 80..120 {
        world.write(block, &[2]);
    }
    assert_eq!(world.cache.cache_stats().dirty, 16 * BLOCK, "15 of the stream, and the one that was dirty");
    world.wait(Duration::from_secs(5));
    assert_eq!(world.read(80, 40), [2; 40]);
    let world = World::new(1, config(Mode::WriteBack), Some(world.crash(Choice::None)));
    assert!(world.read(100, 1)[0] >= 1);
}

#[test]
fn write_back_holds_the_target() {
    let world = World::new(3, BlockCacheConfig { writeback_percent: 20, ..config(Mode::WriteBack) }, None);
    let mut random = ChaCha8Rng::seed_from_u64(3);
    for version in 1..400 {
        world.write(random.random_range(0..BLOCKS / 2) * 2, &[version]);
        let stats = world.cache.cache_stats();
        assert!(stats.dirty <= stats.capacity * 7 / 10 + BLOCK, "{stats:?}");
    }
    world.wait(Duration::from_secs(10));
    let stats = world.cache.cache_stats();
    assert!(stats.dirty <= stats.capacity / 5 && stats.dirty >= stats.capacity / 10, "{stats:?}");
    let idle = world.disk.stats().writes;
    world.wait(Duration::from_secs(10));
    assert_eq!(world.disk.stats().writes, idle, "and no more than that");
}

/// Every bucket has a dirty block and no more are dirty than wanted: a write to one of them, which may not go around
/// the cache, gets a bucket all the same.
#[test]
fn a_write_that_no_bucket_is_left_for_gets_one() {
    let world = World::new(5, BlockCacheConfig { writeback_percent: 100, ..config(Mode::WriteBack) }, None);
    let mut dirty = 0;
    while world.cache.cache_stats().dirty_buckets < CUTOFF_WRITE_BACK {
        world.write(dirty * 3, &[1]);
        dirty += 1;
    }
    // Now three of each bucket's four, once: they move to other buckets, and one stays.
    let writing = world.cache.clone();
    let all = async move {
        for block in (1..4).flat_map(|of| (of..dirty).step_by(4)) {
            let buf = filled(block * 3, &[2]);
            writing.write(block * 3 * BLOCK, buf, Purpose::Data).await.expect("the devices work");
        }
    };
    let time = world.sim.env().sleep(Duration::from_secs(60));
    let ended = world.sim.run(async move {
        let all = std::pin::pin!(all);
        matches!(futures::future::select(all, time).await, futures::future::Either::Left(_))
    });
    assert!(ended, "a minute was not enough: {:?}", world.cache.cache_stats());
    assert!(world.disk.stats().writes > 0, "no bucket was wanted: this tells nothing");
}

/// All that goes to flash is counted: data, the journal's entries, indexes.
#[test]
fn flash_bytes_are_data_and_metadata() {
    let world = World::new(1, config(Mode::WriteThrough), None);
    let before = world.flash.stats().write_bytes;
    for block in 0..10 {
        world.write(block * 7, &[1, 1]);
        world.sync();
    }
    let data = 10 * 2 * BLOCK;
    assert_eq!(world.flash.stats().write_bytes - before, data + 10 * BLOCK, "an entry is a sector");
    for _ in 0..6 {
        world.write(3, &[1]);
        world.sync();
    }
    let layout = Layout::new(SIZE, BUCKET);
    let written = world.flash.stats().write_bytes - before;
    assert_eq!(written, data + 6 * BLOCK + 16 * BLOCK, "the journal is full");
    world.write(3, &[1]);
    world.sync();
    let index = world.flash.stats().write_bytes - before - written - BLOCK;
    assert_eq!(index, layout.index_bytes);
}

#[test]
fn the_bucket_with_the_least_to_lose_goes_first() {
    let layout = Layout::new(SIZE, BUCKET);
    let mut index = Index::new(&layout);
    let mut next = 0;
    let mut fill = |index: &mut Index, bucket: u64| {
        while next < (bucket + 1) * 4 {
            let room = index.take(Stream::Reads, 4).unwrap();
            index.record(Record::Put { block: next, slot: room.slot, count: room.count, dirty: bucket == 0 });
            index.unpin(room.slot);
            next += u64::from(room.count);
        }
    };
    (0..4).for_each(|bucket| fill(&mut index, bucket));
    let Place::Flash { slot, generation } = index.find(8, 1)[0].place else { panic!("it is cached") };
    for block in 0..2000 {
        index.find(4, 1); // Bucket 1 is used, the others grow old.
        index.find(100_000 + block, 1);
    }
    index.record(Record::Forget { block: 12, count: 3 });
    assert_eq!(index.give_up(1), [3], "it holds one block");
    assert!(index.is_current(slot, generation));
    assert_eq!(index.give_up(3), [2, 1], "the older one; never the dirty one");
    assert!(!index.is_current(slot, generation), "who reads there reads again");
    assert!(matches!(index.find(8, 1)[0].place, Place::Disk));
    assert!(matches!(index.find(0, 1)[0].place, Place::Flash { .. }));
}
