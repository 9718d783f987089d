//! Parquet files in FROM.
//!
//! 1. The file's own types count, not Arrow's that a program may have noted in it.
//! 2. Times are cut to microseconds. A time beyond what the engine's type holds is an error, and so is a text with a
//!    NUL.
use super::{Column, FileScan, ROWS, Take, opened};
use crate::error::{from_arrow, unsupported};
use crate::values::arrow_type;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, LogicalType};
use parquet::errors::ParquetError;
use std::fs::File;
use terrace_engine::types::{DATES, DAY_MICROS, FIRST_TIMESTAMP, is_infinite};
use terrace_engine::{DataType, EngineError, Result};

type Builder = ParquetRecordBatchReaderBuilder<File>;

fn builder(path: &str) -> Result<Builder> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    Builder::try_new_with_options(opened(path)?, options).map_err(|error| damaged(path, &error))
}

fn damaged(path: &str, error: &ParquetError) -> EngineError {
    EngineError::new("22P04", format!("file \"{path}\" is no Parquet file that can be read: {error}"))
}

pub(super) fn columns(path: &str) -> Result<Vec<Column>> {
    let builder = builder(path)?;
    let roots = builder.parquet_schema().root_schema().get_fields();
    let column = |(at, field): (usize, &std::sync::Arc<datafusion::arrow::datatypes::Field>)| {
        let is_uuid = matches!(roots[at].get_basic_info().logical_type_ref(), Some(LogicalType::Uuid));
        let of = if is_uuid { Some(DataType::Uuid) } else { type_of(field.data_type()) };
        let of = of.ok_or_else(|| {
            let (name, found) = (field.name(), field.data_type());
            unsupported(format!("column \"{name}\" of file \"{path}\", which is of Parquet's type {found},"))
        })?;
        Ok((field.name().clone(), of))
    };
    let parts = builder.metadata().row_groups().iter().flat_map(|group| group.columns());
    if let Some(way) = parts.map(|part| part.compression()).find(|way| !is_known(way)) {
        return Err(unsupported(format!("file \"{path}\", which is compressed by {way},")));
    }
    builder.schema().fields().iter().enumerate().map(column).collect()
}

fn is_known(way: &Compression) -> bool {
    use Compression::{LZ4, LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD};
    matches!(way, UNCOMPRESSED | SNAPPY | ZSTD(_) | LZ4 | LZ4_RAW)
}

/// The engine's type that holds each value of an Arrow type.
fn type_of(arrow: &ArrowType) -> Option<DataType> {
    Some(match arrow {
        ArrowType::Boolean => DataType::Bool,
        ArrowType::Int8 | ArrowType::UInt8 | ArrowType::Int16 => DataType::Int2,
        ArrowType::UInt16 | ArrowType::Int32 => DataType::Int4,
        ArrowType::UInt32 | ArrowType::Int64 => DataType::Int8,
        ArrowType::UInt64 => DataType::Numeric(Some((20, 0))),
        ArrowType::Float16 | ArrowType::Float32 => DataType::Float4,
        ArrowType::Float64 => DataType::Float8,
        ArrowType::Decimal128(precision, scale @ 0..) => DataType::Numeric(Some((*precision, *scale as u8))),
        ArrowType::Utf8 | ArrowType::LargeUtf8 => DataType::Text,
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::FixedSizeBinary(_) => DataType::Bytea,
        ArrowType::Date32 => DataType::Date,
        ArrowType::Time32(_) | ArrowType::Time64(_) => DataType::Time,
        ArrowType::Timestamp(_, None) => DataType::Timestamp,
        ArrowType::Timestamp(_, Some(_)) => DataType::Timestamptz,
        _ => return None,
    })
}

pub(super) fn read(scan: &FileScan, take: Take<'_>) -> Result<()> {
    let path = &scan.table.path;
    let builder = builder(path)?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), scan.wanted.iter().copied());
    // The reader answers the columns in the file's order.
    let mut order = scan.wanted.clone();
    order.sort_unstable();
    let rows = builder.with_projection(mask).with_batch_size(ROWS).build().map_err(|error| damaged(path, &error))?;
    for batch in rows {
        let batch = batch.map_err(|error| damaged(path, &ParquetError::from(error)))?;
        let column = |at: &usize| {
            let place = order.iter().position(|other| other == at).expect("a column that was asked for");
            let title = &scan.table.titles[*at];
            converted(batch.column(place), scan.table.types[*at])
                .map_err(|error| error.with_context(format!("file \"{path}\", column {title}")))
        };
        let arrays = scan.wanted.iter().map(column).collect::<Result<Vec<ArrayRef>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = RecordBatch::try_new_with_options(scan.schema.clone(), arrays, &options).map_err(from_arrow)?;
        if !take(batch) {
            return Ok(());
        }
    }
    Ok(())
}

/// Values as the engine has them (invariant 2).
fn converted(array: &ArrayRef, of: DataType) -> Result<ArrayRef> {
    let to = arrow_type(of);
    if array.data_type() == &to && of != DataType::Text {
        in_range(array, of)?;
        return Ok(array.clone());
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    if let ArrowType::Timestamp(TimeUnit::Millisecond, _) = array.data_type() {
        let most = i64::MAX / 1000;
        let millis = array.as_primitive::<datafusion::arrow::datatypes::TimestampMillisecondType>();
        if millis.iter().flatten().any(|value| value.unsigned_abs() > most as u64) {
            return Err(EngineError::new("22008", "timestamp out of range"));
        }
    }
    let made = cast_with_options(array, &to, &options).map_err(from_arrow)?;
    if of == DataType::Text && made.as_string::<i32>().value_data().contains(&0) {
        return Err(EngineError::new("22021", "invalid byte sequence for encoding \"UTF8\": 0x00"));
    }
    assert_eq!(made.len(), array.len(), "a value for each");
    in_range(&made, of)?;
    Ok(made)
}

/// What another program has written may be beyond what the type has: a time behind midnight, a date before the calendar
/// begins, the numbers that stand for infinity here, a digit too many.
fn in_range(made: &ArrayRef, of: DataType) -> Result<()> {
    let (is_in, state, what) = match of {
        DataType::Date => {
            let days = made.as_primitive::<Date32Type>();
            (days.iter().flatten().all(|day| DATES.contains(&day)), "22008", "date out of range")
        }
        DataType::Time => {
            let times = made.as_primitive::<Time64MicrosecondType>();
            (times.iter().flatten().all(|time| (0..=DAY_MICROS).contains(&time)), "22008", "time out of range")
        }
        DataType::Timestamp | DataType::Timestamptz => {
            let is_one = |micros: i64| micros >= FIRST_TIMESTAMP && !is_infinite(micros);
            let times = made.as_primitive::<TimestampMicrosecondType>();
            (times.iter().flatten().all(is_one), "22008", "timestamp out of range")
        }
        DataType::Numeric(Some((precision, _))) => {
            let numbers = made.as_primitive_opt::<Decimal128Type>();
            let is_in = numbers.is_none_or(|all| all.validate_decimal_precision(precision).is_ok());
            (is_in, "22003", "numeric field overflow")
        }
        _ => return Ok(()),
    };
    if is_in { Ok(()) } else { Err(EngineError::new(state, what)) }
}
