//! From tokens to statements: a parser that goes down the grammar and never back.
//!
//! Invariants:
//! 1. The token at which an error is reported is the first one with which no statement goes on. PostgreSQL reports the
//!    same one. So nothing decides on more than the next tokens' kinds, and what is written out of order is not
//!    "tried".
//! 2. Whatever can be nested is parsed within [`Parser::nested`], which bounds the depth and finds enough stack. Chains
//!    of operators are loops: they need no stack, but their trees are high, so they count too.
//! 3. What PostgreSQL has and Terrace has not is parsed to its end and then refused ([`Parser::refuse`]): a syntax
//!    error in the same statement comes first.

mod alter;
mod call;
mod change;
mod domains;
mod enums;
mod expr;
mod from;
mod grant;
mod names;
mod object;
mod prepared;
mod primary;
mod query;
mod schema;
mod select;
mod settings;
mod special;
mod statement;
mod table;
mod types;
mod window;

use crate::error::{Result, SyntaxError};
use crate::keyword::Keyword;
use crate::lexer::{Kind, Lexed, Options, Token, lex};
use crate::statement::{At, Expr, Name, Refused, Statement, Written};
use std::ops::Range;

/// A statement of a text.
///
/// A high tree is dropped, and should be walked, on a large stack: see `height`.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// Empty once it was taken out.
    statement: Option<Statement>,
    /// The statement's bytes in the text: from its first token to its last one, without the semicolon.
    pub range: Range<usize>,
    /// How many levels the tree has at most, counted in operators, calls, queries and parentheses.
    pub height: u32,
    /// How many queries and joins stand in the queries of WITH, each of which may read all those before it.
    pub with: u32,
    /// The highest parameter: `$3` is 3.
    pub parameters: u32,
}

impl Parsed {
    /// The statement.
    pub fn statement(&self) -> &Statement {
        self.statement.as_ref().expect("a statement is there until it is taken out")
    }

    /// The statement for itself. Whoever takes it drops it on a stack that suits its height.
    pub fn into_statement(mut self) -> Statement {
        self.statement.take().expect("a statement is taken out once")
    }
}

impl Drop for Parsed {
    fn drop(&mut self) {
        if self.height > LOW {
            let statement = self.statement.take();
            stacker::maybe_grow(self.height as usize * DROP_STACK, self.height as usize * DROP_STACK * 2, || {
                drop(statement)
            });
        }
    }
}

/// Up to this height a statement is dropped on any stack.
const LOW: u32 = 100;
/// Bytes of stack that dropping one level takes at most.
const DROP_STACK: usize = 1 << 10;
/// The height of the highest tree. PostgreSQL's own bound is that of its stack.
const HIGHEST: u32 = 12_000;
/// The deepest nesting.
const DEEPEST: u32 = 4_000;
/// Bytes of stack that one level of nesting takes at most, and how much is added when there is less.
const LEVEL_STACK: usize = 128 << 10;
const MORE_STACK: usize = 4 << 20;

/// Parses a text with any number of statements. Empty ones are left out.
pub fn parse(sql: &str, options: Options) -> std::result::Result<Vec<Parsed>, SyntaxError> {
    let Lexed { tokens, error } = lex(sql, options);
    let mut parser = Parser {
        sql,
        tokens,
        broken: error,
        next: 0,
        depth: 0,
        items: None,
        substring: None,
        height: 0,
        queries: 0,
        with: 0,
        parameters: 0,
        first_select: None,
        into: None,
        refused: None,
    };
    parser.statements().map_err(|error| *error)
}

/// Where the parser stands.
struct Parser<'s> {
    sql: &'s str,
    /// At least one. The last one matches nothing.
    tokens: Vec<Token>,
    /// The error of the last token, where that is `Broken`.
    broken: Option<Box<SyntaxError>>,
    /// The token that was not consumed yet.
    next: usize,
    /// How many [`Parser::nested`] are open.
    depth: u32,
    /// The depth at which the innermost list of SELECT has its items.
    items: Option<u32>,
    /// The depth at which the innermost SUBSTRING has its first argument.
    substring: Option<u32>,
    /// The height of the highest tree that was made since the innermost of those was opened.
    height: u32,
    /// How many queries and joins the statement has so far; and how many of them stand in queries of WITH.
    queries: u32,
    with: u32,
    /// The highest parameter of the statement.
    parameters: u32,
    /// Where the statement's first SELECT begins, if it begins with one.
    first_select: Option<At>,
    /// What the statement's SELECT goes INTO, until somebody takes that.
    into: Option<Into>,
    /// The first thing that Terrace does not support in the statement.
    refused: Option<Refused>,
}

/// The table that SELECT INTO makes.
struct Into {
    temporary: bool,
    name: Name,
}

impl<'s> Parser<'s> {
    fn statements(&mut self) -> Result<Vec<Parsed>> {
        let mut all = Vec::new();
        loop {
            while self.eat(Kind::Semicolon) {}
            if self.at(Kind::End) {
                return Ok(all);
            }
            let first = self.next;
            (self.height, self.queries, self.with, self.parameters, self.refused) = (0, 0, 0, 0, None);
            self.into = None;
            let parsed = self.statement()?;
            if let Some(into) = self.into.take() {
                self.refuse(into.name.at(), "SELECT INTO within this statement");
            }
            if !self.at(Kind::Semicolon) && !self.at(Kind::End) {
                return Err(self.unexpected());
            }
            let statement = match self.refused.take() {
                None => parsed,
                Some(refused) => {
                    let (height, with, parameters) = (self.height, self.with, self.parameters);
                    drop(Parsed { statement: Some(parsed), range: 0..0, height, with, parameters });
                    Statement::Refused(refused)
                }
            };
            let range = self.tokens[first].start as usize..self.tokens[self.next - 1].end as usize;
            let (height, with, parameters) = (self.height, self.with, self.parameters);
            all.push(Parsed { statement: Some(statement), range, height, with, parameters });
        }
    }

