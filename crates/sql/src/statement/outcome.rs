//! The answer of a statement: rows, a command tag, or a COPY that waits for the client's data.
use crate::observe::CopyProgress;
use crate::statement::copy::{CopyFormat, CopyIn};
use datafusion::arrow::array::{RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use futures::stream::BoxStream;
use std::sync::Arc;
use terrace_engine::{EngineError, Result};

pub enum Outcome {
    /// Rows as they are produced. [`Prepared::tag`] says how they end.
    Rows { schema: SchemaRef, stream: BoxStream<'static, Result<RecordBatch>> },
    /// `COPY ... FROM` waits for its data. [`CopyIn::finish`] ends the statement.
    CopyIn(Box<CopyIn>),
    /// `COPY ... TO STDOUT`: rows to be written in that format. [`Prepared::tag`] says how they end.
    CopyOut {
        schema: SchemaRef,
        stream: BoxStream<'static, Result<RecordBatch>>,
        format: CopyFormat,
        /// Of the server, if the data does not go to the client.
        file: Option<String>,
        progress: CopyProgress,
    },
    /// A command tag, e.g. `INSERT 0 5`, `CREATE TABLE`; `notice` for warnings.
    Command { tag: String, notices: Vec<EngineError> },
    /// The statement was empty.
    Empty,
}

pub(crate) enum Done {
    Command(Outcome),
    Rows(SendableRecordBatchStream),
    Copy(crate::statement::copy::Copy),
}

pub(crate) fn command(tag: impl Into<String>) -> Outcome {
    Outcome::Command { tag: tag.into(), notices: vec![] }
}

pub(crate) fn notice(state: &'static str, message: impl Into<String>) -> EngineError {
    EngineError::new(state, message)
}

pub(crate) fn text_schema(names: &[&str]) -> SchemaRef {
    Arc::new(Schema::new(names.iter().map(|n| Field::new(*n, ArrowType::Utf8, true)).collect::<Vec<_>>()))
}

pub(crate) fn text_rows(names: &[&str], rows: Vec<Vec<String>>) -> (SchemaRef, RecordBatch) {
    assert!(rows.iter().all(|row| row.len() == names.len()), "a text for each of {names:?}");
    let schema = text_schema(names);
    let column = |at: usize| -> Arc<dyn datafusion::arrow::array::Array> {
        Arc::new(rows.iter().map(|row| Some(row[at].as_str())).collect::<StringArray>())
    };
    let columns = (0..names.len()).map(column).collect();
    let batch = RecordBatch::try_new(schema.clone(), columns).expect("columns as the schema says");
    (schema, batch)
}
