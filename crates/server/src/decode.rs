//! Parameters of Bind to values.
use crate::encode::{DAYS_2000, EPOCH_2000};
use crate::types::{BPCHAR, JSONB, JSONB_VERSION, OID};
use bytes::{Buf, Bytes};
use terrace_engine::types::array::MOST_DIMENSIONS;
use terrace_engine::types::{
    CompositeType, DATES, DAY_MICROS, Dimension, FIRST_TIMESTAMP, Interval, Record, Shape, is_infinite,
    is_infinite_date,
};
use terrace_engine::{DataType, Datum, EngineError, Result};
use terrace_sql::pgcatalog::{data_type_of_oid, item_oid, oid_of_text};

/// Reads one parameter. `oid`: the type the client sends it as; `data_type`: the type the statement takes it as.
pub(crate) fn parameter(
    value: Option<&Bytes>,
    binary: bool,
    oid: u32,
    data_type: DataType,
    number: usize,
) -> Result<Datum> {
    let Some(bytes) = value else { return Ok(Datum::Null) };
    if let DataType::Composite(of) = data_type
        && binary
        && data_type.pg_oid() == oid
    {
        return record(bytes.clone(), of, number);
    }
    if !binary || is_label(oid, data_type) {
        let text = std::str::from_utf8(bytes).map_err(|_| EngineError::not_utf8(bytes))?;
        // Blanks at the end of a char(n) mean nothing.
        let text = if oid == BPCHAR { text.trim_end_matches(' ') } else { text };
        if oid == OID {
            return integer(oid_of_text(text)?.into(), data_type);
        }
        return data_type.parse(text);
    }
    let wrong = || EngineError::new("22P03", format!("incorrect binary data format in bind parameter {number}"));
    let mut b = bytes.clone();
    let datum = match (oid, b.len()) {
        (16, 1) => Datum::Bool(b.get_u8() != 0),
        (21, 2) => integer(b.get_i16().into(), data_type)?,
        (23, 4) => integer(b.get_i32().into(), data_type)?,
        (26, 4) => integer(b.get_u32().into(), data_type)?,
        (20, 8) => integer(b.get_i64(), data_type)?,
        (700, 4) if data_type == DataType::Float4 => Datum::Float4(b.get_f32()),
        (700, 4) => Datum::Float8(b.get_f32().into()),
        (701, 8) => Datum::Float8(b.get_f64()),
        (array, _) if let Some(item) = items(array, data_type) => {
            let text = self::array(b, item, number)?.ok_or_else(wrong)?;
            data_type.parse(&text)?
        }
        (17, _) => Datum::Bytea(b.to_vec().into()),
        (1082, 4) => Datum::Date(date(b.get_i32())?),
        (1083, 8) => match b.get_i64() {
            micros @ 0..=DAY_MICROS => Datum::Time(micros),
            _ => return Err(EngineError::new("22008", "time out of range")),
        },
        (1186, 16) => {
            let (micros, days, months) = (b.get_i64(), b.get_i32(), b.get_i32());
            Datum::Interval(Interval::new(months, days, micros))
        }
        (2950, 16) => Datum::Uuid(b.get_u128()),
        (1700, _) => data_type.parse(&crate::encode::numeric::read(&b).ok_or_else(wrong)?)?,
        (1114 | 1184, 8) => {
            let micros = moment(b.get_i64())?;
            if data_type == DataType::Timestamptz { Datum::Timestamptz(micros) } else { Datum::Timestamp(micros) }
        }
        (18 | 19 | 25 | 114 | 705 | 1042 | 1043, _) => return parameter(value, false, oid, data_type, number),
        (JSONB, 1..) => match b.get_u8() {
            JSONB_VERSION => return parameter(Some(&b), false, oid, data_type, number),
            other => return Err(EngineError::new("XX000", format!("unsupported jsonb version number {other}"))),
        },
        (16 | 20 | 21 | 23 | 26 | 700 | 701 | 1082 | 1083 | 1114 | 1184 | 1186 | 2950 | JSONB, _) => {
            return Err(wrong());
        }
        _ => {
            let message = format!("binary parameters of the type with OID {oid} are not supported");
            return Err(EngineError::new("0A000", message));
        }
    };
    Ok(datum)
}

/// Whether a value is a label of an enum: it is its text in both formats.
fn is_label(oid: u32, data_type: DataType) -> bool {
    matches!(data_type, DataType::Enum(_)) && data_type.pg_oid() == oid
}

/// Reads a field of COPY's binary format.
pub(crate) fn field(bytes: &[u8], data_type: DataType) -> Result<Datum> {
    let oid = data_type.pg_oid();
    // The forms of these have one length each.
    let length = match oid {
        16 => Some(1),
        21 => Some(2),
        23 | 700 | 1082 => Some(4),
        20 | 701 | 1114 | 1184 => Some(8),
        2950 => Some(16),
        _ => None,
    };
    if length.is_some_and(|length| bytes.len() < length) {
        return Err(EngineError::new("08P01", "insufficient data left in message"));
    }
    let value = parameter(Some(&Bytes::copy_from_slice(bytes)), true, oid, data_type, 0);
    value.map_err(|error| match error.state.0 {
        "22P03" => EngineError::new("22P03", "incorrect binary data format"),
        _ => error,
    })
}

/// Days since 2000 as days since 1970; what is infinite stays.
fn date(days: i32) -> Result<i32> {
    if is_infinite_date(days) {
        return Ok(days);
    }
    let days = days.checked_add(DAYS_2000).filter(|days| DATES.contains(days));
    days.ok_or_else(|| EngineError::new("22008", "date out of range"))
}

