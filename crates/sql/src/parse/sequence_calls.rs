//! `nextval`, `currval`, `lastval` and `setval` in a statement's tree. They stand where a statement evaluates them
//! once: in VALUES, in a default, in a SELECT without FROM.
use crate::error::unsupported;
use crate::parse::stored::Stored;
use crate::parse::{fold, relation, template};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, SelectItem, SetExpr, Statement, UnaryOperator, Value,
    Visit, VisitMut, Visitor, VisitorMut,
};
use std::ops::ControlFlow;
use terrace_engine::{ColumnDef, EngineError, Result};
use terrace_grammar::statement::{self as tree, ExprKind, Literal};

/// A function of sequences, with its arguments.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Next(String),
    Current(String),
    Last,
    Set(String, i64, bool),
}

impl Call {
    pub(crate) fn writes(&self) -> bool {
        matches!(self, Call::Next(_) | Call::Set(..))
    }
}

fn literal_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Nested(inner) => literal_text(inner),
        Expr::Cast { expr, .. } => literal_text(expr),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn literal_number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Nested(inner) => literal_number(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) => format!("-{}", value.value).parse().ok(),
            _ => None,
        },
        Expr::Value(value) => value.value.to_string().parse().ok(),
        _ => None,
    }
}

fn is_true(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::Value(value) => match value.value {
            Value::Boolean(value) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

/// The sequence that a literal names.
fn named(function: &str, text: Option<&str>) -> Result<String> {
    let text = text.ok_or_else(|| unsupported(format!("{function} of anything but a literal name")))?;
    let invalid = || EngineError::new("42602", format!("invalid name syntax: {text}"));
    relation(&terrace_grammar::name_of(text).ok_or_else(invalid)?)
}

fn is_function(name: &str) -> bool {
    matches!(name, "nextval" | "currval" | "lastval" | "setval")
}

/// The call that an expression is.
pub(crate) fn call_of(expr: &tree::Expr) -> Option<Result<Call>> {
    let ExprKind::Call(call) = &expr.kind else { return None };
    let name = call.name.last().name.as_str();
    if !is_function(name) {
        return None;
    }
    fn text(expr: &tree::Expr) -> Option<&str> {
        match &expr.kind {
            ExprKind::Literal(Literal::Text(text)) => Some(text),
            ExprKind::Cast { arg, .. } => text(arg),
            _ => None,
        }
    }
    let arguments: Vec<&tree::Expr> = call.args.iter().map(|arg| &arg.value).collect();
    let sequence = |expr: &tree::Expr| named(name, text(expr));
    Some(match (name, arguments.as_slice()) {
        ("nextval", [of]) => sequence(of).map(Call::Next),
        ("currval", [of]) => sequence(of).map(Call::Current),
        ("lastval", []) => Ok(Call::Last),
        ("setval", [of, value, rest @ ..]) if rest.len() <= 1 => {
            match (&value.kind, rest.first().map_or(&ExprKind::Literal(Literal::Bool(true)), |called| &called.kind)) {
                (ExprKind::Literal(Literal::Int(value)), ExprKind::Literal(Literal::Bool(called))) => {
                    sequence(of).map(|name| Call::Set(name, *value, *called))
                }
                _ => Err(unsupported("setval of anything but literals")),
            }
        }
        _ => Err(EngineError::new("42883", format!("function {name} with these arguments does not exist"))),
    })
}

/// The call that an expression of the old way is.
pub(crate) fn old_call_of(expr: &Expr) -> Option<Result<Call>> {
    let function = match expr {
        Expr::Nested(inner) => return old_call_of(inner),
        Expr::Function(function) => function,
        _ => return None,
    };
    let name = function.name.0.last()?.as_ident().map(fold)?;
    if !is_function(&name) {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    let arguments: Vec<&Expr> = list
        .args
        .iter()
        .filter_map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        })
        .collect();
    let sequence = |expr: &Expr| named(&name, literal_text(expr));
    Some(match (name.as_str(), arguments.as_slice()) {
        ("nextval", [of]) => sequence(of).map(Call::Next),
        ("currval", [of]) => sequence(of).map(Call::Current),
        ("lastval", []) => Ok(Call::Last),
        ("setval", [of, value, rest @ ..]) if rest.len() <= 1 => {
            match (literal_number(value), rest.first().map_or(Some(true), |c| is_true(c))) {
                (Some(value), Some(called)) => sequence(of).map(|name| Call::Set(name, value, called)),
                _ => Err(unsupported("setval of anything but literals")),
            }
        }
        _ => Err(EngineError::new("42883", format!("function {name} with these arguments does not exist"))),
    })
}

/// The calls of a SELECT without FROM, in order.
pub(crate) fn calls(query: &Query) -> Result<Vec<Call>> {
    struct Calls(Vec<Call>);
    impl Visitor for Calls {
        type Break = EngineError;
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<EngineError> {
            match (expr, old_call_of(expr)) {
                (Expr::Nested(_), _) | (_, None) => ControlFlow::Continue(()),
                (_, Some(Err(error))) => ControlFlow::Break(error),
                (_, Some(Ok(call))) => {
                    self.0.push(call);
                    ControlFlow::Continue(())
                }
            }
        }
    }
    match query.body.as_ref() {
        SetExpr::Select(select) if select.from.is_empty() => {}
        _ => return Ok(vec![]),
    }
    let mut calls = Calls(vec![]);
    match Visit::visit(query, &mut calls) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(calls.0),
    }
}

/// The query with values in the calls' places.
pub(crate) fn replaced(query: &Query, values: &[i64]) -> Result<Statement> {
    struct Replace(Vec<Expr>);
    impl VisitorMut for Replace {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if !matches!(expr, Expr::Nested(_)) && old_call_of(expr).is_some() {
                *expr = self.0.pop().expect("a value for each call");
            }
            ControlFlow::Continue(())
        }
    }
    let value = |value: &i64| {
        let query = template(&format!("SELECT CAST('{value}' AS BIGINT)"))?;
        match *query.body {
            SetExpr::Select(mut select) => match select.projection.remove(0) {
                SelectItem::UnnamedExpr(expr) => Ok(expr),
                _ => unreachable!("the template has no alias"),
            },
            _ => unreachable!("the template is a SELECT"),
        }
    };
    // The first is taken from the end.
    let values = values.iter().rev().map(value).collect::<Result<Vec<Expr>>>()?;
    let (mut query, mut replace) = (query.clone(), Replace(values));
    let _ = VisitMut::visit(&mut query, &mut replace);
    assert!(replace.0.is_empty(), "a call for each value");
    Ok(Statement::Query(Box::new(query)))
}

/// The sequence that a column's default takes its value from.
pub(crate) fn sequence_of(column: &ColumnDef) -> Option<String> {
    let sql = column.default_sql.as_deref().filter(|sql| sql.contains("nextval"))?;
    match call_of(Stored::read(sql)?.expr())?.ok()? {
        Call::Next(name) => Some(name),
        _ => None,
    }
}
