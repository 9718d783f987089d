//! `nextval`, `currval`, `lastval` and `setval` in a query: they are called before it runs, once for each place, so
//! they stand where there is one row.
//!
//! 1. A query is bound twice: once to learn what it calls ([`Whole::calls`](super::Whole)), and again with the values.
//! 2. Beside FROM they are refused (0A000): there they would be called for each row.
use super::scope::Scope;
use super::{Binder, Placed, Result, unsupported};
use crate::parse::sequence_calls::Call;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use terrace_grammar::statement::At;

impl Binder<'_> {
    pub(super) fn sequence_call(&self, call: terrace_engine::Result<Call>, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let call = call.at(at)?;
        if reads_rows(scope) {
            return unsupported("a function of a sequence beside FROM");
        }
        self.calls.borrow_mut().push((at, call));
        let value = self.planner.numbers.and_then(|numbers| numbers.get(&at)).copied().unwrap_or_default();
        Ok(Expr::Literal(ScalarValue::Int64(Some(value)), None))
    }
}

/// Whether rows are read in this query or in one around it.
fn reads_rows(scope: &Scope<'_>) -> bool {
    scope.source.given || scope.around.is_some_and(reads_rows)
}
