//! The consistency conditions of clause 7.3.1 (brokers' trades, brokers' commissions, holdings), and that money and
//! history agree with trades.
use super::TpcE;
use super::schema::{COMPLETED, account, broker, holding, settlement, summary, trade};
use super::writes::money;
use crate::workload::{Client, named, number};
use std::collections::BTreeMap;
use terrace_engine::{Database, Datum, Result};

type Rows = Vec<Vec<Datum>>;

impl TpcE {
    pub(super) async fn conditions(&self, database: &Database) -> Result<Vec<String>> {
        let mut client = Client::begin(database);
        let mut tables: BTreeMap<&str, Rows> = BTreeMap::new();
        let names = ["trade", "trade_history", "settlement", "cash_transaction", "broker", "account"];
        for name in names.into_iter().chain(["holding", "holding_summary"]) {
            tables.insert(name, client.all(&named(database, name)).await?);
        }
        client.txn.commit().await?;
        let mut problems = Vec::new();
        judge_trades(&tables, &mut problems);
        judge_holdings(&tables, &mut problems);
        Ok(problems)
    }
}

fn judge_trades(tables: &BTreeMap<&str, Rows>, problems: &mut Vec<String>) {
    // Trades and commissions by broker, money by account, steps and amounts by trade.
    let mut brokers: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    let mut accounts: BTreeMap<i64, i64> = BTreeMap::new();
    let mut wanted: BTreeMap<i64, (i64, Option<i64>)> = BTreeMap::new();
    for row in &tables["trade"] {
        let done = number(row, trade::STATUS) == i64::from(COMPLETED);
        let fee = number(row, trade::COMMISSION);
        let (sell, quantity) = (number(row, trade::SELL) != 0, number(row, trade::QUANTITY));
        let amount = money(sell, quantity, number(row, trade::PRICE), fee);
        wanted.insert(number(row, 0), (1 + i64::from(done), done.then_some(amount)));
        if done {
            let of = brokers.entry(number(row, trade::BROKER)).or_default();
            *of = (of.0 + 1, of.1 + fee);
            *accounts.entry(number(row, trade::ACCOUNT)).or_default() += amount;
        }
    }
    let mut require = |holds: bool, what: String| {
        if !holds {
            problems.push(format!("TPC-E: {what}"));
        }
    };
    for row in &tables["broker"] {
        let found = (number(row, broker::TRADES), number(row, broker::COMMISSION));
        let of = brokers.get(&number(row, 0)).copied().unwrap_or_default();
        require(
            found == of,
            format!("broker {} has (trades, commission) {found:?}, its trades {of:?}", number(row, 0)),
        );
    }
    for row in &tables["account"] {
        let (id, balance) = (number(row, 0), number(row, account::BALANCE));
        let of = accounts.get(&id).copied().unwrap_or(0);
        require(balance == of, format!("account {id} has {balance}, its trades brought {of}"));
    }
    let mut steps: BTreeMap<i64, i64> = BTreeMap::new();
    for row in &tables["trade_history"] {
        *steps.entry(number(row, 0)).or_default() += 1;
    }
    let all: BTreeMap<i64, i64> = wanted.iter().map(|(trade, (steps, _))| (*trade, *steps)).collect();
    require(steps == all, "trades and their history differ".into());
    let done: BTreeMap<i64, i64> = wanted.iter().filter_map(|(trade, of)| of.1.map(|a| (*trade, a))).collect();
    for (name, column) in [("settlement", settlement::AMOUNT), ("cash_transaction", 2)] {
        let found: BTreeMap<i64, i64> = tables[name].iter().map(|row| (number(row, 0), number(row, column))).collect();
        require(found == done, format!("executed trades and {name} differ"));
    }
}

fn judge_holdings(tables: &BTreeMap<&str, Rows>, problems: &mut Vec<String>) {
    let key = |row: &[Datum]| (number(row, 0), number(row, 1));
    let mut held: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    for row in &tables["holding"] {
        *held.entry(key(row)).or_default() += number(row, holding::QUANTITY);
    }
    held.retain(|_, quantity| *quantity != 0);
    let sums = tables["holding_summary"].iter().map(|row| (key(row), number(row, summary::QUANTITY)));
    let sums: BTreeMap<(i64, i64), i64> = sums.filter(|(_, quantity)| *quantity != 0).collect();
    if held != sums {
        problems.push("TPC-E: holdings and their summary differ".into());
    }
}
