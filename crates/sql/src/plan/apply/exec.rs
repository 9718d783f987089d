//! Runs an [`Apply`]: nested loops.
//!
//! 1. The query runs once for each set of values, as long as its answer is remembered: at most [`MOST_ANSWERS`] are, of
//!    [`MOST_BYTES`] in all, as far as the budget of queries has room. That of a volatile query never is.
//! 2. Rows of LATERAL go on as they come: not all of one run need to be in memory.
//! 3. A query that is a value fails with 21000 at its second row.
//! 4. Before each run it is asked whether the statement may go on.
//! 5. One plan runs again and again, where there can be one. It is this stream's until that ends: no other one puts
//!    values into it, and a run has ended, or is no longer wanted, before the next begins. Then it is the next stream's
//!    ([`Inner::again`]).
use super::Kind;
use super::planning::{Again, Inner};
use crate::error::tunnel;
use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array,
};
use datafusion::arrow::compute::{cast, concat, concat_batches, take};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions, reset_plan_states,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PhysicalExpr, PlanProperties,
};
use futures::{StreamExt, stream};
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::Arc;
use terrace_engine::EngineError;

/// Answers that are remembered.
const MOST_ANSWERS: usize = 4096;

/// Bytes of the answers that are remembered.
const MOST_BYTES: usize = 8 << 20;

/// Rows of a batch that LATERAL hands on, if there are so many.
const BATCH_ROWS: usize = 1024;

#[derive(Debug)]
pub(crate) struct ApplyExec {
    input: Arc<dyn ExecutionPlan>,
    /// The plan of the query, with the columns that it takes by their names: it is shown, not run.
    shown: Option<Arc<dyn ExecutionPlan>>,
    values: Vec<Arc<dyn PhysicalExpr>>,
    inner: Arc<Inner>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ApplyExec {
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        shown: Option<Arc<dyn ExecutionPlan>>,
        values: Vec<Arc<dyn PhysicalExpr>>,
        inner: Arc<Inner>,
    ) -> ApplyExec {
        let schema = inner.apply.schema.inner().clone();
        let order = input.output_ordering().cloned();
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(schema.clone(), order),
            input.output_partitioning().clone(),
            EmissionType::Incremental,
            input.boundedness(),
        );
        let (properties, metrics) = (Arc::new(properties), ExecutionPlanMetricsSet::new());
        ApplyExec { input, shown, values, inner, schema, properties, metrics }
    }

    /// The plan of the query, as EXPLAIN shows it.
    pub(crate) fn shown(&self) -> Option<&Arc<dyn ExecutionPlan>> {
        self.shown.as_ref()
    }
}

impl DisplayAs for ApplyExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApplyExec: {}", self.inner.apply.shown())
    }
}

