//! The store as a whole: crashes at every kind of point, crashes during recovery, closing, foreign files, full devices,
//! repair.
//!
//! The workload keeps a counter on each of a few pages; a mini-transaction adds one to some of them. The state after
//! every mini-transaction is remembered, so that a restart must show one of them, no older than the last that was
//! acknowledged.

use super::*;
use crate::config::Safeguard;
use crate::flash::tests::home as tier;
use crate::mtr::LogEvent;
use crate::page::op::PageOp;
use crate::page::{PageKind, slotted};
use crate::pool::Access;
use crate::testing::{Clock, is_missed, safeguards};
use std::cell::Cell;
use std::time::Duration;
use terrace_device::fault::{Choice, Fault, FaultDevice, Operation, Recorder, Rule};
use terrace_device::latency::{self, Cost, Latency};
use terrace_device::{Guarantees, Image, Purpose};
use terrace_env::Sim;

const OWNER: ObjectId = ObjectId(50);
const PAGES: usize = 24;

thread_local! {
    /// What this thread's devices write at once, and pages in its pools.
    static ATOMIC: Cell<usize> = const { Cell::new(512) };
    static FRAMES: Cell<usize> = const { Cell::new(64) };
    /// How this thread's stores restart.
    static RESTART: Cell<Restart> = const { Cell::new(Restart::Instant) };
}

/// Runs something with another shape of devices, pools or restarts.
fn with<V: Copy>(cell: &'static std::thread::LocalKey<Cell<V>>, value: V, run: impl FnOnce()) {
    struct Back<V: Copy + 'static>(&'static std::thread::LocalKey<Cell<V>>, V);
    impl<V: Copy> Drop for Back<V> {
        fn drop(&mut self) {
            self.0.set(self.1);
        }
    }
    let _back = Back(cell, cell.replace(value));
    run();
}

fn config() -> StorageConfig {
    StorageConfig {
        page_size: 4096,
        pool_bytes: FRAMES.get() * 4096,
        segment_size: 64 << 10,
        log_buffer: 128 << 10,
        redo_bound: 512 << 10,
        // Where no copies are kept of what is written, lost pages are made from their beginnings: all of a history.
        log_retention: if ATOMIC.get() < 4096 { 512 << 10 } else { 1 << 20 },
        write_group: 8,
        writer_interval: Duration::from_millis(5),
        checkpoint_interval: Duration::from_millis(20),
        safeguards: safeguards(),
        flash: FlashConfig { restart: RESTART.get(), ..FlashConfig::default() },
        ..StorageConfig::default()
    }
}

const NAMES: [&str; 5] = ["control", "log", "double-write", "data", "undo"];

fn blank(keep: bool) -> (Arc<Recorder>, Vec<Arc<FaultDevice>>) {
    let recorder = Recorder::new(keep);
    let guarantees = Guarantees { atomic_write: ATOMIC.get(), capacity: 64 << 20 };
    let devices = NAMES.iter().map(|name| Arc::new(recorder.device(name, guarantees.clone(), Image::new()))).collect();
    (recorder, devices)
}

fn restart(recorder: &Recorder, choice: Choice, keep: bool) -> (Arc<Recorder>, Vec<Arc<FaultDevice>>) {
    let (recorder, devices) = recorder.restart(choice, keep);
    (recorder, devices.into_iter().map(Arc::new).collect())
}

fn from_images(images: Vec<Image>) -> (Arc<Recorder>, Vec<Arc<FaultDevice>>) {
    let recorder = Recorder::new(false);
    let guarantees = Guarantees { atomic_write: ATOMIC.get(), capacity: 64 << 20 };
    let devices =
        NAMES.iter().zip(images).map(|(name, image)| Arc::new(recorder.device(name, guarantees.clone(), image)));
    let devices = devices.collect();
    (recorder, devices)
}

fn set(devices: &[Arc<FaultDevice>]) -> DeviceSet {
    let [control, log, double_write, data, undo] = std::array::from_fn(|i| devices[i].clone() as DeviceRef);
    DeviceSet { control, log, double_write, data, undo, flash: None }
}

type State = Vec<u64>;

