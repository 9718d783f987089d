//! Functions with PostgreSQL's names: which arguments they take, and what they answer where DataFusion's of the name
//! answers something else.
//!
//! 1. A function that is not in [`table`] or [`known`] does not exist (42883), whatever DataFusion registers.
//! 2. Arguments are taken as pg_proc has them: a function is chosen by what its arguments are, an argument may become
//!    what is wanted by an implicit cast of pg_cast and by no other, and a quoted literal, NULL or untyped parameter
//!    becomes whatever is wanted.
//! 3. The choice is made once, right after planning ([`choose`]), so that types do not change when constants are folded
//!    later.
//! 4. What makes texts asks for them first, as [`crate::functions::bounded`] does.
//! 5. Where a function is DataFusion's ([`Run::Theirs`]) only its arguments are seen to here.
//!
//! Sources: PostgreSQL 15 documentation, chapters 9 and 10.3; pg_proc and pg_cast.
use crate::error::tunnel;
use crate::functions::bounded::PIECE;
use crate::functions::convert::{convert, convert_array, convert_scalar};
use crate::functions::{arrays, bounded, chars, nulls};
use crate::memory;
use crate::values::arrays::{is_array, is_row, items_of};
use crate::values::{
    self, ColumnBuilder, array_datum, arrow_type, engine_array, engine_type, field_of, field_type, is_void,
};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::any::Any;
use std::sync::Arc;
use terrace_engine::types::Decimal;
use terrace_engine::types::composites::write_field;
use terrace_engine::{DataType, Datum, EngineError};

mod bytes;
mod character_classes;
mod floats;
pub(crate) mod json;
mod known;
mod numbers;
mod pattern;
mod regex;
mod sessions;
mod text;
mod times;

pub(crate) use bytes::LIKE as BYTES_LIKE;
pub(crate) use regex::{first_match, matches, split};

pub(crate) use known::{is_known_aggregate, is_known_function, window_arguments};

/// A name, and the functions that have it.
#[derive(Debug)]
pub(crate) struct Builtin {
    name: &'static str,
    overloads: &'static [Overload],
}

/// One of the functions of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overload {
    takes: &'static [Takes],
    /// Any number of arguments more, each as the last.
    more: bool,
    gives: DataType,
    run: Run,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Takes {
    Is(DataType),
    /// Anything, as the text that it is shown as.
    Shown,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// NULL of NULL, else this.
    Strict(fn(&[Datum]) -> terrace_engine::Result<Datum>),
    /// This, of NULL too.
    Nulls(fn(&[Datum]) -> terrace_engine::Result<Datum>),
    /// The function that is registered under the name.
    Theirs,
}

fn table() -> impl Iterator<Item = &'static Builtin> {
    let tables = [
        json::TABLE,
        json::path::TABLE,
        numbers::TABLE,
        floats::TABLE,
        text::TABLE,
        bytes::TABLE,
        regex::TABLE,
        times::TABLE,
    ];
    tables.into_iter().chain([sessions::ALONE, sessions::WAITING, sessions::OTHERS]).flatten()
}

fn find(name: &str) -> Option<&'static Builtin> {
    table().find(|b| b.name == name)
}

/// Registers those that run here.
pub(crate) fn register(state: &mut SessionState) {
    for builtin in table().filter(|b| b.overloads.iter().any(|o| !matches!(o.run, Run::Theirs))) {
        let theirs = state.scalar_functions().get(builtin.name).cloned();
        let signature = Signature::user_defined(Volatility::Immutable);
        let call = Call { builtin: builtin.name, chosen: None, theirs, signature };
        state.register_udf(Arc::new(ScalarUDF::from(call))).expect("functions can be replaced");
    }
}

/// How PostgreSQL names the type.
pub(crate) fn type_name(given: &ArrowType) -> String {
    match given {
        ArrowType::Null => "unknown".to_owned(),
        of if let Some(item) = items_of(of) => format!("{}[]", type_name(item.data_type())),
        ArrowType::Struct(_) if engine_type(given).is_none() => "record".to_owned(),
        ArrowType::UInt32 => "oid".to_owned(),
        other => engine_type(other).map_or_else(|| other.to_string().to_lowercase(), |t| t.base_name().to_owned()),
    }
}

