//! Operators as PostgreSQL resolves them, before DataFusion coerces types its own way.
//!
//! 1. A quoted literal beside a typed value gets that value's type; so does a parameter whose type is open.
//! 2. Numbers: two integer types become the wider one; an integer and a numeric become numeric (a plain one where the
//!    other is, or where no numeric(p, s) holds both); a numeric and a float, and two different floats, become double
//!    precision.
//! 3. Days: date + integer, date - date (integer); date and interval make a timestamp; timestamp - timestamp is an
//!    interval.
//! 4. A char(n) is compared with a literal without the blanks at the literal's end.
use crate::error::tunnel;
use crate::functions::arithmetic::{self, Function, is_number};
use crate::functions::arrays;
use crate::functions::bits::Bits;
use crate::functions::builtin::type_name;
use crate::functions::chars::{self, loose};
use crate::functions::convert::{constant, convert, convert_scalar, needs_zone, to_compare};
use crate::functions::date_time;
use crate::plan::choosers;
use crate::plan::resolve::is_array_of_numerics;
use crate::plan::rules::{cut, is_deep};
use crate::values::arrays::is_array;
use crate::values::decimal::is_decimal;
use crate::values::{
    array_datum, arrow_type, engine_type, enum_of, exact_datum, field_of, field_type, is_timestamp, open_beside,
    to_scalar,
};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use std::sync::Arc;
use terrace_engine::{DataType, EngineError};

/// Two values beside an operator.
pub(crate) fn operated(op: Operator, mut left: Expr, mut right: Expr, schema: &DFSchema) -> Result<Expr> {
    crate::memory::check().map_err(tunnel)?;
    // The types of both sides are computed below, and again by each operator above.
    for side in [&mut left, &mut right] {
        if is_deep(side) {
            *side = cut(std::mem::take(side), schema)?;
        }
    }
    if let Some(planned) = other_operator(op, &left, &right, schema)? {
        return Ok(planned);
    }
    let arithmetic = Function::of(op);
    if arithmetic.is_none() && !chars::concerns(op) {
        return Ok(plain(left, op, right));
    }
    if arithmetic.is_none() {
        refuse_json(op, &left, &right, schema)?;
    }
    // Numbers and constants as what they are, not as casts of text.
    let (left, right) = (chosen(folded(left), schema)?, chosen(folded(right), schema)?);
    let (left, right) = resolve_open(arithmetic, left, right, schema)?;
    let (left, right) = match arithmetic {
        Some(function) => typed_nulls(function, left, right, schema)?,
        None => (left, right),
    };
    let right = stripped(right, &left, schema);
    let left = stripped(left, &right, schema);
    let (lt, rt) = (left.get_type(schema)?, right.get_type(schema)?);
    let planned = match arithmetic {
        Some(function) if lt == ArrowType::UInt32 || rt == ArrowType::UInt32 => {
            return Err(tunnel(undefined(function, &lt, &rt)));
        }
        Some(Function::Modulo) if lt.is_floating() || rt.is_floating() => {
            return Err(tunnel(undefined(Function::Modulo, &lt, &rt)));
        }
        Some(function) if is_number(&lt) && is_number(&rt) => {
            // They are made of one type when it is known what a UNION's columns are: see [`realigned`].
            return Ok(function.call(left, right));
        }
        Some(function)
            if [&lt, &rt].into_iter().any(|of| {
                is_json(of) || *of == arrow_type(DataType::Jsonb) || is_array(of) || enum_of(of).is_some()
            }) =>
        {
            return Err(tunnel(undefined(function, &lt, &rt)));
        }
        Some(function) => with_days(function, &left, &lt, &right, &rt)?,
        None if let Some([left, right]) =
            arrays::unlike(left.to_field(schema)?.1.as_ref(), right.to_field(schema)?.1.as_ref()) =>
        {
            let message = format!("operator does not exist: {left} {op} {right}");
            return Err(tunnel(with_operator_hint(EngineError::new("42883", message))));
        }
        None if let (ArrowType::Time64(_), ArrowType::Interval(_)) = (&lt, &rt) => {
            return Ok(plain(convert(left, DataType::Interval), op, right));
        }
        None if let (ArrowType::Interval(_), ArrowType::Time64(_)) = (&lt, &rt) => {
            return Ok(plain(left, op, convert(right, DataType::Interval)));
        }
        None if choosers::cannot_be_compared(&lt, &rt) => {
            let message = format!("operator does not exist: {} {op} {}", type_name(&lt), type_name(&rt));
            return Err(tunnel(with_operator_hint(EngineError::new("42883", message))));
        }
        None => {
            let (left, right) = compared(left, &lt, right, &rt, schema)?;
            return Ok(plain(left, op, right));
        }
    };
    Ok(planned.unwrap_or_else(|| plain(left, op, right)))
}

