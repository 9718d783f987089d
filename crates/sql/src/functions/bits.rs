//! `&`, `|`, `#`, `<<`, `>>` of integers.
//!
//! 1. Both sides of the first three are of the wider type. A shift has the type of what is shifted; it is by an
//!    integer, of which the last five bits count (six of a bigint), and a smallint is shifted as an integer, as C does
//!    it.
//!
//! Report for DataFusion 55.2: `a # b` with a NULL beside a constant is 0, for the simplifier takes `a # a` for 0
//! without asking whether a can be NULL; the operators take floats and decimals by casting them, and shifts of 16 bits
//! are by the last four bits of the count.
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::values::engine_type;
use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::kernels::arity;
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType as ArrowType, Int16Type, Int32Type, Int64Type};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use terrace_engine::EngineError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Bits {
    And,
    Or,
    Xor,
    Left,
    Right,
}

impl Bits {
    pub(crate) fn of(op: Operator) -> Option<Bits> {
        Some(match op {
            Operator::BitwiseAnd => Bits::And,
            Operator::BitwiseOr => Bits::Or,
            Operator::BitwiseXor => Bits::Xor,
            Operator::BitwiseShiftLeft => Bits::Left,
            Operator::BitwiseShiftRight => Bits::Right,
            _ => return None,
        })
    }

    fn shifts(self) -> bool {
        matches!(self, Bits::Left | Bits::Right)
    }

