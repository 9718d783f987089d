//! Many writers and scanners at once: in virtual time with a pool so small that nearly every step misses and lets
//! others in between, and in real time on threads.
use super::*;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use terrace_env::yield_now;

const WRITERS: u32 = 6;

/// A small generator of its own for each task, so that tasks do not depend on each other.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % below as u64) as u32
    }
}

/// Keys of writer `w` lie between those of the others. Multiples of 16 are never removed.
fn key_of(w: u32, n: u32, len: usize) -> Vec<u8> {
    number(n * WRITERS + w, len)
}

async fn write(st: Store, tree: Arc<BTree>, w: u32, seed: u64, steps: u32, span: u32, len: usize) -> BTreeSet<Vec<u8>> {
    let mut dice = Dice(seed ^ (w as u64) << 32);
    let mut mine = BTreeSet::new();
    let mut grow = true;
    for step in 0..steps {
        if step % (steps / 4).max(1) == 0 {
            grow = !grow || step == 0;
        }
        let n = dice.roll(span);
        let key = key_of(w, n, len);
        if dice.roll(10) < if grow { 8 } else { 1 } {
            assert_eq!(tree.insert(&st, &key).await.unwrap(), mine.insert(key));
        } else if !n.is_multiple_of(16) {
            // Runs of neighbours, so that pages become empty.
            for n in n..(n + 12).min(span) {
                let key = key_of(w, n, len);
                if !n.is_multiple_of(16) {
                    assert_eq!(tree.remove(&st, &key).await.unwrap(), mine.remove(&key));
                }
            }
        }
        if step % 16 == 0 {
            yield_now().await;
        }
        if dice.roll(8) == 0 {
            let key = key_of(w, dice.roll(span), len);
            let found = tree.first_with_prefix(&st, &key).await.unwrap();
            assert_eq!(found.is_some(), mine.contains(&key));
        }
    }
    mine
}

/// Scans until the writers are done. Order is strict, and what was there before the scan and is never removed is seen.
async fn read(st: Store, tree: Arc<BTree>, direction: Direction, writing: Arc<AtomicUsize>) -> usize {
    let mut scans = 0;
    let mut lasting = BTreeSet::new();
    loop {
        let last = writing.load(SeqCst) == 0;
        let seen = all(&st, &tree, direction).await;
        let ordered = |w: &[Vec<u8>]| if direction == Direction::Forward { w[0] < w[1] } else { w[0] > w[1] };
        assert!(seen.windows(2).all(ordered));
        let seen: BTreeSet<_> = seen.into_iter().collect();
        assert!(lasting.is_subset(&seen), "a key that is never removed was missed");
        let stays = |k: &&Vec<u8>| (u32::from_be_bytes(k[..4].try_into().unwrap()) / WRITERS).is_multiple_of(16);
        lasting = seen.iter().filter(stays).cloned().collect();
        scans += 1;
        if last {
            return scans;
        }
        // Readers that never rest would keep virtual time, and so writers that wait for it, standing still.
        st.env().sleep(std::time::Duration::from_micros(10)).await;
    }
}

async fn storm(st: Store, seed: u64, steps: u32, span: u32, len: usize) {
    let tree = Arc::new(BTree::create(&st, ObjectId(9), DATA).await.unwrap());
    let writing = Arc::new(AtomicUsize::new(WRITERS as usize));
    let (results, mut done) = tokio::sync::mpsc::unbounded_channel();
    for w in 0..WRITERS {
        let (st2, tree, writing, results) = (st.clone(), tree.clone(), writing.clone(), results.clone());
        st.env().spawn("writer", async move {
            let mine = write(st2, tree, w, seed, steps, span, len).await;
            writing.fetch_sub(1, SeqCst);
            results.send(mine).unwrap();
        });
    }
    for direction in [Direction::Forward, Direction::Backward] {
        let (st2, tree, writing, results) = (st.clone(), tree.clone(), writing.clone(), results.clone());
        st.env().spawn("reader", async move {
            assert!(read(st2, tree, direction, writing).await > 0);
            results.send(BTreeSet::new()).unwrap();
        });
    }
    drop(results);
    let mut expected = BTreeSet::new();
    let mut finished = 0;
    while let Some(mine) = done.recv().await {
        finished += 1;
        expected.extend(mine);
    }
    assert_eq!(finished, WRITERS + 2, "a task failed");
    compare(&st, &tree, &expected).await;
    for key in &expected {
        assert!(tree.remove(&st, key).await.unwrap());
    }
    compare(&st, &tree, &BTreeSet::new()).await;
}

#[test]
fn a_storm_in_virtual_time() {
    for seed in 0..24 {
        let rig = Arc::new(Rig::new(48, u64::MAX));
        simulate(seed, &rig, move |st| storm(st, seed, 400, 150, 500));
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "this test is about real threads")]
fn a_storm_on_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    for seed in 0..4 {
        let rig = Rig::new(if seed % 2 == 0 { 4096 } else { 96 }, u64::MAX);
        let env = terrace_env::Real::on(runtime.handle().clone());
        runtime.block_on(async move {
            let task = tokio::spawn(async move {
                let st = rig.create(env).await;
                storm(st, seed, 3000, 2000, 120).await;
            });
            task.await.unwrap();
        });
    }
}
