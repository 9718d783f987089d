//! More than one page of each map: data beyond what the first space map covers, more transactions at a time than the
//! first undo directory has segments; crashed while they grow, and while what they hold is given back.

use crate::Replay;
use crate::model::{Key, Model, Row, State, Value};
use crate::verify::{go_on, recover, set_up};
use crate::world::{DATA, World};
use std::sync::Arc;
use std::time::Duration;
use terrace_device::Device;
use terrace_device::fault::Choice;
use terrace_engine::{Database, Datum, Isolation, Table, Txn};
use terrace_storage::config::Safeguards;

/// What one map page covers, with pages of 4 KiB, about.
const SPAN: u64 = 24 << 20;
/// Segments of an undo directory page, with pages of 4 KiB, at most.
const SEGMENTS: usize = 128;

fn row(id: i32, length: usize) -> Row {
    let text = ((b'a' + (id % 26) as u8) as char).to_string().repeat(length);
    vec![Datum::Int4(id), Datum::Int4(id % 10), Datum::Null, Datum::Int8(1), Datum::text(text)]
}

/// A transaction with one row more; `None`: the power is gone.
async fn insert(txn: &mut Txn, table: &Arc<Table>, model: &Model, note: usize, row: Row) -> Option<()> {
    let Datum::Int4(id) = row[0] else { unreachable!("every row here has an id") };
    txn.begin_statement();
    txn.insert(table, &row).await.ok()?;
    model.write(note, Key::Row(table.oid.0, id), Value::Row(row));
    Some(())
}

async fn commit(txn: Txn, model: &Model, note: usize) -> Option<()> {
    model.commit_called(note);
    txn.commit().await.ok()?;
    model.acknowledged(note);
    Some(())
}

/// Fills a table beyond the first map, and drops it.
async fn fill(db: Database, model: Model) -> Option<()> {
    let table = db.catalog().table("a").cloned().expect("set up");
    for group in 0..45 {
        let (note, mut txn) = (model.begin(), db.begin(Isolation::ReadCommitted));
        for i in 0..30 {
            insert(&mut txn, &table, &model, note, row(1000 + group * 30 + i, 19_500)).await?;
        }
        commit(txn, &model, note).await?;
    }
    let (note, mut txn) = (model.begin(), db.begin(Isolation::ReadCommitted));
    txn.begin_statement();
    txn.drop_table(&table).await.ok()?;
    model.write(note, Key::Table("a".into()), Value::Absent);
    commit(txn, &model, note).await?;
    db.purge().await.ok()
}

/// Many transactions at once, which then end in every way.
async fn crowd(db: Database, model: Model) -> Option<()> {
    let table = db.catalog().table("a").cloned().expect("set up");
    let mut open = Vec::new();
    for i in 0..SEGMENTS as i32 + 20 {
        let (note, mut txn) = (model.begin(), db.begin(Isolation::ReadCommitted));
        insert(&mut txn, &table, &model, note, row(1000 + i, 100)).await?;
        open.push((note, txn));
    }
    for (i, (note, txn)) in open.into_iter().enumerate() {
        match i % 5 {
            0 => {
                model.rollback_to(note, 0);
                txn.rollback().await.ok()?;
            }
            1 => {
                model.rollback_to(note, 0);
                drop(txn);
            }
            _ => commit(txn, &model, note).await?,
        }
    }
    db.purge().await.ok()
}

/// Runs `work` until it is done, or the power goes, which is after so many thousandths of the `events` that it takes.
fn crashed<F>(seed: u64, at: Option<(u64, u64)>, work: impl FnOnce(Database, Model) -> F) -> (u64, u64)
where
    F: Future<Output = Option<()>> + Send + 'static,
{
    let _replay = Replay(seed);
    let world = World::new(seed, None, false);
    let db = world.create().expect("creation on sound devices");
    let model = Model::new(world.recorder.clone(), &State::new());
    set_up(&world, &db, &model);
    let begun = world.recorder.events();
    if let Some((thousandths, events)) = at {
        world.recorder.power_off_at(begun + events * thousandths / 1000);
    }
    let (env, off, done) = (world.sim.env(), world.recorder.clone(), work(db.clone(), model.clone()));
    world.sim.run(async move {
        let cut = async {
            while !off.is_off() {
                env.sleep(Duration::from_millis(1)).await;
            }
        };
        futures::future::select(std::pin::pin!(done), std::pin::pin!(cut)).await;
    });
    let (events, size) = (world.recorder.events(), world.devices[DATA].size());
    drop(db);
    let choice = [Choice::None, Choice::Random(seed), Choice::All][seed as usize % 3];
    let (world, db, state) = recover(seed, world.crash(choice), &model.states_at(events), Safeguards::default())
        .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    go_on(&world, &db, &state).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    (events - begun, size)
}

#[test]
fn a_second_map_page_is_crashed() {
    let (events, size) = crashed(0, None, fill);
    assert!(size > SPAN + (2 << 20), "{size} bytes of data");
    // Around the second map's beginning, and while all of it is given back.
    for (seed, thousandths) in [(1, 850), (2, 900), (3, 940), (4, 975), (5, 985), (6, 992), (7, 997)] {
        crashed(seed, Some((thousandths, events)), fill);
    }
}

#[test]
fn a_second_undo_directory_is_crashed() {
    let (events, _) = crashed(0, None, crowd);
    for seed in 1..16 {
        crashed(seed, Some((300 + seed * 45, events)), crowd);
    }
}
