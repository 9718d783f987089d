//! Random values as clauses 2.1.6 and 4.3.2 have them.
use super::{DISTRICTS, Kind, TpcC};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// The run-time constants C of NURand; any do, the same for all terminals.
const C_CUSTOMER: u32 = 259;
const C_ITEM: u32 = 7911;
const C_LAST: u32 = 173;

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// A last name (clause 4.3.2.3).
pub(super) fn last_name(number: u32) -> String {
    [number / 100 % 10, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit as usize]).concat()
}

/// Names among so few customers.
pub(super) fn names(customers: u32) -> u32 {
    customers.div_ceil(3).min(1000)
}

/// Non-uniform over `0..n`. The specification's A for the full range (`of`), shrunk with the range: the smallest of 2^k - 1 that keeps A's share.
fn nurand(random: &mut ChaCha8Rng, a: u32, of: u32, c: u32, n: u32) -> u32 {
    let shrunk = (u64::from(a) * u64::from(n) / u64::from(of)).max(1) as u32;
    let a = (shrunk + 1).next_power_of_two() - 1;
    let or = random.random_range(0..=a) | random.random_range(0..n);
    (or + c % (a + 1)) % n
}

/// Who a payment or an order status is for (clauses 2.5.1.2 and 2.6.1.2).
#[derive(Clone, Debug)]
pub(super) enum Who {
    Id(u32),
    LastName(String),
}

/// What a terminal has typed in.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// Lines: item (`None`: an unused number), supplying warehouse, quantity.
    NewOrder {
        w: u32,
        d: u32,
        c: u32,
        lines: Vec<(Option<u32>, u32, u32)>,
    },
    Payment {
        w: u32,
        d: u32,
        c_w: u32,
        c_d: u32,
        who: Who,
        amount: i64,
        id: i64,
    },
    OrderStatus {
        w: u32,
        d: u32,
        who: Who,
    },
    Delivery {
        w: u32,
        carrier: u32,
    },
    StockLevel {
        w: u32,
        d: u32,
        threshold: i64,
    },
}

impl TpcC {
    fn customer(&self, random: &mut ChaCha8Rng) -> u32 {
        nurand(random, 1023, 3000, C_CUSTOMER, self.customers)
    }

    fn who(&self, random: &mut ChaCha8Rng) -> Who {
        match random.random_range(0..100) < 60 {
            true => Who::LastName(last_name(nurand(random, 255, 1000, C_LAST, names(self.customers)))),
            false => Who::Id(self.customer(random)),
        }
    }

    fn other_warehouse(&self, w: u32, random: &mut ChaCha8Rng) -> u32 {
        match self.warehouses {
            1 => w,
            n => (w + random.random_range(1..n)) % n,
        }
    }

    pub(super) fn input(&self, kind: Kind, w: u32, random: &mut ChaCha8Rng) -> Input {
        let d = random.random_range(0..DISTRICTS);
        match kind {
            Kind::NewOrder => {
                let wrong = random.random_range(0..100) == 0;
                let count = random.random_range(5..=15);
                let mut lines = Vec::with_capacity(count);
                for line in 0..count {
                    let item = nurand(random, 8191, 100_000, C_ITEM, self.items);
                    let supply = match random.random_range(0..100) == 0 {
                        true => self.other_warehouse(w, random),
                        false => w,
                    };
                    let quantity = random.random_range(1..=10);
                    lines.push(((!wrong || line + 1 < count).then_some(item), supply, quantity));
                }
                Input::NewOrder { w, d, c: self.customer(random), lines }
            }
            Kind::Payment => {
                let (c_w, c_d) = match random.random_range(0..100) < 85 {
                    true => (w, d),
                    false => (self.other_warehouse(w, random), random.random_range(0..DISTRICTS)),
                };
                let (amount, id) = (random.random_range(100..=500_000), random.random_range(0..i64::MAX));
                Input::Payment { w, d, c_w, c_d, who: self.who(random), amount, id }
            }
            Kind::OrderStatus => Input::OrderStatus { w, d, who: self.who(random) },
            Kind::Delivery => Input::Delivery { w, carrier: random.random_range(1..=10) },
            Kind::StockLevel => Input::StockLevel { w, d, threshold: random.random_range(10..=20) },
        }
    }
}
