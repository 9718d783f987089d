//! Which correlated subqueries DataFusion turns into joins correctly. The others are refused (0A000).
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
use crate::error::{tunnel, unsupported};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, Result, ScalarValue};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Aggregate, BinaryExpr, Distinct, Expr, ExprSchemable, Limit, LogicalPlan, Operator};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Whether there is a row.
    Exists,
    /// Whether a value is among its rows; how often does not matter.
    Member,
    /// Its one value.
    Value,
    /// Its rows, of LATERAL.
    Lateral,
}

/// Refuses a node one of whose subqueries would be planned wrongly.
pub(crate) fn check(plan: &LogicalPlan) -> Result<()> {
    for input in plan.inputs() {
        // LATERAL; within an expression it is met below.
        if let LogicalPlan::Subquery(lateral) = input {
            Walk::new(Kind::Lateral).subquery(&lateral.subquery)?;
        }
    }
    if let LogicalPlan::Join(join) = plan
        && join.join_type.is_outer()
        && join.filter.as_ref().is_some_and(Expr::is_volatile)
    {
        return Err(tunnel(unsupported("a volatile function in the condition of an outer join")));
    }
    plan.apply_expressions(|expr| {
        expr.apply(|expr| {
            match expr {
                Expr::Exists(exists) => Walk::new(Kind::Exists).subquery(&exists.subquery.subquery)?,
                Expr::InSubquery(membership) => Walk::new(Kind::Member).subquery(&membership.subquery.subquery)?,
                Expr::ScalarSubquery(subquery) => Walk::new(Kind::Value).subquery(&subquery.subquery)?,
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
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

fn refused(what: &str) -> Result<()> {
    Err(tunnel(unsupported(format!("a subquery that refers to the outer query below {what}"))))
}

fn is_correlated(plan: &LogicalPlan) -> bool {
    !plan.all_out_ref_exprs().is_empty()
}

impl Walk {
    fn new(kind: Kind) -> Walk {
        Walk { kind, moved: false, spread: false, aggregated: false, read: vec![] }
    }

    fn subquery(mut self, plan: &LogicalPlan) -> Result<()> {
        if !is_correlated(plan) {
            return Ok(());
        }
        if super::is_volatile(plan)? {
            return refused("or beside a volatile function");
        }
        self.node(plan, true)?;
        refuse_alike(&self.read, &self.read)?;
        refuse_alike(&self.read, &results(plan))
    }

    /// `plain`: nothing but projections stands above.
    fn node(&mut self, plan: &LogicalPlan, plain: bool) -> Result<()> {
        if !is_correlated(plan) {
            return if self.moved && has_limit(plan)? { refused("something beside a LIMIT") } else { Ok(()) };
        }
        match plan {
            LogicalPlan::Projection(projection)
                if self.kind == Kind::Lateral
                    && is_one_group(&projection.input)
                    && projection.expr.iter().any(|item| !item.any_column_refs()) =>
            {
                refused("an aggregate without GROUP BY that stands beside a constant")
            }
            LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => self.node(plan.inputs()[0], plain),
            LogicalPlan::Filter(filter) => {
                self.node(&filter.input, false)?;
                let parts = split_conjunction(&filter.predicate).into_iter();
                self.moves(parts.filter(|part| part.contains_outer()), filter.input.schema());
                Ok(())
            }
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate, plain),
            LogicalPlan::Limit(limit) if self.kind == Kind::Exists && plain && keeps_existence(limit) => {
                self.node(&limit.input, plain)
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                self.node(input, false)?;
                self.keeps_groups(false)
            }
            LogicalPlan::Join(join) => {
                let (left, right) = match join.join_type {
                    JoinType::Inner => (true, true),
                    JoinType::Left => (true, false),
                    JoinType::Right => (false, true),
                    _ => (false, false),
                };
                let of_sets = join.null_equality == NullEquality::NullEqualsNull;
                if of_sets || (!left && is_correlated(&join.left)) || (!right && is_correlated(&join.right)) {
                    return refused("an outer join, INTERSECT or EXCEPT");
                }
                let keys = join.on.iter().flat_map(|(left, right)| [left, right]);
                let conditions = keys.chain(join.filter.iter().flat_map(split_conjunction));
                let moved: Vec<&Expr> = conditions.filter(|part| part.contains_outer()).collect();
                if !moved.is_empty() && join.join_type != JoinType::Inner {
                    return refused("an outer join");
                }
                self.node(&join.left, false)?;
                self.node(&join.right, false)?;
                self.moves(moved.into_iter(), &join.schema);
                Ok(())
            }
            LogicalPlan::Limit(_) => refused("LIMIT or OFFSET"),
            LogicalPlan::Window(_) => refused("a window function"),
            LogicalPlan::Union(_) => refused("UNION"),
            LogicalPlan::Sort(_) => refused("ORDER BY"),
            LogicalPlan::Distinct(Distinct::On(_)) => refused("DISTINCT ON"),
            // DataFusion leaves what else it knows nothing of, and it is refused later.
            _ => Ok(()),
        }
    }

    fn aggregate(&mut self, aggregate: &Aggregate, plain: bool) -> Result<()> {
        if std::mem::replace(&mut self.aggregated, true) {
            return refused("an aggregate of an aggregate");
        }
        if aggregate.group_expr.iter().any(|e| matches!(e, Expr::GroupingSet(_))) {
            return refused("GROUPING SETS");
        }
        // It has a row even where the rows it is to aggregate are missing.
        if aggregate.group_expr.is_empty() && (self.kind == Kind::Exists || !plain) {
            return refused("an aggregate without GROUP BY");
        }
        self.node(&aggregate.input, false)?;
        self.keeps_groups(!aggregate.aggr_expr.is_empty())
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
    fn keeps_groups(&self, aggregates: bool) -> Result<()> {
        match self.spread && (aggregates || matches!(self.kind, Kind::Value | Kind::Lateral)) {
            true => refused("DISTINCT or GROUP BY, in a condition that does not set a column equal to a value"),
            false => Ok(()),
        }
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

fn refuse_alike(read: &[Column], others: &[Column]) -> Result<()> {
    let alike = |a: &Column| others.iter().any(|b| a.name == b.name && a != b);
    match read.iter().find(|column| alike(column)) {
        None => Ok(()),
        Some(column) => Err(tunnel(unsupported(format!(
            "a subquery with two columns of one name (\"{}\") in or beside its conditions on the outer query",
            column.name
        )))),
    }
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
