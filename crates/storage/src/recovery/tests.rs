//! Redo by page against the log's own order, under small budgets and pools; how much it reads; pages made again.

mod cut;
mod memory;
mod pressed;
mod stop;
mod tier;

use super::gather::{Changes, Gathered, Pushed};
use super::*;
use crate::backup::Upto;
use crate::config::Restart;
use crate::control::ControlFile;
use crate::log::Log;
use crate::log::batch::EVENT;
use crate::page::PageKind;
use crate::page::op::PageOp;
use crate::pool::Access;
use crate::store::Store;
use crate::{RecoveryReport, StorageConfig};
use std::time::Duration;
use terrace_device::{Device, DeviceRef, IoBuf, MemoryDevice, Purpose};
use terrace_env::Sim;

const OWNER: ObjectId = ObjectId(60);
const PAGE: usize = 4096;

/// Memory devices that outlive the stores opened on them.
struct Machine {
    devices: DeviceSet,
    data: Arc<MemoryDevice>,
    log: Arc<MemoryDevice>,
    config: StorageConfig,
}

/// Pages in use, in the order in which they were made.
type Pages = Vec<u32>;

impl Machine {
    fn new(pool_pages: usize, redo_memory: usize) -> Machine {
        let device = |name: &str| Arc::new(MemoryDevice::new(name, 256 << 20));
        let (data, log) = (device("data"), device("log"));
        let (data_ref, log_ref): (DeviceRef, DeviceRef) = (data.clone(), log.clone());
        let devices = DeviceSet::from_fn(|name| match name {
            "data" => data_ref.clone(),
            "log" => log_ref.clone(),
            other => device(other),
        });
        let flash = crate::FlashConfig { restart: Restart::LazyVerification, ..Default::default() };
        let config = StorageConfig {
            flash,
            page_size: PAGE,
            pool_bytes: pool_pages * PAGE,
            segment_size: 64 << 10,
            log_buffer: 128 << 10,
            redo_bound: 64 << 20,
            log_retention: 64 << 20,
            redo_memory,
            writer_interval: Duration::from_secs(1000),
            checkpoint_interval: Duration::from_secs(1000),
            ..StorageConfig::default()
        };
        Machine { devices, data, log, config }
    }

    /// A store with `count` pages, changed `changes` times at random, a few of them very often; killed.
    fn work(&self, seed: u64, count: usize, changes: usize, checkpoint: usize) -> Pages {
        let sim = Sim::new(seed, 2);
        let (env, devices, config) = (sim.env(), self.devices.clone(), self.config.clone());
        let pages = sim.run(async move {
            let st = Store::create(env, devices, config).await.expect("creates");
            let pages = make_pages(&st, count).await;
            for i in 0..changes {
                change(&st, &pages).await;
                if i == checkpoint {
                    st.checkpoint().await.expect("writes home");
                }
            }
            st.log().flush_to(st.log().end()).await.expect("flushes");
            pages
        });
        sim.crash();
        pages
    }

    fn open(&self, seed: u64, upto: Upto) -> (Sim, Store, RecoveryReport) {
        let sim = Sim::new(seed, 2);
        let (env, devices, config) = (sim.env(), self.devices.clone(), self.config.clone());
        let opened = sim.run(async move { Store::open_upto(env, devices, config, upto).await });
        let (st, report) = opened.expect("opens");
        (sim, st, report)
    }

    /// Every page as the whole log, in its order, makes it; and the ends of its batches.
    fn in_log_order(&self, upto: Lsn) -> (BTreeMap<PageId, Vec<u8>>, Vec<Lsn>) {
        let sim = Sim::new(9, 1);
        let (env, devices, config) = (sim.env(), self.devices.clone(), self.config.clone());
        sim.run(async move {
            let control = ControlFile::open(devices.control.clone()).await.expect("opens").state;
            let log = Log::unopened(env, devices.log.clone(), control.database, &config);
            log.scan(Lsn(0), Lsn(0)).await.expect("scans");
            let mut pages: BTreeMap<PageId, Vec<u8>> = BTreeMap::new();
            let mut ends = Vec::new();
            let mut segment = log.successor(None, Lsn(0)).await.expect("reads");
            while let Some(image) = segment {
                for batch in image.batches(Lsn(0)).take_while(|b| b.end <= upto) {
                    ends.push(batch.end);
                    for block in batch.blocks().filter(|b| b.page != EVENT) {
                        let bytes = pages.entry(block.page).or_insert_with(|| vec![0; PAGE]);
                        assert!(follow(bytes, block.page, &Change::of(&batch, &block), true).expect("follows"));
                    }
                }
                segment = log.successor(Some(&image), image.end(Lsn(0))).await.expect("reads");
            }
            (pages, ends)
        })
    }

