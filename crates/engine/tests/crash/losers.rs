//! Losers: long transactions that a crash left unfinished. While they are undone in the background, clients read and
//! write the same rows and change the definitions of the same tables; and the power goes again.

use crate::flash::tier;
use crate::model::{Key, Model, State, Value};
use crate::verify::{go_on, recover, run_clients, set_up, settle, verify};
use crate::workload::{Mix, find};
use crate::world::{World, with_shape, with_tier};
use crate::{Replay, many_seeds, seeds};
use std::time::Duration;
use terrace_device::Image;
use terrace_device::fault::Choice;
use terrace_engine::{Database, Datum, Isolation, Result, Table, Txn, UpdateOutcome};
use terrace_storage::config::{Restart, Safeguards};

/// The first of the rows that only losers change: clients use lower keys.
const FIRST: i32 = 1000;
/// Nanoseconds of a transfer of the disk, where undoing is to take longer than the clients' work.
pub(crate) const SLOW: u64 = 300_000;

fn row(id: i32, letter: char, length: usize) -> Vec<Datum> {
    let text = letter.to_string().repeat(length);
    vec![Datum::Int4(id), Datum::Int4(id % 10), Datum::Int4(20_000 + id), Datum::Int8(1), Datum::text(text)]
}

async fn change(txn: &mut Txn, table: &Table, id: i32, to: Option<Vec<Datum>>) -> Result<()> {
    txn.begin_statement();
    let (rid, _, version) = find(txn, table, id).await?.expect("nobody else changes it");
    let outcome = match to {
        Some(row) => txn.update(table, rid, version, &row).await?,
        None => txn.delete(table, rid, version).await?,
    };
    assert!(matches!(outcome, UpdateOutcome::Done), "nobody else changes it");
    Ok(())
}

/// Fills table `a` with so many rows more.
async fn fill(db: Database, model: Model, rows: i32) -> Result<()> {
    let table = db.catalog().table("a").cloned().expect("set up");
    let (mut txn, note) = (db.begin(Isolation::ReadCommitted), model.begin());
    for id in FIRST..FIRST + rows {
        let row = row(id, 'a', 300);
        txn.insert(&table, &row).await?;
        model.write(note, Key::Row(table.oid.0, id), Value::Row(row));
    }
    model.commit_called(note);
    txn.commit().await?;
    model.acknowledged(note);
    Ok(())
}

/// A transaction that has changed all these rows in every way, and some that clients use. And two short ones.
async fn begun(db: &Database, rows: i32) -> Result<Vec<Txn>> {
    let [a, b] = ["a", "b"].map(|name| db.catalog().table(name).cloned().expect("set up"));
    let mut long = db.begin(Isolation::ReadCommitted);
    for at in 0..rows {
        // In an order that no cache helps with.
        let id = FIRST + at * 37 % rows;
        match at % 7 {
            0 => change(&mut long, &a, id, None).await?,
            1 => change(&mut long, &a, id, Some(row(id + 5000, 'b', 200))).await?,
            2 => change(&mut long, &a, id, Some(row(id, 'c', 6000))).await?,
            3 => {
                change(&mut long, &a, id, Some(row(id, 'd', 100))).await?;
                change(&mut long, &a, id, Some(row(id + 5000, 'e', 310))).await?;
                change(&mut long, &a, id + 5000, Some(row(id, 'f', 290))).await?;
            }
            _ => change(&mut long, &a, id, Some(row(id, 'g', 300))).await?,
        }
        if at % 5 == 0 {
            long.begin_statement();
            long.insert(&a, &row(FIRST + 20_000 + at, 'h', 50)).await?;
        }
    }
    for id in [0, 6, 12] {
        change(&mut long, &a, id, Some(row(id + 1, 'i', 300))).await?;
    }
    let mut short = [db.begin(Isolation::ReadCommitted), db.begin(Isolation::ReadCommitted)];
    for (txn, id) in short.iter_mut().zip([9, 15]) {
        change(txn, &a, id, None).await?;
        change(txn, &b, id, Some(row(id, 'k', 40))).await?;
    }
    Ok(short.into_iter().chain([long]).collect())
}

/// What a crash leaves of a database at whose end a transaction has changed so many rows: with the committed state.
fn crashed(seed: u64, rows: i32) -> (Vec<Image>, State) {
    let world = World::new(seed, None, false);
    let db = world.create().expect("creation on sound devices");
    let model = Model::new(world.recorder.clone(), &State::new());
    set_up(&world, &db, &model);
    world.sim.run(fill(db.clone(), model.clone(), rows)).expect("the devices are sound");
    let d = db.clone();
    let open = world.sim.run(async move {
        let open = begun(&d, rows).await?;
        d.store().log().flush_to(d.store().log().end()).await?;
        Ok::<_, terrace_engine::EngineError>(open)
    });
    std::mem::forget(open.expect("the devices are sound")); // They are not rolled back: the power is gone.
    drop(db);
    (world.crash(Choice::Random(seed)), model.state_now())
}

