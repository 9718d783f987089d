//! COALESCE, GREATEST, LEAST, NULLIF and CASE: the functions that answer one of their arguments.
//!
//! 1. [`common`] finds the result's type by PostgreSQL's rules, during planning and later. Constants in quotes, NULL
//!    and parameters without a type do not count; they get the result's type. The common type of numbers, or of times,
//!    is the widest of them. Kinds that do not mix are 42804.
//! 2. While a query is planned, placeholders stand for the functions ([`function`]). When the arguments have one type,
//!    [`resolved`] replaces the placeholders by functions that run. (DataFusion's own functions would have to give a
//!    type earlier, and find none for a date beside a quoted constant.)
//! 3. NULLIF answers its first argument, in the type in which the two are compared. But if PostgreSQL has an operator
//!    for exactly these two types (two integers, two floats, two times), the answer has the first argument's own type.
//!    A char that is compared with a text is a text.
//! 4. If arguments are equal, GREATEST and LEAST answer the first of them. This matters for -0 and 0, and for
//!    intervals.
//!
//! Source: PostgreSQL 15 documentation, "UNION, CASE, and Related Constructs" (10.5), "Conditional Expressions" (9.18).
use crate::cast::LOOSE;
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::functions::arithmetic::{is_number, united};
use crate::functions::chars;
use crate::functions::compared::compared_by;
use crate::functions::convert::{constant, convert, convert_scalar, is_open};
use crate::plan::resolve;
use crate::values::arrays::{self, is_array, is_row, items_of};
use crate::values::decimal::is_decimal;
use crate::values::{arrow_type, engine_type, enum_of, field_of, field_type, is_void, is_zoned};
use datafusion::arrow::array::{ArrayRef, BooleanArray, make_comparator, new_empty_array};
use datafusion::arrow::compute::{SortOptions, kernels::zip::zip};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{Case, Placeholder, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::any::Any;
use std::cmp::Ordering;
use std::sync::Arc;
use terrace_engine::types::Shape;
use terrace_engine::{DataType, EngineError};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Chooser {
    Coalesce,
    Greatest,
    Least,
    Nullif,
    Case,
}

impl Chooser {
    fn name(self) -> &'static str {
        match self {
            Chooser::Coalesce => "coalesce",
            Chooser::Greatest => "greatest",
            Chooser::Least => "least",
            Chooser::Nullif => "nullif",
            Chooser::Case => "case",
        }
    }
}

/// The placeholder of a function, by its name (invariant 2).
pub(crate) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    let chooser = [Chooser::Coalesce, Chooser::Greatest, Chooser::Least, Chooser::Nullif]
        .into_iter()
        .find(|c| c.name() == name)?;
    let signature = Signature::user_defined(Volatility::Immutable);
    Some(Arc::new(ScalarUDF::from(Planned { chooser, signature })))
}

/// Invariant 2.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Planned {
    chooser: Chooser,
    signature: Signature,
}

impl ScalarUDFImpl for Planned {
    fn name(&self) -> &str {
        self.chooser.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[ArrowType]) -> Result<Vec<ArrowType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        internal_err!("{} has a field", self.name())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let open = |at: usize| {
            let field = &args.arg_fields[at];
            let literal = matches!(args.scalar_arguments.get(at), Some(Some(ScalarValue::Utf8(_))));
            field.data_type() == &ArrowType::Null || (literal && field.metadata().is_empty())
        };
        let open: Vec<bool> = (0..args.arg_fields.len()).map(open).collect();
        let to = match self.chooser {
            Chooser::Nullif => {
                let [first, second] = args.arg_fields else { return Err(nullif_takes_two()) };
                nullif_type(first, second, &open)
            }
            chooser => {
                let null = |at: &usize| matches!(args.scalar_arguments.get(*at), Some(Some(value)) if value.is_null());
                let read = (0..open.len()).any(|at| open[at] && !null(&at));
                let typed = args.arg_fields.iter().zip(&open).filter(|(_, open)| !**open);
                // How many blanks a char has is told when it is known what the constants are.
                match chars::chosen(typed.map(|(field, _)| field_type(field)), std::iter::empty()) {
                    Some(DataType::Char(_)) => return Ok(Arc::new(field_of(self.name(), LOOSE, true))),
                    Some(other) => return Ok(Arc::new(field_of(self.name(), other, true))),
                    None => {}
                }
                common(chooser, args.arg_fields, &open, read)?
            }
        };
        let first = || args.arg_fields.iter().zip(&open).find(|(_, open)| !**open).map(|(field, _)| field.data_type());
        let to = to.or_else(|| first().cloned()).unwrap_or(ArrowType::Utf8);
        Ok(Arc::new(Field::new(self.name(), to, true)))
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("{} is replaced before it runs", self.name())
    }
}

