//! The tables (clause 1.4), and the positions of the columns that queries touch.
use crate::workload::table;
use terrace_engine::{DataType, TableSpec};

pub(super) mod orders {
    pub(crate) const CUSTOMER: usize = 1;
    pub(crate) const TOTAL: usize = 3;
    pub(crate) const LINES: usize = 4;
}
pub(super) mod line {
    pub(crate) const ORDER: usize = 0;
    pub(crate) const PRICE: usize = 6;
}

/// Days that orders are spread over (clause 4.2.3).
pub(super) const DAYS: u32 = 2406;

/// The indexes of orders by customer, and of lines by part.
pub(super) const BY_CUSTOMER: usize = 1;
pub(super) const BY_PART: usize = 1;

pub(super) fn tables() -> Vec<TableSpec> {
    let (i, n, t) = (DataType::Int4, DataType::Int8, DataType::Text);
    vec![
        table("supplier", &[("s", i), ("nation", i), ("info", t)], &[(&["s"], true)]),
        table("part", &[("p", i), ("brand", i), ("info", t)], &[(&["p"], true)]),
        table("partsupp", &[("p", i), ("s", i), ("available", i), ("comment", t)], &[(&["p", "s"], true)]),
        table("customer", &[("c", i), ("nation", i), ("info", t)], &[(&["c"], true)]),
        table(
            "orders",
            &[("o", i), ("c", i), ("date", i), ("total", n), ("lines", i), ("comment", t)],
            &[(&["o"], true), (&["c", "o"], true)],
        ),
        table(
            "lineitem",
            &[("o", i), ("n", i), ("p", i), ("s", i), ("ship", i), ("quantity", i), ("price", n), ("comment", t)],
            &[(&["o", "n"], true), (&["p", "o", "n"], true)],
        ),
    ]
}
