//! Arrays: operators, subscripts, and arrays of a query's rows.
//!
//! 1. An operator is the function that PostgreSQL's operator stands for. A quoted literal beside an array is an array
//!    of its type.
//! 2. Where one of several subscripts is a slice, all are: a number stands for those from 1 to it.
use super::composites::Becomes;
use super::over::assigned_constant;
use super::query::parameter_number;
use super::scope::{Clause, Scope};
use super::types::no_operator;
use super::{Binder, Placed, Result, fail, system, unsupported, wrong};
use crate::cast::{Castable, castable};
use crate::error::tunnel;
use crate::functions::arrays::calls::{self, OPEN};
use crate::functions::arrays::{array, gathered as gathered_array, item_type, list};
use crate::functions::builtin::type_name;
use crate::functions::convert::is_open;
use crate::values::arrays::{is_array, is_row, items_of};
use crate::values::{engine_type, field_type};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{DFSchema, ScalarValue, Spans};
use datafusion::logical_expr::expr::{AggregateFunction, Unnest};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Sort, Subquery, lit};
use std::sync::Arc;
use terrace_engine::types::array::MOST_DIMENSIONS;
use terrace_engine::{DataType, EngineError};
use terrace_grammar::statement::{self as tree, At, Call, ExprKind, Query, Subscript};

