//! What keeps bytes while a machine is off, and its devices while it is on.
//!
//! 1. Bytes lie in memory and cost nothing; time comes from the profiles' models.
//! 2. Devices that the profile of one disk stands for share its queue: log and double-writes on one, control beside
//!    them. The flash has a device of its own.
//! 3. After a crash a device holds what was synced, and of the rest what is chosen. The tier's device alone holds all
//!    that was written: the tier never syncs it, and checks what it reads.
use super::watch::Watched;
use super::{Loaded, Machine};
use crate::block_cache::{BlockCache, BlockCacheConfig, BlockCacheStats};
use std::pin::Pin;
use std::sync::Arc;
use terrace_device::emulate::{Emulator, Profile};
use terrace_device::fault::{Choice, FaultDevice, Recorder};
use terrace_device::latency::{Delay, LatencyDevice, Timer};
use terrace_device::{Device, DeviceError, DeviceRef, DeviceStats, Guarantees, Image, MemoryDevice, Purpose, SECTOR};
use terrace_engine::{Database, EngineError, Result};
use terrace_env::{Env, Nanos, Sim};
use terrace_storage::{DeviceSet, StorageError};

/// The simulation's clock, for the models of devices.
pub(crate) struct VirtualTime(pub(crate) Env);

impl Timer for VirtualTime {
    fn now(&self) -> u64 {
        self.0.now().0
    }
    fn sleep_until(&self, nanos: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.sleep_until(Nanos(nanos))
    }
}

const NAMES: [&str; 6] = ["control", "log", "double-write", "data", "undo", "flash"];
const LOG: usize = 1;
const DATA: usize = 3;
const UNDO: usize = 4;
const FLASH: usize = 5;

/// Contents of the devices.
#[derive(Clone, Debug)]
pub(super) struct Media {
    images: [Image; 6],
}

impl Media {
    pub(super) fn of(loaded: &Loaded) -> Media {
        Media { images: std::array::from_fn(|at| loaded.images.get(at).cloned().unwrap_or_default()) }
    }

    /// Bytes that the flash device holds.
    pub(super) fn flash(&self) -> &Image {
        &self.images[FLASH]
    }

    /// The devices with these contents. Invariant 2.
    pub(super) fn switch_on(&self, machine: &Machine, cache: Option<BlockCacheConfig>, sim: &Sim) -> Result<Devices> {
        let emulated = |profile: &Profile| Emulator::new(profile, Arc::new(VirtualTime(sim.env())));
        let emulator = |profile: &Profile| -> Arc<dyn Delay> { Arc::new(emulated(profile)) };
        let recorder = Recorder::new(false);
        let watched = Arc::new(Watched::new(emulated(&machine.data)));
        let (data, log): (Arc<dyn Delay>, _) = (watched.clone(), emulator(&machine.log));
        let device = |at: usize, delay: &Arc<dyn Delay>| {
            let atomic_write = if [DATA, UNDO].contains(&at) { machine.whole() } else { SECTOR };
            let guarantees = Guarantees { atomic_write, capacity: u64::MAX };
            Arc::new(recorder.device(NAMES[at], guarantees, self.images[at].clone()).with_latency(delay.clone()))
        };
        let five = [device(0, &log), device(LOG, &log), device(2, &log), device(DATA, &data), device(UNDO, &log)];
        let flash = match (&machine.flash, cache) {
            (None, _) => Flash::None(self.images[FLASH].clone()),
            (Some(profile), None) => {
                let guarantees = Guarantees { atomic_write: SECTOR, capacity: u64::MAX };
                let bytes = Arc::new(MemoryDevice::with_image(NAMES[FLASH], guarantees, self.images[FLASH].clone()));
                Flash::Tier(bytes.clone(), Arc::new(LatencyDevice::new(bytes, emulator(profile))))
            }
            (Some(profile), Some(config)) => {
                let flash = device(FLASH, &emulator(profile));
                let (env, disk, below) = (sim.env(), five[DATA].clone(), flash.clone());
                let cache = sim.run(async move { BlockCache::open(&env, disk, below, config).await });
                Flash::Cache(flash, cache.map_err(failed)?)
            }
        };
        Ok(Devices { recorder, five, watched, flash })
    }
}

