//! LIMIT and OFFSET: constants as the bigint that PostgreSQL makes of them; the mistakes that may stand there.
use super::places::{has_call, is_aggregate, is_windowed};
use crate::cast::cast_datum;
use crate::error::unsupported;
use datafusion::sql::sqlparser::ast::{Expr, LimitClause, Query, Value, Visit, Visitor};
use std::ops::ControlFlow;
use terrace_engine::{DataType, EngineError, Result};

pub(super) fn settle(query: &mut Query) -> Result<()> {
    let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause else { return Ok(()) };
    if let Some(limit) = limit {
        settle_count(limit, "LIMIT")?;
    }
    offset.as_mut().map_or(Ok(()), |offset| settle_count(&mut offset.value, "OFFSET"))
}

fn settle_count(count: &mut Expr, clause: &str) -> Result<()> {
    if let Expr::Value(value) = count {
        let read = match &value.value {
            Value::SingleQuotedString(text) => DataType::Int8.parse(text)?,
            // A whole number is one already.
            Value::Number(text, _) if text.parse::<i64>().is_ok() => return Ok(()),
            Value::Number(text, _) => {
                let out_of_range = |_| EngineError::out_of_range("bigint");
                cast_datum(DataType::Numeric(None).parse(text).map_err(out_of_range)?, DataType::Int8, false)?
            }
            Value::Boolean(_) => {
                let message = format!("argument of {clause} must be type bigint, not type boolean");
                return Err(EngineError::new("42804", message));
            }
            _ => return Ok(()),
        };
        value.value = Value::Number(read.to_string(), false);
        return Ok(());
    }
    let refused = |state, what: &str| Err(EngineError::new(state, format!("{what} {clause}")));
    if has_call(count, &is_windowed) {
        return refused("42P20", "window functions are not allowed in");
    }
    if has_call(count, &is_aggregate) {
        return refused("42803", "aggregate functions are not allowed in");
    }
    match count.visit(&mut Names(clause)) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Names<'c>(&'c str);

impl Visitor for Names<'_> {
    type Break = EngineError;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<EngineError> {
        ControlFlow::Break(unsupported(format!("a query in {}", self.0)))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<EngineError> {
        match expr {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                let message = format!("argument of {} must not contain variables", self.0);
                ControlFlow::Break(EngineError::new("42P10", message))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