/// What was written: the counters' pages, the state after each mini-transaction, how many were acknowledged and when.
#[derive(Clone, Default)]
struct Model {
    pages: Vec<u32>,
    states: Vec<State>,
    acked: Vec<(u64, usize)>,
}

async fn add_pages(st: &Store, model: &mut Model) -> Result<()> {
    for _ in 0..PAGES {
        let room = st.space(DATA).reserve_page(st, OWNER).await?;
        let pin = room.pin.clone();
        let permit = st.reserve(2000).await?;
        let mut mtr = st.mtr(permit);
        let at = mtr.latch(&pin);
        mtr.apply(at, PageOp::Format { kind: PageKind::Heap, owner: OWNER, special: 0 });
        mtr.apply(at, PageOp::Put { slot: 0, cell: &0u64.to_le_bytes() });
        st.space(DATA).use_page(&mut mtr, room);
        mtr.commit();
        model.pages.push(pin.id().no);
    }
    st.log().flush_to(st.log().end()).await?;
    model.states.push(vec![0; PAGES]);
    Ok(())
}

fn counter(page: &[u8]) -> u64 {
    u64::from_le_bytes(slotted::cell(page, 0).expect("the counter")[..8].try_into().expect("eight bytes"))
}

/// Adds one to some counters, with a filler that makes the log grow.
async fn step(st: &Store, model: &mut Model, random: u64, filler: usize) -> Result<Lsn> {
    let mut state = model.states.last().expect("begun").clone();
    let first = (random % PAGES as u64) as usize;
    let count = 1 + (random >> 8) as usize % 3;
    let chosen: Vec<usize> = (0..count).map(|i| (first + i * 5) % PAGES).collect();
    let mut pins = Vec::new();
    for &i in &chosen {
        pins.push(st.pool().fetch(PageId::new(DATA, model.pages[i]), Access::Random).await?);
    }
    let permit = st.reserve(4000 * count).await?;
    let mut mtr = st.mtr(permit);
    for (&i, pin) in chosen.iter().zip(&pins) {
        let at = mtr.latch(pin);
        assert_eq!(counter(mtr.page(at)), state[i], "the counter of page {} in memory", pin.id());
        state[i] += 1;
        mtr.apply(at, PageOp::Patch { slot: 0, offset: 0, bytes: &state[i].to_le_bytes() });
        mtr.apply(at, PageOp::Put { slot: 1, cell: &vec![state[i] as u8; filler] });
    }
    mtr.event(LogEvent::Commit { txn: TxnId(model.states.len() as u64), unix_micros: 0 });
    let lsn = mtr.commit();
    model.states.push(state);
    Ok(lsn)
}

async fn read_state(st: &Store, pages: &[u32]) -> Result<State> {
    let mut state = Vec::new();
    for &no in pages {
        let pin = st.pool().fetch(PageId::new(DATA, no), Access::Random).await?;
        state.push(counter(&pin.read()));
    }
    Ok(state)
}

/// Runs until done or until the power goes; returns the model up to there.
async fn work(st: Store, recorder: Arc<Recorder>, mut model: Model, steps: usize) -> Model {
    for i in 0..steps {
        let random = st.env().random_u64();
        let Ok(lsn) = step(&st, &mut model, random, 40 + (random >> 16) as usize % 1500).await else { break };
        if i % 5 == 0 {
            if st.log().flush_to(lsn).await.is_err() {
                break;
            }
            model.acked.push((recorder.events(), model.states.len() - 1));
        }
        if i % 4 == 0 {
            st.env().sleep(Duration::from_millis(3)).await;
        }
        if i % 9 == 0 && st.checkpoint().await.is_err() {
            break;
        }
    }
    model
}

/// Opens, checks, and forgets what did not survive.
async fn check(st: &Store, model: &mut Model, acked: usize) {
    let state = read_state(st, &model.pages).await.expect("every page is readable");
    let survived = model.states.iter().rposition(|s| *s == state);
    let survived = survived.unwrap_or_else(|| panic!("a state that never was: {state:?}"));
    assert!(survived >= acked, "{acked} mini-transactions were acknowledged, {survived} survived");
    model.states.truncate(survived + 1);
}

