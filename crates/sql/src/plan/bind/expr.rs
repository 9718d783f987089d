//! Expressions, one arm a kind.
//!
//! 1. An operand is bound before what stands above it, with its type settled.
//! 2. AND and OR are halved, so that the tree of many is not deep; what is deep within them is cut first.
use super::query::deeper;
use super::scope::Scope;
use super::{Binder, Placed, Result, bounds, fail, group_queries, types, unsupported, wrong};
use crate::functions::arithmetic::is_number;
use crate::functions::builtin::BYTES_LIKE;
use crate::functions::convert::is_open;
use crate::functions::nulls::is_null;
use crate::parse::sequence_calls;
use crate::plan::operators;
use crate::plan::{choosers, rules};
use crate::values::engine_type;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Case, InList};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Like, Operator as DfOperator, lit};
use terrace_engine::{DataType, EngineError};
use terrace_grammar::statement::{self as tree, At, ExprKind, Literal, Match, Name, Operator, Test, When};

impl Binder<'_> {
    pub(super) fn expr(&self, expr: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        deeper(|| {
            let bound = self.kind(expr, scope)?;
            group_queries::note(expr, &bound, scope);
            Ok(bound)
        })
    }

    pub(super) fn exprs(&self, exprs: &[tree::Expr], scope: &Scope<'_>) -> Result<Vec<Expr>> {
        exprs.iter().map(|expr| self.expr(expr, scope)).collect()
    }

    fn column_or_row(&self, name: &Name, expr: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        self.note_schema_of_column(name);
        match self.whole_row(expr, scope)? {
            Some(row) => Ok(row),
            None => {
                let column = scope.column(name)?;
                self.note_named([&column]);
                Ok(column)
            }
        }
    }

    fn boxed(&self, expr: &tree::Expr, scope: &Scope<'_>) -> Result<Box<Expr>> {
        Ok(Box::new(self.expr(expr, scope)?))
    }

    fn kind(&self, expr: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        let schema = &scope.schema;
        match &expr.kind {
            ExprKind::Column(name) => self.column_or_row(name, expr, scope),
            ExprKind::Literal(literal) => self.literal(literal).at(expr.at),
            ExprKind::Parameter(number) if scope.clause.get().is_of_no_query() => {
                wrong(expr.at, "42P02", format!("there is no parameter ${number}"))
            }
            ExprKind::Parameter(number) => self.parameter(*number),
            ExprKind::Unary { op, arg } => self.unary(op, arg, scope),
            ExprKind::Binary { op, args } => self.binary(op, args, scope),
            ExprKind::And(args) => self.conditions(args, DfOperator::And, scope),
            ExprKind::Or(args) => self.conditions(args, DfOperator::Or, scope),
            ExprKind::Not(arg) => {
                let arg = self.condition(arg, "NOT", scope)?;
                self.made(Expr::Not(Box::new(arg)), schema)
            }
            ExprKind::Is { arg, test, negated } => self.test(arg, *test, *negated, scope),
            ExprKind::Distinct { args, negated, word_at } => self.distinct(args, *negated, scope).at(*word_at),
            ExprKind::Between { args, negated, symmetric, word_at } => {
                let bound = self.doubled(|| self.exprs(args.as_slice(), scope))?;
                let made = self.between(bound, *negated, *symmetric, schema);
                made.at_value_of(&args.iter().collect::<Vec<_>>()).at(*word_at)
            }
            ExprKind::InList { arg, list, negated, word_at } => self.in_list(arg, list, *negated, scope).at(*word_at),
            ExprKind::InQuery { arg, query, negated, word_at } => {
                self.in_query(arg, query, (*negated, *word_at), scope).at(*word_at)
            }
            ExprKind::Quantified { op, quantifier, left, right } => {
                self.quantified(op, *quantifier, left, right, scope).at(op.at)
            }
            ExprKind::Match { kind, negated, args, escape, word_at } => {
                self.matched(*kind, *negated, args, escape.as_deref(), scope).at(*word_at)
            }
            ExprKind::Cast { arg, to, word_at } => self.cast(arg, to, *word_at, scope),
            ExprKind::AtTimeZone { args, word_at } => {
                let args = vec![self.expr(&args[1], scope)?, self.expr(&args[0], scope)?];
                self.function_of("timezone", args, schema).at(*word_at)
            }
            ExprKind::Case { operand, whens, otherwise } => {
                self.case(operand.as_deref(), whens, otherwise.as_deref(), scope).at(expr.at)
            }
            ExprKind::Call(call) => match sequence_calls::call_of(expr) {
                Some(of_sequence) => self.sequence_call(of_sequence, expr.at, scope),
                None => self.call(call, expr.at, scope),
            },
            ExprKind::Special { function, args } => self.special(*function, args, expr.at, scope),
            ExprKind::Array(items) if items.is_empty() => {
                let hint = "Explicitly cast to the desired type, for example ARRAY[]::integer[].";
                fail(expr.at, EngineError::new("42P18", "cannot determine type of empty array").with_hint(hint))
            }
            ExprKind::Array(items) => self.array(items, scope).at(expr.at),
            ExprKind::Exists(query) => self.exists(query, scope),
            ExprKind::Scalar(query) => self.scalar(query, expr.at, scope),
            ExprKind::Grouping(args) => self.grouping(args, expr.at, scope),
            ExprKind::Default => wrong(expr.at, "42601", "DEFAULT is not allowed in this context"),
            ExprKind::Collate { arg, collation, word_at } => self.collated(arg, collation, *word_at, scope),
            ExprKind::ArrayQuery(query) => self.array_of_query(query, expr.at, scope),
            ExprKind::Row { fields, .. } => self.record(fields, scope).at(expr.at),
            ExprKind::Subscript { .. } => self.subscript(expr, scope).at(expr.at),
            ExprKind::With { .. } => self.with_part(expr, scope),
            ExprKind::WithField { arg, field, value } => self.with_field(arg, field, value, scope),
            ExprKind::Field { arg, field } => self.field(arg, &field.name, scope),
            ExprKind::Star(Some(_)) if let Some(row) = self.whole_row(expr, scope)? => Ok(row),
            ExprKind::Star(_) | ExprKind::AllFields(_) | ExprKind::CurrentOf(_) => unsupported("this expression"),
        }
    }

    /// `x BETWEEN SYMMETRIC a AND b` is `x BETWEEN a AND b OR x BETWEEN b AND a`.
    fn between(&self, args: Vec<Expr>, negated: bool, symmetric: bool, schema: &DFSchema) -> Result<Expr> {
        let [value, low, high] = <[Expr; 3]>::try_from(args).expect("BETWEEN has three operands");
        for (bound, symbol, opposite) in [(&low, ">=", "<"), (&high, "<=", ">")] {
            let (of, than) = (value.get_type(schema)?, bound.get_type(schema)?);
            if !is_open(&value) && !is_open(bound) && choosers::cannot_be_compared(&of, &than) {
                let symbol = if negated { opposite } else { symbol };
                return types::no_operator(symbol, &[value.clone(), bound.clone()], schema);
            }
        }
        let one = |low: Expr, high: Expr| {
            let between = Between::new(Box::new(value.clone()), negated, Box::new(low), Box::new(high));
            self.made(Expr::Between(between), schema)
        };
        if !symmetric {
            return one(low, high);
        }
        if [&value, &low, &high].iter().any(|arg| arg.is_volatile()) {
            return unsupported("a volatile function in BETWEEN SYMMETRIC");
        }
        let both = vec![one(low.clone(), high.clone())?, one(high, low)?];
        Ok(halved(both, if negated { DfOperator::And } else { DfOperator::Or }))
    }

    /// There is one collation, by several names.
    fn collated(&self, arg: &tree::Expr, collation: &Name, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let bound = self.expr(arg, scope)?;
        let known = matches!(collation.last().name.as_str(), "default" | "C" | "POSIX" | "ucs_basic");
        let of_system = matches!(collation.qualifier(), [] | [_])
            && collation.qualifier().iter().all(|schema| schema.name == "pg_catalog");
        if !known || !of_system {
            return unsupported("a collation other than C");
        }
        match bound.get_type(&scope.schema)? {
            ArrowType::Utf8 | ArrowType::Null => Ok(bound),
            of => {
                let of = crate::functions::builtin::type_name(&of);
                wrong(at, "42804", format!("collations are not supported by type {of}"))
            }
        }
    }

    fn unary(&self, op: &Operator, arg: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        let bound = self.expr(arg, scope)?;
        let symbol = symbol(op)?;
        let of = bound.get_type(&scope.schema)?;
        let fits = is_number(&of)
            || matches!(of, ArrowType::Null)
            || (symbol == "-" && matches!(of, ArrowType::Interval(_) | ArrowType::Time64(_)));
        if !fits && !is_open(&bound) && matches!(symbol, "-" | "+" | "~") {
            let of = crate::functions::builtin::type_name(&of);
            let error = EngineError::new("42883", format!("operator does not exist: {symbol} {of}"));
            let hint =
                "No operator matches the given name and argument type. You might need to add an explicit type cast.";
            return fail(op.at, error.with_hint(hint));
        }
        if is_open(&bound) && matches!(symbol, "-" | "~") {
            return fail(op.at, types::not_unique(&format!("{symbol} unknown")));
        }
        match symbol {
            "-" => self.made(Expr::Negative(Box::new(bound)), &scope.schema).at(op.at),
            "~" => {
                // A smallint makes nothing wider.
                let ones = Expr::Literal(ScalarValue::Int16(Some(-1)), None);
                self.compared("#", bound, ones, &scope.schema).at(op.at)
            }
            "+" if is_number(&of) => Ok(bound),
            "+" if is_open(&bound) => self.cast_to(bound, DataType::Float8, &scope.schema).at(op.at),
            // Of doubles alone, where the functions take numerics too.
            "|/" | "||/" => {
                let bound = match is_number(&of) {
                    true => self.cast_to(bound, DataType::Float8, &scope.schema).at(op.at)?,
                    false => bound,
                };
                let name = if symbol == "|/" { "sqrt" } else { "cbrt" };
                self.function_of(name, vec![bound], &scope.schema).at(op.at)
            }
            "@" => self.function_of("abs", vec![bound], &scope.schema).at(op.at),
            _ => unsupported("this operator before a value"),
        }
    }

    fn binary(&self, op: &Operator, args: &[tree::Expr; 2], scope: &Scope<'_>) -> Result<Expr> {
        let symbol = symbol(op)?;
        if let [left, right] = args
            && (is_row(left) && matches!(right.kind, ExprKind::Scalar(_))
                || is_row(right) && matches!(left.kind, ExprKind::Scalar(_)))
        {
            return unsupported("a row beside a query");
        }
        if let [left, right] = args
            && is_row(left)
            && is_row(right)
        {
            let (left, right) = (self.row(left, scope)?, self.row(right, scope)?);
            return self.rows(symbol, left, right, &scope.schema).at(op.at);
        }
        // A chain of one operator leans to the left: it is bound from its beginning on.
        let (mut chain, mut first) = (vec![(op, &args[1])], &args[0]);
        while let ExprKind::Binary { op, args } = &first.kind
            && !(is_row(&args[0]) && is_row(&args[1]))
        {
            chain.push((op, &args[1]));
            first = &args[0];
        }
        let mut left = self.expr(first, scope)?;
        while let Some((op, written)) = chain.pop() {
            if matches!(op.symbol.as_str(), "@?" | "@@")
                && let Some(made) = self.path_operator(op, &left, written, scope)?
            {
                left = made;
                continue;
            }
            let right = self.expr(written, scope)?;
            let compared = self.compared(self::symbol(op)?, left, right, &scope.schema);
            left = compared.at_value_of(&[first, written]).at(op.at)?;
        }
        Ok(left)
    }

    /// Invariant 2.
    fn conditions(&self, args: &[tree::Expr], op: DfOperator, scope: &Scope<'_>) -> Result<Expr> {
        let what = if op == DfOperator::And { "AND" } else { "OR" };
        bounds::conditions(args.len(), what)?;
        let mut bound = vec![];
        for arg in args {
            let condition = self.condition(arg, what, scope)?;
            bound.push(if rules::is_deep(&condition) { rules::cut(condition, &scope.schema)? } else { condition });
        }
        Ok(halved(bound, op))
    }

    fn test(&self, arg: &tree::Expr, test: Test, negated: bool, scope: &Scope<'_>) -> Result<Expr> {
        if test == Test::Null && is_row(arg) {
            return self.null_row(arg, negated, scope);
        }
        let what = match (test, negated) {
            (Test::Null, _) => {
                let arg = self.boxed(arg, scope)?;
                self.asks_null(&arg);
                let made = if negated { Expr::IsNotNull(arg) } else { Expr::IsNull(arg) };
                return self.made(made, &scope.schema);
            }
            (Test::True, false) => "IS TRUE",
            (Test::True, true) => "IS NOT TRUE",
            (Test::False, false) => "IS FALSE",
            (Test::False, true) => "IS NOT FALSE",
            (Test::Unknown, false) => "IS UNKNOWN",
            (Test::Unknown, true) => "IS NOT UNKNOWN",
        };
        let arg = Box::new(self.condition(arg, what, scope)?);
        let made = match (test, negated) {
            (Test::True, false) => Expr::IsTrue(arg),
            (Test::True, true) => Expr::IsNotTrue(arg),
            (Test::False, false) => Expr::IsFalse(arg),
            (Test::False, true) => Expr::IsNotFalse(arg),
            (_, false) => Expr::IsUnknown(arg),
            (_, true) => Expr::IsNotUnknown(arg),
        };
        self.made(made, &scope.schema)
    }

    fn distinct(&self, args: &[tree::Expr; 2], negated: bool, scope: &Scope<'_>) -> Result<Expr> {
        if is_row(&args[0]) && is_row(&args[1]) {
            let (left, right) = (self.row(&args[0], scope)?, self.row(&args[1], scope)?);
            return self.rows_distinct(left, right, negated, &scope.schema);
        }
        let (left, right) = (self.expr(&args[0], scope)?, self.expr(&args[1], scope)?);
        if is_null(&left) || is_null(&right) {
            self.asks_null(&left);
            self.asks_null(&right);
        }
        self.apart(left, right, negated, &scope.schema)
    }

    /// IS DISTINCT FROM.
    pub(super) fn apart(&self, left: Expr, right: Expr, negated: bool, schema: &DFSchema) -> Result<Expr> {
        let symbol = if negated { "IS NOT DISTINCT FROM" } else { "IS DISTINCT FROM" };
        if let Some(made) = self.row_operator(symbol, &left, &right, schema)? {
            return Ok(made);
        }
        let op = if negated { DfOperator::IsNotDistinctFrom } else { DfOperator::IsDistinctFrom };
        let binary = BinaryExpr { left: Box::new(left), op, right: Box::new(right) };
        self.made(Expr::BinaryExpr(binary), schema)
    }

    fn in_list(&self, arg: &tree::Expr, list: &[tree::Expr], negated: bool, scope: &Scope<'_>) -> Result<Expr> {
        if is_row(arg) && list.iter().all(is_row) {
            return self.row_in_list(arg, list, negated, scope);
        }
        let (arg, items) = (self.expr(arg, scope)?, self.exprs(list, scope)?);
        self.listed(arg, items, negated, &scope.schema).at_value_of(&list.iter().collect::<Vec<_>>())
    }

    pub(super) fn listed(&self, arg: Expr, list: Vec<Expr>, negated: bool, schema: &DFSchema) -> Result<Expr> {
        if let Some(made) = self.row_listed(&arg, &list, negated, schema)? {
            return Ok(made);
        }
        self.made(Expr::InList(InList { expr: Box::new(arg), list, negated }), schema)
    }

    fn matched(
        &self,
        kind: Match,
        negated: bool,
        args: &[tree::Expr; 2],
        escape: Option<&tree::Expr>,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        if kind == Match::Similar {
            let [text, pattern] = args;
            let (text, pattern) = (self.expr(text, scope)?, self.expr(pattern, scope)?);
            let escape = escape.map(|escape| self.expr(escape, scope)).transpose()?;
            let args = std::iter::once(pattern).chain(escape).collect();
            let pattern = self.function_of("similar_to_escape", args, &scope.schema)?;
            return self.compared(if negated { "!~" } else { "~" }, text, pattern, &scope.schema);
        }
        let (text, pattern) = (self.boxed(&args[0], scope)?, self.boxed(&args[1], scope)?);
        if kind == Match::Like && are_bytes(&[text.as_ref(), pattern.as_ref()], &scope.schema)? {
            let escape = match escape {
                Some(escape) => self.expr(escape, scope)?,
                None => Expr::Literal(ScalarValue::Binary(Some(b"\\".to_vec())), None),
            };
            let found = self
                .function_of(BYTES_LIKE, vec![*text, *pattern, escape], &scope.schema)
                .at_value_of(&args.iter().collect::<Vec<_>>())?;
            return Ok(if negated { Expr::Not(Box::new(found)) } else { found });
        }
        let escape = escape.map(escape_of).transpose()?;
        let symbol = match (kind == Match::ILike, negated) {
            (false, false) => "~~",
            (false, true) => "!~~",
            (true, false) => "~~*",
            (true, true) => "!~~*",
        };
        types::texts(symbol, &[text.as_ref(), pattern.as_ref()], &scope.schema)?;
        let like = Like::new(negated, text, pattern, escape, kind == Match::ILike);
        self.made(Expr::Like(like), &scope.schema)
    }

    fn case(
        &self,
        operand: Option<&tree::Expr>,
        whens: &[When],
        otherwise: Option<&tree::Expr>,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let condition = |when: &When| match operand {
            Some(_) => self.expr(&when.condition, scope),
            None => self.condition(&when.condition, "CASE/WHEN", scope),
        };
        let when = |when: &When| Ok((Box::new(self.doubled(|| condition(when))?), self.boxed(&when.result, scope)?));
        let operand = operand.map(|operand| self.boxed(operand, scope)).transpose()?;
        let when_then_expr: Vec<_> = whens.iter().map(when).collect::<Result<_>>()?;
        // Upstream: a condition of a CASE of booleans becomes two, unless it is compared with something.
        let volatile = operand.is_none() && when_then_expr.iter().any(|(when, _)| when.is_volatile());
        let case = Case {
            expr: if volatile { Some(Box::new(lit(true))) } else { operand },
            when_then_expr,
            else_expr: otherwise.map(|otherwise| self.boxed(otherwise, scope)).transpose()?,
        };
        let results = case.else_expr.iter().map(AsRef::as_ref);
        let results = results.chain(case.when_then_expr.iter().map(|(_, then)| then.as_ref()));
        let other = self.mismatched(results, &scope.schema);
        let mut written = otherwise.into_iter().chain(whens.iter().map(|when| &when.result));
        let made = self.made(Expr::Case(case), &scope.schema);
        match other.and_then(|number| written.nth(number)) {
            Some(other) => made.at(other.at),
            None => made,
        }
    }

    fn array(&self, items: &[tree::Expr], scope: &Scope<'_>) -> Result<Expr> {
        let bound = self.exprs(items, scope)?;
        let other = self.mismatched(&bound, &scope.schema).map(|number| items[number].at);
        let made = operators::array(bound, &scope.schema);
        match other {
            Some(other) => made.at(other),
            None => Ok(made?),
        }
    }
}

