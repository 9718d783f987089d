//! Queries within expressions.
//!
//! 1. What a query takes from the queries around it are columns of an outer query in its plan, each once in the list
//!    that DataFusion is given.
//! 2. `= ANY` and `<> ALL` of a query or an array are IN and NOT IN, so the same holds of NULL.
//! 3. Of an array that is written out, other comparisons are made with each item.
//! 4. A value that comes of several rows is 21000, where it is wanted.
use super::expr::{halved, symbol};
use super::query::parameter_number;
use super::scope::Scope;
use super::{Binder, Fault, Placed, Result, over, types, unsupported, wrong};
use crate::functions::arrays::{self, OF_ARRAY, quantified};
use crate::functions::builtin;
use crate::functions::convert::is_open;
use crate::plan::choosers;
use crate::plan::operators::with_operator_hint;
use crate::plan::{resolve, rules};
use crate::values::arrays::{is_array, items_of};
use crate::values::decimal::is_decimal;
use crate::values::{arrow_type, field_type, is_void, open_beside};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{ScalarValue, Spans};
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction, SetComparison, SetQuantifier};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Limit, LogicalPlan, LogicalPlanBuilder, Operator as DfOperator, Projection, Sort, SortExpr,
    Subquery, lit,
};
use std::sync::Arc;
use terrace_engine::types::array::read_items;
use terrace_engine::{DataType, EngineError};
use terrace_grammar::statement::{self as tree, At, ExprKind, Literal, Members, Operator, Quantifier, Query, TypeName};

fn typed_null(of: &ArrowType) -> Result<Expr> {
    Ok(Expr::Literal(ScalarValue::try_from(of)?, None))
}

/// A query's value. DataFusion makes joins only of subqueries that aggregate: of one that takes something of the
/// queries around it and does not, the values are gathered, and there may be one; with LIMIT 1 it is the first.
fn one_value(subquery: Subquery) -> Result<Expr> {
    let Subquery { subquery: plan, outer_ref_columns, spans } = subquery;
    if outer_ref_columns.is_empty() || has_one_row(&plan) {
        return Ok(Expr::ScalarSubquery(Subquery { subquery: plan, outer_ref_columns, spans }));
    }
    let field = plan.schema().fields()[0].clone();
    let (rows, column, order) = match first_row(&plan) {
        Some((rows, column, order)) => (rows, column, Some(order)),
        None => (plan.clone(), Expr::Column(plan.schema().columns().remove(0)), None),
    };
    let function = if order.is_some() { first_value_udaf() } else { array_agg_udaf() };
    let first = order.is_some();
    let call = AggregateFunction::new_udf(function, vec![column], false, None, order.unwrap_or_default(), None);
    let none: Vec<Expr> = vec![];
    let rows = LogicalPlanBuilder::from(Arc::unwrap_or_clone(rows));
    let plan = rows.aggregate(none, vec![Expr::AggregateFunction(call)])?.build()?;
    let outer_ref_columns = plan.all_out_ref_exprs();
    let gathered = Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans });
    let value = if first { gathered } else { arrays::only_item(gathered) };
    Ok(choosers::answered(value, Some(field.as_ref())))
}

/// Whether a plan has one row, or none, whatever the tables hold.
fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::SubqueryAlias(_) => {
            plan.inputs().into_iter().all(has_one_row)
        }
        _ => false,
    }
}

/// Of `... ORDER BY ... LIMIT 1`: the rows, the column, and their order.
fn first_row(plan: &LogicalPlan) -> Option<(Arc<LogicalPlan>, Expr, Vec<SortExpr>)> {
    let (limit, column) = match plan {
        LogicalPlan::Projection(Projection { expr, input, .. }) => match expr.as_slice() {
            [Expr::Column(column)] => (input.as_ref(), Some(column.clone())),
            _ => return None,
        },
        limit => (limit, None),
    };
    let LogicalPlan::Limit(Limit { skip: None, fetch: Some(fetch), input }) = limit else { return None };
    if **fetch != lit(1i64) {
        return None;
    }
    let (rows, order) = match input.as_ref() {
        LogicalPlan::Sort(Sort { expr, input, fetch: None }) => (input.clone(), expr.clone()),
        _ => (input.clone(), vec![]),
    };
    let column = column.unwrap_or_else(|| rows.schema().columns().remove(0));
    Some((rows, Expr::Column(column), order))
}

