//! GROUP BY and aggregates.
//!
//! 1. Rows are grouped where there is GROUP BY, HAVING or an aggregate. Without GROUP BY they are one group.
//! 2. Above the groups there are the groups' expressions and the aggregates, each as a column; any other column of FROM
//!    is refused (42803), also where a subquery names it, unless the groups decide it: those of a table whose primary
//!    key is grouped by.
//! 3. A column that is grouped by keeps its name: what refers to it from a subquery goes on doing so.
//! 4. A column that cannot be NULL in its table can be above several sets of groups: what stands there, queries within
//!    included, is bound over columns that can.
use super::outer_aggregates::{left_to, with_left};
use super::scope::{Clause, Scope};
use super::select::Parts;
use super::{Binder, Result, fail, unsupported, wrong};
use crate::functions::aggregates::sorting_for_itself;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, Exists, GroupingSet, InSubquery, SetComparison, Sort as By};
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Subquery, lit};
use std::sync::Arc;
use terrace_engine::EngineError;
use terrace_grammar::statement::{self as tree, At, ExprKind, Group, Literal, Select};

/// The columns of FROM as what stands above the groups sees them (invariant 4).
pub(super) fn above(select: &Select, schema: &DFSchemaRef) -> Result<DFSchemaRef> {
    let mut items = select.group.iter().flat_map(|group| &group.items);
    if items.all(|item| matches!(item, Group::Expr(_))) {
        return Ok(schema.clone());
    }
    let fields = schema.iter().map(|(name, field)| {
        let field = field.as_ref().clone().with_nullable(true);
        (name.cloned(), Arc::new(field))
    });
    let left_out = DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())?;
    Ok(Arc::new(left_out))
}

/// PostgreSQL's bounds.
const CUBE_MAX: usize = 12;
const SETS_MAX: usize = 4096;

/// What rows are grouped by: the expressions of each set, in their order.
pub(super) struct Groups {
    pub(super) sets: Vec<Vec<Expr>>,
    /// Whether there is GROUP BY.
    written: bool,
}

