//! `regexp_matches`: of each match of a regular expression, an array of what its groups took.
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::functions::builtin;
use crate::values::{ColumnBuilder, array_datum, engine_array, field_of};
use datafusion::arrow::array::{Array, ArrayRef, ListArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use terrace_engine::types::{Array as Items, Items as Of};
use terrace_engine::{DataType, Datum, EngineError};

/// A list of the matches, of texts: the text, the pattern, and flags.
pub(crate) fn call(args: Vec<Expr>) -> Expr {
    let matches = Matches { signature: Signature::any(args.len(), Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(matches)), args))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Matches {
    signature: Signature,
}

fn array_of_texts() -> DataType {
    DataType::Text.array().expect("a text is no array")
}

fn item() -> FieldRef {
    Arc::new(field_of(Field::LIST_FIELD_DEFAULT_NAME, array_of_texts(), true))
}

fn compute(columns: &[ArrayRef]) -> terrace_engine::Result<ArrayRef> {
    let columns = columns.iter().map(engine_array).collect::<terrace_engine::Result<Vec<ArrayRef>>>()?;
    let rows = columns.first().map_or(1, |column| column.len());
    let items = Of::of(DataType::Text).ok_or_else(|| EngineError::internal("there are arrays of texts"))?;
    let (mut builder, mut lengths) = (ColumnBuilder::new(array_of_texts(), rows), Vec::with_capacity(rows));
    for row in 0..rows {
        let values: Vec<Datum> = columns.iter().map(|column| array_datum(column, row)).collect();
        let found = match values.contains(&Datum::Null) {
            true => vec![],
            false => builtin::matches(&values)?,
        };
        lengths.push(found.len());
        for groups in found {
            let groups: Vec<Datum> = groups.into_iter().map(|group| group.map_or(Datum::Null, Datum::text)).collect();
            builder.push(Datum::Array(Items::new(items, &groups)?).as_ref());
        }
    }
    Ok(Arc::new(ListArray::new(item(), OffsetBuffer::from_lengths(lengths), builder.finish(), None)))
}

impl ScalarUDFImpl for Matches {
    fn name(&self) -> &str {
        "regexp_matches"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::List(item()))
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), ArrowType::List(item()), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_columns(&args, |columns| compute(columns).map_err(tunnel))
    }
}
