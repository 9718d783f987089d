//! Arrow arrays to DataRow messages, written straight into the connection's buffer.
use crate::types::{INT2VECTOR, JSONB_VERSION, OIDVECTOR, Wire, wire};
use bytes::{BufMut, BytesMut};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, StringViewArray};
use datafusion::arrow::array::{
    BinaryArray, BinaryViewArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, LargeBinaryArray, UInt32Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, FieldRef, IntervalUnit, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
    TimestampSecondType,
};
use datafusion::arrow::util::display::array_value_to_string;
use std::fmt::Write;
use terrace_engine::types::array::write_item;
use terrace_engine::types::{Decimal, EnumType, Numeric, Shape, Style, is_infinite, is_infinite_date};
use terrace_engine::{DatumRef, EngineError, Result};
use terrace_sql::{Arrays, enum_of, interval_of, is_decimal, stored_decimals};

mod interval;
pub(crate) mod numeric;
mod stored;

pub(crate) use stored::Shown;

/// Microseconds from 1970-01-01 (Unix) to 2000-01-01 (PostgreSQL's binary format).
pub(crate) const EPOCH_2000: i64 = 946_684_800_000_000;
pub(crate) const DAYS_2000: i32 = 10_957;

/// Days since 2000; what is infinite stays.
pub(crate) fn date_2000(days: i32) -> i32 {
    if is_infinite_date(days) { days } else { days.saturating_sub(DAYS_2000) }
}

/// Microseconds since 2000; what is infinite stays.
pub(crate) fn moment_2000(micros: i64) -> i64 {
    if is_infinite(micros) { micros } else { micros.saturating_sub(EPOCH_2000) }
}

/// A column of a batch, downcast once.
pub(crate) struct Column {
    values: Values,
    wire: Wire,
    binary: bool,
}

