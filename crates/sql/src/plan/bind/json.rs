//! JSON: operators, functions of values of any type, aggregates, and functions that answer rows.
//!
//! 1. An operator is the function that PostgreSQL's operator stands for, chosen by the types of both sides (42883).
//! 2. A row that is made JSON has names: a table's row those of its columns, a row that is written out `f1`, `f2`.
use super::scope::{Clause, Scope};
use super::types::{self, no_operator};
use super::unnest::is_expandarray;
use super::untyped::refuse_open;
use super::{Binder, Fault, Placed, Result, unsupported, wrong};
use crate::functions::builtin::as_text;
use crate::functions::builtin::json::{PATHS, path as paths};
use crate::functions::convert::{convert, is_open};
use crate::functions::json::make::{self, Made};
use crate::functions::json::spread::{self as spreads, Spread};
use crate::values::arrays::{is_array, is_row, items_of};
use crate::values::field_of;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::{Placeholder, Unnest};
use datafusion::logical_expr::{Expr, ExprSchemable};
use std::sync::Arc;
use terrace_engine::{DataType, EngineError};
use terrace_grammar::statement::{self as tree, At, Call, ExprKind};

/// Whether a type is jsonb; `None`: it is not json either.
fn is_jsonb(of: &ArrowType) -> Option<bool> {
    match of {
        ArrowType::BinaryView => Some(false),
        ArrowType::LargeBinary => Some(true),
        _ => None,
    }
}

/// Whether an aggregate makes a jsonb of what it gathers; `None`: it is another one.
pub(super) fn gathers(name: &str) -> Option<bool> {
    match name {
        "json_agg" | "json_object_agg" => Some(false),
        "jsonb_agg" | "jsonb_object_agg" => Some(true),
        _ => None,
    }
}