/// The hint that PostgreSQL gives with 42883 of a function.
pub(crate) fn with_hint(mut error: EngineError) -> EngineError {
    let hint = "No function matches the given name and argument types. You might need to add explicit type casts.";
    error.hint = Some(hint.to_owned());
    error
}

/// What is known of an argument.
#[derive(Clone, Debug)]
enum Given {
    /// A quoted literal, NULL, or a parameter whose type is open.
    Open,
    Known(DataType),
    Other(ArrowType),
}

impl Given {
    fn of(field: &Field, literal: Option<&ScalarValue>) -> Given {
        match (field.data_type(), literal) {
            (ArrowType::Null, _) => Given::Open,
            // It is shown as a text, and is none.
            (ArrowType::Utf8, _) if is_void(field) => Given::Other(ArrowType::Utf8),
            (ArrowType::Utf8, Some(ScalarValue::Utf8(_))) if field.metadata().is_empty() => Given::Open,
            // A number that stands as it was written: see [`crate::parse::literals`].
            (ArrowType::Int64, Some(ScalarValue::Int64(Some(v)))) if i32::try_from(*v).is_ok() => {
                Given::Known(DataType::Int4)
            }
            (ArrowType::UInt32, _) => Given::Other(ArrowType::UInt32),
            (other, _) => field_type(field).map_or_else(|| Given::Other(other.clone()), Given::Known),
        }
    }

    fn name(&self) -> String {
        match self {
            Given::Open => "unknown".to_owned(),
            Given::Known(t) => t.base_name().to_owned(),
            Given::Other(ArrowType::Utf8) => "void".to_owned(),
            Given::Other(t) => type_name(t),
        }
    }

    /// How well it suits: 0 not at all, more is better.
    fn suits(&self, wanted: Takes) -> u32 {
        match (self, wanted) {
            (_, Takes::Shown) => 1,
            (Given::Open, Takes::Is(DataType::Text)) => 3,
            (Given::Open, Takes::Is(DataType::Float8 | DataType::Timestamptz | DataType::Bool)) => 2,
            (Given::Open, _) => 1,
            (Given::Known(from), Takes::Is(to)) if from.base_name() == to.base_name() => 8,
            (Given::Known(from), Takes::Is(to)) if is_implicit(*from, to) => {
                if matches!(to, DataType::Float8 | DataType::Text | DataType::Timestamptz | DataType::Interval) {
                    4
                } else {
                    2
                }
            }
            _ => 0,
        }
    }
}

/// pg_cast's implicit casts.
pub(crate) fn is_implicit(from: DataType, to: DataType) -> bool {
    use DataType::*;
    let rank = |t: DataType| match t {
        Int2 => Some(0),
        Int4 => Some(1),
        Int8 => Some(2),
        Numeric(_) => Some(3),
        Float4 => Some(4),
        Float8 => Some(5),
        _ => None,
    };
    match (from, to) {
        (a, b) if a.base_name() == b.base_name() => true,
        (a, b) if a.is_text() && b.is_text() => true,
        (Date, Timestamp | Timestamptz) | (Timestamp, Timestamptz) | (Time, Interval) => true,
        _ => matches!((rank(from), rank(to)), (Some(a), Some(b)) if a < b),
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Chosen {
    overload: usize,
    gives: ArrowType,
}

/// A call of a function of the table.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Call {
    builtin: &'static str,
    /// `None` until [`choose`] has seen it.
    chosen: Option<Chosen>,
    /// DataFusion's function of the name, which some of the overloads may be.
    theirs: Option<Arc<ScalarUDF>>,
    signature: Signature,
}

impl Builtin {
    fn choose(&self, given: &[Given]) -> Result<Chosen> {
        let fits = |overload: &Overload| {
            let arity =
                if overload.more { given.len() >= overload.takes.len() } else { given.len() == overload.takes.len() };
            let last = overload.takes.last();
            let suits = given.iter().enumerate().map(|(at, given)| match overload.takes.get(at).or(last) {
                Some(wanted) if arity => given.suits(*wanted),
                _ => 0,
            });
            let suits: Vec<u32> = suits.collect();
            (arity && !suits.contains(&0)).then(|| suits.iter().sum::<u32>() + 1)
        };
        let mut best: Option<(usize, u32)> = None;
        for (at, overload) in self.overloads.iter().enumerate() {
            // The first of equals.
            if let Some(suits) = fits(overload)
                && best.is_none_or(|(_, so_far)| suits > so_far)
            {
                best = Some((at, suits));
            }
        }
        let Some((at, _)) = best else {
            let types: Vec<String> = given.iter().map(Given::name).collect();
            let message = format!("function {}({}) does not exist", self.name, types.join(", "));
            return Err(tunnel(with_hint(EngineError::new("42883", message))));
        };
        let gives = arrow_type(self.overloads[at].gives);
        Ok(Chosen { overload: at, gives })
    }
}

impl Call {
    fn builtin(&self) -> &'static Builtin {
        find(self.builtin).expect("calls are of functions in the table")
    }

    fn chosen(&self, fields: &[FieldRef], literals: &[Option<&ScalarValue>]) -> Result<Chosen> {
        if let Some(chosen) = &self.chosen {
            return Ok(chosen.clone());
        }
        let given: Vec<Given> =
            fields.iter().enumerate().map(|(at, f)| Given::of(f, literals.get(at).copied().flatten())).collect();
        self.builtin().choose(&given)
    }
}

