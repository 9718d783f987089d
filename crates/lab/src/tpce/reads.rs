//! The six transactions that only read (clauses 3.3.1, 3.3.2, 3.3.4 to 3.3.6 and 3.3.9), and the lookup that updates
//! begin with.
use super::LOOKED_UP;
use super::input::About;
use super::schema::{BY_ACCOUNT, BY_CUSTOMER, BY_SECURITY, account, security, summary, trade};
use crate::workload::{Client, int, named};
use std::ops::Bound;
use terrace_engine::{Database, Datum, Result, ScanDirection};

/// Trades that a trade status shows.
const STATUS: usize = 50;
/// Trades that a customer position goes back.
const POSITION: usize = 10;
/// Days of history in a security's detail.
const DETAIL: usize = 20;

pub(super) async fn broker_volume(database: &Database, client: &mut Client, brokers: &[u32]) -> Result<()> {
    let table = named(database, "broker");
    for broker in brokers {
        client.get(&table, &[int(*broker)]).await?;
    }
    Ok(())
}

pub(super) async fn customer_position(
    database: &Database,
    client: &mut Client,
    customer: u32,
    history: bool,
) -> Result<()> {
    client.get(&named(database, "customer"), &[int(customer)]).await?;
    let accounts = named(database, "account");
    let (forward, all) = (ScanDirection::Forward, usize::MAX);
    let accounts = client.range(&accounts, BY_CUSTOMER, &[int(customer)], forward, all).await?;
    let (held, prices) = (named(database, "holding_summary"), named(database, "last_trade"));
    for account in &accounts {
        for of in client.range(&held, 0, &account[..1], forward, all).await? {
            client.get(&prices, &of[summary::SECURITY..=summary::SECURITY]).await?;
        }
    }
    if let Some(first) = accounts.first().filter(|_| history) {
        let trades = named(database, "trade");
        let newest = client.range(&trades, BY_ACCOUNT, &first[..1], ScanDirection::Backward, POSITION).await?;
        for trade in newest {
            client.range(&named(database, "trade_history"), 0, &trade[..1], forward, all).await?;
        }
    }
    Ok(())
}

pub(super) async fn market_watch(database: &Database, client: &mut Client, customer: u32, day: u32) -> Result<()> {
    let watched = named(database, "watch_item");
    let items = client.range(&watched, 0, &[int(customer)], ScanDirection::Forward, usize::MAX).await?;
    for item in items {
        let security = item[1].clone();
        client.get(&named(database, "last_trade"), std::slice::from_ref(&security)).await?;
        client.get(&named(database, "daily_market"), &[security, int(day)]).await?;
    }
    Ok(())
}

pub(super) async fn security_detail(database: &Database, client: &mut Client, of: u32, day: u32) -> Result<()> {
    let row = client.get(&named(database, "security"), &[int(of)]).await?;
    client.get(&named(database, "company"), &row[security::COMPANY..=security::COMPANY]).await?;
    client.get(&named(database, "last_trade"), &[int(of)]).await?;
    let (from, to) = (Bound::Included(vec![int(of), int(day)]), Bound::Included(vec![int(of)]));
    client.between(&named(database, "daily_market"), 0, from, to, ScanDirection::Forward, DETAIL).await.map(drop)
}

pub(super) async fn trade_status(database: &Database, client: &mut Client, of: u32) -> Result<()> {
    let trades = named(database, "trade");
    client.range(&trades, BY_ACCOUNT, &[int(of)], ScanDirection::Backward, STATUS).await?;
    let row = client.get(&named(database, "account"), &[int(of)]).await?;
    client.get(&named(database, "customer"), &row[account::CUSTOMER..=account::CUSTOMER]).await?;
    client.get(&named(database, "broker"), &row[account::BROKER..=account::BROKER]).await.map(drop)
}

/// The trades, with what they came to: settlement, cash, history.
pub(super) async fn trade_lookup(database: &Database, client: &mut Client, about: &About) -> Result<Vec<Vec<Datum>>> {
    let trades = named(database, "trade");
    let found = match about {
        About::Trades(ids) => {
            let mut found = Vec::with_capacity(ids.len());
            for id in ids {
                found.push(client.get(&trades, &[int(*id)]).await?);
            }
            found
        }
        About::Account(of, from) | About::Security(of, from) => {
            let index = if matches!(about, About::Account(..)) { BY_ACCOUNT } else { BY_SECURITY };
            let (from, to) = (Bound::Included(vec![int(*of), int(*from)]), Bound::Included(vec![int(*of)]));
            client.between(&trades, index, from, to, ScanDirection::Forward, LOOKED_UP).await?
        }
    };
    for row in &found {
        let key = &row[..1];
        let done = row[trade::STATUS] == int(super::schema::COMPLETED);
        if done {
            client.get(&named(database, "settlement"), key).await?;
            client.get(&named(database, "cash_transaction"), key).await?;
        }
        client.range(&named(database, "trade_history"), 0, key, ScanDirection::Forward, usize::MAX).await?;
    }
    Ok(found)
}
