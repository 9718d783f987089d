//! Two floors: the redo LSN passes dirty pages of the flash tier, the retain LSN does not. So a restart begins late if
//! the tier is as the crash left it; whatever else lies there, it costs a longer redo, and never a wrong answer.

use crate::flash::stats;
use crate::model::{Model, State};
use crate::verify::{go_on, recover, recover_with_crashes, run_clients, set_up, settle, verify};
use crate::workload::Mix;
use crate::world::{FLASH, World, with_shape, with_tier};
use crate::{Replay, many_seeds, seeds};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use terrace_device::Image;
use terrace_device::fault::Choice;
use terrace_engine::Database;
use terrace_storage::FlashConfig;
use terrace_storage::config::{Restart, Safeguards, WritePolicy};
use terrace_storage::control::Control;

/// The policies whose dirty frames the redo LSN passes, with many dirty frames.
fn lazy(seed: u64) -> FlashConfig {
    let write = [WritePolicy::LazyCleaning, WritePolicy::Lazy, WritePolicy::Inclusive][seed as usize % 3];
    let size = [400, 120, 200][seed as usize / 3 % 3] * 4096;
    let write_budget = [None, None, None, Some(4 << 20)][seed as usize / 4 % 4];
    FlashConfig {
        size,
        write,
        dirty_fraction: [1.0, 0.5][seed as usize / 5 % 2],
        write_budget,
        ..FlashConfig::default()
    }
}

/// The log is kept much longer than a restart may have to repeat.
fn begin(seed: u64, images: Option<Vec<Image>>) -> World {
    let mut world = World::new(seed, images, false);
    world.config.pool_bytes = 24 * 4096;
    world.config.redo_bound = 128 << 10;
    world.config.log_retention = [512 << 10, 4 << 20][seed as usize / 2 % 2];
    world.config.redo_memory = [1 << 20, 1 << 20, 1 << 20, 16 << 10][seed as usize / 4 % 4];
    world.config.flash.restart = Restart::Instant;
    world.config.sharp_checkpoints = false;
    world
}

fn work(world: &World, db: &Database, model: &Model, transactions: usize) {
    let mix = Mix { transactions, long: 20, ..Mix::default() };
    run_clients(world, db, model, 2, mix, || false);
}

fn working(seed: u64, safeguards: Safeguards) -> (World, Database, Model) {
    let world = begin(seed, None).without(safeguards);
    let db = world.create().expect("creation on sound devices");
    let model = Model::new(world.recorder.clone(), &State::new());
    set_up(&world, &db, &model);
    (world, db, model)
}

/// Images of the flash device, taken now and then while it works.
fn sampled(world: &World) -> Arc<Mutex<Vec<Image>>> {
    let (env, device) = (world.sim.env(), world.devices[FLASH].clone());
    let images = Arc::new(Mutex::new(Vec::new()));
    let samples = images.clone();
    world.sim.env().spawn("samples", async move {
        loop {
            env.sleep(Duration::from_micros(5_000 + env.random_u64() % 40_000)).await;
            samples.lock().expect("no panic").push(device.visible());
        }
    });
    images
}

/// What a start finds where the tier was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Same,
    /// The cache file of an earlier moment.
    Earlier,
    Nothing,
    /// Some frames hold something else.
    Spoilt,
    /// The same, and it is not to be used.
    Cold,
    /// The same, and all pages are to be visited before the opening ends.
    Visited,
}

const ALL: [Found; 6] = [Found::Same, Found::Earlier, Found::Nothing, Found::Spoilt, Found::Cold, Found::Visited];

/// What was seen, in runs.
#[derive(Default, Debug)]
struct Seen {
    /// The redo LSN had passed dirty frames at the crash.
    passed: u64,
    /// Redo began there, and how many pages lacked changes.
    late: u64,
    lacking: u64,
    /// Frames found dirty, and pages made again from the log.
    dirty: u64,
    replayed: u64,
}

/// A crash, a start with what was found, work, a crash, a start.
fn run(seed: u64, found: Found, safeguards: Safeguards, seen: &mut Seen) -> Result<(), String> {
    with_tier(lazy(seed), || {
        let (world, db, model) = working(seed, safeguards);
        let samples = sampled(&world);
        work(&world, &db, &model, 50);
        settle(&world, &db)?;
        let (state, log) = (model.state_now(), db.store().log().clone());
        let (redo, retain, oldest) = (log.redo_lsn(), log.retain_lsn(), stats(&db).oldest_dirty);
        let passed = retain < redo && oldest.is_some_and(|oldest| oldest < redo);
        seen.passed += u64::from(passed);
        drop((db, log));
        let mut images = world.crash([Choice::None, Choice::Random(seed), Choice::All][seed as usize % 3]);
        match found {
            Found::Same | Found::Cold | Found::Visited => {}
            Found::Earlier => {
                let samples = std::mem::take(&mut *samples.lock().expect("no panic"));
                images[FLASH] = samples.into_iter().rev().nth(seed as usize % 4).unwrap_or_default();
            }
            Found::Nothing => images[FLASH] = Image::new(),
            Found::Spoilt => {
                let size = images[FLASH].size();
                (0..40)
                    .for_each(|i| images[FLASH].write(seed.wrapping_mul(i * 77 + 7) % size / 4096 * 4096, &[7; 4096]));
            }
        }
        let mut world = begin(seed, Some(images)).without(safeguards);
        match found {
            Found::Cold => world.config.flash.restart = Restart::Cold,
            Found::Visited => world.config.flash.restart = Restart::LazyVerification,
            _ => {}
        }
        // The crash may keep what was being recorded: another retain LSN than the one that the log knew.
        let control = world.set().control;
        let recorded = world.sim.run(async move { Control::read(&control).await }).map_err(|e| e.to_string())?;
        assert!(recorded.retain_lsn >= retain, "it was recorded before the crash");
        let retain = recorded.retain_lsn;
        let (db, report) = world.open_reported().map_err(|e| e.to_string())?;
        let report = report.storage;
        let late = report.redo_from > retain;
        if late && matches!(found, Found::Cold | Found::Visited) {
            return Err(format!("redo begins at {}, the log is kept from {retain}: {found:?}", report.redo_from));
        }
        seen.late += u64::from(passed && late);
        (seen.lacking, seen.dirty) = (seen.lacking + report.lacking, seen.dirty + report.tier.dirty);
        let is = verify(&world, &db, &[state])?;
        seen.replayed += stats(&db).replayed;
        let model = Model::new(world.recorder.clone(), &is);
        work(&world, &db, &model, 10);
        settle(&world, &db)?;
        let state = model.state_now();
        drop(db);
        let images = world.crash(Choice::Random(seed + 1));
        let world = begin(seed + 1, Some(images)).without(safeguards);
        let db = world.open().map_err(|e| e.to_string())?;
        let is = verify(&world, &db, &[state])?;
        go_on(&world, &db, &is).map(drop)
    })
}

