//! One device that misbehaves while clients work: transfers and syncs that fail, writes that are lost or go astray,
//! sectors that cannot be read. What is answered is right, or it is an error; after a restart nothing acknowledged is
//! lost, or the opening is refused. (What nothing can notice: ARCHITECTURE section 4, "Devices that lie".)

use crate::flash::tier;
use crate::model::{Model, State, difference};
use crate::verify::{go_on, observe, recover, run_clients, set_up};
use crate::workload::Mix;
use crate::world::{DATA, FLASH, LOG, NAMES, UNDO, World, with_tier};
use crate::{Replay, many_seeds, seeds};
use std::time::Duration;
use terrace_device::fault::{Choice, Fault, Operation, Rule};
use terrace_device::{Device, ErrorKind, Image};
use terrace_engine::{Database, EngineError};
use terrace_storage::config::Safeguards;
use terrace_storage::home::PAGES_AT;

const PAGE: u64 = 4096;
/// What a statement may say of a device that fails, or of what it holds.
const CODES: [&str; 4] = ["58030", "57P01", "XX000", "XX001"];

fn mix() -> Mix {
    Mix { transactions: 40, long: 15, faults: true, damage: true, ..Mix::default() }
}

/// What the database says, where it says anything: wrong answers are failures.
fn look(world: &World, db: &Database, states: &[State]) -> Result<Option<State>, String> {
    let (env, d) = (world.sim.env(), db.clone());
    let looked = world.sim.run(async move {
        env.sleep(Duration::from_millis(50)).await;
        d.purge().await?;
        let is = observe(d.clone()).await?;
        Ok::<_, EngineError>((d.check().await?, is))
    });
    match looked {
        Ok((_, is)) if !states.contains(&is) => {
            Err(format!("wrong answers; from the first of {}: {:?}", states.len(), difference(&states[0], &is)))
        }
        // Where the database has failed, transactions neither end nor are undone.
        Ok((problems, _)) if !problems.is_empty() && db.failure().is_none() => {
            Err(format!("check found: {}", problems.join("; ")))
        }
        Ok((_, is)) => Ok(Some(is)),
        Err(e) if CODES.contains(&e.state.0) => Ok(None),
        Err(e) => Err(format!("an error of another kind: {e:?}")),
    }
}

/// Opens and looks; `None` where it is refused, or where redo finds out in the background that a page cannot be made:
/// the log's sealed segments are not read for an opening.
fn reopen(world: &World, states: &[State]) -> Result<Option<(Database, State)>, String> {
    match world.open() {
        Ok(db) => {
            let is = look(world, &db, states)?;
            let (env, d) = (world.sim.env(), db.clone());
            world.sim.run(async move {
                while d.store().pages_waiting() > 0 && d.failure().is_none() {
                    env.sleep(Duration::from_millis(100)).await;
                }
            });
            refused_for(db.failure())?;
            Ok(is.filter(|_| db.failure().is_none()).map(|is| (db, is)))
        }
        Err(e) => refused_for(Some(e)).map(|()| None),
    }
}

fn refused_for(why: Option<EngineError>) -> Result<(), String> {
    match why {
        Some(e) if !CODES.contains(&e.state.0) => Err(format!("refused with an error of another kind: {e:?}")),
        _ => Ok(()),
    }
}

/// A world with some transactions behind it, which `change` has shaped.
fn working(seed: u64, change: impl FnOnce(&mut World)) -> (World, Database, Model) {
    let mut world = World::new(seed, None, false);
    change(&mut world);
    let db = world.create().expect("creation on sound devices");
    let model = Model::new(world.recorder.clone(), &State::new());
    set_up(&world, &db, &model);
    run_clients(&world, &db, &model, 2, Mix { transactions: 8, ..Mix::default() }, || false);
    (world, db, model)
}

/// Everything stays in memory, and the log reaches back to the beginning.
fn roomy(world: &mut World) {
    world.config.pool_bytes = 1024 * PAGE as usize;
    world.config.redo_bound = 64 << 20;
    world.config.log_retention = 64 << 20;
    world.config.checkpoint_interval = Duration::from_secs(3600);
}

