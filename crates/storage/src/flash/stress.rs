//! The tier under real threads: pages read, changed, evicted, brought home, forgotten, while it is switched, resized,
//! given other methods. Every page read must be its newest version.
#![allow(clippy::disallowed_methods, reason = "this test is about real threads")]

use crate::config::{DeviceSet, FlashConfig, FlashOrder, StorageConfig, WritePolicy};
use crate::log::LogUse;
use crate::mtr::Mtr;
use crate::page::op::PageOp;
use crate::page::{PageKind, header, slotted};
use crate::pool::Access;
use crate::store::Store;
use crate::types::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use terrace_device::{DeviceRef, MemoryDevice};
use terrace_env::Env;

const PAGE: usize = 4096;
/// Where nothing else lies.
const FIRST: u32 = 2000;
const PAGES: u32 = 600;
const TASKS: u64 = 8;
const STEPS: u32 = 2500;

struct Run {
    store: Store,
    flash: DeviceRef,
    /// Increments of each page, counted when they have happened.
    counted: Vec<AtomicU64>,
    done: AtomicBool,
}

fn page(no: u32) -> PageId {
    PageId::new(DATA, FIRST + no)
}

fn devices() -> DeviceSet {
    let memory = |name: &str| -> DeviceRef { Arc::new(MemoryDevice::new(name, 1 << 30)) };
    DeviceSet { flash: Some(memory("flash")), ..DeviceSet::from_fn(memory) }
}

/// Memory holds a tenth of the pages; the log's bounds make for much cleaning.
fn config() -> StorageConfig {
    StorageConfig {
        page_size: PAGE,
        pool_bytes: 96 * PAGE,
        segment_size: 256 << 10,
        redo_bound: 1 << 20,
        log_retention: 1 << 20,
        log_buffer: 128 << 10,
        writer_interval: Duration::from_millis(1),
        checkpoint_interval: Duration::from_millis(20),
        write_group: 16,
        flash: FlashConfig { size: 300 * PAGE as u64, ..FlashConfig::default() },
        ..StorageConfig::default()
    }
}

fn number(bytes: &[u8], no: u32) -> u64 {
    assert_eq!(header::id(bytes), page(no), "a pin shows another page");
    u64::from_le_bytes(slotted::cell(bytes, 0).expect("a cell").try_into().expect("eight bytes"))
}

impl Run {
    async fn make(&self, no: u32) {
        let pin = self.store.pool().create(page(no)).await.expect("a page is made");
        let permit = self.store.log().reserve(256, LogUse::Normal).await.expect("the log has room");
        let mut mtr = Mtr::new(self.store.pool(), permit);
        let at = mtr.latch(&pin);
        mtr.apply(at, PageOp::Format { kind: PageKind::Heap, owner: ObjectId(2), special: 0 });
        mtr.apply(at, PageOp::Put { slot: 0, cell: &0u64.to_le_bytes() });
        mtr.commit();
    }

    async fn increment(&self, no: u32) {
        let least = self.counted[no as usize].load(Ordering::Acquire);
        let pin = self.store.pool().fetch(page(no), Access::Random).await.expect("a page is read");
        let permit = self.store.log().reserve(256, LogUse::Normal).await.expect("the log has room");
        let mut mtr = Mtr::new(self.store.pool(), permit);
        let at = mtr.latch(&pin);
        let old = number(mtr.page(at), no);
        assert!(old >= least, "page {no} is read as {old}, it was {least} before");
        mtr.apply(at, PageOp::Put { slot: 0, cell: &(old + 1).to_le_bytes() });
        mtr.commit();
        self.counted[no as usize].fetch_add(1, Ordering::AcqRel);
    }

    async fn read(&self, no: u32, access: Access) {
        let least = self.counted[no as usize].load(Ordering::Acquire);
        let pin = self.store.pool().fetch(page(no), access).await.expect("a page is read");
        let found = number(&pin.read(), no);
        assert!(found >= least, "page {no} is read as {found}, it was {least} before");
    }

    /// A page of the task's own comes, leaves memory perhaps, and goes.
    async fn make_and_forget(&self, own: u32) {
        self.make(own).await;
        {
            let pin = self.store.pool().fetch(page(own), Access::Random).await.expect("a page is read");
            assert_eq!(number(&pin.read(), own), 0, "page {own} is made anew each time");
        }
        self.store.pool().forget(DATA, FIRST + own, 1).await;
    }

