//! The initial database, from a seed of its own: every machine loads the same rows. All initial trades are executed;
//! what customers hold, and what brokers and accounts have come to, follows from them.
use super::schema::{COMPLETED, SUBMITTED};
use super::writes::{commission, money};
use super::{ACCOUNTS, TpcE, schema};
use crate::random::letters;
use crate::workload::{create, fill, int};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use terrace_engine::{Database, Datum, Result};

/// What the initial trades come to.
#[derive(Default)]
struct History {
    /// Price and quantity by account, security, trade.
    holdings: BTreeMap<(u32, u32, u32), (i64, i64)>,
    balances: BTreeMap<u32, i64>,
    /// Trades and commissions.
    brokers: BTreeMap<u32, (i64, i64)>,
}

impl History {
    /// Of holdings, and of their summary.
    fn rows(&self) -> (Vec<Vec<Datum>>, Vec<Vec<Datum>>) {
        let mut sums: BTreeMap<(u32, u32), i64> = BTreeMap::new();
        let mut rows = Vec::with_capacity(self.holdings.len());
        for ((a, s, t), (price, quantity)) in &self.holdings {
            *sums.entry((*a, *s)).or_default() += quantity;
            rows.push(vec![int(*a), int(*s), int(*t), Datum::Int8(*price), Datum::Int8(*quantity)]);
        }
        let sums = sums.into_iter().map(|((a, s), quantity)| vec![int(a), int(s), Datum::Int8(quantity)]);
        (rows, sums.collect())
    }
}

/// One in so many trades is still held to begin with.
const HELD: u32 = 8;

impl TpcE {
    pub(super) async fn fill(&self, database: &Database) -> Result<()> {
        create(database, schema::tables()).await?;
        let r = &mut ChaCha8Rng::seed_from_u64(0x7470_6365);
        self.fill_market(database, r).await?;
        let history = self.fill_trades(database, r).await?;
        self.fill_customers(database, &history, r).await
    }

    async fn fill_market(&self, database: &Database, r: &mut ChaCha8Rng) -> Result<()> {
        let companies = (0..self.companies()).map(|co| vec![int(co), letters(r, 40), letters(r, 300)]);
        fill(database, "company", companies).await?;
        let all = 0..self.securities();
        let of = |s: u32| int(s % self.companies());
        let securities = all.clone().map(|s| vec![int(s), of(s), letters(r, 50), letters(r, 12)]);
        fill(database, "security", securities).await?;
        let prices = all.clone().map(|s| {
            let price = Datum::Int8(TpcE::price(r));
            vec![int(s), price.clone(), price, Datum::Int8(0), Datum::Int8(0)]
        });
        fill(database, "last_trade", prices).await?;
        let days = all.flat_map(|s| (0..self.sizes.days).map(move |day| (s, day)));
        let days = days.map(|(s, day)| {
            let price = TpcE::price(r);
            let volume = Datum::Int8(r.random_range(1000..10_000));
            vec![int(s), int(day), Datum::Int8(price), Datum::Int8(price + 50), Datum::Int8(price - 50), volume]
        });
        fill(database, "daily_market", days).await
    }

    async fn fill_trades(&self, database: &Database, r: &mut ChaCha8Rng) -> Result<History> {
        let mut history = History::default();
        let (mut trades, mut steps, mut settled, mut cash) = (vec![], vec![], vec![], vec![]);
        for t in 0..self.initial_trades() {
            let (a, s) = (r.random_range(0..self.accounts()), self.security(r));
            let (b, quantity, price) = (self.broker_of(a), [100, 200, 400, 800][r.random_range(0..4)], TpcE::price(r));
            // What is held was bought; of the others it does not matter.
            let held = t % HELD == 0;
            let sell = !held && r.random_bool(0.5);
            let fee = commission(quantity, price);
            let amount = money(sell, quantity, price, fee);
            let date = Datum::Int8(i64::from(t));
            if held {
                history.holdings.insert((a, s, t), (price, quantity));
            }
            *history.balances.entry(a).or_default() += amount;
            let of = history.brokers.entry(b).or_default();
            *of = (of.0 + 1, of.1 + fee);
            let number = Datum::Int4(i32::try_from(quantity).expect("at most 800"));
            let (sell, executor, price, fee) = (int(sell.into()), letters(r, 30), Datum::Int8(price), Datum::Int8(fee));
            let row =
                [int(t), date.clone(), int(COMPLETED), sell, int(s), number, int(a), executor, price, fee, int(b)];
            trades.push(row.to_vec());
            steps.push(vec![int(t), int(SUBMITTED), date.clone()]);
            steps.push(vec![int(t), int(COMPLETED), date.clone()]);
            settled.push(vec![int(t), letters(r, 30), date.clone(), Datum::Int8(amount)]);
            cash.push(vec![int(t), date, Datum::Int8(amount), letters(r, 70)]);
        }
        fill(database, "trade", trades.into_iter()).await?;
        fill(database, "trade_history", steps.into_iter()).await?;
        fill(database, "settlement", settled.into_iter()).await?;
        fill(database, "cash_transaction", cash.into_iter()).await?;
        Ok(history)
    }

    async fn fill_customers(&self, database: &Database, history: &History, r: &mut ChaCha8Rng) -> Result<()> {
        let customers = 0..self.sizes.customers;
        fill(database, "customer", customers.clone().map(|c| vec![int(c), letters(r, 40), letters(r, 200)])).await?;
        let accounts = (0..self.accounts()).map(|a| {
            let balance = Datum::Int8(history.balances.get(&a).copied().unwrap_or(0));
            vec![int(a), int(a / ACCOUNTS), int(self.broker_of(a)), balance, letters(r, 40)]
        });
        fill(database, "account", accounts).await?;
        let brokers = (0..self.brokers()).map(|b| {
            let (trades, fees) = history.brokers.get(&b).copied().unwrap_or_default();
            vec![int(b), Datum::Int8(trades), Datum::Int8(fees), letters(r, 40)]
        });
        fill(database, "broker", brokers).await?;
        let (holdings, sums) = history.rows();
        fill(database, "holding", holdings.into_iter()).await?;
        fill(database, "holding_summary", sums.into_iter()).await?;
        let watched = customers.flat_map(|c| {
            let of: BTreeSet<u32> = (0..self.sizes.watched).map(|_| self.security(r)).collect();
            of.into_iter().map(move |s| vec![int(c), int(s)])
        });
        fill(database, "watch_item", watched).await
    }

    pub(super) fn broker_of(&self, account: u32) -> u32 {
        account % self.brokers()
    }
}
