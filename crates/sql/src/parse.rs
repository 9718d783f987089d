//! From text to statements.
//!
//! 1. Nesting is capped (54001): neither the parser nor what walks its trees may exhaust a stack.
//! 2. What would be accepted and then ignored (FOR UPDATE but where rows are locked, SELECT INTO, a DML statement in WITH) is refused here.
use crate::error::{from_parser, unsupported};
use crate::lock_rows::within::query_of;
use crate::{depth, naming, pgcatalog};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, LimitClause, LockClause, ObjectName, Query, Select, SelectItem, SetExpr, Statement, TableAlias,
    TableAliasColumnDef, TableFactor, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use std::ops::ControlFlow;
use terrace_engine::{DataType, EngineError, Result};

/// Levels of nested expressions or queries.
const NESTING_MAX: usize = 100;

/// Splits a string of statements at its top-level semicolons. Empty statements are left out.
pub(crate) fn split(sql: &str) -> Result<Vec<String>> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql)
        .with_unescape(false)
        .tokenize()
        .map_err(|e| from_parser(e.into()))?;
    let mut statements = vec![];
    let mut current = String::new();
    let mut empty = true;
    for token in &tokens {
        match token {
            Token::SemiColon => {
                if !std::mem::replace(&mut empty, true) {
                    statements.push(std::mem::take(&mut current).trim().to_string());
                }
                current.clear();
            }
            Token::EOF => {}
            other => {
                empty &= matches!(other, Token::Whitespace(_));
                current.push_str(&other.to_string());
            }
        }
    }
    if !empty {
        statements.push(current.trim().to_string());
    }
    Ok(statements)
}

/// The tokens of a statement's text, and a bound on the depth of its tree.
pub(crate) fn tokens(sql: &str) -> Result<(Vec<TokenWithSpan>, usize)> {
    let mut tokens =
        Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().map_err(|e| from_parser(e.into()))?;
    let depth = depth::measure(tokens.iter().map(|t| &t.token))?;
    // ABORT is PostgreSQL's other word for ROLLBACK; the parser does not know it.
    if let Some(first) = tokens.iter_mut().find(|t| !matches!(t.token, Token::Whitespace(_)))
        && matches!(&first.token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case("abort"))
    {
        first.token = Token::make_keyword("ROLLBACK");
    }
    crate::copy::options::normalize(&mut tokens)?;
    crate::lock_rows::normalize(&mut tokens);
    crate::roles::normalize(&mut tokens);
    crate::sequence::order::normalize(&mut tokens);
    Ok((tokens, depth))
}

/// Parses one statement; `None` where there is none.
pub(crate) fn parse_tokens(tokens: Vec<TokenWithSpan>) -> Result<Option<Statement>> {
    if let Some(statement) = crate::maintain::parse(&tokens)? {
        return Ok(Some(statement));
    }
    if let Some(statement) = crate::cursor::parse(&tokens)? {
        return Ok(Some(statement));
    }
    if let Some(statement) = crate::system::parse(&tokens)? {
        return Ok(Some(statement));
    }
    let dialect = PostgreSqlDialect {};
    let mut parser = Parser::new(&dialect).with_recursion_limit(NESTING_MAX).with_tokens_with_locations(tokens);
    let mut statements = parser.parse_statements().map_err(from_parser)?;
    match statements.len() {
        0 => Ok(None),
        1 => Ok(statements.pop()),
        _ => Err(EngineError::new("42601", "cannot insert multiple commands into a prepared statement")),
    }
}

pub(crate) fn parse_one(sql: &str) -> Result<Option<Statement>> {
    parse_tokens(tokens(sql)?.0)
}

/// Refuses what nobody would carry out, and gives result columns PostgreSQL's names.
pub(crate) fn prepare(statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::Prepare { statement, .. } => return prepare(statement),
        Statement::Explain { statement, .. } if matches!(**statement, Statement::Update(_) | Statement::Delete(_)) => {
            return prepare(statement);
        }
        _ => {}
    }
    // Rows are locked for the client, or for the condition of what changes them.
    let locks = match statement {
        Statement::Query(query) => std::mem::take(&mut query.locks),
        _ => vec![],
    };
    let mut condition = condition(statement).and_then(Option::take);
    let mut visited = statement.visit(&mut Refusals::default());
    if visited.is_continue() {
        visited = VisitMut::visit(&mut condition, &mut Refusals { may_lock: true, ..Refusals::default() });
    }
    if let Some(place) = self::condition(statement) {
        *place = condition;
    }
    if let Statement::Query(query) = statement {
        query.locks = locks;
    }
    match visited {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// The WHERE of UPDATE and DELETE.
fn condition(statement: &mut Statement) -> Option<&mut Option<Expr>> {
    match statement {
        Statement::Update(update) => Some(&mut update.selection),
        Statement::Delete(delete) => Some(&mut delete.selection),
        _ => None,
    }
}

#[derive(Default)]
struct Refusals {
    /// Whether the queries of expressions that are not within a query may lock rows.
    may_lock: bool,
    /// Of queries.
    depth: usize,
    /// The locks of such queries, while what is within is looked at.
    held: Vec<Vec<LockClause>>,
}

impl Refusals {
    fn may_lock<'e>(&self, expr: &'e mut Expr) -> Option<&'e mut Query> {
        if self.may_lock && self.depth == 0 { query_of(expr) } else { None }
    }
}