impl Binder<'_> {
    /// Invariant 1; `None`: it is no operator of arrays.
    pub(super) fn array_operator(
        &self,
        symbol: &str,
        left: &Expr,
        right: &Expr,
        schema: &DFSchema,
    ) -> Result<Option<Expr>> {
        let (lt, rt) = (left.get_type(schema)?, right.get_type(schema)?);
        let (of_left, of_right) = (item_type(&lt).is_some(), item_type(&rt).is_some());
        if !of_left && !of_right {
            return Ok(None);
        }
        let both = vec![left.clone(), right.clone()];
        let array = |is: bool, expr: &Expr| is || is_open(expr);
        let name = match symbol {
            "||" if array(of_left, left) && array(of_right, right) => "array_cat",
            "||" if of_left => "array_append",
            "||" => "array_prepend",
            "@>" => "array contains",
            "<@" => "array contained",
            "&&" => "array overlaps",
            _ => return Ok(None),
        };
        match calls::call(name, both.clone(), schema)? {
            Some(made) => Ok(Some(made)),
            None => no_operator(symbol, &both, schema).map(Some),
        }
    }

    /// `a[1]`, `a[1:2]`; `None`: it is no array.
    pub(super) fn subscript_of_array(&self, whole: &tree::Expr, scope: &Scope<'_>) -> Result<Option<Expr>> {
        let (mut base, mut subscripts, mut more) = (whole, vec![], true);
        while let ExprKind::Subscript { arg, subscript, continues } = &base.kind
            && more
        {
            subscripts.push(subscript);
            (base, more) = (arg, *continues);
        }
        let array = self.expr(base, scope)?;
        if item_type(&array.get_type(&scope.schema)?).is_none() {
            return match subscripts.as_slice() {
                [Subscript::Index(at)] if system::is_vector(&array, &scope.schema)? => {
                    let at = self.subscript_number(at, scope)?;
                    self.function_of("pg_vector_item", vec![array, at], &scope.schema).map(Some)
                }
                _ => Ok(None),
            };
        }
        subscripts.reverse();
        few_enough(subscripts.len(), base.at)?;
        // The first item of the system's vectors has the number 0.
        if system::is_vector(&array, &scope.schema)? {
            let [Subscript::Index(at)] = subscripts.as_slice() else { return unsupported("a slice") };
            let at = self.compared("+", self.subscript_number(at, scope)?, lit(1i32), &scope.schema)?;
            return self.array_function("array item", vec![array, at], &scope.schema).map(Some);
        }
        let (numbers, slices) = self.subscript_numbers(subscripts.into_iter(), scope)?;
        let name = if slices { "array slice" } else { "array item" };
        let args = [array].into_iter().chain(numbers).collect();
        self.array_function(name, args, &scope.schema).map(Some)
    }

    /// The numbers in brackets, and whether they are bounds of slices (invariant 2).
    fn subscript_numbers<'t>(
        &self,
        subscripts: impl Iterator<Item = &'t Subscript> + Clone,
        scope: &Scope<'_>,
    ) -> Result<(Vec<Expr>, bool)> {
        let slices = subscripts.clone().any(|subscript| matches!(subscript, Subscript::Slice(..)));
        let mut numbers = vec![];
        for subscript in subscripts {
            match subscript {
                Subscript::Index(at) if slices => numbers.extend([lit(1i64), self.subscript_number(at, scope)?]),
                Subscript::Index(at) => numbers.push(self.subscript_number(at, scope)?),
                Subscript::Slice(from, to) => {
                    numbers.extend(self.slice_bounds(from.as_deref(), to.as_deref(), scope)?);
                }
            }
        }
        Ok((numbers, slices))
    }

    /// What a column becomes by `SET a[1] = value`.
    pub(super) fn with_part(&self, with: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        let ExprKind::With { column, arg: whole, subscripts, value } = &with.kind else {
            return self.expr(with, scope);
        };
        if let ExprKind::Default = value.kind {
            return wrong(value.at, "0A000", "cannot set an array element to DEFAULT");
        }
        let array = self.assigned_part(whole, scope)?;
        let of = array.get_type(&scope.schema)?;
        if item_type(&of).is_none() {
            return match of {
                ArrowType::LargeBinary => self.jsonb_with_part((&column.name, array), subscripts, value, scope),
                of => no_subscripts(&of, whole.at),
            };
        }
        few_enough(subscripts.len(), whole.at)?;
        let (numbers, slices) = self.subscript_numbers(subscripts.iter(), scope)?;
        let name = if slices { "array with slice" } else { "array with" };
        let item = item_type(&of).filter(|_| !slices);
        let written = item.map(|item| self.written_as(value, item, Becomes::Assigned, scope)).transpose()?.flatten();
        let new = match written {
            Some(row) => row,
            None => self.expr(value, scope)?,
        };
        let given = new.get_type(&scope.schema)?;
        let taken = field_type(array.to_field(&scope.schema)?.1.as_ref());
        let taken = if slices { taken } else { taken.and_then(DataType::item) };
        let fits = |to: &DataType| engine_type(&given).is_some_and(|of| castable(of, *to) == Castable::ByAssignment);
        let new = match taken {
            Some(to) if is_open(&new) => written_as_item(new, to).at_value_of(&[value])?,
            Some(to) if fits(&to) => assigned_constant(new, to),
            _ => new,
        };
        let args = [array, new].into_iter().chain(numbers).collect();
        match calls::call(name, args, &scope.schema).at_value_of(&[value])? {
            Some(made) => self.made(made, &scope.schema),
            None => {
                let wanted = match item_type(&of) {
                    Some(item) if name == "array with" => item.base_name().to_owned(),
                    _ => type_name(&of),
                };
                let given = type_name(&given);
                let message = format!(
                    "subscripted assignment to \"{}\" requires type {wanted} but expression is of type {given}",
                    column.name
                );
                let hint = "You will need to rewrite or cast the expression.";
                fail(value.at, EngineError::new("42804", message).with_hint(hint))
            }
        }
    }

    /// The bounds of a slice, those that are not written included.
    pub(super) fn slice_bounds(
        &self,
        from: Option<&tree::Expr>,
        to: Option<&tree::Expr>,
        scope: &Scope<'_>,
    ) -> Result<[Expr; 2]> {
        let bound = |bound: Option<&tree::Expr>, open| match bound {
            Some(bound) => self.subscript_number(bound, scope),
            None => Ok(lit(open)),
        };
        Ok([bound(from, OPEN[0])?, bound(to, OPEN[1])?])
    }

    /// A number in brackets.
    pub(super) fn subscript_number(&self, at: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        if let ExprKind::Parameter(number) = at.kind {
            self.settle_parameter(parameter_number(number)?, DataType::Int4);
        }
        let bound = self.expr(at, scope)?;
        let of = bound.get_type(&scope.schema)?;
        let fits = engine_type(&of).is_some_and(|of| castable(of, DataType::Int4) == Castable::ByAssignment);
        if !is_open(&bound) && !fits {
            return wrong(at.at, "42804", "array subscript must have type integer");
        }
        match of {
            ArrowType::Int32 => Ok(bound),
            _ => self.cast_to(bound, DataType::Int4, &scope.schema).at_value_of(&[at]),
        }
    }

    /// A function of arrays that is known to fit.
    pub(super) fn array_function(&self, name: &str, args: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
        match calls::call(name, args, schema)? {
            Some(made) => self.made(made, schema),
            None => unsupported("this function"),
        }
    }

    /// A call of a function of arrays. `args`: as they were bound.
    pub(super) fn array_call(
        &self,
        name: &str,
        call: &Call,
        args: Vec<Expr>,
        at: At,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let written: Vec<&tree::Expr> = call.args.iter().map(|arg| &arg.value).collect();
        match calls::call(name, args, &scope.schema).at_value_of(&written).at(at)? {
            Some(made) => self.made(made, &scope.schema).at(at),
            None => self.unknown(name, call, at, scope),
        }
    }

    /// `generate_subscripts(array, 1)`: a list of the numbers of the array's items; `None`: it is not this function.
    pub(super) fn subscripts(&self, call: &Call, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let mut args = vec![];
        for arg in &call.args {
            args.push(self.expr(&arg.value, scope)?);
        }
        if let Some(array) = args.first()
            && args.len() == 2
            && system::is_vector(array, &scope.schema)?
        {
            return self.function_of("pg_vector_subscripts", vec![args.remove(0)], &scope.schema).at(at);
        }
        if let Some(array) = args.first()
            && is_array(&array.get_type(&scope.schema)?)
            && item_type(&array.get_type(&scope.schema)?).is_none()
        {
            return self.function_of("pg_subscripts", vec![args.remove(0)], &scope.schema).at(at);
        }
        match calls::call("array subscripts", args, &scope.schema).at(at)? {
            Some(made) => self.made(made, &scope.schema).at(at),
            None => self.unknown("generate_subscripts", call, at, scope),
        }
    }

    /// The same in the list of SELECT.
    pub(super) fn subscripts_of_list(&self, call: &Call, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let clause = scope.clause.get();
        if !matches!(clause, Clause::Items | Clause::Order) {
            let message = format!("set-returning functions are not allowed in {}", clause.name());
            return wrong(at, "0A000", message);
        }
        Ok(Expr::Unnest(Unnest::new(list(self.subscripts(call, at, scope)?))))
    }

    /// `ARRAY(SELECT ..)`: the values of the query's rows, in its order.
    pub(super) fn array_of_rows(&self, query: &Query, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let subquery = self.one_column(query, at, scope, "subquery must return only one column")?;
        let (rows, column, order) = in_order(&subquery.subquery)?;
        let of = column.get_type(rows.schema())?;
        if is_row(&of) {
            return unsupported("an array of rows");
        }
        let Some(function) = self.planner.aggregate("array_agg") else { return unsupported("this function") };
        let call = AggregateFunction::new_udf(function, vec![column], false, None, order, None);
        let none: Vec<Expr> = vec![];
        let rows = LogicalPlanBuilder::from(rows.as_ref().clone());
        let plan = rows.aggregate(none, vec![Expr::AggregateFunction(call)])?.build()?;
        let outer_ref_columns = plan.all_out_ref_exprs();
        let gathered =
            Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() });
        let item = items_of(&of).map_or(of.clone(), |item| item.data_type().clone());
        let empty = Expr::Literal(ScalarValue::List(ScalarValue::new_list_nullable(&[], &item)), None);
        let gathered = gathered_array(gathered, &scope.schema)?;
        self.function_of("coalesce", vec![gathered, array(empty)], &scope.schema)
    }
}

