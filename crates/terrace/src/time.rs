//! Points in time as text, in UTC.

use terrace_engine::{DataType, Datum, EngineError};

/// Microseconds since 1970 of `YYYY-MM-DD HH:MM:SS[.ffffff]`, as SQL's timestamp reads it (22007 where it is none).
pub(crate) fn parse_micros(text: &str) -> Result<i64, EngineError> {
    match DataType::Timestamp.parse(text.trim_end_matches('Z'))? {
        Datum::Timestamp(micros) => Ok(micros),
        _ => Err(EngineError::new("22007", format!("{text} is no timestamp"))),
    }
}

pub(crate) fn format_micros(micros: i64) -> String {
    Datum::Timestamp(micros).to_string()
}
