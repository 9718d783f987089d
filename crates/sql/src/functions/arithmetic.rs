//! Arithmetic as PostgreSQL has it: integers keep their type and are checked, floats that leave their range are 22003,
//! a division by zero is 22012, numerics are exact.
//!
//! 1. Both arguments have been made of one type before they are computed with, except that numerics keep their own
//!    precision and scale. While a query is planned they may still be of two: the result's type is told all the same.
//! 2. Sums, products and remainders of two numeric(p, s) are numeric(p, s) again where 38 digits hold every one of
//!    them: their scale is PostgreSQL's then (the larger one; of a product the sum). All else of numerics is plain.
use crate::error::tunnel;
use crate::functions::convert::convert_array;
use crate::functions::nulls;
use crate::values::arrow_type;
use crate::values::decimal::{collected, decimals, is_decimal};
use datafusion::arrow::array::PrimitiveArray;
use datafusion::arrow::array::{Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, Decimal128Array};
use datafusion::arrow::compute::kernels::arity;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, i256,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};
use terrace_engine::EngineError;
use terrace_engine::types::{Decimal, MAX_PRECISION};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Function {
    pub(crate) fn of(op: Operator) -> Option<Function> {
        Some(match op {
            Operator::Plus => Function::Add,
            Operator::Minus => Function::Subtract,
            Operator::Multiply => Function::Multiply,
            Operator::Divide => Function::Divide,
            Operator::Modulo => Function::Modulo,
            _ => return None,
        })
    }

    /// That a call of a function here is of.
    pub(crate) fn named(name: &str) -> Option<Function> {
        use Function::{Add, Divide, Modulo, Multiply, Subtract};
        [Add, Subtract, Multiply, Divide, Modulo].into_iter().find(|function| function.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Function::Add => "checked_add",
            Function::Subtract => "checked_subtract",
            Function::Multiply => "checked_multiply",
            Function::Divide => "checked_divide",
            Function::Modulo => "checked_modulo",
        }
    }

    pub(crate) fn call(self, left: Expr, right: Expr) -> Expr {
        Expr::ScalarFunction(ScalarFunction::new_udf(FUNCTIONS[self as usize].clone(), vec![left, right]))
    }
}

/// Whether values of the type are computed with here.
pub(crate) fn is_number(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, Int16 | Int32 | Int64 | Float32 | Float64 | Decimal128(_, 0..)) || is_decimal(data_type)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    function: Function,
    signature: Signature,
}

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 5]> = LazyLock::new(|| {
    [Function::Add, Function::Subtract, Function::Multiply, Function::Divide, Function::Modulo].map(|function| {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Checked { function, signature }))
    })
});

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(result_type(self.function, &types[0], &types[1]))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types = [args.arg_fields[0].data_type(), args.arg_fields[1].data_type()];
        let nullable = args.arg_fields.iter().any(|f| f.is_nullable());
        Ok(Arc::new(Field::new(self.name(), result_type(self.function, types[0], types[1]), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else { return internal_err!("{} takes two arguments", self.name()) };
        // A NULL of no type: DataFusion's optimizer asks what a condition makes of NULLs.
        if args.args.iter().any(|a| a.data_type() == DataType::Null) {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(args.return_field.data_type())?));
        }
        let scalar = matches!((left, right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if scalar { 1 } else { args.number_rows };
        let result = compute(self.function, left, right, rows)?;
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if !nulls::decide(&args)? {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let types = args.iter().map(|arg| info.get_data_type(arg)).collect::<Result<Vec<DataType>>>()?;
        let null = ScalarValue::try_from(&self.return_type(&types)?)?;
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(null, None)))
    }
}

/// The type that two types of numbers become: of integers and floats the wider, numeric over integers, double precision
/// over whatever else a float stands beside.
pub(crate) fn common(left: &DataType, right: &DataType) -> DataType {
    use DataType::{Decimal128, Float32, Float64, Int16, Int32, Int64};
    match (left, right) {
        (a, b) if a == b => a.clone(),
        (Float64 | Float32, _) | (_, Float64 | Float32) => Float64,
        (Decimal128(..), _) | (_, Decimal128(..)) => united([left, right].into_iter()),
        (a, b) if is_decimal(a) || is_decimal(b) => arrow_type(NUMERIC),
        (Int64, _) | (_, Int64) => Int64,
        (Int32, _) | (_, Int32) => Int32,
        _ => Int16,
    }
}

const NUMERIC: terrace_engine::DataType = terrace_engine::DataType::Numeric(None);

/// The type of numerics and integers that become one column: each keeps its scale, so those of several are plain.
pub(crate) fn united<'t>(types: impl Iterator<Item = &'t DataType> + Clone) -> DataType {
    let mut digits = types.map(digits);
    let Some(Some((precision, scale))) = digits.next() else { return arrow_type(NUMERIC) };
    let before = digits.try_fold(precision as i8 - scale, |before, next| {
        let (precision, own) = next.filter(|(_, own)| *own == scale)?;
        Some(before.max(precision as i8 - own))
    });
    match before {
        Some(before) if before + scale <= MAX_PRECISION as i8 => {
            DataType::Decimal128((before + scale).max(1) as u8, scale)
        }
        _ => arrow_type(NUMERIC),
    }
}

