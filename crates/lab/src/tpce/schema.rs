//! The tables, and the positions of the columns that transactions touch.
use crate::workload::table;
use terrace_engine::{DataType, TableSpec};

pub(super) mod account {
    pub(crate) const CUSTOMER: usize = 1;
    pub(crate) const BROKER: usize = 2;
    pub(crate) const BALANCE: usize = 3;
}
pub(super) mod broker {
    pub(crate) const TRADES: usize = 1;
    pub(crate) const COMMISSION: usize = 2;
}
pub(super) mod security {
    pub(crate) const COMPANY: usize = 1;
}
pub(super) mod last_trade {
    pub(crate) const PRICE: usize = 1;
    pub(crate) const VOLUME: usize = 3;
    pub(crate) const DATE: usize = 4;
}
pub(super) mod trade {
    pub(crate) const DATE: usize = 1;
    pub(crate) const STATUS: usize = 2;
    pub(crate) const SELL: usize = 3;
    pub(crate) const SECURITY: usize = 4;
    pub(crate) const QUANTITY: usize = 5;
    pub(crate) const ACCOUNT: usize = 6;
    pub(crate) const EXECUTOR: usize = 7;
    pub(crate) const PRICE: usize = 8;
    pub(crate) const COMMISSION: usize = 9;
    pub(crate) const BROKER: usize = 10;
}
pub(super) mod settlement {
    pub(crate) const KIND: usize = 1;
    pub(crate) const AMOUNT: usize = 3;
}
pub(super) mod holding {
    pub(crate) const TRADE: usize = 2;
    pub(crate) const QUANTITY: usize = 4;
}
pub(super) mod summary {
    pub(crate) const SECURITY: usize = 1;
    pub(crate) const QUANTITY: usize = 2;
}

/// States of a trade.
pub(super) const SUBMITTED: u32 = 0;
pub(super) const COMPLETED: u32 = 1;

/// The indexes of trades by account and by security, and of accounts by customer.
pub(super) const BY_ACCOUNT: usize = 1;
pub(super) const BY_SECURITY: usize = 2;
pub(super) const BY_CUSTOMER: usize = 1;

pub(super) fn tables() -> Vec<TableSpec> {
    let (i, n, t) = (DataType::Int4, DataType::Int8, DataType::Text);
    vec![
        table("customer", &[("c", i), ("name", t), ("contact", t)], &[(&["c"], true)]),
        table(
            "account",
            &[("a", i), ("c", i), ("b", i), ("balance", n), ("name", t)],
            &[(&["a"], true), (&["c", "a"], true)],
        ),
        table("broker", &[("b", i), ("trades", n), ("commission", n), ("name", t)], &[(&["b"], true)]),
        table("company", &[("co", i), ("name", t), ("description", t)], &[(&["co"], true)]),
        table("security", &[("s", i), ("co", i), ("name", t), ("symbol", t)], &[(&["s"], true)]),
        table("last_trade", &[("s", i), ("price", n), ("open", n), ("volume", n), ("date", n)], &[(&["s"], true)]),
        table(
            "daily_market",
            &[("s", i), ("day", i), ("close", n), ("high", n), ("low", n), ("volume", n)],
            &[(&["s", "day"], true)],
        ),
        table("watch_item", &[("c", i), ("s", i)], &[(&["c", "s"], true)]),
        table(
            "trade",
            &[
                ("t", i),
                ("date", n),
                ("status", i),
                ("sell", i),
                ("s", i),
                ("quantity", i),
                ("a", i),
                ("executor", t),
                ("price", n),
                ("commission", n),
                ("b", i),
            ],
            &[(&["t"], true), (&["a", "t"], true), (&["s", "t"], true)],
        ),
        table("trade_history", &[("t", i), ("status", i), ("date", n)], &[(&["t", "status"], true)]),
        table("settlement", &[("t", i), ("kind", t), ("due", n), ("amount", n)], &[(&["t"], true)]),
        table("cash_transaction", &[("t", i), ("date", n), ("amount", n), ("name", t)], &[(&["t"], true)]),
        table("holding", &[("a", i), ("s", i), ("t", i), ("price", n), ("quantity", n)], &[(&["a", "s", "t"], true)]),
        table("holding_summary", &[("a", i), ("s", i), ("quantity", n)], &[(&["a", "s"], true)]),
    ]
}
