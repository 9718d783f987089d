//! Types as PostgreSQL resolves them, but those of operators: functions, lists, BETWEEN, CASE, casts of arrays and
//! intervals, set operations.
//!
//! 1. It runs once, when an expression or a set operation is bound: parameters get their types here, and no type that
//!    is settled here changes later.
//! 2. Values that are compared get one type first. A quoted literal takes the type of the value beside it. Numbers
//!    become exact or double precision. Times get a zone if one of them has a zone. DataFusion would compare a numeric
//!    and a float as decimals of 15 digits, and give text in a list the column's type.
//! 3. Numbers that become one value (CASE, COALESCE, UNION, ...) become double precision if one of them is.
//! 4. In `x IN (..)`, items that depend on the row are compared with x one by one. If there are several other items,
//!    they and x get one type first, and then they are compared with x. All items of an array get one type too, but
//!    without x.
//!
//! Source of 4: PostgreSQL 15 documentation, "Row and Array Comparisons" (9.24), and what the server answers.
use crate::cast::LOOSE;
use crate::error::tunnel;
use crate::functions::arithmetic::{self, Function};
use crate::functions::arrays::{self, OF_ARRAY};
use crate::functions::convert::{constant, convert, convert_scalar, is_open, needs_zone, reads_row, to_compare};
use crate::functions::{aggregates, builtin, chars, interval};
use crate::plan::choosers::Chooser;
use crate::plan::{choosers, operators, rules};
use crate::values::arrays::{is_array, is_row};
use crate::values::decimal::is_decimal;
use crate::values::{arrow_type, engine_type, field_of, field_type, is_timestamp, is_void, is_zoned, open_beside};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{
    AggregateFunction, Case, InList, Placeholder, ScalarFunction, WindowFunction, WindowFunctionDefinition,
    WindowFunctionParams,
};
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::{
    Between, BinaryExpr, Distinct, Expr, ExprSchemable, Join, Like, LogicalPlan, LogicalPlanBuilder, Operator,
    Projection, Union,
};
use std::sync::Arc;
use terrace_engine::{DataType, EngineError};

mod casts;
mod numbers;

use casts::{null_test, written_cast};
pub(crate) use numbers::is_array_of_numerics;
use numbers::{as_doubles, in_subquery, is_numeric, negated, rank, wider};

/// A node with its types settled. `schema`: what its expressions are over.
pub(crate) fn node(plan: LogicalPlan, schema: &DFSchema) -> Result<Transformed<LogicalPlan>> {
    Ok(match plan {
        LogicalPlan::Union(union) => Transformed::yes(align_union(union)?),
        LogicalPlan::Join(join) if rules::is_of_sets(&join) => {
            Transformed::yes(LogicalPlan::Join(align_sides(chars::intersected(join)?)?))
        }
        LogicalPlan::Unnest(unnest) => {
            let loose = DataType::Char(0).array();
            if unnest.exec_columns.iter().any(|c| schema.field_from_column(c).is_ok_and(|f| field_type(f) == loose)) {
                return Err(chars::array_refused());
            }
            Transformed::no(LogicalPlan::Unnest(unnest))
        }
        other => Transformed::no(other),
    })
}

pub(crate) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(Transformed::yes(match expr {
        Expr::ScalarFunction(call) => function(call, schema)?,
        Expr::InList(list) => in_list(list, schema)?,
        Expr::BinaryExpr(binary) if let Some(like) = like_operator(&binary) => {
            return rewrite(Expr::Like(like), schema);
        }
        Expr::BinaryExpr(binary) if chars::concerns(binary.op) => {
            operators::retyped(chars::operator(binary, schema)?, schema)?
        }
        Expr::InSubquery(mut member) => {
            in_subquery(&mut member.expr, &mut member.subquery, schema)?;
            Expr::InSubquery(member)
        }
        Expr::SetComparison(mut member) => {
            in_subquery(&mut member.expr, &mut member.subquery, schema)?;
            Expr::SetComparison(member)
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let mut aligned = aligned(vec![*expr, *low, *high], schema, For::Comparing)?.into_iter().map(Box::new);
            let mut next = || aligned.next().expect("three come back of three");
            Expr::Between(Between { expr: next(), negated, low: next(), high: next() })
        }
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::IsDistinctFrom | Operator::IsNotDistinctFrom),
            right,
        }) => {
            let mut aligned = aligned(vec![*left, *right], schema, For::Comparing)?.into_iter().map(Box::new);
            let mut next = || aligned.next().expect("two come back of two");
            Expr::BinaryExpr(BinaryExpr { left: next(), op, right: next() })
        }
        Expr::BinaryExpr(binary) if Function::of(binary.op).is_some() => operators::retyped(binary, schema)?,
        Expr::Like(like) => Expr::Like(matched(like, schema)?),
        Expr::Cast(cast) => return written_cast(cast, schema),
        Expr::Case(case) => case_of(case, schema)?,
        Expr::Negative(value) if is_interval(&value.get_type(schema)?) => {
            interval::doing(interval::Doing::Negate, vec![*value])
        }
        Expr::Negative(value) if matches!(value.get_type(schema)?, ArrowType::Time64(_)) => {
            interval::doing(interval::Doing::Negate, vec![convert(*value, DataType::Interval)])
        }
        Expr::Negative(value) if is_decimal(&value.get_type(schema)?) => negated(*value),
        Expr::Negative(value) if is_time(&value.get_type(schema)?) => {
            let of = builtin::type_name(&value.get_type(schema)?);
            let error = EngineError::new("42883", format!("operator does not exist: - {of}"));
            return Err(tunnel(operators::with_operator_hint(error)));
        }
        Expr::IsNull(value) => null_test(*value, schema, false)?,
        Expr::IsNotNull(value) => null_test(*value, schema, true)?,
        Expr::WindowFunction(mut call) => {
            window(&mut call, schema)?;
            Expr::WindowFunction(call)
        }
        Expr::AggregateFunction(call) => return aggregate(call, schema),
        other => return Ok(Transformed::no(other)),
    }))
}