/// Whether two exact numbers are compared as plain numerics: no numeric(p, s) holds both.
pub(crate) fn compared_as_plain<'t>(types: impl Iterator<Item = &'t DataType>) -> bool {
    let (mut before, mut scale, mut decimals) = (0, 0, false);
    for of in types {
        let Some((precision, own)) = digits(of) else { return true };
        before = before.max(precision as i8 - own);
        scale = scale.max(own);
        decimals |= of.is_decimal();
    }
    decimals && before + scale > MAX_PRECISION as i8
}

/// An exact number's precision and scale.
pub(crate) fn digits(number: &DataType) -> Option<(u8, i8)> {
    match number {
        DataType::Int16 => Some((5, 0)),
        DataType::Int32 => Some((10, 0)),
        DataType::Int64 => Some((19, 0)),
        DataType::Decimal128(precision, scale) => Some((*precision, *scale)),
        _ => None,
    }
}

fn result_type(function: Function, left: &DataType, right: &DataType) -> DataType {
    let exact = match left.is_decimal() || right.is_decimal() {
        true if function != Function::Divide => digits(left).zip(digits(right)),
        true if !left.is_floating() && !right.is_floating() => return arrow_type(NUMERIC),
        _ => None,
    };
    let Some(((p1, s1), (p2, s2))) = exact else {
        return match (left, right) {
            (DataType::Null, other) | (other, DataType::Null) => other.clone(),
            (left, right) => common(left, right),
        };
    };
    let (p1, s1, p2, s2) = (i32::from(p1), i32::from(s1), i32::from(p2), i32::from(s2));
    let (before, scale) = match function {
        Function::Add | Function::Subtract => ((p1 - s1).max(p2 - s2) + 1, s1.max(s2)),
        Function::Multiply => (p1 - s1 + p2 - s2, s1 + s2),
        Function::Divide | Function::Modulo => ((p1 - s1).max(p2 - s2), s1.max(s2)),
    };
    match u8::try_from((before + scale).max(1)) {
        Ok(precision @ ..=MAX_PRECISION) => DataType::Decimal128(precision, scale as i8),
        _ => arrow_type(NUMERIC),
    }
}

fn external(error: EngineError) -> ArrowError {
    ArrowError::ExternalError(Box::new(error))
}

pub(crate) fn division_by_zero() -> EngineError {
    EngineError::new("22012", "division by zero")
}

fn compute(function: Function, left: &ColumnarValue, right: &ColumnarValue, rows: usize) -> Result<ArrayRef> {
    macro_rules! integers {
        ($arrow:ty, $name:literal) => {
            apply::<$arrow>(left, right, rows, |a, b| {
                if b == 0 && matches!(function, Function::Divide | Function::Modulo) {
                    return Err(external(division_by_zero()));
                }
                let result = match function {
                    Function::Add => a.checked_add(b),
                    Function::Subtract => a.checked_sub(b),
                    Function::Multiply => a.checked_mul(b),
                    Function::Divide => a.checked_div(b),
                    Function::Modulo => Some(a.wrapping_rem(b)),
                };
                result.ok_or_else(|| external(EngineError::out_of_range($name)))
            })
        };
    }
    match (left.data_type(), right.data_type()) {
        (DataType::Int16, DataType::Int16) => integers!(Int16Type, "smallint"),
        (DataType::Int32, DataType::Int32) => integers!(Int32Type, "integer"),
        (DataType::Int64, DataType::Int64) => integers!(Int64Type, "bigint"),
        (DataType::Float64, DataType::Float64) => {
            apply::<Float64Type>(left, right, rows, |a, b| float(function, a, b).map_err(external))
        }
        (DataType::Float32, DataType::Float32) => apply::<Float32Type>(left, right, rows, |a, b| {
            let wide = float(function, a.into(), b.into()).map_err(external)?;
            let narrow = wide as f32;
            let vanishes = narrow == 0.0 && wide != 0.0;
            float_result(narrow.into(), wide.is_infinite(), vanishes).map(|_| narrow).map_err(external)
        }),
        (DataType::Decimal128(_, s1), DataType::Decimal128(_, s2))
            if let DataType::Decimal128(precision, scale) =
                result_type(function, &left.data_type(), &right.data_type()) =>
        {
            let exact = Exact { function, left: s1 as u8, right: s2 as u8, precision };
            let array = apply::<Decimal128Type>(left, right, rows, |a, b| exact.compute(a, b).map_err(external))?;
            let array: &Decimal128Array = array.as_primitive();
            Ok(Arc::new(array.clone().with_precision_and_scale(precision, scale)?))
        }
        (lt, rt) if is_number(&lt) && is_number(&rt) => plain(function, &left.to_array(rows)?, &right.to_array(rows)?),
        (left, right) => internal_err!("{function:?} of {left} and {right}"),
    }
}

