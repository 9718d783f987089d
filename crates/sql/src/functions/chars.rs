//! char(n) within queries: which blanks at the end of a value count, and where.
//!
//! 1. Values of char(n) are kept without the blanks at their end, in tables and in arrays. A field's metadata says that
//!    they are char(n): the blanks are put back for LIKE, regular expressions, octet_length, concat and what shows
//!    values of any type ([`with_blanks`]), and for the client.
//! 2. What answers one of several values (CASE, coalesce, greatest, lag, UNION, ...) is a char where the first of them
//!    that has a type is one. It is a char(n) where all of them are, else [`LOOSE`]: how many blanks a value had is not
//!    known, and what would see them is refused (0A000).
//! 3. A char is compared without blanks: with a char, with a constant or a parameter that has no type (a parameter is a
//!    char then), and with a varchar(n), whose own do not count then. Beside a text, which a parameter may be that the
//!    client states, it is a text without blanks, and the text's own count.
//! 4. All else takes a char as a text without blanks.
//!
//! Source: PostgreSQL 15 documentation, "Character Types" (8.3), "UNION, CASE, and Related Constructs" (10.5).
use crate::cast::LOOSE;
use crate::error::tunnel;
use crate::functions::builtin;
use crate::functions::convert::convert;
use crate::values::{PG_TYPE, field_of, field_type};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::{DFSchema, NullEquality, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Subquery, Volatility,
};
use std::sync::Arc;
use terrace_engine::{DataType, EngineError};

/// Without a length, which is the type of what answers one of several varchars.
const VARCHAR: DataType = DataType::Varchar(0);

fn is_char(field: &Field) -> bool {
    matches!(field_type(field), Some(DataType::Char(_)))
}

fn is_varchar(field: &Field) -> bool {
    matches!(field_type(field), Some(DataType::Varchar(_)))
}

fn is_text(field: &Field) -> bool {
    field.data_type() == &ArrowType::Utf8 && !is_char(field)
}

fn field(expr: &Expr, schema: &DFSchema) -> Result<FieldRef> {
    Ok(expr.to_field(schema)?.1)
}

/// Whether a field is of arrays whose items are of a char.
pub(crate) fn is_array_of_char(field: &Field) -> bool {
    matches!(field_type(field).and_then(DataType::item), Some(DataType::Char(_)))
}

/// The field of an array as made of such items. Of chars of several lengths it is not known how many blanks they had.
pub(crate) fn array_field(array: Field, items: &[FieldRef]) -> Field {
    let is_name = |item: &FieldRef| item.metadata().get(PG_TYPE).is_some_and(|name| name == "name");
    if !items.is_empty() && items.iter().all(is_name) {
        return array.with_metadata([(PG_TYPE.to_owned(), "_name".to_owned())].into());
    }
    let first = items.first().and_then(|item| field_type(item));
    let of = match first {
        Some(DataType::Char(_)) if items.iter().all(|item| field_type(item) == first) => first,
        _ if items.iter().any(|item| is_char(item)) => Some(LOOSE),
        Some(DataType::Varchar(_)) => Some(VARCHAR),
        _ => None,
    };
    match of.and_then(DataType::array) {
        Some(of) => array.with_metadata(field_of("", of, true).metadata().clone()),
        None => array,
    }
}

/// Where the items of such an array would be seen one by one, or as text.
pub(crate) fn array_refused() -> datafusion::common::DataFusionError {
    refused("what sees the blanks of an array of char(n)")
}

fn refused(what: &str) -> datafusion::common::DataFusionError {
    let error = EngineError::unsupported(format!("{what} is not supported"));
    tunnel(error.with_hint("Cast it to text, or to a char(n)."))
}

/// `expr`, a char(n), as a text with its blanks.
pub(crate) fn with_blanks(expr: Expr, n: u32) -> Result<Expr> {
    match DataType::Char(n) {
        LOOSE => Err(refused("what counts the blanks of char values of different lengths")),
        _ => Ok(builtin::pad(expr, n)),
    }
}

/// Functions and aggregates that show values of any type as they are.
const SHOW: [&str; 14] = [
    "array_to_json",
    "format",
    "json_agg",
    "json_build_array",
    "json_build_object",
    "jsonb_agg",
    "jsonb_build_array",
    "jsonb_build_object",
    "quote_ident",
    "quote_literal",
    "quote_nullable",
    "row_to_json",
    "to_json",
    "to_jsonb",
];

/// The arguments of such a function, with their blanks. 0A000 for arrays of chars.
pub(crate) fn show_blanks_in(function: &str, args: &mut [Expr], schema: &DFSchema) -> Result<()> {
    if !SHOW.contains(&function) {
        return Ok(());
    }
    for arg in args.iter() {
        if is_array_of_char(field(arg, schema)?.as_ref()) {
            return Err(array_refused());
        }
    }
    show_blanks(args, schema)
}

