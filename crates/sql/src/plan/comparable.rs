//! Values whose Arrow order is not PostgreSQL's are compared by something that has it.
//!
//! 1. Floats: -0 equals 0, and every NaN equals every other and is above all numbers. Arrow's total order has -0 below
//!    0 and NaNs with a sign (which `inf - inf` makes) below everything: a float that is compared becomes [`canonical`]
//!    first.
//! 2. Intervals are compared by [`crate::functions::interval::key`]: `1 day` equals `24:00:00`.
//! 3. If equal values become one (GROUP BY, DISTINCT, set operations, min, max), PostgreSQL keeps one of them. For
//!    floats, Terrace keeps the one without a sign. Of intervals it keeps the first that it meets ([`by_first`]), and
//!    as min and max the last, which is what PostgreSQL does where its plan takes the rows in the same order. DISTINCT
//!    ON, and aggregates of DISTINCT intervals but `count`, are refused (0A000).
//! 4. Arrays are compared by [`crate::functions::arrays::keys`], and rows by [`crate::functions::rows::keys`]: Arrow
//!    puts NULL items first, and PostgreSQL last. Where equal ones become one they are as intervals are.
//! 5. A jsonb is compared by [`crate::functions::json::key`], whose bytes have PostgreSQL's order. If equal values
//!    become one, a value that others equal with another text (1.0 equals 1) is refused (0A000). A json is not compared
//!    (42883).
//! 6. Plain numerics are compared by their keys ([`crate::values::decimal`]). Of equal ones the first is kept.
//! 7. Equal constants are equal expressions ([`value_alone`]).
//!
//! This is an analyzer rule. It runs last, so that the types are known.
//!
//! Report for Arrow 59 and DataFusion 55.2: `eq` of floats compares bits, so `0.0 = -0.0` is false in filters, joins
//! and GROUP BY. SQL needs IEEE 754's equality there.
use crate::error::tunnel;
use crate::functions::compared::{By, by, canonical, is_kept_in_many_ways, key_of, no_equality, not_compared, wrap_of};
use crate::functions::convert::value_alone;
use crate::functions::{aggregates, builtin, json};
use crate::plan::rules::Rewrite;
use crate::values::arrays::{is_array, is_row, items_of};
use crate::values::decimal;
use crate::values::is_void;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DataFusionError, JoinConstraint, Result, internal_err};
use datafusion::functions_aggregate::first_last::first_value;
use datafusion::logical_expr::expr::{
    AggregateFunction, Alias, Case, InList, InSubquery, WindowFunction, WindowFunctionDefinition,
};
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Between, BinaryExpr, Distinct, DistinctOn, Expr, ExprSchemable, LogicalPlan,
    LogicalPlanBuilder, Operator, Subquery, lit,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use std::sync::Arc;
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

