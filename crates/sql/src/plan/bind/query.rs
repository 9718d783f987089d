//! A query: WITH, its body, the order of its result, and how much of it is wanted.
//!
//! 1. A query of WITH is bound once, whether it is read or not; what is volatile may be read once (else the statement
//!    is refused elsewhere).
//! 2. A recursive query is a UNION whose last part reads it once, in its FROM.
//! 3. The result of VALUES, and of sets, is ordered by its columns, by name or number.
//! 4. The columns of UNION, INTERSECT and EXCEPT, and of VALUES, are of one type each, as PostgreSQL finds it.
use super::scope::{Clause, Cte, Ctes, Kind, Scope};
use super::select::Order;
use super::starts::{as_plain_numerics, with_plain_numerics};
use super::{Binder, Bound, Fault, Placed, Result, fail, from, from::Source, unsupported, wrong};
use crate::cast::cast_datum;
use crate::functions::arithmetic::is_number;
use crate::functions::builtin;
use crate::functions::convert::{convert, convert_scalar, is_open};
use crate::plan::origins::origins;
use crate::plan::{choosers, resolve, rules};
use crate::values::decimal::is_decimal;
use crate::values::{arrow_type, engine_type};
use datafusion::arrow::datatypes::{DataType as ArrowType, Schema};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue, TableReference};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::expr_rewriter::coerce_plan_expr_for_schema;
use datafusion::logical_expr::{
    Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Projection, Union, lit,
};
use datafusion::optimizer::analyzer::type_coercion::coerce_union_schema;
use std::rc::Rc;
use std::sync::Arc;
use terrace_engine::{DataType, EngineError};
use terrace_grammar::statement::{
    self as tree, At, Body, ExprKind, FromItem, Ident, JoinKind, Literal, Query, SetOperator, Statement, With,
};

/// Queries of one UNION.
const UNION_MAX: usize = 2000;

/// What stands around a part of a query.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) scope: Option<&'a Scope<'a>>,
    pub(super) ctes: &'a Ctes<'a>,
}

/// Stack that one level of a query or an expression may take.
const RED_ZONE: usize = 128 << 10;
const MORE_STACK: usize = 4 << 20;

/// Queries of one INTERSECT or EXCEPT, each a join within the next one.
const SETS_MAX: usize = 128;

/// Runs what may recurse.
pub(super) fn deeper<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, MORE_STACK, work)
}

