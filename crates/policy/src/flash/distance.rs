//! The distance rule for telling scans from look-ups by the reads alone: a page near the one read before it is part of
//! a scan.
//!
//! Source: thesis, section 3.2.2, which compares it with asking the read-ahead and finds it much the worse: other
//! readers come between.

use crate::{Class, Page};

/// The rule's distance in pages.
pub const NEAR: u64 = 64;

/// What was read last.
#[derive(Clone, Copy, Debug, Default)]
pub struct DistanceRule {
    last: Option<Page>,
}

impl DistanceRule {
    /// The class of a page that is read now.
    pub fn classify(&mut self, page: Page) -> Class {
        let near = self.last.is_some_and(|last| last.abs_diff(page) <= NEAR);
        self.last = Some(page);
        if near { Class::Sequential } else { Class::Random }
    }
}

#[cfg(test)]
mod tests;
