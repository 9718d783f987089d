//! Background tasks that die: each in turn is made to panic while sessions work. The database must stop and say why,
//! nobody may wait for ever, and what was acknowledged must be there when it is opened again.
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use terrace_device::{DeviceRef, MemoryDevice};
use terrace_engine::{
    ColumnDef, DataType, Database, Datum, DatumRef, EngineConfig, EngineError, IndexSpec, Isolation, Result, Table,
    TableSpec, Txn,
};
use terrace_env::{Env, Sim};
use terrace_storage::log::archive::Archive;
use terrace_storage::{DeviceSet, FlashConfig, StorageConfig};

const SESSIONS: i32 = 6;
/// Of each session; row 0 is everybody's.
const ROWS: i32 = 50;

/// Those that a database has as long as it is open, with a flash tier and an archive.
const LASTING: [&str; 10] = [
    "log-writer",
    "log space",
    "log archive",
    "page writer",
    "pool cleaner",
    "background writer",
    "flash writer",
    "flash cleaner",
    "purge",
    "lazy flush",
];
/// Those that come and go with some work.
const PASSING: [&str; 4] = ["page write", "commit", "rollback", "flash change"];

fn devices() -> DeviceSet {
    let device = |name: &str| Arc::new(MemoryDevice::new(name, 1 << 30)) as DeviceRef;
    DeviceSet { flash: Some(device("flash")), ..DeviceSet::from_fn(device) }
}

/// Short of everything, so that every task has work.
fn storage() -> StorageConfig {
    StorageConfig {
        page_size: 4096,
        pool_bytes: 48 * 4096,
        segment_size: 64 << 10,
        redo_bound: 256 << 10,
        log_retention: 256 << 10,
        log_buffer: 64 << 10,
        archive: Some(Archive::new(|_, _| async { Ok(()) })),
        writer_interval: Duration::from_millis(2),
        checkpoint_interval: Duration::from_millis(20),
        flash: FlashConfig { size: 64 * 4096, ..FlashConfig::default() },
        ..StorageConfig::default()
    }
}

fn row(id: i32, v: i32) -> Vec<Datum> {
    vec![Datum::Int4(id), Datum::Int4(v), Datum::text("some text ".repeat(60))]
}

async fn made(env: &Env, devices: DeviceSet) -> Result<Database> {
    let db = Database::create(env.clone(), devices, storage(), EngineConfig::default()).await?;
    let mut txn = db.begin(Isolation::ReadCommitted);
    let columns = vec![
        ColumnDef::new("id", DataType::Int4).not_null(),
        ColumnDef::new("v", DataType::Int4),
        ColumnDef::new("t", DataType::Text),
    ];
    let key = IndexSpec { name: "t_pkey".into(), columns: vec![0], unique: true, primary: true, extras: None };
    let t = txn.create_table(TableSpec { name: "t".into(), columns, indexes: vec![key] }).await?;
    for id in 0..=SESSIONS * ROWS {
        txn.insert(&t, &row(id, 0)).await?;
    }
    txn.commit().await?;
    Ok(db)
}

/// Of each row: the last number that was acknowledged, and the last that may have been committed.
type Known = Arc<Mutex<BTreeMap<i32, (i32, i32)>>>;

struct Session {
    env: Env,
    db: Database,
    t: Arc<Table>,
    number: i32,
    known: Known,
}

impl Session {
    fn pick(&self, n: u64) -> u64 {
        self.env.random_u64() % n
    }

    /// Writes numbers into rows of its own until something fails.
    async fn work(self) -> EngineError {
        for round in 1.. {
            let id = self.number + SESSIONS * self.pick(ROWS as u64) as i32;
            if let Err(e) = self.transaction(id, round).await {
                return e;
            }
            self.env.sleep(Duration::from_micros(self.pick(800))).await;
        }
        unreachable!("it works until something fails")
    }

    async fn write(&self, txn: &mut Txn, id: i32, round: i32) -> Result<()> {
        txn.begin_statement();
        let found = txn.get(&self.t, &self.t.indexes[0], &[Datum::Int4(id)]).await?;
        let (rid, _, version) = found.expect("no row is deleted");
        txn.update(&self.t, rid, version, &row(id, round)).await.map(|_| ())
    }