/// Invariant 4.
fn refuse_order<'e>(exprs: impl IntoIterator<Item = &'e Expr>, schema: &DFSchema) -> Result<()> {
    for expr in exprs {
        refuse_void(expr, schema)?;
        match expr.get_type(schema)? {
            of if items_of(&of).is_some_and(|item| *item.data_type() == ArrowType::BinaryView) => {
                let error = EngineError::new("42883", "could not identify an ordering operator for type json[]");
                return Err(tunnel(error.with_hint("Use an explicit ordering operator or modify the query.")));
            }
            of if is_array(&of) && matches!(by(&of), By::Key) => {}
            of @ ArrowType::Struct(_) if !is_array(&of) && matches!(by(&of), By::Key) => {}
            ArrowType::List(_) | ArrowType::Struct(_) => {
                return Err(tunnel(EngineError::unsupported("an order of such arrays is not supported")));
            }
            ArrowType::BinaryView => {
                let error = EngineError::new("42883", "could not identify an ordering operator for type json");
                return Err(tunnel(error.with_hint("Use an explicit ordering operator or modify the query.")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// 42883 of void, which nothing orders and nothing compares.
fn refuse_void(expr: &Expr, schema: &DFSchema) -> Result<()> {
    match expr {
        Expr::GroupingSet(_) => Ok(()),
        expr if is_void(expr.to_field(schema)?.1.as_ref()) => {
            let error = EngineError::new("42883", "could not identify an ordering operator for type void");
            Err(tunnel(error.with_hint("Use an explicit ordering operator or modify the query.")))
        }
        _ => Ok(()),
    }
}

fn is_plain(schema: &DFSchema) -> bool {
    schema.fields().iter().all(|f| matches!(by(f.data_type()), By::Themselves))
}

/// Rewrites what a node itself compares: the keys of sorts, joins and so on.
fn by_node(plan: LogicalPlan, schema: &DFSchema) -> Result<Transformed<LogicalPlan>> {
    match &plan {
        LogicalPlan::Aggregate(rows) => rows.group_expr.iter().try_for_each(|expr| refuse_void(expr, schema))?,
        LogicalPlan::Distinct(_) => {
            schema.columns().into_iter().try_for_each(|column| refuse_void(&Expr::Column(column), schema))?;
        }
        _ => {}
    }
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
        LogicalPlan::Aggregate(aggregate) if has_key(&aggregate.group_expr, schema)? => {
            by_first(aggregate, schema).map(Transformed::yes)
        }
        LogicalPlan::Aggregate(mut aggregate) => {
            let mut changed = false;
            for expr in &mut aggregate.group_expr {
                changed |= wrap_group(expr, schema)?;
            }
            Ok(Transformed::new_transformed(LogicalPlan::Aggregate(aggregate), changed))
        }
        LogicalPlan::Distinct(Distinct::All(input))
            if schema.fields().iter().any(|field| matches!(by(field.data_type()), By::Key)) =>
        {
            let columns = schema.iter().map(|column| Expr::Column(column.into())).collect();
            by_node(LogicalPlan::Aggregate(Aggregate::try_new(input, columns, vec![])?), schema)
        }
        LogicalPlan::Distinct(Distinct::All(input)) if !is_plain(schema) => {
            let columns = schema.iter().map(|(qualifier, field)| {
                let column = Expr::Column((qualifier, field).into());
                match by(field.data_type()) {
                    By::Themselves => Ok(column),
                    By::Canonical => Ok(canonical(column).alias_qualified(qualifier.cloned(), field.name())),
                    By::Json => Ok(json::alone(column).alias_qualified(qualifier.cloned(), field.name())),
                    By::Key => internal_err!("a column that goes by keys is told above"),
                    By::Nothing => Err(not_compared()),
                    By::Never => Err(no_equality()),
                }
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let projected = LogicalPlanBuilder::from(input.as_ref().clone()).project(columns)?.build()?;
            Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::All(Arc::new(projected)))))
        }
        LogicalPlan::Distinct(Distinct::On(on)) => distinct_on(on, schema),
        LogicalPlan::RecursiveQuery(query) if query.is_distinct => {
            // DataFusion tells the rows of a round from earlier ones by their bytes.
            match schema.fields().iter().find(|field| is_kept_in_many_ways(field.data_type())) {
                Some(field) => Err(tunnel(recursion_refused(field.data_type()))),
                None => Ok(Transformed::no(LogicalPlan::RecursiveQuery(query))),
            }
        }
        other => Ok(Transformed::no(other)),
    }
}

fn recursion_refused(of: &ArrowType) -> EngineError {
    let name = builtin::type_name(of);
    EngineError::unsupported(format!("UNION of WITH RECURSIVE with a column of type {name} is not supported yet"))
        .with_hint("Take UNION ALL, or a column of another type.")
}

/// Of what is no plain numeric, what is sorted first tells the groups: it goes by itself.
fn distinct_on(mut on: DistinctOn, schema: &DFSchema) -> Result<Transformed<LogicalPlan>> {
    for expr in &on.on_expr {
        match by(&expr.get_type(schema)?) {
            By::Key if decimal::is_decimal(&expr.get_type(schema)?) => {}
            By::Key => return Err(refused("DISTINCT ON", &expr.get_type(schema)?)),
            By::Json => return Err(tunnel(EngineError::unsupported("DISTINCT ON a jsonb is not supported"))),
            By::Nothing => return Err(not_compared()),
            By::Never => return Err(no_equality()),
            By::Themselves | By::Canonical => {}
        }
    }
    let mut changed = false;
    let sorted = on.sort_expr.iter_mut().flatten().map(|by| &mut by.expr);
    for expr in on.on_expr.iter_mut().chain(sorted) {
        if decimal::is_decimal(&expr.get_type(schema)?) {
            changed |= wrap(expr, schema)?;
        }
    }
    Ok(Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(on)), changed))
}

/// Whether intervals, numerics or arrays are grouped by.
fn has_key(groups: &[Expr], schema: &DFSchema) -> Result<bool> {
    for expr in groups {
        if !matches!(expr, Expr::GroupingSet(_)) && matches!(by(&expr.get_type(schema)?), By::Key) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Groups by what intervals, numerics and arrays compare by; the first one of a group stands for it (invariant 3).
fn by_first(aggregate: Aggregate, schema: &DFSchema) -> Result<LogicalPlan> {
    let Aggregate { input, group_expr, mut aggr_expr, schema: told, .. } = aggregate;
    let of_groups = group_expr.len();
    let (mut groups, mut shown) = (vec![], vec![]);
    for (at, (mut expr, column)) in group_expr.into_iter().zip(told.iter()).enumerate() {
        let (qualifier, name) = (column.0.cloned(), column.1.name().clone());
        if !matches!(by(&expr.get_type(schema)?), By::Key) {
            wrap_group(&mut expr, schema)?;
            groups.push(expr);
            shown.push(Expr::Column(column.into()));
            continue;
        }
        let inner = match expr {
            Expr::Alias(Alias { expr, .. }) => *expr,
            other => other,
        };
        let (key, first) = (format!("__key_{at}"), format!("__first_{at}"));
        groups.push(key_of(&inner.get_type(input.schema())?)(inner.clone()).alias(key));
        aggr_expr.push(first_value(inner, vec![]).alias(&first));
        shown.push(Expr::Column(Column::new_unqualified(first)).alias_qualified(qualifier, name));
    }
    shown.extend(told.iter().skip(of_groups).map(|column| Expr::Column(column.into())));
    let grouped = LogicalPlan::Aggregate(Aggregate::try_new(input, groups, aggr_expr)?);
    LogicalPlanBuilder::from(grouped).project(shown)?.build()
}

fn refused(what: &str, of: &ArrowType) -> DataFusionError {
    if is_array(of) {
        return tunnel(EngineError::unsupported(format!("{what} of arrays is not supported")));
    }
    if let ArrowType::Struct(_) = of {
        return tunnel(EngineError::unsupported(format!("{what} of rows is not supported")));
    }
    if decimal::is_decimal(of) {
        let error =
            EngineError::unsupported(format!("{what} of numerics without precision and scale is not supported"));
        return tunnel(error.with_hint("Cast them to numeric(p, s)."));
    }
    let error = EngineError::unsupported(format!("{what} of intervals is not supported"));
    tunnel(error.with_hint("Compare a number of seconds instead: extract(epoch FROM interval)."))
}

/// Replaces an expression by the one that it is compared by. Answers whether the two differ.
fn wrap(expr: &mut Expr, schema: &DFSchema) -> Result<bool> {
    wrap_of(expr, &expr.get_type(schema)?)
}

/// The same for an expression of GROUP BY, which keeps its name.
fn wrap_group(expr: &mut Expr, schema: &DFSchema) -> Result<bool> {
    if let Expr::GroupingSet(sets) = &*expr {
        for e in sets.distinct_expr() {
            if !matches!(by(&e.get_type(schema)?), By::Themselves) {
                let message =
                    "grouping sets of double precision, real, numeric, interval, jsonb or arrays are not supported";
                return Err(tunnel(EngineError::unsupported(message)));
            }
        }
        return Ok(false);
    }
    match by(&expr.get_type(schema)?) {
        By::Themselves => Ok(false),
        By::Key => internal_err!("these are grouped by their keys"),
        By::Nothing => Err(not_compared()),
        By::Never => Err(no_equality()),
        kind @ (By::Canonical | By::Json) => {
            let (qualifier, name) = expr.qualified_name();
            let inner = match std::mem::take(expr) {
                Expr::Alias(Alias { expr, .. }) => *expr,
                other => other,
            };
            let made = if matches!(kind, By::Json) { json::alone(inner) } else { canonical(inner) };
            *expr = made.alias_qualified(qualifier, name);
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
            let own = has_own(&call, schema)?;
            if (call.params.distinct || is_extreme(&call.func)) && !own {
                all(&mut call.params.args.iter_mut())?;
            }
            refuse_order(call.params.order_by.iter().map(|by| &by.expr), schema)?;
            all(&mut call.params.order_by.iter_mut().map(|by| &mut by.expr))?;
            changed |= own && keep_distinct(&mut call);
            Expr::AggregateFunction(call)
        }
        Expr::WindowFunction(mut call) => {
            let compared = compare_arguments(&mut call, schema)?;
            let params = &mut call.params;
            all(&mut params.partition_by.iter_mut())?;
            all(&mut params.order_by.iter_mut().map(|by| &mut by.expr))?;
            changed |= compared;
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

/// Whether the aggregate goes by the keys of its values by itself.
fn has_own(call: &AggregateFunction, schema: &DFSchema) -> Result<bool> {
    let keyed = is_extreme(&call.func) || aggregates::is_computed(call.func.name());
    Ok(keyed && of_keys(&call.params.args, schema)?)
}

/// Without a filter, the optimizer makes a GROUP BY of distinct values, which are not their keys. Whether one was put.
fn keep_distinct(call: &mut AggregateFunction) -> bool {
    let bare = call.params.distinct && call.params.filter.is_none();
    if bare {
        call.params.filter = Some(Box::new(lit(true)));
    }
    bare
}

fn is_extreme(function: &AggregateUDF) -> bool {
    matches!(function.name(), "min" | "max")
}

/// They have aggregates of their own, which go by keys ([`crate::functions::aggregates`]).
fn of_keys(args: &[Expr], schema: &DFSchema) -> Result<bool> {
    let types = args.iter().map(|arg| arg.get_type(schema)).collect::<Result<Vec<ArrowType>>>()?;
    Ok(types.iter().any(|of| matches!(by(of), By::Key)))
}

/// A window function whose arguments are what it compares.
pub(crate) fn with_compared_arguments(mut call: WindowFunction, schema: &DFSchema) -> Result<WindowFunction> {
    compare_arguments(&mut call, schema)?;
    Ok(call)
}

fn compare_arguments(call: &mut WindowFunction, schema: &DFSchema) -> Result<bool> {
    let mut changed = false;
    if refuse_in_window(call, schema)? && !of_keys(&call.params.args, schema)? {
        for arg in &mut call.params.args {
            changed |= wrap(arg, schema)?;
        }
    }
    Ok(changed)
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
    for arg in &call.params.args {
        let of = arg.get_type(schema)?;
        if is_void(arg.to_field(schema)?.1.as_ref()) {
            let message = format!("function {}(void) does not exist", call.func.name());
            return Err(tunnel(builtin::with_hint(EngineError::new("42883", message))));
        }
        match (call.func.name(), by(&of)) {
            (name @ ("min" | "max"), kind) if matches!(kind, By::Json | By::Never) || is_row(&of) => {
                let message = format!("function {name}({}) does not exist", builtin::type_name(&of));
                return Err(tunnel(builtin::with_hint(EngineError::new("42883", message))));
            }
            ("count", By::Json) => {}
            (name, By::Json) => {
                return Err(tunnel(EngineError::unsupported(format!("{name} of DISTINCT jsonb is not supported"))));
            }
            _ => {}
        }
        if !call.params.distinct {
            refuse_order(std::iter::once(arg), schema)?;
        }
        let of_own = decimal::is_decimal(&of) && aggregates::is_computed(call.func.name());
        if matches!(by(&of), By::Key) && call.params.distinct && call.func.name() != "count" && !of_own {
            return Err(refused(&format!("{} of DISTINCT", call.func.name()), &of));
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
