//! Arrays as values: how they are written out, and as text. What they are compared by is in [`keys`], `= ANY` and its
//! kind in [`quantified`], functions and operators in [`calls`].
//!
//! 1. Arrays have the form that [`crate::values::arrays`] says. Lists become arrays where they are shown to users
//!    ([`array`], [`merged`]), and arrays lists where they are taken apart ([`list`]).
//! 2. `x = ANY (ARRAY[a, b])` is `x IN (a, b)`, and `x <> ALL` is `NOT IN`: so the same holds of NULL. ANY of a query
//!    is IN of it.
//!
//! Source: PostgreSQL 15 documentation, "Arrays" (8.15.6) and "Row and Array Comparisons".
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::functions::arithmetic::united;
use crate::functions::builtin::{shown, type_name};
use crate::functions::chars;
use crate::functions::convert::{convert, convert_scalar, is_open};
use crate::memory;
use crate::values::arrays::{self as values, Arrays, is_array, items_of};
use crate::values::decimal::is_decimal;
use crate::values::{arrow_type, engine_type, field_of, field_type, is_void, is_zoned};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray, UInt32Array};
use datafusion::arrow::compute::{interleave, take};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::fmt::Write;
use std::sync::Arc;
use terrace_engine::types::array::write_item;
use terrace_engine::types::{Dimension, Shape};
use terrace_engine::{DataType, EngineError};

pub(crate) mod calls;
pub(crate) mod keys;
pub(crate) mod matches;
pub(crate) mod ordinals;
pub(crate) mod quantified;

/// What is sought in an array, by a name that no user can write: `x = ANY (ARRAY[a, b])` is `x IN (a, b)`, but for how
/// types are settled.
pub(crate) const OF_ARRAY: &str = "\0of array";

/// The type of the items of an array; `None`: it is none, or one of the system's alone.
pub(crate) fn item_type(of: &ArrowType) -> Option<DataType> {
    if is_array(of) { engine_type(of)?.item() } else { None }
}

pub(crate) fn no_arrays_of_void() -> EngineError {
    EngineError::new("42704", "could not find array type for data type void")
}

/// `ARRAY[a, b, ..]`. The items are of one type, or become it: numbers the widest, quoted literals what is beside them.
/// Of arrays it is one whose first dimension they are.
pub(crate) fn literal(items: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
    let mut common: Option<ArrowType> = None;
    for item in &items {
        let given = item.get_type(schema)?;
        if is_void(item.to_field(schema)?.1.as_ref()) {
            return Err(tunnel(no_arrays_of_void()));
        }
        if given == ArrowType::Null || matches!(item, Expr::Literal(ScalarValue::Utf8(_), _)) {
            continue;
        }
        common = Some(match common {
            Some(known) if known != given => wider(known, given)?,
            _ => given,
        });
    }
    let common = common.unwrap_or(ArrowType::Utf8);
    let Some(to) = engine_type(&common) else {
        return Err(tunnel(EngineError::unsupported(format!("arrays of {} are not supported", type_name(&common)))));
    };
    let item = text_type(&items, schema)?;
    let whole = |of: DataType| if of.is_text() { DataType::Text } else { of };
    let made = |item: Expr| match (&item, item.get_type(schema)?) {
        (Expr::Placeholder(Placeholder { id, field: None }), _) => {
            let field = Some(Arc::new(field_of("", whole(to), true)));
            Ok(Expr::Placeholder(Placeholder { id: id.clone(), field }))
        }
        (_, given) if given == arrow_type(to) => Ok(item),
        (Expr::Literal(scalar, _), _) => Ok(Expr::Literal(convert_scalar(scalar, to)?, None)),
        _ => Ok(convert(item, to)),
    };
    let items = items.into_iter().map(made).collect::<Result<Vec<_>>>()?;
    let item = if to.is_text() { item } else { to };
    let (nested, of) = (to.item().is_some(), arrow_type(to.item().unwrap_or(to)));
    let make = MakeArray { of, nested, item, signature: Signature::variadic_any(Volatility::Immutable) };
    let make = match items.is_empty() {
        true => MakeArray { signature: Signature::nullary(Volatility::Immutable), ..make },
        false => make,
    };
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(make)), items)))
}

