//! What happens when the flash device fails: few messages, and the rules by which the tier gives the device up.
//!
//! Invariants:
//! 1. The first trouble of each kind is logged at once, with its cause. Further ones are counted, and the count is
//!    logged once in `QUIET` and when the tier is given up. So a device that fails each transfer does not fill the disk
//!    with messages.
//! 2. A device that returns other bytes than were written is given up when more than about one in `GOOD_FOR_BAD` frames
//!    is bad, or after `BAD_FRAMES` in all. Each bad frame costs a repair, so their number is bounded.
//! 3. A tier is given up once: clean frames are dropped, dirty ones are made again from the log (invariant 6 of the
//!    tier).

use super::{FAILURES, FlashHome, FlashState};
use crate::sync::Mutex;
use crate::sync::atomic::Ordering;
use std::fmt::Display;
use std::time::Duration;
use terrace_device::{DeviceError, ErrorKind};
use terrace_env::Nanos;

/// How long further trouble of a kind is only counted.
const QUIET: Duration = Duration::from_secs(60);

/// A bad frame weighs as much as so many good ones, and the device is given up at `BAD_IN_A_ROW` bad frames more than
/// that.
const GOOD_FOR_BAD: u32 = 16;
const BAD_IN_A_ROW: u32 = 16;
/// Bad frames since the tier was switched on after which the device is not trusted, however many good ones it read
/// between them.
const BAD_FRAMES: u32 = 1024;

/// Frames that were not what was written.
#[derive(Default)]
pub(super) struct Rot {
    weight: u32,
    bad: u32,
}

impl Rot {
    /// Counts a frame that was read; `Some`: there are too many bad ones now, and why.
    fn note(&mut self, good: bool) -> Option<String> {
        if good {
            self.weight = self.weight.saturating_sub(1);
            return None;
        }
        self.weight += GOOD_FOR_BAD;
        self.bad += 1;
        let bad = self.bad;
        if self.weight >= BAD_IN_A_ROW * GOOD_FOR_BAD {
            return Some(format!(
                "what it reads is not what was written: {bad} damaged frames, too many of those read last"
            ));
        }
        (bad >= BAD_FRAMES)
            .then(|| format!("what it reads is not what was written: {bad} damaged frames since it was switched on"))
    }
}

/// The kinds of trouble.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trouble {
    Read,
    Write,
    /// The frame's bytes are not what was written.
    Damaged,
    /// Dirty frames do not get home.
    Cleaning,
}

impl Trouble {
    const KINDS: usize = Trouble::Cleaning as usize + 1;

    fn what(self) -> &'static str {
        match self {
            Trouble::Read => "a frame of the flash tier cannot be read",
            Trouble::Write => "a page cannot be written to the flash tier",
            Trouble::Damaged => "a frame of the flash tier is damaged",
            Trouble::Cleaning => "the flash tier cannot be cleaned; it will be tried again",
        }
    }
}

/// When a kind was logged last, and how many of it were only counted since.
#[derive(Clone, Copy, Default)]
struct Said {
    last: Option<Nanos>,
    more: u64,
}

#[derive(Default)]
pub(super) struct Complaints(Mutex<[Said; Trouble::KINDS]>);

impl Complaints {
    /// Notes trouble; `Some`: log it now, with the number of those that were not logged.
    fn note(&self, kind: Trouble, now: Nanos) -> Option<u64> {
        let said = &mut self.0.lock()[kind as usize];
        let quiet = said.last.is_some_and(|last| now.0.saturating_sub(last.0) < QUIET.as_nanos() as u64);
        if quiet {
            said.more += 1;
            return None;
        }
        said.last = Some(now);
        Some(std::mem::take(&mut said.more))
    }
}

impl FlashHome {
    /// Invariant 1.
    pub(super) fn complain(&self, kind: Trouble, subject: &dyn Display, why: &dyn Display) {
        if let Some(unsaid) = self.complaints.note(kind, self.env.now()) {
            let device = self.device_name();
            tracing::warn!(device, %subject, unsaid, "{}: {why}", kind.what());
        }
    }

    /// A transfer succeeded.
    pub(super) fn note_success(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// A transfer failed.
    pub(super) fn note_failure(&self, kind: Trouble, subject: &dyn Display, error: &DeviceError) {
        self.counters.device_errors.fetch_add(1, Ordering::Relaxed);
        if self.is_on() {
            self.complain(kind, subject, error);
        }
        let in_a_row = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if error.kind == ErrorKind::Dead || in_a_row >= FAILURES {
            self.die(&error.to_string());
        }
    }

    /// A frame was read completely; `good`: its bytes are those that were written (invariant 2).
    pub(super) fn note_frame(&self, page: &dyn Display, good: bool) {
        if !good {
            self.counters.bad_frames.fetch_add(1, Ordering::Relaxed);
            self.complain(Trouble::Damaged, page, &"its checks fail");
        }
        if good && self.counters.bad_frames.load(Ordering::Relaxed) == 0 {
            return;
        }
        let why = self.rot.lock().note(good);
        if let Some(why) = why {
            self.die(&why);
        }
    }

    /// The device is gone, or not to be trusted (invariant 3).
    pub(super) fn die(&self, why: &str) {
        if self.state.swap(FlashState::Failed as u8, Ordering::AcqRel) == FlashState::Failed as u8 {
            return;
        }
        *self.problem.lock() = Some(why.to_string());
        let dropped: u64 = self.partitions.iter().map(|partition| partition.lock().drop_all_clean()).sum();
        let dirty = self.totals.dirty.load(Ordering::Acquire);
        let count = |counter: &crate::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let (errors, damaged) = (count(&self.counters.device_errors), count(&self.counters.bad_frames));
        tracing::error!(
            device = self.device_name(),
            errors,
            damaged,
            dropped,
            dirty,
            "the flash tier is off until it is switched on again, or the next start: {why}; its dirty pages are made \
             again from the log"
        );
        self.wake_cleaner.notify_one();
        self.wake_hardened();
    }
}

#[cfg(test)]
mod tests;
