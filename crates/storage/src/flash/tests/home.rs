//! The tier over traced devices: which requests each read becomes, what is let in, what trouble costs.

use crate::config::{Classify, DeviceSet, FlashConfig, FlashOrder, Restart, Safeguard, StorageConfig, WritePolicy};
use crate::flash::attach::Search;
use crate::flash::layout::Stamp;
use crate::flash::partition::Due;
use crate::flash::tune::Shape;
use crate::flash::{FlashHome, FlashState, FrameId};
use crate::home::disk::DiskHome;
use crate::home::{Fetched, Home, PAGES_AT, Reason, Tier, WriteBack};
use crate::identity::Identity;
use crate::log::Log;
use crate::page::op::PageOp;
use crate::page::{PageKind, header, slotted};
use crate::pool::{Access, Pool};
use crate::testing::safeguards;
use crate::types::*;
use futures::FutureExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use terrace_device::trace::{Direction, Trace, TraceDevice};
use terrace_device::{
    Device, DeviceError, DeviceRef, DeviceStats, ErrorKind, Guarantees, IoBuf, IoFuture, MemoryDevice, Purpose,
};
use terrace_env::{Env, Sim};

const PAGE: usize = 4096;
const DATABASE: u128 = 5;

/// What is wrong with the disk.
#[derive(Default)]
pub(super) struct Ills {
    /// Milliseconds until a read answers, with what was there when it began.
    pub(super) delay: AtomicU64,
    /// Milliseconds until a write is done.
    write_delay: AtomicU64,
    /// Writes fail; syncs do.
    pub(super) broken: AtomicBool,
    pub(super) never_synced: AtomicBool,
}

struct IllDisk {
    inner: DeviceRef,
    env: Env,
    ills: Arc<Ills>,
}

impl Device for IllDisk {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }
    fn size(&self) -> u64 {
        self.inner.size()
    }
    fn read(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf> {
        Box::pin(async move {
            let read = self.inner.read(offset, buf, purpose).await;
            self.env.sleep(Duration::from_millis(self.ills.delay.load(Ordering::SeqCst))).await;
            read
        })
    }
    fn write(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf> {
        if self.ills.broken.load(Ordering::SeqCst) {
            let why = ErrorKind::Io("broken".into());
            let error = DeviceError::new(self.name(), "write", offset, buf.len() as u64, why);
            return Box::pin(std::future::ready(Err(error)));
        }
        Box::pin(async move {
            let written = self.inner.write(offset, buf, purpose).await;
            self.env.sleep(Duration::from_millis(self.ills.write_delay.load(Ordering::SeqCst))).await;
            written
        })
    }
    fn sync(&self, purpose: Purpose) -> IoFuture<'_, ()> {
        if self.ills.never_synced.load(Ordering::SeqCst) {
            let error = DeviceError::new(self.name(), "sync", 0, 0, ErrorKind::Medium("no".into()));
            return Box::pin(std::future::ready(Err(error)));
        }
        self.inner.sync(purpose)
    }
    fn allocate(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        self.inner.allocate(offset, len)
    }
    fn discard(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        self.inner.discard(offset, len)
    }
    fn stats(&self) -> DeviceStats {
        self.inner.stats()
    }
}

pub(super) struct Bench {
    pub(super) env: Env,
    pub(super) home: Arc<FlashHome>,
    log: Log,
    config: StorageConfig,
    pub(super) trace: Arc<Trace>,
    disk: Arc<Ills>,
    pub(super) flash: Arc<Ills>,
}

pub(super) fn page(no: u32) -> PageId {
    PageId::new(DATA, no)
}

/// A page whose first cell tells `value`.
pub(super) fn bytes(page: PageId, value: u64) -> IoBuf {
    let mut bytes = IoBuf::zeroed(PAGE);
    PageOp::Format { kind: PageKind::Heap, owner: ObjectId(9), special: 0 }.apply(&mut bytes, page);
    PageOp::Put { slot: 0, cell: &value.to_le_bytes() }.apply(&mut bytes, page);
    header::set_lsn(&mut bytes, Lsn(value));
    header::seal(&mut bytes);
    bytes
}

pub(super) fn value(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(slotted::cell(bytes, 0).expect("a cell").try_into().expect("eight bytes"))
}

