//! SELECT ... FOR UPDATE, FOR NO KEY UPDATE, FOR SHARE and FOR KEY SHARE, NOWAIT and SKIP LOCKED.
//!
//! 1. Rows are locked in the order in which they come, before they are answered, and no more of them than LIMIT allows.
//! 2. A row that another transaction has changed while this waited (READ COMMITTED) is evaluated again in its newest
//!    version, and answered if it still qualifies. The order of the rows is that of the versions seen first, as in
//!    PostgreSQL.
//! 3. The query reads one table, row by row: no grouping, no DISTINCT, no set operation. It is a statement by itself,
//!    or a part of WHERE in UPDATE or DELETE (see [`within`]).
pub(crate) mod within;

use crate::error::{from_arrow, from_datafusion, unsupported};
use crate::parse::relation;
use crate::plan::bind::over::{Over, Part, Rows, Wanted};
use crate::plan::scan::{rid_from_u64, version_from};
use crate::statement::changes::called;
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
use std::sync::Arc;
use terrace_engine::{Datum, EngineError, LockWait, Result, RowLock, RowLockOutcome, Table};
use terrace_grammar::statement::{
    Body, Distinct, Expr, ExprKind, FromItem, Ident, Literal, LockStrength, LockWait as Wait, Locking as Clause, Name,
    Query, Select,
};

/// The kind of lock, and how to wait for it.
struct Locking {
    lock: RowLock,
    wait: LockWait,
    limit: Option<usize>,
    offset: usize,
}

/// The SELECT of a locking query, and its table with the name that the query gives it.
fn select_of(query: &Query) -> Result<(&Select, &Name, Ident)> {
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
    match select.from.as_slice() {
        [FromItem::Table { name, only: _, alias: None }] => Ok((select, name, called(name, None))),
        [FromItem::Table { name, only: _, alias: Some(alias) }] if alias.columns.is_empty() => {
            Ok((select, name, alias.name.clone()))
        }
        [FromItem::Table { .. }] => Err(unsupported("column aliases of a target")),
        [] => Err(unsupported("FOR UPDATE without a table")),
        [FromItem::Query { .. } | FromItem::Functions { .. }] => Err(unsupported("this target")),
        _ => Err(unsupported("FOR UPDATE of a join")),
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
        let LockedRows { schema, rows, memory } = self.lock_rows(query).await?;
        let rows = rows.into_iter().map(move |row| {
            let _counted = &memory;
            Ok(row)
        });
        let stream = RecordBatchStreamAdapter::new(schema, stream::iter(rows));
        Ok(Done::Rows(Box::pin(stream)))
    }

    async fn lock_rows(&self, query: &Query) -> Result<LockedRows> {
        let (select, name, called) = select_of(query)?;
        let locking = self.locking(query, &called)?;
        let table = self.locked_table(&relation(name)?, false).await?;
        let over = Over {
            table: &table,
            called: &called,
            rows: Rows::Target,
            part: Part::Locking,
            with: None,
            from: &[],
            filter: select.filter.as_ref(),
            order: &query.order,
            wanted: select.items.iter().map(Wanted::Item).collect(),
            kept: false,
        };
        let plan = self.plan_over(&over).await.map_err(|error| match error.state.0 {
            // A group has no row address.
            "42803" => EngineError::new("0A000", "FOR UPDATE is not allowed with aggregate functions"),
            _ => error,
        })?;
        refuse_aggregates(&plan)?;
        let fields: Vec<_> = plan.schema().as_arrow().fields().iter().skip(3).cloned().collect();
        let schema = Arc::new(Schema::new(fields));
        let mut rows: Vec<RecordBatch> = vec![];
        let mut locked = 0;
        let wanted = locking.limit.map_or(usize::MAX, |limit| limit.saturating_add(locking.offset));
        let mut stream = self.stream(self.physical(&plan).await?, None)?;
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
                if let Some(row) = self.lock_one(&table, &plan, &locking, batch.slice(at, 1)).await? {
                    locked += 1;
                    if locked > locking.offset {
                        rows.push(row);
                    }
                }
            }
        }
        assert!(locked <= wanted, "invariant 1: no more than LIMIT asks for");
        assert_eq!(rows.len(), locked.saturating_sub(locking.offset), "invariant 1: those behind OFFSET are answered");
        let output: Vec<usize> = (3..3 + schema.fields().len()).collect();
        let rows = rows.into_iter().map(|row| row.project(&output)).collect::<Result<_, _>>();
        Ok(LockedRows { schema, rows: rows.map_err(from_arrow)?, memory })
    }

    /// The row to answer (invariant 2).
    async fn lock_one(
        &self,
        table: &Arc<Table>,
        plan: &LogicalPlan,
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
            RowLockOutcome::Changed { row, version } => {
                let batches = self.collect(plan, Some(OneRow { rid, row, version })).await?;
                Ok(batches.iter().find(|b| b.num_rows() > 0).map(|b| b.slice(0, 1)))
            }
        }
    }

    fn locking(&self, query: &Query, called: &Ident) -> Result<Locking> {
        let [Clause { at: _, strength, of, wait }] = query.locking.as_slice() else {
            return Err(unsupported("several FOR UPDATE clauses"));
        };
        if let Some(of) = of.iter().find(|of| of.parts().len() > 1 || of.last().name != called.name) {
            let message = format!("relation \"{}\" in FOR UPDATE clause not found in FROM clause", of.shown());
            return Err(EngineError::new("42P01", message));
        }
        let lock = match strength {
            LockStrength::KeyShare => RowLock::KeyShare,
            LockStrength::Share => RowLock::Share,
            LockStrength::NoKeyUpdate => RowLock::NoKeyUpdate,
            LockStrength::Update => RowLock::Exclusive,
        };
        let wait = match wait {
            Wait::Wait => LockWait::Wait,
            Wait::NoWait => LockWait::NoWait,
            Wait::SkipLocked => LockWait::Skip,
        };
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
