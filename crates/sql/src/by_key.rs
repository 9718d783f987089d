//! Statements by key, which run straight on the engine: SELECT of one row or of a short range of an index, INSERT of
//! VALUES, UPDATE and DELETE of one row. A transactional client sends hardly anything else, and planning such a
//! statement costs many times what running it does.
//!
//! 1. A statement is recognised once (`recognise`), for one version of the catalogue, one role and one time zone. For
//!    another one it is recognised again, or it is planned.
//! 2. The answer is the one that planning would give, in values, types, names and errors. A statement for which this is
//!    not certain is not recognised.
//! 3. An answer is one batch. A range that turns out to be long is left to the planner.
//! 4. `now()` is a value of the transaction, never of the recognised statement.
use crate::access::Actor;
use crate::error::from_arrow;
use crate::functions::arithmetic::float_result;
use crate::values::{ColumnBuilder, assign_datum, check_not_null};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::types::Style;
use terrace_engine::{
    Catalog, DataType, Datum, EngineError, Index, Result, RowBuf, RowView, Table, Txn, UpdateOutcome,
};
use terrace_env::yield_now;

mod range;
mod recognise;

use range::Range;
pub(crate) use recognise::{Use, recognise, recognise_literals};

/// Rows that an INSERT stores before it lets other sessions have the thread for a moment.
const ROWS_AT_ONCE: usize = 64;

/// A value known when the statement is bound.
#[derive(Clone, Debug)]
enum Given {
    Constant(Datum),
    /// Its number from 0, and the column's type it is assigned to.
    Parameter(usize, DataType),
    /// The transaction's time, for a column of type timestamp.
    Now,
}

/// A new value of a column.
#[derive(Debug)]
enum NewValue {
    Given(Given),
    /// Another column, or the same, as it was.
    Column(usize),
    /// `column op value` on numbers; `flipped`: `value op column`.
    Computed {
        column: usize,
        op: Arithmetic,
        value: Given,
        flipped: bool,
    },
}

#[derive(Clone, Copy, Debug)]
enum Arithmetic {
    Add,
    Subtract,
    Multiply,
}

/// All columns of a unique index, in its order.
#[derive(Debug)]
struct Key {
    index: Arc<Index>,
    values: Vec<Given>,
}

#[derive(Debug)]
enum Action {
    Select {
        key: Key,
        columns: Vec<usize>,
        schema: SchemaRef,
    },
    Range(Box<Range>),
    Update {
        key: Key,
        sets: Vec<(usize, NewValue)>,
    },
    Delete {
        key: Key,
    },
    /// Whole rows.
    Insert {
        rows: Vec<Vec<Given>>,
    },
}

#[derive(Debug)]
pub(crate) struct ByKey {
    /// The version of the catalogue that it was recognised for.
    pub(crate) version: u64,
    /// The time zone in which its constants were read.
    pub(crate) style: Style,
    /// The role that may do it with that version of the catalogue.
    pub(crate) role: Arc<str>,
    /// Whether it asks for the transaction's time.
    pub(crate) uses_now: bool,
    table: Arc<Table>,
    action: Action,
}

pub(crate) enum ByKeyDone {
    Rows(RecordBatch),
    Tag(String),
}

/// What a statement is bound to.
#[derive(Clone, Copy)]
pub(crate) struct Bound<'a> {
    pub(crate) parameters: &'a [Datum],
    /// The transaction's time in microseconds since 1970; anything where the statement does not use it.
    pub(crate) now: i64,
}

impl Given {
    fn value(&self, bound: Bound<'_>) -> Result<Datum> {
        match self {
            Given::Constant(datum) => Ok(datum.clone()),
            Given::Parameter(number, data_type) => assign_datum(bound.parameters[*number].clone(), *data_type),
            Given::Now => assign_datum(Datum::Timestamptz(bound.now), DataType::Timestamp),
        }
    }
}

impl NewValue {
    fn value(&self, row: &[Datum], to: DataType, bound: Bound<'_>) -> Result<Datum> {
        let value = match self {
            NewValue::Given(given) => given.value(bound)?,
            NewValue::Column(other) => row[*other].clone(),
            NewValue::Computed { column, op, value, flipped } => {
                let (column, value) = (row[*column].clone(), value.value(bound)?);
                let (left, right) = if *flipped { (value, column) } else { (column, value) };
                compute(*op, left, right)?
            }
        };
        assign_datum(value, to)
    }
}

