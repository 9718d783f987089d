//! `to_char(timestamp | date | integer | numeric, text)` with PostgreSQL's patterns.
//!
//! 1. A pattern is read whole before anything is written: one with a part that is not done here is refused (0A000),
//!    never copied to the answer or guessed.
//! 2. Names of months and days are English, as with PostgreSQL's locale C.
//!
//! Source: PostgreSQL 15 documentation, "Data Type Formatting Functions" (9.8).
pub(crate) mod number;
mod time;

use crate::error::{tunnel, unsupported};
use crate::functions::arithmetic::is_number;
use crate::functions::builtin::type_name;
use crate::functions::convert::{micros_of, moments_of};
use crate::values::decimal::check_of;
use crate::values::{array_datum, engine_array, engine_type, enum_of, is_timestamp};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use number::Given;
use std::collections::BTreeMap;
use terrace_engine::types::{Decimal, Zone, is_infinite};
use terrace_engine::{Datum, EngineError};

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToChar {
    signature: Signature,
}

pub(crate) fn function() -> ScalarUDF {
    ScalarUDF::from(ToChar { signature: Signature::any(2, Volatility::Immutable) })
}

/// `pattern` has a part that is not done.
fn refused(part: &str, pattern: &str) -> EngineError {
    unsupported(format!("\"{part}\" in the pattern \"{pattern}\" of to_char"))
}

impl ScalarUDFImpl for ToChar {
    fn name(&self) -> &'static str {
        "to_char"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        use ArrowType::*;
        if let Some(of) = types.iter().find(|of| enum_of(of).is_some()) {
            let message = format!("function to_char does not exist with an argument of type {}", type_name(of));
            return Err(tunnel(EngineError::new("42883", message)));
        }
        match &types[0] {
            Date32 | Null => Ok(Utf8),
            of if is_number(of) => Ok(Utf8),
            of if is_timestamp(of) => Ok(Utf8),
            Interval(_) => Err(tunnel(unsupported("to_char of an interval"))),
            other => {
                let given = engine_type(other).map_or_else(|| other.to_string(), |t| t.base_name().to_owned());
                Err(tunnel(EngineError::new("42883", format!("function to_char({given}, unknown) does not exist"))))
            }
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if scalar { 1 } else { args.number_rows };
        let (values, patterns) = (args.args[0].to_array(rows)?, args.args[1].to_array(rows)?);
        let patterns = datafusion::arrow::compute::cast(&patterns, &ArrowType::Utf8)?;
        let patterns = patterns.as_string::<i32>();
        let result = match values.data_type() {
            ArrowType::Date32 | ArrowType::Timestamp(..) => times(&values, patterns)?,
            ArrowType::Null => StringArray::new_null(rows),
            _ => numbers(&values, patterns)?,
        };
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(std::sync::Arc::new(result)))
    }
}

fn times(values: &ArrayRef, patterns: &StringArray) -> Result<StringArray> {
    let zone = Zone::current();
    // A date is the moment at which it begins in the session's zone.
    let with_zone = matches!(values.data_type(), ArrowType::Date32 | ArrowType::Timestamp(_, Some(_)));
    let micros = if with_zone { moments_of(values)? } else { micros_of(values)? };
    let mut read: BTreeMap<&str, time::Pattern> = BTreeMap::new();
    let mut out = Vec::with_capacity(values.len());
    for (micros, pattern) in micros.iter().zip(patterns.iter()) {
        let (Some(micros), Some(pattern)) = (micros, pattern) else {
            out.push(None);
            continue;
        };
        if !read.contains_key(pattern) {
            read.insert(pattern, time::Pattern::read(pattern).map_err(tunnel)?);
        }
        if is_infinite(micros) {
            out.push(None);
            continue;
        }
        let (local, offset) = match with_zone {
            true => (zone.local(micros), zone.offset_at(micros)),
            false => (micros, 0),
        };
        out.push(Some(read[pattern].write(local, offset.into())));
    }
    Ok(StringArray::from(out))
}

fn numbers(values: &ArrayRef, patterns: &StringArray) -> Result<StringArray> {
    let values = engine_array(values).map_err(tunnel)?;
    let mut read: BTreeMap<&str, number::Pattern> = BTreeMap::new();
    let (mut out, check) = (Vec::with_capacity(values.len()), check_of(&values));
    for (row, pattern) in patterns.iter().enumerate() {
        check().map_err(tunnel)?;
        let number = match array_datum(&values, row) {
            Datum::Int2(n) => Some(Given::Whole(n.into())),
            Datum::Int4(n) => Some(Given::Whole(n.into())),
            Datum::Int8(n) => Some(Given::Whole(n)),
            Datum::Numeric(n) => Some(Given::Exact(n.into())),
            Datum::Decimal(n) => Some(Given::Exact(Decimal::decode(&n))),
            Datum::Float4(n) => Some(Given::Float(n.into(), 6)),
            Datum::Float8(n) => Some(Given::Float(n, 15)),
            _ => None,
        };
        let (Some(number), Some(pattern)) = (number, pattern) else {
            out.push(None);
            continue;
        };
        if !read.contains_key(pattern) {
            read.insert(pattern, number::Pattern::read(pattern).map_err(tunnel)?);
        }
        out.push(Some(read[pattern].write(number).map_err(tunnel)?));
    }
    Ok(StringArray::from(out))
}

#[cfg(test)]
mod tests;