/// A tier of 256 frames over a disk with pages 0..512, each of value 1000 + its number.
async fn bench(env: Env, flash: FlashConfig) -> Bench {
    let config = StorageConfig {
        page_size: PAGE,
        pool_bytes: 128 * PAGE,
        flash: FlashConfig { size: 256 * PAGE as u64, ..flash },
        safeguards: safeguards().and_without(Safeguard::LogBeforeData),
        ..StorageConfig::default()
    };
    let clock = env.clone();
    let trace = Trace::new(move || clock.now().0);
    let memory = |name: &str| -> DeviceRef { Arc::new(MemoryDevice::new(name, 1 << 30)) };
    let traced = |name: &str| -> DeviceRef { Arc::new(TraceDevice::new(memory(name), trace.clone())) };
    let (ills, flash): (Arc<Ills>, Arc<Ills>) = Default::default();
    let tier = Arc::new(IllDisk { inner: traced("flash"), env: env.clone(), ills: flash.clone() });
    let devices = DeviceSet {
        data: Arc::new(IllDisk { inner: traced("data"), env: env.clone(), ills: ills.clone() }),
        ..DeviceSet::from_fn(memory)
    };
    let log = Log::unopened(env.clone(), devices.log.clone(), DATABASE, &config);
    log.format().await.expect("a memory device takes a log");
    log.start(1, Lsn(1 << 20)).await.expect("a fresh log starts");
    let disk = Arc::new(DiskHome::new(&devices, &config, DATABASE, log.clone()));
    disk.start();
    let home = Arc::new(FlashHome::new(env.clone(), disk.clone(), &config, log.clone()));
    let pages = (0..512).map(|no| back(no, 1000 + u64::from(no))).collect();
    disk.write_back(pages, Reason::Age).await.expect("a memory device takes pages");
    disk.sync().await.expect("it syncs");
    let identity = Identity { database: DATABASE, epoch: 1, page_size: PAGE as u32, segment_size: config.segment_size };
    home.start(&identity, 0, Some(tier)).await.expect("a memory device serves as a tier");
    trace.clear();
    Bench { env, home, log, config, trace, disk: ills, flash }
}

pub(super) fn back(no: u32, value: u64) -> WriteBack {
    let bytes = bytes(page(no), value);
    let lsn = Lsn(value);
    WriteBack { page: page(no), bytes, lsn, rec_lsn: lsn, redo: Some(lsn), access: Access::Random }
}

impl Bench {
    /// Clean pages leave memory for the tier; returns when they are there.
    pub(super) async fn offer(&self, pages: impl IntoIterator<Item = u32>, access: Access) {
        for no in pages {
            self.home.evicted_clean(page(no), &bytes(page(no), 1000 + u64::from(no)), access);
            while self.home.admissions.lock().len() > 32 {
                self.rest().await;
            }
        }
        self.rest().await;
    }

    /// Changed pages leave memory.
    pub(super) async fn write(&self, pages: &[u32], value: u64) {
        let pages = pages.iter().map(|&no| back(no, value)).collect();
        self.home.write_back(pages, Reason::Evict).await.expect("memory devices take pages");
    }

    pub(super) async fn rest(&self) {
        self.env.sleep(Duration::from_millis(1)).await;
    }

    /// Reads a run; returns the values, and where they lay.
    async fn read(&self, first: u32, count: u32) -> Vec<(u64, Tier)> {
        let fetched = self.home.fetch(page(first), count, Access::Sequential).await;
        let told = |page: crate::error::Result<Fetched>| page.map(|p| (value(&p.bytes), p.tier));
        fetched.into_iter().map(|page| told(page).expect("a good page")).collect()
    }

    /// The pages of each read of a device since the last call, and how many each read.
    fn reads(&self, device: &str) -> Vec<(u64, u64)> {
        let records = self.trace.records();
        let reads = records.iter().filter(|r| &*r.device == device && r.direction == Direction::Read);
        let places = |offset: u64| (offset - PAGES_AT) / PAGE as u64;
        let mut reads: Vec<_> = reads.map(|r| (places(r.offset), r.length / PAGE as u64)).collect();
        reads.sort_unstable();
        reads
    }

    pub(super) fn pool(&self) -> Arc<Pool> {
        let pool = Pool::new(self.env.clone(), &self.config, self.home.clone(), self.log.clone());
        pool.repair_up_to(Lsn(0));
        pool
    }
}

