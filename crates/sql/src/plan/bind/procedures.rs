//! `::regproc` and `::regprocedure`: names of functions, and their OIDs.
//!
//! 1. A name that is written is looked up when the statement is bound, and stands for the OID. One that is computed, or
//!    comes as a parameter, is refused (0A000).
//! 2. All functions are in `pg_catalog`. Of those that PostgreSQL has, one that Terrace has not does not exist (42883).
use super::scope::Scope;
use super::{Binder, Placed, Result, system, unsupported, wrong};
use crate::error::undefined_schema;
use crate::functions::arrays::calls;
use crate::functions::builtin;
use crate::pgcatalog;
use crate::pgcatalog::procedures::{self, Meant};
use crate::plan::rules::compute;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable};
use terrace_engine::EngineError;
use terrace_grammar::name_of;
use terrace_grammar::statement::{self as tree, ExprKind, Literal};

impl Binder<'_> {
    /// The OID of a name that is written; of an OID, what it is shown as.
    pub(super) fn cast_to_procedure(&self, kind: &'static str, arg: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        if let ExprKind::Literal(Literal::Text(written)) = &arg.kind {
            let oid = self.procedure(kind, written).at(arg.at)?;
            return Ok(Expr::Literal(ScalarValue::UInt32(Some(oid)), None));
        }
        if matches!(arg.kind, ExprKind::Parameter(_)) {
            return unsupported("a parameter as the name of a function");
        }
        let bound = system::oid_behind(self.expr(arg, scope)?);
        match bound.get_type(&scope.schema)? {
            ArrowType::Null => Ok(Expr::Literal(ScalarValue::Utf8(None), None)),
            ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64 | ArrowType::UInt32 => {
                let oid = self.function_of("to_oid", vec![bound], &scope.schema)?;
                self.function_of(
                    if kind == "regproc" { "regproc_name" } else { "regprocedure_name" },
                    vec![oid],
                    &scope.schema,
                )
            }
            ArrowType::Utf8 => unsupported("a computed name of a function"),
            of => wrong(arg.at, "42846", format!("cannot cast type {} to {kind}", builtin::type_name(&of))),
        }
    }

    fn procedure(&self, kind: &str, written: &str) -> Result<u32> {
        if written == "-" {
            return Ok(0);
        }
        if !written.is_empty() && written.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(pgcatalog::oid_of_text(written)?);
        }
        let missing = || Err(EngineError::new("42883", format!("function \"{written}\" does not exist")).into());
        let (name, types) = match kind {
            "regproc" => (written, None),
            _ => {
                let (name, types) = self.with_types(written)?;
                (name, Some(types))
            }
        };
        let parsed = name_of(name);
        let own = match parsed.as_ref().map(|name| name.parts()) {
            Some([own]) => own.name.as_str(),
            Some([schema, own]) if schema.name == "pg_catalog" => own.name.as_str(),
            Some([schema, _])
                if self.catalog().schema(&schema.name).is_none() && !pgcatalog::is_schema(&schema.name) =>
            {
                return Err(undefined_schema(&schema.name).into());
            }
            _ => return missing(),
        };
        match (types, procedures::meant(own)) {
            (None, Meant::One(oid)) => Ok(oid),
            (None, Meant::Many) => {
                Err(EngineError::new("42725", format!("more than one function named \"{written}\"")).into())
            }
            (_, Meant::Nothing) if self.is_called(own) => unsupported("the OID of this function"),
            (_, Meant::Nothing) => missing(),
            (Some(types), _) => procedures::taking(own, &types).map_or_else(missing, Ok),
        }
    }

    /// Whether a function that has no row in `pg_proc` can be called so.
    fn is_called(&self, name: &str) -> bool {
        self.planner.scalar(name).is_some()
            || self.planner.aggregate(name).is_some()
            || self.planner.window(name).is_some()
            || calls::is_function(name)
    }

    /// The name, and the types, of `name(type, ..)`. 22P02, 42704
    fn with_types<'t>(&self, written: &'t str) -> Result<(&'t str, Vec<u32>)> {
        let broken = |expected: &str| EngineError::new("22P02", format!("expected a {expected} parenthesis"));
        let (name, types) = written.split_once('(').ok_or_else(|| broken("left"))?;
        let types = types.trim_end().strip_suffix(')').ok_or_else(|| broken("right"))?;
        if types.contains(['"', '(']) {
            return unsupported("this name of a function");
        }
        let oid = |of: &str| {
            let text = Expr::Literal(ScalarValue::Utf8(Some(of.trim().to_owned())), None);
            match compute(&self.function_of("regtype_oid", vec![text], &DFSchema::empty())?)? {
                ScalarValue::UInt32(Some(oid)) => Ok(oid),
                _ => unsupported("this name of a function"),
            }
        };
        let types = types.split(',').filter(|_| !types.trim().is_empty()).map(oid).collect::<Result<Vec<u32>>>()?;
        Ok((name.trim(), types))
    }
}
