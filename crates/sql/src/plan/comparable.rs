//! Values whose Arrow order is not PostgreSQL's are compared by something that has it.
//!
//! 1. Floats: -0 equals 0, and every NaN equals every other and is above all numbers. Arrow's total order has -0 below
//!    0 and NaNs with a sign (which `inf - inf` makes) below everything: a float that is compared becomes [`canonical`]
//!    first.
//! 2. Intervals are compared by [`crate::functions::interval::key`]: `1 day` equals `24:00:00`.
//! 3. If equal values become one (GROUP BY, DISTINCT, set operations, min, max), PostgreSQL keeps one of them. For
//!    floats, Terrace keeps the one without a sign. For intervals it cannot know which one PostgreSQL keeps, so they
//!    are refused (0A000).
//! 4. Arrays and rows have no order here: Arrow puts NULL items first, and PostgreSQL last. Those that hold floats or
//!    intervals are not compared at all. Both are refused (0A000).
//!
//! 5. Equal constants are equal expressions ([`value_alone`]).
//!
//! This is an analyzer rule. It runs last, so that the types are known.
//!
//! Report for Arrow 59 and DataFusion 55.2: `eq` of floats compares bits, so `0.0 = -0.0` is false in filters, joins
//! and GROUP BY. SQL needs IEEE 754's equality there.
use crate::error::tunnel;
use crate::functions::convert::value_alone;
use crate::functions::interval;
use crate::plan::rules::Rewrite;
use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::kernels::arity;
use datafusion::arrow::datatypes::{DataType as ArrowType, Float32Type, Float64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, JoinConstraint, Result, ScalarValue};
use datafusion::logical_expr::expr::{
    AggregateFunction, Alias, Case, InList, InSubquery, ScalarFunction, WindowFunction, WindowFunctionDefinition,
};
use datafusion::logical_expr::{
    Between, BinaryExpr, ColumnarValue, Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Subquery, Volatility,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use std::sync::{Arc, LazyLock};
use terrace_engine::EngineError;

#[derive(Debug)]
pub(crate) struct Comparable;

impl AnalyzerRule for Comparable {
    fn name(&self) -> &str {
        "comparable"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewrite = Rewrite {
            concerns: has_arm,
            expr: |expr: Expr, schema: &DFSchema| expr.transform_up(|e| rewrite(e, schema)),
            node: by_node,
        };
        rewrite.plan(plan)
    }
}

/// How values of a type are compared.
enum By {
    Themselves,
    Canonical,
    Key,
    /// Not at all (invariant 4).
    Nothing,
}

fn by(data_type: &ArrowType) -> By {
    match data_type {
        ArrowType::Float32 | ArrowType::Float64 => By::Canonical,
        ArrowType::Interval(_) => By::Key,
        ArrowType::List(item) if !matches!(by(item.data_type()), By::Themselves) => By::Nothing,
        ArrowType::Struct(fields) if !fields.iter().all(|f| matches!(by(f.data_type()), By::Themselves)) => By::Nothing,
        _ => By::Themselves,
    }
}

fn not_compared() -> DataFusionError {
    tunnel(EngineError::unsupported(
        "comparisons of arrays and rows of real, double precision or interval are not supported",
    ))
}

/// Invariant 4.
fn refuse_order<'e>(exprs: impl IntoIterator<Item = &'e Expr>, schema: &DFSchema) -> Result<()> {
    for expr in exprs {
        if matches!(expr.get_type(schema)?, ArrowType::List(_) | ArrowType::Struct(_)) {
            return Err(tunnel(EngineError::unsupported("an order of arrays or rows is not supported")));
        }
    }
    Ok(())
}

fn is_plain(schema: &DFSchema) -> bool {
    schema.fields().iter().all(|f| matches!(by(f.data_type()), By::Themselves))
}

