//! How tables and indexes are used, and how transactions end: counters for statistics views.
//!
//! 1. A transaction counts for itself ([`Tally`]) and adds its counts to the whole once, when it ends or is dropped. A
//!    scan adds its counts when it is dropped. So the whole does not contain running work yet. Rolled-back changes
//!    count, because they were work.
//! 2. Nothing of this is stored. Counting begins anew at each opening.
use crate::catalog::Catalog;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use terrace_storage::{Histogram, ObjectId};

#[cfg(test)]
mod tests;

/// Uses of a table or an index since opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Of a table: full scans. Of an index: scans and look-ups.
    pub scans: u64,
    /// Visible rows that these found.
    pub rows: u64,
    /// Of a table.
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
}

impl Counts {
    fn add(&mut self, more: &Counts) {
        self.scans += more.scans;
        self.rows += more.rows;
        self.inserted += more.inserted;
        self.updated += more.updated;
        self.deleted += more.deleted;
    }
}

/// Transactions that ended since opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    pub committed: u64,
    pub rolled_back: u64,
}

#[derive(Default)]
pub(crate) struct Usage {
    whole: Mutex<(FxHashMap<ObjectId, Counts>, Ended)>,
    /// How long commits waited for the log.
    pub(crate) commit_wait: Histogram,
}

impl Usage {
    pub(crate) fn of(&self, object: ObjectId) -> Counts {
        self.whole.lock().0.get(&object).copied().unwrap_or_default()
    }

    pub(crate) fn ended(&self) -> Ended {
        self.whole.lock().1
    }

    /// A look-up in an index that was a transaction of its own.
    pub(crate) fn looked_up(&self, index: ObjectId, found: bool) {
        let mut whole = self.whole.lock();
        let counts = whole.0.entry(index).or_default();
        counts.scans += 1;
        counts.rows += u64::from(found);
        whole.1.committed += 1;
    }

    /// Forgets what a new catalogue does not have.
    pub(crate) fn retain(&self, catalog: &Catalog) {
        let indexes = catalog.tables().flat_map(|table| &table.indexes).map(|index| index.oid);
        let live: FxHashSet<ObjectId> = catalog.tables().map(|table| table.oid).chain(indexes).collect();
        self.whole.lock().0.retain(|object, _| live.contains(object));
    }
}

/// How many objects a tally keeps without allocating.
const FEW: usize = 3;

/// What one transaction or scan has counted (invariant 1).
pub(crate) struct Tally {
    usage: Arc<Usage>,
    /// Used from the front; objects differ.
    few: [Option<(ObjectId, Counts)>; FEW],
    more: Vec<(ObjectId, Counts)>,
    ended: Ended,
}

impl Tally {
    pub(crate) fn new(usage: Arc<Usage>) -> Tally {
        Tally { usage, few: [None; FEW], more: Vec::new(), ended: Ended::default() }
    }

    pub(crate) fn count(&mut self, object: ObjectId) -> &mut Counts {
        let at = self.few.iter().position(|slot| slot.as_ref().is_none_or(|(o, _)| *o == object));
        if let Some(at) = at {
            return &mut self.few[at].get_or_insert((object, Counts::default())).1;
        }
        let at = self.more.iter().position(|(o, _)| *o == object).unwrap_or_else(|| {
            self.more.push((object, Counts::default()));
            self.more.len() - 1
        });
        &mut self.more[at].1
    }

    /// A scan or a look-up that found `rows`.
    pub(crate) fn scanned(&mut self, object: ObjectId, rows: u64) {
        let counts = self.count(object);
        counts.scans += 1;
        counts.rows += rows;
    }

    pub(crate) fn committed(&mut self) {
        self.ended = Ended { committed: 1, rolled_back: 0 };
    }

    pub(crate) fn rolled_back(&mut self) {
        self.ended = Ended { committed: 0, rolled_back: 1 };
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        if self.few[0].is_none() && self.ended == Ended::default() {
            return;
        }
        let mut whole = self.usage.whole.lock();
        for (object, counts) in self.few.iter().flatten().chain(&self.more) {
            whole.0.entry(*object).or_default().add(counts);
        }
        whole.1.committed += self.ended.committed;
        whole.1.rolled_back += self.ended.rolled_back;
    }
}
