//! SELECT ... FOR UPDATE, FOR NO KEY UPDATE, FOR SHARE and FOR KEY SHARE, NOWAIT and SKIP LOCKED.
//!
//! 1. Rows are locked in the order in which they come, before they are answered, and no more of them than LIMIT allows.
//! 2. A row that another transaction has changed while this waited (READ COMMITTED) is evaluated again in its newest
//!    version, and answered if it still qualifies. The order of the rows is that of the versions seen first, as in
//!    PostgreSQL.
//! 3. The query locks rows of tables: no grouping, no DISTINCT, no set operation. Tables may be joined; those of which
//!    rows may be missing are not locked. A row that is evaluated again stands beside the same rows of the others; it
//!    fails (40001) where an outer join would put another in such a row's place. The query is a statement by itself, or
//!    a part of WHERE in UPDATE or DELETE (see [`within`]).
pub(crate) mod within;

use crate::error::{from_arrow, from_datafusion, undefined_table, unsupported};
use crate::parse::{locking, relation};
use crate::plan::bind::over::{Beside, Over, Part, Rows, Wanted};
use crate::plan::planner::Asked;
use crate::plan::scan::{rid_from_u64, version_from};
use crate::statement::generic::{Plan, Slot};
use crate::statement::outcome::Done;
use crate::statement::run::Run;
use crate::through::{Called, meant};
use crate::transaction::OneRow;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Schema, SchemaRef, UInt64Type};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{Datum, EngineError, LockWait, RelationName, Result, RowLock, RowLockOutcome, Table};
use terrace_grammar::statement::{
    Body, Distinct, Expr, ExprKind, FromItem, Ident, JoinKind, JoinOn, Literal, LockStrength, Locking as Clause, Name,
    Node, Query, Select, walk,
};

/// The kind of lock, and how to wait for it.
type Lock = (RowLock, LockWait);

/// A table of FROM, and how it is joined to those before it.
struct Read<'q> {
    name: &'q Name,
    called: Ident,
    kind: JoinKind,
    on: &'q JoinOn,
    /// Of its rows; `None`: they are not locked.
    lock: Option<Lock>,
}

/// What a locking query reads.
struct Reads<'q> {
    select: &'q Select,
    tables: Vec<Read<'q>>,
    /// WHERE, and what some joins compare.
    filter: Option<Expr>,
}

/// Of a table that is locked, or stands beside: the plan's column with the addresses of its rows (behind it are those
/// with their versions), and the lock.
struct Place {
    table: Arc<Table>,
    column: usize,
    lock: Option<Lock>,
    /// A row may stand beside none of its.
    padded: bool,
}

/// Tables of joins, in order, and what some of these compare.
fn flatten<'q>(
    item: &'q FromItem,
    (kind, on): (JoinKind, &'q JoinOn),
    tables: &mut Vec<Read<'q>>,
    conditions: &mut Vec<Expr>,
) -> Result<()> {
    const NOTHING: &JoinOn = &JoinOn::Nothing;
    match item {
        FromItem::Table { name, only: _, alias } if alias.as_ref().is_none_or(|alias| alias.columns.is_empty()) => {
            let called = alias.as_ref().map_or(name.last(), |alias| &alias.name).clone();
            tables.push(Read { name, called, kind, on, lock: None });
            Ok(())
        }
        FromItem::Table { .. } => Err(unsupported("column aliases of a target")),
        FromItem::Join {
            kind: own @ (JoinKind::Cross | JoinKind::Inner | JoinKind::Left),
            sides,
            on: by,
            alias: None,
            at: _,
        } => {
            let (first, is_table) = (tables.len(), matches!(sides[1], FromItem::Table { .. }));
            flatten(&sides[0], (kind, on), tables, conditions)?;
            match (&sides[1], own, by) {
                (right @ FromItem::Table { .. }, ..) => flatten(right, (*own, by), tables, conditions),
                (right, JoinKind::Cross | JoinKind::Inner, JoinOn::Nothing) => {
                    flatten(right, (JoinKind::Cross, NOTHING), tables, conditions)
                }
                (right, JoinKind::Inner, JoinOn::On(condition)) => {
                    conditions.push(Expr::clone(condition));
                    flatten(right, (JoinKind::Cross, NOTHING), tables, conditions)
                }
                _ => Err(unsupported("FOR UPDATE of this form of a join")),
            }?;
            // What it names would else be looked for among all tables.
            if (first > 0 || !is_table) && !names_only(by, &tables[first..]) {
                return Err(unsupported("this condition of a join of some of the tables that FOR UPDATE locks")
                    .with_hint("Write the tables' names before those of the columns."));
            }
            Ok(())
        }
        FromItem::Join { .. } => Err(unsupported("FOR UPDATE of this form of a join")),
        FromItem::File { .. } | FromItem::Query { .. } | FromItem::Functions { .. } => Err(unsupported("this target")),
    }
}