fn created(seed: u64, keep: bool) -> (Sim, Arc<Recorder>, Vec<Arc<FaultDevice>>, Store, Model) {
    let sim = Sim::new(seed, 2);
    let env = sim.env();
    let (recorder, devices) = blank(keep);
    let set = set(&devices);
    let (st, model) = sim.run(async move {
        let st = Store::create(env, set, config()).await.expect("creates");
        let mut model = Model::default();
        add_pages(&st, &mut model).await.expect("adds pages");
        (st, model)
    });
    (sim, recorder, devices, st, model)
}

fn open(sim: &Sim, devices: &[Arc<FaultDevice>]) -> Result<(Store, RecoveryReport)> {
    let (env, set) = (sim.env(), set(devices));
    sim.run(async move { Store::open(env, set, config()).await })
}

/// Reads a page that is not in memory, which makes it again from the log where it fails its checks, and writes it home.
async fn repair_page(st: &Store, page: PageId) -> Result<()> {
    let _pin = st.0.pool.fetch(page, Access::Random).await?;
    st.0.pool.write_page(page).await?;
    st.0.home.sync().await
}

#[test]
fn a_closed_store_opens_clean_without_redo() {
    let (sim, recorder, devices, st, model) = created(1, false);
    let model = sim.run(async move {
        let model = work(st.clone(), recorder, model, 200).await;
        st.close().await.expect("closes");
        model
    });
    let (st, report) = open(&sim, &devices).expect("opens");
    assert!(report.clean_shutdown && report.batches == 0 && report.torn_pages_restored == 0, "{report:?}");
    sim.run(async move {
        let mut model = model;
        let last = model.states.len() - 1;
        check(&st, &mut model, last).await;
        assert!(st.next_object().0 >= FIRST_OBJECT);
        st.close().await.expect("closes");
    });
}

#[test]
fn a_killed_store_repeats_its_log() {
    let (sim, recorder, _, st, model) = created(2, false);
    let model = sim.run({
        let recorder = recorder.clone();
        async move {
            let mut model = work(st.clone(), recorder, model, 60).await;
            st.log().flush_to(st.log().end()).await.expect("flushes");
            model.acked.push((0, model.states.len() - 1));
            model
        }
    });
    recorder.power_off();
    sim.crash();
    // Everything written was synced or is still in the cache: a killed process, then a killed machine.
    for choice in [Choice::All, Choice::None] {
        let (_, devices) = restart(&recorder, choice, false);
        let (st, report) = open(&sim, &devices).expect("opens");
        assert!(!report.clean_shutdown && report.redo_to > report.redo_from && report.batches > 0, "{report:?}");
        let mut model = model.clone();
        sim.run(async move {
            let last = model.states.len() - 1;
            check(&st, &mut model, last).await;
        });
        sim.crash();
    }
}

/// One history, cut at many points; recovery itself is cut at a random event and made again.
fn crash_history(seed: u64, stride: usize) {
    let (sim, recorder, _, st, model) = created(seed, true);
    let begun = recorder.events();
    let model = sim.run({
        let recorder = recorder.clone();
        async move { work(st, recorder, model, 150).await }
    });
    sim.crash();
    let history = recorder.history().expect("kept");
    let mut cursor = history.cursor();
    while cursor.advance() {
        let at = cursor.position() as u64;
        if at < begun || !(at as usize).is_multiple_of(stride) {
            continue;
        }
        let acked = model.acked.iter().filter(|(events, _)| *events <= at).map(|(_, n)| *n).max().unwrap_or(0);
        let choice = match at % 5 {
            0 => Choice::None,
            1 => Choice::OnlyLast,
            2 => Choice::Torn(1 + (at / 5) as usize % 12),
            // Not where one sector is written over again and again, which has to be atomic.
            3 if cursor.last_write_at().is_some_and(|(device, at)| device != 1 && at > 0) => {
                Choice::Unreadable((at / 5) as usize % 12)
            }
            _ => Choice::Random(seed ^ at),
        };
        recover_twice(seed ^ at, from_images(cursor.contents(choice)), model.clone(), acked);
    }
}

