//! Arrays, as far as there are any: as results, in `x = ANY (array)` and in `x <> ALL (array)`. No column is of an
//! array type.
//!
//! 1. An array that a client gives (a literal or a parameter) is kept as PostgreSQL's text of it, `{1,"b c",NULL}`; its
//!    items are read as what they are compared with.
//! 2. `x = ANY (ARRAY[a, b])` is `x IN (a, b)`, and `x <> ALL` is `NOT IN`: so the same holds of NULL. `ANY` of a text
//!    becomes [`Membership`], which is written out as IN once the text is known. `ANY (SELECT ...)` and `ANY
//!    (ARRAY(SELECT ...))` are IN of the query.
//!
//! Source: PostgreSQL 15 documentation, "Arrays" (8.15.6) and "Row and Array Comparisons".
use crate::error::tunnel;
use crate::functions::compared::wrap_of;
use crate::functions::convert::{convert, convert_array, convert_scalar, is_open};
use crate::memory;
use crate::values::{array_oid, arrow_type, engine_type, field_type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray, UInt32Array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{interleave, take};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use terrace_engine::{DataType, EngineError};

/// Of the functions that stand for `= ANY` and `<> ALL`; arguments: the array, the value.
const ANY: &str = "equals_any";
const ALL: &str = "differs_from_all";

/// What is sought in an array, by a name that no user can write: `x = ANY (ARRAY[a, b])` is `x IN (a, b)`, but for how
/// types are settled.
pub(crate) const OF_ARRAY: &str = "\0of array";

/// The functions of membership.
pub(crate) fn functions() -> [ScalarUDF; 2] {
    [(ANY, false), (ALL, true)].map(|(name, negated)| {
        let signature = Signature::any(2, Volatility::Immutable);
        ScalarUDF::from(Membership { name, negated, of_char: false, signature })
    })
}

/// A comparison with a text's items, once the type of what they are compared with is known.
pub(crate) fn of_char(call: &mut ScalarFunction, schema: &DFSchema) -> Result<()> {
    let Some(Membership { name, negated, .. }) = (call.func.inner().as_ref() as &dyn Any).downcast_ref() else {
        return Ok(());
    };
    // Of another number of arguments there is none, which is said where the function is chosen.
    if let [_, items] = call.args.as_slice()
        && let Some(DataType::Char(_)) = field_type(items.to_field(schema)?.1.as_ref())
    {
        let signature = Signature::any(2, Volatility::Immutable);
        let membership = Membership { name, negated: *negated, of_char: true, signature };
        call.func = Arc::new(ScalarUDF::from(membership));
    }
    Ok(())
}

/// The OIDs of the array types of parameters that are compared as arrays in a plan, by number from 1: arrays of what
/// they are compared with.
pub(crate) fn parameter_types(plan: &LogicalPlan) -> Result<BTreeMap<usize, u32>> {
    let mut found = BTreeMap::new();
    plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarFunction(call) = expr
                    && let [Expr::Placeholder(array)] = call.args.as_slice()
                    && let Some(made) = (call.func.inner().as_ref() as &dyn Any).downcast_ref::<ToArray>()
                    && let Some(number) = array.id.strip_prefix('$').and_then(|n| n.parse().ok())
                    && let Some(oid) = array_oid(made.of.pg_oid())
                {
                    found.insert(number, oid);
                }
                if let Expr::ScalarFunction(call) = expr
                    && matches!(call.name(), ANY | ALL)
                    && let [Expr::Placeholder(array), value] = call.args.as_slice()
                    && let Some(number) = array.id.strip_prefix('$').and_then(|n| n.parse().ok())
                    && let Some(item) = value.get_type(&schema).ok().as_ref().and_then(engine_type)
                    && let Some(oid) = array_oid(item.pg_oid())
                {
                    found.insert(number, oid);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Membership {
    name: &'static str,
    negated: bool,
    /// Blanks at an item's end do not count.
    of_char: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Membership {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Boolean)
    }

    fn simplify(&self, mut args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let Expr::Literal(array, _) = &args[0] else { return Ok(ExprSimplifyResult::Original(args)) };
        let Some(Some(array)) = array.try_as_str() else {
            let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
            return Ok(ExprSimplifyResult::Simplified(unknown));
        };
        // Each of them becomes a literal of the plan.
        let most = array.bytes().filter(|b| *b == b',').count() as u64 * memory::LISTED;
        let _asked = memory::ask("an array", most).map_err(tunnel)?;
        let items = items(array).map_err(tunnel)?;
        let value = args.remove(1);
        if items.is_empty() {
            return Ok(ExprSimplifyResult::Simplified(Expr::Literal(ScalarValue::Boolean(Some(self.negated)), None)));
        }
        let given = info.get_data_type(&value)?;
        let wanted = match engine_type(&given) {
            // Each number has its own digits.
            Some(DataType::Numeric(_)) => DataType::Numeric(None),
            Some(wanted) => wanted,
            None => return Err(tunnel(EngineError::unsupported(format!("arrays of {given} are not supported")))),
        };
        let item = |item: Option<String>| {
            let item = item.map(|item| if self.of_char { item.trim_end_matches(' ').to_owned() } else { item });
            let scalar = convert_scalar(&ScalarValue::Utf8(item), wanted)?;
            Ok(Expr::Literal(scalar, None))
        };
        let mut list = items.into_iter().map(item).collect::<Result<Vec<_>>>()?;
        let mut value = if given == arrow_type(wanted) { value } else { convert(value, wanted) };
        // This is made behind the rule that sees to it elsewhere.
        for expr in list.iter_mut().chain([&mut value]) {
            wrap_of(expr, &arrow_type(wanted))?;
        }
        let expr = match list.len() {
            1 if self.negated => value.not_eq(list.remove(0)),
            1 => value.eq(list.remove(0)),
            _ => Expr::InList(InList { expr: Box::new(value), list, negated: self.negated }),
        };
        Ok(ExprSimplifyResult::Simplified(expr))
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("{} is written out before it runs", self.name)
    }
}

/// The items of an array's text; `None`: NULL. One dimension, as comparisons take. 22P02 where it is none.
pub(crate) fn items(text: &str) -> Result<Vec<Option<String>>, EngineError> {
    let malformed = |detail: &str| {
        EngineError::new("22P02", format!("malformed array literal: \"{text}\"")).with_detail(detail.to_owned())
    };
    let body = text.trim();
    let body = body
        .strip_prefix('{')
        .ok_or_else(|| malformed("Array value must start with \"{\"."))?
        .strip_suffix('}')
        .ok_or_else(|| malformed("Unexpected end of input."))?;
    let (mut items, mut rest) = (vec![], body.chars());
    if body.trim().is_empty() {
        return Ok(items);
    }
    loop {
        // Blanks around an item do not count, but those in quotes do.
        let (mut item, mut kept, mut quoted, mut open) = (String::new(), 0, false, false);
        let ended = loop {
            let next = rest.next();
            match next {
                None | Some(',') if !open => break next.is_none(),
                None => return Err(malformed("Unexpected end of input.")),
                Some('"') => (open, quoted) = (!open, true),
                Some('{' | '}') if !open => {
                    return Err(EngineError::unsupported("arrays of arrays are not supported"));
                }
                Some(c) if !open && c.is_whitespace() && item.is_empty() => {}
                Some('\\') => {
                    item.push(rest.next().ok_or_else(|| malformed("Unexpected end of input."))?);
                    (kept, quoted) = (item.len(), true);
                }
                Some(c) => {
                    item.push(c);
                    if open || !c.is_whitespace() {
                        kept = item.len();
                    }
                }
            }
        };
        item.truncate(kept);
        match quoted {
            false if item.is_empty() => return Err(malformed("Unexpected \",\" character or end of input.")),
            false if item.eq_ignore_ascii_case("null") => items.push(None),
            _ => items.push(Some(item)),
        }
        if ended {
            return Ok(items);
        }
    }
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
    let Some(to) = engine_type(&common) else {
        return Err(tunnel(EngineError::unsupported(format!("arrays of {common} are not supported"))));
    };
    let made = |item: Expr| match (&item, item.get_type(schema)?) {
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

/// Two arrays that are written out, or cast, whose items are texts of two types: their names. PostgreSQL has no
/// operator for these.
pub(crate) fn unlike(left: &Expr, right: &Expr) -> Option<[String; 2]> {
    let item = |array: &Expr| {
        let Expr::ScalarFunction(call) = array else { return None };
        let inner = call.func.inner().as_ref() as &dyn Any;
        let made = inner.downcast_ref::<MakeArray>().map(|made| made.item);
        made.or_else(|| inner.downcast_ref::<ToArray>().map(|cast| cast.of)).filter(|of| of.is_text())
    };
    let names = [item(left)?, item(right)?].map(DataType::base_name);
    (names[0] != names[1]).then(|| names.map(|name| format!("{name}[]")))
}

/// Of two types of numbers.
fn wider(a: ArrowType, b: ArrowType) -> Result<ArrowType> {
    let rank = |t: &ArrowType| match t {
        ArrowType::Int16 => Some(0),
        ArrowType::Int32 => Some(1),
        ArrowType::Int64 => Some(2),
        ArrowType::Decimal128(..) => Some(3),
        ArrowType::Float32 => Some(4),
        ArrowType::Float64 => Some(5),
        _ => None,
    };
    match (rank(&a), rank(&b)) {
        (Some(3), Some(..=3)) | (Some(..=2), Some(3)) => Ok(arrow_type(DataType::Numeric(None))),
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
        Ok(Arc::new(crate::functions::chars::array_field(field, args.arg_fields)))
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

/// `expr` as an array of items of this type, where it is text or another array.
pub(crate) fn to_array(expr: Expr, of: DataType) -> Expr {
    let udf = ToArray { name: format!("to_array {of:?}"), of, signature: Signature::any(1, Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(udf)), vec![expr]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToArray {
    name: String,
    of: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for ToArray {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::new_list(arrow_type(self.of), true))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = matches!(args.args[0], ColumnarValue::Scalar(_));
        let array = args.args[0].to_array(if scalar { 1 } else { args.number_rows })?;
        let lists = match array.data_type() {
            ArrowType::List(_) => {
                let lists = array.as_list::<i32>();
                let values = convert_array(lists.values(), self.of)?;
                list(values, lists.offsets().clone(), lists.nulls().cloned())?
            }
            _ => self.read(&array)?,
        };
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&lists, 0)?));
        }
        Ok(ColumnarValue::Array(lists))
    }
}

fn list(values: ArrayRef, offsets: OffsetBuffer<i32>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(field, offsets, values, nulls)?))
}

impl ToArray {
    /// Arrays from their texts.
    fn read(&self, texts: &ArrayRef) -> Result<ArrayRef> {
        let texts = datafusion::arrow::compute::cast(texts, &ArrowType::Utf8)?;
        let (mut all, mut lengths): (Vec<Option<String>>, Vec<usize>) = (vec![], vec![]);
        for text in texts.as_string::<i32>() {
            let items = text.map(items).transpose().map_err(tunnel)?.unwrap_or_default();
            lengths.push(items.len());
            all.extend(items);
        }
        let read: ArrayRef = Arc::new(all.into_iter().collect::<StringArray>());
        list(convert_array(&read, self.of)?, OffsetBuffer::from_lengths(lengths), texts.nulls().cloned())
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

/// Arrays as text: `{1,"b c",NULL}`.
pub(crate) fn text_array(array: &ArrayRef) -> Result<ArrayRef> {
    let lists = array.as_list::<i32>();
    let text = |items: Option<ArrayRef>| -> Result<Option<String>> {
        let Some(items) = items else { return Ok(None) };
        let items = crate::functions::builtin::shown(&items, None)?;
        let shown: Vec<String> =
            items.as_string::<i32>().iter().map(|item| item.map_or("NULL".into(), quoted)).collect();
        Ok(Some(format!("{{{}}}", shown.join(","))))
    };
    Ok(Arc::new(lists.iter().map(text).collect::<Result<StringArray>>()?))
}

/// An item as it stands within an array's text.
fn quoted(item: &str) -> String {
    let special = |c: char| "{},\"\\ \t\n\r\u{b}\u{c}".contains(c);
    if !item.is_empty() && !item.contains(special) && !item.eq_ignore_ascii_case("null") {
        return item.to_owned();
    }
    let mut quoted = String::from('"');
    for c in item.chars() {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        match items(text) {
            Ok(items) => format!("{items:?}"),
            Err(error) => error.state.0.to_string(),
        }
    }

    #[test]
    fn texts_of_arrays() {
        assert_eq!(read("{}"), "[]");
        assert_eq!(read(" { } "), "[]");
        assert_eq!(read("{1, 2 ,3}"), r#"[Some("1"), Some("2"), Some("3")]"#);
        assert_eq!(read(r#"{a b, " c ",NULL,"null",nUlL}"#), r#"[Some("a b"), Some(" c "), None, Some("null"), None]"#);
        assert_eq!(read(r#"{"a\"b","\\",x\,y,""}"#), r#"[Some("a\"b"), Some("\\"), Some("x,y"), Some("")]"#);
        for bad in ["", "1,2", "{1,2", "{1,}", "{,}", "{\"a}", "{a\\", "}", "{"] {
            assert_eq!(read(bad), "22P02", "{bad}");
        }
        assert_eq!(read("{{1},{2}}"), "0A000");
    }
}
