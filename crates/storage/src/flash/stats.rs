//! What the tier did, for views and experiments.

use super::FlashHome;
use crate::config::{FlashOrder, WritePolicy};
use crate::home::Tier;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::types::Lsn;
use std::time::Duration;
use terrace_device::{Distribution, Histogram};
use terrace_env::Nanos;
use terrace_policy::Class;
use terrace_policy::flash::Refusal;

/// Whether the tier works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FlashState {
    /// Not started.
    Off = 0,
    On = 1,
    /// The device failed; pages pass by.
    Failed = 2,
    /// Being switched off: nothing is let in, dirty pages go home.
    Draining = 3,
}

impl FlashState {
    pub fn name(self) -> &'static str {
        match self {
            FlashState::Off => "off",
            FlashState::On => "on",
            FlashState::Failed => "failed",
            FlashState::Draining => "draining",
        }
    }

    pub(super) fn from_u8(state: u8) -> FlashState {
        match state {
            0 => FlashState::Off,
            1 => FlashState::On,
            2 => FlashState::Failed,
            _ => FlashState::Draining,
        }
    }
}

/// Counters since opening (pages, unless it says bytes), and the present state.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashStats {
    pub state: FlashState,
    /// Why it failed.
    pub problem: Option<String>,
    pub write: WritePolicy,
    pub replacement: FlashOrder,
    /// Since the tier was opened.
    pub running: Duration,
    pub frames: u64,
    pub used: u64,
    pub dirty: u64,
    /// The smallest recLSN of the dirty ones.
    pub oldest_dirty: Option<Lsn>,
    /// Dirty pages brought home in a second, lately (with `LATELY` as the time constant).
    pub cleaning_rate: f64,
    /// How long misses of memory took that the tier served, and that the disk did.
    pub hit_time: Distribution,
    pub miss_time: Distribution,
    /// The budget in bytes a day, and what of it may be written now (negative: overdrawn by what was under way).
    pub write_budget: Option<u64>,
    pub budget_left: Option<f64>,
    /// Bytes that the device can take in its life, where that was said.
    pub endurance: Option<u64>,
    /// Pages that memory missed: read from the tier, and read from the disk.
    pub hits: u64,
    pub misses: u64,
    /// Of the hits, pages that were newer there than on the disk.
    pub dirty_hits: u64,
    /// Of the misses, pages that the tier held but the device was too busy to give.
    pub throttled_reads: u64,
    /// Pages let in: clean ones, and dirty ones (by lazy cleaning or dual writing).
    pub admitted_clean: u64,
    pub admitted_dirty: u64,
    /// Pages not let in, by reason.
    pub rejected_sequential: u64,
    pub rejected_throttled: u64,
    pub rejected_policy: u64,
    pub rejected_old: u64,
    pub rejected_dirty: u64,
    /// TAC: no hotter than what is there.
    pub rejected_cold: u64,
    /// No frame could be had: all of the partition's are dirty or being read.
    pub rejected_no_frame: u64,
    /// The write budget was used up.
    pub rejected_budget: u64,
    /// Pages that gave way to others.
    pub evicted: u64,
    /// Pages that left the tier because memory read them (exclusive).
    pub taken_over: u64,
    /// Pages that changed in memory, and pages of freed extents.
    pub invalidated: u64,
    pub forgotten: u64,
    /// Dirty pages brought home, in so many groups.
    pub cleaned: u64,
    pub cleaning_groups: u64,
    /// Frames that failed their checks (damaged or lost writes), and transfers that failed.
    pub bad_frames: u64,
    pub device_errors: u64,
    /// Dirty pages made again from disk and log.
    pub replayed: u64,
    /// Bytes written to the device.
    pub written_bytes: u64,
}

/// The time over which rates are averaged.
const LATELY: Duration = Duration::from_secs(10);

impl FlashStats {
    /// How long the cleaner takes for what is dirty now, at its present rate; `None`: it is not cleaning.
    pub fn time_to_clean(&self) -> Option<Duration> {
        if self.dirty == 0 {
            return Some(Duration::ZERO);
        }
        // Below a page in ten minutes it stands still.
        (self.cleaning_rate > 1.0 / 600.0).then(|| Duration::from_secs_f64(self.dirty as f64 / self.cleaning_rate))
    }

    /// Bytes a day written to the device since the tier was opened.
    pub fn written_per_day(&self) -> f64 {
        self.written_bytes as f64 / self.running.as_secs_f64().max(1.0) * 86_400.0
    }

    /// Days until a new device has taken what it can, at that rate; `None`: nobody said how much that is, or nothing is written.
    pub fn life_days(&self) -> Option<f64> {
        let rate = self.written_per_day();
        self.endurance.filter(|_| rate > 0.0).map(|endurance| endurance as f64 / rate)
    }
}

/// Events in a second, those longer ago counting less: an average over [`LATELY`].
#[derive(Default)]
pub(super) struct Rate(Mutex<(f64, Nanos)>);

impl Rate {
    fn decayed((rate, at): (f64, Nanos), now: Nanos) -> f64 {
        rate * (-(now.0.saturating_sub(at.0) as f64) / LATELY.as_nanos() as f64).exp()
    }