impl Binder<'_> {
    /// Invariant 1; `None`: it is no operator of JSON.
    pub(super) fn json_operator(
        &self,
        symbol: &str,
        left: &Expr,
        right: &Expr,
        schema: &DFSchema,
    ) -> Result<Option<Expr>> {
        let (lt, rt) = (left.get_type(schema)?, right.get_type(schema)?);
        let both = [left.clone(), right.clone()];
        let none = || no_operator(symbol, &both, schema).map(Some);
        let jsonb = match (symbol, is_jsonb(&lt), is_jsonb(&rt)) {
            ("||", of, other) => {
                let takes = |of: Option<bool>, expr: &Expr| of == Some(true) || is_open(expr);
                let concats = (of.is_some() || other.is_some()) && takes(of, left) && takes(other, right);
                return match concats {
                    true => self.function_of("jsonb_concat", both.into(), schema).map(Some),
                    false => Ok(None),
                };
            }
            ("@>" | "<@", None, Some(true)) if is_open(left) => true,
            ("->" | "->>" | "#>" | "#>>" | "#-" | "@>" | "<@" | "?" | "?|" | "?&", None, _) => {
                // Of arrays, and of what has no type, Terrace has not.
                let known = !is_open(left) && !is_array(&lt) && lt != ArrowType::Null;
                return if known { none() } else { Ok(None) };
            }
            ("->" | "->>" | "#>" | "#>>", Some(jsonb), _) => jsonb,
            ("#-" | "@>" | "<@" | "?" | "?|" | "?&" | "-", Some(jsonb), _) => match jsonb {
                true => true,
                false => return none(),
            },
            _ => return Ok(None),
        };
        let text = is_open(right) || rt == ArrowType::Utf8;
        let whole = matches!(rt, ArrowType::Int16 | ArrowType::Int32);
        let list = items_of(&rt).is_some_and(|item| item.data_type() == &ArrowType::Utf8);
        // A parameter that is an array comes as its text.
        let array = list || is_open(right) || (matches!(right, Expr::Placeholder(_)) && rt == ArrowType::Utf8);
        let kind = if jsonb { "jsonb" } else { "json" };
        let suffix = if symbol.ends_with(">>") { "_text" } else { "" };
        let name = match symbol {
            "->" | "->>" if text => format!("{kind}_object_field{suffix}"),
            "->" | "->>" if whole => format!("{kind}_array_element{suffix}"),
            "#>" | "#>>" if array => PATHS[usize::from(symbol == "#>>")][usize::from(jsonb)].to_owned(),
            "#-" if array => "jsonb_delete_path".to_owned(),
            "?|" if array => "jsonb_exists_any".to_owned(),
            "?&" if array => "jsonb_exists_all".to_owned(),
            "-" if list => "jsonb_delete_array".to_owned(),
            "-" if text => "jsonb_delete".to_owned(),
            "-" if whole => "jsonb_delete_idx".to_owned(),
            "?" if text => "jsonb_exists".to_owned(),
            "@>" if is_open(right) || is_jsonb(&rt) == Some(true) => "jsonb_contains".to_owned(),
            "<@" if is_open(right) || is_jsonb(&rt) == Some(true) => "jsonb_contained".to_owned(),
            _ => return none(),
        };
        let [left, right] = both;
        let right = if list || matches!(symbol, "#>" | "#>>" | "#-" | "?|" | "?&") { path(right) } else { right };
        self.function_of(&name, vec![left, right], schema).map(Some)
    }

    /// A call of a function of JSON that is no plain function; `None`: it is another one.
    pub(super) fn json_call(&self, name: &str, call: &Call, at: At, scope: &Scope<'_>) -> Result<Option<Expr>> {
        if let Some(spread) = spreads::function(name) {
            return self.spread_of_list(spread, call, at, scope).map(Some);
        }
        let jsonb = name.contains("jsonb");
        let made = match name {
            "row_to_json" | "array_to_json" if call.args.len() == 2 => match &call.args[1].value.kind {
                ExprKind::Literal(tree::Literal::Bool(true)) => Made::Lines,
                ExprKind::Literal(tree::Literal::Bool(false)) => Made::Value,
                _ => return unsupported("line feeds in JSON that depend on a value"),
            },
            "to_json" | "to_jsonb" | "row_to_json" | "array_to_json" => Made::Value,
            "json_build_array" | "jsonb_build_array" => Made::Array,
            "json_build_object" | "jsonb_build_object" => Made::Object,
            _ if name.starts_with("jsonb_path_") => {
                return match self.path_call(name, call, at, scope)? {
                    Some(made) => Ok(Some(made)),
                    None => self.unknown(name, call, at, scope).map(Some),
                };
            }
            "jsonb_set" | "jsonb_set_lax" | "jsonb_insert" | "jsonb_exists_any" | "jsonb_exists_all"
            | "jsonb_delete_path" => {
                let mut args =
                    call.args.iter().map(|arg| self.expr(&arg.value, scope)).collect::<Result<Vec<Expr>>>()?;
                if let Some(second) = args.get_mut(1)
                    && is_array(&second.get_type(&scope.schema)?)
                {
                    *second = path(std::mem::take(second));
                }
                return self.function_of(name, args, &scope.schema).at(at).map(Some);
            }
            _ => return Ok(None),
        };
        let is_plain = !(call.star || call.distinct) && call.order.is_empty() && call.within.is_empty();
        if !is_plain || call.filter.is_some() || call.over.is_some() {
            return unsupported("this clause of a function");
        }
        let mut args = call.args.iter().map(|arg| self.json_value(&arg.value, scope)).collect::<Result<Vec<Expr>>>()?;
        match (&made, args.as_slice()) {
            (Made::Value, [arg]) => {
                refuse_open(arg, at)?;
                let fits = match arg.get_type(&scope.schema)? {
                    of if is_array(&of) => name != "row_to_json",
                    ArrowType::Struct(_) => name != "array_to_json",
                    _ => name.starts_with("to_json"),
                };
                if !fits {
                    return self.unknown(name, call, at, scope);
                }
            }
            (Made::Value | Made::Lines, [_, _]) if !name.starts_with("to_json") => {
                refuse_open(&args[0], at)?;
                let is_row = is_row(&args[0].get_type(&scope.schema)?);
                if is_row == (name == "array_to_json") {
                    return self.unknown(name, call, at, scope);
                }
                args.truncate(1);
            }
            (Made::Value | Made::Lines, _) => return self.unknown(name, call, at, scope),
            (Made::Object, args) if args.len() % 2 == 1 => {
                let error = EngineError::new("22023", "argument list must have even number of elements");
                let hint = format!("The arguments of {name}() must consist of alternating keys and values.");
                return Err(error.with_hint(hint).into());
            }
            _ => {}
        }
        self.made(make::call(made, jsonb, name, args), &scope.schema).at(at).map(Some)
    }

    /// `json_build_array(VARIADIC array)` and its kind; `None`: it is another function.
    pub(super) fn json_of_items(&self, name: &str, call: &Call, at: At, scope: &Scope<'_>) -> Result<Option<Expr>> {
        let made = match name {
            "json_build_array" | "jsonb_build_array" => Made::Gathered,
            "json_build_object" | "jsonb_build_object" => Made::ObjectOfItems,
            _ => return Ok(None),
        };
        let [arg] = call.args.as_slice() else { return unsupported("VARIADIC beside other arguments") };
        let array = self.expr(&arg.value, scope)?;
        let of = array.get_type(&scope.schema)?;
        match items_of(&of) {
            Some(item) if !is_row(item.data_type()) => {
                let jsonb = name.starts_with("jsonb");
                self.made(make::call(made, jsonb, name, vec![array]), &scope.schema).at(at).map(Some)
            }
            Some(_) => unsupported("VARIADIC of rows"),
            None => wrong(arg.value.at, "42804", "VARIADIC argument must be an array"),
        }
    }

    /// A call of a function that takes a jsonpath, which is a literal, or one that is cast to jsonpath, or a parameter;
    /// `None`: it is given another type.
    fn path_call(&self, name: &str, call: &Call, at: At, scope: &Scope<'_>) -> Result<Option<Expr>> {
        let mut args = vec![];
        for (number, arg) in call.args.iter().enumerate() {
            let bound = match number {
                1 => match self.json_path(&arg.value, scope)? {
                    Some(path) => path,
                    None => return Ok(None),
                },
                _ => self.expr(&arg.value, scope)?,
            };
            args.push(bound);
        }
        let written: Vec<&tree::Expr> = call.args.iter().map(|arg| &arg.value).collect();
        self.function_of(name, args, &scope.schema).at_value_of(&written).at(at).map(Some)
    }

    /// `jsonb @? path`, `jsonb @@ path`; `None`: it is another operator.
    pub(super) fn path_operator(
        &self,
        op: &tree::Operator,
        left: &Expr,
        right: &tree::Expr,
        scope: &Scope<'_>,
    ) -> Result<Option<Expr>> {
        let is_ours = is_jsonb(&left.get_type(&scope.schema)?) == Some(true) || (is_open(left) && op.symbol == "@?");
        if !is_ours {
            return Ok(None);
        }
        let Some(path) = self.json_path(right, scope)? else {
            let sides = [left.clone(), self.expr(right, scope)?];
            return no_operator(&op.symbol, &sides, &scope.schema).at(op.at).map(Some);
        };
        let name = if op.symbol == "@?" { "jsonb_path_exists_opr" } else { "jsonb_path_match_opr" };
        self.function_of(name, vec![left.clone(), path], &scope.schema).at(op.at).map(Some)
    }

    /// A jsonpath, as a text; `None`: it is of another type. 42601, 22P02
    pub(super) fn json_path(&self, path: &tree::Expr, scope: &Scope<'_>) -> Result<Option<Expr>> {
        let path = match &path.kind {
            ExprKind::Cast { arg, to, .. } if types::is_json_path(to) => arg,
            _ => path,
        };
        match &path.kind {
            ExprKind::Literal(tree::Literal::Text(text)) => {
                paths::check(text).map_err(Fault::from).at(path.at)?;
            }
            ExprKind::Literal(tree::Literal::Null) | ExprKind::Parameter(_) => {}
            _ => return Ok(None),
        }
        self.expr(path, scope).map(Some)
    }

    /// JSON of what an aggregate, or a window, has gathered.
    pub(super) fn gathered(&self, name: &str, jsonb: bool, gathered: Expr, scope: &Scope<'_>) -> Result<Expr> {
        let made = if name.contains("object") { Made::GatheredObject } else { Made::Gathered };
        self.made(make::call(made, jsonb, name, vec![gathered]), &scope.schema)
    }

    /// What an aggregate gathers.
    pub(super) fn to_gather(&self, name: &str, call: &Call, at: At, scope: &Scope<'_>) -> Result<Vec<Expr>> {
        let args = call.args.iter().map(|arg| self.json_value(&arg.value, scope)).collect::<Result<Vec<Expr>>>()?;
        match args.as_slice() {
            [arg] if !name.contains("object") => {
                refuse_open(arg, at)?;
                Ok(args)
            }
            [_, _] if name.contains("object") && !call.distinct => {
                let names = ["key", "value"].map(str::to_owned).into();
                Ok(vec![self.made(make::call(Made::Row(names), false, "", args), &scope.schema)?])
            }
            [_, _] if name.contains("object") => unsupported("DISTINCT of names and values"),
            _ => self.unknown(name, call, at, scope),
        }
    }

    /// A value that is made JSON (invariant 2).
    fn json_value(&self, arg: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        if let Some(row) = self.whole_row(arg, scope)? {
            return Ok(row);
        }
        let bound = self.expr(arg, scope)?;
        self.asks_null(&bound);
        Ok(bound)
    }

    /// The argument of a function that answers rows.
    pub(super) fn spread_arg(&self, spread: &Spread, call: &Call, at: At, scope: &Scope<'_>) -> Result<Expr> {
        if let Some(of_all) = spread.of_path() {
            return match self.path_call(of_all, call, at, scope)? {
                Some(array) => Ok(array),
                None => self.unknown(spread.name, call, at, scope),
            };
        }
        let arg = match call.args.as_slice() {
            [arg] if !spread.populates() => arg,
            [_, arg] if spread.populates() => arg,
            _ => return self.unknown(spread.name, call, at, scope),
        };
        let bound = self.expr(&arg.value, scope)?;
        if is_open(&bound) {
            return self.cast_to(bound, spread.takes(), &scope.schema).at_value_of(&[&arg.value]);
        }
        match is_jsonb(&bound.get_type(&scope.schema)?) == Some(spread.jsonb) {
            true => Ok(bound),
            false => self.unknown(spread.name, call, at, scope),
        }
    }

    /// In the list of SELECT.
    fn spread_of_list(&self, spread: &'static Spread, call: &Call, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let clause = scope.clause.get();
        if !matches!(clause, Clause::Items | Clause::Order) {
            let message = format!("set-returning functions are not allowed in {}", clause.name());
            return wrong(at, "0A000", message);
        }
        if spread.populates() {
            return unsupported("a row as a value");
        }
        if spread.is_of_records() {
            return wrong(at, "0A000", "function returning record called in context that cannot accept type record");
        }
        let arg = self.spread_arg(spread, call, at, scope)?;
        match <[_; 1]>::try_from(spread.columns(&arg, false)) {
            Ok([(_, items)]) => Ok(Expr::Unnest(Unnest::new(items))),
            Err(_) => unsupported("a function of several columns outside of FROM"),
        }
    }

    /// `(json_each(x)).key` in the list of SELECT. Parts of what else has some are refused.
    pub(super) fn field(&self, of: &tree::Expr, field: &str, scope: &Scope<'_>) -> Result<Expr> {
        match self.part_of_rows(of, field, scope)? {
            Some(part) => Ok(part),
            None => match self.field_of_row(of, field, scope)? {
                Some(field) => Ok(field),
                None => unsupported("this expression"),
            },
        }
    }

    fn part_of_rows(&self, of: &tree::Expr, field: &str, scope: &Scope<'_>) -> Result<Option<Expr>> {
        let ExprKind::Call(call) = &of.kind else { return Ok(None) };
        if is_expandarray(call) {
            let [item, number] = self.expanded_parts(call, of.at, scope)?;
            return match field {
                "x" => Ok(Some(item)),
                "n" => Ok(Some(number)),
                _ => wrong(of.at, "42703", format!("could not identify column \"{field}\" in record data type")),
            };
        }
        let is_plain = call.name.qualifier().is_empty() && call.over.is_none() && !call.variadic;
        let Some(spread) = spreads::function(&call.name.last().name).filter(|_| is_plain) else { return Ok(None) };
        if !matches!(scope.clause.get(), Clause::Items) || spread.is_of_records() {
            return Ok(None);
        }
        let arg = self.spread_arg(spread, call, of.at, scope)?;
        let columns = spread.columns(&arg, false);
        if columns.len() == 1 {
            return Ok(None);
        }
        match columns.into_iter().find(|(name, _)| *name == field) {
            Some((_, items)) => Ok(Some(Expr::Unnest(Unnest::new(items)))),
            None => wrong(of.at, "42703", format!("could not identify column \"{field}\" in record data type")),
        }
    }
}

/// A path as the functions take it: the text of an array.
fn path(expr: Expr) -> Expr {
    let texts = DataType::Text.array().expect("a text is no array");
    match expr {
        Expr::Literal(ref value, _) if !is_array(&value.data_type()) => expr,
        Expr::Placeholder(Placeholder { id, field: None }) => {
            let field = Some(Arc::new(field_of("", texts, true)));
            as_text(Expr::Placeholder(Placeholder { id, field }))
        }
        Expr::Placeholder(_) => as_text(convert(expr, texts)),
        other => as_text(other),
    }
}
