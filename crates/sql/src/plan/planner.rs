//! Planning: the configuration and the functions of a session, what a query is bound with, and its parameters. Only
//! SELECT, and the query part of changes, comes here.
use crate::error::from_datafusion;
use crate::functions::builtin;
use crate::panics::caught_now;
use crate::parse::sequence_calls::Call;
use crate::pgcatalog;
use crate::pgcatalog::SessionInfo;
use crate::plan::apply::Planning;
use crate::plan::bind::over::{Over, bind_over};
use crate::plan::bind::reads::Read;
use crate::plan::bind::{self, Defined, Place, Whole};
use crate::plan::comparable::Comparable;
use crate::plan::guarded::Guards;
use crate::plan::key_joins::KeyJoins;
use crate::plan::origins::Origins;
use crate::plan::pieces::Pieces;
use crate::plan::returned::Returned;
use crate::plan::rules::{self, Applied};
use crate::plan::semantics::PostgresSemantics;
use crate::plan::waiting_last::WaitingLast;
use crate::plan::yielding::YieldingJoins;
use crate::transaction::StatementContext;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{AggregateUDF, LogicalPlan, ScalarUDF, WindowUDF};
use datafusion::prelude::SessionConfig;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use terrace_engine::types::clock;
use terrace_engine::{Catalog, DataType, EngineError, Result, Table};
use terrace_grammar::statement::Query;
use terrace_storage::ObjectId;

/// The configuration and functions all sessions start from. `sort_reserve`: bytes that a sort sets aside for merging.
pub(crate) fn base_state(runtime: Arc<RuntimeEnv>, sort_reserve: usize) -> SessionState {
    let mut config = SessionConfig::new()
        .with_target_partitions(1)
        .with_information_schema(false)
        .with_create_default_catalog_and_schema(false);
    let options = config.options_mut();
    options.execution.collect_statistics = false;
    // Its table of groups looks a group up by `==`, which NaN is not to itself: with a LIMIT over groups of floats it
    // panics ("entered unreachable code" in TopKHashTable::remove_at; SELECT x FROM t GROUP BY x ORDER BY x LIMIT 1
    // with a NaN in x).
    options.optimizer.enable_topk_aggregation = false;
    // It fails where the two sides' nullability differs: `x IS TRUE` is never NULL as a logical expression, but may be
    // as the physical `x IS NOT DISTINCT FROM true` that it becomes (XX000 for SELECT DISTINCT x IS TRUE). Types are
    // checked elsewhere.
    options.execution.skip_physical_aggregate_schema_check = true;
    options.execution.sort_spill_reservation_bytes = sort_reserve;
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_analyzer_rule(Arc::new(PostgresSemantics))
        .with_analyzer_rule(Arc::new(Comparable))
        .with_analyzer_rule(Arc::new(Applied))
        .with_query_planner(Arc::new(Planning))
        .with_optimizer_rules(rules::logical())
        .with_physical_optimizer_rules(rules::physical())
        .with_physical_optimizer_rule(Arc::new(WaitingLast))
        .with_physical_optimizer_rule(Arc::new(Guards))
        .with_physical_optimizer_rule(Arc::new(KeyJoins))
        .with_physical_optimizer_rule(Arc::new(YieldingJoins))
        .with_physical_optimizer_rule(Arc::new(Pieces))
        .build();
    crate::functions::date_time::register(&mut state);
    crate::functions::bounded::register(&mut state);
    crate::functions::builtin::register(&mut state);
    for aggregate in crate::functions::aggregates::functions() {
        state.register_udaf(Arc::new(aggregate)).expect("functions can be replaced");
    }
    for function in crate::functions::windows::functions() {
        state.register_udwf(Arc::new(function)).expect("functions can be replaced");
    }
    state
}

/// Plans statements as of one catalogue.
pub(crate) struct Planner<'a> {
    pub(crate) state: &'a SessionState,
    pub(crate) catalog: &'a Arc<Catalog>,
    pub(crate) info: &'a SessionInfo,
    /// Indexes that the statement must not use.
    pub(crate) unusable_indexes: BTreeSet<ObjectId>,
    /// The statement's, where errors shall point into it.
    pub(crate) text: Option<&'a str>,
    /// What the functions of sequences have answered, by their places; before they were called, nothing.
    pub(crate) numbers: Option<&'a BTreeMap<Place, Option<i64>>>,
    /// What changes within WITH have returned.
    pub(crate) parts: &'a [Returned],
}

/// What is planned.
#[derive(Clone, Copy)]
pub(crate) enum Asked<'q> {
    Query(&'q Query),
    Over(&'q Over<'q>),
}

/// A planned query, and the user's tables it reads.
pub(crate) struct Planned {
    pub(crate) plan: LogicalPlan,
    pub(crate) tables: Vec<Arc<Table>>,
    /// Where its columns come from.
    pub(crate) origins: Origins,
    /// What it names of these, and of views.
    pub(crate) reads: Vec<Read>,
    /// The functions of sequences that it calls, in the order of their places.
    pub(crate) calls: Vec<(Place, Call)>,
    /// A constant in it is a time of the clock (`now`, `today`).
    pub(crate) of_clock: bool,
}

