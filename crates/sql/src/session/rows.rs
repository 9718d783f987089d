//! The rows of a statement while they are sent to the client. When they end, the statement ends.
use crate::cancel::{CancelToken, Canceller};
use crate::error::from_datafusion;
use crate::memory::Work;
use crate::observe::CopyProgress;
use crate::panics::caught;
use crate::plan::naming::shown_schema;
use crate::session::Session;
use crate::session::running::Running;
use crate::stack::{Deep, on_stack_for};
use crate::statement::copy::{Copy, CopyContext, CopyIn, Source};
use crate::statement::outcome::{Done, Outcome};
use crate::statement::shared::Shared;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use terrace_engine::Result;
use terrace_engine::types::clock;
use terrace_env::Env;
use terrace_storage::{Reads, counting};

/// The result of a statement's work in its transaction.
pub(crate) enum Worked {
    /// It is finished, and handed out as it is: a statement by key has run.
    Handed(Outcome),
    /// In the transaction of that number.
    Done { done: Done, number: u64 },
}

impl Worked {
    /// `depth`: a bound on that of the statement.
    pub(crate) fn into_outcome(self, session: &Session, depth: usize, token: &Arc<CancelToken>) -> Outcome {
        match self {
            Worked::Handed(outcome) => outcome,
            Worked::Done { done, number } => session.outcome(done, number, depth, token),
        }
    }
}

impl Session {
    /// What was done, as it is handed out.
    fn outcome(&self, done: Done, number: u64, depth: usize, token: &Arc<CancelToken>) -> Outcome {
        match done {
            Done::Command(outcome) => outcome,
            Done::Rows(stream) => {
                let (schema, stream) = self.rows(stream, token.clone(), depth);
                Outcome::Rows { schema, stream }
            }
            Done::Copy(Copy::In(target)) => {
                let context = CopyContext {
                    database: self.database.clone(),
                    info: self.info.clone(),
                    number,
                    clock: Mutex::new(self.clock.lock().clone()),
                };
                let copy = CopyIn::new(target, self.shared.clone(), token.clone(), self.canceller.clone(), context);
                Outcome::CopyIn(Box::new(copy))
            }
            Done::Copy(Copy::Out(source)) => {
                let Source { format, rows, file, relation } = *source;
                let progress = CopyProgress::begin(&self.shared.activity, relation, false, file.is_some());
                let (schema, stream) = self.rows(rows, token.clone(), depth);
                Outcome::CopyOut { schema, stream, format, file, progress }
            }
        }
    }

    /// `depth`: a bound on that of the statement.
    pub(crate) fn rows(
        &self,
        stream: SendableRecordBatchStream,
        token: Arc<CancelToken>,
        depth: usize,
    ) -> (SchemaRef, BoxStream<'static, Result<RecordBatch>>) {
        let schema = shown_schema(&stream.schema());
        let rows = Rows {
            stream,
            schema: schema.clone(),
            shared: self.shared.clone(),
            canceller: self.canceller.clone(),
            work: self.work(token.clone()),
            token,
            running: self.running.clone(),
            now: self.now(),
            env: self.database.engine.env().clone(),
        };
        let stream = stream::unfold(Some(Deep::new(depth, rows)), move |rows| async move {
            let mut rows = rows?;
            let next = on_stack_for(depth, Box::pin(rows.get().next())).await;
            match next {
                Ok(Some(batch)) => Some((Ok(batch), Some(rows))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        (schema, stream.boxed())
    }
}

struct Rows {
    stream: SendableRecordBatchStream,
    schema: SchemaRef,
    shared: Arc<Shared>,
    canceller: Canceller,
    token: Arc<CancelToken>,
    work: Arc<Work>,
    running: Option<Arc<Running>>,
    /// The transaction's time.
    now: i64,
    env: Env,
}

impl Rows {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.canceller.resume(&self.token);
        let mut reads = Reads::default();
        let style = self.shared.settings.lock().style();
        let next = pin!(self.token.run(caught(async { Ok(self.stream.next().await) })));
        let next = {
            let timed = pin!(clock::at(self.now, next));
            let counted = pin!(counting(&mut reads, timed));
            let working = pin!(self.work.clone().over(counted));
            self.env.run_long(pin!(style.over(working))).await
        };
        if let Some(running) = &self.running {
            running.read(reads);
        }
        let batch = match next {
            Ok(batch) => batch.transpose().map_err(from_datafusion),
            Err(error) => Err(error),
        };
        match batch {
            Ok(Some(batch)) => {
                if let Some(running) = &self.running {
                    running.returned(batch.num_rows() as u64);
                }
                debug_assert_eq!(batch.num_columns(), self.schema.fields().len(), "a plan's rows are as it says");
                let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                let renamed =
                    RecordBatch::try_new_with_options(self.schema.clone(), batch.columns().to_vec(), &options);
                renamed.map(Some).map_err(crate::error::from_arrow)
            }
            Ok(None) => {
                let committed = self.shared.succeed().await;
                self.canceller.end(&self.token);
                committed.map(|()| None)
            }
            Err(error) => {
                if let Some(running) = &self.running {
                    running.failed();
                }
                self.shared.fail().await;
                self.canceller.end(&self.token);
                Err(error)
            }
        }
    }
}

/// The count at the end of a command tag.
pub(crate) fn rows_of(tag: &str) -> u64 {
    tag.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)
}