/// Of plain numerics, or what becomes such.
fn plain(function: Function, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
    let [left, right] = [left, right].map(|side| convert_array(side, NUMERIC));
    let (left, right) = (left?, right?);
    let compute = match function {
        Function::Add => Decimal::add,
        Function::Subtract => Decimal::subtract,
        Function::Multiply => Decimal::multiply,
        Function::Divide => Decimal::divide,
        Function::Modulo => Decimal::remainder,
    };
    collected(decimals(&left).zip(decimals(&right)).map(|(left, right)| match (left?, right?) {
        (Some(a), Some(b)) => compute(&a, &b).map(Some).map_err(tunnel),
        _ => Ok(None),
    }))
}

/// Value by value; NULL with anything is NULL.
fn apply<T: ArrowPrimitiveType>(
    left: &ColumnarValue,
    right: &ColumnarValue,
    rows: usize,
    f: impl Fn(T::Native, T::Native) -> Result<T::Native, ArrowError>,
) -> Result<ArrayRef> {
    let one = |value: &ColumnarValue| -> Result<Option<T::Native>> {
        let array = value.to_array(1)?;
        let array = array.as_primitive::<T>();
        Ok(array.is_valid(0).then(|| array.value(0)))
    };
    let result: PrimitiveArray<T> = match (left, right) {
        (ColumnarValue::Array(left), ColumnarValue::Scalar(_)) => match one(right)? {
            Some(b) => arity::try_unary(left.as_primitive::<T>(), |a| f(a, b))?,
            None => PrimitiveArray::new_null(left.len()),
        },
        (ColumnarValue::Scalar(_), ColumnarValue::Array(right)) => match one(left)? {
            Some(a) => arity::try_unary(right.as_primitive::<T>(), |b| f(a, b))?,
            None => PrimitiveArray::new_null(right.len()),
        },
        _ => {
            let (left, right) = (left.to_array(rows)?, right.to_array(rows)?);
            arity::try_binary(left.as_primitive::<T>(), right.as_primitive::<T>(), f)?
        }
    };
    Ok(Arc::new(result))
}

fn float(function: Function, a: f64, b: f64) -> Result<f64, EngineError> {
    if b == 0.0 && matches!(function, Function::Divide | Function::Modulo) && !a.is_nan() {
        return Err(division_by_zero());
    }
    let (result, vanishes) = match function {
        Function::Add => (a + b, false),
        Function::Subtract => (a - b, false),
        Function::Multiply => (a * b, a != 0.0 && b != 0.0),
        Function::Divide => (a / b, a != 0.0 && b.is_finite()),
        Function::Modulo => (a % b, false),
    };
    float_result(result, a.is_infinite() || b.is_infinite(), vanishes)
}

/// 22003 where finite numbers gave infinity (`infinite`: one of them was not finite), or where zero cannot be right
/// (`vanishes`).
pub(crate) fn float_result(result: f64, infinite: bool, vanishes: bool) -> Result<f64, EngineError> {
    match () {
        _ if result.is_infinite() && !infinite => Err(EngineError::new("22003", "value out of range: overflow")),
        _ if result == 0.0 && vanishes => Err(EngineError::new("22003", "value out of range: underflow")),
        _ => Ok(result),
    }
}

/// One operation on decimals of known scales.
struct Exact {
    function: Function,
    left: u8,
    right: u8,
    precision: u8,
}

impl Exact {
    fn compute(&self, a: i128, b: i128) -> Result<i128, EngineError> {
        let overflow = || EngineError::new("22003", "value overflows numeric format");
        if b == 0 && matches!(self.function, Function::Divide | Function::Modulo) {
            return Err(division_by_zero());
        }
        let wide = self.wide(i256::from_i128(a), i256::from_i128(b)).ok_or_else(overflow)?;
        let result = wide.to_i128().ok_or_else(overflow)?;
        if result.unsigned_abs() >= 10u128.pow(self.precision.into()) {
            return Err(overflow());
        }
        Ok(result)
    }

    /// In 256 bits; `None` where those overflow.
    fn wide(&self, a: i256, b: i256) -> Option<i256> {
        let (s1, s2) = (u32::from(self.left), u32::from(self.right));
        if self.function == Function::Multiply {
            return a.mul_checked(b).ok();
        }
        let common = s1.max(s2);
        let a = a.mul_checked(power(common - s1)?).ok()?;
        let b = b.mul_checked(power(common - s2)?).ok()?;
        match self.function {
            Function::Add => a.add_checked(b).ok(),
            Function::Subtract => a.sub_checked(b).ok(),
            _ => a.mod_checked(b).ok(),
        }
    }
}

pub(crate) fn power(n: u32) -> Option<i256> {
    i256::from_i128(10).pow_checked(n).ok()
}