/// The fields of a row, which do not say that they are chars.
pub(crate) fn show_blanks(args: &mut [Expr], schema: &DFSchema) -> Result<()> {
    for arg in args {
        if let Some(DataType::Char(n)) = field_type(field(arg, schema)?.as_ref()) {
            *arg = with_blanks(std::mem::take(arg), n)?;
        }
    }
    Ok(())
}

/// `expr`, a text, as a char without a length.
pub(crate) fn loose(expr: Expr) -> Expr {
    convert(expr, LOOSE)
}

/// The type of what answers one of several texts (invariant 2); `None`: it is neither char nor varchar. `typed`: the
/// types of those that have one, `constants`: the lengths of those that have none, as far as they are known.
pub(crate) fn chosen(
    mut typed: impl Iterator<Item = Option<DataType>>,
    mut constants: impl Iterator<Item = Option<usize>>,
) -> Option<DataType> {
    match typed.next()?? {
        first @ DataType::Char(n) => {
            let alike = typed.all(|t| t == Some(first)) && constants.all(|length| length == Some(n as usize));
            Some(if alike { first } else { LOOSE })
        }
        DataType::Varchar(_) => Some(VARCHAR),
        array => match array.item()? {
            DataType::Varchar(_) => VARCHAR.array(),
            DataType::Char(_) if typed.all(|t| t == Some(array)) && constants.next().is_none() => Some(array),
            DataType::Char(_) => LOOSE.array(),
            _ => None,
        },
    }
}

/// The characters of a constant without a type; `None`: it is a parameter.
pub(crate) fn length_of(constant: &Expr) -> Option<usize> {
    match constant {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => Some(text.chars().count()),
        _ => None,
    }
}

/// A constant that is compared with a char, or becomes one.
fn trimmed(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)), None) if text.ends_with(' ') => {
            Expr::Literal(ScalarValue::Utf8(Some(text.trim_end_matches(' ').into())), None)
        }
        other => other,
    }
}

/// What is compared with `other`, as it is compared (invariant 3).
pub(crate) fn beside(expr: Expr, own: &Field, other: &Field) -> Expr {
    match &expr {
        _ if !is_char(other) => expr,
        Expr::Literal(..) => trimmed(expr),
        _ if is_varchar(own) => loose(expr),
        _ => expr,
    }
}

/// The first is compared with each of the others (invariant 3). `as_text`: a constant that stands first is a text.
pub(crate) fn first_beside_others(exprs: Vec<Expr>, schema: &DFSchema, as_text: bool) -> Result<Vec<Expr>> {
    let fields = exprs.iter().map(|expr| field(expr, schema)).collect::<Result<Vec<FieldRef>>>()?;
    if !fields.iter().any(|field| is_char(field)) {
        return Ok(exprs);
    }
    let (first, others) = (&fields[0], &fields[1..]);
    let chars = others.iter().filter(|other| is_char(other)).count();
    let mixed = chars < others.len();
    let counts_both_ways = match &exprs[0] {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => text.ends_with(' ') && (as_text || mixed),
        _ => is_varchar(first) && mixed,
    };
    if counts_both_ways && chars > 0 {
        return Err(refused("one value beside both char(n) and others"));
    }
    let compared = exprs.into_iter().enumerate().map(|(at, expr)| match at {
        0 if chars > 0 => beside(expr, first, others.iter().find(|other| is_char(other)).expect("one is")),
        0 => expr,
        _ => beside(expr, &fields[at], first),
    });
    Ok(compared.collect())
}

/// The items of a list beside a char. Several constants are made one array, of chars even where they are texts.
pub(crate) fn listed(beside: &Field, list: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    let constant = |item: &Expr| !crate::functions::convert::reads_row(item);
    if !is_char(beside) || list.iter().filter(|item| constant(item)).count() < 2 {
        return Ok(list);
    }
    let of_char = |item: Expr| match constant(&item) && !crate::functions::convert::is_open(&item) {
        true if is_text(field(&item, schema)?.as_ref()) => Ok(loose(item)),
        _ => Ok(item),
    };
    list.into_iter().map(of_char).collect()
}

