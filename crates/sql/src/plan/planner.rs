//! Planning with DataFusion: names, parameters, plans. Only SELECT, and the query part of DML, comes here.
use crate::error::{from_datafusion, tunnel, undefined_table, unsupported};
use crate::functions::builtin;
use crate::functions::convert::Types;
use crate::panics::{caught, caught_now};
use crate::parse::literals;
use crate::parse::sequence_calls::Call;
use crate::pgcatalog;
use crate::pgcatalog::SessionInfo;
use crate::plan::bind::over::{Over, bind_over};
use crate::plan::bind::{self, Binding, Fault, Place, Tree, Whole};
use crate::plan::comparable::Comparable;
use crate::plan::operators::Operators;
use crate::plan::pieces::Pieces;
use crate::plan::rules;
use crate::plan::scan::TableScan;
use crate::plan::semantics::PostgresSemantics;
use crate::plan::yielding::YieldingJoins;
use crate::transaction::StatementContext;
use crate::values::field_of;
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::catalog::TableProvider;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, TypePlanner};
use datafusion::logical_expr::{
    AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, Volatility, WindowUDF,
};
use datafusion::prelude::SessionConfig;
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::planner::{ParserOptions, PlannerContext, SqlToRel};
use datafusion::sql::sqlparser::ast::Statement;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use terrace_engine::{Catalog, DataType, EngineError, Result, Table};
use terrace_grammar::statement::Query;
use terrace_storage::ObjectId;

/// Stands for the target of UPDATE and DELETE, with its hidden columns. No name a user can write contains a NUL.
pub(crate) const TARGET: &str = "\0target";

/// Stands for rows that the statement is given, of the target's shape.
pub(crate) const GIVEN: &str = "\0given";

/// The configuration and functions all sessions start from. `sort_reserve`: bytes that a sort sets aside for merging.
pub(crate) fn base_state(runtime: Arc<RuntimeEnv>, sort_reserve: usize) -> SessionState {
    let mut config = SessionConfig::new()
        .with_target_partitions(1)
        .with_information_schema(false)
        .with_create_default_catalog_and_schema(false);
    let options = config.options_mut();
    options.sql_parser.map_string_types_to_utf8view = false;
    options.sql_parser.dialect = datafusion::common::config::Dialect::PostgreSQL;
    // Rows of a subquery come in its order, also where its query says LIMIT or collects them.
    options.sql_parser.enable_subquery_sort_elimination = false;
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
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_analyzer_rule(Arc::new(PostgresSemantics))
        .with_analyzer_rule(Arc::new(Comparable))
        .with_optimizer_rules(rules::logical())
        .with_physical_optimizer_rules(rules::physical())
        .with_physical_optimizer_rule(Arc::new(YieldingJoins))
        .with_physical_optimizer_rule(Arc::new(Pieces))
        .build();
    // Before DataFusion's own, which would take what ours leave.
    let mut planners: Vec<Arc<dyn ExprPlanner>> = vec![Arc::new(Operators)];
    planners.extend(state.expr_planners().iter().cloned());
    let mut state = SessionStateBuilder::new_from_existing(state).with_expr_planners(planners).build();
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
    /// The table that [`TARGET`] stands for, and whose shape [`GIVEN`] has.
    pub(crate) target: Option<Arc<Table>>,
    /// The statement's, where errors shall point into it.
    pub(crate) text: Option<&'a str>,
    /// What the functions of sequences have answered, by their places; before they were called, nothing.
    pub(crate) numbers: Option<&'a BTreeMap<Place, i64>>,
}

/// Reads a query for the old way.
pub(crate) type OldWay<'q> = &'q (dyn Fn() -> Result<Statement> + Sync);

/// What is planned.
#[derive(Clone, Copy)]
pub(crate) enum Asked<'q> {
    /// The query of a statement, from its tree if it can be bound.
    Either(Option<&'q Tree>, OldWay<'q>),
    Query(&'q Query),
    Over(&'q Over<'q>),
}

/// A planned query, and the user's tables it reads.
pub(crate) struct Planned {
    pub(crate) plan: LogicalPlan,
    pub(crate) tables: Vec<Arc<Table>>,
    /// The functions of sequences that it calls, in the order of their places.
    pub(crate) calls: Vec<(Place, Call)>,
}

