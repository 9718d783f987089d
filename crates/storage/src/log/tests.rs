//! The log over simulated devices: order, group commit, torn tails, recycling, sealing, poison, a full device.

use super::batch::Batch;
use super::history::{ChangesOf, Everything, Visitor};
use super::*;
use crate::config::Safeguard;
use crate::page::PageKind;
use crate::page::op::PageOp;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Duration;
use terrace_device::fault::{Choice, Fault, FaultDevice, Operation, Recorder, Rule};
use terrace_device::latency::{self, Delay, LatencyDevice};
use terrace_device::{ErrorKind, Guarantees, Image, MemoryDevice, Purpose, SECTOR};
use terrace_env::Sim;

pub(super) const DATABASE: u128 = 77;

pub(in crate::log) fn config() -> StorageConfig {
    StorageConfig {
        page_size: 4096,
        segment_size: 64 << 10,
        log_buffer: 128 << 10,
        redo_bound: 1 << 30,
        log_retention: 512 << 10,
        safeguards: crate::testing::safeguards(),
        ..StorageConfig::default()
    }
}

fn memory() -> DeviceRef {
    Arc::new(MemoryDevice::new("log", 64 << 20))
}

pub(in crate::log) async fn create(env: Env, device: DeviceRef, config: &StorageConfig) -> Result<Log> {
    let log = Log::unopened(env, device, DATABASE, config);
    log.format().await?;
    log.start(1, Lsn(0)).await?;
    Ok(log)
}

/// A batch as read: start, end, and what each block says.
pub(super) type Read = (Lsn, Lsn, Vec<(PageId, Lsn, Vec<u8>)>);

pub(super) async fn read_all(log: &Log, from: Lsn) -> Result<(Vec<Read>, Lsn)> {
    let (mut found, mut at) = (Vec::new(), from);
    let mut image = match from {
        Lsn(0) => log.successor(None, from).await?,
        _ => log.segment(log.segment_of(from)).await?,
    };
    while let Some(segment) = image {
        for batch in segment.batches(at) {
            let blocks = batch.blocks().map(|b| (b.page, b.prev, b.ops.to_vec())).collect();
            found.push((batch.start, batch.end, blocks));
        }
        at = segment.end(at);
        image = log.successor(Some(&segment), at).await?;
    }
    Ok((found, at))
}

pub(super) async fn reopen(
    env: Env,
    device: DeviceRef,
    redo: Lsn,
    config: &StorageConfig,
) -> Result<(Log, Vec<Read>, Lsn)> {
    let log = Log::unopened(env, device, DATABASE, config);
    log.scan(redo, redo).await?;
    let (found, end) = read_all(&log, redo).await?;
    Ok((log, found, end))
}

pub(in crate::log) fn page(no: u32) -> PageId {
    PageId::new(DATA, no)
}

pub(super) async fn put(log: &Log, no: u32, prev: Lsn, ops: &[u8]) -> Result<(Lsn, Lsn)> {
    let blocks = [Block { page: page(no), prev, ops }];
    let permit = log.reserve(batch::encoded_len(blocks.iter().copied()), LogUse::Normal).await?;
    Ok(log.append(permit, blocks.iter().copied()))
}

#[test]
fn batches_come_back_in_order_across_segments() {
    let sim = Sim::new(1, 2);
    let env = sim.env();
    sim.run(async move {
        let device = memory();
        let log = create(env.clone(), device.clone(), &config()).await.expect("creates");
        let mut written = Vec::new();
        for i in 0..400u32 {
            let ops = vec![i as u8; 1 + (i as usize * 37) % 900];
            let (start, end) = put(&log, i % 50, Lsn(i as u64), &ops).await.expect("appends");
            written.push((start, end, vec![(page(i % 50), Lsn(i as u64), ops)]));
        }
        log.flush_to(log.end()).await.expect("flushes");
        assert_eq!(log.durable(), log.end());
        let (again, found, end) = reopen(env, device, Lsn(0), &config()).await.expect("reads");
        assert_eq!(found, written);
        assert_eq!(end, log.end());
        assert!(again.segments().len() >= 3, "several segments: {:?}", again.segments());
    });
}