fn recover_twice(seed: u64, mut disks: (Arc<Recorder>, Vec<Arc<FaultDevice>>), mut model: Model, mut acked: usize) {
    let sim = Sim::new(seed, 2);
    model.acked.clear();
    // The first recovery is cut somewhere, and whatever it left is recovered again; then work goes on, is cut, and
    // recovered.
    for round in 0..3 {
        let (recorder, devices) = &disks;
        if round == 0 {
            recorder.power_off_at(1 + seed % 60);
        }
        let opened = open(&sim, devices);
        if let Ok((st, report)) = opened {
            assert_eq!(
                report.pages_rebuilt, 0,
                "the double-write area restores what the crash tore; nothing is left to rebuild"
            );
            let recorder = recorder.clone();
            model = sim.run(async move {
                if recorder.is_off() {
                    return model;
                }
                if round == 0 {
                    return model; // The cut may come at any moment: nothing is asserted on a dying machine.
                }
                check(&st, &mut model, acked).await;
                model.acked.clear();
                work(st, recorder, model, 20).await
            });
            acked = model.acked.last().map_or(acked, |(_, n)| *n).min(model.states.len() - 1);
        } else if round > 0 {
            panic!("round {round}: {}", opened.err().expect("failed"));
        }
        recorder.power_off();
        sim.crash();
        disks = restart(recorder, Choice::Random(seed + round), false);
    }
}

#[test]
fn every_crash_leaves_a_state_that_was_acknowledged_or_later() {
    for seed in 0..6 {
        crash_history(100 + seed, 13);
    }
}

/// Which test of this room notices that a safeguard is gone. (`scripts/safeguards` prints what was noticed.)
#[test]
fn every_safeguard_is_missed() {
    let crashes = || (100..106).for_each(|seed| crash_history(seed, 13));
    let without: [(Safeguard, fn()); 24] = [
        (Safeguard::DoubleWrite, crashes),
        (Safeguard::CommitSync, crashes),
        (Safeguard::LogBeforeData, crashes),
        (Safeguard::SyncedTogether, crate::home::syncs::tests::a_sync_waits_for_what_becomes_of_the_others),
        (Safeguard::LogChain, crate::log::tests::a_crash_leaves_a_prefix_with_all_that_was_acknowledged),
        (Safeguard::DurableBefore, a_hole_in_the_log_behind_which_it_was_durable_is_refused),
        (Safeguard::Voiding, tier::a_page_that_changed_is_not_read_from_its_old_frame),
        (Safeguard::Newer, tier::what_the_disk_gave_before_a_newer_version_came_home_is_not_let_in),
        (Safeguard::FrameTag, tier::an_older_version_in_a_frame_is_not_taken_for_the_page),
        (Safeguard::VoidAtHome, tier::an_older_version_that_the_cleaner_read_does_not_go_home),
        (Safeguard::Rising, tier::a_reclsn_that_rises_during_a_checkpoint_counts),
        (Safeguard::ListedAbove, tier::what_is_listed_holds_for_less_while_pages_lack_changes),
        (Safeguard::DyingFrames, tier::a_page_on_its_way_to_a_device_that_dies_is_not_there),
        (Safeguard::HardVoids, || tier::a_write_waits_for_the_records_of_older_frames(Restart::MemoryMapped)),
        (Safeguard::HardVoids, || tier::a_write_waits_for_the_records_of_older_frames(Restart::LogBased)),
        (Safeguard::OthersSyncs, tier::a_sync_of_frames_that_fails_ends_the_series),
        (Safeguard::Stamp, tier::a_stamp_speaks_for_its_own_records),
        (Safeguard::LogSync, second_life::s1_pages_do_not_overtake_what_a_second_life_believed),
        (Safeguard::Waiting, redone::the_redo_lsn_waits_for_pages_that_wait),
        (Safeguard::LogTail, || second_life::lives(1)),
        (Safeguard::VisitedPages, second_life::s1_a_failed_data_sync_where_pages_are_written_at_once),
        (Safeguard::PageChain, redone::a_lost_write_is_noticed_and_repaired_or_refused),
        (Safeguard::Settled, settled::the_end_of_a_long_log_is_read_and_no_more),
        (Safeguard::PageChecks, a_rotten_page_is_rebuilt_from_the_log),
    ];
    let mut unnoticed = Vec::new();
    for (safeguard, test) in without {
        match is_missed(safeguard, test) {
            true => println!("without {safeguard:?}: noticed by storage"),
            false => unnoticed.push(safeguard),
        }
    }
    assert!(unnoticed.is_empty(), "tests pass without: {unnoticed:?}");
}

