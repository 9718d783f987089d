//! Models: the production pool, mini-transactions and log under a scheduler that tries many interleavings of their
//! locks and atomics (PCT and random walks; Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of
//! Finding Bugs", 2010).
//!
//! ```text
//! cargo test -p terrace-storage --features shuttle models
//! ```
//!
//! `TERRACE_MODEL_RUNS` sets the number of interleavings of each model. A failure prints a schedule for
//! `shuttle::replay`. What they do not try: reordering by weak memory (atomics are sequentially consistent here).

use super::fixture::{Fixture, PAGE, config, fixture_with, page};
use super::*;
use crate::home::Reason;
use crate::log::{Block, LogUse, batch};
use crate::mtr::Mtr;
use crate::page::op::PageOp;
use crate::page::{PageKind, header, slotted};
use shuttle::future::{block_on, yield_now};
use shuttle::rand::Rng;
use shuttle::thread;
use std::collections::BTreeMap;
use terrace_device::MemoryDevice;
use terrace_env::{BoxFuture, Environment, Nanos};

/// Tasks are the model's; sleeping lets others run.
pub(crate) struct ModelEnv;

impl Environment for ModelEnv {
    fn now(&self) -> Nanos {
        Nanos(0)
    }
    fn unix_micros(&self) -> i64 {
        0
    }
    fn sleep_until(&self, _deadline: Nanos) -> BoxFuture<()> {
        Box::pin(yield_now())
    }
    fn cpu(&self, _cost: Duration) -> BoxFuture<()> {
        Box::pin(std::future::ready(()))
    }
    fn spawn(&self, _name: &'static str, task: BoxFuture<()>) {
        drop(shuttle::future::spawn(task)); // Detached.
    }
    fn random_u64(&self) -> u64 {
        shuttle::rand::thread_rng().r#gen()
    }
    fn is_simulated(&self) -> bool {
        false // Latches do wait for other threads.
    }
}

pub(crate) fn explore(model: fn()) {
    let runs = std::env::var("TERRACE_MODEL_RUNS").map_or(300, |n| n.parse().expect("a number of runs"));
    shuttle::check_random(model, runs);
    shuttle::check_pct(model, runs, 3);
}

pub(crate) fn small(frames: usize) -> StorageConfig {
    StorageConfig {
        segment_size: 64 << 10,
        log_buffer: 64 << 10,
        log_retention: 256 << 10,
        redo_bound: 1 << 20,
        write_group: 2,
        ..config(frames)
    }
}

fn start(frames: usize, pages: u32) -> Fixture {
    let env = Env::new(Arc::new(ModelEnv));
    let f = block_on(fixture_with(env, small(frames), Some(Duration::ZERO)));
    for no in 0..pages {
        f.home.inside.lock().pages.insert(page(no), zeros(no));
    }
    f
}

/// A page with two numbers, both zero.
pub(crate) fn zeros(no: u32) -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    PageOp::Format { kind: PageKind::Heap, owner: ObjectId(1), special: 0 }.apply(&mut bytes, page(no));
    for slot in 0..2 {
        PageOp::Put { slot, cell: &0u64.to_le_bytes() }.apply(&mut bytes, page(no));
    }
    header::seal(&mut bytes);
    bytes
}

pub(crate) fn numbers(bytes: &[u8], no: u32) -> u64 {
    assert_eq!(header::id(bytes), page(no), "a pin shows another page");
    let number = |slot| u64::from_le_bytes(slotted::cell(bytes, slot).unwrap().try_into().unwrap());
    assert_eq!(number(0), number(1), "a torn read of page {no}");
    number(0)
}

/// Adds 1 to both numbers of a page, with others let in between: the latch must keep them out. Returns LSNs: log end
/// before, batch end.
async fn increment(f: &Fixture, no: u32) -> (Lsn, Lsn) {
    increment_in(&f.pool, &f.log, no).await
}

pub(crate) async fn increment_in(pool: &Arc<Pool>, log: &Log, no: u32) -> (Lsn, Lsn) {
    let pin = pool.fetch(page(no), Access::Random).await.unwrap();
    let permit = log.reserve(256, LogUse::Normal).await.unwrap();
    let before = log.end();
    let mut mtr = Mtr::new(pool, permit);
    let at = mtr.latch(&pin);
    let next = numbers(mtr.page(at), no) + 1;
    for slot in 0..2 {
        mtr.apply(at, PageOp::Put { slot, cell: &next.to_le_bytes() });
        thread::yield_now();
    }
    (before, mtr.commit())
}

