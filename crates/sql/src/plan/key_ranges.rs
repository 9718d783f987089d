//! From filters to ranges of an index.
//!
//! 1. A filter narrows a range where it compares a key column with a literal of exactly the column's type (the
//!    optimizer has cast and folded by then), and where it compares the key of an interval or a numeric. Floats do
//!    not: -0 and NaN compare differently here and there.
//! 2. `a IN (1, 2)` and `a = 1 OR a = 2` are a range for each value, in key order and without overlap; beyond
//!    [`MOST_RANGES`] they are the one from the least value to the greatest. `= ANY (array)` has become IN before.
use crate::functions::convert::converted_from;
use crate::functions::interval;
use crate::values::{decimal, exact_datum, to_scalar};
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;
use terrace_engine::types::{Decimal, Interval};
use terrace_engine::{DataType, Datum, Index, IndexRange, ScanDirection, Table};

/// Ranges of one scan.
pub(crate) const MOST_RANGES: usize = 1000;

/// `column op value`; where `op` is equality, there may be several values: one of them.
struct Comparison {
    column: usize,
    op: Operator,
    /// In order, each once.
    values: Vec<Datum>,
}

impl Comparison {
    fn least(&self) -> &Datum {
        self.values.first().expect("there is a value")
    }

    fn greatest(&self) -> &Datum {
        self.values.last().expect("there is a value")
    }
}

/// Whether ORDER BY sorts values of the type as keys are sorted.
pub(crate) fn has_order(data_type: DataType) -> bool {
    use DataType::*;
    !matches!(data_type, Json | Jsonb | Array(_) | Composite(_))
}

/// Whether the filter can narrow a scan of some index of the table.
pub(crate) fn usable(table: &Table, filter: &Expr) -> bool {
    comparisons(table, filter).iter().any(|c| table.indexes.iter().any(|index| index.columns.contains(&c.column)))
}

/// The ranges of the index that the filters narrow most: most leading columns with equality, then a range on the next
/// one. Unique indexes win ties. One at least, in key order, without overlap.
pub(crate) fn choose(table: &Table, filters: &[Expr]) -> Option<Vec<IndexRange>> {
    let comparisons: Vec<Comparison> = filters.iter().flat_map(|f| comparisons(table, f)).collect();
    if comparisons.is_empty() {
        return None;
    }
    let candidates = table.indexes.iter().filter_map(|index| {
        let (ranges, score) = narrow(index, &comparisons)?;
        Some(((score, index.unique), ranges))
    });
    // The first of equals, hence the primary key: max_by_key would take the last.
    candidates.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, ranges)| ranges)
}

fn comparisons(table: &Table, filter: &Expr) -> Vec<Comparison> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            let mut both = comparisons(table, left);
            both.extend(comparisons(table, right));
            both
        }
        Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) | Expr::InList(_) => {
            points(table, filter).into_iter().collect()
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let found = match (compared(left), left.as_ref(), compared(right), right.as_ref()) {
                (Some(column), _, _, Expr::Literal(value, _)) => compare(table, column, *op, value),
                (_, Expr::Literal(value, _), Some(column), _) => {
                    op.swap().and_then(|op| compare(table, column, op, value))
                }
                _ => None,
            };
            found.into_iter().collect()
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            match (compared(expr), low.as_ref(), high.as_ref()) {
                (Some(column), Expr::Literal(low, _), Expr::Literal(high, _)) => {
                    let low = compare(table, column, Operator::GtEq, low);
                    low.into_iter().chain(compare(table, column, Operator::LtEq, high)).collect()
                }
                _ => vec![],
            }
        }
        _ => vec![],
    }
}

/// One column equal to one of several values.
fn points(table: &Table, filter: &Expr) -> Option<Comparison> {
    let mut found = match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (mut left, right) = (points(table, left)?, points(table, right)?);
            if left.column != right.column {
                return None;
            }
            left.values.extend(right.values);
            left
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let column = compared(expr)?;
            let mut all: Option<Comparison> = None;
            for item in list {
                let Expr::Literal(value, _) = item else { return None };
                // Nothing equals NULL.
                if value.is_null() {
                    continue;
                }
                let one = compare(table, column, Operator::Eq, value)?;
                match &mut all {
                    None => all = Some(one),
                    Some(all) => all.values.extend(one.values),
                }
            }
            all?
        }
        Expr::BinaryExpr(BinaryExpr { op: Operator::Eq, .. }) => comparisons(table, filter).pop()?,
        _ => return None,
    };
    found.values.sort_by(|a, b| a.as_ref().cmp_key(b.as_ref()));
    found.values.dedup_by(|a, b| a.as_ref().cmp_key(b.as_ref()) == Ordering::Equal);
    Some(found)
}