/// Which kind of text an array of texts is of: the first item's that has a type.
fn text_type(items: &[Expr], schema: &DFSchema) -> Result<DataType> {
    let Some(first) = items.iter().find(|item| !is_open(item)) else { return Ok(DataType::Text) };
    let of = field_type(first.to_field(schema)?.1.as_ref());
    Ok(of.filter(|of| of.is_text()).unwrap_or(DataType::Text))
}

/// Two arrays whose items are texts of two types: their names. PostgreSQL has no operator for these.
pub(crate) fn unlike(left: &Field, right: &Field) -> Option<[&'static str; 2]> {
    let of_texts = |field: &Field| field_type(field).filter(|of| of.item().is_some_and(DataType::is_text));
    let names = [of_texts(left)?, of_texts(right)?].map(DataType::base_name);
    (names[0] != names[1]).then_some(names)
}

/// Of two types of numbers, of times, or of texts, or of arrays of such.
fn wider(a: ArrowType, b: ArrowType) -> Result<ArrowType> {
    if let (Some(own), Some(other)) = (items_of(&a), items_of(&b)) {
        let (own, other) = (own.data_type().clone(), other.data_type().clone());
        return if own == other { Ok(values::type_of(own)) } else { wider(own, other).map(values::type_of) };
    }
    // `string_agg` answers the large one.
    let text = |t: &ArrowType| matches!(t, ArrowType::Utf8 | ArrowType::LargeUtf8);
    if text(&a) && text(&b) {
        return Ok(ArrowType::Utf8);
    }
    let rank = |t: &ArrowType| match t {
        ArrowType::Int16 => Some(0),
        ArrowType::Int32 => Some(1),
        ArrowType::Int64 => Some(2),
        of if of.is_decimal() || is_decimal(of) => Some(3),
        ArrowType::Float32 => Some(4),
        ArrowType::Float64 => Some(5),
        _ => None,
    };
    let time = |t: &ArrowType| match t {
        ArrowType::Date32 => Some(0),
        ArrowType::Timestamp(_, None) => Some(1),
        _ if is_zoned(t) => Some(2),
        _ => None,
    };
    if let (Some(x), Some(y)) = (time(&a), time(&b)) {
        return Ok(if x >= y { a } else { b });
    }
    match (rank(&a), rank(&b)) {
        (Some(3), Some(..=3)) | (Some(..=2), Some(3)) => Ok(united([&a, &b].into_iter())),
        (Some(x), Some(y)) => Ok(if x >= y { a } else { b }),
        _ => {
            let name = |t: &ArrowType| engine_type(t).map_or_else(|| t.to_string(), |t| t.base_name().to_owned());
            let message = format!("ARRAY types {} and {} cannot be matched", name(&a), name(&b));
            Err(tunnel(EngineError::new("42804", message)))
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MakeArray {
    /// Of the items, be they those of arrays.
    of: ArrowType,
    /// Whether it is made of arrays.
    nested: bool,
    /// PostgreSQL's type of an item.
    item: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for MakeArray {
    fn name(&self) -> &str {
        "array"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        Ok(values::type_of(self.of.clone()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = Field::new(self.name(), self.return_type(&[])?, true);
        if !self.nested {
            return Ok(Arc::new(chars::array_field(field, args.arg_fields)));
        }
        let item = |field: &FieldRef| field_type(field)?.item().map(|of| Arc::new(field_of("", of, true)));
        let items: Vec<FieldRef> = args.arg_fields.iter().filter_map(item).collect();
        Ok(Arc::new(chars::array_field(field, &items)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (rows, width) = (args.number_rows, args.args.len());
        let columns = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<ArrayRef>>>()?;
        if self.nested {
            return Ok(ColumnarValue::Array(self.outer(&columns, rows)?));
        }
        let values = if width == 0 {
            datafusion::arrow::array::new_empty_array(&self.of)
        } else {
            let columns: Vec<&dyn Array> = columns.iter().map(|c| c.as_ref()).collect();
            let places: Vec<(usize, usize)> = (0..rows).flat_map(|row| (0..width).map(move |c| (c, row))).collect();
            interleave(&columns, &places)?
        };
        let shape = Shape::plain(width).map_err(tunnel)?;
        Ok(ColumnarValue::Array(values::made(values, std::iter::repeat_n(Some(shape), rows))))
    }
}

impl MakeArray {
    /// Arrays of arrays.
    fn outer(&self, columns: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let arrays: Option<Vec<Arrays>> = columns.iter().map(|column| Arrays::of(column)).collect();
        let Some(arrays) = arrays else { return internal_err!("arrays were told") };
        let (mut places, mut shapes) = (vec![], Vec::with_capacity(rows));
        for row in 0..rows {
            memory::check().map_err(tunnel)?;
            let of = |column: &Arrays| column.lists().is_valid(row).then(|| column.shape(row));
            let shape = outer_shape(arrays.iter().map(of)).map_err(tunnel)?;
            if !shape.is_empty() {
                for (at, column) in arrays.iter().enumerate() {
                    let offsets = column.lists().value_offsets();
                    places.extend((offsets[row]..offsets[row + 1]).map(|item| (at, item as usize)));
                }
            }
            shapes.push(Some(shape));
        }
        let items: Vec<&dyn Array> = arrays.iter().map(|column| column.lists().values().as_ref()).collect();
        Ok(values::made(interleave(&items, &places)?, shapes))
    }
}

/// The shape of an array that is made of these, which are alike (2202E); `None`: NULL.
fn outer_shape(parts: impl Iterator<Item = Option<Shape>>) -> terrace_engine::Result<Shape> {
    let (mut first, mut count, mut bare): (Option<Shape>, i32, bool) = (None, 0, false);
    let unlike =
        || EngineError::new("2202E", "multidimensional arrays must have array expressions with matching dimensions");
    for part in parts {
        count += 1;
        match (part.filter(|part| !part.is_empty()), &first) {
            (None, _) => bare = true,
            (Some(part), Some(first)) if part != *first => return Err(unlike()),
            (Some(part), _) => first = Some(part),
        }
    }
    let Some(inner) = first else { return Shape::new(&[]) };
    let outer = Dimension { length: count, first: 1 };
    let made = Shape::new(&[&[outer], &inner[..]].concat())?;
    if bare { Err(unlike()) } else { Ok(made) }
}

/// What becomes of lists and arrays (invariant 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    Array,
    List,
    /// An array of the arrays of a list.
    Merged,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Formed {
    form: Form,
    /// Upstream: common subexpressions are told apart by their functions' names.
    name: String,
    signature: Signature,
}

fn formed(form: Form, expr: Expr) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    let udf = Formed { form, name: format!("as {form:?}"), signature };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(udf)), vec![expr]))
}

/// A list as an array.
pub(crate) fn array(list: Expr) -> Expr {
    formed(Form::Array, list)
}

/// The items of an array, or of a list, as a list.
pub(crate) fn list(array: Expr) -> Expr {
    formed(Form::List, array)
}

/// What an aggregate has gathered, of arrays or of what is none, as an array. 22004 and 2202E of arrays.
pub(crate) fn gathered(list: Expr, schema: &DFSchema) -> Result<Expr> {
    let of = list.get_type(schema)?;
    let of_arrays = items_of(&of).is_some_and(|item| is_array(item.data_type()));
    Ok(formed(if of_arrays { Form::Merged } else { Form::Array }, list))
}

/// An array of the arrays of a list.
fn merged(lists: &ListArray) -> Result<ArrayRef> {
    let Some(inner) = Arrays::of(lists.values()) else { return internal_err!("a list of arrays") };
    let (mut shapes, mut places) = (Vec::with_capacity(lists.len()), vec![]);
    for row in 0..lists.len() {
        if lists.is_null(row) {
            shapes.push(None);
            continue;
        }
        memory::check().map_err(tunnel)?;
        let own = lists.value_offsets()[row] as usize..lists.value_offsets()[row + 1] as usize;
        let mut first: Option<Shape> = None;
        for at in own.clone() {
            let wrong = |state, message: &str| Err(tunnel(EngineError::new(state, message.to_owned())));
            if inner.lists().is_null(at) {
                return wrong("22004", "cannot accumulate null arrays");
            }
            match (inner.shape(at), &first) {
                (shape, _) if shape.is_empty() => return wrong("2202E", "cannot accumulate empty arrays"),
                (shape, Some(first)) if shape != *first => {
                    return wrong("2202E", "cannot accumulate arrays of different dimensionality");
                }
                (shape, _) => first = Some(shape),
            }
            let offsets = inner.lists().value_offsets();
            places.extend((offsets[at]..offsets[at + 1]).map(|item| item as u32));
        }
        shapes.push(Some(outer_shape(own.map(|_| first)).map_err(tunnel)?));
    }
    let items = take(inner.lists().values(), &UInt32Array::from(places), None)?;
    Ok(values::made(items, shapes))
}

impl ScalarUDFImpl for Formed {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        let Some(item) = items_of(&types[0]) else { return internal_err!("{} is no array", types[0]) };
        Ok(match self.form {
            Form::Array => values::type_of(item.data_type().clone()),
            Form::List => ArrowType::new_list(item.data_type().clone(), true),
            Form::Merged => item.data_type().clone(),
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let own = &args.arg_fields[0];
        let field = Field::new(self.name(), self.return_type(&[own.data_type().clone()])?, true);
        Ok(Arc::new(field.with_metadata(own.metadata().clone())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_columns(&args, |columns| {
            let Some(arrays) = Arrays::of(&columns[0]) else { return internal_err!("it is no array") };
            match self.form {
                Form::Array if !matches!(columns[0].data_type(), ArrowType::List(_)) => Ok(columns[0].clone()),
                Form::Array => Ok(values::of_lists(arrays.lists())),
                Form::Merged => merged(arrays.lists()),
                Form::List => {
                    let (_, offsets, items, nulls) = arrays.lists().clone().into_parts();
                    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
                    Ok(Arc::new(ListArray::try_new(field, offsets, items, nulls)?))
                }
            }
        })
    }
}

/// The one item of an array, or NULL of none. 21000 where there are more: they are a query's values.
pub(crate) fn only_item(array: Expr) -> Expr {
    let udf = OnlyItem { signature: Signature::any(1, Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(udf)), vec![array]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OnlyItem {
    signature: Signature,
}

impl ScalarUDFImpl for OnlyItem {
    fn name(&self) -> &str {
        "only_item"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        match items_of(&types[0]) {
            Some(item) => Ok(item.data_type().clone()),
            None => internal_err!("{} is no array", types[0]),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = args.args[0].to_array(args.number_rows)?;
        let Some(arrays) = Arrays::of(&array) else { return internal_err!("it is no array") };
        let lists = arrays.lists();
        let place = |row: usize| match (lists.is_null(row), lists.value_length(row)) {
            (true, _) | (_, 0) => Ok(None),
            (_, 1) => Ok(Some(lists.value_offsets()[row] as u32)),
            _ => {
                let message = "more than one row returned by a subquery used as an expression";
                Err(tunnel(EngineError::new("21000", message)))
            }
        };
        let places = (0..lists.len()).map(place).collect::<Result<UInt32Array>>()?;
        Ok(ColumnarValue::Array(take(lists.values(), &places, None)?))
    }
}

/// Arrays as text: `{1,"b c",NULL}`. `of`: the items' type where the array does not say it.
pub(crate) fn text_array(array: &ArrayRef, of: Option<DataType>) -> Result<ArrayRef> {
    let Some(arrays) = Arrays::of(array) else { return internal_err!("{} is no array", array.data_type()) };
    let text = |row: usize| -> Result<Option<String>> {
        if arrays.lists().is_null(row) {
            return Ok(None);
        }
        let items = shown(&arrays.lists().value(row), of)?;
        let (items, mut text) = (items.as_string::<i32>(), String::new());
        let item = |out: &mut String, at: usize| match items.is_null(at) {
            true => out.write_str("NULL"),
            false => write_item(out, items.value(at)),
        };
        arrays.shape(row).write_text(&mut text, item).expect("a string grows");
        Ok(Some(text))
    };
    Ok(Arc::new((0..array.len()).map(text).collect::<Result<StringArray>>()?))
}