/// 42883 of a comparison with a json. A literal beside it has no type then.
fn refuse_json(op: Operator, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<()> {
    let (lt, rt) = (left.get_type(schema)?, right.get_type(schema)?);
    if !is_json(&lt) && !is_json(&rt) {
        return Ok(());
    }
    let name = |expr: &Expr, of: &ArrowType| if is_open(expr) { "unknown".to_owned() } else { type_name(of) };
    let message = format!("operator does not exist: {} {op} {}", name(left, &lt), name(right, &rt));
    Err(tunnel(with_operator_hint(EngineError::new("42883", message))))
}

/// Whether it is of type json, whose values are not compared.
pub(crate) fn is_json(of: &ArrowType) -> bool {
    *of == ArrowType::BinaryView
}

fn plain(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })
}

/// `ARRAY[a, b, ..]`.
pub(crate) fn array(items: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
    arrays::literal(items.into_iter().map(folded).collect(), schema)
}

/// Operators of bits, regular expressions, and `||`; `None`: it is another.
fn other_operator(op: Operator, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let bits = Bits::of(op);
    if let Some((op, any_case)) = regex_operator(op) {
        let right = crate::functions::builtin::pattern(right.clone(), any_case, schema)?;
        return Ok(Some(plain(left.clone(), op, right)));
    }
    if bits.is_none() && op != Operator::StringConcat {
        return Ok(None);
    }
    let (left, right) = (folded(left.clone()), folded(right.clone()));
    if let Some(bits) = bits {
        return bits.plan(left, right, schema).map(Some);
    }
    let (lt, rt) = (left.get_type(schema)?, right.get_type(schema)?);
    let open = |expr: &Expr, t: &ArrowType| *t == ArrowType::Null || is_open(expr);
    let is = |t: &ArrowType, kind: DataType| engine_type(t).is_some_and(|t| t.base_name() == kind.base_name());
    let (lo, ro) = (open(&left, &lt), open(&right, &rt));
    let bytes = |t: &ArrowType, open: bool| is(t, DataType::Bytea) && !open;
    if (bytes(&lt, lo) && (ro || bytes(&rt, ro))) || (bytes(&rt, ro) && lo) {
        return crate::functions::builtin::called("byteacat", vec![left, right], schema).map(Some);
    }
    let text = |t: &ArrowType, open: bool| open || is(t, DataType::Text);
    // One side is text, or no side has a type.
    if is_array(&lt) || is_array(&rt) {
        return Err(tunnel(EngineError::unsupported("|| of arrays is not supported")));
    }
    if !text(&lt, lo) && !text(&rt, ro) {
        let message = format!("operator does not exist: {} || {}", type_name(&lt), type_name(&rt));
        return Err(tunnel(with_operator_hint(EngineError::new("42883", message))));
    }
    let shown = |expr: Expr, t: &ArrowType| match t {
        ArrowType::Utf8 | ArrowType::Null => expr,
        ArrowType::Struct(_) => crate::functions::builtin::as_text(expr),
        _ if engine_type(t).is_some() => convert(expr, DataType::Text),
        _ => expr,
    };
    let null = |expr: Expr, t: &ArrowType| match (&expr, t) {
        (Expr::Literal(..), ArrowType::Null) => Expr::Literal(ScalarValue::Utf8(None), None),
        (Expr::Placeholder(Placeholder { id, field: None }), _) => {
            let field = Some(Arc::new(field_of("", DataType::Text, true)));
            Expr::Placeholder(Placeholder { id: id.clone(), field })
        }
        _ => expr,
    };
    let (left, right) = (null(shown(left, &lt), &lt), null(shown(right, &rt), &rt));
    Ok(Some(plain(left, Operator::StringConcat, right)))
}

