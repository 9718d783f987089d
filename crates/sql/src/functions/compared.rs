//! What the values of a type are compared by. Where that is not themselves, and why, is said in
//! `crate::plan::comparable`, which puts it into plans.
use crate::error::tunnel;
use crate::functions::arrays::keys as arrays;
use crate::functions::{interval, json, rows};
use crate::values::arrays::{is_array, items_of};
use crate::values::{arrow_type, decimal, engine_type};
use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::kernels::arity;
use datafusion::arrow::datatypes::{DataType as ArrowType, Float32Type, Float64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{Alias, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};
use terrace_engine::{DataType, EngineError};

/// How values of a type are compared.
pub(crate) enum By {
    Themselves,
    Canonical,
    /// By a key; of equal values that become one, the first stands for them.
    Key,
    /// By a key, and as itself where no other text equals it (invariant 1 of [`crate::functions::json`]).
    Json,
    /// Not at all (invariant 4).
    Nothing,
    /// Not at all (invariant 1 of [`crate::functions::json`]).
    Never,
}

pub(crate) fn by(data_type: &ArrowType) -> By {
    match data_type {
        ArrowType::Float32 | ArrowType::Float64 => By::Canonical,
        ArrowType::Interval(_) => By::Key,
        of if decimal::is_decimal(of) => By::Key,
        ArrowType::LargeBinary => By::Json,
        ArrowType::BinaryView => By::Never,
        of if is_array(of) && engine_type(of).is_some() => By::Key,
        of if let Some(item) = items_of(of) => match by(item.data_type()) {
            By::Themselves => By::Themselves,
            _ => By::Nothing,
        },
        ArrowType::Struct(_) => By::Key,
        _ => By::Themselves,
    }
}

/// Whether two equal values may be kept as different bytes. Floats that stand alone are made one where it matters.
pub(crate) fn is_kept_in_many_ways(of: &ArrowType) -> bool {
    let within_others = |of: &ArrowType| of.is_floating() || is_kept_in_many_ways(of);
    match of {
        ArrowType::Interval(_) | ArrowType::LargeBinary => true,
        of if decimal::is_decimal(of) => true,
        of if is_array(of) => match engine_type(of).and_then(DataType::item) {
            Some(item) => within_others(&arrow_type(item)),
            None => true,
        },
        ArrowType::Struct(fields) => fields.iter().any(|field| within_others(field.data_type())),
        _ => false,
    }
}

pub(crate) fn not_compared() -> DataFusionError {
    tunnel(EngineError::unsupported("comparisons of arrays of such items are not supported"))
}

/// Of type json.
pub(crate) fn no_equality() -> DataFusionError {
    tunnel(EngineError::new("42883", "could not identify an equality operator for type json"))
}

/// Replaces an expression of this type by the one that it is compared by. Answers whether the two differ.
pub(crate) fn wrap_of(expr: &mut Expr, of: &ArrowType) -> Result<bool> {
    let wrapping: fn(Expr) -> Expr = match by(of) {
        By::Themselves => return Ok(false),
        By::Canonical => canonical,
        By::Key => key_of(of),
        By::Json => json::key,
        By::Nothing => return Err(not_compared()),
        By::Never => return Err(no_equality()),
    };
    let inner = match expr {
        Expr::Alias(Alias { expr, .. }) => expr.as_mut(),
        other => other,
    };
    *inner = wrapping(std::mem::take(inner));
    Ok(true)
}

/// What makes the key of a value of this type.
pub(crate) fn key_of(of: &ArrowType) -> fn(Expr) -> Expr {
    match of {
        of if is_array(of) => arrays::key,
        ArrowType::LargeList(_) => decimal::key,
        ArrowType::Struct(_) => rows::key,
        _ => interval::key,
    }
}

/// The array that the values of an array are compared by.
pub(crate) fn compared_by(array: &ArrayRef) -> Result<ArrayRef> {
    match by(array.data_type()) {
        By::Themselves => Ok(array.clone()),
        By::Canonical => Ok(canonical_array(array)),
        By::Key if is_array(array.data_type()) => arrays::keys(array),
        By::Key if matches!(array.data_type(), ArrowType::Struct(_)) => rows::keys(array),
        By::Key if decimal::is_decimal(array.data_type()) => Ok(decimal::keys(array)),
        By::Key => interval::keys(array),
        By::Json => json::keys(array),
        By::Nothing => Err(not_compared()),
        By::Never => Err(no_equality()),
    }
}

static CANONICAL: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(Canonical { signature: Signature::any(1, Volatility::Immutable) })));

/// A float that compares as PostgreSQL's do.
pub(crate) fn canonical(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(CANONICAL.clone(), vec![expr]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Canonical {
    signature: Signature,
}

impl ScalarUDFImpl for Canonical {
    fn name(&self) -> &str {
        "canonical"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &args.args[0] {
            ColumnarValue::Scalar(ScalarValue::Float64(v)) => {
                ColumnarValue::Scalar(ScalarValue::Float64(v.map(double)))
            }
            ColumnarValue::Scalar(ScalarValue::Float32(v)) => {
                ColumnarValue::Scalar(ScalarValue::Float32(v.map(single)))
            }
            ColumnarValue::Scalar(other) => ColumnarValue::Scalar(other.clone()),
            ColumnarValue::Array(array) => ColumnarValue::Array(canonical_array(array)),
        })
    }
}

fn canonical_array(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        ArrowType::Float64 => {
            let array: PrimitiveArray<Float64Type> = arity::unary(array.as_primitive::<Float64Type>(), double);
            Arc::new(array)
        }
        ArrowType::Float32 => {
            let array: PrimitiveArray<Float32Type> = arity::unary(array.as_primitive::<Float32Type>(), single);
            Arc::new(array)
        }
        _ => array.clone(),
    }
}

/// Adding 0 leaves everything but -0 as it is.
fn double(v: f64) -> f64 {
    if v.is_nan() { f64::NAN } else { v + 0.0 }
}

fn single(v: f32) -> f32 {
    if v.is_nan() { f32::NAN } else { v + 0.0 }
}
