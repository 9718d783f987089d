//! The functions of DataFusion's that may be called, beside those in the table: each has PostgreSQL's name and meaning.
//!
//! What is not here was looked at and left out: DataFusion's own (`arrow_typeof`, `nvl`, `isnan`, `iszero`, `signum`,
//! `nanvl`, `log2`, `struct`, `named_struct`, `get_field`, `from_unixtime`, `to_unixtime`, `to_timestamp_millis`,
//! `contains`, `ends_with`, `find_in_set`, `substr_index`, `uuid`, `median`, `approx_distinct`, `any_value`, ...), and
//! what answers something else (`regexp_instr` of six arguments, and `current_time`, for there is no type time with
//! time zone).
use super::text::LIKE_PATTERN;
use std::ops::RangeInclusive;

/// Scalar functions.
pub(crate) fn is_known_function(name: &str) -> bool {
    const KNOWN: &[&str] = &[
        "coalesce",
        "greatest",
        "least",
        "nullif",
        "row",
        "pi",
        "random",
        "version",
        "now",
        "current_timestamp",
        "transaction_timestamp",
        "statement_timestamp",
        "localtime",
        "localtimestamp",
        "current_date",
        "date_part",
        "date_trunc",
        "date_bin",
        "timezone",
        "to_char",
        "trim",
        "equals_any",
        "differs_from_all",
    ];
    KNOWN.contains(&name) || (super::find(name).is_some() && !name.starts_with("regex_") && name != LIKE_PATTERN)
}

/// Aggregates, and those of DataFusion's that are PostgreSQL's window functions.
pub(crate) fn is_known_aggregate(name: &str) -> bool {
    const KNOWN: &[&str] = &[
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "var_pop",
        "var_samp",
        "variance",
        "stddev_pop",
        "stddev_samp",
        "stddev",
        "covar_pop",
        "covar_samp",
        "corr",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bool_and",
        "bool_or",
        "every",
        "array_agg",
        "string_agg",
        "percentile_cont",
        "grouping",
        "first_value",
        "last_value",
        "nth_value",
    ];
    KNOWN.contains(&name)
}

/// How many arguments a window function takes; `None`: there is none of that name.
pub(crate) fn window_arguments(name: &str) -> Option<RangeInclusive<usize>> {
    Some(match name {
        "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist" => 0..=0,
        "ntile" | "first_value" | "last_value" => 1..=1,
        "nth_value" => 2..=2,
        "lag" | "lead" => 1..=3,
        _ => return None,
    })
}
