//! SELECT of up to three tables, each row found by key: the first table's as in `select`, the others' by an index whose
//! first columns equal given values or columns of the tables before.
//!
//! 1. Of each table at most [`MOST`] rows are read, and what one more look-up finds, whether they are kept or not.
//!    Where there are more, it is the general way's.
//! 2. A row without partner in an optional table (LEFT JOIN) has NULLs for it; no condition but the join's own names
//!    that table.
//! 3. NULL equals nothing.
use super::answer::{Output, limit, order};
use super::rows::{Comparing, MOST, Rows, Sought, fitting};
use super::values::{Bound, Given};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use std::sync::Arc;
use terrace_engine::{Datum, DatumRef, Index, Result, RowBuf, RowView, Table, Txn};
use terrace_env::yield_now;

/// Tables.
pub(super) const MOST_TABLES: usize = 3;
/// Rows read, or look-ups, before other sessions have the thread for a moment.
const READ_AT_ONCE: usize = 64;

/// Columns are numbered through all tables, in the order of FROM.
#[derive(Debug)]
pub(super) struct Join {
    /// The number of each table's first column.
    pub(super) firsts: Vec<usize>,
    /// The table that is read first, by its place in FROM.
    pub(super) driver: usize,
    pub(super) rows: Rows,
    pub(super) steps: Vec<Step>,
    /// Columns to sort by, and whether downwards.
    pub(super) sort: Vec<(usize, bool)>,
    pub(super) limit: Option<Given>,
    pub(super) output: Output,
    pub(super) schema: SchemaRef,
}

/// How the next table's rows are found.
#[derive(Debug)]
pub(super) struct Step {
    /// Its place in FROM.
    pub(super) table: usize,
    pub(super) optional: bool,
    pub(super) index: Arc<Index>,
    /// Of the index's first columns.
    pub(super) prefix: Vec<Value>,
    /// The prefix names one row.
    pub(super) one: bool,
    pub(super) checks: Vec<Check>,
}

#[derive(Debug)]
pub(super) enum Value {
    Given(Given),
    /// Of a table before.
    Column(usize),
}

/// What else must hold of a column of the step's table.
#[derive(Debug)]
pub(super) struct Check {
    /// Its number within the table.
    pub(super) column: usize,
    pub(super) comparing: Comparing,
    pub(super) with: Value,
}

/// Rows of each table that belong together, by their places among those found; [`NONE`]: there is none, or none yet.
type Together = [u32; MOST_TABLES];
const NONE: u32 = u32::MAX;

struct Joined<'j> {
    tables: &'j [Arc<Table>],
    firsts: &'j [usize],
    /// Of each table.
    found: Vec<Vec<RowBuf>>,
    together: Vec<Together>,
}

impl Join {
    pub(super) fn indexes(&self) -> impl Iterator<Item = &Arc<Index>> {
        std::iter::once(&self.rows.index).chain(self.steps.iter().map(|step| &step.index))
    }

    /// `None`: it is the general way's after all.
    pub(super) async fn run(
        &self,
        tables: &[Arc<Table>],
        txn: &mut Txn,
        bound: Bound<'_>,
    ) -> Result<Option<RecordBatch>> {
        assert!(tables.len() == self.steps.len() + 1 && tables.len() <= MOST_TABLES, "a step for each table");
        let Some(limit) = limit(&self.limit, bound)? else { return Ok(None) };
        let Some(sought) = fitting(self.rows.sought(bound))? else { return Ok(None) };
        let Some(first) = sought.all(&tables[self.driver], txn).await? else { return Ok(None) };
        let mut joined = Joined { tables, firsts: &self.firsts, found: vec![vec![]; tables.len()], together: vec![] };
        for (at, (_, row, _)) in first.into_iter().enumerate() {
            joined.found[self.driver].push(row);
            let mut together = [NONE; MOST_TABLES];
            together[self.driver] = at as u32; // At most `MOST`.
            joined.together.push(together);
        }
        for step in &self.steps {
            if !joined.take(step, txn, bound).await? {
                return Ok(None);
            }
        }
        let mut together = std::mem::take(&mut joined.together);
        if !self.sort.is_empty() {
            together.sort_by(|a, b| order(&self.sort, |at| joined.column(a, at), |at| joined.column(b, at)));
        }
        together.truncate(limit);
        let rows = together.iter().map(|row| |at| joined.column(row, at));
        self.output.answer(&self.schema, rows, bound).map(Some)
    }
}

impl Joined<'_> {
    fn column(&self, row: &Together, at: usize) -> DatumRef<'_> {
        let table = self.firsts.partition_point(|first| *first <= at) - 1;
        match self.found[table].get(row[table] as usize) {
            Some(row) => row.view(&self.tables[table]).get(at - self.firsts[table]),
            None => DatumRef::Null,
        }
    }

    /// Joins the rows that there are with those of the step's table. False: there are too many (invariant 1).
    async fn take(&mut self, step: &Step, txn: &mut Txn, bound: Bound<'_>) -> Result<bool> {
        let before = std::mem::take(&mut self.together);
        let (mut read, mut yielded) = (0, 0);
        for mut row in before {
            if read - yielded >= READ_AT_ONCE {
                yield_now().await; // Others' turn; and a cancel is seen.
                yielded = read;
            }
            let prefix = step.prefix.iter().map(|value| self.value(&row, value, bound)).collect();
            let Some(prefix) = fitting(prefix)? else { return Ok(false) };
            let sought = Sought::prefixed(&step.index, prefix, step.one);
            let Some(found) = sought.all(&self.tables[step.table], txn).await? else { return Ok(false) };
            read += found.len().max(1);
            if read > MOST {
                return Ok(false);
            }
            let together = self.together.len();
            for (_, found, _) in found {
                let Some(fits) = fitting(self.fits(&row, step, found.view(&self.tables[step.table]), bound))? else {
                    return Ok(false);
                };
                if fits {
                    row[step.table] = self.found[step.table].len() as u32;
                    self.found[step.table].push(found);
                    self.together.push(row);
                }
            }
            if step.optional && self.together.len() == together {
                row[step.table] = NONE;
                self.together.push(row);
            }
        }
        assert!(self.together.len() <= read && read <= MOST, "invariant 1: {} of {read} rows", self.together.len());
        Ok(true)
    }

    fn value(&self, row: &Together, value: &Value, bound: Bound<'_>) -> Result<Datum> {
        match value {
            Value::Given(given) => given.value(bound),
            Value::Column(at) => Ok(self.column(row, *at).to_datum()),
        }
    }

    /// Whether all checks hold (invariant 3).
    fn fits(&self, row: &Together, step: &Step, own: RowView<'_>, bound: Bound<'_>) -> Result<bool> {
        for Check { column, comparing, with } in &step.checks {
            let (own, with) = (own.get(*column), self.value(row, with, bound)?);
            if own.is_null() || with == Datum::Null || !comparing.holds(own.cmp_key(with.as_ref())) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
