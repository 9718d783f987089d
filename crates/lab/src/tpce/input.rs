//! What a transaction is about.
use super::{ACCOUNTS, Kind, LOOKED_UP, TpcE};
use crate::random::nurand;
use rand::RngExt;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use std::ops::RangeInclusive;

/// The run's constants C of NURand.
const C_CUSTOMER: u32 = 151;
const C_TRADE: u32 = 4099;
const C_SECURITY: u32 = 31;

/// Brokers that a broker volume is about (clause 3.3.1).
const VOLUMES: RangeInclusive<u32> = 20..=40;

#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) trade: u32,
    pub(super) account: u32,
    pub(super) security: u32,
    pub(super) sell: bool,
    pub(super) quantity: u32,
    pub(super) taken_back: bool,
}

/// Which trades are looked up, and from which on.
#[derive(Clone, Debug)]
pub(super) enum About {
    Trades(Vec<u32>),
    Account(u32, u32),
    Security(u32, u32),
}

#[derive(Clone, Debug)]
pub(super) enum Input {
    BrokerVolume { brokers: Vec<u32> },
    CustomerPosition { customer: u32, history: bool },
    MarketFeed(Vec<(u32, i64)>),
    MarketWatch { customer: u32, day: u32 },
    SecurityDetail { security: u32, day: u32 },
    TradeLookup(About),
    TradeOrder(Order),
    TradeResult { trade: u32, price: i64 },
    TradeStatus { account: u32 },
    TradeUpdate(About),
}

impl TpcE {
    pub(super) fn customer(&self, random: &mut ChaCha8Rng) -> u32 {
        nurand(random, 1023, C_CUSTOMER, self.sizes.customers)
    }

    pub(super) fn account(&self, random: &mut ChaCha8Rng) -> u32 {
        self.customer(random) * ACCOUNTS + random.random_range(0..ACCOUNTS)
    }

    pub(super) fn security(&self, random: &mut ChaCha8Rng) -> u32 {
        nurand(random, 1023, C_SECURITY, self.securities())
    }

    pub(super) fn price(random: &mut ChaCha8Rng) -> i64 {
        random.random_range(2000..=3000)
    }

    /// One of the trades that there were to begin with.
    fn trade(&self, random: &mut ChaCha8Rng) -> u32 {
        let n = self.initial_trades();
        nurand(random, 65_535, C_TRADE, n)
    }

    fn about(&self, random: &mut ChaCha8Rng) -> About {
        match random.random_range(0..3) {
            0 => About::Trades((0..LOOKED_UP).map(|_| self.trade(random)).collect()),
            1 => About::Account(self.account(random), self.trade(random)),
            _ => About::Security(self.security(random), self.trade(random)),
        }
    }

    pub(super) fn input(&self, kind: Kind, random: &mut ChaCha8Rng) -> Input {
        let day = random.random_range(0..self.sizes.days);
        match kind {
            Kind::BrokerVolume => {
                let count = random.random_range(VOLUMES).min(self.brokers()) as usize;
                let some = sample(random, self.brokers() as usize, count);
                Input::BrokerVolume { brokers: some.into_iter().map(|broker| broker as u32).collect() }
            }
            Kind::CustomerPosition => {
                Input::CustomerPosition { customer: self.customer(random), history: random.random_bool(0.5) }
            }
            Kind::MarketFeed => {
                // In order, so that feeds do not lock each other out.
                let mut prices: Vec<_> = (0..LOOKED_UP).map(|_| (self.security(random), TpcE::price(random))).collect();
                prices.sort_unstable();
                Input::MarketFeed(prices)
            }
            Kind::MarketWatch => Input::MarketWatch { customer: self.customer(random), day },
            Kind::SecurityDetail => Input::SecurityDetail { security: self.security(random), day },
            Kind::TradeLookup => Input::TradeLookup(self.about(random)),
            Kind::TradeUpdate => Input::TradeUpdate(self.about(random)),
            Kind::TradeStatus => Input::TradeStatus { account: self.account(random) },
            Kind::TradeOrder => Input::TradeOrder(self.order(random)),
            Kind::TradeResult => match self.take_order() {
                Some(trade) => Input::TradeResult { trade, price: TpcE::price(random) },
                None => Input::TradeOrder(self.order(random)),
            },
        }
    }

    fn order(&self, random: &mut ChaCha8Rng) -> Order {
        Order {
            trade: self.new_trade(),
            account: self.account(random),
            security: self.security(random),
            sell: random.random_bool(0.5),
            quantity: [100, 200, 400, 800][random.random_range(0..4)],
            taken_back: random.random_range(0..100) == 0,
        }
    }
}
