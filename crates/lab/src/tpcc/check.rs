//! The consistency conditions of clause 3.3.2 (1 to 10 and 12, as far as the columns kept go).
use super::schema::{customer, district, line, orders, warehouse};
use super::{DISTRICTS, TpcC};
use crate::workload::{Client, named, number};
use std::collections::BTreeMap;
use terrace_engine::{Database, Datum, Result};

type District = (i64, i64);

/// Sums and extremes of one district's rows.
#[derive(Default)]
struct Totals {
    ytd: i64,
    next_order: i64,
    newest_order: Option<i64>,
    orders: i64,
    lines_promised: i64,
    lines: i64,
    new_orders: Vec<i64>,
    undelivered: Vec<i64>,
    paid: i64,
    /// Of customers.
    balance_and_paid: i64,
    delivered_amount: i64,
    /// Lines whose delivery differs from their order's, by order.
    delivered_lines: BTreeMap<i64, (i64, i64)>,
}

fn key(row: &[Datum]) -> District {
    (number(row, 0), number(row, 1))
}

impl TpcC {
    pub(super) async fn conditions(&self, database: &Database) -> Result<Vec<String>> {
        let mut client = Client::begin(database);
        let mut districts: BTreeMap<District, Totals> = BTreeMap::new();
        let mut warehouses: BTreeMap<i64, i64> = BTreeMap::new();
        let each = |row: Vec<Datum>| {
            warehouses.insert(number(&row, 0), number(&row, warehouse::YTD));
        };
        client.each(&named(database, "warehouse"), each).await?;
        let each = |row: Vec<Datum>| {
            let of = districts.entry(key(&row)).or_default();
            (of.ytd, of.next_order) = (number(&row, district::YTD), number(&row, district::NEXT_ORDER));
        };
        client.each(&named(database, "district"), each).await?;
        let each = |row: Vec<Datum>| {
            let of = districts.entry(key(&row)).or_default();
            let id = number(&row, orders::ID);
            of.newest_order = of.newest_order.max(Some(id));
            of.orders += 1;
            of.lines_promised += number(&row, orders::LINES);
            if number(&row, orders::CARRIER) == 0 {
                of.undelivered.push(id);
            }
        };
        client.each(&named(database, "orders"), each).await?;
        let each = |row: Vec<Datum>| {
            districts.entry(key(&row)).or_default().new_orders.push(number(&row, orders::ID));
        };
        client.each(&named(database, "new_order"), each).await?;
        let each = |row: Vec<Datum>| {
            let of = districts.entry(key(&row)).or_default();
            of.lines += 1;
            let delivered = number(&row, line::DELIVERED) != 0;
            let counts = of.delivered_lines.entry(number(&row, 2)).or_default();
            match delivered {
                true => counts.0 += 1,
                false => counts.1 += 1,
            }
            of.delivered_amount += if delivered { number(&row, line::AMOUNT) } else { 0 };
        };
        client.each(&named(database, "order_line"), each).await?;
        let each = |row: Vec<Datum>| {
            let of = districts.entry(key(&row)).or_default();
            of.balance_and_paid += number(&row, customer::BALANCE) + number(&row, customer::YTD_PAYMENT);
        };
        client.each(&named(database, "customer"), each).await?;
        let each = |row: Vec<Datum>| {
            // By the district that was paid in.
            districts.entry((number(&row, 3), number(&row, 4))).or_default().paid += number(&row, 6);
        };
        client.each(&named(database, "history"), each).await?;
        client.txn.commit().await?;
        Ok(self.judge(&warehouses, districts))
    }

    fn judge(&self, warehouses: &BTreeMap<i64, i64>, districts: BTreeMap<District, Totals>) -> Vec<String> {
        let mut problems = Vec::new();
        let mut require = |holds: bool, condition: u32, what: String| {
            if !holds {
                problems.push(format!("TPC-C condition {condition}: {what}"));
            }
        };
        require(districts.len() == (self.warehouses * DISTRICTS) as usize, 1, format!("{} districts", districts.len()));
        for (w, ytd) in warehouses {
            let of: i64 = districts.range((*w, 0)..(*w + 1, 0)).map(|(_, totals)| totals.ytd).sum();
            require(*ytd == of, 1, format!("warehouse {w} has taken {ytd}, its districts {of}"));
        }
        // What customers paid before the run is history's, but not the districts'.
        let opening = i64::from(self.customers) * 1000 - 3_000_000;
        for (at, mut of) in districts {
            let newest = of.newest_order.unwrap_or(-1);
            require(of.next_order - 1 == newest, 2, format!("{at:?}: next order {}, newest {newest}", of.next_order));
            of.new_orders.sort_unstable();
            of.undelivered.sort_unstable();
            let dense = of.new_orders.windows(2).all(|pair| pair[1] == pair[0] + 1);
            require(dense, 3, format!("{at:?}: new orders have gaps: {:?}", of.new_orders));
            require(of.lines_promised == of.lines, 4, format!("{at:?}: {} lines of {}", of.lines, of.lines_promised));
            require(of.new_orders == of.undelivered, 5, format!("{at:?}: new orders and undelivered ones differ"));
            let whole = of.delivered_lines.values().all(|(yes, no)| *yes == 0 || *no == 0);
            require(whole, 7, format!("{at:?}: an order is delivered in part"));
            require(of.delivered_lines.len() as i64 == of.orders, 6, format!("{at:?}: orders without lines"));
            require(of.ytd == of.paid - opening, 9, format!("{at:?}: taken {}, in history {}", of.ytd, of.paid));
            let (sum, delivered) = (of.balance_and_paid, of.delivered_amount);
            require(sum == delivered, 12, format!("{at:?}: balance + paid {sum}, delivered {delivered}"));
        }
        problems
    }
}
