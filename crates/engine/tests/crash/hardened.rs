//! Restart by hardened records (`memory-mapped`, `log-based`): with each write policy and replacement order the tier is
//! as warm as it was at the crash, nothing of it is stale, and, where the devices are honest, no record names what its
//! frame lost.

use crate::flash::{pairs, stats, tier};
use crate::model::{Model, State};
use crate::sweep::{Plan, sweep};
use crate::verify::{go_on, recover, recover_with_crashes, run_clients, set_up, settle, verify};
use crate::warm::sampled;
use crate::workload::Mix;
use crate::world::{FLASH, World, with_shape, with_tier};
use crate::{Replay, many_seeds, seeds};
use std::time::Duration;
use terrace_device::fault::{Choice, Fault, Operation, Rule};
use terrace_device::{ErrorKind, Image};
use terrace_engine::Database;
use terrace_storage::config::{FlashOrder, Restart, Safeguards, WritePolicy};
use terrace_storage::{FlashConfig, Restored};

const METHODS: [Restart; 2] = [Restart::MemoryMapped, Restart::LogBased];

/// A method, with the write policy and the order of the seed.
fn by(restart: Restart, seed: u64) -> FlashConfig {
    let size = [80, 160, 400][seed as usize % 3] * 4096;
    FlashConfig { size, fill_threshold: 0.95, throttle_queue_depth: 100, restart, ..tier(seed) }
}

fn begin(seed: u64, images: Option<Vec<Image>>, safeguards: Safeguards) -> World {
    let mut world = World::new(seed, images, false).without(safeguards);
    world.config.pool_bytes = 24 * 4096;
    // Checkpoints that write all at once leave little for a crash to find.
    world.config.sharp_checkpoints = false;
    world
}

fn work(world: &World, db: &Database, model: &Model, transactions: usize) {
    run_clients(world, db, model, 2, Mix { transactions, long: 20, ..Mix::default() }, || false);
}

fn working(seed: u64, safeguards: Safeguards) -> (World, Database, Model) {
    let world = begin(seed, None, safeguards);
    let db = world.create().expect("creation on sound devices");
    let model = Model::new(world.recorder.clone(), &State::new());
    set_up(&world, &db, &model);
    (world, db, model)
}

/// What must be there, and opens on what is left.
fn reopen(
    seed: u64,
    images: Vec<Image>,
    states: &[State],
    safeguards: Safeguards,
) -> Result<(World, Database, State, Restored), String> {
    let world = begin(seed, Some(images), safeguards);
    let (db, report) = world.open_reported().map_err(|e| e.to_string())?;
    let is = verify(&world, &db, states)?;
    Ok((world, db, is, report.storage.tier))
}

/// Reads all that was found, by reading all that there is; then no frame may have been another than was said.
fn honest(db: &Database) -> Result<(), String> {
    let found = stats(db).restored;
    match found.lost + found.unknown {
        0 => Ok(()),
        _ => Err(format!("records name what their frames have not: {found:?}")),
    }
}

/// Crash after crash in the middle of work, some while it recovers. Returns what was found.
pub(crate) fn crashes(method: Restart, seed: u64, safeguards: Safeguards) -> Result<Restored, String> {
    with_tier(by(method, seed), || {
        let (mut world, mut db, mut model) = working(seed, safeguards);
        let mut all = Restored::default();
        for round in 0..3 {
            let seed = seed * 3 + round;
            let random = world.sim.env().random_u64();
            world.recorder.power_off_at(world.recorder.events() + 50 + random % 3000);
            work(&world, &db, &model, 40);
            let events = world.recorder.events();
            drop(db);
            world.recorder.power_off_at(u64::MAX);
            let choice = [Choice::Random(seed), Choice::None, Choice::All, Choice::OnlyLast][seed as usize % 4];
            let (states, mut images) = (model.states_at(events), world.crash(choice));
            if safeguards == Safeguards::all() {
                for _ in 0..seed % 3 {
                    let world = begin(seed, Some(images), safeguards);
                    world.recorder.power_off_at(world.sim.env().random_u64() % 200);
                    if let Ok(db) = world.open() {
                        let _ = verify(&world, &db, &states);
                    }
                    images = world.crash(Choice::Random(seed));
                }
            }
            let (next, opened, is, found) =
                reopen(seed, images, &states, safeguards).map_err(|e| format!("round {round}: {e}"))?;
            honest(&opened).map_err(|e| format!("round {round}: {e}"))?;
            (all.listed, all.current) = (all.listed + found.listed, all.current + found.current);
            (all.bases, all.dirty) = (all.bases + found.bases, all.dirty + found.dirty);
            (world, db) = (next, opened);
            model = Model::new(world.recorder.clone(), &is);
        }
        Ok(all)
    })
}

