//! Decisions of the flash tier: what is let in, where dirty pages go, what is replaced, how much is cleaned.
//!
//! Source: J. Do, *The Role of Flash Memory in Database Management Systems*, chapter 3 (clean-write, dual-write, lazy-cleaning; the
//! thresholds τ, μ, λ, α) and section 4.2.2.
//!
//! Invariants:
//! 1. Nothing here waits, reads a clock or does I/O: the same events in the same order give the same answers (R1).
//! 2. A replacement order proposes only frames that may be replaced: admitted or declared clean, and not removed since.

mod budget;
mod distance;
mod fifo;
mod lru2;
#[cfg(test)]
mod tests;

pub use budget::Budget;
pub use distance::{DistanceRule, NEAR};
pub use fifo::FlashFifo;
pub use lru2::FlashLru2;

use crate::{Class, Frame, Page};

/// What the tier does with dirty pages that leave memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WritePolicy {
    /// They go to the disk only; the tier holds clean pages.
    CleanWrite,
    /// They go to both; the tier's record is made when both writes are done.
    DualWrite,
    /// They go to the tier, and from there to the disk in time.
    LazyCleaning,
}

/// Which frame gives way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlashOrder {
    Lru2,
    Fifo,
}

/// The order in which clean frames of one partition are replaced.
pub trait FlashReplacement: Send {
    /// `page` lies in `frame` from now on; it may be replaced at once, or (dirty) only after `cleaned`.
    fn admit(&mut self, frame: Frame, page: Page, clean: bool);
    /// The page in `frame` was read.
    fn hit(&mut self, frame: Frame);
    /// The dirty page in `frame` is home: it may be replaced.
    fn cleaned(&mut self, frame: Frame);
    /// The frame to replace next; it stays until `remove`.
    fn victim(&self) -> Option<Frame>;
    /// The proposed victim is being read: propose others first.
    fn veto(&mut self, frame: Frame);
    /// The page left `frame`.
    fn remove(&mut self, frame: Frame);
    /// Frames that may be replaced.
    fn clean(&self) -> usize;
}

impl FlashOrder {
    /// An order over frames `0..capacity`.
    pub fn make(self, capacity: usize) -> Box<dyn FlashReplacement> {
        match self {
            FlashOrder::Lru2 => Box::new(FlashLru2::new(capacity)),
            FlashOrder::Fifo => Box::new(FlashFifo::new(capacity)),
        }
    }

    /// Bytes of memory that the order takes for each frame.
    pub fn frame_bytes(self) -> usize {
        match self {
            FlashOrder::Lru2 => FlashLru2::FRAME_BYTES,
            FlashOrder::Fifo => FlashFifo::FRAME_BYTES,
        }
    }
}

/// Why a dirty page leaves memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Its frame is wanted.
    Evicted,
    /// The log needs it home.
    Aged,
    /// As `Aged`, because somebody asked.
    Checkpoint,
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
    /// μ: transfers under way, above which nothing more is sent to the device.
    pub throttle: usize,
    /// λ: the part of the frames that may be dirty before the cleaner sets in.
    pub dirty_fraction: f64,
    /// Bytes of log that restart may have to repeat.
    pub redo_bound: u64,
}

/// Beyond λ, this part of the frames may be dirty for as long as the cleaner has not caught up.
const DIRTY_SLACK: f64 = 1.0 / 8.0;
/// The cleaner leaves the number of dirty frames this part of the frames below λ (section 3.2.3.3: 0.01%).
const BELOW_LAMBDA: f64 = 0.0001;

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

    /// Whether a clean page that leaves memory is let in.
    pub fn clean(&self, offer: &Offer) -> Result<(), Refusal> {
        self.qualifies(offer)
    }

    /// Where a dirty page goes.
    pub fn dirty(&self, offer: &Offer, cause: Cause) -> Route {
        match self.write {
            WritePolicy::CleanWrite => Route::Disk(Refusal::Policy),
            WritePolicy::DualWrite => match self.qualifies(offer) {
                Err(why) => Route::Disk(why),
                // Pages written by age stay in memory; those of checkpoints warm the tier (section 3.3.2).
                Ok(()) if cause == Cause::Aged || offer.class == Class::Sequential => Route::Disk(Refusal::Policy),
                Ok(()) => Route::Both,
            },
            WritePolicy::LazyCleaning => self.lazy(offer, cause),
        }
    }

    fn lazy(&self, offer: &Offer, cause: Cause) -> Route {
        if cause != Cause::Evicted {
            return Route::Disk(Refusal::Policy); // Dirty on flash it would hold the log back as before.
        }
        if let Err(why) = self.qualifies(offer) {
            return Route::Disk(why);
        }
        if offer.age > self.redo_bound / 2 {
            return Route::Disk(Refusal::Old);
        }
        let most = (self.dirty_fraction + DIRTY_SLACK).min(1.0) * self.frames as f64;
        if offer.dirty as f64 >= most { Route::Disk(Refusal::Dirty) } else { Route::Flash }
    }

    /// How many dirty frames to clean now: those above λ, and by age few while the oldest is young, all as its age nears three quarters
    /// of the bound. `age`: bytes of log since the oldest dirty frame's recLSN.
    pub fn to_clean(&self, dirty: usize, age: u64) -> usize {
        let lambda = self.dirty_fraction * self.frames as f64;
        let above = if dirty as f64 > lambda {
            let target = (lambda - BELOW_LAMBDA * self.frames as f64).max(0.0);
            dirty - (target.floor() as usize).min(dirty)
        } else {
            0
        };
        let x = (age as f64 / self.redo_bound.max(1) as f64 - 0.25) * 2.0;
        let aged = if x <= 0.0 { 0 } else { (dirty as f64 * x.min(1.0).powi(2)).ceil() as usize };
        above.max(aged)
    }
}
