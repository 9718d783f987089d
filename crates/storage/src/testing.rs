//! A store on memory devices, in virtual or real time, for the tests of this room.
use crate::config::{Safeguard, Safeguards};
use crate::home::PAGES_AT;
use crate::store::Store;
use crate::{DeviceSet, StorageConfig};
use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use terrace_device::latency::{Cost, Latency, LatencyDevice, Model, Timer};
use terrace_device::{DeviceRef, MemoryDevice};
use terrace_env::{Env, Nanos, Sim};

thread_local! {
    static SAFEGUARDS: Cell<Safeguards> = const { Cell::new(Safeguards::all()) };
}

/// What this thread's stores and logs guard against: everything, but within [`is_missed`].
pub(crate) fn safeguards() -> Safeguards {
    SAFEGUARDS.get()
}

/// Runs a test without a safeguard; whether it notices.
pub(crate) fn is_missed(safeguard: Safeguard, test: impl FnOnce()) -> bool {
    SAFEGUARDS.set(Safeguards::without(safeguard));
    let failed = catch_unwind(AssertUnwindSafe(test)).is_err();
    SAFEGUARDS.set(Safeguards::all());
    failed
}

/// Memory devices that outlive the stores opened on them.
#[derive(Clone)]
pub(crate) struct Rig {
    devices: [Arc<MemoryDevice>; 5],
    pub(crate) config: StorageConfig,
}

pub(crate) struct Clock(pub(crate) Env);

impl Timer for Clock {
    fn now(&self) -> u64 {
        self.0.now().0
    }
    fn sleep_until(&self, nanos: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.sleep_until(Nanos(nanos))
    }
}

impl Rig {
    /// Pages of 4 KiB, a pool of `pool_pages` of them, a data device with room for at most `capacity` bytes of pages.
    pub(crate) fn new(pool_pages: usize, capacity: u64) -> Rig {
        let device = |name: &str, capacity| Arc::new(MemoryDevice::new(name, capacity));
        let devices = ["control", "log", "double-write", "data", "undo"]
            .map(|name| device(name, if name == "data" { capacity.saturating_add(PAGES_AT) } else { u64::MAX }));
        let config = StorageConfig {
            page_size: 4096,
            pool_bytes: pool_pages * 4096,
            segment_size: 1 << 20,
            log_buffer: 1 << 20,
            redo_bound: 64 << 20,
            log_retention: 64 << 20,
            ..StorageConfig::default()
        };
        Rig { devices, config }
    }

    /// The devices as seen from `env`; slow in virtual time, so that misses let others run.
    fn devices(&self, env: &Env) -> DeviceSet {
        let cost = Cost::new(20_000, 0);
        let model = Model { read: cost, write: cost, sync: cost, parallelism: 8 };
        let slow = |i: usize| -> DeviceRef {
            let device = self.devices[i].clone();
            if !env.is_simulated() {
                return device;
            }
            Arc::new(LatencyDevice::new(device, Arc::new(Latency::new(model, Arc::new(Clock(env.clone()))))))
        };
        DeviceSet { control: slow(0), log: slow(1), double_write: slow(2), data: slow(3), undo: slow(4), flash: None }
    }

    pub(crate) async fn create(&self, env: Env) -> Store {
        let devices = self.devices(&env);
        Store::create(env, devices, self.config.clone()).await.expect("memory devices take a new database")
    }

    pub(crate) async fn open(&self, env: Env) -> Store {
        let devices = self.devices(&env);
        Store::open(env, devices, self.config.clone()).await.expect("the database opens").0
    }
}

/// Runs `main` on a new store in virtual time; afterwards everything is dropped as in a crash (all device writes kept).
pub(crate) fn simulate<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    seed: u64,
    rig: &Arc<Rig>,
    main: impl FnOnce(Store) -> F + Send + 'static,
) -> T {
    let sim = Sim::new(seed, 2);
    let (env, rig) = (sim.env(), rig.clone());
    sim.run(async move {
        let store = rig.create(env).await;
        main(store).await
    })
}

/// As [`simulate`], on the store that an earlier run left.
pub(crate) fn reopen<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    seed: u64,
    rig: &Arc<Rig>,
    main: impl FnOnce(Store) -> F + Send + 'static,
) -> T {
    let sim = Sim::new(seed, 2);
    let (env, rig) = (sim.env(), rig.clone());
    sim.run(async move {
        let store = rig.open(env).await;
        main(store).await
    })
}