#[test]
fn crashes_under_work() {
    for method in METHODS {
        let (mut listed, mut current, mut bases, mut dirty) = (0, 0, 0, 0);
        for seed in seeds() {
            let _replay = Replay(seed);
            let ran = crashes(method, seed, Safeguards::all());
            let found = ran.unwrap_or_else(|e| panic!("seed {seed}, {method:?}: {e}"));
            (listed, current) = (listed + found.listed, current + found.current);
            (bases, dirty) = (bases + found.bases, dirty + found.dirty);
        }
        println!("{method:?}: of {listed} frames {current} were current ({dirty} dirty), {bases} bases");
        assert!((current + bases) * 10 > listed * 9 && dirty > 0 || !many_seeds());
    }
}

/// Every write policy with every order that it goes with.
#[test]
fn every_pair_is_warm() {
    for method in METHODS {
        for seed in 0..pairs().len() as u64 {
            let _replay = Replay(seed);
            let (config, ran) = (by(method, seed), crashes(method, seed, Safeguards::all()));
            let found = ran.unwrap_or_else(|e| panic!("seed {seed}, {config:?}: {e}"));
            assert!(found.current + found.bases > 0, "seed {seed}, {config:?}: {found:?}");
        }
    }
}

#[test]
fn crashes_at_every_write() {
    use Restart::{LogBased, MemoryMapped};
    let histories =
        [(4001, 0, MemoryMapped), (4003, 1, MemoryMapped), (4005, 2, MemoryMapped), (4007, 3, MemoryMapped)];
    let others = [(4009, 1, LogBased), (4011, 2, LogBased), (4013, 3, LogBased), (4015, 4, LogBased)];
    for (seed, tier_seed, method) in histories.into_iter().chain(others) {
        let _replay = Replay(seed);
        let plan = Plan {
            seed,
            writes: 250,
            mix: Mix { ddl: 4, ..Mix::default() },
            clients: 2,
            safeguards: Safeguards::default(),
            deeper: 40,
        };
        let cases = with_tier(by(method, tier_seed), || sweep(plan)).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        println!("seed {seed}, {method:?}: {cases} crashes");
    }
}

/// The cache file of an earlier moment of the same life: what was written home since is not read from it.
pub(crate) fn earlier(method: Restart, seed: u64, safeguards: Safeguards) -> Result<Restored, String> {
    with_tier(by(method, seed), || {
        let (world, db, model) = working(seed, safeguards);
        let samples = sampled(&world);
        work(&world, &db, &model, 60);
        settle(&world, &db)?;
        let state = model.state_now();
        drop(db);
        let mut images = world.crash(Choice::Random(seed));
        let samples = std::mem::take(&mut *samples.lock().expect("no panic"));
        if let Some(image) = samples.into_iter().rev().nth(seed as usize % 7) {
            images[FLASH] = image;
        }
        let (world, db, is, found) = reopen(seed, images, &[state], safeguards)?;
        go_on(&world, &db, &is)?;
        Ok(found)
    })
}

#[test]
fn an_earlier_image_is_no_danger() {
    for method in METHODS {
        let mut all = Restored::default();
        for seed in seeds() {
            let _replay = Replay(seed);
            let found = earlier(method, seed, Safeguards::all());
            let found = found.unwrap_or_else(|e| panic!("seed {seed}, {method:?}: {e}"));
            (all.current, all.older) = (all.current + found.current, all.older + found.older);
        }
        println!("{method:?}: {all:?}");
        let noticed = all.older > 0 || method == Restart::LogBased; // That has only versions that its log names.
        assert!(all.current > 0 && noticed || !many_seeds(), "{method:?}: {all:?}");
    }
}

