//! The flash tier switched on, off, larger, smaller, to other write policies and replacement orders while clients work,
//! with crashes in the middle: no page is stale, no commit is lost, and what need not go stays.

use crate::flash::{pairs, stats, tier, working};
use crate::model::{Model, State};
use crate::verify::{go_on, recover, run_clients, set_up, settle, verify};
use crate::workload::Mix;
use crate::world::{FLASH, World, with_tier};
use crate::{Replay, many_seeds, seeds};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use terrace_device::fault::Choice;
use terrace_device::{Device, DeviceRef};
use terrace_engine::Database;
use terrace_storage::config::{FlashOrder, Safeguards, WritePolicy};
use terrace_storage::{FlashConfig, FlashState, StorageError};

/// Changes the tier at random until `stop`; counts what was changed. Ends with the database.
fn switcher(world: &World, db: &Database, stop: Arc<AtomicBool>) -> (Arc<AtomicUsize>, Arc<AtomicBool>) {
    let (env, store, device) = (world.sim.env(), db.store().clone(), world.devices[FLASH].clone() as DeviceRef);
    let (changes, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (count, end) = (changes.clone(), ended.clone());
    world.sim.env().spawn("switcher", async move {
        while !stop.load(Ordering::Relaxed) {
            env.sleep(Duration::from_micros(100 + env.random_u64() % 8_000)).await;
            let (random, now) = (env.random_u64(), store.flash_config().0);
            let other = tier(random >> 8);
            // Some change everything, some one thing.
            let config = match random % 6 {
                0 => other,
                1 | 2 => FlashConfig { size: other.size, ..now },
                3 => FlashConfig { write: other.write, ..now },
                4 => FlashConfig { replacement: other.replacement, ..now },
                _ => FlashConfig { dirty_fraction: other.dirty_fraction, cleaning_batch: other.cleaning_batch, ..now },
            };
            let valid = config.write.with(config.replacement).is_ok();
            let wanted = (random % 8 != 7).then(|| device.clone());
            let on = wanted.is_some();
            match store.set_flash(wanted, config.clone()).await {
                Ok(()) => {
                    assert!(valid || !on, "{config:?}");
                    let (is, there) = store.flash_config();
                    assert_eq!((is.write, is.replacement, is.size), (config.write, config.replacement, config.size));
                    assert_eq!(there.is_some(), on);
                    count.fetch_add(1, Ordering::Relaxed);
                }
                Err(StorageError::Config(why)) => assert!(!valid && on, "{config:?}: {why}"),
                Err(_) => break, // The power is off, or the database failed.
            }
        }
        end.store(true, Ordering::Relaxed);
    });
    (changes, ended)
}

/// Stops the switcher and waits for the change under way.
fn stop(world: &World, stop: &AtomicBool, ended: Arc<AtomicBool>) {
    stop.store(true, Ordering::Relaxed);
    let env = world.sim.env();
    world.sim.run(async move {
        for _ in 0..10_000 {
            if ended.load(Ordering::Relaxed) {
                return;
            }
            env.sleep(Duration::from_millis(1)).await;
        }
        panic!("a change of the tier hangs");
    });
}

#[test]
fn the_tier_changes_under_load() {
    let mut changed = 0;
    for seed in seeds() {
        let _replay = Replay(seed);
        with_tier(tier(seed), || {
            let (world, db, model) = working(seed, 10);
            let halt = Arc::new(AtomicBool::new(false));
            let (changes, ended) = switcher(&world, &db, halt.clone());
            run_clients(&world, &db, &model, 3, Mix { transactions: 60, long: 20, ..Mix::default() }, || false);
            stop(&world, &halt, ended);
            settle(&world, &db).unwrap();
            let state = verify(&world, &db, &[model.state_now()]).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            changed += changes.load(Ordering::Relaxed);
            if let Some(now) = db.store().flash() {
                assert_eq!((now.state, now.bad_frames, now.replayed), (FlashState::On, 0, 0), "seed {seed}: {now:?}");
            }
            // Off at the end, which brings everything home: the same is read without the tier.
            let store = db.store().clone();
            world.sim.run(async move { store.set_flash(None, store.flash_config().0).await }).unwrap();
            assert!(db.store().flash().is_none());
            let state = verify(&world, &db, &[state]).unwrap_or_else(|e| panic!("seed {seed}, off: {e}"));
            let state = go_on(&world, &db, &state).unwrap();
            drop(db);
            recover(seed, world.crash(Choice::Random(seed)), &[state], Safeguards::default())
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        });
    }
    assert!(changed > 100 || !many_seeds(), "{changed} changes");
}

/// The power goes in the middle of changes.
#[test]
fn crashes_while_the_tier_changes() {
    for seed in seeds() {
        let _replay = Replay(seed);
        with_tier(tier(seed), || {
            let world = World::new(seed, None, false);
            let db = world.create().expect("creation on sound devices");
            let model = Model::new(world.recorder.clone(), &State::new());
            set_up(&world, &db, &model);
            let random = world.sim.env().random_u64();
            world.recorder.power_off_at(world.recorder.events() + 20 + random % 2500);
            let (_, _) = switcher(&world, &db, Arc::new(AtomicBool::new(false)));
            run_clients(&world, &db, &model, 3, Mix { transactions: 60, long: 20, ..Mix::default() }, || false);
            let events = world.recorder.events();
            drop(db);
            let left = world.crash([Choice::Random(random), Choice::None, Choice::All][random as usize / 7 % 3]);
            let (world, db, is) = recover(seed, left, &model.states_at(events), Safeguards::default())
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            go_on(&world, &db, &is).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        });
    }
}

/// The device dies while the tier is being changed: it can be switched off, and on again when the device is well.
#[test]
fn a_device_may_die_while_the_tier_changes() {
    for seed in seeds() {
        let _replay = Replay(seed);
        with_tier(tier(seed), || {
            let (world, db, model) = working(seed, 10);
            let halt = Arc::new(AtomicBool::new(false));
            let (_, ended) = switcher(&world, &db, halt.clone());
            let (env, device) = (world.sim.env(), world.devices[FLASH].clone());
            env.clone().spawn("death", async move {
                env.sleep(Duration::from_micros(200 + env.random_u64() % 20_000)).await;
                device.kill();
            });
            run_clients(&world, &db, &model, 3, Mix { transactions: 60, long: 20, ..Mix::default() }, || false);
            stop(&world, &halt, ended);
            settle(&world, &db).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let state = verify(&world, &db, &[model.state_now()]).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let store = db.store().clone();
            world.sim.run(async move { store.set_flash(None, store.flash_config().0).await }).unwrap();
            let state = go_on(&world, &db, &state).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            drop(db);
            recover(seed, world.crash(Choice::Random(seed)), &[state], Safeguards::default())
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        });
    }
}

/// Switching policies and growing loses nothing of what is cached; shrinking leaves what lies in the frames that stay.
#[test]
fn what_is_cached_stays() {
    let config = FlashConfig {
        size: 160 * 4096,
        write: WritePolicy::LazyCleaning,
        replacement: FlashOrder::Lru2,
        fill_threshold: 0.95,
        throttle_queue_depth: 100,
        dirty_fraction: 1.0,
        ..FlashConfig::default()
    };
    with_tier(config.clone(), || {
        // How much a tier caches depends on what the clients happened to drop, and on what goes home (that makes a
        // frame void): the one that caches most.
        let settled = |seed| {
            let made = working(seed, 80);
            settle(&made.0, &made.1).unwrap();
            // What the purge has changed goes home, too, before frames are counted.
            settle(&made.0, &made.1).unwrap();
            made
        };
        let used = |(_, db, _): &(World, Database, Model)| stats(db).used;
        let (world, db, model) = (0..20).map(settled).max_by_key(used).expect("there are some");
        let device = world.devices[FLASH].clone() as DeviceRef;
        let set = |config: &FlashConfig| {
            let (store, device, config) = (db.store().clone(), device.clone(), config.clone());
            world.sim.run(async move { store.set_flash(Some(device), config).await })
        };
        let used = stats(&db).used;
        for (write, replacement) in pairs() {
            set(&FlashConfig { write, replacement, ..config.clone() }).unwrap();
            assert_eq!(stats(&db).used, used, "{write:?} with {replacement:?}");
        }
        set(&FlashConfig { size: 4096 * 4096, ..config.clone() }).unwrap_err(); // Its records outgrow the pool.
        set(&FlashConfig { size: 1600 * 4096, ..config.clone() }).unwrap();
        let grown = stats(&db);
        assert!(grown.used == used && grown.frames >= 1590, "{grown:?}");
        set(&FlashConfig { size: 32 * 4096, ..config.clone() }).unwrap();
        let shrunk = stats(&db);
        // It keeps its first frames, and what is in them.
        assert!(shrunk.frames == 32 && shrunk.used > 16 && shrunk.used <= 32, "{used} used before; {shrunk:?}");
        settle(&world, &db).unwrap();
        verify(&world, &db, &[model.state_now()]).unwrap();
        // A device without room for more, and combinations that do not go together, are refused, and nothing changes.
        device_full(&world);
        set(&FlashConfig { size: 1800 * 4096, ..config.clone() }).unwrap_err();
        let why = set(&FlashConfig { write: WritePolicy::Rotating, ..config.clone() }).unwrap_err().to_string();
        assert!(why.contains("needs replacement = \"fifo\""), "{why}");
        let now = stats(&db);
        assert_eq!((now.frames, now.state), (32, FlashState::On));
        assert_eq!(db.store().flash_config().0.write, WritePolicy::LazyCleaning);
        world.sim.run(db.close()).expect("a clean shutdown");
    });
}

fn device_full(world: &World) {
    let device = &world.devices[FLASH];
    device.set_capacity(device.size());
}