/// Whether a condition has no query within, and names columns of these tables alone, and by the tables' names.
fn names_only(on: &JoinOn, tables: &[Read<'_>]) -> bool {
    let condition = match on {
        JoinOn::Nothing => return true,
        JoinOn::Using { .. } | JoinOn::Natural => return false,
        JoinOn::On(condition) => condition,
    };
    let mut all = true;
    walk(Node::Expr(condition), &mut |node| {
        all &= match node {
            Node::Query(_) => false,
            Node::Expr(Expr { kind: ExprKind::Column(name), .. }) => match name.parts() {
                [table, _] => tables.iter().any(|own| own.called.name == table.name),
                _ => false,
            },
            Node::Expr(_) => true,
        };
        all
    });
    all
}

/// What a locking query reads.
fn reads_of(query: &Query) -> Result<Reads<'_>> {
    let not_with = |what: &str| EngineError::new("0A000", format!("FOR UPDATE is not allowed with {what}"));
    let Body::Select(select) = &query.body else { return Err(not_with("UNION/INTERSECT/EXCEPT")) };
    if query.with.is_some() {
        return Err(unsupported("FOR UPDATE with WITH"));
    }
    if select.distinct != Distinct::No {
        return Err(not_with("DISTINCT clause"));
    }
    if select.group.is_some() || select.having.is_some() {
        return Err(not_with("GROUP BY clause"));
    }
    if !select.windows.is_empty() {
        return Err(not_with("window functions"));
    }
    let (mut tables, mut conditions) = (vec![], vec![]);
    for item in &select.from {
        flatten(item, (JoinKind::Cross, &JoinOn::Nothing), &mut tables, &mut conditions)?;
    }
    if tables.is_empty() {
        return Err(unsupported("FOR UPDATE without a table"));
    }
    query.locking.iter().try_for_each(|clause| note_locks(clause, &mut tables))?;
    conditions.extend(select.filter.clone());
    let filter = match conditions.len() {
        0 | 1 => conditions.pop(),
        _ => Some(Expr { at: conditions[0].at, kind: ExprKind::And(conditions) }),
    };
    Ok(Reads { select, tables, filter })
}