impl Binder<'_> {
    pub(super) fn query(&self, query: &Query, around: Option<&Scope<'_>>, ctes: &Ctes<'_>) -> Result<Bound> {
        crate::memory::check()?;
        deeper(|| {
            let own = Ctes::within(ctes);
            if let Some(with) = &query.with {
                self.with(with, around, &own)?;
            }
            if !query.locking.is_empty() {
                return unsupported("SELECT FOR UPDATE within this statement");
            }
            self.body(query, Around { scope: around, ctes: &own })
        })
    }

    fn body(&self, query: &Query, around: Around<'_>) -> Result<Bound> {
        let bound = match &query.body {
            Body::Select(select) => return self.select(query, select, around),
            Body::Values(rows) => self.values(rows, query.at, around)?,
            Body::Set { op, all, branches } => self.set(*op, *all, branches, query.at, around)?,
        };
        let columns = bound.titles.iter().cloned().zip(from::columns(&bound.plan)).collect::<Vec<_>>();
        let mut sorts = vec![];
        for by in &query.order {
            let Some(expr) = self.output(&by.expr, &columns, Clause::Order)? else {
                if let ExprKind::Column(name) = &by.expr.kind
                    && name.qualifier().is_empty()
                {
                    return wrong(by.expr.at, "42703", format!("column \"{}\" does not exist", name.shown()));
                }
                let error = EngineError::new("0A000", "invalid UNION/INTERSECT/EXCEPT ORDER BY clause");
                let detail = "Only result column names can be used, not expressions or functions.";
                return fail(by.expr.at, error.with_detail(detail));
            };
            sorts.push(Order::of(by)?.sort(expr));
        }
        let mut plan = LogicalPlanBuilder::from(bound.plan);
        if !sorts.is_empty() {
            plan = plan.sort(sorts)?;
        }
        Ok(Bound::new(self.limited(plan.build()?, query, around)?, bound.titles))
    }

    pub(super) fn with(&self, with: &With, around: Option<&Scope<'_>>, ctes: &Ctes<'_>) -> Result<()> {
        if with.recursive {
            ctes.expect_names(with.ctes.iter().map(|cte| cte.name.name.as_str()));
        }
        for cte in &with.ctes {
            let name = &cte.name.name;
            if ctes.has(name) {
                let message = format!("WITH query name \"{name}\" specified more than once");
                return wrong(cte.name.at, "42712", message);
            }
            let Statement::Query(query) = cte.statement.as_ref() else {
                self.changed(cte, ctes)?;
                continue;
            };
            let (mut bound, copies) = self.copied(|| {
                let recursive = match with.recursive {
                    true => self.recursive(query, cte, around, ctes)?,
                    false => None,
                };
                match recursive {
                    Some(bound) => Ok(bound),
                    None => self.query(query, around, ctes),
                }
            })?;
            if cte.columns.len() > bound.titles.len() {
                let (has, given) = (bound.titles.len(), cte.columns.len());
                let message =
                    format!("WITH query \"{name}\" has {has} columns available but {given} columns specified");
                return wrong(cte.name.at, "42P10", message);
            }
            for (title, column) in bound.titles.iter_mut().zip(&cte.columns) {
                *title = column.name.clone();
            }
            let kind = if rules::is_volatile(&bound.plan)? { Kind::Volatile } else { Kind::Plain };
            if kind == Kind::Volatile && !self.planner.parts.is_empty() {
                return unsupported("a volatile query of WITH beside a change within WITH");
            }
            let plan = Arc::new(bound.plan);
            ctes.next_is_bound();
            ctes.add(Cte { name: name.clone(), plan, titles: bound.titles, kind, copies, reads: Rc::default() });
        }
        Ok(())
    }

    /// A change within WITH: what it has returned.
    fn changed(&self, cte: &tree::Cte, ctes: &Ctes<'_>) -> Result<()> {
        let name = cte.name.name.clone();
        let Some(part) = self.planner.parts.iter().find(|part| part.at == cte.name.at) else {
            return unsupported("a change within WITH of this statement");
        };
        let table: Arc<dyn TableProvider> =
            Arc::new(MemTable::try_new(part.schema.clone(), vec![part.batches.clone()])?);
        let called = self.relation_name(&name);
        let origins = origins(&part.schema).into_iter().map(|origin| (origin.0 != 0).then_some(origin));
        self.origins.borrow_mut().insert(called.clone(), origins.collect());
        let called = TableReference::bare(called);
        let plan = LogicalPlanBuilder::scan(called, provider_as_source(table), None)?.build()?;
        let mut titles = part.titles.clone().unwrap_or_default();
        if cte.columns.len() > titles.len() && part.titles.is_some() {
            let (has, given) = (titles.len(), cte.columns.len());
            let message = format!("WITH query \"{name}\" has {has} columns available but {given} columns specified");
            return wrong(cte.name.at, "42P10", message);
        }
        for (title, column) in titles.iter_mut().zip(&cte.columns) {
            *title = column.name.clone();
        }
        let kind = if part.titles.is_some() { Kind::Plain } else { Kind::Silent };
        ctes.add(Cte { name, plan: Arc::new(plan), titles, kind, copies: 1, reads: Rc::default() });
        Ok(())
    }

    /// Invariant 2; `None`: it does not read itself.
    fn recursive(
        &self,
        query: &Query,
        cte: &tree::Cte,
        around: Option<&Scope<'_>>,
        ctes: &Ctes<'_>,
    ) -> Result<Option<Bound>> {
        let Body::Set { op: SetOperator::Union, all, branches } = &query.body else { return Ok(None) };
        let [first @ .., last] = branches.as_slice() else { return Ok(None) };
        if query.with.is_some() {
            // It may be read where it does not read itself.
            return match self.query(query, around, ctes) {
                Err(Fault::Wrong { error, .. }) if error.state.0 == "42P19" => {
                    unsupported("WITH in a query of WITH RECURSIVE")
                }
                bound => bound.map(Some),
            };
        }
        let place = Around { scope: around, ctes };
        let start = match first {
            [] => return Ok(None),
            [one] => self.query(one, around, ctes)?,
            several => self.set(SetOperator::Union, *all, several, query.at, place)?,
        };
        let start = Bound { plan: with_plain_numerics(start.plan, first)?, ..start };
        let working = self.relation_name(&cte.name.name);
        let reads: Rc<std::cell::Cell<usize>> = Rc::default();
        let mut titles = start.titles.clone();
        for (title, column) in titles.iter_mut().zip(&cte.columns) {
            *title = column.name.clone();
        }
        let plan = Arc::new(self.working(&working, &start.plan)?);
        let reads_it = reads.clone();
        ctes.add(Cte { name: cte.name.name.clone(), plan, titles, kind: Kind::Working, copies: 1, reads });
        let step = self.query(last, around, ctes);
        ctes.remove();
        if reads_it.get() == 0 {
            return Ok(None);
        }
        let step = step?;
        let name = &cte.name.name;
        check_reads(last, name, reads_it.get())?;
        if aggregates_rounds(&step.plan, &working)? {
            let message = "aggregate functions are not allowed in a recursive query's recursive term";
            return wrong(last.at, "42P19", message);
        }
        let ends = !query.order.is_empty() || query.limit.is_some() || query.offset.is_some();
        if ends || reads_it.get() > 1 || scans(&step.plan, &working)? > 1 || step.titles.len() != start.titles.len() {
            return unsupported("this form of WITH RECURSIVE");
        }
        let step = stepping(&start.plan, step.plan, &cte.name)?;
        let plan = LogicalPlanBuilder::from(start.plan).to_recursive_query(working, step, !*all)?.build()?;
        Ok(Some(Bound::new(plan, start.titles)))
    }

    /// The rows of the round before, of which any column may be NULL.
    fn working(&self, name: &str, start: &LogicalPlan) -> Result<LogicalPlan> {
        let fields = start.schema().fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let table: Arc<dyn TableProvider> = Arc::new(CteWorkTable::new(name, schema));
        Ok(LogicalPlanBuilder::scan(TableReference::bare(name), provider_as_source(table), None)?.build()?)
    }

    fn set(&self, op: SetOperator, all: bool, branches: &[Query], at: At, around: Around<'_>) -> Result<Bound> {
        let most = if op == SetOperator::Union { UNION_MAX } else { SETS_MAX };
        if branches.len() > most {
            let of = if op == SetOperator::Union { "UNION" } else { "INTERSECT or EXCEPT" };
            return wrong(at, "54001", format!("more than {most} queries of {of}"));
        }
        assert!(branches.len() > 1, "a set operation has two sides");
        let bound = branches.iter().map(|branch| self.query(branch, around.scope, around.ctes));
        let bound = bound.collect::<Result<Vec<Bound>>>()?;
        let titles = bound[0].titles.clone();
        let name = match op {
            SetOperator::Union => "UNION",
            SetOperator::Intersect => "INTERSECT",
            SetOperator::Except => "EXCEPT",
        };
        if let Some(other) = bound.iter().position(|other| other.titles.len() != titles.len()) {
            let message = format!("each {name} query must have the same number of columns");
            return wrong(first_place(&branches[other]), "42601", message);
        }
        if titles.is_empty() {
            return self.set_without_columns(op, all, bound);
        }
        let at = other_kind(&bound).and_then(|(branch, item)| item_place(&branches[branch], item)).unwrap_or(at);
        let mut plans: Vec<Arc<LogicalPlan>> = bound.into_iter().map(|bound| Arc::new(bound.plan)).collect();
        read_beside(&mut plans).at_value_of(&listed(branches)).at(at)?;
        let plan = if op == SetOperator::Union {
            let united = self.united(plans, branches, at);
            let united = united.at_value_of(&listed(branches)).at(at)?;
            let united = self.renamed(united, &titles)?;
            if all { united } else { LogicalPlan::Distinct(Distinct::All(Arc::new(united))) }
        } else {
            let plans = matched(name, plans).at_value_of(&listed(branches)).at(at)?;
            let mut plans = plans.into_iter();
            let mut left = plans.next().expect("a set has branches");
            for right in plans {
                left = beside(op, left, right, all).at(at)?;
            }
            self.renamed(left, &titles)?
        };
        Ok(Bound::new(plan, titles))
    }

    /// Rows without columns are all alike: as rows of one constant are.
    fn set_without_columns(&self, op: SetOperator, all: bool, bound: Vec<Bound>) -> Result<Bound> {
        let name = self.column_name("");
        let one = |bound: Bound| LogicalPlanBuilder::from(bound.plan).project([lit(1i32).alias(&name)])?.build();
        let mut plans =
            bound.into_iter().map(|bound| Ok(one(bound)?)).collect::<Result<Vec<LogicalPlan>>>()?.into_iter();
        let mut left = plans.next().expect("a set has branches");
        for right in plans {
            left = match op {
                SetOperator::Union => LogicalPlanBuilder::from(left).union(right)?.build()?,
                _ => beside(op, left, right, all)?,
            };
        }
        if op == SetOperator::Union && !all {
            left = LogicalPlan::Distinct(Distinct::All(Arc::new(left)));
        }
        let nothing = LogicalPlanBuilder::from(left).project(Vec::<Expr>::new())?.build()?;
        Ok(Bound::new(nothing, vec![]))
    }

    /// A plan with columns of these titles, where it has lost them.
    fn renamed(&self, plan: LogicalPlan, titles: &[String]) -> Result<LogicalPlan> {
        let called = plan.schema().fields().iter().map(|field| crate::plan::naming::shown(field.name()));
        if called.eq(titles.iter().map(String::as_str)) {
            return Ok(plan);
        }
        let columns = from::columns(&plan).zip(titles).map(|(column, title)| column.alias(self.column_name(title)));
        let columns: Vec<Expr> = columns.collect();
        Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
    }

    /// Upstream: DataFusion's rules for UNION look for columns by their names in all of its queries. So these are
    /// called alike.
    fn united(&self, mut plans: Vec<Arc<LogicalPlan>>, branches: &[Query], at: At) -> Result<LogicalPlan> {
        if let Some((late, of)) = late_type(&plans) {
            let message = format!("UNION types text and {of} cannot be matched");
            let branches = branches.get(late.0).and_then(|branch| item_place(branch, late.1));
            return wrong(branches.unwrap_or(at), "42804", message);
        }
        let names: Vec<String> = plans[0].schema().fields().iter().map(|field| field.name().clone()).collect();
        assert!(plans.iter().all(|plan| plan.schema().fields().len() == names.len()), "they were counted");
        for plan in &mut plans[1..] {
            *plan = Arc::new(called_as(LogicalPlan::clone(plan), &names)?);
        }
        let union = LogicalPlan::Union(Union::try_new_with_loose_types(plans)?);
        let schema = union.schema().clone();
        let union = resolve::node(union, &schema)?.data;
        match rules::settled_union(union)? {
            // What the columns are beside one another is known now, and told to the queries around.
            LogicalPlan::Union(Union { inputs, schema }) => {
                let schema = common_schema(&inputs, &schema)?;
                let typed = inputs.into_iter().map(|input| {
                    let input = coerce_plan_expr_for_schema(Arc::unwrap_or_clone(input), &schema)?;
                    Ok(Arc::new(input))
                });
                Ok(LogicalPlan::Union(Union { inputs: typed.collect::<Result<_>>()?, schema: Arc::new(schema) }))
            }
            other => Ok(other),
        }
    }

    fn values(&self, rows: &[Vec<tree::Expr>], at: At, around: Around<'_>) -> Result<Bound> {
        let nothing = Source::nothing()?;
        let scope = Scope::new(&nothing, around.scope, around.ctes);
        scope.clause.set(Clause::Values);
        let width = rows.first().map_or(0, Vec::len);
        super::bounds::columns(width)?;
        if let Some(row) = rows.iter().find(|row| row.len() != width) {
            let place = row.first().map_or(at, |value| value.at);
            return wrong(place, "42601", "VALUES lists must all be the same length");
        }
        let mut bound: Vec<Vec<Expr>> = Vec::with_capacity(rows.len());
        for row in rows {
            if row.iter().any(|value| matches!(value.kind, ExprKind::Default)) {
                return unsupported("DEFAULT in VALUES");
            }
            bound.push(row.iter().map(|value| self.expr(value, &scope)).collect::<Result<_>>()?);
        }
        self.one_type_each(&mut bound, &scope)?;
        assert!(bound.iter().all(|row| row.len() == width), "invariant 4: columns of one type each");
        let plan = LogicalPlanBuilder::values(bound)?.build()?;
        let titles: Vec<String> = (1..=width).map(|number| format!("column{number}")).collect();
        Ok(Bound::new(plan, titles))
    }

    /// A number of rows, as a bigint; `None`: NULL, which is no bound.
    pub(super) fn count(&self, count: &tree::Expr, clause: Clause, around: Around<'_>) -> Result<Option<Expr>> {
        let whole = |value: i64| Ok(Some(Expr::Literal(ScalarValue::Int64(Some(value)), None)));
        let value = match &count.kind {
            ExprKind::Literal(Literal::Int(value)) => Some(*value),
            ExprKind::Literal(Literal::Null) => return Ok(None),
            ExprKind::Literal(Literal::Text(text)) => match DataType::Int8.parse(text).at_value(count.at)? {
                terrace_engine::Datum::Int8(value) => Some(value),
                _ => None,
            },
            ExprKind::Literal(Literal::Number(text)) => {
                let out_of_range = |_| EngineError::out_of_range("bigint");
                let exact = DataType::Numeric(None).parse(text).map_err(out_of_range)?;
                match cast_datum(exact, DataType::Int8, false)? {
                    terrace_engine::Datum::Int8(value) => Some(value),
                    _ => None,
                }
            }
            ExprKind::Parameter(number) => {
                self.settle_parameter(parameter_number(*number)?, DataType::Int8);
                None
            }
            ExprKind::Scalar(_) | ExprKind::Exists(_) => return unsupported("a query in LIMIT"),
            _ => None,
        };
        if let Some(value) = value {
            // What is below zero is refused when it is counted.
            return whole(value);
        }
        let bound = self.without_variables(count, clause, around)?;
        let of = bound.get_type(&DFSchema::empty())?;
        if !is_number(&of) && !is_open(&bound) {
            let name = builtin::type_name(&of);
            let message = format!("argument of {} must be type bigint, not type {name}", clause.name());
            return wrong(count.at, "42804", message);
        }
        Ok(Some(if of == arrow_type(DataType::Int8) { bound } else { convert(bound, DataType::Int8) }))
    }

    /// An expression that is over no rows. 42P10
    pub(super) fn without_variables(&self, expr: &tree::Expr, clause: Clause, around: Around<'_>) -> Result<Expr> {
        let nothing = Source::nothing()?;
        let scope = Scope::new(&nothing, None, around.ctes);
        scope.clause.set(clause);
        self.expr(expr, &scope).map_err(|fault| match fault {
            // A column of a query around may be named.
            Fault::Wrong { error, .. }
                if matches!(error.state.0, "42703" | "42P01")
                    && self.expr(expr, &Scope::new(&nothing, around.scope, around.ctes)).is_ok() =>
            {
                Fault::Unsupported("a column of the query around in LIMIT or OFFSET")
            }
            Fault::Wrong { error, at } if error.state.0 == "42703" || error.state.0 == "42P01" => {
                let message = format!("argument of {} must not contain variables", clause.name());
                Fault::Wrong { error: Box::new(EngineError::new("42P10", message)), at }
            }
            fault => fault,
        })
    }
}

