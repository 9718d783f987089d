//! Crashes at every point of scripted work: what must never be left behind. (Random work under crashes: `tests/crash`.)
use crate::record::is_chained;
use crate::testing::*;
use crate::txn::{Isolation, Txn, UpdateOutcome};
use crate::versions::heap;
use crate::{Database, Datum, EngineConfig, Table};
use std::sync::Arc;
use std::time::Duration;
use terrace_device::fault::{Choice, Recorder};
use terrace_device::latency::{Cost, Latency, Model, Timer};
use terrace_device::{DeviceRef, Guarantees, Image};
use terrace_env::{BoxFuture, Env, Nanos, Sim};
use terrace_storage::{DeviceSet, Rid, StorageConfig};

pub(crate) struct Clock(pub(crate) Env);

impl Timer for Clock {
    fn now(&self) -> u64 {
        self.0.now().0
    }
    fn sleep_until(&self, nanos: u64) -> BoxFuture<()> {
        self.0.sleep_until(Nanos(nanos))
    }
}

const NAMES: [&str; 5] = ["control", "log", "double-write", "data", "undo"];

pub(crate) fn recorded(env: &Env, recorder: &Arc<Recorder>, images: Option<Vec<Image>>) -> DeviceSet {
    let cost = Cost::new(20_000, 0);
    let model = Model { read: cost, write: cost, sync: cost, parallelism: 4 };
    let images = images.unwrap_or_else(|| vec![Image::new(); NAMES.len()]);
    let mut devices = NAMES.iter().zip(images).map(|(name, image)| {
        let latency = Arc::new(Latency::new(model, Arc::new(Clock(env.clone()))));
        let guarantees = Guarantees { atomic_write: 512, capacity: u64::MAX };
        Arc::new(recorder.device(name, guarantees, image).with_latency(latency)) as DeviceRef
    });
    let mut next = || devices.next().expect("five devices");
    DeviceSet { control: next(), log: next(), double_write: next(), data: next(), undo: next(), flash: None }
}

/// A log buffer of a few fragments and a pool of few pages: long rows do not go through in one step.
pub(crate) fn tiny() -> StorageConfig {
    StorageConfig {
        page_size: 4096,
        pool_bytes: 40 * 4096,
        segment_size: 128 << 10,
        redo_bound: 256 << 10,
        log_retention: 256 << 10,
        log_buffer: 32 << 10,
        writer_interval: Duration::from_millis(2),
        checkpoint_interval: Duration::from_millis(5),
        write_group: 8,
        ..StorageConfig::default()
    }
}

pub(crate) fn long(id: i32, v: i32, len: usize) -> Vec<Datum> {
    vec![Datum::Int4(id), Datum::Int4(v), Datum::text("long text ".repeat(len / 10))]
}

/// One change of a row by its key.
async fn change(txn: &mut Txn, t: &Table, id: i32, to: &[Datum]) {
    txn.begin_statement();
    let (rid, _, version) = get(txn, t, id).await.expect("the row is visible");
    assert!(matches!(txn.update(t, rid, version, to).await.unwrap(), UpdateOutcome::Done));
}

async fn insert(db: &Database, t: &Table, row: &[Datum]) -> Rid {
    let mut txn = db.begin(Isolation::ReadCommitted);
    let rid = txn.insert(t, row).await.unwrap();
    txn.commit().await.unwrap();
    rid
}

/// Chains written, kept, replaced, undone, purged.
async fn chains(db: &Database, t: &Table) {
    let begin = || db.begin(Isolation::ReadCommitted);
    insert(db, t, &long(1, 1, 50_000)).await;
    let mut txn = begin();
    txn.insert(t, &long(2, 1, 30_000)).await.unwrap();
    txn.rollback().await.unwrap();
    let mut txn = begin();
    change(&mut txn, t, 1, &long(1, 2, 45_000)).await;
    txn.commit().await.unwrap();
    db.purge().await.unwrap();
    let mut txn = begin();
    change(&mut txn, t, 1, &long(1, 3, 20_000)).await;
    let savepoint = txn.savepoint();
    change(&mut txn, t, 1, &long(1, 4, 60_000)).await;
    txn.rollback_to(savepoint).await.unwrap();
    txn.commit().await.unwrap();
    // The key changes with the chain: purge reads the old chain for the old key.
    let mut txn = begin();
    change(&mut txn, t, 1, &long(5, 4, 25_000)).await;
    txn.commit().await.unwrap();
    db.purge().await.unwrap();
    let mut txn = begin();
    txn.begin_statement();
    let (rid, _, version) = get(&mut txn, t, 5).await.unwrap();
    assert!(matches!(txn.delete(t, rid, version).await.unwrap(), UpdateOutcome::Done));
    txn.commit().await.unwrap();
    db.purge().await.unwrap();
}

