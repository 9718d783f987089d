//! The trees that DataFusion's SQL planner reads. They are made for tests that compare both ways.
//!
//! 1. The text was parsed by the grammar before: whatever is refused here is valid SQL that Terrace does not take
//!    (0A000).
use crate::error::unsupported;
use crate::parse;
use crate::plan::bind::Tree;
use crate::plan::refusals;
use crate::stack::on_stack;
use crate::statement::changes::plain_values;
use datafusion::sql::sqlparser::ast::Statement as Ast;
use datafusion::sql::sqlparser::tokenizer::TokenWithSpan;
use std::ops::Range;
use std::sync::OnceLock;
use terrace_engine::{EngineError, Result};
use terrace_grammar::statement::{At, CopySource, Insert, Statement};

/// The query of a statement, as the old way reads it.
pub(crate) struct Old {
    text: String,
    tree: OnceLock<Ast>,
}

impl Old {
    /// Reads it at once; with it, a bound on the tree's depth. `None`: nothing of the statement is planned.
    pub(crate) fn of(tree: &Tree) -> Result<Option<(Old, usize)>> {
        let Some(old) = Self::later(tree) else { return Ok(None) };
        let (tokens, depth) = parse::tokens(&old.text).map_err(not_taken)?;
        let read = on_stack(depth, || read(tokens))?;
        Ok(Some((Old { text: old.text, tree: OnceLock::from(read) }, depth)))
    }

    /// To be read when it is asked for.
    pub(crate) fn later(tree: &Tree) -> Option<Old> {
        let place = planned(tree)?;
        let text = tree.text()[place.start as usize..place.end as usize].to_owned();
        Some(Old { text, tree: OnceLock::new() })
    }

    /// The query, to be planned. One that locks rows is not planned as it stands.
    pub(crate) fn statement(&self) -> Result<Ast> {
        match self.tree()? {
            Ast::Query(query) if !query.locks.is_empty() => Err(unsupported("SELECT FOR UPDATE within this statement")),
            query => Ok(query.clone()),
        }
    }

    fn tree(&self) -> Result<&Ast> {
        if let Some(tree) = self.tree.get() {
            return Ok(tree);
        }
        let (tokens, depth) = parse::tokens(&self.text).map_err(not_taken)?;
        let tree = on_stack(depth, || read(tokens))?;
        Ok(self.tree.get_or_init(|| tree))
    }
}

fn read(tokens: Vec<TokenWithSpan>) -> Result<Ast> {
    let parsed = parse::parse_tokens(tokens).map_err(not_taken)?;
    let mut tree = parsed.ok_or_else(|| not_taken(EngineError::new("42601", "an empty statement")))?;
    refusals::prepare(&mut tree)?;
    Ok(tree)
}

/// A bound on the depth of a statement of which nothing is planned as it stands. `height`: its tree's.
pub(crate) fn depth_of(sql: &str, height: u32) -> Result<usize> {
    if height <= LOW {
        return Ok(height as usize);
    }
    let (tokens, depth) = parse::tokens(sql).map_err(not_taken)?;
    if parse::depth::doubling::may_double(tokens.iter().map(|token| &token.token)) {
        on_stack(depth, || parse::parse_tokens(tokens)).map_err(not_taken)?;
    }
    Ok(depth)
}

/// Trees that nobody needs to measure otherwise.
const LOW: u32 = 8;

/// Invariant 1.
fn not_taken(error: EngineError) -> EngineError {
    match error.state.0 {
        "42601" => EngineError::new("0A000", format!("this form of a statement is not supported yet ({error})")),
        _ => error,
    }
}

/// Where a query stands in a statement, whose other parts are planned otherwise.
fn planned(tree: &Tree) -> Option<Range<At>> {
    fn of_insert(insert: &Insert) -> Option<Range<At>> {
        let query = insert.source.as_ref().is_some_and(|source| plain_values(source).is_none());
        query.then(|| insert.place.clone())
    }
    match tree.statement() {
        Statement::Query(_) => Some(tree.place()),
        Statement::Insert(insert) => of_insert(insert),
        Statement::Declare(declare) => Some(declare.place.clone()),
        Statement::Explain(explain) => match &explain.statement {
            Statement::Query(_) => Some(explain.place.clone()),
            Statement::Insert(insert) => of_insert(insert),
            _ => None,
        },
        Statement::Copy(copy) => match &copy.source {
            CopySource::Query(_, place) => Some(place.clone()),
            CopySource::Table { .. } => None,
        },
        _ => None,
    }
}
