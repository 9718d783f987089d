//! Parameters without a type of which is asked whether they are NULL.
//!
//! 1. The first place that tells a parameter's type gives it to all that are bound later ([`Binder::learn`]).
//! 2. A place that asks for NULL tells none. If no other place does, that is an error (42P18), and so it is if another
//!    place of the same clause does, behind it (42P08). WHERE is bound before the items that PostgreSQL looks at first.
use super::{Binder, Result};
use crate::values::parameter_type;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::Placeholder;
use terrace_engine::EngineError;

/// How deep below an expression that is made a parameter may be that it is made of.
const DEPTH: usize = 3;

fn number_of(id: &str) -> Option<usize> {
    id.strip_prefix('$')?.parse().ok()
}

impl Binder<'_> {
    /// Invariant 1, of an expression that was made just now.
    pub(super) fn learn(&self, made: &Expr) -> Result<()> {
        if self.open.borrow().is_empty() {
            return Ok(());
        }
        self.learn_below(made, DEPTH)
    }

    fn learn_below(&self, expr: &Expr, depth: usize) -> Result<()> {
        if let Expr::Placeholder(Placeholder { id, field: Some(field) }) = expr
            && let Some(number) = number_of(id).filter(|number| self.open.borrow().contains(number))
            && let Some(of) = parameter_type(field)
        {
            self.settle_parameter(number, of);
        }
        if depth > 0 {
            let mut failed = Ok(());
            expr.apply_children(|part| {
                failed = self.learn_below(part, depth - 1);
                Ok(if failed.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
            })?;
            failed?;
        }
        Ok(())
    }

    /// Whether it is NULL is asked of this value.
    pub(super) fn asks_null(&self, value: &Expr) {
        if let Expr::Placeholder(Placeholder { id, field: None }) = value
            && let Some(number) = number_of(id)
        {
            self.untold.borrow_mut().entry(number).or_insert(false);
        }
    }

    /// Invariant 2. `last`: all is bound; else a clause is.
    pub(super) fn refuse_untold(&self, last: bool) -> Result<()> {
        for (number, earlier) in self.untold.borrow_mut().iter_mut() {
            let state = match (self.type_of(*number), last) {
                (None, true) => "42P18",
                (Some(_), _) if !*earlier => "42P08",
                _ => {
                    *earlier = true;
                    continue;
                }
            };
            let message = format!("could not determine data type of parameter ${number}");
            return Err(EngineError::new(state, message).into());
        }
        Ok(())
    }
}