/// Old versions that no longer fit their page when a rollback restores them: another's, and the transaction's own.
async fn spills(db: &Database, t: &Table) {
    let rid = insert(db, t, &long(10, 1, 1500)).await;
    let mut txn = db.begin(Isolation::ReadCommitted);
    let own = txn.insert(t, &long(20, 1, 1500)).await.unwrap();
    let savepoint = txn.savepoint();
    change(&mut txn, t, 20, &long(20, 2, 10)).await;
    change(&mut txn, t, 10, &long(10, 2, 10)).await;
    for id in 30..36 {
        insert(db, t, &long(id, 1, 700)).await;
    }
    txn.rollback_to(savepoint).await.unwrap();
    let mut spilled = 0;
    for rid in [rid, own] {
        spilled += is_chained(&db.0.stored(rid).await.unwrap().unwrap().header) as u32;
    }
    assert!(spilled > 0, "the pages had room after all");
    change(&mut txn, t, 20, &long(20, 3, 20)).await;
    txn.rollback().await.unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    change(&mut txn, t, 10, &long(10, 5, 10)).await;
    txn.commit().await.unwrap();
    db.purge().await.unwrap();
}

/// Crashes at every event of `work` on a table; afterwards nothing may be wrong or left over.
fn sweep<F: Future<Output = ()> + Send + 'static>(work: impl FnOnce(Database, Arc<Table>) -> F) -> usize {
    let (sim, recorder) = (Sim::new(3, 2), Recorder::new(true));
    let devices = recorded(&sim.env(), &recorder, None);
    let env = sim.env();
    let (db, t) = sim.run(async move {
        let db = Database::create(env, devices, tiny(), EngineConfig::default()).await.unwrap();
        let t = table(&db, "t").await;
        db.store().checkpoint().await.unwrap();
        (db, t)
    });
    let from = recorder.events() as usize;
    sim.run(work(db, t));
    sim.crash();
    let history = recorder.history().expect("it is kept");
    let mut cursor = history.cursor();
    while cursor.position() < from {
        assert!(cursor.advance());
    }
    let mut cases = 0;
    loop {
        for choice in [Choice::None, Choice::All, Choice::Random(cursor.position() as u64)] {
            let what = format!("event {} of {}, {choice:?}", cursor.position(), history.len());
            let images = cursor.contents(choice);
            let (sim, recorder) = (Sim::new(4, 2), Recorder::new(false));
            let devices = recorded(&sim.env(), &recorder, Some(images));
            let env = sim.env();
            sim.run(async move {
                let (db, _) = Database::open(env, devices, tiny(), EngineConfig::default()).await.expect(&what);
                assert_eq!(db.check().await.expect(&what), Vec::<String>::new(), "{what}");
                assert_eq!(db.stats().histories, 0, "{what}");
            });
            sim.crash();
            cases += 1;
            if cursor.unsettled() == 0 {
                break;
            }
        }
        if !cursor.advance() {
            return cases;
        }
    }
}

#[test]
fn no_crash_leaves_fragments_of_long_rows() {
    let cases = sweep(|db, t| async move { chains(&db, &t).await });
    assert!(cases > 200, "{cases} crashes");
}

#[test]
fn no_crash_leaves_fragments_of_restored_rows() {
    let cases = sweep(|db, t| async move { spills(&db, &t).await });
    assert!(cases > 50, "{cases} crashes");
}

#[test]
fn a_fragment_that_nothing_leads_to_is_reported() {
    simulate(5, |env| async move {
        let db = database(&env).await;
        let t = table(&db, "t").await;
        insert(&db, &t, &long(1, 1, 20_000)).await;
        clean(&db).await;
        heap(t.oid).write_chain(db.store(), &[7; 9000], None).await.unwrap();
        let problems = db.check().await.unwrap();
        assert!(problems.len() == 1 && problems[0].contains("3 of 9 fragments"), "{problems:?}");
    });
}

