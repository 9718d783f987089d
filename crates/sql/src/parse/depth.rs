//! How many levels a statement has, told from its tree before it is planned: what walks the tree, or a plan that is
//! made of it, recurses over them.
//!
//! 1. What plans, runs or drops a statement has [`stack_for`](crate::stack::stack_for) its depth left of its thread's
//!    stack, or gets a stack of that size.
//! 2. That is twice what the worst statement of that depth takes in a build without optimisation (`depth/tests.rs`).
//!    DataFusion protects most of its recursions, but not all, and one of its frames can be larger than the 128 KiB
//!    that it looks for.
//! 3. A default has at most [`OF_DEFAULT`] levels. Constraints may have as many as a statement: what checks them makes
//!    room for them.
//! 4. What is flat in the tree (AND, OR, UNION) is no level; the binder bounds it.
use terrace_engine::{EngineError, Result};
use terrace_grammar::Parsed;

/// Levels of a statement.
const MOST: usize = 1000;

/// Levels of a query or a join in WITH.
const OF_WITH: usize = 2;

/// Levels of a column's default: statements that may evaluate one have stack for so many more.
pub(crate) const OF_DEFAULT: usize = 32;

/// A bound on the levels of a statement, at most [`MOST`] (54001).
pub(crate) fn depth(parsed: &Parsed) -> Result<usize> {
    let depth = parsed.height as usize + parsed.with as usize * OF_WITH;
    if depth > MOST {
        let message = format!("statement chains or nests more than {MOST} operators or queries");
        return Err(EngineError::new("54001", message).with_hint("Use IN (...) or a list of VALUES."));
    }
    Ok(depth)
}

#[cfg(test)]
mod tests;