/// The operator without its case, and whether it ignores case. (The pattern itself says which letters are then the
/// same.)
fn regex_operator(op: Operator) -> Option<(Operator, bool)> {
    Some(match op {
        Operator::RegexMatch => (Operator::RegexMatch, false),
        Operator::RegexIMatch => (Operator::RegexMatch, true),
        Operator::RegexNotMatch => (Operator::RegexNotMatch, false),
        Operator::RegexNotIMatch => (Operator::RegexNotMatch, true),
        _ => return None,
    })
}

pub(crate) fn with_operator_hint(mut error: EngineError) -> EngineError {
    error.hint = Some(
        "No operator matches the given name and argument types. You might need to add explicit type casts.".into(),
    );
    error
}

fn folded(expr: Expr) -> Expr {
    match &expr {
        // A text with a written type is not an open literal.
        Expr::Cast(_) => match constant(&expr) {
            Some(ScalarValue::Utf8(_)) | None => expr,
            Some(value) => Expr::Literal(value, None),
        },
        _ => expr,
    }
}

/// An operator, once the types of its arguments are settled. (A UNION's columns, and a CASE, may have had another type
/// when the operator was planned.) Numbers get one type here.
pub(crate) fn realigned(mut call: ScalarFunction, schema: &DFSchema) -> Result<ScalarFunction> {
    if let Some(bits) = Bits::named(call.func.name()) {
        return bits.realigned(call, schema);
    }
    let Some(function) = Function::named(call.func.name()) else { return Ok(call) };
    let types = call.args.iter().map(|arg| arg.get_type(schema)).collect::<Result<Vec<ArrowType>>>()?;
    if let [left, right] = types.as_slice()
        && is_number(left)
        && is_number(right)
    {
        if function == Function::Modulo && (left.is_floating() || right.is_floating()) {
            return Err(tunnel(undefined(function, left, right)));
        }
        if left != right && !(left.is_decimal() && right.is_decimal()) {
            let [a, b] = <[Expr; 2]>::try_from(call.args).expect("two arguments have two types");
            call.args = <[Expr; 2]>::from(alike(a, left, b, right)).into();
        }
    }
    Ok(call)
}

/// An operator that was planned as DataFusion's because a type was missing, planned again now that the types are known.
pub(crate) fn retyped(binary: BinaryExpr, schema: &DFSchema) -> Result<Expr> {
    let BinaryExpr { left, op, right } = binary;
    let (Ok(lt), Ok(rt)) = (left.get_type(schema), right.get_type(schema)) else {
        return Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }));
    };
    match Function::of(op) {
        Some(function) if is_number(&lt) && is_number(&rt) => match function.call(*left, *right) {
            Expr::ScalarFunction(call) => realigned(call, schema).map(Expr::ScalarFunction),
            other => Ok(other),
        },
        None if chars::concerns(op) && lt != rt => {
            let (left, right) = compared(*left, &lt, *right, &rt, schema)?;
            Ok(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
        }
        _ => Ok(Expr::BinaryExpr(BinaryExpr { left, op, right })),
    }
}

/// CASE with the type that all its branches will have. (DataFusion gives the type of the first branch. If that is
/// right, the CASE is not changed, so that it still equals the one in GROUP BY.)
fn chosen(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    if !matches!(expr, Expr::Case(_)) {
        return Ok(expr);
    }
    let resolved = crate::plan::resolve::resolved(expr.clone(), schema)?;
    Ok(if resolved.get_type(schema)? == expr.get_type(schema)? { expr } else { resolved })
}

