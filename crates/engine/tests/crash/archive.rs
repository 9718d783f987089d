//! Backups and archived log of a database that crashes, and restores that crash: a backup is of a time between its
//! end's call and its last byte; with the log since, archived through crashes or still in the database, it is the
//! database, at its end and at moments before.

use crate::model::{Model, State, difference};
use crate::verify::{go_on, observe, recover, run_clients, set_up, settle, verify};
use crate::workload::Mix;
use crate::world::{World, engine_config};
use crate::{Replay, many_seeds, seeds};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::fault::Choice;
use terrace_device::{Image, IoBuf};
use terrace_engine::{Database, EngineError};
use terrace_env::Env;
use terrace_storage::backup::{BackupEnd, PAGES_AT, Restore, Upto, rebirth, segment_facts};
use terrace_storage::config::Safeguards;
use terrace_storage::control::Control;
use terrace_storage::log::archive::Archive;
use terrace_storage::{DATA, DeviceSet, Lsn, SpaceId, StorageConfig, StorageError, UNDO};

/// Crashes per seed.
const ROUNDS: u64 = 3;

/// Segments by number. What is in it is durable.
type Shelf = Arc<Mutex<BTreeMap<u64, Vec<u8>>>>;

/// A backup's parts.
struct Copied {
    control: Control,
    end: BackupEnd,
    spaces: Vec<(SpaceId, u64, Vec<u8>)>,
    segments: BTreeMap<u64, Vec<u8>>,
    /// Events when its end was asked for, and when all of it was copied.
    between: (u64, u64),
}

/// Slow, and refusing now and then.
fn archive(env: Env, shelf: Shelf) -> Archive {
    Archive::new(move |number, bytes| {
        let (env, shelf) = (env.clone(), shelf.clone());
        async move {
            env.sleep(Duration::from_micros(env.random_u64() % 3000)).await;
            if env.random_u64().is_multiple_of(4) {
                return Err("no room".into());
            }
            let mut shelf = shelf.lock();
            let next = shelf.last_key_value().map_or(number, |(last, _)| last + 1);
            assert!(number <= next, "segment {number} is archived, {next} is not");
            shelf.insert(number, bytes);
            Ok(())
        }
    })
}

async fn copy(db: Database, events: impl Fn() -> u64) -> Result<Copied, StorageError> {
    let backup = db.store().begin_backup().await?;
    let mut spaces = Vec::new();
    for space in [DATA, UNDO] {
        let (mut at, size) = (PAGES_AT, backup.size(space));
        while at < size {
            let len = (size - at).min(4 * 4096) as usize;
            spaces.push((space, at, backup.read(space, at, len).await?.to_vec()));
            at += len as u64;
        }
    }
    let begun = events();
    let end = backup.end().await?;
    let mut segments = BTreeMap::new();
    for number in end.first_segment..=end.last_segment {
        segments.insert(number, backup.segment(number).await?);
    }
    Ok(Copied { control: backup.control, end, spaces, segments, between: (begun, events()) })
}

/// Writes what `copied` and the segments beyond it hold.
async fn write(
    env: &Env,
    devices: &DeviceSet,
    config: &StorageConfig,
    copied: &Copied,
    segments: &BTreeMap<u64, Vec<u8>>,
) -> Result<(), StorageError> {
    let restore = Restore::begin(env, devices, config, copied.control).await?;
    for (space, at, bytes) in &copied.spaces {
        restore.write(*space, *at, IoBuf::padded(bytes)).await?;
    }
    for (slot, bytes) in segments.range(copied.end.first_segment..).map(|(_, bytes)| bytes).enumerate() {
        restore.segment(slot as u32, bytes).await?;
    }
    restore.finish().await
}

/// As `terrace restore` does it; what the database holds.
fn restore(
    world: &World,
    copied: Arc<Copied>,
    segments: BTreeMap<u64, Vec<u8>>,
    upto: Upto,
) -> Result<State, EngineError> {
    let (env, set, config) = (world.sim.env(), world.set(), world.config.clone());
    world.sim.run(async move {
        write(&env, &set, &config, &copied, &segments).await?;
        let (db, _) = Database::open_upto(env.clone(), set.clone(), config.clone(), engine_config(), upto).await?;
        let problems = db.check().await?;
        if !problems.is_empty() {
            // Where the power goes meanwhile, too.
            return Err(StorageError::Damaged(format!("check found: {}", problems.join("; "))).into());
        }
        let is = observe(db.clone()).await?;
        db.purge().await?;
        db.close().await?;
        let objects = is.values().map(|table| table.oid + 100).max().unwrap_or(0);
        rebirth(&env, &set, &config, objects).await?;
        Ok(is)
    })
}