impl ScalarUDFImpl for Call {
    fn name(&self) -> &str {
        self.builtin
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[ArrowType]) -> Result<Vec<ArrowType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        internal_err!("{} has a field", self.builtin)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let chosen = self.chosen(args.arg_fields, args.scalar_arguments)?;
        Ok(Arc::new(Field::new(self.builtin, chosen.gives, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let literals: Vec<Option<ScalarValue>> = args
            .args
            .iter()
            .map(|arg| match arg {
                ColumnarValue::Scalar(scalar) => Some(scalar.clone()),
                ColumnarValue::Array(_) => None,
            })
            .collect();
        let borrowed: Vec<Option<&ScalarValue>> = literals.iter().map(Option::as_ref).collect();
        let chosen = self.chosen(&args.arg_fields, &borrowed)?;
        let overload = &self.builtin().overloads[chosen.overload];
        let run = match overload.run {
            Run::Strict(run) | Run::Nulls(run) => run,
            Run::Theirs => match &self.theirs {
                Some(theirs) => return theirs.invoke_with_args(args),
                None => return internal_err!("{} was not chosen before it ran", self.builtin),
            },
        };
        let scalar = literals.iter().all(Option::is_some);
        let rows = if scalar { 1 } else { args.number_rows };
        let columns = args.args.iter().zip(&args.arg_fields).enumerate().map(|(at, (arg, field))| {
            taken(
                &arg.to_array(rows)?,
                field,
                *overload.takes.get(at).or(overload.takes.last()).expect("it takes some"),
            )
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        let gives = engine_type(&chosen.gives).expect("functions give the engine's types");
        let _asked = match gives {
            DataType::Text | DataType::Bytea | DataType::Json | DataType::Jsonb => {
                Some(ask_for(self.builtin, &columns, rows)?)
            }
            _ => None,
        };
        let mut builder = ColumnBuilder::new(gives, rows);
        let mut values = Vec::with_capacity(columns.len());
        let (mut since_look, mut made) = (0, 0);
        for row in 0..rows {
            since_look += columns.iter().map(|column| length(column, row)).sum::<u64>();
            if since_look >= PIECE {
                since_look = 0;
                memory::check().map_err(tunnel)?;
            }
            values.clear();
            values.extend(columns.iter().map(|column| array_datum(column, row)));
            let result = match matches!(overload.run, Run::Strict(_)) && values.contains(&Datum::Null) {
                true => Datum::Null,
                false => run(&values).map_err(tunnel)?,
            };
            made += match &result {
                Datum::Text(text) | Datum::Json(text) | Datum::Jsonb(text) => text.len(),
                Datum::Bytea(bytes) => bytes.len(),
                _ => 0,
            };
            if i32::try_from(made).is_err() {
                let message = format!("the results of {} for a batch of rows exceed 2 GB", self.builtin);
                return Err(tunnel(EngineError::new("54000", message)));
            }
            builder.push(result.as_ref());
        }
        let result = builder.finish();
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }
}

/// Bytes of a text or bytea; of anything else none to speak of.
fn length(column: &ArrayRef, row: usize) -> u64 {
    match column.data_type() {
        _ if column.is_null(row) => 0,
        ArrowType::Utf8 => column.as_string::<i32>().value_length(row) as u64,
        ArrowType::Binary => column.as_binary::<i32>().value_length(row) as u64,
        ArrowType::BinaryView => column.as_binary_view().value(row).len() as u64,
        ArrowType::LargeBinary => column.as_binary::<i64>().value_length(row) as u64,
        _ => 0,
    }
}

/// Asks for what a function makes of these: results are no longer than the arguments together, or than so many times
/// that.
fn ask_for(name: &str, columns: &[ArrayRef], rows: usize) -> Result<memory::Asked> {
    let times = match name {
        // A byte may become `\ooo`.
        "encode" | "as_text" | "jsonb_pretty" | "similar_to_escape" => 4,
        // A letter of two bytes may have a capital of three; what escapes nothing by itself is escaped.
        "upper" | "lower" | "initcap" | text::LIKE_PATTERN => 2,
        _ => 1,
    };
    let together = |row| columns.iter().map(|column| length(column, row)).sum::<u64>() * times;
    bounded::ask_for(name, &(0..rows).map(together).collect::<Vec<u64>>())
}

/// Whether a function of this file makes texts of its own, which may be long.
pub(crate) fn makes_texts(function: &ScalarUDF) -> bool {
    let inner = function.inner().as_ref() as &dyn Any;
    let long = |gives: &ArrowType| {
        matches!(gives, ArrowType::Utf8 | ArrowType::Binary | ArrowType::BinaryView | ArrowType::LargeBinary)
    };
    let made = |call: &Call| call.chosen.as_ref().is_some_and(|chosen| long(&chosen.gives));
    inner.is::<Pad>() || inner.is::<AsText>() || inner.downcast_ref::<Call>().is_some_and(made)
}

/// An argument as it is taken.
fn taken(array: &ArrayRef, field: &Field, wanted: Takes) -> Result<ArrayRef> {
    match wanted {
        Takes::Is(data_type) => convert_array(array, data_type),
        Takes::Shown => shown(array, field_type(field)),
    }
}

/// As the text that a client is shown. `data_type`: what the array does not say.
pub(crate) fn shown(array: &ArrayRef, data_type: Option<DataType>) -> Result<ArrayRef> {
    let array = match array.data_type() {
        of if is_array(of) => return arrays::text_array(array, data_type.and_then(DataType::item)),
        of if is_row(of) => return row_text(array),
        _ => engine_array(array).map_err(tunnel)?,
    };
    let _asked = match data_type {
        // A character has four bytes at the most, a blank one.
        Some(DataType::Char(n)) => {
            let padded = |row| if array.is_null(row) { 0 } else { length(&array, row) + u64::from(n) };
            bounded::ask_for("char", &(0..array.len()).map(padded).collect::<Vec<u64>>())?
        }
        _ => ask_for("as_text", std::slice::from_ref(&array), array.len())?,
    };
    let (mut builder, check) = (ColumnBuilder::new(DataType::Text, array.len()), values::decimal::check_of(&array));
    for row in 0..array.len() {
        check().map_err(tunnel)?;
        let text = match (array_datum(&array, row), data_type) {
            (Datum::Null, _) => Datum::Null,
            (Datum::Text(text), Some(DataType::Char(n))) => Datum::Text(padded(&text, n).into()),
            (Datum::Text(text), _) => Datum::Text(text),
            (Datum::Bool(value), _) => Datum::text(if value { "t" } else { "f" }),
            (value, _) => Datum::text(value.to_string()),
        };
        builder.push(text.as_ref());
    }
    Ok(builder.finish())
}

/// A char(n)'s text with the blanks that are not stored.
pub(crate) fn padded(text: &str, n: u32) -> String {
    let missing = (n as usize).saturating_sub(text.chars().count());
    let mut padded = text.to_owned();
    padded.extend(std::iter::repeat_n(' ', missing));
    padded
}

/// Chooses the function that a call names, once its arguments are planned (invariant 3). What is no call of a function
/// in the table comes back as it is.
pub(crate) fn choose(call: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    let inner = call.func.inner().as_ref() as &dyn Any;
    let ours = inner.downcast_ref::<Call>();
    let Some(builtin) = find(call.func.name()) else { return Ok(Expr::ScalarFunction(call)) };
    if ours.is_some_and(|ours| ours.chosen.is_some()) {
        return Ok(Expr::ScalarFunction(call));
    }
    let fields = call.args.iter().map(|arg| Ok(arg.to_field(schema)?.1)).collect::<Result<Vec<FieldRef>>>()?;
    let literals: Vec<Option<ScalarValue>> = call.args.iter().map(literal).collect();
    let given: Vec<Given> = fields
        .iter()
        .zip(&literals)
        .zip(&call.args)
        .map(|((field, literal), arg)| match arg {
            // A literal's type may be written.
            Expr::Literal(ScalarValue::Utf8(_), None) => Given::Open,
            Expr::Literal(ScalarValue::Utf8(_), Some(_)) => Given::Known(field_type(field).unwrap_or(DataType::Text)),
            Expr::Placeholder(Placeholder { field: None, .. }) => Given::Open,
            Expr::Literal(..) => Given::of(field, literal.as_ref()),
            _ => Given::of(field, None),
        })
        .collect();
    let chosen = builtin.choose(&given)?;
    let overload = &builtin.overloads[chosen.overload];
    let wanted = (0..given.len()).map(|at| *overload.takes.get(at).or(overload.takes.last()).expect("it takes some"));
    let args = call.args.into_iter().zip(given).zip(fields.iter()).zip(wanted);
    let args = args.map(|(((arg, given), field), wanted)| argument(arg, &given, field, wanted, builtin.name));
    let args = args.collect::<Result<Vec<Expr>>>()?;
    let strict = !overload.takes.contains(&Takes::Shown);
    if matches!(overload.run, Run::Theirs) && strict && nulls::decide(&args)? {
        return Ok(Expr::Literal(ScalarValue::try_from(&chosen.gives)?, None));
    }
    let func = match overload.run {
        Run::Theirs => ours.and_then(|ours| ours.theirs.clone()).unwrap_or(call.func),
        _ => {
            let signature = Signature::user_defined(Volatility::Immutable);
            let call = Call { builtin: builtin.name, chosen: Some(chosen), theirs: None, signature };
            Arc::new(ScalarUDF::from(call))
        }
    };
    Ok(Expr::ScalarFunction(ScalarFunction { func, args }))
}

/// A call of a function of the table.
pub(crate) fn called(name: &'static str, args: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
    let signature = Signature::user_defined(Volatility::Immutable);
    let call = Call { builtin: name, chosen: None, theirs: None, signature };
    choose(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(call)), args), schema)
}

/// The value of a constant, as far as it is one now.
fn literal(expr: &Expr) -> Option<ScalarValue> {
    crate::functions::convert::constant(expr)
}

/// An argument as the function takes it.
fn argument(arg: Expr, given: &Given, field: &Field, wanted: Takes, function: &str) -> Result<Expr> {
    let to = match wanted {
        Takes::Is(to) => to,
        Takes::Shown => {
            return Ok(match (given, arg) {
                (Given::Open, Expr::Literal(value, _)) => Expr::Literal(convert_scalar(&value, DataType::Text)?, None),
                (Given::Open, arg) => argument(arg, given, field, Takes::Is(DataType::Text), function)?,
                (Given::Known(DataType::Text | DataType::Varchar(_)) | Given::Other(ArrowType::Utf8), arg) => arg,
                (Given::Known(DataType::Char(n)), arg) => chars::with_blanks(arg, *n)?,
                (_, _) if chars::is_array_of_char(field) => return Err(chars::array_refused()),
                (_, arg) => as_text(arg),
            });
        }
    };
    Ok(match (given, arg) {
        (Given::Open, Expr::Placeholder(Placeholder { id, field: None })) => {
            Expr::Placeholder(Placeholder { id, field: Some(Arc::new(field_of("", to, true))) })
        }
        (Given::Open, Expr::Literal(value, _)) => Expr::Literal(convert_scalar(&value, to)?, None),
        // The function counts blanks, or shows them.
        (Given::Known(DataType::Char(n)), arg) if function == "octet_length" => chars::with_blanks(arg, *n)?,
        (_, arg) if field.data_type() == &arrow_type(to) => arg,
        (_, arg) => convert(arg, to),
    })
}

/// `expr`, a char(n), as a text with the blanks at its end.
pub(crate) fn pad(expr: Expr, n: u32) -> Expr {
    let pad = Pad { n, signature: Signature::any(1, Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(pad)), vec![expr]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Pad {
    n: u32,
    signature: Signature,
}

impl ScalarUDFImpl for Pad {
    fn name(&self) -> &str {
        "pad_char"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &args.args[0] {
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(shown(array, Some(DataType::Char(self.n)))?)),
            ColumnarValue::Scalar(value) => {
                let padded = shown(&value.to_array()?, Some(DataType::Char(self.n)))?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&padded, 0)?))
            }
        }
    }
}