pub(super) fn run<F: Future<Output = ()> + Send + 'static>(
    flash: FlashConfig,
    main: impl FnOnce(Bench) -> F + Send + 'static,
) {
    let sim = Sim::new(1, 2);
    let env = sim.env();
    sim.run(async move { main(bench(env, flash).await).await });
}

fn lazy() -> FlashConfig {
    FlashConfig { write: WritePolicy::LazyCleaning, replacement: FlashOrder::Lru2, ..FlashConfig::default() }
}

/// Section 3.3.3.3's own example: of six pages the third and the fifth are in the tier.
#[test]
fn clean_pages_in_the_middle_do_not_break_a_read() {
    run(lazy(), |bench| async move {
        bench.offer([12, 14], Access::Random).await;
        bench.trace.clear();
        let read = bench.read(10, 6).await;
        assert_eq!(read.iter().map(|(value, _)| *value).collect::<Vec<_>>(), (1010..1016).collect::<Vec<_>>());
        assert_eq!(bench.reads("data"), [(10, 6)]);
        assert_eq!(bench.reads("flash"), [], "as good on the disk, in the same read");
    });
}

#[test]
fn newer_pages_in_the_middle_are_patched_in() {
    run(lazy(), |bench| async move {
        bench.write(&[12, 14], 5000).await;
        assert_eq!(bench.home.stats().dirty, 2);
        bench.trace.clear();
        let read = bench.read(10, 6).await;
        let values: Vec<u64> = read.iter().map(|(value, _)| *value).collect();
        assert_eq!(values, [1010, 1011, 5000, 1013, 5000, 1015], "the disk's older versions are thrown away");
        assert_eq!(bench.reads("data"), [(10, 6)]);
        assert_eq!(bench.reads("flash").len(), 2);
    });
}

/// The disk's bytes were read before the newer version got home and left the tier: they are not to take its place
/// there.
#[test]
pub(crate) fn what_the_disk_gave_before_a_newer_version_came_home_is_not_let_in() {
    let flash = FlashConfig { write: WritePolicy::Inclusive, dirty_fraction: 1.0, ..lazy() };
    run(flash, |bench| async move {
        bench.write(&[12], 5000).await;
        assert_eq!(bench.home.stats().dirty, 1);
        bench.disk.delay.store(1000, Ordering::SeqCst);
        let newer_leaves = async {
            bench.rest().await; // The frame is read by now, the disk's answer on its way.
            bench.home.bring_home(Lsn(u64::MAX)).await.expect("it goes home");
            assert!(bench.home.part(page(12)).lock().drop_clean(page(12)), "replaced");
        };
        let (read, ()) = futures::join!(bench.read(10, 6), newer_leaves);
        let values: Vec<u64> = read.iter().map(|(value, _)| *value).collect();
        assert_eq!(values, [1010, 1011, 5000, 1013, 1014, 1015], "memory shows the newer one");
        bench.disk.delay.store(0, Ordering::SeqCst);
        bench.rest().await;
        assert_eq!(bench.read(11, 1).await, [(1011, Tier::Flash)], "what is read is let in");
        assert_eq!(bench.read(12, 1).await, [(5000, Tier::Disk)]);
    });
}

/// A write that the device acknowledged and lost leaves an older version of the page in the frame, sound in itself.
#[test]
pub(crate) fn an_older_version_in_a_frame_is_not_taken_for_the_page() {
    run(lazy(), |bench| async move {
        bench.offer([12], Access::Random).await;
        let home = &bench.home;
        let part = home.partition_of(page(12));
        let frame = home.partition(part).lock().find(page(12)).expect("it was let in");
        let place = home.offset(FrameId { part, frame });
        let device = home.device().expect("the tier is on");
        device.write(place, bytes(page(12), 900), Purpose::Flash).await.expect("a memory device takes it");
        assert_eq!(bench.read(12, 1).await, [(1012, Tier::Disk)]);
        assert_eq!(home.stats().bad_frames, 1);
    });
}

/// With dual writes a page is in the tier when both have it: the disk's older version would be taken for the same.
#[test]
fn what_the_disk_did_not_take_is_not_let_in() {
    run(FlashConfig { write: WritePolicy::DualWrite, ..lazy() }, |bench| async move {
        bench.write(&[12], 5000).await;
        assert_eq!(bench.read(12, 1).await, [(5000, Tier::Flash)]);
        bench.disk.broken.store(true, Ordering::SeqCst);
        bench.home.write_back(vec![back(13, 5000)], Reason::Evict).await.expect_err("the disk is broken");
        assert_eq!(bench.home.part(page(13)).lock().find(page(13)), None);
    });
}