fn restored(seed: u64, copied: &Arc<Copied>, segments: &BTreeMap<u64, Vec<u8>>, upto: Upto) -> Result<State, String> {
    let mut images: Option<Vec<Image>> = None;
    // The power goes while it is restored, or just after; it is begun again over what that left.
    for i in 0..seed % 3 {
        let world = World::new(seed + i, images.take(), false);
        world.recorder.power_off_at(world.sim.env().random_u64() % [400, 3000][i as usize]);
        let _ = restore(&world, copied.clone(), segments.clone(), upto);
        images = Some(world.crash(Choice::Random(seed + i)));
    }
    let world = World::new(seed, images, false);
    let is = restore(&world, copied.clone(), segments.clone(), upto).map_err(|e| format!("restore failed: {e}"))?;
    first_life(seed, world, &is).map_err(|e| format!("restored: {e}"))?;
    Ok(is)
}

/// What was restored lives, crashes, and lives on.
fn first_life(seed: u64, world: World, is: &State) -> Result<(), String> {
    let db = world.open().map_err(|e| format!("it does not open: {e}"))?;
    verify(&world, &db, std::slice::from_ref(is))?;
    let state = go_on(&world, &db, is)?;
    let model = Model::new(world.recorder.clone(), &state);
    world.recorder.power_off_at(world.recorder.events() + world.sim.env().random_u64() % 600);
    run_clients(&world, &db, &model, 2, Mix { transactions: 20, long: 10, ..Mix::default() }, || false);
    let events = world.recorder.events();
    drop(db);
    recover(seed, world.crash(Choice::Random(seed)), &model.states_at(events), Safeguards::default())
        .map(drop)
        .map_err(|e| format!("after its first crash: {e}"))
}

/// The backup by itself is a state that the database had while it ended.
fn check_alone(seed: u64, copied: &Arc<Copied>, model: &Model) -> Result<(), String> {
    let is = restored(seed, copied, &copied.segments, Upto::End)?;
    let (from, to) = copied.between;
    let mut times = from..=to;
    match times.any(|events| model.states_at(events).contains(&is)) {
        true => Ok(()),
        false => Err(format!("a backup is of no time: {:?}", difference(&model.states_at(from)[0], &is))),
    }
}

/// A life of the database: clients, and a backup beside them, until the power goes. Returns the backup if it was done.
fn life(world: &World, db: &Database, model: &Model) -> Option<Copied> {
    let random = world.sim.env().random_u64();
    world.recorder.power_off_at(world.recorder.events() + 300 + random % 3000);
    let done = Arc::new(Mutex::new(None));
    let (env, recorder) = (world.sim.env(), world.recorder.clone());
    world.sim.env().spawn("backup", {
        let (db, done) = (db.clone(), done.clone());
        async move {
            env.sleep(Duration::from_micros(random >> 32 & 0x3fff)).await;
            match copy(db, || recorder.events()).await {
                Ok(copied) => *done.lock() = Some(copied),
                Err(e) => assert!(recorder.is_off(), "the backup failed: {e}"),
            }
        }
    });
    run_clients(world, db, model, 2, Mix { transactions: 60, long: 10, faults: true, ..Mix::default() }, || false);
    done.lock().take()
}

/// A moment to come back to.
async fn moment(db: Database) -> Result<Lsn, StorageError> {
    Ok(db.store().begin_backup().await?.end().await?.lsn)
}

/// All segments that the archive has not got.
async fn rest(db: Database, after: Option<u64>, first: u64) -> Result<BTreeMap<u64, Vec<u8>>, StorageError> {
    let backup = db.store().begin_backup().await?;
    let end = backup.end().await?;
    let mut segments = BTreeMap::new();
    for number in after.map_or(first, |last| last + 1)..=end.last_segment {
        segments.insert(number, backup.segment(number).await?);
    }
    Ok(segments)
}

