//! UPDATE and DELETE.
//!
//! 1. The rows to change come from a SELECT over the target with its row addresses and versions, which DataFusion plans
//!    and runs; all of it is collected before the first change, so that a statement never sees its own changes.
//! 2. A row that another transaction has changed meanwhile (READ COMMITTED) is evaluated again: the same query, with
//!    the newest version of that row in place of the target's scan, and the other tables as the statement's snapshot
//!    shows them. It is changed if it still qualifies. (PostgreSQL calls this EvalPlanQual.)
//! 3. A row that joins to several is changed once.
//! 4. Queries in the condition that lock rows run first, after the target has been locked (see
//!    [`crate::statement::lock_rows::within`]).
use crate::error::{from_datafusion, unsupported};
use crate::memory::row_bytes;
use crate::parse::identity::Identity;
use crate::parse::sequence_calls::sequence_of;
use crate::plan::planner::Asked;
use crate::plan::scan::{rid_from_u64, version_from};
use crate::statement::beside::Beside;
use crate::statement::changes::{assigned, delete_over, is_numbered, update_over};
use crate::statement::checks::round;
use crate::statement::generic::{Plan, Slot};
use crate::statement::lock_rows::within::queries;
use crate::statement::returning::{Changed, Returning};
use crate::statement::run::Run;
use crate::statement::through::Options;
use crate::through::Called;
use crate::transaction::OneRow;
use crate::values::{array_datum, assign_array, assign_datum, check_not_null, live_columns};
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::execution::memory_pool::MemoryReservation;
use std::collections::BTreeMap;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{DataType, Datum, Result, Table, UpdateOutcome, Version};
use terrace_grammar::statement::{Delete, Expr, Update, With};
use terrace_storage::Rid;

/// One row's change. `row`: the new row, or the row that will be deleted.
pub(crate) struct Change {
    rid: Rid,
    version: Version,
    pub(crate) row: Vec<Datum>,
    /// Which row of its batch it was read from.
    at: usize,
    /// The row of the plan that it was read from when it was evaluated again.
    again: Option<RecordBatch>,
}

/// The rows that a statement has changed.
#[derive(Default)]
struct Made {
    count: usize,
    /// For RETURNING, as they are now; deleted ones as they were.
    rows: Vec<Vec<Datum>>,
    /// What RETURNING names of FROM or USING.
    beside: Option<Beside>,
}

/// The query whose output the changes are read from.
pub(crate) struct Source<'t> {
    pub(crate) table: &'t Arc<Table>,
    pub(crate) plan: Plan,
    /// UPDATE: the assigned columns, in the order of their values after the old columns. DELETE: none.
    pub(crate) assigned: Option<Vec<usize>>,
    /// Those of them that get the next number of their sequence (DEFAULT).
    pub(crate) numbered: Vec<usize>,
    /// What the new rows must meet (WITH CHECK OPTION).
    pub(crate) options: Option<Options>,
}

/// Refuses a locking query beside WITH: it runs by itself, and would take a name of WITH for that of a table.
fn refuse_locks_beside(with: Option<&With>, condition: Option<&Expr>) -> Result<()> {
    match with.is_some() && !queries(condition).is_empty() {
        true => Err(unsupported("FOR UPDATE in the condition of a statement with WITH")),
        false => Ok(()),
    }
}

