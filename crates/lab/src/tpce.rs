//! A brokerage house after TPC-E (revision 1.12): customers with accounts order trades, a market executes them,
//! everybody looks things up. Ten transactions in the specification's mix, 77% of them read-only; the metric counts
//! trade results.
//!
//! Simplified: fourteen of the 33 tables, those that its transactions read or write most; what is left out is small
//! (addresses, taxes, exchanges, industries, news) or like what is there (holding history, limit requests: all orders
//! are market orders). Rows per customer are parameters, but what is hot depends on them (of an account's trades the
//! newest are looked at): a smaller database has fewer customers. The market is a queue in memory: a terminal that is
//! to run a trade result takes the oldest order, and orders one itself where there is none; market feeds are a
//! transaction like others. Customers and trades are chosen by NURand; no customer tiers. Frames of one transaction are
//! one transaction. Money is in cents.
//!
//! 1. Trade ids are given out in the order of time, and the heap keeps that order: an account's trades lie everywhere.
//! 2. Who changes an account's holdings has locked the account before; who changes a broker does it last.
mod check;
mod input;
mod load;
mod reads;
mod schema;
mod writes;

use crate::workload::{Client, Outcome, Workload, is_lost};
use input::Input;
use parking_lot::Mutex;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use terrace_engine::{Database, Result};

#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub customers: u32,
    /// Trades of a customer to begin with: 17,280 in the specification.
    pub trades: u32,
    /// Days of market history of a security: 1,305 in the specification.
    pub days: u32,
    /// Securities that a customer watches: 100 on average in the specification.
    pub watched: u32,
    /// 10 for each thousand customers in the specification. Every trade's result changes one: a smaller database keeps
    /// them, or they are what everybody waits for.
    pub brokers: u32,
    /// So many times as many trades ordered, executed and updated as the mix has; 1 in the specification.
    pub updates: u32,
}

pub(crate) const ACCOUNTS: u32 = 5;
/// Trades that a lookup or an update is about.
pub(crate) const LOOKED_UP: usize = 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    BrokerVolume,
    CustomerPosition,
    MarketFeed,
    MarketWatch,
    SecurityDetail,
    TradeLookup,
    TradeOrder,
    TradeResult,
    TradeStatus,
    TradeUpdate,
}

/// Clause 6.2.2.1: the mix, in thousandths.
const MIX: [(Kind, u32); 10] = [
    (Kind::BrokerVolume, 49),
    (Kind::CustomerPosition, 130),
    (Kind::MarketFeed, 10),
    (Kind::MarketWatch, 180),
    (Kind::SecurityDetail, 140),
    (Kind::TradeLookup, 80),
    (Kind::TradeOrder, 101),
    (Kind::TradeResult, 100),
    (Kind::TradeStatus, 190),
    (Kind::TradeUpdate, 20),
];

fn choose(updates: u32, random: &mut ChaCha8Rng) -> Kind {
    let mix = MIX.map(|(kind, share)| match kind {
        Kind::TradeOrder | Kind::TradeResult | Kind::TradeUpdate => (kind, share * updates),
        _ => (kind, share),
    });
    let mut dice = random.random_range(0..mix.iter().map(|(_, share)| share).sum());
    for (kind, share) in mix {
        if dice < share {
            return kind;
        }
        dice -= share;
    }
    unreachable!("the dice shows less than all shares")
}

/// One run's state beside the database: make a new one for each run.
pub struct TpcE {
    sizes: Sizes,
    /// Ordered trades that are not executed.
    market: Mutex<VecDeque<u32>>,
    next_trade: AtomicU32,
}

impl TpcE {
    pub fn new(sizes: Sizes) -> TpcE {
        assert!(
            sizes.customers >= 20 && sizes.trades > 0 && sizes.days > 0 && sizes.brokers > 0 && sizes.updates > 0,
            "a house with a history: {sizes:?}"
        );
        let next_trade = AtomicU32::new(sizes.customers * sizes.trades);
        TpcE { sizes, market: Mutex::default(), next_trade }
    }

    /// As it was after loading.
    pub fn fresh(&self) -> TpcE {
        TpcE::new(self.sizes)
    }

    pub(crate) fn accounts(&self) -> u32 {
        self.sizes.customers * ACCOUNTS
    }
    /// Clause 2.6.1: 685 securities of 500 companies for each thousand customers.
    pub(crate) fn securities(&self) -> u32 {
        self.sizes.customers * 685 / 1000
    }
    pub(crate) fn companies(&self) -> u32 {
        self.sizes.customers / 2
    }
    pub(crate) fn brokers(&self) -> u32 {
        self.sizes.brokers
    }
    fn initial_trades(&self) -> u32 {
        self.sizes.customers * self.sizes.trades
    }
}

impl Workload for TpcE {
    async fn load(&self, database: &Database) -> Result<()> {
        self.fill(database).await
    }

    async fn transaction(&self, database: &Database, _terminal: usize, random: &mut ChaCha8Rng) -> Result<Outcome> {
        let input = self.input(choose(self.sizes.updates, random), random);
        let mut outcome = Outcome { counted: matches!(input, Input::TradeResult { .. }), ..Outcome::default() };
        loop {
            let mut client = Client::begin(database);
            let result = self.execute(database, &mut client, &input).await;
            outcome.statements += client.statements;
            match result {
                Ok(true) => break client.txn.commit().await?,
                // One order in a hundred is taken back (clause 3.3.7.1).
                Ok(false) => return client.txn.rollback().await.map(|()| outcome),
                Err(e) if is_lost(&e) => client.txn.rollback().await?,
                Err(e) => return Err(e),
            }
            outcome.retries += 1;
        }
        if let Input::TradeOrder(order) = &input {
            self.market.lock().push_back(order.trade);
        }
        Ok(outcome)
    }

    async fn check(&self, database: &Database) -> Result<Vec<String>> {
        self.conditions(database).await
    }
}

impl TpcE {
    /// Whether it is to be committed.
    async fn execute(&self, database: &Database, client: &mut Client, input: &Input) -> Result<bool> {
        match input {
            Input::TradeOrder(order) => return writes::trade_order(database, client, order).await,
            Input::TradeResult { trade, price } => writes::trade_result(database, client, *trade, *price).await?,
            Input::TradeUpdate(about) => writes::trade_update(database, client, about).await?,
            Input::MarketFeed(prices) => writes::market_feed(database, client, prices).await?,
            Input::BrokerVolume { brokers } => reads::broker_volume(database, client, brokers).await?,
            Input::CustomerPosition { customer, history } => {
                reads::customer_position(database, client, *customer, *history).await?;
            }
            Input::MarketWatch { customer, day } => reads::market_watch(database, client, *customer, *day).await?,
            Input::SecurityDetail { security, day } => {
                reads::security_detail(database, client, *security, *day).await?;
            }
            Input::TradeLookup(about) => drop(reads::trade_lookup(database, client, about).await?),
            Input::TradeStatus { account } => reads::trade_status(database, client, *account).await?,
        }
        Ok(true)
    }

    /// The oldest order that waits for the market.
    fn take_order(&self) -> Option<u32> {
        self.market.lock().pop_front()
    }

    fn new_trade(&self) -> u32 {
        self.next_trade.fetch_add(1, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
