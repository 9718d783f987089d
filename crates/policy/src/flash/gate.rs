//! Which pages are let in, where dirty pages go, how much is cleaned: the thresholds τ, μ, λ of the thesis, sections
//! 3.2.3.3 and 3.3.3.

use super::{Dirty, WritePolicy};
use crate::Class;

/// Why a dirty page leaves memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Its frame is wanted.
    Evicted,
    /// The log needs it home.
    Aged,
    /// So that a restart repeats less. It stays in memory.
    Early,
    /// As `Aged`, because somebody asked.
    Checkpoint,
}

/// When a clean page is offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// It was read from the disk.
    Read,
    /// It leaves memory.
    Evicted,
}

/// What the gate knows when a page is offered.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    pub class: Class,
    /// Frames in use, and of them dirty.
    pub used: usize,
    pub dirty: usize,
    /// Flash transfers under way or queued.
    pub pending: usize,
    /// Dirty pages: bytes of log from the page's recLSN on.
    pub age: u64,
    /// The page kept a frame when it changed.
    pub kept: bool,
}

/// Why a page was not let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The write policy keeps such pages out.
    Policy,
    /// Part of a scan.
    Sequential,
    /// Too many transfers are under way.
    Throttled,
    /// Dirty, and so old that it would have to be cleaned at once.
    Old,
    /// The tier holds as many dirty pages as it may.
    Dirty,
    /// Its extent is no hotter than the coldest in the tier.
    Cold,
}

/// Where a dirty page goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    Disk(Refusal),
    Flash,
    Both,
}

/// The tier's thresholds, for all partitions together.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    pub write: WritePolicy,
    /// Frames of the tier.
    pub frames: usize,
    /// τ: until this part of the frames is in use, sequential pages are let in too.
    pub fill_threshold: f64,
    /// μ: transfers under way, at which nothing more is sent to the device.
    pub throttle: usize,
    /// λ: the part of the frames that may be dirty before the cleaner sets in.
    pub dirty_fraction: f64,
    /// Bytes of log that may lie behind the oldest dirty frame: that restart may have to repeat, or that are kept.
    pub redo_bound: u64,
}

/// Beyond λ, this part of λ more may be dirty for as long as the cleaner has not caught up; at least this part of the
/// frames, or λ = 0, where pages are cleaned at once, would let none in.
const DIRTY_SLACK: f64 = 1.0 / 8.0;
const LEAST_SLACK: f64 = 1.0 / 256.0;
/// The cleaner leaves the number of dirty frames this part of the frames below λ (section 3.2.3.3: 0.01%).
const BELOW_LAMBDA: f64 = 0.0001;
/// Where λ does not apply, this part of the frames is kept clean: they are the next to be wanted.
const AT_HAND: f64 = 1.0 / 16.0;

impl Gate {
    /// Whether reads of clean pages and admissions should pass the device by.
    pub fn throttled(&self, pending: usize) -> bool {
        pending >= self.throttle
    }

    fn qualifies(&self, offer: &Offer) -> Result<(), Refusal> {
        if self.throttled(offer.pending) {
            return Err(Refusal::Throttled);
        }
        let filling = (offer.used as f64) < self.fill_threshold * self.frames as f64;
        if offer.class == Class::Sequential && !filling {
            return Err(Refusal::Sequential);
        }
        Ok(())
    }

    /// Whether a clean page is let in. A page whose frame was kept for it takes it up again.
    pub fn clean(&self, offer: &Offer, moment: Moment) -> Result<(), Refusal> {
        let flow = self.write.flow();
        let wanted = match moment {
            Moment::Read => flow.at_read,
            Moment::Evicted => flow.at_eviction || offer.kept,
        };
        if wanted { self.qualifies(offer) } else { Err(Refusal::Policy) }
    }

    /// Where a dirty page goes.
    pub fn dirty(&self, offer: &Offer, cause: Cause) -> Route {
        match self.write.flow().dirty {
            Dirty::Disk => Route::Disk(Refusal::Policy),
            Dirty::Both => match self.qualifies(offer) {
                Err(why) => Route::Disk(why),
                // Pages written by age stay in memory; those of checkpoints warm the tier, unless they are a scan's
                // (section 3.3.2).
                Ok(()) if matches!(cause, Cause::Aged | Cause::Early) => Route::Disk(Refusal::Policy),
                Ok(()) if cause == Cause::Checkpoint && offer.class == Class::Sequential => {
                    Route::Disk(Refusal::Policy)
                }
                Ok(()) => Route::Both,
            },
            // Section 3.5, iv. One that stays in memory takes its frame up when it leaves.
            Dirty::BothIfKept if cause != Cause::Evicted || !offer.kept => Route::Disk(Refusal::Policy),
            Dirty::BothIfKept if self.throttled(offer.pending) => Route::Disk(Refusal::Throttled),
            Dirty::BothIfKept => Route::Both,
            Dirty::Flash => self.lazy(offer, cause),
        }
    }

    fn lazy(&self, offer: &Offer, cause: Cause) -> Route {
        if !matches!(cause, Cause::Evicted | Cause::Early) {
            return Route::Disk(Refusal::Policy); // Dirty on flash it would hold the log back as before.
        }
        if let Err(why) = self.qualifies(offer) {
            return Route::Disk(why);
        }
        // Only what is due at once (`aged`): evictions that go to the disk wait behind all that the cleaner writes.
        if offer.age > self.redo_bound / 4 * 3 {
            return Route::Disk(Refusal::Old);
        }
        let part = if self.write.flow().lambda {
            (self.dirty_fraction + (self.dirty_fraction * DIRTY_SLACK).max(LEAST_SLACK)).min(1.0)
        } else {
            1.0
        };
        if offer.dirty as f64 >= part * self.frames as f64 { Route::Disk(Refusal::Dirty) } else { Route::Flash }
    }

    /// How many dirty frames to clean now: those above λ, and those that age makes due; all where the write policy has
    /// no dirty frames (it was another before). `age`: bytes of log since the oldest dirty frame's recLSN.
    pub fn to_clean(&self, dirty: usize, age: u64) -> usize {
        if !self.write.writes_back() {
            return dirty;
        }
        let frames = self.frames as f64;
        let (limit, below) = match self.write.flow().lambda {
            true => (self.dirty_fraction * frames, BELOW_LAMBDA * frames),
            false => (frames - (AT_HAND * frames).max(1.0), 0.0),
        };
        let above =
            if dirty as f64 > limit { dirty - ((limit - below).max(0.0).floor() as usize).min(dirty) } else { 0 };
        above.max(self.aged(dirty, age))
    }

    /// How many to clean for the log's sake: few while the oldest is young, all as its age nears three quarters of the
    /// bound.
    pub fn aged(&self, dirty: usize, age: u64) -> usize {
        let x = (age as f64 / self.redo_bound.max(1) as f64 - 0.25) * 2.0;
        if x <= 0.0 { 0 } else { (dirty as f64 * x.min(1.0).powi(2)).ceil() as usize }
    }
}