fn fails(operation: Operation, random: u64) -> Rule {
    let kind = match random % 2 {
        0 => ErrorKind::Io("no".into()),
        _ => ErrorKind::Medium("no".into()),
    };
    let (skip, times) = ((random >> 8) % 40, [1, 3, u64::MAX][(random >> 16) as usize % 3]);
    Rule { operation, purpose: None, skip, times, fault: Fault::Fail(kind) }
}

fn failing(device: usize, operation: Operation, seed: u64) -> Result<(), String> {
    let (world, db, model) = working(seed, |world| world.config.pool_bytes = 24 * PAGE as usize);
    let random = world.sim.env().random_u64();
    world.devices[device].inject(fails(operation, random));
    run_clients(&world, &db, &model, 2, mix(), || false);
    world.devices[device].clear_rules();
    let states = model.states_at(u64::MAX);
    let live = look(&world, &db, &states).map_err(|e| format!("live: {e}"))?;
    if device == FLASH && live.is_none() {
        return Err("the tier is not needed".into());
    }
    drop(db);
    let images = world.crash([Choice::None, Choice::Random(random), Choice::All][(random >> 32) as usize % 3]);
    failing_opening(device, seed, &images, &states)?;
    let (world, db, is) = recover(seed, images, &states, Safeguards::default())?;
    go_on(&world, &db, &is).map(drop)
}

/// The same while it is opened: it opens, or is refused, and what it shows is right.
fn failing_opening(device: usize, seed: u64, images: &[Image], states: &[State]) -> Result<(), String> {
    for (i, operation) in [Operation::Read, Operation::Write, Operation::Sync].into_iter().enumerate() {
        let world = World::new(seed + i as u64, Some(images.to_vec()), false);
        let rule = fails(operation, world.sim.env().random_u64());
        world.devices[device].inject(Rule { skip: rule.skip % 8, ..rule });
        let opened = reopen(&world, states).map_err(|e| format!("{operation:?} fails while it opens: {e}"))?;
        drop(opened);
        let left = world.crash(Choice::Random(seed));
        recover(seed, left, states, Safeguards::default()).map_err(|e| format!("after {operation:?} failed: {e}"))?;
    }
    Ok(())
}

/// Reads, writes and syncs of each device, once, a few times, or from then on.
#[test]
fn what_a_device_refuses_costs_no_answer_and_no_commit() {
    for seed in seeds() {
        let _replay = Replay(seed);
        for (device, name) in NAMES.iter().enumerate() {
            let operation = [Operation::Read, Operation::Write, Operation::Sync][(seed as usize + device) % 3];
            let run = || failing(device, operation, seed);
            let done = if device == FLASH { with_tier(tier(seed), run) } else { run() };
            done.unwrap_or_else(|e| panic!("seed {seed}, {operation:?} of {name}: {e}"));
        }
    }
}

/// Writes that succeed and do nothing, or go elsewhere.
fn astray(device: usize, seed: u64) -> Result<bool, String> {
    let (world, db, model) = working(seed, roomy);
    let random = world.sim.env().random_u64();
    let by = (1 + (random >> 40) % 6) as i64 * PAGE as i64;
    let fault = match random % 3 {
        0 => Fault::Lose,
        1 => Fault::Misdirect(by),
        _ => Fault::Misdirect(-by),
    };
    let skip = (random >> 8) % 60;
    world.devices[device].inject(Rule { operation: Operation::Write, purpose: None, skip, times: 1, fault });
    let mix = Mix { housekeeping: false, ..mix() };
    run_clients(&world, &db, &model, 2, mix, || false);
    // Others come behind it.
    world.devices[device].clear_rules();
    run_clients(&world, &db, &model, 1, Mix { transactions: 12, ..mix }, || false);
    let states = model.states_at(u64::MAX);
    look(&world, &db, &states).map_err(|e| format!("live: {e}"))?;
    drop(db);
    let world = World::new(seed, Some(world.crash(Choice::None)), false);
    let Some((db, is)) = reopen(&world, &states)? else { return Ok(false) };
    go_on(&world, &db, &is)?;
    Ok(true)
}

