//! The nine tables (clause 1.3), and the positions of the columns that transactions touch.
use crate::workload::table;
use terrace_engine::{DataType, TableSpec};

pub(super) mod warehouse {
    pub(crate) const YTD: usize = 3;
}
pub(super) mod district {
    pub(crate) const YTD: usize = 4;
    pub(crate) const NEXT_ORDER: usize = 5;
}
pub(super) mod customer {
    pub(crate) const ID: usize = 2;
    pub(crate) const CREDIT: usize = 5;
    pub(crate) const BALANCE: usize = 7;
    pub(crate) const YTD_PAYMENT: usize = 8;
    pub(crate) const PAYMENTS: usize = 9;
    pub(crate) const DELIVERIES: usize = 10;
    pub(crate) const DATA: usize = 11;
}
pub(super) mod orders {
    pub(crate) const ID: usize = 2;
    pub(crate) const CUSTOMER: usize = 3;
    pub(crate) const CARRIER: usize = 5;
    pub(crate) const LINES: usize = 6;
}
pub(super) mod line {
    pub(crate) const ITEM: usize = 4;
    pub(crate) const DELIVERED: usize = 6;
    pub(crate) const AMOUNT: usize = 8;
}
pub(super) mod stock {
    pub(crate) const QUANTITY: usize = 2;
    pub(crate) const YTD: usize = 3;
    pub(crate) const ORDERS: usize = 4;
    pub(crate) const REMOTE: usize = 5;
}

/// The index of customers by last name, and of orders by customer.
pub(super) const BY_NAME: usize = 1;
pub(super) const BY_CUSTOMER: usize = 1;

pub(super) fn tables() -> Vec<TableSpec> {
    let (i, n, t) = (DataType::Int4, DataType::Int8, DataType::Text);
    vec![
        table("warehouse", &[("w", i), ("name", t), ("tax", i), ("ytd", n)], &[(&["w"], true)]),
        table(
            "district",
            &[("w", i), ("d", i), ("name", t), ("tax", i), ("ytd", n), ("next_order", i)],
            &[(&["w", "d"], true)],
        ),
        table(
            "customer",
            &[
                ("w", i),
                ("d", i),
                ("c", i),
                ("last", t),
                ("first", t),
                ("credit", t),
                ("discount", i),
                ("balance", n),
                ("ytd_payment", n),
                ("payments", i),
                ("deliveries", i),
                ("data", t),
            ],
            &[(&["w", "d", "c"], true), (&["w", "d", "last", "first"], false)],
        ),
        table(
            "history",
            &[("c_w", i), ("c_d", i), ("c", i), ("w", i), ("d", i), ("date", n), ("amount", n), ("data", t)],
            &[], // Clause 1.3: it has no primary key.
        ),
        table("new_order", &[("w", i), ("d", i), ("o", i)], &[(&["w", "d", "o"], true)]),
        table(
            "orders",
            &[("w", i), ("d", i), ("o", i), ("c", i), ("entered", n), ("carrier", i), ("lines", i), ("local", i)],
            &[(&["w", "d", "o"], true), (&["w", "d", "c", "o"], true)],
        ),
        table(
            "order_line",
            &[
                ("w", i),
                ("d", i),
                ("o", i),
                ("number", i),
                ("item", i),
                ("supply_w", i),
                ("delivered", n),
                ("quantity", i),
                ("amount", n),
                ("info", t),
            ],
            &[(&["w", "d", "o", "number"], true)],
        ),
        table("item", &[("i", i), ("name", t), ("price", i), ("data", t)], &[(&["i"], true)]),
        table(
            "stock",
            &[("w", i), ("i", i), ("quantity", i), ("ytd", n), ("orders", i), ("remote", i), ("data", t)],
            &[(&["w", "i"], true)],
        ),
    ]
}
