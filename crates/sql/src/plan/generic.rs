//! Generic plans: those of a prepared statement that run again, with other parameters. (PostgreSQL's term.)
//!
//! 1. What such a plan answers depends on definitions, on the role and the style of its session (its keeper compares
//!    these), and on the values that are put in: the parameters, and the transaction's time. Every function in it is
//!    immutable, but for `now()`, which such a value stands for.
//! 2. A value that is put in has exactly the type that the plan was made for.
//! 3. A run has a plan for itself, from when its values are put in until its stream is dropped.
//! 4. A scan chooses its ranges of an index when it begins, for the values that are put in
//!    ([`crate::plan::apply`], invariant 3).
use crate::error::from_datafusion;
use crate::plan::apply::{Values, narrowed, put_in, query_in};
use crate::plan::origins::Origins;
use crate::plan::planner::{Planned, typed};
use crate::plan::rules::is_plain;
use crate::plan::scan::{ScanExec, table_read};
use crate::values::is_sequence;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as Outcome, ScalarValue};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, execute_stream};
use futures::Stream;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use terrace_engine::{Result, Table};

/// Runs of one physical plan, which remembers something of each (its metrics).
const MOST_RUNS: u32 = 256;

/// Physical plans that wait for a run.
const MOST_SPARE: usize = 2;

/// The transaction's time among the values; parameter `n` is number `n`.
const NOW: usize = 0;

/// Nodes that remember nothing of a run but their metrics.
const STATELESS: [&str; 4] = ["ProjectionExec", "FilterExec", "ScanExec", "PlaceholderRowExec"];

pub(crate) struct Generic {
    /// As it was bound, with the parameters in it.
    pub(crate) plan: LogicalPlan,
    /// Where its columns come from.
    pub(crate) origins: Origins,
    /// With DataFusion's rules applied, and the time as a parameter.
    optimized: LogicalPlan,
    /// Tables that are to be locked.
    pub(crate) tables: Vec<Arc<Table>>,
    /// Those whose rows are read.
    pub(crate) read: Vec<Arc<Table>>,
    /// Types of the values, by their numbers.
    types: BTreeMap<usize, ArrowType>,
    spare: Mutex<Vec<Ready>>,
    /// All that it reads it reads by ranges of indexes.
    pub(crate) is_short: bool,
    /// What it takes of the budget of queries.
    _memory: MemoryReservation,
}

impl fmt::Debug for Generic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.plan.display())
    }
}

/// A physical plan, and where its values are put.
struct Ready {
    plan: Arc<dyn ExecutionPlan>,
    values: Values,
    runs: u32,
    /// A node of it remembers something of a run.
    stateful: bool,
}

impl Generic {
    /// `None`: the plan is none that can be generic.
    pub(crate) async fn of(
        planned: &Planned,
        state: &SessionState,
        memory: MemoryReservation,
    ) -> Result<Option<Arc<Generic>>> {
        if planned.of_clock || !planned.calls.is_empty() || planned.tables.iter().any(|table| is_sequence(table)) {
            return Ok(None);
        }
        let analyzed = with_time(typed(state, planned.plan.clone())?).map_err(from_datafusion)?;
        let Some(read) = tables_of(&analyzed).map_err(from_datafusion)? else { return Ok(None) };
        let optimized = state.optimizer().optimize(analyzed, state, |_, _| {}).map_err(from_datafusion)?;
        if tables_of(&optimized).map_err(from_datafusion)?.is_none() {
            return Ok(None);
        }
        let Some(types) = types_of(&optimized).map_err(from_datafusion)? else { return Ok(None) };
        let (plan, tables, origins) = (planned.plan.clone(), planned.tables.clone(), planned.origins.clone());
        let spare = Mutex::default();
        let mut generic =
            Generic { plan, origins, optimized, tables, read, types, spare, is_short: false, _memory: memory };
        // Where a constant must stand, as in LIMIT, there is none.
        let Ok(ready) = generic.planned(state).await else { return Ok(None) };
        generic.is_short = reads_little(&ready.plan).map_err(from_datafusion)?;
        generic.spare.lock().push(ready);
        Ok(Some(Arc::new(generic)))
    }

    /// Whether the values, of which the first is the transaction's time, are of the plan's types (invariant 2).
    pub(crate) fn takes(&self, values: &[ScalarValue]) -> bool {
        self.types.iter().all(|(at, of)| values.get(*at).is_some_and(|value| value.data_type() == *of))
    }

