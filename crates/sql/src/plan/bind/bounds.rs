//! What takes planning more time than its length says is bounded before it is planned (54001).
//!
//! 1. Of subqueries in expressions, WITH queries, BETWEENs, conditions of CASE and arguments of COALESCE and NULLIF
//!    (but for the last) at most [`NESTED_MAX`] stand in each other.
//! 2. The WITH queries of a statement, each copied to wherever it is read, come to at most [`COPIES_MAX`] readings.
//! 3. At most [`TABLES_MAX`] tables are joined in one FROM.
//! 4. At most [`CONDITIONS_MAX`] conditions stand beside each other in one AND or OR.
//! 5. A query, and what a statement answers, has at most [`COLUMNS_MAX`] columns, as in PostgreSQL (54011). The
//!    protocol counts them in 16 bits.
//!
//! Upstream: `LogicalPlan::check_invariants` looks at each subquery from each query around it. The simplifier makes
//! `a >= b AND a <= c` of BETWEEN, and `(x AND y) OR (NOT x AND z)` of a CASE of booleans, with two copies of what may
//! hold the same again; COALESCE and NULLIF become CASEs that hold an argument twice. Every rule walks each copy of a
//! WITH query.
use super::{Binder, Result};
use std::cell::Cell;
use terrace_engine::EngineError;

const NESTED_MAX: usize = 10;

const COPIES_MAX: usize = 500;

const TABLES_MAX: usize = 100;

const CONDITIONS_MAX: usize = 20_000;

const COLUMNS_MAX: usize = 1664;

#[derive(Default)]
pub(super) struct Bounds {
    nested: Cell<usize>,
    /// Of WITH queries, in the WITH query or the statement that is bound.
    readings: Cell<usize>,
}

/// So many tables are joined (invariant 3).
pub(super) fn joins(tables: usize) -> Result<()> {
    if tables > TABLES_MAX {
        let error = EngineError::new("54001", format!("more than {TABLES_MAX} tables are joined in one FROM"));
        return Err(error.with_hint("Join some of them in a subquery of FROM.").into());
    }
    Ok(())
}

/// So many conditions stand beside each other (invariant 4).
pub(super) fn conditions(count: usize, op: &str) -> Result<()> {
    if count > CONDITIONS_MAX {
        let error = EngineError::new("54001", format!("more than {CONDITIONS_MAX} conditions in one {op}"));
        return Err(error.with_hint("Use IN (...) or a list of VALUES.").into());
    }
    Ok(())
}

/// A list has so many columns (invariant 5).
pub(crate) fn columns(count: usize) -> terrace_engine::Result<()> {
    match count > COLUMNS_MAX {
        true => Err(EngineError::new("54011", format!("target lists can have at most {COLUMNS_MAX} entries"))),
        false => Ok(()),
    }
}

impl Binder<'_> {
    /// Binds what is planned twice (invariant 1).
    pub(super) fn doubled<T>(&self, bind: impl FnOnce() -> Result<T>) -> Result<T> {
        let nested = self.bounds.nested.get();
        if nested == NESTED_MAX {
            let what = "subqueries, WITH queries, BETWEENs, conditions of CASE or arguments of COALESCE and NULLIF";
            let hint = "Compute the inner ones in a subquery of FROM.";
            let error = EngineError::new("54001", format!("more than {NESTED_MAX} {what} stand in each other"));
            return Err(error.with_hint(hint).into());
        }
        self.bounds.nested.set(nested + 1);
        let bound = bind();
        assert_eq!(self.bounds.nested.get(), nested + 1, "invariant 1: what was entered was left");
        self.bounds.nested.set(nested);
        bound
    }

    /// Binds a WITH query; answers how many readings each copy of it is.
    pub(super) fn copied<T>(&self, bind: impl FnOnce() -> Result<T>) -> Result<(T, usize)> {
        let around = self.bounds.readings.replace(0);
        let bound = self.doubled(bind);
        let own = self.bounds.readings.replace(around);
        Ok((bound?, own.max(1)))
    }

    /// A WITH query is read (invariant 2).
    pub(super) fn reads(&self, copies: usize) -> Result<()> {
        let readings = self.bounds.readings.get().saturating_add(copies);
        self.bounds.readings.set(readings);
        if readings > COPIES_MAX {
            let message = format!("the WITH queries of the statement are read more than {COPIES_MAX} times");
            let detail = "A WITH query is planned anew for each place that reads it, with those that it reads.";
            return Err(EngineError::new("54001", message).with_detail(detail).into());
        }
        Ok(())
    }
}