/// The symbol of an operator of `pg_catalog`, which alone are known.
pub(super) fn symbol(op: &Operator) -> Result<&str> {
    match op.schema.as_slice() {
        [] => Ok(&op.symbol),
        [schema] if schema.name == "pg_catalog" => Ok(&op.symbol),
        _ => unsupported("an operator of another schema"),
    }
}

pub(super) fn is_row(expr: &tree::Expr) -> bool {
    matches!(expr.kind, ExprKind::Row { .. })
}

/// What stands behind ESCAPE: one character, or none.
fn escape_of(expr: &tree::Expr) -> Result<char> {
    let ExprKind::Literal(Literal::Text(text)) = &expr.kind else { return unsupported("this ESCAPE") };
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(escape), None) if escape.is_ascii() => Ok(escape),
        // No text has this one.
        (None, _) => Ok('\0'),
        _ => unsupported("this ESCAPE"),
    }
}

/// Conditions beside each other, as a tree of small depth (invariant 2). Their order stays.
pub(super) fn halved(mut conditions: Vec<Expr>, op: DfOperator) -> Expr {
    match conditions.len() {
        0 => Expr::Literal(ScalarValue::Boolean(Some(op == DfOperator::And)), None),
        1 => conditions.remove(0),
        count => {
            let right = Box::new(halved(conditions.split_off(count.div_ceil(2)), op));
            Expr::BinaryExpr(BinaryExpr { left: Box::new(halved(conditions, op)), op, right })
        }
    }
}

/// Whether there is a bytea among these, and nothing else whose type is known.
fn are_bytes(values: &[&Expr], schema: &DFSchema) -> Result<bool> {
    let mut found = false;
    for value in values.iter().filter(|value| !is_open(value)) {
        match engine_type(&value.get_type(schema)?) {
            Some(DataType::Bytea) => found = true,
            _ => return Ok(false),
        }
    }
    Ok(found)
}
