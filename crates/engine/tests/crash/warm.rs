//! Warm restart: what the flash tier held is there after a stop and after a crash, and nothing of it is stale,
//! whichever cache file is put in: that of the crash, one from before, one of another life, a damaged one.

use crate::flash::{pairs, stats, tier};
use crate::model::{Model, State};
use crate::verify::{go_on, recover, recover_with_crashes, run_clients, set_up, settle, verify};
use crate::workload::Mix;
use crate::world::{FLASH, NAMES, World, with_shape, with_tier};
use crate::{Replay, many_seeds, seeds};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use terrace_device::Image;
use terrace_device::fault::Choice;
use terrace_engine::Database;
use terrace_storage::config::{Restart, Safeguards, WritePolicy};
use terrace_storage::{FlashConfig, FlashState, Restored};

/// A tier that holds more than memory, with the methods of the seed.
fn roomy(seed: u64) -> FlashConfig {
    let size = [80, 160, 400][seed as usize % 3] * 4096;
    FlashConfig { size, fill_threshold: 0.95, throttle_queue_depth: 100, ..tier(seed) }
}

fn begin(seed: u64, images: Option<Vec<Image>>) -> World {
    let mut world = World::new(seed, images, false);
    world.config.pool_bytes = 24 * 4096;
    world
}

fn work(world: &World, db: &Database, model: &Model, transactions: usize) {
    let mix = Mix { transactions, long: 20, ..Mix::default() };
    run_clients(world, db, model, 2, mix, || false);
}

/// A world at work, until the power goes if that is said.
fn working(seed: u64, transactions: usize) -> (World, Database, Model) {
    let world = begin(seed, None);
    let db = world.create().expect("creation on sound devices");
    let model = Model::new(world.recorder.clone(), &State::new());
    set_up(&world, &db, &model);
    work(&world, &db, &model, transactions);
    (world, db, model)
}

/// Opens with little memory, verifies, and says what was found in the tier.
fn reopen(seed: u64, images: Vec<Image>, states: &[State]) -> (World, Database, State, Restored) {
    let world = begin(seed, Some(images));
    let (db, report) = world.open_reported().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let is = verify(&world, &db, states).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    (world, db, is, report.storage.tier)
}

/// How a run ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    CleanStop,
    FastStop,
    Crash,
}

/// After a stop all frames are found; after a crash most: what had come in since the inventory was written is not. A
/// fast stop leaves changed pages there.
#[test]
fn the_tier_is_warm() {
    for end in [End::CleanStop, End::FastStop, End::Crash] {
        let (mut used, mut current, mut dirty) = (0, 0, 0);
        for seed in 0..pairs().len() as u64 {
            let _replay = Replay(seed);
            with_tier(roomy(seed), || {
                let (world, db, model) = working(seed, 60);
                settle(&world, &db).unwrap();
                let (state, before) = (model.state_now(), stats(&db));
                match end {
                    End::CleanStop => world.sim.run(db.close()).expect("a clean shutdown"),
                    End::FastStop => world.sim.run(db.close_fast()).expect("a fast shutdown"),
                    End::Crash => drop(db),
                }
                let choice = if end == End::Crash { Choice::Random(seed) } else { Choice::None };
                let (world, db, state, found) = reopen(seed, world.crash(choice), &[state]);
                let now = stats(&db);
                assert_eq!(now.state, FlashState::On, "seed {seed}: {now:?}");
                // With records in the log that is kept back to a table of frames: what changed since counts as dirty.
                let home = end == End::CleanStop && world.config.flash.restart != Restart::LogBased;
                assert!(found.dirty == 0 || !home, "seed {seed}: everything was home: {found:?}");
                // After a crash a sector may name a page that its frame has lost to another since: it is made again.
                let lost = if end == End::Crash { now.restored.lost } else { 0 };
                assert!(now.replayed <= lost && now.bad_frames == 0, "seed {seed}: {now:?}");
                let good = found.current + found.bases;
                (used, current, dirty) = (used + before.used, current + good, dirty + found.dirty);
                go_on(&world, &db, &state).unwrap();
            });
        }
        println!("{end:?}: of {used} frames {current} were current or bases, {dirty} of them dirty");
        let part = if end == End::Crash { 3 } else { 9 };
        assert!(current * 10 >= used * part, "{end:?}: of {used} frames {current} were current");
        assert!(dirty > 0 || end == End::CleanStop);
    }
}

