//! SELECT ... FOR UPDATE, FOR NO KEY UPDATE, FOR SHARE and FOR KEY SHARE, NOWAIT and SKIP LOCKED.
//!
//! 1. Rows are locked in the order in which they come, before they are answered, and no more of them than LIMIT allows.
//! 2. A row that another transaction has changed while this waited (READ COMMITTED) is evaluated again in its newest
//!    version, and answered if it still qualifies. The order of the rows is that of the versions seen first, as in
//!    PostgreSQL.
//! 3. The query locks one table, row by row: no grouping, no DISTINCT, no set operation. Others may be joined to it by
//!    inner joins; a row that is evaluated again stands beside the same rows of them. It is a statement by itself, or a
//!    part of WHERE in UPDATE or DELETE (see [`within`]).
pub(crate) mod within;

use crate::error::{from_arrow, from_datafusion, undefined_table, unsupported};
use crate::parse::{locking, relation};
use crate::plan::bind::over::{Over, Part, Rows, Wanted};
use crate::plan::planner::Asked;
use crate::plan::scan::{rid_from_u64, version_from};
use crate::statement::generic::{Plan, Slot};
use crate::statement::outcome::Done;
use crate::statement::run::Run;
use crate::transaction::OneRow;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Schema, SchemaRef, UInt64Type};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use std::ops::Range;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{Datum, EngineError, LockWait, Result, RowLock, RowLockOutcome, Table};
use terrace_grammar::statement::{
    Body, Distinct, Expr, ExprKind, FromItem, Ident, JoinKind, JoinOn, Literal, Locking as Clause, Name, Query, Select,
};

/// The kind of lock, and how to wait for it.
struct Locking {
    lock: RowLock,
    wait: LockWait,
    limit: Option<usize>,
    offset: usize,
}

/// A table of FROM, with the name that the query gives it.
type Called<'q> = (&'q Name, Ident);

/// What a locking query reads, and which of it is locked.
struct Reads<'q> {
    select: &'q Select,
    target: Called<'q>,
    /// What is joined to it.
    beside: Vec<Called<'q>>,
    /// WHERE, and what the joins compare.
    filter: Option<Expr>,
}

/// Tables of inner joins, and what these compare.
fn flatten<'q>(item: &'q FromItem, tables: &mut Vec<Called<'q>>, conditions: &mut Vec<Expr>) -> Result<()> {
    match item {
        FromItem::Table { name, only: _, alias: None } => tables.push((name, name.last().clone())),
        FromItem::Table { name, only: _, alias: Some(alias) } if alias.columns.is_empty() => {
            tables.push((name, alias.name.clone()));
        }
        FromItem::Table { .. } => return Err(unsupported("column aliases of a target")),
        FromItem::Join { kind: JoinKind::Cross | JoinKind::Inner, sides, on, alias: None, at: _ } => {
            sides.iter().try_for_each(|side| flatten(side, tables, conditions))?;
            match on {
                JoinOn::Nothing => {}
                JoinOn::On(condition) => conditions.push(Expr::clone(condition)),
                JoinOn::Natural | JoinOn::Using { .. } => return Err(unsupported("FOR UPDATE of a join with USING")),
            }
        }
        FromItem::Join { .. } => return Err(unsupported("FOR UPDATE of an outer join")),
        FromItem::Query { .. } | FromItem::Functions { .. } => return Err(unsupported("this target")),
    }
    Ok(())
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
    select.from.iter().try_for_each(|item| flatten(item, &mut tables, &mut conditions))?;
    if tables.is_empty() {
        return Err(unsupported("FOR UPDATE without a table"));
    }
    let at = target_of(query, &tables)?;
    let star = select.items.iter().any(|item| matches!(item.expr.kind, ExprKind::Star(None)));
    if star && at > 0 {
        return Err(unsupported("* with FOR UPDATE of a table that is not the first in FROM"));
    }
    conditions.extend(select.filter.clone());
    let filter = match conditions.len() {
        0 | 1 => conditions.pop(),
        _ => Some(Expr { at: conditions[0].at, kind: ExprKind::And(conditions) }),
    };
    let target = tables.remove(at);
    Ok(Reads { select, target, beside: tables, filter })
}

