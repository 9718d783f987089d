//! From text to statements: the grammar parses what a client sends ([`parsed`]). Queries and changes of rows are parsed
//! once more, for DataFusion's SQL planner, where they take that way.
//!
//! 1. Nesting is capped (54001): neither the parser nor what walks its trees may exhaust a stack.
//! 2. What would be accepted and then ignored (FOR UPDATE but where rows are locked, SELECT INTO, a DML statement in
//!    WITH) is refused before it is planned ([`crate::plan::refusals`]).
pub(crate) mod constants;
pub(crate) mod depth;
pub(crate) mod grammar;
pub(crate) mod lexical;
pub(crate) mod literals;
pub(crate) mod locking;
pub(crate) mod sequence_calls;
pub(crate) mod stored;
pub(crate) mod types;

use crate::error::from_parser;
use crate::parse::depth::doubling;
use crate::parse::grammar::Grammar;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    JoinConstraint, JoinOperator, LimitClause, Query, Select, Statement, UnaryOperator, Value, Visit, Visitor,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::TokenWithSpan;
use std::ops::ControlFlow;
use terrace_engine::{DataType, EngineError, Result};
use terrace_grammar::statement::Name;
use terrace_grammar::{Cut, Options, Parsed};

/// Levels of nested expressions or queries. The parser takes some levels for each pair of parentheses, CASE or query.
const NESTING_MAX: usize = 1000;

/// The tokens of a statement's text, and a bound on the depth of its tree.
pub(crate) fn tokens(sql: &str) -> Result<(Vec<TokenWithSpan>, usize)> {
    let mut tokens = lexical::tokenize(sql)?;
    let depth = depth::measure(tokens.iter().map(|t| &t.token))?;
    locking::normalize(&mut tokens);
    Ok((tokens, depth))
}

/// Parses one statement; `None` where there is none.
pub(crate) fn parse_tokens(tokens: Vec<TokenWithSpan>) -> Result<Option<Statement>> {
    let count = tokens.len();
    let may_double = doubling::may_double(tokens.iter().map(|t| &t.token));
    let mut parser = Parser::new(&Grammar).with_recursion_limit(NESTING_MAX).with_tokens_with_locations(tokens);
    let mut statements = crate::parse::grammar::bounded(count, || parser.parse_statements()).map_err(from_parser)?;
    if may_double {
        statements.iter().try_for_each(doubling::check)?;
    }
    match statements.len() {
        0 => Ok(None),
        1 => Ok(statements.pop()),
        _ => Err(EngineError::new("42601", "cannot insert multiple commands into a prepared statement")),
    }
}

pub(crate) fn parse_one(sql: &str) -> Result<Option<Statement>> {
    let (tokens, depth) = tokens(sql)?;
    crate::stack::on_stack(depth, || parse_tokens(tokens))
}

/// The statements of a text, which is refused as PostgreSQL refuses it, at the same place. Empty ones are left out.
pub(crate) fn parsed(sql: &str) -> Result<Vec<Parsed>> {
    terrace_grammar::parse(sql, Options::default()).map_err(|error| {
        let mut refused = EngineError::new(error.sqlstate, error.message);
        refused.detail = error.detail.map(str::to_owned);
        refused.hint = error.hint.map(str::to_owned);
        match error.at {
            Some(at) => refused.at(sql, at as usize),
            None => refused,
        }
    })
}

/// The one statement of a text; `None`: there is none.
pub(crate) fn statement(sql: &str) -> Result<Option<Parsed>> {
    let mut all = parsed(sql)?;
    match all.len() {
        0 | 1 => Ok(all.pop()),
        _ => Err(EngineError::new("42601", "cannot insert multiple commands into a prepared statement")),
    }
}

/// A notice for each name of a text that is cut.
pub(crate) fn cut_names(sql: &str) -> Vec<EngineError> {
    let notice = |Cut { written, kept }: Cut| {
        EngineError::new("42622", format!("identifier \"{written}\" will be truncated to \"{kept}\""))
    };
    terrace_grammar::cut_names(sql).into_iter().map(notice).collect()
}

/// The name of a relation that must be in schema `public`, which may be written or not.
pub(crate) fn relation(name: &Name) -> Result<String> {
    let parts: Vec<&str> = name.parts().iter().map(|part| part.name.as_str()).collect();
    match parts.as_slice() {
        [table] => Ok((*table).to_owned()),
        ["public", table] | [_, "public", table] => Ok((*table).to_owned()),
        ["pg_catalog" | "information_schema" | "terrace", _]
        | [_, "pg_catalog" | "information_schema" | "terrace", _] => {
            let message = format!("permission denied: \"{}\" is a system catalog", name.shown());
            Err(EngineError::new("42501", message))
        }
        [schema, _] | [_, schema, _] => Err(EngineError::new("3F000", format!("schema \"{schema}\" does not exist"))),
        _ => {
            let message = format!("improper qualified name (too many dotted names): {}", name.shown());
            Err(EngineError::new("42601", message))
        }
    }
}

