//! Devices that fail while the database runs: what may fail fails with the right code, and nothing acknowledged is
//! lost.

use crate::model::{Model, State};
use crate::verify::{go_on, observe, recover, run_clients, set_up, settle, verify};
use crate::workload::Mix;
use crate::world::{DATA, LOG, UNDO, World};
use std::time::Duration;
use terrace_device::fault::{Choice, Fault, Operation, Rule};
use terrace_device::{Device, ErrorKind, Purpose};
use terrace_engine::{Database, EngineError, Isolation};
use terrace_storage::config::Safeguards;

/// Trouble in the background of a random run: devices fill up for a while, or the log's sync fails once.
pub(crate) fn gremlin(world: &World, choice: u64) {
    let (env, devices) = (world.sim.env(), world.devices.clone());
    let full = [DATA, LOG, UNDO][choice as usize % 3];
    let sync_fails = (choice / 3).is_multiple_of(4);
    world.sim.env().spawn("gremlin", async move {
        for _ in 0..3 {
            env.sleep(Duration::from_micros(500 + env.random_u64() % 20_000)).await;
            devices[full].set_capacity(devices[full].size());
            env.sleep(Duration::from_micros(500 + env.random_u64() % 20_000)).await;
            devices[full].set_capacity(u64::MAX);
        }
        if sync_fails {
            let fault = Fault::Fail(ErrorKind::Io("sync".into()));
            devices[LOG].inject(Rule {
                operation: Operation::Sync,
                purpose: Some(Purpose::Log),
                skip: 0,
                times: 1,
                fault,
            });
        }
    });
}

fn working(seed: u64, transactions: usize) -> (World, Database, Model) {
    let world = World::new(seed, None, false);
    let db = world.create().expect("creation on sound devices");
    let model = Model::new(world.recorder.clone(), &State::new());
    set_up(&world, &db, &model);
    run_clients(&world, &db, &model, 2, Mix { transactions, ..Mix::default() }, || false);
    settle(&world, &db).unwrap();
    (world, db, model)
}

/// Statements fail with 53100, the server stays up, and goes on when there is room.
#[test]
fn full_devices_fail_statements_only() {
    for (device, seed) in [(DATA, 1), (LOG, 2), (UNDO, 3)] {
        let (world, db, model) = working(seed, 20);
        world.devices[device].set_capacity(world.devices[device].size());
        let mix = Mix { transactions: 120, long: 30, faults: true, ..Mix::default() };
        run_clients(&world, &db, &model, 2, mix, || false);
        world.devices[device].set_capacity(u64::MAX);
        settle(&world, &db).unwrap_or_else(|e| panic!("{}: {e}", crate::world::NAMES[device]));
        let states = model.states_at(u64::MAX);
        let state = verify(&world, &db, &states).unwrap_or_else(|e| panic!("{}: {e}", crate::world::NAMES[device]));
        let state = go_on(&world, &db, &state).unwrap();
        drop(db);
        recover(seed, world.crash(Choice::None), &[state], Safeguards::default()).unwrap();
    }
}

/// A failed log sync is never retried: the database stops, and opening it again recovers what was acknowledged.
#[test]
fn a_failed_log_sync_stops_the_database() {
    for seed in 1..5 {
        let (world, db, model) = working(seed, 10);
        let fault = Fault::Fail(ErrorKind::Io("no".into()));
        let rule = Rule { operation: Operation::Sync, purpose: Some(Purpose::Log), skip: seed, times: 1, fault };
        world.devices[LOG].inject(rule);
        run_clients(&world, &db, &model, 2, Mix { faults: true, ..Mix::default() }, || false);
        let d = db.clone();
        let refused: EngineError = world.sim.run(async move {
            let mut txn = d.begin(Isolation::ReadCommitted);
            txn.create_table(crate::workload::spec("late")).await.expect_err("the log is gone")
        });
        assert!(["58030", "XX000", "57P01"].contains(&refused.state.0), "{refused:?}");
        let events = world.recorder.events();
        drop(db);
        for choice in [Choice::None, Choice::Random(seed), Choice::All] {
            let images = {
                world.recorder.power_off();
                world.recorder.contents(choice)
            };
            let (world, db, state) = recover(seed, images, &model.states_at(events), Safeguards::default()).unwrap();
            go_on(&world, &db, &state).unwrap();
        }
    }
}