fn failed(error: DeviceError) -> EngineError {
    StorageError::from(error).into()
}

/// Devices without delays, to load a database on.
pub(super) struct AtOnce([Arc<MemoryDevice>; 5]);

impl AtOnce {
    pub(super) fn new() -> AtOnce {
        AtOnce(std::array::from_fn(|at| Arc::new(MemoryDevice::new(NAMES[at], u64::MAX))))
    }

    pub(super) fn set(&self) -> DeviceSet {
        let [control, log, double_write, data, undo] = self.0.each_ref().map(|device| device.clone() as DeviceRef);
        DeviceSet { control, log, double_write, data, undo, flash: None }
    }

    pub(super) fn loaded(&self) -> Loaded {
        Loaded { images: self.0.each_ref().map(|device| device.image()) }
    }
}

/// The flash device, and whose it is.
enum Flash {
    /// There is none; what an earlier one held.
    None(Image),
    /// The bytes, and the device with its delays.
    Tier(Arc<MemoryDevice>, DeviceRef),
    Cache(Arc<FaultDevice>, BlockCache),
}

/// The devices of a machine that is on.
pub(super) struct Devices {
    recorder: Arc<Recorder>,
    five: [Arc<FaultDevice>; 5],
    /// Of the disk.
    watched: Arc<Watched>,
    flash: Flash,
}

impl Devices {
    pub(super) fn set(&self) -> DeviceSet {
        let [control, log, double_write, data, undo] = self.five.each_ref().map(|device| device.clone() as DeviceRef);
        let set = DeviceSet { control, log, double_write, data, undo, flash: None };
        match &self.flash {
            Flash::None(_) => set,
            Flash::Tier(_, tier) => DeviceSet { flash: Some(tier.clone()), ..set },
            Flash::Cache(_, cache) => DeviceSet { data: Arc::new(cache.clone()), ..set },
        }
    }

    /// Nothing succeeds any more.
    pub(super) fn power_off(&self) {
        self.recorder.power_off();
    }

    /// What an operating system does as it goes down: a block cache writes what it knows.
    pub(super) fn rest(&self, sim: &Sim) -> Result<()> {
        let Flash::Cache(_, cache) = &self.flash else { return Ok(()) };
        let cache = cache.clone();
        sim.run(async move { cache.sync(Purpose::Data).await }).map_err(failed)
    }

    /// What they leave. Invariant 3.
    pub(super) fn media(&self, choice: Choice) -> Media {
        let contents = self.recorder.contents(choice);
        let flash = match &self.flash {
            Flash::None(image) => image.clone(),
            Flash::Tier(bytes, _) => bytes.image(),
            Flash::Cache(..) => contents[FLASH].clone(),
        };
        let image = |at: usize| if at == FLASH { flash.clone() } else { contents[at].clone() };
        Media { images: std::array::from_fn(image) }
    }

    /// Transfers of the disk, whoever asked for them.
    pub(super) fn data(&self) -> DeviceStats {
        Device::stats(&*self.five[DATA])
    }

    /// Of the disk's reads, those of index pages.
    pub(super) fn index_reads(&self, database: &Database) -> u64 {
        self.watched.index_reads(database)
    }

    /// Nanoseconds that each of the disk's spindles has been at work.
    pub(super) fn spindles(&self) -> Vec<u64> {
        self.watched.served()
    }

    pub(super) fn log(&self) -> DeviceStats {
        Device::stats(&*self.five[LOG])
    }

    pub(super) fn flash(&self) -> DeviceStats {
        match &self.flash {
            Flash::None(_) => DeviceStats::default(),
            Flash::Tier(_, tier) => tier.stats(),
            Flash::Cache(flash, _) => Device::stats(&**flash),
        }
    }

    pub(super) fn cache_stats(&self) -> Option<BlockCacheStats> {
        if let Flash::Cache(_, cache) = &self.flash { Some(cache.cache_stats()) } else { None }
    }
}
