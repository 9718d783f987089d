//! A machine in virtual time: emulated devices by profile, a database on them, terminals that run a workload for a
//! while.
//!
//! 1. Bytes lie in memory and cost nothing; time comes from the profiles' models and from the CPU that the workload
//!    charges.
//! 2. Devices that the profile of one disk stands for share its queue: log and double-writes on one, control beside
//!    them. The flash tier has a device of its own.
//! 3. The database is loaded with all devices at once (no time is charged), closed, and only then put on the emulated
//!    ones, so that every run begins from what a shut-down server left. What was loaded does not depend on the
//!    machine's seed: runs share it.
//! 4. A terminal ends with the transaction that it is in when time is up; conditions are checked when all have ended.
mod session;

pub use session::Session;

use crate::heat::{self, Heat};
use crate::workload::{Outcome, Sample, Workload};
use futures::FutureExt;
use parking_lot::Mutex;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::emulate::{Emulator, Profile};
use terrace_device::latency::{Delay, LatencyDevice, Timer};
use terrace_device::{Device, DeviceRef, DeviceStats, Guarantees, Image, MemoryDevice, SECTOR};
use terrace_engine::{Database, EngineConfig, EngineError, Result};
use terrace_env::{Env, Nanos, Sim};
use terrace_storage::{DeviceSet, FlashStats, StorageConfig};

/// What a run stands on.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Profiles by name.
    pub data: Profile,
    pub log: Profile,
    /// The flash tier's device; how large the tier is and how it works: `storage.flash`.
    pub flash: Option<Profile>,
    pub cores: usize,
    pub storage: StorageConfig,
    /// Charged to the CPU for each statement of a transaction.
    pub statement_cpu: Duration,
    /// Data and undo pages are written whole or not at all, so that there are no double-writes (as in the papers), and
    /// groups of any size.
    pub whole_pages: bool,
    pub seed: u64,
}

/// How long to run, and how to look at it. Virtual time.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub terminals: usize,
    pub duration: Duration,
    /// Width of a sample.
    pub window: Duration,
}

/// What the devices and the flash tier did in a window of time; gauges are as of its end.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Seconds since the run began, at the window's end.
    pub at: f64,
    pub data: DeviceStats,
    pub log: DeviceStats,
    pub flash: DeviceStats,
    /// Reads that the tier served, and those that it did not.
    pub tier_hits: u64,
    pub tier_misses: u64,
    /// Of the hits, pages that were newer there than on the disk.
    pub tier_dirty_hits: u64,
    /// Of the misses, pages that the tier held and was too busy to give.
    pub tier_throttled: u64,
    /// Pages not let in, by [`REJECTED`].
    pub tier_rejected: [u64; REJECTED.len()],
    /// Bytes written to the tier.
    pub tier_written: u64,
    /// Gauges: frames of the tier in use, and of them dirty.
    pub tier_used: u64,
    pub tier_dirty: u64,
    /// Nanoseconds that transactions waited for each other's locks, in waits that have ended.
    pub lock_wait: u64,
}

/// Why pages are not let into the tier.
pub const REJECTED: [&str; 8] = [
    "rejected sequential",
    "rejected throttled",
    "rejected policy",
    "rejected old",
    "rejected dirty",
    "rejected cold",
    "rejected no frame",
    "rejected budget",
];

fn rejected(tier: &FlashStats) -> [u64; REJECTED.len()] {
    REJECTED.map(|reason| {
        let counter = tier.counters().find(|counter| counter.name == reason.replace(' ', "_"));
        counter.expect("REJECTED names counters of the tier").value
    })
}

/// What a run did.
#[derive(Clone, Debug)]
pub struct Measured {
    /// One for each window, in order.
    pub samples: Vec<Sample>,
    /// One for each window of the run's duration.
    pub traffic: Vec<Traffic>,
    /// Transfers of the data device during the run.
    pub data: DeviceStats,
    /// What the tier did, where there is one.
    pub tier: Option<FlashStats>,
    /// Which pages were used.
    pub heat: Heat,
    /// Problems that the workload's own conditions and the database's check found afterwards.
    pub problems: Vec<String>,
}

struct VirtualTime(Env);

impl Timer for VirtualTime {
    fn now(&self) -> u64 {
        self.0.now().0
    }
    fn sleep_until(&self, nanos: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.sleep_until(Nanos(nanos))
    }
}

/// A loaded database on media that are switched off. Cheap to run on again and again: each run has its own copy of what
/// it writes.
#[derive(Clone)]
pub struct Loaded {
    images: [Image; 5],
}

/// The media of one run.
struct Media {
    devices: [Arc<MemoryDevice>; 6],
}