fn run(seed: u64) -> Result<u64, String> {
    let shelf = Shelf::default();
    let (mut state, mut images, mut backups) = (State::new(), None, Vec::new());
    let (mut made, mut moments) = (0, Vec::new());
    for round in 0..=ROUNDS {
        let round_seed = seed * (ROUNDS + 1); // Sizes stay as they are.
        let mut world = World::new(round_seed, images.take(), false);
        world.config.archive = Some(archive(world.sim.env(), shelf.clone()));
        let db = match round {
            0 => world.create().map_err(|e| format!("create failed: {e}"))?,
            _ => world.open().map_err(|e| format!("round {round}: open failed: {e}"))?,
        };
        let model = Model::new(world.recorder.clone(), &state);
        match round {
            0 => set_up(&world, &db, &model),
            _ => drop(verify(&world, &db, &[state.clone()]).map_err(|e| format!("round {round}: {e}"))?),
        }
        let lsn = world.sim.run(moment(db.clone())).map_err(|e| format!("round {round}: {e}"))?;
        moments.push((lsn, model.state_now()));
        if round == ROUNDS {
            settle(&world, &db)?;
            let last = shelf.lock().last_key_value().map(|(number, _)| *number);
            let first = backups.iter().map(|copied: &Arc<Copied>| copied.end.first_segment).min().unwrap_or(0);
            let left = world.sim.run(rest(db, last, first)).map_err(|e| format!("the rest of the log: {e}"))?;
            let mut segments = shelf.lock().clone();
            segments.extend(left);
            for (i, copied) in backups.iter().enumerate() {
                check_segments(copied, &segments)?;
                let is = restored(seed + i as u64, copied, &segments, Upto::End)?;
                if is != state {
                    return Err(format!("restored to the end: {:?}", difference(&state, &is)));
                }
                // Each end of a backup is followed by a moment: the next round's.
                let later: Vec<_> = moments.iter().filter(|(lsn, _)| *lsn >= copied.end.lsn).collect();
                let (lsn, then) = later[(seed as usize + i) % later.len()];
                let is = restored(seed + i as u64 + 1, copied, &segments, Upto::Lsn(*lsn))?;
                if is != *then {
                    return Err(format!("restored to {lsn}: {:?}", difference(then, &is)));
                }
            }
            break;
        }
        let copied = life(&world, &db, &model).map(Arc::new);
        let events = world.recorder.events();
        drop(db);
        let left = world.crash([Choice::Random(seed), Choice::None][round as usize % 2]);
        let mut looking = World::new(round_seed, Some(left.clone()), false);
        looking.config.archive = Some(archive(looking.sim.env(), Shelf::default()));
        let db = looking.open().map_err(|e| format!("round {round}: open failed: {e}"))?;
        state = verify(&looking, &db, &model.states_at(events)).map_err(|e| format!("round {round}: {e}"))?;
        drop(db);
        if let Some(copied) = copied {
            check_alone(seed + round, &copied, &model).map_err(|e| format!("round {round}: {e}"))?;
            backups.push(copied);
            made += 1;
        }
        images = Some(left);
    }
    Ok(made)
}

/// From the backup's first on the archive has all segments, and they connect.
fn check_segments(copied: &Copied, segments: &BTreeMap<u64, Vec<u8>>) -> Result<(), String> {
    let mut before: Option<(u64, terrace_storage::Lsn)> = None;
    for (number, bytes) in segments.range(copied.end.first_segment..) {
        let facts = segment_facts(bytes, copied.control.database, copied.control.segment_size);
        let facts = facts.map_err(|e| e.to_string())?.ok_or(format!("segment {number} is of another database"))?;
        if let Some((last, ends)) = before
            && (last + 1 != *number || facts.begins != ends)
        {
            return Err(format!("segment {number} begins at {}, {last} ended at {ends}", facts.begins));
        }
        before = Some((*number, facts.ends));
    }
    Ok(())
}

#[test]
fn backups_and_archived_log_of_a_database_that_crashes() {
    let mut made = 0;
    for seed in seeds() {
        let _replay = Replay(seed);
        made += run(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
    assert!(made > 20 || !many_seeds(), "{made} backups were done");
}