/// Microseconds since 2000 as those since 1970; what is infinite stays.
fn moment(micros: i64) -> Result<i64> {
    if is_infinite(micros) {
        return Ok(micros);
    }
    let micros = micros.checked_add(EPOCH_2000).filter(|v| *v >= FIRST_TIMESTAMP && !is_infinite(*v));
    micros.ok_or_else(|| EngineError::new("22008", "timestamp out of range"))
}

/// The type of the items of an array type, and its oid. `taken`: the type that the statement takes.
fn items(array: u32, taken: DataType) -> Option<(u32, DataType)> {
    match taken.item() {
        Some(item) if item.own().is_some() && taken.pg_oid() == array => Some((item.pg_oid(), item)),
        _ => item_oid(array).and_then(|item| Some((item, data_type_of_oid(item)?))),
    }
}

/// The text of a binary array; `None` where it is none. `oid`: of its items' type.
fn array(mut bytes: Bytes, (oid, data_type): (u32, DataType), number: usize) -> Result<Option<String>> {
    let Some(shape) = shape(&mut bytes, oid)? else { return Ok(None) };
    let mut text = String::new();
    let item = |text: &mut String, _: usize| -> Result<(), Unread> {
        let length = bytes.try_get_i32().map_err(|_| Unread(None))?;
        if length == -1 {
            text.push_str("NULL");
            return Ok(());
        }
        let length = usize::try_from(length).ok().filter(|length| *length <= bytes.remaining()).ok_or(Unread(None))?;
        let item =
            parameter(Some(&bytes.split_to(length)), true, oid, data_type, number).map_err(|e| Unread(Some(e)))?;
        text.push('"');
        text.push_str(&item.to_string().replace('\\', "\\\\").replace('"', "\\\""));
        text.push('"');
        Ok(())
    };
    match shape.write_text(&mut text, item) {
        Ok(()) => Ok(bytes.is_empty().then_some(text)),
        Err(Unread(Some(error))) => Err(error),
        Err(Unread(None)) => Ok(None),
    }
}

/// Why an item was not read; `None`: it is no item.
struct Unread(Option<EngineError>);

impl From<std::fmt::Error> for Unread {
    fn from(_: std::fmt::Error) -> Unread {
        Unread(None)
    }
}

/// What the binary form of an array begins with; `None`: it does not.
fn shape(bytes: &mut Bytes, oid: u32) -> Result<Option<Shape>> {
    let Ok(count) = bytes.try_get_i32() else { return Ok(None) };
    // Whether there are NULLs, and the type again.
    if bytes.try_get_i32().is_err() || bytes.try_get_u32().ok() != Some(oid) {
        return Ok(None);
    }
    let Ok(count) = usize::try_from(count) else {
        return Err(EngineError::new("22P03", format!("invalid number of dimensions: {count}")));
    };
    if count > MOST_DIMENSIONS {
        return Err(Shape::too_many(count));
    }
    let mut dimensions = vec![];
    for _ in 0..count {
        let (Ok(length), Ok(first)) = (bytes.try_get_i32(), bytes.try_get_i32()) else { return Ok(None) };
        dimensions.push(Dimension { length, first });
    }
    let made = Shape::new(&dimensions)?;
    // Each item has its length before it: what is shorter is not made.
    Ok(Some(made).filter(|made| made.items() <= bytes.remaining() / 4))
}

/// A row in binary: how many fields, and of each the type's oid and the value with its length.
fn record(mut bytes: Bytes, of: CompositeType, number: usize) -> Result<Datum> {
    let short = || EngineError::new("08P01", "insufficient data left in message");
    let wanted: Vec<_> = of.def().attributes().collect();
    let count = bytes.try_get_i32().map_err(|_| short())?;
    if usize::try_from(count) != Ok(wanted.len()) {
        let message = format!("wrong number of columns: {count}, expected {}", wanted.len());
        return Err(EngineError::new("42804", message));
    }
    let mut values = vec![];
    for (at, attribute) in wanted.iter().enumerate() {
        let (oid, expected) = (bytes.try_get_u32().map_err(|_| short())?, attribute.data_type.pg_oid());
        if oid != expected {
            let message =
                format!("binary data has type {oid} instead of expected {expected} in record column {}", at + 1);
            return Err(EngineError::new("42804", message));
        }
        let length = bytes.try_get_i32().map_err(|_| short())?;
        if length == -1 {
            values.push(Datum::Null);
            continue;
        }
        let length = usize::try_from(length).ok().filter(|length| *length <= bytes.remaining()).ok_or_else(short)?;
        values.push(parameter(Some(&bytes.split_to(length)), true, oid, attribute.data_type, number)?);
    }
    match bytes.is_empty() {
        true => Ok(Datum::Record(Record::new(of, &values)?)),
        false => Err(EngineError::new("22P03", format!("incorrect binary data format in bind parameter {number}"))),
    }
}

fn integer(value: i64, data_type: DataType) -> Result<Datum> {
    Ok(match data_type {
        DataType::Int2 => {
            let narrow = i16::try_from(value).map_err(|_| EngineError::new("22003", "smallint out of range"))?;
            Datum::Int2(narrow)
        }
        DataType::Int4 => {
            let narrow = i32::try_from(value).map_err(|_| EngineError::new("22003", "integer out of range"))?;
            Datum::Int4(narrow)
        }
        DataType::Float8 => Datum::Float8(value as f64),
        // An oid that the statement casts from text.
        text if text.is_text() => Datum::text(value.to_string()),
        _ => Datum::Int8(value),
    })
}

#[cfg(test)]
mod tests;