    /// Bytes that are no page, in place of one.
    fn spoil(&self, seed: u64, no: u32) {
        let sim = Sim::new(seed, 1);
        let data = self.data.clone();
        sim.run(async move {
            let at = crate::home::PAGES_AT + u64::from(no) * PAGE as u64;
            let garbage = IoBuf::padded(&[0xA5; PAGE]);
            data.write(at, garbage, Purpose::Data).await.expect("writes");
        });
    }
}

async fn make_pages(st: &Store, count: usize) -> Pages {
    let mut pages = Vec::new();
    for _ in 0..count {
        let room = st.space(DATA).reserve_page(st, OWNER).await.expect("there is room");
        let pin = room.pin.clone();
        let permit = st.reserve(2000).await.expect("there is log");
        let mut mtr = st.mtr(permit);
        let at = mtr.latch(&pin);
        mtr.apply(at, PageOp::Format { kind: PageKind::Heap, owner: OWNER, special: 0 });
        st.space(DATA).use_page(&mut mtr, room);
        mtr.commit();
        pages.push(pin.id().no);
    }
    pages
}

/// Changes two pages, one of them often the first; now and then one begins afresh.
async fn change(st: &Store, pages: &[u32]) {
    let random = st.env().random_u64();
    let one = (random >> 8) as usize % pages.len();
    let other = if random.is_multiple_of(3) { 0 } else { (random >> 40) as usize % pages.len() };
    let mut pins = Vec::new();
    for &i in [one, other].iter().take(1 + usize::from(one != other)) {
        pins.push(st.pool().fetch(PageId::new(DATA, pages[i]), Access::Random).await.expect("reads"));
    }
    let permit = st.reserve(3000).await.expect("there is log");
    let mut mtr = st.mtr(permit);
    for (i, pin) in pins.iter().enumerate() {
        let at = mtr.latch(pin);
        if (random >> (20 + i)) % 64 == 5 {
            mtr.apply(at, PageOp::Format { kind: PageKind::Heap, owner: OWNER, special: 0 });
        }
        let cell = vec![(random >> 32) as u8; 20 + (random >> 16) as usize % 400];
        mtr.apply(at, PageOp::Put { slot: (random >> 50) as u16 % 4, cell: &cell });
    }
    mtr.commit();
}

/// All of `expected` as the store shows it.
fn same_pages(sim: &Sim, st: &Store, expected: &BTreeMap<PageId, Vec<u8>>, what: &str) {
    for (&page, bytes) in expected {
        let st = st.clone();
        let found = sim.run(async move { st.pool().fetch(page, Access::Random).await.map(|pin| pin.read().to_vec()) });
        let found = found.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(found[4..] == bytes[4..], "{what}: page {page} differs");
    }
}

/// Whatever the pool, the budget, the state of the disk, before the opening ends or on demand: the pages are those that
/// the log makes in its order.
#[test]
fn redo_by_page_makes_what_redo_in_log_order_makes() {
    let mut waiting = 0;
    for seed in 0..96 {
        let (pool, memory) =
            ([16, 24, 64, 400][seed as usize % 4], [1 << 10, 6 << 10, 64 << 10, 1 << 20][seed as usize / 4 % 4]);
        let mut machine = Machine::new(pool, memory);
        machine.config.flash.restart = [Restart::LazyVerification, Restart::Instant][seed as usize / 16 % 2];
        let checkpoint = if seed % 2 == 0 { 150 } else { usize::MAX };
        let pages = machine.work(seed, 60 + seed as usize, 400, checkpoint);
        let (expected, _) = machine.in_log_order(Lsn(u64::MAX));
        let what = format!("seed {seed}, pool {pool}, memory {memory}");
        if seed % 3 == 0 {
            pages.iter().step_by(7).for_each(|&no| machine.spoil(seed, no));
        }
        let (sim, st, report) = machine.open(seed, Upto::End);
        assert!(report.pages > 0 && report.pages <= expected.len() as u64, "{what}: {report:?}");
        waiting += report.pages_waiting;
        same_pages(&sim, &st, &expected, &what);
        // Killed again at once: what lay in memory alone is repeated.
        drop(st);
        sim.crash();
        let (sim, st, _) = machine.open(seed + 1, Upto::End);
        same_pages(&sim, &st, &expected, &what);
    }
    assert!(waiting > 500, "{waiting} pages were redone on demand");
}