/// Until creation has returned, what is there is refused with the way out, and can be overwritten; afterwards it opens.
#[test]
fn a_database_half_made_is_made_again() {
    let (sim, recorder) = (Sim::new(6, 2), Recorder::new(true));
    let (env, devices) = (sim.env(), recorded(&sim.env(), &recorder, None));
    drop(sim.run(async move { Database::create(env, devices, tiny(), EngineConfig::default()).await.unwrap() }));
    sim.crash();
    let history = recorder.history().expect("it is kept");
    let mut cursor = history.cursor();
    let (mut refused, mut opened) = (0, 0);
    loop {
        for choice in [Choice::None, Choice::All, Choice::Random(cursor.position() as u64)] {
            let what = format!("event {} of {}, {choice:?}", cursor.position(), history.len());
            let images = cursor.contents(choice);
            let sim = Sim::new(7, 2);
            let devices = recorded(&sim.env(), &Recorder::new(false), Some(images));
            let env = sim.env();
            let whole = sim.run(async move {
                let opening = Database::open(env.clone(), devices.clone(), tiny(), EngineConfig::default()).await;
                let whole = opening.is_ok();
                let db = match opening {
                    Ok((db, _)) => db,
                    Err(e) => {
                        assert!(e.message.contains("create it again"), "{what}: {e}");
                        Database::create(env, devices, tiny(), EngineConfig::default()).await.expect(&what)
                    }
                };
                let t = table(&db, "t").await;
                put(&db, &t, 1, 1).await;
                clean(&db).await;
                whole
            });
            sim.crash();
            *if whole { &mut opened } else { &mut refused } += 1;
        }
        if !cursor.advance() {
            break;
        }
    }
    assert!(refused > 20 && opened > 0, "{refused} refused, {opened} opened");
}

/// Commits that do not wait: what a crash leaves is a prefix of them, and all of it once the log has been flushed
/// behind them.
#[test]
fn asynchronous_commits_are_lost_from_the_end_alone() {
    let mut lost = 0;
    for seed in 0..30u64 {
        let sim = Sim::new(seed, 2);
        let recorder = Recorder::new(false);
        let devices = recorded(&sim.env(), &recorder, None);
        let (env, power) = (sim.env(), recorder.clone());
        let (settled, begun) = sim.run(async move {
            let db = Database::create(env.clone(), devices, tiny(), EngineConfig::default()).await.unwrap();
            let t = table(&db, "t").await;
            let (mut settled, mut begun) = (0, 0);
            for id in 0..40 + seed as i32 {
                let mut txn = db.begin(Isolation::ReadCommitted);
                txn.begin_statement();
                txn.insert(&t, &row(id, id)).await.unwrap();
                match id % 10 {
                    9 if seed % 2 == 0 => {
                        txn.commit().await.unwrap();
                        settled = id + 1;
                    }
                    9 => {
                        txn.commit_async().await.unwrap();
                        env.sleep(2 * crate::txn::LAZY_FLUSH).await;
                        settled = id + 1;
                    }
                    _ => txn.commit_async().await.unwrap(),
                }
                begun = id + 1;
                let mut txn = db.begin(Isolation::ReadCommitted);
                assert_eq!(value(&mut txn, &t, id).await, Some(id), "others see it at once");
            }
            power.power_off();
            (settled, begun)
        });
        sim.crash();
        let (_, images) = recorder.restart(Choice::Random(seed), false);
        let images: Vec<Image> = images.iter().map(|d| d.visible()).collect();
        let sim = Sim::new(seed, 2);
        let (env, devices) = (sim.env(), recorded(&sim.env(), &Recorder::new(false), Some(images)));
        lost += sim.run(async move {
            let (db, _) = Database::open(env, devices, tiny(), EngineConfig::default()).await.unwrap();
            let t = db.catalog().table("t").cloned().unwrap();
            let mut txn = db.begin(Isolation::ReadCommitted);
            let found: Vec<i32> = all(&mut txn, &t, crate::Scan::Full).await.into_iter().map(|r| r.0).collect();
            drop(txn);
            assert_eq!(found, (0..found.len() as i32).collect::<Vec<_>>(), "a prefix");
            assert!((settled..=begun).contains(&(found.len() as i32)), "{} of {settled}..={begun}", found.len());
            clean(&db).await;
            begun - found.len() as i32
        });
    }
    assert!(lost > 0, "nothing was lost: nothing was shown");
}
