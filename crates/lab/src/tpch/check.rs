//! What must hold after a run: orders and lines agree, refreshes did what they say, queries saw nothing half-done.
use super::TpcH;
use super::schema::{line, orders};
use crate::workload::{Client, named, number};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use terrace_engine::{Database, Result};

impl TpcH {
    pub(super) async fn conditions(&self, database: &Database) -> Result<Vec<String>> {
        let mut client = Client::begin(database);
        let all = client.all(&named(database, "orders")).await?;
        let lines = client.all(&named(database, "lineitem")).await?;
        client.txn.commit().await?;
        // Lines and prices by order.
        let mut found: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for row in &lines {
            let of = found.entry(number(row, line::ORDER)).or_default();
            *of = (of.0 + 1, of.1 + number(row, line::PRICE));
        }
        let promised = all.iter().map(|row| (number(row, 0), (number(row, orders::LINES), number(row, orders::TOTAL))));
        let promised: BTreeMap<i64, (i64, i64)> = promised.collect();
        let mut problems = Vec::new();
        if promised != found {
            let differ = promised.iter().find(|(order, of)| found.get(order) != Some(of));
            problems.push(format!("TPC-H: orders and lines differ, first {differ:?}"));
        }
        let wanted = self.sizes.orders as usize;
        if all.len() != wanted {
            problems.push(format!("TPC-H: {} orders of {wanted} after whole refreshes", all.len()));
        }
        let refreshed = self.refreshes.load(Ordering::Relaxed) * self.sizes.refreshed();
        let newest = promised.last_key_value().map_or(0, |(order, _)| *order);
        if newest + 1 != i64::from(self.sizes.orders + refreshed) {
            problems.push(format!("TPC-H: the newest order is {newest} after {refreshed} were inserted"));
        }
        let torn = self.torn.load(Ordering::Relaxed);
        if torn > 0 {
            problems.push(format!("TPC-H: queries saw {torn} orders with other lines than they have"));
        }
        Ok(problems)
    }
}