const NAMES: [&str; 6] = ["control", "log", "double-write", "data", "undo", "flash"];
const LOG: usize = 1;
const DATA: usize = 3;
const UNDO: usize = 4;
const FLASH: usize = 5;
/// Of the simulation that loads: a database's identity comes from its seed.
const LOAD_SEED: u64 = 1;
/// Memory to load with.
const LOAD_POOL: usize = 512 << 20;

impl Media {
    /// `whole`: the most bytes of data and undo that are written whole or not at all.
    fn new(loaded: Option<&Loaded>, whole: usize) -> Media {
        let image = |at: usize| loaded.and_then(|l| l.images.get(at).cloned()).unwrap_or_default();
        let device = |at: usize| {
            let atomic_write = if [DATA, UNDO].contains(&at) { whole } else { SECTOR };
            let guarantees = Guarantees { atomic_write, capacity: u64::MAX };
            Arc::new(MemoryDevice::with_image(NAMES[at], guarantees, image(at)))
        };
        Media { devices: std::array::from_fn(device) }
    }

    fn at_once(&self) -> DeviceSet {
        let device = |at: usize| self.devices[at].clone() as DeviceRef;
        let [control, log, double_write, data, undo] = std::array::from_fn(device);
        DeviceSet { control, log, double_write, data, undo, flash: None }
    }

    /// Invariant 2.
    fn emulated(&self, machine: &Machine, env: &Env) -> DeviceSet {
        let emulator = |profile: &Profile| -> Arc<dyn Delay> {
            Arc::new(Emulator::new(profile, Arc::new(VirtualTime(env.clone()))))
        };
        let (data, log) = (emulator(&machine.data), emulator(&machine.log));
        let device = |at: usize, delay: &Arc<dyn Delay>| -> DeviceRef {
            Arc::new(LatencyDevice::new(self.devices[at].clone(), delay.clone()))
        };
        DeviceSet {
            control: device(0, &log),
            log: device(LOG, &log),
            double_write: device(2, &log),
            data: device(DATA, &data),
            undo: device(UNDO, &log),
            flash: machine.flash.as_ref().map(|profile| device(FLASH, &emulator(profile))),
        }
    }

    /// Counters since the media were made (the tier's: since it was opened), with no window's width.
    fn totals(&self, database: &Database) -> Traffic {
        let of = |at: usize| self.devices[at].stats();
        let stats = database.store().flash();
        let tier = |value: fn(&FlashStats) -> u64| stats.as_ref().map_or(0, value);
        Traffic {
            at: 0.0,
            data: of(DATA),
            log: of(LOG),
            flash: of(FLASH),
            tier_hits: tier(|t| t.hits),
            tier_misses: tier(|t| t.misses),
            tier_dirty_hits: tier(|t| t.dirty_hits),
            tier_throttled: tier(|t| t.throttled_reads),
            tier_rejected: stats.as_ref().map(rejected).unwrap_or_default(),
            tier_written: tier(|t| t.written_bytes),
            tier_used: tier(|t| t.used),
            tier_dirty: tier(|t| t.dirty),
            lock_wait: database.lock_wait().as_nanos() as u64,
        }
    }
}

impl Traffic {
    fn since(&self, before: &Traffic, at: f64) -> Traffic {
        Traffic {
            at,
            data: difference(self.data, before.data),
            log: difference(self.log, before.log),
            flash: difference(self.flash, before.flash),
            tier_hits: self.tier_hits - before.tier_hits,
            tier_misses: self.tier_misses - before.tier_misses,
            tier_dirty_hits: self.tier_dirty_hits - before.tier_dirty_hits,
            tier_throttled: self.tier_throttled - before.tier_throttled,
            tier_rejected: std::array::from_fn(|at| self.tier_rejected[at] - before.tier_rejected[at]),
            tier_written: self.tier_written - before.tier_written,
            tier_used: self.tier_used,
            tier_dirty: self.tier_dirty,
            lock_wait: self.lock_wait - before.lock_wait,
        }
    }
}

impl Machine {
    fn whole(&self) -> usize {
        if self.whole_pages { self.storage.page_size } else { SECTOR }
    }

    /// Loads the workload, runs it, checks it. `progress` hears of the seconds run.
    pub fn run<W: Workload>(&self, workload: &Arc<W>, run: Run, progress: &dyn Fn(f64)) -> Result<Measured> {
        self.measure(&self.load(workload)?, workload, run, progress)
    }

