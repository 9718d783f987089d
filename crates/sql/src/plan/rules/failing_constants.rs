//! A constant that fails, as `1 / 0` does, fails when the statement is planned, whatever stands beside it:
//! `1 / 0 = NULL`, `SELECT 1 / 0 FROM t WHERE false`, `CASE WHEN a THEN 1 / 0 END`.
//!
//! 1. What is of constants and immutable operators is computed before an operator above it is looked at. So the
//!    simplifier of DataFusion, which makes `x = NULL` a NULL without looking at x, never loses an error.
//! 2. PostgreSQL does not look at what a constant decides: behind a false side of AND and a true one of OR, behind a
//!    condition of CASE that is true, at the result of one that is not, behind a constant of COALESCE. Nor is a column
//!    looked at that nobody reads.
//! 3. What depends on the session (its zone, its styles) is stable in PostgreSQL, and is left to the run. So is what
//!    fails in another way than by its values.
//!
//! Source: PostgreSQL 15, `eval_const_expressions` (optimizer/util/clauses.c).
use crate::error::{from_datafusion, tunnel};
use crate::functions::convert::is_conversion;
use crate::values::decimal::is_decimal;
use crate::values::{enum_of, is_timestamp, is_zoned};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType as ArrowType, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{BinaryExpr, Case, Expr, ExprSchemable, LogicalPlan, Operator, Volatility};
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::physical_expr::create_physical_expr;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct FailingConstants;

impl OptimizerRule for FailingConstants {
    fn name(&self) -> &str {
        "failing_constants"
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if look_at(&plan).is_err() {
            // Invariant 2: without what nobody reads.
            look_at(&OptimizeProjections::new().rewrite(plan.clone(), config)?.data)?;
        }
        Ok(Transformed::no(plan))
    }
}

fn look_at(plan: &LogicalPlan) -> Result<()> {
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            whole(expr)?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

/// The same of an expression that does not come into the plan.
pub(crate) fn refuse_failing(expr: &Expr) -> Result<()> {
    whole(expr).map(drop)
}

/// What an expression is.
#[derive(Clone, Copy, PartialEq)]
enum Found {
    /// Its value comes when the plan runs.
    Varies,
    Constant,
    /// A constant that may fail.
    Open,
}

/// Looks at an expression that nothing stands above.
fn whole(expr: &Expr) -> Result<Found> {
    let found = look(expr)?;
    if found == Found::Open {
        value(expr)?;
    }
    Ok(found)
}

/// The value of a constant, once it was looked at; `None`: it is none, or is not computed here.
fn known(expr: &Expr) -> Result<Option<ScalarValue>> {
    match expr {
        Expr::Literal(value, _) => return Ok(Some(value.clone())),
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
            return Ok(decided(expr, *op)?.1);
        }
        Expr::ScalarFunction(call) if call.name() == "coalesce" => return Ok(first_of(&call.args)?.1),
        _ => {}
    }
    match whole(expr)? {
        Found::Varies => Ok(None),
        Found::Constant | Found::Open => value(expr),
    }
}

fn look(expr: &Expr) -> Result<Found> {
    match expr {
        Expr::Literal(..) => Ok(Found::Constant),
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => Ok(decided(expr, *op)?.0),
        Expr::Case(case) => case_of(case),
        Expr::ScalarFunction(call) if call.name() == "coalesce" => Ok(first_of(&call.args)?.0),
        Expr::Exists(exists) => look_below(&exists.subquery.subquery).map(|()| Found::Varies),
        Expr::InSubquery(member) => {
            whole(&member.expr)?;
            look_at(&member.subquery.subquery).map(|()| Found::Varies)
        }
        Expr::SetComparison(member) => {
            whole(&member.expr)?;
            look_at(&member.subquery.subquery).map(|()| Found::Varies)
        }
        Expr::ScalarSubquery(query) => look_at(&query.subquery).map(|()| Found::Varies),
        _ => parts(expr),
    }
}

/// A query of which only is asked whether it has rows.
fn look_below(plan: &LogicalPlan) -> Result<()> {
    match plan {
        LogicalPlan::Projection(rows) => look_at(&rows.input),
        other => look_at(other),
    }
}

