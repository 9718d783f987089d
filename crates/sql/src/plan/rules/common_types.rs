//! The common type of CASE, COALESCE, GREATEST, LEAST and UNION. Quoted literals become values of it; if PostgreSQL
//! finds no common type, the expression is refused (42804). Also here: a window's RANGE becomes GROUPS if the type that
//! rows are ordered by has no addition.
//!
//! Upstream: type coercion turns numbers into text wherever one side is text, so `CASE ... THEN 1 ELSE name END` and
//! `SELECT 1 UNION SELECT name` are answered. `coerce_window_frame` fails for the default frame (RANGE, without
//! offsets) over uuid and bytea.
use super::expressions::Rewrite;
use crate::error::tunnel;
use crate::functions::arithmetic::is_number;
use crate::functions::convert::convert_scalar;
use crate::values::arrays::is_array;
use crate::values::{engine_type, enum_of, field_type};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, Projection, Union, WindowFrame, WindowFrameBound, WindowFrameUnits,
};
use std::sync::Arc;
use terrace_engine::{DataType, EngineError};

/// Settles the types of a plan, before DataFusion coerces them. `branches`: also those of its branches.
pub(crate) fn settle(plan: LogicalPlan, branches: bool) -> Result<LogicalPlan> {
    let settle_one = |expr: Expr, schema: &DFSchema| match expr {
        Expr::WindowFunction(call) => settle_window(call, schema).map(Transformed::yes),
        expr if branches => settle_expr(expr, schema),
        expr => Ok(Transformed::no(expr)),
    };
    let rewrite = Rewrite {
        concerns: |e: &Expr| matches!(e, Expr::Case(_) | Expr::WindowFunction(_)) || chooses(e).is_some(),
        expr: |expr: Expr, schema: &DFSchema| expr.transform_up(|e| settle_one(e, schema)),
        node: |plan, _: &DFSchema| match plan {
            LogicalPlan::Union(union) if branches => settle_union(union),
            plan => Ok(Transformed::no(plan)),
        },
    };
    rewrite.plan(plan)
}

fn adds_nothing(of: &ArrowType) -> bool {
    use ArrowType::*;
    enum_of(of).is_some()
        || matches!(of, Binary | LargeBinary | BinaryView | FixedSizeBinary(_) | Interval(_) | Time64(_))
        || matches!(of, LargeList(_) | Struct(_))
        || is_array(of)
}

/// A window without offsets that is ordered by what nothing can be added to: RANGE goes by peers then, as GROUPS does.
pub(crate) fn settle_window(mut call: Box<WindowFunction>, schema: &DFSchema) -> Result<Expr> {
    let WindowFrame { units, start_bound, end_bound, .. } = &call.params.window_frame;
    let ordered = call.params.order_by.first().and_then(|by| by.expr.get_type(schema).ok());
    if *units == WindowFrameUnits::Range
        && let Some(of) = ordered.filter(adds_nothing)
    {
        let bound = |bound: &WindowFrameBound| match bound {
            WindowFrameBound::CurrentRow => Ok(WindowFrameBound::CurrentRow),
            WindowFrameBound::Preceding(n) if n.is_null() => Ok(WindowFrameBound::Preceding(ScalarValue::UInt64(None))),
            WindowFrameBound::Following(n) if n.is_null() => Ok(WindowFrameBound::Following(ScalarValue::UInt64(None))),
            _ => internal_err!("RANGE with an offset over {of}"),
        };
        let frame = WindowFrame::new_bounds(WindowFrameUnits::Groups, bound(start_bound)?, bound(end_bound)?);
        call.params.window_frame = frame;
    }
    Ok(Expr::WindowFunction(call))
}

/// The name of a function that answers one of its arguments.
fn chooses(expr: &Expr) -> Option<&'static str> {
    let Expr::ScalarFunction(call) = expr else { return None };
    match call.name() {
        "coalesce" => Some("COALESCE"),
        "greatest" => Some("GREATEST"),
        "least" => Some("LEAST"),
        _ => None,
    }
}