fn aggregate(mut call: AggregateFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let name = call.func.name().to_owned();
    match name.as_str() {
        _ if adds_up(&name) => of_spans(&mut call.params.args, schema)?,
        _ if aggregates::takes_doubles(&name) => as_doubles(&mut call.params.args, schema)?,
        "json_agg" | "jsonb_agg" => chars::show_blanks_in(&name, &mut call.params.args, schema)?,
        "first_value" | "last_value" | "nth_value" => {
            let message = format!("window function {name} requires an OVER clause");
            return Err(tunnel(EngineError::new("42809", message)));
        }
        _ => {
            if matches!(name.as_str(), "string_agg" | "array_agg") {
                check_aggregated(&name, &call.params.args, schema)?;
            }
            return Ok(Transformed::no(Expr::AggregateFunction(call)));
        }
    }
    Ok(Transformed::yes(Expr::AggregateFunction(call)))
}

/// Whether the aggregate is `sum` or `avg`.
fn adds_up(name: &str) -> bool {
    matches!(name, "exact_sum" | "avg")
}

/// Times of day are added up as intervals.
fn of_spans(args: &mut [Expr], schema: &DFSchema) -> Result<()> {
    for arg in args {
        if let ArrowType::Time64(_) = arg.get_type(schema)? {
            *arg = convert(std::mem::take(arg), DataType::Interval);
        }
    }
    Ok(())
}

/// Refuses what a window function cannot do with its arguments, and gives a default the type of what it stands for.
fn window(call: &mut WindowFunction, schema: &DFSchema) -> Result<()> {
    refuse_window_arguments(call.fun.name(), &call.params)?;
    if let WindowFunctionDefinition::WindowUDF(function) = &call.fun
        && matches!(function.name(), "lag" | "lead")
    {
        align_default(function.name(), &mut call.params.args, schema)?;
    }
    if adds_up(call.fun.name()) {
        of_spans(&mut call.params.args, schema)?;
    }
    if aggregates::takes_doubles(call.fun.name()) {
        as_doubles(&mut call.params.args, schema)?;
    }
    if let WindowFunctionDefinition::AggregateUDF(function) = &mut call.fun {
        check_aggregated(function.name(), &call.params.args, schema)?;
        if let Some(own) = aggregates::over_window(function) {
            *function = Arc::new(own);
        }
    }
    Ok(())
}

/// LIKE with its sides as they are matched; ILIKE becomes LIKE.
fn matched(mut like: Like, schema: &DFSchema) -> Result<Like> {
    if let Some(DataType::Char(n)) = field_type(like.expr.to_field(schema)?.1.as_ref()) {
        *like.expr = chars::with_blanks(std::mem::take(like.expr.as_mut()), n)?;
    }
    let pattern = std::mem::take(like.pattern.as_mut());
    *like.pattern = builtin::like_pattern(pattern, like.escape_char.take(), schema)?;
    if std::mem::take(&mut like.case_insensitive) {
        let sides = [std::mem::take(like.expr.as_mut()), std::mem::take(like.pattern.as_mut())];
        [*like.expr, *like.pattern] = builtin::in_small_letters(sides, schema)?;
    }
    Ok(like)
}

/// `~~` is LIKE, and `~~*` ILIKE.
fn like_operator(binary: &BinaryExpr) -> Option<Like> {
    let (negated, any_case) = match binary.op {
        Operator::LikeMatch => (false, false),
        Operator::NotLikeMatch => (true, false),
        Operator::ILikeMatch => (false, true),
        Operator::NotILikeMatch => (true, true),
        _ => return None,
    };
    Some(Like::new(negated, binary.left.clone(), binary.right.clone(), None, any_case))
}