/// An opening reads the log and hardly a page; a page is redone when it is wanted, and all of them in the background.
/// Until then the redo LSN stays, and a crash repeats everything.
#[test]
fn pages_are_redone_on_demand() {
    let mut machine = Machine::new(400, 1 << 20);
    let pages = machine.work(5, 300, 2000, 1);
    let (expected, _) = machine.in_log_order(Lsn(u64::MAX));
    machine.config.flash.restart = Restart::Instant;
    let before = machine.data.stats();
    let (sim, st, report) = machine.open(6, Upto::End);
    let read = machine.data.stats().reads - before.reads;
    assert!(report.pages_waiting >= pages.len() as u64 && read < 5, "{read} reads for the opening: {report:?}");
    let redo = st.log().redo_lsn();
    let (one, bytes) = expected.last_key_value().expect("there are pages");
    same_pages(&sim, &st, &BTreeMap::from([(*one, bytes.clone())]), "the page that is wanted");
    assert_eq!(st.log().redo_lsn(), redo);
    let left = st.clone();
    sim.run(async move { left.checkpoint().await }).expect("it waits for the rest");
    assert!(st.log().redo_lsn() > redo && st.pages_waiting() == 0);
    same_pages(&sim, &st, &expected, "all pages");
    drop(st);
    sim.crash();
    let (sim, st, report) = machine.open(7, Upto::End);
    assert_eq!(report.pages_waiting, 0, "everything was home: {report:?}");
    same_pages(&sim, &st, &expected, "after the checkpoint");
}

/// A stop in the middle of the log is found before a page is touched.
#[test]
fn redo_by_page_stops_where_it_is_told() {
    for seed in 0..12 {
        let machine = Machine::new(400, [1 << 10, 64 << 10][seed as usize % 2]);
        machine.work(seed, 40, 300, usize::MAX);
        let (_, ends) = machine.in_log_order(Lsn(u64::MAX));
        let upto = ends[ends.len() / 2 + seed as usize * 7];
        // Nothing was written home since the checkpoint that ended the creation, so every stop behind that can be.
        let (expected, _) = machine.in_log_order(upto);
        let (sim, st, report) = machine.open(seed, Upto::Lsn(upto));
        assert!(report.stopped_short && report.redo_to == upto, "{report:?}");
        same_pages(&sim, &st, &expected, &format!("seed {seed}"));
    }
}

/// Changes in random order of pages, very many of one page: redo in the log's order read each page again and again.
#[test]
fn f11_redo_reads_and_writes_each_page_once_and_in_long_runs() {
    // All that is changed is in memory alone; the pool that recovers holds a tenth of it.
    let mut machine = Machine::new(4000, 64 << 10);
    let pages = machine.work(7, 1200, 6000, 1);
    machine.config.pool_bytes = 128 * PAGE;
    let (before, log_before) = (machine.data.stats(), machine.log.stats());
    let (_sim, st, report) = machine.open(8, Upto::End);
    let (after, log_after) = (machine.data.stats(), machine.log.stats());
    assert!(report.pages > 1000 && report.pages_redone > 5000, "{report:?}");
    let read = (after.read_bytes - before.read_bytes) / PAGE as u64;
    // All of the pages with what lies between them; of those with many changes a few twice.
    assert!(read < pages.len() as u64 * 5 / 4, "{read} pages read for {}", report.pages);
    let reads = after.reads - before.reads;
    assert!(reads < report.pages / 8, "{reads} requests for {} pages", report.pages);
    let written = (after.write_bytes - before.write_bytes) / PAGE as u64;
    assert!(written < pages.len() as u64 * 5 / 4, "{written} pages written for {}", report.pages);
    // The log is read as often as its changes, and what it costs to keep them, exceed the memory for them.
    let log_read = log_after.read_bytes - log_before.read_bytes;
    let readings = 2 * report.bytes.div_ceil(64 << 10);
    assert!(log_read < readings * (report.bytes + (1 << 20)), "{log_read} bytes read of {} bytes of log", report.bytes);
    drop(st);
}