impl Binder<'_> {
    pub(super) fn subquery(&self, query: &Query, scope: &Scope<'_>) -> Result<Subquery> {
        over::refuse_subquery(scope.clause.get(), query.at)?;
        let bound = self.doubled(|| self.query(query, Some(scope), scope.ctes))?;
        let outer_ref_columns = bound.plan.all_out_ref_exprs();
        Ok(Subquery { subquery: Arc::new(bound.plan), outer_ref_columns, spans: Spans::new() })
    }

    pub(super) fn one_column(&self, query: &Query, at: At, scope: &Scope<'_>, too_many: &str) -> Result<Subquery> {
        let subquery = self.subquery(query, scope)?;
        match subquery.subquery.schema().fields().len() {
            1 => Ok(subquery),
            0 => wrong(at, "42601", too_many.replace("too many", "too few")),
            _ => wrong(at, "42601", too_many),
        }
    }

    pub(super) fn scalar(&self, query: &Query, at: At, scope: &Scope<'_>) -> Result<Expr> {
        if self.of_system.get()
            && let Some(known) = self.known_of_system(query)
        {
            return Ok(known);
        }
        let subquery = self.one_column(query, at, scope, "subquery must return only one column")?;
        one_value(subquery)
    }

    pub(super) fn in_query(
        &self,
        arg: &tree::Expr,
        query: &Query,
        (negated, at): (bool, At),
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        if matches!(arg.kind, ExprKind::Row { .. }) {
            let subquery = self.subquery(query, scope)?;
            let row = self.row(arg, scope)?;
            return self.row_membership(row, subquery, (negated, at), scope);
        }
        let subquery = self.one_column(query, at, scope, "subquery has too many columns")?;
        let arg = self.expr(arg, scope)?;
        let arg = self.with_column(arg, "=", &subquery, scope)?;
        let (arg, subquery) = self.as_floats(arg, subquery, scope)?;
        self.membership(arg, subquery, negated, scope)
    }

    /// A plain numeric beside a float is one, too.
    fn as_floats(&self, arg: Expr, subquery: Subquery, scope: &Scope<'_>) -> Result<(Expr, Subquery)> {
        let plan = &subquery.subquery;
        let (left, right) = (arg.get_type(&scope.schema)?, plan.schema().field(0).data_type().clone());
        let is_float = |of: &ArrowType| matches!(of, ArrowType::Float32 | ArrowType::Float64);
        if is_decimal(&left) && is_float(&right) {
            return Ok((self.cast_to(arg, DataType::Float8, &scope.schema)?, subquery));
        }
        if is_float(&left) && is_decimal(&right) {
            let column = Expr::Column(plan.schema().columns().remove(0));
            let value = self.cast_to(column, DataType::Float8, plan.schema())?.alias(self.column_name(""));
            let plan = LogicalPlanBuilder::from(plan.as_ref().clone()).project([value])?.build()?;
            let outer_ref_columns = plan.all_out_ref_exprs();
            return Ok((arg, Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: subquery.spans }));
        }
        Ok((arg, subquery))
    }

    /// What is compared with a query's column: what has no type is of the column's.
    fn with_column(&self, arg: Expr, symbol: &str, subquery: &Subquery, scope: &Scope<'_>) -> Result<Expr> {
        let schema = subquery.subquery.schema();
        let column = schema.columns().remove(0);
        let field = schema.fields()[0].clone();
        if is_open(&arg) {
            let column = Expr::OuterReferenceColumn(field, column);
            return Ok(resolve::compared(vec![arg, column], &scope.schema)?.remove(0));
        }
        let (left, right) = (arg.get_type(&scope.schema)?, field.data_type());
        if choosers::cannot_be_compared(&left, right) || is_void(&field) {
            let (left, right) = (builtin::type_name(&left), builtin::type_name(right));
            let message = format!("operator does not exist: {left} {symbol} {right}");
            return Err(with_operator_hint(EngineError::new("42883", message)).into());
        }
        Ok(arg)
    }

    pub(super) fn quantified(
        &self,
        op: &Operator,
        quantifier: Quantifier,
        left: &tree::Expr,
        right: &Members,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let (at, symbol, all) = (op.at, symbol(op)?, quantifier == Quantifier::All);
        let as_in = matches!((symbol, all), ("=", false) | ("<>", true));
        let array = match right {
            Members::Query(query) if as_in => return self.in_query(left, query, (all, at), scope),
            Members::Query(query) => return self.set_comparison((symbol, at), all, left, query, scope),
            Members::Array(array) => array.as_ref(),
        };
        match &array.kind {
            ExprKind::ArrayQuery(query) if as_in => self.in_query(left, query, (all, at), scope),
            ExprKind::Array(items) if !items.is_empty() => {
                let bound = self.exprs(items, scope)?;
                for item in &bound {
                    self.refuse_array((left, symbol), item, scope)?;
                    if is_array(&item.get_type(&scope.schema)?) {
                        return self.with_array((symbol, all), left, array, scope);
                    }
                }
                self.with_items((symbol, all), left, (items, bound), scope)
            }
            ExprKind::Array(_) => wrong(array.at, "42P18", "cannot determine type of empty array"),
            ExprKind::Cast { arg, to, word_at } if to.dimensions.len() == 1 => {
                self.with_cast((symbol, all), left, (arg, to, *word_at), array, scope)
            }
            _ => self.with_array((symbol, all), left, array, scope),
        }
    }

    /// An array of arrays has two dimensions, and its items are those of the inner ones. 42883 where the left side is
    /// an array, too.
    fn refuse_array(&self, (left, symbol): (&tree::Expr, &str), item: &Expr, scope: &Scope<'_>) -> Result<()> {
        let given = item.get_type(&scope.schema)?;
        let Some(inner) = items_of(&given) else { return Ok(()) };
        let value = self.expr(left, scope)?;
        match value.get_type(&scope.schema)? {
            of if is_array(&of) && !is_open(&value) => {
                let (of, inner) = (builtin::type_name(&of), builtin::type_name(inner.data_type()));
                let error = EngineError::new("42883", format!("operator does not exist: {of} {symbol} {inner}"));
                Err(with_operator_hint(error).into())
            }
            _ => Ok(()),
        }
    }

    /// An array that is no list of items.
    fn with_array(
        &self,
        (symbol, all): (&str, bool),
        left: &tree::Expr,
        written: &tree::Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let schema = &scope.schema;
        let mut value = self.expr(left, scope)?;
        let of = field_type(value.to_field(schema)?.1.as_ref());
        let of = of.filter(|_| !is_open(&value)).unwrap_or(DataType::Text);
        let is_literal = |expr: &Expr| matches!(expr, Expr::Literal(..)) && is_open(expr);
        if let ExprKind::Parameter(number) = written.kind
            && let Some(array) = open_beside(of).array()
        {
            self.settle_parameter(parameter_number(number)?, array);
        }
        let mut array = self.expr(written, scope)?;
        let literal = is_literal(&array);
        if let Expr::Literal(text, _) = &array
            && literal
        {
            array = quantified::written(text, of).at_value(written.at)?;
        }
        let list = array.get_type(schema)?;
        let Some(item) = arrays::item_type(&list) else {
            return match (&list, symbol, all) {
                (_, "=", false) if self.of_system.get() => {
                    self.function_of("pg_array_contains", vec![array, value], schema)
                }
                (of, ..) if is_array(of) => unsupported("this array"),
                _ => Err(quantified::no_array().into()),
            };
        };
        let items = field_type(array.to_field(schema)?.1.as_ref()).and_then(DataType::item).unwrap_or(item);
        if let ExprKind::Parameter(number) = left.kind {
            self.settle_parameter(parameter_number(number)?, open_beside(items));
        }
        if is_open(&value) {
            value = self.cast_to(value, open_beside(items), schema)?;
        } else if let (DataType::Varchar(_), DataType::Char(_)) = (of, items) {
            value = self.cast_to(value, open_beside(items), schema)?; // Its blanks do not count there.
        }
        let (own, other) = (value.get_type(schema)?, arrow_type(item));
        if choosers::cannot_be_compared(&own, &other) {
            return types::no_operator(symbol, &[value, typed_null(&other)?], schema);
        }
        // Beside items that are texts a char is a text.
        let of_char = matches!(of, DataType::Char(_)) && (literal || items != DataType::Text);
        match quantified::quantified(symbol, all, of_char, array.clone(), value.clone()) {
            Some(made) => self.made(made, schema),
            None => self.by_items((symbol, all), value, array, scope),
        }
    }

    /// An array that is written out. `items`: as they were written, where they were not cast.
    fn with_items(
        &self,
        (symbol, all): (&str, bool),
        left: &tree::Expr,
        (items, bound): (&[tree::Expr], Vec<Expr>),
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let ends = |item: &tree::Expr| matches!(&item.kind, ExprKind::Literal(Literal::Text(t)) if t.ends_with(' '));
        let text = |item: &tree::Expr| matches!(item.kind, ExprKind::Literal(Literal::Text(_) | Literal::Null));
        let blanks = items.iter().any(ends) && items.iter().all(text) || self.are_texts(left, items, &bound, scope)?;
        let bound = if blanks { self.with_blanks(items, bound, scope)? } else { bound };
        let whole = |item: &tree::Expr| match &item.kind {
            ExprKind::Literal(literal) => !matches!(literal, Literal::Number(_)),
            _ => false,
        };
        let left = self.expr(left, scope)?;
        let untyped = !items.is_empty() && bound.iter().all(is_open);
        let is_text = |item: &Expr| {
            let written = matches!(item, Expr::Cast(_) | Expr::Literal(..));
            Ok::<_, Fault>(written && !item.any_column_refs() && item.get_type(&scope.schema)? == ArrowType::Utf8)
        };
        if left.get_type(&scope.schema)? == ArrowType::UInt32 {
            for item in bound.iter().take(if items.is_empty() { 0 } else { bound.len() }) {
                if is_text(item)? && (untyped || !is_open(item)) {
                    return types::no_operator(symbol, &[left, typed_null(&ArrowType::Utf8)?], &scope.schema);
                }
            }
        }
        if untyped && !is_open(&left) && symbol != "||" {
            // Items without a type are texts.
            let of = left.get_type(&scope.schema)?;
            if choosers::cannot_be_compared(&of, &ArrowType::Utf8) {
                return types::no_operator(symbol, &[left, typed_null(&ArrowType::Utf8)?], &scope.schema);
            }
        }
        if matches!((symbol, all), ("=", false) | ("<>", true)) && !blanks {
            // The items are made one type without what is sought among them.
            let plain = bound.len() < 2 || (!items.is_empty() && items.iter().all(whole));
            let sought = || Expr::ScalarFunction(ScalarFunction::new_udf(rules::named(OF_ARRAY), vec![left.clone()]));
            let left = if plain { left } else { sought() };
            return self.listed(left, bound, all, &scope.schema);
        }
        if left.is_volatile() {
            return unsupported("a volatile function beside an array");
        }
        let bound = resolve::items_of_array(bound, &scope.schema)?;
        let compared = bound.into_iter().map(|item| self.compared(symbol, left.clone(), item, &scope.schema));
        let compared = compared.collect::<Result<Vec<Expr>>>()?;
        for one in &compared {
            if one.get_type(&scope.schema)? != ArrowType::Boolean {
                return Err(quantified::no_boolean().into());
            }
        }
        let op = if all { DfOperator::And } else { DfOperator::Or };
        Ok(halved(compared, op))
    }

    /// An array that is cast.
    fn with_cast(
        &self,
        (symbol, all): (&str, bool),
        left: &tree::Expr,
        (array, to, at): (&tree::Expr, &TypeName, At),
        whole: &tree::Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let mut of = to.clone();
        of.dimensions.clear();
        match &array.kind {
            ExprKind::Array(items) if items.is_empty() => self.with_nothing((symbol, all), left, whole, scope),
            ExprKind::Array(items) if !items.iter().any(|item| matches!(item.kind, ExprKind::Array(_))) => {
                let bound = items.iter().map(|item| self.cast(item, &of, at, scope));
                let bound = bound.collect::<Result<Vec<Expr>>>()?;
                self.with_items((symbol, all), left, (&[], bound), scope)
            }
            ExprKind::Literal(Literal::Text(text)) => {
                let items = read_items(text).at_value(array.at)?;
                if items.is_empty() {
                    return self.with_nothing((symbol, all), left, whole, scope);
                }
                let item = |item: Option<String>| {
                    let literal = item.map_or(Literal::Null, Literal::Text);
                    self.cast(&tree::Expr { at: array.at, kind: ExprKind::Literal(literal) }, &of, at, scope)
                };
                let bound = items.into_iter().map(item).collect::<Result<Vec<Expr>>>()?;
                self.with_items((symbol, all), left, (&[], bound), scope)
            }
            _ => self.with_array((symbol, all), left, whole, scope),
        }
    }

    /// An array without items: the value must be one, and does not matter.
    fn with_nothing(
        &self,
        (symbol, all): (&str, bool),
        left: &tree::Expr,
        whole: &tree::Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let value = self.expr(left, scope)?;
        rules::refuse_failing(&value)?;
        match quantified::never_fails(&value) {
            true => Ok(Expr::Literal(ScalarValue::Boolean(Some(all)), None)),
            false => self.with_array((symbol, all), left, whole, scope),
        }
    }

    /// Whether a char stands before items that are texts, some of which are parameters.
    fn are_texts(&self, left: &tree::Expr, items: &[tree::Expr], bound: &[Expr], scope: &Scope<'_>) -> Result<bool> {
        if !items.iter().any(|item| matches!(item.kind, ExprKind::Parameter(_))) {
            return Ok(false);
        }
        for item in bound.iter().filter(|item| !is_open(item)) {
            if field_type(item.to_field(&scope.schema)?.1.as_ref()) != Some(DataType::Text) {
                return Ok(false);
            }
        }
        let left = self.expr(left, scope)?;
        Ok(matches!(field_type(left.to_field(&scope.schema)?.1.as_ref()), Some(DataType::Char(_))))
    }

    /// Blanks at the ends of texts count in an array, and do not in IN.
    fn with_blanks(&self, items: &[tree::Expr], bound: Vec<Expr>, scope: &Scope<'_>) -> Result<Vec<Expr>> {
        let ends = |item: &tree::Expr| matches!(&item.kind, ExprKind::Literal(Literal::Text(t)) if t.ends_with(' '));
        let is_parameter = |item: &tree::Expr| matches!(item.kind, ExprKind::Parameter(_));
        let made = items.iter().zip(bound).map(|(item, bound)| match ends(item) || is_parameter(item) {
            true => self.cast_to(bound, DataType::Text, &scope.schema),
            false => Ok(bound),
        });
        made.collect()
    }

    fn set_comparison(
        &self,
        (symbol, at): (&str, At),
        all: bool,
        left: &tree::Expr,
        query: &Query,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let op = match symbol {
            "=" => DfOperator::Eq,
            "<>" => DfOperator::NotEq,
            "<" => DfOperator::Lt,
            "<=" => DfOperator::LtEq,
            ">" => DfOperator::Gt,
            ">=" => DfOperator::GtEq,
            _ => return unsupported("this operator before ANY"),
        };
        if matches!(left.kind, ExprKind::Row { .. }) {
            return unsupported("a row before ANY (SELECT ...)");
        }
        let subquery = self.one_column(query, at, scope, "subquery has too many columns")?;
        let left = self.expr(left, scope)?;
        let left = self.with_column(left, symbol, &subquery, scope)?;
        let quantifier = if all { SetQuantifier::All } else { SetQuantifier::Any };
        let made = SetComparison::new(Box::new(left), subquery, op, quantifier);
        self.made(Expr::SetComparison(made), &scope.schema)
    }
}