#[test]
fn a_sealed_segment_names_its_pages() {
    let sim = Sim::new(2, 2);
    let env = sim.env();
    sim.run(async move {
        let log = create(env.clone(), memory(), &config()).await.expect("creates");
        for i in 0..300u32 {
            put(&log, i % 70, Lsn(0), &[7; 600]).await.expect("appends");
        }
        log.flush_to(log.end()).await.expect("flushes");
        let mut sealed = 0;
        for number in log.segments() {
            let image = log.segment(number).await.expect("reads").expect("is there");
            let mut expected: BTreeMap<PageId, Vec<(Lsn, Lsn)>> = BTreeMap::new();
            for batch in image.batches(Lsn(0)) {
                batch.blocks().for_each(|b| expected.entry(b.page).or_default().push((batch.start, batch.end)));
            }
            let Some(seal) = image.seal() else { continue };
            sealed += 1;
            let named = seal.index.pages().map(|(page, places)| {
                let lsns = places.iter().map(|place| seal.index.lsns(*place)).collect::<Vec<_>>();
                (page, lsns)
            });
            assert_eq!(named.collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
            assert_eq!(seal.end, image.end(Lsn(0)));
        }
        assert!(sealed >= 2 && sealed + 1 >= log.segments().len(), "all but the open segment are sealed");
    });
}

#[test]
fn many_commits_share_a_sync() {
    let sim = Sim::new(3, 2);
    let env = sim.env();
    sim.run(async move {
        let device = memory();
        let log = create(env.clone(), device.clone(), &config()).await.expect("creates");
        let before = device.stats().syncs;
        let commit = |i: u32| {
            let log = log.clone();
            async move {
                let (_, end) = put(&log, i, Lsn(0), b"commit").await.expect("appends");
                log.flush_to(end).await.expect("flushes");
                assert!(log.durable() >= end);
            }
        };
        futures::future::join_all((0..100).map(commit)).await;
        let syncs = device.stats().syncs - before;
        assert!(syncs <= 3, "{syncs} syncs for 100 commits at once");
        // Alone, a commit does not wait for company: no time passes.
        let now = env.now();
        commit(1000).await;
        assert_eq!(env.now(), now);
    });
}

#[test]
fn without_the_sync_nothing_is_durable() {
    let sim = Sim::new(4, 1);
    let env = sim.env();
    sim.run(async move {
        let device = memory();
        let mut config = config();
        config.safeguards = Safeguards::without(Safeguard::CommitSync);
        let log = create(env, device.clone(), &config).await.expect("creates");
        let before = device.stats().syncs;
        let (_, end) = put(&log, 1, Lsn(0), b"x").await.expect("appends");
        log.flush_to(end).await.expect("claims to flush");
        assert_eq!(device.stats().syncs, before, "the safeguard is off");
    });
}

fn recorded(recorder: &Arc<Recorder>, image: Image) -> Arc<FaultDevice> {
    let guarantees = Guarantees { atomic_write: 512, capacity: 64 << 20 };
    Arc::new(recorder.device("log", guarantees, image))
}

/// Two lives of a log, the first cut at every point, the second at the end of its writing: what is read is a prefix of
/// what was appended in the order of the lives, and holds everything acknowledged.
fn two_lives(seed: u64, choice: Choice) {
    // The events of the first life do not depend on the cut: one run tells where acknowledgements lie.
    let sim = Sim::new(seed, 2);
    let recorder = Recorder::new(true);
    let device = recorded(&recorder, Image::new());
    let env = sim.env();
    let (appended, acks) = sim.run({
        let recorder = recorder.clone();
        async move {
            let log = create(env, device, &config()).await.expect("creates");
            let (mut appended, mut acks) = (Vec::new(), vec![(recorder.events(), Lsn(0))]);
            for i in 0..90u32 {
                let ops = vec![i as u8; 1 + (i as usize * 331) % 3000];
                let (start, end) = put(&log, i, Lsn(0), &ops).await.expect("appends");
                appended.push((start, end, vec![(page(i), Lsn(0), ops)]));
                if i % 7 == 0 {
                    log.flush_to(end).await.expect("flushes");
                    acks.push((recorder.events(), end));
                }
            }
            (appended, acks)
        }
    });
    let created = acks[0].0;
    let history = recorder.history().expect("kept");
    let mut cursor = history.cursor();
    while cursor.advance() {
        let at = cursor.position() as u64;
        if at < created {
            continue;
        }
        let acked = acks.iter().filter(|(events, _)| *events <= at).map(|(_, lsn)| *lsn).max().expect("created");
        let image = cursor.contents(choice).remove(0);
        second_life(seed ^ at, image, &appended, acked);
    }
}

fn second_life(seed: u64, image: Image, appended: &[Read], acked: Lsn) {
    let sim = Sim::new(seed, 2);
    let env = sim.env();
    let recorder = Recorder::new(false);
    let device = recorded(&recorder, image);
    let (first, second, flushed) = sim.run({
        let env = env.clone();
        let appended = appended.to_vec();
        async move {
            let (log, first, end) = reopen(env, device, Lsn(0), &config()).await.expect("reads");
            assert!(end >= acked, "acknowledged up to {acked}, the log ends at {end}");
            assert_eq!(first, appended[..first.len()], "not a prefix of what was appended");
            log.start(2, end).await.expect("starts");
            let (mut second, mut flushed) = (Vec::new(), 0);
            for i in 0..60u32 {
                let ops = vec![!i as u8; 1 + (i as usize * 577) % 3000];
                let (start, end) = put(&log, i, Lsn(1), &ops).await.expect("appends");
                second.push((start, end, vec![(page(i), Lsn(1), ops)]));
                if i == 40 {
                    log.flush_to(end).await.expect("flushes");
                    flushed = second.len();
                }
            }
            (first, second, flushed)
        }
    });
    sim.crash();
    let image = recorder.contents(Choice::Random(seed)).remove(0);
    let all: Vec<Read> = first.iter().chain(&second).cloned().collect();
    sim.run(async move {
        let device = recorded(&Recorder::new(false), image);
        let (_, found, _) = reopen(env, device, Lsn(0), &config()).await.expect("reads");
        assert!(
            found.len() >= first.len() + flushed,
            "a second restart lost what the first had, or an acknowledged batch"
        );
        assert_eq!(found, all[..found.len()], "something else than was appended came back");
    });
}

#[test]
pub(crate) fn a_crash_leaves_a_prefix_with_all_that_was_acknowledged() {
    for (seed, choice) in [(1, Choice::None), (2, Choice::All), (3, Choice::OnlyLast), (4, Choice::Torn(1))] {
        two_lives(seed, choice);
    }
    for seed in 10..20 {
        two_lives(seed, Choice::Random(seed));
    }
}

#[test]
fn a_torn_tail_ends_the_log_at_each_cut() {
    let sim = Sim::new(5, 1);
    let env = sim.env();
    let recorder = Recorder::new(true);
    let device = recorded(&recorder, Image::new());
    let (last, end) = sim.run({
        let env = env.clone();
        async move {
            let log = create(env, device, &config()).await.expect("creates");
            let (_, first) = put(&log, 1, Lsn(0), &[1; 300]).await.expect("appends");
            log.flush_to(first).await.expect("flushes");
            let (_, end) = put(&log, 2, Lsn(0), &[2; 9000]).await.expect("appends");
            log.flush_to(end).await.expect("flushes");
            (first, end)
        }
    });
    let history = recorder.history().expect("kept");
    let mut cursor = history.cursor();
    let mut torn = 0;
    while cursor.advance() {
        if !cursor.at_write() || cursor.position() + 4 < history.len() {
            continue;
        }
        // Its last units hold only padding; without them nothing is missing.
        let units = (end.0 - last.0 / SECTOR as u64 * SECTOR as u64).div_ceil(512) as usize;
        assert!(units <= cursor.last_write_units());
        for units in 1..units {
            let (env, image) = (env.clone(), cursor.contents(Choice::Torn(units)).remove(0));
            torn += 1;
            sim.run(async move {
                let device = recorded(&Recorder::new(false), image);
                let (_, found, end) = reopen(env, device, Lsn(0), &config()).await.expect("reads");
                assert_eq!((found.len(), end), (1, last), "the torn batch is not there, the one before is");
            });
        }
    }
    assert!(torn > 5, "only {torn} torn forms were tried");
}

#[test]
fn a_failed_sync_poisons_the_log() {
    let sim = Sim::new(6, 1);
    let env = sim.env();
    sim.run(async move {
        let recorder = Recorder::new(false);
        let device = recorded(&recorder, Image::new());
        let log = create(env, device.clone(), &config()).await.expect("creates");
        let (_, good) = put(&log, 1, Lsn(0), b"good").await.expect("appends");
        log.flush_to(good).await.expect("flushes");
        let fault = Fault::Fail(ErrorKind::Io("the controller says no".into()));
        device.inject(Rule { operation: Operation::Sync, purpose: Some(Purpose::Log), skip: 0, times: 1, fault });
        let permit = log.reserve(100, LogUse::Normal).await.expect("grants");
        let (_, bad) = put(&log, 2, Lsn(0), b"bad").await.expect("appends");
        let failed = |r: Result<()>| matches!(r, Err(StorageError::LogFailed(why)) if why.contains("controller"));
        assert!(failed(log.flush_to(bad).await));
        // The device works again; the log does not.
        assert!(failed(log.flush_to(bad).await));
        assert!(failed(log.flush_to(good).await));
        assert!(failed(log.reserve(10, LogUse::Cleanup).await.map(drop)));
        let block = Block { page: page(3), prev: Lsn(0), ops: b"late" };
        let (_, late) = log.append(permit, std::iter::once(block));
        assert!(failed(log.flush_to(late).await));
        assert_eq!(log.durable(), good);
    });
}

#[test]
fn a_full_device_stops_normal_work_only_and_recycling_frees_it() {
    let sim = Sim::new(7, 1);
    let env = sim.env();
    sim.run(async move {
        // Room for six segments; two of them are the reserve.
        let device: DeviceRef = Arc::new(MemoryDevice::new("log", SECTOR as u64 + 6 * (64 << 10)));
        let log = create(env, device, &config()).await.expect("creates");
        let full = loop {
            match put(&log, 1, Lsn(0), &[0; 5000]).await {
                Ok((_, end)) => log.flush_to(end).await.expect("flushes"),
                Err(e) => break e,
            }
        };
        assert!(matches!(full, StorageError::LogFull(_)), "{full}");
        let permit = log.reserve(5000, LogUse::Cleanup).await.expect("the reserve serves cleaning up");
        let block = Block { page: page(9), prev: Lsn(0), ops: b"rollback" };
        let (_, end) = log.append(permit, std::iter::once(block));
        log.flush_to(end).await.expect("flushes");
        log.recorded(end, end);
        for _ in 0..100 {
            let (_, end) = put(&log, 1, Lsn(0), &[0; 5000]).await.expect("the old segments serve again");
            log.flush_to(end).await.expect("flushes");
            log.recorded(end, end);
        }
        let live = log.segments();
        assert!(live.len() <= 6 && live[0] > 2, "old segments are gone: {live:?}");
    });
}

/// Commits a lot, each change written home at once.
async fn commit_many(log: &Log, count: usize) {
    for _ in 0..count {
        let (_, end) = put(log, 1, Lsn(0), &[0; 5000]).await.expect("old segments serve again");
        log.flush_to(end).await.expect("flushes");
        log.recorded(end, end);
    }
}

#[test]
fn a_device_no_larger_than_the_retention_is_used_again() {
    let sim = Sim::new(12, 1);
    let env = sim.env();
    sim.run(async move {
        // A round capacity: the device's header leaves room for seven segments.
        let device: DeviceRef = Arc::new(MemoryDevice::new("log", config().log_retention));
        let log = create(env, device, &config()).await.expect("creates");
        commit_many(&log, 200).await;
    });
}

#[test]
fn a_block_devices_last_part_of_a_segment_is_left_alone() {
    let sim = Sim::new(13, 1);
    let env = sim.env();
    sim.run(async move {
        let size = 512u64 << 10;
        let mut image = Image::new();
        image.write(size - SECTOR as u64, &[0; SECTOR]);
        let device: DeviceRef =
            Arc::new(MemoryDevice::with_image("log", Guarantees { atomic_write: SECTOR, capacity: size }, image));
        assert_eq!(device.size(), size);
        let log = create(env, device, &config()).await.expect("creates");
        // The reserve takes every slot that there is.
        while log.segments().len() < 7 {
            let permit = log.reserve(5000, LogUse::Cleanup).await.expect("there is room");
            let block = Block { page: page(1), prev: Lsn(0), ops: &[0; 4000] };
            let (_, end) = log.append(permit, std::iter::once(block));
            log.flush_to(end).await.expect("flushes");
        }
        let full = put(&log, 1, Lsn(0), &[0; 5000]).await;
        assert!(matches!(full, Err(StorageError::LogFull(_))), "{full:?}");
        log.recorded(log.end(), log.end());
        commit_many(&log, 200).await;
    });
}

#[test]
fn who_gives_up_waiting_for_room_is_not_counted() {
    let sim = Sim::new(14, 1);
    let env = sim.env();
    sim.run(async move {
        let log = create(env.clone(), memory(), &config()).await.expect("creates");
        let all = log.reserve(20_000, LogUse::Normal).await.expect("there is room");
        let more: Vec<_> = futures::future::join_all((0..5).map(|_| log.reserve(20_000, LogUse::Normal))).await;
        {
            let waiting = std::pin::pin!(log.reserve(20_000, LogUse::Normal));
            let timeout = env.sleep(Duration::from_millis(50));
            let first = futures::future::select(waiting, timeout).await;
            assert!(matches!(first, futures::future::Either::Right(_)), "memory for a seventh was granted");
            assert_eq!(log.status().waiting, 1);
            assert!(!log.starved(), "it waits for the writer: no page needs to go home");
        }
        assert_eq!(log.status().waiting, 0, "it waits no more");
        drop((all, more));
    });
}

#[test]
fn segments_below_the_redo_lsn_are_kept_while_retention_lasts() {
    let sim = Sim::new(8, 1);
    let env = sim.env();
    sim.run(async move {
        let device = memory();
        let log = create(env.clone(), device.clone(), &config()).await.expect("creates");
        let mut redo = Lsn(0);
        for i in 0..400 {
            let (start, end) = put(&log, 1, Lsn(0), &[0; 5000]).await.expect("appends");
            log.flush_to(end).await.expect("flushes");
            if i % 10 == 0 {
                log.recorded(start, start);
                redo = start;
            }
        }
        let kept = log.segments().len() as u64 * (64 << 10);
        assert!(kept + 5 * (64 << 10) > config().log_retention, "{kept} bytes kept");
        assert!(device.size() <= config().log_retention + (5 * (64 << 10)), "the device grew to {}", device.size());
        let (again, found, end) = reopen(env, device, redo, &config()).await.expect("reads");
        assert_eq!((found[0].0, end), (redo, log.end()));
        assert!(again.segments().ends_with(&log.segments()), "history behind the redo LSN is found again");
    });
}

#[test]
fn memory_is_granted_once_and_comes_back() {
    let sim = Sim::new(10, 1);
    let env = sim.env();
    sim.run(async move {
        let log = create(env.clone(), memory(), &config()).await.expect("creates");
        let most = log.core.geometry.max_batch();
        let permits: Vec<_> =
            futures::future::try_join_all((0..5).map(|_| log.reserve(most, LogUse::Normal))).await.expect("fit");
        let waiting = Arc::new(AtomicBool::new(true));
        let (l, w) = (log.clone(), waiting.clone());
        env.spawn("sixth", async move {
            let permit = l.reserve(most, LogUse::Normal).await.expect("granted in the end");
            w.store(false, Ordering::Release);
            drop(permit);
        });
        env.sleep(Duration::from_millis(1)).await;
        assert!(waiting.load(Ordering::Acquire), "a sixth is more than the buffer");
        drop(permits);
        env.sleep(Duration::from_millis(1)).await;
        assert!(!waiting.load(Ordering::Acquire), "room that was not used comes back");
        assert_eq!(log.core.tail.lock().permits, 0);
    });
}

#[test]
fn writers_are_delayed_smoothly_and_stopped_at_the_redo_bound() {
    let sim = Sim::new(11, 1);
    let env = sim.env();
    sim.run(async move {
        let config = StorageConfig { redo_bound: 400 << 10, ..config() };
        let log = create(env.clone(), memory(), &config).await.expect("creates");
        let mut delays = Vec::new();
        let l = log.clone();
        // A slow background writer: it takes what is there every tenth of a second.
        env.spawn("redo", {
            let env = env.clone();
            async move {
                for _ in 0..100 {
                    env.sleep(Duration::from_millis(100)).await;
                    l.flush_to(l.end()).await.expect("flushes");
                    l.recorded(l.end(), l.end());
                }
            }
        });
        for _ in 0..1000 {
            let before = env.now().0;
            put(&log, 1, Lsn(0), &[0; 2000]).await.expect("appends");
            delays.push(env.now().0 - before);
            let debt = log.end().0 - log.redo_lsn().0;
            assert!(debt <= config.redo_bound + (64 << 10), "{debt} bytes to redo");
        }
        assert!(delays[..100].iter().all(|d| *d == 0), "far from the bound nobody waits");
        let first = delays.iter().position(|d| *d > 0).expect("near it they do");
        assert!(delays[first] < 1_000_000, "the first delay is small: {} ns", delays[first]);
    });
}

/// The pages of each batch shown, with its start.
#[derive(Default)]
struct Seen(Vec<(Lsn, Vec<PageId>)>);

impl Visitor for Seen {
    async fn batches(&mut self, batches: &[Batch<'_>]) -> Result<()> {
        self.0.extend(batches.iter().map(|b| (b.start, b.blocks().map(|block| block.page).collect())));
        Ok(())
    }
}

#[test]
fn the_log_is_read_again_in_parts() {
    let sim = Sim::new(12, 1);
    let env = sim.env();
    sim.run(async move {
        let device = memory();
        let log = create(env, device.clone(), &config()).await.expect("creates");
        let mut format = Vec::new();
        PageOp::Format { kind: PageKind::Heap, owner: ObjectId(3), special: 0 }.encode(&mut format);
        let mut change = Vec::new();
        PageOp::Put { slot: 0, cell: &[5; 400] }.encode(&mut change);
        let (_, lost) = put(&log, 1, Lsn(0), &change).await.expect("appends");
        let (begun, mut last) = put(&log, 1, lost, &format).await.expect("appends");
        let mut starts = vec![begun];
        for i in 0..600 {
            if i % 100 == 0 {
                let (start, end) = put(&log, 1, last, &change).await.expect("appends");
                starts.push(start);
                last = end;
            }
            put(&log, 100 + i, Lsn(0), &change).await.expect("appends");
        }
        let end = log.end();
        log.flush_to(end).await.expect("flushes");
        let pages = BTreeSet::from([page(1), page(100)]);
        let found = log.beginnings(&pages, end).await.expect("reads");
        assert_eq!(found, BTreeMap::from([(page(1), begun)]), "the other's beginning is not in the log");
        // Forward, from a page's beginning: all of it, in order, whatever else comes by.
        let mut seen = Seen::default();
        let wanted = ChangesOf(&[(page(1), begun)]);
        assert!(log.walk(begun, end, &wanted, &mut seen).await.expect("reads"));
        let of =
            |seen: &Seen| seen.0.iter().filter(|(_, p)| p.contains(&page(1))).map(|(at, _)| *at).collect::<Vec<_>>();
        assert_eq!(of(&seen), starts);
        let mut part = Seen::default();
        assert!(log.walk(starts[1], starts[3], &Everything, &mut part).await.expect("reads"));
        assert_eq!(of(&part), starts[1..3], "from the first LSN up to the second");
        // Segments that do not name the page are not read: one segment and the indexes.
        let segments = log.segments().len() as u64;
        assert!(segments > 4);
        let before = device.stats().read_bytes;
        let wanted = ChangesOf(&[(page(101), Lsn(0))]);
        assert!(log.walk(begun, end, &wanted, &mut Seen::default()).await.expect("reads"));
        log.beginnings(&BTreeSet::from([page(101)]), end).await.expect("reads");
        let read = device.stats().read_bytes - before;
        // The unsealed segment has no index.
        assert!(read < 4 * (64 << 10) + 2 * segments * 24576, "{read} bytes read for one page");
        // Whose indexes were read is asked by sectors: of the page table, of beginnings, of places, of batches.
        let before = device.stats().read_bytes;
        let mut again = Seen::default();
        assert!(log.walk(begun, end, &ChangesOf(&[(page(1), begun)]), &mut again).await.expect("reads"));
        let read = device.stats().read_bytes - before;
        assert_eq!(of(&again), starts);
        let sectors = 2 * segments + 3 * starts.len() as u64;
        assert!(read < (64 << 10) + sectors * SECTOR as u64, "{read} bytes read for one page's changes");
        // Who is content with page tables reads nothing else of the indexes.
        let mut read = Vec::new();
        for asks_table in [false, true] {
            let (before, told) = (device.stats().read_bytes, Told { asks_table, ends: Default::default() });
            assert!(log.walk(begun, end, &told, &mut Seen::default()).await.expect("reads"));
            read.push(device.stats().read_bytes - before);
        }
        assert!(read[1] + segments / 2 * SECTOR as u64 <= read[0], "{read:?} bytes read of {segments} segments");
    });
}

/// A crash keeps a segment's seal and loses the last batch in front of it: the next life goes on in the next segment,
/// and the seal's end is not where the stream goes on.
#[test]
fn a_seal_may_say_more_than_a_crash_has_left() {
    let sim = Sim::new(14, 1);
    let env = sim.env();
    sim.run(async move {
        let memory = Arc::new(MemoryDevice::new("log", 64 << 20));
        let device: DeviceRef = memory.clone();
        let log = create(env.clone(), device.clone(), &config()).await.expect("creates");
        let (mut starts, first) = (Vec::new(), config().segment_size);
        while log.segment_of(log.end()) < 2 {
            starts.push(put(&log, 1, Lsn(0), &[7; 900]).await.expect("appends").0);
        }
        log.flush_to(log.end()).await.expect("flushes");
        // Of the two last batches of a segment, the second is there still, and no history.
        let mut there = starts.iter().rev().filter(|&&start| log.segment_of(start) == 1);
        let (_, lost) = (there.next(), *there.next().expect("there are some"));
        let slot = log.core.tail.lock().slots.slot(1).expect("in use");
        memory.tamper(|image| image.flip(inspect::slot_at(slot, first) + lost.0 % first + 30, 4));
        drop(log);
        let (log, _, end) = reopen(env.clone(), device.clone(), Lsn(0), &config()).await.expect("reads");
        assert_eq!(end, lost);
        log.start(2, end).await.expect("starts");
        let (start, end) = put(&log, 7, Lsn(0), &[7; 900]).await.expect("appends");
        log.flush_to(end).await.expect("flushes");
        let mut seen = Seen::default();
        let wanted = ChangesOf(&[(page(7), Lsn(0))]);
        assert!(log.walk(starts[0], end, &wanted, &mut seen).await.expect("nothing is damaged"));
        // (The segment that the stream left is read whole.)
        assert_eq!(seen.0.last(), Some(&(start, vec![page(7)])));
        assert!(seen.0.iter().all(|(at, _)| *at < lost || *at == start), "{:?}", seen.0);
        // What the seal says of what is lost nobody is told: page 1 has places behind it, in this segment.
        let phantom = Lsn(lost.0 + 1)..Lsn(2 * first);
        for asks_table in [false, true] {
            let told = Told { asks_table, ends: Default::default() };
            assert!(log.walk(starts[0], end, &told, &mut Seen::default()).await.expect("nothing is damaged"));
            let ends = told.ends.into_inner();
            assert!(!ends.is_empty() && ends.iter().all(|end| !phantom.contains(end)), "{ends:?}");
        }
        // Who wants the pages of what is lost, or reads the segment, finds what is left of it.
        let mut some = Seen::default();
        let wanted = ChangesOf(&[(page(1), starts[starts.len() - 2])]);
        assert!(log.walk(starts[0], end, &wanted, &mut some).await.expect("nothing is damaged"));
        assert!(some.0.iter().all(|(at, _)| *at < lost || *at == start), "{:?}", some.0);
        let mut all = Seen::default();
        assert!(log.walk(starts[0], end, &Everything, &mut all).await.expect("nothing is damaged"));
        assert!(all.0.iter().map(|(at, _)| *at).eq(starts.iter().copied().filter(|at| *at < lost).chain([start])));
    });
}

/// Takes the ends of batches from indexes, or from their page tables.
struct Told {
    asks_table: bool,
    ends: parking_lot::Mutex<Vec<Lsn>>,
}

impl super::history::Selection for Told {
    fn select(&self, index: &super::index::SegmentIndex) -> super::history::Wanting {
        let ends = index.pages().flat_map(|(_, places)| places).map(|place| index.lsns(*place).1);
        self.ends.lock().extend(ends);
        super::history::Wanting::Nothing
    }

    fn asks_table(&self) -> bool {
        self.asks_table
    }

    fn is_enough(&self, table: &super::index::PageTable) -> bool {
        self.ends.lock().extend(table.newest().map(|(_, end)| end));
        true
    }
}

/// Nobody needs what lies in front of where restart begins: damage there neither ends a reading nor keeps the log's end
/// from being written again.
#[test]
fn r5_what_lies_in_front_of_where_reading_begins_need_not_check() {
    let sim = Sim::new(13, 1);
    let env = sim.env();
    sim.run(async move {
        let memory = Arc::new(MemoryDevice::new("log", 64 << 20));
        let device: DeviceRef = memory.clone();
        let log = create(env.clone(), device.clone(), &config()).await.expect("creates");
        let mut starts = Vec::new();
        for i in 0..120 {
            starts.push(put(&log, 100 + i, Lsn(0), &[7; 900]).await.expect("appends").0);
        }
        let (end, first) = (log.end(), config().segment_size);
        log.flush_to(end).await.expect("flushes");
        // In the second segment, and not the first batch there.
        let at = starts.partition_point(|start| start.0 < first + 20_000);
        let slot = log.core.tail.lock().slots.slot(1).expect("in use");
        memory.tamper(|image| image.flip(inspect::slot_at(slot, first) + SECTOR as u64 + 30, 4));
        drop(log);
        let redo = starts[at];
        for from in [redo, starts[at + 1]] {
            let (log, found, reached) = reopen(env.clone(), device.clone(), redo, &config()).await.expect("reads");
            assert_eq!((found.len(), reached), (starts.len() - at, end));
            let mut seen = Seen::default();
            assert!(log.walk(from, end, &Everything, &mut seen).await.expect("reads"));
            assert!(seen.0.iter().map(|(at, _)| *at).eq(starts.iter().copied().filter(|start| *start >= from)));
        }
        let log = Log::unopened(env, device.clone(), DATABASE, &config());
        log.scan(redo, redo).await.expect("reads");
        let before = device.stats().write_bytes;
        log.harden(redo).await.expect("writes");
        let written = device.stats().write_bytes - before;
        assert!(written >= end.0 - redo.0, "{written} bytes of {} are written again", end.0 - redo.0);
    });
}

/// Each answer of a device that is gone may take seconds.
#[test]
fn r7_a_device_that_gives_nothing_is_asked_for_little() {
    #[derive(Default)]
    struct Asked(std::sync::atomic::AtomicU64);
    impl Delay for Asked {
        fn serve(&self, _: latency::Operation, _: u64, _: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(std::future::ready(()))
        }
    }
    let sim = Sim::new(14, 1);
    let env = sim.env();
    sim.run(async move {
        let (memory, asked) = (Arc::new(MemoryDevice::new("log", 64 << 20)), Arc::new(Asked::default()));
        let (bytes, sectors) = (1 << 20, (1 << 20) / SECTOR as u64);
        memory.tamper(|image| image.write(SECTOR as u64, &vec![7; bytes]));
        let log = Log::unopened(env, Arc::new(LatencyDevice::new(memory.clone(), asked.clone())), DATABASE, &config());
        let read = async |spoilt: &[(u64, u64)]| {
            memory
                .tamper(|image| spoilt.iter().for_each(|&(at, n)| image.spoil(at * SECTOR as u64, n * SECTOR as u64)));
            let before = asked.0.load(Ordering::Relaxed);
            let (read, holes) = log.core.read_around(SECTOR as u64, bytes).await.expect("with holes");
            (read.iter().filter(|&&b| b == 7).count(), holes, asked.0.load(Ordering::Relaxed) - before)
        };
        // Two bad sectors cost what is around them nothing.
        let (good, holes, _) = read(&[(30, 1), (200, 1)]).await;
        assert_eq!((good, holes), (bytes - 2 * SECTOR, true));
        let (good, holes, times) = read(&[(1, sectors)]).await;
        assert_eq!((good, holes), (0, true));
        assert!(times < 100, "asked {times} times for {sectors} sectors");
    });
}