fn nullif_takes_two() -> datafusion::common::DataFusionError {
    tunnel(EngineError::new("42601", "NULLIF takes two arguments"))
}

#[derive(Clone, Copy, PartialEq)]
enum Category {
    Number,
    Text,
    Time,
    /// Only with itself.
    Alone,
}

fn category(data_type: &ArrowType) -> Option<Category> {
    use ArrowType::*;
    Some(match data_type {
        _ if is_number(data_type) => Category::Number,
        _ if enum_of(data_type).is_some() => Category::Alone,
        of if is_array(of) && engine_type(of).is_some() => Category::Alone,
        Struct(_) => Category::Alone,
        // `string_agg` answers the large one.
        Utf8 | LargeUtf8 => Category::Text,
        Date32 | Timestamp(..) => Category::Time,
        Boolean | Time64(_) | Interval(_) | Binary | FixedSizeBinary(16) | BinaryView | LargeBinary => Category::Alone,
        _ => return None,
    })
}

/// Whether PostgreSQL has no operator that compares the two.
pub(crate) fn cannot_be_compared(a: &ArrowType, b: &ArrowType) -> bool {
    if let (Some(a), Some(b)) = (items_of(a), items_of(b)) {
        // Of one type: an array becomes no other.
        let (a, b) = (engine_type(a.data_type()), engine_type(b.data_type()));
        return a.zip(b).is_some_and(|(a, b)| a.base_name() != b.base_name());
    }
    match (category(a), category(b)) {
        (Some(kind), Some(other)) => kind != other || (kind == Category::Alone && a != b),
        _ => false,
    }
}

/// The type of the result (invariant 1); `None`: a type that is not known here, as in system relations. `read`: some
/// constant will be read as this type.
fn common(chooser: Chooser, fields: &[FieldRef], open: &[bool], read: bool) -> Result<Option<ArrowType>> {
    let typed: Vec<&ArrowType> =
        fields.iter().zip(open).filter(|(_, open)| !**open).map(|(f, _)| f.data_type()).collect();
    let Some(first) = typed.first() else { return Ok(Some(ArrowType::Utf8)) };
    let Some(kind) = category(first) else { return Ok(None) };
    if let Some(list) = list_of_numbers(&typed) {
        return Ok(Some(list));
    }
    refuse_different_rows(&typed)?;
    for other in &typed {
        if category(other).is_none() {
            return Ok(None);
        }
        if cannot_be_compared(first, other) {
            let (first, other) =
                (crate::functions::builtin::type_name(first), crate::functions::builtin::type_name(other));
            let what = chooser.name().to_uppercase();
            return Err(tunnel(EngineError::new(
                "42804",
                format!("{what} types {first} and {other} cannot be matched"),
            )));
        }
    }
    Ok(Some(match kind {
        Category::Number => number(&typed, read),
        Category::Time => {
            let zoned = typed.iter().any(|t| is_zoned(t));
            let dates = typed.iter().all(|t| matches!(t, ArrowType::Date32));
            match (zoned, dates) {
                (true, _) => arrow_type(DataType::Timestamptz),
                (_, true) => ArrowType::Date32,
                _ => arrow_type(DataType::Timestamp),
            }
        }
        Category::Text => ArrowType::Utf8,
        // A list becomes an array.
        Category::Alone => engine_type(first).filter(|_| is_array(first)).map_or((*first).clone(), arrow_type),
    }))
}

