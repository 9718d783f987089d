//! Rows that an index leads to: one by all columns of a unique index, a short range by a prefix of an index's columns
//! and bounds on the column after it, or the first ones of all. (Every index has all rows of its table.)
//!
//! 1. At most [`MOST`] rows are read; a longer range is the general way's.
//! 2. NULLs lie at the end of an index: a bound from below alone ends before them.
//! 3. A row that is evaluated again, in a newer version, belongs to what was sought if it lies within the same bounds.
use super::values::{Bound as Binding, Given};
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;
use terrace_engine::{Datum, Index, IndexRange, Result, RowBuf, RowView, Scan, ScanDirection, Scanner, Table, Txn};
use terrace_engine::{DatumRef, Version};
use terrace_storage::Rid;

/// Rows.
pub(super) const MOST: usize = 1000;

pub(super) type Found = (Rid, RowBuf, Version);

/// How a column is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Comparing {
    Equal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Comparing {
    /// Of a column that lies so to what it is compared with.
    pub(super) fn holds(self, order: Ordering) -> bool {
        match self {
            Comparing::Equal => order.is_eq(),
            Comparing::Less => order.is_lt(),
            Comparing::LessEqual => order.is_le(),
            Comparing::Greater => order.is_gt(),
            Comparing::GreaterEqual => order.is_ge(),
        }
    }
}

/// Where rows are.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) index: Arc<Index>,
    /// Of its first columns.
    pub(super) prefix: Vec<Given>,
    /// Bounds on the column after the prefix, and whether they belong to the range.
    pub(super) low: Option<(Given, bool)>,
    pub(super) high: Option<(Given, bool)>,
    /// Only rows whose column after the prefix is not NULL.
    pub(super) not_null: bool,
    pub(super) direction: ScanDirection,
    /// The prefix is a whole key of a unique index: it names one row.
    pub(super) one: bool,
}

/// The same with its values.
pub(super) struct Sought<'r> {
    index: &'r Arc<Index>,
    pub(super) prefix: Vec<Datum>,
    low: Option<(Datum, bool)>,
    high: Option<(Datum, bool)>,
    not_null: bool,
    direction: ScanDirection,
    one: bool,
}

/// Where they come from.
pub(super) enum Source {
    One(Option<Found>),
    Range(Box<Scanner>),
}

impl Rows {
    pub(super) fn sought(&self, bound: Binding<'_>) -> Result<Sought<'_>> {
        debug_assert!(!self.one || self.index.is_immediate(), "a key names one row");
        debug_assert!(!self.one || self.prefix.len() == self.index.columns.len(), "all columns of the index");
        let end = |end: &Option<(Given, bool)>| -> Result<Option<(Datum, bool)>> {
            end.as_ref().map(|(given, included)| Ok((given.value(bound)?, *included))).transpose()
        };
        let prefix = self.prefix.iter().map(|given| given.value(bound)).collect::<Result<Vec<Datum>>>()?;
        let (low, high) = (end(&self.low)?, end(&self.high)?);
        let Rows { not_null, direction, one, .. } = *self;
        Ok(Sought { index: &self.index, prefix, low, high, not_null, direction, one })
    }
}

/// `None`: a value does not fit its column, and the general way says what that means.
pub(super) fn fitting<T>(value: Result<T>) -> Result<Option<T>> {
    match value {
        Err(error) if error.state.0 == "22003" => Ok(None),
        value => value.map(Some),
    }
}

impl<'r> Sought<'r> {
    /// Those with this prefix.
    pub(super) fn prefixed(index: &'r Arc<Index>, prefix: Vec<Datum>, one: bool) -> Sought<'r> {
        Sought { index, prefix, low: None, high: None, not_null: false, direction: ScanDirection::Forward, one }
    }
}

impl Sought<'_> {
    /// Nothing equals NULL, or is less or greater.
    pub(super) fn is_nothing(&self) -> bool {
        let ends = [&self.low, &self.high].into_iter().flatten();
        self.prefix.contains(&Datum::Null) || ends.into_iter().any(|(value, _)| *value == Datum::Null)
    }

    pub(super) async fn source(&self, table: &Arc<Table>, txn: &mut Txn) -> Result<Source> {
        Ok(match self.is_nothing() {
            true => Source::One(None),
            false if self.one => Source::One(txn.get(table, self.index, &self.prefix).await?),
            false => Source::Range(Box::new(txn.scan(table, Scan::Index(self.range())))),
        })
    }

    /// All of them; `None`: too many (invariant 1).
    pub(super) async fn all(&self, table: &Arc<Table>, txn: &mut Txn) -> Result<Option<Vec<Found>>> {
        let mut source = self.source(table, txn).await?;
        let mut rows = source.next(MOST + 1).await?;
        while rows.len() <= MOST && !source.is_over() {
            let more = source.next(MOST + 1 - rows.len()).await?;
            if more.is_empty() {
                break;
            }
            rows.extend(more);
        }
        Ok((rows.len() <= MOST).then_some(rows))
    }

    fn range(&self) -> IndexRange {
        let bounds = usize::from(self.low.is_some() || self.high.is_some());
        debug_assert!(self.prefix.len() + bounds <= self.index.columns.len(), "columns of the index");
        let end = |value: &Datum, included: bool| {
            let key = [self.prefix.as_slice(), std::slice::from_ref(value)].concat();
            if included { Bound::Included(key) } else { Bound::Excluded(key) }
        };
        let prefixed = || if self.prefix.is_empty() { Bound::Unbounded } else { Bound::Included(self.prefix.clone()) };
        let to = match (&self.high, &self.low) {
            (Some((high, included)), _) => end(high, *included),
            (None, Some(_)) => end(&Datum::Null, false),
            (None, None) if self.not_null => end(&Datum::Null, false),
            (None, None) => prefixed(),
        };
        let from = match &self.low {
            Some((low, included)) => end(low, *included),
            None => prefixed(),
        };
        IndexRange { index: self.index.clone(), from, to, direction: self.direction }
    }

    /// Invariant 3.
    pub(super) fn holds(&self, row: RowView<'_>) -> bool {
        let (equal, rest) = self.index.columns.split_at(self.prefix.len());
        let same = |(at, value): (&usize, &Datum)| row.get(*at).cmp_key(value.as_ref()).is_eq();
        let beyond = |end: &Option<(Datum, bool)>, side: Ordering| match end {
            None => true,
            Some((value, included)) => match row.get(rest[0]) {
                DatumRef::Null => false,
                own => {
                    let order = own.cmp_key(value.as_ref());
                    order == side || *included && order.is_eq()
                }
            },
        };
        equal.iter().zip(&self.prefix).all(same)
            && beyond(&self.low, Ordering::Greater)
            && beyond(&self.high, Ordering::Less)
    }
}

impl Source {
    /// At most `max`; none at the end.
    pub(super) async fn next(&mut self, max: usize) -> Result<Vec<Found>> {
        match self {
            Source::One(found) => Ok(found.take().into_iter().collect()),
            Source::Range(scanner) => scanner.next_batch(max).await,
        }
    }

    /// Whether it is known that there are no more.
    fn is_over(&self) -> bool {
        matches!(self, Source::One(None))
    }
}
