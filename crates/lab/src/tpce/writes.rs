//! The four transactions that write (clauses 3.3.3, 3.3.7, 3.3.8 and 3.3.10).
use super::input::{About, Order};
use super::reads;
use super::schema::{COMPLETED, SUBMITTED, account, broker, holding, last_trade, settlement, summary, trade};
use crate::workload::{Client, add, int, named, number};
use terrace_engine::{Database, Datum, Result, ScanDirection};

/// A broker's share of a trade: one in a thousand.
pub(super) fn commission(quantity: i64, price: i64) -> i64 {
    quantity * price / 1000
}

/// What a trade brings into its account.
pub(super) fn money(sell: bool, quantity: i64, price: i64, fee: i64) -> i64 {
    if sell { quantity * price - fee } else { -quantity * price - fee }
}

fn now(database: &Database) -> Datum {
    Datum::Int8(database.env().unix_micros())
}

/// Whether the order stands.
pub(super) async fn trade_order(database: &Database, client: &mut Client, order: &Order) -> Result<bool> {
    let of = client.get(&named(database, "account"), &[int(order.account)]).await?;
    client.get(&named(database, "customer"), &of[account::CUSTOMER..=account::CUSTOMER]).await?;
    client.get(&named(database, "broker"), &of[account::BROKER..=account::BROKER]).await?;
    client.get(&named(database, "security"), &[int(order.security)]).await?;
    let last = client.get(&named(database, "last_trade"), &[int(order.security)]).await?;
    client.find(&named(database, "holding_summary"), &[int(order.account), int(order.security)]).await?;
    let price = last[last_trade::PRICE].clone();
    let fee = Datum::Int8(commission(i64::from(order.quantity), number(&last, last_trade::PRICE)));
    let executor = Datum::text(" ".repeat(30));
    let (t, date) = (int(order.trade), now(database));
    let row = [
        t.clone(),
        date.clone(),
        int(SUBMITTED),
        int(order.sell.into()),
        int(order.security),
        int(order.quantity),
        int(order.account),
        executor,
        price,
        fee,
        of[account::BROKER].clone(),
    ];
    client.insert(&named(database, "trade"), &row).await?;
    client.insert(&named(database, "trade_history"), &[t, int(SUBMITTED), date]).await?;
    Ok(!order.taken_back)
}

pub(super) async fn trade_result(database: &Database, client: &mut Client, id: u32, price: i64) -> Result<()> {
    let trades = named(database, "trade");
    let row = client.get(&trades, &[int(id)]).await?;
    let (quantity, sell) = (number(&row, trade::QUANTITY), number(&row, trade::SELL) != 0);
    let fee = commission(quantity, price);
    let amount = money(sell, quantity, price, fee);
    let of = &row[trade::ACCOUNT..=trade::ACCOUNT];
    let accounts = named(database, "account");
    client.update(&accounts, of, |row| add(row, account::BALANCE, amount)).await?;
    change_holdings(database, client, &row, if sell { -quantity } else { quantity }, price).await?;
    let date = now(database);
    let complete = |row: &mut Vec<Datum>| {
        row[trade::STATUS] = int(COMPLETED);
        row[trade::DATE] = date.clone();
        row[trade::PRICE] = Datum::Int8(price);
        row[trade::COMMISSION] = Datum::Int8(fee);
    };
    client.update(&trades, &[int(id)], complete).await?;
    client.insert(&named(database, "trade_history"), &[int(id), int(COMPLETED), date.clone()]).await?;
    let kind = Datum::text(" ".repeat(30));
    client.insert(&named(database, "settlement"), &[int(id), kind, date.clone(), Datum::Int8(amount)]).await?;
    let name = Datum::text(" ".repeat(70));
    client.insert(&named(database, "cash_transaction"), &[int(id), date, Datum::Int8(amount), name]).await?;
    let earn = |row: &mut Vec<Datum>| {
        add(row, broker::TRADES, 1);
        add(row, broker::COMMISSION, fee);
    };
    client.update(&named(database, "broker"), &row[trade::BROKER..=trade::BROKER], earn).await.map(drop)
}

/// What is sold comes from the oldest holdings; what is not there is owed, as a holding below zero. The account is
/// locked (invariant 2).
async fn change_holdings(
    database: &Database,
    client: &mut Client,
    row: &[Datum],
    change: i64,
    price: i64,
) -> Result<()> {
    let key = [row[trade::ACCOUNT].clone(), row[trade::SECURITY].clone()];
    let sums = named(database, "holding_summary");
    if client.find(&sums, &key).await?.is_some() {
        client.update(&sums, &key, |row| add(row, summary::QUANTITY, change)).await?;
    } else {
        client.insert(&sums, &[key[0].clone(), key[1].clone(), Datum::Int8(change)]).await?;
    }
    let holdings = named(database, "holding");
    let mut left = change;
    if change < 0 {
        for old in client.range(&holdings, 0, &key, ScanDirection::Forward, usize::MAX).await? {
            let held = number(&old, holding::QUANTITY);
            if held <= 0 || left == 0 {
                continue;
            }
            if held + left > 0 {
                client.update(&holdings, &old[..=holding::TRADE], |row| add(row, holding::QUANTITY, left)).await?;
                left = 0;
            } else {
                client.delete(&holdings, &old[..=holding::TRADE]).await?;
                left += held;
            }
        }
    }
    if left != 0 {
        let [a, s] = key;
        client.insert(&holdings, &[a, s, row[0].clone(), Datum::Int8(price), Datum::Int8(left)]).await?;
    }
    Ok(())
}

pub(super) async fn trade_update(database: &Database, client: &mut Client, about: &About) -> Result<()> {
    let mut found = reads::trade_lookup(database, client, about).await?;
    // In order, so that updates do not lock each other out.
    found.sort_unstable_by_key(|row| number(row, 0));
    found.dedup_by_key(|row| number(row, 0));
    for row in found.into_iter().filter(|row| row[trade::STATUS] == int(COMPLETED)) {
        match about {
            About::Trades(_) => {
                let executor = Datum::text(format!("{:30}", "X"));
                let set = |row: &mut Vec<Datum>| row[trade::EXECUTOR] = executor.clone();
                client.update(&named(database, "trade"), &row[..1], set).await?;
            }
            _ => {
                let kind = Datum::text(format!("{:30}", "Cash Account"));
                let set = |row: &mut Vec<Datum>| row[settlement::KIND] = kind.clone();
                client.update(&named(database, "settlement"), &row[..1], set).await?;
            }
        }
    }
    Ok(())
}

pub(super) async fn market_feed(database: &Database, client: &mut Client, prices: &[(u32, i64)]) -> Result<()> {
    let table = named(database, "last_trade");
    let date = now(database);
    for (security, price) in prices {
        let set = |row: &mut Vec<Datum>| {
            row[last_trade::PRICE] = Datum::Int8(*price);
            row[last_trade::DATE] = date.clone();
            add(row, last_trade::VOLUME, 100);
        };
        client.update(&table, &[int(*security)], set).await?;
    }
    Ok(())
}