/// 0A000 where rows of no type have columns of different types: each of them would change the others' texts.
pub(crate) fn refuse_different_rows(types: &[&ArrowType]) -> Result<()> {
    let is_record = |of: &&&ArrowType| is_row(of) && engine_type(of).is_none();
    let mut records = types.iter().filter(is_record);
    let Some(first) = records.next() else { return Ok(()) };
    match records.all(|other| other == first) {
        true => Ok(()),
        false => Err(tunnel(EngineError::unsupported("rows whose columns are of different types are not supported"))),
    }
}

/// The arrays that arrays of several types of numbers become.
fn list_of_numbers(typed: &[&ArrowType]) -> Option<ArrowType> {
    let item = |of: &&ArrowType| engine_type(of)?.item().map(arrow_type).filter(is_number);
    let items = typed.iter().map(item).collect::<Option<Vec<ArrowType>>>()?;
    let widest = number(&items.iter().collect::<Vec<_>>(), false);
    engine_type(&widest)?.array().map(arrow_type)
}

/// The widest of numbers; of numerics one in which each keeps its scale.
fn number(typed: &[&ArrowType], read: bool) -> ArrowType {
    use ArrowType::*;
    let any = |is: fn(&ArrowType) -> bool| typed.iter().any(|t| is(t));
    if any(|t| matches!(t, Float64)) {
        return Float64;
    }
    if any(|t| matches!(t, Float32)) {
        return Float32;
    }
    if any(|t| matches!(t, Decimal128(..)) || is_decimal(t)) {
        return if read { arrow_type(DataType::Numeric(None)) } else { united(typed.iter().copied()) };
    }
    [Int64, Int32].into_iter().find(|wide| typed.contains(&wide)).unwrap_or(Int16)
}

/// Invariant 3; `None`: the first one's own.
fn nullif_type(first: &Field, second: &Field, open: &[bool]) -> Option<ArrowType> {
    let (a, b) = (first.data_type(), second.data_type());
    match open {
        [true, false] => Some(b.clone()),
        [false, false] if is_number(a) && is_number(b) && a != b => {
            let whole = |t: &ArrowType| matches!(t, ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64);
            let float = |t: &ArrowType| matches!(t, ArrowType::Float32 | ArrowType::Float64);
            if (whole(a) && whole(b)) || float(a) {
                None
            } else if float(b) {
                Some(ArrowType::Float64)
            } else {
                // An integer as the numeric that it is.
                whole(a).then(|| number(&[a, &ArrowType::Decimal128(1, 0)], false))
            }
        }
        _ => None,
    }
}

/// The call of a placeholder, replaced by what runs (invariant 2). `None`: it is a call of another function.
pub(crate) fn resolved(call: &ScalarFunction, schema: &DFSchema) -> Result<Option<Expr>> {
    let inner = call.func.inner().as_ref() as &dyn Any;
    let Some(Planned { chooser, .. }) = inner.downcast_ref::<Planned>() else { return Ok(None) };
    if *chooser == Chooser::Nullif {
        return nullif(call.args.clone(), schema).map(Some);
    }
    let (args, of) = of_one_type(*chooser, call.args.clone(), schema)?;
    let func = match chooser {
        Chooser::Coalesce => datafusion::functions::core::coalesce(),
        _ if of.is_none() && *chooser == Chooser::Greatest => datafusion::functions::core::greatest(),
        _ if of.is_none() => datafusion::functions::core::least(),
        _ => {
            let signature = Signature::any(args.len(), Volatility::Immutable);
            Arc::new(ScalarUDF::from(Extreme { greatest: *chooser == Chooser::Greatest, signature }))
        }
    };
    Ok(Some(answered(Expr::ScalarFunction(ScalarFunction::new_udf(func, args)), of.as_ref())))
}

