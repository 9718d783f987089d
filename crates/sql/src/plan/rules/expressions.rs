//! Rewriting the expressions of a plan's nodes.
//!
//! 1. An expression keeps its name, and so its column keeps its name; a grouping set stays a grouping set.
//! 2. A node is made anew, and reported as changed, only if something in it or below it has changed.
//! 3. Each node asks whether the statement may go on: a plan may have many.
use crate::error::tunnel;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use std::cell::Cell;
use std::sync::Arc;

/// A rewriting of the nodes of a plan, beginning with the leaves.
pub(crate) struct Rewrite<C, E, N> {
    /// Whether an expression is of the kind that may become another, whatever stands below it.
    pub(crate) concerns: C,
    /// An expression and all that is below it, over a schema.
    pub(crate) expr: E,
    /// A node whose expressions are done, with what they are over.
    pub(crate) node: N,
}

impl<C, E, N> Rewrite<C, E, N>
where
    C: Fn(&Expr) -> bool,
    E: Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
    N: Fn(LogicalPlan, &DFSchema) -> Result<Transformed<LogicalPlan>>,
{
    pub(crate) fn plan(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        // Nodes come after those below them: what may stand above a change comes later.
        let changed = Cell::new(false);
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            crate::memory::check().map_err(tunnel)?;
            let schema = schema_below(&plan)?;
            let done = self.expressions(plan, &schema)?.transform_data(|plan| (self.node)(plan, &schema))?;
            changed.set(changed.get() || done.transformed);
            match changed.get() {
                true => Ok(Transformed::yes(done.data.recompute_schema()?)),
                false => Ok(done),
            }
        })?;
        Ok(rewritten.data)
    }

    fn expressions(&self, plan: LogicalPlan, schema: &DFSchema) -> Result<Transformed<LogicalPlan>> {
        let concerned = |expr: &Expr| expr.exists(|e| Ok((self.concerns)(e)));
        let mut found = false;
        plan.apply_expressions(|expr| {
            found = concerned(expr)?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !found {
            return Ok(Transformed::no(plan));
        }
        let names = NamePreserver::new(&plan);
        let named = |expr: Expr| {
            if !concerned(&expr)? {
                return Ok(Transformed::no(expr));
            }
            crate::memory::check().map_err(tunnel)?;
            let name = names.save(&expr);
            Ok((self.expr)(expr, schema)?.update_data(|expr| name.restore(expr)))
        };
        plan.map_expressions(|expr| match expr {
            // Columns are named by what it groups by; with a name of its own it would be no grouping set any more.
            Expr::GroupingSet(_) => expr.map_children(&named),
            _ => named(expr),
        })
    }
}

/// What a node's expressions are over: the columns of its inputs, and of a scan its own.
fn schema_below(plan: &LogicalPlan) -> Result<DFSchemaRef> {
    if let LogicalPlan::TableScan(scan) = plan {
        return Ok(Arc::new(DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?));
    }
    Ok(match plan.inputs().as_slice() {
        [input] => input.schema().clone(),
        inputs => Arc::new(merge_schema(inputs)),
    })
}