/// The column that a filter compares: itself, or by its key; a numeric(p, s) also by that of the plain numeric that it
/// is.
fn compared(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::ScalarFunction(call) if call.name() == interval::KEY => match call.args.as_slice() {
            [Expr::Column(column)] => Some(column),
            _ => None,
        },
        Expr::ScalarFunction(call) if call.name() == decimal::KEY => match call.args.as_slice() {
            [Expr::Column(column)] => Some(column),
            [converted] => match converted_from(converted, DataType::Numeric(None)) {
                Some(Expr::Column(column)) => Some(column),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

fn compare(table: &Table, column: &Column, op: Operator, value: &ScalarValue) -> Option<Comparison> {
    use Operator::*;
    if !matches!(op, Eq | Lt | LtEq | Gt | GtEq) {
        return None;
    }
    let (column, definition) = table.columns.iter().enumerate().find(|(_, c)| !c.dropped && c.name == column.name)?;
    if matches!(definition.data_type, DataType::Float4 | DataType::Float8) {
        return None;
    }
    let value = match (definition.data_type, value) {
        (DataType::Interval, ScalarValue::Decimal128(Some(key), _, 0)) => Datum::Interval(Interval::from_key(*key)?),
        (of @ DataType::Numeric(_), ScalarValue::Binary(Some(key))) => {
            let plain = Datum::Decimal(Decimal::of_key(key)?.encode());
            exact_datum(&to_scalar(&plain, DataType::Numeric(None)), of)?
        }
        (data_type, value) => exact_datum(value, data_type)?,
    };
    Some(Comparison { column, op, values: vec![value] })
}

/// Whether a prefix of a key comes before another of as many columns.
fn is_below(a: &[Datum], b: &[Datum]) -> bool {
    let orders = a.iter().zip(b).map(|(a, b)| a.as_ref().cmp_key(b.as_ref()));
    orders.into_iter().find(|order| order.is_ne()) == Some(Ordering::Less)
}

/// The ranges, and how much they are narrowed: two for each leading equality, one for each bound on the column after
/// them.
fn narrow(index: &Arc<Index>, comparisons: &[Comparison]) -> Option<(Vec<IndexRange>, usize)> {
    let on = |column: usize, ops: &[Operator]| {
        let fitting = comparisons.iter().filter(|c| c.column == column && ops.contains(&c.op));
        fitting.min_by_key(|c| c.values.len())
    };
    let mut prefixes: Vec<Vec<Datum>> = vec![vec![]];
    let (mut equal, mut many) = (0, None);
    let mut columns = index.columns.iter();
    let mut next = columns.next();
    while let Some(one_of) = next.and_then(|column| on(*column, &[Operator::Eq])) {
        if prefixes.len() * one_of.values.len() > MOST_RANGES {
            many = Some(one_of);
            break;
        }
        let with = |prefix: &Vec<Datum>| {
            let prefix = prefix.clone();
            one_of.values.iter().map(move |value| prefix.iter().chain([value]).cloned().collect())
        };
        prefixes = prefixes.iter().flat_map(with).collect();
        equal += 1;
        next = columns.next();
    }
    let (low, high) = match many {
        Some(many) => (Some((Operator::GtEq, many.least())), Some((Operator::LtEq, many.greatest()))),
        None => {
            let low = next.and_then(|column| on(*column, &[Operator::Gt, Operator::GtEq]));
            let high = next.and_then(|column| on(*column, &[Operator::Lt, Operator::LtEq]));
            let one = |c: &&Comparison| c.values.len() == 1;
            assert!(low.iter().chain(&high).all(one), "only equality compares with several values");
            (low.map(|c| (c.op, c.least())), high.map(|c| (c.op, c.greatest())))
        }
    };
    assert!((1..=MOST_RANGES).contains(&prefixes.len()), "invariant 2: {} ranges", prefixes.len());
    debug_assert!(prefixes.windows(2).all(|pair| is_below(&pair[0], &pair[1])), "invariant 2: in key order");
    let score = 2 * equal + usize::from(low.is_some()) + usize::from(high.is_some());
    if score == 0 {
        return None;
    }
    let bound = |prefix: &[Datum], end: Option<(Operator, &Datum)>| match end {
        Some((op, value)) => {
            let key: Vec<Datum> = prefix.iter().chain([value]).cloned().collect();
            match op {
                Operator::Gt | Operator::Lt => Bound::Excluded(key),
                _ => Bound::Included(key),
            }
        }
        None if prefix.is_empty() => Bound::Unbounded,
        None => Bound::Included(prefix.to_vec()),
    };
    let range = |prefix: &Vec<Datum>| IndexRange {
        index: index.clone(),
        from: bound(prefix, low),
        to: bound(prefix, high),
        direction: ScanDirection::Forward,
    };
    Some((prefixes.iter().map(range).collect(), score))
}
