//! Decisions of the flash tier: what is let in, where dirty pages go, what is replaced, how much is cleaned.
//!
//! Source: J. Do, *The Role of Flash Memory in Database Management Systems*, chapter 3 and section 4.2.2. [`methods`]
//! is the table of what each published method does and which go together; [`gate`] the thresholds; the orders have a
//! file each.
//!
//! Invariants:
//! 1. Nothing here waits, reads a clock or does I/O: the same events in the same order give the same answers (R1).
//! 2. A replacement order proposes only frames that may be replaced: admitted or declared clean, and not removed since.

mod budget;
mod distance;
mod fifo;
mod gate;
mod heap;
mod lrfu;
mod lru2;
mod methods;
mod temperature;
#[cfg(test)]
mod tests;

pub use budget::Budget;
pub use distance::{DistanceRule, NEAR};
pub use fifo::FlashFifo;
pub use gate::{Cause, Gate, Moment, Offer, Refusal, Route};
pub use lrfu::FlashLrfu;
pub use lru2::FlashLru2;
pub use methods::{Dirty, FlashOrder, Flow, WritePolicy};
pub use temperature::FlashTemperature;

use crate::{Class, Frame, Page};

/// The order in which clean frames of one partition are replaced.
pub trait FlashReplacement: Send {
    /// `page` lies in `frame` from now on; it may be replaced at once, or (dirty) only after `cleaned`.
    fn admit(&mut self, frame: Frame, page: Page, clean: bool);
    /// Memory missed `page`, and read it from `frame`.
    fn hit(&mut self, frame: Frame, class: Class);
    /// Memory missed `page`, and read it from the disk.
    fn missed(&mut self, _page: Page, _class: Class) {}
    /// Whether `page` is worth the place of the next victim. Asked only where no frame is free.
    fn admits(&self, _page: Page, _dirty: bool) -> bool {
        true
    }
    /// The dirty page in `frame` may be replaced: it is home, or void.
    fn cleaned(&mut self, frame: Frame);
    /// The frame to replace next; it stays until `remove`.
    fn victim(&self) -> Option<Frame>;
    /// The proposed victim is being read: propose others first.
    fn veto(&mut self, frame: Frame);
    /// `page`, which lies in `frame`, changes in memory: what is in the frame is void, and the page may come back.
    fn changed(&mut self, _frame: Frame, _page: Page) {}
    /// What a page read from flash saves now, in microseconds: at random, and of a scan.
    fn priced(&mut self, _saved: [u32; 2]) {}
    /// `page` left `frame`.
    fn remove(&mut self, frame: Frame, page: Page);
    /// Frames that may be replaced.
    fn clean(&self) -> usize;
    /// Smaller: to be replaced sooner, among frames held, whether or not they may be now. `None`: the order cannot tell
    /// cheaply.
    fn rank(&self, _frame: Frame) -> Option<u64> {
        None
    }
    /// Sorts `held`, which are all frames held: the next to be replaced first, whether or not they may be now.
    fn arrange(&self, held: &mut Vec<Frame>);
    /// Frames are `0..capacity` from now on; those that go are not held.
    fn resize(&mut self, capacity: usize);
}