#[test]
fn leading_and_trailing_pages_are_trimmed() {
    run(lazy(), |bench| async move {
        bench.offer([10, 11, 15], Access::Random).await;
        bench.write(&[14], 5000).await;
        bench.trace.clear();
        let read = bench.read(10, 6).await;
        let tiers: Vec<bool> = read.iter().map(|(_, tier)| *tier == Tier::Flash).collect();
        assert_eq!(tiers, [true, true, false, false, true, true]);
        assert_eq!((read[4].0, read[5].0), (5000, 1015));
        assert_eq!(bench.reads("data"), [(12, 2)]);
        assert_eq!(bench.reads("flash").len(), 4);
        bench.trace.clear();
        bench.offer([12, 13], Access::Random).await;
        bench.trace.clear();
        bench.read(10, 6).await;
        assert_eq!((bench.reads("data").len(), bench.reads("flash").len()), (0, 6), "all of it is in the tier");
    });
}

/// Section 3.3.3.2: beyond μ everything passes the device by, but for what is newer there.
#[test]
fn a_throttled_device_gives_only_what_is_newer() {
    run(FlashConfig { throttle_queue_depth: 1, ..lazy() }, |bench| async move {
        bench.offer([20], Access::Random).await;
        bench.write(&[21], 5000).await;
        bench.home.pending.fetch_add(1, Ordering::AcqRel); // A transfer that takes long.
        bench.trace.clear();
        assert_eq!(bench.read(20, 1).await, [(1020, Tier::Disk)]);
        assert_eq!(bench.read(21, 1).await, [(5000, Tier::Flash)]);
        assert_eq!((bench.reads("data"), bench.reads("flash").len()), (vec![(20, 1)], 1));
        let stats = bench.home.stats();
        assert_eq!((stats.throttled_reads, stats.hits, stats.misses), (1, 1, 1));
        bench.write(&[22], 5000).await;
        assert_eq!((bench.home.stats().rejected_throttled, bench.home.stats().dirty), (1, 1), "it went to the disk");
    });
}

/// A statement that is cancelled drops the read that it waits for.
#[test]
fn r4_a_read_that_nobody_waits_for_any_more_does_not_throttle() {
    run(FlashConfig { throttle_queue_depth: 1, ..lazy() }, |bench| async move {
        bench.offer([20], Access::Random).await;
        bench.flash.delay.store(20, Ordering::SeqCst);
        let read = bench.home.fetch(page(20), 1, Access::Random);
        assert!(read.now_or_never().is_none(), "dropped at the device");
        bench.flash.delay.store(0, Ordering::SeqCst);
        assert_eq!(bench.home.pending.load(Ordering::SeqCst), 0);
        assert_eq!(bench.read(20, 1).await, [(1020, Tier::Flash)]);
    });
}

/// The cleaner's reads are many at once and wait for nobody: μ is about the others.
#[test]
fn cleaning_does_not_throttle() {
    run(FlashConfig { throttle_queue_depth: 1, dirty_fraction: 1.0, ..lazy() }, |bench| async move {
        let ills: Arc<Ills> = Arc::default();
        let inner: DeviceRef = Arc::new(MemoryDevice::new("slow", 1 << 30));
        let slow = Arc::new(IllDisk { inner, env: bench.env.clone(), ills: ills.clone() });
        let config = bench.home.config().0;
        bench.home.set(Some(slow), config).await.expect("it is a good device");
        bench.offer([20], Access::Random).await;
        bench.write(&[21], 5000).await;
        ills.delay.store(20, Ordering::SeqCst);
        let home = bench.home.clone();
        bench.env.spawn("checkpoint", async move { home.bring_home(Lsn(u64::MAX)).await.expect("it comes home") });
        bench.rest().await;
        assert_eq!(bench.home.stats().dirty, 1, "page 21 is being read");
        assert_eq!(bench.read(20, 1).await, [(1020, Tier::Flash)]);
        assert_eq!(bench.home.stats().throttled_reads, 0);
    });
}