/// The device loses writes without a word, and fails others: whatever is lost, no older version is taken for a page.
pub(crate) fn lying(method: Restart, seed: u64, safeguards: Safeguards) -> Result<(), String> {
    let config = match seed % 2 {
        0 => by(method, seed),
        // One sector of records, which only pages that change are written for.
        _ => FlashConfig {
            size: 80 * 4096,
            write: WritePolicy::CleanWrite,
            replacement: FlashOrder::Fifo,
            ..by(method, seed)
        },
    };
    with_tier(config, || {
        let (world, db, model) = working(seed, safeguards);
        // Now and then all the time; or some of the last writes before a crash, of which one is a stamp.
        let late = seed % 2 == 1;
        work(&world, &db, &model, if late { 40 } else { 0 });
        settle(&world, &db)?;
        let rule = |skip, fault| Rule { operation: Operation::Write, purpose: None, skip, times: 1, fault };
        let rules: Vec<Rule> = match late {
            false => (0..12u64).map(|i| rule(23 * i + seed % 19, astray(seed + i))).collect(),
            true => (0..16).filter(|i| seed >> 1 >> (i % 5) & 1 == 1).map(|i| rule(i, Fault::Lose)).collect(),
        };
        rules.into_iter().for_each(|rule| world.devices[FLASH].inject(rule));
        work(&world, &db, &model, if late { 2 } else { 50 });
        let store = db.store().clone();
        world.sim.run(async move { store.checkpoint().await }).map_err(|e| e.to_string())?;
        let states = match late {
            true => vec![model.state_now()],
            false => vec![verify(&world, &db, &[model.state_now()])?],
        };
        drop(db);
        let (world, db, is, _) = reopen(seed, world.crash(Choice::None), &states, safeguards)?;
        go_on(&world, &db, &is).map(drop)
    })
}

fn astray(random: u64) -> Fault {
    match random % 4 {
        3 => Fault::Misdirect(4096 * (1 + random as i64 % 9)),
        _ => Fault::Lose,
    }
}

#[test]
fn a_device_that_lies_is_no_danger() {
    for seed in seeds() {
        let _replay = Replay(seed);
        for method in METHODS {
            lying(method, seed, Safeguards::all()).unwrap_or_else(|e| panic!("seed {seed}, {method:?}: {e}"));
        }
    }
}

/// A checkpoint, and the power goes: what was done is there.
fn crash_behind_a_checkpoint(
    seed: u64,
    (world, db, model): (World, Database, Model),
    safeguards: Safeguards,
) -> Result<(), String> {
    let store = db.store().clone();
    world.sim.run(async move { store.checkpoint().await }).map_err(|e| e.to_string())?;
    let state = model.state_now();
    drop(db);
    let (world, db, is, _) = reopen(seed, world.crash(Choice::None), &[state], safeguards)?;
    go_on(&world, &db, &is).map(drop)
}

/// A sync of the device fails shortly before a crash, and leaves unwritten what others wait for.
pub(crate) fn failing_syncs(method: Restart, seed: u64, safeguards: Safeguards) -> Result<(), String> {
    // Sectors of several partitions, or two of one.
    with_tier(FlashConfig { size: 400 * 4096, ..by(method, seed) }, || {
        let (world, db, model) = working(seed, safeguards);
        work(&world, &db, &model, 20);
        settle(&world, &db)?;
        let fault = Fault::Fail(ErrorKind::Medium("no".into()));
        let skip = seed / 3 % 8;
        world.devices[FLASH].inject(Rule { operation: Operation::Sync, purpose: None, skip, times: 1, fault });
        work(&world, &db, &model, 1 + seed as usize % 3);
        crash_behind_a_checkpoint(seed, (world, db, model), safeguards)
    })
}

#[test]
fn a_sync_that_fails_is_no_danger() {
    // One of these has found something.
    for seed in seeds().chain([108]) {
        let _replay = Replay(seed);
        for method in METHODS {
            failing_syncs(method, seed, Safeguards::all()).unwrap_or_else(|e| panic!("seed {seed}, {method:?}: {e}"));
        }
    }
}