    /// Runs a workload that was loaded under the same sizes of pages and segments, and checks it. `progress` hears of
    /// the seconds run.
    pub fn measure<W: Workload>(
        &self,
        loaded: &Loaded,
        workload: &Arc<W>,
        run: Run,
        progress: &dyn Fn(f64),
    ) -> Result<Measured> {
        let media = Media::new(Some(loaded), self.whole());
        let sim = Sim::new(self.seed, self.cores);
        let devices = media.emulated(self, &sim.env());
        let opening = Database::open(sim.env(), devices, self.storage.clone(), EngineConfig::default());
        let database = sim.run(opening)?.0;
        let before = media.totals(&database);
        heat::begin();
        let begin = sim.env().now();
        let end = Nanos(begin.0 + run.duration.as_nanos() as u64);
        let samples = Arc::new(Mutex::new(Vec::new()));
        // Dropped with each terminal.
        let (ended, mut running) = tokio::sync::mpsc::channel::<()>(1);
        for terminal in 0..run.terminals {
            let session = Terminal {
                database: database.clone(),
                workload: workload.clone(),
                random: ChaCha8Rng::seed_from_u64(self.seed ^ (terminal as u64 + 1) << 32),
                terminal,
                statement_cpu: self.statement_cpu,
                samples: samples.clone(),
                _ended: ended.clone(),
                begin,
                end,
                window: run.window,
            };
            sim.env().spawn("terminal", session.work());
        }
        drop(ended);
        let (env, mut last, mut traffic) = (sim.env(), before.clone(), Vec::new());
        while env.now() < end {
            sim.run(env.sleep_until(Nanos((env.now().0 + run.window.as_nanos() as u64).min(end.0))));
            let (now, at) = (media.totals(&database), (env.now().0 - begin.0) as f64 / 1e9);
            traffic.push(now.since(&last, at));
            last = now;
            progress(at);
        }
        sim.run(async move { running.recv().await }); // Invariant 4: nothing is sent; it ends when all have.
        let after = media.totals(&database);
        let heat = heat::end(&database);
        let samples = std::mem::take(&mut *samples.lock());
        let tier = database.store().flash();
        let workload = workload.clone();
        let problems = sim.run(async move {
            let mut problems = workload.check(&database).await?;
            problems.extend(database.check().await?);
            Ok::<_, EngineError>(problems)
        })?;
        Ok(Measured { samples, traffic, data: difference(after.data, before.data), tier, heat, problems })
    }

    /// Makes the database and fills it. Invariant 3.
    pub fn load<W: Workload>(&self, workload: &Arc<W>) -> Result<Loaded> {
        let media = Media::new(None, SECTOR); // One load serves machines with double-writes and without.
        let sim = Sim::new(LOAD_SEED, self.cores);
        let roomy = StorageConfig { pool_bytes: self.storage.pool_bytes.max(LOAD_POOL), ..self.storage.clone() };
        let creating = Database::create(sim.env(), media.at_once(), roomy, EngineConfig::default());
        let workload = workload.clone();
        sim.run(async move {
            let database = creating.await?;
            workload.load(&database).await?;
            database.close().await
        })?;
        Ok(Loaded { images: std::array::from_fn(|at| media.devices[at].image()) })
    }
}

fn difference(after: DeviceStats, before: DeviceStats) -> DeviceStats {
    DeviceStats {
        reads: after.reads - before.reads,
        read_bytes: after.read_bytes - before.read_bytes,
        writes: after.writes - before.writes,
        write_bytes: after.write_bytes - before.write_bytes,
        syncs: after.syncs - before.syncs,
    }
}

/// One user: transactions one after the other until the end, without think time.
struct Terminal<W> {
    database: Database,
    workload: Arc<W>,
    random: ChaCha8Rng,
    terminal: usize,
    statement_cpu: Duration,
    samples: Arc<Mutex<Vec<Sample>>>,
    _ended: tokio::sync::mpsc::Sender<()>,
    begin: Nanos,
    end: Nanos,
    window: Duration,
}

impl<W: Workload> Terminal<W> {
    fn work(mut self) -> impl Future<Output = ()> + Send + 'static {
        async move {
            let env = self.database.env().clone();
            while env.now() < self.end {
                let from = env.now();
                let outcome = self.workload.transaction(&self.database, self.terminal, &mut self.random).await;
                let outcome = outcome.unwrap_or_else(|e| panic!("terminal {}: {e}", self.terminal));
                env.cpu(self.statement_cpu * outcome.statements).await;
                self.note(&outcome, env.now(), env.now().0 - from.0);
            }
        }
        .boxed()
    }

    fn note(&self, outcome: &Outcome, now: Nanos, took: u64) {
        let window = (now.0 - self.begin.0) / self.window.as_nanos() as u64;
        let mut samples = self.samples.lock();
        let at = usize::try_from(window).expect("a number of windows");
        if samples.len() <= at {
            samples.resize(at + 1, Sample::default());
        }
        let sample = &mut samples[at];
        sample.transactions += 1;
        sample.counted += u64::from(outcome.counted);
        sample.retries += u64::from(outcome.retries);
        sample.nanos += took;
    }
}