    /// Runs it. `state` makes a session's state, if the plan must be made.
    pub(crate) async fn run<'s>(
        self: &Arc<Self>,
        values: Vec<ScalarValue>,
        state: impl Fn() -> &'s SessionState,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        assert!(self.takes(&values), "invariant 2");
        let spare = self.spare.lock().pop();
        let mut ready = match spare {
            Some(ready) => ready,
            None => self.planned(state()).await.map_err(from_datafusion)?,
        };
        ready.runs += 1;
        *ready.values.lock() = values;
        let plan = match ready.stateful {
            true => reset_plan_states(ready.plan.clone()).map_err(from_datafusion)?,
            false => ready.plan.clone(),
        };
        let schema = ready.plan.schema();
        let stream = Some(execute_stream(plan, task).map_err(from_datafusion)?);
        Ok(Box::pin(Running { stream, ready: Some(ready), of: self.clone(), schema }))
    }

    async fn planned(&self, state: &SessionState) -> Outcome<Ready> {
        let values = Values::default();
        let plan = with_values(self.optimized.clone(), &values)?.transform_up_with_subqueries(narrowed).data()?;
        let plan = state.query_planner().create_physical_plan(&plan, state).await?;
        let mut stateful = plan.output_partitioning().partition_count() != 1;
        plan.apply(|node| {
            stateful |= !STATELESS.contains(&node.name());
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(Ready { plan, values, runs: 0, stateful })
    }

    fn give_back(&self, ready: Ready) {
        let mut spare = self.spare.lock();
        if ready.runs < MOST_RUNS && spare.len() < MOST_SPARE {
            spare.push(ready);
        }
    }
}

fn reads_little(plan: &Arc<dyn ExecutionPlan>) -> Outcome<bool> {
    let mut little = true;
    plan.apply(|node| {
        let scan = (node.as_ref() as &dyn Any).downcast_ref::<ScanExec>();
        little &= scan.is_none_or(ScanExec::is_narrow);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(little)
}

/// The rows of one run (invariant 3).
struct Running {
    stream: Option<SendableRecordBatchStream>,
    ready: Option<Ready>,
    of: Arc<Generic>,
    schema: SchemaRef,
}

impl Stream for Running {
    type Item = Outcome<RecordBatch>;
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut self.stream {
            Some(stream) => stream.as_mut().poll_next(context),
            None => Poll::Ready(None),
        }
    }
}

impl RecordBatchStream for Running {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stream = None; // It reads the values.
        self.ready.take().into_iter().for_each(|ready| self.of.give_back(ready));
    }
}

/// The transaction's time as a parameter.
fn with_time(plan: LogicalPlan) -> Outcome<LogicalPlan> {
    replaced(plan, &|expr| match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "now" && args.is_empty() => {
            let field = datafusion::arrow::datatypes::Field::new("now", func.return_type(&[])?, false);
            Ok(Transformed::yes(Expr::Placeholder(Placeholder::new_with_field(id(NOW), Some(Arc::new(field))))))
        }
        expr => Ok(Transformed::no(expr)),
    })
}

fn id(number: usize) -> String {
    format!("${number}")
}

/// Places for values in the place of parameters.
fn with_values(plan: LogicalPlan, values: &Values) -> Outcome<LogicalPlan> {
    replaced(plan, &|expr| match &expr {
        Expr::Placeholder(parameter) => Ok(match numbered(parameter) {
            Some((at, field)) => Transformed::yes(put_in(&parameter.id, field, at, values)),
            None => Transformed::no(expr),
        }),
        _ => Ok(Transformed::no(expr)),
    })
}

/// Expressions in the place of others; columns keep their names.
fn replaced(plan: LogicalPlan, with: &dyn Fn(Expr) -> Outcome<Transformed<Expr>>) -> Outcome<LogicalPlan> {
    let done = plan.transform_down_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let done = expr.transform(with)?;
            Ok(done.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(done.data)
}

/// A parameter's number, and what it is.
fn numbered(parameter: &Placeholder) -> Option<(usize, &FieldRef)> {
    Some((parameter.id.strip_prefix('$')?.parse().ok()?, parameter.field.as_ref()?))
}

/// The types of the parameters; `None`: one has none, or several, or may not be NULL.
fn types_of(plan: &LogicalPlan) -> Outcome<Option<BTreeMap<usize, ArrowType>>> {
    let (mut types, mut open) = (BTreeMap::new(), false);
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::Placeholder(parameter) = part {
                    match numbered(parameter) {
                        Some((at, field)) => {
                            let of = field.data_type();
                            open |= types.insert(at, of.clone()).is_some_and(|before| before != *of);
                            open |= at != NOW && !field.is_nullable();
                        }
                        None => open = true,
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok((!open).then_some(types))
}

/// The tables whose rows a plan reads; `None`: invariant 1 does not hold for it, or it has a node that is not known to
/// run again.
fn tables_of(plan: &LogicalPlan) -> Outcome<Option<Vec<Arc<Table>>>> {
    let (mut tables, mut generic) = (vec![], true);
    plan.apply_with_subqueries(|node| {
        generic &= match node {
            LogicalPlan::TableScan(scan) => match table_read(scan) {
                Some(table) => {
                    tables.push(table);
                    true
                }
                None => false,
            },
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::EmptyRelation(_) => true,
            _ => false,
        };
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                generic &= is_the_same_each_time(part);
                Ok(if generic { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
            })
        })?;
        Ok(if generic { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(generic.then_some(tables))
}

/// Whether an expression, apart from those within it and from queries, depends on nothing but these.
fn is_the_same_each_time(expr: &Expr) -> bool {
    match expr {
        expr if query_in(expr).is_some() => true,
        Expr::OuterReferenceColumn(..) => true,
        Expr::AggregateFunction(call) => call.func.signature().volatility == Volatility::Immutable,
        Expr::WindowFunction(call) => call.fun.signature().volatility == Volatility::Immutable,
        Expr::Column(_) | Expr::Placeholder(_) => true,
        expr => is_plain(expr),
    }
}