/// As far as the log reaches that restart repeats, it repairs what was lost, or refuses.
#[test]
fn a_lost_or_misdirected_write_is_repaired_or_refused() {
    let (mut repaired, mut refused) = ([0; NAMES.len()], [0; NAMES.len()]);
    for seed in seeds() {
        let _replay = Replay(seed);
        for (device, name) in NAMES.iter().enumerate() {
            let run = || astray(device, seed);
            let done = if device == FLASH { with_tier(tier(seed), run) } else { run() };
            match done.unwrap_or_else(|e| panic!("seed {seed}, {name}: {e}")) {
                true => repaired[device] += 1,
                false => refused[device] += 1,
            }
        }
    }
    println!("repaired {repaired:?}, refused {refused:?}");
    assert!(refused[LOG] > 0 || !many_seeds(), "no hole in the log was ever noticed");
    assert_eq!(refused[FLASH], 0, "the tier is not needed");
}

/// Sectors of pages become unreadable, or full of garbage, while clients work: with enough log nobody notices but the
/// statistics.
#[test]
fn unreadable_sectors_under_load_are_repaired() {
    let mut repaired = 0;
    for seed in 40..52 {
        let _replay = Replay(seed);
        let (world, db, model) = working(seed, |world| {
            world.config.log_retention = 64 << 20;
            world.config.pool_bytes = 20 * PAGE as usize;
        });
        let (env, devices) = (world.sim.env(), world.devices.clone());
        world.sim.env().spawn("scratches", async move {
            loop {
                env.sleep(Duration::from_micros(env.random_u64() % 3000)).await;
                for place in [DATA, DATA, DATA, UNDO] {
                    let upto = devices[place].size().min(PAGES_AT + (512 << 10));
                    if upto <= PAGES_AT {
                        continue;
                    }
                    let at = PAGES_AT + env.random_u64() % (upto - PAGES_AT);
                    match env.random_u64() % 3 {
                        0 => devices[place].scramble(at, (upto - at).min(3000) as usize, at),
                        _ => devices[place].spoil(at, 1),
                    }
                }
            }
        });
        run_clients(&world, &db, &model, 3, Mix { transactions: 60, long: 50, ..Mix::default() }, || false);
        let is = look(&world, &db, &[model.state_now()]).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert!(is.is_some(), "seed {seed}: an error");
        repaired += db.store().pool().stats().repaired;
    }
    assert!(repaired > 10, "{repaired} pages were repaired");
}

/// Sectors that cannot be read when a database is opened, on each device: it shows what it should, or refuses.
#[test]
fn unreadable_sectors_at_rest_are_repaired_or_refused() {
    let (mut repaired, mut refused) = ([0; NAMES.len()], [0; NAMES.len()]);
    for seed in seeds() {
        let _replay = Replay(seed);
        let (world, db, model) = working(seed, roomy);
        run_clients(&world, &db, &model, 2, Mix { transactions: 20, long: 15, ..Mix::default() }, || false);
        let state = model.state_now();
        let random = world.sim.env().random_u64();
        drop(db);
        let images = world.crash(Choice::None);
        for (device, name) in NAMES.iter().enumerate().filter(|(device, _)| *device != FLASH) {
            let mut images = images.clone();
            let size = images[device].size();
            for i in 0..1 + random % 3 {
                images[device].spoil((random >> (8 + 8 * i)).wrapping_mul(0x9e37_79b9) % size, 1);
            }
            let world = World::new(seed, Some(images), false);
            match reopen(&world, std::slice::from_ref(&state)) {
                Ok(Some((db, is))) => {
                    go_on(&world, &db, &is).unwrap_or_else(|e| panic!("seed {seed}, {name}: {e}"));
                    repaired[device] += 1;
                }
                Ok(None) => refused[device] += 1,
                Err(e) => panic!("seed {seed}, {name}: {e}"),
            }
        }
    }
    println!("repaired {repaired:?}, refused {refused:?}");
    assert!(repaired[DATA] > 0 && repaired[UNDO] > 0 || !many_seeds(), "{repaired:?}");
}