/// Refuses arguments that DataFusion would turn into texts, or into arrays of texts.
fn check_aggregated(name: &str, args: &[Expr], schema: &DFSchema) -> Result<()> {
    if let ("array_agg" | "string_agg", Some(arg)) = (name, args.first())
        && is_void(arg.to_field(schema)?.1.as_ref())
    {
        return Err(tunnel(match name {
            "array_agg" => arrays::no_arrays_of_void(),
            _ => builtin::with_hint(EngineError::new("42883", format!("function {name}(void, text) does not exist"))),
        }));
    }
    let types = args.iter().map(|arg| arg.get_type(schema)).collect::<Result<Vec<ArrowType>>>()?;
    match (name, types.first()) {
        ("string_agg", Some(ArrowType::Binary))
            if types.get(1).is_none_or(|of| matches!(of, ArrowType::Binary | ArrowType::Utf8 | ArrowType::Null)) =>
        {
            let error = EngineError::unsupported("string_agg of DISTINCT bytea, and over a window, is not supported");
            Err(tunnel(error.with_hint("Aggregate encode(..., 'hex').")))
        }
        ("string_agg", Some(_)) if types.iter().any(|t| engine_type(t) != Some(DataType::Text)) => {
            let names: Vec<String> = types.iter().map(builtin::type_name).collect();
            let message = format!("function string_agg({}) does not exist", names.join(", "));
            Err(tunnel(builtin::with_hint(EngineError::new("42883", message))))
        }
        _ => Ok(()),
    }
}

fn is_interval(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Interval(_))
}

fn is_time(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Date32) || is_timestamp(data_type)
}

fn is_float(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Float32 | ArrowType::Float64)
}

fn is_number(data_type: &ArrowType) -> bool {
    crate::functions::arithmetic::is_number(data_type)
}

fn function(call: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    let mut call = operators::realigned(call, schema)?;
    crate::functions::date_time::refuse_texts(&mut call, schema)?;
    chars::show_blanks_in(call.func.name(), &mut call.args, schema)?;
    if let Some(resolved) = choosers::resolved(&call, schema)? {
        return Ok(resolved);
    }
    builtin::choose(call, schema)
}

/// An operand with its final type, for code that asks for the type while the query is planned.
pub(crate) fn resolved(operand: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(operand.transform_up(|e| rewrite(e, schema))?.data)
}

/// Two expressions as they are compared.
pub(crate) fn compared(exprs: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    aligned(exprs, schema, For::Comparing)
}

/// The common type of values that are compared (`becomes`: that become one value), if their types differ. Open ones do
/// not count.
fn common(fields: &[FieldRef], open: &[bool], becomes: bool) -> Option<DataType> {
    let typed = || fields.iter().zip(open).filter(|(_, open)| !**open).map(|(field, _)| field);
    let all = |is: fn(&ArrowType) -> bool| typed().all(|field| is(field.data_type()));
    let any = |is: fn(&ArrowType) -> bool| typed().any(|field| is(field.data_type()));
    let first = typed().next()?.data_type().clone();
    if typed().all(|field| field.data_type() == &first) {
        return None;
    }
    if all(is_number) {
        // A real and another number are compared as doubles; in a list, and as a result, a real stays a real.
        let single = becomes && !any(|t| matches!(t, ArrowType::Float64));
        if any(is_float) {
            return Some(if single { DataType::Float4 } else { DataType::Float8 });
        }
        let plain = arithmetic::compared_as_plain(typed().map(|field| field.data_type()));
        return plain.then_some(DataType::Numeric(None));
    }
    if all(is_array_of_numerics) {
        return DataType::Numeric(None).array();
    }
    if all(is_time) {
        let zoned = any(is_zoned);
        return Some(if zoned { DataType::Timestamptz } else { DataType::Timestamp });
    }
    None
}

/// Why expressions get one type.
#[derive(Clone, Copy, PartialEq)]
enum For {
    Comparing,
    /// With what is in a list of two and more.
    Listing,
    /// As the items of one array.
    Array,
    /// `CASE x WHEN ..`
    Case,
}