/// What a recursive query adds, of the types that it began with. 42804
fn stepping(start: &LogicalPlan, step: LogicalPlan, cte: &Ident) -> Result<LogicalPlan> {
    let same = |start: &LogicalPlan, step: &LogicalPlan| {
        let mut fields = start.schema().fields().iter().zip(step.schema().fields());
        fields.position(|(start, step)| start.data_type() != step.data_type())
    };
    let mut both = [start.clone(), step];
    rules::settle_branches("UNION", &mut both)?;
    let [_, step] = both;
    let step = as_plain_numerics(start, step)?;
    if same(start, &step).is_none() {
        return Ok(step);
    }
    let both = [Arc::new(start.clone()), Arc::new(step.clone())];
    for (number, (start, step)) in start.schema().fields().iter().zip(step.schema().fields()).enumerate() {
        let common = match choosers::cannot_be_compared(start.data_type(), step.data_type()) {
            _ if is_decimal(start.data_type()) && step.data_type().is_floating() => step.clone(),
            true => step.clone(),
            false => coerce_union_schema(&both)?.fields()[number].clone(),
        };
        if common.data_type() != start.data_type() {
            let (began, whole) = (builtin::type_name(start.data_type()), builtin::type_name(common.data_type()));
            let message = format!(
                "recursive query \"{}\" column {} has type {began} in non-recursive term but type {whole} overall",
                cte.name,
                number + 1
            );
            let hint = "Cast the output of the non-recursive term to the correct type.";
            return fail(cte.at, EngineError::new("42804", message).with_hint(hint));
        }
    }
    Ok(coerce_plan_expr_for_schema(step, start.schema())?)
}