    async fn task(&self, task: u64) {
        let mut random = StdRng::seed_from_u64(task);
        for _ in 0..STEPS {
            let range = if random.random_bool(0.3) { 100 } else { PAGES };
            let no = random.random_range(0..range);
            match random.random_range(0..20) {
                0..7 => self.increment(no).await,
                7 => self.store.pool().prefetch(DATA, FIRST + no.min(PAGES - 8), 8).await,
                8 => self.make_and_forget(PAGES + task as u32).await,
                9 => self.read(no, Access::Sequential).await,
                _ => self.read(no, Access::Random).await,
            }
        }
    }

    /// The tier is another all the time, and at times there is none.
    async fn change(&self, env: &Env) -> u32 {
        let mut random = StdRng::seed_from_u64(77);
        let mut changes = 0;
        while !self.done.load(Ordering::Acquire) {
            let config = FlashConfig {
                size: [40, 100, 300, 700][random.random_range(0..4)] * PAGE as u64,
                write: WritePolicy::ALL[random.random_range(0..WritePolicy::ALL.len())],
                replacement: FlashOrder::ALL[random.random_range(0..FlashOrder::ALL.len())],
                ..FlashConfig::default()
            };
            let on = random.random_range(0..6) > 0;
            let fits = config.write.with(config.replacement).is_ok();
            let changed = self.store.set_flash(on.then(|| self.flash.clone()), config).await;
            assert!(changed.is_ok() || on && !fits, "{changed:?}");
            changes += changed.is_ok() as u32;
            env.sleep(Duration::from_millis(random.random_range(0..20))).await;
        }
        changes
    }

    async fn checkpoints(&self, env: &Env) {
        while !self.done.load(Ordering::Acquire) {
            self.store.checkpoint().await.expect("it checkpoints");
            env.sleep(Duration::from_millis(5)).await;
        }
    }

    async fn check(&self) {
        for no in 0..PAGES {
            let pin = self.store.pool().fetch(page(no), Access::Random).await.expect("a page is read");
            assert_eq!(number(&pin.read(), no), self.counted[no as usize].load(Ordering::Acquire), "page {no}");
        }
    }
}

async fn threads(env: Env, changing: bool) {
    let devices = devices();
    let flash = devices.flash.clone().expect("there is one");
    let store = Store::create(env.clone(), devices.clone(), config()).await.expect("memory devices take a store");
    let counted = (0..PAGES).map(|_| AtomicU64::new(0)).collect();
    let run = Arc::new(Run { store, flash, counted, done: AtomicBool::new(false) });
    for no in 0..PAGES {
        run.make(no).await;
    }
    let tasks = (0..TASKS).map(|task| {
        let run = run.clone();
        tokio::spawn(async move { run.task(task).await })
    });
    let tasks: Vec<_> = tasks.collect();
    let (changer, keeper) = ((run.clone(), env.clone()), (run.clone(), env.clone()));
    let changer = tokio::spawn(async move { if changing { changer.0.change(&changer.1).await } else { 0 } });
    let keeper = tokio::spawn(async move { keeper.0.checkpoints(&keeper.1).await });
    for task in tasks {
        task.await.expect("a task ends well");
    }
    run.done.store(true, Ordering::Release);
    let changes = changer.await.expect("changes succeed");
    keeper.await.expect("checkpoints succeed");
    run.check().await;
    if changing {
        assert!(changes > 0, "the tier never changed");
    } else {
        let stats = run.store.flash().expect("there is a tier");
        assert!(stats.hits > 100 && stats.invalidated > 100 && stats.cleaned > 100, "{stats:?}");
        assert!(stats.evicted > 0 && stats.dirty_hits > 0 && stats.dirty_hits <= stats.hits, "{stats:?}");
        assert_eq!((stats.bad_frames, stats.device_errors, stats.replayed), (0, 0, 0), "{stats:?}");
    }
    run.store.clone().close().await.expect("it closes");
}

fn on_threads(changing: bool) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().expect("threads");
    let env = terrace_env::Real::on(runtime.handle().clone());
    runtime.block_on(threads(env, changing));
}

#[test]
fn threads_read_change_and_clean() {
    on_threads(false);
}

#[test]
fn threads_read_and_change_a_changing_tier() {
    on_threads(true);
}