    /// Parses what can be nested (invariant 2).
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEEPEST {
            return Err(self.too_deep());
        }
        let before = std::mem::take(&mut self.height);
        self.depth += 1;
        let parsed = stacker::maybe_grow(LEVEL_STACK, MORE_STACK, || parse(self));
        self.depth -= 1;
        let height = self.height + 1;
        self.height = before.max(height);
        match height <= HIGHEST {
            true => parsed,
            // An error of what is inside comes first.
            false => parsed.and_then(|_| Err(self.too_deep())),
        }
    }

    /// The tree was put below a new node.
    fn higher(&mut self) -> Result<()> {
        self.height += 1;
        if self.height > HIGHEST { Err(self.too_deep()) } else { Ok(()) }
    }

    /// What follows is joined with what is there.
    fn joined(&mut self) -> Result<()> {
        self.queries += 1;
        self.higher()
    }

    fn too_deep(&self) -> Box<SyntaxError> {
        SyntaxError::with_state("54001", "stack depth limit exceeded", self.place())
            .hint("Write the statement with fewer nested parentheses or a shorter chain of operators.")
    }

    /// Notes that Terrace does not support something (invariant 3).
    fn refuse(&mut self, at: At, what: &str) {
        self.refuse_with(at, format!("{what} is not supported"), None);
    }

    fn refuse_with(&mut self, at: At, message: String, hint: Option<&str>) {
        self.refused.get_or_insert_with(|| Refused { at, sqlstate: "0A000", message, hint: hint.map(str::to_owned) });
    }

    // The tokens.

    fn token(&self) -> Token {
        self.tokens[self.next]
    }

    /// The token so many behind the next one.
    fn ahead(&self, count: usize) -> Token {
        self.tokens[(self.next + count).min(self.tokens.len() - 1)]
    }

    /// Where the next token begins.
    fn place(&self) -> At {
        self.token().start
    }

    fn text(&self, token: Token) -> &'s str {
        &self.sql[token.start as usize..token.end as usize]
    }

    fn advance(&mut self) -> Token {
        let token = self.token();
        if !matches!(token.kind, Kind::End | Kind::Broken) {
            self.next += 1;
        }
        token
    }

    fn at(&self, kind: Kind) -> bool {
        self.token().kind == kind
    }

    fn at_word(&self, keyword: Keyword) -> bool {
        self.token().keyword == Some(keyword)
    }

    fn at_any(&self, keywords: &[Keyword]) -> bool {
        self.token().keyword.is_some_and(|keyword| keywords.contains(&keyword))
    }

    // These have branches, and do not add the test's result to `next`: rustc 1.95 makes code of that which, optimised,
    // ends a list at its first comma.

    fn eat(&mut self, kind: Kind) -> bool {
        if !self.at(kind) {
            return false;
        }
        self.next += 1;
        true
    }

    fn eat_word(&mut self, keyword: Keyword) -> bool {
        if !self.at_word(keyword) {
            return false;
        }
        self.next += 1;
        true
    }

    /// Consumes these keywords where all of them follow.
    fn eat_words(&mut self, keywords: &[Keyword]) -> bool {
        let there = keywords.iter().enumerate().all(|(at, keyword)| self.ahead(at).keyword == Some(*keyword));
        if there {
            self.next += keywords.len();
        }
        there
    }

    fn expect(&mut self, kind: Kind) -> Result<At> {
        let at = self.place();
        if self.eat(kind) { Ok(at) } else { Err(self.unexpected()) }
    }

    fn expect_word(&mut self, keyword: Keyword) -> Result<At> {
        let at = self.place();
        if self.eat_word(keyword) { Ok(at) } else { Err(self.unexpected()) }
    }

    /// Consumes these keywords, each of which must be there.
    fn expect_words(&mut self, keywords: &[Keyword]) -> Result<()> {
        keywords.iter().try_for_each(|keyword| self.expect_word(*keyword).map(drop))
    }

    /// `item, item, ...`.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat(Kind::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// `(item, item, ...)`.
    fn list_in_parens<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect(Kind::LeftParen)?;
        let items = self.list(item)?;
        self.expect(Kind::RightParen)?;
        Ok(items)
    }

    /// What is parsed, and where it stands.
    fn placed<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, Range<At>)> {
        let start = self.place();
        let parsed = parse(self)?;
        Ok((parsed, start..self.tokens[self.next - 1].end))
    }

    /// An expression with its text.
    fn written(&mut self, parse: impl FnOnce(&mut Self) -> Result<Expr>) -> Result<Written> {
        let first = self.next;
        let expr = parse(self)?;
        let mut text = String::new();
        let mut end = self.tokens[first].start;
        for token in &self.tokens[first..self.next] {
            if token.start > end {
                text.push(' ');
            }
            text.push_str(self.text(*token));
            end = token.end;
        }
        Ok(Written { expr, text })
    }

    /// The error that no statement goes on with the next token.
    fn unexpected(&mut self) -> Box<SyntaxError> {
        self.unexpected_at(self.next)
    }

    /// The error that no statement goes on with a token.
    fn unexpected_at(&mut self, index: usize) -> Box<SyntaxError> {
        let token = self.tokens[index.min(self.tokens.len() - 1)];
        if token.kind == Kind::Broken
            && let Some(error) = self.broken.take()
        {
            return error;
        }
        // What begins no token is one character.
        let mut end = token.end as usize;
        while !self.sql.is_char_boundary(end) {
            end += 1;
        }
        SyntaxError::near("syntax error", &self.sql[token.start as usize..end], token.start)
    }
}