impl ExecutionPlan for ApplyExec {
    fn name(&self) -> &'static str {
        "ApplyExec"
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
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for value in &self.values {
            if f(value)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([input]) = <[_; 1]>::try_from(children) else { return internal_err!("an Apply has one input") };
        let (shown, values, inner) = (self.shown.clone(), self.values.clone(), self.inner.clone());
        Ok(Arc::new(ApplyExec::new(input, shown, values, inner)))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, task: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let running = Running {
            input: self.input.execute(partition, task.clone())?,
            values: self.values.clone(),
            inner: self.inner.clone(),
            schema: self.schema.clone(),
            answers: FxHashMap::default(),
            memory: MemoryConsumer::new("answers of subqueries").register(task.memory_pool()),
            metrics: BaselineMetrics::new(&self.metrics, partition),
            at: None,
            rows: None,
            again: None,
            task,
        };
        let batches = stream::try_unfold(running, |mut running| async move {
            let next = running.next().await?;
            Ok(next.map(|batch| (batch, running)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// What the query answers for one set of values.
#[derive(Clone)]
enum Answer {
    /// As an array of one row.
    Value(ArrayRef),
    Exists(bool),
    Rows(Arc<Vec<RecordBatch>>),
}

impl Answer {
    fn bytes(&self) -> usize {
        match self {
            Answer::Value(value) => value.get_array_memory_size(),
            Answer::Exists(_) => 1,
            Answer::Rows(batches) => batches.iter().map(RecordBatch::get_array_memory_size).sum(),
        }
    }
}

struct Running {
    input: SendableRecordBatchStream,
    values: Vec<Arc<dyn PhysicalExpr>>,
    inner: Arc<Inner>,
    schema: SchemaRef,
    /// Those that are remembered (invariant 1).
    answers: FxHashMap<Vec<ScalarValue>, Answer>,
    memory: MemoryReservation,
    metrics: BaselineMetrics,
    /// LATERAL: the batch under way, the values that are taken of it, and the next row.
    at: Option<(RecordBatch, Vec<ArrayRef>, usize)>,
    /// The rows that have come for the row before.
    rows: Option<Rows>,
    /// The plan that runs again and again; within, `None`: there is none. At first it is not known.
    again: Option<Option<Again>>,
    task: Arc<TaskContext>,
}

/// The rows of one run.
struct Rows {
    source: Source,
    /// Whether one has come.
    any: bool,
}

enum Source {
    Remembered(std::vec::IntoIter<RecordBatch>),
    /// What has come is gathered, as long as it is worth being remembered.
    Running {
        stream: SendableRecordBatchStream,
        values: Vec<ScalarValue>,
        gathered: Option<(Vec<RecordBatch>, usize)>,
    },
}

impl Drop for Running {
    /// Invariant 5.
    fn drop(&mut self) {
        self.rows = None;
        if let Some(Some(again)) = self.again.take() {
            self.inner.give_back(again);
        }
    }
}

impl Running {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let made = match self.inner.apply.kind {
            Kind::Rows { padded } => self.next_rows(padded).await?,
            _ => match self.input.next().await.transpose()? {
                Some(batch) => Some(self.with_column(batch).await?),
                None => None,
            },
        };
        if let Some(batch) = &made {
            self.metrics.record_output(batch.num_rows());
        }
        Ok(made)
    }

    fn taken(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.values.iter().map(|value| value.evaluate(batch)?.into_array(batch.num_rows())).collect()
    }

    /// The input's rows with what the query answers for each.
    async fn with_column(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let taken = self.taken(&batch)?;
        let mut answers = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            let values = values_of(&taken, row)?;
            let known = self.answers.get(&values).cloned();
            answers.push(match known {
                Some(known) => known,
                None => {
                    let answer = self.answer(&values).await?;
                    self.remember(values, &answer);
                    answer
                }
            });
        }
        let of = self.schema.field(batch.num_columns()).data_type();
        let column: ArrayRef = match answers.first() {
            None => datafusion::arrow::array::new_empty_array(of),
            Some(Answer::Exists(_)) => {
                let exists = answers.iter().map(|answer| matches!(answer, Answer::Exists(true)));
                Arc::new(BooleanArray::from(exists.collect::<Vec<bool>>()))
            }
            Some(_) => {
                let values = answers.iter().filter_map(|answer| match answer {
                    Answer::Value(value) => Some(value.as_ref()),
                    _ => None,
                });
                concat(&values.collect::<Vec<&dyn Array>>())?
            }
        };
        let columns = batch.columns().iter().cloned().chain([column]).collect();
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    async fn answer(&mut self, values: &[ScalarValue]) -> Result<Answer> {
        let mut stream = self.run(values).await?;
        let (kind, of) =
            (self.inner.apply.kind, self.schema.fields().last().expect("a column is made").data_type().clone());
        let mut found: Option<ArrayRef> = None;
        while let Some(batch) = stream.next().await.transpose()? {
            match (kind, batch.num_rows(), &found) {
                (_, 0, _) => {}
                (Kind::Exists, ..) => return Ok(Answer::Exists(true)),
                (_, 1, None) => found = Some(cast(batch.column(0), &of)?),
                _ => {
                    let message = "more than one row returned by a subquery used as an expression";
                    return Err(tunnel(EngineError::new("21000", message))); // Invariant 3.
                }
            }
        }
        Ok(match kind {
            Kind::Exists => Answer::Exists(false),
            _ => Answer::Value(found.unwrap_or_else(|| new_null_array(&of, 1))),
        })
    }

    /// The query's rows for these values (invariants 4 and 5).
    async fn run(&mut self, values: &[ScalarValue]) -> Result<SendableRecordBatchStream> {
        crate::memory::check().map_err(tunnel)?;
        let again = match &self.again {
            Some(again) => again,
            None => self.again.insert(self.inner.again().await.ok()),
        };
        match again {
            Some(again) => {
                *again.values.lock() = values.to_vec();
                reset_plan_states(again.plan.clone())?.execute(0, self.task.clone())
            }
            None => self.inner.plan(values).await?.execute(0, self.task.clone()),
        }
    }

    /// Invariant 1.
    fn remember(&mut self, values: Vec<ScalarValue>, answer: &Answer) {
        if !self.inner.keeps {
            return;
        }
        let bytes = answer.bytes() + values.iter().map(ScalarValue::size).sum::<usize>() + size_of::<Answer>();
        if bytes > MOST_BYTES / 8 {
            return;
        }
        if self.answers.len() >= MOST_ANSWERS || self.memory.size() + bytes > MOST_BYTES {
            self.answers.clear();
            self.memory.free();
        }
        if self.memory.try_grow(bytes).is_ok() {
            self.answers.insert(values, answer.clone());
        }
    }

    /// A batch of joined rows (invariant 2).
    async fn next_rows(&mut self, padded: bool) -> Result<Option<RecordBatch>> {
        let (mut made, mut count) = (vec![], 0);
        while count < BATCH_ROWS {
            let Some(batch) = self.some_rows(padded).await? else { break };
            count += batch.num_rows();
            made.push(batch);
        }
        Ok(match made.len() {
            0 => None,
            1 => made.pop(),
            _ => Some(concat_batches(&self.schema, &made)?),
        })
    }

    /// Some joined rows of one row of the input.
    async fn some_rows(&mut self, padded: bool) -> Result<Option<RecordBatch>> {
        loop {
            let Some((batch, taken, row)) = &self.at else {
                let Some(batch) = self.input.next().await.transpose()? else { return Ok(None) };
                let taken = self.taken(&batch)?;
                self.at = (batch.num_rows() > 0).then_some((batch, taken, 0));
                continue;
            };
            let (batch, row) = (batch.clone(), *row);
            let mut rows = match self.rows.take() {
                Some(rows) => rows,
                None => self.rows_for(values_of(taken, row)?).await?,
            };
            match rows.source.next().await? {
                Some(found) => {
                    rows.any |= found.num_rows() > 0;
                    self.rows = Some(rows);
                    if found.num_rows() > 0 {
                        return self.joined(&batch, row, Some(&found)).map(Some);
                    }
                }
                None => {
                    let any = rows.any;
                    if let Source::Running { values, gathered: Some((batches, _)), .. } = rows.source {
                        self.remember(values, &Answer::Rows(Arc::new(batches)));
                    }
                    let last = row + 1 == batch.num_rows();
                    self.at = self.at.take().filter(|_| !last).map(|(batch, taken, row)| (batch, taken, row + 1));
                    if !any && padded {
                        return self.joined(&batch, row, None).map(Some);
                    }
                }
            }
        }
    }

    async fn rows_for(&mut self, values: Vec<ScalarValue>) -> Result<Rows> {
        let source = match self.answers.get(&values) {
            Some(Answer::Rows(batches)) => {
                crate::memory::check().map_err(tunnel)?;
                Source::Remembered(batches.as_ref().clone().into_iter())
            }
            _ => {
                let stream = self.run(&values).await?;
                Source::Running { stream, values, gathered: self.inner.keeps.then(|| (vec![], 0)) }
            }
        };
        Ok(Rows { source, any: false })
    }

    /// A row of the input beside rows of the query, or beside NULLs.
    fn joined(&self, batch: &RecordBatch, row: usize, found: Option<&RecordBatch>) -> Result<RecordBatch> {
        let count = found.map_or(1, RecordBatch::num_rows);
        let places = UInt64Array::from(vec![row as u64; count]);
        let mut columns =
            batch.columns().iter().map(|column| take(column, &places, None)).collect::<Result<Vec<_>, _>>()?;
        for (number, field) in self.schema.fields().iter().skip(batch.num_columns()).enumerate() {
            columns.push(match found {
                Some(found) => cast(found.column(number), field.data_type())?,
                None => new_null_array(field.data_type(), 1),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

impl Source {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Source::Remembered(batches) => Ok(batches.next()),
            Source::Running { stream, gathered, .. } => {
                let Some(batch) = stream.next().await.transpose()? else { return Ok(None) };
                *gathered = gathered.take().and_then(|(mut batches, mut bytes)| {
                    bytes += batch.get_array_memory_size();
                    batches.push(batch.clone());
                    (bytes <= MOST_BYTES / 8).then_some((batches, bytes))
                });
                Ok(Some(batch))
            }
        }
    }
}

fn values_of(taken: &[ArrayRef], row: usize) -> Result<Vec<ScalarValue>> {
    taken.iter().map(|values| ScalarValue::try_from_array(values, row)).collect()
}