/// Of two integers, or two floats; NULL with anything is NULL.
fn compute(op: Arithmetic, left: Datum, right: Datum) -> Result<Datum> {
    let both_int4 = matches!((&left, &right), (Datum::Int4(_), Datum::Int4(_)));
    let integer = |datum: &Datum| match datum {
        Datum::Int4(v) => Some(i64::from(*v)),
        Datum::Int8(v) => Some(*v),
        _ => None,
    };
    if let (Some(a), Some(b)) = (integer(&left), integer(&right)) {
        let result = match op {
            Arithmetic::Add => a.checked_add(b),
            Arithmetic::Subtract => a.checked_sub(b),
            Arithmetic::Multiply => a.checked_mul(b),
        };
        return match result {
            Some(v) if both_int4 => i32::try_from(v).map(Datum::Int4).map_err(|_| EngineError::out_of_range("integer")),
            Some(v) => Ok(Datum::Int8(v)),
            None => Err(EngineError::out_of_range("bigint")),
        };
    }
    Ok(match (left, right) {
        (Datum::Null, _) | (_, Datum::Null) => Datum::Null,
        (Datum::Float8(a), Datum::Float8(b)) => {
            let (result, vanishes) = match op {
                Arithmetic::Add => (a + b, false),
                Arithmetic::Subtract => (a - b, false),
                Arithmetic::Multiply => (a * b, a != 0.0 && b != 0.0),
            };
            Datum::Float8(float_result(result, a.is_infinite() || b.is_infinite(), vanishes)?)
        }
        (a, b) => unreachable!("recognised as numbers of one kind: {a:?}, {b:?}"),
    })
}

impl Key {
    fn values(&self, bound: Bound<'_>) -> Result<Vec<Datum>> {
        debug_assert!(self.index.is_immediate(), "a key names one row");
        debug_assert_eq!(self.values.len(), self.index.columns.len(), "all columns of the index");
        self.values.iter().map(|given| given.value(bound)).collect()
    }
}

/// An index, a key's values, and the positions of the columns shown.
type LookUp<'f> = (&'f Index, Result<Vec<Datum>>, &'f [usize]);

type Found = (terrace_storage::Rid, RowBuf, terrace_engine::Version);

impl ByKey {
    /// Whether it still is what its text says.
    pub(crate) fn means(&self, version: u64, acting: &str) -> bool {
        self.version == version && self.style == Style::current() && *self.role == *acting
    }

