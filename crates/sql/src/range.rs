//! From filters to a range of an index.
//!
//! A filter narrows a range where it compares a key column with a literal of exactly the column's type (the optimizer has cast
//! and folded by then). Floats do not: -0 and NaN compare differently here and there.
use crate::values::exact_datum;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use std::ops::Bound;
use std::sync::Arc;
use terrace_engine::{DataType, Datum, Index, IndexRange, ScanDirection, Table};

/// `column op value`.
struct Comparison {
    column: usize,
    op: Operator,
    value: Datum,
}

/// Whether the filter can narrow a scan of some index of the table.
pub(crate) fn usable(table: &Table, filter: &Expr) -> bool {
    comparisons(table, filter).iter().any(|c| table.indexes.iter().any(|index| index.columns.contains(&c.column)))
}

/// The range of the index that the filters narrow most: most leading columns with equality, then a range on the next one.
/// Unique indexes win ties.
pub(crate) fn choose(table: &Table, filters: &[Expr]) -> Option<IndexRange> {
    let comparisons: Vec<Comparison> = filters.iter().flat_map(|f| comparisons(table, f)).collect();
    if comparisons.is_empty() {
        return None;
    }
    let candidates = table.indexes.iter().filter_map(|index| {
        let (range, score) = narrow(index, &comparisons)?;
        Some(((score, index.unique), range))
    });
    // The first of equals, hence the primary key: max_by_key would take the last.
    candidates.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, range)| range)
}

fn comparisons(table: &Table, filter: &Expr) -> Vec<Comparison> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            let mut both = comparisons(table, left);
            both.extend(comparisons(table, right));
            both
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let found = match (left.as_ref(), right.as_ref()) {
                (Expr::Column(c), Expr::Literal(value, _)) => compare(table, &c.name, *op, value),
                (Expr::Literal(value, _), Expr::Column(c)) => {
                    op.swap().and_then(|op| compare(table, &c.name, op, value))
                }
                _ => None,
            };
            found.into_iter().collect()
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            match (expr.as_ref(), low.as_ref(), high.as_ref()) {
                (Expr::Column(c), Expr::Literal(low, _), Expr::Literal(high, _)) => {
                    let low = compare(table, &c.name, Operator::GtEq, low);
                    low.into_iter().chain(compare(table, &c.name, Operator::LtEq, high)).collect()
                }
                _ => vec![],
            }
        }
        _ => vec![],
    }
}

fn compare(table: &Table, name: &str, op: Operator, value: &ScalarValue) -> Option<Comparison> {
    use Operator::*;
    if !matches!(op, Eq | Lt | LtEq | Gt | GtEq) {
        return None;
    }
    let (column, definition) = table.columns.iter().enumerate().find(|(_, c)| !c.dropped && c.name == name)?;
    if matches!(definition.data_type, DataType::Float4 | DataType::Float8) {
        return None;
    }
    Some(Comparison { column, op, value: exact_datum(value, definition.data_type)? })
}

/// The range, and how much it is narrowed: two for each leading equality, one for each bound on the column after them.
fn narrow(index: &Arc<Index>, comparisons: &[Comparison]) -> Option<(IndexRange, usize)> {
    let on = |column: usize, ops: &[Operator]| comparisons.iter().find(|c| c.column == column && ops.contains(&c.op));
    let mut prefix: Vec<Datum> = vec![];
    let mut columns = index.columns.iter();
    let mut next = columns.next();
    while let Some(equal) = next.and_then(|column| on(*column, &[Operator::Eq])) {
        prefix.push(equal.value.clone());
        next = columns.next();
    }
    let low = next.and_then(|column| on(*column, &[Operator::Gt, Operator::GtEq]));
    let high = next.and_then(|column| on(*column, &[Operator::Lt, Operator::LtEq]));
    let score = 2 * prefix.len() + low.is_some() as usize + high.is_some() as usize;
    if score == 0 {
        return None;
    }
    let bound = |end: Option<&Comparison>| match end {
        Some(c) => {
            let key: Vec<Datum> = prefix.iter().cloned().chain([c.value.clone()]).collect();
            match c.op {
                Operator::Gt | Operator::Lt => Bound::Excluded(key),
                _ => Bound::Included(key),
            }
        }
        None if prefix.is_empty() => Bound::Unbounded,
        None => Bound::Included(prefix.clone()),
    };
    let (from, to) = (bound(low), bound(high));
    Some((IndexRange { index: index.clone(), from, to, direction: ScanDirection::Forward }, score))
}
