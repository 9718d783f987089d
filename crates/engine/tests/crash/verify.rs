//! After a crash: open, check, compare, go on.

use crate::model::{Model, State, TableState, difference};
use crate::workload::{Client, Mix, all_rows, index_names, whole};
use crate::world::World;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use terrace_device::Image;
use terrace_device::fault::Choice;
use terrace_engine::{Database, Datum, EngineError, Isolation, Scan};
use terrace_storage::config::Safeguards;

/// Virtual time after which a run counts as hung.
const PATIENCE: Duration = Duration::from_secs(30);

/// Everything that a new transaction sees; every index is read too and must agree with its table.
pub(crate) async fn observe(db: Database) -> Result<State, EngineError> {
    let mut txn = db.begin(Isolation::RepeatableRead);
    txn.begin_statement();
    let catalog = txn.catalog();
    let mut state = State::new();
    for table in catalog.tables() {
        let mut rows = BTreeMap::new();
        for row in all_rows(&mut txn, table, Scan::Full).await? {
            let Datum::Int4(id) = row[0] else { panic!("a NULL primary key in {}", table.name) };
            assert!(rows.insert(id, row).is_none(), "two rows {id} in {}", table.name);
        }
        for index in &table.indexes {
            let by_index = all_rows(&mut txn, table, whole(index)).await?;
            assert_eq!(by_index.len(), rows.len(), "index {} and table {}", index.name, table.name);
            for row in by_index {
                let Datum::Int4(id) = row[0] else { panic!("a NULL primary key in {}", table.name) };
                assert!(rows[&id] == row, "index {} finds another row {id}", index.name);
            }
        }
        state.insert(table.name.clone(), TableState { oid: table.oid.0, indexes: index_names(table), rows });
    }
    txn.rollback().await?;
    Ok(state)
}

/// Tables with some rows.
pub(crate) fn set_up(world: &World, db: &Database, model: &Model) {
    set_up_for(world, db, model, Mix::default());
}

/// Tables as the mix has them.
pub(crate) fn set_up_for(world: &World, db: &Database, model: &Model, mix: Mix) {
    let mix = Mix { long: 0, ..mix };
    let client = Client::new(db, &world.sim.env(), model, &world.recorder, world.seed, mix);
    world.sim.run(client.set_up()).expect("nothing fails yet");
}

/// Runs clients until all are done, the power is off, or `enough` says so.
pub(crate) fn run_clients(
    world: &World,
    db: &Database,
    model: &Model,
    clients: usize,
    mix: Mix,
    enough: impl Fn() -> bool + Send + 'static,
) {
    let (env, recorder) = (world.sim.env(), world.recorder.clone());
    let left = Arc::new(AtomicUsize::new(clients));
    for i in 0..clients {
        let client = Client::new(db, &env, model, &recorder, world.seed.wrapping_mul(31).wrapping_add(i as u64), mix);
        let left = left.clone();
        env.spawn("client", async move {
            client.run().await;
            left.fetch_sub(1, Ordering::Relaxed);
        });
    }
    world.sim.run(async move {
        let began = env.now().0;
        while left.load(Ordering::Relaxed) > 0 && !recorder.is_off() && !enough() {
            env.sleep(Duration::from_micros(200)).await;
            let waited = Duration::from_nanos(env.now().0 - began);
            assert!(waited < PATIENCE, "{} clients hang", left.load(Ordering::Relaxed));
        }
    });
}

/// `check` finds nothing, and the contents are one of `states`, before it (while losers are undone) and after it.
/// Returns which.
pub(crate) fn verify(world: &World, db: &Database, states: &[State]) -> Result<State, String> {
    let d = db.clone();
    let was = world.sim.run(observe(db.clone())).map_err(|e| format!("reading failed: {e}"))?;
    let problems = world.sim.run(async move { d.check().await }).map_err(|e| format!("check failed: {e}"))?;
    if !problems.is_empty() {
        return Err(format!("check found: {}", problems.join("; ")));
    }
    let is = world.sim.run(observe(db.clone())).map_err(|e| format!("reading failed: {e}"))?;
    if states.contains(&is) {
        return match difference(&is, &was) {
            None => Ok(is),
            Some(what) => Err(format!("contents were others before the check: {what}")),
        };
    }
    let from_first = difference(&states[0], &is).unwrap_or_default();
    Err(format!("contents are none of {} possible states; from the first: {from_first}", states.len()))
}

/// Opens what a crash left and verifies it.
pub(crate) fn recover(
    seed: u64,
    images: Vec<Image>,
    states: &[State],
    safeguards: Safeguards,
) -> Result<(World, Database, State), String> {
    let world = World::new(seed, Some(images), false).without(safeguards);
    let (db, report) = world.open_reported().map_err(|e| format!("open failed: {e}"))?;
    let state = verify(&world, &db, states)?;
    // What a crash tears is the double-write area's to restore: the log does not always reach back.
    match report.storage.pages_rebuilt + db.store().pool().stats().repaired {
        0 => Ok((world, db, state)),
        pages => Err(format!("{pages} pages had to be made again from the log")),
    }
}

/// Crashes while it recovers, `times` times, then recovers for good.
pub(crate) fn recover_with_crashes(
    seed: u64,
    mut images: Vec<Image>,
    states: &[State],
    times: u64,
) -> Result<(World, Database, State), String> {
    for round in 0..times {
        let seed = seed.wrapping_add(round.wrapping_mul(0x9e37_79b9));
        let world = World::new(seed, Some(images), false);
        // From "at its first write" to "long after it was open".
        world.recorder.power_off_at(world.sim.env().random_u64() % 120);
        let db = world.open();
        if let Ok(db) = &db {
            let _ = verify(&world, db, states);
        }
        images = world.crash(Choice::Random(seed));
    }
    recover(seed, images, states, Safeguards::default())
}

/// A few more transactions work.
pub(crate) fn go_on(world: &World, db: &Database, state: &State) -> Result<State, String> {
    let model = Model::new(world.recorder.clone(), state);
    run_clients(world, db, &model, 2, Mix { transactions: 4, ..Mix::default() }, || false);
    settle(world, db)?;
    verify(world, db, &[model.state_now()])
}

/// Waits for background rollbacks and purges.
pub(crate) fn settle(world: &World, db: &Database) -> Result<(), String> {
    let (env, db) = (world.sim.env(), db.clone());
    world.sim.run(async move {
        env.sleep(Duration::from_millis(50)).await;
        db.purge().await.map_err(|e| format!("purge failed: {e}"))
    })
}