impl Planner<'_> {
    /// Plans what is asked for. `types`: of its parameters, where they are known.
    pub(crate) fn plan_asked(&self, asked: Asked<'_>, types: &[Option<DataType>]) -> Result<Planned> {
        match asked {
            Asked::Query(query) => self.plan_tree(query, types),
            Asked::Over(over) => self.plan_over(over, types),
        }
    }

    /// Plans a query from its tree.
    pub(crate) fn plan_tree(&self, query: &Query, types: &[Option<DataType>]) -> Result<Planned> {
        self.bound(|| bind::bind(self, query, types))
    }

    /// Plans expressions over a table.
    pub(crate) fn plan_over(&self, over: &Over<'_>, types: &[Option<DataType>]) -> Result<Planned> {
        self.bound(|| bind_over(self, over, types))
    }

    /// Binds the query of a view that is made. The second is its plan.
    pub(crate) fn define_view(&self, query: &Query) -> Result<(Defined, LogicalPlan)> {
        let define = || {
            caught_now(|| match bind::define(self, query) {
                Ok(defined) => {
                    let plan = defined.whole.bound.plan.clone();
                    Ok((rules::settle(plan, !defined.whole.of_system).map_err(from_datafusion)?, defined))
                }
                Err(fault) => Err(fault.error(self.text)),
            })
        };
        self.at_its_time(define).0.map(|(plan, defined)| (defined, plan))
    }

    /// What is bound, as a plan.
    fn bound(&self, bind: impl FnOnce() -> bind::Result<Whole>) -> Result<Planned> {
        let (planned, of_clock) = self.at_its_time(|| {
            caught_now(|| match bind() {
                Ok(Whole { bound, tables, origins, reads, of_system, calls }) => {
                    // The system relations have types of Arrow's where PostgreSQL has others.
                    let plan = rules::settle(bound.plan, !of_system).map_err(from_datafusion)?;
                    Ok(Planned { plan, tables, origins, reads, calls, of_clock: false })
                }
                Err(fault) => Err(fault.error(self.text)),
            })
        });
        Ok(Planned { of_clock, ..planned? })
    }

    /// Reads texts of times as of when the transaction began. Answers whether one asked for that.
    fn at_its_time<T>(&self, work: impl FnOnce() -> T) -> (T, bool) {
        match self.state.execution_props().query_execution_start_time {
            Some(now) => clock::scope(now.timestamp_micros(), work),
            None => (work(), false),
        }
    }

    /// The scalar function of that name.
    pub(crate) fn scalar(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        if let ("pg_sleep", Some(system)) = (name, &self.info.system) {
            return Some(crate::functions::sleep::function(system.engine.env().clone()));
        }
        if let Some(system) = &self.info.system
            && let Some(found) = crate::functions::advisory::function(name, &system.advisory, &system.notices)
        {
            return Some(found);
        }
        if let Some(chooser) = crate::plan::choosers::function(name) {
            return Some(chooser);
        }
        // Ours first: where both know a name, ours is PostgreSQL's.
        pgcatalog::function(name, self.catalog, self.info)
            .or_else(|| builtin::is_known_function(name).then(|| self.state.scalar_functions().get(name).cloned())?)
    }

    pub(crate) fn aggregate(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        let name = known_as(name);
        builtin::is_known_aggregate(name).then(|| self.state.aggregate_functions().get(name).cloned())?
    }

    pub(crate) fn window(&self, name: &str) -> Option<Arc<WindowUDF>> {
        builtin::window_arguments(name).and_then(|_| self.state.window_functions().get(name).cloned())
    }

    /// The table with the indexes that may be used.
    pub(crate) fn without_unusable(&self, table: &Arc<Table>) -> Arc<Table> {
        if table.indexes.iter().all(|index| !self.unusable_indexes.contains(&index.oid)) {
            return table.clone();
        }
        let mut old = Table::clone(table);
        old.indexes.retain(|index| !self.unusable_indexes.contains(&index.oid));
        Arc::new(old)
    }
}

/// A plan as it will be after type coercion.
pub(crate) fn typed(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    let analyze = || state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {});
    caught_now(|| analyze().map_err(from_datafusion))
}

/// A task of the statement. Its function maps stay empty: only plans read from bytes would look there.
pub(crate) fn task(state: &SessionState, statement: StatementContext) -> Arc<TaskContext> {
    let config = state.config().clone().with_extension(Arc::new(statement));
    Arc::new(TaskContext::default().with_session_config(config).with_runtime(state.runtime_env().clone()))
}

/// DataFusion's name of an aggregate.
fn known_as(name: &str) -> &str {
    match name {
        "every" => "bool_and",
        // What they gather is made JSON behind it.
        "json_agg" | "jsonb_agg" | "json_object_agg" | "jsonb_object_agg" => "array_agg",
        other => other,
    }
}

/// The parameters of a plan in order, `$1` first. 42P18 where a type cannot be told.
pub(crate) fn parameters(plan: &LogicalPlan, stated: &[Option<DataType>]) -> Result<Vec<DataType>> {
    let found = plan.get_parameter_fields().map_err(from_datafusion)?;
    let found: BTreeMap<usize, Option<FieldRef>> =
        found.into_iter().filter_map(|(id, field)| Some((id.strip_prefix('$')?.parse().ok()?, field))).collect();
    let count = found.keys().last().copied().unwrap_or(0).max(stated.len());
    let of = |number: usize| {
        if let Some(Some(stated)) = stated.get(number - 1) {
            return Ok(*stated);
        }
        match found.get(&number) {
            Some(Some(field)) => crate::values::parameter_type(field).ok_or_else(|| {
                let message = format!("parameters of type {} are not supported yet", field.data_type());
                EngineError::new("0A000", message)
            }),
            // As PostgreSQL takes a parameter whose type stays open, e.g. `SELECT $1`.
            Some(None) => Ok(DataType::Text),
            None => Err(EngineError::new("42P18", format!("could not determine data type of parameter ${number}"))),
        }
    };
    (1..=count).map(of).collect()
}
