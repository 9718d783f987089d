//! The same histories with a flash tier between memory and disk: every write policy and replacement order, a device
//! that fails, rots, loses writes and dies. Whatever happens to it, no page is stale and no commit is lost.

use crate::model::{Model, State};
use crate::sweep::{Plan, sweep};
use crate::verify::{go_on, recover, run_clients, set_up, settle, verify};
use crate::workload::Mix;
use crate::world::{FLASH, World, with_tier};
use crate::{Replay, many_seeds, seeds};
use std::time::Duration;
use terrace_device::fault::{Choice, Fault, Operation, Rule};
use terrace_device::{Device, ErrorKind, Purpose};
use terrace_engine::Database;
use terrace_storage::config::{Classify, FlashOrder, Safeguards, WritePolicy};
use terrace_storage::{FlashConfig, FlashState, FlashStats};

/// Small enough to be full, at other thresholds for other seeds; every write policy with every replacement order that
/// it goes with.
pub(crate) fn tier(seed: u64) -> FlashConfig {
    let (write, replacement) = pair(seed);
    FlashConfig {
        size: [24, 80, 160, 400][seed as usize / 2 % 4] * 4096,
        write,
        replacement,
        dirty_fraction: [0.1, 0.5, 0.9, 1.0][seed as usize / 6 % 4],
        fill_threshold: [0.95, 0.0][seed as usize / 5 % 2],
        throttle_queue_depth: [100, 3][seed as usize / 7 % 2],
        cleaning_batch: [32, 4][seed as usize / 2 % 2],
        expanded_read: [8, 1][seed as usize / 4 % 2],
        classify: [Classify::Declared, Classify::ReadAhead, Classify::Distance][seed as usize / 3 % 3],
        ..FlashConfig::default()
    }
}

/// All combinations in turn: successive seeds have different write policies.
pub(crate) fn pairs() -> Vec<(WritePolicy, FlashOrder)> {
    let all = FlashOrder::ALL.into_iter().flat_map(|order| WritePolicy::ALL.map(|write| (write, order)));
    all.filter(|(write, order)| write.with(*order).is_ok()).collect()
}

fn pair(seed: u64) -> (WritePolicy, FlashOrder) {
    let pairs = pairs();
    pairs[seed as usize % pairs.len()]
}

/// A write policy that leaves dirty pages in the tier, every second time.
fn often_lazy(seed: u64) -> WritePolicy {
    [WritePolicy::LazyCleaning, tier(seed).write][seed as usize % 2]
}

/// As `tier`, with a write policy that goes with the order.
fn lazier(seed: u64) -> FlashConfig {
    let config = FlashConfig { write: often_lazy(seed), ..tier(seed) };
    if config.write.with(config.replacement).is_ok() { config } else { tier(seed) }
}

#[test]
fn random_crashes() {
    for seed in seeds() {
        let _replay = Replay(seed);
        with_tier(tier(seed), || crate::random::run(seed)).unwrap_or_else(|e| panic!("seed {seed}, with flash: {e}"));
    }
}

#[test]
fn crashes_at_every_write() {
    // One sweep of an order that the seed chooses for each write policy that leaves dirty pages, and one of another.
    for (seed, tier_seed) in [(3001, 2), (3003, 12), (3005, 1 + 8), (3007, 20), (3009, 22)] {
        let _replay = Replay(seed);
        let plan = Plan {
            seed,
            writes: 250,
            mix: Mix { ddl: 4, ..Mix::default() },
            clients: 2,
            safeguards: Safeguards::default(),
            deeper: 40,
        };
        let cases = with_tier(tier(tier_seed), || sweep(plan)).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        println!("seed {seed}: {cases} crashes");
    }
}

pub(crate) fn stats(db: &Database) -> FlashStats {
    db.store().flash().expect("there is a tier")
}

pub(crate) fn working(seed: u64, transactions: usize) -> (World, Database, Model) {
    let mut world = World::new(seed, None, false);
    // Tables that memory does not hold, and a log that lets dirty frames stay.
    world.config.pool_bytes = 24 * 4096;
    world.config.redo_bound = 1 << 20;
    world.config.log_retention = 2 << 20;
    let db = world.create().expect("creation on sound devices");
    let model = Model::new(world.recorder.clone(), &State::new());
    set_up(&world, &db, &model);
    run_clients(&world, &db, &model, 2, Mix { transactions, long: 20, ..Mix::default() }, || false);
    (world, db, model)
}

