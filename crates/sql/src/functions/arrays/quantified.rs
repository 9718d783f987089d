//! `x = ANY (array)`, `x < ALL (array)` and their kind.
//!
//! 1. Of `= ANY` and `<> ALL`, what is compared with an array that is known before the plan runs becomes IN and NOT IN
//!    of its items, if these are of its type: so an index is used.
//! 2. Otherwise the items are compared one by one, numbers and times in the type that both become. Of no items ANY is
//!    false and ALL is true. NULL among them, or beside them, makes unknown what the others do not decide.
use super::item_type;
use super::keys::item_key;
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::functions::compared::wrap_of;
use crate::functions::convert::{convert, convert_scalar, datum_to_compare};
use crate::memory;
use crate::values::arrays::Arrays;
use crate::values::{array_datum, arrow_type, engine_array, engine_type};
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::cmp::Ordering;
use std::sync::Arc;
use terrace_engine::{DataType, Datum, EngineError};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Compare {
    Equal,
    Differs,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Compare {
    fn of(symbol: &str) -> Option<Compare> {
        Some(match symbol {
            "=" => Compare::Equal,
            "<>" => Compare::Differs,
            "<" => Compare::Less,
            "<=" => Compare::AtMost,
            ">" => Compare::Greater,
            ">=" => Compare::AtLeast,
            _ => return None,
        })
    }

    fn holds(self, order: Ordering) -> bool {
        match self {
            Compare::Equal => order.is_eq(),
            Compare::Differs => order.is_ne(),
            Compare::Less => order.is_lt(),
            Compare::AtMost => order.is_le(),
            Compare::Greater => order.is_gt(),
            Compare::AtLeast => order.is_ge(),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Quantified {
    name: String,
    compare: Compare,
    all: bool,
    /// Blanks at an item's end do not count.
    of_char: bool,
    signature: Signature,
}

/// `value symbol ANY (array)`, or ALL; `None`: there is no such comparison here. `of_char`: blanks at an item's end do
/// not count.
pub(crate) fn quantified(symbol: &str, all: bool, of_char: bool, array: Expr, value: Expr) -> Option<Expr> {
    let compare = Compare::of(symbol)?;
    // Upstream: common subexpressions are told apart by their functions' names.
    let name = format!("{symbol} {}{}", if all { "all" } else { "any" }, if of_char { " char" } else { "" });
    let udf = Quantified { name, compare, all, of_char, signature: Signature::any(2, Volatility::Immutable) };
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(udf)), vec![array, value])))
}

fn is_whole(of: DataType) -> bool {
    matches!(of, DataType::Int2 | DataType::Int4 | DataType::Int8)
}

fn is_float(of: DataType) -> bool {
    matches!(of, DataType::Float4 | DataType::Float8)
}

/// What two values are compared as; `None`: as they are.
fn common(a: DataType, b: DataType) -> Option<DataType> {
    let exact = |of: DataType| is_whole(of) || matches!(of, DataType::Numeric(_));
    let time = |of: DataType| matches!(of, DataType::Date | DataType::Timestamp | DataType::Timestamptz);
    match (a, b) {
        _ if a == b => None,
        _ if is_whole(a) && is_whole(b) => Some(DataType::Int8),
        _ if exact(a) && exact(b) => Some(DataType::Numeric(None)),
        _ if is_float(a) || is_float(b) => Some(DataType::Float8),
        (DataType::Timestamptz, _) | (_, DataType::Timestamptz) if time(a) && time(b) => Some(DataType::Timestamptz),
        _ if time(a) && time(b) => Some(DataType::Timestamp),
        _ => None,
    }
}

/// A value as it is compared.
fn as_common(value: Datum, to: Option<DataType>) -> Result<Datum> {
    Ok(match (value, to) {
        (value, Some(to)) => datum_to_compare(value, to).map_err(tunnel)?,
        (value, None) => value,
    })
}

fn order(a: &Datum, b: &Datum) -> Result<Ordering> {
    if let (Datum::Jsonb(_), Datum::Jsonb(_)) = (a, b) {
        let (mut own, mut other) = (vec![], vec![]);
        item_key(&mut own, a.as_ref())?;
        item_key(&mut other, b.as_ref())?;
        return Ok(own.cmp(&other));
    }
    Ok(a.as_ref().cmp_key(b.as_ref()))
}

impl Quantified {
    fn is_membership(&self) -> bool {
        matches!((self.compare, self.all), (Compare::Equal, false) | (Compare::Differs, true))
    }

    /// Invariant 2.
    fn decide(&self, value: &Datum, items: &[Datum]) -> Result<Option<bool>> {
        let mut unknown = false;
        for item in items {
            if value.is_null() || item.is_null() {
                unknown = true;
            } else if self.compare.holds(order(value, item)?) != self.all {
                return Ok(Some(!self.all));
            }
        }
        Ok((!unknown).then_some(self.all))
    }

    fn compute(&self, lists: &ArrayRef, values: &ArrayRef) -> Result<ArrayRef> {
        let values = engine_array(values).map_err(tunnel)?;
        let (Some(item), Some(value)) = (item_type(lists.data_type()), engine_type(values.data_type())) else {
            return internal_err!("{} of {} and {}", self.name, lists.data_type(), values.data_type());
        };
        let to = common(item, value);
        let (mut since_look, mut items) = (0, vec![]);
        let Some(arrays) = Arrays::of(lists) else { return internal_err!("{} is no array", lists.data_type()) };
        let row = |row: usize| {
            let list = arrays.lists();
            if list.is_null(row) {
                return Ok(None);
            }
            let list = list.value(row);
            since_look += list.len();
            if since_look > 1 << 16 {
                since_look = 0;
                memory::check().map_err(tunnel)?;
            }
            items.clear();
            for at in 0..list.len() {
                items.push(match array_datum(&list, at) {
                    Datum::Text(text) if self.of_char => Datum::text(text.trim_end_matches(' ')),
                    item => as_common(item, to)?,
                });
            }
            self.decide(&as_common(array_datum(&values, row), to)?, &items)
        };
        Ok(Arc::new((0..lists.len()).map(row).collect::<Result<BooleanArray>>()?))
    }