/// Which of the tables is locked.
fn target_of(query: &Query, tables: &[Called<'_>]) -> Result<usize> {
    let [Clause { of, .. }] = query.locking.as_slice() else {
        return Err(unsupported("several FOR UPDATE clauses"));
    };
    let place = |of: &Name| {
        let found = tables.iter().position(|(_, called)| of.parts().len() == 1 && of.last().name == called.name);
        let message = format!("relation \"{}\" in FOR UPDATE clause not found in FROM clause", of.shown());
        found.ok_or_else(|| EngineError::new("42P01", message))
    };
    let places = of.iter().map(place).collect::<Result<Vec<usize>>>()?;
    match (places.as_slice(), tables) {
        ([], [_]) => Ok(0),
        ([first, rest @ ..], _) if rest.iter().all(|other| other == first) => Ok(*first),
        _ => {
            let error = unsupported("FOR UPDATE of several tables");
            Err(error.with_hint("Name the one that is to be locked: FOR UPDATE OF t."))
        }
    }
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

    /// `alone`: the query is the statement.
    async fn lock_rows(&self, query: &Query, alone: bool) -> Result<LockedRows> {
        let Reads { select, target: (name, called), beside, filter } = reads_of(query)?;
        let locking = self.locking(query)?;
        let table = self.locked_table(&relation(name)?, false, Rights::SELECT | Rights::UPDATE).await?;
        let beside = self.beside(&beside).await?;
        let over = Over {
            table: &table,
            called: &crate::through::Called::so(&called.name),
            rows: Rows::Target,
            part: Part::Locking,
            with: None,
            from: &[],
            beside: &beside,
            filter: filter.as_ref(),
            order: &query.order,
            wanted: select.items.iter().map(Wanted::Item).collect(),
            kept: false,
        };
        let addresses = 3 + beside.len();
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
        let wanted = locking.limit.map_or(usize::MAX, |limit| limit.saturating_add(locking.offset));
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
                if let Some(row) = self.lock_one(&table, (&plan, 3..addresses), &locking, batch.slice(at, 1)).await? {
                    locked += 1;
                    if locked > locking.offset {
                        rows.push(row);
                    }
                }
            }
        }
        assert!(locked <= wanted, "invariant 1: no more than LIMIT asks for");
        assert_eq!(rows.len(), locked.saturating_sub(locking.offset), "invariant 1: those behind OFFSET are answered");
        let output: Vec<usize> = (addresses..addresses + schema.fields().len()).collect();
        let rows = rows.into_iter().map(|row| row.project(&output)).collect::<Result<_, _>>();
        Ok(LockedRows { schema, rows: rows.map_err(from_arrow)?, memory })
    }

    /// The row to answer (invariant 2).
    async fn lock_one(
        &self,
        table: &Arc<Table>,
        (plan, beside): (&Plan, Range<usize>),
        locking: &Locking,
        row: RecordBatch,
    ) -> Result<Option<RecordBatch>> {
        assert_eq!(row.num_rows(), 1, "a row at a time");
        let number = |at: usize| row.column(at).as_primitive::<UInt64Type>().value(0);
        let (rid, version) = (rid_from_u64(number(0)), version_from(number(1), number(2)));
        let lock =
            async { self.cell.lock().await.open().lock_row(table, rid, version, locking.lock, locking.wait).await };
        match self.cancel.run(lock).await? {
            RowLockOutcome::Locked => Ok(Some(row)),
            RowLockOutcome::Gone | RowLockOutcome::Skipped => Ok(None),
            RowLockOutcome::Changed { row: newest, version } => {
                let batches = self.collect_again(plan, Some(OneRow { rid, row: newest, version })).await?;
                let address = |batch: &RecordBatch, column: usize, at: usize| {
                    batch.column(column).as_primitive::<UInt64Type>().value(at)
                };
                // Beside the same rows of the other tables.
                let same = |batch: &RecordBatch, at: usize| {
                    beside.clone().all(|column| address(batch, column, at) == address(&row, column, 0))
                };
                let found = batches
                    .iter()
                    .find_map(|batch| (0..batch.num_rows()).find(|at| same(batch, *at)).map(|at| batch.slice(at, 1)));
                Ok(found)
            }
        }
    }

    /// The tables that are joined to the one that is locked.
    async fn beside(&self, tables: &[Called<'_>]) -> Result<Vec<(Arc<Table>, Ident)>> {
        if tables.is_empty() {
            return Ok(vec![]);
        }
        let catalog = self.begin_statement().await;
        let of = |(name, called): &Called<'_>| {
            let name = relation(name)?;
            self.info.permit_lookup(&catalog, &name)?;
            match catalog.table(&name) {
                Some(table) => Ok((table.clone(), called.clone())),
                None if catalog.view(&name).is_some() => Err(unsupported("FOR UPDATE beside a view")),
                None => Err(undefined_table(&name)),
            }
        };
        tables.iter().map(of).collect()
    }

    fn locking(&self, query: &Query) -> Result<Locking> {
        let [Clause { strength, wait, .. }] = query.locking.as_slice() else {
            return Err(unsupported("several FOR UPDATE clauses"));
        };
        let (lock, wait) = locking::stated(*strength, *wait);
        if query.with_ties {
            return Err(unsupported("FETCH FIRST ... WITH TIES"));
        }
        let limit = query.limit.as_ref().map(|l| self.count(l, "LIMIT")).transpose()?.flatten();
        let offset = query.offset.as_ref().map(|o| self.count(o, "OFFSET")).transpose()?.flatten().unwrap_or(0);
        Ok(Locking { lock, wait, limit, offset })
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