/// The tier becomes smaller, on a device that keeps the room that it should give back; then it is as large as before.
pub(crate) fn smaller_for_a_while(method: Restart, seed: u64, safeguards: Safeguards) -> Result<(), String> {
    let (write, replacement) = (WritePolicy::Rotating, FlashOrder::Fifo);
    let config = FlashConfig { size: 600 * 4096, write, replacement, dirty_fraction: 1.0, ..by(method, seed) };
    with_tier(config.clone(), || {
        let (world, db, model) = working(seed, safeguards);
        world.devices[FLASH].inject(Rule {
            operation: Operation::Discard,
            purpose: None,
            skip: 0,
            times: u64::MAX,
            fault: Fault::Lose,
        });
        work(&world, &db, &model, 40 + seed as usize % 20);
        let (store, (_, device)) = (db.store().clone(), db.store().flash_config());
        let smaller = FlashConfig { size: 200 * 4096, ..config };
        world.sim.env().spawn("change", async move {
            store.set_flash(device, smaller).await.expect("a sound device");
        });
        work(&world, &db, &model, 10);
        settle(&world, &db)?;
        crash_behind_a_checkpoint(seed, (world, db, model), safeguards)
    })
}

#[test]
fn what_a_smaller_tier_leaves_behind_is_no_danger() {
    // One of these has found something.
    for seed in seeds().chain([272]) {
        let _replay = Replay(seed);
        for method in METHODS {
            let ran = smaller_for_a_while(method, seed, Safeguards::all());
            ran.unwrap_or_else(|e| panic!("seed {seed}, {method:?}: {e}"));
        }
    }
}

/// The power goes while a running tier gets another method, and the next start uses the one before. The device is slow,
/// and checkpoints follow each other.
fn changing(seed: u64) -> Result<(), String> {
    let [one, other] = METHODS;
    let method = METHODS[seed as usize % 2];
    let next = [if method == one { other } else { one }, Restart::Instant][seed as usize / 2 % 2];
    with_tier(by(method, seed), || {
        let ran = || {
            let (world, db, model) = working(seed, Safeguards::all());
            work(&world, &db, &model, 20);
            settle(&world, &db)?;
            let (store, (config, device)) = (db.store().clone(), db.store().flash_config());
            let (env, busy) = (world.sim.env(), db.store().clone());
            world.sim.env().spawn("checkpoints", async move {
                while busy.checkpoint().await.is_ok() {
                    env.sleep(Duration::from_micros(50)).await;
                }
            });
            let (env, other) = (world.sim.env(), FlashConfig { restart: next, ..config });
            world.sim.env().spawn("change", async move {
                env.sleep(Duration::from_micros(env.random_u64() % 10_000)).await;
                let _ = store.set_flash(device, other).await; // The power may go before it is done.
            });
            world.recorder.power_off_at(world.recorder.events() + 100 + world.sim.env().random_u64() % 1000);
            work(&world, &db, &model, 30);
            let events = world.recorder.events();
            drop(db);
            Ok::<_, String>((model.states_at(events), world.crash(Choice::Random(seed))))
        };
        let (states, images) = with_shape(|shape| shape.flash_read = 2_000_000, ran)?;
        let (world, db, is, _) = reopen(seed, images, &states, Safeguards::all())?;
        go_on(&world, &db, &is).map(drop)
    })
}