/// Expressions that are compared with each other, made of one type (invariant 2).
fn aligned(exprs: Vec<Expr>, schema: &DFSchema, what_for: For) -> Result<Vec<Expr>> {
    let exprs = chars::first_beside_others(exprs, schema, what_for == For::Case)?;
    let fields = exprs.iter().map(|e| Ok(e.to_field(schema)?.1)).collect::<Result<Vec<FieldRef>>>()?;
    let open: Vec<bool> = exprs.iter().map(is_open).collect();
    let Some(first) = fields.iter().zip(&open).position(|(_, open)| !*open) else { return Ok(exprs) };
    let to = common(&fields, &open, matches!(what_for, For::Listing | For::Array));
    // What is open becomes a plain numeric beside a numeric, and so do the others.
    let beside_numeric = to.is_none() && open.contains(&true) && fields[first].data_type().is_decimal();
    let to = if beside_numeric { Some(DataType::Numeric(None)) } else { to };
    // Reals in a list are reals also where they are compared with another number, as doubles then.
    let single = what_for == For::Listing
        && to == Some(DataType::Float4)
        && !open[0]
        && fields[0].data_type() != &ArrowType::Float32;
    let typed = || fields.iter().zip(&open).filter(|(_, open)| !**open).map(|(field, _)| field.data_type());
    let typed_fields = || fields.iter().zip(&open).filter(|(_, open)| !**open).map(|(field, _)| field);
    let json = operators::is_json(fields[first].data_type());
    if let Some(at) = fields.iter().position(|field| is_void(field)) {
        let name = |at: usize| match (is_void(&fields[at]), open[at]) {
            (true, _) => "void".to_owned(),
            (_, true) => "unknown".to_owned(),
            _ => builtin::type_name(fields[at].data_type()),
        };
        let message = format!("operator does not exist: {} = {}", name(0), name(at.max(1).min(fields.len() - 1)));
        return Err(tunnel(operators::with_operator_hint(EngineError::new("42883", message))));
    }
    let apart = |other: &ArrowType| json || choosers::cannot_be_compared(fields[first].data_type(), other);
    let other = typed().find(|other| apart(other));
    let other = other.map(|other| [builtin::type_name(fields[first].data_type()), builtin::type_name(other)]);
    let unlike = || typed_fields().find_map(|other| arrays::unlike(&fields[first], other));
    let unlike = || unlike().map(|names| names.map(str::to_owned));
    if let Some([left, right]) = other.or_else(unlike) {
        let message = format!("operator does not exist: {left} = {right}");
        let hint = "No operator matches the given name and argument types. You might need to add explicit type casts.";
        return Err(tunnel(EngineError::new("42883", message).with_hint(hint)));
    }
    let beside = fields[first].clone();
    let place = |((expr, field), open): ((Expr, FieldRef), bool)| -> Result<Expr> {
        if open {
            return close(expr, &beside, to);
        }
        match to {
            Some(to) if field.data_type() == &ArrowType::Date32 && what_for != For::Array => {
                Ok(cast(expr.clone(), to).ok().filter(|made| constant(made).is_some()).unwrap_or(to_compare(expr, to)))
            }
            Some(to) if field.data_type() != &arrow_type(to) => cast(expr, to),
            _ => Ok(expr),
        }
    };
    let sought = exprs[0].clone();
    let mut placed = exprs.into_iter().zip(fields.clone()).zip(open).map(place).collect::<Result<Vec<Expr>>>()?;
    if single {
        placed[0] = sought;
        return placed.into_iter().map(|expr| cast(expr, DataType::Float8)).collect();
    }
    Ok(placed)
}

/// An open expression, with the type of the field beside it, or with the type `to`.
fn close(expr: Expr, beside: &FieldRef, to: Option<DataType>) -> Result<Expr> {
    let wanted = to.or_else(|| field_type(beside)).map(|wanted| match wanted {
        DataType::Numeric(_) => DataType::Numeric(None),
        other => other,
    });
    match (expr, wanted) {
        (Expr::Literal(ScalarValue::Utf8(Some(text)), None), Some(DataType::Char(_))) => {
            Ok(Expr::Literal(ScalarValue::Utf8(Some(text.trim_end_matches(' ').into())), None))
        }
        (expr @ Expr::Literal(ScalarValue::Utf8(_), None), Some(text)) if text.is_text() => Ok(expr),
        // A value that integers are compared with may have a fraction, or be out of their range: then it is a numeric.
        (Expr::Literal(text @ ScalarValue::Utf8(_), None), Some(wanted)) => {
            Ok(Expr::Literal(convert_scalar(&text, wanted)?, None))
        }
        (Expr::Placeholder(Placeholder { id, field: None }), Some(wanted)) => {
            let field = Some(Arc::new(field_of("", open_beside(wanted), true)));
            Ok(Expr::Placeholder(Placeholder { id, field }))
        }
        (expr, _) => Ok(expr),
    }
}

fn cast(expr: Expr, to: DataType) -> Result<Expr> {
    match constant(&expr).filter(|value| !needs_zone(&value.data_type(), &arrow_type(to))) {
        Some(value) => Ok(Expr::Literal(convert_scalar(&value, to)?, None)),
        None => Ok(convert(expr, to)),
    }
}

