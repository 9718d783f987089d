//! Subscripts of a jsonb: `x['a'][1]`, and `SET x['a'] = value` of an UPDATE.
//!
//! 1. A step is a text or an integer, and nothing that may be both or neither (42804). What has no type is a text.
//! 2. What is assigned to, and is NULL, is an empty array if the first step is an integer, and an empty object else.
//!
//! Source: PostgreSQL 15 documentation, 8.14.5 (jsonb Subscripting), and what the server answers.
use super::query::parameter_number;
use super::scope::Scope;
use super::{Binder, Placed, Result, fail, unsupported, wrong};
use crate::cast::{Castable, castable};
use crate::functions::builtin::{is_implicit, type_name};
use crate::functions::convert::is_open;
use crate::values::{engine_type, field_type};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, ExprSchemable};
use terrace_engine::{DataType, EngineError};
use terrace_grammar::statement::{self as tree, ExprKind, Subscript};

fn quoted(text: &str) -> Expr {
    Expr::Literal(ScalarValue::Utf8(Some(text.to_owned())), None)
}

impl Binder<'_> {
    /// `x['a']` of a jsonb that is bound already.
    pub(super) fn part_of_jsonb(&self, whole: Expr, subscript: &Subscript, scope: &Scope<'_>) -> Result<Expr> {
        let (step, _) = self.step(subscript, scope)?;
        self.function_of("jsonb_extract_path", vec![whole, step], &scope.schema)
    }

    /// What a column becomes by `SET x['a'] = value`.
    pub(super) fn jsonb_with_part(
        &self,
        (column, whole): (&str, Expr),
        subscripts: &[Subscript],
        value: &tree::Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let mut steps = vec![];
        for subscript in subscripts {
            steps.push(self.step(subscript, scope)?);
        }
        if let ExprKind::Parameter(number) = value.kind {
            self.settle_parameter(parameter_number(number)?, DataType::Jsonb);
        }
        let new = self.expr(value, scope)?;
        let given = new.get_type(&scope.schema)?;
        let fits = engine_type(&given).is_some_and(|of| castable(of, DataType::Jsonb) == Castable::ByAssignment);
        if !is_open(&new) && (!fits || engine_type(&given).is_some_and(DataType::is_text)) {
            let given = type_name(&given);
            let message =
                format!("subscripted assignment to \"{column}\" requires type jsonb but expression is of type {given}");
            let hint = "You will need to rewrite or cast the expression.";
            return fail(value.at, EngineError::new("42804", message).with_hint(hint));
        }
        let jsonb = |expr: Expr| self.cast_to(expr, DataType::Jsonb, &scope.schema);
        let or =
            |expr: Expr, other: &str| self.function_of("coalesce", vec![expr, jsonb(quoted(other))?], &scope.schema);
        // Invariant 2.
        let empty = if matches!(steps.first(), Some((_, true))) { "[]" } else { "{}" };
        let new = or(jsonb(new).at_value_of(&[value])?, "null")?;
        let args = [or(whole, empty)?, new].into_iter().chain(steps.into_iter().map(|(step, _)| step));
        self.function_of("jsonb with", args.collect(), &scope.schema)
    }

    /// A step, as a text, and whether it is an integer (invariant 1).
    fn step(&self, subscript: &Subscript, scope: &Scope<'_>) -> Result<(Expr, bool)> {
        let at = match subscript {
            Subscript::Index(at) => at,
            Subscript::Slice(from, to) => {
                let Some(at) = from.as_ref().or(to.as_ref()) else {
                    return Err(EngineError::new("42804", "jsonb subscript does not support slices").into());
                };
                return wrong(at.at, "42804", "jsonb subscript does not support slices");
            }
        };
        if let ExprKind::Parameter(number) = at.kind {
            self.settle_parameter(parameter_number(number)?, DataType::Text);
        }
        let bound = self.expr(at, scope)?;
        if is_open(&bound) {
            return self.cast_to(bound, DataType::Text, &scope.schema).at_value_of(&[at]).map(|step| (step, false));
        }
        let field = bound.to_field(&scope.schema)?.1;
        let written = match bound {
            // A number that stands as it was written is an integer where it is small enough.
            Expr::Literal(ScalarValue::Int64(Some(v)), None) if i32::try_from(v).is_ok() => Some(DataType::Int4),
            _ => field_type(&field),
        };
        let Some(of) = written else { return unsupported("a subscript of this type") };
        let (number, text) = (is_implicit(of, DataType::Int4), is_implicit(of, DataType::Text));
        if !number && !text {
            let message = format!("subscript type {} is not supported", of.base_name());
            let hint = "jsonb subscript must be coercible to either integer or text.";
            return fail(at.at, EngineError::new("42804", message).with_hint(hint));
        }
        self.cast_to(bound, DataType::Text, &scope.schema).at_value_of(&[at]).map(|step| (step, number))
    }
}