/// Whether [`operator`] is asked.
pub(crate) fn concerns(op: Operator) -> bool {
    matches_pattern(op)
        || matches!(op, Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

fn matches_pattern(op: Operator) -> bool {
    matches!(op, Operator::RegexMatch | Operator::RegexNotMatch)
}

/// A comparison, or a match with a regular expression.
pub(crate) fn operator(binary: BinaryExpr, schema: &DFSchema) -> Result<BinaryExpr> {
    let BinaryExpr { mut left, op, mut right } = binary;
    let (Ok(l), Ok(r)) = (field(&left, schema), field(&right, schema)) else {
        return Ok(BinaryExpr { left, op, right });
    };
    match field_type(&l) {
        Some(DataType::Char(n)) if matches_pattern(op) => *left = with_blanks(std::mem::take(&mut left), n)?,
        _ if matches_pattern(op) => {}
        _ => {
            *left = beside(std::mem::take(&mut left), &l, &r);
            *right = beside(std::mem::take(&mut right), &r, &l);
        }
    }
    Ok(BinaryExpr { left, op, right })
}

/// `x IN (SELECT y)`, `x op ANY (SELECT y)`.
pub(crate) fn in_subquery(expr: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<()> {
    let (own, column) = (field(expr, schema)?, subquery.subquery.schema().field(0).clone());
    *expr = beside(std::mem::take(expr), &own, &column);
    if is_char(&own) && is_varchar(&column) {
        subquery.subquery = changed(&subquery.subquery, |_, column| Some(loose(column)))?;
    }
    Ok(())
}

/// A plan with some of its columns changed.
fn changed(plan: &Arc<LogicalPlan>, change: impl Fn(usize, Expr) -> Option<Expr>) -> Result<Arc<LogicalPlan>> {
    let schema = plan.schema();
    let columns = schema.iter().enumerate().map(|(at, (qualifier, field))| {
        let column = Expr::Column((qualifier, field).into());
        match change(at, column.clone()) {
            Some(changed) => changed.alias_qualified(qualifier.cloned(), field.name()),
            None => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    Ok(Arc::new(LogicalPlanBuilder::from(plan.as_ref().clone()).project(columns)?.build()?))
}

/// The inputs of a UNION, whose columns are chars or texts (invariant 2). DataFusion's union takes the metadata of
/// those that have some.
pub(crate) fn united(inputs: Vec<Arc<LogicalPlan>>, is_open: impl Fn(&Expr) -> bool) -> Result<Vec<Arc<LogicalPlan>>> {
    let width = inputs.iter().map(|input| input.schema().fields().len()).min().unwrap_or(0);
    let open = |input: &LogicalPlan, at: usize| {
        input.schema().field(at).data_type() == &ArrowType::Null
            || matches!(input, LogicalPlan::Projection(projection) if is_open(&projection.expr[at]))
    };
    let told = |field: &Field| is_char(field) || is_varchar(field);
    let kind = |at: usize| {
        let first = inputs.iter().find(|input| !open(input, at))?.schema().field(at).clone();
        let some = inputs.iter().any(|input| told(input.schema().field(at)));
        let of = field_type(&first).filter(|first| some && first.is_text())?;
        // Of two lengths, or beside a constant, it has none.
        let alike = |input: &Arc<LogicalPlan>| !open(input, at) && field_type(input.schema().field(at)) == Some(of);
        Some(if matches!(of, DataType::Char(_)) && !inputs.iter().all(alike) { LOOSE } else { of })
    };
    // `None`: all inputs have texts there, or what is none.
    let kinds: Vec<Option<DataType>> = (0..width).map(kind).collect();
    let wanted = |input: &LogicalPlan, at: usize, column: Expr| {
        let own = input.schema().field(at);
        match (*kinds.get(at)?)? {
            _ if own.data_type() != &ArrowType::Utf8 => None,
            LOOSE => (field_type(own) != Some(LOOSE)).then(|| loose(column)),
            DataType::Char(_) => None,
            DataType::Varchar(_) => (!is_varchar(own)).then(|| labelled(column, VARCHAR)),
            _ => told(own).then(|| labelled(column, DataType::Text)),
        }
    };
    let differs = |input: &LogicalPlan| (0..width).any(|at| wanted(input, at, Expr::default()).is_some());
    let aligned = inputs.iter().map(|input| match differs(input) {
        true => changed(input, |at, column| wanted(input, at, column)),
        false => Ok(input.clone()),
    });
    aligned.collect()
}

/// INTERSECT and EXCEPT, which are joins: the right side's texts beside the left side's chars.
pub(crate) fn intersected(mut join: Join) -> Result<Join> {
    if join.null_equality != NullEquality::NullEqualsNull {
        return Ok(join);
    }
    let (left, right) = (join.left.schema().clone(), join.right.schema().clone());
    let wanted = |at: usize, column: Expr| {
        let both = at < left.fields().len() && right.field(at).data_type() == &ArrowType::Utf8;
        (both && is_char(left.field(at)) && !is_char(right.field(at))).then(|| loose(column))
    };
    if (0..right.fields().len()).any(|at| wanted(at, Expr::default()).is_some()) {
        join.right = changed(&join.right, wanted)?;
    }
    Ok(join)
}

/// `expr` with the field of this type. Its values are of it already.
pub(crate) fn labelled(expr: Expr, to: DataType) -> Expr {
    let label = Label { name: format!("text_type {to:?}"), to, signature: Signature::any(1, Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(label)), vec![expr]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Label {
    name: String,
    to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Label {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(field_of(self.name(), self.to, args.arg_fields[0].is_nullable())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args[0].clone())
    }
}
