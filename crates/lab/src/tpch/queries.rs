//! What each query reads.
//!
//! Of queries that a row store answers by scans and hash joins, the scans; of those that it answers by index, a range of orders by date or parts
//! of a kind and the rows that are looked up for them, which lie everywhere. The shares are those of the queries' predicates.
use super::load::SUPPLIES;
use super::schema::{self, line, orders};
use super::{TpcH, schema::BY_CUSTOMER, schema::BY_DATE, schema::BY_PART};
use crate::workload::{Client, int, named, number};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use terrace_engine::{Database, Datum, Isolation, Result, Scan, ScanDirection, Table};

/// A share of something, in tenths of a percent.
type Thousandths = u32;

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The whole table, in the order in which it lies.
    All(&'static str),
    /// Orders of a range of dates with their lines, and (`true`) their customers.
    Dated(Thousandths, bool),
    /// Lines of some parts with their orders, and (`true`) the orders' customers.
    OfParts(Thousandths, bool),
    /// Suppliers of some parts.
    Supplies(Thousandths),
    /// Orders of some customers.
    OfCustomers(Thousandths),
    /// Some orders, wherever they are, with their lines.
    Orders(Thousandths),
}

use Step::{All, Dated, OfCustomers, OfParts, Orders, Supplies};

/// Queries 1 to 22.
pub(super) const QUERIES: [&[Step]; 22] = [
    &[All("lineitem")],
    &[All("part"), Supplies(8)],
    &[All("customer"), All("orders"), Orders(15)],
    &[Dated(38, false)],
    &[All("customer"), All("orders"), All("lineitem")],
    &[All("lineitem")],
    &[All("supplier"), All("lineitem"), All("orders"), All("customer")],
    &[All("part"), OfParts(7, true)],
    &[All("part"), All("partsupp"), All("lineitem"), All("orders")],
    &[Dated(38, true)],
    &[All("partsupp"), All("supplier")],
    &[All("lineitem"), Orders(5)],
    &[All("customer"), All("orders")],
    &[All("lineitem"), All("part")],
    &[All("lineitem"), All("supplier")],
    &[All("partsupp"), All("part")],
    &[All("part"), OfParts(1, false)],
    &[All("lineitem"), All("orders"), Orders(1)],
    &[All("part"), OfParts(2, false)],
    &[All("part"), Supplies(11), OfParts(11, false)],
    &[All("supplier"), All("lineitem"), Orders(20)],
    &[All("customer"), OfCustomers(50)],
];

/// Rows after which their CPU is charged.
const CHARGE: u32 = 256;

/// A query under way.
struct Reading<'a> {
    tpch: &'a TpcH,
    database: &'a Database,
    client: Client,
    rows: u64,
    owed: u32,
}

impl TpcH {
    /// Runs query `number` (1 to 22); how many rows it read.
    pub(super) async fn query(&self, database: &Database, number: usize, random: &mut ChaCha8Rng) -> Result<u64> {
        let client = Client::begin_at(database, Isolation::RepeatableRead);
        let mut reading = Reading { tpch: self, database, client, rows: 0, owed: 0 };
        for step in QUERIES[number - 1] {
            reading.step(*step, random).await?;
        }
        reading.charge().await;
        reading.client.txn.commit().await?;
        Ok(reading.rows)
    }
}

