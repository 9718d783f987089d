//! Functions that answer rows, in the list of SELECT. Those in FROM are in [`super::sets`].
//!
//! 1. Those of a list of SELECT go row by row beside each other. Where one has ended before another, it is NULL.
//! 2. They are computed behind groups and windows, before DISTINCT, ORDER BY and LIMIT. What ORDER BY leaves open is
//!    in the order of the items. Those that are grouped by are computed before the groups.
//! 3. Of no items, and of NULL, there are no rows.
use super::group::{Groups, collected, collected_in, replaced};
use super::scope::{Clause, Scope};
use super::select::{Order, Parts};
use super::{Binder, Placed, Result, system, unsupported, wrong};
use crate::functions::arrays::{self, calls, item_type, matches, ordinals};
use crate::functions::chars::labelled;
use crate::functions::convert::is_open;
use crate::functions::json::make::{self, Made};
use crate::plan::resolve;
use crate::values::arrays::is_array;
use crate::values::decimal::is_decimal;
use crate::values::{engine_type, field_of, field_type};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, NullHandling, ScalarValue, UnnestOptions};
use datafusion::logical_expr::expr::{Placeholder, Unnest};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, lit};
use std::sync::Arc;
use terrace_engine::{DataType, EngineError};
use terrace_grammar::statement::{At, Call};

