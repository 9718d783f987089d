//! The initial database (clause 4.3.3), from a seed of its own: every machine loads the same rows.
use super::random::{last_name, names};
use super::{DISTRICTS, TpcC, schema};
use crate::random::letters;
use crate::workload::{create, fill, int};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use terrace_engine::{Database, Datum, Result};

/// What each warehouse and each district has taken in to begin with, in cents (clause 4.3.3.1).
const WAREHOUSE_YTD: i64 = 30_000_000;
const LINE_COUNT: std::ops::RangeInclusive<u32> = 5..=15;

impl TpcC {
    /// 30% of the orders are still to be delivered.
    fn delivered(&self) -> u32 {
        self.customers * 7 / 10
    }

    pub(super) async fn fill(&self, database: &Database) -> Result<()> {
        create(database, schema::tables()).await?;
        let mut random = ChaCha8Rng::seed_from_u64(0x7470_6363);
        let items = 0..self.items;
        let r = &mut random;
        let item = items.map(|i| vec![int(i), letters(r, 20), int(r.random_range(100..=10_000)), letters(r, 38)]);
        fill(database, "item", item).await?;
        for w in 0..self.warehouses {
            self.fill_warehouse(database, w, &mut random).await?;
        }
        Ok(())
    }

    async fn fill_warehouse(&self, database: &Database, w: u32, r: &mut ChaCha8Rng) -> Result<()> {
        let tax = int(r.random_range(0..=2000));
        let warehouse = vec![int(w), letters(r, 8), tax, Datum::Int8(WAREHOUSE_YTD)];
        fill(database, "warehouse", std::iter::once(warehouse)).await?;
        let stock = (0..self.items).map(|i| {
            let quantity = int(r.random_range(10..=100));
            vec![int(w), int(i), quantity, Datum::Int8(0), int(0), int(0), letters(r, 250)]
        });
        fill(database, "stock", stock).await?;
        for d in 0..DISTRICTS {
            let ytd = Datum::Int8(WAREHOUSE_YTD / i64::from(DISTRICTS));
            let tax = int(r.random_range(0..=2000));
            let district = vec![int(w), int(d), letters(r, 8), tax, ytd, int(self.customers)];
            fill(database, "district", std::iter::once(district)).await?;
            self.fill_customers(database, (w, d), r).await?;
            self.fill_orders(database, (w, d), r).await?;
        }
        Ok(())
    }

    async fn fill_customers(&self, database: &Database, (w, d): (u32, u32), r: &mut ChaCha8Rng) -> Result<()> {
        let customers = (0..self.customers).map(|c| {
            let credit = if r.random_range(0..10) == 0 { "BC" } else { "GC" };
            vec![
                int(w),
                int(d),
                int(c),
                Datum::text(last_name(c % names(self.customers))),
                letters(r, 12),
                Datum::text(credit),
                int(r.random_range(0..=5000)),
                Datum::Int8(-1000),
                Datum::Int8(1000),
                int(1),
                int(0),
                letters(r, 300),
            ]
        });
        let customers: Vec<_> = customers.collect();
        fill(database, "customer", customers.into_iter()).await?;
        let history = (0..self.customers).map(|c| {
            let (date, amount) = (Datum::Int8(0), Datum::Int8(1000));
            vec![int(w), int(d), int(c), int(w), int(d), date, amount, letters(r, 18)]
        });
        fill(database, "history", history).await
    }

    async fn fill_orders(&self, database: &Database, (w, d): (u32, u32), r: &mut ChaCha8Rng) -> Result<()> {
        let mut customers: Vec<u32> = (0..self.customers).collect();
        customers.shuffle(r);
        let (mut orders, mut lines) = (Vec::new(), Vec::new());
        for (o, c) in (0..).zip(customers) {
            let delivered = o < self.delivered();
            let count = r.random_range(LINE_COUNT);
            let carrier = if delivered { r.random_range(1..=10) } else { 0 };
            orders.push(vec![int(w), int(d), int(o), int(c), Datum::Int8(0), int(carrier), int(count), int(1)]);
            for number in 0..count {
                let amount = if delivered { 0 } else { r.random_range(1..=999_999) };
                lines.push(vec![
                    int(w),
                    int(d),
                    int(o),
                    int(number),
                    int(r.random_range(0..self.items)),
                    int(w),
                    Datum::Int8(i64::from(delivered)),
                    int(5),
                    Datum::Int8(amount),
                    letters(r, 24),
                ]);
            }
        }
        fill(database, "orders", orders.into_iter()).await?;
        fill(database, "order_line", lines.into_iter()).await?;
        let waiting = self.delivered()..self.customers;
        fill(database, "new_order", waiting.map(|o| vec![int(w), int(d), int(o)])).await
    }
}