/// The number of a parameter that may be sent.
pub(super) fn parameter_number(number: u32) -> Result<usize> {
    match number {
        1..=65_535 => Ok(number as usize),
        _ => unsupported("a parameter of this number"),
    }
}

/// The columns of a UNION, each of the type that all its queries have in common, with what was told of them before.
fn common_schema(inputs: &[Arc<LogicalPlan>], told: &DFSchema) -> Result<DFSchema> {
    let common = coerce_union_schema(inputs)?;
    let fields = common.iter().zip(told.fields()).map(|((qualifier, field), told)| {
        let field = field.as_ref().clone().with_metadata(told.metadata().clone());
        (qualifier.cloned(), Arc::new(field))
    });
    Ok(DFSchema::new_with_metadata(fields.collect(), common.metadata().clone())?)
}

/// A plan with columns of these names.
fn called_as(plan: LogicalPlan, names: &[String]) -> Result<LogicalPlan> {
    let rename = |(expr, name): (Expr, &String)| match expr {
        Expr::Column(column) if column.name == *name => Expr::Column(column),
        expr => expr.unalias().alias(name),
    };
    Ok(match plan {
        LogicalPlan::Projection(Projection { expr, input, .. }) => {
            let columns = expr.into_iter().zip(names).map(rename).collect();
            LogicalPlan::Projection(Projection::try_new(columns, input)?)
        }
        LogicalPlan::Distinct(Distinct::All(rows)) => {
            LogicalPlan::Distinct(Distinct::All(Arc::new(called_as(Arc::unwrap_or_clone(rows), names)?)))
        }
        LogicalPlan::Union(Union { inputs, schema }) => {
            let inputs = inputs.into_iter().map(|input| Ok(Arc::new(called_as(Arc::unwrap_or_clone(input), names)?)));
            let inputs = inputs.collect::<Result<Vec<_>>>()?;
            let renamed = inputs[0].schema().iter().zip(schema.fields()).map(|((qualifier, first), told)| {
                (qualifier.cloned(), Arc::new(told.as_ref().clone().with_name(first.name())))
            });
            let schema = DFSchema::new_with_metadata(renamed.collect(), schema.metadata().clone())?;
            LogicalPlan::Union(Union { inputs, schema: Arc::new(schema) })
        }
        plan => {
            let columns: Vec<Expr> = from::columns(&plan).zip(names).map(rename).collect();
            LogicalPlanBuilder::from(plan).project(columns)?.build()?
        }
    })
}

