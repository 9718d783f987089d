//! What WITH ORDINALITY and LEFT JOIN add to lists that are taken apart.
use crate::columns::by_columns;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, new_null_array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Doing {
    /// The numbers of the rows that lists make beside each other, from 1. `padded`: of none, a NULL.
    Number { padded: bool },
    /// The list, and a NULL where it has no items.
    Pad,
}

/// The numbers of the rows that these lists make beside each other. `padded`: of none, a NULL.
pub(crate) fn numbers(lists: Vec<Expr>, padded: bool) -> Expr {
    call(Doing::Number { padded }, lists)
}

/// A list that makes at least one row.
pub(crate) fn padded(list: Expr) -> Expr {
    call(Doing::Pad, vec![list])
}

fn call(doing: Doing, lists: Vec<Expr>) -> Expr {
    let signature = Signature::any(lists.len(), Volatility::Immutable);
    // Upstream: common subexpressions are told apart by their functions' names.
    let udf = OfLists { name: format!("{doing:?} lists"), doing, signature };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(udf)), lists))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfLists {
    name: String,
    doing: Doing,
    signature: Signature,
}

fn length(list: &ArrayRef, row: usize) -> usize {
    let list = list.as_list::<i32>();
    if list.is_null(row) { 0 } else { list.value_length(row) as usize }
}

fn numbered(lists: &[ArrayRef], padded: bool) -> ArrayRef {
    let rows = lists.first().map_or(0, |list| list.len());
    let longest = |row| lists.iter().map(|list| length(list, row)).max().unwrap_or(0);
    let (mut numbers, mut lengths) = (vec![], vec![]);
    for most in (0..rows).map(longest) {
        numbers.extend((1..=most as i64).map(Some));
        if most == 0 && padded {
            numbers.push(None);
        }
        lengths.push(if padded { most.max(1) } else { most });
    }
    let field = Arc::new(Field::new_list_field(ArrowType::Int64, true));
    let values = Arc::new(Int64Array::from(numbers));
    Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(lengths), values, None))
}

fn filled(list: &ArrayRef) -> Result<ArrayRef> {
    let lists = list.as_list::<i32>();
    let ArrowType::List(field) = lists.data_type() else { return internal_err!("{} is no list", list.data_type()) };
    let null = new_null_array(field.data_type(), 1);
    let parts: Vec<ArrayRef> =
        lists.iter().map(|items| items.filter(|items| !items.is_empty()).unwrap_or_else(|| null.clone())).collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    let values = if parts.is_empty() { null.slice(0, 0) } else { concat(&parts)? };
    Ok(Arc::new(ListArray::new(field.clone(), OffsetBuffer::from_lengths(lengths), values, None)))
}

impl ScalarUDFImpl for OfLists {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(match self.doing {
            Doing::Number { .. } => ArrowType::new_list(ArrowType::Int64, true),
            Doing::Pad => types[0].clone(),
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(match self.doing {
            Doing::Number { .. } => Arc::new(Field::new(self.name(), self.return_type(&[])?, true)),
            Doing::Pad => args.arg_fields[0].clone(),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_columns(&args, |columns| match self.doing {
            Doing::Number { padded } => Ok(numbered(columns, padded)),
            Doing::Pad => filled(&columns[0]),
        })
    }
}
