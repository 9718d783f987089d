//! Statements that read little: they run on their session's thread, and are over when their first rows are here.
//!
//! 1. A statement is taken for short if all its plans are generic and read by ranges of indexes. If it is not short
//!    after all, it gives way at its second batch of rows ([`crate::plan::scan`]), and from then on runs as any other.
//! 2. What was gathered is answered as if it had come from the stream.
use crate::plan::naming::shown_schema;
use crate::session::Session;
use crate::session::prepared::Prepared;
use crate::session::rows::Worked;
use crate::statement::kind::{Kind, Task, Work};
use crate::statement::outcome::{Done, Outcome};
use crate::statement::run::Run;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use terrace_engine::Result;

/// Batches that are gathered, at most.
const MOST: usize = 2;

/// What a short statement has done.
pub(crate) enum Gathered {
    /// All of its rows.
    Rows(SchemaRef, Vec<RecordBatch>),
    Other(Done),
}

impl Prepared {
    /// Invariant 1.
    pub(crate) fn is_short(&self) -> bool {
        let changes_or_reads = |kind: Kind<'_>| {
            matches!(kind.work, Work::Transaction(Task::Query(_) | Task::Insert(_) | Task::Update(_) | Task::Delete(_)))
        };
        self.generics.are_short()
            && self.statement.as_ref().is_some_and(|tree| changes_or_reads(Kind::of(tree.statement())))
    }
}

impl Run<'_> {
    /// Gathers the rows of what was done.
    pub(crate) async fn gathered(&self, done: Done) -> Result<Gathered> {
        let mut rows: SendableRecordBatchStream = match done {
            Done::Rows(rows) => rows,
            done => return Ok(Gathered::Other(done)),
        };
        let (schema, mut batches) = (rows.schema(), vec![]);
        while batches.len() < MOST {
            match self.next_batch(&mut rows).await? {
                Some(batch) => batches.push(batch),
                None => return Ok(Gathered::Rows(schema, batches)),
            }
        }
        let all = stream::iter(batches.into_iter().map(Ok)).chain(rows);
        Ok(Gathered::Other(Done::Rows(Box::pin(RecordBatchStreamAdapter::new(schema, all)))))
    }
}

impl Session {
    /// The statement ends, if its rows were gathered.
    pub(crate) async fn end_short(&self, gathered: Gathered, number: u64) -> Result<Worked> {
        let (schema, batches) = match gathered {
            Gathered::Rows(schema, batches) => (shown_schema(&schema), batches),
            Gathered::Other(done) => return Ok(Worked::Done { done, number }),
        };
        self.shared.succeed().await?;
        if let Some(running) = &self.running {
            running.returned(batches.iter().map(RecordBatch::num_rows).sum::<usize>() as u64);
        }
        let shown = |batch: RecordBatch| {
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)
                .map_err(crate::error::from_arrow)
        };
        let rows: Vec<Result<RecordBatch>> = batches.into_iter().map(shown).collect();
        Ok(Worked::Handed(Outcome::Rows { schema, stream: Box::pin(stream::iter(rows)) }))
    }
}