/// `CASE 'x' WHEN 1`: what tells no type there is a text. 42883
fn refuse_text_beside(base: &Expr, whens: &[Expr], schema: &DFSchema) -> Result<()> {
    if !is_open(base) {
        return Ok(());
    }
    for when in whens.iter().filter(|when| !is_open(when)) {
        let of = when.get_type(schema)?;
        if !matches!(of, ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Null) {
            let message = format!("operator does not exist: text = {}", builtin::type_name(&of));
            return Err(tunnel(operators::with_operator_hint(EngineError::new("42883", message))));
        }
    }
    Ok(())
}

fn case_of(case: Case, schema: &DFSchema) -> Result<Expr> {
    let Case { expr, when_then_expr, else_expr } = case;
    let (whens, thens): (Vec<Expr>, Vec<Expr>) = when_then_expr.into_iter().map(|(when, then)| (*when, *then)).unzip();
    let (base, whens) = match expr {
        None => {
            whens.iter().try_for_each(|when| condition(when, schema))?;
            (None, whens)
        }
        Some(base) => {
            refuse_text_beside(&base, &whens, schema)?;
            let mut compared = aligned(std::iter::once(*base).chain(whens).collect(), schema, For::Case)?.into_iter();
            (compared.next().map(Box::new), compared.collect())
        }
    };
    let has_else = else_expr.is_some();
    // The result's type is ELSE's before that of the others.
    let results = else_expr.map(|e| *e).into_iter().chain(thens).collect();
    let (results, of) = choosers::of_one_type(Chooser::Case, results, schema)?;
    let mut results = results.into_iter().map(Box::new);
    let else_expr = if has_else { results.next() } else { None };
    let when_then_expr: Vec<_> = whens.into_iter().map(Box::new).zip(results).collect();
    Ok(choosers::answered(Expr::Case(Case { expr: base, when_then_expr, else_expr }), of.as_ref()))
}

/// Checks that WHEN has a condition, in a CASE without a value. 42804
fn condition(when: &Expr, schema: &DFSchema) -> Result<()> {
    let of = when.get_type(schema)?;
    if matches!(of, ArrowType::Boolean | ArrowType::Null) || is_open(when) {
        return Ok(());
    }
    let message = format!("argument of CASE/WHEN must be type boolean, not type {}", builtin::type_name(&of));
    Err(tunnel(EngineError::new("42804", message)))
}

/// The items of an array that is written out; numbers, and times, get one type.
pub(crate) fn items_of_array(list: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    let typed = list.iter().filter(|item| !is_open(item)).map(|item| item.get_type(schema));
    let types = typed.collect::<Result<Vec<ArrowType>>>()?;
    match types.iter().all(|t| is_number(t) || is_time(t)) && !types.is_empty() {
        true => aligned(list, schema, For::Array),
        false => Ok(list),
    }
}

/// `x IN (..)` (invariant 4).
fn in_list(list: InList, schema: &DFSchema) -> Result<Expr> {
    let InList { expr, mut list, negated } = list;
    let field = expr.to_field(schema)?.1;
    if let Expr::ScalarFunction(call) = expr.as_ref()
        && call.func.name() == OF_ARRAY
    {
        list = items_of_array(list, schema)?;
        let all = call.args.iter().cloned().chain(chars::listed(&field, list, schema)?).collect();
        return listed(&field, aligned(all, schema, For::Comparing)?, negated, schema);
    }
    let list = chars::listed(&field, list, schema)?;
    if !differ(&field, &list, schema)? {
        let all = std::iter::once(*expr).chain(list).collect::<Vec<Expr>>();
        let what_for = if all.len() > 2 { For::Listing } else { For::Comparing };
        return listed(&field, aligned(all, schema, what_for)?, negated, schema);
    }
    if expr.is_volatile() {
        let message = "IN of what is volatile, among values of several types, is not supported";
        return Err(tunnel(EngineError::unsupported(message)));
    }
    let (single, together): (Vec<Expr>, Vec<Expr>) = list.into_iter().partition(reads_row);
    let groups = match together.len() {
        0 | 1 => vec![],
        _ => vec![(together.clone(), For::Listing)],
    };
    let alone = if together.len() == 1 { together } else { vec![] };
    let singles = single.into_iter().chain(alone).map(|item| (vec![item], For::Comparing));
    let part = |(items, what_for): (Vec<Expr>, For)| {
        let all = std::iter::once(expr.as_ref().clone()).chain(items).collect();
        listed(&field, aligned(all, schema, what_for)?, negated, schema)
    };
    let parts = groups.into_iter().chain(singles).map(part).collect::<Result<Vec<Expr>>>()?;
    Ok(joined(parts, if negated { Operator::And } else { Operator::Or }))
}