/// An expression of which all parts are computed.
fn parts(expr: &Expr) -> Result<Found> {
    let (mut found, mut open) = (Found::Constant, vec![]);
    expr.apply_children(|part| {
        match look(part)? {
            Found::Varies => found = Found::Varies,
            Found::Constant => {}
            Found::Open => open.push(part),
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if found == Found::Constant
        && let Some(fails) = fails(expr)
    {
        return Ok(if fails || !open.is_empty() { Found::Open } else { Found::Constant });
    }
    for part in open {
        value(part)?;
    }
    Ok(Found::Varies)
}

/// Whether an operator of constants may fail by itself; `None`: its value is not known before the plan runs.
fn fails(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::Alias(_) | Expr::Not(_) | Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::Between(_) | Expr::InList(_) => {
            Some(false)
        }
        Expr::IsTrue(_) | Expr::IsFalse(_) | Expr::IsUnknown(_) => Some(false),
        Expr::IsNotTrue(_) | Expr::IsNotFalse(_) | Expr::IsNotUnknown(_) => Some(false),
        Expr::BinaryExpr(binary) => Some(!compares(binary.op)),
        Expr::Like(_) => Some(false), // What is wrong with a pattern shows where it is read to its end.
        Expr::Negative(_) | Expr::SimilarTo(_) => Some(true),
        Expr::Cast(cast) => keeps_meaning(&[type_of(&cast.expr)?], cast.field.data_type(), true).then_some(true),
        Expr::ScalarFunction(call) => is_immutable(call).then_some(true),
        _ => None,
    }
}

/// Functions that are stable in PostgreSQL; and what reads a pattern of LIKE, whose fault shows where it is read to its
/// end.
const STABLE: [&str; 15] = [
    "array_to_json",
    "array_to_string",
    "concat",
    "concat_ws",
    "format",
    "like_pattern",
    "pg_typeof",
    "quote_literal",
    "quote_nullable",
    "row_to_json",
    "to_char",
    "to_date",
    "to_number",
    "to_timestamp",
    "to_tsvector",
];

/// Invariant 3.
fn is_immutable(call: &ScalarFunction) -> bool {
    let immutable = call.func.signature().volatility == Volatility::Immutable && !STABLE.contains(&call.name());
    let whole = || {
        let args = call.args.iter().map(type_of).collect::<Option<Vec<ArrowType>>>()?;
        let of = type_of(&Expr::ScalarFunction(call.clone()))?;
        Some(keeps_meaning(&args, &of, is_conversion(&call.func)))
    };
    immutable && whole().unwrap_or(false)
}

fn type_of(expr: &Expr) -> Option<ArrowType> {
    expr.get_type(&DFSchema::empty()).ok()
}

/// Whether no zone and no style is asked for: times have none where they are no texts. (What reads a text as an array
/// or a row may ask.)
fn keeps_meaning(args: &[ArrowType], of: &ArrowType, converts: bool) -> bool {
    let mut types = args.iter().chain([of]);
    let as_text = || converts && args.iter().any(|arg| is_time(arg) != is_time(of) || is_made(arg) != is_made(of));
    !types.any(|of| is_zoned(of) || enum_of(of).is_some()) && !as_text()
}

fn is_made(of: &ArrowType) -> bool {
    matches!(of, ArrowType::List(_) | ArrowType::Struct(_)) && !is_decimal(of)
}

fn is_time(of: &ArrowType) -> bool {
    matches!(of, ArrowType::Date32 | ArrowType::Time64(_) | ArrowType::Interval(_)) || is_timestamp(of)
}

/// AND and OR, and their value if it is known: what a constant decides is looked at up to that constant. There may be
/// thousands of sides.
fn decided(expr: &Expr, op: Operator) -> Result<(Found, Option<ScalarValue>)> {
    let (mut left, mut value, deciding) = (vec![expr], Some(Some(op == Operator::And)), op == Operator::Or);
    while let Some(side) = left.pop() {
        match side {
            Expr::BinaryExpr(BinaryExpr { left: one, op: own, right: other }) if *own == op => {
                left.extend([other.as_ref(), one.as_ref()]);
            }
            side => match known(side)? {
                Some(ScalarValue::Boolean(Some(is))) if is == deciding => {
                    return Ok((Found::Constant, Some(ScalarValue::Boolean(Some(deciding)))));
                }
                Some(null) if null.is_null() => value = value.map(|_| None),
                Some(_) => {}
                None => value = None,
            },
        }
    }
    let found = if value.is_some() { Found::Constant } else { Found::Varies };
    Ok((found, value.map(ScalarValue::Boolean)))
}

fn case_of(case: &Case) -> Result<Found> {
    let compared = case.expr.as_deref().map(|expr| Ok::<_, DataFusionError>((expr, whole(expr)?))).transpose()?;
    let mut varies = false;
    for (when, then) in &case.when_then_expr {
        let is = match &compared {
            None => known(when)?,
            Some((_, Found::Varies)) => whole(when).map(|_| None)?,
            Some((of, _)) => known(&Expr::clone(of).eq(when.as_ref().clone()))?,
        };
        match is {
            Some(ScalarValue::Boolean(Some(true))) if varies => return whole(then).map(|_| Found::Varies),
            Some(ScalarValue::Boolean(Some(true))) => return look(then),
            Some(_) => {}
            None => {
                varies = true;
                whole(then)?;
            }
        }
    }
    let last = case.else_expr.as_deref().map_or(Ok(Found::Constant), whole)?;
    Ok(if varies { Found::Varies } else { last })
}

/// COALESCE, and its value if it is known.
fn first_of(args: &[Expr]) -> Result<(Found, Option<ScalarValue>)> {
    let (mut found, mut value) = (Found::Constant, None);
    for arg in args {
        match known(arg)? {
            Some(null) if null.is_null() => value = value.or(Some(null)),
            Some(first) => return Ok((found, Some(first).filter(|_| found == Found::Constant))),
            None => found = Found::Varies,
        }
    }
    Ok((found, value.filter(|_| found == Found::Constant)))
}

/// Computes a constant. What the values are to blame for is an error; `None`: it fails otherwise, or is not to be
/// computed without a plan.
fn value(expr: &Expr) -> Result<Option<ScalarValue>> {
    crate::memory::check().map_err(tunnel)?;
    let computed = compute(expr);
    match computed {
        Ok(value) => Ok(Some(value)),
        Err(error) => match from_datafusion(error) {
            error if error.state.0.starts_with("22") || error.state.0 == "54000" => Err(tunnel(error)),
            _ => Ok(None),
        },
    }
}

/// The value of an expression of constants.
pub(crate) fn compute(expr: &Expr) -> Result<ScalarValue> {
    let (schema, properties) = (DFSchema::empty(), ExecutionProps::new());
    let expr = create_physical_expr(expr, &schema, &properties, &PhysicalPlanningContext::default())?;
    let row = RecordBatchOptions::new().with_row_count(Some(1));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &row)?;
    let computed = expr.evaluate(&batch)?.into_array(1)?;
    ScalarValue::try_from_array(&computed, 0)
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}
