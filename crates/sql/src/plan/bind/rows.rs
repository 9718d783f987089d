//! Rows that are compared: column by column.
//!
//! 1. `(a, b) < (c, d)` is `a < c OR (a = c AND b < d)`, NULL where that is NULL; `=` asks for all columns, `<>` for
//!    one.
//! 2. What would be evaluated more than once by that must not be volatile (0A000).
use super::expr::{halved, is_row};
use super::scope::Scope;
use super::{Binder, Result, unsupported, wrong};
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, Operator};
use terrace_engine::EngineError;
use terrace_grammar::statement::{self as tree, At, ExprKind};

/// Columns of rows that are compared by `<` and the like: what is written out for one holds what is for the next.
const ORDERED_MAX: usize = 100;

/// A value, or a row of values.
#[derive(Clone)]
pub(super) enum Value {
    One(Expr),
    Row(Vec<Value>, At),
}

impl Binder<'_> {
    pub(super) fn row(&self, expr: &tree::Expr, scope: &Scope<'_>) -> Result<Value> {
        match &expr.kind {
            ExprKind::Row { fields, .. } => {
                let fields = fields.iter().map(|field| self.row(field, scope)).collect::<Result<Vec<_>>>()?;
                Ok(Value::Row(fields, expr.at))
            }
            _ => {
                let value = self.expr(expr, scope)?;
                match value.is_volatile() {
                    true => unsupported("a volatile function in a row"),
                    false => Ok(Value::One(value)),
                }
            }
        }
    }

    /// Invariant 1.
    pub(super) fn rows(&self, symbol: &str, left: Value, right: Value, schema: &DFSchema) -> Result<Expr> {
        let (left, right, at) = match (left, right) {
            (Value::One(left), Value::One(right)) => return self.compared(symbol, left, right, schema),
            (Value::Row(left, at), Value::Row(right, _)) => (left, right, at),
            _ => return unsupported("a row beside a value"),
        };
        let pairs = pairs(left, right)?;
        let count = pairs.len();
        let all = |symbol: &str, op| -> Result<Expr> {
            let pairs = pairs.iter().cloned().map(|(left, right)| self.rows(symbol, left, right, schema));
            Ok(halved(pairs.collect::<Result<_>>()?, op))
        };
        let strict = match symbol {
            "=" => return all("=", Operator::And),
            "<>" => return all("<>", Operator::Or),
            "<" | "<=" => "<",
            ">" | ">=" => ">",
            _ => return unsupported("this operator of rows"),
        };
        if count > ORDERED_MAX {
            let message = format!("rows of more than {ORDERED_MAX} columns cannot be compared by {symbol}");
            return wrong(at, "54001", message);
        }
        let mut pairs = pairs.into_iter().rev();
        let (left, right) = pairs.next().expect("rows have columns");
        let mut result = self.rows(symbol, left, right, schema)?;
        for (left, right) in pairs {
            let equal = self.rows("=", left.clone(), right.clone(), schema)?;
            let tie = halved(vec![equal, result], Operator::And);
            result = halved(vec![self.rows(strict, left, right, schema)?, tie], Operator::Or);
        }
        Ok(result)
    }

    pub(super) fn rows_distinct(&self, left: Value, right: Value, negated: bool, schema: &DFSchema) -> Result<Expr> {
        let (left, right) = match (left, right) {
            (Value::One(left), Value::One(right)) => return self.apart(left, right, negated, schema),
            (Value::Row(left, _), Value::Row(right, _)) => (left, right),
            _ => return unsupported("a row beside a value"),
        };
        let parts = pairs(left, right)?;
        let parts = parts.into_iter().map(|(left, right)| self.rows_distinct(left, right, negated, schema));
        Ok(halved(parts.collect::<Result<_>>()?, if negated { Operator::And } else { Operator::Or }))
    }

    /// `row IS NULL`: every column is. `row IS NOT NULL`: no column is.
    pub(super) fn null_row(&self, row: &tree::Expr, negated: bool, scope: &Scope<'_>) -> Result<Expr> {
        let ExprKind::Row { fields, .. } = &row.kind else { return unsupported("a row that is not written out") };
        if fields.is_empty() || fields.iter().any(is_row) {
            return unsupported("a row within a row");
        }
        let test = |field| {
            let field = Box::new(self.expr(field, scope)?);
            self.asks_null(&field);
            self.made(if negated { Expr::IsNotNull(field) } else { Expr::IsNull(field) }, &scope.schema)
        };
        Ok(halved(fields.iter().map(test).collect::<Result<_>>()?, Operator::And))
    }

    pub(super) fn row_in_list(
        &self,
        row: &tree::Expr,
        list: &[tree::Expr],
        negated: bool,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let row = self.row(row, scope)?;
        let equal = list.iter().map(|item| {
            let item = self.row(item, scope)?;
            self.rows("=", row.clone(), item, &scope.schema)
        });
        let any = halved(equal.collect::<Result<_>>()?, Operator::Or);
        Ok(if negated { Expr::Not(Box::new(any)) } else { any })
    }
}

fn pairs(left: Vec<Value>, right: Vec<Value>) -> Result<Vec<(Value, Value)>> {
    if left.len() != right.len() {
        return Err(EngineError::new("42601", "unequal number of entries in row expressions").into());
    }
    if left.is_empty() {
        return unsupported("rows without columns");
    }
    Ok(left.into_iter().zip(right).collect())
}