/// Whether the answer depends on which items of a list get one type.
fn differ(field: &Field, list: &[Expr], schema: &DFSchema) -> Result<bool> {
    if !list.iter().any(reads_row) {
        return Ok(false);
    }
    let mut types = vec![field.data_type().clone()];
    for item in list.iter().filter(|item| !is_open(item)) {
        types.push(item.get_type(schema)?);
    }
    let apart = types.iter().any(|t| *t != types[0]);
    Ok(apart && (types.iter().any(is_float) || types.iter().any(is_time)))
}

/// Joins the parts as a balanced tree, so that a tree of many parts is not deep.
pub(crate) fn joined(mut parts: Vec<Expr>, op: Operator) -> Expr {
    if parts.len() < 2 {
        return parts.pop().unwrap_or_else(|| Expr::Literal(ScalarValue::Boolean(Some(op == Operator::And)), None));
    }
    let right = parts.split_off(parts.len() / 2);
    let (left, right) = (Box::new(joined(parts, op)), Box::new(joined(right, op)));
    Expr::BinaryExpr(BinaryExpr { left, op, right })
}

/// `x IN (..)` over values that have one type already: first x, then the items. An item that no value of x's type
/// (`field`) can equal is left out.
fn listed(field: &Field, mut exprs: Vec<Expr>, negated: bool, schema: &DFSchema) -> Result<Expr> {
    let exact = |t: &ArrowType| is_number(t) && !is_float(t);
    let items = exprs.split_off(1);
    let expr = exprs.pop().expect("the first stays");
    if !exact(field.data_type()) || is_open(&expr) || expr.get_type(schema)? != *field.data_type() {
        return Ok(Expr::InList(InList { expr: Box::new(expr), list: items, negated }));
    }
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        match constant(&item) {
            Some(value) if !value.is_null() && exact(&value.data_type()) => {
                kept.extend(operators::narrowed(&value, field).map(|value| Expr::Literal(value, None)));
            }
            _ => kept.push(item),
        }
    }
    if kept.is_empty() {
        // NULL if x is NULL, otherwise false (or true).
        return Ok(if negated { expr.clone().eq(expr) } else { expr.clone().not_eq(expr) });
    }
    Ok(Expr::InList(InList { expr: Box::new(expr), list: kept, negated }))
}

/// Refuses arguments that DataFusion's window functions misread: DISTINCT, and numbers of rows that are not positive.
fn refuse_window_arguments(name: &str, params: &WindowFunctionParams) -> Result<()> {
    if params.distinct {
        return Err(tunnel(EngineError::unsupported("DISTINCT is not supported for window functions")));
    }
    let number = match params.args.get(1).and_then(constant) {
        Some(number) if name == "nth_value" && !number.is_null() => number,
        _ => return Ok(()),
    };
    let is_positive = number.cast_to(&ArrowType::Int64).is_ok_and(|n| matches!(n, ScalarValue::Int64(Some(1..))));
    if !is_positive {
        return Err(tunnel(EngineError::new("22016", "argument of nth_value must be greater than zero")));
    }
    Ok(())
}

/// The third argument of `lag` and `lead` is of the first one's type, or both become a wider number.
fn align_default(name: &str, args: &mut [Expr], schema: &DFSchema) -> Result<()> {
    if args.len() < 3 || is_open(&args[2]) && matches!(args[2], Expr::Literal(ScalarValue::Null, _)) {
        return Ok(());
    }
    let (value, default) = (args[0].to_field(schema)?.1, args[2].to_field(schema)?.1);
    if is_open(&args[2]) {
        let char = chars::chosen([field_type(&value)].into_iter(), [chars::length_of(&args[2])].into_iter());
        args[2] = close(args[2].clone(), &value, None)?;
        if char == Some(LOOSE) {
            args[0] = chars::labelled(std::mem::take(&mut args[0]), LOOSE);
        }
        return Ok(());
    }
    let (from, to) = (value.data_type(), default.data_type());
    if from == to {
        return Ok(());
    }
    if !is_number(from) || !is_number(to) {
        let (value, default) = (builtin::type_name(from), builtin::type_name(to));
        let message = format!("function {name}({value}, integer, {default}) does not exist");
        return Err(tunnel(builtin::with_hint(EngineError::new("42883", message))));
    }
    let common = match rank(from).max(rank(to)) {
        3 => DataType::Numeric(None),
        _ if rank(from) >= rank(to) => engine_type(from).expect("a number's type"),
        _ => engine_type(to).expect("a number's type"),
    };
    for at in [0, 2] {
        args[at] = cast(std::mem::take(&mut args[at]), common)?;
    }
    Ok(())
}

