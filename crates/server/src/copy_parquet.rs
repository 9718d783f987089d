//! `COPY ... TO ... (FORMAT parquet)`: rows as a Parquet file, which is handed on in parts.
//!
//! 1. A column whose type Parquet has keeps it. Any other (numeric without a scale, json, interval, uuid, char(n),
//!    enums, arrays, rows) becomes text, as a client is shown it. Infinite dates and times, which Parquet has not, are
//!    refused.
//! 2. Memory holds one group of rows, of about [`GROUP_BYTES`] when it is compressed.
//!
//! Source: Apache Parquet's format, written by the crate `parquet`.
use crate::encode::{columns, text_field};
use crate::types::Wire;
use bytes::BytesMut;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringBuilder};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Date32Type, Field, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType,
};
use parking_lot::Mutex;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::io::{self, Write};
use std::sync::Arc;
use terrace_engine::types::{is_infinite, is_infinite_date};
use terrace_engine::{EngineError, Result};
use terrace_sql::is_decimal;

const GROUP_BYTES: usize = 32 << 20;

pub(crate) struct ParquetFile {
    writer: ArrowWriter<Written>,
    written: Written,
    /// Of the file.
    schema: SchemaRef,
    wires: Vec<Wire>,
}

/// What was written and not handed on yet.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ParquetFile {
    /// `wires`: of the columns of `schema`.
    pub(crate) fn begin(schema: &SchemaRef, wires: Vec<Wire>) -> Result<ParquetFile> {
        assert_eq!(schema.fields().len(), wires.len(), "a wire for each column");
        if schema.fields().is_empty() {
            return Err(EngineError::new("0A000", "a Parquet file without columns is not supported"));
        }
        let mut fields: Vec<Field> = vec![];
        for (field, wire) in schema.fields().iter().zip(&wires) {
            if fields.iter().any(|other| other.name() == field.name()) {
                let message = format!("column name \"{}\" appears twice in a Parquet file", field.name());
                return Err(EngineError::new("42701", message).with_hint("Give the columns names with AS."));
            }
            let kept = keeps_type(field.data_type(), wire);
            let of = if kept { field.data_type().clone() } else { ArrowType::Utf8 };
            fields.push(Field::new(field.name(), of, true));
        }
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let written = Written::default();
        let writer = ArrowWriter::try_new(written.clone(), schema.clone(), Some(properties)).map_err(failed)?;
        Ok(ParquetFile { writer, written, schema, wires })
    }

    /// Adds rows. Answers what of the file is done.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<Vec<u8>> {
        let texts = columns(batch, &self.wires, &vec![false; self.wires.len()])?;
        let column = |at: usize| -> Result<ArrayRef> {
            let array = batch.column(at);
            if self.schema.field(at).data_type() == array.data_type() && keeps_type(array.data_type(), &self.wires[at])
            {
                refuse_infinite(array, self.schema.field(at).name())?;
                return Ok(array.clone());
            }
            let (mut made, mut text) = (StringBuilder::new(), BytesMut::new());
            for row in 0..batch.num_rows() {
                text.clear();
                match text_field(&mut text, &texts[at], row)? {
                    true => made.append_value(std::str::from_utf8(&text).expect("a value's text is UTF-8")),
                    false => made.append_null(),
                }
            }
            Ok(Arc::new(made.finish()))
        };
        let arrays = (0..self.wires.len()).map(column).collect::<Result<Vec<ArrayRef>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options);
        let batch = batch.map_err(|error| failed(error.into()))?;
        self.writer.write(&batch).map_err(failed)?;
        if self.writer.in_progress_size() > GROUP_BYTES {
            self.writer.flush().map_err(failed)?;
        }
        Ok(std::mem::take(&mut *self.written.0.lock()))
    }

    /// The rest of the file.
    pub(crate) fn end(self) -> Result<Vec<u8>> {
        self.writer.close().map_err(failed)?;
        Ok(std::mem::take(&mut *self.written.0.lock()))
    }
}

/// Invariant 1.
fn keeps_type(of: &ArrowType, wire: &Wire) -> bool {
    match of {
        ArrowType::Boolean | ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64 => true,
        ArrowType::Float32 | ArrowType::Float64 | ArrowType::Binary | ArrowType::Date32 => true,
        ArrowType::Decimal128(_, 0..) => !is_decimal(of),
        ArrowType::Utf8 => wire.padded() == 0,
        ArrowType::Time64(TimeUnit::Microsecond) | ArrowType::Timestamp(TimeUnit::Microsecond, _) => true,
        _ => false,
    }
}

fn refuse_infinite(array: &ArrayRef, column: &str) -> Result<()> {
    let infinite = match array.data_type() {
        ArrowType::Date32 => array.as_primitive::<Date32Type>().iter().flatten().any(is_infinite_date),
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
            array.as_primitive::<TimestampMicrosecondType>().iter().flatten().any(is_infinite)
        }
        _ => false,
    };
    if !infinite {
        return Ok(());
    }
    let message = format!("column \"{column}\" has an infinite date or time, which a Parquet file cannot hold");
    Err(EngineError::new("22008", message).with_hint("Copy the column as text: SELECT ...::text."))
}

fn failed(error: ParquetError) -> EngineError {
    EngineError::new("XX000", format!("the Parquet file cannot be made: {error}"))
}
