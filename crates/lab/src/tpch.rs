//! TPC-H's input and output (revision 2.17): its tables, 22 queries as what they read, refresh streams, power and
//! throughput tests, QphH.
//!
//! Simplified: a query is the scans and the index lookups that its usual plan in a row store does ([`queries`]), with
//! CPU charged for each row; no values are computed, nothing is sorted or hashed, so there is no temporary space.
//! Nation and region are columns. The orders of the query streams are drawn instead of taken from the specification's
//! appendix. Orders deleted by a refresh are spread over all, those inserted have new keys above all.
//!
//! 1. A query's workers have a snapshot each: in it, an order has as many lines as it says.
//! 2. Each refresh pair inserts and deletes one order in a thousand (clause 2.6), so that the size stays.
mod check;
mod load;
mod queries;
mod refresh;
mod run;
mod schema;

pub(crate) use queries::Called;
pub use run::{Power, Throughput, composite};

use crate::workload::{Outcome, Workload};
use parking_lot::Mutex;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use terrace_engine::{Database, Result};

#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// 1,500,000 at scale factor 1; the other tables follow.
    pub orders: u32,
    /// Charged for each row that a query reads.
    pub row_cpu: Duration,
}

impl Sizes {
    /// TPC-H's scale factor.
    pub fn scale_factor(&self) -> f64 {
        f64::from(self.orders) / 1_500_000.0
    }
    pub(crate) fn customers(&self) -> u32 {
        self.orders / 10
    }
    pub(crate) fn parts(&self) -> u32 {
        self.orders * 2 / 15
    }
    pub(crate) fn suppliers(&self) -> u32 {
        (self.orders / 150).max(4)
    }
    /// Orders of a refresh.
    pub(crate) fn refreshed(&self) -> u32 {
        (self.orders / REFRESHES).max(1)
    }
}

/// Refreshes that a run may make: each deletes another order of each thousand.
const REFRESHES: u32 = 1000;

/// One run's state beside the database: make a new one for each run.
pub struct TpcH {
    sizes: Sizes,
    /// The next order to insert, and refreshes done.
    next_order: AtomicU32,
    refreshes: AtomicU32,
    /// What is left of each terminal's stream.
    streams: Mutex<BTreeMap<usize, Vec<usize>>>,
    /// Orders that a query saw with other lines than they have.
    torn: AtomicU32,
}

impl TpcH {
    pub fn new(sizes: Sizes) -> TpcH {
        assert!(sizes.orders >= 1000, "a refresh is one order in a thousand: {sizes:?}");
        TpcH {
            sizes,
            next_order: AtomicU32::new(sizes.orders),
            refreshes: AtomicU32::new(0),
            streams: Mutex::default(),
            torn: AtomicU32::new(0),
        }
    }

    /// As it was after loading.
    pub fn fresh(&self) -> TpcH {
        TpcH::new(self.sizes)
    }

    fn note_torn(&self) {
        self.torn.fetch_add(1, Ordering::Relaxed);
    }

    /// All queries once, in a stream's order.
    fn stream(random: &mut ChaCha8Rng) -> Vec<usize> {
        let mut order: Vec<usize> = (1..=queries::QUERIES.len()).collect();
        order.shuffle(random);
        order
    }
}

impl Workload for TpcH {
    async fn load(&self, database: &Database) -> Result<()> {
        self.fill(database).await
    }

    /// Terminal 0 refreshes for as long as there are orders to delete, the others go through their streams of queries.
    async fn transaction(&self, database: &Database, terminal: usize, random: &mut ChaCha8Rng) -> Result<Outcome> {
        let rows = if terminal == 0 && self.refreshes.load(Ordering::Relaxed) < REFRESHES {
            self.refresh(database, random).await?
        } else {
            let next = self.streams.lock().entry(terminal).or_default().pop();
            let number = next.unwrap_or_else(|| {
                let mut order = TpcH::stream(random);
                let first = order.pop().expect("22 queries");
                self.streams.lock().insert(terminal, order);
                first
            });
            self.query(database, number, random).await?
        };
        // The rows' CPU is charged as they are read.
        Ok(Outcome { counted: terminal != 0 && rows > 0, statements: 1, ..Outcome::default() })
    }

    async fn check(&self, database: &Database) -> Result<Vec<String>> {
        self.conditions(database).await
    }
}

#[cfg(test)]
mod tests;
