//! Values of literals, as a column or a parameter takes them.
use crate::values::{assign_datum, check_assignable};
use datafusion::arrow::datatypes::DataType as ArrowType;
use terrace_engine::{ColumnDef, DataType, Datum, EngineError, Result};
use terrace_grammar::statement::{Expr, ExprKind, Literal};

/// The value of a literal for a column; `None` where it is no literal, or has to be computed.
pub(crate) fn constant(expr: &Expr, column: &ColumnDef) -> Option<Result<Datum>> {
    let ExprKind::Literal(literal) = &expr.kind else { return None };
    of_literal(literal, column)
}

pub(crate) fn of_literal(literal: &Literal, column: &ColumnDef) -> Option<Result<Datum>> {
    Some(match literal {
        Literal::Null => Ok(Datum::Null),
        Literal::Int(value) => number(&value.to_string(), column),
        // A numeric is a text in its own digits (`1e3` is 1000): what makes one is the planner's.
        Literal::Number(_) if column.data_type.is_text() => return None,
        // A number with digits behind its point is a numeric, of which there is no -0.
        Literal::Number(text) if is_zero(text) => number(text.trim_start_matches('-'), column),
        Literal::Number(text) => number(text, column),
        Literal::Text(text) => column.data_type.parse(text),
        Literal::Bool(value) => check_assignable(&ArrowType::Boolean, column, false)
            .and_then(|()| assign_datum(Datum::Bool(*value), column.data_type)),
        Literal::Bits { .. } => return None,
    })
}

fn is_zero(text: &str) -> bool {
    text.bytes().take_while(|b| !matches!(b, b'e' | b'E')).all(|b| matches!(b, b'-' | b'0' | b'.'))
}

fn number(text: &str, column: &ColumnDef) -> Result<Datum> {
    // Every type of number takes every other by assignment.
    check_assignable(&ArrowType::Int32, column, false)?;
    match column.data_type {
        text_type if text_type.is_text() => text_type.parse(text),
        // PostgreSQL's literal is numeric, then cast; digits beyond a numeric's would be lost on the way.
        DataType::Float4 | DataType::Float8 | DataType::Numeric(_) => column.data_type.parse(text),
        integer => match text.parse::<i64>() {
            Ok(value) => assign_datum(Datum::Int8(value), integer),
            Err(_) => match DataType::Numeric(None).parse(text) {
                Ok(exact) => assign_datum(exact, integer),
                Err(error) if error.state.0 == "22003" => Err(EngineError::out_of_range(integer.base_name())),
                Err(_) => Err(EngineError::new("42601", format!("syntax error at \"{text}\""))),
            },
        },
    }
}