/// `expr` as the text that it is shown as: arrays, rows.
pub(crate) fn as_text(expr: Expr) -> Expr {
    as_text_of(expr, None)
}

/// The same, of values of a type that Arrow's does not tell.
pub(crate) fn as_text_of(expr: Expr, of: Option<DataType>) -> Expr {
    let name = of.map_or("as_text".to_owned(), |of| format!("as_text {of:?}"));
    let shown = AsText { name, of, signature: Signature::any(1, Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(shown)), vec![expr]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AsText {
    name: String,
    of: Option<DataType>,
    signature: Signature,
}

impl ScalarUDFImpl for AsText {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = matches!(args.args[0], ColumnarValue::Scalar(_));
        let shown = shown(&args.args[0].to_array(if scalar { 1 } else { args.number_rows })?, self.of)?;
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&shown, 0)?));
        }
        Ok(ColumnarValue::Array(shown))
    }
}

/// Rows as text: `(1,"a b",)`.
pub fn row_text(array: &ArrayRef) -> Result<ArrayRef> {
    let rows = array.as_struct();
    let columns = rows.columns().iter().zip(rows.fields()).map(|(column, field)| match column.data_type() {
        ArrowType::Null => Ok(Arc::new(StringArray::new_null(column.len())) as ArrayRef),
        _ => shown(column, field_type(field)),
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
    let row = |row: usize| {
        if rows.is_null(row) {
            return None;
        }
        let fields: Vec<String> = columns
            .iter()
            .map(|column| match column.is_null(row) {
                true => String::new(),
                false => {
                    let mut field = String::new();
                    write_field(&mut field, column.as_string::<i32>().value(row)).expect("a text grows");
                    field
                }
            })
            .collect();
        Some(format!("({})", fields.join(",")))
    };
    Ok(Arc::new((0..rows.len()).map(row).collect::<StringArray>()))
}

/// A regular expression, of an operator, as it is matched here. `any_case`: in small letters and capitals alike.
pub(crate) fn pattern(expr: Expr, any_case: bool, schema: &DFSchema) -> Result<Expr> {
    let flags = any_case.then(|| datafusion::logical_expr::lit("i"));
    called(regex::PATTERN, std::iter::once(expr).chain(flags).collect(), schema)
}

/// The two sides of ILIKE as those of LIKE: PostgreSQL compares the small letters of both.
pub(crate) fn in_small_letters(sides: [Expr; 2], schema: &DFSchema) -> Result<[Expr; 2]> {
    let [text, pattern] = sides.map(|side| called("lower", vec![side], schema));
    Ok([text?, pattern?])
}

/// A pattern of LIKE, as it is matched here: escaped by backslashes, one behind the other.
pub(crate) fn like_pattern(expr: Expr, escape: Option<char>, schema: &DFSchema) -> Result<Expr> {
    let is_made = |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if call.func.name() == text::LIKE_PATTERN);
    let of_small_letters =
        matches!(&expr, Expr::ScalarFunction(call) if call.func.name() == "lower" && call.args.iter().all(is_made));
    if is_made(&expr) || of_small_letters {
        return Ok(expr);
    }
    let escape = escape.map(|c| datafusion::logical_expr::lit(c.to_string()));
    called(text::LIKE_PATTERN, std::iter::once(expr).chain(escape).collect(), schema)
}

/// What a kernel was promised of its arguments' types does not hold.
fn wrong_arguments(values: &[Datum]) -> EngineError {
    EngineError::internal(format!("a function was called with {values:?}"))
}

/// A numeric of an argument.
fn decimal(value: &Datum) -> terrace_engine::Result<Decimal> {
    match value {
        Datum::Decimal(v) => Ok(Decimal::decode(v)),
        other => Err(wrong_arguments(std::slice::from_ref(other))),
    }
}

/// A numeric that is an answer.
fn given(value: Decimal) -> terrace_engine::Result<Datum> {
    Ok(Datum::Decimal(value.encode()))
}
