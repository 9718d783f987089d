//! What the tier did, for views and experiments.

use super::FlashHome;
use std::sync::atomic::{AtomicU64, Ordering};
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
}

impl FlashState {
    pub(super) fn from_u8(state: u8) -> FlashState {
        match state {
            0 => FlashState::Off,
            1 => FlashState::On,
            _ => FlashState::Failed,
        }
    }
}

/// Counters since opening (pages, unless it says bytes), and the present state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlashStats {
    pub state: FlashState,
    /// Why it failed.
    pub problem: Option<String>,
    pub frames: u64,
    pub used: u64,
    pub dirty: u64,
    /// Pages that memory missed: read from the tier, and read from the disk.
    pub hits: u64,
    pub misses: u64,
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
    /// No frame could be had: all of the partition's are dirty or being read.
    pub rejected_no_frame: u64,
    /// Pages that gave way to others.
    pub evicted: u64,
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

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        #[derive(Default)]
        pub(super) struct Counters { $(pub(super) $name: AtomicU64),* }

        impl FlashHome {
            pub(crate) fn stats(&self) -> FlashStats {
                FlashStats {
                    state: self.state(),
                    problem: self.problem.lock().clone(),
                    frames: self.gate.frames as u64,
                    used: self.totals.used.load(Ordering::Relaxed) as u64,
                    dirty: self.totals.dirty.load(Ordering::Relaxed) as u64,
                    $($name: self.counters.$name.load(Ordering::Relaxed)),*
                }
            }
        }
    };
}

counters!(
    hits,
    misses,
    throttled_reads,
    admitted_clean,
    admitted_dirty,
    rejected_sequential,
    rejected_throttled,
    rejected_policy,
    rejected_old,
    rejected_dirty,
    rejected_no_frame,
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
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
