//! Statements by key, which run straight on the engine: SELECT, UPDATE and DELETE of one row or of a short range of an
//! index, SELECT of a few tables that are joined by key, and INSERT of VALUES. A transactional client sends hardly
//! anything else, and planning such a statement costs many times what running it does.
//!
//! 1. A statement is recognised once (`recognise`), for one version of the catalogue, one role and one time zone. For
//!    another one it is recognised again, or it is planned.
//! 2. The answer is the one that planning would give, in values, types, names and errors. A statement for which this is
//!    not certain is not recognised.
//! 3. An answer is one batch. A range that turns out to be long is left to the planner.
//! 4. `now()` is a value of the transaction, never of the recognised statement.
use crate::access::Actor;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::types::Style;
use terrace_engine::{Catalog, ColumnDef, Datum, DatumRef, Index, Result, RowView, Table, Txn};

mod answer;
mod change;
mod join;
mod recognise;
mod rows;
mod select;
mod values;

use change::{Change, Insert};
use join::Join;
pub(crate) use recognise::{Use, recognise, recognise_literals};
use select::Select;
pub(crate) use values::Bound;
use values::{Cell, batch};

/// Rows that a statement changes before it lets other sessions have the thread for a moment.
const ROWS_AT_ONCE: usize = 64;

#[derive(Debug)]
enum Action {
    Select(Box<Select>),
    Join(Box<Join>),
    Change(Change),
    Insert(Insert),
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
    /// More than one where they are joined, in the order of FROM.
    tables: Vec<Arc<Table>>,
    action: Action,
}

pub(crate) enum ByKeyDone {
    Rows(RecordBatch),
    Tag(String),
}

/// A look-up of one row by its key, which needs nothing but the row's columns.
pub(crate) struct LookUp<'f> {
    pub(crate) index: &'f Index,
    pub(crate) key: Vec<Datum>,
    cells: &'f [Cell],
}

/// The columns that a look-up shows, of the row it found.
#[derive(Clone, Copy)]
pub struct FoundRow<'a> {
    row: RowView<'a>,
    cells: &'a [Cell],
    /// What is shown as text, in order.
    texts: &'a [Datum],
}

impl LookUp<'_> {
    /// Shows the row.
    pub(crate) fn show(&self, row: RowView<'_>, show: impl FnOnce(FoundRow<'_>)) {
        let as_text = |cell: &Cell| match cell.plain() {
            Some((at, true)) => Some(match row.get(at) {
                DatumRef::Null => Datum::Null,
                value => Datum::text(value.to_string()),
            }),
            _ => None,
        };
        let texts: Vec<Datum> = self.cells.iter().filter_map(as_text).collect();
        show(FoundRow { row, cells: self.cells, texts: &texts });
    }
}

impl<'a> FoundRow<'a> {
    pub fn values(self) -> impl ExactSizeIterator<Item = DatumRef<'a>> {
        let mut texts = self.texts.iter();
        self.cells.iter().map(move |cell| match cell.plain() {
            Some((at, false)) => self.row.get(at),
            _ => texts.next().expect("a text for each of these").as_ref(),
        })
    }

    /// The row as `execute` would answer it; `schema`: the statement's.
    pub fn batch(self, schema: &SchemaRef) -> Result<RecordBatch> {
        let bound = Bound { parameters: &[], now: 0 };
        batch(self.cells, schema, [move |at| self.row.get(at)].into_iter(), bound)
    }
}

impl ByKey {
    /// Whether it still is what its text says.
    pub(crate) fn means(&self, version: u64, acting: &str) -> bool {
        self.version == version && self.style == Style::current() && *self.role == *acting
    }

    /// The same, for a role that may do it. Where it may not, planning says why.
    pub(crate) fn permitted(self, role: &Arc<str>, catalog: &Catalog) -> Option<ByKey> {
        let rights = match &self.action {
            Action::Select(select) if select.lock.is_some() => Rights::SELECT | Rights::UPDATE,
            Action::Select(_) | Action::Join(_) => Rights::SELECT,
            Action::Change(Change { sets: Some(_), .. }) => Rights::SELECT | Rights::UPDATE,
            Action::Change(_) => Rights::SELECT | Rights::DELETE,
            // What an error tells of a key is what the role may read.
            Action::Insert(_) => Rights::SELECT | Rights::INSERT,
        };
        let actor = Actor::named(role, catalog);
        self.tables.iter().try_for_each(|table| actor.permit(catalog, table, rights)).ok()?;
        Some(ByKey { role: role.clone(), ..self })
    }

    pub(crate) fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// By its number among those of all tables.
    fn column(&self, mut at: usize) -> &ColumnDef {
        for table in &self.tables {
            match table.columns.get(at) {
                Some(column) => return column,
                None => at -= table.columns.len(),
            }
        }
        unreachable!("recognised in one of the tables")
    }

    /// Whether it changes its table, which is the only one.
    pub(crate) fn writes(&self) -> bool {
        !matches!(self.action, Action::Select(_) | Action::Join(_))
    }

    /// Whether a read-only transaction may run it.
    pub(crate) fn only_reads(&self) -> bool {
        match &self.action {
            Action::Select(select) => select.lock.is_none(),
            Action::Join(_) => true,
            Action::Change(_) | Action::Insert(_) => false,
        }
    }

    /// Where it is a look-up of one row; `None` also where its values are wrong.
    pub(crate) fn look_up(&self, bound: Bound<'_>) -> Option<LookUp<'_>> {
        let Action::Select(select) = &self.action else { return None };
        let (rows, cells) = select.at_once()?;
        Some(LookUp { index: &rows.index, key: rows.sought(bound).ok()?.prefix, cells })
    }

    /// Result columns, as those of a prepared statement.
    pub(crate) fn columns(&self) -> Option<SchemaRef> {
        let returning = match &self.action {
            Action::Select(select) => return Some(select.schema.clone()),
            Action::Join(join) => return Some(join.schema.clone()),
            Action::Change(change) => &change.returning,
            Action::Insert(insert) => &insert.returning,
        };
        returning.as_ref().map(|returning| returning.schema.clone())
    }

    /// Whether its result has these columns.
    pub(crate) fn returns(&self, columns: &Option<SchemaRef>) -> bool {
        let fields = |columns: &Option<SchemaRef>| columns.as_ref().map(|columns| columns.fields().clone());
        fields(&self.columns()) == fields(columns)
    }

    /// `None`: the general way is needed after all. The tables are locked.
    pub(crate) async fn run(&self, txn: &mut Txn, bound: Bound<'_>) -> Result<Option<ByKeyDone>> {
        let [table, ..] = self.tables.as_slice() else { unreachable!("a statement by key has a table") };
        let mut can_use = |index: &Arc<Index>| txn.can_use_index(index);
        let usable = match &self.action {
            Action::Select(select) => can_use(&select.rows.index),
            Action::Join(join) => join.indexes().all(can_use),
            Action::Change(change) => can_use(&change.rows.index),
            Action::Insert(_) => true,
        };
        if !usable {
            return Ok(None);
        }
        match &self.action {
            Action::Select(select) => Ok(Box::pin(select.run(table, txn, bound)).await?.map(ByKeyDone::Rows)),
            Action::Join(join) => Ok(Box::pin(join.run(&self.tables, txn, bound)).await?.map(ByKeyDone::Rows)),
            Action::Change(change) => change.run(table, txn, bound).await,
            Action::Insert(insert) => insert.run(table, txn, bound).await.map(Some),
        }
    }
}