/// Which of the tables a clause locks. Of several locks of a table the strongest holds, and the shortest wait.
fn note_locks(Clause { strength, of, wait, .. }: &Clause, tables: &mut [Read<'_>]) -> Result<()> {
    let clause = match strength {
        LockStrength::KeyShare => "FOR KEY SHARE",
        LockStrength::Share => "FOR SHARE",
        LockStrength::NoKeyUpdate => "FOR NO KEY UPDATE",
        LockStrength::Update => "FOR UPDATE",
    };
    let place = |of: &Name| {
        let found = tables.iter().position(|table| of.parts().len() == 1 && of.last().name == table.called.name);
        let message = format!("relation \"{}\" in {clause} clause not found in FROM clause", of.shown());
        found.ok_or_else(|| EngineError::new("42P01", message))
    };
    let places: Vec<usize> = match of.is_empty() {
        true => (0..tables.len()).collect(),
        false => of.iter().map(place).collect::<Result<_>>()?,
    };
    let patience = |wait: LockWait| match wait {
        LockWait::Wait => 2,
        LockWait::Skip => 1,
        LockWait::NoWait => 0,
    };
    let (lock, wait) = locking::stated(*strength, *wait);
    for at in places {
        let table = &mut tables[at];
        if table.kind == JoinKind::Left {
            let message = format!("{clause} cannot be applied to the nullable side of an outer join");
            return Err(EngineError::new("0A000", message));
        }
        table.lock = Some(match table.lock {
            None => (lock, wait),
            Some((other, before)) => (
                if other as u8 > lock as u8 { other } else { lock },
                if patience(before) < patience(wait) { before } else { wait },
            ),
        });
    }
    Ok(())
}

/// Bytes that a batch of one row takes beside its values.
const ROW: usize = 512;

/// The rows that are locked, each a batch.
struct LockedRows {
    schema: SchemaRef,
    rows: Vec<RecordBatch>,
    /// The memory that they take.
    memory: MemoryReservation,
}

impl Run<'_> {
    pub(crate) async fn select_locking(&self, query: &Query) -> Result<Done> {
        let LockedRows { schema, rows, memory } = self.lock_rows(query, true).await?;
        let rows = rows.into_iter().map(move |row| {
            let _counted = &memory;
            Ok(row)
        });
        let stream = RecordBatchStreamAdapter::new(schema, stream::iter(rows));
        Ok(Done::Rows(Box::pin(stream)))
    }

    /// What refuses a query that locks, of one that is planned only; its tables are locked against changes of their
    /// definitions.
    pub(crate) async fn permit_locking(&self, query: &Query) -> Result<()> {
        let Reads { tables, .. } = reads_of(query)?;
        self.places(&tables).await.map(drop)
    }

    /// `alone`: the query is the statement.
    async fn lock_rows(&self, query: &Query, alone: bool) -> Result<LockedRows> {
        let Reads { select, tables, filter } = reads_of(query)?;
        let (limit, offset) = self.bounds(query)?;
        let (places, called, beside) = self.places(&tables).await?;
        let over = Over {
            table: &places[0].table,
            called: &called,
            rows: Rows::Target,
            part: Part::Locking,
            with: None,
            from: &[],
            given: None,
            beside: &beside,
            filter: filter.as_ref(),
            order: &query.order,
            wanted: select.items.iter().map(Wanted::Item).collect(),
            kept: false,
        };
        let addresses = places.iter().enumerate().map(|(at, place)| place.columns(at)).sum();
        let planned = match alone {
            true => self.plan_again(Slot::Locking, Asked::Over(&over)).await,
            false => self.plan_over(&over).await.map(Plan::once),
        };
        let plan = planned.map_err(|error| match error.state.0 {
            // A group has no row address.
            "42803" => EngineError::new("0A000", "FOR UPDATE is not allowed with aggregate functions"),
            _ => error,
        })?;
        refuse_aggregates(plan.logical())?;
        let fields: Vec<_> = plan.logical().schema().as_arrow().fields().iter().skip(addresses).cloned().collect();
        let schema = plan.origins().skip(addresses).put(Arc::new(Schema::new(fields)));
        let mut rows: Vec<RecordBatch> = vec![];
        let mut locked = 0;
        let wanted = limit.map_or(usize::MAX, |limit| limit.saturating_add(offset));
        let mut stream = self.stream_again(&plan, None, Arc::default()).await?;
        let memory = self.memory("rows that are locked");
        while locked < wanted {
            let Some(batch) = self.cancel.run(async { Ok(stream.next().await) }).await? else { break };
            let batch = batch.map_err(from_datafusion)?;
            // A row keeps its whole batch in memory.
            let bytes = batch.get_array_memory_size() + batch.num_rows() * ROW;
            memory.try_grow(bytes).map_err(from_datafusion)?;
            for at in 0..batch.num_rows() {
                if locked == wanted {
                    break;
                }
                if let Some(row) = self.lock_one(&places, &plan, batch.slice(at, 1)).await? {
                    locked += 1;
                    if locked > offset {
                        rows.push(row);
                    }
                }
            }
        }
        assert!(locked <= wanted, "invariant 1: no more than LIMIT asks for");
        assert_eq!(rows.len(), locked.saturating_sub(offset), "invariant 1: those behind OFFSET are answered");
        let output: Vec<usize> = (addresses..addresses + schema.fields().len()).collect();
        let rows = rows.into_iter().map(|row| row.project(&output)).collect::<Result<_, _>>();
        Ok(LockedRows { schema, rows: rows.map_err(from_arrow)?, memory })
    }

    /// The row to answer (invariant 2).
    async fn lock_one(&self, places: &[Place], plan: &Plan, row: RecordBatch) -> Result<Option<RecordBatch>> {
        assert_eq!(row.num_rows(), 1, "a row at a time");
        let number = |at: usize| row.column(at).as_primitive::<UInt64Type>().value(0);
        let mut newest = vec![];
        for (target, place) in places.iter().enumerate() {
            let (Some((strength, wait)), at) = (place.lock, place.column) else { continue };
            let (rid, version) = (rid_from_u64(number(at)), version_from(number(at + 1), number(at + 2)));
            let lock =
                async { self.cell.lock().await.open().lock_row(&place.table, rid, version, strength, wait).await };
            match self.cancel.run(lock).await? {
                RowLockOutcome::Locked => {}
                RowLockOutcome::Gone | RowLockOutcome::Skipped => return Ok(None),
                RowLockOutcome::Changed { row, version } => newest.push(OneRow { target, rid, row, version }),
            }
        }
        if newest.is_empty() {
            return Ok(Some(row));
        }
        let batches = self.collect_again(plan, newest).await?;
        let address = |batch: &RecordBatch, column: usize, at: usize| {
            let column = batch.column(column).as_primitive::<UInt64Type>();
            column.is_valid(at).then(|| column.value(at))
        };
        // Beside the same rows of the other tables, or of some that may be missing beside none.
        let find = |may_differ: fn(&Place, Option<u64>) -> bool| {
            let same = |batch: &RecordBatch, at: usize| {
                places.iter().all(|place| {
                    let now = address(batch, place.column, at);
                    now == address(&row, place.column, 0) || may_differ(place, now)
                })
            };
            let found = |batch: &RecordBatch| (0..batch.num_rows()).find(|at| same(batch, *at));
            batches.iter().find_map(|batch| found(batch).map(|at| batch.slice(at, 1)))
        };
        let found = find(|_, _| false).or_else(|| find(|place, now| place.padded && now.is_none()));
        if found.is_none() && find(|place, _| place.padded).is_some() {
            // In PostgreSQL it would stand beside none, though it stands beside another row now.
            return Err(EngineError::new("40001", "could not serialize access due to concurrent update"));
        }
        Ok(found)
    }

    /// The tables, the first of which is the plan's target, and what that is called; the others stand beside it.
    async fn places<'q>(&self, tables: &[Read<'q>]) -> Result<(Vec<Place>, Called, Vec<Beside<'q>>)> {
        let (mut places, mut beside): (Vec<Place>, Vec<Beside<'q>>) = (vec![], vec![]);
        let mut target = Called::so(&tables[0].called.name);
        let mut column = 0;
        for (number, Read { name, called, kind, on, lock }) in tables.iter().enumerate() {
            let named = relation(name)?;
            let table = match lock {
                Some(_) if number == 0 && self.begin_statement().await.view(&named).is_some() => {
                    let (table, seen) = self.table_behind(&named, &called.name).await?;
                    target = seen;
                    table
                }
                Some(_) => self.locked_table(&named, false, Rights::SELECT | Rights::UPDATE).await?,
                None => self.table_beside(&named).await?,
            };
            if number > 0 {
                let target = lock.map(|_| number);
                beside.push(Beside { table: table.clone(), called: called.clone(), kind: *kind, on, target });
            }
            let place = Place { table, column, lock: *lock, padded: *kind == JoinKind::Left };
            column += place.columns(number);
            places.push(place);
        }
        Ok((places, target, beside))
    }

    /// The table whose rows a view shows.
    async fn table_behind(&self, name: &RelationName, called: &str) -> Result<(Arc<Table>, Called)> {
        let catalog = self.begin_statement().await;
        self.info.permit_lookup(&catalog, name)?;
        let (table, through) = meant(&catalog, name, Rights::DELETE).map_err(|error| match error.state.0 {
            "55000" => unsupported("FOR UPDATE of a view through which no rows are changed"),
            _ => error,
        })?;
        let seen = Called { name: called.to_owned(), through };
        self.permit_changed((&table, &seen), Rights::UPDATE, &[]).await?;
        self.lock(&table, false).await?;
        Ok((table, seen))
    }

    /// A table that is read and not locked.
    async fn table_beside(&self, name: &RelationName) -> Result<Arc<Table>> {
        let catalog = self.begin_statement().await;
        self.info.permit_lookup(&catalog, name)?;
        match catalog.table(name) {
            Some(table) => Ok(table.clone()),
            None if catalog.view(name).is_some() => Err(unsupported("FOR UPDATE beside a view")),
            None => Err(undefined_table(name)),
        }
    }

    /// LIMIT and OFFSET.
    fn bounds(&self, query: &Query) -> Result<(Option<usize>, usize)> {
        if query.with_ties {
            return Err(unsupported("FETCH FIRST ... WITH TIES"));
        }
        let limit = query.limit.as_ref().map(|l| self.count(l, "LIMIT")).transpose()?.flatten();
        let offset = query.offset.as_ref().map(|o| self.count(o, "OFFSET")).transpose()?.flatten().unwrap_or(0);
        Ok((limit, offset))
    }

    /// `None`: NULL, or ALL.
    fn count(&self, expr: &Expr, clause: &str) -> Result<Option<usize>> {
        let number = match &expr.kind {
            ExprKind::Literal(Literal::Null) => return Ok(None),
            ExprKind::Literal(Literal::Int(number)) => Some(*number),
            ExprKind::Parameter(number) => match self.parameter(*number)? {
                Datum::Null => return Ok(None),
                Datum::Int8(n) => Some(n),
                Datum::Int4(n) => Some(n.into()),
                _ => None,
            },
            _ => None,
        };
        match number {
            Some(n) if n >= 0 => Ok(Some(n as usize)),
            Some(_) => {
                let state = if clause == "LIMIT" { "2201W" } else { "2201X" };
                Err(EngineError::new(state, format!("{clause} must not be negative")))
            }
            None => Err(unsupported(format!("an expression in {clause} with FOR UPDATE"))),
        }
    }
}

impl Place {
    /// How many of the plan's columns it has, as the table of that number.
    fn columns(&self, number: usize) -> usize {
        if number == 0 || self.lock.is_some() { 3 } else { 1 }
    }
}

/// Refuses a query, planned without its locks, that cannot lock what it reads.
pub(crate) fn refuse_shape(query: &Query, plan: &LogicalPlan) -> Result<()> {
    reads_of(query)?;
    refuse_aggregates(plan)
}

fn refuse_aggregates(plan: &LogicalPlan) -> Result<()> {
    let mut found = None;
    let visited = plan.apply(|node| {
        match node {
            LogicalPlan::Aggregate(_) => found = Some("aggregate functions"),
            LogicalPlan::Window(_) => found = Some("window functions"),
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    });
    visited.map_err(from_datafusion)?;
    let refused = |what| Err(EngineError::new("0A000", format!("FOR UPDATE is not allowed with {what}")));
    found.map_or(Ok(()), refused)
}