/// How many of the openings found losers, after the first.
pub(crate) fn run(seed: u64) -> std::result::Result<usize, String> {
    let (mut images, mut state) = crashed(seed, 300);
    let mut again = 0;
    for round in 0..4 {
        let at = |e: String| format!("round {round}: {e}");
        let mut world = World::new(seed * 4 + round, Some(images), false);
        world.config.flash.restart = Restart::Instant;
        let (db, report) = world.open_reported().map_err(|e| at(format!("open failed: {e}")))?;
        assert!(round > 0 || report.losers_left == 3, "seed {seed}: {report:?}");
        again += usize::from(round > 0 && report.losers_left > 0);
        let random = world.sim.env().random_u64();
        let model = Model::new(world.recorder.clone(), &state);
        let mix = Mix { transactions: 12, ddl: 15, alter: round % 2 == 1, ..Mix::default() };
        world.recorder.power_off_at(world.recorder.events() + 20 + random % [60, 400, 1500][round as usize % 3]);
        run_clients(&world, &db, &model, 3, mix, || false);
        let events = world.recorder.events();
        if !world.recorder.is_off() {
            let sound = settle(&world, &db).and_then(|()| verify(&world, &db, &[model.state_now()]));
            if !world.recorder.is_off() {
                sound.map_err(at)?;
                assert_eq!(db.losers_left(), 0, "seed {seed}");
            }
        }
        drop(db);
        images = world.crash([Choice::Random(random), Choice::None][random as usize / 7 % 2]);
        let states = model.states_at(events);
        let (_, db, is) = recover(seed, images.clone(), &states, Safeguards::default()).map_err(at)?;
        drop(db);
        state = is;
    }
    let (world, db, is) = recover(seed, images, &[state], Safeguards::default())?;
    go_on(&world, &db, &is).map(|_| again)
}

fn search(seeds: impl Iterator<Item = u64>) -> usize {
    let one = |seed| {
        let _replay = Replay(seed);
        run(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"))
    };
    let again = seeds.map(one).sum();
    println!("{again} openings after a crash while losers were undone");
    again
}

#[test]
fn losers_are_met_and_crashed_again() {
    let again = with_shape(|shape| shape.disk = Some(SLOW), || search(seeds().step_by(3)));
    assert!(again > 0 || !many_seeds(), "no crash came before all was undone");
}

#[test]
fn losers_are_met_and_crashed_again_with_a_tier() {
    let again = with_shape(
        |shape| shape.disk = Some(SLOW),
        || seeds().skip(1).step_by(3).map(|seed| with_tier(tier(seed), || search(seed..=seed))).sum::<usize>(),
    );
    assert!(again > 0 || !many_seeds(), "no crash came before all was undone");
}

/// An orderly stop ends their rollback; a fast one leaves it to the next start, if not all is done.
#[test]
fn a_clean_stop_undoes_losers_and_a_fast_one_leaves_them() {
    for (seed, fast) in [(0, true), (1, false), (2, true), (3, false)] {
        let _replay = Replay(seed);
        with_shape(
            |shape| shape.disk = Some(SLOW),
            || {
                let (images, state) = crashed(seed, 600);
                let mut world = World::new(seed, Some(images), false);
                world.config.flash.restart = Restart::Instant;
                let db = world.open().expect("the devices are sound");
                let env = world.sim.env();
                world.sim.run(async move { env.sleep(Duration::from_millis(5)).await });
                assert!(db.losers_left() > 0, "seed {seed}: they are being undone");
                let (stopped, began) = (db.clone(), world.sim.env().now().0);
                match fast {
                    true => world.sim.run(stopped.close_fast()).expect("a fast stop"),
                    false => world.sim.run(stopped.close()).expect("a clean stop"),
                }
                let took = Duration::from_nanos(world.sim.env().now().0 - began);
                assert_eq!(db.losers_left() > 0, fast, "seed {seed}: after {took:?}");
                assert!(!fast || took < Duration::from_millis(100), "seed {seed}: it took {took:?}");
                drop(db);
                let mut world = World::new(seed + 10, Some(world.crash(Choice::None)), false);
                world.config.flash.restart = Restart::Instant;
                let (db, report) = world.open_reported().expect("the devices are sound");
                assert_eq!(report.losers_left > 0, fast, "seed {seed}: {report:?}");
                verify(&world, &db, &[state]).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            },
        );
    }
}

/// Virtual time from the beginning of an opening to the first row read and to the end of all rollbacks.
fn times(images: Vec<Image>, restart: Restart) -> (Duration, Duration) {
    let mut world = World::new(0, Some(images), false);
    world.config.flash.restart = restart;
    let (db, env) = (world.open().expect("the devices are sound"), world.sim.env());
    world.sim.run(async move {
        let table = db.catalog().table("a").cloned().expect("set up");
        let mut txn = db.begin(Isolation::ReadCommitted);
        txn.begin_statement();
        let (_, found, _) = find(&mut txn, &table, FIRST).await.unwrap().expect("it was committed");
        assert_eq!(found.view(&table).to_datums(), row(FIRST, 'a', 300));
        let first = Duration::from_nanos(env.now().0);
        txn.rollback().await.unwrap();
        db.purge().await.unwrap();
        (first, Duration::from_nanos(env.now().0))
    })
}

/// On a disk of 200 transfers a second.
#[test]
fn the_first_query_does_not_wait_for_a_long_rollback() {
    let (images, _) = crashed(0, 1500);
    let at_once = with_shape(|shape| shape.disk = Some(5_000_000), || times(images.clone(), Restart::Instant));
    let after = with_shape(|shape| shape.disk = Some(5_000_000), || times(images, Restart::LazyVerification));
    println!("first row, and end of rollbacks: {at_once:?}; where the opening waits for them: {after:?}");
    assert!(at_once.0 * 20 < after.0, "{at_once:?}, {after:?}");
}