/// Rewrites what a node itself compares: the keys of sorts, joins and so on.
fn by_node(plan: LogicalPlan, schema: &DFSchema) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Sort(mut sort) => {
            refuse_order(sort.expr.iter().map(|by| &by.expr), schema)?;
            if is_plain(schema) {
                return Ok(Transformed::no(LogicalPlan::Sort(sort)));
            }
            sort.expr.iter_mut().try_for_each(|by| wrap(&mut by.expr, schema).map(drop))?;
            Ok(Transformed::yes(LogicalPlan::Sort(sort)))
        }
        LogicalPlan::Join(mut join) if !is_plain(schema) => {
            // Names are resolved by now. Code that asks for the columns of USING expects the keys to be plain columns.
            join.join_constraint = JoinConstraint::On;
            for (left, right) in &mut join.on {
                wrap(left, join.left.schema())?;
                wrap(right, join.right.schema())?;
            }
            Ok(Transformed::yes(LogicalPlan::Join(join)))
        }
        LogicalPlan::Aggregate(mut aggregate) => {
            let mut changed = false;
            for expr in &mut aggregate.group_expr {
                changed |= wrap_group(expr, schema)?;
            }
            Ok(Transformed::new_transformed(LogicalPlan::Aggregate(aggregate), changed))
        }
        LogicalPlan::Distinct(Distinct::All(input)) if !is_plain(schema) => {
            let columns = schema.iter().map(|(qualifier, field)| {
                let column = Expr::Column((qualifier, field).into());
                match by(field.data_type()) {
                    By::Themselves => Ok(column),
                    By::Canonical => Ok(canonical(column).alias_qualified(qualifier.cloned(), field.name())),
                    By::Key => Err(refused("DISTINCT and set operations")),
                    By::Nothing => Err(not_compared()),
                }
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let projected = LogicalPlanBuilder::from(input.as_ref().clone()).project(columns)?.build()?;
            Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::All(Arc::new(projected)))))
        }
        LogicalPlan::Distinct(Distinct::On(on)) => {
            for expr in &on.on_expr {
                match by(&expr.get_type(schema)?) {
                    By::Key => return Err(refused("DISTINCT ON")),
                    By::Nothing => return Err(not_compared()),
                    By::Themselves | By::Canonical => {}
                }
            }
            Ok(Transformed::no(LogicalPlan::Distinct(Distinct::On(on))))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn refused(what: &str) -> DataFusionError {
    let error = EngineError::unsupported(format!("{what} of intervals is not supported"));
    tunnel(error.with_hint("Compare a number of seconds instead: extract(epoch FROM interval)."))
}

/// Replaces an expression by the one that it is compared by. Answers whether the two differ.
fn wrap(expr: &mut Expr, schema: &DFSchema) -> Result<bool> {
    let wrapping: fn(Expr) -> Expr = match by(&expr.get_type(schema)?) {
        By::Themselves => return Ok(false),
        By::Canonical => canonical,
        By::Key => interval::key,
        By::Nothing => return Err(not_compared()),
    };
    let inner = match expr {
        Expr::Alias(Alias { expr, .. }) => expr.as_mut(),
        other => other,
    };
    *inner = wrapping(std::mem::take(inner));
    Ok(true)
}

/// The same for an expression of GROUP BY, which keeps its name.
fn wrap_group(expr: &mut Expr, schema: &DFSchema) -> Result<bool> {
    if let Expr::GroupingSet(sets) = &*expr {
        for e in sets.distinct_expr() {
            if !matches!(by(&e.get_type(schema)?), By::Themselves) {
                let message = "grouping sets of double precision, real or interval are not supported";
                return Err(tunnel(EngineError::unsupported(message)));
            }
        }
        return Ok(false);
    }
    match by(&expr.get_type(schema)?) {
        By::Themselves => Ok(false),
        By::Key => Err(refused("GROUP BY")),
        By::Nothing => Err(not_compared()),
        By::Canonical => {
            let (qualifier, name) = expr.qualified_name();
            let inner = match std::mem::take(expr) {
                Expr::Alias(Alias { expr, .. }) => *expr,
                other => other,
            };
            *expr = canonical(inner).alias_qualified(qualifier, name);
            Ok(true)
        }
    }
}

fn compares(op: Operator) -> bool {
    use Operator::*;
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Whether [`rewrite`] has an arm for an expression.
fn has_arm(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => compares(binary.op),
        Expr::Case(case) => case.expr.is_some(),
        Expr::Between(_) | Expr::InList(_) | Expr::InSubquery(_) => true,
        Expr::AggregateFunction(_) | Expr::WindowFunction(_) => true,
        Expr::ScalarFunction(call) => matches!(call.name(), "greatest" | "least"),
        _ => false,
    }
}

pub(crate) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut changed = false;
    let mut all = |exprs: &mut dyn Iterator<Item = &mut Expr>| -> Result<()> {
        for expr in exprs {
            changed |= wrap(expr, schema)?;
        }
        Ok(())
    };
    let expr = match expr {
        Expr::BinaryExpr(BinaryExpr { mut left, op, mut right }) if compares(op) => {
            if matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq) {
                refuse_order([left.as_ref()], schema)?;
            }
            let mut sides = [left.as_mut(), right.as_mut()];
            all(&mut sides.iter_mut().map(|side| &mut **side))?;
            sides.into_iter().for_each(|side| changed |= value_alone(side));
            Expr::BinaryExpr(BinaryExpr { left, op, right })
        }
        Expr::Between(Between { mut expr, negated, mut low, mut high }) => {
            refuse_order([expr.as_ref()], schema)?;
            all(&mut [expr.as_mut(), low.as_mut(), high.as_mut()].into_iter())?;
            Expr::Between(Between { expr, negated, low, high })
        }
        Expr::InList(InList { mut expr, mut list, negated }) => {
            all(&mut std::iter::once(expr.as_mut()).chain(list.iter_mut()))?;
            std::iter::once(expr.as_mut()).chain(list.iter_mut()).for_each(|item| changed |= value_alone(item));
            Expr::InList(InList { expr, list, negated })
        }
        Expr::Case(Case { expr: Some(mut base), mut when_then_expr, else_expr }) => {
            let whens = when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
            all(&mut std::iter::once(base.as_mut()).chain(whens))?;
            Expr::Case(Case { expr: Some(base), when_then_expr, else_expr })
        }
        Expr::InSubquery(InSubquery { mut expr, subquery, negated }) => {
            all(&mut std::iter::once(expr.as_mut()))?;
            let subquery = if changed { wrapped_subquery(subquery)? } else { subquery };
            Expr::InSubquery(InSubquery { expr, subquery, negated })
        }
        Expr::AggregateFunction(mut call) => {
            refuse_extremes(&call, schema)?;
            if call.params.distinct || matches!(call.func.name(), "min" | "max") {
                all(&mut call.params.args.iter_mut())?;
            }
            refuse_order(call.params.order_by.iter().map(|by| &by.expr), schema)?;
            all(&mut call.params.order_by.iter_mut().map(|by| &mut by.expr))?;
            Expr::AggregateFunction(call)
        }
        Expr::WindowFunction(mut call) => {
            let extreme = refuse_in_window(&call, schema)?;
            let params = &mut call.params;
            if extreme {
                all(&mut params.args.iter_mut())?;
            }
            all(&mut params.partition_by.iter_mut())?;
            all(&mut params.order_by.iter_mut().map(|by| &mut by.expr))?;
            Expr::WindowFunction(call)
        }
        Expr::ScalarFunction(call) if matches!(call.name(), "greatest" | "least") => {
            refuse_order(&call.args, schema)?;
            Expr::ScalarFunction(call)
        }
        other => other,
    };
    Ok(Transformed::new_transformed(expr, changed))
}

