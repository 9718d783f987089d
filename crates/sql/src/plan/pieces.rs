//! Batches are cut into pieces before functions make long texts of their rows.
//!
//! 1. DataFusion evaluates an expression for all rows of a batch at once. Of eight thousand rows with a text of a
//!    megabyte each, all texts would be made, where one after the other would do. So a physical rule puts a
//!    [`PiecesExec`] below each node that evaluates a function of [`crate::functions::bounded`], or a long constant.
//! 2. The first piece is small. The next is as long as its results will take about [`WANTED`] bytes, judged by what was
//!    made of the last one.
//! 3. What locks by an advisory lock's number sees one row at a time: so it is not called for rows that a condition
//!    before it in the same WHERE excludes, or that come after the last one of a LIMIT.
//! 4. Between two pieces the statement may end: it may have been cancelled, or have taken too much memory.
use crate::error::tunnel;
use crate::functions::advisory::is_advisory;
use crate::functions::bounded::is_bounded;
use crate::memory;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, ReplaceChildrenOptions, replace_children_if_necessary,
};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties};
use futures::{Stream, StreamExt, ready};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Bytes that functions should make of a piece.
const WANTED: u64 = 4 << 20;

/// Rows of the first piece.
const FIRST: usize = 16;

/// Rows of a piece at the most: those of a batch.
const MOST: usize = 8192;

/// Bytes of a constant that is long.
const LONG: usize = 4 << 10;

#[derive(Debug)]
pub(crate) struct Pieces;

impl PhysicalOptimizerRule for Pieces {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(most) = most_rows(&node)? else { return Ok(Transformed::no(node)) };
            let children = node.children().into_iter().cloned().map(|child| PiecesExec::over(child, most)).collect();
            Ok(Transformed::yes(replace_children_if_necessary(node, children)?))
        })
        .data()
    }

    fn name(&self) -> &str {
        "pieces"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Rows that a node should have of its child at one time; `None`: as many as come.
fn most_rows(node: &Arc<dyn ExecutionPlan>) -> Result<Option<usize>> {
    if node.children().len() != 1 || node.is::<PiecesExec>() {
        return Ok(None);
    }
    let (mut grows, mut locks, mut constants) = (false, false, 0);
    node.apply_expressions(&mut |root| {
        root.apply(|expr| {
            if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() {
                grows |= is_bounded(call.fun());
                locks |= is_advisory(call.fun().name());
            } else if let Some(literal) = expr.downcast_ref::<Literal>() {
                let bytes = literal.value().size();
                constants += if bytes >= LONG { bytes } else { 0 };
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    if locks {
        return Ok(Some(1));
    }
    match (grows, constants) {
        (false, 0) => Ok(None),
        (_, 0) => Ok(Some(MOST)),
        (_, bytes) => Ok(Some((WANTED as usize / bytes).clamp(1, MOST))),
    }
}

/// Answers its input's rows in smaller batches.
#[derive(Debug)]
pub(crate) struct PiecesExec {
    input: Arc<dyn ExecutionPlan>,
    most: usize,
    properties: Arc<PlanProperties>,
}

impl PiecesExec {
    fn over(input: Arc<dyn ExecutionPlan>, most: usize) -> Arc<dyn ExecutionPlan> {
        assert!((1..=MOST).contains(&most), "a piece has a row at least");
        let properties = input.properties().clone();
        Arc::new(PiecesExec { input, most, properties })
    }
}

impl DisplayAs for PiecesExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PiecesExec: rows={}", self.most)
    }
}

impl ExecutionPlan for PiecesExec {
    fn name(&self) -> &'static str {
        "PiecesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.pop()) {
            (Some(input), None) => Ok(PiecesExec::over(input, self.most)),
            _ => internal_err!("PiecesExec has one child"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, task: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, task)?;
        let (most, rows) = (self.most, FIRST.min(self.most));
        Ok(make_cooperative(Box::pin(Cut { input, most, rows, made: 0, cut: None })))
    }
}

struct Cut {
    input: SendableRecordBatchStream,
    most: usize,
    /// Of the next piece.
    rows: usize,
    /// What functions had made before the last piece, for each of whose rows what has been made since counts.
    made: u64,
    /// What is left of a batch.
    cut: Option<RecordBatch>,
}

impl Cut {
    /// Invariant 2.
    fn adapt(&mut self) {
        let now = memory::made_so_far();
        // A stream that another piece of work goes on with begins anew.
        let made = now.saturating_sub(self.made);
        self.made = now;
        self.rows = next_rows(self.rows, made, self.most);
    }
}

fn next_rows(rows: usize, made: u64, most: usize) -> usize {
    assert!((1..=most).contains(&rows), "invariant 2: pieces of {rows} rows, at most {most}");
    match made {
        // Twice as much as wanted, or more.
        _ if made >= 2 * WANTED => (rows as u64 * WANTED / made).max(1) as usize,
        _ if made <= WANTED / 8 => rows.saturating_mul(8).min(most),
        _ => rows,
    }
}

impl Stream for Cut {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Err(error) = memory::check() {
            return Poll::Ready(Some(Err(tunnel(error))));
        }
        self.adapt();
        debug_assert!((1..=self.most).contains(&self.rows), "invariant 2");
        let batch = match self.cut.take() {
            Some(batch) => batch,
            None => match ready!(self.input.poll_next_unpin(context)) {
                Some(Ok(batch)) => batch,
                end => return Poll::Ready(end),
            },
        };
        let (rows, all) = (self.rows, batch.num_rows());
        if all <= rows {
            return Poll::Ready(Some(Ok(batch)));
        }
        self.cut = Some(batch.slice(rows, all - rows));
        Poll::Ready(Some(Ok(batch.slice(0, rows))))
    }
}

impl RecordBatchStream for Cut {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, WANTED, next_rows};

    #[test]
    fn pieces_follow_what_is_made_of_them() {
        // Nothing much is made: batches stay whole soon.
        let mut rows = 16;
        for expected in [128, 1024, 8192, 8192] {
            rows = next_rows(rows, 1000, MOST);
            assert_eq!(rows, expected);
        }
        assert_eq!(next_rows(16, 16 << 20, MOST), 4, "a megabyte of each row");
        assert_eq!(next_rows(4, WANTED, MOST), 4);
        assert_eq!(next_rows(1, 1 << 30, MOST), 1);
        assert_eq!(next_rows(16, 0, 20), 20, "no more than a long constant allows");
    }
}
