//! Casts to domains: a value, if the conditions of the domain are not false for it.
use crate::error::tunnel;
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use terrace_engine::{Domain, DomainCheck, EngineError};
use terrace_grammar::quoted;

/// The first argument, if none of the others (the domain's conditions for it) is false.
pub(crate) fn checked(domain: Arc<Domain>, args: Vec<Expr>) -> Expr {
    // Upstream: common subexpressions are told apart by their functions' names.
    let name = format!("{domain:?}");
    let checked = Checked { name, domain, signature: Signature::any(args.len(), Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(checked)), args))
}

/// 23514
pub(crate) fn violated(domain: &Domain, check: &DomainCheck) -> EngineError {
    let message = format!("value for domain {} violates check constraint \"{}\"", quoted(&domain.name), check.name);
    EngineError::new("23514", message).on_constraint(&check.name)
}

/// 23502
pub(crate) fn no_nulls(domain: &Domain) -> EngineError {
    EngineError::new("23502", format!("domain {} does not allow null values", quoted(&domain.name)))
}

#[derive(Debug)]
struct Checked {
    name: String,
    domain: Arc<Domain>,
    signature: Signature,
}

impl PartialEq for Checked {
    fn eq(&self, other: &Checked) -> bool {
        self.name == other.name
    }
}

impl Eq for Checked {}

impl Hash for Checked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(args.arg_fields[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (value, conditions) = args.args.split_first().expect("a value");
        let value_array = value.to_array(args.number_rows)?;
        if self.domain.takes_no_null() && value_array.logical_null_count() > 0 {
            return Err(tunnel(no_nulls(&self.domain)));
        }
        for (condition, check) in conditions.iter().zip(self.domain.all_checks()) {
            let met = condition.to_array(args.number_rows)?;
            let broken = met.as_boolean_opt().is_some_and(|met| met.iter().any(|met| met == Some(false)));
            if broken {
                return Err(tunnel(violated(&self.domain, check)));
            }
        }
        Ok(value.clone())
    }
}
