//! Runs that each draw some features and some faults (Groce et al., "Swarm testing", 2012): pages of 4 to 32 KiB, a
//! column of every type, indexes over several columns, keys so wide that trees split and shrink, ALTER and TRUNCATE,
//! commits that are not waited for, reads that are torn over writes in flight; syncs that fail, with or without the
//! cache, and processes that die with the machine alive. After each death another process goes on with what can be
//! read, and then the power goes.

use crate::faults::gremlin;
use crate::flash::tier;
use crate::model::{Model, State};
use crate::verify::{go_on, recover, recover_with_crashes, run_clients, set_up_for, settle, verify};
use crate::workload::Mix;
use crate::world::{NAMES, Shape, World, with_shape, with_tier};
use crate::{Replay, seeds};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;
use terrace_device::fault::{Choice, Fault, Operation, Recorder, Rule};
use terrace_device::{ErrorKind, Image};
use terrace_engine::Database;
use terrace_storage::FlashConfig;
use terrace_storage::config::Safeguards;

/// Deaths per seed.
const ROUNDS: u64 = 3;

struct Swarm {
    page_size: usize,
    torn_reads: bool,
    mix: Mix,
    /// Processes die rather than machines.
    dies: bool,
    /// A sync fails, of the device of this number.
    sync_fails: Option<(usize, Fault)>,
}

impl Swarm {
    fn draw(seed: u64) -> Swarm {
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x5172);
        let page_size = [4096, 4096, 8192, 16384, 32768][random.random_range(0..5)];
        let sync_fails = random.random_bool(0.4).then(|| {
            let fault = match random.random_bool(0.3) {
                true => Fault::DropCache,
                false => Fault::Fail(ErrorKind::Medium("sync".into())),
            };
            (random.random_range(0..NAMES.len() - 1), fault)
        });
        let mix = Mix {
            transactions: 60,
            ddl: random.random_range(0..12),
            long: random.random_range(0..10),
            faults: sync_fails.is_some() || random.random_bool(0.2),
            types: random.random_bool(0.5),
            wide: if random.random_bool(0.5) { page_size / 6 } else { 0 },
            alter: random.random_bool(0.5),
            lazy: if random.random_bool(0.4) { 30 } else { 0 },
            ..Mix::default()
        };
        Swarm { page_size, torn_reads: random.random_bool(0.5), mix, dies: random.random_bool(0.5), sync_fails }
    }
}

/// The process dies, and another goes on with what can be read: all of that is to stay, once the second has made
/// something durable.
fn second_life(world: &World, model: &Model, seed: u64) -> Result<State, String> {
    let events = world.recorder.events();
    world.sim.crash();
    let cut = seed.is_multiple_of(2).then_some(seed);
    world.devices.iter().for_each(|d| d.set_capacity(u64::MAX));
    Recorder::process_died(world.devices.iter().map(|d| &**d), cut);
    let db = world.open().map_err(|e| format!("the second life: open failed: {e}"))?;
    let is = verify(world, &db, &model.states_at(events)).map_err(|e| format!("the second life: {e}"))?;
    let is = go_on(world, &db, &is).map_err(|e| format!("the second life: {e}"))?;
    let store = db.store().clone();
    world.sim.run(async move { store.checkpoint().await }).map_err(|e| format!("the second life: {e}"))?;
    Ok(is)
}

fn begin(seed: u64, images: Option<Vec<Image>>, state: &mut State) -> Result<(World, Database), String> {
    let Some(images) = images else {
        let world = World::new(seed, None, false);
        let db = world.create().map_err(|e| format!("create failed: {e}"))?;
        return Ok((world, db));
    };
    let (world, db, is) = recover_with_crashes(seed, images, std::slice::from_ref(state), seed % 3)?;
    *state = is;
    Ok((world, db))
}

fn round(swarm: &Swarm, seed: u64, images: Option<Vec<Image>>, state: &mut State) -> Result<Vec<Image>, String> {
    let first = images.is_none();
    let (world, db) = begin(seed, images, state)?;
    let (random, model) = (world.sim.env().random_u64(), Model::new(world.recorder.clone(), state));
    if first {
        set_up_for(&world, &db, &model, swarm.mix);
    }
    world.recorder.power_off_at(world.recorder.events() + 20 + (random >> 24) % 2500);
    if swarm.mix.faults {
        gremlin(&world, random >> 32);
    }
    if let Some((device, fault)) = swarm.sync_fails.clone() {
        let skip = random % 60;
        world.devices[device].inject(Rule { operation: Operation::Sync, purpose: None, skip, times: 1, fault });
    }
    run_clients(&world, &db, &model, 1 + (random >> 40) as usize % 4, swarm.mix, || false);
    let events = world.recorder.events();
    if !world.recorder.is_off() && !swarm.mix.faults {
        // The power may go any time.
        let sound = settle(&world, &db).and_then(|()| verify(&world, &db, &[model.state_now()]));
        if !world.recorder.is_off() {
            sound.map_err(|e| format!("live: {e}"))?;
        }
    }
    let off = world.recorder.is_off();
    drop(db);
    world.recorder.power_off_at(u64::MAX);
    let choice = [Choice::Random(random), Choice::None, Choice::OnlyLast][random as usize / 7 % 3];
    let states = match swarm.dies && !off {
        true => vec![second_life(&world, &model, random)?],
        false => model.states_at(events),
    };
    let left = world.crash(choice);
    let (_, db, is) = recover(seed, left.clone(), &states, Safeguards::default())?;
    drop(db);
    *state = is;
    Ok(left)
}

fn run(seed: u64) -> Result<(), String> {
    let swarm = Swarm::draw(seed);
    let mut state = State::new();
    let mut images = None;
    for number in 0..ROUNDS {
        let seed = seed.wrapping_mul(ROUNDS).wrapping_add(number);
        let left = round(&swarm, seed, images.take(), &mut state).map_err(|e| format!("round {number}: {e}"))?;
        images = Some(left);
    }
    let images = images.expect("a round has been");
    let (world, db, is) = recover(seed, images, &[state], Safeguards::default())?;
    go_on(&world, &db, &is).map(|_| ())
}

pub(crate) fn shaped(seed: u64) -> Result<(), String> {
    let swarm = Swarm::draw(seed);
    with_shape(|shape| (shape.page_size, shape.torn_reads) = (swarm.page_size, swarm.torn_reads), || run(seed))
}

#[test]
fn random_features_and_faults() {
    for seed in seeds() {
        let _replay = Replay(seed);
        shaped(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
}

/// The same with a flash tier, of as many pages whatever their size.
pub(crate) fn over_a_tier(seed: u64) -> Result<(), String> {
    let config = tier(seed);
    let size = config.size / 4096 * Swarm::draw(seed).page_size as u64;
    with_tier(FlashConfig { size, ..config }, || shaped(seed))
}

#[test]
fn random_features_and_faults_over_a_tier() {
    for seed in seeds() {
        let _replay = Replay(seed);
        over_a_tier(seed).unwrap_or_else(|e| panic!("seed {seed}, with flash: {e}"));
    }
}

/// A restart is to be so short that a warm tier takes all but a few dirty pages early.
#[test]
fn random_features_and_early_writes() {
    for seed in seeds() {
        let _replay = Replay(seed);
        let early = |shape: &mut Shape| shape.restart_target = Some(Duration::from_millis(2));
        with_shape(early, || over_a_tier(seed)).unwrap_or_else(|e| panic!("seed {seed}, early: {e}"));
    }
}
