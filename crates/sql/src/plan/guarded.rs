//! `y <> 0 AND 10 / y > 2` divides by no zero: what stands on the left of AND and OR decides for which rows the right
//! side is computed, where that may fail. DataFusion computes whole columns, and the right side for all rows.
//!
//! 1. A row whose left side is false (of OR: true) has its answer, and its right side is not computed.
//! 2. Both sides are computed for all other rows, those whose left side is NULL included, as in PostgreSQL.
//! 3. Conditions keep their order on the way here: DataFusion splits and joins them from left to right. It makes AND
//!    and OR of a CASE that answers a boolean, so that these are guarded, too.
use datafusion::arrow::array::{Array, AsArray, BooleanArray};
use datafusion::arrow::compute::{and_kleene, not, or_kleene, prep_null_mask_filter};
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, Literal, NotExpr,
};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Guards;

impl PhysicalOptimizerRule for Guards {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match guarded_node(&node)? {
            Some(guarded) => Ok(Transformed::yes(guarded)),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "guards"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn guarded_node(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(filter) = node.downcast_ref::<FilterExec>() {
        let predicate = guarded(filter.predicate().clone())?;
        if !predicate.transformed {
            return Ok(None);
        }
        return Ok(Some(Arc::new(FilterExecBuilder::from(filter).with_predicate(predicate.data).build()?)));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        let Some(filter) = guarded_join(join.filter())? else { return Ok(None) };
        return Ok(Some(join.builder().with_filter(Some(filter)).build_exec()?));
    }
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        let Some(filter) = guarded_join(join.filter())? else { return Ok(None) };
        return Ok(Some(Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(Some(filter)).build()?)));
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        return guarded_aggregate(aggregate);
    }
    match node.downcast_ref::<ProjectionExec>() {
        Some(projection) => guarded_projection(projection),
        None => Ok(None),
    }
}

/// What joined rows must also fulfil.
fn guarded_join(filter: Option<&JoinFilter>) -> Result<Option<JoinFilter>> {
    let Some(filter) = filter else { return Ok(None) };
    let made = guarded(filter.expression().clone())?;
    let with = |expr| JoinFilter::new(expr, filter.column_indices().to_vec(), filter.schema().clone());
    Ok(made.transformed.then(|| with(made.data)))
}

/// FILTER (WHERE ...) of aggregates.
fn guarded_aggregate(aggregate: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let mut any = false;
    let filters = aggregate.filter_expr().iter().map(|filter| {
        let Some(filter) = filter else { return Ok(None) };
        let filter = guarded(filter.clone())?;
        any |= filter.transformed;
        Ok(Some(filter.data))
    });
    let filters = filters.collect::<Result<Vec<_>>>()?;
    if !any {
        return Ok(None);
    }
    let (mode, groups, aggregates) =
        (*aggregate.mode(), aggregate.group_expr().clone(), aggregate.aggr_expr().to_vec());
    let (input, schema) = (aggregate.input().clone(), aggregate.input_schema());
    let made = AggregateExec::try_new(mode, groups, aggregates, filters, input, schema)?;
    assert_eq!(made.schema(), aggregate.schema(), "a guard answers what it guards");
    Ok(Some(Arc::new(made.with_limit_options(aggregate.limit_options()))))
}

fn guarded_projection(projection: &ProjectionExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let mut any = false;
    let columns = projection.expr().iter().map(|column| {
        let expr = guarded(column.expr.clone())?;
        any |= expr.transformed;
        Ok(ProjectionExpr { expr: expr.data, alias: column.alias.clone() })
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    if !any {
        return Ok(None);
    }
    let made = ProjectionExec::try_new(columns, projection.input().clone())?;
    // A guard answers what it guards. What was noted of a column may be known to the given projection alone, where its
    // input was made anew since: then that stays, and evaluates both sides for all rows.
    Ok((made.schema() == projection.schema()).then(|| Arc::new(made) as Arc<dyn ExecutionPlan>))
}

fn guarded(expr: Arc<dyn PhysicalExpr>) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    expr.transform_up(|expr| {
        let Some(both) = expr.downcast_ref::<BinaryExpr>() else { return Ok(Transformed::no(expr)) };
        let is_or = match both.op() {
            Operator::And => false,
            Operator::Or => true,
            _ => return Ok(Transformed::no(expr)),
        };
        if !may_fail(both.right())? {
            return Ok(Transformed::no(expr));
        }
        let (left, right) = (both.left().clone(), both.right().clone());
        Ok(Transformed::yes(Arc::new(Guarded { is_or, left, right }) as Arc<dyn PhysicalExpr>))
    })
}

/// Whether there is more than columns, constants, comparisons and their like.
fn may_fail(expr: &Arc<dyn PhysicalExpr>) -> Result<bool> {
    let mut found = false;
    expr.apply(|part| {
        let is_plain = part.is::<Column>()
            || part.is::<Literal>()
            || part.is::<NotExpr>()
            || part.is::<IsNullExpr>()
            || part.is::<IsNotNullExpr>()
            || part.is::<InListExpr>()
            || part.downcast_ref::<BinaryExpr>().is_some_and(|both| is_plain_operator(*both.op()));
        found |= !is_plain;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn is_plain_operator(op: Operator) -> bool {
    use Operator::*;
    matches!(op, And | Or | Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// AND, or OR, whose right side may fail.
#[derive(Debug, Eq)]
struct Guarded {
    is_or: bool,
    left: Arc<dyn PhysicalExpr>,
    right: Arc<dyn PhysicalExpr>,
}

// Derived, it would move what it compares.
impl PartialEq for Guarded {
    fn eq(&self, other: &Self) -> bool {
        (self.is_or, &self.left, &self.right) == (other.is_or, &other.left, &other.right)
    }
}

impl Hash for Guarded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.is_or, &self.left, &self.right).hash(state);
    }
}

impl fmt::Display for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_or {
            true => write!(f, "({} OR {})", self.left, self.right),
            false => write!(f, "{} AND {}", self.left, self.right),
        }
    }
}

impl PhysicalExpr for Guarded {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        Ok(self.left.nullable(schema)? || self.right.nullable(schema)?)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        let op = if self.is_or { Operator::Or } else { Operator::And };
        BinaryExpr::new(self.left.clone(), op, self.right.clone()).return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let left = self.left.evaluate(batch)?.into_array(rows)?;
        let left = left.as_boolean();
        let open = still_open(left, self.is_or)?;
        if !open.has_true() {
            return Ok(ColumnarValue::Array(Arc::new(left.clone()))); // Invariant 1.
        }
        let right = self.right.evaluate_selection(batch, &open)?.into_array(rows)?;
        let right = right.as_boolean();
        assert_eq!(right.len(), rows, "what is computed for some rows is scattered over all");
        let both = if self.is_or { or_kleene(left, right)? } else { and_kleene(left, right)? };
        Ok(ColumnarValue::Array(Arc::new(both)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.left, &self.right]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let [left, right] = <[_; 2]>::try_from(children).expect("two sides");
        Ok(Arc::new(Guarded { is_or: self.is_or, left, right }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.left.fmt_sql(f)?;
        write!(f, " {} ", if self.is_or { "OR" } else { "AND" })?;
        self.right.fmt_sql(f)
    }
}

/// The rows whose left side does not settle the answer (invariant 2).
fn still_open(left: &BooleanArray, is_or: bool) -> Result<BooleanArray> {
    let settled = if is_or { left.clone() } else { not(left)? };
    let settled = if settled.null_count() > 0 { prep_null_mask_filter(&settled) } else { settled };
    Ok(not(&settled)?)
}