impl Run<'_> {
    pub(crate) async fn update(&self, update: &Update) -> Result<Changed> {
        let (table, called) = self.aimed(&update.target, update.alias.as_ref(), Rights::UPDATE).await?;
        self.refuse_changed([&table])?;
        let update = &*called.update(update, &table)?;
        refuse_locks_beside(update.with.as_ref(), update.filter.as_ref())?;
        let assigned = assigned(&update.set, &table)?;
        let positions: Vec<usize> = assigned.iter().map(|(at, _)| *at).collect();
        self.permit_changed((&table, &called), Rights::UPDATE, &positions).await?;
        let returning = Returning { items: &update.returning, with: update.with.as_ref(), from: &update.from };
        self.permit_returning((&table, &called), returning).await?;
        let settled = self.settle(update.filter.as_ref()).await?;
        let run = settled.run(self);
        let over = update_over(update, (&table, &called), settled.condition(), &assigned);
        let plan = run.plan_again(Slot::Changes, Asked::Over(&over)).await?;
        let numbered = assigned.iter().filter(|(at, value)| is_numbered(&called.defaults(&table).columns[*at], value));
        let numbered = numbered.map(|(at, _)| *at).collect();
        let options = self.options((&table, &called)).await?;
        let source = Source { table: &table, plan, assigned: Some(positions.clone()), numbered, options };
        let made = match run.change(source, returning).await {
            Err(error) => return Err(self.hidden(error, &positions).await),
            made => made?,
        };
        run.made((&table, &called), returning, made).await
    }

    pub(crate) async fn delete(&self, delete: &Delete) -> Result<Changed> {
        let (table, called) = self.aimed(&delete.target, delete.alias.as_ref(), Rights::DELETE).await?;
        self.refuse_changed([&table])?;
        let returning = Returning { items: &delete.returning, with: delete.with.as_ref(), from: &delete.using };
        self.permit_returning((&table, &called), returning).await?;
        refuse_locks_beside(delete.with.as_ref(), delete.filter.as_ref())?;
        let settled = self.settle(delete.filter.as_ref()).await?;
        let run = settled.run(self);
        let over = delete_over(delete, (&table, &called), settled.condition());
        let plan = run.plan_again(Slot::Changes, Asked::Over(&over)).await?;
        let source = Source { table: &table, plan, assigned: None, numbered: vec![], options: None };
        let made = run.change(source, returning).await?;
        run.made((&table, &called), returning, made).await
    }

    /// What it returns.
    async fn made(&self, of: (&Arc<Table>, &Called), returning: Returning<'_>, made: Made) -> Result<Changed> {
        match made.beside {
            Some(beside) => {
                let given = beside.given(of.0, &made.rows)?;
                self.changed_beside(of, returning, made.count, &given).await
            }
            None => self.changed(of, returning, made.count, made.rows).await,
        }
    }

    /// Each batch is decoded twice, to be checked and to be applied: all rows decoded at once would take several times
    /// its memory.
    async fn change(&self, source: Source<'_>, returning: Returning<'_>) -> Result<Made> {
        let collected = self.collect_again(&source.plan, None).await?;
        let memory = self.memory("rows to change");
        // Rows by their places, and their new numbers.
        let mut first: BTreeMap<[u8; 6], Vec<Datum>> = BTreeMap::new();
        for batch in collected.iter() {
            self.cancel.check()?;
            let size = size_of::<Rid>() + source.numbered.len() * size_of::<Datum>();
            memory.try_grow(batch.num_rows() * 2 * size).map_err(from_datafusion)?;
            let mut changes = source.changes(batch)?;
            changes.retain(|change| first.insert(change.rid.encode(), vec![]).is_none());
            if source.assigned.is_some() {
                let numbers = self.numbers_for(&source, changes.len()).await?;
                for (change, numbers) in changes.iter_mut().zip(numbers) {
                    change.number(&source, numbers.clone());
                    first.insert(change.rid.encode(), numbers);
                }
                for change in &changes {
                    check_not_null(source.table, &change.row)?;
                }
                self.finish_rows(source.table, changes.iter_mut().map(|c| &mut c.row).collect()).await?;
            }
        }
        let mut made = Made::default();
        let first_beside = source.columns();
        if returning.names_others() {
            made.beside = Some(Beside::of(self, &collected, first_beside)?);
        }
        let computing = match source.assigned {
            Some(_) => Some(self.computing(source.table).await?),
            None => None,
        };
        for (number, batch) in collected.iter().enumerate() {
            let mut changes = source.changes(batch)?;
            // Of several changes of one row the first counts.
            changes.retain_mut(|change| {
                let numbers = first.remove(&change.rid.encode());
                numbers.map(|numbers| change.number(&source, numbers)).is_some()
            });
            if let Some(by) = &computing {
                self.compute_again(source.table, by, &mut changes.iter_mut().map(|c| &mut c.row).collect::<Vec<_>>())
                    .await?;
            }
            self.apply_all(&source, changes, number, !returning.items.is_empty(), &mut made, &memory).await?;
        }
        assert!(first.is_empty(), "invariant 3: each row has been changed once");
        self.follow_foreign_keys().await?;
        Ok(made)
    }

    /// Applies the changes of batch `number`, and checks the new rows against the options of views. `keeps`: RETURNING
    /// sees them.
    async fn apply_all(
        &self,
        source: &Source<'_>,
        changes: Vec<Change>,
        number: usize,
        keeps: bool,
        made: &mut Made,
        memory: &MemoryReservation,
    ) -> Result<()> {
        let (mut checked, checked_before, mut refused) = (vec![], made.rows.len(), Ok(()));
        for change in changes {
            self.cancel.check()?;
            let Change { row, at, again, .. } = match self.apply(source, change).await {
                Ok(Some(change)) => change,
                Ok(None) => continue,
                // A row before it may not meet the conditions.
                Err(error) if error.state.0.starts_with("23") => {
                    refused = Err(error);
                    break;
                }
                Err(error) => return Err(error),
            };
            made.count += 1;
            match (&mut made.beside, again) {
                (None, _) => {}
                (Some(beside), None) => beside.push(number, at)?,
                (Some(beside), Some(again)) => beside.push_again(&again, source.columns())?,
            }
            if keeps {
                memory.try_grow(size_of::<Vec<Datum>>() + row_bytes(&row)).map_err(from_datafusion)?;
                made.rows.push(row);
            } else if source.options.is_some() {
                checked.push(row);
            }
        }
        let new = if keeps { &made.rows[checked_before..] } else { &checked };
        self.check_options(source.table, source.options.as_ref(), new).await?;
        refused
    }

    /// The next numbers of the numbered columns, for so many rows.
    async fn numbers_for(&self, source: &Source<'_>, rows: usize) -> Result<Vec<Vec<Datum>>> {
        let mut all = vec![vec![]; rows];
        for at in &source.numbered {
            let column = &source.table.columns[*at];
            let name = sequence_of(column).expect("the column is numbered");
            let numbers = self.numbers(&name, rows, Identity::of(column).is_some()).await?;
            for (row, number) in all.iter_mut().zip(numbers) {
                row.push(assign_datum(Datum::Int8(number), column.data_type)?);
            }
        }
        Ok(all)
    }

    /// Changes one row, evaluating it again as often as it has changed. `None`: it was not changed.
    async fn apply(&self, source: &Source<'_>, mut change: Change) -> Result<Option<Change>> {
        loop {
            let table: &Table = source.table;
            let attempt = async {
                let mut slot = self.cell.lock().await;
                let txn = slot.open();
                match source.assigned {
                    Some(_) => txn.update(table, change.rid, change.version, &change.row).await,
                    None => txn.delete(table, change.rid, change.version).await,
                }
            };
            match self.cancel.run(attempt).await? {
                UpdateOutcome::Done => return Ok(Some(change)),
                UpdateOutcome::Gone => return Ok(None),
                UpdateOutcome::Changed { row, version } => {
                    let newest = OneRow { target: 0, rid: change.rid, row, version };
                    let batches = self.collect_again(&source.plan, Some(newest)).await?;
                    let found = batches.iter().find(|b| b.num_rows() > 0).map(|batch| batch.slice(0, 1));
                    match found.as_ref().map(|one| source.changes(one)).transpose()? {
                        Some(mut one) => {
                            let again = one.pop().expect("one row gives one change");
                            assert_eq!(again.rid, change.rid, "invariant 2: the row stands in its table's place");
                            let numbers = source.numbered.iter().map(|at| change.row[*at].clone()).collect();
                            change = Change { again: found, ..again };
                            change.number(source, numbers);
                        }
                        None => return Ok(None),
                    }
                    if source.assigned.is_some() {
                        check_not_null(table, &change.row)?;
                        self.finish_rows(source.table, vec![&mut change.row]).await?;
                    }
                }
            }
        }
    }
}

