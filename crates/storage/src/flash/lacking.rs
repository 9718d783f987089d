//! Pages that lack changes from below where redo began (`attach`, invariant 6), and where in the log those lie.
//!
//! Invariants:
//! 1. The places known of a page are batches that change it; not always all of them. Who repeats them sees by
//!    prevPageLSN whether they lead from its version to the LSN that the page must have. If they do not, the log's
//!    indexes say them all.
//! 2. Memory is bounded: beyond `room` pages, all that was noted is given up; beyond its share of places, places are
//!    (`EACH` of a page, and `SHARE` of a page on average).

use crate::types::*;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Places kept of one page at most: a page with more is one of few, and its changes fill the segments.
const EACH: usize = 32;
/// Places kept for each page that there is room for.
const SHARE: usize = 2;

/// Where a batch begins in the log, and where it ends.
pub(crate) type BatchSpan = (Lsn, Lsn);

/// Pages that lack changes.
#[derive(Default)]
pub(crate) struct Lacking {
    pages: FxHashMap<PageId, Lack>,
    /// Places of all pages.
    places: usize,
    /// More than memory is for.
    full: bool,
}

/// What a page lacks, if the disk has not got it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lack {
    /// Its changes begin here, or later.
    pub(crate) since: Lsn,
    /// Its LSN after the last of them, or `UNKNOWN`.
    pub(crate) last: Lsn,
    /// Where they are, ascending (invariant 1); `None`: too many.
    pub(crate) places: Option<Arc<[BatchSpan]>>,
}

impl Lack {
    /// Above all LSNs: whatever the disk has of the page may be too old.
    pub(crate) const UNKNOWN: Lsn = Lsn(u64::MAX);
}

impl Lacking {
    /// Memory for a page, about, without its places.
    pub(crate) const ENTRY: usize = 64;

    /// The page is changed from `since` on, lastly so that its LSN is `last`; by these batches, which lie behind all
    /// that were added of it before. `afresh`: it needs none of those.
    pub(super) fn add(
        &mut self,
        page: PageId,
        (since, last): (Lsn, Lsn),
        places: impl Iterator<Item = BatchSpan>,
        afresh: bool,
        room: usize,
    ) {
        if self.pages.len() >= room && !self.has(page) {
            self.full = true;
            return;
        }
        let none = || Some(Arc::from([]));
        let entry = self.pages.entry(page).or_insert_with(|| Lack { since, last, places: none() });
        (entry.since, entry.last) = (entry.since.min(since), entry.last.max(last));
        let held = entry.places.as_ref().map_or(0, |places| places.len());
        // (A page that had too many has them all again where it begins afresh.)
        let before = if afresh { none() } else { entry.places.take() };
        entry.places = before.and_then(|before| {
            let mut all = before.to_vec();
            all.extend(places.take(EACH + 1 - all.len()));
            (all.len() <= EACH && self.places - held + all.len() <= SHARE * room).then(|| all.into())
        });
        self.places = self.places - held + entry.places.as_ref().map_or(0, |places| places.len());
    }

    pub(crate) fn has(&self, page: PageId) -> bool {
        self.pages.contains_key(&page)
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    pub(crate) fn take(&mut self, page: PageId) -> Option<Lack> {
        self.pages.remove(&page)
    }

    pub(crate) fn into_pages(self) -> impl Iterator<Item = (PageId, Lack)> {
        self.pages.into_iter()
    }

    /// Whatever the disk has of the page is not to be believed.
    pub(crate) fn add_unknown(&mut self, page: PageId, since: Lsn) {
        let lack = Lack { since, last: Lack::UNKNOWN, places: None };
        let entry = self.pages.entry(page).or_insert(lack.clone());
        *entry = Lack { since: entry.since.min(since), ..lack };
    }
}

#[cfg(test)]
mod tests;