/// Invariant 1. DataFusion resolves what stays open.
fn resolve_open(function: Option<Function>, left: Expr, right: Expr, schema: &DFSchema) -> Result<(Expr, Expr)> {
    let close = |open: Expr, typed: &Expr| -> Result<Expr> {
        let Ok((_, field)) = typed.to_field(schema) else { return Ok(open) };
        // A quoted literal beside an interval is an interval. So is one that is added to a timestamp.
        let moved = is_timestamp(field.data_type()) && function == Some(Function::Add);
        let compared = matches!(function, None | Some(Function::Add | Function::Subtract));
        if moved || (compared && matches!(field.data_type(), ArrowType::Interval(_))) {
            return match open {
                Expr::Placeholder(Placeholder { id, field: None }) => {
                    let field = Some(Arc::new(field_of("", DataType::Interval, true)));
                    Ok(Expr::Placeholder(Placeholder { id, field }))
                }
                other => crate::functions::interval::from_text(other),
            };
        }
        let Some(wanted) = field_type(&field).and_then(|t| taken_as(function, t)) else { return Ok(open) };
        Ok(match open {
            Expr::Literal(ScalarValue::Utf8(Some(text)), _) => {
                let scalar = ScalarValue::Utf8(Some(text));
                match (wanted, &scalar) {
                    (DataType::Char(_), ScalarValue::Utf8(Some(text))) => {
                        Expr::Literal(ScalarValue::Utf8(Some(text.trim_end_matches(' ').into())), None)
                    }
                    (text, _) if text.is_text() => Expr::Literal(scalar, None),
                    (other, _) => Expr::Literal(convert_scalar(&scalar, other)?, None),
                }
            }
            Expr::Placeholder(Placeholder { id, field: None }) => {
                let field = Some(Arc::new(field_of("", open_beside(wanted), true)));
                Expr::Placeholder(Placeholder { id, field })
            }
            other => other,
        })
    };
    match (is_open(&left), is_open(&right)) {
        (true, false) => Ok((close(left, &right)?, right)),
        (false, true) => {
            let closed = close(right, &left)?;
            Ok((left, closed))
        }
        _ => Ok((left, right)),
    }
}

/// A constant NULL takes the type that a quoted literal would take. (DataFusion gives integers and floats theirs.)
fn typed_nulls(function: Function, left: Expr, right: Expr, schema: &DFSchema) -> Result<(Expr, Expr)> {
    let null = |expr: &Expr| matches!(expr, Expr::Literal(ScalarValue::Null, None));
    let (lt, rt) = (left.get_type(schema)?, right.get_type(schema)?);
    let beside = |of: &ArrowType| -> Result<Option<DataType>> {
        Ok(match (function, of) {
            (_, of) if is_decimal(of) => Some(DataType::Numeric(None)),
            (Function::Add | Function::Subtract, ArrowType::Interval(_)) => Some(DataType::Interval),
            (Function::Multiply | Function::Divide, ArrowType::Interval(_)) => Some(DataType::Float8),
            (Function::Add, of) if is_timestamp(of) => Some(DataType::Interval),
            (Function::Add, ArrowType::Date32) => {
                let hint = "Could not choose a best candidate operator. You might need to add explicit type casts.";
                let error = EngineError::new("42725", "operator is not unique: date + unknown");
                return Err(tunnel(error.with_hint(hint)));
            }
            _ => None,
        })
    };
    let typed = |expr: Expr, of: Option<DataType>| match of {
        Some(of) => Ok(Expr::Literal(ScalarValue::try_from(&arrow_type(of))?, None)),
        None => Ok::<Expr, DataFusionError>(expr),
    };
    match (null(&left), null(&right)) {
        (true, false) => Ok((typed(left, beside(&rt)?)?, right)),
        (false, true) => Ok((left, typed(right, beside(&lt)?)?)),
        _ => Ok((left, right)),
    }
}