/// Section 4.4.1.1: before the tier is filled every read of one page becomes a read of eight, the page among them;
/// afterwards no more.
#[test]
fn reads_are_expanded_while_the_tier_is_being_filled() {
    run(FlashConfig { fill_threshold: 0.5, ..lazy() }, |bench| async move {
        let pool = bench.pool();
        bench.offer([45], Access::Random).await;
        bench.trace.clear();
        let pin = pool.fetch(page(42), Access::Random).await.expect("a good page");
        assert_eq!(value(&pin.read()), 1042);
        assert_eq!(bench.reads("data"), [(40, 5)], "its neighbours, up to one that the tier holds");
        for no in 40..45 {
            let pin = pool.get(page(no)).expect("a neighbour came along");
            assert_eq!(value(&pin.read()), 1000 + u64::from(no));
        }
        bench.trace.clear();
        drop(pool.fetch(page(45), Access::Random).await.expect("a good page"));
        assert_eq!(
            (bench.reads("data"), bench.reads("flash").len()),
            (vec![], 1),
            "the tier is asked for its own alone"
        );
        bench.trace.clear();
        drop(pool.fetch(page(511), Access::Random).await.expect("a good page"));
        drop(pool.fetch(page(400), Access::Sequential).await.expect("a good page"));
        assert_eq!(bench.reads("data"), [(400, 1), (504, 8)], "scans have a read-ahead of their own");
        assert_eq!(pool.stats().expanded, 4 + 7);
        bench.offer((48..512).filter(|no| !(296..304).contains(no)), Access::Random).await;
        bench.trace.clear();
        drop(pool.fetch(page(300), Access::Random).await.expect("a good page"));
        assert_eq!(bench.reads("data"), [(300, 1)], "more than half of the tier is in use");
    });
}

#[test]
fn neighbours_that_are_not_there_do_not_spoil_a_read() {
    run(lazy(), |bench| async move {
        let pool = bench.pool();
        assert!(pool.fetch(page(512), Access::Random).await.is_err(), "behind the end of the device");
        let blank = page(513);
        assert!(pool.fetch(blank, Access::Random).await.is_err());
        bench.home.disk.write_back(vec![back(514, 7)], Reason::Age).await.expect("writes");
        bench.home.disk.sync().await.expect("syncs");
        let pin = pool.fetch(page(514), Access::Random).await.expect("a good page between blank ones");
        assert_eq!(value(&pin.read()), 7);
        assert!(pool.get(page(513)).is_none() && pool.get(page(515)).is_none());
    });
}

/// What each rule lets into a tier that is filled (section 3.2.2). The statement reads 64 pages in order, ahead but for
/// the first.
async fn admitted_of_a_scan(bench: &Bench) -> u64 {
    let pool = bench.pool();
    drop(pool.fetch(page(256), Access::Sequential).await.expect("a good page"));
    for first in (257..320).step_by(7) {
        // Somebody else looks something up between: the distance rule is thrown off.
        drop(pool.fetch(page((first - 257) % 8), Access::Random).await.expect("a good page"));
        pool.prefetch(DATA, first, 7).await;
    }
    let before = bench.home.stats().admitted_clean;
    pool.forget(DATA, 0, 64).await;
    for no in 256..320 {
        let pin = pool.fetch(page(no), Access::Sequential).await.expect("a good page");
        let (bytes, access) = (pin.read().to_vec(), pin.class());
        bench.home.evicted_clean(page(no), &bytes, access);
        drop(pin);
        bench.rest().await;
    }
    bench.home.stats().admitted_clean - before
}

#[test]
fn scans_are_told_from_look_ups_by_the_chosen_rule() {
    for (classify, expected) in
        [(Classify::Declared, 0..=0), (Classify::ReadAhead, 1..=1), (Classify::Distance, 2..=16)]
    {
        run(FlashConfig { classify, fill_threshold: 0.0, ..lazy() }, move |bench| async move {
            let admitted = admitted_of_a_scan(&bench).await;
            assert!(expected.contains(&admitted), "{classify:?} let {admitted} of 64 pages of a scan in");
        });
    }
}

