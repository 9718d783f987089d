//! Replacement decisions: deterministic state machines fed with events, without I/O, clocks or locks (rule R1).
//!
//! In: frames coming, being used, leaving, refused as victims. Out: which frame to replace next, and what the flash
//! tier does with a page. Never: pages' bytes, devices. The buffer pool and trace replay run the same code: the same
//! order of events gives the same answers.

mod clock;
pub mod flash;
mod list;
mod lru;
mod lru2;
#[cfg(test)]
mod tests;

pub use clock::Clock;
pub use lru::Lru;
pub use lru2::Lru2;

/// A frame's number, below the capacity the policy was made for.
pub type Frame = u32;

/// A page's identity, as far as policies care.
pub type Page = u64;

/// How a page is being used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Random,
    /// Part of a scan: likely not to be used again.
    Sequential,
}

/// A replacement policy over frames. Every event names a frame that is *held* (admitted and not removed), except
/// `admit`.
pub trait Replacement: Send {
    /// `page` now occupies `frame`.
    fn admit(&mut self, frame: Frame, page: Page, class: Class);
    /// The page in `frame` was used again.
    fn hit(&mut self, frame: Frame, class: Class);
    /// The frame to replace next; `None` where none is held. It stays held until `remove`.
    fn victim(&mut self) -> Option<Frame>;
    /// The proposed victim cannot go now (pinned, or being written): do not propose it again before others.
    fn veto(&mut self, frame: Frame);
    /// The page left `frame` (replaced, or dropped with its object).
    fn remove(&mut self, frame: Frame);
    /// Frames held.
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