fn is_open(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Utf8(Some(_)), _) | Expr::Placeholder(Placeholder { field: None, .. }))
}

/// The type that an open expression gets beside a value of this type.
fn taken_as(function: Option<Function>, beside: DataType) -> Option<DataType> {
    match (function, beside) {
        (_, DataType::Numeric(_)) => Some(DataType::Numeric(None)),
        (Some(Function::Subtract), DataType::Date | DataType::Timestamp | DataType::Timestamptz | DataType::Time) => {
            Some(beside)
        }
        (Some(Function::Add), DataType::Time) => Some(DataType::Interval),
        (Some(_), DataType::Int2 | DataType::Int4 | DataType::Int8 | DataType::Float4 | DataType::Float8) => {
            Some(beside)
        }
        // It is an interval in most cases: DataFusion coerces to it.
        (Some(_), _) => None,
        (None, beside) => Some(beside),
    }
}

/// Makes two numbers one type (invariant 2); two numerics keep their precision and scale.
fn alike(left: Expr, lt: &ArrowType, right: Expr, rt: &ArrowType) -> (Expr, Expr) {
    let common = arithmetic::common(lt, rt);
    let decimals = lt.is_decimal() || rt.is_decimal();
    let to = |t: &ArrowType| match (arithmetic::digits(t), [lt, rt].into_iter().all(is_exact)) {
        (Some((precision, scale)), true) if decimals => ArrowType::Decimal128(precision, scale),
        _ => common.clone(),
    };
    (to_type(left, lt, &to(lt)), to_type(right, rt, &to(rt)))
}

/// Whether a number has digits that are known.
fn is_exact(number: &ArrowType) -> bool {
    arithmetic::digits(number).is_some()
}

fn to_type(expr: Expr, from: &ArrowType, to: &ArrowType) -> Expr {
    if from == to {
        return expr;
    }
    let target = engine_type(to).expect("a type of the engine's");
    match &expr {
        Expr::Literal(value, _)
            if !needs_zone(from, to)
                && let Ok(folded) = convert_scalar(value, target) =>
        {
            Expr::Literal(folded, None)
        }
        _ => convert(expr, target),
    }
}

fn undefined(function: Function, lt: &ArrowType, rt: &ArrowType) -> EngineError {
    let sign = match function {
        Function::Add => "+",
        Function::Subtract => "-",
        Function::Multiply => "*",
        Function::Divide => "/",
        Function::Modulo => "%",
    };
    let message = format!("operator does not exist: {} {sign} {}", type_name(lt), type_name(rt));
    with_operator_hint(EngineError::new("42883", message))
}