#[test]
fn a_crash_during_creation_is_refused_and_may_be_made_again() {
    let (sim, recorder, ..) = created(3, true);
    sim.crash();
    let history = recorder.history().expect("kept");
    let mut cursor = history.cursor();
    let (mut refused, mut opened) = (0, 0);
    while cursor.advance() {
        if cursor.position() % 5 != 0 {
            continue;
        }
        let choice = if cursor.position() % 2 == 0 { Choice::None } else { Choice::Random(cursor.position() as u64) };
        let (_, devices) = from_images(cursor.contents(choice));
        match open(&sim, &devices) {
            Ok(_) => opened += 1,
            Err(StorageError::Foreign { file, problem }) => {
                refused += 1;
                assert!(file == "control" && problem.contains("create"), "{file}: {problem}");
                let (env, set) = (sim.env(), set(&devices));
                sim.run(async move { Store::create(env, set, config()).await.expect("creates over it").close().await })
                    .expect("closes");
                open(&sim, &devices).expect("the new one opens");
            }
            Err(e) => panic!("event {}: {e}", cursor.position()),
        }
        sim.crash();
    }
    assert!(refused > 5 && opened > 0, "refused {refused}, opened {opened}");
}

#[test]
fn a_mixed_set_of_files_is_refused() {
    let (sim, _, devices, st, _) = created(4, false);
    sim.run(async move { st.close().await }).expect("closes");
    let (other_sim, _, others, st, _) = created(5, false);
    other_sim.run(async move { st.close().await }).expect("closes");
    for (i, name) in NAMES.iter().enumerate().skip(1) {
        let mut mixed = devices.clone();
        mixed[i] = others[i].clone();
        match open(&sim, &mixed) {
            Err(StorageError::Foreign { file, problem }) => {
                assert_eq!(file, *name);
                assert!(problem.contains("belongs to database"), "{problem}");
            }
            Err(e) => panic!("{e}"),
            Ok(_) => panic!("opened with a foreign {name}"),
        }
    }
    let old: Vec<Image> = devices.iter().map(|d| d.visible()).collect();
    for _ in 0..3 {
        let (st, _) = open(&sim, &devices).expect("opens");
        sim.run(async move { st.close().await }).expect("closes");
    }
    for i in 1..5 {
        let images =
            devices.iter().enumerate().map(|(n, d)| if n == i { old[i].clone() } else { d.visible() }).collect();
        let (_, devices) = from_images(images);
        assert!(
            matches!(open(&sim, &devices), Err(StorageError::Foreign { file, .. }) if file == NAMES[i]),
            "{}",
            NAMES[i]
        );
    }
}

#[test]
fn a_rotten_page_is_rebuilt_from_the_log() {
    // With most seeds the log has lost the beginning of one of the two pages.
    let (sim, recorder, devices, st, model) = created(7, false);
    let model = sim.run(async move {
        let model = work(st.clone(), recorder, model, 100).await;
        st.close().await.expect("closes");
        model
    });
    let pages = model.pages.clone();
    for no in [3, 7] {
        devices[3].flip(PAGES_AT + model.pages[no] as u64 * 4096 + 2000, 8);
    }
    let (st, _) = open(&sim, &devices).expect("opens");
    sim.run(async move {
        // Whoever asks, and however many: the page is made again once.
        let page = PageId::new(DATA, model.pages[3]);
        let pins = futures::future::join_all((0..8).map(|_| st.pool().fetch(page, Access::Random))).await;
        assert!(pins.iter().all(Result::is_ok), "{pins:?}");
        assert_eq!(st.pool().stats().repaired, 1);
        repair_page(&st, PageId::new(DATA, model.pages[7])).await.expect("its whole history is in the log");
        assert_eq!(st.pool().stats().repaired, 2);
        let state = read_state(&st, &model.pages).await.expect("every page is readable");
        assert_eq!(Some(&state), model.states.last());
        st.close().await.expect("closes");
    });
    // They are good at home.
    let (st, _) = open(&sim, &devices).expect("opens");
    sim.run(async move {
        read_state(&st, &pages).await.expect("every page is readable");
        assert_eq!(st.pool().stats().repaired, 0);
    });
}

