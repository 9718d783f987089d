//! The distance rule for telling scans from look-ups by the reads alone: a page near the one read before it is part of a scan.
//!
//! Source: thesis, section 3.2.2, which compares it with asking the read-ahead and finds it much the worse: other readers come between.

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
mod tests {
    use super::*;

    #[test]
    fn one_reader_is_told_apart_and_two_are_mixed_up() {
        let mut rule = DistanceRule::default();
        let scan = (1000..1100).map(|page| rule.classify(page)).filter(|c| *c == Class::Sequential).count();
        assert_eq!(scan, 99, "all but the first");
        assert_eq!(rule.classify(5000), Class::Random);
        assert_eq!(rule.classify(5064), Class::Sequential);
        assert_eq!(rule.classify(5129), Class::Random, "65 pages on");
        // A look-up elsewhere after each page of the scan: nothing is near what came before.
        let mixed = (0..100).filter(|i| {
            rule.classify(9_000_000 - 1000 * i);
            rule.classify(1000 + i) == Class::Sequential
        });
        assert_eq!(mixed.count(), 0);
    }
}
