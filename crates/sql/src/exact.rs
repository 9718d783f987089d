//! Expressions that are kept as text: what is read back is what was written.
use crate::dml::template;
use crate::error::unsupported;
use datafusion::sql::sqlparser::ast::{Expr, SelectItem, SetExpr, Value, ValueWithSpan, VisitMut, VisitorMut};
use std::ops::ControlFlow;
use terrace_engine::{EngineError, Result};

/// The text of an expression. Refused where reading it would give another one.
pub(crate) fn text_of(expr: &Expr) -> Result<String> {
    let mut quoted = expr.clone();
    let _ = VisitMut::visit(&mut quoted, &mut Quote);
    let text = quoted.to_string();
    if parsed(&text).ok().flatten().as_ref() != Some(expr) {
        let hint = "Write it in another way, with plain names and literals.";
        return Err(unsupported(format!("keeping the expression {text}")).with_hint(hint));
    }
    Ok(text)
}

/// The expression of a text; `None` where it is none.
pub(crate) fn parsed(text: &str) -> Result<Option<Expr>> {
    let query = template(&format!("SELECT {text}"))?;
    let SetExpr::Select(mut select) = *query.body else { return Ok(None) };
    match (select.projection.pop(), select.projection.is_empty()) {
        (Some(SelectItem::UnnamedExpr(expr)), true) => Ok(Some(expr)),
        _ => Ok(None),
    }
}

/// The parser prints a plain string as if its quotes might have been escaped already. Where that would tell, `E'...'`
/// is exact.
struct Quote;

impl VisitorMut for Quote {
    type Break = EngineError;

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<EngineError> {
        if let Value::SingleQuotedString(text) = &value.value
            && (text.contains("''") || text.contains("\\'"))
        {
            value.value = Value::EscapedStringLiteral(text.clone());
        }
        ControlFlow::Continue(())
    }
}