/// A page whose beginning the log has lost, and one that the log, itself damaged, cannot make again: named, not
/// returned.
#[test]
fn a_rotten_page_that_the_log_cannot_make_again_is_named() {
    let (sim, recorder, devices, st, model) = created(13, false);
    let (model, log_end) = sim.run(async move {
        let mut model = work(st.clone(), recorder, model, 100).await;
        let lsn = step(&st, &mut model, 0, 900).await.expect("works");
        st.close().await.expect("closes");
        (model, lsn)
    });
    let rotten = PageId::new(DATA, model.pages[0]);
    // After opening, which restores what the double-write area has a copy of.
    let (st, _) = open(&sim, &devices).expect("opens");
    devices[3].flip(PAGES_AT + rotten.no as u64 * 4096 + 2000, 8);
    // The last change of the page, in the log.
    devices[1].flip(4096 + log_end.0 - 100, 1);
    let found = sim.run({
        let st = st.clone();
        async move { st.pool().fetch(rotten, Access::Random).await.map(drop) }
    });
    let message = found.expect_err("no page is better than an old one").to_string();
    assert!(message.contains(&format!("page {rotten} of tablespace data is damaged: checksum")), "{message}");
    assert!(message.contains("restore the database from a backup"), "{message}");

    let (sim, recorder, devices, st, model) = created(14, false);
    let model = sim.run(async move {
        let model = work(st.clone(), recorder, model, 1500).await;
        st.close().await.expect("closes");
        model
    });
    let rotten = PageId::new(DATA, model.pages[0]);
    let (st, _) = open(&sim, &devices).expect("opens");
    devices[3].flip(PAGES_AT + rotten.no as u64 * 4096 + 2000, 8);
    sim.run(async move {
        let found = st.pool().fetch(rotten, Access::Random).await.map(drop);
        assert!(matches!(found, Err(StorageError::BadPage { page, .. }) if page == rotten), "{found:?}");
        assert!(repair_page(&st, rotten).await.is_err());
        let others = read_state(&st, &model.pages[1..]).await.expect("the others are good");
        assert_eq!(others, model.states.last().expect("begun")[1..]);
    });
}

/// The pages that opening itself reads: file header and map of the tablespace.
#[test]
fn rotten_maps_do_not_keep_a_store_from_opening() {
    let (sim, recorder, devices, st, mut model) = created(15, false);
    model = sim.run(async move {
        let model = work(st.clone(), recorder, model, 60).await;
        st.close().await.expect("closes");
        model
    });
    // The double-write areas forget them: other pages go home last.
    let (st, _) = open(&sim, &devices).expect("opens");
    model = sim.run(async move {
        for i in 0..40 {
            step(&st, &mut model, i, 300).await.expect("works");
            st.checkpoint().await.expect("writes home");
        }
        st.close().await.expect("closes");
        model
    });
    for no in 0..2 {
        devices[3].flip(PAGES_AT + no * 4096 + 60, 4);
    }
    let (st, _) = open(&sim, &devices).expect("makes them again");
    assert_eq!(st.pool().stats().repaired, 2);
    sim.run(async move {
        let last = model.states.len() - 1;
        check(&st, &mut model, last).await;
        add_pages(&st, &mut Model::default()).await.expect("the map serves");
        st.close().await.expect("closes");
    });
    let (st, _) = open(&sim, &devices).expect("opens");
    assert_eq!(st.pool().stats().repaired, 0, "they are good at home");
}

/// A write that the log's device lost, or put elsewhere, and that was said to be durable: what was committed behind it
/// proves that.
#[test]
fn a_hole_in_the_log_behind_which_it_was_durable_is_refused() {
    for seed in 0..12 {
        let (sim, recorder, devices, st, model) = created(seed, false);
        sim.run({
            let recorder = recorder.clone();
            async move {
                let mut model = work(st.clone(), recorder, model, 5).await;
                st.log().flush_to(st.log().end()).await.expect("flushes");
                let fault =
                    [Fault::Lose, Fault::Misdirect(3 << 12), Fault::Misdirect(-4096)][seed as usize % 3].clone();
                devices[1].inject(Rule { operation: Operation::Write, purpose: None, skip: 0, times: 1, fault });
                for i in 0..3 {
                    let lsn = step(&st, &mut model, 2 << 8 | i, 3000).await.expect("works");
                    st.log().flush_to(lsn).await.expect("flushes");
                }
            }
        });
        sim.crash();
        let (_, devices) = restart(&recorder, Choice::None, false);
        let refused = open(&sim, &devices).map(drop).expect_err("what was acknowledged is gone").to_string();
        assert!(refused.contains("it was durable to") || refused.contains("a page at home"), "seed {seed}: {refused}");
    }
}