/// Invariant 3.
fn with_days(function: Function, left: &Expr, lt: &ArrowType, right: &Expr, rt: &ArrowType) -> Result<Option<Expr>> {
    use ArrowType::{Boolean, Date32, Int16, Int32, Interval, Time64, Timestamp, Utf8};
    let whole = |t: &ArrowType| matches!(t, Int16 | Int32);
    let timestamp = |e: &Expr| convert(e.clone(), DataType::Timestamp);
    let intervals = |left: &Expr, lt: &ArrowType, right: &Expr, rt: &ArrowType| {
        crate::functions::interval::operator(function, left, lt, right, rt)
    };
    let moment = arrow_type(DataType::Timestamp);
    if matches!(lt, Time64(_)) || matches!(rt, Time64(_)) {
        return with_time(function, left, lt, right, rt);
    }
    Ok(match (function, lt, rt) {
        (Function::Add | Function::Subtract, Date32, days) if whole(days) => {
            Some(date_time::move_days(left.clone(), to_type(right.clone(), days, &Int32), function))
        }
        (Function::Add, days, Date32) if whole(days) => {
            Some(date_time::move_days(right.clone(), to_type(left.clone(), days, &Int32), function))
        }
        (Function::Subtract, Date32, Date32) => Some(date_time::days_between(left.clone(), right.clone())),
        (Function::Subtract, Date32 | Timestamp(..), Date32 | Timestamp(..)) => {
            let zoned = |t: &ArrowType| matches!(t, Timestamp(_, Some(_)));
            let to = if zoned(lt) || zoned(rt) { DataType::Timestamptz } else { DataType::Timestamp };
            Some(date_time::time_between(to_time(left, lt, to), to_time(right, rt, to)))
        }
        (Function::Add | Function::Subtract, Timestamp(_, Some(_)), Interval(_)) => {
            Some(date_time::move_time(left.clone(), right.clone(), function))
        }
        (Function::Add, Interval(_), Timestamp(_, Some(_))) => {
            Some(date_time::move_time(right.clone(), left.clone(), function))
        }
        (Function::Add | Function::Subtract, Date32, Interval(_)) => intervals(&timestamp(left), &moment, right, rt),
        (Function::Add, Interval(_), Date32) => intervals(left, lt, &timestamp(right), &moment),
        (_, Interval(_), _) | (_, _, Interval(_)) => match intervals(left, lt, right, rt) {
            Some(planned) => Some(planned),
            None => return Err(tunnel(undefined(function, lt, rt))),
        },
        (_, n, Date32 | Timestamp(..)) | (_, Date32 | Timestamp(..), n) if is_number(n) => {
            return Err(tunnel(undefined(function, lt, rt)));
        }
        (_, Boolean | Utf8, other) | (_, other, Boolean | Utf8) if is_number(other) || *other == Boolean => {
            return Err(tunnel(undefined(function, lt, rt)));
        }
        _ => None,
    })
}

/// A time of day beside something else. But for what moves it, and what is between two, it becomes an interval.
fn with_time(function: Function, left: &Expr, lt: &ArrowType, right: &Expr, rt: &ArrowType) -> Result<Option<Expr>> {
    use ArrowType::{Date32, Interval, Time64, Timestamp};
    if let Some(planned) = crate::functions::interval::operator(function, left, lt, right, rt) {
        return Ok(Some(planned));
    }
    match (function, lt, rt) {
        (Function::Add | Function::Subtract, Time64(_), ArrowType::Null) => {
            let to = if function == Function::Add { DataType::Interval } else { DataType::Time };
            let null = Expr::Literal(ScalarValue::try_from(&arrow_type(to))?, None);
            with_time(function, left, lt, &null, &arrow_type(to))
        }
        (Function::Add, ArrowType::Null, Time64(_)) => with_time(function, right, rt, left, lt),
        (Function::Add, Time64(_), Time64(_)) => {
            let name = DataType::Time.base_name();
            let hint = "Could not choose a best candidate operator. You might need to add explicit type casts.";
            let error = EngineError::new("42725", format!("operator is not unique: {name} + {name}"));
            Err(tunnel(error.with_hint(hint)))
        }
        (_, other, Time64(_)) | (_, Time64(_), other)
            if is_number(other) || matches!(other, Date32 | Interval(_) | Timestamp(..)) =>
        {
            let span = arrow_type(DataType::Interval);
            let made = |expr: &Expr, of: &ArrowType| match of {
                Time64(_) => (convert(expr.clone(), DataType::Interval), span.clone()),
                other => (expr.clone(), other.clone()),
            };
            let ((left, l), (right, r)) = (made(left, lt), made(right, rt));
            let planned = with_days(function, &left, &l, &right, &r);
            planned.map_err(|_| tunnel(undefined(function, lt, rt)))
        }
        _ => Err(tunnel(undefined(function, lt, rt))),
    }
}

/// A date as the time of its midnight; in the session's zone if the other side has a zone.
fn to_time(expr: &Expr, t: &ArrowType, to: DataType) -> Expr {
    if engine_type(t) == Some(to) { expr.clone() } else { convert(expr.clone(), to) }
}

