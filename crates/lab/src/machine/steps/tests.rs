use super::*;
use crate::block_cache::Mode;
use crate::testing;
use crate::tpcc::TpcC;
use terrace_device::emulate::Profile;
use terrace_storage::FlashConfig;
use terrace_storage::config::WritePolicy;

const SMALL: TpcC = TpcC { warehouses: 8, items: 100, customers: 30, terminals: 4 };
const RUN: Run = Run { terminals: 4, duration: Duration::from_secs(4), window: Duration::from_secs(1) };
const TIER: u64 = 4 << 20;

fn machine() -> Machine {
    let mut machine = testing::machine("hdd-8x7200", "nvme-datacentre", 5);
    machine.flash = Profile::named("iodrive-160").ok();
    machine.storage.flash = FlashConfig { size: TIER, write: WritePolicy::LazyCleaning, ..FlashConfig::default() };
    machine
}

fn caches() -> [Option<BlockCacheConfig>; 3] {
    let cache = |mode| Some(BlockCacheConfig { bucket: 64 << 10, ..BlockCacheConfig::new(mode, TIER) });
    [None, cache(Mode::WriteThrough), cache(Mode::WriteBack)]
}

fn lasting(samples: &[Sample]) -> u64 {
    samples.iter().map(|sample| sample.lasting).sum()
}

/// With a tier and with block caches: what terminals were told to be done is there after a crash, whatever the power
/// took; the workload's conditions hold; the flash is the one that was left.
#[test]
fn a_crash_loses_no_transaction_that_was_done() {
    let (machine, workload) = (machine(), Arc::new(SMALL));
    let loaded = machine.load(&workload).unwrap();
    for cache in caches() {
        for choice in [Choice::None, Choice::Random(3)] {
            let mut rig = Rig::new(&machine, cache, &loaded);
            let running = rig.start().unwrap();
            let work = running.work(&workload, RUN, &|_| {});
            let done = lasting(&work.samples());
            let stats = running.cache_stats();
            running.crash(choice);
            assert!(done > 50, "{cache:?}: {done} new orders");
            assert!(rig.flash().size() > 0, "the image is kept");

            let running = rig.start().unwrap();
            assert!(running.opening > Duration::ZERO && running.report.storage.batches > 0, "{:?}", running.report);
            let found = running.ask(|database| async move { SMALL.lasting(&database).await }).unwrap();
            assert!((done..=done + 4).contains(&found), "{cache:?}: {done} were done, {found} are there");
            if let (Some(before), Some(after)) = (stats, running.cache_stats()) {
                assert!(after.used * 10 > before.used * 9, "warm: {before:?}, {after:?}");
            }
            let work = running.work(&workload, RUN, &|_| {});
            running.settle(work);
            assert_eq!(running.check(&workload).unwrap(), Vec::<String>::new());
        }
    }
}

/// Cases share what the first of them loads, whichever that is: it is what each of them would have loaded.
#[test]
fn what_is_loaded_does_not_depend_on_the_machine() {
    let workload = Arc::new(SMALL);
    let load = |change: &dyn Fn(&mut Machine)| {
        let mut machine = machine();
        change(&mut machine);
        machine.load(&workload).unwrap()
    };
    let loaded = load(&|_| {});
    let changes: [&dyn Fn(&mut Machine); 5] = [
        &|machine| machine.cores = 1,
        &|machine| machine.seed = 99,
        &|machine| machine.storage.pool_bytes = 1 << 30,
        &|machine| {
            (machine.storage.redo_bound, machine.storage.log_retention) = (64 << 20, 64 << 20);
            machine.storage.checkpoint_interval = Duration::from_millis(100);
        },
        &|machine| (machine.storage.sharp_checkpoints, machine.whole_pages) = (true, true),
    ];
    for (number, change) in changes.iter().enumerate() {
        assert_eq!(load(change).differing(&loaded), [0; 0], "change {number}");
    }
}

#[test]
fn a_shutdown_takes_its_time_and_leaves_nothing_to_repeat() {
    let (machine, workload) = (machine(), Arc::new(SMALL));
    let loaded = machine.load(&workload).unwrap();
    for cache in caches() {
        let mut rig = Rig::new(&machine, cache, &loaded);
        let running = rig.start().unwrap();
        let work = running.work(&workload, RUN, &|_| {});
        let done = lasting(&running.settle(work));
        let stats = running.cache_stats();
        assert!(running.shut_down().unwrap() > Duration::ZERO, "dirty pages go home");
        let flash = rig.flash().clone();
        assert!(flash.size() > 0);

        let running = rig.start().unwrap();
        assert!(running.report.storage.clean_shutdown && running.report.storage.batches == 0, "{:?}", running.report);
        if let (Some(before), Some(after)) = (stats, running.cache_stats()) {
            // Closing writes pages again, to other slots.
            assert!(after.used * 4 > before.used * 3, "warm: {before:?}, {after:?}");
        }
        let found = running.ask(|database| async move { SMALL.lasting(&database).await }).unwrap();
        assert_eq!(found, done, "{cache:?}");
        assert_eq!(running.check(&workload).unwrap(), Vec::<String>::new());
    }
}

#[test]
fn starts_differ_and_one_seed_repeats_them() {
    let (machine, workload) = (machine(), Arc::new(SMALL));
    let loaded = machine.load(&workload).unwrap();
    let run = Run { duration: Duration::from_secs(2), ..RUN };
    let lives = || {
        let mut rig = Rig::new(&machine, caches()[2], &loaded);
        let mut lives = vec![];
        for _ in 0..2 {
            let running = rig.start().unwrap();
            let work = running.work(&workload, run, &|_| {});
            lives.push(format!("{:?} {:?} {:?}", running.opening, work.samples(), work.traffic));
            running.crash(Choice::Random(1));
        }
        lives
    };
    let first = lives();
    assert_ne!(first[0], first[1]);
    assert_eq!(first, lives());
}

#[test]
fn ramp_up_ends_where_a_stretch_is_fast_enough() {
    let samples =
        |all: &[u64]| all.iter().map(|&transactions| Sample { transactions, ..Sample::default() }).collect::<Vec<_>>();
    let half = Duration::from_millis(500);
    let slow = samples(&[10, 20, 30, 44, 46, 50, 50]);
    assert_eq!(ramp_up(&slow, half, 100.0, 0.9, 10.0), Some(2.0), "a window is enough");
    assert_eq!(ramp_up(&slow, half, 100.0, 0.9, 100.0), Some(1.5), "two are");
    assert_eq!(ramp_up(&slow, half, 200.0, 0.9, 10.0), None);
    assert_eq!(ramp_up(&samples(&[50, 50]), half, 100.0, 0.9, 10.0), Some(0.0));
}