#[test]
fn a_failed_log_sync_stops_the_store_and_nothing_is_lost() {
    let (sim, recorder, devices, st, model) = created(9, false);
    let (mut model, acked) = sim.run({
        let devices = devices.clone();
        async move {
            let mut model = work(st.clone(), recorder, model, 30).await;
            st.log().flush_to(st.log().end()).await.expect("flushes");
            let acked = model.states.len() - 1;
            let fault = Fault::Fail(terrace_device::ErrorKind::Io("no".into()));
            devices[1].inject(Rule {
                operation: Operation::Sync,
                purpose: Some(Purpose::Log),
                skip: 0,
                times: 1,
                fault,
            });
            let lsn = step(&st, &mut model, 5, 100).await.expect("changes memory");
            assert!(matches!(st.log().flush_to(lsn).await, Err(StorageError::LogFailed(_))));
            assert!(matches!(st.failure(), Some(StorageError::LogFailed(_))));
            assert!(matches!(st.reserve(100).await.map(drop), Err(StorageError::LogFailed(_))));
            assert!(st.close().await.is_err(), "a failed store does not close cleanly");
            (model, acked)
        }
    });
    sim.crash();
    devices.iter().for_each(|d| d.clear_rules());
    let (st, report) = open(&sim, &devices).expect("opens");
    assert!(!report.clean_shutdown);
    sim.run(async move { check(&st, &mut model, acked).await });
}

#[test]
fn the_redo_bound_is_kept_under_full_load() {
    let (sim, _, _, st, mut model) = created(10, false);
    sim.run(async move {
        let mut most = 0;
        for i in 0..3000u64 {
            let random = st.env().random_u64();
            let lsn = step(&st, &mut model, random, 1200).await.expect("works");
            if i % 8 == 0 {
                st.log().flush_to(lsn).await.expect("flushes");
            }
            most = most.max(st.log().end().0 - st.log().redo_lsn().0);
        }
        let bound = config().redo_bound + (64 << 10);
        assert!(most <= bound, "{most} bytes to redo, the bound is {bound}");
        assert!(st.log().end().0 > 4 * bound, "the load was not enough to tell");
        st.close().await.expect("closes");
    });
}

#[test]
fn a_full_log_device_recovers_with_its_reserve() {
    let sim = Sim::new(11, 2);
    let recorder = Recorder::new(false);
    let devices: Vec<_> = NAMES
        .iter()
        .map(|&name| {
            // The log has room for seven segments.
            let capacity = if name == "log" { 4096 + 7 * (64 << 10) } else { 64 << 20 };
            Arc::new(recorder.device(name, Guarantees { atomic_write: 512, capacity }, Image::new()))
        })
        .collect();
    let (env, devs) = (sim.env(), set(&devices));
    let mut model = sim.run(async move {
        let st = Store::create(env, devs, config()).await.expect("creates");
        let mut model = Model::default();
        add_pages(&st, &mut model).await.expect("adds pages");
        for _ in 0..600 {
            let random = st.env().random_u64();
            step(&st, &mut model, random, 1200).await.expect("checkpoints make room");
        }
        st.log().flush_to(st.log().end()).await.expect("flushes");
        model
    });
    sim.crash();
    // Crash after crash, each opening takes a segment.
    let (mut recorder, mut devices) = restart(&recorder, Choice::None, false);
    for seed in 0..12 {
        let last = model.states.len() - 1;
        let (st, _) = open(&sim, &devices).expect("opens");
        model = sim.run(async move {
            check(&st, &mut model, last).await;
            model
        });
        sim.crash();
        (recorder, devices) = restart(&recorder, Choice::Random(seed), false);
    }
    drop(recorder);
}

mod backlog;
mod damaged_files;
mod redone;
mod second_life;
mod settled;
mod target;
