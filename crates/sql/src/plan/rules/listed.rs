//! Items of IN lists that depend on the row are not taken for constants.
//!
//! 1. An item that is neither a literal nor a plain column is computed for each row: DataFusion gets its value as a
//!    column.
//! 2. This rule runs after all others, because they may replace a column in a list by its expression.
//!
//! Upstream: `InListExpr::try_new` evaluates the items over no rows, and takes one that answers a scalar for a
//! constant. CASE does, where its results are literals: `1 IN (CASE i WHEN 1 THEN 7 ELSE 1 END, 5)` is then true for
//! every row.
use super::marks::Mark;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, ScalarUDF};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::{Arc, LazyLock};

#[derive(Debug)]
pub(crate) struct ListedItems;

impl OptimizerRule for ListedItems {
    fn name(&self) -> &str {
        "listed_items"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let mut found = false;
        plan.apply_expressions(|expr| {
            found |= expr.exists(|e| Ok(matches!(e, Expr::InList(list) if list.list.iter().any(is_open))))?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !found {
            return Ok(Transformed::no(plan));
        }
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            Ok(expr.transform_up(per_row)?.update_data(|expr| name.restore(expr)))
        })
    }
}

/// Whether DataFusion might take an item for a constant, though it is none.
fn is_open(item: &Expr) -> bool {
    match item {
        Expr::Literal(..) | Expr::Column(_) => false,
        Expr::ScalarFunction(call) => !Arc::ptr_eq(&call.func, &PER_ROW),
        _ => true,
    }
}

fn per_row(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::InList(InList { expr, list, negated }) = expr else { return Ok(Transformed::no(expr)) };
    let mut changed = false;
    let items = list.into_iter().map(|item| match is_open(&item) {
        true => {
            changed = true;
            Expr::ScalarFunction(ScalarFunction::new_udf(PER_ROW.clone(), vec![item]))
        }
        false => item,
    });
    let list = items.collect();
    let listed = Expr::InList(InList { expr, list, negated });
    Ok(if changed { Transformed::yes(listed) } else { Transformed::no(listed) })
}

static PER_ROW: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(Mark::per_row("per_row"))));
