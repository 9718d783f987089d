//! Transactions whose undo needs several extents, crashed while they grow it, end, and are rolled back or purged.

use crate::Replay;
use crate::model::{Key, Model, Row, State, Value};
use crate::verify::{go_on, recover, set_up};
use crate::workload::find;
use crate::world::World;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use terrace_device::fault::Choice;
use terrace_engine::{Database, Datum, Isolation, UpdateOutcome};
use terrace_storage::config::Safeguards;

/// Updates of a transaction, each with so many bytes of undo: well over two extents of 1 MiB.
const UPDATES: usize = 3600;
const BODY: usize = 800;

/// Updates the rows that `set_up` made, again and again, in one transaction; ends it as the seed says.
async fn churn(db: Database, model: Model, seed: u64, most: Arc<AtomicU64>) {
    let note = model.begin();
    let mut txn = db.begin(Isolation::ReadCommitted);
    let Some(table) = db.catalog().table("a").cloned() else { return };
    for i in 0..UPDATES {
        let id = (i % 12) as i32 * 3;
        txn.begin_statement();
        let Ok(Some((rid, row, version))) = find(&mut txn, &table, id).await else { return };
        let mut row: Row = row.view(&table).to_datums();
        row[4] = Datum::text(((b'a' + (i % 26) as u8) as char).to_string().repeat(BODY + i % 7));
        match txn.update(&table, rid, version, &row).await {
            Ok(UpdateOutcome::Done) => model.write(note, Key::Row(table.oid.0, id), Value::Row(row)),
            Ok(_) => panic!("nobody else changes row {id}"),
            Err(_) => return, // The power is gone.
        }
    }
    most.fetch_max(db.store().undo().used_bytes(), Ordering::Relaxed);
    if seed.is_multiple_of(3) {
        model.rollback_to(note, 0);
        let _ = txn.rollback().await;
        return;
    }
    model.commit_called(note);
    if txn.commit().await.is_ok() {
        model.acknowledged(note);
    }
}

#[test]
fn undo_of_several_extents_is_crashed() {
    let most = Arc::new(AtomicU64::new(0));
    for seed in 0..9 {
        let _replay = Replay(seed);
        let mut world = World::new(seed, None, false);
        world.config.redo_bound = 1 << 20;
        let db = world.create().expect("creation on sound devices");
        let model = Model::new(world.recorder.clone(), &State::new());
        set_up(&world, &db, &model);
        let begun = world.recorder.events();
        // One run as far as it goes tells how many events there are.
        if seed > 0 {
            world.recorder.power_off_at(begun + 500 + world.sim.env().random_u64() % 9000);
        }
        let (env, off) = (world.sim.env(), world.recorder.clone());
        world.sim.run({
            let (db, model, most) = (db.clone(), model.clone(), most.clone());
            async move {
                env.spawn("churn", churn(db, model, seed, most));
                while !off.is_off() && env.now().0 < Duration::from_secs(20).as_nanos() as u64 {
                    env.sleep(Duration::from_millis(1)).await;
                }
            }
        });
        let events = world.recorder.events();
        drop(db);
        let choice = [Choice::None, Choice::Random(seed), Choice::All][seed as usize % 3];
        let (world, db, state) = recover(seed, world.crash(choice), &model.states_at(events), Safeguards::default())
            .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        go_on(&world, &db, &state).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
    let most = most.load(Ordering::Relaxed);
    assert!(most > 2 << 20, "{most} bytes of undo");
}
