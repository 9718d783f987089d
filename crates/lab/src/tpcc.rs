//! TPC-C (revision 5.11): nine tables, five transactions, the consistency conditions of clause 3.3.2.
//!
//! Simplified: no keying and think times; delivery runs at once instead of being queued; an order that names an unused
//! item is found out before it has written; texts that nothing reads are shorter. Rows per warehouse are parameters,
//! but skew lives in them: a smaller database has fewer warehouses instead ([`heat`](crate::heat) says what skew was
//! reached). Money is in cents.
//!
//! 1. A terminal belongs to one warehouse (clause 2.8), or to a share of them where there are more warehouses than
//!    terminals.
//! 2. Rows that many want are locked last, and what is read from a disk is read before: terminals outnumber warehouses
//!    here, and row locks must not be the limit.
mod check;
mod load;
mod random;
mod schema;
mod transactions;

pub(crate) use random::specified;

use crate::workload::{Client, Outcome, Workload, is_lost, named, number};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use terrace_engine::{Database, Datum, Result};

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

impl TpcC {
    /// Invariant 1.
    fn warehouse_of(&self, terminal: u32, random: &mut ChaCha8Rng) -> u32 {
        match self.warehouses / self.terminals {
            0 => terminal % self.warehouses,
            share => terminal % self.terminals * share + random.random_range(0..share),
        }
    }
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
        let warehouse = self.warehouse_of(terminal, random);
        let input = self.input(kind, warehouse, random);
        let mut outcome = Outcome { counted: kind == Kind::NewOrder, ..Outcome::default() };
        loop {
            let mut client = Client::begin(database);
            let result = self.execute(database, &mut client, &input).await;
            outcome.statements += client.statements;
            match result {
                Ok(true) => {
                    outcome.lasting = kind == Kind::NewOrder;
                    return client.txn.commit().await.map(|()| outcome);
                }
                // One new order in a hundred names an item that is not there, and is rolled back (clause 2.4.1.4).
                Ok(false) => return client.txn.rollback().await.map(|()| outcome),
                Err(e) if is_lost(&e) => client.txn.rollback().await?,
                Err(e) => return Err(e),
            }
            outcome.retries += 1;
        }
    }

    /// New orders, as the districts' numbers count them.
    async fn lasting(&self, database: &Database) -> Result<u64> {
        let mut client = Client::begin(database);
        let mut orders = 0;
        let loaded = i64::from(self.customers);
        let each = |row: Vec<Datum>| orders += number(&row, schema::district::NEXT_ORDER) - loaded;
        client.each(&named(database, "district"), each).await?;
        client.txn.commit().await?;
        Ok(u64::try_from(orders).expect("districts number orders upwards"))
    }

    async fn check(&self, database: &Database) -> Result<Vec<String>> {
        self.conditions(database).await
    }
}

#[cfg(test)]
mod tests;
