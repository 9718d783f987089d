//! A machine that is switched on, works, is shut down or crashes, and is switched on again: its media stay, that of the
//! flash device too.
//!
//! 1. Each start is a simulation of its own: time begins at zero, memory is empty.
//! 2. Terminals of different starts draw different transactions: what was used before a crash is no better known after
//!    it than by the workload's own skew.
use super::media::{Devices, Media};
use super::terminal::Terminal;
use super::traffic::Traffic;
use super::{Loaded, Machine, Run};
use crate::block_cache::{BlockCacheConfig, BlockCacheStats};
use crate::workload::{Sample, Workload};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::Image;
use terrace_device::fault::Choice;
use terrace_engine::{Database, EngineConfig, EngineError, OpenReport, Result};
use terrace_env::{Nanos, Sim};

/// A machine with its media.
pub struct Rig {
    machine: Machine,
    /// The flash device is a cache of the data device's blocks, not a tier.
    cache: Option<BlockCacheConfig>,
    media: Media,
    starts: u64,
}

impl Rig {
    /// A copy of what was loaded, switched off.
    pub fn new(machine: &Machine, cache: Option<BlockCacheConfig>, loaded: &Loaded) -> Rig {
        Rig { machine: machine.clone(), cache, media: Media::of(loaded), starts: 0 }
    }

    /// What the flash device holds.
    pub fn flash(&self) -> &Image {
        self.media.flash()
    }

    /// Switches it on and opens the database.
    pub fn start(&mut self) -> Result<Running<'_>> {
        let seed = self.machine.seed ^ self.starts << 48;
        self.starts += 1;
        let sim = Sim::new(seed, self.machine.cores);
        let devices = self.media.switch_on(&self.machine, self.cache, &sim)?;
        let (set, storage) = (devices.set(), self.machine.storage.clone());
        let (database, report) = sim.run(Database::open(sim.env(), set, storage, EngineConfig::default()))?;
        let opening = Duration::from_nanos(sim.env().now().0);
        Ok(Running { rig: self, seed, sim, devices, database, opening, report })
    }
}

/// A machine that is on, with its database open.
pub struct Running<'a> {
    rig: &'a mut Rig,
    seed: u64,
    sim: Sim,
    devices: Devices,
    pub database: Database,
    /// From the start until the database answered.
    pub opening: Duration,
    pub report: OpenReport,
}

/// What terminals do, or did.
pub struct Work {
    pub(super) before: Traffic,
    /// One for each window of the run's duration.
    pub traffic: Vec<Traffic>,
    samples: Arc<Mutex<Vec<Sample>>>,
    /// Ends when all terminals have.
    running: tokio::sync::mpsc::Receiver<()>,
}

impl Work {
    /// One for each window in which a transaction ended, so far.
    pub fn samples(&self) -> Vec<Sample> {
        self.samples.lock().clone()
    }
}

impl Running<'_> {
    /// Counters since the start.
    pub fn totals(&self) -> Traffic {
        Traffic::totals(&self.devices, &self.database)
    }

    pub fn cache_stats(&self) -> Option<BlockCacheStats> {
        self.devices.cache_stats()
    }

    /// Pages that the flash tier holds, or the block cache.
    pub fn flash_pages(&self) -> u64 {
        self.totals().tier_used
    }

    /// Since the start.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.sim.env().now().0)
    }

    /// Terminals run the workload until the time is up; then they are still in their last transactions. `progress`
    /// hears of the seconds run.
    pub fn work<W: Workload>(&self, workload: &Arc<W>, run: Run, progress: &dyn Fn(f64)) -> Work {
        let before = self.totals();
        let env = self.sim.env();
        let begin = env.now();
        let end = Nanos(begin.0 + run.duration.as_nanos() as u64);
        let samples = Arc::new(Mutex::new(Vec::new()));
        // Dropped with each terminal.
        let (ended, running) = tokio::sync::mpsc::channel::<()>(1);
        for number in 0..run.terminals {
            let terminal = Terminal {
                database: self.database.clone(),
                workload: workload.clone(),
                seed: self.seed,
                number,
                statement_cpu: self.rig.machine.statement_cpu,
                samples: samples.clone(),
                _ended: ended.clone(),
                begin,
                end,
                window: run.window,
            };
            env.spawn("terminal", terminal.work());
        }
        drop(ended);
        let (mut last, mut traffic) = (before.clone(), Vec::new());
        while env.now() < end {
            self.sim.run(env.sleep_until(Nanos((env.now().0 + run.window.as_nanos() as u64).min(end.0))));
            let (now, at) = (self.totals(), (env.now().0 - begin.0) as f64 / 1e9);
            traffic.push(now.since(&last, at));
            last = now;
            progress(at);
        }
        Work { before, traffic, samples, running }
    }

    /// Waits until all terminals have ended their last transactions.
    pub fn settle(&self, work: Work) -> Vec<Sample> {
        let Work { mut running, samples, .. } = work;
        self.sim.run(async move { running.recv().await }); // Nothing is sent.
        std::mem::take(&mut *samples.lock())
    }

    /// Does something with the database.
    pub fn ask<T, F>(&self, work: impl FnOnce(Database) -> F) -> T
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        self.sim.run(work(self.database.clone()))
    }

    /// Problems that the workload's own conditions and the database's check find, when terminals have ended.
    pub fn check<W: Workload>(&self, workload: &Arc<W>) -> Result<Vec<String>> {
        let workload = workload.clone();
        self.ask(|database| async move {
            let mut problems = workload.check(&database).await?;
            problems.extend(database.check().await?);
            Ok::<_, EngineError>(problems)
        })
    }

    /// Closes the database when terminals have ended, and switches the machine off; how long it took.
    pub fn shut_down(self) -> Result<Duration> {
        self.shut_down_by(Database::close)
    }

    /// The same, but changed pages stay in the flash tier or in the log.
    pub fn shut_down_fast(self) -> Result<Duration> {
        self.shut_down_by(Database::close_fast)
    }

    fn shut_down_by<F>(self, close: impl FnOnce(Database) -> F) -> Result<Duration>
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let begin = self.now();
        self.ask(close)?;
        let took = self.now() - begin;
        self.devices.rest(&self.sim)?;
        self.rig.media = self.devices.media(Choice::All);
        Ok(took)
    }

    /// The power goes, whatever runs. What was not synced survives as chosen.
    pub fn crash(self, choice: Choice) {
        self.devices.power_off();
        self.sim.crash();
        self.rig.media = self.devices.media(choice);
    }
}

/// When the rate of transactions was back: the beginning, in seconds, of the first stretch of windows that has a part
/// of `steady` (a second). Stretches are of so many windows that a steady one has `enough` transactions.
pub fn ramp_up(samples: &[Sample], window: Duration, steady: f64, part: f64, enough: f64) -> Option<f64> {
    let width = window.as_secs_f64();
    let stretch = (enough / (steady * width)).ceil().max(1.0) as usize;
    let wanted = part * steady * width * stretch as f64;
    let sum = |of: &[Sample]| of.iter().map(|sample| sample.transactions).sum::<u64>() as f64;
    samples.windows(stretch).position(|of| sum(of) >= wanted).map(|at| at as f64 * width)
}

#[cfg(test)]
mod tests;