/// What the tier is for happens in these histories: pages are let in, served, changed, brought home.
#[test]
fn the_tier_is_used() {
    let mut all = Vec::new();
    for seed in 0..pairs().len() as u64 {
        let _replay = Replay(seed);
        let config = FlashConfig { size: 80 * 4096, fill_threshold: 0.95, throttle_queue_depth: 100, ..tier(seed) };
        let (write, order) = (config.write, config.replacement);
        with_tier(config, || {
            let (world, db, model) = working(seed, 80);
            settle(&world, &db).unwrap();
            verify(&world, &db, &[model.state_now()]).unwrap();
            let now = stats(&db);
            let now_in = format!("seed {seed}, {write:?} with {order:?}: {now:?}");
            assert!(now.hits > 100 && now.admitted_clean + now.admitted_dirty > 20, "{now_in}");
            assert!(now.invalidated > 10 || write == WritePolicy::Exclusive, "{now_in}");
            assert_eq!((now.bad_frames, now.replayed, now.device_errors), (0, 0, 0), "{now_in}");
            assert_eq!(now.taken_over > 10, write == WritePolicy::Exclusive, "{now_in}");
            match order {
                FlashOrder::Temperature => {} // Only a full tier keeps a page out.
                FlashOrder::Lrfu => {}        // Where it is wanted as much as what is there, a page comes in.
                FlashOrder::Lru2 | FlashOrder::Lru2History | FlashOrder::Fifo => {
                    assert_eq!(now.rejected_cold, 0, "{now_in}")
                }
            }
            // TAC writes a dirty page where it kept the frame, which it seldom did for one that was in memory until
            // then.
            if write != WritePolicy::Tac {
                assert_eq!(now.admitted_dirty > 0, write != WritePolicy::CleanWrite, "{now_in}");
            }
            all.push(now);
            world.sim.run(db.close()).expect("a clean shutdown");
        });
    }
    assert!(all.iter().any(|s| s.evicted > 10) && all.iter().any(|s| s.cleaned > 10), "{all:?}");
    let cold = all.iter().filter(|s| s.replacement == FlashOrder::Temperature && s.rejected_cold > 0).count();
    assert!(cold >= 4, "{cold} write policies kept colder pages out: {all:?}");
}

/// Reads and writes that fail, bytes that rot on the way, writes that are lost: noticed every time, and made good.
#[test]
fn a_bad_device_costs_no_data() {
    let mut made_again = 0;
    for seed in seeds() {
        let _replay = Replay(seed);
        with_tier(lazier(seed), || {
            let (world, db, model) = working(seed, 20);
            let rule = |operation, skip, fault| {
                world.devices[FLASH].inject(Rule { operation, purpose: Some(Purpose::Flash), skip, times: 3, fault });
            };
            for i in 0..6 {
                rule(Operation::Write, 9 * i + seed % 5, Fault::Lose);
                rule(Operation::Write, 11 * i + 2, Fault::Fail(ErrorKind::Io("write".into())));
                rule(Operation::Read, 13 * i + 1, Fault::Garble(2));
                rule(Operation::Read, 17 * i + 3, Fault::Fail(ErrorKind::Io("read".into())));
            }
            run_clients(&world, &db, &model, 2, Mix { transactions: 60, long: 20, ..Mix::default() }, || false);
            settle(&world, &db).unwrap();
            let state = verify(&world, &db, &[model.state_now()]).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            made_again += stats(&db).replayed;
            let state = go_on(&world, &db, &state).unwrap();
            drop(db);
            recover(seed, world.crash(Choice::None), &[state], Safeguards::default())
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        });
    }
    assert!(made_again > 0 || !many_seeds(), "no dirty page was ever made again");
}

/// The device dies under load: the database goes on, and says so; a crash later loses nothing either.
#[test]
fn the_device_may_die() {
    let mut made_again = 0;
    for seed in seeds() {
        let _replay = Replay(seed);
        with_tier(lazier(seed), || {
            let (world, db, model) = working(seed, 20);
            let (env, device) = (world.sim.env(), world.devices[FLASH].clone());
            env.clone().spawn("death", async move {
                env.sleep(Duration::from_micros(200 + env.random_u64() % 20_000)).await;
                device.kill();
            });
            run_clients(&world, &db, &model, 2, Mix { transactions: 60, long: 20, ..Mix::default() }, || false);
            settle(&world, &db).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let state = verify(&world, &db, &[model.state_now()]).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let state = go_on(&world, &db, &state).unwrap();
            let store = db.store().clone();
            world.sim.run(async move { store.checkpoint().await }).unwrap();
            let now = stats(&db);
            if world.devices[FLASH].stats().writes > 0 && now.state == FlashState::Failed {
                assert!(now.problem.is_some() && now.dirty == 0, "seed {seed}: {now:?}");
            }
            made_again += now.replayed;
            drop(db);
            recover(seed, world.crash(Choice::Random(seed)), &[state], Safeguards::default())
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        });
    }
    assert!(made_again > 0 || !many_seeds(), "no dirty page was ever made again");
}

/// A device without room, or without life, leaves the database as if there were no tier.
#[test]
fn a_device_that_cannot_start_is_left_out() {
    with_tier(tier(0), || {
        let world = World::new(1, None, false);
        world.devices[FLASH].set_capacity(4096);
        let db = world.create().expect("the tier is not needed");
        assert_eq!(stats(&db).state, FlashState::Failed);
        go_on(&world, &db, &State::new()).unwrap();
        world.sim.run(db.close()).unwrap();
    });
}