/// A quoted literal that becomes a part of an array, as it is assigned.
fn written_as_item(new: Expr, to: DataType) -> datafusion::common::Result<Expr> {
    if let Expr::Literal(ScalarValue::Utf8(Some(text)), None) = &new {
        to.parse(text).map_err(tunnel)?; // Where no row is changed, too.
    }
    Ok(new)
}

/// 54000
fn few_enough(subscripts: usize, at: At) -> Result<()> {
    if subscripts <= MOST_DIMENSIONS {
        return Ok(());
    }
    let message = format!("number of array dimensions ({subscripts}) exceeds the maximum allowed ({MOST_DIMENSIONS})");
    wrong(at, "54000", message)
}

/// 42804
pub(super) fn no_subscripts<T>(of: &ArrowType, at: At) -> Result<T> {
    let message = format!("cannot subscript type {} because it does not support subscripting", type_name(of));
    wrong(at, "42804", message)
}

/// The rows of a query, its column over them, and their order as far as it is the query's last step.
fn in_order(plan: &Arc<LogicalPlan>) -> Result<(Arc<LogicalPlan>, Expr, Vec<datafusion::logical_expr::SortExpr>)> {
    let all = |plan: &Arc<LogicalPlan>| {
        let column = Expr::Column(plan.schema().columns().remove(0));
        (plan.clone(), column, vec![])
    };
    let (input, column) = match plan.as_ref() {
        LogicalPlan::Projection(projection) if matches!(projection.expr.as_slice(), [Expr::Column(_)]) => {
            (&projection.input, projection.expr[0].clone())
        }
        _ => (plan, Expr::Column(plan.schema().columns().remove(0))),
    };
    Ok(match input.as_ref() {
        LogicalPlan::Sort(Sort { expr, input, fetch: None }) => (input.clone(), column, expr.clone()),
        _ => all(plan),
    })
}