/// A day's bytes are not exceeded whatever is offered; what is refused costs a counter, and goes to the disk.
#[test]
fn the_write_budget_is_kept() {
    let a_day = 25 * 40 * PAGE as u64; // 40 pages at once, 40 an hour thereafter.
    run(FlashConfig { write_budget: Some(a_day), ..lazy() }, move |bench| async move {
        bench.offer(0..30, Access::Random).await;
        bench.write(&(100..130).collect::<Vec<_>>(), 5000).await;
        let now = bench.home.stats();
        // Writes of one call are under way together.
        assert!(now.written_bytes >= 40 * PAGE as u64 && now.written_bytes <= 60 * PAGE as u64, "{now:?}");
        bench.offer(200..220, Access::Random).await;
        bench.write(&[130, 131], 5000).await;
        let later = bench.home.stats();
        assert_eq!(later.written_bytes, now.written_bytes);
        assert_eq!(later.rejected_budget, now.rejected_budget + 22);
        assert_eq!(bench.read(130, 1).await, [(5000, Tier::Disk)]);
        bench.env.sleep(Duration::from_secs(3600)).await;
        bench.offer(300..400, Access::Random).await;
        let hour = bench.home.stats().written_bytes - now.written_bytes;
        assert!((10..=40).contains(&(hour / PAGE as u64)), "{} pages in an hour", hour / PAGE as u64);
        assert_eq!((later.write_budget, later.life_days()), (Some(a_day), None));
    });
}

/// Times and rates that views show.
#[test]
fn the_tier_tells_how_it_does() {
    run(FlashConfig { endurance: Some(1 << 40), ..lazy() }, |bench| async move {
        bench.write(&(0..20).collect::<Vec<_>>(), 5000).await;
        bench.read(3, 1).await;
        bench.read(300, 1).await;
        bench.home.bring_home(Lsn(u64::MAX)).await.expect("the disk takes pages");
        let stats = bench.home.stats();
        assert_eq!((stats.state, stats.hit_time.count(), stats.miss_time.count()), (FlashState::On, 1, 1));
        assert_eq!((stats.cleaned, stats.oldest_dirty), (20, None));
        assert!(stats.cleaning_rate > 0.0 && stats.time_to_clean() == Some(Duration::ZERO));
        assert!(stats.life_days().is_some_and(|days| days > 0.0 && days.is_finite()));
    });
}

/// A page that changes, and goes home, while the cleaner reads its frame is not overtaken by what the cleaner read.
#[test]
pub(crate) fn an_older_version_that_the_cleaner_read_does_not_go_home() {
    run(lazy(), |bench| async move {
        bench.write(&[3], 2000).await;
        assert_eq!(bench.home.stats().dirty, 1);
        bench.flash.delay.store(5, Ordering::SeqCst);
        let newer = async {
            bench.env.sleep(Duration::from_millis(2)).await;
            bench.home.write_back(vec![back(3, 3000)], Reason::Age).await.expect("the disk takes it");
        };
        let (home, ()) = futures::join!(bench.home.destage(Lsn(u64::MAX)), newer);
        home.expect("the disk takes it");
        bench.env.sleep(Duration::from_millis(10)).await;
        let mut fetched = bench.home.disk.fetch(page(3), 1, Access::Random).await;
        assert_eq!(value(&fetched.pop().expect("one page").expect("a good one").bytes), 3000);
    });
}

#[test]
pub(crate) fn a_page_that_changed_is_not_read_from_its_old_frame() {
    run(lazy(), |bench| async move {
        bench.offer([3], Access::Random).await;
        assert_eq!(bench.read(3, 1).await, [(1003, Tier::Flash)]);
        bench.home.write_back(vec![back(3, 3000)], Reason::Age).await.expect("the disk takes it");
        assert_eq!(bench.read(3, 1).await, [(3000, Tier::Disk)]);
    });
}

/// A recLSN that goes up to memory between a checkpoint's look there and its look here counts (partition, invariant 4).
#[test]
pub(crate) fn a_reclsn_that_rises_during_a_checkpoint_counts() {
    run(lazy(), |bench| async move {
        bench.write(&[3], 2000).await;
        bench.home.begin_scan();
        // Here the checkpoint looks into memory, which has nothing. Then the page changes there.
        assert_eq!(bench.home.dirtied(page(3)), Some(Lsn(2000)));
        assert_eq!(bench.home.oldest_rec_lsn(), Some(Lsn(2000)), "on its way");
        bench.home.risen(page(3), Lsn(2000));
        assert_eq!(bench.home.oldest_rec_lsn(), Some(Lsn(2000)), "there by now, but not when the checkpoint looked");
        bench.home.begin_scan();
        assert_eq!(bench.home.oldest_rec_lsn(), None, "the next one sees it there");
    });
}