pub(super) fn settle_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Case(mut case) => {
            let branches = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
            // PostgreSQL looks at ELSE first.
            let branches: Vec<&Expr> = case.else_expr.as_deref().into_iter().chain(branches).collect();
            let Some(common) = common("CASE", &branches, schema)? else { return Ok(Transformed::no(Expr::Case(case))) };
            for (_, then) in &mut case.when_then_expr {
                take_type(then, &common)?;
            }
            if let Some(otherwise) = &mut case.else_expr {
                take_type(otherwise, &common)?;
            }
            Ok(Transformed::yes(Expr::Case(case)))
        }
        Expr::ScalarFunction(mut call) => {
            let expr = Expr::ScalarFunction(call.clone());
            let Some(what) = chooses(&expr) else { return Ok(Transformed::no(expr)) };
            let Some(common) = common(what, &call.args.iter().collect::<Vec<_>>(), schema)? else {
                return Ok(Transformed::no(expr));
            };
            for arg in &mut call.args {
                take_type(arg, &common)?;
            }
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Literals in quotes, NULL and parameters have no type of their own.
fn is_open(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => value.is_null() || matches!(value, ScalarValue::Utf8(_)),
        Expr::Alias(alias) => is_open(&alias.expr),
        Expr::Placeholder(_) => true,
        _ => false,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Category {
    Number,
    Text,
    Boolean,
    Time,
    TimeOfDay,
    Interval,
    Bytes,
    Json,
    Jsonb,
    Array,
    Enum,
}

impl Category {
    /// Its types become no other of it.
    fn is_of_one_type(self) -> bool {
        matches!(self, Category::Array | Category::Enum)
    }
}

fn category(field: &Field) -> Option<(Category, String)> {
    use ArrowType::*;
    let category = match field.data_type() {
        of if enum_of(of).is_some() => Category::Enum,
        of if is_number(of) => Category::Number,
        Utf8 => Category::Text,
        Boolean => Category::Boolean,
        Date32 | Timestamp(..) => Category::Time,
        Time64(_) => Category::TimeOfDay,
        Interval(_) => Category::Interval,
        Binary => Category::Bytes,
        BinaryView => Category::Json,
        LargeBinary => Category::Jsonb,
        of if is_array(of) && engine_type(of).is_some() => Category::Array,
        _ => return None,
    };
    // Arrays of all kinds of text are of one type here.
    let of = if category == Category::Array { engine_type(field.data_type()) } else { field_type(field) };
    let name = of.map_or_else(|| field.data_type().to_string(), |t| t.base_name().to_owned());
    Some((category, name))
}

/// What branches have in common so far.
#[derive(Default)]
struct Common {
    first: Option<(Category, String)>,
    /// The widest.
    field: Option<Arc<Field>>,
}

impl Common {
    /// `false`: a type that nothing is told of here.
    fn add(&mut self, what: &str, field: &Arc<Field>) -> Result<bool> {
        let Some((category, name)) = category(field) else { return Ok(false) };
        match &self.first {
            Some((known, known_name)) if *known != category || category.is_of_one_type() && *known_name != name => {
                let message = format!("{what} types {known_name} and {name} cannot be matched");
                return Err(tunnel(EngineError::new("42804", message)));
            }
            Some(_) => {}
            None => self.first = Some((category, name)),
        }
        if self.field.as_ref().is_none_or(|widest| rank(widest.data_type()) < rank(field.data_type())) {
            self.field = Some(field.clone());
        }
        Ok(true)
    }

    /// What quoted literals become; text they are already.
    fn wanted(self) -> Option<Arc<Field>> {
        let (category, _) = self.first?;
        self.field.filter(|_| category != Category::Text)
    }
}

fn rank(data_type: &ArrowType) -> u8 {
    use ArrowType::*;
    match data_type {
        Int32 | Timestamp(_, None) => 1,
        Int64 | Timestamp(..) => 2,
        Decimal128(..) | LargeList(_) => 3,
        Float32 => 4,
        Float64 => 5,
        _ => 0,
    }
}

/// `None`: nothing is to be done.
fn common(what: &str, branches: &[&Expr], schema: &DFSchema) -> Result<Option<Arc<Field>>> {
    let mut common = Common::default();
    for branch in branches.iter().filter(|branch| !is_open(branch)) {
        let Ok((_, field)) = branch.to_field(schema) else { return Ok(None) };
        if !common.add(what, &field)? {
            return Ok(None);
        }
    }
    Ok(common.wanted())
}

/// A quoted literal as a value of the type.
fn take_type(expr: &mut Expr, field: &Field) -> Result<()> {
    match expr {
        Expr::Literal(value @ ScalarValue::Utf8(Some(_)), _) => {
            let to = match engine_type(field.data_type()) {
                // Each number has its own digits.
                Some(DataType::Numeric(_)) => DataType::Numeric(None),
                Some(to) => to,
                None => return Ok(()),
            };
            *value = convert_scalar(value, to)?;
            Ok(())
        }
        Expr::Alias(alias) => take_type(&mut alias.expr, field),
        _ => Ok(()),
    }
}

/// A UNION as [`settle`] leaves it.
pub(crate) fn settled_union(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Union(union) => Ok(settle_union(union)?.data),
        other => Ok(other),
    }
}

/// A value without a type of its own, and no parameter whose type the client has said.
fn is_unsaid(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_unsaid(&alias.expr),
        Expr::Placeholder(parameter) => {
            parameter.field.as_ref().is_none_or(|field| matches!(field.data_type(), ArrowType::Utf8 | ArrowType::Null))
        }
        expr => is_open(expr),
    }
}

/// Queries side by side (`what`: UNION, INTERSECT, EXCEPT) whose columns have types in common: 42804 where they have
/// none. Literals in quotes become values of those types; whether there are such.
pub(crate) fn settle_branches(what: &str, inputs: &mut [LogicalPlan]) -> Result<bool> {
    let mut changed = false;
    for column in 0..inputs[0].schema().fields().len() {
        let mut common = Common::default();
        let mut known = true;
        for input in inputs.iter() {
            if column >= input.schema().fields().len() {
                return Ok(false);
            }
            let open = matches!(input, LogicalPlan::Projection(p) if is_unsaid(&p.expr[column]));
            known = known && (open || common.add(what, input.schema().field(column))?);
        }
        let Some(field) = common.wanted().filter(|_| known) else { continue };
        for input in inputs.iter_mut() {
            if let LogicalPlan::Projection(projection) = input
                && is_open(&projection.expr[column])
            {
                let mut exprs = projection.expr.clone();
                let name = exprs[column].schema_name().to_string();
                take_type(&mut exprs[column], &field)?;
                if exprs[column].schema_name().to_string() != name {
                    exprs[column] = exprs[column].clone().alias(name);
                }
                *input = LogicalPlan::Projection(Projection::try_new(exprs, projection.input.clone())?);
                changed = true;
            }
        }
    }
    Ok(changed)
}

fn settle_union(union: Union) -> Result<Transformed<LogicalPlan>> {
    let mut inputs: Vec<LogicalPlan> = union.inputs.iter().map(|input| input.as_ref().clone()).collect();
    if !settle_branches("UNION", &mut inputs)? {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let inputs = inputs.into_iter().map(Arc::new).collect();
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}