    /// Ended in one of the ways there are.
    async fn transaction(&self, id: i32, round: i32) -> Result<()> {
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        self.write(&mut txn, id, round).await?;
        if self.pick(3) == 0 {
            self.write(&mut txn, 0, round).await?; // They wait for each other.
        }
        let way = self.pick(6);
        if way > 1 {
            self.known.lock().entry(id).or_default().1 = round;
        }
        match way {
            0 => drop(txn),
            1 => txn.rollback().await?,
            2 => txn.commit_async().await?,
            3 => {
                // Left on the way: a task goes on with it.
                let mut commit = Box::pin(txn.commit());
                match poll_fn(|cx| Poll::Ready(commit.as_mut().poll(cx))).await {
                    Poll::Ready(done) => done?,
                    Poll::Pending => {}
                }
            }
            _ => {
                txn.commit().await?;
                self.known.lock().insert(id, (round, round));
            }
        }
        Ok(())
    }
}

/// Kills one task among sessions at work; what they were told, and what is there afterwards.
fn killed(seed: u64, task: &'static str) {
    let (devices, known) = (devices(), Known::default());
    let sim = Sim::new(seed, 2);
    let (env, first) = (sim.env(), devices.clone());
    let db = sim.run(async move { made(&env, first).await.expect("the devices are empty") });
    let t = db.catalog().table("t").expect("just made").clone();
    let told = Arc::new(Mutex::new(Vec::new()));
    for number in 1..=SESSIONS {
        let session = Session { env: sim.env(), db: db.clone(), t: t.clone(), number, known: known.clone() };
        let told = told.clone();
        sim.env().spawn("session", async move {
            let e = session.work().await;
            told.lock().push(e);
        });
    }
    let env = sim.env();
    sim.run(async move { env.sleep(Duration::from_millis(50)).await });
    let there = sim.tasks();
    assert!(LASTING.iter().all(|name| there.contains(name)), "{LASTING:?} among {there:?}");
    sim.strike(task);
    let (env, struck, waiting) = (sim.env(), db.clone(), told.clone());
    let (failure, closed) = sim.run(async move {
        if task == "flash change" {
            let config = FlashConfig { size: 32 * 4096, ..FlashConfig::default() };
            let (_, device) = struck.store().flash_config();
            struck.store().set_flash(device, config).await.expect_err("its task died");
        }
        for _ in 0..600 {
            env.sleep(Duration::from_millis(100)).await;
            if waiting.lock().len() == SESSIONS as usize {
                break;
            }
        }
        (struck.failure(), struck.close().await)
    });
    let told = told.lock();
    assert_eq!(told.len(), SESSIONS as usize, "{task}: everybody learns it: {told:?}");
    let states: Vec<&str> = told.iter().map(|e| e.state.0).collect();
    assert!(states.iter().all(|state| ["XX000", "58030", "57P01"].contains(state)), "{task}: {told:?}");
    assert!(told.iter().any(|e| e.message.contains(task)), "{task}: somebody learns why: {told:?}");
    let failure = failure.expect("it has failed").message;
    assert!(failure.contains(&format!("background task \"{task}\" failed")), "{failure}");
    assert!(closed.is_err(), "what has failed is not closed in order");
    drop(db);
    sim.crash();
    reopened(seed, devices, &known.lock());
}

fn reopened(seed: u64, devices: DeviceSet, known: &BTreeMap<i32, (i32, i32)>) {
    let sim = Sim::new(seed + 1000, 2);
    let (env, known) = (sim.env(), known.clone());
    sim.run(async move {
        let (db, _) = Database::open(env, devices, storage(), EngineConfig::default()).await.expect("it recovers");
        let t = db.catalog().table("t").expect("made at the beginning").clone();
        let mut txn = db.begin(Isolation::ReadCommitted);
        for (id, (acknowledged, tried)) in known {
            let (_, found, _) =
                txn.get(&t, &t.indexes[0], &[Datum::Int4(id)]).await.unwrap().expect("no row is deleted");
            let DatumRef::Int4(v) = found.view(&t).get(1) else { panic!("a number") };
            assert!((acknowledged..=tried).contains(&v), "row {id} holds {v}, not {acknowledged} to {tried}");
        }
        txn.commit().await.unwrap();
        assert_eq!(db.check().await.unwrap(), Vec::<String>::new());
        db.close().await.unwrap();
    });
}

#[test]
fn s6_a_background_task_that_panics_stops_the_database() {
    for (seed, task) in (0..).zip(LASTING.into_iter().chain(PASSING)) {
        killed(seed, task);
    }
}