    pub(super) fn add(&self, events: u64, now: Nanos) {
        let mut rate = self.0.lock();
        *rate = (Self::decayed(*rate, now) + events as f64 / LATELY.as_secs_f64(), now);
    }

    pub(super) fn read(&self, now: Nanos) -> f64 {
        Self::decayed(*self.0.lock(), now)
    }
}

/// What pages take to read, by class and tier: averages over the last reads, in nanoseconds.
#[derive(Default)]
pub(super) struct Prices {
    took: [[Option<f64>; 2]; 2],
    noted: u32,
}

impl Prices {
    /// Reads that an average is over, and after which the saving is told anew.
    const OVER: u32 = 256;

    /// A page was read; now and then, once reads at random have been timed on both: what one from flash saves, in
    /// microseconds, at random and of a scan. A scan's page on flash is timed as any other there where none has been.
    pub(super) fn note(&mut self, class: Class, tier: Tier, nanos: u64) -> Option<[u32; 2]> {
        let mean = &mut self.took[usize::from(class == Class::Sequential)][usize::from(tier == Tier::Flash)];
        let before = mean.unwrap_or(nanos as f64);
        *mean = Some(before + (nanos as f64 - before) / f64::from(Self::OVER));
        self.noted = (self.noted + 1) % Self::OVER;
        if self.noted != 0 {
            return None;
        }
        let [[Some(disk), Some(flash)], [scan, scan_flash]] = self.took else { return None };
        let micros = |disk: f64, flash: f64| ((disk - flash) / 1000.0).clamp(0.0, 1e6) as u32;
        let scans = scan.map_or(0, |scan| micros(scan, scan_flash.unwrap_or(flash)));
        Some([micros(disk, flash), scans])
    }
}

/// Durations and rates.
#[derive(Default)]
pub(super) struct Times {
    pub(super) prices: Mutex<Prices>,
    pub(super) hits: Histogram,
    pub(super) misses: Histogram,
    pub(super) cleaned: Rate,
}

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        #[derive(Default)]
        pub(super) struct Counters { $(pub(super) $name: AtomicU64),* }

        impl FlashHome {
            pub(crate) fn stats(&self) -> FlashStats {
                let now = self.env.now();
                let budget = self.budget.lock().as_mut().map(|budget| budget.left(now.0));
                let (config, _) = self.config();
                FlashStats {
                    state: self.state(),
                    problem: self.problem.lock().clone(),
                    write: config.write,
                    replacement: config.replacement,
                    running: Duration::from_nanos(now.0.saturating_sub(self.opened.0)),
                    frames: self.gate().frames as u64,
                    used: self.totals.used.load(Ordering::Relaxed) as u64,
                    dirty: self.totals.dirty.load(Ordering::Relaxed) as u64,
                    oldest_dirty: self.oldest_dirty(),
                    cleaning_rate: self.times.cleaned.read(now),
                    hit_time: self.times.hits.read(),
                    miss_time: self.times.misses.read(),
                    write_budget: config.write_budget,
                    budget_left: budget,
                    endurance: config.endurance,
                    $($name: self.counters.$name.load(Ordering::Relaxed)),*
                }
            }
        }
    };
}

counters!(
    hits,
    misses,
    dirty_hits,
    throttled_reads,
    admitted_clean,
    admitted_dirty,
    rejected_sequential,
    rejected_throttled,
    rejected_policy,
    rejected_old,
    rejected_dirty,
    rejected_cold,
    rejected_no_frame,
    rejected_budget,
    taken_over,
    evicted,
    invalidated,
    forgotten,
    cleaned,
    cleaning_groups,
    bad_frames,
    device_errors,
    replayed,
    written_bytes,
);

impl Counters {
    pub(super) fn refused(&self, why: Refusal) {
        let counter = match why {
            Refusal::Policy => &self.rejected_policy,
            Refusal::Sequential => &self.rejected_sequential,
            Refusal::Throttled => &self.rejected_throttled,
            Refusal::Old => &self.rejected_old,
            Refusal::Dirty => &self.rejected_dirty,
            Refusal::Cold => &self.rejected_cold,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saving_is_measured() {
        let mut prices = Prices::default();
        let mut told = Vec::new();
        for _ in 0..200 {
            told.extend(prices.note(Class::Random, Tier::Disk, 9_000_000));
            told.extend(prices.note(Class::Random, Tier::Flash, 90_000));
            told.extend(prices.note(Class::Sequential, Tier::Disk, 40_000));
        }
        assert_eq!(told, [[8910, 0]; 2], "every 256 reads; a scan's page is not read faster from flash");
        assert_eq!(Prices::default().note(Class::Random, Tier::Flash, 1), None);
    }

    #[test]
    fn a_rate_forgets() {
        let rate = Rate::default();
        let at = |seconds: u64| Nanos(seconds * 1_000_000_000);
        for second in 0..60 {
            rate.add(100, at(second));
        }
        let steady = rate.read(at(60));
        assert!((90.0..110.0).contains(&steady), "100 events a second were read as {steady}");
        assert!(rate.read(at(90)) < steady / 10.0, "half a minute of rest");
    }
}
