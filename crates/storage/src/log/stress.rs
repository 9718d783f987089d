//! Reservation, appending, group commit and reuse of segments under real threads.
#![allow(clippy::disallowed_methods, reason = "this test is about real threads and real time")]

use super::tests::{DATABASE, create, page, read_all};
use super::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::VecDeque;
use std::time::Duration;
use terrace_device::MemoryDevice;

const TASKS: u64 = 12;
const STEPS: u64 = 1500;

fn config() -> StorageConfig {
    StorageConfig {
        page_size: 4096,
        segment_size: 64 << 10,
        log_buffer: 64 << 10,
        redo_bound: 1 << 20,
        log_retention: 256 << 10,
        ..StorageConfig::default()
    }
}

/// Number of the task's batch, and bytes to fill.
fn body(number: u64, length: usize) -> Vec<u8> {
    let mut ops = number.to_le_bytes().to_vec();
    ops.resize(8 + length, number as u8);
    ops
}

async fn task(log: Log, task: u64, ends: Arc<Mutex<Vec<(Lsn, Lsn)>>>) {
    let mut random = StdRng::seed_from_u64(task);
    let mut prev = Lsn(0);
    for number in 0..STEPS {
        let class = if task == 0 { LogUse::Cleanup } else { LogUse::Normal };
        match random.random_range(0..20) {
            // Taken and not used; asked for and given up.
            0 => drop(log.reserve(2000, class).await.expect("there is room")),
            1 => drop(futures::poll!(Box::pin(log.reserve(9000, class)))),
            _ => {}
        }
        let ops = body(number, random.random_range(0..1500));
        let blocks = [Block { page: page(task as u32), prev, ops: &ops }];
        let permit = log.reserve(batch::encoded_len(blocks.iter().copied()) + 100, class).await.expect("there is room");
        let (start, end) = log.append(permit, blocks.iter().copied());
        prev = end;
        ends.lock().push((start, end));
        if random.random_ratio(1, 6) {
            log.flush_to(end).await.expect("flushes");
            assert!(log.durable() >= end);
        }
    }
    log.flush_to(prev).await.expect("flushes");
}

/// A background writer: what was durable a while ago is home by now.
async fn home(log: Log, env: Env, stop: Arc<AtomicBool>) -> Lsn {
    let mut seen = VecDeque::from([Lsn(0)]);
    log.attach();
    while !stop.load(Ordering::Acquire) {
        seen.push_back(log.durable());
        if seen.len() > 8 || log.starved() {
            let redo = seen.pop_front().expect("not empty");
            log.recorded(redo, redo);
            log.round_done();
        }
        env.sleep(Duration::from_micros(300)).await;
    }
    log.redo_lsn()
}

#[test]
fn threads_reserve_append_and_wait() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    let env = terrace_env::Real::on(runtime.handle().clone());
    runtime.block_on(async move {
        let device: DeviceRef = Arc::new(MemoryDevice::new("log", 64 << 20));
        let log = create(env.clone(), device.clone(), &config()).await.expect("creates");
        let ends = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let home = tokio::spawn(home(log.clone(), env.clone(), stop.clone()));
        let tasks: Vec<_> = (0..TASKS).map(|i| tokio::spawn(task(log.clone(), i, ends.clone()))).collect();
        for task in tasks {
            task.await.unwrap();
        }
        stop.store(true, Ordering::Release);
        let redo = home.await.unwrap();
        assert_eq!(log.durable(), log.end());
        let status = log.status();
        assert_eq!((status.reserved_bytes, status.unwritten_bytes, status.waiting), (0, 0, 0), "all came back");
        assert!(redo > Lsn(4 * config().segment_size), "segments were used again: {redo}");
        let mut ends = std::mem::take(&mut *ends.lock());
        ends.sort_unstable();
        assert!(ends.windows(2).all(|w| w[0].1 <= w[1].0), "two batches overlap");
        assert_eq!(ends.len() as u64, TASKS * STEPS);

        let again = Log::unopened(env, device, DATABASE, &config());
        again.scan(redo, redo).await.expect("the segments are there");
        let (found, end) = read_all(&again, redo).await.expect("reads");
        assert_eq!(end, log.end());
        let expected: Vec<_> = ends.into_iter().filter(|(start, _)| *start >= redo).collect();
        assert_eq!(found.iter().map(|(start, end, _)| (*start, *end)).collect::<Vec<_>>(), expected);
        let mut last = vec![None; TASKS as usize];
        for (_, end, blocks) in &found {
            let [(page, prev, ops)] = &blocks[..] else { panic!("one block each") };
            let number = u64::from_le_bytes(ops[..8].try_into().unwrap());
            assert_eq!(*ops, body(number, ops.len() - 8));
            if let Some((before, before_end)) = last[page.no as usize].replace((number, *end)) {
                assert_eq!((number, *prev), (before + 1, before_end), "in each task's order");
            }
        }
    });
}
