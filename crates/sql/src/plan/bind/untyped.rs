//! Arguments of which nothing tells the type, and those of types that a function does not take.
//!
//! 1. A function of anything (`concat`, `json_build_array`) asks a parameter for no type: see [`super::untold`].
//! 2. A function whose result has its argument's type takes none of an open one (42804).
//! 3. The type void is taken by functions of anything alone (42883).
use super::scope::Scope;
use super::{Binder, Fault, Placed, Result, unsupported, wrong};
use crate::functions::builtin;
use crate::functions::convert::is_open;
use crate::values::is_void;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, ExprSchemable};
use terrace_engine::EngineError;
use terrace_grammar::statement::{self as tree, At, Call};

/// Invariant 2.
pub(super) fn refuse_open(arg: &Expr, at: At) -> Result<()> {
    match is_open(arg) {
        true => wrong(at, "42804", "could not determine polymorphic type because input has type unknown"),
        false => Ok(()),
    }
}

/// 42P18 of a parameter that has no type yet.
fn refuse_parameter(arg: &Expr, at: At) -> Result<()> {
    match arg {
        Expr::Placeholder(Placeholder { id, field: None }) => {
            wrong(at, "42P18", format!("could not determine data type of parameter {id}"))
        }
        _ => Ok(()),
    }
}

/// How many arguments of a function are of certain types, before those that are anything; `None`: all are.
fn before_any(name: &str) -> Option<usize> {
    match name {
        "concat" | "count" | "num_nulls" | "num_nonnulls" | "pg_column_size" | "quote_literal" | "quote_nullable" => {
            Some(0)
        }
        "concat_ws" | "format" => Some(1),
        _ => None,
    }
}

/// Functions, and how many arguments they have, of which there are several where no argument has a type.
const SEVERAL: [(&str, usize); 19] = [
    ("age", 1),
    ("array_agg", 1),
    ("bit_and", 1),
    ("bit_count", 1),
    ("bit_or", 1),
    ("bit_xor", 1),
    ("gcd", 2),
    ("generate_series", 2),
    ("generate_series", 3),
    ("get_bit", 2),
    ("isfinite", 1),
    ("lcm", 2),
    ("mod", 2),
    ("pg_get_viewdef", 2),
    ("pg_size_pretty", 1),
    ("set_bit", 3),
    ("to_char", 2),
    ("to_hex", 1),
    ("trunc", 1),
];

impl Binder<'_> {
    /// Invariants 1 and 2.
    pub(super) fn refuse_untyped(
        &self,
        (name, args): (&str, &[Expr]),
        call: &Call,
        at: At,
        scope: &Scope<'_>,
    ) -> Result<()> {
        // What is counted once has to be compared, and is a text then.
        if name == "count" && !call.distinct {
            args.iter().for_each(|arg| self.asks_null(arg));
        }
        if matches!(name, "concat" | "concat_ws" | "format") {
            for arg in args.iter().skip(before_any(name).unwrap_or(0)) {
                refuse_parameter(arg, at)?;
            }
        }
        match (name, args) {
            ("first_value" | "last_value" | "nth_value", [arg, ..]) | ("lag" | "lead", [arg] | [arg, _]) => {
                refuse_open(arg, at)
            }
            ("array_fill", [arg, ..]) => refuse_open(arg, at),
            ("to_char", [arg, _]) if is_open(arg) => self.not_unique(name, call, at, scope),
            _ if SEVERAL.contains(&(name, args.len())) && args.iter().all(is_open) => {
                self.not_unique(name, call, at, scope)
            }
            // A string of bits, where it has no type, and its place is no bigint.
            ("get_bit" | "set_bit", [bits, place, ..])
                if is_open(bits) && place.get_type(&scope.schema)? != ArrowType::Int64 =>
            {
                unsupported("a string of bits")
            }
            _ => Ok(()),
        }
    }

    /// Invariant 3.
    pub(super) fn refuse_void(
        &self,
        (name, args): (&str, &[Expr]),
        call: &Call,
        at: At,
        scope: &Scope<'_>,
    ) -> Result<()> {
        for arg in args.iter().take(before_any(name).unwrap_or(args.len())) {
            if is_void(arg.to_field(&scope.schema)?.1.as_ref()) {
                return self.unknown(name, call, at, scope);
            }
        }
        Ok(())
    }

    /// 42725
    pub(super) fn not_unique<T>(&self, name: &str, call: &Call, at: At, scope: &Scope<'_>) -> Result<T> {
        let message = format!("function {name}({}) is not unique", self.types_of(call, scope)?);
        let hint = "Could not choose a best candidate function. You might need to add explicit type casts.";
        Err(Fault::from(EngineError::new("42725", message).with_hint(hint))).at(at)
    }

    /// 42883
    pub(super) fn unknown<T>(&self, name: &str, call: &Call, at: At, scope: &Scope<'_>) -> Result<T> {
        let message = format!("function {name}({}) does not exist", self.types_of(call, scope)?);
        Err(Fault::from(builtin::with_hint(EngineError::new("42883", message)))).at(at)
    }

    /// The types of arguments, as messages name them.
    fn types_of(&self, call: &Call, scope: &Scope<'_>) -> Result<String> {
        let mut types = vec![];
        for tree::Argument { name, value } in &call.args {
            let arg = self.expr(value, scope)?;
            let field = arg.to_field(&scope.schema)?.1;
            let of = match is_open(&arg) {
                true => "unknown".to_owned(),
                false if is_void(&field) => "void".to_owned(),
                false => builtin::type_name(field.data_type()),
            };
            types.push(name.as_ref().map_or(of.clone(), |name| format!("{} => {of}", name.name)));
        }
        Ok(types.join(", "))
    }
}
