//! From an [`Apply`] to what runs it, and the plan of its query for one set of values.
use super::exec::ApplyExec;
use super::{Apply, is_volatile, literal, with_given, with_values};
use crate::plan::scan::narrows;
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchemaRef, ExprSchema, Result, ScalarValue, internal_err};
use datafusion::execution::SessionState;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Filter, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, UserDefinedLogicalNode, Volatility,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use parking_lot::Mutex;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Plans queries, with [`Apply`]s in them.
#[derive(Debug)]
pub(crate) struct Planning;

#[async_trait]
impl QueryPlanner for Planning {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Planning)]);
        planner.create_physical_plan(plan, session).await
    }
}

#[async_trait]
impl ExtensionPlanner for Planning {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical: &[&LogicalPlan],
        physical: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(apply) = node.as_any().downcast_ref::<Apply>() else { return Ok(None) };
        let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
            return internal_err!("a session of another kind");
        };
        let ([logical], [physical]) = (logical, physical) else { return internal_err!("an Apply has one input") };
        let of = |value: &Expr| planner.create_physical_expr(value, logical.schema(), session, context);
        let values = apply.values.iter().map(of).collect::<Result<Vec<Arc<dyn PhysicalExpr>>>>()?;
        let apply = optimized(apply.clone(), state)?;
        let keeps = !is_volatile(&apply.query)?;
        let inner = Inner { apply, state: state.clone(), keeps, spare: Mutex::default() };
        // Where a constant must stand, as in LIMIT, there is none yet.
        let again = inner.again().await.ok();
        let shown = again.as_ref().map(|again| again.plan.clone());
        again.into_iter().for_each(|again| inner.give_back(again));
        Ok(Some(Arc::new(ApplyExec::new(physical.clone(), shown, values, Arc::new(inner)))))
    }
}

/// With DataFusion's rules applied to the query within, and to those within that.
fn optimized(apply: Apply, state: &SessionState) -> Result<Apply> {
    if apply.optimized {
        return Ok(apply);
    }
    let query = state.optimizer().optimize(apply.query().clone(), state, |_, _| {})?;
    let query = query.transform_up_with_subqueries(|node| {
        Ok(match Apply::of(&node) {
            Some(within) => Transformed::yes(optimized(within.clone(), state)?.into_plan()),
            None => Transformed::no(node),
        })
    })?;
    Ok(Apply { query: Arc::new(query.data), optimized: true, ..apply })
}

/// What an [`ApplyExec`] runs for each row.
pub(super) struct Inner {
    pub(super) apply: Apply,
    state: SessionState,
    /// The same values have the same answer.
    pub(super) keeps: bool,
    /// Plans that no stream uses.
    spare: Mutex<Vec<Again>>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.apply.shown())
    }
}

/// A plan that runs again and again, for values that are put into it.
pub(super) struct Again {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    pub(super) values: Values,
}

/// Of the columns that a query takes, in their order.
pub(crate) type Values = Arc<Mutex<Vec<ScalarValue>>>;

impl Inner {
    /// A plan for any values that nobody else uses, if there can be one. Within another `Apply` one is wanted for each
    /// run of that.
    pub(super) async fn again(&self) -> Result<Again> {
        let spare = self.spare.lock().pop();
        match spare {
            Some(again) => Ok(again),
            None => self.planned_again().await,
        }
    }

    /// Its stream has ended.
    pub(super) fn give_back(&self, again: Again) {
        self.spare.lock().push(again);
    }

    async fn planned_again(&self) -> Result<Again> {
        let (values, taken) = (Values::default(), &self.apply.taken);
        let plan = with_given(self.apply.query().clone(), &|field, column| {
            let at = taken.iter().position(|known| known == column)?;
            Some(given(field, column, at, &values))
        })?;
        let plan = plan.transform_up(narrowed).data()?;
        let recurs = plan.exists(|node| Ok(matches!(node, LogicalPlan::RecursiveQuery(_))))?;
        if recurs {
            return internal_err!("a recursive query runs once"); // Upstream: `reset_plan_states` leaves it out.
        }
        // Values of a query further out are put in, too, and may be known by now.
        let constant = plan.exists(|node| match node {
            LogicalPlan::Values(rows) => Ok(rows.values.iter().flatten().any(takes_values)),
            _ => Ok(false),
        })?;
        if constant {
            return internal_err!("VALUES are computed when they are planned");
        }
        let plan = self.state.query_planner().create_physical_plan(&plan, &self.state).await?;
        Ok(Again { plan, values })
    }

    /// The plan for these values alone.
    pub(super) async fn plan(&self, values: &[ScalarValue]) -> Result<Arc<dyn ExecutionPlan>> {
        let Apply { query, taken, .. } = &self.apply;
        let values: BTreeMap<Column, ScalarValue> = taken.iter().cloned().zip(values.iter().cloned()).collect();
        let plan = with_values(query, &values)?.transform_up(narrowed).data()?;
        self.state.query_planner().create_physical_plan(&plan, &self.state).await
    }
}