async fn read(f: &Fixture, no: u32) -> u64 {
    read_in(&f.pool, no).await
}

pub(crate) async fn read_in(pool: &Pool, no: u32) -> u64 {
    let pin = pool.fetch(page(no), Access::Random).await.unwrap();
    let bytes = pin.read();
    numbers(&bytes, no)
}

fn pages_come_and_go() {
    const PAGES: u32 = 12;
    let f = start(8, PAGES);
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let f = f.clone();
            thread::spawn(move || {
                let mut done = [0u64; PAGES as usize];
                for _ in 0..6 {
                    let no = shuttle::rand::thread_rng().gen_range(0..PAGES);
                    if no % 3 == 0 {
                        block_on(read(&f, no));
                    } else {
                        block_on(increment(&f, no));
                        done[no as usize] += 1;
                    }
                }
                done
            })
        })
        .collect();
    let writer = {
        let f = f.clone();
        thread::spawn(move || block_on(f.pool.write_dirty(Lsn(u64::MAX), 99, Reason::Age)).unwrap())
    };
    let mut expected = [0; PAGES as usize];
    for thread in threads {
        for (sum, n) in expected.iter_mut().zip(thread.join().unwrap()) {
            *sum += n;
        }
    }
    writer.join().unwrap();
    block_on(async {
        for no in 0..PAGES {
            assert_eq!(read(&f, no).await, expected[no as usize], "page {no}");
        }
        f.pool.write_dirty(Lsn(u64::MAX), 99, Reason::Age).await.unwrap();
        assert_eq!(f.pool.dirty(), 0);
        let inside = f.home.inside.lock();
        for no in 0..PAGES {
            assert_eq!(numbers(&inside.pages[&page(no)], no), expected[no as usize], "page {no} at home");
        }
    });
    assert_eq!(f.home.ahead_of_log.load(Ordering::SeqCst), 0);
}

#[test]
fn model_pages_come_and_go() {
    explore(pages_come_and_go);
}

/// write.rs, invariant 3: what the redo LSN leaves behind is home.
fn checkpoints_miss_nothing() {
    let f = start(8, 2);
    let writers: Vec<_> = (0..2)
        .map(|no| {
            let f = f.clone();
            thread::spawn(move || {
                let mut ends = Vec::new();
                for _ in 0..3 {
                    ends.push(block_on(increment(&f, no)).1);
                }
                (no, ends)
            })
        })
        .collect();
    let cleaner = {
        let f = f.clone();
        thread::spawn(move || {
            for _ in 0..2 {
                block_on(f.pool.write_dirty(Lsn(u64::MAX), 99, Reason::Age)).unwrap();
            }
        })
    };
    let mut checkpoints: Vec<(Lsn, BTreeMap<u32, Lsn>)> = Vec::new();
    for _ in 0..4 {
        let end = f.log.end();
        let redo = f.pool.min_rec_lsn().map_or(end, |rec| rec.min(end));
        let inside = f.home.inside.lock();
        checkpoints.push((redo, (0..2).map(|no| (no, header::lsn(&inside.pages[&page(no)]))).collect()));
        drop(inside);
        thread::yield_now();
    }
    for writer in writers {
        let (no, ends) = writer.join().unwrap();
        for (redo, home) in &checkpoints {
            for end in ends.iter().filter(|&end| end <= redo) {
                assert!(home[&no] >= *end, "redo from {redo} misses batch {end} of page {no}: home has {}", home[&no]);
            }
        }
    }
    cleaner.join().unwrap();
}

#[test]
fn model_checkpoints_miss_nothing() {
    explore(checkpoints_miss_nothing);
}

