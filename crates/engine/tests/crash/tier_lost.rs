//! A dirty flash tier that is not there any more: at a start, while the database works, and where the log cannot be
//! read just then.

use crate::model::{Model, State};
use crate::verify::{go_on, recover, run_clients, set_up, settle, verify};
use crate::workload::Mix;
use crate::world::{DATA, FLASH, LOG, World, with_tier};
use crate::{Replay, many_seeds, seeds};
use std::time::Duration;
use terrace_device::fault::{Choice, Fault, Operation, Rule};
use terrace_device::{Device, ErrorKind, Image, Purpose};
use terrace_engine::Database;
use terrace_storage::config::{Safeguards, WritePolicy};
use terrace_storage::{FlashConfig, FlashState, FlashStats};

/// As many dirty pages as the log's bounds allow.
fn lazy() -> FlashConfig {
    FlashConfig { size: 400 * 4096, write: WritePolicy::LazyCleaning, dirty_fraction: 1.0, ..FlashConfig::default() }
}

fn stats(db: &Database) -> FlashStats {
    db.store().flash().expect("there is a tier")
}

/// A database with dirty pages in its tier, and what must be in it.
fn working(seed: u64) -> (World, Database, Model) {
    let mut world = World::new(seed, None, false);
    world.config.pool_bytes = 24 * 4096;
    world.config.redo_bound = 1 << 20;
    world.config.log_retention = 2 << 20;
    let db = world.create().expect("creation on sound devices");
    let model = Model::new(world.recorder.clone(), &State::new());
    set_up(&world, &db, &model);
    run_clients(&world, &db, &model, 2, Mix { transactions: 40, long: 20, ..Mix::default() }, || false);
    settle(&world, &db).unwrap();
    (world, db, model)
}

/// Pages that are newer in the tier than on the disk are in the log too: whatever lies on the flash device, and whether
/// there is one, a start after a crash or after an orderly stop does not need it.
#[test]
fn a_start_never_needs_the_tier() {
    let mut dirty = 0;
    for seed in seeds() {
        let _replay = Replay(seed);
        let crash = seed % 2 == 0;
        let (mut images, state) = with_tier(lazy(), || {
            let (world, db, model) = working(seed);
            let state = verify(&world, &db, &[model.state_now()]).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            dirty += stats(&db).dirty;
            if crash {
                drop(db);
            } else {
                world.sim.run(db.close()).expect("a clean shutdown");
            }
            (world.crash(if crash { Choice::None } else { Choice::All }), state)
        });
        images[FLASH] = Image::new();
        let (world, db, state) = recover(seed, images, &[state], Safeguards::default())
            .unwrap_or_else(|e| panic!("seed {seed}, crash: {crash}: {e}"));
        assert!(db.store().flash().is_none());
        go_on(&world, &db, &state).unwrap();
    }
    assert!(dirty > 0 || !many_seeds(), "no tier was dirty");
}

/// The device dies, and the disk's older version of a page that was dirty there has rotted: the page is made from its
/// beginning.
#[test]
fn a_lost_page_is_made_again_without_the_disk() {
    let mut made_again = 0;
    for seed in 0..4 {
        let _replay = Replay(seed);
        with_tier(lazy(), || {
            let (world, db, model) = working(seed);
            let end = world.devices[DATA].size();
            // Wherever a page lies home: those in memory and those clean in the tier are not read there before they go
            // home again.
            let step = 4096 * 3;
            for at in ((64 << 10) + 4096 * 2 + 100..end).step_by(step) {
                world.devices[DATA].flip(at, 3);
            }
            world.devices[FLASH].kill();
            settle(&world, &db).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            verify(&world, &db, &[model.state_now()]).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            made_again += stats(&db).replayed;
            let state = go_on(&world, &db, &model.state_now()).unwrap();
            drop(db);
            // (A page that nobody has read since it rotted is repaired now.)
            let world = World::new(seed, Some(world.crash(Choice::None)), false);
            let db = world.open().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            verify(&world, &db, &[state]).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        });
    }
    assert!(made_again > 0, "no dirty page was ever made again");
}

/// The device answers, but with other bytes than were written: it is given up after a few bad frames, says why, and its
/// dirty pages are made again many in one pass over the log, not one by one.
#[test]
fn f2_a_tier_that_rots_is_given_up_and_repaired_in_few_passes() {
    let mut lost = 0;
    for seed in 0..6 {
        let _replay = Replay(seed);
        with_tier(lazy(), || {
            let (world, db, model) = working(seed);
            let before = stats(&db);
            for at in ((64 << 10)..world.devices[FLASH].size()).step_by(4096) {
                world.devices[FLASH].flip(at + 200, 5);
            }
            let read = world.devices[LOG].stats().read_bytes;
            settle(&world, &db).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            verify(&world, &db, &[model.state_now()]).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            world
                .sim
                .run({
                    let store = db.store().clone();
                    async move { store.checkpoint().await }
                })
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let (after, read) = (stats(&db), world.devices[LOG].stats().read_bytes - read);
            if before.dirty > 20 {
                let problem = after.problem.clone().unwrap_or_default();
                assert_eq!(after.state, FlashState::Failed, "seed {seed}: {after:?}");
                assert!(problem.contains("is not what was written"), "seed {seed}: {problem}");
                assert_eq!(after.dirty, 0, "seed {seed}: everything went home");
                // Sixteen of one page each at the worst until the tier is given up, then a few for all.
                let log = world.devices[LOG].size();
                assert!(read < 24 * log, "seed {seed}: {read} bytes of a log of {log} read for {} pages", before.dirty);
                lost += before.dirty;
            }
            let state = go_on(&world, &db, &model.state_now()).unwrap();
            drop(db);
            recover(seed, world.crash(Choice::None), &[state], Safeguards::default())
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        });
    }
    assert!(lost > 0, "no tier was dirty enough");
}

/// Where lost pages cannot be made again while the database runs, because its log cannot be read, it stops; once the
/// log can be read recovery finds everything.
#[test]
fn pages_that_cannot_be_made_again_stop_the_database() {
    let mut stopped = 0;
    for seed in 0..6 {
        let _replay = Replay(seed);
        with_tier(lazy(), || {
            let (world, db, model) = working(seed);
            if stats(&db).dirty == 0 {
                return;
            }
            let fault = Fault::Fail(ErrorKind::Io("read".into()));
            let rule =
                Rule { operation: Operation::Read, purpose: Some(Purpose::Log), skip: 0, times: u64::MAX, fault };
            world.devices[LOG].inject(rule);
            world.devices[FLASH].kill();
            let mix = Mix { transactions: 60, long: 20, faults: true, ..Mix::default() };
            run_clients(&world, &db, &model, 2, mix, || false);
            let env = world.sim.env();
            world.sim.run(async move { env.sleep(Duration::from_secs(30)).await });
            assert_eq!(stats(&db).state, FlashState::Failed, "seed {seed}");
            let failure = db.store().failure().unwrap_or_else(|| panic!("seed {seed}: it goes on: {:?}", stats(&db)));
            assert!(failure.to_string().contains("flash tier cannot be made again"), "seed {seed}: {failure}");
            stopped += 1;
            let events = world.recorder.events();
            drop(db);
            let (world, db, state) =
                recover(seed, world.crash(Choice::Random(seed)), &model.states_at(events), Safeguards::default())
                    .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            go_on(&world, &db, &state).unwrap();
        });
    }
    assert!(stopped > 0, "no tier was dirty");
}