/// Queries whose columns have types in common: which, is settled later (`plan::resolve`).
fn matched(what: &str, plans: Vec<Arc<LogicalPlan>>) -> Result<Vec<LogicalPlan>> {
    let mut plans: Vec<LogicalPlan> = plans.into_iter().map(Arc::unwrap_or_clone).collect();
    rules::settle_branches(what, &mut plans)?;
    Ok(plans)
}

/// INTERSECT or EXCEPT of two queries.
fn beside(op: SetOperator, left: LogicalPlan, right: LogicalPlan, all: bool) -> Result<LogicalPlan> {
    let joined = match op {
        SetOperator::Intersect => LogicalPlanBuilder::intersect(left, right, all)?,
        _ => LogicalPlanBuilder::except(left, right, all)?,
    };
    let schema = joined.schema().clone();
    Ok(resolve::node(joined, &schema)?.data.recompute_schema()?)
}

/// Constants in quotes beside columns of a type that DataFusion makes of no text, as values of that type.
fn read_beside(plans: &mut [Arc<LogicalPlan>]) -> Result<()> {
    for at in 0..plans[0].schema().fields().len() {
        let of = |plan: &Arc<LogicalPlan>| plan.schema().field(at).data_type().clone();
        let alone = |of: &ArrowType| {
            matches!(
                of,
                ArrowType::FixedSizeBinary(_)
                    | ArrowType::Binary
                    | ArrowType::Boolean
                    | ArrowType::Interval(_)
                    | ArrowType::Time64(_)
            )
        };
        let Some(to) = plans.iter().map(of).find(alone) else { continue };
        // The first two, if they have no type, are texts.
        if plans.iter().take(2).all(|plan| of(plan) != to) {
            continue;
        }
        for plan in plans.iter_mut() {
            let LogicalPlan::Projection(Projection { expr, input, .. }) = plan.as_ref() else { continue };
            let own = expr[at].clone().unalias();
            let Expr::Literal(text @ ScalarValue::Utf8(_), None) = &own else { continue };
            let read = match engine_type(&to) {
                Some(to) => Expr::Literal(convert_scalar(text, to)?, None),
                None => continue,
            };
            let mut columns = expr.clone();
            let name = plan.schema().field(at).name().clone();
            columns[at] = read.alias(name);
            *plan = Arc::new(LogicalPlan::Projection(Projection::try_new(columns, input.clone())?));
        }
    }
    Ok(())
}

