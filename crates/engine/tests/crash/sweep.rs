//! Crash sweeps: the events of a short history are recorded, and after *each* of them the database is recovered from
//! what the media may hold then: none, all, the last alone, or random subsets of the unsynced writes, and all with the
//! last one torn at each sector.

use crate::model::{Model, State};
use crate::verify::{go_on, recover, recover_with_crashes, run_clients, set_up};
use crate::workload::Mix;
use crate::world::World;
use crate::{Replay, seeds};
use terrace_device::fault::{Choice, Cursor};
use terrace_storage::config::Safeguards;

#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// Writes and syncs in the history, about.
    pub(crate) writes: u64,
    pub(crate) mix: Mix,
    pub(crate) clients: usize,
    pub(crate) safeguards: Safeguards,
    /// Every so many cases goes on working, and crashes in recovery.
    pub(crate) deeper: u64,
}

/// Records a history and crashes at each of its points. Returns the number of cases.
pub(crate) fn sweep(plan: Plan) -> Result<u64, String> {
    let world = World::new(plan.seed, None, true).without(plan.safeguards);
    let db = world.create().map_err(|e| format!("create failed: {e}"))?;
    let model = Model::new(world.recorder.clone(), &State::new());
    set_up(&world, &db, &model);
    let created = world.recorder.events();
    let devices = world.devices.clone();
    let count =
        move || devices.iter().map(|d| terrace_device::Device::stats(&**d)).map(|s| s.writes + s.syncs).sum::<u64>();
    let before = count();
    run_clients(&world, &db, &model, plan.clients, plan.mix, move || count() - before >= plan.writes);
    let history = world.recorder.history().expect("it was kept");
    drop(db);
    world.crash(Choice::All);

    let mut cursor = history.cursor();
    let mut cases = 0;
    loop {
        if cursor.position() as u64 >= created {
            let states = model.states_at(cursor.position() as u64);
            for choice in choices(&cursor, plan.seed) {
                cases += 1;
                let at = |e| format!("after event {} of {}, {choice:?}: {e}", cursor.position(), history.len());
                case(&plan, &cursor, choice, &states, cases).map_err(at)?;
            }
        }
        if !cursor.advance() {
            return Ok(cases);
        }
    }
}

fn choices(cursor: &Cursor, seed: u64) -> Vec<Choice> {
    if cursor.unsettled() == 0 {
        return vec![Choice::All];
    }
    let mut choices = vec![Choice::None, Choice::All];
    if cursor.at_write() {
        let random = |i: u64| Choice::Random(seed ^ (cursor.position() as u64) << 8 ^ i);
        choices.extend([Choice::OnlyLast, random(0), random(1)]);
        choices.extend((1..cursor.last_write_units()).map(Choice::Torn));
    }
    choices
}

fn case(plan: &Plan, cursor: &Cursor, choice: Choice, states: &[State], number: u64) -> Result<(), String> {
    let seed = plan.seed.wrapping_add(number << 20);
    let images = cursor.contents(choice);
    if number.is_multiple_of(plan.deeper) {
        let (world, db, state) = recover_with_crashes(seed, images, states, 2)?;
        let state = go_on(&world, &db, &state)?;
        drop(db);
        return recover(seed, world.crash(Choice::Random(seed)), &[state], plan.safeguards).map(|_| ());
    }
    recover(seed, images, states, plan.safeguards).map(|_| ())
}

fn sweep_all(first: u64, plan: impl Fn(u64) -> Plan) {
    // The default is one history; the long run has one for each hundred seeds.
    let seeds = seeds();
    let count = if seeds.end - seeds.start == 1 { 1 } else { (seeds.end - seeds.start).div_ceil(100) };
    for i in 0..count {
        let seed = if count == 1 && seeds.start > 0 { seeds.start } else { first + i };
        let _replay = Replay(seed);
        let cases = sweep(plan(seed)).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        println!("seed {seed}: {cases} crashes");
    }
}

fn plan(seed: u64, writes: u64) -> Plan {
    Plan { seed, writes, mix: Mix::default(), clients: 2, safeguards: Safeguards::default(), deeper: 40 }
}

#[test]
fn rows_and_indexes() {
    sweep_all(1, |seed| Plan { mix: Mix { ddl: 2, ..Mix::default() }, ..plan(seed, 500) });
}

#[test]
fn definitions() {
    sweep_all(1001, |seed| Plan { mix: Mix { ddl: 40, ..Mix::default() }, clients: 1, ..plan(seed, 400) });
}

#[test]
fn long_rows() {
    sweep_all(2001, |seed| Plan { mix: Mix { long: 60, ..Mix::default() }, ..plan(seed, 300) });
}

/// A crash while a database is made leaves one that is whole and empty, or one that `open` refuses and `create` may
/// overwrite.
#[test]
fn creation() {
    for seed in 0..2 {
        let _replay = Replay(seed);
        let world = World::new(seed, None, true);
        drop(world.create().expect("creation on sound devices"));
        let history = world.recorder.history().expect("it was kept");
        world.crash(Choice::All);
        let mut cursor = history.cursor();
        let mut opened = 0;
        loop {
            for choice in choices(&cursor, seed) {
                let images = cursor.contents(choice);
                let what = format!("seed {seed}, after event {} of {}, {choice:?}", cursor.position(), history.len());
                let world = World::new(seed, Some(images.clone()), false);
                match world.open() {
                    Ok(db) => {
                        opened += 1;
                        crate::verify::verify(&world, &db, &[State::new()]).unwrap_or_else(|e| panic!("{what}: {e}"));
                        go_on(&world, &db, &State::new()).unwrap_or_else(|e| panic!("{what}: {e}"));
                    }
                    Err(_) => {
                        assert!(cursor.position() < history.len(), "{what}: creation was done");
                        let world = World::new(seed, Some(images), false);
                        let db = world.create().unwrap_or_else(|e| panic!("{what}: cannot be made anew: {e}"));
                        go_on(&world, &db, &State::new()).unwrap_or_else(|e| panic!("{what}, made anew: {e}"));
                    }
                }
            }
            if !cursor.advance() {
                break;
            }
        }
        assert!(opened > 0);
    }
}
