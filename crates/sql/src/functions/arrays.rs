//! Arrays as values: how they are written out, and as text. What they are compared by is in [`keys`], `= ANY` and its
//! kind in [`quantified`], functions and operators in [`calls`].
//!
//! 1. An array is a list of Arrow's of one dimension, whose first item has the number 1. What would be another one is
//!    refused (0A000).
//! 2. `x = ANY (ARRAY[a, b])` is `x IN (a, b)`, and `x <> ALL` is `NOT IN`: so the same holds of NULL. ANY of a query
//!    is IN of it.
//!
//! Source: PostgreSQL 15 documentation, "Arrays" (8.15.6) and "Row and Array Comparisons".
use crate::error::tunnel;
use crate::functions::arithmetic::united;
use crate::functions::builtin::{shown, type_name};
use crate::functions::chars;
use crate::functions::convert::{convert, convert_scalar, is_open};
use crate::values::decimal::is_decimal;
use crate::values::{arrow_type, engine_type, field_of, field_type, is_zoned};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray, UInt32Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{interleave, take};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::sync::Arc;
use terrace_engine::types::array::write_item;
use terrace_engine::{DataType, EngineError};

pub(crate) mod calls;
pub(crate) mod keys;
pub(crate) mod ordinals;
pub(crate) mod quantified;

/// What is sought in an array, by a name that no user can write: `x = ANY (ARRAY[a, b])` is `x IN (a, b)`, but for how
/// types are settled.
pub(crate) const OF_ARRAY: &str = "\0of array";

/// The type of the items of an array; `None`: it is none, or one of the system's alone.
pub(crate) fn item_type(of: &ArrowType) -> Option<DataType> {
    match of {
        ArrowType::List(_) => engine_type(of)?.item(),
        _ => None,
    }
}

/// Invariant 1.
pub(crate) fn several_dimensions() -> EngineError {
    EngineError::unsupported("arrays of several dimensions are not supported")
}

/// `ARRAY[a, b, ..]`. The items are of one type, or become it: numbers the widest, quoted literals what is beside them.
pub(crate) fn literal(items: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
    let mut common: Option<ArrowType> = None;
    for item in &items {
        let given = item.get_type(schema)?;
        if given == ArrowType::Null || matches!(item, Expr::Literal(ScalarValue::Utf8(_), _)) {
            continue;
        }
        common = Some(match common {
            Some(known) if known != given => wider(known, given)?,
            _ => given,
        });
    }
    let common = common.unwrap_or(ArrowType::Utf8);
    let item = text_type(&items, schema)?;
    let to = match engine_type(&common) {
        Some(DataType::Array(_)) => return Err(tunnel(several_dimensions())),
        Some(to) => to,
        None => {
            return Err(tunnel(EngineError::unsupported(format!(
                "arrays of {} are not supported",
                type_name(&common)
            ))));
        }
    };
    let made = |item: Expr| match (&item, item.get_type(schema)?) {
        (Expr::Placeholder(Placeholder { id, field: None }), _) => {
            let field = Some(Arc::new(field_of("", if to.is_text() { DataType::Text } else { to }, true)));
            Ok(Expr::Placeholder(Placeholder { id: id.clone(), field }))
        }
        (_, given) if given == arrow_type(to) => Ok(item),
        (Expr::Literal(scalar, _), _) => Ok(Expr::Literal(convert_scalar(scalar, to)?, None)),
        _ => Ok(convert(item, to)),
    };
    let items = items.into_iter().map(made).collect::<Result<Vec<_>>>()?;
    let item = if to.is_text() { item } else { to };
    let make = MakeArray { of: arrow_type(to), item, signature: Signature::variadic_any(Volatility::Immutable) };
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

/// Of two types of numbers, of times, or of texts.
fn wider(a: ArrowType, b: ArrowType) -> Result<ArrowType> {
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
    of: ArrowType,
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
        Ok(ArrowType::new_list(self.of.clone(), true))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = Field::new(self.name(), self.return_type(&[])?, true);
        Ok(Arc::new(chars::array_field(field, args.arg_fields)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (rows, width) = (args.number_rows, args.args.len());
        let columns = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<ArrayRef>>>()?;
        let values = if width == 0 {
            datafusion::arrow::array::new_empty_array(&self.of)
        } else {
            let columns: Vec<&dyn Array> = columns.iter().map(|c| c.as_ref()).collect();
            let places: Vec<(usize, usize)> = (0..rows).flat_map(|row| (0..width).map(move |c| (c, row))).collect();
            interleave(&columns, &places)?
        };
        let field = Arc::new(Field::new_list_field(self.of.clone(), true));
        let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(width, rows));
        Ok(ColumnarValue::Array(Arc::new(ListArray::try_new(field, offsets, values, None)?)))
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
        match &types[0] {
            ArrowType::List(item) => Ok(item.data_type().clone()),
            other => internal_err!("{other} is no array"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = args.args[0].to_array(args.number_rows)?;
        let lists = array.as_list::<i32>();
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
    let lists = array.as_list::<i32>();
    let text = |items: Option<ArrayRef>| -> Result<Option<String>> {
        let Some(items) = items else { return Ok(None) };
        let items = shown(&items, of)?;
        let mut text = String::from("{");
        for (at, item) in items.as_string::<i32>().iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            match item {
                None => text.push_str("NULL"),
                Some(item) => write_item(&mut text, item).expect("a string grows"),
            }
        }
        text.push('}');
        Ok(Some(text))
    };
    Ok(Arc::new(lists.iter().map(text).collect::<Result<StringArray>>()?))
}
