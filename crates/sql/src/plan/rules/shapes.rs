//! Which correlated subqueries DataFusion turns into joins correctly. The others become an
//! [`crate::plan::apply::Apply`].
//!
//! DataFusion takes the conditions that refer to the outer query out of the subquery, and makes them conditions of the
//! join. This is correct only if nothing between the condition and the subquery's result depends on which rows there
//! are.
//!
//! Upstream: `PullUpCorrelatedExpr` pulls a correlated filter through window functions, through the side of an outer
//! join that is filled with NULLs, out of an outer join's ON, through aggregates without groups in EXISTS and IN
//! (`EXISTS (SELECT count(*) ...)` is always true), through `OFFSET` and through a `LIMIT` beside it. The subquery then
//! gets one name for all its columns (`__correlated_sq_1`, or the LATERAL's own). If moved conditions read two columns
//! of the same name, or one that has the name of a result column, one of the two is read twice (`1 > u.id - a.id`
//! becomes `1 > q.id - q.id`). A volatile function in a correlated subquery is computed once for each row of the
//! subquery; in ON of an outer join, once for each row of one side. If a LATERAL aggregate has no rows, the constants
//! beside it become NULL. The columns that moved conditions read are added to DISTINCT and GROUP BY, which so tell rows
//! apart that are alike, unless each condition sets a column equal to a value of the outer query. The answers are wrong
//! without an error.
use crate::plan::apply::{query_in, taken_by};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, Result, ScalarValue};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Aggregate, BinaryExpr, Distinct, Expr, ExprSchemable, Limit, LogicalPlan, Operator};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Whether there is a row.
    Exists,
    /// Its one value.
    Value,
    /// Its rows, of LATERAL.
    Lateral,
}

/// Whether DataFusion makes the right join of a subquery that takes columns of the query around it alone.
pub(super) fn is_join(kind: Kind, plan: &LogicalPlan) -> Result<bool> {
    let mut walk = Walk { kind, moved: false, spread: false, aggregated: false, read: vec![] };
    Ok(!super::is_volatile(plan)?
        && (kind != Kind::Value || is_one_aggregate(plan))
        && walk.node(plan, true)?
        && !alike(&walk.read, &walk.read)
        && !alike(&walk.read, &results(plan)))
}

/// A value that is an aggregate of all rows, or computed of such.
fn is_one_aggregate(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => is_one_aggregate(plan.inputs()[0]),
        plan => is_one_group(plan),
    }
}

struct Walk {
    kind: Kind,
    /// The walk has met a condition on the outer query. It will be moved, which matters for every node above it.
    moved: bool,
    /// One of these conditions lets rows with several values of a column through.
    spread: bool,
    /// An aggregate above another one would take its missing groups for missing rows.
    aggregated: bool,
    /// The subquery's own columns that moved conditions read.
    read: Vec<Column>,
}

fn is_correlated(plan: &LogicalPlan) -> bool {
    !taken_by(plan).is_empty()
}

