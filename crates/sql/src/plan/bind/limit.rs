//! LIMIT, OFFSET, and FETCH FIRST ... WITH TIES.
//!
//! 1. WITH TIES goes on behind the last row that is asked for while rows are its peers in ORDER BY: of rows in order,
//!    those are wanted that are behind OFFSET and whose first peer is not behind OFFSET and LIMIT together. Without a
//!    row that is asked for there is none of its peers.
use super::query::Around;
use super::scope::Clause;
use super::{Binder, Result, from, unsupported, wrong};
use datafusion::common::ScalarValue;
use datafusion::functions_window::rank::rank_udwf;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{Sort as By, WindowFunction, WindowFunctionDefinition};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Sort, WindowFrame, WindowUDF, lit};
use std::sync::Arc;
use terrace_engine::EngineError;
use terrace_grammar::statement::{At, Query};

impl Binder<'_> {
    pub(super) fn limited(&self, plan: LogicalPlan, query: &Query, around: Around<'_>) -> Result<LogicalPlan> {
        if query.limit.is_none() && query.offset.is_none() {
            return Ok(plan);
        }
        let limit = query.limit.as_ref().map(|count| self.count(count, Clause::Limit, around)).transpose()?;
        let offset = query.offset.as_ref().map(|count| self.count(count, Clause::Offset, around)).transpose()?;
        if let (Some(None), true) = (&limit, query.with_ties) {
            let message = "row count cannot be null in FETCH FIRST ... WITH TIES clause";
            return super::fail(query.at, EngineError::new("2201W", message));
        }
        let (limit, offset) = (limit.flatten(), offset.flatten());
        if let Some(count) = limit.as_ref().filter(|_| query.with_ties) {
            let at = query.limit.as_ref().map_or(query.at, |limit| limit.at);
            return self.with_ties(plan, known(count, at)?, offset.map_or(Ok(0), |offset| known(&offset, at))?);
        }
        if limit.is_none() && offset.is_none() {
            return Ok(plan);
        }
        Ok(LogicalPlanBuilder::from(plan).limit_by_expr(offset, limit)?.build()?)
    }

    /// Invariant 1.
    fn with_ties(&self, plan: LogicalPlan, limit: u64, offset: u64) -> Result<LogicalPlan> {
        let LogicalPlan::Sort(Sort { expr: order, input, .. }) = plan else {
            return unsupported("WITH TIES here");
        };
        if limit == 0 {
            let none = LogicalPlanBuilder::from(Arc::unwrap_or_clone(input)).limit(0, Some(0))?;
            return Ok(none.build()?);
        }
        let columns: Vec<Expr> = from::columns(&input).collect();
        let [number, first] = [row_number_udwf(), rank_udwf()].map(|function| {
            let name = self.column_name("");
            (placed(function, &order).alias(&name), datafusion::common::Column::new_unqualified(name))
        });
        let behind = Expr::Column(number.1.clone()).gt(lit(offset));
        let reached = Expr::Column(first.1).lt_eq(lit(offset.saturating_add(limit)));
        let plan = LogicalPlanBuilder::from(Arc::unwrap_or_clone(input))
            .window(vec![number.0, first.0])?
            .filter(behind.and(reached))?
            .sort(vec![Expr::Column(number.1).sort(true, false)])?
            .project(columns)?;
        Ok(plan.build()?)
    }
}

fn placed(function: Arc<WindowUDF>, order: &[By]) -> Expr {
    let mut call = WindowFunction::new(WindowFunctionDefinition::WindowUDF(function), vec![]);
    call.params.order_by = order.to_vec();
    call.params.window_frame = WindowFrame::new(Some(false));
    Expr::WindowFunction(Box::new(call))
}

/// A number of rows that is known now. 2201W
fn known(count: &Expr, at: At) -> Result<u64> {
    match count {
        Expr::Literal(ScalarValue::Int64(Some(count)), _) => match u64::try_from(*count) {
            Ok(count) => Ok(count),
            Err(_) => super::fail(at, EngineError::new("2201W", "LIMIT must not be negative")),
        },
        _ => wrong(at, "0A000", "WITH TIES of what is no constant is not supported"),
    }
}
