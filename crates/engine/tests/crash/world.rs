//! A simulated machine: devices under one recorder, an environment, and a database on them with everything tiny, so
//! that short histories meet every mechanism (eviction, splits, extents, segment changes, the redo bound).

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::fault::{Choice, FaultDevice, Recorder};
use terrace_device::latency::{Cost, Latency, Model as LatencyModel, Timer};
use terrace_device::{DeviceRef, Guarantees, Image};
use terrace_engine::{Database, EngineConfig, OpenReport, Result};
use terrace_env::{Env, Sim};
use terrace_storage::config::{PoolPolicy, Restart, Safeguards};
use terrace_storage::{DeviceSet, FlashConfig, StorageConfig};

pub(crate) const NAMES: [&str; 6] = ["control", "log", "double-write", "data", "undo", "flash"];
pub(crate) const LOG: usize = 1;
pub(crate) const DATA: usize = 3;
pub(crate) const UNDO: usize = 4;
pub(crate) const FLASH: usize = 5;

thread_local! {
    /// How the flash tiers of this thread's worlds work; `None`: they have none.
    static TIER: RefCell<Option<FlashConfig>> = const { RefCell::new(None) };
}

/// What the worlds of this thread have that others have not.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) page_size: usize,
    pub(crate) torn_reads: bool,
    /// Nanoseconds of a read of the flash device.
    pub(crate) flash_read: u64,
    /// Nanoseconds of a transfer of the devices for data and undo; `None`: as fast as the others.
    pub(crate) disk: Option<u64>,
    /// Bytes of log that are kept; `None`: few.
    pub(crate) retention: Option<u64>,
    /// How long a restart may take; `None`: long, or not said.
    pub(crate) restart_target: Option<Duration>,
    pub(crate) safeguards: Safeguards,
}

const PLAIN: Shape = Shape {
    page_size: 4096,
    torn_reads: false,
    flash_read: READ,
    disk: None,
    retention: None,
    restart_target: None,
    safeguards: Safeguards::all(),
};

thread_local! {
    static SHAPE: Cell<Shape> = const { Cell::new(PLAIN) };
}

/// Runs something in whose worlds everything is of that shape, sizes in proportion to the pages'; within another such
/// run, of that one's shape but for what changes.
pub(crate) fn with_shape<T>(change: impl FnOnce(&mut Shape), run: impl FnOnce() -> T) -> T {
    struct Back(Shape);
    impl Drop for Back {
        fn drop(&mut self) {
            SHAPE.set(self.0);
        }
    }
    let mut shape = SHAPE.get();
    let _back = Back(shape);
    change(&mut shape);
    SHAPE.set(shape);
    run()
}

/// Runs something in whose worlds there is a flash tier.
pub(crate) fn with_tier<T>(config: FlashConfig, run: impl FnOnce() -> T) -> T {
    TIER.set(Some(config));
    let result = run();
    TIER.set(None);
    result
}

/// Nanoseconds of a read.
const READ: u64 = 20_000;

/// Fast enough to be cheap, slow enough that operations overlap.
const MODEL: LatencyModel =
    LatencyModel { read: Cost::new(READ, 0), write: Cost::new(30_000, 0), sync: Cost::new(100_000, 0), parallelism: 4 };

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
    pub(crate) devices: [Arc<FaultDevice>; 6],
    pub(crate) config: StorageConfig,
    pub(crate) seed: u64,
}

impl World {
    /// A machine whose devices hold `images` (in the order of [`NAMES`]), or nothing. `keep`: record for a sweep.
    pub(crate) fn new(seed: u64, images: Option<Vec<Image>>, keep: bool) -> World {
        let sim = Sim::new(seed, 2);
        let recorder = Recorder::new(keep);
        let mut images = images.unwrap_or_else(|| vec![Image::new(); NAMES.len()]).into_iter();
        let devices = NAMES.map(|name| {
            let guarantees = Guarantees { atomic_write: 512, capacity: u64::MAX };
            let image = images.next().expect("an image for each device");
            let read = if name == NAMES[FLASH] { SHAPE.get().flash_read } else { READ };
            let model = match SHAPE.get().disk.filter(|_| [NAMES[DATA], NAMES[UNDO]].contains(&name)) {
                Some(nanos) => LatencyModel { read: Cost::new(nanos, 0), write: Cost::new(nanos, 0), ..MODEL },
                None => LatencyModel { read: Cost::new(read, 0), ..MODEL },
            };
            let latency = Arc::new(Latency::new(model, Arc::new(EnvTimer(sim.env()))));
            let device = recorder.device(name, guarantees, image).with_latency(latency);
            Arc::new(if SHAPE.get().torn_reads { device.with_torn_reads(seed) } else { device })
        });
        World { sim, recorder, devices, config: config(seed), seed }
    }

    pub(crate) fn without(mut self, safeguards: Safeguards) -> World {
        if safeguards != Safeguards::all() {
            self.config.safeguards = safeguards;
        }
        self
    }

    pub(crate) fn set(&self) -> DeviceSet {
        let device = |i: usize| self.devices[i].clone() as DeviceRef;
        let flash = TIER.with_borrow(|tier| tier.is_some().then(|| device(FLASH)));
        let [control, log, double_write, data, undo] = std::array::from_fn(device);
        DeviceSet { control, log, double_write, data, undo, flash }
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

pub(crate) fn engine_config() -> EngineConfig {
    EngineConfig { lock_timeout: Duration::from_secs(2), ..EngineConfig::default() }
}

/// Unless another than the default is said, a restart differs by seed too.
fn restarting(seed: u64, flash: FlashConfig) -> FlashConfig {
    let restart = match flash.restart {
        Restart::Instant if flash.write_budget.is_some() => Restart::Instant,
        Restart::Instant => METHODS[seed as usize / 2 % METHODS.len()],
        said => said,
    };
    FlashConfig { restart, ..flash }
}

const METHODS: [Restart; 5] =
    [Restart::Instant, Restart::Instant, Restart::LazyVerification, Restart::MemoryMapped, Restart::LogBased];

/// Sizes differ by seed, so that different mechanisms are short of room.
fn config(seed: u64) -> StorageConfig {
    let shape = SHAPE.get();
    let times = shape.page_size / 4096;
    StorageConfig {
        page_size: shape.page_size,
        pool_bytes: [32, 48, 64, 96][seed as usize % 4] * shape.page_size,
        pool_policy: [PoolPolicy::Lru, PoolPolicy::Clock, PoolPolicy::Lru2][seed as usize % 3],
        restart_target: shape.restart_target.or([None, Some(Duration::from_millis(20))][seed as usize / 5 % 2]),
        redo_bound: ([128, 256, 512][seed as usize / 4 % 3] << 10) * times as u64,
        log_retention: shape.retention.unwrap_or((256 << 10) * times as u64),
        archive: None,
        segment_size: ([64, 128][seed as usize / 2 % 2] << 10) * times as u64,
        log_buffer: (64 << 10) * times,
        writer_interval: Duration::from_millis(5),
        checkpoint_interval: Duration::from_millis(20),
        write_group: 8,
        sharp_checkpoints: [true, false, false][seed as usize / 3 % 3],
        read_ahead: 4,
        flash: restarting(seed, TIER.with_borrow(|tier| tier.clone().unwrap_or_default())),
        safeguards: shape.safeguards,
        redo_memory: [2, 16, 1024][seed as usize / 8 % 3] << 10,
        progress: Arc::default(),
    }
}