/// A scan knows the conditions above it, now that they compare with values: it may read by an index.
pub(crate) fn narrowed(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = &plan else { return Ok(Transformed::no(plan)) };
    let LogicalPlan::TableScan(scan) = filter.input.as_ref() else { return Ok(Transformed::no(plan)) };
    let mut scan = scan.clone();
    for condition in split_conjunction(&filter.predicate) {
        let with_constants = settled(condition, filter.input.schema(), true)?;
        if narrows(&scan, &with_constants) && !scan.filters.contains(condition) {
            scan.filters.push(if takes_values(condition) { condition.clone() } else { with_constants });
        }
    }
    let input = Arc::new(LogicalPlan::TableScan(scan));
    Ok(Transformed::yes(LogicalPlan::Filter(Filter::new(filter.predicate.clone(), input))))
}

/// Whether values are put into an expression before each run.
pub(crate) fn takes_values(expr: &Expr) -> bool {
    expr.exists(|part| Ok(given_in(part).is_some())).expect("nothing in it fails")
}

/// A condition with the values that were put into it, as constants. `any`: with some values of their types.
pub(crate) fn settled(condition: &Expr, schema: &DFSchemaRef, any: bool) -> Result<Expr> {
    let with = condition.clone().transform(|part| {
        let Some(given) = given_in(&part) else { return Ok(Transformed::no(part)) };
        let value = match any {
            true => ScalarValue::new_default(given.field.data_type()).ok(),
            false => given.values.lock().get(given.at).cloned(),
        };
        Ok(match value {
            Some(value) => Transformed::yes(literal(value, &given.field)),
            None => Transformed::no(part),
        })
    })?;
    if let Some(plain) = plainly(&with.data, schema) {
        return Ok(plain);
    }
    let simplifier = ExprSimplifier::new(SimplifyContext::builder().with_schema(schema.clone()).build());
    // What fails here fails where it is evaluated.
    Ok(simplifier.simplify(with.data.clone()).unwrap_or(with.data))
}

/// A column, or a wider integer that it is cast to, compared with a constant: what simplifying would make of it.
fn plainly(condition: &Expr, schema: &DFSchemaRef) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else { return None };
    let Expr::Literal(value, metadata) = right.as_ref() else { return None };
    match left.as_ref() {
        Expr::Column(_) => Some(condition.clone()),
        Expr::Cast(cast) => {
            let (Expr::Column(column), ScalarValue::Int64(Some(number))) = (cast.expr.as_ref(), value) else {
                return None;
            };
            let number = match schema.field_from_column(column).ok()?.data_type() {
                DataType::Int32 => ScalarValue::Int32(Some((*number).try_into().ok()?)),
                DataType::Int16 => ScalarValue::Int16(Some((*number).try_into().ok()?)),
                _ => return None,
            };
            let number = Expr::Literal(number, metadata.clone());
            Some(Expr::BinaryExpr(BinaryExpr::new(cast.expr.clone(), *op, Box::new(number))))
        }
        _ => None,
    }
}

/// Whether it is a value that is put into a plan.
pub(crate) fn is_given(expr: &Expr) -> bool {
    given_in(expr).is_some()
}

fn given_in(expr: &Expr) -> Option<&Given> {
    let Expr::ScalarFunction(call) = expr else { return None };
    (call.func.inner().as_ref() as &dyn Any).downcast_ref()
}

/// A column of a query around, as a value that is put into a plan.
fn given(field: &FieldRef, column: &Column, at: usize, values: &Values) -> Expr {
    put_in(&column.flat_name().replace('\0', ""), field, at, values)
}

/// A value that is put into a plan before each run, by its number. `name`: how it is shown.
pub(crate) fn put_in(name: &str, field: &FieldRef, at: usize, values: &Values) -> Expr {
    // What is the same for all rows of a run is not the same for the next one.
    let signature = Signature::nullary(Volatility::Volatile);
    let udf = Given { name: name.to_owned(), field: field.clone(), at, values: values.clone(), signature };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(udf)), vec![]))
}

#[derive(Debug)]
struct Given {
    name: String,
    field: FieldRef,
    at: usize,
    values: Values,
    signature: Signature,
}

impl PartialEq for Given {
    fn eq(&self, other: &Given) -> bool {
        (self.at, Arc::as_ptr(&self.values)) == (other.at, Arc::as_ptr(&other.values))
    }
}

impl Eq for Given {}

impl Hash for Given {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.at, Arc::as_ptr(&self.values)).hash(state);
    }
}

impl ScalarUDFImpl for Given {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(self.field.clone())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match self.values.lock().get(self.at) {
            Some(value) => Ok(ColumnarValue::Scalar(value.clone())),
            None => internal_err!("{} has no value yet", self.name),
        }
    }
}
