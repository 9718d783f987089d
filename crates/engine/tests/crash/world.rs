//! A simulated machine: devices under one recorder, an environment, and a database on them with everything tiny, so that short histories
//! meet every mechanism (eviction, splits, extents, segment changes, the redo bound).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::fault::{Choice, FaultDevice, Recorder};
use terrace_device::latency::{Cost, Latency, Model as LatencyModel, Timer};
use terrace_device::{DeviceRef, Guarantees, Image};
use terrace_engine::{Database, EngineConfig, OpenReport, Result};
use terrace_env::{Env, Sim};
use terrace_storage::config::{PoolPolicy, Safeguards};
use terrace_storage::{DeviceSet, StorageConfig};

pub(crate) const NAMES: [&str; 5] = ["control", "log", "double-write", "data", "undo"];
pub(crate) const LOG: usize = 1;
pub(crate) const DATA: usize = 3;
pub(crate) const UNDO: usize = 4;

/// Fast enough to be cheap, slow enough that operations overlap.
const MODEL: LatencyModel = LatencyModel {
    read: Cost::new(20_000, 0),
    write: Cost::new(30_000, 0),
    sync: Cost::new(100_000, 0),
    parallelism: 4,
};

struct EnvTimer(Env);

impl Timer for EnvTimer {
    fn now(&self) -> u64 {
        self.0.now().0
    }
    fn sleep_until(&self, nanos: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.sleep_until(terrace_env::Nanos(nanos))
    }
}

/// A machine that is switched on.
pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) devices: [Arc<FaultDevice>; 5],
    pub(crate) config: StorageConfig,
    pub(crate) seed: u64,
}

impl World {
    /// A machine whose devices hold `images` (in the order of [`NAMES`]), or nothing. `keep`: record for a sweep.
    pub(crate) fn new(seed: u64, images: Option<Vec<Image>>, keep: bool) -> World {
        let sim = Sim::new(seed, 2);
        let recorder = Recorder::new(keep);
        let mut images = images.unwrap_or_else(|| vec![Image::new(); 5]).into_iter();
        let devices = NAMES.map(|name| {
            let guarantees = Guarantees { atomic_write: 512, capacity: u64::MAX };
            let image = images.next().expect("an image for each device");
            let latency = Arc::new(Latency::new(MODEL, Arc::new(EnvTimer(sim.env()))));
            Arc::new(recorder.device(name, guarantees, image).with_latency(latency))
        });
        World { sim, recorder, devices, config: config(seed), seed }
    }

    pub(crate) fn without(mut self, safeguards: Safeguards) -> World {
        self.config.safeguards = safeguards;
        self
    }

    pub(crate) fn set(&self) -> DeviceSet {
        let device = |i: usize| self.devices[i].clone() as DeviceRef;
        DeviceSet { control: device(0), log: device(1), double_write: device(2), data: device(3), undo: device(4) }
    }

    pub(crate) fn create(&self) -> Result<Database> {
        self.sim.run(Database::create(self.sim.env(), self.set(), self.config.clone(), engine_config()))
    }

    pub(crate) fn open(&self) -> Result<Database> {
        self.open_reported().map(|(db, _)| db)
    }

    pub(crate) fn open_reported(&self) -> Result<(Database, OpenReport)> {
        self.sim.run(Database::open(self.sim.env(), self.set(), self.config.clone(), engine_config()))
    }

    /// What the media hold if the power goes now.
    pub(crate) fn crash(self, choice: Choice) -> Vec<Image> {
        self.recorder.power_off();
        self.sim.crash();
        self.recorder.contents(choice)
    }
}

fn engine_config() -> EngineConfig {
    EngineConfig { lock_timeout: Duration::from_secs(2), ..EngineConfig::default() }
}

/// Sizes differ by seed, so that different mechanisms are short of room.
fn config(seed: u64) -> StorageConfig {
    StorageConfig {
        page_size: 4096,
        pool_bytes: [32, 48, 64, 96][seed as usize % 4] * 4096,
        pool_policy: [PoolPolicy::Lru, PoolPolicy::Clock, PoolPolicy::Lru2][seed as usize % 3],
        redo_bound: [128, 256, 512][seed as usize / 4 % 3] << 10,
        log_retention: 256 << 10,
        segment_size: [64, 128][seed as usize / 2 % 2] << 10,
        log_buffer: 64 << 10,
        writer_interval: Duration::from_millis(5),
        checkpoint_interval: Duration::from_millis(20),
        write_group: 8,
        read_ahead: 4,
        safeguards: Safeguards::default(),
    }
}
