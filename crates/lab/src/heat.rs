//! Which pages of rows a workload uses: the skew that a run reached, from the run itself.
//!
//! 1. A simulation runs on one thread, and so does all that its terminals do: what is noted between [`begin`] and
//!    [`end`] on a thread is that run's.
//! 2. Pages of tables are counted, not those of indexes; all pages that a table has count, used or not.
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::BTreeMap;
use terrace_engine::{Database, Table};
use terrace_storage::{DATA, ObjectId, Rid};

/// Accesses of each page that was used.
type Counts = FxHashMap<(ObjectId, u32), u32>;

thread_local! {
    static NOTED: RefCell<Option<Counts>> = const { RefCell::new(None) };
}

/// From here on accesses are noted.
pub(crate) fn begin() {
    NOTED.with(|noted| *noted.borrow_mut() = Some(FxHashMap::default()));
}

/// A row is used.
pub(crate) fn note(table: &Table, rid: Rid) {
    NOTED.with(|noted| {
        if let Some(counts) = noted.borrow_mut().as_mut() {
            *counts.entry((table.oid, rid.page)).or_default() += 1;
        }
    });
}

/// What was noted since [`begin`].
pub(crate) fn end(database: &Database) -> Heat {
    let mut counts = NOTED.with(|noted| noted.borrow_mut().take()).unwrap_or_default();
    let catalog = database.catalog();
    let mut tables = BTreeMap::new();
    for oid in counts.keys().map(|(oid, _)| *oid).collect::<std::collections::BTreeSet<_>>() {
        let Some(table) = catalog.tables().find(|table| table.oid == oid) else { continue };
        let pages = database.store().space(DATA).pages(oid, 0, usize::MAX);
        let mut used: Vec<u32> = pages.iter().map(|page| counts.remove(&(oid, *page)).unwrap_or(0)).collect();
        used.sort_unstable_by(|a, b| b.cmp(a));
        tables.insert(table.name.to_string(), used);
    }
    Heat { tables }
}

/// Accesses of each page of each table that was used, the hottest first.
#[derive(Clone, Debug, Default)]
pub struct Heat {
    tables: BTreeMap<String, Vec<u32>>,
}

impl Heat {
    /// What share of a table's accesses its hottest pages took, so many of all (0 to 1).
    pub fn of(&self, table: &str, hottest: f64) -> Option<f64> {
        share(self.tables.get(table)?, hottest)
    }

    /// The same of all tables together.
    pub fn of_all(&self, hottest: f64) -> Option<f64> {
        let mut all: Vec<u32> = self.tables.values().flatten().copied().collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        share(&all, hottest)
    }
}

/// `counts` descend.
pub(crate) fn share(counts: &[u32], hottest: f64) -> Option<f64> {
    let sum = |of: &[u32]| of.iter().map(|count| u64::from(*count)).sum::<u64>() as f64;
    let all = sum(counts);
    let part = &counts[..(counts.len() as f64 * hottest).round() as usize];
    (all > 0.0).then(|| sum(part) / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hottest_pages_take_their_share() {
        let stock = [vec![50, 30, 10, 10], vec![0; 6]].concat();
        let heat = Heat { tables: [("stock".to_string(), stock), ("item".to_string(), vec![100])].into() };
        assert_eq!(heat.of("stock", 0.2), Some(0.8));
        assert_eq!((heat.of("stock", 0.35), heat.of("order", 0.35)), (Some(1.0), None));
        assert_eq!(heat.of_all(2.0 / 11.0), Some(0.75));
    }
}