/// Refuses what a window function cannot compare or order by. Whether it is `min` or `max`.
fn refuse_in_window(call: &WindowFunction, schema: &DFSchema) -> Result<bool> {
    let params = &call.params;
    let mut extreme = false;
    if let WindowFunctionDefinition::AggregateUDF(function) = &call.fun {
        let (function, args) = (function.clone(), params.args.clone());
        extreme = matches!(function.name(), "min" | "max");
        let aggregate = AggregateFunction::new_udf(function, args, params.distinct, None, vec![], None);
        refuse_extremes(&aggregate, schema)?;
    }
    refuse_order(params.order_by.iter().map(|by| &by.expr), schema)?;
    Ok(extreme)
}

fn refuse_extremes(call: &AggregateFunction, schema: &DFSchema) -> Result<()> {
    if !call.params.distinct && !matches!(call.func.name(), "min" | "max") {
        return Ok(());
    }
    if !call.params.distinct {
        refuse_order(&call.params.args, schema)?;
    }
    for arg in &call.params.args {
        if matches!(by(&arg.get_type(schema)?), By::Key) {
            let distinct = if call.params.distinct { " of DISTINCT" } else { "" };
            return Err(refused(&format!("{}{distinct}", call.func.name())));
        }
    }
    Ok(())
}