/// After an opening the recorded redo LSN may lie above changes that pages lack (floors.rs, invariant 5).
#[test]
pub(crate) fn what_is_listed_holds_for_less_while_pages_lack_changes() {
    run(lazy(), |bench| async move {
        let home = &bench.home;
        home.log.recorded(Lsn(500), Lsn(100));
        assert_eq!(home.since(), Lsn(500));
        home.begin_above(Lsn(100));
        assert_eq!(home.since(), Lsn(100));
        home.redo_holds();
        assert_eq!(home.since(), Lsn(500));
    });
}

/// What another method has stamped speaks for no records in the log, nor does a stamp that the retain LSN has passed.
#[test]
pub(crate) fn a_stamp_speaks_for_its_own_records() {
    run(FlashConfig { restart: Restart::LogBased, ..lazy() }, |bench| async move {
        let (home, device) = (&bench.home, bench.home.device().expect("the tier is on"));
        let (retain, shape) = (bench.log.end(), Shape { parts: 4, each: 64 });
        for (holds, in_log) in [(retain, true), (retain, false), (Lsn(retain.0 - 1), true)] {
            let stamp = Stamp { life: 7, series: 8, holds, in_log };
            device.write(Stamp::AT, stamp.encode(DATABASE), Purpose::Flash).await.expect("a memory device takes it");
            let mut search = Search::of(&device, DATABASE, shape);
            let found = home.find_in_log(&mut search, (7, retain), shape).await;
            assert_eq!(found.ok(), (in_log && holds == retain).then_some(retain), "{stamp:?}");
        }
    });
}

/// When a page's write is done, no record names an older version of it.
pub(crate) fn a_write_waits_for_the_records_of_older_frames(restart: Restart) {
    run(FlashConfig { restart, ..lazy() }, |bench| async move {
        let home = &bench.home;
        home.begin_life(7);
        home.have_series(false).await;
        bench.offer([3], Access::Random).await;
        bench.rest().await; // Its record is written.
        home.write_back(vec![back(3, 3000)], Reason::Checkpoint).await.expect("the disk takes it");
        let last = home.ticket();
        assert!(last > 0 && home.hard_to() >= last, "ticket {last}, and all is hard to {}", home.hard_to());
    });
}

#[test]
fn a_write_waits_for_records() {
    a_write_waits_for_the_records_of_older_frames(Restart::MemoryMapped);
    a_write_waits_for_the_records_of_older_frames(Restart::LogBased);
}

/// An error of a sync reaches one of those who wait. Here that is who syncs frames, and what the keeper has written may
/// be lost.
#[test]
pub(crate) fn a_sync_of_frames_that_fails_ends_the_series() {
    run(FlashConfig { restart: Restart::MemoryMapped, ..lazy() }, |bench| async move {
        let (home, device) = (&bench.home, bench.home.device().expect("the tier is on"));
        home.begin_life(7);
        home.have_series(false).await;
        bench.offer([3], Access::Random).await;
        bench.rest().await;
        let mut keeping = home.keeping.lock().await;
        home.supersede(page(3), false);
        assert_eq!(home.list(&mut keeping, Due { changed: true, ..Due::default() }, 16).await, 1);
        bench.flash.never_synced.store(true, Ordering::SeqCst);
        assert!(!home.sync_frames(&device).await);
        bench.flash.never_synced.store(false, Ordering::SeqCst);
        assert!(!home.sync_inventory(&mut keeping).await, "the sector may be lost");
        assert_eq!(home.series(), 0, "so nobody relies on it");
    });
}

/// What was on its way to a device that died meanwhile is not taken for being there.
#[test]
pub(crate) fn a_page_on_its_way_to_a_device_that_dies_is_not_there() {
    run(lazy(), |bench| async move {
        bench.flash.write_delay.store(5, Ordering::SeqCst);
        bench.home.evicted_clean(page(3), &bytes(page(3), 1003), Access::Random);
        bench.rest().await;
        assert_eq!(bench.home.stats().used, 1, "it is being written");
        bench.home.die("it is gone");
        bench.env.sleep(Duration::from_millis(10)).await;
        assert_eq!(bench.home.stats().used, 0, "a frame of a device that is gone");
    });
}