impl Planner<'_> {
    /// Plans a query. `types`: of its parameters, where they are known.
    pub(crate) async fn plan(&self, statement: Statement, types: &[Option<DataType>]) -> Result<Planned> {
        caught(self.plan_query(statement, types)).await
    }

    /// Plans what is asked for.
    pub(crate) async fn plan_asked(&self, asked: Asked<'_>, types: &[Option<DataType>]) -> Result<Planned> {
        match asked {
            Asked::Either(tree, old) => self.plan_either(tree, old, types).await,
            Asked::Query(query) => self.plan_tree(query, types),
            Asked::Over(over) => self.plan_over(over, types),
        }
    }

    /// Plans a statement's query from its tree, or else from the statement.
    pub(crate) async fn plan_either(
        &self,
        tree: Option<&Tree>,
        old: OldWay<'_>,
        types: &[Option<DataType>],
    ) -> Result<Planned> {
        if let Some(tree) = tree
            && let Some(query) = tree.query().filter(|_| tree.binding != Binding::Never)
            && let Some(planned) = self.bound(tree.binding, || bind::bind(self, query, types))?
        {
            return Ok(planned);
        }
        let (statement, mut types) = (old()?, types.to_vec());
        crate::parse::type_cast_parameters(&statement, &mut types);
        self.plan(statement, &types).await
    }

    /// Plans a query from its tree.
    pub(crate) fn plan_tree(&self, query: &Query, types: &[Option<DataType>]) -> Result<Planned> {
        let planned = self.bound(Binding::Only, || bind::bind(self, query, types))?;
        Ok(planned.expect("what is not bound is refused"))
    }

    /// Plans expressions over a table.
    pub(crate) fn plan_over(&self, over: &Over<'_>, types: &[Option<DataType>]) -> Result<Planned> {
        let planned = self.bound(Binding::Only, || bind_over(self, over, types))?;
        Ok(planned.expect("what is not bound is refused"))
    }

    /// What is bound, as a plan; `None`: it takes the old way.
    fn bound(&self, binding: Binding, bind: impl FnOnce() -> bind::Result<Whole>) -> Result<Option<Planned>> {
        caught_now(|| match bind() {
            Ok(Whole { bound, tables, of_system, calls }) => {
                // The system relations have types of Arrow's where PostgreSQL has others.
                let plan = rules::settle(bound.plan, !of_system).map_err(from_datafusion)?;
                Ok(Some(Planned { plan, tables, calls }))
            }
            Err(Fault::Unsupported(_)) if binding != Binding::Only => Ok(None),
            Err(fault) => Err(fault.error(self.text)),
        })
    }

    async fn plan_query(&self, mut statement: Statement, types: &[Option<DataType>]) -> Result<Planned> {
        assert!(matches!(statement, Statement::Query(_)), "DataFusion plans queries only");
        crate::plan::sequence_relations::replace(&mut statement, self.catalog)?;
        let of_system = pgcatalog::rewrite(&mut statement);
        crate::plan::refusals::refuse_clauses_of_functions(&statement, self.state)?;
        let volatile = |name: &str| self.is_volatile(name);
        let aggregate = |name: &str| self.is_aggregate(unqualified(name));
        rules::write_out(&mut statement, rules::Functions { volatile: &volatile, aggregate: &aggregate })?;
        crate::functions::arrays::refuse_the_rest(&statement)?;
        crate::functions::arrays::type_parameters(&mut statement, types);
        literals::type_numbers(&mut statement);
        crate::functions::chars::align_values(&mut statement);
        let wrapped = DfStatement::Statement(Box::new(statement));
        let references = self.state.resolve_table_references(&wrapped).map_err(from_datafusion)?;
        let DfStatement::Statement(mut statement) = wrapped else { unreachable!("wrapped above") };
        let mut names = Names { planner: self, sources: BTreeMap::new(), with: rules::with_names(&statement) };
        let mut tables: Vec<Arc<Table>> = vec![];
        for reference in references {
            let key = reference.to_string();
            // What is not found may be the name of a table function; else the planner asks for it and fails.
            if let Some((provider, table)) = self.resolve(&reference).await? {
                names.sources.insert(key, provider_as_source(provider));
                tables.extend(table);
            }
        }
        if rules::concerns(&statement) {
            let relations = rules::Relations { sources: &names.sources, volatile: &volatile, aggregate: &aggregate };
            rules::resolve(&mut statement, &relations)?;
        }
        let fields =
            types.iter().map(|t| t.map(|t| Arc::new(field_of("", t, true)))).collect::<Vec<Option<FieldRef>>>();
        let mut context = PlannerContext::new().with_prepare_param_data_types(fields);
        let options = ParserOptions::from(&self.state.config_options().sql_parser);
        let plan = SqlToRel::new_with_options(&names, options)
            .sql_statement_to_plan_with_context(*statement, &mut context)
            .and_then(crate::plan::resolve::resolve)
            .map_err(from_datafusion)?;
        refuse_side_effects(&plan)?;
        // The system relations have types of Arrow's where PostgreSQL has others.
        let plan = rules::settle(plan, !of_system).map_err(from_datafusion)?;
        Ok(Planned { plan, tables, calls: vec![] })
    }

    /// The scalar function of that name.
    pub(crate) fn scalar(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let name = unqualified(name);
        if name.starts_with('\0') {
            return Some(rules::named(name));
        }
        if let ("pg_sleep", Some(system)) = (name, &self.info.system) {
            return Some(crate::functions::sleep::function(system.engine.env().clone()));
        }
        if let Some(chooser) = crate::plan::choosers::function(name) {
            return Some(chooser);
        }
        // Ours first: where both know a name, ours is PostgreSQL's.
        pgcatalog::function(name, self.catalog, self.info)
            .or_else(|| builtin::is_known_function(name).then(|| self.state.scalar_functions().get(name).cloned())?)
    }

    pub(crate) fn aggregate(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        let name = known_as(unqualified(name));
        builtin::is_known_aggregate(name).then(|| self.state.aggregate_functions().get(name).cloned())?
    }

    pub(crate) fn window(&self, name: &str) -> Option<Arc<WindowUDF>> {
        let name = unqualified(name);
        builtin::is_known_window(name).then(|| self.state.window_functions().get(name).cloned())?
    }

    fn is_aggregate(&self, name: &str) -> bool {
        self.state.aggregate_functions().contains_key(known_as(name))
    }

    /// Whether a function is evaluated anew for each row.
    fn is_volatile(&self, name: &str) -> bool {
        self.scalar(name).is_some_and(|function| function.signature().volatility == Volatility::Volatile)
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

    /// The table of that name, as a provider; with the user's table behind it.
    async fn resolve(&self, name: &TableReference) -> Result<Option<(Arc<dyn TableProvider>, Option<Arc<Table>>)>> {
        if name.table() == TARGET {
            let table = self.target.clone().expect("only UPDATE and DELETE name the target");
            return Ok(Some((Arc::new(TableScan::target(self.without_unusable(&table))), Some(table))));
        }
        if name.table() == GIVEN {
            let table = self.target.clone().expect("only statements with a target name what they are given");
            return Ok(Some((Arc::new(TableScan::given(table)), None)));
        }
        // As search_path "pg_catalog, public" resolves.
        let schemas: &[&str] = match name.schema() {
            None => &["pg_catalog", "public"],
            Some(schema) => &[schema],
        };
        for schema in schemas {
            if *schema == "public" {
                if let Some(table) = self.catalog.table(name.table()) {
                    return Ok(Some((Arc::new(TableScan::new(self.without_unusable(table))), Some(table.clone()))));
                }
            } else if let Some(schema) = pgcatalog::schema(schema, self.catalog, self.info)
                && let Some(table) = schema.table(name.table()).await.map_err(from_datafusion)?
            {
                return Ok(Some((table, None)));
            }
        }
        Ok(None)
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

/// The planner makes nothing but queries of queries; were that to change, nothing may be carried out unseen.
fn refuse_side_effects(plan: &LogicalPlan) -> Result<()> {
    let mut found = None;
    let visited = plan.apply_with_subqueries(|node| {
        if matches!(node, LogicalPlan::Dml(_) | LogicalPlan::Ddl(_) | LogicalPlan::Copy(_) | LogicalPlan::Statement(_))
        {
            found = Some(node.display().to_string());
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    visited.map_err(from_datafusion)?;
    found.map_or(Ok(()), |node| Err(unsupported(node)))
}

struct Names<'a> {
    planner: &'a Planner<'a>,
    sources: BTreeMap<String, Arc<dyn TableSource>>,
    /// Names of WITH queries, wherever they are.
    with: BTreeSet<String>,
}

/// DataFusion's name of an aggregate.
fn known_as(name: &str) -> &str {
    if name == "every" { "bool_and" } else { name }
}

/// Functions may be written with their schema.
fn unqualified(name: &str) -> &str {
    name.strip_prefix("pg_catalog.").unwrap_or(name)
}

impl ContextProvider for Names<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>, DataFusionError> {
        crate::memory::check().map_err(tunnel)?;
        match self.sources.get(&name.to_string()) {
            Some(source) => Ok(source.clone()),
            // Upstream: the items of an array are planned without the WITH queries around it.
            None if name.schema().is_none() && self.with.contains(name.table()) => {
                Err(tunnel(unsupported(format!("the WITH query \"{name}\" in an array or beyond where it is defined"))))
            }
            None => Err(tunnel(undefined_table(&name))),
        }
    }

    fn create_cte_work_table(
        &self,
        name: &str,
        schema: datafusion::arrow::datatypes::SchemaRef,
    ) -> Result<Arc<dyn TableSource>, DataFusionError> {
        Ok(provider_as_source(Arc::new(datafusion::datasource::cte_worktable::CteWorkTable::new(name, schema))))
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> Result<Arc<dyn TableSource>, DataFusionError> {
        let state = self.planner.state;
        match name {
            "generate_series" => Ok(provider_as_source(crate::functions::series::table(state, args)?)),
            other => Err(tunnel(unsupported(format!("the table function {other}")))),
        }
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.planner.state.expr_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(Types))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.planner.scalar(name)
    }

    fn get_higher_order_meta(&self, _name: &str) -> Option<Arc<HigherOrderUDF>> {
        // PostgreSQL has none.
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.planner.aggregate(name)
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.planner.window(name)
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<ArrowType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.planner.state.config_options()
    }

    // The names are for "did you mean": a sorted list, for the same hint each time.
    fn udf_names(&self) -> Vec<String> {
        sorted(self.planner.state.scalar_functions().keys().filter(|name| builtin::is_known_function(name)))
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        vec![]
    }

    fn udaf_names(&self) -> Vec<String> {
        sorted(self.planner.state.aggregate_functions().keys().filter(|name| builtin::is_known_aggregate(name)))
    }

    fn udwf_names(&self) -> Vec<String> {
        sorted(self.planner.state.window_functions().keys().filter(|name| builtin::is_known_window(name)))
    }
}

fn sorted<'n>(names: impl Iterator<Item = &'n String>) -> Vec<String> {
    let mut names: Vec<String> = names.cloned().collect();
    names.sort();
    names
}

/// The parameters of a plan in order, `$1` first. 42P18 where a type cannot be told.
pub(crate) fn parameters(plan: &LogicalPlan, stated: &[Option<DataType>]) -> Result<Vec<DataType>> {
    let found = plan.get_parameter_types().map_err(from_datafusion)?;
    let found: BTreeMap<usize, Option<ArrowType>> =
        found.into_iter().filter_map(|(id, t)| Some((id.strip_prefix('$')?.parse().ok()?, t))).collect();
    let count = found.keys().last().copied().unwrap_or(0).max(stated.len());
    let of = |number: usize| {
        if let Some(Some(stated)) = stated.get(number - 1) {
            return Ok(*stated);
        }
        match found.get(&number) {
            // A number compared with a numeric(p, s) has its own digits.
            Some(Some(ArrowType::Decimal128(..))) => Ok(DataType::Numeric(None)),
            Some(Some(arrow)) => crate::values::engine_type(arrow)
                .ok_or_else(|| EngineError::new("0A000", format!("parameters of type {arrow} are not supported yet"))),
            // As PostgreSQL takes a parameter whose type stays open, e.g. `SELECT $1`.
            Some(None) => Ok(DataType::Text),
            None => Err(EngineError::new("42P18", format!("could not determine data type of parameter ${number}"))),
        }
    };
    (1..=count).map(of).collect()
}
