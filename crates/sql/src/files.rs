//! Files of the server in FROM, by their path: `SELECT * FROM '/data/sales.parquet'`. ([`csv`], [`parquet`].)
//!
//! 1. A file's columns are found when the statement is planned, and its rows are read when it runs. A file whose
//!    columns are others by then is refused (0A000).
//! 2. Each column has one of the engine's types, and each value is one of that type. What has no such type is refused;
//!    a value that is not of its column's type is an error.
//! 3. A thread of its own reads the file, at most [`AHEAD`] batches ahead of who takes them, and ends when nobody does.
//!    Where it cannot go on, also by a panic, the statement fails.
//!
//! PostgreSQL has no such files in FROM. Who may read them is who may COPY from them.
mod csv;
mod parquet;
#[cfg(test)]
mod tests;

use crate::error::{tunnel, unsupported};
use crate::values::field_of;
use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result as Planned, project_schema};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::channel::mpsc;
use futures::executor::block_on;
use futures::{SinkExt, stream};
use std::fs::File;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use terrace_engine::{DataType, EngineError, Result};

/// Batches.
const AHEAD: usize = 2;
/// Rows of a batch.
const ROWS: usize = 1024;

/// A file that was looked at.
#[derive(Clone, Debug)]
pub(crate) struct FileTable {
    path: Arc<str>,
    format: Format,
    /// As they are called in the file.
    pub(crate) titles: Vec<String>,
    types: Vec<DataType>,
    /// The columns of those types, each with a name of its own.
    schema: SchemaRef,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    /// With this delimiter.
    Csv(u8),
    Parquet,
}

/// A column of a file.
type Column = (String, DataType);

impl FileTable {
    /// Looks at a file: what it is, and which columns it has.
    pub(crate) fn open(path: &str) -> Result<FileTable> {
        if !Path::new(path).is_absolute() {
            let error = EngineError::new("42602", format!("relative path not allowed for file \"{path}\" in FROM"));
            return Err(error.with_hint("Name the file from the root of the file system."));
        }
        let extension = Path::new(path).extension().and_then(|end| end.to_str()).map(str::to_ascii_lowercase);
        let format = match extension.as_deref() {
            Some("csv") => Format::Csv(b','),
            Some("tsv") => Format::Csv(b'\t'),
            Some("parquet") => Format::Parquet,
            _ => {
                let error = unsupported(format!("file \"{path}\" in FROM"));
                return Err(error.with_hint("The path must end in .csv, .tsv or .parquet. COPY reads other files."));
            }
        };
        let columns = format.columns(path)?;
        let (titles, types): (Vec<String>, Vec<DataType>) = columns.into_iter().unzip();
        let field = |(at, title): (usize, &String)| {
            let taken = titles[..at].contains(title);
            let name = if taken { format!("{title} {}", at + 1) } else { title.clone() };
            field_of(&name, types[at], true)
        };
        let schema = Arc::new(Schema::new(titles.iter().enumerate().map(field).collect::<Vec<_>>()));
        Ok(FileTable { path: path.into(), format, titles, types, schema })
    }

    /// What it is called in FROM: `sales` of `/data/sales.parquet`.
    pub(crate) fn name(&self) -> &str {
        Path::new(&*self.path).file_stem().and_then(|stem| stem.to_str()).unwrap_or("file")
    }

    /// Invariant 1.
    fn check_unchanged(&self, found: &[Column]) -> Result<()> {
        let same =
            found.iter().map(|(title, _)| title).eq(&self.titles) && found.iter().map(|(_, of)| of).eq(&self.types);
        if same {
            return Ok(());
        }
        let message = format!("file \"{}\" has other columns than when the statement was planned", self.path);
        Err(EngineError::new("0A000", message).with_hint("Run the statement again, or prepare it again."))
    }
}

impl Format {
    fn columns(self, path: &str) -> Result<Vec<Column>> {
        match self {
            Format::Csv(delimiter) => csv::columns(path, delimiter),
            Format::Parquet => parquet::columns(path),
        }
    }
}

/// Opens a file of the server, which must be a plain one: a pipe would make planning wait.
#[expect(
    clippy::disallowed_methods,
    reason = "a file in FROM is none of the database's, and lies on none of its devices"
)]
fn opened(path: &str) -> Result<File> {
    let file = std::fs::metadata(path).and_then(|found| match found.is_file() {
        true => File::open(path).map(Some),
        false => Ok(None),
    });
    match file {
        Ok(Some(file)) => Ok(file),
        Ok(None) => Err(EngineError::new("42809", format!("\"{path}\" is not a regular file"))),
        Err(error) => Err(unread(path, &error)),
    }
}

/// The error of a file that cannot be read.
fn unread(path: &str, error: &std::io::Error) -> EngineError {
    let state = match error.kind() {
        ErrorKind::NotFound => "58P01",
        ErrorKind::PermissionDenied => "42501",
        _ => "58030",
    };
    let text = error.to_string();
    let why = text.split(" (os error").next().unwrap_or_default();
    EngineError::new(state, format!("could not read file \"{path}\": {why}"))
}

#[async_trait]
impl TableProvider for FileTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        let schema = project_schema(&self.schema, projection)?;
        let wanted = projection.cloned().unwrap_or_else(|| (0..self.types.len()).collect());
        let scan = FileScan { table: self.clone(), wanted, schema: schema.clone() };
        let scan = StreamingTableExec::try_new(schema, vec![Arc::new(scan)], None, None, false, limit)?;
        Ok(Arc::new(scan))
    }
}

/// Reading some columns of a file.
#[derive(Debug)]
struct FileScan {
    table: FileTable,
    /// The columns, by number.
    wanted: Vec<usize>,
    schema: SchemaRef,
}

/// Where rows go; false: nobody takes them any more.
type Take<'t> = &'t mut dyn FnMut(RecordBatch) -> bool;

impl FileScan {
    fn read(&self, take: Take<'_>) -> Result<()> {
        self.table.check_unchanged(&self.table.format.columns(&self.table.path)?)?;
        match self.table.format {
            Format::Csv(delimiter) => csv::read(self, delimiter, take),
            Format::Parquet => parquet::read(self, take),
        }
    }
}

impl PartitionStream for FileScan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Invariant 3.
    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (mut send, receive) = mpsc::channel::<Planned<RecordBatch>>(AHEAD);
        let scan = FileScan { table: self.table.clone(), wanted: self.wanted.clone(), schema: self.schema.clone() };
        let reader = std::thread::Builder::new().name("file-reader".into()).spawn(move || {
            let mut put = |batch| block_on(send.send(batch)).is_ok();
            let read = catch_unwind(AssertUnwindSafe(|| scan.read(&mut |batch| put(Ok(batch)))));
            // A thread that just ended would look like the file's end, and the answer would be too short.
            let failed = || EngineError::new("XX000", format!("reading file \"{}\" failed", scan.table.path));
            if let Err(error) = read.unwrap_or_else(|_| Err(failed())) {
                put(Err(tunnel(error)));
            }
        });
        let failed = reader.err().map(|error| Err(DataFusionError::IoError(error)));
        let rows = futures::StreamExt::chain(stream::iter(failed), receive);
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), rows))
    }
}