/// While all pages fit into the pool the log is read once, however much of it there is.
#[test]
fn redo_of_pages_that_fit_reads_the_log_once() {
    let machine = Machine::new(1000, 8 << 10);
    machine.work(11, 200, 5000, 1);
    let (expected, _) = machine.in_log_order(Lsn(u64::MAX));
    let (before, data_before) = (machine.log.stats().read_bytes, machine.data.stats());
    let (sim, st, report) = machine.open(12, Upto::End);
    let read = machine.log.stats().read_bytes - before;
    assert!(report.bytes > 50 * (8 << 10) && read < report.bytes + (2 << 20), "{read} bytes read, {report:?}");
    let data = machine.data.stats();
    assert!(data.read_bytes - data_before.read_bytes < 250 * PAGE as u64, "each page once");
    assert!(data.writes - data_before.writes <= 2, "and none is written yet: it is the device's identity");
    same_pages(&sim, &st, &expected, "in the pool");
}

/// Changes for gathering: page, start, end.
fn gather_all(budget: usize, changes: &[(PageId, Lsn, Lsn)]) -> (Vec<(PageId, Vec<Lsn>)>, usize) {
    let mut found: Vec<(PageId, Vec<Lsn>)> = Vec::new();
    let mut early: BTreeMap<PageId, Vec<Lsn>> = BTreeMap::new();
    let (mut from, mut readings) = (None, 0);
    let mut ops = Vec::new();
    PageOp::Put { slot: 0, cell: &[1; 90] }.encode(&mut ops);
    let ends = |changes: &Changes| changes.iter().map(|c| c.end).collect::<Vec<_>>();
    loop {
        let mut gathered = Gathered::new(budget, from);
        readings += 1;
        for (i, &(page, start, end)) in changes.iter().enumerate() {
            if !gathered.wants(page) {
                continue;
            }
            let change = Change { prev: start, end, ops: &ops };
            match gathered.push(page, start, &change) {
                Pushed::Fits => {}
                Pushed::Full => gathered.let_go(i as f64 / changes.len() as f64),
                Pushed::Hot => {
                    early.entry(page).or_default().extend(ends(&gathered.take(page).expect("it was just pushed")));
                }
            }
            assert!(gathered.used() <= budget + budget / 8, "{} bytes in {budget}", gathered.used());
        }
        from = gathered.left();
        for (page, changes) in gathered.take_all() {
            let mut all = early.remove(&page).unwrap_or_default();
            all.extend(ends(&changes));
            found.push((page, all));
        }
        if from.is_none() {
            found.extend(early);
            return (found, readings);
        }
    }
}

/// Each change once and in order, within the budget, in about as many readings as there are budgets of changes.
#[test]
fn changes_are_gathered_within_a_budget() {
    let sim = Sim::new(4, 1);
    let env = sim.env();
    let mut changes = Vec::new();
    let mut expected: BTreeMap<PageId, Vec<Lsn>> = BTreeMap::new();
    for i in 0..20_000u64 {
        let no = if i % 5 == 0 { 3 } else { (env.random_u64() % 900) as u32 };
        let (page, start, end) = (PageId::new(DATA, no), Lsn(i * 200), Lsn(i * 200 + 150));
        changes.push((page, start, end));
        expected.entry(page).or_default().push(end);
    }
    for budget in [200 << 10, 1 << 20, 64 << 20] {
        let (mut found, readings) = gather_all(budget, &changes);
        found.sort_unstable_by_key(|(page, _)| *page);
        // A page whose changes were given out early may have them given out again, from the first, in a later reading.
        for ((page, found), (known, expected)) in found.iter().zip(&expected) {
            assert_eq!(page, known);
            assert!(found.ends_with(expected), "{page}: each change, in order, at the last");
        }
        assert_eq!(found.len(), expected.len());
        let bytes = changes.len() * 120;
        assert!(readings <= 3 * bytes / budget + 2, "{readings} readings of {bytes} bytes within {budget}");
    }
}