impl Reading<'_> {
    async fn step(&mut self, step: Step, random: &mut ChaCha8Rng) -> Result<()> {
        let sizes = self.tpch.sizes;
        match step {
            All(table) => self.scan(table).await,
            Dated(share, customers) => {
                let days = (schema::DAYS * share).div_ceil(1000);
                let first = random.random_range(0..=schema::DAYS - days);
                let (from, to) = (Bound::Included(vec![int(first)]), Bound::Excluded(vec![int(first + days)]));
                let table = named(self.database, "orders");
                let all = self.client.between(&table, BY_DATE, from, to, ScanDirection::Forward, usize::MAX).await?;
                self.read(all.len()).await;
                for order in all {
                    self.lines(&order).await?;
                    if customers {
                        self.customer(&order).await?;
                    }
                }
                Ok(())
            }
            OfParts(share, customers) => {
                for part in some(sizes.parts(), share, random) {
                    self.of_part(part, customers).await?;
                }
                Ok(())
            }
            Supplies(share) => {
                for part in some(sizes.parts(), share, random) {
                    self.supplies(part).await?;
                }
                Ok(())
            }
            OfCustomers(share) => {
                let table = named(self.database, "orders");
                for customer in some(sizes.customers(), share, random) {
                    self.range(&table, BY_CUSTOMER, &[int(customer)]).await?;
                }
                Ok(())
            }
            Orders(share) => {
                let table = named(self.database, "orders");
                for order in some(sizes.orders, share, random) {
                    // A refresh may have deleted it.
                    if let Some(order) = self.client.find(&table, &[int(order)]).await? {
                        self.read(1).await;
                        self.lines(&order).await?;
                    }
                }
                Ok(())
            }
        }
    }

    async fn charge(&mut self) {
        let cpu: Duration = self.tpch.sizes.row_cpu * std::mem::take(&mut self.owed);
        self.database.env().cpu(cpu).await;
    }

    async fn read(&mut self, rows: usize) {
        self.rows += rows as u64;
        self.owed += u32::try_from(rows).expect("rows of a statement");
        if self.owed >= CHARGE {
            self.charge().await;
        }
    }

    async fn scan(&mut self, name: &str) -> Result<()> {
        let table = named(self.database, name);
        let mut scanner = self.client.txn.scan(&table, Scan::Full);
        loop {
            let batch = scanner.next_batch(CHARGE as usize).await?;
            if batch.is_empty() {
                return Ok(());
            }
            self.read(batch.len()).await;
        }
    }

    async fn range(&mut self, table: &Arc<Table>, index: usize, prefix: &[Datum]) -> Result<Vec<Vec<Datum>>> {
        let rows = self.client.range(table, index, prefix, ScanDirection::Forward, usize::MAX).await?;
        self.read(rows.len()).await;
        Ok(rows)
    }

    /// Invariant 1.
    async fn lines(&mut self, order: &[Datum]) -> Result<()> {
        let table = named(self.database, "lineitem");
        let lines = self.range(&table, 0, &order[..1]).await?;
        let total: i64 = lines.iter().map(|row| number(row, line::PRICE)).sum();
        if lines.len() as i64 != number(order, orders::LINES) || total != number(order, orders::TOTAL) {
            self.tpch.note_torn();
        }
        Ok(())
    }

    async fn customer(&mut self, order: &[Datum]) -> Result<()> {
        let table = named(self.database, "customer");
        self.client.get(&table, &order[orders::CUSTOMER..=orders::CUSTOMER]).await?;
        self.read(1).await;
        Ok(())
    }

    async fn of_part(&mut self, part: u32, customers: bool) -> Result<()> {
        let table = named(self.database, "lineitem");
        for row in self.range(&table, BY_PART, &[int(part)]).await? {
            let order = self.client.get(&named(self.database, "orders"), &row[line::ORDER..=line::ORDER]).await?;
            self.read(1).await;
            if customers {
                self.customer(&order).await?;
            }
        }
        Ok(())
    }

    async fn supplies(&mut self, part: u32) -> Result<()> {
        let of = self.range(&named(self.database, "partsupp"), 0, &[int(part)]).await?;
        assert_eq!(of.len(), SUPPLIES as usize, "nobody changes what supplies there are");
        for supply in of {
            self.client.get(&named(self.database, "supplier"), &supply[1..=1]).await?;
            self.read(1).await;
        }
        Ok(())
    }
}

/// A share of `0..n`, at least one, in no order.
fn some(n: u32, share: Thousandths, random: &mut ChaCha8Rng) -> Vec<u32> {
    let count = (u64::from(n) * u64::from(share)).div_ceil(1000);
    (0..count).map(|_| random.random_range(0..n)).collect()
}