impl Binder<'_> {
    pub(super) fn groups(&self, select: &Select, parts: &Parts, scope: &Scope<'_>) -> Result<Groups> {
        let mut sets: Vec<Vec<Expr>> = vec![vec![]];
        scope.within(Clause::Group, || {
            for item in select.group.iter().flat_map(|group| &group.items) {
                let added = self.sets_of(item, parts, scope)?;
                if sets.len().saturating_mul(added.len()) > SETS_MAX {
                    let message = format!("too many grouping sets present (maximum {SETS_MAX})");
                    return wrong(place(item), "54001", message);
                }
                let both = |set: &Vec<Expr>| {
                    let set = set.clone();
                    added.iter().map(move |more| set.iter().chain(more).cloned().collect::<Vec<Expr>>())
                };
                sets = sets.iter().flat_map(both).collect();
            }
            Ok(())
        })?;
        for set in &mut sets {
            *set = once_each(std::mem::take(set));
        }
        if select.group.as_ref().is_some_and(|group| group.distinct) {
            let within = |set: &[Expr], other: &[Expr]| set.iter().all(|key| other.contains(key));
            let mut once: Vec<Vec<Expr>> = vec![];
            for set in std::mem::take(&mut sets) {
                if !once.iter().any(|known| within(known, &set) && within(&set, known)) {
                    once.push(set);
                }
            }
            sets = once;
        }
        assert!(!sets.is_empty() && sets.len() <= SETS_MAX, "a set without keys is one, too");
        Ok(Groups { sets, written: select.group.is_some() })
    }

    fn sets_of(&self, item: &Group, parts: &Parts, scope: &Scope<'_>) -> Result<Vec<Vec<Expr>>> {
        let keys = |exprs: &[tree::Expr]| -> Result<Vec<Vec<Expr>>> {
            exprs.iter().map(|expr| self.group_keys(expr, parts, scope)).collect()
        };
        Ok(match item {
            Group::Expr(expr) => vec![self.group_keys(expr, parts, scope)?],
            Group::Empty(_) => vec![vec![]],
            Group::Rollup(_, exprs) => {
                let keys = keys(exprs)?;
                (0..=keys.len()).rev().map(|count| keys[..count].concat()).collect()
            }
            Group::Cube(_, exprs) if exprs.len() > CUBE_MAX => {
                return wrong(place(item), "54011", format!("CUBE is limited to {CUBE_MAX} elements"));
            }
            Group::Cube(_, exprs) => {
                let keys = keys(exprs)?;
                let subset = |bits: usize| {
                    let within = keys.iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0);
                    within.flat_map(|(_, keys)| keys.iter().cloned()).collect()
                };
                (0..1usize << keys.len()).rev().map(subset).collect()
            }
            Group::Sets(_, items) => {
                let sets = items.iter().map(|item| self.sets_of(item, parts, scope));
                sets.collect::<Result<Vec<_>>>()?.concat()
            }
        })
    }

    /// What one expression of GROUP BY means: a row stands for its columns.
    fn group_keys(&self, expr: &tree::Expr, parts: &Parts, scope: &Scope<'_>) -> Result<Vec<Expr>> {
        let items = || parts.titles.iter().cloned().zip(parts.items.iter().cloned()).collect::<Vec<_>>();
        Ok(match &expr.kind {
            ExprKind::Row { fields: exprs, explicit: false } => {
                let keys = exprs.iter().map(|expr| self.group_keys(expr, parts, scope));
                return Ok(keys.collect::<Result<Vec<_>>>()?.concat());
            }
            ExprKind::Literal(Literal::Int(_)) => {
                let item = self.output(expr, &items(), Clause::Group)?;
                vec![self.without_calls(item.expect("a number means an item, or nothing"), expr.at)?]
            }
            ExprKind::Literal(_) => {
                return wrong(expr.at, "42601", "non-integer constant in GROUP BY");
            }
            // A column of FROM, of this query's, comes first.
            ExprKind::Column(name) if name.qualifier().is_empty() && !scope.has_own(name)? => {
                match self.output(expr, &items(), Clause::Group)? {
                    Some(item) => vec![self.without_calls(item, expr.at)?],
                    None => vec![self.expr(expr, scope)?],
                }
            }
            _ => vec![self.expr(expr, scope)?],
        })
    }

    /// An item that is grouped by has neither aggregates nor windows in it.
    fn without_calls(&self, item: Expr, at: At) -> Result<Expr> {
        let mut found = None;
        item.apply(|expr| {
            match expr {
                Expr::AggregateFunction(_) => found = Some(("42803", "aggregate")),
                Expr::WindowFunction(_) => found = Some(("42P20", "window")),
                _ => return Ok(TreeNodeRecursion::Continue),
            }
            Ok(TreeNodeRecursion::Stop)
        })?;
        match found {
            Some((state, what)) => wrong(at, state, format!("{what} functions are not allowed in GROUP BY")),
            None => Ok(item),
        }
    }

    /// `before`: how many columns had been named before the parts were bound.
    pub(super) fn grouped(
        &self,
        plan: LogicalPlan,
        groups: Groups,
        parts: &mut Parts,
        scope: &Scope<'_>,
        before: usize,
    ) -> Result<LogicalPlan> {
        let mut aggregates = collected(parts, &|expr| matches!(expr, Expr::AggregateFunction(_)))?;
        left_to(scope, &mut aggregates)?;
        if !groups.written && aggregates.is_empty() && parts.having.is_none() {
            return Ok(plan);
        }
        let Groups { mut sets, .. } = groups;
        let many = sets.len() > 1;
        if !many {
            add_decided(&mut sets[0], scope, before);
        }
        check_grouping(&aggregates, &sets, scope)?;
        check_rows(&sets, scope)?;
        let keys = match many {
            true => vec![Expr::GroupingSet(GroupingSet::GroupingSets(sets))],
            false => sets.remove(0),
        };
        if keys.is_empty() && aggregates.is_empty() {
            // Something is to be computed of a group, also where nothing of it is wanted.
            aggregates.push(Expr::AggregateFunction(AggregateFunction::new_udf(
                count_udaf(),
                vec![lit(1i64)],
                false,
                None,
                vec![],
                None,
            )));
        }
        let listed: Vec<Expr> = grouping_set_to_exprlist(&keys)?.into_iter().cloned().collect();
        let keys = if many { refuse_alike(&listed).map(|()| keys)? } else { self.told_apart(&[], keys) };
        let computed = self.told_apart(&keys, sorted_apart(aggregates.clone(), plan.schema())?);
        let plan = LogicalPlanBuilder::from(plan).aggregate(keys, computed)?.build()?;
        let columns = plan.schema().columns();
        // Behind the groups of several sets stands which set it is.
        assert!(columns.len() >= listed.len() + aggregates.len(), "invariant 2: a column for each");
        let first = columns.len() - aggregates.len();
        let known: Vec<(Expr, Expr)> = listed.into_iter().zip(columns.iter().cloned().map(Expr::Column)).collect();
        let known =
            known.into_iter().chain(aggregates.into_iter().zip(columns[first..].iter().cloned().map(Expr::Column)));
        let known: Vec<(Expr, Expr)> = known.collect();
        let computed = known.iter().any(|(key, _)| !matches!(key, Expr::Column(_) | Expr::AggregateFunction(_)));
        let schema = plan.schema().clone();
        let plan = with_left(plan, scope, &known)?;
        parts.change(&mut |expr| {
            let expr = replaced(expr, &known)?;
            check_above(&expr, &schema, scope, computed)?;
            Ok(expr)
        })?;
        Ok(plan)
    }

    /// Expressions whose names differ, also from these: DataFusion leaves casts out of names.
    fn told_apart(&self, others: &[Expr], exprs: Vec<Expr>) -> Vec<Expr> {
        let mut names: Vec<String> = others.iter().map(|key| key.schema_name().to_string()).collect();
        let named = exprs.into_iter().map(|aggregate| {
            let name = aggregate.schema_name().to_string();
            if names.contains(&name) {
                return aggregate.alias(self.column_name(&name));
            }
            names.push(name);
            aggregate
        });
        named.collect()
    }
}

