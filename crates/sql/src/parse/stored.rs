//! Expressions that the catalogue keeps as text: defaults and check constraints.
//!
//! 1. What is read back is what was written: an expression whose text would be read otherwise is refused.
use crate::error::unsupported;
use crate::parse::{fold, template};
use datafusion::sql::sqlparser::ast::Visit;
use datafusion::sql::sqlparser::ast::Visitor;
use datafusion::sql::sqlparser::ast::{Expr, SelectItem, SetExpr, Value, ValueWithSpan, VisitMut, VisitorMut};
use std::ops::ControlFlow;
use terrace_engine::Check;
use terrace_engine::Table;
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

pub(crate) fn default_of(table: &Table, column: usize) -> Result<Expr> {
    let sql = table.columns[column].default_sql.as_deref().unwrap_or("NULL");
    let broken = || EngineError::new("XX000", format!("the default {sql} is not an expression"));
    parsed(sql)?.ok_or_else(broken)
}

/// The expression of a stored constraint.
pub(crate) fn check_expr(check: &Check) -> Result<Expr> {
    let broken = || EngineError::new("XX000", format!("the constraint {} is not an expression", check.name));
    parsed(&check.sql)?.ok_or_else(broken)
}

/// The folded names of the columns that an expression names.
pub(crate) fn columns_of(expr: &Expr) -> Vec<String> {
    struct Names(Vec<String>);
    impl Visitor for Names {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if let Expr::Identifier(ident) = expr {
                self.0.push(fold(ident));
            }
            ControlFlow::Continue(())
        }
    }
    let mut names = Names(vec![]);
    let _ = Visit::visit(expr, &mut names);
    names.0.sort();
    names.0.dedup();
    names.0
}

/// The names of the columns that a stored constraint is about.
pub(crate) fn columns_named(check: &Check) -> Vec<String> {
    check_expr(check).map_or(vec![], |expr| columns_of(&expr))
}
