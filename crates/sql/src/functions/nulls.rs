//! Constant NULLs: what they make of the functions and conditions that they stand in, before a row is read.
//!
//! 1. An operator of a constant NULL is NULL, and its other argument is not computed, so that `a + 1 > NULL` does not
//!    fail where `a + 1` is out of range. A constant that fails beside it (`1 / 0`) has failed before
//!    (`plan::rules::failing_constants`).
//!
//! Source: PostgreSQL 15, `eval_const_expressions` (optimizer/util/clauses.c).
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::Expr;

pub(crate) fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.is_null())
}

/// Whether a call of these arguments, which are simplified already, is NULL without being computed.
pub(crate) fn decide(args: &[Expr]) -> Result<bool> {
    if !args.iter().any(is_null) {
        return Ok(false);
    }
    let mut fails = false;
    for arg in args {
        fails |= has_open_constant(arg)?;
    }
    Ok(!fails)
}

/// Whether there is a part without columns that is no literal: a constant that fails, or a value that comes later.
pub(crate) fn has_open_constant(expr: &Expr) -> Result<bool> {
    expr.exists(|part| Ok(!matches!(part, Expr::Literal(..)) && !part.any_column_refs()))
}
