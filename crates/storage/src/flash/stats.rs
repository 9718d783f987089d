//! Counters and rates of the tier, for views and experiments.

use super::{FlashHome, Restored};
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
    /// The device failed; pages go straight to the disk.
    Failed = 2,
    /// Being switched off: nothing is let in, dirty pages go home.
    Draining = 3,
    /// Being opened: frames are found, and nobody reads them yet.
    Finding = 4,
    /// Being opened: frames are read, and nothing is let in yet.
    Restoring = 5,
}

impl FlashState {
    pub fn name(self) -> &'static str {
        match self {
            FlashState::Off => "off",
            FlashState::On => "on",
            FlashState::Failed => "failed",
            FlashState::Draining => "draining",
            FlashState::Finding => "finding",
            FlashState::Restoring => "restoring",
        }
    }

    pub(super) fn from_u8(state: u8) -> FlashState {
        match state {
            0 => FlashState::Off,
            1 => FlashState::On,
            2 => FlashState::Failed,
            3 => FlashState::Draining,
            4 => FlashState::Finding,
            _ => FlashState::Restoring,
        }
    }
}

/// A counter of the tier since opening, as views and metrics show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashCounter {
    /// Its column in `terrace.flash_tier`.
    pub name: &'static str,
    /// Its family among the metrics, and the value of the family's label; `None`: it is not among them.
    pub metric: Option<(&'static str, Option<&'static str>)>,
    pub value: u64,
}

/// The time over which rates are averaged.
const LATELY: Duration = Duration::from_secs(10);

impl FlashStats {
    /// How long the cleaner takes for the present dirty pages, at its present rate; `None`: it is not cleaning.
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

    /// Days until a new device is worn out at that rate; `None`: its endurance is not set, or nothing is written.
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

/// Declares each counter once: its meaning, its name, and its place among the metrics. From this come the struct that
/// counts, the one that views and metrics read, and [`FlashStats::counters`].
macro_rules! counters {
    ($($(#[doc = $meaning:literal])+ $name:ident: $metric:expr;)*) => {
        #[derive(Default)]
        pub(super) struct Counters { $(pub(super) $name: AtomicU64),* }

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
            /// The budget in bytes a day, and what of it may be written now (negative: overdrawn by what was under
            /// way).
            pub write_budget: Option<u64>,
            pub budget_left: Option<f64>,
            /// Bytes that the device can take in its life, where that was said.
            pub endurance: Option<u64>,
            /// What the opening found in the tier.
            pub restored: Restored,
            $($(#[doc = $meaning])+ pub $name: u64,)*
        }

        impl FlashStats {
            /// All counters.
            pub fn counters(&self) -> impl Iterator<Item = FlashCounter> {
                [$(FlashCounter { name: stringify!($name), metric: $metric, value: self.$name }),*].into_iter()
            }
        }

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
                    restored: self.restored(),
                    $($name: self.counters.$name.load(Ordering::Relaxed)),*
                }
            }
        }
    };
}

const READS: &str = "terrace_flash_reads_total";
const ADMITTED: &str = "terrace_flash_admitted_total";
const REJECTED: &str = "terrace_flash_rejected_total";
const LEFT: &str = "terrace_flash_left_total";
const TROUBLE: &str = "terrace_flash_trouble_total";

counters! {
    /// Pages that memory missed and the tier served.
    hits: Some((READS, Some("flash")));
    /// Pages that memory missed and the disk served.
    misses: Some((READS, Some("disk")));
    /// Of the hits, pages that were newer there than on the disk.
    dirty_hits: Some(("terrace_flash_dirty_hits_total", None));
    /// Of the misses, pages that the tier held but the device was too busy to give.
    throttled_reads: Some(("terrace_flash_throttled_reads_total", None));
    /// Clean pages let in.
    admitted_clean: Some((ADMITTED, Some("clean")));
    /// Dirty pages let in (by lazy cleaning or dual writing).
    admitted_dirty: Some((ADMITTED, Some("dirty")));
    /// Pages not let in because they were part of a scan.
    rejected_sequential: Some((REJECTED, Some("sequential")));
    /// Pages not let in because the device was too busy.
    rejected_throttled: Some((REJECTED, Some("throttled")));
    /// Pages not let in because the write policy does not take such pages.
    rejected_policy: Some((REJECTED, Some("policy")));
    /// Dirty pages not let in because they would have been cleaned at once.
    rejected_old: Some((REJECTED, Some("old")));
    /// Dirty pages not let in because too much of the tier was dirty.
    rejected_dirty: Some((REJECTED, Some("dirty")));
    /// Pages not let in because they were no hotter than those in the tier (TAC).
    rejected_cold: Some((REJECTED, Some("cold")));
    /// Pages not let in because all frames of the partition were dirty or being read.
    rejected_no_frame: Some((REJECTED, Some("no frame")));
    /// Pages not let in because the write budget was used up.
    rejected_budget: Some((REJECTED, Some("budget")));
    /// Pages that were removed to make room for others.
    evicted: Some((LEFT, Some("evicted")));
    /// Pages that left the tier because they changed in memory.
    invalidated: Some((LEFT, Some("invalidated")));
    /// Pages of freed extents.
    forgotten: Some((LEFT, Some("forgotten")));
    /// Pages that left the tier because memory read them (exclusive).
    taken_over: Some((LEFT, Some("taken over")));
    /// Dirty pages brought home.
    cleaned: Some(("terrace_flash_cleaned_total", None));
    /// The groups in which they were brought home.
    cleaning_groups: None;
    /// Transfers that failed.
    device_errors: Some((TROUBLE, Some("device error")));
    /// Frames that failed their checks (damaged or lost writes).
    bad_frames: Some((TROUBLE, Some("bad frame")));
    /// Dirty pages made again from disk and log.
    replayed: Some((TROUBLE, Some("made again")));
    /// Bytes written to the device.
    written_bytes: Some(("terrace_flash_written_bytes_total", None));
}

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
mod tests;