    /// The same, for a role that may do it. Where it may not, planning says why.
    pub(crate) fn permitted(self, role: &Arc<str>, catalog: &Catalog) -> Option<ByKey> {
        let rights = match self.action {
            Action::Select { .. } | Action::Range(_) => Rights::SELECT,
            Action::Update { .. } => Rights::SELECT | Rights::UPDATE,
            Action::Delete { .. } => Rights::SELECT | Rights::DELETE,
            // What an error tells of a key is what the role may read.
            Action::Insert { .. } => Rights::SELECT | Rights::INSERT,
        };
        Actor::named(role, catalog).permit(catalog, &self.table, rights).ok()?;
        Some(ByKey { role: role.clone(), ..self })
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn writes(&self) -> bool {
        !matches!(self.action, Action::Select { .. } | Action::Range(_))
    }

    /// Where it is a look-up of one row: its key's index and values, and the positions of the columns it shows.
    pub(crate) fn look_up(&self, bound: Bound<'_>) -> Option<LookUp<'_>> {
        match &self.action {
            Action::Select { key, columns, .. } => Some((&key.index, key.values(bound), columns)),
            _ => None,
        }
    }

    /// Result columns, as those of a prepared statement.
    pub(crate) fn columns(&self) -> Option<SchemaRef> {
        match &self.action {
            Action::Select { schema, .. } => Some(schema.clone()),
            Action::Range(range) => Some(range.schema.clone()),
            _ => None,
        }
    }

    /// Whether its result has these columns.
    pub(crate) fn returns(&self, columns: &Option<SchemaRef>) -> bool {
        let fields = |columns: &Option<SchemaRef>| columns.as_ref().map(|columns| columns.fields().clone());
        fields(&self.columns()) == fields(columns)
    }

    /// `None`: the general way is needed after all (nothing has been done). The table is locked.
    pub(crate) async fn run(&self, txn: &mut Txn, bound: Bound<'_>) -> Result<Option<ByKeyDone>> {
        let key = match &self.action {
            Action::Range(range) => {
                return Ok(Box::pin(range.run(&self.table, txn, bound)).await?.map(ByKeyDone::Rows));
            }
            Action::Insert { rows } => return self.insert(txn, rows, bound).await.map(Some),
            Action::Select { key, .. } | Action::Update { key, .. } | Action::Delete { key } => key,
        };
        if !txn.can_use_index(&key.index) {
            return Ok(None);
        }
        let values = match key.values(bound) {
            Err(error) if error.state.0 == "22003" => return Ok(None),
            values => values?,
        };
        let found = match values.contains(&Datum::Null) {
            // Nothing equals NULL.
            true => None,
            false => txn.get(&self.table, &key.index, &values).await?,
        };
        let (verb, sets) = match &self.action {
            Action::Select { columns, schema, .. } => {
                let row = found.iter().map(|found| found.1.view(&self.table));
                return Ok(Some(ByKeyDone::Rows(batch(&self.table, columns, schema, row)?)));
            }
            Action::Update { sets, .. } => ("UPDATE", Some(sets)),
            _ => ("DELETE", None),
        };
        let changed = match found {
            Some(found) => self.change(txn, found, (&key.index, &values), sets, bound).await?,
            None => false,
        };
        judge(txn).await?;
        Ok(Some(ByKeyDone::Tag(format!("{verb} {}", changed as u8))))
    }

    async fn insert(&self, txn: &mut Txn, rows: &[Vec<Given>], bound: Bound<'_>) -> Result<ByKeyDone> {
        let row = |row: &Vec<Given>| row.iter().map(|given| given.value(bound)).collect::<Result<Vec<Datum>>>();
        // All values before the first row, as the general way has it: which error comes first is part of the answer.
        let rows = rows.iter().map(row).collect::<Result<Vec<_>>>()?;
        for (done, row) in rows.iter().enumerate() {
            if done > 0 && done.is_multiple_of(ROWS_AT_ONCE) {
                yield_now().await; // Others' turn; and a cancel is seen.
            }
            check_not_null(&self.table, row)?;
            txn.insert(&self.table, row).await?;
        }
        judge(txn).await?;
        Ok(ByKeyDone::Tag(format!("INSERT 0 {}", rows.len())))
    }

    /// Updates (`sets`) or deletes the row, evaluating the statement again on each newer version that another
    /// transaction has committed meanwhile. Whether it did.
    async fn change(
        &self,
        txn: &mut Txn,
        (rid, mut row, mut version): Found,
        (index, key): (&Index, &[Datum]),
        sets: Option<&Vec<(usize, NewValue)>>,
        bound: Bound<'_>,
    ) -> Result<bool> {
        loop {
            let old = row.view(&self.table).to_datums();
            if index.columns.iter().zip(key).any(|(at, value)| old[*at] != *value) {
                return Ok(false);
            }
            let outcome = match sets {
                Some(sets) => {
                    let mut new = old.clone();
                    for (at, value) in sets {
                        new[*at] = value.value(&old, self.table.columns[*at].data_type, bound)?;
                    }
                    check_not_null(&self.table, &new)?;
                    txn.update(&self.table, rid, version, &new).await?
                }
                None => txn.delete(&self.table, rid, version).await?,
            };
            match outcome {
                UpdateOutcome::Done => return Ok(true),
                UpdateOutcome::Gone => return Ok(false),
                UpdateOutcome::Changed { row: newest, version: newer } => (row, version) = (newest, newer),
            }
        }
    }
}

/// Whether the foreign keys hold. What changes other rows is not recognised.
async fn judge(txn: &mut Txn) -> Result<()> {
    if txn.has_consequences() { Box::pin(txn.judge_statement()).await } else { Ok(()) }
}

/// Columns of rows.
pub(crate) fn batch<'a>(
    table: &Table,
    columns: &[usize],
    schema: &SchemaRef,
    rows: impl ExactSizeIterator<Item = RowView<'a>>,
) -> Result<RecordBatch> {
    let count = rows.len();
    let mut builders: Vec<ColumnBuilder> =
        columns.iter().map(|at| ColumnBuilder::new(table.columns[*at].data_type, count)).collect();
    for view in rows {
        columns.iter().zip(&mut builders).for_each(|(at, builder)| builder.push(view.get(*at)));
    }
    debug_assert_eq!(columns.len(), schema.fields().len(), "a column for each field");
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    let arrays = builders.into_iter().map(ColumnBuilder::finish).collect();
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options).map_err(from_arrow)
}
