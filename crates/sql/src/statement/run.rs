//! Runs one statement in the session's transaction.
//!
//! 1. Names are resolved, then tables are locked, then names are resolved again if a definition was committed
//!    meanwhile: a statement runs on definitions that cannot change under it.
//! 2. Everything that can wait can be cancelled. After a cancel, the transaction is rolled back.
use crate::access::hidden;
use crate::cancel::CancelToken;
use crate::error::{from_datafusion, unsupported};
use crate::panics::{caught, caught_now};
use crate::parse::sequence_calls::Call;
use crate::pgcatalog::SessionInfo;
use crate::plan::bind::over::Over;
use crate::plan::bind::reads::Read;
use crate::plan::bind::{Place, Tree};
use crate::plan::planner::{Asked, Planned, Planner, task, typed};
use crate::statement::generic::Generics;
use crate::statement::within::Earlier;
use crate::transaction::{OneRow, StatementContext, TxnCell};
use crate::values::{is_sequence, to_scalar};
use datafusion::arrow::array::RecordBatch;
use datafusion::common::ParamValues;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use terrace_engine::catalog::access::{Access, FIRST_OWNER, Rights, Securable};
use terrace_engine::types::Style;
use terrace_engine::{Catalog, DataType, Database, Datum, EngineError, RelationName, Result, RowBuf, Space, Table};
use terrace_grammar::statement::Query;
use terrace_storage::ObjectId;

/// DataFusion's configuration and functions for one statement. They are made only if DataFusion is needed, because a
/// copy of them costs more than a statement that does not need it.
pub(crate) struct LazyState<'a> {
    base: &'a SessionState,
    /// The transaction's time: `now()` is the same throughout the transaction.
    clock: &'a Mutex<Option<ExecutionProps>>,
    made: OnceLock<SessionState>,
}

impl<'a> LazyState<'a> {
    pub(crate) fn new(base: &'a SessionState, clock: &'a Mutex<Option<ExecutionProps>>) -> LazyState<'a> {
        LazyState { base, clock, made: OnceLock::new() }
    }

    pub(crate) fn get(&self) -> &SessionState {
        self.made.get_or_init(|| {
            let mut state = SessionState::clone(self.base);
            let options = state.config_options().clone();
            let props = state.execution_props_mut();
            props.mark_start_execution(options);
            let mut clock = self.clock.lock();
            match clock.as_ref() {
                Some(clock) => props.query_execution_start_time = clock.query_execution_start_time,
                None => *clock = Some(props.clone()),
            }
            state
        })
    }

    /// What all sessions start from: configuration and memory are the same in each.
    pub(crate) fn base(&self) -> &'a SessionState {
        self.base
    }

    /// The transaction's time, in microseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        let mut clock = self.clock.lock();
        let props = clock.get_or_insert_with(|| {
            let mut props = ExecutionProps::new();
            props.mark_start_execution(self.base.config_options().clone());
            props
        });
        props.query_execution_start_time.expect("marked when it was made").timestamp_micros()
    }
}

/// All rows of a query; they are counted for as long as this is there.
pub(crate) struct Collected {
    pub(crate) batches: Vec<RecordBatch>,
    _memory: MemoryReservation,
}

impl Deref for Collected {
    type Target = [RecordBatch];
    fn deref(&self) -> &[RecordBatch] {
        &self.batches
    }
}

/// What a plan is made for.
#[derive(Clone, Copy)]
pub(crate) struct PlanFor {
    /// Functions of sequences are called.
    pub(crate) calls: bool,
    /// The current role must be allowed to read what it reads.
    pub(crate) judged: bool,
}

pub(crate) const PLANNED_TO_RUN: PlanFor = PlanFor { calls: true, judged: true };

pub(crate) struct Run<'a> {
    pub(crate) engine: &'a Database,
    pub(crate) state: &'a LazyState<'a>,
    pub(crate) info: &'a SessionInfo,
    pub(crate) cell: &'a TxnCell,
    /// Of the transaction in the cell.
    pub(crate) number: u64,
    pub(crate) cancel: &'a Arc<CancelToken>,
    pub(crate) parameters: &'a [Datum],
    pub(crate) types: &'a [DataType],
    pub(crate) tree: Option<&'a Tree>,
    /// Plans that have run, kept for EXPLAIN ANALYZE.
    pub(crate) captured: Option<&'a Mutex<Vec<Arc<dyn ExecutionPlan>>>>,
    /// The changes within WITH that came before.
    pub(crate) earlier: Option<&'a Earlier>,
    /// The generic plans of the statement, if it was prepared.
    pub(crate) generics: Option<&'a Generics>,
}

