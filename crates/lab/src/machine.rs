//! A machine in virtual time: emulated devices by profile, a database on them, terminals that run a workload for a
//! while. [`Rig`] takes it through crashes and restarts, [`Machine::measure`] through one run.
//!
//! 1. The database is loaded with all devices at once (no time is charged), closed, and only then put on the emulated
//!    ones, so that every run begins from what a shut-down server left. What was loaded does not depend on the
//!    machine's seed: runs share it.
//! 2. Time comes from the devices and from the CPU that the workload charges.
//! 3. A terminal ends with the transaction that it is in when time is up; conditions are checked when all have ended.
mod media;
mod session;
mod steps;
mod terminal;
mod traffic;
mod watch;

#[cfg(test)]
pub(crate) use media::VirtualTime;
pub use session::Session;
pub use steps::{Rig, Running, Work, ramp_up};
pub use traffic::{REJECTED, Traffic};

use crate::heat::{self, Heat};
use crate::workload::{Sample, Workload};
use media::AtOnce;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::emulate::Profile;
use terrace_device::{DeviceStats, Image, SECTOR};
use terrace_engine::{Database, EngineConfig, Result};
use terrace_env::Sim;
use terrace_storage::{FlashStats, StorageConfig};
use traffic::difference;

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

/// A loaded database on media that are switched off. Cheap to run on again and again: each run has its own copy of what
/// it writes.
#[derive(Clone)]
pub struct Loaded {
    images: [Image; 5],
}

#[cfg(test)]
impl Loaded {
    /// Which of the images have other bytes.
    fn differing(&self, other: &Loaded) -> Vec<usize> {
        let bytes = |image: &Image| {
            let mut all = vec![0; image.size() as usize];
            image.read(0, &mut all);
            all
        };
        (0..self.images.len()).filter(|at| bytes(&self.images[*at]) != bytes(&other.images[*at])).collect()
    }
}

/// Of the simulation that loads: a database's identity comes from its seed.
const LOAD_SEED: u64 = 1;
/// What to load with: memory, and cores.
const LOAD_POOL: usize = 512 << 20;
const LOAD_CORES: usize = 8;

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
        let mut rig = Rig::new(self, None, loaded);
        let running = rig.start()?;
        heat::begin();
        let mut work = running.work(workload, run, progress);
        let (before, traffic) = (work.before.data, std::mem::take(&mut work.traffic));
        let samples = running.settle(work); // Invariant 3.
        let data = difference(running.totals().data, before);
        let heat = heat::end(&running.database);
        let tier = running.database.store().flash();
        let problems = running.check(workload)?;
        Ok(Measured { samples, traffic, data, tier, heat, problems })
    }

    /// Makes the database and fills it; on machines with pages and segments of the same sizes the same one.
    /// Invariant 1.
    pub fn load<W: Workload>(&self, workload: &Arc<W>) -> Result<Loaded> {
        let media = AtOnce::new(); // One load serves machines with double-writes and without.
        let sim = Sim::new(LOAD_SEED, LOAD_CORES);
        // Of the machine's settings those count that say what lies on the media.
        let StorageConfig { page_size, segment_size, .. } = self.storage;
        let storage = StorageConfig { page_size, segment_size, pool_bytes: LOAD_POOL, ..StorageConfig::default() };
        let creating = Database::create(sim.env(), media.set(), storage, EngineConfig::default());
        let workload = workload.clone();
        sim.run(async move {
            let database = creating.await?;
            workload.load(&database).await?;
            database.close().await
        })?;
        Ok(media.loaded())
    }
}