/// PostgreSQL settles the types of a chain of UNION two by two: what has none in the first two is text from there on.
/// Which later column is of another type.
fn late_type(plans: &[Arc<LogicalPlan>]) -> Option<((usize, usize), String)> {
    let [first, second, rest @ ..] = plans else { return None };
    let open = |plan: &LogicalPlan, at: usize| match plan {
        LogicalPlan::Projection(projection) => match &projection.expr[at] {
            Expr::Alias(alias) => is_open(&alias.expr),
            expr => is_open(expr),
        },
        other => other.schema().field(at).data_type() == &ArrowType::Null,
    };
    let late = |at: usize| {
        let typed =
            |plan: &Arc<LogicalPlan>| !open(plan, at) && plan.schema().field(at).data_type() != &ArrowType::Utf8;
        let later = rest.iter().position(typed).filter(|_| open(first, at) && open(second, at))?;
        Some(((later + 2, at), builtin::type_name(rest[later].schema().field(at).data_type())))
    };
    (0..first.schema().fields().len()).find_map(late)
}

/// Where a recursive query may read itself: in its FROM, not on the side of a join that is filled with NULLs, and not
/// in an expression. `reads`: how often it does.
fn check_reads(query: &Query, name: &str, reads: usize) -> Result<()> {
    let refused = |at: At, within: &str| {
        let message = format!("recursive reference to query \"{name}\" must not appear within {within}");
        wrong(at, "42P19", message)
    };
    let mut found = 0;
    let mut items = vec![];
    sources(query, false, &mut items)?;
    while let Some((item, padded)) = items.pop() {
        match item {
            FromItem::Table { name: table, .. } if table.parts().len() == 1 && table.last().name == name => {
                if padded {
                    return refused(table.at(), "an outer join");
                }
                found += 1;
            }
            FromItem::Join { kind, sides, .. } => {
                let left = padded || matches!(kind, JoinKind::Right | JoinKind::Full);
                let right = padded || matches!(kind, JoinKind::Left | JoinKind::Full);
                items.extend([(&sides[0], left), (&sides[1], right)]);
            }
            // What its own WITH calls so is something else, and then it is counted too often, which is refused below.
            FromItem::Query { query, .. } => sources(query, padded, &mut items)?,
            FromItem::Table { .. } | FromItem::File { .. } | FromItem::Functions { .. } => {}
        }
    }
    if found == reads { Ok(()) } else { refused(query.at, "a subquery") }
}