/// If a column has floats beside other numbers, it becomes a float in all queries. Times become the widest of them
/// (DataFusion would compare nanoseconds). A column that is NULL in all queries becomes a text.
fn align_union(mut union: Union) -> Result<LogicalPlan> {
    let open = |expr: &Expr| matches!(expr, Expr::Alias(alias) if is_open(&alias.expr)) || is_open(expr);
    union.inputs = chars::united(typed_parameters(union.inputs)?, open)?;
    let width = union.schema.fields().len();
    let mut to: Vec<Option<DataType>> = vec![None; width];
    for (at, to) in to.iter_mut().enumerate() {
        let types: Vec<&ArrowType> =
            union.inputs.iter().filter_map(|i| i.schema().fields().get(at)).map(|f| f.data_type()).collect();
        choosers::refuse_different_rows(&types)?;
        refuse_beside_void(&union, at)?;
        let of_rows: Vec<&&ArrowType> = types.iter().filter(|t| is_row(t)).collect();
        if let Some(row) = of_rows.first()
            && let Some(other) = types.iter().find(|other| *other != *row && **other != &ArrowType::Null)
        {
            if [row, &other].iter().any(|of| matches!(of, ArrowType::Utf8)) {
                return Err(tunnel(EngineError::unsupported("rows beside texts in a set operation are not supported")));
            }
            let (row, other) = (builtin::type_name(row), builtin::type_name(other));
            let message = format!("UNION types {row} and {other} cannot be matched");
            return Err(tunnel(EngineError::new("42804", message)));
        }
        if let Some(array) = types.iter().find(|t| is_array(t)) {
            let literal = |input: &LogicalPlan| is_text_literal(input, at);
            if union.inputs.iter().any(|input| literal(input)) {
                *to = engine_type(array);
            }
        }
        let numbers = types.iter().all(|t| is_number(t) || **t == ArrowType::Null);
        if numbers && types.iter().any(|t| is_float(t)) && types.iter().any(|t| is_number(t) && !is_float(t)) {
            let double = types.contains(&&ArrowType::Float64);
            *to = Some(if double { DataType::Float8 } else { DataType::Float4 });
        } else if numbers && types.iter().any(|t| is_numeric(t)) {
            *to = engine_type(&arithmetic::united(types.into_iter().filter(|t| **t != ArrowType::Null)));
            continue;
        }
        if types.iter().all(|t| is_array_of_numerics(t)) && types.windows(2).any(|two| two[0] != two[1]) {
            *to = DataType::Numeric(None).array();
        }
        // A column that has no type in any query is text, also for a UNION around this one.
        if union.inputs.iter().all(|input| is_null(input, at)) {
            *to = Some(DataType::Text);
        }
        if types.iter().all(|t| is_time(t)) && types.windows(2).any(|two| two[0] != two[1]) {
            let zoned = types.iter().any(|t| is_zoned(t));
            *to = Some(if zoned { DataType::Timestamptz } else { DataType::Timestamp });
        }
    }
    let inputs = union.inputs.iter().map(|input| converted(input, &to)).collect::<Result<Vec<_>>>()?;
    let Union { inputs, schema } = Union::try_new_with_loose_types(inputs)?;
    let schema = Arc::new(told(&inputs, &schema)?);
    Ok(LogicalPlan::Union(Union { inputs, schema }))
}

/// 42804 of void beside what is none.
fn refuse_beside_void(union: &Union, at: usize) -> Result<()> {
    let is_void = |input: &&Arc<LogicalPlan>| is_void(input.schema().field(at));
    match union.inputs.iter().filter(is_void).count() {
        0 => Ok(()),
        all if all == union.inputs.len() => Ok(()),
        _ => Err(tunnel(EngineError::new("42804", "UNION types void and text cannot be matched"))),
    }
}

/// Whether a query's column is a quoted literal.
fn is_text_literal(query: &LogicalPlan, at: usize) -> bool {
    let open = |expr: &Expr| matches!(expr, Expr::Alias(alias) if is_open(&alias.expr)) || is_open(expr);
    match query {
        LogicalPlan::Projection(rows) => rows.schema.field(at).data_type() == &ArrowType::Utf8 && open(&rows.expr[at]),
        LogicalPlan::Distinct(Distinct::All(rows)) => is_text_literal(rows, at),
        _ => false,
    }
}

/// The final columns of a UNION, for the nodes above it. (Until DataFusion coerces types, it gives those of the first
/// query.)
fn told(inputs: &[Arc<LogicalPlan>], schema: &DFSchema) -> Result<DFSchema> {
    let will_be = |at: usize| -> Option<ArrowType> {
        let types = inputs.iter().map(|input| input.schema().field(at).data_type());
        let mut typed = types.filter(|t| **t != ArrowType::Null);
        let first = typed.next()?.clone();
        if !is_number(&first) {
            return (first != ArrowType::Utf8 && typed.all(|t| *t == first)).then_some(first);
        }
        typed.try_fold(first, |wide, next| match is_number(next) {
            true if wide == *next => Some(wide),
            true => type_union_coercion(&wide, next),
            false => None,
        })
    };
    let fields = schema.iter().enumerate().map(|(at, (qualifier, field))| {
        let field = match will_be(at) {
            Some(of) if of != *field.data_type() => Arc::new(field.as_ref().clone().with_data_type(of)),
            _ => field.clone(),
        };
        (qualifier.cloned(), field)
    });
    DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())
}