fn is_named_by_string(item: &SelectItem) -> bool {
    matches!(item, SelectItem::ExprWithAlias { alias, .. } if alias.quote_style == Some('\''))
}

impl VisitorMut for Refusals {
    type Break = EngineError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<EngineError> {
        match refuse_query(query) {
            Err(error) => ControlFlow::Break(error),
            Ok(()) => {
                self.depth += 1;
                naming::name_columns(&mut query.body);
                ControlFlow::Continue(())
            }
        }
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<EngineError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<EngineError> {
        match () {
            _ if select.into.is_some() => ControlFlow::Break(unsupported("SELECT INTO")),
            // SELECT 'a' 'b' is two strings, not one of that name.
            _ if select.projection.iter().any(is_named_by_string) => ControlFlow::Break(EngineError::new(
                "42601",
                "syntax error: a string where a column's name is expected",
            )),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<EngineError> {
        if let Some(rewritten) = crate::arrays::rewritten(expr) {
            *expr = rewritten;
        }
        if let Some(query) = self.may_lock(expr) {
            let locks = std::mem::take(&mut query.locks);
            self.held.push(locks);
        }
        ControlFlow::Continue(())
    }

    /// `timestamp AT TIME ZONE zone` is `timezone(zone, timestamp)`.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<EngineError> {
        if let Some(query) = self.may_lock(expr) {
            query.locks = self.held.pop().expect("taken before");
        }
        let blank = || Box::new(Expr::Identifier(Ident::new("")));
        if let Expr::AtTimeZone { timestamp, time_zone } = expr {
            let arguments = [time_zone, timestamp].map(|argument| *std::mem::replace(argument, blank()));
            *expr = pgcatalog::call("timezone", arguments.into());
        } else if let Expr::SimilarTo { .. } = expr {
            return ControlFlow::Break(
                unsupported("SIMILAR TO").with_hint("Use LIKE, or a regular expression with ~."),
            );
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<EngineError> {
        match factor {
            TableFactor::Table { sample: Some(_), .. } => ControlFlow::Break(unsupported("TABLESAMPLE")),
            _ => ControlFlow::Continue(()),
        }
    }

    /// `generate_series(1, 3) AS g` has a column g.
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<EngineError> {
        if let TableFactor::Table { name, alias, args: Some(_), .. } = factor {
            let column = match alias {
                Some(alias) => alias.name.clone(),
                None => match name.0.last().and_then(|part| part.as_ident()) {
                    Some(function) => function.clone(),
                    None => return ControlFlow::Continue(()),
                },
            };
            let alias = alias.get_or_insert_with(|| TableAlias {
                explicit: true,
                name: column.clone(),
                columns: vec![],
                at: None,
            });
            if alias.columns.is_empty() {
                alias.columns.push(TableAliasColumnDef::from_name(column.value));
            }
        }
        ControlFlow::Continue(())
    }
}

/// Parameters that are cast at once, as in `$1::int`, are of the type they are cast to.
pub(crate) fn type_cast_parameters(statement: &Statement, types: &mut Vec<Option<DataType>>) {
    struct Casts<'t>(&'t mut Vec<Option<DataType>>);
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
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if let Expr::Cast { expr, data_type, .. } = expr
                && let Ok(data_type) = crate::ddl::column_type(data_type)
            {
                type_parameter(expr, data_type, self.0);
            }
            ControlFlow::Continue(())
        }
    }
    let _ = statement.visit(&mut Casts(types));
}

/// Where the value is a parameter whose type is open, it is this. Whether the value is a parameter.
pub(crate) fn type_parameter(value: &Expr, data_type: DataType, types: &mut Vec<Option<DataType>>) -> bool {
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

fn refuse_query(query: &Query) -> Result<()> {
    if let Some(lock) = query.locks.first() {
        return Err(unsupported(format!("SELECT FOR {}", lock.lock_type)));
    }
    if query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some() {
        return Err(unsupported("this clause of SELECT"));
    }
    if !query.pipe_operators.is_empty() {
        return Err(unsupported("the pipe syntax"));
    }
    match query.body.as_ref() {
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
            Err(unsupported("INSERT, UPDATE or DELETE within WITH"))
        }
        _ => Ok(()),
    }
}

/// As PostgreSQL folds identifiers: to lower case, unless quoted.
pub(crate) fn fold(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// The folded name of an object that must be in schema `public`, which may be written or not.
pub(crate) fn object_name(name: &ObjectName) -> Result<String> {
    let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(fold)).collect();
    let parts = parts.ok_or_else(|| unsupported(format!("the name {name}")))?;
    match parts.as_slice() {
        [table] => Ok(table.clone()),
        [schema, table] | [_, schema, table] if schema == "public" => Ok(table.clone()),
        [schema, _] | [_, schema, _] if ["pg_catalog", "information_schema", "terrace"].contains(&schema.as_str()) => {
            Err(EngineError::new("42501", format!("permission denied: \"{name}\" is a system catalog")))
        }
        [schema, _] | [_, schema, _] => Err(EngineError::new("3F000", format!("schema \"{schema}\" does not exist"))),
        _ => Err(EngineError::new("42601", format!("improper qualified name (too many dotted names): {name}"))),
    }
}

pub(crate) fn undefined_table(name: impl std::fmt::Display) -> EngineError {
    EngineError::new("42P01", format!("relation \"{name}\" does not exist"))
}