/// A value that is large, in the form in which it goes.
#[derive(Clone, Copy)]
pub(crate) enum Large<'a> {
    Bytes(&'a [u8]),
    /// As hexadecimal digits, behind `\x`; whether these are the value's first.
    Hex(&'a [u8], bool),
}

impl<'a> Large<'a> {
    pub(crate) fn length(self) -> usize {
        match self {
            Large::Bytes(bytes) => bytes.len(),
            Large::Hex(bytes, first) => bytes.len() * 2 + if first { 2 } else { 0 },
        }
    }

    /// Parts of so many bytes of the value.
    pub(crate) fn pieces(self, of: usize) -> impl Iterator<Item = Large<'a>> {
        let (bytes, hex) = match self {
            Large::Bytes(bytes) => (bytes, false),
            Large::Hex(bytes, _) => (bytes, true),
        };
        let piece = move |(n, piece)| if hex { Large::Hex(piece, n == 0) } else { Large::Bytes(piece) };
        bytes.chunks(of).enumerate().map(piece)
    }

    pub(crate) fn write(self, out: &mut BytesMut) {
        match self {
            Large::Bytes(bytes) => out.put_slice(bytes),
            Large::Hex(bytes, first) => {
                if first {
                    out.put_slice(b"\\x");
                }
                for byte in bytes {
                    out.put_slice(&[byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
                }
            }
        }
    }
}

/// Bytes from which on a value is written in pieces.
const LARGE: usize = 64 << 10;

impl Column {
    /// Bytes of a value of a type whose values may be large; of others none.
    pub(crate) fn bytes(&self, row: usize) -> usize {
        self.raw(row).map_or(0, <[u8]>::len)
    }

    fn raw(&self, row: usize) -> Option<&[u8]> {
        match &self.values {
            Values::Text(a) => a.is_valid(row).then(|| a.value(row).as_bytes()),
            Values::TextView(a) => a.is_valid(row).then(|| a.value(row).as_bytes()),
            Values::Bytea(a) => a.is_valid(row).then(|| a.value(row)),
            Values::Json(a) => a.is_valid(row).then(|| a.value(row)),
            // In binary, a byte goes before it.
            Values::Jsonb(a) => (a.is_valid(row) && !self.binary).then(|| a.value(row)),
            _ => None,
        }
    }

    /// Bytes of all values, of a type whose values may be large.
    pub(crate) fn holds(&self) -> usize {
        match &self.values {
            Values::Text(a) => a.get_buffer_memory_size(),
            Values::TextView(a) => a.get_buffer_memory_size(),
            Values::Bytea(a) => a.get_buffer_memory_size(),
            Values::Json(a) => a.get_buffer_memory_size(),
            Values::Jsonb(a) => a.get_buffer_memory_size(),
            _ => 0,
        }
    }

    /// A value that is large. (One of char(n) is not: it is padded as a whole.)
    pub(crate) fn large(&self, row: usize) -> Option<Large<'_>> {
        let bytes = self.raw(row).filter(|bytes| bytes.len() >= LARGE && self.wire.padded() == 0)?;
        let shown = matches!(self.values, Values::Bytea(_)) && !self.binary;
        match shown {
            // As a whole: what it becomes is not known before.
            true if Style::current().escaped => None,
            true => Some(Large::Hex(bytes, true)),
            false => Some(Large::Bytes(bytes)),
        }
    }

    /// Writes a value with its length before it.
    pub(crate) fn field(&self, out: &mut BytesMut, row: usize) -> Result<()> {
        field(out, self, row)
    }
}

enum Values {
    Null,
    Bool(BooleanArray),
    I16(Int16Array),
    I32(Int32Array),
    I64(Int64Array),
    U32(UInt32Array),
    F32(Float32Array),
    F64(Float64Array),
    Text(StringArray),
    TextView(StringViewArray),
    Date(Int32Array),
    /// Microseconds; whether with a zone.
    Timestamp(Int64Array, bool),
    Time(Int64Array),
    /// With the scale.
    Numeric(Decimal128Array, u8),
    /// Stored forms of plain numerics.
    Decimal(LargeBinaryArray),
    Bytea(BinaryArray),
    Uuid(FixedSizeBinaryArray),
    Json(BinaryViewArray),
    Jsonb(LargeBinaryArray),
    Interval(IntervalMonthDayNanoArray),
    /// Positions of labels.
    Enum(Int64Array, EnumType),
    Array(Arrays),
    /// As text, and its fields.
    Row(StringArray, Vec<Column>),
    /// What has no binary form here.
    Shown(ArrayRef),
}

fn internal(e: impl std::fmt::Display) -> EngineError {
    EngineError::new("XX000", e.to_string())
}

/// Prepares a batch's columns. Rare types are cast (a copy); the engine's own types are not.
pub(crate) fn columns(batch: &RecordBatch, wires: &[Wire], binary: &[bool]) -> Result<Vec<Column>> {
    assert_eq!(batch.num_columns(), wires.len(), "a batch has the columns that were described");
    let column = |((array, wire), binary): ((&ArrayRef, &Wire), &bool)| {
        Ok(Column { values: values(array)?, wire: *wire, binary: *binary })
    };
    batch.columns().iter().zip(wires).zip(binary).map(column).collect()
}

fn values(array: &ArrayRef) -> Result<Values> {
    let to = |t: &DataType| cast(array, t).map_err(|e| EngineError::new("22003", e.to_string()));
    Ok(match array.data_type() {
        DataType::Null => Values::Null,
        DataType::Boolean => Values::Bool(array.as_boolean().clone()),
        DataType::Int16 => Values::I16(array.as_primitive().clone()),
        DataType::Int8 | DataType::UInt8 => Values::I16(to(&DataType::Int16)?.as_primitive().clone()),
        DataType::Int32 => Values::I32(array.as_primitive().clone()),
        DataType::UInt16 => Values::I32(to(&DataType::Int32)?.as_primitive().clone()),
        DataType::Int64 => Values::I64(array.as_primitive().clone()),
        DataType::UInt64 => {
            let signed = to(&DataType::Int64)?;
            if signed.null_count() != array.null_count() {
                return Err(EngineError::new("22003", "bigint out of range"));
            }
            Values::I64(signed.as_primitive().clone())
        }
        DataType::UInt32 => Values::U32(array.as_primitive().clone()),
        DataType::Float32 => Values::F32(array.as_primitive().clone()),
        DataType::Float64 => Values::F64(array.as_primitive().clone()),
        DataType::Utf8 => Values::Text(array.as_string().clone()),
        DataType::Utf8View => Values::TextView(array.as_string_view().clone()),
        DataType::LargeUtf8 | DataType::Dictionary(..) => Values::Text(to(&DataType::Utf8)?.as_string().clone()),
        DataType::Date32 | DataType::Date64 => {
            Values::Date(to(&DataType::Date32)?.as_primitive::<Date32Type>().reinterpret_cast())
        }
        of @ DataType::Timestamp(..) if let Some(of) = enum_of(of) => {
            Values::Enum(array.as_primitive::<TimestampSecondType>().reinterpret_cast(), of)
        }
        DataType::Timestamp(_, zone) => {
            let micros = to(&DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?;
            Values::Timestamp(micros.as_primitive::<TimestampMicrosecondType>().reinterpret_cast(), zone.is_some())
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            Values::Time(array.as_primitive::<Time64MicrosecondType>().reinterpret_cast())
        }
        DataType::Decimal128(_, scale @ 0..) => Values::Numeric(array.as_primitive().clone(), *scale as u8),
        of if is_decimal(of) => Values::Decimal(stored_decimals(array)),
        DataType::Binary => Values::Bytea(array.as_binary().clone()),
        DataType::BinaryView => Values::Json(array.as_binary_view().clone()),
        DataType::LargeBinary => Values::Jsonb(array.as_binary().clone()),
        DataType::FixedSizeBinary(16) => Values::Uuid(array.as_fixed_size_binary().clone()),
        DataType::Interval(IntervalUnit::MonthDayNano) => Values::Interval(array.as_primitive().clone()),
        _ if let Some(arrays) = Arrays::of(array) => Values::Array(arrays),
        DataType::Struct(fields) => {
            let text = terrace_sql::row_text(array).map_err(internal)?.as_string().clone();
            let columns = array.as_struct().columns().iter().zip(fields);
            let column = |(array, field): (&ArrayRef, &FieldRef)| {
                Ok(Column { values: values(array)?, wire: wire(field), binary: true })
            };
            Values::Row(text, columns.map(column).collect::<Result<_>>()?)
        }
        _ => Values::Shown(array.clone()),
    })
}

/// Writes one DataRow.
pub(crate) fn data_row(out: &mut BytesMut, columns: &[Column], row: usize) -> Result<()> {
    let start = out.len();
    out.put_u8(b'D');
    out.put_u32(0);
    out.put_u16(columns.len() as u16);
    for column in columns {
        if let Err(e) = field(out, column, row) {
            // Nothing of a row that failed reaches the client.
            out.truncate(start);
            return Err(e);
        }
    }
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// A value with its length before it; NULL is length -1.
fn field(out: &mut BytesMut, column: &Column, row: usize) -> Result<()> {
    let start = out.len();
    out.put_i32(-1);
    let written = if column.binary { binary(out, column, row)? } else { text(out, &column.values, row, &column.wire)? };
    if written {
        pad(out, start + 4, column.wire.padded());
        let length = (out.len() - start - 4) as i32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// Writes a value's text; false (and nothing written) for NULL.
pub(crate) fn text_field(out: &mut BytesMut, column: &Column, row: usize) -> Result<bool> {
    let start = out.len();
    let written = text(out, &column.values, row, &column.wire)?;
    if written {
        pad(out, start, column.wire.padded());
    }
    Ok(written)
}

/// Adds the blanks that char(n) does not store.
fn pad(out: &mut BytesMut, start: usize, characters: usize) {
    if characters > 0 {
        // UTF-8: a byte that continues a character is none.
        let given = out[start..].iter().filter(|b| **b & 0xc0 != 0x80).count();
        out.put_bytes(b' ', characters.saturating_sub(given));
    }
}

fn uuid(bytes: &[u8]) -> u128 {
    u128::from_be_bytes(bytes.try_into().expect("FixedSizeBinary(16)"))
}

macro_rules! put {
    ($array:expr, $row:expr, |$v:ident| $write:expr) => {{
        if $array.is_null($row) {
            return Ok(false);
        }
        let $v = $array.value($row);
        $write;
    }};
}

/// Writes a value's text; false (and nothing written) for NULL.
fn text(out: &mut BytesMut, values: &Values, row: usize, wire: &Wire) -> Result<bool> {
    let full = "a buffer grows";
    match values {
        Values::Null => return Ok(false),
        Values::Bool(a) => put!(a, row, |v| out.put_u8(if v { b't' } else { b'f' })),
        Values::I16(a) => put!(a, row, |v| write!(out, "{v}").expect(full)),
        Values::I32(a) => put!(a, row, |v| write!(out, "{v}").expect(full)),
        Values::I64(a) => put!(a, row, |v| write!(out, "{v}").expect(full)),
        Values::U32(a) => put!(a, row, |v| write!(out, "{v}").expect(full)),
        Values::F32(a) => put!(a, row, |v| write!(out, "{}", DatumRef::Float4(v)).expect(full)),
        Values::F64(a) => put!(a, row, |v| write!(out, "{}", DatumRef::Float8(v)).expect(full)),
        Values::Text(a) | Values::Row(a, _) => put!(a, row, |v| out.put_slice(v.as_bytes())),
        Values::TextView(a) => put!(a, row, |v| out.put_slice(v.as_bytes())),
        Values::Date(a) => put!(a, row, |v| write!(out, "{}", DatumRef::Date(v)).expect(full)),
        Values::Timestamp(a, false) => put!(a, row, |v| write!(out, "{}", DatumRef::Timestamp(v)).expect(full)),
        Values::Timestamp(a, true) => put!(a, row, |v| write!(out, "{}", DatumRef::Timestamptz(v)).expect(full)),
        Values::Time(a) => put!(a, row, |v| write!(out, "{}", DatumRef::Time(v)).expect(full)),
        Values::Numeric(a, scale) => {
            put!(a, row, |v| write!(out, "{}", Numeric { unscaled: v, scale: *scale }).expect(full))
        }
        Values::Decimal(a) => put!(a, row, |v| write!(out, "{}", DatumRef::Decimal(v)).expect(full)),
        Values::Bytea(a) => put!(a, row, |v| write!(out, "{}", DatumRef::Bytea(v)).expect(full)),
        Values::Uuid(a) => put!(a, row, |v| write!(out, "{}", DatumRef::Uuid(uuid(v))).expect(full)),
        Values::Json(a) => put!(a, row, |v| out.put_slice(v)),
        Values::Jsonb(a) => put!(a, row, |v| out.put_slice(v)),
        Values::Interval(a) => put!(a, row, |v| write!(out, "{}", interval_of(v)).expect(full)),
        Values::Enum(a, of) => put!(a, row, |v| out.put_slice(of.shown(v).as_bytes())),
        Values::Array(a) => put!(a.lists(), row, |v| array_text(out, &v, &a.shape(row), wire)?),
        Values::Shown(a) => {
            if a.is_null(row) {
                return Ok(false);
            }
            out.put_slice(array_value_to_string(a, row).map_err(internal)?.as_bytes());
        }
    }
    Ok(true)
}

/// `{a,"b c",NULL}`; an int2vector and an oidvector are their numbers, separated by spaces.
fn array_text(out: &mut BytesMut, items: &ArrayRef, shape: &Shape, wire: &Wire) -> Result<()> {
    let (inner, own) = (values(items)?, wire.item());
    if matches!(wire.oid, INT2VECTOR | OIDVECTOR) {
        for i in 0..items.len() {
            out.put_slice(if i > 0 { b" " } else { b"" });
            text(out, &inner, i, &own)?;
        }
        return Ok(());
    }
    let mut item = BytesMut::new();
    let write = |out: &mut BytesMut, i: usize| -> Result<(), Unwritten> {
        item.clear();
        if !text(&mut item, &inner, i, &own)? {
            out.put_slice(b"NULL");
            return Ok(());
        }
        pad(&mut item, 0, own.padded());
        let shown = std::str::from_utf8(&item).map_err(|_| EngineError::internal("a value's text is not UTF-8"))?;
        Ok(write_item(out, shown)?)
    };
    shape.write_text(out, write).map_err(|Unwritten(error)| error)
}

/// Why an item was not written.
struct Unwritten(EngineError);

impl From<EngineError> for Unwritten {
    fn from(error: EngineError) -> Unwritten {
        Unwritten(error)
    }
}

impl From<std::fmt::Error> for Unwritten {
    fn from(_: std::fmt::Error) -> Unwritten {
        Unwritten(EngineError::internal("a buffer grows"))
    }
}

/// Writes a value's binary form; false (and nothing written) for NULL.
fn binary(out: &mut BytesMut, column: &Column, row: usize) -> Result<bool> {
    match &column.values {
        Values::Bool(a) => put!(a, row, |v| out.put_u8(u8::from(v))),
        Values::I16(a) => put!(a, row, |v| out.put_i16(v)),
        Values::I32(a) => put!(a, row, |v| out.put_i32(v)),
        Values::I64(a) => put!(a, row, |v| out.put_i64(v)),
        Values::U32(a) => put!(a, row, |v| out.put_u32(v)),
        Values::F32(a) => put!(a, row, |v| out.put_f32(v)),
        Values::F64(a) => put!(a, row, |v| out.put_f64(v)),
        Values::Date(a) => put!(a, row, |v| out.put_i32(date_2000(v))),
        Values::Timestamp(a, _) => put!(a, row, |v| out.put_i64(moment_2000(v))),
        Values::Time(a) => put!(a, row, |v| out.put_i64(v)),
        Values::Numeric(a, scale) => {
            put!(a, row, |v| numeric::binary(out, &Numeric { unscaled: v, scale: *scale }.into()))
        }
        Values::Decimal(a) => put!(a, row, |v| numeric::binary(out, &Decimal::decode(v))),
        Values::Bytea(a) => put!(a, row, |v| out.put_slice(v)),
        Values::Uuid(a) => put!(a, row, |v| out.put_slice(v)),
        Values::Json(a) => put!(a, row, |v| out.put_slice(v)),
        Values::Jsonb(a) => put!(a, row, |v| {
            out.put_u8(JSONB_VERSION);
            out.put_slice(v);
        }),
        Values::Interval(a) => put!(a, row, |v| interval::binary(out, interval_of(v))),
        Values::Array(a) => put!(a.lists(), row, |v| array_binary(out, &v, &a.shape(row), &column.wire)?),
        Values::Row(text, _) if text.is_null(row) => return Ok(false),
        Values::Row(_, columns) => {
            out.put_i32(columns.len() as i32);
            for column in columns {
                out.put_u32(column.wire.oid);
                field(out, column, row)?;
            }
        }
        Values::Null | Values::Text(_) | Values::TextView(_) | Values::Enum(..) => {
            return text(out, &column.values, row, &column.wire);
        }
        Values::Shown(a) if a.is_null(row) => return Ok(false),
        Values::Shown(a) => {
            let mut e = EngineError::new("0A000", format!("no binary format for columns of type {}", a.data_type()));
            e.hint = Some("Ask for the column in text format, or cast it.".to_owned());
            return Err(e);
        }
    }
    Ok(true)
}

fn array_binary(out: &mut BytesMut, items: &ArrayRef, shape: &Shape, wire: &Wire) -> Result<()> {
    let wire = wire.item();
    array_head(out, wire.oid, shape, items.null_count() > 0);
    let column = Column { values: values(items)?, wire, binary: true };
    (0..items.len()).try_for_each(|i| self::field(out, &column, i))
}

/// What the binary form of an array begins with.
fn array_head(out: &mut BytesMut, item: u32, shape: &Shape, nulls: bool) {
    out.put_i32(shape.len() as i32);
    out.put_i32(i32::from(nulls));
    out.put_u32(item);
    for dimension in shape.iter() {
        out.put_i32(dimension.length);
        out.put_i32(dimension.first);
    }
}

#[cfg(test)]
mod tests;