impl Binder<'_> {
    /// `unnest(array)` as an expression.
    pub(super) fn unnest(&self, call: &Call, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let [array] = call.args.as_slice() else { return self.unknown("unnest", call, at, scope) };
        let array = self.array_of(&array.value, call, at, scope)?;
        self.rows_of_list(array, at, scope)
    }

    /// `string_to_table` and `regexp_split_to_table`: the items of what their functions of arrays answer.
    pub(super) fn split_to_rows(&self, name: &str, call: &Call, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let list = self.split_list(name, call, at, scope)?;
        self.rows_of_list(list, at, scope)
    }

    pub(super) fn split_list(&self, name: &str, call: &Call, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let args = call.args.iter().map(|arg| self.expr(&arg.value, scope)).collect::<Result<Vec<Expr>>>()?;
        self.array_call(&name.replace("_table", "_array"), call, args, at, scope)
    }

    /// `regexp_matches`, as a list of arrays.
    pub(super) fn matches_list(&self, call: &Call, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let mut args = call.args.iter().map(|arg| self.expr(&arg.value, scope)).collect::<Result<Vec<Expr>>>()?;
        if !matches!(args.len(), 2 | 3) {
            return self.unknown("regexp_matches", call, at, scope);
        }
        for arg in &mut args {
            let of = arg.get_type(&scope.schema)?;
            if !is_open(arg) && !engine_type(&of).is_some_and(DataType::is_text) {
                return self.unknown("regexp_matches", call, at, scope);
            }
            *arg = self.cast_to(std::mem::take(arg), DataType::Text, &scope.schema)?;
        }
        self.made(matches::call(args), &scope.schema).at(at)
    }

    /// `generate_series`, as a list; `None`: it is of something else.
    pub(super) fn series_of(&self, args: Vec<Expr>, scope: &Scope<'_>) -> Result<Option<Expr>> {
        let times = if args.len() == 3 { self.time_series(args.clone(), scope)? } else { None };
        let numerics = match times {
            None => self.numeric_series(args.clone(), scope)?,
            times => times,
        };
        match numerics {
            None => self.whole_series(args, scope),
            known => Ok(known),
        }
    }

    /// `generate_series` of timestamps, as a list; `None`: it is of something else. Dates are moments.
    pub(super) fn time_series(&self, args: Vec<Expr>, scope: &Scope<'_>) -> Result<Option<Expr>> {
        let of = |arg: &Expr| if is_open(arg) { None } else { arg.get_type(&scope.schema).ok() };
        let types: Vec<Option<ArrowType>> = args[..2].iter().map(of).collect();
        let is_time = |of: &Option<ArrowType>| matches!(of, Some(ArrowType::Date32 | ArrowType::Timestamp(..)));
        let plain = |of: &Option<ArrowType>| matches!(of, None | Some(ArrowType::Timestamp(_, None)));
        if !types.iter().any(is_time) {
            return Ok(None);
        }
        let to = if types.iter().all(plain) { DataType::Timestamp } else { DataType::Timestamptz };
        let mut cast = vec![];
        for (at, arg) in args.into_iter().enumerate() {
            cast.push(self.cast_to(arg, if at < 2 { to } else { DataType::Interval }, &scope.schema)?);
        }
        match calls::call("time series", cast, &scope.schema)? {
            Some(made) => self.made(made, &scope.schema).map(Some),
            None => Ok(None),
        }
    }

    /// `generate_series` of numerics, as a list; `None`: it is of something else.
    pub(super) fn numeric_series(&self, mut args: Vec<Expr>, scope: &Scope<'_>) -> Result<Option<Expr>> {
        let mut numeric = false;
        for arg in args.iter().filter(|arg| !is_open(arg)) {
            match arg.get_type(&scope.schema)? {
                ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64 => {}
                of if of.is_decimal() || is_decimal(&of) => numeric = true,
                _ => return Ok(None),
            }
        }
        if !numeric {
            return Ok(None);
        }
        if args.len() == 2 {
            args.push(lit(1i32));
        }
        let to = DataType::Numeric(None);
        let cast = args.into_iter().map(|arg| self.cast_to(told(arg, to), to, &scope.schema));
        let cast = cast.collect::<Result<Vec<Expr>>>()?;
        match calls::call("numeric series", cast, &scope.schema)? {
            Some(made) => self.made(made, &scope.schema).map(Some),
            None => Ok(None),
        }
    }

    /// `generate_series` of integers, as a list; `None`: it is of something else.
    pub(super) fn whole_series(&self, mut args: Vec<Expr>, scope: &Scope<'_>) -> Result<Option<Expr>> {
        if args.len() == 2 {
            args.push(lit(1i32));
        }
        let (mut wide, mut typed) = (false, false);
        for arg in args.iter().filter(|arg| !is_open(arg)) {
            match arg.get_type(&scope.schema)? {
                ArrowType::Int16 | ArrowType::Int32 => typed = true,
                ArrowType::Int64 => (wide, typed) = (true, true),
                _ => return Ok(None),
            }
        }
        let to = if wide { DataType::Int8 } else { DataType::Int4 };
        let cast = args.into_iter().map(|arg| self.cast_to(told(arg, to), to, &scope.schema));
        let cast = cast.collect::<Result<Vec<Expr>>>()?;
        match calls::call("whole series", cast, &scope.schema)?.filter(|_| typed) {
            Some(made) => self.made(made, &scope.schema).map(Some),
            None => Ok(None),
        }
    }

    /// `information_schema._pg_expandarray(array)` in the list of SELECT: rows of an item, x, and its number, n.
    pub(super) fn expanded(&self, call: &Call, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let [item, number] = self.expanded_parts(call, at, scope)?;
        let names = vec!["x".to_owned(), "n".to_owned()];
        self.made(make::call(Made::Row(names), false, "", vec![item, number]), &scope.schema)
    }

    /// The same, by its columns.
    pub(super) fn expanded_parts(&self, call: &Call, at: At, scope: &Scope<'_>) -> Result<[Expr; 2]> {
        let [array] = call.args.as_slice() else { return self.unknown("_pg_expandarray", call, at, scope) };
        let array = self.array_of(&array.value, call, at, scope)?;
        let of = array.get_type(&scope.schema)?;
        let is_vector = system::is_vector(&array, &scope.schema)?;
        if array.is_volatile() || !is_vector && item_type(&of).is_none() {
            return unsupported("_pg_expandarray of this");
        }
        let (name, subscripts) = match is_vector {
            true => ("pg_vector_subscripts", vec![array.clone()]),
            false => ("array subscripts", vec![array.clone(), lit(1i32)]),
        };
        let subscripts = match is_vector {
            true => self.function_of(name, subscripts, &scope.schema)?,
            false => self.array_function(name, subscripts, &scope.schema)?,
        };
        let subscript = self.rows_of_list(subscripts, at, scope)?;
        if is_vector {
            let item = self.rows_of_list(array, at, scope)?;
            return Ok([item, self.compared("+", subscript, lit(1i32), &scope.schema)?]);
        }
        let item = self.array_function("array item", vec![array.clone(), subscript.clone()], &scope.schema)?;
        let first = self.array_function("array_lower", vec![array, lit(1i32)], &scope.schema)?;
        let number = self.compared("-", subscript, first, &scope.schema)?;
        Ok([item, self.compared("+", number, lit(1i32), &scope.schema)?])
    }

    pub(super) fn rows_of_list(&self, array: Expr, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let clause = scope.clause.get();
        if !matches!(clause, Clause::Items | Clause::Order | Clause::Group) {
            let message = format!("set-returning functions are not allowed in {}", clause.name());
            return wrong(at, "0A000", message);
        }
        let of = field_type(array.to_field(&scope.schema)?.1.as_ref()).and_then(DataType::item);
        let items = Expr::Unnest(Unnest::new(arrays::list(array)));
        Ok(match of {
            // What Arrow's type of the items does not tell.
            Some(of @ (DataType::Char(1..) | DataType::Varchar(_))) => labelled(items, of),
            _ => items,
        })
    }

    /// `pg_listening_channels()`.
    pub(super) fn listening_channels(&self, scope: &Scope<'_>) -> Result<Expr> {
        if scope.clause.get() != Clause::Items {
            return unsupported("pg_listening_channels here");
        }
        let channels = self.function_of("listening_channels", vec![], &scope.schema)?;
        Ok(Expr::Unnest(Unnest::new(channels)))
    }

    /// `pg_partition_ancestors(table)`: no rows, because no table is a partition.
    pub(super) fn ancestors(&self, call: &Call, scope: &Scope<'_>) -> Result<Expr> {
        if scope.clause.get() != Clause::Items {
            return unsupported("pg_partition_ancestors here");
        }
        self.expr(&call.args[0].value, scope)?;
        let none = ScalarValue::new_null_list(ArrowType::UInt32, true, 1);
        Ok(Expr::Unnest(Unnest::new(Expr::Literal(none, None))))
    }

    pub(super) fn array_of(
        &self,
        arg: &terrace_grammar::statement::Expr,
        call: &Call,
        at: At,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let array = self.expr(arg, scope)?;
        if is_open(&array) {
            return wrong(at, "42804", "could not determine polymorphic type because input has type unknown");
        }
        match array.get_type(&scope.schema)? {
            of if is_array(&of) => Ok(array),
            _ => self.unknown("unnest", call, at, scope),
        }
    }

    /// Invariants 1 and 2.
    pub(super) fn unnested(&self, plan: LogicalPlan, parts: &mut Parts, distinct: bool) -> Result<LogicalPlan> {
        let found = collected(parts, &is_unnest)?;
        if found.is_empty() {
            return Ok(plan);
        }
        parts.all().try_for_each(refuse_chosen)?;
        let Lists { mut columns, known, mut names } = self.lists_of(&plan, found);
        if !parts.order.is_empty() && !distinct {
            // PostgreSQL takes lists apart when the rows are in order: those of one stay in theirs.
            let lists = columns[columns.len() - names.len()..].iter().map(|list| list.clone().unalias()).collect();
            let ordinal = Column::new_unqualified(self.column_name(""));
            columns.push(ordinals::numbers(lists, false).alias(&ordinal.name));
            let order = Order { descending: false, nulls_first: false };
            parts.order.push((Expr::Column(ordinal.clone()), order, 0));
            names.push(ordinal);
        }
        let plan = spread(LogicalPlanBuilder::from(plan).project(columns)?, names)?;
        parts.change(&mut |expr| replaced(expr, &known))?;
        Ok(plan)
    }

    /// The same of those that are grouped by (invariant 2).
    pub(super) fn unnested_keys(
        &self,
        plan: LogicalPlan,
        groups: &mut Groups,
        parts: &mut Parts,
    ) -> Result<LogicalPlan> {
        let mut found = vec![];
        groups.sets.iter().flatten().try_for_each(|key| collected_in(key, &mut found, &is_unnest))?;
        if found.is_empty() {
            return Ok(plan);
        }
        groups.sets.iter().flatten().try_for_each(refuse_chosen)?;
        let Lists { columns, known, names } = self.lists_of(&plan, found);
        let plan = spread(LogicalPlanBuilder::from(plan).project(columns)?, names)?;
        for key in groups.sets.iter_mut().flatten() {
            *key = replaced(std::mem::take(key), &known)?;
        }
        parts.change(&mut |expr| replaced(expr, &known))?;
        Ok(plan)
    }

    fn lists_of(&self, plan: &LogicalPlan, calls: Vec<Expr>) -> Lists {
        let mut columns: Vec<Expr> = super::from::columns(plan).collect();
        let (mut known, mut names) = (vec![], vec![]);
        for call in calls {
            let Expr::Unnest(Unnest { expr: array, .. }) = &call else { unreachable!("they were collected") };
            let name = self.column_name("unnest");
            columns.push(array.as_ref().clone().alias(&name));
            let column = Column::new_unqualified(name);
            known.push((call, Expr::Column(column.clone())));
            names.push(column);
        }
        assert_eq!(known.len(), names.len(), "invariant 1: a column for each");
        Lists { columns, known, names }
    }
}