impl Change {
    fn number(&mut self, source: &Source<'_>, numbers: Vec<Datum>) {
        assert_eq!(numbers.len(), source.numbered.len(), "a number for each numbered column");
        source.numbered.iter().zip(numbers).for_each(|(at, number)| self.row[*at] = number);
    }
}

impl Source<'_> {
    pub(crate) fn changes(&self, batch: &RecordBatch) -> Result<Vec<Change>> {
        let number = |at: usize| batch.column(at).as_primitive::<UInt64Type>();
        let (rids, writers, undos) = (number(0), number(1), number(2));
        let mut rows = self.new_rows(batch, self.assigned.as_deref().unwrap_or_default())?;
        if self.assigned.is_some() {
            round(self.table, &mut rows.iter_mut().collect::<Vec<_>>()).map_err(|(_, error)| error)?;
        }
        let mut rows = rows.into_iter();
        let change = |at: usize| Change {
            rid: rid_from_u64(rids.value(at)),
            version: version_from(writers.value(at), undos.value(at)),
            row: rows.next().expect("a new row for each old one"),
            at,
            again: None,
        };
        Ok((0..batch.num_rows()).map(change).collect())
    }

    /// How many columns of a batch come before what RETURNING names of FROM or USING.
    fn columns(&self) -> usize {
        3 + live_columns(self.table).count() + self.assigned.as_ref().map_or(0, Vec::len)
    }

    /// The old rows with the assigned values in place.
    fn new_rows(&self, batch: &RecordBatch, assigned: &[usize]) -> Result<Vec<Vec<Datum>>> {
        let mut live: Vec<usize> = live_columns(self.table).map(|(at, _)| at).collect();
        // A DELETE that returns nothing reads nothing of the row.
        let values = batch.num_columns().checked_sub(3 + assigned.len());
        live.truncate(values.expect("changes.rs, invariant 2: address and version, and the assigned values"));
        let mut old: Vec<(usize, &ArrayRef)> = vec![];
        let mut new: Vec<(usize, std::vec::IntoIter<Datum>)> = vec![];
        for (i, at) in live.iter().enumerate() {
            let (array, column) = (batch.column(3 + i), &self.table.columns[*at]);
            // An array's own type does not tell all of the column's.
            match column.data_type {
                DataType::Array(_) => new.push((*at, assign_array(array, column)?.into_iter())),
                _ => old.push((*at, array)),
            }
        }
        for (i, at) in assigned.iter().enumerate() {
            let values = assign_array(batch.column(3 + live.len() + i), &self.table.columns[*at])?;
            new.push((*at, values.into_iter()));
        }
        let row = |number: usize| {
            let mut row = vec![Datum::Null; self.table.columns.len()];
            for (at, array) in &old {
                row[*at] = array_datum(array, number);
            }
            for (at, values) in &mut new {
                row[*at] = values.next().expect("a value for each row");
            }
            row
        };
        Ok((0..batch.num_rows()).map(row).collect())
    }
}