/// An expression whose result has this field's type: a char or varchar is labelled as such.
pub(crate) fn answered(expr: Expr, of: Option<&Field>) -> Expr {
    match of.and_then(field_type) {
        Some(told) if matches!(told.item().unwrap_or(told), DataType::Char(_) | DataType::Varchar(_)) => {
            chars::labelled(expr, told)
        }
        _ => expr,
    }
}

/// The expressions, converted to one type, and a field of that type, if it is known. One of them will be the answer.
pub(crate) fn of_one_type(chooser: Chooser, exprs: Vec<Expr>, schema: &DFSchema) -> Result<(Vec<Expr>, Option<Field>)> {
    let fields = exprs.iter().map(|e| Ok(e.to_field(schema)?.1)).collect::<Result<Vec<FieldRef>>>()?;
    let open: Vec<bool> = exprs.iter().map(is_open).collect();
    let null = |expr: &Expr| matches!(expr, Expr::Literal(value, _) if value.is_null());
    let voids = fields.iter().filter(|field| is_void(field)).count();
    if voids > 0 && (voids < exprs.iter().filter(|expr| !null(expr)).count() || chooser != Chooser::Case) {
        let message = format!("{} types void and text cannot be matched", chooser.name().to_uppercase());
        return Err(tunnel(EngineError::new("42804", message)));
    }
    let read = exprs.iter().any(|expr| is_open(expr) && !null(expr));
    let Some(to) = common(chooser, &fields, &open, read)? else { return Ok((exprs, None)) };
    let typed = fields.iter().zip(&open).filter(|(_, open)| !**open).map(|(field, _)| field_type(field));
    let constants = exprs.iter().filter(|expr| is_open(expr) && !null(expr)).map(chars::length_of);
    let told = chars::chosen(typed, constants);
    if let Some(char @ DataType::Char(_)) = told {
        let beside = field_of(chooser.name(), char, true);
        let made = exprs.into_iter().zip(fields).zip(open).map(|((expr, field), open)| match expr {
            Expr::Placeholder(Placeholder { id, field: None }) => {
                Expr::Placeholder(Placeholder { id, field: Some(Arc::new(field_of("", LOOSE, true))) })
            }
            expr if open => chars::beside(expr, &field, &beside),
            expr if matches!(field_type(&field), Some(DataType::Char(_))) => expr,
            expr => chars::loose(expr),
        });
        return Ok((made.collect(), Some(beside)));
    }
    let each = exprs.into_iter().zip(fields).zip(open);
    let made = each.map(|((expr, field), open)| {
        let made = as_type(expr, &field, open, &to)?;
        // A constant that stands for all of them, once the others are left out, tells the type too.
        let other = told.is_none() && matches!(field_type(&field), Some(DataType::Varchar(_) | DataType::Char(_)));
        Ok(if other && to == ArrowType::Utf8 { chars::labelled(made, DataType::Text) } else { made })
    });
    let made = made.collect::<Result<Vec<Expr>>>()?;
    let field = told.map_or_else(|| Field::new(chooser.name(), to, true), |told| field_of(chooser.name(), told, true));
    Ok((made, Some(field)))
}

fn as_type(expr: Expr, field: &Field, open: bool, to: &ArrowType) -> Result<Expr> {
    if field.data_type() == to && !matches!(expr, Expr::Placeholder(Placeholder { field: None, .. })) {
        return Ok(expr);
    }
    let target = match (engine_type(to), to) {
        (Some(_), ArrowType::Decimal128(precision, scale)) => DataType::Numeric(Some((*precision, *scale as u8))),
        (Some(target), _) => target,
        (None, of) if open && is_array(of) => return array_of_rows(expr, of),
        (None, _) => return Ok(expr),
    };
    // A text among numerics is read with the digits that it has.
    let target = if open && to == &arrow_type(DataType::Numeric(None)) { DataType::Numeric(None) } else { target };
    match expr {
        Expr::Placeholder(Placeholder { id, field: None }) => {
            Ok(Expr::Placeholder(Placeholder { id, field: Some(Arc::new(field_of("", target, true))) }))
        }
        expr => match constant(&expr) {
            Some(value) => Ok(Expr::Literal(convert_scalar(&value, target)?, None)),
            None => Ok(convert(expr, target)),
        },
    }
}