#[test]
fn a_change_of_method_is_no_danger() {
    // One of these has found something.
    for seed in seeds().chain([1396]) {
        let _replay = Replay(seed);
        changing(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
}

/// The device is gone at a start, and back at the next: then it is another life's.
#[test]
fn a_lost_device_is_no_danger() {
    for seed in seeds() {
        let _replay = Replay(seed);
        let lost = || -> Result<(), String> {
            let (world, db, model) = working(seed, Safeguards::all());
            work(&world, &db, &model, 40);
            settle(&world, &db)?;
            let state = model.state_now();
            drop(db);
            let mut images = world.crash(Choice::Random(seed));
            let left = std::mem::take(&mut images[FLASH]);
            let (world, db, is, found) = reopen(seed, images, &[state], Safeguards::all())?;
            assert_eq!(found.listed, 0, "there was nothing");
            let state = go_on(&world, &db, &is)?;
            drop(db);
            let mut images = world.crash(Choice::Random(seed));
            images[FLASH] = left;
            let (world, db, is, found) = reopen(seed, images, &[state], Safeguards::all())?;
            assert_eq!(found.listed, 0, "another life's");
            go_on(&world, &db, &is).map(drop)
        };
        for method in METHODS {
            with_tier(by(method, seed), lost).unwrap_or_else(|e| panic!("seed {seed}, {method:?}: {e}"));
        }
    }
}

/// Everything is home, and all that was held is found.
#[test]
fn a_clean_stop_is_clean_and_warm() {
    for method in METHODS {
        let (mut held, mut found) = (0, 0);
        for seed in 0..8 {
            let _replay = Replay(seed);
            with_tier(by(method, seed), || {
                let (world, db, model) = working(seed, Safeguards::all());
                work(&world, &db, &model, 40);
                settle(&world, &db).unwrap();
                let (state, used) = (model.state_now(), stats(&db).used);
                world.sim.run(db.close()).expect("a clean stop");
                let world = begin(seed, Some(world.crash(Choice::None)), Safeguards::all());
                let (db, report) = world.open_reported().expect("nothing is lost");
                assert!(report.storage.clean_shutdown, "seed {seed}, {method:?}");
                verify(&world, &db, &[state]).unwrap_or_else(|e| panic!("seed {seed}, {method:?}: {e}"));
                honest(&db).unwrap_or_else(|e| panic!("seed {seed}, {method:?}: {e}"));
                (held, found) = (held + used, found + report.storage.tier.current);
            });
        }
        println!("{method:?}: of {held} frames {found} were found");
        assert!(found * 10 > held * 8, "{method:?}: of {held} frames {found} were found");
    }
}

/// From one method to another, at a start and while it works: what one has left the next one finds, or leaves alone.
#[test]
fn methods_follow_each_other() {
    let mut current = 0;
    for seed in seeds() {
        let _replay = Replay(seed);
        let all = Restart::ALL;
        let mut images = None;
        let mut state = State::new();
        for round in 0..4 {
            let restart = all[(seed as usize + round * (1 + seed as usize / 4 % 3)) % all.len()];
            let next = all[(seed as usize + round + 1) % all.len()];
            let config = by(restart, seed);
            let seed = seed * 4 + round as u64;
            let ran = with_tier(config, || -> Result<(Vec<Image>, State), String> {
                let (world, db, model) = match images.take() {
                    None => working(seed, Safeguards::all()),
                    Some(images) => {
                        let (world, db, is) =
                            recover_with_crashes(seed, images, std::slice::from_ref(&state), seed % 2)?;
                        current += stats(&db).restored.current;
                        let model = Model::new(world.recorder.clone(), &is);
                        (world, db, model)
                    }
                };
                work(&world, &db, &model, 15);
                let (store, (config, device)) = (db.store().clone(), db.store().flash_config());
                if seed.is_multiple_of(3) {
                    let other = FlashConfig { restart: next, size: config.size / (1 + seed % 2), ..config };
                    world.sim.env().spawn("change", async move {
                        let _ = store.set_flash(device, other).await; // The power may go before it is done.
                    });
                }
                work(&world, &db, &model, 10);
                settle(&world, &db)?;
                let state = verify(&world, &db, &[model.state_now()])?;
                drop(db);
                Ok((world.crash(Choice::Random(seed)), state))
            });
            let (left, is) = ran.unwrap_or_else(|e| panic!("seed {seed}, {restart:?}: {e}"));
            (images, state) = (Some(left), is);
        }
        let images = images.expect("a round has been");
        with_tier(by(Restart::Instant, seed), || recover(seed, images, &[state], Safeguards::default()))
            .unwrap_or_else(|e| panic!("seed {seed}, at last: {e}"));
    }
    assert!(current > 0 || !many_seeds());
}