/// What a join's ON says.
fn joined_on(operator: &JoinOperator) -> Option<&Expr> {
    match operator {
        JoinOperator::Join(JoinConstraint::On(on))
        | JoinOperator::Inner(JoinConstraint::On(on))
        | JoinOperator::Left(JoinConstraint::On(on))
        | JoinOperator::LeftOuter(JoinConstraint::On(on))
        | JoinOperator::Right(JoinConstraint::On(on))
        | JoinOperator::RightOuter(JoinConstraint::On(on))
        | JoinOperator::FullOuter(JoinConstraint::On(on)) => Some(on),
        _ => None,
    }
}

/// Parameters that are cast at once, as in `$1::int`, are of the type they are cast to; those that stand as a condition
/// are boolean.
pub(crate) fn type_cast_parameters(statement: &Statement, types: &mut Vec<Option<DataType>>) {
    let _ = statement.visit(&mut Casts(types));
}

struct Casts<'t>(&'t mut Vec<Option<DataType>>);
impl Casts<'_> {
    fn conditions<'e>(&mut self, conditions: impl IntoIterator<Item = &'e Expr>) {
        for mut condition in conditions {
            while let Expr::Nested(inner) = condition {
                condition = inner;
            }
            type_parameter(condition, DataType::Bool, self.0);
        }
    }
}
impl Visitor for Casts<'_> {
    type Break = ();
    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
            let counts = [limit.as_ref(), offset.as_ref().map(|o| &o.value)];
            counts.into_iter().flatten().for_each(|count| {
                type_parameter(count, DataType::Int8, self.0);
            });
        }
        ControlFlow::Continue(())
    }
    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        match statement {
            Statement::Update(update) => self.conditions(&update.selection),
            Statement::Delete(delete) => self.conditions(&delete.selection),
            _ => {}
        }
        ControlFlow::Continue(())
    }
    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.conditions(select.selection.iter().chain(&select.having));
        for join in select.from.iter().flat_map(|from| &from.joins) {
            self.conditions(joined_on(&join.join_operator));
        }
        ControlFlow::Continue(())
    }
    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::UnaryOp { op: UnaryOperator::Not, expr }
            | Expr::IsTrue(expr)
            | Expr::IsNotTrue(expr)
            | Expr::IsFalse(expr)
            | Expr::IsNotFalse(expr)
            | Expr::IsUnknown(expr)
            | Expr::IsNotUnknown(expr) => self.conditions([expr.as_ref()]),
            Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                self.conditions([left.as_ref(), right.as_ref()]);
            }
            Expr::Case { operand: None, conditions, .. } => {
                self.conditions(conditions.iter().map(|when| &when.condition));
            }
            Expr::Function(function) => self.conditions(function.filter.as_deref()),
            _ => {}
        }
        if let Expr::Cast { expr, data_type, .. } = expr
            && let Ok(data_type) = crate::parse::types::column_type(data_type)
        {
            // What is written after it cuts or rounds the value, which comes as it is.
            let data_type = match data_type {
                DataType::Varchar(_) | DataType::Char(_) => DataType::Text,
                DataType::Numeric(_) => DataType::Numeric(None),
                other => other,
            };
            type_parameter(expr, data_type, self.0);
        }
        ControlFlow::Continue(())
    }
}

/// Where the value is a parameter whose type is open, it is this. Whether the value is a parameter.
fn type_parameter(value: &Expr, data_type: DataType, types: &mut Vec<Option<DataType>>) -> bool {
    let Expr::Value(value) = value else { return false };
    let Value::Placeholder(name) = &value.value else { return false };
    let number = name.strip_prefix('$').and_then(|n| n.parse::<usize>().ok());
    // More parameters than the protocol can carry do not get a place.
    let Some(number) = number.filter(|n| (1..=65_535).contains(n)) else { return false };
    if types.len() < number {
        types.resize(number, None);
    }
    types[number - 1].get_or_insert(data_type);
    true
}

/// As PostgreSQL folds identifiers: to lower case, unless quoted.
pub(crate) fn fold(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

pub(crate) fn template(sql: &str) -> Result<Box<Query>> {
    match crate::parse::parse_one(sql)? {
        Some(Statement::Query(query)) => Ok(query),
        _ => unreachable!("a template is a query"),
    }
}

pub(crate) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    function_call(name, arguments.into_iter().map(|a| FunctionArg::Unnamed(FunctionArgExpr::Expr(a))).collect())
}

pub(crate) fn function_call(name: &str, args: Vec<FunctionArg>) -> Expr {
    Expr::Function(Function {
        name: Ident::new(name).into(),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: vec![] }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}
