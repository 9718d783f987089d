//! JSON as values: how jsonb is compared. JSON of other values is in [`make`], rows of JSON's parts in [`spread`].
//!
//! 1. A key is bytes that have jsonb's order ([`json::key`]). Equal values have one key, and may have several texts.
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::values::utf8;
use datafusion::arrow::array::{ArrayRef, AsArray, BinaryArray};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use terrace_engine::EngineError;
use terrace_engine::types::json::{self, Json};

pub(crate) mod make;
pub(crate) mod populate;
pub(crate) mod spread;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Doing {
    /// The key of a jsonb.
    Key,
    /// The jsonb itself; 0A000 where another text is equal to it.
    Alone,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Compared {
    doing: Doing,
    signature: Signature,
}

/// What a jsonb compares by (invariant 1).
pub(crate) fn key(expr: Expr) -> Expr {
    call(Doing::Key, expr)
}

/// A jsonb that is equal to none with another text.
pub(crate) fn alone(expr: Expr) -> Expr {
    call(Doing::Alone, expr)
}

fn call(doing: Doing, expr: Expr) -> Expr {
    let udf = Compared { doing, signature: Signature::any(1, Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(udf)), vec![expr]))
}

/// What the values of an array compare by.
pub(crate) fn keys(array: &ArrayRef) -> Result<ArrayRef> {
    let key = |text: &[u8]| json::key(utf8(text)).map_err(tunnel);
    let keys = array.as_binary::<i64>().iter().map(|text| text.map(key).transpose());
    let keys = keys.collect::<Result<Vec<Option<Vec<u8>>>>>()?;
    Ok(Arc::new(keys.iter().map(Option::as_deref).collect::<BinaryArray>()))
}

fn check_alone(text: &[u8]) -> Result<()> {
    if Json::read(utf8(text)).map_err(tunnel)?.is_alone() {
        return Ok(());
    }
    Err(not_alone())
}

fn not_alone() -> DataFusionError {
    let message = "GROUP BY, DISTINCT and set operations of jsonb with numbers that end with zeros are not supported";
    tunnel(EngineError::unsupported(message).with_hint("Group by the text of the value: cast it to text."))
}

impl ScalarUDFImpl for Compared {
    fn name(&self) -> &str {
        match self.doing {
            Doing::Key => "jsonb_key",
            Doing::Alone => "jsonb_alone",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(match self.doing {
            Doing::Key => ArrowType::Binary,
            Doing::Alone => types[0].clone(),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_columns(&args, |columns| match self.doing {
            Doing::Key => keys(&columns[0]),
            Doing::Alone => {
                columns[0].as_binary::<i64>().iter().flatten().try_for_each(check_alone)?;
                Ok(columns[0].clone())
            }
        })
    }
}