/// The queries of a UNION, with a type for each open parameter: the first known type of its column in the other
/// queries, or text.
fn typed_parameters(mut inputs: Vec<Arc<LogicalPlan>>) -> Result<Vec<Arc<LogicalPlan>>> {
    let parameter = |expr: &Expr| match expr {
        Expr::Alias(alias) => matches!(*alias.expr, Expr::Placeholder(Placeholder { field: None, .. })),
        other => matches!(other, Expr::Placeholder(Placeholder { field: None, .. })),
    };
    for input in 0..inputs.len() {
        let LogicalPlan::Projection(projection) = inputs[input].as_ref() else { continue };
        if !projection.expr.iter().any(parameter) {
            continue;
        }
        let known = |at: usize| {
            let fields = inputs.iter().filter_map(|other| other.schema().fields().get(at));
            let mut typed = fields.filter(|field| field.data_type() != &ArrowType::Null);
            typed.find_map(|field| field_type(field)).unwrap_or(DataType::Text)
        };
        let typed = |(at, expr): (usize, &Expr)| {
            let of = match known(at) {
                DataType::Numeric(_) => DataType::Numeric(None),
                text if text.is_text() => DataType::Text,
                other => other,
            };
            let made = expr.clone().transform_up(|expr| match expr {
                Expr::Placeholder(Placeholder { id, field: None }) => {
                    let field = Some(Arc::new(field_of("", of, true)));
                    Ok(Transformed::yes(Expr::Placeholder(Placeholder { id, field })))
                }
                other => Ok(Transformed::no(other)),
            });
            if parameter(expr) { made.map(|made| made.data) } else { Ok(expr.clone()) }
        };
        let exprs = projection.expr.iter().enumerate().map(typed).collect::<Result<Vec<Expr>>>()?;
        let made = Projection::try_new(exprs, projection.input.clone())?;
        inputs[input] = Arc::new(LogicalPlan::Projection(made));
    }
    Ok(inputs)
}

/// Whether a column has no type. (Until a UNION is settled, it gives the type of its first query.)
fn is_null(query: &LogicalPlan, at: usize) -> bool {
    match query {
        LogicalPlan::Union(union) => union.inputs.iter().all(|input| is_null(input, at)),
        other => other.schema().fields().get(at).is_some_and(|field| field.data_type() == &ArrowType::Null),
    }
}

/// A query with its columns converted to the types of `to`; `None`: the column stays as it is.
pub(crate) fn converted(input: &Arc<LogicalPlan>, to: &[Option<DataType>]) -> Result<Arc<LogicalPlan>> {
    let schema = input.schema().clone();
    let change = |at: usize| to[at].filter(|to| schema.field(at).data_type() != &arrow_type(*to));
    if (0..to.len()).all(|at| change(at).is_none()) {
        return Ok(input.clone());
    }
    let columns = schema.iter().enumerate().map(|(at, (qualifier, field))| {
        let column = Expr::Column((qualifier, field).into());
        match change(at) {
            Some(to) => convert(column, to).alias_qualified(qualifier.cloned(), field.name()),
            None => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    Ok(Arc::new(LogicalPlanBuilder::from(input.as_ref().clone()).project(columns)?.build()?))
}

/// The sides of INTERSECT and EXCEPT: their columns get the wider type of the two, if both are numbers or both are
/// times. (DataFusion compares them in that type, but answers the left side's.)
fn align_sides(mut join: Join) -> Result<Join> {
    let pairs = join.left.schema().fields().iter().zip(join.right.schema().fields());
    let both = |(at, (left, right)): (usize, (&Arc<Field>, &Arc<Field>))| match (left.data_type(), right.data_type()) {
        (array, _) if is_array(array) && is_text_literal(&join.right, at) => (None, engine_type(array)),
        (_, array) if is_array(array) && is_text_literal(&join.left, at) => (engine_type(array), None),
        (left, right) => wider(left, right),
    };
    let to: Vec<(Option<DataType>, Option<DataType>)> = pairs.enumerate().map(both).collect();
    if to.iter().all(|pair| *pair == (None, None)) {
        return Ok(join);
    }
    let (left, right): (Vec<_>, Vec<_>) = to.into_iter().unzip();
    join.left = match join.left.as_ref() {
        LogicalPlan::Distinct(Distinct::All(rows)) => {
            Arc::new(LogicalPlan::Distinct(Distinct::All(converted(rows, &left)?)))
        }
        _ => converted(&join.left, &left)?,
    };
    join.right = converted(&join.right, &right)?;
    Ok(join)
}