/// A subquery whose one column is replaced by what it is compared by.
fn wrapped_subquery(subquery: Subquery) -> Result<Subquery> {
    let plan = subquery.subquery.as_ref().clone();
    let schema = plan.schema().clone();
    let (qualifier, field) = schema.qualified_field(0);
    let mut column = Expr::Column((qualifier, field).into());
    wrap(&mut column, &schema)?;
    let column = column.alias_qualified(qualifier.cloned(), field.name());
    let plan = LogicalPlanBuilder::from(plan).project(vec![column])?.build()?;
    Ok(Subquery { subquery: Arc::new(plan), ..subquery })
}

/// The array that the values of an array are compared by.
pub(crate) fn compared_by(array: &ArrayRef) -> Result<ArrayRef> {
    match by(array.data_type()) {
        By::Themselves => Ok(array.clone()),
        By::Canonical => Ok(canonical_array(array)),
        By::Key => interval::keys(array),
        By::Nothing => Err(not_compared()),
    }
}

static CANONICAL: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(Canonical { signature: Signature::any(1, Volatility::Immutable) })));

/// A float that compares as PostgreSQL's do (invariant 1).
fn canonical(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(CANONICAL.clone(), vec![expr]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Canonical {
    signature: Signature,
}

impl ScalarUDFImpl for Canonical {
    fn name(&self) -> &str {
        "canonical"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &args.args[0] {
            ColumnarValue::Scalar(ScalarValue::Float64(v)) => {
                ColumnarValue::Scalar(ScalarValue::Float64(v.map(double)))
            }
            ColumnarValue::Scalar(ScalarValue::Float32(v)) => {
                ColumnarValue::Scalar(ScalarValue::Float32(v.map(single)))
            }
            ColumnarValue::Scalar(other) => ColumnarValue::Scalar(other.clone()),
            ColumnarValue::Array(array) => ColumnarValue::Array(canonical_array(array)),
        })
    }
}

fn canonical_array(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        ArrowType::Float64 => {
            let array: PrimitiveArray<Float64Type> = arity::unary(array.as_primitive::<Float64Type>(), double);
            Arc::new(array)
        }
        ArrowType::Float32 => {
            let array: PrimitiveArray<Float32Type> = arity::unary(array.as_primitive::<Float32Type>(), single);
            Arc::new(array)
        }
        _ => array.clone(),
    }
}

/// Adding 0 leaves everything but -0 as it is.
fn double(v: f64) -> f64 {
    if v.is_nan() { f64::NAN } else { v + 0.0 }
}

fn single(v: f32) -> f32 {
    if v.is_nan() { f32::NAN } else { v + 0.0 }
}