#[test]
fn the_redo_lsn_passes_dirty_frames() {
    let mut seen = Seen::default();
    for seed in seeds() {
        let _replay = Replay(seed);
        run(seed, Found::Same, Safeguards::default(), &mut seen).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
    println!("{seen:?}");
    assert!(seen.passed > 0 && seen.late > 0 && seen.dirty > 0, "{seen:?}");
}

#[test]
fn whatever_lies_there_costs_redo_and_no_more() {
    let mut seen = Seen::default();
    for seed in seeds() {
        let _replay = Replay(seed);
        for found in ALL {
            run(seed, found, Safeguards::default(), &mut seen)
                .unwrap_or_else(|e| panic!("seed {seed}, {found:?}: {e}"));
        }
    }
    println!("{seen:?}");
    assert!(seen.late > 0 && seen.lacking > 0 || !many_seeds(), "{seen:?}");
}

/// A cache file of an earlier moment: it lacks what the redo LSN has passed since.
pub(crate) fn earlier(seed: u64, safeguards: Safeguards) -> Result<(), String> {
    run(seed, Found::Earlier, safeguards, &mut Seen::default())
}

/// Crash after crash, also while it recovers.
#[test]
fn crashes_in_a_row() {
    let mut late = 0;
    for seed in seeds() {
        let _replay = Replay(seed);
        with_tier(lazy(seed), || {
            let roomy = || with_shape(|shape| shape.retention = Some(4 << 20), || crashes(seed));
            late += roomy();
        });
    }
    println!("{late} restarts began above the retain LSN");
    assert!(late > 0);
}

fn crashes(seed: u64) -> u64 {
    let (world, db, model) = working(seed, Safeguards::default());
    work(&world, &db, &model, 30);
    settle(&world, &db).unwrap();
    let (mut state, mut late) = (model.state_now(), 0);
    drop(db);
    let mut images = world.crash(Choice::Random(seed));
    for round in 0..4 {
        let seed = seed * 4 + round;
        let (world, db, is) = recover_with_crashes(seed, images, std::slice::from_ref(&state), seed % 4)
            .unwrap_or_else(|e| panic!("round {round}: {e}"));
        let model = Model::new(world.recorder.clone(), &is);
        work(&world, &db, &model, 8);
        settle(&world, &db).unwrap();
        let log = db.store().log();
        late += u64::from(log.retain_lsn() < log.redo_lsn());
        state = model.state_now();
        drop(db);
        images = world.crash([Choice::Random(seed), Choice::None, Choice::All][seed as usize % 3]);
    }
    recover(seed, images, &[state], Safeguards::default()).unwrap_or_else(|e| panic!("at last: {e}"));
    late
}

/// The device dies, or the tier is switched off, made smaller, or given another method, while the redo LSN is past its
/// dirty frames; then the power goes.
#[test]
fn the_tier_changes_under_load() {
    let mut passed = 0;
    for seed in seeds() {
        let _replay = Replay(seed);
        with_tier(lazy(seed), || {
            let (world, db, model) = working(seed, Safeguards::default());
            work(&world, &db, &model, 40);
            let log = db.store().log();
            passed += u64::from(log.retain_lsn() < log.redo_lsn());
            let (store, (config, device)) = (db.store().clone(), db.store().flash_config());
            let smaller = FlashConfig { size: config.size / 3, ..config.clone() };
            let other = FlashConfig { write: WritePolicy::Exclusive, ..config.clone() };
            let visiting = FlashConfig { restart: Restart::LazyVerification, ..config.clone() };
            let change = match seed % 5 {
                0 => {
                    world.devices[FLASH].kill();
                    None
                }
                1 => Some((None, config)),
                2 => Some((device, smaller)),
                3 => Some((device, other)),
                _ => Some((device, visiting)),
            };
            if let Some((device, config)) = change {
                world.sim.env().spawn("change", async move {
                    let _ = store.set_flash(device, config).await; // The power may go before it is done.
                });
            }
            work(&world, &db, &model, 1 + seed as usize % 12);
            settle(&world, &db).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let state = model.state_now();
            drop(db);
            let images = world.crash(Choice::Random(seed));
            recover(seed, images, &[state], Safeguards::default()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        });
    }
    assert!(passed > 0);
}