impl Run<'_> {
    /// Takes the statement's snapshot and answers the catalogue it sees.
    pub(crate) async fn begin_statement(&self) -> Arc<Catalog> {
        let mut slot = self.cell.lock().await;
        slot.queried = true;
        let txn = slot.open();
        // Parts of a statement have one snapshot.
        if self.earlier.is_none() {
            txn.begin_statement();
        }
        txn.catalog()
    }

    /// What the current role makes is its own.
    pub(crate) async fn own(&self, object: ObjectId) -> Result<()> {
        self.own_in(object, None).await
    }

    /// The same, with the default privileges of what is made in a schema.
    pub(crate) async fn own_in(&self, object: ObjectId, made: Option<(Space, Securable)>) -> Result<()> {
        let catalog = self.begin_statement().await;
        let owner = self.info.actor(&catalog).oid();
        let acl = made.and_then(|(space, kind)| catalog.acl_of_new(owner, space.0, kind));
        if (owner == FIRST_OWNER && acl.is_none()) || self.info.system.is_none() {
            return Ok(());
        }
        let set = async { self.cell.lock().await.open().set_access(object, Access::new(owner, acl)).await };
        self.cancel.run(set).await
    }

    /// 42501 where the current role may not do all of that with a table.
    pub(crate) async fn permit(&self, table: &Table, rights: Rights) -> Result<()> {
        let catalog = self.cell.lock().await.open().catalog();
        self.info.actor(&catalog).permit(&catalog, table, rights)
    }

    /// 42501 where the current role may not do that with columns of a table.
    pub(crate) async fn permit_columns(&self, table: &Table, right: Rights, columns: &[usize]) -> Result<()> {
        let catalog = self.cell.lock().await.open().catalog();
        self.info.actor(&catalog).permit_columns(&catalog, table, right, columns.iter().copied())
    }

    /// 42501 where the current role may not read what a plan names.
    fn permit_reads(&self, reads: &[Read], catalog: &Catalog) -> Result<()> {
        match reads.is_empty() {
            true => Ok(()),
            false => {
                let actor = self.info.actor(catalog);
                reads.iter().try_for_each(|read| read.permit(&actor, catalog))
            }
        }
    }

    /// An error as the current role may see it, which has written values to these columns.
    pub(crate) async fn hidden(&self, error: EngineError, written: &[usize]) -> EngineError {
        if error.shown.is_none() {
            return error;
        }
        let own = self.cell.lock().await.txn.as_ref().map(|txn| txn.catalog());
        let catalog = own.unwrap_or_else(|| self.engine.catalog());
        hidden(error, &self.info.actor(&catalog), &catalog, written)
    }

    /// 42501 where the current role may do nothing of that with a table.
    pub(crate) async fn permit_any(&self, table: &Table, rights: Rights) -> Result<()> {
        let catalog = self.cell.lock().await.open().catalog();
        self.info.actor(&catalog).permit_any(&catalog, table, rights)
    }

    pub(crate) async fn lock(&self, table: &Table, write: bool) -> Result<()> {
        let lock = async { self.cell.lock().await.open().lock_table(table, write).await };
        self.cancel.run(lock).await
    }

    /// Finds and locks a table to write to (invariant 1). 42501 where the current role may do that with no column of
    /// it: with which it may, the caller asks when it knows them.
    pub(crate) async fn write_table(&self, name: &RelationName, rights: Rights) -> Result<Arc<Table>> {
        self.locked_table(name, true, rights).await
    }

    /// The same, to write or to read.
    pub(crate) async fn locked_table(&self, name: &RelationName, write: bool, rights: Rights) -> Result<Arc<Table>> {
        loop {
            let version = self.engine.catalog().version();
            let catalog = self.begin_statement().await;
            let actor = self.info.actor(&catalog);
            self.info.permit_lookup(&catalog, name)?;
            let table = catalog.table(name).ok_or_else(|| crate::error::no_table(&catalog, name))?;
            crate::statement::sequence::refuse_sequence(table)?;
            for (right, ..) in Rights::ALL.iter().filter(|(right, ..)| rights.covers(*right)) {
                actor.permit_columns(&catalog, table, *right, [])?;
            }
            let locked = self.lock(table, write).await;
            if self.engine.catalog().version() == version {
                return locked.map(|()| table.clone());
            }
            // TRUNCATE gives a table another identity, so the name is looked up again.
            locked.or_else(|e| if e.state.0 == "42P01" { Ok(()) } else { Err(e) })?;
        }
    }

    /// Plans a query, and locks what it reads.
    pub(crate) async fn plan_tree(&self, query: &Query) -> Result<LogicalPlan> {
        self.plan_asked(Asked::Query(query), PLANNED_TO_RUN).await
    }

    /// The same for a query that is not run: no function of a sequence is called.
    pub(crate) async fn plan_unrun(&self, query: &Query) -> Result<LogicalPlan> {
        self.plan_asked(Asked::Query(query), PlanFor { calls: false, ..PLANNED_TO_RUN }).await
    }

    /// The same for a query of which only the columns are wanted: it needs no privilege.
    pub(crate) async fn plan_described(&self, query: &Query) -> Result<LogicalPlan> {
        self.plan_asked(Asked::Query(query), PlanFor { calls: false, judged: false }).await
    }

    /// The same for a query that the statement makes of itself, whatever the current role may read.
    pub(crate) async fn plan_own(&self, query: &Query) -> Result<LogicalPlan> {
        self.plan_asked(Asked::Query(query), PlanFor { judged: false, ..PLANNED_TO_RUN }).await
    }

    /// Plans expressions over a table that is locked already, and locks what they read beside it.
    pub(crate) async fn plan_over(&self, over: &Over<'_>) -> Result<LogicalPlan> {
        self.plan_asked(Asked::Over(over), PLANNED_TO_RUN).await
    }

    pub(crate) async fn plan_asked(&self, asked: Asked<'_>, plan_for: PlanFor) -> Result<LogicalPlan> {
        self.bind(self.planned_asked(asked, plan_for).await?.plan)
    }

    /// The same, with the parameters in it.
    pub(crate) async fn planned_asked(&self, asked: Asked<'_>, PlanFor { calls, judged }: PlanFor) -> Result<Planned> {
        let mut numbers: Option<BTreeMap<Place, Option<i64>>> = None;
        let mut given_back = false;
        loop {
            let version = self.engine.catalog().version();
            let catalog = self.begin_statement().await;
            let planner = Planner { numbers: numbers.as_ref(), ..self.planner(&catalog).await };
            let types: Vec<Option<DataType>> = self.types.iter().copied().map(Some).collect();
            let planned = self.style().scope(|| planner.plan_asked(asked, &types))?;
            if judged {
                self.permit_reads(&planned.reads, &catalog)?;
            }
            self.refuse_changed(&planned.tables)?;
            let mut locked = Ok(());
            for table in &planned.tables {
                locked = self.lock(table, false).await;
                if locked.is_err() {
                    break;
                }
            }
            if self.engine.catalog().version() == version {
                locked?;
                if calls && !given_back && planned.tables.iter().any(|table| is_sequence(table)) {
                    for table in planned.tables.iter().filter(|table| is_sequence(table)) {
                        self.give_back(table).await?;
                    }
                    given_back = true; // The next snapshot sees it.
                    continue;
                }
                if calls && numbers.is_none() && !planned.calls.is_empty() {
                    // It is planned again, with the results of the calls.
                    numbers = Some(Box::pin(self.numbers_of(&planned.calls)).await?);
                    continue;
                }
                return Ok(planned);
            }
            locked.or_else(|e| if e.state.0 == "42P01" { Ok(()) } else { Err(e) })?;
        }
    }

    /// 0A000 where an earlier part of the statement has changed one of these tables.
    pub(crate) fn refuse_changed<'t>(&self, tables: impl IntoIterator<Item = &'t Arc<Table>>) -> Result<()> {
        self.earlier.map_or(Ok(()), |earlier| earlier.refuse(tables))
    }

    /// In which the statement's constants are read.
    pub(crate) fn style(&self) -> Style {
        self.tree.map_or_else(Style::current, Tree::style)
    }

    /// Calls functions of sequences, in order.
    async fn numbers_of(&self, calls: &[(Place, Call)]) -> Result<BTreeMap<Place, Option<i64>>> {
        let mut numbers = BTreeMap::new();
        let read_only = self.info.system.as_ref().is_some_and(|system| system.settings.lock().read_only());
        for (at, call) in calls {
            if read_only && call.writes() {
                let message = "cannot execute nextval() or setval() in a read-only transaction";
                return Err(EngineError::new("25006", message));
            }
            let number = match call {
                Call::Computed(function, args) => self.computed_call(function, args).await?,
                call => Some(self.sequence(call, false).await?),
            };
            numbers.insert(*at, number);
        }
        Ok(numbers)
    }

    /// Plans expressions over what the statement is given, and nothing that would have to be locked.
    pub(crate) async fn plan_over_alone(&self, over: &Over<'_>) -> Result<LogicalPlan> {
        let catalog = match &self.cell.lock().await.txn {
            Some(txn) => txn.catalog(),
            None => self.engine.catalog(),
        };
        let planned = self.planner(&catalog).await.plan_over(over, &[])?;
        self.permit_reads(&planned.reads, &catalog)?;
        assert!(planned.tables.is_empty(), "it reads no table");
        Ok(planned.plan)
    }

    pub(crate) async fn planner<'p>(&'p self, catalog: &'p Arc<Catalog>) -> Planner<'p> {
        Planner {
            state: self.state.get(),
            unusable_indexes: self.unusable_indexes(catalog).await,
            catalog,
            info: self.info,
            text: self.tree.map(Tree::text),
            numbers: None,
            parts: self.earlier.map_or(&[], |earlier| earlier.parts.as_slice()),
        }
    }

    /// The indexes that lack row versions which this statement sees, because they were made after its snapshot.
    async fn unusable_indexes(&self, catalog: &Catalog) -> BTreeSet<ObjectId> {
        let mut slot = self.cell.lock().await;
        let txn = slot.open();
        let indexes = catalog.tables().flat_map(|table| &table.indexes);
        indexes.filter(|index| !txn.can_use_index(index)).map(|index| index.oid).collect()
    }

    pub(crate) fn bind(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        if self.parameters.is_empty() {
            return Ok(plan);
        }
        assert_eq!(self.parameters.len(), self.types.len(), "checked when the statement was bound");
        let scalars: Vec<_> = self.parameters.iter().zip(self.types).map(|(d, t)| to_scalar(d, *t).into()).collect();
        plan.with_param_values(ParamValues::List(scalars)).map_err(from_datafusion)
    }

    pub(crate) async fn physical(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let state = self.state.get();
        let analyzed = typed(state, plan.clone())?;
        let made = Box::pin(caught(async {
            let best = state.optimizer().optimize(analyzed, state, |_, _| {}).map_err(from_datafusion)?;
            state.query_planner().create_physical_plan(&best, state).await.map_err(from_datafusion)
        }));
        // Names are resolved by now: what is not found was lost where subqueries became joins.
        crate::memory::planning(made).await.map_err(|error| match error.state.0 {
            "42601" | "42701" | "42702" | "42703" | "42712" | "42P01" => {
                unsupported(format!("this nesting of subqueries ({error})"))
            }
            _ => error,
        })
    }

    pub(crate) fn stream(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        targets: impl IntoIterator<Item = OneRow>,
    ) -> Result<SendableRecordBatchStream> {
        self.stream_given(plan, targets, Arc::default())
    }

    /// `given`: the rows that the plan was told would be given.
    pub(crate) fn stream_given(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        targets: impl IntoIterator<Item = OneRow>,
        given: Arc<Vec<RowBuf>>,
    ) -> Result<SendableRecordBatchStream> {
        let targets = targets.into_iter().collect();
        let (cell, cancel) = (self.cell.clone(), self.cancel.clone());
        let context = StatementContext { cell, number: self.number, cancel, targets, given, gives_way: false };
        caught_now(|| execute_stream(plan, task(self.state.base(), context)).map_err(from_datafusion))
    }

    pub(crate) async fn collect(
        &self,
        plan: &LogicalPlan,
        targets: impl IntoIterator<Item = OneRow>,
    ) -> Result<Collected> {
        let stream = self.begin(plan, targets).await?;
        self.drain(stream).await
    }

    /// The stream of a plan, to be read with [`Run::next_batch`].
    pub(crate) async fn begin(
        &self,
        plan: &LogicalPlan,
        targets: impl IntoIterator<Item = OneRow>,
    ) -> Result<SendableRecordBatchStream> {
        let physical = self.physical(plan).await?;
        if let Some(captured) = self.captured {
            captured.lock().push(physical.clone());
        }
        self.stream(physical, targets)
    }

    pub(crate) async fn next_batch(&self, stream: &mut SendableRecordBatchStream) -> Result<Option<RecordBatch>> {
        let batch = self.cancel.run(caught(async { Ok(stream.next().await) })).await?;
        self.cancel.check()?;
        batch.transpose().map_err(from_datafusion)
    }

    pub(crate) async fn drain(&self, mut stream: SendableRecordBatchStream) -> Result<Collected> {
        let mut batches = vec![];
        let memory = self.memory("rows collected for a change");
        while let Some(batch) = self.next_batch(&mut stream).await? {
            memory.try_grow(batch.get_array_memory_size()).map_err(from_datafusion)?;
            batches.push(batch);
        }
        Ok(Collected { batches, _memory: memory })
    }

    /// Counts what the statement keeps by itself, in the budget of all queries.
    pub(crate) fn memory(&self, what: &str) -> MemoryReservation {
        MemoryConsumer::new(what).register(&self.state.base().runtime_env().memory_pool)
    }

    /// The value of a parameter `$n`.
    pub(crate) fn parameter(&self, number: u32) -> Result<Datum> {
        let value = (number as usize).checked_sub(1).and_then(|at| self.parameters.get(at));
        value.cloned().ok_or_else(|| EngineError::new("42P02", format!("there is no parameter ${number}")))
    }
}