/// A tier that is started cold is empty, and writes no inventory.
#[test]
fn a_cold_restart_is_cold() {
    for seed in 0..4 {
        let config = FlashConfig { restart: Restart::Cold, ..roomy(seed) };
        let images = with_tier(config.clone(), || {
            let (world, db, model) = working(seed, 40);
            settle(&world, &db).unwrap();
            let state = model.state_now();
            drop(db);
            (world.crash(Choice::None), state)
        });
        let (images, state) = images;
        for config in [config, roomy(seed)] {
            with_tier(config, || {
                let (.., found) = reopen(seed, images.clone(), std::slice::from_ref(&state));
                let Restored { inventory_nanos, empty, .. } = found;
                assert_eq!(found, Restored { inventory_nanos, empty, ..Restored::default() });
            });
        }
    }
}

/// Many frames are being read and checked after the opening, slowly, while their pages change, go and come.
#[test]
fn frames_are_verified_while_pages_change() {
    let config = FlashConfig { write: WritePolicy::LazyCleaning, dirty_fraction: 1.0, ..roomy(2) };
    let mut dirty = 0;
    for seed in seeds() {
        let _replay = Replay(seed);
        let (images, state) = with_tier(config.clone(), || {
            let mut world = begin(seed, None);
            (world.config.redo_bound, world.config.log_retention) = (1 << 20, 2 << 20);
            let db = world.create().expect("creation on sound devices");
            let model = Model::new(world.recorder.clone(), &State::new());
            set_up(&world, &db, &model);
            work(&world, &db, &model, 60);
            settle(&world, &db).unwrap();
            let state = model.state_now();
            drop(db);
            (world.crash(Choice::None), state)
        });
        let change = || {
            let world = begin(seed, Some(images));
            let (db, report) = world.open_reported().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            dirty += report.storage.tier.dirty;
            let model = Model::new(world.recorder.clone(), &state);
            work(&world, &db, &model, 20);
            settle(&world, &db).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let state = model.state_now();
            drop(db);
            (world.crash(Choice::Random(seed)), state)
        };
        with_tier(config.clone(), || {
            let (images, state) = with_shape(|shape| shape.flash_read = 3_000_000, change);
            recover(seed, images, &[state], Safeguards::default()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        });
    }
    println!("{dirty} dirty frames were found");
}

/// Lives come and go, and nothing changes: what the first one listed is known to the last.
#[test]
fn a_tier_that_does_not_change_stays_warm() {
    for seed in 0..2 {
        with_tier(roomy(seed), || {
            let (world, db, model) = working(seed, 120);
            settle(&world, &db).unwrap();
            let state = model.state_now();
            world.sim.run(db.close()).expect("a clean shutdown");
            let mut images = world.crash(Choice::None);
            for life in 0..50 {
                let world = begin(seed, Some(images));
                let (db, report) = world.open_reported().unwrap_or_else(|e| panic!("life {life}: {e}"));
                assert!(report.storage.tier.current > 10, "life {life}: {:?}", report.storage.tier);
                world.sim.run(db.close()).expect("a clean shutdown");
                images = world.crash(Choice::None);
            }
            recover(seed, images, &[state], Safeguards::default()).unwrap_or_else(|e| panic!("at last: {e}"));
        });
    }
}

/// A tier that becomes warm while it runs is found by the next start.
#[test]
fn warm_from_now_on() {
    let mut current = 0;
    for seed in 0..4 {
        let cold = FlashConfig { restart: Restart::Cold, ..roomy(seed) };
        let (images, state) = with_tier(cold, || {
            let (world, db, model) = working(seed, 40);
            let (config, device) = db.store().flash_config();
            let warm = FlashConfig { restart: Restart::LazyVerification, ..config };
            let store = db.store().clone();
            world.sim.run(async move { store.set_flash(device, warm).await }).expect("a sound device");
            work(&world, &db, &model, 20);
            settle(&world, &db).unwrap();
            let state = model.state_now();
            world.sim.run(db.close()).expect("a clean shutdown");
            (world.crash(Choice::None), state)
        });
        with_tier(roomy(seed), || {
            let (.., found) = reopen(seed, images.clone(), std::slice::from_ref(&state));
            current += found.current;
        });
    }
    assert!(current > 0, "the tier is empty");
}

/// Crash after crash, also while it recovers. Returns how many frames were listed, and how many of them current.
pub(crate) fn crashes_in_a_row(seed: u64) -> (u64, u64) {
    let (mut listed, mut current) = (0, 0);
    with_tier(roomy(seed), || {
        let (world, db, model) = working(seed, 30);
        settle(&world, &db).unwrap();
        let mut state = model.state_now();
        drop(db);
        let mut images = world.crash(Choice::Random(seed));
        for round in 0..3 {
            let seed = seed * 3 + round;
            let (world, db, is) = recover_with_crashes(seed, images, std::slice::from_ref(&state), seed % 4)
                .unwrap_or_else(|e| panic!("round {round}: {e}"));
            let found = stats(&db).restored;
            (listed, current) = (listed + found.listed, current + found.current);
            let model = Model::new(world.recorder.clone(), &is);
            work(&world, &db, &model, 8);
            settle(&world, &db).unwrap();
            state = model.state_now();
            drop(db);
            images = world.crash([Choice::Random(seed), Choice::None][seed as usize % 2]);
        }
        recover(seed, images, &[state], Safeguards::default()).unwrap_or_else(|e| panic!("at last: {e}"));
    });
    (listed, current)
}

/// The tier stays warm and right.
#[test]
fn crashes_in_a_row_leave_it_warm() {
    let (mut listed, mut current) = (0, 0);
    for seed in seeds() {
        let _replay = Replay(seed);
        let (more, of_them) = crashes_in_a_row(seed);
        (listed, current) = (listed + more, current + of_them);
    }
    println!("of {listed} frames listed {current} were current");
    assert!(current > 0);
}

/// Recovery has much memory and gathers few changes at a time, so it reads the log again and again, and visits pages of
/// which the tier has versions. Returns of how many the tier had the newest, and a base.
fn little_redo_memory(seed: u64) -> Result<(u64, u64), String> {
    let config = FlashConfig { write: WritePolicy::LazyCleaning, dirty_fraction: 1.0, ..roomy(2) };
    let log = |world: &mut World| (world.config.redo_bound, world.config.log_retention) = (1 << 20, 2 << 20);
    with_tier(config, || {
        let mut world = begin(seed, None);
        log(&mut world);
        let db = world.create().expect("creation on sound devices");
        let model = Model::new(world.recorder.clone(), &State::new());
        set_up(&world, &db, &model);
        work(&world, &db, &model, 30);
        settle(&world, &db)?;
        let state = model.state_now();
        drop(db);
        let images = world.crash([Choice::None, Choice::All][seed as usize % 2]);
        let mut world = World::new(seed, Some(images), false);
        log(&mut world);
        (world.config.pool_bytes, world.config.redo_memory) = (512 * 4096, 1 << 10 << (seed % 8));
        let (db, report) = world.open_reported().map_err(|e| e.to_string())?;
        let is = verify(&world, &db, &[state])?;
        go_on(&world, &db, &is)?;
        Ok((report.storage.tier.dirty, report.storage.tier.bases))
    })
}

#[test]
fn pages_of_the_tier_are_redone_with_little_memory() {
    let (mut left, mut bases) = (0, 0);
    for seed in seeds() {
        let _replay = Replay(seed);
        let (newest, older) = little_redo_memory(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        (left, bases) = (left + newest, bases + older);
    }
    println!("{left} pages were left to the tier, {bases} began with its version");
    assert!(left > 0 && bases > 0 || !many_seeds());
}

/// Crash after crash while pages wait to be redone, and some have been changed anew. Returns how many waited.
fn crashes_while_pages_wait(seed: u64) -> Result<u64, String> {
    with_tier(roomy(seed), || {
        let (world, db, model) = working(seed, 30);
        settle(&world, &db)?;
        let mut state = model.state_now();
        drop(db);
        let mut images = world.crash(Choice::Random(seed));
        let mut waited = 0;
        for round in 0..4 {
            let mut world = begin(seed * 4 + round, Some(images));
            world.config.flash.restart = Restart::Instant;
            world.config.redo_memory = 1 << 20;
            let (db, report) = world.open_reported().map_err(|e| format!("round {round}: {e}"))?;
            waited += report.storage.pages_waiting;
            if (seed + round).is_multiple_of(3) {
                let model = Model::new(world.recorder.clone(), &state);
                work(&world, &db, &model, 3);
                settle(&world, &db)?;
                state = model.state_now();
            } else {
                let env = world.sim.env();
                let nanos = env.random_u64() % 3_000_000;
                world.sim.run(async move { env.sleep(Duration::from_nanos(nanos)).await });
            }
            drop(db);
            images = world.crash([Choice::Random(seed), Choice::None, Choice::All][seed as usize % 3]);
        }
        let world = begin(seed, Some(images));
        let db = world.open().map_err(|e| e.to_string())?;
        let is = verify(&world, &db, &[state])?;
        go_on(&world, &db, &is)?;
        Ok(waited)
    })
}

#[test]
fn pages_wait_through_crashes() {
    let mut waited = 0;
    for seed in seeds() {
        let _replay = Replay(seed);
        waited += crashes_while_pages_wait(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
    println!("{waited} pages waited");
    assert!(waited > 0);
}

/// Images of the flash device, taken now and then while it works.
pub(crate) fn sampled(world: &World) -> Arc<Mutex<Vec<Image>>> {
    let (env, device) = (world.sim.env(), world.devices[FLASH].clone());
    let images = Arc::new(Mutex::new(Vec::new()));
    let samples = images.clone();
    world.sim.env().spawn("samples", async move {
        loop {
            env.sleep(Duration::from_micros(2_000 + env.random_u64() % 20_000)).await;
            samples.lock().expect("no panic").push(device.visible());
        }
    });
    images
}

/// A cache file of the same life, from some time before the crash: what the log has changed since is not taken from it.
pub(crate) fn earlier_image(seed: u64, safeguards: Safeguards) -> Result<Restored, String> {
    with_tier(roomy(seed), || {
        let world = begin(seed, None).without(safeguards);
        let db = world.create().expect("creation on sound devices");
        let model = Model::new(world.recorder.clone(), &State::new());
        set_up(&world, &db, &model);
        let samples = sampled(&world);
        work(&world, &db, &model, 40);
        settle(&world, &db)?;
        let state = model.state_now();
        drop(db);
        let mut images = world.crash(Choice::Random(seed));
        let samples = std::mem::take(&mut *samples.lock().expect("no panic"));
        if let Some(image) = samples.into_iter().rev().nth(seed as usize % 5) {
            images[FLASH] = image;
        }
        let world = begin(seed, Some(images)).without(safeguards);
        let (db, report) = world.open_reported().map_err(|e| e.to_string())?;
        let is = verify(&world, &db, &[state])?;
        go_on(&world, &db, &is)?;
        Ok(report.storage.tier)
    })
}

#[test]
fn an_earlier_image_is_no_danger() {
    let mut all = Restored::default();
    for seed in seeds() {
        let _replay = Replay(seed);
        let found = earlier_image(seed, Safeguards::default()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        (all.current, all.older, all.lost) =
            (all.current + found.current, all.older + found.older, all.lost + found.lost);
    }
    println!("{all:?}");
    assert!(all.current > 0 && all.older > 0 || !many_seeds(), "{all:?}");
}

/// The tier of a life that is not this one's: the database went on without it, or from an older copy.
pub(crate) fn other_life(seed: u64, safeguards: Safeguards) -> Result<(), String> {
    let left = Rc::new(RefCell::new(None));
    with_tier(roomy(seed), || -> Result<(), String> {
        let (world, db, model) = working(seed, 30);
        settle(&world, &db)?;
        let state = model.state_now();
        drop(db);
        *left.borrow_mut() = Some((world.crash(Choice::Random(seed)), state));
        Ok(())
    })?;
    let (images, state) = left.take().expect("it was set");
    // One history goes on with a tier, the other with another or without one.
    let other = with_tier(roomy(seed), || {
        let (world, db, state, _) = reopen(seed + 1, images.clone(), std::slice::from_ref(&state));
        let model = Model::new(world.recorder.clone(), &state);
        work(&world, &db, &model, 20);
        drop(db);
        world.crash(Choice::None)
    });
    let go_on_here = || {
        let mut images = images.clone();
        images[FLASH] = Image::new();
        let (world, db, state, _) = reopen(seed + 2, images, std::slice::from_ref(&state));
        let model = Model::new(world.recorder.clone(), &state);
        work(&world, &db, &model, 40);
        settle(&world, &db).unwrap();
        let state = model.state_now();
        drop(db);
        (world.crash(Choice::None), state)
    };
    let (mut here, state) = if seed.is_multiple_of(2) { with_tier(roomy(seed), go_on_here) } else { go_on_here() };
    for flash in [&images[FLASH], &other[FLASH]] {
        here[FLASH] = flash.clone();
        with_tier(roomy(seed), || -> Result<(), String> {
            let world = begin(seed, Some(here.clone())).without(safeguards);
            let (db, report) = world.open_reported().map_err(|e| e.to_string())?;
            let is = verify(&world, &db, std::slice::from_ref(&state))?;
            if report.storage.tier.listed > 0 {
                return Err(format!("the inventory of another life counts: {:?}", report.storage.tier));
            }
            go_on(&world, &db, &is).map(drop)
        })?;
    }
    Ok(())
}

#[test]
fn a_tier_of_another_life_is_void() {
    for seed in seeds() {
        let _replay = Replay(seed);
        other_life(seed, Safeguards::default()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
}

/// All files but the cache file are of an earlier moment of the same life: versions from after it are not used.
#[test]
fn a_tier_newer_than_the_database_is_no_danger() {
    let mut unknown = 0;
    for seed in seeds() {
        let _replay = Replay(seed);
        with_tier(roomy(seed), || {
            let (world, db, model) = working(seed, 20);
            let copy: Vec<Image> = world.devices.iter().map(|device| device.visible()).collect();
            let states = model.states_at(world.recorder.events());
            work(&world, &db, &model, 30);
            settle(&world, &db).unwrap();
            drop(db);
            let mut images = copy;
            images[FLASH] = world.crash(Choice::All).swap_remove(FLASH);
            let (world, db, is, found) = reopen(seed, images, &states);
            unknown += found.unknown;
            go_on(&world, &db, &is).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        });
    }
    assert!(unknown > 0 || !many_seeds(), "no version was ever from after the copy");
}

/// Damaged, cut short, or full of something else.
#[test]
fn a_damaged_tier_is_no_danger() {
    let (mut current, mut lost) = (0, 0);
    for seed in seeds() {
        let _replay = Replay(seed);
        with_tier(roomy(seed), || {
            let (world, db, model) = working(seed, 40);
            settle(&world, &db).unwrap();
            let (state, random) = (model.state_now(), world.sim.env().random_u64());
            drop(db);
            let mut images = world.crash(Choice::Random(seed));
            let flash = &mut images[FLASH];
            let size = flash.size();
            match random % 4 {
                0 => (0..40).for_each(|i| flash.flip((random >> 8).wrapping_mul(i * 77 + 1) % size, 1 << (i % 8))),
                1 => (0..4).for_each(|i| flash.spoil((random >> 8).wrapping_mul(i * 77 + 1) % size, 1)),
                2 => {
                    (0..9).for_each(|i| flash.write((random >> 8).wrapping_mul(i + 1) % size / 4096 * 4096, &[7; 4096]))
                }
                _ => {
                    let mut shorter = Image::new();
                    let mut bytes = vec![0; ((random >> 8) % size / 4096 * 4096) as usize];
                    flash.read(0, &mut bytes);
                    shorter.write(0, &bytes);
                    *flash = shorter;
                }
            }
            let (world, db, is, found) = reopen(seed, images, &[state]);
            (current, lost) = (current + found.current, lost + stats(&db).restored.lost);
            go_on(&world, &db, &is).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        });
    }
    println!("{current} frames were current, {lost} of them damaged");
    assert!(current > 0 && lost > 0 || !many_seeds());
}

/// Another size, other methods: what stays stays.
#[test]
fn a_tier_may_be_opened_with_other_settings() {
    let mut current = 0;
    for seed in seeds() {
        let _replay = Replay(seed);
        let left = with_tier(roomy(seed), || {
            let (world, db, model) = working(seed, 40);
            settle(&world, &db).unwrap();
            let state = model.state_now();
            drop(db);
            (world.crash(Choice::Random(seed)), state)
        });
        with_tier(tier(seed * 7 + 3), || {
            let (world, db, is, found) = reopen(seed, left.0, &[left.1]);
            current += found.current;
            let state = go_on(&world, &db, &is).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            drop(db);
            recover(seed, world.crash(Choice::Random(seed)), &[state], Safeguards::default())
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        });
    }
    assert!(current > 0);
    assert_eq!(NAMES[FLASH], "flash");
}