/// Aggregates side by side. Upstream: DataFusion sorts the rows as one of them wants them, and so they come to all. So
/// where not all that depends on an order depends on the same one, each sorts its own values.
fn sorted_apart(mut aggregates: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    let mut orders: Vec<&[By]> = vec![];
    for aggregate in &aggregates {
        if let Expr::AggregateFunction(call) = aggregate
            && !orders.contains(&call.params.order_by.as_slice())
            && depends_on_order(call, schema)?
        {
            orders.push(&call.params.order_by);
        }
    }
    if orders.len() < 2 {
        return Ok(aggregates);
    }
    for aggregate in &mut aggregates {
        if let Expr::AggregateFunction(call) = aggregate
            && !call.params.order_by.is_empty()
            && let Some(function) = sorting_for_itself(&call.func)
        {
            call.func = Arc::new(function);
        }
    }
    Ok(aggregates)
}

/// Whether an aggregate's result may be another if its rows come in another order: floats are rounded as they are
/// added, and of equal values that are shown differently one stays.
fn depends_on_order(call: &AggregateFunction, schema: &DFSchema) -> Result<bool> {
    if matches!(call.func.name(), "array_agg" | "string_agg") {
        return Ok(true);
    }
    let is_exact = |of: &ArrowType| {
        of.is_integer() || matches!(of, ArrowType::Boolean | ArrowType::Utf8 | ArrowType::Date32 | ArrowType::Null)
    };
    let never = matches!(call.func.name(), "count" | "grouping" | "percentile_cont");
    for arg in call.params.args.iter().filter(|_| !never) {
        if !is_exact(&arg.get_type(schema)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn refuse_alike(keys: &[Expr]) -> Result<()> {
    let names: Vec<String> = keys.iter().map(|key| key.schema_name().to_string()).collect();
    match names.iter().enumerate().any(|(at, name)| names[..at].contains(name)) {
        true => unsupported("grouping by two expressions that differ in a cast"),
        false => Ok(()),
    }
}

/// Invariant 2: with a table's primary key, its other columns that are named.
fn add_decided(keys: &mut Vec<Expr>, scope: &Scope<'_>, before: usize) {
    let named = scope.named.borrow();
    for relation in &scope.source.relations {
        let has = |at: &usize| keys.contains(&relation.columns[*at].1);
        if relation.key.is_empty() || !relation.key.iter().all(has) {
            continue;
        }
        for (_, column) in &relation.columns {
            let is_named = named[before..].iter().any(|(named, _)| column.try_as_col() == Some(named));
            if is_named && !keys.contains(column) {
                keys.push(column.clone());
            }
        }
    }
}

/// A window above the groups reads whole rows of a table only where its primary key is grouped by.
fn check_rows(sets: &[Vec<Expr>], scope: &Scope<'_>) -> Result<()> {
    for (table, at) in scope.rows.borrow().iter() {
        let relation = scope.source.relations.iter().find(|relation| relation.name == *table);
        let decided = relation.is_some_and(|relation| {
            let has = |at: &usize| sets.iter().all(|set| set.contains(&relation.columns[*at].1));
            !relation.key.is_empty() && relation.key.iter().all(has)
        });
        if !decided {
            let message =
                format!("column \"{table}.*\" must appear in the GROUP BY clause or be used in an aggregate function");
            return wrong(*at, "42803", message);
        }
    }
    Ok(())
}

/// The arguments of GROUPING are grouped by.
fn check_grouping(aggregates: &[Expr], sets: &[Vec<Expr>], scope: &Scope<'_>) -> Result<()> {
    for aggregate in aggregates {
        if let Expr::AggregateFunction(call) = aggregate
            && call.func.name() == "grouping"
            && let Some(other) = call.params.args.iter().find(|arg| !sets.iter().any(|set| set.contains(arg)))
        {
            let message = "arguments to GROUPING must be grouping expressions of the associated query level";
            let error = EngineError::new("42803", message);
            return match other.try_as_col().and_then(|column| scope.place(column)) {
                Some(at) => fail(at, error),
                None => Err(error.into()),
            };
        }
    }
    Ok(())
}

/// The calls of a kind in the parts of a SELECT, each once. What ORDER BY and DISTINCT ON have in common with the items
/// is meant to be one; where volatile calls are written alike in two items, each would be another.
pub(super) fn collected(parts: &Parts, wanted: &dyn Fn(&Expr) -> bool) -> Result<Vec<Expr>> {
    let mut found = vec![];
    for item in parts.items.iter().chain(&parts.having) {
        let (mut own, known) = (0, found.len());
        item.apply(|expr| {
            own += usize::from(wanted(expr) && expr.is_volatile());
            Ok(if wanted(expr) { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue })
        })?;
        collected_in(item, &mut found, wanted)?;
        if found[known..].iter().filter(|expr| expr.is_volatile()).count() < own {
            return unsupported("a call of a volatile function that is written twice");
        }
    }
    parts.all().try_for_each(|expr| collected_in(expr, &mut found, wanted))?;
    Ok(found)
}

/// Gathers expressions of a kind, the outermost of each.
pub(super) fn collected_in(expr: &Expr, into: &mut Vec<Expr>, wanted: &dyn Fn(&Expr) -> bool) -> Result<()> {
    expr.apply(|expr| {
        if !wanted(expr) {
            return Ok(TreeNodeRecursion::Continue);
        }
        if !into.contains(expr) {
            into.push(expr.clone());
        }
        Ok(TreeNodeRecursion::Jump)
    })?;
    Ok(())
}

/// An expression over what has been computed.
pub(super) fn replaced(expr: Expr, known: &[(Expr, Expr)]) -> Result<Expr> {
    let made = expr.transform_down(|expr| match known.iter().find(|(computed, _)| *computed == expr) {
        Some((_, column)) => Ok(Transformed::new(column.clone(), true, TreeNodeRecursion::Jump)),
        None => Ok(Transformed::no(expr)),
    })?;
    Ok(made.data)
}

/// Refuses columns that are not there above the groups. `computed`: some groups are no plain columns.
fn check_above(expr: &Expr, schema: &DFSchema, scope: &Scope<'_>, computed: bool) -> Result<()> {
    let lost = |column: &&Column| !schema.has_column(column);
    let own = |column: &Column| scope.schema.has_column(column);
    if let Some(column) = expr.column_refs().into_iter().filter(|column| own(column)).find(lost) {
        let shown = scope.shown(column);
        let message =
            format!("column \"{shown}\" must appear in the GROUP BY clause or be used in an aggregate function");
        return wrong(scope.place(column).unwrap_or(0), "42803", message);
    }
    let mut within: Option<Column> = None;
    expr.apply(|expr| {
        if let Some(subquery) = subquery_of(expr) {
            let outer = subquery.outer_ref_columns.iter().filter_map(|outer| match outer {
                Expr::OuterReferenceColumn(_, column) => Some(column),
                _ => None,
            });
            within = within.take().or_else(|| outer.filter(|column| own(column)).find(lost).cloned());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    match within {
        None => Ok(()),
        Some(_) if computed => unsupported("a group's expression within a subquery"),
        Some(column) => {
            let shown = scope.shown(&column);
            let message = format!("subquery uses ungrouped column \"{shown}\" from outer query");
            wrong(scope.place(&column).unwrap_or(0), "42803", message)
        }
    }
}

pub(super) fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery)
        | Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. }) => Some(subquery),
        _ => None,
    }
}

pub(super) fn sets_mut(groups: &mut Groups) -> &mut [Vec<Expr>] {
    &mut groups.sets
}

pub(super) fn once_each(keys: Vec<Expr>) -> Vec<Expr> {
    let mut once: Vec<Expr> = vec![];
    for key in keys {
        if !once.contains(&key) {
            once.push(key);
        }
    }
    once
}

fn place(item: &Group) -> At {
    match item {
        Group::Expr(expr) => expr.at,
        Group::Empty(at) | Group::Cube(at, _) | Group::Rollup(at, _) | Group::Sets(at, _) => *at,
    }
}
