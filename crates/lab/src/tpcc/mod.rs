//! TPC-C (revision 5.11): nine tables, five transactions, the consistency conditions of clause 3.3.2.
//!
//! Simplified: rows per warehouse are parameters, so that the number of warehouses can stay while the database shrinks; no keying and think
//! times; delivery runs at once instead of being queued; texts that nothing reads are shorter. Money is in cents.
//!
//! 1. A terminal belongs to one warehouse (clause 2.8): with at least four warehouses to a terminal, row locks are not the limit.
mod check;
mod load;
mod random;
mod schema;
mod transactions;

use crate::workload::{Client, Outcome, Workload, is_lost};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use terrace_engine::{Database, Result};

#[derive(Clone, Copy, Debug)]
pub struct TpcC {
    pub warehouses: u32,
    /// 100,000 in the specification; so many stock rows in each warehouse.
    pub items: u32,
    /// 3,000 in the specification; as many orders to begin with.
    pub customers: u32,
    /// Terminals that share the warehouses.
    pub terminals: u32,
}

pub(crate) const DISTRICTS: u32 = 10;

/// Clause 5.2.3: the mix, in hundredths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

fn choose(random: &mut ChaCha8Rng) -> Kind {
    match random.random_range(0..100) {
        0..45 => Kind::NewOrder,
        45..88 => Kind::Payment,
        88..92 => Kind::OrderStatus,
        92..96 => Kind::Delivery,
        _ => Kind::StockLevel,
    }
}

impl Workload for TpcC {
    async fn load(&self, database: &Database) -> Result<()> {
        self.fill(database).await
    }

    async fn transaction(&self, database: &Database, terminal: usize, random: &mut ChaCha8Rng) -> Result<Outcome> {
        let kind = choose(random);
        let terminal = u32::try_from(terminal).expect("a number of terminals");
        // Invariant 1: each terminal has its share of the warehouses.
        let share = self.warehouses / self.terminals;
        let warehouse = terminal % self.terminals * share + random.random_range(0..share);
        let input = self.input(kind, warehouse, random);
        let mut outcome = Outcome { counted: kind == Kind::NewOrder, ..Outcome::default() };
        loop {
            let mut client = Client::begin(database);
            let result = self.execute(database, &mut client, &input).await;
            outcome.statements += client.statements;
            match result {
                Ok(true) => return client.txn.commit().await.map(|()| outcome),
                // One new order in a hundred names an item that is not there, and is rolled back (clause 2.4.1.4).
                Ok(false) => return client.txn.rollback().await.map(|()| outcome),
                Err(e) if is_lost(&e) => client.txn.rollback().await?,
                Err(e) => return Err(e),
            }
            outcome.retries += 1;
        }
    }

    async fn check(&self, database: &Database) -> Result<Vec<String>> {
        self.conditions(database).await
    }
}

#[cfg(test)]
mod tests;
