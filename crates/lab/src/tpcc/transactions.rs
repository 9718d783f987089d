//! The five transactions (clauses 2.4 to 2.8).
use super::random::{Input, Who};
use super::schema::{BY_CUSTOMER, BY_NAME, customer, district, line, orders, stock, warehouse};
use super::{DISTRICTS, TpcC};
use crate::workload::{Client, add, int, is_lost, named, number};
use std::collections::BTreeSet;
use std::ops::Bound;
use terrace_engine::{Database, Datum, Result, ScanDirection};

impl TpcC {
    /// Whether it is to be committed.
    pub(super) async fn execute(&self, database: &Database, client: &mut Client, input: &Input) -> Result<bool> {
        match input {
            Input::NewOrder { w, d, c, lines } => new_order(database, client, (*w, *d, *c), lines).await,
            Input::Payment { .. } => payment(database, client, input).await.map(|()| true),
            Input::OrderStatus { w, d, who } => order_status(database, client, (*w, *d), who).await.map(|()| true),
            Input::Delivery { w, first, carrier } => {
                delivery(database, client, (*w, *first), *carrier).await.map(|()| true)
            }
            Input::StockLevel { w, d, threshold } => {
                stock_level(database, client, (*w, *d), *threshold).await.map(|_| true)
            }
        }
    }
}

/// All is read before the district is locked, so that no other order of the district waits for a disk.
async fn new_order(
    database: &Database,
    client: &mut Client,
    (w, d, c): (u32, u32, u32),
    lines: &[(Option<u32>, u32, u32)],
) -> Result<bool> {
    client.get(&named(database, "warehouse"), &[int(w)]).await?;
    client.get(&named(database, "customer"), &[int(w), int(d), int(c)]).await?;
    let (items, stocks) = (named(database, "item"), named(database, "stock"));
    let mut found = Vec::with_capacity(lines.len());
    for (item, supply, _) in lines {
        let Some(item) = item else { return Ok(false) };
        let price = number(&client.get(&items, &[int(*item)]).await?, 2);
        found.push((price, *item, client.look(&stocks, &[int(*supply), int(*item)]).await?));
    }
    let districts = named(database, "district");
    let of = client.update(&districts, &[int(w), int(d)], |row| add(row, district::NEXT_ORDER, 1)).await?;
    let order = u32::try_from(number(&of, district::NEXT_ORDER) - 1).expect("orders count up from zero");
    let local = lines.iter().all(|(_, supply, _)| *supply == w);
    let entered = Datum::Int8(database.env().unix_micros());
    let count = u32::try_from(lines.len()).expect("at most 15 lines");
    let row = [int(w), int(d), int(order), int(c), entered, int(0), int(count), int(u32::from(local))];
    client.insert(&named(database, "orders"), &row).await?;
    client.insert(&named(database, "new_order"), &[int(w), int(d), int(order)]).await?;
    for ((at, (_, supply, quantity)), (price, item, stock)) in (0u32..).zip(lines).zip(found) {
        let (quantity, remote) = (i64::from(*quantity), i64::from(*supply != w));
        let take = move |row: &mut Vec<Datum>| {
            let left = number(row, stock::QUANTITY) - quantity;
            // Clause 2.4.2.2: it is refilled in time.
            add(row, stock::QUANTITY, if left >= 10 { -quantity } else { 91 - quantity });
            add(row, stock::YTD, quantity);
            add(row, stock::ORDERS, 1);
            add(row, stock::REMOTE, remote);
        };
        client.change(&stocks, stock, take).await?;
        let amount = Datum::Int8(quantity * price);
        let info = Datum::text(" ".repeat(24));
        let quantity = Datum::Int4(i32::try_from(quantity).expect("at most 10"));
        let row =
            [int(w), int(d), int(order), int(at), int(item), int(*supply), Datum::Int8(0), quantity, amount, info];
        client.insert(&named(database, "order_line"), &row).await?;
    }
    Ok(true)
}

/// The customer's id; of those with one last name the middle by first name (clause 2.5.2.2), if there is any.
async fn customer_of(database: &Database, client: &mut Client, (w, d): (u32, u32), who: &Who) -> Result<Option<Datum>> {
    let name = match who {
        Who::Id(id) => return Ok(Some(int(*id))),
        Who::LastName(name) => Datum::text(name.as_str()),
    };
    let table = named(database, "customer");
    let same = client.range(&table, BY_NAME, &[int(w), int(d), name], ScanDirection::Forward, usize::MAX).await?;
    Ok(same.get(same.len().div_ceil(2).saturating_sub(1)).map(|row| row[customer::ID].clone()))
}

