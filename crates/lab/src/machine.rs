//! A machine in virtual time: emulated devices by profile, a database on them, terminals that run a workload for a while.
//!
//! 1. Bytes lie in memory and cost nothing; time comes from the profiles' models and from the CPU that the workload charges.
//! 2. Devices that the profile of one disk stands for share its queue: log and double-writes on one, control beside them.
//! 3. The database is loaded with all devices at once (no time is charged), checkpointed, and only then put on the emulated ones, so that
//!    every run begins from what a shut-down server left.
//! 4. A terminal ends with the transaction that it is in when time is up; conditions are checked when all have ended.
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
use terrace_device::{DeviceRef, DeviceStats, MemoryDevice};
use terrace_engine::{Database, EngineConfig, Result};
use terrace_env::{Env, Nanos, Sim};
use terrace_storage::{DeviceSet, StorageConfig};

/// What a run stands on.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Profiles by name.
    pub data: Profile,
    pub log: Profile,
    pub cores: usize,
    pub storage: StorageConfig,
    /// Charged to the CPU for each statement of a transaction.
    pub statement_cpu: Duration,
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

/// What a run did.
#[derive(Clone, Debug)]
pub struct Measured {
    /// One for each window, in order.
    pub samples: Vec<Sample>,
    /// Transfers of the data device during the run.
    pub data: DeviceStats,
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

/// The media of a machine that is switched off.
struct Media {
    devices: [Arc<MemoryDevice>; 5],
}

const NAMES: [&str; 5] = ["control", "log", "double-write", "data", "undo"];

impl Media {
    fn new() -> Media {
        Media { devices: NAMES.map(|name| Arc::new(MemoryDevice::new(name, u64::MAX))) }
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
            log: device(1, &log),
            double_write: device(2, &log),
            data: device(3, &data),
            undo: device(4, &log),
            flash: None,
        }
    }
}

impl Machine {
    /// Loads the workload, runs it, checks it. `progress` hears of the seconds run.
    pub fn run<W: Workload>(&self, workload: &Arc<W>, run: Run, progress: &dyn Fn(f64)) -> Result<Measured> {
        let media = Media::new();
        self.load(workload, &media)?;
        let sim = Sim::new(self.seed, self.cores);
        let devices = media.emulated(self, &sim.env());
        let opening = Database::open(sim.env(), devices, self.storage.clone(), EngineConfig::default());
        let database = sim.run(opening)?.0;
        let before = media.devices[3].as_ref().stats_now();
        let samples = Arc::new(Mutex::new(Vec::new()));
        let end = Nanos(sim.env().now().0 + run.duration.as_nanos() as u64);
        let begin = sim.env().now();
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
        let env = sim.env();
        let mut done = 0.0;
        while sim.env().now() < end {
            let step = Duration::from_secs(1).min(run.duration);
            sim.run(env.sleep(step));
            done += step.as_secs_f64();
            progress(done);
        }
        drop(ended);
        sim.run(async move { running.recv().await }); // Invariant 4: nothing is sent; it ends when all have.
        let after = media.devices[3].as_ref().stats_now();
        let samples = std::mem::take(&mut *samples.lock());
        let problems = sim.run({
            let (database, workload) = (database.clone(), workload.clone());
            async move {
                let mut problems = workload.check(&database).await?;
                problems.extend(database.check().await?);
                Ok::<_, terrace_engine::EngineError>(problems)
            }
        })?;
        Ok(Measured { samples, data: difference(after, before), problems })
    }

    /// Invariant 3.
    fn load<W: Workload>(&self, workload: &Arc<W>, media: &Media) -> Result<()> {
        let sim = Sim::new(self.seed, self.cores);
        let roomy = StorageConfig { pool_bytes: self.storage.pool_bytes.max(256 << 20), ..self.storage.clone() };
        let creating = Database::create(sim.env(), media.at_once(), roomy, EngineConfig::default());
        let workload = workload.clone();
        sim.run(async move {
            let database = creating.await?;
            workload.load(&database).await?;
            database.close().await
        })
    }
}

trait StatsNow {
    fn stats_now(&self) -> DeviceStats;
}

impl StatsNow for MemoryDevice {
    fn stats_now(&self) -> DeviceStats {
        terrace_device::Device::stats(self)
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