/// Beside a char(n): takes the blanks from a varchar, which is compared as a char(n) is. A text keeps its blanks.
pub(crate) fn stripped(expr: Expr, beside: &Expr, schema: &DFSchema) -> Expr {
    let of = |expr: &Expr| expr.to_field(schema).ok().and_then(|(_, field)| field_type(&field));
    match (of(beside), of(&expr)) {
        (Some(DataType::Char(_)), Some(DataType::Varchar(_))) => loose(expr),
        _ => expr,
    }
}

/// A date that is compared with timestamps of that type.
fn day_beside(day: Expr, of: DataType) -> Expr {
    match to_type(day.clone(), &ArrowType::Date32, &arrow_type(of)) {
        known @ Expr::Literal(..) => known,
        _ => to_compare(day, of),
    }
}

/// Both sides of a comparison so that DataFusion compares as PostgreSQL would.
fn compared(left: Expr, lt: &ArrowType, right: Expr, rt: &ArrowType, schema: &DFSchema) -> Result<(Expr, Expr)> {
    use ArrowType::{Date32, Timestamp};
    let time = |t: &ArrowType| engine_type(t).expect("a timestamp");
    match (lt, rt) {
        // DataFusion would go by nanoseconds, which end in 2262.
        (Date32, Timestamp(..)) => return Ok((day_beside(left, time(rt)), right)),
        (Timestamp(..), Date32) => return Ok((left, day_beside(right, time(lt)))),
        _ if lt != rt && is_array_of_numerics(lt) && is_array_of_numerics(rt) => {
            let plain = arrow_type(DataType::Numeric(None).array().expect("a numeric is no array"));
            return Ok((to_type(left, lt, &plain), to_type(right, rt, &plain)));
        }
        _ if lt == rt || !is_number(lt) || !is_number(rt) => return Ok((left, right)),
        _ => {}
    }
    let narrowed = |value: &Expr, column: &Expr| -> Option<Expr> {
        let Expr::Literal(scalar, _) = value else { return None };
        narrowed(scalar, &column.to_field(schema).ok()?.1).map(|value| Expr::Literal(value, None))
    };
    if let Some(value) = narrowed(&right, &left) {
        return Ok((left, value));
    }
    if let Some(value) = narrowed(&left, &right) {
        return Ok((value, right));
    }
    let float = |t: &ArrowType| matches!(t, ArrowType::Float32 | ArrowType::Float64);
    if float(lt) || float(rt) {
        let double = arrow_type(DataType::Float8);
        return Ok((to_type(left, lt, &double), to_type(right, rt, &double)));
    }
    if arithmetic::compared_as_plain([lt, rt].into_iter()) {
        let plain = arrow_type(DataType::Numeric(None));
        return Ok((to_type(left, lt, &plain), to_type(right, rt, &plain)));
    }
    Ok((left, right))
}

/// A constant number, converted to the type of the column that it is compared with, if it fits: then an index can be
/// used.
pub(crate) fn narrowed(scalar: &ScalarValue, beside: &Field) -> Option<ScalarValue> {
    let wanted = field_type(beside)?;
    if matches!(wanted, DataType::Float4 | DataType::Float8) || scalar.is_null() || scalar.data_type().is_floating() {
        return None;
    }
    // By value: 5.0 is 5.
    let plain = |scalar: &ScalarValue| {
        let scalar = convert_scalar(scalar, DataType::Numeric(None)).ok()?;
        Some((array_datum(&scalar.to_array().ok()?, 0), scalar))
    };
    let (value, exact) = plain(scalar)?;
    let datum = match wanted {
        DataType::Numeric(_) => exact_datum(&exact, wanted)?,
        integer => exact_datum(&convert_scalar(&exact, integer).ok()?, integer)?,
    };
    let narrowed = to_scalar(&datum, wanted);
    let (back, _) = plain(&narrowed)?;
    let same = back.as_ref().cmp_key(value.as_ref()).is_eq();
    (same && convert_scalar(scalar, engine_type(&scalar.data_type())?).ok()? == *scalar).then_some(narrowed)
}