/// What stands in FROM of a query, and in that of the queries of its WITH.
fn sources<'q>(query: &'q Query, padded: bool, items: &mut Vec<(&'q FromItem, bool)>) -> Result<()> {
    for cte in query.with.iter().flat_map(|with| &with.ctes) {
        if let Statement::Query(query) = cte.statement.as_ref() {
            sources(query, padded, items)?;
        }
    }
    match &query.body {
        Body::Select(select) => items.extend(select.from.iter().map(|item| (item, padded))),
        Body::Values(_) => {}
        Body::Set { .. } => return unsupported("a set of queries in the FROM of WITH RECURSIVE"),
    }
    Ok(())
}

/// How often a plan reads the rows of the round before.
fn scans(plan: &LogicalPlan, working: &str) -> Result<usize> {
    let mut count = 0;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && scan.table_name.table() == working
        {
            count += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(count)
}

/// Whether an aggregate is computed over the rows of the round before.
fn aggregates_rounds(plan: &LogicalPlan, working: &str) -> Result<bool> {
    Ok(plan.exists(|node| match node {
        LogicalPlan::Aggregate(aggregate) if !aggregate.aggr_expr.is_empty() => aggregate
            .input
            .exists(|below| Ok(matches!(below, LogicalPlan::TableScan(scan) if scan.table_name.table() == working))),
        _ => Ok(false),
    })?)
}

/// The first column of the queries of a set that is of another kind than those before it.
fn other_kind(bound: &[Bound]) -> Option<(usize, usize)> {
    let of = |branch: usize, item: usize| bound[branch].plan.schema().field(item).data_type();
    let pairs = (1..bound.len()).flat_map(|branch| (0..bound[0].titles.len()).map(move |item| (branch, item)));
    let mut pairs = pairs.filter(|(branch, item)| of(*branch, *item) != &ArrowType::Null);
    pairs.find(|(branch, item)| choosers::cannot_be_compared(of(0, *item), of(*branch, *item)))
}

/// What the queries of a set list.
fn listed(branches: &[Query]) -> Vec<&tree::Expr> {
    fn of(branch: &Query) -> Vec<&tree::Expr> {
        match &branch.body {
            Body::Select(select) => select.items.iter().map(|item| &item.expr).collect(),
            Body::Values(rows) => rows.iter().flatten().collect(),
            Body::Set { branches, .. } => listed(branches),
        }
    }
    branches.iter().flat_map(of).collect()
}

fn item_place(query: &Query, item: usize) -> Option<At> {
    match &query.body {
        Body::Select(select) => select.items.get(item).map(|item| item.expr.at),
        Body::Values(rows) => rows.first()?.get(item).map(|value| value.at),
        Body::Set { branches, .. } => item_place(branches.first()?, item),
    }
}

/// Where a query's first item stands.
fn first_place(query: &Query) -> At {
    match &query.body {
        Body::Select(select) => select.items.first().map_or(query.at, |item| item.expr.at),
        _ => query.at,
    }
}

/// One key of an order over a column.
impl Order {
    pub(super) fn sort(self, expr: Expr) -> Sort {
        Sort::new(expr, !self.descending, self.nulls_first)
    }
}