/// Whether an expression of a node takes something of a query around, in a place where DataFusion leaves it.
fn takes(node: &LogicalPlan) -> Result<bool> {
    let below: Vec<_> = node.inputs().into_iter().map(LogicalPlan::schema).collect();
    let is_below = |column: &Column| below.iter().any(|schema| schema.has_column(column));
    let takes = |part: &Expr| match part {
        Expr::OuterReferenceColumn(..) => true,
        part => query_in(part).is_some_and(|query| taken_by(&query.subquery).iter().any(|column| !is_below(column))),
    };
    let moves = matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
    let mut found = false;
    node.apply_expressions(|expr| {
        let of_query = |part: &Expr| takes(part) && !(moves && matches!(part, Expr::OuterReferenceColumn(..)));
        found |= expr.exists(|part| Ok(of_query(part)))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

impl Walk {
    /// `plain`: nothing but projections stands above.
    fn node(&mut self, plan: &LogicalPlan, plain: bool) -> Result<bool> {
        if !is_correlated(plan) {
            // Something beside a LIMIT is moved.
            return Ok(!(self.moved && has_limit(plan)?));
        }
        if takes(plan)? {
            return Ok(false);
        }
        match plan {
            LogicalPlan::Projection(projection)
                if self.kind == Kind::Lateral
                    && is_one_group(&projection.input)
                    && projection.expr.iter().any(|item| !item.any_column_refs()) =>
            {
                Ok(false)
            }
            LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => self.node(plan.inputs()[0], plain),
            LogicalPlan::Filter(filter) => {
                let below = self.node(&filter.input, false)?;
                let parts = split_conjunction(&filter.predicate).into_iter();
                self.moves(parts.filter(|part| part.contains_outer()), filter.input.schema());
                Ok(below)
            }
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate, plain),
            LogicalPlan::Limit(limit) if self.kind == Kind::Exists && plain && keeps_existence(limit) => {
                self.node(&limit.input, plain)
            }
            LogicalPlan::Distinct(Distinct::All(input)) => Ok(self.node(input, false)? && self.keeps_groups(false)),
            LogicalPlan::Join(join) => {
                let (left, right) = match join.join_type {
                    JoinType::Inner => (true, true),
                    JoinType::Left => (true, false),
                    JoinType::Right => (false, true),
                    _ => (false, false),
                };
                let of_sets = join.null_equality == NullEquality::NullEqualsNull;
                if of_sets || (!left && is_correlated(&join.left)) || (!right && is_correlated(&join.right)) {
                    return Ok(false);
                }
                let keys = join.on.iter().flat_map(|(left, right)| [left, right]);
                let conditions = keys.chain(join.filter.iter().flat_map(split_conjunction));
                let moved: Vec<&Expr> = conditions.filter(|part| part.contains_outer()).collect();
                // Of LATERAL, DataFusion does not move the condition of a join.
                if !moved.is_empty() && (join.join_type != JoinType::Inner || self.kind == Kind::Lateral) {
                    return Ok(false);
                }
                let before = self.read.len();
                let left = self.node(&join.left, false)?;
                let middle = self.read.len();
                let right = self.node(&join.right, false)?;
                // A query of WITH that is read twice: its columns have the same names.
                let (of_left, of_right) = self.read[before..].split_at(middle - before);
                let mixed = of_left.iter().any(|column| of_right.contains(column));
                self.moves(moved.into_iter(), &join.schema);
                Ok(left && right && !mixed)
            }
            // LIMIT, OFFSET, window functions, UNION, ORDER BY, DISTINCT ON, and what DataFusion knows nothing of.
            _ => Ok(false),
        }
    }

    fn aggregate(&mut self, aggregate: &Aggregate, plain: bool) -> Result<bool> {
        // It has a row even where the rows it is to aggregate are missing.
        let one_group = aggregate.group_expr.is_empty() && (self.kind == Kind::Exists || !plain);
        let of_sets = aggregate.group_expr.iter().any(|e| matches!(e, Expr::GroupingSet(_)));
        if std::mem::replace(&mut self.aggregated, true) || of_sets || one_group {
            return Ok(false);
        }
        Ok(self.node(&aggregate.input, false)? && self.keeps_groups(!aggregate.aggr_expr.is_empty()))
    }

    /// `conditions` on the outer query, over rows of `schema`, will be moved.
    fn moves<'a>(&mut self, conditions: impl Iterator<Item = &'a Expr>, schema: &DFSchema) {
        for condition in conditions {
            self.moved = true;
            self.spread |= !sets_a_column(condition, schema);
            self.read.extend(condition.column_refs().into_iter().cloned());
        }
    }

    /// Whether the rows that a DISTINCT or a GROUP BY makes stay as they are, with the moved conditions' columns added.
    fn keeps_groups(&self, aggregates: bool) -> bool {
        !(self.spread && (aggregates || matches!(self.kind, Kind::Value | Kind::Lateral)))
    }
}

/// Whether the rows that pass have one value of a column, for each row of the outer query: `column = value`, with a
/// conversion of the column that takes no two values to one.
fn sets_a_column(condition: &Expr, schema: &DFSchema) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return false };
    let is_column = |side: &Expr| match side {
        Expr::Column(_) => true,
        Expr::Cast(cast) if matches!(cast.expr.as_ref(), Expr::Column(_)) => {
            let wide = |of| matches!(of, DataType::Int64 | DataType::Decimal128(..) | DataType::Decimal256(..));
            !cast.field.data_type().is_floating() || cast.expr.get_type(schema).is_ok_and(|of| !wide(of))
        }
        _ => false,
    };
    (is_column(left) && !right.any_column_refs()) || (is_column(right) && !left.any_column_refs())
}

/// Whether a column has the name of another one.
fn alike(read: &[Column], others: &[Column]) -> bool {
    read.iter().any(|a| others.iter().any(|b| a.name == b.name && a != b))
}

/// The columns of a query's result: those that it hands on are themselves, the others have no relation.
fn results(plan: &LogicalPlan) -> Vec<Column> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let columns = projection.expr.iter().zip(projection.schema.columns());
            columns.map(|(expr, made)| expr.try_as_col().cloned().unwrap_or(made)).collect()
        }
        LogicalPlan::Distinct(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) | LogicalPlan::SubqueryAlias(_) => {
            results(plan.inputs()[0])
        }
        other => other.schema().columns(),
    }
}

fn keeps_existence(limit: &Limit) -> bool {
    let number = |e: &Option<Box<Expr>>, none: i64| e.as_deref().map_or(Some(none), whole);
    number(&limit.skip, 0) == Some(0) && number(&limit.fetch, 1).is_some_and(|n| n > 0)
}

/// The value of a whole constant, whatever type it has been given.
fn whole(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Alias(alias) => whole(&alias.expr),
        Expr::Cast(cast) => whole(&cast.expr),
        Expr::ScalarFunction(call) if call.args.len() == 1 => whole(&call.args[0]),
        Expr::Literal(value, _) => match value.cast_to(&DataType::Int64).ok()? {
            ScalarValue::Int64(n) => n,
            _ => None,
        },
        _ => None,
    }
}

fn is_one_group(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty())
}

fn has_limit(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| Ok(matches!(node, LogicalPlan::Limit(_))))
}