fn a_miss_is_read_once() {
    let f = start(8, 2);
    let threads: Vec<_> = (0..3)
        .map(|i| {
            let f = f.clone();
            thread::spawn(move || {
                if i == 0 {
                    // Gives up after its first step.
                    block_on(async { drop(futures::poll!(Box::pin(f.pool.fetch(page(1), Access::Random)))) });
                } else {
                    assert_eq!(block_on(read(&f, 1)), 0);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    // One read, and one more where the first reader gave up.
    assert!((1..=2).contains(&f.home.inside.lock().reads.len()));
    assert_eq!(f.pool.replacer.free_count(), 7);
}

#[test]
fn model_a_miss_is_read_once() {
    explore(a_miss_is_read_once);
}

fn forgetting_meets_readers() {
    let f = start(8, 3);
    block_on(increment(&f, 1));
    let reader = {
        let f = f.clone();
        thread::spawn(move || {
            for _ in 0..2 {
                assert_eq!(block_on(read(&f, 1)), 1);
            }
        })
    };
    block_on(f.pool.forget(DATA, 0, 3));
    reader.join().unwrap();
    block_on(f.pool.forget(DATA, 0, 3));
    assert_eq!((f.pool.replacer.free_count(), f.pool.dirty()), (8, 0));
}

#[test]
fn model_forgetting_meets_readers() {
    explore(forgetting_meets_readers);
}

fn pins_and_pool_go_in_any_order() {
    let f = start(8, 2);
    let pin = block_on(f.pool.fetch(page(1), Access::Random)).unwrap();
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let pin = pin.clone();
            thread::spawn(move || {
                let again = pin.clone();
                drop(pin);
                assert_eq!(numbers(&again.read(), 1), 0);
            })
        })
        .collect();
    drop(pin);
    drop(f);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn model_pins_and_pool_go_in_any_order() {
    explore(pins_and_pool_go_in_any_order);
}

/// Room for two batches, three threads: all get theirs, in order, and are told when it is durable.
fn log_room_is_shared() {
    let env = Env::new(Arc::new(ModelEnv));
    let config = StorageConfig { log_buffer: 4096, ..small(8) };
    let log = Log::unopened(env, Arc::new(MemoryDevice::new("log", 16 << 20)), 7, &config);
    block_on(async {
        log.format().await.unwrap();
        log.start(1, Lsn(0)).await.unwrap();
    });
    let threads: Vec<_> = (0..3u32)
        .map(|no| {
            let log = log.clone();
            thread::spawn(move || {
                block_on(async {
                    let mut ranges = Vec::new();
                    for _ in 0..2 {
                        let ops = [no as u8; 1500];
                        let blocks = [Block { page: page(no), prev: Lsn(0), ops: &ops }];
                        let len = batch::encoded_len(blocks.iter().copied());
                        let permit = log.reserve(len, LogUse::Normal).await.unwrap();
                        let (start, end) = log.append(permit, blocks.iter().copied());
                        ranges.push((start, end));
                        if no != 1 {
                            log.flush_to(end).await.unwrap();
                            assert!(log.durable() >= end);
                        }
                    }
                    ranges
                })
            })
        })
        .collect();
    let mut ranges: Vec<_> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|w| w[0].1 <= w[1].0), "batches overlap: {ranges:?}");
    block_on(log.flush_to(log.end())).unwrap();
    assert_eq!(log.durable(), log.end());
}

#[test]
fn model_log_room_is_shared() {
    explore(log_room_is_shared);
}

/// The kind of page that a half-made pool would show: never.
fn made_pages_are_seen_whole() {
    let f = start(8, 1);
    let maker = {
        let f = f.clone();
        thread::spawn(move || {
            let pin = block_on(f.pool.create(page(5))).unwrap();
            let permit = block_on(f.log.reserve(256, LogUse::Normal)).unwrap();
            let mut mtr = Mtr::new(&f.pool, permit);
            let at = mtr.latch(&pin);
            mtr.apply(at, PageOp::Format { kind: PageKind::Heap, owner: ObjectId(1), special: 0 });
            thread::yield_now();
            mtr.apply(at, PageOp::Put { slot: 0, cell: b"x" });
            mtr.commit();
        })
    };
    let written = block_on(f.pool.write_dirty(Lsn(u64::MAX), 99, Reason::Age)).unwrap();
    if let Some(pin) = f.pool.get(page(5)) {
        let bytes = pin.read();
        assert!(header::kind(&bytes).is_none() || slotted::cell(&bytes, 0) == Some(b"x"));
    }
    maker.join().unwrap();
    assert_eq!(f.pool.dirty() + written, 1);
}

#[test]
fn model_made_pages_are_seen_whole() {
    explore(made_pages_are_seen_whole);
}