/// A definition whose commit has an unknown outcome: who waited for the lock of definitions hears that the database has
/// stopped.
#[test]
fn definitions_behind_a_commit_of_unknown_outcome_are_refused() {
    let (world, db, _) = working(3, 5);
    let fault = Fault::Fail(ErrorKind::Io("no".into()));
    world.devices[LOG].inject(Rule { operation: Operation::Sync, purpose: None, skip: 0, times: 1, fault });
    let states = world.sim.run(async move {
        let table = db.catalog().table("a").cloned().expect("set up");
        let mut first = db.begin(Isolation::ReadCommitted);
        first.drop_table(&table).await.expect("nothing fails yet");
        let second = async {
            let mut txn = db.begin(Isolation::ReadCommitted);
            txn.begin_statement();
            txn.drop_column(&table, 3).await.map(drop)
        };
        let (first, second) = futures::join!(first.commit(), second);
        [first, second].map(|refused| refused.expect_err("the log is gone").state.0)
    });
    assert_eq!(states, ["58030", "58030"]);
}

/// A byte that changes on a data page is found when the page is read; the page is made again from the log, or the error
/// names it.
#[test]
fn bit_rot_is_repaired_or_named() {
    let (world, db, model) = working(7, 40);
    let state = model.state_now();
    assert!(state.values().any(|t| t.rows.len() > 3), "nothing to spoil");
    world.sim.run(db.close()).expect("a clean shutdown");
    let images = world.crash(Choice::None);
    let mut repaired = 0;
    let pages = (images[DATA].size() - terrace_storage::home::PAGES_AT) / 4096;
    for page in 0..pages {
        let at = terrace_storage::home::PAGES_AT + page * 4096;
        let mut bytes = [0; 4096];
        images[DATA].read(at, &mut bytes);
        if bytes.iter().all(|b| *b == 0) {
            continue;
        }
        // After opening, which repairs what the double-write area has a copy of.
        let world = World::new(page, Some(images.clone()), false);
        let db = world.open().expect("nothing is spoilt yet");
        world.devices[DATA].flip(at + 100, 0x10);
        match world.sim.run(observe(db.clone())) {
            Err(e) => {
                assert_eq!(e.state.0, "XX001", "{e}");
                assert!(e.message.contains(&format!("page 1:{page} of tablespace data ")), "page {page}: {e}");
            }
            // Repaired; or a page that no row and no entry lies on; or one that was in memory.
            Ok(is) => {
                assert!(is == state, "page {page}: wrong contents, unnoticed");
                repaired += db.store().pool().stats().repaired;
            }
        }
    }
    assert!(repaired > 0, "of {pages} pages none mattered");
}

/// Bytes change on data and undo pages while clients work: with enough log nobody notices but the statistics.
#[test]
fn bit_rot_under_load_is_repaired() {
    let mut repaired = 0;
    for seed in 20..32 {
        let mut world = World::new(seed, None, false);
        world.config.log_retention = 64 << 20;
        world.config.pool_bytes = 20 * 4096;
        let db = world.create().expect("creation on sound devices");
        let model = Model::new(world.recorder.clone(), &State::new());
        set_up(&world, &db, &model);
        let (env, devices) = (world.sim.env(), world.devices.clone());
        world.sim.env().spawn("rot", async move {
            loop {
                env.sleep(Duration::from_micros(env.random_u64() % 3000)).await;
                for place in [DATA, DATA, DATA, DATA, UNDO] {
                    let (device, from) = (&devices[place], terrace_storage::home::PAGES_AT);
                    // Most pages in use lie in front.
                    let upto = device.size().min(from + (512 << 10));
                    if upto > from {
                        device.flip(from + env.random_u64() % (upto - from), 1 << (env.random_u64() % 8));
                    }
                }
            }
        });
        run_clients(&world, &db, &model, 3, Mix { transactions: 60, long: 50, ..Mix::default() }, || false);
        settle(&world, &db).unwrap();
        verify(&world, &db, &[model.state_now()]).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        repaired += db.store().pool().stats().repaired;
    }
    assert!(repaired > 10, "{repaired} pages were repaired");
}
