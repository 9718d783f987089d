//! The initial database, from a seed of its own: every machine loads the same rows, in the order of their keys.
use super::{TpcH, schema};
use crate::random::letters;
use crate::workload::{create, fill, int};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use terrace_engine::{Database, Datum, Result};

/// Suppliers of a part.
pub(super) const SUPPLIES: u32 = 4;

impl TpcH {
    pub(super) async fn fill(&self, database: &Database) -> Result<()> {
        create(database, schema::tables()).await?;
        let r = &mut ChaCha8Rng::seed_from_u64(0x7470_6368);
        let sizes = self.sizes;
        let named = |n: u32, r: &mut ChaCha8Rng, bytes: usize| vec![int(n), int(n % 25), letters(r, bytes)];
        fill(database, "supplier", (0..sizes.suppliers()).map(|s| named(s, r, 120))).await?;
        fill(database, "part", (0..sizes.parts()).map(|p| named(p, r, 110))).await?;
        fill(database, "customer", (0..sizes.customers()).map(|c| named(c, r, 140))).await?;
        let supplies = (0..sizes.parts()).flat_map(|p| (0..SUPPLIES).map(move |i| (p, i)));
        let supplies = supplies.map(|(p, i)| {
            let s = (p + i * (sizes.suppliers() / SUPPLIES)) % sizes.suppliers();
            vec![int(p), int(s), int(r.random_range(1..10_000)), letters(r, 120)]
        });
        fill(database, "partsupp", supplies).await?;
        let (mut orders, mut lines) = (Vec::new(), Vec::new());
        for o in 0..sizes.orders {
            let (order, of) = self.order(o, r);
            orders.push(order);
            lines.extend(of);
        }
        fill(database, "orders", orders.into_iter()).await?;
        fill(database, "lineitem", lines.into_iter()).await
    }

    /// An order and its lines, one to seven (clause 4.2.3).
    pub(super) fn order(&self, o: u32, r: &mut ChaCha8Rng) -> (Vec<Datum>, Vec<Vec<Datum>>) {
        let date = r.random_range(0..schema::DAYS);
        let count = r.random_range(1..=7);
        let mut total = 0;
        let lines = (0..count).map(|n| {
            let p = r.random_range(0..self.sizes.parts());
            let s = r.random_range(0..self.sizes.suppliers());
            let (ship, quantity) = (date + r.random_range(1..=121), r.random_range(1..=50));
            let price = i64::from(quantity) * r.random_range(90_000..200_000);
            total += price;
            vec![int(o), int(n), int(p), int(s), int(ship), int(quantity), Datum::Int8(price), letters(r, 50)]
        });
        let lines: Vec<_> = lines.collect();
        let customer = int(r.random_range(0..self.sizes.customers()));
        (vec![int(o), customer, int(date), Datum::Int8(total), int(count), letters(r, 70)], lines)
    }
}