    fn sign(self) -> &'static str {
        match self {
            Bits::And => "&",
            Bits::Or => "|",
            Bits::Xor => "#",
            Bits::Left => "<<",
            Bits::Right => ">>",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Bits> {
        [Bits::And, Bits::Or, Bits::Xor, Bits::Left, Bits::Right].into_iter().find(|bits| bits.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Bits::And => "bits_and",
            Bits::Or => "bits_or",
            Bits::Xor => "bits_xor",
            Bits::Left => "bits_left",
            Bits::Right => "bits_right",
        }
    }

    /// A call with its sides as they must be, now that their types are settled.
    pub(crate) fn realigned(self, call: ScalarFunction, schema: &DFSchema) -> Result<ScalarFunction> {
        let Ok([left, right]) = <[Expr; 2]>::try_from(call.args) else {
            return internal_err!("{} takes two arguments", self.name());
        };
        let (to_left, to_right) = self.sides(&left, &right, schema)?;
        let cast = |expr: Expr, to: &ArrowType| -> Result<Expr> {
            match &expr {
                Expr::Literal(..) => closed(expr, to),
                _ if expr.get_type(schema)? == *to => Ok(expr),
                _ => Ok(crate::functions::convert::convert(expr, engine_type(to).expect("an integer type"))),
            }
        };
        Ok(ScalarFunction { func: call.func, args: vec![cast(left, &to_left)?, cast(right, &to_right)?] })
    }

    /// The operator, of sides that [`Self::realigned`] makes what they must be. 42883 where there is none.
    pub(crate) fn plan(self, left: Expr, right: Expr, schema: &DFSchema) -> Result<Expr> {
        let (to_left, to_right) = self.sides(&left, &right, schema)?;
        let (left, right) = (closed(left, &to_left)?, closed(right, &to_right)?);
        let udf = Bitwise { bits: self, signature: Signature::any(2, Volatility::Immutable) };
        Ok(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(udf)), vec![left, right])))
    }

    /// The types that the two sides become.
    fn sides(self, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<(ArrowType, ArrowType)> {
        let (lt, rt) = (left.get_type(schema)?, right.get_type(schema)?);
        let open = |expr: &Expr, t: &ArrowType| {
            *t == ArrowType::Null || matches!(expr, Expr::Literal(ScalarValue::Utf8(_), None))
        };
        let rank = |t: &ArrowType| match t {
            ArrowType::Int16 => Some(0),
            ArrowType::Int32 => Some(1),
            ArrowType::Int64 => Some(2),
            _ => None,
        };
        let types = (open(left, &lt), rank(&lt), open(right, &rt), rank(&rt));
        Ok(match types {
            // Of one type, or an integer to shift by.
            (false, Some(a), false, Some(b)) if !self.shifts() => {
                let wider = if a >= b { lt.clone() } else { rt.clone() };
                (wider.clone(), wider)
            }
            (false, Some(_), false, Some(0 | 1)) | (false, Some(_), true, _) if self.shifts() => {
                (lt.clone(), ArrowType::Int32)
            }
            (false, Some(_), true, _) => (lt.clone(), lt.clone()),
            (true, _, false, Some(_)) if !self.shifts() => (rt.clone(), rt.clone()),
            _ => {
                let message = format!(
                    "operator does not exist: {} {} {}",
                    crate::functions::builtin::type_name(&lt),
                    self.sign(),
                    crate::functions::builtin::type_name(&rt)
                );
                let hint = "No operator matches the given name and argument types. \
                            You might need to add explicit type casts.";
                return Err(tunnel(EngineError::new("42883", message).with_hint(hint)));
            }
        })
    }

    fn wide(self, a: i64, b: i64) -> i64 {
        match self {
            Bits::And => a & b,
            Bits::Or => a | b,
            Bits::Xor => a ^ b,
            Bits::Left => a.wrapping_shl(b as u32),
            Bits::Right => a.wrapping_shr(b as u32),
        }
    }

    fn of_columns(self, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
        use ArrowType::{Int16, Int32, Int64};
        match (left.data_type(), right.data_type()) {
            (Int64, Int64) => apply::<Int64Type, Int64Type>(left, right, |a, b| self.wide(a, b)),
            (Int64, Int32) => apply::<Int64Type, Int32Type>(left, right, |a, b| self.wide(a, b.into())),
            (Int32, Int32) => apply::<Int32Type, Int32Type>(left, right, |a, b| self.narrow(a, b)),
            (Int16, Int32) => apply::<Int16Type, Int32Type>(left, right, |a, b| self.narrow(a.into(), b) as i16),
            (Int16, Int16) => apply::<Int16Type, Int16Type>(left, right, |a, b| self.narrow(a.into(), b.into()) as i16),
            (left, right) => internal_err!("{left} {} {right}", self.sign()),
        }
    }

    fn narrow(self, a: i32, b: i32) -> i32 {
        match self {
            Bits::Left => a.wrapping_shl(b as u32),
            Bits::Right => a.wrapping_shr(b as u32),
            _ => self.wide(a.into(), b.into()) as i32,
        }
    }
}

/// A constant as one of this type.
fn closed(expr: Expr, to: &ArrowType) -> Result<Expr> {
    match &expr {
        Expr::Literal(value, _) if value.data_type() != *to => {
            let target = engine_type(to).expect("an integer type");
            Ok(Expr::Literal(crate::functions::convert::convert_scalar(value, target)?, None))
        }
        _ => Ok(expr),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bitwise {
    bits: Bits,
    signature: Signature,
}

impl ScalarUDFImpl for Bitwise {
    fn name(&self) -> &str {
        self.bits.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(match types {
            [left, right] if !self.bits.shifts() => crate::functions::arithmetic::common(left, right),
            _ => types[0].clone(),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_columns(&args, |columns| match columns {
            [left, right] => self.bits.of_columns(left, right),
            _ => internal_err!("{} takes two arguments", self.name()),
        })
    }
}

fn apply<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(
    left: &ArrayRef,
    right: &ArrayRef,
    f: impl Fn(A::Native, B::Native) -> A::Native,
) -> Result<ArrayRef> {
    let result: PrimitiveArray<A> = arity::binary(left.as_primitive::<A>(), right.as_primitive::<B>(), f)?;
    Ok(Arc::new(result))
}