/// The rows that all payments of a warehouse change come last, so that nobody waits for a disk while another has them.
async fn payment(database: &Database, client: &mut Client, input: &Input) -> Result<()> {
    let Input::Payment { w, d, c_w, c_d, who, amount } = input else { unreachable!("called for payments") };
    let amount = *amount;
    let Some(c) = customer_of(database, client, (*c_w, *c_d), who).await? else { return Ok(()) };
    let pay = |row: &mut Vec<Datum>| {
        add(row, customer::BALANCE, -amount);
        add(row, customer::YTD_PAYMENT, amount);
        add(row, customer::PAYMENTS, 1);
        if let (Datum::Text(credit), Datum::Text(data)) = (&row[customer::CREDIT], &row[customer::DATA])
            && &**credit == "BC"
        {
            // Clause 2.5.2.2: bad credit is written down before what there was.
            let mut noted = format!("{c_w} {c_d} {w} {d} {amount} | {data}");
            noted.truncate(data.len().max(200));
            row[customer::DATA] = Datum::text(noted);
        }
    };
    client.update(&named(database, "customer"), &[int(*c_w), int(*c_d), c.clone()], pay).await?;
    let date = Datum::Int8(database.env().unix_micros());
    let data = Datum::text(" ".repeat(18));
    let row = [int(*c_w), int(*c_d), c, int(*w), int(*d), date, Datum::Int8(amount), data];
    client.insert(&named(database, "history"), &row).await?;
    let ytd = move |column: usize| move |row: &mut Vec<Datum>| add(row, column, amount);
    client.update(&named(database, "district"), &[int(*w), int(*d)], ytd(district::YTD)).await?;
    client.update(&named(database, "warehouse"), &[int(*w)], ytd(warehouse::YTD)).await.map(drop)
}

async fn order_status(database: &Database, client: &mut Client, (w, d): (u32, u32), who: &Who) -> Result<()> {
    let Some(c) = customer_of(database, client, (w, d), who).await? else { return Ok(()) };
    client.get(&named(database, "customer"), &[int(w), int(d), c.clone()]).await?;
    let table = named(database, "orders");
    let newest = client.range(&table, BY_CUSTOMER, &[int(w), int(d), c], ScanDirection::Backward, 1).await?;
    if let Some(order) = newest.first() {
        let prefix = [int(w), int(d), order[orders::ID].clone()];
        client.range(&named(database, "order_line"), 0, &prefix, ScanDirection::Forward, usize::MAX).await?;
    }
    Ok(())
}

/// The oldest new order of each district, each in a transaction of its own (clause 2.7.2 allows that), from district
/// `first` on: so deliveries of a warehouse wait for each other less.
async fn delivery(database: &Database, client: &mut Client, (w, first): (u32, u32), carrier: u32) -> Result<()> {
    for d in (first..DISTRICTS).chain(0..first) {
        loop {
            match deliver(database, client, (w, d), carrier).await {
                Ok(()) => break client.go_on(database, true).await?,
                Err(e) if is_lost(&e) => client.go_on(database, false).await?,
                Err(e) => return Err(e),
            }
        }
    }
    Ok(())
}

async fn deliver(database: &Database, client: &mut Client, (w, d): (u32, u32), carrier: u32) -> Result<()> {
    let (new_orders, lines) = (named(database, "new_order"), named(database, "order_line"));
    let oldest = client.range(&new_orders, 0, &[int(w), int(d)], ScanDirection::Forward, 1).await?;
    let Some(oldest) = oldest.first() else { return Ok(()) };
    let key = [int(w), int(d), oldest[orders::ID].clone()];
    // Another delivery may have taken it meanwhile.
    if !client.delete(&new_orders, &key).await? {
        return Ok(());
    }
    let deliver = |row: &mut Vec<Datum>| row[orders::CARRIER] = int(carrier);
    let order = client.update(&named(database, "orders"), &key, deliver).await?;
    let now = Datum::Int8(database.env().unix_micros());
    let mut total = 0;
    for at in 0..u32::try_from(number(&order, orders::LINES)).expect("a number of lines") {
        let key = [key[0].clone(), key[1].clone(), key[2].clone(), int(at)];
        let stamp = |row: &mut Vec<Datum>| row[line::DELIVERED] = now.clone();
        total += number(&client.update(&lines, &key, stamp).await?, line::AMOUNT);
    }
    let receive = |row: &mut Vec<Datum>| {
        add(row, customer::BALANCE, total);
        add(row, customer::DELIVERIES, 1);
    };
    let key = [int(w), int(d), order[orders::CUSTOMER].clone()];
    client.update(&named(database, "customer"), &key, receive).await.map(drop)
}

/// How many items of the last 20 orders are short (clause 2.8.2).
async fn stock_level(database: &Database, client: &mut Client, (w, d): (u32, u32), threshold: i64) -> Result<usize> {
    let of = client.get(&named(database, "district"), &[int(w), int(d)]).await?;
    let next = u32::try_from(number(&of, district::NEXT_ORDER)).expect("orders count up from zero");
    let from = Bound::Included(vec![int(w), int(d), int(next.saturating_sub(20))]);
    let to = Bound::Excluded(vec![int(w), int(d), int(next)]);
    let table = named(database, "order_line");
    let lines = client.between(&table, 0, from, to, ScanDirection::Forward, usize::MAX).await?;
    let items: BTreeSet<i64> = lines.iter().map(|row| number(row, line::ITEM)).collect();
    let mut short = 0;
    for item in items {
        let item = u32::try_from(item).expect("items count up from zero");
        let row = client.get(&named(database, "stock"), &[int(w), int(item)]).await?;
        short += usize::from(number(&row, stock::QUANTITY) < threshold);
    }
    Ok(short)
}
