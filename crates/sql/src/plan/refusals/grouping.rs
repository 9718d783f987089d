//! How many grouping sets a GROUP BY may have: DataFusion plans each of them, whatever a limit of time or memory says.
use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr};
use terrace_engine::{EngineError, Result};

/// PostgreSQL's bounds.
const MOST_OF_CUBE: usize = 12;
const MOST_SETS: usize = 4096;

/// 54011, 54001
pub(super) fn refuse_many_sets(group_by: &GroupByExpr) -> Result<()> {
    let GroupByExpr::Expressions(items, _) = group_by else { return Ok(()) };
    let mut product = 1usize;
    for item in items {
        product = product.saturating_mul(sets(item)?);
    }
    if product > MOST_SETS {
        return Err(EngineError::new("54001", format!("too many grouping sets present (maximum {MOST_SETS})")));
    }
    Ok(())
}

fn sets(item: &Expr) -> Result<usize> {
    match item {
        Expr::Cube(of) if of.len() > MOST_OF_CUBE => {
            Err(EngineError::new("54011", format!("CUBE is limited to {MOST_OF_CUBE} elements")))
        }
        Expr::Cube(of) => Ok(1 << of.len()),
        Expr::Rollup(of) => Ok(of.len() + 1),
        Expr::GroupingSets(of) => Ok(of.len()),
        _ => Ok(1),
    }
}
