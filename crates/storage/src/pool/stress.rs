//! The pool under real threads: fewer frames than pages, so that every hit races with an eviction.
#![allow(clippy::disallowed_methods, reason = "this test is about real threads and real time")]

use super::fixture::{Fixture, config, fixture_with, page, policies};
use super::*;
use crate::home::Reason;
use crate::log::LogUse;
use crate::mtr::Mtr;
use crate::page::op::PageOp;
use crate::page::{PageKind, header, slotted};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::atomic::{AtomicBool, AtomicU64};

const PAGES: u32 = 200;
const TASKS: u64 = 16;
const STEPS: u32 = 1500;

struct Run {
    f: Fixture,
    /// Increments committed, by page.
    expected: Vec<AtomicU64>,
    done: AtomicBool,
}

fn numbers(bytes: &[u8], no: u32) -> u64 {
    assert_eq!(header::id(bytes), page(no), "a pin shows another page");
    let number = |slot| u64::from_le_bytes(slotted::cell(bytes, slot).unwrap().try_into().unwrap());
    assert_eq!(number(0), !number(1), "a torn read of page {no}");
    number(0)
}

impl Run {
    async fn increment(&self, no: u32) {
        let pin = self.f.pool.fetch(page(no), Access::Random).await.unwrap();
        let permit = self.f.log.reserve(256, LogUse::Normal).await.unwrap();
        let mut mtr = Mtr::new(&self.f.pool, permit);
        let at = mtr.latch(&pin);
        let next = numbers(mtr.page(at), no) + 1;
        mtr.apply(at, PageOp::Patch { slot: 0, offset: 0, bytes: &next.to_le_bytes() });
        mtr.apply(at, PageOp::Put { slot: 1, cell: &(!next).to_le_bytes() });
        mtr.commit();
        self.expected[no as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Both pages of a pair in one mini-transaction, in order of address.
    async fn increment_pair(&self, no: u32) {
        let pins = [no, no + 1].map(|no| self.f.pool.fetch(page(no), Access::Random));
        let pins = futures::future::join_all(pins).await;
        let permit = self.f.log.reserve(512, LogUse::Normal).await.unwrap();
        let mut mtr = Mtr::new(&self.f.pool, permit);
        for (no, pin) in (no..).zip(&pins) {
            let at = mtr.latch(pin.as_ref().unwrap());
            let next = numbers(mtr.page(at), no) + 1;
            mtr.apply(at, PageOp::Put { slot: 0, cell: &next.to_le_bytes() });
            mtr.apply(at, PageOp::Put { slot: 1, cell: &(!next).to_le_bytes() });
            self.expected[no as usize].fetch_add(1, Ordering::Relaxed);
        }
        mtr.commit();
    }

    /// A page of the task's own comes and goes.
    async fn make_and_forget(&self, task: u64) {
        let no = PAGES + 10 + task as u32;
        let pin = self.f.pool.create(page(no)).await.unwrap();
        let permit = self.f.log.reserve(256, LogUse::Normal).await.unwrap();
        {
            let mut mtr = Mtr::new(&self.f.pool, permit);
            let at = mtr.latch(&pin);
            mtr.apply(at, PageOp::Format { kind: PageKind::Heap, owner: ObjectId(2), special: 0 });
            mtr.commit();
        }
        drop(pin);
        self.f.pool.forget(DATA, no, 1).await;
        assert!(self.f.pool.get(page(no)).is_none());
    }

    async fn task(&self, task: u64) {
        let mut random = StdRng::seed_from_u64(task);
        for _ in 0..STEPS {
            // Half of the work goes to few pages.
            let range = if random.random_bool(0.5) { PAGES } else { 12 };
            let no = random.random_range(0..range - 1);
            match random.random_range(0..20) {
                0..6 => self.increment(no).await,
                6..8 => self.increment_pair(no).await,
                8 => self.f.pool.prefetch(DATA, no, 8).await,
                9 if task.is_multiple_of(4) => self.make_and_forget(task).await,
                10 => drop(futures::poll!(Box::pin(self.f.pool.fetch(page(no), Access::Random)))), // Given up at once.
                _ => {
                    let pin = self.f.pool.fetch(page(no), Access::Sequential).await.unwrap();
                    let other = pin.clone();
                    drop(pin);
                    numbers(&other.read(), no);
                }
            }
        }
    }

    async fn checkpoints(&self) {
        while !self.done.load(Ordering::Acquire) {
            self.f.pool.write_dirty(Lsn(u64::MAX), usize::MAX, Reason::Checkpoint).await.unwrap();
            self.f.env.sleep(Duration::from_millis(1)).await;
        }
    }
}

#[test]
fn threads_read_change_and_evict() {
    for policy in policies() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
        let env = terrace_env::Real::on(runtime.handle().clone());
        runtime.block_on(async move {
            let config = StorageConfig { pool_policy: policy, ..config(64) };
            let f = fixture_with(env, config, None).await;
            f.seed(0..PAGES + 1);
            for no in 0..=PAGES {
                let pin = f.pool.fetch(page(no), Access::Random).await.unwrap();
                let permit = f.permit().await;
                let mut mtr = Mtr::new(&f.pool, permit);
                let at = mtr.latch(&pin);
                mtr.apply(at, PageOp::Put { slot: 0, cell: &0u64.to_le_bytes() });
                mtr.apply(at, PageOp::Put { slot: 1, cell: &u64::MAX.to_le_bytes() });
                mtr.commit();
            }
            let expected = (0..=PAGES).map(|_| AtomicU64::new(0)).collect();
            let run = Arc::new(Run { f, expected, done: AtomicBool::new(false) });
            let tasks: Vec<_> = (0..TASKS)
                .map(|task| {
                    let run = run.clone();
                    tokio::spawn(async move { run.task(task).await })
                })
                .collect();
            let checkpoints = {
                let run = run.clone();
                tokio::spawn(async move { run.checkpoints().await })
            };
            for task in tasks {
                task.await.unwrap();
            }
            run.done.store(true, Ordering::Release);
            checkpoints.await.unwrap();
            check(&run).await;
        });
    }
}

async fn check(run: &Run) {
    let pool = &run.f.pool;
    for no in 0..=PAGES {
        let pin = pool.fetch(page(no), Access::Random).await.unwrap();
        assert_eq!(numbers(&pin.read(), no), run.expected[no as usize].load(Ordering::Relaxed), "page {no}");
    }
    pool.write_dirty(Lsn(u64::MAX), usize::MAX, Reason::Checkpoint).await.unwrap();
    assert_eq!((pool.dirty(), pool.min_rec_lsn()), (0, None));
    {
        let inside = run.f.home.inside.lock();
        for no in 0..=PAGES {
            let value = numbers(&inside.pages[&page(no)], no);
            assert_eq!(value, run.expected[no as usize].load(Ordering::Relaxed), "page {no} at home");
        }
    }
    assert_eq!(run.f.home.ahead_of_log.load(Ordering::Relaxed), 0);
    // No frame was lost: all can be had again.
    pool.forget(DATA, 0, PAGES + 100).await;
    assert_eq!(pool.replacer.free_count(), pool.frames());
    let stats = pool.stats();
    assert!(stats.hits > 1000 && stats.dirty_evictions > 100, "{stats:?}");
}