    /// The items as what they are compared with, and that; `None`: they are not of its type (invariant 1).
    fn listed(&self, array: &ScalarValue, value: Expr, given: &ArrowType) -> Result<Option<(Vec<Expr>, Expr)>> {
        let Some(arrays) = Arrays::of_scalar(array) else { return Ok(None) };
        let list = arrays.lists();
        let (Some(item), Some(of)) = (item_type(list.data_type()), engine_type(given)) else { return Ok(None) };
        let wanted = match (item, of) {
            (DataType::Numeric(_), DataType::Numeric(_)) => DataType::Numeric(None),
            _ if item == of || (is_whole(item) && is_whole(of)) => of,
            _ => return Ok(None),
        };
        let value = if *given == arrow_type(wanted) { value } else { convert(value, wanted) };
        let values = list.value(0);
        let _asked = memory::ask("an array", values.len() as u64 * memory::LISTED).map_err(tunnel)?;
        let mut items = Vec::with_capacity(values.len());
        for at in 0..values.len() {
            let item = match ScalarValue::try_from_array(&values, at)? {
                ScalarValue::Utf8(Some(text)) if self.of_char => {
                    ScalarValue::Utf8(Some(text.trim_end_matches(' ').to_owned()))
                }
                item => item,
            };
            match convert_scalar(&item, wanted) {
                Ok(item) => items.push(Expr::Literal(item, None)),
                // No integer of the value's type equals one that is out of its range.
                Err(_) if is_whole(wanted) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some((items, value)))
    }
}

impl ScalarUDFImpl for Quantified {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Boolean)
    }

    fn simplify(&self, mut args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let Expr::Literal(array, _) = &args[0] else { return Ok(ExprSimplifyResult::Original(args)) };
        let known = |value| ExprSimplifyResult::Simplified(Expr::Literal(ScalarValue::Boolean(value), None));
        if array.is_null() && never_fails(&args[1]) {
            return Ok(known(None));
        }
        if !self.is_membership() {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let array = array.clone();
        let is_empty = Arrays::of_scalar(&array).is_some_and(|array| array.lists().value_length(0) == 0);
        if array.is_null() || (is_empty && !never_fails(&args[1])) {
            return Ok(ExprSimplifyResult::Original(args));
        }
        if is_empty {
            return Ok(known(Some(self.all)));
        }
        let given = info.get_data_type(&args[1])?;
        let Some((mut list, mut value)) = self.listed(&array, args[1].clone(), &given)? else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        if matches!(list.as_slice(), [Expr::Literal(null, _)] if null.is_null()) && !never_fails(&value) {
            return Ok(ExprSimplifyResult::Original(args)); // Nothing looks at what is compared with NULL.
        }
        if list.is_empty() {
            // All items were out of range.
            let value = args.remove(1);
            let made = if self.all { value.clone().eq(value) } else { value.clone().not_eq(value) };
            return Ok(ExprSimplifyResult::Simplified(made));
        }
        // This is made behind the rule that sees to it elsewhere.
        let of = info.get_data_type(&list[0])?;
        for expr in list.iter_mut().chain([&mut value]) {
            wrap_of(expr, &of)?;
        }
        let expr = match list.len() {
            1 if self.all => value.not_eq(list.remove(0)),
            1 => value.eq(list.remove(0)),
            _ => Expr::InList(InList { expr: Box::new(value), list, negated: self.all }),
        };
        Ok(ExprSimplifyResult::Simplified(expr))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_columns(&args, |columns| self.compute(&columns[0], &columns[1]))
    }
}

/// Whether a value is there without being computed. PostgreSQL computes what is compared with an array of no items too.
pub(crate) fn never_fails(value: &Expr) -> bool {
    match value {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::Literal(..) | Expr::Placeholder(_) => true,
        Expr::Alias(alias) => never_fails(&alias.expr),
        _ => false,
    }
}

/// A text as the array that is written in it, of items of this type.
pub(crate) fn written(text: &ScalarValue, of: DataType) -> Result<Expr> {
    let of = match of {
        // Each number has its own digits, and each text its own length.
        DataType::Numeric(_) => DataType::Numeric(None),
        of if of.is_text() => DataType::Text,
        of => of,
    };
    let Some(array) = of.array() else { return Err(tunnel(no_arrays_of(of))) };
    let value = convert_scalar(text, array)?;
    debug_assert_eq!(value.data_type(), arrow_type(array), "NULL is an array, too");
    Ok(Expr::Literal(value, None))
}

/// No array is of arrays, and so none has items that such a value is compared with.
fn no_arrays_of(of: DataType) -> EngineError {
    EngineError::new("42704", format!("could not find array type for data type {}", of.base_name()))
}

/// 42809
pub(crate) fn no_array() -> EngineError {
    EngineError::new("42809", "op ANY/ALL (array) requires array on right side")
}

/// 42809
pub(crate) fn no_boolean() -> EngineError {
    EngineError::new("42809", "op ANY/ALL (array) requires operator to yield boolean")
}