/// Lists beside the columns of a plan.
struct Lists {
    columns: Vec<Expr>,
    /// The calls that answer their items, and the columns that these are in then.
    known: Vec<(Expr, Expr)>,
    /// Of the lists.
    names: Vec<Column>,
}

fn is_unnest(expr: &Expr) -> bool {
    matches!(expr, Expr::Unnest(_))
}

/// What computes some of its arguments only makes no rows. 0A000
fn refuse_chosen(expr: &Expr) -> Result<()> {
    let chooses = |part: &Expr| match part {
        Expr::Case(_) | Expr::InList(_) => true,
        Expr::BinaryExpr(binary) => matches!(binary.op, Operator::And | Operator::Or),
        Expr::ScalarFunction(call) => call.name() == "coalesce",
        _ => false,
    };
    match expr.exists(|part| Ok(chooses(part) && part.exists(|inner| Ok(is_unnest(inner)))?))? {
        true => {
            Err(EngineError::new("0A000", "set-returning functions are not allowed in CASE, COALESCE, IN, AND and OR")
                .into())
        }
        false => Ok(()),
    }
}

/// Whether it is `information_schema._pg_expandarray`, of which JDBC's metadata are made.
pub(super) fn is_expandarray(call: &Call) -> bool {
    let plain = !call.star && !call.variadic && !call.distinct && call.over.is_none() && call.filter.is_none();
    match call.name.parts() {
        [schema, own] => plain && schema.name == "information_schema" && own.name == "_pg_expandarray",
        _ => false,
    }
}

/// Invariant 3.
pub(super) fn spread(rows: LogicalPlanBuilder, columns: Vec<Column>) -> Result<LogicalPlan> {
    let options = UnnestOptions::new().with_null_handling(NullHandling::Drop);
    let rows = rows.build()?;
    let schema = rows.schema().clone();
    let plan = LogicalPlanBuilder::from(rows).unnest_columns_with_options(columns, options)?.build()?;
    Ok(resolve::node(plan, &schema)?.data)
}

/// A parameter whose type nobody has told is of this one.
fn told(arg: Expr, of: DataType) -> Expr {
    match arg {
        Expr::Placeholder(Placeholder { id, field: None }) => {
            Expr::Placeholder(Placeholder { id, field: Some(Arc::new(field_of("", of, true))) })
        }
        arg => arg,
    }
}
