//! Values of composite types, and of arrays of them, out of JSON: what `json_populate_record` and its kind make of a
//! member.
//!
//! 1. An object's members are the attributes; one that is not there, or null, is NULL. A string is the value's text.
//!    Anything else is no row (22023).
//! 2. An array's items are read each as the array's items, a string is the array's text.
//! 3. Of a value that has no parts, a string is read as its text, anything else as it is written.
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::values::{ColumnBuilder, arrow_type, field_of, utf8};
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use terrace_engine::types::json::{self, Kind};
use terrace_engine::types::{Array, Items, Record};
use terrace_engine::{DataType, Datum, EngineError};

/// Whether a type's values are made so.
pub(crate) fn is_made(of: DataType) -> bool {
    matches!(of.item().unwrap_or(of), DataType::Composite(_))
}

/// A value of a type, of a json or a jsonb.
pub(crate) fn populated(part: Expr, to: DataType) -> Expr {
    let signature = Signature::any(1, Volatility::Stable);
    let udf = ScalarUDF::from(Populate { to, name: format!("populate {to:?}"), signature });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(udf), vec![part]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Populate {
    to: DataType,
    /// Common subexpressions are told apart by their functions' names.
    name: String,
    signature: Signature,
}

impl ScalarUDFImpl for Populate {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        Ok(arrow_type(self.to))
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(field_of(&self.name, self.to, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_columns(&args, |columns| {
            let column = &columns[0];
            let mut builder = ColumnBuilder::new(self.to, column.len());
            for row in 0..column.len() {
                let value = match text_at(column, row)? {
                    Some(text) => value_of(text, self.to).map_err(tunnel)?,
                    None => Datum::Null,
                };
                builder.push(value.as_ref());
            }
            Ok(builder.finish())
        })
    }
}

fn text_at(column: &ArrayRef, row: usize) -> Result<Option<&str>> {
    Ok(match column.data_type() {
        ArrowType::Null => None,
        _ if column.is_null(row) => None,
        ArrowType::BinaryView => Some(utf8(column.as_binary_view().value(row))),
        ArrowType::LargeBinary => Some(utf8(column.as_binary::<i64>().value(row))),
        other => return internal_err!("{other} is no json"),
    })
}

fn value_of(text: &str, to: DataType) -> terrace_engine::Result<Datum> {
    let kind = json::kind(text);
    if kind == Kind::Null {
        return Ok(Datum::Null);
    }
    match (to, to.item()) {
        (DataType::Json | DataType::Jsonb, _) => to.parse(text),
        (DataType::Composite(of), _) => match kind {
            Kind::Object => {
                let members = json::members(text)?;
                let values = of.def().attributes().map(|attribute| {
                    let found = members.iter().rev().find(|(name, _)| *name == attribute.name);
                    found.map_or(Ok(Datum::Null), |(_, text)| value_of(text, attribute.data_type))
                });
                Ok(Datum::Record(Record::new(of, &values.collect::<terrace_engine::Result<Vec<Datum>>>()?)?))
            }
            Kind::Text => string(text, to),
            Kind::Array => Err(EngineError::new("22023", "cannot call populate_composite on an array")),
            _ => Err(EngineError::new("22023", "cannot call populate_composite on a scalar")),
        },
        (DataType::Array(items), Some(item)) => match kind {
            Kind::Array => array(text, items, item),
            Kind::Text => string(text, to),
            _ => Err(EngineError::new("22P02", "expected JSON array")),
        },
        _ if kind == Kind::Text => string(text, to),
        _ => to.parse(text),
    }
}

fn array(text: &str, items: Items, item: DataType) -> terrace_engine::Result<Datum> {
    let values = json::items(text)?.into_iter().map(|text| value_of(text, item));
    Array::new(items, &values.collect::<terrace_engine::Result<Vec<Datum>>>()?).map(Datum::Array)
}

fn string(text: &str, to: DataType) -> terrace_engine::Result<Datum> {
    json::text_of(text)?.map_or(Ok(Datum::Null), |text| to.parse(&text))
}