/// A constant among arrays of rows that are of no type. PostgreSQL reads no such row, so the empty array alone is one.
fn array_of_rows(expr: Expr, to: &ArrowType) -> Result<Expr> {
    let value = match constant(&expr) {
        None => return Ok(expr),
        Some(null) if null.is_null() => ScalarValue::try_from(to)?,
        Some(ScalarValue::Utf8(Some(text))) if empty_array(&text) => {
            let Some(item) = items_of(to) else { return internal_err!("{to} is no array") };
            let empty = arrays::made(new_empty_array(item.data_type()), [Shape::plain(0).ok()]);
            if empty.data_type() != to {
                return internal_err!("{} instead of {to}", empty.data_type());
            }
            ScalarValue::try_from_array(&empty, 0)?
        }
        Some(_) => {
            return Err(tunnel(EngineError::new("0A000", "input of anonymous composite types is not implemented")));
        }
    };
    Ok(Expr::Literal(value, None))
}

fn empty_array(text: &str) -> bool {
    let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| inner.trim().is_empty())
}

/// Invariant 3.
fn nullif(args: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
    let [first, second] = args.as_slice() else { return Err(nullif_takes_two()) };
    let (a, b) = (first.to_field(schema)?.1, second.to_field(schema)?.1);
    let open = [is_open(first), is_open(second)];
    let to = nullif_type(&a, &b, &open);
    let compared = resolve::compared(args.clone(), schema)?;
    let value = match &to {
        Some(to) => as_type(first.clone(), &a, open[0], to)?,
        None if open[0] => compared[0].clone(),
        None => first.clone(),
    };
    let of = value.to_field(schema)?.1;
    let chosen = if first.is_volatile() {
        // It is evaluated once.
        Expr::ScalarFunction(ScalarFunction::new_udf(datafusion::functions::core::nullif(), compared))
    } else {
        let nothing = Expr::Literal(ScalarValue::try_from(of.data_type())?, None);
        let [left, right] = <[Expr; 2]>::try_from(compared).expect("two come back of two");
        let when_then_expr = vec![(Box::new(left.eq(right)), Box::new(nothing))];
        Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(Box::new(value)) })
    };
    let chars = [field_type(&of), field_type(&b)].map(|t| matches!(t, Some(DataType::Char(_))));
    Ok(match chars {
        // Compared as texts, they are texts.
        [true, false] if !open[1] && !matches!(field_type(&b), Some(DataType::Varchar(_))) => chosen,
        // Compared as chars, a text becomes one with the blanks that it has.
        [false, true] if open[0] || matches!(field_type(&a), Some(DataType::Varchar(_))) => chars::loose(chosen),
        [true, _] => answered(chosen, Some(of.as_ref())),
        // Varchars are compared as texts.
        _ if matches!(field_type(&of), Some(DataType::Varchar(_))) => chars::labelled(chosen, DataType::Text),
        _ => chosen,
    })
}

/// The greatest or least of values of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    greatest: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Extreme {
    fn name(&self) -> &str {
        if self.greatest { "greatest" } else { "least" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_columns(&args, |columns| {
            let mut best = columns[0].clone();
            for next in &columns[1..] {
                best = self.better(&best, next)?;
            }
            Ok(best)
        })
    }
}

impl Extreme {
    /// For each row, the better of two values. Of equal ones it is the first; a NULL is worse than anything.
    fn better(&self, best: &ArrayRef, next: &ArrayRef) -> Result<ArrayRef> {
        let (known, tried) = (compared_by(best)?, compared_by(next)?);
        let compare = make_comparator(&known, &tried, SortOptions::default())?;
        let wins = if self.greatest { Ordering::Less } else { Ordering::Greater };
        let replaces = |row| !next.is_null(row) && (best.is_null(row) || compare(row, row) == wins);
        let mask: BooleanArray = (0..best.len()).map(|row| Some(replaces(row))).collect();
        Ok(zip(&mask, next, best)?)
    }
}
