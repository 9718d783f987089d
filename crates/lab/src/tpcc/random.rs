//! Random values as clauses 2.1.6 and 4.3.2 have them.
use super::{DISTRICTS, Kind, TpcC};
use crate::random::nurand;
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
        nurand(random, 1023, C_CUSTOMER, self.customers)
    }

    fn who(&self, random: &mut ChaCha8Rng) -> Who {
        match random.random_range(0..100) < 60 {
            true => Who::LastName(last_name(nurand(random, 255, C_LAST, names(self.customers)))),
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
                    let item = nurand(random, 8191, C_ITEM, self.items);
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

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// Of the specification's stock (26 rows to a page) three quarters of the accesses go to a fifth of the pages (Leutenegger & Dias 1993);
    /// of a shrunk one more than half.
    #[test]
    fn some_pages_are_hot_however_few_rows() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut share = |n: u32| {
            let mut pages = vec![0u32; n as usize / 26 + 1];
            (0..200_000).for_each(|_| pages[nurand(&mut random, 8191, C_ITEM, n) as usize / 26] += 1);
            pages.sort_unstable();
            let hottest = pages.len() / 5;
            f64::from(pages.iter().rev().take(hottest).sum::<u32>()) / 200_000.0
        };
        let (whole, shrunk) = (share(100_000), share(1800));
        assert!((0.70..0.80).contains(&whole), "{whole}");
        assert!((0.50..0.80).contains(&shrunk), "{shrunk}");
    }
}
